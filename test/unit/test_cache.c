// The cache of compiled code by itself: what is stored is found, in this process and the next; whatever a file may hold is a miss
// and no fault; files stay within their limit, the most recently used ones; many processes at once, and those that are killed.
#include "cache/cache.h"
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const lf_allocator *const heap = &lf_system_allocator;
static char folder[64], inner[96], last_log[512];

static void keep_log(void *self, lf_log_level level, const char *message) {
    (void)self, (void)level;
    snprintf(last_log, sizeof last_log, "%s", message);
}
static const lf_log log_here = {.write = keep_log};

static void setup(void) {
    strcpy(folder, "/tmp/lf_test_cache_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/not/yet/there", folder);
    last_log[0] = 0;
}

static void teardown(void) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static lf_cache *open_cache(const char *directory, uint64_t disk, uint64_t memory, const char *maker) {
    lf_cache *c;
    lf_cache_options o = {.directory = directory, .disk_bytes = disk, .memory_bytes = memory, .maker = maker};
    lf_status s = lf_cache_create(heap, &log_here, &o, &c);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    return c;
}

static lf_cache_key key_of(int n) { return lf_cache_key_of(&n, sizeof n); }

// Bytes that say which key they belong to.
static void store(lf_cache *c, int n, size_t size) {
    lf_blob *b = lf_blob_create(heap, size);
    for (size_t i = 0; i < size; i++) b->bytes[i] = (uint8_t)((unsigned)n * 31 + i);
    lf_cache_store(c, key_of(n), b);
    lf_blob_release(b);
}

typedef enum { MISS, HIT, WRONG } found;
// Without assertions: those write to the test runner, which forked processes and threads must not.
static found look(lf_cache *c, int n, size_t size) {
    lf_blob *b = lf_cache_find(c, key_of(n));
    if (!b) return MISS;
    bool right = b->size == size;
    for (size_t i = 0; right && i < size; i++) right = b->bytes[i] == (uint8_t)((unsigned)n * 31 + i);
    lf_blob_release(b);
    return right ? HIT : WRONG;
}

static bool find(lf_cache *c, int n, size_t size) {
    found f = look(c, n, size);
    ck_assert_int_ne(f, WRONG);
    return f == HIT;
}

static uint64_t faults(lf_cache *c) { return lf_cache_statistics(c)->faults; }

START_TEST(stored_is_found) {
    lf_cache *c = open_cache(inner, 1 << 20, 1 << 20, "me");
    ck_assert(!find(c, 1, 100));
    ck_assert_int_ne(access(inner, F_OK), 0); // asking makes no folder
    store(c, 1, 100);
    ck_assert(find(c, 1, 100) && lf_cache_has(c, key_of(1)) && !lf_cache_has(c, key_of(2)));
    ck_assert_uint_eq(lf_cache_statistics(c)->memory_hits, 1);
    struct stat st;
    ck_assert_int_eq(stat(inner, &st), 0);
    ck_assert_uint_eq(st.st_mode & 077, 0); // for its owner alone
    lf_cache_destroy(c);
    c = open_cache(inner, 1 << 20, 1 << 20, "me");
    ck_assert(find(c, 1, 100));
    ck_assert(find(c, 1, 100));
    ck_assert_uint_eq(lf_cache_statistics(c)->disk_hits, 1); // then from memory
    ck_assert_uint_eq(lf_cache_statistics(c)->memory_hits, 1);
    uint64_t entries, bytes;
    lf_cache_measure(c, &entries, &bytes);
    ck_assert_uint_eq(entries, 1);
    ck_assert(bytes > 100 && bytes < 300);
    lf_cache_clear(c);
    ck_assert(!find(c, 1, 100));
    lf_cache_measure(c, &entries, &bytes);
    ck_assert_uint_eq(entries, 0);
    ck_assert_uint_eq(faults(c), 0);
    lf_cache_destroy(c);
    lf_cache_destroy(NULL);
}
END_TEST

