// Unary integer ops: all inputs of 8 and 16 bits, edges and random bits of the wider ones.
#include "test/exhaustive/exhaustive.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// On the value, sign-extended; results are cut to the dtype, so that they wrap.
static uint64_t negate(int64_t x) { return 0 - (uint64_t)x; }
static uint64_t complement(int64_t x) { return ~(uint64_t)x; }
static uint64_t same(int64_t x) { return (uint64_t)x; }
static uint64_t none(int64_t x) { return (void)x, 0; }
static uint64_t one(int64_t x) { return (void)x, 1; }
static uint64_t is_zero(int64_t x) { return x == 0; }
static uint64_t absolute(int64_t x) { return x < 0 ? 0 - (uint64_t)x : (uint64_t)x; }
static uint64_t sign(int64_t x) { return (uint64_t)((x > 0) - (x < 0)); }
static uint64_t relu(int64_t x) { return x > 0 ? (uint64_t)x : 0; }
static uint64_t negative(int64_t x) { return x < 0; }

static const struct row {
    const char *name, *statement;
    uint64_t (*truth)(int64_t);
} rows[] = {{"neg", "neg %a", negate},     {"abs", "abs %a", absolute},      {"sign", "sign %a", sign},
            {"ceil", "ceil %a", same},     {"floor", "floor %a", same},      {"trunc", "trunc %a", same},
            {"round", "round %a", same},   {"frac", "frac %a", none},        {"relu", "relu %a", relu},
            {"not", "not %a", complement}, {"lnot", "lnot %a", is_zero},     {"conj", "conj %a", same},
            {"real", "real %a", same},     {"imag", "imag %a", none},        {"isnan", "isnan %a", none},
            {"isinf", "isinf %a", none},   {"isfinite", "isfinite %a", one}, {"signbit", "signbit %a", negative}};
enum { N_ROWS = sizeof rows / sizeof *rows };

static int64_t extended(lfuser_dtype d, uint64_t bits) {
    unsigned unused = 64 - 8 * lfuser_dtype_bytes(d);
    return d <= LFUSER_I64 ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

// Unsigned 64-bit values above 2^63 are not negative.
static uint64_t truth_of(const struct row *r, lfuser_dtype d, uint64_t bits) {
    if (d == LFUSER_U64 && bits >> 63) {
        if (r->truth == absolute || r->truth == relu) return bits;
        if (r->truth == sign) return 1;
        if (r->truth == negative) return 0;
    }
    return r->truth(extended(d, bits));
}

static void check_group(machine *m, const options *o, lfuser_dtype d, const struct row *group, size_t n) {
    const char *statements[MAX_OUTPUTS];
    for (size_t i = 0; i < n; i++) statements[i] = group[i].statement;
    program p;
    program_open(&p, m, d, statements, n, LFUSER_MATH_EXACT);
    size_t count = (size_t)input_count(d, o), bytes = lfuser_dtype_bytes(d);
    if (count > 1 << 18) count = 1 << 18;
    char *x = malloc(count * 8);
    for (size_t i = 0; i < count; i++) input_element(d, i, 1, x + i * bytes);
    void *got[MAX_OUTPUTS], *want[MAX_OUTPUTS];
    for (size_t i = 0; i < n; i++) got[i] = malloc(count * 8), want[i] = malloc(count * 8);
    run_device(m, &p, x, count, got);
    run_interpreter(&p, x, count, want);
    for (size_t i = 0; i < n; i++) {
        size_t out = lfuser_dtype_bytes(p.out[i]);
        tally t = {.inputs = count, .differing = count_differing(p.out[i], got[i], want[i], count)};
        for (size_t k = 0; k < count; k++) {
            uint64_t right = truth_of(&group[i], d, bits_of(d, x + k * bytes));
            if (!memcmp((char *)got[i] + k * out, &right, out) || t.wrong++) continue;
            t.first_wrong = bits_of(d, x + k * bytes);
            snprintf(t.wrong_text, sizeof t.wrong_text, ": got %#llx",
                     (unsigned long long)bits_of(p.out[i], (char *)got[i] + k * out));
        }
        report("exact", d, group[i].name, &t, true, true);
        free(got[i]);
        free(want[i]);
    }
    free(x);
    program_close(&p);
}

void check_integers(machine *m, const options *o) {
    for (lfuser_dtype d = LFUSER_I8; d <= LFUSER_U64; d++) {
        struct row group[MAX_OUTPUTS];
        size_t n = 0;
        for (size_t i = 0; i < N_ROWS; i++) {
            if (wanted(o, rows[i].name)) group[n++] = rows[i];
            if (n == MAX_OUTPUTS || (n && i + 1 == N_ROWS)) {
                check_group(m, o, d, group, n);
                n = 0;
            }
        }
    }
}
