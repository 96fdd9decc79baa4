// Loops and conditions in LLVM IR.
#include "codegen/kernel/kernel.h"
#include <llvm-c/DebugInfo.h>

static LLVMMetadataRef text_node(lf_kernel *k, const char *text) {
    LLVMMetadataRef s = LLVMMDStringInContext2(k->e->context, text, __builtin_strlen(text));
    return LLVMMDNodeInContext2(k->e->context, &s, 1);
}

static LLVMMetadataRef number_node(lf_kernel *k, const char *text, unsigned value) {
    LLVMContextRef c = k->e->context;
    LLVMMetadataRef pair[2] = {LLVMMDStringInContext2(c, text, __builtin_strlen(text)),
                               LLVMValueAsMetadata(LLVMConstInt(k->l_i32, value, false))};
    return LLVMMDNodeInContext2(c, pair, 2);
}

// !{self, hint…}: a loop's metadata begins with itself.
static void annotate(lf_kernel *k, LLVMValueRef v_branch, lf_loop_hint hint) {
    LLVMContextRef c = k->e->context;
    LLVMMetadataRef self = LLVMTemporaryMDNode(c, NULL, 0), nodes[4] = {self};
    unsigned n = 1;
    if ((hint == LF_HINT_PARALLEL || hint == LF_HINT_SHORT) && k->parallel_group) {
        LLVMMetadataRef pair[2] = {LLVMMDStringInContext2(c, "llvm.loop.parallel_accesses", 27), k->parallel_group};
        nodes[n++] = LLVMMDNodeInContext2(c, pair, 2);
    }
    if (hint == LF_HINT_SHORT) nodes[n++] = number_node(k, "llvm.loop.interleave.count", 1);
    if (hint == LF_HINT_SHORT || hint == LF_HINT_ROLLED) nodes[n++] = text_node(k, "llvm.loop.unroll.disable");
    LLVMMetadataRef loop = LLVMMDNodeInContext2(c, nodes, n);
    LLVMMetadataReplaceAllUsesWith(self, loop);
    if (n > 1) LLVMSetMetadata(v_branch, LLVMGetMDKindIDInContext(c, "llvm.loop", 9), LLVMMetadataAsValue(c, loop));
}

LLVMValueRef lf_for_begin(lf_kernel *k, lf_loop_blocks *b, LLVMValueRef v_from, LLVMValueRef v_to, LLVMValueRef v_step,
                          const char *name) {
    LLVMBuilderRef builder = k->e->builder;
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(builder);
    *b = (lf_loop_blocks){
        .b_head = lf_block(k, name), .b_body = lf_block(k, "body"), .b_done = lf_block(k, "done"), .v_step = v_step};
    LLVMBuildBr(builder, b->b_head);
    LLVMPositionBuilderAtEnd(builder, b->b_head);
    b->v_index = LLVMBuildPhi(builder, LLVMTypeOf(v_from), name);
    LLVMAddIncoming(b->v_index, &v_from, &b_before, 1);
    LLVMBuildCondBr(builder, LLVMBuildICmp(builder, LLVMIntSLT, b->v_index, v_to, ""), b->b_body, b->b_done);
    LLVMPositionBuilderAtEnd(builder, b->b_body);
    return b->v_index;
}

void lf_for_end(lf_kernel *k, lf_loop_blocks *b, lf_loop_hint hint) {
    LLVMBuilderRef builder = k->e->builder;
    LLVMBasicBlockRef b_last = LLVMGetInsertBlock(builder);
    LLVMValueRef v_next = LLVMBuildNSWAdd(builder, b->v_index, b->v_step, "next");
    annotate(k, LLVMBuildBr(builder, b->b_head), hint);
    LLVMAddIncoming(b->v_index, &v_next, &b_last, 1);
    LLVMPositionBuilderAtEnd(builder, b->b_done);
}

void lf_if_begin(lf_kernel *k, lf_if_blocks *b, LLVMValueRef v_condition, const char *name) {
    LLVMBasicBlockRef b_then = lf_block(k, name);
    b->b_done = lf_block(k, "after");
    LLVMBuildCondBr(k->e->builder, v_condition, b_then, b->b_done);
    LLVMPositionBuilderAtEnd(k->e->builder, b_then);
}

void lf_if_end(lf_kernel *k, lf_if_blocks *b) {
    LLVMBuildBr(k->e->builder, b->b_done);
    LLVMPositionBuilderAtEnd(k->e->builder, b->b_done);
}

LLVMValueRef lf_search(lf_kernel *k, LLVMValueRef v_from, LLVMValueRef v_to, lf_stop stops, void *context) {
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(b), b_head = lf_block(k, "search"), b_body = lf_block(k, "probe"),
                      b_done = lf_block(k, "found");
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_head);
    LLVMValueRef v_low = LLVMBuildPhi(b, k->l_i64, "low"), v_high = LLVMBuildPhi(b, k->l_i64, "high");
    LLVMAddIncoming(v_low, &v_from, &b_before, 1);
    LLVMAddIncoming(v_high, &v_to, &b_before, 1);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, v_low, v_high, ""), b_body, b_done);
    LLVMPositionBuilderAtEnd(b, b_body);
    LLVMValueRef v_one = lf_i64_const(k, 1),
                 v_middle = LLVMBuildLShr(b, LLVMBuildAdd(b, v_low, v_high, ""), v_one, "middle");
    LLVMValueRef v_stops = stops(context, v_middle);
    LLVMValueRef v_next_low = LLVMBuildSelect(b, v_stops, v_low, LLVMBuildAdd(b, v_middle, v_one, ""), ""),
                 v_next_high = LLVMBuildSelect(b, v_stops, v_middle, v_high, "");
    LLVMBasicBlockRef b_last = LLVMGetInsertBlock(b);
    LLVMAddIncoming(v_low, &v_next_low, &b_last, 1);
    LLVMAddIncoming(v_high, &v_next_high, &b_last, 1);
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_done);
    return v_low;
}
