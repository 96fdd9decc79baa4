// Values, bits, inputs, and the report.
#include "test/exhaustive/exhaustive.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

int passed, failed;

// ---- values ----------------------------------------------------------------------------------------------------------------------

typedef struct format {
    int mantissa, bias; // stored bits of the mantissa; greatest exponent
} format;
static const format formats[] = {
    [LFUSER_F16] = {10, 15}, [LFUSER_BF16] = {7, 127}, [LFUSER_F32] = {23, 127}, [LFUSER_F64] = {52, 1023}};

uint64_t bits_of(lfuser_dtype d, const void *element) {
    uint64_t bits = 0;
    memcpy(&bits, element, lfuser_dtype_bytes(d));
    return bits;
}

double value_of(lfuser_dtype d, const void *element) {
    float f;
    double x;
    uint64_t bits = bits_of(d, element);
    if (d == LFUSER_F64) return memcpy(&x, element, 8), x;
    if (d == LFUSER_F32) return memcpy(&f, element, 4), f;
    int m = formats[d].mantissa, bias = formats[d].bias;
    int e = (int)(bits >> m & (2 * (unsigned)bias + 1)), fraction = (int)(bits & ((1u << m) - 1));
    double magnitude = e == 2 * bias + 1 ? (fraction ? NAN : INFINITY)
                       : e               ? ldexp(1 + ldexp(fraction, -m), e - bias)
                                         : ldexp(fraction, 1 - bias - m);
    return bits >> 15 ? -magnitude : magnitude;
}

static uint16_t half_of(lfuser_dtype d, long double x) {
    int m = formats[d].mantissa, bias = formats[d].bias;
    if (x != x) return (uint16_t)((2 * bias + 1) << m | 1 << (m - 1));
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    long double a = fabsl(x);
    if (a == 0) return sign;
    int e = isinf(a) ? 20000 : ilogbl(a);
    if (e > bias) return sign | (uint16_t)((2 * bias + 1) << m);
    if (e < 1 - bias) e = 1 - bias;
    long double n = nearbyintl(ldexpl(a, m - e)); // in units of the last place, ties to even; a carry moves the exponent
    return sign | (uint16_t)((unsigned)n + ((unsigned)(e + bias - 1) << m));
}

