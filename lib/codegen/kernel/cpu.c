// CPU kernels: void kernel(const uint64_t *args, int64_t begin, int64_t end) does work items [begin, end).
// Pointwise: items are elements; the innermost axis is a plain loop that LLVM vectorises. Rows: items are rows.
#include "codegen/kernel/kernel.h"
#include <llvm-c/IRReader.h>

enum { TILE = 256, TILES = LF_SPAN / TILE, FEWEST_BITS = 4, FEWEST = 1 << FEWEST_BITS, MAX_REDUCTIONS = 64 };

// A loop over lane-less columns or elements whose iterations are independent.
static void begin_parallel(lf_kernel *k) { k->parallel_group = k->independent; }

// An access group is a distinct, empty node, which the C API can only get from text.
static lf_status make_access_group(lf_kernel *k) {
    static const char text[] = "!lf.group = !{!0}\n!0 = distinct !{}\n";
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, sizeof text - 1, "group");
    LLVMModuleRef module;
    char *message = NULL;
    if (LLVMParseIRInContext(k->e->context, buffer, &module, &message)) {
        lf_status s =
            lf_error(k->l->allocator, LF_INTERNAL, "the access group was not understood: %s", message ? message : "");
        LLVMDisposeMessage(message);
        return s;
    }
    LLVMValueRef v_group;
    LLVMGetNamedMetadataOperands(module, "lf.group", &v_group);
    k->independent = LLVMValueAsMetadata(v_group);
    LLVMDisposeModule(module);
    return NULL;
}

// ---- pointwise -----------------------------------------------------------------------------------------------------------------

static void emit_pointwise(lf_kernel *k, LLVMValueRef v_begin, LLVMValueRef v_end) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_one = lf_i64_const(k, 1);
    lf_loop_blocks inner;
    if (k->rows == 0) { // one element
        lf_if_blocks any;
        lf_if_begin(k, &any, LLVMBuildICmp(b, LLVMIntSLT, v_begin, v_end, ""), "element");
        lf_kernel_begin_row(k);
        lf_emit_column_effects(k, 0);
        lf_if_end(k, &any);
        return;
    }
    // From `at`, the rest of an innermost run at a time.
    LLVMValueRef v_at = lf_alloca(k, k->l_i64, "at");
    LLVMBuildStore(b, v_begin, v_at);
    LLVMBasicBlockRef b_head = lf_block(k, "runs"), b_run = lf_block(k, "run"), b_done = lf_block(k, "finished");
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_head);
    LLVMValueRef v_position = LLVMBuildLoad2(b, k->l_i64, v_at, "position");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, v_position, v_end, ""), b_run, b_done);
    LLVMPositionBuilderAtEnd(b, b_run);
    unsigned last = k->rows - 1;
    lf_split_index(k, v_position, k->rows, lf_row_extent, k->at->v_row);
    LLVMValueRef v_first = k->at->v_row[last];
    LLVMValueRef v_rest = LLVMBuildSub(b, v_end, v_position, "");
    LLVMValueRef v_stop = LLVMBuildAdd(b, v_first, v_rest, "");
    if (k->rows > 1) {
        LLVMValueRef v_extent = lf_row_extent(k, last);
        v_stop = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, v_stop, v_extent, ""), v_stop, v_extent, "stop");
    }
    LLVMBuildStore(b, LLVMBuildAdd(b, v_position, LLVMBuildSub(b, v_stop, v_first, ""), ""), v_at);
    begin_parallel(k);
    k->at->v_row[last] = lf_for_begin(k, &inner, v_first, v_stop, v_one, "element");
    lf_kernel_begin_row(k);
    lf_emit_column_effects(k, 0);
    lf_for_end(k, &inner, LF_HINT_PARALLEL);
    k->parallel_group = NULL;
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_done);
}

// ---- rows ----------------------------------------------------------------------------------------------------------------------

