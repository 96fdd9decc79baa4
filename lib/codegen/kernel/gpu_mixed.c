// Rows with reductions along them, and reductions across them, in one kernel (class MIXED): what a norm's backward needs. A block takes
// a set of rows (lfuser_abi_mixed_sets in launch_abi.h), a few at once: it reduces along them as any block does that holds its row, and
// in the last pass folds what is reduced across into partial results, which each thread keeps for its own columns.
//
// The sets are whole parts of the canonical order: leaf t of a set is the row whose position in that order is t (bits 12, 11, 10 of the
// row's number first, as far as the chunk has such rows, then the lowest ones), so partial results are combined pairwise over the bits of
// t, lowest first: a binary counter. Two leaves are taken at once, two levels of the counter lie in registers and the rest in memory
// that is a thread's own, read and written once in eight rows.
//
// A thread keeps what it loaded from pass to pass, as words, and makes of it anew what each pass needs, since partial results take most of
// the registers (lf_kernel_keep_loads). The next rows are on their way to the L2 cache meanwhile.
#include "codegen/kernel/gpu.h"

enum { MOST_FOLDS = 8, LEVELS = 2, FEW = 8, MOST_AT_ONCE = LF_MAX_COPIES / LF_SPANS, LINE = 128 };

typedef struct mixed {
    gpu g;
    unsigned at_once, n_folds, cell; // bytes of a partial result in memory
    lf_stmt_id folds[MOST_FOLDS];
    lf_partials x[MOST_FOLDS], level[LEVELS][MOST_FOLDS]; // an element a column of the thread
    unsigned shared[LEVELS][MOST_FOLDS];                  // 1 + where that lies in v_waiting, or 0: in registers
    LLVMValueRef v_waiting;
    LLVMTypeRef l_row;                       // of rows and leaves: i64 only in the wide class
    LLVMValueRef v_rows, v_share, v_sets;    // i64, but for v_rows
    LLVMValueRef v_position[LF_SPANS];       // by span: the thread's first column
    LLVMValueRef v_set, v_base, v_leaf_bits; // of the set: its number, first row, log2 of rows of a span's neighbours taken
} mixed;

static const lf_stmt *fold(const mixed *m, unsigned i) { return &m->g.k->loop->stmts[m->folds[i]]; }

static LLVMValueRef row_const(const mixed *m, int64_t v) { return LLVMConstInt(m->l_row, (unsigned long long)v, true); }

static LLVMValueRef to_row(const mixed *m, LLVMValueRef v) { return LLVMBuildTrunc(m->g.k->e->builder, v, m->l_row, ""); }

static LLVMValueRef from_row(const mixed *m, LLVMValueRef v) {
    return LLVMBuildZExt(m->g.k->e->builder, v, m->g.k->l_i64, "");
}

static unsigned columns_of(const mixed *m) { return m->g.spans * m->g.k->lanes; }

static LLVMValueRef smaller(lf_kernel *k, LLVMValueRef v_a, LLVMValueRef v_b) {
    return LLVMBuildSelect(k->e->builder, LLVMBuildICmp(k->e->builder, LLVMIntSLT, v_a, v_b, ""), v_a, v_b, "");
}

// ---- partial results -------------------------------------------------------------------------------------------------------------------

static lf_partial get(mixed *m, lf_partials *from, unsigned i, unsigned column) {
    return lf_partials_load(m->g.k, fold(m, i), from[i], lf_i64_const(m->g.k, column), false);
}

static void set(mixed *m, lf_partials *to, unsigned i, unsigned column, lf_partial p) {
    lf_partials_store(m->g.k, fold(m, i), to[i], lf_i64_const(m->g.k, column), p, false);
}

static void move(mixed *m, lf_partials *to, lf_partials *from, unsigned i) {
    for (unsigned c = 0; c < columns_of(m); c++) set(m, to, i, c, get(m, from, i, c));
}

