// Families sqrt, math, reciprocal, activation, pow, division, gcd, ldexp: functions. All transcendentals are those of lib/math,
// which the compiled code uses too, so that the bits agree.
#include "interp/internal.h"
#include "interp/loops.h"

// ---- Functions by name ----------------------------------------------------------------------------------------------

typedef struct lf_function {
    const char *name;
    float (*unary_f32)(float);
    double (*unary_f64)(double);
    float (*binary_f32)(float, float);
    double (*binary_f64)(double, double);
    void (*complex_f32)(float, float, float *, float *);
    void (*complex_f64)(double, double, double *, double *);
} lf_function;

// The op `name` of family math is lfm_<name>, of complex numbers lfm_c<name>.
static const lf_function functions[] = {
#define LFM_UNARY(name_) {.name = #name_, .unary_f32 = lfm_##name_##_f32, .unary_f64 = lfm_##name_##_f64},
#define LFM_BINARY(name_) {.name = #name_, .binary_f32 = lfm_##name_##_f32, .binary_f64 = lfm_##name_##_f64},
#define LFM_CUNARY(name_) {.name = #name_, .complex_f32 = lfm_c##name_##_f32, .complex_f64 = lfm_c##name_##_f64},
#include "math/functions.def"
};

static const lf_function *find_function(lf_opcode code, bool complex) {
    const char *name = lf_op_info_of(code)->name;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!functions[i].complex_f32 == !complex && !strcmp(functions[i].name, name)) return &functions[i];
    return NULL;
}

#define COMPLEX_FUNCTION(ID, T, function)                                                                                   \
    case LF_##ID: {                                                                                                         \
        const T *a = e->src[0];                                                                                             \
        T *r = e->dst;                                                                                                      \
        for (size_t i = 0; i < e->n; i++) (function)(a[i].re, a[i].im, &r[i].re, &r[i].im);                                 \
        return true;                                                                                                        \
    }

// The form for halves of an op, where there is one; operands and result are f32 here.
static bool eval_half_form(const lf_eval *e) {
    static const struct {
        const char *name;
        float (*f)(float);
    } forms[] = {
#define LFM_HALF(name_) {#name_, lfm_##name_##_half},
#include "math/functions.def"
    };
    const char *name = e->code == LF_OP_GELU && e->flag ? "gelu_tanh" : lf_op_info_of(e->code)->name;
    const float *x = e->src[0];
    float *r = e->dst;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        if (strcmp(forms[k].name, name)) continue;
        for (size_t i = 0; i < e->n; i++) r[i] = forms[k].f(x[i]);
        return true;
    }
    return false;
}

static bool eval_function(const lf_eval *e, const lf_function *f) {
    if (!f) return false;
    if (e->half && eval_half_form(e)) return true;
    switch (e->in[0]) {
    case LF_F32:
        if (f->binary_f32) LF_LOOP(float, float, LF_READ2, f->binary_f32(x, y))
        LF_LOOP(float, float, LF_READ1, f->unary_f32(x))
    case LF_F64:
        if (f->binary_f64) LF_LOOP(double, double, LF_READ2, f->binary_f64(x, y))
        LF_LOOP(double, double, LF_READ1, f->unary_f64(x))
        COMPLEX_FUNCTION(C64, lf_c64, f->complex_f32)
        COMPLEX_FUNCTION(C128, lf_c128, f->complex_f64)
        LF_NO_CASE
    }
}

bool lf_eval_math(const lf_eval *e) { return eval_function(e, find_function(e->code, lf_is_complex(e->in[0]))); }

bool lf_eval_sqrt(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_REAL(LF_CASE1, LF_FN(sqrt, x))
        COMPLEX_FUNCTION(C64, lf_c64, lfm_csqrt_f32)
        COMPLEX_FUNCTION(C128, lf_c128, lfm_csqrt_f64)
        LF_NO_CASE
    }
}

