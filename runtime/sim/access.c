// Every access to memory is looked at before it happens: does it lie in an allocation, is it aligned, and do threads agree on who may.
#include "runtime/sim/sim.h"
#include <string.h>

// ---- shared memory -----------------------------------------------------------------------------------------------------------

const char *lf_sim_shared_name(const lf_sim_run *r, const void *address, uint64_t *out_offset) {
    const lf_sim_code *p = r->program;
    uint64_t at = (uint64_t)((const char *)address - r->device->shared) % r->stride;
    const char *name = "dynamic shared memory";
    *out_offset = at - p->shared_bytes;
    for (uint32_t i = 0; i < p->n_shared && at < p->shared_bytes; i++) {
        if (at < p->shared[i].offset) break;
        name = p->texts + p->shared[i].name;
        *out_offset = at - p->shared[i].offset;
    }
    return name;
}

// Bytes from `at` to the end of the array that holds it; 0: none does.
static uint64_t shared_room(const lf_sim_run *r, uint64_t at) {
    const lf_sim_code *p = r->program;
    if (at >= p->shared_bytes) return at < r->shared_bytes ? r->shared_bytes - at : 0;
    for (uint32_t i = 0; i < p->n_shared; i++)
        if (at >= p->shared[i].offset && at < p->shared[i].offset + p->shared[i].bytes)
            return p->shared[i].offset + p->shared[i].bytes - at;
    return 0;
}

// Of the thread's own block, or of all the cluster's.
static void check_shared_bounds(lf_sim_thread *t, const char *address, uint64_t bytes, uint32_t site, unsigned flags,
                                bool all) {
    const lf_sim_run *r = t->run;
    const char *first = all ? r->device->shared : t->face.shared;
    uint64_t at = (uint64_t)(address - first), room = all ? r->cluster * r->stride : r->stride, offset;
    const char *verb = flags & LF_SIM_WRITE ? "write" : "read";
    if (address >= first && at < room && shared_room(r, at % r->stride) >= bytes) {
        if (all) lf_sim_check_owner(t, address, site, verb);
        return;
    }
    if (address < first || at > room)
        lf_sim_fault(t, LF_SIM_OUT_OF_BOUNDS_SHARED, site, "%s of %llu bytes at %p, which is no address of shared memory",
                     verb, (unsigned long long)bytes, (const void *)address);
    const char *name = lf_sim_shared_name(r, address, &offset);
    lf_sim_fault(t, LF_SIM_OUT_OF_BOUNDS_SHARED, site, "%s of %llu bytes at byte %llu of @%s", verb,
                 (unsigned long long)bytes, (unsigned long long)offset, name);
}

static uint64_t epoch_of(const lf_sim_thread *t) {
    return (uint64_t)t->block->epoch << 32 | t->block->warp_epoch[t->number / LF_SIM_WARP];
}

// Whether nothing stands between the recorded access, of a thread of that block and warp, and this thread. An early one was made between
// arriving and waiting at the cluster's barrier, which so does not order it.
static bool unordered(const lf_sim_thread *t, uint64_t epoch, uint32_t rank, uint32_t warp, bool early) {
    const lf_sim_run *r = t->run;
    uint32_t then = (uint32_t)(epoch >> 32), now = t->block->epoch;
    if (rank != t->block->rank) return then >= (early ? r->cluster_epoch_before : r->cluster_epoch);
    if (then != now) return early && now == r->cluster_epoch && then >= r->cluster_epoch_before;
    return warp != t->number / LF_SIM_WARP || (uint32_t)epoch == (uint32_t)epoch_of(t);
}

static bool is_writer(const lf_sim_thread *t, const lf_sim_byte *b) {
    return b->writer == t->number && b->writer_rank == t->block->rank;
}

