// Object code made runnable in this process, without LLVM: a relocatable x86-64 ELF object as the code generators emit it, which
// is code and read-only data, refers to itself within 2 GB or through a table of addresses, and calls nothing but the functions
// of imports.def. Memory is written first and executed afterwards, never both. Does not belong here: making the object.
#ifndef LF_NATIVE_NATIVE_H
#define LF_NATIVE_NATIVE_H
#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct lf_native lf_native; // loaded code; never changes

typedef struct lf_native_symbol {
    const char *name;
    void *address; // out; NULL when loading failed
} lf_native_symbol;

// The object is copied; nothing is kept of it. LF_INTERNAL, with what is wrong, for anything that is not such an object: any
// bytes may be given. Any thread.
lf_status lf_native_load(const lf_allocator *a, const void *object, size_t size, lf_native_symbol *symbols, size_t n_symbols,
                         lf_native **out_code) LF_MUST_USE;
// Nobody may be running it. NULL is fine.
void lf_native_unload(lf_native *code);

// Whether code may call this function outside itself.
bool lf_native_imports(const char *name, size_t length);

// What decides which code this processor runs, for cache keys: its model and the features that the system lets it use, as text.
void lf_native_processor(char *out_text, size_t size);
#endif
