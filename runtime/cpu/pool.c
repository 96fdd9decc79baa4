// Splits the items of a kernel over the device's threads.
//
// The items are cut into as many slices as there are threads, a slice into some chunks. Each thread takes the chunks of its
// own slice, the same one every time, so that kernels that follow each other find their data in the same core's cache; who
// has finished takes chunks of others. What a thread writes in order to take part is in a cache line of its slice: with
// shared counters 16 threads took three times as long over a small kernel. Workers look for work for some microseconds
// before they sleep; a wake-up is dear, so those that are woken wake further ones.
#include "runtime/cpu/cpu.h"
#include "runtime/fpstate.h"

enum { CHUNKS_PER_SLICE = 4, SPINS = 1000, JOBS = 8, LINE = 64 };

enum {
    CLOSED, // nobody may come in
    OPEN,   // the slice's worker may come in
    INSIDE, // it has
    AWAITED // and the owner sleeps until it leaves
};

typedef struct slice {
    _Alignas(LINE) _Atomic uint64_t next; // chunk to claim
    uint64_t end;
    _Atomic uint32_t worker; // CLOSED … AWAITED. Nobody else looks at the job while all its slices are closed.
} slice;

// A launch being split. Jobs live as long as the pool, so a late worker may look at one that is over.
struct lf_cpu_job {
    _Alignas(LINE) _Atomic uint32_t open; // worth looking at
    uint32_t first;                       // worker (first + i) modulo their number has slice i + 1; slice 0 is the owner's
    slice *slices;
    // Written by the owner while the job is closed.
    lf_native_kernel fn;
    const uint64_t *args;
    uint64_t items, chunk;
    uint32_t n_slices;
    _Alignas(LINE) _Atomic bool taken;
};

struct lf_cpu_worker {
    _Alignas(LINE) _Atomic uint32_t parked;
    lf_cpu_pool *pool;
    uint32_t number;
    pthread_t thread;
};

// ---- chunks

static void run_slice(lf_cpu_job *job, slice *s) {
    while (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end) {
        uint64_t c = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (c >= s->end) return;
        uint64_t begin = c * job->chunk, left = job->items - begin;
        job->fn(job->args, begin, left < job->chunk ? job->items : begin + job->chunk);
    }
}

// So that the cache lines of all slices come at once and not one after the other.
static void fetch_slices(const lf_cpu_job *job) {
    for (uint32_t i = 0; i < job->n_slices; i++) __builtin_prefetch(&job->slices[i], 1);
}

// A slice's own thread is about to take its last chunk: a helper leaves that alone, the owner looks at everything.
static void run_slices(lf_cpu_job *job, uint32_t own, uint64_t least) {
    run_slice(job, &job->slices[own]);
    for (uint32_t i = 1; i < job->n_slices; i++) {
        slice *s = &job->slices[own + i < job->n_slices ? own + i : own + i - job->n_slices];
        if (atomic_load_explicit(&s->next, memory_order_relaxed) + least <= s->end) run_slice(job, s);
    }
}

// ---- workers

// The threads of slices 2i+1 and 2i+2; for a thread that is awake, those below it in its stead. Depth: log2 of the threads.
static void wake_below(lf_cpu_pool *pool, const lf_cpu_job *job, uint32_t i) {
    for (uint32_t below = 2 * i + 1; below <= 2 * i + 2 && below < job->n_slices; below++) {
        lf_cpu_worker *w = &pool->workers[(job->first + below - 1) % pool->n_workers];
        if (atomic_load(&w->parked) && atomic_exchange(&w->parked, 0))
            lf_futex_wake(&w->parked, 1);
        else
            wake_below(pool, job, below);
    }
}