static _Noreturn void race(lf_sim_thread *t, const char *address, uint32_t site, const char *mine, const char *theirs,
                           uint32_t other) {
    uint64_t offset;
    const char *name = lf_sim_shared_name(t->run, address, &offset);
    if (other >= LF_SIM_MANY)
        lf_sim_fault(t, LF_SIM_SHARED_RACE, site,
                     "%s byte %llu of @%s, which several threads have %s since the last barrier", mine,
                     (unsigned long long)offset, name, theirs);
    lf_sim_fault(t, LF_SIM_SHARED_RACE, site, "%s byte %llu of @%s, which thread %u has %s since the last barrier", mine,
                 (unsigned long long)offset, name, other, theirs);
}

static void note_reader(lf_sim_thread *t, lf_sim_byte *b) {
    uint32_t warp = t->number / LF_SIM_WARP;
    uint64_t now = epoch_of(t);
    bool fresh = b->read >> 32 != t->block->epoch || b->reader_rank != t->block->rank;
    if (fresh || (b->reader == t->number)) {
        b->reader = (uint16_t)t->number;
        b->reader_rank = (uint8_t)t->block->rank;
    } else if (b->reader != LF_SIM_ALL) {
        uint32_t their_warp = b->reader & LF_SIM_MANY ? b->reader & ~(uint32_t)LF_SIM_MANY : b->reader / LF_SIM_WARP;
        if (their_warp != warp)
            b->reader = LF_SIM_ALL;
        else if ((uint32_t)b->read != (uint32_t)now)
            b->reader = (uint16_t)t->number; // a sync of the warp lies between
        else
            b->reader = (uint16_t)(LF_SIM_MANY | warp);
    }
    b->read = now;
    b->early_read = t->arrived;
}

static uint32_t warp_of_reader(const lf_sim_byte *b) {
    return b->reader == LF_SIM_ALL   ? UINT32_MAX
           : b->reader & LF_SIM_MANY ? b->reader & ~(uint32_t)LF_SIM_MANY
                                     : b->reader / LF_SIM_WARP;
}

static void check_shared_byte(lf_sim_thread *t, const char *address, lf_sim_byte *b, uint32_t site, unsigned flags) {
    bool written = b->written >> 32 >= t->run->first_epoch, read = b->read >> 32 >= t->run->first_epoch;
    uint64_t offset;
    if (written && b->pending && is_writer(t, b) && !(flags & LF_SIM_WRITE)) {
        const char *name = lf_sim_shared_name(t->run, address, &offset);
        lf_sim_fault(t, LF_SIM_UNFINISHED_COPY, site,
                     "read of byte %llu of @%s, which an asynchronous copy of this thread is still to fill",
                     (unsigned long long)offset, name);
    }
    if (written && !is_writer(t, b) && !(b->atomic && flags & LF_SIM_ATOMIC) &&
        unordered(t, b->written, b->writer_rank, b->writer / LF_SIM_WARP, b->early_write))
        race(t, address, site, flags & LF_SIM_WRITE ? "writes" : "reads", "written", b->writer);
    if (written && b->pending && !is_writer(t, b)) {
        const char *name = lf_sim_shared_name(t->run, address, &offset);
        lf_sim_fault(t, LF_SIM_UNFINISHED_COPY, site,
                     "byte %llu of @%s is still to be filled by an asynchronous copy of thread %u",
                     (unsigned long long)offset, name, b->writer);
    }
    if (flags & LF_SIM_READ) {
        if (!written && !t->run->unwritten.any) {
            t->run->unwritten.any = true;
            t->run->unwritten.thread = t;
            t->run->unwritten.site = site;
            t->run->unwritten.address = address;
        }
        if (!(flags & LF_SIM_ATOMIC)) note_reader(t, b);
    }
    if (flags & LF_SIM_WRITE) {
        bool mine = b->reader == t->number && b->reader_rank == t->block->rank;
        if (read && !mine && unordered(t, b->read, b->reader_rank, warp_of_reader(b), b->early_read))
            race(t, address, site, "writes", "read", b->reader);
        bool plain_too = written && b->written >> 32 == t->block->epoch && is_writer(t, b) && !b->atomic;
        b->written = epoch_of(t);
        b->writer = (uint16_t)t->number;
        b->writer_rank = (uint8_t)t->block->rank;
        b->early_write = t->arrived;
        b->atomic = flags & LF_SIM_ATOMIC && !plain_too;
        b->pending = false;
    }
}

