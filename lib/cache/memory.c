// Blobs in memory: a hash table and a list in order of use.
#include "cache/parts.h"

enum { BUCKETS = 1024 };

struct lf_memory_entry {
    lf_cache_key key;
    lf_blob *blob;          // a reference
    lf_memory_entry *chain; // of the bucket
    lf_memory_entry *newer, *older;
};

void lf_memory_init(lf_memory *m, const lf_allocator *a, uint64_t limit) {
    *m = (lf_memory){.allocator = a, .limit = limit};
    pthread_mutex_init(&m->lock, NULL);
}

static lf_memory_entry **place_of(lf_memory *m, lf_cache_key key) {
    if (!m->buckets) return NULL;
    lf_memory_entry **at = &m->buckets[key.words[0] % BUCKETS];
    while (*at && !lf_cache_key_same((*at)->key, key)) at = &(*at)->chain;
    return at;
}

static void unlink_entry(lf_memory *m, lf_memory_entry *e) {
    *(e->newer ? &e->newer->older : &m->newest) = e->older;
    *(e->older ? &e->older->newer : &m->oldest) = e->newer;
}

static void link_newest(lf_memory *m, lf_memory_entry *e) {
    e->newer = NULL;
    e->older = m->newest;
    *(m->newest ? &m->newest->newer : &m->oldest) = e;
    m->newest = e;
}

static void remove_at(lf_memory *m, lf_memory_entry **at) {
    lf_memory_entry *e = *at;
    *at = e->chain;
    unlink_entry(m, e);
    m->bytes -= e->blob->size;
    lf_blob_release(e->blob);
    lf_free(m->allocator, e);
}

lf_blob *lf_memory_find(lf_memory *m, lf_cache_key key) {
    pthread_mutex_lock(&m->lock);
    lf_memory_entry **at = place_of(m, key), *e = at ? *at : NULL;
    lf_blob *blob = e ? e->blob : NULL;
    if (blob) {
        lf_blob_retain(blob);
        unlink_entry(m, e);
        link_newest(m, e);
    }
    pthread_mutex_unlock(&m->lock);
    return blob;
}

bool lf_memory_has(lf_memory *m, lf_cache_key key) {
    pthread_mutex_lock(&m->lock);
    lf_memory_entry **at = place_of(m, key);
    bool has = at && *at;
    pthread_mutex_unlock(&m->lock);
    return has;
}

static void store(lf_memory *m, lf_cache_key key, lf_blob *blob) {
    if (!m->buckets) m->buckets = lf_alloc_zero(m->allocator, BUCKETS * sizeof(lf_memory_entry *));
    if (!m->buckets) return;
    lf_memory_entry **at = place_of(m, key);
    if (*at) remove_at(m, at);
    lf_memory_entry *e = lf_alloc_zero(m->allocator, sizeof *e);
    if (!e) return;
    e->key = key;
    e->blob = blob;
    lf_blob_retain(blob);
    at = place_of(m, key);
    *at = e;
    link_newest(m, e);
    m->bytes += blob->size;
    while (m->bytes > m->limit) remove_at(m, place_of(m, m->oldest->key));
}

void lf_memory_store(lf_memory *m, lf_cache_key key, lf_blob *blob) {
    if (blob->size > m->limit) return;
    pthread_mutex_lock(&m->lock);
    store(m, key, blob);
    pthread_mutex_unlock(&m->lock);
}

void lf_memory_drop(lf_memory *m, lf_cache_key key) {
    pthread_mutex_lock(&m->lock);
    lf_memory_entry **at = place_of(m, key);
    if (at && *at) remove_at(m, at);
    pthread_mutex_unlock(&m->lock);
}

void lf_memory_clear(lf_memory *m) {
    pthread_mutex_lock(&m->lock);
    while (m->oldest) remove_at(m, place_of(m, m->oldest->key));
    pthread_mutex_unlock(&m->lock);
}

void lf_memory_finish(lf_memory *m) {
    lf_memory_clear(m);
    lf_free(m->allocator, m->buckets);
    pthread_mutex_destroy(&m->lock);
}
