// Rows with passes on a GPU. A block (or, for short rows, a warp) takes a row at a time; a thread owns `lanes` neighbouring columns of
// each span of 1024, so that the canonical order is: bits 12, 11, 10 of the column in the thread, the lowest bits within its lanes,
// the next five across a warp, the rest across the block's warps.
#include "codegen/kernel/gpu.h"

enum {
    SMALL_WARPS = 4,
    SHORT_REDUCTIONS = 2, SHORT_BODY = 64   // what a chunk is written out eight times for: reductions, statements times lanes
};

static bool is_warp(const lf_kernel *k) { return k->cls.shape == LFUSER_ABI_WARP; }

// ---- exchange between threads ----------------------------------------------------------------------------------------------------

static LLVMValueRef shuffle_word(lf_kernel *k, LLVMValueRef v_word, unsigned mask) {
    LLVMValueRef args[4] = {LLVMConstInt(k->l_i32, 0xffffffff, false), v_word, LLVMConstInt(k->l_i32, mask, false), LLVMConstInt(k->l_i32, 31, false)};
    return lf_gpu_intrinsic(k, "llvm.nvvm.shfl.sync.bfly.i32", args, 4);
}

// Any first-class value of up to 64 bits from the lane whose number differs in `mask`.
static LLVMValueRef shuffle(lf_kernel *k, LLVMValueRef v, unsigned mask) {
    LLVMBuilderRef b = k->e->builder;
    LLVMTypeRef l_type = LLVMTypeOf(v);
    LLVMTypeKind kind = LLVMGetTypeKind(l_type);
    unsigned bits = kind == LLVMFloatTypeKind ? 32 : kind == LLVMDoubleTypeKind ? 64 : LLVMGetIntTypeWidth(l_type);
    LLVMTypeRef l_bits = LLVMIntTypeInContext(k->e->context, bits);
    if (kind != LLVMIntegerTypeKind) v = LLVMBuildBitCast(b, v, l_bits, "");
    if (bits <= 32) {
        LLVMValueRef v_wide = bits < 32 ? LLVMBuildZExt(b, v, k->l_i32, "") : v;
        v = shuffle_word(k, v_wide, mask);
        if (bits < 32) v = LLVMBuildTrunc(b, v, l_bits, "");
    } else {
        LLVMValueRef v_low = shuffle_word(k, LLVMBuildTrunc(b, v, k->l_i32, ""), mask);
        LLVMValueRef v_high = shuffle_word(k, LLVMBuildTrunc(b, LLVMBuildLShr(b, v, lf_i64_const(k, 32), ""), k->l_i32, ""), mask);
        v = LLVMBuildOr(b, LLVMBuildShl(b, LLVMBuildZExt(b, v_high, k->l_i64, ""), lf_i64_const(k, 32), ""), LLVMBuildZExt(b, v_low, k->l_i64, ""), "");
    }
    return kind != LLVMIntegerTypeKind ? LLVMBuildBitCast(b, v, l_type, "") : v;
}

static lf_partial shuffle_partial(lf_kernel *k, lf_partial p, unsigned mask) {
    return (lf_partial){{shuffle(k, p.value.re, mask), p.value.im ? shuffle(k, p.value.im, mask) : NULL},
                        p.v_position ? shuffle(k, p.v_position, mask) : NULL};
}

LLVMValueRef lf_gpu_shared_slot(gpu *g, LLVMValueRef v_warp, unsigned reduction, unsigned offset) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_at = LLVMBuildAdd(b, LLVMBuildMul(b, v_warp, lf_i64_const(k, LF_GPU_SLOT), ""),
                                     lf_i64_const(k, (int64_t)reduction * LF_GPU_SLOT * LF_GPU_WARP + offset), "");
    return LLVMBuildGEP2(b, LLVMInt8TypeInContext(k->e->context), g->v_shared, &v_at, 1, "");
}

