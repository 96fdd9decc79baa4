// f16 and bf16 conversions against a rounding in long double, which holds every source value exactly.
#include <math.h>
#include <stdio.h>

#include "judge.h"
#include "test_math.h"

static uint16_t reference(long double x, int mant, int bias) {
    int top = mant == 10 ? 31 : 255;
    if (x != x) return (uint16_t)(top << mant | 1 << (mant - 1));
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    long double a = fabsl(x);
    if (a == 0) return sign;
    int e = isinf(a) ? 20000 : ilogbl(a);
    if (e > bias) return sign | (uint16_t)(top << mant);
    if (e < 1 - bias) e = 1 - bias;
    long double n = nearbyintl(ldexpl(a, mant - e)); // in units of the quantum, ties to even
    return sign | (uint16_t)((unsigned)n + ((unsigned)(e + bias - 1) << mant));
}

static int mismatches;
static void same(const char *name, long double x, unsigned got, unsigned want) {
    test_math_checks++;
    if (got == want) return;
    test_math_failures++;
    if (mismatches++ < 10) printf("FAIL %s(%La): got %04x, want %04x\n", name, x, got, want);
}

static void check(double x) {
    same("f64_to_f16", x, lfm_f64_to_f16(x), reference(x, 10, 15));
    same("f64_to_bf16", x, lfm_f64_to_bf16(x), reference(x, 7, 127));
    float f = (float)x;
    same("f32_to_f16", f, lfm_f32_to_f16(f), reference(f, 10, 15));
    same("f32_to_bf16", f, lfm_f32_to_bf16(f), reference(f, 7, 127));
}
static void check_integer(uint64_t n) {
    same("u64_to_f16", n, lfm_u64_to_f16(n), reference(n, 10, 15));
    same("u64_to_bf16", n, lfm_u64_to_bf16(n), reference(n, 7, 127));
    int64_t i = (int64_t)n;
    same("i64_to_f16", i, lfm_i64_to_f16(i), reference(i, 10, 15));
    same("i64_to_bf16", i, lfm_i64_to_bf16(i), reference(i, 7, 127));
}

void test_math_half(void) {
    for (unsigned h = 0; h < 0x10000; h++) {
        // Every half, the points halfway to the next, and the doubles around them.
        float f16 = lfm_f16_to_f32((uint16_t)h), bf16 = lfm_bf16_to_f32((uint16_t)h);
        bool nan16 = (h & 0x7fff) > 0x7c00, nanb = (h & 0x7fff) > 0x7f80;
        same("f16 and back", f16, lfm_f32_to_f16(f16), nan16 ? 0x7e00 : h);
        same("bf16 and back", bf16, lfm_f32_to_bf16(bf16), nanb ? 0x7fc0 : h);
        double next[2] = {lfm_f16_to_f32((uint16_t)(h + 1)), lfm_bf16_to_f32((uint16_t)(h + 1))}, at[2] = {f16, bf16};
        for (int k = 0; k < 2; k++) {
            double middle = 0.5 * (at[k] + next[k]);
            check(at[k]);
            check(middle);
            check(nextafter(middle, INFINITY));
            check(nextafter(middle, -INFINITY));
            check(nextafterf((float)middle, INFINITY));
            check(nextafterf((float)middle, -INFINITY));
        }
    }
    check(65519.99999), check(65520), check(-65520), check(0x1p-25), check(0x1.0000000000001p-25), check(0x1p-1074);
    check(0x1.fffffffffffffp1023), check(-INFINITY), check(-0.0), check(NAN);
    uint64_t z = 7;
    for (int i = 0; i < 300000; i++) {
        z = z * 6364136223846793005u + 1442695040888963407u;
        check_integer(z >> (z >> 5 & 63));
        check(double_bits((z & 0x800fffffffffffff) | (1023 + z % 340 - 170) << 52));
    }
    for (int b = 0; b < 64; b++)
        for (int d = -2; d <= 2; d++) {
            check_integer((1ull << b) + (uint64_t)d);
            check_integer((0x101ull << b) + (uint64_t)d); // halfway between two bf16
            check_integer((0x103ull << b) + (uint64_t)d);
            check_integer((0x801ull << b) + (uint64_t)d); // between two f16
        }
    if (mismatches == 0) printf("ok   f16 and bf16 conversions\n");
}
