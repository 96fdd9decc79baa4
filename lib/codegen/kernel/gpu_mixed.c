// Rows with reductions along them, and reductions across them, in one kernel (class MIXED): what a norm's backward needs. A block takes
// a set of rows (lfuser_abi_mixed_sets in launch_abi.h), a few at once: it reduces along them as any block does that holds its row, and
// in the last pass folds what is reduced across into partial results, which each thread keeps for its own columns.
//
// The sets are whole parts of the canonical order: leaf t of a set is the row whose position in that order is t (bits 12, 11, 10 of the
// row's number first, as far as the chunk has such rows, then the lowest ones), so partial results are combined pairwise over the bits of
// t, lowest first: a binary counter. A thread's accumulators take the leaves of two steps, then sums wait for their partners in memory that
// is a thread's own (gpu_folds.c). In fast mode the accumulators take all leaves.
//
// Rows are taken two at once (the next ones are on their way to the L2 cache meanwhile), or, where a block fills a multiprocessor, one at a
// time (`staged` in the class): the next one is copied to shared memory meanwhile, and what all rows share is loaded once. A thread keeps
// what it loaded from pass to pass, as words, and makes of it anew what each pass needs, unless registers suffice for more
// (lf_kernel_keep_loads).
#include "codegen/kernel/gpu.h"

enum { MOST_AT_ONCE = LF_MAX_COPIES / LF_SPANS, MOST_AHEAD = 2, LINE = 128 };

// Rows that are taken at once, and which of them there are: if not the first, none.
typedef struct leaves {
    LLVMValueRef v_row[MOST_AT_ONCE], v_there[MOST_AT_ONCE];
} leaves;

typedef struct mixed {
    gpu g;
    lf_folds folds;
    unsigned at_once;
    bool holds;                   // what all rows share, and what passes compute, in registers
    LLVMTypeRef l_row;            // of rows and leaves: i64 only in the wide class
    LLVMValueRef v_rows, v_share; // v_share: i64
    leaves
        waiting[MOST_AHEAD]; // allocas, at the end of a step: the rows of the next one, and those after them that are known
    LLVMValueRef v_base, v_leaf_bits; // of the set: first row, log2 of rows of a span's neighbours taken
} mixed;

static LLVMValueRef row_const(const mixed *m, int64_t v) { return LLVMConstInt(m->l_row, (unsigned long long)v, true); }

static LLVMValueRef to_row(const mixed *m, LLVMValueRef v) { return LLVMBuildTrunc(m->g.k->e->builder, v, m->l_row, ""); }

static LLVMValueRef from_row(const mixed *m, LLVMValueRef v) {
    return LLVMBuildZExt(m->g.k->e->builder, v, m->g.k->l_i64, "");
}

static LLVMValueRef smaller(lf_kernel *k, LLVMValueRef v_a, LLVMValueRef v_b) {
    return LLVMBuildSelect(k->e->builder, LLVMBuildICmp(k->e->builder, LLVMIntSLT, v_a, v_b, ""), v_a, v_b, "");
}

// ---- rows ------------------------------------------------------------------------------------------------------------------------------

// The row of a leaf: its lowest bits are bits 12, 11, 10 of the row's number, as many as the chunk has.
static LLVMValueRef row_of_leaf(mixed *m, LLVMValueRef v_leaf) {
    LLVMBuilderRef b = m->g.k->e->builder;
    LLVMValueRef v_low = LLVMBuildSub(b, LLVMBuildShl(b, row_const(m, 1), m->v_leaf_bits, ""), row_const(m, 1), "");
    LLVMValueRef v_bits = LLVMBuildAnd(b, v_leaf, v_low, ""), v_span = row_const(m, 0);
    for (unsigned bit = 0; bit < 3; bit++) {
        LLVMValueRef v_bit = LLVMBuildAnd(b, LLVMBuildLShr(b, v_bits, row_const(m, bit), ""), row_const(m, 1), "");
        v_span = LLVMBuildOr(b, v_span, LLVMBuildShl(b, v_bit, row_const(m, 2 - bit), ""), "");
    }
    v_span = LLVMBuildLShr(b, v_span, LLVMBuildSub(b, row_const(m, 3), m->v_leaf_bits, ""), "span");
    LLVMValueRef v_row = LLVMBuildAdd(b, m->v_base, LLVMBuildLShr(b, v_leaf, m->v_leaf_bits, ""), "");
    return LLVMBuildAdd(b, v_row, LLVMBuildMul(b, v_span, row_const(m, LF_SPAN), ""), "row");
}

