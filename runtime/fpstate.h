// Floating-point state is ours while we compute (rounding to nearest, no flushing of subnormals, no traps): code that
// computes on a thread of somebody else enters, computes, and leaves. Exception flags of the caller survive too.
#ifndef LF_RUNTIME_FPSTATE_H
#define LF_RUNTIME_FPSTATE_H
#include <stdint.h>

#if defined(__x86_64__)
typedef struct lf_fpstate {
    uint32_t mxcsr;
    uint16_t x87;
} lf_fpstate;

enum { LF_FP_MXCSR = 0x1f80, LF_FP_MXCSR_FLAGS = 0x3f, LF_FP_X87 = 0x37f, LF_FP_X87_CONTROL = 0xf3f };

// Loads are several times dearer than stores, hence the comparisons.
static inline lf_fpstate lf_fp_enter(void) {
    lf_fpstate saved;
    saved.mxcsr = __builtin_ia32_stmxcsr();
    __asm__ volatile("fnstcw %0" : "=m"(saved.x87));
    if ((saved.mxcsr & ~(uint32_t)LF_FP_MXCSR_FLAGS) != LF_FP_MXCSR) __builtin_ia32_ldmxcsr(LF_FP_MXCSR);
    if ((saved.x87 & LF_FP_X87_CONTROL) != (LF_FP_X87 & LF_FP_X87_CONTROL)) {
        uint16_t word = LF_FP_X87;
        __asm__ volatile("fldcw %0" : : "m"(word));
    }
    return saved;
}

static inline void lf_fp_leave(lf_fpstate saved) {
    if (__builtin_ia32_stmxcsr() != saved.mxcsr) __builtin_ia32_ldmxcsr(saved.mxcsr);
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    if (word != saved.x87) __asm__ volatile("fldcw %0" : : "m"(saved.x87));
}
#elif defined(__aarch64__)
typedef struct lf_fpstate {
    uint64_t fpcr, fpsr;
} lf_fpstate;

static inline lf_fpstate lf_fp_enter(void) {
    lf_fpstate saved;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(saved.fpcr), "=r"(saved.fpsr));
    if (saved.fpcr) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return saved;
}

static inline void lf_fp_leave(lf_fpstate saved) {
    if (saved.fpcr) __asm__ volatile("msr fpcr, %0" : : "r"(saved.fpcr));
    __asm__ volatile("msr fpsr, %0" : : "r"(saved.fpsr));
}
#else
#error "say how this processor's floating-point control word is saved and set"
#endif

// For threads of our own: once, at their start (a thread inherits its creator's state).
static inline void lf_fp_default(void) { (void)lf_fp_enter(); }
#endif
