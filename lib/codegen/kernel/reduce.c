// What reductions combine, and the canonical order above one chunk of 8192 elements.
#include "codegen/kernel/kernel.h"
#include <math.h>

static bool is_arg(const lf_stmt *reduce) { return reduce->code == LF_OP_ARGMIN || reduce->code == LF_OP_ARGMAX; }

bool lf_has_position(const lf_stmt *reduce) { return lf_stmt_has_position(reduce); }

static bool is_least(const lf_stmt *reduce) { return reduce->code == LF_OP_RMIN || reduce->code == LF_OP_ARGMIN; }

// The element that changes nothing: -0 for sums, 1 for products, the far end of the order for min and max.
static lf_scalar neutral_element(const lf_stmt *reduce) {
    lf_dtype d = reduce->compute, part = lf_dtype_part(d);
    lf_scalar s = {0};
    switch (reduce->code) {
    case LF_OP_SUM:
        if (part == LF_F32) s.c64[0] = -0.0f, s.c64[1] = d == LF_C64 ? -0.0f : 0;
        if (part == LF_F64) s.c128[0] = -0.0, s.c128[1] = d == LF_C128 ? -0.0 : 0;
        return s;
    case LF_OP_PROD:
        if (part == LF_F32)
            s.f32 = 1;
        else if (part == LF_F64)
            s.f64 = 1;
        else
            s.i64 = 1;
        return s;
    case LF_OP_ANY: return s;
    case LF_OP_ALL: s.b = true; return s;
    default: break;
    }
    double far = is_least(reduce) ? INFINITY : -INFINITY;
    if (d == LF_F64)
        s.f64 = far;
    else if (d == LF_F32)
        s.f32 = (float)far;
    else if (lf_is_half(d))
        s.u16 = lf_f32_to_half(d, (float)far);
    else if (d == LF_BOOL)
        s.b = is_least(reduce);
    else {
        unsigned bits = lf_dtype_bytes(d) * 8;
        uint64_t most = lf_is_unsigned(d) ? UINT64_MAX >> (64 - bits) : UINT64_MAX >> (65 - bits);
        s.u64 = is_least(reduce) ? most : lf_is_unsigned(d) ? 0 : most + 1;
    }
    return s;
}

lf_partial lf_neutral(lf_kernel *k, const lf_stmt *reduce) {
    lf_scalar s = neutral_element(reduce);
    return (lf_partial){lf_emit_constant(k->e, reduce->compute, &s), lf_has_position(reduce) ? lf_i64_const(k, -1) : NULL};
}

lf_partial lf_partial_select(lf_kernel *k, const lf_stmt *reduce, LLVMValueRef v_condition, lf_partial a, lf_partial b) {
    lf_partial p = {lf_emit_select(k->e, v_condition, a.value, b.value), NULL};
    if (lf_has_position(reduce)) p.v_position = LLVMBuildSelect(k->e->builder, v_condition, a.v_position, b.v_position, "");
    return p;
}

// The better of two candidates: a NaN beats all, then the order, then the lower position. -1 is no candidate.
static lf_partial combine_positions(lf_kernel *k, const lf_stmt *reduce, lf_partial a, lf_partial b) {
    LLVMBuilderRef builder = k->e->builder;
    lf_dtype d = reduce->compute;
    lf_register none = {NULL, NULL};
    LLVMValueRef v_better = lf_emit_simple(k->e, is_least(reduce) ? LF_OP_LT : LF_OP_GT, d, b.value, a.value).re;
    LLVMValueRef v_level = lf_emit_simple(k->e, LF_OP_EQ, d, b.value, a.value).re;
    if (lf_is_float(d)) {
        LLVMValueRef v_nan_a = lf_emit_simple(k->e, LF_OP_ISNAN, d, a.value, none).re;
        LLVMValueRef v_nan_b = lf_emit_simple(k->e, LF_OP_ISNAN, d, b.value, none).re;
        v_better =
            LLVMBuildOr(builder, v_better, LLVMBuildAnd(builder, v_nan_b, LLVMBuildNot(builder, v_nan_a, ""), ""), "");
        v_level = LLVMBuildOr(builder, v_level, LLVMBuildAnd(builder, v_nan_a, v_nan_b, ""), "");
    }
    LLVMValueRef v_earlier = LLVMBuildICmp(builder, LLVMIntSLT, b.v_position, a.v_position, "");
    LLVMValueRef v_b = LLVMBuildOr(builder, v_better, LLVMBuildAnd(builder, v_level, v_earlier, ""), "");
    LLVMValueRef v_has_a = LLVMBuildICmp(builder, LLVMIntSGE, a.v_position, lf_i64_const(k, 0), "");
    LLVMValueRef v_has_b = LLVMBuildICmp(builder, LLVMIntSGE, b.v_position, lf_i64_const(k, 0), "");
    v_b = LLVMBuildAnd(builder, v_has_b, LLVMBuildOr(builder, v_b, LLVMBuildNot(builder, v_has_a, ""), ""), "");
    return lf_partial_select(k, reduce, v_b, b, a);
}

