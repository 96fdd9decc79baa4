// erfinv.
#include "internal.h"
#include "libclc.h"

// |x| <= 3/4: x times a polynomial in x². Beyond, a guess good to 3e-7 and one Halley step on erfc, whose relative
// error counts less and less there.
double lfm_erfinv_f64(double x) {
    double a = abs64(x), u = x * x;
    if (a <= 0.75) {
        double p = 0x1.896e0e4aa5c81p+6;
        p = fma64(p, u, -0x1.36e1ec4b301abp+9);
        p = fma64(p, u, 0x1.d227e5a5e8fe6p+10);
        p = fma64(p, u, -0x1.b79bcb76be758p+11);
        p = fma64(p, u, 0x1.23ea181c41974p+12);
        p = fma64(p, u, -0x1.21c9780ed1564p+12);
        p = fma64(p, u, 0x1.bdcecbf3556a6p+11);
        p = fma64(p, u, -0x1.0fe04deab6213p+11);
        p = fma64(p, u, 0x1.0ae600f56ff02p+10);
        p = fma64(p, u, -0x1.a9c9372ed2611p+8);
        p = fma64(p, u, 0x1.159300322d054p+7);
        p = fma64(p, u, -0x1.28308446dbc8cp+5);
        p = fma64(p, u, 0x1.039b1472aaf48p+3);
        p = fma64(p, u, -0x1.6c2e808013439p+0);
        p = fma64(p, u, 0x1.d9da68e73dc36p-3);
        p = fma64(p, u, 0x1.837a7591a06edp-11);
        p = fma64(p, u, 0x1.ef317dd1e02d9p-6);
        p = fma64(p, u, 0x1.024509fa6b5eep-5);
        p = fma64(p, u, 0x1.2acd5469b32b5p-5);
        p = fma64(p, u, 0x1.5eea5910bebdfp-5);
        p = fma64(p, u, 0x1.a7c86241332e4p-5);
        p = fma64(p, u, 0x1.0a13188e1cec5p-4);
        p = fma64(p, u, 0x1.62847c4809c59p-4);
        p = fma64(p, u, 0x1.053c2c0ab8f83p-3);
        p = fma64(p, u, 0x1.db29fb2fee5e5p-3);
        // The constant term is √π/2 in two parts.
        return copysign64(fma64(a, 0x1.c5bf891b4ef6bp-1, a * fma64(p, u, -0x1.61b7df023f179p-55)), x);
    }
    if (!(a < 1)) return a == 1 ? copysign64(LFM_INF, x) : LFM_NAN;
    double c = 1 - a; // exact; wanted: erfc y = c
    double s = __builtin_sqrt(-clc_log_f64(c));
    double y = -0x1.69ef5819f8affp-23;
    y = fma64(y, s, 0x1.e1c7760f4a6dfp-18);
    y = fma64(y, s, -0x1.204cba060e6cfp-13);
    y = fma64(y, s, 0x1.9a027673d2d4ap-10);
    y = fma64(y, s, -0x1.81b9e6acf615bp-7);
    y = fma64(y, s, 0x1.f9b195180b21cp-5);
    y = fma64(y, s, -0x1.d9963ea6c57fcp-3);
    y = fma64(y, s, 0x1.3eef642684103p-1);
    y = fma64(y, s, -0x1.31464b74f39f8p+0);
    y = fma64(y, s, 0x1.8d9464ffa4f65p+0);
    y = fma64(y, s, -0x1.7b3629ead8eb3p-3);
    y = fma64(y, s, 0x1.2a935d864c59p-6);
    double slope = 0x1.c5bf891b4ef6bp-1 * lfm_exp_f64(y * y); // dx/dy inverted
    double step = (lfm_erfc_f64(y) - c) * slope;
    y += step / fma64(-y, step, 1);
    return copysign64(y, x);
}

float lfm_erfinv_f32(float x) { return (float)lfm_erfinv_f64(x); }
