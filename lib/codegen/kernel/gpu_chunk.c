// A chunk of 8192 columns of a row on a GPU: what its columns add up to, in the canonical order (see gpu.h), and what a pass stores.
// The eight spans of a chunk are written out side by side when the code stays small, so that all loads are under way before the first is
// needed; else they are a loop.
#include "codegen/kernel/gpu.h"

enum { AHEAD_REGISTERS = 16, STAGED_REGISTERS = 8 };

static bool is_warp(const lf_kernel *k) { return k->cls.shape == LFUSER_ABI_WARP; }

static const lf_stmt *reduction(const gpu *g, unsigned i) { return &g->k->loop->stmts[g->ids[i]]; }

bool lf_gpu_unrolls(const gpu *g) {
    const lf_kernel *k = g->k;
    return k->loop->reductions <= LFUSER_ABI_UNROLLED_REDUCTIONS &&
           (g->from || k->loop->weight * k->lanes * g->spans <= LFUSER_ABI_UNROLLED_WEIGHT);
}

// ---- spans side by side ------------------------------------------------------------------------------------------------------------

// Columns past the end of the row are computed from the row's first one, and count for nothing.
void lf_gpu_place_spans(gpu *g, LLVMValueRef v_first) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_mine = LLVMBuildAdd(b, v_first, LLVMBuildMul(b, g->v_thread, lf_i64_const(k, k->lanes), ""), "column");
    for (unsigned j = 0; j < g->spans; j++) {
        unsigned c = g->base + j;
        lf_kernel_use_copy(k, c);
        lf_kernel_forget_columns(k);
        LLVMValueRef v = j ? LLVMBuildAdd(b, v_mine, lf_i64_const(k, (int64_t)j * LF_SPAN), "") : v_mine;
        g->v_position[c] = v;
        g->v_inside[c] = k->cls.full || g->whole ? NULL : LLVMBuildICmp(b, LLVMIntSLT, v, g->v_columns, "inside");
        if (g->v_inside[c]) v = LLVMBuildSelect(b, g->v_inside[c], v, lf_i64_const(k, 0), "");
        if (g->v_there) g->v_inside[c] = g->v_inside[c] ? LLVMBuildAnd(b, g->v_inside[c], g->v_there, "") : g->v_there;
        lf_split_index(k, v, k->cols, lf_column_extent, k->at->v_column);
    }
}

// An element that stands in for one past the end changes nothing: it was, or will be, reduced anyhow.
static bool takes_repeats(const lf_stmt *s) {
    return s->code == LF_OP_RMIN || s->code == LF_OP_RMAX || s->code == LF_OP_ANY || s->code == LF_OP_ALL;
}

// What is reduced: a statement's value, or a result that a chunk left in memory.
static lf_partial element(gpu *g, unsigned i, unsigned span, unsigned lane) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    const lf_stmt *s = reduction(g, i);
    LLVMValueRef v_position = lane ? LLVMBuildAdd(b, g->v_position[span], lf_i64_const(k, lane), "") : g->v_position[span];
    if (!g->from && (takes_repeats(s) || !g->v_inside[span])) return lf_contribution(k, s, lane, v_position);
    if (!g->from)
        return lf_partial_select(k, s, g->v_inside[span], lf_contribution(k, s, lane, v_position), lf_neutral(k, s));
    LLVMValueRef v_there = LLVMBuildICmp(b, LLVMIntSLT, v_position, g->v_columns, ""), v_at = g->v_position[span];
    if (g->v_inside[span]) v_at = LLVMBuildSelect(b, g->v_inside[span], v_at, lf_i64_const(k, 0), "");
    if (lane) v_at = LLVMBuildAdd(b, v_at, lf_i64_const(k, lane), "");
    lf_partial p = lf_partials_load(k, s, g->from[i], v_at, false);
    // Rows of results are padded to whole vectors (gpu_split.c): what is told of the first lane's load makes one of all.
    if (!lane && LLVMIsALoadInst(p.value.re)) LLVMSetAlignment(p.value.re, lf_gpu_vector_bytes(k, s));
    return g->v_inside[span] ? lf_partial_select(k, s, v_there, p, lf_neutral(k, s)) : p;
}

// Spans are visited in the order 0 4 2 6 1 5 3 7, so that bits 12, 11, 10 of the column are a binary counter. The span's copy.
static unsigned span_of(const gpu *g, unsigned step) {
    unsigned span = 0;
    for (unsigned bit = 1; bit < g->spans; bit *= 2) span = 2 * span + (step & bit ? 1 : 0);
    return g->base + span;
}

