// The CPU device: order, asynchrony, splitting over threads, memory, events, floating-point state, fork, and what a launch
// allocates.
#include "test/unit/test_runtime.h"
#include <fenv.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static counting heap;
static lf_device *device;
static const lf_device_ops *ops;
static lf_stream *stream;

static void setup_threads(uint32_t threads) {
    counting_init(&heap);
    ok(lf_cpu_device_create(&heap.allocator, NULL, threads, &device));
    ops = device->ops;
    ok(ops->stream_create(device, &stream));
}
static void setup(void) { setup_threads(4); }
static void teardown(void) {
    ops->stream_destroy(stream);
    ops->destroy(device);
    ck_assert_int_eq(heap.live, 0);
}

static lf_kernel *load(lf_native_kernel fn) {
    lf_kernel *k;
    ok(ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_NATIVE, .entry = "k", .address = (void *)fn}, &k));
    return k;
}

static lf_status launch_on(lf_stream *s, const lf_kernel *k, const uint64_t *args, uint32_t n_args, uint64_t items,
                           uint64_t grain) {
    lf_launch l = {.kernel = k, .args = args, .n_args = n_args, .items = items, .grain = grain};
    return ops->launch(s, &l);
}

// args: array, factor. One item: array[0] = array[0] * factor + 1, so that order shows.
static void step(const uint64_t *args, uint64_t begin, uint64_t end) {
    uint64_t *x = (uint64_t *)(uintptr_t)args[0];
    for (; begin < end; begin++) x[0] = x[0] * args[1] + 1;
}
// args: bytes. Counts visits of each item.
static void visit(const uint64_t *args, uint64_t begin, uint64_t end) {
    _Atomic unsigned char *seen = (_Atomic unsigned char *)(uintptr_t)args[0];
    for (; begin < end; begin++) atomic_fetch_add_explicit(&seen[begin], 1, memory_order_relaxed);
}
static void nothing(const uint64_t *args, uint64_t begin, uint64_t end) { (void)args, (void)begin, (void)end; }

static uint64_t steps_by_hand(uint64_t x, int n) {
    for (int i = 0; i < n; i++) x = x * (uint64_t)(i + 3) + 1;
    return x;
}

// ---- order

START_TEST(work_runs_in_order) {
    lf_kernel *k = load(step);
    uint64_t x = 1;
    for (int i = 0; i < 100; i++) ok(launch_on(stream, k, (uint64_t[]){(uintptr_t)&x, (uint64_t)i + 3}, 2, 1, 1));
    ck_assert_uint_eq(x, steps_by_hand(1, 100)); // an idle stream runs inline
    ops->kernel_destroy(k);
}
END_TEST

START_TEST(nothing_overtakes_a_blocked_stream) {
    lf_kernel *k = load(step);
    static gate g = GATE;
    uint64_t x = 1;
    ok(ops->stream_callback(stream, wait_at, &g));
    double before = now();
    for (int i = 0; i < 1000; i++) {
        // The argument block is copied: this one changes at once.
        uint64_t args[] = {(uintptr_t)&x, (uint64_t)i + 3};
        ok(launch_on(stream, k, args, 2, 1, 1));
        args[0] = args[1] = 0;
    }
    uint64_t copy = 0;
    ok(ops->memory_copy(stream, &copy, &x, sizeof x, LF_COPY_DEVICE_TO_HOST));
    ck_assert_msg(now() - before < 2, "enqueueing on a blocked stream takes %g s", now() - before);
    await_reached(&g);
    ck_assert_uint_eq(*(volatile uint64_t *)&x, 1);
    fails(ops->stream_query(stream), LF_NOT_READY);
    ck_assert_uint_eq(device->stats.syncs, 0);
    open_gate(&g);
    ok(ops->stream_synchronize(stream));
    ok(ops->stream_query(stream));
    ck_assert_uint_eq(device->stats.syncs, 1);
    ck_assert_uint_eq(x, steps_by_hand(1, 1000));
    ck_assert_uint_eq(copy, x);
    ck_assert_uint_eq(device->stats.launches, 1000);
    ops->kernel_destroy(k);
}
END_TEST

