// Want of memory wherever making a graph asks for some: each request fails in turn, for every program of the corpus and of the text tests.
#include "parse/parse.h"
#include "test/support/build.h"
#include "test/support/failing.h"
#include <check.h>
#include <dirent.h>
#include <string.h>

// A chain of callers that has failed OFTEN fails at every SELDOM-th request only, of texts that are not LARGE (requests).
enum { SELDOM = SLOW_BUILD ? 64 : 1 };
enum { MOST_TEXT = 1 << 16, MOST_FILES = 64, OFTEN = 4, LARGE = 4000 };
static char text[MOST_TEXT];
static long failures;

__attribute__((noinline)) static lf_code parse_once(failing *f, const lf_allocator *a) {
    f->outermost = __builtin_frame_address(0);
    lf_graph **graphs;
    size_t n;
    lf_status s = lf_parse(a, "in.lf", text, strlen(text), false, &graphs, &n);
    lf_code code = lf_status_code(s);
    lf_status_destroy(s);
    if (!code) lf_parse_release(a, graphs, n);
    return code;
}

static void fail_each(const char *file) {
    failing f = {.recording = true};
    const lf_allocator a = {&f, failing_alloc, failing_resize, failing_release, true};
    lf_code right = LF_OK;
    for (long k = 0, n = 0; k <= n; k++) { // 0: none fails
        if (k && sites[trace[k]].round++ >= OFTEN && (k % SELDOM || n > LARGE)) continue;
        f.fail_at = k;
        f.lasting = k & 1;
        f.calls = 0;
        lf_code code = parse_once(&f, &a);
        if (!k) n = f.calls, right = code;
        ck_assert_int_lt(n, MOST_CALLS);
        f.recording = false;
        ck_assert_msg(code == LF_OUT_OF_MEMORY || code == right, "%s, request %ld of %ld: %s", file, k, n,
                      lf_code_name(code));
        ck_assert_msg(f.live == 0, "%s, request %ld of %ld: %ld blocks are left", file, k, n, (long)f.live);
        failures += code == LF_OUT_OF_MEMORY;
    }
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void fail_in(const char *folder) {
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
        size_t bytes = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f) fclose(f);
        text[bytes] = 0;
        if (bytes && strlen(text) == bytes) fail_each(names[i]); // without NUL bytes
        free(names[i]);
    }
}

START_TEST(each_place_fails) {
    size_t seen, hit;
    fail_in("test/fuzz/corpus/parse");
    fail_in("test/text");
    count_sites(&seen, &hit);
    printf("%ld failures, %zu of %zu call chains hit\n", failures, hit, seen);
    print_sites_left();
    ck_assert_uint_eq(hit, seen);
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