// Loaded once, where the next row is staged.
static bool is_of_all_rows(const lf_kernel *k, const lf_stmt *s) {
    if (s->kind != LF_STMT_LOAD || !s->column || s->guard != LF_NO_STMT || s->level) return false;
    const lf_access *access = &k->loop->accesses[s->number];
    if (access->row || access->written || access->n_terms) return false;
    for (unsigned r = 0; r < k->loop->rows; r++)
        if (access->strides[r]) return false;
    return true;
}

static void place_row(mixed *m, unsigned at, LLVMValueRef v_row) {
    lf_kernel *k = m->g.k;
    lf_kernel_use_copy(k, at * LF_SPANS);
    lf_split_index(k, from_row(m, v_row), k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
}

// Before the first row: where the columns are, and what all rows share.
static void place_columns(mixed *m) {
    lf_kernel *k = m->g.k;
    place_row(m, 0, row_const(m, 0));
    lf_gpu_place_spans(&m->g, lf_i64_const(k, 0));
    for (unsigned span = 0; span < m->g.spans; span++) {
        lf_kernel_use_copy(k, span);
        for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
            if (is_of_all_rows(k, &k->loop->stmts[i])) lf_emit_statement(k, i);
    }
    lf_kernel_use_copy(k, 0);
}

// A row has that too, as words if it does not keep what it makes of it.
static void share_columns(mixed *m) {
    lf_kernel *k = m->g.k;
    for (unsigned span = 0; span < m->g.spans; span++) {
        lf_kernel_use_copy(k, span);
        for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
            if (is_of_all_rows(k, &k->loop->stmts[i])) k->at->ready[i] = true;
        if (!m->holds) lf_kernel_keep_loads(k);
    }
    lf_kernel_use_copy(k, 0);
}

// Asks for the lines of rows that come later, those that all columns of a row lie side by side in. Plain loads only.
static void prefetch(mixed *m, const leaves *rows) {
    lf_kernel *k = m->g.k;
    LLVMBuilderRef b = k->e->builder;
    for (unsigned at = 0; at < m->at_once; at++) {
        lf_if_blocks there;
        lf_if_begin(k, &there, rows->v_there[at], "ahead");
        place_row(m, at, rows->v_row[at]);
        for (uint32_t i = 0; i < k->loop->n_accesses; i++) {
            const lf_access *a = &k->loop->accesses[i];
            bool moves = false;
            for (unsigned r = 0; r < k->loop->rows; r++) moves |= a->strides[r] != NULL;
            if (a->store || a->row || a->n_terms || !moves || k->cols != 1) continue;
            unsigned bytes = lf_dtype_bytes(a->dtype), lines = m->g.spans * LF_SPAN * bytes / LINE;
            LLVMValueRef v_end = LLVMBuildMul(b, m->g.v_columns, lf_i64_const(k, bytes), "");
            for (unsigned line = 0; line < lines; line += m->g.threads) {
                LLVMValueRef v_at = LLVMBuildAdd(b, m->g.v_thread, lf_i64_const(k, line), "");
                v_at = LLVMBuildMul(b, v_at, lf_i64_const(k, LINE), "");
                lf_if_blocks inside;
                lf_if_begin(k, &inside, LLVMBuildICmp(b, LLVMIntSLT, v_at, v_end, ""), "line");
                LLVMValueRef v_address = LLVMBuildPtrToInt(b, k->at->v_row_base[i], k->l_i64, "");
                lf_gpu_prefetch(k, LLVMBuildAdd(b, v_address, v_at, ""));
                lf_if_end(k, &inside);
            }
        }
        lf_if_end(k, &there);
    }
}

// What is reduced across is folded in the pass that knows it: work for while warps meet.
static void fold_span(mixed *m, unsigned span, const LLVMValueRef *v_there) {
    lf_kernel *k = m->g.k;
    for (unsigned i = 0; i < m->folds.n; i++) {
        const lf_stmt *s = lf_fold(&m->folds, i);
        lf_partial sum[LF_MAX_LANES];
        if (s->level != m->g.pass) continue;
        for (unsigned at = 0; at < m->at_once; at++) {
            lf_kernel_use_copy(k, at * LF_SPANS + span);
            lf_emit_statement(k, s->args[0]);
            for (unsigned lane = 0; lane < k->lanes; lane++) {
                lf_partial p = lf_contribution(k, s, lane, NULL);
                sum[lane] = at ? lf_partial_select(k, s, v_there[at], lf_combine(k, s, sum[lane], p), sum[lane]) : p;
            }
        }
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            unsigned c = span * k->lanes + lane;
            lf_folds_set(&m->folds, i, c, lf_combine(k, s, lf_folds_get(&m->folds, i, c), sum[lane]));
        }
    }
}