// The loads of the next few spans. A first pass has all under way at once, since it waits for memory; later ones, which mostly find
// what they read in a cache, only so many as leave room for what is kept; what lies in shared memory is there at once.
static void load_ahead(gpu *g, unsigned step) {
    lf_kernel *k = g->k;
    unsigned group = g->spans, copies[LF_MAX_COPIES];
    if (g->resident && (g->pass > 0 || g->staged)) {
        lf_kernel_use_copy(k, span_of(g, step));
        unsigned loaded = lf_loaded_registers(k, g->pass);
        while (group > 1 && group * loaded > (g->staged ? STAGED_REGISTERS : AHEAD_REGISTERS)) group /= 2;
    }
    if (step % group) return;
    for (unsigned i = 0; i < group; i++) copies[i] = span_of(g, step + i);
    lf_emit_loads(k, copies, group, g->pass);
}

// A sum waits at its level for its partner, and few wait at a time.
void lf_gpu_sum_spans(gpu *g, lf_partial *out) {
    lf_kernel *k = g->k;
    enum { LEVELS = 4 };
    lf_partial waiting[LEVELS][LFUSER_ABI_UNROLLED_REDUCTIONS][LF_MAX_LANES];
    LLVMValueRef v_pairs[LFUSER_ABI_UNROLLED_REDUCTIONS][LF_MAX_LANES / 2] = {{NULL}};
    for (unsigned step = 0; step < g->spans; step++) {
        unsigned span = span_of(g, step);
        if (!g->from) load_ahead(g, step);
        lf_kernel_use_copy(k, span);
        for (unsigned i = 0; i < g->n; i++) {
            const lf_stmt *s = reduction(g, i);
            if (lf_gpu_pairs_up(g, s)) {
                lf_gpu_take_pairs(g, s, v_pairs[i]);
                continue;
            }
            if (!g->from) lf_emit_statement(k, s->args[0]);
            for (unsigned lane = 0; lane < k->lanes; lane++) {
                lf_partial x = element(g, i, span, lane);
                unsigned level = 0;
                for (; step >> level & 1; level++) x = lf_combine(k, s, waiting[level][i][lane], x);
                waiting[level][i][lane] = x;
            }
        }
        if (!g->from) lf_gpu_stage_next(g, span);
    }
    unsigned top = 0;
    while (1u << top < g->spans) top++;
    for (unsigned i = 0; i < g->n; i++)
        out[i] = v_pairs[i][0] ? lf_gpu_part_pairs(g, reduction(g, i), v_pairs[i])
                               : lf_gpu_fold_pairs(k, reduction(g, i), waiting[top][i], k->lanes);
    lf_kernel_use_copy(k, 0);
}

void lf_gpu_store_spans(gpu *g) {
    lf_kernel *k = g->k;
    for (unsigned step = 0; step < g->spans; step++) {
        unsigned span = span_of(g, step);
        if (!g->n) load_ahead(g, step);
        lf_kernel_use_copy(k, span);
        lf_emit_effect_operands(k, g->pass);
        lf_if_blocks inside;
        if (g->v_inside[span]) lf_if_begin(k, &inside, g->v_inside[span], "inside");
        lf_emit_column_effects(k, g->pass);
        if (g->v_inside[span]) lf_if_end(k, &inside);
        if (!g->n) lf_gpu_stage_next(g, span);
    }
    lf_kernel_use_copy(k, 0);
}

void lf_gpu_own_sums(gpu *g, lf_partial *out) {
    if (!g->placed && g->pass == 0) lf_gpu_place_spans(g, lf_gpu_first_column(g));
    lf_gpu_sum_spans(g, out);
}

