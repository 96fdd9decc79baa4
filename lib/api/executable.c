// Executables: host code at once, kernels by class when they are first needed.
#include "api/api.h"
#include "runtime/fpstate.h"
#include <string.h>

static lf_status invalid(const lfuser_context *c, const char *what) {
    return lf_error(c ? &c->allocator : &lf_system_allocator, LF_INVALID_ARGUMENT, "%s", what);
}

// ---- frames ------------------------------------------------------------------------------------------------------------------------

static void free_frame(lfuser_executable *e, lf_frame *f) { lf_free(&e->context->allocator, f); }

lf_frame *lf_frame_take(lfuser_executable *e) {
    for (unsigned i = 0; i < LF_FRAMES; i++) {
        if (!atomic_load_explicit(&e->frames[i], memory_order_relaxed)) continue;
        lf_frame *f = atomic_exchange_explicit(&e->frames[i], NULL, memory_order_acquire);
        if (f) return f;
    }
    const lfuser_abi_program *abi = &e->program->abi;
    size_t slots = (abi->n_slots + 1u) * sizeof(uint64_t), planned = (abi->n_launches + 1u) * sizeof(lf_planned);
    size_t boxes = (abi->n_fetches + 1u) * sizeof(lf_mailbox), arrivals = (abi->n_arrivals + 1u) * sizeof(lfuser_pending *),
           launches = e->replay_from ? 2 * abi->n_launches * sizeof(lf_launch) : 0;
    lf_frame *f = lf_alloc_zero(&e->context->allocator, sizeof *f + 2 * slots + planned + boxes + arrivals + launches);
    if (!f) return NULL;
    f->slots = (uint64_t *)(f + 1);
    f->args = f->slots + abi->n_slots + 1;
    f->planned = (lf_planned *)(f->args + abi->n_slots + 1);
    f->boxes = (lf_mailbox *)(f->planned + abi->n_launches + 1);
    f->arrivals = (lfuser_pending **)(f->boxes + abi->n_fetches + 1);
    f->launches = (lf_launch *)(f->arrivals + abi->n_arrivals + 1);
    return f;
}

void lf_frame_give(lfuser_executable *e, lf_frame *f) {
    for (unsigned i = 0; i < LF_FRAMES; i++) {
        lf_frame *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&e->frames[i], &none, f, memory_order_release, memory_order_relaxed))
            return;
    }
    free_frame(e, f);
}

// ---- streams that runs used --------------------------------------------------------------------------------------------------------

// A stream in one of these places stays known as long as the executable, so a stale look does no harm.
static bool is_known(lfuser_executable *e, const lfuser_stream *s) {
    for (unsigned i = 0; i < LF_KNOWN_STREAMS; i++)
        if (atomic_load_explicit(&e->known_streams[i], memory_order_relaxed) == s) return true;
    return false;
}

lf_status lf_executable_note_stream(lfuser_executable *e, lfuser_stream *s) {
    if (is_known(e, s)) return NULL;
    pthread_mutex_lock(&e->lock);
    bool known = false, pushed = true;
    for (size_t i = 0; i < e->streams.count; i++) known |= e->streams.data[i] == s;
    if (!known) {
        pushed = lf_vec_push(&e->streams, s);
        if (pushed) lf_stream_retain(s);
    }
    if (pushed) { // the oldest makes room
        for (unsigned i = LF_KNOWN_STREAMS - 1; i > 0; i--)
            atomic_store_explicit(&e->known_streams[i], atomic_load_explicit(&e->known_streams[i - 1], memory_order_relaxed),
                                  memory_order_relaxed);
        atomic_store_explicit(&e->known_streams[0], s, memory_order_relaxed);
    }
    pthread_mutex_unlock(&e->lock);
    return pushed ? NULL : lf_out_of_memory();
}

// ---- creation ----------------------------------------------------------------------------------------------------------------------

