// Scans on a GPU. Threads take neighbouring columns; what a thread's columns come to goes across its warp, what a warp's do across the
// block, and what a tile does to the tiles after it. Elements past the end of a row are the row's first one: only what is never stored
// comes after them.
//
// Where blocks share a row (LOOKBACK), the order in which tiles are added up is fixed, so that the bits do not depend on which block is
// early: GROUP tiles make a group; a tile adds up the tiles of its group before it, each by itself, and what all groups before come to,
// which the last tile of each group tells the next. Blocks take tiles in order and wait only for earlier ones, so some block can always
// go on.
#include "codegen/kernel/gpu_scan.h"

enum { WARPS = LFUSER_ABI_SCAN_THREADS / LF_GPU_WARP, WARP_SPANS = 4, SMALL_WARPS = 4, GROUP_SHARE = 4, MOST_SPANS = 8 };
enum { GROUP = GROUP_SHARE * LF_GPU_WARP };

static LLVMValueRef compare(lf_kernel *k, LLVMIntPredicate p, LLVMValueRef a, int64_t b) {
    return LLVMBuildICmp(k->e->builder, p, a, lf_i64_const(k, b), "");
}

// ---- the running result --------------------------------------------------------------------------------------------------------------

static bool is_extreme(const lf_scan *c) { return c->s->code == LF_OP_CUMMAX || c->s->code == LF_OP_CUMMIN; }

static bool is_exp(const lf_scan *c) { return c->s->code == LF_OP_LOGCUMSUMEXP; }

static bool has_extra(const lf_scan *c) { return is_exp(c) || (is_extreme(c) && c->positions); }

static LLVMTypeRef extra_type(const lf_scan *c) { return is_exp(c) ? lf_register_type(c->k->e, c->s->dtype) : c->k->l_i64; }

static lf_register one(lf_scan *c, lf_opcode code, lf_register a, lf_register b) {
    return lf_emit_simple(c->k->e, code, c->s->dtype, a, b);
}

static LLVMValueRef pick(lf_scan *c, LLVMValueRef v_if, LLVMValueRef a, LLVMValueRef b) {
    return a ? LLVMBuildSelect(c->k->e->builder, v_if, a, b, "") : NULL;
}

static lf_running select_running(lf_scan *c, LLVMValueRef v_if, lf_running a, lf_running b) {
    return (lf_running){{pick(c, v_if, a.value.re, b.value.re), pick(c, v_if, a.value.im, b.value.im)},
                        pick(c, v_if, a.v_extra, b.v_extra)};
}

static LLVMValueRef is_finite(lf_scan *c, lf_register x) { return one(c, LF_OP_ISFINITE, x, (lf_register){NULL, NULL}).re; }

lf_running lf_scan_element(lf_scan *c, unsigned lane, LLVMValueRef v_column) {
    lf_kernel *k = c->k;
    lf_emit_statement(k, c->s->args[0]);
    lf_running r = {lf_reg(k, c->s->args[0], lane), NULL};
    if (is_exp(c))
        r.v_extra = pick(c, is_finite(c, r.value), LLVMConstReal(extra_type(c), 1), LLVMConstReal(extra_type(c), 0));
    else if (has_extra(c))
        r.v_extra = lane ? LLVMBuildAdd(k->e->builder, v_column, lf_i64_const(k, lane), "") : v_column;
    return r;
}

// The greater m of both, and the sum of the other rescaled to it. An infinite or NaN m is the result.
static lf_running combine_exp(lf_scan *c, lf_running low, lf_running high) {
    lf_register none = {NULL, NULL}, sum_low = {low.v_extra, NULL}, sum_high = {high.v_extra, NULL};
    lf_register m = one(c, LF_OP_MAX, low.value, high.value);
    LLVMValueRef v_low = one(c, LF_OP_EQ, m, low.value).re;
    lf_register lesser = {pick(c, v_low, high.value.re, low.value.re), NULL};
    lf_register scale = one(c, LF_OP_EXP, one(c, LF_OP_SUB, lesser, m), none);
    lf_register kept = {pick(c, v_low, sum_low.re, sum_high.re), NULL},
                scaled = one(c, LF_OP_MUL, (lf_register){pick(c, v_low, sum_high.re, sum_low.re), NULL}, scale);
    LLVMValueRef v_sum = one(c, LF_OP_ADD, kept, scaled).re;
    return (lf_running){m, pick(c, is_finite(c, m), v_sum, LLVMConstReal(extra_type(c), 0))};
}

