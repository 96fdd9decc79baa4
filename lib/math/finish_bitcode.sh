#!/bin/sh
# finish_bitcode.sh LLVM_BIN_DIR OUT_BC OUT_C OUT_NATIVE_LL INPUT…
#
# Links the parts, optimises them once without looking at a target, and writes the result as bitcode for the JIT
# (as a C array too) and as x86-64 IR for the interpreter's native copy.
set -eu
bin=$1 out_bc=$2 out_c=$3 out_native=$4
shift 4
tmp=$out_bc.tmp

"$bin/llvm-link" "$@" -o "$tmp.linked.bc"
public=$("$bin/llvm-nm" --defined-only --format=just-symbols "$tmp.linked.bc" | grep '^lfm_' | sort | paste -sd, -)
# Vector code would be of the wrong shape for every target but one, and branches that a target wants as selects
# (or the reverse) are its own affair.
"$bin/opt" -S -passes='internalize,globaldce,default<O2>,strip-dead-prototypes' --discard-value-names -internalize-public-api-list="$public" \
    -vectorize-loops=false -vectorize-slp=false "$tmp.linked.bc" -o "$tmp.ll"

# Attributes that speak of x86 or of how clang was called would keep functions from being inlined elsewhere. All
# loops here end, also those of which LLVM cannot see it.
sed -E '
    /^attributes #/ s/"[^"]*"(="[^"]*")?//g
    /^attributes #/ s/uwtable(\([a-z]*\))?//g
    /^attributes #.*willreturn/! s/^(attributes #.*)memory\(/\1willreturn memory(/
    /^!llvm\.(module\.flags|ident|errno\.tbaa)/d
    /^; ModuleID/d
    s/^source_filename = .*/source_filename = "lf_math"/
    s/ dso_local / /
' "$tmp.ll" > "$tmp.plain.ll"

sed -E '
    /^target (triple|datalayout)/d
    s/^define (noundef )?/define linkonce_odr \1/
    s/^define linkonce_odr internal /define internal /
' "$tmp.plain.ll" > "$tmp.portable.ll"
"$bin/llvm-as" "$tmp.portable.ll" -o "$out_bc"

sed -E 's/^define (noundef |float |double |i16 |zeroext |void |range)/define hidden \1/' "$tmp.plain.ll" > "$out_native"

{
    echo '#include "math/bitcode.h"'
    echo 'const unsigned char lf_math_bitcode[] = {'
    od -An -v -tu1 "$out_bc" | sed -E 's/ +/,/g; s/^,//; s/$/,/'
    echo '};'
    echo 'const size_t lf_math_bitcode_size = sizeof lf_math_bitcode;'
} > "$out_c"
rm -f "$tmp".*
