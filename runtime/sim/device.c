// The SIM device: its table of operations. Order, asynchrony and events are an inner CPU device's: each launch, and whatever else must
// happen in stream order, is a kernel of that device with one work item. What is added: memory that is known by address (buffers.c),
// launches that are simulated (kernel.c), and faults (queue.c).
#include "runtime/sim/device.h"

static void destroy(lf_device *device) {
    if (!device) return;
    lf_sim_device *d = (lf_sim_device *)device;
    const lf_allocator *a = d->base.allocator;
    for (unsigned i = 0; i < sizeof d->tasks / sizeof *d->tasks; i++)
        if (d->tasks[i]) lf_sim_inner(d)->kernel_destroy(d->tasks[i]); // waits for what is queued
    if (d->inner) lf_sim_inner(d)->destroy(d->inner);
    for (lf_sim_queue *q = d->queues, *next; q; q = next) {
        next = q->next;
        lf_sim_forget_faults(d, q);
        pthread_mutex_destroy(&q->lock);
        lf_free(a, q);
    }
    for (lf_sim_stack *s = d->stacks, *next; s; s = next) {
        next = s->next;
        lf_sim_stack_destroy(a, s);
    }
    lf_sim_free_threads(d);
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
    .stream_create = lf_sim_stream_create,
    .stream_wrap = lf_sim_stream_wrap,
    .stream_native = lf_sim_stream_native,
    .stream_destroy = lf_sim_stream_destroy,
    .stream_synchronize = lf_sim_stream_synchronize,
    .stream_query = lf_sim_stream_query,
    .stream_wait_event = lf_sim_stream_wait_event,
    .stream_callback = lf_sim_stream_callback,
    .stream_capturing = lf_sim_stream_capturing,
    .memory_alloc = lf_sim_memory_alloc,
    .memory_free = lf_sim_memory_free,
    .memory_copy = lf_sim_memory_copy,
    .memory_fill = lf_sim_memory_fill,
    .memory_where = lf_sim_memory_where,
    .mapped_alloc = lf_sim_mapped_alloc,
    .mapped_free = lf_sim_mapped_free,
    .kernel_load = lf_sim_kernel_load,
    .kernel_destroy = lf_sim_kernel_destroy,
    .launch = lf_sim_launch,
    .event_create = lf_sim_event_create,
    .event_record = lf_sim_event_record,
    .event_query = lf_sim_event_query,
    .event_wait = lf_sim_event_wait,
    .event_destroy = lf_sim_event_destroy,
};

// As of an H200, so that launches choose what they would choose there.
static const lf_device_info like_h200 = {.target = "sim",
                                         .description = "simulated GPU (the kernels for sm_90, on the CPU, checked)",
                                         .processors = 132,
                                         .threads_a_processor = 2048,
                                         .registers_a_processor = 65536,
                                         .shared_a_processor = 233472,
                                         .max_block = LF_SIM_MAX_BLOCK,
                                         .max_cluster = 8,
                                         .max_shared = LF_SIM_MAX_SHARED};

static lf_status fill(lf_sim_device *d, const lf_log *log) {
    static const lf_native_kernel tasks[] = {[LF_SIM_TASK_COLLECT] = lf_sim_collect,
                                             [LF_SIM_TASK_FREE] = lf_sim_free_in_order};
    LF_TRY(lf_cpu_device_create(d->base.allocator, log, 1, &d->inner));
    d->base.info.memory_bytes = d->inner->info.memory_bytes;
    for (unsigned i = 0; i < sizeof tasks / sizeof *tasks; i++)
        LF_TRY(lf_sim_load_native(d, "task", tasks[i], NULL, &d->tasks[i]));
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
