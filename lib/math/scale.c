// Exact operations on the exponent and the last bit: ldexp, nextafter, fmod.
#include "internal.h"

// 2^n for n in the normal range.
LFM_INLINE double pow2(int64_t n) { return double_of((uint64_t)(n + 1023) << 52); }

float lfm_ldexp_f32(float x, int64_t n) {
    // A float needs at most 2^±277 to go from one end of its range past the other; the product is exact in double.
    int64_t k = n > 300 ? 300 : n < -300 ? -300 : n;
    return (float)((double)x * pow2(k));
}

double lfm_ldexp_f64(double x, int64_t n) {
    // Three factors. All but the last keep normal numbers exact, or else the result is 0 or infinite either way:
    // after a factor of 2^-969 a number that has become subnormal still has to lose over 53 bits more.
    int64_t k = n > 2200 ? 2200 : n < -2200 ? -2200 : n;
    double y = x;
    for (int i = 0; i < 2; i++) {
        int64_t step = k > 1023 ? 1023 : k < -1022 ? -969 : 0;
        y *= pow2(step);
        k -= step;
    }
    return y * pow2(k > 1023 ? 1023 : k < -1022 ? -1022 : k);
}

float lfm_nextafter_f32(float x, float y) {
    if (x != x || y != y) return x + y;
    if (x == y) return y;
    if (x == 0) return copysign32(0x1p-149f, y);
    uint32_t u = bits32(x);
    return float_of((x < y) == (x > 0) ? u + 1 : u - 1);
}

double lfm_nextafter_f64(double x, double y) {
    if (x != x || y != y) return x + y;
    if (x == y) return y;
    if (x == 0) return copysign64(0x1p-1074, y);
    uint64_t u = bits64(x);
    return double_of((x < y) == (x > 0) ? u + 1 : u - 1);
}

// |x| as m·2^(e-1075) with m < 2^53; e >= 1.
LFM_INLINE uint64_t significand(uint64_t abs, int *out_e) {
    int e = (int)(abs >> 52);
    uint64_t m = abs & 0xfffffffffffff;
    *out_e = e == 0 ? 1 : e;
    return e == 0 ? m : m | 1ull << 52;
}

// Long division in base 2^11: the remainder of a 53-bit significand leaves 11 bits of room in 64.
double lfm_fmod_f64(double x, double y) {
    uint64_t ax = bits64(x) & ~(1ull << 63), ay = bits64(y) & ~(1ull << 63);
    if (ay == 0 || ax >= 0x7ffull << 52 || ay > 0x7ffull << 52) return LFM_NAN;
    if (ax < ay) return x;
    int ex, ey;
    uint64_t m = significand(ax, &ex), d = significand(ay, &ey);
    m %= d;
    for (int left = ex - ey; left > 0 && m != 0; left -= 11) m = (m << (left < 11 ? left : 11)) % d;
    if (m == 0) return copysign64(0.0, x);
    // Normalise to 53 bits, but not below the least exponent; what is left of m is then the subnormal itself.
    int shift = __builtin_clzll(m) - 11;
    if (shift > ey - 1) shift = ey - 1;
    m <<= shift;
    uint64_t e = (uint64_t)(ey - shift);
    uint64_t abs = m >> 52 ? (m & 0xfffffffffffff) | e << 52 : m;
    return copysign64(double_of(abs), x);
}

// A double holds both operands and the exact remainder of two floats.
float lfm_fmod_f32(float x, float y) { return (float)lfm_fmod_f64(x, y); }
