// Global memory between threads of one launch. For four bytes it is kept who wrote them last. Blocks run in turn here, so nothing goes wrong
// by itself: what would on a GPU is found by what is missing between a write and the next access by another thread: in a block, a barrier;
// between blocks, a fence of the writer and an atomic access of the reader.
#include "runtime/sim/sim.h"

void lf_sim_fence(lf_sim_thread *t, unsigned flags) {
    lf_sim_run *r = t->run;
    if (flags & LF_SIM_SYSTEM) t->unfenced = false;
    if (!(flags & LF_SIM_RELEASE)) return;
    t->fence_epoch = t->block->epoch;
    t->fence_order = ++r->order;
}

// An atomic write tells other blocks of what the thread has fenced before it; a fence after it comes too late.
static void publish(lf_sim_thread *t) {
    lf_sim_run *r = t->run;
    if (!r->released || !t->fence_order) return;
    r->released[t->block->ctaid].any = true;
    r->released[t->block->ctaid].epoch = t->fence_epoch;
    r->released[t->block->ctaid].order = t->fence_order;
    r->released[t->block->ctaid].thread = t->number;
}

// Whether the block that wrote the cell has published the write: by a thread that had passed a barrier since, or by the writer.
static bool is_released(const lf_sim_run *r, const lf_sim_cell *c) {
    if (!r->released || !r->released[c->block].any) return false;
    if (r->released[c->block].epoch > c->epoch) return true;
    return r->released[c->block].epoch == c->epoch && r->released[c->block].thread == c->thread &&
           r->released[c->block].order > c->order;
}

static void check_other(lf_sim_thread *t, const lf_sim_cell *c, uint64_t at, uint32_t site, unsigned flags) {
    lf_sim_run *r = t->run;
    const char *verb = flags & LF_SIM_WRITE ? "writes" : "reads";
    if (c->atomic && flags & LF_SIM_ATOMIC) return;
    if (c->block == t->block->ctaid) {
        bool same_warp = c->thread / LF_SIM_WARP == t->number / LF_SIM_WARP; // lanes may have met at a sync of their warp
        if (c->epoch == t->block->epoch && c->thread != t->number &&
            !(same_warp && t->block->warp_epoch[t->number / LF_SIM_WARP]))
            lf_sim_fault(t, LF_SIM_GLOBAL_RACE, site,
                         "%s byte %llu of an allocation, which thread %u has written since the last barrier", verb,
                         (unsigned long long)at, c->thread);
        return;
    }
    if (c->block / r->cluster == t->block->ctaid / r->cluster && c->epoch < r->cluster_epoch) return; // both have met since
    if (!t->block->atomics)
        lf_sim_fault(t, LF_SIM_GLOBAL_RACE, site, "%s byte %llu of an allocation, which block %u has written in this launch",
                     verb, (unsigned long long)at, c->block);
    if (!is_released(r, c))
        lf_sim_fault(t, LF_SIM_MISSING_FENCE, site,
                     "%s byte %llu of an allocation, which thread %u of block %u has written with no fence after it", verb,
                     (unsigned long long)at, c->thread, c->block);
}

void lf_sim_global_races(lf_sim_thread *t, const lf_sim_allocation *a, uintptr_t address, uint64_t bytes, uint32_t site,
                         unsigned flags) {
    lf_sim_run *r = t->run;
    if (flags & LF_SIM_ATOMIC) t->block->atomics++;
    if (flags & LF_SIM_ATOMIC && flags & LF_SIM_WRITE) publish(t);
    if (!a->cells) return;
    uint64_t at = address - a->begin;
    for (uint64_t end = at + bytes; at < end; at = at / 4 * 4 + 4) {
        lf_sim_cell *c = &a->cells[at / 4];
        uint64_t last = at / 4 * 4 + 4 < end ? at / 4 * 4 + 4 : end;
        uint8_t mask = (uint8_t)((1u << (last - at)) - 1u) << at % 4;
        bool known = c->launch == r->launch && c->bytes & mask;
        if (known && flags & LF_SIM_INVARIANT)
            lf_sim_fault(t, LF_SIM_STALE_READ, site,
                         "reads byte %llu of an allocation as never written in a launch, but block %u has written it",
                         (unsigned long long)at, c->block);
        if (known) check_other(t, c, at, site, flags);
        if (!(flags & LF_SIM_WRITE)) continue;
        bool mine =
            c->launch == r->launch && c->block == t->block->ctaid && c->thread == t->number && c->epoch == t->block->epoch;
        *c = (lf_sim_cell){.launch = r->launch,
                           .block = t->block->ctaid,
                           .epoch = t->block->epoch,
                           .order = ++r->order,
                           .thread = (uint16_t)t->number,
                           .bytes = (uint8_t)(mask | (mine ? c->bytes : 0)),
                           .atomic = (flags & LF_SIM_ATOMIC) != 0};
    }
}
