// The text form: round trips, diagnostics, hostile texts, want of memory.
#include "parse/parse.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- an allocator that counts, and fails when told -----------------------------------------------------------------------

typedef struct counting {
    size_t live, calls, fail_at; // fail_at: number of the call from which all fail, 0: none
} counting;

static void *count_alloc(void *self, size_t size) {
    counting *c = self;
    if (++c->calls >= c->fail_at && c->fail_at) return NULL;
    void *block = malloc(size);
    c->live += block != NULL;
    return block;
}

static void *count_resize(void *self, void *block, size_t size) {
    counting *c = self;
    if (++c->calls >= c->fail_at && c->fail_at) return NULL;
    void *grown = realloc(block, size);
    c->live += grown && !block;
    return grown;
}

static void count_release(void *self, void *block) {
    counting *c = self;
    c->live -= block != NULL;
    free(block);
}

static lf_allocator counting_allocator(counting *c) {
    return (lf_allocator){c, count_alloc, count_resize, count_release, false};
}

// ---- helpers --------------------------------------------------------------------------------------------------------------

static const lf_allocator *const heap = &lf_system_allocator;

static char *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "cannot open %s", path);
    char *text = NULL;
    size_t n = 0, capacity = 0;
    do {
        text = realloc(text, (capacity += 1 << 16) + 1);
        n += fread(text + n, 1, capacity - n, f);
    } while (n == capacity);
    fclose(f);
    text[n] = 0;
    return text;
}

// Drops the lines that begin with "//".
static char *without_comments(char *text) {
    char *to = text;
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n');
        size_t n = end ? (size_t)(end - line) + 1 : strlen(line);
        if (strncmp(line, "//", 2)) memmove(to, line, n), to += n;
        line += n;
    }
    *to = 0;
    return text;
}

static char *print_all(const lf_allocator *a, const char *text, size_t n, lf_print_form form) {
    lf_graph **graphs;
    size_t count;
    lf_status status = lf_parse(a, "in.lf", text, n, false, &graphs, &count);
    ck_assert_msg(status == NULL, "%s", lf_status_message(status));
    char *all = calloc(1, 1);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        char *one;
        status = lf_graph_print(graphs[i], form, &one);
        ck_assert_msg(status == NULL, "%s", lf_status_message(status));
        all = realloc(all, used + strlen(one) + 1);
        strcpy(all + used, one);
        used += strlen(one);
        lf_free(a, one);
    }
    lf_parse_release(a, graphs, count);
    return all;
}

// The message that a text is refused with.
static lf_status refuse(const char *text, size_t n) {
    lf_graph **graphs = (lf_graph **)(void *)&n;
    size_t count = 7;
    lf_status status = lf_parse(heap, "t.lf", text, n, false, &graphs, &count);
    ck_assert_msg(status != NULL, "accepted: %.200s", text);
    ck_assert(graphs == NULL && count == 0);
    ck_assert_int_eq(lf_status_code(status), LF_INVALID_PROGRAM);
    return status;
}

static void check_message(const char *text, size_t n, const char *want) {
    lf_status status = refuse(text, n);
    ck_assert_str_eq(lf_status_message(status), want);
    lf_status_destroy(status);
}

// ---- round trips ----------------------------------------------------------------------------------------------------------

static void round_trip(const char *path) {
    char *want = without_comments(read_file(path));
    char *got = print_all(heap, want, strlen(want), LF_PRINT_SOURCE);
    ck_assert_str_eq(got, want);
    free(want);
    free(got);
}

START_TEST(ops_round_trip) { round_trip("test/text/parse_ops.lf"); }
END_TEST

START_TEST(conformance_programs_round_trip) { round_trip("test/text/parse_conformance.lf"); }
END_TEST

START_TEST(every_op_has_a_program) {
    char *text = read_file("test/text/parse_ops.lf");
    for (int code = 1; code < LF_OP_COUNT; code++) {
        const lf_op_info *info = lf_op_info_of((lf_opcode)code);
        char use[64];
        snprintf(use, sizeof use, " = %s ", info->name);
        if (info->kind != LF_KIND_INTERNAL) ck_assert_msg(strstr(text, use) != NULL, "no program with %s", info->name);
    }
    free(text);
}
END_TEST

START_TEST(layout_does_not_matter) {
    static const char text[] =
        "\xef\xbb\xbf// seed\r\nfusion\t@f (%a:f32[ ?,%h ],%s :i64)\r\n->(f32[?,%h],i64){%b=add\r\n\t%a , %a// \xc3\xa9\r\n"
        "%n=add %s,1:i64 return\r\n%b,%n}fusion@g(){return}";
    static const char want[] =
        "fusion @f(%a: f32[?, %h], %s: i64) -> (f32[?, %h], i64) {\n  %b = add %a, %a\n  %n = add %s, 1 : i64\n"
        "  return %b, %n\n}\nfusion @g() {\n  return\n}\n";
    char *got = print_all(heap, text, sizeof text - 1, LF_PRINT_SOURCE);
    ck_assert_str_eq(got, want);
    free(got);
}
END_TEST

