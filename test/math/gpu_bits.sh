#!/bin/sh
# gpu_bits.sh LLVM_BIN_DIR BUILD_DIR_OF_LIB_MATH OUT_DIR
#
# Makes OUT_DIR/gpu_bits and OUT_DIR/kernels.ptx, which need nothing but a CUDA driver: carry the folder to a machine
# with a GPU and run  ./gpu_bits kernels.ptx
set -eu
bin=$1 build=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
"$bin/clang" --target=nvptx64-nvidia-cuda -march=sm_75 -std=c17 -O2 -ffreestanding -nostdlib -ffp-contract=off -I"$here/../../lib" \
    -Xclang -disable-llvm-passes -emit-llvm -c "$here/gpu_kernels.c" -o "$out/kernels.bc"
"$bin/llvm-link" --suppress-warnings "$out/kernels.bc" "$build/lf_math.bc" -o "$out/linked.bc"
"$bin/opt" '-passes=default<O2>' "$out/linked.bc" -o "$out/opt.bc"
"$bin/llc" -O3 -mcpu=sm_75 "$out/opt.bc" -o "$out/kernels.ptx"
if grep -n '\.extern' "$out/kernels.ptx"; then exit 1; fi
"$bin/clang" -std=gnu17 -O2 -Wall -Wextra -I"$here/../../lib" "$here/gpu_bits.c" "$build/lf_math_native.o" -lm -ldl -o "$out/gpu_bits"
rm "$out/kernels.bc" "$out/linked.bc" "$out/opt.bc"
