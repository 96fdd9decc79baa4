// Blocks that run together, a cluster: they read and write each other's shared memory, and meet at a barrier of their own, which a thread
// first arrives at and then waits at.
#include "runtime/sim/sim.h"

uint32_t lf_sim_rank_of(const lf_sim_run *r, const void *address) {
    return (uint32_t)((uint64_t)((const char *)address - r->device->shared) / r->stride);
}

// All have arrived who have not ended: what they did before is seen by all after.
static void settle(lf_sim_run *r) {
    if (!r->arrived || r->arrived + r->ended < r->cluster * r->block) return;
    lf_sim_note_unwritten(r);
    r->arrived = 0;
    r->phase++;
    r->cluster_epoch_before = r->cluster_epoch;
    r->cluster_epoch = ++r->epoch;
    for (uint32_t i = 0; i < r->cluster; i++) r->blocks[i].epoch = r->epoch;
    for (uint32_t i = 0; i < r->cluster * r->block; i++)
        if (r->threads[i].state == LF_SIM_AT_CLUSTER) r->threads[i].state = LF_SIM_READY;
}

void lf_sim_thread_ends(lf_sim_thread *t) {
    lf_sim_run *r = t->run;
    if (t->arrived)
        lf_sim_fault(t, LF_SIM_DIVERGENT_BARRIER, t->site,
                     "the thread ends after it has arrived at the cluster's barrier, before it waits there");
    if (t->early)
        lf_sim_fault(t, LF_SIM_EARLY_ACCESS, t->site,
                     "the thread ends, and with it perhaps the kernel, without having waited for the kernel before");
    t->block->ended++;
    r->ended++;
    settle(r);
}

void lf_sim_do_cluster_arrive(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint64_t *out) {
    (void)in, (void)out;
    lf_sim_run *r = t->run;
    if (t->arrived)
        lf_sim_fault(t, LF_SIM_DIVERGENT_BARRIER, site,
                     "arrives at the cluster's barrier twice, without waiting there in between");
    t->site = site;
    t->arrived = true;
    t->phase = r->phase;
    r->arrived++;
    settle(r);
}

void lf_sim_do_cluster_wait(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint64_t *out) {
    (void)in, (void)out;
    if (!t->arrived)
        lf_sim_fault(t, LF_SIM_DIVERGENT_BARRIER, site, "waits at the cluster's barrier without having arrived there");
    if (t->phase == t->run->phase) {
        t->site = site;
        t->state = LF_SIM_AT_CLUSTER;
        lf_sim_leave(t);
    }
    t->arrived = false;
}

// The same place in another block's shared memory.
void lf_sim_do_cluster_map(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint64_t *out) {
    const lf_sim_run *r = t->run;
    uint32_t rank = (uint32_t)in[1];
    if (rank >= r->cluster)
        lf_sim_fault(t, LF_SIM_OUT_OF_BOUNDS_SHARED, site, "an address of block %u of a cluster of %u", rank, r->cluster);
    out[0] = in[0] + (uint64_t)rank * r->stride - (uint64_t)t->block->rank * r->stride;
}

void lf_sim_check_owner(lf_sim_thread *t, const void *address, uint32_t site, const char *verb) {
    const lf_sim_run *r = t->run;
    uint32_t rank = lf_sim_rank_of(r, address);
    const lf_sim_block *owner = &r->blocks[rank];
    if (owner == t->block) return;
    if (owner->ended == r->block)
        lf_sim_fault(t, LF_SIM_OUT_OF_BOUNDS_SHARED, site, "%s of the shared memory of block %u, which has ended", verb,
                     owner->ctaid);
    for (uint32_t i = 0; i < r->block; i++)
        if (owner->threads[i].state == LF_SIM_NEW)
            lf_sim_fault(t, LF_SIM_OUT_OF_BOUNDS_SHARED, site,
                         "%s of the shared memory of block %u, which need not have begun yet", verb, owner->ctaid);
}
