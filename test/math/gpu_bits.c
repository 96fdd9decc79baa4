// gpu_bits PTX [COUNT]: runs every function of lib/math on the GPU (the kernels of gpu_kernels.c) and on the CPU and
// compares the bits; NaNs count as equal. Exit status 77: no CUDA driver or no device here.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math/math.h"

typedef unsigned long long address;

static void *driver;
static void *symbol(const char *name) {
    void *f = dlsym(driver, name);
    if (f == NULL) {
        printf("no %s in the driver\n", name);
        exit(1);
    }
    return f;
}
static void check(int error, const char *what) {
    if (error == 0) return;
    printf("FAIL %s: driver error %d\n", what, error);
    exit(1);
}

static uint64_t random_bits(uint64_t i) {
    uint64_t z = i * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static long n = 1 << 22;
static float *a32, *b32, *out32[2], *gpu32[2];
static double *a64, *b64, *out64[2], *gpu64[2];
static address d_in[2], d_out[2];
static void *module;

// Half of the arguments are any bit patterns, half have exponents near 0.
static void fill(void) {
    for (long i = 0; i < n; i++) {
        uint64_t r = random_bits((uint64_t)i), q = random_bits(r), p = random_bits(q), e = r >> 59;
        uint32_t f[2] = {(uint32_t)q, (uint32_t)(q >> 32)};
        uint64_t d[2] = {p, random_bits(p)};
        for (int k = 0; k < 2 && (i & 1); k++) {
            f[k] = (f[k] & 0x807fffff) | (uint32_t)(127 - 20 + e) << 23;
            d[k] = (d[k] & 0x800fffffffffffff) | (1023 - 20 + e) << 52;
        }
        memcpy(&a32[i], &f[0], 4), memcpy(&b32[i], &f[1], 4);
        memcpy(&a64[i], &d[0], 8), memcpy(&b64[i], &d[1], 8);
    }
}

static long different, kernels;
static void launch(const char *name, int bytes, void *a, void *b, void *out, void *out2) {
    void *function;
    char full[64];
    snprintf(full, sizeof full, "k_%s_%s", name, bytes == 4 ? "f32" : "f64");
    check(((int (*)(void **, void *, const char *))symbol("cuModuleGetFunction"))(&function, module, full), full);
    int (*to)(address, const void *, size_t) = (int (*)(address, const void *, size_t))symbol("cuMemcpyHtoD_v2");
    int (*from)(void *, address, size_t) = (int (*)(void *, address, size_t))symbol("cuMemcpyDtoH_v2");
    size_t size = (size_t)n * (size_t)bytes;
    check(to(d_in[0], a, size), "copy"), check(to(d_in[1], b, size), "copy");
    void *arguments[] = {&d_in[0], &d_in[1], &d_out[0], &d_out[1], &n};
    typedef int (*launcher)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                            void **);
    check(((launcher)symbol("cuLaunchKernel"))(function, 1024, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL), full);
    check(from(out, d_out[0], size), full), check(from(out2, d_out[1], size), full);
    kernels++;
}

static void compare(const char *name, int parts) {
    long differ32 = 0, differ64 = 0, at32 = 0, at64 = 0;
    for (int k = 0; k < parts; k++)
        for (long i = 0; i < n; i++) {
            float f = out32[k][i], g = gpu32[k][i];
            double d = out64[k][i], h = gpu64[k][i];
            if (memcmp(&f, &g, 4) != 0 && !(f != f && g != g)) differ32++, at32 = i;
            if (memcmp(&d, &h, 8) != 0 && !(d != d && h != h)) differ64++, at64 = i;
        }
    different += differ32 + differ64;
    if (differ32)
        printf("FAIL %s f32: %ld differ, as at (%a, %a): CPU %a, GPU %a\n", name, differ32, a32[at32], b32[at32],
               out32[0][at32], gpu32[0][at32]);
    if (differ64)
        printf("FAIL %s f64: %ld differ, as at (%a, %a): CPU %a, GPU %a\n", name, differ64, a64[at64], b64[at64],
               out64[0][at64], gpu64[0][at64]);
    if (!differ32 && !differ64) printf("ok   %s\n", name);
    fflush(stdout);
}

