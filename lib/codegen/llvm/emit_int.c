// Families on bools and integers: comparisons of all dtypes, selection, bits, shifts, gcd, and the integer half of pow.
// Nothing here traps or is undefined for any operand.
#include "analysis/bits.h"
#include "codegen/llvm/emit_family.h"

// ---- comparisons ----------------------------------------------------------------------------------------------------
// Ordered but for ne, so that a NaN is unequal to all and else compares false.
static LLVMRealPredicate float_predicate_of(lf_opcode code) {
    static const LLVMRealPredicate p[LF_OP_COUNT] = {[LF_OP_EQ] = LLVMRealOEQ, [LF_OP_NE] = LLVMRealUNE,
                                                     [LF_OP_LT] = LLVMRealOLT, [LF_OP_LE] = LLVMRealOLE,
                                                     [LF_OP_GT] = LLVMRealOGT, [LF_OP_GE] = LLVMRealOGE};
    return p[code];
}

static LLVMIntPredicate int_predicate_of(lf_opcode code, bool is_signed) {
    static const LLVMIntPredicate p[LF_OP_COUNT][2] = {
        [LF_OP_EQ] = {LLVMIntEQ, LLVMIntEQ},   [LF_OP_NE] = {LLVMIntNE, LLVMIntNE},   [LF_OP_LT] = {LLVMIntULT, LLVMIntSLT},
        [LF_OP_LE] = {LLVMIntULE, LLVMIntSLE}, [LF_OP_GT] = {LLVMIntUGT, LLVMIntSGT}, [LF_OP_GE] = {LLVMIntUGE, LLVMIntSGE}};
    return p[code][is_signed];
}

static LLVMValueRef extend(lf_emit *e, lf_dtype d, LLVMValueRef v, unsigned bits) {
    if (l_bits(d) == bits) return v;
    LLVMTypeRef type = l_int_type(e, bits);
    return lf_is_signed(d) ? LLVMBuildSExt(e->builder, v, type, "wide") : LLVMBuildZExt(e->builder, v, type, "wide");
}

// Integers and bools of any two dtypes by their true values.
static LLVMValueRef compare_ints(lf_emit *e, lf_opcode code, lf_dtype da, LLVMValueRef a, lf_dtype db, LLVMValueRef b) {
    bool sa = lf_is_signed(da), sb = lf_is_signed(db);
    if (da == db) return l_icmp(e, int_predicate_of(code, sa), a, b);
    // A signed operand beside an unsigned one needs a bit more than the unsigned has; 64 bits have room for all but u64.
    if (!((da == LF_U64 && sb) || (db == LF_U64 && sa))) {
        unsigned bits = l_bits(da) <= 16 && l_bits(db) <= 16 ? 32 : 64;
        return l_icmp(e, int_predicate_of(code, sa || sb), extend(e, da, a, bits), extend(e, db, b, bits));
    }
    LLVMValueRef v_signed = extend(e, sa ? da : db, sa ? a : b, 64);
    LLVMValueRef v_negative = l_icmp_const(e, LLVMIntSLT, v_signed, 0);
    LLVMValueRef v_else = l_icmp(e, int_predicate_of(code, false), sa ? v_signed : a, sa ? b : v_signed);
    bool less = code == LF_OP_LT || code == LF_OP_LE, greater = code == LF_OP_GT || code == LF_OP_GE;
    bool if_negative = code == LF_OP_NE || (sa ? less : greater);
    return if_negative ? l_or(e, v_negative, v_else) : l_and(e, l_not(e, v_negative), v_else);
}

// ---- random numbers below a threshold ------------------------------------------------------------------------------------
enum { UNIT_BITS = 24, UNIT_DROP = 8 };

// n of n·2^-24, where n is a word without its low byte: how kernels make uniform numbers.
static LLVMValueRef is_unit(LLVMValueRef v) {
    LLVMBool lost;
    if (!LLVMIsAInstruction(v) || LLVMGetInstructionOpcode(v) != LLVMFMul) return NULL;
    LLVMValueRef v_float = LLVMGetOperand(v, 0), v_scale = LLVMGetOperand(v, 1);
    if (!LLVMIsASIToFPInst(v_float) || !LLVMIsAConstantFP(v_scale) || LLVMConstRealGetDouble(v_scale, &lost) != 0x1p-24)
        return NULL;
    LLVMValueRef n = LLVMGetOperand(v_float, 0);
    bool shifted =
        LLVMIsAInstruction(n) && LLVMGetInstructionOpcode(n) == LLVMLShr && LLVMIsAConstantInt(LLVMGetOperand(n, 1));
    return shifted && LLVMConstIntGetZExtValue(LLVMGetOperand(n, 1)) >= UNIT_DROP ? n : NULL;
}

