// Random data, fast enough for gigabytes: a hash of the position picks from a table of the normal distribution's quantiles.
#include "bench.h"
#include "ir/dtype.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- threads

typedef struct piece {
    pthread_t thread;
    void (*fn)(void *arg, uint64_t begin, uint64_t end);
    void *arg;
    uint64_t begin, end;
} piece;

static void *do_piece(void *arg) {
    piece *p = arg;
    if (p->begin < p->end) p->fn(p->arg, p->begin, p->end);
    return NULL;
}

void bench_parallel(uint64_t n, uint64_t grain, void (*fn)(void *arg, uint64_t begin, uint64_t end), void *arg) {
    enum { MOST = 64 };
    piece pieces[MOST];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t units = (n + grain - 1) / grain, threads = cores < 1 ? 1 : cores > MOST ? MOST : (uint64_t)cores;
    if (threads > units) threads = units;
    for (uint64_t i = 0; i < threads; i++) {
        uint64_t end = units * (i + 1) / threads * grain;
        pieces[i] = (piece){.fn = fn, .arg = arg, .begin = units * i / threads * grain, .end = end < n ? end : n};
        if (i + 1 == threads || pthread_create(&pieces[i].thread, NULL, do_piece, &pieces[i])) {
            pieces[i].thread = pthread_self();
            do_piece(&pieces[i]);
        }
    }
    for (uint64_t i = 0; i < threads; i++)
        if (!pthread_equal(pieces[i].thread, pthread_self())) pthread_join(pieces[i].thread, NULL);
}

// ---- numbers

// SplitMix64 of the position.
uint64_t bench_random(uint64_t seed, uint64_t at) {
    uint64_t z = seed * 0xd1342543de82ef95u + (at + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

enum { QUANTILES = 1 << 16 };

// x with Φ(x) = p, by Newton's method from below zero outwards.
static void fill_quantiles(float *q) {
    double x = -4.5;
    for (int i = 0; i < QUANTILES / 2; i++) {
        double p = (i + 0.5) / QUANTILES;
        for (int k = 0; k < 50; k++) {
            double step = (0.5 * erfc(-x * M_SQRT1_2) - p) / (exp(-0.5 * x * x) * 0.3989422804014327);
            x -= step;
            if (fabs(step) < 1e-9) break;
        }
        q[i] = (float)x;
        q[QUANTILES - 1 - i] = (float)-x;
    }
}

typedef struct filling {
    lfuser_dtype dtype;
    uint64_t limit, seed;
    void *to;
    const float *quantiles;
    const uint16_t *halves;
} filling;

// Two bytes an element: four elements a random word. `begin` is a multiple of four.
static void fill_halves(const filling *f, uint64_t begin, uint64_t end) {
    uint16_t *to = f->to;
    for (uint64_t i = begin; i < end; i += 4) {
        uint64_t word = bench_random(f->seed, i / 4);
        for (uint64_t k = 0; k < 4 && i + k < end; k++) to[i + k] = f->halves[word >> 16 * k & 0xffff];
    }
}

// The low bits of the significand are random too.
static void fill_f32(const filling *f, uint64_t begin, uint64_t end) {
    float *to = f->to;
    for (uint64_t i = begin; i < end; i++) {
        uint64_t word = bench_random(f->seed, i);
        uint32_t bits;
        memcpy(&bits, &f->quantiles[word & 0xffff], 4);
        bits ^= (uint32_t)(word >> 16) & 0xff;
        memcpy(&to[i], &bits, 4);
    }
}

static void fill_range(void *arg, uint64_t begin, uint64_t end) {
    const filling *f = arg;
    if (f->halves) {
        fill_halves(f, begin, end);
        return;
    }
    if (f->dtype == LFUSER_F32 || f->dtype == LFUSER_C64) {
        fill_f32(f, begin, end);
        return;
    }
    unsigned bytes = lfuser_dtype_bytes(f->dtype);
    for (uint64_t i = begin; i < end; i++) {
        uint64_t word = bench_random(f->seed, i);
        if (f->dtype == LFUSER_F64 || f->dtype == LFUSER_C128) {
            double x = f->quantiles[word & 0xffff] * (1 + (double)(word >> 16) * 0x1p-63);
            memcpy((double *)f->to + i, &x, 8);
            continue;
        }
        uint64_t limit = f->dtype == LFUSER_BOOL ? 2 : f->limit ? f->limit : 100;
        uint64_t value = (uint64_t)(((unsigned __int128)word * limit) >> 64);
        memcpy((char *)f->to + i * bytes, &value, bytes);
    }
}

void bench_fill(lfuser_dtype dtype, uint64_t limit, uint64_t seed, void *to, uint64_t count) {
    filling f = {dtype, limit, seed, to, NULL, NULL};
    float *quantiles = bench_alloc(QUANTILES * sizeof *quantiles);
    uint16_t *halves = NULL;
    fill_quantiles(quantiles);
    f.quantiles = quantiles;
    if (dtype == LFUSER_BF16 || dtype == LFUSER_F16) {
        halves = bench_alloc(QUANTILES * sizeof *halves);
        for (int i = 0; i < QUANTILES; i++) halves[i] = lf_f32_to_half((lf_dtype)dtype, quantiles[i]);
        f.halves = halves;
    }
    if (dtype == LFUSER_C64 || dtype == LFUSER_C128) count *= 2;
    bench_parallel(count, 1 << 16, fill_range, &f);
    free(halves);
    free(quantiles);
}
