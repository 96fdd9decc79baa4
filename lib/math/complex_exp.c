// Complex exp, exp2, sin, cos, tan, sinh, cosh, tanh, sigmoid.
#include "complex.h"
#include "dd.h"
#include "exp_f64.h"

// e^x times a number, without overflow on the way: value·2^n.
typedef struct {
    double value;
    uint64_t bits;
} exp_split;

LFM_INLINE exp_split split_exp(double x) {
    // Beyond ±1400 the product over- or underflows whatever sine or cosine it is multiplied by.
    x = x < -1400.0 ? -1400.0 : x;
    x = x > 1400.0 ? 1400.0 : x;
    lfm_exp_reduced_f64 e = exp_reduce_f64(x);
    exp_split s = {1.0 + exp_tail_f64(e.r, 0), e.bits};
    return s;
}

// e^x·(cos + i·sin), for a finite angle.
LFM_INLINE lfm_complex polar(double x, double cosine, double sine) {
    exp_split e = split_exp(x);
    return complex_of(scale_f64(e.value * cosine, e.bits), scale_f64(e.value * sine, e.bits));
}

LFM_INLINE lfm_complex c_exp(lfm_complex z) {
    if (z.im == 0) return complex_of(lfm_exp_f64(z.re), z.im);
    if (!is_finite64(z.im)) {
        if (z.re == -LFM_INF) return complex_of(0, 0);
        return complex_of(z.re == LFM_INF ? z.re : LFM_NAN, LFM_NAN);
    }
    return polar(z.re, lfm_cos_f64(z.im), lfm_sin_f64(z.im));
}

LFM_INLINE lfm_complex c_exp2(lfm_complex z) {
    if (z.im == 0 || !is_finite64(z.im) || !is_finite64(z.re)) {
        lfm_complex w = c_exp(z);
        return complex_of(z.im == 0 ? lfm_exp2_f64(z.re) : w.re, w.im);
    }
    // The angle im·ln 2 needs its low part: sin(a + b) = sin a + b·cos a.
    dd angle = dd_mul_d(dd_make(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56), z.im);
    double s = lfm_sin_f64(angle.hi), c = lfm_cos_f64(angle.hi);
    double sine = fma64(angle.lo, c, s), cosine = fma64(-angle.lo, s, c);
    double x = z.re < -2000.0 ? -2000.0 : z.re > 2000.0 ? 2000.0 : z.re;
    double n = rint64(x);
    double p = lfm_exp2_f64(x - n);
    uint64_t bits = bits64(n + ROUND_F64);
    return complex_of(scale_f64(p * cosine, bits), scale_f64(p * sine, bits));
}

// (sinh x·cos y, cosh x·sin y) and (cosh x·cos y, sinh x·sin y); for large |x| both factors are e^|x|/2.
LFM_INLINE lfm_complex c_sinh(lfm_complex z) {
    if (z.im == 0) return complex_of(lfm_sinh_f64(z.re), z.im);
    if (!is_finite64(z.im)) return complex_of(z.re == 0 || abs64(z.re) == LFM_INF ? z.re : LFM_NAN, LFM_NAN);
    double c = lfm_cos_f64(z.im), s = lfm_sin_f64(z.im);
    if (abs64(z.re) < 30) return complex_of(lfm_sinh_f64(z.re) * c, lfm_cosh_f64(z.re) * s);
    lfm_complex w = polar(abs64(z.re), 0.5 * c, 0.5 * s);
    return complex_of(z.re < 0 ? -w.re : w.re, w.im);
}

LFM_INLINE lfm_complex c_cosh(lfm_complex z) {
    // The sign of a NaN differs between processors, and must not reach the other part.
    if (z.im == 0) return complex_of(lfm_cosh_f64(z.re), z.re == z.re && signbit64(z.re) ? -z.im : z.im);
    if (!is_finite64(z.im)) {
        if (z.re == 0) return complex_of(LFM_NAN, z.re);
        return complex_of(abs64(z.re) == LFM_INF ? LFM_INF : LFM_NAN, LFM_NAN);
    }
    double c = lfm_cos_f64(z.im), s = lfm_sin_f64(z.im);
    if (abs64(z.re) < 30) return complex_of(lfm_cosh_f64(z.re) * c, lfm_sinh_f64(z.re) * s);
    lfm_complex w = polar(abs64(z.re), 0.5 * c, 0.5 * s);
    return complex_of(w.re, z.re < 0 ? -w.im : w.im);
}

