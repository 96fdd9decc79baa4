// Judges of programs that normalise rows.
#include "judge.h"
#include <math.h>
#include <stdlib.h>

// ---- softmax, layer norm, rms norm

static double log_sum_exp(const double *x, uint64_t n, double *out_max) {
    double m = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < n; i++) m = fmax(m, x[i]);
    for (uint64_t i = 0; i < n; i++) sum += exp(x[i] - m);
    *out_max = m;
    return m + log(sum);
}

void bench_judge_softmax(bench_case *c, bench_verdict *v) {
    const bench_array *x = bench_param(c, "x");
    uint64_t rows = (uint64_t)x->shape[0], n = (uint64_t)x->shape[1];
    double *row = bench_alloc(n * sizeof *row), m;
    for (uint64_t k = 0; k < bench_samples(BENCH_ROWS, rows); k++) {
        uint64_t r = bench_sample(k, BENCH_ROWS, rows);
        bench_span(x, r * n, n, row);
        double log_sum = log_sum_exp(row, n, &m);
        for (uint64_t i = 0; i < n; i++) bench_compare(v, c->outputs, r * n + i, exp(row[i] - log_sum), 0);
    }
    free(row);
}

static const bench_array *optional_param(bench_case *c, const char *name) {
    for (size_t i = 0; i < c->n_params; i++)
        if (c->params[i].name[0] == name[0] && !c->params[i].name[1]) return &c->params[i];
    return NULL;
}

// Compares one row with (row - mean) · scale · w + b.
static void compare_norm(bench_case *c, bench_verdict *v, uint64_t r, const double *row, uint64_t n, double mean,
                         double scale) {
    const bench_array *w = optional_param(c, "w"), *b = optional_param(c, "b");
    for (uint64_t i = 0; i < n; i++) {
        double h = (row[i] - mean) * scale, weight = w ? bench_element(w, i) : 1, bias = b ? bench_element(b, i) : 0;
        bench_compare(v, c->outputs, r * n + i, h * weight + bias,
                      fabs(weight) * fabs(mean * scale) + fabs(h * weight) + fabs(bias) + 0x1p-6 * fabs(weight));
    }
}

void bench_judge_layernorm(bench_case *c, bench_verdict *v) {
    const bench_array *x = bench_param(c, "x");
    uint64_t rows = (uint64_t)x->shape[0], n = (uint64_t)x->shape[1];
    double *row = bench_alloc(n * sizeof *row), variance;
    for (uint64_t k = 0; k < bench_samples(BENCH_ROWS, rows); k++) {
        uint64_t r = bench_sample(k, BENCH_ROWS, rows);
        bench_span(x, r * n, n, row);
        double mean = bench_mean(row, n, &variance);
        compare_norm(c, v, r, row, n, mean, 1 / sqrt(variance + 1e-5));
    }
    free(row);
}

void bench_judge_rmsnorm(bench_case *c, bench_verdict *v) {
    const bench_array *x = bench_param(c, "x");
    uint64_t rows = (uint64_t)x->shape[0], n = (uint64_t)x->shape[1];
    double *row = bench_alloc(n * sizeof *row);
    for (uint64_t k = 0; k < bench_samples(BENCH_ROWS, rows); k++) {
        uint64_t r = bench_sample(k, BENCH_ROWS, rows);
        double squares = 0;
        bench_span(x, r * n, n, row);
        for (uint64_t i = 0; i < n; i++) squares += row[i] * row[i];
        compare_norm(c, v, r, row, n, 0, 1 / sqrt(squares / (double)n + 1e-5));
    }
    free(row);
}

// ---- dropout, add, layer norm

// Philox-4x32-10, the word of element e: written after the paper, apart from the library's.
static uint32_t philox_word(uint64_t key, uint64_t e) {
    uint32_t c0 = (uint32_t)(e >> 2), c1 = (uint32_t)(e >> 34), c2 = 0, c3 = 0, k0 = (uint32_t)key,
             k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = 0xd2511f53ull * c0, p1 = 0xcd9e8d57ull * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    uint32_t words[4] = {c0, c1, c2, c3};
    return words[e & 3];
}

void bench_judge_dropout_add_ln(bench_case *c, bench_verdict *v) {
    const bench_array *x = bench_param(c, "x"), *residual = bench_param(c, "r");
    uint64_t rows = (uint64_t)x->shape[0], n = (uint64_t)x->shape[1], seed = bench_param(c, "seed")->value.u64;
    double *row = bench_alloc(2 * n * sizeof *row), *other = row + n, variance;
    for (uint64_t k = 0; k < bench_samples(BENCH_ROWS, rows); k++) {
        uint64_t r = bench_sample(k, BENCH_ROWS, rows);
        bench_span(x, r * n, n, row);
        bench_span(residual, r * n, n, other);
        for (uint64_t i = 0; i < n; i++) {
            double u = (double)(philox_word(seed, r * n + i) >> 8) * 0x1p-24;
            row[i] = (u >= (double)0.1f ? row[i] / 0.9 : 0) + other[i];
        }
        double mean = bench_mean(row, n, &variance), scale = 1 / sqrt(variance + 1e-5);
        for (uint64_t i = 0; i < n; i++)
            bench_compare(v, c->outputs, r * n + i, (row[i] - mean) * scale, fabs(row[i]) * scale + fabs(other[i]) + 0x1p-6);
    }
    free(row);
}

