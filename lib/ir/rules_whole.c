// Ops on whole axes: scans, order, scatter, matrix products.
#include "ir/builder.h"
#include <string.h>

static const char *told(lf_rule *r, size_t i) { return lf_operand_told(r->g, &r->request->args[i]); }

static lf_status refuse_complex(lf_rule *r, const lf_value *x, const char *why) {
    if (!lf_is_complex(x->type.dtype)) return NULL;
    return lf_rule_error(r, "not supported for %s%s: found %s", lf_dtype_name(x->type.dtype), why, told(r, 0));
}

// ---- scans and order --------------------------------------------------------------------------------------------------------------

// An op along `axis` of x (of rank >= 1) with x's shape but for extent `k` there; positions: a second result of i64.
static lf_op *along(lf_graph *g, lf_opcode code, lf_value *x, unsigned axis, lf_value *k, bool positions, bool flag) {
    if (!x || !k) return NULL;
    lf_op *op = lf_op_new(g, code, 1, positions ? 2 : 1);
    if (!op) return NULL;
    op->operands[0] = x;
    op->compute = x->type.dtype;
    op->axis = (int8_t)axis;
    op->flag = flag;
    for (size_t i = 0; i < op->n_results; i++) {
        op->results[i].type = x->type;
        op->results[i].type.dims[axis] = k;
        if (code == LF_OP_TOPK) op->results[i].type.named = 0;
        if (i) op->results[i].type.dtype = LF_I64;
    }
    lf_op_link(g, op);
    return op;
}

// Rank 0 goes through rank 1.
static lf_status whole_axis(lf_rule *r, lf_value *x, int absent, lf_value *k, size_t n, bool flag, lf_value **out) {
    lf_graph *g = r->g;
    unsigned axis;
    LF_TRY(lf_attr_axis(r, x->type.rank, absent, &axis));
    bool flat = !x->type.rank;
    lf_value *source = flat ? lf_make_unsqueeze(g, x, 1) : x;
    if (!source) return lf_out_of_memory();
    lf_op *op = along(g, r->code, source, axis, k ? k : source->type.dims[axis], n == 2, flag);
    if (!op) return lf_out_of_memory();
    for (size_t i = 0; i < n; i++) {
        out[i] = &op->results[i];
        if (flat) LF_TRY(lf_give(lf_make_squeeze(g, out[i], 1), &out[i]));
    }
    return NULL;
}

static lf_status running(lf_rule *r, lf_value **out) {
    lf_value *x;
    LF_TRY(lf_read_tensor(r, 0, &x));
    lf_dtype d = x->type.dtype, kept = (d == LF_BOOL || lf_is_integer(d)) && d != LF_U64 ? LF_I64 : d;
    if (!(x = lf_make_cast(r->g, x, lf_dtype_compute(kept)))) return lf_out_of_memory();
    LF_TRY(whole_axis(r, x, LF_NO_DEFAULT, NULL, 1, false, out));
    return lf_give(lf_make_cast(r->g, *out, kept), out);
}

lf_status lf_rule_CUMSUM(lf_rule *r, lf_value **out) { return running(r, out); }
lf_status lf_rule_CUMPROD(lf_rule *r, lf_value **out) { return running(r, out); }

lf_status lf_rule_LOGCUMSUMEXP(lf_rule *r, lf_value **out) {
    lf_value *x;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(refuse_complex(r, x, ""));
    lf_dtype d = lf_is_float(x->type.dtype) ? x->type.dtype : LF_F32;
    if (!(x = lf_make_cast(r->g, x, lf_dtype_compute(d)))) return lf_out_of_memory();
    LF_TRY(whole_axis(r, x, LF_NO_DEFAULT, NULL, 1, false, out));
    return lf_give(lf_make_cast(r->g, *out, d), out);
}

static lf_status running_extreme(lf_rule *r, lf_value **out) {
    lf_value *x;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(refuse_complex(r, x, ", which has no order"));
    return whole_axis(r, x, LF_NO_DEFAULT, NULL, 2, false, out);
}

lf_status lf_rule_CUMMAX(lf_rule *r, lf_value **out) { return running_extreme(r, out); }
lf_status lf_rule_CUMMIN(lf_rule *r, lf_value **out) { return running_extreme(r, out); }

static lf_status sorted(lf_rule *r, lf_value **out) {
    lf_value *x;
    bool descending;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(refuse_complex(r, x, ", which has no order"));
    LF_TRY(lf_attr_flag(r, LF_ATTR_DESCENDING, false, &descending));
    return whole_axis(r, x, -1, NULL, 2, descending, out);
}

