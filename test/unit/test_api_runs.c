// How runs end: infer, index errors, completions, errors that nobody asked for; memory, threads, and the floating-point state.
#include "test/support/api/tensors.h"
#include <fenv.h>
#include <math.h>

// ---- infer -------------------------------------------------------------------------------------------------------------------------

START_TEST(infer_tells_shapes_and_scalars) {
    lfuser_executable *e =
        compile("fusion @f(%x: f32[?, %w], %s: i64) {\n"
                "  %y = reshape %x, [%s, -1]\n  %z = sum %y, axes=[1]\n  %u = softmax %y, axis=0\n  %m = max %x\n"
                "  %p = item %m\n  %n = mul %s, %w\n  %c = lt %s, 40\n  assert %c, \"%s must be below 40\"\n"
                "  return %y, %z, %n, %p, %u\n}\n");
    int64_t shape[] = {6, 8}, shapes[5][8] = {{0}};
    lfuser_tensor x = {
        .device = env.place, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape, .data = (void *)4096};
    lfuser_argument arguments[] = {tensor_argument(&x), i64_argument(4)};
    lfuser_output outputs[5] = {{0}};
    uint64_t workspace = 77, allocations = stats().allocations, launches = stats().launches;
    ok(lfuser_infer(e, arguments, 2, outputs, 5, shapes, &workspace)); // reads no memory of x
    static const lfuser_kind kinds[] = {LFUSER_TENSOR, LFUSER_TENSOR, LFUSER_SCALAR, LFUSER_PENDING, LFUSER_TENSOR};
    for (int i = 0; i < 5; i++) ck_assert_int_eq(outputs[i].kind, kinds[i]);
    ck_assert_mem_eq(shapes[0], ((int64_t[]){4, 12}), 16);
    ck_assert_int_eq(shapes[1][0], 4);
    ck_assert_int_eq(outputs[2].value.i64, 32);
    ck_assert_int_eq(outputs[2].dtype, LFUSER_I64);
    ck_assert_ptr_null(outputs[3].pending);
    ck_assert_mem_eq(shapes[4], ((int64_t[]){4, 12}), 16);
    ck_assert_uint_ne(workspace, 77);
    ck_assert_uint_eq(stats().allocations, allocations);
    ck_assert_uint_eq(stats().launches, launches);
    ok(lfuser_infer(e, arguments, 2, outputs, 5, NULL, NULL));
    arguments[1] = i64_argument(48);
    fails(lfuser_infer(e, arguments, 2, outputs, 5, shapes, NULL), LFUSER_FAILED_CHECK,
          "@f: %s must be below 40 (t.lf:9:3)");
    arguments[1] = i64_argument(5);
    fails(lfuser_infer(e, arguments, 2, outputs, 5, shapes, NULL), LFUSER_FAILED_CHECK,
          "@f: reshape: %x: f32[?, %w] has 48 elements, which 5 does not divide: the extent -1 of [%s, -1] has no value "
          "(t.lf:2:8)");
    fails(lfuser_infer(e, arguments, 1, outputs, 5, shapes, NULL), LFUSER_INVALID_ARGUMENT, "@f takes 2 arguments, got 1");
    lfuser_executable_destroy(e);
}
END_TEST

// ---- index errors --------------------------------------------------------------------------------------------------------------------

static char logged[1024];
static void keep_log(void *self, lfuser_log_level level, const char *message) {
    (void)self;
    if (level == LFUSER_LOG_ERROR) snprintf(logged, sizeof logged, "%s", message);
}
static void setup_logging(void) {
    logged[0] = 0;
    env_open(
        &(lfuser_context_options){.size = sizeof(lfuser_context_options), .log = keep_log, .log_least = LFUSER_LOG_WARNING});
}

typedef struct picking {
    lfuser_executable *executable;
    test_tensor x, i, y;
    lfuser_argument arguments[3];
} picking;
enum { PICKED = 1000 };

static const char *const picking_texts[] = {
    "fusion @f(%x: f32[?], %i: i64[?], %k: i64) { %y = take %x, %i, axis=0 return %y }",
    "fusion @f(%x: f32[?], %i: i64[?], %k: i64) { %y = gather %x, %i, axis=0 return %y }",
};

