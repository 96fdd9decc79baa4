// Families on the values and bits of floats: rounding to integers, minima and maxima, signs, predicates, neighbours.
// Does not belong here: arithmetic and functions (emit_math.c).
#include "codegen/llvm/emit_family.h"
#include <math.h>

// ---- rounding to integers -------------------------------------------------------------------------------------------
// |x| to the nearest integer, ties to even, by adding and taking away 2^23 (2^52), where the unit is 1. Larger ones are
// integers already. llvm.roundeven and llvm.floor would be calls of libm on x86 before SSE4.1.
static LLVMValueRef nearest_magnitude(lf_emit *e, LLVMValueRef v_size) {
    LLVMValueRef v_magic = l_number_like(v_size, l_is_double(v_size) ? 0x1p52 : 0x1p23);
    LLVMValueRef v_near = LLVMBuildFAdd(e->builder, v_size, v_magic, "shifted");
    v_near = LLVMBuildFSub(e->builder, v_near, v_magic, "nearest");
    return l_select(e, l_fcmp(e, LLVMRealOLT, v_size, v_magic), v_near, v_size);
}

static LLVMValueRef with_sign_of(lf_emit *e, LLVMValueRef v_size, LLVMValueRef v_sign) {
    return l_intrinsic2(e, "llvm.copysign", v_size, v_sign);
}

LLVMValueRef lf_emit_float_rounding(lf_emit *e, lf_opcode code, LLVMValueRef a) {
    if (e->target == LF_EMIT_NVPTX || e->has_half) { // F16C implies SSE4.1
        const char *name = code == LF_OP_CEIL    ? "llvm.ceil"
                           : code == LF_OP_FLOOR ? "llvm.floor"
                           : code == LF_OP_TRUNC ? "llvm.trunc"
                                                 : "llvm.roundeven";
        return l_intrinsic1(e, name, a);
    }
    LLVMValueRef v_size = l_fabs(e, a), v_near = nearest_magnitude(e, v_size);
    if (code == LF_OP_ROUND) return with_sign_of(e, v_near, a);
    LLVMValueRef v_one = l_number_like(a, 1);
    if (code == LF_OP_TRUNC) {
        LLVMValueRef v_less = LLVMBuildFSub(e->builder, v_near, v_one, "less");
        return with_sign_of(e, l_select(e, l_fcmp(e, LLVMRealOGT, v_near, v_size), v_less, v_near), a);
    }
    bool up = code == LF_OP_CEIL;
    LLVMValueRef v_whole = with_sign_of(e, v_near, a);
    LLVMValueRef v_next = LLVMBuildBinOp(e->builder, up ? LLVMFAdd : LLVMFSub, v_whole, v_one, "next");
    LLVMValueRef v_off = l_fcmp(e, up ? LLVMRealOLT : LLVMRealOGT, v_whole, a);
    return with_sign_of(e, l_select(e, v_off, v_next, v_whole), a);
}

lf_register lf_emit_rounding_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_complex(d)) return lf_emit_refuse(e, x);
    if (!lf_is_float(d)) return x->code == LF_OP_FRAC ? lf_emit_zero(e, d) : v[0];
    LLVMValueRef a = l_operand(e, x, v, 0);
    LLVMValueRef v_whole = lf_emit_float_rounding(e, x->code == LF_OP_FRAC ? LF_OP_TRUNC : x->code, a);
    return l_register(lf_emit_narrow_exact(e, d, x->code == LF_OP_FRAC ? l_fsub(e, a, v_whole) : v_whole));
}

