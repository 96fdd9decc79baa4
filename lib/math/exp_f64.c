// f64 exp, exp2, expm1, sigmoid, sinh, cosh, tanh: the formulas of exp_f32.c and hyperbolic_f32.c, which explain them.
#include "exp_f64.h"

double lfm_exp_f64(double x) {
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    lfm_exp_reduced_f64 e = exp_reduce_f64(x);
    return scale_f64(1.0 + exp_tail_f64(e.r, 0), e.bits);
}

double lfm_exp2_f64(double x) {
    x = x < -1076.0 ? -1076.0 : x;
    x = x > 1025.0 ? 1025.0 : x;
    double t = x + ROUND_F64;
    double r = x - (t - ROUND_F64);
    double p = 0x1.c2e94a27fcf5cp-36;
    p = fma64(p, r, 0x1.ea021a0194f2fp-32);
    p = fma64(p, r, 0x1.e4d057c01966fp-28);
    p = fma64(p, r, 0x1.b524dcc4868afp-24);
    p = fma64(p, r, 0x1.62c021e88364fp-20);
    p = fma64(p, r, 0x1.ffcbfc752308ap-17);
    p = fma64(p, r, 0x1.430912f882252p-13);
    p = fma64(p, r, 0x1.5d87fe78a259ep-10);
    p = fma64(p, r, 0x1.3b2ab6fba4e29p-7);
    p = fma64(p, r, 0x1.c6b08d704a0cfp-5);
    p = fma64(p, r, 0x1.ebfbdff82c58fp-3);
    p = fma64(p, r, 0x1.62e42fefa39efp-1);
    return scale_f64(fma64(p, r, 1.0), bits64(t));
}

double lfm_expm1_f64(double x) {
    double a = x < -40.0 ? -40.0 : x;
    a = a > 710.0 ? 710.0 : a;
    lfm_exp_reduced_f64 e = exp_reduce_f64(a);
    double s = pow2_f64(e.bits - 1);
    double half = fma64(s, exp_tail_f64(e.r, e.lost), s - 0.5);
    return copysign64(half + half, x);
}

double lfm_sigmoid_f64(double x) {
    double a = abs64(x);
    a = a > 746.0 ? 746.0 : a;
    lfm_exp_reduced_f64 n = exp_reduce_f64(-a);
    double p = 1.0 + exp_tail_f64(n.r, 0);
    double e = scale_f64(p, n.bits); // e^-|x|
    double d = 1.0 + e, lost = e - (d - 1.0);
    double y = divide_1_2_f64(x < 0 ? p : 1.0, 0, d, lost);
    return x < 0 ? scale_f64(y, n.bits) : y;
}

typedef struct {
    double even, odd, s, t;
} lfm_hyperbolic_f64;

LFM_INLINE lfm_hyperbolic_f64 hyperbolic_f64(double a) {
    a = a > 710.5 ? 710.5 : a;
    lfm_exp_reduced_f64 e = exp_reduce_f64(a);
    double u = e.r * e.r;
    double even = 0x1.1f9586e664526p-29;
    even = fma64(even, u, 0x1.27e4c4d3c68bdp-22);
    even = fma64(even, u, 0x1.a01a01b197642p-16);
    even = fma64(even, u, 0x1.6c16c16c13ec7p-10);
    even = fma64(even, u, 0x1.555555555555cp-5);
    even = u * fma64(even, u, 0.5);
    double odd = 0x1.af5f37ab86649p-26;
    odd = fma64(odd, u, 0x1.71ddf80d18926p-19);
    odd = fma64(odd, u, 0x1.a01a01b00216bp-13);
    odd = fma64(odd, u, 0x1.111111110f660p-7);
    odd = fma64(odd, u, 0x1.5555555555559p-3);
    uint64_t n = e.bits - bits64(ROUND_F64); // 0 … 1025
    double s = double_of((n + 1021) << 52);
    double t = n > 1020 ? 0.0 : double_of((1021 - n) << 52);
    lfm_hyperbolic_f64 h = {even, e.r + fma64(u * e.r, odd, e.lost), s, t};
    return h;
}

double lfm_sinh_f64(double x) {
    lfm_hyperbolic_f64 h = hyperbolic_f64(abs64(x));
    double sum = h.s + h.t, difference = h.s - h.t;
    double lost = (h.s - difference) - h.t;
    double y = difference + (fma64(h.even, difference, h.odd * sum) + lost);
    return copysign64(y + y, x);
}

double lfm_cosh_f64(double x) {
    lfm_hyperbolic_f64 h = hyperbolic_f64(abs64(x));
    double y = h.s + fma64(h.even, h.s + h.t, fma64(h.odd, h.s - h.t, h.t));
    return y + y;
}

double lfm_tanh_f64(double x) {
    double a = abs64(x);
    a = a > 20.0 ? 20.0 : a;
    lfm_exp_reduced_f64 e = exp_reduce_f64(-2.0 * a);
    double s = pow2_f64(e.bits);
    double tail = exp_tail_f64(e.r, e.lost);
    double m = fma64(s, tail, s - 1.0), m_lost = fma64(s, tail, (s - 1.0) - m);
    double d = 2.0 + m, d_lost = (m - (d - 2.0)) + m_lost;
    return copysign64(divide_1_2_f64(m, m_lost, d, d_lost), x);
}
