// Tensors in DLPack's terms.
#include "api/api.h"
#include <string.h>

enum { DL_INT, DL_UINT, DL_FLOAT, DL_OPAQUE, DL_BFLOAT, DL_COMPLEX, DL_BOOL };

static const lfuser_dl_dtype table[LF_DTYPE_COUNT] = {
    [LF_BOOL] = {DL_BOOL, 8, 1},  [LF_I8] = {DL_INT, 8, 1},       [LF_I16] = {DL_INT, 16, 1},
    [LF_I32] = {DL_INT, 32, 1},   [LF_I64] = {DL_INT, 64, 1},     [LF_U8] = {DL_UINT, 8, 1},
    [LF_U16] = {DL_UINT, 16, 1},  [LF_U32] = {DL_UINT, 32, 1},    [LF_U64] = {DL_UINT, 64, 1},
    [LF_F16] = {DL_FLOAT, 16, 1}, [LF_BF16] = {DL_BFLOAT, 16, 1}, [LF_F32] = {DL_FLOAT, 32, 1},
    [LF_F64] = {DL_FLOAT, 64, 1}, [LF_C64] = {DL_COMPLEX, 64, 1}, [LF_C128] = {DL_COMPLEX, 128, 1}};

lfuser_dl_dtype lfuser_dl_dtype_of(lfuser_dtype dtype) {
    return (unsigned)dtype < LF_DTYPE_COUNT ? table[dtype] : (lfuser_dl_dtype){0, 0, 0};
}

lfuser_dtype lfuser_dtype_of(lfuser_dl_dtype dtype) {
    for (unsigned d = 1; d < LF_DTYPE_COUNT; d++)
        if (table[d].code == dtype.code && table[d].bits == dtype.bits && dtype.lanes == 1) return (lfuser_dtype)d;
    return LFUSER_NO_DTYPE;
}

bool lf_tensor_has_dtype(const lfuser_tensor *t, lf_dtype d) {
    return t->dtype.code == table[d].code && t->dtype.bits == table[d].bits && t->dtype.lanes == 1;
}

lf_dtype lf_tensor_dtype(const lfuser_tensor *t) { return (lf_dtype)lfuser_dtype_of(t->dtype); }

// A managed tensor of ours: shape and strides lie behind it.
typedef struct owned_tensor {
    lfuser_managed_tensor managed;
    lfuser_stream *stream; // retained
    int64_t shape[LF_MAX_RANK], strides[LF_MAX_RANK];
} owned_tensor;

static void delete_tensor(lfuser_managed_tensor *self) {
    owned_tensor *t = (owned_tensor *)self;
    lfuser_stream *stream = t->stream;
    stream->device->device->ops->memory_free(stream->stream, self->tensor.data);
    if (!lf_spares_give(&stream->device->spare_tensors, t)) lf_free(&stream->device->context->allocator, t);
    lf_stream_release(stream);
}

lf_status lf_tensor_allocate(lfuser_stream *stream, lf_dtype dtype, uint32_t rank, const int64_t *shape,
                             lfuser_managed_tensor **out_tensor) {
    *out_tensor = NULL;
    lf_device *device = stream->device->device;
    const lf_allocator *a = &stream->device->context->allocator;
    owned_tensor *t = lf_spares_take(&stream->device->spare_tensors);
    if (t)
        memset(t, 0, sizeof *t);
    else
        t = lf_alloc_zero(a, sizeof *t);
    if (!t) return lf_out_of_memory();
    uint64_t elements = 1;
    bool overflow = false, empty = false;
    for (uint32_t i = 0; i < rank; i++) empty |= shape[i] == 0;
    for (uint32_t i = rank; i-- > 0;) {
        t->shape[i] = shape[i];
        t->strides[i] = (int64_t)elements;
        overflow |=
            __builtin_mul_overflow(elements, shape[i] ? (uint64_t)shape[i] : 1, &elements); // strides of an empty one, too
    }
    size_t bytes = 0;
    overflow |= __builtin_mul_overflow(elements, (uint64_t)lf_dtype_bytes(dtype), &bytes) || bytes > INT64_MAX;
    if (overflow && !empty) {
        lf_free(a, t);
        return lf_error(a, LF_OUT_OF_MEMORY, "a tensor of %s with %u axes is larger than the address space",
                        lf_dtype_name(dtype), rank);
    }
    lf_status s = device->ops->memory_alloc(stream->stream, empty ? 0 : bytes, &t->managed.tensor.data);
    if (s) {
        lf_free(a, t);
        return s;
    }
    t->stream = stream;
    lf_stream_retain(stream);
    t->managed.version.major = 1;
    t->managed.version.minor = 3;
    t->managed.deleter = delete_tensor;
    t->managed.tensor.device = (lfuser_dl_device){device->type, device->ordinal};
    t->managed.tensor.rank = (int32_t)rank;
    t->managed.tensor.dtype = table[dtype];
    t->managed.tensor.shape = t->shape;
    t->managed.tensor.strides = t->strides;
    *out_tensor = &t->managed;
    return NULL;
}
