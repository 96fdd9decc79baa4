// See handle.h.
#include "api/api.h"
#if defined(__SANITIZE_ADDRESS__)
#define LF_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LF_POISONS 1
#endif
#endif
#ifdef LF_POISONS // so that the library's own use of what it has ended does not hide here
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

static void release(const lf_allocator *a, lf_handle *handle) {
    if (!handle) return;
    ASAN_UNPOISON_MEMORY_REGION(handle, handle->bytes);
    lf_free(a, handle);
}

void lf_bury(lfuser_context *c, lf_handle *handle, size_t bytes) {
    *handle = (lf_handle){LF_GONE, (uint32_t)bytes};
    ASAN_POISON_MEMORY_REGION(handle + 1, bytes - sizeof *handle);
    uint32_t n = atomic_fetch_add(&c->graves.next, 1);
    release(&c->allocator, atomic_exchange(&c->graves.at[n % LF_GRAVES], handle));
}

void lf_graves_finish(lfuser_context *c) {
    for (unsigned i = 0; i < LF_GRAVES; i++) release(&c->allocator, atomic_exchange(&c->graves.at[i], NULL));
}

lf_status lf_no_such_handle(const void *handle, lf_handle_kind kind, const char *function) {
    const char *name = kind == LF_DEVICE_HANDLE    ? "device"
                       : kind == LF_STREAM_HANDLE  ? "stream"
                       : kind == LF_FUSION_HANDLE  ? "fusion"
                       : kind == LF_BUILDER_HANDLE ? "builder"
                                                   : "executable";
    const char *why = !handle                                      ? "is NULL"
                      : ((const lf_handle *)handle)->is == LF_GONE ? "has been destroyed"
                                                                   : "is something else";
    return lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "%s: %s %s", function, name, why);
}