static void check_shared(lf_sim_thread *t, const char *address, uint64_t bytes, uint32_t site, unsigned flags, bool all) {
    check_shared_bounds(t, address, bytes, site, flags, all);
    lf_sim_byte *b = &t->run->device->bytes[address - t->run->device->shared];
    for (uint64_t i = 0; i < bytes; i++) check_shared_byte(t, address + i, b + i, site, flags);
}

// ---- global memory -----------------------------------------------------------------------------------------------------------

static const lf_sim_allocation *find(lf_sim_run *r, uintptr_t address, uint64_t bytes) {
    for (unsigned i = 0; i < sizeof r->recent / sizeof *r->recent; i++) {
        const lf_sim_allocation *a = &r->recent[i];
        if (address >= a->begin && address - a->begin < a->bytes && bytes <= a->bytes - (address - a->begin)) return a;
    }
    lf_sim_allocation *a = &r->recent[r->next_recent];
    if (!lf_sim_memory_find(&r->device->memory, address, a)) *a = (lf_sim_allocation){.begin = 0};
    if (a->kind == LF_SIM_DEVICE_MEMORY && a->bytes && !a->freed)
        a->cells = lf_sim_memory_cells(&r->device->memory, a->begin);
    r->next_recent = (r->next_recent + 1) % (sizeof r->recent / sizeof *r->recent);
    return a;
}

static _Noreturn void out_of_bounds(lf_sim_thread *t, uintptr_t address, uint64_t bytes, uint32_t site, const char *verb,
                                    const lf_sim_allocation *before) {
    enum { NEAR = 65536 };
    lf_sim_allocation next = {.begin = 0};
    unsigned long long n = bytes, behind = NEAR, ahead = NEAR;
    if (before->bytes && address - before->begin < before->bytes + NEAR)
        behind = address - before->begin > before->bytes ? address - before->begin - before->bytes : 0;
    if (lf_sim_memory_find_from(&t->run->device->memory, address, &next) && next.begin - address < NEAR)
        ahead = next.begin - address;
    if (behind < NEAR && behind <= ahead)
        lf_sim_fault(t, LF_SIM_OUT_OF_BOUNDS_GLOBAL, site, "%s of %llu bytes at byte %llu of an allocation of %zu bytes",
                     verb, n, (unsigned long long)(address - before->begin), before->bytes);
    if (ahead < NEAR)
        lf_sim_fault(t, LF_SIM_OUT_OF_BOUNDS_GLOBAL, site, "%s of %llu bytes, %llu bytes before an allocation of %zu bytes",
                     verb, n, ahead, next.bytes);
    lf_sim_fault(t, LF_SIM_OUT_OF_BOUNDS_GLOBAL, site, "%s of %llu bytes at %#llx, where no allocation is", verb, n,
                 (unsigned long long)address);
}

// The sequence word of a mailbox slot: what it publishes must have been made visible to the host before.
static void check_mailbox(lf_sim_thread *t, const lf_sim_allocation *a, uintptr_t address, uint32_t site, unsigned flags) {
    bool sequence = (address - a->begin) % sizeof(lf_mailbox_slot) == offsetof(lf_mailbox_slot, sequence);
    bool released = flags & LF_SIM_RELEASE && flags & LF_SIM_SYSTEM;
    if (sequence && t->unfenced && !released)
        lf_sim_fault(t, LF_SIM_MISSING_FENCE, site,
                     "writes a mailbox's sequence with no fence for the whole system after its value");
    if (!sequence)
        t->unfenced = true;
    else if (released)
        t->unfenced = false;
}

