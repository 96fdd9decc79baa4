// Rows with passes on a GPU: a block, or for short rows a warp, takes a row. What differs is how the row's columns are shared out:
//   resident   all at once: each thread keeps its columns from pass to pass
//   rounds     a few chunks at once, round after round in each pass; warps meet once a pass
//   chunks     one chunk after another, of a row of any length
#include "codegen/kernel/gpu.h"

enum { SMALL_WARPS = 4 };

static bool is_warp(const lf_kernel *k) { return k->cls.shape == LFUSER_ABI_WARP; }

// ---- passes ----------------------------------------------------------------------------------------------------------------------------

// Chunks of a block follow each other, those of a round too.
LLVMValueRef lf_gpu_first_column(gpu *g) {
    LLVMBuilderRef b = g->k->e->builder;
    unsigned round = g->base / g->spans;
    LLVMValueRef v_chunk = LLVMBuildAdd(b, g->v_team, lf_i64_const(g->k, round * (g->chunks / g->rounds)), "chunk");
    return LLVMBuildMul(b, v_chunk, lf_i64_const(g->k, LF_CHUNK), "first");
}

LLVMValueRef lf_gpu_warp_slot(gpu *g, unsigned round) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    unsigned warps = g->threads * g->chunks / LF_GPU_WARP; // that the block's chunks take
    if (g->is_online) warps /= g->rounds;
    LLVMValueRef v_warp = LLVMBuildLShr(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"), lf_i64_const(k, 5), "warp");
    if (g->cluster > 1) v_warp = LLVMBuildAdd(b, LLVMBuildMul(b, g->v_rank, lf_i64_const(k, warps), ""), v_warp, "");
    return LLVMBuildAdd(b, v_warp, lf_i64_const(k, round * warps / g->rounds), "slot");
}

static void resident_pass(gpu *g, lf_partial *result) {
    lf_kernel *k = g->k;
    lf_gpu_stage_forget(g);
    lf_gpu_stage_others(g);
    for (unsigned r = 0; r < g->rounds; r++) {
        g->base = r * g->spans;
        lf_gpu_unrolled_chunk(g, lf_gpu_first_column(g), result);
        if (g->n && !is_warp(k)) lf_gpu_leave(g, lf_gpu_warp_slot(g, r), result);
    }
    g->base = 0;
    if (!g->n || is_warp(k)) return;
    lf_emit_row_loads(k, g->pass);
    lf_gpu_meet(g);
    lf_gpu_fold_slots(g, NULL, result);
    g->buffer ^= 1; // so that one barrier a pass is enough: the other buffer is written before this one is again
}

void lf_gpu_rounds_pass(gpu *g, lf_partial *result) {
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
    lf_emit_row_loads(k, g->pass);
    lf_gpu_barrier(k);
    lf_gpu_fold_slots(g, LLVMBuildMul(b, v_chunks, v_warps, "slots"), result);
    g->buffer ^= 1;
}

