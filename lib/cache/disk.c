// A folder of files, one an entry. All of a file's bytes are vouched for by hashes in its head; the name is the key.
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "cache/parts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_AGAIN = 64, MOST_BYTES = 1 << 30 };

typedef struct head {
    char magic[8];
    uint64_t maker; // hash of who wrote it
    uint64_t key[2];
    uint64_t size;      // of what follows, in bytes
    uint64_t hash;      // of what follows
    uint64_t head_hash; // of the six above
} head;
static const char magic[8] = {'l', 'f', 'c', 'a', 'c', 'h', 'e', '1'};

static uint64_t hash_of_head(const head *h) { return XXH3_64bits(h, offsetof(head, head_hash)); }

char *lf_cache_default_directory(const lf_allocator *a) {
    const char *own = getenv("LFUSER_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *base, *rest;
    if (own && *own) return strcmp(own, "off") ? lf_strndup(a, own, strlen(own)) : NULL;
    if (xdg && *xdg == '/')
        base = xdg, rest = "/lfuser";
    else if (home && *home == '/')
        base = home, rest = "/.cache/lfuser";
    else
        return NULL;
    size_t n = strlen(base), more = strlen(rest);
    char *path = lf_alloc(a, n + more + 1);
    if (!path) return NULL;
    memcpy(path, base, n);
    memcpy(path + n, rest, more + 1);
    return path;
}

lf_status lf_disk_init(lf_disk *d, const lf_allocator *a, const lf_log *log, const lf_cache_options *options,
                       lf_cache_stats *stats) {
    *d = (lf_disk){.allocator = a, .limit = options->disk_bytes, .stats = stats, .folder = -1};
    if (log) d->log = *log;
    d->maker = XXH3_64bits(options->maker, strlen(options->maker));
    if (options->directory && !(d->path = lf_strndup(a, options->directory, strlen(options->directory))))
        return lf_out_of_memory();
    pthread_mutex_init(&d->lock, NULL);
    return NULL;
}

void lf_disk_finish(lf_disk *d) {
    if (d->folder >= 0) close(d->folder);
    pthread_mutex_destroy(&d->lock);
    lf_free(d->allocator, d->path);
}

static void fault(lf_disk *d, const char *name, const char *what) {
    atomic_fetch_add_explicit(&d->stats->faults, 1, memory_order_relaxed);
    lf_log_write(&d->log, LF_LOG_WARNING, "cache: %s/%s: %s", d->path, name, what);
}

// ---- the folder ----------------------------------------------------------------------------------------------------------------

static void make_folders(const lf_disk *d) {
    char *path = lf_strndup(d->allocator, d->path, strlen(d->path));
    if (!path) return;
    for (char *at = path + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        mkdir(path, 0777);
        *at = '/';
    }
    mkdir(path, 0700);
    lf_free(d->allocator, path);
}

// Code is run from it: nobody else may be able to write there.
static const char *why_not(int folder) {
    struct stat st;
    if (fstat(folder, &st)) return strerror(errno);
    if (st.st_uid != geteuid()) return "the folder belongs to somebody else; it is not used";
    if (st.st_mode & (S_IWGRP | S_IWOTH)) return "others may write to the folder; it is not used";
    return NULL;
}

static int open_at(const char *path) {
    int folder;
    do folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (folder < 0 && errno == EINTR);
    return folder;
}

// Want of descriptors or memory passes; the next call may be luckier.
static bool passes(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

// -1: there is none. Lock held.
static int open_folder(lf_disk *d, bool make) {
    if (d->folder >= 0 || d->refused || !d->path) return d->folder;
    int folder = open_at(d->path);
    if (folder < 0 && make) {
        make_folders(d);
        folder = open_at(d->path);
    }
    if (folder < 0 && !make && errno == ENOENT) return -1;
    bool later = folder < 0 && passes(errno);
    const char *why = folder < 0 ? strerror(errno) : why_not(folder);
    if (!why) return d->folder = folder;
    if (folder >= 0) close(folder);
    d->refused = !later;
    fault(d, "", why);
    return -1;
}

static int folder_of(lf_disk *d, bool make) {
    if (!d->path) return -1;
    pthread_mutex_lock(&d->lock);
    int folder = open_folder(d, make);
    pthread_mutex_unlock(&d->lock);
    return folder;
}

static void put_name(char name[LF_DISK_NAME], lf_cache_key key) {
    snprintf(name, LF_DISK_NAME, "%016llx%016llx.lfc", (unsigned long long)key.words[1], (unsigned long long)key.words[0]);
}

// ---- reading -------------------------------------------------------------------------------------------------------------------

static bool read_all(int file, void *to, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(file, (char *)to + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

static const char *read_entry(const lf_disk *d, int file, lf_cache_key key, lf_blob **out_blob) {
    struct stat st;
    head h;
    if (fstat(file, &st)) return strerror(errno);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
        return "not a file of ours alone";
    if (st.st_size < (off_t)sizeof h || !read_all(file, &h, sizeof h)) return "cut short";
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.head_hash != hash_of_head(&h)) return "damaged (head)";
    if (h.maker != d->maker || h.key[0] != key.words[0] || h.key[1] != key.words[1]) return "written by another version";
    if (h.size > MOST_BYTES || (off_t)(h.size + sizeof h) != st.st_size) return "of the wrong length";
    lf_blob *blob = lf_blob_create(d->allocator, (size_t)h.size);
    if (!blob) return "out of memory";
    if (!read_all(file, blob->bytes, blob->size) || XXH3_64bits(blob->bytes, blob->size) != h.hash) {
        lf_blob_release(blob);
        return "damaged";
    }
    *out_blob = blob;
    return NULL;
}

lf_blob *lf_disk_find(lf_disk *d, lf_cache_key key) {
    char name[LF_DISK_NAME];
    int folder = folder_of(d, false);
    if (folder < 0) return NULL;
    put_name(name, key);
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) {
        if (errno != ENOENT) fault(d, name, strerror(errno));
        return NULL;
    }
    lf_blob *blob = NULL;
    const char *why = read_entry(d, file, key, &blob);
    if (why)
        fault(d, name, why);
    else
        (void)futimens(file, NULL); // used now; where that is not allowed, it merely goes earlier
    close(file);
    return blob;
}

bool lf_disk_has(lf_disk *d, lf_cache_key key) {
    char name[LF_DISK_NAME];
    int folder = folder_of(d, false);
    put_name(name, key);
    return folder >= 0 && faccessat(folder, name, R_OK, 0) == 0;
}

// ---- writing -------------------------------------------------------------------------------------------------------------------

static bool write_all(int file, const void *from, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(file, (const char *)from + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

static const char *write_entry(const lf_disk *d, int folder, const char *temporary, const char *name, lf_cache_key key,
                               const lf_blob *blob) {
    head h = {.maker = d->maker,
              .key = {key.words[0], key.words[1]},
              .size = blob->size,
              .hash = XXH3_64bits(blob->bytes, blob->size)};
    memcpy(h.magic, magic, sizeof magic);
    h.head_hash = hash_of_head(&h);
    int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return strerror(errno);
    bool written = write_all(file, &h, sizeof h) && write_all(file, blob->bytes, blob->size);
    int why = errno;
    written = close(file) == 0 && written;
    if (written && renameat(folder, temporary, folder, name) == 0) return NULL;
    if (written) why = errno;
    unlinkat(folder, temporary, 0);
    return strerror(why);
}

// Other processes write too, so what is known of the folder is only an estimate: looked at anew now and then.
static void make_room(lf_disk *d, int folder, uint64_t bytes) {
    pthread_mutex_lock(&d->lock);
    d->bytes += bytes;
    bool look = d->stores++ % LOOK_AGAIN == 0 || d->bytes > d->limit;
    pthread_mutex_unlock(&d->lock);
    if (!look) return;
    uint64_t entries, removed, left = lf_disk_trim(d->allocator, folder, d->limit, &entries, &removed);
    atomic_fetch_add_explicit(&d->stats->evictions, removed, memory_order_relaxed);
    pthread_mutex_lock(&d->lock);
    d->bytes = left;
    pthread_mutex_unlock(&d->lock);
}

void lf_disk_store(lf_disk *d, lf_cache_key key, const lf_blob *blob) {
    char name[LF_DISK_NAME], temporary[96];
    if (blob->size > MOST_BYTES || blob->size + sizeof(head) > d->limit) return;
    int folder = folder_of(d, true);
    if (folder < 0) return;
    put_name(name, key);
    uint32_t n = atomic_fetch_add_explicit(&d->n_temporary, 1, memory_order_relaxed);
    snprintf(temporary, sizeof temporary, "%.32s.%ld.%u.%p.tmp", name, (long)getpid(), n, (void *)d);
    const char *why = write_entry(d, folder, temporary, name, key, blob);
    if (why)
        fault(d, name, why);
    else
        make_room(d, folder, blob->size + sizeof(head));
}

void lf_disk_drop(lf_disk *d, lf_cache_key key) {
    char name[LF_DISK_NAME];
    int folder = folder_of(d, false);
    put_name(name, key);
    if (folder >= 0) (void)unlinkat(folder, name, 0);
}

void lf_disk_measure(lf_disk *d, uint64_t *out_entries, uint64_t *out_bytes) {
    int folder = folder_of(d, false);
    uint64_t removed;
    *out_entries = 0;
    *out_bytes = folder < 0 ? 0 : lf_disk_trim(d->allocator, folder, UINT64_MAX, out_entries, &removed);
}

void lf_disk_clear(lf_disk *d) {
    uint64_t entries, removed;
    int folder = folder_of(d, false);
    if (folder >= 0) (void)lf_disk_trim(d->allocator, folder, 0, &entries, &removed);
}
