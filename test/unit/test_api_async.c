// What runs cost and what they leave to do later: no allocation once warm, callbacks, memory that the caller gives, streams beside
// each other, completions.
#include "test/support/api/tensors.h"
#include <stdatomic.h>
#include <unistd.h>

// ---- an allocator that counts --------------------------------------------------------------------------------------------------------

typedef struct counting {
    _Atomic long calls;
} counting;
static void *count_alloc(void *self, size_t bytes) {
    ((counting *)self)->calls++;
    return malloc(bytes);
}
static void *count_resize(void *self, void *block, size_t bytes) {
    ((counting *)self)->calls++;
    return realloc(block, bytes);
}
static void count_release(void *self, void *block) {
    (void)self;
    free(block);
}

static lfuser_executable *compile_allowed(const char *text) {
    lfuser_compile_options options = {.size = sizeof options, .sync = LFUSER_ALLOW_SYNC};
    lfuser_fusion *f = parse(text);
    lfuser_executable *e;
    ok(lfuser_fusion_compile(f, env.device, &options, &e));
    lfuser_fusion_destroy(f);
    return e;
}

static const char *const steady[] = {
    // Host scalars alone; a pointwise kernel; whatever there is; scalars that the host finishes; sync points.
    "fusion @f(%x: f32[?], %s: i64) { %a = mul %s, %s %b = add %a, 1 return %b }",
    "fusion @f(%x: f32[?], %s: i64) { %y = mul %x, %s %z = exp %y return %z }",
    "fusion @f(%x: f32[?], %s: i64) { %e = exp %x %r = sum %e %p = item %r %i = iota 5, 0, 1 %t = take %e, %i, axis=0 %d, "
    "%j = sort %t, axis=0, "
    "descending=true return %d, %p, %s, %r }",
    "fusion @f(%x: f32[?], %s: i64) { %r = sum %x %p = item %r %m = max %x %q = item %m %a = mul %p, %s %b = sub %a, %q "
    "return %p, %a, %b }",
    "fusion @f(%x: f32[?], %s: i64) { %g = gt %x, 3.0 %c = count_nonzero %g %k = item %c %y = iota %k, 0, %s %m = sum %y %p "
    "= item %m "
    "return %y, %k, %p }",
};

static void run_steadily(lfuser_executable *e, const test_tensor *x, bool completes) {
    lfuser_argument arguments[] = {tensor_argument(&x->view), i64_argument(3)};
    lfuser_output outputs[4] = {{0}};
    lfuser_completion *completion = NULL;
    ok(lfuser_run(e, env.stream, arguments, 2, outputs, lfuser_executable_n_outputs(e), completes ? &completion : NULL));
    lfuser_scalar value;
    for (size_t i = 0; i < 4; i++) {
        if (outputs[i].pending) ok(lfuser_pending_get(outputs[i].pending, UINT64_MAX, &value));
        lfuser_pending_release(outputs[i].pending);
        if (outputs[i].allocated) outputs[i].allocated->deleter(outputs[i].allocated);
    }
    if (completion) ok(lfuser_completion_wait(completion, UINT64_MAX));
    lfuser_completion_release(completion);
    synchronize();
}

START_TEST(steady_calls_allocate_nothing) {
    if (!strcmp(test_device_name(), "sim"))
        return; // there each allocation on the device is one of the allocator, of its exact size
    counting c = {0};
    env_teardown();
    env_open(&(lfuser_context_options){
        .size = sizeof(lfuser_context_options), .threads = 1, .allocator = {&c, count_alloc, count_resize, count_release}});
    test_tensor x;
    tensor_f32(&x, 1, (int64_t[]){100}, 0, 1);
    for (size_t i = 0; i < sizeof steady / sizeof *steady; i++) {
        lfuser_executable *e = compile_allowed(steady[i]);
        for (int completes = 0; completes < 2; completes++) {
            for (int k = 0; k < 50; k++) run_steadily(e, &x, completes);
            long before = c.calls;
            for (int k = 0; k < 200; k++) run_steadily(e, &x, completes);
            ck_assert_msg(c.calls == before, "%ld allocations in 200 runs, completions %d: %s", c.calls - before, completes,
                          steady[i]);
        }
        lfuser_executable_destroy(e);
    }
    tensor_finish(&x);
}
END_TEST

