// Sort and topk on a GPU: blocks share the rows. Tiles are sorted in shared memory, then runs are merged pass by pass, a block a tile of the
// merged run: two searches find what of both runs goes into it.
//
// What is sorted are records: the key as an unsigned number in the order wanted (NaN above all, -0 as 0; complemented where that order
// falls), then the position. So no two are equal, and equal elements stay in order. Keys of 32 bits and their positions are one word.
// Blocks take tiles of all passes by a counter, and wait only for tiles of the pass before, which were taken earlier; a counter a run tells
// how many of its tiles are there. Of topk's runs only as many elements as are asked for are ever merged.
#include "codegen/kernel/gpu.h"

enum { TILE = LFUSER_ABI_SORT_TILE, THREADS = 256, SHARE = TILE / THREADS, TICKET = 0, SPLITS = 8, HEAD = 32 };

typedef struct record {
    LLVMValueRef v[2]; // i64
} record;

typedef struct sorter {
    lf_kernel *k;
    const lf_stmt *key;
    unsigned words; // of a record
    LLVMValueRef v_shared, v_thread;
    LLVMValueRef v_n, v_rows, v_tiles, v_passes; // passes of merging
    LLVMValueRef v_row, v_tile, v_pass, v_count; // of the ticket
} sorter;

static LLVMValueRef constant(sorter *s, int64_t v) { return lf_i64_const(s->k, v); }
static LLVMValueRef add(sorter *s, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildAdd(s->k->e->builder, a, b, ""); }
static LLVMValueRef sub(sorter *s, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildSub(s->k->e->builder, a, b, ""); }
static LLVMValueRef mul(sorter *s, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildMul(s->k->e->builder, a, b, ""); }
static LLVMValueRef shl(sorter *s, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildShl(s->k->e->builder, a, b, ""); }
static LLVMValueRef shr(sorter *s, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildLShr(s->k->e->builder, a, b, ""); }
static LLVMValueRef and(sorter *s, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildAnd(s->k->e->builder, a, b, ""); }
static LLVMValueRef less(sorter *s, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildICmp(s->k->e->builder, LLVMIntSLT, a, b, "");
}
static LLVMValueRef equal(sorter *s, LLVMValueRef a, int64_t b) {
    return LLVMBuildICmp(s->k->e->builder, LLVMIntEQ, a, constant(s, b), "");
}
static LLVMValueRef pick(sorter *s, LLVMValueRef v_if, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(s->k->e->builder, v_if, a, b, "");
}
static LLVMValueRef least(sorter *s, LLVMValueRef a, LLVMValueRef b) { return pick(s, less(s, a, b), a, b); }
static LLVMValueRef most(sorter *s, LLVMValueRef a, LLVMValueRef b) { return pick(s, less(s, a, b), b, a); }
static LLVMValueRef within(sorter *s, LLVMValueRef v, LLVMValueRef v_most) {
    return least(s, most(s, v, constant(s, 0)), v_most);
}

// ---- records ---------------------------------------------------------------------------------------------------------------------------

static record choose(sorter *s, LLVMValueRef v_if, record a, record b) {
    record r = {{NULL}};
    for (unsigned w = 0; w < s->words; w++) r.v[w] = pick(s, v_if, a.v[w], b.v[w]);
    return r;
}

static LLVMValueRef precedes(sorter *s, record a, record b) {
    LLVMBuilderRef builder = s->k->e->builder;
    LLVMValueRef v = LLVMBuildICmp(builder, LLVMIntULT, a.v[0], b.v[0], "");
    if (s->words == 1) return v;
    LLVMValueRef v_level = LLVMBuildICmp(builder, LLVMIntEQ, a.v[0], b.v[0], "");
    return LLVMBuildOr(builder, v, and(s, v_level, LLVMBuildICmp(builder, LLVMIntULT, a.v[1], b.v[1], "")), "");
}

// Above every element of a row.
static record nothing(sorter *s) { return (record){{constant(s, -1), constant(s, -1)}}; }

static LLVMValueRef position_of(sorter *s, record r) {
    return s->words == 1 ? and(s, r.v[0], constant(s, UINT32_MAX)) : r.v[1];
}

