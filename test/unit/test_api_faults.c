// Faults that users of other fusion compilers met and that a conformance case cannot show: what is launched and compiled, what
// errors say, which programs share what. Numbers are those of test/conformance/gen_faults.py; docs/accuracy.md lists all.
#include "test/support/api/tensors.h"
#include <math.h>
#include <unistd.h>

enum { MOST = 4 };

// Runs with tensors of the caller as outputs, and waits.
static void run(lfuser_executable *e, const lfuser_argument *a, size_t n, test_tensor *out, size_t n_out) {
    lfuser_output outputs[MOST] = {{0}};
    for (size_t i = 0; i < n_out; i++) outputs[i].tensor = &out[i].view;
    ok(lfuser_run(e, env.stream, a, n, outputs, n_out, NULL));
    for (size_t i = 0; i < n_out; i++) tensor_download(&out[i]);
}

static void make(test_tensor *t, lfuser_dtype d, uint32_t rank, const int64_t *shape) {
    tensor_init(t, d, rank, shape, LAYOUT_DENSE);
    tensor_upload(t);
}

// 15: a host rank-0 tensor plus a literal went to the device.
START_TEST(host_arithmetic_launches_nothing) {
    lfuser_executable *e = compile("fusion @t(%x: f32[] @host) { %y = add %x, 3.0 return %y }");
    lfuser_argument x = {.kind = LFUSER_HOST_TENSOR, .dtype = LFUSER_F32, .value = {.f32 = 2}};
    lfuser_output y = {0};
    ok(lfuser_run(e, env.stream, &x, 1, &y, 1, NULL));
    ck_assert_int_eq(y.kind, LFUSER_HOST_TENSOR);
    ck_assert_float_eq(y.value.f32, 5);
    ck_assert_uint_eq(stats().launches, 0);
    ck_assert_uint_eq(stats().syncs, 0);
    lfuser_executable_destroy(e);
}
END_TEST

// 17: a run-time integer as a tensor's value; a new one reuses the code.
START_TEST(run_time_fill_compiles_once) {
    lfuser_executable *e =
        compile("fusion @t(%n: i64) { %z = full [3], 0.0, dtype=f32 %y = add %z, %n %f = full [3], %n return %y, %f }");
    const int64_t shape[] = {3};
    test_tensor out[2];
    make(&out[0], LFUSER_F32, 1, shape);
    make(&out[1], LFUSER_I64, 1, shape);
    uint64_t compiles = 0;
    for (int64_t n = 5; n < 9; n++) {
        lfuser_argument a = i64_argument(n);
        run(e, &a, 1, out, 2);
        for (int64_t i = 0; i < 3; i++) {
            ck_assert_float_eq(tensor_f32_at(&out[0], i), (float)n);
            ck_assert_int_eq(*(int64_t *)tensor_element(&out[1], i), n);
        }
        if (n == 5) compiles = stats().compiles;
    }
    ck_assert_uint_eq(stats().compiles, compiles);
    tensor_finish(&out[0]);
    tensor_finish(&out[1]);
    lfuser_executable_destroy(e);
}
END_TEST

// 24: an axis out of range crashed; afterwards the context still works.
START_TEST(bad_axis_is_an_error) {
    const char *text = "fusion @t(%x: f32[?, ?, ?, ?, ?]) { %v = var %x, axes=[1, 2, 5] return %v }";
    lfuser_fusion *f = NULL;
    lfuser_status s = lfuser_fusion_parse(env.context, "t.lf", text, strlen(text), NULL, &f);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INVALID_PROGRAM);
    ck_assert_ptr_null(f);
    const char *message = lfuser_status_message(s);
    ck_assert_msg(strstr(message, "5") && strstr(message, "-5") && strstr(message, "4"), "%s", message);
    lfuser_status_destroy(s);
    lfuser_executable_destroy(compile("fusion @t(%x: f32[?]) { %y = neg %x return %y }"));
}
END_TEST

