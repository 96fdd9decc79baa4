// Views: ops whose result elements are elements of their operand, elsewhere.
#include "ir/builder.h"

// A size that may be -1 (the caller says what that means), checked to be at least that. *out_free: whether it is -1, as a bool
// scalar; NULL when it cannot be.
static lf_status size_or_free(lf_rule *r, const lf_operand *o, lf_value **out, lf_value **out_free) {
    lf_graph *g = r->g;
    *out_free = NULL;
    LF_TRY(lf_read_integer(r, o, "the extent", false, out));
    if (lf_known_nonnegative(g, *out)) return NULL;
    LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_GE, *out, lf_const_int(g, -1)), LF_NUMBERS(*out),
                           "negative size: the extent %s is {0}", lf_operand_text(g, o)));
    *out_free = lf_test2(g, LF_OP_EQ, *out, lf_const_int(g, -1));
    return *out_free ? NULL : lf_out_of_memory();
}

// ---- reshape ------------------------------------------------------------------------------------------------------------------

// numel(x) / rest as a product of extents of x, where all factors of `rest` are among them; NULL when they are not.
static lf_value *quotient(lf_graph *g, const lf_type *x, lf_value *const *rest, size_t n) {
    lf_value *left[LF_MAX_RANK];
    size_t k = x->rank;
    for (size_t i = 0; i < k; i++) left[i] = x->dims[i];
    for (size_t i = 0; i < n; i++) {
        if (lf_is_constant(rest[i], 1)) continue;
        size_t at = 0;
        while (at < k && !lf_same_extent(left[at], rest[i])) at++;
        if (at == k) return NULL;
        left[at] = left[--k];
    }
    return lf_product_of(g, left, k);
}

static lf_status count_of_elements(lf_rule *r, const lf_value *x, const lf_type *shape) {
    lf_value *before = lf_numel_of(r->g, &x->type), *after = lf_numel_of(r->g, shape);
    return lf_rule_require(r, lf_test2(r->g, LF_OP_EQ, before, after), LF_NUMBERS(before, after),
                           "%s has {0} elements, %s has {1}", lf_operand_told(r->g, &r->request->args[0]),
                           lf_operand_text(r->g, &r->request->args[1]));
}

// Fills in the one extent that may be -1: at position `at` where it is known, else wherever free_if says.
static lf_status fill_in(lf_rule *r, const lf_value *x, lf_type *shape, lf_value *const *free_if) {
    lf_graph *g = r->g;
    const char *list = lf_operand_text(g, &r->request->args[1]);
    lf_value *factors[LF_MAX_RANK], *one = lf_const_int(g, 1), *any = NULL, *count = lf_const_int(g, 0);
    size_t n = 0;
    for (unsigned i = 0; i < shape->rank; i++) {
        if (!free_if[i]) {
            factors[n++] = shape->dims[i];
            continue;
        }
        any = any ? lf_test2(g, LF_OP_LOR, any, free_if[i]) : free_if[i];
        count = lf_int2(g, LF_OP_ADD, count, lf_scalar_op(g, LF_OP_CAST, LF_I64, free_if[i], NULL, NULL));
        lf_value *factor = lf_pick(g, free_if[i], one, shape->dims[i]);
        if (!any || !count || !factor) return lf_out_of_memory();
        if (!lf_is_constant(factor, 1)) factors[n++] = factor;
    }
    if (!any) return NULL;
    LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_LE, count, one), LF_NUMBERS(count),
                           "{0} extents of %s are -1, only one may be", list));
    lf_value *rest = lf_product_of(g, factors, n), *numel = lf_numel_of(g, &x->type), *zero = lf_const_int(g, 0);
    lf_value *none = lf_scalar_op(g, LF_OP_LNOT, LF_BOOL, any, NULL, NULL);
    if (!none) return lf_out_of_memory();
    LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_LOR, lf_test2(g, LF_OP_NE, rest, zero), none), NULL, 0,
                           "the extent -1 of %s is ambiguous beside an extent of 0", list));
    lf_value *open = quotient(g, &x->type, factors, n);
    if (!open) {
        if (g->arena.failed) return lf_out_of_memory();
        open = lf_int2(g, LF_OP_FLOORDIV, numel, rest);
        lf_value *left = lf_int2(g, LF_OP_MOD, numel, rest);
        LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_LOR, lf_test2(g, LF_OP_EQ, left, zero), none), LF_NUMBERS(numel, rest),
                               "%s has {0} elements, which {1} does not divide: the extent -1 of %s has no value",
                               lf_operand_told(g, &r->request->args[0]), list));
    }
    for (unsigned i = 0; i < shape->rank; i++)
        if (free_if[i] && !(shape->dims[i] = lf_pick(g, free_if[i], open, shape->dims[i]))) return lf_out_of_memory();
    return NULL;
}

