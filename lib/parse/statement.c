// Statements: operands, attributes, ops, asserts.
#include "parse/parser.h"
#include <stdio.h>
#include <string.h>

// ---- operands ----------------------------------------------------------------------------------------------------------

void lf_suggest_value(lf_suggestion *s, const lf_graph *g) {
    for (uint32_t i = 0; i < g->n_params; i++)
        if (g->params[i]->name) lf_suggest_offer(s, g->params[i]->name, strlen(g->params[i]->name));
    for (const lf_op *op = g->first; op; op = op->next)
        for (uint16_t i = 0; i < op->n_results; i++)
            if (op->results[i].name) lf_suggest_offer(s, op->results[i].name, strlen(op->results[i].name));
}

static bool same_text(const lf_token *a, const char *name, size_t n) { return a->length == n && !memcmp(a->text, name, n); }

// Line on which the rest of the fusion has "%name =", or 0.
static uint32_t line_of_later_definition(const lf_parser *p, const lf_token *name) {
    lf_lexer copy = p->lexer;
    lf_token t = p->token, before = {0};
    while (t.kind != LF_TOKEN_END && t.kind != LF_TOKEN_BRACE_CLOSE) {
        if (t.kind == LF_TOKEN_EQUALS && before.kind == LF_TOKEN_VALUE && same_text(&before, name->text, name->length))
            return before.line;
        before = t;
        lf_status status = lf_lexer_next(&copy, &t);
        if (status) return lf_status_destroy(status), 0;
    }
    return 0;
}

static lf_status undefined(const lf_parser *p, const lf_token *t) {
    char found[TOKEN_TEXT], near[64];
    lf_token_text(t, found, sizeof found);
    for (size_t i = 0; i < p->names.count; i++)
        if (same_text(t, p->names.data[i], strlen(p->names.data[i])))
            return lf_parser_error(p, t, "found %s in its own definition, expected a value that is defined before", found);
    uint32_t later = line_of_later_definition(p, t);
    if (later)
        return lf_parser_error(p, t, "found %s before its definition on line %u, expected it after that line", found, later);
    lf_suggestion s;
    lf_suggest_start(&s, t->text, t->length);
    lf_suggest_value(&s, p->graph);
    return lf_parser_error(p, t, "undefined name %s%s", found, lf_suggest_text(&s, "%", near, sizeof near));
}

// A word where an operand is expected, and which is none.
static lf_status not_an_operand(const lf_parser *p) {
    const lf_token *t = &p->token;
    char found[TOKEN_TEXT];
    static const char expected[] = "an operand: %name, a number, true, false, none or a list '[...]'";
    if (t->kind == LF_TOKEN_WORD && lf_graph_lookup(p->graph, t->text, t->length))
        return lf_parser_error(p, t, "found %s, expected %s; did you mean '%%%.*s'?", lf_token_text(t, found, sizeof found),
                               expected, (int)(t->length > TOKEN_TEXT ? TOKEN_TEXT : t->length), t->text);
    return lf_parser_expected(p, expected);
}

static lf_status literal(lf_parser *p, const lf_token *t, lf_operand *o) {
    char found[TOKEN_TEXT];
    o->kind = LF_OPERAND_LITERAL;
    if (!lf_literal_parse(t->text, t->length, &o->literal)) {
        lf_token_text(t, found, sizeof found);
        size_t i = *t->text == '-';
        while (i < t->length && t->text[i] >= '0' && t->text[i] <= '9') i++;
        if (i == t->length) return lf_parser_error(p, t, "found the integer %s, expected one of at most 64 bits", found);
        return lf_parser_error(p, t, "found %s, expected a number such as 3, -1.5, 2e-3, 0x1.8p4 or -inf", found);
    }
    return lf_parser_name(p, t, &o->text);
}

static bool is_literal_word(const lf_token *t) {
    return lf_token_is(t, "true") || lf_token_is(t, "false") || lf_token_is(t, "inf") || lf_token_is(t, "nan");
}

