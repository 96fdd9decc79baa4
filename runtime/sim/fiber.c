// Stacks that take turns on one thread. A switch saves what the calling convention says that a call preserves, and nothing else: the
// floating-point modes are the same for all.
#include "runtime/sim/sim.h"
#include <sys/mman.h>

enum { GUARD = 4096 };

lf_sim_stack *lf_sim_stack_create(const lf_allocator *a) {
    lf_sim_stack *s = lf_alloc_zero(a, sizeof *s);
    if (!s) return NULL;
    // Not through the allocator: a page below that may not be touched, and pages that are there only once they are used.
    char *low = mmap(NULL, GUARD + LF_SIM_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (low == MAP_FAILED) {
        lf_free(a, s);
        return NULL;
    }
    mprotect(low, GUARD, PROT_NONE);
    s->low = low + GUARD;
    return s;
}

void lf_sim_stack_destroy(const lf_allocator *a, lf_sim_stack *s) {
    if (!s) return;
    munmap(s->low - GUARD, GUARD + LF_SIM_STACK);
    lf_free(a, s);
}

#if defined(__x86_64__)
// rdi: where the stack pointer goes; rsi: the other stack pointer.
__asm__(".text\n"
        ".p2align 4\n"
        ".globl lf_sim_switch\n"
        ".hidden lf_sim_switch\n"
        ".type lf_sim_switch, @function\n"
        "lf_sim_switch:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  retq\n"
        ".size lf_sim_switch, .-lf_sim_switch\n"
        ".p2align 4\n"
        ".globl lf_sim_fiber_enter\n"
        ".hidden lf_sim_fiber_enter\n"
        ".type lf_sim_fiber_enter, @function\n"
        "lf_sim_fiber_enter:\n"
        "  movq %r12, %rdi\n"
        "  xorl %ebp, %ebp\n"
        "  callq *%r13\n"
        "  ud2\n"
        ".size lf_sim_fiber_enter, .-lf_sim_fiber_enter\n");
void lf_sim_fiber_enter(void);

// As lf_sim_switch would have left it: six registers and a return address.
void *lf_sim_fiber_begin(lf_sim_stack *stack, lf_sim_thread *t, void (*main)(lf_sim_thread *t)) {
    uint64_t *top =
        (uint64_t *)(void *)(stack->low + LF_SIM_STACK) - 2; // so that the callee finds rsp + 8 at a multiple of 16
    *--top = (uint64_t)(uintptr_t)lf_sim_fiber_enter;
    *--top = 0;                         // rbp
    *--top = 0;                         // rbx
    *--top = (uint64_t)(uintptr_t)t;    // r12
    *--top = (uint64_t)(uintptr_t)main; // r13
    *--top = 0;                         // r14
    *--top = 0;                         // r15
    return top;
}
#else
void lf_sim_switch(void **from, void *to) { (void)from, (void)to; }
void *lf_sim_fiber_begin(lf_sim_stack *stack, lf_sim_thread *t, void (*main)(lf_sim_thread *t)) {
    (void)stack, (void)t, (void)main;
    return NULL;
}
#endif
