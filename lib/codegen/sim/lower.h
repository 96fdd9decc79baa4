// What the files of this folder share.
#ifndef LF_CODEGEN_SIM_LOWER_H
#define LF_CODEGEN_SIM_LOWER_H
#include "base/sim_abi.h"
#include "base/text.h"
#include "base/vec.h"
#include "codegen/sim/sim.h"
#include <stddef.h>

// Where a shared array lies, as an instruction of the entry block.
typedef struct lf_sim_place {
    LLVMValueRef v_array, v_place;
} lf_sim_place;

typedef struct lf_sim_lowering {
    lf_llvm *l;
    LLVMTypeRef l_ptr, l_i8, l_i32, l_i64, l_void;
    LLVMValueRef v_kernel, v_thread, v_args;
    LLVMValueRef v_calls;     // lf_sim_calls *, loaded in the entry block
    LLVMValueRef v_begin;     // first instruction of the kernel as it was
    LLVMValueRef v_in, v_out; // room for the words of device calls, in the entry block
    uint64_t args_bytes;      // of the argument block, when it is passed by value; else 0
    LF_VEC(lf_sim_site) sites;
    LF_VEC(lf_sim_shared) shared;
    LF_VEC(lf_sim_place) places;
    lf_text texts;
    uint32_t shared_bytes;
    bool dynamic_shared;
    uint32_t cluster;          // blocks; 0: the kernel says nothing of a cluster
    LLVMBasicBlockRef b_named; // the block whose name was put last, at `block_text`
    uint32_t block_text;
} lf_sim_lowering;

// constants.c: the kernel uses the places instead of the arrays, also where they stand in constant expressions.
lf_status lf_sim_replace_shared(lf_sim_lowering *s) LF_MUST_USE;

// minmax.c: minima and maxima as PTX means them.
void lf_sim_mend_minmax(lf_sim_lowering *s);

// sites.c: the tables that the code hands to the runtime.
uint32_t lf_sim_text(lf_sim_lowering *s, const char *text, size_t length);
// A new site for instruction v; `what` NULL: v's own name.
uint32_t lf_sim_add_site(lf_sim_lowering *s, LLVMValueRef v, const char *what, size_t length, lf_sim_site site);
lf_status lf_sim_emit_program(lf_sim_lowering *s) LF_MUST_USE;

// memory.c: what an instruction does to memory is told to the runtime before it.
lf_status lf_sim_lower_memory(lf_sim_lowering *s, LLVMValueRef v_instruction) LF_MUST_USE;
// device.c: calls of the rows of device_intrinsics.def. *out_done: it was one, and is gone.
lf_status lf_sim_lower_call(lf_sim_lowering *s, LLVMValueRef v_call, bool *out_done) LF_MUST_USE;
// Calls the member of lf_sim_calls at this offset. The thread is the first argument.
LLVMValueRef lf_sim_call(lf_sim_lowering *s, size_t member, LLVMValueRef *args, unsigned n);
lf_status lf_sim_refuse(const lf_sim_lowering *s, const char *why, LLVMValueRef v);
#endif
