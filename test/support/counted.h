// An allocator that counts its blocks and calls, and fails call number `fail_at` (0: none). For one program; include once.
#ifndef LF_TEST_COUNTED_H
#define LF_TEST_COUNTED_H
#include "base/alloc.h"
#include <stdlib.h>

static _Atomic long live, calls, fail_at;
static void *counted_alloc(void *self, size_t bytes) {
    (void)self;
    void *p = ++calls == fail_at ? NULL : malloc(bytes);
    live += p != NULL;
    return p;
}
static void *counted_resize(void *self, void *block, size_t bytes) {
    (void)self;
    void *p = ++calls == fail_at ? NULL : realloc(block, bytes);
    live += p && !block;
    return p;
}
static void counted_release(void *self, void *block) {
    (void)self;
    live -= block != NULL;
    free(block);
}
static const lf_allocator counted = {NULL, counted_alloc, counted_resize, counted_release, false};
#endif
