// Starting threads and noticing forks; no pthread_atfork, which a library that may be unloaded must not leave behind.
#include "runtime/thread.h"
#include "runtime/fpstate.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

int lf_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&blocked, faults[i]);
    // The new thread inherits mask and floating-point state, so both are set here: there is no moment without them.
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    lf_fpstate fp = lf_fp_enter();
    int error = pthread_create(thread, NULL, run, arg);
    lf_fp_leave(fp);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error) pthread_setname_np(*thread, name);
    return error;
}

uint32_t lf_thread_cores(void) {
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set)) {
        int n = CPU_COUNT(&set);
        if (n > 0) return (uint32_t)n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

void lf_forkmark_init(lf_forkmark *mark) {
    *mark = (lf_forkmark){NULL, getpid()};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *word = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (word == MAP_FAILED) return;
    if (madvise(word, page, MADV_WIPEONFORK)) {
        munmap(word, page);
        return;
    }
    mark->word = word;
    atomic_store_explicit(mark->word, 1, memory_order_relaxed);
}

void lf_forkmark_finish(lf_forkmark *mark) {
    if (mark->word) munmap(mark->word, (size_t)sysconf(_SC_PAGESIZE));
    mark->word = NULL;
}
