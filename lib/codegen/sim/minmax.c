// What LLVM's x86 back end makes of minima and maxima is not what PTX means: where it knows one operand to be no NaN (a converted
// integer), a signalling NaN beside it is lost (see lf_emit_float_minmax). Here NaN is asked for explicitly.
#include "codegen/llvm/emit_build.h"
#include "codegen/sim/lower.h"
#include <math.h>
#include <string.h>

static LLVMValueRef instead_of(lf_emit *e, const char *kind, bool number, LLVMValueRef a, LLVMValueRef b) {
    char name[32] = "llvm.";
    strncat(name, kind, 7); // minimum or maximum
    LLVMValueRef v_best = l_intrinsic2(e, name, a, b);
    if (!number) return l_select(e, l_fcmp(e, LLVMRealUNO, a, b), l_number_like(a, (double)NAN), v_best);
    v_best = l_select(e, l_fcmp(e, LLVMRealUNO, b, b), a, v_best);
    return l_select(e, l_fcmp(e, LLVMRealUNO, a, a), b, v_best);
}

static void mend(lf_emit *e, LLVMValueRef v) {
    size_t n;
    LLVMValueRef v_callee = LLVMIsACallInst(v) ? LLVMIsAFunction(LLVMGetCalledValue(v)) : NULL;
    const char *name = v_callee ? LLVMGetValueName2(v_callee, &n) : "";
    if (strncmp(name, "llvm.minimum", 12) != 0 && strncmp(name, "llvm.maximum", 12) != 0) return;
    LLVMPositionBuilderBefore(e->builder, v);
    LLVMValueRef v_new =
        instead_of(e, name + strlen("llvm."), !strncmp(name + 12, "num.", 4), LLVMGetOperand(v, 0), LLVMGetOperand(v, 1));
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
