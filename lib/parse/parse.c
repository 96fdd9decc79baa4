// File, fusion, parameters, types, return. Statements are in statement.c.
#include "parse/parse.h"
#include "parse/parser.h"
#include <stdio.h>
#include <string.h>

// ---- what both files use -----------------------------------------------------------------------------------------------

lf_place lf_parser_place(const lf_parser *p, const lf_token *t) { return (lf_place){p->file, t->line, t->column}; }

lf_status lf_parser_next(lf_parser *p) {
    p->previous = (lf_place){NULL, p->lexer.end_line, p->lexer.end_column};
    return lf_lexer_next(&p->lexer, &p->token);
}

lf_status lf_parser_peek(const lf_parser *p, lf_token *out_token) {
    lf_lexer copy = p->lexer;
    return lf_lexer_next(&copy, out_token);
}

lf_status lf_parser_error(const lf_parser *p, const lf_token *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lf_status status = lf_source_error_v(&p->source, lf_parser_place(p, t), format, args);
    va_end(args);
    return status;
}

lf_status lf_parser_expected(const lf_parser *p, const char *what) {
    char found[TOKEN_TEXT], open[160] = "";
    if (p->token.kind == LF_TOKEN_END && p->fusion) {
        const lf_open_mark *m = p->n_open ? &p->open[p->n_open - 1] : NULL;
        if (m && m->mark != '{')
            snprintf(open, sizeof open, "; '%c' of %u:%u and fusion @%.40s of line %u are not closed", m->mark,
                     m->place.line, m->place.column, p->fusion, p->fusion_place.line);
        else
            snprintf(open, sizeof open, "; fusion @%.40s of line %u is not closed", p->fusion, p->fusion_place.line);
    }
    return lf_parser_error(p, &p->token, "found %s, expected %s%s", lf_token_text(&p->token, found, sizeof found), what,
                           open);
}

lf_status lf_parser_take(lf_parser *p, lf_token_kind kind, const char *what, lf_token *out_token) {
    if (out_token) *out_token = p->token;
    if (p->token.kind != kind) return lf_parser_expected(p, what);
    return lf_parser_next(p);
}

bool lf_parser_open(lf_parser *p, char mark) {
    if (p->n_open == MAX_OPEN) return false;
    p->open[p->n_open++] = (lf_open_mark){mark, lf_parser_place(p, &p->token)};
    return true;
}

void lf_parser_close(lf_parser *p) { p->n_open--; }

lf_status lf_parser_name(lf_parser *p, const lf_token *t, const char **out_name) {
    *out_name = lf_arena_strndup(&p->graph->arena, t->text, t->length);
    return *out_name ? NULL : lf_out_of_memory();
}

// ---- types -------------------------------------------------------------------------------------------------------------

static lf_status unknown_dtype(const lf_parser *p, const lf_token *t) {
    char found[TOKEN_TEXT], near[64], all[200] = "";
    lf_suggestion s;
    lf_suggest_start(&s, t->text, t->length);
    size_t used = 0;
    for (int d = 1; d < LF_DTYPE_COUNT; d++) {
        const char *name = lf_dtype_name((lf_dtype)d);
        lf_suggest_offer(&s, name, strlen(name));
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", d > 1 ? " " : "", name);
    }
    return lf_parser_error(p, t, "found %s, expected a dtype (%s)%s", lf_token_text(t, found, sizeof found), all,
                           t->kind == LF_TOKEN_WORD ? lf_suggest_text(&s, "", near, sizeof near) : "");
}

static lf_status dim(lf_parser *p, lf_dim_spec *out_dim) {
    const lf_token t = p->token;
    *out_dim = (lf_dim_spec){.place = lf_parser_place(p, &t)};
    if (t.kind == LF_TOKEN_QUESTION) {
        out_dim->kind = LF_DIM_UNKNOWN;
    } else if (t.kind == LF_TOKEN_VALUE) {
        out_dim->kind = LF_DIM_NAMED;
        LF_TRY(lf_parser_name(p, &t, &out_dim->name));
    } else if (t.kind == LF_TOKEN_NUMBER) {
        lf_literal l;
        char found[TOKEN_TEXT];
        if (!lf_literal_parse(t.text, t.length, &l) || l.kind != LF_LITERAL_INT || *t.text == '-' || l.magnitude > INT64_MAX)
            return lf_parser_error(p, &t, "found %s, expected an extent: an integer from 0 to 2^63 - 1, '?' or %%name",
                                   lf_token_text(&t, found, sizeof found));
        out_dim->kind = LF_DIM_KNOWN;
        out_dim->extent = (int64_t)l.magnitude;
    } else {
        return lf_parser_expected(p, "an extent: an integer, '?' or %name");
    }
    return lf_parser_next(p);
}

