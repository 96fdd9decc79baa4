// Shared by the complex functions. All but division compute in double for both component types.
#ifndef LF_MATH_COMPLEX_H
#define LF_MATH_COMPLEX_H

#include "internal.h"

typedef struct {
    double re, im;
} lfm_complex;

LFM_INLINE lfm_complex complex_of(double re, double im) {
    lfm_complex z = {re, im};
    return z;
}
LFM_INLINE int is_finite64(double x) { return abs64(x) < LFM_INF; }

// The two public functions around a static lfm_complex c_<name>(lfm_complex).
#define LFM_COMPLEX_UNARY(name)                                                                                             \
    void lfm_c##name##_f64(double re, double im, double *out_re, double *out_im) {                                          \
        lfm_complex r = c_##name(complex_of(re, im));                                                                       \
        *out_re = r.re;                                                                                                     \
        *out_im = r.im;                                                                                                     \
    }                                                                                                                       \
    void lfm_c##name##_f32(float re, float im, float *out_re, float *out_im) {                                              \
        lfm_complex r = c_##name(complex_of(re, im));                                                                       \
        *out_re = (float)r.re;                                                                                              \
        *out_im = (float)r.im;                                                                                              \
    }

#endif
