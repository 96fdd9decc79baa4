// Merging axes and choosing kernel classes (see launch.h).
#include "runtime/launch.h"
#include "base/debug.h"
#include <string.h>

enum { MAX_AXES = 2 * LFUSER_ABI_MAX_RANK, CPU_CONTIGUOUS = 8 };

static int64_t *strides_of(const lfuser_abi_launch *l, uint64_t *args, uint32_t access) {
    return (int64_t *)&args[l->accesses[access].word + 1];
}

static void swap_axes(const lfuser_abi_launch *l, uint64_t *args, int64_t *extents, uint32_t a, uint32_t b) {
    int64_t t = extents[a];
    extents[a] = extents[b];
    extents[b] = t;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        int64_t *s = strides_of(l, args, i);
        t = s[a];
        s[a] = s[b];
        s[b] = t;
    }
}

// Independent axes may be walked in any order: the order of the first result in memory, so that neighbours are neighbours.
static void sort_rows(const lfuser_abi_launch *l, uint64_t *args, int64_t *extents) {
    const int64_t *order = NULL;
    for (uint32_t i = 0; i < l->n_accesses && !order; i++)
        if (l->accesses[i].store) order = strides_of(l, args, i);
    if (!order) return;
    for (uint32_t a = 1; a < l->rows; a++)
        for (uint32_t b = a; b > 0; b--) {
            int64_t outer = order[b - 1] < 0 ? -order[b - 1] : order[b - 1], inner = order[b] < 0 ? -order[b] : order[b];
            if (outer >= inner || extents[b] == 1 || extents[b - 1] == 1) break;
            swap_axes(l, args, extents, b - 1, b);
        }
}

static bool mergeable(const lfuser_abi_launch *l, uint64_t *args, const int64_t *extents, uint32_t outer, uint32_t inner) {
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        const int64_t *s = strides_of(l, args, i);
        int64_t step;
        if (__builtin_mul_overflow(s[inner], extents[inner], &step) || s[outer] != step) return false;
    }
    return true;
}

// Merges axes [first, first + n) and pushes what is left to the end; returns how many are left. Those in front get extent 1.
static uint32_t merge_section(const lfuser_abi_launch *l, uint64_t *args, int64_t *extents, uint32_t first, uint32_t n) {
    uint32_t at = first + n; // [at, end) is done, innermost last
    for (uint32_t a = first + n; a-- > first;) {
        if (extents[a] == 1) continue;
        if (at < first + n && mergeable(l, args, extents, a, at)) {
            extents[at] *= extents[a];
            continue;
        }
        at--;
        if (at == a) continue;
        extents[at] = extents[a];
        for (uint32_t i = 0; i < l->n_accesses; i++) strides_of(l, args, i)[at] = strides_of(l, args, i)[a];
    }
    for (uint32_t a = first; a < at; a++) {
        extents[a] = 1;
        for (uint32_t i = 0; i < l->n_accesses; i++) strides_of(l, args, i)[a] = 0;
    }
    return first + n - at;
}

static uint8_t bucket(uint32_t left, uint32_t all) { return (uint8_t)(all == 0 ? 0 : left <= 1 ? 1 : left == 2 ? 2 : all); }

// The kernel looks at indices: some axes stay what and where they are.
static bool is_indexed(const lfuser_abi_launch *l) { return l->merge_rows < l->rows || l->merge_cols < l->cols; }

// The leading `free` of n axes may be merged. Returns how many axes are walked.
static uint8_t merge_free(const lfuser_abi_launch *l, uint64_t *args, int64_t *extents, uint32_t first, uint32_t n,
                          uint32_t free) {
    uint32_t left = merge_section(l, args, extents, first, free);
    return free == n ? bucket(left, n) : (uint8_t)(left + n - free);
}

static uint32_t at_most(uint32_t lanes, const lfuser_abi_launch *l) {
    uint32_t most = lf_debug_lanes(l->debug);
    return lanes < most ? lanes : most;
}

uint32_t lf_launch_lanes(const lfuser_abi_launch *l) {
    uint32_t innermost = l->rows + l->cols, most = 1;
    if (!innermost || l->single) return 1;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        if (l->accesses[i].varies >> (innermost - 1) & 1 && l->accesses[i].bytes > most) most = l->accesses[i].bytes;
    return at_most(most >= 16 ? 1 : 16 / most, l);
}

static bool is_tiled(uint32_t tiled, uint32_t access) { return access < LFUSER_ABI_TILED_ACCESSES && tiled >> access & 1; }

// Along the innermost axis, tiled accesses along the one before it.
static bool is_contiguous(const lfuser_abi_launch *l, uint64_t *args, uint32_t tiled) {
    uint32_t innermost = l->rows + l->cols;
    if (!innermost) return false;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        bool varies = l->accesses[i].varies >> (innermost - 1) & 1;
        if (strides_of(l, args, i)[innermost - 1 - is_tiled(tiled, i)] != varies || (is_tiled(tiled, i) && !varies))
            return false;
    }
    return true;
}

// Every vector of `lanes` elements lies within the axis (for tiled accesses the one before it) and is aligned to its size.
static bool is_aligned(const lfuser_abi_launch *l, uint64_t *args, const int64_t *extents, uint32_t axis, uint32_t lanes,
                       uint32_t tiled) {
    uint32_t axes = l->rows + l->cols;
    if (extents[axis] % lanes || (tiled && extents[axis - 1] % lanes)) return false;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        const lfuser_abi_access *access = &l->accesses[i];
        if (!(access->varies >> axis & 1)) continue;
        if (args[access->word] % (lanes * access->bytes)) return false;
        const int64_t *s = strides_of(l, args, i);
        for (uint32_t a = 0; a < axes; a++)
            if (a + is_tiled(tiled, i) != axis && extents[a] > 1 && s[a] % (int64_t)lanes) return false;
    }
    return true;
}

