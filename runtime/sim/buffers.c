// Buffers of the SIM device: what its table says of memory. Which addresses are whose is memory.c's.
#include "runtime/sim/device.h"

// False: a launch is running.
static bool trim(lf_sim_device *d, size_t most) {
    if (pthread_mutex_trylock(&d->running)) return false;
    lf_sim_memory_trim(&d->memory, most);
    pthread_mutex_unlock(&d->running);
    return true;
}

lf_status lf_sim_memory_alloc(lf_stream *stream, size_t bytes, void **out_pointer) {
    lf_sim_device *d = lf_sim_device_of(stream);
    *out_pointer = NULL;
    if (!bytes) return NULL;
    *out_pointer = lf_sim_memory_take(&d->memory, bytes, LF_SIM_DEVICE_MEMORY);
    if (!*out_pointer && trim(d, 0)) *out_pointer = lf_sim_memory_take(&d->memory, bytes, LF_SIM_DEVICE_MEMORY);
    if (!*out_pointer)
        return lf_error(d->base.allocator, LF_OUT_OF_MEMORY, "cannot allocate %zu bytes on the SIM device", bytes);
    atomic_fetch_add_explicit(&d->base.stats.allocations, 1, memory_order_relaxed);
    return NULL;
}

static void give_back(lf_sim_device *d, void *pointer) {
    if (!lf_sim_memory_give(&d->memory, pointer))
        lf_log_write(&d->base.log, LF_LOG_ERROR, "memory at %p is freed twice, or was never given out; ignored", pointer);
    trim(d, LF_SIM_MOST_FREED);
}

void lf_sim_free_in_order(const uint64_t *args, uint64_t begin, uint64_t end) {
    (void)begin, (void)end;
    give_back((lf_sim_device *)(uintptr_t)args[0], (void *)(uintptr_t)args[1]);
}

void lf_sim_memory_free(lf_stream *stream, void *pointer) {
    lf_sim_device *d = lf_sim_device_of(stream);
    uint64_t args[] = {(uintptr_t)d, (uintptr_t)pointer};
    if (!pointer) return;
    lf_status s = lf_sim_in_order(stream, LF_SIM_TASK_FREE, args, 2);
    if (!s) return;
    // Out of memory for a few words: waiting is the only way left.
    lf_log_write(&d->base.log, LF_LOG_WARNING, "waits for a stream in order to free memory: %s", lf_status_message(s));
    lf_status_destroy(s);
    s = lf_sim_inner(d)->stream_synchronize(lf_sim_stream_of(stream)->inner);
    lf_status_destroy(s);
    give_back(d, pointer);
}

static lf_status check_range(lf_sim_device *d, const void *pointer, size_t bytes, const char *what) {
    lf_sim_allocation a;
    uintptr_t address = (uintptr_t)pointer;
    if (lf_sim_memory_find(&d->memory, address, &a) && !a.freed && address - a.begin < a.bytes &&
        bytes <= a.bytes - (address - a.begin))
        return NULL;
    return lf_error(d->base.allocator, LF_INVALID_ARGUMENT,
                    "%s: %zu bytes at %p are not within an allocation of the SIM device", what, bytes, pointer);
}

lf_status lf_sim_memory_copy(lf_stream *stream, void *to, const void *from, size_t bytes, lf_copy_kind kind) {
    lf_sim_device *d = lf_sim_device_of(stream);
    if (!bytes) return NULL;
    if (kind != LF_COPY_DEVICE_TO_HOST) LF_TRY(check_range(d, to, bytes, "copy to the device"));
    if (kind != LF_COPY_HOST_TO_DEVICE) LF_TRY(check_range(d, from, bytes, "copy from the device"));
    atomic_fetch_add_explicit(&d->base.stats.bytes_copied, bytes, memory_order_relaxed);
    return lf_sim_inner(d)->memory_copy(lf_sim_stream_of(stream)->inner, to, from, bytes, kind);
}

lf_status lf_sim_memory_fill(lf_stream *stream, void *to, uint8_t byte, size_t bytes) {
    lf_sim_device *d = lf_sim_device_of(stream);
    if (!bytes) return NULL;
    LF_TRY(check_range(d, to, bytes, "fill"));
    return lf_sim_inner(d)->memory_fill(lf_sim_stream_of(stream)->inner, to, byte, bytes);
}

lf_status lf_sim_memory_where(lf_device *device, const void *pointer, int *out_type, int *out_ordinal) {
    lf_sim_allocation a;
    uintptr_t address = (uintptr_t)pointer;
    bool ours = lf_sim_memory_find(&((lf_sim_device *)device)->memory, address, &a) && !a.freed &&
                a.kind == LF_SIM_DEVICE_MEMORY && address - a.begin < a.bytes;
    *out_type = ours ? LF_DEVICE_SIM : LF_DEVICE_CPU;
    *out_ordinal = 0;
    return NULL;
}

lf_status lf_sim_mapped_alloc(lf_device *device, size_t bytes, void **out_host, void **out_device) {
    *out_host = *out_device = NULL;
    if (!bytes) return NULL;
    void *p = lf_sim_memory_take(&((lf_sim_device *)device)->memory, bytes, LF_SIM_MAPPED_MEMORY);
    if (!p && trim((lf_sim_device *)device, 0))
        p = lf_sim_memory_take(&((lf_sim_device *)device)->memory, bytes, LF_SIM_MAPPED_MEMORY);
    if (!p) return lf_error(device->allocator, LF_OUT_OF_MEMORY, "cannot allocate %zu bytes of mapped memory", bytes);
    *out_host = *out_device = p;
    return NULL;
}

void lf_sim_mapped_free(lf_device *device, void *host) {
    if (host) give_back((lf_sim_device *)device, host);
}