static LLVMValueRef float_key(sorter *s, lf_register x, lf_dtype d) {
    lf_kernel *k = s->k;
    LLVMBuilderRef b = k->e->builder;
    lf_register none = {NULL, NULL};
    lf_scalar zero = {0};
    LLVMTypeRef l_bits = LLVMIntTypeInContext(k->e->context, lf_dtype_bytes(d) * 8);
    LLVMValueRef v_sign = LLVMConstInt(l_bits, 1ull << (lf_dtype_bytes(d) * 8 - 1), false);
    LLVMValueRef v_zero = lf_emit_simple(k->e, LF_OP_EQ, d, x, lf_emit_constant(k->e, d, &zero)).re;
    LLVMValueRef v = LLVMBuildBitCast(b, x.re, l_bits, "");
    v = pick(s, v_zero, LLVMConstNull(l_bits), v);
    LLVMValueRef v_negative = LLVMBuildICmp(b, LLVMIntSLT, v, LLVMConstNull(l_bits), "");
    v = pick(s, v_negative, LLVMBuildNot(b, v, ""), LLVMBuildOr(b, v, v_sign, ""));
    return pick(s, lf_emit_simple(k->e, LF_OP_ISNAN, d, x, none).re, LLVMConstAllOnes(l_bits), v);
}

static LLVMValueRef key_of(sorter *s, lf_register x) {
    lf_kernel *k = s->k;
    LLVMBuilderRef b = k->e->builder;
    lf_dtype d = s->key->dtype;
    LLVMTypeRef l_bits = s->words == 1 ? k->l_i32 : k->l_i64;
    if (lf_is_half(d)) x = lf_emit_cast(k->e, d, LF_F32, x), d = LF_F32;
    LLVMValueRef v;
    if (lf_is_float(d)) {
        v = float_key(s, x, d);
    } else if (d == LF_BOOL || lf_is_unsigned(d)) {
        v = LLVMBuildZExt(b, x.re, l_bits, "");
    } else {
        LLVMValueRef v_sign = LLVMConstInt(l_bits, 1ull << (s->words == 1 ? 31 : 63), false);
        v = LLVMBuildXor(b, LLVMBuildSExt(b, x.re, l_bits, ""), v_sign, "");
    }
    return k->loop->descending ? LLVMBuildNot(b, v, "") : v;
}

static record element(sorter *s, LLVMValueRef v_column) {
    lf_kernel *k = s->k;
    LLVMBuilderRef b = k->e->builder;
    lf_kernel_at_column(k, v_column);
    lf_emit_statement(k, k->loop->keys[LF_SORT_KEY]);
    LLVMValueRef v = key_of(s, lf_reg(k, k->loop->keys[LF_SORT_KEY], 0));
    if (s->words == 2) return (record){{v, v_column}};
    v = shl(s, LLVMBuildZExt(b, v, k->l_i64, ""), constant(s, 32));
    return (record){{LLVMBuildOr(b, v, v_column, ""), NULL}};
}

// ---- where they are --------------------------------------------------------------------------------------------------------------------

static LLVMValueRef bytes_at(sorter *s, LLVMValueRef v_base, LLVMValueRef v_bytes) {
    return LLVMBuildGEP2(s->k->e->builder, LLVMInt8TypeInContext(s->k->e->context), v_base, &v_bytes, 1, "");
}

// Shared memory: a head, then two tiles.
static LLVMValueRef shared_at(sorter *s, LLVMValueRef v_index, unsigned word) {
    LLVMValueRef v = mul(s, v_index, constant(s, 8));
    return bytes_at(s, s->v_shared, add(s, v, constant(s, HEAD + (int64_t)word * 2 * TILE * 8)));
}

static LLVMValueRef global_at(sorter *s, LLVMValueRef v_buffer, LLVMValueRef v_index, unsigned word) {
    LLVMBuilderRef b = s->k->e->builder;
    LLVMValueRef v_base = LLVMBuildIntToPtr(b, lf_word(s->k, s->k->loop->workspace_word), s->k->l_pointer, "records");
    LLVMValueRef v = add(s, mul(s, v_buffer, constant(s, s->words)), constant(s, word));
    v = add(s, mul(s, v, s->v_rows), s->v_row);
    return LLVMBuildGEP2(b, s->k->l_i64, v_base, (LLVMValueRef[]){add(s, mul(s, v, s->v_n), v_index)}, 1, "");
}

