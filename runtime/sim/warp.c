// Operations of a warp: lanes that name each other in a mask meet, then it is done for all. And why threads that cannot go on cannot.
#include "runtime/sim/sim.h"

// The lanes of a warp; those that the block does not have are NULL.
static void lanes_of(const lf_sim_run *r, const lf_sim_block *b, uint32_t warp, lf_sim_thread *out[LF_SIM_WARP]) {
    for (uint32_t l = 0; l < LF_SIM_WARP; l++)
        out[l] = warp * LF_SIM_WARP + l < r->block ? &b->threads[warp * LF_SIM_WARP + l] : NULL;
}

// The lanes of t's mask that are there, when all of them wait at t's operation with t's mask; else 0. Lanes that have ended are not waited for.
static uint32_t met(lf_sim_run *r, lf_sim_thread *const lanes[LF_SIM_WARP], const lf_sim_thread *t) {
    uint32_t active = 0;
    for (uint32_t l = 0; l < LF_SIM_WARP; l++) {
        const lf_sim_thread *other = lanes[l];
        if (!(t->mask >> l & 1)) continue;
        if (!other) {
            lf_sim_note_fault(r, t, LF_SIM_WRONG_MASK, t->site, "the mask %#x names lane %u, but the warp has no such lane",
                              t->mask, l);
            return 0;
        }
        if (other->state == LF_SIM_DONE) continue;
        if (other->state != LF_SIM_AT_WARP || other->site != t->site) return 0;
        if (other->mask != t->mask) {
            lf_sim_note_fault(r, t, LF_SIM_WRONG_MASK, t->site, "lane %u takes part with the mask %#x, lane %u with %#x",
                              t->number % LF_SIM_WARP, t->mask, l, other->mask);
            return 0;
        }
        active |= 1u << l;
    }
    return active;
}

bool lf_sim_resolve_warp(lf_sim_run *r, const lf_sim_block *b, uint32_t warp) {
    lf_sim_thread *lanes[LF_SIM_WARP];
    bool any = false;
    lanes_of(r, b, warp, lanes);
    for (uint32_t l = 0; l < LF_SIM_WARP && !r->faulted; l++) {
        if (!lanes[l] || lanes[l]->state != LF_SIM_AT_WARP) continue;
        uint32_t active = met(r, lanes, lanes[l]);
        if (!active) continue;
        lanes[l]->collective(lanes, active);
        for (uint32_t k = 0; k < LF_SIM_WARP; k++)
            if (active >> k & 1) lanes[k]->state = LF_SIM_READY;
        any = true;
    }
    return any;
}

static void synced(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) {
    lf_sim_block *b = NULL;
    uint32_t warp = 0;
    bool whole = true; // all lanes that there still are
    for (uint32_t l = 0; l < LF_SIM_WARP; l++) {
        if (!lanes[l] || lanes[l]->state == LF_SIM_DONE) continue;
        b = lanes[l]->block;
        warp = lanes[l]->number / LF_SIM_WARP;
        whole &= active >> l & 1;
    }
    if (b && whole) b->warp_epoch[warp]++;
}

void lf_sim_do_warp_sync(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint64_t *out) {
    lf_sim_meet(t, site, (uint32_t)in[0], synced, in, out);
}

static const char *doing(const lf_sim_run *r, const lf_sim_thread *t) {
    static const char *const texts[] = {[LF_SIM_NEW] = "has not begun",
                                        [LF_SIM_READY] = "runs",
                                        [LF_SIM_AT_BARRIER] = "waits at a barrier",
                                        [LF_SIM_AT_WARP] = "waits at another operation of its warp",
                                        [LF_SIM_AT_CLUSTER] = "waits at the barrier of the cluster",
                                        [LF_SIM_DONE] = "has ended"};
    (void)r;
    return texts[t->state];
}

static const char *block_name(const lf_sim_run *r, uint32_t site) {
    const char *name = site < r->program->n_sites ? r->program->texts + r->program->sites[site].block : "";
    return *name ? name : "an unnamed block";
}

static void diagnose_warp(lf_sim_run *r, const lf_sim_thread *t) {
    uint32_t first = t->number / LF_SIM_WARP * LF_SIM_WARP;
    for (uint32_t l = 0; l < LF_SIM_WARP && first + l < r->block; l++) {
        const lf_sim_thread *other = &t->block->threads[first + l];
        if (!(t->mask >> l & 1) || other == t) continue;
        if (other->state == LF_SIM_AT_WARP && other->site == t->site) continue;
        lf_sim_note_fault(r, t, LF_SIM_WRONG_MASK, t->site,
                          "lane %u waits for lane %u, which its mask %#x names, but that lane %s", t->number % LF_SIM_WARP,
                          l, t->mask, doing(r, other));
        return;
    }
}

static void diagnose_block(lf_sim_run *r, const lf_sim_block *b) {
    const lf_sim_thread *waits = NULL, *other = NULL;
    for (uint32_t i = 0; i < r->block; i++) {
        if (b->threads[i].state == LF_SIM_AT_WARP) diagnose_warp(r, &b->threads[i]);
        if (b->threads[i].state == LF_SIM_AT_BARRIER && !waits) waits = &b->threads[i];
    }
    for (uint32_t i = 0; waits && i < r->block && !other; i++)
        if (b->threads[i].state != LF_SIM_AT_BARRIER || b->threads[i].site != waits->site) other = &b->threads[i];
    if (other && other->state == LF_SIM_AT_BARRIER)
        lf_sim_note_fault(r, waits, LF_SIM_DIVERGENT_BARRIER, waits->site,
                          "thread %u waits at the barrier in %s, thread %u at the one in %s", waits->number,
                          block_name(r, waits->site), other->number, block_name(r, other->site));
    else if (other)
        lf_sim_note_fault(r, waits, LF_SIM_DIVERGENT_BARRIER, waits->site, "thread %u waits at a barrier, thread %u %s",
                          waits->number, other->number, doing(r, other));
}

void lf_sim_diagnose(lf_sim_run *r) {
    for (uint32_t i = 0; i < r->cluster; i++) diagnose_block(r, &r->blocks[i]);
    for (uint32_t i = 0; i < r->cluster * r->block; i++) {
        const lf_sim_thread *t = &r->threads[i];
        if (t->state != LF_SIM_AT_CLUSTER) continue;
        for (uint32_t k = 0; k < r->cluster * r->block; k++)
            if (r->threads[k].state != LF_SIM_AT_CLUSTER && r->threads[k].state != LF_SIM_DONE)
                lf_sim_note_fault(r, t, LF_SIM_DIVERGENT_BARRIER, t->site,
                                  "thread %u waits at the barrier of the cluster, thread %u of block %u %s", t->number,
                                  r->threads[k].number, r->threads[k].block->ctaid, doing(r, &r->threads[k]));
    }
    lf_sim_note_fault(r, NULL, LF_SIM_HANG, UINT32_MAX, "no thread can go on"); // when nothing better was found
}