lf_status lf_rule_RESHAPE(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    const lf_operand *items;
    size_t n;
    lf_value *x, *free_if[LF_MAX_RANK] = {0};
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(lf_read_list(r, 1, "extents", &items, &n));
    if (n > LF_MAX_RANK) return lf_rule_error(r, "%zu extents are given, a tensor has at most %d axes", n, LF_MAX_RANK);
    lf_type shape = lf_tensor_type(x->type.dtype, (unsigned)n);
    bool all_free = false;
    for (size_t i = 0; i < n; i++) {
        LF_TRY(size_or_free(r, &items[i], &shape.dims[i], &free_if[i]));
        if (free_if[i] && lf_is_const(free_if[i]) && !lf_is_true(free_if[i])) free_if[i] = NULL;
        if (!free_if[i] || !lf_is_true(free_if[i])) continue;
        if (all_free) return lf_rule_error(r, "more than one extent of %s is -1", lf_operand_text(g, &r->request->args[1]));
        all_free = true;
    }
    LF_TRY(fill_in(r, x, &shape, free_if));
    // With a -1 that is certain, divisibility is all there is to check.
    if (!all_free) LF_TRY(count_of_elements(r, x, &shape));
    return lf_give(lf_make_reshape(g, x, &shape), out);
}

// ---- axes moved, added, dropped -------------------------------------------------------------------------------------------------

lf_status lf_rule_PERMUTE(lf_rule *r, lf_value **out) {
    const lf_operand *items;
    size_t n;
    lf_value *x;
    unsigned source[LF_MAX_RANK];
    uint32_t seen = 0;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(lf_read_list(r, 1, "axes", &items, &n));
    if (n != x->type.rank)
        return lf_rule_error(r, "%zu axes are given for %s of rank %u", n, lf_operand_told(r->g, &r->request->args[0]),
                             x->type.rank);
    for (size_t i = 0; i < n; i++) {
        LF_TRY(lf_axis_number(r, &items[i], x->type.rank, &source[i]));
        if (seen >> source[i] & 1)
            return lf_rule_error(r, "%s is no permutation of the %u axes of %s: axis %u stands in it twice",
                                 lf_operand_text(r->g, &r->request->args[1]), x->type.rank,
                                 lf_operand_told(r->g, &r->request->args[0]), source[i]);
        seen |= 1u << source[i];
    }
    return lf_give(lf_make_permute(r->g, LF_OP_PERMUTE, x, source), out);
}

lf_status lf_rule_TRANSPOSE(lf_rule *r, lf_value **out) {
    lf_value *x;
    unsigned source[LF_MAX_RANK], i, k;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(lf_axis_number(r, &r->request->args[1], x->type.rank, &i));
    LF_TRY(lf_axis_number(r, &r->request->args[2], x->type.rank, &k));
    for (unsigned a = 0; a < LF_MAX_RANK; a++) source[a] = a == i ? k : a == k ? i : a;
    return lf_give(lf_make_permute(r->g, LF_OP_TRANSPOSE, x, source), out);
}

lf_status lf_rule_SQUEEZE(lf_rule *r, lf_value **out) {
    lf_value *x;
    uint32_t axes;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(lf_attr_axes(r, x->type.rank, true, 0, &axes));
    for (unsigned i = 0; i < x->type.rank; i++)
        if (axes >> i & 1)
            LF_TRY(lf_rule_require(r, lf_test2(r->g, LF_OP_EQ, x->type.dims[i], lf_const_int(r->g, 1)),
                                   LF_NUMBERS(x->type.dims[i]),
                                   "axis %u of %s has extent {0}, only an extent of 1 can be squeezed", i,
                                   lf_operand_told(r->g, &r->request->args[0])));
    return lf_give(lf_make_squeeze(r->g, x, axes), out);
}

