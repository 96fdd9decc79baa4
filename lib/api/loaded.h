// Compiled code of a context: what two executables have in common they share, what was compiled before comes from the cache.
// Private to lib/api.
#ifndef LF_API_LOADED_H
#define LF_API_LOADED_H
#include "base/dylib.h"
#include "cache/cache.h"
#include "codegen/codegen.h"
#include "runtime/device.h"
#include <lfuser/lfuser.h>
#include <pthread.h>

// What to compile. Host code: `loop` and `device` are NULL.
typedef struct lf_loaded_request {
    const lf_program *program; // host code
    const lf_loop *loop;       // kernel
    lfuser_device *device;     // a kernel's
    lfuser_abi_class cls;
    lf_codegen_options options;
} lf_loaded_request;

typedef struct lf_loaded lf_loaded;
struct lf_loaded {
    lf_object object;
    lf_kernel *kernel; // owned; NULL: host code
    // Private to loaded.c.
    lf_cache_key key;
    lfuser_device *device; // not retained: whoever holds the code holds the device
    uint32_t references;
    bool ready, failed;
    lf_loaded *next;
};

enum { LF_LOADED_BUCKETS = 256 };
typedef struct lf_loaded_table {
    pthread_mutex_t lock; // guards buckets, and references, ready and failed of what is in them
    pthread_cond_t changed;
    lf_loaded *buckets[LF_LOADED_BUCKETS];
    lf_cache *cache;     // owned
    char processor[256]; // of this machine
    _Atomic uint64_t compiles, shared;
} lf_loaded_table;

lf_status lf_loaded_table_init(lfuser_context *c, const lfuser_context_options *options) LF_MUST_USE;
void lf_loaded_table_finish(lfuser_context *c);
// The code, from this context, the cache or the code generator; of any number of threads that ask at once one makes it. Loads it,
// too. *out_compiled (may be NULL): the code generator was needed.
lf_status lf_loaded_get(lfuser_context *c, const lf_loaded_request *r, lf_loaded **out_code, bool *out_compiled) LF_MUST_USE;
void lf_loaded_release(lfuser_context *c, lf_loaded *code); // NULL is fine; nobody may be running it
// Whether get would need the code generator.
bool lf_loaded_is_cold(lfuser_context *c, const lf_loaded_request *r);
#endif
