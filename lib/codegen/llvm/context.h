// One compile: LLVM's context, module, builder and target machine, with whatever LLVM has to say collected in a status.
// Does not belong here: how a target is described (target.h), what is emitted (emit.h and the folders beside this one).
#ifndef LF_CODEGEN_LLVM_CONTEXT_H
#define LF_CODEGEN_LLVM_CONTEXT_H
#include "codegen/codegen.h"
#include "codegen/llvm/emit.h"
#include <llvm-c/TargetMachine.h>

// QUICK_KERNEL: without passes, and generated as host code is (LF_DEBUG_NO_PASSES).
typedef enum lf_llvm_use { LF_LLVM_HOST_CODE, LF_LLVM_KERNEL, LF_LLVM_QUICK_KERNEL } lf_llvm_use;

// Used by one thread at a time; any number of them live side by side.
typedef struct lf_llvm {
    lf_emit emit; // context, module and builder (all owned here); emit.status: the first failure, owned here
    const lf_allocator *allocator; // borrowed
    lf_target target;
    lf_llvm_use use;
    bool scalar;                  // loops are not vectorised (LF_DEBUG_NO_VECTORISER)
    LLVMTargetMachineRef machine; // owned
    LLVMTargetDataRef layout;     // owned; the module carries it already
    uint32_t vector_bytes;        // CPU: bytes of the registers that loops are vectorised for (16, 32, 64); CUDA: 16
} lf_llvm;

// `name`: of the module, for people. HOST_CODE ignores what t->kind says: it is for this machine's CPU.
lf_status lf_llvm_create(const lf_allocator *a, const lf_target *t, lf_llvm_use use, bool fast, const char *name,
                         lf_llvm **out_llvm) LF_MUST_USE;
void lf_llvm_destroy(lf_llvm *l);
// The first failure of an emitter or of LLVM since the last call, or NULL; the caller owns it. Call it after emitting.
lf_status lf_llvm_take_status(lf_llvm *l) LF_MUST_USE;
// LF_INTERNAL with LLVM's words when the module is not well formed.
lf_status lf_llvm_verify(lf_llvm *l) LF_MUST_USE;
// The module as text; caller frees with lf_free(l->allocator, …).
lf_status lf_llvm_module_text(lf_llvm *l, char **out_text) LF_MUST_USE;
#endif
