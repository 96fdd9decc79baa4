// Device memory from a pool of our own, copies, mapped host memory, whose a pointer is, and argument blocks that are too
// large for a kernel's parameters.
#include "runtime/cuda/cuda_device.h"
#include <stdint.h>
#include <string.h>

static lf_cuda_device *device_of(lf_stream *stream) { return (lf_cuda_device *)stream->device; }

// ---- stream-ordered memory

// A pool of our own, so that keeping memory across synchronisations changes nothing for the rest of the process.
lf_status lf_cuda_pool_create(lf_cuda_device *d) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, d->base.ordinal}};
    unsigned long long keep = UINT64_MAX;
    LF_TRY(lf_cuda_check(d, d->cu.cuMemPoolCreate(&d->pool, &props), "cuMemPoolCreate"));
    return lf_cuda_check(d, d->cu.cuMemPoolSetAttribute(d->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
                         "cuMemPoolSetAttribute");
}

lf_status lf_cuda_take_memory(lf_cuda_device *d, CUstream stream, size_t bytes, CUdeviceptr *out_pointer) {
    *out_pointer = 0;
    CUresult r = d->cu.cuMemAllocFromPoolAsync(out_pointer, bytes, d->pool, stream);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        lf_cuda_relaxed relaxed = lf_cuda_relax(d);
        CUresult trimmed = d->cu.cuMemPoolTrimTo(d->pool, 0);
        lf_cuda_unrelax(d, relaxed);
        if (!trimmed) r = d->cu.cuMemAllocFromPoolAsync(out_pointer, bytes, d->pool, stream);
    }
    if (!r) {
        atomic_fetch_add_explicit(&d->base.stats.allocations, 1, memory_order_relaxed);
        return NULL;
    }
    return lf_status_note(lf_cuda_check(d, r, "cuMemAllocFromPoolAsync"), "while allocating %zu bytes on CUDA device %d",
                          bytes, d->base.ordinal);
}

lf_status lf_cuda_memory_alloc(lf_stream *stream, size_t bytes, void **out_pointer) {
    *out_pointer = NULL;
    if (!bytes) return NULL;
    lf_cuda_device *d = device_of(stream);
    CUdeviceptr p;
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_status s = lf_cuda_take_memory(d, lf_cuda_stream_of(stream), bytes, &p);
    lf_cuda_leave(d, &scope);
    if (!s) *out_pointer = (void *)(uintptr_t)p;
    return s;
}

void lf_cuda_memory_free(lf_stream *stream, void *pointer) {
    lf_cuda_device *d = device_of(stream);
    if (!pointer || lf_forked(&d->fork)) return;
    lf_cuda_scope scope;
    lf_status s = lf_cuda_enter(d, &scope);
    if (!s) {
        s = lf_cuda_check(d, d->cu.cuMemFreeAsync((uintptr_t)pointer, lf_cuda_stream_of(stream)), "cuMemFreeAsync");
        lf_cuda_leave(d, &scope);
    }
    if (!s) return;
    lf_log_write(&d->base.log, LF_LOG_WARNING, "device memory is not freed: %s", lf_status_message(s));
    lf_status_destroy(s);
}

static lf_status copy(lf_cuda_device *d, CUstream stream, void *to, const void *from, size_t bytes, lf_copy_kind kind) {
    CUdeviceptr t = (uintptr_t)to, f = (uintptr_t)from;
    switch (kind) {
    case LF_COPY_HOST_TO_DEVICE:
        return lf_cuda_check(d, d->cu.cuMemcpyHtoDAsync(t, from, bytes, stream), "cuMemcpyHtoDAsync");
    case LF_COPY_DEVICE_TO_HOST: return lf_cuda_check(d, d->cu.cuMemcpyDtoHAsync(to, f, bytes, stream), "cuMemcpyDtoHAsync");
    case LF_COPY_DEVICE_TO_DEVICE:
        return lf_cuda_check(d, d->cu.cuMemcpyDtoDAsync(t, f, bytes, stream), "cuMemcpyDtoDAsync");
    }
    return lf_error(d->base.allocator, LF_INVALID_ARGUMENT, "%d is no kind of copy", (int)kind);
}

