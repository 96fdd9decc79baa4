// Tensors in any layout: a picture of their storage in host memory, and the storage itself on the device, with guard zones on
// both sides that nobody may write to.
#ifndef LF_TEST_TENSORS_H
#define LF_TEST_TENSORS_H
#include "test/support/api/device_test.h"

typedef enum layout {
    LAYOUT_DENSE,    // row-major
    LAYOUT_ODD,      // row-major, one element beyond an aligned address
    LAYOUT_REPEATED, // stride 0 along the last axis (not for outputs)
    LAYOUT_REVERSED, // row-major with negative strides
    LAYOUT_PERMUTED, // the first axis is innermost
    LAYOUT_GAPPED,   // every second element, and gaps between rows
    N_LAYOUTS
} layout;

typedef struct test_tensor {
    lfuser_tensor view; // what is passed to the library; its shape and strides lie here: do not move the struct
    lfuser_dtype dtype;
    uint32_t rank;
    int64_t shape[LFUSER_MAX_RANK], strides[LFUSER_MAX_RANK];
    int64_t first;    // number of the element whose indices are all 0, within the storage
    int64_t elements; // of the storage
    uint32_t bytes;   // of an element
    unsigned char *host;
    void *memory;
} test_tensor;

enum { POISON = 0xa5, GUARD_ELEMENTS = 64 };

// The storage is poisoned; nothing is on the device yet.
void tensor_init(test_tensor *t, lfuser_dtype dtype, uint32_t rank, const int64_t *shape, layout where);
void tensor_finish(test_tensor *t);
void tensor_upload(test_tensor *t);   // allocates first; synchronous
void tensor_download(test_tensor *t); // synchronous
int64_t tensor_numel(const test_tensor *t);
// Address in `host` of the element of that row-major number.
void *tensor_element(const test_tensor *t, int64_t number);
// Calls visit for every element in row-major order, which is quicker than asking for each by its number.
void tensor_each(const test_tensor *t, void (*visit)(void *context, int64_t number, unsigned char *element), void *context);
// No byte of the storage outside the elements has changed.
void tensor_check_guards(const test_tensor *t, const char *what);

// The commonest: a dense f32 tensor with elements start + step * i, uploaded.
void tensor_f32(test_tensor *t, uint32_t rank, const int64_t *shape, float start, float step);
float tensor_f32_at(const test_tensor *t, int64_t number);

// What an element is filled with, apart from its dtype.
typedef enum fill {
    FILL_EDGES, // edge values, specials, and random bits
    FILL_PLAIN, // of moderate size
    FILL_INDEX, // -3 … 2: right for an axis of extent 3
    FILL_SMALL  // 0.125 … 1 (integers: 0 … 2)
} fill;
void fill_element(lfuser_dtype dtype, fill kind, uint64_t *state, void *out);
void tensor_fill(test_tensor *t, fill kind, uint64_t seed);
#endif