START_TEST(a_blocked_stream_holds_up_no_other) {
    enum { N = 8 };
    lf_kernel *k = load(visit);
    lf_stream *blocked[N];
    static gate g = GATE;
    for (int i = 0; i < N; i++) {
        ok(ops->stream_create(device, &blocked[i]));
        ok(ops->stream_callback(blocked[i], wait_at, &g));
    }
    // Also for work that is queued and not inline, and split over the pool.
    static gate soon = GATE;
    static unsigned char seen[100000];
    ok(ops->stream_callback(stream, wait_at, &soon));
    ok(launch_on(stream, k, (uint64_t[]){(uintptr_t)seen}, 1, sizeof seen, 100));
    open_gate(&soon);
    ok(ops->stream_synchronize(stream));
    for (size_t i = 0; i < sizeof seen; i++) ck_assert_uint_eq(seen[i], 1);
    open_gate(&g);
    for (int i = 0; i < N; i++) ops->stream_destroy(blocked[i]);
    ops->kernel_destroy(k);
}
END_TEST

START_TEST(events_order_streams) {
    lf_kernel *k = load(step);
    lf_stream *other;
    lf_event *e;
    static gate g = GATE;
    uint64_t x = 1;
    ok(ops->stream_create(device, &other));
    ok(ops->event_create(device, &e));
    ok(ops->event_query(e)); // never recorded
    ok(ops->event_record(e, stream));
    ok(ops->event_query(e)); // recorded on an idle stream
    ok(ops->stream_callback(stream, wait_at, &g));
    ok(launch_on(stream, k, (uint64_t[]){(uintptr_t)&x, 3}, 2, 1, 1));
    ok(ops->event_record(e, stream));
    fails(ops->event_query(e), LF_NOT_READY);
    ok(ops->stream_wait_event(other, e));
    ok(launch_on(other, k, (uint64_t[]){(uintptr_t)&x, 4}, 2, 1, 1));
    // Recorded again elsewhere: what waits already waits for the earlier recording.
    lf_stream *third;
    ok(ops->stream_create(device, &third));
    ok(ops->event_record(e, third));
    ok(ops->event_query(e));
    usleep(2000);
    ck_assert_uint_eq(*(volatile uint64_t *)&x, 1);
    fails(ops->stream_query(other), LF_NOT_READY);
    open_gate(&g);
    ok(ops->event_record(e, other));
    ok(ops->event_wait(e));
    ck_assert_uint_eq(x, (1 * 3 + 1) * 4 + 1);
    ck_assert_uint_eq(device->stats.syncs, 1);
    ops->event_destroy(e);
    ops->event_destroy(NULL);
    ops->stream_destroy(third);
    ops->stream_destroy(other);
    ops->kernel_destroy(k);
}
END_TEST

START_TEST(an_event_outlives_its_handle) {
    lf_stream *other;
    lf_event *e;
    static gate g = GATE;
    ok(ops->stream_create(device, &other));
    ok(ops->event_create(device, &e));
    ok(ops->stream_callback(stream, wait_at, &g));
    ok(ops->event_record(e, stream));
    ok(ops->stream_wait_event(other, e));
    ops->event_destroy(e);
    fails(ops->stream_query(other), LF_NOT_READY);
    open_gate(&g);
    ok(ops->stream_synchronize(other));
    ops->stream_destroy(other);
}
END_TEST

START_TEST(wrapped_streams_share_the_queue) {
    lf_kernel *k = load(step);
    lf_stream *wrapped, *standard, *again;
    static gate g = GATE;
    uint64_t x = 1;
    ok(ops->stream_wrap(device, ops->stream_native(stream), &wrapped));
    ck_assert_ptr_eq(ops->stream_native(wrapped), ops->stream_native(stream));
    ok(ops->stream_callback(stream, wait_at, &g));
    ok(launch_on(wrapped, k, (uint64_t[]){(uintptr_t)&x, 3}, 2, 1, 1));
    fails(ops->stream_query(wrapped), LF_NOT_READY);
    ops->stream_destroy(wrapped); // does not wait
    ck_assert_uint_eq(*(volatile uint64_t *)&x, 1);
    ok(ops->stream_wrap(device, NULL, &standard));
    ok(ops->stream_wrap(device, NULL, &again));
    ck_assert_ptr_eq(ops->stream_native(standard), ops->stream_native(again));
    ops->stream_destroy(standard);
    ops->stream_destroy(again);
    int not_a_stream;
    fails(ops->stream_wrap(device, &not_a_stream, &wrapped), LF_INVALID_ARGUMENT);
    ck_assert_ptr_null(wrapped);
    open_gate(&g);
    ok(ops->stream_synchronize(stream));
    ck_assert_uint_eq(x, 4);
    ops->kernel_destroy(k);
}
END_TEST