static record load_shared(sorter *s, LLVMValueRef v_index) {
    record r = {{NULL}};
    for (unsigned w = 0; w < s->words; w++)
        r.v[w] = LLVMBuildLoad2(s->k->e->builder, s->k->l_i64, shared_at(s, v_index, w), "record");
    return r;
}

static void store_shared(sorter *s, LLVMValueRef v_index, record r) {
    for (unsigned w = 0; w < s->words; w++) LLVMBuildStore(s->k->e->builder, r.v[w], shared_at(s, v_index, w));
}

static record load_global(sorter *s, LLVMValueRef v_buffer, LLVMValueRef v_index) {
    record r = {{NULL}};
    for (unsigned w = 0; w < s->words; w++)
        r.v[w] = LLVMBuildLoad2(s->k->e->builder, s->k->l_i64, global_at(s, v_buffer, v_index, w), "record");
    return r;
}

// ---- counters --------------------------------------------------------------------------------------------------------------------------

// Run r of pass p counts at (2r + 1) 2^p - 1: no two share a place.
static LLVMValueRef counter_at(sorter *s, LLVMValueRef v_pass, LLVMValueRef v_run) {
    lf_kernel *k = s->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_odd = add(s, mul(s, v_run, constant(s, 2)), constant(s, 1)),
                 v = sub(s, shl(s, v_odd, v_pass), constant(s, 1));
    v = add(s, v, mul(s, s->v_row, shl(s, constant(s, 2), s->v_passes)));
    v = add(s, v, constant(s, LFUSER_ABI_SCAN_HEAD / 4));
    LLVMValueRef v_base = LLVMBuildIntToPtr(b, lf_word(k, k->loop->scratch_word), k->l_pointer, "counters");
    return LLVMBuildGEP2(b, k->l_i32, v_base, &v, 1, "counter");
}

// In one thread.
static void wait_for_run(sorter *s, LLVMValueRef v_pass, LLVMValueRef v_run, LLVMValueRef v_elements) {
    LLVMValueRef v_tiles = shr(s, add(s, v_elements, constant(s, TILE - 1)), constant(s, __builtin_ctz(TILE)));
    lf_gpu_await(s->k, counter_at(s, v_pass, v_run), v_tiles);
}

static void count_tile(sorter *s) {
    lf_kernel *k = s->k;
    lf_if_blocks first;
    lf_if_begin(k, &first, equal(s, s->v_thread, 0), "tell");
    LLVMValueRef v =
        LLVMBuildAtomicRMW(k->e->builder, LLVMAtomicRMWBinOpAdd, counter_at(s, s->v_pass, shr(s, s->v_tile, s->v_pass)),
                           LLVMConstInt(k->l_i32, 1, false), LLVMAtomicOrderingRelease, false);
    lf_gpu_across_device(k, v);
    lf_if_end(k, &first);
}

// ---- a tile by itself ------------------------------------------------------------------------------------------------------------------

static LLVMValueRef place(sorter *s, unsigned i) { return add(s, s->v_thread, constant(s, (int64_t)i * THREADS)); }

// A bitonic network over as many places as the tile has elements, rounded up to a power of two.
static void sort_tile(sorter *s, LLVMValueRef v_first, LLVMValueRef v_count) {
    lf_kernel *k = s->k;
    LLVMBuilderRef b = k->e->builder;
    record own[SHARE];
    for (unsigned i = 0; i < SHARE; i++) {
        LLVMValueRef v_column = add(s, v_first, place(s, i)), v_there = less(s, place(s, i), v_count);
        own[i] = choose(s, v_there, element(s, pick(s, v_there, v_column, v_first)), nothing(s));
    }
    for (unsigned i = 0; i < SHARE; i++) store_shared(s, place(s, i), own[i]);
    lf_gpu_barrier(k);
    LLVMValueRef v_one = constant(s, 1);
    lf_loop_blocks sizes, strides;
    LLVMValueRef v_up = lf_for_begin(k, &sizes, v_one, constant(s, __builtin_ctz(TILE) + 1), v_one, "size");
    LLVMValueRef v_size = shl(s, v_one, v_up), v_needed = less(s, shr(s, v_size, v_one), v_count);
    LLVMValueRef v_down = lf_for_begin(k, &strides, v_one, pick(s, v_needed, add(s, v_up, v_one), v_one), v_one, "stride");
    LLVMValueRef v_stride = shr(s, v_size, v_down);
    for (unsigned i = 0; i < SHARE / 2; i++) {
        LLVMValueRef v_pair = place(s, i), v_low = and(s, v_pair, sub(s, v_stride, v_one));
        v_low = sub(s, mul(s, v_pair, constant(s, 2)), v_low);
        LLVMValueRef v_high = add(s, v_low, v_stride), v_rising = equal(s, and(s, v_low, v_size), 0);
        record low = load_shared(s, v_low), high = load_shared(s, v_high);
        LLVMValueRef v_swap = LLVMBuildICmp(b, LLVMIntEQ, precedes(s, high, low), v_rising, "swap");
        store_shared(s, v_low, choose(s, v_swap, high, low));
        store_shared(s, v_high, choose(s, v_swap, low, high));
    }
    lf_gpu_barrier(k);
    lf_for_end(k, &strides, LF_HINT_ROLLED);
    lf_for_end(k, &sizes, LF_HINT_ROLLED);
}

