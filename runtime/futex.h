// Waiting on a 32-bit word, without a mutex. Linux.
#ifndef LF_RUNTIME_FUTEX_H
#define LF_RUNTIME_FUTEX_H
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// Sleeps while *word == expected; may return early for no reason.
static inline void lf_futex_wait(_Atomic uint32_t *word, uint32_t expected) {
    syscall(SYS_futex, (void *)word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}
// Never reads *word, so the owner may have freed it by now.
static inline void lf_futex_wake(_Atomic uint32_t *word, int count) {
    syscall(SYS_futex, (void *)word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
// A pause between two looks at a word that another thread will change soon.
static inline void lf_cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
#endif
