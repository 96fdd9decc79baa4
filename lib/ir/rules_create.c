// Tensors out of scalars: full, iota, eye, constants, random numbers.
#include "ir/builder.h"
#include <string.h>

static lf_status only(lf_rule *r, lf_dtype d, bool integers, bool floats) {
    if ((integers && lf_is_integer(d)) || (floats && lf_is_float(d))) return NULL;
    return lf_rule_error(r, "dtype=%s is not supported: the elements are %s", lf_dtype_name(d),
                         integers ? "integers or floats" : "floats");
}

static lf_status not_complex(lf_rule *r, lf_dtype d) {
    return lf_is_complex(d) ? lf_rule_error(r, "dtype=%s is not supported: the elements are real", lf_dtype_name(d)) : NULL;
}

// The dtype of created elements: dtype=, else that of the typed scalars, else what literals give.
static lf_status created_dtype(lf_rule *r, const lf_arg *args, size_t n, lf_dtype *out) {
    bool typed = false;
    for (size_t i = 0; i < n; i++) typed |= args[i].value != NULL;
    if (lf_attr_of(r, LF_ATTR_DTYPE)) return lf_attr_dtype(r, LF_NO_DTYPE, out);
    LF_TRY(lf_promote(r, args, n, !typed, out));
    // Beside a typed scalar, a literal of a higher category stands for itself.
    bool literal_f64 = typed && *out == LF_F64;
    for (size_t i = 0; i < n && literal_f64; i++) literal_f64 = !(args[i].value && args[i].value->type.dtype == LF_F64);
    if (literal_f64) *out = LF_F32;
    return NULL;
}

static lf_value *link(lf_graph *g, lf_op *op) {
    if (!op) return NULL;
    lf_op_link(g, op);
    return op->results;
}

lf_status lf_rule_FULL(lf_rule *r, lf_value **out) {
    lf_type shape;
    lf_arg a;
    lf_dtype d;
    lf_value *v;
    LF_TRY(lf_shape_list(r, 0, &shape));
    LF_TRY(lf_read_scalar(r, 1, &a));
    LF_TRY(created_dtype(r, &a, 1, &d));
    LF_TRY(lf_converted(r, &a, d, &v));
    return lf_give(lf_make_full(r->g, v, &shape), out);
}

lf_status lf_rule_IOTA(lf_rule *r, lf_value **out) {
    lf_type shape = lf_tensor_type(LF_NO_DTYPE, 1);
    lf_arg args[2];
    lf_value *values[2];
    LF_TRY(lf_size(r, &r->request->args[0], "the extent", &shape.dims[0]));
    for (size_t i = 0; i < 2; i++) LF_TRY(lf_read_scalar(r, i + 1, &args[i]));
    LF_TRY(created_dtype(r, args, 2, &shape.dtype));
    LF_TRY(only(r, shape.dtype, true, true));
    for (size_t i = 0; i < 2; i++) LF_TRY(lf_converted(r, &args[i], shape.dtype, &values[i]));
    return lf_give(link(r->g, lf_single(r->g, LF_OP_IOTA, &shape, 2, values)), out);
}

lf_status lf_rule_EYE(lf_rule *r, lf_value **out) {
    lf_type shape = lf_tensor_type(LF_NO_DTYPE, 2);
    for (size_t i = 0; i < 2; i++) LF_TRY(lf_size(r, &r->request->args[i], "the extent", &shape.dims[i]));
    LF_TRY(lf_attr_dtype(r, LF_F32, &shape.dtype));
    LF_TRY(not_complex(r, shape.dtype));
    return lf_give(link(r->g, lf_single(r->g, LF_OP_EYE, &shape, 0, NULL)), out);
}

static lf_status random(lf_rule *r, lf_value **out) {
    static const char *const words[2][2] = {{"lo", "hi"}, {"the mean", "the standard deviation"}};
    lf_type shape;
    lf_value *values[4];
    LF_TRY(lf_shape_list(r, 0, &shape));
    LF_TRY(lf_attr_dtype(r, LF_F32, &shape.dtype));
    LF_TRY(only(r, shape.dtype, false, true));
    for (size_t i = 0; i < 2; i++)
        LF_TRY(lf_read_scalar_as(r, i + 1, words[r->code == LF_OP_NORMAL][i], shape.dtype, &values[i]));
    LF_TRY(lf_read_integer(r, &r->request->args[3], "the seed", true, &values[2]));
    LF_TRY(lf_read_integer(r, &r->request->args[4], "the offset", true, &values[3]));
    return lf_give(link(r->g, lf_single(r->g, r->code, &shape, 4, values)), out);
}

