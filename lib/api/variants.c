// The compiled kernels of an executable, one a class: made when a run needs them, ahead by prepare, or beside the runs for callers
// that must not wait.
#include "api/api.h"
#include "runtime/fpstate.h"
#include <string.h>

static lf_variant *find_variant(lf_kernel_slot *slot, uint64_t key) {
    for (unsigned i = 0; i < LF_MAX_CLASSES; i++) {
        lf_variant *v = atomic_load_explicit(&slot->variants[i], memory_order_acquire);
        if (!v) return NULL;
        if (v->key == key) return v;
    }
    return NULL;
}

// What is there for this class. The code for rows that are not full is right for full ones too, so nothing more is compiled for them.
static lf_variant *find_loaded(lf_kernel_slot *slot, lfuser_abi_class cls) {
    lf_variant *v = find_variant(slot, lf_class_key(cls));
    if (v || !cls.full) return v;
    cls.full = false;
    return find_variant(slot, lf_class_key(cls));
}

static unsigned count_variants(lf_kernel_slot *slot) {
    unsigned n = 0;
    while (n < LF_MAX_CLASSES && atomic_load_explicit(&slot->variants[n], memory_order_acquire)) n++;
    return n;
}

// The last place is for the class that is always right.
static bool is_full(lf_kernel_slot *slot, uint64_t general) {
    return count_variants(slot) >= (find_variant(slot, general) ? LF_MAX_CLASSES : LF_MAX_CLASSES - 1);
}

void lf_variant_free(lfuser_executable *e, lf_variant *v) {
    if (!v) return;
    lf_loaded_release(e->context, v->code);
    lf_free(&e->context->allocator, v);
}

static lf_loaded_request request_for(const lfuser_executable *e, const lfuser_abi_launch *l, lfuser_abi_class cls) {
    return (lf_loaded_request){
        .loop = e->program->kernels[l->kernel], .device = e->device, .cls = cls, .options = e->options};
}

static lf_status make_variant(lfuser_executable *e, const lfuser_abi_launch *l, lfuser_abi_class cls,
                              lf_variant **out_variant) {
    *out_variant = NULL;
    lf_variant *v = lf_alloc_zero(&e->context->allocator, sizeof *v);
    if (!v) return lf_out_of_memory();
    v->key = lf_class_key(cls);
    v->cls = cls;
    lf_loaded_request r = request_for(e, l, cls);
    bool compiled;
    lf_status s = lf_loaded_get(e->context, &r, &v->code, &compiled);
    if (compiled) atomic_fetch_add_explicit(&e->device->compiles, 1, memory_order_relaxed);
    if (s) {
        lf_variant_free(e, v);
        return s;
    }
    v->kernel = v->code->kernel;
    *out_variant = v;
    return NULL;
}

// Puts it in its place; another thread may have been faster, or taken the last place but the general class's: then *v is what is to
// be used instead (NULL: nothing of that kind is there yet).
static void add_variant(lfuser_executable *e, lf_kernel_slot *slot, uint64_t general, lf_variant **v) {
    pthread_mutex_lock(&e->lock);
    lf_variant *mine = *v;
    *v = find_variant(slot, mine->key);
    if (!*v && is_full(slot, general) && mine->key != general)
        *v = find_variant(slot, general);
    else if (!*v) {
        atomic_store_explicit(&slot->variants[count_variants(slot)], mine, memory_order_release);
        *v = mine;
    }
    pthread_mutex_unlock(&e->lock);
    if (*v != mine) lf_variant_free(e, mine);
}

