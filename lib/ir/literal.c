// Literals as text: exact reading, shortest printing. Independent of the locale: numbers are handed to the C library without a
// decimal point, and what it prints is taken apart digit by digit.
#include "ir/scalar.h"
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// 767 digits decide every rounding of a double; what follows matters only as "more than that".
enum { MAX_DIGITS = 800 };

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static int hex_digit(char c) {
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
static bool is_word(const char *text, size_t n, const char *word) { return strlen(word) == n && !memcmp(text, word, n); }

// [-+]digits at text[at …n-1], all of it, saturated.
static bool read_exponent(const char *text, size_t n, size_t at, int64_t *out) {
    bool negative = at < n && text[at] == '-';
    if (at < n && (text[at] == '-' || text[at] == '+')) at++;
    if (at == n) return false;
    int64_t e = 0;
    for (; at < n; at++) {
        if (!is_digit(text[at])) return false;
        if (e < 1000000000) e = e * 10 + (text[at] - '0');
    }
    *out = negative ? -e : e;
    return true;
}

static bool read_integer(const char *text, size_t n, int base, uint64_t *out) {
    uint64_t m = 0;
    for (size_t i = 0; i < n; i++) {
        int d = hex_digit(text[i]);
        if (d < 0 || d >= base) return false;
        if (__builtin_mul_overflow(m, (uint64_t)base, &m) || __builtin_add_overflow(m, (uint64_t)d, &m)) return false;
    }
    *out = m;
    return n > 0;
}

static double next_odd(double toward_zero, bool exact) {
    uint64_t bits;
    memcpy(&bits, &toward_zero, 8);
    if (!exact) bits |= 1;
    memcpy(&toward_zero, &bits, 8);
    return toward_zero;
}

// digits (no point, no sign) * 10^exponent.
static void from_decimal(const char *digits, int64_t exponent, lf_literal *out) {
    char text[MAX_DIGITS + 40];
    if (exponent > 100000) exponent = 100000;
    if (exponent < -100000) exponent = -100000;
    snprintf(text, sizeof text, "%se%lld", digits, (long long)exponent);
    fenv_t saved;
    fegetenv(&saved);
    fesetenv(FE_DFL_ENV);
    out->nearest = strtod(text, NULL);
    fesetround(FE_UPWARD);
    double up = strtod(text, NULL);
    fesetround(FE_TOWARDZERO);
    double down = strtod(text, NULL);
    fesetenv(&saved);
    out->odd = next_odd(down, up == down);
}

static bool read_decimal(const char *text, size_t n, lf_literal *out) {
    char digits[MAX_DIGITS + 2] = "";
    size_t count = 0, i = 0, seen = 0;
    int64_t scale = 0, exponent = 0;
    bool point = false, more = false;
    for (; i < n && (is_digit(text[i]) || (text[i] == '.' && !point)); i++) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        seen++;
        if (count == 0 && text[i] == '0')
            scale -= point;
        else if (count < MAX_DIGITS)
            digits[count++] = text[i], scale -= point;
        else
            more |= text[i] != '0', scale += !point;
    }
    if (!seen) return false;
    if (i < n && (text[i] == 'e' || text[i] == 'E')) {
        if (!read_exponent(text, n, i + 1, &exponent)) return false;
    } else if (i < n)
        return false;
    if (!count) digits[count++] = '0';
    if (more) digits[count++] = '1', scale--;
    digits[count] = 0;
    from_decimal(digits, exponent + scale, out);
    return true;
}

