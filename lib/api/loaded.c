// See loaded.h. Three places are asked in turn: code that some executable of this context holds, the cache, the code generator, which
// is not even opened when the cache has everything.
#include "api/api.h"
#include "codegen/host_load.h"
#include "lf_build_id.h"
#include "schedule/key.h"
#include <stdio.h>
#include <string.h>

// ---- keys ----------------------------------------------------------------------------------------------------------------------

// Everything that decides what the code generator makes.
static lf_status key_of(lfuser_context *c, const lf_loaded_request *r, lf_cache_key *out_key) {
    lf_text t;
    lf_text_init(&t, &c->allocator);
    if (!r->loop) {
        lf_text_put(&t, "host %s %s ", LF_BUILD_ID, c->code.processor);
        lf_program_host_key(r->program, &t);
    } else {
        const lf_target *target = &r->device->target;
        bool cuda = target->kind == LF_TARGET_CUDA;
        lf_text_put(&t, "kernel %s %d %s %u %s %d %u class %llu ", LF_BUILD_ID, (int)target->kind, target->cpu, target->sm,
                    cuda || target->cpu[0] ? "" : c->code.processor, r->options.fast, r->options.debug,
                    (unsigned long long)lf_class_key(r->cls));
        lf_loop_key(r->loop, &t);
    }
    bool failed = t.failed;
    if (!failed) *out_key = lf_cache_key_of(t.data, t.size);
    lf_text_finish(&t);
    return failed ? lf_out_of_memory() : NULL;
}

// The same kernel, translated by this driver.
static lf_cache_key binary_key(lf_cache_key key, const lf_device *device) {
    struct {
        lf_cache_key key;
        uint64_t driver;
        char target[32];
    } binary = {.key = key, .driver = device->info.driver_version};
    memcpy(binary.target, device->info.target, sizeof binary.target);
    return lf_cache_key_of(&binary, sizeof binary);
}

// ---- what is stored ------------------------------------------------------------------------------------------------------------

typedef enum { STORED_NATIVE = 1, STORED_PTX = 2, STORED_CUBIN = 3 } stored_kind;
typedef struct stored { // followed by the bytes
    uint32_t kind, shared_bytes, block, rows_a_block, staged_bytes, cluster, waits, reserved;
    char entry[64];
} stored;
_Static_assert(sizeof(stored) % 16 == 0, "what follows is aligned");

static void store(lfuser_context *c, lf_cache_key key, stored_kind kind, const lf_object *o, const void *bytes,
                  size_t size) {
    lf_blob *b = lf_blob_create(&c->allocator, sizeof(stored) + size);
    if (!b) return;
    stored head = {.kind = kind,
                   .shared_bytes = o->shared_bytes,
                   .block = o->block,
                   .rows_a_block = o->rows_a_block,
                   .staged_bytes = o->staged_bytes,
                   .cluster = o->cluster,
                   .waits = o->waits};
    memcpy(head.entry, o->entry, sizeof head.entry);
    memcpy(b->bytes, &head, sizeof head);
    memcpy(b->bytes + sizeof head, bytes, size);
    lf_cache_store(c->code.cache, key, b);
    lf_blob_release(b);
}

// False: the blob is not what it should be.
static bool read_stored(const lf_blob *b, stored_kind kind, lf_object *o, const void **out_bytes, size_t *out_size) {
    stored head;
    if (b->size <= sizeof head) return false;
    memcpy(&head, b->bytes, sizeof head);
    head.entry[sizeof head.entry - 1] = 0;
    *out_bytes = b->bytes + sizeof head;
    *out_size = b->size - sizeof head;
    o->shared_bytes = head.shared_bytes;
    o->block = head.block;
    o->rows_a_block = head.rows_a_block;
    o->staged_bytes = head.staged_bytes;
    o->cluster = head.cluster;
    o->waits = head.waits != 0;
    memcpy(o->entry, head.entry, sizeof head.entry);
    return head.kind == (uint32_t)kind;
}

static void give_up(lfuser_context *c, lf_cache_key key, lf_status why) {
    lf_log_write(&c->log, LF_LOG_WARNING, "cache: an entry is no good and was removed: %s",
                 why ? lf_status_message(why) : "not of the right kind");
    lf_status_destroy(why);
    lf_cache_drop(c->code.cache, key);
}

// ---- native code ---------------------------------------------------------------------------------------------------------------

static lf_status load_kernel(lfuser_context *c, const void *bytes, size_t size, lf_object *o) {
    lf_native_symbol symbol = {.name = o->entry};
    LF_TRY(lf_native_load(&c->allocator, bytes, size, &symbol, 1, &o->native));
    o->address = symbol.address;
    return NULL;
}

