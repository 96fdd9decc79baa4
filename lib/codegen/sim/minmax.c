// What LLVM's x86 back end makes of minima and maxima is not what PTX means (see lf_emit_x86_minmax).
#include "codegen/llvm/emit_family.h"
#include "codegen/sim/lower.h"
#include <string.h>

static void mend(lf_emit *e, LLVMValueRef v) {
    size_t n;
    LLVMValueRef v_callee = LLVMIsACallInst(v) ? LLVMIsAFunction(LLVMGetCalledValue(v)) : NULL;
    const char *name = v_callee ? LLVMGetValueName2(v_callee, &n) : "";
    bool least = !strncmp(name, "llvm.minimum", 12);
    if (!least && strncmp(name, "llvm.maximum", 12) != 0) return;
    LLVMPositionBuilderBefore(e->builder, v);
    LLVMValueRef v_new =
        lf_emit_x86_minmax(e, least, !strncmp(name + 12, "num.", 4), LLVMGetOperand(v, 0), LLVMGetOperand(v, 1));
    LLVMReplaceAllUsesWith(v, v_new);
    LLVMInstructionEraseFromParent(v);
}

void lf_sim_mend_minmax(lf_sim_lowering *s) {
    for (LLVMValueRef f = LLVMGetFirstFunction(s->l->emit.module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef v = LLVMGetFirstInstruction(b), v_next; v; v = v_next) {
                v_next = LLVMGetNextInstruction(v);
                mend(&s->l->emit, v);
            }
}
