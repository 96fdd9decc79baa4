// The CUDA device on a real GPU, with small kernels written by hand. Skipped, with the reason, where there is none.
// LFUSER_TEST_FIGURES=1 also prints host times.
#include "runtime/cuda/cuda_driver.h"
#include "runtime/mailbox.h"
#include "test/unit/test_runtime.h"
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

// ---- kernels

#define PTX_HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

// args: out, a, b (f32), n.
static const char add_ptx[] = PTX_HEAD
    ".visible .entry add(.param .align 8 .b8 args[32]) {\n"
    ".reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<10>; .reg .f32 %f<4>;\n"
    "ld.param.u64 %rd1, [args]; ld.param.u64 %rd2, [args+8]; ld.param.u64 %rd3, [args+16]; ld.param.u64 %rd4, [args+24];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mul.wide.u32 %rd5, %r1, %r2; cvt.u64.u32 %rd6, %r3; add.u64 %rd5, %rd5, %rd6;\n"
    "setp.ge.u64 %p, %rd5, %rd4; @%p bra done;\n"
    "shl.b64 %rd5, %rd5, 2; add.u64 %rd7, %rd1, %rd5; add.u64 %rd8, %rd2, %rd5; add.u64 %rd9, %rd3, %rd5;\n"
    "ld.f32 %f1, [%rd8]; ld.f32 %f2, [%rd9]; add.rn.f32 %f3, %f1, %f2; st.f32 [%rd7], %f3;\n"
    "done: ret;\n}\n";
// The parameter is the address of a block of `out, n, x1 … xn`: out = sum of x.
static const char sum_ptx[] =
    PTX_HEAD ".visible .entry sum(.param .u64 block) {\n"
             ".reg .pred %p; .reg .b64 %rd<7>;\n"
             "ld.param.u64 %rd1, [block]; ld.u64 %rd2, [%rd1]; ld.u64 %rd3, [%rd1+8]; mov.u64 %rd4, 0;\n"
             "next: setp.eq.u64 %p, %rd3, 0; @%p bra done;\n"
             "ld.u64 %rd5, [%rd1+16]; add.u64 %rd4, %rd4, %rd5; add.u64 %rd1, %rd1, 8; sub.u64 %rd3, %rd3, 1; bra next;\n"
             "done: st.u64 [%rd2], %rd4; ret;\n}\n";
// args: mailbox slot, value.
static const char post_ptx[] =
    PTX_HEAD ".visible .entry post(.param .align 8 .b8 args[16]) {\n"
             ".reg .b64 %rd<5>;\n"
             "ld.param.u64 %rd1, [args]; ld.param.u64 %rd2, [args+8]; st.u64 [%rd1+8], %rd2;\n"
             "ld.relaxed.sys.u64 %rd3, [%rd1]; add.u64 %rd3, %rd3, 1; st.release.sys.u64 [%rd1], %rd3; ret;\n}\n";
// args: flag. Waits until it is not 0, at most 10 s.
static const char spin_ptx[] =
    PTX_HEAD ".visible .entry spin(.param .align 8 .b8 args[8]) {\n"
             ".reg .pred %p<3>; .reg .b32 %r<2>; .reg .b64 %rd<5>;\n"
             "ld.param.u64 %rd1, [args]; mov.u64 %rd2, %globaltimer; add.u64 %rd2, %rd2, 10000000000;\n"
             "again: ld.acquire.sys.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra done;\n"
             "mov.u64 %rd3, %globaltimer; setp.lt.u64 %p2, %rd3, %rd2; @%p2 bra again;\n"
             "done: ret;\n}\n";
