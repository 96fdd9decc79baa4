// Reductions over an axis that is not the innermost one: rows that are neighbours in memory are taken a lane each, in the canonical order.
#include "codegen/kernel/gpu.h"

static const lf_stmt *reduction(const gpu *g, unsigned i) { return &g->k->loop->stmts[g->ids[i]]; }

// ---- rows that are neighbours ----------------------------------------------------------------------------------------------------------

// A warp takes 32 * lanes rows, the block's warps share the columns: the highest of the bits 0 … 9 of the column tell the warp. A thread
// walks the lower ones, two at a time, and bits 12, 11, 10 side by side: sixteen loads are under way.
enum { OUTER_WARPS = 16, OUTER_WIDE = 8, OUTER_PAIR = 2, OUTER_LEVELS = 9, OUTER_SHARED = 48 * 1024 };

typedef struct outer {
    gpu g;
    unsigned parts;                // of a chunk, a block each; 1: a block takes all chunks
    unsigned warps, steps, levels; // steps = 1024 / warps / parts = 2 * 2^levels
    LLVMValueRef v_part;
    unsigned slot; // bytes of a partial result in shared memory
    LLVMValueRef v_warp, v_lane;
    lf_partials level[OUTER_LEVELS + 1][LF_GPU_REDUCTIONS], x[LF_GPU_REDUCTIONS]; // an element a lane
} outer;

typedef void (*for_lane)(outer *o, const lf_stmt *s, lf_partials a, lf_partials b, LLVMValueRef v_lane);

static void each_lane(outer *o, lf_partials *a, lf_partials *b, for_lane emit) {
    for (unsigned i = 0; i < o->g.n; i++)
        for (unsigned lane = 0; lane < o->g.k->lanes; lane++)
            emit(o, reduction(&o->g, i), a[i], b[i], lf_i64_const(o->g.k, lane));
}

static void move(outer *o, const lf_stmt *s, lf_partials to, lf_partials from, LLVMValueRef v_lane) {
    lf_partials_store(o->g.k, s, to, v_lane, lf_partials_load(o->g.k, s, from, v_lane, false), false);
}

// x = level + x
static void merge(outer *o, const lf_stmt *s, lf_partials level, lf_partials x, LLVMValueRef v_lane) {
    lf_partial low = lf_partials_load(o->g.k, s, level, v_lane, false), high = lf_partials_load(o->g.k, s, x, v_lane, false);
    lf_partials_store(o->g.k, s, x, v_lane, lf_combine(o->g.k, s, low, high), false);
}

static void clear(outer *o, const lf_stmt *s, lf_partials x, lf_partials unused, LLVMValueRef v_lane) {
    (void)unused;
    lf_partials_store(o->g.k, s, x, v_lane, lf_neutral(o->g.k, s), false);
}

// Of the columns of a step, how far copy c's lies behind the first: i + 1024 j. In fast mode they are neighbours.
static int64_t step_offset(const outer *o, unsigned c) {
    return o->g.k->e->fast ? c : (int64_t)(c % LF_SPANS) * LF_SPAN + c / LF_SPANS;
}

// The columns of a step. Of a part of a chunk, those past the end read the last column and count as neutral, so that no
// branch stands between the loads.
static void outer_place(outer *o, LLVMValueRef v_column, bool whole) {
    lf_kernel *k = o->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_last = LLVMBuildSub(b, o->g.v_columns, lf_i64_const(k, 1), "");
    for (unsigned c = 0; c < OUTER_PAIR * LF_SPANS; c++) {
        lf_kernel_use_copy(k, c);
        lf_kernel_forget_columns(k);
        int64_t beside = step_offset(o, c);
        LLVMValueRef v = LLVMBuildAdd(b, v_column, lf_i64_const(k, beside), "");
        k->at->beside = whole && k->cols == 1 ? beside : 0;
        o->g.v_position[c] = v;
        o->g.v_inside[c] = whole ? NULL : LLVMBuildICmp(b, LLVMIntSLT, v, o->g.v_columns, "inside");
        lf_split_index(k, whole ? v : LLVMBuildSelect(b, o->g.v_inside[c], v, v_last, ""), k->cols, lf_column_extent,
                       k->at->v_column);
    }
    lf_emit_loads(k, NULL, OUTER_PAIR * LF_SPANS, 0);
}