START_TEST(literals_keep_their_text) {
    static const char text[] =
        "fusion @f(%x: f64) {\n"
        "  %a = add %x, 0.10\n  %b = add %x, .5\n  %c = add %x, 5.\n  %d = add %x, 1E+3\n  %e = add %x, 0x.8p+1\n"
        "  %g = add %x, -0\n  %h = add %x, 0x10\n  %i = add %x, -inf\n  %j = eq %x, 18446744073709551615\n"
        "  %k = add %x, 1e-400\n  %l = add %x, 007\n"
        "  return %a, %b, %c, %d, %e, %g, %h, %i, %j, %k, %l\n}\n";
    char *got = print_all(heap, text, sizeof text - 1, LF_PRINT_SOURCE);
    ck_assert_str_eq(got, text);
    free(got);
}
END_TEST

START_TEST(strings) {
    static const char text[] = "fusion @f(%c: bool) {\n  assert %c, \"tab\there \\\" \\\\ \\n \xe4\xb8\x96\"\n  return\n}\n";
    static const char want[] =
        "fusion @f(%c: bool) {\n  assert %c, \"tab\\there \\\" \\\\ \\n \xe4\xb8\x96\"\n  return\n}\n";
    char *got = print_all(heap, text, sizeof text - 1, LF_PRINT_SOURCE);
    ck_assert_str_eq(got, want);
    free(got);
}
END_TEST

// Each "%name" that stands before " = " or within "%a, %b = ".
static size_t defined_names(char *text, char **names, size_t most) {
    size_t n = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *equals = strstr(line, " = ");
        if (!equals || line[2] != '%') continue;
        *equals = 0;
        for (char *name = line + 2; name && *name; name = strstr(name, ", ") ? strstr(name, ", ") + 2 : NULL) {
            ck_assert(n < most);
            names[n] = strdup(name);
            char *comma = strchr(names[n++], ',');
            if (comma) *comma = 0;
        }
    }
    return n;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

START_TEST(numbers_of_unnamed_values_are_no_user_names) {
    // The user takes all small numbers, and some with a dot.
    char text[8192];
    int n = sprintf(text, "fusion @f(%%x: f32[?, ?], %%k: i64) {\n");
    for (int i = 0; i < 60; i++) n += sprintf(text + n, "  %%%d%s = add %%k, %d\n", i, i % 3 ? "" : ".", i + 100);
    for (int i = 30; i < 60; i++) n += sprintf(text + n, "  %%%d%s = mean %%x, axes=[0]\n", i, i % 3 ? ".." : "");
    sprintf(text + n, "  return %%1\n}\n");
    char *full = print_all(heap, text, strlen(text), LF_PRINT_FULL);
    char *names[1024];
    size_t count = defined_names(full, names, 1024);
    ck_assert(count > 100);
    qsort(names, count, sizeof *names, by_text);
    for (size_t i = 1; i < count; i++) ck_assert_str_ne(names[i - 1], names[i]);
    for (size_t i = 0; i < count; i++) free(names[i]);
    free(full);
}
END_TEST

START_TEST(full_form) {
    static const char text[] =
        "fusion @f(%a: f32[?, %h], %s: i32) {\n  %n = add %s, 1\n  %b = add %a, 1\n  return %b into %a, %n\n}\n";
    char *got = print_all(heap, text, sizeof text - 1, LF_PRINT_FULL);
    ck_assert_msg(strstr(got, "fusion @f(%a: f32[") == got, "%s", got);
    ck_assert_msg(strstr(got, "  %n = add %s, %") != NULL && strstr(got, " : i32  // host\n") != NULL, "%s", got);
    ck_assert_msg(strstr(got, "  %b = add %a, %") != NULL && strstr(got, ", %h]  // device\n") != NULL, "%s", got);
    ck_assert_msg(strstr(got, "  return %b into %a, %n\n}\n") != NULL, "%s", got);
    free(got);
}
END_TEST

// ---- diagnostics ----------------------------------------------------------------------------------------------------------