// ---- minima and maxima ----------------------------------------------------------------------------------------------
// What LLVM 22 makes of minimumnum on x86, and of minimum beside an operand that it knows to be no NaN (a converted integer, a choice of
// constants), is wrong for some NaNs. So only numbers are left to it, and NaNs are asked for here: as many instructions.
LLVMValueRef lf_emit_x86_minmax(lf_emit *e, bool least, bool number, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef v_best = l_intrinsic2(e, least ? "llvm.minimum" : "llvm.maximum", a, b);
    if (LLVMIsACallInst(v_best)) LLVMSetFastMathFlags(v_best, LLVMFastMathNoNaNs);
    if (!number) return l_select(e, l_fcmp(e, LLVMRealUNO, a, b), l_number_like(a, (double)NAN), v_best);
    v_best = l_select(e, l_fcmp(e, LLVMRealUNO, b, b), a, v_best);
    return l_select(e, l_fcmp(e, LLVMRealUNO, a, a), b, v_best);
}

LLVMValueRef lf_emit_float_minmax(lf_emit *e, lf_opcode code, LLVMValueRef a, LLVMValueRef b) {
    bool least = code == LF_OP_MIN || code == LF_OP_FMIN, number = code == LF_OP_FMIN || code == LF_OP_FMAX;
    if (e->target != LF_EMIT_NVPTX) return lf_emit_x86_minmax(e, least, number, a, b);
    if (number) return l_intrinsic2(e, least ? "llvm.minimumnum" : "llvm.maximumnum", a, b);
    return l_intrinsic2(e, least ? "llvm.minimum" : "llvm.maximum", a, b);
}

lf_register lf_emit_minmax(lf_emit *e, lf_opcode code, lf_dtype d, lf_register a, lf_register b) {
    bool least = code == LF_OP_MIN || code == LF_OP_FMIN;
    if (d == LF_BOOL) return l_register(least ? l_and(e, a.re, b.re) : l_or(e, a.re, b.re));
    if (lf_is_float(d)) {
        LLVMValueRef v_best = lf_emit_float_minmax(e, code, lf_emit_widen(e, d, a.re), lf_emit_widen(e, d, b.re));
        return l_register(lf_emit_narrow_exact(e, d, v_best));
    }
    bool is_signed = lf_is_signed(d);
    LLVMIntPredicate p = least ? (is_signed ? LLVMIntSLT : LLVMIntULT) : (is_signed ? LLVMIntSGT : LLVMIntUGT);
    return l_register(l_select(e, l_icmp(e, p, a.re, b.re), a.re, b.re));
}

lf_register lf_emit_minmax_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    return lf_is_complex(x->in[0]) ? lf_emit_refuse(e, x) : lf_emit_minmax(e, x->code, x->in[0], v[0], v[1]);
}

lf_register lf_emit_clamp_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_complex(d)) return lf_emit_refuse(e, x);
    lf_register r = v[0];
    if (v[1].re) r = lf_emit_minmax(e, LF_OP_MAX, d, r, v[1]);
    return v[2].re ? lf_emit_minmax(e, LF_OP_MIN, d, r, v[2]) : r;
}

lf_register lf_emit_relu_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_complex(d)) return lf_emit_refuse(e, x);
    return d == LF_BOOL ? v[0] : lf_emit_minmax(e, LF_OP_MAX, d, v[0], lf_emit_zero(e, d));
}

lf_register lf_emit_threshold_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_complex(d)) return lf_emit_refuse(e, x);
    return l_register(l_select(e, lf_emit_compare(e, LF_OP_LE, d, v[0], d, v[1]), v[2].re, v[0].re));
}

// ---- signs ----------------------------------------------------------------------------------------------------------
static LLVMValueRef negate(lf_emit *e, lf_dtype d, LLVMValueRef v) {
    if (lf_is_half(d)) return l_xor(e, v, l_int(e, 16, 0x8000));
    return lf_is_integer(d) ? LLVMBuildNeg(e->builder, v, "minus") : LLVMBuildFNeg(e->builder, v, "minus");
}

lf_register lf_emit_neg_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0], part = lf_dtype_part(d);
    if (d == LF_BOOL) return lf_emit_refuse(e, x);
    return l_pair(negate(e, part, v[0].re), lf_is_complex(d) ? negate(e, part, v[0].im) : NULL);
}

