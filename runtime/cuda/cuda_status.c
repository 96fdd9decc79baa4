// The only place that gives a driver result its meaning.
#include "runtime/cuda/cuda_status.h"
#include <stdbool.h>

static lf_code code_of(CUresult r) {
    if (r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) return LF_CAPTURE_ERROR;
    switch (r) {
    case CUDA_ERROR_OUT_OF_MEMORY: return LF_OUT_OF_MEMORY;
    case CUDA_ERROR_NOT_READY: return LF_NOT_READY;
    case CUDA_ERROR_NOT_SUPPORTED: return LF_UNSUPPORTED;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_DEVICE_NOT_LICENSED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: return LF_UNAVAILABLE;
    default: return LF_DEVICE_ERROR;
    }
}

// Results of a kernel that ran earlier, reported by whatever call comes next; the context is lost after one.
static bool of_earlier_kernel(CUresult r) {
    return r == CUDA_ERROR_ILLEGAL_ADDRESS || r == CUDA_ERROR_LAUNCH_TIMEOUT || r == CUDA_ERROR_ASSERT ||
           (r >= CUDA_ERROR_HARDWARE_STACK_ERROR && r <= CUDA_ERROR_LAUNCH_FAILED);
}

lf_status lf_cuda_status(const lf_cuda_driver *cu, const lf_allocator *a, CUresult result, const char *call) {
    if (result == CUDA_SUCCESS) return NULL;
    const char *name = NULL, *text = NULL;
    if (cu->cuGetErrorName(result, &name) || !name) name = "an unknown error";
    if (cu->cuGetErrorString(result, &text) || !text) text = "no description";
    lf_status s = lf_error(a, code_of(result), "%s: %s (%d): %s", call, name, result, text);
    if (of_earlier_kernel(result))
        return lf_status_note(s, "a kernel that ran earlier failed; nothing more can run in this CUDA context");
    return s;
}
