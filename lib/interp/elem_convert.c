// Families cast, bitcast, predicate, complex_part, select: what looks at or moves a value without arithmetic.
#include "interp/internal.h"

// ---- Conversions ----------------------------------------------------------------------------------------------------
// Every element is first widened without loss (to i64, u64 or f64) and then narrowed, so each conversion rounds once.

enum { PIECE = 256 };
typedef enum lf_wide_kind { WIDE_I64, WIDE_U64, WIDE_F64 } lf_wide_kind;
typedef union lf_wide {
    int64_t i[PIECE];
    uint64_t u[PIECE];
    double f[PIECE];
} lf_wide;

#define WIDEN(ID, T, member, KIND)                                                                                          \
    case LF_##ID: {                                                                                                         \
        const T *x = src;                                                                                                   \
        for (size_t i = 0; i < n; i++) w->member[i] = x[i];                                                                 \
        return KIND;                                                                                                        \
    }
#define WIDEN_HALF(ID, convert)                                                                                             \
    case LF_##ID: {                                                                                                         \
        const uint16_t *x = src;                                                                                            \
        for (size_t i = 0; i < n; i++) w->f[i] = convert(x[i]);                                                             \
        return WIDE_F64;                                                                                                    \
    }

static lf_wide_kind widen(lf_dtype from, const void *src, size_t n, lf_wide *w) {
    switch (from) {
        LF_EACH_BOOL(WIDEN, u, WIDE_U64)
        LF_EACH_SIGNED(WIDEN, i, WIDE_I64)
        LF_EACH_UNSIGNED(WIDEN, u, WIDE_U64)
        LF_EACH_REAL(WIDEN, f, WIDE_F64)
        WIDEN_HALF(F16, lfm_f16_to_f32)
        WIDEN_HALF(BF16, lfm_bf16_to_f32)
    default: return WIDE_U64;
    }
}

#define NARROW(ID, T, expression)                                                                                           \
    case LF_##ID: {                                                                                                         \
        T *y = dst;                                                                                                         \
        for (size_t i = 0; i < n; i++) y[i] = (T)(expression);                                                              \
        return;                                                                                                             \
    }

static void narrow_i64(const int64_t *x, lf_dtype to, void *dst, size_t n) {
    switch (to) {
        LF_EACH_BOOL(NARROW, x[i] != 0)
        LF_EACH_INT(NARROW, x[i])
        LF_EACH_REAL(NARROW, x[i])
        NARROW(F16, uint16_t, lfm_i64_to_f16(x[i]))
        NARROW(BF16, uint16_t, lfm_i64_to_bf16(x[i]))
    default: return;
    }
}

static void narrow_u64(const uint64_t *x, lf_dtype to, void *dst, size_t n) {
    switch (to) {
        LF_EACH_BOOL(NARROW, x[i] != 0)
        LF_EACH_INT(NARROW, x[i])
        LF_EACH_REAL(NARROW, x[i])
        NARROW(F16, uint16_t, lfm_u64_to_f16(x[i]))
        NARROW(BF16, uint16_t, lfm_u64_to_bf16(x[i]))
    default: return;
    }
}

// Truncates; saturates; NaN gives 0. The greatest i64 and u64 round up to 2^63 and 2^64, which do not fit: so >=.
#define SATURATE(ID, T, least, greatest)                                                                                    \
    NARROW(ID, T,                                                                                                           \
           x[i] != x[i]                 ? 0                                                                                 \
           : x[i] <= (double)(least)    ? (T)(least)                                                                        \
           : x[i] >= (double)(greatest) ? (T)(greatest)                                                                     \
                                        : (T)x[i])

static void narrow_f64(const double *x, lf_dtype to, void *dst, size_t n) {
    switch (to) {
        LF_EACH_BOOL(NARROW, x[i] != 0)
        SATURATE(I8, int8_t, INT8_MIN, INT8_MAX)
        SATURATE(I16, int16_t, INT16_MIN, INT16_MAX)
        SATURATE(I32, int32_t, INT32_MIN, INT32_MAX)
        SATURATE(I64, int64_t, INT64_MIN, INT64_MAX)
        SATURATE(U8, uint8_t, 0, UINT8_MAX)
        SATURATE(U16, uint16_t, 0, UINT16_MAX)
        SATURATE(U32, uint32_t, 0, UINT32_MAX)
        SATURATE(U64, uint64_t, 0, UINT64_MAX)
        LF_EACH_REAL(NARROW, x[i])
        NARROW(F16, uint16_t, lfm_f64_to_f16(x[i]))
        NARROW(BF16, uint16_t, lfm_f64_to_bf16(x[i]))
    default: return;
    }
}

