// f32 exp, exp2, expm1, sigmoid.
#include "exp_f32.h"

float lfm_exp_f32(float x) {
    // Below -104 the result is 0, above 89 infinite; a NaN passes both comparisons.
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    lfm_exp_reduced e = exp_reduce_f32(x);
    return scale_f32(1.0f + exp_tail_f32(e.r), e.bits);
}

float lfm_exp2_f32(float x) {
    x = x < -151.0f ? -151.0f : x;
    x = x > 129.0f ? 129.0f : x;
    float t = x + ROUND_F32;
    float r = x - (t - ROUND_F32);
    float p = 0x1.4c15aap-13f;
    p = fma32(p, r, 0x1.5fc1d4p-10f);
    p = fma32(p, r, 0x1.3b217cp-7f);
    p = fma32(p, r, 0x1.c6ada8p-5f);
    p = fma32(p, r, 0x1.ebfbe6p-3f);
    p = fma32(p, r, 0x1.62e432p-1f);
    return scale_f32(fma32(p, r, 1.0f), bits32(t));
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

float lfm_sigmoid_f32(float x) {
    float a = abs32(x);
    a = a > 104.0f ? 104.0f : a;
    lfm_exp_reduced n = exp_reduce_f32(-a);
    float p = 1.0f + exp_tail_f32(n.r);
    float e = scale_f32(p, n.bits); // e^-|x|
    float d = 1.0f + e;
    float lost = e - (d - 1.0f); // what rounding d left out
    float r = fma32(fma32(0x1.4b01a6p-2f, d, -0x1.746096p+0f), d, 0x1.0f8534p+1f);
    float err = fma32(-d, r, 1.0f);
    r = fma32(r, fma32(err, err, err), r);
    err = fma32(-lost, r, fma32(-d, r, 1.0f));
    r = fma32(r, err, r); // 1 / (1 + e)
    // e / (1 + e) rounds once when it is subnormal, since p·r is scaled last.
    return x < 0 ? scale_f32(p * r, n.bits) : r;
}