#define HEAD "fusion @f(%x: f32[?], %s: i64) {\n"
static const struct {
    const char *text, *want;
} refused[] = {
    {HEAD "  %a = ad %x, %x\n  return %a\n}\n", "t.lf:2:8: error: unknown op 'ad'; did you mean 'add'?\n"
                                                "  %a = ad %x, %x\n"
                                                "       ^"},
    {HEAD "  %a = Reshpae %x, [1]\n", "t.lf:2:8: error: unknown op 'Reshpae'; did you mean 'reshape'?\n"
                                      "  %a = Reshpae %x, [1]\n"
                                      "       ^"},
    {HEAD "  %a = frobnicate %x\n", "t.lf:2:8: error: unknown op 'frobnicate'\n"
                                    "  %a = frobnicate %x\n"
                                    "       ^"},
    {HEAD "  %a = param %x\n", "t.lf:2:8: error: unknown op 'param'\n"
                               "  %a = param %x\n"
                               "       ^"},
    {HEAD "  %a = max %x, %x, %x\n  return %a\n}\n",
     "t.lf:2:8: error: found 3 operands for 'max', expected 1 or 2 operands\n"
     "  %a = max %x, %x, %x\n"
     "       ^"},
    {HEAD "  %a = cat\n  return %a\n}", "t.lf:2:8: error: found 0 operands for 'cat', expected 1 or more operands\n"
                                        "  %a = cat\n"
                                        "       ^"},
    {HEAD "  %a = eye\n  %b = neg %x\n", "t.lf:2:8: error: found 0 operands for 'eye', expected 2 operands\n"
                                         "  %a = eye\n"
                                         "       ^"},
    {HEAD "  %a = sum axes=[0], %x\n", "t.lf:2:8: error: found 0 operands for 'sum', expected 1 operand\n"
                                       "  %a = sum axes=[0], %x\n"
                                       "       ^"},
    {HEAD "  %a = sum axes=[0]\n", "t.lf:2:8: error: found 0 operands for 'sum', expected 1 operand\n"
                                   "  %a = sum axes=[0]\n"
                                   "       ^"},
    {HEAD "  %a = add %x, %x, %x, axis=0\n", "t.lf:2:8: error: found 3 operands for 'add', expected 2 operands\n"
                                             "  %a = add %x, %x, %x, axis=0\n"
                                             "       ^"},
    {HEAD "  %a = add %x, %z1\n  return %a\n}", "t.lf:2:16: error: undefined name '%z1'\n"
                                                "  %a = add %x, %z1\n"
                                                "               ^"},
    {HEAD "  %abc = neg %x\n  %a = add %x, %abd\n", "t.lf:3:16: error: undefined name '%abd'; did you mean '%abc'?\n"
                                                    "  %a = add %x, %abd\n"
                                                    "               ^"},
    {HEAD "\t%a = add %x, %b\n\t%b = neg %x\n\treturn %a\n",
     "t.lf:2:15: error: found '%b' before its definition on line 3, expected it after that line\n"
     "\t%a = add %x, %b\n"
     "\t             ^"},
    {HEAD "  %a = add %a, 1\n",
     "t.lf:2:12: error: found '%a' in its own definition, expected a value that is defined before\n"
     "  %a = add %a, 1\n"
     "           ^"},
    {HEAD "  %x = neg %x\n return %x }", "t.lf:2:3: error: '%x' is defined twice, first on line 1; expected a new name\n"
                                         "  %x = neg %x\n"
                                         "  ^"},
    {HEAD "  %a = neg %x\n  %a = neg %x\n", "t.lf:3:3: error: '%a' is defined twice, first on line 2; expected a new name\n"
                                            "  %a = neg %x\n"
                                            "  ^"},
    {HEAD "  %a, %a = sort %x\n", "t.lf:2:7: error: '%a' is defined twice; expected a new name\n"
                                  "  %a, %a = sort %x\n"
                                  "      ^"},
    {"fusion @f(%x: f32[%h]) {\n  %h = neg %x\n",
     "t.lf:2:3: error: '%h' is defined twice, first on line 1; expected a new name\n"
     "  %h = neg %x\n"
     "  ^"},
    {HEAD "  %a = sum %x, axs=[0]\n",
     "t.lf:2:16: error: found the attribute 'axs', expected one of 'sum': axes=, keepdim=, dtype=; did you mean 'axes'?\n"
     "  %a = sum %x, axs=[0]\n"
     "               ^"},
    {HEAD "  %a = neg %x, axis=0\n", "t.lf:2:16: error: found the attribute 'axis', but 'neg' takes none\n"
                                     "  %a = neg %x, axis=0\n"
                                     "               ^"},
    {HEAD "  %a = sum %x, axes=[0], axes=1\n",
     "t.lf:2:26: error: found the attribute axes= twice, expected it once (first in column 16 of line 2)\n"
     "  %a = sum %x, axes=[0], axes=1\n"
     "                         ^"},
    {HEAD "  %a = sum %x, axes=[%s]\n", "t.lf:2:22: error: found '%s', expected an integer or a list of integers for axes=\n"
                                        "  %a = sum %x, axes=[%s]\n"
                                        "                     ^"},
    {HEAD "  %a = sum %x, axes=[0], %x\n",
     "t.lf:2:26: error: found '%x', expected key=value: operands come before attributes\n"
     "  %a = sum %x, axes=[0], %x\n"
     "                         ^"},
    {HEAD "  %a = cast %x, dtype=f23\n", "t.lf:2:23: error: found 'f23', expected a dtype (bool i8 i16 i32 i64 u8 u16 u32 "
                                         "u64 f16 bf16 f32 f64 c64 c128); did you mean 'f32'?\n"
                                         "  %a = cast %x, dtype=f23\n"
                                         "                      ^"},
    {HEAD "  %a = cast %x, dtype=[1]\n", "t.lf:2:23: error: found '[', expected a dtype for dtype=\n"
                                         "  %a = cast %x, dtype=[1]\n"
                                         "                      ^"},
    {HEAD "  %a = sum %x, keepdim=1\n", "t.lf:2:24: error: found '1', expected true or false for keepdim=\n"
                                        "  %a = sum %x, keepdim=1\n"
                                        "                       ^"},
    {HEAD "  %a = sort %x, axis=1.5\n", "t.lf:2:22: error: found '1.5', expected an integer for axis=\n"
                                        "  %a = sort %x, axis=1.5\n"
                                        "                     ^"},
    {HEAD "  %a = norm %x, ord=true\n", "t.lf:2:21: error: found 'true', expected a number for ord=\n"
                                        "  %a = norm %x, ord=true\n"
                                        "                    ^"},
    {HEAD "  %a = triu %x, diagonal=none\n", "t.lf:2:26: error: found 'none', expected a value or a number for diagonal=\n"
                                             "  %a = triu %x, diagonal=none\n"
                                             "                         ^"},
    {HEAD "  %a = gelu %x, approximate=[3]\n", "t.lf:2:29: error: found '[', expected a name for approximate=\n"
                                               "  %a = gelu %x, approximate=[3]\n"
                                               "                            ^"},
    {HEAD "  %a = sum %x, axes=", "t.lf:2:21: error: found the end of the text, expected an integer or a list of integers "
                                  "for axes=; fusion @f of line 1 is not closed\n"
                                  "  %a = sum %x, axes=\n"
                                  "                    ^"},
    {HEAD "  %a = add %x, %x %s\n return %a}", "t.lf:2:19: error: found '%s', expected ',', ':' or the next statement\n"
                                               "  %a = add %x, %x %s\n"
                                               "                  ^"},
    {HEAD "  %a = add %x x\n", "t.lf:2:15: error: found 'x', expected ',', ':' or the next statement\n"
                               "  %a = add %x x\n"
                               "              ^"},
    {HEAD "  %a = add %x, s\n", "t.lf:2:16: error: found 's', expected an operand: %name, a number, true, false, none or a "
                                "list '[...]'; did you mean '%s'?\n"
                                "  %a = add %x, s\n"
                                "               ^"},
    {HEAD "  %a = add %x, foo\n",
     "t.lf:2:16: error: found 'foo', expected an operand: %name, a number, true, false, none or a list '[...]'\n"
     "  %a = add %x, foo\n"
     "               ^"},
    {HEAD "  %a = neg -%x\n",
     "t.lf:2:12: error: found '-', expected an operand: %name, a number, true, false, none or a list '[...]'\n"
     "  %a = neg -%x\n"
     "           ^"},
    {HEAD "  %a = add %x, 1.2.3\n",
     "t.lf:2:16: error: found '1.2.3', expected a number such as 3, -1.5, 2e-3, 0x1.8p4 or -inf\n"
     "  %a = add %x, 1.2.3\n"
     "               ^"},
    {HEAD "  %a = add %x, -nan\n",
     "t.lf:2:16: error: found '-nan', expected a number such as 3, -1.5, 2e-3, 0x1.8p4 or -inf\n"
     "  %a = add %x, -nan\n"
     "               ^"},
    {HEAD "  %a = add %x, 99999999999999999999\n",
     "t.lf:2:16: error: found the integer '99999999999999999999', expected one of at most 64 bits\n"
     "  %a = add %x, 99999999999999999999\n"
     "               ^"},
    {HEAD "  %a = tensor [1, 2\n  %b = neg %a\n return %b\n}\n", "t.lf:3:3: error: found '%b', expected ',' or ']'\n"
                                                                 "  %b = neg %a\n"
                                                                 "  ^"},
    {HEAD "  %a = tensor [[1, 2],\n   [3",
     "t.lf:3:6: error: found the end of the text, expected ',' or ']'; '[' of 3:4 and fusion @f of line 1 are not closed\n"
     "   [3\n"
     "     ^"},
    {HEAD "  %a = neg %x\n}\n", "t.lf:3:1: error: found '}', expected 'return': fusion @f returns nothing yet\n"
                                "}\n"
                                "^"},
    {HEAD "  return %x\n  %a = neg %x\n}\n",
     "t.lf:3:3: error: found '%a', expected ',', 'into' or '}': nothing comes after 'return'\n"
     "  %a = neg %x\n"
     "  ^"},
    {HEAD "  return %x into %x %x\n}\n", "t.lf:2:21: error: found '%x', expected ',' or '}': nothing comes after 'return'\n"
                                         "  return %x into %x %x\n"
                                         "                    ^"},
    {HEAD "  return %x }\nfoo", "t.lf:3:1: error: found 'foo', expected 'fusion' or the end of the text\n"
                                "foo\n"
                                "^"},
    {HEAD "  return %x\n}\nfusion @f(%x: f32[?], %s: i64) {\n  return %x\n}\n",
     "t.lf:4:8: error: fusion @f is defined twice, first on line 1; expected a new name\n"
     "fusion @f(%x: f32[?], %s: i64) {\n"
     "       ^"},
    {HEAD, "t.lf:1:33: error: found the end of the text, expected a statement: '%name = op ...', 'assert' or 'return'; "
           "fusion @f of line 1 is not closed\n"
           "fusion @f(%x: f32[?], %s: i64) {\n"
           "                                ^"},
    {"", "t.lf:1:1: error: found the end of the text, expected 'fusion'\n"
         "\n"
         "^"},
    {"// only\n", "t.lf:1:1: error: found the end of the text, expected 'fusion'\n"
                  "// only\n"
                  "^"},
    {"fusion", "t.lf:1:7: error: found the end of the text, expected the fusion's name '@name'\n"
               "fusion\n"
               "      ^"},
    {"fusion f", "t.lf:1:8: error: found 'f', expected the fusion's name '@name'\n"
                 "fusion f\n"
                 "       ^"},
    {"fusion @f",
     "t.lf:1:10: error: found the end of the text, expected '(' and the parameters; fusion @f of line 1 is not closed\n"
     "fusion @f\n"
     "         ^"},
    {"fusion @f(%x: f32[?, ", "t.lf:1:21: error: found the end of the text, expected an extent: an integer, '?' or %name; "
                              "'[' of 1:18 and fusion @f of line 1 are not closed\n"
                              "fusion @f(%x: f32[?, \n"
                              "                    ^"},
    {"fusion @f(%x) {", "t.lf:1:13: error: found ')', expected ':' and the parameter's type\n"
                        "fusion @f(%x) {\n"
                        "            ^"},
    {"fusion @f(f32) {", "t.lf:1:11: error: found 'f32', expected a parameter '%name' or ')'\n"
                         "fusion @f(f32) {\n"
                         "          ^"},
    {"fusion @f() return", "t.lf:1:13: error: found 'return', expected '->' or '{' and the body\n"
                           "fusion @f() return\n"
                           "            ^"},
    {"fusion @f() -> f32 {", "t.lf:1:16: error: found 'f32', expected '(' and the types of the results\n"
                             "fusion @f() -> f32 {\n"
                             "               ^"},
    {HEAD "  %a = neg %x", "t.lf:2:14: error: found the end of the text, expected ',', ':' or the next statement; fusion @f "
                           "of line 1 is not closed\n"
                           "  %a = neg %x\n"
                           "             ^"},
    {HEAD "  %a = neg", "t.lf:2:11: error: found the end of the text, expected an operand: %name, a number, true, false, "
                        "none or a list '[...]'; fusion @f of line 1 is not closed\n"
                        "  %a = neg\n"
                        "          ^"},
    {HEAD "  %a = ",
     "t.lf:2:7: error: found the end of the text, expected the name of an op; fusion @f of line 1 is not closed\n"
     "  %a = \n"
     "      ^"},
    {HEAD "  %a", "t.lf:2:5: error: found the end of the text, expected ',' or '='; fusion @f of line 1 is not closed\n"
                  "  %a\n"
                  "    ^"},
    {HEAD "  return %x,", "t.lf:2:13: error: found the end of the text, expected an operand: %name, a number, true, false, "
                          "none or a list '[...]'; fusion @f of line 1 is not closed\n"
                          "  return %x,\n"
                          "            ^"},
    {HEAD "  return %x", "t.lf:2:12: error: found the end of the text, expected ',', 'into' or '}': nothing comes after "
                         "'return'; fusion @f of line 1 is not closed\n"
                         "  return %x\n"
                         "           ^"},
    {"fusion @f(%x: f33) {return}", "t.lf:1:15: error: found 'f33', expected a dtype (bool i8 i16 i32 i64 u8 u16 u32 u64 "
                                    "f16 bf16 f32 f64 c64 c128); did you mean 'f32'?\n"
                                    "fusion @f(%x: f33) {return}\n"
                                    "              ^"},
    {"fusion @f(%x: %y) {return}",
     "t.lf:1:15: error: found '%y', expected a dtype (bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128)\n"
     "fusion @f(%x: %y) {return}\n"
     "              ^"},
    {"fusion @f(%x: f32[1,2,3,4,5,6,7,8,9]) {return}",
     "t.lf:1:35: error: found a type of more than 8 axes, expected ']': tensors have at most 8 axes\n"
     "fusion @f(%x: f32[1,2,3,4,5,6,7,8,9]) {return}\n"
     "                                  ^"},
    {"fusion @f(%x: f32[-1]) {return}",
     "t.lf:1:19: error: found '-1', expected an extent: an integer from 0 to 2^63 - 1, '?' or %name\n"
     "fusion @f(%x: f32[-1]) {return}\n"
     "                  ^"},
    {"fusion @f(%x: f32[1.5]) {return}",
     "t.lf:1:19: error: found '1.5', expected an extent: an integer from 0 to 2^63 - 1, '?' or %name\n"
     "fusion @f(%x: f32[1.5]) {return}\n"
     "                  ^"},
    {"fusion @f(%x: f32[n]) {return}", "t.lf:1:19: error: found 'n', expected an extent: an integer, '?' or %name\n"
                                       "fusion @f(%x: f32[n]) {return}\n"
                                       "                  ^"},
    {"fusion @f(%x: i64[9223372036854775808]) {return}",
     "t.lf:1:19: error: found '9223372036854775808', expected an extent: an integer from 0 to 2^63 - 1, '?' or %name\n"
     "fusion @f(%x: i64[9223372036854775808]) {return}\n"
     "                  ^"},
    {"fusion @f(%x: f32[] @dev) {return}", "t.lf:1:21: error: found '@dev', expected '@host', ',' or ')'\n"
                                           "fusion @f(%x: f32[] @dev) {return}\n"
                                           "                    ^"},
    {"fusion @f(%x: f32[?] @host) {return}",
     "t.lf:1:22: error: found '@host' on a tensor with axes, expected it on a tensor of rank 0 only, such as f32[]\n"
     "fusion @f(%x: f32[?] @host) {return}\n"
     "                     ^"},
    {"fusion @f(%x: f32 @host) {return}", "t.lf:1:19: error: found '@host' on a scalar (which is always on the host), "
                                          "expected it on a tensor of rank 0 only, such as f32[]\n"
                                          "fusion @f(%x: f32 @host) {return}\n"
                                          "                  ^"},
    {"fusion @f(%x: f32[?]) -> () { return }",
     "t.lf:1:27: error: found ')', expected a dtype (bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128)\n"
     "fusion @f(%x: f32[?]) -> () { return }\n"
     "                          ^"},
    {HEAD "  assert %s, \"abc\n",
     "t.lf:2:14: error: found a string without an end, expected a closing '\"' on the same line\n"
     "  assert %s, \"abc\n"
     "             ^"},
    {HEAD "  assert %s, \"a\\qc\"\n",
     "t.lf:2:16: error: found the escape '\\q' in a string, expected \\\", \\\\, \\n or \\t\n"
     "  assert %s, \"a\\qc\"\n"
     "               ^"},
    {HEAD "  assert %s, \"a\\\\",
     "t.lf:2:14: error: found a string without an end, expected a closing '\"' on the same line\n"
     "  assert %s, \"a\\\\\n"
     "             ^"},
    {HEAD "  assert %s, abc\n", "t.lf:2:14: error: found 'abc', expected a message in quotes\n"
                                "  assert %s, abc\n"
                                "             ^"},
    {HEAD "  assert %s\n",
     "t.lf:2:12: error: found the end of the text, expected ',' and a message in quotes; fusion @f of line 1 is not closed\n"
     "  assert %s\n"
     "           ^"},
    {HEAD "  assert %s, \"\xe4\xb8\x96\xc3\xa9\", \xe4\xb8\x96\n",
     "t.lf:2:18: error: found ',', expected the next statement\n"
     "  assert %s, \"\xe4\xb8\x96\xc3\xa9\", \xe4\xb8\x96\n"
     "                 ^"},
    {HEAD "  assert %s, \"x\x01\"\n", "t.lf:2:16: error: found byte 0x01 in a string, expected printable text\n"
                                      "  assert %s, \"x?\"\n"
                                      "               ^"},
    {HEAD "  %a = add %x, \xff\n",
     "t.lf:2:16: error: found byte 0xff, expected an operand: %name, a number, true, false, none or a list '[...]'\n"
     "  %a = add %x, ?\n"
     "               ^"},
    {HEAD "  %a = neg %x // \xc3\xa9 \xff\n", "t.lf:2:20: error: found byte 0xff in a comment, expected valid UTF-8\n"
                                              "  %a = neg %x // \xc3\xa9 ?\n"
                                              "                   ^"},
    {HEAD "  %a = neg %x, \xe4\xb8\x96\n",
     "t.lf:2:16: error: found '\xe4\xb8\x96', expected an operand: %name, a number, true, false, none or a list '[...]'\n"
     "  %a = neg %x, \xe4\xb8\x96\n"
     "               ^"},
    {HEAD "  %a = neg \x1b[31m\n",
     "t.lf:2:12: error: found byte 0x1b, expected an operand: %name, a number, true, false, none or a list '[...]'\n"
     "  %a = neg ?[31m\n"
     "           ^"},
    {HEAD "  %a = neg %x;\n return %a}", "t.lf:2:14: error: found ';', expected ',', ':' or the next statement\n"
                                         "  %a = neg %x;\n"
                                         "             ^"},
    {HEAD "  return %x into s }", "t.lf:2:18: error: found 's', expected the parameter '%name' that takes the output\n"
                                  "  return %x into s }\n"
                                  "                 ^"},
    {HEAD "  a = neg %x\n", "t.lf:2:3: error: found 'a', expected a statement: '%name = op ...', 'assert' or 'return'\n"
                            "  a = neg %x\n"
                            "  ^"},
    {HEAD " % = neg %x\n", "t.lf:2:2: error: found '%', expected a statement: '%name = op ...', 'assert' or 'return'\n"
                           " % = neg %x\n"
                           " ^"},
    {HEAD "  %a = 3\n", "t.lf:2:8: error: found '3', expected the name of an op\n"
                        "  %a = 3\n"
                        "       ^"},
    {HEAD "  %a : neg\n", "t.lf:2:6: error: found ':', expected ',' or '='\n"
                          "  %a : neg\n"
                          "     ^"},
    {HEAD "  %a = neg %x : \n",
     "t.lf:2:16: error: found the end of the text, expected a dtype; fusion @f of line 1 is not closed\n"
     "  %a = neg %x : \n"
     "               ^"},
    {HEAD "  %a = neg %x : f32[?\n",
     "t.lf:2:22: error: found the end of the text, expected ',' or ']'; '[' of 2:20 and fusion @f of line 1 are not closed\n"
     "  %a = neg %x : f32[?\n"
     "                     ^"},
    {"\xef\xbb\xbf"
     "fusion @f() { retrn }",
     "t.lf:1:15: error: found 'retrn', expected a statement: '%name = op ...', 'assert' or 'return'\n"
     "fusion @f() { retrn }\n"
     "              ^"},
    {HEAD "  %a = add %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, "
          "%x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, "
          "%x, %x, %x, %x, %x, %x, %x\n",
     "t.lf:2:250: error: found the end of the text, expected ',', ':' or the next statement; fusion @f of line 1 is not "
     "closed\n"
     "..., %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x\n"
     "                                                               ^"},
    {HEAD "  %a = add %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, "
          "%x, %x, %x, %x, %x, %undefd,%x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, "
          "%x, %x, %x, %x, %x, %x, %x, %x, %x, \n",
     "t.lf:2:132: error: undefined name '%undefd'\n"
     "...%x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %undefd,%x, %x, %x, %x, %x, %x, %x, %x, ...\n"
     "                                                               ^"},
    {HEAD "  %a, %b, %c, %d, %e, %g, %h, %i, %j = neg %x\n",
     "t.lf:2:35: error: found more than 8 results; no op has so many\n"
     "  %a, %b, %c, %d, %e, %g, %h, %i, %j = neg %x\n"
     "                                  ^"},
    {HEAD "  %nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn = %q\n",
     "t.lf:2:77: error: found '%q', expected the name of an op\n"
     "  %nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn = %q\n"
     "                                                                            ^"},
};

