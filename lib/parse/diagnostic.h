// Located errors of a text: place, message, the source line and a caret; and the words for "did you mean".
// Does not belong here: what is an error (lexer.c, parse.c, statement.c).
#ifndef LF_PARSE_DIAGNOSTIC_H
#define LF_PARSE_DIAGNOSTIC_H
#include "base/status.h"
#include <stdbool.h>

// A text being read. Everything is borrowed.
typedef struct lf_source {
    const lf_allocator *allocator;
    const char *file;
    const char *text;
    size_t length;
} lf_source;

// LF_INVALID_PROGRAM at `place` (whose file is not looked at).
lf_status lf_source_error(const lf_source *s, lf_place place, const char *format, ...) LF_MUST_USE
    __attribute__((format(printf, 3, 4)));
lf_status lf_source_error_v(const lf_source *s, lf_place place, const char *format, va_list args) LF_MUST_USE
    __attribute__((format(printf, 3, 0)));
// A status of the builder in the same form; one without a place gets `fallback`. Takes over `status`; NULL stays NULL.
lf_status lf_source_wrap(const lf_source *s, lf_place fallback, lf_status status) LF_MUST_USE;

// Bytes of the UTF-8 character that begins at p, 1 to 4; 0 when there is no valid one.
size_t lf_utf8_length(const char *p, const char *end);

// Finds the nearest of a number of names.
typedef struct lf_suggestion {
    const char *wanted;
    size_t length;
    const char *best; // borrowed; NULL: none is near enough
    size_t best_length;
    unsigned distance;
} lf_suggestion;
void lf_suggest_start(lf_suggestion *s, const char *wanted, size_t length);
void lf_suggest_offer(lf_suggestion *s, const char *name, size_t length);
// Writes "; did you mean '<prefix><name>'?" or "" and returns `buffer`.
const char *lf_suggest_text(const lf_suggestion *s, const char *prefix, char *buffer, size_t size);
#endif
