// Matrix products on a GPU: a block takes a square tile of the result, and walks the sum's columns in blocks that lie in shared memory; a
// thread has a few rows by a few columns of the tile. Whatever the operands are computed from is computed while their blocks are filled;
// what is made of the result is made at the end, where it is stored.
//
// Floats in exact mode are added in the canonical order. Columns are visited so that this order is a plain binary counter: spans of 1024
// (bits 12, 11, 10 of the column) run fastest, then bits 0, 1, …, then chunks. What STEP visits come to is added up in registers; sums
// of more wait, a level each, in local memory. Everything else is added as it comes.
#include "codegen/kernel/gpu.h"

enum { SIDE = 16, THREADS = SIDE * SIDE, MOST_SHARE = 4, PAD = 4, LEVELS = 24, MOST_STEP = 32, STEP_LEVELS = 6, CELLS = 16 };
enum { LINES = 8, MOST_PASSES = 2, MOST_EIGHTS = 8 };

typedef struct product {
    lf_kernel *k;
    const lf_stmt *sum;
    lf_stmt_id sum_id, operand[2]; // left: over rows m and k; right: over n and k
    lf_dtype dtype;
    unsigned size;        // bytes of an element in shared memory
    unsigned share;       // rows (and columns) of the result that a thread has
    unsigned tile, depth; // rows of a tile; columns of the sum in shared memory at once
    unsigned step;        // of these, added up in registers
    unsigned spans;       // side by side in a block: 1, 2, 4 or 8
    bool ordered;
    LLVMValueRef v_shared, v_thread, v_row, v_column; // of the thread in the block's square; i64
    LLVMValueRef v_extent[2], v_first[2];             // m, n: of the result; of the tile's first
    LLVMValueRef v_columns;
    LLVMValueRef v_index[LF_MAX_AXES]; // along the axes before m
    lf_partials x, level;              // CELLS elements; LEVELS times as many
    LLVMValueRef v_count;              // alloca: sums that were pushed
} product;

static LLVMValueRef constant(product *p, int64_t v) { return lf_i64_const(p->k, v); }
static LLVMValueRef add(product *p, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildAdd(p->k->e->builder, a, b, ""); }
static LLVMValueRef mul(product *p, LLVMValueRef a, int64_t b) {
    return LLVMBuildMul(p->k->e->builder, a, constant(p, b), "");
}
static LLVMValueRef quotient(product *p, LLVMValueRef a, int64_t b) {
    return LLVMBuildUDiv(p->k->e->builder, a, constant(p, b), "");
}
static LLVMValueRef rest(product *p, LLVMValueRef a, int64_t b) {
    return LLVMBuildURem(p->k->e->builder, a, constant(p, b), "");
}
static LLVMValueRef less(product *p, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildICmp(p->k->e->builder, LLVMIntSLT, a, b, "");
}
static LLVMValueRef least(product *p, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(p->k->e->builder, less(p, a, b), a, b, "");
}

// ---- where things are ------------------------------------------------------------------------------------------------------------------

static unsigned pitch(const product *p) { return p->tile + PAD; }

// Line `line` (a column of the sum) and place in it (a row or column of the result) of an operand's block.
static LLVMValueRef shared_at(product *p, unsigned side, LLVMValueRef v_line, LLVMValueRef v_place) {
    LLVMValueRef v = mul(p, add(p, mul(p, v_line, pitch(p)), v_place), p->size);
    v = add(p, v, constant(p, (int64_t)side * p->depth * pitch(p) * p->size));
    return LLVMBuildGEP2(p->k->e->builder, LLVMInt8TypeInContext(p->k->e->context), p->v_shared, &v, 1, "");
}

// Lines are in order of spans, then columns, so that neighbours in memory are neighbours: which one a visit finds its column in.
static unsigned line_of_visit(const product *p, unsigned visit) {
    unsigned span = 0;
    for (unsigned bit = 1; bit < p->spans; bit *= 2) span = 2 * span + (visit & bit ? 1 : 0);
    return span * (p->depth / p->spans) + visit / p->spans;
}

