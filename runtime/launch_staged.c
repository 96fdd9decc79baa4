// Rows that a block, or a cluster of blocks, keeps in shared memory (class RESIDENT, `staged`): see lfuser_abi_class in launch_abi.h.
#include "base/debug.h"
#include "runtime/launch_class.h"

static bool is_staged(const lfuser_abi_launch *l, const lfuser_abi_access *access, uint32_t lanes) {
    uint32_t axes = l->rows + l->cols, bytes = lanes * access->bytes;
    bool vector = access->varies >> (axes - 1) & 1, own = access->varies & ((1u << l->rows) - 1);
    return !access->store && !access->row && access->plain && vector && own && (bytes == 4 || bytes == 8 || bytes == 16);
}

uint32_t lf_staged_bytes(const lfuser_abi_launch *l, uint32_t lanes) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        if (is_staged(l, &l->accesses[i], lanes)) bytes += l->accesses[i].bytes;
    return bytes;
}

uint32_t lf_exchange_bytes(const lfuser_abi_launch *l, uint32_t warps) {
    enum { BUFFERS = 2, SLOT = 16 };
    return (BUFFERS * l->reductions * warps + 1) * SLOT;
}

typedef struct choice {
    uint32_t vector, chunks, cluster, teams, threads, vectors, staged;
} choice;

// Registers of a thread that hold columns from one pass to the next.
static uint32_t kept_registers(const lfuser_abi_launch *l, const choice *c) {
    return l->keeps_nothing ? 0 : c->vectors * c->vector * l->kept_beside;
}

// How a block takes its chunks with vectors of this width. What does not fit shared memory is loaded by each pass, from the L2 mostly, so
// a quarter may be so.
static bool fits(const lfuser_abi_launch *l, const lf_device_info *info, choice *c) {
    uint32_t team = LFUSER_ABI_SPAN / c->vector, a_column = lf_staged_bytes(l, c->vector),
             most = LF_LAUNCH_MOST_THREADS / team;
    c->teams = c->chunks < most ? c->chunks : most;
    c->threads = c->teams * team;
    c->vectors = c->chunks / c->teams * (LFUSER_ABI_CHUNK / LFUSER_ABI_SPAN);
    if (!a_column || c->vectors > LFUSER_ABI_STAGED_VECTORS) return false;
    if (kept_registers(l, c) > lf_launch_registers(c->threads)) return false;
    if (l->weight * c->vector * (LFUSER_ABI_CHUNK / LFUSER_ABI_SPAN) > LFUSER_ABI_UNROLLED_WEIGHT) return false;
    uint32_t warps = c->cluster * c->chunks * team / 32, exchange = lf_exchange_bytes(l, warps);
    if (warps > LFUSER_ABI_ROUND_SLOTS || exchange > info->max_shared) return false;
    c->staged = (info->max_shared - exchange) / (c->threads * c->vector * a_column);
    if (c->staged > c->vectors) c->staged = c->vectors;
    return c->staged * 4 >= c->vectors * 3;
}

// As many threads as can be, with vectors of at least eight bytes.
static bool choose_vector(const lfuser_abi_launch *l, const lf_device_info *info, uint32_t lanes, choice *out) {
    enum { LEAST_BYTES = 8 };
    choice c = *out;
    out->threads = 0;
    for (c.vector = lanes; c.vector >= 2 && c.vector * lf_staged_bytes(l, c.vector) >= LEAST_BYTES; c.vector /= 2)
        if (fits(l, info, &c) && c.threads > out->threads) *out = c;
    return out->threads;
}

// Two blocks a processor, each with a row of its own: one copies and stores while the other works, and rows go to whichever processor is
// done first (where blocks take rows in turn, the slower processors' last ones are waited for: a tenth of the time). They have half of the
// registers each, which is enough in fast mode where nothing is kept and rows are full.
static bool fit_beside(const lfuser_abi_launch *l, const lf_device_info *info, const choice *c) {
    enum { BLOCKS = 2, SYSTEM = 1024, WEIGHT = 32 }; // bytes that the system takes; what fits half of the registers
    uint32_t row = c->threads * c->vectors * c->vector * lf_staged_bytes(l, c->vector);
    return l->keeps_nothing && l->weight <= WEIGHT && c->cluster == 1 && c->staged == c->vectors &&
           BLOCKS * (row + lf_exchange_bytes(l, c->threads / 32) + SYSTEM) <= info->shared_a_processor;
}

bool lf_launch_stage(const lfuser_abi_launch *l, const lf_device_info *info, uint32_t lanes, bool clusters,
                     lf_launch_plan *plan) {
    uint64_t most = (uint64_t)LF_LAUNCH_MOST_THREADS * LFUSER_ABI_CHUNK;
    if (!info || l->reduces || lanes < 2 || plan->columns > most || l->reductions > LFUSER_ABI_UNROLLED_REDUCTIONS)
        return false;
    if (!info->shared_a_processor ||
        l->debug & (clusters ? LF_DEBUG_NO_CLUSTERS | LF_DEBUG_NO_STAGED_ROWS : LF_DEBUG_NO_STAGED_ROWS))
        return false;
    uint32_t chunks = lf_power_above((plan->columns + LFUSER_ABI_CHUNK - 1) / LFUSER_ABI_CHUNK, 1);
    bool full = !(l->debug & LF_DEBUG_NO_FULL_ROWS) && plan->columns == (uint64_t)chunks * LFUSER_ABI_CHUNK;
    for (uint32_t cluster = 1; cluster <= (clusters ? info->max_cluster : 1u) && cluster <= chunks; cluster *= 2) {
        choice c = {.chunks = chunks / cluster, .cluster = cluster};
        if ((clusters && cluster == 1) || !choose_vector(l, info, lanes, &c)) continue;
        plan->cls.vector = (uint8_t)c.vector;
        plan->cls.shape = LFUSER_ABI_RESIDENT;
        plan->cls.spans = LFUSER_ABI_CHUNK / LFUSER_ABI_SPAN;
        plan->cls.chunks = (uint8_t)c.chunks;
        plan->cls.cluster = (uint8_t)(cluster > 1 ? cluster : 0);
        plan->cls.teams = (uint8_t)(c.teams < c.chunks ? c.teams : 0);
        plan->cls.staged = (uint8_t)c.staged;
        plan->cls.full = full;
        plan->cls.alone = full && fit_beside(l, info, &c);
        plan->shared_out = !plan->cls.alone;
        return true;
    }
    return false;
}

bool lf_launch_is_heavy(const lfuser_abi_launch *l, const lfuser_abi_class *resident) {
    enum { FILLS = 512, WORK_A_BYTE = 4 };
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        if (!l->accesses[i].row && l->accesses[i].varies & ((1u << l->rows) - 1)) bytes += l->accesses[i].bytes;
    return resident->chunks * (LFUSER_ABI_SPAN / resident->vector) >= FILLS && l->weight >= WORK_A_BYTE * bytes;
}
