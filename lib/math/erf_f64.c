// f64 erf and erfc: the formulas of erf_f32.c, which explains them.
#include "exp_f64.h"

// erf x / x - 1 for |x| <= 1/2, u = x².
LFM_INLINE double erf_small(double u) {
    double s = -0x1.39fb715fd998dp-23;
    s = fma64(s, u, 0x1.b7764fca694aap-20);
    s = fma64(s, u, -0x1.f4bba08de68fbp-17);
    s = fma64(s, u, 0x1.f9a2a66fc07b6p-14);
    s = fma64(s, u, -0x1.c02db23d8ba76p-11);
    s = fma64(s, u, 0x1.565bcd0aa7301p-8);
    s = fma64(s, u, -0x1.b82ce3127f773p-6);
    s = fma64(s, u, 0x1.ce2f21a042b29p-4);
    s = fma64(s, u, -0x1.812746b0379e6p-2);
    s = fma64(s, u, 0x1.06eba8214db69p-3);
    return s;
}

// erfc a for 1/2 <= a <= 27.3, a straight line without a division. Two polynomials, so that g stays near 1: then
// its rounding errors stay small.
LFM_INLINE double erfc_core(double a) {
    int far = a >= 3.0;
    double c = far ? 0x1.ap-1 : 0x1.8p+0;
    double d = a + 3.0, d_lost = a - (d - 3.0);
    double r = double_of(0x7fde623822fc16e6 - bits64(d)); // 1/d to 12 %
    double err = fma64(-d, r, 1.0);
    r = fma64(r, fma64(err, err, err), r);
    err = fma64(-d, r, 1.0);
    r = fma64(r, fma64(err, err, err), r);
    double p = c * r;
    p = fma64(p, fma64(-d, r, 1.0), p);
    double p_lost = fma64(-d_lost, p, fma64(-d, p, c)) * (far ? 1 / 0x1.ap-1 : 1 / 0x1.8p+0); // relative

    double v = p - (far ? 0x1.4bfffffffffcep-4 : 0x1.5b7ffffffffep-2);
    double g = far ? 0x1.1995fb8286a94p+25 : 0x1.d14c639632d3dp+9;
    g = fma64(g, v, far ? 0x1.b635d8b950341p+23 : -0x1.85d00c67baa1ep+6);
    g = fma64(g, v, far ? -0x1.248039eca1a3bp+21 : -0x1.8c8c8b64bb59dp+8);
    g = fma64(g, v, far ? -0x1.99519142e9d65p+20 : 0x1.419ed1cf6b3f1p+7);
    g = fma64(g, v, far ? 0x1.c77fdd6424ffcp+13 : 0x1.1464b32b2411p+7);
    g = fma64(g, v, far ? 0x1.4d43e875c657dp+17 : -0x1.aed58c253bd41p+6);
    g = fma64(g, v, far ? 0x1.e64c00083c21ep+14 : -0x1.97803c5209f4ep+5);
    g = fma64(g, v, far ? -0x1.86f2ac23812f2p+13 : 0x1.e5e0c61a1056fp+5);
    g = fma64(g, v, far ? -0x1.d63bd6863873fp+12 : 0x1.bdb026f838aa4p+4);
    g = fma64(g, v, far ? -0x1.bc8ad7359b01fp+9 : -0x1.02d2458960ee7p+5);
    g = fma64(g, v, far ? 0x1.8e8bd3a56d935p+9 : -0x1.9c8bc62bf77a6p+4);
    g = fma64(g, v, far ? 0x1.2a109380fa62bp+9 : 0x1.4fe04d8835166p+3);
    g = fma64(g, v, far ? 0x1.f46e1c9af2eb7p+7 : 0x1.b4abb3a3c38a5p+4);
    g = fma64(g, v, far ? 0x1.3f21750ad35e9p+6 : 0x1.5dfa73e7e8668p+4);
    g = fma64(g, v, far ? 0x1.51e72ac507957p+4 : 0x1.5e5020bfbd58fp+3);
    g = fma64(g, v, far ? 0x1.358bc7a33500cp+2 : 0x1.ee548ded96918p+1);
    g = fma64(g, v, far ? -0x1.33def5dbf2b5fp-6 : -0x1.95a0f400be2aep-7);

    double h = a * a, h_lost = fma64(a, a, -h);
    lfm_exp_reduced_f64 e = exp_reduce_f64(-h);
    double w = exp_tail_f64(e.r, e.lost);

    double z = fma64(g, w, g) + w;
    double slope = far ? fma64(fma64(22.19241, v, 6.54255), v, 1.39966)
                       : fma64(fma64(5.19185, v, 6.14808), v, 2.32759); // of ln(p·g) by ln p
    z = fma64(fma64(p_lost, slope, -h_lost), 1.0 + z, z);
    return scale_f64(fma64(p, z, p), e.bits);
}

double lfm_erf_f64(double x) {
    double a = abs64(x);
    double s = fma64(erf_small(a * a), a, a);
    double b = a > 6.0 ? 6.0 : a;
    double t = 1.0 - erfc_core(b < 0.5 ? 0.5 : b);
    return copysign64(a < 0.5 ? s : a == a ? t : a, x);
}

double lfm_erfc_f64(double x) {
    double a = abs64(x);
    double s = fma64(-x, erf_small(a * a), 1.0 - x);
    double b = a > 27.3 ? 27.3 : a;
    double t = erfc_core(b < 0.5 ? 0.5 : b);
    t = x < 0 ? 2.0 - t : t;
    return a < 0.5 ? s : x == x ? t : x;
}
