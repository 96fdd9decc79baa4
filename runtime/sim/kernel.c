// Kernels of the SIM device and their launches. A launch is a kernel of the inner device with one work item, whose argument block
// begins with what the simulation needs.
#include "runtime/fpstate.h"
#include "runtime/sim/device.h"
#include <string.h>

typedef struct lf_sim_kernel {
    lf_kernel base;
    lf_kernel *inner; // owned: keeps the code until its last launch is over
    const lf_sim_program *program;
} lf_sim_kernel;

// Words before the argument block of a launch, on their way through the inner device.
enum { HEAD_DEVICE, HEAD_QUEUE, HEAD_PROGRAM, HEAD_GRID, HEAD_BLOCK, HEAD_SHARED, HEAD_FOLLOWS, HEAD_WORDS };
enum { GUARD = 256 }; // bytes at least between the shared memories of blocks of a cluster

// Whoever waits for a mailbox that the launch was to write must not wait for ever.
static void release_mailboxes(lf_sim_device *d, const uint64_t *words, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        lf_sim_allocation a;
        if (!lf_sim_memory_find(&d->memory, (uintptr_t)words[i], &a) || a.freed || a.kind != LF_SIM_MAPPED_MEMORY) continue;
        uint64_t at = words[i] - a.begin;
        if (at >= a.bytes || at % sizeof(lf_mailbox_slot)) continue;
        atomic_fetch_add_explicit(&((lf_mailbox_slot *)(uintptr_t)words[i])->sequence, 1, memory_order_release);
    }
}

// Room once given stays: at first for a block of any size.
static bool make_room(lf_sim_device *d, const lf_sim_run *r) {
    const lf_allocator *a = d->base.allocator;
    size_t n = (size_t)r->cluster * r->block, bytes = r->cluster * r->stride;
    if (n < LF_SIM_MAX_BLOCK) n = LF_SIM_MAX_BLOCK;
    if (bytes < LF_SIM_MAX_SHARED) bytes = LF_SIM_MAX_SHARED;
    if (n > d->n_threads) {
        lf_sim_free_threads(d);
        d->threads = lf_alloc_zero(a, n * sizeof *d->threads);
        d->n_threads = d->threads ? n : 0;
    }
    if (bytes > d->n_shared) {
        lf_free(a, d->shared);
        lf_free(a, d->bytes);
        d->shared = lf_alloc_zero(a, bytes + 128);
        d->bytes = lf_alloc_zero(a, bytes * sizeof *d->bytes);
        d->n_shared = d->shared && d->bytes ? bytes : 0;
    }
    return d->n_threads && d->n_shared;
}

void lf_sim_free_threads(lf_sim_device *d) {
    for (size_t i = 0; i < d->n_threads; i++)
        if (d->threads[i].copies.allocator) lf_vec_finish(&d->threads[i].copies);
    lf_free(d->base.allocator, d->threads);
    d->threads = NULL;
    d->n_threads = 0;
}

static void execute(lf_sim_run *r) {
    lf_sim_device *d = r->device;
    for (uint32_t i = 0; i < r->cluster * r->block; i++)
        if (!d->threads[i].copies.allocator) lf_vec_init(&d->threads[i].copies, d->base.allocator);
    r->threads = d->threads;
    r->launch = ++d->launches ? d->launches : ++d->launches;
    if (r->grid > 1) {
        r->released = lf_alloc_zero(d->base.allocator, r->grid * sizeof *r->released);
        if (!r->released) {
            lf_sim_note_fault(r, NULL, LF_SIM_OUT_OF_MEMORY, UINT32_MAX, "for its blocks");
            return;
        }
    }
    lf_fpstate fp = lf_fp_enter();
    lf_sim_run_launch(r);
    lf_fp_leave(fp);
    lf_free(d->base.allocator, r->released);
}

// On whatever thread the inner device runs its work.
static void launch_in_order(const uint64_t *args, uint64_t begin, uint64_t end) {
    (void)begin, (void)end;
    lf_sim_device *d = (lf_sim_device *)(uintptr_t)args[HEAD_DEVICE];
    const lf_sim_program *p = (const lf_sim_program *)(uintptr_t)args[HEAD_PROGRAM];
    const char *here = (const char *)p;
    const lf_sim_code code = {.entry = (void (*)(lf_sim_thread *, const uint64_t *))(uintptr_t)(here + p->entry),
                              .texts = here + p->texts,
                              .sites = (const lf_sim_site *)(const void *)(here + p->sites),
                              .shared = (const lf_sim_shared *)(const void *)(here + p->shared),
                              .name = p->name,
                              .n_sites = p->n_sites,
                              .n_shared = p->n_shared,
                              .shared_bytes = p->shared_bytes,
                              .cluster = p->cluster};
    uint32_t dynamic = (uint32_t)args[HEAD_SHARED];
    lf_sim_run r = {.device = d,
                    .program = &code,
                    .args = args + HEAD_WORDS,
                    .words = args + HEAD_WORDS,
                    .n_args = (uint32_t)(args[HEAD_GRID] >> 32),
                    .grid = (uint32_t)args[HEAD_GRID],
                    .block = (uint32_t)args[HEAD_BLOCK],
                    .shared_bytes = p->shared_bytes + dynamic,
                    .follows = args[HEAD_FOLLOWS] != 0,
                    .cluster = p->cluster ? p->cluster : 1};
    r.stride = r.cluster > 1 ? (r.shared_bytes + GUARD) / GUARD * GUARD + GUARD : LF_SIM_MAX_SHARED;
    pthread_mutex_lock(&d->running);
    lf_sim_memory_trim(&d->memory, LF_SIM_MOST_FREED);
    if (make_room(d, &r))
        execute(&r);
    else
        lf_sim_note_fault(&r, NULL, LF_SIM_OUT_OF_MEMORY, UINT32_MAX, "for its threads");
    pthread_mutex_unlock(&d->running);
    if (!r.faulted) return;
    lf_sim_put_fault(d->base.allocator, (lf_sim_queue *)(uintptr_t)args[HEAD_QUEUE], &r);
    release_mailboxes(d, r.words, r.n_args);
}

