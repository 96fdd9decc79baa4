// The two levels. Private to lib/cache.
#ifndef LF_CACHE_PARTS_H
#define LF_CACHE_PARTS_H
#include "cache/cache.h"
#include <pthread.h>

// ---- memory.c: the most recently used blobs

typedef struct lf_memory_entry lf_memory_entry;
typedef struct lf_memory {
    const lf_allocator *allocator;
    pthread_mutex_t lock;      // guards what follows
    lf_memory_entry **buckets; // NULL until something is stored
    lf_memory_entry *newest, *oldest;
    uint64_t bytes, limit;
} lf_memory;
void lf_memory_init(lf_memory *m, const lf_allocator *a, uint64_t limit);
void lf_memory_finish(lf_memory *m);
lf_blob *lf_memory_find(lf_memory *m, lf_cache_key key);
bool lf_memory_has(lf_memory *m, lf_cache_key key);
void lf_memory_store(lf_memory *m, lf_cache_key key, lf_blob *blob); // without memory: does nothing
void lf_memory_drop(lf_memory *m, lf_cache_key key);
void lf_memory_clear(lf_memory *m);

// ---- disk.c: a folder of files

typedef struct lf_disk {
    const lf_allocator *allocator;
    lf_log log;
    char *path; // owned; NULL: off
    uint64_t limit, maker;
    lf_cache_stats *stats;
    pthread_mutex_t lock; // guards what follows
    int folder;           // -1: not open yet
    bool refused;         // the folder is not ours, or cannot be made: said once, and no more tried
    uint64_t bytes;       // of all files, as far as known
    uint32_t stores;      // since they were last looked at
    _Atomic uint32_t n_temporary;
} lf_disk;
lf_status lf_disk_init(lf_disk *d, const lf_allocator *a, const lf_log *log, const lf_cache_options *options,
                       lf_cache_stats *stats) LF_MUST_USE;
void lf_disk_finish(lf_disk *d);
lf_blob *lf_disk_find(lf_disk *d, lf_cache_key key);
bool lf_disk_has(lf_disk *d, lf_cache_key key);
void lf_disk_store(lf_disk *d, lf_cache_key key, const lf_blob *blob);
void lf_disk_drop(lf_disk *d, lf_cache_key key);
void lf_disk_measure(lf_disk *d, uint64_t *out_entries, uint64_t *out_bytes);
void lf_disk_clear(lf_disk *d);

// ---- trim.c: what to do with all files

typedef struct lf_disk_file lf_disk_file;
// All entries' number and bytes; removes entries, those used longest ago first, until at most `keep` bytes are left, and what
// writers that died have left behind. Returns the bytes left. `folder` is borrowed.
uint64_t lf_disk_trim(const lf_allocator *a, int folder, uint64_t keep, uint64_t *out_entries, uint64_t *out_removed);
enum { LF_DISK_NAME = 40 }; // "<32 hex digits>.lfc"
#endif