lf_status lf_rule_UNSQUEEZE(lf_rule *r, lf_value **out) {
    lf_value *x;
    uint32_t axes;
    const lf_attr *a = lf_attr_of(r, LF_ATTR_AXES);
    LF_TRY(lf_read_tensor(r, 0, &x));
    size_t added = a && a->operand.kind == LF_OPERAND_LIST ? a->operand.n_items : 1;
    if (x->type.rank + added > LF_MAX_RANK)
        return lf_rule_error(r, "%zu axes added to %s make more than %d", added, lf_operand_told(r->g, &r->request->args[0]),
                             LF_MAX_RANK);
    LF_TRY(lf_attr_axes(r, x->type.rank + (unsigned)added, true, 0, &axes));
    return lf_give(lf_make_unsqueeze(r->g, x, axes), out);
}

lf_status lf_rule_FLIP(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    lf_value *x;
    uint32_t axes;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(lf_attr_axes(r, x->type.rank, false, (1u << x->type.rank) - 1, &axes));
    lf_view view = lf_view_identity(x->type.rank);
    for (unsigned i = 0; i < x->type.rank; i++) {
        if (!(axes >> i & 1)) continue;
        view.start[i] = lf_int2(g, LF_OP_SUB, x->type.dims[i], lf_const_int(g, 1));
        view.step[i] = lf_const_int(g, -1);
        if (!view.start[i] || !view.step[i]) return lf_out_of_memory();
    }
    LF_TRY(lf_give(lf_make_view(g, LF_OP_FLIP, x, &x->type, &view), out));
    (*out)->def->axes = axes;
    return NULL;
}

// ---- axes repeated ----------------------------------------------------------------------------------------------------------------

// x's axis `own` becomes an axis of extent `wanted`: equal, or 1.
static lf_status check_stretch(lf_rule *r, const lf_value *x, unsigned own, unsigned axis, lf_value *wanted,
                               lf_value *keeps) {
    lf_graph *g = r->g;
    lf_value *n = x->type.dims[own];
    if (lf_same_extent(n, wanted) || lf_is_constant(n, 1)) return NULL;
    lf_value *ok = lf_test2(g, LF_OP_LOR, lf_test2(g, LF_OP_EQ, n, wanted), lf_test2(g, LF_OP_EQ, n, lf_const_int(g, 1)));
    if (keeps) ok = lf_test2(g, LF_OP_LOR, ok, keeps);
    return lf_rule_require(r, ok, LF_NUMBERS(n, wanted),
                           "axis %u of %s has extent {0}, which cannot become the extent {1} of the result's axis %u", own,
                           lf_operand_told(g, &r->request->args[0]), axis);
}

lf_status lf_rule_EXPAND(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    const lf_operand *items;
    size_t n;
    lf_value *x;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(lf_read_list(r, 1, "extents", &items, &n));
    if (n > LF_MAX_RANK) return lf_rule_error(r, "%zu extents are given, a tensor has at most %d axes", n, LF_MAX_RANK);
    if (n < x->type.rank)
        return lf_rule_error(r, "%zu extents are given for %s of rank %u", n, lf_operand_told(g, &r->request->args[0]),
                             x->type.rank);
    lf_type shape = lf_tensor_type(x->type.dtype, (unsigned)n);
    lf_view view = lf_view_identity(0);
    unsigned added = (unsigned)n - x->type.rank;
    for (unsigned i = 0; i < n; i++) {
        if (i < added) {
            LF_TRY(lf_size(r, &items[i], "the new extent", &shape.dims[i]));
            view.broadcasts = true;
            continue;
        }
        lf_value *wanted, *keeps, *old = x->type.dims[i - added];
        LF_TRY(size_or_free(r, &items[i], &wanted, &keeps));
        view.map[i] = (int8_t)(i - added);
        if (keeps && lf_is_true(keeps))
            wanted = old;
        else
            LF_TRY(check_stretch(r, x, i - added, i, wanted, keeps));
        if (keeps && !(wanted = lf_pick(g, keeps, old, wanted))) return lf_out_of_memory();
        view.broadcasts |= !lf_same_extent(old, wanted);
        shape.dims[i] = wanted;
    }
    return lf_give(lf_make_view(g, LF_OP_EXPAND, x, &shape, &view), out);
}

