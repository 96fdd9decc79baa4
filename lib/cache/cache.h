// Compiled code kept for the next time: by key in memory, and as files that other processes find. Knows nothing of what it keeps.
//
// A key is a hash of everything that decided what was made, the versions of the makers included. Nothing here fails: whatever is
// wrong with a file or a folder is a miss, counted as a fault and logged. Files are written under another name and renamed, so
// that any number of processes may read and write at once and any of them may die at any time; what they hold is checked against
// its hash before it is believed. When the files outgrow their limit, those used longest ago go first.
#ifndef LF_CACHE_CACHE_H
#define LF_CACHE_CACHE_H
#include "base/log.h"
#include "base/status.h"
#include <stdatomic.h>
#include <stdbool.h>

typedef struct lf_cache_key {
    uint64_t words[2];
} lf_cache_key;
lf_cache_key lf_cache_key_of(const void *bytes, size_t size);
static inline bool lf_cache_key_same(lf_cache_key a, lf_cache_key b) {
    return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

// Bytes with an owner count; they never change once they were stored.
typedef struct lf_blob {
    const lf_allocator *allocator;
    _Atomic uint32_t references;
    size_t size;
    _Alignas(16) uint8_t bytes[];
} lf_blob;
lf_blob *lf_blob_create(const lf_allocator *a, size_t size); // NULL: out of memory
static inline void lf_blob_retain(lf_blob *b) { atomic_fetch_add(&b->references, 1); }
void lf_blob_release(lf_blob *b); // NULL is fine

typedef struct lf_cache_options {
    const char *directory; // copied; made when something is first stored. NULL: memory alone
    uint64_t disk_bytes;   // of all files
    uint64_t memory_bytes;
    const char *maker; // copied; a file that another maker wrote is a miss
} lf_cache_options;

// Since the cache was created; only grow.
typedef struct lf_cache_stats {
    _Atomic uint64_t memory_hits, disk_hits, misses, stores, evictions, faults;
} lf_cache_stats;

typedef struct lf_cache lf_cache; // thread-safe
lf_status lf_cache_create(const lf_allocator *a, const lf_log *log, const lf_cache_options *options,
                          lf_cache **out_cache) LF_MUST_USE;
void lf_cache_destroy(lf_cache *c); // blobs that are held outlive it
// What was stored under this key, to be released; NULL: a miss.
lf_blob *lf_cache_find(lf_cache *c, lf_cache_key key);
// Whether find would hit, without reading and counting; a file may still turn out to be bad.
bool lf_cache_has(lf_cache *c, lf_cache_key key);
// The caller keeps its reference.
void lf_cache_store(lf_cache *c, lf_cache_key key, lf_blob *blob);
// Takes an entry out again that its user found to be no good.
void lf_cache_drop(lf_cache *c, lf_cache_key key);
const lf_cache_stats *lf_cache_statistics(const lf_cache *c);
const char *lf_cache_directory(const lf_cache *c); // NULL: none
uint64_t lf_cache_limit(const lf_cache *c);        // of the files, in bytes
// The files as they are now, other processes' too.
void lf_cache_measure(lf_cache *c, uint64_t *out_entries, uint64_t *out_bytes);
// Removes all entries, in memory and on disk.
void lf_cache_clear(lf_cache *c);

// Where files go unless somebody says otherwise: $LFUSER_CACHE ("off": nowhere), else $XDG_CACHE_HOME/lfuser, else
// $HOME/.cache/lfuser. NULL: nowhere, or out of memory. Caller frees.
char *lf_cache_default_directory(const lf_allocator *a);
#endif
