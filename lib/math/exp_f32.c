// f32 exp and its cheaper forms, exp2, expm1, sigmoid.
#include "exp_f32.h"

float lfm_exp_f32(float x) {
    // Below -104 the result is 0, above 89 infinite; a NaN passes both comparisons.
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    lfm_exp_reduced e = exp2_reduce_f32(x);
    return scale_f32(exp2_poly_f32(e.r, 1), e.bits);
}

// lfm_exp_f32 where |x| <= 87, bit by bit: the result is normal, so n goes straight into the exponent.
float lfm_exp_near_f32(float x) {
    lfm_exp_reduced e = exp2_reduce_f32(x);
    return float_of(bits32(exp2_poly_f32(e.r, 1)) + (e.bits << 23));
}

// lfm_exp_f32 where x <= 43 or x is NaN, bit by bit: the polynomial makes 2^(r - 65), so that one product by 2^(n + 65) rounds once
// also when the result is subnormal.
float lfm_exp_low_f32(float x) {
    x = x < -104.0f ? -104.0f : x;
    const float round = ROUND_F32 + (127 + 65);
    float t = fma32(x, LOG2E_F32, round);
    float r = fma32(x, LOG2E_F32, round - t);
    r = fma32(x, LOG2E_TAIL_F32, r);
    return exp2_poly_f32(r, 0x1p-65f) * float_of(bits32(t) << 23);
}

float lfm_exp2_f32(float x) {
    x = x < -151.0f ? -151.0f : x;
    x = x > 129.0f ? 129.0f : x;
    float t = x + ROUND_F32;
    return scale_f32(exp2_poly_f32(x - (t - ROUND_F32), 1), bits32(t));
}

float lfm_expm1_f32(float x) {
    float a = x < -18.0f ? -18.0f : x;
    a = a > 89.0f ? 89.0f : a;
    lfm_exp_reduced e = exp_reduce_f32(a);
    // Half of 2^n, so that n = 128 is still finite: (2^n - 1) + 2^n·tail, doubled.
    float s = float_of((e.bits << 23) + 0x3f000000);
    float half = fma32(s, exp_tail_f32(e.r), s - 0.5f);
    return copysign32(half + half, x);
}

// n/(1 + e) with e = e^-|x|, n = e for x < 0 and else 1. Twice as many digits as the quotient has come from d's and the quotient's
// remainders, so that e's error is the largest. A GPU takes an approximate reciprocal for the division (lib/codegen/llvm/math_device.c).
float lfm_sigmoid_f32(float x) {
    float a = abs32(x);
    a = a > 104.0f ? 104.0f : a;
    const float round = ROUND_F32 + (127 + 65); // as in exp_low
    float t = fma32(a, -LOG2E_F32, round);
    float r = fma32(a, -LOG2E_F32, round - t);
    r = fma32(a, -LOG2E_TAIL_F32, r);
    float e = exp2_poly_f32(r, 0x1p-65f) * float_of(bits32(t) << 23);
    float d = 1.0f + e;
    float lost = e - (d - 1.0f); // what rounding d left out
    float q = 1.0f / d;
    float err = fma32(-lost, q, fma32(-d, q, 1.0f));
    float n = x < 0 ? e : 1.0f, y = n * q;
    return y + fma32(y, err, fma32(n, q, -y));
}
