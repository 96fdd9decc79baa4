// Fast mode: the largest of a row, and the sum of exponentials of what its columns are below it, in one go (cross entropy, the sum of
// log_softmax). A thread sums up below the largest of its own columns, and where threads meet, sums are scaled to the larger of two. So
// the row is waited for once, and a warp asks for the next row's columns while others still wait for theirs.
#include "codegen/kernel/gpu.h"
#include <math.h>

enum { MOST = 0, SUM = 1 };

static const lf_stmt *stmt(const lf_kernel *k, lf_stmt_id id) { return &k->loop->stmts[id]; }

bool lf_gpu_find_online(gpu *g) {
    const lf_kernel *k = g->k;
    if (!k->e->fast || !lf_loop_find_online(k->loop, &g->online[MOST], &g->online[SUM])) return false;
    return k->cls.shape == LFUSER_ABI_RESIDENT || (k->cls.shape == LFUSER_ABI_ROUNDS && lf_loop_reads_once(k->loop));
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

// Of the thread's columns at hand, and of what it found before (most NULL: nothing).
static void join_own(gpu *g, lf_partial *found) {
    lf_kernel *k = g->k;
    lf_gpu_stage_others(g);
    lf_partial most = own(g, MOST);
    if (found[MOST].value.re) most = lf_combine(k, stmt(k, g->online[MOST]), found[MOST], most);
    lf_set_reduced(k, g->online[MOST], 0, (lf_partial){{at_least_finite(k, most.value.re), NULL}, NULL});
    lf_gpu_stage_forget(g);
    lf_gpu_stage_others(g);
    lf_partial sum = own(g, SUM);
    if (found[MOST].value.re)
        sum = lf_combine(k, stmt(k, g->online[SUM]), scaled(k, found[SUM], found[MOST].value.re, most.value.re), sum);
    found[MOST] = most;
    found[SUM] = sum;
}

// Class ROUNDS: columns are nowhere kept, so any number of chunks will do.
static void join_rounds(gpu *g, lf_partial *found) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMTypeRef f32 = lf_register_type(k->e, LF_F32);
    LLVMValueRef v_found[2];
    for (unsigned i = 0; i < 2; i++) {
        v_found[i] = lf_alloca(k, f32, i == MOST ? "most" : "sum");
        LLVMBuildStore(b, lf_neutral(k, stmt(k, g->online[i])).value.re, v_found[i]);
    }
    lf_loop_blocks rounds;
    LLVMValueRef v_chunk =
        lf_for_begin(k, &rounds, g->v_team, lf_gpu_chunks_of(k, g->v_columns), lf_i64_const(k, g->chunks), "chunk");
    for (unsigned i = 0; i < 2; i++) found[i] = (lf_partial){{LLVMBuildLoad2(b, f32, v_found[i], "found"), NULL}, NULL};
    lf_gpu_place_spans(g, LLVMBuildMul(b, v_chunk, lf_i64_const(k, LF_CHUNK), "first"));
    g->placed = true;
    join_own(g, found);
    for (unsigned i = 0; i < 2; i++) LLVMBuildStore(b, found[i].value.re, v_found[i]);
    lf_for_end(k, &rounds, LF_HINT_ROLLED);
    for (unsigned i = 0; i < 2; i++) found[i].value.re = LLVMBuildLoad2(b, f32, v_found[i], "found");
}

void lf_gpu_online_pass(gpu *g, lf_partial *result) {
    lf_kernel *k = g->k;
    const lf_stmt *most = stmt(k, g->online[MOST]), *sum = stmt(k, g->online[SUM]);
    lf_partial mine[2] = {0};
    if (g->resident)
        join_own(g, mine);
    else
        join_rounds(g, mine);
    lf_partial left[2] = {lf_gpu_fold_warp(k, most, mine[MOST]), mine[SUM]};
    left[SUM] = lf_gpu_fold_warp(k, sum, scaled(k, mine[SUM], mine[MOST].value.re, left[MOST].value.re));
    g->ids = g->online;
    g->n = 2;
    lf_gpu_leave(g, lf_gpu_warp_slot(g, 0), left);
    lf_emit_row_loads(k, 0);
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
        if (g->resident && !g->staged)
            lf_kernel_keep_loads(k);
        else
            lf_kernel_forget_columns(k);
    }
    lf_kernel_use_copy(k, 0);
}
