// Reductions: sum, prod, min, max, any, all, argmin, argmax. Float sums and products follow the canonical order of language.md, 6,
// so their bits are defined; the order of the others cannot be told.
#include "interp/internal.h"
#include "interp/loops.h"

enum { CHUNK = LF_SUM_CHUNK, LEVELS = LF_SUM_LEVELS };

// ---- The canonical order --------------------------------------------------------------------------------------------

// Combines n <= CHUNK elements of v into v[0]: over bits 12, 11, 10 of the index, where partners lie half a block apart, then
// over bits 0 to 9, where they are neighbours. A missing partner is the neutral element, which changes nothing.
#define DEFINE_FOLD(name, T, combine)                                                                                       \
    static void fold_##name(void *span, size_t n) {                                                                         \
        T *v = span;                                                                                                        \
        for (size_t half = CHUNK / 2; half >= 1024; half /= 2) {                                                            \
            for (size_t i = 0; i + half < n; i++) v[i] = combine(v[i], v[i + half]);                                        \
            if (n > half) n = half;                                                                                         \
        }                                                                                                                   \
        for (; n > 1; n = (n + 1) / 2) {                                                                                    \
            for (size_t i = 0; i < n / 2; i++) v[i] = combine(v[2 * i], v[2 * i + 1]);                                      \
            if (n & 1) v[n / 2] = v[n - 1];                                                                                 \
        }                                                                                                                   \
    }
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
DEFINE_FOLD(sum_f32, float, PLUS)
DEFINE_FOLD(sum_f64, double, PLUS)
DEFINE_FOLD(sum_c64, lf_c64, lf_c64_add)
DEFINE_FOLD(sum_c128, lf_c128, lf_c128_add)
DEFINE_FOLD(prod_f32, float, TIMES)
DEFINE_FOLD(prod_f64, double, TIMES)
DEFINE_FOLD(prod_c64, lf_c64, lf_c64_mul)
DEFINE_FOLD(prod_c128, lf_c128, lf_c128_mul)

static lf_fold fold_of(lf_opcode code, lf_dtype d) {
    bool sum = code == LF_OP_SUM;
    switch (d) {
    case LF_F32: return sum ? fold_sum_f32 : fold_prod_f32;
    case LF_F64: return sum ? fold_sum_f64 : fold_prod_f64;
    case LF_C64: return sum ? fold_sum_c64 : fold_prod_c64;
    case LF_C128: return sum ? fold_sum_c128 : fold_prod_c128;
    default: return NULL;
    }
}

// Chunk results are reduced by the same rule: level k holds those of k-fold chunks until there are CHUNK of them.
lf_status lf_tree_init(lf_run *run, const lf_op *op, lf_opcode code, lf_dtype d, lf_tree *t) {
    char *room;
    *t = (lf_tree){.bytes = lf_dtype_bytes(d), .fold = fold_of(code, d)};
    if (!t->fold) return lf_refuse(run, op);
    LF_TRY(lf_scratch(run, LEVELS * CHUNK, t->bytes, &room));
    for (unsigned k = 0; k < LEVELS; k++) t->level[k] = room + (size_t)k * CHUNK * t->bytes;
    return NULL;
}

// Whenever a level is full its result goes one up.
void lf_tree_carry(lf_tree *t) {
    for (unsigned k = 0; k + 1 < LEVELS && t->count[k] == CHUNK; k++) {
        t->fold(t->level[k], CHUNK);
        memcpy(t->level[k + 1] + t->count[k + 1] * t->bytes, t->level[k], t->bytes);
        t->count[k] = 0;
        t->count[k + 1]++;
        if (t->top < k + 1) t->top = k + 1;
    }
}

void lf_tree_finish(lf_tree *t, void *out) {
    for (unsigned k = 0; k < t->top; k++) {
        if (t->count[k] == 0) continue;
        t->fold(t->level[k], t->count[k]);
        memcpy(t->level[k + 1] + t->count[k + 1] * t->bytes, t->level[k], t->bytes);
        t->count[k] = 0;
        t->count[k + 1]++;
    }
    t->fold(t->level[t->top], t->count[t->top]);
    memcpy(out, t->level[t->top], t->bytes);
    memset(t->count, 0, sizeof t->count);
    t->top = 0;
}

// ---- Lanes: the elements that make one result, and how they are gone through ----------------------------------------

typedef struct lf_lanes {
    lf_walk outer, inner; // over the kept axes; over the reduced ones, from the place of `outer`
    int64_t count, length;
} lf_lanes;

static void lanes_init(lf_lanes *l, const lf_array *x, uint32_t axes) {
    int64_t shape[2][LF_MAX_RANK], strides[2][LF_MAX_RANK];
    unsigned rank[2] = {0, 0};
    l->count = l->length = 1;
    for (unsigned a = 0; a < x->rank; a++) {
        bool reduced = axes >> a & 1;
        shape[reduced][rank[reduced]] = x->shape[a];
        strides[reduced][rank[reduced]++] = x->strides[a];
        int64_t *n = reduced ? &l->length : &l->count;
        *n = lf_wrapping_mul(*n, x->shape[a]);
    }
    unsigned bytes = lf_dtype_bytes(x->dtype);
    lf_walk_init(&l->outer, bytes, x->data, rank[0], shape[0], strides[0]);
    lf_walk_init(&l->inner, bytes, x->data, rank[1], shape[1], strides[1]);
}