// 0x…: hex digits with a point or an exponent of two. All digits beyond 64 bits are folded into a sticky bit.
static bool read_hex_float(const char *text, size_t n, lf_literal *out) {
    uint64_t m = 0;
    int64_t scale = 0, exponent = 0;
    size_t i = 0, seen = 0;
    bool point = false, more = false;
    for (; i < n && (hex_digit(text[i]) >= 0 || (text[i] == '.' && !point)); i++) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        seen++;
        if (m >> 58)
            more |= text[i] != '0', scale += point ? 0 : 4;
        else
            m = m << 4 | (uint64_t)hex_digit(text[i]), scale -= point ? 4 : 0;
    }
    if (!seen) return false;
    if (i < n && (text[i] == 'p' || text[i] == 'P')) {
        if (!read_exponent(text, n, i + 1, &exponent)) return false;
    } else if (i < n)
        return false;
    exponent += scale;
    if (!m) {
        out->nearest = out->odd = 0;
        return true;
    }
    // Bring m to 63 bits, so that rounding is done by hand at the right place, subnormals included.
    int left = __builtin_clzll(m) - 1;
    m <<= left;
    exponent -= left;
    if (exponent > 5000) exponent = 5000;
    if (exponent < -5000) exponent = -5000;
    int drop = 10; // 63 - 53
    if (exponent + drop < -1074) drop = (int)(-1074 - exponent);
    uint64_t kept = drop > 63 ? 0 : m >> drop, rest = drop > 63 ? m : m & ((1ull << drop) - 1);
    uint64_t half = drop > 63 ? UINT64_MAX : 1ull << (drop - 1);
    bool up = rest > half || (rest == half && (more || (kept & 1)));
    out->nearest = ldexp((double)(kept + up), (int)exponent + drop);
    double down = ldexp((double)kept, (int)exponent + drop);
    if (isinf(down)) down = 0x1.fffffffffffffp1023;
    out->odd = next_odd(down, !rest && !more && !isinf(ldexp((double)kept, (int)exponent + drop)));
    return true;
}

bool lf_literal_parse(const char *text, size_t n, lf_literal *out) {
    *out = (lf_literal){0};
    if (is_word(text, n, "true") || is_word(text, n, "false")) {
        *out = lf_literal_bool(text[0] == 't');
        return true;
    }
    if (is_word(text, n, "nan")) {
        *out = lf_literal_float((double)NAN);
        return true;
    }
    bool negative = n && text[0] == '-';
    if (negative) text++, n--;
    if (is_word(text, n, "inf")) {
        *out = lf_literal_float(negative ? (double)-INFINITY : (double)INFINITY);
        return true;
    }
    bool hex = n > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    bool is_float = false;
    for (size_t i = hex ? 2 : 0; i < n; i++)
        is_float |= text[i] == '.' || (hex ? (text[i] | 32) == 'p' : (text[i] | 32) == 'e');
    if (!is_float) {
        out->kind = LF_LITERAL_INT;
        if (!read_integer(hex ? text + 2 : text, hex ? n - 2 : n, hex ? 16 : 10, &out->magnitude)) return false;
        out->negative = negative && out->magnitude;
        return !negative || out->magnitude <= 1ull << 63;
    }
    out->kind = LF_LITERAL_FLOAT;
    if (!(hex ? read_hex_float(text + 2, n - 2, out) : read_decimal(text, n, out))) return false;
    if (negative) out->nearest = -out->nearest, out->odd = -out->odd;
    return true;
}

lf_dtype lf_literal_dtype(const lf_literal *l) {
    if (l->kind == LF_LITERAL_BOOL) return LF_BOOL;
    if (l->kind == LF_LITERAL_FLOAT) return LF_F64;
    return !l->negative && l->magnitude >> 63 ? LF_U64 : LF_I64;
}

static bool integer_fits(bool negative, uint64_t magnitude, lf_dtype d) {
    unsigned bits = 8 * lf_dtype_bytes(d);
    if (lf_is_unsigned(d)) return (!negative || !magnitude) && (bits == 64 || !(magnitude >> bits));
    uint64_t top = 1ull << (bits - 1);
    return negative ? magnitude <= top : magnitude < top;
}

bool lf_literal_to(const lf_literal *l, lf_dtype d, lf_scalar *out) {
    bool negative = l->negative;
    uint64_t magnitude = l->magnitude;
    if (l->kind == LF_LITERAL_FLOAT) {
        if (lf_is_integer(d)) {
            // Only a float literal that is an integer fits an integer dtype.
            double v = l->nearest;
            if (l->odd != v || v != trunc(v) || !(fabs(v) < 0x1p64)) return false;
            negative = v < 0;
            magnitude = (uint64_t)fabs(v);
            if (!integer_fits(negative, magnitude, d)) return false;
        } else {
            lf_scalar_from_float(l->nearest, l->odd, d, out);
            return true;
        }
    }
    if (lf_is_integer(d) && !integer_fits(negative, magnitude, d)) return false;
    lf_scalar_from_integer(negative, magnitude, d, out);
    return true;
}

