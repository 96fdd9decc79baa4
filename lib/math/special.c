// First version of the special functions (to be replaced by files of their own).
#include "internal.h"
#include "libclc.h"

double lfm_erfc_f64(double x) { return clc_erfc_f64(x); }
float lfm_erfc_f32(float x) { return (float)clc_erfc_f64(x); }
double lfm_lgamma_f64(double x) { return clc_lgamma_f64(x); }
float lfm_lgamma_f32(float x) { return (float)clc_lgamma_f64(x); }
double lfm_tgamma_f64(double x) { return clc_tgamma_f64(x); }
float lfm_tgamma_f32(float x) { return (float)clc_tgamma_f64(x); }

double lfm_digamma_f64(double x) {
    double s = 0;
    if (x <= 0) return LFM_NAN;
    for (int i = 0; i < 10; i++, x += 1) s -= 1 / x;
    double r = 1 / x, w = r * r;
    return s + clc_log_f64(x) - r / 2 - w * (1.0 / 12 - w * (1.0 / 120 - w / 252));
}
float lfm_digamma_f32(float x) { return (float)lfm_digamma_f64(x); }

double lfm_erfinv_f64(double x) {
    if (!(abs64(x) < 1)) return abs64(x) == 1 ? x * LFM_INF : LFM_NAN;
    double w = -clc_log_f64((1 - x) * (1 + x)), a = 4.33 + w / 2;
    double y = copysign64(__builtin_sqrt(__builtin_sqrt(a * a + w / 0.147) - a + w), x);
    for (int i = 0; i < 4; i++) y -= (clc_erf_f64(y) - x) * 0.886226925452758 * clc_exp_f64(y * y);
    return y;
}
float lfm_erfinv_f32(float x) { return (float)lfm_erfinv_f64(x); }

double lfm_sigmoid_f64(double x) { return 1 / (1 + clc_exp_f64(-x)); }
