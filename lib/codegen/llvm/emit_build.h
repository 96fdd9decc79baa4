// The vocabulary of the emitters: short names for LLVM's builder calls, and the conversions between an element's register
// and the type it is computed in. Private to the emit*.c files. Does not belong here: what any op means.
//
// In these files `v_` is an LLVM value, `b_` a block, `l_` a helper that adds at most a few instructions.
#ifndef LF_CODEGEN_LLVM_EMIT_BUILD_H
#define LF_CODEGEN_LLVM_EMIT_BUILD_H
#include "codegen/llvm/emit.h"

// ---- types and constants --------------------------------------------------------------------------------------------
static inline unsigned l_bits(lf_dtype d) { return d == LF_BOOL ? 1 : lf_dtype_bytes(d) * 8; }
// f32 or f64: what a float dtype, or the components of a complex one, are computed in.
static inline lf_dtype l_real(lf_dtype d) { return d == LF_F64 || d == LF_C128 ? LF_F64 : LF_F32; }
static inline LLVMTypeRef l_int_type(lf_emit *e, unsigned bits) { return LLVMIntTypeInContext(e->context, bits); }
static inline LLVMTypeRef l_real_type(lf_emit *e, lf_dtype d) {
    return l_real(d) == LF_F64 ? LLVMDoubleTypeInContext(e->context) : LLVMFloatTypeInContext(e->context);
}
// The low `bits` bits of `value`.
static inline LLVMValueRef l_int(lf_emit *e, unsigned bits, uint64_t value) {
    return LLVMConstInt(l_int_type(e, bits), bits >= 64 ? value : value & ((1ull << bits) - 1), 0);
}
static inline LLVMValueRef l_int_like(lf_emit *e, LLVMValueRef v, uint64_t value) {
    return l_int(e, LLVMGetIntTypeWidth(LLVMTypeOf(v)), value);
}
static inline LLVMValueRef l_true(lf_emit *e) { return l_int(e, 1, 1); }
static inline LLVMValueRef l_false(lf_emit *e) { return l_int(e, 1, 0); }
// `value` rounded to the type that d is computed in.
static inline LLVMValueRef l_number(lf_emit *e, lf_dtype d, double value) { return LLVMConstReal(l_real_type(e, d), value); }
static inline LLVMValueRef l_number_like(LLVMValueRef v, double value) { return LLVMConstReal(LLVMTypeOf(v), value); }
static inline bool l_is_double(LLVMValueRef v) { return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMDoubleTypeKind; }

// ---- instructions ---------------------------------------------------------------------------------------------------
static inline LLVMValueRef l_select(lf_emit *e, LLVMValueRef v_if, LLVMValueRef v_then, LLVMValueRef v_else) {
    return LLVMBuildSelect(e->builder, v_if, v_then, v_else, "pick");
}
static inline LLVMValueRef l_and(lf_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildAnd(e->builder, a, b, "and");
}
static inline LLVMValueRef l_or(lf_emit *e, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildOr(e->builder, a, b, "or"); }
static inline LLVMValueRef l_xor(lf_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildXor(e->builder, a, b, "xor");
}
static inline LLVMValueRef l_not(lf_emit *e, LLVMValueRef a) { return LLVMBuildNot(e->builder, a, "not"); }
static inline LLVMValueRef l_icmp(lf_emit *e, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildICmp(e->builder, p, a, b, "is");
}
static inline LLVMValueRef l_icmp_const(lf_emit *e, LLVMIntPredicate p, LLVMValueRef a, uint64_t b) {
    return l_icmp(e, p, a, l_int_like(e, a, b));
}
static inline LLVMValueRef l_fcmp(lf_emit *e, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildFCmp(e->builder, p, a, b, "is");
}
static inline LLVMValueRef l_fcmp_const(lf_emit *e, LLVMRealPredicate p, LLVMValueRef a, double b) {
    return l_fcmp(e, p, a, l_number_like(a, b));
}
static inline LLVMValueRef l_is_nan(lf_emit *e, LLVMValueRef v_float) { return l_fcmp(e, LLVMRealUNO, v_float, v_float); }
static inline LLVMValueRef l_float_bits(lf_emit *e, LLVMValueRef v_float) {
    return LLVMBuildBitCast(e->builder, v_float, l_int_type(e, l_is_double(v_float) ? 64 : 32), "bits");
}
static inline LLVMValueRef l_bits_float(lf_emit *e, LLVMValueRef v_bits) {
    bool wide = LLVMGetIntTypeWidth(LLVMTypeOf(v_bits)) == 64;
    return LLVMBuildBitCast(e->builder, v_bits, l_real_type(e, wide ? LF_F64 : LF_F32), "float");
}

