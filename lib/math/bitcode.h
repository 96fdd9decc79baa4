// The functions of math.h as one LLVM bitcode module without triple or data layout: link it into a module of any
// target. Public functions are linkonce_odr, the rest is internal, so only what is used stays. Give the parsed
// module the target's triple and data layout first (LLVMSetTarget, LLVMSetDataLayout), or the linker warns. On an
// x86-64 CPU without FMA the code calls fma and fmaf, besides floor and trunc: the C library's are exact.
#ifndef LF_MATH_BITCODE_H
#define LF_MATH_BITCODE_H

#include <stddef.h>

extern const unsigned char lf_math_bitcode[];
extern const size_t lf_math_bitcode_size;

#endif
