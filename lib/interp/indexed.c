// INDEXED ops: each result element is found from its index. pad, cat, stack, repeat, roll, triu, tril, take, gather, index,
// onehot, full, iota, eye, tensor. Random numbers are in random.c.
#include "interp/internal.h"

// The part of `a` that begins at `start` and has extent `n` along the axis.
static lf_array part_of(const lf_array *a, unsigned axis, int64_t start, int64_t n) {
    lf_array p = *a;
    p.shape[axis] = n;
    if (lf_numel(&p) > 0) p.data = lf_at(a, start * a->strides[axis]);
    return p;
}

static void copy_array(const lf_array *to, const lf_array *from) {
    lf_walk w, r;
    lf_walk_array(&w, to);
    lf_walk_array(&r, from);
    lf_copy(&w, &r, lf_numel(to));
}

// ---- Moving ops -----------------------------------------------------------------------------------------------------

lf_status lf_indexed_pad(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    lf_fill(y->data, lf_array_of(run, op->operands[1])->data, lf_dtype_bytes(y->dtype), lf_numel(y));
    // What of x lies within y, axis by axis.
    lf_array from = *x, to = *y;
    for (unsigned a = 0; a < x->rank; a++) {
        int64_t low = lf_integer(run, op->extra[a], 0);
        int64_t first = low < 0 ? -low : 0, at = low > 0 ? low : 0;
        int64_t n = x->shape[a] - first, room = y->shape[a] - at;
        if (n > room) n = room;
        if (n < 0) n = 0;
        from = part_of(&from, a, first, n);
        to = part_of(&to, a, at, n);
    }
    copy_array(&to, &from);
    return NULL;
}

lf_status lf_indexed_cat(lf_run *run, const lf_op *op) {
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    int64_t start = 0;
    unsigned axis = (unsigned)op->axis;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const lf_array *x = lf_array_of(run, op->operands[i]);
        lf_array to = part_of(y, axis, start, x->shape[axis]);
        copy_array(&to, x);
        start += x->shape[axis];
    }
    return NULL;
}

lf_status lf_indexed_stack(lf_run *run, const lf_op *op) {
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    for (unsigned i = 0; i < op->n_operands; i++) {
        lf_array to = part_of(y, (unsigned)op->axis, i, 1);
        copy_array(&to, lf_array_of(run, op->operands[i])); // an axis of extent 1 more does not change the order
    }
    return NULL;
}

// Each axis of the result is [times, extent of x], the first walked without moving.
lf_status lf_indexed_repeat(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    int64_t shape[LF_WALK_RANK], strides[LF_WALK_RANK];
    unsigned fresh = (unsigned)(y->rank - x->rank), n = 0;
    if (lf_numel(y) == 0) return NULL;
    for (unsigned a = 0; a < y->rank; a++, n += 2) {
        int64_t extent = a < fresh ? 1 : x->shape[a - fresh];
        shape[n] = y->shape[a] / extent;
        strides[n] = 0;
        shape[n + 1] = extent;
        strides[n + 1] = a < fresh ? 0 : x->strides[a - fresh];
    }
    lf_walk r;
    lf_walk_init(&r, lf_dtype_bytes(x->dtype), x->data, n, shape, strides);
    lf_walk_read(&r, y->data, lf_numel(y));
    return NULL;
}

// Each rolled axis falls into two parts that change places; all combinations of parts are copied.
lf_status lf_indexed_roll(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    if (lf_numel(y) == 0) return NULL;
    for (unsigned parts = 0; parts < 1u << x->rank; parts++) {
        lf_array from = *x, to = *y;
        for (unsigned a = 0; a < x->rank; a++) {
            int64_t n = x->shape[a], by = lf_integer(run, op->extra[a], 0) % n;
            if (by < 0) by += n;
            bool tail = parts >> a & 1; // the last `by` elements go to the front
            from = part_of(&from, a, tail ? n - by : 0, tail ? by : n - by);
            to = part_of(&to, a, tail ? 0 : by, tail ? by : n - by);
        }
        copy_array(&to, &from);
    }
    return NULL;
}

