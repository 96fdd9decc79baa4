// f32 log, log2, log10, log1p.
#include "internal.h"

// x = 2^e·(1 + m) with 1 + m in [2/3, 4/3), for positive finite x.
typedef struct {
    float m, e;
} lfm_log_reduced;

LFM_INLINE lfm_log_reduced log_reduce_f32(float x) {
    // Subnormals are scaled up first.
    int small = x < 0x1p-126f;
    float y = small ? x * 0x1p23f : x;
    uint32_t i = bits32(y) - 0x3f2aaaab;
    float m = float_of((i & 0x7fffff) + 0x3f2aaaab) - 1.0f;
    lfm_log_reduced r = {m, (float)((int32_t)i >> 23) - (small ? 23.0f : 0.0f)};
    return r;
}

// (ln(1 + m) - m) / m²
LFM_INLINE float log_rest_f32(float m) {
    float p = -0x1.07b1e4p-3f;
    p = fma32(p, m, 0x1.1e71b8p-3f);
    p = fma32(p, m, -0x1.f33a7cp-4f);
    p = fma32(p, m, 0x1.1ed422p-3f);
    p = fma32(p, m, -0x1.559c32p-3f);
    p = fma32(p, m, 0x1.99d05ep-3f);
    p = fma32(p, m, -0x1.fffefap-3f);
    p = fma32(p, m, 0x1.555506p-2f);
    return fma32(p, m, -0.5f);
}

// y for positive finite x, else what a logarithm gives.
LFM_INLINE float log_special_f32(float x, float y) {
    y = x > 0 ? y : x == 0 ? -LFM_INF32 : LFM_NAN32;
    return x < LFM_INF32 ? y : x; // the infinity, a NaN
}

float lfm_log_f32(float x) {
    lfm_log_reduced r = log_reduce_f32(x);
    float l = fma32(r.m * r.m, log_rest_f32(r.m), r.m);
    return log_special_f32(x, fma32(r.e, 0x1.62e430p-1f, l));
}

// (e·ln 2 + ln(1 + m))·(head + tail), where e·ln 2·(head + tail) is given in two parts. The products with m are the
// largest terms where e = 0, so their low parts are kept.
LFM_INLINE float log_scaled_f32(float m, float e_head, float e_tail, float head, float tail) {
    float rest = m * m * log_rest_f32(m);
    float h = m * head, low = fma32(m, tail, fma32(m, head, -h));
    low = fma32(rest, head, low);
    float s = e_head + h, lost = (e_head - s) + h;
    return s + (lost + (low + e_tail));
}

float lfm_log2_f32(float x) {
    lfm_log_reduced r = log_reduce_f32(x);
    return log_special_f32(x, log_scaled_f32(r.m, r.e, 0, 0x1.715476p+0f, 0x1.4ae0c0p-26f));
}

float lfm_log10_f32(float x) {
    lfm_log_reduced r = log_reduce_f32(x);
    // log10 2 in a head of 12 bits, whose product with e is exact, and a tail.
    return log_special_f32(x,
                           log_scaled_f32(r.m, r.e * 0x1.344p-2f, r.e * 0x1.3509f8p-18f, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f));
}

float lfm_log1p_f32(float x) {
    float y = 1.0f + x;
    float lost = x - (y - 1.0f); // exact for |x| < 2^24, and too small to matter beyond
    lfm_log_reduced r = log_reduce_f32(y);
    uint32_t n = (bits32(y) - 0x3f2aaaab) >> 23 << 23;
    float scale = y > 0x1p30f ? 0.0f : float_of(0x3f800000 - n); // 2^-e
    float m = fma32(lost, scale, r.m);
    float l = fma32(m * m, log_rest_f32(m), m);
    float z = log_special_f32(y, fma32(r.e, 0x1.62e430p-1f, l));
    return x == 0 ? x : z;
}