static void convert_real(lf_dtype from, const void *src, lf_dtype to, void *dst, size_t n) {
    lf_wide w;
    const char *in = src;
    char *out = dst;
    for (size_t done = 0; done < n; done += PIECE) {
        size_t k = n - done < PIECE ? n - done : PIECE;
        lf_wide_kind kind = widen(from, in + done * lf_dtype_bytes(from), k, &w);
        void *to_here = out + done * lf_dtype_bytes(to);
        if (kind == WIDE_I64)
            narrow_i64(w.i, to, to_here, k);
        else if (kind == WIDE_U64)
            narrow_u64(w.u, to, to_here, k);
        else
            narrow_f64(w.f, to, to_here, k);
    }
}

// The real parts, the imaginary parts being dropped; of a conversion to bool they decide, too.
static void convert_from_complex(lf_dtype from, const char *src, lf_dtype to, char *dst, size_t n) {
    lf_dtype part = lf_dtype_part(from);
    unsigned step = lf_dtype_bytes(from), half = step / 2, to_bytes = lf_dtype_bytes(to);
    for (size_t i = 0; i < n; i++) {
        convert_real(part, src + i * step, to, dst + i * to_bytes, 1);
        if (to != LF_BOOL) continue;
        uint8_t im;
        convert_real(part, src + i * step + half, LF_BOOL, &im, 1);
        dst[i] = (char)(dst[i] | (char)im);
    }
}

void lf_widen_halves(lf_dtype d, const void *src, float *dst, size_t n) {
    const uint16_t *h = src;
    if (d == LF_F16)
        for (size_t i = 0; i < n; i++) dst[i] = lfm_f16_to_f32(h[i]);
    else
        for (size_t i = 0; i < n; i++) dst[i] = lfm_bf16_to_f32(h[i]);
}

void lf_round_halves(lf_dtype d, const float *src, void *dst, size_t n) {
    uint16_t *h = dst;
    if (d == LF_F16)
        for (size_t i = 0; i < n; i++) h[i] = lfm_f32_to_f16(src[i]);
    else
        for (size_t i = 0; i < n; i++) h[i] = lfm_f32_to_bf16(src[i]);
}

void lf_convert(lf_dtype from, const void *src, lf_dtype to, void *dst, size_t n) {
    if (n == 0) return; // and there need not be memory
    if (from == to) {
        memcpy(dst, src, n * lf_dtype_bytes(from));
    } else if (lf_is_half(from) && to == LF_F32) { // the same as below, but faster
        lf_widen_halves(from, src, dst, n);
    } else if (from == LF_F32 && lf_is_half(to)) {
        lf_round_halves(to, src, dst, n);
    } else if (lf_is_complex(from) && lf_is_complex(to)) {
        convert_real(lf_dtype_part(from), src, lf_dtype_part(to), dst, 2 * n);
    } else if (lf_is_complex(from)) {
        convert_from_complex(from, src, to, dst, n);
    } else if (lf_is_complex(to)) {
        unsigned step = lf_dtype_bytes(to), from_bytes = lf_dtype_bytes(from);
        memset(dst, 0, n * step);
        for (size_t i = 0; i < n; i++)
            convert_real(from, (const char *)src + i * from_bytes, lf_dtype_part(to), (char *)dst + i * step, 1);
    } else {
        convert_real(from, src, to, dst, n);
    }
}

bool lf_eval_cast(const lf_eval *e) {
    lf_convert(e->in[0], e->src[0], e->out, e->dst, e->n);
    return true;
}

bool lf_eval_bitcast(const lf_eval *e) {
    memcpy(e->dst, e->src[0], e->n * lf_dtype_bytes(e->out));
    uint8_t *y = e->dst;
    for (size_t i = 0; e->out == LF_BOOL && i < e->n; i++) y[i] = y[i] != 0;
    return true;
}

// ---- Predicates -----------------------------------------------------------------------------------------------------

static bool fill_bool(const lf_eval *e, bool value) {
    memset(e->dst, value, e->n);
    return true;
}

#define PREDICATE(ID, T, expression)                                                                                        \
    case LF_##ID: {                                                                                                         \
        const T *a = e->src[0];                                                                                             \
        uint8_t *y = e->dst;                                                                                                \
        for (size_t i = 0; i < e->n; i++) {                                                                                 \
            const T x = a[i];                                                                                               \
            y[i] = (expression);                                                                                            \
        }                                                                                                                   \
        return true;                                                                                                        \
    }
#define REAL_PREDICATE(name, real, complex)                                                                                 \
    static bool eval_##name(const lf_eval *e) {                                                                             \
        switch (e->in[0]) {                                                                                                 \
            LF_EACH_REAL(PREDICATE, real)                                                                                   \
            LF_EACH_COMPLEX(PREDICATE, complex)                                                                             \
        default: return false;                                                                                              \
        }                                                                                                                   \
    }
#define INFINITE(x) ((x) == (double)INFINITY || (x) == -(double)INFINITY)
#define FINITE(x) ((x) - (x) == 0)

REAL_PREDICATE(isnan, x != x, x.re != x.re || x.im != x.im)
REAL_PREDICATE(isinf, INFINITE(x), INFINITE(x.re) || INFINITE(x.im))
REAL_PREDICATE(isfinite, FINITE(x), FINITE(x.re) && FINITE(x.im))
REAL_PREDICATE(isposinf, x == (double)INFINITY, x.re == (double)INFINITY)
REAL_PREDICATE(isneginf, x == -(double)INFINITY, x.re == -(double)INFINITY)