static lf_status upload_constants(lfuser_executable *e) {
    const lfuser_abi_program *abi = &e->program->abi;
    if (!abi->n_constants) return NULL;
    const lf_device_ops *ops = e->device->device->ops;
    e->constants = lf_alloc_zero(&e->context->allocator, abi->n_constants * sizeof *e->constants);
    if (!e->constants) return lf_out_of_memory();
    LF_TRY(lf_private(lfuser_stream_create(e->device, &e->constant_stream)));
    lf_stream *stream = e->constant_stream->stream;
    for (uint32_t i = 0; i < abi->n_constants; i++) {
        LF_TRY(ops->memory_alloc(stream, abi->constants[i].bytes, &e->constants[i]));
        if (abi->constants[i].bytes)
            LF_TRY(ops->memory_copy(stream, e->constants[i], abi->constants[i].data, abi->constants[i].bytes,
                                    LF_COPY_HOST_TO_DEVICE));
    }
    return ops->stream_synchronize(stream);
}

static bool is_host_only(const lfuser_abi_program *abi) {
    bool only = !abi->n_launches && abi->n_stages == 1 && abi->n_slots <= LF_HOST_SLOTS;
    for (uint32_t i = 0; i < abi->n_params; i++) only &= abi->params[i].kind == LFUSER_ABI_SCALAR;
    for (uint32_t i = 0; i < abi->n_outputs; i++) only &= abi->outputs[i].kind == LFUSER_ABI_SCALAR;
    return only;
}

static lf_status build(lfuser_executable *e) {
    pthread_mutex_lock(&e->fusion->lock);
    lf_status s = lf_context_plan(e->context, e->fusion->graph, e->debug, e->options.fast, &e->program);
    bool compiled = false;
    if (!s) s = lf_loaded_get(e->context, &(lf_loaded_request){.program = e->program}, &e->host_code, &compiled);
    pthread_mutex_unlock(&e->fusion->lock);
    if (s) return s;
    e->host = e->host_code->object;
    const lfuser_abi_program *abi = &e->program->abi;
    e->host_only = is_host_only(abi);
    for (uint32_t i = 0; i < abi->n_outputs; i++) e->delivers |= abi->outputs[i].kind == LFUSER_ABI_PENDING;
    if (abi->n_launches && !e->device)
        return lf_error(&e->context->allocator, LF_INVALID_ARGUMENT,
                        "@%s has device work (%u kernels): a device is needed to compile it", abi->name, abi->n_launches);
    if (e->device && compiled) atomic_fetch_add_explicit(&e->device->compiles, 1, memory_order_relaxed);
    e->kernels = lf_alloc_zero(&e->context->allocator, (abi->n_kernels + 1) * sizeof *e->kernels);
    if (!e->kernels) return lf_out_of_memory();
    return upload_constants(e);
}

lfuser_status lfuser_fusion_compile(lfuser_fusion *f, lfuser_device *device, const lfuser_compile_options *options,
                                    lfuser_executable **out_executable) {
    if (out_executable) *out_executable = NULL;
    if (!f || !out_executable) return lf_public(invalid(NULL, "lfuser_fusion_compile: an argument is NULL"));
    LF_NEED(f, LF_FUSION_HANDLE);
    if (device) LF_NEED(device, LF_DEVICE_HANDLE);
    if (device && device->context != f->context)
        return lf_public(invalid(f->context, "lfuser_fusion_compile: device and fusion are of different contexts"));
    lfuser_compile_options given = {0};
    if (options) memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    if (given.sync != LFUSER_ALLOW_SYNC) {
        lf_status waits = lf_fusion_no_sync(f);
        if (waits) return lf_public(waits);
    }
    uint32_t debug = f->context->debug;
    if (given.debug) {
        lf_status unknown = lf_debug_parse(&f->context->allocator, given.debug, &debug);
        if (unknown) return lf_public(unknown);
    }
    lfuser_executable *e = lf_alloc_zero(&f->context->allocator, sizeof *e);
    if (!e) return lf_public(lf_out_of_memory());
    e->handle.is = LF_EXECUTABLE_HANDLE;
    e->context = f->context;
    e->fusion = f;
    e->device = device;
    e->options.fast = given.math == LFUSER_MATH_FAST;
    e->debug = debug;
    e->options.debug = debug & LF_DEBUG_OF_CODE;
    e->check_pointers = given.check_pointers;
    e->never_wait = given.wait == LFUSER_NEVER_WAIT;
    e->replay_from = device && device->device->ops->replay ? given.replay_from : 0;
    lf_fusion_retain(f);
    lf_device_retain(device);
    pthread_mutex_init(&e->lock, NULL);
    lf_vec_init(&e->streams, &e->context->allocator);
    lf_vec_init(&e->more_unread, &e->context->allocator);
    lf_vec_init(&e->captured, &e->context->allocator);
    e->references = 1;
    lf_fpstate fp = lf_fp_enter(); // the compiler folds constants
    lf_status s = build(e);
    if (!s && e->never_wait && e->device) s = lf_executable_compile_classes(e, true);
    lf_fp_leave(fp);
    if (s) {
        lfuser_executable_destroy(e);
        return lf_public(s);
    }
    *out_executable = e;
    return NULL;
}

