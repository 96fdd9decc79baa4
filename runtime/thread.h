// Threads of our own inside somebody else's process, and how to notice that we are in a forked child, where those
// threads do not exist.
#ifndef LF_RUNTIME_THREAD_H
#define LF_RUNTIME_THREAD_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

// Starts a thread that takes none of the process's asynchronous signals and has the default floating-point state.
// Faults (SIGSEGV and the like) stay deliverable, so that the embedder's crash reporter works. Returns an errno value.
int lf_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);

// Cores this process may use, at least 1.
uint32_t lf_thread_cores(void);

// `word` lies in a page that the kernel wipes in the child; where it cannot (before Linux 4.14), process ids are compared.
typedef struct lf_forkmark {
    _Atomic uint32_t *word; // owned page, or NULL
    pid_t pid;
} lf_forkmark;

void lf_forkmark_init(lf_forkmark *mark);
void lf_forkmark_finish(lf_forkmark *mark);

// True in a process forked from the one that initialised the mark. About a nanosecond.
static inline bool lf_forked(const lf_forkmark *mark) {
    if (mark->word) return !atomic_load_explicit(mark->word, memory_order_relaxed);
    return getpid() != mark->pid;
}
#endif
