// Every unary float op: f16 and bf16 on all inputs, f32 on a slice, f64 on a sample.
#include "test/exhaustive/exhaustive.h"
#include "test/math/judge.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 18 };

static const judge_unary *row_of(const char *name) {
    for (int i = 0; i < judge_unary_count; i++)
        if (!strcmp(judge_unaries[i].name, name)) return &judge_unaries[i];
    return NULL;
}

typedef struct judging {
    const op *f;
    const judge_unary *row;
    lfuser_dtype in, out;
    const char *x, *got;
    bool fast;
    pthread_mutex_t *lock;
    tally *total;
} judging;

static void note_wrong(tally *t, uint64_t at, double got, double truth, double ulps) {
    if (!t->wrong++) {
        t->first_wrong = at;
        snprintf(t->wrong_text, sizeof t->wrong_text, ": got %.17g, true value %.17g, %.3f ulp", got, truth, ulps);
    }
}

static void judge_f64(const judging *j, const void *x, const void *got, tally *t) {
    double in = value_of(LFUSER_F64, x), result = value_of(LFUSER_F64, got), ulps;
    if (!j->row) {
        double want = j->f->truth(in);
        ulps = same_element(LFUSER_F64, &result, &want) ? 0 : INFINITY;
        if (ulps > 0) note_wrong(t, bits_of(LFUSER_F64, x), result, want, ulps);
        return;
    }
    ulps = judge_exact64(j->row, in, result);
    if (ulps > t->worst) t->worst = ulps, t->worst_at = bits_of(LFUSER_F64, x);
    if (!(ulps <= j->row->limit)) note_wrong(t, bits_of(LFUSER_F64, x), result, NAN, ulps);
}

static bool within_absolute(const judging *j, double got, double truth, double step) {
    return j->row && j->row->absolute != 0 && fabs(truth) < 1 && fabs(got - truth) <= j->row->absolute + step;
}

// f16, bf16, f32 and predicates, whose true value a double function knows far below an ulp.
static void judge_narrow(const judging *j, const void *x, const void *got, tally *t) {
    double in = value_of(j->in, x), truth = j->f->truth(in);
    if (j->f->kind == EXACT && !j->fast) {
        uint64_t want[2];
        round_to(j->out, truth, want);
        if (!same_element(j->out, got, want))
            note_wrong(t, bits_of(j->in, x), j->f->predicate ? *(const uint8_t *)got : value_of(j->out, got), truth, NAN);
        return;
    }
    double result = value_of(j->out, got), ulps = ulps_from(j->out, result, truth);
    bool narrow = j->out != LFUSER_F32;
    double limit = j->fast ? (narrow ? 1.01 : 4) : narrow ? 1 : j->row ? j->row->limit : INFINITY;
    if (j->fast && j->row && j->row->limit > limit) limit = j->row->limit;
    if (j->row && !narrow && ulps > limit) ulps = judge_exact32(j->row, (float)in, (float)result);
    if (ulps > limit && within_absolute(j, result, truth, narrow ? ldexp(fabs(truth), j->out == LFUSER_F16 ? -11 : -8) : 0))
        ulps = 0;
    if (ulps > t->worst) t->worst = ulps, t->worst_at = bits_of(j->in, x);
    if (!(ulps <= limit)) note_wrong(t, bits_of(j->in, x), result, truth, ulps);
}

// f32 in blocks; what the fast judge doubts the other one decides.
static void judge_f32_part(const judging *j, size_t begin, size_t end, tally *t) {
    const float *x = (const float *)(const void *)j->x;
    size_t out = lfuser_dtype_bytes(j->out);
    double limit = j->row ? j->row->limit : INFINITY;
    uint8_t doubtful[JUDGE_BLOCK];
    for (size_t i = begin; i < end; i += JUDGE_BLOCK) {
        size_t n = end - i < JUDGE_BLOCK ? end - i : JUDGE_BLOCK, at = SIZE_MAX;
        size_t doubts = judge_f32(j->f, limit, x + i, j->got + i * out, n, doubtful, &t->worst, &at);
        if (at != SIZE_MAX) t->worst_at = bits_of(LFUSER_F32, x + i + at);
        for (size_t k = 0; doubts && k < n; k++)
            if (doubtful[k]) judge_narrow(j, x + i + k, j->got + (i + k) * out, t);
    }
}

