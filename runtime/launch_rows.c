// Reductions along rows: how a block, a warp or several blocks hold a row (lfuser_abi_shape), and the second kernel of rows that blocks
// share.
#include "base/debug.h"
#include "runtime/launch_class.h"

enum {
    MOST_ROUND_REDUCTIONS = 4,
    ROUND_WARPS = 16,
    SPLIT_USUAL = 1 << 26 // columns of a long row, for what is compiled ahead
};

static uint64_t chunks_of(uint64_t n) { return n / LFUSER_ABI_CHUNK + (n % LFUSER_ABI_CHUNK != 0); }

// The row held by a block: as many chunks at once as it has, and as few columns a thread as leave enough registers. Buckets of spans
// and chunks are powers of two, so that few kernels serve all lengths.
static bool choose_resident(const lf_axes *x, lf_launch_plan *plan, uint32_t lanes, uint32_t bytes) {
    const lfuser_abi_launch *l = x->l;
    if (plan->columns > LF_LAUNCH_MOST_THREADS * LFUSER_ABI_CHUNK || l->reductions > LFUSER_ABI_UNROLLED_REDUCTIONS)
        return false;
    uint32_t chunks = lf_power_above((plan->columns + LFUSER_ABI_CHUNK - 1) / LFUSER_ABI_CHUNK, 1);
    uint32_t spans = chunks > 1 ? 8 : lf_power_above((plan->columns + LFUSER_ABI_SPAN - 1) / LFUSER_ABI_SPAN, 2);
    // Rows whose length is no multiple of a vector's have few classes: the longer ones are read anew by each pass, from near caches.
    if (lanes == 1 && spans > 2 && x->contiguous && bytes < 16) return false;
    if (lanes == 1 && spans > 2) spans = 8;
    for (uint32_t v = lanes; v >= 1; v /= 2) {
        uint32_t threads = chunks * (LFUSER_ABI_SPAN / v), loaded = (bytes + 3) / 4,
                 registers = spans * v * (l->kept > loaded ? l->kept : loaded);
        if (threads > LF_LAUNCH_MOST_THREADS) return false;
        if (registers > lf_launch_registers(threads) || l->weight * v * spans > LFUSER_ABI_UNROLLED_WEIGHT) continue;
        plan->cls.vector = (uint8_t)v;
        plan->cls.shape = LFUSER_ABI_RESIDENT;
        plan->cls.spans = (uint8_t)spans;
        plan->cls.chunks = (uint8_t)chunks;
        plan->cls.full = !(l->debug & LF_DEBUG_NO_FULL_ROWS) && plan->columns == (uint64_t)chunks * spans * LFUSER_ABI_SPAN;
        return true;
    }
    return false;
}

// Where each pass is one of its own, warps leave what each chunk came to; where columns are read once, what all their chunks did.
static bool choose_rounds(const lfuser_abi_launch *l, lf_launch_plan *plan, uint32_t lanes) {
    uint32_t warps = LFUSER_ABI_SPAN / lanes / 32;
    uint64_t chunks = (plan->columns + LFUSER_ABI_CHUNK - 1) / LFUSER_ABI_CHUNK;
    if ((!l->reads_once && chunks * warps > LFUSER_ABI_ROUND_SLOTS) || l->reductions > MOST_ROUND_REDUCTIONS ||
        l->weight * lanes * 8 > LFUSER_ABI_UNROLLED_WEIGHT)
        return false;
    plan->cls.vector = (uint8_t)lanes;
    plan->cls.shape = LFUSER_ABI_ROUNDS;
    plan->cls.spans = 8;
    plan->cls.chunks = (uint8_t)(warps >= ROUND_WARPS ? 1 : ROUND_WARPS / warps);
    plan->cls.full = l->reads_once && !(l->debug & LF_DEBUG_NO_FULL_ROWS) && plan->columns % LFUSER_ABI_CHUNK == 0;
    return true;
}

// A chunk's parts, where whole rows would give a processor only a few blocks, which end at different times.
enum { OUTER_LEAST_COLUMNS = 512, OUTER_BLOCKS = 4 };

static uint32_t outer_parts(const lfuser_abi_launch *l, const lf_launch_plan *plan, uint64_t tiles, uint32_t processors) {
    if (l->debug & LF_DEBUG_NO_PARTS) return 1;
    bool many = tiles >= (uint64_t)OUTER_BLOCKS * processors || plan->columns < OUTER_LEAST_COLUMNS;
    return many || l->parts < 2 ? 1 : l->parts;
}

