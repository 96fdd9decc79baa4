// Composites over axes: softmax, the norms, cross_entropy, dropout.
#include "ir/expand.h"

static const char *told(lf_rule *r, size_t i) { return lf_operand_told(r->g, &r->request->args[i]); }

// ---- softmax --------------------------------------------------------------------------------------------------------------------

// x - max, and the sum of its exponentials along `axes` (kept).
static lf_value *shifted(lf_graph *g, lf_value *x, uint32_t axes, lf_value **out_exp, lf_value **out_sum) {
    lf_value *z = lf_step2(g, LF_OP_SUB, x, lf_make_reduce(g, LF_OP_RMAX, x, axes, true));
    *out_exp = lf_step1(g, LF_OP_EXP, z);
    *out_sum = lf_make_reduce(g, LF_OP_SUM, *out_exp, axes, true);
    return z;
}

static lf_status soft(lf_rule *r, bool log, lf_value **out) {
    lf_composite c;
    unsigned axis;
    lf_value *e, *sum, *y;
    LF_TRY(lf_composite_begin(r, false, &c));
    LF_TRY(lf_attr_axis(r, c.x->type.rank, LF_NO_DEFAULT, &axis));
    lf_value *z = shifted(c.g, c.x, c.x->type.rank ? 1u << axis : 0, &e, &sum);
    if (log)
        y = lf_step2(c.g, LF_OP_SUB, z, lf_step1(c.g, LF_OP_LOG, sum));
    else
        y = lf_step2(c.g, LF_OP_MUL, e, lf_step1(c.g, LF_OP_RECIPROCAL, sum));
    return lf_composite_end(&c, y, c.d, out);
}

lf_status lf_rule_SOFTMAX(lf_rule *r, lf_value **out) { return soft(r, false, out); }
lf_status lf_rule_LOG_SOFTMAX(lf_rule *r, lf_value **out) { return soft(r, true, out); }

// ---- norms ------------------------------------------------------------------------------------------------------------------------

// Operand i as a real tensor in t, or NULL for none.
static lf_status read_weight(const lf_composite *c, size_t i, lf_value **out) {
    LF_TRY(lf_read_tensor(c->r, i, out));
    if (!*out) return NULL;
    if (lf_is_complex((*out)->type.dtype))
        return lf_rule_error(c->r, "complex operands are not supported, found %s", told(c->r, i));
    return lf_give(lf_make_cast(c->g, *out, c->t), out);
}

static lf_status read_eps(const lf_composite *c, size_t i, lf_value **out) {
    lf_arg a;
    LF_TRY(lf_read_value(c->r, i, &a));
    if (lf_arg_tensor_p(&a) || lf_is_complex(lf_arg_dtype(&a)))
        return lf_rule_error(c->r, "eps must be a real scalar, found %s", told(c->r, i));
    return lf_converted(c->r, &a, c->t, out);
}

// y · w + b, where w and b broadcast with y; none omits one.
static lf_status scale_and_shift(const lf_composite *c, lf_value *y, lf_value *w, size_t w_arg, lf_value *b, size_t b_arg,
                                 lf_value **out) {
    lf_rule *r = c->r;
    lf_value *terms[2] = {w, b};
    size_t names[2] = {w_arg, b_arg};
    if (!y) return lf_out_of_memory();
    for (unsigned k = 0; k < 2; k++) {
        if (!terms[k]) continue;
        lf_arg args[2] = {{.operand = &r->request->args[0], .value = y},
                          {.operand = &r->request->args[names[k]], .value = terms[k]}};
        lf_elem_plan plan = {.compute = c->t, .result = c->t};
        LF_TRY(lf_build_elem(r, k ? LF_OP_ADD : LF_OP_MUL, args, 2, &plan, &y));
    }
    return lf_composite_end(c, y, c->d, out);
}

