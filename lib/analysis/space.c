// Composition of index maps (see space.h).
#include "analysis/space.h"
#include <string.h>

bool lf_is_one(const lf_value *v) {
    int64_t n;
    return lf_const_i64(v, &n) && n == 1;
}

static bool is_zero(const lf_value *v) {
    int64_t n;
    return !v || (lf_const_i64(v, &n) && n == 0);
}

lf_value *lf_host_add(lf_graph *g, lf_value *a, lf_value *b) {
    if (is_zero(a)) return is_zero(b) ? NULL : b;
    if (is_zero(b)) return a;
    return lf_scalar_op(g, LF_OP_ADD, LF_I64, a, b, NULL);
}

lf_value *lf_host_mul(lf_graph *g, lf_value *a, lf_value *b) {
    if (is_zero(a) || is_zero(b)) return NULL;
    if (lf_is_one(a)) return b;
    if (lf_is_one(b)) return a;
    return lf_scalar_op(g, LF_OP_MUL, LF_I64, a, b, NULL);
}

bool lf_form_is_zero(const lf_form *f) { return f->n == 0 && is_zero(f->offset); }

bool lf_form_is_atom(const lf_form *f, uint32_t atom) {
    return f->n == 1 && is_zero(f->offset) && f->terms[0].atom == atom && lf_is_one(f->terms[0].scale);
}

bool lf_form_equal(const lf_form *a, const lf_form *b) {
    if (a->n != b->n || (a->offset != b->offset && !(is_zero(a->offset) && is_zero(b->offset)) &&
                         !(a->offset && b->offset && lf_same_extent(a->offset, b->offset))))
        return false;
    for (unsigned i = 0; i < a->n; i++)
        if (a->terms[i].atom != b->terms[i].atom || !lf_same_extent(a->terms[i].scale, b->terms[i].scale)) return false;
    return true;
}

bool lf_space_equal(const lf_space *a, const lf_space *b) {
    if (a->rank != b->rank || a->flat != b->flat) return false;
    for (unsigned i = 0; i < a->rank; i++)
        if (!lf_form_equal(&a->axis[i], &b->axis[i])) return false;
    return true;
}

// Terms stay sorted by atom, so that equal forms are equal term by term.
static bool add_term(lf_graph *g, lf_form *f, uint32_t atom, lf_value *scale) {
    if (is_zero(scale)) return true;
    unsigned at = 0;
    while (at < f->n && f->terms[at].atom < atom) at++;
    if (at < f->n && f->terms[at].atom == atom) {
        lf_value *sum = lf_host_add(g, f->terms[at].scale, scale);
        if (!sum) {
            memmove(&f->terms[at], &f->terms[at + 1], (f->n - at - 1u) * sizeof *f->terms);
            f->n--;
        } else {
            f->terms[at].scale = sum;
        }
        return true;
    }
    if (f->n == LF_FORM_TERMS) return false;
    memmove(&f->terms[at + 1], &f->terms[at], (f->n - at) * sizeof *f->terms);
    f->terms[at] = (lf_term){atom, scale};
    f->n++;
    return true;
}

bool lf_form_add(lf_graph *g, lf_form *a, const lf_form *b, lf_value *scale) {
    lf_form addend = *b; // a and b may be the same object
    a->offset = lf_host_add(g, a->offset, scale ? lf_host_mul(g, addend.offset, scale) : addend.offset);
    for (unsigned i = 0; i < addend.n; i++) {
        lf_value *s = scale ? lf_host_mul(g, addend.terms[i].scale, scale) : addend.terms[i].scale;
        if (!add_term(g, a, addend.terms[i].atom, s)) return false;
    }
    return !g->arena.failed;
}

void lf_space_identity(lf_graph *g, uint8_t rank, lf_space *out) {
    *out = (lf_space){.rank = rank};
    for (unsigned a = 0; a < rank; a++) out->axis[a] = (lf_form){.n = 1, .terms = {{a, lf_const_int(g, 1)}}};
}

void lf_row_major(lf_graph *g, const lf_type *type, lf_value *out_strides[LF_MAX_RANK]) {
    lf_value *stride = lf_const_int(g, 1);
    for (unsigned a = type->rank; a-- > 0;) {
        out_strides[a] = stride;
        if (a) stride = lf_extent_mul(g, stride, type->dims[a]);
    }
}