START_TEST(messages) { check_message(refused[_i].text, strlen(refused[_i].text), refused[_i].want); }
END_TEST

START_TEST(nul_bytes) {
    static const char between[] = "fusion @f() {\0 return }", within[] = "fusion @f() { // a\0b\n return }",
                      string[] = "fusion @f(%c: bool) { assert %c, \"a\0b\" return }", name[] = "fusion @f\0g() { return }";
    check_message(between, sizeof between - 1,
                  "t.lf:1:14: error: found a NUL byte, expected a statement: '%name = op ...', 'assert' or 'return'\n"
                  "fusion @f() {? return }\n"
                  "             ^");
    check_message(within, sizeof within - 1,
                  "t.lf:1:19: error: found byte 0x00 in a comment, expected printable text\n"
                  "fusion @f() { // a?b\n"
                  "                  ^");
    check_message(string, sizeof string - 1,
                  "t.lf:1:36: error: found byte 0x00 in a string, expected printable text\n"
                  "fusion @f(%c: bool) { assert %c, \"a?b\" return }\n"
                  "                                   ^");
    check_message(name, sizeof name - 1,
                  "t.lf:1:10: error: found a NUL byte, expected '(' and the parameters\n"
                  "fusion @f?g() { return }\n"
                  "         ^");
}
END_TEST

