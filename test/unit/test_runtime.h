// What the tests of the runtime share: statuses, a counting allocator, a gate for callbacks.
#ifndef LF_TEST_RUNTIME_H
#define LF_TEST_RUNTIME_H
#include "runtime/device.h"
#include "test/support/build.h"
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline void ok(lf_status s) { ck_assert_msg(!s, "%s: %s", lf_code_name(lf_status_code(s)), lf_status_message(s)); }

// `words` must be in the message.
static inline void fails_with(lf_status s, lf_code code, const char *words) {
    ck_assert_str_eq(lf_code_name(lf_status_code(s)), lf_code_name(code));
    ck_assert_msg(strstr(lf_status_message(s), words) != NULL, "'%s' is not in: %s", words, lf_status_message(s));
    lf_status_destroy(s);
}
static inline void fails(lf_status s, lf_code code) { fails_with(s, code, ""); }

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// ---- an allocator that counts, and fails where it is told to

typedef struct counting {
    lf_allocator allocator;
    _Atomic long calls, live, fail_at; // fail_at: 0: none
    bool lasting;                      // later calls fail too
} counting;
static inline bool counting_fails(counting *c) {
    long call = atomic_fetch_add(&c->calls, 1) + 1, at = c->fail_at;
    return at && (call == at || (c->lasting && call > at));
}
static inline void *count_alloc(void *self, size_t size) {
    counting *c = self;
    void *p = !counting_fails(c) && size < (size_t)1 << 40 ? malloc(size)
                                                           : NULL; // sanitizers end the process over a larger request
    if (p) atomic_fetch_add(&c->live, 1);
    return p;
}
static inline void *count_resize(void *self, void *block, size_t size) {
    counting *c = self;
    void *p = counting_fails(c) ? NULL : realloc(block, size);
    if (p && !block) atomic_fetch_add(&c->live, 1);
    return p;
}
static inline void count_release(void *self, void *block) {
    counting *c = self;
    if (block) atomic_fetch_sub(&c->live, 1);
    free(block);
}
static inline void counting_init(counting *c) {
    *c = (counting){.allocator = {c, count_alloc, count_resize, count_release}};
}

// ---- a gate at which a callback waits

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open, reached;
} gate;
#define GATE {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false}
static inline void wait_at(void *arg) {
    gate *g = arg;
    pthread_mutex_lock(&g->lock);
    g->reached = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}
static inline void open_gate(gate *g) {
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}
static inline void await_reached(gate *g) {
    pthread_mutex_lock(&g->lock);
    while (!g->reached) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}
#endif
