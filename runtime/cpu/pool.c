// Splits the items of a kernel over the device's threads: dynamic chunks, claimed from a counter. Workers look for work
// for some microseconds before they sleep; a wake-up costs microseconds, so those woken first wake the rest.
#include "runtime/cpu/cpu.h"
#include "runtime/fpstate.h"

enum { CHUNKS_PER_THREAD = 8, SPINS = 1000, WAKE_AT_ONCE = 2 };
static const uint32_t WAITING = 1u << 31;

struct lf_cpu_job {
    lf_native_kernel fn;
    const uint64_t *args;
    uint64_t items, chunk, chunks;
    _Atomic uint64_t next;    // chunk to claim
    _Atomic uint32_t helpers; // workers inside, and WAITING when the owner sleeps on this word
    lf_cpu_job *after;        // pool's lock
};

static bool unclaimed(lf_cpu_job *job) { return atomic_load_explicit(&job->next, memory_order_relaxed) < job->chunks; }

static void run_chunks(lf_cpu_job *job) {
    for (;;) {
        uint64_t c = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (c >= job->chunks) return;
        uint64_t begin = c * job->chunk;
        uint64_t end = c + 1 == job->chunks ? job->items : begin + job->chunk;
        job->fn(job->args, begin, end);
    }
}

// After this neither the job nor its owner's stack may be touched.
static void leave_job(lf_cpu_job *job) {
    if (atomic_fetch_sub_explicit(&job->helpers, 1, memory_order_acq_rel) == (WAITING | 1)) lf_futex_wake(&job->helpers, 1);
}

static lf_cpu_job *join_job(lf_cpu_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    lf_cpu_job *job = pool->jobs;
    while (job && !unclaimed(job)) job = job->after;
    if (job) atomic_fetch_add_explicit(&job->helpers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static void wake(lf_cpu_pool *pool, uint32_t count) {
    if (count && atomic_load(&pool->parked)) lf_futex_wake(&pool->signal, (int)count);
}

static void *worker_main(void *arg) {
    lf_cpu_pool *pool = arg;
    lf_fp_default();
    for (;;) {
        uint32_t seen = atomic_load(&pool->signal);
        if (atomic_load(&pool->stopping)) return NULL;
        lf_cpu_job *job = join_job(pool);
        if (job) {
            if (unclaimed(job)) wake(pool, WAKE_AT_ONCE);
            run_chunks(job);
            leave_job(job);
            continue;
        }
        int spins = 0;
        while (atomic_load_explicit(&pool->signal, memory_order_relaxed) == seen && spins++ < SPINS) lf_cpu_relax();
        if (spins <= SPINS) continue;
        // The count is raised before the kernel compares the word, and a job's owner changes the word before it reads the
        // count, so one of the two sees the other.
        atomic_fetch_add(&pool->parked, 1);
        lf_futex_wait(&pool->signal, seen);
        atomic_fetch_sub(&pool->parked, 1);
    }
}

void lf_cpu_pool_init(lf_cpu_pool *pool, const lf_allocator *a, uint32_t threads) {
    *pool = (lf_cpu_pool){.allocator = a, .threads = threads};
    pthread_mutex_init(&pool->lock, NULL);
}

// Threads are started by the first kernel that can use them: a device that runs small things only has none.
static void start_workers(lf_cpu_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    if (!atomic_load_explicit(&pool->started, memory_order_relaxed)) {
        pool->workers = lf_alloc(pool->allocator, (pool->threads - 1) * sizeof *pool->workers);
        while (pool->workers && pool->n_workers < pool->threads - 1 &&
               !lf_thread_start(&pool->workers[pool->n_workers], "lfuser-pool", worker_main, pool))
            pool->n_workers++;
        atomic_store_explicit(&pool->started, true, memory_order_release);
    }
    pthread_mutex_unlock(&pool->lock);
}

void lf_cpu_pool_finish(lf_cpu_pool *pool, bool forked) {
    if (!forked) {
        atomic_store(&pool->stopping, true);
        atomic_fetch_add(&pool->signal, 1);
        lf_futex_wake(&pool->signal, INT32_MAX);
        for (uint32_t i = 0; i < pool->n_workers; i++) pthread_join(pool->workers[i], NULL);
        pthread_mutex_destroy(&pool->lock);
    }
    lf_free(pool->allocator, pool->workers);
}

// A multiple of the grain (kernels like aligned beginnings), some chunks a thread so that a slow thread holds nobody up.
static uint64_t chunk_size(uint64_t items, uint64_t grain, uint32_t threads) {
    uint64_t grains = items / ((uint64_t)threads * CHUNKS_PER_THREAD) / grain, chunk;
    if (__builtin_mul_overflow(grains + 1, grain, &chunk)) return items;
    return chunk;
}

static void wait_for_helpers(lf_cpu_job *job) {
    for (int spins = 0; spins < SPINS; spins++) {
        if (!atomic_load_explicit(&job->helpers, memory_order_acquire)) return;
        lf_cpu_relax();
    }
    uint32_t now = atomic_fetch_or(&job->helpers, WAITING) | WAITING;
    while (now != WAITING) {
        lf_futex_wait(&job->helpers, now);
        now = atomic_load_explicit(&job->helpers, memory_order_acquire);
    }
}

static void run_with_workers(lf_cpu_pool *pool, lf_cpu_job *job) {
    if (!atomic_load_explicit(&pool->started, memory_order_acquire)) start_workers(pool);
    pthread_mutex_lock(&pool->lock);
    job->after = pool->jobs;
    pool->jobs = job;
    pthread_mutex_unlock(&pool->lock);
    atomic_fetch_add(&pool->signal, 1);
    wake(pool, job->chunks > WAKE_AT_ONCE ? WAKE_AT_ONCE : 1);
    run_chunks(job);
    pthread_mutex_lock(&pool->lock);
    lf_cpu_job **at = &pool->jobs;
    while (*at != job) at = &(*at)->after;
    *at = job->after;
    pthread_mutex_unlock(&pool->lock);
    wait_for_helpers(job); // nobody new can join
}

void lf_cpu_pool_run(lf_cpu_pool *pool, lf_native_kernel fn, const uint64_t *args, uint64_t items, uint64_t grain) {
    if (!grain) grain = 1;
    if (pool->threads == 1 || items <= grain) {
        fn(args, 0, items);
        return;
    }
    uint64_t chunk = chunk_size(items, grain, pool->threads);
    lf_cpu_job job = {.fn = fn, .args = args, .items = items, .chunk = chunk, .chunks = (items - 1) / chunk + 1};
    if (job.chunks == 1)
        fn(args, 0, items);
    else
        run_with_workers(pool, &job);
}
