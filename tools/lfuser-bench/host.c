// --host: what a call costs on the host. Times are medians over batches; first-run times are single shots in this process.
#include "bench.h"
#include <stdlib.h>
#include <string.h>

static double now_us(void) { return bench_now_ms() * 1e3; }

// ---- programs ----------------------------------------------------------------------------------------------------------------------

static const char seed_text[] =
    "fusion @seed(%t0: f32[?, ?], %t1: f32[%h, %w], %s0: i64, %s1: i64) {\n"
    "  %t2 = reshape %t0, [%s0, %s1]\n  %t3 = add %t1, %t2\n  %n = add %s0, %s1\n  return %t3, %n\n}\n";

// `n` dependent scalar ops.
static char *scalars_text(int n) {
    char *text = malloc((size_t)n * 32 + 128), *at = text;
    at += sprintf(at, "fusion @scalars(%%a: f64, %%b: f64) {\n  %%v0 = add %%a, %%b\n");
    for (int i = 1; i < n; i++) at += sprintf(at, "  %%v%d = %s %%v%d, %%%c\n", i, i % 2 ? "mul" : "sub", i - 1, i % 3 ? 'a' : 'b');
    sprintf(at, "  return %%v%d\n}\n", n - 1);
    return text;
}

// `n` elementwise ops on a [64, 64] tensor.
static char *chain_text(int n) {
    char *text = malloc((size_t)n * 32 + 128), *at = text;
    at += sprintf(at, "fusion @chain(%%t0: f32[%%h, %%w], %%t1: f32[%%h, %%w]) {\n  %%v0 = add %%t0, %%t1\n");
    for (int i = 1; i < n; i++) at += sprintf(at, "  %%v%d = %s %%v%d, %%t%d\n", i, i % 2 ? "mul" : "add", i - 1, i % 2);
    sprintf(at, "  return %%v%d\n}\n", n - 1);
    return text;
}

// `n` layers of norm and pointwise work.
static char *layers_text(int n) {
    char *text = malloc((size_t)n * 200 + 256), *at = text;
    at += sprintf(at, "fusion @layers(%%x0: f32[%%n, %%k], %%w: f32[%%k]) {\n");
    for (int i = 0; i < n; i++)
        at += sprintf(at, "  %%n%d = layer_norm %%x%d, %%w, none, 1e-5\n  %%g%d = gelu %%n%d\n  %%x%d = add %%g%d, %%x%d\n", i, i, i, i, i + 1, i, i);
    sprintf(at, "  return %%x%d\n}\n", n);
    return text;
}

// ---- host side ---------------------------------------------------------------------------------------------------------------------

typedef struct bench {
    lfuser_context *context;
    lfuser_device *device;
    lfuser_stream *stream;
    FILE *json; // or NULL
    bool first;
    int dl_type;
} bench;

static void report(bench *b, const char *name, const char *unit, double value) {
    if (b->json) fprintf(b->json, "%s\n  \"%s\": {\"value\": %.6g, \"unit\": \"%s\"}", b->first ? "{" : ",", name, value, unit);
    printf("%-44s %12.3f %s\n", name, value, unit);
    b->first = false;
}

typedef struct buffer {
    int64_t shape[2];
    lfuser_tensor tensor;
} buffer;

static void make_buffer(bench *b, buffer *t, int64_t rows, int64_t columns) {
    void *memory;
    bench_must(lfuser_memory_alloc(b->stream, (size_t)(rows * columns * 4), &memory), "allocating a tensor");
    float *host = malloc((size_t)(rows * columns) * 4);
    for (int64_t i = 0; i < rows * columns; i++) host[i] = (float)rand() / (float)RAND_MAX;
    bench_must(lfuser_memory_upload(b->stream, memory, host, (size_t)(rows * columns * 4)), "uploading a tensor");
    bench_must(lfuser_stream_synchronize(b->stream), "uploading a tensor");
    free(host);
    *t = (buffer){.shape = {rows, columns}};
    t->tensor = (lfuser_tensor){.data = memory, .device = {b->dl_type, 0}, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = t->shape};
}

