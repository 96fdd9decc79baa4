// A binary counter of sums: the canonical order is pairwise over the bits of a number, lowest first, so the sum of 2^l neighbours waits at
// level l until that of the next 2^l is there. What is summed, and where it waits, is the caller's.
#include "codegen/kernel/kernel.h"

static LLVMValueRef bit(lf_kernel *k, LLVMValueRef v, unsigned n) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_bit = LLVMBuildLShr(b, v, LLVMConstInt(LLVMTypeOf(v), n, false), "");
    return LLVMBuildTrunc(b, v_bit, LLVMInt1TypeInContext(k->e->context), "");
}

void lf_counter_push(lf_kernel *k, const lf_counter *c, LLVMValueRef v_before, unsigned levels) {
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_done = lf_block(k, "pushed");
    for (unsigned l = 0; l < levels; l++) {
        LLVMBasicBlockRef b_wait = lf_block(k, "wait"), b_merge = lf_block(k, "merge");
        LLVMBuildCondBr(b, bit(k, v_before, l), b_merge, b_wait);
        LLVMPositionBuilderAtEnd(b, b_wait);
        c->keep(c->context, (lf_level){.number = l});
        LLVMBuildBr(b, b_done);
        LLVMPositionBuilderAtEnd(b, b_merge);
        c->merge(c->context, (lf_level){.number = l});
    }
    c->keep(c->context, (lf_level){.number = levels});
    LLVMBuildBr(b, b_done);
    LLVMPositionBuilderAtEnd(b, b_done);
}

void lf_counter_rest(lf_kernel *k, const lf_counter *c, LLVMValueRef v_count, unsigned levels) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = LLVMConstNull(LLVMTypeOf(v_count)), v_one = LLVMConstInt(LLVMTypeOf(v_count), 1, false);
    for (unsigned l = 0; l <= levels; l++) {
        LLVMValueRef v_level = LLVMConstInt(LLVMTypeOf(v_count), l, false);
        LLVMValueRef v_bit = LLVMBuildAnd(b, LLVMBuildLShr(b, v_count, v_level, ""), v_one, "");
        lf_if_blocks left;
        lf_if_begin(k, &left, LLVMBuildICmp(b, LLVMIntNE, v_bit, v_zero, ""), "left");
        c->merge(c->context, (lf_level){.number = l});
        lf_if_end(k, &left);
    }
}

void lf_counter_push_by_loop(lf_kernel *k, const lf_counter *c, LLVMValueRef v_before) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_one = lf_i64_const(k, 1);
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(b), b_head = lf_block(k, "carry"), b_body = lf_block(k, "combine"),
                      b_done = lf_block(k, "push");
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_head);
    LLVMValueRef v_left = LLVMBuildPhi(b, k->l_i64, "left"), v_level = LLVMBuildPhi(b, k->l_i64, "level");
    LLVMAddIncoming(v_left, &v_before, &b_here, 1);
    LLVMAddIncoming(v_level, &v_zero, &b_here, 1);
    LLVMBuildCondBr(b, bit(k, v_left, 0), b_body, b_done);
    LLVMPositionBuilderAtEnd(b, b_body);
    c->merge(c->context, (lf_level){.v = v_level});
    LLVMValueRef v_half = LLVMBuildLShr(b, v_left, v_one, ""), v_next = LLVMBuildAdd(b, v_level, v_one, "");
    LLVMBasicBlockRef b_last = LLVMGetInsertBlock(b);
    LLVMAddIncoming(v_left, &v_half, &b_last, 1);
    LLVMAddIncoming(v_level, &v_next, &b_last, 1);
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_done);
    c->keep(c->context, (lf_level){.v = v_level});
}

void lf_counter_rest_by_loop(lf_kernel *k, const lf_counter *c, LLVMValueRef v_count, unsigned levels, lf_loop_hint hint) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_one = lf_i64_const(k, 1);
    lf_loop_blocks all;
    LLVMValueRef v_level = lf_for_begin(k, &all, v_zero, lf_i64_const(k, levels), v_one, "level");
    LLVMValueRef v_bit = LLVMBuildAnd(b, LLVMBuildLShr(b, v_count, v_level, ""), v_one, "");
    lf_if_blocks present;
    lf_if_begin(k, &present, LLVMBuildICmp(b, LLVMIntNE, v_bit, v_zero, ""), "present");
    c->merge(c->context, (lf_level){.v = v_level});
    lf_if_end(k, &present);
    lf_for_end(k, &all, hint);
}