// args: out, bytes. The last word of that much dynamic shared memory holds a number.
static const char shared_ptx[] =
    PTX_HEAD ".extern .shared .align 16 .b8 buffer[];\n"
             ".visible .entry shared(.param .align 8 .b8 args[16]) {\n"
             ".reg .b64 %rd<4>; .reg .b32 %r<4>;\n"
             "ld.param.u64 %rd1, [args]; ld.param.u64 %rd2, [args+8]; cvt.u32.u64 %r1, %rd2; mov.u32 %r2, buffer;\n"
             "add.u32 %r2, %r2, %r1; sub.u32 %r2, %r2, 4; mov.u32 %r3, 12345; st.volatile.shared.u32 [%r2], %r3;\n"
             "ld.volatile.shared.u32 %r3, [%r2]; st.u32 [%rd1], %r3; ret;\n}\n";
static const char fault_ptx[] =
    PTX_HEAD ".visible .entry fault() {\n.reg .b64 %rd; mov.u64 %rd, 64; st.u64 [%rd], %rd; ret;\n}\n";

// ---- helpers

static void print_log(void *self, lf_log_level level, const char *message) {
    (void)self;
    printf("log %d: %s\n", (int)level, message);
}
static const lf_log log_to = {NULL, print_log, LF_LOG_WARNING};

static lf_device *device;
static const lf_device_ops *ops;
static lf_stream *stream;

static void setup(void) {
    ok(lf_cuda_device_create(&lf_system_allocator, &log_to, 0, &device));
    ops = device->ops;
    ok(ops->stream_create(device, &stream));
}
static void teardown(void) {
    ops->stream_destroy(stream);
    ops->destroy(device);
}

static lf_kernel *load(const char *entry, const char *ptx) {
    lf_kernel *k;
    ok(ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = entry, .data = ptx, .size = strlen(ptx)}, &k));
    return k;
}
static lf_status launch(lf_stream *s, lf_kernel *k, const uint64_t *args, uint32_t n_args, uint32_t grid, uint32_t block) {
    return ops->launch(s, &(lf_launch){.kernel = k, .args = args, .n_args = n_args, .grid = grid, .block = block});
}

// Driver functions that only the tests need.
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
static struct {
    CUresult (*begin)(CUstream, int mode), (*end)(CUstream, CUgraph *),
        (*instantiate)(CUgraphExec *, CUgraph, unsigned long long);
    CUresult (*launch)(CUgraphExec, CUstream), (*exec_destroy)(CUgraphExec), (*graph_destroy)(CUgraph);
    CUresult (*current)(CUcontext *), (*push)(CUcontext), (*pop)(CUcontext *), (*memory)(size_t *, size_t *);
    CUresult (*retain)(CUcontext *, CUdevice), (*release)(CUdevice), (*capturing)(CUstream, int *);
    CUresult (*raw_launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                           void **, void **);
} cu;

static void find_driver(void) {
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    static const struct {
        const char *name;
        void *at;
    } rows[] = {
        {"cuStreamBeginCapture_v2", &cu.begin},
        {"cuStreamEndCapture", &cu.end},
        {"cuGraphInstantiateWithFlags", &cu.instantiate},
        {"cuGraphLaunch", &cu.launch},
        {"cuGraphExecDestroy", &cu.exec_destroy},
        {"cuGraphDestroy", &cu.graph_destroy},
        {"cuCtxGetCurrent", &cu.current},
        {"cuStreamIsCapturing", &cu.capturing},
        {"cuCtxPushCurrent_v2", &cu.push},
        {"cuCtxPopCurrent_v2", &cu.pop},
        {"cuMemGetInfo_v2", &cu.memory},
        {"cuDevicePrimaryCtxRetain", &cu.retain},
        {"cuDevicePrimaryCtxRelease_v2", &cu.release},
        {"cuLaunchKernel", &cu.raw_launch},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *(void **)rows[i].at = lib ? dlsym(lib, rows[i].name) : NULL;
        ck_assert_msg(*(void **)rows[i].at != NULL, "the driver has no %s", rows[i].name);
    }
}

// A stream that stays busy until the flag is set.
typedef struct block {
    lf_kernel *kernel;
    void *flag, *mapped;
} block;
static void block_stream(block *b, lf_stream *s) {
    b->kernel = load("spin", spin_ptx);
    ok(ops->mapped_alloc(device, 4, &b->flag, &b->mapped));
    ok(launch(s, b->kernel, (uint64_t[]){(uintptr_t)b->mapped}, 1, 1, 1));
}
static void unblock(block *b) { atomic_store((_Atomic uint32_t *)b->flag, 1); }
static void block_finish(block *b) {
    ops->kernel_destroy(b->kernel);
    ops->mapped_free(device, b->flag);
}

