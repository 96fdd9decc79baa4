// Reductions across rows next to work along them (class MIXED).
#include "base/debug.h"
#include "runtime/launch_class.h"

// What a thread loads of a column, of so many rows at once, in bytes.
static uint32_t loaded_bytes(const lfuser_abi_launch *l, uint32_t at_once) {
    uint32_t bytes = 0, all_rows = (1u << l->rows) - 1, innermost = l->rows + l->cols - 1u;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        const lfuser_abi_access *a = &l->accesses[i];
        if (!a->store && !a->row && a->varies >> innermost & 1) bytes += a->bytes * (a->varies & all_rows ? at_once : 1);
    }
    return bytes;
}

// Registers of a thread that columns and their partial results may take.
typedef struct room {
    uint32_t threads, registers;
} room;

static bool takes(const room *rooms, uint32_t n, uint32_t threads, uint32_t registers) {
    for (uint32_t i = 0; i < n; i++)
        if (rooms[i].threads == threads) return registers <= rooms[i].registers;
    return false;
}

// A row at a time of those that leave no room for a block beside, the next one copied to shared memory meanwhile (measured: 256 threads that
// keep all they compute beat 512). What is left of the shared memory is for levels of the counter.
static bool stage(const lfuser_abi_launch *l, const lf_device_info *info, lf_launch_plan *plan) {
    enum { WIDEST = 4, MOST_LEVELS = 5, SPANS = LFUSER_ABI_CHUNK / LFUSER_ABI_SPAN };
    static const room rooms[] = {{256, 190}, {512, 96}};
    if (!info || !info->shared_a_processor || l->debug & LF_DEBUG_NO_STAGED_ROWS) return false;
    if (plan->columns <= LFUSER_ABI_CHUNK / 2) return false;
    for (uint32_t v = plan->cls.vector < WIDEST ? plan->cls.vector : WIDEST; v >= 2; v /= 2) {
        uint32_t threads = LFUSER_ABI_SPAN / v, columns = v * SPANS;
        uint32_t needed = columns * (loaded_bytes(l, 1) + l->fold_bytes) / 4;
        uint32_t kept = columns * (l->kept + l->fold_bytes / 4);
        uint32_t row = lf_staged_bytes(l, v) * LFUSER_ABI_CHUNK, used = row + 2 * lf_exchange_bytes(l, threads / 32);
        if (!row || !takes(rooms, 2, threads, needed) || used > info->max_shared) continue;
        if (columns * l->weight > LFUSER_ABI_UNROLLED_WEIGHT) continue;
        uint32_t levels = (info->max_shared - used) / (l->fold_bytes * LFUSER_ABI_CHUNK);
        plan->cls.vector = (uint8_t)v;
        plan->cls.shape = LFUSER_ABI_MIXED;
        plan->cls.spans = plan->cls.staged = SPANS;
        plan->cls.chunks = (uint8_t)(1 | (takes(rooms, 2, threads, kept) ? LFUSER_ABI_MIXED_KEEPS : 0));
        plan->cls.teams = (uint8_t)(levels < MOST_LEVELS ? levels : MOST_LEVELS);
        plan->cls.full = plan->columns == LFUSER_ABI_CHUNK;
        return true;
    }
    return false;
}

// Two rows at once, with the widest vectors that leave a thread registers enough.
static bool pair_up(const lfuser_abi_launch *l, lf_launch_plan *plan) {
    enum { AT_ONCE = 2, MOST_LEVELS = 2, LEVEL_BYTES = 16384 };
    static const room rooms[] = {{64, 100}, {128, 100}, {256, 180}, {512, 64}, {1024, 24}};
    uint32_t spans = lf_power_above((plan->columns + LFUSER_ABI_SPAN - 1) / LFUSER_ABI_SPAN, 1);
    for (uint32_t v = plan->cls.vector; v >= 1; v /= 2) {
        uint32_t registers = (spans * v * (loaded_bytes(l, AT_ONCE) + l->fold_bytes) + 3) / 4;
        if (!takes(rooms, 5, LFUSER_ABI_SPAN / v, registers) || spans * v * l->weight * AT_ONCE > LFUSER_ABI_UNROLLED_WEIGHT)
            continue;
        uint32_t levels = LEVEL_BYTES / (l->fold_bytes * spans * LFUSER_ABI_SPAN);
        plan->cls.vector = (uint8_t)v;
        plan->cls.shape = LFUSER_ABI_MIXED;
        plan->cls.spans = (uint8_t)spans;
        plan->cls.chunks = AT_ONCE;
        plan->cls.teams = (uint8_t)(levels < MOST_LEVELS ? levels : MOST_LEVELS);
        plan->cls.full = plan->columns == (uint64_t)spans * LFUSER_ABI_SPAN;
        return true;
    }
    return false;
}

static bool class_of(const lfuser_abi_launch *l, const lf_device_info *info, lf_launch_plan *plan) {
    enum { FEWEST_ROWS = 32 };
    if (plan->columns > LFUSER_ABI_MIXED_COLUMNS || plan->items > LFUSER_ABI_MIXED_ROWS || plan->items < FEWEST_ROWS)
        return false;
    if (!stage(l, info, plan) && !pair_up(l, plan)) return false;
    uint64_t last = plan->items % LFUSER_ABI_CHUNK; // rows of the last chunk
    if (last == 0 || last == 2 * LFUSER_ABI_SPAN || last == 4 * LFUSER_ABI_SPAN)
        plan->cls.chunks |= LFUSER_ABI_MIXED_ALL_ROWS;
    return true;
}

void lf_choose_mixed(const lf_axes *x, lf_launch_plan *plan) {
    if (!plan->columns || !class_of(x->l, x->info, plan)) return;
    plan->cells = lfuser_abi_mixed_sets(plan->items, x->args[x->l->share_word]);
    plan->shared_out = true;
}

void lf_guess_mixed(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out) {
    static const uint64_t columns[] = {4 * LFUSER_ABI_SPAN, 8 * LFUSER_ABI_SPAN, 2 * LFUSER_ABI_SPAN, 1};
    c.vector = (uint8_t)lf_launch_lanes(l);
    for (uint32_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        lf_launch_plan plan = {.items = LFUSER_ABI_CHUNK, .columns = columns[i], .cls = c};
        if (class_of(l, NULL, &plan)) lf_classes_add(out, plan.cls);
    }
}
