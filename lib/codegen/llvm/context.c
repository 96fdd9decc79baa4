// See context.h.
#include "codegen/llvm/context.h"
#include "codegen/llvm/llvm_status.h"
#include "codegen/llvm/target.h"
#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <string.h>

typedef struct lf_llvm_private {
    lf_llvm l; // first
    lf_llvm_diagnostics diagnostics;
} lf_llvm_private;

lf_status lf_llvm_create(const lf_allocator *a, const lf_target *t, lf_llvm_use use, bool fast, const char *name,
                         lf_llvm **out_llvm) {
    *out_llvm = NULL;
    lf_target target = *t;
    if (use == LF_LLVM_HOST_CODE) target.kind = LF_TARGET_CPU;
    lf_llvm_private *p = lf_alloc_zero(a, sizeof *p);
    if (!p) return lf_out_of_memory();
    lf_llvm *l = &p->l;
    l->allocator = a;
    l->target = target;
    l->use = use;
    lf_target_facts facts;
    lf_status s = lf_target_machine(a, &target, use, &l->machine, &facts);
    if (s) {
        lf_free(a, p);
        return s;
    }
    l->vector_bytes = facts.vector_bytes;
    l->layout = LLVMCreateTargetDataLayout(l->machine);

    lf_emit *e = &l->emit;
    e->target = target.kind == LF_TARGET_CPU ? LF_EMIT_X86 : LF_EMIT_NVPTX;
    e->fast = fast;
    e->has_half = facts.has_half;
    e->has_bf16 = target.kind != LF_TARGET_CPU && t->sm >= 80;
    e->allocator = a;
    e->context = LLVMContextCreate();
    p->diagnostics = (lf_llvm_diagnostics){.allocator = a, .status_slot = &e->status};
    lf_llvm_collect_diagnostics(e->context, &p->diagnostics);
    e->module = LLVMModuleCreateWithNameInContext(name, e->context);
    char *triple = LLVMGetTargetMachineTriple(l->machine);
    LLVMSetTarget(e->module, triple);
    LLVMDisposeMessage(triple);
    LLVMSetModuleDataLayout(e->module, l->layout);
    e->builder = LLVMCreateBuilderInContext(e->context);
    *out_llvm = l;
    return NULL;
}

void lf_llvm_destroy(lf_llvm *l) {
    if (!l) return;
    LLVMDisposeBuilder(l->emit.builder);
    LLVMDisposeModule(l->emit.module);
    LLVMContextDispose(l->emit.context);
    LLVMDisposeTargetData(l->layout);
    LLVMDisposeTargetMachine(l->machine);
    lf_status_destroy(l->emit.status);
    lf_free(l->allocator, l);
}

lf_status lf_llvm_take_status(lf_llvm *l) {
    lf_status s = l->emit.status;
    l->emit.status = NULL;
    return s;
}

lf_status lf_llvm_verify(lf_llvm *l) {
    char *message = NULL;
    if (LLVMVerifyModule(l->emit.module, LLVMReturnStatusAction, &message))
        return lf_llvm_message(l->allocator, LF_INTERNAL, "the generated LLVM IR is not well formed", message);
    LLVMDisposeMessage(message);
    return NULL;
}

lf_status lf_llvm_module_text(lf_llvm *l, char **out_text) {
    char *text = LLVMPrintModuleToString(l->emit.module);
    *out_text = lf_strndup(l->allocator, text, strlen(text));
    LLVMDisposeMessage(text);
    return *out_text ? NULL : lf_out_of_memory();
}