// 29, 31: no launch over no element, and none that divides by an extent of 0; the next call is right.
START_TEST(empty_then_not) {
    static const char *const texts[] = {"fusion @t(%x: f32[?, ?]) { %y = neg %x return %y }",
                                        "fusion @t(%x: f32[?, 4]) { %t = transpose %x, 0, 1 %y = neg %t return %y }"};
    static const int64_t rows[] = {1000, 0, 2};
    for (int transposed = 0; transposed < 2; transposed++) {
        lfuser_executable *e = compile(texts[transposed]);
        for (size_t k = 0; k < 3; k++) {
            const int64_t shape[] = {rows[k], 4}, turned[] = {4, rows[k]};
            test_tensor x, y;
            tensor_f32(&x, 2, shape, 1, 1);
            make(&y, LFUSER_F32, 2, transposed ? turned : shape);
            lfuser_argument a = tensor_argument(&x.view);
            uint64_t launches = stats().launches;
            run(e, &a, 1, &y, 1);
            ck_assert_uint_eq(stats().launches - launches, rows[k] != 0);
            for (int64_t i = 0; i < 4 * rows[k]; i++) {
                int64_t from = transposed ? i % rows[k] * 4 + i / rows[k] : i;
                ck_assert_float_eq(tensor_f32_at(&y, i), -tensor_f32_at(&x, from));
            }
            tensor_check_guards(&y, texts[transposed]);
            tensor_finish(&x);
            tensor_finish(&y);
        }
        lfuser_executable_destroy(e);
    }
}
END_TEST

// 35, 190, 194: an index outside reads 0 or writes nothing, and the run says so by the op's name.
static const struct indexed {
    const char *text, *op;
    int64_t n, index;
} indexed[] = {
    {"fusion @t(%x: f32[?], %i: i64[?]) { %y = gather %x, %i, axis=0 return %y }", "gather", 0, 0},
    {"fusion @t(%x: f32[?], %i: i64[?]) { %y = gather %x, %i, axis=0 return %y }", "gather", 0, -1},
    {"fusion @t(%x: f32[?], %i: i64[?]) { %y = take %x, %i, axis=0 return %y }", "take", 5, -6},
    {"fusion @t(%x: f32[?], %i: i64[?]) { %y = take %x, %i, axis=0 return %y }", "take", 5, INT64_MIN},
    {"fusion @t(%x: f32[?], %i: i64[?]) { %z = full [1], 0.0 %y = scatter %z, %i, 7.0, axis=0, mode=add return %y }",
     "scatter", 1, 0xFFFFFFF0},
};
START_TEST(index_errors) {
    const struct indexed *row = &indexed[_i];
    lfuser_executable *e = compile(row->text);
    test_tensor x, i, y;
    tensor_f32(&x, 1, &row->n, 1, 1);
    const int64_t one[] = {1};
    tensor_init(&i, LFUSER_I64, 1, one, LAYOUT_DENSE);
    *(int64_t *)tensor_element(&i, 0) = row->index;
    tensor_upload(&i);
    make(&y, LFUSER_F32, 1, one);
    lfuser_argument a[] = {tensor_argument(&x.view), tensor_argument(&i.view)};
    lfuser_output out = {.tensor = &y.view};
    lfuser_completion *completion;
    ok(lfuser_run(e, env.stream, a, 2, &out, 1, &completion));
    lfuser_status s = lfuser_completion_wait(completion, UINT64_MAX);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INDEX_ERROR);
    ck_assert_msg(strstr(lfuser_status_message(s), row->op), "%s", lfuser_status_message(s));
    lfuser_status_destroy(s);
    lfuser_completion_release(completion);
    tensor_download(&y);
    ck_assert_float_eq(tensor_f32_at(&y, 0), 0);
    tensor_finish(&x);
    tensor_finish(&i);
    tensor_finish(&y);
    lfuser_executable_destroy(e);
}
END_TEST

