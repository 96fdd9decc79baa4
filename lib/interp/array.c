// Strided memory: reading, writing and copying elements in row-major order.
#include "interp/internal.h"

int64_t lf_numel(const lf_array *a) {
    int64_t n = 1;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->shape[i] == 0) return 0; // before extents beside it overflow
    for (unsigned i = 0; i < a->rank; i++) n *= a->shape[i];
    return n;
}

void lf_set_contiguous(lf_array *a) {
    int64_t pitch = 1;
    for (unsigned i = a->rank; i-- > 0; pitch = lf_wrapping_mul(pitch, a->shape[i])) a->strides[i] = pitch;
}

bool lf_is_contiguous(const lf_array *a) {
    int64_t pitch = 1;
    if (lf_numel(a) == 0) return true;
    for (unsigned i = a->rank; i-- > 0;) {
        if (a->shape[i] != 1 && a->strides[i] != pitch) return false;
        pitch *= a->shape[i];
    }
    return true;
}

// Axes of extent 1 are dropped and axes that follow each other in memory become one, so that inner runs are long.
void lf_walk_init(lf_walk *w, unsigned bytes, const void *data, unsigned rank, const int64_t *shape,
                  const int64_t *strides) {
    w->bytes = bytes;
    w->data = (char *)(uintptr_t)data;
    w->offset = 0;
    w->rank = 0;
    for (unsigned i = 0; i < rank; i++) {
        unsigned last = w->rank - 1;
        if (shape[i] == 1) continue;
        if (w->rank > 0 && shape[i] > 0 && w->strides[last] == lf_wrapping_mul(shape[i], strides[i])) {
            w->shape[last] = lf_wrapping_mul(w->shape[last], shape[i]);
            w->strides[last] = strides[i];
            continue;
        }
        w->shape[w->rank] = shape[i];
        w->strides[w->rank] = strides[i];
        w->rank++;
    }
    if (w->rank == 0) {
        w->shape[0] = 1;
        w->strides[0] = 1;
        w->rank = 1;
    }
    memset(w->index, 0, sizeof w->index);
}

void lf_walk_array(lf_walk *w, const lf_array *a) {
    lf_walk_init(w, lf_dtype_bytes(a->dtype), a->data, a->rank, a->shape, a->strides);
}

void lf_walk_lanes(lf_walk *w, const lf_array *a, unsigned axis) {
    int64_t shape[LF_MAX_RANK], strides[LF_MAX_RANK];
    unsigned n = 0;
    for (unsigned i = 0; i <= a->rank && a->rank > 0; i++) {
        if (i == axis) continue;
        unsigned from = i == a->rank ? axis : i;
        shape[n] = a->shape[from];
        strides[n++] = a->strides[from];
    }
    lf_walk_init(w, lf_dtype_bytes(a->dtype), a->data, n, shape, strides);
}

// Moves k elements on within the innermost axis, then over to the next run if it is at its end.
static void advance(lf_walk *w, int64_t k) {
    unsigned i = w->rank - 1;
    w->index[i] += k;
    w->offset += k * w->strides[i];
    while (w->index[i] == w->shape[i]) {
        w->offset -= w->index[i] * w->strides[i];
        w->index[i] = 0;
        if (i == 0) return; // at the end, and so at the beginning again
        i--;
        w->index[i]++;
        w->offset += w->strides[i];
    }
}

void lf_walk_skip(lf_walk *w) { advance(w, 1); }

#define STRIDED(N)                                                                                                          \
    case N:                                                                                                                 \
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_stride * N, from + i * from_stride * N, N);                      \
        return;

static void move_strided(char *to, int64_t to_stride, const char *from, int64_t from_stride, unsigned bytes, int64_t n) {
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)n * bytes);
        return;
    }
    switch (bytes) {
        STRIDED(1)
        STRIDED(2)
        STRIDED(4)
        STRIDED(8)
        STRIDED(16)
    }
}

void lf_walk_read(lf_walk *w, void *out, int64_t n) {
    char *to = out;
    while (n > 0) {
        unsigned last = w->rank - 1;
        int64_t left = w->shape[last] - w->index[last], k = n < left ? n : left;
        move_strided(to, 1, w->data + w->offset * w->bytes, w->strides[last], w->bytes, k);
        advance(w, k);
        to += k * w->bytes;
        n -= k;
    }
}

void lf_walk_write(lf_walk *w, const void *in, int64_t n) {
    const char *from = in;
    while (n > 0) {
        unsigned last = w->rank - 1;
        int64_t left = w->shape[last] - w->index[last], k = n < left ? n : left;
        move_strided(w->data + w->offset * w->bytes, w->strides[last], from, 1, w->bytes, k);
        advance(w, k);
        from += k * w->bytes;
        n -= k;
    }
}

void lf_copy(lf_walk *to, lf_walk *from, int64_t n) {
    max_align_t block[LF_BLOCK]; // 16 bytes an element at least
    for (int64_t done = 0; done < n;) {
        int64_t k = n - done < LF_BLOCK ? n - done : LF_BLOCK;
        lf_walk_read(from, block, k);
        lf_walk_write(to, block, k);
        done += k;
    }
}

void lf_fill(void *to, const void *element, unsigned bytes, int64_t n) { move_strided(to, 1, element, 0, bytes, n); }

lf_status lf_contiguous(lf_run *run, const lf_array *a, const void **out_data, void **out_copy) {
    *out_copy = NULL;
    *out_data = a->data;
    if (lf_is_contiguous(a)) return NULL;
    int64_t n = lf_numel(a);
    LF_TRY(lf_scratch(run, (size_t)n, lf_dtype_bytes(a->dtype), out_copy));
    lf_walk w;
    lf_walk_array(&w, a);
    lf_walk_read(&w, *out_copy, n);
    *out_data = *out_copy;
    return NULL;
}