// Made of constants and of what is loaded once a function.
static bool is_invariant(LLVMValueRef v, unsigned depth) {
    if (LLVMIsConstant(v)) return true;
    if (!LLVMIsAInstruction(v) || !depth) return false;
    LLVMBasicBlockRef b_here = LLVMGetInstructionParent(v);
    if (LLVMIsALoadInst(v)) return b_here == LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(b_here));
    if (!LLVMIsATruncInst(v) && !LLVMIsABitCastInst(v) && !LLVMIsAFPTruncInst(v)) return false;
    return is_invariant(LLVMGetOperand(v, 0), depth - 1);
}

// n·2^-24 >= p and < p as comparisons of integers: with the least integer that is not below p·2^24. Saves the conversion, which a
// GPU makes at half its rate or less. NULL: this is something else.
static LLVMValueRef compare_unit(lf_emit *e, lf_opcode code, LLVMValueRef u, LLVMValueRef p) {
    LLVMValueRef n = is_unit(u);
    if (!n || (code != LF_OP_GE && code != LF_OP_LT) || !is_invariant(p, 3)) return NULL;
    LLVMValueRef v_limit = LLVMBuildFMul(e->builder, p, l_number_like(p, 0x1p24), "limit"),
                 v_many = l_int(e, 32, 1u << UNIT_BITS);
    v_limit = lf_emit_float_rounding(e, LF_OP_CEIL, v_limit);
    v_limit = lf_emit_cast(e, LF_F32, LF_U32, l_register(v_limit)).re; // below 0 it is 0, above 2^32 the greatest
    // With NaN both are false.
    v_limit = l_select(e, l_is_nan(e, p), code == LF_OP_GE ? v_many : l_int(e, 32, 0), v_limit);
    return l_icmp(e, code == LF_OP_GE ? LLVMIntUGE : LLVMIntULT, n, v_limit);
}

LLVMValueRef lf_emit_compare(lf_emit *e, lf_opcode code, lf_dtype da, lf_register a, lf_dtype db, lf_register b) {
    if (lf_is_complex(da)) {
        LLVMRealPredicate p = float_predicate_of(code);
        LLVMValueRef v_re = l_fcmp(e, p, a.re, b.re), v_im = l_fcmp(e, p, a.im, b.im);
        return code == LF_OP_EQ ? l_and(e, v_re, v_im) : l_or(e, v_re, v_im);
    }
    if (!lf_is_float(da)) return compare_ints(e, code, da, a.re, db, b.re);
    LLVMValueRef v_unit = da == LF_F32 && db == LF_F32 ? compare_unit(e, code, a.re, b.re) : NULL;
    return v_unit ? v_unit : l_fcmp(e, float_predicate_of(code), lf_emit_widen(e, da, a.re), lf_emit_widen(e, db, b.re));
}

lf_register lf_emit_compare_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    bool ordering = x->code != LF_OP_EQ && x->code != LF_OP_NE;
    bool alike = x->in[0] == x->in[1] || (x->in[0] < LF_F16 && x->in[1] < LF_F16);
    if (!alike || (ordering && lf_is_complex(x->in[0]))) return lf_emit_refuse(e, x);
    return l_register(lf_emit_compare(e, x->code, x->in[0], v[0], x->in[1], v[1]));
}

// ---- selection ------------------------------------------------------------------------------------------------------
// A NaN that a select hands on keeps its bits. Where one side is computed and the other comes from memory, the result counts
// as the latter, so the computed side's NaNs are made canonical here.
static lf_register selected(lf_emit *e, const lf_elem *x, const lf_register *v, unsigned i) {
    if (!x->values || lf_dtype_category(x->out) < LF_CATEGORY_FLOAT) return v[i];
    if (lf_keeps_bits(x->values[i]) || !lf_keeps_bits(x->values[3 - i])) return v[i];
    return lf_emit_canonical(e, x->out, v[i]);
}

lf_register lf_emit_select_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_register a = selected(e, x, v, 1), b = selected(e, x, v, 2);
    LLVMValueRef v_re = l_select(e, v[0].re, a.re, b.re);
    return l_pair(v_re, lf_is_complex(x->out) ? l_select(e, v[0].re, a.im, b.im) : NULL);
}