// ---- tests

START_TEST(vectors_are_added) {
    enum { N = 100003 };
    lf_kernel *k = load("add", add_ptx);
    static float a[N], b[N], out[N];
    void *d[3];
    int type, ordinal;
    printf("%s, %s, driver %u, %u processors, %u bytes shared\n", device->info.description, device->info.target,
           device->info.driver_version, device->info.processors, device->info.max_shared);
    for (int i = 0; i < N; i++) a[i] = (float)i, b[i] = (float)(2 * i);
    for (int i = 0; i < 3; i++) {
        ok(ops->memory_alloc(stream, sizeof a, &d[i]));
        ck_assert_uint_eq((uintptr_t)d[i] % 256, 0);
    }
    ok(ops->memory_copy(stream, d[1], a, sizeof a, LF_COPY_HOST_TO_DEVICE));
    ok(ops->memory_copy(stream, d[2], b, sizeof b, LF_COPY_HOST_TO_DEVICE));
    ok(ops->memory_fill(stream, d[0], 0xff, sizeof a));
    uint64_t args[] = {(uintptr_t)d[0], (uintptr_t)d[1], (uintptr_t)d[2], N};
    ok(launch(stream, k, args, 4, (N + 255) / 256, 256));
    memset(args, 0, sizeof args);
    ok(ops->memory_copy(stream, out, d[0], sizeof out, LF_COPY_DEVICE_TO_HOST));
    ok(ops->stream_synchronize(stream));
    for (int i = 0; i < N; i++) ck_assert(out[i] == a[i] + b[i]);
    ok(ops->memory_where(device, d[0], &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_CUDA);
    ck_assert_int_eq(ordinal, 0);
    ok(ops->memory_where(device, out, &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_CPU);
    for (int i = 0; i < 3; i++) ops->memory_free(stream, d[i]);
    ops->kernel_destroy(k);
}
END_TEST

START_TEST(a_blocked_stream_does_not_block_us) {
    lf_kernel *k = load("post", post_ptx);
    lf_mailbox_pool *pool;
    lf_mailbox box;
    block b;
    uint64_t value[2];
    void *p;
    lf_event *e;
    ok(lf_mailbox_pool_create(device, &pool));
    ok(lf_mailbox_take(pool, &box));
    ok(ops->event_create(device, &e));
    block_stream(&b, stream);
    double before = now();
    ok(ops->memory_alloc(stream, 1 << 20, &p));
    ok(launch(stream, k, (uint64_t[]){(uintptr_t)box.device_slot, 42}, 2, 1, 1));
    ops->memory_free(stream, p);
    ok(ops->event_record(e, stream));
    ck_assert_msg(now() - before < 1, "%g s", now() - before);
    fails_with(ops->stream_query(stream), LF_NOT_READY, "cuStreamQuery");
    fails_with(ops->event_query(e), LF_NOT_READY, "cuEventQuery");
    ck_assert(!lf_mailbox_ready(&box));
    fails_with(lf_mailbox_wait(&box, &lf_system_allocator, 1000000), LF_TIMEOUT, "1000000 ns");
    ck_assert_uint_eq(device->stats.syncs, 0);
    unblock(&b);
    ok(lf_mailbox_wait(&box, &lf_system_allocator, 5000000000u));
    ck_assert(lf_mailbox_read(&box, value));
    ck_assert_uint_eq(value[0], 42);
    ck_assert_uint_eq(device->stats.syncs, 0);
    ok(ops->event_wait(e));
    ck_assert_uint_eq(device->stats.syncs, 1);
    lf_mailbox_pool_destroy(pool);
    ops->event_destroy(e);
    ops->kernel_destroy(k);
    block_finish(&b);
}
END_TEST

START_TEST(events_order_streams) {
    lf_kernel *k = load("post", post_ptx);
    lf_stream *other;
    lf_event *e;
    lf_mailbox_pool *pool;
    lf_mailbox box;
    block b;
    ok(ops->stream_create(device, &other));
    ok(ops->event_create(device, &e));
    ok(lf_mailbox_pool_create(device, &pool));
    ok(lf_mailbox_take(pool, &box));
    block_stream(&b, stream);
    ok(ops->event_record(e, stream));
    ok(ops->stream_wait_event(other, e));
    ok(launch(other, k, (uint64_t[]){(uintptr_t)box.device_slot, 1}, 2, 1, 1));
    usleep(20000);
    ck_assert(!lf_mailbox_ready(&box));
    unblock(&b);
    ok(ops->stream_synchronize(other));
    ck_assert(lf_mailbox_ready(&box));
    lf_mailbox_pool_destroy(pool);
    ops->event_destroy(e);
    ops->stream_destroy(other);
    ops->kernel_destroy(k);
    block_finish(&b);
}
END_TEST

static void called(void *arg) { atomic_fetch_add((_Atomic int *)arg, 1); }
START_TEST(callbacks_come_in_order) {
    _Atomic int calls = 0;
    block b;
    block_stream(&b, stream);
    ok(ops->stream_callback(stream, called, &calls));
    usleep(10000);
    ck_assert_int_eq(calls, 0);
    unblock(&b);
    ok(ops->stream_synchronize(stream));
    ck_assert_int_eq(calls, 1);
    block_finish(&b);
}
END_TEST

START_TEST(large_argument_blocks) {
    enum { WORDS = 5000, LAUNCHES = 200 };
    lf_kernel *k = load("sum", sum_ptx);
    static uint64_t args[WORDS], out[LAUNCHES];
    void *d;
    block b;
    ok(ops->memory_alloc(stream, sizeof out, &d));
    block_stream(&b, stream); // every launch is under way at once
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        args[0] = (uintptr_t)d + i * 8;
        args[1] = WORDS - 2;
        for (uint64_t j = 2; j < WORDS; j++) args[j] = i * j;
        ok(ops->launch(
            stream,
            &(lf_launch){.kernel = k, .args = args, .n_args = WORDS, .args_in_memory = true, .grid = 1, .block = 1}));
    }
    unblock(&b);
    ok(ops->memory_copy(stream, out, d, sizeof out, LF_COPY_DEVICE_TO_HOST));
    ok(ops->stream_synchronize(stream));
    for (uint64_t i = 0; i < LAUNCHES; i++) ck_assert_uint_eq(out[i], i * ((uint64_t)WORDS * (WORDS - 1) / 2 - 1));
    ops->memory_free(stream, d);
    ops->kernel_destroy(k);
    block_finish(&b);
}
END_TEST

START_TEST(much_shared_memory) {
    lf_kernel *k = load("shared", shared_ptx);
    void *d;
    uint32_t out = 0, bytes = device->info.max_shared;
    ok(ops->memory_alloc(stream, 4, &d));
    ok(ops->launch(
        stream,
        &(lf_launch){
            .kernel = k, .args = (uint64_t[]){(uintptr_t)d, bytes}, .n_args = 2, .grid = 1, .block = 32, .shared = bytes}));
    ok(ops->memory_copy(stream, &out, d, 4, LF_COPY_DEVICE_TO_HOST));
    ok(ops->stream_synchronize(stream));
    ck_assert_uint_eq(out, 12345);
    ops->memory_free(stream, d);
    ops->kernel_destroy(k);
}
END_TEST

START_TEST(the_jit_log_is_in_the_status) {
    lf_kernel *k;
    const char *broken = PTX_HEAD ".visible .entry k() {\n nonsense.u32 %r1;\n}\n";
    lf_status s = ops->kernel_load(
        device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "k", .data = broken, .size = strlen(broken)}, &k);
    printf("%s\n", lf_status_message(s));
    fails_with(s, LF_DEVICE_ERROR, "line 5");
    fails_with(ops->kernel_load(
                   device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "k", .data = add_ptx, .size = sizeof add_ptx - 1}, &k),
               LF_DEVICE_ERROR, "CUDA_ERROR_NOT_FOUND");
    const char *future = ".version 99.0\n.target sm_70\n.address_size 64\n";
    s = ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "k", .data = future, .size = strlen(future)},
                         &k);
    printf("%s\n", lf_status_message(s));
    fails_with(s, LF_DEVICE_ERROR, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
    ok(ops->stream_synchronize(stream)); // the context lives
}
END_TEST

