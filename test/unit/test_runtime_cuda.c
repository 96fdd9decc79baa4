// The CUDA device against a driver that only keeps books (test/stub): what is called, what every failing call leads to,
// contexts, capture, and that nothing is left behind. A real GPU is in test_runtime_gpu.c.
#include "runtime/cuda/cuda_driver.h"
#include "runtime/mailbox.h"
#include "test/stub/find_stub.h"
#include "test/unit/test_runtime.h"
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

// What the stub hands out is counted by the stub; some of it is lost on purpose, where a context cannot be had any more.
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libcuda_stub\n"; }

// ---- helpers

static counting heap;

static char logged[4096];
static void keep_log(void *self, lf_log_level level, const char *message) {
    (void)self, (void)level;
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", message);
}
static const lf_log log_to = {NULL, keep_log, LF_LOG_DEBUG};

static lf_device *device;
static const lf_device_ops *ops;
static lf_stream *stream;

static void setup(void) {
    counting_init(&heap);
    stub = reset_stub();
    make_current(0);
    logged[0] = 0;
    ok(lf_cuda_device_create(&heap.allocator, &log_to, 0, &device));
    ops = device->ops;
    ok(ops->stream_create(device, &stream));
}
static void nothing_left(const char *when) {
    ck_assert_int_eq(stub->links, 0);
    ck_assert_msg(!stub->streams && !stub->events && !stub->modules && !stub->pools && !stub->device_blocks &&
                      !stub->host_blocks && !stub->primary_refs,
                  "%s: left %ld streams, %ld events, %ld modules, %ld pools, %ld blocks, %ld host blocks, %ld contexts",
                  when, stub->streams, stub->events, stub->modules, stub->pools, stub->device_blocks, stub->host_blocks,
                  stub->primary_refs);
    ck_assert_msg(!heap.live, "%s: %ld host allocations are left", when, (long)heap.live);
}
static void teardown(void) {
    ops->stream_destroy(stream);
    ops->destroy(device);
    nothing_left("at the end");
    ck_assert_int_eq(stub->stack, 0);
    ck_assert_int_eq(stub->mode, 0);
    ck_assert(!stub->capture_broken);
}

static lf_kernel *load(void) {
    lf_kernel *k;
    ok(ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "k", .data = "ptx"}, &k));
    return k;
}

// ---- creation

START_TEST(what_the_device_says) {
    ck_assert_str_eq(device->info.target, "cuda:sm_90");
    ck_assert_str_eq(device->info.description, "Stub, 81920 MiB");
    ck_assert_uint_eq(device->info.processors, 132);
    ck_assert_uint_eq(device->info.max_block, 1024);
    ck_assert_uint_eq(device->info.max_shared, 232448);
    ck_assert_uint_eq(device->info.driver_version, 12080);
    ck_assert_int_eq(device->type, LF_DEVICE_CUDA);
    ck_assert_str_eq(ops->name, "cuda");
}
END_TEST

START_TEST(no_driver_is_a_status) {
    lf_device *none;
    setenv("LFUSER_LIBCUDA", "/no/such/libcuda.so", 1);
    fails_with(lf_cuda_device_create(&heap.allocator, NULL, 0, &none), LF_UNAVAILABLE, "/no/such/libcuda.so");
    ck_assert_ptr_null(none);
    setenv("LFUSER_LIBCUDA", "libm.so.6", 1);
    fails_with(lf_cuda_device_create(&heap.allocator, NULL, 0, &none), LF_UNAVAILABLE,
               "libm.so.6 has no cuInit: the driver is too old");
    ck_assert_int_eq(heap.live, 0);
    setenv("LFUSER_LIBCUDA", stub_path, 1);
    stub = reset_stub();
    fails_with(lf_cuda_device_create(&heap.allocator, NULL, 2, &none), LF_UNAVAILABLE,
               "there is no CUDA device 2: the driver knows 2");
    fails_with(lf_cuda_device_create(&heap.allocator, NULL, -1, &none), LF_UNAVAILABLE, "there is no CUDA device -1");
    stub->no_pools = true;
    fails_with(lf_cuda_device_create(&heap.allocator, NULL, 0, &none), LF_UNAVAILABLE,
               "Stub offers no stream-ordered memory");
    stub->devices = 0;
    fails_with(lf_cuda_device_create(&heap.allocator, NULL, 0, &none), LF_UNAVAILABLE, "cuInit: CUDA_ERROR_NO_DEVICE (100)");
    nothing_left("no device");
}
END_TEST