lf_status lf_cuda_memory_copy(lf_stream *stream, void *to, const void *from, size_t bytes, lf_copy_kind kind) {
    if (!bytes) return NULL;
    lf_cuda_device *d = device_of(stream);
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_status s = copy(d, lf_cuda_stream_of(stream), to, from, bytes, kind);
    lf_cuda_leave(d, &scope);
    if (!s) atomic_fetch_add_explicit(&d->base.stats.bytes_copied, bytes, memory_order_relaxed);
    return s;
}

lf_status lf_cuda_memory_fill(lf_stream *stream, void *to, uint8_t byte, size_t bytes) {
    if (!bytes) return NULL;
    lf_cuda_device *d = device_of(stream);
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_status s =
        lf_cuda_check(d, d->cu.cuMemsetD8Async((uintptr_t)to, byte, bytes, lf_cuda_stream_of(stream)), "cuMemsetD8Async");
    lf_cuda_leave(d, &scope);
    return s;
}

// Pinned host memory counts as host memory; managed memory as this device's, which can use it.
lf_status lf_cuda_memory_where(lf_device *device, const void *pointer, int *out_type, int *out_ordinal) {
    *out_type = LF_DEVICE_CPU;
    *out_ordinal = 0;
    if (!pointer) return NULL;
    lf_cuda_device *d = (lf_cuda_device *)device;
    enum { TYPE, MANAGED, ORDINAL, N };
    CUpointer_attribute which[N] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    uint32_t values[N][2] = {{0}}; // each is a 32-bit number or a byte
    void *out[N] = {values[TYPE], values[MANAGED], values[ORDINAL]};
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_status s =
        lf_cuda_check(d, d->cu.cuPointerGetAttributes(N, which, out, (uintptr_t)pointer), "cuPointerGetAttributes");
    lf_cuda_leave(d, &scope);
    if (s) return s;
    if (values[MANAGED][0]) {
        *out_type = LF_DEVICE_CUDA;
        *out_ordinal = device->ordinal;
    } else if (values[TYPE][0] == CU_MEMORYTYPE_DEVICE) {
        *out_type = LF_DEVICE_CUDA;
        *out_ordinal = (int)values[ORDINAL][0];
    }
    return NULL;
}

// ---- mapped host memory

static lf_status map(lf_cuda_device *d, size_t bytes, void **out_host, CUdeviceptr *out_device) {
    unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    LF_TRY(lf_cuda_check(d, d->cu.cuMemHostAlloc(out_host, bytes, flags), "cuMemHostAlloc"));
    lf_status s = lf_cuda_check(d, d->cu.cuMemHostGetDevicePointer(out_device, *out_host, 0), "cuMemHostGetDevicePointer");
    if (s) {
        d->cu.cuMemFreeHost(*out_host);
        *out_host = NULL;
        return s;
    }
    memset(*out_host, 0, bytes);
    return NULL;
}

lf_status lf_cuda_mapped_alloc(lf_device *device, size_t bytes, void **out_host, void **out_device) {
    *out_host = *out_device = NULL;
    if (!bytes) return NULL;
    lf_cuda_device *d = (lf_cuda_device *)device;
    CUdeviceptr p = 0;
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    lf_status s = map(d, bytes, out_host, &p);
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
    if (!s) *out_device = (void *)(uintptr_t)p;
    return s;
}

void lf_cuda_mapped_free(lf_device *device, void *host) {
    lf_cuda_device *d = (lf_cuda_device *)device;
    if (!host || lf_forked(&d->fork)) return;
    lf_cuda_scope scope;
    lf_status s = lf_cuda_enter(d, &scope);
    if (s) {
        lf_status_destroy(s);
        return;
    }
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    lf_cuda_report(d, d->cu.cuMemFreeHost(host), "cuMemFreeHost");
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
}

// ---- argument blocks in memory
// The block goes through pinned memory, so that the copy is asynchronous. Slots of a page are used in turn, each again when
// the event behind its copy has passed. A slot that a capture has used is never used again: each replay reads it.

enum { SLOTS = 32, SMALLEST_SLOT = 8192 };

struct lf_cuda_args_page {
    lf_cuda_args_page *next;
    size_t slot_bytes;
    char *memory; // owned, pinned
    uint32_t turn;
    struct {
        CUevent event; // owned, NULL until used
        bool captured;
    } slots[SLOTS];
};