START_TEST(the_callers_context_stays_current) {
    CUcontext primary, now_current, popped;
    find_driver();
    lf_kernel *k = load("post", post_ptx);
    ck_assert_int_eq(cu.current(&now_current), 0);
    ck_assert_ptr_null(now_current);
    ck_assert_int_eq(cu.retain(&primary, 0), 0);
    ck_assert_int_eq(cu.push(primary), 0);
    lf_device *second;
    ok(lf_cuda_device_create(&lf_system_allocator, &log_to, 0, &second));
    lf_stream *s;
    ok(ops->stream_wrap(second, ops->stream_native(stream), &s)); // one context, so one stream may serve both
    ok(ops->stream_synchronize(s));
    ops->stream_destroy(s);
    ops->destroy(second);
    ck_assert_int_eq(cu.current(&now_current), 0);
    ck_assert_ptr_eq(now_current, primary);
    ck_assert_int_eq(cu.pop(&popped), 0);
    ck_assert_int_eq(cu.release(0), 0);
    ops->kernel_destroy(k);
}
END_TEST

// ---- capture

static void *load_meanwhile(void *arg) {
    (void)arg;
    lf_kernel *k = load("post", post_ptx);
    lf_stream *s;
    void *host, *mapped;
    ok(ops->stream_create(device, &s));
    ok(ops->mapped_alloc(device, 64, &host, &mapped));
    ok(launch(s, k, (uint64_t[]){(uintptr_t)mapped, 1}, 2, 1, 1));
    ok(ops->stream_synchronize(s));
    ops->mapped_free(device, host);
    ops->stream_destroy(s);
    ops->kernel_destroy(k);
    return NULL;
}

