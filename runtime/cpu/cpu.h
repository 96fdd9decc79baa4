// What the files of the CPU device share. A device has a pool that splits kernels over threads, and queues, one per
// stream; a queue that has work which may not run inline borrows a runner thread until it is idle again.
// Lock order: queue, then runners; the other locks are leaves.
#ifndef LF_RUNTIME_CPU_H
#define LF_RUNTIME_CPU_H
#include "runtime/device.h"
#include "runtime/futex.h"
#include "runtime/thread.h"

typedef struct lf_cpu_device lf_cpu_device;
typedef struct lf_cpu_queue lf_cpu_queue;
typedef struct lf_cpu_job lf_cpu_job;
typedef struct lf_cpu_worker lf_cpu_worker;
typedef struct lf_cpu_block lf_cpu_block;
typedef struct lf_cpu_memory_block lf_cpu_memory_block;
typedef struct lf_cpu_fence lf_cpu_fence;
typedef struct lf_cpu_runner lf_cpu_runner;

// ---- pool.c: splits a launch over threads. The calling thread takes part.
typedef struct lf_cpu_pool {
    const lf_allocator *allocator;
    uint32_t threads;        // the caller counted in
    pthread_mutex_t lock;    // starting
    _Atomic uint32_t ready;  // all below is there
    _Atomic uint32_t signal; // changes when a job opens or the pool stops
    _Atomic bool stopping;
    void *block; // owned; holds workers and jobs
    lf_cpu_worker *workers;
    lf_cpu_job *jobs;
    uint32_t n_workers;
} lf_cpu_pool;

void lf_cpu_pool_init(lf_cpu_pool *pool, const lf_allocator *a, uint32_t threads);
void lf_cpu_pool_finish(lf_cpu_pool *pool, bool forked);
void lf_cpu_pool_run(lf_cpu_pool *pool, lf_native_kernel fn, const uint64_t *args, uint64_t items, uint64_t grain);

// ---- memory.c: 256-byte aligned blocks in size classes, kept for reuse.
enum { LF_CPU_CLASSES = 8 * 40 };
typedef struct lf_cpu_cache {
    pthread_mutex_t lock;
    lf_cpu_memory_block *free[LF_CPU_CLASSES];
    size_t kept, most; // bytes in free[], and how many at most
} lf_cpu_cache;

void lf_cpu_cache_init(lf_cpu_cache *cache, uint64_t memory_bytes);
void lf_cpu_cache_finish(lf_cpu_device *d, bool forked);
void *lf_cpu_memory_take(lf_cpu_device *d, size_t bytes);
void lf_cpu_memory_give(lf_cpu_device *d, void *pointer);

// ---- event.c: a fence is one recording of an event; those who wait hold it, whatever becomes of the event.
struct lf_cpu_fence {
    _Atomic uint32_t refs, done;
    lf_cpu_fence *next; // in the device's list of unused ones
};
void lf_cpu_fence_signal(lf_cpu_device *d, lf_cpu_fence *f); // takes over one reference
void lf_cpu_fence_wait(lf_cpu_device *d, lf_cpu_fence *f);   // takes over one reference
void lf_cpu_fences_finish(lf_cpu_device *d);
lf_status lf_cpu_event_create(lf_device *device, lf_event **out_event);
lf_status lf_cpu_event_record(lf_event *event, lf_stream *stream);
lf_status lf_cpu_event_query(lf_event *event);
lf_status lf_cpu_event_wait(lf_event *event);
void lf_cpu_event_destroy(lf_event *event);
lf_status lf_cpu_stream_wait_event(lf_stream *stream, lf_event *event);

// ---- kernel.c
typedef struct lf_cpu_kernel {
    lf_kernel base;
    lf_native_kernel fn;
    _Atomic uint32_t refs; // the handle and each queued launch
    void (*release)(void *arg);
    void *release_arg;
} lf_cpu_kernel;
void lf_cpu_kernel_unref(lf_cpu_kernel *k);
lf_status lf_cpu_kernel_load(lf_device *device, const lf_image *image, lf_kernel **out_kernel);
void lf_cpu_kernel_destroy(lf_kernel *kernel);

// ---- queue.c
typedef enum lf_cpu_task_kind {
    LF_CPU_TASK_LAUNCH,
    LF_CPU_TASK_CALLBACK,
    LF_CPU_TASK_COPY,
    LF_CPU_TASK_FILL,
    LF_CPU_TASK_SIGNAL,
    LF_CPU_TASK_WAIT,
    LF_CPU_TASK_FREE
} lf_cpu_task_kind;