// The first load that an operand depends on.
static const lf_access *first_access(const lf_kernel *k, lf_stmt_id operand) {
    while (operand != LF_NO_STMT) {
        const lf_stmt *s = &k->loop->stmts[operand];
        if (s->kind == LF_STMT_LOAD) return &k->loop->accesses[s->number];
        operand = s->n_args ? s->args[0] : LF_NO_STMT;
    }
    return NULL;
}

static LLVMValueRef magnitude(product *p, LLVMValueRef v) {
    LLVMBuilderRef b = p->k->e->builder;
    return LLVMBuildSelect(b, less(p, v, constant(p, 0)), LLVMBuildNeg(b, v, ""), v, "");
}

// Neighbouring threads take neighbouring columns of the sum where these are neighbours in memory, else of the result.
static LLVMValueRef goes_along_sum(product *p, unsigned side) {
    lf_kernel *k = p->k;
    const lf_access *a = first_access(k, p->operand[side]);
    if (!a) return LLVMConstInt(LLVMInt1TypeInContext(k->e->context), 1, false);
    unsigned own = k->loop->rows - 2u + side, sum = k->loop->rows;
    LLVMValueRef v_own = magnitude(p, lf_word(k, a->word + 1 + own)), v_sum = magnitude(p, lf_word(k, a->word + 1 + sum));
    return LLVMBuildICmp(k->e->builder, LLVMIntSLE, v_sum, v_own, "along_sum");
}

// ---- blocks of the operands ------------------------------------------------------------------------------------------------------------

static lf_register pad(product *p, unsigned side) { // -0 · 1: the sum's neutral element
    lf_scalar s = {0};
    if (p->dtype == LF_F32) s.f32 = side ? 1.0f : -0.0f;
    if (p->dtype == LF_F64) s.f64 = side ? 1.0 : -0.0;
    return lf_emit_constant(p->k->e, p->dtype, &s);
}

// LINES lines of an operand's block take one or two passes of all threads, each of which has one element in a pass. The next lines are a
// constant away, in memory and in shared memory, so that a thread keeps few addresses.
static unsigned passes(const product *p) { return LINES * p->tile / THREADS; }

// The column of the sum, after the block's first, that a line is of: of a sum of lines the sum.
static LLVMValueRef column_of_line(product *p, LLVMValueRef v_line) {
    int64_t run = p->depth / p->spans;
    return add(p, rest(p, v_line, run), mul(p, quotient(p, v_line, run), LF_SPAN));
}
static int64_t column_of_eight(const product *p, unsigned eight) {
    unsigned run = p->depth / p->spans, line = eight * LINES;
    return line % run + (int64_t)(line / run) * LF_SPAN;
}

static void place_row(product *p, unsigned side, LLVMValueRef v_own) {
    lf_kernel *k = p->k;
    lf_kernel_use_copy(k, 0);
    for (unsigned r = 0; r + 2 < k->rows; r++) k->at->v_row[r] = p->v_index[r];
    k->at->v_row[k->rows - 2 + side] = v_own;
    k->at->v_row[k->rows - 1 - side] = constant(p, 0);
    lf_kernel_begin_row(k);
}

// The operand `after` columns behind v_near. Whole blocks have all their columns: their elements lie as far apart as the strides say.
static lf_register evaluate(product *p, unsigned side, LLVMValueRef v_near, int64_t after, bool whole) {
    lf_kernel *k = p->k;
    LLVMValueRef v_k = add(p, v_near, constant(p, after)), v_there = whole ? NULL : less(p, v_k, p->v_columns);
    k->copies[0].v_column[0] = v_near;
    lf_kernel_use_copy(k, 1);
    lf_kernel_forget_columns(k);
    k->at->v_column[0] = whole ? v_k : LLVMBuildSelect(k->e->builder, v_there, v_k, constant(p, 0), "");
    k->at->beside = whole ? after : 0;
    lf_emit_statement(k, p->operand[side]);
    lf_register x = lf_reg(k, p->operand[side], 0);
    return whole ? x : lf_emit_select(k->e, v_there, x, pad(p, side));
}