START_TEST(places_are_numbers_too) {
    static const char text[] = "fusion @f(%x: f32[?]) {\n  // \xc3\xa9\n  %a = add %x, %y\n  return %a\n}\n";
    lf_status status = refuse(text, sizeof text - 1);
    lf_place place = lf_status_place(status);
    ck_assert_str_eq(place.file, "t.lf");
    ck_assert_uint_eq(place.line, 3);
    ck_assert_uint_eq(place.column, 16);
    lf_status_destroy(status);
}
END_TEST

// ---- hostile texts --------------------------------------------------------------------------------------------------------

START_TEST(nested_brackets) {
    enum { DEPTH = 100000 };
    char *text = malloc(DEPTH + 100);
    int n = sprintf(text, "fusion @f() {\n  %%a = tensor ");
    memset(text + n, '[', DEPTH);
    strcpy(text + n + DEPTH, "\n");
    lf_status status = refuse(text, strlen(text));
    static const char want[] =
        "t.lf:2:23: error: found '[' within 8 lists, expected lists at most 8 deep: tensors have at most 8 axes\n"
        "  %a = tensor [[[[[[[[";
    ck_assert_msg(!strncmp(lf_status_message(status), want, sizeof want - 1), "%s", lf_status_message(status));
    ck_assert_uint_lt(strlen(lf_status_message(status)), 400);
    lf_status_destroy(status);
    free(text);
}
END_TEST

