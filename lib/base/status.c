// Construction and reading of statuses.
#include "base/status.h"
#include <stdio.h>
#include <string.h>

struct lf_status_object {
    lf_allocator allocator; // a copy, as a status may outlive its context; all NULL: static, never freed
    lf_code code;
    char *message; // owned
    char *file;    // owned, may be NULL
    uint32_t line, column;
};

// Read-only: nobody writes a status that has no allocator.
static const lf_status_object out_of_memory = {.code = LF_OUT_OF_MEMORY, .message = (char *)"out of memory"};

lf_status lf_out_of_memory(void) { return (lf_status)&out_of_memory; }

static const lf_status_object not_ready = {.code = LF_NOT_READY, .message = (char *)"not ready yet"};

lf_status lf_not_ready(void) { return (lf_status)&not_ready; }

static char *format_text(const lf_allocator *a, const char *before, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t head = strlen(before);
    char *text = n < 0 ? NULL : lf_alloc(a, head + (size_t)n + 1);
    if (!text) return NULL;
    memcpy(text, before, head);
    vsnprintf(text + head, (size_t)n + 1, format, args);
    return text;
}

lf_status lf_error_v(const lf_allocator *a, lf_code code, lf_place place, const char *format, va_list args) {
    lf_status s = lf_alloc_zero(a, sizeof *s);
    if (!s) return lf_out_of_memory();
    *s = (lf_status_object){.allocator = *a, .code = code, .line = place.line, .column = place.column};
    s->message = format_text(a, "", format, args);
    if (place.file) s->file = lf_strndup(a, place.file, strlen(place.file));
    if (!s->message || (place.file && !s->file)) {
        lf_status_destroy(s);
        return lf_out_of_memory();
    }
    return s;
}

lf_status lf_error(const lf_allocator *a, lf_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lf_status s = lf_error_v(a, code, (lf_place){0}, format, args);
    va_end(args);
    return s;
}

lf_status lf_error_at(const lf_allocator *a, lf_code code, lf_place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lf_status s = lf_error_v(a, code, place, format, args);
    va_end(args);
    return s;
}

lf_status lf_status_note(lf_status s, const char *format, ...) {
    if (!s || !s->allocator.alloc) return s;
    char *before = lf_alloc(&s->allocator, strlen(s->message) + 2);
    if (!before) return s;
    sprintf(before, "%s\n", s->message);
    va_list args;
    va_start(args, format);
    char *longer = format_text(&s->allocator, before, format, args);
    va_end(args);
    lf_free(&s->allocator, before);
    if (!longer) return s;
    lf_free(&s->allocator, s->message);
    s->message = longer;
    return s;
}

lf_code lf_status_code(const lf_status_object *s) { return s ? s->code : LF_OK; }
const char *lf_status_message(const lf_status_object *s) { return s ? s->message : ""; }
lf_place lf_status_place(const lf_status_object *s) { return s ? (lf_place){s->file, s->line, s->column} : (lf_place){0}; }

const char *lf_code_name(lf_code code) {
    static const char *const names[] = {
        "ok",          "invalid-argument", "invalid-program", "unsupported",  "out-of-memory",
        "unavailable", "failed-check",     "index-error",     "device-error", "not-ready",
        "io-error",    "internal-error",   "capture-error",   "timeout"};
    return (unsigned)code < sizeof names / sizeof *names ? names[code] : "unknown";
}

void lf_status_destroy(lf_status s) {
    if (!s || !s->allocator.alloc) return;
    lf_allocator a = s->allocator;
    lf_free(&a, s->message);
    lf_free(&a, s->file);
    lf_free(&a, s);
}
