// What the files of the SIM device share. A launch runs its blocks in turn, the threads of a block as fibers of one thread of the process:
// each runs until it must wait for others (a barrier, a warp operation), gives way (an atomic or volatile access) or ends. The blocks of a
// cluster run together. One launch runs at a time on a device. Streams, events and their order are those of an inner CPU device; see device.c, whose own files share device.h.
#ifndef LF_RUNTIME_SIM_H
#define LF_RUNTIME_SIM_H
#include "base/sim_abi.h"
#include "base/vec.h"
#include "runtime/device.h"
#include <pthread.h>

typedef enum lf_sim_fault_kind {
#define LF_SIM_FAULT(id, name) LF_SIM_##id,
#include "runtime/sim/faults.def"
#undef LF_SIM_FAULT
} lf_sim_fault_kind;

enum {
    LF_SIM_WARP = 32,
    LF_SIM_MAX_BLOCK = 1024,
    LF_SIM_MAX_CLUSTER = 16,
    LF_SIM_MAX_SHARED = 232448,
    LF_SIM_STACK = 256 * 1024
};

typedef struct lf_sim_device lf_sim_device;
typedef struct lf_sim_run lf_sim_run;

// ---- memory.c: what the device's addresses are.
typedef enum lf_sim_memory_kind { LF_SIM_DEVICE_MEMORY, LF_SIM_MAPPED_MEMORY } lf_sim_memory_kind;

// Who wrote four bytes of global memory last, in the launch at hand (races.c).
typedef struct lf_sim_cell {
    uint32_t launch, block, epoch, order;
    uint16_t thread;
    uint8_t bytes, atomic; // bit b: byte b
} lf_sim_cell;

typedef struct lf_sim_allocation {
    uintptr_t begin;
    size_t bytes;
    lf_sim_memory_kind kind;
    uint64_t freed; // number of its freeing, from 1: given back, and kept a while so that a late use is told from a wild one
    void *raw;      // owned
    lf_sim_cell *cells; // owned; NULL until a launch writes to it, or when it is too large
} lf_sim_allocation;

typedef struct lf_sim_memory {
    pthread_mutex_t lock;
    LF_VEC(lf_sim_allocation) all; // by address
    size_t freed_bytes, n_freed;
    uint64_t frees;
} lf_sim_memory;

void lf_sim_memory_init(lf_sim_memory *m, const lf_allocator *a);
void lf_sim_memory_finish(lf_sim_memory *m);
void *lf_sim_memory_take(lf_sim_memory *m, size_t bytes, lf_sim_memory_kind kind); // NULL: out of memory
bool lf_sim_memory_give(lf_sim_memory *m, void *pointer); // false: it was never given out, or is back already
enum { LF_SIM_MOST_FREED = 16 };
void lf_sim_memory_trim(lf_sim_memory *m,
                        size_t most); // gives up what was freed, but for the latest `most`; no launch may be running
// A copy of the allocation that holds the address, or else of the nearest one before it. False: there is none.
bool lf_sim_memory_find(lf_sim_memory *m, uintptr_t address, lf_sim_allocation *out);
bool lf_sim_memory_find_from(lf_sim_memory *m, uintptr_t address,
                             lf_sim_allocation *out);                // the first one that begins behind the address
lf_sim_cell *lf_sim_memory_cells(lf_sim_memory *m, uintptr_t begin); // made when not there; NULL: none can be had

// ---- fiber.c
typedef struct lf_sim_stack {
    char *low; // LF_SIM_STACK bytes
    struct lf_sim_stack *next;
} lf_sim_stack;
// Leaves the running stack, whose place goes to *from, for another.
void lf_sim_switch(void **from, void *to);
void *lf_sim_fiber_begin(lf_sim_stack *stack, lf_sim_thread *t, void (*main)(lf_sim_thread *t));
lf_sim_stack *lf_sim_stack_create(const lf_allocator *a);
void lf_sim_stack_destroy(const lf_allocator *a, lf_sim_stack *stack);

