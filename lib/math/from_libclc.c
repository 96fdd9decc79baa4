// Functions that libclc computes within our limits, each with the mend that its measured holes need. Those that
// libclc gets wrong beyond a mend have a file of their own.
#include "internal.h"
#include "libclc.h"

#define PLAIN(name, type, suffix)                                                                                           \
    type lfm_##name##_##suffix(type x) { return clc_##name##_##suffix(x); }
// libclc's f64 version loses the sign of zero.
#define ODD(name)                                                                                                           \
    double lfm_##name##_f64(double x) { return x == 0 ? x : clc_##name##_f64(x); }
PLAIN(acos, double, f64)
PLAIN(acosh, double, f64)
PLAIN(asinh, double, f64)
PLAIN(atanh, double, f64)
PLAIN(cbrt, double, f64)
PLAIN(log, double, f64)
PLAIN(log10, double, f64)
PLAIN(log1p, double, f64)
PLAIN(log2, double, f64)
ODD(asin)
ODD(atan)

PLAIN(acos, float, f32)
PLAIN(acosh, float, f32)
PLAIN(asin, float, f32)
PLAIN(asinh, float, f32)
PLAIN(atan, float, f32)
PLAIN(atanh, float, f32)
PLAIN(cbrt, float, f32)

float lfm_rsqrt_f32(float x) { return 1.0f / __builtin_sqrtf(x); }
double lfm_rsqrt_f64(double x) { return 1.0 / __builtin_sqrt(x); }

float lfm_hypot_f32(float x, float y) { return clc_hypot_f32(x, y); }
double lfm_hypot_f64(double x, double y) { return clc_hypot_f64(x, y); }

float lfm_atan2_f32(float y, float x) { return (float)clc_atan2_f64(y, x); }
double lfm_atan2_f64(double y, double x) { return clc_atan2_f64(y, x); }

float lfm_pow_f32(float x, float y) { return clc_pow_f32(x, y); }
// libclc clamps only the head of y·ln x. Any |y| > 2^65 over- or underflows whatever x is (|ln x| is 0 or at least
// 2^-53), and stays an even integer at the clamp.
double lfm_pow_f64(double x, double y) {
    double limited = y > 0x1p70 ? 0x1p70 : y < -0x1p70 ? -0x1p70 : y;
    return clc_pow_f64(x, limited);
}
