// The queue behind a stream: tasks in blocks of memory that are used again, so that a queue which has been as long before
// allocates nothing. Several threads may push; one at a time runs.
#include "runtime/cpu/cpu.h"
#include <string.h>

enum { BLOCK_BYTES = 16 * 1024 - 64, SPARE_BLOCKS = 256 };

struct lf_cpu_block {
    lf_cpu_block *next;
    size_t size, written, read; // bytes of data
    char data[];
};

lf_status lf_cpu_queue_create(lf_cpu_device *d, lf_cpu_queue **out_queue) {
    *out_queue = NULL;
    lf_cpu_queue *q = lf_alloc_zero(d->base.allocator, sizeof *q);
    if (!q) return lf_out_of_memory();
    q->device = d;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->progress, NULL);
    *out_queue = q;
    return NULL;
}

static void free_blocks(const lf_allocator *a, lf_cpu_block *b) {
    for (lf_cpu_block *next; b; b = next) {
        next = b->next;
        lf_free(a, b);
    }
}

void lf_cpu_queue_destroy(lf_cpu_queue *q) {
    if (!lf_cpu_forked(q->device)) {
        // The runner that made it idle may still hold the lock.
        pthread_mutex_lock(&q->lock);
        pthread_mutex_unlock(&q->lock);
        pthread_cond_destroy(&q->progress);
        pthread_mutex_destroy(&q->lock);
    }
    free_blocks(q->device->base.allocator, q->head);
    free_blocks(q->device->base.allocator, q->spare);
    lf_free(q->device->base.allocator, q);
}

// ---- blocks; under the queue's lock

static lf_cpu_block *take_block(lf_cpu_queue *q, size_t bytes) {
    for (lf_cpu_block **at = &q->spare; *at; at = &(*at)->next) {
        lf_cpu_block *b = *at;
        if (b->size < bytes) continue;
        *at = b->next;
        q->n_spare--;
        return b;
    }
    size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    lf_cpu_block *b = lf_alloc(q->device->base.allocator, sizeof *b + size);
    if (b) b->size = size;
    return b;
}

static void *reserve(lf_cpu_queue *q, size_t bytes) {
    lf_cpu_block *b = q->tail;
    if (!b || b->size - b->written < bytes) {
        b = take_block(q, bytes);
        if (!b) return NULL;
        b->next = NULL;
        b->written = b->read = 0;
        if (q->tail)
            q->tail->next = b;
        else
            q->head = b;
        q->tail = b;
    }
    return b->data + b->written;
}

// Drops blocks that are read to their end; the last one is begun anew instead.
static lf_cpu_task *front(lf_cpu_queue *q) {
    for (;;) {
        lf_cpu_block *b = q->head;
        if (!b) return NULL;
        if (b->read < b->written) return (lf_cpu_task *)(void *)(b->data + b->read);
        b->read = b->written = 0;
        if (!b->next) return NULL;
        q->head = b->next;
        if (q->n_spare < SPARE_BLOCKS) {
            b->next = q->spare;
            q->spare = b;
            q->n_spare++;
        } else {
            lf_free(q->device->base.allocator, b);
        }
    }
}

static size_t task_bytes(const lf_cpu_task *task) { return sizeof *task + task->n_args * sizeof(uint64_t); }

// ---- pushing and running

// Takes the queue out of IDLE and has it run, or makes whoever runs inline look at it. False: no thread for it.
static bool have_it_run(lf_cpu_queue *q) {
    for (;;) {
        uint32_t state = atomic_load_explicit(&q->state, memory_order_relaxed);
        if (state == LF_CPU_BUSY || state == LF_CPU_WATCHED) return true;
        uint32_t to = state == LF_CPU_IDLE ? LF_CPU_BUSY : LF_CPU_WATCHED;
        if (!atomic_compare_exchange_strong_explicit(&q->state, &state, to, memory_order_acquire, memory_order_relaxed))
            continue;
        if (to == LF_CPU_WATCHED || lf_cpu_runner_start(q)) return true;
        atomic_store_explicit(&q->state, LF_CPU_IDLE, memory_order_release);
        return false;
    }
}

lf_status lf_cpu_queue_push(lf_cpu_queue *q, const lf_cpu_task *task, const uint64_t *args) {
    size_t bytes = task_bytes(task);
    pthread_mutex_lock(&q->lock);
    lf_cpu_task *copy = reserve(q, bytes);
    if (!copy) {
        pthread_mutex_unlock(&q->lock);
        return lf_out_of_memory();
    }
    memcpy(copy, task, sizeof *copy);
    if (task->n_args) memcpy(copy->args, args, task->n_args * sizeof *args);
    q->tail->written += bytes;
    q->submitted++;
    bool runs = have_it_run(q);
    if (!runs) {
        q->tail->written -= bytes;
        q->submitted--;
    }
    pthread_mutex_unlock(&q->lock);
    if (runs) return NULL;
    return lf_error(q->device->base.allocator, LF_OUT_OF_MEMORY, "cannot start a thread for the work of a stream");
}

// Called with state BUSY and the lock held; returns without it, the queue idle.
static void drain_locked(lf_cpu_queue *q) {
    for (lf_cpu_task *task; (task = front(q));) {
        pthread_mutex_unlock(&q->lock);
        size_t bytes = task_bytes(task);
        lf_cpu_task_run(q->device, task);
        pthread_mutex_lock(&q->lock);
        q->head->read += bytes;
        q->completed++;
        if (q->waiters) pthread_cond_broadcast(&q->progress);
    }
    atomic_store_explicit(&q->state, LF_CPU_IDLE, memory_order_release);
    if (q->waiters) pthread_cond_broadcast(&q->progress);
    pthread_mutex_unlock(&q->lock);
}

void lf_cpu_queue_drain(lf_cpu_queue *q) {
    pthread_mutex_lock(&q->lock);
    drain_locked(q);
}

// Somebody pushed or began to wait while the caller ran its own work.
void lf_cpu_queue_leave_watched(lf_cpu_queue *q) {
    pthread_mutex_lock(&q->lock);
    bool queued = front(q) != NULL;
    atomic_store_explicit(&q->state, queued ? LF_CPU_BUSY : LF_CPU_IDLE, memory_order_release);
    if (q->waiters) pthread_cond_broadcast(&q->progress);
    if (queued && !lf_cpu_runner_start(q))
        drain_locked(q);
    else
        pthread_mutex_unlock(&q->lock);
}

void lf_cpu_queue_wait(lf_cpu_queue *q) {
    if (atomic_load_explicit(&q->state, memory_order_acquire) == LF_CPU_IDLE) return;
    pthread_mutex_lock(&q->lock);
    uint64_t target = q->submitted;
    q->waiters++;
    for (;;) {
        uint32_t state = atomic_load_explicit(&q->state, memory_order_acquire);
        if (state == LF_CPU_IDLE || (state == LF_CPU_BUSY && q->completed >= target)) break;
        if (state == LF_CPU_INLINE && !atomic_compare_exchange_strong_explicit(&q->state, &state, LF_CPU_WATCHED,
                                                                               memory_order_relaxed, memory_order_relaxed))
            continue;
        pthread_cond_wait(&q->progress, &q->lock);
    }
    q->waiters--;
    pthread_mutex_unlock(&q->lock);
}
