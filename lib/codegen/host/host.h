// Host code of a program: the functions of launch_abi.h, over nothing but the frame (a finish: over its words).
// Does not belong here: what an op means (llvm/emit*.c), which values there are (lib/schedule).
#ifndef LF_CODEGEN_HOST_HOST_H
#define LF_CODEGEN_HOST_HOST_H
#include "codegen/llvm/context.h"

// Adds the functions of every stage, and the finishes (host_load.h), to l's module.
lf_status lf_host_emit(lf_llvm *l, const lf_program *p) LF_MUST_USE;
#endif
