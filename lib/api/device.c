// Devices, streams and their memory.
#include "api/api.h"
#include <stdlib.h>
#include <string.h>

lf_status lf_target_parse(const lf_allocator *a, const char *text, lf_target *out) {
    *out = (lf_target){0};
    if (!strcmp(text, "cpu")) return NULL;
    if (!strncmp(text, "cpu:", 4) && strlen(text + 4) < sizeof out->cpu) return strcpy(out->cpu, text + 4), NULL;
    if (!strcmp(text, "sim")) return *out = (lf_target){.kind = LF_TARGET_SIM, .sm = 90}, NULL;
    if (!strncmp(text, "cuda:sm_", 8) || !strcmp(text, "cuda")) {
        out->kind = LF_TARGET_CUDA;
        out->sm = text[4] ? (uint32_t)strtoul(text + 8, NULL, 10) : 90;
        if (out->sm >= 75 && out->sm < 200) return NULL;
        return lf_error(a, LF_UNSUPPORTED, "target '%s': sm_75 is the oldest GPU that is supported", text);
    }
    return lf_error(a, LF_INVALID_ARGUMENT, "unknown target '%s': expected cpu, cpu:x86-64[-v3|-v4], cuda:sm_NN or sim",
                    text);
}

static lf_status open_device(lfuser_context *c, const char *name, lf_device **out) {
    if (!strcmp(name, "cpu")) return lf_cpu_device_create(&c->allocator, &c->log, c->threads, out);
    if (!strcmp(name, "sim")) return lf_sim_device_create(&c->allocator, &c->log, out);
    if (!strncmp(name, "cuda", 4) && (!name[4] || name[4] == ':')) {
        char *end = NULL;
        long ordinal = name[4] ? strtol(name + 5, &end, 10) : 0;
        if (!name[4] || (end && !*end && end != name + 5 && ordinal >= 0 && ordinal < 1024))
            return lf_cuda_device_create(&c->allocator, &c->log, (int)ordinal, out);
    }
    return lf_error(&c->allocator, LF_INVALID_ARGUMENT, "unknown device '%s': expected cpu, cuda, cuda:N or sim", name);
}

lfuser_status lfuser_device_open(lfuser_context *c, const char *name, lfuser_device **out_device) {
    if (out_device) *out_device = NULL;
    if (!c || !name || !out_device)
        return lf_public(lf_error(c ? &c->allocator : &lf_system_allocator, LF_INVALID_ARGUMENT,
                                  "lfuser_device_open: an argument is NULL"));
    lfuser_device *d = lf_alloc_zero(&c->allocator, sizeof *d);
    if (!d) return lf_public(lf_out_of_memory());
    d->handle.is = LF_DEVICE_HANDLE;
    d->context = c;
    d->references = 1;
    pthread_mutex_init(&d->lock, NULL);
    lf_vec_init(&d->orphans, &c->allocator);
    lf_status s = open_device(c, name, &d->device);
    if (!s) s = lf_target_parse(&c->allocator, d->device->info.target, &d->target);
    if (!s) s = lf_mailbox_pool_create(d->device, &d->mailboxes);
    if (!s) s = d->device->ops->event_create(d->device, &d->health);
    if (s) {
        lf_device_release(d);
        return lf_public(s);
    }
    *out_device = d;
    return NULL;
}

void lf_device_retain(lfuser_device *d) {
    if (d) atomic_fetch_add(&d->references, 1);
}

void lf_device_release(lfuser_device *d) {
    if (!d || atomic_fetch_sub(&d->references, 1) != 1) return;
    lf_vec_finish(&d->orphans);
    lf_completions_free(d);
    lf_spares *const spares[] = {&d->spare_pendings, &d->spare_finishes, &d->spare_tensors};
    for (unsigned i = 0; i < sizeof spares / sizeof *spares; i++)
        for (void *spare; (spare = lf_spares_take(spares[i]));) lf_free(&d->context->allocator, spare);
    if (d->health) d->device->ops->event_destroy(d->health);
    if (d->mailboxes) lf_mailbox_pool_destroy(d->mailboxes);
    if (d->device) d->device->ops->destroy(d->device);
    pthread_mutex_destroy(&d->lock);
    lf_bury(d->context, &d->handle, sizeof *d);
}