static LLVMValueRef least(lf_kernel *k, LLVMValueRef v_a, LLVMValueRef v_b) {
    return LLVMBuildSelect(k->e->builder, LLVMBuildICmp(k->e->builder, LLVMIntSLT, v_a, v_b, ""), v_a, v_b, "");
}

static LLVMValueRef most(lf_kernel *k, LLVMValueRef v_a, LLVMValueRef v_b) {
    return LLVMBuildSelect(k->e->builder, LLVMBuildICmp(k->e->builder, LLVMIntSGT, v_a, v_b, ""), v_a, v_b, "");
}

static void emit_plain_pass(lf_kernel *k, unsigned pass) {
    lf_loop_blocks columns;
    begin_parallel(k);
    LLVMValueRef v = lf_for_begin(k, &columns, lf_i64_const(k, 0), lf_columns(k), lf_i64_const(k, 1), "column");
    lf_kernel_at_column(k, v);
    lf_emit_column_effects(k, pass);
    lf_for_end(k, &columns, LF_HINT_PARALLEL);
    k->parallel_group = NULL;
}

typedef struct chunk_context {
    unsigned pass, n;
    const lf_stmt_id *ids;
    LLVMValueRef v_columns;
    lf_partials a[MAX_REDUCTIONS], b[MAX_REDUCTIONS], c[MAX_REDUCTIONS], tiles[MAX_REDUCTIONS];
} chunk_context;

static const lf_stmt *stmt(lf_kernel *k, const chunk_context *c, unsigned i) { return &k->loop->stmts[c->ids[i]]; }

// array[0 … v_n - 1] = neutral
static void clear(lf_kernel *k, chunk_context *c, lf_partials *arrays, LLVMValueRef v_n) {
    lf_loop_blocks loop;
    begin_parallel(k);
    LLVMValueRef v = lf_for_begin(k, &loop, lf_i64_const(k, 0), v_n, lf_i64_const(k, 1), "clear");
    for (unsigned i = 0; i < c->n; i++)
        lf_partials_store(k, stmt(k, c, i), arrays[i], v, lf_neutral(k, stmt(k, c, i)), true);
    lf_for_end(k, &loop, LF_HINT_SHORT);
    k->parallel_group = NULL;
}

// to[m] = combine(to[m], from[m])
static void merge(lf_kernel *k, chunk_context *c, lf_partials *to, lf_partials *from, LLVMValueRef v_n) {
    lf_loop_blocks loop;
    begin_parallel(k);
    LLVMValueRef v = lf_for_begin(k, &loop, lf_i64_const(k, 0), v_n, lf_i64_const(k, 1), "merge");
    for (unsigned i = 0; i < c->n; i++) {
        const lf_stmt *s = stmt(k, c, i);
        lf_partials_store(k, s, to[i], v,
                          lf_combine(k, s, lf_partials_load(k, s, to[i], v, true), lf_partials_load(k, s, from[i], v, true)),
                          true);
    }
    lf_for_end(k, &loop, LF_HINT_SHORT);
    k->parallel_group = NULL;
}

// to[m] = combine(to[m], element v_first + m), for the v_n elements that exist. One copy of the body serves every span: `to` is
// picked at run time, so the arrays come as addresses.
static void gather_span(lf_kernel *k, chunk_context *c, lf_partials *to, LLVMValueRef v_first, LLVMValueRef v_n) {
    lf_loop_blocks loop;
    begin_parallel(k);
    LLVMValueRef v_m = lf_for_begin(k, &loop, lf_i64_const(k, 0), v_n, lf_i64_const(k, 1), "element");
    LLVMValueRef v_column = LLVMBuildAdd(k->e->builder, v_first, v_m, "");
    lf_kernel_at_column(k, v_column);
    for (unsigned i = 0; i < c->n; i++) {
        const lf_stmt *s = stmt(k, c, i);
        lf_emit_statement(k, s->args[0]);
        lf_partial p = lf_contribution(k, s, 0, v_column);
        lf_partials_store(k, s, to[i], v_m, lf_combine(k, s, lf_partials_load(k, s, to[i], v_m, true), p), true);
    }
    lf_emit_column_effects(k, c->pass);
    lf_for_end(k, &loop, LF_HINT_PARALLEL);
    k->parallel_group = NULL;
}