// ---- many arguments ------------------------------------------------------------------------------------------------------------------

enum { TENSORS = 200, EXTENT = 3 };

// Argument blocks of more than 4 KB go through memory.
START_TEST(two_hundred_tensors_in_one_program) {
    static char text[32768];
    static test_tensor x[TENSORS];
    static lfuser_argument arguments[TENSORS];
    const char *from = "fusion @many(";
    size_t n = (size_t)snprintf(text, sizeof text, "%s", from);
    for (int i = 0; i < TENSORS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%%x%d: f32[?, ?, ?]", i ? ", " : "", i);
    n += (size_t)snprintf(text + n, sizeof text - n, ") {\n  %%s1 = add %%x0, %%x1\n");
    for (int i = 2; i < TENSORS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "  %%s%d = add %%s%d, %%x%d\n", i, i - 1, i);
    snprintf(text + n, sizeof text - n, "  return %%s%d\n}\n", TENSORS - 1);
    lfuser_executable *e = compile(text);
    float want = 0;
    for (int i = 0; i < TENSORS; i++) {
        tensor_init(&x[i], LFUSER_F32, 3, (int64_t[]){EXTENT, EXTENT, EXTENT}, i % 2 ? LAYOUT_DENSE : LAYOUT_PERMUTED);
        for (int64_t k = 0; k < EXTENT * EXTENT * EXTENT; k++) *(float *)tensor_element(&x[i], k) = (float)(i + k);
        tensor_upload(&x[i]);
        arguments[i] = tensor_argument(&x[i].view);
        want += (float)i;
    }
    for (int round = 0; round < 100; round++) { // more blocks than there are slots for them
        lfuser_output output = {0};
        ok(lfuser_run(e, env.stream, arguments, TENSORS, &output, 1, NULL));
        float back[EXTENT * EXTENT * EXTENT];
        ok(lfuser_memory_download(env.stream, back, output.allocated->tensor.data, sizeof back));
        if (round % 10 == 9) {
            synchronize();
            for (int k = 0; k < EXTENT * EXTENT * EXTENT; k++) ck_assert_float_eq(back[k], want + (float)(TENSORS * k));
        }
        output.allocated->deleter(output.allocated);
    }
    synchronize();
    for (int i = 0; i < TENSORS; i++) tensor_finish(&x[i]);
    lfuser_executable_destroy(e);
}
END_TEST

// ---- memory of the caller --------------------------------------------------------------------------------------------------------------

static const char softmax_text[] =
    "fusion @w(%x: f32[?, ?]) { %e = exp %x %s = sum %e %d, %j = sort %e, axis=1 %y = div %d, %s return %y }";

START_TEST(a_workspace_of_the_caller) {
    lfuser_executable *e = compile(softmax_text);
    test_tensor x, y;
    tensor_f32(&x, 2, (int64_t[]){7, 9}, 0, 0.1f);
    tensor_init(&y, LFUSER_F32, 2, (int64_t[]){7, 9}, LAYOUT_DENSE);
    tensor_upload(&y);
    lfuser_argument argument = tensor_argument(&x.view);
    lfuser_output output = {.tensor = &y.view};
    uint64_t bytes;
    ok(lfuser_infer(e, &argument, 1, &output, 1, NULL, &bytes));
    ck_assert_uint_gt(bytes, 0);
    void *memory;
    ok(lfuser_memory_alloc(env.stream, bytes + 8, &memory));
    lfuser_run_options options = {.size = sizeof options, .workspace = memory, .workspace_bytes = bytes - 1};
    char message[256];
    snprintf(message, sizeof message, "@w: the workspace has %llu bytes, this run needs %llu", (unsigned long long)bytes - 1,
             (unsigned long long)bytes);
    fails(lfuser_run_with(e, env.stream, &argument, 1, &output, 1, &options, NULL), LFUSER_INVALID_ARGUMENT, message);
    options.workspace = (char *)memory + 8;
    options.workspace_bytes = bytes;
    snprintf(message, sizeof message, "@w: the workspace at %p is not aligned to 256 bytes", options.workspace);
    fails(lfuser_run_with(e, env.stream, &argument, 1, &output, 1, &options, NULL), LFUSER_INVALID_ARGUMENT, message);
    options.workspace = memory;
    ok(lfuser_run_with(e, env.stream, &argument, 1, &output, 1, &options, NULL)); // compiles
    tensor_download(&y);
    float first = tensor_f32_at(&y, 0), last = tensor_f32_at(&y, 62);
    uint64_t allocations = stats().allocations;
    for (int i = 0; i < 20; i++) ok(lfuser_run_with(e, env.stream, &argument, 1, &output, 1, &options, NULL));
    ck_assert_uint_eq(stats().allocations, allocations);
    ok(lfuser_run(e, env.stream, &argument, 1, &output, 1, NULL));
    ck_assert_uint_eq(stats().allocations, allocations + 1);
    tensor_download(&y);
    ck_assert_float_eq(tensor_f32_at(&y, 0), first);
    ck_assert_float_eq(tensor_f32_at(&y, 62), last);
    lfuser_memory_free(env.stream, memory);
    tensor_finish(&x);
    tensor_finish(&y);
    lfuser_executable_destroy(e);
}
END_TEST

typedef struct buffers {
    test_tensor tensor;
    int asked;
    bool refuse;
} buffers;

static lfuser_tensor *give_buffer(void *self, size_t output, lfuser_dtype dtype, uint32_t rank, const int64_t *shape) {
    buffers *b = self;
    b->asked++;
    ck_assert_uint_eq(output, 0);
    ck_assert_int_eq(dtype, LFUSER_F32);
    ck_assert_uint_eq(rank, 2);
    if (b->refuse) return NULL;
    tensor_init(&b->tensor, dtype, rank, shape, LAYOUT_PERMUTED);
    tensor_upload(&b->tensor);
    return &b->tensor.view;
}

START_TEST(outputs_from_the_callers_allocator) {
    lfuser_executable *e = compile("fusion @f(%x: f32[?, ?]) { %y = add %x, 1.0 %s = sum %x return %y, %s }");
    static buffers b;
    test_tensor x, sum;
    tensor_f32(&x, 2, (int64_t[]){4, 5}, 0, 1);
    tensor_init(&sum, LFUSER_F32, 0, NULL, LAYOUT_DENSE);
    tensor_upload(&sum);
    lfuser_argument argument = tensor_argument(&x.view);
    lfuser_output outputs[2] = {{0}, {.tensor = &sum.view}}; // given: not asked for
    lfuser_run_options options = {.size = sizeof options, .self = &b, .output_buffer = give_buffer};
    ok(lfuser_run_with(e, env.stream, &argument, 1, outputs, 2, &options, NULL));
    ck_assert_int_eq(b.asked, 1);
    ck_assert_ptr_eq(outputs[0].tensor, &b.tensor.view);
    ck_assert_ptr_null(outputs[0].allocated);
    tensor_download(&b.tensor);
    for (int64_t i = 0; i < 20; i++) ck_assert_float_eq(tensor_f32_at(&b.tensor, i), (float)i + 1);
    tensor_check_guards(&b.tensor, "y");
    b.refuse = true;
    outputs[0].tensor = NULL;
    fails(lfuser_run_with(e, env.stream, &argument, 1, outputs, 2, &options, NULL), LFUSER_OUT_OF_MEMORY,
          "@f: the caller's allocator gave no buffer for output 0");
    tensor_finish(&b.tensor);
    tensor_finish(&x);
    tensor_finish(&sum);
    lfuser_executable_destroy(e);
}
END_TEST

// ---- blocked streams ---------------------------------------------------------------------------------------------------------------------

// A run with every kind of output returns while its stream is held up, and counts no sync.
START_TEST(no_output_kind_waits) {
    lfuser_executable *e =
        compile("fusion @f(%x: f32[?], %y: f32[?], %h: f32[] @host, %s: f64, %i: i64[?]) {\n"
                "  %a = add %x, %h\n  %b = mul %y, 2.0\n  %m = max %x\n  %p = item %m\n  %q = add %p, 1.0\n"
                "  %t = mul %h, 3.0\n  %u = sqrt %s\n  %g = take %x, %i, axis=0\n  %n = numel %g\n"
                "  return %a, %b into %y, %p, %q, %t, %u, %g, %n, %x\n}\n");
    enum { OUTPUTS = 9 };
    static const lfuser_kind kinds[OUTPUTS] = {LFUSER_TENSOR,  LFUSER_TENSOR,      LFUSER_PENDING,
                                               LFUSER_PENDING, LFUSER_HOST_TENSOR, LFUSER_SCALAR,
                                               LFUSER_TENSOR,  LFUSER_SCALAR,      LFUSER_TENSOR};
    test_tensor x, y, i;
    tensor_f32(&x, 1, (int64_t[]){6}, 1, 1);
    tensor_f32(&y, 1, (int64_t[]){6}, 1, 1);
    tensor_init(&i, LFUSER_I64, 1, (int64_t[]){2}, LAYOUT_DENSE);
    for (int64_t k = 0; k < 2; k++) *(int64_t *)tensor_element(&i, k) = 5 * k;
    tensor_upload(&i);
    lfuser_argument arguments[] = {tensor_argument(&x.view),
                                   tensor_argument(&y.view),
                                   {.kind = LFUSER_HOST_TENSOR, .dtype = LFUSER_F32, .value = {.f32 = 0.5f}},
                                   {.kind = LFUSER_SCALAR, .dtype = LFUSER_F64, .value = {.f64 = 16}},
                                   tensor_argument(&i.view)};
    ok(lfuser_executable_prepare(e));
    for (int round = 0; round < 2; round++) { // the first one compiles what prepare did not
        lfuser_output outputs[OUTPUTS] = {{0}};
        lfuser_completion *completion;
        gate g = GATE;
        uint64_t syncs = stats().syncs;
        if (round) block_stream(env.stream, &g);
        ok(lfuser_run(e, env.stream, arguments, 5, outputs, OUTPUTS, &completion));
        ck_assert_uint_eq(stats().syncs, syncs);
        for (int k = 0; k < OUTPUTS; k++) ck_assert_int_eq(outputs[k].kind, kinds[k]);
        ck_assert_float_eq(outputs[4].value.f32, 1.5f);
        ck_assert_double_eq(outputs[5].value.f64, 4);
        ck_assert_int_eq(outputs[7].value.i64, 2);
        if (round) {
            ck_assert(!lfuser_pending_ready(outputs[2].pending));
            fails(lfuser_completion_query(completion), LFUSER_NOT_READY, "the run has not completed yet");
            open_gate(&g);
        }
        lfuser_scalar p, q;
        ok(lfuser_pending_get(outputs[2].pending, UINT64_MAX, &p));
        ok(lfuser_pending_get(outputs[3].pending, UINT64_MAX, &q));
        ck_assert_float_eq(p.f32, 6);
        ck_assert_float_eq(q.f32, 7);
        ck_assert_uint_eq(stats().syncs, syncs);
        ok(lfuser_completion_wait(completion, UINT64_MAX));
        lfuser_completion_release(completion);
        for (int k = 0; k < OUTPUTS; k++) {
            lfuser_pending_release(outputs[k].pending);
            if (outputs[k].allocated) outputs[k].allocated->deleter(outputs[k].allocated);
        }
    }
    tensor_finish(&x);
    tensor_finish(&y);
    tensor_finish(&i);
    lfuser_executable_destroy(e);
}
END_TEST

START_TEST(two_streams_run_one_executable_beside_each_other) {
    lfuser_executable *e = compile(softmax_text);
    test_tensor x;
    tensor_f32(&x, 2, (int64_t[]){3, 50}, 0, 0.1f);
    lfuser_argument argument = tensor_argument(&x.view);
    lfuser_stream *other;
    lfuser_output warm = {0}, held = {0}, free_one = {0};
    ok(lfuser_stream_create(env.device, &other));
    ok(lfuser_run(e, env.stream, &argument, 1, &warm, 1, NULL));
    synchronize();
    gate g = GATE;
    lfuser_completion *completion, *of_other;
    block_stream(env.stream, &g);
    ok(lfuser_run(e, env.stream, &argument, 1, &held, 1, &completion));
    ok(lfuser_run(e, other, &argument, 1, &free_one, 1, &of_other));
    ok(lfuser_completion_wait(of_other, UINT64_MAX)); // while the other one is held up
    fails(lfuser_completion_query(completion), LFUSER_NOT_READY, "the run has not completed yet");
    open_gate(&g);
    ok(lfuser_completion_wait(completion, UINT64_MAX));
    float a[150], b[150];
    ok(lfuser_memory_download(env.stream, a, held.allocated->tensor.data, sizeof a));
    ok(lfuser_memory_download(other, b, free_one.allocated->tensor.data, sizeof b));
    synchronize();
    ok(lfuser_stream_synchronize(other));
    ck_assert_mem_eq(a, b, sizeof a);
    lfuser_completion_release(completion);
    lfuser_completion_release(of_other);
    warm.allocated->deleter(warm.allocated);
    held.allocated->deleter(held.allocated);
    free_one.allocated->deleter(free_one.allocated);
    lfuser_stream_destroy(other);
    tensor_finish(&x);
    lfuser_executable_destroy(e);
}
END_TEST

// ---- callbacks -----------------------------------------------------------------------------------------------------------------------------

typedef struct heard {
    lfuser_pending *pending;
    lfuser_completion *completion;
    lfuser_executable *executable;
    const test_tensor *x;
    pthread_t caller;
    float value;
    lfuser_code code;
    _Atomic int calls;
} heard;

static void value_is_there(void *arg) {
    heard *h = arg;
    lfuser_scalar value;
    ok(lfuser_pending_get(h->pending, 0, &value));
    h->value = value.f32;
    ck_assert(!pthread_equal(pthread_self(), h->caller));
    lfuser_pending_release(h->pending); // the library may be called
    h->calls++;
}

static void run_is_over(void *arg) {
    heard *h = arg;
    lfuser_status s = lfuser_completion_query(h->completion);
    h->code = lfuser_status_code(s);
    lfuser_status_destroy(s);
    lfuser_completion_release(h->completion);
    h->calls++;
}

static void wait_for(const _Atomic int *calls, int n) {
    for (double start = now_s(); *calls < n && now_s() - start < 20;) usleep(100);
    ck_assert_int_eq(*calls, n);
}

START_TEST(callbacks_come_when_it_has_happened) {
    lfuser_executable *e =
        compile("fusion @f(%x: f32[?], %i: i64) { %m = max %x %p = item %m %y = index %x, %i, axis=0 return %p, %y }");
    test_tensor x;
    tensor_f32(&x, 1, (int64_t[]){6}, 1, 1);
    lfuser_argument arguments[] = {tensor_argument(&x.view), i64_argument(2)};
    for (int round = 0; round < 20; round++) {
        heard h = {.caller = pthread_self()};
        lfuser_output outputs[2] = {{0}};
        gate g = GATE;
        bool bad = round % 5 == 4;
        arguments[1].value.i64 = bad ? 99 : 2;
        if (round) block_stream(env.stream, &g);
        ok(lfuser_run(e, env.stream, arguments, 2, outputs, 2, &h.completion));
        h.pending = outputs[0].pending;
        ok(lfuser_pending_callback(h.pending, value_is_there, &h));
        ok(lfuser_completion_callback(h.completion, run_is_over, &h));
        if (round) {
            usleep(2000);
            ck_assert_int_eq(h.calls, 0);
            open_gate(&g);
        }
        wait_for(&h.calls, 2);
        ck_assert_float_eq(h.value, 6);
        ck_assert_int_eq(h.code, bad ? LFUSER_INDEX_ERROR : LFUSER_OK);
        outputs[1].allocated->deleter(outputs[1].allocated);
    }
    fails(lfuser_pending_callback(NULL, value_is_there, NULL), LFUSER_INVALID_ARGUMENT,
          "lfuser_pending_callback: an argument is NULL");
    fails(lfuser_completion_callback(NULL, run_is_over, NULL), LFUSER_INVALID_ARGUMENT,
          "lfuser_completion_callback: an argument is NULL");
    synchronize();
    tensor_finish(&x);
    lfuser_executable_destroy(e);
}
END_TEST

// Released at once by the caller, and even the executable and the device are gone before the callbacks run, or never run.
START_TEST(callbacks_keep_what_they_need) {
    heard h = {.caller = pthread_self()};
    lfuser_executable *e = compile("fusion @f(%x: f32[?]) { %m = max %x %p = item %m return %p }");
    test_tensor x;
    tensor_f32(&x, 1, (int64_t[]){6}, 1, 1);
    lfuser_argument argument = tensor_argument(&x.view);
    lfuser_output output = {0};
    ok(lfuser_run(e, env.stream, &argument, 1, &output, 1, &h.completion));
    ok(lfuser_completion_callback(h.completion, run_is_over, &h));
    h.pending = output.pending;
    ok(lfuser_pending_callback(h.pending, value_is_there, &h));
    lfuser_executable_destroy(e);
    wait_for(&h.calls, 2);
    tensor_finish(&x);
}
END_TEST

// The names in the message are there when the executable is not.
START_TEST(completions_outlive_their_executable) {
    lfuser_executable *e = compile("fusion @f(%x: f32[?], %i: i64) {\n  %y = index %x, %i, axis=0\n  return %y\n}\n");
    test_tensor x;
    tensor_f32(&x, 1, (int64_t[]){6}, 1, 1);
    lfuser_argument arguments[] = {tensor_argument(&x.view), i64_argument(-9)};
    lfuser_completion *completions[50];
    for (int i = 0; i < 50; i++) {
        lfuser_output output = {0};
        ok(lfuser_run(e, env.stream, arguments, 2, &output, 1, &completions[i]));
        output.allocated->deleter(output.allocated);
    }
    lfuser_executable_destroy(e);
    for (int i = 0; i < 50; i++) {
        fails(lfuser_completion_wait(completions[i], UINT64_MAX), LFUSER_INDEX_ERROR,
              "@f: 'index' giving %y: an index was out of range along axis 0; the element read as 0 (t.lf:2:8)");
        lfuser_completion_release(completions[i]);
    }
    tensor_finish(&x);
}
END_TEST

// More runs under way than there are places without a lock.
START_TEST(many_unread_errors_are_one_failure) {
    lfuser_executable *e = compile("fusion @f(%x: f32[?], %i: i64) {\n  %y = index %x, %i, axis=0\n  return %y\n}\n");
    test_tensor x;
    tensor_f32(&x, 1, (int64_t[]){6}, 1, 1);
    lfuser_argument arguments[] = {tensor_argument(&x.view), i64_argument(0)};
    lfuser_output output = {0};
    ok(lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL));
    output.allocated->deleter(output.allocated);
    gate g = GATE;
    block_stream(env.stream, &g);
    for (int i = 0; i < 100; i++) {
        output = (lfuser_output){0};
        arguments[1].value.i64 = i == 77 ? 6 : 1;
        ok(lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL));
        output.allocated->deleter(output.allocated);
    }
    open_gate(&g);
    synchronize();
    output = (lfuser_output){0};
    fails(lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL), LFUSER_INDEX_ERROR,
          "@f: 'index' giving %y: an index was out of range along axis 0; the element read as 0 (t.lf:2:8)\n"
          "this error is of an earlier run of the executable, whose completion nobody asked for");
    ok(lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL));
    output.allocated->deleter(output.allocated);
    tensor_finish(&x);
    lfuser_executable_destroy(e);
}
END_TEST