// ---- splitting

static void check_cover(uint32_t threads) {
    static const uint64_t items[] = {0, 1, 7, 1000003}, grains[] = {0, 1, 3, 7, 100, 999, 4097, 2000000, UINT64_MAX};
    unsigned char *seen = malloc(1000003);
    lf_kernel *k = load(visit);
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        for (size_t j = 0; j < sizeof grains / sizeof *grains; j++) {
            memset(seen, 0, 1000003);
            ok(launch_on(stream, k, (uint64_t[]){(uintptr_t)seen}, 1, items[i], grains[j]));
            for (uint64_t at = 0; at < 1000003; at++)
                if (seen[at] != (at < items[i]))
                    ck_abort_msg("%u threads, %lu items, grain %lu: item %lu ran %d times", threads, items[i], grains[j], at,
                                 seen[at]);
        }
    ops->kernel_destroy(k);
    free(seen);
}

START_TEST(every_item_runs_once) { check_cover(4); }
END_TEST

START_TEST(every_item_runs_once_for_any_number_of_threads) {
    static const uint32_t threads[] = {1, 2, 3, 16};
    setup_threads(threads[_i]);
    ck_assert_uint_eq(device->info.processors, threads[_i]);
    check_cover(threads[_i]);
    teardown();
}
END_TEST

static _Atomic uint64_t shortest;
static void measure(const uint64_t *args, uint64_t begin, uint64_t end) {
    uint64_t n = end - begin, least = shortest;
    ck_assert_uint_eq(begin % args[0], 0);
    if (end != args[1])
        while (n < least && !atomic_compare_exchange_weak(&shortest, &least, n)) {}
}
START_TEST(chunks_are_whole_grains) {
    lf_kernel *k = load(measure);
    for (uint64_t grain = 1; grain < 5000; grain = grain * 3 + 2) {
        shortest = UINT64_MAX;
        ok(launch_on(stream, k, (uint64_t[]){grain, 1000003}, 2, 1000003, grain));
        ck_assert_uint_ge(shortest, grain);
    }
    ops->kernel_destroy(k);
}
END_TEST

// ---- stress

enum { STRESS_THREADS = 8, STRESS_ROUNDS = 400, STRESS_ITEMS = 300 };
static lf_kernel *stress_kernel;
static void add_one(const uint64_t *args, uint64_t begin, uint64_t end) {
    uint64_t *x = (uint64_t *)(uintptr_t)args[0];
    for (; begin < end; begin++) x[begin] += args[1];
}
static void brief(void *arg) { atomic_fetch_add((_Atomic long *)arg, 1); }

static void *stress(void *arg) {
    unsigned seed = (unsigned)(uintptr_t)arg;
    lf_stream *s[2];
    lf_event *e;
    _Atomic long callbacks = 0;
    long expected = 0;
    for (int i = 0; i < 2; i++) ok(ops->stream_create(device, &s[i]));
    ok(ops->event_create(device, &e));
    for (int round = 0; round < STRESS_ROUNDS; round++) {
        void *memory;
        ok(ops->memory_alloc(s[0], STRESS_ITEMS * 8, &memory));
        ck_assert_uint_eq((uintptr_t)memory % 256, 0);
        if (rand_r(&seed) % 3 == 0) {
            ok(ops->stream_callback(s[0], brief, &callbacks));
            expected++;
        }
        ok(ops->memory_fill(s[0], memory, 0, STRESS_ITEMS * 8));
        uint64_t total = 0;
        for (int i = 0; i < 3; i++) {
            uint64_t by = (uint64_t)rand_r(&seed) % 1000;
            total += by;
            ok(launch_on(s[0], stress_kernel, (uint64_t[]){(uintptr_t)memory, by}, 2, STRESS_ITEMS, rand_r(&seed) % 400));
        }
        ok(ops->event_record(e, s[0]));
        ok(ops->stream_wait_event(s[1], e));
        uint64_t result[STRESS_ITEMS];
        ok(ops->memory_copy(s[1], result, memory, sizeof result, LF_COPY_DEVICE_TO_HOST));
        ops->memory_free(s[1], memory);
        if (rand_r(&seed) % 2) {
            ok(ops->stream_synchronize(s[1]));
        } else {
            ok(ops->event_record(e, s[1]));
            ok(ops->event_wait(e));
        }
        for (int i = 0; i < STRESS_ITEMS; i++) ck_assert_uint_eq(result[i], total);
    }
    for (int i = 0; i < 2; i++) ops->stream_destroy(s[i]);
    ck_assert_int_eq(callbacks, expected);
    ops->event_destroy(e);
    return NULL;
}

