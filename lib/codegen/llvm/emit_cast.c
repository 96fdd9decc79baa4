// Conversions between any two dtypes, each rounded once, none undefined: float to integer saturates (NaN gives 0), integers
// wrap, anything to bool is x != 0.
//
// The 16-bit floats are the hard part. No target converts all of f64, i64 and f32 to both of them in one rounding, so wider
// values are first rounded to odd in f32: truncated, with the last bit set when anything was lost. f32 has over two bits
// more than either half, so the second rounding sees on which side of a tie the exact value lies.
#include "analysis/bits.h"
#include "codegen/llvm/emit_family.h"
#include <stdio.h>
#include <string.h>

static bool has_half(const lf_emit *e) { return e->target == LF_EMIT_NVPTX || e->has_half; }

// The word that v is the low (out_half 0) or the high half (1) of, or NULL.
static LLVMValueRef word_of(lf_emit *e, LLVMValueRef v, unsigned *out_half) {
    LLVMValueRef v_word = LLVMIsATruncInst(v) ? LLVMGetOperand(v, 0) : NULL;
    if (!v_word || LLVMTypeOf(v_word) != l_int_type(e, 32)) return NULL;
    bool shifted = LLVMIsAInstruction(v_word) && LLVMGetInstructionOpcode(v_word) == LLVMLShr &&
                   LLVMGetOperand(v_word, 1) == l_int(e, 32, 16);
    *out_half = shifted;
    return shifted ? LLVMGetOperand(v_word, 0) : v_word;
}

LLVMValueRef lf_emit_widen(lf_emit *e, lf_dtype d, LLVMValueRef v) {
    LLVMTypeRef f32 = l_real_type(e, LF_F32);
    if (d == LF_BF16) {
        // Of a word at once: LLVM would first make vectors of 16-bit elements of it, and a GPU take those apart.
        unsigned half;
        LLVMValueRef v_word = word_of(e, v, &half);
        if (v_word && half) return l_bits_float(e, l_and(e, v_word, l_int(e, 32, 0xffff0000)));
        LLVMValueRef v_wide = v_word ? v_word : LLVMBuildZExt(e->builder, v, l_int_type(e, 32), "wide");
        return l_bits_float(e, LLVMBuildShl(e->builder, v_wide, l_int(e, 32, 16), "bits"));
    }
    if (d != LF_F16) return v;
    if (!has_half(e)) return lf_emit_call(e, "lfm_f16_to_f32", f32, &v, 1);
    LLVMValueRef v_half = LLVMBuildBitCast(e->builder, v, LLVMHalfTypeInContext(e->context), "half");
    return LLVMBuildFPExt(e->builder, v_half, f32, "wide");
}

static LLVMValueRef gpu_float_to_bf16(lf_emit *e, LLVMValueRef v_float) {
    return lf_emit_assembly(e, "cvt.rn.bf16.f32 $0, $1;", "=h,f", l_int_type(e, 16), &v_float, 1);
}

static LLVMValueRef is_rounded_to_bf16(lf_emit *e, LLVMValueRef v) {
    bool rounded = e->has_bf16 && LLVMIsACallInst(v) && LLVMIsAInlineAsm(LLVMGetCalledValue(v)) &&
                   LLVMGetNumArgOperands(v) == 1 && LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(v, 0))) == LLVMFloatTypeKind;
    return rounded ? LLVMGetOperand(v, 0) : NULL;
}

LLVMValueRef lf_emit_half_of_pair(lf_emit *e, LLVMValueRef v_pair, unsigned half) {
    if (half) v_pair = LLVMBuildLShr(e->builder, v_pair, l_int(e, 32, 16), "high");
    return LLVMBuildTrunc(e->builder, v_pair, l_int_type(e, 16), "half");
}