// ---- a tile of a merged run --------------------------------------------------------------------------------------------------------------

typedef struct runs {
    sorter *s;
    LLVMValueRef v_buffer, v_left, v_right;     // the first elements of both
    LLVMValueRef v_left_length, v_right_length; // that count
    LLVMValueRef v_diagonal;
} runs;

static LLVMValueRef crosses(void *context, LLVMValueRef v_i) {
    const runs *r = context;
    sorter *s = r->s;
    LLVMValueRef v_other = sub(s, sub(s, r->v_diagonal, constant(s, 1)), v_i);
    record left = load_global(s, r->v_buffer, add(s, r->v_left, v_i)),
           right = load_global(s, r->v_buffer, add(s, r->v_right, v_other));
    return LLVMBuildNot(s->k->e->builder, precedes(s, left, right), "");
}

typedef struct newcomer { // from the other run
    sorter *s;
    record own;
} newcomer;

static LLVMValueRef not_before(void *context, LLVMValueRef v_i) {
    const newcomer *n = context;
    return LLVMBuildNot(n->s->k->e->builder, precedes(n->s, load_shared(n->s, v_i), n->own), "");
}

// Elements [v_offset, …) of the merged run, into the second tile; returns how many there are. v_width: of the runs.
static LLVMValueRef merge_tile(sorter *s, LLVMValueRef v_start, LLVMValueRef v_offset, LLVMValueRef v_width) {
    lf_kernel *k = s->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_one = constant(s, 1), v_before = sub(s, s->v_pass, v_one), v_rest = sub(s, s->v_n, v_start);
    LLVMValueRef v_left = least(s, v_width, v_rest), v_right = within(s, sub(s, v_rest, v_width), v_width);
    lf_if_blocks first;
    lf_if_begin(k, &first, equal(s, s->v_thread, 0), "first");
    LLVMValueRef v_run = mul(s, shr(s, s->v_tile, s->v_pass), constant(s, 2));
    wait_for_run(s, v_before, v_run, v_left);
    wait_for_run(s, v_before, add(s, v_run, v_one), v_right);
    lf_if_end(k, &first);
    lf_gpu_barrier(k);
    LLVMValueRef v_most = and(s, add(s, s->v_count, constant(s, TILE - 1)), constant(s, -TILE)); // that were written
    runs r = {.s = s,
              .v_buffer = and(s, v_before, v_one),
              .v_left = v_start,
              .v_right = add(s, v_start, v_width),
              .v_left_length = least(s, v_left, v_most),
              .v_right_length = least(s, v_right, v_most)};
    LLVMValueRef v_total = add(s, r.v_left_length, r.v_right_length),
                 v_end = least(s, add(s, v_offset, constant(s, TILE)), v_total);
    lf_if_blocks two;
    lf_if_begin(k, &two, less(s, s->v_thread, constant(s, 2)), "split");
    r.v_diagonal = pick(s, equal(s, s->v_thread, 0), v_offset, v_end);
    LLVMValueRef v_split = lf_search(k, most(s, sub(s, r.v_diagonal, r.v_right_length), constant(s, 0)),
                                     least(s, r.v_diagonal, r.v_left_length), crosses, &r);
    LLVMBuildStore(b, v_split, bytes_at(s, s->v_shared, add(s, mul(s, s->v_thread, constant(s, 8)), constant(s, SPLITS))));
    lf_if_end(k, &two);
    lf_gpu_barrier(k);
    LLVMValueRef v_from = LLVMBuildLoad2(b, k->l_i64, bytes_at(s, s->v_shared, constant(s, SPLITS)), "from"),
                 v_to = LLVMBuildLoad2(b, k->l_i64, bytes_at(s, s->v_shared, constant(s, SPLITS + 8)), "to");
    LLVMValueRef v_lefts = sub(s, v_to, v_from), v_all = sub(s, v_end, v_offset);
    LLVMValueRef v_right_from = add(s, r.v_right, sub(s, sub(s, v_offset, v_from), v_lefts));
    for (unsigned i = 0; i < SHARE; i++) {
        LLVMValueRef v = place(s, i);
        lf_if_blocks there;
        lf_if_begin(k, &there, less(s, v, v_all), "there");
        LLVMValueRef v_index = add(s, v, pick(s, less(s, v, v_lefts), add(s, v_start, v_from), v_right_from));
        store_shared(s, v, load_global(s, r.v_buffer, v_index));
        lf_if_end(k, &there);
    }
    lf_gpu_barrier(k);
    for (unsigned i = 0; i < SHARE; i++) {
        LLVMValueRef v = place(s, i), v_is_left = less(s, v, v_lefts);
        lf_if_blocks there;
        lf_if_begin(k, &there, less(s, v, v_all), "there");
        newcomer mine = {s, load_shared(s, v)};
        LLVMValueRef v_low = pick(s, v_is_left, v_lefts, constant(s, 0)), v_high = pick(s, v_is_left, v_all, v_lefts);
        LLVMValueRef v_found = lf_search(k, v_low, v_high, not_before, &mine);
        // Those before it in its own run and in the other one.
        LLVMValueRef v_rank = sub(s, add(s, v, v_found), v_lefts);
        store_shared(s, add(s, v_rank, constant(s, TILE)), mine.own);
        lf_if_end(k, &there);
    }
    lf_gpu_barrier(k);
    return v_all;
}