// Pairwise over the bits of the index, lowest first: array[i] = combine(array[2i], array[2i + 1]) until one is left.
// v_n is a power of two.
static void fold_pairs(lf_kernel *k, chunk_context *c, lf_partials *array, LLVMValueRef v_n) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_one = lf_i64_const(k, 1), v_zero = lf_i64_const(k, 0);
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(b), b_head = lf_block(k, "fold"), b_body = lf_block(k, "halve"),
                      b_done = lf_block(k, "folded");
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_head);
    LLVMValueRef v_left = LLVMBuildPhi(b, k->l_i64, "left");
    LLVMAddIncoming(v_left, &v_n, &b_before, 1);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSGT, v_left, v_one, ""), b_body, b_done);
    LLVMPositionBuilderAtEnd(b, b_body);
    LLVMValueRef v_half = LLVMBuildLShr(b, v_left, v_one, "half");
    lf_loop_blocks loop;
    LLVMValueRef v = lf_for_begin(k, &loop, v_zero, v_half, v_one, "pair");
    LLVMValueRef v_low = LLVMBuildShl(b, v, v_one, ""), v_high = LLVMBuildOr(b, v_low, v_one, "");
    for (unsigned i = 0; i < c->n; i++) {
        const lf_stmt *s = stmt(k, c, i);
        lf_partial low = lf_partials_load(k, s, array[i], v_low, false),
                   high = lf_partials_load(k, s, array[i], v_high, false);
        lf_partials_store(k, s, array[i], v, lf_combine(k, s, low, high), false);
    }
    lf_for_end(k, &loop, LF_HINT_SHORT);
    LLVMBasicBlockRef b_last = LLVMGetInsertBlock(b);
    LLVMAddIncoming(v_left, &v_half, &b_last, 1);
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_done);
}

static LLVMValueRef pick_array(lf_kernel *k, LLVMValueRef v_which, LLVMValueRef v_a, LLVMValueRef v_b, LLVMValueRef v_c) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntEQ, v_which, lf_i64_const(k, 1), ""), v_b, v_c, "");
    return LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntEQ, v_which, lf_i64_const(k, 0), ""), v_a, v, "array");
}

// A small table in code: (table >> 4 * i) & 15.
static LLVMValueRef table(lf_kernel *k, uint64_t words, LLVMValueRef v_i) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v = LLVMBuildLShr(b, lf_i64_const(k, (int64_t)words), LLVMBuildShl(b, v_i, lf_i64_const(k, 2), ""), "");
    return LLVMBuildAnd(b, v, lf_i64_const(k, 15), "");
}

// What joins what after a step: c into b after the last, b into a after the fourth and the last. One copy of the loop serves both.
static void merge_after(lf_kernel *k, chunk_context *c, LLVMValueRef v_step, LLVMValueRef v_width) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_one = lf_i64_const(k, 1);
    lf_partials to[MAX_REDUCTIONS], from[MAX_REDUCTIONS];
    lf_loop_blocks merges;
    LLVMValueRef v_merge = lf_for_begin(k, &merges, v_zero, lf_i64_const(k, 2), v_one, "merges");
    LLVMValueRef v_first = LLVMBuildICmp(b, LLVMIntEQ, v_merge, v_zero, "");
    LLVMValueRef v_steps = LLVMBuildSelect(b, v_first, lf_i64_const(k, 1 << 7), lf_i64_const(k, 1 << 3 | 1 << 7), "");
    LLVMValueRef v_bit = LLVMBuildAnd(b, LLVMBuildLShr(b, v_steps, v_step, ""), v_one, "");
    for (unsigned i = 0; i < c->n; i++) {
        to[i] = from[i] = (lf_partials){NULL, NULL};
        to[i].v_values = LLVMBuildSelect(b, v_first, c->b[i].v_values, c->a[i].v_values, "to");
        from[i].v_values = LLVMBuildSelect(b, v_first, c->c[i].v_values, c->b[i].v_values, "from");
        if (!c->a[i].v_positions) continue;
        to[i].v_positions = LLVMBuildSelect(b, v_first, c->b[i].v_positions, c->a[i].v_positions, "to");
        from[i].v_positions = LLVMBuildSelect(b, v_first, c->c[i].v_positions, c->b[i].v_positions, "from");
    }
    lf_if_blocks now;
    lf_if_begin(k, &now, LLVMBuildICmp(b, LLVMIntNE, v_bit, v_zero, ""), "merge_now");
    merge(k, c, to, from, v_width);
    lf_if_end(k, &now);
    lf_for_end(k, &merges, LF_HINT_ROLLED);
}