static lf_partial combine_present(lf_kernel *k, const lf_stmt *reduce, lf_partial low, lf_partial high) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_low = LLVMBuildICmp(b, LLVMIntSGE, low.v_position, v_zero, "");
    LLVMValueRef v_high = LLVMBuildICmp(b, LLVMIntSGE, high.v_position, v_zero, "");
    lf_register both = lf_emit_simple(k->e, LF_OP_MUL, reduce->compute, low.value, high.value);
    lf_register single = lf_emit_select(k->e, v_low, low.value, high.value);
    return (lf_partial){lf_emit_select(k->e, LLVMBuildAnd(b, v_low, v_high, ""), both, single),
                        LLVMBuildSelect(b, v_low, low.v_position, high.v_position, "")};
}

lf_partial lf_combine(lf_kernel *k, const lf_stmt *reduce, lf_partial low, lf_partial high) {
    if (is_arg(reduce)) return combine_positions(k, reduce, low, high);
    if (lf_has_position(reduce)) return combine_present(k, reduce, low, high);
    lf_opcode code = LF_OP_ADD;
    switch (reduce->code) {
    case LF_OP_PROD: code = LF_OP_MUL; break;
    case LF_OP_RMIN: code = LF_OP_MIN; break;
    case LF_OP_RMAX: code = LF_OP_MAX; break;
    case LF_OP_ANY: code = LF_OP_OR; break;
    case LF_OP_ALL: code = LF_OP_AND; break;
    default: break;
    }
    return (lf_partial){lf_emit_simple(k->e, code, reduce->compute, low.value, high.value), NULL};
}

// An empty float sum is +0; every other sum that comes out as -0 had only -0 to add, and keeps it.
lf_register lf_reduced(lf_kernel *k, const lf_stmt *reduce, lf_partial p) {
    if (is_arg(reduce)) return (lf_register){p.v_position, NULL};
    lf_dtype part = lf_dtype_part(reduce->compute);
    if (reduce->code != LF_OP_SUM || (part != LF_F32 && part != LF_F64)) return p.value;
    lf_scalar zero = {0};
    LLVMValueRef v_empty = LLVMBuildICmp(k->e->builder, LLVMIntEQ, lf_columns(k), lf_i64_const(k, 0), "empty");
    return lf_emit_select(k->e, v_empty, lf_emit_constant(k->e, reduce->compute, &zero), p.value);
}

lf_partial lf_contribution(lf_kernel *k, const lf_stmt *reduce, unsigned lane, LLVMValueRef v_position) {
    return (lf_partial){lf_reg(k, reduce->args[0], lane), lf_has_position(reduce) ? v_position : NULL};
}

// ---- arrays of partials --------------------------------------------------------------------------------------------------------

lf_partials lf_partials_alloca(lf_kernel *k, const lf_stmt *reduce, unsigned n, const char *name) {
    lf_partials p = {lf_alloca(k, LLVMArrayType2(lf_memory_type(k->e, reduce->compute), n), name), NULL};
    LLVMSetAlignment(p.v_values, 32);
    if (lf_has_position(reduce)) p.v_positions = lf_alloca(k, LLVMArrayType2(k->l_i64, n), "positions");
    return p;
}

static void mark(lf_kernel *k, LLVMValueRef v_before, LLVMBasicBlockRef b) {
    for (LLVMValueRef v = v_before ? LLVMGetNextInstruction(v_before) : LLVMGetFirstInstruction(b); v;
         v = LLVMGetNextInstruction(v))
        if (LLVMIsALoadInst(v) || LLVMIsAStoreInst(v)) lf_mark_parallel(k, v);
}

lf_partial lf_partials_load(lf_kernel *k, const lf_stmt *reduce, lf_partials array, LLVMValueRef v_index, bool parallel) {
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(b);
    LLVMValueRef v_last = LLVMGetLastInstruction(b_here);
    LLVMValueRef v = LLVMBuildInBoundsGEP2(b, lf_memory_type(k->e, reduce->compute), array.v_values, &v_index, 1, "");
    lf_partial p = {lf_emit_load(k->e, reduce->compute, v), NULL};
    if (array.v_positions)
        p.v_position =
            LLVMBuildLoad2(b, k->l_i64, LLVMBuildInBoundsGEP2(b, k->l_i64, array.v_positions, &v_index, 1, ""), "");
    if (parallel) mark(k, v_last, b_here);
    return p;
}

