// Pointwise launches: tiles, where accesses are contiguous along different axes, and vectors stacked along an axis (lfuser_abi_shape).
#include "base/debug.h"
#include "runtime/launch_class.h"

// ---- tiles -----------------------------------------------------------------------------------------------------------------------

enum { MOST_SHARED = 48 * 1024 };

// Neighbours of this access lie side by side along `outer`, far apart along the innermost axis.
static bool is_turned(const lf_axes *x, uint32_t access, uint32_t outer) {
    const int64_t *s = lf_axes_strides(x, access);
    int64_t unit = s[outer], step = s[x->l->rows - 1];
    return x->l->accesses[access].plain && (unit == 1 || unit == -1) && (step > 1 || step < -1);
}

// The axis, long enough for tiles, along which most bytes of an iteration are turned; the innermost one: none.
static uint32_t turned_axis(const lf_axes *x) {
    const lfuser_abi_launch *l = x->l;
    uint32_t innermost = l->rows - 1u, best = innermost, most = 0, least = lfuser_abi_tile_outer(1, 0) / 2;
    for (uint32_t outer = lf_is_indexed(l) ? innermost - 1 : 0; outer < innermost; outer++) {
        uint32_t bytes = 0;
        for (uint32_t i = 0; i < l->n_accesses && i < LFUSER_ABI_TILED_ACCESSES && x->extents[outer] >= least; i++)
            if (is_turned(x, i, outer)) bytes += l->accesses[i].bytes;
        if (bytes > most) best = outer, most = bytes;
    }
    return best;
}

static bool can_be_tall(uint32_t lanes) { return lfuser_abi_tile_outer(lanes, 1) > lfuser_abi_tile_outer(lanes, 0); }

// At least half of a tile has work (along the outer axis all of a tall one), and the tiles of turned accesses (as many as there is room for) fit a block's shared memory.
static bool fits_tiles(const lf_axes *x, uint32_t lanes, uint32_t tall, lf_launch_plan *plan) {
    const lfuser_abi_launch *l = x->l;
    uint32_t innermost = l->rows - 1u, outer = lfuser_abi_tile_outer(lanes, tall), inner = lfuser_abi_tile_inner(lanes),
             room = MOST_SHARED, tiled = 0;
    if (x->extents[innermost - 1] < (tall ? outer : outer / 2) || x->extents[innermost] < inner / 2) return false;
    if (l->weight * outer * inner / LFUSER_ABI_TILE_THREADS > LFUSER_ABI_UNROLLED_WEIGHT) return false;
    for (uint32_t i = 0; i < l->n_accesses && i < LFUSER_ABI_TILED_ACCESSES; i++) {
        uint32_t bytes = outer * inner * l->accesses[i].bytes;
        if (!is_turned(x, i, innermost - 1)) continue;
        if (bytes > room && tall) return false;
        if (bytes > room) continue;
        tiled |= 1u << i;
        room -= bytes;
    }
    if (lanes > 1 && !(lf_axes_contiguous(x, tiled) && lf_axes_aligned(x, l->rows + l->cols - 1u, lanes, tiled)))
        return false;
    plan->cls.shape = LFUSER_ABI_TILE;
    plan->cls.vector = (uint8_t)lanes;
    plan->cls.spans = (uint8_t)tall;
    plan->cls.tiled = (uint8_t)tiled;
    plan->cells = plan->items / (uint64_t)(x->extents[innermost - 1] * x->extents[innermost]);
    plan->cells *=
        (uint64_t)(x->extents[innermost - 1] + outer - 1) / outer * ((uint64_t)(x->extents[innermost] + inner - 1) / inner);
    return true;
}

// Vectors where all is aligned, else single elements. The axis that turned accesses are contiguous along becomes the last but one.
static void choose_tiles(const lf_axes *x, uint32_t lanes, lf_launch_plan *plan) {
    const lfuser_abi_launch *l = x->l;
    if (l->rows < 2 || l->single || l->debug & LF_DEBUG_NO_TILES) return;
    uint32_t outer = turned_axis(x);
    if (outer == l->rows - 1u) return;
    if (outer != l->rows - 2u) lf_axes_swap(x, outer, l->rows - 2u);
    if (can_be_tall(lanes) && fits_tiles(x, lanes, 1, plan)) return;
    if (lanes > 1 && fits_tiles(x, lanes, 0, plan)) return;
    fits_tiles(x, 1, 0, plan);
}

// ---- stacks ----------------------------------------------------------------------------------------------------------------------

