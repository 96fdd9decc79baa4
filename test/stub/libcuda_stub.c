// A stand-in for the CUDA driver without a GPU: device memory is host memory, streams run everything at once, and books
// are kept of what is alive. Any call can be made to fail. A failing call does nothing, unless it releases something or
// pops the context: those do their work and still report the failure, as the driver does for errors of earlier work.
#include "test/stub/cuda_stub.h"
#include "runtime/cuda/cuda_driver.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static cuda_stub stub = {.devices = 2}; // before a reset: for tools that are counted without a GPU
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct CUctx_st {
    int device;
};
struct CUevent_st {
    bool pending;
};
struct CUstream_st {
    int unused;
};
struct CUmod_st {
    int unused;
};
struct CUmemPoolHandle_st {
    int unused;
};
static struct CUctx_st contexts[] = {{0}, {0}, {1}}; // primary of device 0, another of device 0, one of device 1
static struct CUctx_st primary_of_1 = {1};

enum { STACK = 16 };
static _Thread_local CUcontext stack[STACK];
static _Thread_local int depth, mode;
static _Thread_local bool of_test; // the thread that the books on threads are about

EXPORT cuda_stub_reset_fn cuda_stub_reset;
EXPORT cuda_stub_make_current_fn cuda_stub_make_current;
#define LF_CUDA_FN(name, symbol, need, params) EXPORT CUresult stub_##name params __asm__(symbol);
#include "runtime/cuda/cuda_driver.def"
#undef LF_CUDA_FN

cuda_stub *cuda_stub_reset(void) {
    memset(&stub, 0, sizeof stub);
    stub.devices = 2;
    mode = 0;
    of_test = true;
    return &stub;
}

void cuda_stub_make_current(int context) {
    depth = 0;
    if (context) stack[depth++] = &contexts[context];
    stub.stack = depth;
}

enum { MOST_SITES = 512 };
static struct {
    const char *name;
    void *from;
    bool failed;
} sites[MOST_SITES];

// Lock held.
static void note_site(const char *name, void *from, bool failed) {
    size_t i = 0, failures = 0, n = 0;
    while (i < MOST_SITES - 1 && sites[i].from && sites[i].from != from) i++;
    sites[i].name = name;
    sites[i].from = from;
    sites[i].failed |= failed;
    memset(stub.unhit, 0, sizeof stub.unhit);
    for (i = 0; i < MOST_SITES && sites[i].from; i++) {
        failures += sites[i].failed;
        if (!sites[i].failed && n < sizeof stub.unhit / sizeof *stub.unhit) stub.unhit[n++] = sites[i].name;
    }
    stub.sites = i;
    stub.sites_failed = failures;
}