// ---- bits and truth -------------------------------------------------------------------------------------------------
lf_register lf_emit_bitwise_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    if (x->in[0] >= LF_F16) return lf_emit_refuse(e, x);
    switch (x->code) {
    case LF_OP_NOT: return l_register(l_not(e, v[0].re));
    case LF_OP_AND: return l_register(l_and(e, v[0].re, v[1].re));
    case LF_OP_OR: return l_register(l_or(e, v[0].re, v[1].re));
    default: return l_register(l_xor(e, v[0].re, v[1].re));
    }
}

lf_register lf_emit_logical_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    LLVMValueRef a = lf_emit_cast(e, x->in[0], LF_BOOL, v[0]).re;
    if (x->code == LF_OP_LNOT) return l_register(l_not(e, a));
    LLVMValueRef b = lf_emit_cast(e, x->in[1], LF_BOOL, v[1]).re;
    return l_register(x->code == LF_OP_LAND ? l_and(e, a, b) : l_or(e, a, b));
}

// A 64-bit count on NVPTX as 32 bits, saturating. LLVM 22 turns `select (c < 64), (shl x, c), 0` into a bare shl, which
// saturates its count in PTX, after cutting c to 32 bits: a count of 2^32 then shifts by 0. Only what LLVM cannot see
// through is safe, or a guard of the program's own brings the pattern back.
static LLVMValueRef short_count(lf_emit *e, LLVMValueRef v_count) {
    static const char code[] = "cvt.sat.u32.u64 $0, $1;", constraints[] = "=r,l";
    LLVMTypeRef i64 = l_int_type(e, 64), type = LLVMFunctionType(l_int_type(e, 32), &i64, 1, 0);
    LLVMValueRef v_asm =
        LLVMGetInlineAsm(type, code, sizeof code - 1, constraints, sizeof constraints - 1, 0, 0, LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(e->builder, type, v_asm, &v_count, 1, "count");
}

// Counts have an integer dtype of their own. One that is negative or too large is, as unsigned, not below the width; it is
// replaced before the shift, where it would be poison.
lf_register lf_emit_shift_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (!lf_is_integer(d) || !lf_is_integer(x->in[1])) return lf_emit_refuse(e, x);
    unsigned bits = l_bits(d), count_bits = l_bits(x->in[1]);
    bool arithmetic = x->code == LF_OP_SHR && lf_is_signed(d);
    LLVMValueRef v_count = v[1].re;
    if (e->target == LF_EMIT_NVPTX && count_bits == 64) {
        v_count = short_count(e, v_count);
        count_bits = 32;
    }
    LLVMValueRef v_inside = l_icmp_const(e, LLVMIntULT, v_count, bits);
    v_count = l_select(e, v_inside, v_count, l_int_like(e, v_count, arithmetic ? bits - 1 : 0));
    LLVMTypeRef type = l_int_type(e, bits);
    if (count_bits > bits) v_count = LLVMBuildTrunc(e->builder, v_count, type, "count");
    if (count_bits < bits) v_count = LLVMBuildZExt(e->builder, v_count, type, "count");
    if (arithmetic) return l_register(LLVMBuildAShr(e->builder, v[0].re, v_count, "shifted"));
    LLVMValueRef v_shifted = x->code == LF_OP_SHL ? LLVMBuildShl(e->builder, v[0].re, v_count, "shifted")
                                                  : LLVMBuildLShr(e->builder, v[0].re, v_count, "shifted");
    return l_register(l_select(e, v_inside, v_shifted, l_int(e, bits, 0)));
}

// ---- gcd and pow ----------------------------------------------------------------------------------------------------
static LLVMValueRef magnitude(lf_emit *e, lf_dtype d, LLVMValueRef v) {
    if (!lf_is_signed(d)) return v;
    return l_select(e, l_icmp_const(e, LLVMIntSLT, v, 0), LLVMBuildNeg(e->builder, v, "minus"), v);
}

