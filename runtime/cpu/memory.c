// Device memory on the CPU: 256-byte aligned blocks from the embedder's allocator, in size classes an eighth of a doubling
// apart, kept when freed so that a steady caller reaches neither the allocator nor the page-fault handler.
#include "runtime/cpu/cpu.h"
#include <string.h>

enum { ALIGNMENT = 256, SMALLEST = 256 };
static const uint64_t LIVE = 0x6c66206c69766520, DEAD = 0x6c66206465616420;

// Just below the pointer that the caller has.
struct lf_cpu_memory_block {
    void *raw;   // what the allocator gave
    size_t size; // of the class
    uint32_t class;
    uint64_t state; // LIVE or DEAD
    lf_cpu_memory_block *next;
};

static lf_cpu_memory_block *block_of(void *pointer) {
    return (lf_cpu_memory_block *)(void *)((char *)pointer - sizeof(lf_cpu_memory_block));
}
static void *pointer_of(lf_cpu_memory_block *b) { return (char *)b + sizeof *b; }

// Classes: 256 · 2^i · (8+j)/8. UINT32_MAX when no class is that large.
static uint32_t class_of(size_t bytes, size_t *out_size) {
    if (bytes < SMALLEST) bytes = SMALLEST;
    uint32_t log = 63u - (uint32_t)__builtin_clzll(bytes);
    size_t step = (size_t)1 << (log - 3), base = (size_t)1 << log;
    size_t eighths = (bytes - base + step - 1) / step; // 0 … 8
    *out_size = base + eighths * step;
    uint64_t class = (uint64_t)(log - 8) * 8 + eighths;
    return class < LF_CPU_CLASSES ? (uint32_t)class : UINT32_MAX;
}

void lf_cpu_cache_init(lf_cpu_cache *cache, uint64_t memory_bytes) {
    *cache = (lf_cpu_cache){.most = (size_t)(memory_bytes / 8)};
    pthread_mutex_init(&cache->lock, NULL);
}

static void release_all(const lf_allocator *a, lf_cpu_memory_block *b) {
    for (lf_cpu_memory_block *next; b; b = next) {
        next = b->next;
        lf_free(a, b->raw);
    }
}

static void empty_cache(lf_cpu_device *d) {
    for (uint32_t c = 0; c < LF_CPU_CLASSES; c++) {
        pthread_mutex_lock(&d->cache.lock);
        lf_cpu_memory_block *b = d->cache.free[c];
        d->cache.free[c] = NULL;
        for (lf_cpu_memory_block *each = b; each; each = each->next) d->cache.kept -= each->size;
        pthread_mutex_unlock(&d->cache.lock);
        release_all(d->base.allocator, b);
    }
}

void lf_cpu_cache_finish(lf_cpu_device *d, bool forked) {
    // In a child the lists may have been half changed when the parent forked: then they are given up.
    if (forked && pthread_mutex_trylock(&d->cache.lock)) return;
    if (forked) pthread_mutex_unlock(&d->cache.lock);
    empty_cache(d);
    pthread_mutex_destroy(&d->cache.lock);
}

static lf_cpu_memory_block *take_cached(lf_cpu_cache *cache, uint32_t class) {
    pthread_mutex_lock(&cache->lock);
    lf_cpu_memory_block *b = cache->free[class];
    if (b) {
        cache->free[class] = b->next;
        cache->kept -= b->size;
    }
    pthread_mutex_unlock(&cache->lock);
    return b;
}

static lf_cpu_memory_block *new_block(lf_cpu_device *d, size_t size) {
    size_t whole = size + sizeof(lf_cpu_memory_block) + ALIGNMENT;
    void *raw = lf_alloc(d->base.allocator, whole);
    if (!raw && !lf_cpu_forked(d)) {
        empty_cache(d);
        raw = lf_alloc(d->base.allocator, whole);
    }
    if (!raw) return NULL;
    uintptr_t at = ((uintptr_t)raw + sizeof(lf_cpu_memory_block) + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    lf_cpu_memory_block *b = block_of((char *)raw + (at - (uintptr_t)raw));
    *b = (lf_cpu_memory_block){.raw = raw, .size = size};
    return b;
}

void *lf_cpu_memory_take(lf_cpu_device *d, size_t bytes) {
    size_t size;
    if (bytes > SIZE_MAX / 4) return NULL;
    uint32_t class = class_of(bytes, &size);
    lf_cpu_memory_block *b = class == UINT32_MAX || lf_cpu_forked(d) ? NULL : take_cached(&d->cache, class);
    if (!b) b = new_block(d, size);
    if (!b) return NULL;
    b->class = class;
    b->state = LIVE;
    return pointer_of(b);
}

void lf_cpu_memory_give(lf_cpu_device *d, void *pointer) {
    lf_cpu_memory_block *b = block_of(pointer);
    if (b->state != LIVE) {
        lf_log_write(&d->base.log, LF_LOG_ERROR, "memory at %p is freed twice, or was never given out; ignored", pointer);
        return;
    }
    b->state = DEAD;
    bool keep = false;
    if (b->class != UINT32_MAX && !lf_cpu_forked(d)) {
        pthread_mutex_lock(&d->cache.lock);
        keep = b->size <= d->cache.most && d->cache.kept <= d->cache.most - b->size;
        if (keep) {
            b->next = d->cache.free[b->class];
            d->cache.free[b->class] = b;
            d->cache.kept += b->size;
        }
        pthread_mutex_unlock(&d->cache.lock);
    }
    if (!keep) lf_free(d->base.allocator, b->raw);
}
