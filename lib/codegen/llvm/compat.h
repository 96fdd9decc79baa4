// The only place that looks at LLVM's version.
#ifndef LF_CODEGEN_LLVM_COMPAT_H
#define LF_CODEGEN_LLVM_COMPAT_H
#include <llvm/Config/llvm-config.h>

// Older ones know no Blackwell and lack intrinsics that the emitters use (llvm.minimumnum); newer ones are not tried.
#if LLVM_VERSION_MAJOR != 22
#error "lfuser is written for LLVM 22"
#endif

#define LF_LLVM_VERSION LLVM_VERSION_STRING
#endif