static void picking_open(picking *p, const char *text, int64_t bad) {
    p->executable = compile(text);
    tensor_f32(&p->x, 1, (int64_t[]){10}, 1, 1);
    tensor_init(&p->i, LFUSER_I64, 1, (int64_t[]){PICKED}, LAYOUT_DENSE);
    for (int64_t k = 0; k < PICKED; k++)
        *(int64_t *)tensor_element(&p->i, k) = k == 700 ? bad : k % 20 - 10; // negative wraps once
    tensor_upload(&p->i);
    tensor_init(&p->y, LFUSER_F32, 1, (int64_t[]){PICKED}, LAYOUT_DENSE);
    tensor_upload(&p->y);
    p->arguments[0] = tensor_argument(&p->x.view);
    p->arguments[1] = tensor_argument(&p->i.view);
    p->arguments[2] = i64_argument(bad);
}

static lfuser_status picking_run(picking *p, lfuser_completion **completion) {
    lfuser_output output = {.tensor = &p->y.view};
    return lfuser_run(p->executable, env.stream, p->arguments, 3, &output, 1, completion);
}

static void picking_close(picking *p) {
    tensor_finish(&p->x);
    tensor_finish(&p->i);
    tensor_finish(&p->y);
    lfuser_executable_destroy(p->executable);
}

static const int64_t bad_indices[] = {10, -11, INT64_MAX, INT64_MIN, 4611686018427387904};

START_TEST(indices_out_of_range_read_zero) {
    char message[160];
    for (int which = 0; which < 2; which++) {
        picking p;
        picking_open(&p, picking_texts[which], bad_indices[_i]);
        lfuser_completion *c;
        snprintf(message, sizeof message,
                 "@f: '%s' giving %%y: an index was out of range along axis 0; the element read as 0 (t.lf:1:51)",
                 which ? "gather" : "take");
        for (int round = 0; round < 2; round++) { // read errors do not stand in the next run's way
            ok(picking_run(&p, &c));
            fails(lfuser_completion_wait(c, UINT64_MAX), LFUSER_INDEX_ERROR, message);
            fails(lfuser_completion_query(c), LFUSER_INDEX_ERROR, message);
            lfuser_completion_release(c);
        }
        tensor_download(&p.y);
        for (int64_t k = 0; k < PICKED; k++)
            ck_assert_float_eq(tensor_f32_at(&p.y, k), k == 700 ? 0.0f : (float)((k % 20 - 10 + 10) % 10 + 1));
        tensor_check_guards(&p.y, "y");
        *(int64_t *)tensor_element(&p.i, 700) = 3;
        tensor_upload(&p.i);
        ok(picking_run(&p, &c));
        ok(lfuser_completion_wait(c, UINT64_MAX));
        lfuser_completion_release(c);
        picking_close(&p);
    }
}
END_TEST

// The scalar of `index` may be a pending one, so that only the device knows.
START_TEST(a_pending_index_out_of_range) {
    static const char text[] =
        "fusion @f(%x: f32[?], %i: i64[?], %k: i64) { %m = max %i, axes=[0] %s = item %m %a = index %x, %s, axis=0 "
        "%y = add %x, %a return %y }";
    picking p;
    lfuser_completion *c;
    picking_open(&p, text, 10);
    tensor_finish(&p.y);
    tensor_f32(&p.y, 1, (int64_t[]){10}, 5, 5);
    ok(picking_run(&p, &c));
    fails(lfuser_completion_wait(c, UINT64_MAX), LFUSER_INDEX_ERROR,
          "@f: 'index' giving %a: an index was out of range along axis 0; the element read as 0 (t.lf:1:86)");
    lfuser_completion_release(c);
    tensor_download(&p.y);
    for (int k = 0; k < 10; k++) ck_assert_float_eq(tensor_f32_at(&p.y, k), (float)(k + 1));
    picking_close(&p);
}
END_TEST

