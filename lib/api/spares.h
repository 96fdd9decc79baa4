// Objects kept for the next run that needs one, so that a steady caller reaches no allocator: a few places, each taken and filled
// by one atomic exchange. Any thread.
#ifndef LF_API_SPARES_H
#define LF_API_SPARES_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { LF_SPARES = 32 };

typedef struct lf_spares {
    _Atomic(void *) places[LF_SPARES];
} lf_spares;

static inline void *lf_spares_take(lf_spares *s) {
    for (unsigned i = 0; i < LF_SPARES; i++) {
        if (!atomic_load_explicit(&s->places[i], memory_order_relaxed)) continue;
        void *object = atomic_exchange_explicit(&s->places[i], NULL, memory_order_acquire);
        if (object) return object;
    }
    return NULL;
}

// False: there is no room, the caller frees it.
static inline bool lf_spares_give(lf_spares *s, void *object) {
    for (unsigned i = 0; i < LF_SPARES; i++) {
        void *none = NULL;
        if (atomic_load_explicit(&s->places[i], memory_order_relaxed)) continue;
        if (atomic_compare_exchange_strong_explicit(&s->places[i], &none, object, memory_order_release,
                                                    memory_order_relaxed))
            return true;
    }
    return false;
}
#endif
