// Complex log, log2, log10, sqrt, rsqrt, pow.
#include "complex.h"
#include "dd.h"
#include "exp_f64.h"

// z brought to |larger part| in [1, 2) by an exact power of two, for finite z other than 0. Bits of the smaller
// part that are lost on the way are over 2^-1000 below the larger.
typedef struct {
    lfm_complex z;
    double exponent;
} scaled_complex;

LFM_INLINE scaled_complex scale_complex(lfm_complex z) {
    double a = abs64(z.re), b = abs64(z.im), m = a > b ? a : b, before = 0;
    if (m < 0x1p-1000) {
        z = complex_of(z.re * 0x1p100, z.im * 0x1p100);
        m *= 0x1p100;
        before = -100;
    }
    int64_t e = (int64_t)(bits64(m) >> 52) - 1023;
    // Two factors: 2^-1023 is subnormal.
    double f = double_of((uint64_t)(1023 - e / 2) << 52), g = double_of((uint64_t)(1023 - (e - e / 2)) << 52);
    scaled_complex s = {complex_of(z.re * f * g, z.im * f * g), (double)e + before};
    return s;
}

LFM_INLINE dd squared_modulus(lfm_complex z) { return dd_add(dd_product(z.re, z.re), dd_product(z.im, z.im)); }

// ln|z|, with all its bits also where |z| is close to 1.
LFM_INLINE dd log_modulus(lfm_complex z) {
    scaled_complex s = scale_complex(z);
    // Joining 2^exponent to the argument keeps the sum of logarithms from cancelling.
    double n = s.exponent;
    dd h = squared_modulus(s.z);
    if (n == -1) {
        h = dd_scale(h, 0.25);
        n = 0;
    }
    dd l = dd_scale(dd_log(h), 0.5);
    return dd_add(dd_add(dd_make(n * LN2_1, 0), dd_product(n, LN2_2)), l);
}

// (ln|z| + i·angle)·scale
LFM_INLINE lfm_complex log_scaled(lfm_complex z, dd scale) {
    double angle = lfm_atan2_f64(z.im, z.re) * scale.hi;
    if (abs64(z.re) == LFM_INF || abs64(z.im) == LFM_INF) return complex_of(LFM_INF, angle);
    if (z.re != z.re || z.im != z.im) return complex_of(LFM_NAN, LFM_NAN);
    if (z.re == 0 && z.im == 0) return complex_of(-LFM_INF, angle);
    return complex_of(dd_mul(log_modulus(z), scale).hi, angle);
}
LFM_INLINE lfm_complex c_log(lfm_complex z) { return log_scaled(z, dd_make(1, 0)); }
LFM_INLINE lfm_complex c_log2(lfm_complex z) { return log_scaled(z, dd_make(0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56)); }
LFM_INLINE lfm_complex c_log10(lfm_complex z) { return log_scaled(z, dd_make(0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57)); }

// With t = √((|re| + |z|)/2): (t, im/2t) in the right half plane, (|im|/2t, ±t) in the left.
LFM_INLINE lfm_complex c_sqrt(lfm_complex z) {
    double a = abs64(z.re), b = abs64(z.im);
    if (b == LFM_INF) return complex_of(LFM_INF, z.im);
    if (a == LFM_INF) {
        if (z.re > 0) return complex_of(z.re, b == b ? copysign64(0, z.im) : z.im);
        return complex_of(b == b ? 0 : b, copysign64(LFM_INF, z.im));
    }
    if (a == 0 && b == 0) return complex_of(0, z.im);
    // An even power of two keeps the modulus from overflow and from losing bits to subnormals.
    double big = a > b ? a : b;
    double in = big > 0x1p1000 ? 0x1p-100 : big < 0x1p-900 ? 0x1p200 : 1;
    double out = big > 0x1p1000 ? 0x1p50 : big < 0x1p-900 ? 0x1p-100 : 1;
    a *= in;
    b *= in;
    double t = __builtin_sqrt(0.5 * (a + lfm_hypot_f64(a, b)));
    double u = b / (2 * t);
    t *= out;
    u *= out;
    return z.re >= 0 ? complex_of(t, copysign64(u, z.im)) : complex_of(u, copysign64(t, z.im));
}

// conj(√z)/|z|
LFM_INLINE lfm_complex c_rsqrt(lfm_complex z) {
    if (z.re == 0 && z.im == 0) return complex_of(LFM_NAN, LFM_NAN);
    if (abs64(z.re) == LFM_INF || abs64(z.im) == LFM_INF) {
        if (z.re != z.re || z.im != z.im) return complex_of(LFM_NAN, LFM_NAN);
        return complex_of(0, copysign64(0, -z.im));
    }
    scaled_complex s = scale_complex(z);
    int64_t n = (int64_t)s.exponent, odd = n & 1; // |z| = 2^n·|s.z|, an even power goes out of the root
    lfm_complex w = complex_of(s.z.re * (odd ? 2 : 1), s.z.im * (odd ? 2 : 1));
    lfm_complex r = c_sqrt(w);
    double f = double_of((uint64_t)(1023 - (n - odd) / 2) << 52) / lfm_hypot_f64(w.re, w.im);
    return complex_of(r.re * f, -r.im * f);
}

