// The dtype table, conversions of the 16-bit floats, and conversions of single constants.
// Does not belong here: literals as text (literal.c), arithmetic (fold.c, lib/interp).
#include "ir/scalar.h"
#include <math.h>
#include <string.h>

typedef struct dtype_row {
    const char *name;
    lf_category category;
    unsigned bytes;
    lf_dtype part;
} dtype_row;

static const dtype_row rows[LF_DTYPE_COUNT] = {
    [LF_NO_DTYPE] = {"no dtype", LF_CATEGORY_BOOL, 0, LF_NO_DTYPE},
#define LF_DTYPE(ID, name, category, bytes, part) [LF_##ID] = {#name, LF_CATEGORY_##category, bytes, LF_##part},
#include "ir/dtypes.def"
};

static const dtype_row *row_of(lf_dtype d) { return &rows[(unsigned)d < LF_DTYPE_COUNT ? d : LF_NO_DTYPE]; }

const char *lf_dtype_name(lf_dtype d) { return row_of(d)->name; }
lf_category lf_dtype_category(lf_dtype d) { return row_of(d)->category; }
unsigned lf_dtype_bytes(lf_dtype d) { return row_of(d)->bytes; }
lf_dtype lf_dtype_part(lf_dtype d) { return row_of(d)->part; }
lf_dtype lf_dtype_compute(lf_dtype d) { return lf_is_half(d) ? LF_F32 : d; }

lf_dtype lf_dtype_parse(const char *name, size_t n) {
    for (unsigned d = 1; d < LF_DTYPE_COUNT; d++)
        if (strlen(rows[d].name) == n && !memcmp(rows[d].name, name, n)) return (lf_dtype)d;
    return LF_NO_DTYPE;
}

// ---- 16-bit floats: significand bits (with the hidden one), exponent bias, bits of the exponent field ---------------------

typedef struct half_form {
    int precision, bias, exponent_bits;
    uint16_t nan;
} half_form;

static half_form form_of(lf_dtype d) {
    return d == LF_F16 ? (half_form){11, 15, 5, 0x7e00} : (half_form){8, 127, 8, 0x7fc0};
}

float lf_half_to_f32(lf_dtype d, uint16_t bits) {
    half_form h = form_of(d);
    int fraction_bits = h.precision - 1, field = bits >> fraction_bits & ((1 << h.exponent_bits) - 1);
    uint32_t fraction = bits & ((1u << fraction_bits) - 1);
    double v;
    if (field == (1 << h.exponent_bits) - 1)
        v = fraction ? (double)NAN : (double)INFINITY;
    else if (field == 0)
        v = ldexp(fraction, 1 - h.bias - fraction_bits);
    else
        v = ldexp(fraction | 1u << fraction_bits, field - h.bias - fraction_bits);
    return (float)(bits & 0x8000 ? -v : v);
}

uint16_t lf_f64_to_half(lf_dtype d, double x) {
    half_form h = form_of(d);
    uint64_t bits;
    memcpy(&bits, &x, 8);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000),
             infinity = (uint16_t)(((1u << h.exponent_bits) - 1) << (h.precision - 1));
    int field = (int)(bits >> 52 & 0x7ff);
    uint64_t fraction = bits & 0xfffffffffffffull;
    if (field == 0x7ff) return fraction ? h.nan : sign | infinity;
    if (field == 0) return sign; // zero, or far below the smallest half
    fraction |= 1ull << 52;
    int exponent = field - 1023;
    // Bits to drop: to the precision, and more below the least normal exponent.
    int drop = 53 - h.precision, below = 1 - h.bias - exponent;
    if (below > 0) drop += below;
    if (drop > 54) return sign;
    uint64_t kept = fraction >> drop, rest = fraction & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    if (rest > half || (rest == half && (kept & 1))) kept++;
    // A carry out of the significand moves into the exponent field by itself.
    uint64_t result = kept + (below > 0 ? 0 : (uint64_t)(exponent + h.bias - 1) << (h.precision - 1));
    if (below <= 0 && exponent + h.bias >= (1 << h.exponent_bits) - 1) result = infinity;
    return sign | (uint16_t)(result > infinity ? infinity : result);
}

uint16_t lf_f32_to_half(lf_dtype d, float f) { return lf_f64_to_half(d, (double)f); }