// 92: a NaN at every place of every length up to 67 reaches the maximum, the minimum and the position.
START_TEST(nan_anywhere) {
    lfuser_executable *e = compile(
        "fusion @t(%x: f32[?, ?]) { %a = max %x, axes=[1] %b = min %x, axes=[1] %c = argmax %x, axis=1 %d = argmin %x, "
        "axis=1 return %a, %b, %c, %d }");
    for (int64_t n = 1; n <= 67; n += SLOW_BUILD ? 11 : 1) {
        const int64_t shape[] = {n, n};
        test_tensor x, out[4];
        tensor_init(&x, LFUSER_F32, 2, shape, LAYOUT_DENSE);
        for (int64_t i = 0; i < n * n; i++) *(float *)tensor_element(&x, i) = i / n == i % n ? NAN : (float)(i % 7);
        tensor_upload(&x);
        for (int k = 0; k < 4; k++) make(&out[k], k < 2 ? LFUSER_F32 : LFUSER_I64, 1, shape);
        lfuser_argument a = tensor_argument(&x.view);
        run(e, &a, 1, out, 4);
        for (int64_t i = 0; i < n; i++) {
            ck_assert_msg(isnan(tensor_f32_at(&out[0], i)) && isnan(tensor_f32_at(&out[1], i)), "length %d, NaN at %d",
                          (int)n, (int)i);
            ck_assert_int_eq(*(int64_t *)tensor_element(&out[2], i), i);
            ck_assert_int_eq(*(int64_t *)tensor_element(&out[3], i), i);
        }
        tensor_finish(&x);
        for (int k = 0; k < 4; k++) tensor_finish(&out[k]);
    }
    lfuser_executable_destroy(e);
}
END_TEST

// 164: one element, the same function, other shapes: the same bits in vector bodies, tails and odd places.
START_TEST(one_value_in_all_shapes) {
    static const char *const functions[] = {"erf", "exp", "tanh", "sin", "log1p", "sigmoid", "rsqrt", "lgamma"};
    static const int64_t shapes[][2] = {
        {1, 1}, {2, 1}, {7, 1}, {7, 5}, {1, 67}, {3, 1001}, {SLOW_BUILD ? 1003 : 1000003, 1}};
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        char text[128];
        snprintf(text, sizeof text, "fusion @t(%%x: f32[?, ?]) { %%y = %s %%x return %%y }", functions[f]);
        lfuser_executable *e = compile(text);
        uint32_t first = 0;
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
            for (layout where = LAYOUT_DENSE; where <= LAYOUT_ODD; where++) {
                test_tensor x, y;
                tensor_init(&x, LFUSER_F32, 2, shapes[k], where);
                int64_t n = tensor_numel(&x);
                for (int64_t i = 0; i < n; i++) *(float *)tensor_element(&x, i) = 4.5f;
                tensor_upload(&x);
                tensor_init(&y, LFUSER_F32, 2, shapes[k], where);
                tensor_upload(&y);
                lfuser_argument a = tensor_argument(&x.view);
                run(e, &a, 1, &y, 1);
                if (!k && where == LAYOUT_DENSE) memcpy(&first, tensor_element(&y, 0), 4);
                for (int64_t i = 0; i < n; i++) // (an assertion of Check costs a system call)
                    if (memcmp(tensor_element(&y, i), &first, 4))
                        ck_abort_msg("%s, %d by %d, element %d", functions[f], (int)shapes[k][0], (int)shapes[k][1], (int)i);
                tensor_finish(&x);
                tensor_finish(&y);
            }
        lfuser_executable_destroy(e);
    }
}
END_TEST