// while (b) { a, b = b, a % b } on magnitudes; the remainder is taken only where b is not zero.
lf_register lf_emit_gcd_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (!lf_is_integer(d)) return lf_emit_refuse(e, x);
    LLVMBuilderRef b = e->builder;
    LLVMTypeRef type = l_int_type(e, l_bits(d));
    LLVMValueRef v_first[] = {magnitude(e, d, v[0].re), magnitude(e, d, v[1].re)};
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef b_test = lf_emit_block(e, "gcd.test"), b_step = lf_emit_block(e, "gcd.step"),
                      b_done = lf_emit_block(e, "gcd.done");
    LLVMBuildBr(b, b_test);
    LLVMPositionBuilderAtEnd(b, b_test);
    LLVMValueRef v_a = LLVMBuildPhi(b, type, "a"), v_b = LLVMBuildPhi(b, type, "b");
    LLVMBuildCondBr(b, l_icmp_const(e, LLVMIntNE, v_b, 0), b_step, b_done);
    LLVMPositionBuilderAtEnd(b, b_step);
    LLVMValueRef v_rest = LLVMBuildURem(b, v_a, v_b, "rest");
    LLVMBuildBr(b, b_test);
    LLVMBasicBlockRef from[] = {b_before, b_step};
    LLVMAddIncoming(v_a, (LLVMValueRef[]){v_first[0], v_b}, from, 2);
    LLVMAddIncoming(v_b, (LLVMValueRef[]){v_first[1], v_rest}, from, 2);
    LLVMPositionBuilderAtEnd(b, b_done);
    return l_register(v_a);
}

// By squaring, wrapping; the exponent as unsigned. A negative one is mended afterwards: 1 -> 1, -1 -> ±1, others -> 0.
static LLVMValueRef int_pow(lf_emit *e, lf_dtype d, LLVMValueRef v_base, LLVMValueRef v_exponent) {
    LLVMBuilderRef b = e->builder;
    LLVMTypeRef type = l_int_type(e, l_bits(d));
    LLVMValueRef v_zero = l_int_like(e, v_base, 0), v_one = l_int_like(e, v_base, 1),
                 v_all = l_int_like(e, v_base, UINT64_MAX);
    LLVMValueRef v_negative = lf_is_signed(d) ? l_icmp(e, LLVMIntSLT, v_exponent, v_zero) : NULL;
    // A negative exponent is replaced by its lowest bit, with which the loop gives what -1 needs.
    LLVMValueRef v_lowest = l_and(e, v_exponent, v_one);
    LLVMValueRef v_times = v_negative ? l_select(e, v_negative, v_lowest, v_exponent) : v_exponent;
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef b_test = lf_emit_block(e, "pow.test"), b_step = lf_emit_block(e, "pow.step"),
                      b_done = lf_emit_block(e, "pow.done");
    LLVMBuildBr(b, b_test);
    LLVMPositionBuilderAtEnd(b, b_test);
    LLVMValueRef v_power = LLVMBuildPhi(b, type, "power"), v_square = LLVMBuildPhi(b, type, "square"),
                 v_left = LLVMBuildPhi(b, type, "left");
    LLVMBuildCondBr(b, l_icmp(e, LLVMIntNE, v_left, v_zero), b_step, b_done);
    LLVMPositionBuilderAtEnd(b, b_step);
    LLVMValueRef v_odd = l_icmp(e, LLVMIntNE, l_and(e, v_left, v_one), v_zero);
    LLVMValueRef v_next[] = {l_select(e, v_odd, LLVMBuildMul(b, v_power, v_square, "product"), v_power),
                             LLVMBuildMul(b, v_square, v_square, "square"), LLVMBuildLShr(b, v_left, v_one, "left")};
    LLVMBuildBr(b, b_test);
    LLVMBasicBlockRef from[] = {b_before, b_step};
    LLVMAddIncoming(v_power, (LLVMValueRef[]){v_one, v_next[0]}, from, 2);
    LLVMAddIncoming(v_square, (LLVMValueRef[]){v_base, v_next[1]}, from, 2);
    LLVMAddIncoming(v_left, (LLVMValueRef[]){v_times, v_next[2]}, from, 2);
    LLVMPositionBuilderAtEnd(b, b_done);
    if (!v_negative) return v_power;
    LLVMValueRef v_unit = l_or(e, l_icmp(e, LLVMIntEQ, v_base, v_one), l_icmp(e, LLVMIntEQ, v_base, v_all));
    return l_select(e, l_and(e, v_negative, l_not(e, v_unit)), v_zero, v_power);
}

lf_register lf_emit_pow_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype d = x->in[0];
    if (d == LF_BOOL) return lf_emit_refuse(e, x);
    if (lf_is_integer(d)) return l_register(int_pow(e, d, v[0].re, v[1].re));
    if (lf_is_complex(d)) return lf_emit_complex_math(e, "pow", lf_dtype_part(d), v, 2);
    return l_register(lf_emit_narrow(e, d, l_math2(e, "pow", l_operand(e, x, v, 0), l_operand(e, x, v, 1))));
}
