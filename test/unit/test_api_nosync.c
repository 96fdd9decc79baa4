// The reason this library exists: host scalars are there when the run call returns, whatever the stream is doing, and pending
// scalars come by themselves. Every test holds the stream up, so that a hidden wait would never end.
#include "test/support/api/tensors.h"

static const char seed_text[] = "fusion @seed(%t0: f32[?, ?], %t1: f32[%h, %w], %s0: i64, %s1: i64) {\n"
                                "  %t2 = reshape %t0, [%s0, %s1]\n"
                                "  %t3 = add %t1, %t2\n"
                                "  %n = add %s0, %s1\n"
                                "  return %t3, %n\n"
                                "}\n";

// ---- the seed program ------------------------------------------------------------------------------------------------------------

typedef struct seed {
    lfuser_executable *executable;
    test_tensor t0, t1, t3;
    lfuser_argument arguments[4];
} seed;

static void seed_open(seed *s) {
    s->executable = compile(seed_text);
    tensor_f32(&s->t0, 2, (int64_t[]){6, 8}, 0, 1);
    tensor_f32(&s->t1, 2, (int64_t[]){8, 6}, 1000, 0.5f);
    tensor_init(&s->t3, LFUSER_F32, 2, (int64_t[]){8, 6}, LAYOUT_DENSE);
    tensor_upload(&s->t3);
    lfuser_argument arguments[] = {tensor_argument(&s->t0.view), tensor_argument(&s->t1.view), i64_argument(8),
                                   i64_argument(6)};
    memcpy(s->arguments, arguments, sizeof arguments);
    // Compiles the kernel: on CUDA loading code may wait for a GPU that is busy.
    lfuser_output outputs[2] = {{.tensor = &s->t3.view}};
    ok(lfuser_run(s->executable, env.stream, s->arguments, 4, outputs, 2, NULL));
    synchronize();
    memset(s->t3.host, POISON, (size_t)s->t3.elements * s->t3.bytes);
    tensor_upload(&s->t3);
}

static void seed_close(seed *s) {
    lfuser_executable_destroy(s->executable);
    tensor_finish(&s->t0);
    tensor_finish(&s->t1);
    tensor_finish(&s->t3);
}

// Looks at a tensor of a blocked stream from another one.
static void peek(test_tensor *t) {
    lfuser_stream *other;
    ok(lfuser_stream_create(env.device, &other));
    ok(lfuser_memory_download(other, t->host, t->memory, (size_t)t->elements * t->bytes));
    ok(lfuser_stream_synchronize(other));
    lfuser_stream_destroy(other);
}

static void check_t3(seed *s) {
    tensor_download(&s->t3);
    for (int64_t i = 0; i < 48; i++) ck_assert_float_eq(tensor_f32_at(&s->t3, i), 1000 + 1.5f * (float)i);
    tensor_check_guards(&s->t3, "t3");
}

START_TEST(the_seed_programs_scalar_is_there_at_once) {
    seed s;
    gate g = GATE;
    seed_open(&s);
    block_stream(env.stream, &g);
    uint64_t syncs = stats().syncs, launches = stats().launches;
    lfuser_output outputs[2] = {{.tensor = &s.t3.view}};
    lfuser_completion *completion;
    ok(lfuser_run(s.executable, env.stream, s.arguments, 4, outputs, 2, &completion));
    ck_assert_int_eq(outputs[1].kind, LFUSER_SCALAR);
    ck_assert_int_eq(outputs[1].dtype, LFUSER_I64);
    ck_assert_int_eq(outputs[1].value.i64, 14);
    ck_assert_ptr_null(outputs[1].pending);
    ck_assert_int_eq(outputs[0].kind, LFUSER_TENSOR);
    ck_assert_uint_eq(stats().syncs, syncs);
    ck_assert_uint_eq(stats().launches, launches + 1);
    fails(lfuser_completion_query(completion), LFUSER_NOT_READY, "the run has not completed yet");
    fails(lfuser_completion_wait(completion, 1000000), LFUSER_TIMEOUT, "the run did not complete within 1000000 ns");
    ck_assert_uint_eq(stats().syncs, syncs);
    peek(&s.t3);
    for (int64_t i = 0; i < s.t3.elements * s.t3.bytes; i++) ck_assert_uint_eq(s.t3.host[i], POISON);
    open_gate(&g);
    ok(lfuser_completion_wait(completion, UINT64_MAX));
    ok(lfuser_completion_query(completion));
    lfuser_completion_release(completion);
    check_t3(&s);
    seed_close(&s);
}
END_TEST

