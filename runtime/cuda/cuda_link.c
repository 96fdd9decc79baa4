// PTX to a cubin by the driver's linker, which hands the result out, as its loader does not.
#include "runtime/cuda/cuda_device.h"
#include <stdio.h>
#include <string.h>

enum { LOG_BYTES = 4096 };

// The linker gives a thread far more registers than the loader does, which costs more than half of the speed of some kernels
// (measured: a sum of 188 registers instead of 52). So it is told how many, by a directive behind the one for the block's size.
static lf_status limit_registers(const lf_image *ptx, const lf_allocator *a, char **out_text, size_t *out_size) {
    static const char before[] = ".maxntid ";
    const char *text = ptx->data, *at = ptx->registers && !strstr(text, ".maxnreg") ? strstr(text, before) : NULL;
    const char *line_end = at ? strchr(at, '\n') : NULL;
    char directive[32] = "";
    if (line_end) snprintf(directive, sizeof directive, "\n.maxnreg %u", ptx->registers);
    size_t head = line_end ? (size_t)(line_end - text) : 0, more = strlen(directive);
    *out_size = ptx->size + more;
    *out_text = lf_alloc(a, *out_size);
    if (!*out_text) return lf_out_of_memory();
    memcpy(*out_text, text, head);
    memcpy(*out_text + head, directive, more);
    memcpy(*out_text + head + more, text + head, ptx->size - head);
    return NULL;
}

static lf_status take_cubin(lf_cuda_device *d, CUlinkState state, const lf_image *ptx, void **out_cubin, size_t *out_size) {
    void *cubin = NULL;
    size_t size = 0, text_size;
    char *text;
    LF_TRY(limit_registers(ptx, d->base.allocator, &text, &text_size));
    CUresult added = d->cu.cuLinkAddData(state, CU_JIT_INPUT_PTX, text, text_size, ptx->entry, 0, NULL, NULL);
    lf_free(d->base.allocator, text);
    LF_TRY(lf_cuda_check(d, added, "cuLinkAddData"));
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