// ---- the kernel ------------------------------------------------------------------------------------------------------------------------

// Sorted records from `v_from` on in shared memory: to the next pass, or as results.
static void hand_on(sorter *s, LLVMValueRef v_from, LLVMValueRef v_n, LLVMValueRef v_start, LLVMValueRef v_offset) {
    lf_kernel *k = s->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_results = lf_block(k, "results"), b_records = lf_block(k, "records"),
                      b_done = lf_block(k, "handed_on");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, s->v_pass, s->v_passes, ""), b_results, b_records);
    LLVMPositionBuilderAtEnd(b, b_results);
    for (unsigned i = 0; i < SHARE; i++) {
        LLVMValueRef v_rank = add(s, v_offset, place(s, i));
        lf_if_blocks there;
        lf_if_begin(k, &there, and(s, less(s, place(s, i), v_n), less(s, v_rank, s->v_count)), "there");
        lf_emit_sorted(k, position_of(s, load_shared(s, add(s, v_from, place(s, i)))), v_rank);
        lf_if_end(k, &there);
    }
    LLVMBuildBr(b, b_done);
    LLVMPositionBuilderAtEnd(b, b_records);
    LLVMValueRef v_buffer = and(s, s->v_pass, constant(s, 1)), v_to = add(s, v_start, v_offset);
    for (unsigned i = 0; i < SHARE; i++) {
        lf_if_blocks there;
        lf_if_begin(k, &there, less(s, place(s, i), v_n), "there");
        record r = load_shared(s, add(s, v_from, place(s, i)));
        for (unsigned w = 0; w < s->words; w++)
            LLVMBuildStore(b, r.v[w], global_at(s, v_buffer, add(s, v_to, place(s, i)), w));
        lf_if_end(k, &there);
    }
    LLVMBuildBr(b, b_done);
    LLVMPositionBuilderAtEnd(b, b_done);
    lf_kernel_forget_columns(k);
}

