// Special values of every unary function, and the arguments that libclc gets wrong, with their right values.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "test_math.h"

static void fail(const char *name, const char *type, double x, double got, const char *want) {
    test_math_failures++;
    printf("FAIL %s %s(%a): got %a, want %s\n", type, name, x, got, want);
}

// MPFR knows the special values, but for these.
static bool same_sign(double a, double b) { return !signbit(a) == !signbit(b); }
static bool overridden(const char *name, double x, double *want) {
    if (strcmp(name, "digamma") == 0 && x == 0) return *want = copysign(INFINITY, -x), true;
    if (strcmp(name, "digamma") == 0 && x == -INFINITY) return *want = NAN, true;
    if (strcmp(name, "erfinv") == 0) {
        if (x == 0) return *want = x, true;
        if (fabs(x) == 1) return *want = copysign(INFINITY, x), true;
        if (!(fabs(x) < 1)) return *want = NAN, true;
    }
    return false;
}

static void check_special(const judge_unary *j, double x) {
    double want, got = j->f64(x);
    bool same, known = overridden(j->name, x, &want);
    test_math_checks++;
    same =
        known ? (got == want && same_sign(got, want)) || (got != got && want != want) : judge_exact64(j, x, got) <= j->limit;
    if (!same) fail(j->name, "f64", x, got, known ? "the C value" : "MPFR's");
    float x32 = (float)x, got32 = j->f32(x32);
    test_math_checks++;
    known = overridden(j->name, x32, &want);
    same = known ? ((double)got32 == want && same_sign(got32, want)) || (got32 != got32 && want != want)
                 : judge_exact32(j, x32, got32) <= j->limit;
    if (!same) fail(j->name, "f32", x32, got32, known ? "the C value" : "MPFR's");
}

static const double values[] = {
    0,
    0x1p-1074,
    0x1p-149,
    0x1p-126,
    0x1p-1022,
    0x1p-64,
    0x1p-70,
    1e-40,
    1e-310,
    0.5,
    1,
    1.5,
    2,
    3,
    10,
    22,
    89,
    104,
    150,
    171,
    710,
    746,
    1024,
    1075,
    0x1p23,
    0x1p24,
    0x1p31,
    0x1p32,
    0x1p52,
    0x1p53,
    0x1p63,
    0x1p64,
    0x1p100,
    0x1.fffffep127,
    0x1.fffffffffffffp1023,
    INFINITY,
    NAN,
};

// What libclc.md lists: name, argument, right value. As floats where f is set.
static const struct {
    const char *name;
    bool f;
    double x, want;
} holes[] = {
    {"exp", true, -87.3365479f, 1.17549071e-38f},
    {"exp2", true, -126.000008f, 1.17548819e-38f},
    {"erfc", true, 9.34765625f, 6.76385749e-40f},
    {"sin", true, 2178575.25f, 0.124929041f},
    {"cos", true, 1127308.75f, 0.062497329f},
    {"tan", true, 5977872.0f, -0.9633497f},
    {"sinh", true, 7.61526299f, 1014.46387f},
    {"cosh", true, 5.50203848f, 122.597656f},
    {"tanh", true, 8.31776714f, 0.999999881f},
    {"erfc", true, 1.31777048f, 0.0623766482f},
    {"erfc", false, 2.0406775666693635, 0.0039022932276982377},
    {"lgamma", true, -8.47032947e-22f, 48.5203018f},
    {"lgamma", true, -8.00002575f, -0.0375512764f},
    {"lgamma", false, -16.00000000000027, -1.731528779490386},
    {"lgamma", false, -0.2265373876652893, 1.6633375730390785},
    {"lgamma", true, -INFINITY, INFINITY},
    {"tgamma", true, 34.4482841f, 4.20381005e37f},
    {"tgamma", false, 10, 362880},
    {"tgamma", true, -1e-40f, -INFINITY},
    {"tgamma", false, -1e-310, -INFINITY},
    {"tgamma", true, -35.5f, 5.08475161e-41f},
    {"tgamma", true, -100.5f, -0.0f},
    {"tgamma", false, -171.5, 1.9316265431711902e-310},
    {"sinh", false, 0x1p31, INFINITY},
    {"cosh", false, -INFINITY, INFINITY},
    {"sinh", false, -0x1p40, -INFINITY},
};

static void check_hole(const judge_unary *j, bool f, double x, double want) {
    double got = f ? j->f32((float)x) : j->f64(x);
    double step =
        f ? nextafterf((float)fabs(want), INFINITY) - (float)fabs(want) : nextafter(fabs(want), INFINITY) - fabs(want);
    test_math_checks++;
    // The written value is right to about an ulp; the sweeps judge the limits.
    bool same = got == want ? same_sign(got, want) : fabs(got - want) <= 2 * step;
    char text[40];
    snprintf(text, sizeof text, "%a", want);
    if (!same) fail(j->name, f ? "f32" : "f64", x, got, text);
}

void test_math_special(void) {
    int before = test_math_failures;
    for (int i = 0; i < judge_unary_count; i++) {
        const judge_unary *j = &judge_unaries[i];
        for (unsigned k = 0; k < sizeof values / sizeof values[0]; k++) {
            check_special(j, values[k]);
            check_special(j, -values[k]);
        }
        for (int n = -220; n < 220; n++) check_special(j, n * 0.5);
        for (unsigned k = 0; k < sizeof holes / sizeof holes[0]; k++)
            if (strcmp(holes[k].name, j->name) == 0) check_hole(j, holes[k].f, holes[k].x, holes[k].want);
    }
    if (test_math_failures == before) printf("ok   special values and libclc's holes\n");
}
