// Pending scalars: handles of mailbox slots that a kernel writes to.
#include "api/api.h"

enum { LOOK_AT_DEVICE_NS = 1000000 };

lf_status lf_pending_create(lfuser_device *d, lf_dtype dtype, bool captured, lfuser_pending **out_pending) {
    *out_pending = NULL;
    lf_mailbox box;
    LF_TRY(lf_device_take_mailbox(d, &box));
    lfuser_pending *p = lf_spares_take(&d->spare_pendings);
    if (!p) p = lf_alloc_zero(&d->context->allocator, sizeof *p);
    if (!p) {
        lf_mailbox_give(d->mailboxes, &box);
        return lf_out_of_memory();
    }
    *p = (lfuser_pending){.device = d, .box = box, .dtype = dtype, .captured = captured, .references = 1};
    lf_device_retain(d);
    *out_pending = p;
    return NULL;
}

// written: nothing that could write to its slot is under way.
void lf_pending_release(lfuser_pending *p, bool written) {
    if (!p || atomic_fetch_sub(&p->references, 1) != 1) return;
    lfuser_device *d = p->device;
    // A graph may be replayed at any time: its slots are its own from then on.
    if (!p->captured) lf_device_give_mailbox(d, &p->box, written);
    if (!lf_spares_give(&d->spare_pendings, p)) lf_free(&d->context->allocator, p);
    lf_device_release(d);
}

void lfuser_pending_release(lfuser_pending *p) { lf_pending_release(p, false); }

bool lfuser_pending_ready(const lfuser_pending *p) { return lf_mailbox_ready(&p->box); }

static lf_status wait(lfuser_pending *p, uint64_t timeout_ns) {
    const lf_allocator *a = &p->device->context->allocator;
    for (uint64_t left = timeout_ns;;) {
        uint64_t now = left < LOOK_AT_DEVICE_NS ? left : LOOK_AT_DEVICE_NS;
        if (lf_mailbox_await(&p->box, now)) return NULL;
        LF_TRY(lf_device_health(p->device));
        if (left != UINT64_MAX) left -= now;
        if (!left) return lf_error(a, LF_TIMEOUT, "no value from the device within %llu ns", (unsigned long long)timeout_ns);
    }
}

lfuser_status lfuser_pending_get(lfuser_pending *p, uint64_t timeout_ns, lfuser_scalar *out_value) {
    uint64_t words[2] = {0, 0};
    *out_value = (lfuser_scalar){.word = {0, 0}};
    if (!lf_mailbox_read(&p->box, words)) {
        if (timeout_ns == 0)
            return lf_public(
                lf_error(&p->device->context->allocator, LF_NOT_READY, "the device has not delivered this scalar yet"));
        lf_status s = wait(p, timeout_ns);
        if (s) return lf_public(s);
        lf_mailbox_read(&p->box, words);
    }
    __builtin_memcpy(out_value, words, lf_dtype_bytes(p->dtype));
    return NULL;
}

void lfuser_pending_rearm(lfuser_pending *p) {
    p->box.seen = atomic_load_explicit(&p->box.slot->sequence, memory_order_acquire);
}

lfuser_status lfuser_pending_callback(lfuser_pending *p, void (*fn)(void *arg), void *arg) {
    if (!p || !fn)
        return lf_public(
            lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "lfuser_pending_callback: an argument is NULL"));
    return lf_public(lf_watch_add(p->device->context, (lf_watch){.pending = p, .fn = fn, .arg = arg}));
}
