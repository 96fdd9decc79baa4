// Reductions across rows next to work along them (class MIXED).
#include "runtime/launch_class.h"

// 32-bit registers that a column takes from one pass to the next: what is loaded of so many rows, and partial results, half of whose second
// level lies in shared memory. In halves.
static uint32_t mixed_registers(const lfuser_abi_launch *l, uint32_t at_once) {
    uint32_t bytes = 0, all_rows = (1u << l->rows) - 1, innermost = l->rows + l->cols - 1u;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        const lfuser_abi_access *a = &l->accesses[i];
        if (!a->store && !a->row && a->varies >> innermost & 1) bytes += a->bytes * (a->varies & all_rows ? at_once : 1);
    }
    return (bytes + 1) / 2 + 3 * l->folds;
}

// Reductions across rows next to work along them, two rows at once: the widest vectors that leave a thread registers enough.
static bool class_of(const lfuser_abi_launch *l, lf_launch_plan *plan) {
    enum { FEWEST_ROWS = 32, AT_ONCE = 2 };
    static const struct {
        uint32_t threads, registers;
    } room[] = {{128, 100}, {256, 180}, {512, 64}, {1024, 24}};
    uint32_t spans = lf_power_above((plan->columns + LFUSER_ABI_SPAN - 1) / LFUSER_ABI_SPAN, 1);
    if (plan->columns > LFUSER_ABI_MIXED_COLUMNS || plan->items > LFUSER_ABI_MIXED_ROWS || plan->items < FEWEST_ROWS)
        return false;
    uint64_t last = plan->items % LFUSER_ABI_CHUNK; // rows of the last chunk
    bool all_rows = last == 0 || last == 2 * LFUSER_ABI_SPAN || last == 4 * LFUSER_ABI_SPAN;
    for (uint32_t v = plan->cls.vector; v >= 1; v /= 2) {
        uint32_t r = 0;
        while (r < 3 && room[r].threads < LFUSER_ABI_SPAN / v) r++;
        if (spans * v * mixed_registers(l, AT_ONCE) > 2 * room[r].registers ||
            spans * v * l->weight * AT_ONCE > LFUSER_ABI_UNROLLED_WEIGHT)
            continue;
        plan->cls.vector = (uint8_t)v;
        plan->cls.shape = LFUSER_ABI_MIXED;
        plan->cls.spans = (uint8_t)spans;
        plan->cls.chunks = AT_ONCE | (all_rows ? LFUSER_ABI_MIXED_ALL_ROWS : 0);
        plan->cls.full = plan->columns == (uint64_t)spans * LFUSER_ABI_SPAN;
        return true;
    }
    return false;
}

void lf_choose_mixed(const lf_axes *x, lf_launch_plan *plan) {
    if (!plan->columns || !class_of(x->l, plan)) return;
    plan->cells = lfuser_abi_mixed_sets(plan->items, x->args[x->l->share_word]);
    plan->shared_out = true;
}

void lf_guess_mixed(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out) {
    static const uint64_t columns[] = {4 * LFUSER_ABI_SPAN, 8 * LFUSER_ABI_SPAN, 2 * LFUSER_ABI_SPAN, 1};
    c.vector = (uint8_t)lf_launch_lanes(l);
    for (uint32_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        lf_launch_plan plan = {.items = LFUSER_ABI_CHUNK, .columns = columns[i], .cls = c};
        if (class_of(l, &plan)) lf_classes_add(out, plan.cls);
    }
}