START_TEST(memory_alone_and_its_limit) {
    lf_cache *c = open_cache(NULL, 0, 1000, "me");
    ck_assert_ptr_null(lf_cache_directory(c));
    for (int i = 0; i < 10; i++) store(c, i, 300);
    ck_assert(find(c, 7, 300) && find(c, 8, 300) && find(c, 9, 300) && !find(c, 6, 300));
    ck_assert(find(c, 7, 300)); // used: goes last
    store(c, 10, 300);
    ck_assert(find(c, 7, 300) && !find(c, 8, 300));
    store(c, 11, 5000); // larger than all of it
    ck_assert(!find(c, 11, 5000) && find(c, 7, 300));
    lf_blob *held = lf_cache_find(c, key_of(7));
    lf_cache_destroy(c);
    ck_assert_uint_eq(held->bytes[1], 7 * 31 + 1); // outlives it
    lf_blob_release(held);
}
END_TEST

static char *path_of_only(void) {
    static char path[512];
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') n++, snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    closedir(d);
    ck_assert_int_eq(n, 1);
    return path;
}

static size_t read_file(const char *path, uint8_t *to, size_t room) {
    FILE *f = fopen(path, "rb");
    size_t n = fread(to, 1, room, f);
    fclose(f);
    return n;
}

