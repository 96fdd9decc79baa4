// What was wrong, where: one line.
#include "runtime/sim/sim.h"
#include <stdio.h>

static const char *const names[] = {
#define LF_SIM_FAULT(id, name) name,
#include "runtime/sim/faults.def"
#undef LF_SIM_FAULT
};

static void put(lf_sim_run *r, size_t *at, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put(lf_sim_run *r, size_t *at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(r->text + *at, sizeof r->text - *at, format, args);
    va_end(args);
    if (n > 0) *at = *at + (size_t)n < sizeof r->text ? *at + (size_t)n : sizeof r->text - 1;
}

static void note(lf_sim_run *r, const lf_sim_thread *t, lf_sim_fault_kind kind, uint32_t site, const char *format,
                 va_list args) {
    // What follows from a value that nobody wrote is told as that.
    if (r->unwritten.any && kind != LF_SIM_SHARED_RACE && kind != LF_SIM_UNINITIALISED_SHARED) lf_sim_note_unwritten(r);
    if (r->faulted) return;
    r->faulted = true;
    r->no_memory = kind == LF_SIM_OUT_OF_MEMORY;
    const lf_sim_code *p = r->program;
    char what[400];
    vsnprintf(what, sizeof what, format, args);
    size_t at = 0;
    put(r, &at, "%s: kernel %s: %s", names[kind], p->texts + p->name, what);
    if (t)
        put(r, &at, " (block %u of %u, thread %u of %u", t->block->ctaid, r->grid, t->number, r->block);
    else
        put(r, &at, " (block %u of %u", r->blocks[0].ctaid, r->grid);
    if (site < p->n_sites) {
        const lf_sim_site *s = &p->sites[site];
        if (s->what) put(r, &at, ", at %s", p->texts + s->what);
        if (s->block) put(r, &at, " in %s", p->texts + s->block);
    }
    put(r, &at, ")");
}

void lf_sim_note_fault(lf_sim_run *r, const lf_sim_thread *t, lf_sim_fault_kind kind, uint32_t site, const char *format,
                       ...) {
    va_list args;
    va_start(args, format);
    note(r, t, kind, site, format, args);
    va_end(args);
}

void lf_sim_note_unwritten(lf_sim_run *r) {
    if (!r->unwritten.any || r->faulted) return;
    uint64_t offset;
    const char *name = lf_sim_shared_name(r, r->unwritten.address, &offset);
    lf_sim_note_fault(r, r->unwritten.thread, LF_SIM_UNINITIALISED_SHARED, r->unwritten.site,
                      "reads byte %llu of @%s, which no thread of the block has written", (unsigned long long)offset, name);
}

void lf_sim_fault(lf_sim_thread *t, lf_sim_fault_kind kind, uint32_t site, const char *format, ...) {
    va_list args;
    va_start(args, format);
    note(t->run, t, kind, site, format, args);
    va_end(args);
    for (;;) lf_sim_leave(t); // the scheduler sees the fault and comes back no more
}
