// NumPy's .npy files: one array each. Versions 1.0 to 3.0 are read, in either byte order and either memory order; 1.0 is written.
// Does not belong here: what a program expects of an array (lfuser-run/given.c).
#ifndef LF_TOOLS_COMMON_NPY_H
#define LF_TOOLS_COMMON_NPY_H
#include "base/status.h"
#include "ir/ir.h"

typedef struct lf_npy {
    lf_dtype dtype;   // LF_NO_DTYPE: elements of `element` bytes without a meaning (V2, as bf16 arrays are kept)
    char descr[8];    // as in the file: "<f4"
    unsigned element; // bytes
    unsigned rank;
    int64_t shape[LF_MAX_RANK], strides[LF_MAX_RANK]; // strides in elements, Fortran order included
    uint64_t bytes;                                   // of data: elements times their size
    void *data;                                       // owned; little-endian, aligned to 16; NULL when there are no bytes
} lf_npy;

// The array that a file begins with; bytes behind it are left alone, as NumPy does. `name` is for messages.
lf_status lf_npy_parse(const lf_allocator *a, const char *name, const void *file, size_t size,
                       lf_npy *out_array) LF_MUST_USE;
lf_status lf_npy_read(const lf_allocator *a, const char *path, lf_npy *out_array) LF_MUST_USE;
void lf_npy_finish(const lf_allocator *a, lf_npy *array);

// Row-major elements. bf16, which .npy cannot name, is written as its bits ("<u2").
lf_status lf_npy_write(const lf_allocator *a, const char *path, lf_dtype dtype, unsigned rank, const int64_t *shape,
                       const void *data) LF_MUST_USE;

// All of a file ("-" is standard input), with a NUL behind it that `size` does not count. Caller frees with lf_free.
lf_status lf_read_file(const lf_allocator *a, const char *path, char **out_data, size_t *out_size) LF_MUST_USE;
#endif
