// Judges of elementwise programs and of sums: the same formulas in f64, at sampled places, by code of its own.
#include "judge.h"
#include "ir/dtype.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- reading and comparing

double bench_element(const bench_array *a, uint64_t at) {
    switch (a->dtype) {
    case LFUSER_F32: return ((const float *)a->host)[at];
    case LFUSER_F64: return ((const double *)a->host)[at];
    case LFUSER_BF16: {
        uint32_t bits = (uint32_t)((const uint16_t *)a->host)[at] << 16;
        float f;
        memcpy(&f, &bits, 4);
        return f;
    }
    case LFUSER_F16: return lf_half_to_f32(LF_F16, ((const uint16_t *)a->host)[at]);
    case LFUSER_I64: return (double)((const int64_t *)a->host)[at];
    case LFUSER_U64: return (double)((const uint64_t *)a->host)[at];
    case LFUSER_I32: return ((const int32_t *)a->host)[at];
    case LFUSER_U32: return ((const uint32_t *)a->host)[at];
    case LFUSER_I16: return ((const int16_t *)a->host)[at];
    case LFUSER_U16: return ((const uint16_t *)a->host)[at];
    case LFUSER_I8: return ((const int8_t *)a->host)[at];
    case LFUSER_U8:
    case LFUSER_BOOL: return ((const uint8_t *)a->host)[at];
    default: return NAN;
    }
}

// What an element may be off, in units of the dtype's last place: halves are rounded a few times on the way; f32 sums add up
// errors, and fast mode may use functions of 11 bits.
double bench_allowed(lfuser_dtype d) {
    switch (d) {
    case LFUSER_BF16: return 4 * 0x1p-8;
    case LFUSER_F16: return 4 * 0x1p-11;
    case LFUSER_F32: return 64 * 0x1p-23;
    case LFUSER_F64: return 1024 * 0x1p-52;
    default: return 0;
    }
}

void bench_next_output(bench_verdict *v, const void *of) {
    double relative = v->square_want > 0 ? sqrt(v->square_off / v->square_want) : sqrt(v->square_off);
    v->relative = fmax(v->relative, relative);
    v->square_off = v->square_want = 0;
    v->of = of;
}

void bench_compare(bench_verdict *v, const bench_array *a, uint64_t at, double want, double scale) {
    double got = bench_element(a, at), off = fabs(got - want), room = bench_allowed(a->dtype) * (fabs(want) + scale);
    double error = off == 0 || (isnan(got) && isnan(want)) ? 0 : room > 0 ? off / room : INFINITY;
    if (v->of != a->host) bench_next_output(v, a->host);
    v->looked_at++;
    if (!(error <= v->error)) v->error = isnan(error) ? INFINITY : error;
    if (!(error <= 1)) {
        v->ok = false;
        if (!v->wrong++) {
            snprintf(v->what, sizeof v->what, "%%%s element %llu is %.9g, f64 says %.9g", a->name ? a->name : "?",
                     (unsigned long long)at, got, want);
        }
    }
    if (isfinite(off) && isfinite(want)) v->square_off += off * off, v->square_want += want * want;
}

uint64_t bench_sample(uint64_t k, uint64_t of, uint64_t n) {
    if (of >= n) return k;
    if (k < 2) return k;
    if (k < 4) return n - 1 - (k - 2);
    return (uint64_t)(((unsigned __int128)bench_random(99, k) * n) >> 64);
}

void bench_span(const bench_array *a, uint64_t at, uint64_t n, double *to) {
    for (uint64_t i = 0; i < n; i++) to[i] = bench_element(a, at + i);
}

double bench_sum(const double *x, uint64_t n) {
    double s = 0;
    for (uint64_t i = 0; i < n; i++) s += x[i];
    return s;
}

double bench_mean(const double *x, uint64_t n, double *out_variance) {
    double mean = bench_sum(x, n) / (double)n, v = 0;
    for (uint64_t i = 0; i < n; i++) v += (x[i] - mean) * (x[i] - mean);
    *out_variance = v / (double)n;
    return mean;
}

// ---- elementwise

void bench_judge_silu_mul(bench_case *c, bench_verdict *v) {
    const bench_array *x = bench_param(c, "x"), *y = bench_param(c, "y");
    for (uint64_t k = 0; k < bench_samples(BENCH_ELEMENTS, x->count); k++) {
        uint64_t i = bench_sample(k, BENCH_ELEMENTS, x->count);
        double a = bench_element(x, i);
        bench_compare(v, c->outputs, i, a / (1 + exp(-a)) * bench_element(y, i), 0);
    }
}