lf_status lf_parser_type(lf_parser *p, lf_type_spec *out) {
    *out = (lf_type_spec){.place = lf_parser_place(p, &p->token)};
    if (p->token.kind == LF_TOKEN_END) return lf_parser_expected(p, "a dtype");
    if (p->token.kind == LF_TOKEN_WORD) out->dtype = lf_dtype_parse(p->token.text, p->token.length);
    if (!out->dtype) return unknown_dtype(p, &p->token);
    LF_TRY(lf_parser_next(p));
    if (p->token.kind != LF_TOKEN_LIST_OPEN) return NULL;
    out->tensor = true;
    lf_parser_open(p, '[');
    LF_TRY(lf_parser_next(p));
    if (p->token.kind != LF_TOKEN_LIST_CLOSE) {
        for (;;) {
            if (out->rank == LF_MAX_RANK)
                return lf_parser_error(p, &p->token,
                                       "found a type of more than %d axes, expected ']': tensors have at most %d axes",
                                       LF_MAX_RANK, LF_MAX_RANK);
            LF_TRY(dim(p, &out->dims[out->rank]));
            out->rank++;
            if (p->token.kind != LF_TOKEN_COMMA) break;
            LF_TRY(lf_parser_next(p));
        }
    }
    LF_TRY(lf_parser_take(p, LF_TOKEN_LIST_CLOSE, "',' or ']'", NULL));
    lf_parser_close(p);
    return NULL;
}

lf_status lf_parser_types(lf_parser *p) {
    p->types.count = 0;
    for (;;) {
        lf_type_spec type;
        LF_TRY(lf_parser_type(p, &type));
        if (!lf_vec_push(&p->types, type)) return lf_out_of_memory();
        if (p->token.kind != LF_TOKEN_COMMA) return NULL;
        LF_TRY(lf_parser_next(p));
    }
}

lf_status lf_parser_keep_types(lf_parser *p, lf_type_spec **out_types) {
    *out_types = LF_ARENA_ARRAY(&p->graph->arena, lf_type_spec, p->types.count);
    if (!*out_types) return lf_out_of_memory();
    memcpy(*out_types, p->types.data, p->types.count * sizeof **out_types);
    return NULL;
}

// ---- fusion ------------------------------------------------------------------------------------------------------------

static lf_status param(lf_parser *p) {
    lf_token name;
    LF_TRY(lf_parser_take(p, LF_TOKEN_VALUE, p->params.count ? "a parameter '%name'" : "a parameter '%name' or ')'", &name));
    lf_param_spec spec = {.place = lf_parser_place(p, &name)};
    LF_TRY(lf_parser_name(p, &name, &spec.name));
    LF_TRY(lf_parser_take(p, LF_TOKEN_COLON, "':' and the parameter's type", NULL));
    LF_TRY(lf_parser_type(p, &spec.type));
    if (p->token.kind == LF_TOKEN_SYMBOL) {
        const lf_token t = p->token;
        char found[TOKEN_TEXT];
        if (t.length != 4 || memcmp(t.text, "host", 4))
            return lf_parser_error(p, &t, "found %s, expected '@host', ',' or ')'", lf_token_text(&t, found, sizeof found));
        if (!spec.type.tensor || spec.type.rank)
            return lf_parser_error(p, &t, "found '@host' on a %s, expected it on a tensor of rank 0 only, such as %s[]",
                                   spec.type.tensor ? "tensor with axes" : "scalar (which is always on the host)",
                                   lf_dtype_name(spec.type.dtype));
        spec.type.host = true;
        LF_TRY(lf_parser_next(p));
    }
    return lf_vec_push(&p->params, spec) ? NULL : lf_out_of_memory();
}

static lf_status params(lf_parser *p) {
    p->params.count = 0;
    if (p->token.kind == LF_TOKEN_PAREN_OPEN) lf_parser_open(p, '(');
    LF_TRY(lf_parser_take(p, LF_TOKEN_PAREN_OPEN, "'(' and the parameters", NULL));
    if (p->token.kind != LF_TOKEN_PAREN_CLOSE) {
        for (;;) {
            LF_TRY(param(p));
            if (p->token.kind != LF_TOKEN_COMMA) break;
            LF_TRY(lf_parser_next(p));
        }
    }
    LF_TRY(lf_parser_take(p, LF_TOKEN_PAREN_CLOSE, "',' or ')'", NULL));
    lf_parser_close(p);
    return lf_source_wrap(&p->source, p->fusion_place, lf_graph_set_params(p->graph, p->params.data, p->params.count));
}