// The last pass, span by span, of the rows at once, so that little waits.
static void last_effects(mixed *m, const LLVMValueRef *v_there) {
    lf_kernel *k = m->g.k;
    for (unsigned span = 0; span < m->g.spans; span++) {
        for (unsigned at = 0; at < m->at_once; at++) {
            unsigned copy = at * LF_SPANS + span;
            lf_kernel_use_copy(k, copy);
            lf_emit_effect_operands(k, m->g.pass);
            lf_if_blocks inside;
            if (m->g.v_inside[copy]) lf_if_begin(k, &inside, m->g.v_inside[copy], "inside");
            lf_emit_column_effects(k, m->g.pass);
            if (m->g.v_inside[copy]) lf_if_end(k, &inside);
            if (!m->g.n) lf_gpu_stage_next(&m->g, copy);
        }
        fold_span(m, span, v_there);
    }
}

// What the rows at once add up to in this pass: warps of the block meet once.
static void sums_of_pass(mixed *m, const lf_stmt_id *ids, unsigned n, const LLVMValueRef *v_there) {
    gpu *g = &m->g;
    lf_kernel *k = g->k;
    lf_partial all[LF_GPU_REDUCTIONS], out[LF_GPU_REDUCTIONS];
    lf_stmt_id every[LF_GPU_REDUCTIONS];
    for (unsigned at = 0; at < m->at_once; at++) {
        g->base = at * LF_SPANS;
        g->n = n, g->ids = ids;
        lf_gpu_sum_spans(g, out);
        for (unsigned i = 0; i < n; i++) {
            all[i * m->at_once + at] = out[i]; // what is combined alike lies side by side
            every[i * m->at_once + at] = ids[i];
        }
    }
    for (unsigned span = 0; g->pass + 1u < k->loop->passes && span < g->spans; span++) fold_span(m, span, v_there);
    g->n = m->at_once * n, g->ids = every;
    lf_gpu_fold_block(g, all);
    g->buffer++; // a buffer a pass: it is written again behind the barrier of another
    for (unsigned at = 0; at < m->at_once; at++) {
        lf_kernel_use_copy(k, at * LF_SPANS);
        for (unsigned i = 0; i < n; i++) lf_set_reduced(k, ids[i], 0, all[i * m->at_once + at]);
    }
    g->n = n, g->ids = ids;
}

