// Opening libcuda and filling the function table.
#include "runtime/cuda/cuda_driver.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONAL, REQUIRED };

static const struct {
    const char *symbol;
    int need;
    size_t at; // offset in lf_cuda_driver
} rows[] = {
#define LF_CUDA_FN(name, symbol, need, params) {symbol, need, offsetof(lf_cuda_driver, name)},
#include "runtime/cuda/cuda_driver.def"
#undef LF_CUDA_FN
};

lf_status lf_cuda_driver_open(const lf_allocator *a, lf_cuda_driver *out_driver, lf_dylib **out_lib) {
    memset(out_driver, 0, sizeof *out_driver);
    const char *path = secure_getenv("LFUSER_LIBCUDA");
    if (!path || !*path) path = "libcuda.so.1";
    LF_TRY(lf_dylib_open(a, path, out_lib));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *fn = lf_dylib_symbol(*out_lib, rows[i].symbol);
        if (!fn && rows[i].need == REQUIRED) {
            lf_dylib_close(*out_lib, true);
            *out_lib = NULL;
            return lf_error(a, LF_UNAVAILABLE, "%s has no %s: the driver is too old (CUDA 11.2 is the least)", path,
                            rows[i].symbol);
        }
        memcpy((char *)out_driver + rows[i].at, &fn, sizeof fn);
    }
    return NULL;
}
