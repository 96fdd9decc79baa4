// The last look at a module before LLVM makes code of it. LLVM ends the process on IR that a target cannot do (frem or
// llvm.exp on NVPTX, say), so nothing reaches it that is not on a list of what is known to work.
#ifndef LF_CODEGEN_LLVM_CHECK_IR_H
#define LF_CODEGEN_LLVM_CHECK_IR_H
#include "codegen/llvm/context.h"

// LF_UNSUPPORTED with the instruction, its function and the target. Linear in the size of the module.
lf_status lf_check_ir(lf_llvm *l) LF_MUST_USE;

// The i-th intrinsic of the list, for the test that proves each; false past the end.
typedef struct lf_ir_rule {
    const char *name;    // without the suffix of an overload
    bool cpu, gpu, fast; // fast: with math=fast only
    uint32_t sm;         // the least GPU
} lf_ir_rule;
bool lf_check_ir_rule(size_t i, lf_ir_rule *out_rule);
#endif