static void passes(mixed *m, const LLVMValueRef *v_there) {
    gpu *g = &m->g;
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_leads = LLVMBuildICmp(b, LLVMIntEQ, g->v_thread, v_zero, "leads");
    unsigned copies[LF_MAX_COPIES], n_copies = 0;
    for (unsigned at = 0; at < m->at_once; at++)
        for (unsigned span = 0; span < g->spans; span++) copies[n_copies++] = at * LF_SPANS + span;
    g->buffer = 0;
    for (unsigned pass = 0; pass <= k->loop->passes; pass++) {
        for (unsigned at = 0; at < m->at_once; at++) {
            lf_kernel_use_copy(k, at * LF_SPANS);
            lf_emit_rows_of_level(k, pass, LLVMBuildAnd(b, v_leads, v_there[at], ""));
        }
        if (pass == k->loop->passes) break;
        lf_stmt_id ids[LF_GPU_REDUCTIONS];
        g->pass = pass;
        g->n = lf_pass_reductions(k, pass, ids, LF_GPU_REDUCTIONS);
        g->ids = ids;
        for (unsigned at = 0; at < m->at_once; at++) {
            g->base = at * LF_SPANS;
            g->v_there = LLVMIsConstant(v_there[at]) ? NULL : v_there[at];
            if (pass == 0 && !g->staged) lf_gpu_place_spans(g, v_zero);
            bool forgets = pass && !m->holds;
            for (unsigned span = 0; forgets && span < g->spans; span++) {
                lf_kernel_use_copy(k, g->base + span);
                lf_kernel_keep_loads(k);
            }
        }
        g->v_there = NULL;
        if (pass == 0 && g->staged) lf_gpu_stage_take(g);
        if (pass == 0) lf_emit_loads(k, copies, n_copies, pass);
        bool last = pass + 1 == k->loop->passes;
        unsigned n = g->n;
        if (last) last_effects(m, v_there);
        for (unsigned at = 0; !last && at < m->at_once; at++) {
            g->base = at * LF_SPANS;
            lf_gpu_store_spans(g);
        }
        if (n) sums_of_pass(m, ids, n, v_there);
    }
    lf_kernel_use_copy(k, 0);
}

static unsigned reducing_passes(const lf_kernel *k) {
    unsigned n = 0;
    lf_stmt_id ids[LF_GPU_REDUCTIONS];
    for (unsigned pass = 0; pass < k->loop->passes; pass++) n += lf_pass_reductions(k, pass, ids, LF_GPU_REDUCTIONS) > 0;
    return n;
}

static void begin_set(mixed *m) {
    lf_kernel *k = m->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_a_chunk = LLVMBuildUDiv(b, lf_i64_const(k, LF_SPAN), m->v_share, "a_chunk");
    LLVMValueRef v_chunk = LLVMBuildUDiv(b, m->folds.v_set, v_a_chunk, "chunk");
    LLVMValueRef v_within = LLVMBuildSub(b, m->folds.v_set, LLVMBuildMul(b, v_chunk, v_a_chunk, ""), "");
    LLVMValueRef v_first = LLVMBuildMul(b, v_chunk, lf_i64_const(k, LF_CHUNK), "first");
    m->v_base = to_row(m, LLVMBuildAdd(b, v_first, LLVMBuildMul(b, v_within, m->v_share, ""), "base"));
    // Of eight, four, two or one spans of 1024 rows.
    LLVMValueRef v_left = LLVMBuildSub(b, from_row(m, m->v_rows), v_first, "left"), v_bits = row_const(m, 0);
    for (unsigned bits = 0; bits < 3; bits++) {
        LLVMValueRef v_more = LLVMBuildICmp(b, LLVMIntSGT, v_left, lf_i64_const(k, (int64_t)LF_SPAN << bits), "");
        v_bits = LLVMBuildAdd(b, v_bits, LLVMBuildZExt(b, v_more, m->l_row, ""), "");
    }
    m->v_leaf_bits = v_bits;
}

static LLVMValueRef truth(const mixed *m) { return LLVMConstInt(LLVMInt1TypeInContext(m->g.k->e->context), 1, false); }

// Of these leaves; where a row is missing, the set's first one stands in.
static void find_rows(mixed *m, LLVMValueRef v_leaf, LLVMValueRef v_leaves, leaves *out) {
    LLVMBuilderRef b = m->g.k->e->builder;
    for (unsigned at = 0; at < m->at_once; at++) {
        LLVMValueRef v_mine = at ? LLVMBuildAdd(b, v_leaf, row_const(m, at), "") : v_leaf, v_row = row_of_leaf(m, v_mine);
        LLVMValueRef v_in_set = LLVMBuildICmp(b, LLVMIntSLT, v_mine, v_leaves, "");
        if (!(m->g.k->cls.chunks & LFUSER_ABI_MIXED_ALL_ROWS))
            v_in_set = LLVMBuildAnd(b, v_in_set, LLVMBuildICmp(b, LLVMIntSLT, v_row, m->v_rows, ""), "there");
        out->v_there[at] = v_in_set;
        out->v_row[at] = LLVMBuildSelect(b, v_in_set, v_row, m->v_base, "row");
    }
}

