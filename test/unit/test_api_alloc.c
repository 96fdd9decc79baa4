// Want of memory: in each scenario every request of an act for memory fails, by itself and with all that follow it, once for each chain
// of callers. Each time the status is LFUSER_OUT_OF_MEMORY (or the act did without, and is right), the same act on the same handles is
// right directly afterwards, and when all is destroyed nothing is left.
//
// Memory is asked for piece by piece here (`exact` in base/alloc.h), so that a piece of a graph fails as any other. The last test wants
// all chains that were seen to have failed.
#include "api/api.h"
#include "test/support/api/device_test.h"
#include "test/support/failing.h"
#include <limits.h>

#define LF_TRY_TEST(call)                                                                                                   \
    do {                                                                                                                    \
        lfuser_status tried = (call);                                                                                       \
        if (tried) return tried;                                                                                            \
    } while (0)

typedef struct world {
    failing *heap;
    lfuser_context *context;
    lfuser_device *device;
    lfuser_stream *stream;
    const char *text;
    lfuser_fusion *fusion;
    lfuser_executable *executable;
    void *x, *y; // 16 floats 0 … 15 on the device; 16 more
    int stage;
    uint64_t result; // a digest of what the act gave
} world;
typedef lfuser_status act_fn(world *w);

// ---- what scenarios work with: created and destroyed, also by those that want all of it anew ------------------------------------

static lfuser_status open_world(world *w) {
    lfuser_allocator allocator = {w->heap, failing_alloc, failing_resize, failing_release};
    float host[32];
    for (int i = 0; i < 32; i++) host[i] = (float)(i % 16);
    LF_TRY_TEST(lfuser_context_create(
        &(lfuser_context_options){.size = sizeof(lfuser_context_options), .allocator = allocator, .threads = 2},
        &w->context));
    w->context->allocator.exact = true;
    LF_TRY_TEST(lfuser_device_open(w->context, test_device_name(), &w->device));
    LF_TRY_TEST(lfuser_stream_create(w->device, &w->stream));
    LF_TRY_TEST(lfuser_memory_alloc(w->stream, sizeof host / 2, &w->x));
    LF_TRY_TEST(lfuser_memory_alloc(w->stream, sizeof host / 2, &w->y));
    LF_TRY_TEST(lfuser_memory_upload(w->stream, w->x, host, sizeof host / 2));
    LF_TRY_TEST(lfuser_memory_upload(w->stream, w->y, host + 16, sizeof host / 2));
    return lfuser_stream_synchronize(w->stream);
}

static void close_world(world *w) {
    lfuser_executable_destroy(w->executable);
    lfuser_fusion_destroy(w->fusion);
    lfuser_memory_free(w->stream, w->x);
    lfuser_memory_free(w->stream, w->y);
    lfuser_stream_destroy(w->stream);
    lfuser_device_close(w->device);
    lfuser_context_destroy(w->context);
}

static uint64_t digest(uint64_t seed, const void *data, size_t n) {
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) seed = (seed ^ p[i]) * 1099511628211u;
    return seed;
}

static lfuser_status act_parse(world *w) {
    lfuser_fusion *f;
    LF_TRY_TEST(lfuser_fusion_parse(w->context, "t.lf", w->text, strlen(w->text), NULL, &f));
    w->result = digest(1, lfuser_fusion_name(f), strlen(lfuser_fusion_name(f)));
    lfuser_fusion_destroy(f);
    return NULL;
}

// A text that is no program: the message, with its place, is the result.
static lfuser_status act_refuse(world *w) {
    lfuser_fusion *f;
    lfuser_status s = lfuser_fusion_parse(w->context, "t.lf", w->text, strlen(w->text), NULL, &f);
    if (lfuser_status_code(s) != LFUSER_INVALID_PROGRAM) return s;
    w->result = digest(1, lfuser_status_message(s), strlen(lfuser_status_message(s)));
    lfuser_status_destroy(s);
    return NULL;
}

