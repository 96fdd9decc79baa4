// Constant expressions over shared arrays as instructions: where a shared array lies is known only when a block runs.
#include "codegen/sim/lower.h"

enum { MAX_DEPTH = 32 };

static bool is_shared(LLVMValueRef v) { return LLVMIsAGlobalVariable(v) && LLVMGetPointerAddressSpace(LLVMTypeOf(v)) == 3; }

// Whether a shared array is used in this constant, which is no array itself. Constants are trees a few levels deep.
static bool mentions_shared(LLVMValueRef v, unsigned depth) {
    if (is_shared(v)) return true;
    if (!LLVMIsAConstantExpr(v) || depth == MAX_DEPTH) return false;
    int n = LLVMGetNumOperands(v);
    for (int i = 0; i < n; i++)
        if (mentions_shared(LLVMGetOperand(v, (unsigned)i), depth + 1)) return true;
    return false;
}

static LLVMValueRef place_of(const lf_sim_lowering *s, LLVMValueRef v_array) {
    for (size_t i = 0; i < s->places.count; i++)
        if (s->places.data[i].v_array == v_array) return s->places.data[i].v_place;
    return NULL;
}

static LLVMValueRef expand(lf_sim_lowering *s, LLVMValueRef v, unsigned depth) {
    LLVMBuilderRef b = s->l->emit.builder;
    if (is_shared(v)) return place_of(s, v);
    if (!mentions_shared(v, depth)) return v;
    LLVMValueRef operands[8];
    int n = LLVMGetNumOperands(v);
    if (n > 8 || depth == MAX_DEPTH) return NULL;
    for (int i = 0; i < n; i++)
        if (!(operands[i] = expand(s, LLVMGetOperand(v, (unsigned)i), depth + 1))) return NULL;
    LLVMOpcode code = LLVMGetConstOpcode(v);
    switch (code) {
    case LLVMGetElementPtr:
        return LLVMBuildGEP2(b, LLVMGetGEPSourceElementType(v), operands[0], operands + 1, (unsigned)n - 1, "");
    case LLVMAdd:
    case LLVMSub:
    case LLVMXor: return LLVMBuildBinOp(b, code, operands[0], operands[1], "");
    case LLVMTrunc:
    case LLVMPtrToInt:
    case LLVMPtrToAddr:
    case LLVMIntToPtr:
    case LLVMBitCast:
    case LLVMAddrSpaceCast: return LLVMBuildCast(b, code, operands[0], LLVMTypeOf(v), "");
    default: return NULL;
    }
}

// What was put in for an earlier entry of a phi from the same block: both must be one value.
static LLVMValueRef same_block_entry(LLVMValueRef v_phi, int before) {
    for (int i = 0; i < before; i++)
        if (LLVMGetIncomingBlock(v_phi, (unsigned)i) == LLVMGetIncomingBlock(v_phi, (unsigned)before))
            return LLVMGetOperand(v_phi, (unsigned)i);
    return NULL;
}

static lf_status replace_operands(lf_sim_lowering *s, LLVMValueRef v) {
    LLVMBuilderRef b = s->l->emit.builder;
    int n = LLVMGetNumOperands(v);
    for (int i = 0; i < n; i++) {
        LLVMValueRef v_operand = LLVMGetOperand(v, (unsigned)i);
        if (!mentions_shared(v_operand, 0)) continue;
        LLVMValueRef v_new = LLVMIsAPHINode(v) ? same_block_entry(v, i) : NULL;
        if (LLVMIsAPHINode(v))
            LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(v, (unsigned)i)));
        else
            LLVMPositionBuilderBefore(b, v);
        if (!v_new) v_new = expand(s, v_operand, 0);
        if (!v_new) return lf_sim_refuse(s, "no such constant of a shared array", v_operand);
        LLVMSetOperand(v, (unsigned)i, v_new);
    }
    return NULL;
}

lf_status lf_sim_replace_shared(lf_sim_lowering *s) {
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(s->v_kernel); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef v = LLVMGetFirstInstruction(b); v; v = LLVMGetNextInstruction(v)) LF_TRY(replace_operands(s, v));
    // Constants that nobody uses any more still refer to the arrays, so these cannot go; as declarations they leave nothing in the object.
    for (size_t i = 0; i < s->places.count; i++) {
        LLVMSetInitializer(s->places.data[i].v_array, NULL);
        LLVMSetLinkage(s->places.data[i].v_array, LLVMExternalLinkage);
    }
    return NULL;
}
