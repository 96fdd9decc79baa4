// The CPU as a device: creation, what it is, mapped memory, and the table of its operations.
#include "runtime/cpu/stream.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { MOST_THREADS = 1024 };

static void destroy(lf_device *device) {
    if (!device) return;
    lf_cpu_device *d = (lf_cpu_device *)device;
    bool forked = lf_cpu_forked(d);
    for (lf_cpu_queue *q = d->queues, *next; q; q = next) {
        next = q->next;
        if (!forked) lf_cpu_queue_wait(q);
        lf_cpu_queue_destroy(q);
    }
    lf_cpu_runners_finish(d, forked);
    lf_cpu_pool_finish(&d->pool, forked);
    lf_cpu_fences_finish(d);
    lf_cpu_cache_finish(d, forked);
    if (!forked) {
        pthread_mutex_destroy(&d->runner_lock);
        pthread_mutex_destroy(&d->lock);
    }
    lf_forkmark_finish(&d->fork);
    lf_free(d->base.allocator, d);
}

static lf_status memory_where(lf_device *device, const void *pointer, int *out_type, int *out_ordinal) {
    (void)device, (void)pointer;
    *out_type = LF_DEVICE_CPU;
    *out_ordinal = 0;
    return NULL;
}

static lf_status mapped_alloc(lf_device *device, size_t bytes, void **out_host, void **out_device) {
    *out_host = *out_device = NULL;
    if (!bytes) return NULL;
    void *p = lf_cpu_memory_take((lf_cpu_device *)device, bytes);
    if (!p) return lf_error(device->allocator, LF_OUT_OF_MEMORY, "cannot allocate %zu bytes of mapped memory", bytes);
    memset(p, 0, bytes);
    *out_host = *out_device = p;
    return NULL;
}

static void mapped_free(lf_device *device, void *host) {
    if (host) lf_cpu_memory_give((lf_cpu_device *)device, host);
}

static const lf_device_ops cpu_ops = {
    .name = "cpu",
    .destroy = destroy,
    .stream_create = lf_cpu_stream_create,
    .stream_wrap = lf_cpu_stream_wrap,
    .stream_native = lf_cpu_stream_native,
    .stream_destroy = lf_cpu_stream_destroy,
    .stream_synchronize = lf_cpu_stream_synchronize,
    .stream_query = lf_cpu_stream_query,
    .stream_wait_event = lf_cpu_stream_wait_event,
    .stream_callback = lf_cpu_stream_callback,
    .stream_capturing = lf_cpu_stream_capturing,
    .memory_alloc = lf_cpu_memory_alloc,
    .memory_free = lf_cpu_memory_free,
    .memory_copy = lf_cpu_memory_copy,
    .memory_fill = lf_cpu_memory_fill,
    .memory_where = memory_where,
    .mapped_alloc = mapped_alloc,
    .mapped_free = mapped_free,
    .kernel_load = lf_cpu_kernel_load,
    .kernel_destroy = lf_cpu_kernel_destroy,
    .launch = lf_cpu_launch,
    .event_create = lf_cpu_event_create,
    .event_record = lf_cpu_event_record,
    .event_query = lf_cpu_event_query,
    .event_wait = lf_cpu_event_wait,
    .event_destroy = lf_cpu_event_destroy,
};

// What the caller says, else what the environment says, else what this process may use.
static uint32_t thread_count(const lf_log *log, uint32_t threads) {
    const char *text = threads ? NULL : getenv("LFUSER_NUM_THREADS");
    if (text && *text) {
        char *end;
        errno = 0;
        unsigned long n = strtoul(text, &end, 10);
        if (!errno && !*end && n && n <= MOST_THREADS && *text >= '0' && *text <= '9') return (uint32_t)n;
        lf_log_write(log, LF_LOG_WARNING, "LFUSER_NUM_THREADS is '%s', not a number from 1 to %d; ignored", text,
                     MOST_THREADS);
    }
    if (!threads) threads = lf_thread_cores();
    return threads < MOST_THREADS ? threads : MOST_THREADS;
}

static void describe(lf_device_info *info, uint32_t threads) {
    char model[49] = "CPU";
#if defined(__x86_64__)
    uint32_t words[12], highest = __get_cpuid_max(0x80000000u, NULL);
    if (highest >= 0x80000004u) {
        for (uint32_t i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
        memcpy(model, words, sizeof words);
        model[48] = 0;
    }
#endif
    const char *from = model + strspn(model, " ");
    snprintf(info->target, sizeof info->target, "cpu");
    snprintf(info->description, sizeof info->description, "%s, %u thread%s", from, threads, threads == 1 ? "" : "s");
    info->processors = threads;
    info->max_block = 1;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    info->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

lf_status lf_cpu_device_create(const lf_allocator *a, const lf_log *log, uint32_t threads, lf_device **out_device) {
    *out_device = NULL;
    lf_cpu_device *d = lf_alloc_zero(a, sizeof *d);
    if (!d) return lf_out_of_memory();
    d->base.ops = &cpu_ops;
    d->base.allocator = a;
    if (log) d->base.log = *log;
    d->base.type = LF_DEVICE_CPU;
    threads = thread_count(&d->base.log, threads);
    describe(&d->base.info, threads);
    lf_forkmark_init(&d->fork);
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->runner_lock, NULL);
    lf_cpu_pool_init(&d->pool, a, threads);
    lf_cpu_cache_init(&d->cache, d->base.info.memory_bytes);
    *out_device = &d->base;
    return NULL;
}
