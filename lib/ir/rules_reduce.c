// Primitive reductions, and metadata ops between tensors and scalars.
#include "ir/builder.h"
#include <string.h>

// ---- reductions -----------------------------------------------------------------------------------------------------------------

typedef struct reduction {
    lf_value *x;
    uint32_t axes;
    bool keepdim;
} reduction;

static lf_status refuse(lf_rule *r, lf_dtype d, const char *why) {
    return lf_rule_error(r, "not supported for %s%s: found %s", lf_dtype_name(d), why,
                         lf_operand_told(r->g, &r->request->args[0]));
}

static lf_status read_reduction(lf_rule *r, reduction *out) {
    LF_TRY(lf_read_tensor(r, 0, &out->x));
    LF_TRY(lf_attr_flag(r, LF_ATTR_KEEPDIM, false, &out->keepdim));
    return lf_attr_axes(r, out->x->type.rank, false, (1u << out->x->type.rank) - 1, &out->axes);
}

// Sums and products accumulate in f32, f64, i64, u64, c64 or c128, and are rounded or wrapped to their dtype at the end.
static lf_status accumulate(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    reduction q;
    LF_TRY(read_reduction(r, &q));
    lf_dtype d = q.x->type.dtype, kept = d;
    if (lf_attr_of(r, LF_ATTR_DTYPE)) {
        LF_TRY(lf_attr_dtype(r, d, &kept));
        if (kept == LF_BOOL) return lf_rule_error(r, "dtype=bool is not supported: any and all reduce to bool");
    } else if ((d == LF_BOOL || lf_is_integer(d)) && d != LF_U64)
        kept = LF_I64;
    lf_dtype wide = lf_is_signed(kept) ? LF_I64 : lf_is_unsigned(kept) ? LF_U64 : lf_dtype_compute(kept);
    lf_value *x = lf_make_cast(g, lf_make_cast(g, q.x, kept), wide);
    return lf_give(lf_make_cast(g, lf_make_reduce(g, r->code, x, q.axes, q.keepdim), kept), out);
}

lf_status lf_rule_SUM(lf_rule *r, lf_value **out) { return accumulate(r, out); }
lf_status lf_rule_PROD(lf_rule *r, lf_value **out) { return accumulate(r, out); }

// min, max, argmin, argmax of nothing are an error, unless the result has no elements either.
static lf_status need_elements(lf_rule *r, const reduction *q) {
    lf_graph *g = r->g;
    lf_value *reduced[LF_MAX_RANK], *kept[LF_MAX_RANK], *zero = lf_const_int(g, 0);
    size_t n_reduced = 0, n_kept = 0;
    for (unsigned i = 0; i < q->x->type.rank; i++) {
        if (q->axes >> i & 1)
            reduced[n_reduced++] = q->x->type.dims[i];
        else
            kept[n_kept++] = q->x->type.dims[i];
    }
    lf_value *n = lf_product_of(g, reduced, n_reduced), *m = lf_product_of(g, kept, n_kept);
    lf_value *some = lf_test2(g, LF_OP_NE, n, zero), *empty = lf_test2(g, LF_OP_EQ, m, zero);
    return lf_rule_require(r, lf_test2(g, LF_OP_LOR, some, empty), LF_NUMBERS(n, m),
                           "over no element: %s has {0} elements along the reduced axes, for each of {1} results",
                           lf_operand_told(g, &r->request->args[0]));
}

static lf_status extreme(lf_rule *r, lf_value **out) {
    reduction q;
    LF_TRY(read_reduction(r, &q));
    if (lf_is_complex(q.x->type.dtype)) return refuse(r, q.x->type.dtype, ", which has no order");
    LF_TRY(need_elements(r, &q));
    return lf_give(lf_make_reduce(r->g, r->code, q.x, q.axes, q.keepdim), out);
}

lf_status lf_rule_RMIN(lf_rule *r, lf_value **out) { return extreme(r, out); }
lf_status lf_rule_RMAX(lf_rule *r, lf_value **out) { return extreme(r, out); }

static lf_status truth(lf_rule *r, lf_value **out) {
    reduction q;
    LF_TRY(read_reduction(r, &q));
    return lf_give(lf_make_reduce(r->g, r->code, lf_make_cast(r->g, q.x, LF_BOOL), q.axes, q.keepdim), out);
}