static uint64_t integer_of(lfuser_dtype d, long double x) {
    unsigned bits = 8 * lfuser_dtype_bytes(d);
    bool is_signed = d <= LFUSER_I64;
    if (x != x) return 0;
    long double low = is_signed ? -ldexpl(1, (int)bits - 1) : 0, high = ldexpl(1, (int)bits - is_signed);
    if (x <= low) return is_signed ? 1ull << (bits - 1) : 0;
    if (x >= high) return is_signed ? (1ull << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}

void round_to(lfuser_dtype d, long double value, void *out) {
    uint64_t bits;
    switch (d) {
    case LFUSER_BOOL: bits = value != 0; break; // NaN too
    case LFUSER_F16:
    case LFUSER_BF16: bits = half_of(d, value); break;
    case LFUSER_F32:
    case LFUSER_C64: {
        float part[2] = {(float)value, 0};
        memcpy(out, part, lfuser_dtype_bytes(d));
        return;
    }
    case LFUSER_F64:
    case LFUSER_C128: {
        double part[2] = {(double)value, 0};
        memcpy(out, part, lfuser_dtype_bytes(d));
        return;
    }
    default: bits = integer_of(d, value);
    }
    memcpy(out, &bits, lfuser_dtype_bytes(d));
}

static bool is_nan(lfuser_dtype d, uint64_t bits) {
    const format *f = &formats[d];
    uint64_t infinity = (2 * (uint64_t)f->bias + 1) << f->mantissa, magnitude = infinity | ((1ull << f->mantissa) - 1);
    return (bits & magnitude) > infinity;
}

bool same_element(lfuser_dtype d, const void *a, const void *b) {
    if (d >= LFUSER_C64) {
        lfuser_dtype part = d == LFUSER_C64 ? LFUSER_F32 : LFUSER_F64;
        size_t bytes = lfuser_dtype_bytes(part);
        return same_element(part, a, b) && same_element(part, (const char *)a + bytes, (const char *)b + bytes);
    }
    uint64_t x = bits_of(d, a), y = bits_of(d, b);
    if (x == y) return true;
    return d >= LFUSER_F16 && d <= LFUSER_F64 && is_nan(d, x) && is_nan(d, y);
}

uint64_t count_differing(lfuser_dtype d, const void *a, const void *b, size_t n) {
    size_t bytes = lfuser_dtype_bytes(d);
    uint64_t differing = 0;
    if (!memcmp(a, b, n * bytes)) return 0;
    for (size_t i = 0; i < n; i++) differing += !same_element(d, (const char *)a + i * bytes, (const char *)b + i * bytes);
    return differing;
}

double ulps_from(lfuser_dtype d, double got, double truth) {
    if (truth != truth || got != got) return truth != truth && got != got ? 0 : INFINITY;
    if (truth == 0) return got == 0 && signbit(got) == signbit(truth) ? 0 : INFINITY;
    // The rounded truth is the best there is, however far it is in ulps.
    const format *f = &formats[d];
    double top = ldexp(1, f->bias + 1);
    if (isinf(got) && isinf(truth)) return got == truth ? 0 : INFINITY;
    double g = isinf(got) ? copysign(top, got) : got, t = fabs(truth) > top ? copysign(top, truth) : truth;
    int e = ilogb(t);
    if (e < 1 - f->bias) e = 1 - f->bias;
    return ldexp(fabs(g - t), f->mantissa - e);
}

// ---- report ------------------------------------------------------------------------------------------------------------------------

void tally_add(tally *to, const tally *from) {
    to->inputs += from->inputs;
    to->differing += from->differing;
    if (!to->wrong && from->wrong) {
        to->first_wrong = from->first_wrong;
        memcpy(to->wrong_text, from->wrong_text, sizeof to->wrong_text);
    }
    to->wrong += from->wrong;
    if (from->worst > to->worst || !(from->worst == from->worst)) {
        to->worst = from->worst;
        to->worst_at = from->worst_at;
    }
}

void report(const char *section, lfuser_dtype d, const char *name, const tally *t, bool compared, bool judged) {
    if (compared) *(t->differing ? &failed : &passed) += 1;
    if (judged) *(t->wrong ? &failed : &passed) += 1;
    printf("%-6s %-5s %-12s %11llu inputs", section, lfuser_dtype_name(d), name, (unsigned long long)t->inputs);
    if (compared) printf(", %llu differ", (unsigned long long)t->differing);
    if (t->worst > 0) printf(", worst %.3f ulp at %#llx", t->worst, (unsigned long long)t->worst_at);
    if (judged && !t->wrong) printf(", ok");
    if (t->wrong)
        printf("\n  WRONG: %llu, first at %#llx%s", (unsigned long long)t->wrong, (unsigned long long)t->first_wrong,
               t->wrong_text);
    if (compared && t->differing) printf("\n  DIFFERS%s", t->wrong ? "" : t->wrong_text);
    printf("\n");
    fflush(stdout);
}

// ---- inputs ------------------------------------------------------------------------------------------------------------------------

uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static const double f64_edges[] = {0.0,
                                   0x1p-1074,
                                   0x1p-1022,
                                   0x1.fffffffffffffp-1023,
                                   1e-310,
                                   0x1p-1000,
                                   0x1p-500,
                                   0x1p-60,
                                   0x1p-53,
                                   0x1p-52,
                                   0x1p-30,
                                   0x1p-27,
                                   0x1p-26,
                                   1e-5,
                                   0.1,
                                   0.25,
                                   0.28,
                                   0.4141892,
                                   0.4142135623730951,
                                   0.5,
                                   0.53,
                                   0.6931471805599453,
                                   0.7071067811865476,
                                   0.75,
                                   0x1.fffffffffffffp-1,
                                   1.0,
                                   0x1.0000000000001p0,
                                   1.4142135623730951,
                                   1.4616321449683622,
                                   1.5,
                                   1.5707963267948966,
                                   2.0,
                                   2.5,
                                   2.718281828459045,
                                   3.0,
                                   3.141592653589793,
                                   4.0,
                                   4.71238898038469,
                                   5.0,
                                   6.283185307179586,
                                   7.0,
                                   10.0,
                                   19.0,
                                   20.0,
                                   20.5,
                                   26.543258454250981,
                                   27.3,
                                   36.7,
                                   100.0,
                                   170.6,
                                   171.6243769563027,
                                   172.0,
                                   709.782712893384,
                                   709.79,
                                   710.4758600739439,
                                   711.0,
                                   745.1332191019411,
                                   745.2,
                                   1000.0,
                                   1023.9999999999999,
                                   1024.0,
                                   1074.5,
                                   1075.0,
                                   65504.0,
                                   65520.0,
                                   1e10,
                                   0x1p31,
                                   0x1p32,
                                   0x1p52,
                                   0x1.8p52,
                                   0x1p53,
                                   0x1p62,
                                   0x1p63,
                                   0x1p64,
                                   1e22,
                                   0x1.6ac5b262ca1ffp849,
                                   1e100,
                                   1e300,
                                   0x1.fffffep127,
                                   0x1.ffffffp127,
                                   0x1p128,
                                   0x1.fffffffffffffp1023,
                                   INFINITY,
                                   NAN,
                                   0.0078125,
                                   1.00390625,
                                   1.0039062509313226,
                                   1.00048828125,
                                   0x1.002p0,
                                   0x1.002000000001p0,
                                   8623489025.0,
                                   11.0 * M_PI,
                                   22.0,
                                   355.0,
                                   103993.0 / 33102 * 7,
                                   6381956970095103.0 * 0x1p797};
enum { N_EDGES = sizeof f64_edges / sizeof *f64_edges, NEAR = 5 };

static double f64_input(uint64_t i) {
    if (i < N_EDGES * 2 * NEAR) { // an edge, and its neighbours, in both signs
        double x = f64_edges[i / (2 * NEAR)];
        int away = (int)(i / 2 % NEAR) - NEAR / 2;
        for (; away > 0; away--) x = nextafter(x, INFINITY);
        for (; away < 0; away++) x = nextafter(x, 0);
        return i % 2 ? -x : x;
    }
    uint64_t state = i, z = next_random(&state), how = next_random(&state);
    double x;
    switch (how % 4) {
    case 0: memcpy(&x, &z, 8); return x;                                      // any bits
    case 1: return ldexp((double)(int64_t)z, -63);                            // -1 … 1
    case 2: return ldexp((double)(int64_t)z, (int)(how >> 8 & 31) - 63 - 15); // 2^-15 … 2^16
    default:
        return ldexp((double)(int64_t)(z >> 32) + 0.5 * (double)(how >> 9 & 1),
                     (int)(how >> 16 & 63) - 32 - 29); // few digits
    }
}

static uint64_t integer_input(lfuser_dtype d, uint64_t i) {
    unsigned width = 8 * lfuser_dtype_bytes(d);
    if (i < 64 * 16) { // around powers of two, and halfway between neighbours of 16-bit floats
        static const uint64_t patterns[] = {1, 0x101, 0x103, 0x801, 0x1001, 0x1000001, 0x1000003, 0x202};
        uint64_t z = (patterns[i % 8] << (i / 16)) + (i / 8 % 2 ? UINT64_MAX : 0);
        return d <= LFUSER_I64 && i % 3 == 0 ? 0 - z : z;
    }
    uint64_t state = i ^ 0x5555, z = next_random(&state);
    return d <= LFUSER_I64 ? (uint64_t)((int64_t)z >> (z % width)) : z >> (z % width);
}

void input_element(lfuser_dtype d, uint64_t i, uint64_t slice, void *out) {
    size_t bytes = lfuser_dtype_bytes(d);
    uint64_t bits = i;
    if (d == LFUSER_F32)
        bits = slice > 1 ? i * slice + (i * 2654435761u >> 7) % slice : i;
    else if (d == LFUSER_F64) {
        double x = f64_input(i);
        memcpy(&bits, &x, 8);
    } else if (bytes > 2 && d <= LFUSER_U64)
        bits = integer_input(d, i);
    memcpy(out, &bits, bytes);
}

uint64_t input_count(lfuser_dtype d, const options *o) {
    size_t bytes = lfuser_dtype_bytes(d);
    if (d == LFUSER_BOOL) return 2;
    if (bytes <= 2) return 1ull << 8 * bytes;
    if (d == LFUSER_F32) return (1ull << 32) / o->slice;
    return o->f64_bits;
}