// Without the lock, so that classes compile side by side; of those who want the same one lf_loaded_get lets one compile.
static lf_status compile_variant(lfuser_executable *e, uint32_t launch, lfuser_abi_class cls, lf_variant **out_variant) {
    const lfuser_abi_launch *l = &e->program->abi.launches[launch];
    lf_kernel_slot *slot = &e->kernels[l->kernel];
    lfuser_abi_class general = lf_launch_general_class(l, e->device->device->type);
    uint64_t general_key = lf_class_key(general);
    *out_variant = NULL;
    for (int round = 0; round < 2 && !*out_variant; round++) {
        if (round || is_full(slot, general_key)) cls = general;
        if ((*out_variant = find_variant(slot, lf_class_key(cls)))) return NULL;
        LF_TRY(make_variant(e, l, cls, out_variant));
        add_variant(e, slot, general_key, out_variant);
    }
    return NULL;
}

// ---- beside the runs -----------------------------------------------------------------------------------------------------------

typedef struct wish {
    lfuser_executable *e;
    uint32_t launch;
    lfuser_abi_class cls;
} wish;

static void fulfil(void *arg, bool cancelled) {
    wish *w = arg;
    lfuser_executable *e = w->e;
    if (!cancelled) {
        lf_variant *unused;
        lf_status s = compile_variant(e, w->launch, w->cls, &unused);
        if (s) lf_log_write(&e->context->log, LF_LOG_ERROR, "compiling in the background: %s", lf_status_message(s));
        lf_status_destroy(s);
        atomic_fetch_add_explicit(&e->device->background_compiles, 1, memory_order_relaxed);
    }
    lf_free(&e->context->allocator, w);
}

// Once for each class; where no thread can be had, the general kernel is what there is.
static void compile_later(lfuser_executable *e, uint32_t launch, lfuser_abi_class cls) {
    const lfuser_abi_launch *l = &e->program->abi.launches[launch];
    lf_kernel_slot *slot = &e->kernels[l->kernel];
    uint64_t key = lf_class_key(cls);
    if (is_full(slot, lf_class_key(lf_launch_general_class(l, e->device->device->type)))) return;
    pthread_mutex_lock(&e->lock);
    bool asked = slot->n_asked == LF_MAX_CLASSES;
    for (unsigned i = 0; i < slot->n_asked; i++) asked |= slot->asked[i] == key;
    if (!asked) slot->asked[slot->n_asked++] = key;
    pthread_mutex_unlock(&e->lock);
    if (asked) return;
    wish *w = lf_alloc(&e->context->allocator, sizeof *w);
    if (!w) return;
    *w = (wish){e, launch, cls};
    if (!lf_workers_give(&e->context->workers, fulfil, w, e)) lf_free(&e->context->allocator, w);
}

// ---- for a run -----------------------------------------------------------------------------------------------------------------

lf_status lf_executable_variant(lfuser_executable *e, uint32_t launch, lfuser_abi_class cls, lfuser_stream *stream,
                                lf_variant **out_variant) {
    const lfuser_abi_launch *l = &e->program->abi.launches[launch];
    lf_kernel_slot *slot = &e->kernels[l->kernel];
    *out_variant = find_loaded(slot, cls);
    if (*out_variant) return NULL;
    bool capturing = stream && e->device->device->ops->stream_capturing(stream->stream);
    lf_variant *general =
        e->never_wait ? find_variant(slot, lf_class_key(lf_launch_general_class(l, e->device->device->type))) : NULL;
    if (general) {
        if (!capturing) compile_later(e, launch, cls);
        atomic_fetch_add_explicit(&e->device->general_launches, 1, memory_order_relaxed);
        *out_variant = general;
        return NULL;
    }
    if (capturing)
        return lf_error(&e->context->allocator, LF_CAPTURE_ERROR,
                        "@%s: kernel %s is not compiled for this class yet, and nothing can be loaded while the stream is "
                        "captured; prepare first",
                        e->program->abi.name, l->name);
    return compile_variant(e, launch, cls, out_variant);
}

// ---- ahead ---------------------------------------------------------------------------------------------------------------------

// Kernels to compile, by the caller and whichever workers are free. Lives until the last of them has let go.
typedef struct batch {
    const lf_allocator *allocator;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic uint32_t references;
    uint32_t n, next, done;
    lf_status first; // the first failure
    wish wishes[];
} batch;