static lfuser_executable *compile(bench *b, const char *text, double *out_us) {
    lfuser_fusion *fusion;
    lfuser_executable *executable;
    double start = now_us();
    bench_must(lfuser_fusion_parse(b->context, "bench.lf", text, strlen(text), NULL, &fusion), "parsing");
    bench_must(lfuser_fusion_compile(fusion, b->device, NULL, &executable), "compiling");
    *out_us = now_us() - start;
    lfuser_fusion_destroy(fusion);
    return executable;
}

// Median time of a call, in µs; the stream is drained between batches so that its queue never fills.
static double steady(bench *b, lfuser_executable *e, const lfuser_argument *args, size_t n_args, lfuser_output *outputs, size_t n_outputs) {
    enum { BATCHES = 31, CALLS = 200 };
    double times[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        double start = now_us();
        for (int k = 0; k < CALLS; k++) bench_must(lfuser_run(e, b->stream, args, n_args, outputs, n_outputs, NULL), "running");
        times[i] = (now_us() - start) / CALLS;
        if (b->stream) bench_must(lfuser_stream_synchronize(b->stream), "synchronising");
    }
    return bench_median(times, BATCHES);
}

static uint64_t compiles(bench *b) {
    lfuser_stats stats = {.size = sizeof stats};
    bench_must(lfuser_device_stats(b->device, &stats), "stats");
    return stats.compiles;
}

static void bench_seed(bench *b) {
    double compile_us;
    lfuser_executable *e = compile(b, seed_text, &compile_us);
    buffer t0, t1, out, u0, u1, uout;
    make_buffer(b, &t0, 6, 8);
    make_buffer(b, &t1, 8, 6);
    make_buffer(b, &out, 8, 6);
    make_buffer(b, &u0, 10, 12);
    make_buffer(b, &u1, 8, 15);
    make_buffer(b, &uout, 8, 15);
    lfuser_argument args[4] = {{.kind = LFUSER_TENSOR, .tensor = &t0.tensor}, {.kind = LFUSER_TENSOR, .tensor = &t1.tensor},
                               {.kind = LFUSER_SCALAR, .dtype = LFUSER_I64, .value.i64 = 8}, {.kind = LFUSER_SCALAR, .dtype = LFUSER_I64, .value.i64 = 6}};
    lfuser_output outputs[2] = {{.tensor = &out.tensor}, {0}};
    double start = now_us();
    bench_must(lfuser_run(e, b->stream, args, 4, outputs, 2, NULL), "running");
    report(b, "seed.compile_host_code", "us", compile_us);
    report(b, "seed.first_run", "us", now_us() - start);
    bench_must(lfuser_executable_prepare(e), "preparing");
    uint64_t before = compiles(b);
    report(b, "seed.call", "us", steady(b, e, args, 4, outputs, 2));
    lfuser_argument other[4] = {{.kind = LFUSER_TENSOR, .tensor = &u0.tensor}, {.kind = LFUSER_TENSOR, .tensor = &u1.tensor},
                                {.kind = LFUSER_SCALAR, .dtype = LFUSER_I64, .value.i64 = 8}, {.kind = LFUSER_SCALAR, .dtype = LFUSER_I64, .value.i64 = 15}};
    lfuser_output other_outputs[2] = {{.tensor = &uout.tensor}, {0}};
    start = now_us();
    bench_must(lfuser_run(e, b->stream, other, 4, other_outputs, 2, NULL), "running");
    report(b, "seed.new_shape", "us", now_us() - start);
    report(b, "seed.new_shape_compiles", "count", (double)(compiles(b) - before));
    bench_must(lfuser_stream_synchronize(b->stream), "synchronising");
    lfuser_executable_destroy(e);
}

static void bench_scalars(bench *b, int n) {
    double compile_us;
    char *text = scalars_text(n), name[64];
    bench host = *b;
    host.device = NULL;
    host.stream = NULL;
    lfuser_executable *e = compile(&host, text, &compile_us);
    lfuser_argument args[2] = {{.kind = LFUSER_SCALAR, .dtype = LFUSER_F64, .value.f64 = 1.5}, {.kind = LFUSER_SCALAR, .dtype = LFUSER_F64, .value.f64 = 0.5}};
    lfuser_output output = {0};
    snprintf(name, sizeof name, "scalars%d.compile", n);
    report(b, name, "us", compile_us);
    snprintf(name, sizeof name, "scalars%d.call", n);
    report(b, name, "us", steady(&host, e, args, 2, &output, 1));
    lfuser_executable_destroy(e);
    free(text);
}

