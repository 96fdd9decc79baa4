// tgamma, lgamma and digamma.
//
// Stirling's series from 16 on, after multiplying the argument up to there: Γ(x) = Γ(x + n) / (x·(x+1)…(x+n-1)).
// Below 0 by reflection. The exponent of Γ has to be right to 2^-62 or so and reaches 700, and lgamma takes
// differences of large numbers, so f64 works in double-double; for f32 plain double is enough.
#include "dd.h"
#include "libclc.h"

#define HALF_LN_2PI 0x1.d67f1c864beb5p-1
#define LN_PI 0x1.250d048e7a1bdp+0
#define LN_PI_LO 0x1.7abf2ad8d5088p-57

// ln Γ(z) less (z - 1/2)·ln z - z + ln(2π)/2, for z >= 16 (f32: 8): sum of B(2k) / (2k·(2k-1)·z^(2k-1)).
LFM_INLINE double stirling_series(double z) {
    double r = 1 / z, w = r * r;
    double s = -0x1.e4286cb0f5398p-6;
    s = fma64(s, w, 0x1.a41a41a41a41ap-8);
    s = fma64(s, w, -0x1.f6ab0d9993c7dp-10);
    s = fma64(s, w, 0x1.b951e2b18ff23p-11);
    s = fma64(s, w, -0x1.3813813813814p-11);
    s = fma64(s, w, 0x1.a01a01a01a01ap-11);
    s = fma64(s, w, -0x1.6c16c16c16c17p-9);
    s = fma64(s, w, 0x1.5555555555555p-4);
    return s * r;
}

// Γ(x) = e^exponent / product, for x > 0 (not tiny).
typedef struct {
    dd exponent, product;
} gamma_parts;

static __attribute__((noinline, const)) gamma_parts gamma_of(dd x) {
    gamma_parts g = {{0, 0}, {1, 0}};
    while (x.hi < 16) {
        g.product = dd_mul(g.product, x);
        x = dd_add_d(x, 1);
    }
    // (x - 1/2)·(ln x - 1) + (ln(2π) - 1)/2
    dd e = dd_mul(dd_add_d(dd_log(x), -1), dd_add_d(x, -0.5));
    e = dd_add(e, dd_make(0x1.acfe390c97d69p-2, 0x1.3494bc9001442p-56));
    g.exponent = dd_add_d(e, stirling_series(x.hi));
    return g;
}

// |sin(π·x)| for |x| not above 2^52 and not an integer; its relative error is below 2^-54.
static __attribute__((noinline, const)) dd abs_sin_pi(double x) {
    double r = abs64(x - rint64(x)); // exact
    int far = r > 0.25;
    dd y = dd_mul_d(dd_make(0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53), far ? 0.5 - r : r);
    double u = y.hi * y.hi;
    if (far) {
        // cos y = 1 - y²/2 + …
        double c = -0x1.6827863b97d97p-53;
        c = fma64(c, u, 0x1.ae7f3e733b81fp-45);
        c = fma64(c, u, -0x1.93974a8c07c9dp-37);
        c = fma64(c, u, 0x1.1eed8eff8d898p-29);
        c = fma64(c, u, -0x1.27e4fb7789f5cp-22);
        c = fma64(c, u, 0x1.a01a01a01a01ap-16);
        c = fma64(c, u, -0x1.6c16c16c16c17p-10);
        c = fma64(c, u, 0x1.5555555555555p-5);
        c = c * u * u;
        dd half = dd_mul_d(dd_mul(y, y), -0.5);
        return dd_add_d(dd_add_d(half, 1), c);
    }
    double s = 0x1.952c77030ad4ap-49;
    s = fma64(s, u, -0x1.ae7f3e733b81fp-41);
    s = fma64(s, u, 0x1.6124613a86d09p-33);
    s = fma64(s, u, -0x1.ae64567f544e4p-26);
    s = fma64(s, u, 0x1.71de3a556c734p-19);
    s = fma64(s, u, -0x1.a01a01a01a01ap-13);
    s = fma64(s, u, 0x1.1111111111111p-7);
    s = fma64(s, u, -0x1.5555555555555p-3);
    return dd_add_d(y, y.hi * u * s);
}