static lfuser_status act_print(world *w) {
    char *text;
    LF_TRY_TEST(lfuser_fusion_print(w->fusion, (lfuser_stage)w->stage, "cpu", LFUSER_MATH_EXACT, 0, &text));
    w->result = digest(1, text, strlen(text));
    lfuser_free(w->context, text);
    return NULL;
}

static lfuser_status act_build(world *w) {
    lfuser_builder *b;
    lfuser_fusion *f = NULL;
    LF_TRY_TEST(lfuser_builder_create(w->context, "built", &b));
    lfuser_value *params[2], *r[2];
    size_t n;
    const char *names[] = {"x", "s"};
    lfuser_type types[] = {{.dtype = LFUSER_F32, .tensor = true, .rank = 2, .extents = {-1, 4}, .names = {"n"}},
                           {.dtype = LFUSER_I64}};
    lfuser_status s = lfuser_builder_params(b, 2, names, types, params);
    lfuser_operand list[] = {{.kind = LFUSER_OPERAND_VALUE, .value = params[1]},
                             {.kind = LFUSER_OPERAND_INT, .integer = -1}};
    lfuser_operand reshape[] = {{.kind = LFUSER_OPERAND_VALUE, .value = params[0]},
                                {.kind = LFUSER_OPERAND_LIST, .items = list, .n_items = 2}};
    if (!s) s = lfuser_builder_op(b, "reshape", reshape, 2, NULL, 0, r, &n);
    lfuser_attribute axis = {.name = "axis", .operand = {.kind = LFUSER_OPERAND_INT, .integer = 1}};
    if (!s)
        s = lfuser_builder_op(b, "softmax", &(lfuser_operand){.kind = LFUSER_OPERAND_VALUE, .value = r[0]}, 1, &axis, 1, r,
                              &n);
    lfuser_operand two[] = {{.kind = LFUSER_OPERAND_VALUE, .value = params[1]}, {.kind = LFUSER_OPERAND_INT, .integer = 2}};
    lfuser_value *c[2];
    if (!s) s = lfuser_builder_op(b, "gt", two, 2, NULL, 0, c, &n);
    if (!s) s = lfuser_builder_assert(b, c[0], "too small");
    if (!s) s = lfuser_builder_return(b, 1, r, NULL, &f);
    if (s)
        lfuser_builder_destroy(b);
    else
        w->result = digest(1, lfuser_fusion_name(f), strlen(lfuser_fusion_name(f)));
    lfuser_fusion_destroy(f);
    return s;
}

static lfuser_status act_compile(world *w) {
    lfuser_executable *e;
    LF_TRY_TEST(lfuser_fusion_compile(w->fusion, w->device, NULL, &e));
    w->result = lfuser_executable_n_params(e) * 100 + lfuser_executable_n_outputs(e);
    lfuser_executable_destroy(e);
    return NULL;
}

static lfuser_argument arguments_of(world *w, lfuser_tensor *t, unsigned k) {
    static int64_t shape[] = {4, 4};
    *t = (lfuser_tensor){
        .data = k ? w->y : w->x, .device = env.place, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape};
    return tensor_argument(t);
}