// ---- contexts

// 0: none current; 1: the caller has a context of this GPU; 2: one of another GPU.
START_TEST(the_callers_context_stays_current) {
    stub = reset_stub();
    make_current(_i);
    int before = stub->stack;
    lf_kernel *k;
    void *p;
    ok(lf_cuda_device_create(&heap.allocator, NULL, 0, &device));
    ck_assert_int_eq(stub->primary_refs, _i != 1);
    ops = device->ops;
    ok(ops->stream_create(device, &stream));
    k = load();
    ok(ops->memory_alloc(stream, 100, &p));
    ok(ops->launch(stream, &(lf_launch){.kernel = k, .args = (uint64_t[]){7}, .n_args = 1, .grid = 3, .block = 32}));
    ck_assert_int_eq(stub->stack, before);
    // The device goes on with the context it began with, whatever becomes current.
    make_current(2);
    ok(ops->launch(stream, &(lf_launch){.kernel = k, .grid = 3, .block = 32}));
    ck_assert_int_eq(stub->stack, 1);
    make_current(_i);
    ops->memory_free(stream, p);
    ops->kernel_destroy(k);
    ops->stream_destroy(stream);
    ops->destroy(device);
    ck_assert_int_eq(stub->stack, before);
    nothing_left("contexts");
}
END_TEST

// ---- every call that can fail, in turn

// Everything that a device can do. The first failure that a status reports is returned; the rest still runs.
static void keep_first(lf_status *first, lf_status s) {
    if (*first)
        lf_status_destroy(s);
    else
        *first = s;
}
static void called(void *arg) { ++*(int *)arg; }

static lf_status whole_life(void) {
    lf_device *d;
    lf_stream *s = NULL, *w = NULL;
    lf_event *e = NULL;
    lf_kernel *k = NULL, *l = NULL;
    void *p = NULL, *host, *mapped;
    char bytes[64] = "bytes";
    int type, ordinal, calls = 0;
    lf_mailbox_pool *mail = NULL;
    lf_mailbox box = {0};
    static const uint64_t args[600] = {1, 2, 3};
    lf_status r = lf_cuda_device_create(&heap.allocator, &log_to, 0, &d);
    if (!d) return r;
    keep_first(&r, d->ops->stream_create(d, &s));
    keep_first(&r, d->ops->stream_wrap(d, (void *)(uintptr_t)16, &w));
    keep_first(&r, d->ops->event_create(d, &e));
    keep_first(&r, d->ops->kernel_load(d, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "k", .data = "ptx"}, &k));
    keep_first(&r,
               d->ops->kernel_load(d, &(lf_image){.kind = LF_IMAGE_CUBIN, .entry = "l", .data = "\177ELF", .size = 4}, &l));
    void *cubin;
    size_t cubin_size;
    keep_first(&r, d->ops->image_link(d, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "n", .data = "ptx", .size = 4}, &cubin,
                                      &cubin_size));
    lf_free(&heap.allocator, cubin);
    keep_first(&r, d->ops->mapped_alloc(d, 100, &host, &mapped));
    if (host) ck_assert_int_eq(*(char *)host, 0);
    keep_first(&r, d->ops->memory_where(d, bytes, &type, &ordinal));
    keep_first(&r, lf_mailbox_pool_create(d, &mail));
    if (mail) keep_first(&r, lf_mailbox_take(mail, &box));
    if (s && e) {
        keep_first(&r, d->ops->memory_alloc(s, sizeof bytes, &p));
        if (p) {
            keep_first(&r, d->ops->memory_fill(s, p, 1, sizeof bytes));
            keep_first(&r, d->ops->memory_copy(s, p, bytes, sizeof bytes, LF_COPY_HOST_TO_DEVICE));
            keep_first(&r, d->ops->memory_copy(s, p, p, sizeof bytes, LF_COPY_DEVICE_TO_DEVICE));
            keep_first(&r, d->ops->memory_copy(s, bytes, p, sizeof bytes, LF_COPY_DEVICE_TO_HOST));
        }
        if (k)
            keep_first(&r, d->ops->launch(s, &(lf_launch){.kernel = k, .args = args, .n_args = 3, .grid = 1, .block = 1}));
        if (l)
            keep_first(&r,
                       d->ops->launch(
                           s, &(lf_launch){
                                  .kernel = l, .args = args, .n_args = 600, .args_in_memory = true, .grid = 1, .block = 1}));
        (void)d->ops->stream_capturing(s);
        keep_first(&r, d->ops->event_record(e, s));
        keep_first(&r, d->ops->stream_wait_event(s, e));
        keep_first(&r, d->ops->stream_callback(s, called, &calls));
        keep_first(&r, d->ops->event_query(e));
        keep_first(&r, d->ops->event_wait(e));
        keep_first(&r, d->ops->stream_query(s));
        keep_first(&r, d->ops->stream_synchronize(s));
        d->ops->memory_free(s, p);
    }
    if (mail) lf_mailbox_give(mail, &box);
    lf_mailbox_pool_destroy(mail);
    d->ops->mapped_free(d, host);
    d->ops->kernel_destroy(k);
    stub->blocked = true; // so that unloading is put off
    for (int i = 0; i < 2; i++, stub->blocked = false) {
        keep_first(&r, d->ops->kernel_load(d, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "m", .data = "ptx"}, &k));
        d->ops->kernel_destroy(k);
    }
    d->ops->kernel_destroy(l);
    d->ops->event_destroy(e);
    d->ops->stream_destroy(w);
    d->ops->stream_destroy(s);
    d->ops->destroy(d);
    return r;
}

