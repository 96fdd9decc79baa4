// An allocator that fails where it is told to, and knows who asked: requests are told apart by their chain of callers, and counted,
// what was seen to ask and what was seen to fail. For one program; include once.
#ifndef LF_TEST_FAILING_H
#define LF_TEST_FAILING_H
#include "base/alloc.h"
#include <execinfo.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

enum { MOST_SITES = 1 << 15, MOST_CALLS = 1 << 20, DEPTH = 5 };
typedef struct site {
    uint64_t key; // of the innermost callers; 0: free
    void *callers[DEPTH];
    int depth;
    unsigned failed; // times
    int round;       // the last in which a request of it was made to fail
} site;
typedef struct failing {
    _Atomic long live, calls, fail_at; // fail_at: the number of the call that fails, from 1 on; 0: none
    bool lasting;                      // the later calls fail too
    bool recording;
    _Atomic size_t wanted; // 1 + a site whose next call fails, whatever its number; 0: none
    size_t last;           // the site of the first call that failed
    const void *outermost; // of this thread's frames: callers from here on are the test, and tell nothing
} failing;
static site sites[MOST_SITES];
static uint16_t trace[MOST_CALLS]; // the site of each call while recording
static pthread_mutex_t sites_lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct walk {
    site *found;
    const void *outermost;
    int own; // frames of this file, still to be left out
} walk;
static _Unwind_Reason_Code note_caller(struct _Unwind_Context *frame, void *arg) {
    walk *w = arg;
    if (w->own-- > 0) return _URC_NO_REASON;
    // Other threads' stacks lie below that of the thread that began the program.
    if (w->outermost && (uintptr_t)_Unwind_GetCFA(frame) >= (uintptr_t)w->outermost) return _URC_END_OF_STACK;
    if (!_Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(frame))) return _URC_END_OF_STACK; // generated code, anywhere
    w->found->callers[w->found->depth++] = (void *)_Unwind_GetIP(frame);
    return w->found->depth == DEPTH ? _URC_END_OF_STACK : _URC_NO_REASON;
}

// Called by failing_alloc and failing_resize.
__attribute__((noinline)) static size_t find_site(const failing *f) {
    site found = {0};
    _Unwind_Backtrace(note_caller, &(walk){&found, f->outermost, 3});
    found.key = 14695981039346656037u;
    for (int i = 0; i < found.depth; i++) found.key = (found.key ^ (uint64_t)(uintptr_t)found.callers[i]) * 1099511628211u;
    size_t at = found.key % MOST_SITES;
    while (sites[at].key && sites[at].key != found.key) at = (at + 1) % MOST_SITES;
    if (!sites[at].key) sites[at] = found;
    return at;
}

__attribute__((noinline)) static bool may_have(failing *f) {
    long call = ++f->calls, at = f->fail_at;
    bool fails_now = at && (call == at || (f->lasting && call > at));
    if (!fails_now && !f->recording && !f->wanted) return true;
    pthread_mutex_lock(&sites_lock);
    size_t k = find_site(f);
    if (f->wanted == k + 1) {
        fails_now = true;
        f->wanted = 0;
        f->fail_at = at = call;
    }
    sites[k].failed += fails_now;
    if (call == at) f->last = k;
    if (f->recording && call < MOST_CALLS) trace[call] = (uint16_t)k;
    pthread_mutex_unlock(&sites_lock);
    return !fails_now;
}
__attribute__((noinline)) static void *failing_alloc(void *self, size_t bytes) {
    failing *f = self;
    void *p = may_have(f) ? malloc(bytes) : NULL;
    f->live += p != NULL;
    return p;
}
__attribute__((noinline)) static void *failing_resize(void *self, void *block, size_t bytes) {
    failing *f = self;
    void *p = may_have(f) ? realloc(block, bytes) : NULL;
    f->live += p && !block;
    return p;
}
static void failing_release(void *self, void *block) {
    failing *f = self;
    f->live -= block != NULL;
    free(block);
}

static void count_sites(size_t *out_seen, size_t *out_hit) {
    *out_seen = *out_hit = 0;
    for (size_t i = 0; i < MOST_SITES; i++) *out_seen += sites[i].key != 0, *out_hit += sites[i].failed > 0;
}

// For addr2line.
static void print_site(const char *what, size_t k) {
    printf("%s:\n", what);
    fflush(stdout);
    backtrace_symbols_fd(sites[k].callers, sites[k].depth, 1);
}

static void print_sites_left(void) {
    for (size_t i = 0; i < MOST_SITES; i++)
        if (sites[i].key && !sites[i].failed) print_site("never failed", i);
}
#endif