static void bench_chain(bench *b, int n) {
    double compile_us;
    char *text = chain_text(n), name[64];
    lfuser_executable *e = compile(b, text, &compile_us);
    buffer t0, t1, out;
    make_buffer(b, &t0, 64, 64);
    make_buffer(b, &t1, 64, 64);
    make_buffer(b, &out, 64, 64);
    lfuser_argument args[2] = {{.kind = LFUSER_TENSOR, .tensor = &t0.tensor}, {.kind = LFUSER_TENSOR, .tensor = &t1.tensor}};
    lfuser_output output = {.tensor = &out.tensor};
    double start = now_us();
    bench_must(lfuser_run(e, b->stream, args, 2, &output, 1, NULL), "running");
    snprintf(name, sizeof name, "chain%d.compile_and_first_run", n);
    report(b, name, "us", compile_us + now_us() - start);
    snprintf(name, sizeof name, "chain%d.call", n);
    report(b, name, "us", steady(b, e, args, 2, &output, 1));
    lfuser_executable_destroy(e);
    free(text);
}

static void bench_layers(bench *b, int n) {
    double compile_us;
    char *text = layers_text(n), name[64];
    lfuser_executable *e = compile(b, text, &compile_us);
    snprintf(name, sizeof name, "layers%d.plan_and_host_code", n);
    report(b, name, "us", compile_us);
    lfuser_executable_destroy(e);
    free(text);
}

static void bench_pending(bench *b) {
    static const char text[] = "fusion @total(%x: f32[%n, %k]) {\n  %s = sum %x\n  %v = item %s\n  return %v\n}\n";
    enum { CALLS = 201 };
    double compile_us, times[CALLS];
    lfuser_executable *e = compile(b, text, &compile_us);
    buffer x;
    make_buffer(b, &x, 64, 64);
    lfuser_argument arg = {.kind = LFUSER_TENSOR, .tensor = &x.tensor};
    bench_must(lfuser_executable_prepare(e), "preparing");
    for (int i = 0; i < CALLS; i++) {
        lfuser_output output = {0};
        lfuser_scalar value;
        double start = now_us();
        bench_must(lfuser_run(e, b->stream, &arg, 1, &output, 1, NULL), "running");
        bench_must(lfuser_pending_get(output.pending, UINT64_MAX, &value), "waiting for a scalar");
        times[i] = now_us() - start;
        lfuser_pending_release(output.pending);
    }
    report(b, "pending.sum_64x64_to_host", "us", bench_median(times, CALLS));
    lfuser_executable_destroy(e);
}

int bench_host(const char *device, FILE *json) {
    bench b = {.first = true, .json = json, .dl_type = strncmp(device, "cuda", 4) ? 1 : 2};
    bench_must(lfuser_context_create(NULL, &b.context), "context");
    double start = now_us();
    bench_must(lfuser_context_warm(b.context), "warming up");
    double warm_us = now_us() - start;
    start = now_us();
    bench_must(lfuser_device_open(b.context, device, &b.device), "opening the device");
    bench_must(lfuser_stream_create(b.device, &b.stream), "a stream");
    report(&b, "cold.code_generator", "us", warm_us);
    report(&b, "cold.device", "us", now_us() - start);
    bench_seed(&b);
    bench_scalars(&b, 4);
    bench_scalars(&b, 64);
    for (int n = 2; n <= 128; n *= 4) bench_chain(&b, n);
    bench_layers(&b, 10);
    bench_layers(&b, 100);
    bench_pending(&b);
    if (json) fprintf(json, "\n}\n");
    lfuser_stream_destroy(b.stream);
    lfuser_device_close(b.device);
    lfuser_context_destroy(b.context);
    return 0;
}