static bool help(lf_cpu_worker *w, lf_cpu_job *job) {
    if (!atomic_load_explicit(&job->open, memory_order_relaxed)) return false;
    uint32_t own = (w->number + w->pool->n_workers - job->first) % w->pool->n_workers + 1, open = OPEN;
    slice *s = &job->slices[own];
    if (!atomic_compare_exchange_strong_explicit(&s->worker, &open, INSIDE, memory_order_acquire, memory_order_relaxed))
        return false;
    wake_below(w->pool, job, own);
    // Where each has one chunk there is nothing to take from others; the owner sees to what is left.
    if (job->slices[0].end > 1)
        run_slices(job, own, 2);
    else
        run_slice(job, s);
    if (atomic_exchange_explicit(&s->worker, CLOSED, memory_order_release) == AWAITED) lf_futex_wake(&s->worker, 1);
    return true;
}

static void park(lf_cpu_worker *w, uint32_t seen) {
    // Whoever opens a job changes the signal and then reads `parked`, so one of the two sees the other.
    atomic_store(&w->parked, 1);
    if (atomic_load(&w->pool->signal) == seen) lf_futex_wait(&w->parked, 1);
    atomic_store(&w->parked, 0);
}

static void *worker_main(void *arg) {
    lf_cpu_worker *w = arg;
    lf_cpu_pool *pool = w->pool;
    lf_fp_default();
    while (!atomic_load_explicit(&pool->ready, memory_order_acquire)) lf_futex_wait(&pool->ready, 0);
    for (;;) {
        uint32_t seen = atomic_load(&pool->signal);
        if (atomic_load_explicit(&pool->stopping, memory_order_relaxed)) return NULL;
        bool helped = false;
        for (int i = 0; i < JOBS; i++) helped |= help(w, &pool->jobs[i]);
        if (helped) continue;
        int spins = 0;
        while (atomic_load_explicit(&pool->signal, memory_order_relaxed) == seen && spins < SPINS) {
            lf_cpu_relax();
            spins++;
        }
        if (spins == SPINS) park(w, seen);
    }
}

// ---- the pool

void lf_cpu_pool_init(lf_cpu_pool *pool, const lf_allocator *a, uint32_t threads) {
    *pool = (lf_cpu_pool){.allocator = a, .threads = threads};
    pthread_mutex_init(&pool->lock, NULL);
}

// One block of memory for workers, jobs and slices, all in cache lines of their own.
static bool make_room(lf_cpu_pool *pool) {
    size_t workers = (pool->threads - 1) * sizeof(lf_cpu_worker), jobs = JOBS * sizeof(lf_cpu_job);
    size_t slices = pool->threads * sizeof(slice);
    pool->block = lf_alloc_zero(pool->allocator, LINE + workers + jobs + JOBS * slices);
    if (!pool->block) return false;
    char *at = (char *)pool->block + (LINE - (uintptr_t)pool->block % LINE);
    pool->workers = (lf_cpu_worker *)(void *)at;
    pool->jobs = (lf_cpu_job *)(void *)(at + workers);
    for (size_t i = 0; i < JOBS; i++) pool->jobs[i].slices = (slice *)(void *)(at + workers + jobs + i * slices);
    return true;
}

// Threads are started by the first kernel that can use them: a device that runs small things only has none. Without memory
// or threads the pool goes on with those it has.
static void start_workers(lf_cpu_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    if (!atomic_load_explicit(&pool->ready, memory_order_relaxed)) {
        uint32_t n = 0;
        if (make_room(pool)) {
            for (; n < pool->threads - 1; n++) {
                lf_cpu_worker *w = &pool->workers[n];
                w->pool = pool;
                w->number = n;
                if (lf_thread_start(&w->thread, "lfuser-pool", worker_main, w)) break;
            }
        }
        pool->n_workers = n;
        // Jobs beside each other prefer different workers.
        for (uint32_t i = 0; pool->jobs && i < JOBS; i++) pool->jobs[i].first = i * n / JOBS;
        atomic_store_explicit(&pool->ready, 1, memory_order_release);
        lf_futex_wake(&pool->ready, INT32_MAX);
    }
    pthread_mutex_unlock(&pool->lock);
}

void lf_cpu_pool_finish(lf_cpu_pool *pool, bool forked) {
    if (!forked) {
        atomic_store(&pool->stopping, true);
        atomic_fetch_add(&pool->signal, 1);
        for (uint32_t i = 0; i < pool->n_workers; i++)
            if (atomic_exchange(&pool->workers[i].parked, 0)) lf_futex_wake(&pool->workers[i].parked, 1);
        for (uint32_t i = 0; i < pool->n_workers; i++) pthread_join(pool->workers[i].thread, NULL);
        pthread_mutex_destroy(&pool->lock);
    }
    lf_free(pool->allocator, pool->block);
}

