// Faults of threads, streams and processes; numbers as in test/conformance/gen_faults.py.
#include "test/support/api/tensors.h"
#include <sys/wait.h>
#include <unistd.h>

enum { N_THREADS = SLOW_BUILD ? 4 : 16, N = 257 };

static const char text[] = "fusion @t(%x: f32[?], %s: f32) { %y = mul %x, %s return %y }";

// One call on a stream of the thread's own.
typedef struct job {
    lfuser_fusion *fusion;
    lfuser_executable *executable; // NULL: compiled by the thread
    pthread_barrier_t *start;
    float factor;
    char *printed;
    bool right;
} job;

static void *call(void *arg) {
    job *j = arg;
    pthread_barrier_wait(j->start);
    lfuser_executable *e = j->executable;
    if (!e) ok(lfuser_fusion_compile(j->fusion, env.device, NULL, &e));
    lfuser_stream *stream;
    ok(lfuser_stream_create(env.device, &stream));
    float x[N], y[N];
    for (int i = 0; i < N; i++) x[i] = (float)i;
    void *memory[2];
    int64_t shape[] = {N}, strides[] = {1};
    lfuser_tensor t[2];
    for (int k = 0; k < 2; k++) {
        ok(lfuser_memory_alloc(stream, sizeof x, &memory[k]));
        t[k] = (lfuser_tensor){.data = memory[k],
                               .device = env.place,
                               .rank = 1,
                               .dtype = lfuser_dl_dtype_of(LFUSER_F32),
                               .shape = shape,
                               .strides = strides};
    }
    ok(lfuser_memory_upload(stream, memory[0], x, sizeof x));
    lfuser_argument a[] = {tensor_argument(&t[0]), f32_argument(j->factor)};
    lfuser_output out = {.tensor = &t[1]};
    ok(lfuser_run(e, stream, a, 2, &out, 1, NULL));
    ok(lfuser_memory_download(stream, y, memory[1], sizeof y));
    ok(lfuser_stream_synchronize(stream));
    j->right = true;
    for (int i = 0; i < N; i++) j->right &= y[i] == (float)i * j->factor;
    for (int k = 0; k < 2; k++) lfuser_memory_free(stream, memory[k]);
    lfuser_stream_destroy(stream);
    if (!j->executable) lfuser_executable_destroy(e);
    return NULL;
}

static void *print(void *arg) {
    job *j = arg;
    pthread_barrier_wait(j->start);
    ok(lfuser_fusion_print(j->fusion, LFUSER_STAGE_DEVICE_IR, "cpu", LFUSER_MATH_EXACT, 0, &j->printed));
    return NULL;
}

