// The words of a text. Does not belong here: grammar (parse.c, statement.c).
#ifndef LF_PARSE_LEXER_H
#define LF_PARSE_LEXER_H
#include "parse/diagnostic.h"

typedef enum lf_token_kind {
    LF_TOKEN_END,
    LF_TOKEN_VALUE,  // %name; text without '%'
    LF_TOKEN_SYMBOL, // @name; text without '@'
    LF_TOKEN_WORD,   // name characters that begin no number
    LF_TOKEN_NUMBER, // looks like one; lf_literal_parse says whether it is
    LF_TOKEN_STRING, // text with its quotes
    LF_TOKEN_ARROW,
    LF_TOKEN_PAREN_OPEN,
    LF_TOKEN_PAREN_CLOSE,
    LF_TOKEN_LIST_OPEN,
    LF_TOKEN_LIST_CLOSE,
    LF_TOKEN_BRACE_OPEN,
    LF_TOKEN_BRACE_CLOSE,
    LF_TOKEN_COMMA,
    LF_TOKEN_COLON,
    LF_TOKEN_EQUALS,
    LF_TOKEN_QUESTION,
    LF_TOKEN_BAD, // one character that begins no token
} lf_token_kind;

typedef struct lf_token {
    lf_token_kind kind;
    const char *text; // in the source
    size_t length;
    uint32_t line, column;
} lf_token;

typedef struct lf_lexer {
    const lf_source *source; // borrowed
    const char *p, *end;
    const char *line_start;
    size_t extra; // bytes of this line so far that begin no character (UTF-8 in strings)
    uint32_t line;
    uint32_t end_line, end_column; // just behind the last token: where a text that stops too early stops
} lf_lexer;

lf_status lf_lexer_init(lf_lexer *lexer, const lf_source *source) LF_MUST_USE;
// At the end it gives LF_TOKEN_END again and again.
lf_status lf_lexer_next(lf_lexer *lexer, lf_token *out_token) LF_MUST_USE;
// "'add'", "'%x'", "the end of the text", "the string \"…\"", cut when long, for "found …". Returns `buffer`.
const char *lf_token_text(const lf_token *t, char *buffer, size_t size);
bool lf_token_is(const lf_token *t, const char *word); // a WORD with this text
// The contents of a STRING with its escapes replaced: at most t->length bytes are written, no NUL among them; returns how many.
size_t lf_token_unescape(const lf_token *t, char *out);
#endif