// The last of equal elements counts; a NaN stays the extreme, and the last NaN counts.
static lf_running combine_extreme(lf_scan *c, lf_running low, lf_running high) {
    LLVMBuilderRef b = c->k->e->builder;
    lf_register none = {NULL, NULL};
    LLVMValueRef v_high = one(c, c->s->code == LF_OP_CUMMAX ? LF_OP_GE : LF_OP_LE, high.value, low.value).re;
    if (lf_is_float(c->s->dtype)) {
        LLVMValueRef v_nan = one(c, LF_OP_ISNAN, high.value, none).re, v_low_nan = one(c, LF_OP_ISNAN, low.value, none).re;
        v_high = LLVMBuildOr(b, v_nan, LLVMBuildAnd(b, v_high, LLVMBuildNot(b, v_low_nan, ""), ""), "");
    }
    return select_running(c, v_high, high, low);
}

lf_running lf_scan_combine(lf_scan *c, lf_running low, lf_running high) {
    if (is_exp(c)) return combine_exp(c, low, high);
    if (is_extreme(c)) return combine_extreme(c, low, high);
    return (lf_running){one(c, c->s->code == LF_OP_CUMSUM ? LF_OP_ADD : LF_OP_MUL, low.value, high.value), NULL};
}

lf_running lf_scan_join(lf_scan *c, LLVMValueRef v_low, lf_running low, LLVMValueRef v_high, lf_running high) {
    lf_running r = lf_scan_combine(c, low, high);
    if (v_high) r = select_running(c, v_high, r, low);
    return v_low ? select_running(c, v_low, r, high) : r;
}

void lf_scan_set(lf_scan *c, unsigned lane, lf_running r) {
    lf_kernel *k = c->k;
    lf_register none = {NULL, NULL}, value = r.value;
    if (is_exp(c)) {
        lf_register log = one(c, LF_OP_LOG, (lf_register){r.v_extra, NULL}, none);
        value.re = pick(c, is_finite(c, r.value), one(c, LF_OP_ADD, r.value, log).re, r.value.re);
    }
    k->at->registers[(size_t)c->id * LF_MAX_LANES + lane] = value;
    k->at->ready[c->id] = true;
    for (lf_stmt_id p = c->id + 1; p < k->loop->n_stmts; p++) {
        if (k->loop->stmts[p].kind != LF_STMT_SCAN_POSITION) continue;
        k->at->registers[(size_t)p * LF_MAX_LANES + lane] = (lf_register){r.v_extra, NULL};
        k->at->ready[p] = true;
    }
}

// ---- in memory -----------------------------------------------------------------------------------------------------------------------

lf_running lf_scan_alloca(lf_scan *c, const char *name) {
    lf_running at = {{lf_alloca(c->k, lf_memory_type(c->k->e, c->s->dtype), name), NULL}, NULL};
    LLVMSetAlignment(at.value.re, 16);
    if (has_extra(c)) at.v_extra = lf_alloca(c->k, extra_type(c), "extra");
    return at;
}

lf_running lf_scan_load(lf_scan *c, lf_running at) {
    lf_running r = {lf_emit_load(c->k->e, c->s->dtype, at.value.re), NULL};
    if (has_extra(c)) r.v_extra = LLVMBuildLoad2(c->k->e->builder, extra_type(c), at.v_extra, "extra");
    return r;
}

void lf_scan_store(lf_scan *c, lf_running r, lf_running at) {
    lf_emit_store(c->k->e, c->s->dtype, r.value, at.value.re);
    if (has_extra(c)) LLVMBuildStore(c->k->e->builder, r.v_extra, at.v_extra);
}

// A value in the first half, what is beside it in the second.
static lf_running record_at(lf_scan *c, LLVMValueRef v_base, LLVMValueRef v_bytes, unsigned size) {
    LLVMBuilderRef b = c->k->e->builder;
    LLVMTypeRef l_byte = LLVMInt8TypeInContext(c->k->e->context);
    LLVMValueRef v_behind = lf_i64_const(c->k, size / 2), v = LLVMBuildGEP2(b, l_byte, v_base, &v_bytes, 1, "");
    return (lf_running){{v, NULL}, has_extra(c) ? LLVMBuildGEP2(b, l_byte, v, &v_behind, 1, "") : NULL};
}

