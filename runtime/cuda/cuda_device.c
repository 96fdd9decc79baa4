// An NVIDIA GPU as a device: finding it, whose context is used, and the table of its operations.
#include "runtime/cuda/cuda_device.h"
#include <stdio.h>
#include <string.h>

// ---- entering

static lf_status forked_status(lf_cuda_device *d) {
    return lf_error(d->base.allocator, LF_UNAVAILABLE,
                    "CUDA device %d was opened before this process was forked; a forked child cannot use it",
                    d->base.ordinal);
}

lf_status lf_cuda_enter_slowly(lf_cuda_device *d, lf_cuda_scope *scope) {
    if (lf_forked(&d->fork)) return forked_status(d);
    LF_TRY(lf_cuda_check(d, d->cu.cuCtxPushCurrent(d->context), "cuCtxPushCurrent"));
    scope->pushed = true;
    return NULL;
}

void lf_cuda_report(lf_cuda_device *d, CUresult result, const char *call) {
    if (result == CUDA_SUCCESS) return;
    lf_status s = lf_cuda_check(d, result, call);
    lf_log_write(&d->base.log, LF_LOG_WARNING, "%s", lf_status_message(s));
    lf_status_destroy(s);
}

// ---- creation

static lf_status find_device(lf_cuda_device *d) {
    int count = 0;
    LF_TRY(lf_cuda_check(d, d->cu.cuInit(0), "cuInit"));
    LF_TRY(lf_cuda_check(d, d->cu.cuDeviceGetCount(&count), "cuDeviceGetCount"));
    if (d->base.ordinal < 0 || d->base.ordinal >= count)
        return lf_error(d->base.allocator, LF_UNAVAILABLE, "there is no CUDA device %d: the driver knows %d",
                        d->base.ordinal, count);
    return lf_cuda_check(d, d->cu.cuDeviceGet(&d->device, d->base.ordinal), "cuDeviceGet");
}

static lf_status attribute(lf_cuda_device *d, CUdevice_attribute which, int *out_value) {
    *out_value = 0;
    return lf_cuda_check(d, d->cu.cuDeviceGetAttribute(out_value, which, d->device), "cuDeviceGetAttribute");
}

enum { PORTABLE_CLUSTER = 8 };

static lf_status describe(lf_cuda_device *d) {
    lf_device_info *info = &d->base.info;
    int major, minor, processors, threads, registers, block, shared, all_shared, version = 0, pools;
    char name[96] = "";
    size_t bytes = 0;
    LF_TRY(attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major));
    LF_TRY(attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor));
    LF_TRY(attribute(d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &processors));
    LF_TRY(attribute(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &threads));
    LF_TRY(attribute(d, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &registers));
    LF_TRY(attribute(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &block));
    LF_TRY(attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared));
    if (!shared) LF_TRY(attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &shared));
    LF_TRY(attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &all_shared));
    LF_TRY(attribute(d, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &pools));
    LF_TRY(lf_cuda_check(d, d->cu.cuDriverGetVersion(&version), "cuDriverGetVersion"));
    LF_TRY(lf_cuda_check(d, d->cu.cuDeviceGetName(name, (int)sizeof name, d->device), "cuDeviceGetName"));
    LF_TRY(lf_cuda_check(d, d->cu.cuDeviceTotalMem(&bytes, d->device), "cuDeviceTotalMem"));
    name[sizeof name - 1] = 0;
    if (!pools) return lf_error(d->base.allocator, LF_UNAVAILABLE, "%s offers no stream-ordered memory", name);
    snprintf(info->target, sizeof info->target, "cuda:sm_%d%d", major, minor);
    snprintf(info->description, sizeof info->description, "%s, %zu MiB", name, bytes >> 20);
    info->processors = (uint32_t)processors;
    info->threads_a_processor = (uint32_t)threads;
    info->registers_a_processor = (uint32_t)registers;
    info->shared_a_processor = (uint32_t)all_shared;
    info->max_block = (uint32_t)block;
    info->max_cluster = major >= 9 ? PORTABLE_CLUSTER : 0;
    info->max_shared = (uint32_t)shared;
    info->driver_version = (uint32_t)version;
    info->memory_bytes = bytes;
    // Such launches come with CUDA 11.8; graphs into which they can be captured with 12.3.
    d->overlaps = major >= 9 && version >= 12030 && d->cu.cuLaunchKernelEx;
    return NULL;
}

