// One function a family of elementwise ops; the names come from the op table, so a family without its function does not
// link. (The suffix keeps lf_emit_cast_op, the op, apart from lf_emit_cast, the conversion.) Private to the emit*.c files.
#ifndef LF_CODEGEN_LLVM_EMIT_FAMILY_H
#define LF_CODEGEN_LLVM_EMIT_FAMILY_H
#include "codegen/llvm/emit_build.h"

// An op as the families see it; made from a graph op or from an opcode and a dtype.
typedef struct lf_elem {
    lf_opcode code;
    unsigned n;     // operands
    lf_dtype in[4]; // dtype of each operand; that of operand 0 for an omitted one
    lf_dtype out;
    bool flag;                     // gelu: the tanh form
    double number;                 // slope, alpha
    const lf_value *const *values; // operands in the graph, or NULL
} lf_elem;

typedef lf_register lf_emit_family(lf_emit *e, const lf_elem *x, const lf_register *v);
#define LF_ELEM(ID, name, n, rule, allow, family, doc) lf_emit_family lf_emit_##family##_op;
#include "ir/ops.def"

// Sets e->status and gives a zero of the result dtype, so that emission can go on to its end.
lf_register lf_emit_refuse(lf_emit *e, const lf_elem *x);
lf_register lf_emit_zero(lf_emit *e, lf_dtype d);
// Operand i in the type computed in.
static inline LLVMValueRef l_operand(lf_emit *e, const lf_elem *x, const lf_register *v, unsigned i) {
    return lf_emit_widen(e, x->in[i], v[i].re);
}

// The value is <= 0 or NaN whatever the program is given: x - max x, as softmax and its kin have it.
bool lf_emit_never_above_zero(const lf_value *value);

// ---- single steps that several families use -------------------------------------------------------------------------
// min, max, fmin, fmax of two floats or doubles.
LLVMValueRef lf_emit_x86_minmax(lf_emit *e, bool least, bool number, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef lf_emit_float_minmax(lf_emit *e, lf_opcode code, LLVMValueRef a, LLVMValueRef b);
// ceil, floor, trunc, round of a float or double.
LLVMValueRef lf_emit_float_rounding(lf_emit *e, lf_opcode code, LLVMValueRef a);
lf_register lf_emit_complex_arith(lf_emit *e, lf_opcode code, lf_dtype part, lf_register a, lf_register b);
lf_register lf_emit_minmax(lf_emit *e, lf_opcode code, lf_dtype d, lf_register a, lf_register b);
LLVMValueRef lf_emit_compare(lf_emit *e, lf_opcode code, lf_dtype da, lf_register a, lf_dtype db, lf_register b);
// The element with every NaN replaced by the canonical one.
lf_register lf_emit_canonical(lf_emit *e, lf_dtype d, lf_register v);
#endif