lf_status lf_rule_SORT(lf_rule *r, lf_value **out) { return sorted(r, out); }

lf_status lf_rule_ARGSORT(lf_rule *r, lf_value **out) {
    lf_rule sort = *r;
    lf_value *both[2];
    sort.code = LF_OP_SORT;
    LF_TRY(sorted(&sort, both));
    out[0] = both[1];
    return NULL;
}

lf_status lf_rule_TOPK(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    lf_value *x, *k;
    unsigned axis;
    bool largest;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(refuse_complex(r, x, ", which has no order"));
    LF_TRY(lf_attr_flag(r, LF_ATTR_LARGEST, true, &largest));
    LF_TRY(lf_read_integer(r, &r->request->args[1], "k", false, &k));
    LF_TRY(lf_attr_axis(r, x->type.rank, -1, &axis));
    lf_value *one = lf_const_int(g, 1), *n = x->type.rank ? x->type.dims[axis] : one,
             *least = x->type.rank ? lf_const_int(g, 0) : one;
    // Non-negative first: the extent of the result is then known to be one.
    LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_GE, k, least), LF_NUMBERS(k, n),
                           "k is {0}, the extent of axis %u of %s is {1}", axis, told(r, 0)));
    LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_LE, k, n), LF_NUMBERS(k, n), "k is {0}, the extent of axis %u of %s is {1}",
                           axis, told(r, 0)));
    return whole_axis(r, x, -1, x->type.rank ? k : one, 2, largest, out);
}

// ---- scatter ------------------------------------------------------------------------------------------------------------------------

lf_status lf_rule_SCATTER(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    lf_value *x, *idx, *src;
    unsigned axis, mode;
    lf_arg a;
    LF_TRY(lf_read_indexed(r, &x, &axis));
    LF_TRY(lf_read_indices(r, 1, &idx));
    LF_TRY(lf_read_value(r, 2, &a));
    LF_TRY(lf_attr_word(r, LF_ATTR_MODE, "set add mul min max", LF_SCATTER_SET, &mode));
    LF_TRY(lf_require_smaller(r, idx, 1, x, 0, (int)axis));
    if (lf_is_complex(x->type.dtype) && mode >= LF_SCATTER_MIN)
        return lf_rule_error(r, "mode=%s is not supported for %s, which has no order",
                             mode == LF_SCATTER_MIN ? "min" : "max", lf_dtype_name(x->type.dtype));
    LF_TRY(lf_converted(r, &a, x->type.dtype, &src));
    if (src->type.host && !(src = lf_make_item(g, src))) return lf_out_of_memory();
    if (src->type.tensor && src->type.rank) {
        LF_TRY(lf_require_smaller(r, idx, 1, src, 2, -1));
        // What lies beyond idx is not read.
        lf_type window = idx->type;
        window.named = 0;
        lf_view view = lf_view_identity(window.rank);
        if (!lf_same_shape(&src->type, &idx->type)) src = lf_make_view(g, LF_OP_SLICE, src, &window, &view);
    } else if (src->type.tensor)
        src = lf_make_expand(g, src, &idx->type);
    lf_op *op = lf_single(g, LF_OP_SCATTER, &x->type, 3, (lf_value *[]){x, idx, src});
    if (!op) return lf_out_of_memory();
    op->compute = x->type.dtype;
    op->axis = (int8_t)axis;
    op->mode = (uint8_t)mode;
    op->results[0].type.named = 0;
    lf_op_link(g, op);
    return lf_give(op->results, out);
}

// ---- matrix products ------------------------------------------------------------------------------------------------------------------