lf_status lf_device_health(lfuser_device *d) { return d->device->ops->event_query(d->health); }

void lfuser_device_close(lfuser_device *device) {
    if (lf_end_handle(device, LF_DEVICE_HANDLE)) lf_device_release(device);
}

const char *lfuser_device_description(const lfuser_device *device) {
    return lf_is_handle(device, LF_DEVICE_HANDLE) ? device->device->info.description : "";
}

lfuser_status lfuser_device_stats(const lfuser_device *device, lfuser_stats *out) {
    LF_NEED(device, LF_DEVICE_HANDLE);
    const lfuser_device *d = device;
    size_t size = out && out->size ? out->size : sizeof *out;
    const lf_device_stats *s = &d->device->stats;
    lfuser_stats stats = {.size = sizeof stats,
                          .launches = atomic_load_explicit(&s->launches, memory_order_relaxed),
                          .syncs = atomic_load_explicit(&s->syncs, memory_order_relaxed),
                          .compiles = atomic_load_explicit(&d->compiles, memory_order_relaxed),
                          .kernels_loaded = atomic_load_explicit(&s->kernels_loaded, memory_order_relaxed),
                          .allocations = atomic_load_explicit(&s->allocations, memory_order_relaxed),
                          .bytes_copied = atomic_load_explicit(&s->bytes_copied, memory_order_relaxed),
                          .general_launches = atomic_load_explicit(&d->general_launches, memory_order_relaxed),
                          .background_compiles = atomic_load_explicit(&d->background_compiles, memory_order_relaxed)};
    if (!out)
        return lf_public(lf_error(&d->context->allocator, LF_INVALID_ARGUMENT, "lfuser_device_stats: out_stats is NULL"));
    memcpy(out, &stats, size < sizeof stats ? size : sizeof stats);
    return NULL;
}

// ---- mailboxes -------------------------------------------------------------------------------------------------------------------

static void take_back_orphans(lfuser_device *d) {
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->orphans.count;) {
        if (!lf_mailbox_ready(&d->orphans.data[i])) {
            i++;
            continue;
        }
        lf_mailbox_give(d->mailboxes, &d->orphans.data[i]);
        d->orphans.data[i] = d->orphans.data[--d->orphans.count];
    }
    atomic_store_explicit(&d->n_orphans, (uint32_t)d->orphans.count, memory_order_relaxed);
    pthread_mutex_unlock(&d->lock);
}

lf_status lf_device_take_mailbox(lfuser_device *d, lf_mailbox *out_box) {
    if (atomic_load_explicit(&d->n_orphans, memory_order_relaxed)) take_back_orphans(d);
    return lf_mailbox_take(d->mailboxes, out_box);
}

void lf_device_give_mailbox(lfuser_device *d, lf_mailbox *box, bool written) {
    if (!box->slot) return;
    if (written || lf_mailbox_ready(box)) {
        lf_mailbox_give(d->mailboxes, box);
        return;
    }
    pthread_mutex_lock(&d->lock);
    bool kept = lf_vec_push(&d->orphans, *box);
    atomic_store_explicit(&d->n_orphans, (uint32_t)d->orphans.count, memory_order_relaxed);
    pthread_mutex_unlock(&d->lock);
    (void)kept; // without memory the slot is lost, never handed out too early
}

// ---- streams ---------------------------------------------------------------------------------------------------------------------

