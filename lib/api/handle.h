// Use of an object that was destroyed. Destroying one marks it, whoever still refers to it, and its memory is kept until LF_GRAVES more
// objects of the context have ended: a handle that is used after its end is a status until then, instead of somebody else's memory.
// Contexts have no place to keep theirs; pending scalars and completions are taken up again by the next run.
#ifndef LF_API_HANDLE_H
#define LF_API_HANDLE_H
#include "base/status.h"
#include <lfuser/lfuser.h>
#include <stdatomic.h>
#include <stdint.h>

typedef enum lf_handle_kind { // words that memory seldom holds by chance
    LF_GONE = 0x6c66dead,
    LF_DEVICE_HANDLE = 0x6c660de1,
    LF_STREAM_HANDLE = 0x6c665712,
    LF_FUSION_HANDLE = 0x6c66f053,
    LF_BUILDER_HANDLE = 0x6c66b114,
    LF_EXECUTABLE_HANDLE = 0x6c66e8e5
} lf_handle_kind;

// What the struct behind a handle begins with.
typedef struct lf_handle {
    uint32_t is;    // lf_handle_kind
    uint32_t bytes; // of the struct, once it is buried
} lf_handle;

enum { LF_GRAVES = 32 };
typedef struct lf_graves {
    _Atomic(lf_handle *) at[LF_GRAVES];
    _Atomic uint32_t next;
} lf_graves;

// In place of freeing it, after all that it owns.
void lf_bury(lfuser_context *c, lf_handle *handle, size_t bytes);
void lf_graves_finish(lfuser_context *c);

static inline bool lf_is_handle(const void *handle, lf_handle_kind kind) {
    return handle && ((const lf_handle *)handle)->is == (uint32_t)kind;
}
// True for one that may be destroyed; marks it.
static inline bool lf_end_handle(void *handle, lf_handle_kind kind) {
    if (!lf_is_handle(handle, kind)) return false;
    ((lf_handle *)handle)->is = LF_GONE;
    return true;
}
lf_status lf_no_such_handle(const void *handle, lf_handle_kind kind, const char *function) LF_MUST_USE;

// Returns from a public function whose argument is NULL, destroyed or something else.
#define LF_NEED(argument, kind) LF_NEED_FOR(argument, kind, __func__)
#define LF_NEED_FOR(argument, kind, function)                                                                               \
    do {                                                                                                                    \
        if (!lf_is_handle(argument, kind)) return (lfuser_status)lf_no_such_handle(argument, kind, function);               \
    } while (0)
#endif