// to = low + high; low came first.
static void combine(mixed *m, lf_partials *to, lf_partials *low, lf_partials *high, unsigned i) {
    for (unsigned c = 0; c < columns_of(m); c++)
        set(m, to, i, c, lf_combine(m->g.k, fold(m, i), get(m, low, i, c), get(m, high, i, c)));
}

static void clear_all(mixed *m, lf_partials *to) {
    for (unsigned i = 0; i < m->n_folds; i++)
        for (unsigned c = 0; c < columns_of(m); c++) set(m, to, i, c, lf_neutral(m->g.k, fold(m, i)));
}

static LLVMTypeRef vector_of(mixed *m, unsigned i) {
    lf_dtype d = fold(m, i)->compute;
    return m->g.k->lanes > 1 && (d == LF_F32 || d == LF_F64) ? LLVMVectorType(lf_memory_type(m->g.k->e, d), m->g.k->lanes)
                                                             : NULL;
}

static unsigned alignment_of(const mixed *m, unsigned i) {
    unsigned bytes = m->g.k->lanes * lf_dtype_bytes(fold(m, i)->compute);
    return bytes > 16 ? 16 : bytes;
}

// The thread's partial results of a span, neighbours at once: the class says that columns are a multiple of the lanes.
static void store_cells(mixed *m, LLVMValueRef v_address, unsigned i, unsigned span, lf_partials *from) {
    lf_kernel *k = m->g.k;
    LLVMTypeRef l_vector = vector_of(m, i);
    LLVMValueRef v = l_vector ? LLVMGetUndef(l_vector) : NULL;
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        lf_partial p = get(m, from, i, span * k->lanes + lane);
        if (l_vector)
            v = LLVMBuildInsertElement(k->e->builder, v, p.value.re, LLVMConstInt(k->l_i32, lane, false), "");
        else
            lf_partials_store(k, fold(m, i), (lf_partials){v_address, NULL}, lf_i64_const(k, lane), p, false);
    }
    if (l_vector) LLVMSetAlignment(LLVMBuildStore(k->e->builder, v, v_address), alignment_of(m, i));
}

// x = cells + x
static void combine_cells(mixed *m, LLVMValueRef v_address, unsigned i, unsigned span) {
    lf_kernel *k = m->g.k;
    LLVMTypeRef l_vector = vector_of(m, i);
    LLVMValueRef v = l_vector ? LLVMBuildLoad2(k->e->builder, l_vector, v_address, "waiting") : NULL;
    if (v) LLVMSetAlignment(v, alignment_of(m, i));
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        lf_partial low = {{NULL, NULL}, NULL};
        if (v)
            low.value.re = LLVMBuildExtractElement(k->e->builder, v, LLVMConstInt(k->l_i32, lane, false), "");
        else
            low = lf_partials_load(k, fold(m, i), (lf_partials){v_address, NULL}, lf_i64_const(k, lane), false);
        unsigned c = span * k->lanes + lane;
        set(m, m->x, i, c, lf_combine(k, fold(m, i), low, get(m, m->x, i, c)));
    }
}

static LLVMValueRef is_inside(mixed *m, unsigned span) {
    lf_kernel *k = m->g.k;
    if (k->cls.full) return LLVMConstInt(LLVMInt1TypeInContext(k->e->context), 1, false);
    return LLVMBuildICmp(k->e->builder, LLVMIntSLT, m->v_position[span], m->g.v_columns, "inside");
}

