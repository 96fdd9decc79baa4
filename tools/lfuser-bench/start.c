// From a text to its first result, in milliseconds: with everything to be compiled, and with everything in the cache's files. A context
// of its own each time, in which one other kernel was loaded before, the device's own context is up, and LLVM (where it is needed) open.
#include "bench.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 5 };

static const bench_case programs[] = {
    {.name = "pointwise",
     .text = "fusion @p(%x: f32[?, ?], %y: f32[?, ?]) {\n  %a = mul %x, %y\n  %b = tanh %a\n  return %b\n}\n",
     .shapes = "x=64,512 y=64,512"},
    {.name = "softmax",
     .text = "fusion @s(%x: f32[?, ?]) {\n  %a = softmax %x, axis=-1\n  return %a\n}\n",
     .shapes = "x=64,512"},
    {.name = "layer_norm",
     .text = "fusion @l(%x: f32[?, %k], %w: f32[%k], %b: f32[%k]) {\n  %a = layer_norm %x, %w, %b, 1e-5\n  return %a\n}\n",
     .shapes = "x=64,512 w=512 b=512"},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };
static const bench_case earlier = {
    .name = "earlier", .text = "fusion @e(%x: i32[?]) {\n  %a = add %x, 1\n  return %a\n}\n", .shapes = "x=64"};

// What lies between, memory for its arguments, is the caller's and not counted.
static double first_result(bench_device *d, const bench_case *program) {
    bench_case c = *program;
    bench_call w = {.device = d, .c = &c};
    double start = bench_now_ms();
    bench_call_compile(&w);
    double ms = bench_now_ms() - start;
    bench_call_place(&w, c.shapes, 1);
    start = bench_now_ms();
    bench_call_run(&w);
    bench_call_wait(&w);
    ms += bench_now_ms() - start;
    bench_call_close(&w);
    return ms;
}

// The median, and how often the code generator was needed in a round.
static double rounds(const char *device, const char *folder, const bench_case *program, uint64_t *out_compiles) {
    double times[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        bench_device d;
        lfuser_cache_stats s = {.size = sizeof s}, before = s;
        bench_device_open_with(&d, device, folder ? folder : "");
        if (!folder) bench_must(lfuser_context_warm(d.context), "warming up");
        first_result(&d, &earlier);
        bench_must(lfuser_context_cache_stats(d.context, &before), "the cache");
        times[i] = first_result(&d, program);
        bench_must(lfuser_context_cache_stats(d.context, &s), "the cache");
        *out_compiles = s.compiles - before.compiles;
        bench_device_close(&d);
    }
    return bench_median(times, ROUNDS);
}

static void fill(const char *device, const char *folder) {
    bench_device d;
    bench_device_open_with(&d, device, folder);
    first_result(&d, &earlier);
    for (int i = 0; i < PROGRAMS; i++) first_result(&d, &programs[i]);
    bench_device_close(&d);
}

static void empty(const char *folder) {
    lfuser_context *context;
    lfuser_context_options options = {.size = sizeof options, .cache_directory = folder};
    bench_must(lfuser_context_create(&options, &context), "making a context");
    lfuser_context_cache_clear(context);
    lfuser_context_destroy(context);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command)) fprintf(stderr, "lfuser-bench: %s is left\n", folder);
}

void bench_start(const char *device, const char *kept,
                 void (*report)(void *to, const char *what, const char *unit, double value), void *to) {
    char own[] = "/tmp/lfuser-bench-XXXXXX", what[64];
    uint64_t compiles;
    for (int i = 0; i < PROGRAMS && !kept; i++) {
        snprintf(what, sizeof what, "%s.from_text", programs[i].name);
        report(to, what, "ms", rounds(device, NULL, &programs[i], &compiles));
    }
    if (!kept) {
        if (!mkdtemp(own)) bench_die("no temporary folder");
        fill(device, own);
    }
    for (int i = 0; i < PROGRAMS; i++) {
        snprintf(what, sizeof what, "%s.from_cache", programs[i].name);
        report(to, what, "ms", rounds(device, kept ? kept : own, &programs[i], &compiles));
        snprintf(what, sizeof what, "%s.from_cache_compiles", programs[i].name);
        report(to, what, "count", (double)compiles);
    }
    if (!kept) empty(own);
}
