// A hash map from a 64-bit hash to borrowed items; equality is the caller's. Private to lib/ir.
#ifndef LF_IR_MAP_H
#define LF_IR_MAP_H
#include "base/alloc.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct lf_map_entry {
    uint64_t hash;
    void *item; // NULL: free
} lf_map_entry;
typedef struct lf_map {
    lf_map_entry *entries; // owned
    size_t count, capacity;
    const lf_allocator *allocator;
} lf_map;

uint64_t lf_map_hash(const void *data, size_t size);
void lf_map_init(lf_map *map, const lf_allocator *a);
void lf_map_finish(lf_map *map);
// The item of that hash that is the same as `key`, or NULL.
void *lf_map_find(const lf_map *map, uint64_t hash, bool (*same)(const void *item, const void *key), const void *key);
// Does not look for an equal item. False when out of memory.
bool lf_map_add(lf_map *map, uint64_t hash, void *item);
#endif