// Parameters: up to two tensors [4, 4] and i64 scalars of 2, as the program says.
static lfuser_status run(world *w, lfuser_executable *e, bool infer) {
    lfuser_argument arguments[4];
    lfuser_tensor tensors[4];
    lfuser_output outputs[6] = {{0}};
    lfuser_completion *completion = NULL;
    unsigned n_tensors = 0;
    for (size_t i = 0; i < lfuser_executable_n_params(e); i++) {
        lfuser_value_info info;
        LF_TRY_TEST(lfuser_executable_param(e, i, &info));
        arguments[i] = info.kind == LFUSER_TENSOR ? arguments_of(w, &tensors[i], n_tensors++) : i64_argument(2);
    }
    size_t n = lfuser_executable_n_outputs(e), n_args = lfuser_executable_n_params(e);
    int64_t shapes[6][8] = {{0}};
    if (infer) {
        LF_TRY_TEST(lfuser_infer(e, arguments, n_args, outputs, n, shapes, NULL));
        w->result = digest(1, shapes, sizeof shapes);
        return NULL;
    }
    lfuser_status s = lfuser_run(e, w->stream, arguments, n_args, outputs, n, &completion);
    uint64_t result = 1;
    for (size_t k = 0; k < n && !s; k++) {
        lfuser_scalar value = outputs[k].value;
        float host[64] = {0};
        if (outputs[k].kind == LFUSER_PENDING) s = lfuser_pending_get(outputs[k].pending, UINT64_MAX, &value);
        if (outputs[k].kind != LFUSER_TENSOR) {
            result = digest(result, &value, lfuser_dtype_bytes(outputs[k].dtype));
        } else if (outputs[k].allocated) {
            const lfuser_tensor *t = &outputs[k].allocated->tensor;
            size_t bytes = lfuser_dtype_bytes(outputs[k].dtype);
            for (int32_t a = 0; a < t->rank; a++) bytes *= (size_t)t->shape[a];
            s = lfuser_memory_download(w->stream, host, t->data, bytes < sizeof host ? bytes : sizeof host);
            if (!s) s = lfuser_stream_synchronize(w->stream);
            result = digest(result, host, sizeof host);
        }
    }
    if (!s) s = lfuser_completion_wait(completion, UINT64_MAX);
    lfuser_status end = lfuser_stream_synchronize(w->stream);
    if (!s)
        s = end;
    else
        lfuser_status_destroy(end);
    for (size_t k = 0; k < n; k++) {
        if (outputs[k].allocated) outputs[k].allocated->deleter(outputs[k].allocated);
        lfuser_pending_release(outputs[k].pending);
    }
    lfuser_completion_release(completion);
    w->result = result;
    return s;
}

// The first of an executable that is compiled without failures: later ones allocate nothing.
static lfuser_status act_run(world *w) {
    long fail_at = w->heap->fail_at;
    size_t wanted = w->heap->wanted;
    bool recording = w->heap->recording;
    w->heap->fail_at = w->heap->wanted = w->heap->recording = 0;
    lfuser_executable_destroy(w->executable);
    ok(lfuser_fusion_compile(w->fusion, w->device, NULL, &w->executable));
    w->heap->calls = 0;
    w->heap->fail_at = fail_at;
    w->heap->wanted = wanted;
    w->heap->recording = recording;
    return run(w, w->executable, false);
}
static lfuser_status act_infer(world *w) { return run(w, w->executable, true); }
// A whole life, from the context on: what is compiled is in no cache.
static lfuser_status live(world *w) {
    LF_TRY_TEST(open_world(w));
    LF_TRY_TEST(lfuser_fusion_parse(w->context, "t.lf", w->text, strlen(w->text), NULL, &w->fusion));
    lfuser_compile_options waits = {.size = sizeof waits, .sync = LFUSER_ALLOW_SYNC};
    LF_TRY_TEST(lfuser_fusion_compile(w->fusion, w->device, &waits, &w->executable));
    return run(w, w->executable, false);
}
static lfuser_status act_life(world *w) {
    world own = {.heap = w->heap, .text = w->text};
    lfuser_status s = live(&own);
    close_world(&own);
    w->result = own.result;
    return s;
}
static lfuser_status act_prepare(world *w) {
    lfuser_executable *e;
    LF_TRY_TEST(lfuser_fusion_compile(w->fusion, w->device, NULL, &e));
    lfuser_status s = lfuser_executable_prepare(e);
    lfuser_executable_destroy(e);
    return s;
}

static lfuser_status act_memory(world *w) {
    void *p;
    int there[8] = {1, 2, 3}, back[8] = {0};
    LF_TRY_TEST(lfuser_memory_alloc(w->stream, sizeof there, &p));
    lfuser_status s = lfuser_memory_upload(w->stream, p, there, sizeof there);
    if (!s) s = lfuser_memory_download(w->stream, back, p, sizeof back);
    if (!s) s = lfuser_stream_synchronize(w->stream);
    lfuser_memory_free(w->stream, p);
    w->result = digest(1, back, sizeof back);
    return s;
}