// Fills an operand's block of columns [v_first, …) of each span. All loads come before the first store.
static void fill(product *p, unsigned side, LLVMValueRef v_first, bool whole) {
    lf_kernel *k = p->k;
    LLVMBuilderRef b = k->e->builder;
    unsigned eights = p->depth / LINES;
    LLVMValueRef v_along = goes_along_sum(p, side), v_last = add(p, p->v_extent[side], constant(p, -1)), v_at[MOST_PASSES];
    lf_register x[MOST_PASSES][MOST_EIGHTS];
    for (unsigned pass = 0; pass < passes(p); pass++) {
        LLVMValueRef v = add(p, p->v_thread, constant(p, (int64_t)pass * THREADS));
        LLVMValueRef v_line = LLVMBuildSelect(b, v_along, rest(p, v, LINES), quotient(p, v, p->tile), "line"),
                     v_place = LLVMBuildSelect(b, v_along, quotient(p, v, LINES), rest(p, v, p->tile), "place");
        v_at[pass] = shared_at(p, side, v_line, v_place);
        place_row(p, side, least(p, add(p, p->v_first[side], v_place), v_last));
        LLVMValueRef v_near = add(p, v_first, column_of_line(p, v_line));
        for (unsigned i = 0; i < eights; i++) x[pass][i] = evaluate(p, side, v_near, column_of_eight(p, i), whole);
    }
    lf_kernel_use_copy(k, 0);
    for (unsigned i = 0; i < passes(p) * eights; i++) {
        unsigned pass = i % passes(p), eight = i / passes(p);
        LLVMValueRef v_far = constant(p, (int64_t)eight * LINES * pitch(p) * p->size);
        lf_emit_store(k->e, p->dtype, x[pass][eight],
                      LLVMBuildGEP2(b, LLVMInt8TypeInContext(k->e->context), v_at[pass], &v_far, 1, ""));
    }
}

// A thread's elements of a line.
static void take(product *p, unsigned side, LLVMValueRef v_line, lf_register *out) {
    lf_kernel *k = p->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_at = shared_at(p, side, v_line, mul(p, side ? p->v_column : p->v_row, p->share));
    LLVMTypeRef l_element = lf_memory_type(k->e, p->dtype), l_byte = LLVMInt8TypeInContext(k->e->context);
    unsigned wide = p->size * p->share <= 16 ? p->share : 16 / p->size;
    bool whole = !lf_is_complex(p->dtype) && p->dtype != LF_BOOL;
    for (unsigned i = 0; i < p->share; i += whole ? wide : 1) {
        LLVMValueRef v_bytes = constant(p, (int64_t)i * p->size), v_from = LLVMBuildGEP2(b, l_byte, v_at, &v_bytes, 1, "");
        if (!whole) {
            out[i] = lf_emit_load(k->e, p->dtype, v_from);
            continue;
        }
        LLVMValueRef v = LLVMBuildLoad2(b, LLVMVectorType(l_element, wide), v_from, "elements");
        LLVMSetAlignment(v, wide * p->size);
        for (unsigned j = 0; j < wide; j++)
            out[i + j] = (lf_register){LLVMBuildExtractElement(b, v, LLVMConstInt(k->l_i32, j, false), ""), NULL};
    }
}

// ---- sums ------------------------------------------------------------------------------------------------------------------------------

static unsigned cells(const product *p) { return p->share * p->share; }

static lf_partial x_load(product *p, unsigned cell) {
    return lf_partials_load(p->k, p->sum, p->x, constant(p, cell), false);
}
static void x_store(product *p, unsigned cell, lf_partial v) {
    lf_partials_store(p->k, p->sum, p->x, constant(p, cell), v, false);
}
static LLVMValueRef level_index(product *p, LLVMValueRef v_level, unsigned cell) {
    return add(p, mul(p, v_level, CELLS), constant(p, cell));
}

