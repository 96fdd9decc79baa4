// Pass pipelines over the IR of a module. Changes no option of LLVM's that another user of LLVM in the process would
// see.
#ifndef LF_CODEGEN_LLVM_PASSES_H
#define LF_CODEGEN_LLVM_PASSES_H
#include "codegen/llvm/context.h"

// Host code: a light clean-up that is linear in its size. Kernels: for the CPU a short pipeline around the loop vectoriser,
// -O2 for a GPU. Run it on host code before the maths is linked in (which is optimised already), on
// kernels after.
lf_status lf_passes_run(lf_llvm *l) LF_MUST_USE;
#endif
