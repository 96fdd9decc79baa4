// Loop IR as text, and its invariants.
#include "base/text.h"
#include "schedule/loop.h"
#include <string.h>

static const char *const kind_names[] = {[LF_STMT_INDEX] = "index",
                                         [LF_STMT_SCALAR] = "scalar",
                                         [LF_STMT_CONST] = "const",
                                         [LF_STMT_LOAD] = "load",
                                         [LF_STMT_ELEM] = "",
                                         [LF_STMT_SIMPLE] = "",
                                         [LF_STMT_CAST] = "cast",
                                         [LF_STMT_REDUCE] = "reduce",
                                         [LF_STMT_STORE] = "store",
                                         [LF_STMT_DELIVER] = "deliver",
                                         [LF_STMT_IOTA] = "iota",
                                         [LF_STMT_RANDOM] = "",
                                         [LF_STMT_SCAN] = "",
                                         [LF_STMT_SCAN_POSITION] = "scan_position",
                                         [LF_STMT_SORTED] = "sorted",
                                         [LF_STMT_FOLD] = "fold",
                                         [LF_STMT_INDEX_ERROR] = "index_error"};

static void put_access(lf_arena *arena, lf_text *t, const lf_loop *loop, uint32_t number, const lf_stmt *s) {
    const lf_access *access = &loop->accesses[number];
    lf_text_put(t, "%s[", lf_value_text(arena, access->buffer));
    unsigned n = 0;
    for (unsigned a = 0; a < LF_MAX_AXES; a++)
        if (access->strides[a])
            lf_text_put(t, "%s%c%u", n++ ? ", " : "", a < loop->rows ? 'r' : 'c', a < loop->rows ? a : a - loop->rows);
    for (unsigned i = 0; i < access->n_terms; i++) lf_text_put(t, "%s%%%u", n++ ? ", " : "", s->args[i]);
    lf_text_put(t, "]");
}

static void put_stmt(lf_arena *arena, lf_text *t, const lf_loop *loop, lf_stmt_id id, const char *indent) {
    const lf_stmt *s = &loop->stmts[id];
    lf_text_put(t, "%s", indent);
    if (s->kind != LF_STMT_STORE && s->kind != LF_STMT_DELIVER && s->kind != LF_STMT_INDEX_ERROR)
        lf_text_put(t, "%%%u = ", id);
    const char *name = kind_names[s->kind];
    if (s->kind == LF_STMT_ELEM || s->kind == LF_STMT_SIMPLE || s->kind == LF_STMT_RANDOM || s->kind == LF_STMT_SCAN)
        name = lf_op_info_of(s->code)->name;
    lf_text_put(t, "%s", name);
    if (s->kind == LF_STMT_REDUCE || s->kind == LF_STMT_FOLD) lf_text_put(t, ".%s", lf_op_info_of(s->code)->name);
    if (s->kind == LF_STMT_INDEX)
        lf_text_put(t, " %c%u", s->number < loop->rows ? 'r' : 'c',
                    s->number < loop->rows ? s->number : s->number - loop->rows);
    if (s->kind == LF_STMT_SCALAR) lf_text_put(t, " %s", lf_value_text(arena, loop->scalars[s->number]));
    if (s->kind == LF_STMT_CONST) {
        char number[96];
        lf_scalar_print(number, sizeof number, s->dtype, &s->constant);
        lf_text_put(t, " %s", number);
    }
    if (s->kind == LF_STMT_INDEX_ERROR) lf_text_put(t, " %u unless", s->number);
    if (s->kind == LF_STMT_SORTED) lf_text_put(t, s->number ? " position" : " element");
    if (s->kind == LF_STMT_LOAD || s->kind == LF_STMT_STORE) {
        lf_text_put(t, " ");
        put_access(arena, t, loop, s->number, s);
    }
    for (unsigned i = 0; i < s->n_args && s->kind != LF_STMT_LOAD; i++)
        lf_text_put(t, s->args[i] == LF_NO_STMT ? "%s none" : "%s %%%u",
                    i                          ? ","
                    : s->kind == LF_STMT_STORE ? " ="
                                               : "",
                    s->args[i]);
    if (s->guard != LF_NO_STMT) lf_text_put(t, " if %%%u", s->guard);
    lf_text_put(t, " : %s\n", lf_dtype_name(s->dtype));
}

static bool has_effect(const lf_stmt *s) {
    return s->kind == LF_STMT_STORE || s->kind == LF_STMT_DELIVER || s->kind == LF_STMT_INDEX_ERROR;
}

