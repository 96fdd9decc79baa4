// --host: what compiling, calling and a new shape cost on the host, in µs. Calls are medians over batches; the rest are single shots.
// --count: the same work a fixed number of times, for a tool that counts instructions (count.py).
#include "bench.h"
#include <lfuser/launch_abi.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 1 << 16 };

// ---- programs: each writes its text

static void seed(char *to, int n) {
    (void)n;
    strcpy(to, "fusion @seed(%t0: f32[?, ?], %t1: f32[%h, %w], %s0: i64, %s1: i64) {\n"
               "  %t2 = reshape %t0, [%s0, %s1]\n  %t3 = add %t1, %t2\n  %n = add %s0, %s1\n  return %t3, %n\n}\n");
}

// `n` dependent scalar ops.
static void scalars(char *to, int n) {
    to += sprintf(to, "fusion @scalars(%%a: f64, %%b: f64) {\n  %%v0 = add %%a, %%b\n");
    for (int i = 1; i < n; i++)
        to += sprintf(to, "  %%v%d = %s %%v%d, %%%c\n", i, i % 2 ? "mul" : "sub", i - 1, i % 3 ? 'a' : 'b');
    sprintf(to, "  return %%v%d\n}\n", n - 1);
}

// `n` scalar functions of lib/math.
static void functions(char *to, int n) {
    static const char *const names[] = {"exp", "sin", "tanh", "log1p", "erf", "cos", "sigmoid", "atan"};
    to += sprintf(to, "fusion @functions(%%a: f64) {\n  %%v0 = exp %%a\n");
    for (int i = 1; i < n; i++) to += sprintf(to, "  %%v%d = %s %%v%d\n", i, names[i % 8], i - 1);
    sprintf(to, "  return %%v%d\n}\n", n - 1);
}

// What host_peers.py measures elsewhere.
static void tanh10(char *to, int n) {
    to += sprintf(to, "fusion @tanh10(%%v0: f32[%%h, %%w], %%y: f32[%%h, %%w]) {\n");
    for (int i = 0; i < n; i++)
        to +=
            sprintf(to, "  %%m%d = mul %%v%d, %%y\n  %%a%d = add %%m%d, 0.5\n  %%v%d = tanh %%a%d\n", i, i, i, i, i + 1, i);
    sprintf(to, "  return %%v%d\n}\n", n);
}

static void scalar_add(char *to, int n) {
    (void)n;
    strcpy(to, "fusion @scalar_add(%a: f64, %b: f64) {\n  %c = add %a, %b\n  return %c\n}\n");
}

// `n` elementwise ops on two tensors.
static void pointwise_chain(char *to, int n) {
    to += sprintf(to, "fusion @chain(%%x: f32[%%h, %%w], %%y: f32[%%h, %%w]) {\n  %%v0 = add %%x, %%y\n");
    for (int i = 1; i < n; i++)
        to += sprintf(to, "  %%v%d = %s %%v%d, %%%c\n", i, i % 2 ? "mul" : "add", i - 1, i % 2 ? 'y' : 'x');
    sprintf(to, "  return %%v%d\n}\n", n - 1);
}

// `n` norms with a transposition after each: as many kernels.
static void many_segments(char *to, int n) {
    to += sprintf(to, "fusion @segments(%%x0: f32[%%n, %%k]) {\n");
    for (int i = 0; i < n; i++)
        to += sprintf(to, "  %%n%d = layer_norm %%x%d, none, none, 1e-5\n  %%x%d = transpose %%n%d, 0, 1\n", i, i, i + 1, i);
    sprintf(to, "  return %%x%d\n}\n", n);
}

static void adaptive_layernorm(char *to, int n) {
    (void)n;
    strcpy(to, "fusion @adaptive(%x: f16[%b, %n, %k], %scale: f16[%b, 1, %k], %shift: f16[%b, 1, %k]) {\n"
               "  %h = layer_norm %x, none, none, 1e-6\n  %s = add %scale, 1\n  %m = mul %h, %s\n  %y = add %m, %shift\n  "
               "return %y\n}\n");
}

// `n` layers of norm and pointwise work.
static void layers(char *to, int n) {
    to += sprintf(to, "fusion @layers(%%x0: f32[%%n, %%k], %%w: f32[%%k]) {\n");
    for (int i = 0; i < n; i++)
        to += sprintf(to, "  %%n%d = layer_norm %%x%d, %%w, none, 1e-5\n  %%g%d = gelu %%n%d\n  %%x%d = add %%g%d, %%x%d\n",
                      i, i, i, i, i + 1, i, i);
    sprintf(to, "  return %%x%d\n}\n", n);
}

