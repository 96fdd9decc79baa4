// Reading operands and attributes of a written op: what kind they are, whether they may stand there, and the words for when not.
#include "ir/builder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- words ------------------------------------------------------------------------------------------------------------------

static const char *literal_text(lf_graph *g, const lf_operand *o) {
    if (o->text) return o->text;
    char text[96];
    lf_scalar s;
    lf_dtype d = lf_literal_dtype(&o->literal);
    lf_literal_to(&o->literal, d, &s);
    lf_scalar_print(text, sizeof text, d, &s);
    const char *copy = lf_arena_strndup(&g->arena, text, strlen(text));
    return copy ? copy : "?";
}

const char *lf_operand_text(const lf_graph *graph, const lf_operand *o) {
    // Words are made in the graph's arena, also for a caller who may only read the graph's ops.
    lf_graph *g = (lf_graph *)graph;
    const char *text = "?";
    switch (o->kind) {
    case LF_OPERAND_NONE: return "none";
    case LF_OPERAND_VALUE: text = lf_value_text(&g->arena, o->value); break;
    case LF_OPERAND_LITERAL: return literal_text(g, o);
    case LF_OPERAND_LIST:
        text = "[";
        for (uint32_t i = 0; i < o->n_items && text; i++) {
            const lf_operand *item = &o->items[i];
            if (i == 16) return lf_arena_printf(&g->arena, "%s, …]", text);
            const char *part = item->kind == LF_OPERAND_LIST ? "[…]" : lf_operand_text(g, item);
            text = lf_arena_printf(&g->arena, "%s%s%s", text, i ? ", " : "", part);
        }
        if (text) text = lf_arena_printf(&g->arena, "%s]", text);
        break;
    }
    return text ? text : "?";
}

const char *lf_operand_told(const lf_graph *graph, const lf_operand *o) {
    lf_graph *g = (lf_graph *)graph;
    const char *text = lf_operand_text(g, o);
    if (o->kind == LF_OPERAND_LIST) text = lf_arena_printf(&g->arena, "the list %s", text);
    if (o->kind == LF_OPERAND_VALUE) {
        const char *type = lf_type_text(&g->arena, &o->value->type);
        text = lf_arena_printf(&g->arena, "%s: %s", text, type ? type : "?");
    }
    return text ? text : "?";
}

static lf_place place_of(const lf_rule *r, const lf_operand *o) { return o && o->place.line ? o->place : r->request->place; }

// ---- operands -----------------------------------------------------------------------------------------------------------------

lf_dtype lf_arg_dtype(const lf_arg *a) {
    return a->value ? a->value->type.dtype : a->literal ? lf_literal_dtype(a->literal) : LF_NO_DTYPE;
}

static lf_arg arg_of(const lf_operand *o) {
    lf_arg a = {.operand = o};
    if (o->kind == LF_OPERAND_VALUE) a.value = lf_resolve(o->value);
    if (o->kind == LF_OPERAND_LITERAL) a.literal = &o->literal;
    return a;
}

static bool may_be_none(const lf_rule *r, size_t i) {
    const char *args = r->info->args;
    size_t n = strlen(args);
    return i < n && (args[i] == 'o' || args[i] == 'l');
}

lf_status lf_read_value(lf_rule *r, size_t i, lf_arg *out) {
    const lf_operand *o = &r->request->args[i];
    *out = arg_of(o);
    if (o->kind == LF_OPERAND_LIST || (o->kind == LF_OPERAND_NONE && !may_be_none(r, i)))
        return lf_rule_error_at(r, place_of(r, o), "operand %zu must be a value, found %s", i + 1, lf_operand_told(r->g, o));
    return NULL;
}

