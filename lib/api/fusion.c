// Fusions: parsing, printing of every stage.
#include "api/api.h"
#include "base/text.h"
#include "parse/parse.h"
#include "partition/partition.h"
#include "runtime/fpstate.h"
#include <string.h>

lf_status lf_fusion_wrap(lfuser_context *c, lf_graph *graph, const char *file, lfuser_fusion **out_fusion) {
    *out_fusion = NULL;
    lfuser_fusion *f = lf_alloc_zero(&c->allocator, sizeof *f);
    char *copy = file ? lf_strndup(&c->allocator, file, strlen(file)) : NULL;
    if (!f || (file && !copy)) {
        lf_free(&c->allocator, f);
        lf_free(&c->allocator, copy);
        return lf_out_of_memory();
    }
    *f = (lfuser_fusion){.handle = {.is = LF_FUSION_HANDLE}, .context = c, .graph = graph, .file = copy, .references = 1};
    pthread_mutex_init(&f->lock, NULL);
    *out_fusion = f;
    return NULL;
}

void lf_fusion_retain(lfuser_fusion *f) { atomic_fetch_add(&f->references, 1); }

void lf_fusion_release(lfuser_fusion *f) {
    if (!f || atomic_fetch_sub(&f->references, 1) != 1) return;
    lf_graph_destroy(f->graph);
    pthread_mutex_destroy(&f->lock);
    lf_free(&f->context->allocator, f->file);
    lf_bury(f->context, &f->handle, sizeof *f);
}

void lfuser_fusion_destroy(lfuser_fusion *fusion) {
    if (lf_end_handle(fusion, LF_FUSION_HANDLE)) lf_fusion_release(fusion);
}

const char *lfuser_fusion_name(const lfuser_fusion *fusion) {
    return lf_is_handle(fusion, LF_FUSION_HANDLE) ? fusion->graph->name : "";
}

lfuser_status lfuser_fusion_parse(lfuser_context *c, const char *file, const char *text, size_t bytes, const char *name,
                                  lfuser_fusion **out_fusion) {
    if (out_fusion) *out_fusion = NULL;
    if (!c || !text || !out_fusion)
        return lf_public(lf_error(c ? &c->allocator : &lf_system_allocator, LF_INVALID_ARGUMENT,
                                  "lfuser_fusion_parse: an argument is NULL"));
    lf_graph **graphs;
    size_t n;
    lf_fpstate fp = lf_fp_enter(); // literals are rounded, and scalars of constants computed
    uint64_t since = lf_now_ns();
    lf_status s = lf_parse(&c->allocator, file, text, bytes, true, &graphs, &n);
    lf_timing_add(&c->timing, LF_TIMED_PARSE, &since);
    lf_fp_leave(fp);
    if (s) return lf_public(s);
    size_t found = 0;
    while (name && found < n && strcmp(graphs[found]->name, name) != 0) found++;
    if (found == n)
        s = lf_error(&c->allocator, LF_INVALID_PROGRAM, "%s has no fusion @%s; its first of %zu is @%s",
                     file ? file : "<text>", name, n, graphs[0]->name);
    else
        s = lf_fusion_wrap(c, graphs[found], file, out_fusion);
    if (!s) graphs[found] = NULL;
    lf_parse_release(&c->allocator, graphs, n);
    return lf_public(s);
}

lf_status lf_fusion_no_sync(const lfuser_fusion *f) {
    lf_status s = NULL;
    for (const lf_sync_point *sync = f->graph->first_sync; sync; sync = sync->next) {
        if (s)
            s = lf_status_note(s, "%s", sync->refusal);
        else
            s = lf_error_at(&f->context->allocator, LF_INVALID_PROGRAM, sync->place, "%s", sync->refusal);
    }
    return s;
}

lfuser_status lfuser_fusion_check_no_sync(lfuser_fusion *f) {
    LF_NEED(f, LF_FUSION_HANDLE);
    return lf_public(lf_fusion_no_sync(f));
}

// ---- text of every stage -----------------------------------------------------------------------------------------------------------

static lf_status print_partition(const lfuser_fusion *f, char **out_text) {
    lf_partition *p;
    LF_TRY(lf_partition_create(f->graph, f->context->debug, &p));
    lf_status s = lf_partition_print(p, out_text);
    lf_partition_destroy(p);
    return s;
}

static lf_status print_kernels(const lf_allocator *a, const lf_program *p, char **out_text) {
    lf_text t;
    lf_text_init(&t, a);
    lf_arena arena;
    lf_arena_init(&arena, a);
    for (uint32_t i = 0; i < p->abi.n_kernels; i++) {
        const char *text = lf_loop_text(&arena, p->kernels[i]);
        if (text)
            lf_text_put(&t, "%s", text);
        else
            t.failed = true;
    }
    lf_arena_finish(&arena);
    return lf_text_take(&t, out_text);
}