START_TEST(many_threads_many_streams) {
    pthread_t threads[STRESS_THREADS];
    stress_kernel = load(add_one);
    for (uintptr_t i = 0; i < STRESS_THREADS; i++) pthread_create(&threads[i], NULL, stress, (void *)(i + 1));
    for (int i = 0; i < STRESS_THREADS; i++) pthread_join(threads[i], NULL);
    ops->kernel_destroy(stress_kernel);
}
END_TEST

// Several threads may give work to one native stream; no two pieces run at once.
static uint64_t shared_counter;
static void *share(void *native) {
    lf_stream *mine;
    ok(ops->stream_wrap(device, native, &mine));
    static _Atomic long ignored;
    for (int i = 0; i < 3000; i++) {
        ok(launch_on(mine, stress_kernel, (uint64_t[]){(uintptr_t)&shared_counter, 1}, 2, 1, 1));
        if (i % 64 == 0) ok(ops->stream_callback(mine, brief, &ignored));
        if (i % 500 == 0) ok(ops->stream_synchronize(mine));
    }
    ok(ops->stream_synchronize(mine));
    ops->stream_destroy(mine);
    return NULL;
}

START_TEST(one_queue_from_many_threads) {
    pthread_t threads[4];
    stress_kernel = load(add_one);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, share, ops->stream_native(stream));
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    ck_assert_uint_eq(shared_counter, 4 * 3000);
    ops->kernel_destroy(stress_kernel);
}
END_TEST

// ---- memory

START_TEST(memory_is_reused_after_its_stream_passed) {
    void *a, *b, *c;
    static gate g = GATE;
    ok(ops->memory_alloc(stream, 0, &a));
    ck_assert_ptr_null(a);
    ops->memory_free(stream, NULL);
    ok(ops->memory_alloc(stream, 1000, &a));
    ck_assert_uint_eq((uintptr_t)a % 256, 0);
    ops->memory_free(stream, a);
    ok(ops->memory_alloc(stream, 1010, &b));
    ck_assert_ptr_eq(a, b);
    ok(ops->stream_callback(stream, wait_at, &g));
    ops->memory_free(stream, b); // the stream has not come here yet
    ok(ops->memory_alloc(stream, 1000, &c));
    ck_assert_ptr_ne(b, c);
    open_gate(&g);
    ok(ops->stream_synchronize(stream));
    ok(ops->memory_alloc(stream, 1000, &a));
    ck_assert_ptr_eq(a, b);
    ops->memory_free(stream, a);
    ops->memory_free(stream, c);
    fails(ops->memory_alloc(stream, SIZE_MAX, &a), LF_OUT_OF_MEMORY);
    ck_assert_ptr_null(a);
    fails(ops->memory_alloc(stream, SIZE_MAX / 8, &a), LF_OUT_OF_MEMORY);
    for (size_t bytes = 1; bytes < (size_t)1 << 24; bytes = bytes * 5 / 3 + 1) {
        ok(ops->memory_alloc(stream, bytes, &a));
        ck_assert_uint_eq((uintptr_t)a % 256, 0);
        memset(a, 1, bytes);
        ops->memory_free(stream, a);
    }
}
END_TEST