static void write_file(const char *path, const uint8_t *from, size_t n) {
    FILE *f = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(from, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

// Every length a file can be torn at, and every byte that can be wrong.
START_TEST(torn_and_damaged_files_are_misses) {
    lf_cache *c = open_cache(folder, 1 << 20, 0, "me");
    store(c, 5, 200);
    char *path = path_of_only();
    uint8_t good[1024], bad[1024];
    size_t n = read_file(path, good, sizeof good);
    ck_assert(find(c, 5, 200));
    for (size_t length = 0; length < n; length++) {
        write_file(path, good, length);
        uint64_t before = faults(c);
        ck_assert_msg(!find(c, 5, 200), "cut at %zu of %zu and believed", length, n);
        ck_assert_uint_eq(faults(c), before + 1);
    }
    ck_assert_ptr_nonnull(strstr(last_log, ".lfc: of the wrong length"));
    for (size_t i = 0; i < n; i++) {
        memcpy(bad, good, n);
        bad[i] ^= 1u << i % 8;
        write_file(path, bad, n);
        ck_assert_msg(!find(c, 5, 200), "byte %zu of %zu wrong and believed", i, n);
    }
    memcpy(bad, good, n);
    memset(bad + n, 0, 10);
    write_file(path, bad, n + 10); // too long
    ck_assert(!find(c, 5, 200));
    store(c, 5, 200); // mends it
    ck_assert(find(c, 5, 200));
    lf_cache_destroy(c);
}
END_TEST

START_TEST(foreign_files_are_misses) {
    lf_cache *c = open_cache(folder, 1 << 20, 0, "version 1");
    store(c, 5, 200);
    char *path = path_of_only(), other[600];
    lf_cache *later = open_cache(folder, 1 << 20, 0, "version 2");
    ck_assert(!find(later, 5, 200));
    ck_assert_ptr_nonnull(strstr(last_log, "written by another version"));
    ck_assert_uint_eq(faults(later), 1);
    lf_cache_destroy(later);
    // The file of another key under this key's name.
    uint8_t bytes[1024];
    size_t n = read_file(path, bytes, sizeof bytes);
    store(c, 6, 200);
    lf_cache_drop(c, key_of(5));
    char *six = path_of_only();
    write_file(six, bytes, n);
    ck_assert(!find(c, 6, 200));
    // A folder, a link, a fifo that nobody writes, and a file that others may write, where an entry should be.
    ck_assert_int_eq(unlink(six), 0);
    ck_assert_int_eq(mkdir(six, 0700), 0);
    ck_assert(!find(c, 6, 200));
    store(c, 6, 200);
    ck_assert(!find(c, 6, 200));
    ck_assert_int_eq(rmdir(six), 0);
    store(c, 6, 200);
    ck_assert(find(c, 6, 200));
    ck_assert_int_eq(chmod(six, 0666), 0);
    ck_assert(!find(c, 6, 200));
    ck_assert_int_eq(chmod(six, 0600), 0);
    snprintf(other, sizeof other, "%s/elsewhere", folder);
    ck_assert_int_eq(rename(six, other), 0);
    ck_assert_int_eq(symlink(other, six), 0);
    ck_assert(!find(c, 6, 200));
    ck_assert_int_eq(unlink(six), 0);
    ck_assert_int_eq(mkfifo(six, 0600), 0);
    ck_assert(!find(c, 6, 200));
    lf_cache_destroy(c);
}
END_TEST

START_TEST(folders_that_cannot_be_used) {
    ck_assert_int_eq(chmod(folder, 0777), 0); // others could put code there
    lf_cache *c = open_cache(folder, 1 << 20, 1 << 20, "me");
    store(c, 1, 50);
    store(c, 2, 50);
    ck_assert(find(c, 1, 50));       // memory works
    ck_assert_uint_eq(faults(c), 1); // said once
    ck_assert_ptr_nonnull(strstr(last_log, "others may write"));
    lf_cache_destroy(c);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    snprintf(inner, sizeof inner, "%s/file", folder);
    write_file(inner, (const uint8_t *)"x", 1);
    c = open_cache(inner, 1 << 20, 0, "me");
    store(c, 1, 50);
    ck_assert(!find(c, 1, 50));
    ck_assert_uint_eq(faults(c), 1);
    lf_cache_destroy(c);
}
END_TEST

START_TEST(the_least_recently_used_go_first) {
    lf_cache *c = open_cache(folder, 64 << 10, 0, "me");
    for (int i = 0; i < 200; i++) {
        store(c, i, 1000);
        ck_assert(find(c, 0, 1000)); // in use all the time
    }
    uint64_t entries, bytes;
    lf_cache_measure(c, &entries, &bytes);
    ck_assert_msg(bytes <= 64 << 10, "%llu bytes", (unsigned long long)bytes);
    ck_assert(entries > 40);
    ck_assert(find(c, 199, 1000) && find(c, 0, 1000) && !find(c, 1, 1000) && !find(c, 100, 1000));
    ck_assert_uint_eq(lf_cache_statistics(c)->evictions, 200 - entries);
    store(c, 1000, 100 << 10); // larger than all of it
    ck_assert(!find(c, 1000, 100 << 10));
    lf_cache_destroy(c);
}
END_TEST

START_TEST(what_dead_writers_left_goes) {
    lf_cache *c = open_cache(folder, 1 << 20, 0, "me");
    char path[128];
    snprintf(path, sizeof path, "%s/old.tmp", folder);
    write_file(path, (const uint8_t *)"half", 4);
    struct timespec long_ago[2] = {{1000000, 0}, {1000000, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    store(c, 1, 10);
    ck_assert_int_ne(access(path, F_OK), 0);
    lf_cache_destroy(c);
}
END_TEST

// ---- processes -----------------------------------------------------------------------------------------------------------------

enum { KEYS = 60 };
static size_t size_of(int n) { return 500 + (size_t)n * 37; }

// Whether all that was found was right.
static bool use_at_random(lf_cache *c, unsigned seed, int rounds) {
    for (int i = 0; i < rounds; i++) {
        int n = (int)((unsigned)rand_r(&seed) % KEYS);
        found f = look(c, n, size_of(n));
        if (f == WRONG) return false;
        if (f == MISS) store(c, n, size_of(n));
    }
    return faults(c) == 0;
}

// In a forked process.
static void be_a_process(unsigned seed, int rounds) {
    lf_cache *c;
    lf_cache_options o = {.directory = folder, .disk_bytes = 60 << 10, .memory_bytes = 4000, .maker = "me"};
    if (lf_cache_create(heap, NULL, &o, &c)) _exit(1);
    bool right = use_at_random(c, seed, rounds);
    lf_cache_destroy(c);
    _exit(right ? 0 : 2);
}

START_TEST(eight_processes) {
    pid_t pids[8];
    for (unsigned i = 0; i < 8; i++) {
        pids[i] = fork();
        if (pids[i]) continue;
        be_a_process(i, 1000);
    }
    for (unsigned i = 0; i < 8; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    lf_cache *c = open_cache(folder, 60 << 10, 0, "me");
    int hits = 0;
    for (int n = 0; n < KEYS; n++) hits += find(c, n, size_of(n));
    ck_assert_int_gt(hits, 10);
    ck_assert_uint_eq(faults(c), 0);
    lf_cache_destroy(c);
}
END_TEST

// Killed wherever they happen to be: nobody else may ever see half an entry.
START_TEST(killed_writers) {
    unsigned seed = 1;
    for (int round = 0; round < 40; round++) {
        pid_t pid = fork();
        if (!pid) be_a_process((unsigned)round, 1 << 30);
        usleep(1000 + (unsigned)rand_r(&seed) % 8000);
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        lf_cache *c = open_cache(folder, 60 << 10, 0, "me");
        for (int n = 0; n < KEYS; n++) find(c, n, size_of(n));
        ck_assert_msg(faults(c) == 0, "%s", last_log);
        lf_cache_destroy(c);
    }
}
END_TEST

static lf_cache *shared;
static void *use_shared(void *arg) {
    unsigned seed = (unsigned)(uintptr_t)arg;
    bool right = true;
    for (int i = 0; i < 20; i++) {
        right &= use_at_random(shared, seed + 100u * (unsigned)i, 30);
        lf_cache_drop(shared, key_of(i));
        if (i % 7 == 0) lf_cache_clear(shared);
    }
    return right ? NULL : arg;
}

START_TEST(threads) {
    shared = open_cache(folder, 60 << 10, 20000, "me");
    pthread_t t[8];
    for (uintptr_t i = 0; i < 8; i++) ck_assert(!pthread_create(&t[i], NULL, use_shared, (void *)(i + 1)));
    for (int i = 0; i < 8; i++) {
        void *wrong;
        pthread_join(t[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    ck_assert_uint_eq(faults(shared), 0);
    lf_cache_destroy(shared);
}
END_TEST

START_TEST(where_files_go) {
    unsetenv("LFUSER_CACHE");
    setenv("XDG_CACHE_HOME", "/x", 1);
    setenv("HOME", "/h", 1);
    char *path = lf_cache_default_directory(heap);
    ck_assert_str_eq(path, "/x/lfuser");
    free(path);
    unsetenv("XDG_CACHE_HOME");
    path = lf_cache_default_directory(heap);
    ck_assert_str_eq(path, "/h/.cache/lfuser");
    free(path);
    setenv("LFUSER_CACHE", "/own", 1);
    path = lf_cache_default_directory(heap);
    ck_assert_str_eq(path, "/own");
    free(path);
    setenv("LFUSER_CACHE", "off", 1);
    ck_assert_ptr_null(lf_cache_default_directory(heap));
    unsetenv("LFUSER_CACHE");
    unsetenv("HOME");
    ck_assert_ptr_null(lf_cache_default_directory(heap));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cache");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, stored_is_found);
    tcase_add_test(tc, memory_alone_and_its_limit);
    tcase_add_test(tc, torn_and_damaged_files_are_misses);
    tcase_add_test(tc, foreign_files_are_misses);
    tcase_add_test(tc, folders_that_cannot_be_used);
    tcase_add_test(tc, the_least_recently_used_go_first);
    tcase_add_test(tc, what_dead_writers_left_goes);
    tcase_add_test(tc, eight_processes);
    tcase_add_test(tc, killed_writers);
    tcase_add_test(tc, threads);
    tcase_add_test(tc, where_files_go);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
