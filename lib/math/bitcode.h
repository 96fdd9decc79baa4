// The functions of math.h as one LLVM bitcode module without triple or data layout: link it into a module of any
// target. Public functions are linkonce_odr, the rest is internal, so only what is used stays.
#ifndef LF_MATH_BITCODE_H
#define LF_MATH_BITCODE_H

#include <stddef.h>

extern const unsigned char lf_math_bitcode[];
extern const size_t lf_math_bitcode_size;

#endif
