// Switches for finding faults: stages and choices of the compiler that can be left out (debug.def). They change how, never what.
#ifndef LF_BASE_DEBUG_H
#define LF_BASE_DEBUG_H
#include "base/status.h"
#include <stdint.h>

enum {
#define LF_DEBUG(id, word) LF_DEBUG_BIT_##id,
#include "base/debug.def"
#undef LF_DEBUG
    LF_DEBUG_COUNT
};
typedef enum lf_debug {
#define LF_DEBUG(id, word) LF_DEBUG_##id = 1 << LF_DEBUG_BIT_##id,
#include "base/debug.def"
#undef LF_DEBUG
    // What code generation of one kernel looks at; the rest acts through the loops and the classes.
    LF_DEBUG_OF_CODE = LF_DEBUG_NO_VECTORISER | LF_DEBUG_NO_PASSES
} lf_debug;

// Words, separated by commas; NULL and "" are none. LF_INVALID_ARGUMENT names an unknown word and lists the known ones.
lf_status lf_debug_parse(const lf_allocator *a, const char *text, uint32_t *out_switches) LF_MUST_USE;

// At most so many elements at once: 1, 2, 4, or UINT32_MAX.
static inline uint32_t lf_debug_lanes(uint32_t switches) {
    return switches & LF_DEBUG_VECTOR_1   ? 1
           : switches & LF_DEBUG_VECTOR_2 ? 2
           : switches & LF_DEBUG_VECTOR_4 ? 4
                                          : UINT32_MAX;
}
#endif
