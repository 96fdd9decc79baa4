// Work given to streams: run at once on the calling thread where the stream is idle, else queued behind what is there.
#include "runtime/cpu/stream.h"
#include "runtime/fpstate.h"
#include <string.h>

// Copies and fills are split over threads from this many bytes a piece.
enum { COPY_GRAIN = 256 * 1024 };

static lf_cpu_device *device_of(lf_stream *stream) { return (lf_cpu_device *)stream->device; }

// ---- creation

static lf_status new_stream(lf_cpu_device *d, lf_cpu_queue *q, bool wrapped, lf_stream **out_stream) {
    lf_cpu_stream *s = lf_alloc_zero(d->base.allocator, sizeof *s);
    if (!s) return lf_out_of_memory();
    *s = (lf_cpu_stream){.base = {&d->base}, .queue = q, .wrapped = wrapped};
    *out_stream = &s->base;
    return NULL;
}

static void add_queue(lf_cpu_device *d, lf_cpu_queue *q) {
    q->next = d->queues;
    d->queues = q;
}

lf_status lf_cpu_stream_create(lf_device *device, lf_stream **out_stream) {
    *out_stream = NULL;
    lf_cpu_device *d = (lf_cpu_device *)device;
    lf_cpu_queue *q;
    LF_TRY(lf_cpu_queue_create(d, &q));
    q->refs = 1;
    lf_status s = new_stream(d, q, false, out_stream);
    if (s) {
        lf_cpu_queue_destroy(q);
        return s;
    }
    if (lf_cpu_forked(d)) return NULL; // used by its handle alone
    pthread_mutex_lock(&d->lock);
    add_queue(d, q);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static bool is_queue(const lf_cpu_device *d, const void *native) {
    for (const lf_cpu_queue *q = d->queues; q; q = q->next)
        if (q == native) return true;
    return false;
}

// Under the device's lock, except in a forked child.
static lf_status find_queue(lf_cpu_device *d, void *native, lf_cpu_queue **out_queue) {
    *out_queue = NULL;
    if (native) {
        if (!is_queue(d, native))
            return lf_error(d->base.allocator, LF_INVALID_ARGUMENT, "%p is no stream of this CPU device", native);
        *out_queue = native;
        return NULL;
    }
    if (!d->default_queue) {
        lf_cpu_queue *q;
        LF_TRY(lf_cpu_queue_create(d, &q));
        q->refs = 1; // the device's
        add_queue(d, q);
        d->default_queue = q;
    }
    *out_queue = d->default_queue;
    return NULL;
}

static void drop_queue(lf_cpu_device *d, lf_cpu_queue *q) {
    bool forked = lf_cpu_forked(d), last;
    if (!forked) pthread_mutex_lock(&d->lock);
    last = --q->refs == 0;
    if (last) {
        lf_cpu_queue **at = &d->queues;
        while (*at && *at != q) at = &(*at)->next;
        if (*at) *at = q->next;
    }
    if (!forked) pthread_mutex_unlock(&d->lock);
    if (!last) return;
    if (!forked) lf_cpu_queue_wait(q);
    lf_cpu_queue_destroy(q);
}

lf_status lf_cpu_stream_wrap(lf_device *device, void *native, lf_stream **out_stream) {
    *out_stream = NULL;
    lf_cpu_device *d = (lf_cpu_device *)device;
    bool forked = lf_cpu_forked(d);
    lf_cpu_queue *q;
    if (!forked) pthread_mutex_lock(&d->lock);
    lf_status s = find_queue(d, native, &q);
    if (!s) q->refs++;
    if (!forked) pthread_mutex_unlock(&d->lock);
    if (s) return s;
    s = new_stream(d, q, true, out_stream);
    if (s) drop_queue(d, q);
    return s;
}

void *lf_cpu_stream_native(lf_stream *stream) { return lf_cpu_queue_of(stream); }

void lf_cpu_stream_destroy(lf_stream *stream) {
    if (!stream) return;
    lf_cpu_device *d = device_of(stream);
    if (!((lf_cpu_stream *)stream)->wrapped && !lf_cpu_forked(d)) lf_cpu_queue_wait(lf_cpu_queue_of(stream));
    drop_queue(d, lf_cpu_queue_of(stream));
    lf_free(d->base.allocator, stream);
}

// ---- waiting

// Work that the parent had queued at the time of the fork: the child neither has it done nor waits for it.
static lf_status forked_state(lf_cpu_queue *q) {
    if (q->submitted == q->completed) return NULL;
    return lf_error(q->device->base.allocator, LF_UNAVAILABLE,
                    "work given to this stream before fork is not done in the child");
}

lf_status lf_cpu_stream_synchronize(lf_stream *stream) {
    lf_cpu_queue *q = lf_cpu_queue_of(stream);
    atomic_fetch_add_explicit(&stream->device->stats.syncs, 1, memory_order_relaxed);
    if (lf_cpu_forked(q->device)) return forked_state(q);
    lf_cpu_queue_wait(q);
    return NULL;
}

lf_status lf_cpu_stream_query(lf_stream *stream) {
    lf_cpu_queue *q = lf_cpu_queue_of(stream);
    if (lf_cpu_forked(q->device)) return forked_state(q);
    if (atomic_load_explicit(&q->state, memory_order_acquire) == LF_CPU_IDLE) return NULL;
    return lf_not_ready();
}

bool lf_cpu_stream_capturing(lf_stream *stream) {
    (void)stream;
    return false;
}

// ---- tasks

static void copy_piece(const uint64_t *args, uint64_t begin, uint64_t end) {
    memcpy((char *)(uintptr_t)args[0] + begin, (const char *)(uintptr_t)args[1] + begin, end - begin);
}

static void fill_piece(const uint64_t *args, uint64_t begin, uint64_t end) {
    memset((char *)(uintptr_t)args[0] + begin, (int)args[1], end - begin);
}

static void run_kernel(lf_cpu_device *d, lf_native_kernel fn, const uint64_t *args, uint64_t items, uint64_t grain) {
    if (lf_cpu_forked(d))
        fn(args, 0, items);
    else
        lf_cpu_pool_run(&d->pool, fn, args, items, grain);
}

static void copy(lf_cpu_device *d, void *to, const void *from, size_t bytes) {
    uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;
    uint64_t args[] = {a, b};
    if (a < b + bytes && b < a + bytes)
        memmove(to, from, bytes);
    else
        run_kernel(d, copy_piece, args, bytes, COPY_GRAIN);
}

static void fill(lf_cpu_device *d, void *to, uint8_t byte, size_t bytes) {
    uint64_t args[] = {(uintptr_t)to, byte};
    run_kernel(d, fill_piece, args, bytes, COPY_GRAIN);
}

// On a runner thread.
void lf_cpu_task_run(lf_cpu_device *d, lf_cpu_task *t) {
    switch ((lf_cpu_task_kind)t->kind) {
    case LF_CPU_TASK_LAUNCH:
        run_kernel(d, t->u.launch.kernel->fn, t->args, t->u.launch.items, t->u.launch.grain);
        lf_cpu_kernel_unref(t->u.launch.kernel);
        break;
    case LF_CPU_TASK_CALLBACK: t->u.callback.fn(t->u.callback.arg); break;
    case LF_CPU_TASK_COPY: copy(d, t->u.copy.to, t->u.copy.from, t->u.copy.bytes); break;
    case LF_CPU_TASK_FILL: fill(d, t->u.fill.to, t->u.fill.byte, t->u.fill.bytes); break;
    case LF_CPU_TASK_SIGNAL: lf_cpu_fence_signal(d, t->u.fence); break;
    case LF_CPU_TASK_WAIT: lf_cpu_fence_wait(d, t->u.fence); break;
    case LF_CPU_TASK_FREE: lf_cpu_memory_give(d, t->u.pointer); break;
    }
}

static lf_status queue_launch(lf_cpu_queue *q, const lf_launch *launch, lf_cpu_kernel *k) {
    lf_cpu_task task = {.kind = LF_CPU_TASK_LAUNCH, .n_args = launch->n_args};
    task.u.launch.kernel = k;
    task.u.launch.items = launch->items;
    task.u.launch.grain = launch->grain;
    atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    lf_status s = lf_cpu_queue_push(q, &task, launch->args);
    if (s) atomic_fetch_sub_explicit(&k->refs, 1, memory_order_relaxed);
    return s;
}

lf_status lf_cpu_launch(lf_stream *stream, const lf_launch *launch) {
    lf_cpu_queue *q = lf_cpu_queue_of(stream);
    lf_cpu_kernel *k = (lf_cpu_kernel *)launch->kernel;
    if (k->base.device != stream->device)
        return lf_error(stream->device->allocator, LF_INVALID_ARGUMENT,
                        "the kernel and the stream belong to different devices");
    if (!launch->items) return NULL;
    atomic_fetch_add_explicit(&stream->device->stats.launches, 1, memory_order_relaxed);
    if (!lf_cpu_queue_enter(q)) return queue_launch(q, launch, k);
    lf_fpstate fp = lf_fp_enter();
    run_kernel(q->device, k->fn, launch->args, launch->items, launch->grain);
    lf_fp_leave(fp);
    lf_cpu_queue_leave(q);
    return NULL;
}

// Never inline: it may wait for something that the caller does next.
lf_status lf_cpu_stream_callback(lf_stream *stream, void (*fn)(void *arg), void *arg) {
    lf_cpu_queue *q = lf_cpu_queue_of(stream);
    if (lf_cpu_forked(q->device)) {
        fn(arg);
        return NULL;
    }
    lf_cpu_task task = {.kind = LF_CPU_TASK_CALLBACK};
    task.u.callback.fn = fn;
    task.u.callback.arg = arg;
    return lf_cpu_queue_push(q, &task, NULL);
}

lf_status lf_cpu_memory_copy(lf_stream *stream, void *to, const void *from, size_t bytes, lf_copy_kind kind) {
    (void)kind;
    if (!bytes) return NULL;
    lf_cpu_queue *q = lf_cpu_queue_of(stream);
    atomic_fetch_add_explicit(&stream->device->stats.bytes_copied, bytes, memory_order_relaxed);
    if (lf_cpu_queue_enter(q)) {
        copy(q->device, to, from, bytes);
        lf_cpu_queue_leave(q);
        return NULL;
    }
    lf_cpu_task task = {.kind = LF_CPU_TASK_COPY};
    task.u.copy.to = to;
    task.u.copy.from = from;
    task.u.copy.bytes = bytes;
    return lf_cpu_queue_push(q, &task, NULL);
}

lf_status lf_cpu_memory_fill(lf_stream *stream, void *to, uint8_t byte, size_t bytes) {
    if (!bytes) return NULL;
    lf_cpu_queue *q = lf_cpu_queue_of(stream);
    if (lf_cpu_queue_enter(q)) {
        fill(q->device, to, byte, bytes);
        lf_cpu_queue_leave(q);
        return NULL;
    }
    lf_cpu_task task = {.kind = LF_CPU_TASK_FILL};
    task.u.fill.to = to;
    task.u.fill.byte = byte;
    task.u.fill.bytes = bytes;
    return lf_cpu_queue_push(q, &task, NULL);
}

// Blocks come back to the cache when their stream has passed, so what is taken from it is in nobody's use.
lf_status lf_cpu_memory_alloc(lf_stream *stream, size_t bytes, void **out_pointer) {
    *out_pointer = NULL;
    if (!bytes) return NULL;
    lf_cpu_device *d = device_of(stream);
    *out_pointer = lf_cpu_memory_take(d, bytes);
    if (!*out_pointer)
        return lf_error(d->base.allocator, LF_OUT_OF_MEMORY, "cannot allocate %zu bytes on the CPU device", bytes);
    atomic_fetch_add_explicit(&d->base.stats.allocations, 1, memory_order_relaxed);
    return NULL;
}

void lf_cpu_memory_free(lf_stream *stream, void *pointer) {
    if (!pointer) return;
    lf_cpu_queue *q = lf_cpu_queue_of(stream);
    if (lf_cpu_queue_enter(q)) {
        lf_cpu_memory_give(q->device, pointer);
        lf_cpu_queue_leave(q);
        return;
    }
    lf_status s = lf_cpu_queue_push(q, &(lf_cpu_task){.kind = LF_CPU_TASK_FREE, .u.pointer = pointer}, NULL);
    if (!s) return;
    // Out of memory for a few words: the work before it must end first, and waiting is the only way left to free it.
    lf_log_write(&stream->device->log, LF_LOG_WARNING, "waits for a stream in order to free memory: %s",
                 lf_status_message(s));
    lf_status_destroy(s);
    lf_cpu_queue_wait(q);
    lf_cpu_memory_give(q->device, pointer);
}
