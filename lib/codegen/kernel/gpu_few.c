// At most a thousand columns of rows that are neighbours in memory: the partial results that gpu_mixed.c leaves (class OUTER with one
// span). A warp takes 32 * lanes rows, the block's warps share the columns, eight of which are loaded at once. Of so few columns the
// canonical order is pairwise over the bits of the column, lowest first: within the eight, then a binary counter of eights, then warps.
#include "codegen/kernel/gpu.h"

enum { WARPS = 8, NEAR = 8, LEVELS = 4, MOST = NEAR << LEVELS };

typedef struct combining {
    gpu g;
    unsigned cell; // bytes of a partial result in shared memory
    LLVMValueRef v_warp, v_lane;
    lf_partials x[LF_GPU_REDUCTIONS], level[LEVELS + 1][LF_GPU_REDUCTIONS]; // an element a lane
} combining;

static const lf_stmt *reduction(const combining *c, unsigned i) { return &c->g.k->loop->stmts[c->g.ids[i]]; }

static lf_partial get(combining *c, lf_partials *from, unsigned i, unsigned lane) {
    return lf_partials_load(c->g.k, reduction(c, i), from[i], lf_i64_const(c->g.k, lane), false);
}

static void set(combining *c, lf_partials *to, unsigned i, unsigned lane, lf_partial p) {
    lf_partials_store(c->g.k, reduction(c, i), to[i], lf_i64_const(c->g.k, lane), p, false);
}

// Of each reduction and lane: x = low + x (NULL: x is cleared), or, keep: level = x.
static void each(combining *c, lf_partials *low, lf_partials *keep) {
    for (unsigned i = 0; i < c->g.n; i++)
        for (unsigned lane = 0; lane < c->g.k->lanes; lane++) {
            if (keep)
                set(c, keep, i, lane, get(c, c->x, i, lane));
            else if (low)
                set(c, c->x, i, lane, lf_combine(c->g.k, reduction(c, i), get(c, low, i, lane), get(c, c->x, i, lane)));
            else
                set(c, c->x, i, lane, lf_neutral(c->g.k, reduction(c, i)));
        }
}

// Columns v_column … + 7 into x; those past the end count for nothing, and stand in for by the last one, so that no branch is needed.
static void eight(combining *c, LLVMValueRef v_column) {
    lf_kernel *k = c->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_inside[NEAR], v_last = LLVMBuildSub(b, c->g.v_columns, lf_i64_const(k, 1), "");
    for (unsigned n = 0; n < NEAR; n++) {
        lf_kernel_use_copy(k, n);
        lf_kernel_forget_columns(k);
        LLVMValueRef v = LLVMBuildAdd(b, v_column, lf_i64_const(k, n), "");
        v_inside[n] = LLVMBuildICmp(b, LLVMIntSLT, v, c->g.v_columns, "inside");
        lf_split_index(k, LLVMBuildSelect(b, v_inside[n], v, v_last, ""), k->cols, lf_column_extent, k->at->v_column);
    }
    lf_emit_loads(k, NULL, NEAR, 0);
    for (unsigned i = 0; i < c->g.n; i++)
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            const lf_stmt *s = reduction(c, i);
            lf_partial x[NEAR];
            for (unsigned n = 0; n < NEAR; n++) {
                lf_kernel_use_copy(k, n);
                lf_emit_statement(k, s->args[0]);
                x[n] = lf_partial_select(k, s, v_inside[n], lf_contribution(k, s, lane, NULL), lf_neutral(k, s));
            }
            set(c, c->x, i, lane, lf_gpu_fold_pairs(k, s, x, NEAR));
        }
    lf_kernel_use_copy(k, 0);
}

static void merge(void *context, lf_level level) {
    combining *c = context;
    each(c, c->level[level.number], NULL);
}

static void keep(void *context, lf_level level) {
    combining *c = context;
    each(c, NULL, c->level[level.number]);
}

static LLVMValueRef cell(combining *c, LLVMValueRef v_warp, unsigned i, unsigned lane) {
    lf_kernel *k = c->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_at = LLVMBuildAdd(b, LLVMBuildMul(b, v_warp, lf_i64_const(k, LF_GPU_WARP), ""), c->v_lane, "");
    v_at = LLVMBuildAdd(b, v_at, lf_i64_const(k, (int64_t)(i * k->lanes + lane) * WARPS * LF_GPU_WARP), "");
    v_at = LLVMBuildMul(b, v_at, lf_i64_const(k, c->cell), "");
    return LLVMBuildGEP2(b, LLVMInt8TypeInContext(k->e->context), c->g.v_shared, &v_at, 1, "");
}

static void exchange(combining *c) {
    lf_kernel *k = c->g.k;
    for (unsigned i = 0; i < c->g.n; i++)
        for (unsigned lane = 0; lane < k->lanes; lane++)
            lf_emit_store(k->e, reduction(c, i)->compute, get(c, c->x, i, lane).value, cell(c, c->v_warp, i, lane));
    lf_gpu_barrier(k);
    for (unsigned i = 0; i < c->g.n; i++)
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            lf_partial all[WARPS];
            for (unsigned w = 0; w < WARPS; w++)
                all[w] =
                    (lf_partial){lf_emit_load(k->e, reduction(c, i)->compute, cell(c, lf_i64_const(k, w), i, lane)), NULL};
            lf_set_reduced(k, c->g.ids[i], lane, lf_gpu_fold_pairs(k, reduction(c, i), all, WARPS));
        }
    lf_gpu_barrier(k); // cells have been read before the next rows' are written
}

