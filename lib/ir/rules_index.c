// Ops whose result elements are computed from their index: padding, joining, tiling, rolling, triangles, and reads by index.
#include "ir/builder.h"

static const char *told(lf_rule *r, size_t i) { return lf_operand_told(r->g, &r->request->args[i]); }

// A new INDEXED op in the graph.
static lf_value *indexed(lf_graph *g, lf_opcode code, const lf_type *type, size_t n, lf_value *const *operands, int axis) {
    for (unsigned i = 0; i < type->rank; i++)
        if (!type->dims[i]) return NULL;
    lf_op *op = lf_single(g, code, type, n, operands);
    if (!op) return NULL;
    op->axis = (int8_t)axis;
    lf_op_link(g, op);
    return op->results;
}

// ---- pad ------------------------------------------------------------------------------------------------------------------------

static lf_status padded_extent(lf_rule *r, unsigned axis, lf_value *n, lf_value *lo, lf_value *hi, lf_value **out) {
    lf_graph *g = r->g;
    lf_value *zero = lf_const_int(g, 0), *most = lf_const_int(g, INT64_MAX / 4);
    // Crops come first: taking more than there is is an error even where the other side pads.
    lf_value *cut = lf_int2(g, LF_OP_ADD, lf_int2(g, LF_OP_MIN, lo, zero), lf_int2(g, LF_OP_MIN, hi, zero));
    LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_GE, lf_int2(g, LF_OP_ADD, n, cut), zero), LF_NUMBERS(n, lo, hi),
                           "axis %u of %s has extent {0}: padding by {1} and {2} takes away more than there is", axis,
                           told(r, 0)));
    lf_value *fits = lf_test2(g, LF_OP_LAND, lf_test2(g, LF_OP_LE, lo, most), lf_test2(g, LF_OP_LE, hi, most));
    LF_TRY(lf_rule_require(r, fits, LF_NUMBERS(lo, hi), "padding of axis %u of %s by {0} and {1} is too large", axis,
                           told(r, 0)));
    return lf_give(lf_extent_add(g, lf_int2(g, LF_OP_ADD, n, lo), hi), out);
}

lf_status lf_rule_PAD(lf_rule *r, lf_value **out) {
    lf_value *x, *value, *low[LF_MAX_RANK];
    const lf_operand *sides[2];
    LF_TRY(lf_read_tensor(r, 0, &x));
    for (unsigned k = 0; k < 2; k++) {
        size_t n;
        LF_TRY(lf_read_list(r, k + 1, "paddings", &sides[k], &n));
        if (n != x->type.rank)
            return lf_rule_error(r, "%zu paddings are given for %s of rank %u", n, told(r, 0), x->type.rank);
    }
    LF_TRY(lf_read_scalar_as(r, 3, "the padding value", x->type.dtype, &value));
    lf_type shape = x->type;
    shape.named = 0;
    for (unsigned i = 0; i < x->type.rank; i++) {
        lf_value *high;
        LF_TRY(lf_read_integer(r, &sides[0][i], "the padding", false, &low[i]));
        LF_TRY(lf_read_integer(r, &sides[1][i], "the padding", false, &high));
        LF_TRY(padded_extent(r, i, x->type.dims[i], low[i], high, &shape.dims[i]));
    }
    LF_TRY(lf_give(indexed(r->g, LF_OP_PAD, &shape, 2, (lf_value *[]){x, value}, -1), out));
    for (unsigned i = 0; i < x->type.rank; i++) (*out)->def->extra[i] = low[i];
    return NULL;
}

// ---- cat and stack ----------------------------------------------------------------------------------------------------------------

static lf_status join(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    size_t n = r->request->n_args;
    bool stack = r->code == LF_OP_STACK;
    lf_arg *args = LF_ARENA_ARRAY(&g->arena, lf_arg, n);
    lf_value **values = LF_ARENA_ARRAY(&g->arena, lf_value *, n);
    if (!args || !values) return lf_out_of_memory();
    if (!n) return lf_rule_error(r, "needs at least one operand");
    for (size_t i = 0; i < n; i++) {
        LF_TRY(lf_read_tensor(r, i, &values[i]));
        args[i] = (lf_arg){.operand = &r->request->args[i], .value = values[i]};
    }
    unsigned rank = values[0]->type.rank, axis;
    lf_dtype d;
    if (!rank && !stack) return lf_rule_error(r, "%s has rank 0, at least 1 is needed", told(r, 0));
    if (rank + stack > LF_MAX_RANK) return lf_rule_error(r, "the result has more than %d axes", LF_MAX_RANK);
    LF_TRY(lf_attr_axis(r, rank + stack, 0, &axis));
    LF_TRY(lf_promote(r, args, n, true, &d));
    lf_type shape = values[0]->type;
    shape.named = 0;
    for (size_t i = 0; i < n; i++) {
        const lf_type *t = &values[i]->type;
        if (t->rank != rank) return lf_rule_error(r, "%s has rank %u, %s has %u", told(r, 0), rank, told(r, i), t->rank);
        for (unsigned k = 0; i && k < rank; k++) {
            if (!stack && k == axis) {
                if (!(shape.dims[k] = lf_extent_add(g, shape.dims[k], t->dims[k]))) return lf_out_of_memory();
                continue;
            }
            LF_TRY(lf_equal_extent(r, k, shape.dims[k], args[0].operand, t->dims[k], args[i].operand, &shape.dims[k]));
        }
        if (!(values[i] = lf_make_cast(g, values[i], d))) return lf_out_of_memory();
    }
    shape.dtype = d;
    for (unsigned k = shape.rank; stack && k > axis; k--) shape.dims[k] = shape.dims[k - 1];
    if (stack) shape.dims[axis] = lf_const_int(g, (int64_t)n);
    shape.rank = (uint8_t)(rank + stack);
    return lf_give(indexed(g, r->code, &shape, n, values, (int)axis), out);
}

