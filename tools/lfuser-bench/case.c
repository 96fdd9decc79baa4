// One case: judging and timing.
#include "bench.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const bench_row bench_rows[] = {
#define W(name, program, shapes, judge, fast, exact) {name, program, shapes, bench_judge_##judge, fast, exact},
#include "workloads.def"
#undef W
};
const size_t bench_n_rows = sizeof bench_rows / sizeof *bench_rows;

void bench_die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("lfuser-bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void bench_must(lfuser_status s, const char *what) {
    if (s) bench_die("%s: %s", what, lfuser_status_message(s));
}

void *bench_alloc(size_t bytes) {
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) bench_die("%zu bytes are more than there is memory for", bytes);
    return p;
}

bench_array *bench_param(bench_case *c, const char *name) {
    for (size_t i = 0; i < c->n_params; i++)
        if (!strcmp(c->params[i].name, name)) return &c->params[i];
    bench_die("%s: no parameter %%%s", c->name, name);
}

static void read_outputs(bench_call *w) {
    for (size_t i = 0; i < w->c->n_outputs; i++) {
        bench_array *a = &w->c->outputs[i];
        if (a->kind == LFUSER_TENSOR) {
            bench_must(lfuser_memory_download(w->device->stream, a->host, a->device, a->bytes), "reading back");
            continue;
        }
        a->count = 1;
        a->bytes = lfuser_dtype_bytes(a->dtype);
        a->host = bench_alloc(sizeof w->outputs[i].value);
        memcpy(a->host, &w->outputs[i].value, sizeof w->outputs[i].value);
    }
    bench_must(lfuser_stream_synchronize(w->device->stream), "reading back");
}

static void list_kernels(bench_call *w) {
    bench_result *r = &w->c->result;
    size_t n = lfuser_executable_n_kernels(w->executable);
    for (size_t i = 0; i < n && r->n_kernels < sizeof r->kernels / sizeof *r->kernels; i++) {
        lfuser_kernel_info info = {.size = sizeof info};
        bench_must(lfuser_executable_kernel(w->executable, i, &info), w->c->name);
        bench_kernel *k = &r->kernels[r->n_kernels++];
        *k = (bench_kernel){.vector = info.vector,
                            .registers = info.registers,
                            .local_bytes = info.local_bytes,
                            .shared_bytes = info.shared_bytes,
                            .wide = info.wide};
        snprintf(k->name, sizeof k->name, "%s", info.name ? info.name : "");
    }
}

typedef struct search {
    const bench_array *a;
    uint64_t bytes;
    _Atomic uint64_t found; // number of an element, plus one
} search;

static void find_unwritten(void *arg, uint64_t begin, uint64_t end) {
    static const unsigned char ones[16] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    search *s = arg;
    for (uint64_t i = begin; i < end && !s->found; i++)
        if (!memcmp((const char *)s->a->host + i * s->bytes, ones, s->bytes)) s->found = i + 1;
}

// What was measured is what must be right, so the verdict is on the last timed run (with pending scalars: on one more).
static void judge(bench_call *w) {
    bench_case *c = w->c;
    bench_verdict *v = &c->result.verdict;
    bool pending = false;
    for (size_t i = 0; i < c->n_outputs; i++) pending |= c->outputs[i].kind == LFUSER_PENDING;
    v->ok = true;
    w->wait = true;
    if (pending) bench_call_run(w);
    read_outputs(w);
    if (c->judge)
        c->judge(c, v);
    else
        snprintf(v->what, sizeof v->what, "nothing to compare with");
    bench_next_output(v, NULL);
    for (size_t i = 0; i < c->n_outputs && v->ok; i++) {
        const bench_array *a = &c->outputs[i];
        lfuser_dl_dtype d = lfuser_dl_dtype_of(a->dtype);
        if (a->kind != LFUSER_TENSOR || d.code < 2 || d.code == 6) continue; // integers may be all ones
        search s = {.a = a, .bytes = lfuser_dtype_bytes(a->dtype)};
        bench_parallel(a->count, 1 << 14, find_unwritten, &s);
        if (!s.found) continue;
        v->ok = false;
        v->wrong++;
        snprintf(v->what, sizeof v->what, "%%%s element %llu was not written", a->name ? a->name : "?",
                 (unsigned long long)s.found - 1);
    }
}

void bench_case_run(bench_device *d, bench_case *c, int64_t scale, int runs) {
    enum { WARM = 3 };
    bench_call w = {.device = d, .c = c};
    double *times = bench_alloc((size_t)runs * sizeof *times);
    double start = bench_now_ms();
    bench_call_compile(&w);
    c->result.first_ms = bench_now_ms() - start;
    bench_call_place(&w, c->shapes, scale);
    start = bench_now_ms();
    bench_call_run(&w);
    bench_call_wait(&w);
    c->result.first_ms += bench_now_ms() - start;
    for (int i = 0; i < WARM && i < runs; i++) d->clock->time(d->clock, bench_call_run, &w);
    for (int i = 0; i < runs; i++) times[i] = d->clock->time(d->clock, bench_call_run, &w);
    c->result.ms = bench_median(times, runs);
    c->result.least_ms = times[0];
    c->result.in_a_row_ms = d->clock->in_a_row(d->clock, bench_call_run, &w, runs);
    judge(&w);
    list_kernels(&w);
    bench_call_unplace(&w);
    c->result.copy_ms = d->clock->copy(d->clock, (c->result.bytes + 1) / 2, runs);
    bench_call_close(&w);
    free(times);
}
