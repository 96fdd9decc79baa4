// Families that compute: arithmetic, roots, functions, activations, and the ops made of several steps. Every step is rounded
// in the type computed in (f32 for the halves), the result once more to its dtype, exactly as the formulas of the language
// read.
#include "codegen/llvm/emit_family.h"
#include <string.h>

// ---- arithmetic -----------------------------------------------------------------------------------------------------
static LLVMValueRef int_arith(lf_emit *e, lf_opcode code, LLVMValueRef a, LLVMValueRef b) {
    if (code == LF_OP_ADD) return LLVMBuildAdd(e->builder, a, b, "sum");
    return code == LF_OP_SUB ? LLVMBuildSub(e->builder, a, b, "difference") : LLVMBuildMul(e->builder, a, b, "product");
}

static LLVMValueRef float_arith(lf_emit *e, lf_opcode code, LLVMValueRef a, LLVMValueRef b) {
    LLVMOpcode op = code == LF_OP_ADD ? LLVMFAdd : code == LF_OP_SUB ? LLVMFSub : code == LF_OP_MUL ? LLVMFMul : LLVMFDiv;
    return l_float_op(e, op, a, b);
}

lf_register lf_emit_complex_arith(lf_emit *e, lf_opcode code, lf_dtype part, lf_register a, lf_register b) {
    if (code == LF_OP_DIV) return lf_emit_complex_math(e, "div", part, (lf_register[]){a, b}, 2);
    if (code != LF_OP_MUL) return l_pair(float_arith(e, code, a.re, b.re), float_arith(e, code, a.im, b.im));
    LLVMValueRef v_re = l_fsub(e, l_fmul(e, a.re, b.re), l_fmul(e, a.im, b.im));
    return l_pair(v_re, l_fadd(e, l_fmul(e, a.re, b.im), l_fmul(e, a.im, b.re)));
}

lf_register lf_emit_arith_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_complex(d)) return lf_emit_complex_arith(e, x->code, lf_dtype_part(d), v[0], v[1]);
    if (lf_is_float(d))
        return l_register(lf_emit_narrow(e, d, float_arith(e, x->code, l_operand(e, x, v, 0), l_operand(e, x, v, 1))));
    if (x->code == LF_OP_DIV || (d == LF_BOOL && x->code == LF_OP_SUB)) return lf_emit_refuse(e, x);
    if (d == LF_BOOL) return l_register(x->code == LF_OP_ADD ? l_or(e, v[0].re, v[1].re) : l_and(e, v[0].re, v[1].re));
    return l_register(int_arith(e, x->code, v[0].re, v[1].re));
}

// ---- fma ------------------------------------------------------------------------------------------------------------
// Halves: the product of two is exact in a double, the sum is brought to odd by its error (Knuth's two-sum, exact), and the
// one rounding to the half then is that of the exact value. No relaxed steps: the error is the point.
static LLVMValueRef half_fma(lf_emit *e, lf_dtype d, const LLVMValueRef v[3]) {
    LLVMBuilderRef b = e->builder;
    LLVMTypeRef f64 = l_real_type(e, LF_F64);
    LLVMValueRef w[3];
    for (unsigned i = 0; i < 3; i++) w[i] = LLVMBuildFPExt(b, v[i], f64, "wide");
    LLVMValueRef p = LLVMBuildFMul(b, w[0], w[1], "product"), c = w[2], s = LLVMBuildFAdd(b, p, c, "sum");
    LLVMValueRef v_of_c = LLVMBuildFSub(b, s, p, "of.c");
    LLVMValueRef v_off_p = LLVMBuildFSub(b, p, LLVMBuildFSub(b, s, v_of_c, "of.p"), "off.p");
    LLVMValueRef v_error = LLVMBuildFAdd(b, v_off_p, LLVMBuildFSub(b, c, v_of_c, "off.c"), "error");
    return lf_emit_double_to_half(e, d, lf_emit_odd_double(e, s, v_error));
}

lf_register lf_emit_fma_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_integer(d)) return l_register(int_arith(e, LF_OP_ADD, int_arith(e, LF_OP_MUL, v[0].re, v[1].re), v[2].re));
    if (!lf_is_float(d)) return lf_emit_refuse(e, x);
    LLVMValueRef w[3];
    for (unsigned i = 0; i < 3; i++) w[i] = l_operand(e, x, v, i);
    if (lf_is_half(d) && !e->fast) return l_register(half_fma(e, d, w));
    return l_register(lf_emit_narrow(e, d, l_fma(e, w[0], w[1], w[2])));
}