void lf_scan_share(lf_scan *c, unsigned slots, lf_object *out) {
    unsigned bytes = lf_dtype_bytes(c->s->dtype);
    c->slot = has_extra(c) ? 16 : bytes;
    out->shared_bytes = LF_SCAN_TICKET + slots * c->slot;
    c->v_shared = lf_gpu_shared_memory(c->k, out->shared_bytes);
}

lf_running lf_scan_slot(lf_scan *c, LLVMValueRef v_slot) {
    LLVMBuilderRef b = c->k->e->builder;
    LLVMValueRef v = LLVMBuildMul(b, v_slot, lf_i64_const(c->k, c->slot), "");
    return record_at(c, c->v_shared, LLVMBuildAdd(b, v, lf_i64_const(c->k, LF_SCAN_TICKET), ""), c->slot);
}

// See launch_abi.h.
static LLVMValueRef scratch(lf_scan *c) {
    return LLVMBuildIntToPtr(c->k->e->builder, lf_word(c->k, c->k->loop->scratch_word), c->k->l_pointer, "scratch");
}

static LLVMValueRef flag_at(lf_scan *c, bool prefix, LLVMValueRef v_cell) {
    LLVMBuilderRef b = c->k->e->builder;
    LLVMValueRef v = prefix ? LLVMBuildAdd(b, v_cell, c->v_cells, "") : v_cell;
    v = LLVMBuildAdd(b, v, lf_i64_const(c->k, LFUSER_ABI_SCAN_HEAD / 4), "");
    return LLVMBuildGEP2(b, c->k->l_i32, scratch(c), &v, 1, "flag");
}

static lf_running cell_at(lf_scan *c, bool prefix, LLVMValueRef v_cell) {
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_flags = LLVMBuildMul(b, c->v_cells, lf_i64_const(k, 8), "");
    v_flags = LLVMBuildAnd(b, LLVMBuildAdd(b, v_flags, lf_i64_const(k, LFUSER_ABI_SCAN_HEAD + 255), ""),
                           lf_i64_const(k, -256), "records");
    LLVMValueRef v = prefix ? LLVMBuildAdd(b, v_cell, c->v_cells, "") : v_cell;
    v = LLVMBuildAdd(b, v_flags, LLVMBuildMul(b, v, lf_i64_const(k, LF_SCAN_RECORD), ""), "");
    return record_at(c, scratch(c), v, LF_SCAN_RECORD);
}

// A value of four bytes or fewer lies in one word with its flag: whoever waits has both at once, and no fence stands between.
static bool is_told_in_a_word(const lf_scan *c) { return !has_extra(c) && lf_dtype_bytes(c->s->dtype) <= 4; }

static LLVMValueRef word_at(lf_scan *c, bool prefix, LLVMValueRef v_cell) {
    LLVMBuilderRef b = c->k->e->builder;
    LLVMValueRef v = prefix ? LLVMBuildAdd(b, v_cell, c->v_cells, "") : v_cell;
    v = LLVMBuildAdd(b, v, lf_i64_const(c->k, LFUSER_ABI_SCAN_HEAD / 8), "");
    return LLVMBuildGEP2(b, c->k->l_i64, scratch(c), &v, 1, "told_at");
}