// ---- threads ---------------------------------------------------------------------------------------------------------------------------------

enum { THREADS = 16, ROUNDS = SLOW_BUILD ? 20 : 60, LONG_ROUNDS = 10000 };

typedef struct mixed {
    lfuser_executable *plain, *indexed, *staged;
    lfuser_fusion *fusion;
    int number;
} mixed;

static void count_call(void *arg) { (*(_Atomic int *)arg)++; }

static void *do_everything(void *arg) {
    const mixed *m = arg;
    lfuser_stream *stream;
    _Atomic int calls = 0;
    int expected = 0, rounds = getenv("LFUSER_TEST_LONG") ? LONG_ROUNDS : ROUNDS;
    ok(lfuser_stream_create(env.device, &stream));
    float data[40];
    int64_t n = 40;
    void *memory;
    for (int i = 0; i < 40; i++) data[i] = (float)(i - m->number);
    ok(lfuser_memory_alloc(stream, sizeof data, &memory));
    ok(lfuser_memory_upload(stream, memory, data, sizeof data));
    lfuser_tensor t = {.data = memory, .device = env.place, .rank = 1, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = &n};
    for (int k = 0; k < rounds; k++) {
        lfuser_argument arguments[] = {tensor_argument(&t), i64_argument(k % 40)};
        lfuser_output outputs[2] = {{0}};
        lfuser_completion *completion = NULL;
        lfuser_scalar value;
        lfuser_executable *own = NULL, *e = k % 3 == 0 ? m->plain : k % 3 == 1 ? m->indexed : m->staged;
        if (k % 20 == 7) {
            ok(lfuser_fusion_compile(m->fusion, env.device, NULL, &own));
            if (k % 40 == 7) ok(lfuser_executable_prepare(own));
            e = own;
        }
        ok(lfuser_run(e, stream, arguments, 2, outputs, 2, k % 2 ? &completion : NULL));
        if (outputs[1].pending && k % 4 == 0)
            expected++, ok(lfuser_pending_callback(outputs[1].pending, count_call, &calls));
        if (completion && k % 4 == 1) expected++, ok(lfuser_completion_callback(completion, count_call, &calls));
        if (outputs[1].pending && k % 5) ok(lfuser_pending_get(outputs[1].pending, UINT64_MAX, &value));
        if (outputs[1].pending && k % 5) ck_assert_float_eq(value.f32, (float)(39 - m->number));
        if (outputs[1].kind == LFUSER_SCALAR) ck_assert_int_eq(outputs[1].value.i64, 39 - m->number);
        if (completion && k % 3) ok(lfuser_completion_wait(completion, UINT64_MAX));
        lfuser_pending_release(outputs[1].pending);
        lfuser_completion_release(completion);
        outputs[0].allocated->deleter(outputs[0].allocated);
        lfuser_executable_destroy(own);
    }
    wait_for(&calls, expected);
    lfuser_memory_free(stream, memory);
    lfuser_stream_destroy(stream);
    return NULL;
}