// What the driver says of a capture: 1 is under way, 2 broken.
static int capture_state(CUstream native) {
    int state = -1;
    cu.capturing(native, &state);
    return state;
}

// Modes: 0 global, 1 of the thread. While a stream captures, code is loaded and dropped on this thread and on another.
START_TEST(a_capture_survives_loading_and_dropping_code) {
    find_driver();
    CUstream native = ops->stream_native(stream);
    lf_kernel *k = load("sum", sum_ptx), *dropped = load("post", post_ptx);
    lf_event *e;
    static uint64_t args[600], out;
    void *d, *host, *mapped;
    ok(ops->event_create(device, &e));
    ok(ops->memory_alloc(stream, 8, &d));
    ok(launch(stream, dropped, (uint64_t[]){(uintptr_t)d, 0}, 0, 0, 1));
    ok(ops->stream_synchronize(stream));
    args[0] = (uintptr_t)d;
    args[1] = 598;
    for (int i = 2; i < 600; i++) args[i] = 7;
    ck_assert_int_eq(cu.begin(native, _i), 0);
    ck_assert(ops->stream_capturing(stream));
    lf_stream *wrapped;
    ok(ops->stream_wrap(device, native, &wrapped));
    ok(ops->launch(wrapped,
                   &(lf_launch){.kernel = k, .args = args, .n_args = 600, .args_in_memory = true, .grid = 1, .block = 1}));
    ck_assert_int_eq(capture_state(native), 1);
    ops->kernel_destroy(dropped);
    ck_assert_int_eq(capture_state(native), 1);
    lf_kernel *fresh = load("add", add_ptx);
    ck_assert_int_eq(capture_state(native), 1);
    ops->kernel_destroy(fresh);
    ok(ops->mapped_alloc(device, 4096, &host, &mapped));
    ck_assert_int_eq(capture_state(native), 1);
    ops->mapped_free(device, host);
    ck_assert_int_eq(capture_state(native), 1);
    ok(ops->event_query(e));
    ck_assert_int_eq(capture_state(native), 1);
    pthread_t thread;
    pthread_create(&thread, NULL, load_meanwhile, NULL);
    pthread_join(thread, NULL);
    ck_assert_int_eq(capture_state(native), 1);
    ops->stream_destroy(wrapped);
    ck_assert_int_eq(capture_state(native), 1);
    CUgraph graph;
    CUgraphExec exec;
    CUcontext primary, popped;
    ck_assert_int_eq(cu.end(native, &graph), 0);
    ck_assert_int_eq(cu.retain(&primary, 0), 0);
    ck_assert_int_eq(cu.push(primary), 0);
    ck_assert_int_eq(cu.instantiate(&exec, graph, 0), 0);
    memset(args, 0, sizeof args);
    for (int replay = 0; replay < 3; replay++) {
        ok(ops->memory_fill(stream, d, 0, 8));
        ck_assert_int_eq(cu.launch(exec, native), 0);
        out = 1;
        ok(ops->memory_copy(stream, &out, d, 8, LF_COPY_DEVICE_TO_HOST));
        ok(ops->stream_synchronize(stream));
        ck_assert_uint_eq(out, 598 * 7);
    }
    cu.exec_destroy(exec);
    cu.graph_destroy(graph);
    ck_assert_int_eq(cu.pop(&popped), 0);
    cu.release(0);
    ops->memory_free(stream, d);
    ops->event_destroy(e);
    ops->kernel_destroy(k);
}
END_TEST

