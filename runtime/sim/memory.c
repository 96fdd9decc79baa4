// The device's memory: exact sizes, a guard zone around each allocation, and a list by address, so that every access can be placed.
#include "runtime/sim/sim.h"
#include <string.h>

enum { ALIGNMENT = 256, GUARD = 256, FILLING = 0xff };
// Freed memory that is kept in all, and the largest allocation whose writers are recorded.
static const size_t KEPT = 64u << 20, MOST_RECORDED = 64u << 20;

void lf_sim_memory_init(lf_sim_memory *m, const lf_allocator *a) {
    *m = (lf_sim_memory){.freed_bytes = 0};
    lf_vec_init(&m->all, a);
    pthread_mutex_init(&m->lock, NULL);
}

static void drop(lf_sim_memory *m, size_t i) {
    lf_free(m->all.allocator, m->all.data[i].raw);
    lf_free(m->all.allocator, m->all.data[i].cells);
    memmove(&m->all.data[i], &m->all.data[i + 1], (m->all.count - i - 1) * sizeof *m->all.data);
    m->all.count--;
}

void lf_sim_memory_finish(lf_sim_memory *m) {
    while (m->all.count) drop(m, m->all.count - 1);
    lf_vec_finish(&m->all);
    pthread_mutex_destroy(&m->lock);
}

// Number of allocations that begin at or before the address.
static size_t upto(const lf_sim_memory *m, uintptr_t address) {
    size_t low = 0, high = m->all.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (m->all.data[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t oldest_freed(const lf_sim_memory *m) {
    size_t oldest = SIZE_MAX;
    for (size_t i = 0; i < m->all.count; i++)
        if (m->all.data[i].freed && (oldest == SIZE_MAX || m->all.data[i].freed < m->all.data[oldest].freed)) oldest = i;
    return oldest;
}

void lf_sim_memory_trim(lf_sim_memory *m, size_t most) {
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->all.count; i++) {
        if (!m->all.data[i].freed) continue;
        lf_free(m->all.allocator, m->all.data[i].cells);
        m->all.data[i].cells = NULL;
    }
    while (m->n_freed > most || (m->n_freed && m->freed_bytes > KEPT)) {
        size_t i = oldest_freed(m);
        m->freed_bytes -= m->all.data[i].bytes;
        m->n_freed--;
        drop(m, i);
    }
    pthread_mutex_unlock(&m->lock);
}

void *lf_sim_memory_take(lf_sim_memory *m, size_t bytes, lf_sim_memory_kind kind) {
    if (bytes > SIZE_MAX / 4) return NULL;
    size_t whole = bytes + 2 * GUARD + ALIGNMENT;
    pthread_mutex_lock(&m->lock);
    char *raw = lf_alloc(m->all.allocator, whole);
    bool room = raw && lf_vec_reserve(&m->all, 1);
    char *begin = NULL;
    if (room) {
        begin = raw + GUARD + (ALIGNMENT - ((uintptr_t)raw + GUARD) % ALIGNMENT) % ALIGNMENT;
        size_t at = upto(m, (uintptr_t)begin);
        memmove(&m->all.data[at + 1], &m->all.data[at], (m->all.count - at) * sizeof *m->all.data);
        m->all.data[at] = (lf_sim_allocation){.begin = (uintptr_t)begin, .bytes = bytes, .kind = kind, .raw = raw};
        m->all.count++;
    }
    pthread_mutex_unlock(&m->lock);
    if (!room) {
        lf_free(m->all.allocator, raw);
        return NULL;
    }
    // What nobody has written reads as NaN and -1.
    memset(begin, kind == LF_SIM_MAPPED_MEMORY ? 0 : FILLING, bytes);
    return begin;
}

bool lf_sim_memory_give(lf_sim_memory *m, void *pointer) {
    pthread_mutex_lock(&m->lock);
    size_t n = upto(m, (uintptr_t)pointer);
    lf_sim_allocation *a = n ? &m->all.data[n - 1] : NULL;
    bool ours = a && a->begin == (uintptr_t)pointer && !a->freed;
    if (ours) {
        a->freed = ++m->frees;
        m->freed_bytes += a->bytes;
        m->n_freed++;
    }
    pthread_mutex_unlock(&m->lock);
    return ours;
}

bool lf_sim_memory_find(lf_sim_memory *m, uintptr_t address, lf_sim_allocation *out) {
    pthread_mutex_lock(&m->lock);
    size_t n = upto(m, address);
    if (n) *out = m->all.data[n - 1];
    pthread_mutex_unlock(&m->lock);
    return n != 0;
}

bool lf_sim_memory_find_from(lf_sim_memory *m, uintptr_t address, lf_sim_allocation *out) {
    pthread_mutex_lock(&m->lock);
    size_t n = upto(m, address);
    bool found = n < m->all.count;
    if (found) *out = m->all.data[n];
    pthread_mutex_unlock(&m->lock);
    return found;
}

lf_sim_cell *lf_sim_memory_cells(lf_sim_memory *m, uintptr_t begin) {
    pthread_mutex_lock(&m->lock);
    size_t n = upto(m, begin);
    lf_sim_allocation *a = n ? &m->all.data[n - 1] : NULL;
    lf_sim_cell *cells = NULL;
    if (a && a->begin == begin && !a->freed && a->bytes <= MOST_RECORDED) {
        if (!a->cells) a->cells = lf_alloc_zero(m->all.allocator, (a->bytes / 4 + 1) * sizeof *a->cells);
        cells = a->cells;
    }
    pthread_mutex_unlock(&m->lock);
    return cells;
}