// What the class promises of a row's columns.
static bool in_one_chunk(const lf_kernel *k) { return k->cls.chunks == 1; }
static bool in_one_span(const lf_kernel *k) { return k->cls.spans == 1; }

// The tile's elements of all spans, bits 12, 11, 10 of the index, into c->a. v_width: of an array that has all v_there of the first.
// Spans are read in the order 0 4 2 6 1 5 3 7; x4 adds to x0, x2 and x6 make a second sum that joins the first, and so on: with the
// arrays a, b, c the sum of bits 12, 11, 10 is ((0+4)+(2+6)) + ((1+5)+(3+7)).
static void gather_spans(lf_kernel *k, chunk_context *c, LLVMValueRef v_first, LLVMValueRef v_width) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_one = lf_i64_const(k, 1);
    lf_loop_blocks spans;
    LLVMValueRef v_spans = LLVMBuildAdd(b, LLVMBuildSub(b, c->v_columns, v_first, ""), lf_i64_const(k, LF_SPAN - 1), "");
    LLVMValueRef v_single = LLVMBuildICmp(b, LLVMIntSLT, v_spans, lf_i64_const(k, 2 * LF_SPAN), "");
    LLVMValueRef v_steps = LLVMBuildSelect(b, v_single, v_one, lf_i64_const(k, LF_SPANS), "steps");
    LLVMValueRef v_step = lf_for_begin(k, &spans, v_zero, v_steps, v_one, "span");
    lf_partials to[MAX_REDUCTIONS];
    LLVMValueRef v_which = table(k, 0x22111100, v_step); // a a b b b b c c
    for (unsigned i = 0; i < c->n; i++) {
        to[i].v_values = pick_array(k, v_which, c->a[i].v_values, c->b[i].v_values, c->c[i].v_values);
        to[i].v_positions = c->a[i].v_positions
                                ? pick_array(k, v_which, c->a[i].v_positions, c->b[i].v_positions, c->c[i].v_positions)
                                : NULL;
    }
    LLVMValueRef v_starts =
        LLVMBuildAnd(b, LLVMBuildLShr(b, lf_i64_const(k, 0x55), v_step, ""), v_one, ""); // steps 0, 2, 4, 6 start an array
    lf_if_blocks start;
    lf_if_begin(k, &start, LLVMBuildICmp(b, LLVMIntNE, v_starts, v_zero, ""), "start");
    clear(k, c, to, v_width);
    lf_if_end(k, &start);
    LLVMValueRef v_span = table(k, 0x73516240, v_step);
    LLVMValueRef v_from = LLVMBuildAdd(b, v_first, LLVMBuildMul(b, v_span, lf_i64_const(k, LF_SPAN), ""), "from");
    LLVMValueRef v_n = least(k, most(k, LLVMBuildSub(b, c->v_columns, v_from, ""), v_zero), lf_i64_const(k, TILE));
    gather_span(k, c, to, v_from, v_n);
    merge_after(k, c, v_step, v_width);
    lf_for_end(k, &spans, LF_HINT_NONE);
}

