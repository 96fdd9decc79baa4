// Compiled code that is kept, as a user of the library meets it: a warm start needs no code generator, equal programs share code,
// one of many callers compiles, and files in any state cost a compilation at most.
#include "test/support/api/device_test.h"
#include <dirent.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 5, COLUMNS = 40, ELEMENTS = ROWS * COLUMNS };

static const char text[] = "fusion @norm(%x: f32[?, ?], %k: f32) {\n"
                           "  %d = size %x, 1\n"
                           "  %h = exp %k\n"
                           "  %m = max %x, axes=[1], keepdim=true\n"
                           "  %e = sub %x, %m\n"
                           "  %y = mul %e, %h\n"
                           "  return %y, %h, %d\n"
                           "}\n";

static char folder[64];
static char logged[512];

static void keep_log(void *self, lfuser_log_level level, const char *message) {
    (void)self, (void)level;
    snprintf(logged, sizeof logged, "%s", message);
}

static void setup(void) {
    strcpy(folder, "/tmp/lf_test_api_cache_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void open_with(const char *codegen_path, const char *directory) {
    env_open(&(lfuser_context_options){.size = sizeof(lfuser_context_options),
                                       .log = keep_log,
                                       .log_least = LFUSER_LOG_WARNING,
                                       .codegen_path = codegen_path,
                                       .cache_directory = directory});
}

static lfuser_cache_stats cache_stats(void) {
    lfuser_cache_stats s = {.size = sizeof s};
    ok(lfuser_context_cache_stats(env.context, &s));
    return s;
}

// NULL, or what is wrong: used from threads and forked processes too.
static const char *run_norm(lfuser_executable *e, lfuser_stream *stream, int64_t rows, int64_t columns) {
    float host[ELEMENTS];
    void *memory = NULL, *result = NULL;
    size_t n = (size_t)(rows * columns), bytes = n * sizeof(float);
    for (size_t i = 0; i < n; i++) host[i] = (float)(i * 7 % 11);
    int64_t shape[2] = {rows, columns};
    lfuser_tensor x = {.device = env.place, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape}, y = x;
    lfuser_status s = lfuser_memory_alloc(stream, bytes, &memory);
    if (!s) s = lfuser_memory_alloc(stream, bytes, &result);
    if (!s) s = lfuser_memory_upload(stream, memory, host, bytes);
    x.data = memory;
    y.data = result;
    lfuser_argument arguments[2] = {tensor_argument(&x), f32_argument(0)};
    lfuser_output outputs[3] = {{.tensor = &y}};
    if (!s) s = lfuser_run(e, stream, arguments, 2, outputs, 3, NULL);
    if (!s) s = lfuser_memory_download(stream, host, result, bytes);
    if (!s) s = lfuser_stream_synchronize(stream);
    lfuser_memory_free(stream, memory);
    lfuser_memory_free(stream, result);
    if (s) {
        fprintf(stderr, "%s\n", lfuser_status_message(s));
        lfuser_status_destroy(s);
        return "a call failed";
    }
    if (outputs[1].value.f32 != 1 || outputs[2].value.i64 != columns) return "a host scalar is wrong";
    for (int64_t r = 0; r < rows; r++) {
        float most = 0;
        for (int64_t k = 0; k < columns; k++)
            most = (float)((r * columns + k) * 7 % 11) > most ? (float)((r * columns + k) * 7 % 11) : most;
        for (int64_t k = 0; k < columns; k++)
            if (host[r * columns + k] != (float)((r * columns + k) * 7 % 11) - most) return "an element is wrong";
    }
    return NULL;
}

static void compile_and_run(void) {
    lfuser_executable *e = compile(text);
    const char *wrong = run_norm(e, env.stream, ROWS, COLUMNS);
    ck_assert_msg(!wrong, "%s", wrong);
    lfuser_executable_destroy(e);
}

static bool maps_has(const char *name) {
    char line[1024];
    bool has = false;
    FILE *f = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, f)) has |= strstr(line, name) != NULL;
    fclose(f);
    return has;
}