static void check_global(lf_sim_thread *t, uintptr_t address, uint64_t bytes, uint32_t site, unsigned flags) {
    const lf_sim_allocation *a = find(t->run, address, bytes);
    const char *verb = flags & LF_SIM_WRITE ? "write" : "read";
    uint64_t at = address - a->begin;
    if (t->early)
        lf_sim_fault(t, LF_SIM_EARLY_ACCESS, site, "%s of %llu bytes before the thread has waited for the kernel before",
                     verb, (unsigned long long)bytes);
    if (!a->bytes || address < a->begin || at >= a->bytes || bytes > a->bytes - at)
        out_of_bounds(t, address, bytes, site, verb, a);
    if (a->freed)
        lf_sim_fault(t, LF_SIM_USE_AFTER_FREE, site,
                     "%s of %llu bytes at byte %llu of an allocation of %zu bytes that was freed before", verb,
                     (unsigned long long)bytes, (unsigned long long)at, a->bytes);
    if (a->kind == LF_SIM_MAPPED_MEMORY) {
        if (flags & LF_SIM_WRITE) check_mailbox(t, a, address, site, flags);
    } else {
        lf_sim_global_races(t, a, address, bytes, site, flags);
    }
}

// ---- all ---------------------------------------------------------------------------------------------------------------------

static bool on_stack(const lf_sim_thread *t, const char *address, uint64_t bytes) {
    return address >= t->stack->low && address + bytes <= t->stack->low + LF_SIM_STACK;
}

static bool in_arguments(const lf_sim_run *r, const char *address, uint64_t bytes) {
    const char *words = (const char *)r->words;
    return address >= words && address + bytes <= words + r->n_args * sizeof *r->words;
}

void lf_sim_check(lf_sim_thread *t, const void *pointer, uint64_t bytes, uint32_t site, const lf_sim_site *what) {
    lf_sim_run *r = t->run;
    const char *address = pointer;
    unsigned flags = what->flags;
    if (flags & LF_SIM_ATOMIC) lf_sim_leave(t);
    if ((uintptr_t)address & ((UINT64_C(1) << what->align_log2) - 1))
        lf_sim_fault(t, LF_SIM_MISALIGNED_ACCESS, site, "%s of %llu bytes at %p, which is no multiple of %llu",
                     flags & LF_SIM_WRITE ? "write" : "read", (unsigned long long)bytes, pointer, 1ull << what->align_log2);
    if (!bytes) return;
    bool shared = what->space == LF_SIM_SHARED || what->space == LF_SIM_CLUSTER;
    if (what->space == LF_SIM_GENERIC)
        shared = address >= r->device->shared && address < r->device->shared + r->device->n_shared;
    if (shared) {
        check_shared(t, address, bytes, site, flags, what->space != LF_SIM_SHARED);
    } else {
        if (what->space == LF_SIM_GENERIC && on_stack(t, address, bytes)) return;
        if (!(flags & LF_SIM_WRITE) && in_arguments(r, address, bytes)) return;
        if (flags & LF_SIM_RELEASE) lf_sim_fence(t, LF_SIM_RELEASE);
        check_global(t, (uintptr_t)address, bytes, site, flags);
    }
}

static void access(lf_sim_thread *t, const void *address, uint32_t site) {
    const lf_sim_site *s = &t->run->program->sites[site];
    lf_sim_check(t, address, s->bytes, site, s);
}

static void range(lf_sim_thread *t, const void *address, uint64_t bytes, uint32_t site) {
    lf_sim_check(t, address, bytes, site, &t->run->program->sites[site]);
}

static void object(lf_sim_thread *t, const void *address, const void *base, uint64_t size, uint32_t site) {
    const lf_sim_site *s = &t->run->program->sites[site];
    uint64_t at = (uint64_t)((const char *)address - (const char *)base);
    if (at < size && s->bytes <= size - at) return;
    lf_sim_fault(t, LF_SIM_OUT_OF_BOUNDS_OBJECT, site, "%s of %u bytes at byte %lld of an object of %llu bytes",
                 s->flags & LF_SIM_WRITE ? "write" : "read", s->bytes, (long long)at, (unsigned long long)size);
}

static void fence(lf_sim_thread *t, uint32_t site) { lf_sim_fence(t, t->run->program->sites[site].flags); }

const lf_sim_calls lf_sim_calls_table = {access, range, object, fence, lf_sim_device_call};
