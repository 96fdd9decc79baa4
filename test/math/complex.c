// Complex functions: the distance from the true value in ulps of its modulus, by MPFR with 400 bits.
#include <math.h>
#include <stdio.h>

#include "judge.h"
#include "test_math.h"

enum { precision = 400, limit = 8 };

typedef struct {
    mpfr_t re, im;
} big;

static void b_init(big *z) { mpfr_inits2(precision, z->re, z->im, (mpfr_ptr)0); }
static void b_clear(big *z) { mpfr_clears(z->re, z->im, (mpfr_ptr)0); }
static void b_set(big *z, const big *a) {
    mpfr_set(z->re, a->re, MPFR_RNDN);
    mpfr_set(z->im, a->im, MPFR_RNDN);
}
static void b_mul(big *r, const big *a, const big *b) {
    mpfr_t x, y;
    mpfr_inits2(precision, x, y, (mpfr_ptr)0);
    mpfr_fmms(x, a->re, b->re, a->im, b->im, MPFR_RNDN);
    mpfr_fmma(y, a->re, b->im, a->im, b->re, MPFR_RNDN);
    mpfr_set(r->re, x, MPFR_RNDN);
    mpfr_set(r->im, y, MPFR_RNDN);
    mpfr_clears(x, y, (mpfr_ptr)0);
}
static void b_invert(big *r, const big *a) {
    mpfr_t m;
    mpfr_init2(m, precision);
    mpfr_fmma(m, a->re, a->re, a->im, a->im, MPFR_RNDN);
    mpfr_div(r->re, a->re, m, MPFR_RNDN);
    mpfr_div(r->im, a->im, m, MPFR_RNDN);
    mpfr_neg(r->im, r->im, MPFR_RNDN);
    mpfr_clear(m);
}
static void b_rotate(big *r, int quarters) { // times i^quarters
    for (; quarters > 0; quarters--) {
        mpfr_swap(r->re, r->im);
        mpfr_neg(r->re, r->re, MPFR_RNDN);
    }
}
static void b_exp(big *r) {
    mpfr_t e, s, c;
    mpfr_inits2(precision, e, s, c, (mpfr_ptr)0);
    mpfr_exp(e, r->re, MPFR_RNDN);
    mpfr_sin_cos(s, c, r->im, MPFR_RNDN);
    mpfr_mul(r->re, e, c, MPFR_RNDN);
    mpfr_mul(r->im, e, s, MPFR_RNDN);
    mpfr_clears(e, s, c, (mpfr_ptr)0);
}
static void b_hyperbolic(big *r, bool cosine) { // sinh, or cosh
    mpfr_t sh, ch, s, c;
    mpfr_inits2(precision, sh, ch, s, c, (mpfr_ptr)0);
    mpfr_sinh_cosh(sh, ch, r->re, MPFR_RNDN);
    mpfr_sin_cos(s, c, r->im, MPFR_RNDN);
    mpfr_mul(r->re, cosine ? ch : sh, c, MPFR_RNDN);
    mpfr_mul(r->im, cosine ? sh : ch, s, MPFR_RNDN);
    mpfr_clears(sh, ch, s, c, (mpfr_ptr)0);
}
static void b_tanh(big *r) {
    // Far out it is ±1 to all digits, where cosh would leave even MPFR's range.
    if (mpfr_cmp_si(r->re, 10000) > 0) mpfr_set_si(r->re, 10000, MPFR_RNDN);
    if (mpfr_cmp_si(r->re, -10000) < 0) mpfr_set_si(r->re, -10000, MPFR_RNDN);
    big c;
    b_init(&c);
    b_set(&c, r);
    b_hyperbolic(&c, true);
    b_invert(&c, &c);
    b_hyperbolic(r, false);
    b_mul(r, r, &c);
    b_clear(&c);
}
static void b_log(big *r) {
    mpfr_t m;
    mpfr_init2(m, precision);
    mpfr_fmma(m, r->re, r->re, r->im, r->im, MPFR_RNDN);
    mpfr_log(m, m, MPFR_RNDN);
    mpfr_atan2(r->im, r->im, r->re, MPFR_RNDN);
    mpfr_div_2ui(r->re, m, 1, MPFR_RNDN);
    mpfr_clear(m);
}
static void b_divide_log(big *r, unsigned base) {
    mpfr_t m;
    mpfr_init2(m, precision);
    mpfr_log_ui(m, base, MPFR_RNDN);
    mpfr_div(r->re, r->re, m, MPFR_RNDN);
    mpfr_div(r->im, r->im, m, MPFR_RNDN);
    mpfr_clear(m);
}
static void b_sqrt(big *r) {
    b_log(r);
    mpfr_div_2ui(r->re, r->re, 1, MPFR_RNDN);
    mpfr_div_2ui(r->im, r->im, 1, MPFR_RNDN);
    b_exp(r);
}

