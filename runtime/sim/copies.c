// Asynchronous copies from global to shared memory. What is copied arrives when the thread waits for it and not before, so that a kernel
// that does not wait is found out.
#include "runtime/sim/sim.h"
#include <string.h>

void lf_sim_copy_start(lf_sim_thread *t, void *to, const void *from, uint32_t bytes, uint32_t site) {
    uint8_t align = (uint8_t)__builtin_ctz(bytes);
    lf_sim_check(t, from, bytes, site, &(lf_sim_site){.flags = LF_SIM_READ, .space = LF_SIM_GLOBAL, .align_log2 = align});
    lf_sim_check(t, to, bytes, site, &(lf_sim_site){.flags = LF_SIM_WRITE, .space = LF_SIM_SHARED, .align_log2 = align});
    lf_sim_byte *b = &t->run->device->bytes[(char *)to - t->run->device->shared];
    for (uint32_t i = 0; i < bytes; i++) b[i].pending = true;
    lf_sim_copy copy = {.to = to, .bytes = bytes, .group = t->group};
    memcpy(copy.data, from, bytes);
    if (!lf_vec_push(&t->copies, copy)) lf_sim_fault(t, LF_SIM_OUT_OF_MEMORY, site, "for an asynchronous copy");
}

void lf_sim_copy_commit(lf_sim_thread *t) { t->group++; }

// Groups are numbered from 0; t->group is the open one.
void lf_sim_copy_wait(lf_sim_thread *t, uint32_t groups_left, uint32_t site) {
    size_t kept = 0;
    for (size_t i = 0; i < t->copies.count; i++) {
        const lf_sim_copy *c = &t->copies.data[i];
        bool open = c->group == t->group, late = c->group + groups_left >= t->group;
        if (groups_left != UINT32_MAX && (open || late)) {
            t->copies.data[kept++] = *c;
            continue;
        }
        lf_sim_byte *b = &t->run->device->bytes[c->to - t->run->device->shared];
        for (uint32_t k = 0; k < c->bytes; k++) b[k].pending = false;
        lf_sim_check(t, c->to, c->bytes, site, &(lf_sim_site){.flags = LF_SIM_WRITE, .space = LF_SIM_SHARED});
        memcpy(c->to, c->data, c->bytes);
    }
    t->copies.count = kept;
}
