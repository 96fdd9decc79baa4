// What can be asked about compiling: which kernels there are and what they take, and where the time went.
#include "test/support/api/device_test.h"
#include <stdlib.h>
#include <string.h>

static const char two[] = "fusion @two(%x: f32[?, ?]) {\n  %s = sum %x, axes=[1], keepdim=true\n  %t = transpose %s, 0, 1\n"
                          "  %m = cumsum %t, axis=1\n  %y = add %x, %m\n  return %y\n}\n";

START_TEST(kernels_are_listed) {
    lfuser_executable *e = compile(two);
    ck_assert_uint_eq(lfuser_executable_n_kernels(e), 0);
    ok(lfuser_executable_prepare(e));
    size_t n = lfuser_executable_n_kernels(e);
    ck_assert_uint_ge(n, 2);
    uint32_t launches = 0;
    for (size_t i = 0; i < n; i++) {
        lfuser_kernel_info info = {.size = sizeof info};
        ok(lfuser_executable_kernel(e, i, &info));
        ck_assert_ptr_nonnull(info.name);
        ck_assert_uint_ge(info.vector, 1);
        ck_assert_uint_eq(info.registers > 0, test_on_cuda());
        launches |= 1u << info.launch;
    }
    ck_assert_uint_ge(launches, 3); // of the first launch and of the second
    lfuser_executable_destroy(e);
}
END_TEST

START_TEST(no_such_kernel) {
    lfuser_executable *e = compile(two);
    lfuser_kernel_info info = {.size = sizeof info};
    fails(lfuser_executable_kernel(e, 0, &info), LFUSER_INVALID_ARGUMENT, "lfuser_executable_kernel: kernel 0 of 0");
    fails(lfuser_executable_kernel(e, 0, NULL), LFUSER_INVALID_ARGUMENT, "lfuser_executable_kernel: an argument is NULL");
    ck_assert_uint_eq(lfuser_executable_n_kernels(NULL), 0);
    lfuser_executable_destroy(e);
}
END_TEST

// An older caller's struct ends earlier; what lies behind it is not touched.
START_TEST(a_shorter_struct) {
    lfuser_executable *e = compile(two);
    ok(lfuser_executable_prepare(e));
    lfuser_kernel_info info;
    memset(&info, 0x55, sizeof info);
    info.size = offsetof(lfuser_kernel_info, vector);
    ok(lfuser_executable_kernel(e, 0, &info));
    ck_assert_ptr_nonnull(info.name);
    ck_assert_uint_eq(info.vector, 0x55555555);
    lfuser_executable_destroy(e);
}
END_TEST

static lfuser_stage_time stage(const char *name) {
    lfuser_stage_time t = {.size = sizeof t};
    for (size_t i = 0; i < lfuser_context_n_stage_times(); i++) {
        ok(lfuser_context_stage_time(env.context, i, &t));
        if (!strcmp(t.name, name)) return t;
    }
    ck_abort_msg("no stage '%s'", name);
}

START_TEST(times_grow_with_the_stages_that_ran) {
    lfuser_stage_time parsed = stage("parse"), built = stage("kernel: build IR"), host = stage("host: generate code");
    lfuser_executable *e = compile(two);
    ck_assert_uint_eq(stage("parse").times, parsed.times + 1);
    ck_assert_uint_gt(stage("parse").ns, parsed.ns);
    ck_assert_uint_eq(stage("host: generate code").times, host.times + 1);
    ck_assert_uint_eq(stage("kernel: build IR").times, built.times); // on first use
    ok(lfuser_executable_prepare(e));
    ck_assert_uint_ge(stage("kernel: build IR").times, built.times + 2);
    lfuser_executable_destroy(e);
}
END_TEST

START_TEST(no_such_stage) {
    lfuser_stage_time t = {.size = sizeof t};
    size_t n = lfuser_context_n_stage_times();
    char message[128];
    snprintf(message, sizeof message, "lfuser_context_stage_time: an argument is NULL, or stage %zu not one of %zu", n, n);
    fails(lfuser_context_stage_time(env.context, n, &t), LFUSER_INVALID_ARGUMENT, message);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api counters");
    TCase *t = device_tcase(suite, "counters", 60);
    tcase_add_test(t, kernels_are_listed);
    tcase_add_test(t, no_such_kernel);
    tcase_add_test(t, a_shorter_struct);
    tcase_add_test(t, times_grow_with_the_stages_that_ran);
    tcase_add_test(t, no_such_stage);
    return suite;
}

int main(int argc, char **argv) {
    setenv("LFUSER_CACHE", "off", 1); // what is counted must happen
    return device_test_main(argc, argv, make);
}