START_TEST(copies_and_fills) {
    size_t n = 3 << 20;
    char *a, *b;
    void *p;
    int type, ordinal;
    ok(ops->memory_alloc(stream, n, &p));
    a = p;
    ok(ops->memory_alloc(stream, n, &p));
    b = p;
    ok(ops->memory_fill(stream, a, 0x5a, n));
    for (size_t i = 0; i < n; i += 997) a[i] = (char)i;
    ok(ops->memory_copy(stream, b, a, n, LF_COPY_DEVICE_TO_DEVICE));
    ck_assert_int_eq(memcmp(a, b, n), 0);
    ok(ops->memory_copy(stream, a + 1, a, n - 1, LF_COPY_DEVICE_TO_DEVICE)); // overlapping
    ck_assert_int_eq(memcmp(a + 1, b, n - 1), 0);
    ck_assert_uint_eq(device->stats.bytes_copied, 2 * n - 1);
    ok(ops->memory_where(device, a, &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_CPU);
    ops->memory_free(stream, a);
    ops->memory_free(stream, b);
    void *host, *mapped;
    ok(ops->mapped_alloc(device, 10000, &host, &mapped));
    for (int i = 0; i < 10000; i++) ck_assert_int_eq(((char *)host)[i], 0);
    ops->mapped_free(device, host);
    ops->mapped_free(device, NULL);
}
END_TEST

START_TEST(a_steady_caller_allocates_nothing) {
    lf_kernel *k = load(add_one);
    static uint64_t x[64];
    void *p;
    static gate g[2] = {GATE, GATE};
    for (int round = 0; round < 2; round++) {
        long before = heap.calls;
        for (int i = 0; i < 100000; i++) {
            ok(launch_on(stream, k, (uint64_t[]){(uintptr_t)x, 1}, 2, 64, i % 100 ? 64 : 1));
            ok(ops->memory_alloc(stream, 100000, &p));
            ops->memory_free(stream, p);
        }
        // And through the queue: as many tasks as in the first round.
        ok(ops->stream_callback(stream, wait_at, &g[round]));
        for (int i = 0; i < 20000; i++) ok(launch_on(stream, k, (uint64_t[]){(uintptr_t)x, 1}, 2, 1, 1));
        open_gate(&g[round]);
        ok(ops->stream_synchronize(stream));
        if (round) ck_assert_int_eq(heap.calls - before, 0);
    }
    ck_assert_uint_eq(x[0], 2 * 120000);
    ops->kernel_destroy(k);
}
END_TEST

// ---- kernels

static _Atomic int released;
static void release_code(void *arg) {
    ck_assert_ptr_eq(arg, &released);
    atomic_fetch_add(&released, 1);
}
START_TEST(code_is_released_after_the_last_launch) {
    lf_kernel *k, *none;
    static gate g = GATE;
    lf_image image = {LF_IMAGE_NATIVE, "k", NULL, 0, (void *)step, 0, release_code, &released, 0};
    uint64_t x = 1;
    ok(ops->kernel_load(device, &image, &k));
    ok(ops->stream_callback(stream, wait_at, &g));
    ok(launch_on(stream, k, (uint64_t[]){(uintptr_t)&x, 3}, 2, 1, 1));
    ops->kernel_destroy(k);
    ck_assert_int_eq(released, 0);
    open_gate(&g);
    ok(ops->stream_synchronize(stream));
    ck_assert_int_eq(released, 1);
    ck_assert_uint_eq(x, 4);
    image.kind = LF_IMAGE_PTX;
    fails(ops->kernel_load(device, &image, &none), LF_UNSUPPORTED);
    image.kind = LF_IMAGE_NATIVE;
    image.address = NULL;
    fails(ops->kernel_load(device, &image, &none), LF_INVALID_ARGUMENT);
    ck_assert_int_eq(released, 1);
    ops->kernel_destroy(NULL);
}
END_TEST

START_TEST(what_belongs_to_another_device_is_refused) {
    lf_device *second;
    lf_kernel *k = load(nothing);
    lf_stream *s;
    ok(lf_cpu_device_create(&heap.allocator, NULL, 1, &second));
    ok(ops->stream_create(second, &s));
    fails(launch_on(s, k, NULL, 0, 1, 1), LF_INVALID_ARGUMENT);
    lf_event *e;
    ok(ops->event_create(device, &e));
    fails(ops->event_record(e, s), LF_INVALID_ARGUMENT);
    fails(ops->stream_wait_event(s, e), LF_INVALID_ARGUMENT);
    ops->event_destroy(e);
    ops->stream_destroy(s);
    ops->destroy(second);
    ops->kernel_destroy(k);
}
END_TEST

// ---- floating-point state

#if defined(__x86_64__)
static volatile double tiny = 1e-310, one = 1, three = 3;
static _Atomic int bad_state;
static void compute(const uint64_t *args, uint64_t begin, uint64_t end) {
    (void)args;
    for (; begin < end; begin++) {
        volatile double kept = tiny * 1.0, third = one / three;
        volatile long double x87 = (long double)one / three;
        if (kept == 0 || third != 0x1.5555555555555p-2 || fegetround() != FE_TONEAREST || x87 == 0)
            atomic_fetch_add(&bad_state, 1);
    }
    feclearexcept(FE_ALL_EXCEPT);
}

START_TEST(floating_point_state_is_ours_and_then_the_callers) {
    static const uint32_t states[] = {0x1f80, 0x9fc0, 0x7f80, 0x3f80, 0x5f80, 0xffc0, 0x1fa1, 0x1d00};
    static const uint16_t x87s[] = {0x37f, 0xf7f, 0x27f, 0x77f};
    lf_kernel *k = load(compute);
    uint32_t before = __builtin_ia32_stmxcsr();
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        uint16_t word = x87s[i % 4], word_after;
        __asm__ volatile("fldcw %0" : : "m"(word));
        __builtin_ia32_ldmxcsr(states[i]);
        lf_status a = launch_on(stream, k, NULL, 0, 1, 1);
        lf_status b = launch_on(stream, k, NULL, 0, 10000, 1);
        uint32_t after = __builtin_ia32_stmxcsr();
        __asm__ volatile("fnstcw %0" : "=m"(word_after));
        __builtin_ia32_ldmxcsr(before);
        word = 0x37f;
        __asm__ volatile("fldcw %0" : : "m"(word));
        ok(a);
        ok(b);
        ck_assert_uint_eq(after, states[i]);
        ck_assert_uint_eq(word_after, x87s[i % 4]);
    }
    ck_assert_int_eq(bad_state, 0);
    ops->kernel_destroy(k);
}
END_TEST