static lf_partial outer_sum(outer *o, unsigned i, unsigned lane) {
    lf_kernel *k = o->g.k;
    const lf_stmt *s = reduction(&o->g, i);
    lf_partial x[OUTER_PAIR * LF_SPANS];
    for (unsigned c = 0; c < OUTER_PAIR * LF_SPANS; c++) {
        lf_kernel_use_copy(k, c);
        lf_emit_statement(k, s->args[0]);
        x[c] = lf_contribution(k, s, lane, o->g.v_position[c]);
        if (o->g.v_inside[c]) x[c] = lf_partial_select(k, s, o->g.v_inside[c], x[c], lf_neutral(k, s));
    }
    for (unsigned half = LF_SPANS / 2; half; half /= 2)
        for (unsigned c = 0; c < OUTER_PAIR * LF_SPANS; c++)
            if (c % LF_SPANS < half) x[c] = lf_combine(k, s, x[c], x[c + half]);
    return lf_combine(k, s, x[0], x[LF_SPANS]);
}

// A step: two of the thread's columns and their spans, into x.
static void outer_step(outer *o, LLVMValueRef v_column, bool whole) {
    lf_kernel *k = o->g.k;
    outer_place(o, v_column, whole);
    for (unsigned i = 0; i < o->g.n; i++)
        for (unsigned lane = 0; lane < k->lanes; lane++)
            lf_partials_store(k, reduction(&o->g, i), o->x[i], lf_i64_const(k, lane), outer_sum(o, i, lane), false);
    lf_kernel_use_copy(k, 0);
}

static void outer_merge(void *context, lf_level level) {
    outer *o = context;
    each_lane(o, o->level[level.number], o->x, merge);
}

static void outer_keep(void *context, lf_level level) {
    outer *o = context;
    each_lane(o, o->level[level.number], o->x, move);
}

// Steps are pushed into a binary counter. In fast mode all have one level.
static void outer_push(outer *o, LLVMValueRef v_step) {
    lf_counter counter = {o, outer_merge, outer_keep};
    if (!o->g.k->e->fast) {
        lf_counter_push(o->g.k, &counter, v_step, o->levels);
        return;
    }
    outer_merge(o, (lf_level){.number = 0});
    outer_keep(o, (lf_level){.number = 0});
}

// What the thread's steps come to, into x.
static void outer_flush(outer *o, LLVMValueRef v_count) {
    if (o->g.k->e->fast) {
        each_lane(o, o->x, o->level[0], move);
        return;
    }
    each_lane(o, o->x, o->x, clear);
    lf_counter_rest(o->g.k, &(lf_counter){o, outer_merge, outer_keep}, v_count, o->levels);
}

// A thread's cell of shared memory: all of a warp's for one lane lie side by side.
static LLVMValueRef outer_cell(outer *o, LLVMValueRef v_warp, unsigned i, unsigned lane, unsigned offset) {
    lf_kernel *k = o->g.k;
    LLVMBuilderRef b = k->e->builder;
    int64_t first = (int64_t)(i * k->lanes + lane) * o->warps * LF_GPU_WARP * o->slot;
    LLVMValueRef v_cell = LLVMBuildAdd(b, LLVMBuildMul(b, v_warp, lf_i64_const(k, LF_GPU_WARP), ""), o->v_lane, "");
    LLVMValueRef v_at =
        LLVMBuildAdd(b, LLVMBuildMul(b, v_cell, lf_i64_const(k, o->slot), ""), lf_i64_const(k, first + offset), "");
    return LLVMBuildGEP2(b, LLVMInt8TypeInContext(k->e->context), o->g.v_shared, &v_at, 1, "");
}

