// How inputs lie in memory (--layout): what other than row-major tensors from an allocator costs.
#include "bench.h"
#include <string.h>

static const char *const names[] = {
    [BENCH_DENSE] = "dense",
    [BENCH_ODD] = "odd",           // one element beyond an aligned address
    [BENCH_PITCH] = "pitch",       // rows one element further apart than they are long
    [BENCH_PERMUTED] = "permuted", // the first axis is innermost
    [BENCH_EXPANDED] = "expanded", // stride 0 along the first axis
};

bool bench_layout_named(const char *name, bench_layout *out) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name)) return *out = (bench_layout)i, true;
    return false;
}

const char *bench_layout_name(bench_layout layout) { return names[layout]; }

// Elements that memory holds.
static uint64_t set_strides(bench_array *a, bench_layout layout) {
    uint64_t count = 1;
    bool permuted = layout == BENCH_PERMUTED && a->rank > 1;
    if (permuted) a->strides[0] = 1, count = (uint64_t)a->shape[0];
    for (uint32_t axis = a->rank; axis-- > permuted;) {
        a->strides[axis] = (int64_t)count;
        count *= (uint64_t)a->shape[axis];
        if (layout == BENCH_PITCH && axis + 1 == a->rank && a->rank > 1) count++;
    }
    if (layout == BENCH_EXPANDED && a->rank > 1 && a->shape[0] > 0) {
        a->strides[0] = 0;
        count /= (uint64_t)a->shape[0];
    }
    return count;
}

typedef struct laying {
    const bench_array *a;
    char *to;
} laying;

static void lay_rows(void *arg, uint64_t begin, uint64_t end) {
    const laying *l = arg;
    const bench_array *a = l->a;
    uint64_t bytes = lfuser_dtype_bytes(a->dtype), length = (uint64_t)a->shape[a->rank - 1];
    for (uint64_t row = begin; row < end; row++) {
        int64_t at = 0;
        uint64_t left = row;
        for (uint32_t axis = a->rank - 1; axis-- > 0; left /= (uint64_t)a->shape[axis])
            at += (int64_t)(left % (uint64_t)a->shape[axis]) * a->strides[axis];
        const char *from = (const char *)a->host + row * length * bytes;
        for (uint64_t i = 0; i < length; i++, at += a->strides[a->rank - 1])
            memcpy(l->to + (uint64_t)at * bytes, from + i * bytes, bytes);
    }
}

void *bench_lay_out(bench_array *a, bench_layout layout, uint64_t *out_bytes) {
    uint64_t bytes = lfuser_dtype_bytes(a->dtype), count = set_strides(a, layout);
    uint64_t slice = a->rank && a->shape[0] > 0 ? a->bytes / (uint64_t)a->shape[0] : 0;
    a->offset = layout == BENCH_ODD ? bytes : 0;
    a->bytes_read = a->bytes;
    if (layout == BENCH_EXPANDED && a->rank > 1 && slice) { // what is the same memory must be the same numbers
        for (int64_t i = 1; i < a->shape[0]; i++) memcpy((char *)a->host + (uint64_t)i * slice, a->host, slice);
        a->bytes_read = slice;
    }
    *out_bytes = count * bytes + a->offset;
    char *memory = bench_alloc(*out_bytes);
    laying l = {.a = a, .to = memory + a->offset};
    if (!a->rank)
        memcpy(l.to, a->host, a->bytes);
    else if (a->count)
        bench_parallel(a->count / (uint64_t)a->shape[a->rank - 1], 1, lay_rows, &l);
    return memory;
}
