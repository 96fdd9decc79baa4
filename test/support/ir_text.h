// LLVM IR as text, into a module that is being made. Needs the internals of lib/codegen/llvm and Check.
#ifndef LF_TEST_IR_TEXT_H
#define LF_TEST_IR_TEXT_H
#include "codegen/llvm/target.h"
#include <check.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <string.h>

static inline void ir_from_text(lf_llvm *l, const char *text) {
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "text");
    LLVMModuleRef module = NULL;
    char *message = NULL;
    if (LLVMParseIRInContext(l->emit.context, buffer, &module, &message)) ck_abort_msg("%s in:\n%s", message, text);
    LLVMSetTarget(module, LLVMGetTarget(l->emit.module));
    LLVMSetModuleDataLayout(module, l->layout);
    ck_assert(!LLVMLinkModules2(l->emit.module, module));
}
#endif
