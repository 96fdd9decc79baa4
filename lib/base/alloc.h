// The embedder's allocator, and the only way this library gets memory.
// Does not belong here: arenas (arena.h), device memory (runtime/device.h).
#ifndef LF_BASE_ALLOC_H
#define LF_BASE_ALLOC_H
#include <stdbool.h>
#include <stddef.h>

// All sizes are bytes. Every function may return NULL; freeing NULL is fine. Must be thread-safe.
typedef struct lf_allocator {
    void *self;
    void *(*alloc)(void *self, size_t size);
    void *(*resize)(void *self, void *block, size_t size); // block may be NULL; size is > 0
    void (*release)(void *self, void *block);
    // Arenas, vectors and maps ask for each piece by itself instead of for room ahead: slow. For tests, which then see every request,
    // and can fail it; and for tools that watch the bounds of blocks.
    bool exact;
} lf_allocator;

// malloc, realloc and free. Immutable.
extern const lf_allocator lf_system_allocator;

void *lf_alloc(const lf_allocator *a, size_t size);
void *lf_alloc_zero(const lf_allocator *a, size_t size);
void *lf_resize(const lf_allocator *a, void *block, size_t size);
void lf_free(const lf_allocator *a, void *block);
// NULL when out of memory.
char *lf_strndup(const lf_allocator *a, const char *s, size_t n);
#endif