bool lf_eval_reciprocal(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_REAL(LF_CASE1, 1 / x)
        COMPLEX_FUNCTION(C64, lf_c64, lfm_creciprocal_f32)
        COMPLEX_FUNCTION(C128, lf_c128, lfm_creciprocal_f64)
        LF_NO_CASE
    }
}

// ---- Activations: their formulas step by step, each step rounded to the type ----------------------------------------

#define ACTIVATION(name, formula)                                                                                           \
    static bool eval_##name(const lf_eval *e) {                                                                             \
        switch (e->in[0]) {                                                                                                 \
            LF_EACH_REAL(LF_CASE1, formula)                                                                                 \
            LF_NO_CASE                                                                                                      \
        }                                                                                                                   \
    }
// A constant of the formula, rounded once to the type of x.
#define CONSTANT(x, digits) _Generic((x), float: digits##f, double: digits)
#define ROOT_HALF(x) CONSTANT(x, 0.70710678118654752440084436210485)
#define TWO_ROOT_2_BY_PI(x) CONSTANT(x, 1.5957691216057307117597842397375)
// Fused operands: fma(0.044715·(x·x), x, x).
#define GELU_INNER(x) LF_FN(fma, CONSTANT(x, 0.044715) * ((x) * (x)), x, x)

ACTIVATION(silu, x *LF_MATH(sigmoid, x))
ACTIVATION(gelu, (CONSTANT(x, 0.5) * x) * LF_MATH(erfc, -x *ROOT_HALF(x)))
ACTIVATION(gelu_tanh, x *LF_MATH(sigmoid, TWO_ROOT_2_BY_PI(x) * GELU_INNER(x)))
ACTIVATION(softplus, x > 20 ? x : LF_MATH(log1p, LF_MATH(exp, x)))

bool lf_eval_activation(const lf_eval *e) {
    float k32 = (float)e->number;
    double k64 = e->number;
    if (e->half && eval_half_form(e)) return true;
    switch (e->code) {
    case LF_OP_SILU: return eval_silu(e);
    case LF_OP_GELU: return e->flag ? eval_gelu_tanh(e) : eval_gelu(e);
    case LF_OP_SOFTPLUS: return eval_softplus(e);
    case LF_OP_LEAKY_RELU:
        switch (e->in[0]) {
            LF_CASE1(F32, float, x > 0 ? x : k32 * x)
            LF_CASE1(F64, double, x > 0 ? x : k64 * x)
            LF_NO_CASE
        }
    case LF_OP_ELU:
        switch (e->in[0]) {
            LF_CASE1(F32, float, x > 0 ? x : k32 * lfm_expm1_f32(x))
            LF_CASE1(F64, double, x > 0 ? x : k64 * lfm_expm1_f64(x))
            LF_NO_CASE
        }
    default: return false;
    }
}

// ---- Division with a remainder --------------------------------------------------------------------------------------

// Integers. By zero: the quotient is all ones, the remainder the dividend. MIN / -1 gives MIN, its remainder 0: the remainder of
// a division by -1 is 0 anyway, and the quotient is the negation, which wraps.
#define TRUNC_SIGNED(x, y) ((y) == 0 ? U(-1) : (y) == -1 ? 0 - U(x) : U((x) / (y)))
#define REM_SIGNED(x, y) ((y) == 0 ? (x) : (y) == -1 ? 0 : (x) % (y))
#define SIGNS_DIFFER(x, y) (((x) < 0) != ((y) < 0))
#define FLOOR_SIGNED(x, y) (TRUNC_SIGNED(x, y) - ((y) != 0 && REM_SIGNED(x, y) != 0 && SIGNS_DIFFER(x, y)))
#define CEIL_SIGNED(x, y) (TRUNC_SIGNED(x, y) + ((y) != 0 && REM_SIGNED(x, y) != 0 && !SIGNS_DIFFER(x, y)))
#define MOD_SIGNED(x, y)                                                                                                    \
    ((y) != 0 && REM_SIGNED(x, y) != 0 && SIGNS_DIFFER(x, y) ? U(REM_SIGNED(x, y)) + U(y) : U(REM_SIGNED(x, y)))