lf_status lf_rule_CAT(lf_rule *r, lf_value **out) { return join(r, out); }
lf_status lf_rule_STACK(lf_rule *r, lf_value **out) { return join(r, out); }

// ---- repeat, roll, triangles --------------------------------------------------------------------------------------------------------

lf_status lf_rule_REPEAT(lf_rule *r, lf_value **out) {
    lf_value *x;
    const lf_operand *items;
    size_t n;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(lf_read_list(r, 1, "counts", &items, &n));
    if (n > LF_MAX_RANK) return lf_rule_error(r, "%zu counts are given, a tensor has at most %d axes", n, LF_MAX_RANK);
    if (n < x->type.rank) return lf_rule_error(r, "%zu counts are given for %s of rank %u", n, told(r, 0), x->type.rank);
    lf_type shape = lf_tensor_type(x->type.dtype, (unsigned)n);
    size_t added = n - x->type.rank;
    for (size_t i = 0; i < n; i++) {
        lf_value *count;
        LF_TRY(lf_size(r, &items[i], "the count", &count));
        shape.dims[i] = i < added ? count : lf_extent_mul(r->g, count, x->type.dims[i - added]);
    }
    return lf_give(indexed(r->g, LF_OP_REPEAT, &shape, 1, &x, -1), out);
}

lf_status lf_rule_ROLL(lf_rule *r, lf_value **out) {
    lf_value *x, *amount[LF_MAX_RANK] = {0};
    const lf_operand *items;
    size_t n;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(lf_read_list(r, 1, "amounts", &items, &n));
    // The axes in the order given: amount k belongs to axis k of the list.
    const lf_attr *a = lf_attr_of(r, LF_ATTR_AXES);
    uint32_t all;
    LF_TRY(lf_attr_axes(r, x->type.rank, true, 0, &all));
    bool list = a->operand.kind == LF_OPERAND_LIST;
    size_t n_axes = list ? a->operand.n_items : 1;
    if (n != n_axes) return lf_rule_error(r, "%zu amounts are given for %zu axes", n, n_axes);
    for (size_t i = 0; i < n; i++) {
        unsigned axis;
        lf_value *by;
        LF_TRY(lf_axis_number(r, list ? &a->operand.items[i] : &a->operand, x->type.rank, &axis));
        LF_TRY(lf_read_integer(r, &items[i], "the amount", true, &by));
        amount[axis] = by;
    }
    LF_TRY(lf_give(indexed(r->g, LF_OP_ROLL, &x->type, 1, &x, -1), out));
    for (unsigned i = 0; i < x->type.rank; i++) (*out)->def->extra[i] = amount[i];
    (*out)->def->axes = all;
    return NULL;
}

static lf_status triangle(lf_rule *r, lf_value **out) {
    lf_value *x, *diagonal = lf_const_int(r->g, 0);
    const lf_attr *a = lf_attr_of(r, LF_ATTR_DIAGONAL);
    LF_TRY(lf_read_tensor(r, 0, &x));
    if (x->type.rank < 2) return lf_rule_error(r, "%s has rank %u, at least 2 is needed", told(r, 0), x->type.rank);
    if (a) LF_TRY(lf_read_integer(r, &a->operand, "diagonal=", true, &diagonal));
    return lf_give(indexed(r->g, r->code, &x->type, 2, (lf_value *[]){x, diagonal}, -1), out);
}

lf_status lf_rule_TRIU(lf_rule *r, lf_value **out) { return triangle(r, out); }
lf_status lf_rule_TRIL(lf_rule *r, lf_value **out) { return triangle(r, out); }

// ---- reads by index -----------------------------------------------------------------------------------------------------------------