// Of a counter in local memory, a thread's cells side by side.
static void merge(void *context, lf_level level) {
    product *p = context;
    for (unsigned c = 0; c < cells(p); c++) {
        lf_partial low = lf_partials_load(p->k, p->sum, p->level, level_index(p, level.v, c), false);
        x_store(p, c, lf_combine(p->k, p->sum, low, x_load(p, c)));
    }
}

static void keep(void *context, lf_level level) {
    product *p = context;
    for (unsigned c = 0; c < cells(p); c++)
        lf_partials_store(p->k, p->sum, p->level, level_index(p, level.v, c), x_load(p, c), false);
}

static void push(product *p) {
    LLVMBuilderRef b = p->k->e->builder;
    LLVMValueRef v_count = LLVMBuildLoad2(b, p->k->l_i64, p->v_count, "count");
    LLVMBuildStore(b, add(p, v_count, constant(p, 1)), p->v_count);
    lf_counter_push_by_loop(p->k, &(lf_counter){p, merge, keep}, v_count);
}

static void clear(product *p) {
    for (unsigned c = 0; c < cells(p); c++) x_store(p, c, lf_neutral(p->k, p->sum));
}

static void flush(product *p) {
    LLVMValueRef v_count = LLVMBuildLoad2(p->k->e->builder, p->k->l_i64, p->v_count, "count");
    clear(p);
    lf_counter_rest_by_loop(p->k, &(lf_counter){p, merge, keep}, v_count, LEVELS, LF_HINT_ROLLED);
}

// `step` visits, of which the first finds its column in a line v_line below its usual one. v_left: columns of a span that are left.
static void add_step(product *p, LLVMValueRef v_line, LLVMValueRef v_k) {
    lf_kernel *k = p->k;
    lf_partial waiting[STEP_LEVELS][CELLS];
    for (unsigned c = 0; !p->ordered && c < cells(p); c++) waiting[0][c] = x_load(p, c);
    unsigned top = 0;
    while (p->ordered && 1u << top < p->step) top++;
    for (unsigned visit = 0; visit < p->step; visit++) {
        lf_register a[MOST_SHARE], b[MOST_SHARE];
        LLVMValueRef v_at = add(p, v_line, constant(p, line_of_visit(p, visit))), v_there = NULL;
        take(p, 0, v_at, a);
        take(p, 1, v_at, b);
        if (lf_is_complex(p->dtype)) { // no two factors have -0 - 0j for a product
            unsigned run = p->depth / p->spans, line = line_of_visit(p, visit);
            v_there =
                less(p, add(p, v_k, constant(p, (int64_t)(line % run) + (int64_t)(line / run) * LF_SPAN)), p->v_columns);
        }
        for (unsigned c = 0; c < cells(p); c++) {
            lf_partial x = {lf_emit_simple(k->e, LF_OP_MUL, p->dtype, a[c / p->share], b[c % p->share]), NULL};
            if (v_there) x = lf_partial_select(k, p->sum, v_there, x, lf_neutral(k, p->sum));
            unsigned level = 0;
            if (!p->ordered) x = lf_combine(k, p->sum, waiting[0][c], x);
            for (; p->ordered && visit >> level & 1; level++) x = lf_combine(k, p->sum, waiting[level][c], x);
            waiting[level][c] = x;
        }
    }
    for (unsigned c = 0; c < cells(p); c++) x_store(p, c, waiting[top][c]);
    if (p->ordered) push(p);
}