// Threads that are started under an odd state do not inherit it.
START_TEST(threads_start_with_the_default_state) {
    uint32_t before = __builtin_ia32_stmxcsr();
    static gate g = GATE;
    lf_kernel *k = load(compute);
    __builtin_ia32_ldmxcsr(0xffc0);
    lf_status a = ops->stream_callback(stream, wait_at, &g);
    lf_status b = launch_on(stream, k, NULL, 0, 100000, 1);
    __builtin_ia32_ldmxcsr(before);
    open_gate(&g);
    ok(a);
    ok(b);
    ok(ops->stream_synchronize(stream));
    ck_assert_int_eq(bad_state, 0);
    ops->kernel_destroy(k);
}
END_TEST
#endif

// ---- fork

static void in_child(void (*body)(void)) {
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        alarm(20);
        body();
        _exit(0);
    }
    int state;
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert_msg(WIFEXITED(state) && WEXITSTATUS(state) == 0, "the child ended with state %#x", state);
}
#define CHILD_NEEDS(x) ((x) ? (void)0 : _exit(__LINE__ % 100 + 1))

static lf_kernel *fork_kernel;
static lf_event *fork_event;
static void child_computes(void) {
    static uint64_t x[1000];
    lf_stream *fresh;
    void *p;
    for (int i = 0; i < 3; i++) CHILD_NEEDS(!launch_on(stream, fork_kernel, (uint64_t[]){(uintptr_t)x, 2}, 2, 1000, 10));
    for (int i = 0; i < 1000; i++) CHILD_NEEDS(x[i] == 6);
    CHILD_NEEDS(!ops->stream_create(device, &fresh));
    CHILD_NEEDS(!launch_on(fresh, fork_kernel, (uint64_t[]){(uintptr_t)x, 1}, 2, 1000, 10));
    CHILD_NEEDS(x[999] == 7);
    _Atomic long called = 0;
    CHILD_NEEDS(!ops->stream_callback(fresh, brief, &called) && called == 1);
    CHILD_NEEDS(!ops->memory_alloc(fresh, 5000, &p) && p);
    CHILD_NEEDS(!ops->memory_copy(fresh, p, x, 5000, LF_COPY_HOST_TO_DEVICE));
    ops->memory_free(fresh, p);
    CHILD_NEEDS(!ops->event_record(fork_event, fresh) && !ops->event_wait(fork_event));
    CHILD_NEEDS(!ops->stream_wait_event(fresh, fork_event));
    CHILD_NEEDS(!ops->stream_synchronize(fresh) && !ops->stream_query(fresh));
    ops->stream_destroy(fresh);
    ops->event_destroy(fork_event);
    ops->kernel_destroy(fork_kernel);
    ops->stream_destroy(stream);
    ops->destroy(device);
    if (UNDER_TSAN) return; // it does not follow threads of a forked child
    setup();
    fork_kernel = load(add_one);
    CHILD_NEEDS(!launch_on(stream, fork_kernel, (uint64_t[]){(uintptr_t)x, 1}, 2, 1000, 10));
    CHILD_NEEDS(x[0] == 8);
}