void lf_cuda_args_finish(lf_cuda_device *d, bool entered) {
    for (lf_cuda_args_page *p = d->args_pages, *next; p; p = next) {
        next = p->next;
        for (int i = 0; entered && i < SLOTS; i++)
            if (p->slots[i].event) d->cu.cuEventDestroy(p->slots[i].event);
        if (entered) lf_cuda_report(d, d->cu.cuMemFreeHost(p->memory), "cuMemFreeHost");
        lf_free(d->base.allocator, p);
    }
    d->args_pages = NULL;
}

static lf_status new_page(lf_cuda_device *d, size_t bytes, lf_cuda_args_page **out_page) {
    lf_cuda_args_page *p = lf_alloc_zero(d->base.allocator, sizeof *p);
    if (!p) return lf_out_of_memory();
    p->slot_bytes = SMALLEST_SLOT;
    while (p->slot_bytes < bytes) p->slot_bytes *= 2;
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    void *memory = NULL;
    CUresult r = d->cu.cuMemHostAlloc(&memory, SLOTS * p->slot_bytes, CU_MEMHOSTALLOC_PORTABLE);
    lf_cuda_unrelax(d, relaxed);
    lf_status s = lf_cuda_check(d, r, "cuMemHostAlloc");
    if (s) {
        lf_free(d->base.allocator, p);
        return s;
    }
    p->memory = memory;
    p->turn = 1; // the caller takes slot 0
    p->next = d->args_pages;
    d->args_pages = *out_page = p;
    return NULL;
}

static bool slot_is_free(lf_cuda_device *d, lf_cuda_args_page *p, uint32_t i) {
    if (p->slots[i].captured) return false;
    return !p->slots[i].event || d->cu.cuEventQuery(p->slots[i].event) != CUDA_ERROR_NOT_READY;
}

static lf_status find_slot(lf_cuda_device *d, size_t bytes, lf_cuda_args_page **out_page, uint32_t *out_slot) {
    *out_slot = 0;
    for (lf_cuda_args_page *p = d->args_pages; p; p = p->next) {
        if (p->slot_bytes < bytes) continue;
        for (uint32_t tried = 0; tried < SLOTS; tried++, p->turn = (p->turn + 1) % SLOTS) {
            if (p->slots[p->turn].captured) continue;
            if (!slot_is_free(d, p, p->turn)) break; // those after it are younger
            *out_page = p;
            *out_slot = p->turn;
            p->turn = (p->turn + 1) % SLOTS;
            return NULL;
        }
    }
    return new_page(d, bytes, out_page);
}

// Lock held, context entered.
static lf_status send(lf_cuda_device *d, CUstream stream, const void *args, size_t bytes, CUdeviceptr to) {
    lf_cuda_args_page *p = NULL;
    uint32_t i;
    bool capturing = lf_cuda_is_capturing(d, stream);
    lf_cuda_relaxed relaxed = lf_cuda_relax(d); // asking an event is forbidden to a thread that captures
    lf_status s = find_slot(d, bytes, &p, &i);
    if (!s && !capturing && !p->slots[i].event)
        s = lf_cuda_check(d, d->cu.cuEventCreate(&p->slots[i].event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    lf_cuda_unrelax(d, relaxed);
    if (s) return s;
    char *slot = p->memory + i * p->slot_bytes;
    memcpy(slot, args, bytes);
    LF_TRY(lf_cuda_check(d, d->cu.cuMemcpyHtoDAsync(to, slot, bytes, stream), "cuMemcpyHtoDAsync"));
    p->slots[i].captured = capturing;
    if (capturing) return NULL;
    s = lf_cuda_check(d, d->cu.cuEventRecord(p->slots[i].event, stream), "cuEventRecord");
    if (s) p->slots[i].captured = true; // nobody knows when it is free again
    return s;
}

lf_status lf_cuda_args_send(lf_cuda_device *d, CUstream stream, const void *args, size_t bytes, CUdeviceptr *out_pointer) {
    LF_TRY(lf_cuda_take_memory(d, stream, bytes, out_pointer));
    pthread_mutex_lock(&d->lock);
    lf_status s = send(d, stream, args, bytes, *out_pointer);
    pthread_mutex_unlock(&d->lock);
    if (s) lf_cuda_report(d, d->cu.cuMemFreeAsync(*out_pointer, stream), "cuMemFreeAsync");
    return s;
}