static void total(char *to, int n) {
    (void)n;
    strcpy(to, "fusion @total(%x: f32[%n, %k]) {\n  %s = sum %x\n  %v = item %s\n  return %v\n}\n");
}

typedef struct host_row {
    const char *name;
    void (*write)(char *to, int n);
    int n;
    const char *shapes, *other; // other: a new shape of the same class, or NULL
    bool no_device, compile_only;
    uint32_t replay_from; // see lfuser_compile_options
} host_row;
static const host_row rows[] = {
    {"seed", seed, 0, "t0=6,8 t1=8,6 s0=8 s1=6", "t0=10,12 t1=8,15 s0=8 s1=15", false, false, 0},
    {"seed_64x64", seed, 0, "t0=64,64 t1=64,64 s0=64 s1=64", "t0=64,60 t1=64,60 s0=64 s1=60", false, false, 0},
    {"tanh10", tanh10, 10, "v0=64,64 y=64,64", "v0=64,60 y=64,60", false, false, 0},
    {"scalar_add", scalar_add, 0, "a=1.5 b=0.5", NULL, true, false, 0},
    {"scalars4", scalars, 4, "a=1.5 b=0.5", NULL, true, false, 0},
    {"scalars64", scalars, 64, "a=1.5 b=0.5", NULL, true, false, 0},
    {"functions8", functions, 8, "a=0.25", NULL, true, false, 0},
    {"pointwise_chain2", pointwise_chain, 2, "x=64,64 y=64,64", "x=64,60 y=64,60", false, false, 0},
    {"pointwise_chain2_6x8", pointwise_chain, 2, "x=6,8 y=6,8", "x=10,12 y=10,12", false, false, 0},
    {"pointwise_chain8", pointwise_chain, 8, "x=64,64 y=64,64", "x=64,60 y=64,60", false, false, 0},
    {"pointwise_chain16", pointwise_chain, 16, "x=64,64 y=64,64", "x=64,60 y=64,60", false, false, 0},
    {"pointwise_chain32", pointwise_chain, 32, "x=64,64 y=64,64", "x=64,60 y=64,60", false, false, 0},
    {"pointwise_chain128", pointwise_chain, 128, "x=64,64 y=64,64", "x=64,60 y=64,60", false, false, 0},
    {"many_segments", many_segments, 12, "x0=5,5", "x0=7,7", false, false, 0},
    {"many_segments_replayed", many_segments, 12, "x0=5,5", "x0=7,7", false, false, 2},
    {"adaptive_layernorm", adaptive_layernorm, 0, "x=1,30720/,1024 scale=1,1,1024 shift=1,1,1024",
     "x=1,20480/,1024 scale=1,1,1024 shift=1,1,1024", false, false, 0},
    {"layers10", layers, 10, NULL, NULL, false, true, 0},
    {"layers30", layers, 30, NULL, NULL, false, true, 0},
    {"layers100", layers, 100, NULL, NULL, false, true, 0},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

// ---- timing

typedef struct bench {
    bench_device device;
    int64_t scale; // of '/' extents
    FILE *json;    // or NULL
    bool first;
} bench;

static void report(bench *b, const char *name, const char *what, const char *unit, double value) {
    char full[96];
    snprintf(full, sizeof full, "%s.%s", name, what);
    if (b->json)
        fprintf(b->json, "%s\n  \"%s\": {\"value\": %.6g, \"unit\": \"%s\"}", b->first ? "{" : ",", full, value, unit);
    printf("%-44s %12.3f %s\n", full, value, unit);
    fflush(stdout);
    b->first = false;
}

static double now_us(void) { return bench_now_ms() * 1e3; }

// Median time of a call; the stream is drained between batches so that its queue never fills. A batch takes about a millisecond.
static double steady(bench_call *w) {
    enum { BATCHES = 31, MOST_CALLS = 200 };
    double times[BATCHES], start = now_us();
    bench_call_run(w);
    bench_call_wait(w);
    double one = now_us() - start;
    int calls = one > 1000 ? 1 : one > 5 ? (int)(1000 / one) + 1 : MOST_CALLS;
    for (int i = 0; i < BATCHES; i++) {
        start = now_us();
        for (int k = 0; k < calls; k++) bench_call_run(w);
        times[i] = (now_us() - start) / calls;
        bench_call_wait(w);
    }
    return bench_median(times, BATCHES);
}

static uint64_t compiles(const bench_device *d) {
    lfuser_stats stats = {.size = sizeof stats};
    if (d->device) bench_must(lfuser_device_stats(d->device, &stats), "stats");
    return stats.compiles;
}

// The first call with other shapes than the one before: the library keeps nothing of a shape, so each such call meets a new one.
static void new_shapes(bench *b, bench_call *w, const host_row *row) {
    enum { CHANGES = 9 };
    double times[CHANGES];
    uint64_t before = compiles(&b->device);
    for (int i = 0; i < CHANGES; i++) {
        bench_call_place(w, i % 2 ? row->shapes : row->other, b->scale);
        double start = now_us();
        bench_call_run(w);
        times[i] = now_us() - start;
        bench_call_wait(w);
    }
    report(b, row->name, "new_shape", "us", bench_median(times, CHANGES));
    report(b, row->name, "new_shape_compiles", "count", (double)(compiles(&b->device) - before));
}

static double run_row(bench *b, const host_row *row) {
    char *text = bench_alloc(MOST_TEXT);
    row->write(text, row->n);
    bench_case c = {.name = row->name, .text = text};
    bench_device none = {.context = b->device.context};
    bench_call w = {.device = row->no_device ? &none : &b->device, .c = &c, .replay_from = row->replay_from};
    double start = now_us(), compile_us;
    bench_call_compile(&w);
    report(b, row->name, "compile_host_code", "us", compile_us = now_us() - start);
    if (row->compile_only) {
        bench_call_close(&w);
        free(text);
        return compile_us;
    }
    bench_call_place(&w, row->shapes, b->scale);
    start = now_us();
    bench_call_run(&w);
    double first_us = now_us() - start;
    report(b, row->name, "first_run", "us", first_us);
    report(b, row->name, "first", "us", compile_us + first_us); // from the text to the launch
    bench_call_wait(&w);
    report(b, row->name, "call", "us", steady(&w));
    if (row->other) new_shapes(b, &w, row);
    bench_call_close(&w);
    free(text);
    return compile_us;
}

// From the launch to the value in the host's hands, with no synchronisation.
static void run_pending(bench *b) {
    enum { CALLS = 201 };
    char text[256];
    double times[CALLS];
    total(text, 0);
    bench_case c = {.name = "pending", .text = text};
    bench_call w = {.device = &b->device, .c = &c, .wait = true};
    bench_call_compile(&w);
    bench_call_place(&w, "x=64,64", 1);
    bench_call_run(&w);
    for (int i = 0; i < CALLS; i++) {
        double start = now_us();
        bench_call_run(&w);
        times[i] = now_us() - start;
    }
    report(b, "pending", "sum_64x64_to_host", "us", bench_median(times, CALLS));
    bench_call_close(&w);
}

// What the library's own entry takes, without the API around it.
static void run_raw(bench *b, const host_row *row) {
    enum { BATCHES = 31, CALLS = 20000 };
    char *text = bench_alloc(MOST_TEXT);
    double times[BATCHES];
    row->write(text, row->n);
    bench_case c = {.name = row->name, .text = text};
    bench_device none = {.context = b->device.context};
    bench_call w = {.device = &none, .c = &c};
    lfuser_host_entry entry = {.size = sizeof entry};
    bench_call_compile(&w);
    bench_must(lfuser_executable_host_entry(w.executable, &entry), row->name);
    uint64_t *slots = bench_alloc(entry.n_slots * sizeof *slots);
    double number = 1.25;
    for (uint32_t i = 0; i < entry.program->n_params; i++)
        memcpy(&slots[entry.program->params[i].slot], &number, sizeof number);
    for (int i = 0; i < BATCHES; i++) {
        double start = now_us();
        for (int k = 0; k < CALLS; k++) entry.infer(slots);
        times[i] = (now_us() - start) / CALLS;
    }
    report(b, row->name, "raw_entry", "us", bench_median(times, BATCHES));
    bench_call_close(&w);
    free(slots);
    free(text);
}

static void run_bare(bench *b) {
    bench_bare bare = {0};
    bench_bare_cuda(&bare);
    report(b, "bare", "launch", "us", bare.launch);
    report(b, "bare", "12_launches", "us", bare.launches);
    if (bare.graph > 0) report(b, "bare", "graph_of_12", "us", bare.graph);
    report(b, "bare", "launch_to_polled_word", "us", bare.mailbox);
}

static void report_start(void *to, const char *what, const char *unit, double value) {
    report(to, "start", what, unit, value);
}

int bench_host(const char *device, const char *filter, const char *cache, FILE *json) {
    bench b = {.first = true, .json = json, .scale = strncmp(device, "cuda", 4) ? 64 : 1};
    double start = now_us(), ten = 0, hundred = 0;
    bench_device_open(&b.device, device);
    report(&b, "cold", "device", "us", now_us() - start);
    if (!filter || strstr("start", filter)) bench_start(device, cache, report_start, &b);
    bool more = !filter || strcmp(filter, "start"); // that alone must not open LLVM
    start = now_us();
    if (more) bench_must(lfuser_context_warm(b.device.context), "warming up");
    if (more) report(&b, "cold", "code_generator", "us", now_us() - start);
    if (!strncmp(device, "cuda", 4) && (!filter || strstr("bare", filter))) run_bare(&b);
    for (int i = 0; i < N_ROWS; i++) {
        if (filter && !strstr(rows[i].name, filter)) continue;
        double us = run_row(&b, &rows[i]);
        if (rows[i].no_device) run_raw(&b, &rows[i]);
        if (!strcmp(rows[i].name, "layers10")) ten = us;
        if (!strcmp(rows[i].name, "layers100")) hundred = us;
    }
    if (ten > 0 && hundred > 0) report(&b, "layers", "100_over_10", "times", hundred / ten);
    if (!filter || strstr("pending", filter)) run_pending(&b);
    if (json) fprintf(json, "\n}\n");
    bench_device_close(&b.device);
    return 0;
}

// ---- counting

// Not inlined, and in no other way of interest: counting begins and ends here.
__attribute__((noinline)) void bench_counted(void (*fn)(void *arg), void *arg, int times) {
    for (int i = 0; i < times; i++) fn(arg);
    __asm__ volatile("" ::: "memory");
}

static void compile_once(void *arg) {
    bench_call *w = arg;
    bench_call_compile(w);
}

// NAME.call: 100 calls; NAME.compile: once. One thread, so that the calling thread does all the work of a call.
int bench_count(const char *name) {
    const char *dot = strrchr(name, '.');
    const host_row *row = NULL;
    for (int i = 0; dot && i < N_ROWS; i++)
        if (strlen(rows[i].name) == (size_t)(dot - name) && !memcmp(rows[i].name, name, (size_t)(dot - name)))
            row = &rows[i];
    bool call = dot && !strcmp(dot, ".call");
    if (!row || (!call && strcmp(dot, ".compile")) || (call && row->compile_only))
        bench_die("--count=%s: no such thing; --count=list names them", name);
    bench_device d = {.dl = {1, 0}};
    lfuser_context_options options = {.size = sizeof options, .threads = 1, .cache_directory = ""};
    bench_must(lfuser_context_create(&options, &d.context), "making a context");
    bench_must(lfuser_context_warm(d.context), "warming up");
    if (!row->no_device) {
        bench_must(lfuser_device_open(d.context, "cpu", &d.device), "opening the device");
        bench_must(lfuser_stream_create(d.device, &d.stream), "making a stream");
    }
    char *text = bench_alloc(MOST_TEXT);
    row->write(text, row->n);
    bench_case c = {.name = row->name, .text = text};
    bench_call w = {.device = &d, .c = &c};
    if (call) {
        bench_call_compile(&w);
        bench_call_place(&w, row->shapes, 1024);
        for (int i = 0; i < 3; i++) bench_call_run(&w);
        bench_call_wait(&w);
    }
    bench_counted(call ? bench_call_run : compile_once, &w, call ? 100 : 1);
    bench_call_close(&w);
    lfuser_stream_destroy(d.stream);
    lfuser_device_close(d.device);
    lfuser_context_destroy(d.context);
    free(text);
    return 0;
}

void bench_count_names(void) {
    for (int i = 0; i < N_ROWS; i++) {
        if (!rows[i].compile_only) printf("%s.call\n", rows[i].name);
        printf("%s.compile\n", rows[i].name);
    }
}