// The same code twice: columns that are certainly there have their loads under way at once; what asks for the end has not the predicates.
static void sum_whole_or_part(gpu *g, LLVMValueRef v_first, lf_partial *out) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_kinds[2] = {lf_block(k, "part"), lf_block(k, "whole")}, b_done = lf_block(k, "summed");
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_end = LLVMBuildAdd(b, v_first, lf_i64_const(k, LF_CHUNK), "end");
    lf_partials sums[LF_GPU_REDUCTIONS];
    for (unsigned i = 0; i < g->n; i++) sums[i] = lf_partials_alloca(k, reduction(g, i), 1, "sum");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLE, v_end, g->v_columns, ""), b_kinds[1], b_kinds[0]);
    for (unsigned whole = 0; whole < 2; whole++) {
        LLVMPositionBuilderAtEnd(b, b_kinds[whole]);
        g->whole = whole;
        lf_gpu_place_spans(g, v_first);
        lf_gpu_sum_spans(g, out);
        for (unsigned i = 0; i < g->n; i++) lf_partials_store(k, reduction(g, i), sums[i], v_zero, out[i], false);
        LLVMBuildBr(b, b_done);
    }
    g->whole = false;
    LLVMPositionBuilderAtEnd(b, b_done);
    for (unsigned i = 0; i < g->n; i++) out[i] = lf_partials_load(k, reduction(g, i), sums[i], v_zero, false);
}

void lf_gpu_unrolled_chunk(gpu *g, LLVMValueRef v_first, lf_partial *out) {
    lf_kernel *k = g->k;
    if (g->asks) {
        sum_whole_or_part(g, v_first, out);
        for (unsigned i = 0; i < g->n; i++) out[i] = lf_gpu_fold_warp(k, reduction(g, i), out[i]);
        return;
    }
    if (!g->placed && (!g->resident || g->pass == 0)) lf_gpu_place_spans(g, v_first);
    if (g->n) lf_gpu_sum_spans(g, out);
    if (!g->from) lf_gpu_store_spans(g);
    for (unsigned i = 0; i < g->n; i++) out[i] = lf_gpu_fold_warp(k, reduction(g, i), out[i]);
}

// ---- a loop over spans -----------------------------------------------------------------------------------------------------------------

// One span of 1024 columns: the contributions of the thread's lanes, neutral past the end; the class says that all lanes of a thread
// are inside or none is. They go through memory (registers, once LLVM has promoted it) because of the condition.
static void emit_span(gpu *g, LLVMValueRef v_first, lf_partials *lanes) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_column = LLVMBuildAdd(b, v_first, LLVMBuildMul(b, g->v_thread, lf_i64_const(k, k->lanes), ""), "column");
    for (unsigned i = 0; i < g->n; i++)
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            const lf_stmt *s = &k->loop->stmts[g->ids[i]];
            lf_partials_store(k, s, lanes[i], lf_i64_const(k, lane), lf_neutral(k, s), false);
        }
    lf_if_blocks inside;
    lf_if_begin(k, &inside, LLVMBuildICmp(b, LLVMIntSLT, v_column, g->v_columns, ""), "inside");
    lf_kernel_at_column(k, v_column);
    for (unsigned i = 0; i < g->n; i++) {
        const lf_stmt *s = &k->loop->stmts[g->ids[i]];
        lf_emit_statement(k, s->args[0]);
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            LLVMValueRef v_position = lane ? LLVMBuildAdd(b, v_column, lf_i64_const(k, lane), "") : v_column;
            lf_partials_store(k, s, lanes[i], lf_i64_const(k, lane), lf_contribution(k, s, lane, v_position), false);
        }
    }
    lf_emit_column_effects(k, g->pass);
    lf_if_end(k, &inside);
}

static void for_lanes(gpu *g, void (*each)(gpu *, const lf_stmt *, lf_partials to, lf_partials from, LLVMValueRef v_lane),
                      lf_partials *to, lf_partials *from) {
    for (unsigned i = 0; i < g->n; i++)
        for (unsigned lane = 0; lane < g->k->lanes; lane++)
            each(g, &g->k->loop->stmts[g->ids[i]], to[i], from[i], lf_i64_const(g->k, lane));
}

static void move_lane(gpu *g, const lf_stmt *s, lf_partials to, lf_partials from, LLVMValueRef v_lane) {
    lf_partials_store(g->k, s, to, v_lane, lf_partials_load(g->k, s, from, v_lane, false), false);
}

// to = to + from, where `to` came first
static void merge_lane(gpu *g, const lf_stmt *s, lf_partials to, lf_partials from, LLVMValueRef v_lane) {
    lf_partial low = lf_partials_load(g->k, s, to, v_lane, false), high = lf_partials_load(g->k, s, from, v_lane, false);
    lf_partials_store(g->k, s, to, v_lane, lf_combine(g->k, s, low, high), false);
}

enum { SPAN_LEVELS = 3 };