// An operand that is no list.
static lf_status simple_operand(lf_parser *p, lf_operand *o) {
    const lf_token t = p->token;
    if (t.kind == LF_TOKEN_VALUE) {
        o->kind = LF_OPERAND_VALUE;
        o->value = lf_graph_lookup(p->graph, t.text, t.length);
        if (!o->value) return undefined(p, &t);
    } else if (t.kind == LF_TOKEN_NUMBER || is_literal_word(&t)) {
        LF_TRY(literal(p, &t, o));
    } else if (lf_token_is(&t, "none")) {
        o->kind = LF_OPERAND_NONE;
    } else {
        return not_an_operand(p);
    }
    return lf_parser_next(p);
}

// Moves the operands from `base` on out of the scratch stack.
static lf_status finish_list(lf_parser *p, size_t base, lf_operand *list) {
    size_t n = p->operands.count - base;
    if (n > UINT32_MAX)
        return lf_source_error(&p->source, list->place, "found a list of %zu items, expected at most %u", n, UINT32_MAX);
    lf_operand *items = LF_ARENA_ARRAY(&p->graph->arena, lf_operand, n);
    if (!items) return lf_out_of_memory();
    if (n) memcpy(items, p->operands.data + base, n * sizeof *items);
    list->items = items;
    list->n_items = (uint32_t)n;
    p->operands.count = base;
    return NULL;
}

lf_status lf_parser_operand(lf_parser *p, lf_operand *out_operand) {
    // The lists that are open: what is known of each, and where its items begin on the stack.
    struct {
        lf_operand list;
        size_t base;
    } open[LF_MAX_RANK];
    unsigned depth = 0;
    for (;;) {
        lf_operand o = {.place = lf_parser_place(p, &p->token)};
        if (p->token.kind == LF_TOKEN_LIST_OPEN) {
            if (depth == LF_MAX_RANK || !lf_parser_open(p, '['))
                return lf_parser_error(
                    p, &p->token, "found '[' within %d lists, expected lists at most %d deep: tensors have at most %d axes",
                    LF_MAX_RANK, LF_MAX_RANK, LF_MAX_RANK);
            o.kind = LF_OPERAND_LIST;
            open[depth].list = o;
            open[depth++].base = p->operands.count;
            LF_TRY(lf_parser_next(p));
            if (p->token.kind != LF_TOKEN_LIST_CLOSE) continue;
        } else {
            LF_TRY(simple_operand(p, &o));
            if (!depth) {
                *out_operand = o;
                return NULL;
            }
            if (!lf_vec_push(&p->operands, o)) return lf_out_of_memory();
        }
        // Behind an item of a list, or at the end of an empty one.
        while (p->token.kind == LF_TOKEN_LIST_CLOSE) {
            o = open[--depth].list;
            LF_TRY(finish_list(p, open[depth].base, &o));
            lf_parser_close(p);
            LF_TRY(lf_parser_next(p));
            if (!depth) {
                *out_operand = o;
                return NULL;
            }
            if (!lf_vec_push(&p->operands, o)) return lf_out_of_memory();
        }
        LF_TRY(lf_parser_take(p, LF_TOKEN_COMMA, "',' or ']'", NULL));
    }
}

// ---- attributes --------------------------------------------------------------------------------------------------------

// Calls of `f` for each blank-separated word.
static const char *next_word(const char *words, size_t *n) {
    while (*words == ' ') words++;
    *n = strcspn(words, " ");
    return words;
}

static bool allows(const char *words, const lf_token *key) {
    size_t n;
    for (const char *w = next_word(words, &n); n; w = next_word(w + n, &n))
        if (same_text(key, w, n)) return true;
    return false;
}