// The first start in a process of its own, so that this one has never seen LLVM.
static void fill_the_cache(void) {
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        open_with(NULL, folder);
        lfuser_fusion *f;
        lfuser_executable *e;
        lfuser_status s = lfuser_fusion_parse(env.context, "t.lf", text, strlen(text), NULL, &f);
        if (!s) s = lfuser_fusion_compile(f, env.device, NULL, &e);
        const char *wrong = s ? lfuser_status_message(s) : run_norm(e, env.stream, ROWS, COLUMNS);
        if (wrong) fprintf(stderr, "%s\n", wrong);
        if (!wrong) {
            lfuser_executable_destroy(e);
            lfuser_fusion_destroy(f);
            env_teardown();
        }
        _exit(wrong ? 1 : 0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

START_TEST(a_warm_start_needs_no_code_generator) {
    fill_the_cache();
    open_with("/nowhere/liblfuser-codegen.so", folder);
    compile_and_run();
    ck_assert(!maps_has("libLLVM") && !maps_has("liblfuser-codegen"));
    lfuser_cache_stats s = cache_stats();
    ck_assert_uint_eq(s.compiles, 0);
    ck_assert_uint_eq(stats().compiles, 0);
    ck_assert_uint_eq(s.disk_hits, 2); // host code, kernel
    ck_assert_uint_eq(s.faults, 0);
    ck_assert_str_eq(s.directory, folder);
    ck_assert_uint_ge(s.entries, 2);
    // Names do not matter, what is computed does.
    lfuser_executable *e =
        compile("fusion @other(%a: f32[?, ?], %b: f32) {\n  %n = size %a, 1\n  %q = exp %b\n"
                "  %r = max %a, axes=[1], keepdim=true\n  %s = sub %a, %r\n  %t = mul %s, %q\n  return %t, %q, %n\n}\n");
    ck_assert_ptr_null(run_norm(e, env.stream, ROWS, COLUMNS));
    lfuser_executable_destroy(e);
    lfuser_fusion *f = parse("fusion @f(%a: f32[?, ?]) { %b = add %a, %a return %b }");
    lfuser_status status = lfuser_fusion_compile(f, env.device, NULL, &e);
    ck_assert_int_eq(lfuser_status_code(status), LFUSER_UNAVAILABLE);
    lfuser_status_destroy(status);
    lfuser_fusion_destroy(f);
    env_teardown();
}
END_TEST

START_TEST(what_the_host_finishes_is_kept_too) {
    static const float data = 2;
    for (int warm = 0; warm < 2; warm++) {
        open_with(warm ? "/nowhere/liblfuser-codegen.so" : NULL, folder);
        lfuser_executable *e = compile("fusion @f(%x: f32[], %k: f32) { %p = item %x %q = mul %p, %k %r = sub %q, %p "
                                       "return %q, %r }");
        void *memory;
        ok(lfuser_memory_alloc(env.stream, sizeof data, &memory));
        ok(lfuser_memory_upload(env.stream, memory, &data, sizeof data));
        lfuser_tensor x = {.device = env.place, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .data = memory};
        lfuser_argument arguments[2] = {tensor_argument(&x), f32_argument(5)};
        lfuser_output outputs[2] = {{0}};
        lfuser_scalar q, r;
        ok(lfuser_run(e, env.stream, arguments, 2, outputs, 2, NULL));
        ok(lfuser_pending_get(outputs[0].pending, UINT64_MAX, &q));
        ok(lfuser_pending_get(outputs[1].pending, UINT64_MAX, &r));
        ck_assert(q.f32 == 10 && r.f32 == 8);
        lfuser_pending_release(outputs[0].pending);
        lfuser_pending_release(outputs[1].pending);
        ck_assert_uint_eq(cache_stats().compiles, warm ? 0 : 2);
        ck_assert_uint_eq(cache_stats().faults, 0);
        lfuser_memory_free(env.stream, memory);
        lfuser_executable_destroy(e);
        env_teardown();
    }
}
END_TEST

// Whatever happens to the files in between: the program runs, and the files are right again afterwards.
static void damage(const char *path, int how) {
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    FILE *f = fopen(path, "r+b");
    if (how == 0) ck_assert_int_eq(truncate(path, st.st_size / 2), 0);
    if (how == 1) ck_assert_int_eq(truncate(path, 0), 0);
    if (how == 2) ck_assert(fseek(f, st.st_size - 5, SEEK_SET) == 0 && fputc(0x5a, f) != EOF && fputc(0xa5, f) != EOF);
    if (how == 3) ck_assert_uint_eq(fwrite("another program's file, not ours", 1, 32, f), 32);
    ck_assert_int_eq(fclose(f), 0);
    if (how == 4) ck_assert(unlink(path) == 0 && mkdir(path, 0700) == 0);
    if (how == 5) ck_assert_int_eq(unlink(path), 0);
}

START_TEST(files_in_any_state) {
    fill_the_cache();
    DIR *d = opendir(folder);
    char path[400];
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        damage(path, _i);
    }
    closedir(d);
    open_with(NULL, folder);
    compile_and_run();
    lfuser_cache_stats s = cache_stats();
    ck_assert_uint_eq(s.compiles, 2);
    if (_i < 5)
        ck_assert(s.faults >= 2 && logged[0]);
    else
        ck_assert_uint_eq(s.faults, 0);
    env_teardown();
    if (_i == 4) return;
    open_with("/nowhere/liblfuser-codegen.so", folder); // mended
    compile_and_run();
    env_teardown();
}
END_TEST

START_TEST(no_files_when_told_so) {
    setenv("LFUSER_CACHE", folder, 1);
    open_with(NULL, "");
    compile_and_run();
    ck_assert_ptr_null(cache_stats().directory);
    ck_assert_uint_eq(cache_stats().entries, 0);
    env_teardown();
    setenv("LFUSER_CACHE", "off", 1);
    open_with(NULL, NULL);
    compile_and_run();
    ck_assert_ptr_null(cache_stats().directory);
    env_teardown();
    ck_assert_int_eq(rmdir(folder), 0); // nothing in it
    setenv("LFUSER_CACHE", folder, 1);
    open_with(NULL, NULL);
    compile_and_run();
    ck_assert_uint_ge(cache_stats().entries, 2);
    lfuser_context_cache_clear(env.context);
    ck_assert_uint_eq(cache_stats().entries, 0);
    env_teardown();
}
END_TEST

START_TEST(equal_programs_share_code) {
    open_with(NULL, "");
    lfuser_executable *a = compile(text), *b = compile(text);
    ck_assert_ptr_null(run_norm(a, env.stream, ROWS, COLUMNS));
    uint64_t loaded = stats().kernels_loaded;
    ck_assert_ptr_null(run_norm(b, env.stream, ROWS, COLUMNS));
    ck_assert_uint_eq(stats().kernels_loaded, loaded);
    ck_assert_uint_eq(cache_stats().compiles, 2);
    ck_assert_uint_eq(cache_stats().shared, 2);
    lfuser_executable_destroy(a);
    ck_assert_ptr_null(run_norm(b, env.stream, ROWS, COLUMNS));
    lfuser_executable_destroy(b);
    lfuser_compile_options fast = {.size = sizeof fast, .math = LFUSER_MATH_FAST};
    lfuser_fusion *f = parse(text);
    ok(lfuser_fusion_compile(f, env.device, &fast, &a)); // its kernel is another
    ck_assert_ptr_null(run_norm(a, env.stream, ROWS, COLUMNS));
    ck_assert_uint_eq(cache_stats().compiles, 3);
    lfuser_executable_destroy(a);
    lfuser_fusion_destroy(f);
    env_teardown();
}
END_TEST

// ---- races ---------------------------------------------------------------------------------------------------------------------

enum { THREADS = 16 };
static pthread_barrier_t start;
static _Atomic(const char *) first_wrong;
static _Atomic unsigned calls;

static void *compile_many(void *arg) {
    lfuser_stream *stream = NULL;
    lfuser_status s = lfuser_stream_create(env.device, &stream);
    pthread_barrier_wait(&start);
    for (int i = 0; !s && i < (int)(intptr_t)arg; i++) {
        lfuser_fusion *f = NULL;
        lfuser_executable *e = NULL;
        s = lfuser_fusion_parse(env.context, "t.lf", text, strlen(text), NULL, &f);
        if (!s) s = lfuser_fusion_compile(f, env.device, NULL, &e);
        const char *wrong = s ? "a compile failed" : run_norm(e, stream, 1 + i % ROWS, COLUMNS);
        if (wrong) atomic_store(&first_wrong, wrong);
        atomic_fetch_add(&calls, 1);
        lfuser_executable_destroy(e);
        lfuser_fusion_destroy(f);
    }
    if (s) atomic_store(&first_wrong, "a call failed");
    lfuser_status_destroy(s);
    lfuser_stream_destroy(stream);
    return NULL;
}

static void race(void *(*what)(void *), intptr_t rounds) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) ck_assert(!pthread_create(&threads[i], NULL, what, (void *)rounds));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    ck_assert_msg(!atomic_load(&first_wrong), "%s", atomic_load(&first_wrong));
}