const char *lf_loop_text(lf_arena *arena, const lf_loop *loop) {
    lf_text t;
    lf_text_init(&t, arena->allocator);
    lf_text_put(&t, "kernel @%s %s {\n  for r in [", loop->name, loop->schedule);
    for (unsigned a = 0; a < loop->rows; a++) lf_text_put(&t, "%s%s", a ? ", " : "", lf_value_text(arena, loop->extents[a]));
    lf_text_put(&t, "] {\n");
    // Row statements of level L stand before pass L; column statements in the first pass that has their operands.
    for (uint16_t level = 0; level <= loop->passes; level++) {
        for (uint32_t i = 0; i < loop->n_stmts; i++)
            if (!loop->stmts[i].column && loop->stmts[i].kind != LF_STMT_REDUCE && loop->stmts[i].level == level)
                put_stmt(arena, &t, loop, i, "    ");
        if (level == loop->passes) break;
        lf_text_put(&t, "    pass %u for c in [", level);
        for (unsigned a = 0; a < loop->cols; a++)
            lf_text_put(&t, "%s%s", a ? ", " : "", lf_value_text(arena, loop->extents[loop->rows + a]));
        lf_text_put(&t, "] {\n");
        for (uint32_t i = 0; i < loop->n_stmts; i++) {
            const lf_stmt *s = &loop->stmts[i];
            bool here = s->kind == LF_STMT_REDUCE ? s->level == level + 1 : s->column && s->level == level;
            if (here) put_stmt(arena, &t, loop, i, "      ");
        }
        lf_text_put(&t, "    }\n");
    }
    lf_text_put(&t, "  }\n}\n");
    if (arena->failed) t.failed = true;
    char *text;
    lf_status s = lf_text_take(&t, &text);
    if (s) return lf_status_destroy(s), NULL;
    const char *copy = lf_arena_strndup(arena, text, __builtin_strlen(text));
    lf_free(arena->allocator, text);
    return copy;
}

// Those before the first whose index is asked for. Sort and scatter ask for all; a scan has one column axis.
uint8_t lf_loop_free_axes(const lf_loop *loop, unsigned first, unsigned n) {
    unsigned free = loop->form == LF_LOOP_PLAIN || loop->form == LF_LOOP_SERIAL ? n : 0;
    for (uint32_t i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        if (s->kind == LF_STMT_INDEX && s->number >= first && s->number - first < free) free = s->number - first;
    }
    return (uint8_t)free;
}

bool lf_loop_fixed_extent(const lf_loop *loop, unsigned axis, int64_t *out_extent) {
    bool row = axis < loop->rows;
    unsigned first = row ? 0 : loop->rows;
    return axis - first >= lf_loop_free_axes(loop, first, row ? loop->rows : loop->cols) &&
           lf_const_i64(loop->extents[axis], out_extent);
}

uint32_t lf_loop_alike(const lf_loop *loop, uint32_t access) {
    const lf_access *a = loop->accesses;
    uint32_t i = 0;
    while (i < access && memcmp(a[i].strides, a[access].strides, sizeof a[i].strides) != 0) i++;
    return i;
}

lf_status lf_loop_verify(const lf_allocator *a, const lf_loop *loop) {
    if (loop->rows + loop->cols > LF_MAX_AXES)
        return lf_error(a, LF_INTERNAL, "kernel %s has %u axes, at most %u are possible", loop->name,
                        loop->rows + loop->cols, (unsigned)LF_MAX_AXES);
    bool effect = false;
    for (uint32_t i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        effect |= has_effect(s) || s->kind == LF_STMT_FOLD;
        for (unsigned k = 0; k < s->n_args; k++)
            if (s->args[k] != LF_NO_STMT && s->args[k] >= i)
                return lf_error(a, LF_INTERNAL, "kernel %s: statement %u uses %u before its definition", loop->name, i,
                                s->args[k]);
        if (s->guard != LF_NO_STMT && (s->guard >= i || loop->stmts[s->guard].dtype != LF_BOOL))
            return lf_error(a, LF_INTERNAL, "kernel %s: statement %u has a guard that is no bool before it", loop->name, i);
        if ((s->kind == LF_STMT_LOAD || s->kind == LF_STMT_STORE) && s->number >= loop->n_accesses)
            return lf_error(a, LF_INTERNAL, "kernel %s: statement %u uses access %u of %u", loop->name, i, s->number,
                            loop->n_accesses);
        if (s->kind == LF_STMT_SCALAR && s->number >= loop->n_scalars)
            return lf_error(a, LF_INTERNAL, "kernel %s: statement %u uses scalar %u of %u", loop->name, i, s->number,
                            loop->n_scalars);
        if (s->kind == LF_STMT_REDUCE && (s->column || loop->cols == 0) && loop->passes == 0)
            return lf_error(a, LF_INTERNAL, "kernel %s: statement %u reduces outside of a pass", loop->name, i);
        if (loop->cols == 0 && s->column)
            return lf_error(a, LF_INTERNAL, "kernel %s: statement %u depends on columns, and there are none", loop->name, i);
    }
    if (!effect) return lf_error(a, LF_INTERNAL, "kernel %s writes nothing", loop->name);
    return NULL;
}
