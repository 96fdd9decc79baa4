// Reductions that mean a formula: mean, var, std, norm, logsumexp, count_nonzero.
#include "ir/expand.h"
#include <math.h>

lf_value *lf_step1(lf_graph *g, lf_opcode code, lf_value *a) {
    return a ? lf_make_elem(g, code, a->type.dtype, a, NULL, NULL) : NULL;
}
lf_value *lf_step2(lf_graph *g, lf_opcode code, lf_value *a, lf_value *b) {
    return a && b ? lf_make_elem(g, code, a->type.dtype, a, b, NULL) : NULL;
}
lf_value *lf_number(lf_graph *g, lf_dtype d, double v) {
    lf_scalar s;
    lf_scalar_from_float(v, v, d, &s);
    return lf_const(g, d, s);
}

lf_status lf_composite_begin(lf_rule *r, bool complex, lf_composite *c) {
    *c = (lf_composite){.r = r, .g = r->g};
    LF_TRY(lf_read_tensor(r, 0, &c->x));
    lf_dtype d = c->x->type.dtype;
    if (lf_is_complex(d) && !complex)
        return lf_rule_error(r, "not supported for %s: it takes real operands, found %s", lf_dtype_name(d),
                             lf_operand_told(r->g, &r->request->args[0]));
    c->d = lf_is_float(d) || lf_is_complex(d) ? d : LF_F32;
    c->t = lf_dtype_compute(c->d);
    return lf_give(lf_make_cast(r->g, c->x, c->t), &c->x);
}

lf_status lf_composite_axes(lf_composite *c) {
    LF_TRY(lf_attr_flag(c->r, LF_ATTR_KEEPDIM, false, &c->keepdim));
    return lf_attr_axes(c->r, c->x->type.rank, false, (1u << c->x->type.rank) - 1, &c->axes);
}

lf_status lf_composite_end(const lf_composite *c, lf_value *y, lf_dtype d, lf_value **out) {
    return lf_give(lf_make_cast(c->g, y, d), out);
}

lf_value *lf_reduced_count(lf_graph *g, const lf_value *x, uint32_t axes) {
    lf_value *factors[LF_MAX_RANK];
    size_t n = 0;
    for (unsigned i = 0; i < x->type.rank; i++)
        if (axes >> i & 1) factors[n++] = x->type.dims[i];
    return lf_product_of(g, factors, n);
}

static lf_value *part(lf_graph *g, lf_opcode code, lf_value *z) {
    return z ? lf_make_elem(g, code, lf_dtype_part(z->type.dtype), z, NULL, NULL) : NULL;
}

lf_value *lf_mean_of(lf_graph *g, lf_value *x, uint32_t axes, bool keepdim) {
    if (!x) return NULL;
    lf_value *sum = lf_make_reduce(g, LF_OP_SUM, x, axes, keepdim), *count = lf_reduced_count(g, x, axes);
    if (!lf_is_complex(x->type.dtype)) return lf_step2(g, LF_OP_DIV, sum, lf_make_cast(g, count, x->type.dtype));
    // Each component by itself.
    lf_value *n = lf_make_cast(g, count, lf_dtype_part(x->type.dtype));
    lf_value *re = lf_step2(g, LF_OP_DIV, part(g, LF_OP_REAL, sum), n),
             *im = lf_step2(g, LF_OP_DIV, part(g, LF_OP_IMAG, sum), n);
    return lf_make_elem(g, LF_OP_COMPLEX, x->type.dtype, re, im, NULL);
}