LFM_COMPLEX_UNARY(log)
LFM_COMPLEX_UNARY(log2)
LFM_COMPLEX_UNARY(log10)
LFM_COMPLEX_UNARY(sqrt)
LFM_COMPLEX_UNARY(rsqrt)

// sin r and cos r for |r| <= 0.8, to about 2^-66.
typedef struct {
    dd sine, cosine;
} dd_sincos;

LFM_INLINE dd_sincos sincos_small(dd r) {
    dd u = dd_mul(r, r);
    double x = u.hi;
    double s = 0x1.952c77030ad4ap-49;
    s = fma64(s, x, -0x1.ae7f3e733b81fp-41);
    s = fma64(s, x, 0x1.6124613a86d09p-33);
    s = fma64(s, x, -0x1.ae64567f544e4p-26);
    s = fma64(s, x, 0x1.71de3a556c734p-19);
    s = fma64(s, x, -0x1.a01a01a01a01ap-13);
    dd a = dd_mul_d(u, s);
    a = dd_mul(u, dd_add(a, dd_make(0x1.1111111111111p-7, 0x1.1111111111111p-63)));
    a = dd_mul(u, dd_add(a, dd_make(-0x1.5555555555555p-3, -0x1.5555555555555p-57)));
    double c = -0x1.6827863b97d97p-53;
    c = fma64(c, x, 0x1.ae7f3e733b81fp-45);
    c = fma64(c, x, -0x1.93974a8c07c9dp-37);
    c = fma64(c, x, 0x1.1eed8eff8d898p-29);
    c = fma64(c, x, -0x1.27e4fb7789f5cp-22);
    c = fma64(c, x, 0x1.a01a01a01a01ap-16);
    dd b = dd_mul_d(u, c);
    b = dd_mul(u, dd_add(b, dd_make(-0x1.6c16c16c16c17p-10, 0x1.f49f49f49f49fp-65)));
    b = dd_mul(u, dd_add(b, dd_make(0x1.5555555555555p-5, 0x1.5555555555555p-59)));
    b = dd_mul(u, dd_add_d(b, -0.5));
    dd_sincos k = {dd_add(r, dd_mul(r, a)), dd_add_d(b, 1)};
    return k;
}

// The angle of z in double-double: the double θ is off by (y·cos θ - x·sin θ)/|z|, if sine and cosine are good.
LFM_INLINE dd angle_dd(lfm_complex z) {
    double theta = lfm_atan2_f64(z.im, z.re), q = rint64(theta * 0x1.45f306dc9c883p-1);
    scaled_complex s = scale_complex(z);
    dd half_pi = dd_mul_d(dd_make(0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54), q); // q is -2 … 2: exact
    dd_sincos k = sincos_small(dd_add_d(dd_neg(half_pi), theta));
    int64_t quarter = (int64_t)q & 3;
    dd sine = quarter & 1 ? k.cosine : k.sine, cosine = quarter & 1 ? dd_neg(k.sine) : k.cosine;
    if (quarter & 2) {
        sine = dd_neg(sine);
        cosine = dd_neg(cosine);
    }
    dd across = dd_add(dd_mul_d(cosine, s.z.im), dd_neg(dd_mul_d(sine, s.z.re)));
    double along = fma64(cosine.hi, s.z.re, sine.hi * s.z.im);
    return dd_add_d(dd_make(theta, 0), across.hi / along);
}

// e^(b·ln a) with logarithm, product and exponential in double-double.
static lfm_complex c_pow(lfm_complex a, lfm_complex b) {
    if (b.re == 0 && b.im == 0) return complex_of(1, 0);
    if (!(is_finite64(a.re) && is_finite64(a.im) && is_finite64(b.re) && is_finite64(b.im)))
        return complex_of(LFM_NAN, LFM_NAN);
    if (a.re == 0 && a.im == 0) return b.re > 0 ? complex_of(0, 0) : complex_of(LFM_NAN, LFM_NAN);
    dd size = log_modulus(a), angle = angle_dd(a);
    dd re = dd_add(dd_mul_d(size, b.re), dd_neg(dd_mul_d(angle, b.im)));
    dd im = dd_add(dd_mul_d(size, b.im), dd_mul_d(angle, b.re));
    dd_scaled e = dd_exp(re);
    double s = lfm_sin_f64(im.hi), c = lfm_cos_f64(im.hi);
    double sine = fma64(im.lo, c, s), cosine = fma64(-im.lo, s, c);
    int64_t n = e.exponent > 2000 ? 2000 : e.exponent < -2000 ? -2000 : e.exponent;
    uint64_t bits = bits64((double)n + ROUND_F64);
    return complex_of(scale_f64(e.value.hi * cosine, bits), scale_f64(e.value.hi * sine, bits));
}

void lfm_cpow_f64(double are, double aim, double bre, double bim, double *out_re, double *out_im) {
    lfm_complex r = c_pow(complex_of(are, aim), complex_of(bre, bim));
    *out_re = r.re;
    *out_im = r.im;
}
void lfm_cpow_f32(float are, float aim, float bre, float bim, float *out_re, float *out_im) {
    lfm_complex r = c_pow(complex_of(are, aim), complex_of(bre, bim));
    *out_re = (float)r.re;
    *out_im = (float)r.im;
}