static void put_class(lf_text *t, lfuser_abi_class c) {
    lf_text_put(t, ", class rows %u, columns %u, vector %u, %u-bit indices", c.rows, c.cols, c.vector, c.wide ? 64 : 32);
    static const char *const rows[] = {[LFUSER_ABI_WARP] = "a warp a row",
                                       [LFUSER_ABI_SPLIT] = "rows split",
                                       [LFUSER_ABI_OUTER] = "a lane a row",
                                       [LFUSER_ABI_RESIDENT] = "rows held by a block",
                                       [LFUSER_ABI_ROUNDS] = "rows in rounds",
                                       [LFUSER_ABI_LOOKBACK] = "looking back",
                                       [LFUSER_ABI_PRODUCT] = "tiles of a matrix product"};
    if (c.shape < sizeof rows / sizeof *rows && rows[c.shape]) lf_text_put(t, ", %s", rows[c.shape]);
    if (c.shape == LFUSER_ABI_TILE)
        lf_text_put(t, ", tiles of %u x %u", lfuser_abi_tile_outer(c.vector, c.spans), lfuser_abi_tile_inner(c.vector));
    if (c.shape == LFUSER_ABI_STACK) lf_text_put(t, ", %u vectors along r%u", c.spans, c.chunks);
    unsigned n = 0;
    for (unsigned a = 0; a < LFUSER_ABI_TILED_ACCESSES; a++)
        if (c.tiled >> a & 1)
            lf_text_put(t, "%s%u",
                        n++                           ? ", "
                        : c.shape == LFUSER_ABI_STACK ? " constant in accesses "
                                                      : " for accesses ",
                        a);
}

static lf_status print_code(lfuser_fusion *f, const lf_program *p, lfuser_stage stage, const lf_target *target,
                            lfuser_math math, uint32_t n_class, char **out_text) {
    static const lf_emit_stage stages[] = {[LFUSER_STAGE_HOST_IR] = LF_STAGE_HOST_IR,
                                           [LFUSER_STAGE_HOST_ASM] = LF_STAGE_HOST_ASM,
                                           [LFUSER_STAGE_DEVICE_IR] = LF_STAGE_KERNEL_IR,
                                           [LFUSER_STAGE_DEVICE_ASM] = LF_STAGE_KERNEL_ASM};
    const lf_codegen_table *table;
    lf_codegen *generator;
    LF_TRY(lf_context_codegen(f->context, &table, &generator));
    lf_codegen_options options = {.fast = math == LFUSER_MATH_FAST, .debug = f->context->debug & LF_DEBUG_OF_CODE};
    if (stage == LFUSER_STAGE_HOST_IR || stage == LFUSER_STAGE_HOST_ASM)
        return table->print(generator, stages[stage], p, NULL, target, (lfuser_abi_class){0}, &options, out_text);
    lf_device_type type = target->kind == LF_TARGET_CPU    ? LF_DEVICE_CPU
                          : target->kind == LF_TARGET_CUDA ? LF_DEVICE_CUDA
                                                           : LF_DEVICE_SIM;
    lf_text t;
    lf_text_init(&t, &f->context->allocator);
    lf_status s = NULL;
    for (uint32_t i = 0; i < p->abi.n_launches && !s; i++) {
        const lfuser_abi_launch *launch = &p->abi.launches[i];
        lfuser_abi_class classes[LF_MAX_CLASSES];
        uint32_t n = lf_launch_usual_classes(launch, type, classes);
        if (!n) continue;
        lfuser_abi_class cls = classes[n_class < n ? n_class : n - 1];
        char *text = NULL;
        s = table->print(generator, stages[stage], p, p->kernels[launch->kernel], target, cls, &options, &text);
        if (s) break;
        const char *comment = stage == LFUSER_STAGE_DEVICE_IR ? ";" : target->kind == LF_TARGET_CUDA ? "//" : "#";
        lf_text_put(&t, "%s kernel %s", comment, launch->name);
        put_class(&t, cls);
        lf_text_put(&t, "\n%s", text);
        lf_free(&f->context->allocator, text);
    }
    if (s) {
        lf_text_finish(&t);
        return s;
    }
    return lf_text_take(&t, out_text);
}

lfuser_status lfuser_fusion_print(lfuser_fusion *f, lfuser_stage stage, const char *target_text, lfuser_math math,
                                  uint32_t n_class, char **out_text) {
    if (out_text) *out_text = NULL;
    if (!f || !out_text || (unsigned)stage > LFUSER_STAGE_DEVICE_ASM)
        return lf_public(lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT,
                                  "lfuser_fusion_print: an argument is NULL, or the stage %d unknown", (int)stage));
    LF_NEED(f, LF_FUSION_HANDLE);
    lf_target target;
    lf_status s = lf_target_parse(&f->context->allocator, target_text ? target_text : "cpu", &target);
    if (s) return lf_public(s);
    lf_fpstate fp = lf_fp_enter(); // numbers are printed
    if (stage <= LFUSER_STAGE_GRAPH) {
        s = lf_graph_print(f->graph, stage == LFUSER_STAGE_FUSION ? LF_PRINT_SOURCE : LF_PRINT_FULL, out_text);
        lf_fp_leave(fp);
        return lf_public(s);
    }
    pthread_mutex_lock(&f->lock);
    lf_program *p = NULL;
    if (stage == LFUSER_STAGE_PARTITION) {
        s = print_partition(f, out_text);
    } else {
        s = lf_context_plan(f->context, f->graph, f->context->debug, math == LFUSER_MATH_FAST, &p);
        if (!s && stage == LFUSER_STAGE_PROGRAM)
            s = lf_program_print(p, out_text);
        else if (!s && stage == LFUSER_STAGE_KERNELS)
            s = print_kernels(&f->context->allocator, p, out_text);
        else if (!s)
            s = print_code(f, p, stage, &target, math, n_class, out_text);
        lf_program_destroy(p);
    }
    pthread_mutex_unlock(&f->lock);
    lf_fp_leave(fp);
    return lf_public(s);
}