static void all_threads(job *jobs, lfuser_fusion *f, lfuser_executable *e, void *(*what)(void *)) {
    pthread_barrier_t start;
    pthread_t threads[N_THREADS];
    pthread_barrier_init(&start, NULL, N_THREADS);
    for (int i = 0; i < N_THREADS; i++) {
        jobs[i] = (job){.fusion = f, .executable = e, .start = &start, .factor = (float)(i + 1)};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, what, &jobs[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
}

// 225: many threads make the first call of one program: none hangs, and its kernel is compiled once.
START_TEST(first_calls_at_once) {
    job jobs[N_THREADS];
    for (int round = 0; round < (SLOW_BUILD ? 3 : 30); round++) {
        lfuser_executable *e = compile(text);
        uint64_t before = stats().compiles;
        all_threads(jobs, NULL, e, call);
        for (int i = 0; i < N_THREADS; i++) ck_assert_msg(jobs[i].right, "thread %d", i);
        ck_assert_uint_eq(stats().compiles - before, round == 0); // this context keeps what it has compiled
        lfuser_executable_destroy(e);
    }
}
END_TEST

// 227: many threads compile equal programs.
START_TEST(equal_compiles_at_once) {
    job jobs[N_THREADS];
    for (int round = 0; round < (SLOW_BUILD ? 1 : 5); round++) {
        lfuser_fusion *f = parse(text);
        all_threads(jobs, f, NULL, call);
        for (int i = 0; i < N_THREADS; i++) ck_assert_msg(jobs[i].right, "thread %d", i);
        lfuser_fusion_destroy(f);
    }
}
END_TEST

// 229: names and code do not depend on who else compiles.
START_TEST(same_code_in_parallel) {
    lfuser_fusion *f =
        parse("fusion @t(%x: f32[?, ?]) { %y = exp %x %t = transpose %x, 0, 1 %z = add %t, 1.0 return %y, %z }");
    char *alone;
    ok(lfuser_fusion_print(f, LFUSER_STAGE_DEVICE_IR, "cpu", LFUSER_MATH_EXACT, 0, &alone));
    job jobs[N_THREADS];
    all_threads(jobs, f, NULL, print);
    for (int i = 0; i < N_THREADS; i++) {
        ck_assert_str_eq(jobs[i].printed, alone);
        lfuser_free(env.context, jobs[i].printed);
    }
    lfuser_free(env.context, alone);
    lfuser_fusion_destroy(f);
}
END_TEST

// 221: one program on two streams at once, with other arguments each time, all in flight: nobody's argument block is reused.
START_TEST(overlapped_runs) {
    enum { RUNS = SLOW_BUILD ? 50 : 2000, SHORT = 8 };
    lfuser_executable *e = compile(text);
    lfuser_stream *streams[2];
    const int64_t shape[] = {SHORT}, all[] = {RUNS, SHORT};
    test_tensor x, y;
    tensor_f32(&x, 1, shape, 1, 1);
    tensor_init(&y, LFUSER_F32, 2, all, LAYOUT_DENSE);
    tensor_upload(&y);
    for (int s = 0; s < 2; s++) ok(lfuser_stream_create(env.device, &streams[s]));
    for (int k = 0; k < RUNS; k++) {
        lfuser_tensor row = y.view;
        row.rank = 1;
        row.shape++;
        row.strides++;
        row.byte_offset += (uint64_t)k * SHORT * sizeof(float);
        lfuser_argument a[] = {tensor_argument(&x.view), f32_argument((float)k)};
        lfuser_output out = {.tensor = &row};
        ok(lfuser_run(e, streams[k % 2], a, 2, &out, 1, NULL));
    }
    for (int s = 0; s < 2; s++) {
        ok(lfuser_stream_synchronize(streams[s]));
        lfuser_stream_destroy(streams[s]);
    }
    tensor_download(&y);
    for (int64_t i = 0; i < RUNS * SHORT; i++)
        ck_assert_float_eq(tensor_f32_at(&y, i), (float)(i / SHORT) * (float)(i % SHORT + 1));
    tensor_finish(&x);
    tensor_finish(&y);
    lfuser_executable_destroy(e);
}
END_TEST

// 223: after a fork the child makes a context of its own: the CPU device computes; a GPU says what is wrong, or computes.
START_TEST(after_a_fork) {
    lfuser_executable_destroy(compile(text));
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        lfuser_context *c;
        lfuser_device *d;
        lfuser_status s = lfuser_context_create(NULL, &c);
        if (!s) s = lfuser_device_open(c, test_device_name(), &d);
        if (s) _exit(test_on_cuda() && lfuser_status_message(s)[0] ? 0 : 3);
        env = (test_env){.context = c, .device = d, .place = env.place};
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, 1);
        job j = {.fusion = parse(text), .start = &start, .factor = 3};
        call(&j);
        _exit(j.right ? 0 : 4);
    }
    int state = 0;
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert_msg(WIFEXITED(state) && WEXITSTATUS(state) == 0, "the child ended with %x", (unsigned)state);
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("faults of threads");
    TCase *t = device_tcase(suite, "threads", 120);
    tcase_add_test(t, first_calls_at_once);
    tcase_add_test(t, equal_compiles_at_once);
    tcase_add_test(t, same_code_in_parallel);
    tcase_add_test(t, overlapped_runs);
    if (!UNDER_TSAN) tcase_add_test(t, after_a_fork);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make_suite); }