START_TEST(ten_megabyte_line) {
    enum { SIZE = 10 << 20 };
    char *text = malloc(SIZE + 200);
    int n = sprintf(text, "fusion @f() { %%a = tensor [");
    size_t at = (size_t)n;
    while (at < SIZE) memcpy(text + at, "1, 22, -3, ", 11), at += 11;
    strcpy(text + at, "4], dtype=i8 return %a }");
    lf_graph **graphs;
    size_t count;
    lf_status status = lf_parse(heap, "t.lf", text, strlen(text), false, &graphs, &count);
    ck_assert_msg(status == NULL, "%s", lf_status_message(status));
    lf_parse_release(heap, graphs, count);
    strcpy(text + at, "%nowhere, 5, 6, 7");
    status = refuse(text, strlen(text));
    const char *message = lf_status_message(status);
    ck_assert_msg(strstr(message, "error: undefined name '%nowhere'\n...") != NULL && strlen(message) < 300, "%s", message);
    ck_assert_uint_eq(lf_status_place(status).column, at + 1);
    const char *line = strchr(message, '\n') + 1, *caret = strchr(line, '\n') + 1;
    ck_assert_int_eq(strstr(line, "%nowhere") - line, strchr(caret, '^') - caret);
    lf_status_destroy(status);
    // One name of that length.
    memset(text, 'a', SIZE);
    memcpy(text, "fusion @", 8);
    strcpy(text + SIZE, "(%x: f3");
    status = refuse(text, strlen(text));
    ck_assert_uint_lt(strlen(lf_status_message(status)), 2500);
    lf_status_destroy(status);
    free(text);
}
END_TEST