static LLVMValueRef told_access(lf_scan *c, LLVMValueRef v_access) {
    LLVMSetOrdering(v_access, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(v_access, 8);
    lf_gpu_across_device(c->k, v_access);
    return v_access;
}

static void publish_word(lf_scan *c, bool prefix, LLVMValueRef v_cell, LLVMValueRef v) {
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    if (LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMFloatTypeKind) v = LLVMBuildBitCast(b, v, k->l_i32, "");
    v = LLVMBuildOr(b, LLVMBuildZExt(b, v, k->l_i64, ""), lf_i64_const(k, (int64_t)1 << 32), "told");
    told_access(c, LLVMBuildStore(b, v, word_at(c, prefix, v_cell)));
}

LLVMValueRef lf_scan_peek(lf_scan *c, bool prefix, LLVMValueRef v_cell) {
    if (!is_told_in_a_word(c)) return NULL;
    return told_access(c, LLVMBuildLoad2(c->k->e->builder, c->k->l_i64, word_at(c, prefix, v_cell), "seen"));
}

static lf_running await_word(lf_scan *c, bool prefix, LLVMValueRef v_cell, LLVMValueRef v_seen) {
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(b), b_look = lf_block(k, "look"), b_wait = lf_block(k, "wait"),
                      b_there = lf_block(k, "there");
    LLVMBuildBr(b, b_look);
    LLVMPositionBuilderAtEnd(b, b_wait);
    LLVMValueRef v_again = lf_scan_peek(c, prefix, v_cell);
    LLVMBuildBr(b, b_look);
    LLVMPositionBuilderAtEnd(b, b_look);
    LLVMValueRef v = LLVMBuildPhi(b, k->l_i64, "told");
    LLVMAddIncoming(v, (LLVMValueRef[]){v_seen, v_again}, (LLVMBasicBlockRef[]){b_before, b_wait}, 2);
    LLVMValueRef v_none = LLVMBuildICmp(b, LLVMIntULT, v, lf_i64_const(k, (int64_t)1 << 32), "");
    LLVMBuildCondBr(b, v_none, b_wait, b_there);
    LLVMPositionBuilderAtEnd(b, b_there);
    LLVMTypeRef l_value = lf_register_type(k->e, c->s->dtype);
    if (LLVMGetTypeKind(l_value) != LLVMFloatTypeKind) return (lf_running){{LLVMBuildTrunc(b, v, l_value, ""), NULL}, NULL};
    return (lf_running){{LLVMBuildBitCast(b, LLVMBuildTrunc(b, v, k->l_i32, ""), l_value, ""), NULL}, NULL};
}

void lf_scan_publish(lf_scan *c, bool prefix, LLVMValueRef v_cell, lf_running r) {
    if (is_told_in_a_word(c)) {
        publish_word(c, prefix, v_cell, r.value.re);
        return;
    }
    lf_scan_store(c, r, cell_at(c, prefix, v_cell));
    LLVMValueRef v = LLVMBuildStore(c->k->e->builder, LLVMConstInt(c->k->l_i32, 1, false), flag_at(c, prefix, v_cell));
    LLVMSetOrdering(v, LLVMAtomicOrderingRelease);
    LLVMSetAlignment(v, 4);
    lf_gpu_across_device(c->k, v);
}

lf_running lf_scan_await(lf_scan *c, bool prefix, LLVMValueRef v_cell, LLVMValueRef v_seen) {
    if (v_seen) return await_word(c, prefix, v_cell, v_seen);
    lf_gpu_await(c->k, flag_at(c, prefix, v_cell), lf_i64_const(c->k, 1));
    return lf_scan_load(c, cell_at(c, prefix, v_cell));
}

LLVMValueRef lf_scan_take_tile(lf_scan *c) { return lf_gpu_take_ticket(c->k, c->v_thread, c->v_shared); }

// ---- across a warp -------------------------------------------------------------------------------------------------------------------

static lf_running shuffle(lf_scan *c, const char *mode, lf_running r, LLVMValueRef v_lane) {
    lf_kernel *k = c->k;
    return (lf_running){
        {lf_gpu_shuffle(k, mode, r.value.re, v_lane), r.value.im ? lf_gpu_shuffle(k, mode, r.value.im, v_lane) : NULL},
        r.v_extra ? lf_gpu_shuffle(k, mode, r.v_extra, v_lane) : NULL};
}

static lf_running from_lane(lf_scan *c, lf_running r, LLVMValueRef v_lane) {
    return shuffle(c, "idx", r, LLVMBuildTrunc(c->k->e->builder, v_lane, c->k->l_i32, ""));
}

static lf_running from_below(lf_scan *c, lf_running r, unsigned by) {
    return shuffle(c, "up", r, LLVMConstInt(c->k->l_i32, by, false));
}

// The lanes up to and with this one.
static lf_running scan_warp(lf_scan *c, lf_running r) {
    for (unsigned by = 1; by < LF_GPU_WARP; by *= 2)
        r = select_running(c, compare(c->k, LLVMIntSGE, c->v_lane, by), lf_scan_combine(c, from_below(c, r, by), r), r);
    return r;
}

// ---- tiles of a row ------------------------------------------------------------------------------------------------------------------

typedef struct tiles {
    lf_scan *c;
    unsigned threads, spans, lanes;
    LLVMValueRef v_inside[MOST_SPANS];
    lf_running own[MOST_SPANS][LF_MAX_LANES]; // a thread's columns of a span so far
    lf_running before[MOST_SPANS];            // the lanes below, in lanes above 0
    lf_running carry;                         // addresses: all tiles before, where one block or warp takes all
} tiles;

static int64_t tile_columns(const tiles *t) { return (int64_t)t->threads * t->lanes * t->spans; }

static void place(tiles *t, LLVMValueRef v_first, LLVMValueRef v_thread) {
    lf_kernel *k = t->c->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_mine = LLVMBuildAdd(b, v_first, LLVMBuildMul(b, v_thread, lf_i64_const(k, t->lanes), ""), "column");
    for (unsigned j = 0; j < t->spans; j++) {
        lf_kernel_use_copy(k, j);
        lf_kernel_forget_columns(k);
        LLVMValueRef v = LLVMBuildAdd(b, v_mine, lf_i64_const(k, (int64_t)j * t->threads * t->lanes), "");
        t->v_inside[j] = LLVMBuildICmp(b, LLVMIntSLT, v, t->c->v_columns, "inside");
        lf_split_index(k, LLVMBuildSelect(b, t->v_inside[j], v, lf_i64_const(k, 0), ""), k->cols, lf_column_extent,
                       k->at->v_column);
    }
    lf_emit_loads(k, NULL, t->spans, 0);
}

// Returns what the warp's columns of the span come to up to and with this lane's.
static lf_running scan_span(tiles *t, unsigned j) {
    lf_scan *c = t->c;
    lf_kernel_use_copy(c->k, j);
    for (unsigned lane = 0; lane < t->lanes; lane++) {
        lf_running x = lf_scan_element(c, lane, c->k->at->v_column[0]);
        t->own[j][lane] = lane ? lf_scan_combine(c, t->own[j][lane - 1], x) : x;
    }
    lf_running with = scan_warp(c, t->own[j][t->lanes - 1]);
    t->before[j] = from_below(c, with, 1);
    return with;
}

// v_base tells whether there is a base: all columns before the warp's in this span.
static void finish_span(tiles *t, unsigned j, LLVMValueRef v_base, lf_running base) {
    lf_scan *c = t->c;
    LLVMBuilderRef b = c->k->e->builder;
    LLVMValueRef v_before = compare(c->k, LLVMIntSGT, c->v_lane, 0);
    base = lf_scan_join(c, v_base, base, v_before, t->before[j]);
    if (v_base) v_base = LLVMBuildOr(b, v_base, v_before, "");
    lf_kernel_use_copy(c->k, j);
    for (unsigned lane = 0; lane < t->lanes; lane++)
        lf_scan_set(c, lane, lf_scan_join(c, v_base, base, NULL, t->own[j][lane]));
    lf_kernel_use_copy(c->k, 0);
}

void lf_scan_effects(lf_scan *c, unsigned copies, const LLVMValueRef *v_inside) {
    lf_kernel *k = c->k;
    for (unsigned j = 0; j < copies; j++) {
        lf_kernel_use_copy(k, j);
        lf_emit_effect_operands(k, 0);
        lf_if_blocks inside;
        lf_if_begin(k, &inside, v_inside[j], "inside");
        lf_emit_column_effects(k, 0);
        lf_if_end(k, &inside);
    }
    lf_kernel_use_copy(k, 0);
}

// A warp's tile: span after span, since the last lane of one tells all of the next.
static void warp_tile(tiles *t, LLVMValueRef v_first) {
    lf_scan *c = t->c;
    lf_kernel *k = c->k;
    place(t, v_first, c->v_lane);
    LLVMValueRef v_base = compare(k, LLVMIntSGT, v_first, 0);
    lf_running base = lf_scan_load(c, t->carry);
    for (unsigned j = 0; j < t->spans; j++) {
        lf_running with = scan_span(t, j), all = from_lane(c, with, lf_i64_const(k, LF_GPU_WARP - 1));
        finish_span(t, j, v_base, base);
        base = lf_scan_join(c, v_base, base, NULL, all);
        v_base = NULL;
    }
    lf_scan_store(c, base, t->carry);
    lf_scan_effects(c, t->spans, t->v_inside);
}

// ---- looking back --------------------------------------------------------------------------------------------------------------------

static void publish_from_one(lf_scan *c, LLVMValueRef v_if, bool prefix, LLVMValueRef v_cell, lf_running r) {
    LLVMBuilderRef b = c->k->e->builder;
    lf_if_blocks tell;
    lf_if_begin(c->k, &tell, LLVMBuildAnd(b, v_if, compare(c->k, LLVMIntEQ, c->v_lane, 0), ""), "tell");
    lf_scan_publish(c, prefix, v_cell, r);
    lf_if_end(c->k, &tell);
}

// In the first warp, whose lanes all have the tile's total: what all tiles before come to, if there are any.
static lf_running look_back(lf_scan *c, LLVMValueRef v_row, lf_running total) {
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_start = LLVMBuildMul(b, v_row, c->v_tiles, ""), v_cell = LLVMBuildAdd(b, v_start, c->v_tile, "cell");
    LLVMValueRef v_next = LLVMBuildAdd(b, c->v_tile, lf_i64_const(k, 1), ""),
                 v_more = LLVMBuildICmp(b, LLVMIntSLT, v_next, c->v_tiles, "more");
    publish_from_one(c, v_more, false, v_cell, total);
    LLVMValueRef v_number = LLVMBuildAnd(b, c->v_tile, lf_i64_const(k, GROUP - 1), "number"),
                 v_group = LLVMBuildSub(b, v_cell, v_number, "group");
    LLVMValueRef v_mine = LLVMBuildMul(b, c->v_lane, lf_i64_const(k, GROUP_SHARE), "");
    lf_running sum = lf_scan_alloca(c, "sum"), groups = lf_scan_alloca(c, "groups");
    lf_scan_store(c, total, sum); // stands in for nothing
    lf_scan_store(c, total, groups);
    LLVMValueRef v_other[GROUP_SHARE], v_earlier[GROUP_SHARE], v_seen[GROUP_SHARE];
    for (unsigned j = 0; j < GROUP_SHARE; j++) { // all under way before the first is waited for
        LLVMValueRef v = LLVMBuildAdd(b, v_mine, lf_i64_const(k, j), "");
        v_earlier[j] = LLVMBuildICmp(b, LLVMIntSLT, v, v_number, "");
        v_other[j] = LLVMBuildSelect(b, v_earlier[j], LLVMBuildAdd(b, v_group, v, ""), v_cell, "other");
        v_seen[j] = lf_scan_peek(c, false, v_other[j]);
    }
    for (unsigned j = 0; j < GROUP_SHARE; j++) {
        lf_if_blocks earlier;
        lf_if_begin(k, &earlier, v_earlier[j], "earlier");
        lf_running r = lf_scan_await(c, false, v_other[j], v_seen[j]);
        lf_scan_store(c, j ? lf_scan_combine(c, lf_scan_load(c, sum), r) : r, sum);
        lf_if_end(k, &earlier);
    }
    LLVMValueRef v_any = compare(k, LLVMIntSGT, v_number, 0);
    LLVMValueRef v_last = LLVMBuildLShr(b, LLVMBuildSub(b, v_number, lf_i64_const(k, 1), ""), lf_i64_const(k, 2), "");
    v_last = LLVMBuildAnd(b, v_last, lf_i64_const(k, LF_GPU_WARP - 1), "");
    lf_running in_group = from_lane(c, scan_warp(c, lf_scan_load(c, sum)), v_last);
    // What comes last is what everybody after this group waits for: one group after another.
    LLVMValueRef v_any_groups = compare(k, LLVMIntSGE, c->v_tile, GROUP);
    lf_if_blocks later;
    lf_if_begin(k, &later, v_any_groups, "groups");
    lf_scan_store(c, lf_scan_await(c, true, v_group, lf_scan_peek(c, true, v_group)), groups);
    lf_if_end(k, &later);
    lf_running before = lf_scan_join(c, v_any_groups, lf_scan_load(c, groups), v_any, in_group);
    LLVMValueRef v_ends = LLVMBuildAnd(b, v_more, compare(k, LLVMIntEQ, v_number, GROUP - 1), "ends");
    publish_from_one(c, v_ends, true, LLVMBuildAdd(b, v_cell, lf_i64_const(k, 1), ""),
                     lf_scan_join(c, compare(k, LLVMIntSGT, c->v_tile, 0), before, NULL, total));
    return before;
}

// ---- a block's tile ------------------------------------------------------------------------------------------------------------------

// Slots of shared memory: totals of warps by span, as many prefixes.
static unsigned cells_of(const tiles *t) { return t->spans * WARPS; }

// The first warp turns totals into what comes before each. v_row: NULL: the carry has what comes before the tile.
static void scan_cells(tiles *t, LLVMValueRef v_first, LLVMValueRef v_row) {
    lf_scan *c = t->c;
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    unsigned cells = cells_of(t), share = cells > LF_GPU_WARP ? cells / LF_GPU_WARP : 1, lanes = cells / share;
    LLVMValueRef v_mine = LLVMBuildMul(b, c->v_lane, lf_i64_const(k, share), ""),
                 v_has = compare(k, LLVMIntSLT, c->v_lane, lanes);
    LLVMValueRef v_from = LLVMBuildSelect(b, v_has, v_mine, lf_i64_const(k, 0), "");
    lf_running own[MOST_SPANS * WARPS / LF_GPU_WARP];
    for (unsigned i = 0; i < share; i++) {
        lf_running x = lf_scan_load(c, lf_scan_slot(c, LLVMBuildAdd(b, v_from, lf_i64_const(k, i), "")));
        own[i] = i ? lf_scan_combine(c, own[i - 1], x) : x;
    }
    lf_running with = scan_warp(c, own[share - 1]), total = from_lane(c, with, lf_i64_const(k, lanes - 1)),
               below = from_below(c, with, 1);
    LLVMValueRef v_tiles_before = compare(k, LLVMIntSGT, v_first, 0), v_below = compare(k, LLVMIntSGT, c->v_lane, 0);
    lf_running tiles_before = v_row ? look_back(c, v_row, total) : lf_scan_load(c, t->carry);
    if (!v_row) lf_scan_store(c, lf_scan_join(c, v_tiles_before, tiles_before, NULL, total), t->carry);
    lf_running base = lf_scan_join(c, v_tiles_before, tiles_before, v_below, below);
    LLVMValueRef v_base = LLVMBuildOr(b, v_tiles_before, v_below, "");
    lf_if_blocks has;
    lf_if_begin(k, &has, v_has, "has");
    for (unsigned i = 0; i < share; i++)
        lf_scan_store(c, i ? lf_scan_join(c, v_base, base, NULL, own[i - 1]) : base,
                      lf_scan_slot(c, LLVMBuildAdd(b, v_mine, lf_i64_const(k, cells + i), "")));
    lf_if_end(k, &has);
}

static void block_tile(tiles *t, LLVMValueRef v_first, LLVMValueRef v_row) {
    lf_scan *c = t->c;
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    place(t, v_first, c->v_thread);
    for (unsigned j = 0; j < t->spans; j++) {
        lf_running with = scan_span(t, j);
        lf_if_blocks last;
        lf_if_begin(k, &last, compare(k, LLVMIntEQ, c->v_lane, LF_GPU_WARP - 1), "last");
        lf_scan_store(c, with, lf_scan_slot(c, LLVMBuildAdd(b, c->v_warp, lf_i64_const(k, j * WARPS), "")));
        lf_if_end(k, &last);
    }
    lf_kernel_use_copy(k, 0);
    lf_gpu_barrier(k);
    lf_if_blocks warp;
    lf_if_begin(k, &warp, compare(k, LLVMIntEQ, c->v_warp, 0), "first_warp");
    scan_cells(t, v_first, v_row);
    lf_if_end(k, &warp);
    lf_gpu_barrier(k);
    LLVMValueRef v_tiles_before = compare(k, LLVMIntSGT, v_first, 0);
    for (unsigned j = 0; j < t->spans; j++) {
        LLVMValueRef v_cell = LLVMBuildAdd(b, c->v_warp, lf_i64_const(k, j * WARPS), "");
        LLVMValueRef v_base = j ? NULL : LLVMBuildOr(b, v_tiles_before, compare(k, LLVMIntSGT, v_cell, 0), "");
        lf_running base = lf_scan_load(c, lf_scan_slot(c, LLVMBuildAdd(b, v_cell, lf_i64_const(k, cells_of(t)), "")));
        finish_span(t, j, v_base, base);
    }
    lf_scan_effects(c, t->spans, t->v_inside);
}

// ---- the kernel ----------------------------------------------------------------------------------------------------------------------

static void begin_row(lf_scan *c, LLVMValueRef v_row, LLVMValueRef v_leads) {
    lf_kernel *k = c->k;
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    lf_emit_rows_of_level(k, 0, v_leads);
}

// A warp or a block takes all tiles of a row.
static void own_rows(tiles *t, lf_object *out) {
    lf_scan *c = t->c;
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    bool warp = k->cls.shape == LFUSER_ABI_WARP;
    out->rows_a_block = warp ? SMALL_WARPS : 1;
    LLVMValueRef v_row = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"),
                 v_step = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x");
    if (warp) v_row = LLVMBuildAdd(b, LLVMBuildMul(b, v_row, lf_i64_const(k, SMALL_WARPS), ""), c->v_warp, "");
    t->carry = lf_scan_alloca(c, "carry");
    lf_loop_blocks rows, all;
    v_row = lf_for_begin(k, &rows, v_row, lf_gpu_total_rows(k),
                         LLVMBuildMul(b, v_step, lf_i64_const(k, out->rows_a_block), ""), "row");
    begin_row(c, v_row, compare(k, LLVMIntEQ, warp ? c->v_lane : c->v_thread, 0));
    LLVMValueRef v_first = lf_for_begin(k, &all, lf_i64_const(k, 0), c->v_columns, lf_i64_const(k, tile_columns(t)), "tile");
    if (warp)
        warp_tile(t, v_first);
    else
        block_tile(t, v_first, NULL);
    lf_for_end(k, &all, LF_HINT_ROLLED);
    lf_for_end(k, &rows, LF_HINT_ROLLED);
}

// Tile 0 of all rows, then tile 1, …: so rows wait for each other least.
static void shared_rows(tiles *t, lf_object *out) {
    lf_scan *c = t->c;
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    out->rows_a_block = 1;
    LLVMValueRef v_rows = lf_gpu_total_rows(k);
    c->v_tiles = LLVMBuildUDiv(b, LLVMBuildAdd(b, c->v_columns, lf_i64_const(k, tile_columns(t) - 1), ""),
                               lf_i64_const(k, tile_columns(t)), "tiles");
    c->v_cells = LLVMBuildMul(b, v_rows, c->v_tiles, "cells");
    LLVMBasicBlockRef b_next = lf_block(k, "next"), b_tile = lf_block(k, "tile"), b_done = lf_block(k, "done");
    LLVMBuildBr(b, b_next);
    LLVMPositionBuilderAtEnd(b, b_next);
    LLVMValueRef v_number = lf_scan_take_tile(c);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, v_number, c->v_cells, ""), b_tile, b_done);
    LLVMPositionBuilderAtEnd(b, b_tile);
    c->v_tile = LLVMBuildUDiv(b, v_number, v_rows, "tile");
    LLVMValueRef v_row = LLVMBuildSub(b, v_number, LLVMBuildMul(b, c->v_tile, v_rows, ""), "row");
    LLVMValueRef v_leads =
        LLVMBuildAnd(b, compare(k, LLVMIntEQ, c->v_thread, 0), compare(k, LLVMIntEQ, c->v_tile, 0), "leads");
    begin_row(c, v_row, v_leads);
    block_tile(t, LLVMBuildMul(b, c->v_tile, lf_i64_const(k, tile_columns(t)), "first"), v_row);
    LLVMBuildBr(b, b_next);
    LLVMPositionBuilderAtEnd(b, b_done);
}