// With `exact` set, which has vectors ask for each element.
START_TEST(each_allocation_fails) {
    long told = 0, n = 0;
    heap.allocator.exact = true;
    for (long k = 0; k <= n; k++) { // 0: none
        stub = reset_stub();
        make_current(0);
        heap.calls = 0;
        heap.fail_at = k;
        heap.lasting = !heap.lasting;
        lf_status s = whole_life();
        heap.fail_at = 0;
        if (!k) n = heap.calls;
        ck_assert_msg(!s || (k && lf_status_code(s) == LF_OUT_OF_MEMORY), "allocation %ld of %ld fails: %s", k, n,
                      lf_status_message(s));
        told += s != NULL;
        lf_status_destroy(s);
        nothing_left("when an allocation fails");
    }
    printf("each of %ld host allocations failed, %ld told by a status\n", n, told);
    ck_assert_int_gt(told, 10);
}
END_TEST

static lf_code expected_code(int result) {
    switch (result) {
    case 2: return LF_OUT_OF_MEMORY;
    case 100: return LF_UNAVAILABLE;
    case 600: return LF_NOT_READY;
    case 801: return LF_UNSUPPORTED;
    case 900: return LF_CAPTURE_ERROR;
    default: return LF_DEVICE_ERROR;
    }
}

// Failures of these have nobody to be told but the log, or are made good at once.
static bool may_be_silent(const char *call, int result) {
    static const char *const calls[] = {"cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode",
                                        "cuCtxGetCurrent",     "cuCtxPushCurrent",
                                        "cuCtxPopCurrent",     "cuStreamQuery",
                                        "cuEventQuery",        "cuEventCreate",
                                        "cuEventRecord",       "cuStreamSynchronize"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(call, calls[i])) return true;
    return strstr(call, "Destroy") || strstr(call, "Free") || strstr(call, "Unload") || strstr(call, "Release") ||
           (result == 2 && !strcmp(call, "cuMemAllocFromPoolAsync"));
}

