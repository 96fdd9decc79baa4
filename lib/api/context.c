// Contexts: allocator, log, and the code generator that is opened when something is compiled.
#include "api/api.h"
#include "lf_build_id.h"
#include <stdlib.h>
#include <string.h>

lfuser_status lfuser_context_create(const lfuser_context_options *options, lfuser_context **out_context) {
    lfuser_context_options given = {0};
    if (!out_context)
        return lf_public(lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "lfuser_context_create: out_context is NULL"));
    *out_context = NULL;
    if (options) memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    lf_allocator a = lf_system_allocator;
    if (given.allocator.alloc || given.allocator.resize || given.allocator.release) {
        if (!given.allocator.alloc || !given.allocator.resize || !given.allocator.release)
            return lf_public(lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT,
                                      "lfuser_context_create: an allocator needs alloc, resize and release"));
        a = (lf_allocator){given.allocator.self, given.allocator.alloc, given.allocator.resize, given.allocator.release,
                           false};
    }
    uint32_t debug;
    lf_status unknown = lf_debug_parse(&lf_system_allocator, getenv("LFUSER_DEBUG"), &debug);
    if (unknown) return lf_public(lf_status_note(unknown, "that is what $LFUSER_DEBUG says"));
    lfuser_context *c = lf_alloc_zero(&a, sizeof *c);
    if (!c) return lf_public(lf_out_of_memory());
    c->allocator = a;
    c->log =
        (lf_log){given.log_self, (void (*)(void *, lf_log_level, const char *))given.log, (lf_log_level)given.log_least};
    c->threads = given.threads;
    c->debug = debug;
    pthread_mutex_init(&c->lock, NULL);
    lf_workers_init(&c->workers, &c->allocator);
    if (given.codegen_path) {
        c->codegen_path = lf_strndup(&c->allocator, given.codegen_path, strlen(given.codegen_path));
        if (!c->codegen_path) {
            lfuser_context_destroy(c);
            return lf_public(lf_out_of_memory());
        }
    }
    lf_status s = lf_loaded_table_init(c, &given);
    if (s) {
        lfuser_context_destroy(c);
        return lf_public(s);
    }
    *out_context = c;
    return NULL;
}

void lfuser_context_destroy(lfuser_context *c) {
    if (!c) return;
    lf_watcher_stop(c->watcher);
    lf_workers_finish(&c->workers);
    lf_loaded_table_finish(c);
    if (c->generator) c->codegen->destroy(c->generator);
    lf_dylib_close(c->codegen_lib, false); // LLVM does not take being unloaded
    pthread_mutex_destroy(&c->lock);
    lf_graves_finish(c);
    lf_free(&c->allocator, c->codegen_path);
    lf_allocator a = c->allocator;
    lf_free(&a, c);
}

void lfuser_free(lfuser_context *c, void *text) {
    if (c) lf_free(&c->allocator, text);
}

// ---- the code generator ----------------------------------------------------------------------------------------------------------

static lf_status default_path(lfuser_context *c, char **out_path) {
    char *self;
    static const char name[] = "liblfuser-codegen.so";
    LF_TRY(lf_dylib_path_of(&c->allocator, (const void *)(uintptr_t)lfuser_version, &self));
    const char *slash = strrchr(self, '/');
    size_t folder = slash ? (size_t)(slash - self) + 1 : 0;
    char *path = lf_alloc(&c->allocator, folder + sizeof name);
    if (path) {
        memcpy(path, self, folder);
        memcpy(path + folder, name, sizeof name);
    }
    lf_free(&c->allocator, self);
    *out_path = path;
    return path ? NULL : lf_out_of_memory();
}

static lf_status open_codegen(lfuser_context *c) {
    char *path = NULL;
    if (!c->codegen_path) LF_TRY(default_path(c, &path));
    lf_status s = NULL;
    if (!c->codegen_lib) s = lf_dylib_open(&c->allocator, c->codegen_path ? c->codegen_path : path, &c->codegen_lib);
    lf_free(&c->allocator, path);
    if (s) return lf_status_note(s, "the code generator is needed to compile; set codegen_path to say where it lies");
    const lf_codegen_table *(*entry)(uint32_t) =
        (const lf_codegen_table *(*)(uint32_t))(uintptr_t)lf_dylib_symbol(c->codegen_lib, "lfuser_codegen_entry");
    const lf_codegen_table *table = entry ? entry(LF_CODEGEN_VERSION) : NULL;
    if (!table || strcmp(table->build_id, LF_BUILD_ID) != 0)
        return lf_error(&c->allocator, LF_UNAVAILABLE,
                        "the code generator module is of another build (%s) than liblfuser (%s)",
                        table ? table->build_id : "no entry", LF_BUILD_ID);
    LF_TRY(table->create(&c->allocator, &c->log, &c->generator));
    c->codegen = table;
    return NULL;
}

