// State that the parser's two files share. Private to lib/parse.
#ifndef LF_PARSE_PARSER_H
#define LF_PARSE_PARSER_H
#include "base/vec.h"
#include "ir/build.h"
#include "parse/lexer.h"

enum {
    MAX_OPEN = LF_MAX_RANK + 4, // brackets: one fusion body, its lists
    MAX_NAMES = 8,              // results of one statement that are looked at; no op has so many
    TOKEN_TEXT = 96             // bytes for lf_token_text
};

typedef struct lf_open_mark {
    char mark;
    lf_place place;
} lf_open_mark;

typedef struct lf_parser {
    lf_source source;
    lf_lexer lexer;
    lf_token token;     // the next one
    lf_place previous;  // of the token before
    lf_graph *graph;    // being built
    const char *file;   // of places in the graph: in the graph's arena
    const char *fusion; // its name, and where it begins
    lf_place fusion_place;
    lf_open_mark open[MAX_OPEN];
    unsigned n_open;
    // Scratch, kept from statement to statement.
    LF_VEC(lf_operand) operands; // of the lists being read, innermost last
    LF_VEC(lf_attr) attrs;
    LF_VEC(const char *) names;
    LF_VEC(lf_type_spec) types;
    LF_VEC(lf_param_spec) params;
    LF_VEC(lf_return_spec) outputs;
} lf_parser;

// parse.c
lf_place lf_parser_place(const lf_parser *p, const lf_token *t);
lf_status lf_parser_next(lf_parser *p) LF_MUST_USE;                            // drops the current token
lf_status lf_parser_peek(const lf_parser *p, lf_token *out_token) LF_MUST_USE; // the one behind it
lf_status lf_parser_error(const lf_parser *p, const lf_token *t, const char *format, ...) LF_MUST_USE
    __attribute__((format(printf, 3, 4)));
// "found …, expected <what>" at the current token; at the end of the text it also says what is open.
lf_status lf_parser_expected(const lf_parser *p, const char *what) LF_MUST_USE;
// Takes a token of that kind or fails; `what` as for lf_parser_expected.
lf_status lf_parser_take(lf_parser *p, lf_token_kind kind, const char *what, lf_token *out_token) LF_MUST_USE;
bool lf_parser_open(lf_parser *p, char mark); // notes the current token as opened; false: MAX_OPEN
void lf_parser_close(lf_parser *p);
lf_status lf_parser_name(lf_parser *p, const lf_token *t, const char **out_name) LF_MUST_USE; // NUL-terminated, in the arena
lf_status lf_parser_type(lf_parser *p, lf_type_spec *out_type) LF_MUST_USE;
// type {',' type} into p->types
lf_status lf_parser_types(lf_parser *p) LF_MUST_USE;
lf_status lf_parser_keep_types(lf_parser *p, lf_type_spec **out_types) LF_MUST_USE; // a copy of p->types in the arena

// statement.c
lf_status lf_parser_operand(lf_parser *p, lf_operand *out_operand) LF_MUST_USE;
lf_status lf_parser_statement(lf_parser *p) LF_MUST_USE;
// The name that is nearest among the values of the graph.
void lf_suggest_value(lf_suggestion *s, const lf_graph *g);
#endif