// ---- functions ------------------------------------------------------------------------------------------------------
// 2^x by the device's instruction: 2 ulp, subnormal results kept. Not llvm.exp2, which LLVM turns into ldexp where x was an integer.
static LLVMValueRef fast_exp2(lf_emit *e, LLVMValueRef a) { return l_intrinsic1(e, "llvm.nvvm.ex2.approx", a); }

// e^x = 2^t · (1 + r·ln 2), t = x·log2(e) rounded and r what the rounding lost. x is limited first, where the result is 0 or
// infinite anyway, so that r stays finite; NaN passes through.
static LLVMValueRef fast_exp(lf_emit *e, LLVMValueRef a, bool never_above_zero) {
    LLVMValueRef x = lf_emit_float_minmax(e, LF_OP_MAX, a, l_number_like(a, -105));
    if (!never_above_zero) x = lf_emit_float_minmax(e, LF_OP_MIN, x, l_number_like(a, 89));
    LLVMValueRef v_high = l_number_like(a, 0x1.715476p+0), v_low = l_number_like(a, 0x1.4ae0cp-26);
    LLVMValueRef t = LLVMBuildFMul(e->builder, x, v_high, "t");
    LLVMValueRef r = l_fma(e, x, v_low, l_fma(e, x, v_high, LLVMBuildFNeg(e->builder, t, "minus")));
    LLVMValueRef v_mend = l_fma(e, r, l_number_like(a, 0x1.62e43p-1), l_number_like(a, 1));
    return LLVMBuildFMul(e->builder, fast_exp2(e, t), v_mend, "exp");
}

// 1/(1 + p) of (1 + p)/2^26: so p may be 2^153, and what is flushed on the way is lost in the result anyway.
static LLVMValueRef fast_logistic(lf_emit *e, LLVMValueRef v_below) {
    LLVMValueRef v = l_intrinsic1(e, "llvm.nvvm.rcp.approx.ftz.f", v_below);
    return LLVMBuildFMul(e->builder, v, l_number_like(v, 0x1p-26), "sigmoid");
}
static LLVMValueRef flushing_exp2(lf_emit *e, LLVMValueRef t) { return l_intrinsic1(e, "llvm.nvvm.ex2.approx.ftz", t); }

// 1/(1 + e^-x) for a half's digits: p/2^26 = 2^(-x·log2 e - 26).
static LLVMValueRef fast_sigmoid_half(lf_emit *e, LLVMValueRef x) {
    LLVMValueRef t = l_fma(e, x, l_number_like(x, -0x1.715476p+0), l_number_like(x, -26)),
                 v_unit = l_number_like(x, 0x1p-26);
    LLVMValueRef v_below = LLVMBuildFAdd(e->builder, flushing_exp2(e, t), v_unit, "below");
    return fast_logistic(e, v_below);
}

// x·sigmoid(2·sqrt(2/pi)·(x + 0.044715·x^3)), x·(…) with log2 e and the sign in the polynomial. Halves need the exponent's offset for
// results down to the least; for f32 a result below 2^-128 is 0.
static LLVMValueRef fast_gelu_tanh(lf_emit *e, bool half, LLVMValueRef x) {
    LLVMBuilderRef b = e->builder;
    LLVMValueRef v_unit = l_number_like(x, 0x1p-26), v_square = LLVMBuildFMul(b, x, x, "square"), v_below;
    LLVMValueRef w = l_fma(e, v_square, l_number_like(x, -0x1.a5a7d0p-4), l_number_like(x, -0x1.26aec2p+1));
    if (half)
        v_below = LLVMBuildFAdd(b, flushing_exp2(e, l_fma(e, x, w, l_number_like(x, -26))), v_unit, "below");
    else
        v_below = l_fma(e, flushing_exp2(e, LLVMBuildFMul(b, x, w, "t")), v_unit, v_unit);
    return LLVMBuildFMul(b, fast_logistic(e, v_below), x, "gelu");
}