static lf_status unknown_attribute(const lf_parser *p, const lf_token *key, const lf_op_info *info) {
    char found[TOKEN_TEXT], near[64], all[160] = "";
    const char *words = info->attrs ? info->attrs : "";
    size_t n, used = 0;
    lf_suggestion s;
    lf_suggest_start(&s, key->text, key->length);
    for (const char *w = next_word(words, &n); n; w = next_word(w + n, &n)) {
        lf_suggest_offer(&s, w, n);
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%.*s=", used ? ", " : "", (int)n, w);
    }
    lf_token_text(key, found, sizeof found);
    if (!used) return lf_parser_error(p, key, "found the attribute %s, but '%s' takes none", found, info->name);
    return lf_parser_error(p, key, "found the attribute %s, expected one of '%s': %s%s", found, info->name, all,
                           lf_suggest_text(&s, "", near, sizeof near));
}

static const char *attr_wants(lf_attr_kind kind) {
    static const char *const texts[] = {
        [LF_ATTR_INT] = "an integer",
        [LF_ATTR_INTS] = "an integer or a list of integers",
        [LF_ATTR_BOOL] = "true or false",
        [LF_ATTR_DTYPE_NAME] = "a dtype",
        [LF_ATTR_WORD] = "a name",
        [LF_ATTR_NUMBER] = "a number",
        [LF_ATTR_VALUE] = "a value or a number",
    };
    return texts[kind];
}

static bool is_integer_literal(const lf_operand *o) {
    return o->kind == LF_OPERAND_LITERAL && o->literal.kind == LF_LITERAL_INT;
}

// The part of the operand that is no such attribute; NULL: none.
static const lf_operand *misfit(lf_attr_kind kind, const lf_operand *o) {
    bool fits = false;
    switch (kind) {
    case LF_ATTR_INTS:
        if (o->kind == LF_OPERAND_LIST) {
            for (uint32_t i = 0; i < o->n_items; i++)
                if (!is_integer_literal(&o->items[i])) return &o->items[i];
            return NULL;
        }
        fits = is_integer_literal(o);
        break;
    case LF_ATTR_INT: fits = is_integer_literal(o); break;
    case LF_ATTR_BOOL: fits = o->kind == LF_OPERAND_LITERAL && o->literal.kind == LF_LITERAL_BOOL; break;
    case LF_ATTR_NUMBER: fits = o->kind == LF_OPERAND_LITERAL && o->literal.kind != LF_LITERAL_BOOL; break;
    case LF_ATTR_VALUE: fits = o->kind == LF_OPERAND_VALUE || o->kind == LF_OPERAND_LITERAL; break;
    default: break;
    }
    return fits ? NULL : o;
}

// The token that an operand begins with, for "found …".
static lf_token first_token(const lf_operand *o) {
    lf_token t = {.line = o->place.line, .column = o->place.column};
    switch (o->kind) {
    case LF_OPERAND_NONE: t.kind = LF_TOKEN_WORD, t.text = "none"; break;
    case LF_OPERAND_VALUE: t.kind = LF_TOKEN_VALUE, t.text = o->value->name; break;
    case LF_OPERAND_LITERAL: t.kind = LF_TOKEN_NUMBER, t.text = o->text; break;
    case LF_OPERAND_LIST: t.kind = LF_TOKEN_LIST_OPEN, t.text = "["; break;
    }
    t.length = strlen(t.text);
    return t;
}

// A name or a string, for WORD and DTYPE_NAME.
static lf_status attr_word(lf_parser *p, lf_attr *attr, lf_attr_kind kind, const char *key) {
    const lf_token t = p->token;
    if (t.kind == LF_TOKEN_STRING) {
        char *text = lf_arena_alloc(&p->graph->arena, t.length);
        if (!text) return lf_out_of_memory();
        lf_token_unescape(&t, text);
        attr->word = text;
    } else if (t.kind == LF_TOKEN_WORD || t.kind == LF_TOKEN_NUMBER) {
        LF_TRY(lf_parser_name(p, &t, &attr->word));
    } else {
        char what[64];
        snprintf(what, sizeof what, "%s for %s=", attr_wants(kind), key);
        return lf_parser_expected(p, what);
    }
    if (kind == LF_ATTR_DTYPE_NAME) {
        attr->dtype = lf_dtype_parse(attr->word, strlen(attr->word));
        lf_type_spec type;
        if (!attr->dtype)
            return t.kind == LF_TOKEN_WORD ? lf_parser_type(p, &type) : lf_parser_expected(p, "a dtype for dtype=");
    }
    return lf_parser_next(p);
}

