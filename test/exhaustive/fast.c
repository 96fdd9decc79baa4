// Sums in fast mode: any order is allowed, so the error is at most (n - 1)·u·Σ|x|, u half an ulp of the accumulator, and one
// rounding to the dtype; NaN and infinities come through.
#include "test/exhaustive/exhaustive.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 100003 };

static void run_one(machine *m, const char *text, lfuser_dtype d, const void *x, void *out) {
    lfuser_fusion *f;
    lfuser_executable *e;
    must(lfuser_fusion_parse(m->context, "t.lf", text, strlen(text), NULL, &f), text);
    must(lfuser_fusion_compile(
             f, m->device, &(lfuser_compile_options){.size = sizeof(lfuser_compile_options), .math = LFUSER_MATH_FAST}, &e),
         text);
    lfuser_fusion_destroy(f);
    int64_t shape = N;
    lfuser_tensor t[2];
    for (int k = 0; k < 2; k++) {
        t[k] = (lfuser_tensor){.device = m->place, .rank = !k, .dtype = lfuser_dl_dtype_of(d), .shape = &shape};
        must(lfuser_memory_alloc(m->stream, k ? 16 : N * lfuser_dtype_bytes(d), &t[k].data), "memory");
    }
    must(lfuser_memory_upload(m->stream, t[0].data, x, N * lfuser_dtype_bytes(d)), "upload");
    lfuser_argument a = {.kind = LFUSER_TENSOR, .tensor = &t[0]};
    lfuser_output o = {.tensor = &t[1]};
    must(lfuser_run(e, m->stream, &a, 1, &o, 1, NULL), text);
    must(lfuser_memory_download(m->stream, out, t[1].data, lfuser_dtype_bytes(d)), "download");
    for (int k = 0; k < 2; k++) lfuser_memory_free(m->stream, t[k].data);
    must(lfuser_stream_synchronize(m->stream), text);
    lfuser_executable_destroy(e);
}

static void check(const char *name, lfuser_dtype d, bool right, double got, double want, double bound) {
    *(right ? &passed : &failed) += 1;
    printf("fast   %-5s %-12s %11d inputs, got %.9g, true value %.9g, bound %.3g, %s\n", lfuser_dtype_name(d), name, N, got,
           want, bound, right ? "ok" : "WRONG");
}

void check_fast_sums(machine *m, const options *o) {
    static const double units[] = {
        [LFUSER_F16] = 0x1p-11, [LFUSER_BF16] = 0x1p-8, [LFUSER_F32] = 0x1p-24, [LFUSER_F64] = 0x1p-53};
    if (!wanted(o, "sum")) return;
    for (lfuser_dtype d = LFUSER_F16; d <= LFUSER_F64; d++) {
        size_t bytes = lfuser_dtype_bytes(d);
        char *x = malloc(N * bytes), text[160];
        double sum = 0, lost = 0, size = 0;
        uint64_t state = d, out = 0;
        for (size_t i = 0; i < N; i++) {
            round_to(d, (long double)(int64_t)next_random(&state) * 0x1p-64L, x + i * bytes);
            double v = value_of(d, x + i * bytes), next = sum + v; // with what the addition lost (Neumaier)
            lost += fabs(sum) >= fabs(v) ? sum - next + v : v - next + sum;
            sum = next;
            size += fabs(v);
        }
        sum += lost;
        double wide = d == LFUSER_F64 ? units[LFUSER_F64] : units[LFUSER_F32],
               bound = (N - 1) * wide * size + units[d] * fabs(sum);
        snprintf(text, sizeof text, "fusion @t(%%x: %s[?]) { %%y = sum %%x return %%y }", lfuser_dtype_name(d));
        run_one(m, text, d, x, &out);
        double got = value_of(d, &out);
        check("sum", d, fabs(got - sum) <= bound, got, sum, bound);
        snprintf(text, sizeof text, "fusion @t(%%x: %s[?]) { %%y = mean %%x return %%y }", lfuser_dtype_name(d));
        run_one(m, text, d, x, &out);
        got = value_of(d, &out);
        bound = bound / N + 2 * units[d] * fabs(sum / N) + ldexp(1, -24);
        check("mean", d, fabs(got - sum / N) <= bound, got, sum / N, bound);
        for (int k = 0; k < 2; k++) {
            double special = k ? NAN : INFINITY;
            round_to(d, special, x + (N - 2) * bytes);
            snprintf(text, sizeof text, "fusion @t(%%x: %s[?]) { %%y = sum %%x return %%y }", lfuser_dtype_name(d));
            run_one(m, text, d, x, &out);
            got = value_of(d, &out);
            check(k ? "sum of NaN" : "sum of inf", d, k ? got != got : got == INFINITY, got, special, 0);
        }
        free(x);
    }
}
