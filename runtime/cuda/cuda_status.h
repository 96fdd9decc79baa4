// From the driver's results to statuses.
#ifndef LF_RUNTIME_CUDA_STATUS_H
#define LF_RUNTIME_CUDA_STATUS_H
#include "runtime/cuda/cuda_driver.h"

// NULL for success. `call` names the driver function.
lf_status lf_cuda_status(const lf_cuda_driver *cu, const lf_allocator *a, CUresult result, const char *call) LF_MUST_USE;
#endif
