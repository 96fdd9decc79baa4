// Pending scalars, and how runs ended.
#include "api/api.h"
#include <time.h>

// ---- pending scalars -----------------------------------------------------------------------------------------------------------------

bool lfuser_pending_ready(const lfuser_pending *p) { return lf_mailbox_ready(&p->box); }

lfuser_status lfuser_pending_get(lfuser_pending *p, uint64_t timeout_ns, lfuser_scalar *out_value) {
    const lf_allocator *a = &p->device->context->allocator;
    uint64_t words[2] = {0, 0};
    *out_value = (lfuser_scalar){.word = {0, 0}};
    if (!lf_mailbox_read(&p->box, words)) {
        if (timeout_ns == 0) return lf_public(lf_error(a, LF_NOT_READY, "the device has not delivered this scalar yet"));
        lf_status s = lf_mailbox_wait(&p->box, a, timeout_ns);
        if (s) return lf_public(s);
        lf_mailbox_read(&p->box, words);
    }
    unsigned bytes = lf_dtype_bytes(p->dtype);
    __builtin_memcpy(out_value, words, bytes);
    return NULL;
}

void lfuser_pending_release(lfuser_pending *p) {
    if (!p) return;
    lfuser_device *d = p->device;
    lf_device_give_mailbox(d, &p->box, false);
    lf_free(&d->context->allocator, p);
    lf_device_release(d);
}

// ---- completions ---------------------------------------------------------------------------------------------------------------------

lf_status lf_completion_create(lfuser_executable *e, lfuser_completion **out_completion) {
    *out_completion = NULL;
    lfuser_completion *c = lf_alloc_zero(&e->context->allocator, sizeof *c);
    if (!c) return lf_out_of_memory();
    *c = (lfuser_completion){.context = e->context, .references = 1, .program = e->program};
    lf_status s = NULL;
    if (e->device) {
        c->device = e->device;
        lf_device_retain(e->device);
        s = e->device->device->ops->event_create(e->device->device, &c->event);
        if (!s) s = lf_device_take_mailbox(e->device, &c->box);
        if (!s) c->box.slot->value[0] = 0;
    }
    if (s) {
        lfuser_completion_release(c);
        return s;
    }
    *out_completion = c;
    return NULL;
}

lf_status lf_completion_create_done(lfuser_executable *e, lfuser_completion **out_completion) {
    *out_completion = lf_alloc_zero(&e->context->allocator, sizeof **out_completion);
    if (!*out_completion) return lf_out_of_memory();
    **out_completion = (lfuser_completion){.context = e->context, .references = 1};
    return NULL;
}

static lf_status outcome(const lfuser_completion *c) {
    uint64_t number = c->box.slot ? *(volatile const uint64_t *)&c->box.slot->value[0] : 0;
    if (!number) return NULL;
    if (!c->program || number > c->program->n_index_ops)
        return lf_error(&c->context->allocator, LF_INDEX_ERROR, "an index was out of range; the element read as 0");
    const lf_op *op = c->program->index_ops[number - 1];
    const char *name = op->n_results && op->results[0].name ? op->results[0].name : NULL;
    return lf_error_at(&c->context->allocator, LF_INDEX_ERROR, op->place,
                       "@%s: '%s'%s%s: an index was out of range along axis %d; the element read as 0 (%s:%u:%u)", c->program->abi.name,
                       lf_op_info_of(op->code)->name, name ? " giving %" : "", name ? name : "", (int)op->axis,
                       op->place.file ? op->place.file : "<built>", op->place.line, op->place.column);
}

// The outcome for the caller, who is thereby told.
static lfuser_status told(lfuser_completion *c, lf_status s) {
    if (!s) s = outcome(c);
    if (s) atomic_store(&c->read, true);
    return lf_public(s);
}

lfuser_status lfuser_completion_query(lfuser_completion *c) {
    if (!c->event) return NULL;
    lf_status s = c->device->device->ops->event_query(c->event);
    if (lf_status_code(s) == LF_NOT_READY) {
        lf_status_destroy(s);
        return lf_public(lf_error(&c->context->allocator, LF_NOT_READY, "the run has not completed yet"));
    }
    return told(c, s);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

lfuser_status lfuser_completion_wait(lfuser_completion *c, uint64_t timeout_ns) {
    if (!c->event) return NULL;
    const lf_device_ops *ops = c->device->device->ops;
    if (timeout_ns == UINT64_MAX) return told(c, ops->event_wait(c->event));
    for (uint64_t start = now_ns();;) {
        lf_status s = ops->event_query(c->event);
        if (lf_status_code(s) != LF_NOT_READY) return told(c, s);
        lf_status_destroy(s);
        if (now_ns() - start >= timeout_ns)
            return lf_public(lf_error(&c->context->allocator, LF_TIMEOUT, "the run did not complete within %llu ns", (unsigned long long)timeout_ns));
        nanosleep(&(struct timespec){0, 20000}, NULL);
    }
}

void lfuser_completion_release(lfuser_completion *c) {
    if (!c || atomic_fetch_sub(&c->references, 1) != 1) return;
    if (c->event) c->device->device->ops->event_destroy(c->event);
    if (c->device) lf_mailbox_give(c->device->mailboxes, &c->box);  // kernels that could write to it have passed: see below
    lf_device_release(c->device);
    lf_free(&c->context->allocator, c);
}

// ---- errors that nobody read -----------------------------------------------------------------------------------------------------------

// The executable keeps a reference to the completion of every run that can meet an index error until its event has passed, so a
// slot is never given back while a kernel may write to it.
lf_status lf_executable_keep_unread(lfuser_executable *e, lfuser_completion *c) {
    pthread_mutex_lock(&e->lock);
    bool kept = lf_vec_push(&e->unread, c);
    if (kept) atomic_fetch_add(&c->references, 1);
    pthread_mutex_unlock(&e->lock);
    return kept ? NULL : lf_out_of_memory();
}

lf_status lf_executable_check_unread(lfuser_executable *e) {
    lf_status found = NULL;
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < e->unread.count;) {
        lfuser_completion *c = e->unread.data[i];
        lf_status s = e->device->device->ops->event_query(c->event);
        if (lf_status_code(s) == LF_NOT_READY) {
            lf_status_destroy(s);
            i++;
            continue;
        }
        bool alone = atomic_load(&c->references) == 1 && !atomic_load(&c->read);  // nobody has asked, and nobody will
        if (!s && alone) s = outcome(c);
        if (s && alone) lf_log_write(&e->context->log, LF_LOG_ERROR, "%s", lf_status_message(s));
        if (s && alone && !found) found = s;
        else lf_status_destroy(s);
        e->unread.data[i] = e->unread.data[--e->unread.count];
        lfuser_completion_release(c);
    }
    pthread_mutex_unlock(&e->lock);
    return found ? lf_status_note(found, "this error is of an earlier run of the executable, whose completion nobody asked for") : NULL;
}

void lf_executable_drop_unread(lfuser_executable *e) {
    for (size_t i = 0; i < e->unread.count; i++) {
        lfuser_completion *c = e->unread.data[i];
        lf_status s = outcome(c);
        if (s && atomic_load(&c->references) == 1 && !atomic_load(&c->read)) lf_log_write(&e->context->log, LF_LOG_ERROR, "%s", lf_status_message(s));
        lf_status_destroy(s);
        c->program = NULL;  // goes with the executable
        lfuser_completion_release(c);
    }
    e->unread.count = 0;
}
