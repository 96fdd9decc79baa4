// The C type of each dtype, and macros that write one case of a switch a dtype.
//
// Spans are arrays of elements as they lie in memory: bool a byte of 0 or 1, f16 and bf16 their bits, complex {re, im}.
#ifndef LF_INTERP_TYPES_H
#define LF_INTERP_TYPES_H
#include "ir/dtype.h"
#include "math/math.h"
#include <math.h>
#include <string.h>

typedef struct lf_c64 {
    float re, im;
} lf_c64;
typedef struct lf_c128 {
    double re, im;
} lf_c128;

// M(ID, C type, ...)
#define LF_EACH_SIGNED(M, ...)                                                                                              \
    M(I8, int8_t, __VA_ARGS__) M(I16, int16_t, __VA_ARGS__) M(I32, int32_t, __VA_ARGS__) M(I64, int64_t, __VA_ARGS__)
#define LF_EACH_UNSIGNED(M, ...)                                                                                            \
    M(U8, uint8_t, __VA_ARGS__) M(U16, uint16_t, __VA_ARGS__) M(U32, uint32_t, __VA_ARGS__) M(U64, uint64_t, __VA_ARGS__)
#define LF_EACH_INT(M, ...) LF_EACH_SIGNED(M, __VA_ARGS__) LF_EACH_UNSIGNED(M, __VA_ARGS__)
#define LF_EACH_BOOL(M, ...) M(BOOL, uint8_t, __VA_ARGS__)
#define LF_EACH_REAL(M, ...) M(F32, float, __VA_ARGS__) M(F64, double, __VA_ARGS__)
#define LF_EACH_COMPLEX(M, ...) M(C64, lf_c64, __VA_ARGS__) M(C128, lf_c128, __VA_ARGS__)

// A function of <math.h>, or of lib/math, in the type of its first argument.
#define LF_FN(name, ...) _Generic(LF_FIRST(__VA_ARGS__, 0), float: name##f, double: name)(__VA_ARGS__)
#define LF_MATH(name, ...) _Generic(LF_FIRST(__VA_ARGS__, 0), float: lfm_##name##_f32, double: lfm_##name##_f64)(__VA_ARGS__)
#define LF_CMATH(name, re, ...) _Generic((re), float: lfm_c##name##_f32, double: lfm_c##name##_f64)(re, __VA_ARGS__)
#define LF_FIRST(x, ...) (x)

static inline lf_c64 lf_c64_mul(lf_c64 a, lf_c64 b) {
    return (lf_c64){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static inline lf_c64 lf_c64_add(lf_c64 a, lf_c64 b) { return (lf_c64){a.re + b.re, a.im + b.im}; }
static inline lf_c64 lf_c64_sub(lf_c64 a, lf_c64 b) { return (lf_c64){a.re - b.re, a.im - b.im}; }
static inline lf_c128 lf_c128_mul(lf_c128 a, lf_c128 b) {
    return (lf_c128){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static inline lf_c128 lf_c128_add(lf_c128 a, lf_c128 b) { return (lf_c128){a.re + b.re, a.im + b.im}; }
static inline lf_c128 lf_c128_sub(lf_c128 a, lf_c128 b) { return (lf_c128){a.re - b.re, a.im - b.im}; }
#define LF_C(name, a, b) _Generic((a), lf_c64: lf_c64_##name, lf_c128: lf_c128_##name)(a, b)

// max and min: NaN if either is, -0 < +0. In C, and for every real type.
#define LF_MAX_OF(x, y) ((x) != (x) ? (x) : (y) != (y) ? (y) : (x) > (y) || ((x) == (y) && !LF_NEGATIVE(x)) ? (x) : (y))
#define LF_MIN_OF(x, y) ((x) != (x) ? (x) : (y) != (y) ? (y) : (x) < (y) || ((x) == (y) && LF_NEGATIVE(x)) ? (x) : (y))
#define LF_NEGATIVE(x) (signbit((double)(x)) != 0)

// a·b + c rounded to odd in double: a further rounding to a type of at most 51 bits then rounds the exact value once.
double lf_fma_odd(double a, double b, double c);
#endif
