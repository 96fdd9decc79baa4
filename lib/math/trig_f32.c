// f32 sin and cos. |x| <= 65536 takes a straight line; beyond it the reduction needs as many bits of 2/π as x has
// binary places, which is done in integers, out of line.
#include "internal.h"

typedef struct {
    float r;    // in [-π/4, π/4], or a NaN
    uint32_t q; // x = q·π/2 + r, modulo 4 in the low two bits
} lfm_quadrant;

// 2/π = 0.w1 w2 w3 … in words of 32 bits; the first is the integer part.
static const uint32_t two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                       0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561};

// r in the high 32 bits of the result (as a float), q in the low ones.
LFM_COLD uint64_t reduce_large_f32(float a) {
    uint32_t u = bits32(a);
    if (u >= 0x7f800000) return (uint64_t)0x7fc00000 << 32;
    uint32_t m = (u & 0x7fffff) | 0x800000;
    int e = (int)(u >> 23) - 150; // a = m·2^e, e >= -8
    // The 96 bits of 2/π from the weight 2^1/2^e on: those before it make multiples of 4.
    int first = e + 30, word = first >> 5, shift = first & 31;
    uint32_t w[3];
    for (int i = 0; i < 3; i++) {
        uint64_t pair = (uint64_t)two_over_pi[word + i] << 32 | two_over_pi[word + i + 1];
        w[i] = (uint32_t)(pair << shift >> 32);
    }
    uint64_t low = (uint64_t)m * w[2], mid = (uint64_t)m * w[1] + (low >> 32);
    uint64_t p = ((uint64_t)(m * w[0]) << 32) + mid; // a·2/π modulo 4, in units of 2^-62
    uint64_t q = (p + (1ull << 61)) >> 62;
    int64_t fraction = (int64_t)(p - (q << 62));
    float r = (float)((double)fraction * (0x1.921fb54442d18p+0 * 0x1p-62));
    return (uint64_t)bits32(r) << 32 | q;
}

LFM_INLINE lfm_quadrant reduce_f32(float a) {
    lfm_quadrant k;
    // π/2 in three parts. The first difference is exact, each later one rounds by half an ulp of its result.
    float t = fma32(a, 0x1.45f306p-1f, 0x1.8p23f);
    float n = t - 0x1.8p23f;
    float r = fma32(n, -0x1.921fb6p+0f, a);
    r = fma32(n, 0x1.777a5cp-25f, r);
    r = fma32(n, 0x1.ee59dap-50f, r);
    k.r = r;
    k.q = bits32(t);
    if (!(a <= 65536.0f)) {
        uint64_t v = reduce_large_f32(a);
        k.r = float_of((uint32_t)(v >> 32));
        k.q = (uint32_t)v;
    }
    return k;
}

// sin(q·π/2 + r)
LFM_INLINE float sine_of(float r, uint32_t q) {
    float u = r * r;
    float s = fma32(u, fma32(u, fma32(u, 0x1.7c2c4cp-19f, -0x1.a05954p-13f), 0x1.111174p-7f), -0x1.555556p-3f);
    s = fma32(u * s, r, r);
    float c = fma32(u, fma32(u, fma32(u, 0x1.99e80cp-16f, -0x1.6c0c28p-10f), 0x1.55554ap-5f), -0.5f);
    c = fma32(u, c, 1.0f);
    float y = q & 1 ? c : s;
    return float_of(bits32(y) ^ (q & 2) << 30);
}

float lfm_sin_f32(float x) {
    lfm_quadrant k = reduce_f32(abs32(x));
    float y = sine_of(k.r, k.q);
    return float_of(bits32(y) ^ (bits32(x) & 0x80000000));
}

float lfm_cos_f32(float x) {
    lfm_quadrant k = reduce_f32(abs32(x));
    return sine_of(k.r, k.q + 1);
}