static lf_status attribute(lf_parser *p, const lf_op_info *info) {
    const lf_token key = p->token;
    char found[TOKEN_TEXT];
    lf_attr attr = {.id = lf_attr_parse(key.text, key.length), .place = lf_parser_place(p, &key)};
    if (!attr.id || !info->attrs || !allows(info->attrs, &key)) return unknown_attribute(p, &key, info);
    for (size_t i = 0; i < p->attrs.count; i++)
        if (p->attrs.data[i].id == attr.id)
            return lf_parser_error(p, &key,
                                   "found the attribute %s= twice, expected it once (first in column %u of line %u)",
                                   lf_attr_name(attr.id), p->attrs.data[i].place.column, p->attrs.data[i].place.line);
    LF_TRY(lf_parser_next(p));
    LF_TRY(lf_parser_next(p)); // '='
    const lf_token value = p->token;
    lf_attr_kind kind = lf_attr_kind_of(attr.id);
    if (kind == LF_ATTR_WORD || kind == LF_ATTR_DTYPE_NAME) {
        LF_TRY(attr_word(p, &attr, kind, lf_attr_name(attr.id)));
    } else {
        char what[64];
        snprintf(what, sizeof what, "%s for %s=", attr_wants(kind), lf_attr_name(attr.id));
        if (value.kind != LF_TOKEN_VALUE && value.kind != LF_TOKEN_NUMBER && value.kind != LF_TOKEN_LIST_OPEN &&
            !is_literal_word(&value))
            return lf_parser_expected(p, what);
        LF_TRY(lf_parser_operand(p, &attr.operand));
        const lf_operand *wrong = misfit(kind, &attr.operand);
        if (wrong) {
            lf_token t = first_token(wrong);
            return lf_parser_error(p, &t, "found %s, expected %s", lf_token_text(&t, found, sizeof found), what);
        }
        if (kind == LF_ATTR_NUMBER && attr.operand.literal.kind == LF_LITERAL_FLOAT &&
            strspn(attr.operand.text, "-infa") == strlen(attr.operand.text))
            attr.word = attr.operand.text; // inf, -inf, nan
    }
    return lf_vec_push(&p->attrs, attr) ? NULL : lf_out_of_memory();
}

// ---- ops ---------------------------------------------------------------------------------------------------------------

static lf_opcode find_op(const lf_token *name, size_t n_args, lf_opcode *out_other) {
    *out_other = LF_OP_NONE;
    lf_opcode code = lf_op_find(name->text, name->length, n_args, out_other);
    return code && lf_op_info_of(code)->kind != LF_KIND_INTERNAL ? code : LF_OP_NONE;
}

static bool op_exists(const lf_token *name) {
    lf_opcode other;
    return find_op(name, 1, &other) || (other && lf_op_info_of(other)->kind != LF_KIND_INTERNAL);
}

static lf_status unknown_op(const lf_parser *p, const lf_token *name) {
    char found[TOKEN_TEXT], near[64];
    lf_suggestion s;
    lf_suggest_start(&s, name->text, name->length);
    for (int code = 1; code < LF_OP_COUNT; code++) {
        const lf_op_info *info = lf_op_info_of((lf_opcode)code);
        if (info->kind != LF_KIND_INTERNAL) lf_suggest_offer(&s, info->name, strlen(info->name));
    }
    return lf_parser_error(p, name, "unknown op %s%s", lf_token_text(name, found, sizeof found),
                           lf_suggest_text(&s, "", near, sizeof near));
}