lf_register lf_emit_abs_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (d == LF_BOOL) return lf_emit_refuse(e, x);
    if (lf_is_complex(d)) return l_register(l_math2(e, "hypot", v[0].re, v[0].im));
    if (lf_is_half(d)) return l_register(l_and(e, v[0].re, l_int(e, 16, 0x7fff)));
    if (lf_is_float(d)) return l_register(l_fabs(e, v[0].re));
    if (lf_is_unsigned(d)) return v[0];
    LLVMValueRef v_negative = l_icmp_const(e, LLVMIntSLT, v[0].re, 0);
    return l_register(l_select(e, v_negative, LLVMBuildNeg(e->builder, v[0].re, "minus"), v[0].re));
}

lf_register lf_emit_sign_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (d == LF_BOOL) return v[0];
    if (lf_is_complex(d)) return lf_emit_refuse(e, x);
    if (lf_is_float(d)) {
        LLVMValueRef a = l_operand(e, x, v, 0), v_zero = l_number(e, d, 0);
        LLVMValueRef v_sign = l_select(e, l_fcmp(e, LLVMRealOLT, a, v_zero), l_number(e, d, -1), v_zero);
        v_sign = l_select(e, l_fcmp(e, LLVMRealOGT, a, v_zero), l_number(e, d, 1), v_sign);
        return l_register(lf_emit_narrow_exact(e, d, l_select(e, l_is_nan(e, a), a, v_sign)));
    }
    LLVMValueRef v_zero = l_int_like(e, v[0].re, 0);
    LLVMValueRef v_sign = LLVMBuildZExt(e->builder, l_icmp(e, LLVMIntNE, v[0].re, v_zero), LLVMTypeOf(v[0].re), "sign");
    if (lf_is_unsigned(d)) return l_register(v_sign);
    return l_register(l_select(e, l_icmp(e, LLVMIntSLT, v[0].re, v_zero), l_int_like(e, v_zero, UINT64_MAX), v_sign));
}

// ---- bits -----------------------------------------------------------------------------------------------------------
typedef struct float_shape {
    unsigned bits;
    uint64_t sign, infinity, quiet;
} float_shape;

static float_shape shape_of(lf_dtype d) {
    static const float_shape shapes[LF_DTYPE_COUNT] = {
        [LF_F16] = {16, 0x8000, 0x7c00, 0x7e00},
        [LF_BF16] = {16, 0x8000, 0x7f80, 0x7fc0},
        [LF_F32] = {32, 0x80000000, 0x7f800000, 0x7fc00000},
        [LF_F64] = {64, 0x8000000000000000, 0x7ff0000000000000, 0x7ff8000000000000},
    };
    return shapes[d];
}

static LLVMValueRef raw_bits(lf_emit *e, lf_dtype d, LLVMValueRef v) { return lf_is_half(d) ? v : l_float_bits(e, v); }
static LLVMValueRef from_raw(lf_emit *e, lf_dtype d, LLVMValueRef v) { return lf_is_half(d) ? v : l_bits_float(e, v); }

static LLVMValueRef magnitude_bits(lf_emit *e, lf_dtype d, LLVMValueRef v_bits) {
    return l_and(e, v_bits, l_int_like(e, v_bits, shape_of(d).sign - 1));
}

static LLVMValueRef is_nan(lf_emit *e, lf_dtype d, LLVMValueRef v) {
    if (!lf_is_half(d)) return l_is_nan(e, v);
    return l_icmp_const(e, LLVMIntUGT, magnitude_bits(e, d, v), shape_of(d).infinity);
}