// One tile of a chunk, across spans and then bits 0 … 7 within the tile; the result goes to tiles[v_tile].
static void emit_tile(lf_kernel *k, chunk_context *c, LLVMValueRef v_chunk_first, LLVMValueRef v_tile) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_one = lf_i64_const(k, 1), v_tile_size = lf_i64_const(k, TILE);
    LLVMValueRef v_first = LLVMBuildAdd(b, v_chunk_first, LLVMBuildMul(b, v_tile, v_tile_size, ""), "tile_first");
    LLVMValueRef v_there = least(k, LLVMBuildSub(b, c->v_columns, v_first, ""), v_tile_size); // elements of span 0, > 0
    // The power of two from which the pairs are folded; what lies past v_there is neutral. At least FEWEST, written so that LLVM sees
    // that loops over it need no remainder.
    LLVMTypeRef l_types[1] = {k->l_i64};
    LLVMValueRef ctlz = LLVMGetIntrinsicDeclaration(k->e->module, LLVMLookupIntrinsicID("llvm.ctlz", 9), l_types, 1);
    LLVMValueRef v_last = LLVMBuildOr(b, LLVMBuildSub(b, v_there, v_one, ""), lf_i64_const(k, FEWEST - 1), "");
    LLVMValueRef v_ctlz_args[2] = {v_last, LLVMConstInt(LLVMInt1TypeInContext(k->e->context), 1, false)};
    LLVMValueRef v_lead = LLVMBuildCall2(b, LLVMGlobalGetValueType(ctlz), ctlz, v_ctlz_args, 2, "");
    LLVMValueRef v_doublings = LLVMBuildSub(b, lf_i64_const(k, 64 - FEWEST_BITS), v_lead, "");
    LLVMValueRef v_width = LLVMBuildShl(b, lf_i64_const(k, FEWEST), v_doublings, "width");
    LLVMSetNUW(v_width, true);
    if (in_one_span(k)) {
        clear(k, c, c->a, v_width);
        gather_span(k, c, c->a, v_first, v_there);
    } else {
        gather_spans(k, c, v_first, v_width);
    }
    fold_pairs(k, c, c->a, v_width);
    for (unsigned i = 0; i < c->n; i++)
        lf_partials_store(k, stmt(k, c, i), c->tiles[i], v_tile, lf_partials_load(k, stmt(k, c, i), c->a[i], v_zero, false),
                          false);
}

// Tiles are bits 8 and 9 of the index.
static void emit_chunk(lf_kernel *k, void *context, LLVMValueRef v_chunk, lf_partial *out) {
    chunk_context *c = context;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_one = lf_i64_const(k, 1);
    LLVMValueRef v_first = LLVMBuildMul(b, v_chunk, lf_i64_const(k, LF_CHUNK), "chunk_first");
    LLVMValueRef v_left = LLVMBuildSub(b, c->v_columns, v_first, "");
    LLVMValueRef v_tiles = LLVMBuildLShr(b, LLVMBuildAdd(b, v_left, lf_i64_const(k, TILE - 1), ""), lf_i64_const(k, 8), "");
    v_tiles = least(k, v_tiles, lf_i64_const(k, TILES));
    lf_loop_blocks tiles;
    LLVMValueRef v_tile = lf_for_begin(k, &tiles, v_zero, v_tiles, v_one, "tile");
    emit_tile(k, c, v_first, v_tile);
    lf_for_end(k, &tiles, LF_HINT_NONE);
    for (unsigned i = 0; i < c->n; i++) {
        const lf_stmt *s = stmt(k, c, i);
        lf_partial p[TILES];
        for (unsigned t = 0; t < TILES; t++) {
            LLVMValueRef v_there = LLVMBuildICmp(b, LLVMIntSLT, lf_i64_const(k, t), v_tiles, "");
            lf_partial loaded = lf_partials_load(k, s, c->tiles[i], lf_i64_const(k, t), false);
            p[t] = lf_partial_select(k, s, v_there, loaded, lf_neutral(k, s));
        }
        out[i] = lf_combine(k, s, lf_combine(k, s, p[0], p[1]), lf_combine(k, s, p[2], p[3]));
    }
}

