// The words of a text. Does not belong here: grammar (parse.c, statement.c).
#ifndef LF_PARSE_LEXER_H
#define LF_PARSE_LEXER_H
#include "parse/diagnostic.h"

// LF_TOKEN(ID, what it is called in a diagnostic)
#define LF_TOKENS(LF_TOKEN)                                  \
    LF_TOKEN(END, "the end of the text")                     \
    LF_TOKEN(VALUE, "%name")        /* text without '%' */   \
    LF_TOKEN(SYMBOL, "@name")       /* text without '@' */   \
    LF_TOKEN(WORD, "a name")                                 \
    LF_TOKEN(NUMBER, "a number")                             \
    LF_TOKEN(STRING, "a string")    /* text with quotes */   \
    LF_TOKEN(ARROW, "'->'")                                  \
    LF_TOKEN(PAREN_OPEN, "'('")                              \
    LF_TOKEN(PAREN_CLOSE, "')'")                             \
    LF_TOKEN(LIST_OPEN, "'['")                               \
    LF_TOKEN(LIST_CLOSE, "']'")                              \
    LF_TOKEN(BRACE_OPEN, "'{'")                              \
    LF_TOKEN(BRACE_CLOSE, "'}'")                             \
    LF_TOKEN(COMMA, "','")                                   \
    LF_TOKEN(COLON, "':'")                                   \
    LF_TOKEN(EQUALS, "'='")                                  \
    LF_TOKEN(QUESTION, "'?'")                                \
    LF_TOKEN(BAD, "a character")    /* begins no token */

typedef enum lf_token_kind {
#define LF_TOKEN(ID, what) LF_TOKEN_##ID,
    LF_TOKENS(LF_TOKEN)
#undef LF_TOKEN
    LF_TOKEN_COUNT
} lf_token_kind;

typedef struct lf_token {
    lf_token_kind kind;
    const char *text;      // in the source
    size_t length;
    uint32_t line, column;
} lf_token;

typedef struct lf_lexer {
    const lf_source *source;   // borrowed
    const char *p, *end;
    const char *line_start;
    size_t extra;              // bytes of this line so far that begin no character (UTF-8 in strings)
    uint32_t line;
    uint32_t end_line, end_column;  // just behind the last token: where a text that stops too early stops
} lf_lexer;

lf_status lf_lexer_init(lf_lexer *lexer, const lf_source *source) LF_MUST_USE;
// At the end it gives LF_TOKEN_END again and again.
lf_status lf_lexer_next(lf_lexer *lexer, lf_token *out_token) LF_MUST_USE;
// "'add'", "'%x'", "the end of the text", "the string \"…\"", cut when long, for "found …". Returns `buffer`.
const char *lf_token_text(const lf_token *t, char *buffer, size_t size);
bool lf_token_is(const lf_token *t, const char *word);   // a WORD with this text
// The contents of a STRING with its escapes replaced: at most t->length bytes are written, no NUL among them; returns how many.
size_t lf_token_unescape(const lf_token *t, char *out);
#endif
