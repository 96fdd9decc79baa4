// The one entry: picks the target's way of walking rows and columns.
#include "codegen/kernel/kernel.h"
#include <string.h>

lf_status lf_kernel_emit(lf_llvm *l, const lf_loop *loop, const lf_target *t, lfuser_abi_class class_,
                         const lf_codegen_options *options, lf_object *out_object) {
    (void)options; // fast mode is in l->emit
    lf_kernel *k = lf_alloc_zero(l->allocator, sizeof *k);
    if (!k) return lf_out_of_memory();
    *k = (lf_kernel){.l = l, .e = &l->emit, .loop = loop, .cls = class_, .gpu = t->kind != LF_TARGET_CPU};
    k->lanes = k->gpu ? class_.vector : 1;
    if (k->lanes < 1 || k->lanes > LF_MAX_LANES || (loop->rows == 0 && loop->cols == 0)) k->lanes = 1;
    if (loop->folds && (!k->gpu || class_.shape != LFUSER_ABI_MIXED)) {
        lf_free(l->allocator, k);
        return lf_error(l->allocator, LF_INTERNAL, "kernel %s: rows and reductions across them have no code of this class",
                        loop->name);
    }
    strcpy(out_object->entry, "kernel");
    lf_status s = k->gpu ? lf_kernel_emit_gpu(k, out_object) : lf_kernel_emit_cpu(k);
    lf_kernel_finish(k);
    lf_free(l->allocator, k);
    return s;
}
