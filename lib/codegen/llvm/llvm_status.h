// LLVM's ways of reporting a failure, turned into the library's one.
#ifndef LF_CODEGEN_LLVM_LLVM_STATUS_H
#define LF_CODEGEN_LLVM_LLVM_STATUS_H
#include "base/status.h"
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>

// Both consume what LLVM handed out. The message is "<what>: <LLVM's words>".
// NULL for LLVMErrorSuccess.
lf_status lf_llvm_error(const lf_allocator *a, lf_code code, const char *what, LLVMErrorRef error) LF_MUST_USE;
// `message` may be NULL; the result never is.
lf_status lf_llvm_message(const lf_allocator *a, lf_code code, const char *what, char *message) LF_MUST_USE;

// Makes the context record its first error in *status_slot, and print nothing. Warnings and remarks are dropped.
typedef struct lf_llvm_diagnostics {
    const lf_allocator *allocator;
    lf_status *status_slot;
} lf_llvm_diagnostics;
void lf_llvm_collect_diagnostics(LLVMContextRef context, lf_llvm_diagnostics *diagnostics);
#endif