// The caller's context where it is one of this GPU, else the primary one, which all of CUDA's runtime users share.
static lf_status choose_context(lf_cuda_device *d) {
    CUcontext current = NULL;
    CUdevice of = -1;
    LF_TRY(lf_cuda_check(d, d->cu.cuCtxGetCurrent(&current), "cuCtxGetCurrent"));
    if (current) LF_TRY(lf_cuda_check(d, d->cu.cuCtxGetDevice(&of), "cuCtxGetDevice"));
    if (current && of == d->device) {
        d->context = current;
        return NULL;
    }
    LF_TRY(lf_cuda_check(d, d->cu.cuDevicePrimaryCtxRetain(&d->context, d->device), "cuDevicePrimaryCtxRetain"));
    d->retained = true;
    return NULL;
}

static lf_status open_device(lf_cuda_device *d) {
    LF_TRY(lf_cuda_driver_open(d->base.allocator, &d->cu, &d->lib));
    LF_TRY(find_device(d));
    LF_TRY(describe(d));
    LF_TRY(choose_context(d));
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    lf_status s = lf_cuda_pool_create(d);
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
    return s;
}

// ---- the end

static void close_entered(lf_cuda_device *d) {
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    for (lf_cuda_stream *each = d->streams; each; each = each->next)
        if (!lf_cuda_is_capturing(d, each->stream))
            lf_cuda_report(d, d->cu.cuStreamSynchronize(each->stream), "cuStreamSynchronize");
    lf_cuda_unload_all(d, true);
    lf_cuda_args_finish(d, true);
    if (d->pool) lf_cuda_report(d, d->cu.cuMemPoolDestroy(d->pool), "cuMemPoolDestroy");
    lf_cuda_unrelax(d, relaxed);
}

static void close_device(lf_cuda_device *d) {
    if (!d->context) return;
    lf_cuda_scope scope;
    lf_status s = lf_cuda_enter(d, &scope);
    if (s) {
        lf_log_write(&d->base.log, LF_LOG_WARNING, "what a CUDA device holds is given up: %s", lf_status_message(s));
        lf_status_destroy(s);
    } else {
        close_entered(d);
        lf_cuda_leave(d, &scope);
    }
    if (d->retained) lf_cuda_report(d, d->cu.cuDevicePrimaryCtxRelease(d->device), "cuDevicePrimaryCtxRelease");
}

static void destroy(lf_device *device) {
    if (!device) return;
    lf_cuda_device *d = (lf_cuda_device *)device;
    if (!lf_forked(&d->fork)) {
        close_device(d);
        pthread_mutex_destroy(&d->lock);
    }
    lf_cuda_unload_all(d, false);
    lf_cuda_args_finish(d, false);
    lf_dylib_close(d->lib, false);
    lf_forkmark_finish(&d->fork);
    lf_free(d->base.allocator, d);
}

static const lf_device_ops cuda_ops = {
    .name = "cuda",
    .destroy = destroy,
    .stream_create = lf_cuda_stream_create,
    .stream_wrap = lf_cuda_stream_wrap,
    .stream_native = lf_cuda_stream_native,
    .stream_destroy = lf_cuda_stream_destroy,
    .stream_synchronize = lf_cuda_stream_synchronize,
    .stream_query = lf_cuda_stream_query,
    .stream_wait_event = lf_cuda_stream_wait_event,
    .stream_callback = lf_cuda_stream_callback,
    .stream_capturing = lf_cuda_stream_capturing,
    .memory_alloc = lf_cuda_memory_alloc,
    .memory_free = lf_cuda_memory_free,
    .memory_copy = lf_cuda_memory_copy,
    .memory_fill = lf_cuda_memory_fill,
    .memory_where = lf_cuda_memory_where,
    .mapped_alloc = lf_cuda_mapped_alloc,
    .mapped_free = lf_cuda_mapped_free,
    .kernel_load = lf_cuda_kernel_load,
    .image_link = lf_cuda_image_link,
    .kernel_destroy = lf_cuda_kernel_destroy,
    .launch = lf_cuda_launch,
    .replay = lf_cuda_replay,
    .replay_destroy = lf_cuda_replay_destroy,
    .event_create = lf_cuda_event_create,
    .event_record = lf_cuda_event_record,
    .event_query = lf_cuda_event_query,
    .event_wait = lf_cuda_event_wait,
    .event_destroy = lf_cuda_event_destroy,
};

lf_status lf_cuda_device_create(const lf_allocator *a, const lf_log *log, int ordinal, lf_device **out_device) {
    *out_device = NULL;
    lf_cuda_device *d = lf_alloc_zero(a, sizeof *d);
    if (!d) return lf_out_of_memory();
    d->base.ops = &cuda_ops;
    d->base.allocator = a;
    if (log) d->base.log = *log;
    d->base.type = LF_DEVICE_CUDA;
    d->base.ordinal = ordinal;
    lf_forkmark_init(&d->fork);
    pthread_mutex_init(&d->lock, NULL);
    lf_status s = open_device(d);
    if (s)
        destroy(&d->base);
    else
        *out_device = &d->base;
    return s;
}