// Spans in the order 0 4 2 6 1 5 3 7, so that bits 12, 11, 10 of the column are a binary counter: a sum waits at its level for its
// partner. Levels are separate variables, not an array, so that all of it stays in registers; one copy of the body is enough.
static void emit_spans(gpu *g, LLVMValueRef v_first, lf_partials *x, lf_partials level[SPAN_LEVELS + 1][LF_GPU_REDUCTIONS]) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_one = lf_i64_const(k, 1);
    lf_loop_blocks loop;
    LLVMValueRef v_step = lf_for_begin(k, &loop, lf_i64_const(k, 0), lf_i64_const(k, LF_SPANS), v_one, "span");
    LLVMValueRef v_shift = LLVMBuildTrunc(b, LLVMBuildShl(b, v_step, lf_i64_const(k, 2), ""), k->l_i32, "");
    LLVMValueRef v_span = LLVMBuildLShr(b, LLVMConstInt(k->l_i32, 0x73516240, false), v_shift, "");
    v_span = LLVMBuildZExt(b, LLVMBuildAnd(b, v_span, LLVMConstInt(k->l_i32, 7, false), ""), k->l_i64, "span");
    emit_span(g, LLVMBuildAdd(b, v_first, LLVMBuildShl(b, v_span, lf_i64_const(k, 10), ""), ""), x);
    LLVMBasicBlockRef b_done = lf_block(k, "pushed");
    for (unsigned l = 0; l < SPAN_LEVELS; l++) {
        LLVMBasicBlockRef b_wait = lf_block(k, "wait"), b_merge = lf_block(k, "merge");
        LLVMValueRef v_bit = LLVMBuildAnd(b, LLVMBuildLShr(b, v_step, lf_i64_const(k, l), ""), v_one, "");
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, v_bit, lf_i64_const(k, 0), ""), b_wait, b_merge);
        LLVMPositionBuilderAtEnd(b, b_wait);
        for_lanes(g, move_lane, level[l], x);
        LLVMBuildBr(b, b_done);
        LLVMPositionBuilderAtEnd(b, b_merge);
        for_lanes(g, merge_lane, level[l], x);
        for_lanes(g, move_lane, x, level[l]);
    }
    for_lanes(g, move_lane, level[SPAN_LEVELS], x);
    LLVMBuildBr(b, b_done);
    LLVMPositionBuilderAtEnd(b, b_done);
    lf_for_end(k, &loop, LF_HINT_ROLLED); // eight copies would cost the registers that keep enough threads resident
}

static void rolled_chunk(gpu *g, LLVMValueRef v_first, lf_partial *out) {
    lf_kernel *k = g->k;
    lf_partials x[LF_GPU_REDUCTIONS], level[SPAN_LEVELS + 1][LF_GPU_REDUCTIONS];
    for (unsigned i = 0; i < g->n; i++) {
        x[i] = lf_partials_alloca(k, reduction(g, i), k->lanes, "x");
        for (unsigned l = 0; l <= SPAN_LEVELS && !is_warp(k); l++)
            level[l][i] = lf_partials_alloca(k, reduction(g, i), k->lanes, "level");
    }
    if (is_warp(k))
        emit_span(g, v_first, x);
    else
        emit_spans(g, v_first, x, level);
    for (unsigned i = 0; i < g->n; i++) {
        lf_partials sums = is_warp(k) ? x[i] : level[SPAN_LEVELS][i];
        lf_partial lanes[LF_MAX_LANES];
        for (unsigned lane = 0; lane < k->lanes; lane++)
            lanes[lane] = lf_partials_load(k, reduction(g, i), sums, lf_i64_const(k, lane), false);
        out[i] = lf_gpu_fold_warp(k, reduction(g, i), lf_gpu_fold_pairs(k, reduction(g, i), lanes, k->lanes));
    }
}

// ---- for a row of any length -----------------------------------------------------------------------------------------------------------

void lf_gpu_emit_chunk(lf_kernel *k, void *context, LLVMValueRef v_chunk, lf_partial *out) {
    gpu *g = context;
    LLVMValueRef v_first = LLVMBuildMul(k->e->builder, v_chunk, lf_i64_const(k, LF_CHUNK), "first");
    if (lf_gpu_unrolls(g))
        lf_gpu_unrolled_chunk(g, v_first, out);
    else
        rolled_chunk(g, v_first, out);
    if (!is_warp(k)) lf_gpu_exchange(g, out);
}