// ---- copies.c: an asynchronous copy to shared memory that has not been waited for.
typedef struct lf_sim_copy {
    char *to;
    uint32_t bytes, group;
    uint8_t data[16];
} lf_sim_copy;
void lf_sim_copy_start(lf_sim_thread *t, void *to, const void *from, uint32_t bytes, uint32_t site);
void lf_sim_copy_commit(lf_sim_thread *t);
void lf_sim_copy_wait(lf_sim_thread *t, uint32_t groups_left, uint32_t site); // all but the latest groups_left groups

// ---- threads
typedef enum lf_sim_state {
    LF_SIM_NEW,
    LF_SIM_READY,
    LF_SIM_AT_BARRIER,
    LF_SIM_AT_WARP,
    LF_SIM_AT_CLUSTER,
    LF_SIM_DONE
} lf_sim_state;

// Does a warp operation for the lanes in `active`: reads their operands, writes their results.
typedef void (*lf_sim_collective)(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active);

// A block of the cluster that runs.
typedef struct lf_sim_block {
    uint32_t ctaid, rank;   // in the grid, in the cluster
    lf_sim_thread *threads; // block of them
    uint32_t epoch;         // when it last passed a barrier
    uint32_t warp_epoch[LF_SIM_MAX_BLOCK / LF_SIM_WARP];
    uint32_t atomics; // accesses to global memory
    uint32_t ended;   // threads
} lf_sim_block;

struct lf_sim_thread {
    lf_sim_face face; // first
    lf_sim_run *run;
    lf_sim_block *block;
    lf_sim_state state;
    bool arrived;    // at the cluster's barrier, where it has not waited yet
    bool early;      // the kernel before may still be running, as far as this thread knows
    uint32_t phase;  // of the cluster's barrier, when it arrived
    uint32_t number; // in the block
    uint32_t site;   // where it waits
    void *sp;
    lf_sim_stack *stack; // borrowed from the device while it runs
    lf_sim_collective collective;
    uint32_t mask; // of the warp operation
    const uint64_t *operands;
    uint64_t *results;
    uint32_t fence_epoch, fence_order; // of its last fence for the device; 0: none
    bool unfenced;                     // has written to mapped memory since its last fence for the host
    uint32_t group;                    // of asynchronous copies, open
    LF_VEC(lf_sim_copy) copies;
};

// A byte of shared memory. Epochs: barriers passed, in the high half; syncs of the warp, in the low one; 0: never.
typedef struct lf_sim_byte {
    uint64_t written, read;
    uint16_t writer, reader; // reader: a thread, LF_SIM_MANY | warp, or LF_SIM_ALL
    uint8_t writer_rank, reader_rank;
    bool atomic : 1, pending : 1;         // the last write was; an asynchronous copy is to come
    bool early_write : 1, early_read : 1; // by a thread that had arrived at the cluster's barrier before
} lf_sim_byte;
enum { LF_SIM_MANY = 0x8000, LF_SIM_ALL = 0xffff };

// A program with its distances as addresses.
typedef struct lf_sim_code {
    void (*entry)(lf_sim_thread *t, const uint64_t *args);
    const char *texts;
    const lf_sim_site *sites;
    const lf_sim_shared *shared;
    uint32_t name, n_sites, n_shared, shared_bytes;
    uint32_t cluster; // blocks
} lf_sim_code;

// One launch, while it runs.
struct lf_sim_run {
    lf_sim_device *device;
    const lf_sim_code *program;
    const uint64_t *args;  // as the kernel reads them
    const uint64_t *words; // the argument block
    uint32_t n_args, grid, block, shared_bytes;
    bool follows;           // the launch may begin before the one before it has ended (lf_launch)
    uint32_t launch;        // number of the launch on the device
    uint32_t first_epoch;   // of this cluster
    uint32_t epoch;         // barriers passed on this device
    uint32_t order;         // counts fences and global writes
    void *scheduler;        // its stack
    uint32_t cluster;       // blocks that run together
    uint64_t stride;        // from one block's shared memory to the next one's, in bytes
    lf_sim_thread *threads; // cluster * block of them
    lf_sim_block blocks[LF_SIM_MAX_CLUSTER];
    uint32_t arrived, ended, phase;               // at the cluster's barrier: threads; how often all have
    uint32_t cluster_epoch, cluster_epoch_before; // when all had, the last time and the time before
    struct {
        uint32_t epoch, order, thread;
        bool any;
    } *released;                 // by block: its last fence for the device
    lf_sim_allocation recent[4]; // found last
    unsigned next_recent;
    // The first read of shared memory that nobody has written: a fault of its own, unless it turns out to be one side of a race.
    struct {
        bool any;
        uint32_t site;
        const lf_sim_thread *thread;
        const char *address;
    } unwritten;
    bool faulted, no_memory;
    char text[768];
};