#define RUN(label, parts, one32, one64)                                                                                     \
    launch(label, 4, a32, b32, gpu32[0], gpu32[1]);                                                                         \
    launch(label, 8, a64, b64, gpu64[0], gpu64[1]);                                                                         \
    for (long i = 0; i < n; i++) one32;                                                                                     \
    for (long i = 0; i < n; i++) one64;                                                                                     \
    compare(label, parts);

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    if (argc > 2) n = atol(argv[2]) & ~1L;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL || ((int (*)(unsigned))symbol("cuInit"))(0) != 0) {
        printf("no CUDA device here: not run\n");
        return 77;
    }
    FILE *f = fopen(argv[1], "rb");
    if (f == NULL) return 2;
    static char text[1 << 24];
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    int device;
    void *context;
    check(((int (*)(int *, int))symbol("cuDeviceGet"))(&device, 0), "cuDeviceGet");
    check(((int (*)(void **, int))symbol("cuDevicePrimaryCtxRetain"))(&context, device), "context");
    check(((int (*)(void *))symbol("cuCtxSetCurrent"))(context), "context");
    check(((int (*)(void **, const void *))symbol("cuModuleLoadData"))(&module, text), "cuModuleLoadData");
    for (int k = 0; k < 2; k++) {
        int (*allocate)(address *, size_t) = (int (*)(address *, size_t))symbol("cuMemAlloc_v2");
        check(allocate(&d_in[k], (size_t)n * 8), "memory"), check(allocate(&d_out[k], (size_t)n * 8), "memory");
        out32[k] = calloc((size_t)n, 4), gpu32[k] = calloc((size_t)n, 4);
        out64[k] = calloc((size_t)n, 8), gpu64[k] = calloc((size_t)n, 8);
    }
    a32 = calloc((size_t)n, 4), b32 = calloc((size_t)n, 4);
    a64 = calloc((size_t)n, 8), b64 = calloc((size_t)n, 8);
    fill();

#define LFM_UNARY(name) RUN(#name, 1, out32[0][i] = lfm_##name##_f32(a32[i]), out64[0][i] = lfm_##name##_f64(a64[i]))
#define LFM_BINARY(name)                                                                                                    \
    RUN(#name, 1, out32[0][i] = lfm_##name##_f32(a32[i], b32[i]), out64[0][i] = lfm_##name##_f64(a64[i], b64[i]))
#define LFM_CUNARY(name)                                                                                                    \
    RUN("c" #name, 2, lfm_c##name##_f32(a32[i], b32[i], &out32[0][i], &out32[1][i]),                                        \
        lfm_c##name##_f64(a64[i], b64[i], &out64[0][i], &out64[1][i]))
#define LFM_CBINARY(name)                                                                                                   \
    RUN("c" #name, 2, lfm_c##name##_f32(a32[i], b32[i], a32[i ^ 1], b32[i ^ 1], &out32[0][i], &out32[1][i]),                \
        lfm_c##name##_f64(a64[i], b64[i], a64[i ^ 1], b64[i ^ 1], &out64[0][i], &out64[1][i]))
#include "math/functions.def"
    RUN("half", 2,
        (out32[0][i] = lfm_f16_to_f32(lfm_f32_to_f16(a32[i])), out32[1][i] = lfm_bf16_to_f32(lfm_f32_to_bf16(a32[i]))),
        (out64[0][i] = lfm_f64_to_f16(a64[i]), out64[1][i] = lfm_f64_to_bf16(a64[i])))
    RUN("ldexp", 1, out32[0][i] = lfm_ldexp_f32(a32[i], (i & 511) - 256),
        out64[0][i] = lfm_ldexp_f64(a64[i], (i & 4095) - 2048))

    printf("%ld kernels x %ld elements, %ld differ\n", kernels, n, different);
    printf("%d passed, %d failed\n", different == 0, different != 0);
    return different != 0;
}
