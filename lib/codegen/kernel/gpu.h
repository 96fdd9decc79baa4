// What the GPU files of this folder share. Private to them.
#ifndef LF_CODEGEN_KERNEL_GPU_H
#define LF_CODEGEN_KERNEL_GPU_H
#include "codegen/kernel/kernel.h"

enum {
    LF_GPU_WARP = 32,
    LF_GPU_REDUCTIONS = 64,     // in one pass
    LF_GPU_SLOT = 32            // bytes of shared memory for a partial result: up to 16 of value, 8 of position
};

// Threads that share a row, in one pass.
typedef struct gpu {
    lf_kernel *k;
    LLVMValueRef v_thread;      // i64: thread's number among those that share the row
    unsigned threads;           // that share the row
    unsigned pass, n;
    const lf_stmt_id *ids;      // the n reductions of the pass
    LLVMValueRef v_columns;
    LLVMValueRef v_shared;      // shared memory: a slot a warp and reduction
    lf_partials *from;          // not NULL: what is reduced are partial results in memory, not columns
} gpu;

// gpu.c
LLVMValueRef lf_gpu_intrinsic(lf_kernel *k, const char *name, LLVMValueRef *args, unsigned n);
LLVMValueRef lf_gpu_special(lf_kernel *k, const char *name);              // a special register as i64
LLVMValueRef lf_gpu_barrier(lf_kernel *k);
LLVMValueRef lf_gpu_total_rows(lf_kernel *k);
// gpu_rows.c
lf_status lf_gpu_emit_rows(lf_kernel *k, lf_object *out);
void lf_gpu_emit_chunk(lf_kernel *k, void *context, LLVMValueRef v_chunk, lf_partial *out);   // context: gpu
void lf_gpu_exchange_warps(gpu *g, lf_partial *p);
LLVMValueRef lf_gpu_shared_slot(gpu *g, LLVMValueRef v_warp, unsigned reduction, unsigned offset);
LLVMValueRef lf_gpu_shared_memory(lf_kernel *k, unsigned bytes);
// gpu_reduce.c: pure reductions (abi launch `reduces`)
lf_status lf_gpu_emit_split(gpu *g, lf_object *out);
lf_status lf_gpu_emit_outer(lf_kernel *k, lf_object *out);
#endif