lf_status lf_read_tensor(lf_rule *r, size_t i, lf_value **out) {
    lf_arg a;
    *out = NULL;
    LF_TRY(lf_read_value(r, i, &a));
    if (lf_arg_none(&a)) return NULL;
    if (!lf_arg_tensor_p(&a))
        return lf_rule_error_at(r, place_of(r, a.operand), "operand %zu must be a tensor, found the scalar %s%s%s", i + 1,
                                lf_operand_told(r->g, a.operand), a.literal ? ": " : "",
                                a.literal ? lf_dtype_name(lf_arg_dtype(&a)) : "");
    return lf_give(lf_make_device(r->g, a.value), out);
}

lf_status lf_read_scalar(lf_rule *r, size_t i, lf_arg *out) {
    LF_TRY(lf_read_value(r, i, out));
    if (lf_arg_tensor_p(out) || lf_arg_none(out))
        return lf_rule_error_at(r, place_of(r, out->operand), "operand %zu must be a scalar, found %s", i + 1,
                                lf_operand_told(r->g, out->operand));
    return NULL;
}

lf_status lf_literal_value(lf_rule *r, const lf_arg *a, lf_dtype d, lf_value **out) {
    lf_scalar s;
    if (!lf_literal_to(a->literal, d, &s))
        return lf_rule_error_at(r, place_of(r, a->operand), "the literal %s does not fit %s",
                                lf_operand_text(r->g, a->operand), lf_dtype_name(d));
    return lf_give(lf_const(r->g, d, s), out);
}

lf_status lf_converted(lf_rule *r, const lf_arg *a, lf_dtype d, lf_value **out) {
    if (a->literal) return lf_literal_value(r, a, d, out);
    return lf_give(lf_make_cast(r->g, a->value, d), out);
}

lf_status lf_read_scalar_as(lf_rule *r, size_t i, const char *what, lf_dtype d, lf_value **out) {
    lf_arg a;
    *out = NULL;
    LF_TRY(lf_read_value(r, i, &a));
    if (lf_arg_tensor_p(&a) || lf_arg_none(&a))
        return lf_rule_error_at(r, place_of(r, a.operand), "%s must be a scalar, found %s", what,
                                lf_operand_told(r->g, a.operand));
    return lf_converted(r, &a, d, out);
}

lf_status lf_read_list(lf_rule *r, size_t i, const char *what, const lf_operand **out_items, size_t *out_n) {
    const lf_operand *o = &r->request->args[i];
    *out_items = o->items;
    *out_n = o->n_items;
    if (o->kind != LF_OPERAND_LIST)
        return lf_rule_error_at(r, place_of(r, o), "operand %zu must be a list of %s [...], found %s", i + 1, what,
                                lf_operand_told(r->g, o));
    return NULL;
}

lf_status lf_known_on_host(lf_graph *g, lf_place place, const char *use, const lf_operand *o) {
    if (o->kind != LF_OPERAND_VALUE || o->value->where != LF_PENDING) return NULL;
    lf_arena *arena = &g->arena;
    // Back to the item, through the first pending operand each time.
    const lf_value *v = lf_resolve(o->value);
    while (v->def->code != LF_OP_ITEM) {
        const lf_op *op = v->def;
        uint16_t i = 0;
        while (i < op->n_operands && !(op->operands[i] && op->operands[i]->where == LF_PENDING)) i++;
        if (i == op->n_operands) break;
        v = op->operands[i];
    }
    const char *name = lf_value_text(arena, o->value);
    const char *item = v->name ? lf_arena_printf(arena, " (%%%s)", v->name) : "";
    const char *source = v->def->n_operands ? lf_value_text(arena, v->def->operands[0]) : "?";
    lf_place at = o->place.line ? o->place : place;
    const char *refusal = lf_arena_printf(
        arena,
        "%s may not be the pending scalar %s: it comes from `item %s`%s, which the device computes; it is known on the "
        "host before the launch only if sync points are allowed",
        use, name ? name : "?", source ? source : "?", item ? item : "");
    if (!refusal) return lf_out_of_memory();
    if (!g->allow_sync) return lf_error_at(g->allocator, LF_INVALID_PROGRAM, at, "%s", refusal);
    lf_sync_point *sync = LF_ARENA_NEW(arena, lf_sync_point);
    const char *kept = lf_arena_strndup(arena, use, strlen(use));
    if (!sync || !kept) return lf_out_of_memory();
    *sync = (lf_sync_point){.use = kept, .value = o->value, .item = v, .place = at, .refusal = refusal};
    *(g->last_sync ? &g->last_sync->next : &g->first_sync) = sync;
    g->last_sync = sync;
    return NULL;
}

