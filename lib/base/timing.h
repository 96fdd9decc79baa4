// Counters of compile time, by stage: always on, since a reading of the clock costs nothing beside a stage.
// Does not belong here: what runs cost (lfuser_stats).
#ifndef LF_BASE_TIMING_H
#define LF_BASE_TIMING_H
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

typedef enum lf_timed {
#define LF_TIMED(id, name) LF_TIMED_##id,
#include "base/timing.def"
#undef LF_TIMED
    LF_TIMED_COUNT
} lf_timed;

// Any thread adds; stages of several threads add up.
typedef struct lf_timing {
    _Atomic uint64_t ns[LF_TIMED_COUNT], times[LF_TIMED_COUNT];
} lf_timing;

static inline uint64_t lf_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
// The time since *since, which is moved to now: stages follow each other.
static inline void lf_timing_add(lf_timing *t, lf_timed stage, uint64_t *since) {
    uint64_t now = lf_now_ns();
    atomic_fetch_add_explicit(&t->ns[stage], now - *since, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->times[stage], 1, memory_order_relaxed);
    *since = now;
}
#endif
