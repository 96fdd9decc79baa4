// Graphs as text. SOURCE is the language's own grammar, normalised: parsing it and printing again gives the same text. FULL
// shows what later stages see: every op as meant, with result types and places.
// Does not belong here: reading text (lib/parse), reports of later stages.
#include "base/text.h"
#include "base/vec.h"
#include "ir/build.h"
#include <stdio.h>
#include <string.h>

typedef struct lf_printer {
    const lf_graph *graph;
    lf_text text;
    bool full;
} lf_printer;

static void put_bytes(lf_printer *p, const char *s, size_t n) { lf_text_append(&p->text, s, n); }
static void put(lf_printer *p, const char *s) { put_bytes(p, s, strlen(s)); }
static void put_char(lf_printer *p, char c) { put_bytes(p, &c, 1); }

// Between the items of a list.
static void put_comma(lf_printer *p, bool *first) {
    if (!*first) put(p, ", ");
    *first = false;
}

static void put_int(lf_printer *p, int64_t v) {
    char text[24];
    put_bytes(p, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)v));
}

static void put_scalar(lf_printer *p, lf_dtype d, const lf_scalar *s) {
    char text[160];
    size_t n = lf_scalar_print(text, sizeof text, d, s);
    put_bytes(p, text, n < sizeof text ? n : sizeof text - 1);
}

// The name of a value without one: its number, then as many dots as it takes to be no name that the user gave. Dots are
// letters of names, so that the text can be read again.
static void put_number_name(lf_printer *p, const lf_value *v) {
    size_t start = p->text.size;
    put_int(p, v->id);
    while (!p->text.failed && lf_graph_lookup(v->def->graph, p->text.data + start, p->text.size - start)) put_char(p, '.');
}

static void put_value(lf_printer *p, const lf_value *v) {
    put_char(p, '%');
    if (v->name)
        put(p, v->name);
    else
        put_number_name(p, v);
}

static void put_string(lf_printer *p, const char *s) {
    put_char(p, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            put_char(p, '\\'), put_char(p, *s);
        else if (*s == '\n')
            put(p, "\\n");
        else if (*s == '\t')
            put(p, "\\t");
        else
            put_char(p, (unsigned char)*s < 0x20 || *s == 0x7f ? ' ' : *s); // strings cannot hold other control characters
    }
    put_char(p, '"');
}

// ---- types --------------------------------------------------------------------------------------------------------------

// Extents without a name or a number are '?', or in the full form the value.
static void put_type(lf_printer *p, const lf_type *t) {
    put(p, lf_dtype_name(t->dtype));
    if (!t->tensor) return;
    bool first = true;
    put_char(p, '[');
    for (unsigned i = 0; i < t->rank; i++) {
        const lf_value *dim = t->dims[i];
        int64_t extent;
        put_comma(p, &first);
        if (dim && !dim->name && lf_const_i64(dim, &extent))
            put_int(p, extent);
        else if (dim && (dim->name || p->full)) // none: a message about a parameter that is being bound
            put_value(p, dim);
        else
            put_char(p, '?');
    }
    put_char(p, ']');
    if (t->host) put(p, " @host");
}

static void put_type_specs(lf_printer *p, const lf_type_spec *types, size_t n) {
    for (size_t k = 0; k < n; k++) {
        const lf_type_spec *t = &types[k];
        bool first = true;
        if (k) put(p, ", ");
        put(p, lf_dtype_name(t->dtype));
        if (!t->tensor) continue;
        put_char(p, '[');
        for (unsigned i = 0; i < t->rank; i++) {
            put_comma(p, &first);
            switch (t->dims[i].kind) {
            case LF_DIM_KNOWN: put_int(p, t->dims[i].extent); break;
            case LF_DIM_UNKNOWN: put_char(p, '?'); break;
            case LF_DIM_NAMED: put_char(p, '%'), put(p, t->dims[i].name); break;
            }
        }
        put_char(p, ']');
    }
}

static void put_header(lf_printer *p) {
    const lf_graph *g = p->graph;
    bool first = true;
    put(p, "fusion @");
    put(p, g->name);
    put_char(p, '(');
    for (uint32_t i = 0; i < g->n_params; i++) {
        put_comma(p, &first);
        put_value(p, g->params[i]);
        put(p, ": ");
        put_type(p, &g->params[i]->type);
    }
    put_char(p, ')');
    if (g->declared) {
        put(p, " -> (");
        put_type_specs(p, g->declared, g->n_outputs);
        put_char(p, ')');
    }
    put(p, " {\n");
}

// ---- as written ---------------------------------------------------------------------------------------------------------

