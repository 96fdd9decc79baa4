// See math_link.h. The bitcode is opened lazily: bodies that are not wanted are skipped, not read.
#include "codegen/llvm/math_link.h"
#include "codegen/llvm/llvm_status.h"
#include "math/bitcode.h"
#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <string.h>

static bool is_maths(LLVMValueRef v_function) {
    size_t length;
    const char *name = LLVMGetValueName2(v_function, &length);
    return length > 4 && memcmp(name, "lfm_", 4) == 0;
}

static LLVMValueRef first_missing(LLVMModuleRef module) {
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (LLVMIsDeclaration(f) && is_maths(f) && LLVMGetFirstUse(f)) return f;
    return NULL;
}

lf_status lf_math_link(lf_llvm *l) {
    LLVMModuleRef module = l->emit.module;
    // Host code calls the compiled functions of lib/native/imports.def: nothing is gained there by inlining, and code generation takes
    // longer than most host programs run.
    if (l->use == LF_LLVM_HOST_CODE || !first_missing(module)) return NULL;
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRange((const char *)lf_math_bitcode, lf_math_bitcode_size, "lf_math", 0);
    LLVMModuleRef maths = NULL;
    if (LLVMGetBitcodeModuleInContext2(l->emit.context, buffer, &maths)) {
        LLVMDisposeMemoryBuffer(buffer);
        LF_TRY(lf_llvm_take_status(l));
        return lf_error(l->allocator, LF_INTERNAL, "the maths bitcode cannot be read");
    }
    LLVMSetTarget(maths, LLVMGetTarget(module));
    LLVMSetModuleDataLayout(maths, l->layout);
    LLVMBool failed = LLVMLinkModules2(module, maths); // consumes maths
    LF_TRY(lf_llvm_take_status(l));
    if (failed) return lf_error(l->allocator, LF_INTERNAL, "the maths bitcode cannot be linked");
    LLVMValueRef missing = first_missing(module);
    if (missing) {
        size_t length;
        const char *name = LLVMGetValueName2(missing, &length);
        return lf_error(l->allocator, LF_INTERNAL, "lib/math has no function %.*s", (int)length, name);
    }
    // Private to the module: once inlined everywhere they vanish.
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (LLVMGetLinkage(f) == LLVMLinkOnceODRLinkage) LLVMSetLinkage(f, LLVMInternalLinkage);
    return NULL;
}