static void t_exp(big *r) { b_exp(r); }
static void t_exp2(big *r) {
    mpfr_t m;
    mpfr_init2(m, precision);
    mpfr_const_log2(m, MPFR_RNDN);
    mpfr_mul(r->re, r->re, m, MPFR_RNDN);
    mpfr_mul(r->im, r->im, m, MPFR_RNDN);
    mpfr_clear(m);
    b_exp(r);
}
static void t_log(big *r) { b_log(r); }
static void t_log2(big *r) { b_log(r), b_divide_log(r, 2); }
static void t_log10(big *r) { b_log(r), b_divide_log(r, 10); }
static void t_sqrt(big *r) { b_sqrt(r); }
static void t_rsqrt(big *r) { b_sqrt(r), b_invert(r, r); }
static void t_reciprocal(big *r) { b_invert(r, r); }
static void t_sinh(big *r) { b_hyperbolic(r, false); }
static void t_cosh(big *r) { b_hyperbolic(r, true); }
static void t_tanh(big *r) { b_tanh(r); }
static void t_sin(big *r) { b_rotate(r, 1), b_hyperbolic(r, false), b_rotate(r, 3); }
static void t_cos(big *r) { b_rotate(r, 1), b_hyperbolic(r, true); }
static void t_tan(big *r) { b_rotate(r, 1), b_tanh(r), b_rotate(r, 3); }
static void t_sigmoid(big *r) {
    b_rotate(r, 2);
    b_exp(r);
    mpfr_add_ui(r->re, r->re, 1, MPFR_RNDN);
    b_invert(r, r);
}

typedef struct {
    const char *name;
    void (*f32)(float, float, float *, float *);
    void (*f64)(double, double, double *, double *);
    void (*truth)(big *);
} row;
static const row rows[] = {
#define LFM_CUNARY(n) {#n, lfm_c##n##_f32, lfm_c##n##_f64, t_##n},
#include "math/functions.def"
};
enum { row_count = sizeof rows / sizeof rows[0] };

static double worst[row_count + 2][2], worst_at[row_count + 2][2][4];

// The distance in ulps of the modulus, for parts that the component type can hold.
static void judge(int i, const char *name, int t, const big *truth, double re, double im, const double *args) {
    long top = t ? 1024 : 128, digits = t ? 53 : 24, least = t ? -1022 : -126;
    mpfr_t m, d, e;
    mpfr_inits2(precision, m, d, e, (mpfr_ptr)0);
    mpfr_hypot(m, truth->re, truth->im, MPFR_RNDN);
    long exponent = mpfr_regular_p(m) ? mpfr_get_exp(m) - 1 : least;
    if (mpfr_number_p(m) && exponent < top - 1) { // an overflow of a part is judged by the real functions
        mpfr_d_sub(d, re, truth->re, MPFR_RNDN);
        mpfr_d_sub(e, im, truth->im, MPFR_RNDN);
        mpfr_hypot(d, d, e, MPFR_RNDN);
        mpfr_mul_2si(d, d, digits - 1 - (exponent < least ? least : exponent), MPFR_RNDN);
        double ulps = mpfr_get_d(d, MPFR_RNDN);
        if (ulps != ulps) ulps = INFINITY;
        test_math_checks++;
        if (ulps > worst[i][t]) {
            worst[i][t] = ulps;
            for (int k = 0; k < 4; k++) worst_at[i][t][k] = args[k];
        }
        if (ulps > limit) {
            if (test_math_failures++ < 40)
                printf("FAIL %s c%s(%a%+ai, %a%+ai) = %a%+ai: %g ulp\n", t ? "f64" : "f32", name, args[0], args[1], args[2],
                       args[3], re, im, ulps);
        }
    }
    mpfr_clears(m, d, e, (mpfr_ptr)0);
}

