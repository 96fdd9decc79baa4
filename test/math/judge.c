// The judges: glibc in the next wider format where it has the function, MPFR for what it lacks and for the last word.
#include "judge.h"

#include <math.h>

enum { precision = 256 };

static double wide_rsqrt(double x) { return 1 / sqrt(x); }
static double wide_sigmoid(double x) {
    double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
static long double wider_rsqrt(long double x) { return 1 / sqrtl(x); }
static long double wider_sigmoid(long double x) {
    long double e = expl(-fabsl(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
// Gamma's poles are signed zeros' business: C says tgamma(±0) = ±inf, and a NaN at negative integers.
static double wide_lgamma(double x) { return lgamma(x); }
static long double wider_lgamma(long double x) { return lgammal(x); }
// MPFR answers a negative integer with NaN too; the language follows it there.
static double own_digamma(double x) { return lfm_digamma_f64(x); }
static double own_erfinv(double x) { return lfm_erfinv_f64(x); }

static int exact_rsqrt(mpfr_t out, mpfr_srcptr x, mpfr_rnd_t rnd) {
    int inexact = mpfr_rec_sqrt(out, x, rnd);
    if (mpfr_zero_p(x)) mpfr_set_inf(out, mpfr_signbit(x) ? -1 : 1); // IEEE: 1/√-0 = 1/-0
    return inexact;
}
static int exact_sigmoid(mpfr_t out, mpfr_srcptr x, mpfr_rnd_t rnd) {
    mpfr_neg(out, x, rnd);
    mpfr_exp(out, out, rnd);
    mpfr_add_ui(out, out, 1, rnd);
    return mpfr_ui_div(out, 1, out, rnd);
}
static int exact_lgamma(mpfr_t out, mpfr_srcptr x, mpfr_rnd_t rnd) {
    int sign;
    return mpfr_lgamma(out, &sign, x, rnd);
}
// Newton from the double-precision answer; each step squares the error.
static int exact_erfinv(mpfr_t out, mpfr_srcptr x, mpfr_rnd_t rnd) {
    double guess = lfm_erfinv_f64(mpfr_get_d(x, MPFR_RNDN));
    mpfr_set_d(out, guess, rnd);
    if (!isfinite(guess) || guess == 0) return 0;
    mpfr_t e, slope, rest;
    mpfr_inits2(precision + 128, e, slope, rest, (mpfr_ptr)0);
    for (int i = 0; i < 5; i++) {
        // erf|y| - |x|, near 1 through erfc, which keeps its digits there.
        mpfr_abs(e, out, rnd);
        mpfr_abs(rest, x, rnd);
        if (mpfr_cmp_d(rest, 0.5) < 0) {
            mpfr_erf(e, e, rnd);
            mpfr_sub(rest, e, rest, rnd);
        } else {
            mpfr_erfc(e, e, rnd);
            mpfr_ui_sub(rest, 1, rest, rnd);
            mpfr_sub(rest, rest, e, rnd);
        }
        mpfr_sqr(slope, out, rnd);
        mpfr_exp(slope, slope, rnd); // e^(y²)·√π/2 = dy/dx
        mpfr_mul(rest, rest, slope, rnd);
        mpfr_const_pi(slope, rnd);
        mpfr_sqrt(slope, slope, rnd);
        mpfr_mul(rest, rest, slope, rnd);
        mpfr_div_2ui(rest, rest, 1, rnd);
        if (mpfr_sgn(out) < 0) mpfr_neg(rest, rest, rnd);
        mpfr_sub(out, out, rest, rnd);
    }
    mpfr_clears(e, slope, rest, (mpfr_ptr)0);
    return 0;
}

#define ROW(n, limit, absolute, wide, wider, exact, odd, even)                                                              \
    {#n, lfm_##n##_f32, lfm_##n##_f64, limit, absolute, wide, wider, exact, odd, even},
const judge_unary judge_unaries[] = {
    ROW(rsqrt, 2, 0, wide_rsqrt, wider_rsqrt, exact_rsqrt, false, false) ROW(cbrt, 2, 0, cbrt, cbrtl, mpfr_cbrt, true, false)
        ROW(exp, 2, 0, exp, expl, mpfr_exp, false, false) ROW(exp2, 2, 0, exp2, exp2l, mpfr_exp2, false, false)
            ROW(expm1, 2, 0, expm1, expm1l, mpfr_expm1, false, false) ROW(log, 2, 0, log, logl, mpfr_log, false, false) ROW(
                log2, 2, 0, log2, log2l, mpfr_log2, false, false) ROW(log10, 2, 0, log10, log10l, mpfr_log10, false, false)
                ROW(log1p, 2, 0, log1p, log1pl, mpfr_log1p, false,
                    false) ROW(sin, 2, 0, sin, sinl, mpfr_sin, true, false) ROW(cos, 2, 0, cos, cosl, mpfr_cos, false, true)
                    ROW(tan, 2, 0, tan, tanl, mpfr_tan, true, false) ROW(asin, 2, 0, asin, asinl, mpfr_asin, true, false)
                        ROW(acos, 2, 0, acos, acosl, mpfr_acos, false, false) ROW(atan, 2, 0, atan, atanl, mpfr_atan,
                                                                                  true, false) ROW(sinh, 2, 0, sinh, sinhl,
                                                                                                   mpfr_sinh, true, false)
                            ROW(cosh, 2, 0, cosh, coshl, mpfr_cosh,
                                false, true) ROW(tanh, 2, 0, tanh, tanhl, mpfr_tanh, true,
                                                 false) ROW(asinh, 2, 0, asinh, asinhl, mpfr_asinh, true, false)
                                ROW(acosh, 2, 0, acosh, acoshl, mpfr_acosh, false,
                                    false) ROW(atanh, 2, 0, atanh, atanhl, mpfr_atanh, true, false)
                                    ROW(erf, 2, 0, erf, erfl, mpfr_erf, true, false)
                                        ROW(erfc, 2, 0, erfc, erfcl, mpfr_erfc, false, false)
                                            ROW(erfinv, 2, 0, own_erfinv, NULL, exact_erfinv, true, false)
                                                ROW(lgamma, 4, 1e-6, wide_lgamma, wider_lgamma, exact_lgamma, false, false)
                                                    ROW(tgamma, 4, 0, tgamma, tgammal, mpfr_gamma, false, false)
                                                        ROW(digamma, 4, 1e-6, own_digamma, NULL, mpfr_digamma, false, false)
                                                            ROW(sigmoid, 2, 0, wide_sigmoid, wider_sigmoid, exact_sigmoid,
                                                                false, false)};
#undef ROW
const int judge_unary_count = sizeof judge_unaries / sizeof judge_unaries[0];

// True if the pair is decided by kind alone; *out then is 0 or infinity.
static bool by_kind(double got, bool truth_nan, bool truth_zero, bool truth_negative, double *out) {
    if (truth_nan || got != got) {
        *out = truth_nan && got != got ? 0 : INFINITY;
        return true;
    }
    if (truth_zero) {
        *out = got == 0 && (bool)signbit(got) == truth_negative ? 0 : INFINITY;
        return true;
    }
    return false;
}

double judge_ulp32(float got, double truth) {
    double decided;
    if (by_kind(got, truth != truth, truth == 0, signbit(truth), &decided)) return decided;
    if (got == (float)truth) return isinf(got) ? 0 : fabs((double)got - truth) / exp2(fmax(ilogb(got), -126) - 23);
    // An infinity stands for 2^128 here: being on the wrong side of the threshold costs its distance.
    double g = isinf(got) ? copysign(0x1p128, got) : got;
    double t = fabs(truth) > 0x1p128 ? copysign(0x1p128, truth) : truth;
    int e = ilogb((float)t == 0 ? 0x1p-149 : t);
    return fabs(g - t) / exp2((e < -126 ? -126 : e) - 23);
}

double judge_ulp64(double got, long double truth) {
    double decided;
    if (by_kind(got, truth != truth, truth == 0, signbit(truth), &decided)) return decided;
    if (isinf(got) && got == (double)truth) return 0;
    long double g = isinf(got) ? copysignl(0x1p1024L, got) : got;
    long double t = fabsl(truth) > 0x1p1024L ? copysignl(0x1p1024L, truth) : truth;
    int e = ilogbl(t);
    return (double)(fabsl(g - t) / exp2l((e < -1022 ? -1022 : e) - 52));
}

double judge_ulp_mpfr(mpfr_srcptr truth, double got, int digits, int least) {
    double decided;
    if (by_kind(got, mpfr_nan_p(truth), mpfr_zero_p(truth), mpfr_signbit(truth), &decided)) return decided;
    long top = digits == 24 ? 128 : 1024;
    if (isinf(got)) {
        if (!mpfr_signbit(truth) != !signbit(got)) return INFINITY;
        if (mpfr_inf_p(truth) || mpfr_get_exp(truth) > top) return 0;
    } else if (mpfr_inf_p(truth)) {
        return INFINITY;
    }
    mpfr_t d;
    mpfr_init2(d, precision);
    if (isinf(got)) {
        mpfr_set_ui_2exp(d, 1, top, MPFR_RNDN);
        if (got < 0) mpfr_neg(d, d, MPFR_RNDN);
        mpfr_sub(d, d, truth, MPFR_RNDN);
    } else {
        mpfr_d_sub(d, got, truth, MPFR_RNDN);
    }
    long e = mpfr_get_exp(truth) - 1;
    mpfr_mul_2si(d, d, digits - 1 - (e < least ? least : e), MPFR_RNDN);
    double ulps = fabs(mpfr_get_d(d, MPFR_RNDN));
    mpfr_clear(d);
    return ulps;
}

static double exact(const judge_unary *j, double x, double got, int digits, int least) {
    mpfr_t in, out;
    mpfr_init2(in, 64);
    mpfr_init2(out, precision);
    mpfr_set_d(in, x, MPFR_RNDN);
    j->exact(out, in, MPFR_RNDN);
    double ulps = judge_ulp_mpfr(out, got, digits, least);
    ulps = judge_allow(j, ulps, got, mpfr_get_d(out, MPFR_RNDN));
    mpfr_clears(in, out, (mpfr_ptr)0);
    return ulps;
}
double judge_exact32(const judge_unary *j, float x, float got) { return exact(j, x, got, 24, -126); }
double judge_exact64(const judge_unary *j, double x, double got) { return exact(j, x, got, 53, -1022); }

double judge_allow(const judge_unary *j, double ulps, double got, double truth) {
    return j->absolute != 0 && fabs(truth) < 1 && fabs(got - truth) <= j->absolute ? 0 : ulps;
}