static lf_status wrong_count(const lf_parser *p, const lf_token *name, size_t n_args) {
    enum { MOST = 12 };
    char counts[80] = "";
    size_t used = 0;
    unsigned least = 0;
    bool many = false, one = false;
    for (unsigned n = 0; n <= MOST; n++) {
        lf_opcode other;
        if (!find_op(name, n, &other)) continue;
        if (many) continue;
        if (!used) least = n;
        one = !used && n == 1;
        many = find_op(name, MOST, &other);
        used += (size_t)snprintf(counts + used, sizeof counts - used, "%s%u", used ? " or " : "", n);
    }
    if (many) snprintf(counts, sizeof counts, "%u or more", least);
    return lf_parser_error(p, name, "found %zu operand%s for '%.*s', expected %s%s", n_args, n_args == 1 ? "" : "s",
                           (int)name->length, name->text, counts, one && !many ? " operand" : " operands");
}

// operand {',' operand} {',' key '=' attr}: operands into p->operands, attributes into p->attrs. *out_code is NONE as long as
// no attribute asked for it.
static lf_status arguments(lf_parser *p, const lf_token *name, lf_opcode *out_code) {
    lf_opcode other;
    for (bool first = true;; first = false) {
        lf_token behind = {.kind = LF_TOKEN_END};
        if (p->token.kind == LF_TOKEN_WORD) LF_TRY(lf_parser_peek(p, &behind));
        if (behind.kind == LF_TOKEN_EQUALS) {
            if (!*out_code) *out_code = find_op(name, p->operands.count, &other);
            if (!*out_code) return wrong_count(p, name, p->operands.count);
            LF_TRY(attribute(p, lf_op_info_of(*out_code)));
        } else if (p->attrs.count) {
            return lf_parser_expected(p, "key=value: operands come before attributes");
        } else {
            // `%a = eye` and the next statement: the count is what is wrong.
            if (first && p->token.kind == LF_TOKEN_VALUE) LF_TRY(lf_parser_peek(p, &behind));
            if (first && (behind.kind == LF_TOKEN_EQUALS || p->token.kind == LF_TOKEN_COLON ||
                          p->token.kind == LF_TOKEN_BRACE_CLOSE || lf_token_is(&p->token, "return") ||
                          lf_token_is(&p->token, "assert")))
                return wrong_count(p, name, 0);
            lf_operand o;
            LF_TRY(lf_parser_operand(p, &o));
            if (!lf_vec_push(&p->operands, o)) return lf_out_of_memory();
        }
        if (p->token.kind != LF_TOKEN_COMMA) return NULL;
        LF_TRY(lf_parser_next(p));
    }
}

// Whether a statement may end before the current token; `else_expected`: what else could stand there.
static lf_status end_of_statement(const lf_parser *p, const char *else_expected) {
    char what[64];
    const lf_token *t = &p->token;
    if (t->kind == LF_TOKEN_BRACE_CLOSE || lf_token_is(t, "return") || lf_token_is(t, "assert")) return NULL;
    if (t->kind == LF_TOKEN_VALUE) {
        if (t->line != p->previous.line) return NULL;
        lf_token behind;
        LF_TRY(lf_parser_peek(p, &behind));
        if (behind.kind == LF_TOKEN_EQUALS || behind.kind == LF_TOKEN_COMMA) return NULL;
    }
    snprintf(what, sizeof what, "%sthe next statement", else_expected);
    return lf_parser_expected(p, what);
}

