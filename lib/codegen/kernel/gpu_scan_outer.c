// Scans where rows are neighbours in memory: a lane takes a row, the block's warps take runs of its columns one after another, and blocks
// share rows of more than a tile (see gpu_scan.c; here GROUP is the number of warps, each of which waits for one earlier tile).
#include "codegen/kernel/gpu_scan.h"

enum { WARPS = LFUSER_ABI_SCAN_WARPS, RUN = LFUSER_ABI_SCAN_COLUMNS, GROUP = WARPS };

static LLVMValueRef compare(lf_kernel *k, LLVMIntPredicate p, LLVMValueRef a, int64_t b) {
    return LLVMBuildICmp(k->e->builder, p, a, lf_i64_const(k, b), "");
}

typedef struct outer {
    lf_scan *c;
    LLVMValueRef v_there; // the lane has a row
    LLVMValueRef v_inside[RUN];
    lf_running own[RUN];
    LLVMValueRef v_unit; // which 32 rows
} outer;

// Slots of shared memory: totals of warps by lane, then what warps learnt of earlier tiles.
static lf_running slot(outer *o, unsigned half, LLVMValueRef v_warp) {
    lf_kernel *k = o->c->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v = LLVMBuildAdd(b, LLVMBuildMul(b, v_warp, lf_i64_const(k, LF_GPU_WARP), ""), o->c->v_lane, "");
    return lf_scan_slot(o->c, LLVMBuildAdd(b, v, lf_i64_const(k, half * WARPS * LF_GPU_WARP), ""));
}

static LLVMValueRef cell(outer *o, LLVMValueRef v_tile) {
    lf_scan *c = o->c;
    LLVMBuilderRef b = c->k->e->builder;
    LLVMValueRef v = LLVMBuildAdd(b, LLVMBuildMul(b, o->v_unit, c->v_tiles, ""), v_tile, "");
    return LLVMBuildAdd(b, LLVMBuildMul(b, v, lf_i64_const(c->k, LF_GPU_WARP), ""), c->v_lane, "cell");
}

static void publish(outer *o, LLVMValueRef v_if, bool prefix, LLVMValueRef v_tile, lf_running r) {
    lf_kernel *k = o->c->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_first = LLVMBuildAnd(b, compare(k, LLVMIntEQ, o->c->v_warp, 0), o->v_there, "");
    lf_if_blocks tell;
    lf_if_begin(k, &tell, LLVMBuildAnd(b, v_if, v_first, ""), "tell");
    lf_scan_publish(o->c, prefix, cell(o, v_tile), r);
    lf_if_end(k, &tell);
}

// A warp waits for a tile's record and leaves it in its slot.
static void learn(outer *o, LLVMValueRef v_if, bool prefix, LLVMValueRef v_tile, lf_running instead) {
    lf_scan *c = o->c;
    lf_kernel *k = c->k;
    lf_if_blocks earlier, there;
    lf_running r = lf_scan_alloca(c, "learnt");
    lf_scan_store(c, instead, r);
    lf_if_begin(k, &earlier, v_if, "earlier");
    lf_if_begin(k, &there, o->v_there, "there");
    LLVMValueRef v_cell = cell(o, v_tile);
    lf_scan_store(c, lf_scan_await(c, prefix, v_cell, lf_scan_peek(c, prefix, v_cell)), r);
    lf_if_end(k, &there);
    lf_scan_store(c, lf_scan_load(c, r), slot(o, 1, c->v_warp));
    lf_if_end(k, &earlier);
}

