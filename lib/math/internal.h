// Shared by the sources of lib/math: bit casts and the few operations that every target has as an instruction or
// that LLVM expands in line. Nothing here may become a call to a C library on NVPTX. No functions of the maths.
#ifndef LF_MATH_INTERNAL_H
#define LF_MATH_INTERNAL_H

#include "math.h"

#define LFM_INLINE static inline __attribute__((always_inline))
// A rarely taken path kept out of line, so that the common one stays small and a loop over it still vectorises.
#define LFM_COLD static __attribute__((noinline, const))

LFM_INLINE uint32_t bits32(float x) {
    uint32_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}
LFM_INLINE float float_of(uint32_t u) {
    float x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}
LFM_INLINE uint64_t bits64(double x) {
    uint64_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}
LFM_INLINE double double_of(uint64_t u) {
    double x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}

LFM_INLINE float fma32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LFM_INLINE double fma64(double a, double b, double c) { return __builtin_fma(a, b, c); }
LFM_INLINE float abs32(float x) { return __builtin_fabsf(x); }
LFM_INLINE double abs64(double x) { return __builtin_fabs(x); }
LFM_INLINE float copysign32(float x, float s) { return __builtin_copysignf(x, s); }
LFM_INLINE double copysign64(double x, double s) { return __builtin_copysign(x, s); }
LFM_INLINE int signbit64(double x) { return bits64(x) >> 63 != 0; }
LFM_INLINE int signbit32(float x) { return bits32(x) >> 31 != 0; }

#define LFM_INF ((double)__builtin_inff())
#define LFM_NAN ((double)__builtin_nanf(""))
#define LFM_INF32 __builtin_inff()
#define LFM_NAN32 __builtin_nanf("")

// Nearest integer, ties to even, for |x| <= 2^52: no instruction but additions, so no call at any x86 level.
LFM_INLINE double rint64(double x) { return copysign64((abs64(x) + 0x1p52) - 0x1p52, x); }

#endif