START_TEST(unread_errors_fail_the_next_run) {
    static const char message[] =
        "@f: 'take' giving %y: an index was out of range along axis 0; the element read as 0 (t.lf:1:51)";
    char noted[512];
    picking p;
    picking_open(&p, picking_texts[0], 10);
    ok(picking_run(&p, NULL));
    synchronize();
    ck_assert_str_eq(logged, "");
    snprintf(noted, sizeof noted, "%s\nthis error is of an earlier run of the executable, whose completion nobody asked for",
             message);
    uint64_t launches = stats().launches;
    fails(picking_run(&p, NULL), LFUSER_INDEX_ERROR, noted);
    ck_assert_str_eq(logged, message);
    ck_assert_uint_eq(stats().launches, launches);
    *(int64_t *)tensor_element(&p.i, 700) = 3;
    tensor_upload(&p.i);
    ok(picking_run(&p, NULL)); // it was reported once
    ok(picking_run(&p, NULL));
    *(int64_t *)tensor_element(&p.i, 700) = 30;
    tensor_upload(&p.i);
    ok(picking_run(&p, NULL));
    synchronize();
    logged[0] = 0;
    picking_close(&p); // the last chance to hear of it
    ck_assert_str_eq(logged, message);
}
END_TEST

// A caller who keeps the completion and asks later is told, and the runs meanwhile are not failed by it.
START_TEST(a_kept_completion_is_asked_later) {
    picking p;
    lfuser_completion *bad, *fine;
    gate g = GATE;
    picking_open(&p, picking_texts[0], 10);
    ok(picking_run(&p, &bad));
    ok(lfuser_stream_synchronize(env.stream));
    *(int64_t *)tensor_element(&p.i, 700) = 3;
    tensor_upload(&p.i);
    block_stream(env.stream, &g);
    ok(picking_run(&p, &fine));
    fails(lfuser_completion_query(fine), LFUSER_NOT_READY, "the run has not completed yet");
    fails(lfuser_completion_wait(fine, 0), LFUSER_TIMEOUT, "the run did not complete within 0 ns");
    open_gate(&g);
    ok(lfuser_completion_wait(fine, 60000000000));
    fails(lfuser_completion_query(bad), LFUSER_INDEX_ERROR,
          "@f: 'take' giving %y: an index was out of range along axis 0; the element read as 0 (t.lf:1:51)");
    lfuser_completion_release(bad);
    lfuser_completion_release(fine);
    // It may outlive the executable.
    ok(picking_run(&p, &fine));
    picking_close(&p);
    ok(lfuser_completion_wait(fine, UINT64_MAX));
    lfuser_completion_release(fine);
    ck_assert_str_eq(logged, "");
}
END_TEST

// ---- memory --------------------------------------------------------------------------------------------------------------------------

typedef struct counting {
    _Atomic long live, calls, fail_at; // fail_at: number of the call that fails; 0: none
} counting;
static bool may_have(counting *c) { return ++c->calls != c->fail_at; }
static void *count_alloc(void *self, size_t bytes) {
    counting *c = self;
    void *p = may_have(c) && bytes < (size_t)1 << 40 ? malloc(bytes) : NULL;
    c->live += p != NULL;
    return p;
}
static void *count_resize(void *self, void *block, size_t bytes) {
    counting *c = self;
    void *p = may_have(c) && bytes < (size_t)1 << 40 ? realloc(block, bytes) : NULL;
    c->live += p && !block;
    return p;
}
static void count_release(void *self, void *block) {
    counting *c = self;
    c->live -= block != NULL;
    free(block);
}

// Whatever there is: kernels of several kinds, a constant, a pending scalar, allocated outputs, a completion, workspace.
static const char rich_text[] =
    "fusion @f(%x: f32[?, ?], %s: i64) {\n"
    "  %c = tensor [1, 2, 3, 4]\n  %a = mul %x, %c\n  %b = sum %a, axes=[1], keepdim=true\n  %d = sub %a, %b\n"
    "  %m = max %d\n  %p = item %m\n  %e = reshape %d, [%s, -1]\n  %i = iota %s, 0, 1\n  %t = take %e, %i, axis=0\n"
    "  %y = mul %t, %p\n  %n = add %s, 1\n  return %y, %p, %n, %e\n}\n";