LLVMValueRef lf_emit_pack_halves(lf_emit *e, LLVMValueRef v_low, LLVMValueRef v_high) {
    LLVMBuilderRef b = e->builder;
    unsigned low, high;
    LLVMValueRef v_word = word_of(e, v_low, &low); // taken apart just now
    if (v_word && word_of(e, v_high, &high) == v_word && !low && high) return v_word;
    LLVMValueRef v_floats[2] = {is_rounded_to_bf16(e, v_high), is_rounded_to_bf16(e, v_low)};
    // Both were rounded just now: one instruction rounds and packs them.
    if (v_floats[0] && v_floats[1])
        return lf_emit_assembly(e, "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f", l_int_type(e, 32), v_floats, 2);
    LLVMValueRef v_above = LLVMBuildShl(b, LLVMBuildZExt(b, v_high, l_int_type(e, 32), ""), l_int(e, 32, 16), "");
    return LLVMBuildOr(b, v_above, LLVMBuildZExt(b, v_low, l_int_type(e, 32), ""), "pair");
}

// f32 to bf16 in integers on most targets: x86 has either no instruction or one that flushes subnormals, and LLVM's bfloat
// type is a source of double roundings. The GPU's own conversion is the same but for the bits of a NaN, which are nobody's.
static LLVMValueRef float_to_bf16(lf_emit *e, LLVMValueRef v_float) {
    LLVMBuilderRef b = e->builder;
    if (e->has_bf16) return gpu_float_to_bf16(e, v_float);
    LLVMValueRef v_bits = l_float_bits(e, v_float);
    LLVMValueRef v_last = l_and(e, LLVMBuildLShr(b, v_bits, l_int(e, 32, 16), "high"), l_int(e, 32, 1));
    LLVMValueRef v_sum = LLVMBuildAdd(b, LLVMBuildAdd(b, v_bits, l_int(e, 32, 0x7fff), "up"), v_last, "rounded");
    LLVMValueRef v_nan = l_int(e, 32, 0x7fc00000);
    v_sum = l_select(e, l_is_nan(e, v_float), v_nan, v_sum);
    return LLVMBuildTrunc(b, LLVMBuildLShr(b, v_sum, l_int(e, 32, 16), "high"), l_int_type(e, 16), "bf16");
}

LLVMValueRef lf_emit_narrow(lf_emit *e, lf_dtype d, LLVMValueRef v_float) {
    if (!lf_is_half(d)) return v_float;
    if (d == LF_BF16) return float_to_bf16(e, v_float);
    if (!has_half(e)) return lf_emit_call(e, "lfm_f32_to_f16", l_int_type(e, 16), &v_float, 1);
    LLVMValueRef v_half = LLVMBuildFPTrunc(e->builder, v_float, LLVMHalfTypeInContext(e->context), "rounded");
    return LLVMBuildBitCast(e->builder, v_half, l_int_type(e, 16), "half");
}

LLVMValueRef lf_emit_narrow_exact(lf_emit *e, lf_dtype d, LLVMValueRef v_float) {
    if (d != LF_BF16) return lf_emit_narrow(e, d, v_float);
    // A quiet NaN keeps its quiet bit among the high 16.
    LLVMValueRef v_high = LLVMBuildLShr(e->builder, l_float_bits(e, v_float), l_int(e, 32, 16), "high");
    return LLVMBuildTrunc(e->builder, v_high, l_int_type(e, 16), "bf16");
}

// Makes odd the last bit of a value that lost something. `v_away`: the value's magnitude was rounded up.
static LLVMValueRef to_odd(lf_emit *e, LLVMValueRef v_float, LLVMValueRef v_inexact, LLVMValueRef v_away) {
    LLVMValueRef v_bits = l_float_bits(e, v_float);
    LLVMValueRef v_back = LLVMBuildZExt(e->builder, v_away, LLVMTypeOf(v_bits), "back");
    LLVMValueRef v_toward_zero = LLVMBuildSub(e->builder, v_bits, v_back, "toward.zero");
    LLVMValueRef v_odd = l_or(e, v_toward_zero, l_int_like(e, v_bits, 1));
    return l_bits_float(e, l_select(e, v_inexact, v_odd, v_bits));
}