static lf_status load_host(lfuser_context *c, const lf_program *p, const void *bytes, size_t size, lf_object *o) {
    o->code = (void *)(uintptr_t)bytes; // lent for the call; it is only read
    o->code_size = size;
    lf_status s = lf_host_load(&c->allocator, &p->abi, o);
    o->code = NULL;
    return s;
}

static void release_object(lfuser_context *c, lf_object *o) {
    lf_native_unload(o->native);
    lf_free(&c->allocator, o->text);
    lf_free(&c->allocator, o->code);
    lf_free(&c->allocator, o->stages);
    lf_free(&c->allocator, o->finishes);
    *o = (lf_object){0};
}

static bool find_native(lfuser_context *c, const lf_loaded_request *r, lf_loaded *code) {
    lf_blob *b = lf_cache_find(c->code.cache, code->key);
    if (!b) return false;
    const void *bytes;
    size_t size;
    lf_status s = NULL;
    bool good = read_stored(b, STORED_NATIVE, &code->object, &bytes, &size);
    if (good)
        s = r->loop ? load_kernel(c, bytes, size, &code->object) : load_host(c, r->program, bytes, size, &code->object);
    lf_blob_release(b);
    if (good && !s) return true;
    give_up(c, code->key, s);
    release_object(c, &code->object);
    return false;
}

static lf_status compile(lfuser_context *c, const lf_loaded_request *r, lf_loaded *code) {
    const lf_codegen_table *table;
    lf_codegen *generator;
    LF_TRY(lf_context_codegen(c, &table, &generator));
    atomic_fetch_add_explicit(&c->code.compiles, 1, memory_order_relaxed);
    if (!r->loop) return table->host(generator, r->program, &code->object);
    return table->kernel(generator, r->loop, &r->device->target, r->cls, &r->options, &code->object);
}

static lf_status make_native(lfuser_context *c, const lf_loaded_request *r, lf_loaded *code, bool *out_compiled) {
    *out_compiled = !find_native(c, r, code);
    if (*out_compiled) {
        LF_TRY(compile(c, r, code));
        store(c, code->key, STORED_NATIVE, &code->object, code->object.code, code->object.code_size);
        lf_free(&c->allocator, code->object.code); // the cache has it
        code->object.code = NULL;
    }
    if (!r->loop) return NULL;
    lf_image image = {.kind = LF_IMAGE_NATIVE, .entry = code->object.entry, .address = code->object.address};
    return r->device->device->ops->kernel_load(r->device->device, &image, &code->kernel);
}

// ---- GPU code ------------------------------------------------------------------------------------------------------------------

static lf_status load_image(const lf_loaded_request *r, lf_image_kind kind, const lf_object *o, const void *bytes,
                            size_t size, lf_kernel **out_kernel) {
    lf_image image = {.kind = kind, .entry = o->entry, .data = bytes, .size = size, .shared_bytes = o->shared_bytes};
    return r->device->device->ops->kernel_load(r->device->device, &image, out_kernel);
}

static bool find_binary(lfuser_context *c, const lf_loaded_request *r, lf_loaded *code, lf_cache_key key) {
    lf_blob *b = lf_cache_find(c->code.cache, key);
    if (!b) return false;
    const void *bytes;
    size_t size;
    lf_status s = NULL;
    bool good = read_stored(b, STORED_CUBIN, &code->object, &bytes, &size);
    if (good) s = load_image(r, LF_IMAGE_CUBIN, &code->object, bytes, size, &code->kernel);
    lf_blob_release(b);
    if (good && !s) return true;
    give_up(c, key, s);
    code->object = (lf_object){0};
    return false;
}

// PTX from the cache or the code generator.
static lf_status take_ptx(lfuser_context *c, const lf_loaded_request *r, lf_loaded *code, bool *out_compiled) {
    lf_blob *b = lf_cache_find(c->code.cache, code->key);
    const void *bytes;
    size_t size;
    lf_object *o = &code->object;
    bool had = b != NULL, good = b && read_stored(b, STORED_PTX, o, &bytes, &size) && !((const char *)bytes)[size - 1];
    if (good && !(o->text = lf_strndup(&c->allocator, bytes, size - 1))) {
        lf_blob_release(b);
        return lf_out_of_memory();
    }
    o->text_size = good ? size - 1 : 0;
    lf_blob_release(b);
    if (good) return NULL;
    if (had) give_up(c, code->key, NULL);
    *o = (lf_object){0};
    *out_compiled = true;
    LF_TRY(compile(c, r, code));
    store(c, code->key, STORED_PTX, o, o->text, strlen(o->text) + 1);
    return NULL;
}

