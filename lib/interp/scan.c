// Scans along an axis: cumsum, cumprod, cummin, cummax, logcumsumexp; element after element.
#include "interp/internal.h"

// Replaces the n elements of a lane, in the type of the computation, by their scan.
typedef void lf_scan_fn(lf_dtype d, void *span, int64_t n);

#define SCAN(ID, T, combine)                                                                                                \
    case LF_##ID: {                                                                                                         \
        T *v = span;                                                                                                        \
        for (int64_t i = 1; i < n; i++) v[i] = combine(v[i - 1], v[i]);                                                     \
        return;                                                                                                             \
    }
#define SCAN_INT(ID, T, operator)                                                                                           \
    case LF_##ID: {                                                                                                         \
        T *v = span;                                                                                                        \
        for (int64_t i = 1; i < n; i++) v[i] = (T)((uint64_t)v[i - 1] operator(uint64_t) v[i]);                             \
        return;                                                                                                             \
    }
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))

static void scan_sum(lf_dtype d, void *span, int64_t n) {
    switch (d) {
        LF_EACH_INT(SCAN_INT, +)
        LF_EACH_REAL(SCAN, PLUS)
        SCAN(C64, lf_c64, lf_c64_add)
        SCAN(C128, lf_c128, lf_c128_add)
    default: return;
    }
}

static void scan_product(lf_dtype d, void *span, int64_t n) {
    switch (d) {
        LF_EACH_INT(SCAN_INT, *)
        LF_EACH_REAL(SCAN, TIMES)
        SCAN(C64, lf_c64, lf_c64_mul)
        SCAN(C128, lf_c128, lf_c128_mul)
    default: return;
    }
}

// The greatest m so far and s = Σ exp(x - m): a new m rescales s. An infinite m stands for the result itself.
#define SCAN_EXP(ID, T, ...)                                                                                                \
    case LF_##ID: {                                                                                                         \
        T *v = span, m = -(T)INFINITY, s = 0;                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                                   \
            const T x = v[i], before = m;                                                                                   \
            m = LF_MAX_OF(m, x);                                                                                            \
            if (m != m || m - m != 0) {                                                                                     \
                v[i] = m;                                                                                                   \
                continue;                                                                                                   \
            }                                                                                                               \
            s = (before == m ? s : s * LF_MATH(exp, before - m)) + LF_MATH(exp, x - m);                                     \
            v[i] = m + LF_MATH(log, s);                                                                                     \
        }                                                                                                                   \
        return;                                                                                                             \
    }

static void scan_exp(lf_dtype d, void *span, int64_t n) {
    switch (d) {
        LF_EACH_REAL(SCAN_EXP, )
    default: return;
    }
}

static lf_status scan_values(lf_run *run, const lf_op *op, lf_scan_fn *scan) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    // Halves are scanned in f32 and rounded at the end; integers in the result's dtype, to which the builder cast them.
    lf_dtype d = lf_dtype_compute(x->dtype);
    int64_t n = x->rank ? x->shape[op->axis] : 1, total = lf_numel(x);
    if (total == 0) return NULL;
    void *raw, *wide = NULL;
    LF_TRY(lf_scratch(run, (size_t)n, lf_dtype_bytes(x->dtype), &raw));
    lf_status s = lf_scratch(run, (size_t)n, 16, &wide);
    lf_walk from, to;
    lf_walk_lanes(&from, x, (unsigned)op->axis);
    lf_walk_lanes(&to, y, (unsigned)op->axis);
    char *out = s ? NULL : lf_alloc(run->allocator, (size_t)n * lf_dtype_bytes(y->dtype));
    if (!s && !out) s = lf_out_of_memory();
    for (int64_t lane = 0; !s && lane < total / n; lane++) {
        lf_walk_read(&from, raw, n);
        lf_convert(x->dtype, raw, d, wide, (size_t)n);
        scan(d, wide, n);
        lf_canonical_nans(d, wide, (size_t)n);
        lf_convert(d, wide, y->dtype, out, (size_t)n);
        lf_walk_write(&to, out, n);
    }
    lf_free(run->allocator, raw);
    lf_free(run->allocator, wide);
    lf_free(run->allocator, out);
    return s;
}

lf_status lf_whole_cumsum(lf_run *run, const lf_op *op) { return scan_values(run, op, scan_sum); }
lf_status lf_whole_cumprod(lf_run *run, const lf_op *op) { return scan_values(run, op, scan_product); }
lf_status lf_whole_logcumsumexp(lf_run *run, const lf_op *op) { return scan_values(run, op, scan_exp); }

// The extreme so far and the position of the last element equal to it (-0 = 0); a NaN is the extreme from then on, and the last
// NaN counts. Values are moved.
static lf_status scan_extreme(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    bool greatest = op->code == LF_OP_CUMMAX;
    lf_array *values, *positions;
    LF_TRY(lf_new_result(run, op, 0, &values));
    LF_TRY(lf_new_result(run, op, 1, &positions));
    int64_t n = x->rank ? x->shape[op->axis] : 1, total = lf_numel(x);
    unsigned bytes = lf_dtype_bytes(x->dtype);
    if (lf_is_complex(x->dtype)) return lf_refuse(run, op);
    if (total == 0) return NULL;
    char *raw;
    uint64_t *keys = NULL;
    LF_TRY(lf_scratch(run, (size_t)n, bytes, &raw));
    lf_status s = lf_scratch(run, (size_t)n, sizeof *keys, &keys);
    lf_walk from, to_values, to_positions;
    lf_walk_lanes(&from, x, (unsigned)op->axis);
    lf_walk_lanes(&to_values, values, (unsigned)op->axis);
    lf_walk_lanes(&to_positions, positions, (unsigned)op->axis);
    for (int64_t lane = 0; !s && lane < total / n; lane++) {
        lf_walk_read(&from, raw, n);
        lf_keys(x->dtype, raw, (size_t)n, !greatest, keys);
        int64_t best = 0;
        for (int64_t i = 0; i < n; i++) {
            if (greatest ? keys[i] >= keys[best] : keys[i] <= keys[best]) best = i;
            lf_walk_write(&to_values, raw + best * bytes, 1);
            lf_walk_write(&to_positions, &best, 1);
        }
    }
    lf_free(run->allocator, raw);
    lf_free(run->allocator, keys);
    return s;
}

lf_status lf_whole_cummax(lf_run *run, const lf_op *op) { return scan_extreme(run, op); }
lf_status lf_whole_cummin(lf_run *run, const lf_op *op) { return scan_extreme(run, op); }