// Neighbouring rows that a lane takes at most: as many as fill eight bytes.
static uint32_t outer_lanes(const lfuser_abi_launch *l) {
    uint32_t most = 1, axis = l->rows - 1u;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        if (!l->accesses[i].row && l->accesses[i].varies >> axis & 1 && l->accesses[i].bytes > most)
            most = l->accesses[i].bytes;
    return lf_lanes_at_most(most >= 8 ? 1 : 8 / most, l);
}

static void choose_outer(const lf_axes *x, lf_launch_plan *plan, uint32_t processors) {
    const lfuser_abi_launch *l = x->l;
    uint32_t axis = l->rows - 1u, lanes = outer_lanes(l);
    if (l->reductions * lanes > 32 || !lf_axes_outer(x, true) || !lf_axes_aligned(x, axis, lanes, 0)) lanes = 1;
    // Wider vectors, if enough blocks are left for the device.
    uint64_t parts = outer_parts(l, plan, plan->items / (32 * lanes), processors);
    if (parts > 1) parts *= chunks_of(plan->columns);
    while (lanes > 1 && plan->items / (32 * lanes) * parts < processors + processors / 2) lanes /= 2;
    plan->cls.shape = LFUSER_ABI_OUTER;
    plan->cls.vector = (uint8_t)lanes;
    uint64_t tiles = plan->items / (32 * lanes) + (plan->items % (32 * lanes) != 0);
    parts = outer_parts(l, plan, tiles, processors);
    if (parts == 1) return;
    plan->cls.chunks = (uint8_t)parts;
    plan->cells = tiles * chunks_of(plan->columns) * parts;
}

// In registers where that is fast, else in shared memory, of one block or, if it must be, of several; else read again by each pass.
static void choose_held(const lf_axes *x, lf_launch_plan *plan, uint32_t lanes, uint32_t bytes) {
    bool resident = choose_resident(x, plan, lanes, bytes);
    if (resident && !lf_launch_is_heavy(x->l, &plan->cls)) return;
    if (x->l->reads_once && choose_rounds(x->l, plan, lanes)) return;
    if (lf_launch_stage(x->l, x->info, lanes, false, plan) || resident) return;
    if (!lf_launch_stage(x->l, x->info, lanes, true, plan)) choose_rounds(x->l, plan, lanes);
}

// Partial results that a launch of class MIXED left, a thousand at most: at least two blocks for three processors.
static void choose_combine(const lf_axes *x, lf_launch_plan *plan, uint32_t processors) {
    const lfuser_abi_launch *l = x->l;
    uint32_t lanes = 4, axis = l->rows - 1u;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        while (lanes > 1 && lanes * l->accesses[i].bytes > 16) lanes /= 2;
    while (lanes > 1 && (l->reductions * lanes > 16 || plan->items / (32 * lanes) < processors * 2 / 3)) lanes /= 2;
    plan->cls.shape = LFUSER_ABI_OUTER;
    plan->cls.spans = 1;
    bool vectors = lanes > 1 && x->args && lf_axes_outer(x, true) && lf_axes_aligned(x, axis, lanes, 0);
    plan->cls.vector = (uint8_t)(vectors ? lanes : 1);
}

// Shapes of rows; see lfuser_abi_shape. Few long rows are split only where that fills the device better.
void lf_choose_rows(const lf_axes *x, lf_launch_plan *plan) {
    const lfuser_abi_launch *l = x->l;
    uint32_t processors = x->info ? x->info->processors : 0;
    uint32_t lanes = plan->cls.vector, bytes = 1;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        if (!l->accesses[i].row && !l->accesses[i].store && l->accesses[i].bytes > bytes) bytes = l->accesses[i].bytes;
    if (!plan->columns || l->debug & LF_DEBUG_NO_ROW_SHAPES) return;
    if (l->combines && plan->columns <= LFUSER_ABI_SPAN)
        choose_combine(x, plan, processors);
    else if (plan->columns <= 32u * lanes)
        plan->cls.shape = LFUSER_ABI_WARP;
    else if (l->reduces && !x->contiguous && plan->items >= 32 && lf_axes_outer(x, false))
        choose_outer(x, plan, processors);
    else if (l->reduces && plan->items < 2 * processors && plan->columns > 2 * LFUSER_ABI_CHUNK)
        plan->cls.shape = LFUSER_ABI_SPLIT;
    else
        choose_held(x, plan, lanes, bytes);
}