// ---- launches

// A multiple of the grain: kernels like aligned beginnings.
static uint64_t chunk_size(uint64_t items, uint64_t grain, uint32_t threads) {
    uint64_t grains = (items - 1) / grain + 1, parts = (uint64_t)threads * CHUNKS_PER_SLICE, chunk;
    if (__builtin_mul_overflow((grains - 1) / parts + 1, grain, &chunk)) return items;
    return chunk;
}

static lf_cpu_job *take_job(lf_cpu_pool *pool) {
    for (int i = 0; i < JOBS; i++) {
        lf_cpu_job *job = &pool->jobs[i];
        if (!atomic_load_explicit(&job->taken, memory_order_relaxed) &&
            !atomic_exchange_explicit(&job->taken, true, memory_order_acquire))
            return job;
    }
    return NULL;
}

static void open_job(lf_cpu_job *job, uint64_t chunks) {
    fetch_slices(job);
    for (uint64_t i = 0, at = 0; i < job->n_slices; i++) {
        slice *s = &job->slices[i];
        atomic_store_explicit(&s->next, at, memory_order_relaxed);
        at += (chunks - at + job->n_slices - i - 1) / (job->n_slices - i);
        s->end = at;
    }
    for (uint32_t i = 1; i < job->n_slices; i++) atomic_store_explicit(&job->slices[i].worker, OPEN, memory_order_release);
    atomic_store_explicit(&job->open, 1, memory_order_relaxed);
}

static void await_leaving(slice *s) {
    for (int spins = 0; spins < SPINS; spins++) {
        if (atomic_load_explicit(&s->worker, memory_order_acquire) == CLOSED) return;
        lf_cpu_relax();
    }
    uint32_t inside = INSIDE;
    if (!atomic_compare_exchange_strong_explicit(&s->worker, &inside, AWAITED, memory_order_acquire, memory_order_acquire))
        return;
    while (atomic_load_explicit(&s->worker, memory_order_acquire) != CLOSED) lf_futex_wait(&s->worker, AWAITED);
}

// Returns when no worker is inside and none can come in.
static void close_job(lf_cpu_job *job) {
    atomic_store_explicit(&job->open, 0, memory_order_relaxed);
    for (uint32_t i = 1; i < job->n_slices; i++) {
        slice *s = &job->slices[i];
        uint32_t open = OPEN;
        if (atomic_load_explicit(&s->worker, memory_order_acquire) == CLOSED) continue;
        if (!atomic_compare_exchange_strong_explicit(&s->worker, &open, CLOSED, memory_order_acquire, memory_order_acquire))
            await_leaving(s);
    }
    atomic_store_explicit(&job->taken, false, memory_order_release);
}

void lf_cpu_pool_run(lf_cpu_pool *pool, lf_native_kernel fn, const uint64_t *args, uint64_t items, uint64_t grain) {
    if (!grain) grain = 1;
    if (pool->threads == 1 || items <= grain) {
        fn(args, 0, items);
        return;
    }
    if (!atomic_load_explicit(&pool->ready, memory_order_acquire)) start_workers(pool);
    uint64_t chunk = chunk_size(items, grain, pool->threads), chunks = (items - 1) / chunk + 1;
    lf_cpu_job *job = chunks > 1 && pool->n_workers ? take_job(pool) : NULL;
    if (!job) {
        fn(args, 0, items);
        return;
    }
    job->fn = fn;
    job->args = args;
    job->items = items;
    job->chunk = chunk;
    job->n_slices = chunks < pool->n_workers + 1 ? (uint32_t)chunks : pool->n_workers + 1;
    open_job(job, chunks);
    atomic_fetch_add(&pool->signal, 1);
    wake_below(pool, job, 0);
    run_slices(job, 0, 1);
    close_job(job);
}
