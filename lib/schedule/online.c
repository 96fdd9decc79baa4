// A maximum along a row, and a sum of exponentials of what the columns are below it (cross entropy, log_softmax): where bits are not asked
// for, both are found in one go. Later passes (softmax) then compute the exponentials that they need again, below the true maximum: of
// columns that come from memory, or else too much would have to be kept.
#include "schedule/loop.h"

static bool is_op(const lf_stmt *s, lf_opcode code) {
    return (s->kind == LF_STMT_ELEM || s->kind == LF_STMT_SIMPLE) && s->code == code;
}

// The reduction that is all the work of a pass.
static lf_stmt_id only_reduction(const lf_loop *loop, unsigned pass, lf_opcode code) {
    lf_stmt_id found = LF_NO_STMT;
    for (lf_stmt_id i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        if ((s->kind == LF_STMT_STORE || s->kind == LF_STMT_INDEX_ERROR) && s->column && s->level == pass) return LF_NO_STMT;
        if (s->kind != LF_STMT_REDUCE || s->level != pass + 1) continue;
        if (found != LF_NO_STMT || s->code != code || s->compute != LF_F32) return LF_NO_STMT;
        found = i;
    }
    return found;
}

static bool is_used_once(const lf_loop *loop, lf_stmt_id id) {
    unsigned n = 0;
    for (lf_stmt_id i = 0; i < loop->n_stmts; i++)
        for (unsigned a = 0; a < loop->stmts[i].n_args; a++) n += loop->stmts[i].args[a] == id;
    return n == 1;
}

static bool is_loaded(const lf_loop *loop, lf_stmt_id id) {
    const lf_stmt *s = &loop->stmts[id];
    if (s->kind == LF_STMT_CAST || is_op(s, LF_OP_CAST)) s = &loop->stmts[s->args[0]];
    return s->kind == LF_STMT_LOAD;
}

bool lf_loop_find_online(const lf_loop *loop, lf_stmt_id *out_most, lf_stmt_id *out_sum) {
    if (loop->form != LF_LOOP_PLAIN || loop->passes < 2 || loop->folds) return false;
    lf_stmt_id most = only_reduction(loop, 0, LF_OP_RMAX), sum = only_reduction(loop, 1, LF_OP_SUM);
    if (most == LF_NO_STMT || sum == LF_NO_STMT) return false;
    for (lf_stmt_id i = 0; i < loop->n_stmts; i++)
        if (loop->stmts[i].kind == LF_STMT_REDUCE && loop->stmts[i].level > 2) return false;
    const lf_stmt *stmts = loop->stmts;
    lf_stmt_id exp = stmts[sum].args[0], x = stmts[most].args[0];
    if (!is_op(&stmts[exp], LF_OP_EXP)) return false;
    lf_stmt_id sub = stmts[exp].args[0];
    if (!is_op(&stmts[sub], LF_OP_SUB) || stmts[sub].args[0] != x || stmts[sub].args[1] != most) return false;
    *out_most = most;
    *out_sum = sum;
    return is_loaded(loop, x) || (is_used_once(loop, exp) && is_used_once(loop, sub));
}

bool lf_loop_reads_once(const lf_loop *loop) {
    lf_stmt_id most, sum;
    return loop->passes == 2 && lf_loop_find_online(loop, &most, &sum);
}

bool lf_loop_keeps_nothing(const lf_loop *loop) {
    lf_stmt_id most, sum;
    return lf_loop_find_online(loop, &most, &sum) && is_loaded(loop, loop->stmts[most].args[0]);
}