static lf_status op_statement(lf_parser *p) {
    lf_token name;
    LF_TRY(lf_parser_take(p, LF_TOKEN_WORD, "the name of an op", &name));
    if (!op_exists(&name)) return unknown_op(p, &name);
    lf_opcode code = LF_OP_NONE, other;
    LF_TRY(arguments(p, &name, &code));
    p->types.count = 0;
    if (p->token.kind == LF_TOKEN_COLON) {
        LF_TRY(lf_parser_next(p));
        LF_TRY(lf_parser_types(p));
    }
    LF_TRY(end_of_statement(p, p->types.count ? "',' or " : "',', ':' or "));
    if (!code) code = find_op(&name, p->operands.count, &other);
    if (!code) return wrong_count(p, &name, p->operands.count);
    const lf_op_request request = {
        .code = code,
        .args = p->operands.data,
        .n_args = p->operands.count,
        .attrs = p->attrs.data,
        .n_attrs = p->attrs.count,
        .names = p->names.data,
        .n_names = p->names.count,
        .types = p->types.count ? p->types.data : NULL,
        .n_types = p->types.count,
        .place = lf_parser_place(p, &name),
    };
    lf_value *results;
    size_t n_results;
    LF_TRY(lf_source_wrap(&p->source, request.place, lf_graph_add(p->graph, &request, &results, &n_results)));
    if (!p->types.count) return NULL;
    lf_type_spec *declared;
    LF_TRY(lf_parser_keep_types(p, &declared));
    results[0].def->declared = declared;
    return NULL;
}

static lf_status assert_statement(lf_parser *p) {
    const lf_place place = lf_parser_place(p, &p->token);
    lf_operand condition;
    lf_token text;
    LF_TRY(lf_parser_next(p));
    LF_TRY(lf_parser_operand(p, &condition));
    LF_TRY(lf_parser_take(p, LF_TOKEN_COMMA, "',' and a message in quotes", NULL));
    LF_TRY(lf_parser_take(p, LF_TOKEN_STRING, "a message in quotes", &text));
    char *message = lf_arena_alloc(&p->graph->arena, text.length);
    if (!message) return lf_out_of_memory();
    lf_token_unescape(&text, message);
    LF_TRY(end_of_statement(p, ""));
    return lf_source_wrap(&p->source, place, lf_graph_assert(p->graph, condition, message, place));
}

// %name {',' %name} '=' into p->names.
static lf_status result_names(lf_parser *p) {
    for (;;) {
        lf_token t;
        LF_TRY(lf_parser_take(p, LF_TOKEN_VALUE, "%name", &t));
        char found[TOKEN_TEXT];
        const lf_value *first = lf_graph_lookup(p->graph, t.text, t.length);
        if (first && first->def->place.line)
            return lf_parser_error(p, &t, "%s is defined twice, first on line %u; expected a new name",
                                   lf_token_text(&t, found, sizeof found), first->def->place.line);
        bool twice = first;
        for (size_t i = 0; i < p->names.count; i++) twice |= same_text(&t, p->names.data[i], strlen(p->names.data[i]));
        if (twice)
            return lf_parser_error(p, &t, "%s is defined twice; expected a new name",
                                   lf_token_text(&t, found, sizeof found));
        if (p->names.count == MAX_NAMES)
            return lf_parser_error(p, &t, "found more than %d results; no op has so many", MAX_NAMES);
        const char *name;
        LF_TRY(lf_parser_name(p, &t, &name));
        if (!lf_vec_push(&p->names, name)) return lf_out_of_memory();
        if (p->token.kind != LF_TOKEN_COMMA) break;
        LF_TRY(lf_parser_next(p));
    }
    return lf_parser_take(p, LF_TOKEN_EQUALS, "',' or '='", NULL);
}

lf_status lf_parser_statement(lf_parser *p) {
    p->names.count = p->operands.count = p->attrs.count = 0;
    if (lf_token_is(&p->token, "assert")) return assert_statement(p);
    if (p->token.kind != LF_TOKEN_VALUE) return lf_parser_expected(p, "a statement: '%name = op ...', 'assert' or 'return'");
    LF_TRY(result_names(p));
    return op_statement(p);
}
