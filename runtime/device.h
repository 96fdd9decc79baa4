// What a device is to the rest of the library: streams, stream-ordered memory, code, launches, events, mailboxes.
// One folder below this one implements it for each kind of device. Nothing here knows the IR or LLVM.
//
// Threads: a device may be used from any thread; a stream from one thread at a time, except where a line says otherwise.
// Streams run their work in the order in which it was given to them. No function but those named *synchronize or *wait
// blocks on device work, with exceptions that a line below names.
#ifndef LF_RUNTIME_DEVICE_H
#define LF_RUNTIME_DEVICE_H
#include "base/alloc.h"
#include "base/log.h"
#include "base/status.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct lf_device lf_device;
typedef struct lf_stream lf_stream;
typedef struct lf_event lf_event;
typedef struct lf_replay lf_replay; // a chain of launches that the device keeps
typedef struct lf_kernel lf_kernel; // loaded code, ready to launch on its device

// Counters only grow; read with relaxed loads from any thread.
typedef struct lf_device_stats {
    _Atomic uint64_t launches, syncs, kernels_loaded, allocations, bytes_copied;
} lf_device_stats;

// Code as a code generator hands it over; all pointers are borrowed for the duration of the load call, except `address`.
typedef enum lf_image_kind { LF_IMAGE_NATIVE, LF_IMAGE_PTX, LF_IMAGE_CUBIN } lf_image_kind;
typedef struct lf_image {
    lf_image_kind kind;
    const char *entry; // name of the kernel
    const void *data;  // PTX text (NUL-terminated) or cubin
    size_t size;       // bytes of data
    void *
        address; // NATIVE: lf_native_kernel (SIM device: lf_sim_program, base/sim_abi.h); stays valid until the kernel is destroyed
    uint32_t shared_bytes; // static shared memory a block uses (reported, checked against the device)
    // NATIVE: called once, with release_arg, when the kernel is destroyed and its last launch is over, on whatever thread
    // that ends on. NULL: kernel_destroy waits for its launches instead.
    void (*release)(void *arg);
    void *release_arg;
    uint32_t registers; // image_link: most that a thread may have; 0: the driver decides
} lf_image;

// CPU code of a kernel: does work items [begin, end). `args` is the argument block.
typedef void (*lf_native_kernel)(const uint64_t *args, uint64_t begin, uint64_t end);

typedef struct lf_launch {
    const lf_kernel *kernel;
    const uint64_t *args;         // copied before launch returns
    uint32_t n_args;              // 64-bit words
    bool args_in_memory;          // the kernel takes a pointer to the block instead of the block (blocks over 4 KB)
    uint64_t items, grain;        // CPU: work items, and how many at least a thread should take at once
    uint32_t grid, block, shared; // GPU: blocks in x, threads a block, bytes of dynamic shared memory
    // GPU: the caller has just given a kernel to the same stream, and this one waits for that one's end by itself before it touches
    // memory: it may begin earlier. A hint: where a device cannot, the kernel begins when the other has ended.
    bool follows;
    void *zero; // replay: memory that is set to 0 before
    uint64_t zero_bytes;
} lf_launch;

// A mailbox slot: written by a kernel (value, then sequence with release order, system scope), read by the host (acquire).
// A launch that may be replayed increments `sequence`, so that its values are told apart; others write 1.
typedef struct lf_mailbox_slot {
    _Atomic uint64_t sequence;
    uint64_t value[2];
    uint64_t reserved;
} lf_mailbox_slot;

typedef enum lf_copy_kind { LF_COPY_HOST_TO_DEVICE, LF_COPY_DEVICE_TO_HOST, LF_COPY_DEVICE_TO_DEVICE } lf_copy_kind;

// DLPack's numbers (DLDeviceType).
typedef enum lf_device_type {
    LF_DEVICE_CPU = 1,
    LF_DEVICE_CUDA = 2,
    LF_DEVICE_SIM = 12 /* an extension device */
} lf_device_type;

