// What launch*.c share: the axes of a launch as they are in its argument block, and the families of launches, each of which picks
// its classes (lfuser_abi_class in launch_abi.h) and guesses those that contiguous tensors will get.
//   launch.c           what is the same for all, and the CPU's few classes
//   launch_axes.c      sorts and merges axes, looks at strides and alignment
//   launch_elements.c  pointwise launches: tiles and stacks
//   launch_rows.c      reductions; launch_staged.c: rows in shared memory; launch_mixed.c: along and across at once
//   launch_whole.c     scans, sorts, scatters, matrix products
#ifndef LF_RUNTIME_LAUNCH_CLASS_H
#define LF_RUNTIME_LAUNCH_CLASS_H
#include "runtime/launch.h"

typedef struct lf_axes {
    const lfuser_abi_launch *l;
    uint64_t *args;             // the argument block; NULL: a guess is wanted, nothing is known of strides
    int64_t *extents;           // in it
    bool contiguous;            // along the innermost axis
    const lf_device_info *info; // NULL: a guess
} lf_axes;

// The classes that a launch may be asked for, without doubles.
typedef struct lf_classes {
    lfuser_abi_class *items; // borrowed: LF_MAX_CLASSES, the last of which is the general one's
    uint32_t n;
} lf_classes;
void lf_classes_add(lf_classes *classes, lfuser_abi_class c);

// ---- launch_axes.c
static inline int64_t *lf_axes_strides(const lf_axes *x, uint32_t access) {
    return (int64_t *)&x->args[x->l->accesses[access].word + 1];
}
void lf_axes_swap(const lf_axes *x, uint32_t a, uint32_t b);
// Independent axes may be walked in any order: the order of the first result in memory, so that neighbours are neighbours.
void lf_axes_sort_rows(const lf_axes *x);
// The leading `free` of the n axes from `first` on may be merged. Returns how many axes are walked.
uint8_t lf_axes_merge(const lf_axes *x, uint32_t first, uint32_t n, uint32_t free);
// Along the innermost axis, tiled accesses along the one before it.
bool lf_axes_contiguous(const lf_axes *x, uint32_t tiled);
// Every vector of `lanes` elements lies within the axis (for tiled accesses the one before it) and is aligned to its size.
bool lf_axes_aligned(const lf_axes *x, uint32_t axis, uint32_t lanes, uint32_t tiled);
// Every offset within an access fits 32 bits, what explicit indices add aside (kernels compute that in 64).
bool lf_axes_narrow(const lf_axes *x, uint64_t total);
// Along the last row axis each access is contiguous or constant. Strictly: constant only by construction.
bool lf_axes_outer(const lf_axes *x, bool strictly);
// What is read along the innermost axis lies side by side, if tensors are row-major.
bool lf_usually_contiguous(const lfuser_abi_launch *l);
// How many axes of `all` a class has where so many are left after merging.
static inline uint8_t lf_bucket(uint32_t left, uint32_t all) {
    return (uint8_t)(all == 0 ? 0 : left <= 1 ? 1 : left == 2 ? 2 : all);
}
// The kernel looks at indices: some axes stay what and where they are.
static inline bool lf_is_indexed(const lfuser_abi_launch *l) { return l->merge_rows < l->rows || l->merge_cols < l->cols; }
// No more lanes than the launch's debug switches allow.
uint32_t lf_lanes_at_most(uint32_t lanes, const lfuser_abi_launch *l);

// ---- families: the choice fills the class, `cells`, `zero_bytes` and `shared_out` of a plan that has the general class and
// vectors as wide as can be; the guess adds what the choice is likely to be, from a class with axes only.
void lf_choose_elements(const lf_axes *x, lf_launch_plan *plan);
void lf_choose_rows(const lf_axes *x, lf_launch_plan *plan);
void lf_choose_mixed(const lf_axes *x, lf_launch_plan *plan);
void lf_choose_product(const lf_axes *x, lf_launch_plan *plan);
void lf_choose_scan(const lf_axes *x, lf_launch_plan *plan);
void lf_choose_scatter(const lf_axes *x, lf_launch_plan *plan);
void lf_choose_sort(const lf_axes *x, lf_launch_plan *plan);
void lf_guess_elements(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out);
void lf_guess_rows(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out);
void lf_guess_mixed(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out);
void lf_guess_product(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out);
void lf_guess_scan(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out);
void lf_guess_scatter(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out);
void lf_guess_sort(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out);
// Adds the second kernel of rows that blocks share, once the first one's class is settled.
void lf_add_second(const lfuser_abi_launch *l, lf_launch_plan *plan);

enum { LF_LAUNCH_MOST_THREADS = 1024 };
// Registers of a thread that may hold columns.
static inline uint32_t lf_launch_registers(uint32_t threads) { return threads > LF_LAUNCH_MOST_THREADS / 2 ? 40 : 96; }
static inline uint32_t lf_power_above(uint64_t n, uint32_t least) {
    uint32_t p = least;
    while (p < n) p *= 2;
    return p;
}

// ---- launch_staged.c: the row in shared memory, of one block or, with `clusters`, of several. False: it does not fit, or the
// device cannot.
bool lf_launch_stage(const lfuser_abi_launch *l, const lf_device_info *info, uint32_t lanes, bool clusters,
                     lf_launch_plan *plan);
// Of a column, what is copied there; what warps exchange results through, at most, in all of two passes.
uint32_t lf_staged_bytes(const lfuser_abi_launch *l, uint32_t lanes);
uint32_t lf_exchange_bytes(const lfuser_abi_launch *l, uint32_t warps);
// Work for each byte, and a block that leaves no room for another: loading, working and storing would take turns.
bool lf_launch_is_heavy(const lfuser_abi_launch *l, const lfuser_abi_class *resident);
#endif
