// Want of memory at every place where making a graph allocates. A graph's memory comes in blocks, so that few of its allocations reach
// the allocator and could fail; which ones depends on what came before. Here the name of the fusion is drawn longer and longer, which
// moves the end of a block through the whole program; each time each allocation fails, for every program of the corpus of texts.
#include "parse/parse.h"
#include "test/support/counted.h"
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 1 << 16, MOST_PAD = 8192, MOST_FILES = 64, BLOCK_ALIGN = 16 };
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { STEP = 41 };
#else
enum { STEP = 2 }; // in units of BLOCK_ALIGN
#endif
static char text[MOST_TEXT + MOST_PAD], original[MOST_TEXT];
static long failures, programs;

// The text with the first fusion's name drawn longer by `pad` letters. False: there is no fusion.
static bool pad_name(size_t pad) {
    const char *name = strstr(original, "fusion @");
    if (!name) return false;
    size_t before = (size_t)(name + strlen("fusion @") - original);
    memcpy(text, original, before);
    memset(text + before, 'n', pad);
    strcpy(text + before + pad, original + before);
    return true;
}

static lf_code parse_once(void) {
    lf_graph **graphs;
    size_t n;
    lf_status s = lf_parse(&counted, "in.lf", text, strlen(text), false, &graphs, &n);
    lf_code code = lf_status_code(s);
    lf_status_destroy(s);
    if (!code) lf_parse_release(&counted, graphs, n);
    return code;
}

static void fail_each(const char *file) {
    for (size_t pad = 0; pad < MOST_PAD && pad_name(pad); pad += (size_t)STEP * BLOCK_ALIGN) {
        fail_at = calls = 0;
        lf_code right = parse_once();
        programs++;
        long all = calls;
        for (long k = 1; k <= all; k++) {
            calls = 0;
            fail_at = k;
            lf_code code = parse_once();
            ck_assert_msg(code == LF_OUT_OF_MEMORY || code == right, "%s, name longer by %zu, allocation %ld of %ld: %s",
                          file, pad, k, all, lf_code_name(code));
            ck_assert_msg(live == 0, "%s, name longer by %zu, allocation %ld of %ld: %ld blocks are left", file, pad, k, all,
                          live);
            failures += code == LF_OUT_OF_MEMORY;
        }
    }
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

START_TEST(each_place_fails) {
    static const char folder[] = "test/fuzz/corpus/parse";
    char *names[MOST_FILES], path[512];
    int n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d)) && n < MOST_FILES;)
        if (e->d_name[0] != '.') names[n++] = strdup(e->d_name);
    closedir(d);
    qsort(names, (size_t)n, sizeof *names, compare_names);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *f = fopen(path, "rb");
        size_t bytes = fread(original, 1, sizeof original - 1, f);
        fclose(f);
        original[bytes] = 0;
        if (strlen(original) == bytes) fail_each(names[i]); // without NUL bytes
        free(names[i]);
    }
    printf("%ld programs, %ld failures\n", programs, failures);
    ck_assert_int_gt(failures, 1000);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("parse: want of memory");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, each_place_fails);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