START_TEST(every_failing_call_is_a_status_and_leaves_nothing) {
    static const int results[] = {2, 100, 400, 600, 700, 801, 900, 999};
    int result = results[_i];
    stub = reset_stub();
    make_current(0);
    ok(whole_life());
    nothing_left("when nothing fails");
    long calls = stub->calls;
    ck_assert_int_gt(calls, 80);
    int told = 0;
    for (long k = 1; k <= calls; k++) {
        stub = reset_stub();
        make_current(0);
        logged[0] = 0;
        stub->fail_at = k;
        stub->fail_with = result;
        lf_status s = whole_life();
        char when[200];
        snprintf(when, sizeof when, "call %ld, %s, gave %d", k, stub->failed, result);
        if (s) {
            const char *text = lf_status_message(s);
            ck_assert_msg(lf_status_code(s) == expected_code(result), "%s: %s: %s", when, lf_code_name(lf_status_code(s)),
                          text);
            ck_assert_msg(!strncmp(text, stub->failed, strlen(stub->failed)), "%s: %s", when, text);
            ck_assert_msg((strstr(text, "a kernel that ran earlier failed") != NULL) == (result == 700), "%s: %s", when,
                          text);
            told++;
        } else {
            ck_assert_msg(may_be_silent(stub->failed, result), "%s, and nobody was told", when);
        }
        lf_status_destroy(s);
        // A push that fails in a void function leaves nothing that could free things.
        if (strcmp(stub->failed, "cuCtxPushCurrent")) nothing_left(when);
        ck_assert_msg(!heap.live, "%s: %ld host allocations are left", when, (long)heap.live);
        ck_assert_msg(stub->stack == 0, "%s: %d contexts are left on the stack", when, stub->stack);
        if (strcmp(stub->failed, "cuThreadExchangeStreamCaptureMode")) ck_assert_int_eq(stub->mode, 0);
    }
    ck_assert_int_gt(told, 50);
    // What cleans up after a failure fails as well: it is still a status, and nothing of ours is left. Until no call is new.
    long both = 0;
    for (unsigned also = 3; also < 16 && stub->sites_failed < stub->sites; also += 2)
        for (long k = 1; k <= calls; k++, both++) {
            stub = reset_stub();
            make_current(0);
            stub->fail_at = k;
            stub->fail_also = also;
            stub->fail_with = result;
            lf_status s = whole_life();
            ck_assert_msg(!s || lf_status_code(s) == expected_code(result), "calls %ld and %#x after it fail: %s", k, also,
                          lf_status_message(s));
            lf_status_destroy(s);
            ck_assert_msg(!heap.live, "calls %ld and %#x after it fail: %ld host allocations are left", k, also,
                          (long)heap.live);
        }
    printf(
        "driver result %d: each of %ld calls failed once, %d told by a status; %ld times several in a row; %zu of %zu call "
        "sites hit\n",
        result, calls, told, both, stub->sites_failed, stub->sites);
    for (size_t i = 0; i < sizeof stub->unhit / sizeof *stub->unhit && stub->unhit[i]; i++)
        printf("not failed: a call of %s\n", stub->unhit[i]);
    fflush(stdout);
    // One may be left: the event of a mark that is still there when the device ends (lf_cuda_unload_all). Many calls lie between it and
    // the failure that leads there; what it says is not looked at.
    ck_assert_uint_ge(stub->sites_failed + 1, stub->sites);
}
END_TEST

// ---- launching

START_TEST(arguments_reach_the_kernel) {
    lf_kernel *k = load();
    uint64_t args[] = {11, 22, 33};
    ok(ops->launch(stream, &(lf_launch){.kernel = k, .args = args, .n_args = 3, .grid = 7, .block = 128, .shared = 100000}));
    ck_assert_uint_eq(stub->args_bytes, sizeof args);
    ck_assert_mem_eq(stub->args, args, sizeof args);
    ck_assert_uint_eq(stub->grid, 7);
    ck_assert_uint_eq(stub->block, 128);
    ck_assert_uint_eq(stub->shared, 100000);
    ck_assert_ptr_eq(stub->stream, ops->stream_native(stream));
    ok(ops->launch(stream, &(lf_launch){.kernel = k, .args = args, .n_args = 3, .grid = 0, .block = 128}));
    ck_assert_int_eq(stub->launches, 1);
    ck_assert_uint_eq(device->stats.launches, 1);
    fails_with(ops->launch(stream, &(lf_launch){.kernel = k, .grid = 2147483648u, .block = 1}), LF_INVALID_ARGUMENT,
               "a grid of 2147483648 blocks; at most 2147483647 can be launched");
    fails_with(ops->launch(stream, &(lf_launch){.kernel = k, .grid = 1, .block = 1025}), LF_INVALID_ARGUMENT,
               "a block of 1025 threads; cuda:sm_90 takes 1 to 1024");
    fails_with(ops->launch(stream, &(lf_launch){.kernel = k, .grid = 1, .block = 0}), LF_INVALID_ARGUMENT,
               "a block of 0 threads");
    fails_with(ops->launch(stream, &(lf_launch){.kernel = k, .grid = 1, .block = 1, .shared = 300000}), LF_INVALID_ARGUMENT,
               "300000 bytes of shared memory a block; cuda:sm_90 has 232448");
    ck_assert_int_eq(stub->launches, 1);
    ops->kernel_destroy(k);
}
END_TEST