static lfuser_status make_stream(lfuser_device *d, bool wrap, void *native, lfuser_stream **out_stream) {
    if (out_stream) *out_stream = NULL;
    if (!d || !out_stream)
        return lf_public(lf_error(d ? &d->context->allocator : &lf_system_allocator, LF_INVALID_ARGUMENT,
                                  "lfuser_stream: an argument is NULL"));
    lfuser_stream *s = lf_alloc_zero(&d->context->allocator, sizeof *s);
    if (!s) return lf_public(lf_out_of_memory());
    *s = (lfuser_stream){.handle = {.is = LF_STREAM_HANDLE}, .device = d, .wrapped = wrap, .references = 1};
    lf_status status = wrap ? d->device->ops->stream_wrap(d->device, native, &s->stream)
                            : d->device->ops->stream_create(d->device, &s->stream);
    if (status) {
        lf_free(&d->context->allocator, s);
        return lf_public(status);
    }
    lf_device_retain(d);
    *out_stream = s;
    return NULL;
}

lfuser_status lfuser_stream_create(lfuser_device *device, lfuser_stream **out_stream) {
    if (device) LF_NEED(device, LF_DEVICE_HANDLE);
    return make_stream(device, false, NULL, out_stream);
}

lfuser_status lfuser_stream_wrap(lfuser_device *device, void *native, lfuser_stream **out_stream) {
    if (device) LF_NEED(device, LF_DEVICE_HANDLE);
    return make_stream(device, true, native, out_stream);
}

void lf_stream_retain(lfuser_stream *s) { atomic_fetch_add(&s->references, 1); }

void lf_stream_release(lfuser_stream *s) {
    if (!s || atomic_fetch_sub(&s->references, 1) != 1) return;
    lfuser_device *d = s->device;
    // While somebody else's stream is captured, nothing that was there before can be freed on it: the pool keeps it to its end.
    if (s->scratch && !d->device->ops->stream_capturing(s->stream)) d->device->ops->memory_free(s->stream, s->scratch);
    d->device->ops->stream_destroy(s->stream);
    lf_bury(d->context, &s->handle, sizeof *s);
    lf_device_release(d);
}

static const lf_device_ops *ops_of(const lfuser_stream *s) { return s->device->device->ops; }

void lfuser_stream_destroy(lfuser_stream *stream) {
    if (lf_end_handle(stream, LF_STREAM_HANDLE)) lf_stream_release(stream);
}

lfuser_status lfuser_stream_synchronize(lfuser_stream *stream) {
    LF_NEED(stream, LF_STREAM_HANDLE);
    return lf_public(ops_of(stream)->stream_synchronize(stream->stream));
}

lfuser_status lfuser_stream_query(lfuser_stream *stream) {
    LF_NEED(stream, LF_STREAM_HANDLE);
    return lf_public(ops_of(stream)->stream_query(stream->stream));
}

lfuser_status lfuser_stream_callback(lfuser_stream *stream, void (*fn)(void *arg), void *arg) {
    LF_NEED(stream, LF_STREAM_HANDLE);
    return lf_public(ops_of(stream)->stream_callback(stream->stream, fn, arg));
}

lfuser_status lfuser_memory_alloc(lfuser_stream *stream, size_t bytes, void **out_pointer) {
    LF_NEED(stream, LF_STREAM_HANDLE);
    return lf_public(ops_of(stream)->memory_alloc(stream->stream, bytes, out_pointer));
}

void lfuser_memory_free(lfuser_stream *stream, void *pointer) {
    if (pointer && lf_is_handle(stream, LF_STREAM_HANDLE)) ops_of(stream)->memory_free(stream->stream, pointer);
}

lfuser_status lfuser_memory_upload(lfuser_stream *stream, void *to, const void *from, size_t bytes) {
    LF_NEED(stream, LF_STREAM_HANDLE);
    return lf_public(ops_of(stream)->memory_copy(stream->stream, to, from, bytes, LF_COPY_HOST_TO_DEVICE));
}

lfuser_status lfuser_memory_download(lfuser_stream *stream, void *to, const void *from, size_t bytes) {
    LF_NEED(stream, LF_STREAM_HANDLE);
    return lf_public(ops_of(stream)->memory_copy(stream->stream, to, from, bytes, LF_COPY_DEVICE_TO_HOST));
}