// One piece of queued work; the arguments of a launch follow it.
typedef struct lf_cpu_task {
    uint32_t kind, n_args;
    union {
        struct {
            lf_cpu_kernel *kernel;
            uint64_t items, grain;
        } launch;
        struct {
            void (*fn)(void *arg);
            void *arg;
        } callback;
        struct {
            void *to;
            const void *from;
            size_t bytes;
        } copy;
        struct {
            void *to;
            size_t bytes;
            uint8_t byte;
        } fill;
        lf_cpu_fence *fence;
        void *pointer;
    } u;
    uint64_t args[];
} lf_cpu_task;

// Who may run this queue's work now.
enum {
    LF_CPU_IDLE,    // nobody: there is none
    LF_CPU_INLINE,  // a caller runs its own work, nothing is queued
    LF_CPU_WATCHED, // the same, and on leaving it must look at the queue and wake those who wait
    LF_CPU_BUSY     // a runner thread
};
struct lf_cpu_queue {
    lf_cpu_device *device;
    _Atomic uint32_t state;
    pthread_mutex_t lock; // all below, and leaving IDLE other than to INLINE
    pthread_cond_t progress;
    uint32_t waiters;
    lf_cpu_block *head, *tail; // owned; head holds the next task
    lf_cpu_block *spare;       // owned, for reuse
    uint32_t n_spare;
    uint64_t submitted, completed; // queued tasks
    uint32_t refs;                 // device's lock: stream handles
    lf_cpu_queue *next;            // device's lock
};

lf_status lf_cpu_queue_create(lf_cpu_device *d, lf_cpu_queue **out_queue);
void lf_cpu_queue_destroy(lf_cpu_queue *q); // idle ones
lf_status lf_cpu_queue_push(lf_cpu_queue *q, const lf_cpu_task *task, const uint64_t *args);
void lf_cpu_queue_drain(lf_cpu_queue *q);
void lf_cpu_queue_wait(lf_cpu_queue *q);
void lf_cpu_queue_leave_watched(lf_cpu_queue *q);
void lf_cpu_task_run(lf_cpu_device *d, lf_cpu_task *task);

// ---- runner.c: threads that run queues; as many as there were busy queues at once.
bool lf_cpu_runner_start(lf_cpu_queue *q); // false: no thread could be had
void lf_cpu_runners_finish(lf_cpu_device *d, bool forked);

// ---- device.c
struct lf_cpu_device {
    lf_device base;
    lf_forkmark fork;
    lf_cpu_pool pool;
    lf_cpu_cache cache;
    pthread_mutex_t lock; // queues, default_queue, unused fences
    lf_cpu_queue *queues;
    lf_cpu_queue *default_queue; // owned, made on first use
    lf_cpu_fence *unused_fences; // owned
    pthread_mutex_t runner_lock;
    lf_cpu_runner *runners; // owned, all
    lf_cpu_runner *idle_runners;
    bool stopping; // runner_lock
};

typedef struct lf_cpu_stream {
    lf_stream base;
    lf_cpu_queue *queue;
    bool wrapped;
} lf_cpu_stream;

// In a forked child there is no other thread and no lock may be trusted: everything runs inline, unlocked.
static inline bool lf_cpu_forked(const lf_cpu_device *d) { return lf_forked(&d->fork); }
static inline lf_cpu_queue *lf_cpu_queue_of(lf_stream *stream) { return ((lf_cpu_stream *)stream)->queue; }

// True: the queue is idle and the caller, who must leave it again, may run its work now.
static inline bool lf_cpu_queue_enter(lf_cpu_queue *q) {
    if (lf_cpu_forked(q->device)) return true;
    uint32_t idle = LF_CPU_IDLE;
    return atomic_compare_exchange_strong_explicit(&q->state, &idle, LF_CPU_INLINE, memory_order_acquire,
                                                   memory_order_relaxed);
}
static inline void lf_cpu_queue_leave(lf_cpu_queue *q) {
    if (lf_cpu_forked(q->device)) return;
    uint32_t inlined = LF_CPU_INLINE;
    if (!atomic_compare_exchange_strong_explicit(&q->state, &inlined, LF_CPU_IDLE, memory_order_release,
                                                 memory_order_relaxed))
        lf_cpu_queue_leave_watched(q);
}
#endif