// What later processes load: the driver's linker hands its result out, as the loader does not. It is kept if it is as good.
static void store_linked(lfuser_context *c, const lf_loaded_request *r, const lf_loaded *code, lf_cache_key key,
                         lf_image image) {
    enum { UNIT = 8 };
    lf_device *device = r->device->device;
    const lf_kernel_resources *own = &code->kernel->resources;
    void *cubin = NULL;
    size_t size = 0;
    lf_kernel *linked = NULL;
    image.registers = (own->registers + UNIT - 1) / UNIT * UNIT;
    lf_status s = device->ops->image_link(device, &image, &cubin, &size);
    if (!s) s = load_image(r, LF_IMAGE_CUBIN, &code->object, cubin, size, &linked);
    if (!s && linked->resources.local_bytes <= own->local_bytes) store(c, key, STORED_CUBIN, &code->object, cubin, size);
    if (linked) device->ops->kernel_destroy(linked);
    lf_free(device->allocator, cubin);
    if (!s) return;
    lf_log_write(&c->log, LF_LOG_INFO, "kernel %s: not linked: %s", image.entry, lf_status_message(s));
    lf_status_destroy(s);
}

static lf_status load_ptx(lfuser_context *c, const lf_loaded_request *r, lf_loaded *code, lf_cache_key key) {
    const lf_object *o = &code->object;
    lf_image image = {
        .kind = LF_IMAGE_PTX, .entry = o->entry, .data = o->text, .size = o->text_size + 1, .shared_bytes = o->shared_bytes};
    LF_TRY(r->device->device->ops->kernel_load(r->device->device, &image, &code->kernel));
    if (lf_cache_directory(c->code.cache)) store_linked(c, r, code, key, image);
    return NULL;
}

static lf_status make_gpu(lfuser_context *c, const lf_loaded_request *r, lf_loaded *code, bool *out_compiled) {
    lf_cache_key key = binary_key(code->key, r->device->device);
    if (find_binary(c, r, code, key)) return NULL;
    LF_TRY(take_ptx(c, r, code, out_compiled));
    uint64_t since = lf_now_ns();
    lf_status s = load_ptx(c, r, code, key);
    if (*out_compiled) lf_timing_add(&c->timing, LF_TIMED_KERNEL_LOAD, &since);
    lf_free(&c->allocator, code->object.text);
    code->object.text = NULL;
    return s;
}

// ---- one for all ---------------------------------------------------------------------------------------------------------------

static lf_status make(lfuser_context *c, const lf_loaded_request *r, lf_loaded *code, bool *out_compiled) {
    bool gpu = r->loop && r->device->target.kind == LF_TARGET_CUDA;
    uint64_t since = lf_now_ns();
    lf_status s = gpu ? make_gpu(c, r, code, out_compiled) : make_native(c, r, code, out_compiled);
    if (!s && !*out_compiled) lf_timing_add(&c->timing, LF_TIMED_CACHE, &since);
    if (s) release_object(c, &code->object);
    return s;
}

static lf_loaded **place_of(lf_loaded_table *t, lf_cache_key key, const lfuser_device *device) {
    lf_loaded **at = &t->buckets[key.words[0] % LF_LOADED_BUCKETS];
    while (*at && (!lf_cache_key_same((*at)->key, key) || (*at)->device != device)) at = &(*at)->next;
    return at;
}

// Lock held. A reference to code that is there or on its way; waits for it.
static lf_loaded *join(lf_loaded_table *t, lf_loaded *code) {
    code->references++;
    while (!code->ready && !code->failed) pthread_cond_wait(&t->changed, &t->lock);
    return code;
}

lf_status lf_loaded_get(lfuser_context *c, const lf_loaded_request *r, lf_loaded **out_code, bool *out_compiled) {
    lf_loaded_table *t = &c->code;
    lf_cache_key key;
    bool compiled = false;
    *out_code = NULL;
    if (!out_compiled) out_compiled = &compiled;
    *out_compiled = false;
    LF_TRY(key_of(c, r, &key));
    lf_loaded *mine = lf_alloc_zero(&c->allocator, sizeof *mine);
    if (!mine) return lf_out_of_memory();
    pthread_mutex_lock(&t->lock);
    for (lf_loaded *found; (found = *place_of(t, key, r->device));) {
        join(t, found);
        if (found->ready) {
            pthread_mutex_unlock(&t->lock);
            lf_free(&c->allocator, mine);
            atomic_fetch_add_explicit(&t->shared, 1, memory_order_relaxed);
            *out_code = found;
            return NULL;
        }
        if (--found->references == 0) lf_free(&c->allocator, found); // it failed, and is in no list: we try ourselves
    }
    *mine =
        (lf_loaded){.key = key, .device = r->device, .references = 1, .next = t->buckets[key.words[0] % LF_LOADED_BUCKETS]};
    t->buckets[key.words[0] % LF_LOADED_BUCKETS] = mine;
    pthread_mutex_unlock(&t->lock);
    lf_status s = make(c, r, mine, out_compiled);
    pthread_mutex_lock(&t->lock);
    mine->ready = !s;
    mine->failed = s != NULL;
    if (s) *place_of(t, key, r->device) = mine->next;
    bool last = s && --mine->references == 0;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (last) lf_free(&c->allocator, mine);
    if (!s) *out_code = mine;
    return s;
}