static void put_literal(lf_printer *p, const lf_operand *o) {
    const lf_literal *l = &o->literal;
    if (o->text) {
        put(p, o->text);
    } else if (l->kind == LF_LITERAL_INT) {
        char text[24];
        put_bytes(p, text,
                  (size_t)snprintf(text, sizeof text, "%s%llu", l->negative ? "-" : "", (unsigned long long)l->magnitude));
    } else if (l->kind == LF_LITERAL_BOOL) {
        put(p, l->magnitude ? "true" : "false");
    } else {
        const lf_scalar s = {.f64 = l->nearest};
        put_scalar(p, LF_F64, &s);
    }
}

// Lists may be nested to any depth when a graph comes from the C builder, so the lists that are open lie on a stack.
typedef struct lf_open_list {
    const lf_operand *list;
    uint32_t next;
} lf_open_list;
typedef LF_VEC(lf_open_list) lf_open_lists;

static void put_simple_operand(lf_printer *p, const lf_operand *o) {
    switch (o->kind) {
    case LF_OPERAND_NONE: put(p, "none"); break;
    case LF_OPERAND_VALUE: put_value(p, o->value); break;
    case LF_OPERAND_LITERAL: put_literal(p, o); break;
    case LF_OPERAND_LIST: break;
    }
}

static void put_operand(lf_printer *p, const lf_operand *o) {
    if (o->kind != LF_OPERAND_LIST) {
        put_simple_operand(p, o);
        return;
    }
    lf_open_lists open;
    lf_vec_init(&open, p->graph->allocator);
    for (const lf_operand *list = o; list && !p->text.failed;) {
        put_char(p, '[');
        if (!lf_vec_push(&open, ((lf_open_list){list, 0}))) p->text.failed = true;
        list = NULL;
        while (!list && open.count && !p->text.failed) {
            lf_open_list *top = &open.data[open.count - 1];
            if (top->next == top->list->n_items) {
                put_char(p, ']');
                open.count--;
                continue;
            }
            if (top->next) put(p, ", ");
            const lf_operand *item = &top->list->items[top->next++];
            if (item->kind == LF_OPERAND_LIST)
                list = item;
            else
                put_simple_operand(p, item);
        }
    }
    lf_vec_finish(&open);
}

static void put_attr(lf_printer *p, const lf_attr *a) {
    put(p, lf_attr_name(a->id));
    put_char(p, '=');
    if (lf_attr_kind_of(a->id) == LF_ATTR_DTYPE_NAME)
        put(p, lf_dtype_name(a->dtype));
    else if (a->word)
        put(p, a->word);
    else
        put_operand(p, &a->operand);
}

static void put_results(lf_printer *p, const lf_op *op) {
    bool first = true;
    put(p, "  ");
    for (uint16_t i = 0; i < op->n_results; i++) {
        put_comma(p, &first);
        put_value(p, &op->results[i]);
    }
    put(p, " = ");
}

static void put_source_op(lf_printer *p, const lf_op *op) {
    bool first = true;
    put_results(p, op);
    put(p, lf_op_info_of(op->code)->name);
    for (uint16_t i = 0; i < op->n_args; i++) {
        put(p, first ? " " : ", ");
        first = false;
        put_operand(p, &op->args[i]);
    }
    for (uint16_t i = 0; i < op->n_attrs; i++) {
        put(p, first ? " " : ", ");
        first = false;
        put_attr(p, &op->attrs[i]);
    }
    if (op->declared) {
        put(p, " : ");
        put_type_specs(p, op->declared, op->n_results);
    }
    put_char(p, '\n');
}

// An assert is a check that is written.
static void put_assert(lf_printer *p, const lf_op *op) {
    put(p, "  assert ");
    if (op->n_args)
        put_operand(p, &op->args[0]);
    else
        put_value(p, op->operands[0]);
    put(p, ", ");
    put_string(p, op->message);
    put_char(p, '\n');
}

static void put_return(lf_printer *p) {
    const lf_graph *g = p->graph;
    bool first = true;
    if (!g->finished) return;
    put(p, "  return");
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const lf_output *o = &g->outputs[i];
        const lf_value *v = p->full || !o->written ? o->value : o->written;
        if (first) put_char(p, ' ');
        put_comma(p, &first);
        if (!p->full && !v->name && lf_is_const(v) && v->def->implicit)
            put_scalar(p, v->type.dtype, &v->def->constant);
        else
            put_value(p, v);
        if (!o->into) continue;
        put(p, " into ");
        put_value(p, o->into);
    }
    put_char(p, '\n');
}

// ---- as meant -----------------------------------------------------------------------------------------------------------

