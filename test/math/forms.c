// The cheaper forms of exp against exp itself, bit by bit, wherever they may be used.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "test_math.h"

enum { BLOCK = 4096 };

// In blocks and without branches, so that it vectorises: all 2^32 floats take seconds.
static uint64_t differing(const float *x, const float *want, const float *got, float low, float high) {
    uint64_t n = 0;
    for (int i = 0; i < BLOCK; i++) {
        uint32_t a, b;
        memcpy(&a, &want[i], 4);
        memcpy(&b, &got[i], 4);
        n += (a != b) & (x[i] >= low) & (x[i] <= high);
    }
    return n;
}

static void report(const char *name, uint64_t n, uint64_t wrong) {
    test_math_checks++;
    test_math_failures += wrong != 0;
    printf("%-4s %-8s f32  %llu inputs, %llu differ from exp\n", wrong ? "FAIL" : "ok", name, (unsigned long long)n,
           (unsigned long long)wrong);
}

void test_math_forms(uint32_t stride) {
    float x[BLOCK], want[BLOCK], near[BLOCK], low[BLOCK];
    uint64_t n = 0, near_wrong = 0, low_wrong = 0;
    for (uint64_t at = 0; at < 1ull << 32; at += (uint64_t)BLOCK * stride) {
        for (int i = 0; i < BLOCK; i++) x[i] = float_bits((uint32_t)(at + (uint64_t)i * stride));
        for (int i = 0; i < BLOCK; i++) want[i] = lfm_exp_f32(x[i]);
        for (int i = 0; i < BLOCK; i++) near[i] = lfm_exp_near_f32(x[i]);
        for (int i = 0; i < BLOCK; i++) low[i] = lfm_exp_low_f32(x[i]);
        near_wrong += differing(x, want, near, -87, 87);
        low_wrong += differing(x, want, low, -INFINITY, 43);
        for (int i = 0; i < BLOCK; i++) low_wrong += (x[i] != x[i]) & !(low[i] != low[i]);
        n += BLOCK;
    }
    report("exp_near", n, near_wrong);
    report("exp_low", n, low_wrong);
}