// ---- printing -----------------------------------------------------------------------------------------------------------

// Writes 0.d1d2… * 10^point: "12.5", "0.001", "1e20". Returns its length.
static size_t write_decimal(char *out, const char *digits, size_t n, int point, bool integral_dot) {
    size_t k = 0;
    if (point > 17 || point < -4) {
        out[k++] = digits[0];
        if (n > 1) out[k++] = '.';
        for (size_t i = 1; i < n; i++) out[k++] = digits[i];
        return k + (size_t)sprintf(out + k, "e%d", point - 1);
    }
    if (point <= 0) {
        out[k++] = '0';
        out[k++] = '.';
        for (int i = point; i < 0; i++) out[k++] = '0';
        for (size_t i = 0; i < n; i++) out[k++] = digits[i];
    } else {
        for (size_t i = 0; i < n || i < (size_t)point; i++) {
            if (i == (size_t)point) out[k++] = '.';
            out[k++] = i < n ? digits[i] : '0';
        }
        if (n <= (size_t)point && integral_dot) out[k++] = '.', out[k++] = '0';
    }
    out[k] = 0;
    return k;
}

// Shortest decimal that reads back as the same f16, bf16, f32 or f64. out: at least 64 bytes.
static size_t print_float(char *out, lf_dtype d, double v, bool integral_dot) {
    if (v != v) return (size_t)sprintf(out, "nan");
    size_t k = 0;
    if (signbit(v)) out[k++] = '-';
    v = fabs(v);
    if (isinf(v)) return k + (size_t)sprintf(out + k, "inf");
    if (v == 0) return k + (size_t)sprintf(out + k, integral_dot ? "0.0" : "0");
    lf_scalar want, got;
    lf_scalar_from_float(v, v, d, &want);
    for (int precision = 1;; precision++) {
        char raw[64], digits[32], text[64];
        snprintf(raw, sizeof raw, "%.*e", precision - 1, v);
        size_t n = 0;
        const char *c = raw;
        for (; *c && *c != 'e'; c++)
            if (is_digit(*c) && n < sizeof digits - 1) digits[n++] = *c;
        int point = *c ? atoi(c + 1) + 1 : 1;
        while (n > 1 && digits[n - 1] == '0') n--;
        lf_literal l;
        size_t length = write_decimal(text, digits, n, point, true);
        bool same = lf_literal_parse(text, length, &l) && lf_literal_to(&l, d, &got) && !memcmp(&want, &got, sizeof want);
        if (same || precision == 17) return k + write_decimal(out + k, digits, n, point, integral_dot);
    }
}

size_t lf_scalar_print(char *buffer, size_t size, lf_dtype d, const lf_scalar *s) {
    char text[160] = "";
    if (d == LF_BOOL)
        sprintf(text, "%s", s->b ? "true" : "false");
    else if (lf_is_unsigned(d))
        sprintf(text, "%llu", (unsigned long long)lf_scalar_i64(d, s));
    else if (lf_is_integer(d))
        sprintf(text, "%lld", (long long)lf_scalar_i64(d, s));
    else if (lf_is_float(d))
        print_float(text, d, lf_scalar_f64(d, s), true);
    else if (lf_is_complex(d)) {
        lf_dtype part = lf_dtype_part(d);
        double re = lf_scalar_f64(d, s), im = d == LF_C64 ? (double)s->c64[1] : s->c128[1];
        size_t n = print_float(text, part, re, false);
        if (!signbit(im) || im != im) text[n++] = '+';
        n += print_float(text + n, part, im, false);
        text[n++] = 'j';
        text[n] = 0;
    }
    size_t n = strlen(text);
    if (size) {
        size_t copied = n < size ? n : size - 1;
        memcpy(buffer, text, copied);
        buffer[copied] = 0;
    }
    return n;
}