// Fields of lf_op that mean something, by op; the rest follows from the op's kind.
enum { SHOW_AXIS = 1, SHOW_AXES = 2, SHOW_KEEPDIM = 4, SHOW_MODE = 8, SHOW_NUMBER = 16, SHOW_SLOT = 32 };
typedef struct lf_shown_fields {
    unsigned char fields;
    const char *flag, *extra; // what lf_op.flag says, what lf_op.extra is called; NULL: they mean nothing
} lf_shown_fields;
static const lf_shown_fields shown[LF_OP_COUNT] = {
#define LF_REDUCE(ID, name, args, attrs, doc) [LF_OP_##ID] = {SHOW_AXES | SHOW_KEEPDIM, NULL, NULL},
#include "ir/ops.def"
    [LF_OP_GELU] = {0, "approximate=tanh", NULL},
    [LF_OP_LEAKY_RELU] = {SHOW_NUMBER, NULL, NULL},
    [LF_OP_ELU] = {SHOW_NUMBER, NULL, NULL},
    [LF_OP_CUMSUM] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_CUMPROD] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_CUMMAX] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_CUMMIN] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_LOGCUMSUMEXP] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_SORT] = {SHOW_AXIS, "descending=true", NULL},
    [LF_OP_TOPK] = {SHOW_AXIS, "largest=true", NULL},
    [LF_OP_SCATTER] = {SHOW_AXIS | SHOW_MODE, NULL, NULL},
    [LF_OP_CAT] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_STACK] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_TAKE] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_GATHER] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_INDEX] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_EXTENT] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_PITCH] = {SHOW_AXIS, NULL, NULL},
    [LF_OP_PAD] = {0, NULL, "low"},
    [LF_OP_ROLL] = {0, NULL, "amount"},
    [LF_OP_SLOT] = {SHOW_SLOT, NULL, NULL},
};

static void put_key(lf_printer *p, bool *first, const char *key) {
    put(p, *first ? " " : ", ");
    *first = false;
    put(p, key);
    put_char(p, '=');
}

// "[%a, 0]", for extents, starts, steps; `absent` stands for NULL.
static void put_values(lf_printer *p, lf_value *const *values, unsigned n, const char *absent) {
    bool first = true;
    put_char(p, '[');
    for (unsigned i = 0; i < n; i++) {
        int64_t k;
        put_comma(p, &first);
        if (!values[i])
            put(p, absent);
        else if (lf_const_i64(values[i], &k) && !values[i]->name)
            put_int(p, k);
        else
            put_value(p, values[i]);
    }
    put_char(p, ']');
}

static bool any_of(lf_value *const *values, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (values[i]) return true;
    return false;
}

static void put_view(lf_printer *p, const lf_op *op, bool *first) {
    const lf_view *v = &op->view;
    const unsigned from = op->operands[0]->type.rank, to = op->results[0].type.rank;
    if (v->reshape) return; // the result type says it
    bool comma = true;
    put_key(p, first, "map");
    put_char(p, '[');
    for (unsigned i = 0; i < to; i++) put_comma(p, &comma), put_int(p, v->map[i]);
    put_char(p, ']');
    if (any_of(v->start, from)) put_key(p, first, "start"), put_values(p, v->start, from, "0");
    if (any_of(v->step, from)) put_key(p, first, "step"), put_values(p, v->step, from, "1");
}

static void put_axes(lf_printer *p, uint32_t axes) {
    bool first = true;
    put_char(p, '[');
    for (int a = 0; a < LF_MAX_RANK; a++)
        if (axes >> a & 1) put_comma(p, &first), put_int(p, a);
    put_char(p, ']');
}

static void put_data(lf_printer *p, const lf_op *op, bool *first) {
    enum { MOST = 16 };
    const lf_dtype d = op->results[0].type.dtype;
    const unsigned bytes = lf_dtype_bytes(d);
    const uint64_t n = op->data_bytes / bytes;
    bool comma = true;
    put(p, *first ? " [" : ", [");
    *first = false;
    for (uint64_t i = 0; i < n && i < MOST; i++) {
        lf_scalar s = {0};
        memcpy(&s, (const char *)op->data + i * bytes, bytes);
        put_comma(p, &comma);
        put_scalar(p, d, &s);
    }
    put(p, n > MOST ? ", ...]" : "]");
}

