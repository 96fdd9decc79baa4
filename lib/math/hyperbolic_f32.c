// f32 sinh, cosh, tanh.
#include "exp_f32.h"

// e^±r = 1 + even(r²) ± odd(r), so one reduction serves e^a and e^-a. With s = 2^(n-1) and t = 2^(-n-1),
//   sinh a = (s - t) + even·(s - t) + odd·(s + t),    cosh a = (s + t) + even·(s + t) + odd·(s - t).
// Both have factors of 1/2 to spare here, so that n = 128 does not overflow early.
typedef struct {
    float even, odd, s, t;
} lfm_hyperbolic;

LFM_INLINE lfm_hyperbolic hyperbolic_f32(float a) {
    a = a > 89.5f ? 89.5f : a;
    lfm_exp_reduced e = exp_reduce_f32(a);
    float u = e.r * e.r;
    float even = u * fma32(u, fma32(u, 0x1.6d4ed6p-10f, 0x1.5554e6p-5f), 0.5f);
    float odd = fma32(u, fma32(u, 0x1.a2e3d2p-13f, 0x1.110fbep-7f), 0x1.555556p-3f);
    uint32_t n = e.bits - bits32(ROUND_F32); // 0 … 129
    float s = float_of((n + 125) << 23);
    float t = n > 124 ? 0.0f : float_of((125 - n) << 23);
    lfm_hyperbolic h = {even, fma32(u * e.r, odd, e.r), s, t};
    return h;
}

float lfm_sinh_f32(float x) {
    lfm_hyperbolic h = hyperbolic_f32(abs32(x));
    float sum = h.s + h.t, difference = h.s - h.t;
    float lost = (h.s - difference) - h.t;
    float y = difference + (fma32(h.even, difference, h.odd * sum) + lost);
    return copysign32(y + y, x);
}

float lfm_cosh_f32(float x) {
    lfm_hyperbolic h = hyperbolic_f32(abs32(x));
    float y = h.s + fma32(h.even, h.s + h.t, fma32(h.odd, h.s - h.t, h.t));
    return y + y;
}

// tanh a = -m / (2 + m) with m = e^(-2a) - 1, which is accurate to the last bit also near 0.
float lfm_tanh_f32(float x) {
    float a = abs32(x);
    a = a > 10.0f ? 10.0f : a;
    lfm_exp_reduced e = exp_reduce_f32(-2.0f * a);
    float s = float_of((e.bits << 23) + 0x3f800000);
    float m = fma32(s, exp_tail_f32(e.r), s - 1.0f);
    float d = 2.0f + m;
    float lost = m - (d - 2.0f);
    float r = reciprocal_1_2_f32(d);
    float q = m * r;
    float rest = fma32(-lost, q, fma32(-d, q, m));
    return copysign32(fma32(rest, r, q), x);
}