// a · b in dtype d, of which torch's rules make [.., m, k] · [.., k, n].
static lf_status product(lf_rule *r, lf_value *a, lf_value *b, lf_dtype d, lf_value **out) {
    lf_graph *g = r->g;
    const lf_operand *names[2] = {&r->request->args[0], &r->request->args[1]};
    bool row = a->type.rank == 1, column = b->type.rank == 1;
    if (!a->type.rank || !b->type.rank) return lf_rule_error(r, "%s has rank 0", told(r, a->type.rank ? 1 : 0));
    a = lf_make_cast(g, a, d);
    b = lf_make_cast(g, b, d);
    if (row) a = lf_make_unsqueeze(g, a, 1);
    if (column) b = lf_make_unsqueeze(g, b, 2);
    if (!a || !b) return lf_out_of_memory();
    unsigned ra = a->type.rank, rb = b->type.rank, rank = ra > rb ? ra : rb;
    lf_value *m = a->type.dims[ra - 2], *k = a->type.dims[ra - 1], *k2 = b->type.dims[rb - 2], *n = b->type.dims[rb - 1];
    LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_EQ, k, k2), LF_NUMBERS(k, k2),
                           "the inner extents of %s and %s differ: {0} and {1}", told(r, 0), told(r, 1)));
    // The leading axes broadcast.
    lf_type shape = lf_tensor_type(d, rank), left, right;
    for (unsigned i = 0; i + 2 < rank; i++) {
        lf_axis_extent common = {0};
        for (unsigned side = 0; side < 2; side++) {
            const lf_value *v = side ? b : a;
            if (i < rank - v->type.rank) continue;
            unsigned own = i - (rank - v->type.rank);
            lf_axis_extent next = {v->type.dims[own], v->type.named >> own & 1, names[side]};
            if (!common.extent)
                common = next;
            else
                LF_TRY(lf_common_extent(r, i, &common, &next));
        }
        shape.dims[i] = common.extent;
    }
    left = right = shape;
    left.dims[rank - 2] = m;
    left.dims[rank - 1] = k;
    right.dims[rank - 2] = k2;
    right.dims[rank - 1] = n;
    shape.dims[rank - 2] = m;
    shape.dims[rank - 1] = n;
    a = lf_make_expand(g, a, &left);
    b = lf_make_expand(g, b, &right);
    lf_type whole = shape;
    if (rank == LF_MAX_RANK) { // a kernel walks k too: the first two axes become one
        lf_type *types[] = {&shape, &left, &right};
        for (unsigned i = 0; i < 3; i++) {
            types[i]->dims[0] = lf_extent_mul(g, types[i]->dims[0], types[i]->dims[1]);
            types[i]->rank--;
            types[i]->named = 0;
            memmove(&types[i]->dims[1], &types[i]->dims[2], (types[i]->rank - 1u) * sizeof types[i]->dims[0]);
        }
        if (a) a = lf_make_reshape(g, a, &left);
        if (b) b = lf_make_reshape(g, b, &right);
    }
    lf_op *op = a && b ? lf_single(g, LF_OP_MATMUL, &shape, 2, (lf_value *[]){a, b}) : NULL;
    if (!op) return lf_out_of_memory();
    op->compute = d;
    lf_op_link(g, op);
    lf_value *y = op->results;
    if (rank == LF_MAX_RANK && !(y = lf_make_reshape(g, y, &whole))) return lf_out_of_memory();
    uint32_t drop = (row ? 1u << (rank - 2) : 0) | (column ? 1u << (rank - 1) : 0);
    return lf_give(drop ? lf_make_squeeze(g, y, drop) : y, out);
}

lf_status lf_rule_MATMUL(lf_rule *r, lf_value **out) {
    lf_arg args[2];
    lf_value *v[2];
    lf_dtype d;
    for (size_t i = 0; i < 2; i++) {
        LF_TRY(lf_read_tensor(r, i, &v[i]));
        args[i] = (lf_arg){.operand = &r->request->args[i], .value = v[i]};
    }
    LF_TRY(lf_promote(r, args, 2, true, &d));
    return product(r, v[0], v[1], d, out);
}

lf_status lf_rule_LINEAR(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    lf_arg args[3];
    lf_value *v[3], *y;
    lf_dtype d;
    for (size_t i = 0; i < 3; i++) {
        LF_TRY(lf_read_tensor(r, i, &v[i]));
        args[i] = (lf_arg){.operand = &r->request->args[i], .value = v[i]};
    }
    LF_TRY(lf_promote(r, args, 3, true, &d));
    lf_dtype t = v[2] ? lf_dtype_compute(d) : d; // without a bias there is one rounding anyway
    lf_value *w = v[1]->type.rank == 2 ? lf_make_permute(g, LF_OP_TRANSPOSE, v[1], (unsigned[]){1, 0}) : v[1];
    if (!w) return lf_out_of_memory();
    if (!(v[0] = lf_make_cast(g, v[0], d)) || !(w = lf_make_cast(g, w, d))) return lf_out_of_memory();
    LF_TRY(product(r, v[0], w, t, &y));
    if (!v[2]) return lf_give(y, out);
    lf_arg sum[2] = {{.operand = &r->request->args[0], .value = y}, {.operand = &r->request->args[2]}};
    if (!(sum[1].value = lf_make_cast(g, lf_make_cast(g, v[2], d), t))) return lf_out_of_memory();
    lf_elem_plan plan = {.compute = t, .result = t};
    LF_TRY(lf_build_elem(r, LF_OP_ADD, sum, 2, &plan, out));
    return lf_give(lf_make_cast(g, *out, d), out);
}
