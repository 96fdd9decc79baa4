// Replays of an executable: the launches of each stage as something that the device keeps (a CUDA graph), one set a stream.
#include "api/api.h"

// The first ones serve; a stream that finds no place launches one by one.
lf_replays *lf_executable_take_replays(lfuser_executable *e, lfuser_stream *stream) {
    for (unsigned i = 0; i < LF_SPARES; i++) {
        lf_replays *r = atomic_load_explicit(&e->replays.places[i], memory_order_relaxed);
        if (!r) continue;
        r = atomic_exchange_explicit(&e->replays.places[i], NULL, memory_order_acquire);
        if (r && r->stream == stream) return r;
        if (r) lf_spares_give(&e->replays, r);
    }
    if (atomic_fetch_add(&e->n_replays, 1) >= LF_SPARES) {
        atomic_fetch_sub(&e->n_replays, 1);
        return NULL;
    }
    lf_replays *r = lf_alloc_zero(&e->context->allocator, sizeof *r + e->program->abi.n_stages * sizeof *r->stages);
    if (r)
        r->stream = stream; // one that the executable has noted: it outlives this
    else
        atomic_fetch_sub(&e->n_replays, 1);
    return r;
}

void lf_executable_give_replays(lfuser_executable *e, lf_replays *r) {
    if (r) lf_spares_give(&e->replays, r); // there are no more of them than places
}

void lf_executable_free_replays(lfuser_executable *e) {
    for (lf_replays *r; (r = lf_spares_take(&e->replays));) {
        for (uint32_t i = 0; i < e->program->abi.n_stages; i++) e->device->device->ops->replay_destroy(r->stages[i]);
        lf_free(&e->context->allocator, r);
    }
}
