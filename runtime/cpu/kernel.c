// Loaded kernels: an address, and who must hear that the code behind it is no longer used.
#include "runtime/cpu/cpu.h"

lf_status lf_cpu_kernel_load(lf_device *device, const lf_image *image, lf_kernel **out_kernel) {
    *out_kernel = NULL;
    if (image->kind != LF_IMAGE_NATIVE)
        return lf_error(device->allocator, LF_UNSUPPORTED, "kernel %s: the CPU device runs native code only", image->entry);
    if (!image->address)
        return lf_error(device->allocator, LF_INVALID_ARGUMENT, "kernel %s: the image has no address", image->entry);
    lf_cpu_kernel *k = lf_alloc_zero(device->allocator, sizeof *k);
    if (!k) return lf_out_of_memory();
    k->base.device = device;
    k->fn = (lf_native_kernel)image->address;
    atomic_init(&k->refs, 1);
    k->release = image->release;
    k->release_arg = image->release_arg;
    atomic_fetch_add_explicit(&device->stats.kernels_loaded, 1, memory_order_relaxed);
    *out_kernel = &k->base;
    return NULL;
}

static void free_kernel(lf_cpu_kernel *k) {
    if (k->release) k->release(k->release_arg);
    lf_free(k->base.device->allocator, k);
}

void lf_cpu_kernel_unref(lf_cpu_kernel *k) {
    bool owned = k->release != NULL; // else kernel_destroy waits and frees
    if (atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) != 1) return;
    if (owned)
        free_kernel(k);
    else
        lf_futex_wake(&k->refs, INT32_MAX);
}

void lf_cpu_kernel_destroy(lf_kernel *kernel) {
    if (!kernel) return;
    lf_cpu_kernel *k = (lf_cpu_kernel *)kernel;
    if (lf_cpu_forked((lf_cpu_device *)kernel->device)) {
        free_kernel(k);
        return;
    }
    if (k->release) {
        lf_cpu_kernel_unref(k);
        return;
    }
    uint32_t refs = atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) - 1;
    while (refs) {
        lf_futex_wait(&k->refs, refs);
        refs = atomic_load_explicit(&k->refs, memory_order_acquire);
    }
    free_kernel(k);
}