static void judge_part(void *arg, size_t begin, size_t end) {
    const judging *j = arg;
    size_t in = lfuser_dtype_bytes(j->in), out = lfuser_dtype_bytes(j->out);
    tally t = {0};
    bool in_blocks = j->in == LFUSER_F32 && !j->fast;
    if (in_blocks) judge_f32_part(j, begin, end, &t);
    for (size_t i = begin; i < end && !in_blocks; i++) {
        if (j->out == LFUSER_F64)
            judge_f64(j, j->x + i * in, j->got + i * out, &t);
        else
            judge_narrow(j, j->x + i * in, j->got + i * out, &t);
    }
    pthread_mutex_lock(j->lock);
    tally_add(j->total, &t);
    pthread_mutex_unlock(j->lock);
}

typedef struct filling {
    lfuser_dtype d;
    uint64_t first, slice;
    char *x;
} filling;
static void fill(void *arg, size_t begin, size_t end) {
    const filling *f = arg;
    for (size_t i = begin; i < end; i++) input_element(f->d, f->first + i, f->slice, f->x + i * lfuser_dtype_bytes(f->d));
}

static bool is_judged(const op *f, const judge_unary *row, lfuser_dtype d) {
    return f->truth && (f->kind == EXACT || (f->kind == MATHS ? row != NULL : d != LFUSER_F64));
}

// One program of up to MAX_OUTPUTS ops over all inputs of a dtype.
static void check_group(machine *m, const options *o, lfuser_dtype d, const op *const *group, size_t n, bool fast) {
    const char *statements[MAX_OUTPUTS];
    for (size_t i = 0; i < n; i++) statements[i] = group[i]->statement;
    program p;
    program_open(&p, m, d, statements, n, fast ? LFUSER_MATH_FAST : LFUSER_MATH_EXACT);
    uint64_t slice = fast ? o->fast_slice : o->slice, count = d == LFUSER_F32 ? (1ull << 32) / slice : input_count(d, o);
    size_t chunk = count < CHUNK ? (size_t)count : CHUNK;
    char *x = malloc(chunk * 8);
    void *got[MAX_OUTPUTS], *want[MAX_OUTPUTS];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    tally totals[MAX_OUTPUTS] = {{0}};
    for (size_t i = 0; i < n; i++) got[i] = malloc(chunk * 8), want[i] = malloc(chunk * 8);
    for (uint64_t first = 0; first < count; first += chunk) {
        size_t now = count - first < chunk ? (size_t)(count - first) : chunk;
        parallel(now, fill, &(filling){d, first, slice, x});
        run_device(m, &p, x, now, got);
        if (!fast) run_interpreter(&p, x, now, want);
        for (size_t i = 0; i < n; i++) {
            totals[i].inputs += now;
            if (!fast) totals[i].differing += count_differing(p.out[i], got[i], want[i], now);
            const judge_unary *row = group[i]->kind == MATHS ? row_of(group[i]->name) : NULL;
            if (!is_judged(group[i], row, d)) continue;
            size_t judged = d != LFUSER_F64 || group[i]->kind == EXACT ? now
                            : first                                    ? 0
                            : o->f64_exact < now                       ? o->f64_exact
                                                                       : now;
            parallel(judged, judge_part, &(judging){group[i], row, d, p.out[i], x, got[i], fast, &lock, &totals[i]});
        }
    }
    for (size_t i = 0; i < n; i++) {
        report(fast ? "fast" : "exact", d, group[i]->name, &totals[i], !fast,
               is_judged(group[i], row_of(group[i]->name), d));
        free(got[i]);
        free(want[i]);
    }
    free(x);
    program_close(&p);
}

static void check_dtype(machine *m, const options *o, lfuser_dtype d, bool fast) {
    const op *group[MAX_OUTPUTS];
    size_t n = 0;
    for (size_t i = 0; i < n_ops; i++) {
        if (wanted(o, ops[i].name) && !(fast && (ops[i].predicate || ops[i].kind == STEPS))) group[n++] = &ops[i];
        if (n == MAX_OUTPUTS || (n && i + 1 == n_ops)) {
            check_group(m, o, d, group, n, fast);
            n = 0;
        }
    }
}

void check_floats(machine *m, const options *o) {
    for (lfuser_dtype d = LFUSER_F16; d <= LFUSER_F64; d++) check_dtype(m, o, d, false);
}

void check_fast(machine *m, const options *o) {
    for (lfuser_dtype d = LFUSER_F16; d <= LFUSER_F32; d++) check_dtype(m, o, d, true);
    check_fast_sums(m, o);
}
