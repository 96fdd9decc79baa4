// The entry points of elementwise lowering: the table from opcode to family, registers, constants, loads and stores.
// Does not belong here: what an op means (emit_*.c, one family a function).
#include "codegen/llvm/emit_family.h"

static lf_emit_family *const families[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = lf_emit_##family##_op,
#include "ir/ops.def"
};
static const unsigned char arity[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = n,
#include "ir/ops.def"
};

LLVMTypeRef lf_register_type(lf_emit *e, lf_dtype d) {
    lf_dtype part = lf_dtype_part(d);
    return part == LF_F32 || part == LF_F64 ? l_real_type(e, part) : l_int_type(e, l_bits(part));
}

LLVMTypeRef lf_memory_type(lf_emit *e, lf_dtype d) {
    if (d == LF_BOOL) return l_int_type(e, 8);
    LLVMTypeRef part = lf_register_type(e, d);
    return lf_is_complex(d) ? LLVMStructTypeInContext(e->context, (LLVMTypeRef[]){part, part}, 2, 0) : part;
}

// A float or double by its bits, so that a NaN keeps its payload.
static LLVMValueRef real_constant(lf_emit *e, lf_dtype d, uint64_t bits) {
    return LLVMConstBitCast(l_int(e, d == LF_F64 ? 64 : 32, bits), l_real_type(e, d));
}

lf_register lf_emit_constant(lf_emit *e, lf_dtype d, const lf_scalar *value) {
    uint64_t bits = value->word[0];
    if (d == LF_BOOL) return l_register(l_int(e, 1, (bits & 0xff) != 0));
    if (d == LF_C64) return l_pair(real_constant(e, LF_F32, bits & 0xffffffff), real_constant(e, LF_F32, bits >> 32));
    if (d == LF_C128) return l_pair(real_constant(e, LF_F64, bits), real_constant(e, LF_F64, value->word[1]));
    if (d == LF_F32 || d == LF_F64) return l_register(real_constant(e, d, bits));
    return l_register(l_int(e, l_bits(d), bits));
}

lf_register lf_emit_zero(lf_emit *e, lf_dtype d) {
    LLVMValueRef v_zero = LLVMConstNull(lf_register_type(e, d));
    return lf_is_complex(d) ? l_pair(v_zero, v_zero) : l_register(v_zero);
}

static LLVMValueRef imaginary_part(lf_emit *e, lf_dtype d, LLVMValueRef v_pointer) {
    return LLVMBuildStructGEP2(e->builder, lf_memory_type(e, d), v_pointer, 1, "im.at");
}

static LLVMValueRef load_part(lf_emit *e, LLVMTypeRef type, LLVMValueRef v_pointer, lf_dtype part) {
    LLVMValueRef v_load = LLVMBuildLoad2(e->builder, type, v_pointer, "x");
    LLVMSetAlignment(v_load, lf_dtype_bytes(part));
    return v_load;
}

lf_register lf_emit_load(lf_emit *e, lf_dtype d, LLVMValueRef v_pointer) {
    lf_dtype part = lf_dtype_part(d);
    if (d == LF_BOOL) {
        LLVMValueRef v_byte = load_part(e, l_int_type(e, 8), v_pointer, d);
        return l_register(l_icmp_const(e, LLVMIntNE, v_byte, 0));
    }
    LLVMTypeRef type = lf_register_type(e, d);
    LLVMValueRef v_re = load_part(e, type, v_pointer, part);
    return l_pair(v_re, lf_is_complex(d) ? load_part(e, type, imaginary_part(e, d, v_pointer), part) : NULL);
}

void lf_emit_store(lf_emit *e, lf_dtype d, lf_register value, LLVMValueRef v_pointer) {
    unsigned align = lf_dtype_bytes(lf_dtype_part(d));
    LLVMValueRef v_re = value.re;
    if (d == LF_BOOL) v_re = LLVMBuildZExt(e->builder, v_re, l_int_type(e, 8), "byte");
    LLVMSetAlignment(LLVMBuildStore(e->builder, v_re, v_pointer), align);
    if (lf_is_complex(d)) LLVMSetAlignment(LLVMBuildStore(e->builder, value.im, imaginary_part(e, d, v_pointer)), align);
}

lf_register lf_emit_select(lf_emit *e, LLVMValueRef v_if, lf_register a, lf_register b) {
    return (lf_register){LLVMBuildSelect(e->builder, v_if, a.re, b.re, ""),
                         a.im ? LLVMBuildSelect(e->builder, v_if, a.im, b.im, "") : NULL};
}

lf_register lf_emit_refuse(lf_emit *e, const lf_elem *x) {
    if (!e->status)
        e->status = lf_error(e->allocator, LF_UNSUPPORTED, "%s of %s is not supported", lf_op_info_of(x->code)->name,
                             lf_dtype_name(x->in[0]));
    return lf_emit_zero(e, x->out);
}

// Product of two extents (>= 0) that stays at the largest i64 once it is there.
static lf_register saturating_product(lf_emit *e, lf_register a, lf_register b) {
    LLVMValueRef v_both = l_intrinsic2(e, "llvm.umul.with.overflow", a.re, b.re);
    LLVMValueRef v_product = LLVMBuildExtractValue(e->builder, v_both, 0, "product");
    LLVMValueRef v_over = LLVMBuildExtractValue(e->builder, v_both, 1, "over");
    v_over = l_or(e, v_over, l_icmp_const(e, LLVMIntSLT, v_product, 0));
    return l_register(l_select(e, v_over, l_int(e, 64, INT64_MAX), v_product));
}

static lf_register emit(lf_emit *e, const lf_elem *x, const lf_register *v) {
    lf_emit_family *family = x->code < LF_OP_COUNT ? families[x->code] : NULL;
    return family ? family(e, x, v) : lf_emit_refuse(e, x);
}

lf_register lf_emit_elem(lf_emit *e, const lf_op *op, const lf_register *operands) {
    if (op->code == LF_OP_SATMUL) return saturating_product(e, operands[0], operands[1]);
    lf_elem x = {.code = op->code,
                 .n = op->n_operands,
                 .out = op->results[0].type.dtype,
                 .flag = op->flag,
                 .number = op->number,
                 .values = (const lf_value *const *)op->operands};
    for (unsigned i = 0; i < 4; i++) {
        const lf_value *value = i < x.n && op->operands[i] ? op->operands[i] : op->operands[0];
        x.in[i] = value->type.dtype;
    }
    return emit(e, &x, operands);
}

static lf_dtype simple_result(lf_opcode code, lf_dtype d) {
    lf_emit_family *family = families[code];
    if (family == lf_emit_compare_op || family == lf_emit_predicate_op || family == lf_emit_logical_op) return LF_BOOL;
    if (family == lf_emit_abs_op || (family == lf_emit_complex_part_op && code != LF_OP_CONJ)) {
        if (code == LF_OP_COMPLEX) return d == LF_F64 ? LF_C128 : LF_C64;
        return lf_dtype_part(d);
    }
    return d;
}

lf_register lf_emit_simple(lf_emit *e, lf_opcode code, lf_dtype d, lf_register a, lf_register b) {
    if (code == LF_OP_SATMUL) return saturating_product(e, a, b);
    lf_elem x = {.code = code, .n = b.re ? 2 : 1, .in = {d, d, d, d}, .out = d};
    if (code < LF_OP_COUNT && families[code]) x.out = simple_result(code, d);
    if (code >= LF_OP_COUNT || arity[code] > x.n) return lf_emit_refuse(e, &x);
    return emit(e, &x, (lf_register[4]){a, b, {NULL, NULL}, {NULL, NULL}});
}
