// Prints a checksum of every function over a slice of its arguments. same_bits.sh builds it for several x86 levels
// and optimisations; the text must not differ. NaNs count as one value.
#include <stdint.h>
#include <stdio.h>

#include "math/math.h"

enum { block = 4096, blocks = 12 };

static uint64_t random_bits(uint64_t i) { // splitmix64
    uint64_t z = i * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static float f32_in[2][block], f32_out[2][block];
static double f64_in[2][block], f64_out[2][block];

// Half of the arguments are any bit patterns, half have exponents near 0.
static void fill(uint64_t seed) {
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < block; i++) {
            union {
                uint32_t u;
                float f;
            } a;
            union {
                uint64_t u;
                double f;
            } b;
            uint64_t r = random_bits(seed + (uint64_t)(k * block + i));
            a.u = (uint32_t)r;
            b.u = random_bits(r);
            if (i & 1) {
                a.u = (a.u & 0x807fffff) | (uint32_t)(127 - 12 + (int)(r >> 40 & 15)) << 23;
                b.u = (b.u & 0x800fffffffffffff) | (uint64_t)(1023 - 12 + (int)(r >> 40 & 15)) << 52;
            }
            f32_in[k][i] = a.f;
            f64_in[k][i] = b.f;
        }
}

static uint64_t sum32, sum64;
static void add(int parts) {
    for (int k = 0; k < parts; k++)
        for (int i = 0; i < block; i++) {
            union {
                float f;
                uint32_t u;
            } a = {f32_out[k][i]};
            union {
                double f;
                uint64_t u;
            } b = {f64_out[k][i]};
            sum32 = (sum32 ^ (a.f != a.f ? 0x7fc00000u : a.u)) * 0x100000001b3 + 1;
            sum64 = (sum64 ^ (b.f != b.f ? 0x7ff8000000000000u : b.u)) * 0x100000001b3 + 1;
        }
}

#define RUN(label, parts, one32, one64)                                                                                     \
    sum32 = sum64 = 0;                                                                                                      \
    for (uint64_t n = 0; n < blocks; n++) {                                                                                 \
        fill(n * 2 * block + 1);                                                                                            \
        for (int i = 0; i < block; i++) one32;                                                                              \
        for (int i = 0; i < block; i++) one64;                                                                              \
        add(parts);                                                                                                         \
    }                                                                                                                       \
    printf("%s %016llx %016llx\n", label, (unsigned long long)sum32, (unsigned long long)sum64);

int main(void) {
#define LFM_UNARY(n) RUN(#n, 1, f32_out[0][i] = lfm_##n##_f32(f32_in[0][i]), f64_out[0][i] = lfm_##n##_f64(f64_in[0][i]))
#define LFM_HALF(n)                                                                                                         \
    RUN(#n "_half", 1, f32_out[0][i] = lfm_##n##_half(f32_in[0][i] * 0x1p-100f * 0x1p100f), f64_out[0][i] = 0)
#define LFM_BINARY(n)                                                                                                       \
    RUN(#n, 1, f32_out[0][i] = lfm_##n##_f32(f32_in[0][i], f32_in[1][i]),                                                   \
        f64_out[0][i] = lfm_##n##_f64(f64_in[0][i], f64_in[1][i]))
#define LFM_CUNARY(n)                                                                                                       \
    RUN("c" #n, 2, lfm_c##n##_f32(f32_in[0][i], f32_in[1][i], &f32_out[0][i], &f32_out[1][i]),                              \
        lfm_c##n##_f64(f64_in[0][i], f64_in[1][i], &f64_out[0][i], &f64_out[1][i]))
#define LFM_CBINARY(n)                                                                                                      \
    RUN("c" #n, 2,                                                                                                          \
        lfm_c##n##_f32(f32_in[0][i], f32_in[1][i], f32_in[0][i ^ 1], f32_in[1][i ^ 1], &f32_out[0][i], &f32_out[1][i]),     \
        lfm_c##n##_f64(f64_in[0][i], f64_in[1][i], f64_in[0][i ^ 1], f64_in[1][i ^ 1], &f64_out[0][i], &f64_out[1][i]))
#include "math/functions.def"
    RUN("f16", 1, f32_out[0][i] = lfm_f16_to_f32(lfm_f32_to_f16(f32_in[0][i])), f64_out[0][i] = lfm_f64_to_f16(f64_in[0][i]))
    RUN("bf16", 1, f32_out[0][i] = lfm_bf16_to_f32(lfm_f32_to_bf16(f32_in[0][i])),
        f64_out[0][i] = lfm_f64_to_bf16(f64_in[0][i]))
    RUN("ldexp", 1, f32_out[0][i] = lfm_ldexp_f32(f32_in[0][i], (i & 511) - 256),
        f64_out[0][i] = lfm_ldexp_f64(f64_in[0][i], (i & 4095) - 2048))
    return 0;
}