// The bits that tell the warp: every warp reads what all warps have for its lanes.
static void outer_exchange(outer *o, lf_partial *out) {
    lf_kernel *k = o->g.k;
    LLVMBuilderRef b = k->e->builder;
    unsigned behind = o->slot / 2; // where a position lies
    lf_gpu_barrier(k);
    for (unsigned i = 0; i < o->g.n; i++)
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            lf_partial mine = lf_partials_load(k, reduction(&o->g, i), o->x[i], lf_i64_const(k, lane), false);
            lf_emit_store(k->e, reduction(&o->g, i)->compute, mine.value, outer_cell(o, o->v_warp, i, lane, 0));
            if (mine.v_position) LLVMBuildStore(b, mine.v_position, outer_cell(o, o->v_warp, i, lane, behind));
        }
    lf_gpu_barrier(k);
    for (unsigned i = 0; i < o->g.n; i++)
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            const lf_stmt *s = reduction(&o->g, i);
            lf_partial all[OUTER_WARPS];
            for (unsigned w = 0; w < o->warps; w++) {
                LLVMValueRef v_w = lf_i64_const(k, w);
                all[w] = (lf_partial){lf_emit_load(k->e, s->compute, outer_cell(o, v_w, i, lane, 0)), NULL};
                if (lf_has_position(s))
                    all[w].v_position = LLVMBuildLoad2(b, k->l_i64, outer_cell(o, v_w, i, lane, behind), "");
            }
            out[i * k->lanes + lane] = lf_gpu_fold_pairs(k, s, all, o->warps);
        }
}

static void outer_chunk(lf_kernel *k, void *context, LLVMValueRef v_chunk, lf_partial *out) {
    outer *o = context;
    LLVMBuilderRef b = k->e->builder;
    // A warp's columns, of the first span; in fast mode side by side.
    unsigned beside = k->e->fast ? LF_SPANS : 1, shift = k->e->fast ? 4 : 1;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_one = lf_i64_const(k, 1), v_own = lf_i64_const(k, o->steps * beside),
                 v_shift = lf_i64_const(k, shift), v_round = lf_i64_const(k, OUTER_PAIR * beside - 1);
    LLVMValueRef v_first = LLVMBuildAdd(b, LLVMBuildMul(b, v_chunk, lf_i64_const(k, LF_CHUNK), ""),
                                        LLVMBuildMul(b, o->v_warp, v_own, ""), "first");
    if (o->v_part) {
        LLVMValueRef v_a_part = lf_i64_const(k, LF_SPAN / o->parts * beside);
        v_first = LLVMBuildAdd(b, v_first, LLVMBuildMul(b, o->v_part, v_a_part, ""), "");
    }
    LLVMValueRef v_left = LLVMBuildSub(b, o->g.v_columns, v_first, "");
    v_left = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, v_left, v_zero, ""), v_zero, v_left, "");
    LLVMValueRef v_count = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, v_left, v_own, ""), v_left, v_own, "");
    v_count = LLVMBuildLShr(b, LLVMBuildAdd(b, v_count, v_round, ""), v_shift, "steps");
    LLVMValueRef v_end = LLVMBuildMul(b, LLVMBuildAdd(b, v_chunk, v_one, ""), lf_i64_const(k, LF_CHUNK), "end");
    LLVMBasicBlockRef b_kinds[2] = {lf_block(k, "part"), lf_block(k, "whole")}, b_done = lf_block(k, "stepped");
    if (k->e->fast) each_lane(o, o->level[0], o->x, clear);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLE, v_end, o->g.v_columns, ""), b_kinds[1], b_kinds[0]);
    for (unsigned whole = 0; whole < 2; whole++) {
        LLVMPositionBuilderAtEnd(b, b_kinds[whole]);
        lf_loop_blocks loop;
        LLVMValueRef v_step = lf_for_begin(k, &loop, v_zero, v_count, v_one, "step");
        outer_step(o, LLVMBuildAdd(b, v_first, LLVMBuildShl(b, v_step, v_shift, ""), ""), whole);
        outer_push(o, v_step);
        lf_for_end(k, &loop, LF_HINT_ROLLED);
        LLVMBuildBr(b, b_done);
    }
    LLVMPositionBuilderAtEnd(b, b_done);
    outer_flush(o, v_count);
    outer_exchange(o, out);
}