lf_status lf_rule_BROADCAST(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    lf_value *x;
    lf_type shape;
    LF_TRY(lf_read_tensor(r, 0, &x));
    LF_TRY(lf_shape_list(r, 1, &shape));
    const lf_attr *a = lf_attr_of(r, LF_ATTR_DIMS);
    const char *told = lf_operand_told(g, &r->request->args[0]);
    if (!a) return lf_rule_error(r, "dims= is missing: one axis of the result for each axis of %s", told);
    if (a->operand.kind != LF_OPERAND_LIST) return lf_rule_error_at(r, a->place, "dims= must be a list of axes [...]");
    if (a->operand.n_items != x->type.rank)
        return lf_rule_error_at(r, a->place, "dims= names %u axes, %s has %u", a->operand.n_items, told, x->type.rank);
    if (x->type.rank > shape.rank)
        return lf_rule_error_at(r, a->place, "dims= names %u axes, the result has %u", x->type.rank, shape.rank);
    lf_view view = lf_view_identity(0);
    view.broadcasts = shape.rank != x->type.rank;
    for (unsigned i = 0; i < x->type.rank; i++) {
        unsigned axis;
        LF_TRY(lf_axis_number(r, &a->operand.items[i], shape.rank, &axis));
        if (view.map[axis] >= 0) return lf_rule_error_at(r, a->place, "dims= names axis %u twice", axis);
        view.map[axis] = (int8_t)i;
    }
    for (unsigned axis = 0; axis < shape.rank; axis++) {
        int own = view.map[axis];
        if (own < 0) continue;
        LF_TRY(check_stretch(r, x, (unsigned)own, axis, shape.dims[axis], NULL));
        view.broadcasts |= !lf_same_extent(x->type.dims[own], shape.dims[axis]);
    }
    return lf_give(lf_make_view(g, LF_OP_BROADCAST, x, &shape, &view), out);
}

// ---- slice ------------------------------------------------------------------------------------------------------------------------

typedef struct slice_axis {
    lf_value *start, *extent, *step; // start 0 and step 1: NULL
} slice_axis;

// A bound as NumPy takes it: negative ones count from the end, then it is held within 0 … n.
static lf_value *bound(lf_graph *g, lf_value *b, lf_value *n) {
    lf_value *zero = lf_const_int(g, 0);
    if (!b || !zero) return NULL;
    if (!lf_known_nonnegative(g, b)) {
        b = lf_pick(g, lf_test2(g, LF_OP_LT, b, zero), lf_int2(g, LF_OP_ADD, b, n), b);
        b = lf_int2(g, LF_OP_MAX, b, zero);
    }
    int64_t k, extent;
    if (lf_const_i64(b, &k) && !lf_const_i64(n, &extent) && k == 0) return b;
    return lf_int2(g, LF_OP_MIN, b, n);
}

// `end` is literally start + c.
static bool is_window(const lf_operand *start, const lf_operand *end, int64_t *out_c) {
    if (start->kind != LF_OPERAND_VALUE || end->kind != LF_OPERAND_VALUE) return false;
    const lf_value *s = lf_resolve(start->value), *e = lf_resolve(end->value);
    if (e->def->code != LF_OP_ADD || e->def->n_operands != 2) return false;
    const lf_value *a = e->def->operands[0], *b = e->def->operands[1];
    if (b == s && lf_is_const(a))
        b = a;
    else if (a != s || !lf_is_const(b))
        return false;
    *out_c = lf_scalar_i64(b->type.dtype, &b->def->constant);
    return true;
}

