// From the IR of a GPU kernel, finished and checked as for NVPTX, to code that the SIM device runs on the CPU.
#ifndef LF_CODEGEN_SIM_SIM_H
#define LF_CODEGEN_SIM_SIM_H
#include "codegen/llvm/context.h"

// Rewrites l's module (made for LF_TARGET_SIM) for this machine's processor, and gives l that machine and layout, so that
// lf_target_generate makes an object of it, with the symbol LF_SIM_SYMBOL (base/sim_abi.h). What is rewritten: the kernel gets its
// thread as first argument; intrinsics and inline assembly become calls of the runtime; each access to memory is told to it first;
// shared arrays become parts of one block of memory. LF_UNSUPPORTED names an instruction that has no counterpart.
lf_status lf_sim_lower(lf_llvm *l) LF_MUST_USE;
#endif