#define TRUNC_UNSIGNED(x, y) ((y) == 0 ? U(-1) : U((x) / (y)))
#define REM_UNSIGNED(x, y) ((y) == 0 ? (x) : (x) % (y))
#define CEIL_UNSIGNED(x, y) (TRUNC_UNSIGNED(x, y) + ((y) != 0 && REM_UNSIGNED(x, y) != 0))

typedef enum lf_way { DOWN, TOWARD_ZERO, UP } lf_way;

// Floats: m = fmod(a, b), q = (a - m) / b, adjusted by 1 where the signs ask for it, rounded to the nearest integer (even on a
// tie). A zero takes the sign of the quotient; b = 0 gives a / b.
#define DEFINE_QUOTIENT(T, suffix)                                                                                          \
    static T quotient_##suffix(T a, T b, lf_way way) {                                                                      \
        if (b == 0) return a / b;                                                                                           \
        T m = lfm_fmod_##suffix(a, b), q = (a - m) / b;                                                                     \
        bool same = (m < 0) == (b < 0);                                                                                     \
        if (m != 0 && way == DOWN && !same) q -= 1;                                                                         \
        if (m != 0 && way == UP && same) q += 1;                                                                            \
        q = LF_FN(rint, q);                                                                                                 \
        return q == 0 ? LF_FN(copysign, (T)0, LF_FN(copysign, (T)1, a) * LF_FN(copysign, (T)1, b)) : q;                     \
    }                                                                                                                       \
    static T mod_##suffix(T a, T b) {                                                                                       \
        T m = lfm_fmod_##suffix(a, b);                                                                                      \
        if (m == 0) return LF_FN(copysign, (T)0, b);                                                                        \
        return (m < 0) != (b < 0) ? m + b : m;                                                                              \
    }
DEFINE_QUOTIENT(float, f32)
DEFINE_QUOTIENT(double, f64)

#define DIVISION(name, for_signed, for_unsigned, real)                                                                      \
    static bool eval_##name(const lf_eval *e) {                                                                             \
        switch (e->in[0]) {                                                                                                 \
            LF_EACH_SIGNED(LF_CASE2, for_signed)                                                                            \
            LF_EACH_UNSIGNED(LF_CASE2, for_unsigned)                                                                        \
            LF_EACH_REAL(LF_CASE2, real)                                                                                    \
            LF_NO_CASE                                                                                                      \
        }                                                                                                                   \
    }
#define QUOTIENT(way) _Generic(x, float: quotient_f32, default: quotient_f64)(x, y, way)
#define MODULO _Generic(x, float: mod_f32, default: mod_f64)(x, y)
DIVISION(floordiv, FLOOR_SIGNED(x, y), TRUNC_UNSIGNED(x, y), QUOTIENT(DOWN))
DIVISION(truncdiv, TRUNC_SIGNED(x, y), TRUNC_UNSIGNED(x, y), QUOTIENT(TOWARD_ZERO))
DIVISION(ceildiv, CEIL_SIGNED(x, y), CEIL_UNSIGNED(x, y), QUOTIENT(UP))
DIVISION(mod, MOD_SIGNED(x, y), REM_UNSIGNED(x, y), MODULO)
DIVISION(fmod, REM_SIGNED(x, y), REM_UNSIGNED(x, y), LF_MATH(fmod, x, y))

bool lf_eval_division(const lf_eval *e) {
    switch (e->code) {
    case LF_OP_FLOORDIV: return eval_floordiv(e);
    case LF_OP_TRUNCDIV: return eval_truncdiv(e);
    case LF_OP_CEILDIV: return eval_ceildiv(e);
    case LF_OP_MOD: return eval_mod(e);
    case LF_OP_FMOD: return eval_fmod(e);
    default: return false;
    }
}

