// See workers.h.
#include "api/workers.h"

struct lf_task {
    lf_task_run *run;
    void *arg;
    const void *owner;
    lf_task *next;
};

typedef struct worker {
    lf_workers *workers;
    uint32_t number;
} worker;

void lf_workers_init(lf_workers *w, const lf_allocator *a) {
    *w = (lf_workers){.allocator = a};
    lf_forkmark_init(&w->fork);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->given, NULL);
    pthread_cond_init(&w->ended, NULL);
}

static lf_task *take(lf_workers *w) {
    lf_task *t = w->first;
    w->first = t->next;
    if (!w->first) w->last = NULL;
    return t;
}

static void *worker_main(void *arg) {
    worker me = *(worker *)arg;
    lf_workers *w = me.workers;
    lf_free(w->allocator, arg);
    pthread_mutex_lock(&w->lock);
    for (;;) {
        w->n_idle++;
        while (!w->first && !w->stopping) pthread_cond_wait(&w->given, &w->lock);
        w->n_idle--;
        if (!w->first) break;
        lf_task *t = take(w);
        w->running[me.number] = t->owner;
        pthread_mutex_unlock(&w->lock);
        t->run(t->arg, false);
        lf_free(w->allocator, t);
        pthread_mutex_lock(&w->lock);
        w->running[me.number] = NULL;
        pthread_cond_broadcast(&w->ended);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

// Lock held.
static void start_another(lf_workers *w) {
    uint32_t cores = lf_thread_cores();
    if (w->n_threads >= (cores < LF_MOST_WORKERS ? cores : LF_MOST_WORKERS)) return;
    worker *me = lf_alloc(w->allocator, sizeof *me);
    if (!me) return;
    *me = (worker){w, w->n_threads};
    if (lf_thread_start(&w->threads[w->n_threads], "lfuser-compile", worker_main, me))
        lf_free(w->allocator, me);
    else
        w->n_threads++;
}

bool lf_workers_give(lf_workers *w, lf_task_run *run, void *arg, const void *owner) {
    if (lf_forked(&w->fork)) return false;
    lf_task *t = lf_alloc(w->allocator, sizeof *t);
    if (!t) return false;
    *t = (lf_task){run, arg, owner, NULL};
    pthread_mutex_lock(&w->lock);
    if (!w->n_idle) start_another(w);
    bool given = w->n_threads && !w->stopping;
    if (given) {
        *(w->last ? &w->last->next : &w->first) = t;
        w->last = t;
        pthread_cond_signal(&w->given);
    }
    pthread_mutex_unlock(&w->lock);
    if (!given) lf_free(w->allocator, t);
    return given;
}

static bool is_running(const lf_workers *w, const void *owner) {
    for (uint32_t i = 0; i < w->n_threads; i++)
        if (w->running[i] == owner) return true;
    return false;
}

// Lock held; what it takes out is cancelled by the caller. NULL owner: all.
static lf_task *take_all_of(lf_workers *w, const void *owner) {
    lf_task *taken = NULL;
    w->last = NULL;
    for (lf_task **at = &w->first; *at;) {
        lf_task *t = *at;
        if (owner && t->owner != owner) {
            w->last = t;
            at = &t->next;
            continue;
        }
        *at = t->next;
        t->next = taken;
        taken = t;
    }
    return taken;
}

static void cancel(lf_workers *w, lf_task *t) {
    for (lf_task *next; t; t = next) {
        next = t->next;
        t->run(t->arg, true);
        lf_free(w->allocator, t);
    }
}

void lf_workers_forget(lf_workers *w, const void *owner) {
    if (lf_forked(&w->fork)) return;
    pthread_mutex_lock(&w->lock);
    lf_task *taken = take_all_of(w, owner);
    while (is_running(w, owner)) pthread_cond_wait(&w->ended, &w->lock);
    pthread_mutex_unlock(&w->lock);
    cancel(w, taken);
}

void lf_workers_finish(lf_workers *w) {
    if (!lf_forked(&w->fork)) {
        pthread_mutex_lock(&w->lock);
        lf_task *taken = take_all_of(w, NULL);
        w->stopping = true;
        pthread_cond_broadcast(&w->given);
        pthread_mutex_unlock(&w->lock);
        for (uint32_t i = 0; i < w->n_threads; i++) pthread_join(w->threads[i], NULL);
        cancel(w, taken);
        pthread_cond_destroy(&w->ended);
        pthread_cond_destroy(&w->given);
        pthread_mutex_destroy(&w->lock);
    }
    lf_forkmark_finish(&w->fork);
}
