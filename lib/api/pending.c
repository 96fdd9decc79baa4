// Pending scalars: handles of mailbox slots that a kernel writes to, and of what the host finishes from several of them.
#include "api/api.h"
#include "runtime/fpstate.h"
#include <string.h>

enum { LOOK_AT_DEVICE_NS = 1000000 };

static lf_status take_pending(lfuser_device *d, lf_dtype dtype, lfuser_pending **out_pending) {
    lfuser_pending *p = *out_pending = lf_spares_take(&d->spare_pendings);
    if (!p) p = *out_pending = lf_alloc_zero(&d->context->allocator, sizeof *p);
    if (!p) return lf_out_of_memory();
    *p = (lfuser_pending){.device = d, .dtype = dtype, .references = 1};
    lf_device_retain(d);
    return NULL;
}

lf_status lf_pending_create(lfuser_device *d, lf_dtype dtype, bool captured, lfuser_pending **out_pending) {
    *out_pending = NULL;
    lf_mailbox box;
    LF_TRY(lf_device_take_mailbox(d, &box));
    lf_status s = take_pending(d, dtype, out_pending);
    if (s) return lf_mailbox_give(d->mailboxes, &box), s;
    (*out_pending)->box = box;
    (*out_pending)->captured = captured;
    return NULL;
}

// ---- finished by the host ------------------------------------------------------------------------------------------------------------

lf_status lf_pending_create_finish(lfuser_executable *e, lf_dtype dtype, uint32_t number, lfuser_pending *const *arrivals,
                                   lfuser_pending **out_pending) {
    const lfuser_abi_program *abi = &e->program->abi;
    const lfuser_abi_finish *finish = &abi->finishes[number];
    lfuser_device *d = e->device;
    *out_pending = NULL;
    lf_finish_run *f = lf_spares_take(&d->spare_finishes);
    if (!f) f = lf_alloc_zero(&e->context->allocator, sizeof *f);
    if (!f) return lf_out_of_memory();
    lf_status s = take_pending(d, dtype, out_pending);
    if (s) return lf_free(&e->context->allocator, f), s;
    (*out_pending)->finish = f;
    f->executable = e;
    lf_executable_retain(e);
    f->number = number;
    f->n_arrivals = 0;
    for (uint32_t i = 0; i < finish->n_operands; i++) {
        const lfuser_abi_finish_operand *o = &abi->finish_operands[finish->first_operand + i];
        if (o->arrival == LFUSER_ABI_NONE) continue;
        lfuser_pending *from = arrivals[o->arrival];
        atomic_fetch_add(&from->references, 1);
        f->arrivals[f->n_arrivals].pending = from;
        f->arrivals[f->n_arrivals].box = from->box;
        f->arrivals[f->n_arrivals++].word = o->word;
    }
    return NULL;
}

void lf_pending_keep_operands(lfuser_pending *p, const uint64_t *slots) {
    const lfuser_abi_program *abi = &p->finish->executable->program->abi;
    const lfuser_abi_finish *finish = &abi->finishes[p->finish->number];
    for (uint32_t i = 0; i < finish->n_operands; i++) {
        const lfuser_abi_finish_operand *o = &abi->finish_operands[finish->first_operand + i];
        if (o->arrival == LFUSER_ABI_NONE) memcpy(&p->finish->words[o->word], &slots[o->slot], o->n_words * sizeof *slots);
    }
}

// All that it is made from has arrived.
static void finish(const lf_finish_run *f, uint64_t out_words[2]) {
    uint64_t words[LFUSER_ABI_FINISH_WORDS + 2] = {0}, arrived[2];
    const lfuser_executable *e = f->executable;
    memcpy(words, f->words, e->program->abi.finishes[f->number].result * sizeof *words);
    for (uint32_t i = 0; i < f->n_arrivals; i++) {
        lf_dtype dtype = f->arrivals[i].pending->dtype;
        lf_mailbox_read(&f->arrivals[i].box, arrived);
        memset(&words[f->arrivals[i].word], 0, sizeof *words);
        memcpy(&words[f->arrivals[i].word], arrived, lf_dtype_bytes(dtype));
    }
    lf_fpstate fp = lf_fp_enter();
    e->host.finishes[f->number](words);
    lf_fp_leave(fp);
    memcpy(out_words, &words[e->program->abi.finishes[f->number].result], 2 * sizeof *words);
}

