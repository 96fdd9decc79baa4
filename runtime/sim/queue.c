// Faults of the launches on a stream, until they are told: to the next event recorded there, and to the next synchronisation.
#include "runtime/sim/device.h"
#include <stdio.h>

// Of all launches for which there was no memory, or none to tell what was wrong with them. Nobody writes it.
static const lf_sim_fault_text no_memory = {.no_memory = true};

void lf_sim_unref_fault(const lf_allocator *a, lf_sim_fault_text *f) {
    if (f && !f->no_memory && atomic_fetch_sub(&f->refs, 1) == 1) lf_free(a, f);
}

void lf_sim_put_fault(const lf_allocator *a, lf_sim_queue *q, const lf_sim_run *r) {
    lf_sim_fault_text *f = r->no_memory ? NULL : lf_alloc_zero(a, sizeof *f);
    if (f) {
        atomic_init(&f->refs, 2);
        snprintf(f->text, sizeof f->text, "%s", r->text);
    } else {
        f = (lf_sim_fault_text *)&no_memory;
    }
    pthread_mutex_lock(&q->lock);
    bool event = !q->for_event, synchronize = !q->for_synchronize; // the first one is told
    if (event) q->for_event = f;
    if (synchronize) q->for_synchronize = f;
    pthread_mutex_unlock(&q->lock);
    if (!event) lf_sim_unref_fault(a, f);
    if (!synchronize) lf_sim_unref_fault(a, f);
}

lf_status lf_sim_status_of(const lf_allocator *a, const lf_sim_fault_text *f) {
    if (!f) return NULL;
    return f->no_memory ? lf_out_of_memory() : lf_error(a, LF_DEVICE_ERROR, "%s", f->text);
}

lf_sim_queue *lf_sim_find_queue(lf_sim_device *d, void *native) {
    pthread_mutex_lock(&d->lock);
    lf_sim_queue *q = d->queues;
    while (q && q->native != native) q = q->next;
    if (!q && (q = lf_alloc_zero(d->base.allocator, sizeof *q))) {
        q->native = native;
        pthread_mutex_init(&q->lock, NULL);
        q->next = d->queues;
        d->queues = q;
    }
    if (q) q->refs++;
    pthread_mutex_unlock(&d->lock);
    return q;
}

void lf_sim_forget_faults(lf_sim_device *d, lf_sim_queue *q) {
    pthread_mutex_lock(&q->lock);
    lf_sim_unref_fault(d->base.allocator, q->for_event);
    lf_sim_unref_fault(d->base.allocator, q->for_synchronize);
    q->for_event = q->for_synchronize = NULL;
    pthread_mutex_unlock(&q->lock);
}

// Without `idle` the queue stays for work that still refers to it, and for the next stream there.
void lf_sim_drop_queue(lf_sim_device *d, lf_sim_queue *q, bool idle) {
    pthread_mutex_lock(&d->lock);
    bool last = --q->refs == 0 && idle;
    for (lf_sim_queue **at = &d->queues; last && *at; at = &(*at)->next)
        if (*at == q) {
            *at = q->next;
            break;
        }
    pthread_mutex_unlock(&d->lock);
    if (!last) return;
    lf_sim_forget_faults(d, q);
    pthread_mutex_destroy(&q->lock);
    lf_free(d->base.allocator, q);
}