// '->' '(' type {',' type} ')' into an array of its own, as result types within the body use p->types.
static lf_status declared_results(lf_parser *p, lf_type_spec **out_types, size_t *out_n) {
    LF_TRY(lf_parser_next(p));
    if (p->token.kind == LF_TOKEN_PAREN_OPEN) lf_parser_open(p, '(');
    LF_TRY(lf_parser_take(p, LF_TOKEN_PAREN_OPEN, "'(' and the types of the results", NULL));
    LF_TRY(lf_parser_types(p));
    LF_TRY(lf_parser_take(p, LF_TOKEN_PAREN_CLOSE, "',' or ')'", NULL));
    lf_parser_close(p);
    *out_n = p->types.count;
    return lf_parser_keep_types(p, out_types);
}

static lf_status output(lf_parser *p) {
    lf_return_spec spec = {.place = lf_parser_place(p, &p->token)};
    LF_TRY(lf_parser_operand(p, &spec.operand));
    if (lf_token_is(&p->token, "into")) {
        lf_token name;
        LF_TRY(lf_parser_next(p));
        LF_TRY(lf_parser_take(p, LF_TOKEN_VALUE, "the parameter '%name' that takes the output", &name));
        spec.into_place = lf_parser_place(p, &name);
        LF_TRY(lf_parser_name(p, &name, &spec.into));
    }
    return lf_vec_push(&p->outputs, spec) ? NULL : lf_out_of_memory();
}

static lf_status return_statement(lf_parser *p, const lf_type_spec *declared, size_t n_declared) {
    const lf_place place = lf_parser_place(p, &p->token);
    bool into = false;
    p->outputs.count = 0;
    p->operands.count = 0;
    LF_TRY(lf_parser_next(p));
    if (p->token.kind != LF_TOKEN_BRACE_CLOSE) {
        for (;;) {
            LF_TRY(output(p));
            into = p->outputs.data[p->outputs.count - 1].into;
            if (p->token.kind != LF_TOKEN_COMMA) break;
            LF_TRY(lf_parser_next(p));
        }
    }
    if (p->token.kind != LF_TOKEN_BRACE_CLOSE)
        return lf_parser_expected(p, into ? "',' or '}': nothing comes after 'return'"
                                          : "',', 'into' or '}': nothing comes after 'return'");
    lf_status status = lf_graph_return(p->graph, p->outputs.data, p->outputs.count, declared, n_declared);
    LF_TRY(lf_source_wrap(&p->source, place, status));
    p->graph->declared = declared;
    return NULL;
}

static lf_status body(lf_parser *p) {
    lf_type_spec *declared = NULL;
    size_t n_declared = 0;
    if (p->token.kind == LF_TOKEN_ARROW) LF_TRY(declared_results(p, &declared, &n_declared));
    if (p->token.kind == LF_TOKEN_BRACE_OPEN) lf_parser_open(p, '{');
    LF_TRY(lf_parser_take(p, LF_TOKEN_BRACE_OPEN, declared ? "'{' and the body" : "'->' or '{' and the body", NULL));
    while (!lf_token_is(&p->token, "return")) {
        if (p->token.kind == LF_TOKEN_BRACE_CLOSE)
            return lf_parser_error(p, &p->token, "found '}', expected 'return': fusion @%.100s returns nothing yet",
                                   p->fusion);
        LF_TRY(lf_parser_statement(p));
    }
    LF_TRY(return_statement(p, declared, n_declared));
    lf_parser_close(p);
    return lf_parser_next(p);
}

// 'fusion' '@'name
static lf_status fusion_head(lf_parser *p, lf_token *out_name, lf_graph **out_graph) {
    p->fusion = NULL;
    p->file = p->source.file;
    p->n_open = 0;
    if (!lf_token_is(&p->token, "fusion"))
        return lf_parser_expected(p, p->graph ? "'fusion' or the end of the text" : "'fusion'");
    p->fusion_place = lf_parser_place(p, &p->token);
    LF_TRY(lf_parser_next(p));
    LF_TRY(lf_parser_take(p, LF_TOKEN_SYMBOL, "the fusion's name '@name'", out_name));
    lf_status status = lf_graph_create(p->source.allocator, out_name->text, out_name->length, out_graph);
    return lf_source_wrap(&p->source, lf_parser_place(p, out_name), status);
}

// What follows the name.
static lf_status fusion_rest(lf_parser *p, lf_graph *g) {
    p->graph = g;
    p->fusion = g->name;
    p->file = lf_arena_strndup(&g->arena, p->source.file, strlen(p->source.file));
    if (!p->file) return lf_out_of_memory();
    LF_TRY(params(p));
    return body(p);
}

// ---- file --------------------------------------------------------------------------------------------------------------

