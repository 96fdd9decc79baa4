// Rows with passes on a GPU: a block, or for short rows a warp, takes a row. What differs is how the row's columns are shared out:
//   resident   all at once: each thread keeps its columns from pass to pass
//   rounds     a few chunks at once, round after round in each pass; warps meet once a pass
//   chunks     one chunk after another, of a row of any length
#include "codegen/kernel/gpu.h"

enum { SMALL_WARPS = 4 };

static bool is_warp(const lf_kernel *k) { return k->cls.shape == LFUSER_ABI_WARP; }

// ---- passes ----------------------------------------------------------------------------------------------------------------------------

static void resident_pass(gpu *g, lf_partial *result) {
    lf_kernel *k = g->k;
    lf_gpu_unrolled_chunk(g, LLVMBuildMul(k->e->builder, g->v_team, lf_i64_const(k, LF_CHUNK), "first"), result);
    if (!g->n || is_warp(k)) return;
    lf_gpu_leave(
        g, LLVMBuildLShr(k->e->builder, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"), lf_i64_const(k, 5), "warp"),
        result);
    lf_gpu_barrier(k);
    lf_gpu_fold_slots(g, NULL, result);
    g->buffer ^= 1; // so that one barrier a pass is enough: the other buffer is written before this one is again
}

static void rounds_pass(gpu *g, lf_partial *result) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_warps = lf_i64_const(k, g->threads / LF_GPU_WARP);
    LLVMValueRef v_chunks =
        LLVMBuildLShr(b, LLVMBuildAdd(b, g->v_columns, lf_i64_const(k, LF_CHUNK - 1), ""), lf_i64_const(k, 13), "chunks");
    lf_loop_blocks rounds;
    LLVMValueRef v_chunk = lf_for_begin(k, &rounds, g->v_team, v_chunks, lf_i64_const(k, g->chunks), "chunk");
    lf_gpu_unrolled_chunk(g, LLVMBuildMul(b, v_chunk, lf_i64_const(k, LF_CHUNK), "first"), result);
    LLVMValueRef v_warp = LLVMBuildLShr(b, g->v_thread, lf_i64_const(k, 5), "");
    if (g->n) lf_gpu_leave(g, LLVMBuildAdd(b, LLVMBuildMul(b, v_chunk, v_warps, ""), v_warp, "slot"), result);
    lf_for_end(k, &rounds, LF_HINT_ROLLED);
    for (unsigned j = 0; j < g->spans; j++) {
        lf_kernel_use_copy(k, j);
        lf_kernel_forget_columns(k);
    }
    lf_kernel_use_copy(k, 0);
    if (!g->n) return;
    lf_gpu_barrier(k);
    lf_gpu_fold_slots(g, LLVMBuildMul(b, v_chunks, v_warps, "slots"), result);
    g->buffer ^= 1;
}

static void at_column(lf_kernel *k, LLVMValueRef v_linear) {
    lf_kernel_forget_columns(k);
    lf_split_index(k, v_linear, k->cols, lf_column_extent, k->at->v_column);
}

static void emit_plain_pass(gpu *g) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_lanes = lf_i64_const(k, k->lanes);
    lf_loop_blocks columns;
    LLVMValueRef v = lf_for_begin(k, &columns, LLVMBuildMul(b, g->v_thread, v_lanes, ""), g->v_columns,
                                  lf_i64_const(k, (int64_t)g->threads * k->lanes), "column");
    at_column(k, v);
    lf_emit_column_effects(k, g->pass);
    lf_for_end(k, &columns, LF_HINT_NONE);
}

static void chunks_pass(gpu *g, lf_partial *result) {
    if (g->n)
        lf_stream_chunks(g->k, g->ids, g->n, g->v_columns, lf_gpu_emit_chunk, g, result);
    else
        emit_plain_pass(g);
    lf_kernel_forget_columns(g->k);
}

