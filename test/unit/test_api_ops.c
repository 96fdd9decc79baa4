// Every elementwise op and dtype of the table on the device against the interpreter: extents 0, 1, 7, 1025, 8193, any strides, an
// odd base, outputs allocated and given, equal bits. Ops of one number of operands share a program, so that they are fused.
#include "test/support/api/oracle.h"

typedef struct row {
    const char *name;
    unsigned n;
    const char *rule, *allow;
} row;
static const row rows[] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) {#name, n, #rule, allow},
#include "ir/ops.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows, A_PROGRAM = 8 };

static const int64_t extents[] = {0, 1, 7, 1025, 8193};
enum { N_EXTENTS = SLOW_BUILD ? 3 : 5 };

static bool allowed(const row *r, lfuser_dtype d) {
    char letter = d == LFUSER_BOOL ? 'b' : d < LFUSER_F16 ? 'i' : d < LFUSER_C64 ? 'f' : 'c';
    return strchr(r->allow, letter) != NULL;
}

// ---- programs of several ops -----------------------------------------------------------------------------------------------------

typedef struct maker {
    char body[6000], results[1000];
    unsigned n;
    lfuser_dtype dtype;
} maker;

// Rank 2, so that strides differ; a second operand of its own, a third and fourth that a tensor may broadcast.
static const char params[] = "(%a: $D[?, %m], %b: $D[?, %m], %c: $D[%m], %d: $D[], %q: bool[?, %m], %h: i32[%m])";

static void flush(maker *m) {
    if (!m->n) return;
    char text[8000];
    snprintf(text, sizeof text, "%s {\n%s  return %s\n}", params, m->body, m->results);
    test_program p;
    ck_assert_msg(program_open(&p, text, m->dtype), "refused:\n%s", text);
    check_layouts(&p, extents, N_EXTENTS);
    program_close(&p);
    m->n = 0;
    m->body[0] = m->results[0] = 0;
}

static void add(maker *m, const char *name, const char *statement) {
    size_t n = strlen(m->body), k = strlen(m->results);
    snprintf(m->body + n, sizeof m->body - n, "  %%%s_%u = %s\n", name, m->n, statement);
    snprintf(m->results + k, sizeof m->results - k, "%s%%%s_%u", m->n ? ", " : "", name, m->n);
    if (++m->n == A_PROGRAM) flush(m);
}

static void add_row(maker *m, const row *r) {
    static const char *const operands[] = {"", "%a", "%a, %b", "%a, %b, %c", "%a, %b, %c, %d"};
    char s[128];
    if (!strcmp(r->rule, "cast") || !strcmp(r->rule, "bitcast")) {
        for (lfuser_dtype to = LFUSER_BOOL; to <= LFUSER_C128; to++) {
            bool bits = r->rule[0] == 'b';
            if (bits && (to >= LFUSER_C64 || lfuser_dtype_bytes(to) != lfuser_dtype_bytes(m->dtype))) continue;
            snprintf(s, sizeof s, "%s %%a, dtype=%s", r->name, lfuser_dtype_name(to));
            add(m, r->name, s);
        }
        return;
    }
    const char *given = !strcmp(r->rule, "select") ? "%q, %a, %c" : !strcmp(r->rule, "ldexp") ? "%a, %h" : operands[r->n];
    snprintf(s, sizeof s, "%s %s", r->name, given);
    add(m, r->name, s);
    if (!strcmp(r->name, "gelu")) add(m, r->name, "gelu %a, approximate=tanh");
    if (!strcmp(r->name, "clamp")) {
        add(m, "low", "clamp %a, %b, none");
        add(m, "high", "clamp %a, none, %d");
    }
}

// What the language refuses although the category is allowed.
static bool refused(const row *r, lfuser_dtype d) {
    return !strcmp(r->name, "complex") && (d == LFUSER_F16 || d == LFUSER_BF16);
}

// A slow build does without most dtypes: LLVM takes the time here.
static bool left_out(lfuser_dtype d) {
    return SLOW_BUILD && d != LFUSER_BOOL && d != LFUSER_I32 && d != LFUSER_F16 && d != LFUSER_F32 && d != LFUSER_C64;
}

START_TEST(elementwise) {
    if (left_out((lfuser_dtype)_i)) return;
    maker *m = calloc(1, sizeof *m);
    m->dtype = (lfuser_dtype)_i;
    for (unsigned n = 1; n <= 4; n++) {
        for (size_t i = 0; i < N_ROWS; i++)
            if (rows[i].n == n && allowed(&rows[i], m->dtype) && !refused(&rows[i], m->dtype)) add_row(m, &rows[i]);
        flush(m);
    }
    free(m);
}
END_TEST

// What the table does not allow is refused when the program is read, never computed.
START_TEST(not_allowed) {
    char text[256];
    for (size_t i = 0; i < N_ROWS; i++) {
        const row *r = &rows[i];
        // These convert their operands: bools and integers to floats, anything to bool.
        bool converts = !strcmp(r->rule, "to_float") || !strcmp(r->rule, "logical") || !strcmp(r->rule, "ldexp") ||
                        !strcmp(r->rule, "lerp") || !strcmp(r->rule, "complex");
        for (lfuser_dtype d = LFUSER_BOOL; d <= LFUSER_C128; d++) {
            if (allowed(r, d) || (converts && d < LFUSER_C64) || !strcmp(r->rule, "logical")) continue;
            snprintf(text, sizeof text, "(%%a: $D[?]) { %%r = %s %%a%s%s%s return %%r }", r->name, r->n > 1 ? ", %a" : "",
                     r->n > 2 ? ", %a" : "", r->n > 3 ? ", %a" : "");
            test_program p;
            ck_assert_msg(!program_open(&p, text, d), "accepted for %s: %s", lfuser_dtype_name(d), text);
        }
    }
}
END_TEST

// Scalars and tensors in one op; what is computed on the host must be the bits that a kernel would have computed.
static const char *const scalar_mixes[] = {
    "(%a: $D[?], %s: $D) { %t = add %s, %s %r = add %a, %t %u = mul %t, %s return %r, %t, %u }",
    "(%a: $D[?, %m], %s: $D, %p: $D) { %t = max %s, %p %r = select true, %a, %t %u = min %r, %s return %r, %u, %t }",
    "(%a: $D[?], %x: $D[] @host, %s: $D) { %t = add %x, %s %r = mul %a, %t %v = item %t return %r, %t, %v }",
    "(%a: $D[?], %b: $D[]) { %r = add %a, %b %v = item %b %u = mul %a, %v %w = add %v, %v return %r, %u, %v, %w }",
    "(%a: $D[?]) { %n = numel %a %z = size %a, 0 %st = stride %a, 0 %t = cast %n, dtype=$D %r = add %a, %t return %r, %n, "
    "%z, %st }",
};

START_TEST(scalars_beside_tensors) {
    if (left_out((lfuser_dtype)_i)) return;
    for (size_t i = 0; i < sizeof scalar_mixes / sizeof *scalar_mixes; i++) {
        test_program p;
        if (!program_open(&p, scalar_mixes[i], (lfuser_dtype)_i)) continue;
        check_layouts(&p, extents, N_EXTENTS);
        program_close(&p);
    }
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api ops");
    TCase *t = device_tcase(suite, "elementwise", 400);
    tcase_add_loop_test(t, elementwise, LFUSER_BOOL, LFUSER_C128 + 1);
    tcase_add_loop_test(t, scalars_beside_tensors, LFUSER_BOOL, LFUSER_C128 + 1);
    tcase_add_test(t, not_allowed);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