// Names of the fusions so far: open addressing over indices + 1 into `graphs`.
typedef struct name_set {
    uint32_t *slots;
    size_t n_slots; // a power of two, or 0
} name_set;

static uint64_t hash_name(const char *s) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h ^ h >> 29;
}

typedef LF_VEC(lf_graph *) graph_vec;
typedef LF_VEC(lf_place) place_vec;

// Slot of that name, or the free one where it belongs.
static uint32_t *find_name(const name_set *set, lf_graph *const *graphs, const char *name) {
    for (size_t i = hash_name(name);; i++) {
        uint32_t *slot = &set->slots[i & (set->n_slots - 1)];
        if (!*slot || !strcmp(graphs[*slot - 1]->name, name)) return slot;
    }
}

// Room for one more of n.
static bool grow_names(const lf_allocator *a, name_set *set, lf_graph *const *graphs, size_t n) {
    if (n < set->n_slots / 2) return true;
    name_set wider = {NULL, set->n_slots ? set->n_slots * 2 : 16};
    wider.slots = lf_alloc_zero(a, wider.n_slots * sizeof *wider.slots);
    if (!wider.slots) return false;
    for (size_t i = 0; i < n; i++) *find_name(&wider, graphs, graphs[i]->name) = (uint32_t)i + 1;
    lf_free(a, set->slots);
    *set = wider;
    return true;
}

// The text is not kept, so what would be said of a sync point is drawn now.
static lf_status draw_syncs(lf_parser *p, lf_graph *g) {
    for (lf_sync_point *sync = g->first_sync; sync; sync = sync->next) {
        lf_status drawn = lf_source_error(&p->source, sync->place, "%s", sync->refusal);
        if (lf_status_code(drawn) == LF_OUT_OF_MEMORY) return drawn;
        const char *text = lf_status_message(drawn);
        sync->refusal = lf_arena_strndup(&g->arena, text, strlen(text));
        lf_status_destroy(drawn);
        if (!sync->refusal) return lf_out_of_memory();
    }
    return NULL;
}

static lf_status file(lf_parser *p, bool allow_sync, graph_vec *graphs, place_vec *places, name_set *names) {
    LF_TRY(lf_lexer_init(&p->lexer, &p->source));
    LF_TRY(lf_lexer_next(&p->lexer, &p->token));
    do {
        if (!lf_vec_reserve(graphs, 1) || !lf_vec_reserve(places, 1) ||
            !grow_names(p->source.allocator, names, graphs->data, graphs->count))
            return lf_out_of_memory();
        lf_token name;
        lf_graph *g;
        LF_TRY(fusion_head(p, &name, &g));
        uint32_t *slot = find_name(names, graphs->data, g->name);
        graphs->data[graphs->count++] = g;
        places->data[places->count++] = lf_parser_place(p, &name);
        if (*slot)
            return lf_parser_error(p, &name, "fusion @%.100s is defined twice, first on line %u; expected a new name",
                                   g->name, places->data[*slot - 1].line);
        *slot = (uint32_t)graphs->count;
        g->allow_sync = allow_sync;
        LF_TRY(fusion_rest(p, g));
        LF_TRY(draw_syncs(p, g));
    } while (p->token.kind != LF_TOKEN_END);
    return NULL;
}

void lf_parse_release(const lf_allocator *a, lf_graph **graphs, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (graphs[i]) lf_graph_destroy(graphs[i]);
    lf_free(a, graphs);
}

lf_status lf_parse(const lf_allocator *a, const char *file_name, const char *text, size_t length, bool allow_sync,
                   lf_graph ***out_graphs, size_t *out_n) {
    *out_graphs = NULL;
    *out_n = 0;
    lf_parser p = {.source = {a, file_name ? file_name : "<text>", length ? text : "", length}};
    lf_vec_init(&p.operands, a);
    lf_vec_init(&p.attrs, a);
    lf_vec_init(&p.names, a);
    lf_vec_init(&p.types, a);
    lf_vec_init(&p.params, a);
    lf_vec_init(&p.outputs, a);
    graph_vec graphs;
    place_vec places;
    name_set names = {0};
    lf_vec_init(&graphs, a);
    lf_vec_init(&places, a);
    lf_status status = file(&p, allow_sync, &graphs, &places, &names);
    lf_vec_finish(&p.operands);
    lf_vec_finish(&p.attrs);
    lf_vec_finish(&p.names);
    lf_vec_finish(&p.types);
    lf_vec_finish(&p.params);
    lf_vec_finish(&p.outputs);
    lf_vec_finish(&places);
    lf_free(a, names.slots);
    if (status) {
        lf_parse_release(a, graphs.data, graphs.count);
        return status;
    }
    *out_graphs = graphs.data;
    *out_n = graphs.count;
    return NULL;
}
