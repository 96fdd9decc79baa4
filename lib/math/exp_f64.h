// The f64 twin of exp_f32.h: reduction and polynomial behind every f64 function built on e^x.
#ifndef LF_MATH_EXP_F64_H
#define LF_MATH_EXP_F64_H

#include "internal.h"

#define LN2_HEAD_F64 0x1.62e42fefa3800p-1 // its product with an integer below 2^11 is exact
#define LN2_TAIL_F64 0x1.ef35793c76730p-45
#define LOG2E_F64 0x1.71547652b82fep+0
#define ROUND_F64 0x1.8p52

// x = n·ln 2 + r, |r| <= 0.35; bits holds n above an even constant whose low half is zero.
typedef struct {
    double r, lost; // lost: what rounding r left out (for those who subtract from the result)
    uint64_t bits;
} lfm_exp_reduced_f64;

LFM_INLINE lfm_exp_reduced_f64 exp_reduce_f64(double x) {
    double t = fma64(x, LOG2E_F64, ROUND_F64);
    double n = t - ROUND_F64;
    double first = fma64(n, -LN2_HEAD_F64, x);
    double r = fma64(n, -LN2_TAIL_F64, first);
    lfm_exp_reduced_f64 e = {r, fma64(n, -LN2_TAIL_F64, first - r), bits64(t)};
    return e;
}

// e^(r + lost) - 1 for |r| <= 0.35. The sign of a zero is lost.
LFM_INLINE double exp_tail_f64(double r, double lost) {
    double q = 0x1.1e3b7c29f45afp-29;
    q = fma64(q, r, 0x1.af6c3e92c9a88p-26);
    q = fma64(q, r, 0x1.27e5b5bb8e46ap-22);
    q = fma64(q, r, 0x1.71ddefed384f9p-19);
    q = fma64(q, r, 0x1.a01a0135a9347p-16);
    q = fma64(q, r, 0x1.a01a01b393e7dp-13);
    q = fma64(q, r, 0x1.6c16c16c3086ap-10);
    q = fma64(q, r, 0x1.111111110ec21p-7);
    q = fma64(q, r, 0x1.5555555555502p-5);
    q = fma64(q, r, 0x1.555555555555bp-3);
    q = fma64(q, r, 0.5);
    return r + fma64(r * r, q, lost);
}

// 2^n for n >= -1022 (and 0 where the exponent field would be 0).
LFM_INLINE double pow2_f64(uint64_t bits) { return double_of((bits << 52) + (1023ull << 52)); }

// p·2^n with one rounding, for |n| <= 2040 and p near 1.
LFM_INLINE double scale_f64(double p, uint64_t bits) {
    uint64_t half = bits >> 1;
    return p * pow2_f64(half) * pow2_f64(bits - half);
}

// The quotient (m + m_lost)/(d + d_lost) for d in [1, 2], to little more than half an ulp, without a division.
LFM_INLINE double divide_1_2_f64(double m, double m_lost, double d, double d_lost) {
    double r = fma64(fma64(0x1.4afb935cbb20dp-2, d, -0x1.745bb05933265p+0), d, 0x1.0f835f488410ap+1);
    double e = fma64(-d, r, 1.0);
    r = fma64(r, fma64(e, e, e), r);
    e = fma64(-d, r, 1.0);
    r = fma64(r, fma64(e, e, e), r);
    double q = m * r;
    return fma64(fma64(-d_lost, q, fma64(-d, q, m) + m_lost), r, q);
}

#endif