void lf_partials_store(lf_kernel *k, const lf_stmt *reduce, lf_partials array, LLVMValueRef v_index, lf_partial p,
                       bool parallel) {
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(b);
    LLVMValueRef v_last = LLVMGetLastInstruction(b_here);
    LLVMValueRef v = LLVMBuildInBoundsGEP2(b, lf_memory_type(k->e, reduce->compute), array.v_values, &v_index, 1, "");
    lf_emit_store(k->e, reduce->compute, p.value, v);
    if (array.v_positions)
        LLVMBuildStore(b, p.v_position, LLVMBuildInBoundsGEP2(b, k->l_i64, array.v_positions, &v_index, 1, ""));
    if (parallel) mark(k, v_last, b_here);
}

// ---- chunks of a row -----------------------------------------------------------------------------------------------------------

// Chunk results are combined by the same rule as elements: over bits 12, 11, 10 of the chunk's number, then 0, 1, … Visited with
// bits 12, 11, 10 running fastest, that is a binary counter of partial results, one a level; a level above one group of 8192
// chunks combines groups likewise. Missing chunks are neutral.
enum { LEVELS = 13, GROUP = 8192, MAX_REDUCTIONS = 64 };

typedef struct counter {
    lf_partials partials[MAX_REDUCTIONS];
    LLVMValueRef v_count; // alloca: how many were pushed
} counter;

typedef struct stream {
    lf_kernel *k;
    const lf_stmt_id *reductions;
    unsigned n;
    counter counters[2];                // groups of chunks, chunks
    lf_partials result[MAX_REDUCTIONS]; // one element each
    lf_emit_chunk chunk;
    void *context;
    LLVMValueRef v_columns;
    LLVMValueRef v_single; // the row is one chunk: leave the loops with its result
    LLVMBasicBlockRef b_done;
} stream;

static const lf_stmt *reduction(lf_kernel *k, const stream *s, unsigned i) { return &k->loop->stmts[s->reductions[i]]; }

// A counter of the stream, and the result that is pushed and comes out.
typedef struct counting {
    const stream *s;
    counter *c;
} counting;

static void merge(void *context, lf_level level) {
    const counting *x = context;
    lf_kernel *k = x->s->k;
    LLVMValueRef v_zero = lf_i64_const(k, 0);
    for (unsigned i = 0; i < x->s->n; i++) {
        const lf_stmt *r = reduction(k, x->s, i);
        lf_partial low = lf_partials_load(k, r, x->c->partials[i], level.v, false);
        lf_partial high = lf_partials_load(k, r, x->s->result[i], v_zero, false);
        lf_partials_store(k, r, x->s->result[i], v_zero, lf_combine(k, r, low, high), false);
    }
}

static void keep(void *context, lf_level level) {
    const counting *x = context;
    lf_kernel *k = x->s->k;
    for (unsigned i = 0; i < x->s->n; i++) {
        const lf_stmt *r = reduction(k, x->s, i);
        lf_partials_store(k, r, x->c->partials[i], level.v,
                          lf_partials_load(k, r, x->s->result[i], lf_i64_const(k, 0), false), false);
    }
}

static void clear_result(const stream *s) {
    for (unsigned i = 0; i < s->n; i++) {
        const lf_stmt *r = reduction(s->k, s, i);
        lf_partials_store(s->k, r, s->result[i], lf_i64_const(s->k, 0), lf_neutral(s->k, r), false);
    }
}

static void counter_reset(lf_kernel *k, counter *c) { LLVMBuildStore(k->e->builder, lf_i64_const(k, 0), c->v_count); }

static void counter_push(const stream *s, counter *c) {
    lf_kernel *k = s->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_count = LLVMBuildLoad2(b, k->l_i64, c->v_count, "count");
    LLVMBuildStore(b, LLVMBuildAdd(b, v_count, lf_i64_const(k, 1), ""), c->v_count);
    counting x = {s, c};
    lf_counter_push_by_loop(k, &(lf_counter){&x, merge, keep}, v_count);
}

static void counter_finish(const stream *s, counter *c) {
    lf_kernel *k = s->k;
    clear_result(s);
    LLVMValueRef v_count = LLVMBuildLoad2(k->e->builder, k->l_i64, c->v_count, "count");
    counting x = {s, c};
    lf_counter_rest_by_loop(k, &(lf_counter){&x, merge, keep}, v_count, LEVELS + 1, LF_HINT_NONE);
}

