// f32 sin and cos. |x| <= 65536 takes a straight line; beyond it the multiple of π/2 comes off by a table. That
// branch is short and holds no call; made branch-free it would cost every GPU thread two loads and double arithmetic.
#include "internal.h"

#include "trig_f32_table.h"

typedef struct {
    float r;    // in [-π/4, π/4], or a NaN
    uint32_t q; // x = q·π/2 + r, modulo 4 in the low two bits
} lfm_quadrant;

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
        uint32_t u = bits32(a), e = (u >> 23) - 143;
        const double *turn = turns[e > 111 ? 111 : e]; // the infinity and NaNs have no row
        double m = (double)(int32_t)((u & 0x7fffff) | 0x800000);
        double p = m * turn[0];
        double rounded = p + 0x1.8p52;
        double fraction = fma64(m, turn[1], p - (rounded - 0x1.8p52));
        k.r = (float)(fraction * 0x1.921fb54442d18p+0);
        k.q = (uint32_t)bits64(rounded);
        if (u >= 0x7f800000) k.r = LFM_NAN32;
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