// 211, 213: programs that come and go at the same addresses, and differ in one constant of a table, share nothing.
START_TEST(programs_come_and_go) {
    enum { TIMES = SLOW_BUILD ? 20 : 150 };
    const int64_t shape[] = {100};
    test_tensor x, y;
    tensor_f32(&x, 1, shape, 0, 0);
    make(&y, LFUSER_F32, 1, shape);
    char text[4096];
    for (int k = 0; k < TIMES; k++) {
        int n = snprintf(text, sizeof text, "fusion @t(%%x: f32[?]) { %%c = tensor [");
        for (int i = 0; i < 100; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%d", i ? ", " : "", i == 57 ? k : i);
        snprintf(text + n, sizeof text - (size_t)n, "], dtype=f32 %%y = add %%x, %%c return %%y }");
        lfuser_executable *e = compile(text);
        lfuser_argument a = tensor_argument(&x.view);
        run(e, &a, 1, &y, 1);
        for (int64_t i = 0; i < 100; i++) ck_assert_float_eq(tensor_f32_at(&y, i), (float)(i == 57 ? k : i));
        lfuser_executable_destroy(e);
    }
    tensor_finish(&x);
    tensor_finish(&y);
}
END_TEST

static size_t resident_pages(void) {
    unsigned long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu %lu", &all, &resident) != 2) resident = 0;
    if (f) fclose(f);
    return resident;
}

// 234: code that is never unloaded. 100 programs later the process is as large as it was.
START_TEST(memory_stays_flat) {
    enum { ROUNDS = 100 };
    const int64_t shape[] = {64};
    test_tensor x, y;
    tensor_f32(&x, 1, shape, 0, 1);
    make(&y, LFUSER_F32, 1, shape);
    size_t before = 0;
    for (int k = -20; k < ROUNDS; k++) {
        char text[128];
        snprintf(text, sizeof text, "fusion @t(%%x: f32[?]) { %%y = add %%x, %d.0 return %%y }", k);
        lfuser_executable *e = compile(text);
        lfuser_argument a = tensor_argument(&x.view);
        run(e, &a, 1, &y, 1);
        lfuser_executable_destroy(e);
        if (k == -1) before = resident_pages();
    }
    size_t grown = resident_pages() - before, page = (size_t)sysconf(_SC_PAGESIZE);
    ck_assert_msg((int64_t)grown * (int64_t)page < 20000 * ROUNDS, "%lld KB for %d programs",
                  (long long)(grown * page) / 1024, (int)ROUNDS);
    tensor_finish(&x);
    tensor_finish(&y);
}
END_TEST

// 232: a long chain of ops overflowed the stack.
START_TEST(long_chain) {
    enum { N = 5000 };
    char *text = malloc(64 * N);
    int n = sprintf(text, "fusion @t(%%x: f32[?]) { %%v0 = neg %%x ");
    for (int i = 1; i < N; i++) n += sprintf(text + n, "%%v%d = neg %%v%d\n", i, i - 1);
    sprintf(text + n, "return %%v%d }", N - 1);
    lfuser_executable *e = compile(text);
    const int64_t shape[] = {9};
    test_tensor x, y;
    tensor_f32(&x, 1, shape, -3, 1);
    make(&y, LFUSER_F32, 1, shape);
    lfuser_argument a = tensor_argument(&x.view);
    run(e, &a, 1, &y, 1);
    for (int64_t i = 0; i < 9; i++) ck_assert_float_eq(tensor_f32_at(&y, i), tensor_f32_at(&x, i));
    tensor_finish(&x);
    tensor_finish(&y);
    lfuser_executable_destroy(e);
    free(text);
}
END_TEST

// 238: each new size compiled again.
START_TEST(sizes_share_code) {
    enum { N = 10000, STEP = SLOW_BUILD ? 97 : 1 };
    lfuser_executable *e = compile("fusion @t(%x: f32[?]) { %y = relu %x return %y }");
    const int64_t most[] = {N};
    test_tensor x, y;
    tensor_f32(&x, 1, most, -5000, 1);
    make(&y, LFUSER_F32, 1, most);
    uint64_t before = stats().compiles;
    for (int64_t n = 1; n <= N; n += STEP) {
        x.view.shape[0] = y.view.shape[0] = n;
        lfuser_argument a = tensor_argument(&x.view);
        lfuser_output out = {.tensor = &y.view};
        ok(lfuser_run(e, env.stream, &a, 1, &out, 1, NULL));
    }
    tensor_download(&y);
    ck_assert_uint_le(stats().compiles - before, 4);
    y.view.shape[0] = N;
    for (int64_t i = 0; i < N - STEP; i++) ck_assert_float_eq(tensor_f32_at(&y, i), fmaxf((float)i - 5000, 0));
    tensor_finish(&x);
    tensor_finish(&y);
    lfuser_executable_destroy(e);
}
END_TEST

// 241: a wrong rank is the caller's fault, never an internal one.
START_TEST(wrong_rank_is_the_callers) {
    const char *text = "fusion @t(%x: f32[?, ?]) { %y = sum %x, axes=[0] : f32[?, ?] return %y }";
    lfuser_fusion *f = NULL;
    lfuser_status s = lfuser_fusion_parse(env.context, "t.lf", text, strlen(text), NULL, &f);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INVALID_PROGRAM);
    lfuser_status_destroy(s);
    lfuser_executable *e = compile("fusion @t(%x: f32[?, ?]) { %y = sum %x, axes=[0] return %y }");
    const int64_t shape[] = {3, 4};
    test_tensor x, y;
    tensor_f32(&x, 2, shape, 0, 1);
    make(&y, LFUSER_F32, 2, shape);
    lfuser_argument a = tensor_argument(&x.view);
    lfuser_output out = {.tensor = &y.view};
    s = lfuser_run(e, env.stream, &a, 1, &out, 1, NULL);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INVALID_ARGUMENT);
    ck_assert_msg(strstr(lfuser_status_message(s), "rank"), "%s", lfuser_status_message(s));
    lfuser_status_destroy(s);
    x.view.rank = 1;
    out.tensor = NULL;
    s = lfuser_run(e, env.stream, &a, 1, &out, 1, NULL);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INVALID_ARGUMENT);
    lfuser_status_destroy(s);
    ck_assert_uint_eq(stats().launches, 0);
    tensor_finish(&x);
    tensor_finish(&y);
    lfuser_executable_destroy(e);
}
END_TEST

