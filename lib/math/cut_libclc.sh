#!/bin/sh
# cut_libclc.sh LLVM_BIN_DIR LIBCLC_BC LIBCLC_H OUT_LL
#
# Takes out of libclc's generic bitcode the functions that libclc.h names, and makes the text exact and portable:
# fused operations are fused everywhere, divisions lose the licence to be approximate, and a conversion out of range
# saturates instead of being poison.
set -eu
bin=$1 libclc=$2 header=$3 out=$4

functions=$(sed -nE 's/^CLC1\([a-z0-9]+, "(.*)"\)/--func=_Z\1d --func=_Z\1f/p
                     s/^CLC2\([a-z0-9]+, "(.*)"\)/--func=_Z\1dd --func=_Z\1ff/p' "$header")
# The tables are not found by following calls; what stays unused is dropped after linking.
# shellcheck disable=SC2086
"$bin/llvm-extract" --recursive $functions --rglob='.*_TBL.*' --rglob='TWO_TO_JBY64.*' "$libclc" -S -o "$out.cut"

# One declaration of llvm.fma may already stand there, and none of the saturating conversions do.
sed -E '
    s/llvm\.fmuladd\./llvm.fma./g
    s/, !fpmath ![0-9]+//
    s/(fadd|fsub|fmul|fdiv|fneg|fcmp|select|call|phi) ((nnan|ninf|nsz|contract|arcp|afn|reassoc|fast) )+/\1 /
    s/ addrspace\(4\)//g
    s/^target triple = .*/target triple = "x86_64-pc-linux-gnu"/
    /^target datalayout/d
    s/^(attributes #[0-9]+ = ).*/\1{ nounwind }/
    /^!(llvm\.(module\.flags|ident|errno\.tbaa)|opencl)/d
    s/= fptosi float (%?[^ ]+) to i(32|64)/= call i\2 @llvm.fptosi.sat.i\2.f32(float \1)/
    s/= fptosi double (%?[^ ]+) to i(32|64)/= call i\2 @llvm.fptosi.sat.i\2.f64(double \1)/
    s/= fptoui float (%?[^ ]+) to i(32|64)/= call i\2 @llvm.fptoui.sat.i\2.f32(float \1)/
    s/= fptoui double (%?[^ ]+) to i(32|64)/= call i\2 @llvm.fptoui.sat.i\2.f64(double \1)/
' "$out.cut" | awk '
    /^declare .*@llvm\.fma\./ { if (seen[$0]++) next; name = $0; sub(/.*@/, "", name); sub(/\(.*/, "", name); if (seen[name]++) next }
    { print }
    END {
        for (s = 0; s < 2; s++) for (w = 32; w <= 64; w += 32) for (f = 32; f <= 64; f += 32)
            printf "declare i%d @llvm.fpto%s.sat.i%d.f%d(%s)\n", w, s ? "si" : "ui", w, f, f == 32 ? "float" : "double"
    }' > "$out"
rm -f "$out.cut"
if grep -nE '= fpto[su]i |fmuladd|fpmath|addrspace| (contract|arcp|afn) ' "$out" >&2; then
    echo "cut_libclc.sh: the lines above should have been rewritten" >&2
    exit 1
fi
