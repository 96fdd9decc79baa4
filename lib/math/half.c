// Conversions to and from f16 and bf16 in integer arithmetic: one rounding to nearest even, subnormals kept, every
// NaN canonical. Neither x86 nor NVPTX does this alike for all pairs of types.
#include "internal.h"

// The value sig·2^exp (sig > 0) as a 16-bit float with `mant` explicit mantissa bits and exponent bias `bias`.
// Whether bits were lost before is in bit 0 of sig (sticky), which must lie below the rounding bit.
LFM_INLINE uint16_t round_to_16(uint64_t sig, int exp, int mant, int bias) {
    int lead = 63 - __builtin_clzll(sig);
    int e = lead + exp; // the value's binary exponent
    int max_field = mant == 10 ? 31 : 255;
    if (e > bias) return (uint16_t)(max_field << mant);
    int least = 1 - bias; // exponent of the smallest normal number
    int quantum = (e < least ? least : e) - mant;
    int drop = quantum - exp; // bits of sig below the quantum
    uint64_t kept;
    if (drop <= 0) {
        kept = sig << -drop; // at most mant + 1 bits are set, none is lost
    } else if (drop > 64) {
        kept = 0; // below half of the quantum
    } else {
        uint64_t rest, half = 1ull << (drop - 1);
        if (drop == 64) {
            kept = 0;
            rest = sig;
        } else {
            kept = sig >> drop;
            rest = sig & ((half << 1) - 1);
        }
        kept += rest > half || (rest == half && (kept & 1));
    }
    // The hidden bit of a normal number adds one to the exponent field, and so does a carry out of the mantissa.
    int field = e < least ? 0 : e + bias - 1;
    return (uint16_t)(kept + ((uint64_t)field << mant));
}

LFM_INLINE uint16_t from_f64(double x, int mant, int bias) {
    uint64_t u = bits64(x), abs = u & ~(1ull << 63);
    uint16_t sign = (uint16_t)(u >> 48 & 0x8000);
    uint16_t inf = (uint16_t)((mant == 10 ? 31 : 255) << mant);
    if (abs > 0x7ffull << 52) return (uint16_t)(inf | 1 << (mant - 1));
    if (abs == 0x7ffull << 52) return sign | inf;
    int e = (int)(abs >> 52);
    uint64_t sig = abs & 0xfffffffffffff;
    if (e == 0) return sign; // below 2^-1022: zero in both types
    return sign | round_to_16(sig | 1ull << 52, e - 1075, mant, bias);
}

LFM_INLINE uint16_t from_u64(uint64_t n, int mant, int bias) { return n == 0 ? 0 : round_to_16(n, 0, mant, bias); }

uint16_t lfm_f64_to_f16(double x) { return from_f64(x, 10, 15); }
uint16_t lfm_f64_to_bf16(double x) { return from_f64(x, 7, 127); }

uint16_t lfm_u64_to_f16(uint64_t n) { return from_u64(n, 10, 15); }
uint16_t lfm_u64_to_bf16(uint64_t n) { return from_u64(n, 7, 127); }
uint16_t lfm_i64_to_f16(int64_t n) { return n < 0 ? 0x8000 | lfm_u64_to_f16(0 - (uint64_t)n) : lfm_u64_to_f16((uint64_t)n); }
uint16_t lfm_i64_to_bf16(int64_t n) {
    return n < 0 ? 0x8000 | lfm_u64_to_bf16(0 - (uint64_t)n) : lfm_u64_to_bf16((uint64_t)n);
}

// The f32 conversions are hot, so they are straight lines that vectorise.

uint16_t lfm_f32_to_bf16(float x) {
    uint32_t u = bits32(x);
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? 0x7fc0 : rounded);
}

float lfm_bf16_to_f32(uint16_t h) { return float_of((uint32_t)h << 16); }

uint16_t lfm_f32_to_f16(float x) {
    uint32_t u = bits32(x), sign = u >> 16 & 0x8000, abs = u & 0x7fffffff;
    // Normal results: move the bias from 127 to 15, round 13 bits away; a carry may reach the infinity.
    uint32_t normal = (abs - (112u << 23) + 0xfff + (abs >> 13 & 1)) >> 13;
    // Subnormal results: adding 2^-1 leaves the multiple of 2^-24 in the low bits of the sum, rounded once.
    uint32_t subnormal = bits32(float_of(abs) + 0.5f) - bits32(0.5f);
    uint32_t finite = abs < 113u << 23 ? subnormal : normal;
    // 65520 and above round to the infinity.
    uint32_t half = abs >= 0x477ff000 ? 0x7c00 : finite;
    return (uint16_t)(abs > 0x7f800000 ? 0x7e00 : sign | half);
}

float lfm_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, abs = h & 0x7fff;
    // As an exponent and mantissa of f32 the pattern is 2^112 too small; the product is exact, also for subnormals.
    float finite = float_of(abs << 13) * 0x1p112f;
    uint32_t u = abs >= 0x7c00 ? 0x7f800000 | (abs & 0x3ff) << 13 : bits32(finite);
    return float_of(abs > 0x7c00 ? 0x7fc00000 : sign | u);
}