// What fast mode does otherwise on a GPU, or NULL. Half results have so few bits that one instruction is enough.
static LLVMValueRef fast_function(lf_emit *e, lf_opcode code, bool half, LLVMValueRef a) {
    double log_scale = code == LF_OP_LOG ? 0x1.62e43p-1 : code == LF_OP_LOG10 ? 0x1.344136p-2 : 1;
    switch (code) {
    case LF_OP_EXP2: return fast_exp2(e, a);
    case LF_OP_EXP:
        return half ? fast_exp2(e, LLVMBuildFMul(e->builder, a, l_number_like(a, 0x1.715476p+0), "t"))
                    : fast_exp(e, a, false);
    case LF_OP_RSQRT: return l_intrinsic1(e, "llvm.nvvm.rsqrt.approx.f", a);
    case LF_OP_SIGMOID: return half ? fast_sigmoid_half(e, a) : NULL; // in f32 their errors might add up to more than 4 ulp
    case LF_OP_LOG:
    case LF_OP_LOG2:
    case LF_OP_LOG10:
        if (!half) return NULL;
        return LLVMBuildFMul(e->builder, l_intrinsic1(e, "llvm.nvvm.lg2.approx.f", a), l_number_like(a, log_scale), "log");
    default: return NULL;
    }
}

static bool approximates(const lf_emit *e, LLVMValueRef a) {
    return e->fast && e->target == LF_EMIT_NVPTX && !l_is_double(a);
}

static LLVMValueRef function(lf_emit *e, lf_opcode code, bool half, LLVMValueRef a) {
    LLVMValueRef v_fast = approximates(e, a) ? fast_function(e, code, half, a) : NULL;
    return v_fast ? v_fast : l_math1(e, lf_op_info_of(code)->name, a);
}

// The cheaper form for halves of the op, or NULL. In fast mode the device's approximations are cheaper still.
static LLVMValueRef half_form(lf_emit *e, const lf_elem *x, LLVMValueRef a) {
    static const struct {
        const char *name, *symbol;
    } forms[] = {
#define LFM_HALF(name_) {#name_, "lfm_" #name_ "_half"},
#include "math/functions.def"
    };
    if (!lf_is_half(x->in[0])) return NULL;
    bool erf_form = x->code == LF_OP_GELU && !x->flag;
    if (approximates(e, a) && x->code != LF_OP_TANH && !erf_form) return NULL;
    const char *name = x->code == LF_OP_GELU && x->flag ? "gelu_tanh" : lf_op_info_of(x->code)->name;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i].name, name)) return lf_emit_call(e, forms[i].symbol, LLVMTypeOf(a), &a, 1);
    return NULL;
}

// Every axis is read at its own place or at 0.
static bool repeats_only(const lf_op *op) {
    if (op->code != LF_OP_EXPAND || op->view.reshape) return false;
    uint8_t rank = op->results[0].type.rank;
    if (op->operands[0]->type.rank != rank) return false;
    for (uint8_t a = 0; a < rank; a++)
        if (op->view.map[a] != a || op->view.start[a] || op->view.step[a]) return false;
    return true;
}

bool lf_emit_never_above_zero(const lf_value *value) {
    const lf_op *sub = value->def;
    if (sub->code != LF_OP_SUB || !lf_is_float(value->type.dtype)) return false;
    const lf_op *most = sub->operands[1]->def;
    while (repeats_only(most)) most = most->operands[0]->def;
    return most->code == LF_OP_RMAX && most->keepdim && most->operands[0] == sub->operands[0];
}

// An exponential that a composite of halves takes of what is at most 0, as softmax does: its terms count for as much as a half can tell.
static bool is_half_term(const lf_value *value) {
    const lf_op *sub = value->def;
    if (!sub->implicit || !lf_emit_never_above_zero(value)) return false;
    const lf_op *cast = sub->operands[0]->def;
    return cast->code == LF_OP_CAST && lf_is_half(cast->operands[0]->type.dtype);
}

LLVMValueRef lf_emit_exp_approximately(lf_emit *e, LLVMValueRef a) {
    return l_intrinsic1(e, "llvm.nvvm.ex2.approx.ftz", LLVMBuildFMul(e->builder, a, l_number_like(a, 0x1.715476p+0), "t"));
}