// One part against infinity; by its bits, which no optimisation may assume to be finite.
static LLVMValueRef float_predicate(lf_emit *e, lf_opcode code, lf_dtype d, LLVMValueRef v) {
    float_shape s = shape_of(d);
    if (code == LF_OP_ISNAN) return is_nan(e, d, v);
    LLVMValueRef v_bits = raw_bits(e, d, v), v_size = magnitude_bits(e, d, v_bits);
    switch (code) {
    case LF_OP_ISINF: return l_icmp_const(e, LLVMIntEQ, v_size, s.infinity);
    case LF_OP_ISFINITE: return l_icmp_const(e, LLVMIntULT, v_size, s.infinity);
    case LF_OP_ISPOSINF: return l_icmp_const(e, LLVMIntEQ, v_bits, s.infinity);
    case LF_OP_ISNEGINF: return l_icmp_const(e, LLVMIntEQ, v_bits, s.infinity | s.sign);
    default: return l_and(e, l_icmp_const(e, LLVMIntSLT, v_bits, 0), l_not(e, is_nan(e, d, v)));
    }
}

lf_register lf_emit_predicate_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_float(d)) return l_register(float_predicate(e, x->code, d, v[0].re));
    if (lf_is_complex(d)) {
        if (x->code != LF_OP_ISNAN && x->code != LF_OP_ISINF && x->code != LF_OP_ISFINITE) return lf_emit_refuse(e, x);
        LLVMValueRef v_re = float_predicate(e, x->code, lf_dtype_part(d), v[0].re);
        LLVMValueRef v_im = float_predicate(e, x->code, lf_dtype_part(d), v[0].im);
        return l_register(x->code == LF_OP_ISFINITE ? l_and(e, v_re, v_im) : l_or(e, v_re, v_im));
    }
    if (x->code == LF_OP_SIGNBIT && lf_is_signed(d)) return l_register(l_icmp_const(e, LLVMIntSLT, v[0].re, 0));
    return l_register(x->code == LF_OP_ISFINITE ? l_true(e) : l_false(e));
}

static LLVMValueRef copysign_bits(lf_emit *e, lf_dtype d, LLVMValueRef a, LLVMValueRef b, LLVMValueRef v_sign_of_nan) {
    LLVMValueRef v_sign = l_and(e, b, l_int_like(e, b, shape_of(d).sign));
    v_sign = l_select(e, v_sign_of_nan, l_int_like(e, b, 0), v_sign);
    return l_or(e, magnitude_bits(e, d, a), v_sign);
}

// The bits of a float are sign and magnitude: the neighbour away from zero is one more, toward zero one less.
static LLVMValueRef neighbour(lf_emit *e, const lf_elem *x, const lf_register *v, LLVMValueRef a_bits, LLVMValueRef b_bits) {
    lf_dtype d = x->in[0];
    float_shape s = shape_of(d);
    LLVMValueRef a = l_operand(e, x, v, 0), b = l_operand(e, x, v, 1);
    LLVMValueRef v_up = l_fcmp(e, LLVMRealOGT, b, a), v_positive = l_fcmp_const(e, LLVMRealOGT, a, 0);
    LLVMValueRef v_away = l_icmp(e, LLVMIntEQ, v_up, v_positive);
    LLVMValueRef v_step = l_select(e, v_away, l_int_like(e, a_bits, 1), l_int_like(e, a_bits, UINT64_MAX));
    LLVMValueRef v_next = LLVMBuildAdd(e->builder, a_bits, v_step, "next");
    LLVMValueRef v_least = l_or(e, l_and(e, b_bits, l_int_like(e, b_bits, s.sign)), l_int_like(e, b_bits, 1));
    v_next = l_select(e, l_fcmp_const(e, LLVMRealOEQ, a, 0), v_least, v_next);
    v_next = l_select(e, l_fcmp(e, LLVMRealOEQ, a, b), b_bits, v_next);
    return l_select(e, l_fcmp(e, LLVMRealUNO, a, b), l_int_like(e, a_bits, s.quiet), v_next);
}

lf_register lf_emit_float_bits_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (!lf_is_float(d)) return lf_emit_refuse(e, x);
    LLVMValueRef a = raw_bits(e, d, v[0].re), b = raw_bits(e, d, v[1].re);
    if (x->code == LF_OP_COPYSIGN) return l_register(from_raw(e, d, copysign_bits(e, d, a, b, is_nan(e, d, v[1].re))));
    return l_register(from_raw(e, d, neighbour(e, x, v, a, b)));
}
