// One elementwise op for all the elements that a GPU thread has at once. Most ops are emitted lane by lane; where a function has a
// cheaper form for common arguments, one branch for all lanes chooses it.
#include "analysis/bits.h"
#include "codegen/llvm/emit_family.h"

// f32 exp on a GPU: a normal result needs no limits and no scaling in two steps (7 instructions of 18), and the lanes can ask together.
// Arguments that are never above 0 have a form without a branch already (emit_math.c).
static bool has_near_form(const lf_emit *e, const lf_op *op, unsigned lanes) {
    return op->code == LF_OP_EXP && op->results[0].type.dtype == LF_F32 && op->operands[0]->type.dtype == LF_F32 &&
           !e->fast && e->target != LF_EMIT_X86 && lanes > 1 && !lf_emit_never_above_zero(op->operands[0]);
}

static void exp_lanes(lf_emit *e, const lf_op *op, const lf_register (*args)[LF_EMIT_OPERANDS], unsigned lanes,
                      lf_register *out) {
    LLVMValueRef v_near = NULL;
    for (unsigned i = 0; i < lanes; i++) { // false for NaN
        LLVMValueRef v_is = l_fcmp_const(e, LLVMRealOLE, l_fabs(e, args[i][0].re), 87);
        v_near = v_near ? l_and(e, v_near, v_is) : v_is;
    }
    LLVMBasicBlockRef b_near = lf_emit_block(e, "near"), b_any = lf_emit_block(e, "any"), b_done = lf_emit_block(e, "exp");
    LLVMBuildCondBr(e->builder, v_near, b_near, b_any);
    LLVMPositionBuilderAtEnd(e->builder, b_near);
    LLVMValueRef v_quick[LF_EMIT_LANES];
    for (unsigned i = 0; i < lanes; i++) v_quick[i] = l_math1(e, "exp_near", args[i][0].re);
    LLVMBuildBr(e->builder, b_done);
    LLVMPositionBuilderAtEnd(e->builder, b_any);
    for (unsigned i = 0; i < lanes; i++) out[i] = lf_emit_elem(e, op, args[i]);
    b_any = LLVMGetInsertBlock(e->builder);
    LLVMBuildBr(e->builder, b_done);
    LLVMPositionBuilderAtEnd(e->builder, b_done);
    LLVMBasicBlockRef from[2] = {b_near, b_any};
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef v_phi = LLVMBuildPhi(e->builder, l_real_type(e, LF_F32), "exp");
        LLVMAddIncoming(v_phi, (LLVMValueRef[]){v_quick[i], out[i].re}, from, 2);
        out[i] = l_register(v_phi);
    }
}

// All operands and the result are of one half dtype. A select makes NaNs canonical where one side alone keeps its bits: lane by lane.
static bool is_of_pairs(const lf_op *op) {
    bool select = op->code == LF_OP_SELECT;
    lf_dtype d = op->results[0].type.dtype;
    if (!lf_is_half(d) || (select && lf_keeps_bits(op->operands[1]) != lf_keeps_bits(op->operands[2]))) return false;
    for (unsigned i = select; i < op->n_operands; i++)
        if (op->operands[i] && op->operands[i]->type.dtype != d) return false;
    return true;
}

void lf_emit_elem_lanes(lf_emit *e, const lf_op *op, const lf_register (*args)[LF_EMIT_OPERANDS], unsigned lanes,
                        lf_register *out) {
    if (is_of_pairs(op) && lf_emit_pairs(e, op->code, op->results[0].type.dtype, args, lanes, out)) return;
    if (has_near_form(e, op, lanes)) {
        exp_lanes(e, op, args, lanes, out);
        return;
    }
    for (unsigned i = 0; i < lanes; i++) out[i] = lf_emit_elem(e, op, args[i]);
}
