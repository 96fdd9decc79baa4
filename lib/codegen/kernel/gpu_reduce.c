// Reductions that one block a row would do badly: few long rows are split into chunks, a block each; rows that are neighbours in
// memory are taken a lane each. The canonical order is kept in both.
#include "codegen/kernel/gpu.h"

static const lf_stmt *reduction(const gpu *g, unsigned i) { return &g->k->loop->stmts[g->ids[i]]; }

static LLVMValueRef chunks_of(lf_kernel *k, LLVMValueRef v_columns) {
    LLVMBuilderRef b = k->e->builder;
    return LLVMBuildLShr(b, LLVMBuildAdd(b, v_columns, lf_i64_const(k, LF_CHUNK - 1), ""), lf_i64_const(k, 13), "chunks");
}

// ---- split rows ----------------------------------------------------------------------------------------------------------------------

static LLVMValueRef bytes_at(lf_kernel *k, LLVMValueRef v_base, LLVMValueRef v_bytes) {
    return LLVMBuildGEP2(k->e->builder, LLVMInt8TypeInContext(k->e->context), v_base, &v_bytes, 1, "");
}

// Where the chunks of a row leave their results; see lfuser_abi_scratch in launch_abi.h.
static lf_partials stored(gpu *g, unsigned i, LLVMValueRef v_row, LLVMValueRef v_rows, LLVMValueRef v_chunks) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_scratch = LLVMBuildIntToPtr(b, lf_word(k, k->loop->scratch_word), k->l_pointer, "scratch");
    LLVMValueRef v_counters = LLVMBuildAnd(b, LLVMBuildAdd(b, LLVMBuildShl(b, v_rows, lf_i64_const(k, 3), ""), lf_i64_const(k, 255), ""), lf_i64_const(k, -256), "");
    LLVMValueRef v_cells = LLVMBuildMul(b, v_rows, v_chunks, "cells"), v_half = lf_i64_const(k, LFUSER_ABI_PARTIAL_BYTES / 2);
    LLVMValueRef v_block = LLVMBuildMul(b, v_cells, lf_i64_const(k, LFUSER_ABI_PARTIAL_BYTES), "");
    LLVMValueRef v_base = bytes_at(k, v_scratch, LLVMBuildAdd(b, v_counters, LLVMBuildMul(b, v_block, lf_i64_const(k, i), ""), ""));
    LLVMValueRef v_first = LLVMBuildMul(b, v_row, v_chunks, "first");
    lf_partials p = {LLVMBuildGEP2(b, lf_memory_type(k->e, reduction(g, i)->compute), v_base, &v_first, 1, ""), NULL};
    if (lf_has_position(reduction(g, i))) {
        LLVMValueRef v_positions = bytes_at(k, v_base, LLVMBuildMul(b, v_cells, v_half, ""));
        p.v_positions = LLVMBuildGEP2(b, k->l_i64, v_positions, &v_first, 1, "");
    }
    return p;
}

// True in all threads of the block that comes last of its row.
static LLVMValueRef count_arrival(gpu *g, LLVMValueRef v_row, LLVMValueRef v_chunks, LLVMValueRef v_leads) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_counters = LLVMBuildIntToPtr(b, lf_word(k, k->loop->scratch_word), k->l_pointer, "counters");
    LLVMValueRef v_flag = lf_gpu_shared_slot(g, lf_i64_const(k, 0), 0, 24);
    lf_gpu_barrier(k);
    lf_if_blocks leader;
    lf_if_begin(k, &leader, v_leads, "arrive");
    LLVMBuildFence(b, LLVMAtomicOrderingAcquireRelease, false, "");
    LLVMValueRef v_counter = LLVMBuildGEP2(b, k->l_i64, v_counters, &v_row, 1, "counter");
    LLVMValueRef v_before = LLVMBuildAtomicRMW(b, LLVMAtomicRMWBinOpAdd, v_counter, lf_i64_const(k, 1), LLVMAtomicOrderingAcquireRelease, false);
    LLVMBuildStore(b, v_before, v_flag);
    LLVMBuildFence(b, LLVMAtomicOrderingAcquireRelease, false, "");
    lf_if_end(k, &leader);
    lf_gpu_barrier(k);
    LLVMValueRef v_arrived = LLVMBuildLoad2(b, k->l_i64, v_flag, "arrived");
    return LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAdd(b, v_arrived, lf_i64_const(k, 1), ""), v_chunks, "last");
}