// ---- life

START_TEST(dropping_code_does_not_wait_for_a_busy_stream) {
    block b;
    lf_kernel *k = load("post", post_ptx);
    block_stream(&b, stream);
    double before = now();
    ops->kernel_destroy(k);
    ops->kernel_destroy(b.kernel); // it runs
    ck_assert_msg(now() - before < 5, "%g s", now() - before);
    fails_with(ops->stream_query(stream), LF_NOT_READY, "cuStreamQuery");
    unblock(&b);
    ok(ops->stream_synchronize(stream));
    ops->kernel_destroy(load("add", add_ptx)); // unloads those two
    ops->mapped_free(device, b.flag);
}
END_TEST

START_TEST(memory_stays_flat) {
    CUcontext primary, popped;
    size_t free_before = 0, free_after = 0, total;
    find_driver();
    ck_assert_int_eq(cu.retain(&primary, 0), 0);
    for (int i = 0; i < 300; i++) {
        lf_kernel *k = load("add", add_ptx);
        void *p;
        ok(ops->memory_alloc(stream, 1 << 20, &p));
        ok(launch(stream, k, (uint64_t[]){(uintptr_t)p, (uintptr_t)p, (uintptr_t)p, 1000}, 4, 4, 256));
        ops->memory_free(stream, p);
        ops->kernel_destroy(k);
        if (i % 100) continue;
        ok(ops->stream_synchronize(stream));
        cu.push(primary);
        cu.memory(i ? &free_after : &free_before, &total);
        cu.pop(&popped);
    }
    ck_assert_msg(free_before - free_after < 4 << 20 || free_after > free_before, "%zu bytes are gone",
                  free_before - free_after);
    cu.release(0);
}
END_TEST

