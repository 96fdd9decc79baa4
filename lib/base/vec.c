// Growth of vectors: by half, at least 8 elements.
#include "base/vec.h"

bool lf_vec_grow(const lf_allocator *a, void **data, size_t *capacity, size_t count, size_t more, size_t element) {
    size_t need, bytes;
    if (__builtin_add_overflow(count, more, &need)) return false;
    size_t target = *capacity + *capacity / 2;
    if (target < 8) target = 8;
    if (target < need || a->exact) target = need;
    if (__builtin_mul_overflow(target, element, &bytes)) return false;
    void *grown = lf_resize(a, *data, bytes);
    if (!grown) return false;
    *data = grown;
    *capacity = target;
    return true;
}