static uint64_t seen_sum;
static void sum_block(const void *args, size_t bytes) {
    ck_assert_uint_eq(bytes, 8);
    const uint64_t *block = *(const uint64_t *const *)args;
    seen_sum = 0;
    for (int i = 0; i < 2000; i++) seen_sum += block[i];
}

START_TEST(large_argument_blocks_go_through_memory) {
    lf_kernel *k = load();
    static uint64_t args[2000];
    lf_launch l = {.kernel = k, .args = args, .n_args = 2000, .args_in_memory = true, .grid = 1, .block = 1};
    stub->on_launch = sum_block;
    for (uint64_t round = 0; round < 500; round++) {
        // While the stream is blocked no slot of pinned memory may be used twice.
        stub->blocked = round >= 100 && round < 300;
        uint64_t sum = 0;
        for (int i = 0; i < 2000; i++) sum += args[i] = round * 3 + (uint64_t)i;
        ok(ops->launch(stream, &l));
        ck_assert_uint_eq(seen_sum, sum);
        ck_assert_int_eq(stub->device_blocks, 0);
        if (round == 99) ck_assert_int_eq(stub->host_blocks, 1);
        if (round == 299) ck_assert_int_eq(stub->host_blocks, 7); // 200 slots of 32 a page
    }
    ck_assert_int_eq(stub->host_blocks, 7);
    // What a capture has recorded is read again by each replay.
    stub->capturing = true;
    for (int i = 0; i < 224; i++) ok(ops->launch(stream, &l));
    stub->capturing = false;
    ck_assert_int_eq(stub->host_blocks, 7);
    ok(ops->launch(stream, &l));
    ck_assert_int_eq(stub->host_blocks, 8);
    ops->kernel_destroy(k);
}
END_TEST

START_TEST(the_launch_path_calls_little) {
    lf_kernel *k = load();
    lf_launch l = {.kernel = k, .args = (uint64_t[]){1}, .n_args = 1, .grid = 1, .block = 1};
    long before = stub->calls;
    ok(ops->launch(stream, &l));
    ck_assert_int_eq(stub->calls - before, 4); // current?, push, launch, pop
    make_current(1);
    lf_device *mine;
    lf_stream *s;
    lf_kernel *k2;
    ok(lf_cuda_device_create(&heap.allocator, NULL, 0, &mine));
    ok(ops->stream_create(mine, &s));
    ok(ops->kernel_load(mine, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "k", .data = "ptx"}, &k2));
    l.kernel = k2;
    before = stub->calls;
    long allocations = heap.live;
    ok(ops->launch(s, &l));
    ck_assert_int_eq(stub->calls - before, 2); // current?, launch
    ck_assert_int_eq(heap.live, allocations);
    fails_with(ops->launch(stream, &l), LF_INVALID_ARGUMENT, "the kernel and the stream belong to different devices");
    ops->kernel_destroy(k2);
    ops->stream_destroy(s);
    ops->destroy(mine);
    make_current(0);
    ops->kernel_destroy(k);
}
END_TEST

// ---- code

START_TEST(the_jit_log_is_in_the_status) {
    lf_kernel *k;
    fails_with(ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "fused_3", .data = "broken"}, &k),
               LF_DEVICE_ERROR,
               "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): as the test wants it\n"
               "while loading kernel fused_3\n"
               "ptxas application ptx input, line 7; error   : it is broken");
    ck_assert_ptr_null(k);
    fails_with(ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "missing", .data = "ptx"}, &k),
               LF_DEVICE_ERROR, "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)");
    ck_assert_int_eq(stub->modules, 0);
    fails_with(ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_NATIVE, .entry = "k", .address = &k}, &k),
               LF_UNSUPPORTED, "kernel k: a GPU does not run native code");
    fails_with(
        ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "k", .data = "ptx", .shared_bytes = 232449}, &k),
        LF_UNSUPPORTED, "kernel k needs 232449 bytes of shared memory; cuda:sm_90 has 232448");
}
END_TEST

