// Scatter on a GPU where rows are long: a block a row. Its threads copy the row, then take as many updates at a time as there are threads.
// Updates of one place take effect in order: of each, as many earlier ones of the same place are counted among those at hand, and it waits
// for so many rounds; where a later one overwrites it, it does nothing.
#include "codegen/kernel/gpu.h"

enum { THREADS = 256, MOST = 0, PLACES = 16 };

static LLVMValueRef shared_at(lf_kernel *k, LLVMValueRef v_shared, LLVMValueRef v_bytes) {
    return LLVMBuildGEP2(k->e->builder, LLVMInt8TypeInContext(k->e->context), v_shared, &v_bytes, 1, "");
}

static LLVMValueRef place_at(lf_kernel *k, LLVMValueRef v_shared, LLVMValueRef v_thread) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v = LLVMBuildMul(b, v_thread, lf_i64_const(k, 8), "");
    return shared_at(k, v_shared, LLVMBuildAdd(b, v, lf_i64_const(k, PLACES), ""));
}

static void copy_row(lf_kernel *k, LLVMValueRef v_thread) {
    lf_loop_blocks columns;
    lf_kernel_at_column(k, lf_for_begin(k, &columns, v_thread, lf_columns(k), lf_i64_const(k, THREADS), "copy"));
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        if (k->loop->stmts[i].kind == LF_STMT_STORE) lf_emit_statement(k, i);
    lf_for_end(k, &columns, LF_HINT_NONE);
    lf_kernel_forget_columns(k);
}

// How many threads in [v_from, v_to) have an update of the same place.
static LLVMValueRef count_same(lf_kernel *k, LLVMValueRef v_shared, LLVMValueRef v_mine, LLVMValueRef v_from,
                               LLVMValueRef v_to) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_count = lf_alloca(k, k->l_i64, "same");
    LLVMBuildStore(b, lf_i64_const(k, 0), v_count);
    lf_loop_blocks others;
    LLVMValueRef v_other = lf_for_begin(k, &others, v_from, v_to, lf_i64_const(k, 1), "other");
    LLVMValueRef v_place = LLVMBuildLoad2(b, k->l_i64, place_at(k, v_shared, v_other), "place");
    LLVMValueRef v_same = LLVMBuildZExt(b, LLVMBuildICmp(b, LLVMIntEQ, v_place, v_mine, ""), k->l_i64, "");
    LLVMBuildStore(b, LLVMBuildAdd(b, LLVMBuildLoad2(b, k->l_i64, v_count, ""), v_same, ""), v_count);
    lf_for_end(k, &others, LF_HINT_NONE);
    return LLVMBuildLoad2(b, k->l_i64, v_count, "same");
}

static void update_if(lf_kernel *k, LLVMValueRef v_condition, LLVMValueRef v_place, lf_register source) {
    lf_if_blocks now;
    lf_if_begin(k, &now, v_condition, "now");
    lf_kernel_forget_columns(k);
    k->at->v_column[0] = v_place;
    lf_emit_updates(k, source);
    lf_if_end(k, &now);
    lf_kernel_forget_columns(k);
}