// Stops at the first failure; gives everything back in any case.
static lfuser_status scenario(const lfuser_allocator *allocator, bool *out_right) {
    lfuser_context *context = NULL;
    lfuser_device *device = NULL;
    lfuser_stream *stream = NULL;
    lfuser_fusion *fusion = NULL;
    lfuser_executable *e = NULL;
    lfuser_output outputs[4] = {{0}};
    lfuser_completion *completion = NULL;
    void *memory = NULL;
    float x[16], y[16] = {0};
    for (int i = 0; i < 16; i++) x[i] = (float)i;
    *out_right = false;
    lfuser_context_options options = {.size = sizeof options, .allocator = *allocator, .threads = 2};
    lfuser_status s = lfuser_context_create(&options, &context);
    if (!s) s = lfuser_device_open(context, test_device_name(), &device);
    if (!s) s = lfuser_stream_create(device, &stream);
    if (!s) s = lfuser_fusion_parse(context, "t.lf", rich_text, sizeof rich_text - 1, NULL, &fusion);
    if (!s) s = lfuser_fusion_compile(fusion, device, NULL, &e);
    if (!s) s = lfuser_memory_alloc(stream, sizeof x, &memory);
    if (!s) s = lfuser_memory_upload(stream, memory, x, sizeof x);
    int64_t shape[] = {4, 4};
    lfuser_tensor t = {
        .data = memory, .device = env.place, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape};
    lfuser_argument arguments[] = {tensor_argument(&t), i64_argument(2)};
    if (!s) s = lfuser_run(e, stream, arguments, 2, outputs, 4, &completion);
    lfuser_scalar p = {{0}};
    if (!s) s = lfuser_pending_get(outputs[1].pending, UINT64_MAX, &p);
    if (!s) s = lfuser_memory_download(stream, y, outputs[0].allocated->tensor.data, sizeof y);
    if (!s) s = lfuser_completion_wait(completion, UINT64_MAX);
    if (!s) s = lfuser_stream_synchronize(stream);
    if (!s) {
        float want[16], most = -INFINITY;
        for (int r = 0; r < 4; r++) {
            float row = 0;
            for (int k = 0; k < 4; k++) row += x[4 * r + k] * (float)(k + 1);
            for (int k = 0; k < 4; k++) want[4 * r + k] = x[4 * r + k] * (float)(k + 1) - row;
        }
        for (int i = 0; i < 16; i++) most = want[i] > most ? want[i] : most;
        *out_right = outputs[2].value.i64 == 3 && p.f32 == most;
        for (int i = 0; i < 16; i++) *out_right &= y[i] == want[i] * most;
    }
    for (int i = 0; i < 4; i++)
        if (outputs[i].allocated) outputs[i].allocated->deleter(outputs[i].allocated);
    lfuser_pending_release(outputs[1].pending);
    lfuser_completion_release(completion);
    if (memory) lfuser_memory_free(stream, memory);
    lfuser_executable_destroy(e);
    lfuser_fusion_destroy(fusion);
    lfuser_stream_destroy(stream);
    lfuser_device_close(device);
    lfuser_context_destroy(context);
    return s;
}

enum { WARM = 20 }; // rounds: the last objects that have ended are kept for a while
START_TEST(rounds_leave_nothing) {
    counting c = {0};
    lfuser_allocator allocator = {&c, count_alloc, count_resize, count_release};
    lfuser_context *context;
    lfuser_device *device;
    ok(lfuser_context_create(&(lfuser_context_options){.size = sizeof(lfuser_context_options), .allocator = allocator},
                             &context));
    ok(lfuser_device_open(context, test_device_name(), &device));
    test_env before = env; // the helpers work on env
    env.context = context;
    env.device = device;
    ok(lfuser_stream_create(device, &env.stream));
    test_tensor x;
    tensor_f32(&x, 2, (int64_t[]){4, 4}, 0, 1);
    long live = 0;
    for (int round = 0; round < (SLOW_BUILD ? 40 : 200); round++) {
        lfuser_executable *e = compile(rich_text);
        lfuser_argument arguments[] = {tensor_argument(&x.view), i64_argument(2)};
        for (int k = 0; k < 3; k++) {
            lfuser_output outputs[4] = {{0}};
            ok(lfuser_run(e, env.stream, arguments, 2, outputs, 4, NULL));
            outputs[0].allocated->deleter(outputs[0].allocated);
            outputs[3].allocated->deleter(outputs[3].allocated);
            lfuser_pending_release(outputs[1].pending);
        }
        lfuser_executable_destroy(e);
        if (round == WARM) live = c.live;
        if (round > WARM)
            ck_assert_msg(c.live <= live, "%ld blocks after round %d, %ld after round %d", live, WARM, (long)c.live, round);
    }
    tensor_finish(&x);
    lfuser_stream_destroy(env.stream);
    lfuser_device_close(device);
    lfuser_context_destroy(context);
    ck_assert_int_eq(c.live, 0);
    env = before;
}
END_TEST