// Every offset within an access fits 32 bits, what explicit indices add aside (kernels compute that in 64).
static bool is_narrow(const lfuser_abi_launch *l, uint64_t *args, const int64_t *extents, uint64_t total) {
    if (total > INT32_MAX) return false;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        const int64_t *s = strides_of(l, args, i);
        uint64_t most = 0;
        for (uint32_t a = 0; a < (uint32_t)l->rows + l->cols; a++) {
            uint64_t step = s[a] < 0 ? 0 - (uint64_t)s[a] : (uint64_t)s[a], size;
            if (extents[a] <= 1) continue;
            if (__builtin_mul_overflow(step, (uint64_t)extents[a] - 1, &size) || size > INT32_MAX) return false;
            most += size;
        }
        if (most > INT32_MAX) return false;
    }
    return true;
}

// Along the last row axis each access is contiguous or constant. Strictly: constant only by construction.
static bool is_outer(const lfuser_abi_launch *l, uint64_t *args, bool strictly) {
    if (!l->rows) return false;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        int64_t s = strides_of(l, args, i)[l->rows - 1], meant = l->accesses[i].varies >> (l->rows - 1) & 1;
        if (s != meant && (strictly || s != 0)) return false;
    }
    return true;
}

enum {
    SPAN = LF_LAUNCH_SPAN,
    MOST_THREADS = LF_LAUNCH_MOST_THREADS,
    MOST_ROUND_REDUCTIONS = 4,
    ROUND_WARPS = 16,
    SPLIT_USUAL = 1 << 26 // columns of a long row, for what is compiled ahead
};

static uint64_t chunks_of(uint64_t n) { return n / LFUSER_ABI_CHUNK + (n % LFUSER_ABI_CHUNK != 0); }

// The row held by a block: as many chunks at once as it has, and as few columns a thread as leave enough registers. Buckets of spans
// and chunks are powers of two, so that few kernels serve all lengths.
static bool choose_resident(const lfuser_abi_launch *l, lf_launch_plan *plan, uint32_t lanes, uint32_t bytes,
                            bool contiguous) {
    if (plan->columns > MOST_THREADS * LFUSER_ABI_CHUNK || l->reductions > LFUSER_ABI_UNROLLED_REDUCTIONS) return false;
    uint32_t chunks = lf_power_above((plan->columns + LFUSER_ABI_CHUNK - 1) / LFUSER_ABI_CHUNK, 1);
    uint32_t spans = chunks > 1 ? 8 : lf_power_above((plan->columns + SPAN - 1) / SPAN, 2);
    // Rows whose length is no multiple of a vector's have few classes: the longer ones are read anew by each pass, from near caches.
    if (lanes == 1 && spans > 2 && contiguous && bytes < 16) return false;
    if (lanes == 1 && spans > 2) spans = 8;
    for (uint32_t v = lanes; v >= 1; v /= 2) {
        uint32_t threads = chunks * (SPAN / v), loaded = (bytes + 3) / 4,
                 registers = spans * v * (l->kept > loaded ? l->kept : loaded);
        if (threads > MOST_THREADS) return false;
        if (registers > lf_launch_registers(threads) || l->weight * v * spans > LFUSER_ABI_UNROLLED_WEIGHT) continue;
        plan->cls.vector = (uint8_t)v;
        plan->cls.shape = LFUSER_ABI_RESIDENT;
        plan->cls.spans = (uint8_t)spans;
        plan->cls.chunks = (uint8_t)chunks;
        plan->cls.full = !(l->debug & LF_DEBUG_NO_FULL_ROWS) && plan->columns == (uint64_t)chunks * spans * SPAN;
        return true;
    }
    return false;
}

static bool choose_rounds(const lfuser_abi_launch *l, lf_launch_plan *plan, uint32_t lanes) {
    uint32_t warps = SPAN / lanes / 32;
    uint64_t chunks = (plan->columns + LFUSER_ABI_CHUNK - 1) / LFUSER_ABI_CHUNK;
    if (chunks * warps > LFUSER_ABI_ROUND_SLOTS || l->reductions > MOST_ROUND_REDUCTIONS ||
        l->weight * lanes * 8 > LFUSER_ABI_UNROLLED_WEIGHT)
        return false;
    plan->cls.shape = LFUSER_ABI_ROUNDS;
    plan->cls.spans = 8;
    plan->cls.chunks = (uint8_t)(warps >= ROUND_WARPS ? 1 : ROUND_WARPS / warps);
    return true;
}

// A chunk's parts, where whole rows would give a processor only a few blocks, which end at different times.
enum { OUTER_LEAST_COLUMNS = 512, OUTER_BLOCKS = 4 };

