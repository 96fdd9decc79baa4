// Launches that take a row as a whole, scans, sorts and scatters, and matrix products.
#include "runtime/launch_class.h"

// ---- scans -----------------------------------------------------------------------------------------------------------------------

enum { WARP_SCAN = 1024, MOST_WALKED = 8 };

static void share_tiles(lf_launch_plan *plan, uint64_t rows, uint64_t columns, uint32_t lanes) {
    plan->cells = rows * ((plan->columns + columns - 1) / columns);
    plan->zero_bytes = LFUSER_ABI_SCAN_HEAD + 16 * lanes * plan->cells;
    plan->shared_out = true;
}

// Short rows a warp each; one tile, or several of many rows, a block; of few rows blocks share the tiles.
void lf_choose_scan(const lf_axes *x, lf_launch_plan *plan) {
    const lfuser_abi_launch *l = x->l;
    uint32_t processors = x->info ? x->info->processors : 1;
    uint32_t lanes = plan->cls.vector, spans = lfuser_abi_scan_spans(lanes, l->weight);
    uint64_t span = (uint64_t)LFUSER_ABI_SCAN_THREADS * lanes;
    if (!plan->columns) return;
    if (!x->contiguous && plan->items >= 32 && lf_axes_outer(x, false)) {
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

void lf_guess_scan(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out) {
    c.vector = (uint8_t)lf_launch_lanes(l);
    uint32_t span = LFUSER_ABI_SCAN_THREADS * c.vector, spans = lfuser_abi_scan_spans(c.vector, l->weight);
    const uint64_t columns[] = {1, (uint64_t)spans * span, (uint64_t)MOST_WALKED * spans * span + 1};
    for (uint32_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        lf_launch_plan plan = {.items = 1, .columns = columns[i], .cls = c};
        lf_choose_scan(&(lf_axes){.l = l, .contiguous = true}, &plan);
        lf_classes_add(out, plan.cls);
    }
    c.vector = 1;
    c.shape = LFUSER_ABI_OUTER;
    if (l->rows) lf_classes_add(out, c);
}

// ---- scatters --------------------------------------------------------------------------------------------------------------------

// A block a row, where rows are long; a thread a row, where these are short, or many and neighbours in memory.
void lf_choose_scatter(const lf_axes *x, lf_launch_plan *plan) {
    enum { SHORT = 64, MANY = 16384 };
    if (plan->columns <= SHORT || (plan->items >= MANY && lf_axes_outer(x, false))) return;
    plan->cls.shape = LFUSER_ABI_RESIDENT;
}

void lf_guess_scatter(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out) {
    (void)l;
    c.vector = 1;
    c.shape = LFUSER_ABI_RESIDENT;
    lf_classes_add(out, c);
    c.shape = LFUSER_ABI_BLOCK;
    lf_classes_add(out, c);
}

// ---- sorts ------------------------------------------------------------------------------------------------------------------------

// Tiles of all passes of merging.
void lf_choose_sort(const lf_axes *x, lf_launch_plan *plan) {
    (void)x;
    if (!plan->columns || plan->columns > INT32_MAX) return;
    uint64_t tiles = (plan->columns + LFUSER_ABI_SORT_TILE - 1) / LFUSER_ABI_SORT_TILE, runs = 1, passes = 0;
    for (; runs < tiles; runs *= 2) passes++;
    plan->cls.shape = LFUSER_ABI_LOOKBACK;
    plan->cells = plan->items * tiles * (passes + 1);
    plan->zero_bytes = LFUSER_ABI_SCAN_HEAD + plan->items * 2 * runs * 4;
    plan->shared_out = true;
}

void lf_guess_sort(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out) {
    (void)l;
    c.vector = 1;
    c.shape = LFUSER_ABI_LOOKBACK;
    lf_classes_add(out, c);
}

// ---- matrix products -------------------------------------------------------------------------------------------------------------

enum { PRODUCT_TILE = 64, LEAST_PRODUCT = 16, MOST_PRODUCT = 1 << 23 };

// Where a tile has work enough; else rows are summed like any others. As few spans side by side as hold the columns.
void lf_choose_product(const lf_axes *x, lf_launch_plan *plan) {
    uint64_t m = (uint64_t)x->extents[x->l->rows - 2], n = (uint64_t)x->extents[x->l->rows - 1];
    if (m < LEAST_PRODUCT || n < LEAST_PRODUCT || !plan->columns || plan->columns > MOST_PRODUCT) {
        lf_choose_rows(x, plan);
        return;
    }
    uint32_t spans = lf_power_above((plan->columns + LFUSER_ABI_SPAN - 1) / LFUSER_ABI_SPAN, 1);
    plan->cls.shape = LFUSER_ABI_PRODUCT;
    plan->cls.vector = 1;
    plan->cls.spans = (uint8_t)(spans < 8 ? spans : 8);
    plan->cells = plan->items / (m * n) * ((m + PRODUCT_TILE - 1) / PRODUCT_TILE) * ((n + PRODUCT_TILE - 1) / PRODUCT_TILE);
}

void lf_guess_product(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out) {
    (void)l;
    c.cols = c.vector = 1;
    c.shape = LFUSER_ABI_PRODUCT;
    for (c.spans = 1; c.spans <= 8; c.spans *= 2) lf_classes_add(out, c);
}
