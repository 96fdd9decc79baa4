// Tests of lib/math: quick by default (a slice of all floats, some hundred thousand doubles, exact cases); --long
// sweeps all 2^32 floats, --dense all from 2^-26 to 2^8 and a slice of the rest. --f32, --f64, --stride=N, --doubles=N
// and names of functions (or of the groups special, forms, half, binary, complex) limit what is run.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "judge.h"
#include "test_math.h"

#include <math.h>

int test_math_checks, test_math_failures;

static bool wanted(const char *name, int argc, char **argv) {
    bool any = false;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') continue;
        any = true;
        if (strcmp(argv[i], name) == 0) return true;
    }
    return !any;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct {
    double worst, worst_at;
    uint64_t inputs, over;
} measure;

static void note(measure *m, double ulps, double x, double limit) {
    m->inputs++;
    m->over += !(ulps <= limit);
    if (ulps > m->worst) m->worst = ulps, m->worst_at = x;
}

// Every stride-th float, of one sign only where the other follows by symmetry (which is checked bit by bit); with
// dense set, all floats from 2^-26 to 2^8, where functions do most of what they do.
static measure sweep_f32(const judge_unary *j, uint32_t stride, bool dense) {
    measure m = {0};
    uint64_t end = j->odd || j->even ? 0x7f800001ull : 1ull << 32;
    for (uint64_t i = stride / 3; i < end; i += dense && (i >> 23 & 255) - 101 < 34 ? 1 : stride) {
        float x = float_bits((uint32_t)i), got = j->f32(x);
        double truth = j->wide(x);
        double ulps = judge_ulp32(got, truth);
        // The wide judge errs by far less than this margin; MPFR has the last word on a failure.
        if (ulps > j->limit - 1e-4) ulps = judge_exact32(j, x, got);
        note(&m, ulps, x, j->limit);
        if ((j->odd || j->even) && x == x) {
            float mirror = j->f32(-x);
            union {
                float f;
                uint32_t u;
            } a = {mirror}, b = {j->odd ? -got : got};
            if (a.u != b.u && !(mirror != mirror && got != got)) note(&m, INFINITY, -x, j->limit);
        }
    }
    return m;
}

static double judge_double(const judge_unary *j, double x, bool exact) {
    double got = j->f64(x);
    if (exact || j->wider == NULL) return judge_exact64(j, x, got);
    long double truth = j->wider(x);
    double ulps = judge_allow(j, judge_ulp64(got, truth), got, (double)truth);
    return ulps > j->limit - 0.01 ? judge_exact64(j, x, got) : ulps;
}

static uint64_t random_state;
static uint64_t next_random(void) { // splitmix64
    uint64_t z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// A third each: any bit pattern, a binade near 1 (both signs), and uniform in ±(a power of two up to 1024).
static double random_double(void) {
    uint64_t r = next_random();
    switch (r % 3) {
    case 0: return double_bits(next_random());
    case 1: return double_bits((next_random() & 0x800fffffffffffff) | (uint64_t)(1023 - 30 + (int)(r / 3 % 41)) << 52);
    default: return ((double)(int64_t)next_random() * 0x1p-63) * (double)(1u << r / 3 % 11);
    }
}

static measure sweep_f64(const judge_unary *j, int count, bool slow) {
    measure m = {0};
    random_state = 1;
    int exact = slow ? count / 10 : count / 100;
    if (j->wider == NULL) count = exact;
    for (int i = 0; i < count; i++) {
        double x = random_double();
        note(&m, judge_double(j, x, i < exact), x, j->limit);
    }
    for (int i = 0; i < test_math_hard_count; i++) {
        for (int step = -3; step <= 3; step++) {
            union {
                double f;
                uint64_t u;
            } x = {test_math_hard[i]};
            x.u += (uint64_t)(int64_t)step;
            note(&m, judge_double(j, x.f, true), x.f, j->limit);
            note(&m, judge_double(j, -x.f, true), -x.f, j->limit);
        }
    }
    return m;
}

static void report(const char *name, const char *type, measure m, double limit, double time) {
    bool bad = m.over != 0;
    test_math_checks++;
    test_math_failures += bad;
    printf("%-4s %-8s %s  max %.4f ulp at %a (%.17g), %llu inputs, %llu over %g, %.2f s\n", bad ? "FAIL" : "ok", name, type,
           m.worst, m.worst_at, m.worst_at, (unsigned long long)m.inputs, (unsigned long long)m.over, limit, time);
    fflush(stdout);
}

int main(int argc, char **argv) {
    uint32_t stride = 509;
    int doubles = 20000;
    bool only32 = false, only64 = false, dense = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--long") == 0) stride = 1, doubles = 3000000;
        if (strcmp(argv[i], "--dense") == 0) dense = true, stride = 97;
        if (strncmp(argv[i], "--stride=", 9) == 0) stride = (uint32_t)atoi(argv[i] + 9);
        if (strncmp(argv[i], "--doubles=", 10) == 0) doubles = atoi(argv[i] + 10);
        if (strcmp(argv[i], "--f32") == 0) only32 = true;
        if (strcmp(argv[i], "--f64") == 0) only64 = true;
    }
    for (int i = 0; i < judge_unary_count; i++) {
        const judge_unary *j = &judge_unaries[i];
        if (!wanted(j->name, argc, argv)) continue;
        double t = seconds();
        if (!only64) {
            measure m = sweep_f32(j, stride, dense);
            report(j->name, "f32", m, j->limit, seconds() - t);
        }
        t = seconds();
        if (!only32) {
            measure m = sweep_f64(j, doubles, doubles > 1000000);
            report(j->name, "f64", m, j->limit, seconds() - t);
        }
    }
    if (!only32 && !only64) {
        if (wanted("special", argc, argv)) test_math_special();
        if (wanted("forms", argc, argv)) test_math_forms(stride > 251 ? 251 : stride);
        if (wanted("half", argc, argv)) test_math_half();
        if (wanted("binary", argc, argv)) test_math_binary(doubles);
        if (wanted("complex", argc, argv)) test_math_complex(doubles);
    }
    printf("%d passed, %d failed\n", test_math_checks - test_math_failures, test_math_failures);
    return test_math_failures != 0;
}