START_TEST(linking_gives_a_cubin) {
    lf_image ptx = {.kind = LF_IMAGE_PTX, .entry = "fused_3", .data = "ptx", .size = 4};
    void *cubin;
    size_t size;
    ok(ops->image_link(device, &ptx, &cubin, &size));
    ck_assert_mem_eq(cubin, "\177ELF", 4);
    lf_kernel *k;
    ok(ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_CUBIN, .entry = "fused_3", .data = cubin, .size = size}, &k));
    ck_assert_int_eq(stub->cubins_loaded, 1);
    ops->kernel_destroy(k);
    lf_free(&heap.allocator, cubin);
    fails_with(ops->image_link(device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "fused_3", .data = "broken", .size = 7},
                               &cubin, &size),
               LF_DEVICE_ERROR,
               "cuLinkAddData: CUDA_ERROR_INVALID_PTX (218): as the test wants it\n"
               "while linking kernel fused_3\n"
               "ptxas application ptx input, line 7; error   : it is broken");
    ck_assert_ptr_null(cubin);
    stub->no_linker = true;
    lf_status s = ops->image_link(device, &ptx, &cubin, &size);
    ck_assert(s && !cubin);
    lf_status_destroy(s);
    ck_assert_int_eq(stub->links, 0);
}
END_TEST

START_TEST(unloading_waits_for_the_streams_without_blocking) {
    lf_kernel *a = load(), *b;
    lf_stream *other;
    ok(ops->stream_wrap(device, NULL, &other));
    stub->blocked = true;
    long calls = stub->calls;
    ops->kernel_destroy(a);
    ck_assert_int_eq(stub->calls, calls); // unloading waits for the GPU: left to the next load, which does so too
    ops->stream_destroy(other);
    b = load();
    ck_assert_int_eq(stub->unloads, 0);
    ops->kernel_destroy(b);
    stub->blocked = false;
    b = load();
    ck_assert_int_eq(stub->unloads, 2);
    ck_assert_int_eq(stub->events, 0);
    ck_assert_int_eq(stub->syncs, 0);
    ops->kernel_destroy(b);
    for (int i = 0; i < 1000; i++) {
        ops->kernel_destroy(load());
        ck_assert_int_le(stub->modules, 2);
    }
}
END_TEST

// ---- capture

START_TEST(nothing_breaks_a_capture) {
    lf_kernel *a = load(), *b;
    lf_event *e;
    void *host, *mapped, *p;
    ok(ops->event_create(device, &e));
    ck_assert(!ops->stream_capturing(stream));
    stub->capturing = true;
    ck_assert(ops->stream_capturing(stream));
    ok(ops->launch(stream, &(lf_launch){.kernel = a, .grid = 1, .block = 1}));
    ops->kernel_destroy(a);
    b = load();
    ck_assert_int_eq(stub->unloads, 0);
    ok(ops->mapped_alloc(device, 64, &host, &mapped));
    ops->mapped_free(device, host);
    ok(ops->memory_alloc(stream, 64, &p));
    ops->memory_free(stream, p);
    ok(ops->event_query(e));
    ok(ops->event_wait(e));
    stub->captured = ops->stream_native(stream); // another stream lives and dies meanwhile
    lf_stream *other;
    ok(ops->stream_create(device, &other));
    ok(ops->launch(other, &(lf_launch){.kernel = b, .grid = 1, .block = 1}));
    ok(ops->stream_query(other));
    ok(ops->stream_synchronize(other));
    ops->stream_destroy(other);
    ck_assert(!stub->capture_broken);
    stub->capturing = false;
    ops->kernel_destroy(b);
    b = load();
    ck_assert_int_eq(stub->unloads, 2);
    ops->kernel_destroy(b);
    ops->event_destroy(e);
}
END_TEST

// ---- the rest

