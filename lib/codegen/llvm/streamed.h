// Loads and asynchronous copies of what a kernel reads once, beside what it writes: the L2 cache is asked to keep those lines to the last.
#ifndef LF_CODEGEN_LLVM_STREAMED_H
#define LF_CODEGEN_LLVM_STREAMED_H
#include "codegen/llvm/context.h"

// Marks a load of global memory or a call of llvm.nvvm.cp.async. To the passes, check_ir and the SIM device it stays what it is.
void lf_mark_streamed(lf_emit *e, LLVMValueRef v_instruction);

// Just before PTX is generated: what is marked gets its hint, where the GPU has it.
void lf_hint_streamed(lf_llvm *l);
#endif