// Address of the thread's partial results of a span in a plane of memory: plane 0 is what the set leaves, the others are levels.
static LLVMValueRef cell_address(mixed *m, LLVMValueRef v_plane, unsigned i, unsigned span) {
    lf_kernel *k = m->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_memory = LLVMBuildIntToPtr(b, lf_word(k, k->loop->workspace_word), k->l_pointer, "memory");
    LLVMValueRef v_a_fold = LLVMBuildMul(b, LLVMBuildMul(b, m->v_sets, m->g.v_columns, ""), lf_i64_const(k, m->cell), "");
    LLVMValueRef v_number =
        LLVMBuildAdd(b, LLVMBuildMul(b, v_plane, lf_i64_const(k, m->n_folds), ""), lf_i64_const(k, i), "");
    LLVMValueRef v_at = LLVMBuildMul(b, v_number, v_a_fold, "");
    v_memory = LLVMBuildGEP2(b, LLVMInt8TypeInContext(k->e->context), v_memory, &v_at, 1, "");
    LLVMValueRef v_element = LLVMBuildAdd(b, LLVMBuildMul(b, m->v_set, m->g.v_columns, ""), m->v_position[span], "element");
    return LLVMBuildGEP2(b, lf_memory_type(k->e, fold(m, i)->compute), v_memory, &v_element, 1, "");
}

static void to_memory(mixed *m, LLVMValueRef v_plane, lf_partials *from) {
    for (unsigned span = 0; span < m->g.spans; span++) {
        lf_if_blocks inside;
        lf_if_begin(m->g.k, &inside, is_inside(m, span), "leave");
        for (unsigned i = 0; i < m->n_folds; i++) store_cells(m, cell_address(m, v_plane, i, span), i, span, from);
        lf_if_end(m->g.k, &inside);
    }
}

// x = memory + x
static void combine_memory(mixed *m, LLVMValueRef v_plane) {
    for (unsigned span = 0; span < m->g.spans; span++) {
        lf_if_blocks inside;
        lf_if_begin(m->g.k, &inside, is_inside(m, span), "take");
        for (unsigned i = 0; i < m->n_folds; i++) combine_cells(m, cell_address(m, v_plane, i, span), i, span);
        lf_if_end(m->g.k, &inside);
    }
}

// ---- levels that wait in the block ---------------------------------------------------------------------------------------------------

// Of a thread's cells in shared memory, those of one span lie side by side, and neighbouring threads' beside them.
static LLVMValueRef shared_address(mixed *m, unsigned level, unsigned i, unsigned span) {
    lf_kernel *k = m->g.k;
    unsigned bytes = k->lanes * lf_dtype_bytes(fold(m, i)->compute);
    LLVMValueRef v_at = LLVMBuildMul(k->e->builder, m->g.v_thread, lf_i64_const(k, bytes), "");
    v_at = LLVMBuildAdd(k->e->builder, v_at, lf_i64_const(k, m->shared[level][i] - 1 + (int64_t)span * m->g.threads * bytes),
                        "");
    return LLVMBuildGEP2(k->e->builder, LLVMInt8TypeInContext(k->e->context), m->v_waiting, &v_at, 1, "");
}

static void wait_at(mixed *m, unsigned level) {
    for (unsigned i = 0; i < m->n_folds; i++) {
        if (!m->shared[level][i]) move(m, m->level[level], m->x, i);
        for (unsigned span = 0; m->shared[level][i] && span < m->g.spans; span++)
            store_cells(m, shared_address(m, level, i, span), i, span, m->x);
    }
}

static void merge_from(mixed *m, unsigned level) {
    for (unsigned i = 0; i < m->n_folds; i++) {
        if (!m->shared[level][i]) combine(m, m->x, m->level[level], m->x, i);
        for (unsigned span = 0; m->shared[level][i] && span < m->g.spans; span++)
            combine_cells(m, shared_address(m, level, i, span), i, span);
    }
}

// Upper levels, which are used least, go to shared memory as far as that suffices; the others are registers.
static void place_levels(mixed *m, lf_object *out) {
    enum { MOST = 48 * 1024 };
    lf_kernel *k = m->g.k;
    unsigned used = 0, room = MOST - out->shared_bytes;
    for (unsigned i = 0; i < m->n_folds; i++) {
        m->x[i] = lf_partials_alloca(k, fold(m, i), columns_of(m), "x");
        for (unsigned l = LEVELS; l-- > 0;) {
            unsigned bytes = m->g.threads * columns_of(m) * lf_dtype_bytes(fold(m, i)->compute);
            if (!k->e->fast && columns_of(m) > FEW && l > 0 && used + bytes <= room)
                m->shared[l][i] = used + 1, used += bytes;
            else
                m->level[l][i] = lf_partials_alloca(k, fold(m, i), columns_of(m), "level");
        }
    }
    if (used) m->v_waiting = lf_gpu_shared_memory(k, used);
    out->shared_bytes += used;
}

