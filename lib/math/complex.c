// Complex functions. First version: the textbook formulas in double.
#include "internal.h"

typedef struct {
    double re, im;
} cplx;

LFM_INLINE cplx make(double re, double im) {
    cplx z = {re, im};
    return z;
}
LFM_INLINE cplx c_mul(cplx a, cplx b) { return make(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); }

LFM_INLINE cplx c_exp(cplx z) {
    double e = lfm_exp_f64(z.re);
    if (z.im == 0) return make(e, z.im);
    return make(e * lfm_cos_f64(z.im), e * lfm_sin_f64(z.im));
}
LFM_INLINE cplx c_exp2(cplx z) { return c_exp(make(z.re * 0.693147180559945309, z.im * 0.693147180559945309)); }
LFM_INLINE cplx c_log(cplx z) {
    return make(lfm_log_f64(lfm_hypot_f64(z.re, z.im)), lfm_atan2_f64(z.im, z.re));
}
LFM_INLINE cplx c_log2(cplx z) {
    cplx l = c_log(z);
    return make(l.re * 1.44269504088896341, l.im * 1.44269504088896341);
}
LFM_INLINE cplx c_log10(cplx z) {
    cplx l = c_log(z);
    return make(l.re * 0.434294481903251828, l.im * 0.434294481903251828);
}
LFM_INLINE cplx c_sqrt(cplx z) {
    double m = lfm_hypot_f64(z.re, z.im);
    if (m == 0) return make(0, z.im);
    double t = __builtin_sqrt((m + abs64(z.re)) / 2);
    return z.re >= 0 ? make(t, z.im / (2 * t)) : make(abs64(z.im) / (2 * t), copysign64(t, z.im));
}
LFM_INLINE cplx c_div(cplx a, cplx b) {
    if (abs64(b.re) >= abs64(b.im)) {
        double r = b.im / b.re, d = b.re + b.im * r;
        return make((a.re + a.im * r) / d, (a.im - a.re * r) / d);
    }
    double r = b.re / b.im, d = b.re * r + b.im;
    return make((a.re * r + a.im) / d, (a.im * r - a.re) / d);
}
LFM_INLINE cplx c_reciprocal(cplx z) { return c_div(make(1, 0), z); }
LFM_INLINE cplx c_rsqrt(cplx z) { return c_reciprocal(c_sqrt(z)); }
LFM_INLINE cplx c_sinh(cplx z) {
    return make(lfm_sinh_f64(z.re) * lfm_cos_f64(z.im), lfm_cosh_f64(z.re) * lfm_sin_f64(z.im));
}
LFM_INLINE cplx c_cosh(cplx z) {
    return make(lfm_cosh_f64(z.re) * lfm_cos_f64(z.im), lfm_sinh_f64(z.re) * lfm_sin_f64(z.im));
}
LFM_INLINE cplx c_tanh(cplx z) { return c_div(c_sinh(z), c_cosh(z)); }
LFM_INLINE cplx c_sin(cplx z) {
    cplx s = c_sinh(make(-z.im, z.re));
    return make(s.im, -s.re);
}
LFM_INLINE cplx c_cos(cplx z) { return c_cosh(make(-z.im, z.re)); }
LFM_INLINE cplx c_tan(cplx z) {
    cplx t = c_tanh(make(-z.im, z.re));
    return make(t.im, -t.re);
}
LFM_INLINE cplx c_sigmoid(cplx z) {
    cplx e = c_exp(make(-z.re, -z.im));
    return c_reciprocal(make(1 + e.re, e.im));
}
LFM_INLINE cplx c_pow(cplx a, cplx b) {
    if (b.re == 0 && b.im == 0) return make(1, 0);
    return c_exp(c_mul(c_log(a), b));
}

#define LFM_CUNARY(name)                                                                                               \
    void lfm_c##name##_f64(double re, double im, double *out_re, double *out_im) {                                     \
        cplx r = c_##name(make(re, im));                                                                               \
        *out_re = r.re;                                                                                                \
        *out_im = r.im;                                                                                                \
    }                                                                                                                  \
    void lfm_c##name##_f32(float re, float im, float *out_re, float *out_im) {                                         \
        cplx r = c_##name(make(re, im));                                                                               \
        *out_re = (float)r.re;                                                                                         \
        *out_im = (float)r.im;                                                                                         \
    }
#define LFM_CBINARY(name)                                                                                              \
    void lfm_c##name##_f64(double are, double aim, double bre, double bim, double *out_re, double *out_im) {           \
        cplx r = c_##name(make(are, aim), make(bre, bim));                                                             \
        *out_re = r.re;                                                                                                \
        *out_im = r.im;                                                                                                \
    }                                                                                                                  \
    void lfm_c##name##_f32(float are, float aim, float bre, float bim, float *out_re, float *out_im) {                 \
        cplx r = c_##name(make(are, aim), make(bre, bim));                                                             \
        *out_re = (float)r.re;                                                                                         \
        *out_im = (float)r.im;                                                                                         \
    }
#include "functions.def"