// Bytes of a partial result: its value, and its position behind it.
static unsigned outer_slot(const outer *o) {
    unsigned value = 4;
    bool position = false;
    for (unsigned i = 0; i < o->g.n; i++) {
        unsigned bytes = lf_dtype_bytes(reduction(&o->g, i)->compute);
        if (bytes > value) value = bytes;
        position |= lf_has_position(reduction(&o->g, i));
    }
    return position ? value > 8 ? 2 * value : 16 : value;
}

// Of the widest load of a thread: wide ones keep memory busy with half the warps.
static unsigned loaded_bytes(const lf_kernel *k) {
    unsigned most = 0;
    for (uint32_t i = 0; i < k->loop->n_accesses; i++) {
        const lf_access *a = &k->loop->accesses[i];
        if (!a->store && !a->row && lf_dtype_bytes(a->dtype) * k->lanes > most) most = lf_dtype_bytes(a->dtype) * k->lanes;
    }
    return most;
}

// The result of each reduction and lane: streaming over chunks sees each lane as a reduction of its own.
static unsigned outer_results(outer *o, lf_stmt_id *out) {
    unsigned n = o->g.n * o->g.k->lanes;
    for (unsigned i = 0; i < n; i++) out[i] = o->g.ids[i / o->g.k->lanes];
    return n;
}

// Rows v_tile, …: all their chunks.
static void outer_rows(outer *o, LLVMValueRef v_leads) {
    lf_kernel *k = o->g.k;
    lf_partial result[LF_GPU_REDUCTIONS];
    lf_stmt_id streamed[LF_GPU_REDUCTIONS];
    unsigned n = outer_results(o, streamed);
    lf_emit_rows_of_level(k, 0, v_leads);
    lf_stream_chunks(k, streamed, n, o->g.v_columns, outer_chunk, o, result);
    for (unsigned i = 0; i < n; i++) lf_set_reduced(k, streamed[i], i % k->lanes, result[i]);
    lf_emit_rows_of_level(k, 1, v_leads);
}

// Part v_part of chunk v_chunk of rows v_row, …, into scratch memory. Effects are the second kernel's.
static void outer_part(outer *o, LLVMValueRef v_chunk, LLVMValueRef v_row, LLVMValueRef v_leads) {
    lf_kernel *k = o->g.k;
    lf_partial result[LF_GPU_REDUCTIONS];
    lf_emit_rows_of_level(k, 0, LLVMConstInt(LLVMInt1TypeInContext(k->e->context), 0, false));
    outer_chunk(k, o, v_chunk, result);
    lf_if_blocks leader;
    lf_if_begin(k, &leader, v_leads, "leave");
    for (unsigned i = 0; i < o->g.n; i++) {
        lf_partials to = lf_gpu_part_of(&o->g, i, v_chunk, o->v_part, o->parts, v_row);
        for (unsigned lane = 0; lane < k->lanes; lane++)
            lf_partials_store(k, reduction(&o->g, i), to, lf_i64_const(k, lane), result[i * k->lanes + lane], false);
    }
    lf_if_end(k, &leader);
}

