// A run's arguments: from what the caller passed into the slots of the frame, checked.
#include "api/run.h"
#include <stdio.h>
#include <string.h>

static lf_status bad_argument(const lf_run *r, uint32_t i, const char *format, ...) __attribute__((format(printf, 3, 4)));
static lf_status bad_argument(const lf_run *r, uint32_t i, const char *format, ...) {
    // In two steps: a parameter's name after its '%' must not become part of the format.
    const char *name = r->abi->params[i].name;
    va_list args;
    va_start(args, format);
    lf_status what = lf_error_v(r->a, LF_INVALID_ARGUMENT, (lf_place){0}, format, args);
    va_end(args);
    lf_status s = lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: argument %u (%%%s): %s", r->abi->name, i, name ? name : "?",
                           lf_status_message(what));
    lf_status_destroy(what);
    return s;
}

// ---- arguments ---------------------------------------------------------------------------------------------------------------------

const char *lf_run_device_name(int type) {
    return type == 1 ? "cpu" : type == 2 ? "cuda" : type == 3 ? "cuda-host" : type == 12 ? "sim" : "other";
}

bool lf_run_fits_device(const lf_device *d, const lfuser_tensor *t) {
    if (d->type == LF_DEVICE_CPU) return t->device.type == 1 || t->device.type == 3;
    return t->device.type == (int)d->type && t->device.ordinal == d->ordinal;
}

lf_status lf_run_check_pointer(const lf_run *r, uint64_t address, char *out_text, size_t size) {
    int type, ordinal;
    out_text[0] = 0;
    LF_TRY(r->device->ops->memory_where(r->device, (const void *)(uintptr_t)address, &type, &ordinal));
    if (type != (int)r->device->type || ordinal != r->device->ordinal)
        snprintf(out_text, size, "the memory at %#llx lies on %s:%d, the program was compiled for %s:%d",
                 (unsigned long long)address, lf_run_device_name(type), ordinal, r->device->ops->name, r->device->ordinal);
    return NULL;
}

static lf_status wrong_dtype(const lf_run *r, uint32_t i, const lfuser_tensor *t) {
    lf_dtype d = lf_tensor_dtype(t);
    return bad_argument(r, i, "expected dtype %s, got %s (DLPack code %u, %u bits, %u lanes)",
                        lf_dtype_name((lf_dtype)r->abi->params[i].dtype), d ? lf_dtype_name(d) : "one that is not supported",
                        t->dtype.code, t->dtype.bits, t->dtype.lanes);
}

static lf_status read_tensor(lf_run *r, uint32_t i) {
    const lfuser_abi_param *p = &r->abi->params[i];
    const lfuser_tensor *t = r->arguments[i].tensor;
    if (r->arguments[i].kind != LFUSER_TENSOR || !t)
        return bad_argument(r, i, "expected a tensor of rank %u of %s, got %s", p->rank, lf_dtype_name((lf_dtype)p->dtype),
                            r->arguments[i].kind == LFUSER_TENSOR ? "none" : "a scalar");
    if (t->rank != p->rank) return bad_argument(r, i, "expected rank %u, got rank %d", p->rank, (int)t->rank);
    lf_dtype d = (lf_dtype)p->dtype;
    if (!lf_tensor_has_dtype(t, d)) return wrong_dtype(r, i, t);
    if (r->device && !lf_run_fits_device(r->device, t))
        return bad_argument(r, i, "lies on %s:%d, the program was compiled for %s:%d", lf_run_device_name(t->device.type),
                            (int)t->device.ordinal, r->device->ops->name, r->device->ordinal);
    uint64_t *slot = &r->frame->slots[p->slot];
    uint64_t address = (uint64_t)(uintptr_t)t->data + t->byte_offset;
    unsigned part = lf_dtype_bytes(lf_dtype_part(d));
    bool empty = false;
    int64_t stride = 1;
    for (uint32_t k = p->rank; k-- > 0;) {
        int64_t extent = t->shape[k];
        if (extent < 0) return bad_argument(r, i, "axis %u has the negative extent %lld", k, (long long)extent);
        empty |= extent == 0;
        slot[1 + k] = (uint64_t)extent;
        slot[1 + p->rank + k] = (uint64_t)(t->strides ? t->strides[k] : stride);
        if (!t->strides && __builtin_mul_overflow(stride, extent ? extent : 1, &stride))
            return bad_argument(r, i, "has more elements than fit 64 bits");
    }
    if (!empty && !t->data && r->device) return bad_argument(r, i, "has no data (NULL), but elements");
    if (!empty && address % part)
        return bad_argument(r, i, "address %#llx is not aligned to its element of %u bytes", (unsigned long long)address,
                            part);
    slot[0] = address;
    if (!r->e->check_pointers || empty || !r->device || r->imagined) return NULL;
    char wrong[LF_WRONG_POINTER];
    LF_TRY(lf_run_check_pointer(r, address, wrong, sizeof wrong));
    return wrong[0] ? bad_argument(r, i, "%s", wrong) : NULL;
}

lf_status lf_run_read_argument(lf_run *r, uint32_t i) {
    const lfuser_abi_param *p = &r->abi->params[i];
    const lfuser_argument *arg = &r->arguments[i];
    if (p->kind == LFUSER_ABI_TENSOR) return read_tensor(r, i);
    lfuser_scalar value = arg->value;
    lf_dtype d = (lf_dtype)arg->dtype;
    if (p->kind == LFUSER_ABI_HOST_TENSOR && arg->tensor) {
        const lfuser_tensor *t = arg->tensor;
        if (t->rank != 0) return bad_argument(r, i, "expected a host tensor of rank 0, got rank %d", (int)t->rank);
        if (t->device.type != 1 && t->device.type != 3)
            return bad_argument(r, i, "must lie in host memory, lies on %s:%d", lf_run_device_name(t->device.type),
                                (int)t->device.ordinal);
        if (!t->data) return bad_argument(r, i, "has no data (NULL)");
        d = lf_tensor_dtype(t);
        if (d == (lf_dtype)p->dtype) memcpy(&value, (const char *)t->data + t->byte_offset, lf_dtype_bytes(d));
    } else if (arg->kind == LFUSER_TENSOR || (p->kind == LFUSER_ABI_SCALAR && arg->kind != LFUSER_SCALAR)) {
        return bad_argument(r, i, "expected a scalar of %s, got a tensor", lf_dtype_name((lf_dtype)p->dtype));
    }
    if (d != (lf_dtype)p->dtype)
        return bad_argument(r, i, "expected dtype %s, got %s", lf_dtype_name((lf_dtype)p->dtype),
                            d ? lf_dtype_name(d) : "none");
    lf_run_put_scalar(&r->frame->slots[p->slot], d, &value);
    return NULL;
}