START_TEST(many_fusions) {
    enum { N = 20000 };
    char *text = malloc(N * 40);
    size_t n = 0;
    for (int i = 0; i < N; i++) n += (size_t)sprintf(text + n, "fusion @f%d() { return }\n", i);
    lf_graph **graphs;
    size_t count;
    lf_status status = lf_parse(heap, "t.lf", text, n, false, &graphs, &count);
    ck_assert_msg(status == NULL, "%s", lf_status_message(status));
    ck_assert_uint_eq(count, N);
    ck_assert_str_eq(graphs[N - 1]->name, "f19999");
    lf_parse_release(heap, graphs, count);
    n += (size_t)sprintf(text + n, "fusion @f77() { return }");
    check_message(text, n,
                  "t.lf:20001:8: error: fusion @f77 is defined twice, first on line 78; expected a new name\n"
                  "fusion @f77() { return }\n"
                  "       ^");
    free(text);
}
END_TEST

// Whatever is cut off, and whichever byte is replaced, there is a graph or a message.
START_TEST(cut_and_broken_texts) {
    char *text = without_comments(read_file("test/text/parse_ops.lf"));
    size_t n = strlen(text), accepted = 0;
    static const char bytes[] = {0, '\n', '"', '[', ']', '%', '}', (char)0xff, '\\', '9'};
    for (size_t i = 0; i < n; i++) {
        // The fusion around i alone, so that it stays quick.
        size_t from = i, to = i;
        while (from > 0 && strncmp(text + from, "fusion @", 8)) from--;
        while (to < n && strncmp(text + to, "\n}\n", 3)) to++;
        char saved = text[i];
        text[i] = bytes[i % sizeof bytes];
        for (int cut = 0; cut < 2; cut++) {
            lf_graph **graphs;
            size_t count;
            lf_status status = lf_parse(heap, "t.lf", text + from, cut ? i - from : to + 3 - from, false, &graphs, &count);
            accepted += !status;
            if (status) ck_assert(!strncmp(lf_status_message(status), "t.lf:", 5) && strchr(lf_status_message(status), '^'));
            lf_status_destroy(status);
            lf_parse_release(heap, graphs, count);
        }
        text[i] = saved;
    }
    ck_assert_uint_lt(accepted, n);
    free(text);
}
END_TEST

