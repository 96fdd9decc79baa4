// lfuser-bench: how fast kernels move memory, and what a call costs on the host.
//   main.c       the command line
//   workloads.def, case.c  the workloads; running, judging and timing one
//   call.c       a compiled program with its arguments: shapes, memory, data
//   fill.c       random data; a pool of threads
//   layout.c     --layout: inputs that are not row-major
//   clock.c, clock_cuda.c  time between two points of a stream, clearing the caches, the copy to compare with
//   judge.c, judge_norm.c  results against the same formulas in f64
//   judge_any.c  results of the user's own programs against the reference evaluator
//   report.c, json.c, plot.c  the table, --json, --compare, --peers, --plot
//   host.c       --host: the host benchmarks, timed or counted by instructions
//   start.c      --host: from a text to its first result, compiled or from the cache
//   bare_cuda.c  --host: what the driver alone takes
#ifndef LF_TOOLS_BENCH_H
#define LF_TOOLS_BENCH_H
#include <lfuser/lfuser.h>
#include <stdio.h>

// Ends the program with a message when it cannot go on: this is a tool, and half a measurement is none.
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_must(lfuser_status s, const char *what);
void *bench_alloc(size_t bytes); // zeroed; never NULL

// ---- threads and data

// Calls fn(arg, begin, end) on pieces of [0, n) that are multiples of `grain`, on as many threads as there are cores.
void bench_parallel(uint64_t n, uint64_t grain, void (*fn)(void *arg, uint64_t begin, uint64_t end), void *arg);
// A number of its own for every (seed, position).
uint64_t bench_random(uint64_t seed, uint64_t at);
// Floats: normally distributed; integers: in [0, limit), 0 for no limit. Never all zeros.
void bench_fill(lfuser_dtype dtype, uint64_t limit, uint64_t seed, void *to, uint64_t count);

// ---- devices

typedef struct bench_clock bench_clock;
typedef struct bench_device {
    lfuser_context *context;
    lfuser_device *device;
    lfuser_stream *stream;
    lfuser_dl_device dl;
    bench_clock *clock;
} bench_device;
struct bench_clock {
    // Milliseconds between just before and just after what fn gives to the stream, with cleared caches.
    double (*time)(bench_clock *c, void (*fn)(void *arg), void *arg);
    // Milliseconds a run of `runs` one after the other, each with the caches as the one before left them.
    double (*in_a_row)(bench_clock *c, void (*fn)(void *arg), void *arg, int runs);
    // The median of that for a copy of `bytes` bytes, which moves twice as many.
    double (*copy)(bench_clock *c, uint64_t bytes, int runs);
    void (*close)(bench_clock *c);
};
void bench_device_open(bench_device *d, const char *name); // keeps no compiled code: compile times are part of what is shown
void bench_device_open_with(bench_device *d, const char *name, const char *cache_directory);
void bench_device_close(bench_device *d);
bench_clock *bench_clock_cpu(bench_device *d);
// Also makes the stream. To be called before the device is opened, with its ordinal.
bench_clock *bench_clock_cuda(int ordinal, void **out_native_stream);
double bench_now_ms(void);
double bench_median(double *times, int n); // sorts them

// ---- cases

typedef enum bench_layout { BENCH_DENSE, BENCH_ODD, BENCH_PITCH, BENCH_PERMUTED, BENCH_EXPANDED } bench_layout;

typedef struct bench_array {
    const char *name; // or NULL
    lfuser_kind kind;
    lfuser_dtype dtype;
    uint32_t rank;
    int64_t shape[8], strides[8]; // strides: of inputs
    uint64_t count, bytes, bytes_read,
        offset;     // bytes_read: each byte of an input's memory once; offset: of its first element
    uint64_t limit; // integers
    void *host;     // owned. Inputs: what is on the device; outputs: what came back. Row-major
    void *device;   // owned by the case, through the stream
    lfuser_scalar value;
    lfuser_tensor tensor;
} bench_array;

typedef struct bench_verdict {
    double error;                   // largest error of an element, in units of what is allowed
    double relative;                // |got - want| / |want| of an output, as vectors; the largest
    double square_off, square_want; // of the output whose memory is `of`
    const void *of;
    uint64_t looked_at, wrong; // elements
    char what[200];            // the first that is wrong, or why nothing was compared; "" when all is well
    bool ok;
} bench_verdict;

typedef struct bench_case bench_case;
typedef void (*bench_judge)(bench_case *c, bench_verdict *out);

typedef struct bench_kernel {
    char name[64];
    uint32_t vector, registers, local_bytes, shared_bytes;
    bool wide;
} bench_kernel;

typedef struct bench_result {
    double ms, least_ms, copy_ms; // medians, and the fastest run
    double in_a_row_ms;
    double first_ms; // text to the end of the first run
    uint64_t bytes;  // each input read once, each output written once
    bench_verdict verdict;
    bench_kernel kernels[32];
    size_t n_kernels;
} bench_result;

