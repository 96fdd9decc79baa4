// Streams of the SIM device: those of the inner CPU device, each with the queue of what is to be told of its launches.
#include "runtime/sim/device.h"

static lf_status make_stream(lf_sim_device *d, lf_stream *inner, bool wrapped, lf_stream **out_stream) {
    lf_sim_stream *s = lf_alloc_zero(d->base.allocator, sizeof *s);
    lf_sim_queue *q = s ? lf_sim_find_queue(d, lf_sim_inner(d)->stream_native(inner)) : NULL;
    if (!q) {
        lf_free(d->base.allocator, s);
        lf_sim_inner(d)->stream_destroy(inner);
        return lf_out_of_memory();
    }
    if (!wrapped) lf_sim_forget_faults(d, q); // of an earlier stream at the same address
    *s = (lf_sim_stream){{&d->base}, inner, q, wrapped};
    *out_stream = &s->base;
    return NULL;
}

lf_status lf_sim_stream_create(lf_device *device, lf_stream **out_stream) {
    lf_sim_device *d = (lf_sim_device *)device;
    lf_stream *inner;
    *out_stream = NULL;
    LF_TRY(lf_sim_inner(d)->stream_create(d->inner, &inner));
    return make_stream(d, inner, false, out_stream);
}

lf_status lf_sim_stream_wrap(lf_device *device, void *native, lf_stream **out_stream) {
    lf_sim_device *d = (lf_sim_device *)device;
    lf_stream *inner;
    *out_stream = NULL;
    LF_TRY(lf_sim_inner(d)->stream_wrap(d->inner, native, &inner));
    return make_stream(d, inner, true, out_stream);
}

void *lf_sim_stream_native(lf_stream *stream) {
    return lf_sim_inner(lf_sim_device_of(stream))->stream_native(lf_sim_stream_of(stream)->inner);
}

void lf_sim_stream_destroy(lf_stream *stream) {
    if (!stream) return;
    lf_sim_device *d = lf_sim_device_of(stream);
    lf_sim_inner(d)->stream_destroy(lf_sim_stream_of(stream)->inner); // waits, unless wrapped
    lf_sim_drop_queue(d, lf_sim_stream_of(stream)->queue, !lf_sim_stream_of(stream)->wrapped);
    lf_free(d->base.allocator, stream);
}

lf_status lf_sim_stream_synchronize(lf_stream *stream) {
    lf_sim_device *d = lf_sim_device_of(stream);
    lf_sim_queue *q = lf_sim_stream_of(stream)->queue;
    atomic_fetch_add_explicit(&d->base.stats.syncs, 1, memory_order_relaxed);
    LF_TRY(lf_sim_inner(d)->stream_synchronize(lf_sim_stream_of(stream)->inner));
    pthread_mutex_lock(&q->lock);
    lf_sim_fault_text *f = q->for_synchronize;
    q->for_synchronize = NULL;
    pthread_mutex_unlock(&q->lock);
    lf_status s = lf_sim_status_of(d->base.allocator, f);
    lf_sim_unref_fault(d->base.allocator, f);
    return s;
}

lf_status lf_sim_stream_query(lf_stream *stream) {
    return lf_sim_inner(lf_sim_device_of(stream))->stream_query(lf_sim_stream_of(stream)->inner);
}

lf_status lf_sim_stream_callback(lf_stream *stream, void (*fn)(void *arg), void *arg) {
    return lf_sim_inner(lf_sim_device_of(stream))->stream_callback(lf_sim_stream_of(stream)->inner, fn, arg);
}

bool lf_sim_stream_capturing(lf_stream *stream) {
    (void)stream;
    return false;
}

// Runs task `number` of the device in the order of the stream.
lf_status lf_sim_in_order(lf_stream *stream, unsigned number, const uint64_t *args, uint32_t n_args) {
    lf_sim_device *d = lf_sim_device_of(stream);
    return lf_sim_inner(d)->launch(
        lf_sim_stream_of(stream)->inner,
        &(lf_launch){.kernel = d->tasks[number], .args = args, .n_args = n_args, .items = 1, .grain = 1});
}