static void check_unary(int i, double re, double im) {
    for (int t = 0; t < 2; t++) {
        float re32 = (float)re, im32 = (float)im;
        double args[4] = {re32, im32, 0, 0};
        if (t) args[0] = re, args[1] = im;
        if (!isfinite(args[0]) || !isfinite(args[1])) continue;
        double got_re, got_im;
        if (t) {
            rows[i].f64(re, im, &got_re, &got_im);
        } else {
            float a, b;
            rows[i].f32(re32, im32, &a, &b);
            got_re = a, got_im = b;
        }
        big z;
        b_init(&z);
        mpfr_set_d(z.re, args[0], MPFR_RNDN);
        mpfr_set_d(z.im, args[1], MPFR_RNDN);
        rows[i].truth(&z);
        judge(i, rows[i].name, t, &z, got_re, got_im, args);
        b_clear(&z);
    }
}

static void check_pow(double are, double aim, double bre, double bim) {
    for (int t = 0; t < 2; t++) {
        double args[4] = {are, aim, bre, bim}, got_re, got_im;
        if (t) {
            lfm_cpow_f64(are, aim, bre, bim, &got_re, &got_im);
        } else {
            float a, b;
            for (int k = 0; k < 4; k++) args[k] = (float)args[k];
            lfm_cpow_f32((float)are, (float)aim, (float)bre, (float)bim, &a, &b);
            got_re = a, got_im = b;
        }
        big z, w;
        b_init(&z), b_init(&w);
        mpfr_set_d(z.re, args[0], MPFR_RNDN);
        mpfr_set_d(z.im, args[1], MPFR_RNDN);
        mpfr_set_d(w.re, args[2], MPFR_RNDN);
        mpfr_set_d(w.im, args[3], MPFR_RNDN);
        b_log(&z);
        b_mul(&z, &z, &w);
        b_exp(&z);
        judge(row_count, "pow", t, &z, got_re, got_im, args);
        b_clear(&z), b_clear(&w);
    }
}

static uint64_t state = 11;
static double next_uniform(void) { // in ±1
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)((state ^ state >> 29) * 0x9e3779b97f4a7c15) * 0x1p-63;
}

static const double parts[] = {0,    0x1p-140, 1e-30, 1e-9, 0.5, 1,  1.5707963267948966, 3.14159265358979, 20,
                               29.9, 30.1,     87,    100,  600, 1e5};

void test_math_complex(int count) {
    int before = test_math_failures;
    for (int i = 0; i < row_count; i++) {
        for (unsigned a = 0; a < sizeof parts / sizeof parts[0]; a++)
            for (unsigned b = 0; b < sizeof parts / sizeof parts[0]; b++)
                for (int s = 0; s < 4; s++) {
                    double re = s & 1 ? -parts[a] : parts[a], im = s & 2 ? -parts[b] : parts[b];
                    if (re == 0 && im == 0) continue; // poles
                    check_unary(i, re, im);
                }
        for (int k = 0; k < count / 20; k++) {
            double size = k % 4 == 0 ? 1 : exp2(next_uniform() * (k % 4 == 1 ? 30 : 6)), angle = 3.2 * next_uniform();
            // on the unit circle and near it, anywhere, near the poles of tan and sigmoid
            if (k % 5 == 4)
                check_unary(i, next_uniform() * 0x1p-20, (double)(k % 7) * 1.5707963267948966 + next_uniform() * 0x1p-20);
            else
                check_unary(i, size * cos(angle), size * sin(angle));
        }
    }
    for (int k = 0; k < count / 10; k++) {
        double size = exp2(next_uniform() * 8), angle = 3.2 * next_uniform();
        if (k % 3 == 0) size = 1 + next_uniform() * 0x1p-10;
        double w = k % 2 ? 3 : 60;
        check_pow(size * cos(angle), size * sin(angle), w * next_uniform(), w * next_uniform());
    }
    for (int i = 0; i <= row_count; i++)
        printf("%-4s c%-10s max f32 %.3f at (%a, %a), f64 %.3f ulp of the modulus at (%a, %a; %a, %a)\n",
               test_math_failures == before ? "ok" : "", i < row_count ? rows[i].name : "pow", worst[i][0],
               worst_at[i][0][0], worst_at[i][0][1], worst[i][1], worst_at[i][1][0], worst_at[i][1][1], worst_at[i][1][2],
               worst_at[i][1][3]);
}
