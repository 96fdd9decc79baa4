// See debug.h.
#include "base/debug.h"
#include <string.h>

static const char *const words[LF_DEBUG_COUNT] = {
#define LF_DEBUG(id, word) word,
#include "base/debug.def"
#undef LF_DEBUG
};
#define LF_DEBUG(id, word) " " word
static const char known[] =
#include "base/debug.def"
    ;

lf_status lf_debug_parse(const lf_allocator *a, const char *text, uint32_t *out_switches) {
    *out_switches = 0;
    for (const char *at = text; at && *at;) {
        size_t n = strcspn(at, ",");
        unsigned k = 0;
        while (k < LF_DEBUG_COUNT && (strlen(words[k]) != n || memcmp(words[k], at, n) != 0)) k++;
        if (k == LF_DEBUG_COUNT && n)
            return lf_error(a, LF_INVALID_ARGUMENT, "debug: there is no '%.*s'; known are%s", (int)n, at, known);
        if (n) *out_switches |= 1u << k;
        at += n + (at[n] == ',');
    }
    return NULL;
}