START_TEST(a_forked_child_computes) {
    static uint64_t x[1000];
    fork_kernel = load(add_one);
    ok(ops->event_create(device, &fork_event));
    ok(launch_on(stream, fork_kernel, (uint64_t[]){(uintptr_t)x, 1}, 2, 1000, 10)); // threads exist
    in_child(child_computes);
    ok(launch_on(stream, fork_kernel, (uint64_t[]){(uintptr_t)x, 1}, 2, 1000, 10));
    ops->event_destroy(fork_event);
    ops->kernel_destroy(fork_kernel);
}
END_TEST

static void child_of_a_busy_parent(void) {
    static uint64_t x[1000];
    lf_status s = ops->event_wait(fork_event);
    CHILD_NEEDS(lf_status_code(s) == LF_UNAVAILABLE);
    lf_status_destroy(s);
    s = ops->stream_synchronize(stream);
    CHILD_NEEDS(lf_status_code(s) == LF_UNAVAILABLE);
    CHILD_NEEDS(strstr(lf_status_message(s), "before fork"));
    lf_status_destroy(s);
    CHILD_NEEDS(!launch_on(stream, fork_kernel, (uint64_t[]){(uintptr_t)x, 2}, 2, 1000, 10));
    CHILD_NEEDS(x[5] == 2);
    ops->kernel_destroy(fork_kernel);
    ops->stream_destroy(stream);
    ops->destroy(device);
}

START_TEST(a_child_of_a_busy_parent_does_not_hang) {
    static gate g = GATE;
    static uint64_t x[1000];
    fork_kernel = load(add_one);
    ok(ops->event_create(device, &fork_event));
    ok(ops->stream_callback(stream, wait_at, &g));
    ok(launch_on(stream, fork_kernel, (uint64_t[]){(uintptr_t)x, 1}, 2, 1000, 10));
    ok(ops->event_record(fork_event, stream));
    in_child(child_of_a_busy_parent);
    open_gate(&g);
    ok(ops->event_wait(fork_event));
    ck_assert_uint_eq(x[0], 1);
    ops->event_destroy(fork_event);
    ops->kernel_destroy(fork_kernel);
}
END_TEST

// ---- the end

static _Atomic long late;
static void slowly(void *arg) {
    (void)arg;
    usleep(20000);
    atomic_fetch_add(&late, 1);
}
START_TEST(destroying_waits) {
    lf_stream *other;
    ok(ops->stream_create(device, &other));
    ok(ops->stream_callback(other, slowly, NULL));
    ops->stream_destroy(other);
    ck_assert_int_eq(late, 1);
    lf_stream *standard;
    ok(ops->stream_wrap(device, NULL, &standard));
    ok(ops->stream_callback(standard, slowly, NULL));
    ok(ops->stream_callback(standard, slowly, NULL));
    ops->stream_destroy(standard);
    teardown();
    ck_assert_int_eq(late, 3);
    setup();
}
END_TEST

START_TEST(environment_gives_the_number_of_threads) {
    lf_device *d;
    setenv("LFUSER_NUM_THREADS", "3", 1);
    ok(lf_cpu_device_create(&lf_system_allocator, NULL, 0, &d));
    ck_assert_uint_eq(d->info.processors, 3);
    ck_assert_str_eq(d->info.target, "cpu");
    d->ops->destroy(d);
    ok(lf_cpu_device_create(&lf_system_allocator, NULL, 2, &d));
    ck_assert_uint_eq(d->info.processors, 2);
    d->ops->destroy(d);
    static const char *const bad[] = {"", "0", "-1", "many", "3x", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("LFUSER_NUM_THREADS", bad[i], 1);
        ok(lf_cpu_device_create(&lf_system_allocator, NULL, 0, &d));
        ck_assert_uint_ge(d->info.processors, 1);
        ck_assert_uint_le(d->info.processors, 1024);
        d->ops->destroy(d);
    }
    unsetenv("LFUSER_NUM_THREADS");
}
END_TEST