// A window of constant length at a pending start: its extent is known, its start is clamped so that it fits.
static lf_status pending_window(lf_rule *r, unsigned axis, const lf_operand *start, int64_t c, lf_value *n,
                                slice_axis *out) {
    lf_graph *g = r->g;
    lf_value *s, *zero = lf_const_int(g, 0), *width = lf_const_int(g, c < 0 ? 0 : c);
    LF_TRY(lf_read_integer(r, start, "the start", true, &s));
    LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_LE, width, n), LF_NUMBERS(width, n),
                           "the window of {0} from %s does not fit axis %u of %s, which has extent {1}",
                           lf_operand_text(g, start), axis, lf_operand_told(g, &r->request->args[0])));
    s = lf_pick(g, lf_test2(g, LF_OP_LT, s, zero), lf_int2(g, LF_OP_ADD, s, n), s);
    out->start = lf_int2(g, LF_OP_MAX, lf_int2(g, LF_OP_MIN, s, lf_int2(g, LF_OP_SUB, n, width)), zero);
    out->extent = out->step ? lf_int2(g, LF_OP_CEILDIV, width, out->step) : width;
    return out->start && out->extent ? NULL : lf_out_of_memory();
}

static lf_status slice_one(lf_rule *r, unsigned axis, const lf_operand *start, const lf_operand *end, const lf_operand *step,
                           lf_value *n, slice_axis *out) {
    lf_graph *g = r->g;
    int64_t c;
    *out = (slice_axis){0};
    if (step && step->kind != LF_OPERAND_NONE) {
        LF_TRY(lf_read_integer(r, step, "the step", false, &out->step));
        LF_TRY(lf_rule_require(r, lf_test2(g, LF_OP_GE, out->step, lf_const_int(g, 1)), LF_NUMBERS(out->step),
                               "the step %s on axis %u of %s is {0}, at least 1 is needed", lf_operand_text(g, step), axis,
                               lf_operand_told(g, &r->request->args[0])));
        if (lf_is_constant(out->step, 1)) out->step = NULL;
    }
    bool waits = start && start->kind == LF_OPERAND_VALUE && start->value->where == LF_PENDING;
    if (waits && end && is_window(start, end, &c)) return pending_window(r, axis, start, c, n, out);
    lf_value *first = NULL, *last = n;
    if (start && start->kind != LF_OPERAND_NONE) {
        LF_TRY(lf_read_integer(r, start, "the start", false, &first));
        if (!(first = bound(g, first, n))) return lf_out_of_memory();
        if (lf_is_constant(first, 0)) first = NULL;
    }
    if (end && end->kind != LF_OPERAND_NONE) {
        LF_TRY(lf_read_integer(r, end, "the end", false, &last));
        if (!(last = bound(g, last, n))) return lf_out_of_memory();
    }
    lf_value *length = last;
    if (first) length = lf_int2(g, LF_OP_MAX, lf_int2(g, LF_OP_SUB, last, first), lf_const_int(g, 0));
    out->start = first;
    out->extent = out->step ? lf_int2(g, LF_OP_CEILDIV, length, out->step) : length;
    return out->extent ? NULL : lf_out_of_memory();
}

lf_status lf_rule_SLICE(lf_rule *r, lf_value **out) {
    static const char *const what[] = {"starts", "ends", "steps"};
    lf_value *x;
    const lf_operand *lists[3] = {0};
    LF_TRY(lf_read_tensor(r, 0, &x));
    for (unsigned k = 0; k < 3; k++) {
        const lf_operand *list = &r->request->args[k + 1];
        if (list->kind == LF_OPERAND_NONE) continue;
        size_t n;
        LF_TRY(lf_read_list(r, k + 1, what[k], &lists[k], &n));
        if (n != x->type.rank)
            return lf_rule_error(r, "%zu %s are given for %s of rank %u", n, what[k],
                                 lf_operand_told(r->g, &r->request->args[0]), x->type.rank);
    }
    lf_type shape = x->type;
    shape.named = 0;
    lf_view view = lf_view_identity(x->type.rank);
    for (unsigned i = 0; i < x->type.rank; i++) {
        slice_axis a;
        LF_TRY(slice_one(r, i, lists[0] ? &lists[0][i] : NULL, lists[1] ? &lists[1][i] : NULL,
                         lists[2] ? &lists[2][i] : NULL, x->type.dims[i], &a));
        shape.dims[i] = a.extent;
        view.start[i] = a.start;
        view.step[i] = a.step;
    }
    return lf_give(lf_make_view(r->g, LF_OP_SLICE, x, &shape, &view), out);
}