// x comes in, in step v_step of a power of two; when it is the last, x is the whole set's.
static void push(mixed *m, LLVMValueRef v_step, LLVMValueRef v_is_last) {
    lf_kernel *k = m->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_done = lf_block(k, "pushed");
    for (unsigned l = 0; l < LEVELS; l++) {
        LLVMBasicBlockRef b_wait = lf_block(k, "wait"), b_merge = lf_block(k, "merge");
        LLVMBuildCondBr(b, lf_gpu_bit(k, v_step, l), b_merge, b_wait);
        LLVMPositionBuilderAtEnd(b, b_wait);
        wait_at(m, l);
        LLVMBuildBr(b, b_done);
        LLVMPositionBuilderAtEnd(b, b_merge);
        merge_from(m, l);
    }
    // while (count & 1) x = memory[plane] + x
    LLVMValueRef v_one = lf_i64_const(k, 1), v_count = from_row(m, LLVMBuildLShr(b, v_step, row_const(m, LEVELS), "count"));
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(b), b_head = lf_block(k, "carry"), b_body = lf_block(k, "combine"),
                      b_store = lf_block(k, "keep");
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_head);
    LLVMValueRef v_left = LLVMBuildPhi(b, k->l_i64, "left"), v_plane = LLVMBuildPhi(b, k->l_i64, "plane");
    LLVMAddIncoming(v_left, &v_count, &b_before, 1);
    LLVMAddIncoming(v_plane, &v_one, &b_before, 1);
    LLVMBuildCondBr(b, lf_gpu_bit(k, v_left, 0), b_body, b_store);
    LLVMPositionBuilderAtEnd(b, b_body);
    combine_memory(m, v_plane);
    LLVMValueRef v_half = LLVMBuildLShr(b, v_left, v_one, ""), v_next = LLVMBuildAdd(b, v_plane, v_one, "");
    LLVMBasicBlockRef b_last = LLVMGetInsertBlock(b);
    LLVMAddIncoming(v_left, &v_half, &b_last, 1);
    LLVMAddIncoming(v_plane, &v_next, &b_last, 1);
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_store);
    lf_if_blocks waits;
    lf_if_begin(k, &waits, LLVMBuildNot(b, v_is_last, ""), "waits");
    to_memory(m, v_plane, m->x);
    lf_if_end(k, &waits);
    LLVMBuildBr(b, b_done);
    LLVMPositionBuilderAtEnd(b, b_done);
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

