// Reductions by two kernels: blocks that share a row leave what its chunks add up to in scratch memory (launch_abi.h), and a second
// kernel reduces that by the rule for elements. No block waits for another, none counts arrivals, and the first kernel's blocks, of
// one or two chunks, follow each other through memory: measured, a tenth faster than blocks that take runs of chunks.
#include "codegen/kernel/gpu.h"

enum { SPLIT_BLOCK = 256, THREAD_ROWS = 128 };

static const lf_stmt *reduction(const gpu *g, unsigned i) { return &g->k->loop->stmts[g->ids[i]]; }

LLVMValueRef lf_gpu_chunks_of(lf_kernel *k, LLVMValueRef v_columns) {
    LLVMBuilderRef b = k->e->builder;
    return LLVMBuildLShr(b, LLVMBuildAdd(b, v_columns, lf_i64_const(k, LF_CHUNK - 1), ""), lf_i64_const(k, 13), "chunks");
}

// ---- where partial results lie ---------------------------------------------------------------------------------------------------

// A row's results are padded to vectors of 16 bytes: the second kernel takes so many at once, and scratch memory has room for them however
// few chunks a row has.
static unsigned vector_of(const lf_stmt *reduce) {
    unsigned bytes = lf_dtype_bytes(reduce->compute);
    return bytes >= 16 ? 1 : bytes >= 4 ? 16 / bytes : 4;
}

unsigned lf_gpu_vector_bytes(const lf_kernel *k, const lf_stmt *reduce) {
    unsigned n = vector_of(reduce);
    return (n < k->lanes ? n : k->lanes) * lf_dtype_bytes(reduce->compute);
}

static LLVMValueRef first_of_row(gpu *g, unsigned i, LLVMValueRef v_row, LLVMValueRef v_chunks) {
    LLVMBuilderRef b = g->k->e->builder;
    int64_t n = vector_of(reduction(g, i));
    LLVMValueRef v = LLVMBuildAdd(b, v_chunks, lf_i64_const(g->k, n - 1), "");
    return LLVMBuildMul(b, v_row, LLVMBuildAnd(b, v, lf_i64_const(g->k, -n), ""), "first");
}

// Reduction i's partial results from number v_first on.
static lf_partials scratch(gpu *g, unsigned i, LLVMValueRef v_first) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMTypeRef l_byte = LLVMInt8TypeInContext(k->e->context);
    LLVMValueRef v_base = LLVMBuildIntToPtr(b, lf_word(k, k->loop->scratch_word), k->l_pointer, "scratch");
    LLVMValueRef v_cells = LLVMBuildMul(b, lf_gpu_total_rows(k), lf_gpu_chunks_of(k, lf_columns(k)), "cells");
    LLVMValueRef v_skip = LLVMBuildMul(b, v_cells, lf_i64_const(k, (int64_t)i * LFUSER_ABI_PARTIAL_BYTES), "");
    v_base = LLVMBuildGEP2(b, l_byte, v_base, &v_skip, 1, "");
    lf_partials p = {LLVMBuildGEP2(b, lf_memory_type(k->e, reduction(g, i)->compute), v_base, &v_first, 1, ""), NULL};
    if (!lf_has_position(reduction(g, i))) return p;
    v_skip = LLVMBuildMul(b, v_cells, lf_i64_const(k, LFUSER_ABI_PARTIAL_BYTES / 2), "");
    v_base = LLVMBuildGEP2(b, l_byte, v_base, &v_skip, 1, "");
    p.v_positions = LLVMBuildGEP2(b, k->l_i64, v_base, &v_first, 1, "");
    return p;
}

// Of numbers of chunks and rows, which fit 32 bits where numbers of elements do.
LLVMValueRef lf_gpu_divide(lf_kernel *k, LLVMValueRef v, LLVMValueRef v_by, LLVMValueRef *out_rest) {
    LLVMBuilderRef b = k->e->builder;
    LLVMTypeRef l_type = k->cls.wide ? k->l_i64 : k->l_i32;
    LLVMValueRef v_quotient = LLVMBuildUDiv(b, LLVMBuildTrunc(b, v, l_type, ""), LLVMBuildTrunc(b, v_by, l_type, ""), "");
    v_quotient = LLVMBuildZExt(b, v_quotient, k->l_i64, "");
    *out_rest = LLVMBuildSub(b, v, LLVMBuildMul(b, v_quotient, v_by, ""), "");
    return v_quotient;
}

// What of a row is known before its columns; v_effects: who stores.
static void begin_row(lf_kernel *k, LLVMValueRef v_row, LLVMValueRef v_effects) {
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    lf_emit_rows_of_level(k, 0, v_effects);
}

// ---- the first kernel ------------------------------------------------------------------------------------------------------------