static void add_one(void *arg) { ++*(_Atomic int *)arg; }
static lfuser_status call_back(world *w, _Atomic int *called) {
    LF_TRY_TEST(open_world(w));
    LF_TRY_TEST(lfuser_stream_callback(w->stream, add_one, called));
    return lfuser_stream_synchronize(w->stream);
}
// On a device of its own, which has no thread yet that could run it.
static lfuser_status act_callback(world *w) {
    world own = {.heap = w->heap};
    _Atomic int called = 0;
    lfuser_status s = call_back(&own, &called);
    close_world(&own); // has no callback under way any more
    w->result = (uint64_t)called;
    return s;
}

// A run, and calls when its scalars have arrived and when it is over.
static lfuser_status watch(world *w, _Atomic int *called, lfuser_output *outputs, lfuser_completion **completion) {
    LF_TRY_TEST(open_world(w));
    LF_TRY_TEST(lfuser_fusion_parse(w->context, "t.lf", w->text, strlen(w->text), NULL, &w->fusion));
    LF_TRY_TEST(lfuser_fusion_compile(w->fusion, w->device, NULL, &w->executable));
    lfuser_tensor t;
    lfuser_argument x = arguments_of(w, &t, 0);
    LF_TRY_TEST(lfuser_run(w->executable, w->stream, &x, 1, outputs, 3, completion));
    LF_TRY_TEST(lfuser_pending_callback(outputs[1].pending, add_one, called));
    LF_TRY_TEST(lfuser_completion_callback(*completion, add_one, called));
    LF_TRY_TEST(lfuser_completion_wait(*completion, UINT64_MAX));
    return lfuser_stream_synchronize(w->stream);
}
static lfuser_status act_watch(world *w) {
    world own = {.heap = w->heap, .text = w->text};
    _Atomic int called = 0;
    lfuser_output outputs[3] = {{0}};
    lfuser_completion *completion = NULL;
    lfuser_status s = watch(&own, &called, outputs, &completion);
    if (own.stream) lfuser_status_destroy(lfuser_stream_synchronize(own.stream));
    for (int k = 0; k < 3; k++) {
        if (outputs[k].allocated) outputs[k].allocated->deleter(outputs[k].allocated);
        lfuser_pending_release(outputs[k].pending);
    }
    lfuser_completion_release(completion);
    close_world(&own);
    return s;
}

// Kernels of the classes that a GPU has for many rows, long ones and sums across them.
static lfuser_status plan(world *w) {
    static int64_t shapes[][2] = {{4096, 256}, {64, 40000}, {1, 1000000}, {100000, 3}};
    lfuser_tensor tensors[4];
    lfuser_argument arguments[4];
    const lfuser_argument *sets[4];
    LF_TRY_TEST(open_world(w));
    for (int i = 0; i < 4; i++) {
        tensors[i] =
            (lfuser_tensor){.device = env.place, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shapes[i]};
        arguments[i] = tensor_argument(&tensors[i]);
        sets[i] = &arguments[i];
    }
    LF_TRY_TEST(lfuser_fusion_parse(w->context, "t.lf", w->text, strlen(w->text), NULL, &w->fusion));
    lfuser_compile_options quick = {.size = sizeof quick, .debug = "no-passes"};
    LF_TRY_TEST(lfuser_fusion_compile(w->fusion, w->device, &quick, &w->executable));
    return lfuser_executable_prepare_shapes(w->executable, sets, 4, 1);
}
static lfuser_status act_plan(world *w) {
    world own = {.heap = w->heap, .text = w->text};
    lfuser_status s = plan(&own);
    close_world(&own);
    return s;
}

static lfuser_status act_device(world *w) {
    lfuser_device *device;
    LF_TRY_TEST(lfuser_device_open(w->context, test_device_name(), &device));
    w->result = digest(1, lfuser_device_description(device), 3);
    lfuser_device_close(device);
    return NULL;
}