lf_status lf_gpu_emit_split(gpu *g, lf_object *out) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    lf_stmt_id ids[LF_GPU_REDUCTIONS];
    g->ids = ids;
    g->pass = 0;
    g->n = lf_pass_reductions(k, 0, ids, LF_GPU_REDUCTIONS);
    g->v_thread = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x");
    out->block = g->threads;
    out->rows_a_block = 1;
    LLVMValueRef v_columns = g->v_columns, v_rows = lf_gpu_total_rows(k), v_chunks = chunks_of(k, v_columns);
    LLVMValueRef v_leads = LLVMBuildICmp(b, LLVMIntEQ, g->v_thread, lf_i64_const(k, 0), "leads");
    lf_loop_blocks cells;
    LLVMValueRef v_cell = lf_for_begin(k, &cells, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), LLVMBuildMul(b, v_rows, v_chunks, "cells"),
                                       lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), "cell");
    LLVMValueRef v_row = LLVMBuildUDiv(b, v_cell, v_chunks, "row"), v_chunk = LLVMBuildSub(b, v_cell, LLVMBuildMul(b, v_row, v_chunks, ""), "chunk");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    lf_emit_rows_of_level(k, 0, v_leads);
    lf_partial partial[LF_GPU_REDUCTIONS];
    lf_partials memory[LF_GPU_REDUCTIONS];
    lf_gpu_emit_chunk(k, g, v_chunk, partial);
    for (unsigned i = 0; i < g->n; i++) memory[i] = stored(g, i, v_row, v_rows, v_chunks);
    lf_if_blocks leader, last;
    lf_if_begin(k, &leader, v_leads, "leave");
    for (unsigned i = 0; i < g->n; i++) lf_partials_store(k, reduction(g, i), memory[i], v_chunk, partial[i], false);
    lf_if_end(k, &leader);
    LLVMValueRef v_last = count_arrival(g, v_row, v_chunks, v_leads);
    lf_if_begin(k, &last, v_last, "combine");
    // Chunk results are reduced by the rule for elements.
    g->from = memory;
    g->v_columns = v_chunks;
    lf_stream_chunks(k, ids, g->n, v_chunks, lf_gpu_emit_chunk, g, partial);
    g->from = NULL;
    g->v_columns = v_columns;
    for (unsigned i = 0; i < g->n; i++) lf_set_reduced(k, ids[i], partial[i]);
    lf_emit_rows_of_level(k, 1, v_leads);
    lf_if_end(k, &last);
    lf_for_end(k, &cells, LF_HINT_NONE);
    return NULL;
}

// ---- rows that are neighbours ----------------------------------------------------------------------------------------------------------

// A warp takes 32 rows, the block's 8 warps share the columns: bits 7, 8, 9 of the column tell the warp. Each thread walks bits 0 … 6
// and, unrolled, bits 12, 11, 10: eight loads under way.
enum { OUTER_WARPS = 8, OUTER_STEPS = LF_SPAN / OUTER_WARPS, OUTER_LEVELS = 7 };

typedef struct outer {
    gpu g;
    LLVMValueRef v_warp, v_lane;
    lf_partials level[OUTER_LEVELS + 1][LF_GPU_REDUCTIONS], x[LF_GPU_REDUCTIONS];
} outer;

static lf_partial span_sum(outer *o, unsigned i, lf_partial x[LF_SPANS]) {
    for (unsigned half = LF_SPANS / 2; half; half /= 2)
        for (unsigned j = 0; j < half; j++) x[j] = lf_combine(o->g.k, reduction(&o->g, i), x[j], x[j + half]);
    return x[0];
}

// Columns v_first + 1024 j, j = 0 … 7: those past the end read the last column and count as neutral, so that no branch stands
// between the loads.
static void outer_step(outer *o, LLVMValueRef v_first) {
    lf_kernel *k = o->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_last = LLVMBuildSub(b, o->g.v_columns, lf_i64_const(k, 1), "");
    lf_partial x[LF_GPU_REDUCTIONS][LF_SPANS];
    for (unsigned j = 0; j < LF_SPANS; j++) {
        LLVMValueRef v = LLVMBuildAdd(b, v_first, lf_i64_const(k, (int64_t)j * LF_SPAN), "");
        LLVMValueRef v_there = LLVMBuildICmp(b, LLVMIntSLT, v, o->g.v_columns, "");
        LLVMValueRef v_column = LLVMBuildSelect(b, v_there, v, v_last, "column");
        lf_kernel_forget_columns(k);
        lf_split_index(k, v_column, k->cols, lf_column_extent, k->at->v_column);
        for (unsigned i = 0; i < o->g.n; i++) {
            lf_emit_statement(k, reduction(&o->g, i)->args[0]);
            lf_partial p = lf_contribution(k, reduction(&o->g, i), 0, v_column);
            x[i][j] = lf_partial_select(k, reduction(&o->g, i), v_there, p, lf_neutral(k, reduction(&o->g, i)));
        }
    }
    lf_kernel_forget_columns(k);
    for (unsigned i = 0; i < o->g.n; i++) lf_partials_store(k, reduction(&o->g, i), o->x[i], lf_i64_const(k, 0), span_sum(o, i, x[i]), false);
}

