// Families arith, neg, abs, sign, rounding, relu, minmax, clamp, threshold, fma, lerp, addcmul: arithmetic.
#include "interp/internal.h"
#include "interp/loops.h"

// ---- add, sub, mul, div ---------------------------------------------------------------------------------------------

static bool eval_add(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_BOOL(LF_CASE2, x | y)
        LF_EACH_INT(LF_CASE2, U(x) + U(y))
        LF_EACH_REAL(LF_CASE2, x + y)
        LF_EACH_COMPLEX(LF_CASE2_STRUCT, LF_C(add, x, y))
        LF_NO_CASE
    }
}

static bool eval_sub(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_INT(LF_CASE2, U(x) - U(y))
        LF_EACH_REAL(LF_CASE2, x - y)
        LF_EACH_COMPLEX(LF_CASE2_STRUCT, LF_C(sub, x, y))
        LF_NO_CASE
    }
}

static bool eval_mul(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_BOOL(LF_CASE2, x & y)
        LF_EACH_INT(LF_CASE2, U(x) * U(y))
        LF_EACH_REAL(LF_CASE2, x * y)
        LF_EACH_COMPLEX(LF_CASE2_STRUCT, LF_C(mul, x, y))
        LF_NO_CASE
    }
}

#define DIV_COMPLEX(ID, T, ...)                                                                                             \
    case LF_##ID: {                                                                                                         \
        const T *x = e->src[0], *y = e->src[1];                                                                             \
        T *r = e->dst;                                                                                                      \
        for (size_t i = 0; i < e->n; i++) LF_CMATH(div, x[i].re, x[i].im, y[i].re, y[i].im, &r[i].re, &r[i].im);            \
        return true;                                                                                                        \
    }

static bool eval_div(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_REAL(LF_CASE2, x / y)
        LF_EACH_COMPLEX(DIV_COMPLEX, )
        LF_NO_CASE
    }
}

bool lf_eval_arith(const lf_eval *e) {
    switch (e->code) {
    case LF_OP_ADD: return eval_add(e);
    case LF_OP_SUB: return eval_sub(e);
    case LF_OP_MUL: return eval_mul(e);
    case LF_OP_DIV: return eval_div(e);
    default: return false;
    }
}

// ---- One operand, dtype kept ----------------------------------------------------------------------------------------

bool lf_eval_neg(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_INT(LF_CASE1, 0 - U(x))
        LF_EACH_REAL(LF_CASE1, -x)
        LF_CASE1_STRUCT(C64, lf_c64, (lf_c64){-x.re, -x.im})
        LF_CASE1_STRUCT(C128, lf_c128, (lf_c128){-x.re, -x.im})
        LF_NO_CASE
    }
}

bool lf_eval_abs(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_SIGNED(LF_CASE1, x < 0 ? 0 - U(x) : U(x))
        LF_EACH_UNSIGNED(LF_CASE1, x)
        LF_EACH_REAL(LF_CASE1, LF_FN(fabs, x))
    case LF_C64: LF_LOOP(lf_c64, float, LF_READ1, lfm_hypot_f32(x.re, x.im))
    case LF_C128: LF_LOOP(lf_c128, double, LF_READ1, lfm_hypot_f64(x.re, x.im)) LF_NO_CASE
    }
}

bool lf_eval_sign(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_BOOL(LF_CASE1, x)
        LF_EACH_SIGNED(LF_CASE1, (x > 0) - (x < 0))
        LF_EACH_UNSIGNED(LF_CASE1, x != 0)
        LF_EACH_REAL(LF_CASE1, x != x ? x : (x > 0) - (x < 0))
        LF_NO_CASE
    }
}

static bool eval_frac(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_REAL(LF_CASE1, x - LF_FN(trunc, x))
        LF_NO_CASE
    }
}

#define ROUNDING(name, function)                                                                                            \
    static bool eval_##name(const lf_eval *e) {                                                                             \
        switch (e->in[0]) {                                                                                                 \
            LF_EACH_REAL(LF_CASE1, LF_FN(function, x))                                                                      \
            LF_NO_CASE                                                                                                      \
        }                                                                                                                   \
    }
ROUNDING(ceil, ceil)
ROUNDING(floor, floor)
ROUNDING(trunc, trunc)
ROUNDING(round, rint) // the rounding mode is to nearest even during a run

bool lf_eval_rounding(const lf_eval *e) {
    if (e->in[0] == LF_BOOL || lf_is_integer(e->in[0])) {
        size_t bytes = e->n * lf_dtype_bytes(e->out);
        if (e->code == LF_OP_FRAC)
            memset(e->dst, 0, bytes);
        else
            memcpy(e->dst, e->src[0], bytes);
        return true;
    }
    switch (e->code) {
    case LF_OP_CEIL: return eval_ceil(e);
    case LF_OP_FLOOR: return eval_floor(e);
    case LF_OP_TRUNC: return eval_trunc(e);
    case LF_OP_ROUND: return eval_round(e);
    case LF_OP_FRAC: return eval_frac(e);
    default: return false;
    }
}

bool lf_eval_relu(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_BOOL(LF_CASE1, x)
        LF_EACH_INT(LF_CASE1, x > 0 ? x : 0)
        LF_EACH_REAL(LF_CASE1, x != x || x > 0 ? x : 0) // relu(-0) is max(-0, 0) = +0
        LF_NO_CASE
    }
}

// ---- min, max -------------------------------------------------------------------------------------------------------

// fmin, fmax: the other one if one is NaN.
#define OTHER_OF(pick, x, y) ((x) != (x) ? (y) : (y) != (y) ? (x) : pick(x, y))