static void add_block(product *p, LLVMValueRef v_chunk, LLVMValueRef v_column) {
    lf_kernel *k = p->k;
    LLVMValueRef v_from = add(p, v_chunk, v_column),
                 v_last = add(p, v_from, constant(p, column_of_eight(p, p->depth / LINES - 1) + LINES - 1));
    LLVMValueRef v_whole = less(p, v_last, p->v_columns);
    lf_gpu_barrier(k); // the last block has been read
    for (unsigned whole = 0; whole < 2; whole++) {
        lf_if_blocks is;
        lf_if_begin(k, &is, whole ? v_whole : LLVMBuildNot(k->e->builder, v_whole, ""), whole ? "whole" : "end");
        for (unsigned side = 0; side < 2; side++) fill(p, side, v_from, whole);
        lf_if_end(k, &is);
    }
    lf_gpu_barrier(k);
    if (p->step == p->depth) {
        add_step(p, constant(p, 0), v_from);
        return;
    }
    lf_loop_blocks steps;
    LLVMValueRef v_line =
        lf_for_begin(k, &steps, constant(p, 0), constant(p, p->depth / p->spans), constant(p, p->step / p->spans), "step");
    add_step(p, v_line, add(p, v_from, v_line));
    lf_for_end(k, &steps, LF_HINT_ROLLED);
}

// ---- a tile ----------------------------------------------------------------------------------------------------------------------------

// Results go through shared memory, so that neighbouring threads store neighbours.
static void store_tile(product *p) {
    lf_kernel *k = p->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMTypeRef l_byte = LLVMInt8TypeInContext(k->e->context);
    lf_gpu_barrier(k);
    for (unsigned c = 0; c < cells(p); c++) {
        LLVMValueRef v_row = add(p, mul(p, p->v_row, p->share), constant(p, c / p->share)),
                     v_column = add(p, mul(p, p->v_column, p->share), constant(p, c % p->share));
        LLVMValueRef v = mul(p, add(p, mul(p, v_row, p->tile), v_column), p->size);
        lf_emit_store(k->e, p->dtype, x_load(p, c).value, LLVMBuildGEP2(b, l_byte, p->v_shared, &v, 1, ""));
    }
    lf_gpu_barrier(k);
    lf_loop_blocks all;
    LLVMValueRef v_cell =
        lf_for_begin(k, &all, p->v_thread, constant(p, (int64_t)p->tile * p->tile), constant(p, THREADS), "cell");
    LLVMValueRef v_at[2] = {add(p, p->v_first[0], quotient(p, v_cell, p->tile)),
                            add(p, p->v_first[1], rest(p, v_cell, p->tile))};
    lf_if_blocks inside;
    lf_if_begin(k, &inside, LLVMBuildAnd(b, less(p, v_at[0], p->v_extent[0]), less(p, v_at[1], p->v_extent[1]), ""),
                "inside");
    for (unsigned r = 0; r < k->rows; r++) k->at->v_row[r] = r + 2 < k->rows ? p->v_index[r] : v_at[r + 2 - k->rows];
    lf_kernel_begin_row(k);
    LLVMValueRef v_bytes = mul(p, v_cell, p->size);
    lf_partial sum = {lf_emit_load(k->e, p->dtype, LLVMBuildGEP2(b, l_byte, p->v_shared, &v_bytes, 1, "")), NULL};
    lf_set_reduced(k, p->sum_id, 0, sum);
    lf_emit_rows_of_level(k, 0, NULL);
    lf_emit_rows_of_level(k, 1, NULL);
    lf_if_end(k, &inside);
    lf_for_end(k, &all, LF_HINT_NONE);
}

static void emit_tile(product *p) {
    lf_kernel *k = p->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMBuildStore(b, constant(p, 0), p->v_count);
    clear(p);
    lf_loop_blocks chunks, blocks;
    LLVMValueRef v_chunk = lf_for_begin(k, &chunks, constant(p, 0), p->v_columns, constant(p, (int64_t)LF_CHUNK), "chunk");
    LLVMValueRef v_left = LLVMBuildSub(b, p->v_columns, v_chunk, "left");
    LLVMValueRef v_column = lf_for_begin(k, &blocks, constant(p, 0), least(p, v_left, constant(p, LF_SPAN)),
                                         constant(p, p->depth / p->spans), "column");
    add_block(p, v_chunk, v_column);
    lf_for_end(k, &blocks, LF_HINT_ROLLED);
    lf_for_end(k, &chunks, LF_HINT_ROLLED);
    if (p->ordered) flush(p);
    store_tile(p);
}