static lf_status triangle(lf_run *run, const lf_op *op, bool upper) {
    const lf_array *x = lf_array_of(run, op->operands[0]);
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    int64_t k = lf_integer(run, op->operands[1], 0), n = lf_numel(y);
    if (n == 0) return NULL;
    lf_walk r;
    lf_walk_array(&r, x);
    lf_walk_read(&r, y->data, n);
    int64_t rows = y->shape[y->rank - 2], columns = y->shape[y->rank - 1];
    unsigned bytes = lf_dtype_bytes(y->dtype);
    for (int64_t row = 0; row < n / columns; row++) {
        char *p = lf_at(y, row * columns);
        int64_t i = row % rows;
        for (int64_t j = 0; j < columns; j++)
            if (upper ? j - i < k : j - i > k) memset(p + j * bytes, 0, bytes);
    }
    return NULL;
}

lf_status lf_indexed_triu(lf_run *run, const lf_op *op) { return triangle(run, op, true); }
lf_status lf_indexed_tril(lf_run *run, const lf_op *op) { return triangle(run, op, false); }

// ---- Indices --------------------------------------------------------------------------------------------------------

// Negative wraps once; one that is still outside gives -1 and is noted.
static lf_status place_of(lf_run *run, const lf_op *op, int64_t index, int64_t extent, int64_t *out_place) {
    int64_t i = index < 0 ? index + extent : index;
    *out_place = i >= 0 && i < extent ? i : -1;
    return *out_place < 0 ? lf_note_index(run, op, index, extent) : NULL;
}

// All indices of `idx` in row-major order as places, or -1; caller frees.
static lf_status all_places(lf_run *run, const lf_op *op, const lf_array *idx, int64_t extent, int64_t **out_places) {
    int64_t n = lf_numel(idx);
    const void *data;
    void *copy;
    LF_TRY(lf_contiguous(run, idx, &data, &copy));
    lf_status s = lf_scratch(run, (size_t)n, sizeof **out_places, out_places);
    if (!s) lf_convert(idx->dtype, data, LF_I64, *out_places, (size_t)n);
    for (int64_t i = 0; i < n && !s; i++) s = place_of(run, op, (*out_places)[i], extent, &(*out_places)[i]);
    lf_free(run->allocator, copy);
    return s;
}

static void take_places(lf_array *y, const lf_array *x, unsigned axis, const int64_t *places, int64_t n) {
    int64_t outer = 1, inner = 1;
    for (unsigned a = 0; a < axis; a++) outer *= x->shape[a];
    for (unsigned a = axis + 1; a < x->rank; a++) inner *= x->shape[a];
    // The leading axes are walked to find where a row begins; a row is read through the trailing axes.
    lf_walk lead, row;
    unsigned bytes = lf_dtype_bytes(x->dtype);
    lf_walk_init(&lead, bytes, x->data, axis, x->shape, x->strides);
    char *to = y->data;
    for (int64_t o = 0; o < outer; o++, lf_walk_skip(&lead))
        for (int64_t i = 0; i < n; i++, to += inner * bytes) {
            if (places[i] < 0) {
                memset(to, 0, (size_t)(inner * bytes));
                continue;
            }
            const char *from = lead.data + (lead.offset + places[i] * x->strides[axis]) * bytes;
            lf_walk_init(&row, bytes, from, x->rank - axis - 1, x->shape + axis + 1, x->strides + axis + 1);
            lf_walk_read(&row, to, inner);
        }
}

// An index counts only where an element is asked for: an empty result reports nothing (take, index and onehot alike).
lf_status lf_indexed_take(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]), *idx = lf_array_of(run, op->operands[1]);
    unsigned axis = (unsigned)op->axis;
    lf_array *y;
    int64_t *places = NULL;
    LF_TRY(lf_new_result(run, op, 0, &y));
    if (lf_numel(y) == 0) return NULL;
    lf_status s = all_places(run, op, idx, x->shape[axis], &places);
    if (!s) take_places(y, x, axis, places, lf_numel(idx));
    lf_free(run->allocator, places);
    return s;
}

lf_status lf_indexed_index(lf_run *run, const lf_op *op) { return lf_indexed_take(run, op); }

