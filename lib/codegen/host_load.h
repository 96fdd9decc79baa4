// Host code from object bytes: the entries of every stage. Inline, since the code generator's module and the library both need it.
#ifndef LF_CODEGEN_HOST_LOAD_H
#define LF_CODEGEN_HOST_LOAD_H
#include "codegen/codegen.h"
#include <stdio.h>

enum { LF_HOST_NAME = 32 }; // bytes that the name of an entry may take

// LF_HOST_INFER, LF_HOST_BIND, for later stages with their number. Returns `buffer` (LF_HOST_NAME bytes).
static inline const char *lf_host_function_name(lf_phase phase, uint32_t stage, char *buffer) {
    snprintf(buffer, LF_HOST_NAME, stage ? "%s.%u" : "%s", phase == LF_PHASE_INFER ? LF_HOST_INFER : LF_HOST_BIND, stage);
    return buffer;
}

// Fills in `native`, `stages`, `infer` and `bind` of an object whose `code` is there.
static inline lf_status lf_host_load(const lf_allocator *a, uint32_t n_stages, lf_object *object) {
    size_t n = 2 * (size_t)n_stages;
    lf_native_symbol *symbols = lf_alloc_zero(a, n * (sizeof *symbols + LF_HOST_NAME));
    object->stages = lf_alloc_zero(a, n_stages * sizeof *object->stages);
    lf_status s = symbols && object->stages ? NULL : lf_out_of_memory();
    for (uint32_t i = 0; i < n && !s; i++)
        symbols[i].name =
            lf_host_function_name(i % 2 ? LF_PHASE_BIND : LF_PHASE_INFER, i / 2, (char *)&symbols[n] + i * LF_HOST_NAME);
    if (!s) s = lf_native_load(a, object->code, object->code_size, symbols, n, &object->native);
    for (uint32_t i = 0; i < n_stages && !s; i++) {
        object->stages[i].infer = (lfuser_abi_infer)(uintptr_t)symbols[2 * i].address;
        object->stages[i].bind = (lfuser_abi_bind)(uintptr_t)symbols[2 * i + 1].address;
    }
    lf_free(a, symbols);
    if (s) return s;
    object->infer = object->stages[0].infer;
    object->bind = object->stages[0].bind;
    return NULL;
}
#endif