// ---- two kernels -----------------------------------------------------------------------------------------------------------------

// Results of chunks are taken as elements are: one chunk of them by as many threads as there can be, several chunks at once by four
// results at a time, as long as the warps' slots suffice.
enum { COMBINE_VECTOR = 4, COMBINE_CHUNKS = 4, COMBINE_WARPS = LFUSER_ABI_SPAN / COMBINE_VECTOR / 32 };
// Of OUTER, a thread loads all parts of a row's chunks at once, where these and the reductions are few.
enum { COMBINE_AT_ONCE = 8 };

static lfuser_abi_class combining(const lfuser_abi_launch *l, const lfuser_abi_class *first, uint64_t columns) {
    lfuser_abi_class c = {.rows = first->rows, .cols = first->cols, .wide = first->wide, .shape = LFUSER_ABI_COMBINE};
    if (first->shape == LFUSER_ABI_OUTER) {
        bool few = chunks_of(columns) * l->reductions <= COMBINE_AT_ONCE;
        c.vector = 1;
        c.chunks = (uint8_t)(few ? lf_power_above(chunks_of(columns), 1) : 0);
        c.spans = first->chunks;
        return c;
    }
    uint64_t results = chunks_of(chunks_of(columns));
    c.vector = results > 1 ? COMBINE_VECTOR : 1;
    c.chunks = results <= 1 ? 1 : results <= LFUSER_ABI_ROUND_SLOTS / COMBINE_WARPS ? COMBINE_CHUNKS : 0;
    return c;
}

void lf_add_second(const lfuser_abi_launch *l, lf_launch_plan *plan) {
    if (plan->cls.shape == LFUSER_ABI_SPLIT) plan->cells = plan->items * chunks_of(plan->columns);
    plan->combined = plan->cls.shape == LFUSER_ABI_SPLIT || (plan->cls.shape == LFUSER_ABI_OUTER && plan->cls.chunks > 1);
    if (plan->combined) plan->combine = combining(l, &plan->cls, plan->columns);
}

// What combines the results of a launch of class MIXED has few columns, whatever their number.
static void guess_combine(lfuser_abi_class c, lf_classes *out) {
    c.shape = LFUSER_ABI_OUTER;
    c.spans = 1;
    for (c.vector = 4; c.vector; c.vector /= 2) lf_classes_add(out, c);
}

void lf_guess_rows(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out) {
    static const uint64_t columns[] = {4 * LFUSER_ABI_SPAN, 8 * LFUSER_ABI_SPAN, 2 * LFUSER_ABI_SPAN, 1};
    bool contiguous = lf_usually_contiguous(l), outer = !contiguous && l->reduces && l->rows;
    if (l->combines) {
        guess_combine(c, out);
        return;
    }
    c.vector = (uint8_t)(contiguous ? lf_launch_lanes(l) : 1);
    if (outer) {
        uint32_t lanes = outer_lanes(l);
        c.shape = LFUSER_ABI_OUTER;
        lf_classes_add(out, c);
        if (l->reductions * lanes <= 32) c.vector = (uint8_t)lanes;
        lf_classes_add(out, c);
        c.vector = 1;
    }
    for (uint32_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        lf_launch_plan plan = {.items = UINT32_MAX, .columns = columns[i], .cls = c};
        if (outer && columns[i] > 1) continue;
        plan.cls.shape = LFUSER_ABI_BLOCK;
        lf_choose_rows(&(lf_axes){.l = l, .contiguous = true}, &plan);
        plan.cls.full = false; // serves all lengths of the bucket
        lf_classes_add(out, plan.cls);
    }
    c.shape = LFUSER_ABI_SPLIT;
    if (l->reduces) lf_classes_add(out, c);
    if (l->reduces) lf_classes_add(out, combining(l, &c, SPLIT_USUAL));
    // Short rows, or few columns, of another number than vectors have.
    c = (lfuser_abi_class){.rows = c.rows, .cols = c.cols, .vector = 1, .shape = LFUSER_ABI_WARP};
    lf_classes_add(out, c);
}