START_TEST(each_allocation_may_fail) {
    counting c = {0};
    lfuser_allocator allocator = {&c, count_alloc, count_resize, count_release};
    bool right;
    ok(scenario(&allocator, &right));
    ck_assert(right);
    ck_assert_int_eq(c.live, 0);
    long calls = c.calls, step = SLOW_BUILD || test_on_cuda() ? 9 : 1;
    int failed = 0, succeeded = 0;
    for (long k = 1 + _i * step; k <= calls; k += 4 * step) {
        c.calls = 0;
        c.fail_at = k;
        lfuser_status s = scenario(&allocator, &right);
        ck_assert_msg(!s || lfuser_status_code(s) == LFUSER_OUT_OF_MEMORY, "allocation %ld of %ld failing gives %s: %s", k,
                      calls, lfuser_code_name(lfuser_status_code(s)), lfuser_status_message(s));
        ck_assert_msg(s || right, "allocation %ld of %ld failing gives a wrong result", k, calls);
        ck_assert_msg(c.live == 0, "allocation %ld of %ld failing leaves %ld blocks", k, calls, (long)c.live);
        *(s ? &failed : &succeeded) += 1;
        lfuser_status_destroy(s);
    }
    ck_assert_int_gt(failed, 0);
    c.fail_at = 0;
    ok(scenario(&allocator, &right));
    ck_assert(right);
}
END_TEST

// Within one executable: a run that finds no memory leaves it as good as before.
START_TEST(the_call_after_want_of_memory_is_right) {
    counting c = {0};
    lfuser_allocator allocator = {&c, count_alloc, count_resize, count_release};
    env_teardown();
    env_open(&(lfuser_context_options){.size = sizeof(lfuser_context_options), .allocator = allocator});
    test_tensor x;
    tensor_f32(&x, 2, (int64_t[]){4, 4}, 0, 1);
    lfuser_argument arguments[] = {tensor_argument(&x.view), i64_argument(2)};
    lfuser_executable *e = compile(rich_text);
    int failed = 0;
    for (long k = 1; k < 60; k++) { // the first run compiles; the later ones find all there
        lfuser_output outputs[4] = {{0}};
        c.calls = 0;
        c.fail_at = k;
        lfuser_status s = lfuser_run(e, env.stream, arguments, 2, outputs, 4, NULL);
        c.fail_at = 0;
        failed += s != NULL;
        if (s) {
            ck_assert_int_eq(lfuser_status_code(s), LFUSER_OUT_OF_MEMORY);
            lfuser_status_destroy(s);
            ck_assert(!outputs[0].allocated && !outputs[1].pending && !outputs[3].allocated);
            memset(outputs, 0, sizeof outputs);
            ok(lfuser_run(e, env.stream, arguments, 2, outputs, 4, NULL));
        }
        lfuser_scalar p;
        ok(lfuser_pending_get(outputs[1].pending, UINT64_MAX, &p));
        ck_assert_float_eq(p.f32, -8); // row 0: 12 - (2 + 6 + 12)
        lfuser_pending_release(outputs[1].pending);
        outputs[0].allocated->deleter(outputs[0].allocated);
        outputs[3].allocated->deleter(outputs[3].allocated);
        if (k % 5 == 0) {
            lfuser_executable_destroy(e);
            e = compile(rich_text);
        }
    }
    ck_assert_int_gt(failed, 2);
    lfuser_executable_destroy(e);
    tensor_finish(&x);
    env_teardown();
    ck_assert_int_eq(c.live, 0);
    env_setup();
}
END_TEST

