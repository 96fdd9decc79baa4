// Streams and events.
#include "runtime/cuda/cuda_device.h"
#include <stdint.h>

typedef struct lf_cuda_event {
    lf_event base;
    CUevent event;
} lf_cuda_event;

static lf_cuda_device *device_of(lf_stream *stream) { return (lf_cuda_device *)stream->device; }
static CUevent event_of(lf_event *event) { return ((lf_cuda_event *)event)->event; }

// ---- streams

static lf_status new_stream(lf_cuda_device *d, CUstream native, bool wrapped, lf_stream **out_stream) {
    lf_cuda_stream *s = lf_alloc_zero(d->base.allocator, sizeof *s);
    if (!s) return lf_out_of_memory();
    *s = (lf_cuda_stream){.base = {&d->base}, .stream = native, .wrapped = wrapped};
    pthread_mutex_lock(&d->lock);
    s->next = d->streams;
    d->streams = s;
    pthread_mutex_unlock(&d->lock);
    *out_stream = &s->base;
    return NULL;
}

lf_status lf_cuda_stream_create(lf_device *device, lf_stream **out_stream) {
    *out_stream = NULL;
    lf_cuda_device *d = (lf_cuda_device *)device;
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    CUstream native = NULL;
    lf_status s = lf_cuda_check(d, d->cu.cuStreamCreate(&native, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (!s) {
        s = new_stream(d, native, false, out_stream);
        if (s) d->cu.cuStreamDestroy(native);
    }
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
    return s;
}

// The handles 0, 1 and 2 stand for the default streams of whatever context is current.
static lf_status check_context(lf_cuda_device *d, CUstream native) {
    if ((uintptr_t)native <= 2) return NULL;
    CUcontext of = NULL;
    LF_TRY(lf_cuda_check(d, d->cu.cuStreamGetCtx(native, &of), "cuStreamGetCtx"));
    if (of == d->context) return NULL;
    return lf_error(d->base.allocator, LF_INVALID_ARGUMENT,
                    "the stream %p belongs to another CUDA context than the one used on device %d", (void *)native,
                    d->base.ordinal);
}

lf_status lf_cuda_stream_wrap(lf_device *device, void *native, lf_stream **out_stream) {
    *out_stream = NULL;
    lf_cuda_device *d = (lf_cuda_device *)device;
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_status s = check_context(d, native);
    lf_cuda_leave(d, &scope);
    return s ? s : new_stream(d, native, true, out_stream);
}

void *lf_cuda_stream_native(lf_stream *stream) { return lf_cuda_stream_of(stream); }

static void forget(lf_cuda_device *d, lf_cuda_stream *s) {
    lf_cuda_stream **at = &d->streams;
    while (*at && *at != s) at = &(*at)->next;
    if (*at) *at = s->next;
}

static void close_stream(lf_cuda_device *d, lf_cuda_stream *s) {
    lf_cuda_scope scope;
    lf_status failed = lf_cuda_enter(d, &scope);
    if (failed) {
        lf_log_write(&d->base.log, LF_LOG_WARNING, "a stream is given up: %s", lf_status_message(failed));
        lf_status_destroy(failed);
        pthread_mutex_lock(&d->lock);
        forget(d, s);
        pthread_mutex_unlock(&d->lock);
        return;
    }
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    if (!s->wrapped && !lf_cuda_is_capturing(d, s->stream))
        lf_cuda_report(d, d->cu.cuStreamSynchronize(s->stream), "cuStreamSynchronize");
    pthread_mutex_lock(&d->lock);
    forget(d, s);
    if (s->wrapped) lf_cuda_mark_stream(d, s->stream);
    pthread_mutex_unlock(&d->lock);
    if (!s->wrapped) lf_cuda_report(d, d->cu.cuStreamDestroy(s->stream), "cuStreamDestroy");
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
}

void lf_cuda_stream_destroy(lf_stream *stream) {
    if (!stream) return;
    lf_cuda_device *d = device_of(stream);
    if (!lf_forked(&d->fork)) close_stream(d, (lf_cuda_stream *)stream);
    lf_free(d->base.allocator, stream);
}

lf_status lf_cuda_stream_synchronize(lf_stream *stream) {
    lf_cuda_device *d = device_of(stream);
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    atomic_fetch_add_explicit(&d->base.stats.syncs, 1, memory_order_relaxed);
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    lf_status s = lf_cuda_check(d, d->cu.cuStreamSynchronize(lf_cuda_stream_of(stream)), "cuStreamSynchronize");
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
    return s;
}

lf_status lf_cuda_stream_query(lf_stream *stream) {
    lf_cuda_device *d = device_of(stream);
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    lf_status s = lf_cuda_check(d, d->cu.cuStreamQuery(lf_cuda_stream_of(stream)), "cuStreamQuery");
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
    return s;
}

lf_status lf_cuda_stream_callback(lf_stream *stream, void (*fn)(void *arg), void *arg) {
    lf_cuda_device *d = device_of(stream);
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_status s = lf_cuda_check(d, d->cu.cuLaunchHostFunc(lf_cuda_stream_of(stream), fn, arg), "cuLaunchHostFunc");
    lf_cuda_leave(d, &scope);
    return s;
}

// The default stream cannot be asked while a stream that synchronises with it captures; nor can it be used then.
bool lf_cuda_is_capturing(lf_cuda_device *d, CUstream stream) {
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult r = d->cu.cuStreamIsCapturing(stream, &state);
    if (r) return r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    return state != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool lf_cuda_stream_capturing(lf_stream *stream) {
    lf_cuda_device *d = device_of(stream);
    lf_cuda_scope scope;
    lf_status s = lf_cuda_enter(d, &scope);
    if (s) {
        lf_status_destroy(s);
        return false;
    }
    bool capturing = lf_cuda_is_capturing(d, lf_cuda_stream_of(stream));
    lf_cuda_leave(d, &scope);
    return capturing;
}

// ---- events

static lf_status foreign_event(const lf_device *d, const lf_event *event) {
    if (event->device->ops == d->ops) return NULL;
    return lf_error(d->allocator, LF_INVALID_ARGUMENT, "an event of device %s cannot be used on %s",
                    event->device->ops->name, d->ops->name);
}

// The event may belong to another GPU.
lf_status lf_cuda_stream_wait_event(lf_stream *stream, lf_event *event) {
    lf_cuda_device *d = device_of(stream);
    LF_TRY(foreign_event(stream->device, event));
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_status s =
        lf_cuda_check(d, d->cu.cuStreamWaitEvent(lf_cuda_stream_of(stream), event_of(event), 0), "cuStreamWaitEvent");
    lf_cuda_leave(d, &scope);
    return s;
}

lf_status lf_cuda_event_create(lf_device *device, lf_event **out_event) {
    *out_event = NULL;
    lf_cuda_device *d = (lf_cuda_device *)device;
    lf_cuda_event *e = lf_alloc_zero(device->allocator, sizeof *e);
    if (!e) return lf_out_of_memory();
    e->base.device = device;
    lf_cuda_scope scope;
    lf_status s = lf_cuda_enter(d, &scope);
    if (!s) {
        s = lf_cuda_check(d, d->cu.cuEventCreate(&e->event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        lf_cuda_leave(d, &scope);
    }
    if (s)
        lf_free(device->allocator, e);
    else
        *out_event = &e->base;
    return s;
}

lf_status lf_cuda_event_record(lf_event *event, lf_stream *stream) {
    lf_cuda_device *d = (lf_cuda_device *)event->device;
    if (event->device != stream->device)
        return lf_error(d->base.allocator, LF_INVALID_ARGUMENT, "the event and the stream belong to different devices");
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_status s = lf_cuda_check(d, d->cu.cuEventRecord(event_of(event), lf_cuda_stream_of(stream)), "cuEventRecord");
    lf_cuda_leave(d, &scope);
    return s;
}

lf_status lf_cuda_event_query(lf_event *event) {
    lf_cuda_device *d = (lf_cuda_device *)event->device;
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    lf_status s = lf_cuda_check(d, d->cu.cuEventQuery(event_of(event)), "cuEventQuery");
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
    return s;
}

lf_status lf_cuda_event_wait(lf_event *event) {
    lf_cuda_device *d = (lf_cuda_device *)event->device;
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    atomic_fetch_add_explicit(&d->base.stats.syncs, 1, memory_order_relaxed);
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    lf_status s = lf_cuda_check(d, d->cu.cuEventSynchronize(event_of(event)), "cuEventSynchronize");
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
    return s;
}

void lf_cuda_event_destroy(lf_event *event) {
    if (!event) return;
    lf_cuda_device *d = (lf_cuda_device *)event->device;
    lf_cuda_scope scope;
    lf_status s = lf_forked(&d->fork) ? NULL : lf_cuda_enter(d, &scope);
    if (s) {
        lf_status_destroy(s);
    } else if (!lf_forked(&d->fork)) {
        lf_cuda_report(d, d->cu.cuEventDestroy(event_of(event)), "cuEventDestroy");
        lf_cuda_leave(d, &scope);
    }
    lf_free(d->base.allocator, event);
}