static void copy_rows(mixed *m, leaves *to, const leaves *from, bool load) {
    LLVMBuilderRef b = m->g.k->e->builder;
    for (unsigned at = 0; at < m->at_once && load; at++) {
        to->v_row[at] = LLVMBuildLoad2(b, m->l_row, from->v_row[at], "row");
        to->v_there[at] = LLVMBuildLoad2(b, LLVMTypeOf(truth(m)), from->v_there[at], "there");
    }
    for (unsigned at = 0; at < m->at_once && !load; at++) {
        LLVMBuildStore(b, from->v_row[at], to->v_row[at]);
        LLVMBuildStore(b, from->v_there[at], to->v_there[at]);
    }
}

// Lots of rows that are known ahead: the next ones are on their way to the L2 cache; staged rows are past that, and the ones after them are.
static unsigned lots_ahead(const mixed *m) { return m->g.staged ? 2 : 1; }

// The next leaves, of which v_leaf is the first. Of staged rows the next one takes the place of the one at hand.
static void rows_at_once(mixed *m, LLVMValueRef v_leaf, LLVMValueRef v_leaves) {
    lf_kernel *k = m->g.k;
    LLVMBuilderRef b = k->e->builder;
    unsigned lots = lots_ahead(m);
    leaves lot[MOST_AHEAD + 1];
    for (unsigned i = 0; i < lots; i++) copy_rows(m, &lot[i], &m->waiting[i], true);
    find_rows(m, LLVMBuildAdd(b, v_leaf, row_const(m, lots * m->at_once), ""), v_leaves, &lot[lots]);
    for (unsigned i = 0; i < lots; i++) copy_rows(m, &m->waiting[i], &lot[i + 1], false);
    leaves *now = &lot[0], *next = &lot[1];
    // A set has a power of two of leaves: where all rows exist, so do these.
    for (unsigned at = 0; at < m->at_once && k->cls.chunks & LFUSER_ABI_MIXED_ALL_ROWS; at++) now->v_there[at] = truth(m);
    lf_if_blocks none, any;
    if (m->g.staged && !LLVMIsConstant(now->v_there[0])) {
        lf_if_begin(k, &none, LLVMBuildAnd(b, LLVMBuildNot(b, now->v_there[0], ""), next->v_there[0], ""), "none");
        lf_gpu_stage_wait(&m->g);
        lf_gpu_stage_row(&m->g, from_row(m, next->v_row[0]));
        lf_if_end(k, &none);
    }
    lf_if_begin(k, &any, now->v_there[0], "any");
    now->v_there[0] = truth(m);
    lf_gpu_stage_wait(&m->g);
    prefetch(m, &lot[lots]);
    for (unsigned at = 0; at < m->at_once; at++) place_row(m, at, now->v_row[at]);
    if (m->g.staged) {
        // Where no row comes the one at hand comes again, from a near cache, and is not looked at.
        LLVMValueRef v_next = LLVMBuildSelect(b, next->v_there[0], next->v_row[0], now->v_row[0], "next");
        lf_split_index(k, from_row(m, v_next), k->rows, lf_row_extent, m->g.v_next);
        share_columns(m);
    }
    passes(m, now->v_there);
    lf_if_end(k, &any);
    lf_gpu_stage_commit(&m->g);
    if (reducing_passes(k) == 1) lf_gpu_barrier(k); // slots have been read before the next rows' are written
}

static void begin_rows(mixed *m, LLVMValueRef v_leaves) {
    for (unsigned i = 0; i < lots_ahead(m); i++) {
        leaves first;
        find_rows(m, row_const(m, i * m->at_once), v_leaves, &first);
        copy_rows(m, &m->waiting[i], &first, false);
        if (!i) lf_gpu_stage_row(&m->g, from_row(m, first.v_row[0]));
    }
}

