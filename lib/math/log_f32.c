// f32 log.
#include "internal.h"

float lfm_log_f32(float x) {
    // Subnormals are scaled up first.
    int small = x < 0x1p-126f;
    float y = small ? x * 0x1p23f : x;
    // y = 2^e·(1 + m), 1 + m in [2/3, 4/3).
    uint32_t i = bits32(y) - 0x3f2aaaab;
    float m = float_of((i & 0x7fffff) + 0x3f2aaaab) - 1.0f;
    float e = (float)((int32_t)i >> 23) - (small ? 23.0f : 0.0f);
    float p = -0x1.07b1e4p-3f;
    p = fma32(p, m, 0x1.1e71b8p-3f);
    p = fma32(p, m, -0x1.f33a7cp-4f);
    p = fma32(p, m, 0x1.1ed422p-3f);
    p = fma32(p, m, -0x1.559c32p-3f);
    p = fma32(p, m, 0x1.99d05ep-3f);
    p = fma32(p, m, -0x1.fffefap-3f);
    p = fma32(p, m, 0x1.555506p-2f);
    p = fma32(p, m, -0.5f);
    p = fma32(m * m, p, m);
    float r = fma32(e, 0x1.62e430p-1f, p);
    r = x > 0 ? r : x == 0 ? -LFM_INF32 : LFM_NAN32;
    return x < LFM_INF32 ? r : x; // the infinity, a NaN
}
