// Cases of the interpreter's tests: a program, arguments and outputs as text.
//
// A value is a type and its elements in row-major order, blank-separated: "f32[2,2] 1 2.5 -0.0 nan", "i64 7", "c64[1] (1,-2)".
// Values are separated by ";". After the shape a tensor may have strides, and the number of the element where it begins; what
// follows is then the whole storage: "i8[3]{-1}@2 10 20 30". Bits are compared, but any NaN equals any NaN.
#ifndef LF_TEST_INTERP_CASE_H
#define LF_TEST_INTERP_CASE_H
#include "interp/interp.h"
#include "parse/parse.h"
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 8 };

typedef struct test_values {
    lf_array at[MOST_VALUES];
    void *storage[MOST_VALUES];
    size_t n;
} test_values;

static inline void skip_blanks(const char **p) {
    while (**p == ' ' || **p == '\n') (*p)++;
}

static inline lf_scalar read_number(const char **p, lf_dtype d) {
    skip_blanks(p);
    size_t n = strcspn(*p, " ,;)\n");
    lf_literal l;
    lf_scalar s = {{0}};
    ck_assert_msg(lf_literal_parse(*p, n, &l) && lf_literal_to(&l, d, &s), "test text: '%.*s' is no %s", (int)n, *p,
                  lf_dtype_name(d));
    *p += n;
    return s;
}

// Halves may also be given by their bits: 0x7e00.
static inline void read_element(const char **p, lf_dtype d, char *to) {
    skip_blanks(p);
    if (lf_is_half(d) && !strncmp(*p, "0x", 2)) {
        lf_scalar bits = read_number(p, LF_U16);
        memcpy(to, &bits, 2);
    } else if (lf_is_complex(d)) {
        lf_dtype part = lf_dtype_part(d);
        ck_assert_int_eq(**p, '(');
        for (unsigned i = 0; i < 2; i++) {
            ++*p;
            lf_scalar s = read_number(p, part);
            memcpy(to + i * lf_dtype_bytes(part), &s, lf_dtype_bytes(part));
        }
        ck_assert_int_eq(*(*p)++, ')');
    } else {
        lf_scalar s = read_number(p, d);
        memcpy(to, &s, lf_dtype_bytes(d));
    }
}

static inline int64_t read_int(const char **p) {
    char *end;
    int64_t v = strtoll(*p, &end, 10);
    *p = end;
    return v;
}

static inline void read_value(const char **p, lf_array *a, void **storage) {
    skip_blanks(p);
    size_t n = strcspn(*p, " [;\n"), count = 0, room = 1;
    *a = (lf_array){.dtype = lf_dtype_parse(*p, n)};
    ck_assert_msg(a->dtype != LF_NO_DTYPE, "test text: no dtype at '%s'", *p);
    *p += n;
    if (**p == '[') {
        a->tensor = true;
        for (++*p; **p != ']'; *p += **p == ',') a->shape[a->rank++] = read_int(p);
        ++*p;
    }
    int64_t pitch = 1, first = 0;
    for (unsigned i = a->rank; i-- > 0; pitch *= a->shape[i]) a->strides[i] = pitch;
    if (**p == '{') {
        ++*p;
        for (unsigned i = 0; **p != '}'; *p += **p == ',') a->strides[i++] = read_int(p);
        *p += 2; // "}@"
        first = read_int(p);
    }
    unsigned bytes = lf_dtype_bytes(a->dtype);
    char *data = malloc(room * bytes);
    for (skip_blanks(p); **p && **p != ';'; skip_blanks(p)) {
        if (count == room) data = realloc(data, (room *= 2) * bytes);
        read_element(p, a->dtype, data + count++ * bytes);
    }
    *storage = data;
    a->data = data + first * bytes;
}

static inline test_values read_values(const char *text) {
    test_values v = {.n = 0};
    for (skip_blanks(&text); *text; skip_blanks(&text)) {
        read_value(&text, &v.at[v.n], &v.storage[v.n]);
        v.n++;
        if (*text == ';') text++;
    }
    return v;
}

static inline void free_values(test_values *v) {
    for (size_t i = 0; i < v->n; i++) free(v->storage[i]);
}

// Compiles a body and runs it: "(%x: f32[?]) { … }" or a whole fusion.
static inline lf_status run_program(const char *program, const lf_array *args, size_t n, lf_interp_result **out_result) {
    char text[8192];
    snprintf(text, sizeof text, "%s%s", program[0] == '(' ? "fusion @t" : "", program);
    lf_graph **graphs;
    size_t n_graphs;
    *out_result = NULL;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", text, strlen(text), false, &graphs, &n_graphs);
    if (s) return s;
    s = lf_interp_run(graphs[0], args, n, &lf_system_allocator, out_result);
    lf_parse_release(&lf_system_allocator, graphs, n_graphs);
    return s;
}

