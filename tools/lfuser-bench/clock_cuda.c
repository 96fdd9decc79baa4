// Time on a CUDA device, by events of a stream of our own. The driver's functions come from the runtime's list.
#include "bench.h"
#include "runtime/cuda/cuda_driver.h"
#include <stdlib.h>

enum { CLEAR_BYTES = 256 << 20 };

typedef struct cuda_clock {
    bench_clock base;
    lf_cuda_driver cu;
    lf_dylib *lib;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUmemoryPool pool;
    CUevent from, to;
    CUdeviceptr scratch;
    unsigned char byte;
} cuda_clock;

static void check(cuda_clock *c, CUresult result, const char *call) {
    const char *name = NULL;
    if (result == CUDA_SUCCESS) return;
    c->cu.cuGetErrorName(result, &name);
    bench_die("%s: %s (%d)", call, name ? name : "unknown error", result);
}
#define CHECK(call, ...) check(c, c->cu.call(__VA_ARGS__), #call)

// The clearing write keeps the device busy while the host prepares the launch, so that the events hold no host time.
static double between(cuda_clock *c, void (*fn)(void *arg), void *arg, int runs) {
    float ms = 0;
    CHECK(cuMemsetD8Async, c->scratch, ++c->byte, CLEAR_BYTES, c->stream);
    CHECK(cuEventRecord, c->from, c->stream);
    for (int i = 0; i < runs; i++) fn(arg);
    CHECK(cuEventRecord, c->to, c->stream);
    CHECK(cuEventSynchronize, c->to);
    CHECK(cuEventElapsedTime, &ms, c->from, c->to);
    return ms;
}

static double cuda_time(bench_clock *clock, void (*fn)(void *arg), void *arg) {
    return between((cuda_clock *)clock, fn, arg, 1);
}

// Without the first one, which finds the caches cleared.
static double cuda_in_a_row(bench_clock *clock, void (*fn)(void *arg), void *arg, int runs) {
    cuda_clock *c = (cuda_clock *)clock;
    return (between(c, fn, arg, runs + 1) - between(c, fn, arg, 1)) / runs;
}

typedef struct copy {
    cuda_clock *clock;
    CUdeviceptr to, from;
    uint64_t bytes;
} copy;

static void do_copy(void *arg) {
    copy *w = arg;
    cuda_clock *c = w->clock;
    CHECK(cuMemcpyDtoDAsync, w->to, w->from, w->bytes, c->stream);
}

// Random data here too: what a memory does with zeros is its secret.
static double cuda_copy(bench_clock *clock, uint64_t bytes, int runs) {
    cuda_clock *c = (cuda_clock *)clock;
    copy w = {c, 0, 0, bytes};
    if (!bytes) return 0;
    CHECK(cuMemAllocFromPoolAsync, &w.from, bytes, c->pool, c->stream);
    CHECK(cuMemAllocFromPoolAsync, &w.to, bytes, c->pool, c->stream);
    uint64_t part = bytes < 64 << 20 ? bytes : 64 << 20;
    void *random = bench_alloc(part);
    bench_fill(LFUSER_U8, 256, 1, random, part);
    for (uint64_t at = 0; at < bytes; at += part)
        CHECK(cuMemcpyHtoDAsync, w.from + at, random, bytes - at < part ? bytes - at : part, c->stream);
    do_copy(&w);
    CHECK(cuStreamSynchronize, c->stream);
    double *times = bench_alloc((size_t)runs * sizeof *times);
    for (int i = 0; i < runs; i++) times[i] = between(c, do_copy, &w, 1);
    double ms = bench_median(times, runs);
    free(times);
    CHECK(cuMemFreeAsync, w.from, c->stream);
    CHECK(cuMemFreeAsync, w.to, c->stream);
    CHECK(cuStreamSynchronize, c->stream);
    free(random);
    return ms;
}

static void cuda_close(bench_clock *clock) {
    cuda_clock *c = (cuda_clock *)clock;
    CUcontext ours;
    CHECK(cuStreamSynchronize, c->stream);
    CHECK(cuMemFreeAsync, c->scratch, c->stream);
    CHECK(cuStreamSynchronize, c->stream);
    CHECK(cuEventDestroy, c->from);
    CHECK(cuEventDestroy, c->to);
    CHECK(cuMemPoolDestroy, c->pool);
    CHECK(cuStreamDestroy, c->stream);
    CHECK(cuCtxPopCurrent, &ours);
    CHECK(cuDevicePrimaryCtxRelease, c->device);
    lf_dylib_close(c->lib, 0);
    free(c);
}

bench_clock *bench_clock_cuda(int ordinal, void **out_native_stream) {
    cuda_clock *c = bench_alloc(sizeof *c);
    int count = 0;
    c->base = (bench_clock){cuda_time, cuda_in_a_row, cuda_copy, cuda_close};
    lf_status s = lf_cuda_driver_open(&lf_system_allocator, &c->cu, &c->lib);
    if (s) bench_die("%s", lf_status_message(s));
    if (!c->cu.cuEventElapsedTime) bench_die("the driver has no cuEventElapsedTime");
    CHECK(cuInit, 0);
    CHECK(cuDeviceGetCount, &count);
    if (ordinal < 0 || ordinal >= count) bench_die("cuda:%d: the driver has %d devices", ordinal, count);
    CHECK(cuDeviceGet, &c->device, ordinal);
    CHECK(cuDevicePrimaryCtxRetain, &c->context, c->device);
    CHECK(cuCtxPushCurrent, c->context);
    CHECK(cuStreamCreate, &c->stream, CU_STREAM_NON_BLOCKING);
    CHECK(cuEventCreate, &c->from, 0);
    CHECK(cuEventCreate, &c->to, 0);
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal}};
    CHECK(cuMemPoolCreate, &c->pool, &props);
    CHECK(cuMemAllocFromPoolAsync, &c->scratch, CLEAR_BYTES, c->pool, c->stream);
    *out_native_stream = c->stream;
    return &c->base;
}