static void move(outer *o, lf_partials *to, lf_partials *from) {
    LLVMValueRef v_zero = lf_i64_const(o->g.k, 0);
    for (unsigned i = 0; i < o->g.n; i++)
        lf_partials_store(o->g.k, reduction(&o->g, i), to[i], v_zero, lf_partials_load(o->g.k, reduction(&o->g, i), from[i], v_zero, false), false);
}

// x = level + x
static void join(outer *o, lf_partials *level) {
    lf_kernel *k = o->g.k;
    LLVMValueRef v_zero = lf_i64_const(k, 0);
    for (unsigned i = 0; i < o->g.n; i++) {
        const lf_stmt *s = reduction(&o->g, i);
        lf_partial low = lf_partials_load(k, s, level[i], v_zero, false), high = lf_partials_load(k, s, o->x[i], v_zero, false);
        lf_partials_store(k, s, o->x[i], v_zero, lf_combine(k, s, low, high), false);
    }
}

static void outer_push(outer *o, LLVMValueRef v_step) {
    lf_kernel *k = o->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_done = lf_block(k, "pushed");
    for (unsigned l = 0; l < OUTER_LEVELS; l++) {
        LLVMBasicBlockRef b_wait = lf_block(k, "wait"), b_merge = lf_block(k, "merge");
        LLVMValueRef v_bit = LLVMBuildAnd(b, LLVMBuildLShr(b, v_step, lf_i64_const(k, l), ""), lf_i64_const(k, 1), "");
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, v_bit, lf_i64_const(k, 0), ""), b_wait, b_merge);
        LLVMPositionBuilderAtEnd(b, b_wait);
        move(o, o->level[l], o->x);
        LLVMBuildBr(b, b_done);
        LLVMPositionBuilderAtEnd(b, b_merge);
        join(o, o->level[l]);
    }
    move(o, o->level[OUTER_LEVELS], o->x);
    LLVMBuildBr(b, b_done);
    LLVMPositionBuilderAtEnd(b, b_done);
}

// What is left in the counter after v_count steps, into x.
static void outer_flush(outer *o, LLVMValueRef v_count) {
    lf_kernel *k = o->g.k;
    LLVMBuilderRef b = k->e->builder;
    for (unsigned i = 0; i < o->g.n; i++)
        lf_partials_store(k, reduction(&o->g, i), o->x[i], lf_i64_const(k, 0), lf_neutral(k, reduction(&o->g, i)), false);
    for (unsigned l = 0; l <= OUTER_LEVELS; l++) {
        LLVMValueRef v_bit = LLVMBuildAnd(b, LLVMBuildLShr(b, v_count, lf_i64_const(k, l), ""), lf_i64_const(k, 1), "");
        lf_if_blocks left;
        lf_if_begin(k, &left, LLVMBuildICmp(b, LLVMIntNE, v_bit, lf_i64_const(k, 0), ""), "left");
        join(o, o->level[l]);
        lf_if_end(k, &left);
    }
}

static LLVMValueRef outer_slot(outer *o, LLVMValueRef v_warp, unsigned i, unsigned offset) {
    lf_kernel *k = o->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_cell = LLVMBuildAdd(b, LLVMBuildMul(b, v_warp, lf_i64_const(k, LF_GPU_WARP), ""), o->v_lane, "");
    LLVMValueRef v_at = LLVMBuildAdd(b, LLVMBuildMul(b, v_cell, lf_i64_const(k, LF_GPU_SLOT), ""),
                                     lf_i64_const(k, (int64_t)i * OUTER_WARPS * LF_GPU_WARP * LF_GPU_SLOT + offset), "");
    return LLVMBuildGEP2(b, LLVMInt8TypeInContext(k->e->context), o->g.v_shared, &v_at, 1, "");
}

// Bits 7, 8, 9: every warp reads what all warps have for its lanes.
static void outer_exchange(outer *o, lf_partial *out) {
    lf_kernel *k = o->g.k;
    LLVMBuilderRef b = k->e->builder;
    lf_gpu_barrier(k);
    for (unsigned i = 0; i < o->g.n; i++) {
        const lf_stmt *s = reduction(&o->g, i);
        lf_partial mine = lf_partials_load(k, s, o->x[i], lf_i64_const(k, 0), false);
        lf_emit_store(k->e, s->compute, mine.value, outer_slot(o, o->v_warp, i, 0));
        if (mine.v_position) LLVMBuildStore(b, mine.v_position, outer_slot(o, o->v_warp, i, 16));
    }
    lf_gpu_barrier(k);
    for (unsigned i = 0; i < o->g.n; i++) {
        const lf_stmt *s = reduction(&o->g, i);
        lf_partial all[OUTER_WARPS];
        for (unsigned w = 0; w < OUTER_WARPS; w++) {
            all[w] = (lf_partial){lf_emit_load(k->e, s->compute, outer_slot(o, lf_i64_const(k, w), i, 0)), NULL};
            if (lf_has_position(s)) all[w].v_position = LLVMBuildLoad2(b, k->l_i64, outer_slot(o, lf_i64_const(k, w), i, 16), "");
        }
        for (unsigned width = OUTER_WARPS; width > 1; width /= 2)
            for (unsigned w = 0; w < width / 2; w++) all[w] = lf_combine(k, s, all[2 * w], all[2 * w + 1]);
        out[i] = all[0];
    }
}