// max(0, n - correction) in dtype t.
static lf_value *freedom(lf_graph *g, lf_value *n, lf_dtype t, const lf_literal *correction) {
    lf_scalar k;
    lf_value *zero = lf_const_int(g, 0), *left;
    if (!n || !zero) return NULL;
    if (lf_literal_to(correction, LF_I64, &k)) {
        left = lf_int2(g, LF_OP_MAX, lf_int2(g, LF_OP_SUB, n, lf_const_int(g, k.i64)), zero);
        // Of nothing there is no variance, whatever is added to the count.
        if (k.i64 < 0) left = lf_pick(g, lf_test2(g, LF_OP_EQ, n, zero), zero, left);
    } else {
        lf_literal_to(correction, LF_F64, &k);
        lf_value *count = lf_make_cast(g, n, LF_F64), *none = lf_number(g, LF_F64, 0);
        left = lf_step2(g, LF_OP_MAX, lf_step2(g, LF_OP_SUB, count, lf_const(g, LF_F64, k)), none);
        if (k.f64 < 0) left = lf_make_elem(g, LF_OP_SELECT, LF_F64, lf_test2(g, LF_OP_EQ, n, zero), none, left);
    }
    return lf_make_cast(g, left, t);
}

lf_value *lf_var_from(lf_graph *g, lf_value *off, uint32_t axes, bool keepdim, const lf_literal *correction) {
    lf_value *sum = lf_make_reduce(g, LF_OP_SUM, lf_step2(g, LF_OP_MUL, off, off), axes, keepdim);
    if (!sum) return NULL;
    return lf_step2(g, LF_OP_DIV, sum, freedom(g, lf_reduced_count(g, off, axes), off->type.dtype, correction));
}

// Around the mean with its axes kept; var(re) + var(im) for complex numbers.
static lf_value *any_var(const lf_composite *c, lf_value *mean, const lf_literal *correction) {
    lf_graph *g = c->g;
    lf_value *off = lf_step2(g, LF_OP_SUB, c->x, mean);
    if (!lf_is_complex(c->t)) return lf_var_from(g, off, c->axes, c->keepdim, correction);
    lf_value *sum = NULL;
    for (int k = 0; k < 2; k++) {
        lf_value *v = lf_var_from(g, part(g, k ? LF_OP_IMAG : LF_OP_REAL, off), c->axes, c->keepdim, correction);
        sum = k ? lf_step2(g, LF_OP_ADD, sum, v) : v;
    }
    return sum;
}

static lf_status begin_var(lf_rule *r, lf_composite *c, lf_literal *correction, lf_value **out_mean) {
    LF_TRY(lf_composite_begin(r, true, c));
    LF_TRY(lf_composite_axes(c));
    LF_TRY(lf_attr_number(r, LF_ATTR_CORRECTION, lf_literal_int(1), correction));
    if (correction->kind == LF_LITERAL_BOOL) return lf_rule_error(r, "correction= must be a number");
    return lf_give(lf_mean_of(c->g, c->x, c->axes, true), out_mean);
}

lf_status lf_rule_VAR(lf_rule *r, lf_value **out) {
    lf_composite c;
    lf_literal k;
    lf_value *mean;
    LF_TRY(begin_var(r, &c, &k, &mean));
    return lf_composite_end(&c, any_var(&c, mean, &k), lf_dtype_part(c.d), out);
}

lf_status lf_rule_STD(lf_rule *r, lf_value **out) {
    lf_composite c;
    lf_literal k;
    lf_value *mean;
    LF_TRY(begin_var(r, &c, &k, &mean));
    return lf_composite_end(&c, lf_step1(c.g, LF_OP_SQRT, any_var(&c, mean, &k)), lf_dtype_part(c.d), out);
}

lf_status lf_rule_VAR_MEAN(lf_rule *r, lf_value **out) {
    lf_composite c;
    lf_literal k;
    lf_value *mean;
    LF_TRY(begin_var(r, &c, &k, &mean));
    LF_TRY(lf_composite_end(&c, any_var(&c, mean, &k), lf_dtype_part(c.d), &out[0]));
    if (!c.keepdim && c.axes) mean = lf_make_squeeze(c.g, mean, c.axes);
    return lf_composite_end(&c, mean, c.d, &out[1]);
}

