// Code on the GPU: loading with the JIT's log, launching, and unloading no sooner than is safe.
//
// Measured on an H200 with driver 580: loading and unloading a module wait until no kernel runs in the whole context. So a
// destroyed kernel only goes on a list, and is unloaded by the next load, which waits anyhow. Nor must a module go while one
// of its kernels is still to run, or while a stream captures: streams that are busy get a mark (an event), and the module
// goes when those marks have passed.
#include "runtime/cuda/cuda_device.h"
#include <stdint.h>
#include <string.h>

enum { LOG_BYTES = 8192, DEFAULT_SHARED = 48 * 1024 };

struct lf_cuda_mark {
    CUevent event;
    uint64_t number;
    lf_cuda_mark *next;
};

// ---- marks; lock held, context entered

static bool mark(lf_cuda_device *d, CUstream stream) {
    if (d->cu.cuStreamQuery(stream) != CUDA_ERROR_NOT_READY) return true; // idle, or broken for good
    lf_cuda_mark *m = lf_alloc_zero(d->base.allocator, sizeof *m);
    if (!m) return false;
    if (d->cu.cuEventCreate(&m->event, CU_EVENT_DISABLE_TIMING)) {
        lf_free(d->base.allocator, m);
        return false;
    }
    if (d->cu.cuEventRecord(m->event, stream)) {
        d->cu.cuEventDestroy(m->event);
        lf_free(d->base.allocator, m);
        return false;
    }
    m->number = ++d->n_marks;
    m->next = d->marks;
    d->marks = m;
    return true;
}

void lf_cuda_mark_stream(lf_cuda_device *d, CUstream stream) {
    if (!lf_cuda_is_capturing(d, stream)) mark(d, stream);
}

// Drops the marks that have passed; the least number among those that have not.
static uint64_t oldest_pending(lf_cuda_device *d) {
    uint64_t oldest = UINT64_MAX;
    for (lf_cuda_mark **at = &d->marks; *at;) {
        lf_cuda_mark *m = *at;
        if (d->cu.cuEventQuery(m->event) == CUDA_ERROR_NOT_READY) {
            if (m->number < oldest) oldest = m->number;
            at = &m->next;
            continue;
        }
        *at = m->next;
        d->cu.cuEventDestroy(m->event);
        lf_free(d->base.allocator, m);
    }
    return oldest;
}

static bool any_capture(lf_cuda_device *d) {
    for (lf_cuda_stream *s = d->streams; s; s = s->next)
        if (lf_cuda_is_capturing(d, s->stream)) return true;
    return false;
}

static bool mark_the_dead(lf_cuda_device *d) {
    bool unmarked = false;
    for (lf_cuda_kernel *k = d->dead; k; k = k->next) unmarked |= !k->marked;
    if (!unmarked) return true;
    for (lf_cuda_stream *s = d->streams; s; s = s->next)
        if (!mark(d, s->stream)) return false;
    for (lf_cuda_kernel *k = d->dead; k; k = k->next) {
        if (k->marked) continue;
        k->marked = true;
        k->last_mark = d->n_marks;
    }
    return true;
}

static void unload(lf_cuda_device *d, lf_cuda_kernel *k) {
    lf_cuda_report(d, d->cu.cuModuleUnload(k->module), "cuModuleUnload");
    lf_free(d->base.allocator, k);
}

static void unload_what_is_safe(lf_cuda_device *d) {
    if (!d->dead || any_capture(d) || !mark_the_dead(d)) return;
    uint64_t oldest = oldest_pending(d);
    for (lf_cuda_kernel **at = &d->dead; *at;) {
        lf_cuda_kernel *k = *at;
        if (!k->marked || k->last_mark >= oldest) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        unload(d, k);
    }
}

// At the end of the device: its streams have been waited for.
void lf_cuda_unload_all(lf_cuda_device *d, bool entered) {
    for (lf_cuda_kernel *k = d->dead, *next; k; k = next) {
        next = k->next;
        if (entered)
            unload(d, k);
        else
            lf_free(d->base.allocator, k);
    }
    for (lf_cuda_mark *m = d->marks, *next; m; m = next) {
        next = m->next;
        if (entered) d->cu.cuEventDestroy(m->event);
        lf_free(d->base.allocator, m);
    }
    d->dead = NULL;
    d->marks = NULL;
}