typedef struct lf_device_ops {
    const char *name;                   // "cpu", "cuda", "sim"
    void (*destroy)(lf_device *device); // waits for its streams
    // Streams. wrap: a stream that the caller owns (a CUstream; on the CPU device another lf_stream's native handle); NULL
    // is the device's default stream.
    lf_status (*stream_create)(lf_device *device, lf_stream **out_stream);
    lf_status (*stream_wrap)(lf_device *device, void *native, lf_stream **out_stream);
    void *(*stream_native)(lf_stream *stream);
    void (*stream_destroy)(lf_stream *stream);          // waits for its work, unless wrapped
    lf_status (*stream_synchronize)(lf_stream *stream); // counted in stats.syncs
    lf_status (*stream_query)(lf_stream *stream);       // LF_NOT_READY while busy
    lf_status (*stream_wait_event)(lf_stream *stream, lf_event *event);
    // Calls fn(arg) in stream order on some thread of the runtime; fn must not call this library.
    lf_status (*stream_callback)(lf_stream *stream, void (*fn)(void *arg), void *arg);
    bool (*stream_capturing)(lf_stream *stream);
    // Device memory, stream-ordered: usable at once by work given to `stream` later; bytes 0 gives NULL. 256-byte aligned.
    lf_status (*memory_alloc)(lf_stream *stream, size_t bytes, void **out_pointer);
    void (*memory_free)(lf_stream *stream, void *pointer); // NULL is fine
    lf_status (*memory_copy)(lf_stream *stream, void *to, const void *from, size_t bytes, lf_copy_kind kind);
    lf_status (*memory_fill)(lf_stream *stream, void *to, uint8_t byte, size_t bytes);
    // Which device holds this address: type and ordinal; type CPU, ordinal 0 for plain host memory.
    lf_status (*memory_where)(lf_device *device, const void *pointer, int *out_type, int *out_ordinal);
    // Host memory that kernels can read and write while they run (pinned and mapped); zeroed. The device's address of it
    // may differ from the host's.
    lf_status (*mapped_alloc)(lf_device *device, size_t bytes, void **out_host, void **out_device);
    void (*mapped_free)(lf_device *device, void *host); // CUDA: waits for running kernels
    // Code. CUDA: the driver lets a load wait until no kernel runs on the GPU, whatever stream it is on.
    lf_status (*kernel_load)(lf_device *device, const lf_image *image, lf_kernel **out_kernel);
    // PTX translated to a cubin that kernel_load takes, to be stored; freed with lf_free(device->allocator, …). Does not touch
    // the GPU. LF_UNSUPPORTED where the driver has no linker. NULL: the device runs no PTX.
    lf_status (*image_link)(lf_device *device, const lf_image *ptx, void **out_cubin, size_t *out_size);
    void (*kernel_destroy)(lf_kernel *kernel);
    lf_status (*launch)(lf_stream *stream, const lf_launch *launch); // zero items or grid: does nothing
    // All of these launches, in order, given to the device at once. *io_replay is NULL or was made by an earlier call for this
    // stream, which must be used by one thread at a time; what differs from that call is set anew. *out_done false: these
    // launches cannot be given so, launch them one by one. NULL: the device has no such thing.
    lf_status (*replay)(lf_stream *stream, lf_replay **io_replay, const lf_launch *launches, uint32_t n, bool *out_done);
    void (*replay_destroy)(lf_replay *replay); // its launches must be over
    // Events.
    lf_status (*event_create)(lf_device *device, lf_event **out_event);
    lf_status (*event_record)(lf_event *event, lf_stream *stream);
    lf_status (*event_query)(lf_event *event); // LF_NOT_READY while pending
    lf_status (*event_wait)(lf_event *event);  // counted in stats.syncs
    void (*event_destroy)(lf_event *event);
} lf_device_ops;

// What code generation and launch sizes need to know.
typedef struct lf_device_info {
    char target[32];                                                         // "cpu", "cuda:sm_90" or "sim"
    char description[128];                                                   // for people
    uint32_t processors;                                                     // cores or multiprocessors
    uint32_t threads_a_processor, registers_a_processor, shared_a_processor; // resident at once; 0: not known
    uint32_t max_block;                                                      // threads a block
    uint32_t max_cluster;    // blocks a cluster that every such device takes; 0: it has no clusters
    uint32_t max_shared;     // bytes of shared memory a block may have (opt-in limit)
    uint32_t driver_version; // CUDA: as cuDriverGetVersion says, else 0
    uint64_t memory_bytes;
} lf_device_info;

// First member of each implementation's own struct.
struct lf_device {
    const lf_device_ops *ops;
    const lf_allocator *allocator; // borrowed
    lf_log log;
    lf_device_type type;
    int ordinal;
    lf_device_info info;
    lf_device_stats stats;
};
struct lf_stream {
    lf_device *device;
};
struct lf_event {
    lf_device *device;
};
// What the device's own compiler gave a kernel; all 0 where it does not say (the CPU).
typedef struct lf_kernel_resources {
    uint32_t registers;    // a thread
    uint32_t local_bytes;  // a thread: registers that did not fit, and arrays
    uint32_t shared_bytes; // a block, static
} lf_kernel_resources;
struct lf_kernel {
    lf_device *device;
    lf_kernel_resources resources;
};

// threads: 0 = one per core (or LFUSER_NUM_THREADS). See runtime/cpu.
lf_status lf_cpu_device_create(const lf_allocator *a, const lf_log *log, uint32_t threads,
                               lf_device **out_device) LF_MUST_USE;
// GPU kernels on the CPU, every access checked. A kernel's fault becomes the status of the next synchronisation of its stream and of
// the next event recorded on it. LF_UNAVAILABLE on a processor that it has no code for. See runtime/sim.
lf_status lf_sim_device_create(const lf_allocator *a, const lf_log *log, lf_device **out_device) LF_MUST_USE;
// LF_UNAVAILABLE, with the reason, when there is no driver or no such GPU. See runtime/cuda.
lf_status lf_cuda_device_create(const lf_allocator *a, const lf_log *log, int ordinal, lf_device **out_device) LF_MUST_USE;
#endif
