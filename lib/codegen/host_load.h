// Host code from object bytes: the entries of every stage. Inline, since the code generator's module and the library both need it.
#ifndef LF_CODEGEN_HOST_LOAD_H
#define LF_CODEGEN_HOST_LOAD_H
#include "codegen/codegen.h"
#include <stdio.h>

enum { LF_HOST_NAME = 32 }; // bytes that the name of an entry may take

// LF_HOST_INFER, LF_HOST_BIND, for later stages with their number; LF_HOST_FINISH with its number. Returns `buffer` (LF_HOST_NAME bytes).
static inline const char *lf_host_function_name(lf_phase phase, uint32_t number, char *buffer) {
    static const char *const names[] = {LF_HOST_INFER, LF_HOST_BIND, LF_HOST_FINISH};
    snprintf(buffer, LF_HOST_NAME, number || phase == LF_PHASE_FINISH ? "%s.%u" : "%s", names[phase], number);
    return buffer;
}

// Fills in `native`, `stages`, `finishes`, `infer` and `bind` of an object whose `code` is there.
static inline lf_status lf_host_load(const lf_allocator *a, const lfuser_abi_program *abi, lf_object *object) {
    size_t of_stages = 2 * (size_t)abi->n_stages, n = of_stages + abi->n_finishes;
    lf_native_symbol *symbols = lf_alloc_zero(a, n * (sizeof *symbols + LF_HOST_NAME));
    char *names = symbols ? (char *)&symbols[n] : NULL;
    object->stages = lf_alloc_zero(a, abi->n_stages * sizeof *object->stages);
    object->finishes = abi->n_finishes ? lf_alloc_zero(a, abi->n_finishes * sizeof *object->finishes) : NULL;
    bool room = symbols && object->stages && (object->finishes || !abi->n_finishes);
    lf_status s = room ? NULL : lf_out_of_memory();
    for (uint32_t i = 0; i < n && !s; i++)
        symbols[i].name = lf_host_function_name(i >= of_stages ? LF_PHASE_FINISH
                                                : i % 2        ? LF_PHASE_BIND
                                                               : LF_PHASE_INFER,
                                                i >= of_stages ? i - (uint32_t)of_stages : i / 2, names + i * LF_HOST_NAME);
    if (!s) s = lf_native_load(a, object->code, object->code_size, symbols, n, &object->native);
    for (uint32_t i = 0; i < abi->n_stages && !s; i++) {
        object->stages[i].infer = (lfuser_abi_infer)(uintptr_t)symbols[2 * i].address;
        object->stages[i].bind = (lfuser_abi_bind)(uintptr_t)symbols[2 * i + 1].address;
    }
    for (uint32_t i = 0; i < abi->n_finishes && !s; i++)
        object->finishes[i] = (lfuser_abi_finish_entry)(uintptr_t)symbols[of_stages + i].address;
    lf_free(a, symbols);
    if (s) return s;
    object->infer = object->stages[0].infer;
    object->bind = object->stages[0].bind;
    return NULL;
}
#endif