lf_status lf_gpu_emit_split(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    lf_stmt_id ids[LF_GPU_REDUCTIONS];
    gpu g = {.k = k, .ids = ids, .threads = LF_SPAN / k->lanes, .spans = LF_SPANS, .asks = true, .v_columns = lf_columns(k)};
    g.n = lf_pass_reductions(k, 0, ids, LF_GPU_REDUCTIONS);
    g.chunks = g.threads < SPLIT_BLOCK ? SPLIT_BLOCK / g.threads : 1;
    LF_TRY(lf_gpu_share(&g, g.threads / LF_GPU_WARP * g.chunks, 1, out));
    g.folded = g.threads / LF_GPU_WARP;
    g.once = true; // the barrier at the loop's end is enough
    LLVMValueRef v_tid = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"), v_threads = lf_i64_const(k, g.threads);
    g.v_thread = g.chunks == 1 ? v_tid : LLVMBuildURem(b, v_tid, v_threads, "thread");
    g.v_team = g.chunks == 1 ? lf_i64_const(k, 0) : LLVMBuildUDiv(b, v_tid, v_threads, "team");
    if (g.chunks > 1) g.v_home = LLVMBuildMul(b, g.v_team, lf_i64_const(k, g.folded), "home");
    out->block = g.threads * g.chunks;
    out->rows_a_block = g.chunks;
    LLVMValueRef v_chunks = lf_gpu_chunks_of(k, g.v_columns),
                 v_cells = LLVMBuildMul(b, lf_gpu_total_rows(k), v_chunks, "cells");
    LLVMValueRef v_width = lf_i64_const(k, g.chunks);
    LLVMValueRef v_first = LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), v_width, "first"),
                 v_step = LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), v_width, "step");
    lf_loop_blocks cells;
    LLVMValueRef v_cell = lf_for_begin(k, &cells, v_first, v_cells, v_step, "cell"), v_chunk,
                 v_leads = LLVMBuildICmp(b, LLVMIntEQ, g.v_thread, lf_i64_const(k, 0), "leads");
    if (g.chunks >
        1) { // threads past the last chunk do that one's work, so that all meet at the barriers, and leave nothing
        LLVMValueRef v_own = LLVMBuildAdd(b, v_cell, g.v_team, ""),
                     v_there = LLVMBuildICmp(b, LLVMIntSLT, v_own, v_cells, "");
        v_cell = LLVMBuildSelect(b, v_there, v_own, v_cell, "");
        v_leads = LLVMBuildAnd(b, v_leads, v_there, "");
    }
    LLVMValueRef v_row = lf_i64_const(k, 0);
    if (k->rows)
        v_row = lf_gpu_divide(k, v_cell, v_chunks, &v_chunk);
    else
        v_chunk = v_cell;
    begin_row(k, v_row, LLVMConstInt(LLVMInt1TypeInContext(k->e->context), 0, false)); // effects are the second kernel's
    lf_partial partial[LF_GPU_REDUCTIONS];
    lf_gpu_emit_chunk(k, &g, v_chunk, partial);
    lf_if_blocks leader;
    lf_if_begin(k, &leader, v_leads, "leave");
    for (unsigned i = 0; i < g.n; i++)
        lf_partials_store(k, reduction(&g, i), scratch(&g, i, first_of_row(&g, i, v_row, v_chunks)), v_chunk, partial[i],
                          false);
    lf_if_end(k, &leader);
    lf_gpu_barrier(k); // slots have been read before the next chunk's are written
    lf_for_end(k, &cells, LF_HINT_NONE);
    return NULL;
}

// ---- the second: after SPLIT, a block a row --------------------------------------------------------------------------------------

static lf_status combine_chunks(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    lf_stmt_id ids[LF_GPU_REDUCTIONS];
    lf_partials from[LF_GPU_REDUCTIONS];
    lf_partial result[LF_GPU_REDUCTIONS];
    bool rounds = k->cls.chunks;
    gpu g = {.k = k,
             .ids = ids,
             .threads = LF_SPAN / k->lanes,
             .spans = LF_SPANS,
             .asks = true,
             .from = from,
             .chunks = rounds ? k->cls.chunks : 1};
    g.n = lf_pass_reductions(k, 0, ids, LF_GPU_REDUCTIONS);
    LF_TRY(lf_gpu_share(&g, rounds ? LFUSER_ABI_ROUND_SLOTS : g.threads / LF_GPU_WARP, 1, out));
    LLVMValueRef v_tid = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"), v_threads = lf_i64_const(k, g.threads);
    g.v_thread = rounds ? LLVMBuildURem(b, v_tid, v_threads, "thread") : v_tid;
    g.v_team = rounds ? LLVMBuildUDiv(b, v_tid, v_threads, "team") : lf_i64_const(k, 0);
    g.v_columns = lf_gpu_chunks_of(k, lf_columns(k));
    out->block = g.threads * g.chunks;
    out->rows_a_block = 1;
    LLVMValueRef v_leads = LLVMBuildICmp(b, LLVMIntEQ, v_tid, lf_i64_const(k, 0), "leads");
    lf_loop_blocks rows;
    LLVMValueRef v_row = lf_for_begin(k, &rows, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), lf_gpu_total_rows(k),
                                      lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), "row");
    begin_row(k, v_row, v_leads);
    for (unsigned i = 0; i < g.n; i++) from[i] = scratch(&g, i, first_of_row(&g, i, v_row, g.v_columns));
    if (rounds)
        lf_gpu_rounds_pass(&g, result);
    else
        lf_stream_chunks(k, ids, g.n, g.v_columns, lf_gpu_emit_chunk, &g, result);
    for (unsigned i = 0; i < g.n; i++) lf_set_reduced(k, ids[i], 0, result[i]);
    lf_emit_rows_of_level(k, 1, v_leads);
    lf_gpu_barrier(k); // slots have been read before the next row's are written
    lf_for_end(k, &rows, LF_HINT_NONE);
    return NULL;
}