static lf_status group_norm(lf_rule *r, bool centred, lf_value **out) {
    lf_composite c;
    lf_value *w, *b = NULL, *eps, *spread, *y;
    size_t b_arg = centred ? 2 : 1;
    LF_TRY(lf_composite_begin(r, false, &c));
    LF_TRY(read_weight(&c, 1, &w));
    if (centred) LF_TRY(read_weight(&c, 2, &b));
    LF_TRY(read_eps(&c, b_arg + 1, &eps));
    unsigned rank = c.x->type.rank;
    LF_TRY(lf_attr_axes(r, rank, false, rank ? 1u << (rank - 1) : 0, &c.axes));
    lf_literal none = lf_literal_int(0);
    if (centred) {
        y = lf_step2(c.g, LF_OP_SUB, c.x, lf_mean_of(c.g, c.x, c.axes, true));
        spread = lf_var_from(c.g, y, c.axes, true, &none);
    } else {
        spread = lf_mean_of(c.g, lf_step2(c.g, LF_OP_MUL, c.x, c.x), c.axes, true);
        y = c.x;
    }
    y = lf_step2(c.g, LF_OP_MUL, y, lf_step1(c.g, LF_OP_RSQRT, lf_step2(c.g, LF_OP_ADD, spread, eps)));
    return scale_and_shift(&c, y, w, 1, b, b_arg, out);
}

lf_status lf_rule_LAYER_NORM(lf_rule *r, lf_value **out) { return group_norm(r, true, out); }
lf_status lf_rule_RMS_NORM(lf_rule *r, lf_value **out) { return group_norm(r, false, out); }

lf_status lf_rule_BATCH_NORM(lf_rule *r, lf_value **out) {
    static const char *const names[] = {"the mean", "the variance", "the weight", "the bias"};
    lf_composite c;
    lf_value *v[4], *eps;
    LF_TRY(lf_composite_begin(r, false, &c));
    if (c.x->type.rank < 2) return lf_rule_error(r, "%s has rank %u, at least 2 is needed", told(r, 0), c.x->type.rank);
    for (size_t i = 0; i < 4; i++) {
        LF_TRY(read_weight(&c, i + 1, &v[i]));
        if (!v[i]) continue;
        if (v[i]->type.rank != 1) return lf_rule_error(r, "%s must have rank 1, found %s", names[i], told(r, i + 1));
        lf_value *n = v[i]->type.dims[0], *wanted = c.x->type.dims[1];
        LF_TRY(lf_rule_require(r, lf_test2(c.g, LF_OP_EQ, n, wanted), LF_NUMBERS(n, wanted),
                               "%s %s has extent {0}, axis 1 of %s has extent {1}", names[i], told(r, i + 1), told(r, 0)));
        // Along axis 1 of x.
        lf_view view = lf_view_identity(0);
        view.broadcasts = true;
        view.map[1] = 0;
        if (!(v[i] = lf_make_view(c.g, LF_OP_BROADCAST, v[i], &c.x->type, &view))) return lf_out_of_memory();
    }
    LF_TRY(read_eps(&c, 5, &eps));
    lf_value *scale = lf_step1(c.g, LF_OP_RSQRT, lf_step2(c.g, LF_OP_ADD, v[1], eps));
    lf_value *y = lf_step2(c.g, LF_OP_MUL, lf_step2(c.g, LF_OP_SUB, c.x, v[0]), scale);
    if (v[2]) y = lf_step2(c.g, LF_OP_MUL, y, v[2]);
    if (v[3]) y = lf_step2(c.g, LF_OP_ADD, y, v[3]);
    return lf_composite_end(&c, y, c.d, out);
}

// ---- cross_entropy --------------------------------------------------------------------------------------------------------------------