static bool eval_signbit(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_SIGNED(PREDICATE, x < 0)
        LF_EACH_REAL(PREDICATE, x == x && LF_NEGATIVE(x))
    default: return false;
    }
}

bool lf_eval_predicate(const lf_eval *e) {
    bool exact = e->in[0] == LF_BOOL || lf_is_integer(e->in[0]);
    if (e->code == LF_OP_SIGNBIT) return lf_is_signed(e->in[0]) || !exact ? eval_signbit(e) : fill_bool(e, false);
    if (exact) return fill_bool(e, e->code == LF_OP_ISFINITE);
    switch (e->code) {
    case LF_OP_ISNAN: return eval_isnan(e);
    case LF_OP_ISINF: return eval_isinf(e);
    case LF_OP_ISFINITE: return eval_isfinite(e);
    case LF_OP_ISPOSINF: return eval_isposinf(e);
    case LF_OP_ISNEGINF: return eval_isneginf(e);
    default: return false;
    }
}

// ---- Parts of complex numbers; real dtypes count as complex numbers with imaginary part 0 ---------------------------

#define PART(ID, T, R, expression)                                                                                          \
    case LF_##ID: {                                                                                                         \
        const T *a = e->src[0];                                                                                             \
        R *y = e->dst;                                                                                                      \
        for (size_t i = 0; i < e->n; i++) {                                                                                 \
            const T x = a[i];                                                                                               \
            y[i] = expression;                                                                                              \
        }                                                                                                                   \
        return true;                                                                                                        \
    }

// The angle of a real number is 0 or π, also for -0; NaN stays.
static bool eval_angle(const lf_eval *given) {
    lf_eval converted = *given;
    const lf_eval *e = &converted;
    double numbers[LF_BLOCK];
    if ((given->in[0] == LF_BOOL || lf_is_integer(given->in[0])) && lf_is_float(given->out)) {
        lf_convert(given->in[0], given->src[0], given->out, numbers, given->n);
        converted.src[0] = numbers;
        converted.in[0] = given->out;
    }
    switch (e->in[0]) {
        PART(F32, float, float, x != x ? x : x < 0 ? 3.14159265358979323846f : 0.0f)
        PART(F64, double, double, x != x ? x : x < 0 ? 3.14159265358979323846 : 0.0)
        PART(C64, lf_c64, float, lfm_atan2_f32(x.im, x.re))
        PART(C128, lf_c128, double, lfm_atan2_f64(x.im, x.re))
    default: return false;
    }
}

static bool eval_part(const lf_eval *e) {
    bool im = e->code == LF_OP_IMAG;
    switch (e->in[0]) {
        PART(C64, lf_c64, float, im ? x.im : x.re)
        PART(C128, lf_c128, double, im ? x.im : x.re)
    default: break;
    }
    if (im)
        memset(e->dst, 0, e->n * lf_dtype_bytes(e->out));
    else
        memcpy(e->dst, e->src[0], e->n * lf_dtype_bytes(e->out));
    return true;
}

static bool eval_conj(const lf_eval *e) {
    switch (e->in[0]) {
        PART(C64, lf_c64, lf_c64, ((lf_c64){x.re, -x.im}))
        PART(C128, lf_c128, lf_c128, ((lf_c128){x.re, -x.im}))
    default: memcpy(e->dst, e->src[0], e->n * lf_dtype_bytes(e->out)); return true;
    }
}

#define JOIN(ID, T, R)                                                                                                      \
    case LF_##ID: {                                                                                                         \
        const T *a = e->src[0], *b = e->src[1];                                                                             \
        R *y = e->dst;                                                                                                      \
        for (size_t i = 0; i < e->n; i++) y[i] = (R){a[i], b[i]};                                                           \
        return true;                                                                                                        \
    }

bool lf_eval_complex_part(const lf_eval *e) {
    switch (e->code) {
    case LF_OP_REAL:
    case LF_OP_IMAG: return eval_part(e);
    case LF_OP_CONJ: return eval_conj(e);
    case LF_OP_ANGLE: return eval_angle(e);
    case LF_OP_COMPLEX:
        switch (e->in[0]) {
            JOIN(F32, float, lf_c64)
            JOIN(F64, double, lf_c128)
        default: return false;
        }
    default: return false;
    }
}

bool lf_eval_select(const lf_eval *e) {
    const uint8_t *c = e->src[0];
    const char *a = e->src[1], *b = e->src[2];
    unsigned bytes = lf_dtype_bytes(e->out);
    char *y = e->dst;
    if (e->in[0] != LF_BOOL || e->in[1] != e->in[2]) return false;
    for (size_t i = 0; i < e->n; i++) memcpy(y + i * bytes, (c[i] ? a : b) + i * bytes, bytes);
    return true;
}
