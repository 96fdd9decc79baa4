#!/bin/sh
# ptx.sh LLVM_BIN_DIR LF_MATH_BC WORK_DIR
#
# Every function must become PTX that calls nothing outside the module, and ptxas must take it where there is one.
set -eu
bin=$1 bc=$2 work=$3
mkdir -p "$work"
ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null || true)
for sm in sm_75 sm_90; do
    "$bin/llc" -O2 -mtriple=nvptx64-nvidia-cuda -mcpu=$sm "$bc" -o "$work/$sm.ptx"
    functions=$(grep -c '^\.weak \.func\|^\.visible \.func' "$work/$sm.ptx")
    if grep -n '\.extern' "$work/$sm.ptx"; then
        echo "FAIL $sm: the symbols above are not defined in the module"
        exit 1
    fi
    if grep -nE '\.(approx|ftz)' "$work/$sm.ptx"; then
        echo "FAIL $sm: the instructions above are not exact"
        exit 1
    fi
    if [ "$functions" -lt 100 ]; then
        echo "FAIL $sm: only $functions functions"
        exit 1
    fi
    if [ -n "$ptxas" ]; then
        "$ptxas" -arch=$sm -O1 -c "$work/$sm.ptx" -o "$work/$sm.cubin"
        echo "ok   $sm: $functions functions, accepted by ptxas"
    else
        echo "ok   $sm: $functions functions (no ptxas here)"
    fi
done
echo "2 passed, 0 failed"