void bench_judge_bias_gelu(bench_case *c, bench_verdict *v) {
    const bench_array *x = bench_param(c, "x"), *b = bench_param(c, "b");
    for (uint64_t k = 0; k < bench_samples(BENCH_ELEMENTS, x->count); k++) {
        uint64_t i = bench_sample(k, BENCH_ELEMENTS, x->count);
        double s = bench_element(x, i) + bench_element(b, i % b->count);
        bench_compare(v, c->outputs, i, 0.5 * s * (1 + tanh(0.7978845608028654 * (s + 0.044715 * s * s * s))), fabs(s) / 2);
    }
}

void bench_judge_transpose_add(bench_case *c, bench_verdict *v) {
    const bench_array *x = bench_param(c, "x"), *y = bench_param(c, "y");
    uint64_t rows = (uint64_t)y->shape[0], columns = (uint64_t)y->shape[1];
    for (uint64_t k = 0; k < bench_samples(BENCH_ELEMENTS, y->count); k++) {
        uint64_t i = bench_sample(k, BENCH_ELEMENTS, y->count), turned = i % columns * rows + i / columns;
        bench_compare(v, c->outputs, i, bench_element(x, turned) + bench_element(y, i), 0);
    }
}

void bench_judge_rope(bench_case *c, bench_verdict *v) {
    const bench_array *q = bench_param(c, "q"), *cosine = bench_param(c, "c"), *sine = bench_param(c, "sn");
    for (uint64_t k = 0; k < bench_samples(BENCH_ELEMENTS, q->count); k++) {
        uint64_t i = bench_sample(k, BENCH_ELEMENTS, q->count), at = i % cosine->count;
        double other = i % 128 < 64 ? -bench_element(q, i + 64) : bench_element(q, i - 64);
        double a = bench_element(q, i) * bench_element(cosine, at), b = other * bench_element(sine, at);
        bench_compare(v, c->outputs, i, a + b, fabs(a) + fabs(b));
    }
}

// ---- sums

// Where numbers of both signs are added, errors are as large as the numbers, not as the sum.
static double size_of_sum(const double *x, uint64_t n) {
    double s = 0;
    for (uint64_t i = 0; i < n; i++) s += x[i] * x[i];
    return sqrt(s);
}

void bench_judge_sum_inner(bench_case *c, bench_verdict *v) {
    const bench_array *x = bench_param(c, "x");
    uint64_t rows = (uint64_t)x->shape[0], columns = (uint64_t)x->shape[1];
    double *row = bench_alloc(columns * sizeof *row);
    for (uint64_t k = 0; k < bench_samples(4 * BENCH_ROWS, rows); k++) {
        uint64_t r = bench_sample(k, 4 * BENCH_ROWS, rows);
        bench_span(x, r * columns, columns, row);
        bench_compare(v, c->outputs, r, bench_sum(row, columns), size_of_sum(row, columns));
    }
    free(row);
}

void bench_judge_sum_outer(bench_case *c, bench_verdict *v) {
    const bench_array *x = bench_param(c, "x");
    uint64_t rows = (uint64_t)x->shape[0], columns = (uint64_t)x->shape[1];
    double *column = bench_alloc(rows * sizeof *column);
    for (uint64_t k = 0; k < bench_samples(4 * BENCH_ROWS, columns); k++) {
        uint64_t at = bench_sample(k, 4 * BENCH_ROWS, columns);
        for (uint64_t r = 0; r < rows; r++) column[r] = bench_element(x, r * columns + at);
        bench_compare(v, c->outputs, at, bench_sum(column, rows), size_of_sum(column, rows));
    }
    free(column);
}

typedef struct total {
    const bench_array *x;
    uint64_t rows, columns;
    double *sums; // a row: sum, and sum of squares
} total;

static void total_rows(void *arg, uint64_t begin, uint64_t end) {
    total *t = arg;
    for (uint64_t r = begin; r < end; r++)
        for (uint64_t i = 0; i < t->columns; i++) {
            double x = bench_element(t->x, r * t->columns + i);
            t->sums[2 * r] += x;
            t->sums[2 * r + 1] += x * x;
        }
}

void bench_judge_sum_all(bench_case *c, bench_verdict *v) {
    const bench_array *x = bench_param(c, "x");
    total t = {x, (uint64_t)x->shape[0], (uint64_t)x->shape[1], bench_alloc(2 * (size_t)x->shape[0] * sizeof(double))};
    double sum = 0, squares = 0;
    bench_parallel(t.rows, 16, total_rows, &t);
    for (uint64_t r = 0; r < t.rows; r++) sum += t.sums[2 * r], squares += t.sums[2 * r + 1];
    bench_compare(v, c->outputs, 0, sum, sqrt(squares));
    free(t.sums);
}
