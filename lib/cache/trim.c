// All files of the folder: measuring, and removing those used longest ago. Several processes may do it at once.
#include "cache/parts.h"
#include "base/vec.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ABANDONED_S = 600 }; // a writer needs milliseconds

struct lf_disk_file {
    char name[LF_DISK_NAME];
    uint64_t bytes;
    struct timespec used;
};
typedef LF_VEC(lf_disk_file) files;

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

static int by_use(const void *pa, const void *pb) {
    const lf_disk_file *a = pa, *b = pb;
    if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec) return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

// Entries into `out`; what does not fit memory is left for another time.
static uint64_t list(int folder, DIR *dir, files *out) {
    uint64_t bytes = 0;
    time_t now = time(NULL);
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        bool temporary = ends_with(e->d_name, ".tmp");
        if (!temporary && (!ends_with(e->d_name, ".lfc") || strlen(e->d_name) >= LF_DISK_NAME)) continue;
        if (fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || S_ISDIR(st.st_mode)) continue;
        if (temporary) {
            if (now - st.st_mtim.tv_sec > ABANDONED_S) unlinkat(folder, e->d_name, 0);
            continue;
        }
        lf_disk_file f = {.bytes = (uint64_t)st.st_size, .used = st.st_mtim};
        strcpy(f.name, e->d_name);
        bytes += f.bytes;
        (void)!lf_vec_push(out, f);
    }
    return bytes;
}

uint64_t lf_disk_trim(const lf_allocator *a, int folder, uint64_t keep, uint64_t *out_entries, uint64_t *out_removed) {
    *out_entries = *out_removed = 0;
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); // closed by closedir
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    if (!dir) {
        if (again >= 0) close(again);
        return 0;
    }
    files all;
    lf_vec_init(&all, a);
    uint64_t bytes = list(folder, dir, &all);
    closedir(dir);
    *out_entries = all.count;
    if (bytes > keep) {
        qsort(all.data, all.count, sizeof *all.data, by_use);
        uint64_t goal = keep - keep / 8; // some room, so that not every store has to look again
        for (size_t i = 0; i < all.count && bytes > goal; i++) {
            if (unlinkat(folder, all.data[i].name, 0) == 0) *out_removed += 1;
            bytes -= all.data[i].bytes;
        }
    }
    lf_vec_finish(&all);
    return bytes;
}