enum { PIECES = 10000 };
static lf_kernel *shared_kernel;
static void *many_launches(void *arg) {
    lf_stream *s;
    void *p, *q;
    float one[256], sum[256];
    (void)arg;
    ok(ops->stream_create(device, &s));
    ok(ops->memory_alloc(s, sizeof sum, &p));
    ok(ops->memory_alloc(s, sizeof sum, &q));
    for (int i = 0; i < 256; i++) one[i] = (float)(uintptr_t)arg;
    ok(ops->memory_fill(s, p, 0, sizeof sum));
    ok(ops->memory_copy(s, q, one, sizeof one, LF_COPY_HOST_TO_DEVICE));
    for (int i = 0; i < PIECES; i++)
        ok(launch(s, shared_kernel, (uint64_t[]){(uintptr_t)p, (uintptr_t)p, (uintptr_t)q, 256}, 4, 1, 256));
    ok(ops->memory_copy(s, sum, p, sizeof sum, LF_COPY_DEVICE_TO_HOST));
    ok(ops->stream_synchronize(s));
    for (int i = 0; i < 256; i++) ck_assert(sum[i] == PIECES * one[i]);
    ops->memory_free(s, p);
    ops->memory_free(s, q);
    ops->stream_destroy(s);
    return NULL;
}
START_TEST(streams_and_threads_share_a_kernel) {
    pthread_t threads[4];
    shared_kernel = load("add", add_ptx);
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, many_launches, (void *)(i + 1));
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    ck_assert_uint_eq(device->stats.launches, 4 * PIECES);
    ops->kernel_destroy(shared_kernel);
}
END_TEST

START_TEST(a_forked_child_gets_a_clear_status) {
    lf_kernel *k = load("add", add_ptx);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        alarm(20);
        lf_device *again;
        lf_status s = launch(stream, k, NULL, 0, 1, 1);
        bool good = lf_status_code(s) == LF_UNAVAILABLE;
        s = lf_cuda_device_create(&lf_system_allocator, NULL, 0, &again);
        printf("a child's own device: %s\n", lf_status_message(s));
        good &= lf_status_code(s) == LF_UNAVAILABLE;
        ops->kernel_destroy(k);
        ops->stream_destroy(stream);
        ops->destroy(device);
        fflush(NULL);
        _exit(good ? 0 : 1);
    }
    int state;
    waitpid(child, &state, 0);
    ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    ok(ops->stream_synchronize(stream));
    ops->kernel_destroy(k);
}
END_TEST

START_TEST(a_faulting_kernel_is_reported) {
    lf_kernel *k = load("fault", fault_ptx);
    ok(launch(stream, k, NULL, 0, 1, 1));
    lf_status s = ops->stream_synchronize(stream);
    printf("%s\n", lf_status_message(s));
    fails_with(s, LF_DEVICE_ERROR, "CUDA_ERROR_ILLEGAL_ADDRESS");
    fails_with(launch(stream, k, NULL, 0, 1, 1), LF_DEVICE_ERROR, "a kernel that ran earlier failed");
    device->log = (lf_log){0};
    ops->kernel_destroy(k);
}
END_TEST

// ---- figures