// 243: data of another device is named as that.
START_TEST(tensor_of_another_device) {
    lfuser_executable *e = compile("fusion @t(%x: f32[?]) { %y = neg %x return %y }");
    const int64_t shape[] = {4};
    test_tensor x;
    tensor_f32(&x, 1, shape, 0, 1);
    x.view.device = (lfuser_dl_device){2, 7};
    lfuser_argument a = tensor_argument(&x.view);
    lfuser_output out = {0};
    lfuser_status s = lfuser_run(e, env.stream, &a, 1, &out, 1, NULL);
    char here[16];
    snprintf(here, sizeof here, "%s:%d", test_place_name(), (int)env.place.ordinal);
    const char *message = lfuser_status_message(s);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INVALID_ARGUMENT);
    ck_assert_msg(strstr(message, "%x") && strstr(message, "cuda:7") && strstr(message, here), "%s", message);
    lfuser_status_destroy(s);
    tensor_finish(&x);
    lfuser_executable_destroy(e);
}
END_TEST

// 245: 16-bit code that ended the process in instruction selection; functions that LLVM has no code for.
START_TEST(code_for_every_gpu) {
    static const char *const targets[] = {"cuda:sm_75", "cuda:sm_80", "cuda:sm_90", "cuda:sm_100"};
    static const char *const texts[] = {
        "fusion @t(%x: bf16[?], %i: i8[?]) { %y = mul %x, %x %c = cast %i, dtype=bf16 return %y, %c }",
        "fusion @t(%x: bf16[?]) { %a = exp %x %b = tan %x %c = pow %x, %x %d = sin %x return %a, %b, %c, %d }",
        "fusion @t(%x: f32[?], %i: i64[?], %v: f32[?]) { %y = scatter %x, %i, %v, axis=0, mode=max return %y }"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        lfuser_fusion *f = parse(texts[i]);
        for (size_t k = 0; k < 4; k++) {
            char *ptx;
            ok(lfuser_fusion_print(f, LFUSER_STAGE_DEVICE_ASM, targets[k], LFUSER_MATH_EXACT, 0, &ptx));
            ck_assert_msg(strstr(ptx, ".entry"), "%s", texts[i]);
            lfuser_free(env.context, ptx);
        }
        lfuser_fusion_destroy(f);
    }
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("faults");
    TCase *t = device_tcase(suite, "faults", 120);
    tcase_add_test(t, host_arithmetic_launches_nothing);
    tcase_add_test(t, run_time_fill_compiles_once);
    tcase_add_test(t, bad_axis_is_an_error);
    tcase_add_test(t, empty_then_not);
    tcase_add_loop_test(t, index_errors, 0, sizeof indexed / sizeof *indexed);
    tcase_add_test(t, nan_anywhere);
    tcase_add_test(t, one_value_in_all_shapes);
    tcase_add_test(t, programs_come_and_go);
    if (!SLOW_BUILD) tcase_add_test(t, memory_stays_flat);
    tcase_add_test(t, long_chain);
    tcase_add_test(t, sizes_share_code);
    tcase_add_test(t, wrong_rank_is_the_callers);
    tcase_add_test(t, tensor_of_another_device);
    tcase_add_test(t, code_for_every_gpu);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make_suite); }