// ---- loading

static lf_status load_module(lf_cuda_device *d, const lf_image *image, CUmodule *out_module) {
    const lf_allocator *a = d->base.allocator;
    char *log = lf_alloc(a, 2 * LOG_BYTES);
    if (!log) return lf_out_of_memory();
    char *errors = log + LOG_BYTES;
    log[0] = errors[0] = 0;
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)LOG_BYTES, errors, (void *)(uintptr_t)LOG_BYTES};
    CUresult r = d->cu.cuModuleLoadDataEx(out_module, image->data, 4, options, values);
    log[LOG_BYTES - 1] = errors[LOG_BYTES - 1] = 0;
    lf_status s = lf_cuda_check(d, r, "cuModuleLoadDataEx");
    if (s) {
        s = lf_status_note(s, "while loading kernel %s", image->entry);
        if (errors[0]) s = lf_status_note(s, "%s", errors);
    } else if (log[0]) {
        lf_log_write(&d->base.log, LF_LOG_DEBUG, "kernel %s: %s", image->entry, log);
    }
    lf_free(a, log);
    return s;
}

// Everything that a first launch would do lazily is done now, so that a launch may come during graph capture.
static lf_status get_function(lf_cuda_device *d, const lf_image *image, lf_cuda_kernel *k) {
    int fixed_shared = 0, registers = 0, local = 0;
    LF_TRY(lf_cuda_check(d, d->cu.cuModuleGetFunction(&k->function, k->module, image->entry), "cuModuleGetFunction"));
    if (d->cu.cuFuncLoad) LF_TRY(lf_cuda_check(d, d->cu.cuFuncLoad(k->function), "cuFuncLoad"));
    LF_TRY(lf_cuda_check(d, d->cu.cuFuncGetAttribute(&fixed_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k->function),
                         "cuFuncGetAttribute"));
    LF_TRY(lf_cuda_check(d, d->cu.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, k->function),
                         "cuFuncGetAttribute"));
    LF_TRY(lf_cuda_check(d, d->cu.cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, k->function),
                         "cuFuncGetAttribute"));
    k->base.resources = (lf_kernel_resources){(uint32_t)registers, (uint32_t)local, (uint32_t)fixed_shared};
    int dynamic = (int)d->base.info.max_shared - fixed_shared;
    if (d->base.info.max_shared <= DEFAULT_SHARED || dynamic <= 0) return NULL;
    return lf_cuda_check(d, d->cu.cuFuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic),
                         "cuFuncSetAttribute");
}

static lf_status load(lf_cuda_device *d, const lf_image *image, lf_cuda_kernel *k) {
    LF_TRY(load_module(d, image, &k->module));
    lf_status s = get_function(d, image, k);
    if (!s) return NULL;
    lf_cuda_report(d, d->cu.cuModuleUnload(k->module), "cuModuleUnload");
    return lf_status_note(s, "while loading kernel %s", image->entry);
}

lf_status lf_cuda_kernel_load(lf_device *device, const lf_image *image, lf_kernel **out_kernel) {
    *out_kernel = NULL;
    lf_cuda_device *d = (lf_cuda_device *)device;
    if (image->kind == LF_IMAGE_NATIVE)
        return lf_error(device->allocator, LF_UNSUPPORTED, "kernel %s: a GPU does not run native code", image->entry);
    if (image->shared_bytes > device->info.max_shared)
        return lf_error(device->allocator, LF_UNSUPPORTED, "kernel %s needs %u bytes of shared memory; %s has %u",
                        image->entry, image->shared_bytes, device->info.target, device->info.max_shared);
    lf_cuda_kernel *k = lf_alloc_zero(device->allocator, sizeof *k);
    if (!k) return lf_out_of_memory();
    k->base.device = device;
    lf_cuda_scope scope;
    lf_status s = lf_cuda_enter(d, &scope);
    if (s) {
        lf_free(device->allocator, k);
        return s;
    }
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    s = load(d, image, k);
    pthread_mutex_lock(&d->lock);
    unload_what_is_safe(d);
    pthread_mutex_unlock(&d->lock);
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
    if (s) {
        lf_free(device->allocator, k);
        return s;
    }
    atomic_fetch_add_explicit(&device->stats.kernels_loaded, 1, memory_order_relaxed);
    *out_kernel = &k->base;
    return NULL;
}