// Out of memory at every allocation in turn: a status, nothing lost.
static _Atomic long allowed;
static void *rationed_alloc(void *self, size_t size) {
    return atomic_fetch_sub(&allowed, 1) > 0 ? count_alloc(self, size) : NULL;
}
static lf_status small_life(const lf_allocator *a) {
    lf_device *d;
    lf_stream *s = NULL;
    lf_event *e = NULL;
    lf_kernel *k = NULL;
    void *p = NULL;
    _Atomic long called = 0;
    LF_TRY(lf_cpu_device_create(a, NULL, 2, &d));
    lf_status r = d->ops->stream_create(d, &s);
    if (!r) r = d->ops->event_create(d, &e);
    if (!r) r = d->ops->kernel_load(d, &(lf_image){.entry = "k", .address = (void *)nothing}, &k);
    if (!r) r = d->ops->memory_alloc(s, 100, &p);
    if (!r) r = d->ops->stream_callback(s, brief, &called);
    if (!r) r = d->ops->event_record(e, s);
    if (!r) r = d->ops->launch(s, &(lf_launch){.kernel = k, .items = 1000, .grain = 1});
    if (!r) r = d->ops->event_wait(e);
    if (s) d->ops->memory_free(s, p);
    d->ops->kernel_destroy(k);
    d->ops->event_destroy(e);
    d->ops->stream_destroy(s);
    d->ops->destroy(d);
    return r;
}
START_TEST(out_of_memory_anywhere_is_a_status) {
    counting c;
    counting_init(&c);
    c.allocator.alloc = rationed_alloc;
    int failures = 0;
    for (long n = 0; n < 40; n++) {
        atomic_store(&allowed, n);
        lf_status s = small_life(&c.allocator);
        if (s) {
            ck_assert_int_eq(lf_status_code(s), LF_OUT_OF_MEMORY);
            failures++;
        }
        lf_status_destroy(s);
        ck_assert_int_eq(c.live, 0);
    }
    ck_assert_int_ge(failures, 6);
    ck_assert_int_lt(failures, 30);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("runtime cpu");
    TCase *t = tcase_create("device");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, work_runs_in_order);
    tcase_add_test(t, nothing_overtakes_a_blocked_stream);
    tcase_add_test(t, a_blocked_stream_holds_up_no_other);
    tcase_add_test(t, events_order_streams);
    tcase_add_test(t, an_event_outlives_its_handle);
    tcase_add_test(t, wrapped_streams_share_the_queue);
    tcase_add_test(t, every_item_runs_once);
    tcase_add_test(t, chunks_are_whole_grains);
    tcase_add_test(t, many_threads_many_streams);
    tcase_add_test(t, one_queue_from_many_threads);
    tcase_add_test(t, memory_is_reused_after_its_stream_passed);
    tcase_add_test(t, copies_and_fills);
    tcase_add_test(t, a_steady_caller_allocates_nothing);
    tcase_add_test(t, code_is_released_after_the_last_launch);
    tcase_add_test(t, what_belongs_to_another_device_is_refused);
#if defined(__x86_64__)
    tcase_add_test(t, floating_point_state_is_ours_and_then_the_callers);
    tcase_add_test(t, threads_start_with_the_default_state);
#endif
    tcase_add_test(t, a_forked_child_computes);
    tcase_add_test(t, a_child_of_a_busy_parent_does_not_hang);
    tcase_add_test(t, destroying_waits);
    suite_add_tcase(suite, t);
    TCase *alone = tcase_create("creation");
    tcase_set_timeout(alone, 120);
    tcase_add_loop_test(alone, every_item_runs_once_for_any_number_of_threads, 0, 4);
    tcase_add_test(alone, environment_gives_the_number_of_threads);
    tcase_add_test(alone, out_of_memory_anywhere_is_a_status);
    suite_add_tcase(suite, alone);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