lf_status lf_read_integer(lf_rule *r, const lf_operand *o, const char *what, bool may_wait, lf_value **out) {
    lf_arg a = arg_of(o);
    *out = NULL;
    bool integer = a.literal ? a.literal->kind == LF_LITERAL_INT
                             : a.value && !a.value->type.tensor && lf_is_integer(a.value->type.dtype);
    if (!integer)
        return lf_rule_error_at(r, place_of(r, o), "%s must be an integer scalar, found %s", what, lf_operand_told(r->g, o));
    if (!may_wait) {
        const char *use = lf_arena_printf(&r->g->arena, "%s: %s", r->info->name, what);
        LF_TRY(lf_known_on_host(r->g, r->request->place, use ? use : what, o));
    }
    return lf_converted(r, &a, LF_I64, out);
}

lf_status lf_size(lf_rule *r, const lf_operand *o, const char *what, lf_value **out) {
    LF_TRY(lf_read_integer(r, o, what, false, out));
    lf_value *ok = lf_test2(r->g, LF_OP_GE, *out, lf_const_int(r->g, 0));
    return lf_rule_require(r, ok, LF_NUMBERS(*out), "negative size: %s %s is {0}", what, lf_operand_text(r->g, o));
}

lf_status lf_shape_list(lf_rule *r, size_t i, lf_type *out) {
    const lf_operand *items;
    size_t n;
    LF_TRY(lf_read_list(r, i, "extents", &items, &n));
    if (n > LF_MAX_RANK)
        return lf_rule_error_at(r, place_of(r, &r->request->args[i]), "%zu extents are given, a tensor has at most %d axes",
                                n, LF_MAX_RANK);
    *out = lf_tensor_type(LF_NO_DTYPE, (unsigned)n);
    for (size_t k = 0; k < n; k++) LF_TRY(lf_size(r, &items[k], "the extent", &out->dims[k]));
    return NULL;
}

lf_status lf_constant_integer(lf_rule *r, const lf_operand *o, const char *what, int64_t *out) {
    lf_scalar s;
    if (o->kind == LF_OPERAND_LITERAL && o->literal.kind == LF_LITERAL_INT && lf_literal_to(&o->literal, LF_I64, &s)) {
        *out = s.i64;
        return NULL;
    }
    return lf_rule_error_at(r, place_of(r, o), "%s must be an integer constant, found %s", what, lf_operand_told(r->g, o));
}

lf_status lf_axis_number(lf_rule *r, const lf_operand *o, unsigned rank, unsigned *out) {
    int64_t n, range = rank ? rank : 1; // a rank-0 tensor may be asked for axis 0 or -1
    LF_TRY(lf_constant_integer(r, o, "an axis", &n));
    if (n < -range || n >= range)
        return lf_rule_error_at(r, place_of(r, o), "axis %lld is outside the range %lld..%lld of a tensor of rank %u",
                                (long long)n, -(long long)range, (long long)range - 1, rank);
    *out = (unsigned)(n < 0 ? n + range : n);
    return NULL;
}

// ---- attributes ---------------------------------------------------------------------------------------------------------------

const lf_attr *lf_attr_of(const lf_rule *r, lf_attr_id id) {
    for (size_t i = 0; i < r->request->n_attrs; i++)
        if (r->request->attrs[i].id == id) return &r->request->attrs[i];
    return NULL;
}

static lf_place attr_place(const lf_rule *r, const lf_attr *a) { return a->place.line ? a->place : r->request->place; }

