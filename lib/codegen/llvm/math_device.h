// What a GPU does in fewer instructions than the portable maths says, with the same results.
#ifndef LF_CODEGEN_LLVM_MATH_DEVICE_H
#define LF_CODEGEN_LLVM_MATH_DEVICE_H
#include "codegen/llvm/context.h"

// For NVPTX from sm_80 on, after lf_math_link and before its functions are inlined; else nothing.
//   x < C ? C : x, x > C ? C : x    one maximum or minimum
//   1/d in lfm_…_half, sigmoid_f32  approximation and a Newton step; such functions divide by d in [2^-100, 2^127.5] only, and a
//                                   quotient below 2^-126 may be 0 (exhaustive --device=cuda compares every result)
void lf_math_for_device(lf_llvm *l);
#endif
