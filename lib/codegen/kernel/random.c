// Numbers that a kernel makes from an index: iota in float dtypes, and Philox uniform and normal.
#include "codegen/kernel/kernel.h"
#include "codegen/llvm/emit_build.h"

static LLVMValueRef as_double(lf_kernel *k, lf_dtype d, lf_register r) { return lf_emit_cast(k->e, d, LF_F64, r).re; }

// fma(a, b, c) of doubles that were narrower numbers, rounded once to d: a * b is exact, the sum is brought to odd by its error.
static lf_register fma_once(lf_kernel *k, lf_dtype d, LLVMValueRef v_a, LLVMValueRef v_b, LLVMValueRef v_c) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_sum = l_fma(k->e, v_a, v_b, v_c);
    if (d == LF_F64) return (lf_register){v_sum, NULL};
    // error of the fma: product and its own error, then two-sum of product and c
    LLVMValueRef v_product = LLVMBuildFMul(b, v_a, v_b, ""), v_low = l_fma(k->e, v_a, v_b, LLVMBuildFNeg(b, v_product, ""));
    LLVMValueRef v_rest = LLVMBuildFSub(b, v_sum, v_product, "");
    LLVMValueRef v_error = LLVMBuildFAdd(b, LLVMBuildFSub(b, v_product, LLVMBuildFSub(b, v_sum, v_rest, ""), ""), LLVMBuildFSub(b, v_c, v_rest, ""), "");
    v_error = LLVMBuildFAdd(b, v_error, v_low, "");
    LLVMValueRef v_odd = lf_emit_odd_double(k->e, v_sum, v_error);
    if (d == LF_F32) return (lf_register){LLVMBuildFPTrunc(b, v_odd, LLVMFloatTypeInContext(k->e->context), ""), NULL};
    return lf_emit_cast(k->e, LF_F64, d, (lf_register){v_odd, NULL});
}

lf_register lf_emit_iota(lf_kernel *k, const lf_stmt *s, lf_register i, lf_register start, lf_register step) {
    lf_dtype d = s->dtype;
    return fma_once(k, d, as_double(k, LF_I64, i), as_double(k, d, step), as_double(k, d, start));
}

typedef struct draw {
    LLVMValueRef v_seed;
    lf_dtype unit;             // dtype whose unit is drawn: F16, BF16, F32 or F64
} draw;

// u in [0, 1) of element e, as float or double.
static LLVMValueRef unit(lf_kernel *k, const draw *r, LLVMValueRef v_element) {
    LLVMBuilderRef b = k->e->builder;
    bool wide = r->unit == LF_F64;
    LLVMValueRef words[4], v_zero = lf_i64_const(k, 0);
    lf_emit_philox(k->e, r->v_seed, LLVMBuildLShr(b, v_element, lf_i64_const(k, wide ? 1 : 2), ""), v_zero, words);
    LLVMValueRef v_bit0 = LLVMBuildTrunc(b, v_element, LLVMInt1TypeInContext(k->e->context), "");
    if (wide) {
        LLVMValueRef v_high = LLVMBuildZExt(b, l_select(k->e, v_bit0, words[2], words[0]), k->l_i64, "");
        LLVMValueRef v_low = LLVMBuildZExt(b, l_select(k->e, v_bit0, words[3], words[1]), k->l_i64, "");
        LLVMValueRef v_both = LLVMBuildOr(b, LLVMBuildShl(b, v_high, lf_i64_const(k, 32), ""), v_low, "");
        LLVMValueRef v = LLVMBuildUIToFP(b, LLVMBuildLShr(b, v_both, lf_i64_const(k, 11), ""), LLVMDoubleTypeInContext(k->e->context), "");
        return LLVMBuildFMul(b, v, LLVMConstReal(LLVMTypeOf(v), 0x1p-53), "u");
    }
    LLVMValueRef v_bit1 = LLVMBuildTrunc(b, LLVMBuildLShr(b, v_element, lf_i64_const(k, 1), ""), LLVMInt1TypeInContext(k->e->context), "");
    LLVMValueRef v_word = l_select(k->e, v_bit1, l_select(k->e, v_bit0, words[3], words[2]), l_select(k->e, v_bit0, words[1], words[0]));
    unsigned drop = r->unit == LF_F16 ? 21 : r->unit == LF_BF16 ? 24 : 8;
    double scale = r->unit == LF_F16 ? 0x1p-11 : r->unit == LF_BF16 ? 0x1p-8 : 0x1p-24;
    LLVMValueRef v = LLVMBuildLShr(b, v_word, LLVMConstInt(k->l_i32, drop, false), "");
    v = LLVMBuildSIToFP(b, v, LLVMFloatTypeInContext(k->e->context), "");  // below 2^31
    return LLVMBuildFMul(b, v, LLVMConstReal(LLVMTypeOf(v), scale), "u");
}

