// PTX to a cubin by the driver's linker, which hands the result out, as its loader does not.
#include "runtime/cuda/cuda_device.h"
#include <string.h>

enum { LOG_BYTES = 4096 };

static lf_status take_cubin(lf_cuda_device *d, CUlinkState state, const lf_image *ptx, void **out_cubin, size_t *out_size) {
    void *cubin = NULL;
    size_t size = 0;
    LF_TRY(lf_cuda_check(
        d, d->cu.cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx->data, ptx->size, ptx->entry, 0, NULL, NULL),
        "cuLinkAddData"));
    LF_TRY(lf_cuda_check(d, d->cu.cuLinkComplete(state, &cubin, &size), "cuLinkComplete"));
    if (!cubin || !size) return lf_error(d->base.allocator, LF_DEVICE_ERROR, "cuLinkComplete gave nothing");
    *out_cubin = lf_alloc(d->base.allocator, size); // the driver's own goes with the state
    if (!*out_cubin) return lf_out_of_memory();
    memcpy(*out_cubin, cubin, size);
    *out_size = size;
    return NULL;
}

static lf_status link_entered(lf_cuda_device *d, const lf_image *ptx, void **out_cubin, size_t *out_size) {
    char *errors = lf_alloc_zero(d->base.allocator, LOG_BYTES);
    if (!errors) return lf_out_of_memory();
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {errors, (void *)(uintptr_t)LOG_BYTES};
    CUlinkState state = NULL;
    lf_status s = lf_cuda_check(d, d->cu.cuLinkCreate(2, options, values, &state), "cuLinkCreate");
    if (!s) {
        s = take_cubin(d, state, ptx, out_cubin, out_size);
        lf_cuda_report(d, d->cu.cuLinkDestroy(state), "cuLinkDestroy");
    }
    errors[LOG_BYTES - 1] = 0;
    if (s) s = lf_status_note(s, "while linking kernel %s", ptx->entry);
    if (s && errors[0]) s = lf_status_note(s, "%s", errors);
    lf_free(d->base.allocator, errors);
    return s;
}

lf_status lf_cuda_image_link(lf_device *device, const lf_image *ptx, void **out_cubin, size_t *out_size) {
    lf_cuda_device *d = (lf_cuda_device *)device;
    *out_cubin = NULL;
    *out_size = 0;
    if (!d->cu.cuLinkCreate || !d->cu.cuLinkAddData || !d->cu.cuLinkComplete || !d->cu.cuLinkDestroy)
        return lf_error(device->allocator, LF_UNSUPPORTED, "this driver has no linker");
    lf_cuda_scope scope;
    LF_TRY(lf_cuda_enter(d, &scope));
    lf_cuda_relaxed relaxed = lf_cuda_relax(d);
    lf_status s = link_entered(d, ptx, out_cubin, out_size);
    lf_cuda_unrelax(d, relaxed);
    lf_cuda_leave(d, &scope);
    return s;
}
