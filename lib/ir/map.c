// Open addressing with linear probing, at most 3/4 full. Nothing is ever removed: an item that no longer counts is one that the
// caller's equality refuses.
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "ir/map.h"

uint64_t lf_map_hash(const void *data, size_t size) { return XXH3_64bits(data, size); }

void lf_map_init(lf_map *map, const lf_allocator *a) { *map = (lf_map){.allocator = a}; }

void lf_map_finish(lf_map *map) {
    lf_free(map->allocator, map->entries);
    *map = (lf_map){.allocator = map->allocator};
}

void *lf_map_find(const lf_map *map, uint64_t hash, bool (*same)(const void *item, const void *key), const void *key) {
    if (!map->capacity) return NULL;
    for (size_t i = hash & (map->capacity - 1); map->entries[i].item; i = (i + 1) & (map->capacity - 1))
        if (map->entries[i].hash == hash && same(map->entries[i].item, key)) return map->entries[i].item;
    return NULL;
}

static void place(lf_map *map, uint64_t hash, void *item) {
    size_t i = hash & (map->capacity - 1);
    while (map->entries[i].item) i = (i + 1) & (map->capacity - 1);
    map->entries[i] = (lf_map_entry){hash, item};
    map->count++;
}

bool lf_map_add(lf_map *map, uint64_t hash, void *item) {
    bool full = map->count >= map->capacity / 4 * 3;
    if (full || map->allocator->exact) {
        lf_map old = *map;
        map->capacity = !full ? old.capacity : old.capacity ? 2 * old.capacity : 64;
        map->entries = lf_alloc_zero(map->allocator, map->capacity * sizeof *map->entries);
        if (!map->entries) {
            *map = old;
            return false;
        }
        map->count = 0;
        for (size_t i = 0; i < old.capacity; i++)
            if (old.entries[i].item) place(map, old.entries[i].hash, old.entries[i].item);
        lf_free(map->allocator, old.entries);
    }
    place(map, hash, item);
    return true;
}
