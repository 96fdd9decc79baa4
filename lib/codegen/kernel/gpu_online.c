// Fast mode: the largest of a row, and the sum of exponentials of what its columns are below it, in one go (cross entropy, the sum of
// log_softmax). A thread sums up below the largest of its own columns, and where threads meet, sums are scaled to the larger of two. So
// the row is waited for once, and a warp asks for the next row's columns while others still wait for theirs.
#include "codegen/kernel/gpu.h"
#include <math.h>

enum { MOST = 0, SUM = 1 };

static const lf_stmt *stmt(const lf_kernel *k, lf_stmt_id id) { return &k->loop->stmts[id]; }

static bool is_op(const lf_stmt *s, lf_opcode code) {
    return (s->kind == LF_STMT_ELEM || s->kind == LF_STMT_SIMPLE) && s->code == code;
}

// The reduction that is all the work of a pass.
static lf_stmt_id only_reduction(const lf_kernel *k, unsigned pass, lf_opcode code) {
    lf_stmt_id ids[2];
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = stmt(k, i);
        if ((s->kind == LF_STMT_STORE || s->kind == LF_STMT_INDEX_ERROR) && s->column && s->level == pass) return LF_NO_STMT;
    }
    if (lf_pass_reductions(k, pass, ids, 2) != 1) return LF_NO_STMT;
    return stmt(k, ids[0])->code == code && stmt(k, ids[0])->compute == LF_F32 ? ids[0] : LF_NO_STMT;
}

static bool is_used_once(const lf_kernel *k, lf_stmt_id id) {
    unsigned n = 0;
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        for (unsigned a = 0; a < stmt(k, i)->n_args; a++) n += stmt(k, i)->args[a] == id;
    return n == 1;
}

// sum of exp(x - max of x), what lies between being nobody else's.
bool lf_gpu_find_online(gpu *g) {
    const lf_kernel *k = g->k;
    if (!k->e->fast || k->cls.shape != LFUSER_ABI_RESIDENT || k->loop->passes < 2) return false;
    lf_stmt_id most = only_reduction(k, 0, LF_OP_RMAX), sum = only_reduction(k, 1, LF_OP_SUM), more;
    if (most == LF_NO_STMT || sum == LF_NO_STMT) return false;
    for (unsigned pass = 2; pass < k->loop->passes; pass++)
        if (lf_pass_reductions(k, pass, &more, 1)) return false;
    lf_stmt_id exp = stmt(k, sum)->args[0];
    if (!is_op(stmt(k, exp), LF_OP_EXP) || !is_used_once(k, exp)) return false;
    lf_stmt_id sub = stmt(k, exp)->args[0];
    if (!is_op(stmt(k, sub), LF_OP_SUB) || !is_used_once(k, sub)) return false;
    g->online[MOST] = most;
    g->online[SUM] = sum;
    return stmt(k, sub)->args[0] == stmt(k, most)->args[0] && stmt(k, sub)->args[1] == most;
}

// What columns are below must be finite, or infinite ones would be below by NaN: a row of -infinities sums up to 0 below the lowest number.
static LLVMValueRef at_least_finite(lf_kernel *k, LLVMValueRef v) {
    lf_register least = {LLVMConstReal(LLVMTypeOf(v), -0x1.fffffep+127), NULL};
    return lf_emit_simple(k->e, LF_OP_MAX, LF_F32, (lf_register){v, NULL}, least).re;
}

// A sum below v_from as one below v_to, which is no less.
static lf_partial scaled(lf_kernel *k, lf_partial sum, LLVMValueRef v_from, LLVMValueRef v_to) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_below = LLVMBuildFSub(b, at_least_finite(k, v_from), at_least_finite(k, v_to), "below");
    return (lf_partial){{LLVMBuildFMul(b, sum.value.re, lf_emit_exp_approximately(k->e, v_below), "scaled"), NULL}, NULL};
}

// Of all the thread's columns.
static lf_partial own(gpu *g, unsigned which) {
    const lf_stmt *reduce = stmt(g->k, g->online[which]);
    lf_partial all = {{NULL, NULL}, NULL};
    g->ids = &g->online[which];
    g->n = 1;
    g->pass = which;
    for (unsigned r = 0; r < g->rounds; r++) {
        lf_partial p;
        g->base = r * g->spans;
        lf_gpu_own_sums(g, &p);
        all = r ? lf_combine(g->k, reduce, all, p) : p;
    }
    g->base = 0;
    return all;
}

static lf_partial adjust(gpu *g, unsigned i, LLVMValueRef v_slot, lf_partial p) {
    return i == MOST ? p : scaled(g->k, p, lf_gpu_load_slot(g, MOST, v_slot).value.re, g->v_most);
}

void lf_gpu_online_pass(gpu *g, lf_partial *result) {
    lf_kernel *k = g->k;
    const lf_stmt *most = stmt(k, g->online[MOST]), *sum = stmt(k, g->online[SUM]);
    lf_gpu_stage_others(g);
    lf_partial mine = own(g, MOST);
    lf_set_reduced(k, g->online[MOST], 0, (lf_partial){{at_least_finite(k, mine.value.re), NULL}, NULL});
    lf_gpu_stage_forget(g);
    lf_gpu_stage_others(g);
    lf_partial left[2] = {lf_gpu_fold_warp(k, most, mine), own(g, SUM)};
    left[SUM] = lf_gpu_fold_warp(k, sum, scaled(k, left[SUM], mine.value.re, left[MOST].value.re));
    g->ids = g->online;
    g->n = 2;
    lf_gpu_leave(g, lf_gpu_warp_slot(g, 0), left);
    lf_gpu_meet(g);
    g->adjust = adjust;
    lf_gpu_fold_slots(g, NULL, result);
    g->adjust = NULL;
    // Where all are -infinity each is below the largest by NaN.
    LLVMTypeRef f32 = LLVMTypeOf(g->v_most);
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_none = LLVMBuildFCmp(b, LLVMRealOEQ, g->v_most, LLVMConstReal(f32, -INFINITY), "none");
    result[SUM].value.re = LLVMBuildSelect(b, v_none, LLVMConstReal(f32, NAN), result[SUM].value.re, "");
    for (unsigned c = 0; c < g->rounds * g->spans; c++) { // what was below the thread's own largest
        lf_kernel_use_copy(k, c);
        lf_kernel_forget_columns(k);
    }
    lf_kernel_use_copy(k, 0);
}
