// Fuzzing of the text form. What is parsed must print, and print the same after being parsed again; what is not parsed must have
// a message that begins with a place. Anything else is a crash.
#include "parse/parse.h"
#include "test/fuzz/fuzz.h"
#include <string.h>

static char *print(const lf_graph *g, lf_print_form form) {
    char *text;
    lf_status status = lf_graph_print(g, form, &text);
    CHECK(!status, "print: %s\n", lf_status_message(status));
    return text;
}

static void check_message(lf_status status) {
    const char *message = lf_status_message(status), *place = strstr(message, "in.lf:");
    CHECK(place == message && strstr(message, ": error: ") && strchr(message, '^'), "odd message: %s\n", message);
    CHECK(lf_status_code(status) != LF_INTERNAL, "internal error: %s\n", message);
    lf_status_destroy(status);
}

static void check_graph(const lf_graph *g) {
    const lf_allocator *a = &lf_system_allocator;
    lf_status status = lf_graph_verify(g);
    CHECK(!status, "verify: %s\n", lf_status_message(status));
    lf_free(a, print(g, LF_PRINT_FULL));
    char *first = print(g, LF_PRINT_SOURCE);
    lf_graph **again;
    size_t n;
    status = lf_parse(a, "again.lf", first, strlen(first), false, &again, &n);
    CHECK(!status && n == 1, "what was printed does not parse: %s\n%s\n", lf_status_message(status), first);
    char *second = print(again[0], LF_PRINT_SOURCE);
    CHECK(!strcmp(first, second), "printed differently:\n%s\n%s\n", first, second);
    lf_parse_release(a, again, n);
    lf_free(a, first);
    lf_free(a, second);
}

static bool one_input(const uint8_t *data, size_t size) {
    lf_graph **graphs;
    size_t n;
    lf_status status = lf_parse(&lf_system_allocator, "in.lf", (const char *)data, size, false, &graphs, &n);
    if (status) {
        CHECK(!graphs && !n, "graphs beside an error\n");
        check_message(status);
        return false;
    }
    CHECK(n > 0, "no graphs and no error\n");
    for (size_t i = 0; i < n; i++) check_graph(graphs[i]);
    lf_parse_release(&lf_system_allocator, graphs, n);
    return true;
}

static const char *const tokens[] = {"%",
                                     "@",
                                     "[",
                                     "]",
                                     "(",
                                     ")",
                                     "{",
                                     "}",
                                     ",",
                                     ":",
                                     "=",
                                     "?",
                                     "\"",
                                     "\\",
                                     "//",
                                     "\n",
                                     "\r\n",
                                     "-",
                                     "->",
                                     "0",
                                     "1",
                                     "-1",
                                     "2",
                                     "%0",
                                     "%1",
                                     "%x",
                                     "none",
                                     "true",
                                     "inf",
                                     "nan",
                                     "1e400",
                                     "0x1p-1074",
                                     "18446744073709551616",
                                     "fusion @f(",
                                     "return ",
                                     "into ",
                                     "assert ",
                                     "f32[?]",
                                     "i64",
                                     "bf16",
                                     "@host",
                                     "add ",
                                     "max ",
                                     "sum ",
                                     "reshape ",
                                     "axes=",
                                     "axis=",
                                     "dtype=",
                                     "keepdim=true",
                                     "\xef\xbb\xbf",
                                     "\xff",
                                     "\xc3\xa9",
                                     "\t",
                                     "sort ",
                                     "tensor ",
                                     "full ",
                                     NULL};

const lf_fuzz_description lf_fuzz_target = {
    .name = "fuzz_parse", .suffix = "lf", .corpus = "test/fuzz/corpus/parse", .one = one_input, .tokens = tokens};