lf_status lf_sim_load_native(lf_sim_device *d, const char *entry, lf_native_kernel fn, const lf_image *of,
                             lf_kernel **out_kernel) {
    lf_image image = {.kind = LF_IMAGE_NATIVE, .entry = entry, .address = (void *)fn};
    if (of) image.release = of->release, image.release_arg = of->release_arg;
    return lf_sim_inner(d)->kernel_load(d->inner, &image, out_kernel);
}

lf_status lf_sim_kernel_load(lf_device *device, const lf_image *image, lf_kernel **out_kernel) {
    lf_sim_device *d = (lf_sim_device *)device;
    const lf_sim_program *p = image->address;
    *out_kernel = NULL;
    if (image->kind != LF_IMAGE_NATIVE || !p || p->magic != LF_SIM_MAGIC)
        return lf_error(device->allocator, LF_UNSUPPORTED, "kernel %s: the SIM device runs code that was made for it only",
                        image->entry);
    if (p->cluster > LF_SIM_MAX_CLUSTER)
        return lf_error(device->allocator, LF_UNSUPPORTED, "kernel %s wants a cluster of %u blocks; sim takes at most %d",
                        image->entry, p->cluster, LF_SIM_MAX_CLUSTER);
    if (p->shared_bytes > LF_SIM_MAX_SHARED)
        return lf_error(device->allocator, LF_UNSUPPORTED, "kernel %s needs %u bytes of shared memory; sim has %u",
                        image->entry, p->shared_bytes, device->info.max_shared);
    lf_sim_kernel *k = lf_alloc_zero(device->allocator, sizeof *k);
    if (!k) return lf_out_of_memory();
    lf_status s = lf_sim_load_native(d, image->entry, launch_in_order, image, &k->inner);
    if (s) {
        lf_free(device->allocator, k);
        return s;
    }
    k->base.device = device;
    k->program = p;
    atomic_fetch_add_explicit(&device->stats.kernels_loaded, 1, memory_order_relaxed);
    *out_kernel = &k->base;
    return NULL;
}

void lf_sim_kernel_destroy(lf_kernel *kernel) {
    if (!kernel) return;
    lf_sim_device *d = (lf_sim_device *)kernel->device;
    lf_sim_inner(d)->kernel_destroy(((lf_sim_kernel *)kernel)->inner);
    lf_free(d->base.allocator, kernel);
}

static lf_status check_launch(const lf_device *device, const lf_launch *l) {
    const lf_allocator *a = device->allocator;
    if (l->kernel->device != device)
        return lf_error(a, LF_INVALID_ARGUMENT, "the kernel and the stream belong to different devices");
    if (l->grid > INT32_MAX)
        return lf_error(a, LF_INVALID_ARGUMENT, "a grid of %u blocks; at most %d can be launched", l->grid, INT32_MAX);
    if (!l->block || l->block > LF_SIM_MAX_BLOCK)
        return lf_error(a, LF_INVALID_ARGUMENT, "a block of %u threads; sim takes 1 to %d", l->block, LF_SIM_MAX_BLOCK);
    const lf_sim_program *p = ((const lf_sim_kernel *)l->kernel)->program;
    uint32_t fixed = p->shared_bytes;
    if (p->cluster && l->grid % p->cluster)
        return lf_error(a, LF_INVALID_ARGUMENT, "a grid of %u blocks is no multiple of the kernel's cluster of %u", l->grid,
                        p->cluster);
    if (l->shared > LF_SIM_MAX_SHARED - fixed)
        return lf_error(a, LF_INVALID_ARGUMENT, "%u bytes of shared memory a block; sim has %d", l->shared,
                        LF_SIM_MAX_SHARED);
    return NULL;
}

lf_status lf_sim_launch(lf_stream *stream, const lf_launch *l) {
    lf_sim_device *d = lf_sim_device_of(stream);
    if (!l->grid) return NULL;
    LF_TRY(check_launch(stream->device, l));
    const lf_sim_kernel *k = (const lf_sim_kernel *)l->kernel;
    uint64_t few[64], *words = few;
    size_t n = HEAD_WORDS + (size_t)l->n_args;
    if (n > sizeof few / sizeof *few && !(words = lf_alloc(d->base.allocator, n * sizeof *words))) return lf_out_of_memory();
    words[HEAD_DEVICE] = (uintptr_t)d;
    words[HEAD_QUEUE] = (uintptr_t)lf_sim_stream_of(stream)->queue;
    words[HEAD_PROGRAM] = (uintptr_t)k->program;
    words[HEAD_GRID] = (uint64_t)l->n_args << 32 | l->grid;
    words[HEAD_BLOCK] = l->block;
    words[HEAD_SHARED] = l->shared;
    words[HEAD_FOLLOWS] = l->follows;
    if (l->n_args) memcpy(words + HEAD_WORDS, l->args, l->n_args * sizeof *l->args);
    lf_status s = lf_sim_inner(d)->launch(
        lf_sim_stream_of(stream)->inner,
        &(lf_launch){.kernel = k->inner, .args = words, .n_args = (uint32_t)n, .items = 1, .grain = 1});
    if (words != few) lf_free(d->base.allocator, words);
    if (!s) atomic_fetch_add_explicit(&d->base.stats.launches, 1, memory_order_relaxed);
    return s;
}