// Of a power of two of columns, a warp's share: at least eight.
static void walk_columns(combining *c) {
    lf_kernel *k = c->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_one = lf_i64_const(k, 1), v_piece = lf_i64_const(k, NEAR);
    for (unsigned piece = NEAR; piece < MOST; piece *= 2) {
        LLVMValueRef v_more = LLVMBuildICmp(b, LLVMIntSGT, c->g.v_columns, lf_i64_const(k, piece * WARPS), "");
        v_piece = LLVMBuildSelect(b, v_more, lf_i64_const(k, 2 * piece), v_piece, "");
    }
    LLVMValueRef v_first = LLVMBuildMul(b, c->v_warp, v_piece, "first"),
                 v_left = LLVMBuildSub(b, c->g.v_columns, v_first, "");
    v_left = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, v_left, v_zero, ""), v_zero, v_left, "");
    v_left = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, v_left, v_piece, ""), v_left, v_piece, "");
    LLVMValueRef v_steps =
        LLVMBuildLShr(b, LLVMBuildAdd(b, v_left, lf_i64_const(k, NEAR - 1), ""), lf_i64_const(k, 3), "steps");
    lf_loop_blocks loop;
    LLVMValueRef v_step = lf_for_begin(k, &loop, v_zero, v_steps, v_one, "step");
    eight(c, LLVMBuildAdd(b, v_first, LLVMBuildShl(b, v_step, lf_i64_const(k, 3), ""), ""));
    lf_counter counter = {c, merge, keep};
    lf_counter_push(k, &counter, v_step, LEVELS);
    lf_for_end(k, &loop, LF_HINT_ROLLED);
    each(c, NULL, NULL);
    lf_counter_rest(k, &counter, v_steps, LEVELS);
}

lf_status lf_gpu_emit_few(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    combining *c = lf_alloc_zero(k->l->allocator, sizeof *c);
    if (!c) return lf_out_of_memory();
    lf_stmt_id ids[LF_GPU_REDUCTIONS];
    c->g = (gpu){.k = k, .ids = ids, .v_columns = lf_columns(k), .threads = WARPS * LF_GPU_WARP};
    c->g.n = lf_pass_reductions(k, 0, ids, LF_GPU_REDUCTIONS);
    c->cell = 4;
    for (unsigned i = 0; i < c->g.n; i++) {
        if (lf_dtype_bytes(reduction(c, i)->compute) > c->cell) c->cell = lf_dtype_bytes(reduction(c, i)->compute);
        c->x[i] = lf_partials_alloca(k, reduction(c, i), k->lanes, "x");
        for (unsigned l = 0; l <= LEVELS; l++) c->level[l][i] = lf_partials_alloca(k, reduction(c, i), k->lanes, "level");
    }
    out->block = c->g.threads;
    out->rows_a_block = LF_GPU_WARP * k->lanes;
    out->shared_bytes = c->g.n * k->lanes * c->g.threads * c->cell;
    c->g.v_shared = lf_gpu_shared_memory(k, out->shared_bytes);
    LLVMValueRef v_tid = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"), v_rows = lf_gpu_total_rows(k),
                 v_width = lf_i64_const(k, out->rows_a_block), v_lanes = lf_i64_const(k, k->lanes);
    c->v_lane = LLVMBuildAnd(b, v_tid, lf_i64_const(k, LF_GPU_WARP - 1), "lane");
    c->v_warp = LLVMBuildLShr(b, v_tid, lf_i64_const(k, 5), "warp");
    LLVMValueRef v_block = LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), v_width, "");
    LLVMValueRef v_step = LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), v_width, "");
    lf_loop_blocks tiles;
    LLVMValueRef v_tile = lf_for_begin(k, &tiles, v_block, v_rows, v_step, "tile");
    // Threads past the last row do the last rows' work, so that all meet at the barriers, and write nothing.
    LLVMValueRef v_mine = LLVMBuildAdd(b, v_tile, LLVMBuildMul(b, c->v_lane, v_lanes, ""), ""),
                 v_there = LLVMBuildICmp(b, LLVMIntSLT, v_mine, v_rows, "there");
    LLVMValueRef v_row = LLVMBuildSelect(b, v_there, v_mine, LLVMBuildSub(b, v_rows, v_lanes, ""), "row");
    LLVMValueRef v_leads = LLVMBuildAnd(b, v_there, LLVMBuildICmp(b, LLVMIntEQ, c->v_warp, lf_i64_const(k, 0), ""), "leads");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    lf_emit_rows_of_level(k, 0, v_leads);
    walk_columns(c);
    exchange(c);
    lf_emit_rows_of_level(k, 1, v_leads);
    lf_for_end(k, &tiles, LF_HINT_NONE);
    lf_free(k->l->allocator, c);
    return NULL;
}