lf_register lf_emit_math_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_complex(d)) return lf_emit_complex_math(e, lf_op_info_of(x->code)->name, lf_dtype_part(d), v, x->n);
    if (!lf_is_float(d)) return lf_emit_refuse(e, x);
    LLVMValueRef a = l_operand(e, x, v, 0);
    bool binary = x->code == LF_OP_ATAN2 || x->code == LF_OP_HYPOT;
    LLVMValueRef v_half = half_form(e, x, a);
    if (v_half) return l_register(lf_emit_narrow(e, d, v_half));
    if (x->code == LF_OP_EXP && d == LF_F32 && x->values && approximates(e, a) && is_half_term(x->values[0]))
        return l_register(lf_emit_exp_approximately(e, a));
    if (x->code == LF_OP_EXP && d == LF_F32 && x->values && lf_emit_never_above_zero(x->values[0]))
        return l_register(approximates(e, a) ? fast_exp(e, a, true) : l_math1(e, "exp_low", a));
    LLVMValueRef r =
        binary ? l_math2(e, lf_op_info_of(x->code)->name, a, l_operand(e, x, v, 1)) : function(e, x->code, lf_is_half(d), a);
    return l_register(lf_emit_narrow(e, d, r));
}

lf_register lf_emit_sqrt_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_complex(d)) return lf_emit_complex_math(e, "sqrt", lf_dtype_part(d), v, 1);
    if (!lf_is_float(d)) return lf_emit_refuse(e, x);
    LLVMValueRef v_root = l_intrinsic1(e, "llvm.sqrt", l_operand(e, x, v, 0));
    if (e->fast && e->target == LF_EMIT_NVPTX && d != LF_F64 && LLVMIsAInstruction(v_root))
        LLVMSetFastMathFlags(v_root, LLVMFastMathApproxFunc);
    return l_register(lf_emit_narrow(e, d, v_root));
}

lf_register lf_emit_reciprocal_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_complex(d)) return lf_emit_complex_math(e, "reciprocal", lf_dtype_part(d), v, 1);
    if (!lf_is_float(d)) return lf_emit_refuse(e, x);
    return l_register(lf_emit_narrow(e, d, l_fdiv(e, l_number(e, d, 1), l_operand(e, x, v, 0))));
}

// ---- activations ----------------------------------------------------------------------------------------------------
static LLVMValueRef gelu(lf_emit *e, bool half, bool tanh_form, LLVMValueRef x) {
    if (!tanh_form) {
        LLVMValueRef v_minus = LLVMBuildFNeg(e->builder, x, "minus");
        LLVMValueRef v_tail = function(e, LF_OP_ERFC, half, l_fmul(e, v_minus, l_number_like(x, 0.70710678118654752440)));
        return l_fmul(e, l_fmul(e, l_number_like(x, 0.5), x), v_tail);
    }
    if (approximates(e, x)) return fast_gelu_tanh(e, half, x);
    LLVMValueRef v_cube = l_fmul(e, l_number_like(x, 0.044715), l_fmul(e, x, x));
    LLVMValueRef u = l_fma(e, v_cube, x, x);
    // 2·sqrt(2/pi)
    return l_fmul(e, x, function(e, LF_OP_SIGMOID, half, l_fmul(e, l_number_like(x, 1.59576912160573071176), u)));
}

lf_register lf_emit_activation_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (!lf_is_float(d)) return lf_emit_refuse(e, x);
    bool half = lf_is_half(d);
    LLVMValueRef a = l_operand(e, x, v, 0), r = half_form(e, x, a);
    if (r) return l_register(lf_emit_narrow(e, d, r));
    switch (x->code) {
    case LF_OP_SILU: r = l_fmul(e, a, function(e, LF_OP_SIGMOID, half, a)); break;
    case LF_OP_GELU: r = gelu(e, half, x->flag, a); break;
    case LF_OP_SOFTPLUS: {
        LLVMValueRef v_soft = function(e, LF_OP_LOG1P, half, function(e, LF_OP_EXP, half, a));
        r = l_select(e, l_fcmp_const(e, LLVMRealOGT, a, 20), a, v_soft);
        break;
    }
    default: {
        LLVMValueRef v_below = x->code == LF_OP_ELU ? function(e, LF_OP_EXPM1, half, a) : a;
        v_below = l_fmul(e, l_number_like(a, x->number), v_below);
        r = l_select(e, l_fcmp_const(e, LLVMRealOGT, a, 0), a, v_below);
    }
    }
    return l_register(lf_emit_narrow(e, d, r));
}

