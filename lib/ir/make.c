// Implicit ops: conversions, views, reductions and elementwise steps of which the builder writes the meaning of other ops.
// Their operands are right by construction; what a user may get wrong is looked at in rules_*.c.
#include "ir/builder.h"
#include <string.h>

// An op of one operand that is made once for it.
static lf_value *shared_unary(lf_graph *g, lf_opcode code, lf_value *x, const lf_type *type, lf_dtype compute) {
    lf_share_key key = {.code = code, .dtype = type->dtype, .axis = -1, .operands = {x}};
    uint64_t hash;
    lf_op *op = lf_share_find(g, &key, &hash);
    if (op) return op->results;
    op = lf_single(g, code, type, 1, &x);
    if (!op) return NULL;
    op->compute = compute;
    if (!lf_share_add(g, hash, op)) return NULL;
    lf_op_link(g, op);
    return op->results;
}

lf_value *lf_make_cast(lf_graph *g, lf_value *x, lf_dtype d) {
    if (!x || x->type.dtype == d) return x;
    if (lf_is_const(x)) {
        lf_scalar s;
        lf_scalar_cast(x->type.dtype, &x->def->constant, d, &s);
        return lf_const(g, d, s);
    }
    lf_type type = x->type;
    type.dtype = d;
    return shared_unary(g, LF_OP_CAST, x, &type, x->type.dtype);
}

lf_value *lf_make_item(lf_graph *g, lf_value *x) {
    if (!x) return NULL;
    if (x->def->code == LF_OP_SCALAR_TENSOR) return x->def->operands[0];
    lf_type type = lf_scalar_type(x->type.dtype);
    return shared_unary(g, LF_OP_ITEM, x, &type, LF_NO_DTYPE);
}

lf_value *lf_make_scalar_tensor(lf_graph *g, lf_value *s) {
    if (!s) return NULL;
    lf_type type = lf_tensor_type(s->type.dtype, 0);
    return shared_unary(g, LF_OP_SCALAR_TENSOR, s, &type, LF_NO_DTYPE);
}

lf_value *lf_make_device(lf_graph *g, lf_value *x) {
    return x && x->type.host ? lf_make_scalar_tensor(g, lf_make_item(g, x)) : x;
}

// ---- views ------------------------------------------------------------------------------------------------------------------

lf_view lf_view_identity(unsigned rank) {
    lf_view view = {0};
    for (unsigned i = 0; i < LF_MAX_RANK; i++) view.map[i] = i < rank ? (int8_t)i : -1;
    return view;
}

lf_value *lf_make_view(lf_graph *g, lf_opcode code, lf_value *x, const lf_type *type, const lf_view *view) {
    if (!x) return NULL;
    for (unsigned i = 0; i < type->rank; i++)
        if (!type->dims[i]) return NULL;
    lf_op *op = lf_single(g, code, type, 1, &x);
    if (!op) return NULL;
    op->results[0].type.dtype = x->type.dtype;
    op->results[0].type.tensor = true;
    op->results[0].type.host = false;
    op->view = *view;
    lf_op_link(g, op);
    return op->results;
}

lf_value *lf_make_reshape(lf_graph *g, lf_value *x, const lf_type *shape) {
    lf_view view = {.reshape = true};
    memset(view.map, -1, sizeof view.map);
    return lf_make_view(g, LF_OP_RESHAPE, x, shape, &view);
}

lf_value *lf_make_expand(lf_graph *g, lf_value *x, const lf_type *shape) {
    if (!x || !x->type.tensor) return x;
    x = lf_make_device(g, x);
    if (!x || lf_same_shape(&x->type, shape)) return x;
    lf_view view = lf_view_identity(0);
    view.broadcasts = true;
    for (unsigned i = 0, shift = shape->rank - x->type.rank; i < x->type.rank; i++) view.map[shift + i] = (int8_t)i;
    return lf_make_view(g, LF_OP_EXPAND, x, shape, &view);
}

lf_value *lf_make_unsqueeze(lf_graph *g, lf_value *x, uint32_t axes) {
    if (!x) return NULL;
    lf_type type = lf_tensor_type(x->type.dtype, x->type.rank + (unsigned)__builtin_popcount(axes));
    lf_view view = lf_view_identity(0);
    for (unsigned i = 0, source = 0; i < type.rank; i++) {
        bool added = axes >> i & 1;
        type.dims[i] = added ? lf_const_int(g, 1) : x->type.dims[source];
        if (!added && x->type.named >> source & 1) type.named |= (uint8_t)(1u << i);
        view.map[i] = added ? -1 : (int8_t)source++;
    }
    lf_value *y = lf_make_view(g, LF_OP_UNSQUEEZE, x, &type, &view);
    if (y) y->def->axes = axes;
    return y;
}