lf_status lf_indexed_gather(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]), *idx = lf_array_of(run, op->operands[1]);
    unsigned axis = (unsigned)op->axis, bytes = lf_dtype_bytes(x->dtype);
    lf_array *y;
    int64_t *places = NULL;
    LF_TRY(lf_new_result(run, op, 0, &y));
    lf_status s = all_places(run, op, idx, x->shape[axis], &places);
    // Where x would be read were all indices 0.
    int64_t strides[LF_MAX_RANK] = {0};
    for (unsigned a = 0; a < x->rank; a++) strides[a] = a == axis ? 0 : x->strides[a];
    lf_walk w;
    lf_walk_init(&w, bytes, x->data, x->rank, y->shape, strides);
    char *to = y->data;
    for (int64_t i = 0, n = lf_numel(y); i < n && !s; i++, lf_walk_skip(&w), to += bytes) {
        if (places[i] < 0)
            memset(to, 0, bytes);
        else
            memcpy(to, w.data + (w.offset + places[i] * x->strides[axis]) * bytes, bytes);
    }
    lf_free(run->allocator, places);
    return s;
}

lf_status lf_indexed_onehot(lf_run *run, const lf_op *op) {
    const lf_array *idx = lf_array_of(run, op->operands[0]);
    lf_array *y;
    int64_t *places = NULL;
    LF_TRY(lf_new_result(run, op, 0, &y));
    int64_t n = y->shape[y->rank - 1], *to = y->data;
    if (lf_numel(y) == 0) return NULL;
    lf_status s = all_places(run, op, idx, n, &places);
    memset(to, 0, (size_t)lf_numel(y) * sizeof *to);
    for (int64_t i = 0; !s && i < lf_numel(idx); i++)
        if (places[i] >= 0) to[i * n + places[i]] = 1;
    lf_free(run->allocator, places);
    return s;
}

// ---- Creation -------------------------------------------------------------------------------------------------------

lf_status lf_indexed_full(lf_run *run, const lf_op *op) {
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    lf_fill(y->data, lf_array_of(run, op->operands[0])->data, lf_dtype_bytes(y->dtype), lf_numel(y));
    return NULL;
}

lf_status lf_indexed_tensor(lf_run *run, const lf_op *op) {
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    size_t bytes = (size_t)lf_numel(y) * lf_dtype_bytes(y->dtype);
    if (op->data_bytes != bytes) return lf_refuse(run, op);
    if (bytes) memcpy(y->data, op->data, bytes);
    return NULL;
}

lf_status lf_indexed_eye(lf_run *run, const lf_op *op) {
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    int64_t n = lf_numel(y), columns = y->shape[1];
    unsigned bytes = lf_dtype_bytes(y->dtype);
    lf_scalar one;
    lf_convert(LF_BOOL, &(uint8_t){1}, y->dtype, &one, 1);
    memset(y->data, 0, (size_t)n * bytes);
    for (int64_t i = 0; i < y->shape[0] && i < columns; i++) memcpy(lf_at(y, i * columns + i), &one, bytes);
    return NULL;
}

#define IOTA_INT(ID, T, ...)                                                                                                \
    case LF_##ID: {                                                                                                         \
        T *to = y->data;                                                                                                    \
        const T first = *(const T *)start, by = *(const T *)step;                                                           \
        for (int64_t i = 0; i < n; i++) to[i] = (T)((uint64_t)first + (uint64_t)i * (uint64_t)by);                          \
        return NULL;                                                                                                        \
    }
// Choice: fma(i, step, start) with the true i, rounded once to the dtype, halves included.
#define IOTA_NARROW(ID, T, widen, narrow)                                                                                   \
    case LF_##ID: {                                                                                                         \
        T *to = y->data;                                                                                                    \
        const double first = (double)widen(*(const T *)start), by = (double)widen(*(const T *)step);                        \
        for (int64_t i = 0; i < n; i++) to[i] = narrow(lf_fma_odd((double)i, by, first));                                   \
        break;                                                                                                              \
    }

lf_status lf_indexed_iota(lf_run *run, const lf_op *op) {
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    const void *start = lf_array_of(run, op->operands[0])->data, *step = lf_array_of(run, op->operands[1])->data;
    int64_t n = lf_numel(y);
    switch (y->dtype) {
        LF_EACH_INT(IOTA_INT, )
        IOTA_NARROW(F16, uint16_t, lfm_f16_to_f32, lfm_f64_to_f16)
        IOTA_NARROW(BF16, uint16_t, lfm_bf16_to_f32, lfm_f64_to_bf16)
        IOTA_NARROW(F32, float, , (float))
    case LF_F64:
        for (int64_t i = 0; i < n; i++)
            ((double *)y->data)[i] = fma((double)i, *(const double *)step, *(const double *)start);
        break;
    default: return lf_refuse(run, op);
    }
    lf_canonical_nans(y->dtype, y->data, (size_t)n);
    return NULL;
}