// New extents, outputs that the library allocates, many runs deep.
START_TEST(runs_queue_up_behind_a_blocked_stream) {
    enum { RUNS = 100 };
    seed s;
    gate g = GATE;
    seed_open(&s);
    static lfuser_output outputs[RUNS][2];
    for (int warm = 0; warm < 2; warm++) { // the second time with the stream held up
        if (warm) block_stream(env.stream, &g);
        lfuser_stats before = stats();
        for (int i = 0; i < RUNS; i++) {
            int64_t s0 = 1 + i % 2 * 5, s1 = 48 / s0; // 1 x 48, 6 x 8
            int64_t shape[] = {s0, s1}, strides[] = {s1, 1};
            lfuser_tensor t1 = s.t1.view;
            t1.shape = shape;
            t1.strides = strides;
            lfuser_argument arguments[] = {s.arguments[0], tensor_argument(&t1), i64_argument(s0), i64_argument(s1)};
            ok(lfuser_run(s.executable, env.stream, arguments, 4, outputs[i], 2, NULL));
            ck_assert_int_eq(outputs[i][1].value.i64, s0 + s1);
        }
        if (warm) {
            ck_assert_uint_eq(stats().syncs, before.syncs);
            ck_assert_uint_eq(stats().compiles, before.compiles);
            ck_assert_uint_eq(stats().launches, before.launches + RUNS);
            open_gate(&g);
        }
        for (int i = 0; i < RUNS; i++) {
            float got[48];
            const lfuser_tensor *t = &outputs[i][0].allocated->tensor;
            ck_assert_int_eq(t->shape[0] * t->shape[1], 48);
            ok(lfuser_memory_download(env.stream, got, t->data, sizeof got));
            synchronize();
            for (int k = 0; k < 48; k++) ck_assert_float_eq(got[k], 1000 + 1.5f * (float)k);
            outputs[i][0].allocated->deleter(outputs[i][0].allocated);
        }
    }
    seed_close(&s);
}
END_TEST

// Arguments and @host tensors are read before the call returns; what happens to them afterwards does not matter.
START_TEST(host_values_are_read_when_the_program_is_launched) {
    lfuser_executable *e =
        compile("fusion @t(%x: f32[?], %h: f32[] @host, %s: f32) { %a = mul %h, %s %y = mul %x, %a return %y, %a }");
    test_tensor x, y;
    gate g = GATE;
    tensor_f32(&x, 1, (int64_t[]){100}, 1, 1);
    tensor_init(&y, LFUSER_F32, 1, (int64_t[]){100}, LAYOUT_DENSE);
    tensor_upload(&y);
    for (int blocked = 0; blocked < 2; blocked++) {
        float h = 2;
        lfuser_tensor host = {.data = &h, .device = {1, 0}, .dtype = lfuser_dl_dtype_of(LFUSER_F32)};
        lfuser_argument arguments[] = {
            tensor_argument(&x.view), {.kind = LFUSER_HOST_TENSOR, .tensor = &host}, f32_argument(3)};
        lfuser_output outputs[2] = {{.tensor = &y.view}};
        if (blocked) block_stream(env.stream, &g);
        ok(lfuser_run(e, env.stream, arguments, 3, outputs, 2, NULL));
        ck_assert_int_eq(outputs[1].kind, LFUSER_HOST_TENSOR);
        ck_assert_float_eq(outputs[1].value.f32, 6);
        h = 77;
        memset(arguments, 0xff, sizeof arguments);
        if (blocked) open_gate(&g);
        tensor_download(&y);
        for (int i = 0; i < 100; i++) ck_assert_float_eq(tensor_f32_at(&y, i), 6 * (float)(i + 1));
    }
    lfuser_executable_destroy(e);
    tensor_finish(&x);
    tensor_finish(&y);
}
END_TEST

// ---- pending scalars -------------------------------------------------------------------------------------------------------------

static const char pending_text[] = "fusion @p(%x: f32[?], %k: f32, %i: i64) {\n"
                                   "  %m = max %x\n"
                                   "  %s = item %m\n"
                                   "  %y = mul %x, %s\n" // used by a kernel
                                   "  %a = add %s, %k\n" // pending with host
                                   "  %b = cast %a, dtype=i64\n"
                                   "  %c = floordiv %b, %i\n"
                                   "  %z = add %y, %a\n" // a mixed one used by a kernel
                                   "  %h = mul %k, %k\n" // host beside them
                                   "  return %y, %s, %a, %c, %z, %h\n"
                                   "}\n";
enum { PENDING_OUTPUTS = 6 };

typedef struct pending_case {
    lfuser_executable *executable;
    test_tensor x, y, z;
    lfuser_argument arguments[3];
    lfuser_output outputs[PENDING_OUTPUTS];
} pending_case;