lf_value *lf_make_squeeze(lf_graph *g, lf_value *x, uint32_t axes) {
    if (!x) return NULL;
    lf_type type = lf_tensor_type(x->type.dtype, 0);
    lf_view view = lf_view_identity(0);
    for (unsigned i = 0; i < x->type.rank; i++) {
        if (axes >> i & 1) continue;
        type.dims[type.rank] = x->type.dims[i];
        if (x->type.named >> i & 1) type.named |= (uint8_t)(1u << type.rank);
        view.map[type.rank++] = (int8_t)i;
    }
    lf_value *y = lf_make_view(g, LF_OP_SQUEEZE, x, &type, &view);
    if (y) y->def->axes = axes;
    return y;
}

lf_value *lf_make_permute(lf_graph *g, lf_opcode code, lf_value *x, const unsigned *source_of) {
    if (!x) return NULL;
    lf_type type = lf_tensor_type(x->type.dtype, x->type.rank);
    lf_view view = lf_view_identity(0);
    for (unsigned i = 0; i < type.rank; i++) {
        type.dims[i] = x->type.dims[source_of[i]];
        if (x->type.named >> source_of[i] & 1) type.named |= (uint8_t)(1u << i);
        view.map[i] = (int8_t)source_of[i];
    }
    return lf_make_view(g, code, x, &type, &view);
}

// ---- computing ops ------------------------------------------------------------------------------------------------------------

lf_value *lf_make_elem(lf_graph *g, lf_opcode code, lf_dtype result, lf_value *a, lf_value *b, lf_value *c) {
    lf_value *operands[3] = {a, b, c};
    size_t n = lf_op_info_of(code)->args[1] == 0 ? 1 : lf_op_info_of(code)->args[2] == 0 ? 2 : 3;
    const lf_type *shape = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!operands[i]) return NULL;
        const lf_type *t = &operands[i]->type;
        if (!t->tensor) continue;
        bool larger = !shape || t->rank > shape->rank;
        for (unsigned k = 0; !larger && t->rank == shape->rank && k < t->rank; k++)
            larger = lf_is_constant(shape->dims[k], 1) && !lf_is_constant(t->dims[k], 1);
        if (larger) shape = t;
    }
    if (!shape) return lf_scalar_op(g, code, result, a, b, c);
    lf_type type = *shape;
    type.dtype = result;
    type.host = false;
    for (size_t i = 0; i < n; i++) operands[i] = lf_make_expand(g, operands[i], &type);
    lf_op *op = lf_single(g, code, &type, n, operands);
    if (!op) return NULL;
    op->compute = operands[code == LF_OP_SELECT]->type.dtype;
    lf_op_link(g, op);
    return op->results;
}

lf_value *lf_make_reduce(lf_graph *g, lf_opcode code, lf_value *x, uint32_t axes, bool keepdim) {
    if (!x) return NULL;
    if (!axes && code != LF_OP_ARGMIN && code != LF_OP_ARGMAX) return x; // each element is its own result
    lf_type type = lf_tensor_type(x->type.dtype, 0);
    if (code == LF_OP_ARGMIN || code == LF_OP_ARGMAX) type.dtype = LF_I64;
    for (unsigned i = 0; i < x->type.rank; i++) {
        bool reduced = axes >> i & 1;
        if (reduced && !keepdim) continue;
        if (!reduced && x->type.named >> i & 1) type.named |= (uint8_t)(1u << type.rank);
        if (!(type.dims[type.rank++] = reduced ? lf_const_int(g, 1) : x->type.dims[i])) return NULL;
    }
    lf_op *op = lf_single(g, code, &type, 1, &x);
    if (!op) return NULL;
    op->compute = x->type.dtype;
    op->axes = axes;
    op->keepdim = keepdim;
    if (__builtin_popcount(axes) == 1) op->axis = (int8_t)__builtin_ctz(axes);
    lf_op_link(g, op);
    return op->results;
}

lf_value *lf_make_full(lf_graph *g, lf_value *v, const lf_type *shape) {
    if (!v) return NULL;
    for (unsigned i = 0; i < shape->rank; i++)
        if (!shape->dims[i]) return NULL;
    lf_type type = *shape;
    type.dtype = v->type.dtype;
    type.tensor = true;
    type.host = false;
    lf_op *op = lf_single(g, LF_OP_FULL, &type, 1, &v);
    if (!op) return NULL;
    lf_op_link(g, op);
    return op->results;
}