// Over the warps of the block: each leaves its result, and every thread folds them all, so that all threads have the sum.
void lf_gpu_exchange_warps(gpu *g, lf_partial *p) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    unsigned warps = g->threads / LF_GPU_WARP;
    LLVMValueRef v_warp = LLVMBuildLShr(b, g->v_thread, lf_i64_const(k, 5), "warp");
    LLVMValueRef v_lane = LLVMBuildAnd(b, g->v_thread, lf_i64_const(k, 31), "lane");
    lf_gpu_barrier(k);  // the results of the last exchange have been read
    lf_if_blocks first;
    lf_if_begin(k, &first, LLVMBuildICmp(b, LLVMIntEQ, v_lane, lf_i64_const(k, 0), ""), "leader");
    for (unsigned i = 0; i < g->n; i++) {
        const lf_stmt *s = &k->loop->stmts[g->ids[i]];
        lf_emit_store(k->e, s->compute, p[i].value, lf_gpu_shared_slot(g, v_warp, i, 0));
        if (p[i].v_position) LLVMBuildStore(b, p[i].v_position, lf_gpu_shared_slot(g, v_warp, i, 16));
    }
    lf_if_end(k, &first);
    lf_gpu_barrier(k);
    for (unsigned i = 0; i < g->n; i++) {
        const lf_stmt *s = &k->loop->stmts[g->ids[i]];
        lf_partial all[LF_GPU_WARP];
        for (unsigned w = 0; w < warps; w++) {
            LLVMValueRef v_w = lf_i64_const(k, w);
            all[w] = (lf_partial){lf_emit_load(k->e, s->compute, lf_gpu_shared_slot(g, v_w, i, 0)), NULL};
            if (lf_has_position(s)) all[w].v_position = LLVMBuildLoad2(b, k->l_i64, lf_gpu_shared_slot(g, v_w, i, 16), "");
        }
        for (unsigned width = warps; width > 1; width /= 2)
            for (unsigned w = 0; w < width / 2; w++) all[w] = lf_combine(k, s, all[2 * w], all[2 * w + 1]);
        p[i] = all[0];
    }
}

// ---- rows ------------------------------------------------------------------------------------------------------------------------

static void at_column(lf_kernel *k, LLVMValueRef v_linear) {
    lf_kernel_forget_columns(k);
    lf_split_index(k, v_linear, k->cols, lf_column_extent, k->v_column);
}

// The same of results that chunks left in memory: g->v_columns of them.
static void emit_stored_span(gpu *g, LLVMValueRef v_column, lf_partials *lanes) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_last = LLVMBuildSub(b, g->v_columns, lf_i64_const(k, 1), "");
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        LLVMValueRef v = LLVMBuildAdd(b, v_column, lf_i64_const(k, lane), "");
        LLVMValueRef v_there = LLVMBuildICmp(b, LLVMIntSLT, v, g->v_columns, "");
        v = LLVMBuildSelect(b, v_there, v, v_last, "");
        for (unsigned i = 0; i < g->n; i++) {
            const lf_stmt *s = &k->loop->stmts[g->ids[i]];
            lf_partial p = lf_partial_select(k, s, v_there, lf_partials_load(k, s, g->from[i], v, false), lf_neutral(k, s));
            lf_partials_store(k, s, lanes[i], lf_i64_const(k, lane), p, false);
        }
    }
}

// One span of 1024 columns: the contributions of the thread's lanes, neutral past the end; the class says that all lanes of a thread
// are inside or none is. They go through memory (registers, once LLVM has promoted it) because of the condition.
static void emit_span(gpu *g, LLVMValueRef v_first, lf_partials *lanes) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_column = LLVMBuildAdd(b, v_first, LLVMBuildMul(b, g->v_thread, lf_i64_const(k, k->lanes), ""), "column");
    if (g->from) {
        emit_stored_span(g, v_column, lanes);
        return;
    }
    for (unsigned i = 0; i < g->n; i++)
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            const lf_stmt *s = &k->loop->stmts[g->ids[i]];
            lf_partials_store(k, s, lanes[i], lf_i64_const(k, lane), lf_neutral(k, s), false);
        }
    lf_if_blocks inside;
    lf_if_begin(k, &inside, LLVMBuildICmp(b, LLVMIntSLT, v_column, g->v_columns, ""), "inside");
    at_column(k, v_column);
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
        for (unsigned lane = 0; lane < g->k->lanes; lane++) each(g, &g->k->loop->stmts[g->ids[i]], to[i], from[i], lf_i64_const(g->k, lane));
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
    lf_for_end(k, &loop, LF_HINT_ROLLED);  // eight copies would cost the registers that keep enough threads resident
}