void lf_cuda_kernel_destroy(lf_kernel *kernel) {
    if (!kernel) return;
    lf_cuda_kernel *k = (lf_cuda_kernel *)kernel;
    lf_cuda_device *d = (lf_cuda_device *)kernel->device;
    if (lf_forked(&d->fork)) { // the module is the parent's
        lf_free(d->base.allocator, k);
        return;
    }
    pthread_mutex_lock(&d->lock);
    k->next = d->dead;
    d->dead = k;
    pthread_mutex_unlock(&d->lock);
}

// ---- launching

static CUresult launch_overlapping(lf_cuda_device *d, CUstream stream, const lf_launch *l, void **extra) {
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value = {.number = 1}};
    CUlaunchConfig config = {l->grid, 1, 1, l->block, 1, 1, l->shared, stream, &early, 1};
    return d->cu.cuLaunchKernelEx(&config, ((const lf_cuda_kernel *)l->kernel)->function, NULL, extra);
}

static lf_status launch_with(lf_cuda_device *d, CUstream stream, const lf_launch *l, const void *block, size_t bytes) {
    void *parameters[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                          CU_LAUNCH_PARAM_END};
    void **extra = bytes ? parameters : NULL;
    if (l->follows && d->overlaps) return lf_cuda_check(d, launch_overlapping(d, stream, l, extra), "cuLaunchKernelEx");
    CUresult r = d->cu.cuLaunchKernel(((const lf_cuda_kernel *)l->kernel)->function, l->grid, 1, 1, l->block, 1, 1,
                                      l->shared, stream, NULL, extra);
    return lf_cuda_check(d, r, "cuLaunchKernel");
}

static lf_status launch_through_memory(lf_cuda_device *d, CUstream stream, const lf_launch *l) {
    CUdeviceptr block;
    LF_TRY(lf_cuda_args_send(d, stream, l->args, l->n_args * sizeof *l->args, &block));
    lf_status s = launch_with(d, stream, l, &block, sizeof block);
    CUresult r = d->cu.cuMemFreeAsync(block, stream);
    if (!s) return lf_cuda_check(d, r, "cuMemFreeAsync");
    lf_cuda_report(d, r, "cuMemFreeAsync");
    return s;
}

static lf_status bad_launch(lf_stream *stream, const lf_launch *l) {
    const lf_allocator *a = stream->device->allocator;
    const lf_device_info *info = &stream->device->info;
    if (l->kernel->device != stream->device)
        return lf_error(a, LF_INVALID_ARGUMENT, "the kernel and the stream belong to different devices");
    if (l->grid > INT32_MAX)
        return lf_error(a, LF_INVALID_ARGUMENT, "a grid of %u blocks; at most %d can be launched", l->grid, INT32_MAX);
    if (!l->block || l->block > info->max_block)
        return lf_error(a, LF_INVALID_ARGUMENT, "a block of %u threads; %s takes 1 to %u", l->block, info->target,
                        info->max_block);
    return lf_error(a, LF_INVALID_ARGUMENT, "%u bytes of shared memory a block; %s has %u", l->shared, info->target,
                    info->max_shared);
}

lf_status lf_cuda_launch(lf_stream *stream, const lf_launch *launch) {
    lf_cuda_device *d = (lf_cuda_device *)stream->device;
    if (!launch->grid) return NULL;
    if (launch->kernel->device != stream->device || launch->grid > INT32_MAX ||
        launch->block - 1 >= d->base.info.max_block || launch->shared > d->base.info.max_shared)
        return bad_launch(stream, launch);
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    CUstream on = lf_cuda_stream_of(stream);
    lf_status s = launch->args_in_memory && launch->n_args
                      ? launch_through_memory(d, on, launch)
                      : launch_with(d, on, launch, launch->args, launch->n_args * sizeof *launch->args);
    lf_cuda_leave(d, &scope);
    if (!s) atomic_fetch_add_explicit(&d->base.stats.launches, 1, memory_order_relaxed);
    return s;
}