static lfuser_status act_context(world *w) {
    lfuser_context *context;
    lfuser_allocator allocator = {w->heap, failing_alloc, failing_resize, failing_release};
    LF_TRY_TEST(lfuser_context_create(
        &(lfuser_context_options){.size = sizeof(lfuser_context_options), .allocator = allocator}, &context));
    lfuser_status s = lfuser_context_warm(context);
    lfuser_context_destroy(context);
    return s;
}

// ---- scenarios -----------------------------------------------------------------------------------------------------------------

#define SEED                                                                                                                \
    "fusion @seed(%t0: f32[?, ?], %s: i64) { %a = reshape %t0, [%s, -1] %b = add %a, 1.5 %n = add %s, 1 return %b, %n }"
#define ROWS                                                                                                                \
    "fusion @rows(%x: f32[?, ?]) { %a = softmax %x, axis=1 %b, %c = var_mean %a, axes=[0] %d = norm %x return %a, %b, %c, " \
    "%d }"
#define WHOLE                                                                                                               \
    "fusion @whole(%x: f32[?, ?], %s: i64) { %a, %i = sort %x, axis=1 %b = scatter %x, %i, %a, axis=1, mode=add %c = "      \
    "cumsum %b, axis=0 %t, %j = topk %x, %s return %b, %c, %t, %j }"
#define INDEX                                                                                                               \
    "fusion @index(%x: f32[?, ?], %s: i64) { %i = iota %s, 0, 1 %a = take %x, %i, axis=0 %b = onehot %i, 3 %c = index %x, " \
    "%s, axis=1 %p = pad %a, [1, 0], [0, %s], 2.0 %q = cat %x, %x, axis=0 return %b, %c, %p, %q }"
#define PENDING                                                                                                             \
    "fusion @pending(%x: f32[?, ?]) { %m = max %x %p = item %m %y = div %x, %p %q = add %p, 1 return %y, %p, %q }"
#define PLACES                                                                                                              \
    "fusion @places(%x: f32[?, ?], %y: f32[?, ?]) { %a = add %x, %y %b = transpose %x, 0, 1 %c = mul %a, %b return %c "     \
    "into %y, %a }"
#define SCALARS                                                                                                             \
    "fusion @scalars(%a: i64, %b: i64) { %c = floordiv %a, %b %d = sqrt %c %e = pow %a, %b %f = sin %d return %c, %d, %e, " \
    "%f }"
#define CHECKED                                                                                                             \
    "fusion @checked(%x: f32[%h, 4], %y: f32[%h, ?], %s: i64) { %c = gt %s, 1 assert %c, \"small\" %a = matmul %x, %y %b "  \
    "= linear %x, %y, none return %a, %b }"
#define RANDOM                                                                                                              \
    "fusion @random(%x: f32[?, ?], %s: i64) { %u = uniform [%s, 3], 0.0, 1.0, 5, 0 %y, %m = dropout %x, 0.5, %s, 0 return " \
    "%u, %y, %m }"
#define NORMS                                                                                                               \
    "fusion @norms(%x: f32[?, ?]) { %a = layer_norm %x, none, none, 1e-5 %b = rms_norm %a, none, 1e-5 %c = logsumexp %b, "  \
    "axes=[0] %k = tensor [1, 2, 3, 4] %d = mul %c, %k return %a, %d }"

#define SUMS                                                                                                                \
    "fusion @sums(%x: f32[?, ?]) { %q = mul %x, %x %m = mean %q, axes=[1], keepdim=true %r = rsqrt %m %h = mul %x, %r %s "  \
    "= sum %h, axes=[0] %d = mul %h, 2 return %d, %s }"
#define SYNC                                                                                                                \
    "fusion @sync(%x: f32[?, ?]) { %c = count_nonzero %x %n = item %c %i = iota %n, 0, 1 %y = mul %i, %n return %y, %n }"