static void place_row(mixed *m, unsigned at, LLVMValueRef v_row) {
    lf_kernel *k = m->g.k;
    lf_kernel_use_copy(k, at * LF_SPANS);
    lf_split_index(k, from_row(m, v_row), k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
}

// Asks for the lines of the rows of the next step, those that all columns of a row lie side by side in. Plain loads only.
static void prefetch(mixed *m, LLVMValueRef v_leaf) {
    lf_kernel *k = m->g.k;
    LLVMBuilderRef b = k->e->builder;
    for (unsigned at = 0; at < m->at_once; at++) {
        LLVMValueRef v_row = row_of_leaf(m, LLVMBuildAdd(b, v_leaf, row_const(m, at), ""));
        lf_if_blocks there;
        lf_if_begin(k, &there, LLVMBuildICmp(b, LLVMIntSLT, v_row, m->v_rows, ""), "ahead");
        place_row(m, at, v_row);
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

// Effects of the last pass, and what its columns give to the folds, span by span: of the rows at once, so that little waits.
static void last_effects(mixed *m, const LLVMValueRef *v_there) {
    lf_kernel *k = m->g.k;
    unsigned pass = m->g.pass;
    for (unsigned span = 0; span < m->g.spans; span++) {
        lf_partial sum[MOST_FOLDS][LF_MAX_LANES];
        for (unsigned at = 0; at < m->at_once; at++) {
            unsigned copy = at * LF_SPANS + span;
            lf_kernel_use_copy(k, copy);
            lf_emit_effect_operands(k, pass);
            for (unsigned i = 0; i < m->n_folds; i++) {
                const lf_stmt *s = fold(m, i);
                lf_emit_statement(k, s->args[0]);
                for (unsigned lane = 0; lane < k->lanes; lane++) {
                    lf_partial p = lf_contribution(k, s, lane, NULL);
                    sum[i][lane] =
                        at ? lf_partial_select(k, s, v_there[at], lf_combine(k, s, sum[i][lane], p), sum[i][lane]) : p;
                }
            }
            lf_if_blocks inside;
            if (m->g.v_inside[copy]) lf_if_begin(k, &inside, m->g.v_inside[copy], "inside");
            lf_emit_column_effects(k, pass);
            if (m->g.v_inside[copy]) lf_if_end(k, &inside);
        }
        for (unsigned i = 0; i < m->n_folds; i++)
            for (unsigned lane = 0; lane < k->lanes; lane++) set(m, m->x, i, span * k->lanes + lane, sum[i][lane]);
    }
}

// What the rows at once add up to in this pass: warps of the block meet once.
static void sums_of_pass(mixed *m, const lf_stmt_id *ids, unsigned n) {
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
            if (pass == 0) lf_gpu_place_spans(g, v_zero);
            for (unsigned span = 0; pass && span < g->spans; span++) {
                lf_kernel_use_copy(k, g->base + span);
                lf_kernel_keep_loads(k);
            }
        }
        g->v_there = NULL;
        if (pass == 0) lf_emit_loads(k, copies, n_copies, pass);
        bool last = pass + 1 == k->loop->passes;
        unsigned n = g->n;
        if (last) last_effects(m, v_there);
        for (unsigned at = 0; !last && at < m->at_once; at++) {
            g->base = at * LF_SPANS;
            lf_gpu_store_spans(g);
        }
        if (n) sums_of_pass(m, ids, n);
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
    LLVMValueRef v_chunk = LLVMBuildUDiv(b, m->v_set, v_a_chunk, "chunk");
    LLVMValueRef v_within = LLVMBuildSub(b, m->v_set, LLVMBuildMul(b, v_chunk, v_a_chunk, ""), "");
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

static void walk_set(mixed *m) {
    lf_kernel *k = m->g.k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = row_const(m, 0), v_one = row_const(m, 1);
    begin_set(m);
    LLVMValueRef v_leaves = LLVMBuildShl(b, to_row(m, m->v_share), m->v_leaf_bits, "leaves"),
                 v_at_once = row_const(m, m->at_once);
    LLVMValueRef v_steps = LLVMBuildUDiv(b, LLVMBuildAdd(b, v_leaves, row_const(m, m->at_once - 1), ""), v_at_once, "steps");
    lf_loop_blocks loop;
    LLVMValueRef v_step = lf_for_begin(k, &loop, v_zero, v_steps, v_one, "step");
    LLVMValueRef v_leaf = LLVMBuildMul(b, v_step, v_at_once, "leaf"), v_next = LLVMBuildAdd(b, v_step, v_one, "");
    LLVMValueRef v_row[MOST_AT_ONCE], v_there[MOST_AT_ONCE];
    for (unsigned at = 0; at < m->at_once; at++) {
        LLVMValueRef v_mine = LLVMBuildAdd(b, v_leaf, row_const(m, at), "");
        v_row[at] = row_of_leaf(m, v_mine);
        v_there[at] = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSLT, v_row[at], m->v_rows, ""),
                                   LLVMBuildICmp(b, LLVMIntSLT, v_mine, v_leaves, ""), "there");
        if (k->cls.chunks & LFUSER_ABI_MIXED_ALL_ROWS && m->at_once <= 2)
            v_there[at] = LLVMConstInt(LLVMInt1TypeInContext(k->e->context), 1, false);
        v_row[at] = LLVMBuildSelect(b, v_there[at], v_row[at], m->v_base, "");
    }
    // Where the first of the rows is missing, all are: for the whole block.
    lf_if_blocks any, more;
    clear_all(m, m->x);
    lf_if_begin(k, &any, v_there[0], "any");
    lf_if_begin(k, &more, LLVMBuildICmp(b, LLVMIntSLT, v_next, v_steps, ""), "more");
    prefetch(m, LLVMBuildAdd(b, v_leaf, v_at_once, ""));
    lf_if_end(k, &more);
    for (unsigned at = 0; at < m->at_once; at++) place_row(m, at, v_row[at]);
    passes(m, v_there);
    lf_if_end(k, &any);
    LLVMValueRef v_is_last = LLVMBuildICmp(b, LLVMIntEQ, v_next, v_steps, "is_last");
    for (unsigned i = 0; i < m->n_folds && k->e->fast; i++) combine(m, m->level[0], m->level[0], m->x, i);
    if (!k->e->fast) push(m, v_step, v_is_last);
    lf_if_blocks last;
    lf_if_begin(k, &last, v_is_last, "last");
    to_memory(m, lf_i64_const(k, 0), k->e->fast ? m->level[0] : m->x);
    lf_if_end(k, &last);
    if (reducing_passes(k) == 1) lf_gpu_barrier(k);
    lf_for_end(k, &loop, LF_HINT_ROLLED);
}

lf_status lf_gpu_emit_mixed(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    mixed *m = lf_alloc_zero(k->l->allocator, sizeof *m);
    if (!m) return lf_out_of_memory();
    m->at_once = k->cls.chunks & LFUSER_ABI_MIXED_AT_ONCE;
    m->g = (gpu){.k = k,
                 .threads = LF_SPAN / k->lanes,
                 .chunks = 1,
                 .spans = k->cls.spans,
                 .at_once = m->at_once,
                 .v_columns = lf_columns(k)};
    k->row_copies = LF_SPANS;
    m->cell = 4;
    for (lf_stmt_id i = 0; i < k->loop->n_stmts && m->n_folds < MOST_FOLDS; i++) {
        if (k->loop->stmts[i].kind != LF_STMT_FOLD) continue;
        m->folds[m->n_folds++] = i;
        if (lf_dtype_bytes(k->loop->stmts[i].compute) > m->cell) m->cell = lf_dtype_bytes(k->loop->stmts[i].compute);
    }
    unsigned passes = reducing_passes(k);
    lf_status s = lf_gpu_share(&m->g, m->g.threads / LF_GPU_WARP, passes > 2 ? passes : 2, out);
    place_levels(m, out);
    m->g.v_thread = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x");
    for (unsigned span = 0; span < m->g.spans; span++)
        m->v_position[span] = LLVMBuildAdd(b, LLVMBuildMul(b, m->g.v_thread, lf_i64_const(k, k->lanes), ""),
                                           lf_i64_const(k, (int64_t)span * LF_SPAN), "position");
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
    m->v_sets = LLVMBuildAdd(b, LLVMBuildMul(b, v_whole, v_a_chunk, ""), v_rest, "sets");
    lf_loop_blocks sets;
    m->v_set = lf_for_begin(k, &sets, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), m->v_sets,
                            lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), "set");
    if (k->e->fast) clear_all(m, m->level[0]);
    walk_set(m);
    lf_for_end(k, &sets, LF_HINT_ROLLED);
    lf_free(k->l->allocator, m);
    return s;
}
