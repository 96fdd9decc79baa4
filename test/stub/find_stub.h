// Finds the stand-in driver for a test program and makes it the driver that the library opens. Included once by each.
#ifndef LF_TEST_FIND_STUB_H
#define LF_TEST_FIND_STUB_H
#include "test/stub/cuda_stub.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char stub_path[4096];
static cuda_stub *stub; // as the last reset gave it
static cuda_stub_reset_fn *reset_stub;
static cuda_stub_make_current_fn *make_current;

// Beside this program, or where the environment says. The caller sets LFUSER_LIBCUDA to stub_path where the stub is to be the driver.
static bool find_stub(void) {
    const char *given = getenv("LFUSER_TEST_CUDA_STUB");
    ssize_t n = readlink("/proc/self/exe", stub_path, sizeof stub_path - 40);
    if (given) {
        snprintf(stub_path, sizeof stub_path, "%s", given);
    } else if (n > 0) {
        stub_path[n] = 0;
        strcpy(strrchr(stub_path, '/') + 1, "libcuda_stub.so");
    }
    void *lib = dlopen(stub_path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) return false;
    *(void **)&reset_stub = dlsym(lib, "cuda_stub_reset");
    *(void **)&make_current = dlsym(lib, "cuda_stub_make_current");
    return reset_stub && make_current;
}
#endif
