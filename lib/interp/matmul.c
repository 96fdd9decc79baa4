// matmul: every element is a sum over k: of floats in the canonical order (in f32 for halves), of integers, which wrap; of bools an
// or of ands.
#include "interp/internal.h"

// acc[0 … n-1] += a · b[0 … n-1], for one k: each column is its own sum.
#define ROW(ID, T, statement)                                                                                               \
    case LF_##ID: {                                                                                                         \
        const T x = *(const T *)a, *v = b;                                                                                  \
        T *s = acc;                                                                                                         \
        for (int64_t j = 0; j < n; j++) s[j] = statement;                                                                   \
        return true;                                                                                                        \
    }
#define ROW_INT(ID, T, ...) ROW(ID, T, (T)((uint64_t)s[j] + (uint64_t)x * (uint64_t)v[j]))

static bool add_row(lf_dtype d, const void *a, const void *b, void *acc, int64_t n) {
    switch (d) {
        LF_EACH_BOOL(ROW, s[j] | (x & v[j]))
        LF_EACH_INT(ROW_INT, )
    default: return false;
    }
}

// out[k] = a[k] · b[k · pitch]
#define PRODUCTS(ID, T, statement)                                                                                          \
    case LF_##ID: {                                                                                                         \
        const T *x = a, *v = b;                                                                                             \
        T *s = out;                                                                                                         \
        for (int64_t k = 0; k < n; k++) s[k] = statement;                                                                   \
        return;                                                                                                             \
    }

static void products(lf_dtype d, const void *a, const void *b, int64_t pitch, void *out, int64_t n) {
    switch (d) {
        LF_EACH_REAL(PRODUCTS, x[k] * v[k * pitch])
        LF_EACH_COMPLEX(PRODUCTS, LF_C(mul, x[k], v[k * pitch]))
    default: return;
    }
}

static void dot(lf_tree *t, lf_dtype d, const char *a, const char *b, int64_t pitch, int64_t n, void *out) {
    for (int64_t k = 0; k < n; k += LF_SUM_CHUNK) {
        int64_t now = n - k < LF_SUM_CHUNK ? n - k : LF_SUM_CHUNK;
        products(d, a + k * t->bytes, b + k * pitch * t->bytes, pitch, t->level[0], now);
        t->count[0] = (size_t)now;
        if (k + now < n) lf_tree_carry(t);
    }
    lf_tree_finish(t, out);
}

// An operand as [batch…, rows, columns] in the type of the sums; strides 0 where the batch is broadcast.
typedef struct lf_matrix {
    char *data; // owned; row-major
    int64_t rows, columns;
    int64_t batch_strides[LF_MAX_RANK]; // in elements, an axis of the result's batch each
} lf_matrix;

static lf_status matrix_init(lf_run *run, lf_matrix *m, const lf_array *x, bool left, const lf_array *y,
                             unsigned batch_rank) {
    int64_t n = lf_numel(x);
    lf_dtype d = lf_dtype_compute(x->dtype);
    void *raw;
    LF_TRY(lf_scratch(run, (size_t)n, lf_dtype_bytes(x->dtype), &raw));
    lf_walk w;
    lf_walk_array(&w, x);
    lf_walk_read(&w, raw, n);
    lf_status s = lf_scratch(run, (size_t)n, lf_dtype_bytes(d), &m->data);
    if (!s) lf_convert(x->dtype, raw, d, m->data, (size_t)n);
    lf_free(run->allocator, raw);
    if (x->rank == 1) { // torch: a vector is a row on the left, a column on the right
        m->rows = left ? 1 : x->shape[0];
        m->columns = left ? x->shape[0] : 1;
    } else {
        m->rows = x->shape[x->rank - 2];
        m->columns = x->shape[x->rank - 1];
    }
    int64_t pitch = lf_wrapping_mul(m->rows, m->columns);
    unsigned own = x->rank > 2 ? (unsigned)x->rank - 2 : 0;
    memset(m->batch_strides, 0, sizeof m->batch_strides);
    for (unsigned i = own; i-- > 0; pitch = lf_wrapping_mul(pitch, x->shape[i])) {
        unsigned axis = batch_rank - own + i;
        m->batch_strides[axis] = x->shape[i] == 1 && y->shape[axis] != 1 ? 0 : pitch;
    }
    return s;
}

static lf_status multiply(lf_run *run, const lf_op *op, const lf_matrix *a, const lf_matrix *b, lf_array *y, lf_dtype d,
                          unsigned batch_rank) {
    int64_t batches = 1, rows = a->rows, inner = a->columns, columns = b->columns;
    for (unsigned i = 0; i < batch_rank; i++) batches *= y->shape[i];
    unsigned bytes = lf_dtype_bytes(d);
    char *acc;
    if (b->rows != inner)
        return lf_error_at(run->allocator, LF_FAILED_CHECK, op->place, "matmul: inner extents %lld and %lld",
                           (long long)inner, (long long)b->rows);
    bool floats = (lf_is_float(d) || lf_is_complex(d)) && inner > 0, known = true;
    lf_tree t = {0};
    LF_TRY(lf_scratch(run, (size_t)columns, bytes, &acc));
    lf_status s = floats ? lf_tree_init(run, op, LF_OP_SUM, d, &t) : NULL;
    lf_walk in_a, in_b;
    lf_walk_init(&in_a, bytes, a->data, batch_rank, y->shape, a->batch_strides);
    lf_walk_init(&in_b, bytes, b->data, batch_rank, y->shape, b->batch_strides);
    for (int64_t z = 0; !s && z < batches; z++, lf_walk_skip(&in_a), lf_walk_skip(&in_b))
        for (int64_t i = 0; i < rows && known; i++) {
            const char *row = in_a.data + (in_a.offset + i * inner) * bytes, *column = in_b.data + in_b.offset * bytes;
            memset(acc, 0, (size_t)(columns * bytes));
            for (int64_t j = 0; j < columns && floats; j++)
                dot(&t, d, row, column + j * bytes, columns, inner, acc + j * bytes);
            for (int64_t k = 0; k < inner && known && !floats; k++)
                known = add_row(d, row + k * bytes, column + k * columns * bytes, acc, columns);
            lf_canonical_nans(d, acc, (size_t)columns);
            lf_convert(d, acc, y->dtype, lf_at(y, (z * rows + i) * columns), (size_t)columns);
        }
    lf_tree_release(run, &t);
    lf_free(run->allocator, acc);
    if (s) return s;
    return known ? NULL : lf_refuse(run, op);
}

lf_status lf_whole_matmul(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]), *w = lf_array_of(run, op->operands[1]);
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    if (x->rank == 0 || w->rank == 0 || x->dtype != w->dtype) return lf_refuse(run, op);
    unsigned batch_rank = y->rank - (x->rank > 1) - (w->rank > 1);
    lf_matrix a = {0}, b = {0};
    lf_status s = matrix_init(run, &a, x, true, y, batch_rank);
    if (!s) s = matrix_init(run, &b, w, false, y, batch_rank);
    if (!s && lf_numel(y) > 0) s = multiply(run, op, &a, &b, y, lf_dtype_compute(x->dtype), batch_rank);
    lf_free(run->allocator, a.data);
    lf_free(run->allocator, b.data);
    return s;
}