// ---- constants ------------------------------------------------------------------------------------------------------------

double lf_u64_to_odd(uint64_t m) {
    if (m < 1ull << 53) return (double)m;
    int drop = 11 - __builtin_clzll(m);
    uint64_t kept = m >> drop | ((m & ((1ull << drop) - 1)) != 0);
    return ldexp((double)kept, drop);
}

static void store_float(lf_dtype d, double nearest, double odd, lf_scalar *out) {
    if (d == LF_F64)
        out->f64 = nearest;
    else if (d == LF_F32)
        out->f32 = (float)odd;
    else if (d == LF_C64)
        out->c64[0] = (float)odd;
    else if (d == LF_C128)
        out->c128[0] = nearest;
    else
        out->u16 = lf_f64_to_half(d, odd);
}

static void store_integer(lf_dtype d, uint64_t wrapped, lf_scalar *out) {
    unsigned bytes = lf_dtype_bytes(d);
    out->u64 = bytes == 8 ? wrapped : wrapped & ((1ull << 8 * bytes) - 1);
}

void lf_scalar_from_integer(bool negative, uint64_t magnitude, lf_dtype d, lf_scalar *out) {
    *out = (lf_scalar){0};
    if (d == LF_BOOL)
        out->b = magnitude != 0;
    else if (lf_is_integer(d))
        store_integer(d, negative ? 0 - magnitude : magnitude, out);
    else {
        double odd = lf_u64_to_odd(magnitude), nearest = (double)magnitude;
        store_float(d, negative ? -nearest : nearest, negative ? -odd : odd, out);
    }
}

void lf_scalar_from_float(double nearest, double odd, lf_dtype d, lf_scalar *out) {
    *out = (lf_scalar){0};
    if (d == LF_BOOL)
        out->b = odd != 0;
    else if (!lf_is_integer(d))
        store_float(d, nearest, odd, out);
    else if (odd == odd) {
        // Truncate and saturate.
        unsigned bits = 8 * lf_dtype_bytes(d);
        bool is_signed = lf_is_signed(d);
        double top = ldexp(1, (int)(is_signed ? bits - 1 : bits));
        uint64_t most = is_signed ? (1ull << (bits - 1)) - 1 : bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
        double t = trunc(odd);
        if (t >= top)
            store_integer(d, most, out);
        else if (is_signed && t <= -top)
            store_integer(d, most + 1, out);
        else if (!is_signed && t <= 0)
            store_integer(d, 0, out);
        else
            store_integer(d, t < 0 ? 0 - (uint64_t)-t : (uint64_t)t, out);
    }
}

int64_t lf_scalar_i64(lf_dtype d, const lf_scalar *s) {
    switch (d) {
    case LF_BOOL: return s->b;
    case LF_I8: return s->i8;
    case LF_I16: return s->i16;
    case LF_I32: return s->i32;
    case LF_U8: return s->u8;
    case LF_U16: return s->u16;
    case LF_U32: return s->u32;
    default: return s->i64;
    }
}

double lf_scalar_f64(lf_dtype d, const lf_scalar *s) {
    if (d == LF_F64 || d == LF_C128) return s->f64;
    if (d == LF_F32 || d == LF_C64) return (double)s->f32;
    return (double)lf_half_to_f32(d, s->u16);
}

void lf_scalar_cast(lf_dtype from, const lf_scalar *s, lf_dtype to, lf_scalar *out) {
    lf_scalar in = *s;
    if (from == to) {
        *out = in;
        return;
    }
    if (from == LF_BOOL || lf_is_integer(from)) {
        int64_t v = lf_scalar_i64(from, &in);
        bool negative = v < 0 && from != LF_U64;
        lf_scalar_from_integer(negative, negative ? 0 - (uint64_t)v : (uint64_t)v, to, out);
        return;
    }
    double re = lf_scalar_f64(from, &in), im = from == LF_C64 ? (double)in.c64[1] : from == LF_C128 ? in.c128[1] : 0;
    lf_scalar_from_float(re, re, to, out);
    if (to == LF_BOOL)
        out->b = re != 0 || im != 0;
    else if (to == LF_C64)
        out->c64[1] = (float)im;
    else if (to == LF_C128)
        out->c128[1] = im;
}
