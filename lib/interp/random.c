// Random numbers: Philox-4x32-10 by element number, uniform and normal (language.md, 7).
#include "interp/internal.h"

void lf_philox(uint64_t key, uint64_t counter, uint32_t out_words[4]) {
    uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        uint64_t p = (uint64_t)0xd2511f53u * x[0], q = (uint64_t)0xcd9e8d57u * x[2];
        uint32_t next[4] = {(uint32_t)(q >> 32) ^ x[1] ^ k0, (uint32_t)q, (uint32_t)(p >> 32) ^ x[3] ^ k1, (uint32_t)p};
        memcpy(x, next, sizeof x);
    }
    memcpy(out_words, x, sizeof x);
}

// The value in [0, 1) of element number e; exact in double for every dtype.
static double unit(lf_dtype d, uint64_t key, uint64_t e) {
    uint32_t w[4];
    if (d == LF_F64) {
        lf_philox(key, e >> 1, w);
        unsigned high = 2 * (unsigned)(e & 1);
        return (double)(((uint64_t)w[high] << 32 | w[high + 1]) >> 11) * 0x1p-53;
    }
    lf_philox(key, e >> 2, w);
    uint32_t word = w[e & 3];
    if (d == LF_F16) return (double)(word >> 21) * 0x1p-11;
    if (d == LF_BF16) return (double)(word >> 24) * 0x1p-8;
    return (double)(word >> 8) * 0x1p-24;
}

// Box-Muller; a pair of elements (2k, 2k + 1) shares u1 and u2.
static float normal_f32(uint64_t key, uint64_t e) {
    float u1 = (float)unit(LF_F32, key, e & ~(uint64_t)1) + 0x1p-24f, u2 = (float)unit(LF_F32, key, e | 1);
    float r = sqrtf(-2.0f * lfm_log_f32(u1)), angle = 6.28318530717958647692f * u2;
    return r * (e & 1 ? lfm_sin_f32(angle) : lfm_cos_f32(angle));
}

static double normal_f64(uint64_t key, uint64_t e) {
    double u1 = unit(LF_F64, key, e & ~(uint64_t)1) + 0x1p-53, u2 = unit(LF_F64, key, e | 1);
    double r = sqrt(-2.0 * lfm_log_f64(u1)), angle = 6.28318530717958647692 * u2;
    return r * (e & 1 ? lfm_sin_f64(angle) : lfm_cos_f64(angle));
}

// What both ops read: [lo | mean, hi | std, seed, offset]. Halves are computed in f32.
typedef struct lf_draw {
    lf_dtype d;
    float a32, b32;
    double a64, b64;
    uint64_t key, offset;
} lf_draw;

static lf_draw read_operands(lf_run *run, const lf_op *op) {
    const lf_array *a = lf_array_of(run, op->operands[0]), *b = lf_array_of(run, op->operands[1]);
    lf_draw r = {.d = op->results[0].type.dtype};
    lf_convert(a->dtype, a->data, LF_F32, &r.a32, 1);
    lf_convert(b->dtype, b->data, LF_F32, &r.b32, 1);
    lf_convert(a->dtype, a->data, LF_F64, &r.a64, 1);
    lf_convert(b->dtype, b->data, LF_F64, &r.b64, 1);
    r.key = (uint64_t)lf_integer(run, op->operands[2], 0);
    r.offset = (uint64_t)lf_integer(run, op->operands[3], 0);
    return r;
}

// fma(u, hi - lo, lo) with hi - lo in f32 for halves and one rounding at the end.
static void uniform_element(const lf_draw *r, uint64_t e, void *to) {
    double u = unit(r->d, r->key, e);
    if (r->d == LF_F64) {
        double y = fma(u, r->b64 - r->a64, r->a64);
        memcpy(to, &y, sizeof y);
    } else if (r->d == LF_F32) {
        float y = fmaf((float)u, r->b32 - r->a32, r->a32);
        memcpy(to, &y, sizeof y);
    } else {
        double odd = lf_fma_odd(u, (double)(r->b32 - r->a32), (double)r->a32);
        lf_convert(LF_F64, &odd, r->d, to, 1);
    }
}

static void normal_element(const lf_draw *r, uint64_t e, void *to) {
    if (r->d == LF_F64) {
        double y = r->a64 + r->b64 * normal_f64(r->key, e);
        memcpy(to, &y, sizeof y);
    } else {
        float y = r->a32 + r->b32 * normal_f32(r->key, e);
        lf_convert(LF_F32, &y, r->d, to, 1);
    }
}

static lf_status draw(lf_run *run, const lf_op *op, void (*element)(const lf_draw *, uint64_t, void *)) {
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    if (!lf_is_float(y->dtype)) return lf_refuse(run, op);
    lf_draw r = read_operands(run, op);
    int64_t n = lf_numel(y);
    for (int64_t i = 0; i < n; i++) element(&r, (uint64_t)i + r.offset, lf_at(y, i));
    lf_canonical_nans(y->dtype, y->data, (size_t)n);
    return NULL;
}

lf_status lf_indexed_uniform(lf_run *run, const lf_op *op) { return draw(run, op, uniform_element); }
lf_status lf_indexed_normal(lf_run *run, const lf_op *op) { return draw(run, op, normal_element); }