// Adds what math=fast allows to an operation: contraction. Never nnan, ninf, nsz: NaN and Inf still behave.
LLVMValueRef lf_emit_relax(lf_emit *e, LLVMValueRef v_result);
// A float instruction of the program (FAdd, FSub, FMul, FDiv): relaxed in fast mode.
static inline LLVMValueRef l_float_op(lf_emit *e, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b) {
    return lf_emit_relax(e, LLVMBuildBinOp(e->builder, op, a, b, "step"));
}
static inline LLVMValueRef l_fadd(lf_emit *e, LLVMValueRef a, LLVMValueRef b) { return l_float_op(e, LLVMFAdd, a, b); }
static inline LLVMValueRef l_fsub(lf_emit *e, LLVMValueRef a, LLVMValueRef b) { return l_float_op(e, LLVMFSub, a, b); }
static inline LLVMValueRef l_fmul(lf_emit *e, LLVMValueRef a, LLVMValueRef b) { return l_float_op(e, LLVMFMul, a, b); }
static inline LLVMValueRef l_fdiv(lf_emit *e, LLVMValueRef a, LLVMValueRef b) { return l_float_op(e, LLVMFDiv, a, b); }

// An intrinsic overloaded on the type of its first argument ("llvm.fabs"), or on none when that is what it wants.
LLVMValueRef lf_emit_intrinsic(lf_emit *e, const char *name, LLVMTypeRef overload, const LLVMValueRef *args, unsigned n);
static inline LLVMValueRef l_intrinsic1(lf_emit *e, const char *name, LLVMValueRef a) {
    return lf_emit_intrinsic(e, name, LLVMTypeOf(a), &a, 1);
}
static inline LLVMValueRef l_intrinsic2(lf_emit *e, const char *name, LLVMValueRef a, LLVMValueRef b) {
    return lf_emit_intrinsic(e, name, LLVMTypeOf(a), (LLVMValueRef[]){a, b}, 2);
}
static inline LLVMValueRef l_fabs(lf_emit *e, LLVMValueRef a) { return l_intrinsic1(e, "llvm.fabs", a); }
static inline LLVMValueRef l_fma(lf_emit *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
    return lf_emit_intrinsic(e, "llvm.fma", LLVMTypeOf(a), (LLVMValueRef[]){a, b, c}, 3);
}

// A call of lib/math: the function `name` as a whole ("lfm_f64_to_f16"), pure. 16-bit arguments are passed zero-extended.
LLVMValueRef lf_emit_call(lf_emit *e, const char *name, LLVMTypeRef result, const LLVMValueRef *args, unsigned n);
// lfm_<name>_f32 or _f64, by the type of the first argument; the result has that type.
LLVMValueRef lf_emit_math(lf_emit *e, const char *name, const LLVMValueRef *args, unsigned n);
static inline LLVMValueRef l_math1(lf_emit *e, const char *name, LLVMValueRef a) { return lf_emit_math(e, name, &a, 1); }
static inline LLVMValueRef l_math2(lf_emit *e, const char *name, LLVMValueRef a, LLVMValueRef b) {
    return lf_emit_math(e, name, (LLVMValueRef[]){a, b}, 2);
}
// lfm_c<name>_f32 or _f64 of one or two complex numbers with components of dtype `part`.
lf_register lf_emit_complex_math(lf_emit *e, const char *name, lf_dtype part, const lf_register *args, unsigned n);

// Inline assembly of one instruction that only computes (device_intrinsics.def lists it).
LLVMValueRef lf_emit_assembly(lf_emit *e, const char *text, const char *constraints, LLVMTypeRef result,
                              const LLVMValueRef *args, unsigned n);

// Room on the stack of the function, however often the block at hand runs.
LLVMValueRef lf_emit_stack(lf_emit *e, LLVMTypeRef type);
LLVMBasicBlockRef lf_emit_block(lf_emit *e, const char *name);

// ---- registers and the type computed in (emit_cast.c) ---------------------------------------------------------------
// The float or double that a float dtype is computed in; exact.
LLVMValueRef lf_emit_widen(lf_emit *e, lf_dtype d, LLVMValueRef v_register);
// Back to the register, rounded once. In fast mode too: an element in memory is what its dtype says.
LLVMValueRef lf_emit_narrow(lf_emit *e, lf_dtype d, LLVMValueRef v_float);
// The same where the value is known to be one of d's (or NaN), which bf16 can use.
LLVMValueRef lf_emit_narrow_exact(lf_emit *e, lf_dtype d, LLVMValueRef v_float);
// A double to f16 or bf16 in one rounding.
LLVMValueRef lf_emit_double_to_half(lf_emit *e, lf_dtype d, LLVMValueRef v_double);
// The sum of a double and an error term that lies below its last bit, rounded to odd: any narrower rounding of it comes out
// as if made from the exact value.
LLVMValueRef lf_emit_odd_double(lf_emit *e, LLVMValueRef v_sum, LLVMValueRef v_error);
static inline lf_register l_register(LLVMValueRef re) { return (lf_register){re, NULL}; }
static inline lf_register l_pair(LLVMValueRef re, LLVMValueRef im) { return (lf_register){re, im}; }
#endif