START_TEST(whose_memory) {
    int type, ordinal;
    ok(ops->memory_where(device, NULL, &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_CPU);
    ok(ops->memory_where(device, &type, &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_CPU);
    ck_assert_int_eq(ordinal, 0);
    ok(ops->memory_where(device, (void *)((uintptr_t)1 << 60), &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_CUDA);
    ck_assert_int_eq(ordinal, 1);
    ok(ops->memory_where(device, (void *)((uintptr_t)2 << 60), &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_CUDA);
    ck_assert_int_eq(ordinal, 0);
}
END_TEST

START_TEST(streams_of_others) {
    lf_stream *s;
    fails_with(ops->stream_wrap(device, (void *)(uintptr_t)50, &s), LF_INVALID_ARGUMENT, "belongs to another CUDA context");
    ck_assert_ptr_null(s);
    ok(ops->stream_wrap(device, NULL, &s));
    ck_assert_ptr_null(ops->stream_native(s));
    ops->stream_destroy(s);
    ck_assert_int_eq(stub->streams, 1);
    ck_assert_int_eq(stub->syncs, 0);
    lf_device *cpu;
    lf_event *e;
    ok(lf_cpu_device_create(&heap.allocator, NULL, 1, &cpu));
    ok(cpu->ops->event_create(cpu, &e));
    fails_with(ops->stream_wait_event(stream, e), LF_INVALID_ARGUMENT, "an event of device cpu cannot be used on cuda");
    fails_with(ops->event_record(e, stream), LF_INVALID_ARGUMENT, "different devices");
    cpu->ops->event_destroy(e);
    cpu->ops->destroy(cpu);
}
END_TEST

START_TEST(allocation_failure_names_the_size) {
    void *p;
    fails_with(ops->memory_alloc(stream, (size_t)1 << 50, &p), LF_OUT_OF_MEMORY,
               "while allocating 1125899906842624 bytes on CUDA device 0");
    ck_assert_ptr_null(p);
    ok(ops->memory_alloc(stream, 0, &p));
    ck_assert_ptr_null(p);
}
END_TEST

START_TEST(a_forked_child_gets_a_clear_status) {
    lf_kernel *k = load();
    lf_event *e;
    ok(ops->event_create(device, &e));
    long calls = stub->calls;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        void *p;
        lf_status s = ops->launch(stream, &(lf_launch){.kernel = k, .grid = 1, .block = 1});
        bool good = lf_status_code(s) == LF_UNAVAILABLE && strstr(lf_status_message(s), "a forked child cannot use it");
        lf_status_destroy(s);
        s = ops->memory_alloc(stream, 10, &p);
        good &= lf_status_code(s) == LF_UNAVAILABLE;
        lf_status_destroy(s);
        good &= !ops->stream_capturing(stream);
        ops->memory_free(stream, &p);
        ops->event_destroy(e);
        ops->kernel_destroy(k);
        ops->stream_destroy(stream);
        ops->destroy(device);
        _exit(good && stub->calls == calls && !heap.live ? 0 : 1);
    }
    int state;
    waitpid(child, &state, 0);
    ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    ops->event_destroy(e);
    ops->kernel_destroy(k);
}
END_TEST

static void *load_and_launch(void *arg) {
    lf_stream *s;
    (void)arg;
    ok(ops->stream_create(device, &s));
    for (int i = 0; i < 500; i++) {
        lf_kernel *k = load();
        static const uint64_t args[600];
        void *p;
        ok(ops->memory_alloc(s, 100, &p));
        ok(ops->launch(
            s, &(lf_launch){.kernel = k, .args = args, .n_args = 600, .args_in_memory = i % 2, .grid = 1, .block = 1}));
        ops->memory_free(s, p);
        ops->kernel_destroy(k);
    }
    ops->stream_destroy(s);
    return NULL;
}
START_TEST(many_threads) {
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, load_and_launch, NULL);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    ck_assert_uint_eq(device->stats.launches, 3000);
}
END_TEST

int main(void) {
    counting_init(&heap);
    if (!find_stub()) {
        printf("skipped: there is no stub driver at %s\n", stub_path);
        return 77;
    }
    setenv("LFUSER_LIBCUDA", stub_path, 1);
    Suite *suite = suite_create("runtime cuda");
    TCase *t = tcase_create("device");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, what_the_device_says);
    tcase_add_test(t, arguments_reach_the_kernel);
    tcase_add_test(t, large_argument_blocks_go_through_memory);
    tcase_add_test(t, the_launch_path_calls_little);
    tcase_add_test(t, the_jit_log_is_in_the_status);
    tcase_add_test(t, linking_gives_a_cubin);
    tcase_add_test(t, unloading_waits_for_the_streams_without_blocking);
    tcase_add_test(t, nothing_breaks_a_capture);
    tcase_add_test(t, whose_memory);
    tcase_add_test(t, streams_of_others);
    tcase_add_test(t, allocation_failure_names_the_size);
    tcase_add_test(t, a_forked_child_gets_a_clear_status);
    tcase_add_test(t, many_threads);
    suite_add_tcase(suite, t);
    TCase *alone = tcase_create("creation");
    tcase_set_timeout(alone, 120);
    tcase_add_test(alone, no_driver_is_a_status);
    tcase_add_loop_test(alone, the_callers_context_stays_current, 0, 3);
    tcase_add_test(alone, each_allocation_fails);
    tcase_add_loop_test(alone, every_failing_call_is_a_status_and_leaves_nothing, 0, 8);
    suite_add_tcase(suite, alone);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
