// A kernel for each function of lib/math, for gpu_bits: element i of the inputs to element i of the outputs.
#include "math/math.h"

#define KERNEL __attribute__((device_kernel))
#define EACH                                                                                                                \
    for (long i = __nvvm_read_ptx_sreg_ctaid_x() * (long)__nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();      \
         i < n; i += (long)__nvvm_read_ptx_sreg_ntid_x() * __nvvm_read_ptx_sreg_nctaid_x())
#define PARAMETERS(type) const type *a, const type *b, type *out, type *out2, long n

#define LFM_UNARY(name)                                                                                                     \
    KERNEL void k_##name##_f32(PARAMETERS(float)) { EACH out[i] = lfm_##name##_f32(a[i]); }                                 \
    KERNEL void k_##name##_f64(PARAMETERS(double)) { EACH out[i] = lfm_##name##_f64(a[i]); }
#define LFM_BINARY(name)                                                                                                    \
    KERNEL void k_##name##_f32(PARAMETERS(float)) { EACH out[i] = lfm_##name##_f32(a[i], b[i]); }                           \
    KERNEL void k_##name##_f64(PARAMETERS(double)) { EACH out[i] = lfm_##name##_f64(a[i], b[i]); }
#define LFM_CUNARY(name)                                                                                                    \
    KERNEL void k_c##name##_f32(PARAMETERS(float)) { EACH lfm_c##name##_f32(a[i], b[i], &out[i], &out2[i]); }               \
    KERNEL void k_c##name##_f64(PARAMETERS(double)) { EACH lfm_c##name##_f64(a[i], b[i], &out[i], &out2[i]); }
#define LFM_CBINARY(name)                                                                                                   \
    KERNEL void k_c##name##_f32(PARAMETERS(float)) {                                                                        \
        EACH lfm_c##name##_f32(a[i], b[i], a[i ^ 1], b[i ^ 1], &out[i], &out2[i]);                                          \
    }                                                                                                                       \
    KERNEL void k_c##name##_f64(PARAMETERS(double)) {                                                                       \
        EACH lfm_c##name##_f64(a[i], b[i], a[i ^ 1], b[i ^ 1], &out[i], &out2[i]);                                          \
    }
#include "math/functions.def"

KERNEL void k_half_f32(PARAMETERS(float)) {
    EACH {
        out[i] = lfm_f16_to_f32(lfm_f32_to_f16(a[i]));
        out2[i] = lfm_bf16_to_f32(lfm_f32_to_bf16(a[i]));
    }
}
KERNEL void k_half_f64(PARAMETERS(double)) {
    EACH {
        out[i] = lfm_f64_to_f16(a[i]);
        out2[i] = lfm_f64_to_bf16(a[i]);
    }
}
KERNEL void k_ldexp_f32(PARAMETERS(float)) { EACH out[i] = lfm_ldexp_f32(a[i], (i & 511) - 256); }
KERNEL void k_ldexp_f64(PARAMETERS(double)) { EACH out[i] = lfm_ldexp_f64(a[i], (i & 4095) - 2048); }
