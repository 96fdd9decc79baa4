// Target machines: which processors code is made for, and LLVM's code generation for them.
// Does not belong here: passes over IR (passes.h), loading code (native/native.h).
#ifndef LF_CODEGEN_LLVM_TARGET_H
#define LF_CODEGEN_LLVM_TARGET_H
#include "codegen/llvm/context.h"

// Registers LLVM's x86 and NVPTX back ends, once in the process; from any thread.
void lf_target_initialise(void);

typedef struct lf_target_facts {
    bool has_half;         // f16 <-> f32 in hardware
    uint32_t vector_bytes; // see lf_llvm
} lf_target_facts;

// A machine for `t` (its kind counts). Host code is generated without optimisation (FastISel: linear in the length of
// a block), kernels with all of it. Caller disposes of the machine.
lf_status lf_target_machine(const lf_allocator *a, const lf_target *t, lf_llvm_use use, LLVMTargetMachineRef *out_machine,
                            lf_target_facts *out_facts) LF_MUST_USE;

// The module as object code or assembly text. Changes the module: it is good for nothing afterwards but disposal.
// Call lf_check_ir before. Caller disposes of the buffer.
lf_status lf_target_generate(lf_llvm *l, LLVMCodeGenFileType type, LLVMMemoryBufferRef *out_buffer) LF_MUST_USE;
// The assembly text of the same (PTX, or x86 for people); caller frees with lf_free(l->allocator, …). NUL-terminated.
lf_status lf_target_generate_text(lf_llvm *l, char **out_text, size_t *out_size) LF_MUST_USE;
#endif