// `inner` goes back to its beginning by itself after `length` elements.
static void lanes_start(lf_lanes *l) {
    if (l->length > 0) l->inner.data = l->outer.data + l->outer.offset * l->outer.bytes;
}

// ---- sum, prod ------------------------------------------------------------------------------------------------------

static lf_status sum_floats(lf_run *run, const lf_op *op, lf_lanes *l, lf_dtype from, lf_array *y) {
    lf_dtype d = lf_dtype_compute(from);
    max_align_t block[LF_BLOCK];
    lf_tree t;
    LF_TRY(lf_tree_init(run, op, op->code, d, &t));
    for (int64_t i = 0; i < l->count; i++, lf_walk_skip(&l->outer)) {
        lanes_start(l);
        for (int64_t left = l->length; left > 0;) {
            int64_t k = left < LF_BLOCK ? left : LF_BLOCK;
            lf_walk_read(&l->inner, block, k);
            lf_convert(from, block, d, t.level[0] + t.count[0] * t.bytes, (size_t)k);
            t.count[0] += (size_t)k;
            left -= k;
            if (left > 0) lf_tree_carry(&t);
        }
        lf_scalar r;
        lf_tree_finish(&t, &r);
        lf_canonical_nans(d, &r, 1);
        lf_convert(d, &r, y->dtype, lf_at(y, i), 1);
    }
    lf_tree_release(run, &t);
    return NULL;
}

#define FOLD_INT(ID, T, expression)                                                                                         \
    case LF_##ID: {                                                                                                         \
        const T *v = span;                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                                   \
            const uint64_t x = (uint64_t)v[i];                                                                              \
            acc = (expression);                                                                                             \
        }                                                                                                                   \
        return acc;                                                                                                         \
    }

static uint64_t add_integers(lf_dtype d, const void *span, int64_t n, uint64_t acc) {
    switch (d) {
        LF_EACH_BOOL(FOLD_INT, acc + x)
        LF_EACH_INT(FOLD_INT, acc + x)
    default: return acc;
    }
}

static uint64_t multiply_integers(lf_dtype d, const void *span, int64_t n, uint64_t acc) {
    switch (d) {
        LF_EACH_BOOL(FOLD_INT, acc * x)
        LF_EACH_INT(FOLD_INT, acc * x)
    default: return acc;
    }
}

// Modulo 2^64, and so modulo every width.
static void sum_integers(const lf_op *op, lf_lanes *l, lf_dtype from, lf_array *y) {
    max_align_t block[LF_BLOCK];
    for (int64_t i = 0; i < l->count; i++, lf_walk_skip(&l->outer)) {
        lanes_start(l);
        uint64_t acc = op->code == LF_OP_PROD;
        for (int64_t left = l->length; left > 0; left -= LF_BLOCK) {
            int64_t k = left < LF_BLOCK ? left : LF_BLOCK;
            lf_walk_read(&l->inner, block, k);
            acc = op->code == LF_OP_SUM ? add_integers(from, block, k, acc) : multiply_integers(from, block, k, acc);
        }
        lf_convert(LF_U64, &acc, y->dtype, lf_at(y, i), 1);
    }
}

// Over no element: +0 and 1.
static lf_status sum_or_product(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    lf_lanes l;
    lanes_init(&l, x, op->axes);
    if (l.length == 0) {
        lf_scalar neutral;
        lf_convert(LF_BOOL, &(uint8_t){op->code == LF_OP_PROD}, y->dtype, &neutral, 1);
        lf_fill(y->data, &neutral, lf_dtype_bytes(y->dtype), lf_numel(y));
        return NULL;
    }
    if (lf_is_float(x->dtype) || lf_is_complex(x->dtype)) return sum_floats(run, op, &l, x->dtype, y);
    sum_integers(op, &l, x->dtype, y);
    return NULL;
}

lf_status lf_reduce_sum(lf_run *run, const lf_op *op) { return sum_or_product(run, op); }
lf_status lf_reduce_prod(lf_run *run, const lf_op *op) { return sum_or_product(run, op); }

// ---- min, max -------------------------------------------------------------------------------------------------------

#define BEST(ID, T, lesser, greater)                                                                                        \
    case LF_##ID: {                                                                                                         \
        const T *v = span;                                                                                                  \
        T best = fresh ? v[0] : *(T *)acc;                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                                   \
            const T x = v[i];                                                                                               \
            best = greatest ? greater : lesser;                                                                             \
        }                                                                                                                   \
        *(T *)acc = best;                                                                                                   \
        return true;                                                                                                        \
    }