// ---- ldexp ----------------------------------------------------------------------------------------------------------
// A float exponent n is split into its nearest integer k and the rest; 2^rest is one function value (1 when n is an
// integer).
static LLVMValueRef ldexp_float(lf_emit *e, const lf_elem *x, LLVMValueRef v_double, LLVMValueRef v_n) {
    LLVMValueRef v_whole = lf_emit_float_rounding(e, LF_OP_ROUND, v_n);
    LLVMValueRef v_rest = LLVMBuildFSub(e->builder, v_n, v_whole, "rest");
    LLVMValueRef v_k = lf_emit_cast(e, LF_F64, LF_I64, l_register(v_whole)).re;
    LLVMValueRef v_part = LLVMBuildFMul(e->builder, v_double, l_math1(e, "exp2", v_rest), "part");
    LLVMValueRef v_scaled = lf_emit_call(e, "lfm_ldexp_f64", LLVMTypeOf(v_part), (LLVMValueRef[]){v_part, v_k}, 2);
    // 2^±inf is infinite or 0; infinity less infinity would not be.
    LLVMValueRef v_infinite = l_fcmp_const(e, LLVMRealOEQ, l_fabs(e, v_n), __builtin_inf());
    LLVMValueRef v_limit = l_select(e, l_fcmp_const(e, LLVMRealOGT, v_n, 0), v_n, l_number_like(v_n, 0));
    LLVMValueRef v_at_limit = LLVMBuildFMul(e->builder, v_double, v_limit, "at.limit");
    return lf_emit_cast(e, LF_F64, x->out, l_register(l_select(e, v_infinite, v_at_limit, v_scaled))).re;
}

lf_register lf_emit_ldexp_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0], dn = x->in[1];
    if (!lf_is_float(d) || lf_is_complex(dn)) return lf_emit_refuse(e, x);
    LLVMValueRef a = l_operand(e, x, v, 0);
    if (lf_is_float(dn)) {
        LLVMValueRef v_double = lf_emit_cast(e, d, LF_F64, v[0]).re;
        return l_register(ldexp_float(e, x, v_double, lf_emit_cast(e, dn, LF_F64, v[1]).re));
    }
    LLVMValueRef v_n = lf_emit_cast(e, dn, LF_I64, v[1]).re;
    if (dn == LF_U64) { // beyond i64 it makes no difference how far
        LLVMValueRef v_wrapped = l_icmp_const(e, LLVMIntSLT, v_n, 0);
        v_n = l_select(e, v_wrapped, l_int(e, 64, INT64_MAX), v_n);
    }
    // For a half the result in f32 is exact wherever it does not round to 0 or infinity.
    return l_register(lf_emit_narrow(e, d, lf_emit_math(e, "ldexp", (LLVMValueRef[]){a, v_n}, 2)));
}

// ---- lerp, addcmul --------------------------------------------------------------------------------------------------
static lf_register complex_lerp(lf_emit *e, lf_dtype d, lf_register a, lf_register b, lf_register w) {
    lf_dtype part = lf_dtype_part(d);
    lf_register one = l_pair(l_number(e, d, 1), l_number(e, d, 0));
    lf_register way = lf_emit_complex_arith(e, LF_OP_SUB, part, b, a);
    lf_register near = lf_emit_complex_arith(e, LF_OP_ADD, part, a, lf_emit_complex_arith(e, LF_OP_MUL, part, w, way));
    lf_register back = lf_emit_complex_arith(e, LF_OP_MUL, part, way, lf_emit_complex_arith(e, LF_OP_SUB, part, one, w));
    lf_register far = lf_emit_complex_arith(e, LF_OP_SUB, part, b, back);
    LLVMValueRef v_square = l_fadd(e, l_fmul(e, w.re, w.re), l_fmul(e, w.im, w.im));
    LLVMValueRef v_small = l_fcmp_const(e, LLVMRealOLT, v_square, 0.25);
    return l_pair(l_select(e, v_small, near.re, far.re), l_select(e, v_small, near.im, far.im));
}

