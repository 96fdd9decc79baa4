// dlopen and friends, behind statuses.
#include "base/dylib.h"
#include <dlfcn.h>
#include <string.h>

struct lf_dylib {
    const lf_allocator *allocator;
    void *handle;
};

lf_status lf_dylib_open(const lf_allocator *a, const char *path, lf_dylib **out_lib) {
    *out_lib = NULL;
    lf_dylib *lib = lf_alloc(a, sizeof *lib);
    if (!lib) return lf_out_of_memory();
    *lib = (lf_dylib){a, dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!lib->handle) {
        const char *why = dlerror();
        lf_free(a, lib);
        return lf_error(a, LF_UNAVAILABLE, "cannot open %s: %s", path, why ? why : "no reason given");
    }
    *out_lib = lib;
    return NULL;
}

void *lf_dylib_symbol(lf_dylib *lib, const char *name) { return dlsym(lib->handle, name); }

lf_status lf_dylib_path_of(const lf_allocator *a, const void *address, char **out_path) {
    *out_path = NULL;
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return lf_error(a, LF_INTERNAL, "the loader does not know which file holds address %p", address);
    *out_path = lf_strndup(a, info.dli_fname, strlen(info.dli_fname));
    return *out_path ? NULL : lf_out_of_memory();
}

void lf_dylib_close(lf_dylib *lib, int unload) {
    if (!lib) return;
    if (unload) dlclose(lib->handle);
    lf_free(lib->allocator, lib);
}