// Vectors of a thread at most; threads a processor that must be left; elements of a vector and instructions of an element from which on it
// pays (measured: where memory is the limit, rows far apart cost more than loads that a cache has).
enum { STACKED = 4, STACKED_THREADS = 256, STACKED_LANES = 8, STACKED_WEIGHT = 12 };

static bool may_stack(const lfuser_abi_launch *l, uint32_t lanes) {
    return !l->cols && !l->single && !lf_is_indexed(l) && lanes >= STACKED_LANES && l->weight >= STACKED_WEIGHT;
}

// Loads that are constant along this axis, as bits; their bytes of an element.
static uint32_t constant_along(const lf_axes *x, uint32_t axis, uint32_t *out_bytes) {
    const lfuser_abi_launch *l = x->l;
    uint32_t which = 0;
    *out_bytes = 0;
    for (uint32_t i = 0; i < l->n_accesses && i < LFUSER_ABI_TILED_ACCESSES; i++) {
        if (l->accesses[i].store || lf_axes_strides(x, i)[axis]) continue;
        which |= 1u << i;
        *out_bytes += l->accesses[i].bytes;
    }
    return which;
}

// Vectors one above the other share what does not depend on their axis: loads, and where the others are.
static void choose_stack(const lf_axes *x, lf_launch_plan *plan) {
    const lfuser_abi_launch *l = x->l;
    uint32_t innermost = l->rows - 1u, lanes = plan->cls.vector, most = 0;
    for (uint32_t axis = l->rows - plan->cls.rows; axis < innermost; axis++) {
        uint32_t bytes, which = constant_along(x, axis, &bytes), n = STACKED;
        while (n > 1 && (x->extents[axis] % n || l->weight * lanes * n > LFUSER_ABI_UNROLLED_WEIGHT ||
                         plan->items / (lanes * n) < (uint64_t)STACKED_THREADS * x->info->processors))
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

// A guess: tensors are row-major, the first result is walked in its order, and axes merge to two where there are no more.
static bool guess_tiles(const lfuser_abi_launch *l, uint32_t tall, lfuser_abi_class *out) {
    if (l->debug & LF_DEBUG_NO_TILES) return false;
    uint32_t lanes = lf_launch_lanes(l), along = LFUSER_ABI_NO_AXIS, room = MOST_SHARED, tiled = 0, first = 0;
    while (first < l->n_accesses && !l->accesses[first].store) first++;
    if (first < l->n_accesses && l->accesses[first].along + 1u != l->rows) return false;
    for (uint32_t i = 0; i < l->n_accesses && i < LFUSER_ABI_TILED_ACCESSES && !l->single && !l->cols; i++) {
        const lfuser_abi_access *access = &l->accesses[i];
        uint32_t bytes = lfuser_abi_tile_outer(lanes, tall) * lfuser_abi_tile_inner(lanes) * access->bytes;
        bool turned = access->plain && access->along + 1u < l->rows && access->varies >> (l->rows - 1) & 1;
        if (!turned || (along != LFUSER_ABI_NO_AXIS && access->along != along) ||
            (lf_is_indexed(l) && access->along + 2u != l->rows))
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

// The same accesses vary along both.
static bool vary_alike(const lfuser_abi_launch *l, uint32_t a, uint32_t b) {
    uint32_t differ = 0;
    for (uint32_t i = 0; i < l->n_accesses; i++) differ |= (l->accesses[i].varies >> a ^ l->accesses[i].varies >> b) & 1;
    return !differ;
}

// A guess: neighbouring axes merge where the same accesses vary along them, and extents are large and even.
static void guess_stack(const lfuser_abi_launch *l, lfuser_abi_class *c) {
    uint32_t free = l->merge_rows, left = free > 0, most = 0, n = STACKED;
    if (!l->rows || l->cols || l->single) return;
    for (uint32_t a = 1; a < free; a++) left += !vary_alike(l, a - 1, a);
    c->rows = free == l->rows ? lf_bucket(left, l->rows) : (uint8_t)(left + l->rows - free);
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

void lf_choose_elements(const lf_axes *x, lf_launch_plan *plan) {
    if (!x->contiguous) choose_tiles(x, lf_launch_lanes(x->l), plan);
    if (plan->cls.shape == LFUSER_ABI_BLOCK && may_stack(x->l, plan->cls.vector)) choose_stack(x, plan);
}

void lf_guess_elements(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out) {
    lfuser_abi_class tiles;
    c.vector = (uint8_t)lf_launch_lanes(l);
    guess_stack(l, &c);
    bool tiled = (can_be_tall(c.vector) && guess_tiles(l, 1, &tiles)) || guess_tiles(l, 0, &tiles);
    lf_classes_add(out, tiled ? tiles : c);
}
