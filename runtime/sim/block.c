// Clusters in turn, mostly of one block; in a cluster, blocks in turn; in a block, warps in turn; in a warp, lanes in turn, each until it waits, gives way or ends. When nobody can go on and
// not all wait at the same barrier, the kernel is at fault.
#include "runtime/sim/sim.h"
#include <string.h>

enum { MOST_TURNS = 1 << 22 }; // of threads that only give way, with nothing else happening, before the block counts as hung

void lf_sim_leave(lf_sim_thread *t) { lf_sim_switch(&t->sp, t->run->scheduler); }

void lf_sim_wait_barrier(lf_sim_thread *t, uint32_t site) {
    t->site = site;
    t->state = LF_SIM_AT_BARRIER;
    lf_sim_leave(t);
}

void lf_sim_meet(lf_sim_thread *t, uint32_t site, uint32_t mask, lf_sim_collective fn, const uint64_t *operands,
                 uint64_t *results) {
    uint32_t lane = t->number % LF_SIM_WARP;
    if (!(mask >> lane & 1)) lf_sim_fault(t, LF_SIM_WRONG_MASK, site, "lane %u is not in its own mask %#x", lane, mask);
    t->site = site;
    t->mask = mask;
    t->collective = fn;
    t->operands = operands;
    t->results = results;
    t->state = LF_SIM_AT_WARP;
    lf_sim_leave(t);
}

static void thread_main(lf_sim_thread *t) {
    t->run->program->entry(t, t->run->args);
    lf_sim_thread_ends(t);
    t->state = LF_SIM_DONE;
    for (;;) lf_sim_leave(t);
}

static void give_stack(lf_sim_device *d, lf_sim_thread *t) {
    if (!t->stack) return;
    t->stack->next = d->stacks;
    d->stacks = t->stack;
    t->stack = NULL;
}

static bool take_stack(lf_sim_run *r, lf_sim_thread *t) {
    lf_sim_device *d = r->device;
    t->stack = d->stacks;
    if (t->stack)
        d->stacks = t->stack->next;
    else
        t->stack = lf_sim_stack_create(d->base.allocator);
    if (!t->stack) {
        lf_sim_note_fault(r, t, LF_SIM_OUT_OF_MEMORY, UINT32_MAX, "for the stack of a thread");
        return false;
    }
    t->sp = lf_sim_fiber_begin(t->stack, t, thread_main);
    return true;
}

// True: more happened than that the thread gave way.
static bool resume(lf_sim_run *r, lf_sim_thread *t) {
    bool new = t->state == LF_SIM_NEW;
    if (new && !take_stack(r, t)) return true;
    t->state = LF_SIM_READY;
    lf_sim_switch(&r->scheduler, t->sp);
    if (t->state == LF_SIM_DONE) give_stack(r->device, t);
    return new || t->state != LF_SIM_READY;
}

static bool run_warp(lf_sim_run *r, const lf_sim_block *b, uint32_t warp) {
    bool progress = false;
    do {
        for (uint32_t i = warp * LF_SIM_WARP; i < r->block && i < (warp + 1) * LF_SIM_WARP && !r->faulted; i++) {
            lf_sim_thread *t = &b->threads[i];
            if (t->state == LF_SIM_NEW || t->state == LF_SIM_READY) progress |= resume(r, t);
        }
    } while (!r->faulted && lf_sim_resolve_warp(r, b, warp));
    return progress;
}

// What all threads do: 0 not the same.
static lf_sim_state common_state(const lf_sim_run *r, const lf_sim_block *b) {
    const lf_sim_thread *first = &b->threads[0];
    for (uint32_t i = 0; i < r->block; i++) {
        const lf_sim_thread *t = &b->threads[i];
        if (t->state != first->state || (t->state == LF_SIM_AT_BARRIER && t->site != first->site)) return LF_SIM_NEW;
    }
    return first->state;
}