START_TEST(sixteen_threads_do_everything_at_once) {
    static const char plain[] = "fusion @f(%x: f32[?], %i: i64) { %y = mul %x, %i %m = max %x %p = item %m return %y, %p }";
    mixed m = {.plain = compile(plain), .fusion = parse(plain)};
    m.indexed =
        compile("fusion @f(%x: f32[?], %i: i64) { %y = index %x, %i, axis=0 %m = max %x %p = item %m return %y, %p }");
    m.staged = compile_allowed("fusion @f(%x: f32[?], %i: i64) { %g = gt %x, 0.0 %c = count_nonzero %g %k = item %c %y = "
                               "iota %k, 0, %i return %y, %k }");
    pthread_t threads[THREADS];
    mixed each[THREADS];
    for (int i = 0; i < THREADS; i++) {
        each[i] = m;
        each[i].number = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, do_everything, &each[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    lfuser_executable_destroy(m.plain);
    lfuser_executable_destroy(m.indexed);
    lfuser_executable_destroy(m.staged);
    lfuser_fusion_destroy(m.fusion);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("asynchronous runs");
    TCase *t = device_tcase(suite, "memory", 60);
    tcase_add_test(t, steady_calls_allocate_nothing);
    tcase_add_test(t, two_hundred_tensors_in_one_program);
    tcase_add_test(t, a_workspace_of_the_caller);
    tcase_add_test(t, outputs_from_the_callers_allocator);
    t = device_tcase(suite, "streams", 60);
    tcase_add_test(t, no_output_kind_waits);
    tcase_add_test(t, two_streams_run_one_executable_beside_each_other);
    t = device_tcase(suite, "completion", 60);
    tcase_add_test(t, callbacks_come_when_it_has_happened);
    tcase_add_test(t, callbacks_keep_what_they_need);
    tcase_add_test(t, completions_outlive_their_executable);
    tcase_add_test(t, many_unread_errors_are_one_failure);
    t = device_tcase(suite, "threads", getenv("LFUSER_TEST_LONG") ? 3600 : 120);
    tcase_add_test(t, sixteen_threads_do_everything_at_once);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
