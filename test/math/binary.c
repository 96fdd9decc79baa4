// pow, atan2, hypot, fmod, nextafter, ldexp.
#include <math.h>
#include <stdio.h>

#include "judge.h"
#include "test_math.h"

typedef struct {
    const char *name;
    float (*f32)(float, float);
    double (*f64)(double, double);
    double limit;
    double (*wide)(double, double);
    long double (*wider)(long double, long double);
    int (*exact)(mpfr_t, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);
} judge_binary;

static const judge_binary binaries[] = {
    {"pow", lfm_pow_f32, lfm_pow_f64, 4, pow, powl, mpfr_pow},
    {"atan2", lfm_atan2_f32, lfm_atan2_f64, 2, atan2, atan2l, mpfr_atan2},
    {"hypot", lfm_hypot_f32, lfm_hypot_f64, 2, hypot, hypotl, mpfr_hypot},
    {"fmod", lfm_fmod_f32, lfm_fmod_f64, 0, fmod, fmodl, mpfr_fmod},
};

static double exact(const judge_binary *j, double x, double y, double got, int digits, int least) {
    mpfr_t a, b, r;
    mpfr_inits2(256, a, b, r, (mpfr_ptr)0);
    mpfr_set_d(a, x, MPFR_RNDN);
    mpfr_set_d(b, y, MPFR_RNDN);
    j->exact(r, a, b, MPFR_RNDN);
    double ulps = judge_ulp_mpfr(r, got, digits, least);
    mpfr_clears(a, b, r, (mpfr_ptr)0);
    return ulps;
}

static double worst[2][4];
static void check(int i, double x, double y) {
    const judge_binary *j = &binaries[i];
    double got = j->f64(x, y), ulps = judge_ulp64(got, j->wider(x, y));
    if (ulps > j->limit) ulps = exact(j, x, y, got, 53, -1022);
    float xf = (float)x, yf = (float)y, gotf = j->f32(xf, yf);
    double ulpsf = judge_ulp32(gotf, j->wide(xf, yf));
    if (ulpsf > j->limit) ulpsf = exact(j, xf, yf, gotf, 24, -126);
    if (ulps > worst[1][i]) worst[1][i] = ulps;
    if (ulpsf > worst[0][i]) worst[0][i] = ulpsf;
    test_math_checks += 2;
    test_math_failures += (ulps > j->limit) + (ulpsf > j->limit);
    if (ulps > j->limit) printf("FAIL f64 %s(%a, %a) = %a: %g ulp\n", j->name, x, y, got, ulps);
    if (ulpsf > j->limit) printf("FAIL f32 %s(%a, %a) = %a: %g ulp\n", j->name, xf, yf, gotf, ulpsf);
}

static bool equal(double a, double b) { return (a == b && !signbit(a) == !signbit(b)) || (a != a && b != b); }
static void check_bits(const char *name, double x, double y, double got, double want) {
    test_math_checks++;
    if (equal(got, want)) return;
    test_math_failures++;
    printf("FAIL %s(%a, %a): got %a, want %a\n", name, x, y, got, want);
}
static void check_exact(double x, double y) {
    check_bits("nextafter f64", x, y, lfm_nextafter_f64(x, y), nextafter(x, y));
    check_bits("nextafter f32", x, y, lfm_nextafter_f32((float)x, (float)y), nextafterf((float)x, (float)y));
    int64_t n = y != y ? 0 : y > 1e18 ? INT64_MAX : y < -1e18 ? INT64_MIN : (int64_t)y;
    int m = n > 100000 ? 100000 : n < -100000 ? -100000 : (int)n;
    check_bits("ldexp f64", x, (double)n, lfm_ldexp_f64(x, n), ldexp(x, m));
    check_bits("ldexp f32", x, (double)n, lfm_ldexp_f32((float)x, n), ldexpf((float)x, m));
}

static const double values[] = {
    0,
    0x1p-1074,
    0x1p-1022,
    0x1p-149,
    6.41570489e-40,
    0x1p-126,
    0.262532264,
    0.5,
    1,
    1.5,
    0x1.fffffffffffffp-1,
    0x1.0000000000001p0,
    2,
    3,
    5,
    0x1p31,
    0x1p53,
    0x1.0000000000001p53,
    1e300,
    2.07483992e169,
    8.98846567e307,
    1.2e308,
    1.5e-314,
    0x1.fffffep127,
    0x1.fffffffffffffp1023,
    0x1.8p600,
    41713.9336,
    41679.3398,
    -52,
    -1022,
    -1074,
    -150,
    126,
    277,
    INFINITY,
    NAN,
};

static uint64_t state = 3;
static uint64_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state ^ state >> 31) * 0x9e3779b97f4a7c15;
}

void test_math_binary(int pairs) {
    int before = test_math_failures;
    unsigned n = sizeof values / sizeof values[0];
    for (unsigned a = 0; a < n; a++)
        for (unsigned b = 0; b < n; b++)
            for (int s = 0; s < 4; s++) {
                double x = s & 1 ? -values[a] : values[a], y = s & 2 ? -values[b] : values[b];
                for (int i = 0; i < 4; i++) check(i, x, y);
                check_exact(x, y);
            }
    for (int k = 0; k < pairs; k++) {
        uint64_t r = next(), q = next();
        double x = double_bits(r), y = double_bits(q);
        if (k % 3) { // the range of floats, and near each other
            int e = (int)(r >> 20 & 255) - 127;
            x = double_bits((r & 0x800fffffffffffff) | (uint64_t)(1023 + e) << 52);
            y = double_bits((q & 0x800fffffffffffff) | (uint64_t)(1023 + (k % 3 == 1 ? (int)(q >> 20 & 15) - 8 : e)) << 52);
        }
        for (int i = 1; i < 4; i++) check(i, x, y);
        check(0, fabs(x), y);
        check(0, double_bits((r & 0xfffffffffffff) | 1023ull << 52), y);
        check_exact(x, (double)((int)(q >> 40 & 4095) - 2048));
        check_exact(x, y);
    }
    for (int i = 0; i < 4; i++)
        printf("%-4s %-8s max f32 %.4f, f64 %.4f ulp\n", test_math_failures == before ? "ok" : "", binaries[i].name,
               worst[0][i], worst[1][i]);
}
