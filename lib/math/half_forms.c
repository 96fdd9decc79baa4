// Functions of halves, computed in f32 for a result that is rounded to f16 or bf16. An error of 2^-15 is small beside half an ulp of
// 2^-12 or 2^-9, so that the rounded result is a neighbour of the true value: a polynomial of degree 4, no tails, no compensation.
// Arguments are halves; results reach down to bf16's subnormals, NaN, infinities and the sign of zero are those of the formulas.
#include "exp_f32.h"

// 1/d for d in [2^-100, 2^127.5], rounded; to 0 or to a subnormal above 2^126. A GPU kernel has another form with the same results
// (lib/codegen/llvm/math_device.c).
LFM_INLINE float reciprocal(float d) { return 1.0f / d; }

// y = n + r: 2^r · scale, and in bits n + 127 + offset for which the caller rounded.
LFM_INLINE float exp2_poly_half(float r, float scale) {
    float p = 0x1.4090e4p-7f * scale;
    p = fma32(p, r, 0x1.ca9006p-5f * scale);
    p = fma32(p, r, 0x1.ebf1b6p-3f * scale);
    p = fma32(p, r, 0x1.62dfcap-1f * scale);
    return fma32(p, r, scale);
}

float lfm_exp_half(float x) {
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    const float round = ROUND_F32 + 2 * 127;
    float t = fma32(x, LOG2E_F32, round);
    float r = fma32(x, LOG2E_F32, round - t);
    uint32_t n = bits32(t), half = n >> 1; // two factors, as in scale_f32
    return exp2_poly_half(r, 1) * float_of(half << 23) * float_of((n - half) << 23);
}

// 1/(1 + 2^u) for u within [-30, 153] or NaN, as 2^-26/(2^-26 + 2^(u - 26)), which does not overflow; at 153 it is 0.
LFM_INLINE float logistic(float t, float r) {
    float d = fma32(exp2_poly_half(r, 1), float_of(bits32(t) << 23), 0x1p-26f);
    return reciprocal(d) * 0x1p-26f;
}
#define LOGISTIC_ROUND (ROUND_F32 + (127 - 26))

float lfm_sigmoid_half(float x) {
    x = x < -106.0f ? -106.0f : x;
    x = x > 20.0f ? 20.0f : x;
    float t = fma32(x, -LOG2E_F32, LOGISTIC_ROUND);
    return logistic(t, fma32(x, -LOG2E_F32, LOGISTIC_ROUND - t));
}

float lfm_silu_half(float x) { return x * lfm_sigmoid_half(x); }

// x·sigmoid(2·sqrt(2/pi)·(x + 0.044715·x^3))
float lfm_gelu_tanh_half(float x) {
    float w = fma32(x * x, -0x1.a5a7d0p-4f, -0x1.26aec2p+1f);
    float u = x * w;
    u = u > 153.0f ? 153.0f : u;
    u = u < -30.0f ? -30.0f : u;
    float t = u + LOGISTIC_ROUND;
    return x * logistic(t, u + (LOGISTIC_ROUND - t));
}

// m/(m + 2) with m = e^(2x) - 1, which keeps its digits near 0.
float lfm_tanh_half(float x) {
    x = x < -10.0f ? -10.0f : x;
    x = x > 10.0f ? 10.0f : x;
    const float round = ROUND_F32 + 127;
    float t = fma32(x, 2 * LOG2E_F32, round);
    float r = fma32(x, 2 * LOG2E_F32, -(t - round)); // -0 for -0
    float q = 0x1.3b2cc6p-7f;
    q = fma32(q, r, 0x1.c96b72p-5f);
    q = fma32(q, r, 0x1.ebff04p-3f);
    q = fma32(q, r, 0x1.62e2d6p-1f);
    float s = float_of(bits32(t) << 23);
    float m = fma32(s, q * r, -(1.0f - s)); // -0 for -0
    return m * reciprocal(m + 2.0f);
}

// x·Phi(x), Phi(-a) = e^(-a²/2)·g(1/(1 + 0.35·a)) for a >= 0. The square of a half is exact in f32.
float lfm_gelu_half(float x) {
    float a = abs32(x);
    a = a > 14.5f ? 14.5f : a;
    float v = reciprocal(fma32(a, 0.35f, 1.0f));
    float g = -0x1.11ffp-5f;
    g = fma32(g, v, 0x1.426866p-7f);
    g = fma32(g, v, 0x1.24c59ap-3f);
    g = fma32(g, v, 0x1.8b811ep-4f);
    g = fma32(g, v, 0x1.2898d2p-3f);
    g = fma32(g, v, 0x1.1d33aap-3f);
    const float round = ROUND_F32 + (127 + 65);
    float h = a * a;
    float t = fma32(h, -0.5f * LOG2E_F32, round);
    float r = fma32(h, -0.5f * LOG2E_F32, round - t);
    float tail = g * v * exp2_poly_half(r, 0x1p-65f) * float_of(bits32(t) << 23);
    return x * (x < 0 ? tail : 1.0f - tail);
}