typedef struct scenario {
    const char *name, *text;
    act_fn *act;
    int stage;
    bool heavy; // compiles: fewer of its allocations fail where that is slow
} scenario;
static const scenario scenarios[] = {
    {"parse seed", SEED, act_parse, 0, false},
    {"parse rows", ROWS, act_parse, 0, false},
    {"parse whole", WHOLE, act_parse, 0, false},
    {"parse index", INDEX, act_parse, 0, false},
    {"parse pending", PENDING, act_parse, 0, false},
    {"parse checked", CHECKED, act_parse, 0, false},
    {"parse random", RANDOM, act_parse, 0, false},
    {"parse norms", NORMS, act_parse, 0, false},
    {"refuse a word", "fusion @f(%x: f32[?]) {\n  %y = ad %x, 1\n  return %y\n}", act_refuse, 0, false},
    {"refuse a type", "fusion @f(%x: f32[?], %y: u8[?]) {\n  %z = xor %x, %y\n  return %z\n}", act_refuse, 0, false},
    {"build", NULL, act_build, 0, false},
    {"print fusion", SEED, act_print, LFUSER_STAGE_FUSION, false},
    {"print graph", ROWS, act_print, LFUSER_STAGE_GRAPH, false},
    {"print partition", WHOLE, act_print, LFUSER_STAGE_PARTITION, false},
    {"print program", INDEX, act_print, LFUSER_STAGE_PROGRAM, false},
    {"print kernels", PENDING, act_print, LFUSER_STAGE_KERNELS, false},
    {"print host IR", SCALARS, act_print, LFUSER_STAGE_HOST_IR, true},
    {"print device IR", PLACES, act_print, LFUSER_STAGE_DEVICE_IR, true},
    {"compile scalars", SCALARS, act_compile, 0, true},
    {"compile places", PLACES, act_compile, 0, true},
    {"life of seed", SEED, act_life, 0, true},
    {"life of rows", ROWS, act_life, 0, true},
    {"life of whole", WHOLE, act_life, 0, true},
    {"life of index", INDEX, act_life, 0, true},
    {"life of pending", PENDING, act_life, 0, true},
    {"life of places", PLACES, act_life, 0, true},
    {"life of scalars", SCALARS, act_life, 0, true},
    {"life of checked", CHECKED, act_life, 0, true},
    {"life of random", RANDOM, act_life, 0, true},
    {"life of norms", NORMS, act_life, 0, true},
    {"life of sync", SYNC, act_life, 0, true},
    {"prepare", PLACES, act_prepare, 0, true},
    {"run seed", SEED, act_run, 0, true},
    {"run rows", ROWS, act_run, 0, true},
    {"run whole", WHOLE, act_run, 0, true},
    {"run index", INDEX, act_run, 0, true},
    {"run pending", PENDING, act_run, 0, true},
    {"run scalars", SCALARS, act_run, 0, true},
    {"run checked", CHECKED, act_run, 0, true},
    {"infer", INDEX, act_infer, 0, false},
    {"memory", NULL, act_memory, 0, false},
    {"watch", PENDING, act_watch, 0, true},
    {"plan shapes", SUMS, act_plan, 0, true},
    {"callback", NULL, act_callback, 0, false},
    {"device", NULL, act_device, 0, false},
    {"context", NULL, act_context, 0, true},
};
enum { N_SCENARIOS = sizeof scenarios / sizeof *scenarios };

enum { ATTEMPTS = 200, ENOUGH = 4 }; // where an act takes long, chains that have failed ENOUGH times are left out
typedef struct tally {
    uint64_t right;
    long failed, without;
} tally;