lf_register lf_emit_lerp_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (d == LF_BOOL) return lf_emit_refuse(e, x);
    if (lf_is_complex(d)) return complex_lerp(e, d, v[0], v[1], v[2]);
    if (lf_is_integer(d)) {
        LLVMValueRef a = v[0].re, b = v[1].re, w = v[2].re, v_way = int_arith(e, LF_OP_SUB, b, a);
        LLVMValueRef v_near = int_arith(e, LF_OP_ADD, a, int_arith(e, LF_OP_MUL, w, v_way));
        LLVMValueRef v_rest = int_arith(e, LF_OP_SUB, l_int_like(e, w, 1), w);
        LLVMValueRef v_far = int_arith(e, LF_OP_SUB, b, int_arith(e, LF_OP_MUL, v_way, v_rest));
        return l_register(l_select(e, l_icmp_const(e, lf_is_signed(d) ? LLVMIntSLT : LLVMIntULT, w, 1), v_near, v_far));
    }
    LLVMValueRef a = l_operand(e, x, v, 0), b = l_operand(e, x, v, 1), w = l_operand(e, x, v, 2);
    LLVMValueRef v_way = l_fsub(e, b, a), v_near = l_fadd(e, a, l_fmul(e, w, v_way));
    LLVMValueRef v_far = l_fsub(e, b, l_fmul(e, v_way, l_fsub(e, l_number_like(w, 1), w)));
    return l_register(lf_emit_narrow(e, d, l_select(e, l_fcmp_const(e, LLVMRealOLT, w, 0.5), v_near, v_far)));
}

lf_register lf_emit_addcmul_op(lf_emit *e, const lf_elem *y, const lf_register *v) {
    lf_dtype d = y->in[0], part = lf_dtype_part(d);
    if (lf_is_complex(d)) {
        lf_register scaled = lf_emit_complex_arith(e, LF_OP_MUL, part, v[3], v[1]);
        return lf_emit_complex_arith(e, LF_OP_ADD, part, v[0], lf_emit_complex_arith(e, LF_OP_MUL, part, scaled, v[2]));
    }
    if (d == LF_BOOL) return l_register(l_or(e, v[0].re, l_and(e, l_and(e, v[3].re, v[1].re), v[2].re)));
    if (lf_is_integer(d)) {
        LLVMValueRef v_product = int_arith(e, LF_OP_MUL, int_arith(e, LF_OP_MUL, v[3].re, v[1].re), v[2].re);
        return l_register(int_arith(e, LF_OP_ADD, v[0].re, v_product));
    }
    LLVMValueRef x = l_operand(e, y, v, 0), a = l_operand(e, y, v, 1), b = l_operand(e, y, v, 2), s = l_operand(e, y, v, 3);
    return l_register(lf_emit_narrow(e, d, l_fadd(e, x, l_fmul(e, l_fmul(e, s, a), b))));
}

// ---- parts of complex numbers ---------------------------------------------------------------------------------------
static LLVMValueRef angle(lf_emit *e, const lf_elem *x, lf_register v) {
    if (lf_is_complex(x->in[0])) return l_math2(e, "atan2", v.im, v.re);
    LLVMValueRef a = lf_emit_widen(e, x->out, lf_emit_cast(e, x->in[0], x->out, v).re);
    LLVMValueRef v_angle =
        l_select(e, l_fcmp_const(e, LLVMRealOLT, a, 0), l_number_like(a, 3.14159265358979323846), l_number_like(a, 0));
    return lf_emit_narrow(e, x->out, l_select(e, l_is_nan(e, a), a, v_angle));
}

lf_register lf_emit_complex_part_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    bool is_complex = lf_is_complex(d);
    switch (x->code) {
    case LF_OP_REAL: return l_register(v[0].re);
    case LF_OP_IMAG: return is_complex ? l_register(v[0].im) : lf_emit_zero(e, d);
    case LF_OP_CONJ: return is_complex ? l_pair(v[0].re, LLVMBuildFNeg(e->builder, v[0].im, "minus")) : v[0];
    case LF_OP_ANGLE: return lf_is_float(x->out) ? l_register(angle(e, x, v[0])) : lf_emit_refuse(e, x);
    default: { // complex
        if (!lf_is_complex(x->out) || is_complex) return lf_emit_refuse(e, x);
        lf_dtype part = lf_dtype_part(x->out);
        return l_pair(lf_emit_cast(e, d, part, v[0]).re, lf_emit_cast(e, x->in[1], part, v[1]).re);
    }
    }
}
