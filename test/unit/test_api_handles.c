// Handles of objects that have ended: what is used after its end is a status, and what ends twice ends once.
#include "test/support/api/device_test.h"

#define GONE(call, what) fails(call, LFUSER_INVALID_ARGUMENT, what " has been destroyed")

START_TEST(use_after_destroy) {
    lfuser_context *c = env.context;
    lfuser_device *device;
    lfuser_stream *stream;
    lfuser_builder *builder;
    lfuser_fusion *fusion = parse("fusion @a(%s: i64) { %r = add %s, 1 return %r }"), *built;
    lfuser_executable *e;
    lfuser_output output = {0};
    lfuser_argument argument = i64_argument(1);
    lfuser_value *value;
    lfuser_type type = {.dtype = LFUSER_I64};
    const char *names[] = {"x"};
    size_t n;
    char *printed;
    void *p;
    ok(lfuser_device_open(c, test_device_name(), &device));
    ok(lfuser_stream_create(device, &stream));
    ok(lfuser_fusion_compile(fusion, device, NULL, &e));
    ok(lfuser_builder_create(c, "b", &builder));
    ok(lfuser_builder_params(builder, 1, names, &type, &value));
    ok(lfuser_builder_return(builder, 1, &value, NULL, &built)); // which ends the builder
    lfuser_fusion_destroy(built);
    lfuser_stream_destroy(stream);
    fails(lfuser_run(e, stream, &argument, 1, &output, 1, NULL), LFUSER_INVALID_ARGUMENT,
          "lfuser_run: stream has been destroyed");
    lfuser_executable_destroy(e);
    lfuser_device_close(device);
    lfuser_fusion_destroy(fusion);
    GONE(lfuser_stream_synchronize(stream), "lfuser_stream_synchronize: stream");
    GONE(lfuser_stream_query(stream), "lfuser_stream_query: stream");
    GONE(lfuser_stream_callback(stream, NULL, NULL), "lfuser_stream_callback: stream");
    GONE(lfuser_memory_alloc(stream, 8, &p), "lfuser_memory_alloc: stream");
    GONE(lfuser_memory_upload(stream, &n, &n, 8), "lfuser_memory_upload: stream");
    GONE(lfuser_memory_download(stream, &n, &n, 8), "lfuser_memory_download: stream");
    GONE(lfuser_stream_create(device, &stream), "lfuser_stream_create: device");
    GONE(lfuser_device_stats(device, NULL), "lfuser_device_stats: device");
    GONE(lfuser_fusion_compile(fusion, NULL, NULL, &e), "lfuser_fusion_compile: fusion");
    GONE(lfuser_fusion_print(fusion, LFUSER_STAGE_GRAPH, "cpu", LFUSER_MATH_EXACT, 0, &printed),
         "lfuser_fusion_print: fusion");
    GONE(lfuser_fusion_check_no_sync(fusion), "lfuser_fusion_check_no_sync: fusion");
    GONE(lfuser_builder_params(builder, 1, names, &type, &value), "lfuser_builder_params: builder");
    GONE(lfuser_builder_op(builder, "neg", NULL, 0, NULL, 0, NULL, &n), "lfuser_builder_op: builder");
    GONE(lfuser_builder_assert(builder, value, "no"), "lfuser_builder_assert: builder");
    GONE(lfuser_builder_return(builder, 0, NULL, NULL, &built), "lfuser_builder_return: builder");
    fails(lfuser_stream_query((lfuser_stream *)env.device), LFUSER_INVALID_ARGUMENT,
          "lfuser_stream_query: stream is something else");
    ck_assert_str_eq(lfuser_fusion_name(fusion), "");
    ck_assert_str_eq(lfuser_device_description(device), "");
    // Ended twice: once is enough.
    lfuser_fusion_destroy(fusion);
    lfuser_device_close(device);
    lfuser_builder_destroy(builder);
}
END_TEST

START_TEST(an_executable_used_after_destroy) {
    lfuser_executable *e = compile("fusion @a(%s: i64) { %r = add %s, 1 return %r }");
    lfuser_output output = {0};
    lfuser_argument argument = i64_argument(1);
    const lfuser_argument *sets[] = {&argument};
    lfuser_value_info info;
    lfuser_kernel_info kernel;
    lfuser_host_entry entry;
    uint32_t load, compiled;
    lfuser_executable_destroy(e);
    GONE(lfuser_run(e, env.stream, &argument, 1, &output, 1, NULL), "lfuser_run: executable");
    GONE(lfuser_infer(e, &argument, 1, &output, 1, NULL, NULL), "lfuser_infer: executable");
    GONE(lfuser_executable_prepare(e), "lfuser_executable_prepare: executable");
    GONE(lfuser_executable_prepare_shapes(e, sets, 1, 1), "lfuser_executable_prepare_shapes: executable");
    GONE(lfuser_executable_would_compile(e, &argument, 1, &load, &compiled), "lfuser_executable_would_compile: executable");
    GONE(lfuser_executable_param(e, 0, &info), "lfuser_executable_param: executable");
    GONE(lfuser_executable_output(e, 0, &info), "lfuser_executable_output: executable");
    GONE(lfuser_executable_kernel(e, 0, &kernel), "lfuser_executable_kernel: executable");
    GONE(lfuser_executable_host_entry(e, &entry), "lfuser_executable_host_entry: executable");
    ck_assert_uint_eq(lfuser_executable_n_params(e) + lfuser_executable_n_outputs(e) + lfuser_executable_n_kernels(e), 0);
    lfuser_executable_destroy(e);
    // Its memory goes where many more objects have ended: nothing is kept for ever.
    for (int i = 0; i < 200; i++) lfuser_executable_destroy(compile("fusion @a(%s: i64) { %r = add %s, 1 return %r }"));
}
END_TEST

START_TEST(a_status_outlives_its_context) {
    lfuser_context *c;
    lfuser_fusion *f;
    ok(lfuser_context_create(NULL, &c));
    lfuser_status s = lfuser_fusion_parse(c, "u.lf", "fusion @a() { retur }", 21, NULL, &f);
    lfuser_context_destroy(c);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INVALID_PROGRAM);
    ck_assert_ptr_nonnull(strstr(lfuser_status_message(s), "u.lf:1:15: error: "));
    lfuser_status_destroy(s);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api handles");
    TCase *t = device_tcase(suite, "handles", 60);
    tcase_add_test(t, use_after_destroy);
    tcase_add_test(t, an_executable_used_after_destroy);
    tcase_add_test(t, a_status_outlives_its_context);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