static bool anyone_ready(const lf_sim_run *r) {
    for (uint32_t i = 0; i < r->cluster * r->block; i++)
        if (r->threads[i].state == LF_SIM_READY) return true;
    return false;
}

// True: the block has ended, or has passed a barrier.
static bool pass_barrier(lf_sim_run *r, lf_sim_block *b) {
    lf_sim_state all = common_state(r, b);
    if (all != LF_SIM_DONE && all != LF_SIM_AT_BARRIER) return false;
    lf_sim_note_unwritten(r);
    if (all == LF_SIM_DONE || r->faulted) return true;
    b->epoch = ++r->epoch;
    for (uint32_t i = 0; i < r->block; i++) b->threads[i].state = LF_SIM_READY;
    return true;
}

static void run_cluster(lf_sim_run *r) {
    uint64_t idle = 0;
    while (!r->faulted && r->ended < r->cluster * r->block) {
        bool progress = false;
        for (uint32_t i = 0; i < r->cluster; i++)
            for (uint32_t warp = 0; warp * LF_SIM_WARP < r->block && !r->faulted; warp++)
                progress |= run_warp(r, &r->blocks[i], warp);
        for (uint32_t i = 0; i < r->cluster && !r->faulted; i++)
            progress |= r->blocks[i].ended < r->block && pass_barrier(r, &r->blocks[i]);
        if (r->faulted || r->ended == r->cluster * r->block) break;
        idle = progress ? 0 : idle + r->block;
        if (!anyone_ready(r))
            lf_sim_diagnose(r);
        else if (idle > MOST_TURNS)
            lf_sim_note_fault(r, NULL, LF_SIM_HANG, UINT32_MAX,
                              "threads only wait for each other at atomic or volatile accesses");
    }
    lf_sim_note_unwritten(r);
}

static void begin_block(lf_sim_run *r, lf_sim_block *b, uint32_t ctaid, uint32_t rank) {
    *b = (lf_sim_block){
        .ctaid = ctaid, .rank = rank, .threads = r->threads + (size_t)rank * r->block, .epoch = r->first_epoch};
    char *shared = r->device->shared + rank * r->stride;
    for (uint32_t i = 0; i < r->block; i++) {
        lf_sim_thread *t = &b->threads[i];
        t->face = (lf_sim_face){&lf_sim_calls_table, shared};
        t->run = r;
        t->block = b;
        t->number = i;
        t->state = LF_SIM_NEW;
        t->unfenced = false;
        t->arrived = false;
        t->early = r->follows;
        t->fence_order = 0;
        t->group = 0;
        t->copies.count = 0;
    }
    memset(shared, 0xff, r->shared_bytes); // what nobody has written in this block
}

static void begin_cluster(lf_sim_run *r, uint32_t first) {
    r->first_epoch = r->cluster_epoch = r->cluster_epoch_before = ++r->epoch;
    r->arrived = r->ended = r->phase = 0;
    for (uint32_t i = 0; i < r->cluster; i++) begin_block(r, &r->blocks[i], first + i, i);
}

static void end_cluster(lf_sim_run *r) {
    for (uint32_t i = 0; i < r->cluster * r->block; i++) give_stack(r->device, &r->threads[i]);
}

// Epochs tell records of this launch from older ones, until the counter comes round.
static void begin_epochs(lf_sim_run *r) {
    lf_sim_device *d = r->device;
    r->epoch = d->epoch;
    if (r->epoch < UINT32_MAX / 2) return;
    memset(d->bytes, 0, d->n_shared * sizeof *d->bytes);
    r->epoch = 0;
}

void lf_sim_run_launch(lf_sim_run *r) {
    begin_epochs(r);
    for (uint32_t first = 0; first < r->grid && !r->faulted; first += r->cluster) {
        begin_cluster(r, first);
        run_cluster(r);
        end_cluster(r);
    }
    r->device->epoch = r->epoch;
}