// The result that this call shall have before it does anything.
static CUresult enter(const char *name, void *from) {
    pthread_mutex_lock(&lock);
    stub.calls++;
    long after = stub.calls - stub.fail_at;
    bool fail = stub.fail_at && after >= 0 && after < 32 && (after == 0 || stub.fail_also >> after & 1);
    if (fail && !stub.failed) stub.failed = name;
    note_site(name, from, fail);
    pthread_mutex_unlock(&lock);
    return fail ? stub.fail_with : CUDA_SUCCESS;
}
// For calls that a thread not in relaxed mode may not make while there is a capture.
static CUresult enter_unsafe(const char *name, void *from) {
    if (stub.capturing && mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
        stub.capture_broken = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return enter(name, from);
}
#define ENTER(name)                                                                                                         \
    do {                                                                                                                    \
        CUresult entered = enter(name, __builtin_return_address(0));                                                        \
        if (entered) return entered;                                                                                        \
    } while (0)
#define ENTER_UNSAFE(name)                                                                                                  \
    do {                                                                                                                    \
        CUresult entered = enter_unsafe(name, __builtin_return_address(0));                                                 \
        if (entered) return entered;                                                                                        \
    } while (0)
#define NEED_CONTEXT                                                                                                        \
    do {                                                                                                                    \
        if (!depth) return 201;                                                                                             \
    } while (0)

static void add(long *count, long by) {
    pthread_mutex_lock(&lock);
    *count += by;
    pthread_mutex_unlock(&lock);
}

static bool is_captured(CUstream stream) { return stub.capturing && (!stub.captured || stub.captured == stream); }

// ---- the driver and its devices

CUresult stub_cuInit(unsigned flags) {
    (void)flags;
    ENTER("cuInit");
    return stub.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
CUresult stub_cuDriverGetVersion(int *out_version) {
    ENTER("cuDriverGetVersion");
    *out_version = stub.no_early ? 12020 : 12080;
    return CUDA_SUCCESS;
}
CUresult stub_cuGetErrorName(CUresult result, const char **out_name) {
    static const struct {
        int code;
        const char *name;
    } names[] = {
        {2, "CUDA_ERROR_OUT_OF_MEMORY"},
        {100, "CUDA_ERROR_NO_DEVICE"},
        {201, "CUDA_ERROR_INVALID_CONTEXT"},
        {218, "CUDA_ERROR_INVALID_PTX"},
        {500, "CUDA_ERROR_NOT_FOUND"},
        {600, "CUDA_ERROR_NOT_READY"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {801, "CUDA_ERROR_NOT_SUPPORTED"},
        {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == result) {
            *out_name = names[i].name;
            return CUDA_SUCCESS;
        }
    *out_name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult stub_cuGetErrorString(CUresult result, const char **out_text) {
    (void)result;
    *out_text = "as the test wants it";
    return CUDA_SUCCESS;
}
CUresult stub_cuDeviceGetCount(int *out_count) {
    ENTER("cuDeviceGetCount");
    *out_count = stub.devices;
    return CUDA_SUCCESS;
}
CUresult stub_cuDeviceGet(CUdevice *out_device, int ordinal) {
    ENTER("cuDeviceGet");
    *out_device = ordinal;
    return CUDA_SUCCESS;
}
CUresult stub_cuDeviceGetName(char *out_name, int bytes, CUdevice device) {
    (void)device;
    ENTER("cuDeviceGetName");
    strncpy(out_name, "Stub", (size_t)bytes);
    return CUDA_SUCCESS;
}
CUresult stub_cuDeviceGetAttribute(int *out_value, CUdevice_attribute which, CUdevice device) {
    (void)device;
    ENTER("cuDeviceGetAttribute");
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out_value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *out_value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *out_value = 132; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *out_value = 2048; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *out_value = 233472; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *out_value = 65536; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *out_value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *out_value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *out_value = 232448; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *out_value = !stub.no_pools; break;
    }
    return CUDA_SUCCESS;
}
CUresult stub_cuDeviceTotalMem(size_t *out_bytes, CUdevice device) {
    (void)device;
    ENTER("cuDeviceTotalMem");
    *out_bytes = (size_t)80 << 30;
    return CUDA_SUCCESS;
}

// ---- contexts

CUresult stub_cuDevicePrimaryCtxRetain(CUcontext *out_context, CUdevice device) {
    ENTER("cuDevicePrimaryCtxRetain");
    add(&stub.primary_refs, 1);
    *out_context = device ? &primary_of_1 : &contexts[0];
    return CUDA_SUCCESS;
}
CUresult stub_cuDevicePrimaryCtxRelease(CUdevice device) {
    (void)device;
    add(&stub.primary_refs, -1);
    return enter("cuDevicePrimaryCtxRelease", __builtin_return_address(0));
}
CUresult stub_cuCtxGetCurrent(CUcontext *out_context) {
    ENTER("cuCtxGetCurrent");
    *out_context = depth ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}
CUresult stub_cuCtxGetDevice(CUdevice *out_device) {
    ENTER("cuCtxGetDevice");
    NEED_CONTEXT;
    *out_device = stack[depth - 1]->device;
    return CUDA_SUCCESS;
}
CUresult stub_cuCtxPushCurrent(CUcontext context) {
    ENTER("cuCtxPushCurrent");
    if (depth == STACK) return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = context;
    if (of_test) stub.stack = depth;
    return CUDA_SUCCESS;
}
CUresult stub_cuCtxPopCurrent(CUcontext *out_context) {
    NEED_CONTEXT;
    *out_context = stack[--depth];
    if (of_test) stub.stack = depth;
    return enter("cuCtxPopCurrent", __builtin_return_address(0));
}

// ---- streams and events

CUresult stub_cuStreamCreate(CUstream *out_stream, unsigned flags) {
    ENTER("cuStreamCreate");
    NEED_CONTEXT;
    if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    *out_stream = malloc(sizeof **out_stream);
    add(&stub.streams, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuStreamDestroy(CUstream stream) {
    free(stream);
    add(&stub.streams, -1);
    return enter("cuStreamDestroy", __builtin_return_address(0));
}
CUresult stub_cuStreamSynchronize(CUstream stream) {
    if (is_captured(stream)) stub.capture_broken = true;
    ENTER_UNSAFE("cuStreamSynchronize");
    add(&stub.syncs, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuStreamQuery(CUstream stream) {
    if (is_captured(stream)) stub.capture_broken = true;
    ENTER_UNSAFE("cuStreamQuery");
    return stub.blocked ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult stub_cuStreamGetCtx(CUstream stream, CUcontext *out_context) {
    ENTER("cuStreamGetCtx");
    // Numbers below 100 stand for streams that the test did not make: those from 50 on are another context's.
    *out_context = (uintptr_t)stream < 100 && (uintptr_t)stream >= 50 ? &contexts[2] : stack[depth - 1];
    return CUDA_SUCCESS;
}
CUresult stub_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    (void)stream, (void)event, (void)flags;
    ENTER("cuStreamWaitEvent");
    return CUDA_SUCCESS;
}
CUresult stub_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out_status) {
    ENTER("cuStreamIsCapturing");
    *out_status = (CUstreamCaptureStatus)is_captured(stream);
    return CUDA_SUCCESS;
}
CUresult stub_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *exchanged) {
    ENTER("cuThreadExchangeStreamCaptureMode");
    int before = mode;
    mode = (int)*exchanged;
    if (of_test) stub.mode = mode;
    *exchanged = (CUstreamCaptureMode)before;
    add(&stub.exchanges, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuLaunchHostFunc(CUstream stream, void (*fn)(void *arg), void *arg) {
    (void)stream;
    ENTER("cuLaunchHostFunc");
    fn(arg);
    return CUDA_SUCCESS;
}
CUresult stub_cuEventCreate(CUevent *out_event, unsigned flags) {
    ENTER("cuEventCreate");
    NEED_CONTEXT;
    if (flags & ~(unsigned)CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_VALUE;
    *out_event = calloc(1, sizeof **out_event);
    add(&stub.events, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuEventDestroy(CUevent event) {
    free(event);
    add(&stub.events, -1);
    return enter("cuEventDestroy", __builtin_return_address(0));
}
CUresult stub_cuEventRecord(CUevent event, CUstream stream) {
    (void)stream;
    ENTER("cuEventRecord");
    event->pending = stub.blocked;
    return CUDA_SUCCESS;
}
CUresult stub_cuEventQuery(CUevent event) {
    ENTER_UNSAFE("cuEventQuery");
    return event->pending && stub.blocked ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult stub_cuEventSynchronize(CUevent event) {
    (void)event;
    ENTER_UNSAFE("cuEventSynchronize");
    add(&stub.syncs, 1);
    return CUDA_SUCCESS;
}

CUresult stub_cuEventElapsedTime(float *out_ms, CUevent from, CUevent to) {
    ENTER("cuEventElapsedTime");
    if (!from || !to) return CUDA_ERROR_INVALID_VALUE;
    *out_ms = 1;
    return CUDA_SUCCESS;
}

// ---- memory

CUresult stub_cuMemPoolCreate(CUmemoryPool *out_pool, const CUmemPoolProps *props) {
    ENTER_UNSAFE("cuMemPoolCreate");
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    *out_pool = malloc(sizeof **out_pool);
    add(&stub.pools, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuMemPoolDestroy(CUmemoryPool pool) {
    free(pool);
    add(&stub.pools, -1);
    return enter("cuMemPoolDestroy", __builtin_return_address(0));
}
CUresult stub_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value) {
    (void)pool, (void)which, (void)value;
    ENTER("cuMemPoolSetAttribute");
    return CUDA_SUCCESS;
}
CUresult stub_cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep) {
    (void)pool, (void)bytes_to_keep;
    ENTER_UNSAFE("cuMemPoolTrimTo");
    return CUDA_SUCCESS;
}
CUresult stub_cuMemAllocFromPoolAsync(CUdeviceptr *out_pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    (void)stream;
    ENTER("cuMemAllocFromPoolAsync");
    if (!pool || !bytes) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > (size_t)1 << 40) return CUDA_ERROR_OUT_OF_MEMORY;
    *out_pointer = (uintptr_t)aligned_alloc(512, (bytes + 511) / 512 * 512);
    add(&stub.device_blocks, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    (void)stream;
    free((void *)(uintptr_t)pointer);
    add(&stub.device_blocks, -1);
    return enter("cuMemFreeAsync", __builtin_return_address(0));
}
CUresult stub_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    (void)stream;
    ENTER("cuMemcpyHtoDAsync");
    memcpy((void *)(uintptr_t)to, from, bytes);
    return CUDA_SUCCESS;
}
CUresult stub_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    (void)stream;
    ENTER("cuMemcpyDtoHAsync");
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}
CUresult stub_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    (void)stream;
    ENTER("cuMemcpyDtoDAsync");
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}
CUresult stub_cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream) {
    (void)stream;
    ENTER("cuMemsetD8Async");
    memset((void *)(uintptr_t)to, byte, bytes);
    return CUDA_SUCCESS;
}
CUresult stub_cuMemHostAlloc(void **out_host, size_t bytes, unsigned flags) {
    ENTER_UNSAFE("cuMemHostAlloc");
    NEED_CONTEXT;
    if (!(flags & CU_MEMHOSTALLOC_PORTABLE)) return CUDA_ERROR_INVALID_VALUE;
    *out_host = malloc(bytes);
    add(&stub.host_blocks, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuMemHostGetDevicePointer(CUdeviceptr *out_pointer, void *host, unsigned flags) {
    (void)flags;
    ENTER("cuMemHostGetDevicePointer");
    *out_pointer = (uintptr_t)host;
    return CUDA_SUCCESS;
}
CUresult stub_cuMemFreeHost(void *host) {
    if (stub.capturing && mode != CU_STREAM_CAPTURE_MODE_RELAXED) stub.capture_broken = true;
    free(host);
    add(&stub.host_blocks, -1);
    return enter("cuMemFreeHost", __builtin_return_address(0));
}
CUresult stub_cuPointerGetAttributes(unsigned count, CUpointer_attribute *which, void **out_values, CUdeviceptr pointer) {
    ENTER("cuPointerGetAttributes");
    for (unsigned i = 0; i < count; i++) {
        // 0x1…: on device 1; 0x2…: managed; else the host's.
        if (which[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            *(unsigned *)out_values[i] = pointer >> 60 ? CU_MEMORYTYPE_DEVICE : 0;
        if (which[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED) *(bool *)out_values[i] = pointer >> 60 == 2;
        if (which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *(int *)out_values[i] = (int)(pointer >> 60 == 1);
    }
    return CUDA_SUCCESS;
}

// ---- code

CUresult stub_cuModuleLoadDataEx(CUmodule *out_module, const void *image, unsigned n_options, CUjit_option *options,
                                 void **values) {
    ENTER_UNSAFE("cuModuleLoadDataEx");
    NEED_CONTEXT;
    if (!strncmp(image, "broken", 6)) {
        for (unsigned i = 0; i < n_options; i++)
            if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
                strcpy(values[i], "ptxas application ptx input, line 7; error   : it is broken");
        return 218;
    }
    bool cubin = !strncmp(image, "\177ELF", 4);
    if (cubin && stub.no_cubins) return 209;
    add(cubin ? &stub.cubins_loaded : &stub.ptx_loaded, 1);
    *out_module = malloc(sizeof **out_module);
    add(&stub.modules, 1);
    return CUDA_SUCCESS;
}
struct CUlinkState_st {
    char cubin[64];
    size_t size;
    char *errors;
};
CUresult stub_cuLinkCreate(unsigned n_options, CUjit_option *options, void **values, CUlinkState *out_state) {
    ENTER("cuLinkCreate");
    NEED_CONTEXT;
    if (stub.no_linker) return CUDA_ERROR_NOT_SUPPORTED;
    *out_state = calloc(1, sizeof **out_state);
    for (unsigned i = 0; i < n_options; i++)
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) (*out_state)->errors = values[i];
    add(&stub.links, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name,
                            unsigned n_options, CUjit_option *options, void **values) {
    (void)type, (void)name, (void)n_options, (void)options, (void)values;
    ENTER("cuLinkAddData");
    if (((char *)data)[bytes - 1]) return CUDA_ERROR_INVALID_VALUE; // text ends with its NUL
    if (!strncmp(data, "broken", 6)) {
        strcpy(state->errors, "ptxas application ptx input, line 7; error   : it is broken");
        return 218;
    }
    state->size = (size_t)snprintf(state->cubin, sizeof state->cubin, "\177ELF of %zu bytes of PTX", bytes);
    return CUDA_SUCCESS;
}
CUresult stub_cuLinkComplete(CUlinkState state, void **out_cubin, size_t *out_bytes) {
    ENTER("cuLinkComplete");
    *out_cubin = state->cubin;
    *out_bytes = state->size;
    add(&stub.linked, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuLinkDestroy(CUlinkState state) {
    free(state);
    add(&stub.links, -1);
    return enter("cuLinkDestroy", __builtin_return_address(0));
}
CUresult stub_cuModuleUnload(CUmodule module) {
    if (stub.capturing && mode != CU_STREAM_CAPTURE_MODE_RELAXED) stub.capture_broken = true;
    free(module);
    add(&stub.modules, -1);
    add(&stub.unloads, 1);
    return enter("cuModuleUnload", __builtin_return_address(0));
}
CUresult stub_cuModuleGetFunction(CUfunction *out_function, CUmodule module, const char *name) {
    ENTER("cuModuleGetFunction");
    if (!strcmp(name, "missing")) return 500;
    *out_function = (CUfunction)(void *)module;
    return CUDA_SUCCESS;
}
CUresult stub_cuFuncLoad(CUfunction function) {
    (void)function;
    ENTER("cuFuncLoad");
    return CUDA_SUCCESS;
}
CUresult stub_cuFuncGetAttribute(int *out_value, CUfunction_attribute which, CUfunction function) {
    (void)function, (void)which;
    ENTER("cuFuncGetAttribute");
    *out_value = 1024;
    return CUDA_SUCCESS;
}
CUresult stub_cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
    (void)function, (void)which;
    ENTER("cuFuncSetAttribute");
    return value <= 232448 - 1024 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult launch(const CUlaunchConfig *c, void **extra) {
    NEED_CONTEXT;
    if (c->gridDimY != 1 || c->gridDimZ != 1 || c->blockDimY != 1 || c->blockDimZ != 1) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    stub.launches++;
    stub.early_launches += c->numAttrs;
    stub.grid = c->gridDimX;
    stub.block = c->blockDimX;
    stub.shared = c->sharedMemBytes;
    stub.stream = c->hStream;
    const void *args = NULL;
    stub.args_bytes = 0;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) args = extra[1];
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) stub.args_bytes = *(size_t *)extra[1];
    }
    if (args && stub.args_bytes <= sizeof stub.args) memcpy(stub.args, args, stub.args_bytes);
    pthread_mutex_unlock(&lock);
    if (stub.on_launch) stub.on_launch(args, stub.args_bytes);
    return CUDA_SUCCESS;
}
CUresult stub_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **params,
                             void **extra) {
    (void)function, (void)params;
    ENTER("cuLaunchKernel");
    return launch(&(CUlaunchConfig){grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0}, extra);
}
// Of attributes only the one that is used: the kernel may begin early.
CUresult stub_cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **params, void **extra) {
    (void)function, (void)params;
    ENTER("cuLaunchKernelEx");
    if (stub.no_early || c->numAttrs != 1 || c->attrs[0].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
        c->attrs[0].value.number != 1)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(c, extra);
}

// ---- graphs: nodes in the order in which they were added; a launch runs them at once

enum { MOST_NODES = 64 };
struct CUgraphNode_st {
    bool clears;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS clear;
    size_t bytes;
    unsigned char args[4096];
};
struct CUgraph_st {
    int n;
    struct CUgraphNode_st nodes[MOST_NODES];
    CUgraphNode handles[MOST_NODES]; // of the graph that this one was made from: how its nodes are named
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
};

static void copy_kernel(struct CUgraphNode_st *to, const CUDA_KERNEL_NODE_PARAMS *params) {
    to->kernel = *params;
    to->bytes = *(size_t *)params->extra[3];
    if (to->bytes <= sizeof to->args) memcpy(to->args, params->extra[1], to->bytes);
}

CUresult stub_cuGraphCreate(CUgraph *out_graph, unsigned flags) {
    (void)flags;
    ENTER("cuGraphCreate");
    *out_graph = calloc(1, sizeof **out_graph);
    add(&stub.graphs, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuGraphDestroy(CUgraph graph) {
    free(graph);
    add(&stub.graphs, -1);
    return enter("cuGraphDestroy", __builtin_return_address(0));
}
static CUresult add_node(CUgraphNode *out_node, CUgraph graph, const CUgraphNode *after, size_t n_after) {
    if (graph->n == MOST_NODES || n_after != (graph->n > 0) || (n_after && *after != &graph->nodes[graph->n - 1]))
        return CUDA_ERROR_INVALID_VALUE;
    *out_node = graph->handles[graph->n] = &graph->nodes[graph->n];
    graph->n++;
    return CUDA_SUCCESS;
}
CUresult stub_cuGraphAddKernelNode(CUgraphNode *out_node, CUgraph graph, const CUgraphNode *after, size_t n_after,
                                   const CUDA_KERNEL_NODE_PARAMS *params) {
    ENTER("cuGraphAddKernelNode");
    CUresult r = add_node(out_node, graph, after, n_after);
    if (!r) copy_kernel(*out_node, params);
    return r;
}
CUresult stub_cuGraphAddMemsetNode(CUgraphNode *out_node, CUgraph graph, const CUgraphNode *after, size_t n_after,
                                   const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context) {
    ENTER("cuGraphAddMemsetNode");
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    CUresult r = add_node(out_node, graph, after, n_after);
    if (!r) (*out_node)->clears = true, (*out_node)->clear = *params;
    return r;
}
CUresult stub_cuGraphInstantiateWithFlags(CUgraphExec *out_exec, CUgraph graph, unsigned long long flags) {
    (void)flags;
    ENTER("cuGraphInstantiateWithFlags");
    *out_exec = malloc(sizeof **out_exec);
    (*out_exec)->graph = *graph;
    add(&stub.graph_execs, 1);
    add(&stub.graphs_made, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuGraphExecDestroy(CUgraphExec exec) {
    free(exec);
    add(&stub.graph_execs, -1);
    return enter("cuGraphExecDestroy", __builtin_return_address(0));
}
static struct CUgraphNode_st *find_node(CUgraphExec exec, CUgraphNode node) {
    if (!stub.graphs) return NULL; // the nodes went with their graph
    for (int i = 0; i < exec->graph.n; i++)
        if (exec->graph.handles[i] == node) return &exec->graph.nodes[i];
    return NULL;
}
CUresult stub_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
    ENTER("cuGraphExecKernelNodeSetParams");
    struct CUgraphNode_st *found = find_node(exec, node);
    if (!found || found->clears) return CUDA_ERROR_INVALID_VALUE;
    copy_kernel(found, params);
    add(&stub.parameters_set, 1);
    return CUDA_SUCCESS;
}
CUresult stub_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params,
                                             CUcontext context) {
    (void)context;
    ENTER("cuGraphExecMemsetNodeSetParams");
    struct CUgraphNode_st *found = find_node(exec, node);
    if (!found || !found->clears) return CUDA_ERROR_INVALID_VALUE;
    found->clear = *params;
    return CUDA_SUCCESS;
}
CUresult stub_cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    ENTER("cuGraphLaunch");
    add(&stub.graph_launches, 1);
    for (int i = 0; i < exec->graph.n; i++) {
        struct CUgraphNode_st *n = &exec->graph.nodes[i];
        if (n->clears) {
            memset((void *)(uintptr_t)n->clear.dst, (int)n->clear.value, n->clear.width * n->clear.height);
            continue;
        }
        stub.stream = stream;
        stub.grid = n->kernel.gridDimX;
        if (stub.on_launch) stub.on_launch(n->args, n->bytes);
    }
    return CUDA_SUCCESS;
}
