// How runs ended, and what is done about errors that nobody asks for.
#include "api/api.h"
#include <time.h>

static void reset(lfuser_completion *c, lfuser_executable *e) {
    c->executable = e;
    lf_executable_retain(e);
    c->captured = false;
    atomic_store_explicit(&c->read, false, memory_order_relaxed);
    atomic_store_explicit(&c->references, 1, memory_order_relaxed);
    if (c->box.slot) c->box.slot->value[0] = 0;
}

static void free_completion(const lf_allocator *a, lfuser_completion *c) {
    if (c->event) c->event->device->ops->event_destroy(c->event);
    lf_free(a, c);
}

// One from before keeps its event and its mailbox slot.
lf_status lf_completion_create(lfuser_executable *e, lfuser_completion **out_completion) {
    lfuser_device *d = e->device;
    lfuser_completion *c = lf_spares_take(&d->spare_completions);
    *out_completion = NULL;
    if (!c) {
        c = lf_alloc_zero(&e->context->allocator, sizeof *c);
        if (!c) return lf_out_of_memory();
        lf_status s = d->device->ops->event_create(d->device, &c->event);
        if (!s) s = lf_device_take_mailbox(d, &c->box);
        if (s) {
            free_completion(&e->context->allocator, c);
            return s;
        }
    }
    reset(c, e);
    c->device = d;
    lf_device_retain(d);
    *out_completion = c;
    return NULL;
}

lf_status lf_completion_create_done(lfuser_executable *e, lfuser_completion **out_completion) {
    lfuser_completion *c = *out_completion = lf_alloc_zero(&e->context->allocator, sizeof **out_completion);
    if (!c) return lf_out_of_memory();
    reset(c, e);
    return NULL;
}

void lf_completions_free(lfuser_device *d) {
    for (lfuser_completion *c; (c = lf_spares_take(&d->spare_completions));) free_completion(&d->context->allocator, c);
}

void lfuser_completion_release(lfuser_completion *c) {
    if (!c || atomic_fetch_sub(&c->references, 1) != 1) return;
    lfuser_device *d = c->device;
    lfuser_executable *e = c->executable;
    const lf_allocator *a = &e->context->allocator;
    // A captured run's slot is written to whenever its graph is replayed.
    if (!d || c->captured) {
        free_completion(a, c);
    } else if (!lf_spares_give(&d->spare_completions, c)) {
        lf_mailbox_give(d->mailboxes, &c->box);
        free_completion(a, c);
    }
    lf_device_release(d);
    lf_executable_release(e);
}

// ---- what there is to say ------------------------------------------------------------------------------------------------------------

static lf_status outcome(const lfuser_completion *c) {
    const lf_allocator *a = &c->executable->context->allocator;
    const lf_program *program = c->executable->program;
    uint64_t number = c->box.slot ? *(volatile const uint64_t *)&c->box.slot->value[0] : 0;
    if (!number) return NULL;
    if (number > program->n_index_ops)
        return lf_error(a, LF_INDEX_ERROR, "an index was out of range; the element read as 0");
    const lf_op *op = program->index_ops[number - 1];
    const char *name = op->n_results && op->results[0].name ? op->results[0].name : NULL;
    return lf_error_at(a, LF_INDEX_ERROR, op->place,
                       "@%s: '%s'%s%s: an index was out of range along axis %d; the element read as 0 (%s:%u:%u)",
                       program->abi.name, lf_op_info_of(op->code)->name, name ? " giving %" : "", name ? name : "",
                       (int)op->axis, op->place.file ? op->place.file : "<built>", op->place.line, op->place.column);
}

// NULL: it is over. Nothing is recorded of a captured run: it reports what replays have met so far.
static lf_status query(const lfuser_completion *c) {
    return !c->event || c->captured ? NULL : c->event->device->ops->event_query(c->event);
}

static lf_status with_name(const lfuser_completion *c, lf_status s) {
    return s ? lf_status_note(s, "while running @%s", c->executable->program->abi.name) : s;
}

// The outcome for the caller, who is thereby told.
static lfuser_status told(lfuser_completion *c, lf_status s) {
    s = s ? with_name(c, s) : outcome(c);
    if (s) atomic_store(&c->read, true);
    return lf_public(s);
}

bool lf_completion_is_over(const lfuser_completion *c) {
    lf_status s = query(c);
    bool over = lf_status_code(s) != LF_NOT_READY;
    lf_status_destroy(s);
    return over;
}

