// What the judges share: rows as doubles, and which rows and elements to look at.
#ifndef LF_TOOLS_BENCH_JUDGE_H
#define LF_TOOLS_BENCH_JUDGE_H
#include "bench.h"

enum { BENCH_ROWS = 64, BENCH_ELEMENTS = 1 << 16 };

// The k-th of `of` places in [0, n): the first and the last ones, and random ones between; each place once if there are fewer.
uint64_t bench_sample(uint64_t k, uint64_t of, uint64_t n);
double bench_allowed(lfuser_dtype d); // relative error of an element
static inline uint64_t bench_samples(uint64_t of, uint64_t n) { return of < n ? of : n; }
// Elements [at, at + n) as doubles.
void bench_span(const bench_array *a, uint64_t at, uint64_t n, double *to);
double bench_sum(const double *x, uint64_t n);
double bench_mean(const double *x, uint64_t n, double *out_variance);
#endif
