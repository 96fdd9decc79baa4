// What a test can tell the stub driver, and ask it. Found with dlsym in the stub's object.
#ifndef LF_TEST_CUDA_STUB_H
#define LF_TEST_CUDA_STUB_H
#include <stdbool.h>
#include <stddef.h>

typedef struct cuda_stub {
    // Told by the test.
    long fail_at;       // the number of the call that fails, from 1; 0: none
    unsigned fail_also; // bit i: call fail_at + i fails, too
    int fail_with;      // its result
    bool blocked;       // streams do not get on: what is recorded now is pending until this is false
    bool capturing;     // the stream `captured` captures in global mode
    void *captured;     // NULL: whatever stream is asked about
    bool no_pools;      // devices say that they have no memory pools
    bool no_linker;     // as a driver that cannot link
    bool no_cubins;     // cubins do not load: of another GPU, say
    int devices;
    // Read by the test.
    long calls;         // since the last reset
    const char *failed; // the call that failed
    // Places in the program that have called, and those whose call has failed, since the stub was loaded; what the others call.
    size_t sites, sites_failed;
    const char *unhit[8];
    bool capture_broken;                                                            // a call came that breaks a capture
    long streams, events, modules, pools, device_blocks, host_blocks, primary_refs; // alive
    int stack;     // contexts pushed and not popped, on the thread that reset the stub
    int mode;      // capture mode of that thread
    bool no_early; // as a driver that can launch no kernel before the one before it has ended
    long launches, early_launches, syncs, unloads, exchanges;
    long graphs, graph_execs;                         // alive
    long graphs_made, graph_launches, parameters_set; // ever
    long links;                                       // linker states alive
    long linked, ptx_loaded, cubins_loaded;
    unsigned grid, block, shared;
    size_t args_bytes; // of the last launch
    unsigned char args[4096];
    void *stream;
    void (*on_launch)(const void *args, size_t bytes); // runs as the kernel
} cuda_stub;

// Also forgets what is alive.
typedef cuda_stub *cuda_stub_reset_fn(void);
// Makes context n (1: one of device 0, not the primary; 2: one of device 1) current, 0: none.
typedef void cuda_stub_make_current_fn(int context);
#endif