lf_status lf_gpu_emit_scan(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    lf_scan c = {.k = k, .v_columns = lf_columns(k)};
    unsigned n = 0;
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        if (k->loop->stmts[i].kind == LF_STMT_SCAN_POSITION) c.positions = true;
        if (k->loop->stmts[i].kind != LF_STMT_SCAN) continue;
        c.id = i;
        n++;
    }
    if (n != 1 || k->loop->passes != 1 || k->loop->cols != 1)
        return lf_error(k->l->allocator, LF_INTERNAL, "kernel %s: %u scans, %u passes, %u axes of columns", k->loop->name, n,
                        k->loop->passes, k->loop->cols);
    c.s = &k->loop->stmts[c.id];
    c.v_thread = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x");
    c.v_lane = LLVMBuildAnd(b, c.v_thread, lf_i64_const(k, LF_GPU_WARP - 1), "lane");
    c.v_warp = LLVMBuildLShr(b, c.v_thread, lf_i64_const(k, 5), "warp");
    if (k->cls.shape == LFUSER_ABI_OUTER) return lf_gpu_emit_scan_outer(&c, out);
    bool warp = k->cls.shape == LFUSER_ABI_WARP;
    tiles *t = lf_alloc_zero(k->l->allocator, sizeof *t);
    if (!t) return lf_out_of_memory();
    *t = (tiles){.c = &c, .threads = warp ? LF_GPU_WARP : LFUSER_ABI_SCAN_THREADS, .lanes = k->lanes};
    t->spans = k->cls.spans ? k->cls.spans : lfuser_abi_scan_spans(k->lanes, k->loop->weight);
    if (warp && t->spans > WARP_SPANS) t->spans = WARP_SPANS;
    out->block = warp ? SMALL_WARPS * LF_GPU_WARP : LFUSER_ABI_SCAN_THREADS;
    if (!warp) lf_scan_share(&c, 2 * cells_of(t), out);
    if (k->cls.shape == LFUSER_ABI_LOOKBACK)
        shared_rows(t, out);
    else
        own_rows(t, out);
    lf_free(k->l->allocator, t);
    return NULL;
}
