// What the driver alone needs for the work that the host benchmarks do: launches, a graph of them, a launch whose result the host
// polls. Measured like ours and in the same run, so that what is above it is ours.
#include "bench.h"
#include "runtime/cuda/cuda_driver.h"
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 31, ARGS = 16, SEGMENTS = 12, TRIES = 201 };

// `empty` takes as many arguments as our kernels do; `deliver` writes a value and then a sequence number, as our mailboxes want it.
static const char ptx[] = ".version 6.3\n.target sm_70\n.address_size 64\n"
                          ".visible .entry empty(.param .align 8 .b8 args[128]) { ret; }\n"
                          ".visible .entry deliver(.param .align 8 .b8 args[128]) {\n"
                          "  .reg .b64 %rd<3>;\n  .reg .b32 %r<2>;\n"
                          "  ld.param.u64 %rd1, [args];\n  cvta.to.global.u64 %rd1, %rd1;\n  ld.param.u32 %r1, [args+8];\n"
                          "  st.global.u32 [%rd1], %r1;\n  fence.acq_rel.sys;\n  st.relaxed.sys.global.u32 [%rd1+16], %r1;\n"
                          "  ret;\n}\n";

typedef struct bare {
    lf_cuda_driver cu;
    lf_dylib *lib;
    CUstream stream;
    CUmodule module;
    CUfunction empty, deliver;
    CUgraph graph;
    CUgraphExec exec;
    uint64_t args[ARGS];
} bare;

static void check(bare *b, CUresult result, const char *call) {
    const char *name = NULL;
    if (result == CUDA_SUCCESS) return;
    b->cu.cuGetErrorName(result, &name);
    bench_die("%s: %s (%d)", call, name ? name : "unknown error", result);
}
#define CHECK(call, ...) check(b, b->cu.call(__VA_ARGS__), #call)

static void launch(bare *b, CUfunction function) {
    size_t bytes = sizeof b->args;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, b->args, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel, function, 1, 1, 1, 64, 1, 1, 0, b->stream, NULL, extra);
}

static void one_launch(bare *b) { launch(b, b->empty); }
static void some_launches(bare *b) {
    for (int i = 0; i < SEGMENTS; i++) launch(b, b->empty);
}
static void one_graph(bare *b) { CHECK(cuGraphLaunch, b->exec, b->stream); }

static double now_us(void) { return bench_now_ms() * 1e3; }

// As `steady` in host.c.
static double steady(bare *b, void (*fn)(bare *), int calls) {
    double times[BATCHES];
    for (int i = 0; i < 20; i++) fn(b);
    CHECK(cuStreamSynchronize, b->stream);
    for (int i = 0; i < BATCHES; i++) {
        double start = now_us();
        for (int k = 0; k < calls; k++) fn(b);
        times[i] = (now_us() - start) / calls;
        CHECK(cuStreamSynchronize, b->stream);
    }
    return bench_median(times, BATCHES);
}

static void make_graph(bare *b) {
    size_t bytes = sizeof b->args;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, b->args, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CUDA_KERNEL_NODE_PARAMS params = {b->empty, 1, 1, 1, 64, 1, 1, 0, NULL, extra};
    CUgraphNode before = NULL, node;
    CHECK(cuGraphCreate, &b->graph, 0);
    for (int i = 0; i < SEGMENTS; i++, before = node) CHECK(cuGraphAddKernelNode, &node, b->graph, &before, i > 0, &params);
    CHECK(cuGraphInstantiateWithFlags, &b->exec, b->graph, 0);
}

// From the launch to the value in the host's hands: no library could be quicker with one launch.
static double mailbox(bare *b) {
    double times[TRIES];
    void *host;
    CUdeviceptr device;
    CHECK(cuMemHostAlloc, &host, 64, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    CHECK(cuMemHostGetDevicePointer, &device, host, 0);
    memset(host, 0, 64);
    b->args[0] = device;
    volatile uint32_t *words = host;
    for (uint32_t i = 0; i < TRIES; i++) {
        b->args[1] = i + 1;
        double start = now_us();
        launch(b, b->deliver);
        while (__atomic_load_n(&words[4], __ATOMIC_ACQUIRE) != i + 1)
            if (now_us() - start > 1e6) bench_die("a kernel's word has not arrived within a second");
        times[i] = now_us() - start;
        if (words[0] != i + 1) bench_die("the mailbox has %u, not %u", words[0], i + 1);
    }
    CHECK(cuStreamSynchronize, b->stream);
    CHECK(cuMemFreeHost, host);
    return bench_median(times, TRIES);
}

void bench_bare_cuda(bench_bare *out) {
    bare *b = bench_alloc(sizeof *b);
    lf_status s = lf_cuda_driver_open(&lf_system_allocator, &b->cu, &b->lib);
    if (s) bench_die("%s", lf_status_message(s));
    CHECK(cuStreamCreate, &b->stream, CU_STREAM_NON_BLOCKING);
    CHECK(cuModuleLoadDataEx, &b->module, ptx, 0, NULL, NULL);
    CHECK(cuModuleGetFunction, &b->empty, b->module, "empty");
    CHECK(cuModuleGetFunction, &b->deliver, b->module, "deliver");
    out->launch = steady(b, one_launch, 200);
    out->launches = steady(b, some_launches, 24);
    if (b->cu.cuGraphCreate && b->cu.cuGraphLaunch) {
        make_graph(b);
        out->graph = steady(b, one_graph, 100);
        CHECK(cuGraphExecDestroy, b->exec);
        CHECK(cuGraphDestroy, b->graph);
    }
    out->mailbox = mailbox(b);
    CHECK(cuModuleUnload, b->module);
    CHECK(cuStreamDestroy, b->stream);
    lf_dylib_close(b->lib, 0);
    free(b);
}
