// See math_device.h.
#include "codegen/llvm/math_device.h"
#include "codegen/llvm/emit_build.h"
#include <string.h>

static bool is_float(LLVMValueRef v) { return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMFloatTypeKind; }

static bool real_constant(LLVMValueRef v, double *out) {
    LLVMBool lost;
    if (!LLVMIsAConstantFP(v)) return false;
    *out = LLVMConstRealGetDouble(v, &lost);
    return true;
}

static void replace(LLVMValueRef v_old, LLVMValueRef v_new) {
    LLVMReplaceAllUsesWith(v_old, v_new);
    LLVMInstructionEraseFromParent(v_old);
}

// 1/d as the device's approximation and one Newton step, which is how ptxas makes rcp.rn too, less its test for d that are very
// small or large. Functions of halves and sigmoid keep d away from these.
static void reciprocal(lf_emit *e, LLVMValueRef v) {
    double one;
    if (LLVMGetInstructionOpcode(v) != LLVMFDiv || !is_float(v) || !real_constant(LLVMGetOperand(v, 0), &one) || one != 1)
        return;
    LLVMValueRef d = LLVMGetOperand(v, 1);
    LLVMPositionBuilderBefore(e->builder, v);
    LLVMValueRef r = l_intrinsic1(e, "llvm.nvvm.rcp.approx.ftz.f", d);
    LLVMValueRef v_error = l_fma(e, LLVMBuildFNeg(e->builder, d, "minus"), r, l_number_like(d, 1));
    replace(v, l_fma(e, r, v_error, r));
}

// x < C ? C : x and x > C ? C : x, a NaN passing through: one instruction from sm_80 on. C is no zero, so their order is no matter.
static void limit(lf_emit *e, LLVMValueRef v) {
    if (LLVMGetInstructionOpcode(v) != LLVMSelect || !is_float(v)) return;
    LLVMValueRef v_if = LLVMGetOperand(v, 0), v_limit = LLVMGetOperand(v, 1), x = LLVMGetOperand(v, 2);
    double c;
    if (!LLVMIsAFCmpInst(v_if) || !real_constant(v_limit, &c) || c != c || c == 0) return;
    if (LLVMGetOperand(v_if, 0) != x || LLVMGetOperand(v_if, 1) != v_limit) return;
    LLVMRealPredicate p = LLVMGetFCmpPredicate(v_if);
    if (p != LLVMRealOLT && p != LLVMRealOGT) return;
    LLVMPositionBuilderBefore(e->builder, v);
    replace(v, l_intrinsic2(e, p == LLVMRealOLT ? "llvm.maximum" : "llvm.minimum", x, v_limit));
    if (!LLVMGetFirstUse(v_if)) LLVMInstructionEraseFromParent(v_if);
}

static bool has_ending(const char *name, size_t n, const char *ending) {
    size_t m = strlen(ending);
    return n > m && !memcmp(name + n - m, ending, m);
}

void lf_math_for_device(lf_llvm *l) {
    lf_emit *e = &l->emit;
    if (l->target.kind != LF_TARGET_CUDA || e->target != LF_EMIT_NVPTX || l->target.sm < 80) return;
    for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f)) {
        size_t n;
        const char *name = LLVMGetValueName2(f, &n);
        if (n < 4 || memcmp(name, "lfm_", 4)) continue;
        bool tame = has_ending(name, n, "_half") || !strcmp(name, "lfm_sigmoid_f32");
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef v = LLVMGetFirstInstruction(b), v_next; v; v = v_next) {
                v_next = LLVMGetNextInstruction(v);
                if (LLVMGetInstructionOpcode(v) == LLVMSelect)
                    limit(e, v);
                else if (tame)
                    reciprocal(e, v);
            }
    }
}