lfuser_status lfuser_completion_query(lfuser_completion *c) {
    lf_status s = query(c);
    if (lf_status_code(s) == LF_NOT_READY) {
        lf_status_destroy(s);
        return lf_public(lf_error(&c->executable->context->allocator, LF_NOT_READY, "the run has not completed yet"));
    }
    return told(c, s);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

lfuser_status lfuser_completion_wait(lfuser_completion *c, uint64_t timeout_ns) {
    if (c->event && !c->captured && timeout_ns == UINT64_MAX) return told(c, c->event->device->ops->event_wait(c->event));
    for (uint64_t start = now_ns();;) {
        lf_status s = query(c);
        if (lf_status_code(s) != LF_NOT_READY) return told(c, s);
        lf_status_destroy(s);
        if (now_ns() - start >= timeout_ns)
            return lf_public(lf_error(&c->executable->context->allocator, LF_TIMEOUT,
                                      "the run did not complete within %llu ns", (unsigned long long)timeout_ns));
        nanosleep(&(struct timespec){0, 20000}, NULL);
    }
}

lfuser_status lfuser_completion_callback(lfuser_completion *c, void (*fn)(void *arg), void *arg) {
    if (!c || !fn)
        return lf_public(
            lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "lfuser_completion_callback: an argument is NULL"));
    return lf_public(lf_watch_add(c->executable->context, (lf_watch){.completion = c, .fn = fn, .arg = arg}));
}

// ---- errors that nobody read -----------------------------------------------------------------------------------------------------------

// The executable keeps a reference to the completion of every run that can meet an index error until its event has passed, so a
// slot is never given back while a kernel may write to it. The first few lie in places that no lock guards; of captured runs it
// keeps the reference to the end.
static bool keep(lfuser_executable *e, lfuser_completion *c) {
    if (!c->captured && lf_spares_give(&e->unread, c)) return true;
    pthread_mutex_lock(&e->lock);
    bool kept = c->captured ? lf_vec_push(&e->captured, c) : lf_vec_push(&e->more_unread, c);
    if (kept) atomic_fetch_add_explicit(&e->n_more, 1, memory_order_relaxed);
    pthread_mutex_unlock(&e->lock);
    return kept;
}

lf_status lf_executable_keep_unread(lfuser_executable *e, lfuser_completion *c) {
    atomic_fetch_add(&c->references, 1);
    if (keep(e, c)) return NULL;
    atomic_fetch_sub(&c->references, 1);
    return lf_out_of_memory();
}

// Nobody has asked, and nobody will: to the log, and into *out_found if it is the first.
static void report(lfuser_executable *e, const lfuser_completion *c, lf_status s, lf_status *out_found) {
    if (!s) s = outcome(c);
    if (!s) return;
    lf_log_write(&e->context->log, LF_LOG_ERROR, "%s", lf_status_message(s));
    if (*out_found)
        lf_status_destroy(s);
    else
        *out_found = s;
}

// False: it is still under way.
static bool finish(lfuser_executable *e, lfuser_completion *c, lf_status *out_found) {
    lf_status s = query(c);
    if (lf_status_code(s) == LF_NOT_READY) return lf_status_destroy(s), false;
    if (atomic_load(&c->references) == 1 && !atomic_load(&c->read))
        report(e, c, with_name(c, s), out_found);
    else
        lf_status_destroy(s);
    lfuser_completion_release(c);
    return true;
}

static void check_locked_away(lfuser_executable *e, lf_status *out_found) {
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < e->more_unread.count;) {
        if (!finish(e, e->more_unread.data[i], out_found)) {
            i++;
            continue;
        }
        e->more_unread.data[i] = e->more_unread.data[--e->more_unread.count];
        atomic_fetch_sub_explicit(&e->n_more, 1, memory_order_relaxed);
    }
    for (size_t i = 0; i < e->captured.count; i++) {
        lfuser_completion *c = e->captured.data[i];
        if (atomic_load(&c->references) != 1 || atomic_load(&c->read)) continue;
        report(e, c, NULL, out_found);
        if (*out_found) c->box.slot->value[0] = 0; // told; the next replay may find another
    }
    pthread_mutex_unlock(&e->lock);
}

lf_status lf_executable_check_unread(lfuser_executable *e) {
    lf_status found = NULL;
    for (unsigned i = 0; i < LF_SPARES; i++) {
        if (!atomic_load_explicit(&e->unread.places[i], memory_order_relaxed)) continue;
        lfuser_completion *c = atomic_exchange_explicit(&e->unread.places[i], NULL, memory_order_acquire);
        if (!c || finish(e, c, &found) || keep(e, c)) continue;
        lf_status_destroy(c->event->device->ops->event_wait(c->event)); // no memory to remember it: it must end here
        finish(e, c, &found);
    }
    if (atomic_load_explicit(&e->n_more, memory_order_relaxed)) check_locked_away(e, &found);
    return found ? lf_status_note(found,
                                  "this error is of an earlier run of the executable, whose completion nobody asked for")
                 : NULL;
}

// The streams have been waited for.
static void drop(lfuser_executable *e, lfuser_completion *c) {
    lf_status logged = NULL;
    if (atomic_load(&c->references) == 1 && !atomic_load(&c->read)) report(e, c, NULL, &logged);
    lf_status_destroy(logged);
    lfuser_completion_release(c);
}

void lf_executable_drop_unread(lfuser_executable *e) {
    for (lfuser_completion *c; (c = lf_spares_take(&e->unread));) drop(e, c);
    for (size_t i = 0; i < e->more_unread.count; i++) drop(e, e->more_unread.data[i]);
    for (size_t i = 0; i < e->captured.count; i++) drop(e, e->captured.data[i]);
    lf_vec_finish(&e->more_unread);
    lf_vec_finish(&e->captured);
}