lf_status lf_gpu_emit_outer(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    outer *o = lf_alloc_zero(k->l->allocator, sizeof *o);
    if (!o) return lf_out_of_memory();
    lf_stmt_id ids[LF_GPU_REDUCTIONS];
    o->g = (gpu){.k = k, .ids = ids, .v_columns = lf_columns(k)};
    o->g.n = lf_pass_reductions(k, 0, ids, LF_GPU_REDUCTIONS);
    o->slot = outer_slot(o);
    o->warps = loaded_bytes(k) >= OUTER_WIDE ? OUTER_WARPS / 2 : OUTER_WARPS;
    o->parts = k->cls.chunks > 1 ? k->cls.chunks : 1;
    unsigned a_warp = o->g.n * k->lanes * LF_GPU_WARP * o->slot;
    while (o->warps * a_warp > OUTER_SHARED) o->warps /= 2;
    o->steps = LF_SPAN / o->warps / o->parts;
    while ((unsigned)OUTER_PAIR << o->levels < o->steps) o->levels++;
    o->g.threads = o->warps * LF_GPU_WARP;
    out->block = o->g.threads;
    unsigned width = LF_GPU_WARP * k->lanes;
    out->rows_a_block = o->parts > 1 ? 1 : width;
    out->shared_bytes = o->warps * a_warp;
    o->g.v_shared = lf_gpu_shared_memory(k, out->shared_bytes);
    for (unsigned i = 0; i < o->g.n; i++) {
        o->x[i] = lf_partials_alloca(k, reduction(&o->g, i), k->lanes, "x");
        for (unsigned l = 0; l <= o->levels; l++)
            o->level[l][i] = lf_partials_alloca(k, reduction(&o->g, i), k->lanes, "level");
    }
    LLVMValueRef v_tid = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"), v_rows = lf_gpu_total_rows(k),
                 v_width = lf_i64_const(k, width), v_tiles = LLVMBuildAdd(b, v_rows, lf_i64_const(k, width - 1), "");
    o->v_lane = LLVMBuildAnd(b, v_tid, lf_i64_const(k, LF_GPU_WARP - 1), "lane");
    o->v_warp = LLVMBuildLShr(b, v_tid, lf_i64_const(k, 5), "warp");
    // A block's work: rows, or of these a part of a chunk.
    v_tiles = LLVMBuildUDiv(b, v_tiles, v_width, "tiles");
    LLVMValueRef v_parts = lf_i64_const(k, o->parts), v_chunk = NULL, v_items = v_tiles;
    if (o->parts > 1)
        v_items = LLVMBuildMul(b, LLVMBuildMul(b, v_tiles, lf_gpu_chunks_of(k, o->g.v_columns), ""), v_parts, "items");
    lf_loop_blocks items;
    LLVMValueRef v_tile = lf_for_begin(k, &items, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), v_items,
                                       lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), "item");
    if (o->parts > 1) { // tiles run fastest: blocks that run side by side read whole lines of memory together
        v_chunk = lf_gpu_divide(k, v_tile, v_tiles, &v_tile);
        o->v_part = LLVMBuildURem(b, v_chunk, v_parts, "part");
        v_chunk = LLVMBuildUDiv(b, v_chunk, v_parts, "chunk");
    }
    v_tile = LLVMBuildMul(b, v_tile, v_width, "tile");
    // Threads past the last row do the last rows' work, so that all meet at the barriers, and write nothing.
    LLVMValueRef v_lanes = lf_i64_const(k, k->lanes),
                 v_mine = LLVMBuildAdd(b, v_tile, LLVMBuildMul(b, o->v_lane, v_lanes, ""), ""),
                 v_there = LLVMBuildICmp(b, LLVMIntSLT, v_mine, v_rows, "there");
    LLVMValueRef v_row = LLVMBuildSelect(b, v_there, v_mine, LLVMBuildSub(b, v_rows, v_lanes, ""), "row");
    LLVMValueRef v_leads = LLVMBuildAnd(b, v_there, LLVMBuildICmp(b, LLVMIntEQ, o->v_warp, lf_i64_const(k, 0), ""), "leads");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    if (o->parts > 1)
        outer_part(o, v_chunk, v_row, v_leads);
    else
        outer_rows(o, v_leads);
    lf_for_end(k, &items, LF_HINT_NONE);
    lf_free(k->l->allocator, o);
    return NULL;
}
