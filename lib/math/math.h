// The portable maths of the compiler: the same bits on x86-64 at any level and on NVPTX.
//
// Each function exists twice, from one source: as native code in lf_math_native (for the interpreter) and as LLVM
// bitcode in lf_math_bitcode (bitcode.h; linked into JIT modules). All are pure, never trap, set no errno and read
// no state but the rounding mode, which must be to nearest. Special values are those of C99's Annexes F and G; the
// sign and payload of a NaN are unspecified. docs/math.md has the measured accuracy.
#ifndef LF_MATH_MATH_H
#define LF_MATH_MATH_H

#include <stdint.h>

#define LFM_UNARY(name)                                                                                                     \
    float lfm_##name##_f32(float x);                                                                                        \
    double lfm_##name##_f64(double x);
#define LFM_BINARY(name)                                                                                                    \
    float lfm_##name##_f32(float x, float y);                                                                               \
    double lfm_##name##_f64(double x, double y);
#define LFM_HALF(name) float lfm_##name##_half(float x);
#define LFM_CUNARY(name)                                                                                                    \
    void lfm_c##name##_f32(float re, float im, float *out_re, float *out_im);                                               \
    void lfm_c##name##_f64(double re, double im, double *out_re, double *out_im);
#define LFM_CBINARY(name)                                                                                                   \
    void lfm_c##name##_f32(float are, float aim, float bre, float bim, float *out_re, float *out_im);                       \
    void lfm_c##name##_f64(double are, double aim, double bre, double bim, double *out_re, double *out_im);
#define LFM_OTHER(result, name, params) result lfm_##name params;
#include "functions.def"

#endif
