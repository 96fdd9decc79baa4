// A stack of free slots, linked by index, under one tagged word; pages of mapped memory, each twice the one before.
#include "runtime/mailbox.h"
#include "runtime/futex.h"
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum { FIRST_PAGE = 128, MOST_PAGES = 20, SPINS = 2000, YIELDS = 200, SLEEP_NS = 50000 };
static const uint32_t NONE = UINT32_MAX;

typedef struct page {
    lf_mailbox_slot *slots; // owned mapped memory
    char *device_slots;
    _Atomic uint32_t *after; // owned; free slots: the next free one
} page;

struct lf_mailbox_pool {
    lf_device *device;
    _Atomic uint64_t top; // low half: first free slot; high half: changes with every take, so that a reused top is noticed
    pthread_mutex_t growing; // n_pages, and filling pages
    uint32_t n_pages;
    page pages[MOST_PAGES]; // page k: slots FIRST_PAGE * (2^k - 1) and on
};

static uint32_t page_of(uint32_t index) { return 31u - (uint32_t)__builtin_clz(index / FIRST_PAGE + 1); }
static uint32_t page_begin(uint32_t k) { return FIRST_PAGE * ((1u << k) - 1); }
static _Atomic uint32_t *after(lf_mailbox_pool *pool, uint32_t index) {
    uint32_t k = page_of(index);
    return &pool->pages[k].after[index - page_begin(k)];
}

lf_status lf_mailbox_pool_create(lf_device *device, lf_mailbox_pool **out_pool) {
    *out_pool = NULL;
    lf_mailbox_pool *pool = lf_alloc_zero(device->allocator, sizeof *pool);
    if (!pool) return lf_out_of_memory();
    pool->device = device;
    atomic_init(&pool->top, NONE);
    pthread_mutex_init(&pool->growing, NULL);
    *out_pool = pool;
    return NULL;
}

void lf_mailbox_pool_destroy(lf_mailbox_pool *pool) {
    if (!pool) return;
    for (uint32_t k = 0; k < pool->n_pages; k++) {
        pool->device->ops->mapped_free(pool->device, pool->pages[k].slots);
        lf_free(pool->device->allocator, (void *)pool->pages[k].after);
    }
    pthread_mutex_destroy(&pool->growing);
    lf_free(pool->device->allocator, pool);
}

// Slots first … last, already linked to each other, become free.
static void push(lf_mailbox_pool *pool, uint32_t first, uint32_t last) {
    uint64_t top = atomic_load_explicit(&pool->top, memory_order_relaxed);
    do atomic_store_explicit(after(pool, last), (uint32_t)top, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&pool->top, &top, (top & ~(uint64_t)UINT32_MAX) | first,
                                                  memory_order_release, memory_order_relaxed));
}

static uint32_t pop(lf_mailbox_pool *pool) {
    uint64_t top = atomic_load_explicit(&pool->top, memory_order_acquire), to;
    do {
        if ((uint32_t)top == NONE) return NONE;
        uint32_t next = atomic_load_explicit(after(pool, (uint32_t)top), memory_order_relaxed);
        to = ((top >> 32) + 1) << 32 | next;
    } while (!atomic_compare_exchange_weak_explicit(&pool->top, &top, to, memory_order_acquire, memory_order_acquire));
    return (uint32_t)top;
}

static lf_status add_page(lf_mailbox_pool *pool) {
    lf_device *d = pool->device;
    uint32_t k = pool->n_pages;
    if (k == MOST_PAGES) return lf_error(d->allocator, LF_OUT_OF_MEMORY, "all %u mailbox slots are in use", page_begin(k));
    uint32_t n = (uint32_t)FIRST_PAGE << k;
    page *p = &pool->pages[k];
    void *host, *device;
    p->after = lf_alloc(d->allocator, n * sizeof *p->after);
    if (!p->after) return lf_out_of_memory();
    lf_status s = d->ops->mapped_alloc(d, n * sizeof(lf_mailbox_slot), &host, &device);
    if (s) {
        lf_free(d->allocator, (void *)p->after);
        return s;
    }
    p->slots = host;
    p->device_slots = device;
    for (uint32_t i = 0; i < n; i++) atomic_init(&p->after[i], page_begin(k) + i + 1);
    pool->n_pages++;
    push(pool, page_begin(k), page_begin(k) + n - 1);
    return NULL;
}

lf_status lf_mailbox_take(lf_mailbox_pool *pool, lf_mailbox *out_box) {
    *out_box = (lf_mailbox){0};
    uint32_t index = pop(pool);
    if (index == NONE) {
        pthread_mutex_lock(&pool->growing);
        lf_status s = NULL;
        while ((index = pop(pool)) == NONE && !(s = add_page(pool))) {}
        pthread_mutex_unlock(&pool->growing);
        if (s) return s;
    }
    uint32_t k = page_of(index), i = index - page_begin(k);
    lf_mailbox_slot *slot = &pool->pages[k].slots[i];
    atomic_store_explicit(&slot->sequence, 0,
                          memory_order_relaxed); // whoever hands the slot to a kernel does more than this order
    *out_box = (lf_mailbox){slot, pool->pages[k].device_slots + i * sizeof *slot, 0, index};
    return NULL;
}

void lf_mailbox_give(lf_mailbox_pool *pool, lf_mailbox *box) {
    if (!box->slot) return;
    push(pool, box->index, box->index);
    *box = (lf_mailbox){0};
}

bool lf_mailbox_read(const lf_mailbox *box, uint64_t out_value[2]) {
    if (!lf_mailbox_ready(box)) return false;
    memcpy(out_value, box->slot->value, sizeof box->slot->value);
    return true;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool lf_mailbox_await(const lf_mailbox *box, uint64_t timeout_ns) {
    for (int i = 0; i < SPINS; i++) {
        if (lf_mailbox_ready(box)) return true;
        if (!timeout_ns) break;
        lf_cpu_relax();
    }
    uint64_t start = now_ns();
    for (int i = 0; !lf_mailbox_ready(box); i++) {
        if (timeout_ns != UINT64_MAX && now_ns() - start >= timeout_ns) return false;
        if (i < YIELDS)
            sched_yield();
        else
            nanosleep(&(struct timespec){0, SLEEP_NS}, NULL);
    }
    return true;
}

lf_status lf_mailbox_wait(const lf_mailbox *box, const lf_allocator *a, uint64_t timeout_ns) {
    if (lf_mailbox_await(box, timeout_ns)) return NULL;
    return lf_error(a, LF_TIMEOUT, "no value from the device within %llu ns", (unsigned long long)timeout_ns);
}