// What all tiles before this one come to, if there are any; `total`: what this one does.
static lf_running look_back(outer *o, lf_running total) {
    lf_scan *c = o->c;
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_one = lf_i64_const(k, 1), v_next = LLVMBuildAdd(b, c->v_tile, v_one, "");
    LLVMValueRef v_more = LLVMBuildICmp(b, LLVMIntSLT, v_next, c->v_tiles, "more");
    publish(o, v_more, false, c->v_tile, total);
    LLVMValueRef v_number = LLVMBuildAnd(b, c->v_tile, lf_i64_const(k, GROUP - 1), "number"),
                 v_group = LLVMBuildSub(b, c->v_tile, v_number, "group");
    LLVMValueRef v_any_groups = compare(k, LLVMIntSGT, v_group, 0);
    learn(o, LLVMBuildICmp(b, LLVMIntSLT, c->v_warp, v_number, ""), false, LLVMBuildAdd(b, v_group, c->v_warp, ""), total);
    // The last warp never has a tile of this group to wait for.
    learn(o, LLVMBuildAnd(b, v_any_groups, compare(k, LLVMIntEQ, c->v_warp, WARPS - 1), ""), true, v_group, total);
    lf_gpu_barrier(k);
    lf_running before = lf_scan_alloca(c, "before");
    lf_scan_store(c, total, before); // stands in for nothing
    lf_if_blocks groups;
    lf_if_begin(k, &groups, v_any_groups, "groups");
    lf_scan_store(c, lf_scan_load(c, slot(o, 1, lf_i64_const(k, WARPS - 1))), before);
    lf_if_end(k, &groups);
    lf_loop_blocks others;
    LLVMValueRef v_other = lf_for_begin(k, &others, lf_i64_const(k, 0), v_number, v_one, "other");
    LLVMValueRef v_any = LLVMBuildOr(b, v_any_groups, compare(k, LLVMIntSGT, v_other, 0), "");
    lf_running r = lf_scan_load(c, slot(o, 1, v_other));
    lf_scan_store(c, lf_scan_join(c, v_any, lf_scan_load(c, before), NULL, r), before);
    lf_for_end(k, &others, LF_HINT_ROLLED);
    lf_running all = lf_scan_load(c, before);
    LLVMValueRef v_ends = LLVMBuildAnd(b, v_more, compare(k, LLVMIntEQ, v_number, GROUP - 1), "ends");
    publish(o, v_ends, true, v_next, lf_scan_join(c, compare(k, LLVMIntSGT, c->v_tile, 0), all, NULL, total));
    return all;
}

static void emit_tile(outer *o) {
    lf_scan *c = o->c;
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_first = LLVMBuildMul(b, c->v_tile, lf_i64_const(k, WARPS * RUN), "first");
    v_first = LLVMBuildAdd(b, v_first, LLVMBuildMul(b, c->v_warp, lf_i64_const(k, RUN), ""), "");
    for (unsigned j = 0; j < RUN; j++) {
        lf_kernel_use_copy(k, j);
        lf_kernel_forget_columns(k);
        LLVMValueRef v = LLVMBuildAdd(b, v_first, lf_i64_const(k, j), "");
        LLVMValueRef v_inside = LLVMBuildICmp(b, LLVMIntSLT, v, c->v_columns, "");
        o->v_inside[j] = LLVMBuildAnd(b, v_inside, o->v_there, "inside");
        lf_split_index(k, LLVMBuildSelect(b, v_inside, v, lf_i64_const(k, 0), ""), k->cols, lf_column_extent,
                       k->at->v_column);
    }
    lf_emit_loads(k, NULL, RUN, 0);
    for (unsigned j = 0; j < RUN; j++) {
        lf_kernel_use_copy(k, j);
        lf_running x = lf_scan_element(c, 0, k->at->v_column[0]);
        o->own[j] = j ? lf_scan_combine(c, o->own[j - 1], x) : x;
    }
    lf_kernel_use_copy(k, 0);
    lf_scan_store(c, o->own[RUN - 1], slot(o, 0, c->v_warp));
    lf_gpu_barrier(k);
    lf_running total = lf_scan_load(c, slot(o, 0, lf_i64_const(k, 0))), warps = total;
    for (unsigned w = 1; w < WARPS; w++) { // `warps`: those before this one
        LLVMValueRef v_here = compare(k, LLVMIntEQ, c->v_warp, w);
        warps.value.re = LLVMBuildSelect(b, v_here, total.value.re, warps.value.re, "");
        if (warps.value.im) warps.value.im = LLVMBuildSelect(b, v_here, total.value.im, warps.value.im, "");
        if (warps.v_extra) warps.v_extra = LLVMBuildSelect(b, v_here, total.v_extra, warps.v_extra, "");
        total = lf_scan_combine(c, total, lf_scan_load(c, slot(o, 0, lf_i64_const(k, w))));
    }
    LLVMValueRef v_warps = compare(k, LLVMIntSGT, c->v_warp, 0), v_tiles = compare(k, LLVMIntSGT, c->v_tile, 0);
    lf_running tiles = lf_scan_alloca(c, "tiles");
    lf_scan_store(c, total, tiles);
    lf_if_blocks several;
    lf_if_begin(k, &several, compare(k, LLVMIntSGT, c->v_tiles, 1), "several");
    lf_scan_store(c, look_back(o, total), tiles);
    lf_if_end(k, &several);
    lf_running base = lf_scan_join(c, v_tiles, lf_scan_load(c, tiles), v_warps, warps);
    LLVMValueRef v_base = LLVMBuildOr(b, v_tiles, v_warps, "");
    for (unsigned j = 0; j < RUN; j++) {
        lf_kernel_use_copy(k, j);
        lf_scan_set(c, 0, lf_scan_join(c, v_base, base, NULL, o->own[j]));
    }
    lf_scan_effects(c, RUN, o->v_inside);
}

