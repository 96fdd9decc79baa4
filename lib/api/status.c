// Public faces of statuses, versions and dtypes.
#include "api/api.h"

#define SAME(public, private) _Static_assert((int)(public) == (int)(private), "public numbers are fixed")
SAME(LFUSER_INVALID_ARGUMENT, LF_INVALID_ARGUMENT);
SAME(LFUSER_INVALID_PROGRAM, LF_INVALID_PROGRAM);
SAME(LFUSER_UNSUPPORTED, LF_UNSUPPORTED);
SAME(LFUSER_OUT_OF_MEMORY, LF_OUT_OF_MEMORY);
SAME(LFUSER_UNAVAILABLE, LF_UNAVAILABLE);
SAME(LFUSER_FAILED_CHECK, LF_FAILED_CHECK);
SAME(LFUSER_INDEX_ERROR, LF_INDEX_ERROR);
SAME(LFUSER_DEVICE_ERROR, LF_DEVICE_ERROR);
SAME(LFUSER_NOT_READY, LF_NOT_READY);
SAME(LFUSER_IO_ERROR, LF_IO_ERROR);
SAME(LFUSER_INTERNAL, LF_INTERNAL);
SAME(LFUSER_CAPTURE_ERROR, LF_CAPTURE_ERROR);
SAME(LFUSER_TIMEOUT, LF_TIMEOUT);
#define LF_DTYPE(ID, name, category, bytes, part) SAME(LFUSER_##ID, LF_##ID);
#include "ir/dtypes.def"
SAME(LFUSER_C128, 15);
SAME(LFUSER_MAX_RANK, LF_MAX_RANK);
SAME(LFUSER_SCALAR, LFUSER_ABI_SCALAR);
SAME(LFUSER_PENDING, LFUSER_ABI_PENDING);
SAME(LFUSER_HOST_TENSOR, LFUSER_ABI_HOST_TENSOR);
SAME(LFUSER_TENSOR, LFUSER_ABI_TENSOR);
_Static_assert(sizeof(lfuser_scalar) == sizeof(lf_scalar) && sizeof(lfuser_scalar) == 16, "a scalar is 16 bytes");
_Static_assert(sizeof(lfuser_tensor) == 48 && offsetof(lfuser_tensor, byte_offset) == 40, "the layout of DLTensor");
_Static_assert(sizeof(lfuser_managed_tensor) == 80 && offsetof(lfuser_managed_tensor, tensor) == 32,
               "the layout of DLManagedTensorVersioned");

int lfuser_version(void) { return LFUSER_VERSION; }

lfuser_code lfuser_status_code(const struct lfuser_status_object *status) {
    return (lfuser_code)lf_status_code((const lf_status_object *)status);
}

const char *lfuser_status_message(const struct lfuser_status_object *status) {
    return lf_status_message((const lf_status_object *)status);
}

void lfuser_status_place(const struct lfuser_status_object *status, const char **out_file, uint32_t *out_line,
                         uint32_t *out_column) {
    lf_place place = lf_status_place((const lf_status_object *)status);
    if (out_file) *out_file = place.file;
    if (out_line) *out_line = place.line;
    if (out_column) *out_column = place.column;
}

const char *lfuser_code_name(lfuser_code code) { return lf_code_name((lf_code)code); }
void lfuser_status_destroy(lfuser_status status) { lf_status_destroy(lf_private(status)); }

const char *lfuser_dtype_name(lfuser_dtype dtype) { return lf_dtype_name((lf_dtype)dtype); }
lfuser_dtype lfuser_dtype_parse(const char *name) {
    return name ? (lfuser_dtype)lf_dtype_parse(name, __builtin_strlen(name)) : LFUSER_NO_DTYPE;
}
uint32_t lfuser_dtype_bytes(lfuser_dtype dtype) { return lf_dtype_bytes((lf_dtype)dtype); }