static uint32_t outer_parts(const lfuser_abi_launch *l, const lf_launch_plan *plan, uint64_t tiles, uint32_t processors) {
    if (l->debug & LF_DEBUG_NO_PARTS) return 1;
    bool many = tiles >= (uint64_t)OUTER_BLOCKS * processors || plan->columns < OUTER_LEAST_COLUMNS;
    return many || l->parts < 2 ? 1 : l->parts;
}

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
static bool choose_mixed(const lfuser_abi_launch *l, lf_launch_plan *plan) {
    enum { FEWEST_ROWS = 32, AT_ONCE = 2 };
    static const struct {
        uint32_t threads, registers;
    } room[] = {{128, 100}, {256, 180}, {512, 64}, {1024, 24}};
    uint32_t spans = lf_power_above((plan->columns + SPAN - 1) / SPAN, 1);
    if (plan->columns > LFUSER_ABI_MIXED_COLUMNS || plan->items > LFUSER_ABI_MIXED_ROWS || plan->items < FEWEST_ROWS)
        return false;
    uint64_t last = plan->items % LFUSER_ABI_CHUNK; // rows of the last chunk
    bool all_rows = last == 0 || last == 2 * SPAN || last == 4 * SPAN;
    for (uint32_t v = plan->cls.vector; v >= 1; v /= 2) {
        uint32_t r = 0;
        while (r < 3 && room[r].threads < SPAN / v) r++;
        if (spans * v * mixed_registers(l, AT_ONCE) > 2 * room[r].registers ||
            spans * v * l->weight * AT_ONCE > LFUSER_ABI_UNROLLED_WEIGHT)
            continue;
        plan->cls.vector = (uint8_t)v;
        plan->cls.shape = LFUSER_ABI_MIXED;
        plan->cls.spans = (uint8_t)spans;
        plan->cls.chunks = AT_ONCE | (all_rows ? LFUSER_ABI_MIXED_ALL_ROWS : 0);
        plan->cls.full = plan->columns == (uint64_t)spans * SPAN;
        return true;
    }
    return false;
}

// Neighbouring rows that a lane takes at most: as many as fill eight bytes.
static uint32_t outer_lanes(const lfuser_abi_launch *l) {
    uint32_t most = 1, axis = l->rows - 1u;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        if (!l->accesses[i].row && l->accesses[i].varies >> axis & 1 && l->accesses[i].bytes > most)
            most = l->accesses[i].bytes;
    return at_most(most >= 8 ? 1 : 8 / most, l);
}