static void update_some(lf_kernel *k, LLVMValueRef v_shared, LLVMValueRef v_thread, LLVMValueRef v_first,
                        LLVMValueRef v_count) {
    LLVMBuilderRef b = k->e->builder;
    const lf_loop *loop = k->loop;
    LLVMValueRef v_one = lf_i64_const(k, 1), v_zero = lf_i64_const(k, 0), v_number = LLVMBuildAdd(b, v_first, v_thread, "");
    LLVMValueRef v_there = LLVMBuildICmp(b, LLVMIntSLT, v_number, v_count, "there");
    lf_kernel_at_column(k, LLVMBuildSelect(b, v_there, v_number, v_first, ""));
    lf_emit_statement(k, loop->keys[LF_SCATTER_INDEX]);
    lf_emit_statement(k, loop->keys[LF_SCATTER_INSIDE]);
    lf_emit_statement(k, loop->keys[LF_SCATTER_SOURCE]);
    lf_if_blocks report, first;
    lf_if_begin(k, &report, v_there, "report");
    lf_emit_statement(k, loop->keys[LF_SCATTER_ERROR]);
    lf_if_end(k, &report);
    lf_register source = lf_reg(k, loop->keys[LF_SCATTER_SOURCE], 0);
    LLVMValueRef v_place = lf_reg(k, loop->keys[LF_SCATTER_INDEX], 0).re;
    LLVMValueRef v_does = LLVMBuildAnd(b, v_there, lf_reg(k, loop->keys[LF_SCATTER_INSIDE], 0).re, "does");
    // What does nothing has a place of its own.
    LLVMValueRef v_mine = LLVMBuildSelect(b, v_does, v_place, LLVMBuildNot(b, v_thread, ""), "mine");
    LLVMBuildStore(b, v_mine, place_at(k, v_shared, v_thread));
    LLVMValueRef v_most = shared_at(k, v_shared, lf_i64_const(k, MOST));
    lf_if_begin(k, &first, LLVMBuildICmp(b, LLVMIntEQ, v_thread, v_zero, ""), "first");
    LLVMBuildStore(b, v_zero, v_most);
    lf_if_end(k, &first);
    lf_gpu_barrier(k);
    if (loop->mode == LF_SCATTER_SET) {
        LLVMValueRef v_later =
            count_same(k, v_shared, v_mine, LLVMBuildAdd(b, v_thread, v_one, ""), lf_i64_const(k, THREADS));
        LLVMValueRef v_last = LLVMBuildICmp(b, LLVMIntEQ, v_later, v_zero, "last");
        update_if(k, LLVMBuildAnd(b, v_does, v_last, ""), v_place, source);
        lf_gpu_barrier(k);
        return;
    }
    LLVMValueRef v_earlier = count_same(k, v_shared, v_mine, v_zero, v_thread);
    lf_if_blocks waits;
    lf_if_begin(k, &waits, LLVMBuildICmp(b, LLVMIntSGT, v_earlier, v_zero, ""), "waits");
    LLVMValueRef v = LLVMBuildAtomicRMW(b, LLVMAtomicRMWBinOpMax, v_most, v_earlier, LLVMAtomicOrderingMonotonic, false);
    LLVMSetAtomicSyncScopeID(v, LLVMGetSyncScopeID(k->e->context, "block", 5));
    lf_if_end(k, &waits);
    lf_gpu_barrier(k);
    lf_loop_blocks rounds;
    LLVMValueRef v_rounds = LLVMBuildAdd(b, LLVMBuildLoad2(b, k->l_i64, v_most, "most"), v_one, "rounds");
    LLVMValueRef v_round = lf_for_begin(k, &rounds, v_zero, v_rounds, v_one, "round");
    update_if(k, LLVMBuildAnd(b, v_does, LLVMBuildICmp(b, LLVMIntEQ, v_earlier, v_round, ""), ""), v_place, source);
    lf_gpu_barrier(k);
    lf_for_end(k, &rounds, LF_HINT_ROLLED);
}

void lf_gpu_emit_scatter(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    out->block = THREADS;
    out->rows_a_block = 1;
    out->shared_bytes = PLACES + 8 * THREADS;
    LLVMValueRef v_shared = lf_gpu_shared_memory(k, out->shared_bytes), v_zero = lf_i64_const(k, 0);
    LLVMValueRef v_thread = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x");
    lf_loop_blocks rows, updates;
    LLVMValueRef v_row = lf_for_begin(k, &rows, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), lf_gpu_total_rows(k),
                                      lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), "row");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    lf_emit_rows_of_level(k, 0, LLVMBuildICmp(b, LLVMIntEQ, v_thread, v_zero, "leads"));
    copy_row(k, v_thread);
    lf_gpu_barrier(k);
    LLVMValueRef v_count = lf_reg(k, k->loop->keys[LF_SCATTER_COUNT], 0).re;
    if (k->loop->keys[LF_SCATTER_ROW] != LF_NO_STMT)
        v_count = LLVMBuildSelect(b, lf_reg(k, k->loop->keys[LF_SCATTER_ROW], 0).re, v_count, v_zero, "count");
    LLVMValueRef v_first = lf_for_begin(k, &updates, v_zero, v_count, lf_i64_const(k, THREADS), "updates");
    update_some(k, v_shared, v_thread, v_first, v_count);
    lf_for_end(k, &updates, LF_HINT_ROLLED);
    lf_for_end(k, &rows, LF_HINT_ROLLED);
}
