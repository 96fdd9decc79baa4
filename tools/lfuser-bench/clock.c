// Time on the CPU device, by the wall; and opening either device.
#include "bench.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CLEAR_BYTES = 256 << 20 };

double bench_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *times, int n) {
    qsort(times, (size_t)n, sizeof *times, by_value);
    return n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

typedef struct cpu_clock {
    bench_clock base;
    lfuser_stream *stream;
    char *scratch;
    int byte;
} cpu_clock;

static void clear_range(void *arg, uint64_t begin, uint64_t end) {
    cpu_clock *c = arg;
    memset(c->scratch + begin, c->byte, end - begin);
}

static void clear(cpu_clock *c) {
    c->byte++;
    bench_parallel(CLEAR_BYTES, 4096, clear_range, c);
}

static double cpu_time(bench_clock *clock, void (*fn)(void *arg), void *arg) {
    cpu_clock *c = (cpu_clock *)clock;
    clear(c);
    double start = bench_now_ms();
    fn(arg);
    bench_must(lfuser_stream_synchronize(c->stream), "waiting for a run");
    return bench_now_ms() - start;
}

static double cpu_in_a_row(bench_clock *clock, void (*fn)(void *arg), void *arg, int runs) {
    cpu_clock *c = (cpu_clock *)clock;
    double start = bench_now_ms();
    for (int i = 0; i < runs; i++) fn(arg);
    bench_must(lfuser_stream_synchronize(c->stream), "waiting for runs");
    return (bench_now_ms() - start) / runs;
}

typedef struct copy {
    char *to;
    const char *from;
} copy;

static void copy_range(void *arg, uint64_t begin, uint64_t end) {
    copy *c = arg;
    memcpy(c->to + begin, c->from + begin, end - begin);
}

static double cpu_copy(bench_clock *clock, uint64_t bytes, int runs) {
    cpu_clock *c = (cpu_clock *)clock;
    double *times = bench_alloc((size_t)runs * sizeof *times);
    char *from = bench_alloc(2 * bytes + 1);
    copy work = {from + bytes, from};
    bench_fill(LFUSER_U8, 256, 1, from, bytes);
    copy_range(&work, 0, bytes); // pages are there
    for (int i = 0; i < runs; i++) {
        clear(c);
        double start = bench_now_ms();
        bench_parallel(bytes, 4096, copy_range, &work);
        times[i] = bench_now_ms() - start;
    }
    double ms = bench_median(times, runs);
    free(times);
    free(from);
    return ms;
}

static void cpu_close(bench_clock *clock) {
    cpu_clock *c = (cpu_clock *)clock;
    free(c->scratch);
    free(c);
}

bench_clock *bench_clock_cpu(bench_device *d) {
    cpu_clock *c = bench_alloc(sizeof *c);
    c->base = (bench_clock){cpu_time, cpu_in_a_row, cpu_copy, cpu_close};
    c->stream = d->stream;
    c->scratch = bench_alloc(CLEAR_BYTES);
    return &c->base;
}

void bench_device_open(bench_device *d, const char *name) { bench_device_open_with(d, name, ""); }

void bench_device_open_with(bench_device *d, const char *name, const char *cache_directory) {
    bool cuda = !strncmp(name, "cuda", 4);
    void *native = NULL;
    *d = (bench_device){.dl = {cuda ? 2 : 1, cuda && name[4] == ':' ? atoi(name + 5) : 0}};
    if (cuda) d->clock = bench_clock_cuda(d->dl.ordinal, &native);
    lfuser_context_options options = {.size = sizeof options, .cache_directory = cache_directory};
    bench_must(lfuser_context_create(&options, &d->context), "making a context");
    bench_must(lfuser_device_open(d->context, name, &d->device), "opening the device");
    bench_must(cuda ? lfuser_stream_wrap(d->device, native, &d->stream) : lfuser_stream_create(d->device, &d->stream),
               "making a stream");
    if (!cuda) d->clock = bench_clock_cpu(d);
}

void bench_device_close(bench_device *d) {
    lfuser_stream_destroy(d->stream);
    lfuser_device_close(d->device);
    lfuser_context_destroy(d->context);
    if (d->clock) d->clock->close(d->clock);
}