#define MINMAX(name, exact, real)                                                                                           \
    static bool eval_##name(const lf_eval *e) {                                                                             \
        switch (e->in[0]) {                                                                                                 \
            LF_EACH_BOOL(LF_CASE2, exact)                                                                                   \
            LF_EACH_INT(LF_CASE2, exact)                                                                                    \
            LF_EACH_REAL(LF_CASE2, real)                                                                                    \
            LF_NO_CASE                                                                                                      \
        }                                                                                                                   \
    }
MINMAX(min, x < y ? x : y, LF_MIN_OF(x, y))
MINMAX(max, x > y ? x : y, LF_MAX_OF(x, y))
MINMAX(fmin, x < y ? x : y, OTHER_OF(LF_MIN_OF, x, y))
MINMAX(fmax, x > y ? x : y, OTHER_OF(LF_MAX_OF, x, y))

bool lf_eval_minmax(const lf_eval *e) {
    switch (e->code) {
    case LF_OP_MIN: return eval_min(e);
    case LF_OP_MAX: return eval_max(e);
    case LF_OP_FMIN: return eval_fmin(e);
    case LF_OP_FMAX: return eval_fmax(e);
    default: return false;
    }
}

// min(max(x, lo), hi), each only where it is given.
bool lf_eval_clamp(const lf_eval *e) {
    lf_eval low = *e, high = *e;
    if (!e->src[1] && !e->src[2]) {
        memcpy(e->dst, e->src[0], e->n * lf_dtype_bytes(e->out));
        return !lf_is_half(e->in[0]) && !lf_is_complex(e->in[0]);
    }
    if (e->src[1] && !eval_max(&low)) return false;
    if (!e->src[2]) return true;
    if (e->src[1]) high.src[0] = e->dst;
    high.src[1] = e->src[2];
    high.in[1] = e->in[2];
    return eval_min(&high);
}

bool lf_eval_threshold(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_BOOL(LF_CASE3, x <= y ? z : x)
        LF_EACH_INT(LF_CASE3, x <= y ? z : x)
        LF_EACH_REAL(LF_CASE3, x <= y ? z : x)
        LF_NO_CASE
    }
}

// ---- Three and four operands ----------------------------------------------------------------------------------------

// The sum of three doubles that a·b + c is made of (a·b exactly as p + q) decides the direction in which the nearest double
// missed; going there to the odd neighbour is rounding to odd.
double lf_fma_odd(double a, double b, double c) {
    double r = fma(a, b, c);
    if (!isfinite(r)) return r;
    double p = a * b, q = fma(a, b, -p);
    double s = p + c, t = s - p, lost = (p - (s - t)) + (c - t); // p + c = s + lost
    double rest = ((s - r) + lost) + q;
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    if (rest == 0 || (bits & 1)) return r;
    return nextafter(r, rest > 0 ? (double)INFINITY : -(double)INFINITY);
}

static float widen_half(lf_dtype d, uint16_t h) { return d == LF_F16 ? lfm_f16_to_f32(h) : lfm_bf16_to_f32(h); }
static uint16_t round_half(lf_dtype d, double x) { return d == LF_F16 ? lfm_f64_to_f16(x) : lfm_f64_to_bf16(x); }

// Halves are not computed in f32 here: fma rounds exactly once.
static bool fma_half(const lf_eval *e) {
    const uint16_t *x = e->src[0], *y = e->src[1], *z = e->src[2];
    uint16_t *out = e->dst;
    lf_dtype d = e->in[0];
    for (size_t i = 0; i < e->n; i++)
        out[i] = round_half(d, lf_fma_odd(widen_half(d, x[i]), widen_half(d, y[i]), widen_half(d, z[i])));
    return true;
}

bool lf_eval_fma(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_INT(LF_CASE3, U(x) * U(y) + U(z))
        LF_EACH_REAL(LF_CASE3, LF_FN(fma, x, y, z))
    case LF_F16:
    case LF_BF16: return fma_half(e); LF_NO_CASE
    }
}

// Step by step. For integers both branches are the same number.
#define LERP_COMPLEX(ID, T, P)                                                                                              \
    case LF_##ID: {                                                                                                         \
        const T *x = e->src[0], *y = e->src[1], *z = e->src[2];                                                             \
        T *out = e->dst;                                                                                                    \
        for (size_t i = 0; i < e->n; i++) {                                                                                 \
            const T w = z[i], d = LF_C(sub, y[i], x[i]), one = {1, 0};                                                      \
            const P size = w.re * w.re + w.im * w.im;                                                                       \
            out[i] = size < (P)0.25 ? LF_C(add, x[i], LF_C(mul, w, d)) : LF_C(sub, y[i], LF_C(mul, d, LF_C(sub, one, w)));  \
        }                                                                                                                   \
        return true;                                                                                                        \
    }

bool lf_eval_lerp(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_INT(LF_CASE3, U(x) + U(z) * (U(y) - U(x)))
        LF_EACH_REAL(LF_CASE3, (double)z < 0.5 ? x + z * (y - x) : y - (y - x) * (1 - z))
        LERP_COMPLEX(C64, lf_c64, float)
        LERP_COMPLEX(C128, lf_c128, double)
        LF_NO_CASE
    }
}

bool lf_eval_addcmul(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_BOOL(LF_CASE4, x | (v & y & z))
        LF_EACH_INT(LF_CASE4, U(x) + U(v) * U(y) * U(z))
        LF_EACH_REAL(LF_CASE4, x + (v * y) * z)
        LF_EACH_COMPLEX(LF_CASE4_STRUCT, LF_C(add, x, LF_C(mul, LF_C(mul, v, y), z)))
        LF_NO_CASE
    }
}
