// The SIM device: its table of operations. Order, asynchrony and events are an inner CPU device's: each launch, and whatever else must
// happen in stream order, is a kernel of that device with one work item. What is added: memory that is known by address, launches that are
// simulated, and faults.
//
// A fault stays with the stream's queue until it is told: to the next event recorded there (so that the run's completion reports it), and
// to the next synchronisation of the stream. Later launches run all the same.
#include "runtime/fpstate.h"
#include "runtime/sim/sim.h"
#include <stdio.h>
#include <string.h>

// A fault's text, shared by all who will tell of it.
typedef struct fault_text {
    _Atomic uint32_t refs;
    bool no_memory;
    char text[768];
} fault_text;

struct lf_sim_queue {
    lf_sim_queue *next;
    void *native;  // of the inner stream
    uint32_t refs; // device's lock: streams
    pthread_mutex_t lock;
    fault_text *for_event, *for_synchronize; // owned references
};

typedef struct lf_sim_stream {
    lf_stream base;
    lf_stream *inner; // owned
    lf_sim_queue *queue;
    bool wrapped;
} lf_sim_stream;

typedef struct lf_sim_kernel {
    lf_kernel base;
    lf_kernel *inner; // owned: keeps the code until its last launch is over
    const lf_sim_program *program;
} lf_sim_kernel;

// What an event was recorded with: lives until the recording has been reached.
typedef struct event_box {
    _Atomic uint32_t refs;
    pthread_mutex_t lock;
    fault_text *fault; // owned reference
} event_box;

typedef struct lf_sim_event {
    lf_event base;
    lf_event *inner; // owned
    event_box *box;  // owned reference
} lf_sim_event;

enum { TASK_COLLECT, TASK_FREE };

static lf_sim_device *device_of(lf_stream *stream) { return (lf_sim_device *)stream->device; }
static lf_sim_stream *stream_of(lf_stream *stream) { return (lf_sim_stream *)stream; }
static const lf_device_ops *inner_ops(const lf_sim_device *d) { return d->inner->ops; }

// ---- faults ------------------------------------------------------------------------------------------------------------------

static void unref_fault(const lf_allocator *a, fault_text *f) {
    if (f && atomic_fetch_sub(&f->refs, 1) == 1) lf_free(a, f);
}

static void put_fault(const lf_allocator *a, lf_sim_queue *q, const lf_sim_run *r) {
    fault_text *f = lf_alloc_zero(a, sizeof *f);
    if (!f) return; // no memory to tell of it: the outputs stay unwritten
    atomic_init(&f->refs, 2);
    snprintf(f->text, sizeof f->text, "%s", r->text);
    f->no_memory = r->no_memory;
    pthread_mutex_lock(&q->lock);
    bool event = !q->for_event, synchronize = !q->for_synchronize; // the first one is told
    if (event) q->for_event = f;
    if (synchronize) q->for_synchronize = f;
    pthread_mutex_unlock(&q->lock);
    if (!event) unref_fault(a, f);
    if (!synchronize) unref_fault(a, f);
}

static lf_status status_of(const lf_allocator *a, const fault_text *f) {
    if (!f) return NULL;
    return f->no_memory ? lf_out_of_memory() : lf_error(a, LF_DEVICE_ERROR, "%s", f->text);
}

// ---- queues ------------------------------------------------------------------------------------------------------------------

static lf_sim_queue *find_queue(lf_sim_device *d, void *native) {
    pthread_mutex_lock(&d->lock);
    lf_sim_queue *q = d->queues;
    while (q && q->native != native) q = q->next;
    if (!q && (q = lf_alloc_zero(d->base.allocator, sizeof *q))) {
        q->native = native;
        pthread_mutex_init(&q->lock, NULL);
        q->next = d->queues;
        d->queues = q;
    }
    if (q) q->refs++;
    pthread_mutex_unlock(&d->lock);
    return q;
}

static void forget_faults(lf_sim_device *d, lf_sim_queue *q) {
    pthread_mutex_lock(&q->lock);
    unref_fault(d->base.allocator, q->for_event);
    unref_fault(d->base.allocator, q->for_synchronize);
    q->for_event = q->for_synchronize = NULL;
    pthread_mutex_unlock(&q->lock);
}