static LLVMValueRef math(lf_kernel *k, lf_opcode code, lf_dtype d, LLVMValueRef v) {
    return lf_emit_simple(k->e, code, d, (lf_register){v, NULL}, (lf_register){NULL, NULL}).re;
}

// Box-Muller in f32 or f64: a pair of elements shares u1 and u2.
static LLVMValueRef normal(lf_kernel *k, const draw *r, LLVMValueRef v_element) {
    LLVMBuilderRef b = k->e->builder;
    lf_dtype d = r->unit;
    LLVMValueRef v_one = lf_i64_const(k, 1);
    LLVMValueRef v_u1 = unit(k, r, LLVMBuildAnd(b, v_element, lf_i64_const(k, -2), "")), v_u2 = unit(k, r, LLVMBuildOr(b, v_element, v_one, ""));
    LLVMTypeRef l_real = LLVMTypeOf(v_u1);
    v_u1 = LLVMBuildFAdd(b, v_u1, LLVMConstReal(l_real, d == LF_F64 ? 0x1p-53 : 0x1p-24), "");
    LLVMValueRef v_radius = math(k, LF_OP_SQRT, d, LLVMBuildFMul(b, LLVMConstReal(l_real, -2), math(k, LF_OP_LOG, d, v_u1), ""));
    LLVMValueRef v_angle = LLVMBuildFMul(b, LLVMConstReal(l_real, d == LF_F64 ? 6.28318530717958647692 : (double)6.28318530717958647692f), v_u2, "");
    LLVMValueRef v_odd = LLVMBuildTrunc(b, v_element, LLVMInt1TypeInContext(k->e->context), "");
    LLVMValueRef v_wave = l_select(k->e, v_odd, math(k, LF_OP_SIN, d, v_angle), math(k, LF_OP_COS, d, v_angle));
    return LLVMBuildFMul(b, v_radius, v_wave, "z");
}

// args: lo | mean, hi | std, seed, offset, row-major element number.
lf_register lf_emit_random(lf_kernel *k, const lf_stmt *s, const lf_register args[5]) {
    LLVMBuilderRef b = k->e->builder;
    lf_dtype d = s->dtype, compute = lf_dtype_compute(d);
    LLVMValueRef v_element = LLVMBuildAdd(b, args[4].re, args[3].re, "element");
    draw r = {args[2].re, s->code == LF_OP_UNIFORM ? d : compute};
    LLVMValueRef v_a = lf_emit_cast(k->e, d, compute, args[0]).re, v_b = lf_emit_cast(k->e, d, compute, args[1]).re;
    if (s->code == LF_OP_NORMAL) {
        LLVMValueRef v = LLVMBuildFAdd(b, v_a, LLVMBuildFMul(b, v_b, normal(k, &r, v_element), ""), "");
        return lf_emit_cast(k->e, compute, d, (lf_register){v, NULL});
    }
    LLVMValueRef v_width = LLVMBuildFSub(b, v_b, v_a, "");
    if (!lf_is_half(d)) return (lf_register){l_fma(k->e, unit(k, &r, v_element), v_width, v_a), NULL};
    lf_register u = {unit(k, &r, v_element), NULL}, width = {v_width, NULL}, low = {v_a, NULL};
    return fma_once(k, d, as_double(k, LF_F32, u), as_double(k, LF_F32, width), as_double(k, LF_F32, low));
}