void lf_loaded_release(lfuser_context *c, lf_loaded *code) {
    if (!code) return;
    lf_loaded_table *t = &c->code;
    pthread_mutex_lock(&t->lock);
    bool last = --code->references == 0;
    if (last) *place_of(t, code->key, code->device) = code->next;
    pthread_mutex_unlock(&t->lock);
    if (!last) return;
    if (code->kernel) code->device->device->ops->kernel_destroy(code->kernel);
    release_object(c, &code->object);
    lf_free(&c->allocator, code);
}

bool lf_loaded_is_cold(lfuser_context *c, const lf_loaded_request *r) {
    lf_loaded_table *t = &c->code;
    lf_cache_key key;
    lf_status s = key_of(c, r, &key);
    if (s) return lf_status_destroy(s), true;
    pthread_mutex_lock(&t->lock);
    lf_loaded *found = *place_of(t, key, r->device);
    bool there = found && found->ready;
    pthread_mutex_unlock(&t->lock);
    if (there || lf_cache_has(c->code.cache, key)) return false;
    bool binaries = r->loop && r->device->device->ops->image_link;
    return !binaries || !lf_cache_has(c->code.cache, binary_key(key, r->device->device));
}

// ---- the context's part --------------------------------------------------------------------------------------------------------

enum { MEMORY_BYTES = 32 << 20, DISK_BYTES = 256 << 20 };

lf_status lf_loaded_table_init(lfuser_context *c, const lfuser_context_options *options) {
    lf_loaded_table *t = &c->code;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    lf_native_processor(t->processor, sizeof t->processor);
    char *standard = options->cache_directory ? NULL : lf_cache_default_directory(&c->allocator);
    const char *directory = options->cache_directory ? options->cache_directory : standard;
    lf_cache_options o = {.directory = directory && *directory ? directory : NULL,
                          .maker = LF_BUILD_ID,
                          .memory_bytes = MEMORY_BYTES,
                          .disk_bytes = options->cache_bytes ? options->cache_bytes : DISK_BYTES};
    lf_status s = lf_cache_create(&c->allocator, &c->log, &o, &t->cache);
    lf_free(&c->allocator, standard);
    return s;
}

void lf_loaded_table_finish(lfuser_context *c) {
    lf_cache_destroy(c->code.cache);
    pthread_cond_destroy(&c->code.changed);
    pthread_mutex_destroy(&c->code.lock);
}

lfuser_status lfuser_context_cache_stats(lfuser_context *c, lfuser_cache_stats *out) {
    if (!c || !out)
        return lf_public(lf_error(c ? &c->allocator : &lf_system_allocator, LF_INVALID_ARGUMENT,
                                  "lfuser_context_cache_stats: an argument is NULL"));
    size_t size = out->size ? out->size : sizeof *out;
    const lf_cache_stats *s = lf_cache_statistics(c->code.cache);
    lfuser_cache_stats stats = {.size = sizeof stats,
                                .directory = lf_cache_directory(c->code.cache),
                                .limit_bytes = lf_cache_limit(c->code.cache),
                                .compiles = atomic_load_explicit(&c->code.compiles, memory_order_relaxed),
                                .shared = atomic_load_explicit(&c->code.shared, memory_order_relaxed),
                                .memory_hits = atomic_load_explicit(&s->memory_hits, memory_order_relaxed),
                                .disk_hits = atomic_load_explicit(&s->disk_hits, memory_order_relaxed),
                                .misses = atomic_load_explicit(&s->misses, memory_order_relaxed),
                                .stores = atomic_load_explicit(&s->stores, memory_order_relaxed),
                                .evictions = atomic_load_explicit(&s->evictions, memory_order_relaxed),
                                .faults = atomic_load_explicit(&s->faults, memory_order_relaxed)};
    lf_cache_measure(c->code.cache, &stats.entries, &stats.bytes);
    memcpy(out, &stats, size < sizeof stats ? size : sizeof stats);
    return NULL;
}

void lfuser_context_cache_clear(lfuser_context *c) {
    if (c) lf_cache_clear(c->code.cache);
}
