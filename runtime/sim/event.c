// Events of the SIM device: those of the inner CPU device, each with the fault that it was recorded with.
#include "runtime/sim/device.h"

// What an event was recorded with: lives until the recording has been reached.
typedef struct event_box {
    _Atomic uint32_t refs;
    pthread_mutex_t lock;
    lf_sim_fault_text *fault; // owned reference
} event_box;

typedef struct lf_sim_event {
    lf_event base;
    lf_event *inner; // owned
    event_box *box;  // owned reference
} lf_sim_event;

static void unref_box(const lf_allocator *a, event_box *b) {
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1) return;
    lf_sim_unref_fault(a, b->fault);
    pthread_mutex_destroy(&b->lock);
    lf_free(a, b);
}

// In stream order: what went wrong before goes to the event.
void lf_sim_collect(const uint64_t *args, uint64_t begin, uint64_t end) {
    (void)begin, (void)end;
    lf_sim_device *d = (lf_sim_device *)(uintptr_t)args[0];
    lf_sim_queue *q = (lf_sim_queue *)(uintptr_t)args[1];
    event_box *b = (event_box *)(uintptr_t)args[2];
    pthread_mutex_lock(&q->lock);
    lf_sim_fault_text *f = q->for_event;
    q->for_event = NULL;
    pthread_mutex_unlock(&q->lock);
    pthread_mutex_lock(&b->lock);
    lf_sim_fault_text *before = b->fault;
    b->fault = f;
    pthread_mutex_unlock(&b->lock);
    lf_sim_unref_fault(d->base.allocator, before);
    unref_box(d->base.allocator, b);
}

lf_status lf_sim_event_create(lf_device *device, lf_event **out_event) {
    lf_sim_device *d = (lf_sim_device *)device;
    *out_event = NULL;
    lf_sim_event *e = lf_alloc_zero(d->base.allocator, sizeof *e);
    event_box *b = e ? lf_alloc_zero(d->base.allocator, sizeof *b) : NULL;
    lf_status s = b ? lf_sim_inner(d)->event_create(d->inner, &e->inner) : lf_out_of_memory();
    if (s) {
        lf_free(d->base.allocator, b);
        lf_free(d->base.allocator, e);
        return s;
    }
    atomic_init(&b->refs, 1);
    pthread_mutex_init(&b->lock, NULL);
    e->base.device = device;
    e->box = b;
    *out_event = &e->base;
    return NULL;
}

lf_status lf_sim_event_record(lf_event *event, lf_stream *stream) {
    lf_sim_event *e = (lf_sim_event *)event;
    lf_sim_device *d = lf_sim_device_of(stream);
    uint64_t args[] = {(uintptr_t)d, (uintptr_t)lf_sim_stream_of(stream)->queue, (uintptr_t)e->box};
    atomic_fetch_add(&e->box->refs, 1);
    lf_status s = lf_sim_in_order(stream, LF_SIM_TASK_COLLECT, args, 3);
    if (s) {
        unref_box(d->base.allocator, e->box);
        return s;
    }
    return lf_sim_inner(d)->event_record(e->inner, lf_sim_stream_of(stream)->inner);
}

static lf_status event_outcome(const lf_sim_event *e) {
    pthread_mutex_lock(&e->box->lock);
    lf_status s = lf_sim_status_of(e->base.device->allocator, e->box->fault);
    pthread_mutex_unlock(&e->box->lock);
    return s;
}

lf_status lf_sim_event_query(lf_event *event) {
    lf_sim_event *e = (lf_sim_event *)event;
    LF_TRY(lf_sim_inner((lf_sim_device *)event->device)->event_query(e->inner));
    return event_outcome(e);
}

lf_status lf_sim_event_wait(lf_event *event) {
    lf_sim_event *e = (lf_sim_event *)event;
    atomic_fetch_add_explicit(&event->device->stats.syncs, 1, memory_order_relaxed);
    LF_TRY(lf_sim_inner((lf_sim_device *)event->device)->event_wait(e->inner));
    return event_outcome(e);
}

void lf_sim_event_destroy(lf_event *event) {
    if (!event) return;
    lf_sim_event *e = (lf_sim_event *)event;
    const lf_allocator *a = event->device->allocator;
    lf_sim_inner((lf_sim_device *)event->device)->event_destroy(e->inner);
    unref_box(a, e->box);
    lf_free(a, e);
}

lf_status lf_sim_stream_wait_event(lf_stream *stream, lf_event *event) {
    return lf_sim_inner(lf_sim_device_of(stream))
        ->stream_wait_event(lf_sim_stream_of(stream)->inner, ((lf_sim_event *)event)->inner);
}