static void emit_tile(sorter *s) {
    lf_kernel *k = s->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = constant(s, 0), v_first = mul(s, s->v_tile, constant(s, TILE));
    LLVMBasicBlockRef b_sort = lf_block(k, "sort"), b_merge = lf_block(k, "merge"), b_work = lf_block(k, "work"),
                      b_count = lf_block(k, "count");
    LLVMBuildCondBr(b, equal(s, s->v_pass, 0), b_sort, b_merge);
    LLVMPositionBuilderAtEnd(b, b_sort);
    LLVMValueRef v_sorted = least(s, sub(s, s->v_n, v_first), constant(s, TILE));
    sort_tile(s, v_first, v_sorted);
    hand_on(s, v_zero, v_sorted, v_first, v_zero);
    LLVMBuildBr(b, b_count);
    LLVMPositionBuilderAtEnd(b, b_merge);
    LLVMValueRef v_width = shl(s, constant(s, TILE / 2), s->v_pass),
                 v_start = and(s, v_first, LLVMBuildNeg(b, shl(s, v_width, constant(s, 1)), "")),
                 v_offset = sub(s, v_first, v_start);
    LLVMBuildCondBr(b, less(s, v_offset, s->v_count), b_work, b_count);
    LLVMPositionBuilderAtEnd(b, b_work);
    LLVMValueRef v_merged = merge_tile(s, v_start, v_offset, v_width);
    hand_on(s, constant(s, TILE), v_merged, v_start, v_offset);
    LLVMBuildBr(b, b_count);
    LLVMPositionBuilderAtEnd(b, b_count);
    lf_gpu_barrier(k);
    count_tile(s);
}

// The least number of passes that leave one run.
static LLVMValueRef passes_of(sorter *s) {
    lf_kernel *k = s->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(b), b_head = lf_block(k, "passes"), b_done = lf_block(k, "begin");
    LLVMValueRef v_zero = constant(s, 0), v_one = constant(s, 1);
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_head);
    LLVMValueRef v = LLVMBuildPhi(b, k->l_i64, "passes"), v_next = add(s, v, v_one);
    LLVMAddIncoming(v, &v_zero, &b_before, 1);
    LLVMAddIncoming(v, &v_next, &b_head, 1);
    LLVMBuildCondBr(b, less(s, shl(s, v_one, v), s->v_tiles), b_head, b_done);
    LLVMPositionBuilderAtEnd(b, b_done);
    return v;
}

lf_status lf_gpu_emit_sort(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    sorter s = {.k = k, .key = &k->loop->stmts[k->loop->keys[LF_SORT_KEY]]};
    s.words = lf_dtype_bytes(s.key->dtype) > 4 ? 2 : 1;
    out->block = THREADS;
    out->rows_a_block = 1;
    out->shared_bytes = HEAD + 2 * TILE * 8 * s.words;
    s.v_shared = lf_gpu_shared_memory(k, out->shared_bytes);
    s.v_thread = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x");
    s.v_n = lf_columns(k);
    s.v_rows = lf_gpu_total_rows(k);
    s.v_tiles = shr(&s, add(&s, s.v_n, constant(&s, TILE - 1)), constant(&s, __builtin_ctz(TILE)));
    s.v_passes = passes_of(&s);
    LLVMValueRef v_a_pass = mul(&s, s.v_rows, s.v_tiles), v_all = mul(&s, v_a_pass, add(&s, s.v_passes, constant(&s, 1)));
    LLVMBasicBlockRef b_next = lf_block(k, "next"), b_tile = lf_block(k, "tile"), b_done = lf_block(k, "done");
    LLVMBuildBr(b, b_next);
    LLVMPositionBuilderAtEnd(b, b_next);
    LLVMValueRef v_number = lf_gpu_take_ticket(k, s.v_thread, bytes_at(&s, s.v_shared, constant(&s, TICKET)));
    LLVMBuildCondBr(b, less(&s, v_number, v_all), b_tile, b_done);
    LLVMPositionBuilderAtEnd(b, b_tile);
    s.v_pass = LLVMBuildUDiv(b, v_number, v_a_pass, "pass");
    LLVMValueRef v_in_pass = sub(&s, v_number, mul(&s, s.v_pass, v_a_pass));
    s.v_row = LLVMBuildUDiv(b, v_in_pass, s.v_tiles, "row");
    s.v_tile = sub(&s, v_in_pass, mul(&s, s.v_row, s.v_tiles));
    lf_split_index(k, s.v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    lf_emit_rows_of_level(k, 0, NULL);
    s.v_count = lf_reg(k, k->loop->keys[LF_SORT_COUNT], 0).re;
    emit_tile(&s);
    LLVMBuildBr(b, b_next);
    LLVMPositionBuilderAtEnd(b, b_done);
    return NULL;
}
