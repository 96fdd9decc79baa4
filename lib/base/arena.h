// Bump allocation for things that live and die together: a graph, a compile.
// Does not belong here: growable arrays (vec.h).
#ifndef LF_BASE_ARENA_H
#define LF_BASE_ARENA_H
#include "base/alloc.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdarg.h>

typedef struct lf_arena_block lf_arena_block;
typedef struct lf_arena {
    const lf_allocator *allocator; // borrowed
    lf_arena_block *blocks;        // owned, newest first
    char *next, *end;
    bool failed; // an allocation returned NULL since lf_arena_init
} lf_arena;

void lf_arena_init(lf_arena *arena, const lf_allocator *allocator);
void lf_arena_finish(lf_arena *arena);

// Zeroed, aligned to 16; NULL when out of memory, and then `failed` is set. Callers of small pieces check each result.
void *lf_arena_alloc(lf_arena *arena, size_t size);
#define LF_ARENA_NEW(arena, type) ((type *)lf_arena_alloc((arena), sizeof(type)))
#define LF_ARENA_ARRAY(arena, type, n) ((type *)lf_arena_array((arena), sizeof(type), (n)))
void *lf_arena_array(lf_arena *arena, size_t element, size_t n);
// Room behind the first n elements of an array in the arena, which moves when it is full. False: out of memory.
#define LF_ARENA_GROW(arena, array, n, capacity)                                                                            \
    lf_arena_grow((arena), (void **)(void *)&(array), sizeof *(array), (n), &(capacity))
bool lf_arena_grow(lf_arena *arena, void **array, size_t element, uint32_t n, uint32_t *capacity);
char *lf_arena_strndup(lf_arena *arena, const char *s, size_t n);
char *lf_arena_printf(lf_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *lf_arena_vprintf(lf_arena *arena, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
#endif
