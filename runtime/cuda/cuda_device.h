// What the files of the CUDA device share.
//
// Every call of the table makes the device's context current for its duration and leaves the caller's as it was. Calls
// that the driver forbids while any thread captures a graph (loading, pinning, asking an event) are made in relaxed capture
// mode, so that they disturb no capture. The lock is never taken on the path of a launch.
#ifndef LF_RUNTIME_CUDA_DEVICE_H
#define LF_RUNTIME_CUDA_DEVICE_H
#include "runtime/cuda/cuda_status.h"
#include "runtime/device.h"
#include "runtime/thread.h"

typedef struct lf_cuda_device lf_cuda_device;
typedef struct lf_cuda_stream lf_cuda_stream;
typedef struct lf_cuda_kernel lf_cuda_kernel;
typedef struct lf_cuda_mark lf_cuda_mark;
typedef struct lf_cuda_args_page lf_cuda_args_page;

struct lf_cuda_stream {
    lf_stream base;
    CUstream stream;
    bool wrapped;
    lf_cuda_stream *next; // device's lock
};

struct lf_cuda_kernel {
    lf_kernel base;
    CUmodule module; // owned
    CUfunction function;
    // Of a destroyed kernel whose module is still loaded; device's lock.
    lf_cuda_kernel *next;
    bool marked;        // every mark that it must wait for has been made
    uint64_t last_mark; // the number of the last of them
};

struct lf_cuda_device {
    lf_device base;
    lf_cuda_driver cu;
    lf_dylib *lib; // owned, never unloaded: the driver has threads
    lf_forkmark fork;
    CUdevice device;
    CUcontext context;
    bool retained; // the primary context, to be released
    bool overlaps; // a kernel may begin before the one before it in the stream has ended, if it says so (lf_launch.follows)
    CUmemoryPool pool;    // owned
    pthread_mutex_t lock; // all below
    lf_cuda_stream *streams;
    lf_cuda_kernel *dead; // destroyed, module still loaded
    lf_cuda_mark *marks;  // points in streams that must pass before a dead module is unloaded
    uint64_t n_marks;     // ever made
    lf_cuda_args_page *args_pages;
};

// ---- entering and leaving
typedef struct lf_cuda_scope {
    bool pushed;
} lf_cuda_scope;

lf_status lf_cuda_enter_slowly(lf_cuda_device *d, lf_cuda_scope *scope);

static inline lf_status lf_cuda_enter(lf_cuda_device *d, lf_cuda_scope *scope) {
    scope->pushed = false;
    CUcontext current = NULL;
    if (!lf_forked(&d->fork) && d->cu.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == d->context) return NULL;
    return lf_cuda_enter_slowly(d, scope);
}
static inline void lf_cuda_leave(lf_cuda_device *d, const lf_cuda_scope *scope) {
    CUcontext ours;
    if (scope->pushed) d->cu.cuCtxPopCurrent(&ours);
}

// Relaxed capture mode of the calling thread, and back.
typedef struct lf_cuda_relaxed {
    CUstreamCaptureMode before;
    bool changed;
} lf_cuda_relaxed;
static inline lf_cuda_relaxed lf_cuda_relax(lf_cuda_device *d) {
    lf_cuda_relaxed r = {CU_STREAM_CAPTURE_MODE_RELAXED, false};
    r.changed = d->cu.cuThreadExchangeStreamCaptureMode(&r.before) == CUDA_SUCCESS;
    return r;
}
static inline void lf_cuda_unrelax(lf_cuda_device *d, lf_cuda_relaxed r) {
    if (r.changed) d->cu.cuThreadExchangeStreamCaptureMode(&r.before);
}

static inline lf_status lf_cuda_check(lf_cuda_device *d, CUresult result, const char *call) {
    return result == CUDA_SUCCESS ? NULL : lf_cuda_status(&d->cu, d->base.allocator, result, call);
}
// For calls whose failure has nowhere to go but the log.
void lf_cuda_report(lf_cuda_device *d, CUresult result, const char *call);

static inline CUstream lf_cuda_stream_of(lf_stream *stream) { return ((lf_cuda_stream *)stream)->stream; }

// ---- cuda_stream.c
bool lf_cuda_is_capturing(lf_cuda_device *d, CUstream stream);
lf_status lf_cuda_stream_create(lf_device *device, lf_stream **out_stream);
lf_status lf_cuda_stream_wrap(lf_device *device, void *native, lf_stream **out_stream);
void *lf_cuda_stream_native(lf_stream *stream);
void lf_cuda_stream_destroy(lf_stream *stream);
lf_status lf_cuda_stream_synchronize(lf_stream *stream);
lf_status lf_cuda_stream_query(lf_stream *stream);
lf_status lf_cuda_stream_wait_event(lf_stream *stream, lf_event *event);
lf_status lf_cuda_stream_callback(lf_stream *stream, void (*fn)(void *arg), void *arg);
bool lf_cuda_stream_capturing(lf_stream *stream);
lf_status lf_cuda_event_create(lf_device *device, lf_event **out_event);
lf_status lf_cuda_event_record(lf_event *event, lf_stream *stream);
lf_status lf_cuda_event_query(lf_event *event);
lf_status lf_cuda_event_wait(lf_event *event);
void lf_cuda_event_destroy(lf_event *event);

// ---- cuda_memory.c
lf_status lf_cuda_pool_create(lf_cuda_device *d);
lf_status lf_cuda_memory_alloc(lf_stream *stream, size_t bytes, void **out_pointer);
void lf_cuda_memory_free(lf_stream *stream, void *pointer);
lf_status lf_cuda_memory_copy(lf_stream *stream, void *to, const void *from, size_t bytes, lf_copy_kind kind);
lf_status lf_cuda_memory_fill(lf_stream *stream, void *to, uint8_t byte, size_t bytes);
lf_status lf_cuda_memory_where(lf_device *device, const void *pointer, int *out_type, int *out_ordinal);
lf_status lf_cuda_mapped_alloc(lf_device *device, size_t bytes, void **out_host, void **out_device);
void lf_cuda_mapped_free(lf_device *device, void *host);
// The block of device memory itself, context entered.
lf_status lf_cuda_take_memory(lf_cuda_device *d, CUstream stream, size_t bytes, CUdeviceptr *out_pointer);
// Pinned memory for argument blocks on their way to the device.
void lf_cuda_args_finish(lf_cuda_device *d, bool entered);
lf_status lf_cuda_args_send(lf_cuda_device *d, CUstream stream, const void *args, size_t bytes, CUdeviceptr *out_pointer);

// ---- cuda_kernel.c
lf_status lf_cuda_kernel_load(lf_device *device, const lf_image *image, lf_kernel **out_kernel);
void lf_cuda_kernel_destroy(lf_kernel *kernel);
lf_status lf_cuda_image_link(lf_device *device, const lf_image *ptx, void **out_cubin, size_t *out_size);
lf_status lf_cuda_launch(lf_stream *stream, const lf_launch *launch);
// cuda_graph.c
lf_status lf_cuda_replay(lf_stream *stream, lf_replay **io_replay, const lf_launch *launches, uint32_t n, bool *out_done);
void lf_cuda_replay_destroy(lf_replay *replay);
// A stream's handle goes while it may still run kernels of ours. Lock held, context entered.
void lf_cuda_mark_stream(lf_cuda_device *d, CUstream stream);
// At the end. `entered` false: the context cannot be had, only our own memory is freed.
void lf_cuda_unload_all(lf_cuda_device *d, bool entered);
#endif
