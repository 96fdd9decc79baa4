// How the code that lib/codegen/sim makes of a GPU kernel and the device that runs it (runtime/sim) meet: plain structs, as in
// launch_abi.h. The kernel is a function of its thread and its arguments; it asks the runtime before each access to memory, and for
// each row of device_intrinsics.def, by calling through the table that its thread begins with.
#ifndef LF_BASE_SIM_ABI_H
#define LF_BASE_SIM_ABI_H
#include <stdint.h>

typedef struct lf_sim_thread lf_sim_thread; // begins with a lf_sim_face

// What an instruction does to memory.
enum {
    LF_SIM_READ = 1,
    LF_SIM_WRITE = 2,
    LF_SIM_ATOMIC = 4,     // atomic or volatile: may be used between threads, and other threads get a turn before it
    LF_SIM_RELEASE = 8,    // what the thread did before is seen by who sees this
    LF_SIM_SYSTEM = 16,    // by the host too (RELEASE at system scope)
    LF_SIM_INVARIANT = 32, // a load of what no thread writes during the launch (ld.global.nc)
};

// Which memory it means; the address spaces of NVPTX.
enum { LF_SIM_GENERIC = 0, LF_SIM_GLOBAL = 1, LF_SIM_SHARED = 3, LF_SIM_CLUSTER = 7 };

// A place in the kernel that calls the runtime. Texts are offsets into lf_sim_program.texts.
typedef struct lf_sim_site {
    uint32_t block; // name of the basic block
    uint32_t what;  // name of the value, or of the intrinsic
    uint32_t bytes; // of an access; 0: given at run time
    uint8_t flags, space, align_log2, reserved;
} lf_sim_site;

// Static shared memory of the kernel; offsets from the block's shared memory.
typedef struct lf_sim_shared {
    uint32_t name;
    uint32_t offset, bytes;
} lf_sim_shared;

// The calls. A site is a number below lf_sim_program.n_sites. They return, or the thread never runs on (a fault).
typedef struct lf_sim_calls {
    void (*access)(lf_sim_thread *t, const void *address, uint32_t site);
    void (*range)(lf_sim_thread *t, const void *address, uint64_t bytes, uint32_t site); // memcpy, memset
    // Memory of one object that the code itself holds (an alloca, a constant): [base, base + size).
    void (*object)(lf_sim_thread *t, const void *address, const void *base, uint64_t size, uint32_t site);
    void (*fence)(lf_sim_thread *t, uint32_t site); // a fence instruction; the site's flags say what it orders
    // Row `row` of device_intrinsics.def: operands and results are words, narrow ones zero-extended, floats as their bits.
    void (*device)(lf_sim_thread *t, uint32_t row, uint32_t site, const uint64_t *operands, uint64_t *results);
} lf_sim_calls;

typedef struct lf_sim_face {
    const lf_sim_calls *calls;
    char *shared; // of the block
} lf_sim_face;

enum { LF_SIM_MAX_WORDS = 8 }; // operands or results of a row
#define LF_SIM_MAGIC UINT64_C(0x6c66206d69733031)
#define LF_SIM_SYMBOL "lf_sim_program" // of this struct in the generated object

// Read-only and free of addresses, as all generated code: what it refers to is given as a distance from its own beginning, in bytes.
typedef struct lf_sim_program {
    uint64_t magic;
    int64_t entry;  // void (*)(lf_sim_thread *, const uint64_t *args)
    int64_t texts;  // char[]
    int64_t sites;  // lf_sim_site[n_sites]
    int64_t shared; // lf_sim_shared[n_shared]
    uint32_t name;  // of the kernel
    uint32_t n_sites, n_shared;
    uint32_t shared_bytes;   // static; dynamic shared memory begins there
    uint32_t dynamic_shared; // 1: the kernel has an array of dynamic shared memory
    uint32_t cluster;        // blocks of a cluster; 0: the kernel has none
} lf_sim_program;
#endif