START_TEST(one_compile_under_a_thousand_races) {
    open_with(NULL, folder);
    race(compile_many, SLOW_BUILD ? 8 : 64);
    ck_assert_uint_eq(atomic_load(&calls), THREADS * (SLOW_BUILD ? 8 : 64));
    lfuser_cache_stats s = cache_stats();
    // Host code, and the kernel in at most the classes of one row and of several.
    ck_assert_msg(s.compiles >= 2 && s.compiles <= 3, "%llu compiles", (unsigned long long)s.compiles);
    ck_assert_uint_eq(s.faults, 0);
    env_teardown();
}
END_TEST

// What malloc keeps free is given back first: what leaks would go there unseen.
static long resident_kib(void) {
    long pages = 0, resident = 0;
    malloc_trim(0);
    FILE *f = fopen("/proc/self/statm", "r");
    if (fscanf(f, "%ld %ld", &pages, &resident) != 2) resident = 0;
    fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

START_TEST(memory_is_flat) {
    open_with(NULL, folder);
    int rounds = SLOW_BUILD ? 200 : 10000;
    long before = 0;
    for (int i = 0; i < rounds; i++) {
        if (i == rounds / 10) before = resident_kib();
        compile_and_run();
    }
    long grown = resident_kib() - before;
    if (!SLOW_BUILD) ck_assert_msg(grown < 512, "%d rounds leave %ld KiB", rounds, grown);
    ck_assert_uint_eq(cache_stats().compiles, 2);
    env_teardown();
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api cache");
    TCase *t = tcase_create("cache");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, SLOW_BUILD ? 600 : 120);
    tcase_add_test(t, a_warm_start_needs_no_code_generator);
    tcase_add_test(t, what_the_host_finishes_is_kept_too);
    tcase_add_loop_test(t, files_in_any_state, 0, 6);
    tcase_add_test(t, no_files_when_told_so);
    tcase_add_test(t, equal_programs_share_code);
    tcase_add_test(t, one_compile_under_a_thousand_races);
    tcase_add_test(t, memory_is_flat);
    suite_add_tcase(suite, t);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
