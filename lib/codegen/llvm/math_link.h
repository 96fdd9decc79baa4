// The portable maths (lib/math) as part of a module.
#ifndef LF_CODEGEN_LLVM_MATH_LINK_H
#define LF_CODEGEN_LLVM_MATH_LINK_H
#include "codegen/llvm/context.h"

// Brings in the body of every lfm_ function that the module declares, and what these call, as private functions of it.
// A name that lib/math lacks is LF_INTERNAL. Does nothing when there is none.
lf_status lf_math_link(lf_llvm *l) LF_MUST_USE;
#endif