static inline bool same_element(lf_dtype d, const char *a, const char *b) {
    if (lf_is_complex(d)) {
        lf_dtype part = lf_dtype_part(d);
        unsigned half = lf_dtype_bytes(part);
        return same_element(part, a, b) && same_element(part, a + half, b + half);
    }
    lf_scalar x = {{0}}, y = {{0}};
    memcpy(&x, a, lf_dtype_bytes(d));
    memcpy(&y, b, lf_dtype_bytes(d));
    if (d == LF_F32 && x.f32 != x.f32) return y.f32 != y.f32;
    if (d == LF_F64 && x.f64 != x.f64) return y.f64 != y.f64;
    if (lf_is_half(d) && lf_half_to_f32(d, x.u16) != lf_half_to_f32(d, x.u16))
        return lf_half_to_f32(d, y.u16) != lf_half_to_f32(d, y.u16);
    return x.word[0] == y.word[0];
}

static inline void check_output(const char *program, size_t i, const lf_array *got, const lf_array *want) {
    ck_assert_msg(got->dtype == want->dtype && got->tensor == want->tensor && got->rank == want->rank,
                  "%s\noutput %zu is %s of rank %u (tensor %d)", program, i, lf_dtype_name(got->dtype), got->rank,
                  got->tensor);
    int64_t n = 1;
    for (unsigned a = 0; a < got->rank; n *= got->shape[a++])
        ck_assert_msg(got->shape[a] == want->shape[a], "%s\noutput %zu: axis %u has extent %" PRId64, program, i, a,
                      got->shape[a]);
    unsigned bytes = lf_dtype_bytes(got->dtype);
    for (int64_t k = 0; k < n; k++) {
        const char *g = (const char *)got->data + k * bytes, *w = (const char *)want->data + k * bytes;
        if (same_element(got->dtype, g, w)) continue;
        lf_scalar gs = {{0}}, ws = {{0}};
        char g_text[64], w_text[64];
        memcpy(&gs, g, bytes);
        memcpy(&ws, w, bytes);
        lf_scalar_print(g_text, sizeof g_text, got->dtype, &gs);
        lf_scalar_print(w_text, sizeof w_text, got->dtype, &ws);
        ck_abort_msg("%s\noutput %zu, element %" PRId64 ": %s, expected %s", program, i, k, g_text, w_text);
    }
}

// `index_error`: what its text must hold; NULL: there is none.
static inline void check_indexing(const char *program, const char *args, const char *expected, const char *index_error) {
    test_values in = read_values(args), want = read_values(expected);
    lf_interp_result *r;
    lf_status s = run_program(program, in.at, in.n, &r);
    ck_assert_msg(s == NULL, "%s\n%s", program, lf_status_message(s));
    ck_assert_msg(r->n_outputs == want.n, "%s\n%zu outputs", program, r->n_outputs);
    for (size_t i = 0; i < want.n; i++) check_output(program, i, &r->outputs[i], &want.at[i]);
    if (index_error)
        ck_assert_msg(r->index_error && strstr(r->index_error, index_error), "%s\n%s", program,
                      r->index_error ? r->index_error : "no index error");
    else
        ck_assert_msg(!r->index_error, "%s\n%s", program, r->index_error);
    lf_interp_result_destroy(r);
    free_values(&in);
    free_values(&want);
}

static inline void check_case(const char *program, const char *args, const char *expected) {
    check_indexing(program, args, expected, NULL);
}

static inline void check_error(const char *program, const char *args, lf_code code, const char *has) {
    test_values in = read_values(args);
    lf_interp_result *r;
    lf_status s = run_program(program, in.at, in.n, &r);
    ck_assert_msg(s != NULL && !r, "%s\nno error", program);
    ck_assert_msg(lf_status_code(s) == code, "%s\n%s: %s", program, lf_code_name(lf_status_code(s)), lf_status_message(s));
    ck_assert_msg(strstr(lf_status_message(s), has) != NULL, "%s\n%s", program, lf_status_message(s));
    lf_status_destroy(s);
    free_values(&in);
}

// One op of one or two operands on tensors: check_unary("neg", "i8[2] 1 -128", "i8[2] -1 -128").
static inline void check_op(const char *op, const char *args, const char *expected) {
    char program[512], params[256] = "", operands[64] = "";
    test_values in = read_values(args);
    for (size_t i = 0; i < in.n; i++) {
        size_t n = strlen(params), m = strlen(operands);
        snprintf(params + n, sizeof params - n, "%s%%a%zu: %s", i ? ", " : "", i, lf_dtype_name(in.at[i].dtype));
        n = strlen(params);
        for (unsigned d = 0; d < in.at[i].rank; d++, n = strlen(params))
            snprintf(params + n, sizeof params - n, "%s?", d ? ", " : "[");
        if (in.at[i].tensor) snprintf(params + n, sizeof params - n, in.at[i].rank ? "]" : "[]");
        snprintf(operands + m, sizeof operands - m, "%s%%a%zu", i ? ", " : "", i);
    }
    size_t word = strcspn(op, ","); // attributes follow the operands: "cast, dtype=i8"
    snprintf(program, sizeof program, "(%s) { %%r = %.*s %s%s return %%r }", params, (int)word, op, operands, op + word);
    free_values(&in);
    check_case(program, args, expected);
}
#endif