static void outer_chunk(lf_kernel *k, void *context, LLVMValueRef v_chunk, lf_partial *out) {
    outer *o = context;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_steps = lf_i64_const(k, OUTER_STEPS);
    LLVMValueRef v_first = LLVMBuildAdd(b, LLVMBuildMul(b, v_chunk, lf_i64_const(k, LF_CHUNK), ""), LLVMBuildMul(b, o->v_warp, v_steps, ""), "first");
    LLVMValueRef v_left = LLVMBuildSub(b, o->g.v_columns, v_first, "");
    v_left = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, v_left, v_zero, ""), v_zero, v_left, "");
    LLVMValueRef v_count = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, v_left, v_steps, ""), v_left, v_steps, "count");
    lf_loop_blocks loop;
    LLVMValueRef v_step = lf_for_begin(k, &loop, v_zero, v_count, lf_i64_const(k, 1), "step");
    outer_step(o, LLVMBuildAdd(b, v_first, v_step, ""));
    outer_push(o, v_step);
    lf_for_end(k, &loop, LF_HINT_ROLLED);
    outer_flush(o, v_count);
    outer_exchange(o, out);
}

lf_status lf_gpu_emit_outer(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    outer *o = lf_alloc_zero(k->l->allocator, sizeof *o);
    if (!o) return lf_out_of_memory();
    lf_stmt_id ids[LF_GPU_REDUCTIONS];
    o->g = (gpu){.k = k, .threads = OUTER_WARPS * LF_GPU_WARP, .ids = ids, .v_columns = lf_columns(k)};
    o->g.n = lf_pass_reductions(k, 0, ids, LF_GPU_REDUCTIONS);
    out->block = o->g.threads;
    out->rows_a_block = LF_GPU_WARP;
    out->shared_bytes = o->g.n * OUTER_WARPS * LF_GPU_WARP * LF_GPU_SLOT;
    o->g.v_shared = lf_gpu_shared_memory(k, out->shared_bytes);
    for (unsigned i = 0; i < o->g.n; i++) {
        o->x[i] = lf_partials_alloca(k, reduction(&o->g, i), 1, "x");
        for (unsigned l = 0; l <= OUTER_LEVELS; l++) o->level[l][i] = lf_partials_alloca(k, reduction(&o->g, i), 1, "level");
    }
    LLVMValueRef v_tid = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"), v_rows = lf_gpu_total_rows(k), v_width = lf_i64_const(k, LF_GPU_WARP);
    o->v_lane = LLVMBuildAnd(b, v_tid, lf_i64_const(k, LF_GPU_WARP - 1), "lane");
    o->v_warp = LLVMBuildLShr(b, v_tid, lf_i64_const(k, 5), "warp");
    LLVMValueRef v_block = LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), v_width, "");
    LLVMValueRef v_step = LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), v_width, "");
    lf_loop_blocks tiles;
    LLVMValueRef v_tile = lf_for_begin(k, &tiles, v_block, v_rows, v_step, "tile");
    // Lanes past the last row do the last row's work, so that all meet at the barriers, and write nothing.
    LLVMValueRef v_mine = LLVMBuildAdd(b, v_tile, o->v_lane, ""), v_there = LLVMBuildICmp(b, LLVMIntSLT, v_mine, v_rows, "there");
    LLVMValueRef v_row = LLVMBuildSelect(b, v_there, v_mine, LLVMBuildSub(b, v_rows, lf_i64_const(k, 1), ""), "row");
    LLVMValueRef v_leads = LLVMBuildAnd(b, v_there, LLVMBuildICmp(b, LLVMIntEQ, o->v_warp, lf_i64_const(k, 0), ""), "leads");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    lf_emit_rows_of_level(k, 0, v_leads);
    lf_partial result[LF_GPU_REDUCTIONS];
    lf_stream_chunks(k, ids, o->g.n, o->g.v_columns, outer_chunk, o, result);
    for (unsigned i = 0; i < o->g.n; i++) lf_set_reduced(k, ids[i], result[i]);
    lf_emit_rows_of_level(k, 1, v_leads);
    lf_for_end(k, &tiles, LF_HINT_NONE);
    lf_free(k->l->allocator, o);
    return NULL;
}
