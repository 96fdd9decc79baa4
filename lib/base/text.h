// Text that grows as it is written. A failure for want of memory is remembered, so that only the end has to be checked.
#ifndef LF_BASE_TEXT_H
#define LF_BASE_TEXT_H
#include "base/status.h"
#include <stdbool.h>

typedef struct lf_text {
    const lf_allocator *allocator;
    char *data; // owned, NUL-terminated when size > 0
    size_t size, capacity;
    bool failed;
} lf_text;

void lf_text_init(lf_text *t, const lf_allocator *a);
void lf_text_finish(lf_text *t);
void lf_text_put(lf_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lf_text_append(lf_text *t, const char *bytes, size_t n);
// Hands the string to the caller (lf_free) and leaves `t` finished.
lf_status lf_text_take(lf_text *t, char **out_text) LF_MUST_USE;
#endif