LFM_INLINE int is_integer(double x) { return abs64(x) >= 0x1p52 || x == rint64(x); }
// Whether floor(x) is odd, for |x| < 2^52.
LFM_INLINE int floor_is_odd(double x) {
    double n = rint64(x);
    if (n > x) n -= 1;
    return n * 0.5 != rint64(n * 0.5);
}

double lfm_tgamma_f64(double x) {
    if (abs64(x) < 0x1p-60) return 1 / x; // ±0: ±inf
    if (x > 200) return x * LFM_INF;
    if (x != x) return x;
    if (x > 0) {
        gamma_parts g = gamma_of(dd_make(x, 0));
        dd_scaled e = dd_exp(g.exponent);
        return lfm_ldexp_f64(dd_div(e.value, g.product).hi, e.exponent);
    }
    if (is_integer(x)) return LFM_NAN;
    double sign = floor_is_odd(x) ? -1.0 : 1.0;
    if (x < -190) return sign * 0.0;
    // Γ(x) = π / (sin(πx)·Γ(1-x))
    gamma_parts g = gamma_of(dd_sum(1, -x));
    dd_scaled e = dd_exp(dd_neg(g.exponent));
    dd y = dd_mul(dd_make(0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53), dd_mul(e.value, g.product));
    return sign * lfm_ldexp_f64(dd_div(y, abs_sin_pi(x)).hi, e.exponent);
}

double lfm_lgamma_f64(double x) {
    double a = abs64(x);
    if (!(a < LFM_INF)) return a;
    if (x == 1 || x == 2) return 0;
    if (a < 0x1p-60) return -clc_log_f64(a);
    if (x > 1e17) return x * (clc_log_f64(x) - 1);
    if (x < 0 && is_integer(x)) return LFM_INF;
    gamma_parts g = gamma_of(x > 0 ? dd_make(x, 0) : dd_sum(1, -x));
    dd y = dd_add(g.exponent, dd_neg(dd_log(g.product)));
    if (x > 0) return y.hi;
    // ln|Γ(x)| = ln π - ln|sin πx| - ln Γ(1-x)
    dd s = dd_add(dd_make(LN_PI, LN_PI_LO), dd_neg(dd_log(abs_sin_pi(x))));
    return dd_add(s, dd_neg(y)).hi;
}

// Γ(x) by plain double, right to about 1e-13: 2^-20 ulp of f32.
typedef struct {
    double exponent, product;
} gamma_parts_f32;

LFM_INLINE gamma_parts_f32 gamma_of_f32(double x) {
    gamma_parts_f32 g = {0, 1};
    while (x < 8) {
        g.product *= x;
        x += 1;
    }
    g.exponent = fma64(x - 0.5, clc_log_f64(x), HALF_LN_2PI - x) + stirling_series(x);
    return g;
}

float lfm_tgamma_f32(float x32) {
    double x = x32;
    if (abs64(x) < 0x1p-60) return (float)(1 / x);
    if (x > 40) return x32 * LFM_INF32;
    if (x != x) return x32;
    if (x > 0) {
        gamma_parts_f32 g = gamma_of_f32(x);
        return (float)(lfm_exp_f64(g.exponent) / g.product);
    }
    if (is_integer(x)) return LFM_NAN32;
    float sign = floor_is_odd(x) ? -1.0f : 1.0f;
    if (x < -45) return sign * 0.0f;
    gamma_parts_f32 g = gamma_of_f32(1 - x);
    double d = abs_sin_pi(x).hi * lfm_exp_f64(g.exponent);
    return sign * (float)(0x1.921fb54442d18p+1 * g.product / d);
}

float lfm_lgamma_f32(float x32) {
    double x = x32, a = abs64(x);
    if (!(a < LFM_INF)) return abs32(x32);
    if (x == 1 || x == 2) return 0;
    if (a < 0x1p-60) return (float)-clc_log_f64(a);
    if (x < 0 && is_integer(x)) return LFM_INF32;
    gamma_parts_f32 g = gamma_of_f32(x > 0 ? x : 1 - x);
    double y = g.exponent - clc_log_f64(g.product);
    if (x > 0) return (float)y;
    return (float)(LN_PI - clc_log_f64(abs_sin_pi(x).hi) - y);
}