// ---- the second: after OUTER, a thread a row -------------------------------------------------------------------------------------

lf_partials lf_gpu_part_of(gpu *g, unsigned i, LLVMValueRef v_chunk, LLVMValueRef v_part, unsigned parts,
                           LLVMValueRef v_row) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v = LLVMBuildAdd(b, LLVMBuildMul(b, v_chunk, lf_i64_const(k, parts), ""), v_part, "");
    return scratch(g, i, LLVMBuildAdd(b, LLVMBuildMul(b, v, lf_gpu_total_rows(k), ""), v_row, ""));
}

typedef struct parts {
    gpu g;
    unsigned n;
    LLVMValueRef v_row;
} parts;

// Parts are numbered by the highest of the bits 0 … 9 of the column: they come last.
static void combine_parts(lf_kernel *k, void *context, LLVMValueRef v_chunk, lf_partial *out) {
    parts *p = context;
    lf_partial all[LF_GPU_REDUCTIONS][LFUSER_ABI_PARTIAL_BYTES];
    for (unsigned i = 0; i < p->g.n; i++)
        for (unsigned n = 0; n < p->n; n++) {
            lf_partials from = lf_gpu_part_of(&p->g, i, v_chunk, lf_i64_const(k, n), p->n, p->v_row);
            all[i][n] = lf_partials_load(k, reduction(&p->g, i), from, lf_i64_const(k, 0), false);
        }
    for (unsigned i = 0; i < p->g.n; i++) out[i] = lf_gpu_fold_pairs(k, reduction(&p->g, i), all[i], p->n);
}

// Chunks 0, 1, … in pairs, over one bit of their number after the other: all that is loaded is under way at once. Missing ones are neutral.
static void combine_few_chunks(parts *p, LLVMValueRef v_chunks, lf_partial *result) {
    lf_kernel *k = p->g.k;
    LLVMBuilderRef b = k->e->builder;
    lf_partial all[LF_GPU_REDUCTIONS][LFUSER_ABI_PARTIAL_BYTES], out[LF_GPU_REDUCTIONS];
    LLVMValueRef v_zero = lf_i64_const(k, 0);
    for (unsigned c = 0; c < k->cls.chunks; c++) {
        LLVMValueRef v_chunk = lf_i64_const(k, c), v_there = LLVMBuildICmp(b, LLVMIntSLT, v_chunk, v_chunks, "there");
        combine_parts(k, p, LLVMBuildSelect(b, v_there, v_chunk, v_zero, ""), out);
        for (unsigned i = 0; i < p->g.n; i++)
            all[i][c] = lf_partial_select(k, reduction(&p->g, i), v_there, out[i], lf_neutral(k, reduction(&p->g, i)));
    }
    for (unsigned i = 0; i < p->g.n; i++) result[i] = lf_gpu_fold_pairs(k, reduction(&p->g, i), all[i], k->cls.chunks);
}

static lf_status combine_rows(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    lf_stmt_id ids[LF_GPU_REDUCTIONS];
    lf_partial result[LF_GPU_REDUCTIONS];
    parts p = {.g = {.k = k, .ids = ids, .v_columns = lf_columns(k)}, .n = k->cls.spans};
    p.g.n = lf_pass_reductions(k, 0, ids, LF_GPU_REDUCTIONS);
    out->block = out->rows_a_block = THREAD_ROWS;
    LLVMValueRef v_size = lf_i64_const(k, THREAD_ROWS),
                 v_first = LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), v_size, ""),
                 v_step = LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), v_size, "step");
    v_first = LLVMBuildAdd(b, v_first, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"), "first");
    lf_loop_blocks rows;
    p.v_row = lf_for_begin(k, &rows, v_first, lf_gpu_total_rows(k), v_step, "row");
    begin_row(k, p.v_row, NULL);
    if (k->cls.chunks)
        combine_few_chunks(&p, lf_gpu_chunks_of(k, p.g.v_columns), result);
    else
        lf_stream_chunks(k, ids, p.g.n, p.g.v_columns, combine_parts, &p, result);
    for (unsigned i = 0; i < p.g.n; i++) lf_set_reduced(k, ids[i], 0, result[i]);
    lf_emit_rows_of_level(k, 1, NULL);
    lf_for_end(k, &rows, LF_HINT_NONE);
    return NULL;
}

lf_status lf_gpu_emit_combine(lf_kernel *k, lf_object *out) {
    return k->cls.spans ? combine_rows(k, out) : combine_chunks(k, out);
}