static void pending_run(pending_case *c) {
    memset(c->outputs, 0, sizeof c->outputs);
    c->outputs[0].tensor = &c->y.view;
    c->outputs[4].tensor = &c->z.view;
    ok(lfuser_run(c->executable, env.stream, c->arguments, 3, c->outputs, PENDING_OUTPUTS, NULL));
}

static void pending_open(pending_case *c) {
    c->executable = compile(pending_text);
    tensor_f32(&c->x, 1, (int64_t[]){1000}, -499.5f, 1);
    tensor_init(&c->y, LFUSER_F32, 1, (int64_t[]){1000}, LAYOUT_DENSE);
    tensor_init(&c->z, LFUSER_F32, 1, (int64_t[]){1000}, LAYOUT_DENSE);
    tensor_upload(&c->y);
    tensor_upload(&c->z);
    c->arguments[0] = tensor_argument(&c->x.view);
    c->arguments[1] = f32_argument(-2);
    c->arguments[2] = i64_argument(-100);
    pending_run(c);
    for (int i = 1; i <= 3; i++) {
        lfuser_scalar value;
        ok(lfuser_pending_get(c->outputs[i].pending, UINT64_MAX, &value));
        lfuser_pending_release(c->outputs[i].pending);
    }
    synchronize();
}

static void pending_close(pending_case *c) {
    lfuser_executable_destroy(c->executable);
    tensor_finish(&c->x);
    tensor_finish(&c->y);
    tensor_finish(&c->z);
}

START_TEST(pending_scalars_come_without_a_sync) {
    pending_case c;
    gate g = GATE;
    pending_open(&c);
    block_stream(env.stream, &g);
    uint64_t syncs = stats().syncs;
    pending_run(&c);
    ck_assert_int_eq(c.outputs[5].kind, LFUSER_SCALAR);
    ck_assert_float_eq(c.outputs[5].value.f32, 4);
    for (int i = 1; i <= 3; i++) {
        lfuser_scalar value = {.word = {1, 1}};
        ck_assert_int_eq(c.outputs[i].kind, LFUSER_PENDING);
        ck_assert(!lfuser_pending_ready(c.outputs[i].pending));
        fails(lfuser_pending_get(c.outputs[i].pending, 0, &value), LFUSER_NOT_READY,
              "the device has not delivered this scalar yet");
        double start = now_s();
        fails(lfuser_pending_get(c.outputs[i].pending, 1000000, &value), LFUSER_TIMEOUT,
              "no value from the device within 1000000 ns");
        ck_assert_double_ge(now_s() - start, 0.001);
        ck_assert_uint_eq(value.word[0], 0);
    }
    open_gate(&g);
    lfuser_scalar s, a, q;
    ok(lfuser_pending_get(c.outputs[1].pending, UINT64_MAX, &s));
    ok(lfuser_pending_get(c.outputs[2].pending, 10000000000, &a));
    ok(lfuser_pending_get(c.outputs[3].pending, 10000000000, &q));
    ck_assert_float_eq(s.f32, 499.5f);
    ck_assert_float_eq(a.f32, 497.5f);
    ck_assert_int_eq(q.i64, -5); // 497 // -100
    for (int i = 1; i <= 3; i++) {
        ck_assert(lfuser_pending_ready(c.outputs[i].pending));
        ok(lfuser_pending_get(c.outputs[i].pending, 0, &s)); // as often as one likes
    }
    ck_assert_uint_eq(stats().syncs, syncs); // no wait above was one for the stream
    for (int i = 1; i <= 3; i++) lfuser_pending_release(c.outputs[i].pending);
    tensor_download(&c.y);
    tensor_download(&c.z);
    for (int i = 0; i < 1000; i++) {
        float y = (-499.5f + (float)i) * 499.5f;
        ck_assert_float_eq(tensor_f32_at(&c.y, i), y);
        ck_assert_float_eq(tensor_f32_at(&c.z, i), y + 497.5f);
    }
    pending_close(&c);
}
END_TEST

static void *get_value(void *pending) {
    lfuser_scalar value;
    lfuser_status s = lfuser_pending_get(pending, UINT64_MAX, &value);
    return (void *)(uintptr_t)(!s && value.f32 == 499.5f);
}

START_TEST(any_thread_may_wait_for_a_pending_scalar) {
    pending_case c;
    gate g = GATE;
    pthread_t threads[4];
    pending_open(&c);
    block_stream(env.stream, &g);
    pending_run(&c);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, get_value, c.outputs[1].pending);
    open_gate(&g);
    for (int i = 0; i < 4; i++) {
        void *right;
        pthread_join(threads[i], &right);
        ck_assert_ptr_nonnull(right);
    }
    for (int i = 1; i <= 3; i++) lfuser_pending_release(c.outputs[i].pending);
    pending_close(&c);
}
END_TEST