lf_status lf_gpu_emit_product(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    const lf_loop *loop = k->loop;
    if (loop->keys[LF_PRODUCT_SUM] == LF_NO_STMT || k->rows < 2 || k->cols != 1 || !k->cls.spans)
        return lf_error(k->l->allocator, LF_INTERNAL,
                        "kernel %s: a class of matrix products with %u rows, %u columns, %u spans", loop->name, k->rows,
                        k->cols, k->cls.spans);
    product p = {.k = k,
                 .sum_id = loop->keys[LF_PRODUCT_SUM],
                 .operand = {loop->keys[LF_PRODUCT_LEFT], loop->keys[LF_PRODUCT_RIGHT]},
                 .spans = k->cls.spans,
                 .v_columns = lf_columns(k)};
    p.sum = &loop->stmts[p.sum_id];
    p.dtype = p.sum->compute;
    p.size = lf_dtype_bytes(p.dtype);
    p.share = p.size > 8 ? 2 : MOST_SHARE;
    p.tile = SIDE * p.share;
    p.depth = p.size > 8 ? 16 : p.size > 4 ? 32 : 64;
    p.step = p.depth < MOST_STEP || lf_is_complex(p.dtype) ? 16 : MOST_STEP;
    p.ordered = (lf_is_float(p.dtype) || lf_is_complex(p.dtype)) && !k->e->fast;
    unsigned operands = 2 * p.depth * pitch(&p) * p.size, results = p.tile * p.tile * p.size;
    out->block = THREADS;
    out->rows_a_block = 1;
    out->shared_bytes = operands > results ? operands : results;
    p.v_shared = lf_gpu_shared_memory(k, out->shared_bytes);
    p.x = lf_partials_alloca(k, p.sum, CELLS, "x");
    if (p.ordered) p.level = lf_partials_alloca(k, p.sum, CELLS * LEVELS, "level");
    p.v_count = lf_alloca(k, k->l_i64, "pushed");
    p.v_thread = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x");
    p.v_row = quotient(&p, p.v_thread, SIDE);
    p.v_column = rest(&p, p.v_thread, SIDE);
    LLVMValueRef v_tiles[2], v_all = constant(&p, 1);
    for (unsigned side = 0; side < 2; side++) {
        p.v_extent[side] = lf_row_extent(k, k->rows - 2 + side);
        v_tiles[side] = quotient(&p, add(&p, p.v_extent[side], constant(&p, p.tile - 1)), p.tile);
        v_all = LLVMBuildMul(b, v_all, v_tiles[side], "tiles");
    }
    for (unsigned r = 0; r + 2 < k->rows; r++) v_all = LLVMBuildMul(b, v_all, lf_row_extent(k, r), "tiles");
    lf_loop_blocks tiles;
    LLVMValueRef v_tile = lf_for_begin(k, &tiles, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), v_all,
                                       lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), "tile");
    LLVMValueRef v_down = LLVMBuildUDiv(b, v_tile, v_tiles[1], ""), v_batch = LLVMBuildUDiv(b, v_down, v_tiles[0], "");
    p.v_first[1] = mul(&p, LLVMBuildURem(b, v_tile, v_tiles[1], ""), p.tile);
    p.v_first[0] = mul(&p, LLVMBuildURem(b, v_down, v_tiles[0], ""), p.tile);
    if (k->rows > 2) lf_split_index(k, v_batch, k->rows - 2, lf_row_extent, p.v_index);
    emit_tile(&p);
    lf_for_end(k, &tiles, LF_HINT_ROLLED);
    return NULL;
}
