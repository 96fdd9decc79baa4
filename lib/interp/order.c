// sort, topk, and the keys that order elements of every dtype alike.
#include "interp/internal.h"

#define FLIP_SIGN ((uint64_t)1 << 63)

// Negative numbers by complement, others above them.
static uint64_t float_key(double x, bool nan_least) {
    if (x != x) return nan_least ? 0 : UINT64_MAX;
    if (x == 0) x = 0; // -0 becomes +0
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & FLIP_SIGN ? ~bits : bits | FLIP_SIGN;
}

#define KEYS(ID, T, expression)                                                                                             \
    case LF_##ID: {                                                                                                         \
        const T *x = src;                                                                                                   \
        for (size_t i = 0; i < n; i++) keys[i] = (expression);                                                              \
        return;                                                                                                             \
    }

void lf_keys(lf_dtype d, const void *src, size_t n, bool nan_least, uint64_t *keys) {
    switch (d) {
        LF_EACH_BOOL(KEYS, x[i])
        LF_EACH_UNSIGNED(KEYS, x[i])
        LF_EACH_SIGNED(KEYS, (uint64_t)(int64_t)x[i] ^ FLIP_SIGN)
        LF_EACH_REAL(KEYS, float_key((double)x[i], nan_least))
        KEYS(F16, uint16_t, float_key((double)lfm_f16_to_f32(x[i]), nan_least))
        KEYS(BF16, uint16_t, float_key((double)lfm_bf16_to_f32(x[i]), nan_least))
    default: memset(keys, 0, n * sizeof *keys); return;
    }
}

typedef struct lf_entry {
    uint64_t key;
    int64_t position;
} lf_entry;

// Stable, bottom-up. The result is where the return value points: one of the two.
static lf_entry *merge_sort(lf_entry *v, lf_entry *spare, int64_t n) {
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * width) {
            int64_t mid = lo + width < n ? lo + width : n, hi = lo + 2 * width < n ? lo + 2 * width : n;
            for (int64_t i = lo, j = mid, k = lo; k < hi; k++)
                spare[k] = i < mid && (j == hi || v[i].key <= v[j].key) ? v[i++] : v[j++];
        }
        lf_entry *other = v;
        v = spare;
        spare = other;
    }
    return v;
}

// Room for one lane of n elements.
typedef struct lf_sorter {
    char *raw;
    uint64_t *keys;
    lf_entry *entries, *spare;
} lf_sorter;

static lf_status sorter_init(lf_run *run, lf_sorter *s, int64_t n, unsigned bytes) {
    *s = (lf_sorter){0};
    LF_TRY(lf_scratch(run, (size_t)n, bytes, &s->raw));
    LF_TRY(lf_scratch(run, (size_t)n, sizeof *s->keys, &s->keys));
    LF_TRY(lf_scratch(run, (size_t)n, sizeof *s->entries, &s->entries));
    return lf_scratch(run, (size_t)n, sizeof *s->spare, &s->spare);
}

static void sorter_finish(lf_run *run, lf_sorter *s) {
    lf_free(run->allocator, s->raw);
    lf_free(run->allocator, s->keys);
    lf_free(run->allocator, s->entries);
    lf_free(run->allocator, s->spare);
}

// Writes the first k of the n sorted elements of a lane. Descending: by complemented keys, so equal elements keep their order.
static void sort_lane(lf_sorter *s, lf_dtype d, int64_t n, int64_t k, bool descending, lf_walk *from, lf_walk *values,
                      lf_walk *positions) {
    unsigned bytes = lf_dtype_bytes(d);
    lf_walk_read(from, s->raw, n);
    lf_keys(d, s->raw, (size_t)n, false, s->keys);
    for (int64_t i = 0; i < n; i++) s->entries[i] = (lf_entry){descending ? ~s->keys[i] : s->keys[i], i};
    const lf_entry *sorted = merge_sort(s->entries, s->spare, n);
    for (int64_t i = 0; i < k; i++) {
        lf_walk_write(values, s->raw + sorted[i].position * bytes, 1);
        lf_walk_write(positions, &sorted[i].position, 1);
    }
}

// A tensor of rank 0 is one lane of one element.
static lf_status sort_all(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    lf_array *values, *positions;
    LF_TRY(lf_new_result(run, op, 0, &values));
    LF_TRY(lf_new_result(run, op, 1, &positions));
    unsigned axis = (unsigned)op->axis;
    int64_t n = x->rank ? x->shape[axis] : 1, k = x->rank ? values->shape[axis] : 1, written = lf_numel(values);
    if (lf_is_complex(x->dtype)) return lf_refuse(run, op);
    if (written == 0) return NULL;
    if (k > n)
        return lf_error_at(run->allocator, LF_FAILED_CHECK, op->place, "%s: %lld of %lld elements",
                           lf_op_info_of(op->code)->name, (long long)k, (long long)n);
    lf_sorter s;
    lf_walk from, to_values, to_positions;
    lf_walk_lanes(&from, x, axis);
    lf_walk_lanes(&to_values, values, axis);
    lf_walk_lanes(&to_positions, positions, axis);
    lf_status status = sorter_init(run, &s, n, lf_dtype_bytes(x->dtype));
    for (int64_t lane = 0; !status && lane < written / k; lane++)
        sort_lane(&s, x->dtype, n, k, op->flag, &from, &to_values, &to_positions);
    sorter_finish(run, &s);
    return status;
}

lf_status lf_whole_sort(lf_run *run, const lf_op *op) { return sort_all(run, op); }
lf_status lf_whole_topk(lf_run *run, const lf_op *op) { return sort_all(run, op); }