lf_status lf_rule_ANY(lf_rule *r, lf_value **out) { return truth(r, out); }
lf_status lf_rule_ALL(lf_rule *r, lf_value **out) { return truth(r, out); }

static lf_status position(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    reduction q;
    unsigned axis = 0;
    LF_TRY(lf_read_tensor(r, 0, &q.x));
    LF_TRY(lf_attr_flag(r, LF_ATTR_KEEPDIM, false, &q.keepdim));
    if (lf_is_complex(q.x->type.dtype)) return refuse(r, q.x->type.dtype, ", which has no order");
    bool one = lf_attr_of(r, LF_ATTR_AXIS) != NULL;
    if (one) LF_TRY(lf_attr_axis(r, q.x->type.rank, LF_NO_DEFAULT, &axis));
    if (!q.x->type.rank) {
        // The position of the only element.
        q.x = lf_make_unsqueeze(g, q.x, 1);
        return lf_give(lf_make_reduce(g, r->code, q.x, 1, false), out);
    }
    q.axes = one ? 1u << axis : (1u << q.x->type.rank) - 1;
    LF_TRY(need_elements(r, &q));
    return lf_give(lf_make_reduce(g, r->code, q.x, q.axes, q.keepdim), out);
}

lf_status lf_rule_ARGMIN(lf_rule *r, lf_value **out) { return position(r, out); }
lf_status lf_rule_ARGMAX(lf_rule *r, lf_value **out) { return position(r, out); }

// ---- metadata -------------------------------------------------------------------------------------------------------------------

// A tensor as it is, on the host too.
static lf_status any_tensor(lf_rule *r, lf_value **out) {
    lf_arg a;
    LF_TRY(lf_read_value(r, 0, &a));
    if (!lf_arg_tensor_p(&a)) return lf_read_tensor(r, 0, out); // for its words
    *out = a.value;
    return NULL;
}

static lf_status axis_of(lf_rule *r, lf_value **out_x, unsigned *out_axis) {
    LF_TRY(any_tensor(r, out_x));
    if (!(*out_x)->type.rank)
        return lf_rule_error(r, "%s has rank 0, there is no axis", lf_operand_told(r->g, &r->request->args[0]));
    return lf_axis_number(r, &r->request->args[1], (*out_x)->type.rank, out_axis);
}

lf_status lf_rule_SIZE(lf_rule *r, lf_value **out) {
    lf_value *x;
    unsigned axis;
    LF_TRY(axis_of(r, &x, &axis));
    *out = x->type.dims[axis];
    return NULL;
}

lf_status lf_rule_STRIDE(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    lf_value *x, *factors[LF_MAX_RANK];
    unsigned axis, n = 0;
    LF_TRY(axis_of(r, &x, &axis));
    if (x->def->code == LF_OP_PARAM) return lf_give(lf_make_pitch(g, x, axis), out);
    // Row-major; an extent of 0 counts as 1.
    for (unsigned i = axis + 1; i < x->type.rank; i++)
        factors[n++] = lf_int2(g, LF_OP_MAX, x->type.dims[i], lf_const_int(g, 1));
    return lf_give(lf_product_of(g, factors, n), out);
}

lf_status lf_rule_NUMEL(lf_rule *r, lf_value **out) {
    lf_value *x;
    LF_TRY(any_tensor(r, &x));
    return lf_give(lf_numel_of(r->g, &x->type), out);
}

lf_status lf_rule_ITEM(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    lf_value *x;
    LF_TRY(any_tensor(r, &x));
    lf_value *n = lf_numel_of(g, &x->type);
    LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_EQ, n, lf_const_int(g, 1)), LF_NUMBERS(n),
                           "%s has {0} elements, 1 is needed", lf_operand_told(g, &r->request->args[0])));
    return lf_give(lf_make_item(g, x), out);
}

lf_status lf_rule_SCALAR_TENSOR(lf_rule *r, lf_value **out) {
    lf_arg a;
    lf_value *s;
    LF_TRY(lf_read_scalar(r, 0, &a));
    LF_TRY(lf_converted(r, &a, lf_arg_dtype(&a), &s));
    return lf_give(lf_make_scalar_tensor(r->g, s), out);
}
