// What an executable's kernels take of their device.
#include "api/api.h"
#include <string.h>

// Variants are added at the end and stay until the executable is destroyed.
static const lf_variant *variant_at(const lfuser_executable *e, size_t index, uint32_t *out_kernel) {
    for (uint32_t k = 0; k < e->program->abi.n_kernels; k++)
        for (unsigned i = 0; i < LF_MAX_CLASSES; i++) {
            const lf_variant *v = atomic_load_explicit(&e->kernels[k].variants[i], memory_order_acquire);
            if (!v) break;
            *out_kernel = k;
            if (!index--) return v;
        }
    return NULL;
}

size_t lfuser_executable_n_kernels(const lfuser_executable *e) {
    uint32_t unused;
    size_t n = 0;
    while (lf_is_handle(e, LF_EXECUTABLE_HANDLE) && variant_at(e, n, &unused)) n++;
    return n;
}

lfuser_status lfuser_executable_kernel(const lfuser_executable *e, size_t index, lfuser_kernel_info *out_info) {
    uint32_t kernel;
    if (!e || !out_info)
        return lf_public(
            lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "lfuser_executable_kernel: an argument is NULL"));
    LF_NEED(e, LF_EXECUTABLE_HANDLE);
    const lf_allocator *a = &e->context->allocator;
    size_t size = out_info->size ? out_info->size : sizeof *out_info;
    const lf_variant *v = variant_at(e, index, &kernel);
    if (!v)
        return lf_public(lf_error(a, LF_INVALID_ARGUMENT, "lfuser_executable_kernel: kernel %zu of %zu", index,
                                  lfuser_executable_n_kernels(e)));
    const lf_kernel_resources *r = &v->kernel->resources;
    lfuser_kernel_info info = {.size = sizeof info,
                               .vector = v->cls.vector,
                               .wide = v->cls.wide,
                               .registers = r->registers,
                               .local_bytes = r->local_bytes,
                               .shared_bytes = r->shared_bytes};
    for (uint32_t i = e->program->abi.n_launches; i-- > 0;)
        if (e->program->abi.launches[i].kernel == kernel) info.launch = i, info.name = e->program->abi.launches[i].name;
    memcpy(out_info, &info, size < sizeof info ? size : sizeof info);
    return NULL;
}