lf_status lf_gpu_emit_scan_outer(lf_scan *c, lf_object *out) {
    lf_kernel *k = c->k;
    LLVMBuilderRef b = k->e->builder;
    outer o = {.c = c};
    out->block = WARPS * LF_GPU_WARP;
    out->rows_a_block = 1;
    lf_scan_share(c, 2 * WARPS * LF_GPU_WARP, out);
    LLVMValueRef v_rows = lf_gpu_total_rows(k);
    LLVMValueRef v_units = LLVMBuildLShr(b, LLVMBuildAdd(b, v_rows, lf_i64_const(k, 31), ""), lf_i64_const(k, 5), "units");
    c->v_tiles = LLVMBuildUDiv(b, LLVMBuildAdd(b, c->v_columns, lf_i64_const(k, WARPS * RUN - 1), ""),
                               lf_i64_const(k, WARPS * RUN), "tiles");
    LLVMValueRef v_all = LLVMBuildMul(b, v_units, c->v_tiles, "all");
    c->v_cells = LLVMBuildShl(b, v_all, lf_i64_const(k, 5), "cells");
    LLVMBasicBlockRef b_next = lf_block(k, "next"), b_tile = lf_block(k, "tile"), b_done = lf_block(k, "done");
    LLVMBuildBr(b, b_next);
    LLVMPositionBuilderAtEnd(b, b_next);
    LLVMValueRef v_number = lf_scan_take_tile(c);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, v_number, v_all, ""), b_tile, b_done);
    LLVMPositionBuilderAtEnd(b, b_tile);
    c->v_tile = LLVMBuildUDiv(b, v_number, v_units, "tile");
    o.v_unit = LLVMBuildSub(b, v_number, LLVMBuildMul(b, c->v_tile, v_units, ""), "unit");
    LLVMValueRef v_row = LLVMBuildAdd(b, LLVMBuildShl(b, o.v_unit, lf_i64_const(k, 5), ""), c->v_lane, "row");
    o.v_there = LLVMBuildICmp(b, LLVMIntSLT, v_row, v_rows, "there");
    v_row = LLVMBuildSelect(b, o.v_there, v_row, LLVMBuildSub(b, v_rows, lf_i64_const(k, 1), ""), "");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    LLVMValueRef v_leads = LLVMBuildAnd(b, o.v_there, compare(k, LLVMIntEQ, c->v_warp, 0), "");
    lf_emit_rows_of_level(k, 0, LLVMBuildAnd(b, v_leads, compare(k, LLVMIntEQ, c->v_tile, 0), "leads"));
    emit_tile(&o);
    lf_gpu_barrier(k); // all of shared memory is read
    LLVMBuildBr(b, b_next);
    LLVMPositionBuilderAtEnd(b, b_done);
    return NULL;
}