// Nobody need wait: a scalar given up before it came does not show up in a later one.
START_TEST(pending_scalars_may_be_given_up) {
    pending_case c;
    pending_open(&c);
    for (int round = 0; round < 20; round++) {
        gate g = GATE;
        block_stream(env.stream, &g);
        c.arguments[1] = f32_argument((float)round);
        pending_run(&c);
        for (int i = 1; i <= 3; i++) lfuser_pending_release(c.outputs[i].pending);
        pending_run(&c);
        open_gate(&g);
        lfuser_scalar a;
        ok(lfuser_pending_get(c.outputs[2].pending, UINT64_MAX, &a));
        ck_assert_float_eq(a.f32, 499.5f + (float)round);
        for (int i = 1; i <= 3; i++) lfuser_pending_release(c.outputs[i].pending);
        synchronize();
    }
    // An executable waits for what it has under way.
    gate g = GATE;
    block_stream(env.stream, &g);
    pending_run(&c);
    open_gate(&g);
    lfuser_executable_destroy(c.executable);
    c.executable = NULL;
    lfuser_scalar s;
    ok(lfuser_pending_get(c.outputs[1].pending, 0, &s));
    ck_assert_float_eq(s.f32, 499.5f);
    for (int i = 1; i <= 3; i++) lfuser_pending_release(c.outputs[i].pending);
    pending_close(&c);
}
END_TEST

START_TEST(many_pending_scalars_at_once) {
    enum { RUNS = 300 };
    lfuser_executable *e = compile("fusion @t(%x: f64[], %k: f64) { %s = item %x %a = add %s, %k return %a }");
    test_tensor x;
    static lfuser_output outputs[RUNS];
    tensor_init(&x, LFUSER_F64, 0, NULL, LAYOUT_DENSE);
    *(double *)tensor_element(&x, 0) = 0.25;
    tensor_upload(&x);
    for (int i = 0; i < RUNS; i++) {
        lfuser_argument arguments[] = {tensor_argument(&x.view),
                                       {.kind = LFUSER_SCALAR, .dtype = LFUSER_F64, .value = {.f64 = i}}};
        ok(lfuser_run(e, env.stream, arguments, 2, &outputs[i], 1, NULL));
    }
    for (int i = RUNS; i-- > 0;) {
        lfuser_scalar s;
        ok(lfuser_pending_get(outputs[i].pending, UINT64_MAX, &s));
        ck_assert_double_eq(s.f64, i + 0.25);
        lfuser_pending_release(outputs[i].pending);
    }
    lfuser_executable_destroy(e);
    tensor_finish(&x);
}
END_TEST

// A blocked stream and a program that does not need it: no stream at all, and a stream given all the same.
START_TEST(host_programs_take_no_notice_of_streams) {
    lfuser_executable *e = compile("fusion @h(%a: i64, %b: i64) { %c = ceildiv %a, %b return %c }");
    lfuser_argument arguments[] = {i64_argument(-7), i64_argument(2)};
    lfuser_output output = {0};
    gate g = GATE;
    block_stream(env.stream, &g);
    ok(lfuser_run(e, NULL, arguments, 2, &output, 1, NULL));
    ck_assert_int_eq(output.value.i64, -3);
    output = (lfuser_output){0};
    ok(lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL));
    ck_assert_int_eq(output.value.i64, -3);
    lfuser_completion *completion;
    ok(lfuser_run(e, NULL, arguments, 2, &output, 1, &completion));
    ok(lfuser_completion_query(completion)); // there was nothing to wait for
    lfuser_completion_release(completion);
    open_gate(&g);
    ok(lfuser_stream_synchronize(env.stream)); // the gate lies on this stack
    lfuser_executable_destroy(e);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api without syncs");
    TCase *t = device_tcase(suite, "no sync", 60);
    tcase_add_test(t, the_seed_programs_scalar_is_there_at_once);
    tcase_add_test(t, runs_queue_up_behind_a_blocked_stream);
    tcase_add_test(t, host_values_are_read_when_the_program_is_launched);
    tcase_add_test(t, pending_scalars_come_without_a_sync);
    tcase_add_test(t, any_thread_may_wait_for_a_pending_scalar);
    tcase_add_test(t, pending_scalars_may_be_given_up);
    tcase_add_test(t, many_pending_scalars_at_once);
    tcase_add_test(t, host_programs_take_no_notice_of_streams);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
