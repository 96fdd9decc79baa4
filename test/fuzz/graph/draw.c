// See graph.h: the ways in which a program is run. First on every device as it is; then in two drawn ways: the same executable with
// other strides and buffers; and something else, compiled anew.
#include "test/fuzz/graph/graph.h"

enum { DRAWN = 2 };

static const char *const words[] = {
#define LF_DEBUG(id, word) word,
#include "base/debug.def"
#undef LF_DEBUG
};

unsigned n_variants(void) { return n_devices + DRAWN; }

static unsigned machine_of(unsigned device, unsigned choice) {
    unsigned found[MOST_MACHINES], n = 0;
    for (unsigned i = 0; i < n_machines; i++)
        if (machines[i].number == device) found[n++] = i;
    return found[choice % n];
}

// LLVM's passes and its dear code generation take most of the time, and go wrong seldom: for most programs they are left out. (What
// CUDA runs is always the real thing; SIM generates its code cheaply anyhow.)
static uint32_t usual_debug(unsigned m, uint64_t choice) {
    const char *device = machines[m].device;
    bool quick = !strcmp(device, "cpu") ? choice % 8 != 0 : !strcmp(device, "sim") && choice % 2;
    return quick ? LF_DEBUG_NO_PASSES : 0;
}

variant draw(uint64_t seed, unsigned k) {
    random_state r = {seed * 31};
    uint64_t choice = next(&r);
    unsigned threads = (unsigned)(choice >> 8 & 1);
    r.state = next(&r) + k;
    unsigned device = k < n_devices ? k : (unsigned)below(&r, n_devices);
    variant v = {.machine = machine_of(device, threads)};
    v.debug = usual_debug(v.machine, choice >> 16);
    if (k < n_devices) return v;
    v.layouts = 1 + (unsigned)below(&r, N_LAYOUTS - 1);
    if (k == n_devices) {
        v.given = chance(&r, 70);
        return v;
    }
    v.machine = machine_of(device, threads + (unsigned)below(&r, 2));
    if (chance(&r, 40)) v.layouts = 0;
    v.given = chance(&r, 50);
    v.dialect = (dialect){chance(&r, 45), chance(&r, 15)};
    v.prepare = chance(&r, 4);
    v.never_wait = chance(&r, 10);
    v.fast = chance(&r, 15);
    for (int n = chance(&r, 75) ? 1 + chance(&r, 30) : 0; n > 0; n--)
        v.debug |= 1u << below(&r, LF_DEBUG_COUNT) & ~(uint32_t)LF_DEBUG_NO_PASSES; // which is drawn already
    return v;
}

const char *debug_words(uint32_t debug, char *text, size_t room) {
    size_t n = 0;
    *text = 0;
    for (unsigned i = 0; i < LF_DEBUG_COUNT && n < room; i++)
        if (debug >> i & 1) n += (size_t)snprintf(text + n, room - n, "%s%s", n ? "," : "", words[i]);
    return text;
}

const char *variant_name(const variant *v, char *text, size_t room) {
    char debug[256];
    const machine *m = &machines[v->machine % n_machines];
    snprintf(text, room, "%s, %u threads%s%s%s%s%s%s, layouts+%u, debug=%s", m->device, m->threads,
             v->dialect.symbolic ? ", symbolic" : "", v->dialect.all ? ", all values" : "", v->given ? ", given" : "",
             v->prepare ? ", prepared" : "", v->never_wait ? ", never waits" : "", v->fast ? ", fast" : "", v->layouts,
             debug_words(v->debug, debug, sizeof debug));
    return text;
}
