// A process that gets no more threads: each start of a thread fails in turn, then all of them do. What can go on without goes on (a kernel
// on fewer threads, compiling by the caller), and is right; the rest is LFUSER_OUT_OF_MEMORY; nothing is left, and the same calls on the
// same handles are right as soon as threads can be had.
#include "test/support/api/device_test.h"
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

static struct {
    _Atomic bool on;
    _Atomic long calls, fail_at; // fail_at 0: all
    _Atomic long failed;
} threads;

// The library's calls come here, too.
typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
__attribute__((visibility("default"))) int pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *),
                                                          void *arg) {
    static create_fn *real;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (threads.on) {
        long n = ++threads.calls;
        if (!threads.fail_at || n == threads.fail_at) {
            threads.failed++;
            return EAGAIN;
        }
    }
    return real(out, how, run, arg);
}

// Large enough for all threads of the device; a value to wait for; several kernels to prepare.
static const char text[] =
    "fusion @f(%x: f32[?, ?]) { %a = mul %x, 2 %m = max %a %p = item %m %s = sum %a, axes=[1] %t = exp %s "
    "return %a, %p, %t }";
enum { ROWS = 512, COLS = 512 };

typedef struct world {
    lfuser_context *context;
    lfuser_device *device;
    lfuser_stream *stream;
    lfuser_fusion *fusion;
    float *x;
} world;

static void count(void *arg) { ++*(_Atomic int *)arg; }

#define TRY(call)                                                                                                           \
    do {                                                                                                                    \
        lfuser_status tried = (call);                                                                                       \
        if (tried) return tried;                                                                                            \
    } while (0)

// A device and a stream of its own, compiled beside, run, waited for and called back from.
static lfuser_status act(world *w) {
    lfuser_executable *e = NULL;
    lfuser_output outputs[3] = {{0}};
    lfuser_scalar p = {0};
    _Atomic int called = 0;
    int64_t shape[] = {ROWS, COLS};
    lfuser_tensor t = {.data = w->x, .device = {1, 0}, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape};
    lfuser_argument argument = tensor_argument(&t);
    TRY(lfuser_fusion_compile(w->fusion, w->device, NULL, &e));
    lfuser_status s = lfuser_executable_prepare(e);
    if (!s) s = lfuser_run(e, w->stream, &argument, 1, outputs, 3, NULL);
    if (!s) s = lfuser_pending_callback(outputs[1].pending, count, &called);
    bool waits = !s;
    if (!s) s = lfuser_pending_get(outputs[1].pending, UINT64_MAX, &p);
    lfuser_status end = lfuser_stream_synchronize(w->stream);
    if (!s)
        s = end;
    else
        lfuser_status_destroy(end);
    if (!s) {
        const float *a = outputs[0].allocated->tensor.data;
        for (int i = 0; i < ROWS * COLS; i++) ck_assert(a[i] == 2 * w->x[i]);
        ck_assert(p.f32 == 2 * 200.0f);
    }
    for (int i = 0; i < 10000 && waits && !called; i++) usleep(1000);
    ck_assert_int_eq(called, waits);
    for (int i = 0; i < 3; i++)
        if (outputs[i].allocated) outputs[i].allocated->deleter(outputs[i].allocated);
    lfuser_pending_release(outputs[1].pending);
    lfuser_executable_destroy(e);
    return s;
}

static void begin(world *w) {
    lfuser_context_options o = {.size = sizeof o, .threads = 4};
    ok(lfuser_context_create(&o, &w->context));
    ok(lfuser_device_open(w->context, "cpu", &w->device));
    ok(lfuser_stream_create(w->device, &w->stream));
    ok(lfuser_fusion_parse(w->context, "t.lf", text, sizeof text - 1, NULL, &w->fusion));
    w->x = malloc(sizeof *w->x * ROWS * COLS);
    for (int i = 0; i < ROWS * COLS; i++) w->x[i] = (float)(i % 201);
}
static void end(world *w) {
    lfuser_fusion_destroy(w->fusion);
    lfuser_stream_destroy(w->stream);
    lfuser_device_close(w->device);
    lfuser_context_destroy(w->context);
    free(w->x);
}

static lfuser_status act_without(world *w, long fail_at) {
    threads.calls = threads.failed = 0;
    threads.fail_at = fail_at;
    threads.on = true;
    lfuser_status s = act(w);
    threads.on = false;
    return s;
}

static void check_status(lfuser_status s, long k) {
    if (!s) return;
    ck_assert_msg(lfuser_status_code(s) == LFUSER_OUT_OF_MEMORY && strstr(lfuser_status_message(s), "thread"),
                  "start %ld failing: %s: %s", k, lfuser_code_name(lfuser_status_code(s)), lfuser_status_message(s));
    lfuser_status_destroy(s);
}

START_TEST(each_start_fails_once) {
    long failed = 0, without = 0, k = 1;
    for (;; k++) {
        world w;
        begin(&w); // a context of its own: threads stay
        lfuser_status s = act_without(&w, k);
        bool reached = threads.failed;
        if (reached) *(s ? &failed : &without) += 1;
        check_status(s, k);
        ok(act(&w));
        end(&w);
        if (!reached) break;
    }
    printf("%ld starts of threads failed: %ld told by a status, %ld done without\n", k - 1, failed, without);
    ck_assert_int_ge(failed, 1); // the callbacks' thread at least
    ck_assert_int_ge(without, 3);
}
END_TEST

START_TEST(no_thread_at_all) {
    world w;
    begin(&w);
    for (int i = 0; i < 3; i++) check_status(act_without(&w, 0), 0);
    ck_assert_int_gt(threads.failed, 0);
    ok(act(&w));
    end(&w);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("no more threads");
    TCase *t = device_tcase(suite, "threads", 120);
    tcase_add_test(t, each_start_fails_once);
    tcase_add_test(t, no_thread_at_all);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