lf_status lf_rule_CROSS_ENTROPY(lf_rule *r, lf_value **out) {
    lf_composite c;
    lf_value *labels, *e, *sum;
    int64_t skipped = -100;
    const lf_attr *a = lf_attr_of(r, LF_ATTR_IGNORE_INDEX);
    LF_TRY(lf_composite_begin(r, false, &c));
    LF_TRY(lf_read_indices(r, 1, &labels));
    if (a) LF_TRY(lf_constant_integer(r, &a->operand, "ignore_index=", &skipped));
    lf_graph *g = c.g;
    if (c.x->type.rank != 2 || labels->type.rank != 1)
        return lf_rule_error(r, "logits of rank 2 and labels of rank 1 are needed, found %s and %s", told(r, 0), told(r, 1));
    lf_value *rows = c.x->type.dims[0], *n = labels->type.dims[0];
    LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_EQ, rows, n), LF_NUMBERS(rows, n), "%s has {0} rows, %s has {1} labels",
                           told(r, 0), told(r, 1)));
    lf_value *z = shifted(g, c.x, 2, &e, &sum);
    lf_value *loss = lf_step1(g, LF_OP_NEG, lf_step2(g, LF_OP_SUB, z, lf_step1(g, LF_OP_LOG, sum)));
    // The label of an ignored row is never looked up; a label out of range reads 0 and counts.
    lf_value *label = lf_make_cast(g, labels, LF_I64);
    lf_value *ignored = label ? lf_make_elem(g, LF_OP_EQ, LF_BOOL, label, lf_const_int(g, skipped), NULL) : NULL;
    lf_value *looked_up = lf_make_elem(g, LF_OP_SELECT, LF_I64, ignored, lf_const_int(g, 0), label);
    lf_value *column = lf_make_unsqueeze(g, looked_up, 2);
    if (!column || !loss) return lf_out_of_memory();
    lf_type type = column->type;
    type.dtype = c.t;
    lf_op *gather = lf_single(g, LF_OP_GATHER, &type, 2, (lf_value *[]){loss, column});
    if (!gather) return lf_out_of_memory();
    gather->axis = 1;
    lf_op_link(g, gather);
    lf_value *each = lf_make_squeeze(g, gather->results, 2);
    each = lf_make_elem(g, LF_OP_SELECT, c.t, ignored, lf_number(g, c.t, -0.0), each);
    lf_value *kept = lf_make_cast(g, ignored ? lf_make_elem(g, LF_OP_LNOT, LF_BOOL, ignored, NULL, NULL) : NULL, LF_I64);
    lf_value *count = lf_make_cast(g, lf_make_reduce(g, LF_OP_SUM, kept, 1, false), c.t);
    return lf_composite_end(&c, lf_step2(g, LF_OP_DIV, lf_make_reduce(g, LF_OP_SUM, each, 1, false), count), c.d, out);
}

// ---- dropout ----------------------------------------------------------------------------------------------------------------------------

lf_status lf_rule_DROPOUT(lf_rule *r, lf_value **out) {
    lf_composite c;
    lf_value *p, *p32, *values[4];
    LF_TRY(lf_composite_begin(r, false, &c));
    LF_TRY(lf_read_scalar_as(r, 1, "p", c.t, &p));
    LF_TRY(lf_read_scalar_as(r, 1, "p", LF_F32, &p32));
    LF_TRY(lf_read_integer(r, &r->request->args[2], "the seed", true, &values[2]));
    LF_TRY(lf_read_integer(r, &r->request->args[3], "the offset", true, &values[3]));
    lf_graph *g = c.g;
    values[0] = lf_number(g, LF_F32, 0);
    values[1] = lf_number(g, LF_F32, 1);
    lf_type type = c.x->type;
    type.dtype = LF_F32;
    lf_op *uniform = lf_single(g, LF_OP_UNIFORM, &type, 4, values);
    if (!uniform) return lf_out_of_memory();
    lf_op_link(g, uniform);
    lf_value *mask = lf_make_elem(g, LF_OP_GE, LF_BOOL, uniform->results, p32, NULL);
    lf_value *scale = lf_step2(g, LF_OP_DIV, lf_number(g, c.t, 1), lf_step2(g, LF_OP_SUB, lf_number(g, c.t, 1), p));
    lf_value *y = lf_step2(g, LF_OP_MUL, c.x, scale);
    LF_TRY(lf_composite_end(&c, lf_make_elem(g, LF_OP_SELECT, c.t, mask, y, lf_number(g, c.t, 0)), c.d, &out[0]));
    return lf_give(mask, &out[1]);
}
