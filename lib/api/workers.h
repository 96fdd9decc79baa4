// Threads of a context that compile beside its callers. Started when there is first something to do; a forked child has none.
// Private to lib/api.
#ifndef LF_API_WORKERS_H
#define LF_API_WORKERS_H
#include "base/alloc.h"
#include "runtime/thread.h"

enum { LF_MOST_WORKERS = 16 };

typedef struct lf_task lf_task;
typedef struct lf_workers {
    const lf_allocator *allocator;
    lf_forkmark fork;
    pthread_mutex_t lock; // guards what follows
    pthread_cond_t given, ended;
    lf_task *first, *last; // waiting
    pthread_t threads[LF_MOST_WORKERS];
    const void *running[LF_MOST_WORKERS]; // owner of the task that each thread is at, or NULL
    uint32_t n_threads, n_idle;
    bool stopping;
} lf_workers;

// Runs on some worker; `cancelled`: it only frees what belongs to the task. The owner is for lf_workers_forget.
typedef void lf_task_run(void *arg, bool cancelled);

void lf_workers_init(lf_workers *w, const lf_allocator *a);
void lf_workers_finish(lf_workers *w); // cancels what waits, ends what runs
// False: no memory, no threads, or a forked child; `run` is not called then.
bool lf_workers_give(lf_workers *w, lf_task_run *run, void *arg, const void *owner);
// Cancels this owner's waiting tasks and waits for those that run.
void lf_workers_forget(lf_workers *w, const void *owner);
#endif