static lf_status emit_reducing_pass(lf_kernel *k, unsigned pass, const lf_stmt_id *ids, unsigned n) {
    chunk_context *c = lf_alloc_zero(k->l->allocator, sizeof *c);
    if (!c) return lf_out_of_memory();
    *c = (chunk_context){.pass = pass, .n = n, .ids = ids, .v_columns = lf_columns(k)};
    for (unsigned i = 0; i < n; i++) {
        const lf_stmt *s = stmt(k, c, i);
        c->a[i] = lf_partials_alloca(k, s, TILE, "a");
        if (!in_one_span(k)) {
            c->b[i] = lf_partials_alloca(k, s, TILE, "b");
            c->c[i] = lf_partials_alloca(k, s, TILE, "c");
        }
        c->tiles[i] = lf_partials_alloca(k, s, TILES, "tiles");
    }
    lf_partial out[MAX_REDUCTIONS];
    if (in_one_chunk(k))
        emit_chunk(k, c, lf_i64_const(k, 0), out);
    else
        lf_stream_chunks(k, ids, n, c->v_columns, emit_chunk, c, out);
    for (unsigned i = 0; i < n; i++) lf_set_reduced(k, ids[i], 0, out[i]);
    lf_free(k->l->allocator, c);
    return NULL;
}

static lf_status emit_rows(lf_kernel *k, LLVMValueRef v_begin, LLVMValueRef v_end) {
    lf_loop_blocks rows;
    LLVMValueRef v_row = lf_for_begin(k, &rows, v_begin, v_end, lf_i64_const(k, 1), "row");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    lf_team alone = {lf_i64_const(k, 0), lf_i64_const(k, 1), NULL};
    if (k->loop->form == LF_LOOP_SORT) lf_emit_sort_row(k, &alone, v_row);
    if (k->loop->form == LF_LOOP_SCATTER) lf_emit_scatter_row(k);
    bool passes = k->loop->form == LF_LOOP_PLAIN || k->loop->form == LF_LOOP_SERIAL;
    for (unsigned pass = 0; passes && pass <= k->loop->passes; pass++) {
        lf_emit_rows_of_level(k, pass, NULL);
        if (pass == k->loop->passes) break;
        lf_stmt_id ids[MAX_REDUCTIONS];
        unsigned n = lf_pass_reductions(k, pass, ids, MAX_REDUCTIONS);
        if (k->loop->form == LF_LOOP_SERIAL)
            LF_TRY(lf_emit_serial_pass(k, pass));
        else if (n)
            LF_TRY(emit_reducing_pass(k, pass, ids, n));
        else
            emit_plain_pass(k, pass);
        lf_kernel_forget_columns(k);
    }
    lf_for_end(k, &rows, LF_HINT_NONE);
    return NULL;
}

lf_status lf_kernel_emit_cpu(lf_kernel *k) {
    LLVMContextRef c = k->e->context;
    LLVMTypeRef params[3] = {LLVMPointerTypeInContext(c, 0), LLVMInt64TypeInContext(c), LLVMInt64TypeInContext(c)};
    LF_TRY(lf_kernel_begin(k, LLVMFunctionType(LLVMVoidTypeInContext(c), params, 3, false)));
    LF_TRY(make_access_group(k));
    LLVMBasicBlockRef b_start = lf_block(k, "start");
    LLVMPositionBuilderAtEnd(k->e->builder, b_start);
    LLVMValueRef v_begin = LLVMGetParam(k->v_function, 1), v_end = LLVMGetParam(k->v_function, 2);
    if (k->loop->passes)
        LF_TRY(emit_rows(k, v_begin, v_end));
    else
        emit_pointwise(k, v_begin, v_end);
    LLVMBuildRetVoid(k->e->builder);
    LLVMPositionBuilderAtEnd(k->e->builder, k->b_entry);
    LLVMBuildBr(k->e->builder, b_start);
    return NULL;
}