// ---- block.c
void lf_sim_run_launch(lf_sim_run *r); // device's `running` lock held
void lf_sim_leave(lf_sim_thread *t);   // lets others run; returns when the scheduler says so
void lf_sim_wait_barrier(lf_sim_thread *t, uint32_t site);
void lf_sim_meet(lf_sim_thread *t, uint32_t site, uint32_t mask, lf_sim_collective fn, const uint64_t *operands,
                 uint64_t *results);

// ---- cluster.c
void lf_sim_thread_ends(lf_sim_thread *t);
uint32_t lf_sim_rank_of(const lf_sim_run *r, const void *address); // of the block whose shared memory this is
void lf_sim_check_owner(lf_sim_thread *t, const void *address, uint32_t site, const char *verb); // it runs
void lf_sim_do_cluster_arrive(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint64_t *out);
void lf_sim_do_cluster_wait(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint64_t *out);
void lf_sim_do_cluster_map(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint64_t *out);

// ---- warp.c
bool lf_sim_resolve_warp(lf_sim_run *r, const lf_sim_block *b, uint32_t warp); // true: lanes may go on
void lf_sim_diagnose(lf_sim_run *r);                                           // nobody can go on: says why, as a fault
void lf_sim_do_warp_sync(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint64_t *out);

// ---- access.c
extern const lf_sim_calls lf_sim_calls_table;
void lf_sim_check(lf_sim_thread *t, const void *address, uint64_t bytes, uint32_t site, const lf_sim_site *what);
void lf_sim_fence(lf_sim_thread *t, unsigned flags); // RELEASE, and SYSTEM
const char *lf_sim_shared_name(const lf_sim_run *r, const void *address, uint64_t *out_offset);

// ---- races.c: global memory between threads.
void lf_sim_global_races(lf_sim_thread *t, const lf_sim_allocation *a, uintptr_t address, uint64_t bytes, uint32_t site,
                         unsigned flags);

// ---- bodies.c: the rows of device_intrinsics.def.
void lf_sim_device_call(lf_sim_thread *t, uint32_t row, uint32_t site, const uint64_t *operands, uint64_t *results);

// ---- fault.c: the first fault of a run is kept, with kernel, block, thread and place.
void lf_sim_note_fault(lf_sim_run *r, const lf_sim_thread *t, lf_sim_fault_kind kind, uint32_t site, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void lf_sim_note_unwritten(lf_sim_run *r); // the read that nobody has written for, if there was one
// The same by the thread itself, which then never runs on.
_Noreturn void lf_sim_fault(lf_sim_thread *t, lf_sim_fault_kind kind, uint32_t site, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// ---- device.c (its table: queue.c, stream.c, event.c, buffers.c, kernel.c)
typedef struct lf_sim_queue lf_sim_queue; // what is to be told of the launches on a stream
struct lf_sim_device {
    lf_device base;
    lf_device *inner; // owned: a CPU device of one thread, for streams, events and their order
    lf_sim_memory memory;
    pthread_mutex_t lock;       // queues
    lf_sim_queue *queues;       // owned
    lf_kernel *tasks[2];        // owned, of the inner device: what is done in stream order beside launches
    pthread_mutex_t running;    // the launch at hand, and all below
    lf_sim_stack *stacks;       // owned, unused
    lf_sim_thread *threads;     // owned
    char *shared;               // owned
    lf_sim_byte *bytes;         // owned, of shared memory
    size_t n_threads, n_shared; // that there is room for
    uint32_t epoch, launches;
};
#endif
