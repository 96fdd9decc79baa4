// The two levels put together.
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "cache/parts.h"

struct lf_cache {
    const lf_allocator *allocator;
    lf_memory memory;
    lf_disk disk;
    lf_cache_stats stats;
};

lf_cache_key lf_cache_key_of(const void *bytes, size_t size) {
    XXH128_hash_t h = XXH3_128bits(bytes, size);
    return (lf_cache_key){{h.low64, h.high64}};
}

lf_blob *lf_blob_create(const lf_allocator *a, size_t size) {
    lf_blob *b = size < SIZE_MAX - sizeof *b ? lf_alloc(a, sizeof *b + size) : NULL;
    if (!b) return NULL;
    b->allocator = a;
    atomic_init(&b->references, 1);
    b->size = size;
    return b;
}

void lf_blob_release(lf_blob *b) {
    if (b && atomic_fetch_sub(&b->references, 1) == 1) lf_free(b->allocator, b);
}

lf_status lf_cache_create(const lf_allocator *a, const lf_log *log, const lf_cache_options *options, lf_cache **out_cache) {
    *out_cache = NULL;
    lf_cache *c = lf_alloc_zero(a, sizeof *c);
    if (!c) return lf_out_of_memory();
    c->allocator = a;
    lf_status s = lf_disk_init(&c->disk, a, log, options, &c->stats);
    if (s) {
        lf_free(a, c);
        return s;
    }
    lf_memory_init(&c->memory, a, options->memory_bytes);
    *out_cache = c;
    return NULL;
}

void lf_cache_destroy(lf_cache *c) {
    if (!c) return;
    lf_memory_finish(&c->memory);
    lf_disk_finish(&c->disk);
    lf_free(c->allocator, c);
}

static void count(_Atomic uint64_t *n) { atomic_fetch_add_explicit(n, 1, memory_order_relaxed); }

lf_blob *lf_cache_find(lf_cache *c, lf_cache_key key) {
    lf_blob *b = lf_memory_find(&c->memory, key);
    if (b) return count(&c->stats.memory_hits), b;
    b = lf_disk_find(&c->disk, key);
    count(b ? &c->stats.disk_hits : &c->stats.misses);
    if (b) lf_memory_store(&c->memory, key, b);
    return b;
}

bool lf_cache_has(lf_cache *c, lf_cache_key key) { return lf_memory_has(&c->memory, key) || lf_disk_has(&c->disk, key); }

void lf_cache_store(lf_cache *c, lf_cache_key key, lf_blob *blob) {
    count(&c->stats.stores);
    lf_memory_store(&c->memory, key, blob);
    lf_disk_store(&c->disk, key, blob);
}

void lf_cache_drop(lf_cache *c, lf_cache_key key) {
    lf_memory_drop(&c->memory, key);
    lf_disk_drop(&c->disk, key);
}

const lf_cache_stats *lf_cache_statistics(const lf_cache *c) { return &c->stats; }
const char *lf_cache_directory(const lf_cache *c) { return c->disk.path; }
uint64_t lf_cache_limit(const lf_cache *c) { return c->disk.limit; }
void lf_cache_measure(lf_cache *c, uint64_t *out_entries, uint64_t *out_bytes) {
    lf_disk_measure(&c->disk, out_entries, out_bytes);
}

void lf_cache_clear(lf_cache *c) {
    lf_memory_clear(&c->memory);
    lf_disk_clear(&c->disk);
}