START_TEST(figures) {
    enum { N = 2000 };
    CUcontext primary, popped;
    find_driver();
    lf_kernel *k = load("post", post_ptx), *sum = load("sum", sum_ptx);
    lf_mailbox_pool *pool;
    lf_mailbox box;
    void *p;
    ok(lf_mailbox_pool_create(device, &pool));
    ok(lf_mailbox_take(pool, &box));
    uint64_t args[] = {(uintptr_t)box.device_slot, 5};
    size_t bytes = sizeof args;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, args, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CUfunction function = ((CUfunction *)(void *)((char *)k + sizeof(lf_kernel)))[1]; // after the module
    CUstream native = ops->stream_native(stream);
    ck_assert_int_eq(cu.retain(&primary, 0), 0);
    // Checks cost more than what is measured: statuses are gathered first.
    static lf_status all[500];
    lf_launch l = {.kernel = k, .args = args, .n_args = 2, .grid = 1, .block = 1};
    for (int round = 0; round < 3; round++) {
        double t[8];
        ok(ops->stream_synchronize(stream));
        t[0] = now();
        for (int i = 0; i < 500; i++) all[i] = ops->launch(stream, &l);
        t[1] = now();
        for (int i = 0; i < 500; i++) ok(all[i]);
        ok(ops->stream_synchronize(stream));
        cu.push(primary);
        t[2] = now();
        for (int i = 0; i < 500; i++) all[i] = ops->launch(stream, &l);
        t[3] = now();
        for (int i = 0; i < 500; i++) ok(all[i]);
        ok(ops->stream_synchronize(stream));
        t[4] = now();
        for (int i = 0; i < 500; i++) cu.raw_launch(function, 1, 1, 1, 1, 1, 1, 0, native, NULL, extra);
        t[5] = now();
        ok(ops->stream_synchronize(stream));
        t[6] = now();
        for (int i = 0; i < 500; i++) {
            all[i] = ops->memory_alloc(stream, 1 << 20, &p);
            ops->memory_free(stream, p);
        }
        t[7] = now();
        for (int i = 0; i < 500; i++) ok(all[i]);
        printf("launch %.0f ns with a push, %.0f ns without; the driver's own %.0f ns; memory taken and given %.0f ns\n",
               (t[1] - t[0]) / 500 * 1e9, (t[3] - t[2]) / 500 * 1e9, (t[5] - t[4]) / 500 * 1e9, (t[7] - t[6]) / 500 * 1e9);
        ok(ops->stream_synchronize(stream));
        static uint64_t large[600];
        large[0] = (uintptr_t)box.device_slot;
        lf_launch m = {.kernel = sum, .args = large, .n_args = 600, .args_in_memory = true, .grid = 1, .block = 1};
        t[0] = now();
        for (int i = 0; i < 500; i++) all[i] = ops->launch(stream, &m);
        t[1] = now();
        for (int i = 0; i < 500; i++) ok(all[i]);
        ok(ops->stream_synchronize(stream));
        double total = 0;
        for (int i = 0; i < 500; i++) {
            lf_mailbox again = box;
            again.seen = atomic_load(&box.slot->sequence);
            double start = now();
            lf_status s = ops->launch(stream, &l);
            if (!s) s = lf_mailbox_wait(&again, &lf_system_allocator, 1000000000);
            total += now() - start;
            ok(s);
        }
        printf("launch with arguments in memory %.0f ns; launch to value on the host %.0f ns\n", (t[1] - t[0]) / 500 * 1e9,
               total / 500 * 1e9);
        cu.pop(&popped);
    }
    cu.release(0);
    ok(ops->stream_synchronize(stream));
    lf_mailbox_pool_destroy(pool);
    ops->kernel_destroy(k);
    ops->kernel_destroy(sum);
}
END_TEST

// In a process of its own: once CUDA is initialised, children cannot use it.
static bool have_gpu(void) {
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        lf_device *d;
        lf_status s = lf_cuda_device_create(&lf_system_allocator, NULL, 0, &d);
        if (s) printf("skipped: %s\n", lf_status_message(s));
        fflush(NULL);
        _exit(s != NULL);
    }
    int state;
    return waitpid(child, &state, 0) == child && WIFEXITED(state) && !WEXITSTATUS(state);
}

int main(void) {
    if (!have_gpu()) return 77;
    Suite *suite = suite_create("runtime gpu");
    TCase *t = tcase_create("device");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, vectors_are_added);
    tcase_add_test(t, a_blocked_stream_does_not_block_us);
    tcase_add_test(t, events_order_streams);
    tcase_add_test(t, callbacks_come_in_order);
    tcase_add_test(t, large_argument_blocks);
    tcase_add_test(t, much_shared_memory);
    tcase_add_test(t, the_jit_log_is_in_the_status);
    tcase_add_test(t, the_callers_context_stays_current);
    tcase_add_loop_test(t, a_capture_survives_loading_and_dropping_code, 0, 2);
    tcase_add_test(t, dropping_code_does_not_wait_for_a_busy_stream);
    tcase_add_test(t, memory_stays_flat);
    tcase_add_test(t, streams_and_threads_share_a_kernel);
    tcase_add_test(t, a_forked_child_gets_a_clear_status);
    tcase_add_test(t, a_faulting_kernel_is_reported);
    if (getenv("LFUSER_TEST_FIGURES")) tcase_add_test(t, figures);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
