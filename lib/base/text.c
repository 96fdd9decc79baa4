// Growable text.
#include "base/text.h"
#include "base/vec.h"
#include <stdio.h>
#include <string.h>

void lf_text_init(lf_text *t, const lf_allocator *a) { *t = (lf_text){.allocator = a}; }

void lf_text_finish(lf_text *t) {
    lf_free(t->allocator, t->data);
    *t = (lf_text){.allocator = t->allocator};
}

static bool reserve(lf_text *t, size_t more) {
    if (t->failed) return false;
    if (t->capacity - t->size > more) return true;
    t->failed = !lf_vec_grow(t->allocator, (void **)(void *)&t->data, &t->capacity, t->size, more + 1, 1);
    return !t->failed;
}

void lf_text_append(lf_text *t, const char *bytes, size_t n) {
    if (!reserve(t, n)) return;
    memcpy(t->data + t->size, bytes, n);
    t->size += n;
    t->data[t->size] = 0;
}

void lf_text_put(lf_text *t, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && reserve(t, (size_t)n)) {
        vsnprintf(t->data + t->size, (size_t)n + 1, format, again);
        t->size += (size_t)n;
    }
    va_end(again);
}

lf_status lf_text_take(lf_text *t, char **out_text) {
    *out_text = NULL;
    lf_text_append(t, "", 0); // an empty text is a string too
    if (t->failed) {
        lf_text_finish(t);
        return lf_out_of_memory();
    }
    *out_text = t->data;
    *t = (lf_text){.allocator = t->allocator};
    return NULL;
}