static void emit_plain_pass(gpu *g) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_lanes = lf_i64_const(k, k->lanes);
    lf_loop_blocks columns;
    LLVMValueRef v = lf_for_begin(k, &columns, LLVMBuildMul(b, g->v_thread, v_lanes, ""), g->v_columns,
                                  lf_i64_const(k, (int64_t)g->threads * k->lanes), "column");
    lf_kernel_at_column(k, v);
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
    if (k->cls.shape == LFUSER_ABI_OUTER && k->cls.spans) return lf_gpu_emit_few(k, out);
    if (k->cls.shape == LFUSER_ABI_OUTER) return lf_gpu_emit_outer(k, out);
    if (k->cls.shape == LFUSER_ABI_SPLIT) return lf_gpu_emit_split(k, out);
    if (k->cls.shape == LFUSER_ABI_COMBINE) return lf_gpu_emit_combine(k, out);
    bool warp = is_warp(k);
    // Measured: where nothing is written, and for short rows, nothing is gained.
    k->streams = k->cls.shape == LFUSER_ABI_RESIDENT && !k->loop->reduces;
    unsigned rows_a_block = warp ? SMALL_WARPS : 1;
    gpu g = {.k = k,
             .threads = warp ? LF_GPU_WARP : LF_SPAN / k->lanes,
             .chunks = 1,
             .rounds = 1,
             .spans = warp ? 1 : LF_SPANS,
             .v_columns = lf_columns(k)};
    emit_pass pass_of = chunks_pass;
    unsigned warps = g.threads / LF_GPU_WARP, buffers = 1;
    if (k->cls.shape == LFUSER_ABI_RESIDENT || k->cls.shape == LFUSER_ABI_ROUNDS) {
        g.resident = k->cls.shape == LFUSER_ABI_RESIDENT;
        g.chunks = k->cls.chunks;
        g.spans = k->cls.spans;
        g.cluster = k->cls.cluster > 1 ? k->cls.cluster : 1;
        if (g.resident && k->cls.teams && k->cls.teams < g.chunks) g.rounds = g.chunks / k->cls.teams;
        pass_of = g.resident ? resident_pass : lf_gpu_rounds_pass;
        buffers = 2;
        warps = g.resident ? warps * g.chunks * g.cluster : LFUSER_ABI_ROUND_SLOTS;
    }
    g.is_online = lf_gpu_find_online(&g);
    LLVMValueRef v_turn = NULL; // of the buffers: with one meeting a row, rows take them in turn
    if (g.is_online) {
        v_turn = lf_alloca(k, k->l_i64, "turn");
        LLVMBuildStore(b, lf_i64_const(k, 0), v_turn);
        warps = g.threads / LF_GPU_WARP * (g.chunks / g.rounds) * g.cluster; // they meet once, whatever each had
    }
    if (warp && lf_gpu_unrolls(&g)) {
        g.resident = true;
        pass_of = resident_pass;
    }
    if (!warp) LF_TRY(lf_gpu_share(&g, warps, buffers, out));
    LLVMValueRef v_tid = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"),
                 v_block = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x");
    LLVMValueRef v_blocks = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), v_rows = lf_gpu_total_rows(k);
    LLVMValueRef v_first = v_block, v_step = v_blocks, v_threads = lf_i64_const(k, g.threads);
    // Powers of two: a shift and a mask.
    unsigned teams = g.chunks / g.rounds;
    g.v_thread = teams * rows_a_block == 1 ? v_tid : LLVMBuildURem(b, v_tid, v_threads, "thread");
    g.v_team = teams == 1 ? lf_i64_const(k, 0) : LLVMBuildUDiv(b, v_tid, v_threads, "team");
    if (g.cluster > 1) {
        LLVMValueRef v_cluster = lf_i64_const(k, g.cluster);
        g.v_rank = LLVMBuildURem(b, v_block, v_cluster, "rank");
        g.v_team = LLVMBuildAdd(b, LLVMBuildMul(b, g.v_rank, lf_i64_const(k, g.chunks), ""), g.v_team, "team");
        v_first = LLVMBuildUDiv(b, v_block, v_cluster, "first");
        v_step = LLVMBuildUDiv(b, v_blocks, v_cluster, "step");
        out->cluster = g.cluster;
    }
    if (warp) {
        v_first = LLVMBuildAdd(b, LLVMBuildMul(b, v_block, lf_i64_const(k, rows_a_block), ""),
                               LLVMBuildUDiv(b, v_tid, v_threads, ""), "");
        v_step = LLVMBuildMul(b, v_blocks, lf_i64_const(k, rows_a_block), "");
    }
    out->block = g.threads * teams * rows_a_block;
    out->rows_a_block = rows_a_block;
    LF_TRY(lf_gpu_stage_plan(&g, out));
    if (g.cluster > 1) lf_gpu_intrinsic(k, "llvm.nvvm.barrier.cluster.arrive.aligned", NULL, 0);
    if (g.staged) {
        for (unsigned r = 0; r < g.rounds; r++) {
            g.base = r * g.spans;
            lf_gpu_place_spans(&g, lf_gpu_first_column(&g));
        }
        g.base = 0;
        lf_kernel_use_copy(k, 0);
        g.placed = true;
        if (!k->cls.alone) lf_gpu_stage_row(&g, v_first);
    }
    // All blocks of a cluster have begun before one writes to another.
    if (g.cluster > 1) lf_gpu_intrinsic(k, "llvm.nvvm.barrier.cluster.wait.aligned", NULL, 0);
    unsigned meetings = 0;
    lf_loop_blocks rows;
    LLVMValueRef v_row = lf_for_begin(k, &rows, v_first, v_rows, v_step, "row");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    LLVMValueRef v_leads = LLVMBuildICmp(b, LLVMIntEQ, warp ? g.v_thread : v_tid, lf_i64_const(k, 0), "leads");
    if (g.cluster > 1)
        v_leads = LLVMBuildAnd(b, v_leads, LLVMBuildICmp(b, LLVMIntEQ, g.v_rank, lf_i64_const(k, 0), ""), "leads");
    if (k->cls.alone) {
        lf_gpu_stage_row(&g, v_row);
    } else if (g.staged) { // after the last row it comes again, which does no harm
        LLVMValueRef v_after = LLVMBuildAdd(b, v_row, v_step, "");
        v_after = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, v_after, v_rows, ""), v_after, v_row, "next");
        lf_split_index(k, v_after, k->rows, lf_row_extent, g.v_next);
    }
    lf_gpu_stage_wait(&g);
    for (unsigned pass = 0; pass <= k->loop->passes; pass++) {
        lf_emit_rows_for_columns(k, pass);
        if (pass == k->loop->passes) break;
        lf_stmt_id ids[LF_GPU_REDUCTIONS];
        lf_partial result[LF_GPU_REDUCTIONS];
        if (g.is_online && pass == 0) {
            g.v_buffer = LLVMBuildLoad2(b, k->l_i64, v_turn, "buffer");
            lf_gpu_online_pass(&g, result);
            lf_set_reduced(k, g.online[0], 0, result[0]);
            lf_set_reduced(k, g.online[1], 0, result[1]);
            LLVMBuildStore(b, LLVMBuildXor(b, g.v_buffer, lf_i64_const(k, 1), ""), v_turn);
            g.v_buffer = NULL;
            lf_gpu_stage_commit(&g);
        }
        if (g.is_online && pass < 2) continue;
        g.pass = pass;
        g.ids = ids;
        g.n = lf_pass_reductions(k, pass, ids, LF_GPU_REDUCTIONS);
        pass_of(&g, result);
        for (unsigned i = 0; i < g.n; i++) lf_set_reduced(k, ids[i], 0, result[i]);
        meetings += g.n > 0;
        if (pass == g.last_read) lf_gpu_stage_commit(&g);
    }
    for (unsigned level = 0; level <= k->loop->passes; level++) lf_emit_rows_of_level(k, level, v_leads);
    // Slots have been read before the next row's are written: after an even number of meetings the last one has seen to that.
    if (buffers == 2 && !v_turn && (meetings % 2 || !meetings)) lf_gpu_meet(&g);
    lf_for_end(k, &rows, LF_HINT_NONE);
    lf_gpu_stage_wait(&g); // nothing arrives when the block is gone
    return NULL;
}
