#!/bin/sh
# same_bits.sh LLVM_BIN_DIR LF_MATH_BC SOURCE_DIR WORK_DIR
#
# Builds same_bits.c with the bitcode in several ways and compares what they print. One build is as the
# interpreter's copy is (x86-64, no inlining); the others inline and vectorise, as a JIT does.
set -eu
bin=$1 bc=$2 source=$3 work=$4
mkdir -p "$work"
cd "$work"

flags="-std=c17 -ffp-contract=off -fno-math-errno -I$source/../../lib"
failed=0 passed=0
build() { # build NAME CPU OPT OPT_FLAGS LLC_LEVEL
    # shellcheck disable=SC2086
    "$bin/clang" $flags -O1 -Xclang -disable-llvm-passes -march="$2" -emit-llvm -c "$source/same_bits.c" -o "$1.driver.bc"
    # Attributes of the CPU go to the driver alone; inlining needs none on the callee's side.
    "$bin/llvm-link" --suppress-warnings "$1.driver.bc" "$bc" -o "$1.bc"
    # shellcheck disable=SC2086
    "$bin/opt" "-passes=default<$3>" -mcpu="$2" $4 "$1.bc" -o "$1.opt.bc"
    "$bin/llc" -O"$5" -mcpu="$2" -relocation-model=pic -filetype=obj "$1.opt.bc" -o "$1.o"
    "$bin/clang" "$1.o" -lm -o "$1"
    "./$1" > "$1.txt"
}
compare() {
    if cmp -s baseline.txt "$1.txt"; then
        passed=$((passed + 1))
        echo "ok   $1"
    else
        failed=$((failed + 1))
        echo "FAIL $1 differs from the x86-64 baseline in:"
        diff baseline.txt "$1.txt" | sed -n 's/^> / /p'
    fi
}

build baseline x86-64 O1 "-inline-threshold=-1000 -vectorize-loops=false -vectorize-slp=false" 2
levels="x86-64"
if grep -q ' avx2 ' /proc/cpuinfo && grep -q ' fma ' /proc/cpuinfo; then levels="$levels x86-64-v3 native"; fi
if grep -q ' avx512vl ' /proc/cpuinfo; then levels="$levels x86-64-v4"; fi
for cpu in $levels; do
    build "$cpu" "$cpu" O2 "-inline-threshold=2000" 2
    compare "$cpu"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
