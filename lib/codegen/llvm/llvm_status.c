// See llvm_status.h: copy LLVM's words, dispose of its object.
#include "codegen/llvm/llvm_status.h"

lf_status lf_llvm_error(const lf_allocator *a, lf_code code, const char *what, LLVMErrorRef error) {
    if (!error) return NULL;
    char *message = LLVMGetErrorMessage(error); // consumes the error
    lf_status s = lf_error(a, code, "%s: %s", what, message);
    LLVMDisposeErrorMessage(message);
    return s;
}

lf_status lf_llvm_message(const lf_allocator *a, lf_code code, const char *what, char *message) {
    lf_status s = lf_error(a, code, "%s: %s", what, message && *message ? message : "LLVM gives no reason");
    if (message) LLVMDisposeMessage(message);
    return s;
}

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *self) {
    lf_llvm_diagnostics *d = self;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || *d->status_slot) return;
    *d->status_slot = lf_llvm_message(d->allocator, LF_INTERNAL, "LLVM", LLVMGetDiagInfoDescription(info));
}

void lf_llvm_collect_diagnostics(LLVMContextRef context, lf_llvm_diagnostics *diagnostics) {
    LLVMContextSetDiagnosticHandler(context, on_diagnostic, diagnostics);
}