// The best of *acc (unless fresh) and n > 0 elements.
static bool best_of(lf_dtype d, bool greatest, const void *span, int64_t n, bool fresh, void *acc) {
    switch (d) {
        LF_EACH_BOOL(BEST, x < best ? x : best, x > best ? x : best)
        LF_EACH_INT(BEST, x < best ? x : best, x > best ? x : best)
        LF_EACH_REAL(BEST, LF_MIN_OF(best, x), LF_MAX_OF(best, x))
    default: return false;
    }
}

// Over no element (in composites; the op itself has a check): the neutral element, for max the least of the dtype.
static void neutral_of(lf_dtype d, bool greatest, lf_scalar *out) {
    double infinity = greatest ? -(double)INFINITY : (double)INFINITY;
    uint8_t truth = !greatest;
    if (d == LF_BOOL)
        lf_convert(LF_BOOL, &truth, d, out, 1);
    else
        lf_convert(LF_F64, &infinity, d, out, 1); // saturates for integers
}

static lf_status least_or_greatest(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    lf_dtype from = x->dtype, d = lf_dtype_compute(from);
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    lf_lanes l;
    lanes_init(&l, x, op->axes);
    max_align_t raw[LF_BLOCK], block[LF_BLOCK];
    for (int64_t i = 0; i < l.count; i++, lf_walk_skip(&l.outer)) {
        lanes_start(&l);
        lf_scalar acc = {{0}};
        if (l.length == 0) neutral_of(d, op->code == LF_OP_RMAX, &acc);
        for (int64_t done = 0; done < l.length; done += LF_BLOCK) {
            int64_t k = l.length - done < LF_BLOCK ? l.length - done : LF_BLOCK;
            lf_walk_read(&l.inner, raw, k);
            lf_convert(from, raw, d, block, (size_t)k);
            if (!best_of(d, op->code == LF_OP_RMAX, block, k, done == 0, &acc)) return lf_refuse(run, op);
        }
        lf_canonical_nans(d, &acc, 1);
        lf_convert(d, &acc, y->dtype, lf_at(y, i), 1);
    }
    return NULL;
}

lf_status lf_reduce_min(lf_run *run, const lf_op *op) { return least_or_greatest(run, op); }
lf_status lf_reduce_max(lf_run *run, const lf_op *op) { return least_or_greatest(run, op); }

// ---- any, all -------------------------------------------------------------------------------------------------------

static lf_status any_or_all(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    bool any = op->code == LF_OP_ANY;
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    lf_lanes l;
    lanes_init(&l, x, op->axes);
    max_align_t raw[LF_BLOCK];
    uint8_t truth[LF_BLOCK];
    for (int64_t i = 0; i < l.count; i++, lf_walk_skip(&l.outer)) {
        lanes_start(&l);
        uint8_t found = !any;
        for (int64_t left = l.length; left > 0; left -= LF_BLOCK) {
            int64_t k = left < LF_BLOCK ? left : LF_BLOCK;
            lf_walk_read(&l.inner, raw, k);
            lf_convert(x->dtype, raw, LF_BOOL, truth, (size_t)k);
            for (int64_t j = 0; j < k; j++) found = any ? found | truth[j] : found & truth[j];
        }
        lf_convert(LF_BOOL, &found, y->dtype, lf_at(y, i), 1);
    }
    return NULL;
}

lf_status lf_reduce_any(lf_run *run, const lf_op *op) { return any_or_all(run, op); }
lf_status lf_reduce_all(lf_run *run, const lf_op *op) { return any_or_all(run, op); }

// ---- argmin, argmax -------------------------------------------------------------------------------------------------

static lf_status over_nothing(lf_run *run, const lf_op *op) {
    return lf_error_at(run->allocator, LF_FAILED_CHECK, op->place, "%s over no element", lf_op_info_of(op->code)->name);
}

// The first among equals (-0 ties with 0); the first NaN wins. In terms of keys, NaN is the extreme that is looked for.
static lf_status position_of_best(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    bool greatest = op->code == LF_OP_ARGMAX;
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    lf_lanes l;
    lanes_init(&l, x, op->axes);
    if (l.length == 0 && l.count > 0) return over_nothing(run, op);
    max_align_t raw[LF_BLOCK];
    uint64_t keys[LF_BLOCK];
    for (int64_t i = 0; i < l.count; i++, lf_walk_skip(&l.outer)) {
        lanes_start(&l);
        uint64_t best = 0;
        int64_t where = 0;
        for (int64_t done = 0; done < l.length; done += LF_BLOCK) {
            int64_t k = l.length - done < LF_BLOCK ? l.length - done : LF_BLOCK;
            lf_walk_read(&l.inner, raw, k);
            lf_keys(x->dtype, raw, (size_t)k, !greatest, keys);
            for (int64_t j = 0; j < k; j++) {
                if (done + j > 0 && (greatest ? keys[j] <= best : keys[j] >= best)) continue;
                best = keys[j];
                where = done + j;
            }
        }
        ((int64_t *)y->data)[i] = where;
    }
    return NULL;
}

lf_status lf_reduce_argmin(lf_run *run, const lf_op *op) { return position_of_best(run, op); }
lf_status lf_reduce_argmax(lf_run *run, const lf_op *op) { return position_of_best(run, op); }
