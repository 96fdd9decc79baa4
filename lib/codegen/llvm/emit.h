// Elementwise ops as LLVM instructions: the one lowering that host code, CPU kernels and GPU kernels share, so that they
// cannot disagree. Does not belong here: loops, addresses, modules, targets.
#ifndef LF_CODEGEN_LLVM_EMIT_H
#define LF_CODEGEN_LLVM_EMIT_H
#include "ir/ir.h"
#include <llvm-c/Core.h>

typedef enum lf_emit_target { LF_EMIT_X86, LF_EMIT_NVPTX } lf_emit_target;

// Where instructions go. The builder stands at the end of a block; emitters may add blocks and leave it at another one.
typedef struct lf_emit {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    lf_emit_target target;
    bool fast;        // math=fast: contraction and approximate functions are allowed
    bool has_half;    // the target converts f32 <-> f16 in hardware (x86: F16C)
    bool has_bf16;    // and f32 -> bf16 rightly (NVPTX from sm_80 on)
    lf_status status; // first failure, e.g. LF_UNSUPPORTED; owned by whoever owns the lf_emit
    const lf_allocator *allocator;
} lf_emit;

// An element in registers.
//   bool i1; integers iN; f16 and bf16 their bits as i16; f32 float; f64 double; complex: re and im (float or double) apart.
typedef struct lf_register {
    LLVMValueRef re, im; // im only for complex
} lf_register;

LLVMTypeRef lf_register_type(lf_emit *e, lf_dtype d); // of `re`
LLVMTypeRef lf_memory_type(lf_emit *e, lf_dtype d);   // bool i8; complex {float, float}; f16, bf16 i16
lf_register lf_emit_constant(lf_emit *e, lf_dtype d, const lf_scalar *value);
// Natural alignment of the component; bool: byte != 0, stored as 0 or 1.
lf_register lf_emit_load(lf_emit *e, lf_dtype d, LLVMValueRef v_pointer);
void lf_emit_store(lf_emit *e, lf_dtype d, lf_register value, LLVMValueRef v_pointer);
lf_register lf_emit_select(lf_emit *e, LLVMValueRef v_if, lf_register a, lf_register b);

// Result 0 of an ELEM op (or SATMUL) for these operands, one a semantic operand of the op, in the operands' dtypes; an
// omitted operand is {NULL, NULL}. Operand dtypes are read off op->operands.
lf_register lf_emit_elem(lf_emit *e, const lf_op *op, const lf_register *operands);
// The same for `lanes` elements of one thread: args[lane][operand], results to out[lane]. Adds blocks where one branch saves more.
enum { LF_EMIT_OPERANDS = 8, LF_EMIT_LANES = 16 };
void lf_emit_elem_lanes(lf_emit *e, const lf_op *op, const lf_register (*args)[LF_EMIT_OPERANDS], unsigned lanes,
                        lf_register *out);
// The same for an opcode without a graph op: all operands and the result have dtype d (comparisons and predicates give
// bool).
lf_register lf_emit_simple(lf_emit *e, lf_opcode code, lf_dtype d, lf_register a, lf_register b);
lf_register lf_emit_cast(lf_emit *e, lf_dtype from, lf_dtype to, lf_register value);
// e^a, an f32, in fast mode on a GPU, from a product and the device's 2^x: as good as terms that are weighed against 1 need.
LLVMValueRef lf_emit_exp_approximately(lf_emit *e, LLVMValueRef a);
// The same for both halves of words at once: ops on f16 and bf16 that a GPU has an instruction for; false: this is none. d: dtype
// of the result.
bool lf_emit_pairs(lf_emit *e, lf_opcode code, lf_dtype d, const lf_register (*args)[LF_EMIT_OPERANDS], unsigned lanes,
                   lf_register *out);
// Two registers of 16 bits as one word, and back.
LLVMValueRef lf_emit_half_of_pair(lf_emit *e, LLVMValueRef v_pair, unsigned half);
LLVMValueRef lf_emit_pack_halves(lf_emit *e, LLVMValueRef v_low, LLVMValueRef v_high);
// Philox-4x32-10: out_words[4] (i32) for a 64-bit key and counter (i64 low, i64 high).
void lf_emit_philox(lf_emit *e, LLVMValueRef v_key, LLVMValueRef v_low, LLVMValueRef v_high, LLVMValueRef out_words[4]);
#endif
