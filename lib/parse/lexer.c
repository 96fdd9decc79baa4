// Text to tokens: one pass, no copies, columns kept as it goes (a line may be millions of characters long).
#include "parse/lexer.h"
#include <stdio.h>
#include <string.h>

enum { C_NAME = 1, C_DIGIT = 2, C_BLANK = 4 };

static unsigned class_of(char ch) {
    unsigned char c = (unsigned char)ch;
    if (c >= '0' && c <= '9') return C_NAME | C_DIGIT;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.') return C_NAME;
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' ? C_BLANK : 0;
}

static bool is_name(char c) { return class_of(c) & C_NAME; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

lf_status lf_lexer_init(lf_lexer *lexer, const lf_source *source) {
    *lexer = (lf_lexer){.source = source, .p = source->text, .end = source->text + source->length, .line = 1};
    lexer->end_line = lexer->end_column = 1;
    if (source->length >= 3 && !memcmp(lexer->p, "\xef\xbb\xbf", 3)) lexer->p += 3; // a byte order mark
    lexer->line_start = lexer->p;
    if (source->length >= UINT32_MAX)
        return lf_source_error(source, (lf_place){.line = 1, .column = 1},
                               "the text has %zu bytes, expected less than 4 GiB", source->length);
    return NULL;
}

static uint32_t column_of(const lf_lexer *x, const char *p) {
    return (uint32_t)((size_t)(p - x->line_start) - x->extra + 1);
}
static lf_place place_of(const lf_lexer *x, const char *p) { return (lf_place){.line = x->line, .column = column_of(x, p)}; }

// A byte that no text may hold, within a comment or a string.
static lf_status bad_byte(const lf_lexer *x, const char *p, const char *where) {
    unsigned char c = (unsigned char)*p;
    return lf_source_error(x->source, place_of(x, p), "found byte 0x%02x in a %s, expected %s", c, where,
                           c < 0x80 ? "printable text" : "valid UTF-8");
}

static lf_status skip_comment(lf_lexer *x) {
    size_t extra = 0;
    while (x->p < x->end && *x->p != '\n') {
        size_t n = (unsigned char)*x->p < 0x80 ? *x->p != 0 : lf_utf8_length(x->p, x->end);
        if (!n) {
            x->extra += extra;
            return bad_byte(x, x->p, "comment");
        }
        extra += n - 1;
        x->p += n;
    }
    x->extra += extra;
    return NULL;
}

static lf_status skip_blanks(lf_lexer *x) {
    while (x->p < x->end) {
        char c = *x->p;
        if (c == '\n') {
            x->line++;
            x->line_start = ++x->p;
            x->extra = 0;
        } else if (class_of(c) & C_BLANK) {
            x->p++;
        } else if (c == '/' && x->p + 1 < x->end && x->p[1] == '/') {
            LF_TRY(skip_comment(x));
        } else {
            break;
        }
    }
    return NULL;
}

// "1", "-.5", "0x1.8p-3", "1e+5": the run of name characters, and over the sign of an exponent. What is a number in it is
// for lf_literal_parse to say.
static const char *end_of_number(const char *p, const char *end) {
    if (*p == '-') p++;
    bool hex = end - p > 1 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
    char mark = hex ? 'p' : 'e';
    while (p < end && is_name(*p)) {
        bool exponent = (*p | 0x20) == mark && end - p > 2 && (p[1] == '+' || p[1] == '-') && is_digit(p[2]);
        p += exponent ? 2 : 1;
    }
    return p;
}

// x->p is behind the opening quote.
static lf_status string(lf_lexer *x, lf_token *t) {
    size_t extra = 0;
    for (;;) {
        const char *p = x->p;
        if (p == x->end || *p == '\n' || (*p == '\r' && (p + 1 == x->end || p[1] == '\n')))
            return lf_source_error(x->source, (lf_place){.line = t->line, .column = t->column},
                                   "found a string without an end, expected a closing '\"' on the same line");
        if (*p == '"') break;
        if (*p == '\\' && p + 1 < x->end && p[1] != '\n' && p[1] != '\r') {
            if (memchr("\"\\nt", p[1], 4)) {
                x->p += 2;
                continue;
            }
            size_t n = lf_utf8_length(p + 1, x->end);
            x->extra += extra;
            if (!n || (unsigned char)p[1] < 0x20) return bad_byte(x, p + 1, "string");
            return lf_source_error(x->source, place_of(x, p),
                                   "found the escape '%.*s' in a string, expected \\\", \\\\, \\n or \\t", (int)(n + 1), p);
        }
        size_t n = (unsigned char)*p >= 0x20 || *p == '\t' ? lf_utf8_length(p, x->end) : 0;
        if (!n) {
            x->extra += extra;
            return bad_byte(x, p, "string");
        }
        extra += n - 1;
        x->p += n;
    }
    x->p++;
    t->length = (size_t)(x->p - t->text);
    x->extra += extra;
    return NULL;
}

static lf_token_kind mark_kind(char c) {
    switch (c) {
    case '(': return LF_TOKEN_PAREN_OPEN;
    case ')': return LF_TOKEN_PAREN_CLOSE;
    case '[': return LF_TOKEN_LIST_OPEN;
    case ']': return LF_TOKEN_LIST_CLOSE;
    case '{': return LF_TOKEN_BRACE_OPEN;
    case '}': return LF_TOKEN_BRACE_CLOSE;
    case ',': return LF_TOKEN_COMMA;
    case ':': return LF_TOKEN_COLON;
    case '=': return LF_TOKEN_EQUALS;
    case '?': return LF_TOKEN_QUESTION;
    default: return LF_TOKEN_BAD;
    }
}

// Kind and end of the token at x->p, all but strings.
static void word(lf_lexer *x, lf_token *t) {
    const char *p = x->p, *end = x->end;
    char c = *p, second = p + 1 < end ? p[1] : 0;
    if ((c == '%' || c == '@') && is_name(second)) {
        t->kind = c == '%' ? LF_TOKEN_VALUE : LF_TOKEN_SYMBOL;
        t->text = ++p;
        while (p < end && is_name(*p)) p++;
    } else if (is_digit(c) || ((c == '.' || c == '-') && (is_digit(second) || (c == '-' && is_name(second))))) {
        t->kind = LF_TOKEN_NUMBER;
        p = end_of_number(p, end);
    } else if (is_name(c)) {
        t->kind = LF_TOKEN_WORD;
        while (p < end && is_name(*p)) p++;
    } else if (c == '-' && second == '>') {
        t->kind = LF_TOKEN_ARROW;
        p += 2;
    } else {
        t->kind = mark_kind(c);
        size_t n = lf_utf8_length(p, end);
        p += n ? n : 1;
    }
    t->length = (size_t)(p - t->text);
    x->p = p;
}

lf_status lf_lexer_next(lf_lexer *x, lf_token *t) {
    LF_TRY(skip_blanks(x));
    *t = (lf_token){.kind = LF_TOKEN_END, .text = x->p, .line = x->line, .column = column_of(x, x->p)};
    if (x->p == x->end) {
        t->line = x->end_line;
        t->column = x->end_column;
        return NULL;
    }
    if (*x->p == '"') {
        t->kind = LF_TOKEN_STRING;
        x->p++;
        LF_TRY(string(x, t));
    } else {
        word(x, t);
    }
    x->end_line = x->line;
    x->end_column = column_of(x, x->p);
    return NULL;
}

bool lf_token_is(const lf_token *t, const char *word_text) {
    return t->kind == LF_TOKEN_WORD && t->length == strlen(word_text) && !memcmp(t->text, word_text, t->length);
}

enum { SHOWN = 48 }; // longest token that is quoted in full

const char *lf_token_text(const lf_token *t, char *buffer, size_t size) {
    size_t n = t->length;
    const char *dots = "";
    if (n > SHOWN) {
        dots = "...";
        for (n = SHOWN; n > SHOWN - 4 && ((unsigned char)t->text[n] & 0xc0) == 0x80;) n--;
    }
    unsigned char c = n ? (unsigned char)*t->text : 0;
    if (t->kind == LF_TOKEN_END) {
        snprintf(buffer, size, "the end of the text");
    } else if (t->kind == LF_TOKEN_STRING) {
        snprintf(buffer, size, "the string %.*s%s", (int)n, t->text, dots);
    } else if (t->kind == LF_TOKEN_BAD && !c) {
        snprintf(buffer, size, "a NUL byte");
    } else if (t->kind == LF_TOKEN_BAD && (c < 0x20 || c == 0x7f || (c >= 0x80 && n == 1))) {
        snprintf(buffer, size, "byte 0x%02x", c);
    } else {
        const char *sigil = t->kind == LF_TOKEN_VALUE ? "%" : t->kind == LF_TOKEN_SYMBOL ? "@" : "";
        snprintf(buffer, size, "'%s%.*s%s'", sigil, (int)n, t->text, dots);
    }
    return buffer;
}

size_t lf_token_unescape(const lf_token *t, char *out) {
    size_t n = 0;
    for (size_t i = 1; i + 1 < t->length; i++) {
        char c = t->text[i];
        if (c == '\\') {
            c = t->text[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        out[n++] = c;
    }
    return n;
}