// ---- rows ------------------------------------------------------------------------------------------------------------------------------

typedef void (*emit_pass)(gpu *g, lf_partial *result);

lf_status lf_gpu_emit_rows(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    if (k->cls.shape == LFUSER_ABI_OUTER) return lf_gpu_emit_outer(k, out);
    bool warp = is_warp(k);
    unsigned rows_a_block = warp ? SMALL_WARPS : 1;
    gpu g = {.k = k,
             .threads = warp ? LF_GPU_WARP : LF_SPAN / k->lanes,
             .chunks = 1,
             .spans = warp ? 1 : LF_SPANS,
             .v_columns = lf_columns(k)};
    emit_pass pass_of = chunks_pass;
    unsigned warps = g.threads / LF_GPU_WARP, buffers = 1;
    if (k->cls.shape == LFUSER_ABI_RESIDENT || k->cls.shape == LFUSER_ABI_ROUNDS) {
        g.resident = k->cls.shape == LFUSER_ABI_RESIDENT;
        g.chunks = k->cls.chunks;
        g.spans = k->cls.spans;
        pass_of = g.resident ? resident_pass : rounds_pass;
        buffers = 2;
        warps = g.resident ? warps * g.chunks : LFUSER_ABI_ROUND_SLOTS;
    }
    if (k->cls.shape == LFUSER_ABI_SPLIT) buffers = 2;
    if (warp && lf_gpu_unrolls(&g)) {
        g.resident = true;
        pass_of = resident_pass;
    }
    if (!warp) LF_TRY(lf_gpu_share(&g, warps, buffers, out));
    if (k->cls.shape == LFUSER_ABI_SPLIT) return lf_gpu_emit_split(&g, out);
    LLVMValueRef v_tid = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"),
                 v_block = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x");
    LLVMValueRef v_blocks = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), v_rows = lf_gpu_total_rows(k);
    LLVMValueRef v_first = v_block, v_step = v_blocks, v_threads = lf_i64_const(k, g.threads);
    // Powers of two: a shift and a mask.
    g.v_thread = g.chunks * rows_a_block == 1 ? v_tid : LLVMBuildURem(b, v_tid, v_threads, "thread");
    g.v_team = g.chunks == 1 ? lf_i64_const(k, 0) : LLVMBuildUDiv(b, v_tid, v_threads, "team");
    if (warp) {
        v_first = LLVMBuildAdd(b, LLVMBuildMul(b, v_block, lf_i64_const(k, rows_a_block), ""),
                               LLVMBuildUDiv(b, v_tid, v_threads, ""), "");
        v_step = LLVMBuildMul(b, v_blocks, lf_i64_const(k, rows_a_block), "");
    }
    out->block = g.threads * g.chunks * rows_a_block;
    out->rows_a_block = rows_a_block;
    lf_loop_blocks rows;
    LLVMValueRef v_row = lf_for_begin(k, &rows, v_first, v_rows, v_step, "row");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    LLVMValueRef v_leads = LLVMBuildICmp(b, LLVMIntEQ, warp ? g.v_thread : v_tid, lf_i64_const(k, 0), "leads");
    for (unsigned pass = 0; pass <= k->loop->passes; pass++) {
        lf_emit_rows_of_level(k, pass, v_leads);
        if (pass == k->loop->passes) break;
        lf_stmt_id ids[LF_GPU_REDUCTIONS];
        lf_partial result[LF_GPU_REDUCTIONS];
        g.pass = pass;
        g.ids = ids;
        g.n = lf_pass_reductions(k, pass, ids, LF_GPU_REDUCTIONS);
        pass_of(&g, result);
        for (unsigned i = 0; i < g.n; i++) lf_set_reduced(k, ids[i], 0, result[i]);
    }
    if (buffers == 2) lf_gpu_barrier(k); // slots have been read before the next row's are written
    lf_for_end(k, &rows, LF_HINT_NONE);
    return NULL;
}