// Request k fails (0: none), and with `lasting` all after it.
__attribute__((noinline)) static void act_once(world *w, const scenario *s, long k, bool lasting, tally *t) {
    w->heap->outermost = __builtin_frame_address(0);
    w->heap->calls = 0;
    w->heap->lasting = lasting;
    w->heap->fail_at = k;
    lfuser_status status = s->act(w);
    bool reached = k && w->heap->fail_at && w->heap->calls >= w->heap->fail_at;
    w->heap->fail_at = w->heap->wanted = 0;
    bool fine = status ? k && lfuser_status_code(status) == LFUSER_OUT_OF_MEMORY : w->result == t->right;
    if (!fine && k) print_site("failing here is wrong", w->heap->last);
    ck_assert_msg(!status || (k && lfuser_status_code(status) == LFUSER_OUT_OF_MEMORY),
                  "%s: request %ld%s failing gives %s: %s", s->name, k, lasting ? " and later ones" : "",
                  lfuser_code_name(lfuser_status_code(status)), lfuser_status_message(status));
    ck_assert_msg(status || w->result == t->right, "%s: request %ld failing gives a wrong result", s->name, k);
    if (reached) *(status ? &t->failed : &t->without) += 1;
    lfuser_status_destroy(status);
}

START_TEST(each_request_fails) {
    const scenario *s = &scenarios[_i];
    failing heap = {.outermost = NULL};
    world w = {.heap = &heap, .text = s->text, .stage = s->stage};
    ok(open_world(&w));
    if (s->text && s->act != act_parse && s->act != act_refuse)
        ok(lfuser_fusion_parse(w.context, "t.lf", s->text, strlen(s->text), NULL, &w.fusion));
    if (s->act == act_run || s->act == act_infer) ok(lfuser_fusion_compile(w.fusion, w.device, NULL, &w.executable));
    ok(s->act(&w)); // what the first of all sets up is no part of this
    tally t = {.right = w.result};
    double since = now_s();
    bool seldom = s->heavy || SLOW_BUILD;
    for (long k = 0, n = 0; k <= n; k++) {
        site *of = &sites[trace[k]];
        if (k && seldom && (of->round == _i + 1 || of->failed >= ENOUGH)) continue;
        if (k && test_on_cuda() && s->heavy && k % 23) continue; // a life takes long there
        of->round = _i + 1;
        heap.recording = !k;
        for (int lasting = 0; lasting < 1 + (k > 0); lasting++) act_once(&w, s, k, lasting, &t);
        if (!k) n = heap.calls;
        ck_assert_int_lt(n, MOST_CALLS);
        heap.recording = false;
        if (!seldom || k % 8 == 1) act_once(&w, s, 0, false, &t);
    }
    // Threads of the library's own change the order of requests, or who asks: what was only seen is waited for.
    size_t seen, hit;
    count_sites(&seen, &hit);
    for (int attempt = 0; attempt < ATTEMPTS && hit != seen && !test_on_cuda(); attempt++) {
        for (size_t i = 0; i < MOST_SITES; i++) {
            if (!sites[i].key || sites[i].failed) continue;
            heap.wanted = i + 1;
            act_once(&w, s, LONG_MAX, false, &t);
        }
        count_sites(&seen, &hit);
    }
    act_once(&w, s, 0, false, &t);
    close_world(&w);
    ck_assert_msg(heap.live == 0, "%s: %ld blocks are left", s->name, (long)heap.live);
    printf("%-22s %5ld times out of memory, %4ld times done without, %4zu of %4zu chains of callers hit, %.1f s\n", s->name,
           t.failed, t.without, hit, seen, now_s() - since);
}
END_TEST

START_TEST(each_chain_has_failed) {
    size_t seen, hit;
    count_sites(&seen, &hit);
    if (test_on_cuda()) return;
    print_sites_left();
    ck_assert_uint_eq(hit, seen);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("want of memory");
    TCase *t = device_tcase(suite, "requests", 300);
    const char *one = getenv("LFUSER_SCENARIO"); // for a debugger: the number of one of them
    int from = one ? atoi(one) : 0;
    tcase_add_loop_test(t, each_request_fails, from, one ? from + 1 : N_SCENARIOS);
    tcase_add_test(t, each_chain_has_failed);
    return suite;
}

int main(int argc, char **argv) {
    setenv("CK_FORK", "no", 1); // one count of chains for all
    return device_test_main(argc, argv, make);
}