// Without `idle` the queue stays for work that still refers to it, and for the next stream there.
static void drop_queue(lf_sim_device *d, lf_sim_queue *q, bool idle) {
    pthread_mutex_lock(&d->lock);
    bool last = --q->refs == 0 && idle;
    for (lf_sim_queue **at = &d->queues; last && *at; at = &(*at)->next)
        if (*at == q) {
            *at = q->next;
            break;
        }
    pthread_mutex_unlock(&d->lock);
    if (!last) return;
    forget_faults(d, q);
    pthread_mutex_destroy(&q->lock);
    lf_free(d->base.allocator, q);
}

static lf_status make_stream(lf_sim_device *d, lf_stream *inner, bool wrapped, lf_stream **out_stream) {
    lf_sim_stream *s = lf_alloc_zero(d->base.allocator, sizeof *s);
    lf_sim_queue *q = s ? find_queue(d, inner_ops(d)->stream_native(inner)) : NULL;
    if (!q) {
        lf_free(d->base.allocator, s);
        inner_ops(d)->stream_destroy(inner);
        return lf_out_of_memory();
    }
    if (!wrapped) forget_faults(d, q); // of an earlier stream at the same address
    *s = (lf_sim_stream){{&d->base}, inner, q, wrapped};
    *out_stream = &s->base;
    return NULL;
}

static lf_status stream_create(lf_device *device, lf_stream **out_stream) {
    lf_sim_device *d = (lf_sim_device *)device;
    lf_stream *inner;
    *out_stream = NULL;
    LF_TRY(inner_ops(d)->stream_create(d->inner, &inner));
    return make_stream(d, inner, false, out_stream);
}

static lf_status stream_wrap(lf_device *device, void *native, lf_stream **out_stream) {
    lf_sim_device *d = (lf_sim_device *)device;
    lf_stream *inner;
    *out_stream = NULL;
    LF_TRY(inner_ops(d)->stream_wrap(d->inner, native, &inner));
    return make_stream(d, inner, true, out_stream);
}

static void *stream_native(lf_stream *stream) {
    return inner_ops(device_of(stream))->stream_native(stream_of(stream)->inner);
}

static void stream_destroy(lf_stream *stream) {
    if (!stream) return;
    lf_sim_device *d = device_of(stream);
    inner_ops(d)->stream_destroy(stream_of(stream)->inner); // waits, unless wrapped
    drop_queue(d, stream_of(stream)->queue, !stream_of(stream)->wrapped);
    lf_free(d->base.allocator, stream);
}

static lf_status stream_synchronize(lf_stream *stream) {
    lf_sim_device *d = device_of(stream);
    lf_sim_queue *q = stream_of(stream)->queue;
    atomic_fetch_add_explicit(&d->base.stats.syncs, 1, memory_order_relaxed);
    LF_TRY(inner_ops(d)->stream_synchronize(stream_of(stream)->inner));
    pthread_mutex_lock(&q->lock);
    fault_text *f = q->for_synchronize;
    q->for_synchronize = NULL;
    pthread_mutex_unlock(&q->lock);
    lf_status s = status_of(d->base.allocator, f);
    unref_fault(d->base.allocator, f);
    return s;
}

static lf_status stream_query(lf_stream *stream) {
    return inner_ops(device_of(stream))->stream_query(stream_of(stream)->inner);
}

static lf_status stream_callback(lf_stream *stream, void (*fn)(void *arg), void *arg) {
    return inner_ops(device_of(stream))->stream_callback(stream_of(stream)->inner, fn, arg);
}

static bool stream_capturing(lf_stream *stream) {
    (void)stream;
    return false;
}

// Runs task `number` of the device in the order of the stream.
static lf_status in_order(lf_stream *stream, unsigned number, const uint64_t *args, uint32_t n_args) {
    lf_sim_device *d = device_of(stream);
    return inner_ops(d)->launch(
        stream_of(stream)->inner,
        &(lf_launch){.kernel = d->tasks[number], .args = args, .n_args = n_args, .items = 1, .grain = 1});
}

