// Casts from every real dtype to every dtype: all inputs of up to 16 bits, slices and samples of the rest.
#include "test/exhaustive/exhaustive.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20, MOST_F32 = 1 << 20 };

static bool is_int(lfuser_dtype d) { return d >= LFUSER_I8 && d <= LFUSER_U64; }

// What the language says; integers among themselves wrap.
static void reference(lfuser_dtype from, const void *x, lfuser_dtype to, void *out) {
    uint64_t bits = bits_of(from, x);
    if (from >= LFUSER_F16) {
        round_to(to, value_of(from, x), out);
        return;
    }
    unsigned width = 8 * lfuser_dtype_bytes(from);
    if (from == LFUSER_BOOL) bits = bits != 0;
    bool negative = is_int(from) && from <= LFUSER_I64 && bits >> (width - 1) & 1;
    if (negative && width < 64) bits |= UINT64_MAX << width;
    if (is_int(to))
        memcpy(out, &bits, lfuser_dtype_bytes(to));
    else
        round_to(to, negative ? (long double)(int64_t)bits : (long double)bits, out);
}

typedef struct checking {
    lfuser_dtype from, to;
    const char *x, *got;
    pthread_mutex_t *lock;
    tally *total;
} checking;

static void check_part(void *arg, size_t begin, size_t end) {
    const checking *c = arg;
    size_t in = lfuser_dtype_bytes(c->from), out = lfuser_dtype_bytes(c->to);
    tally t = {0};
    for (size_t i = begin; i < end; i++) {
        uint64_t want[2] = {0};
        reference(c->from, c->x + i * in, c->to, want);
        if (same_element(c->to, c->got + i * out, want) || t.wrong++) continue;
        t.first_wrong = bits_of(c->from, c->x + i * in);
        snprintf(t.wrong_text, sizeof t.wrong_text, ": got %#llx, want %#llx",
                 (unsigned long long)bits_of(c->to >= LFUSER_C64 ? LFUSER_F32 : c->to, c->got + i * out),
                 (unsigned long long)want[0]);
    }
    pthread_mutex_lock(c->lock);
    tally_add(c->total, &t);
    pthread_mutex_unlock(c->lock);
}

static void check_group(machine *m, const options *o, lfuser_dtype from, lfuser_dtype first_to, size_t n) {
    char texts[MAX_OUTPUTS][40];
    const char *statements[MAX_OUTPUTS];
    for (size_t i = 0; i < n; i++) {
        snprintf(texts[i], sizeof texts[i], "cast %%a, dtype=%s", lfuser_dtype_name((lfuser_dtype)(first_to + i)));
        statements[i] = texts[i];
    }
    program p;
    program_open(&p, m, from, statements, n, LFUSER_MATH_EXACT);
    uint64_t slice = o->slice < 4096 ? 4096 : o->slice,
             count = from == LFUSER_F32 ? (1ull << 32) / slice : input_count(from, o);
    size_t chunk = count < CHUNK ? (size_t)count : CHUNK;
    char *x = malloc(chunk * 8);
    void *got[MAX_OUTPUTS], *want[MAX_OUTPUTS];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    tally totals[MAX_OUTPUTS] = {{0}};
    for (size_t i = 0; i < n; i++) got[i] = malloc(chunk * 16), want[i] = malloc(chunk * 16);
    for (uint64_t first = 0; first < count; first += chunk) {
        size_t now = count - first < chunk ? (size_t)(count - first) : chunk, bytes = lfuser_dtype_bytes(from);
        for (size_t i = 0; i < now; i++) input_element(from, first + i, slice, x + i * bytes);
        run_device(m, &p, x, now, got);
        run_interpreter(&p, x, now, want);
        for (size_t i = 0; i < n; i++) {
            totals[i].inputs += now;
            totals[i].differing += count_differing(p.out[i], got[i], want[i], now);
            parallel(now, check_part, &(checking){from, p.out[i], x, got[i], &lock, &totals[i]});
        }
    }
    for (size_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "to %s", lfuser_dtype_name(p.out[i]));
        report("cast", from, name, &totals[i], true, true);
        free(got[i]);
        free(want[i]);
    }
    free(x);
    program_close(&p);
}

void check_casts(machine *m, const options *o) {
    if (!wanted(o, "cast")) return;
    for (lfuser_dtype from = LFUSER_BOOL; from <= LFUSER_F64; from++) {
        check_group(m, o, from, LFUSER_BOOL, MAX_OUTPUTS);
        check_group(m, o, from, LFUSER_BOOL + MAX_OUTPUTS, LFUSER_C128 - MAX_OUTPUTS);
    }
}
