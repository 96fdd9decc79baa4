// The division family: floordiv, truncdiv, ceildiv, mod and fmod of integers and floats. (div is arithmetic.)
#include "codegen/llvm/emit_family.h"

// ---- integers -------------------------------------------------------------------------------------------------------
// By zero: quotients are all ones, remainders x. MIN / -1: MIN, remainder 0. Both divisors are replaced by 1 before the
// division, which would trap or be undefined; MIN / 1 and its remainder are then right already.
static LLVMValueRef safe_divisor(lf_emit *e, lf_dtype d, LLVMValueRef a, LLVMValueRef b, LLVMValueRef v_by_zero) {
    LLVMValueRef v_unsafe = v_by_zero;
    if (lf_is_signed(d)) {
        LLVMValueRef v_least = l_icmp_const(e, LLVMIntEQ, a, 1ull << (l_bits(d) - 1));
        v_unsafe = l_or(e, v_unsafe, l_and(e, v_least, l_icmp_const(e, LLVMIntEQ, b, UINT64_MAX)));
    }
    return l_select(e, v_unsafe, l_int_like(e, b, 1), b);
}

static LLVMValueRef divide_ints(lf_emit *e, lf_opcode code, lf_dtype d, LLVMValueRef a, LLVMValueRef b) {
    LLVMBuilderRef u = e->builder;
    bool is_signed = lf_is_signed(d), remainder = code == LF_OP_MOD || code == LF_OP_FMOD;
    LLVMValueRef v_zero = l_int_like(e, b, 0), v_by_zero = l_icmp(e, LLVMIntEQ, b, v_zero);
    LLVMValueRef v_divisor = safe_divisor(e, d, a, b, v_by_zero);
    LLVMValueRef v_quotient =
        is_signed ? LLVMBuildSDiv(u, a, v_divisor, "quotient") : LLVMBuildUDiv(u, a, v_divisor, "quotient");
    LLVMValueRef v_rest = LLVMBuildSub(u, a, LLVMBuildMul(u, v_quotient, v_divisor, "back"), "rest");
    LLVMValueRef v_inexact = l_icmp(e, LLVMIntNE, v_rest, v_zero);
    // The truncated quotient of an inexact division lies above the true one just when the signs differ.
    LLVMValueRef v_differ = is_signed ? l_icmp(e, LLVMIntSLT, l_xor(e, v_rest, v_divisor), v_zero) : l_false(e);
    LLVMValueRef v_one = l_int_like(e, b, 1), r = remainder ? v_rest : v_quotient;
    if (code == LF_OP_FLOORDIV && is_signed)
        r = l_select(e, l_and(e, v_inexact, v_differ), LLVMBuildSub(u, r, v_one, "down"), r);
    if (code == LF_OP_CEILDIV) r = l_select(e, l_and(e, v_inexact, l_not(e, v_differ)), LLVMBuildAdd(u, r, v_one, "up"), r);
    if (code == LF_OP_MOD && is_signed)
        r = l_select(e, l_and(e, v_inexact, v_differ), LLVMBuildAdd(u, r, v_divisor, "shifted"), r);
    return l_select(e, v_by_zero, remainder ? a : l_int_like(e, b, UINT64_MAX), r);
}

// ---- floats ---------------------------------------------------------------------------------------------------------
// Never LLVM's frem: NVPTX lowers it to a - trunc(a/b)·b, x86 to a call.
static LLVMValueRef float_remainder(lf_emit *e, lf_opcode code, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef v_rest = l_math2(e, "fmod", a, b);
    if (code == LF_OP_FMOD) return v_rest;
    LLVMValueRef v_zero = l_number_like(a, 0);
    LLVMValueRef v_differ = l_xor(e, l_fcmp(e, LLVMRealOLT, v_rest, v_zero), l_fcmp(e, LLVMRealOLT, b, v_zero));
    LLVMValueRef v_mod = l_select(e, v_differ, l_fadd(e, v_rest, b), v_rest);
    return l_select(e, l_fcmp(e, LLVMRealOEQ, v_rest, v_zero), l_intrinsic2(e, "llvm.copysign", v_zero, b), v_mod);
}

static LLVMValueRef float_quotient(lf_emit *e, lf_opcode code, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef v_zero = l_number_like(a, 0), v_one = l_number_like(a, 1);
    LLVMValueRef v_rest = l_math2(e, "fmod", a, b);
    LLVMValueRef q = l_fdiv(e, l_fsub(e, a, v_rest), b);
    LLVMValueRef v_inexact = l_fcmp(e, LLVMRealUNE, v_rest, v_zero);
    LLVMValueRef v_differ = l_xor(e, l_fcmp(e, LLVMRealOLT, v_rest, v_zero), l_fcmp(e, LLVMRealOLT, b, v_zero));
    if (code == LF_OP_FLOORDIV) q = l_select(e, l_and(e, v_inexact, v_differ), l_fsub(e, q, v_one), q);
    if (code == LF_OP_CEILDIV) q = l_select(e, l_and(e, v_inexact, l_not(e, v_differ)), l_fadd(e, q, v_one), q);
    q = lf_emit_float_rounding(e, LF_OP_ROUND, q);
    // A zero takes the quotient's sign.
    LLVMValueRef v_sign = l_bits_float(e, l_xor(e, l_float_bits(e, a), l_float_bits(e, b)));
    LLVMValueRef v_signed_zero = l_intrinsic2(e, "llvm.copysign", v_zero, v_sign);
    q = l_select(e, l_fcmp(e, LLVMRealOEQ, q, v_zero), v_signed_zero, q);
    return l_select(e, l_fcmp(e, LLVMRealOEQ, b, v_zero), l_fdiv(e, a, b), q);
}

lf_register lf_emit_division_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (lf_is_integer(d)) return l_register(divide_ints(e, x->code, d, v[0].re, v[1].re));
    if (!lf_is_float(d)) return lf_emit_refuse(e, x);
    LLVMValueRef a = l_operand(e, x, v, 0), b = l_operand(e, x, v, 1);
    bool remainder = x->code == LF_OP_MOD || x->code == LF_OP_FMOD;
    return l_register(
        lf_emit_narrow(e, d, remainder ? float_remainder(e, x->code, a, b) : float_quotient(e, x->code, a, b)));
}
