// f32 erf and erfc: straight lines without a division.
#include "exp_f32.h"

float lfm_erf_f32(float x) {
    float a = abs32(x);
    // a < 1: a + a·p(a²)
    float u = a * a;
    float s = 0x1.479724p-14f;
    s = fma32(s, u, -0x1.a359fcp-11f);
    s = fma32(s, u, 0x1.53f2c8p-8f);
    s = fma32(s, u, -0x1.b7f722p-6f);
    s = fma32(s, u, 0x1.ce2ce6p-4f);
    s = fma32(s, u, -0x1.81273ep-2f);
    s = fma32(s, u, 0x1.06eba8p-3f);
    s = fma32(s, a, a);
    // a >= 1: 1 - e^q(a), where q approximates ln erfc a; from 4 on the result is 1.
    float b = a > 4.0f ? 4.0f : a;
    float q = -0x1.6bc54ep-16f;
    q = fma32(q, b, 0x1.cebaf8p-12f);
    q = fma32(q, b, -0x1.138a12p-8f);
    q = fma32(q, b, 0x1.9d01acp-6f);
    q = fma32(q, b, -0x1.bc14b6p-4f);
    q = fma32(q, b, -0x1.44356ep-1f);
    q = fma32(q, b, -0x1.212c0cp+0f);
    q = fma32(q, b, 0x1.8a55f2p-13f);
    lfm_exp_reduced e = exp_reduce_f32(q);
    float scale = float_of((e.bits << 23) + 0x3f800000);
    float t = 1.0f - fma32(scale, exp_tail_f32(e.r), scale);
    return copysign32(a < 1.0f ? s : t, x);
}

// With p = c/(a + 2), erfc a = p·g(p)·e^(-a²) and g a polynomial. What rounding p, a + 2 and a² leaves out is
// carried along to first order, and everything but the factor p is summed into one small term z, so that the
// result is p + p·z with little more than one rounding.
float lfm_erfc_f32(float x) {
    const float c = 0.8125f;
    float a = abs32(x);
    a = a > 10.1f ? 10.1f : a;
    float d = a + 2.0f, d_lost = a - (d - 2.0f);
    float r = float_of(0x7ef311c3 - bits32(d)); // 1/d to 12 %
    float err = fma32(-d, r, 1.0f);
    r = fma32(r, fma32(err, err, err), r);
    r = fma32(r, fma32(-d, r, 1.0f), r);
    float p = c * r;
    p = fma32(p, fma32(-d, r, 1.0f), p);
    float p_lost = fma32(-d_lost, p, fma32(-d, p, c)) * (1 / c); // relative

    float v = p - 0x1.999af4p-3f;
    float g = -0x1.74aaf8p+10f;
    g = fma32(g, v, 0x1.23052p+10f);
    g = fma32(g, v, -0x1.f843ccp+5f);
    g = fma32(g, v, -0x1.0fcbacp+8f);
    g = fma32(g, v, 0x1.352cb4p+6f);
    g = fma32(g, v, 0x1.a3b0fep+5f);
    g = fma32(g, v, -0x1.808fb8p+4f);
    g = fma32(g, v, -0x1.e5e252p+3f);
    g = fma32(g, v, 0x1.62c8fep+2f);
    g = fma32(g, v, 0x1.092344p+3f);
    g = fma32(g, v, 0x1.072676p+2f);
    g = fma32(g, v, 0x1.f48edap-3f); // less 1

    float h = a * a, h_lost = fma32(a, a, -h);
    lfm_exp_reduced e = exp_reduce_f32(-h);
    float w = exp_tail_f32(e.r);

    float z = fma32(g, w, g) + w;
    float slope = fma32(3.15651f, v, 1.65042f); // of ln(p·g) by ln p
    z = fma32(fma32(p_lost, slope, e.lost - h_lost), 1.0f + z, z);
    float y = scale_f32(fma32(p, z, p), e.bits);
    y = x < 0 ? 2.0f - y : y;
    // Close to 1 the sum above has large terms of both signs; 1 - x·(a polynomial in x²) does there.
    float near = fma32(h, -0x1.7c0dfcp-6f, 0x1.f96e24p-6f);
    near = fma32(h, near, -0x1.cf6254p-4f);
    near = fma32(h, near, 0x1.81295ep-2f);
    near = fma32(h, near, -0x1.20dd76p+0f);
    y = a < 0.3125f ? fma32(x, near, 1.0f) : y;
    return x == x ? y : x;
}