static void release_finish(lfuser_device *d, lf_finish_run *f, bool written) {
    if (!f) return;
    for (uint32_t i = 0; i < f->n_arrivals; i++) lf_pending_release(f->arrivals[i].pending, written);
    lf_executable_release(f->executable);
    if (!lf_spares_give(&d->spare_finishes, f)) lf_free(&d->context->allocator, f);
}

// ---- the slots that one waits for ----------------------------------------------------------------------------------------------------

static uint32_t n_boxes(const lfuser_pending *p) { return p->finish ? p->finish->n_arrivals : 1; }

static const lf_mailbox *box_of(const lfuser_pending *p, uint32_t i) {
    return p->finish ? &p->finish->arrivals[i].box : &p->box;
}

bool lf_pending_is_there(const lfuser_pending *p) {
    for (uint32_t i = 0; i < n_boxes(p); i++)
        if (!lf_mailbox_ready(box_of(p, i))) return false;
    return true;
}

// One after the other: a slot that has its value stays so.
static lf_status wait(lfuser_pending *p, uint64_t timeout_ns) {
    const lf_allocator *a = &p->device->context->allocator;
    uint64_t left = timeout_ns;
    for (uint32_t i = 0; i < n_boxes(p);) {
        uint64_t now = left < LOOK_AT_DEVICE_NS ? left : LOOK_AT_DEVICE_NS;
        if (lf_mailbox_await(box_of(p, i), now)) {
            i++;
            continue;
        }
        LF_TRY(lf_device_health(p->device));
        if (left != UINT64_MAX) left -= now;
        if (!left) return lf_error(a, LF_TIMEOUT, "no value from the device within %llu ns", (unsigned long long)timeout_ns);
    }
    return NULL;
}

// ---- public --------------------------------------------------------------------------------------------------------------------------

// written: nothing that could write to its slot is under way.
void lf_pending_release(lfuser_pending *p, bool written) {
    if (!p || atomic_fetch_sub(&p->references, 1) != 1) return;
    lfuser_device *d = p->device;
    release_finish(d, p->finish, written);
    // A graph may be replayed at any time: its slots are its own from then on.
    if (!p->captured) lf_device_give_mailbox(d, &p->box, written);
    if (!lf_spares_give(&d->spare_pendings, p)) lf_free(&d->context->allocator, p);
    lf_device_release(d);
}

void lfuser_pending_release(lfuser_pending *p) { lf_pending_release(p, false); }

bool lfuser_pending_ready(const lfuser_pending *p) { return lf_pending_is_there(p); }

lfuser_status lfuser_pending_get(lfuser_pending *p, uint64_t timeout_ns, lfuser_scalar *out_value) {
    uint64_t words[2] = {0, 0};
    *out_value = (lfuser_scalar){.word = {0, 0}};
    if (!lf_pending_is_there(p)) {
        if (timeout_ns == 0)
            return lf_public(
                lf_error(&p->device->context->allocator, LF_NOT_READY, "the device has not delivered this scalar yet"));
        lf_status s = wait(p, timeout_ns);
        if (s) return lf_public(s);
    }
    if (p->finish)
        finish(p->finish, words);
    else
        lf_mailbox_read(&p->box, words);
    memcpy(out_value, words, lf_dtype_bytes(p->dtype));
    return NULL;
}

static void rearm(lf_mailbox *box) { box->seen = atomic_load_explicit(&box->slot->sequence, memory_order_acquire); }

void lfuser_pending_rearm(lfuser_pending *p) {
    for (uint32_t i = 0; p->finish && i < p->finish->n_arrivals; i++) rearm(&p->finish->arrivals[i].box);
    if (!p->finish) rearm(&p->box);
}

lfuser_status lfuser_pending_callback(lfuser_pending *p, void (*fn)(void *arg), void *arg) {
    if (!p || !fn)
        return lf_public(
            lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "lfuser_pending_callback: an argument is NULL"));
    return lf_public(lf_watch_add(p->device->context, (lf_watch){.pending = p, .fn = fn, .arg = arg}));
}
