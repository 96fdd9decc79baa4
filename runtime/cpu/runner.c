// Threads that run the queued work of streams. A queue holds its runner while it has work, so a callback that waits holds
// up its own stream alone.
#include "runtime/cpu/cpu.h"
#include "runtime/fpstate.h"

struct lf_cpu_runner {
    lf_cpu_device *device;
    pthread_t thread;
    pthread_cond_t wake;
    lf_cpu_queue *queue; // to run next; runner_lock, as all below
    lf_cpu_runner *next_idle;
    lf_cpu_runner *next;
};

static void *runner_main(void *arg) {
    lf_cpu_runner *r = arg;
    lf_cpu_device *d = r->device;
    lf_fp_default();
    pthread_mutex_lock(&d->runner_lock);
    for (;;) {
        while (!r->queue && !d->stopping) pthread_cond_wait(&r->wake, &d->runner_lock);
        lf_cpu_queue *q = r->queue;
        if (!q) break;
        r->queue = NULL;
        pthread_mutex_unlock(&d->runner_lock);
        lf_cpu_queue_drain(q);
        pthread_mutex_lock(&d->runner_lock);
        r->next_idle = d->idle_runners;
        d->idle_runners = r;
    }
    pthread_mutex_unlock(&d->runner_lock);
    return NULL;
}

static bool new_runner(lf_cpu_device *d, lf_cpu_queue *q) {
    lf_cpu_runner *r = lf_alloc_zero(d->base.allocator, sizeof *r);
    if (!r) return false;
    r->device = d;
    r->queue = q;
    pthread_cond_init(&r->wake, NULL);
    if (lf_thread_start(&r->thread, "lfuser-stream", runner_main, r)) {
        pthread_cond_destroy(&r->wake);
        lf_free(d->base.allocator, r);
        return false;
    }
    r->next = d->runners;
    d->runners = r;
    return true;
}

bool lf_cpu_runner_start(lf_cpu_queue *q) {
    lf_cpu_device *d = q->device;
    bool started = true;
    pthread_mutex_lock(&d->runner_lock);
    lf_cpu_runner *r = d->idle_runners;
    if (r) {
        d->idle_runners = r->next_idle;
        r->queue = q;
        pthread_cond_signal(&r->wake);
    } else {
        started = new_runner(d, q);
    }
    pthread_mutex_unlock(&d->runner_lock);
    return started;
}

void lf_cpu_runners_finish(lf_cpu_device *d, bool forked) {
    if (!forked) {
        pthread_mutex_lock(&d->runner_lock);
        d->stopping = true;
        for (lf_cpu_runner *r = d->runners; r; r = r->next) pthread_cond_signal(&r->wake);
        pthread_mutex_unlock(&d->runner_lock);
    }
    for (lf_cpu_runner *r = d->runners, *next; r; r = next) {
        next = r->next;
        if (!forked) {
            pthread_join(r->thread, NULL);
            pthread_cond_destroy(&r->wake);
        }
        lf_free(d->base.allocator, r);
    }
}