// ---- cross entropy: every row counts

typedef struct rows {
    const bench_array *x, *labels, *dy, *w;
    uint64_t n;
    double *results;
} rows;

static void losses(void *arg, uint64_t begin, uint64_t end) {
    rows *t = arg;
    double *row = bench_alloc(t->n * sizeof *row), m;
    for (uint64_t r = begin; r < end; r++) {
        bench_span(t->x, r * t->n, t->n, row);
        t->results[r] = log_sum_exp(row, t->n, &m) - row[(uint64_t)bench_element(t->labels, r)];
    }
    free(row);
}

void bench_judge_xent(bench_case *c, bench_verdict *v) {
    rows t = {.x = bench_param(c, "x"), .labels = bench_param(c, "labels")};
    uint64_t n_rows = (uint64_t)t.x->shape[0];
    t.n = (uint64_t)t.x->shape[1];
    t.results = bench_alloc(n_rows * sizeof *t.results);
    bench_parallel(n_rows, 4, losses, &t);
    bench_compare(v, c->outputs, 0, bench_sum(t.results, n_rows) / (double)n_rows, 0);
    free(t.results);
}

// ---- layer norm backward

static void statistics(void *arg, uint64_t begin, uint64_t end) {
    rows *t = arg;
    double *row = bench_alloc(t->n * sizeof *row), variance;
    for (uint64_t r = begin; r < end; r++) {
        bench_span(t->x, r * t->n, t->n, row);
        t->results[2 * r] = bench_mean(row, t->n, &variance);
        t->results[2 * r + 1] = 1 / sqrt(variance + 1e-5);
    }
    free(row);
}

static void compare_dx(bench_case *c, bench_verdict *v, const rows *t, uint64_t r) {
    uint64_t n = t->n;
    double *xh = bench_alloc(2 * n * sizeof *xh), *g = xh + n, mean_g = 0, mean_gx = 0, scale = t->results[2 * r + 1];
    for (uint64_t i = 0; i < n; i++) {
        xh[i] = (bench_element(t->x, r * n + i) - t->results[2 * r]) * scale;
        g[i] = bench_element(t->dy, r * n + i) * bench_element(t->w, i);
        mean_g += g[i] / (double)n;
        mean_gx += g[i] * xh[i] / (double)n;
    }
    for (uint64_t i = 0; i < n; i++)
        bench_compare(v, &c->outputs[0], r * n + i, (g[i] - mean_g - xh[i] * mean_gx) * scale,
                      (fabs(g[i]) + fabs(mean_g) + fabs(xh[i] * mean_gx)) * scale);
    free(xh);
}

static void compare_column(bench_case *c, bench_verdict *v, const rows *t, uint64_t n_rows, uint64_t column) {
    double dw = 0, db = 0, w_size = 0, b_size = 0;
    for (uint64_t r = 0; r < n_rows; r++) {
        double d = bench_element(t->dy, r * t->n + column),
               xh = (bench_element(t->x, r * t->n + column) - t->results[2 * r]) * t->results[2 * r + 1];
        dw += d * xh;
        db += d;
        w_size += d * xh * d * xh;
        b_size += d * d;
    }
    bench_compare(v, &c->outputs[1], column, dw, sqrt(w_size));
    bench_compare(v, &c->outputs[2], column, db, sqrt(b_size));
}

void bench_judge_layernorm_bwd(bench_case *c, bench_verdict *v) {
    rows t = {.x = bench_param(c, "x"), .dy = bench_param(c, "dy"), .w = bench_param(c, "w")};
    uint64_t n_rows = (uint64_t)t.x->shape[0];
    t.n = (uint64_t)t.x->shape[1];
    t.results = bench_alloc(2 * n_rows * sizeof *t.results);
    bench_parallel(n_rows, 4, statistics, &t);
    for (uint64_t k = 0; k < bench_samples(BENCH_ROWS, n_rows); k++)
        compare_dx(c, v, &t, bench_sample(k, BENCH_ROWS, n_rows));
    for (uint64_t k = 0; k < bench_samples(4 * BENCH_ROWS, t.n); k++)
        compare_column(c, v, &t, n_rows, bench_sample(k, 4 * BENCH_ROWS, t.n));
    free(t.results);
}