// ---- threads -------------------------------------------------------------------------------------------------------------------------

enum { THREADS = 8, RUNS = SLOW_BUILD ? 50 : 200, LENGTH = 999 };
typedef struct worker {
    lfuser_executable *executable;
    pthread_barrier_t *start;
    int number;
    char wrong[256];
} worker;

#define WORK(call)                                                                                                          \
    if ((s = (call))) {                                                                                                     \
        snprintf(w->wrong, sizeof w->wrong, "%s: %s", #call, lfuser_status_message(s));                                     \
        return lfuser_status_destroy(s), NULL;                                                                              \
    }

static void *work(void *arg) {
    worker *w = arg;
    lfuser_status s;
    lfuser_stream *stream;
    void *x, *y;
    static _Thread_local float host[LENGTH], back[LENGTH];
    WORK(lfuser_stream_create(env.device, &stream));
    WORK(lfuser_memory_alloc(stream, sizeof host, &x));
    WORK(lfuser_memory_alloc(stream, sizeof host, &y));
    for (int i = 0; i < LENGTH; i++) host[i] = (float)(i % 100 + w->number);
    WORK(lfuser_memory_upload(stream, x, host, sizeof host));
    int64_t n = LENGTH;
    lfuser_tensor tx = {.data = x, .device = env.place, .rank = 1, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = &n},
                  ty = tx;
    ty.data = y;
    pthread_barrier_wait(w->start);
    for (int k = 0; k < RUNS; k++) {
        lfuser_argument arguments[] = {tensor_argument(&tx), f32_argument((float)k)};
        lfuser_output outputs[3] = {{.tensor = &ty}};
        lfuser_scalar most;
        WORK(lfuser_run(w->executable, stream, arguments, 2, outputs, 3, NULL));
        WORK(lfuser_pending_get(outputs[1].pending, UINT64_MAX, &most));
        lfuser_pending_release(outputs[1].pending);
        if (most.f32 != (float)(99 + w->number + k) || outputs[2].value.f32 != (float)(2 * k))
            return snprintf(w->wrong, sizeof w->wrong, "run %d gives %g and %g", k, (double)most.f32,
                            (double)outputs[2].value.f32),
                   NULL;
        if (k % 20) continue;
        WORK(lfuser_memory_download(stream, back, y, sizeof back));
        WORK(lfuser_stream_synchronize(stream));
        for (int i = 0; i < LENGTH; i++)
            if (back[i] != host[i] + (float)k)
                return snprintf(w->wrong, sizeof w->wrong, "run %d, element %d: %g", k, i, (double)back[i]), NULL;
    }
    lfuser_memory_free(stream, x);
    lfuser_memory_free(stream, y);
    lfuser_stream_destroy(stream);
    return NULL;
}

START_TEST(threads_share_an_executable) {
    lfuser_executable *e = compile(
        "fusion @f(%x: f32[?], %s: f32) { %y = add %x, %s %m = max %y %p = item %m %t = mul %s, 2 return %y, %p, %t }");
    uint64_t before = stats().compiles;
    pthread_barrier_t start;
    pthread_t threads[THREADS];
    static worker workers[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.executable = e, .start = &start, .number = i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) ck_assert_msg(!workers[i].wrong[0], "thread %d: %s", i, workers[i].wrong);
    uint64_t compiled = stats().compiles - before;
    ck_assert_uint_le(compiled, 3); // one for each kernel and class, however many threads asked at once
    ck_assert_uint_eq(stats().launches % (THREADS * RUNS), 0);
    pthread_barrier_destroy(&start);
    lfuser_executable_destroy(e);
}
END_TEST

// ---- the floating-point state ----------------------------------------------------------------------------------------------------------

#if defined(__x86_64__)
// Flush to zero, denormals are zero, rounding up and down: results are those of the default, and the caller's state is kept.
START_TEST(the_callers_floating_point_state) {
    static const unsigned states[] = {0x1f80, 0x1f80 | 0x8040, 0x1f80 | 0x2000, 0x1f80 | 0x4000, 0x1f80 | 0x6000 | 0x8040};
    static const char text[] =
        "fusion @f(%x: f32[?], %s: f32, %d: f64) { %y = mul %x, %s %z = exp %y %a = div %s, 3 %b = mul %d, 0.1 "
        "%c = mul %s, 1e-20 %e = sum %z return %y, %z, %a, %b, %c, %e }";
    enum { N = 333 };
    test_tensor x, y, z, sum;
    tensor_f32(&x, 1, (int64_t[]){N}, -1e-38f, 1e-40f);
    static float want[2 * N + 1];
    lfuser_scalar scalars[3] = {{{0}}};
    lfuser_argument arguments[] = {
        tensor_argument(&x.view), f32_argument(0.333f), {.kind = LFUSER_SCALAR, .dtype = LFUSER_F64, .value = {.f64 = 0.7}}};
    for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
        tensor_f32(&y, 1, (int64_t[]){N}, 0, 0);
        tensor_f32(&z, 1, (int64_t[]){N}, 0, 0);
        tensor_f32(&sum, 0, NULL, 0, 0);
        lfuser_output outputs[6] = {{.tensor = &y.view}, {.tensor = &z.view}, {0}, {0}, {0}, {.tensor = &sum.view}};
        unsigned mine = states[k];
        __builtin_ia32_ldmxcsr(mine);
        lfuser_executable *e = compile(text); // folds constants under that state, too
        lfuser_status s = lfuser_run(e, env.stream, arguments, 3, outputs, 6, NULL);
        unsigned after = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(0x1f80);
        ok(s);
        ck_assert_uint_eq(after & 0xffc0, mine & 0xffc0);
        tensor_download(&y);
        tensor_download(&z);
        tensor_download(&sum);
        static float got[2 * N + 1];
        for (int i = 0; i < N; i++) got[i] = tensor_f32_at(&y, i), got[N + i] = tensor_f32_at(&z, i);
        got[2 * N] = tensor_f32_at(&sum, 0);
        if (k == 0) memcpy(want, got, sizeof want);
        ck_assert_mem_eq(got, want, sizeof want);
        for (int i = 0; i < 3; i++) {
            if (k == 0) scalars[i] = outputs[2 + i].value;
            ck_assert_mem_eq(&outputs[2 + i].value, &scalars[i], sizeof scalars[i]);
        }
        lfuser_executable_destroy(e);
        tensor_finish(&y);
        tensor_finish(&z);
        tensor_finish(&sum);
    }
    float third = 0.333f / 3, product = 0.333f * (float)1e-20;
    ck_assert_float_eq(scalars[0].f32, third);
    ck_assert_float_eq(scalars[2].f32, product);
    ck_assert_float_eq(want[5], (-1e-38f + 1e-40f * 5.0f) * 0.333f); // a denormal
    ck_assert(want[5] != 0);
    tensor_finish(&x);
}
END_TEST
#endif

static Suite *make(void) {
    Suite *suite = suite_create("api runs");
    TCase *t = device_tcase(suite, "infer", 30);
    tcase_add_test(t, infer_tells_shapes_and_scalars);
    t = tcase_create("index errors");
    tcase_add_checked_fixture(t, setup_logging, env_teardown);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, indices_out_of_range_read_zero, 0, (int)(sizeof bad_indices / sizeof *bad_indices));
    tcase_add_test(t, a_pending_index_out_of_range);
    tcase_add_test(t, unread_errors_fail_the_next_run);
    tcase_add_test(t, a_kept_completion_is_asked_later);
    suite_add_tcase(suite, t);
    t = device_tcase(suite, "memory", 600);
    tcase_add_test(t, rounds_leave_nothing);
    tcase_add_loop_test(t, each_allocation_may_fail, 0, 4);
    tcase_add_test(t, the_call_after_want_of_memory_is_right);
    t = device_tcase(suite, "threads", 120);
    tcase_add_test(t, threads_share_an_executable);
#if defined(__x86_64__)
    tcase_add_test(t, the_callers_floating_point_state);
#endif
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
