// Fuzzing of the files of the cache of compiled code. Whatever the bytes of an entry, it is a miss that is counted as a fault, or a hit
// with the very bytes that the head vouches for. What was hit goes on to the loader of native code, as a run would hand it, without its
// hash having been checked by anybody else: a status, or code whose entry lies where it was loaded. Nothing is run.
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "cache/cache.h"
#include "native/native.h"
#include "test/fuzz/fuzz.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// As in lib/cache/disk.c, and lib/api/loaded.c for what stands before native code.
enum { HEAD_BYTES = 56, SIZE_AT = 32, HASH_AT = 40, HEAD_HASH_AT = 48, STORED_BYTES = 80 };

static char folder[64], path[160];
static uint64_t hits, loads;

static void remove_folder(void) {
    unlink(path);
    rmdir(folder);
}

static void make_folder(lf_cache_key key) {
    if (*folder) return;
    const char *shm = "/dev/shm";
    snprintf(folder, sizeof folder, "%s/lf_fuzz_cache_XXXXXX", access(shm, W_OK) ? "/tmp" : shm);
    CHECK(mkdtemp(folder), "no folder %s\n", folder);
    snprintf(path, sizeof path, "%s/%016llx%016llx.lfc", folder, (unsigned long long)key.words[1],
             (unsigned long long)key.words[0]);
    atexit(remove_folder);
}

static void load(const lf_blob *b) {
    if (b->size <= STORED_BYTES) return;
    lf_native_symbol symbols[] = {{.name = "infer"}};
    lf_native *code;
    lf_status s = lf_native_load(&lf_system_allocator, b->bytes + STORED_BYTES, b->size - STORED_BYTES, symbols, 1, &code);
    CHECK(!s == (symbols[0].address != NULL) && !s == (code != NULL), "half loaded\n");
    CHECK(!s || lf_status_code(s) == LF_INTERNAL || lf_status_code(s) == LF_OUT_OF_MEMORY, "odd: %s\n",
          lf_status_message(s));
    loads += !s;
    lf_status_destroy(s);
    lf_native_unload(code);
}

static bool one_input(const uint8_t *data, size_t size) {
    static const uint64_t number = 1;
    lf_cache_key key = lf_cache_key_of(&number, sizeof number);
    make_folder(key);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, data, size) == (ssize_t)size && !close(file), "cannot write %s\n", path);
    lf_cache *c;
    lf_cache_options o = {.directory = folder, .disk_bytes = 1 << 20, .maker = "fuzz"};
    lf_status s = lf_cache_create(&lf_system_allocator, NULL, &o, &c);
    CHECK(!s, "no cache: %s\n", lf_status_message(s));
    CHECK(lf_cache_has(c, key), "the file is not seen\n");
    lf_blob *b = lf_cache_find(c, key);
    const lf_cache_stats *stats = lf_cache_statistics(c);
    CHECK(stats->faults == !b && stats->disk_hits == (b != NULL), "a fault that is not counted\n");
    if (b) {
        CHECK(size >= HEAD_BYTES && b->size == size - HEAD_BYTES && !memcmp(b->bytes, data + HEAD_BYTES, b->size),
              "other bytes than the file's\n");
        CHECK((uintptr_t)b->bytes % 16 == 0, "not aligned\n");
        hits++;
        load(b);
    }
    bool hit = b != NULL;
    lf_blob_release(b);
    lf_cache_drop(c, key);
    CHECK(access(path, F_OK) != 0, "dropped, and still there\n");
    lf_cache_destroy(c);
    return hit;
}

// Lengths and hashes fit again, so that the payload is what is tried.
static void mend(lf_fuzz_input *in) {
    if (in->size < HEAD_BYTES) return;
    uint64_t size = in->size - HEAD_BYTES, hash = XXH3_64bits(in->data + HEAD_BYTES, size);
    memcpy(in->data + SIZE_AT, &size, 8);
    memcpy(in->data + HASH_AT, &hash, 8);
    hash = XXH3_64bits(in->data, HEAD_HASH_AT);
    memcpy(in->data + HEAD_HASH_AT, &hash, 8);
}

static void report(void) { printf("%llu hits, %llu loaded as code\n", (unsigned long long)hits, (unsigned long long)loads); }

const lf_fuzz_description lf_fuzz_target = {.name = "fuzz_cache",
                                            .suffix = "lfc",
                                            .corpus = "test/fuzz/corpus/cache",
                                            .one = one_input,
                                            .mend = mend,
                                            .report = report};