// ---- events ------------------------------------------------------------------------------------------------------------------

static void unref_box(const lf_allocator *a, event_box *b) {
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1) return;
    unref_fault(a, b->fault);
    pthread_mutex_destroy(&b->lock);
    lf_free(a, b);
}

// In stream order: what went wrong before goes to the event.
static void collect(const uint64_t *args, uint64_t begin, uint64_t end) {
    (void)begin, (void)end;
    lf_sim_device *d = (lf_sim_device *)(uintptr_t)args[0];
    lf_sim_queue *q = (lf_sim_queue *)(uintptr_t)args[1];
    event_box *b = (event_box *)(uintptr_t)args[2];
    pthread_mutex_lock(&q->lock);
    fault_text *f = q->for_event;
    q->for_event = NULL;
    pthread_mutex_unlock(&q->lock);
    pthread_mutex_lock(&b->lock);
    fault_text *before = b->fault;
    b->fault = f;
    pthread_mutex_unlock(&b->lock);
    unref_fault(d->base.allocator, before);
    unref_box(d->base.allocator, b);
}

static lf_status event_create(lf_device *device, lf_event **out_event) {
    lf_sim_device *d = (lf_sim_device *)device;
    *out_event = NULL;
    lf_sim_event *e = lf_alloc_zero(d->base.allocator, sizeof *e);
    event_box *b = e ? lf_alloc_zero(d->base.allocator, sizeof *b) : NULL;
    lf_status s = b ? inner_ops(d)->event_create(d->inner, &e->inner) : lf_out_of_memory();
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

static lf_status event_record(lf_event *event, lf_stream *stream) {
    lf_sim_event *e = (lf_sim_event *)event;
    lf_sim_device *d = device_of(stream);
    uint64_t args[] = {(uintptr_t)d, (uintptr_t)stream_of(stream)->queue, (uintptr_t)e->box};
    atomic_fetch_add(&e->box->refs, 1);
    lf_status s = in_order(stream, TASK_COLLECT, args, 3);
    if (s) {
        unref_box(d->base.allocator, e->box);
        return s;
    }
    return inner_ops(d)->event_record(e->inner, stream_of(stream)->inner);
}

static lf_status event_outcome(const lf_sim_event *e) {
    pthread_mutex_lock(&e->box->lock);
    lf_status s = status_of(e->base.device->allocator, e->box->fault);
    pthread_mutex_unlock(&e->box->lock);
    return s;
}

static lf_status event_query(lf_event *event) {
    lf_sim_event *e = (lf_sim_event *)event;
    LF_TRY(inner_ops((lf_sim_device *)event->device)->event_query(e->inner));
    return event_outcome(e);
}

static lf_status event_wait(lf_event *event) {
    lf_sim_event *e = (lf_sim_event *)event;
    atomic_fetch_add_explicit(&event->device->stats.syncs, 1, memory_order_relaxed);
    LF_TRY(inner_ops((lf_sim_device *)event->device)->event_wait(e->inner));
    return event_outcome(e);
}

static void event_destroy(lf_event *event) {
    if (!event) return;
    lf_sim_event *e = (lf_sim_event *)event;
    const lf_allocator *a = event->device->allocator;
    inner_ops((lf_sim_device *)event->device)->event_destroy(e->inner);
    unref_box(a, e->box);
    lf_free(a, e);
}

static lf_status stream_wait_event(lf_stream *stream, lf_event *event) {
    return inner_ops(device_of(stream))->stream_wait_event(stream_of(stream)->inner, ((lf_sim_event *)event)->inner);
}

// ---- memory ------------------------------------------------------------------------------------------------------------------

// False: a launch is running.
static bool trim(lf_sim_device *d, size_t most) {
    if (pthread_mutex_trylock(&d->running)) return false;
    lf_sim_memory_trim(&d->memory, most);
    pthread_mutex_unlock(&d->running);
    return true;
}

static lf_status memory_alloc(lf_stream *stream, size_t bytes, void **out_pointer) {
    lf_sim_device *d = device_of(stream);
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

static void free_in_order(const uint64_t *args, uint64_t begin, uint64_t end) {
    (void)begin, (void)end;
    give_back((lf_sim_device *)(uintptr_t)args[0], (void *)(uintptr_t)args[1]);
}

static void memory_free(lf_stream *stream, void *pointer) {
    lf_sim_device *d = device_of(stream);
    uint64_t args[] = {(uintptr_t)d, (uintptr_t)pointer};
    if (!pointer) return;
    lf_status s = in_order(stream, TASK_FREE, args, 2);
    if (!s) return;
    // Out of memory for a few words: waiting is the only way left.
    lf_log_write(&d->base.log, LF_LOG_WARNING, "waits for a stream in order to free memory: %s", lf_status_message(s));
    lf_status_destroy(s);
    s = inner_ops(d)->stream_synchronize(stream_of(stream)->inner);
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

static lf_status memory_copy(lf_stream *stream, void *to, const void *from, size_t bytes, lf_copy_kind kind) {
    lf_sim_device *d = device_of(stream);
    if (!bytes) return NULL;
    if (kind != LF_COPY_DEVICE_TO_HOST) LF_TRY(check_range(d, to, bytes, "copy to the device"));
    if (kind != LF_COPY_HOST_TO_DEVICE) LF_TRY(check_range(d, from, bytes, "copy from the device"));
    atomic_fetch_add_explicit(&d->base.stats.bytes_copied, bytes, memory_order_relaxed);
    return inner_ops(d)->memory_copy(stream_of(stream)->inner, to, from, bytes, kind);
}

static lf_status memory_fill(lf_stream *stream, void *to, uint8_t byte, size_t bytes) {
    lf_sim_device *d = device_of(stream);
    if (!bytes) return NULL;
    LF_TRY(check_range(d, to, bytes, "fill"));
    return inner_ops(d)->memory_fill(stream_of(stream)->inner, to, byte, bytes);
}

static lf_status memory_where(lf_device *device, const void *pointer, int *out_type, int *out_ordinal) {
    lf_sim_allocation a;
    uintptr_t address = (uintptr_t)pointer;
    bool ours = lf_sim_memory_find(&((lf_sim_device *)device)->memory, address, &a) && !a.freed &&
                a.kind == LF_SIM_DEVICE_MEMORY && address - a.begin < a.bytes;
    *out_type = ours ? LF_DEVICE_SIM : LF_DEVICE_CPU;
    *out_ordinal = 0;
    return NULL;
}

static lf_status mapped_alloc(lf_device *device, size_t bytes, void **out_host, void **out_device) {
    *out_host = *out_device = NULL;
    if (!bytes) return NULL;
    void *p = lf_sim_memory_take(&((lf_sim_device *)device)->memory, bytes, LF_SIM_MAPPED_MEMORY);
    if (!p && trim((lf_sim_device *)device, 0))
        p = lf_sim_memory_take(&((lf_sim_device *)device)->memory, bytes, LF_SIM_MAPPED_MEMORY);
    if (!p) return lf_error(device->allocator, LF_OUT_OF_MEMORY, "cannot allocate %zu bytes of mapped memory", bytes);
    *out_host = *out_device = p;
    return NULL;
}

static void mapped_free(lf_device *device, void *host) {
    if (host) give_back((lf_sim_device *)device, host);
}

// ---- kernels -----------------------------------------------------------------------------------------------------------------

// Words before the argument block of a launch, on their way through the inner device.
enum { HEAD_DEVICE, HEAD_QUEUE, HEAD_PROGRAM, HEAD_GRID, HEAD_BLOCK, HEAD_SHARED, HEAD_WORDS };

// Whoever waits for a mailbox that the launch was to write must not wait for ever.
static void release_mailboxes(lf_sim_device *d, const uint64_t *words, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        lf_sim_allocation a;
        if (!lf_sim_memory_find(&d->memory, (uintptr_t)words[i], &a) || a.freed || a.kind != LF_SIM_MAPPED_MEMORY) continue;
        uint64_t at = words[i] - a.begin;
        if (at >= a.bytes || at % sizeof(lf_mailbox_slot)) continue;
        atomic_fetch_add_explicit(&((lf_mailbox_slot *)(uintptr_t)words[i])->sequence, 1, memory_order_release);
    }
}

static bool make_room(lf_sim_device *d) {
    const lf_allocator *a = d->base.allocator;
    if (!d->threads) d->threads = lf_alloc_zero(a, LF_SIM_MAX_BLOCK * sizeof *d->threads);
    if (!d->shared) d->shared = lf_alloc_zero(a, LF_SIM_MAX_SHARED + 128);
    if (!d->bytes) d->bytes = lf_alloc_zero(a, LF_SIM_MAX_SHARED * sizeof *d->bytes);
    return d->threads && d->shared && d->bytes;
}

static void execute(lf_sim_run *r) {
    lf_sim_device *d = r->device;
    for (uint32_t i = 0; i < r->block; i++)
        if (!d->threads[i].copies.allocator) lf_vec_init(&d->threads[i].copies, d->base.allocator);
    r->threads = d->threads;
    r->launch = ++d->launches ? d->launches : ++d->launches;
    if (r->grid > 1) {
        r->released = lf_alloc_zero(d->base.allocator, r->grid * sizeof *r->released);
        if (!r->released) {
            lf_sim_note_fault(r, NULL, LF_SIM_OUT_OF_MEMORY, UINT32_MAX, "for its blocks");
            return;
        }
    }
    lf_fpstate fp = lf_fp_enter();
    lf_sim_run_launch(r);
    lf_fp_leave(fp);
    lf_free(d->base.allocator, r->released);
}

// On whatever thread the inner device runs its work.
static void launch_in_order(const uint64_t *args, uint64_t begin, uint64_t end) {
    (void)begin, (void)end;
    lf_sim_device *d = (lf_sim_device *)(uintptr_t)args[HEAD_DEVICE];
    const lf_sim_program *p = (const lf_sim_program *)(uintptr_t)args[HEAD_PROGRAM];
    const char *here = (const char *)p;
    const lf_sim_code code = {.entry = (void (*)(lf_sim_thread *, const uint64_t *))(uintptr_t)(here + p->entry),
                              .texts = here + p->texts,
                              .sites = (const lf_sim_site *)(const void *)(here + p->sites),
                              .shared = (const lf_sim_shared *)(const void *)(here + p->shared),
                              .name = p->name,
                              .n_sites = p->n_sites,
                              .n_shared = p->n_shared,
                              .shared_bytes = p->shared_bytes};
    uint32_t dynamic = (uint32_t)args[HEAD_SHARED];
    lf_sim_run r = {.device = d,
                    .program = &code,
                    .args = args + HEAD_WORDS,
                    .words = args + HEAD_WORDS,
                    .n_args = (uint32_t)(args[HEAD_GRID] >> 32),
                    .grid = (uint32_t)args[HEAD_GRID],
                    .block = (uint32_t)args[HEAD_BLOCK],
                    .shared_bytes = p->shared_bytes + dynamic};
    pthread_mutex_lock(&d->running);
    lf_sim_memory_trim(&d->memory, LF_SIM_MOST_FREED);
    if (make_room(d))
        execute(&r);
    else
        lf_sim_note_fault(&r, NULL, LF_SIM_OUT_OF_MEMORY, UINT32_MAX, "for its threads");
    pthread_mutex_unlock(&d->running);
    if (!r.faulted) return;
    put_fault(d->base.allocator, (lf_sim_queue *)(uintptr_t)args[HEAD_QUEUE], &r);
    release_mailboxes(d, r.words, r.n_args);
}

static lf_status load_native(lf_sim_device *d, const char *entry, lf_native_kernel fn, const lf_image *of,
                             lf_kernel **out_kernel) {
    lf_image image = {.kind = LF_IMAGE_NATIVE, .entry = entry, .address = (void *)fn};
    if (of) image.release = of->release, image.release_arg = of->release_arg;
    return inner_ops(d)->kernel_load(d->inner, &image, out_kernel);
}

static lf_status kernel_load(lf_device *device, const lf_image *image, lf_kernel **out_kernel) {
    lf_sim_device *d = (lf_sim_device *)device;
    const lf_sim_program *p = image->address;
    *out_kernel = NULL;
    if (image->kind != LF_IMAGE_NATIVE || !p || p->magic != LF_SIM_MAGIC)
        return lf_error(device->allocator, LF_UNSUPPORTED, "kernel %s: the SIM device runs code that was made for it only",
                        image->entry);
    if (p->shared_bytes > LF_SIM_MAX_SHARED)
        return lf_error(device->allocator, LF_UNSUPPORTED, "kernel %s needs %u bytes of shared memory; sim has %u",
                        image->entry, p->shared_bytes, device->info.max_shared);
    lf_sim_kernel *k = lf_alloc_zero(device->allocator, sizeof *k);
    if (!k) return lf_out_of_memory();
    lf_status s = load_native(d, image->entry, launch_in_order, image, &k->inner);
    if (s) {
        lf_free(device->allocator, k);
        return s;
    }
    k->base.device = device;
    k->program = p;
    atomic_fetch_add_explicit(&device->stats.kernels_loaded, 1, memory_order_relaxed);
    *out_kernel = &k->base;
    return NULL;
}

static void kernel_destroy(lf_kernel *kernel) {
    if (!kernel) return;
    lf_sim_device *d = (lf_sim_device *)kernel->device;
    inner_ops(d)->kernel_destroy(((lf_sim_kernel *)kernel)->inner);
    lf_free(d->base.allocator, kernel);
}

static lf_status check_launch(const lf_device *device, const lf_launch *l) {
    const lf_allocator *a = device->allocator;
    if (l->kernel->device != device)
        return lf_error(a, LF_INVALID_ARGUMENT, "the kernel and the stream belong to different devices");
    if (l->grid > INT32_MAX)
        return lf_error(a, LF_INVALID_ARGUMENT, "a grid of %u blocks; at most %d can be launched", l->grid, INT32_MAX);
    if (!l->block || l->block > LF_SIM_MAX_BLOCK)
        return lf_error(a, LF_INVALID_ARGUMENT, "a block of %u threads; sim takes 1 to %d", l->block, LF_SIM_MAX_BLOCK);
    uint32_t fixed = ((const lf_sim_kernel *)l->kernel)->program->shared_bytes;
    if (l->shared > LF_SIM_MAX_SHARED - fixed)
        return lf_error(a, LF_INVALID_ARGUMENT, "%u bytes of shared memory a block; sim has %d", l->shared,
                        LF_SIM_MAX_SHARED);
    return NULL;
}

static lf_status launch(lf_stream *stream, const lf_launch *l) {
    lf_sim_device *d = device_of(stream);
    if (!l->grid) return NULL;
    LF_TRY(check_launch(stream->device, l));
    const lf_sim_kernel *k = (const lf_sim_kernel *)l->kernel;
    uint64_t few[64], *words = few;
    size_t n = HEAD_WORDS + (size_t)l->n_args;
    if (n > sizeof few / sizeof *few && !(words = lf_alloc(d->base.allocator, n * sizeof *words))) return lf_out_of_memory();
    words[HEAD_DEVICE] = (uintptr_t)d;
    words[HEAD_QUEUE] = (uintptr_t)stream_of(stream)->queue;
    words[HEAD_PROGRAM] = (uintptr_t)k->program;
    words[HEAD_GRID] = (uint64_t)l->n_args << 32 | l->grid;
    words[HEAD_BLOCK] = l->block;
    words[HEAD_SHARED] = l->shared;
    if (l->n_args) memcpy(words + HEAD_WORDS, l->args, l->n_args * sizeof *l->args);
    lf_status s =
        inner_ops(d)->launch(stream_of(stream)->inner,
                             &(lf_launch){.kernel = k->inner, .args = words, .n_args = (uint32_t)n, .items = 1, .grain = 1});
    if (words != few) lf_free(d->base.allocator, words);
    if (!s) atomic_fetch_add_explicit(&d->base.stats.launches, 1, memory_order_relaxed);
    return s;
}

// ---- the device --------------------------------------------------------------------------------------------------------------

static void destroy(lf_device *device) {
    if (!device) return;
    lf_sim_device *d = (lf_sim_device *)device;
    const lf_allocator *a = d->base.allocator;
    for (unsigned i = 0; i < sizeof d->tasks / sizeof *d->tasks; i++)
        if (d->tasks[i]) inner_ops(d)->kernel_destroy(d->tasks[i]); // waits for what is queued
    if (d->inner) inner_ops(d)->destroy(d->inner);
    for (lf_sim_queue *q = d->queues, *next; q; q = next) {
        next = q->next;
        forget_faults(d, q);
        pthread_mutex_destroy(&q->lock);
        lf_free(a, q);
    }
    for (lf_sim_stack *s = d->stacks, *next; s; s = next) {
        next = s->next;
        lf_sim_stack_destroy(a, s);
    }
    for (uint32_t i = 0; d->threads && i < LF_SIM_MAX_BLOCK; i++)
        if (d->threads[i].copies.allocator) lf_vec_finish(&d->threads[i].copies);
    lf_free(a, d->threads);
    lf_free(a, d->shared);
    lf_free(a, d->bytes);
    lf_sim_memory_finish(&d->memory);
    pthread_mutex_destroy(&d->running);
    pthread_mutex_destroy(&d->lock);
    lf_free(a, d);
}

static const lf_device_ops sim_ops = {
    .name = "sim",
    .destroy = destroy,
    .stream_create = stream_create,
    .stream_wrap = stream_wrap,
    .stream_native = stream_native,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_query = stream_query,
    .stream_wait_event = stream_wait_event,
    .stream_callback = stream_callback,
    .stream_capturing = stream_capturing,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .memory_copy = memory_copy,
    .memory_fill = memory_fill,
    .memory_where = memory_where,
    .mapped_alloc = mapped_alloc,
    .mapped_free = mapped_free,
    .kernel_load = kernel_load,
    .kernel_destroy = kernel_destroy,
    .launch = launch,
    .event_create = event_create,
    .event_record = event_record,
    .event_query = event_query,
    .event_wait = event_wait,
    .event_destroy = event_destroy,
};

// As of an H200, so that launches choose what they would choose there.
static const lf_device_info like_h200 = {.target = "sim",
                                         .description = "simulated GPU (the kernels for sm_90, on the CPU, checked)",
                                         .processors = 132,
                                         .threads_a_processor = 2048,
                                         .registers_a_processor = 65536,
                                         .max_block = LF_SIM_MAX_BLOCK,
                                         .max_shared = LF_SIM_MAX_SHARED};

static lf_status fill(lf_sim_device *d, const lf_log *log) {
    static const lf_native_kernel tasks[] = {[TASK_COLLECT] = collect, [TASK_FREE] = free_in_order};
    LF_TRY(lf_cpu_device_create(d->base.allocator, log, 1, &d->inner));
    d->base.info.memory_bytes = d->inner->info.memory_bytes;
    for (unsigned i = 0; i < sizeof tasks / sizeof *tasks; i++) LF_TRY(load_native(d, "task", tasks[i], NULL, &d->tasks[i]));
    return NULL;
}

lf_status lf_sim_device_create(const lf_allocator *a, const lf_log *log, lf_device **out_device) {
    *out_device = NULL;
#if !defined(__x86_64__)
    return lf_error(a, LF_UNAVAILABLE, "the SIM device runs on x86-64 only");
#endif
    lf_sim_device *d = lf_alloc_zero(a, sizeof *d);
    if (!d) return lf_out_of_memory();
    d->base = (lf_device){.ops = &sim_ops, .allocator = a, .type = LF_DEVICE_SIM, .info = like_h200};
    if (log) d->base.log = *log;
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->running, NULL);
    lf_sim_memory_init(&d->memory, a);
    lf_status s = fill(d, log);
    if (s) {
        destroy(&d->base);
        return s;
    }
    *out_device = &d->base;
    return NULL;
}