LLVMValueRef lf_emit_odd_double(lf_emit *e, LLVMValueRef v_sum, LLVMValueRef v_error) {
    LLVMValueRef v_signs = l_xor(e, l_float_bits(e, v_sum), l_float_bits(e, v_error));
    return to_odd(e, v_sum, l_fcmp_const(e, LLVMRealONE, v_error, 0), l_icmp_const(e, LLVMIntSLT, v_signs, 0));
}

LLVMValueRef lf_emit_double_to_half(lf_emit *e, lf_dtype d, LLVMValueRef v_double) {
    LLVMValueRef v_float = LLVMBuildFPTrunc(e->builder, v_double, l_real_type(e, LF_F32), "float");
    LLVMValueRef v_again = LLVMBuildFPExt(e->builder, v_float, l_real_type(e, LF_F64), "again");
    LLVMValueRef v_inexact = l_fcmp(e, LLVMRealONE, v_again, v_double);
    LLVMValueRef v_away = l_fcmp(e, LLVMRealOGT, l_fabs(e, v_again), l_fabs(e, v_double));
    return lf_emit_narrow(e, d, to_odd(e, v_float, v_inexact, v_away));
}

static LLVMValueRef int_to_real(lf_emit *e, lf_dtype from, lf_dtype real, LLVMValueRef v) {
    LLVMTypeRef type = l_real_type(e, real);
    return lf_is_signed(from) ? LLVMBuildSIToFP(e->builder, v, type, "float")
                              : LLVMBuildUIToFP(e->builder, v, type, "float");
}

// A 64-bit integer to bf16. A double takes 53 bits at once; of larger ones the low 16 bits are folded into one sticky bit.
static LLVMValueRef long_to_bf16(lf_emit *e, lf_dtype from, LLVMValueRef v) {
    LLVMBuilderRef b = e->builder;
    LLVMValueRef v_zero = l_int(e, 64, 0), v_16 = l_int(e, 64, 16);
    LLVMValueRef v_negative = from == LF_I64 ? l_icmp(e, LLVMIntSLT, v, v_zero) : l_false(e);
    LLVMValueRef v_size = l_select(e, v_negative, LLVMBuildNeg(b, v, "minus"), v);
    LLVMValueRef v_big = l_icmp(e, LLVMIntUGT, v_size, l_int(e, 64, UINT32_MAX));
    LLVMValueRef v_lost = l_icmp(e, LLVMIntNE, l_and(e, v_size, l_int(e, 64, 0xffff)), v_zero);
    LLVMValueRef v_high =
        l_or(e, LLVMBuildLShr(b, v_size, v_16, "high"), LLVMBuildZExt(b, v_lost, l_int_type(e, 64), "sticky"));
    LLVMValueRef v_few = LLVMBuildSIToFP(b, l_select(e, v_big, v_high, v_size), l_real_type(e, LF_F64), "few");
    LLVMValueRef v_scale = l_select(e, v_big, l_number(e, LF_F64, 65536), l_number(e, LF_F64, 1));
    LLVMValueRef v_half = lf_emit_double_to_half(e, LF_BF16, LLVMBuildFMul(b, v_few, v_scale, "size"));
    return l_or(e, v_half, l_select(e, v_negative, l_int(e, 16, 0x8000), l_int(e, 16, 0)));
}

static LLVMValueRef int_to_float(lf_emit *e, lf_dtype from, lf_dtype to, LLVMValueRef v) {
    if (!lf_is_half(to)) return int_to_real(e, from, to, v);
    if (to == LF_BF16 && l_bits(from) == 64) return long_to_bf16(e, from, v);
    if (to == LF_BF16 && l_bits(from) == 32) return lf_emit_double_to_half(e, to, int_to_real(e, from, LF_F64, v));
    // To f16 through f32 even from 64 bits: what f32 rounds is above 2^24, where f16 has nothing but infinity.
    return lf_emit_narrow(e, to, int_to_real(e, from, LF_F32, v));
}

