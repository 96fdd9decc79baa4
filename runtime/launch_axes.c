// The axes of a launch: sorted, merged, and what their strides allow (launch_class.h).
#include "base/debug.h"
#include "runtime/launch_class.h"

void lf_axes_swap(const lf_axes *x, uint32_t a, uint32_t b) {
    const lfuser_abi_launch *l = x->l;
    int64_t t = x->extents[a];
    x->extents[a] = x->extents[b];
    x->extents[b] = t;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        int64_t *s = lf_axes_strides(x, i);
        t = s[a];
        s[a] = s[b];
        s[b] = t;
    }
}

void lf_axes_sort_rows(const lf_axes *x) {
    const lfuser_abi_launch *l = x->l;
    const int64_t *order = NULL;
    for (uint32_t i = 0; i < l->n_accesses && !order; i++)
        if (l->accesses[i].store) order = lf_axes_strides(x, i);
    if (!order) return;
    for (uint32_t a = 1; a < l->rows; a++)
        for (uint32_t b = a; b > 0; b--) {
            int64_t outer = order[b - 1] < 0 ? -order[b - 1] : order[b - 1], inner = order[b] < 0 ? -order[b] : order[b];
            if (outer >= inner || x->extents[b] == 1 || x->extents[b - 1] == 1) break;
            lf_axes_swap(x, b - 1, b);
        }
}

static bool mergeable(const lf_axes *x, uint32_t outer, uint32_t inner) {
    const lfuser_abi_launch *l = x->l;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        const int64_t *s = lf_axes_strides(x, i);
        int64_t step;
        if (__builtin_mul_overflow(s[inner], x->extents[inner], &step) || s[outer] != step) return false;
    }
    return true;
}

// Merges axes [first, first + n) and pushes what is left to the end; returns how many are left. Those in front get extent 1.
static uint32_t merge_section(const lf_axes *x, uint32_t first, uint32_t n) {
    const lfuser_abi_launch *l = x->l;
    uint32_t at = first + n; // [at, end) is done, innermost last
    for (uint32_t a = first + n; a-- > first;) {
        if (x->extents[a] == 1) continue;
        if (at < first + n && mergeable(x, a, at)) {
            x->extents[at] *= x->extents[a];
            continue;
        }
        at--;
        if (at == a) continue;
        x->extents[at] = x->extents[a];
        for (uint32_t i = 0; i < l->n_accesses; i++) lf_axes_strides(x, i)[at] = lf_axes_strides(x, i)[a];
    }
    for (uint32_t a = first; a < at; a++) {
        x->extents[a] = 1;
        for (uint32_t i = 0; i < l->n_accesses; i++) lf_axes_strides(x, i)[a] = 0;
    }
    return first + n - at;
}

uint8_t lf_axes_merge(const lf_axes *x, uint32_t first, uint32_t n, uint32_t free) {
    uint32_t left = merge_section(x, first, free);
    return free == n ? lf_bucket(left, n) : (uint8_t)(left + n - free);
}

uint32_t lf_lanes_at_most(uint32_t lanes, const lfuser_abi_launch *l) {
    uint32_t most = lf_debug_lanes(l->debug);
    return lanes < most ? lanes : most;
}

uint32_t lf_launch_lanes(const lfuser_abi_launch *l) {
    uint32_t innermost = l->rows + l->cols, most = 1;
    if (!innermost || l->single) return 1;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        if (l->accesses[i].varies >> (innermost - 1) & 1 && l->accesses[i].bytes > most) most = l->accesses[i].bytes;
    return lf_lanes_at_most(most >= 16 ? 1 : 16 / most, l);
}

static bool is_tiled(uint32_t tiled, uint32_t access) { return access < LFUSER_ABI_TILED_ACCESSES && tiled >> access & 1; }

bool lf_axes_contiguous(const lf_axes *x, uint32_t tiled) {
    const lfuser_abi_launch *l = x->l;
    uint32_t innermost = l->rows + l->cols;
    if (!innermost) return false;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        bool varies = l->accesses[i].varies >> (innermost - 1) & 1;
        if (lf_axes_strides(x, i)[innermost - 1 - is_tiled(tiled, i)] != varies || (is_tiled(tiled, i) && !varies))
            return false;
    }
    return true;
}

bool lf_axes_aligned(const lf_axes *x, uint32_t axis, uint32_t lanes, uint32_t tiled) {
    const lfuser_abi_launch *l = x->l;
    uint32_t axes = l->rows + l->cols;
    if (x->extents[axis] % lanes || (tiled && x->extents[axis - 1] % lanes)) return false;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        const lfuser_abi_access *access = &l->accesses[i];
        if (!(access->varies >> axis & 1)) continue;
        if (x->args[access->word] % (lanes * access->bytes)) return false;
        const int64_t *s = lf_axes_strides(x, i);
        for (uint32_t a = 0; a < axes; a++)
            if (a + is_tiled(tiled, i) != axis && x->extents[a] > 1 && s[a] % (int64_t)lanes) return false;
    }
    return true;
}

bool lf_axes_narrow(const lf_axes *x, uint64_t total) {
    const lfuser_abi_launch *l = x->l;
    if (total > INT32_MAX) return false;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        const int64_t *s = lf_axes_strides(x, i);
        uint64_t most = 0;
        for (uint32_t a = 0; a < (uint32_t)l->rows + l->cols; a++) {
            uint64_t step = s[a] < 0 ? 0 - (uint64_t)s[a] : (uint64_t)s[a], size;
            if (x->extents[a] <= 1) continue;
            if (__builtin_mul_overflow(step, (uint64_t)x->extents[a] - 1, &size) || size > INT32_MAX) return false;
            most += size;
        }
        if (most > INT32_MAX) return false;
    }
    return true;
}

bool lf_axes_outer(const lf_axes *x, bool strictly) {
    const lfuser_abi_launch *l = x->l;
    if (!l->rows) return false;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        int64_t s = lf_axes_strides(x, i)[l->rows - 1], meant = l->accesses[i].varies >> (l->rows - 1) & 1;
        if (s != meant && (strictly || s != 0)) return false;
    }
    return true;
}

bool lf_usually_contiguous(const lfuser_abi_launch *l) {
    if (l->rows + l->cols == 0) return true;
    uint32_t innermost = l->rows + l->cols - 1u;
    for (uint32_t i = 0; i < l->n_accesses; i++)
        if (l->accesses[i].varies >> innermost & 1 && l->accesses[i].along != LFUSER_ABI_NO_AXIS &&
            l->accesses[i].along != innermost)
            return false;
    return true;
}