// Visits the members 0 … v_count - 1 of a level in counter order; `body` puts a member's result into s->result.
static void each_member(lf_kernel *k, stream *s, unsigned level, LLVMValueRef v_first, LLVMValueRef v_count,
                        void (*body)(lf_kernel *, stream *, LLVMValueRef v_member)) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_one = lf_i64_const(k, 1), v_span = lf_i64_const(k, GROUP / 8);
    counter_reset(k, &s->counters[level]);
    LLVMValueRef v_lows = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, v_count, v_span, ""), v_count, v_span, "lows");
    lf_loop_blocks lows, highs;
    LLVMValueRef v_low = lf_for_begin(k, &lows, v_zero, v_lows, v_one, "low");
    LLVMValueRef v_step = lf_for_begin(k, &highs, v_zero, lf_i64_const(k, 8), v_one, "high");
    // step's bits 0, 1, 2 are bits 12, 11, 10 of the member's number
    LLVMValueRef v_high = LLVMBuildShl(b, LLVMBuildAnd(b, v_step, v_one, ""), lf_i64_const(k, 12), "");
    v_high = LLVMBuildOr(b, v_high,
                         LLVMBuildShl(b, LLVMBuildAnd(b, v_step, lf_i64_const(k, 2), ""), lf_i64_const(k, 10), ""), "");
    v_high =
        LLVMBuildOr(b, v_high, LLVMBuildShl(b, LLVMBuildAnd(b, v_step, lf_i64_const(k, 4), ""), lf_i64_const(k, 8), ""), "");
    LLVMValueRef v_member = LLVMBuildAdd(b, v_low, v_high, "member");
    clear_result(s);
    lf_if_blocks there;
    lf_if_begin(k, &there, LLVMBuildICmp(b, LLVMIntSLT, v_member, v_count, ""), "there");
    body(k, s, LLVMBuildAdd(b, v_first, v_member, ""));
    lf_if_end(k, &there);
    counter_push(s, &s->counters[level]);
    lf_for_end(k, &highs, LF_HINT_NONE);
    lf_for_end(k, &lows, LF_HINT_NONE);
    counter_finish(s, &s->counters[level]);
}

static void one_chunk(lf_kernel *k, stream *s, LLVMValueRef v_chunk) {
    lf_partial out[MAX_REDUCTIONS];
    s->chunk(k, s->context, v_chunk, out);
    for (unsigned i = 0; i < s->n; i++)
        lf_partials_store(k, reduction(k, s, i), s->result[i], lf_i64_const(k, 0), out[i], false);
    LLVMBasicBlockRef b_more = lf_block(k, "more_chunks");
    LLVMBuildCondBr(k->e->builder, s->v_single, s->b_done, b_more);
    LLVMPositionBuilderAtEnd(k->e->builder, b_more);
}

static LLVMValueRef groups_of(lf_kernel *k, LLVMValueRef v_count) {
    LLVMBuilderRef b = k->e->builder;
    return LLVMBuildLShr(b, LLVMBuildAdd(b, v_count, lf_i64_const(k, GROUP - 1), ""), lf_i64_const(k, 13), "");
}

static void one_group(lf_kernel *k, stream *s, LLVMValueRef v_group) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_chunks = groups_of(k, s->v_columns);
    LLVMValueRef v_first = LLVMBuildShl(b, v_group, lf_i64_const(k, 13), "first"),
                 v_rest = LLVMBuildSub(b, v_chunks, v_first, "");
    LLVMValueRef v_most = lf_i64_const(k, GROUP);
    LLVMValueRef v_count = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, v_rest, v_most, ""), v_rest, v_most, "chunks");
    each_member(k, s, 1, v_first, v_count, one_chunk);
}

void lf_stream_chunks(lf_kernel *k, const lf_stmt_id *reductions, unsigned n, LLVMValueRef v_columns, lf_emit_chunk chunk,
                      void *context, lf_partial *out) {
    LLVMBuilderRef b = k->e->builder;
    stream s = {.k = k, .reductions = reductions, .n = n, .chunk = chunk, .context = context, .v_columns = v_columns};
    for (unsigned i = 0; i < n; i++) {
        s.result[i] = lf_partials_alloca(k, reduction(k, &s, i), 1, "result");
        for (unsigned level = 0; level < 2; level++)
            s.counters[level].partials[i] = lf_partials_alloca(k, reduction(k, &s, i), LEVELS + 1, "counter");
    }
    for (unsigned level = 0; level < 2; level++) s.counters[level].v_count = lf_alloca(k, k->l_i64, "pushed");
    // One chunk is by far the commonest row: its code leaves the loops at once, before any counter is touched.
    s.v_single = LLVMBuildICmp(b, LLVMIntSLE, v_columns, lf_i64_const(k, LF_CHUNK), "single");
    s.b_done = lf_block(k, "reduced");
    each_member(k, &s, 0, lf_i64_const(k, 0), groups_of(k, groups_of(k, v_columns)), one_group);
    LLVMBuildBr(b, s.b_done);
    LLVMPositionBuilderAtEnd(b, s.b_done);
    for (unsigned i = 0; i < n; i++)
        out[i] = lf_partials_load(k, reduction(k, &s, i), s.result[i], lf_i64_const(k, 0), false);
}
