// Growable arrays: LF_VEC(type) is a struct {data, count, capacity, allocator}; pushing may fail for want of memory.
#ifndef LF_BASE_VEC_H
#define LF_BASE_VEC_H
#include "base/alloc.h"
#include <stdbool.h>
#include <stdint.h>

#define LF_VEC(type)                                                                                                        \
    struct {                                                                                                                \
        type *data;                                                                                                         \
        size_t count, capacity;                                                                                             \
        const lf_allocator *allocator;                                                                                      \
    }

#define lf_vec_init(v, a) ((v)->data = NULL, (v)->count = (v)->capacity = 0, (v)->allocator = (a))
#define lf_vec_finish(v) (lf_free((v)->allocator, (v)->data), (v)->data = NULL, (v)->count = (v)->capacity = 0)
// True when there is room for `n` more elements.
#define lf_vec_reserve(v, n)                                                                                                \
    ((v)->capacity - (v)->count >= (size_t)(n) ||                                                                           \
     lf_vec_grow((v)->allocator, (void **)(void *)&(v)->data, &(v)->capacity, (v)->count, (size_t)(n), sizeof *(v)->data))
// False when out of memory; the vector is then as it was.
#define lf_vec_push(v, x) (lf_vec_reserve(v, 1) ? ((v)->data[(v)->count++] = (x), true) : false)

bool lf_vec_grow(const lf_allocator *a, void **data, size_t *capacity, size_t count, size_t more, size_t element);
#endif