lf_status lf_rule_MEAN(lf_rule *r, lf_value **out) {
    lf_composite c;
    LF_TRY(lf_composite_begin(r, true, &c));
    if (lf_attr_of(r, LF_ATTR_DTYPE)) {
        // The input is cast first, and that is the result's dtype.
        LF_TRY(lf_attr_dtype(r, c.d, &c.d));
        if (!lf_is_float(c.d) && !lf_is_complex(c.d))
            return lf_rule_error(r, "dtype=%s is not supported: a mean is a float or complex number", lf_dtype_name(c.d));
        c.t = lf_dtype_compute(c.d);
        LF_TRY(lf_read_tensor(r, 0, &c.x));
        if (!(c.x = lf_make_cast(c.g, lf_make_cast(c.g, c.x, c.d), c.t))) return lf_out_of_memory();
    }
    LF_TRY(lf_composite_axes(&c));
    return lf_composite_end(&c, lf_mean_of(c.g, c.x, c.axes, c.keepdim), c.d, out);
}

lf_status lf_rule_COUNT_NONZERO(lf_rule *r, lf_value **out) {
    lf_composite c = {.r = r, .g = r->g};
    LF_TRY(lf_read_tensor(r, 0, &c.x));
    LF_TRY(lf_composite_axes(&c));
    lf_value *ones = lf_make_cast(c.g, lf_make_cast(c.g, c.x, LF_BOOL), LF_I64);
    return lf_give(lf_make_reduce(c.g, LF_OP_SUM, ones, c.axes, c.keepdim), out);
}

lf_status lf_rule_NORM(lf_rule *r, lf_value **out) {
    lf_composite c;
    lf_literal ord;
    LF_TRY(lf_composite_begin(r, false, &c));
    LF_TRY(lf_composite_axes(&c));
    LF_TRY(lf_attr_number(r, LF_ATTR_ORD, lf_literal_int(2), &ord));
    lf_graph *g = c.g;
    lf_scalar s;
    lf_literal_to(&ord, LF_F64, &s);
    lf_value *y = NULL;
    if (s.f64 == 1)
        y = lf_make_reduce(g, LF_OP_SUM, lf_step1(g, LF_OP_ABS, c.x), c.axes, c.keepdim);
    else if (s.f64 == 2)
        y = lf_step1(g, LF_OP_SQRT, lf_make_reduce(g, LF_OP_SUM, lf_step2(g, LF_OP_MUL, c.x, c.x), c.axes, c.keepdim));
    else if (isinf(s.f64) && s.f64 > 0) {
        // Over nothing it is 0.
        y = lf_make_reduce(g, LF_OP_RMAX, lf_step1(g, LF_OP_ABS, c.x), c.axes, c.keepdim);
        y = lf_step2(g, LF_OP_MAX, y, lf_number(g, c.t, 0));
    } else
        return lf_rule_error(r, "ord= must be 1, 2 or inf");
    return lf_composite_end(&c, y, c.d, out);
}

lf_status lf_rule_LOGSUMEXP(lf_rule *r, lf_value **out) {
    lf_composite c;
    LF_TRY(lf_composite_begin(r, false, &c));
    LF_TRY(lf_composite_axes(&c));
    lf_graph *g = c.g;
    // An infinite maximum counts as 0: the logarithm of the sum is then infinite by itself.
    lf_value *m = lf_make_reduce(g, LF_OP_RMAX, c.x, c.axes, true);
    if (!m) return lf_out_of_memory();
    lf_value *infinite = lf_make_elem(g, LF_OP_ISINF, LF_BOOL, m, NULL, NULL);
    m = lf_make_elem(g, LF_OP_SELECT, c.t, infinite, lf_number(g, c.t, 0), m);
    lf_value *e = lf_step1(g, LF_OP_EXP, lf_step2(g, LF_OP_SUB, c.x, m));
    lf_value *y = lf_step2(g, LF_OP_ADD, m, lf_step1(g, LF_OP_LOG, lf_make_reduce(g, LF_OP_SUM, e, c.axes, true)));
    if (!c.keepdim && c.axes) y = lf_make_squeeze(g, y, c.axes);
    return lf_composite_end(&c, y, c.d, out);
}
