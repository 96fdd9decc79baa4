// The one file that may call malloc.
#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

static void *system_alloc(void *self, size_t size) {
    (void)self;
    return malloc(size);
}
static void *system_resize(void *self, void *block, size_t size) {
    (void)self;
    return realloc(block, size);
}
static void system_release(void *self, void *block) {
    (void)self;
    free(block);
}

const lf_allocator lf_system_allocator = {NULL, system_alloc, system_resize, system_release, false};

void *lf_alloc(const lf_allocator *a, size_t size) { return a->alloc(a->self, size ? size : 1); }

void *lf_alloc_zero(const lf_allocator *a, size_t size) {
    void *block = lf_alloc(a, size);
    if (block) memset(block, 0, size);
    return block;
}

void *lf_resize(const lf_allocator *a, void *block, size_t size) { return a->resize(a->self, block, size ? size : 1); }

void lf_free(const lf_allocator *a, void *block) {
    if (block) a->release(a->self, block);
}

char *lf_strndup(const lf_allocator *a, const char *s, size_t n) {
    char *copy = lf_alloc(a, n + 1);
    if (!copy) return NULL;
    memcpy(copy, s, n);
    copy[n] = 0;
    return copy;
}
