// Kernels of a GPU in the cache, with a driver that only keeps books (test/stub): PTX is linked once, later starts load the cubin;
// a driver that cannot link or a cubin that does not load cost a step back, never the run. Also, how many variants sizes need on a
// GPU: nothing is computed here, so any machine can count.
#include "test/stub/find_stub.h"
#include "test/support/api/device_test.h"

static char folder[64];

static void open_with(const char *codegen_path) {
    lfuser_context_options o = {.size = sizeof o, .codegen_path = codegen_path, .cache_directory = folder};
    ok(lfuser_context_create(&o, &env.context));
    ok(lfuser_device_open(env.context, "cuda", &env.device));
    ok(lfuser_stream_create(env.device, &env.stream));
    env.place = (lfuser_dl_device){2, 0};
}

static void setup(void) {
    strcpy(folder, "/tmp/lf_test_cubins_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    stub = reset_stub();
}

static void teardown(void) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(stub->links, 0);
    ck_assert_int_eq(stub->modules, 0);
}

static lfuser_cache_stats cache_stats(void) {
    lfuser_cache_stats s = {.size = sizeof s};
    ok(lfuser_context_cache_stats(env.context, &s));
    return s;
}

static void run_shape(lfuser_executable *e, uint32_t n_tensors, int32_t rank, int64_t *shape) {
    int64_t n = 1;
    void *memory;
    for (int32_t k = 0; k < rank; k++) n *= shape[k];
    ok(lfuser_memory_alloc(env.stream, (size_t)n * 4, &memory));
    lfuser_tensor t = {
        .data = memory, .device = env.place, .rank = rank, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape};
    lfuser_argument arguments[4];
    for (uint32_t i = 0; i < n_tensors; i++) arguments[i] = tensor_argument(&t);
    lfuser_output output = {0};
    ok(lfuser_run(e, env.stream, arguments, n_tensors, &output, 1, NULL));
    output.allocated->deleter(output.allocated);
    lfuser_memory_free(env.stream, memory);
}

static const char text[] = "fusion @f(%x: f32[?]) { %y = exp %x return %y }";

static void compile_and_run(void) {
    lfuser_executable *e = compile(text);
    run_shape(e, 1, 1, (int64_t[]){1024});
    lfuser_executable_destroy(e);
}

START_TEST(linked_once_and_loaded_as_cubin) {
    open_with(NULL);
    compile_and_run();
    ck_assert_int_eq(stub->linked, 1);
    ck_assert_int_eq(stub->ptx_loaded, 1);      // what this process runs
    ck_assert_int_eq(stub->cubins_loaded, 1);   // looked at before it is stored
    ck_assert_uint_eq(cache_stats().stores, 3); // host code, PTX, cubin
    compile_and_run();                          // from memory
    ck_assert_int_eq(stub->linked, 1);
    env_teardown();
    open_with("/nowhere/liblfuser-codegen.so");
    compile_and_run();
    ck_assert_int_eq(stub->linked, 1);
    ck_assert_int_eq(stub->ptx_loaded, 1);
    ck_assert_int_eq(stub->cubins_loaded, 3);
    ck_assert_uint_eq(cache_stats().compiles, 0);
    ck_assert_uint_eq(cache_stats().disk_hits, 2); // host code, cubin
    env_teardown();
}
END_TEST

START_TEST(a_cubin_that_does_not_load) {
    open_with(NULL);
    compile_and_run();
    env_teardown();
    stub->no_cubins = true;
    open_with("/nowhere/liblfuser-codegen.so");
    lfuser_executable *e = compile(text); // the PTX is there, but what is linked from it does not load either
    run_shape(e, 1, 1, (int64_t[]){1024});
    ck_assert_int_eq(stub->ptx_loaded, 2);
    ck_assert_uint_eq(cache_stats().compiles, 0);
    lfuser_executable_destroy(e);
    env_teardown();
}
END_TEST

START_TEST(a_driver_without_a_linker) {
    stub->no_linker = true;
    open_with(NULL);
    compile_and_run();
    ck_assert_int_eq(stub->ptx_loaded, 1);
    env_teardown();
    open_with("/nowhere/liblfuser-codegen.so");
    compile_and_run();
    ck_assert_int_eq(stub->ptx_loaded, 2);
    ck_assert_uint_eq(cache_stats().compiles, 0);
    env_teardown();
}
END_TEST

// The variants that sizes 1 to 10,000 need: of a pointwise program, and of a row normalisation whose rows have such lengths.
START_TEST(sizes_need_few_variants) {
    open_with(NULL);
    lfuser_executable *e = compile("fusion @f(%x: f32[?], %y: f32[?]) { %a = mul %x, %y %b = exp %a return %b }");
    uint64_t before = stats().compiles;
    for (int64_t n = 1; n <= 10000; n++) run_shape(e, 2, 1, &n);
    ck_assert_msg(stats().compiles - before <= 4, "%llu variants of a pointwise program",
                  (unsigned long long)(stats().compiles - before));
    lfuser_executable_destroy(e);
    e = compile("fusion @f(%x: f32[?, ?]) { %y = softmax %x, axis=-1 return %y }");
    before = stats().compiles;
    for (int64_t n = 1; n <= 10000; n++) run_shape(e, 1, 2, (int64_t[]){1 + n % 300, n});
    ck_assert_msg(stats().compiles - before <= 8, "%llu variants of a row normalisation",
                  (unsigned long long)(stats().compiles - before));
    lfuser_executable_destroy(e);
    env_teardown();
}
END_TEST

int main(void) {
    if (!find_stub()) return printf("skipped: no stub of the driver beside this program: %s\n", stub_path), 77;
    setenv("LFUSER_LIBCUDA", stub_path, 1);
    Suite *suite = suite_create("api cubins");
    TCase *t = tcase_create("cubins");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, SLOW_BUILD ? 600 : 120);
    tcase_add_test(t, linked_once_and_loaded_as_cubin);
    tcase_add_test(t, a_cubin_that_does_not_load);
    tcase_add_test(t, a_driver_without_a_linker);
    tcase_add_test(t, sizes_need_few_variants);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
