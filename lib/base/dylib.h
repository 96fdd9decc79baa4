// Shared objects opened at run time: the CUDA driver, the code generator module.
#ifndef LF_BASE_DYLIB_H
#define LF_BASE_DYLIB_H
#include "base/status.h"

typedef struct lf_dylib lf_dylib;
// RTLD_NOW | RTLD_LOCAL. LF_UNAVAILABLE with the loader's own words when it cannot be opened.
lf_status lf_dylib_open(const lf_allocator *a, const char *path, lf_dylib **out_lib) LF_MUST_USE;
// NULL when there is no such symbol.
void *lf_dylib_symbol(lf_dylib *lib, const char *name);
// Path of the shared object (or program) that holds `address`; LF_INTERNAL when unknown. Caller frees with lf_free.
lf_status lf_dylib_path_of(const lf_allocator *a, const void *address, char **out_path) LF_MUST_USE;
// Frees the handle; `unload` false leaves the object mapped (its code may still be referenced).
void lf_dylib_close(lf_dylib *lib, int unload);
#endif
