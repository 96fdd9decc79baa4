// The reduction and polynomial behind every f32 function built on e^x. Straight lines of fma, so that they
// vectorise on a CPU and cost a GPU no more than they must. (The functions themselves: exp_f32.c, hyperbolic_f32.c.)
#ifndef LF_MATH_EXP_F32_H
#define LF_MATH_EXP_F32_H

#include "internal.h"

// ln 2 in two parts; n·head is exact within the fma that subtracts it.
#define LN2_HEAD_F32 0x1.62e430p-1f
#define LN2_TAIL_F32 -0x1.05c610p-29f
#define LOG2E_F32 0x1.715476p+0f
#define ROUND_F32 0x1.8p23f // adding it leaves the nearest integer in the low bits

// x = n·ln 2 + r, |r| <= 0.35; bits holds n in two's complement above a constant (see scale_f32).
typedef struct {
    float r, lost; // lost: what rounding r left out
    uint32_t bits;
} lfm_exp_reduced;

LFM_INLINE lfm_exp_reduced exp_reduce_f32(float x) {
    float t = fma32(x, LOG2E_F32, ROUND_F32);
    float n = t - ROUND_F32;
    float first = fma32(n, -LN2_HEAD_F32, x);
    float r = fma32(n, -LN2_TAIL_F32, first);
    lfm_exp_reduced e = {r, fma32(n, -LN2_TAIL_F32, first - r), bits32(t)};
    return e;
}

// x·log2 e = n + r, |r| <= 0.5 and a little; bits as above. The product has two parts: the head less n is exact within the fma.
#define LOG2E_TAIL_F32 0x1.4ae0c0p-26f
LFM_INLINE lfm_exp_reduced exp2_reduce_f32(float x) {
    float t = fma32(x, LOG2E_F32, ROUND_F32);
    float first = fma32(x, LOG2E_F32, ROUND_F32 - t);
    lfm_exp_reduced e = {fma32(x, LOG2E_TAIL_F32, first), 0, bits32(t)};
    return e;
}

// 2^r · scale for |r| <= 0.5 and a scale that is a power of two: the same bits, only scaled.
LFM_INLINE float exp2_poly_f32(float r, float scale) {
    float p = 0x1.4c15aap-13f * scale;
    p = fma32(p, r, 0x1.5fc1d4p-10f * scale);
    p = fma32(p, r, 0x1.3b217cp-7f * scale);
    p = fma32(p, r, 0x1.c6ada8p-5f * scale);
    p = fma32(p, r, 0x1.ebfbe6p-3f * scale);
    p = fma32(p, r, 0x1.62e432p-1f * scale);
    return fma32(p, r, scale);
}

// e^r - 1 for |r| <= 0.35. The sign of a zero is lost.
LFM_INLINE float exp_tail_f32(float r) {
    float q = 0x1.6ac71ep-10f;
    q = fma32(q, r, 0x1.123ddep-7f);
    q = fma32(q, r, 0x1.555858p-5f);
    q = fma32(q, r, 0x1.55548cp-3f);
    q = fma32(q, r, 0x1.fffffcp-2f);
    return fma32(r * r, q, r);
}

// p·2^n with one rounding, for n in [-252, 254] and p near 1: two exact powers of two, the second product rounds.
// The bits are those of n + 1.5·2^23, an even constant whose low half vanishes in the shifts.
LFM_INLINE float scale_f32(float p, uint32_t bits) {
    uint32_t half = bits >> 1;
    float s = float_of((half << 23) + 0x3f800000);
    float t = float_of(((bits - half) << 23) + 0x3f800000);
    return p * s * t;
}

// 1/d for d in [1, 2], not rounded: a quadratic for a seed (1 %), a cubic step, a quadratic step.
LFM_INLINE float reciprocal_1_2_f32(float d) {
    float r = fma32(fma32(0x1.4b01a6p-2f, d, -0x1.746096p+0f), d, 0x1.0f8534p+1f);
    float e = fma32(-d, r, 1.0f);
    r = fma32(r, fma32(e, e, e), r);
    return fma32(r, fma32(-d, r, 1.0f), r);
}

#endif
