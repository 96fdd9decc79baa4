// f64 sin, cos and tan, and f32 tan (in double). Up to 2^30 a straight line; beyond it libclc's, out of line, whose
// reduction uses as many bits of 2/π as it takes.
#include "internal.h"
#include "libclc.h"

#define PI_2_HEAD 0x1.921fb54442d18p+0
#define PI_2_MIDDLE 0x1.1a62633145c07p-54
#define PI_2_TAIL -0x1.f1976b7ed8fbcp-110
#define LIMIT 0x1p30

LFM_COLD double sin_large(double x) { return clc_sin_f64(x); }
LFM_COLD double cos_large(double x) { return clc_cos_f64(x); }
LFM_COLD double tan_large(double x) { return clc_tan_f64(x); }

typedef struct {
    double r, lost; // r + lost in [-π/4, π/4]
    uint64_t q;     // a = q·π/2 + r + lost, modulo 4 in the low two bits
} lfm_quadrant_f64;

LFM_INLINE lfm_quadrant_f64 reduce_f64(double a) {
    double t = fma64(a, 0x1.45f306dc9c883p-1, 0x1.8p52);
    double n = t - 0x1.8p52;
    double first = fma64(n, -PI_2_HEAD, a); // exact
    double p = n * PI_2_MIDDLE, p_lost = fma64(n, PI_2_MIDDLE, -p);
    double r = first - p, back = r - first;
    double lost = (first - (r - back)) - (p + back); // of the difference, whichever is larger
    lfm_quadrant_f64 k = {r, fma64(n, -PI_2_TAIL, lost - p_lost), bits64(t)};
    return k;
}

// sin(r + lost) = r + sine_rest, cos(r + lost) = w + cosine_rest; the rests are small.
typedef struct {
    double sine_rest, w, cosine_rest;
} lfm_sincos_parts;

LFM_INLINE lfm_sincos_parts sincos_parts(double r, double lost) {
    double u = r * r;
    double s = 0x1.5d9269390ee9ap-33;
    s = fma64(s, u, -0x1.ae5e63e6856aep-26);
    s = fma64(s, u, 0x1.71de35743d817p-19);
    s = fma64(s, u, -0x1.a01a019c0cbedp-13);
    s = fma64(s, u, 0x1.111111110f848p-7);
    s = fma64(s, u, -0x1.5555555555549p-3);
    double half = 0.5 * u, w = 1.0 - half;
    double c = -0x1.8fadec5a5b4a5p-37;
    c = fma64(c, u, 0x1.1ee9ea896f152p-29);
    c = fma64(c, u, -0x1.27e4f807d86d2p-22);
    c = fma64(c, u, 0x1.a01a019caebaap-16);
    c = fma64(c, u, -0x1.6c16c16c1515dp-10);
    c = fma64(c, u, 0x1.555555555554cp-5);
    lfm_sincos_parts p = {fma64(u * r, s, lost * w), w, ((1.0 - w) - half) + fma64(u * u, c, -lost * r)};
    return p;
}

// sin(q·π/2 + r + lost)
LFM_INLINE double sine_of_f64(double r, double lost, uint64_t q) {
    lfm_sincos_parts p = sincos_parts(r, lost);
    double y = q & 1 ? p.w + p.cosine_rest : r + p.sine_rest;
    return double_of(bits64(y) ^ (q & 2) << 62);
}

double lfm_sin_f64(double x) {
    lfm_quadrant_f64 k = reduce_f64(abs64(x));
    double y = sine_of_f64(k.r, k.lost, k.q);
    y = double_of(bits64(y) ^ (bits64(x) & 1ull << 63));
    if (!(abs64(x) <= LIMIT)) y = sin_large(x);
    return y;
}

double lfm_cos_f64(double x) {
    lfm_quadrant_f64 k = reduce_f64(abs64(x));
    double y = sine_of_f64(k.r, k.lost, k.q + 1);
    if (!(abs64(x) <= LIMIT)) y = cos_large(x);
    return y;
}

double lfm_tan_f64(double x) {
    lfm_quadrant_f64 k = reduce_f64(abs64(x));
    lfm_sincos_parts p = sincos_parts(k.r, k.lost);
    double s = k.r + p.sine_rest, s_lost = p.sine_rest - (s - k.r);
    double c = p.w + p.cosine_rest, c_lost = p.cosine_rest - (c - p.w);
    int odd = k.q & 1;
    double n = odd ? -c : s, n_lost = odd ? -c_lost : s_lost;
    double d = odd ? s : c, d_lost = odd ? s_lost : c_lost;
    double inverse = 1.0 / d, y = n * inverse;
    double rest = fma64(-d_lost, y, fma64(-d, y, n) + n_lost);
    y = fma64(rest, inverse, y);
    y = double_of(bits64(y) ^ (bits64(x) & 1ull << 63));
    if (!(abs64(x) <= LIMIT)) y = tan_large(x);
    return y;
}

float lfm_tan_f32(float x) {
    double a = abs32(x);
    double t = fma64(a, 0x1.45f306dc9c883p-1, 0x1.8p52);
    double n = t - 0x1.8p52;
    double r = fma64(n, -PI_2_MIDDLE, fma64(n, -PI_2_HEAD, a));
    double u = r * r;
    double p = 0x1.0baef989382d3p-9;
    p = fma64(p, u, -0x1.39e5fe1a7bf3ap-11);
    p = fma64(p, u, 0x1.47674e91ef8b5p-8);
    p = fma64(p, u, 0x1.10f295c3e87bep-7);
    p = fma64(p, u, 0x1.683495898bac0p-6);
    p = fma64(p, u, 0x1.b9fee0ae99902p-5);
    p = fma64(p, u, 0x1.111179b575f01p-3);
    p = fma64(p, u, 0x1.555554525b01ap-2);
    double y = fma64(u * r, p, r);
    y = bits64(t) & 1 ? -1.0 / y : y;
    if (!(a <= LIMIT)) y = tan_large(a);
    float f = (float)y;
    return float_of(bits32(f) ^ (bits32(x) & 0x80000000));
}