static void choose_outer(const lfuser_abi_launch *l, uint64_t *args, const int64_t *extents, lf_launch_plan *plan,
                         uint32_t processors) {
    uint32_t axis = l->rows - 1u, lanes = outer_lanes(l);
    if (l->reductions * lanes > 32 || !is_outer(l, args, true) || !is_aligned(l, args, extents, axis, lanes, 0)) lanes = 1;
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

// ---- scans -----------------------------------------------------------------------------------------------------------------------

enum { WARP_SCAN = 1024, MOST_WALKED = 8 };

static void share_tiles(lf_launch_plan *plan, uint64_t rows, uint64_t columns, uint32_t lanes) {
    plan->cells = rows * ((plan->columns + columns - 1) / columns);
    plan->zero_bytes = LFUSER_ABI_SCAN_HEAD + 8 * lanes * plan->cells;
    plan->shared_out = true;
}

// Short rows a warp each; one tile, or several of many rows, a block; of few rows blocks share the tiles.
static void choose_scan(const lfuser_abi_launch *l, uint64_t *args, lf_launch_plan *plan, bool contiguous,
                        uint32_t processors) {
    uint32_t lanes = plan->cls.vector, spans = lfuser_abi_scan_spans(lanes, l->weight);
    uint64_t span = (uint64_t)LFUSER_ABI_SCAN_THREADS * lanes;
    if (!plan->columns) return;
    if (!contiguous && plan->items >= 32 && is_outer(l, args, false)) {
        plan->cls.shape = LFUSER_ABI_OUTER;
        plan->cls.vector = 1;
        share_tiles(plan, (plan->items + 31) / 32, LFUSER_ABI_SCAN_WARPS * LFUSER_ABI_SCAN_COLUMNS, 32);
    } else if (plan->columns <= WARP_SCAN) {
        plan->cls.shape = LFUSER_ABI_WARP;
    } else if (plan->columns <= spans * span ||
               (plan->items >= 4 * processors && plan->columns <= MOST_WALKED * spans * span)) {
        uint32_t few = spans >= 4 ? spans / 4 : 1;
        plan->cls.spans = (uint8_t)(plan->columns <= few * span ? few : spans);
    } else {
        plan->cls.shape = LFUSER_ABI_LOOKBACK;
        share_tiles(plan, plan->items, spans * span, 1);
    }
}

// ---- scatters --------------------------------------------------------------------------------------------------------------------

// A block a row, where rows are long; a thread a row, where these are short, or many and neighbours in memory.
static void choose_scatter(const lfuser_abi_launch *l, uint64_t *args, lf_launch_plan *plan) {
    enum { SHORT = 64, MANY = 16384 };
    if (plan->columns <= SHORT || (plan->items >= MANY && is_outer(l, args, false))) return;
    plan->cls.shape = LFUSER_ABI_RESIDENT;
}

// ---- sorts ------------------------------------------------------------------------------------------------------------------------

// Tiles of all passes of merging.
static void choose_sort(lf_launch_plan *plan) {
    if (!plan->columns || plan->columns > INT32_MAX) return;
    uint64_t tiles = (plan->columns + LFUSER_ABI_SORT_TILE - 1) / LFUSER_ABI_SORT_TILE, runs = 1, passes = 0;
    for (; runs < tiles; runs *= 2) passes++;
    plan->cls.shape = LFUSER_ABI_LOOKBACK;
    plan->cells = plan->items * tiles * (passes + 1);
    plan->zero_bytes = LFUSER_ABI_SCAN_HEAD + plan->items * 2 * runs * 4;
    plan->shared_out = true;
}

// ---- matrix products -------------------------------------------------------------------------------------------------------------

enum { PRODUCT_TILE = 64, LEAST_PRODUCT = 16, MOST_PRODUCT = 1 << 23 };

// Where a tile has work enough; else rows are summed like any others. As few spans side by side as hold the columns.
static bool choose_product(const lfuser_abi_launch *l, const int64_t *extents, lf_launch_plan *plan) {
    uint64_t m = (uint64_t)extents[l->rows - 2], n = (uint64_t)extents[l->rows - 1];
    if (m < LEAST_PRODUCT || n < LEAST_PRODUCT || !plan->columns || plan->columns > MOST_PRODUCT) return false;
    uint32_t spans = lf_power_above((plan->columns + SPAN - 1) / SPAN, 1);
    plan->cls.shape = LFUSER_ABI_PRODUCT;
    plan->cls.vector = 1;
    plan->cls.spans = (uint8_t)(spans < 8 ? spans : 8);
    plan->cells = plan->items / (m * n) * ((m + PRODUCT_TILE - 1) / PRODUCT_TILE) * ((n + PRODUCT_TILE - 1) / PRODUCT_TILE);
    return true;
}

// In registers where that is fast, else in shared memory, of one block or, if it must be, of several; else read again by each pass.
static void choose_held(const lfuser_abi_launch *l, lf_launch_plan *plan, uint32_t lanes, uint32_t bytes, bool contiguous,
                        const lf_device_info *info) {
    bool resident = choose_resident(l, plan, lanes, bytes, contiguous);
    if (resident && !lf_launch_is_heavy(l, &plan->cls)) return;
    if (lf_launch_stage(l, info, lanes, false, plan) || resident) return;
    if (!lf_launch_stage(l, info, lanes, true, plan)) choose_rounds(l, plan, lanes);
}

// Partial results that a launch of class MIXED left, a thousand at most: at least two blocks for three processors.
static void choose_combine(const lfuser_abi_launch *l, uint64_t *args, const int64_t *extents, lf_launch_plan *plan,
                           uint32_t processors) {
    uint32_t lanes = 4, axis = l->rows - 1u;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        while (lanes > 1 && lanes * l->accesses[i].bytes > 16) lanes /= 2;
    while (lanes > 1 && (l->reductions * lanes > 16 || plan->items / (32 * lanes) < processors * 2 / 3)) lanes /= 2;
    plan->cls.shape = LFUSER_ABI_OUTER;
    plan->cls.spans = 1;
    bool vectors = lanes > 1 && args && is_outer(l, args, true) && is_aligned(l, args, extents, axis, lanes, 0);
    plan->cls.vector = (uint8_t)(vectors ? lanes : 1);
}

// Shapes of rows; see lfuser_abi_shape. Few long rows are split only where that fills the device better.
static void choose_shape(const lfuser_abi_launch *l, uint64_t *args, const int64_t *extents, lf_launch_plan *plan,
                         bool contiguous, const lf_device_info *info) {
    uint32_t processors = info ? info->processors : 0;
    uint32_t lanes = plan->cls.vector, bytes = 1;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        if (!l->accesses[i].row && !l->accesses[i].store && l->accesses[i].bytes > bytes) bytes = l->accesses[i].bytes;
    if (l->single || !plan->columns || l->debug & LF_DEBUG_NO_ROW_SHAPES) return;
    if (l->combines && plan->columns <= SPAN) {
        choose_combine(l, args, extents, plan, info ? info->processors : 0);
        return;
    }
    if (plan->columns <= 32u * lanes)
        plan->cls.shape = LFUSER_ABI_WARP;
    else if (l->reduces && !contiguous && plan->items >= 32 && is_outer(l, args, false))
        choose_outer(l, args, extents, plan, processors);
    else if (l->reduces && plan->items < 2 * processors && plan->columns > 2 * LFUSER_ABI_CHUNK)
        plan->cls.shape = LFUSER_ABI_SPLIT;
    else
        choose_held(l, plan, lanes, bytes, contiguous, info);
}

// ---- two kernels -----------------------------------------------------------------------------------------------------------------

// Results of chunks are taken as elements are, four at a time; several chunks of them at once where there are more than one, and few
// enough for the warps' slots.
enum { COMBINE_VECTOR = 4, COMBINE_CHUNKS = 4, COMBINE_WARPS = SPAN / COMBINE_VECTOR / 32 };

static lfuser_abi_class combining(const lfuser_abi_class *first, uint64_t columns) {
    lfuser_abi_class c = {.rows = first->rows, .cols = first->cols, .wide = first->wide, .shape = LFUSER_ABI_COMBINE};
    if (first->shape == LFUSER_ABI_OUTER) {
        c.vector = c.chunks = 1;
        c.spans = first->chunks;
        return c;
    }
    uint64_t results = chunks_of(chunks_of(columns));
    c.vector = COMBINE_VECTOR;
    c.chunks = results > 1 && results <= LFUSER_ABI_ROUND_SLOTS / COMBINE_WARPS ? COMBINE_CHUNKS : 1;
    return c;
}

static void add_second(lf_launch_plan *plan) {
    if (plan->cls.shape == LFUSER_ABI_SPLIT) plan->cells = plan->items * chunks_of(plan->columns);
    plan->combined = plan->cls.shape == LFUSER_ABI_SPLIT || (plan->cls.shape == LFUSER_ABI_OUTER && plan->cls.chunks > 1);
    if (plan->combined) plan->combine = combining(&plan->cls, plan->columns);
}

// ---- tiles -----------------------------------------------------------------------------------------------------------------------

enum { MOST_SHARED = 48 * 1024 };

// Neighbours of this access lie side by side along `outer`, far apart along the innermost axis.
static bool is_turned(const lfuser_abi_launch *l, uint64_t *args, uint32_t access, uint32_t outer) {
    const int64_t *s = strides_of(l, args, access);
    int64_t unit = s[outer], step = s[l->rows - 1];
    return l->accesses[access].plain && (unit == 1 || unit == -1) && (step > 1 || step < -1);
}

// The axis, long enough for tiles, along which most bytes of an iteration are turned; the innermost one: none.
static uint32_t turned_axis(const lfuser_abi_launch *l, uint64_t *args, const int64_t *extents) {
    uint32_t innermost = l->rows - 1u, best = innermost, most = 0, least = lfuser_abi_tile_outer(1, 0) / 2;
    for (uint32_t outer = is_indexed(l) ? innermost - 1 : 0; outer < innermost; outer++) {
        uint32_t bytes = 0;
        for (uint32_t i = 0; i < l->n_accesses && i < LFUSER_ABI_TILED_ACCESSES && extents[outer] >= least; i++)
            if (is_turned(l, args, i, outer)) bytes += l->accesses[i].bytes;
        if (bytes > most) best = outer, most = bytes;
    }
    return best;
}

static bool can_be_tall(uint32_t lanes) { return lfuser_abi_tile_outer(lanes, 1) > lfuser_abi_tile_outer(lanes, 0); }

// At least half of a tile has work (along the outer axis all of a tall one), and the tiles of turned accesses (as many as there is room for) fit a block's shared memory.
static bool fits_tiles(const lfuser_abi_launch *l, uint64_t *args, const int64_t *extents, uint32_t lanes, uint32_t tall,
                       lf_launch_plan *plan) {
    uint32_t innermost = l->rows - 1u, outer = lfuser_abi_tile_outer(lanes, tall), inner = lfuser_abi_tile_inner(lanes),
             room = MOST_SHARED, tiled = 0;
    if (extents[innermost - 1] < (tall ? outer : outer / 2) || extents[innermost] < inner / 2) return false;
    if (l->weight * outer * inner / LFUSER_ABI_TILE_THREADS > LFUSER_ABI_UNROLLED_WEIGHT) return false;
    for (uint32_t i = 0; i < l->n_accesses && i < LFUSER_ABI_TILED_ACCESSES; i++) {
        uint32_t bytes = outer * inner * l->accesses[i].bytes;
        if (!is_turned(l, args, i, innermost - 1)) continue;
        if (bytes > room && tall) return false;
        if (bytes > room) continue;
        tiled |= 1u << i;
        room -= bytes;
    }
    if (lanes > 1 && !(is_contiguous(l, args, tiled) && is_aligned(l, args, extents, l->rows + l->cols - 1u, lanes, tiled)))
        return false;
    plan->cls.shape = LFUSER_ABI_TILE;
    plan->cls.vector = (uint8_t)lanes;
    plan->cls.spans = (uint8_t)tall;
    plan->cls.tiled = (uint8_t)tiled;
    plan->cells = plan->items / (uint64_t)(extents[innermost - 1] * extents[innermost]);
    plan->cells *=
        (uint64_t)(extents[innermost - 1] + outer - 1) / outer * ((uint64_t)(extents[innermost] + inner - 1) / inner);
    return true;
}

// Vectors where all is aligned, else single elements. The axis that turned accesses are contiguous along becomes the last but one.
static void choose_tiles(const lfuser_abi_launch *l, uint64_t *args, int64_t *extents, uint32_t lanes,
                         lf_launch_plan *plan) {
    if (l->rows < 2 || l->single || l->debug & LF_DEBUG_NO_TILES) return;
    uint32_t outer = turned_axis(l, args, extents);
    if (outer == l->rows - 1u) return;
    if (outer != l->rows - 2u) swap_axes(l, args, extents, outer, l->rows - 2u);
    if (can_be_tall(lanes) && fits_tiles(l, args, extents, lanes, 1, plan)) return;
    if (lanes > 1 && fits_tiles(l, args, extents, lanes, 0, plan)) return;
    fits_tiles(l, args, extents, 1, 0, plan);
}

// On the CPU a kernel for short rows has a fraction of the code.
static void choose_length(lfuser_abi_class *cls, uint64_t columns) {
    cls->chunks = columns <= LFUSER_ABI_CHUNK;
    cls->spans = columns <= SPAN;
}

// ---- stacks ----------------------------------------------------------------------------------------------------------------------

// Vectors of a thread at most; threads a processor that must be left; elements of a vector and instructions of an element from which on it
// pays (measured: where memory is the limit, rows far apart cost more than loads that a cache has).
enum { STACKED = 4, STACKED_THREADS = 256, STACKED_LANES = 8, STACKED_WEIGHT = 12 };

static bool may_stack(const lfuser_abi_launch *l, uint32_t lanes) {
    return !l->cols && !l->single && !is_indexed(l) && lanes >= STACKED_LANES && l->weight >= STACKED_WEIGHT;
}

// Loads that are constant along this axis, as bits; their bytes of an element.
static uint32_t constant_along(const lfuser_abi_launch *l, uint64_t *args, uint32_t axis, uint32_t *out_bytes) {
    uint32_t which = 0;
    *out_bytes = 0;
    for (uint32_t i = 0; i < l->n_accesses && i < LFUSER_ABI_TILED_ACCESSES; i++) {
        if (l->accesses[i].store || strides_of(l, args, i)[axis]) continue;
        which |= 1u << i;
        *out_bytes += l->accesses[i].bytes;
    }
    return which;
}

// Vectors one above the other share what does not depend on their axis: loads, and where the others are.
static void choose_stack(const lfuser_abi_launch *l, uint64_t *args, const int64_t *extents, lf_launch_plan *plan,
                         uint32_t processors) {
    uint32_t innermost = l->rows - 1u, lanes = plan->cls.vector, most = 0;
    for (uint32_t axis = l->rows - plan->cls.rows; axis < innermost; axis++) {
        uint32_t bytes, which = constant_along(l, args, axis, &bytes), n = STACKED;
        while (n > 1 && (extents[axis] % n || l->weight * lanes * n > LFUSER_ABI_UNROLLED_WEIGHT ||
                         plan->items / (lanes * n) < (uint64_t)STACKED_THREADS * processors))
            n /= 2;
        if (bytes <= most || n == 1) continue;
        most = bytes;
        plan->cls.shape = LFUSER_ABI_STACK;
        plan->cls.spans = (uint8_t)n;
        plan->cls.chunks = (uint8_t)axis;
        plan->cls.tiled = (uint8_t)which;
        plan->cells = plan->items / n;
    }
}

bool lf_launch_plan_make(const lfuser_abi_launch *l, const uint64_t *slots, const lf_device *device, uint64_t *args,
                         lf_launch_plan *out) {
    memcpy(args, &slots[l->args_slot], l->n_args * sizeof *args);
    int64_t *extents = (int64_t *)&args[l->extents_word];
    uint64_t rows = 1, columns = 1;
    for (uint32_t a = 0; a < l->rows; a++) rows *= (uint64_t)extents[a];
    for (uint32_t a = 0; a < l->cols; a++) columns *= (uint64_t)extents[l->rows + a];
    *out = (lf_launch_plan){.items = rows, .columns = columns, .cls = {.rows = l->rows, .cols = l->cols, .vector = 1}};
    if (rows == 0) return false;
    if (columns) {
        if (!l->cols && !is_indexed(l)) sort_rows(l, args, extents);
        out->cls.rows = merge_free(l, args, extents, 0, l->rows, l->merge_rows);
        out->cls.cols = merge_free(l, args, extents, l->rows, l->cols, l->merge_cols);
    }
    if (device->type == LF_DEVICE_CPU) {
        if (l->folds) return false;
        if (is_contiguous(l, args, 0) && !(l->debug & LF_DEBUG_VECTOR_1)) out->cls.vector = CPU_CONTIGUOUS;
        if (l->cols && !l->single && !l->scans) choose_length(&out->cls, columns);
        return true;
    }
    out->cls.wide = l->debug & LF_DEBUG_WIDE || !is_narrow(l, args, extents, rows * (columns ? columns : 1));
    uint32_t lanes = lf_launch_lanes(l);
    bool contiguous = is_contiguous(l, args, 0);
    if (lanes > 1 && contiguous && is_aligned(l, args, extents, l->rows + l->cols - 1u, lanes, 0))
        out->cls.vector = (uint8_t)lanes;
    if (l->folds) {
        if (l->debug & LF_DEBUG_NO_ROW_SHAPES || !out->columns || !choose_mixed(l, out)) return false;
        out->cells = lfuser_abi_mixed_sets(rows, args[l->share_word]);
        out->shared_out = true;
        if (out->cls.wide && out->cls.vector == 1) out->cls.rows = l->rows, out->cls.cols = l->cols;
        return true;
    }
    if (!l->cols && !contiguous) choose_tiles(l, args, extents, lanes, out);
    if (out->cls.shape == LFUSER_ABI_BLOCK && may_stack(l, out->cls.vector))
        choose_stack(l, args, extents, out, device->info.processors);
    if (l->debug & LF_DEBUG_NO_ROW_SHAPES) // the general one
        ;
    else if (l->sorts)
        choose_sort(out);
    else if (l->single)
        choose_scatter(l, args, out);
    else if (l->scans)
        choose_scan(l, args, out, contiguous, device->info.processors);
    else if (l->cols && !(l->multiplies && choose_product(l, extents, out)))
        choose_shape(l, args, extents, out, contiguous, &device->info);
    // Few classes: odd cases share the general code.
    if (out->cls.wide && out->cls.vector == 1) out->cls.rows = l->rows, out->cls.cols = l->cols;
    if (l->reduces) add_second(out);
    return true;
}

// Registers are given to a warp in units of 256, and a thread has a multiple of 8.
uint64_t lf_resident_blocks(const lf_device_info *info, const lf_kernel_resources *resources, uint32_t block,
                            uint32_t dynamic_shared, uint32_t cluster) {
    enum { WARP = 32, UNIT = 8, RESERVED = 1024 }; // bytes of shared memory that a block takes for the system
    if (!block || !info->threads_a_processor) return 0;
    uint32_t registers = (resources->registers + UNIT - 1) / UNIT * UNIT, warps = (block + WARP - 1) / WARP;
    uint32_t by_threads = info->threads_a_processor / (warps * WARP);
    uint32_t by_registers = registers ? info->registers_a_processor / (registers * warps * WARP) : by_threads;
    uint32_t blocks = by_threads < by_registers ? by_threads : by_registers;
    uint32_t by_shared = info->shared_a_processor / (resources->shared_bytes + dynamic_shared + RESERVED);
    if (info->shared_a_processor && by_shared < blocks) blocks = by_shared;
    uint64_t all = (uint64_t)(blocks ? blocks : 1) * info->processors;
    if (cluster <= 1) return all;
    // A cluster lies in one group of 16 or 18 multiprocessors, where it need not go in evenly.
    all = all * 8 / 9 / cluster * cluster;
    return all ? all : cluster;
}

lfuser_abi_class lf_launch_general_class(const lfuser_abi_launch *l, lf_device_type type) {
    lfuser_abi_class c = {.rows = l->rows, .cols = l->cols, .vector = 1, .wide = type != LF_DEVICE_CPU};
    if (l->folds) c.shape = LFUSER_ABI_MIXED, c.spans = LFUSER_ABI_MIXED_COLUMNS / SPAN, c.chunks = 1;
    return c;
}

// A guess: tensors are row-major, the first result is walked in its order, and axes merge to two where there are no more.
static bool usual_tiles(const lfuser_abi_launch *l, uint32_t tall, lfuser_abi_class *out) {
    if (l->debug & LF_DEBUG_NO_TILES) return false;
    uint32_t lanes = lf_launch_lanes(l), along = LFUSER_ABI_NO_AXIS, room = MOST_SHARED, tiled = 0, first = 0;
    while (first < l->n_accesses && !l->accesses[first].store) first++;
    if (first < l->n_accesses && l->accesses[first].along + 1u != l->rows) return false;
    for (uint32_t i = 0; i < l->n_accesses && i < LFUSER_ABI_TILED_ACCESSES && !l->single && !l->cols; i++) {
        const lfuser_abi_access *access = &l->accesses[i];
        uint32_t bytes = lfuser_abi_tile_outer(lanes, tall) * lfuser_abi_tile_inner(lanes) * access->bytes;
        bool turned = access->plain && access->along + 1u < l->rows && access->varies >> (l->rows - 1) & 1;
        if (!turned || (along != LFUSER_ABI_NO_AXIS && access->along != along) ||
            (is_indexed(l) && access->along + 2u != l->rows))
            continue;
        if (bytes > room && tall) return false;
        if (bytes > room) continue;
        along = access->along;
        tiled |= 1u << i;
        room -= bytes;
    }
    *out = (lfuser_abi_class){.rows = l->rows,
                              .vector = (uint8_t)lanes,
                              .shape = LFUSER_ABI_TILE,
                              .spans = (uint8_t)tall,
                              .tiled = (uint8_t)tiled};
    return tiled &&
           l->weight * lfuser_abi_tile_outer(lanes, tall) * lfuser_abi_tile_inner(lanes) / LFUSER_ABI_TILE_THREADS <=
               LFUSER_ABI_UNROLLED_WEIGHT;
}

// What is read along the innermost axis lies side by side, if tensors are row-major.
static bool is_usually_contiguous(const lfuser_abi_launch *l) {
    if (l->rows + l->cols == 0) return true;
    uint32_t innermost = l->rows + l->cols - 1u;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        if (l->accesses[i].varies >> innermost & 1 && l->accesses[i].along != LFUSER_ABI_NO_AXIS &&
            l->accesses[i].along != innermost)
            return false;
    return true;
}

static void add_class(lfuser_abi_class *out, uint32_t *n, lfuser_abi_class c) {
    for (uint32_t i = 0; i < *n; i++)
        if (lf_class_key(out[i]) == lf_class_key(c)) return;
    if (*n < LF_MAX_CLASSES - 1) out[(*n)++] = c;
}

static void usual_on_cpu(const lfuser_abi_launch *l, lfuser_abi_class c, lfuser_abi_class *out, uint32_t *n) {
    static const uint64_t columns[] = {LFUSER_ABI_CHUNK, SPAN, UINT64_MAX};
    c.vector = is_usually_contiguous(l) ? CPU_CONTIGUOUS : 1;
    for (uint32_t i = 0; i < sizeof columns / sizeof *columns && l->cols && !l->single && !l->scans; i++) {
        choose_length(&c, columns[i]);
        add_class(out, n, c);
    }
    c.chunks = c.spans = 0;
    add_class(out, n, c);
}

// As choose_shape picks for rows of these lengths.
static void usual_rows(const lfuser_abi_launch *l, lfuser_abi_class c, lfuser_abi_class *out, uint32_t *n) {
    static const uint64_t columns[] = {4 * SPAN, 8 * SPAN, 2 * SPAN, 1};
    bool contiguous = is_usually_contiguous(l), outer = !contiguous && l->reduces && l->rows;
    c.vector = (uint8_t)(contiguous ? lf_launch_lanes(l) : 1);
    if (outer) {
        uint32_t lanes = outer_lanes(l);
        c.shape = LFUSER_ABI_OUTER;
        add_class(out, n, c);
        if (l->reductions * lanes <= 32) c.vector = (uint8_t)lanes;
        add_class(out, n, c);
        c.vector = 1;
    }
    for (uint32_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        lf_launch_plan plan = {.items = UINT32_MAX, .columns = columns[i], .cls = c};
        if (outer && columns[i] > 1) continue;
        plan.cls.shape = LFUSER_ABI_BLOCK;
        choose_shape(l, NULL, NULL, &plan, true, NULL);
        plan.cls.full = false; // serves all lengths of the bucket
        add_class(out, n, plan.cls);
    }
    c.shape = LFUSER_ABI_SPLIT;
    if (l->reduces) add_class(out, n, c);
    if (l->reduces) add_class(out, n, combining(&c, SPLIT_USUAL));
    // Short rows, or few columns, of another number than vectors have.
    c = (lfuser_abi_class){.rows = c.rows, .cols = c.cols, .vector = 1, .shape = LFUSER_ABI_WARP};
    add_class(out, n, c);
}

// The same accesses vary along both.
static bool vary_alike(const lfuser_abi_launch *l, uint32_t a, uint32_t b) {
    uint32_t differ = 0;
    for (uint32_t i = 0; i < l->n_accesses; i++) differ |= (l->accesses[i].varies >> a ^ l->accesses[i].varies >> b) & 1;
    return !differ;
}

// A guess: neighbouring axes merge where the same accesses vary along them, and extents are large and even.
static void usual_stack(const lfuser_abi_launch *l, lfuser_abi_class *c) {
    uint32_t free = l->merge_rows, left = free > 0, most = 0, n = STACKED;
    if (!l->rows || l->cols || l->single) return;
    for (uint32_t a = 1; a < free; a++) left += !vary_alike(l, a - 1, a);
    c->rows = free == l->rows ? bucket(left, l->rows) : (uint8_t)(left + l->rows - free);
    while (n > 1 && l->weight * c->vector * n > LFUSER_ABI_UNROLLED_WEIGHT) n /= 2;
    if (n == 1 || !may_stack(l, c->vector)) return;
    for (uint32_t a = 0, at = free - left; a < l->rows; a++) { // at: where the axis lies after merging
        if (a && (a >= free || !vary_alike(l, a - 1, a))) at++;
        uint32_t bytes = 0, which = 0;
        for (uint32_t i = 0; i < l->n_accesses && i < LFUSER_ABI_TILED_ACCESSES && at + 1u < l->rows; i++) {
            if (l->accesses[i].store || l->accesses[i].varies >> a & 1) continue;
            which |= 1u << i;
            bytes += l->accesses[i].bytes;
        }
        if (bytes <= most) continue;
        most = bytes;
        c->shape = LFUSER_ABI_STACK;
        c->spans = (uint8_t)n;
        c->chunks = (uint8_t)at;
        c->tiled = (uint8_t)which;
    }
}

uint32_t lf_launch_usual_classes(const lfuser_abi_launch *l, lf_device_type type, lfuser_abi_class *out) {
    uint32_t n = 0;
    lfuser_abi_class c = {.rows = bucket(1, l->rows), .cols = bucket(1, l->cols)};
    if (is_indexed(l)) c.rows = l->rows, c.cols = l->cols;
    if (l->folds) {
        static const uint64_t columns[] = {4 * SPAN, 8 * SPAN, 2 * SPAN, 1};
        if (type == LF_DEVICE_CPU) return 0;
        for (uint32_t i = 0; i < sizeof columns / sizeof *columns; i++) {
            lf_launch_plan plan = {.items = LFUSER_ABI_CHUNK, .columns = columns[i], .cls = c};
            plan.cls.vector = (uint8_t)lf_launch_lanes(l);
            if (choose_mixed(l, &plan)) out[n++] = plan.cls;
        }
        out[n++] = lf_launch_general_class(l, type);
        return n;
    }
    for (uint8_t lanes = 4; l->combines && type != LF_DEVICE_CPU && lanes; lanes /= 2)
        out[n++] =
            (lfuser_abi_class){.rows = c.rows, .cols = c.cols, .vector = lanes, .shape = LFUSER_ABI_OUTER, .spans = 1};
    if (n) return out[n++] = lf_launch_general_class(l, type), n;
    if (type == LF_DEVICE_CPU) {
        usual_on_cpu(l, c, out, &n);
    } else if (l->sorts) {
        out[n++] = (lfuser_abi_class){.rows = c.rows, .cols = c.cols, .vector = 1, .shape = LFUSER_ABI_LOOKBACK};
    } else if (l->cols && l->single) {
        out[n++] = (lfuser_abi_class){.rows = c.rows, .cols = c.cols, .vector = 1, .shape = LFUSER_ABI_RESIDENT};
        out[n++] = (lfuser_abi_class){.rows = c.rows, .cols = c.cols, .vector = 1};
    } else if (l->cols && !l->single && l->multiplies) {
        for (uint8_t spans = 1; spans <= 8; spans *= 2)
            out[n++] =
                (lfuser_abi_class){.rows = c.rows, .cols = 1, .vector = 1, .shape = LFUSER_ABI_PRODUCT, .spans = spans};
    } else if (l->scans) {
        c.vector = (uint8_t)lf_launch_lanes(l);
        uint32_t span = LFUSER_ABI_SCAN_THREADS * c.vector, spans = lfuser_abi_scan_spans(c.vector, l->weight);
        const uint64_t columns[] = {1, (uint64_t)spans * span, (uint64_t)MOST_WALKED * spans * span + 1};
        for (uint32_t i = 0; i < sizeof columns / sizeof *columns; i++) {
            lf_launch_plan plan = {.items = 1, .columns = columns[i], .cls = c};
            choose_scan(l, NULL, &plan, true, 1);
            add_class(out, &n, plan.cls);
        }
        c.vector = 1;
        c.shape = LFUSER_ABI_OUTER;
        if (l->rows) add_class(out, &n, c);
    } else if (!l->cols || l->single) {
        c.vector = (uint8_t)lf_launch_lanes(l);
        usual_stack(l, &c);
        uint32_t tall = can_be_tall(lf_launch_lanes(l));
        if (!(tall && usual_tiles(l, 1, &out[n])) && !usual_tiles(l, 0, &out[n])) out[n] = c;
        n++;
    } else {
        usual_rows(l, c, out, &n);
    }
    out[n++] = lf_launch_general_class(l, type);
    return n;
}
