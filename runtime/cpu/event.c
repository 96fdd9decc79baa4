// Events. Each recording that cannot complete at once is a fence of its own, so that recording an event again does not
// disturb those who wait for the earlier recording.
#include "runtime/cpu/cpu.h"

typedef struct lf_cpu_event {
    lf_event base;
    pthread_mutex_t lock;
    lf_cpu_fence *fence; // one reference; NULL: never recorded, or complete when recorded
} lf_cpu_event;

static lf_cpu_fence *new_fence(lf_cpu_device *d, uint32_t refs) {
    pthread_mutex_lock(&d->lock);
    lf_cpu_fence *f = d->unused_fences;
    if (f) d->unused_fences = f->next;
    pthread_mutex_unlock(&d->lock);
    if (!f) f = lf_alloc_zero(d->base.allocator, sizeof *f);
    if (!f) return NULL;
    atomic_store_explicit(&f->done, 0, memory_order_relaxed);
    atomic_store_explicit(&f->refs, refs, memory_order_relaxed);
    return f;
}

static void unref(lf_cpu_device *d, lf_cpu_fence *f) {
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1) return;
    if (lf_cpu_forked(d)) return;
    pthread_mutex_lock(&d->lock);
    f->next = d->unused_fences;
    d->unused_fences = f;
    pthread_mutex_unlock(&d->lock);
}

void lf_cpu_fence_signal(lf_cpu_device *d, lf_cpu_fence *f) {
    atomic_store_explicit(&f->done, 1, memory_order_release);
    lf_futex_wake(&f->done, INT32_MAX);
    unref(d, f);
}

static bool is_done(lf_cpu_fence *f) { return !f || atomic_load_explicit(&f->done, memory_order_acquire); }

void lf_cpu_fence_wait(lf_cpu_device *d, lf_cpu_fence *f) {
    while (!is_done(f)) lf_futex_wait(&f->done, 0);
    unref(d, f);
}

void lf_cpu_fences_finish(lf_cpu_device *d) {
    for (lf_cpu_fence *f = d->unused_fences, *next; f; f = next) {
        next = f->next;
        lf_free(d->base.allocator, f);
    }
}

static lf_cpu_device *device_of(lf_cpu_event *e) { return (lf_cpu_device *)e->base.device; }

// The fence of the latest recording, NULL if complete; the caller gets a reference.
static lf_cpu_fence *pending_fence(lf_cpu_event *e) {
    pthread_mutex_lock(&e->lock);
    lf_cpu_fence *f = is_done(e->fence) ? NULL : e->fence;
    if (f) atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&e->lock);
    return f;
}

static void set_fence(lf_cpu_event *e, lf_cpu_fence *f) {
    pthread_mutex_lock(&e->lock);
    lf_cpu_fence *before = e->fence;
    e->fence = f;
    pthread_mutex_unlock(&e->lock);
    unref(device_of(e), before);
}

// What a forked child can say of an event: recordings that were pending are so for ever.
static lf_status forked_state(lf_cpu_event *e) {
    if (is_done(e->fence)) return NULL;
    return lf_error(e->base.device->allocator, LF_UNAVAILABLE,
                    "the event was recorded before fork; its work is not done in the child");
}

lf_status lf_cpu_event_create(lf_device *device, lf_event **out_event) {
    *out_event = NULL;
    lf_cpu_event *e = lf_alloc_zero(device->allocator, sizeof *e);
    if (!e) return lf_out_of_memory();
    e->base.device = device;
    pthread_mutex_init(&e->lock, NULL);
    *out_event = &e->base;
    return NULL;
}

lf_status lf_cpu_event_record(lf_event *event, lf_stream *stream) {
    lf_cpu_event *e = (lf_cpu_event *)event;
    lf_cpu_device *d = device_of(e);
    if (event->device != stream->device)
        return lf_error(d->base.allocator, LF_INVALID_ARGUMENT, "the event and the stream belong to different devices");
    if (lf_cpu_forked(d)) {
        e->fence = NULL;
        return NULL;
    }
    lf_cpu_queue *q = lf_cpu_queue_of(stream);
    if (lf_cpu_queue_enter(q)) {
        set_fence(e, NULL);
        lf_cpu_queue_leave(q);
        return NULL;
    }
    lf_cpu_fence *f = new_fence(d, 2);
    if (!f) return lf_out_of_memory();
    lf_status s = lf_cpu_queue_push(q, &(lf_cpu_task){.kind = LF_CPU_TASK_SIGNAL, .u.fence = f}, NULL);
    if (s) {
        atomic_store_explicit(&f->refs, 1, memory_order_relaxed);
        unref(d, f);
        return s;
    }
    set_fence(e, f);
    return NULL;
}

lf_status lf_cpu_event_query(lf_event *event) {
    lf_cpu_event *e = (lf_cpu_event *)event;
    if (lf_cpu_forked(device_of(e))) return forked_state(e);
    pthread_mutex_lock(&e->lock);
    bool done = is_done(e->fence);
    pthread_mutex_unlock(&e->lock);
    return done ? NULL : lf_not_ready();
}

lf_status lf_cpu_event_wait(lf_event *event) {
    lf_cpu_event *e = (lf_cpu_event *)event;
    atomic_fetch_add_explicit(&event->device->stats.syncs, 1, memory_order_relaxed);
    if (lf_cpu_forked(device_of(e))) return forked_state(e);
    lf_cpu_fence *f = pending_fence(e);
    if (f) lf_cpu_fence_wait(device_of(e), f);
    return NULL;
}

void lf_cpu_event_destroy(lf_event *event) {
    if (!event) return;
    lf_cpu_event *e = (lf_cpu_event *)event;
    unref(device_of(e), e->fence);
    if (!lf_cpu_forked(device_of(e))) pthread_mutex_destroy(&e->lock);
    lf_free(event->device->allocator, e);
}

lf_status lf_cpu_stream_wait_event(lf_stream *stream, lf_event *event) {
    lf_cpu_event *e = (lf_cpu_event *)event;
    lf_cpu_device *d = device_of(e);
    if (event->device != stream->device) {
        // Another CPU device's event: its fences are released to its own device, which the queue does not know.
        return lf_error(stream->device->allocator, LF_INVALID_ARGUMENT,
                        "the event and the stream belong to different devices");
    }
    if (lf_cpu_forked(d)) return forked_state(e);
    lf_cpu_fence *f = pending_fence(e);
    if (!f) return NULL;
    lf_status s = lf_cpu_queue_push(lf_cpu_queue_of(stream), &(lf_cpu_task){.kind = LF_CPU_TASK_WAIT, .u.fence = f}, NULL);
    if (s) unref(d, f);
    return s;
}