START_TEST(out_of_memory) {
    char *text = without_comments(read_file("test/text/parse_ops.lf"));
    size_t n = strlen(text);
    for (size_t k = 1;; k += k < 2000 ? 1 : 37) {
        counting c = {.fail_at = k};
        lf_allocator a = counting_allocator(&c);
        lf_graph **graphs;
        size_t count;
        lf_status status = lf_parse(&a, "t.lf", text, n, false, &graphs, &count);
        if (!status) {
            c.fail_at = c.calls + 1;
            char *printed;
            lf_status print_status = lf_graph_print(graphs[0], LF_PRINT_FULL, &printed);
            ck_assert_int_eq(lf_status_code(print_status), LF_OUT_OF_MEMORY);
            ck_assert(printed == NULL);
            lf_parse_release(&a, graphs, count);
            ck_assert_uint_eq(c.live, 0);
            break;
        }
        ck_assert_msg(lf_status_code(status) == LF_OUT_OF_MEMORY, "%zu: %s", k, lf_status_message(status));
        lf_status_destroy(status);
        ck_assert_msg(c.live == 0, "%zu blocks lost when call %zu failed", c.live, k);
    }
    // An error message that there is no memory for.
    for (size_t k = 1;; k++) {
        counting c = {.fail_at = k};
        lf_allocator a = counting_allocator(&c);
        lf_graph **graphs;
        size_t count;
        lf_status status = lf_parse(&a, "t.lf", HEAD "%a = cat %x, %s, axis=0\n", strlen(HEAD) + 24, false, &graphs, &count);
        lf_code code = lf_status_code(status);
        lf_status_destroy(status);
        ck_assert_uint_eq(c.live, 0);
        if (code == LF_INVALID_PROGRAM) break;
        ck_assert_int_eq(code, LF_OUT_OF_MEMORY);
    }
    free(text);
}
END_TEST

START_TEST(sync_points_are_allowed_when_asked) {
    static const char text[] = "fusion @f() { return } fusion @g() { return }";
    for (int allow = 0; allow < 2; allow++) {
        lf_graph **graphs;
        size_t count;
        lf_status status = lf_parse(heap, NULL, text, sizeof text - 1, allow, &graphs, &count);
        ck_assert(status == NULL && count == 2);
        for (size_t i = 0; i < count; i++) ck_assert_int_eq(graphs[i]->allow_sync, allow);
        lf_parse_release(heap, graphs, count);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("parse");
    TCase *c = tcase_create("round trips");
    tcase_add_test(c, ops_round_trip);
    tcase_add_test(c, conformance_programs_round_trip);
    tcase_add_test(c, every_op_has_a_program);
    tcase_add_test(c, layout_does_not_matter);
    tcase_add_test(c, literals_keep_their_text);
    tcase_add_test(c, strings);
    tcase_add_test(c, numbers_of_unnamed_values_are_no_user_names);
    tcase_add_test(c, full_form);
    tcase_add_test(c, sync_points_are_allowed_when_asked);
    suite_add_tcase(suite, c);
    c = tcase_create("diagnostics");
    tcase_add_loop_test(c, messages, 0, sizeof refused / sizeof *refused);
    tcase_add_test(c, nul_bytes);
    tcase_add_test(c, places_are_numbers_too);
    suite_add_tcase(suite, c);
    c = tcase_create("hostile texts");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, nested_brackets);
    tcase_add_test(c, ten_megabyte_line);
    tcase_add_test(c, many_fusions);
    tcase_add_test(c, cut_and_broken_texts);
    tcase_add_test(c, out_of_memory);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