static void walk_set(mixed *m) {
    lf_kernel *k = m->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = row_const(m, 0), v_one = row_const(m, 1), v_at_once = row_const(m, m->at_once);
    begin_set(m);
    LLVMValueRef v_leaves = LLVMBuildShl(b, to_row(m, m->v_share), m->v_leaf_bits, "leaves");
    begin_rows(m, v_leaves);
    lf_folds_clear(&m->folds);
    LLVMValueRef v_steps = LLVMBuildUDiv(b, LLVMBuildAdd(b, v_leaves, row_const(m, m->at_once - 1), ""), v_at_once, "steps");
    lf_loop_blocks loop;
    LLVMValueRef v_step = lf_for_begin(k, &loop, v_zero, v_steps, v_one, "step");
    LLVMValueRef v_is_last = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAdd(b, v_step, v_one, ""), v_steps, "is_last");
    rows_at_once(m, LLVMBuildMul(b, v_step, v_at_once, "leaf"), v_leaves);
    if (!k->e->fast) { // the accumulators are full after every second step
        lf_if_blocks full;
        lf_if_begin(k, &full, lf_gpu_bit(k, v_step, 0), "full");
        lf_folds_push(&m->folds, from_row(m, LLVMBuildLShr(b, v_step, v_one, "")), v_is_last);
        lf_if_end(k, &full);
    }
    lf_if_blocks last;
    lf_if_begin(k, &last, v_is_last, "last");
    lf_folds_leave(&m->folds);
    lf_if_end(k, &last);
    lf_for_end(k, &loop, LF_HINT_ROLLED);
    lf_gpu_stage_wait(&m->g); // before the next set's first row comes, or the block is gone
}

lf_status lf_gpu_emit_mixed(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    mixed *m = lf_alloc_zero(k->l->allocator, sizeof *m);
    if (!m) return lf_out_of_memory();
    m->at_once = k->cls.chunks & LFUSER_ABI_MIXED_AT_ONCE;
    m->g = (gpu){.k = k,
                 .threads = LF_SPAN / k->lanes,
                 .chunks = 1,
                 .rounds = 1,
                 .spans = k->cls.spans,
                 .at_once = m->at_once,
                 .v_columns = lf_columns(k)};
    k->row_copies = LF_SPANS;
    unsigned passes = reducing_passes(k);
    lf_status s = lf_gpu_share(&m->g, m->g.threads / LF_GPU_WARP, passes > 2 ? passes : 2, out);
    if (!s) s = lf_gpu_stage_plan(&m->g, out);
    m->holds = m->g.staged && k->cls.chunks & LFUSER_ABI_MIXED_KEEPS;
    m->g.v_thread = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x");
    lf_folds_plan(&m->folds, &m->g, out);
    m->g.last_read = 0; // rows are taken before the first pass, which asks for the next one
    LLVMValueRef v_rows = lf_gpu_total_rows(k);
    m->l_row = k->cls.wide ? k->l_i64 : k->l_i32;
    m->v_rows = to_row(m, v_rows);
    m->v_share = lf_word(k, k->loop->share_word);
    out->block = m->g.threads;
    out->rows_a_block = 1;
    // As lfuser_abi_mixed_sets counts them.
    LLVMValueRef v_a_chunk = LLVMBuildUDiv(b, lf_i64_const(k, LF_SPAN), m->v_share, "");
    LLVMValueRef v_whole = LLVMBuildLShr(b, v_rows, lf_i64_const(k, 13), "");
    LLVMValueRef v_rest = smaller(k, LLVMBuildAnd(b, v_rows, lf_i64_const(k, LF_CHUNK - 1), ""), lf_i64_const(k, LF_SPAN));
    v_rest =
        LLVMBuildUDiv(b, LLVMBuildAdd(b, v_rest, LLVMBuildSub(b, m->v_share, lf_i64_const(k, 1), ""), ""), m->v_share, "");
    m->folds.v_sets = LLVMBuildAdd(b, LLVMBuildMul(b, v_whole, v_a_chunk, ""), v_rest, "sets");
    for (unsigned i = 0; i < lots_ahead(m) * m->at_once; i++) {
        m->waiting[i / m->at_once].v_row[i % m->at_once] = lf_alloca(k, m->l_row, "row");
        m->waiting[i / m->at_once].v_there[i % m->at_once] = lf_alloca(k, LLVMTypeOf(truth(m)), "there");
    }
    if (m->g.staged) place_columns(m);
    lf_loop_blocks sets;
    m->folds.v_set = lf_for_begin(k, &sets, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), m->folds.v_sets,
                                  lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), "set");
    walk_set(m);
    lf_for_end(k, &sets, LF_HINT_ROLLED);
    lf_free(k->l->allocator, m);
    return s;
}