lf_space_result lf_space_flatten(lf_graph *g, const lf_type *type, const lf_space *in, lf_space *out) {
    if (in->flat) return *out = *in, LF_SPACE_OK;
    lf_value *strides[LF_MAX_RANK];
    lf_row_major(g, type, strides);
    lf_space flat = {.flat = true, .rank = 1};
    for (unsigned a = 0; a < type->rank; a++)
        if (!lf_form_add(g, &flat.axis[0], &in->axis[a], strides[a]))
            return g->arena.failed ? LF_SPACE_NO_MEMORY : LF_SPACE_TOO_LONG;
    *out = flat;
    return LF_SPACE_OK;
}

// A reshape that only inserts or drops axes of extent 1 keeps an index per axis.
static bool through_unit_axes(const lf_type *from, const lf_type *to, const lf_space *in, lf_space *out) {
    lf_space result = {.rank = from->rank};
    unsigned t = 0;
    for (unsigned a = 0; a < from->rank; a++) {
        if (lf_is_one(from->dims[a])) continue;
        while (t < to->rank && lf_is_one(to->dims[t])) t++;
        if (t == to->rank || !lf_same_extent(from->dims[a], to->dims[t])) return false;
        result.axis[a] = in->axis[t++];
    }
    while (t < to->rank && lf_is_one(to->dims[t])) t++;
    if (t != to->rank) return false;
    *out = result;
    return true;
}

static lf_space_result through_reshape(lf_graph *g, const lf_op *view, const lf_space *in, lf_space *out) {
    const lf_type *from = &view->operands[0]->type, *to = &view->results[0].type;
    if (!in->flat && through_unit_axes(from, to, in, out)) return LF_SPACE_OK;
    return lf_space_flatten(g, to, in, out);
}

static bool is_identity(const lf_op *view) {
    const lf_type *from = &view->operands[0]->type, *to = &view->results[0].type;
    if (from->rank != to->rank || !lf_same_shape(from, to)) return false;
    for (unsigned a = 0; a < to->rank; a++)
        if (view->view.map[a] != (int)a || !is_zero(view->view.start[a]) ||
            (view->view.step[a] && !lf_is_one(view->view.step[a])))
            return false;
    return true;
}

lf_space_result lf_space_through(lf_graph *g, const lf_op *view, const lf_space *in, lf_pending_atom pending_atom,
                                 void *context, lf_space *out) {
    const lf_type *from = &view->operands[0]->type, *to = &view->results[0].type;
    if (view->view.reshape) return through_reshape(g, view, in, out);
    if (in->flat) {
        if (!is_identity(view)) return LF_SPACE_NEEDS_INDICES;
        *out = *in;
        return LF_SPACE_OK;
    }
    lf_space result = {.rank = from->rank};
    lf_value *one = lf_const_int(g, 1), *zero = lf_const_int(g, 0);
    for (unsigned a = 0; a < from->rank; a++) {
        lf_form *form = &result.axis[a];
        lf_value *start = view->view.start[a];
        if (start && start->where == LF_PENDING) {
            uint32_t atom;
            if (!pending_atom || !pending_atom(context, start, &atom)) return LF_SPACE_PENDING;
            if (!add_term(g, form, atom, one)) return LF_SPACE_TOO_LONG;
        } else {
            form->offset = is_zero(start) ? NULL : start;
        }
        for (unsigned d = 0; d < to->rank; d++) {
            if (view->view.map[d] != (int)a) continue;
            lf_value *step = view->view.step[a] ? view->view.step[a] : one;
            // The only index is 0. A slice of one element may hold none: there its start lies outside, and what is loaded must depend on
            // an axis where nothing is.
            if (lf_is_one(from->dims[a]) && (view->view.broadcasts || lf_is_one(to->dims[d]))) break;
            if (view->view.broadcasts && !lf_same_extent(from->dims[a], to->dims[d])) {
                int64_t known;
                if (!lf_const_i64(from->dims[a], &known)) // may turn out to be 1, and is then repeated
                    step = lf_scalar_op(g, LF_OP_SELECT, LF_I64,
                                        lf_scalar_op(g, LF_OP_EQ, LF_BOOL, from->dims[a], one, NULL), zero, step);
            }
            if (!lf_form_add(g, form, &in->axis[d], step)) return g->arena.failed ? LF_SPACE_NO_MEMORY : LF_SPACE_TOO_LONG;
            break;
        }
    }
    if (g->arena.failed) return LF_SPACE_NO_MEMORY;
    *out = result;
    return LF_SPACE_OK;
}