static LLVMValueRef float_to_int(lf_emit *e, lf_dtype from, lf_dtype to, LLVMValueRef v) {
    LLVMValueRef v_real = lf_emit_widen(e, from, v);
    const char *name = lf_is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMTypeRef types[] = {l_int_type(e, l_bits(to)), LLVMTypeOf(v_real)};
    LLVMValueRef v_function = LLVMGetIntrinsicDeclaration(e->module, id, types, 2);
    return LLVMBuildCall2(e->builder, LLVMIntrinsicGetType(e->context, id, types, 2), v_function, &v_real, 1, "int");
}

static LLVMValueRef int_to_int(lf_emit *e, lf_dtype from, lf_dtype to, LLVMValueRef v) {
    LLVMTypeRef type = l_int_type(e, l_bits(to));
    if (l_bits(to) <= l_bits(from)) return l_bits(to) == l_bits(from) ? v : LLVMBuildTrunc(e->builder, v, type, "low");
    return lf_is_signed(from) ? LLVMBuildSExt(e->builder, v, type, "wide") : LLVMBuildZExt(e->builder, v, type, "wide");
}

static LLVMValueRef real_to_real(lf_emit *e, lf_dtype from, lf_dtype to, LLVMValueRef v) {
    if (from == LF_F64 && lf_is_half(to)) return lf_emit_double_to_half(e, to, v);
    LLVMValueRef v_real = lf_emit_widen(e, from, v);
    if (lf_is_half(to)) return lf_emit_narrow(e, to, v_real);
    if (l_is_double(v_real) == (to == LF_F64)) return v_real;
    if (to == LF_F64) return LLVMBuildFPExt(e->builder, v_real, l_real_type(e, to), "wide");
    return LLVMBuildFPTrunc(e->builder, v_real, l_real_type(e, to), "rounded");
}

static LLVMValueRef to_bool(lf_emit *e, lf_dtype from, lf_register v) {
    if (lf_is_complex(from)) return l_or(e, l_fcmp_const(e, LLVMRealUNE, v.re, 0), l_fcmp_const(e, LLVMRealUNE, v.im, 0));
    if (lf_is_half(from)) return l_icmp_const(e, LLVMIntNE, l_and(e, v.re, l_int(e, 16, 0x7fff)), 0);
    return lf_is_float(from) ? l_fcmp_const(e, LLVMRealUNE, v.re, 0) : l_icmp_const(e, LLVMIntNE, v.re, 0);
}

static LLVMValueRef from_bool(lf_emit *e, lf_dtype to, LLVMValueRef v) {
    static const uint16_t half_one[LF_DTYPE_COUNT] = {[LF_F16] = 0x3c00, [LF_BF16] = 0x3f80};
    if (lf_is_half(to)) return l_select(e, v, l_int(e, 16, half_one[to]), l_int(e, 16, 0));
    if (lf_is_float(to)) return l_select(e, v, l_number(e, to, 1), l_number(e, to, 0));
    return LLVMBuildZExt(e->builder, v, l_int_type(e, l_bits(to)), "wide");
}

// Between dtypes that are not complex.
static LLVMValueRef convert(lf_emit *e, lf_dtype from, lf_dtype to, LLVMValueRef v) {
    if (from == to) return v;
    if (to == LF_BOOL) return to_bool(e, from, l_register(v));
    if (from == LF_BOOL) return from_bool(e, to, v);
    if (lf_is_float(from)) return lf_is_float(to) ? real_to_real(e, from, to, v) : float_to_int(e, from, to, v);
    return lf_is_float(to) ? int_to_float(e, from, to, v) : int_to_int(e, from, to, v);
}

lf_register lf_emit_cast(lf_emit *e, lf_dtype from, lf_dtype to, lf_register value) {
    lf_dtype from_part = lf_dtype_part(from), to_part = lf_dtype_part(to);
    if (from == to) return value;
    if (to == LF_BOOL) return l_register(to_bool(e, from, value));
    LLVMValueRef v_re = convert(e, from_part, to_part, value.re);
    if (!lf_is_complex(to)) return l_register(v_re);
    return l_pair(v_re, lf_is_complex(from) ? convert(e, from_part, to_part, value.im) : l_number(e, to, 0));
}