void lfuser_executable_destroy(lfuser_executable *e) {
    if (!lf_end_handle(e, LF_EXECUTABLE_HANDLE)) return;
    if (e->never_wait) lf_workers_forget(&e->context->workers, e);
    for (size_t i = 0; i < e->streams.count; i++) {
        lf_stream *s = e->streams.data[i]->stream;
        lf_status status = s->device->ops->stream_synchronize(s);
        if (status) lf_log_write(&e->context->log, LF_LOG_ERROR, "destroying an executable: %s", lf_status_message(status));
        lf_status_destroy(status);
        lf_stream_release(e->streams.data[i]);
    }
    if (e->replay_from) lf_executable_free_replays(e);
    lf_executable_drop_unread(e);
    if (e->program) {
        for (uint32_t i = 0; e->constants && e->constant_stream && i < e->program->abi.n_constants; i++)
            e->device->device->ops->memory_free(e->constant_stream->stream, e->constants[i]);
        lf_free(&e->context->allocator, e->constants);
        lfuser_stream_destroy(e->constant_stream);
        for (uint32_t i = 0; e->kernels && i < e->program->abi.n_kernels; i++)
            for (unsigned v = 0; v < LF_MAX_CLASSES; v++) lf_variant_free(e, atomic_load(&e->kernels[i].variants[v]));
    }
    for (unsigned i = 0; i < LF_FRAMES; i++) free_frame(e, atomic_load(&e->frames[i]));
    lf_free(&e->context->allocator, e->kernels);
    lf_vec_finish(&e->streams);
    pthread_mutex_destroy(&e->lock);
    lf_device_release(e->device);
    lf_executable_release(e);
}

void lf_executable_retain(lfuser_executable *e) { atomic_fetch_add(&e->references, 1); }

void lf_executable_release(lfuser_executable *e) {
    if (!e || atomic_fetch_sub(&e->references, 1) != 1) return;
    lf_loaded_release(e->context, e->host_code);
    lf_program_destroy(e->program);
    lf_fusion_release(e->fusion);
    lf_bury(e->context, &e->handle, sizeof *e);
}

// ---- what it takes and gives ---------------------------------------------------------------------------------------------------------

size_t lfuser_executable_n_params(const lfuser_executable *e) {
    return lf_is_handle(e, LF_EXECUTABLE_HANDLE) ? e->program->abi.n_params : 0;
}
size_t lfuser_executable_n_outputs(const lfuser_executable *e) {
    return lf_is_handle(e, LF_EXECUTABLE_HANDLE) ? e->program->abi.n_outputs : 0;
}

lfuser_status lfuser_executable_param(const lfuser_executable *e, size_t index, lfuser_value_info *out) {
    LF_NEED(e, LF_EXECUTABLE_HANDLE);
    if (!out || index >= e->program->abi.n_params)
        return lf_public(invalid(e->context, "lfuser_executable_param: no such parameter"));
    const lfuser_abi_param *p = &e->program->abi.params[index];
    *out = (lfuser_value_info){p->name, (lfuser_kind)p->kind, (lfuser_dtype)p->dtype, p->rank, -1};
    return NULL;
}

lfuser_status lfuser_executable_output(const lfuser_executable *e, size_t index, lfuser_value_info *out) {
    LF_NEED(e, LF_EXECUTABLE_HANDLE);
    if (!out || index >= e->program->abi.n_outputs)
        return lf_public(invalid(e->context, "lfuser_executable_output: no such output"));
    const lfuser_abi_output *o = &e->program->abi.outputs[index];
    *out = (lfuser_value_info){o->name, (lfuser_kind)o->kind, (lfuser_dtype)o->dtype, o->rank,
                               o->into == LFUSER_ABI_NONE ? -1 : (int32_t)o->into};
    return NULL;
}
