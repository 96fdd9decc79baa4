// Object code made runnable in this process, by LLVM's ORC. Each object lies in a room of its own (a JITDylib), sees
// no symbol of the process but those of a closed list, and leaves nothing behind when it is unloaded. Does not belong
// here: making the object (target.h).
#ifndef LF_CODEGEN_LLVM_JIT_H
#define LF_CODEGEN_LLVM_JIT_H
#include "base/log.h"
#include "base/status.h"
#include <stdbool.h>

typedef struct lf_jit lf_jit;           // thread-safe
typedef struct lf_jit_code lf_jit_code; // a loaded object

typedef struct lf_jit_symbol {
    const char *name;
    void *address; // out
} lf_jit_symbol;

lf_status lf_jit_create(const lf_allocator *a, const lf_log *log, lf_jit **out_jit) LF_MUST_USE;
void lf_jit_destroy(lf_jit *jit); // what is still loaded goes with it

// Links a relocatable x86-64 ELF object, copied, and finds its entries. LF_INTERNAL names a symbol that is not there.
lf_status lf_jit_load(lf_jit *jit, const void *object, size_t size, lf_jit_symbol *symbols, size_t n_symbols,
                      lf_jit_code **out_code) LF_MUST_USE;
void lf_jit_unload(lf_jit *jit, lf_jit_code *code); // nobody may be running it; NULL is fine

// Whether code may call this function outside itself.
bool lf_jit_imports(const char *name, size_t length);
#endif