// (sinh x·cosh x + i·sin y·cos y) / (sinh² x + cos² y)
LFM_INLINE lfm_complex c_tanh(lfm_complex z) {
    if (z.im == 0) return complex_of(lfm_tanh_f64(z.re), z.im);
    if (!is_finite64(z.im)) {
        // A NaN's sign counts as +, as in c_cosh.
        if (abs64(z.re) == LFM_INF) return complex_of(copysign64(1, z.re), z.im == z.im ? copysign64(0, z.im) : 0);
        return complex_of(z.re == 0 ? z.re : LFM_NAN, LFM_NAN);
    }
    double c = lfm_cos_f64(z.im), s = lfm_sin_f64(z.im);
    if (abs64(z.re) > 30) {
        // tanh is ±1, and the imaginary part 4·sin y·cos y·e^(-2|x|).
        return complex_of(copysign64(1, z.re), polar(-2 * abs64(z.re), 0, 4 * s * c).im);
    }
    double sh = lfm_sinh_f64(z.re), ch = lfm_cosh_f64(z.re), d = fma64(sh, sh, c * c);
    return complex_of(sh * ch / d, s * c / d);
}

// sin z = -i·sinh(iz), cos z = cosh(iz), tan z = -i·tanh(iz).
LFM_INLINE lfm_complex c_sin(lfm_complex z) {
    lfm_complex w = c_sinh(complex_of(-z.im, z.re));
    return complex_of(w.im, -w.re);
}
LFM_INLINE lfm_complex c_cos(lfm_complex z) { return c_cosh(complex_of(-z.im, z.re)); }
LFM_INLINE lfm_complex c_tan(lfm_complex z) {
    lfm_complex w = c_tanh(complex_of(-z.im, z.re));
    return complex_of(w.im, -w.re);
}

// 1/(1 + e^-z) with E = e^-|x|, s and c of y/2. |1 + E·e^iy|² = (1-E)² + 4E·c², and for x >= 0 the numerator is
// (1-E) + 2E·c² + i·2E·s·c; for x < 0 it is E·(2c² - (1-E) + i·2s·c). No sum cancels where the modulus is small.
LFM_INLINE lfm_complex c_sigmoid(lfm_complex z) {
    if (z.im == 0) return complex_of(lfm_sigmoid_f64(z.re), z.im);
    if (!is_finite64(z.im)) return z.re == LFM_INF ? complex_of(1, 0) : complex_of(LFM_NAN, LFM_NAN);
    double a = -abs64(z.re);
    exp_split p = split_exp(a);
    double e = scale_f64(p.value, p.bits), m = -lfm_expm1_f64(a);
    double c = lfm_cos_f64(0.5 * z.im), s = lfm_sin_f64(0.5 * z.im);
    double cc = 2 * c * c, d = fma64(m, m, 2 * e * cc);
    double im = scale_f64(p.value * (2 * s * c / d), p.bits);
    if (z.re < 0) return complex_of(scale_f64(p.value * ((cc - m) / d), p.bits), im);
    return complex_of(fma64(e, cc, m) / d, z.re >= 0 ? im : z.re);
}

LFM_COMPLEX_UNARY(exp)
LFM_COMPLEX_UNARY(exp2)
LFM_COMPLEX_UNARY(sinh)
LFM_COMPLEX_UNARY(cosh)
LFM_COMPLEX_UNARY(tanh)
LFM_COMPLEX_UNARY(sin)
LFM_COMPLEX_UNARY(cos)
LFM_COMPLEX_UNARY(tan)
LFM_COMPLEX_UNARY(sigmoid)