// ---- pow, gcd, ldexp ------------------------------------------------------------------------------------------------

// Exact modulo 2^64, and so modulo every narrower width.
static uint64_t power(uint64_t base, uint64_t exponent) {
    uint64_t r = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) r *= base;
    return r;
}

static uint64_t power_signed(int64_t base, int64_t exponent) {
    if (exponent >= 0) return power(U(base), U(exponent));
    return base == 1 ? 1 : base == -1 ? (exponent & 1 ? U(-1) : 1) : 0;
}

#define POW_COMPLEX(ID, T, ...)                                                                                             \
    case LF_##ID: {                                                                                                         \
        const T *x = e->src[0], *y = e->src[1];                                                                             \
        T *r = e->dst;                                                                                                      \
        for (size_t i = 0; i < e->n; i++) LF_CMATH(pow, x[i].re, x[i].im, y[i].re, y[i].im, &r[i].re, &r[i].im);            \
        return true;                                                                                                        \
    }

bool lf_eval_pow(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_SIGNED(LF_CASE2, power_signed(x, y))
        LF_EACH_UNSIGNED(LF_CASE2, power(x, y))
        LF_EACH_REAL(LF_CASE2, LF_MATH(pow, x, y))
        LF_EACH_COMPLEX(POW_COMPLEX, )
        LF_NO_CASE
    }
}

static uint64_t gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

bool lf_eval_gcd(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_SIGNED(LF_CASE2, gcd(x < 0 ? 0 - U(x) : U(x), y < 0 ? 0 - U(y) : U(y)))
        LF_EACH_UNSIGNED(LF_CASE2, gcd(x, y))
        LF_NO_CASE
    }
}

// x·2^n for a float n, in double and rounded once at the end: n is split into its nearest integer k and the rest, and the power
// of the rest is one function value (1 when n is an integer, so the result is then exact). 2^±inf is infinite or 0.
static double ldexp_float(double x, double n) {
    if (n - n != 0 && n == n) return x * (n > 0 ? n : 0);
    double whole = rint(n);
    int64_t k;
    lf_convert(LF_F64, &whole, LF_I64, &k, 1);
    return lfm_ldexp_f64(x * lfm_exp2_f64(n - whole), k);
}

static bool ldexp_floats(const lf_eval *e) {
    double x[LF_BLOCK], n[LF_BLOCK];
    if (!lf_is_float(e->in[0]) || !lf_is_float(e->in[1])) return false;
    lf_convert(e->in[0], e->src[0], LF_F64, x, e->n);
    lf_convert(e->in[1], e->src[1], LF_F64, n, e->n);
    for (size_t i = 0; i < e->n; i++) x[i] = ldexp_float(x[i], n[i]);
    lf_convert(LF_F64, x, e->out, e->dst, e->n);
    return true;
}

#define LDEXP(ID, T, suffix)                                                                                                \
    case LF_##ID: LF_LOOP(T, T, LF_READ1, lfm_ldexp_##suffix(x, n[i]))

// The exponent has a dtype of its own and counts at its own value. Halves with an integer exponent go through f32, where the
// result is exact unless it rounds to 0 or infinity anyway.
bool lf_eval_ldexp(const lf_eval *e) {
    int64_t n[LF_BLOCK];
    if (!lf_is_integer(e->in[1]) && e->in[1] != LF_BOOL) return ldexp_floats(e);
    lf_convert(e->in[1], e->src[1], LF_I64, n, e->n);
    if (e->in[1] == LF_U64) // beyond i64 it makes no difference how far
        for (size_t i = 0; i < e->n; i++) n[i] = n[i] < 0 ? INT64_MAX : n[i];
    switch (e->in[0]) {
        LDEXP(F32, float, f32)
        LDEXP(F64, double, f64)
        LF_NO_CASE
    }
}
