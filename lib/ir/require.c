// Errors of the builder and run-time checks: one message for both, an error at once where the condition is known not to hold.
#include "ir/builder.h"
#include <string.h>

lf_status lf_give(lf_value *v, lf_value **out) {
    *out = v;
    return v ? NULL : lf_out_of_memory();
}

static lf_status rule_error_v(const lf_rule *r, lf_place place, const char *format, va_list args) {
    char *text = lf_arena_vprintf(&r->g->arena, format, args);
    if (!text) return lf_out_of_memory();
    return lf_error_at(r->g->allocator, LF_INVALID_PROGRAM, place, "%s: %s", r->info->name, text);
}

lf_status lf_rule_error(const lf_rule *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lf_status s = rule_error_v(r, r->request->place, format, args);
    va_end(args);
    return s;
}

lf_status lf_rule_error_at(const lf_rule *r, lf_place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lf_status s = rule_error_v(r, place.line ? place : r->request->place, format, args);
    va_end(args);
    return s;
}

// The template with {k} replaced by what is known of numbers[k].
static const char *filled_in(lf_graph *g, const char *message, lf_value *const *numbers, size_t n) {
    const char *out = "", *rest = message;
    while (out && *rest) {
        size_t plain = strcspn(rest, "{");
        const char *brace = rest + plain;
        bool number = brace[0] && brace[1] >= '0' && brace[1] <= '9' && brace[2] == '}' && (size_t)(brace[1] - '0') < n;
        if (!number) {
            size_t more = brace[0] ? plain + 1 : plain;
            out = lf_arena_printf(&g->arena, "%s%.*s", out, (int)more, rest);
            rest += more;
            continue;
        }
        int64_t value;
        lf_value *v = numbers[brace[1] - '0'];
        if (lf_const_i64(v, &value))
            out = lf_arena_printf(&g->arena, "%s%.*s%lld", out, (int)plain, rest, (long long)value);
        else
            out = lf_arena_printf(&g->arena, "%s%.*s%s", out, (int)plain, rest, lf_value_text(&g->arena, v));
        rest = brace + 3;
    }
    return out;
}

static lf_status require_text(lf_graph *g, lf_place place, lf_value *condition, lf_value *const *numbers, size_t n,
                              const char *message) {
    if (!condition || !message) return lf_out_of_memory();
    for (size_t i = 0; i < n; i++)
        if (!numbers[i]) return lf_out_of_memory();
    if (lf_is_true(condition)) return NULL;
    if (lf_is_const(condition)) {
        const char *text = filled_in(g, message, numbers, n);
        return text ? lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "%s", text) : lf_out_of_memory();
    }
    lf_share_key key = {.code = LF_OP_CHECK, .axis = -1, .operands = {condition}};
    uint64_t hash;
    if (lf_share_find(g, &key, &hash)) return NULL; // an earlier check stops the program already
    lf_op *op = lf_op_new(g, LF_OP_CHECK, n + 1, 0);
    if (!op || !lf_share_add(g, hash, op)) return lf_out_of_memory();
    op->operands[0] = condition;
    if (n > 0) memcpy(op->operands + 1, numbers, n * sizeof *numbers);
    op->message = message;
    op->place = place;
    lf_op_link(g, op);
    return NULL;
}

lf_status lf_require(lf_graph *g, lf_place place, lf_value *condition, lf_value *const *numbers, size_t n,
                     const char *format, ...) {
    if (lf_is_true(condition)) return NULL;
    va_list args;
    va_start(args, format);
    const char *message = lf_arena_vprintf(&g->arena, format, args);
    va_end(args);
    return require_text(g, place, condition, numbers, n, message);
}

lf_status lf_rule_require(const lf_rule *r, lf_value *condition, lf_value *const *numbers, size_t n, const char *format,
                          ...) {
    if (condition && lf_is_true(condition)) return NULL;
    va_list args;
    va_start(args, format);
    const char *text = lf_arena_vprintf(&r->g->arena, format, args);
    va_end(args);
    const char *message = text ? lf_arena_printf(&r->g->arena, "%s: %s", r->info->name, text) : NULL;
    return require_text(r->g, r->request->place, condition, numbers, n, message);
}