static void release_batch(batch *b) {
    if (atomic_fetch_sub(&b->references, 1) != 1) return;
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    lf_free(b->allocator, b);
}

static void work_on(batch *b) {
    pthread_mutex_lock(&b->lock);
    while (b->next < b->n) {
        const wish *w = &b->wishes[b->next++];
        pthread_mutex_unlock(&b->lock);
        lf_variant *unused;
        lf_status s = compile_variant(w->e, w->launch, w->cls, &unused);
        pthread_mutex_lock(&b->lock);
        if (!b->first)
            b->first = s;
        else
            lf_status_destroy(s);
        if (++b->done == b->n) pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
}

static void help(void *arg, bool cancelled) {
    if (!cancelled) work_on(arg);
    release_batch(arg);
}

lf_status lf_executable_compile_all(lfuser_executable *e, const lf_wanted *wanted, size_t n) {
    const lf_allocator *a = &e->context->allocator;
    if (!n) return NULL;
    batch *b = lf_alloc_zero(a, sizeof *b + n * sizeof *b->wishes);
    if (!b) return lf_out_of_memory();
    b->allocator = a;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    b->n = (uint32_t)n;
    for (size_t i = 0; i < n; i++) b->wishes[i] = (wish){e, wanted[i].launch, wanted[i].cls};
    atomic_init(&b->references, 1);
    for (size_t i = 1; i < n && i < LF_MOST_WORKERS; i++) {
        atomic_fetch_add(&b->references, 1);
        if (lf_workers_give(&e->context->workers, help, b, b)) continue;
        release_batch(b);
        break;
    }
    work_on(b);
    pthread_mutex_lock(&b->lock);
    while (b->done < b->n) pthread_cond_wait(&b->changed, &b->lock);
    lf_status s = b->first;
    pthread_mutex_unlock(&b->lock);
    release_batch(b);
    return s;
}

lf_status lf_wanted_add(lfuser_executable *e, lf_wanted_list *list, uint32_t launch, lfuser_abi_class cls) {
    const lfuser_abi_launch *l = &e->program->abi.launches[launch];
    if (find_loaded(&e->kernels[l->kernel], cls)) return NULL;
    for (size_t i = 0; i < list->count; i++)
        if (e->program->abi.launches[list->data[i].launch].kernel == l->kernel &&
            lf_class_key(list->data[i].cls) == lf_class_key(cls))
            return NULL;
    return lf_vec_push(list, ((lf_wanted){launch, cls})) ? NULL : lf_out_of_memory();
}

bool lf_executable_is_cold(lfuser_executable *e, const lf_wanted *wanted) {
    lf_loaded_request r = request_for(e, &e->program->abi.launches[wanted->launch], wanted->cls);
    return lf_loaded_is_cold(e->context, &r);
}

lf_status lf_executable_compile_classes(lfuser_executable *e, bool general_only) {
    lf_status s = NULL;
    lf_wanted_list list;
    lf_vec_init(&list, &e->context->allocator);
    for (uint32_t i = 0; i < e->program->abi.n_launches && !s; i++) {
        const lfuser_abi_launch *l = &e->program->abi.launches[i];
        lf_device_type type = e->device->device->type;
        lfuser_abi_class classes[LF_MAX_CLASSES];
        uint32_t n = lf_launch_usual_classes(l, type, classes);
        if (n && general_only) classes[0] = lf_launch_general_class(l, type), n = 1;
        for (uint32_t k = 0; k < n && !s; k++) s = lf_wanted_add(e, &list, i, classes[k]);
    }
    if (!s) s = lf_executable_compile_all(e, list.data, list.count);
    lf_vec_finish(&list);
    return s;
}

lfuser_status lfuser_executable_prepare(lfuser_executable *e) {
    LF_NEED(e, LF_EXECUTABLE_HANDLE);
    lf_fpstate fp = lf_fp_enter();
    lf_status s = lf_executable_compile_classes(e, false);
    lf_fp_leave(fp);
    return lf_public(s);
}
