// What the files that make up the SIM device's table share. A fault stays with the stream's queue until it is told: to the next event
// recorded there (so that the run's completion reports it), and to the next synchronisation of the stream. Later launches run all
// the same.
#ifndef LF_RUNTIME_SIM_DEVICE_H
#define LF_RUNTIME_SIM_DEVICE_H
#include "runtime/sim/sim.h"

// A fault's text, shared by all who will tell of it.
typedef struct lf_sim_fault_text {
    _Atomic uint32_t refs;
    bool no_memory;
    char text[768];
} lf_sim_fault_text;

struct lf_sim_queue {
    lf_sim_queue *next;
    void *native;  // of the inner stream
    uint32_t refs; // device's lock: streams
    pthread_mutex_t lock;
    lf_sim_fault_text *for_event, *for_synchronize; // owned references
};

typedef struct lf_sim_stream {
    lf_stream base;
    lf_stream *inner; // owned
    lf_sim_queue *queue;
    bool wrapped;
} lf_sim_stream;

static inline lf_sim_device *lf_sim_device_of(const lf_stream *stream) { return (lf_sim_device *)stream->device; }
static inline lf_sim_stream *lf_sim_stream_of(lf_stream *stream) { return (lf_sim_stream *)stream; }
static inline const lf_device_ops *lf_sim_inner(const lf_sim_device *d) { return d->inner->ops; }

// ---- queue.c
void lf_sim_put_fault(const lf_allocator *a, lf_sim_queue *q, const lf_sim_run *r);
lf_status lf_sim_status_of(const lf_allocator *a, const lf_sim_fault_text *f);
void lf_sim_unref_fault(const lf_allocator *a, lf_sim_fault_text *f);
lf_sim_queue *lf_sim_find_queue(lf_sim_device *d, void *native);
void lf_sim_drop_queue(lf_sim_device *d, lf_sim_queue *q, bool idle);
void lf_sim_forget_faults(lf_sim_device *d, lf_sim_queue *q);

// ---- stream.c
lf_status lf_sim_stream_create(lf_device *device, lf_stream **out_stream);
lf_status lf_sim_stream_wrap(lf_device *device, void *native, lf_stream **out_stream);
void *lf_sim_stream_native(lf_stream *stream);
void lf_sim_stream_destroy(lf_stream *stream);
lf_status lf_sim_stream_synchronize(lf_stream *stream);
lf_status lf_sim_stream_query(lf_stream *stream);
lf_status lf_sim_stream_callback(lf_stream *stream, void (*fn)(void *arg), void *arg);
bool lf_sim_stream_capturing(lf_stream *stream);
// What is done in stream order beside launches: rows of lf_sim_device.tasks.
enum { LF_SIM_TASK_COLLECT, LF_SIM_TASK_FREE };
lf_status lf_sim_in_order(lf_stream *stream, unsigned number, const uint64_t *args, uint32_t n_args);

// ---- event.c
lf_status lf_sim_event_create(lf_device *device, lf_event **out_event);
lf_status lf_sim_event_record(lf_event *event, lf_stream *stream);
lf_status lf_sim_event_query(lf_event *event);
lf_status lf_sim_event_wait(lf_event *event);
void lf_sim_event_destroy(lf_event *event);
lf_status lf_sim_stream_wait_event(lf_stream *stream, lf_event *event);
void lf_sim_collect(const uint64_t *args, uint64_t begin, uint64_t end);

// ---- buffers.c
lf_status lf_sim_memory_alloc(lf_stream *stream, size_t bytes, void **out_pointer);
void lf_sim_memory_free(lf_stream *stream, void *pointer);
lf_status lf_sim_memory_copy(lf_stream *stream, void *to, const void *from, size_t bytes, lf_copy_kind kind);
lf_status lf_sim_memory_fill(lf_stream *stream, void *to, uint8_t byte, size_t bytes);
lf_status lf_sim_memory_where(lf_device *device, const void *pointer, int *out_type, int *out_ordinal);
lf_status lf_sim_mapped_alloc(lf_device *device, size_t bytes, void **out_host, void **out_device);
void lf_sim_mapped_free(lf_device *device, void *host);
void lf_sim_free_in_order(const uint64_t *args, uint64_t begin, uint64_t end);

// ---- kernel.c
lf_status lf_sim_kernel_load(lf_device *device, const lf_image *image, lf_kernel **out_kernel);
void lf_sim_kernel_destroy(lf_kernel *kernel);
void lf_sim_free_threads(lf_sim_device *d);
lf_status lf_sim_launch(lf_stream *stream, const lf_launch *l);
lf_status lf_sim_load_native(lf_sim_device *d, const char *entry, lf_native_kernel fn, const lf_image *of,
                             lf_kernel **out_kernel);
#endif
