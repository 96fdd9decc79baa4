// How an error looks. A message is always valid UTF-8 without control characters, whatever the text held, and of bounded
// length, whatever the length of names and lines.
#include "parse/diagnostic.h"
#include <stdio.h>
#include <string.h>

enum {
    WINDOW = 100, // characters of the source line that are shown
    BEFORE = 60,  // of them at most before the caret when the line is cut
    LINE_BYTES = WINDOW * 4 + 16,
    MESSAGE_BYTES = 2000
};

size_t lf_utf8_length(const char *p, const char *end) {
    const unsigned char *u = (const unsigned char *)p;
    size_t n = u[0] < 0x80                   ? 1
               : u[0] >= 0xc2 && u[0] < 0xe0 ? 2
               : (u[0] & 0xf0) == 0xe0       ? 3
               : u[0] >= 0xf0 && u[0] < 0xf5 ? 4
                                             : 0;
    if (!n || (size_t)(end - p) < n) return 0;
    for (size_t i = 1; i < n; i++)
        if ((u[i] & 0xc0) != 0x80) return 0;
    // Overlong forms, surrogates, and beyond U+10FFFF.
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) || (u[0] == 0xf0 && u[1] < 0x90) ||
        (u[0] == 0xf4 && u[1] > 0x8f))
        return 0;
    return n;
}

// Copies one character so that it can be shown on a terminal; returns its bytes in the source.
static size_t show_character(const char *p, const char *end, char **out) {
    size_t n = lf_utf8_length(p, end);
    unsigned char c = (unsigned char)*p;
    if (!n || c == 0x7f || (c < 0x20 && c != '\t') || (n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0)) {
        *(*out)++ = c == '\r' ? ' ' : '?';
        return n ? n : 1;
    }
    memcpy(*out, p, n);
    *out += n;
    return n;
}

static const char *find_line(const lf_source *s, uint32_t line) {
    const char *p = s->text, *end = s->text + s->length;
    for (uint32_t i = 1; i < line; i++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (!newline) return end;
        p = newline + 1;
    }
    if (p == s->text && s->length >= 3 && !memcmp(p, "\xef\xbb\xbf", 3)) p += 3;
    return p;
}

// The source line (cut around the column when long) and the line with the caret; each LINE_BYTES.
static void draw(const lf_source *s, lf_place place, char *line, char *caret) {
    const char *start = find_line(s, place.line), *text_end = s->text + s->length;
    const char *end = memchr(start, '\n', (size_t)(text_end - start));
    if (!end) end = text_end;
    while (end > start && end[-1] == '\r') end--;
    const char *at = start;
    for (uint32_t i = 1; i < place.column && at < end; i++) {
        size_t n = lf_utf8_length(at, end);
        at += n ? n : 1;
    }
    const char *from = at;
    for (int i = 0; i < BEFORE && from > start; i++) {
        from--;
        for (int k = 0; k < 3 && from > start && ((unsigned char)*from & 0xc0) == 0x80; k++) from--;
    }
    // A line that fits as a whole is not cut on its left.
    if ((size_t)(end - start) <= WINDOW) from = start;
    if (from > start) {
        memcpy(line, "...", 3), line += 3;
        memcpy(caret, "   ", 3), caret += 3;
    }
    int shown = 0;
    const char *p = from;
    while (p < end && shown < WINDOW) {
        if (p < at) *caret++ = *p == '\t' ? '\t' : ' ';
        p += show_character(p, end, &line);
        shown++;
    }
    if (p < end) memcpy(line, "...", 3), line += 3;
    *line = 0;
    memcpy(caret, "^", 2);
}

// `text` (n bytes) as one line of at most MESSAGE_BYTES.
static void clean(const char *text, size_t n, char *out) {
    const char *p = text, *end = text + n;
    char *limit = out + MESSAGE_BYTES - 8;
    while (p < end && out < limit) p += show_character(p, end, &out);
    if (p < end) memcpy(out, "...", 3), out += 3;
    *out = 0;
}

static lf_status located(const lf_source *s, lf_code code, lf_place place, const char *message, size_t n,
                         const char *notes) {
    char line[LINE_BYTES], caret[LINE_BYTES], cleaned[MESSAGE_BYTES];
    place.file = s->file;
    if (!place.line) place.line = 1;
    if (!place.column) place.column = 1;
    draw(s, place, line, caret);
    clean(message, n, cleaned);
    return lf_error_at(s->allocator, code, place, "%s:%u:%u: error: %s\n%s\n%s%s%s", s->file, place.line, place.column,
                       cleaned, line, caret, *notes ? "\n" : "", notes);
}

lf_status lf_source_error_v(const lf_source *s, lf_place place, const char *format, va_list args) {
    char message[MESSAGE_BYTES];
    int n = vsnprintf(message, sizeof message, format, args);
    if (n < 0) n = 0;
    if ((size_t)n >= sizeof message) n = sizeof message - 1;
    return located(s, LF_INVALID_PROGRAM, place, message, (size_t)n, "");
}

lf_status lf_source_error(const lf_source *s, lf_place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lf_status status = lf_source_error_v(s, place, format, args);
    va_end(args);
    return status;
}

lf_status lf_source_wrap(const lf_source *s, lf_place fallback, lf_status status) {
    if (!status || lf_status_code(status) == LF_OUT_OF_MEMORY) return status;
    lf_place place = lf_status_place(status);
    if (!place.line) place = fallback;
    // The first line is the message, the others are notes; they follow the drawing.
    const char *message = lf_status_message(status), *newline = strchr(message, '\n');
    size_t n = newline ? (size_t)(newline - message) : strlen(message);
    lf_status wrapped = located(s, lf_status_code(status), place, message, n, newline ? newline + 1 : "");
    lf_status_destroy(status);
    return wrapped;
}

// ---- did you mean ----------------------------------------------------------------------------------------------------

enum { LONGEST = 40 }; // names above are not compared

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c; }

// Insertions, deletions, replacements and exchanges of neighbours that make b of a; letters' case does not count.
static unsigned edit_distance(const char *a, size_t n, const char *b, size_t m) {
    unsigned rows[3][LONGEST + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++) above[j] = before[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            bool same = lower(a[i - 1]) == lower(b[j - 1]);
            unsigned best = above[j - 1] + !same;
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        unsigned *oldest = before;
        before = above, above = row, row = oldest;
    }
    return above[m];
}

void lf_suggest_start(lf_suggestion *s, const char *wanted, size_t length) {
    // A third of the letters may be wrong, at least one; of one letter none.
    unsigned limit = length < 2 ? 0 : length < 6 ? 1 : (unsigned)(length / 3);
    *s = (lf_suggestion){.wanted = wanted, .length = length, .distance = limit + 1};
}

void lf_suggest_offer(lf_suggestion *s, const char *name, size_t length) {
    size_t apart = length > s->length ? length - s->length : s->length - length;
    if (s->length > LONGEST || length > LONGEST || apart >= s->distance) return;
    unsigned distance = edit_distance(s->wanted, s->length, name, length);
    if (distance >= s->distance || distance >= length) return;
    s->best = name;
    s->best_length = length;
    s->distance = distance;
}

const char *lf_suggest_text(const lf_suggestion *s, const char *prefix, char *buffer, size_t size) {
    if (!s->best)
        buffer[0] = 0;
    else
        snprintf(buffer, size, "; did you mean '%s%.*s'?", prefix, (int)s->best_length, s->best);
    return buffer;
}
