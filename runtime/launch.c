// Merging axes and choosing kernel classes: what is the same for all launches (see launch.h, launch_class.h).
#include "base/debug.h"
#include "runtime/launch_class.h"
#include <string.h>

typedef struct family {
    void (*choose)(const lf_axes *x, lf_launch_plan *plan);
    void (*guess)(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out);
} family;

static const family *family_of(const lfuser_abi_launch *l) {
    static const family elements = {lf_choose_elements, lf_guess_elements}, rows = {lf_choose_rows, lf_guess_rows},
                        mixed = {lf_choose_mixed, lf_guess_mixed}, product = {lf_choose_product, lf_guess_product},
                        scan = {lf_choose_scan, lf_guess_scan}, scatter = {lf_choose_scatter, lf_guess_scatter},
                        sort = {lf_choose_sort, lf_guess_sort};
    if (!l->cols) return &elements;
    return l->folds ? &mixed : l->sorts ? &sort : l->single ? &scatter : l->scans ? &scan : l->multiplies ? &product : &rows;
}

// ---- CPU: whether vectors are contiguous, and whether rows are short, for which a kernel has a fraction of the code.

enum { CPU_CONTIGUOUS = 8 };

static void choose_length(lfuser_abi_class *cls, uint64_t columns) {
    cls->chunks = columns <= LFUSER_ABI_CHUNK;
    cls->spans = columns <= LFUSER_ABI_SPAN;
}

static bool has_lengths(const lfuser_abi_launch *l) { return l->cols && !l->single && !l->scans; }

static void choose_on_cpu(const lf_axes *x, lf_launch_plan *plan) {
    if (x->contiguous && !(x->l->debug & LF_DEBUG_VECTOR_1)) plan->cls.vector = CPU_CONTIGUOUS;
    if (has_lengths(x->l)) choose_length(&plan->cls, plan->columns);
}

static void guess_on_cpu(const lfuser_abi_launch *l, lfuser_abi_class c, lf_classes *out) {
    static const uint64_t columns[] = {LFUSER_ABI_CHUNK, LFUSER_ABI_SPAN, UINT64_MAX};
    c.vector = lf_usually_contiguous(l) ? CPU_CONTIGUOUS : 1;
    for (uint32_t i = 0; i < sizeof columns / sizeof *columns && has_lengths(l); i++) {
        choose_length(&c, columns[i]);
        lf_classes_add(out, c);
    }
    c.chunks = c.spans = 0;
    lf_classes_add(out, c);
}

// ---- all devices

static void choose_on_gpu(const lf_axes *x, lf_launch_plan *plan) {
    const lfuser_abi_launch *l = x->l;
    uint32_t lanes = lf_launch_lanes(l);
    plan->cls.wide = l->debug & LF_DEBUG_WIDE || !lf_axes_narrow(x, plan->items * (plan->columns ? plan->columns : 1));
    if (lanes > 1 && x->contiguous && lf_axes_aligned(x, l->rows + l->cols - 1u, lanes, 0))
        plan->cls.vector = (uint8_t)lanes;
    if (!l->cols || !(l->debug & LF_DEBUG_NO_ROW_SHAPES)) family_of(l)->choose(x, plan);
    // Few classes: odd cases share the general code.
    if (plan->cls.wide && plan->cls.vector == 1) plan->cls.rows = l->rows, plan->cls.cols = l->cols;
    if (l->reduces) lf_add_second(l, plan);
}

// What is planned beside a class goes with its shape.
static void take_general(const lfuser_abi_launch *l, lf_device_type type, lf_launch_plan *plan) {
    lfuser_abi_class general = lf_launch_general_class(l, type);
    if (l->folds && plan->cls.shape != general.shape) return; // there is no such launch
    if (plan->cls.shape != general.shape) plan->combined = false, plan->cells = 0, plan->shared_out = false;
    plan->cls = general;
}

bool lf_launch_plan_make(const lfuser_abi_launch *l, const uint64_t *slots, const lf_device *device, uint64_t *args,
                         lf_launch_plan *out) {
    memcpy(args, &slots[l->args_slot], l->n_args * sizeof *args);
    lf_axes x = {.l = l, .args = args, .extents = (int64_t *)&args[l->extents_word], .info = &device->info};
    uint64_t rows = 1, columns = 1;
    for (uint32_t a = 0; a < l->rows; a++) rows *= (uint64_t)x.extents[a];
    for (uint32_t a = 0; a < l->cols; a++) columns *= (uint64_t)x.extents[l->rows + a];
    *out = (lf_launch_plan){.items = rows, .columns = columns, .cls = {.rows = l->rows, .cols = l->cols, .vector = 1}};
    if (rows == 0) return false;
    if (columns) {
        if (!l->cols && !lf_is_indexed(l)) lf_axes_sort_rows(&x);
        out->cls.rows = lf_axes_merge(&x, 0, l->rows, l->merge_rows);
        out->cls.cols = lf_axes_merge(&x, l->rows, l->cols, l->merge_cols);
    }
    x.contiguous = lf_axes_contiguous(&x, 0);
    (device->type == LF_DEVICE_CPU ? choose_on_cpu : choose_on_gpu)(&x, out);
    if (l->debug & LF_DEBUG_GENERAL) take_general(l, device->type, out);
    // Folds are there in no other class; launches instead of this one do their work.
    return !l->folds || out->cls.shape == LFUSER_ABI_MIXED;
}

lfuser_abi_class lf_launch_general_class(const lfuser_abi_launch *l, lf_device_type type) {
    lfuser_abi_class c = {.rows = l->rows, .cols = l->cols, .vector = 1, .wide = type != LF_DEVICE_CPU};
    if (l->folds) c.shape = LFUSER_ABI_MIXED, c.spans = LFUSER_ABI_MIXED_COLUMNS / LFUSER_ABI_SPAN, c.chunks = 1;
    return c;
}

void lf_classes_add(lf_classes *classes, lfuser_abi_class c) {
    for (uint32_t i = 0; i < classes->n; i++)
        if (lf_class_key(classes->items[i]) == lf_class_key(c)) return;
    if (classes->n < LF_MAX_CLASSES - 1) classes->items[classes->n++] = c;
}

uint32_t lf_launch_usual_classes(const lfuser_abi_launch *l, lf_device_type type, lfuser_abi_class *out) {
    lf_classes classes = {.items = out};
    lfuser_abi_class c = {.rows = lf_bucket(1, l->rows), .cols = lf_bucket(1, l->cols)};
    if (l->folds && type == LF_DEVICE_CPU) return 0;
    if (lf_is_indexed(l)) c.rows = l->rows, c.cols = l->cols;
    (type == LF_DEVICE_CPU ? guess_on_cpu : family_of(l)->guess)(l, c, &classes);
    out[classes.n++] = lf_launch_general_class(l, type);
    return classes.n;
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