// A whole chunk without a condition: eight loads are under way before the first is needed. Only for short bodies, since it is eight
// copies of them.
static void emit_whole_chunk(gpu *g, LLVMValueRef v_first, lf_partials *sums) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_mine = LLVMBuildAdd(b, v_first, LLVMBuildMul(b, g->v_thread, lf_i64_const(k, k->lanes), ""), "column");
    lf_partial x[SHORT_REDUCTIONS][LF_SPANS][LF_MAX_LANES];
    for (unsigned j = 0; j < LF_SPANS; j++) {
        LLVMValueRef v_column = LLVMBuildAdd(b, v_mine, lf_i64_const(k, (int64_t)j * LF_SPAN), "");
        at_column(k, v_column);
        for (unsigned i = 0; i < g->n; i++) {
            const lf_stmt *s = &k->loop->stmts[g->ids[i]];
            lf_emit_statement(k, s->args[0]);
            for (unsigned lane = 0; lane < k->lanes; lane++)
                x[i][j][lane] = lf_contribution(k, s, lane, LLVMBuildAdd(b, v_column, lf_i64_const(k, lane), ""));
        }
    }
    lf_kernel_forget_columns(k);
    for (unsigned i = 0; i < g->n; i++) {
        const lf_stmt *s = &k->loop->stmts[g->ids[i]];
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            for (unsigned half = LF_SPANS / 2; half; half /= 2)  // bits 12, 11, 10
                for (unsigned j = 0; j < half; j++) x[i][j][lane] = lf_combine(k, s, x[i][j][lane], x[i][j + half][lane]);
            lf_partials_store(k, s, sums[i], lf_i64_const(k, lane), x[i][0][lane], false);
        }
    }
}

static bool is_short(const gpu *g) {
    const lf_loop *loop = g->k->loop;
    return loop->reduces && !g->from && !is_warp(g->k) && g->n <= SHORT_REDUCTIONS && loop->n_stmts * g->k->lanes <= SHORT_BODY;
}

void lf_gpu_emit_chunk(lf_kernel *k, void *context, LLVMValueRef v_chunk, lf_partial *out) {
    gpu *g = context;
    lf_partials x[LF_GPU_REDUCTIONS], level[SPAN_LEVELS + 1][LF_GPU_REDUCTIONS], *result = x;
    for (unsigned i = 0; i < g->n; i++) {
        x[i] = lf_partials_alloca(k, &k->loop->stmts[g->ids[i]], k->lanes, "x");
        for (unsigned l = 0; l <= SPAN_LEVELS && !is_warp(k); l++) level[l][i] = lf_partials_alloca(k, &k->loop->stmts[g->ids[i]], k->lanes, "level");
    }
    LLVMValueRef v_first = LLVMBuildMul(k->e->builder, v_chunk, lf_i64_const(k, LF_CHUNK), "first");
    if (is_warp(k)) {
        emit_span(g, v_first, x);
    } else if (is_short(g)) {
        LLVMBuilderRef b = k->e->builder;
        LLVMValueRef v_left = LLVMBuildSub(b, g->v_columns, v_first, ""), v_chunk_size = lf_i64_const(k, LF_CHUNK);
        LLVMBasicBlockRef b_whole = lf_block(k, "whole"), b_part = lf_block(k, "part"), b_done = lf_block(k, "summed");
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSGE, v_left, v_chunk_size, ""), b_whole, b_part);
        LLVMPositionBuilderAtEnd(b, b_whole);
        emit_whole_chunk(g, v_first, level[SPAN_LEVELS]);
        LLVMBuildBr(b, b_done);
        LLVMPositionBuilderAtEnd(b, b_part);
        emit_spans(g, v_first, x, level);
        LLVMBuildBr(b, b_done);
        LLVMPositionBuilderAtEnd(b, b_done);
        result = level[SPAN_LEVELS];
    } else {
        emit_spans(g, v_first, x, level);
        result = level[SPAN_LEVELS];
    }
    for (unsigned i = 0; i < g->n; i++) {
        const lf_stmt *s = &k->loop->stmts[g->ids[i]];
        lf_partial lane_sum[LF_MAX_LANES];
        for (unsigned lane = 0; lane < k->lanes; lane++) lane_sum[lane] = lf_partials_load(k, s, result[i], lf_i64_const(k, lane), false);
        for (unsigned width = k->lanes; width > 1; width /= 2)
            for (unsigned lane = 0; lane < width / 2; lane++) lane_sum[lane] = lf_combine(k, s, lane_sum[2 * lane], lane_sum[2 * lane + 1]);
        out[i] = lane_sum[0];
        for (unsigned mask = 1; mask < LF_GPU_WARP; mask *= 2) out[i] = lf_combine(k, s, out[i], shuffle_partial(k, out[i], mask));
    }
    if (!is_warp(k)) lf_gpu_exchange_warps(g, out);
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

