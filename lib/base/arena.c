// Bump allocation. Blocks double up to 1 MiB; a larger request gets a block of its own.
#include "base/arena.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct lf_arena_block {
    lf_arena_block *older;
    size_t size;
};

enum { ALIGN = 16, HEADER = (sizeof(lf_arena_block) + ALIGN - 1) / ALIGN * ALIGN };

void lf_arena_init(lf_arena *arena, const lf_allocator *allocator) { *arena = (lf_arena){.allocator = allocator}; }

void lf_arena_finish(lf_arena *arena) {
    for (lf_arena_block *b = arena->blocks, *older; b; b = older) {
        older = b->older;
        lf_free(arena->allocator, b);
    }
    *arena = (lf_arena){.allocator = arena->allocator};
}

static bool grow(lf_arena *arena, size_t need) {
    size_t size = arena->blocks ? arena->blocks->size * 2 : 4096;
    if (size > (1u << 20)) size = 1u << 20;
    if (size < need + HEADER || arena->allocator->exact) size = need + HEADER;
    lf_arena_block *b = lf_alloc(arena->allocator, size);
    if (!b) return false;
    *b = (lf_arena_block){arena->blocks, size};
    arena->blocks = b;
    arena->next = (char *)b + HEADER;
    arena->end = (char *)b + size;
    return true;
}

void *lf_arena_alloc(lf_arena *arena, size_t size) {
    if (size > SIZE_MAX / 2) return arena->failed = true, NULL;
    size = (size + !size + ALIGN - 1) / ALIGN * ALIGN; // nothing has an address too: NULL is a failure
    if ((size_t)(arena->end - arena->next) < size && !grow(arena, size)) return arena->failed = true, NULL;
    void *p = arena->next;
    arena->next += size;
    return memset(p, 0, size);
}

void *lf_arena_array(lf_arena *arena, size_t element, size_t n) {
    size_t size;
    if (__builtin_mul_overflow(element, n, &size)) return arena->failed = true, NULL;
    return lf_arena_alloc(arena, size);
}

bool lf_arena_grow(lf_arena *arena, void **array, size_t element, uint32_t n, uint32_t *capacity) {
    if (n < *capacity) return true;
    uint32_t room = *capacity ? 2 * *capacity : 8;
    void *grown = room > n ? lf_arena_array(arena, element, room) : NULL; // not: more than a u32 counts
    if (!grown) return false;
    if (n) memcpy(grown, *array, n * element);
    *array = grown;
    *capacity = room;
    return true;
}

char *lf_arena_strndup(lf_arena *arena, const char *s, size_t n) {
    char *copy = lf_arena_alloc(arena, n + 1);
    if (copy) memcpy(copy, s, n);
    return copy;
}

char *lf_arena_vprintf(lf_arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0) return NULL;
    char *s = lf_arena_alloc(arena, (size_t)n + 1);
    if (s) vsnprintf(s, (size_t)n + 1, format, args);
    return s;
}

char *lf_arena_printf(lf_arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *s = lf_arena_vprintf(arena, format, args);
    va_end(args);
    return s;
}