lf_status lf_read_indices(lf_rule *r, size_t i, lf_value **out) {
    LF_TRY(lf_read_tensor(r, i, out));
    lf_dtype d = (*out)->type.dtype;
    if (d == LF_I32 || d == LF_I64) return NULL;
    return lf_rule_error(r, "indices are i32 or i64, found %s", told(r, i));
}

lf_status lf_read_indexed(lf_rule *r, lf_value **out, unsigned *out_axis) {
    LF_TRY(lf_read_tensor(r, 0, out));
    if (!(*out)->type.rank) return lf_rule_error(r, "%s has rank 0, at least 1 is needed", told(r, 0));
    return lf_attr_axis(r, (*out)->type.rank, LF_NO_DEFAULT, out_axis);
}

lf_status lf_require_smaller(lf_rule *r, const lf_value *idx, size_t idx_arg, const lf_value *x, size_t x_arg, int axis) {
    if (idx->type.rank != x->type.rank)
        return lf_rule_error(r, "%s has rank %u, %s has %u", told(r, x_arg), x->type.rank, told(r, idx_arg), idx->type.rank);
    for (unsigned i = 0; i < x->type.rank; i++) {
        lf_value *a = idx->type.dims[i], *b = x->type.dims[i];
        if ((int)i == axis) continue;
        LF_TRY(lf_rule_require(r, lf_test2(r->g, LF_OP_LE, a, b), LF_NUMBERS(a, b),
                               "axis %u of %s has extent {0}, that of %s only {1}", i, told(r, idx_arg), told(r, x_arg)));
    }
    return NULL;
}

lf_status lf_rule_TAKE(lf_rule *r, lf_value **out) {
    lf_value *x, *idx;
    unsigned axis, k = 0;
    LF_TRY(lf_read_indexed(r, &x, &axis));
    LF_TRY(lf_read_indices(r, 1, &idx));
    unsigned rank = x->type.rank - 1u + idx->type.rank;
    if (rank > LF_MAX_RANK) return lf_rule_error(r, "the result has %u axes, at most %d are supported", rank, LF_MAX_RANK);
    lf_type shape = lf_tensor_type(x->type.dtype, rank);
    for (unsigned i = 0; i < x->type.rank; i++) {
        if (i != axis) shape.dims[k++] = x->type.dims[i];
        for (unsigned j = 0; i == axis && j < idx->type.rank; j++) shape.dims[k++] = idx->type.dims[j];
    }
    return lf_give(indexed(r->g, LF_OP_TAKE, &shape, 2, (lf_value *[]){x, idx}, (int)axis), out);
}

lf_status lf_rule_GATHER(lf_rule *r, lf_value **out) {
    lf_value *x, *idx;
    unsigned axis;
    LF_TRY(lf_read_indexed(r, &x, &axis));
    LF_TRY(lf_read_indices(r, 1, &idx));
    LF_TRY(lf_require_smaller(r, idx, 1, x, 0, (int)axis));
    lf_type shape = idx->type;
    shape.dtype = x->type.dtype;
    shape.named = 0;
    return lf_give(indexed(r->g, LF_OP_GATHER, &shape, 2, (lf_value *[]){x, idx}, (int)axis), out);
}

lf_status lf_rule_INDEX(lf_rule *r, lf_value **out) {
    lf_value *x, *i;
    unsigned axis;
    lf_arg a;
    LF_TRY(lf_read_indexed(r, &x, &axis));
    LF_TRY(lf_read_value(r, 1, &a));
    lf_dtype d = lf_arg_dtype(&a);
    if (lf_arg_tensor_p(&a) || (d != LF_I32 && d != LF_I64))
        return lf_rule_error(r, "the index must be an i32 or i64 scalar, found %s", told(r, 1));
    LF_TRY(lf_converted(r, &a, d, &i));
    lf_type shape = lf_tensor_type(x->type.dtype, 0);
    for (unsigned k = 0; k < x->type.rank; k++)
        if (k != axis) shape.dims[shape.rank++] = x->type.dims[k];
    return lf_give(indexed(r->g, LF_OP_INDEX, &shape, 2, (lf_value *[]){x, i}, (int)axis), out);
}

lf_status lf_rule_ONEHOT(lf_rule *r, lf_value **out) {
    lf_value *idx, *n;
    LF_TRY(lf_read_indices(r, 0, &idx));
    LF_TRY(lf_size(r, &r->request->args[1], "the extent", &n));
    if (idx->type.rank == LF_MAX_RANK)
        return lf_rule_error(r, "%s has rank %d, the result would have one more", told(r, 0), LF_MAX_RANK);
    lf_type shape = idx->type;
    shape.named = 0;
    shape.dtype = LF_I64;
    shape.dims[shape.rank++] = n;
    return lf_give(indexed(r->g, LF_OP_ONEHOT, &shape, 1, &idx, (int)shape.rank - 1), out);
}
