// Double-double arithmetic (a value as an unevaluated sum of two doubles, about 104 bits), and log and exp in it.
// For functions whose formula multiplies an error: gamma's exponent reaches 700, and pow's as well.
#ifndef LF_MATH_DD_H
#define LF_MATH_DD_H

#include "internal.h"

typedef struct {
    double hi, lo; // |lo| <= ulp(hi)/2
} dd;

LFM_INLINE dd dd_make(double hi, double lo) {
    dd r = {hi, lo};
    return r;
}
// a + b for |a| >= |b| or a = 0.
LFM_INLINE dd dd_fast_sum(double a, double b) {
    double s = a + b;
    return dd_make(s, b - (s - a));
}
LFM_INLINE dd dd_sum(double a, double b) {
    double s = a + b, t = s - a;
    return dd_make(s, (a - (s - t)) + (b - t));
}
LFM_INLINE dd dd_product(double a, double b) {
    double p = a * b;
    return dd_make(p, fma64(a, b, -p));
}
LFM_INLINE dd dd_neg(dd a) { return dd_make(-a.hi, -a.lo); }
LFM_INLINE dd dd_add(dd a, dd b) {
    dd s = dd_sum(a.hi, b.hi), t = dd_sum(a.lo, b.lo);
    s = dd_fast_sum(s.hi, s.lo + t.hi);
    return dd_fast_sum(s.hi, s.lo + t.lo);
}
LFM_INLINE dd dd_add_d(dd a, double b) {
    dd s = dd_sum(a.hi, b);
    return dd_fast_sum(s.hi, s.lo + a.lo);
}
LFM_INLINE dd dd_mul(dd a, dd b) {
    dd p = dd_product(a.hi, b.hi);
    return dd_fast_sum(p.hi, p.lo + fma64(a.hi, b.lo, a.lo * b.hi));
}
LFM_INLINE dd dd_mul_d(dd a, double b) {
    dd p = dd_product(a.hi, b);
    return dd_fast_sum(p.hi, fma64(a.lo, b, p.lo));
}
LFM_INLINE dd dd_scale(dd a, double power_of_two) { return dd_make(a.hi * power_of_two, a.lo * power_of_two); }
LFM_INLINE dd dd_div(dd a, dd b) {
    double q = a.hi / b.hi;
    dd r = dd_add(a, dd_neg(dd_mul_d(b, q)));
    return dd_fast_sum(q, r.hi / b.hi);
}
LFM_INLINE dd dd_recip(double b) {
    double q = 1 / b;
    return dd_make(q, fma64(-q, b, 1) * q);
}

// ln 2 in two parts, to 2^-103; the product of the first with an integer below 2^11 is exact.
#define LN2_1 0x1.62e42fefa3800p-1
#define LN2_2 0x1.ef35793c76730p-45

// ln x for finite normalised x > 0, to 2^-68 of itself or of exponent·ln 2.
dd dd_log(dd x);

// e^x = value·2^exponent to 2^-68, value in [0.7, 1.42]. Beyond ±1500 x counts as ±1500.
typedef struct {
    dd value;
    int64_t exponent;
} dd_scaled;
dd_scaled dd_exp(dd x);

#endif
