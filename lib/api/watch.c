// Callbacks for values that arrive and runs that end: one thread a context, started with the first callback, looks at all of them.
// A callback of the stream would not do: it is for whatever was given to the stream before it, and may not call the library.
#include "api/api.h"
#include "runtime/thread.h"
#include <time.h>

enum { SOON_NS = 20000, LATER_NS = 200000, SOON_LOOKS = 500, LOOKS_BETWEEN_HEALTH = 64 };

struct lf_watcher {
    lfuser_context *context;
    pthread_t thread;
    pthread_mutex_t lock; // what follows
    pthread_cond_t changed;
    bool stopping;
    LF_VEC(lf_watch) watches;
    lf_forkmark fork; // in a forked child the thread is not there, and the lock may be held for ever
};

static void let_go(lf_watch *w) {
    lf_pending_release(w->pending, false);
    lfuser_completion_release(w->completion);
}

static bool has_happened(const lf_watch *w, bool look_at_device) {
    if (w->completion) return lf_completion_is_over(w->completion);
    if (lf_pending_is_there(w->pending)) return true;
    if (!look_at_device) return false;
    lf_status s = lf_device_health(w->pending->device); // a broken device delivers nothing any more: whoever asks is told
    bool broken = s != NULL;
    lf_status_destroy(s);
    return broken;
}

// Looks at all of them once; the callbacks run without the lock. Lock held.
static bool look(lf_watcher *w, bool look_at_device) {
    bool any = false;
    for (size_t i = 0; i < w->watches.count && !w->stopping;) {
        if (!has_happened(&w->watches.data[i], look_at_device)) {
            i++;
            continue;
        }
        lf_watch done = w->watches.data[i];
        w->watches.data[i] = w->watches.data[--w->watches.count];
        pthread_mutex_unlock(&w->lock);
        done.fn(done.arg);
        let_go(&done);
        pthread_mutex_lock(&w->lock);
        any = true;
    }
    return any;
}

static void *run(void *arg) {
    lf_watcher *w = arg;
    pthread_mutex_lock(&w->lock);
    for (uint32_t looks = 0; !w->stopping;) {
        if (!w->watches.count) {
            looks = 0;
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        looks = look(w, looks % LOOKS_BETWEEN_HEALTH == LOOKS_BETWEEN_HEALTH - 1) ? 0 : looks + 1;
        if (!looks || w->stopping) continue;
        pthread_mutex_unlock(&w->lock);
        nanosleep(&(struct timespec){0, looks < SOON_LOOKS ? SOON_NS : LATER_NS}, NULL);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static lf_status start(lfuser_context *c) {
    lf_watcher *w = lf_alloc_zero(&c->allocator, sizeof *w);
    if (!w) return lf_out_of_memory();
    w->context = c;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    lf_vec_init(&w->watches, &c->allocator);
    lf_forkmark_init(&w->fork);
    int failed = lf_thread_start(&w->thread, "lfuser-watch", run, w);
    if (failed) {
        lf_forkmark_finish(&w->fork);
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->changed);
        lf_free(&c->allocator, w);
        return lf_error(&c->allocator, LF_OUT_OF_MEMORY, "cannot start a thread for callbacks (error %d)", failed);
    }
    c->watcher = w;
    return NULL;
}

lf_status lf_watch_add(lfuser_context *c, lf_watch watch) {
    pthread_mutex_lock(&c->lock);
    lf_status s = c->watcher ? NULL : start(c);
    lf_watcher *w = c->watcher;
    pthread_mutex_unlock(&c->lock);
    if (s) return s;
    if (lf_forked(&w->fork))
        return lf_error(
            &c->allocator, LF_UNAVAILABLE,
            "callbacks of a context that had some before fork are not called in the child: its thread is the parent's");
    pthread_mutex_lock(&w->lock);
    bool kept = lf_vec_push(&w->watches, watch);
    if (kept && watch.pending) atomic_fetch_add(&watch.pending->references, 1);
    if (kept && watch.completion) atomic_fetch_add(&watch.completion->references, 1);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return kept ? NULL : lf_out_of_memory();
}

void lf_watcher_stop(lf_watcher *w) {
    if (!w) return;
    bool forked = lf_forked(&w->fork);
    if (!forked) {
        pthread_mutex_lock(&w->lock);
        w->stopping = true;
        pthread_cond_signal(&w->changed);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
    for (size_t i = 0; i < w->watches.count; i++) let_go(&w->watches.data[i]);
    lf_vec_finish(&w->watches);
    if (!forked) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
    }
    lf_forkmark_finish(&w->fork);
    lf_free(&w->context->allocator, w);
}
