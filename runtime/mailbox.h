// Mailbox slots: how a kernel hands a scalar to the host with no synchronisation. A kernel writes the value, then
// the sequence with release order at system scope; the host looks at the sequence.
//
// A slot may be given back once the stream that writes it has passed (its sequence has changed, or the stream was
// synchronised): the pool hands it out again at once.
#ifndef LF_RUNTIME_MAILBOX_H
#define LF_RUNTIME_MAILBOX_H
#include "runtime/device.h"

typedef struct lf_mailbox_pool lf_mailbox_pool;

typedef struct lf_mailbox {
    lf_mailbox_slot *slot; // host's address; NULL: none
    void *device_slot;     // the same slot as kernels address it
    uint64_t seen;         // sequence without a value: 0 when the slot was taken; any other means that one has arrived
    uint32_t index;
} lf_mailbox;

lf_status lf_mailbox_pool_create(lf_device *device, lf_mailbox_pool **out_pool) LF_MUST_USE;
// No kernel may still write to a slot of it.
void lf_mailbox_pool_destroy(lf_mailbox_pool *pool);

// Any thread; no lock and no allocation unless all slots are in use. The old value stays in the slot.
lf_status lf_mailbox_take(lf_mailbox_pool *pool, lf_mailbox *out_box) LF_MUST_USE;
// Any thread. A box without a slot is fine. Clears it.
void lf_mailbox_give(lf_mailbox_pool *pool, lf_mailbox *box);

static inline bool lf_mailbox_ready(const lf_mailbox *box) {
    return atomic_load_explicit(&box->slot->sequence, memory_order_acquire) != box->seen;
}
// True, with the value, once it has arrived. A replay that writes the slot meanwhile must be kept away by the owner.
bool lf_mailbox_read(const lf_mailbox *box, uint64_t out_value[2]);
// Polls, then yields, then sleeps between looks. LF_TIMEOUT after timeout_ns; UINT64_MAX waits without end. This is no
// device synchronisation and is not counted as one.
bool lf_mailbox_await(const lf_mailbox *box, uint64_t timeout_ns); // false: the time is over
lf_status lf_mailbox_wait(const lf_mailbox *box, const lf_allocator *a, uint64_t timeout_ns) LF_MUST_USE;
#endif