static unsigned most_reductions(const lf_kernel *k) {
    unsigned most = 0;
    for (unsigned pass = 0; pass < k->loop->passes; pass++) {
        lf_stmt_id ids[LF_GPU_REDUCTIONS];
        unsigned n = lf_pass_reductions(k, pass, ids, LF_GPU_REDUCTIONS);
        if (n > most) most = n;
    }
    return most;
}

LLVMValueRef lf_gpu_shared_memory(lf_kernel *k, unsigned bytes) {
    LLVMTypeRef l_array = LLVMArrayType2(LLVMInt8TypeInContext(k->e->context), bytes);
    LLVMValueRef v = LLVMAddGlobalInAddressSpace(k->e->module, l_array, "shared", 3);
    LLVMSetInitializer(v, LLVMGetUndef(l_array));
    LLVMSetLinkage(v, LLVMInternalLinkage);
    LLVMSetAlignment(v, 16);
    return v;
}

lf_status lf_gpu_emit_rows(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    unsigned warps = is_warp(k) ? SMALL_WARPS : 1;
    gpu g = {.k = k, .threads = is_warp(k) ? LF_GPU_WARP : LF_SPAN / k->lanes, .v_columns = lf_columns(k)};
    if (k->cls.shape == LFUSER_ABI_OUTER) return lf_gpu_emit_outer(k, out);
    unsigned most = most_reductions(k);
    if (most && !is_warp(k)) {
        out->shared_bytes = most * LF_GPU_SLOT * LF_GPU_WARP;
        if (out->shared_bytes > 48 * 1024)
            return lf_error(k->l->allocator, LF_UNSUPPORTED, "kernel %s: %u reductions in one pass need %u bytes of shared memory, 49152 are possible",
                            k->loop->name, most, out->shared_bytes);
        g.v_shared = lf_gpu_shared_memory(k, out->shared_bytes);
    }
    if (k->cls.shape == LFUSER_ABI_SPLIT) return lf_gpu_emit_split(&g, out);
    LLVMValueRef v_tid = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"), v_block = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x");
    LLVMValueRef v_blocks = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), v_rows = lf_gpu_total_rows(k);
    LLVMValueRef v_first = v_block, v_step = v_blocks;
    g.v_thread = v_tid;
    if (is_warp(k)) {
        g.v_thread = LLVMBuildAnd(b, v_tid, lf_i64_const(k, LF_GPU_WARP - 1), "thread");
        v_first = LLVMBuildAdd(b, LLVMBuildMul(b, v_block, lf_i64_const(k, warps), ""), LLVMBuildLShr(b, v_tid, lf_i64_const(k, 5), ""), "");
        v_step = LLVMBuildMul(b, v_blocks, lf_i64_const(k, warps), "");
    }
    out->block = g.threads * warps;
    out->rows_a_block = warps;
    lf_loop_blocks rows;
    LLVMValueRef v_row = lf_for_begin(k, &rows, v_first, v_rows, v_step, "row");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->v_row);
    lf_kernel_begin_row(k);
    LLVMValueRef v_leads = LLVMBuildICmp(b, LLVMIntEQ, g.v_thread, lf_i64_const(k, 0), "leads");
    for (unsigned pass = 0; pass <= k->loop->passes; pass++) {
        lf_emit_rows_of_level(k, pass, v_leads);
        if (pass == k->loop->passes) break;
        lf_stmt_id ids[LF_GPU_REDUCTIONS];
        g.pass = pass;
        g.ids = ids;
        g.n = lf_pass_reductions(k, pass, ids, LF_GPU_REDUCTIONS);
        if (g.n) {
            lf_partial result[LF_GPU_REDUCTIONS];
            lf_stream_chunks(k, ids, g.n, g.v_columns, lf_gpu_emit_chunk, &g, result);
            for (unsigned i = 0; i < g.n; i++) lf_set_reduced(k, ids[i], result[i]);
        } else {
            emit_plain_pass(&g);
        }
        lf_kernel_forget_columns(k);
    }
    lf_for_end(k, &rows, LF_HINT_NONE);
    return NULL;
}

