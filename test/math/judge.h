// True values for lib/math, and the distance of a result from them.
#ifndef LF_TEST_MATH_JUDGE_H
#define LF_TEST_MATH_JUDGE_H

#include <mpfr.h>
#include <stdbool.h>
#include <stdint.h>

#include "math/math.h"

typedef struct {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
    double limit;                      // in ulps, both types
    double absolute;                   // an absolute error that is as good where |value| < 1 (0: none)
    double (*wide)(double);            // judge of f32: accurate to about 1e-8 ulp of f32
    long double (*wider)(long double); // judge of f64, or NULL: MPFR alone
    int (*exact)(mpfr_t, mpfr_srcptr, mpfr_rnd_t);
    bool odd, even; // then half of the arguments need a sweep
} judge_unary;

extern const judge_unary judge_unaries[];
extern const int judge_unary_count;

// |got - true| in ulps of the correctly rounded result; infinity when one is NaN, infinite or of the other sign of
// zero, and the other is not.
double judge_ulp32(float got, double truth);
double judge_ulp64(double got, long double truth);
double judge_exact32(const judge_unary *j, float x, float got);
double judge_exact64(const judge_unary *j, double x, double got);
double judge_ulp_mpfr(mpfr_srcptr truth, double got, int digits, int least_exponent);

// As judge_ulp*, but 0 if the absolute error is within j->absolute and |truth| < 1.
double judge_allow(const judge_unary *j, double ulps, double got, double truth);

static inline float float_bits(uint32_t u) {
    union {
        uint32_t u;
        float f;
    } v = {u};
    return v.f;
}
static inline double double_bits(uint64_t u) {
    union {
        uint64_t u;
        double f;
    } v = {u};
    return v.f;
}

#endif
