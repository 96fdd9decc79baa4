// What a kernel costs a thread, roughly: instructions, and registers that outlive a pass. Schedules are chosen by it.
#include "base/alloc.h"
#include "schedule/loop.h"

enum { CALL = 10, DRAW = 16, ROUNDED_ONCE = 6, COMPLEX = 4 };

static unsigned op_weight(lf_opcode code, lf_dtype d) {
    lf_op_kind kind = lf_op_info_of(code)->kind;
    bool is_call =
        kind == LF_KIND_ELEM && (code < LF_OP_NEG || code == LF_OP_FLOORDIV || code == LF_OP_MOD || code == LF_OP_DIV);
    return (is_call ? CALL : 1) * (lf_is_complex(d) ? COMPLEX : 1) * (d == LF_F64 && is_call ? 2 : 1);
}

static unsigned weight_of(const lf_stmt *s) {
    switch (s->kind) {
    case LF_STMT_INDEX:
    case LF_STMT_SCALAR:
    case LF_STMT_CONST: return 0;
    case LF_STMT_LOAD: return s->guard == LF_NO_STMT ? 1 : 3;
    case LF_STMT_ELEM:
    case LF_STMT_SIMPLE: return op_weight(s->code, s->compute);
    case LF_STMT_SCAN: return (s->code == LF_OP_LOGCUMSUMEXP ? 8 * CALL : 4) * (lf_is_complex(s->dtype) ? COMPLEX : 1);
    case LF_STMT_IOTA: return ROUNDED_ONCE;
    case LF_STMT_RANDOM: return s->code == LF_OP_NORMAL ? DRAW + 5 * CALL : DRAW;
    default: return 1;
    }
}

static unsigned registers_of(lf_dtype d) { return d == LF_C128 ? 4 : lf_dtype_bytes(d) == 8 ? 2 : 1; }

static bool has_effect(const lf_stmt *s) {
    return s->kind == LF_STMT_STORE || s->kind == LF_STMT_DELIVER || s->kind == LF_STMT_INDEX_ERROR;
}

// first[i]: the pass that computes column statement i first.
static void find_first_passes(const lf_loop *loop, uint16_t *first) {
    for (uint32_t i = 0; i < loop->n_stmts; i++) first[i] = UINT16_MAX;
    for (uint16_t pass = 0; pass < loop->passes; pass++)
        for (uint32_t i = loop->n_stmts; i-- > 0;) {
            const lf_stmt *s = &loop->stmts[i];
            bool root = s->kind == LF_STMT_REDUCE
                            ? s->level == pass + 1
                            : s->column && (has_effect(s) || s->kind == LF_STMT_FOLD) && s->level == pass;
            if (root) first[i] = pass;
            if (first[i] != pass || (!root && !s->column)) continue;
            for (unsigned n = 0; n <= s->n_args; n++) {
                lf_stmt_id arg = n < s->n_args ? s->args[n] : s->guard;
                if (arg != LF_NO_STMT && loop->stmts[arg].column && first[arg] > pass) first[arg] = pass;
            }
        }
}

// A load that can be done again at little cost, or a conversion of one.
static bool is_loaded(const lf_loop *loop, const lf_stmt *s) {
    bool cast = s->kind == LF_STMT_CAST || (s->kind == LF_STMT_ELEM && s->code == LF_OP_CAST);
    if (cast) s = &loop->stmts[s->args[0]];
    return s->kind == LF_STMT_LOAD && s->column;
}

static unsigned kept_after(const lf_loop *loop, const uint16_t *first, uint16_t pass, bool *kept, bool beside) {
    unsigned registers = 0;
    for (uint32_t i = 0; i < loop->n_stmts; i++) kept[i] = false;
    for (uint32_t i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        for (unsigned n = 0; n < s->n_args && first[i] != UINT16_MAX && first[i] > pass; n++) {
            lf_stmt_id arg = s->args[n];
            if (arg == LF_NO_STMT || !loop->stmts[arg].column || kept[arg] || first[arg] > pass) continue;
            kept[arg] = true;
            if (beside && is_loaded(loop, &loop->stmts[arg])) continue;
            if (loop->stmts[arg].kind != LF_STMT_INDEX) registers += registers_of(loop->stmts[arg].dtype);
        }
    }
    return registers;
}

lf_status lf_loop_measure(const lf_allocator *a, lf_loop *loop) {
    unsigned weight = 0, most_kept = 0, most_beside = 0, most_reductions = 0;
    for (uint32_t i = 0; i < loop->n_stmts; i++)
        if (loop->stmts[i].column || !loop->cols || loop->stmts[i].kind == LF_STMT_REDUCE)
            weight += weight_of(&loop->stmts[i]);
    uint16_t *first = lf_alloc_zero(a, (loop->n_stmts + 1) * sizeof *first);
    bool *kept = lf_alloc_zero(a, loop->n_stmts + 1);
    if (first && kept) {
        find_first_passes(loop, first);
        for (uint16_t pass = 0; pass < loop->passes; pass++) {
            unsigned registers = kept_after(loop, first, pass, kept, false), reductions = 0;
            unsigned beside = kept_after(loop, first, pass, kept, true);
            for (uint32_t i = 0; i < loop->n_stmts; i++)
                reductions += loop->stmts[i].kind == LF_STMT_REDUCE && loop->stmts[i].level == pass + 1;
            if (registers > most_kept) most_kept = registers;
            if (beside > most_beside) most_beside = beside;
            if (reductions > most_reductions) most_reductions = reductions;
        }
    }
    lf_status s = first && kept ? NULL : lf_out_of_memory();
    lf_free(a, first);
    lf_free(a, kept);
    loop->weight = (uint16_t)(weight < UINT16_MAX ? weight : UINT16_MAX);
    loop->kept = (uint8_t)(most_kept < UINT8_MAX ? most_kept : UINT8_MAX);
    loop->kept_beside = (uint8_t)(most_beside < UINT8_MAX ? most_beside : UINT8_MAX);
    loop->reductions = (uint8_t)(most_reductions < UINT8_MAX ? most_reductions : UINT8_MAX);
    return s;
}