struct bench_case {
    const char *name, *text, *shapes;
    const char *reference; // bench_judge_any: the program to evaluate, or NULL for `text`
    bench_judge judge;
    double goal; // % of the copy, or 0
    lfuser_math math;
    bench_layout layout; // of inputs of two axes and more; `odd`: of all
    bench_array *params, *outputs;
    size_t n_params, n_outputs;
    bench_result result;
};

typedef struct bench_row {
    const char *name, *program, *shapes;
    bench_judge judge;
    double fast, exact; // goals, % of the copy
} bench_row;
extern const bench_row bench_rows[];
extern const size_t bench_n_rows;

// shapes: "x=8192/,14336 labels=4096<131072 seed=7": extents of tensors ('/': divided by scale), a bound for integers, values of
// scalars. Compiles, runs, judges and times the case; what it allocated is freed, but for the result.
void bench_case_run(bench_device *d, bench_case *c, int64_t scale, int runs);
// A compiled program with its arguments in place.
typedef struct bench_call {
    bench_device *device; // for programs without tensors: one whose `device` and `stream` are NULL
    bench_case *c;
    lfuser_executable *executable;
    lfuser_argument *arguments;
    lfuser_output *outputs;
    bool wait;            // for pending scalars; not while time is taken
    uint32_t replay_from; // see lfuser_compile_options
} bench_call;
void bench_call_compile(bench_call *w);
void bench_call_place(bench_call *w, const char *shapes, int64_t scale); // in place of what was there
void bench_call_unplace(bench_call *w);
void bench_call_run(void *call);
void bench_call_wait(bench_call *w);
void bench_call_close(bench_call *w);

bench_array *bench_param(bench_case *c, const char *name);

bool bench_layout_named(const char *name, bench_layout *out);
const char *bench_layout_name(bench_layout layout);
// Memory with the array's `host` in that layout, to be freed; sets its strides, offset and bytes_read. Expanded: `host` becomes what
// that shows.
void *bench_lay_out(bench_array *a, bench_layout layout, uint64_t *out_bytes);

// ---- judging

// One element as double.
double bench_element(const bench_array *a, uint64_t at);
// Comparison of sampled elements; `scale` is the size of the numbers that the result was made of.
void bench_next_output(bench_verdict *v, const void *of);
void bench_compare(bench_verdict *v, const bench_array *a, uint64_t at, double want, double scale);

#define BENCH_JUDGE(name) void bench_judge_##name(bench_case *c, bench_verdict *v);
BENCH_JUDGE(silu_mul)
BENCH_JUDGE(bias_gelu)
BENCH_JUDGE(softmax)
BENCH_JUDGE(layernorm)
BENCH_JUDGE(rmsnorm)
BENCH_JUDGE(sum_inner)
BENCH_JUDGE(sum_outer)
BENCH_JUDGE(sum_all)
BENCH_JUDGE(transpose_add)
BENCH_JUDGE(xent)
BENCH_JUDGE(layernorm_bwd)
BENCH_JUDGE(dropout_add_ln)
BENCH_JUDGE(rope)
BENCH_JUDGE(any)
#undef BENCH_JUDGE
// The least multiple of `scale` at which bench_judge_any is quick; 0: no extent that can be divided is large enough.
int64_t bench_check_scale(const char *shapes, int64_t scale);

// ---- reports

typedef struct bench_report {
    char *old, *peers; // texts of --compare and --peers, or NULL
    const char *device, *math, *layout;
    int runs;
    int64_t scale;
} bench_report;
void bench_report_head(const bench_report *r);
// Whether it is wrong or slower than before.
bool bench_report_case(const bench_report *r, const bench_case *c);
void bench_report_json(const bench_report *r, const bench_case *cases, size_t n, FILE *to);
void bench_report_plot(const bench_report *r, const bench_case *cases, size_t n, FILE *to);
double bench_percent(const bench_result *r); // of the copy
// What a peer needed (0 eager, 1 Inductor, 2 XLA); false when that is not known.
bool bench_peer(const bench_report *r, const bench_case *c, size_t peer, double *out_ms);
// The number at a path of names, e.g. "w", "silu_mul.bf16", "eager_ms"; false when there is none.
bool bench_json_number(const char *text, const char *const *path, size_t n, double *out);

// cache: a folder for compiled code, from which programs then start; NULL: one that is made and removed.
int bench_host(const char *device, const char *filter, const char *cache, FILE *json);
void bench_start(const char *device, const char *cache,
                 void (*report)(void *to, const char *what, const char *unit, double value), void *to);
// What the driver alone takes, in µs: a launch, twelve, a graph of twelve, a launch whose result the host polls.
typedef struct bench_bare {
    double launch, launches, graph, mailbox;
} bench_bare;
void bench_bare_cuda(bench_bare *out); // the context is current
// --host --count=NAME: does the work of one row of the budget in bench_counted, where a tool for counting instructions looks.
int bench_count(const char *name);
void bench_count_names(void);
void bench_counted(void (*fn)(void *arg), void *arg, int times); // external, so that its name stays
#endif