lf_register lf_emit_cast_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    return lf_emit_cast(e, x->in[0], x->out, v[0]);
}

// ---- bitcast --------------------------------------------------------------------------------------------------------
// On the bits, as integers: to LLVM one NaN is as good as another, and it drops a float select that only tells them apart
// (behind a square root it does).
static LLVMValueRef canonical_part(lf_emit *e, lf_dtype d, LLVMValueRef v) {
    static const struct {
        uint64_t infinity, quiet;
    } table[] = {[LF_F16] = {0x7c00, 0x7e00},
                 [LF_BF16] = {0x7f80, 0x7fc0},
                 [LF_F32] = {0x7f800000, 0x7fc00000},
                 [LF_F64] = {0x7ff0000000000000, 0x7ff8000000000000}};
    LLVMValueRef v_bits = lf_is_half(d) ? v : l_float_bits(e, v);
    LLVMValueRef v_sign = l_int_like(e, v_bits, 1ull << (l_bits(d) - 1));
    LLVMValueRef v_size = l_and(e, v_bits, l_not(e, v_sign));
    LLVMValueRef v_nan = l_icmp_const(e, LLVMIntUGT, v_size, table[d].infinity);
    LLVMValueRef v_result = l_select(e, v_nan, l_int_like(e, v_bits, table[d].quiet), v_bits);
    return lf_is_half(d) ? v_result : l_bits_float(e, v_result);
}

lf_register lf_emit_canonical(lf_emit *e, lf_dtype d, lf_register v) {
    lf_dtype part = lf_dtype_part(d);
    if (!lf_is_float(part)) return v;
    return l_pair(canonical_part(e, part, v.re), lf_is_complex(d) ? canonical_part(e, part, v.im) : NULL);
}

static LLVMValueRef bits_of(lf_emit *e, lf_dtype d, lf_register v) {
    if (d == LF_BOOL) return LLVMBuildZExt(e->builder, v.re, l_int_type(e, 8), "byte");
    if (!lf_is_complex(d)) return d == LF_F32 || d == LF_F64 ? l_float_bits(e, v.re) : v.re;
    LLVMTypeRef whole = l_int_type(e, l_bits(d));
    LLVMValueRef v_re = LLVMBuildZExt(e->builder, l_float_bits(e, v.re), whole, "low");
    LLVMValueRef v_im = LLVMBuildZExt(e->builder, l_float_bits(e, v.im), whole, "high");
    return l_or(e, v_re, LLVMBuildShl(e->builder, v_im, l_int(e, 64, 32), "high"));
}

static lf_register from_bits(lf_emit *e, lf_dtype d, LLVMValueRef v_bits) {
    if (d == LF_BOOL) return l_register(l_icmp_const(e, LLVMIntNE, v_bits, 0));
    if (!lf_is_complex(d)) return l_register(d == LF_F32 || d == LF_F64 ? l_bits_float(e, v_bits) : v_bits);
    LLVMValueRef v_high = LLVMBuildLShr(e->builder, v_bits, l_int(e, 64, 32), "high");
    LLVMTypeRef word = l_int_type(e, 32);
    return l_pair(l_bits_float(e, LLVMBuildTrunc(e->builder, v_bits, word, "re")),
                  l_bits_float(e, LLVMBuildTrunc(e->builder, v_high, word, "im")));
}

lf_register lf_emit_bitcast_op(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_dtype from = x->in[0], to = x->out;
    if (lf_dtype_bytes(from) != lf_dtype_bytes(to)) return lf_emit_refuse(e, x);
    lf_register r = v[0];
    if (x->values && !lf_keeps_bits(x->values[0])) r = lf_emit_canonical(e, from, r);
    return from == to ? r : from_bits(e, to, bits_of(e, from, r));
}