lf_status lf_rule_UNIFORM(lf_rule *r, lf_value **out) { return random(r, out); }
lf_status lf_rule_NORMAL(lf_rule *r, lf_value **out) { return random(r, out); }

// ---- constants --------------------------------------------------------------------------------------------------------------------

// Walks nested lists row by row without recursion, checking that they are rectangular.
typedef struct nest {
    const lf_operand *lists[LF_MAX_RANK];
    uint32_t at[LF_MAX_RANK];
    unsigned rank;
    uint64_t shape[LF_MAX_RANK];
} nest;

static lf_status open_nest(lf_rule *r, const lf_operand *o, nest *w) {
    *w = (nest){0};
    for (; o->kind == LF_OPERAND_LIST; o = &o->items[0]) {
        if (w->rank == LF_MAX_RANK) return lf_rule_error(r, "the lists are nested more than %d deep", LF_MAX_RANK);
        w->lists[w->rank] = o;
        w->shape[w->rank++] = o->n_items;
        if (!o->n_items) break;
    }
    return NULL;
}

static lf_status visit(lf_rule *r, const lf_operand *top, nest *w, lf_status (*fn)(lf_rule *, const lf_operand *, void *),
                       void *context) {
    if (!w->rank) return fn(r, top, context);
    unsigned level = 0;
    for (;;) {
        if (w->at[level] == w->shape[level]) {
            if (level == 0) return NULL;
            w->at[level--] = 0;
            w->at[level]++;
            continue;
        }
        const lf_operand *item = &w->lists[level]->items[w->at[level]];
        bool inner = level + 1 < w->rank;
        if ((item->kind == LF_OPERAND_LIST) != inner || (inner && item->n_items != w->shape[level + 1]))
            return lf_rule_error_at(r, item->place,
                                    "the nested lists have different lengths or depths: %llu items at depth %u, then %s",
                                    (unsigned long long)w->shape[inner ? level + 1 : level], inner ? level + 1 : level,
                                    lf_operand_text(r->g, item));
        if (inner) {
            w->lists[++level] = item;
            continue;
        }
        LF_TRY(fn(r, item, context));
        w->at[level]++;
    }
}

typedef struct constant_data {
    char *data;
    size_t count;
    lf_dtype dtype;
    lf_dtype seen; // highest dtype among the literals: bool, i64 or f32
} constant_data;

static lf_status look_at(lf_rule *r, const lf_operand *o, void *context) {
    constant_data *c = context;
    if (o->kind != LF_OPERAND_LITERAL)
        return lf_rule_error_at(r, o->place, "only literals may stand in a constant, found %s", lf_operand_told(r->g, o));
    lf_dtype d = o->literal.kind == LF_LITERAL_BOOL ? LF_BOOL : o->literal.kind == LF_LITERAL_INT ? LF_I64 : LF_F32;
    if (!c->count++ || d > c->seen) c->seen = d;
    return NULL;
}

static lf_status store(lf_rule *r, const lf_operand *o, void *context) {
    constant_data *c = context;
    lf_scalar s;
    if (!lf_literal_to(&o->literal, c->dtype, &s))
        return lf_rule_error_at(r, o->place, "the literal %s does not fit %s", lf_operand_text(r->g, o),
                                lf_dtype_name(c->dtype));
    memcpy(c->data + c->count++ * lf_dtype_bytes(c->dtype), &s, lf_dtype_bytes(c->dtype));
    return NULL;
}

lf_status lf_rule_TENSOR(lf_rule *r, lf_value **out) {
    lf_graph *g = r->g;
    const lf_operand *top = &r->request->args[0];
    constant_data c = {.seen = LF_F32};
    nest w;
    LF_TRY(open_nest(r, top, &w));
    LF_TRY(visit(r, top, &w, look_at, &c));
    LF_TRY(lf_attr_dtype(r, c.seen, &c.dtype));
    LF_TRY(not_complex(r, c.dtype));
    lf_type shape = lf_tensor_type(c.dtype, w.rank);
    for (unsigned i = 0; i < w.rank; i++) shape.dims[i] = lf_const_int(g, (int64_t)w.shape[i]);
    size_t bytes = c.count * lf_dtype_bytes(c.dtype);
    c.data = lf_arena_alloc(&g->arena, bytes ? bytes : 1);
    if (!c.data) return lf_out_of_memory();
    c.count = 0;
    LF_TRY(open_nest(r, top, &w));
    LF_TRY(visit(r, top, &w, store, &c));
    lf_op *op = lf_single(g, LF_OP_TENSOR, &shape, 0, NULL);
    if (!op) return lf_out_of_memory();
    op->data = c.data;
    op->data_bytes = bytes;
    return lf_give(link(g, op), out);
}