lf_status lf_attr_axis(lf_rule *r, unsigned rank, int absent, unsigned *out) {
    const lf_attr *a = lf_attr_of(r, LF_ATTR_AXIS);
    if (a) return lf_axis_number(r, &a->operand, rank, out);
    if (absent == LF_NO_DEFAULT) return lf_rule_error(r, "axis= is missing");
    *out = absent < 0 ? (rank ? rank - 1 : 0) : (unsigned)absent;
    return NULL;
}

lf_status lf_attr_axes(lf_rule *r, unsigned rank, bool needed, uint32_t absent, uint32_t *out) {
    const lf_attr *a = lf_attr_of(r, LF_ATTR_AXES);
    *out = absent;
    if (!a) return needed ? lf_rule_error(r, "axes= is missing") : NULL;
    bool list = a->operand.kind == LF_OPERAND_LIST;
    const lf_operand *items = list ? a->operand.items : &a->operand;
    size_t n = list ? a->operand.n_items : 1;
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned axis;
        LF_TRY(lf_axis_number(r, &items[i], rank, &axis));
        if (*out >> axis & 1) return lf_rule_error_at(r, attr_place(r, a), "axis %u is named twice in axes=", axis);
        *out |= 1u << axis;
    }
    if (!rank) *out = 0;
    return NULL;
}

lf_status lf_attr_flag(lf_rule *r, lf_attr_id id, bool absent, bool *out) {
    const lf_attr *a = lf_attr_of(r, id);
    *out = absent;
    if (!a) return NULL;
    if (a->operand.kind != LF_OPERAND_LITERAL || a->operand.literal.kind != LF_LITERAL_BOOL)
        return lf_rule_error_at(r, attr_place(r, a), "%s= must be true or false, found %s", lf_attr_name(id),
                                a->word ? a->word : lf_operand_told(r->g, &a->operand));
    *out = a->operand.literal.magnitude != 0;
    return NULL;
}

lf_status lf_attr_dtype(lf_rule *r, lf_dtype absent, lf_dtype *out) {
    const lf_attr *a = lf_attr_of(r, LF_ATTR_DTYPE);
    *out = a ? a->dtype : absent;
    if (a && a->dtype == LF_NO_DTYPE && a->word) *out = lf_dtype_parse(a->word, strlen(a->word));
    if (*out != LF_NO_DTYPE && *out < LF_DTYPE_COUNT) return NULL;
    if (!a) return lf_rule_error(r, "dtype= is missing");
    return lf_rule_error_at(r, attr_place(r, a), "dtype= must be a dtype, found %s",
                            a->word ? a->word : lf_operand_told(r->g, &a->operand));
}

lf_status lf_attr_word(lf_rule *r, lf_attr_id id, const char *words, unsigned absent, unsigned *out) {
    const lf_attr *a = lf_attr_of(r, id);
    *out = absent;
    if (!a) return NULL;
    const char *found = a->word ? a->word : lf_operand_text(r->g, &a->operand);
    unsigned position = 0;
    for (const char *w = words; *w; position++) {
        size_t n = strcspn(w, " ");
        if (strlen(found) == n && !memcmp(found, w, n)) {
            *out = position;
            return NULL;
        }
        w += n;
        w += strspn(w, " ");
    }
    return lf_rule_error_at(r, attr_place(r, a), "%s= must be one of: %s; found %s", lf_attr_name(id), words, found);
}

lf_status lf_attr_number(lf_rule *r, lf_attr_id id, lf_literal absent, lf_literal *out) {
    const lf_attr *a = lf_attr_of(r, id);
    *out = absent;
    if (!a) return NULL;
    if (a->word && lf_literal_parse(a->word, strlen(a->word), out)) return NULL;
    if (a->operand.kind != LF_OPERAND_LITERAL)
        return lf_rule_error_at(r, attr_place(r, a), "%s= must be a number, found %s", lf_attr_name(id),
                                a->word ? a->word : lf_operand_told(r->g, &a->operand));
    *out = a->operand.literal;
    return NULL;
}