static void put_fields(lf_printer *p, const lf_op *op, bool *first) {
    static const char *const modes[] = {"set", "add", "mul", "min", "max"};
    const lf_shown_fields *s = &shown[op->code];
    const lf_dtype result = op->n_results ? op->results[0].type.dtype : LF_NO_DTYPE;
    const bool computes = op->compute && lf_op_info_of(op->code)->kind != LF_KIND_INTERNAL;
    if (s->fields & SHOW_AXES) put_key(p, first, "axes"), put_axes(p, op->axes);
    if (s->fields & SHOW_AXIS) put_key(p, first, "axis"), put_int(p, op->axis);
    if (s->fields & SHOW_KEEPDIM && op->keepdim) put_key(p, first, "keepdim"), put(p, "true");
    if (s->fields & SHOW_MODE) put_key(p, first, "mode"), put(p, op->mode < 5 ? modes[op->mode] : "?");
    if (s->fields & SHOW_SLOT) put_key(p, first, "slot"), put_int(p, op->slot);
    if (s->fields & SHOW_NUMBER) {
        const lf_scalar number = {.f64 = op->number};
        put_key(p, first, op->code == LF_OP_ELU ? "alpha" : "slope");
        put_scalar(p, LF_F64, &number);
    }
    if (s->flag && op->flag) put(p, *first ? " " : ", "), *first = false, put(p, s->flag);
    if (s->extra && op->n_operands) put_key(p, first, s->extra), put_values(p, op->extra, op->operands[0]->type.rank, "0");
    if (computes && op->compute != result) put_key(p, first, "compute"), put(p, lf_dtype_name(op->compute));
    if (lf_op_info_of(op->code)->kind == LF_KIND_VIEW) put_view(p, op, first);
    if (op->code == LF_OP_TENSOR) put_data(p, op, first);
    if (op->code == LF_OP_CONST) put_char(p, ' '), put_scalar(p, result, &op->constant);
}

static const char *place_name(lf_place_class c) {
    return c == LF_ON_HOST ? "host" : c == LF_ON_DEVICE ? "device" : "pending";
}

// "%m = %30 : f32[%h]  // device, result of mean"
static void put_alias(lf_printer *p, const lf_op *op) {
    for (uint16_t i = 0; i < op->n_results; i++) {
        put(p, "  ");
        put_value(p, &op->results[i]);
        put(p, " = ");
        put_value(p, op->operands[i]);
        put(p, " : ");
        put_type(p, &op->results[i].type);
        put(p, "  // ");
        put(p, place_name(op->results[i].where));
        put(p, ", result of ");
        put(p, lf_op_info_of(op->code)->name);
        put_char(p, '\n');
    }
}

static void put_check(lf_printer *p, const lf_op *op) {
    bool first = true;
    put(p, "  check ");
    put_value(p, op->operands[0]);
    put(p, ", ");
    put_string(p, op->message);
    put_char(p, '(');
    for (uint16_t i = 1; i < op->n_operands; i++) {
        put_comma(p, &first);
        put_value(p, op->operands[i]);
    }
    put(p, ")\n");
}

static void put_full_op(lf_printer *p, const lf_op *op) {
    bool first = true;
    put_results(p, op);
    put(p, lf_op_info_of(op->code)->name);
    for (uint16_t i = 0; i < op->n_operands; i++) {
        put(p, first ? " " : ", ");
        first = false;
        if (op->operands[i])
            put_value(p, op->operands[i]);
        else
            put(p, "none");
    }
    put_fields(p, op, &first);
    put(p, " : ");
    for (uint16_t i = 0; i < op->n_results; i++) {
        if (i) put(p, ", ");
        put_type(p, &op->results[i].type);
    }
    put(p, "  // ");
    put(p, place_name(op->n_results ? op->results[0].where : LF_ON_HOST));
    put_char(p, '\n');
}

// ---- whole graphs, and pieces for diagnostics ---------------------------------------------------------------------------

lf_status lf_graph_print(const lf_graph *g, lf_print_form form, char **out_text) {
    lf_printer p = {.graph = g, .full = form == LF_PRINT_FULL};
    lf_text_init(&p.text, g->allocator);
    put_header(&p);
    for (const lf_op *op = g->first; op && !p.text.failed; op = op->next) {
        if (op->code == LF_OP_PARAM) continue;
        if (!p.full && op->implicit) continue;
        if (op->code == LF_OP_CHECK)
            p.full ? put_check(&p, op) : put_assert(&p, op);
        else if (!p.full)
            put_source_op(&p, op);
        else
            op->alias ? put_alias(&p, op) : put_full_op(&p, op);
    }
    put_return(&p);
    put(&p, "}\n");
    return lf_text_take(&p.text, out_text);
}

// A short piece into the arena; "?" when there is no memory, as callers put it straight into a message: the arena says so.
static const char *piece(lf_printer *p, lf_arena *arena) {
    const char *text = p->text.failed ? NULL : lf_arena_strndup(arena, p->text.data, p->text.size);
    if (!text) arena->failed = true;
    lf_text_finish(&p->text);
    return text ? text : "?";
}

const char *lf_type_text(lf_arena *arena, const lf_type *type) {
    lf_printer p = {0};
    lf_text_init(&p.text, arena->allocator);
    put_type(&p, type);
    return piece(&p, arena);
}

const char *lf_value_text(lf_arena *arena, const lf_value *v) {
    lf_printer p = {0};
    lf_text_init(&p.text, arena->allocator);
    put_value(&p, v);
    return piece(&p, arena);
}