lf_status lf_context_codegen(lfuser_context *c, const lf_codegen_table **out_table, lf_codegen **out_generator) {
    pthread_mutex_lock(&c->lock);
    uint64_t since = lf_now_ns();
    lf_status s = NULL;
    if (!c->codegen) {
        s = open_codegen(c);
        lf_timing_add(&c->timing, LF_TIMED_OPEN, &since);
    }
    *out_table = c->codegen;
    *out_generator = c->generator;
    pthread_mutex_unlock(&c->lock);
    return s;
}

lf_status lf_context_plan(lfuser_context *c, lf_graph *g, uint32_t debug, bool fast, lf_program **out_program) {
    uint64_t since = lf_now_ns();
    LF_TRY(lf_program_create(g, debug, fast, out_program));
    since += (*out_program)->partition_ns;
    lf_timing_add(&c->timing, LF_TIMED_SCHEDULE, &since);
    atomic_fetch_add_explicit(&c->timing.ns[LF_TIMED_PARTITION], (*out_program)->partition_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->timing.times[LF_TIMED_PARTITION], 1, memory_order_relaxed);
    return NULL;
}

// ---- where compile time went -------------------------------------------------------------------------------------------------------

size_t lfuser_context_n_stage_times(void) { return LF_TIMED_COUNT; }

lfuser_status lfuser_context_stage_time(lfuser_context *c, size_t index, lfuser_stage_time *out_time) {
    static const char *const names[] = {
#define LF_TIMED(id, name) name,
#include "base/timing.def"
#undef LF_TIMED
    };
    if (!c || !out_time || index >= LF_TIMED_COUNT)
        return lf_public(lf_error(c ? &c->allocator : &lf_system_allocator, LF_INVALID_ARGUMENT,
                                  "lfuser_context_stage_time: an argument is NULL, or stage %zu not one of %d", index,
                                  (int)LF_TIMED_COUNT));
    size_t size = out_time->size ? out_time->size : sizeof *out_time;
    pthread_mutex_lock(&c->lock);
    const lf_timing *generator = c->codegen ? c->codegen->timing(c->generator) : NULL;
    pthread_mutex_unlock(&c->lock);
    lfuser_stage_time time = {sizeof time, names[index], atomic_load_explicit(&c->timing.times[index], memory_order_relaxed),
                              atomic_load_explicit(&c->timing.ns[index], memory_order_relaxed)};
    if (generator) {
        time.times += atomic_load_explicit(&generator->times[index], memory_order_relaxed);
        time.ns += atomic_load_explicit(&generator->ns[index], memory_order_relaxed);
    }
    memcpy(out_time, &time, size < sizeof time ? size : sizeof time);
    return NULL;
}

// Past the cache: the point is that LLVM has been through its first compilation.
static lf_status compile_something(lfuser_context *c) {
    static const char text[] = "fusion @warm(%a: i64) { %b = add %a, 1 return %b }";
    const lf_codegen_table *table;
    lf_codegen *generator;
    lfuser_fusion *fusion;
    lf_program *program = NULL;
    LF_TRY(lf_context_codegen(c, &table, &generator));
    LF_TRY(lf_private(lfuser_fusion_parse(c, "warm", text, sizeof text - 1, NULL, &fusion)));
    lf_object object = {0};
    lf_status s = lf_program_create(fusion->graph, 0, false, &program);
    if (!s) s = table->host(generator, program, &object);
    if (!s) table->release(generator, &object);
    lf_program_destroy(program);
    lfuser_fusion_destroy(fusion);
    return s;
}

lfuser_status lfuser_context_warm(lfuser_context *c) {
    if (!c) return lf_public(lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "lfuser_context_warm: context is NULL"));
    return lf_public(compile_something(c));
}

static void warm(void *arg, bool cancelled) {
    lfuser_context *c = arg;
    lf_status s = cancelled ? NULL : compile_something(c);
    if (s) lf_log_write(&c->log, LF_LOG_WARNING, "warming in the background: %s", lf_status_message(s));
    lf_status_destroy(s);
}

void lfuser_context_warm_in_background(lfuser_context *c) {
    if (c) (void)lf_workers_give(&c->workers, warm, c, c);
}