// The series of the next comment's formula and its 1/(2z), for z >= 16 (f32: 8).
LFM_INLINE double digamma_series(double z) {
    double r = 1 / z, w = r * r;
    double t = -0x1.5995995995996p-6;
    t = fma64(t, w, 0x1.f07c1f07c1f08p-8);
    t = fma64(t, w, -0x1.1111111111111p-8);
    t = fma64(t, w, 0x1.041041041041p-8);
    t = fma64(t, w, -0x1.1111111111111p-7);
    t = fma64(t, w, 0x1.5555555555555p-4);
    t = fma64(t, w, 0.5 * r);
    return t;
}

// ψ(x) = ln z - 1/(2z) - sum of B(2k) / (2k·z^2k) - sum of 1/(x+i) up to z = x + n >= 16. Zeros make the sums
// cancel, so they are double-double as well.
LFM_INLINE dd digamma_positive(dd x) {
    dd s = dd_make(0, 0);
    while (x.hi < 16) {
        double q = 1 / x.hi, lost = fma64(-q, x.lo, fma64(-q, x.hi, 1)) * q;
        s = dd_add(s, dd_make(-q, -lost));
        x = dd_add_d(x, 1);
    }
    return dd_add_d(dd_add(s, dd_log(x)), -digamma_series(x.hi));
}

// π·cot(πx) - 1/r for r = x - round(x): -r·Σ 2ζ(2k+2)·r^2k. Its poles at ±1 are taken out of the series, which then
// converges like 16^-k.
LFM_INLINE double cot_rest(double r) {
    double u = r * r;
    double p = 0x1.0000c4ed05ae3p-27;
    p = fma64(p, u, 0x1.0001bb316ccdap-25);
    p = fma64(p, u, 0x1.0003e59ffde12p-23);
    p = fma64(p, u, 0x1.0008c66cec77dp-21);
    p = fma64(p, u, 0x1.0013c594466eap-19);
    p = fma64(p, u, 0x1.002c9953744ccp-17);
    p = fma64(p, u, 0x1.0064cdeb22f0fp-15);
    p = fma64(p, u, 0x1.00e4af2b4e156p-13);
    p = fma64(p, u, 0x1.020a5b2cd3042p-11);
    p = fma64(p, u, 0x1.04b8ce96ee5f8p-9);
    p = fma64(p, u, 0x1.0b36af86396e9p-7);
    p = fma64(p, u, 0x1.1c26130249124p-5);
    p = fma64(p, u, 0x1.51322ac7d8483p-3);
    p = fma64(p, u, 0x1.4a34cc4a60fa6p+0);
    p += 2 / (1 - u);
    return -r * p;
}

double lfm_digamma_f64(double x) {
    if (x != x) return x;
    if (abs64(x) < 0x1p-60) return -1 / x; // ±0: ∓inf
    if (x > 0x1p60) return x < LFM_INF ? clc_log_f64(x) : x;
    if (x > 0) return digamma_positive(dd_make(x, 0)).hi;
    if (is_integer(x)) return LFM_NAN;
    // ψ(x) = ψ(1-x) - π·cot(πx)
    double r = x - rint64(x);
    dd s = dd_add(digamma_positive(dd_sum(1, -x)), dd_neg(dd_recip(r)));
    return dd_add_d(s, -cot_rest(r)).hi;
}

float lfm_digamma_f32(float x32) {
    double x = x32;
    if (x != x) return x32;
    if (abs64(x) < 0x1p-60) return (float)(-1 / x);
    if (x > 0x1p60) return x < LFM_INF ? (float)clc_log_f64(x) : x32;
    if (x < 0 && is_integer(x)) return LFM_NAN32;
    double s = 0, r = x - rint64(x);
    if (x < 0) s = -1 / r - cot_rest(r);
    for (x = x < 0 ? 1 - x : x; x < 8; x += 1) s -= 1 / x;
    return (float)(s + (clc_log_f64(x) - digamma_series(x)));
}
