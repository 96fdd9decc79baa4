// Shapes are run-time values: new ones of a known class compile nothing, and few classes serve all sizes. And sizes that are
// large in another way: many arguments, long programs, high ranks.
#include "test/support/api/oracle.h"

static int64_t device_shape[LFUSER_MAX_RANK];

// One run on row-major views of one block of memory, outputs allocated (and ended at once).
static void run_shapes(lfuser_executable *e, const test_tensor *memory, size_t n_in, const int64_t *shape, uint32_t rank) {
    lfuser_tensor t = memory->view;
    lfuser_argument arguments[2];
    lfuser_output outputs[2] = {{0}};
    memcpy(device_shape, shape, rank * sizeof *shape);
    t.rank = (int32_t)rank;
    t.shape = device_shape;
    t.strides = NULL;
    for (size_t i = 0; i < n_in; i++) arguments[i] = tensor_argument(&t);
    size_t n_out = lfuser_executable_n_outputs(e);
    ok(lfuser_run(e, env.stream, arguments, n_in, outputs, n_out, NULL));
    for (size_t i = 0; i < n_out; i++)
        if (outputs[i].allocated) outputs[i].allocated->deleter(outputs[i].allocated);
}

START_TEST(new_shapes_compile_nothing) {
    lfuser_executable *e =
        compile("fusion @seed(%t0: f32[?, ?], %t1: f32[%h, %w], %s0: i64, %s1: i64) {\n"
                "  %t2 = reshape %t0, [%s0, %s1]\n  %t3 = add %t1, %t2\n  %n = add %s0, %s1\n  return %t3, %n\n}\n");
    static const int64_t shapes[][4] = {{6, 8, 8, 6}, {10, 12, 20, 6}, {3, 40, 4, 30}, {128, 64, 32, 256}};
    test_tensor memory;
    tensor_f32(&memory, 1, (int64_t[]){128 * 64}, 0, 1);
    uint64_t compiled = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *s = shapes[i];
        lfuser_tensor t0 = memory.view, t1 = memory.view;
        t0.rank = t1.rank = 2;
        t0.strides = t1.strides = NULL;
        t0.shape = (int64_t *)(uintptr_t)&s[0];
        t1.shape = (int64_t *)(uintptr_t)&s[2];
        lfuser_argument arguments[] = {tensor_argument(&t0), tensor_argument(&t1), i64_argument(s[2]), i64_argument(s[3])};
        lfuser_output outputs[2] = {{0}};
        ok(lfuser_run(e, env.stream, arguments, 4, outputs, 2, NULL));
        ck_assert_int_eq(outputs[1].value.i64, s[2] + s[3]);
        outputs[0].allocated->deleter(outputs[0].allocated);
        if (i == 0) compiled = stats().compiles;
        ck_assert_uint_eq(stats().compiles, compiled);
    }
    tensor_finish(&memory);
    lfuser_executable_destroy(e);
}
END_TEST

typedef struct budget {
    const char *text;
    size_t n_in;
    uint32_t rank;
    bool kept; // the last axis has a fixed extent of 12, the first varies; else the other way
    uint64_t most;
} budget;
static const budget budgets[] = {
    {"fusion @f(%x: f32[?]) { %y = relu %x return %y }", 1, 1, false, 4},
    {"fusion @f(%x: f32[?, ?], %y: f32[?, ?]) { %a = add %x, %y %b = mul %a, 2 return %a, %b }", 2, 2, false, 4},
    {"fusion @f(%x: f32[?, ?]) { %y = permute %x, [1, 0] %z = neg %y return %z }", 1, 2, false, 4},
    {"fusion @f(%x: f32[?, ?]) { %m = mean %x, axes=[1], keepdim=true %y = sub %x, %m return %y }", 1, 2, false, 8},
    {"fusion @f(%x: f32[?, ?]) { %y = layer_norm %x, none, none, 1e-5 return %y }", 1, 2, false, 8},
    {"fusion @f(%x: f32[?, ?]) { %y = softmax %x, axis=1 return %y }", 1, 2, true, 8},
    {"fusion @f(%x: f32[?, ?]) { %y = sum %x, axes=[0] return %y }", 1, 2, true, 8},
};

START_TEST(sizes_to_300_need_few_variants) {
    const budget *b = &budgets[_i];
    lfuser_executable *e = compile(b->text);
    test_tensor memory;
    tensor_f32(&memory, 1, (int64_t[]){300 * 12}, 0, 1);
    uint64_t before = stats().compiles;
    for (int64_t n = 1; n <= 300; n++) {
        int64_t shape[] = {b->rank == 1 ? n : b->kept ? n : 12, b->kept ? 12 : n};
        run_shapes(e, &memory, b->n_in, shape, b->rank);
    }
    ck_assert_msg(stats().compiles - before <= b->most, "%s\n%llu variants for sizes 1 to 300, at most %llu wanted", b->text,
                  (unsigned long long)(stats().compiles - before), (unsigned long long)b->most);
    before = stats().compiles;
    for (int64_t n = 300; n >= 1; n--) {
        int64_t shape[] = {b->rank == 1 ? n : b->kept ? n : 12, b->kept ? 12 : n};
        run_shapes(e, &memory, b->n_in, shape, b->rank);
    }
    ck_assert_uint_eq(stats().compiles, before);
    synchronize();
    tensor_finish(&memory);
    lfuser_executable_destroy(e);
}
END_TEST

// Every way of lying in memory that there is, and then once more: what has been compiled serves.
START_TEST(layouts_compile_once) {
    test_program p;
    ck_assert(program_open(
        &p, "(%x: $D[%m, ?, %k], %y: $D[?, %k], %z: $D[%k]) { %a = mul %x, %y %b = add %a, %z return %b }", LFUSER_F32));
    const int64_t extents[] = {1, 2, 4, 7, 64};
    check_layouts(&p, extents, 5);
    uint64_t before = stats().compiles;
    check_layouts(&p, extents, 5);
    ck_assert_uint_eq(stats().compiles, before);
    ck_assert_uint_le(stats().compiles, 1 + 8 + 1); // host code, at most 8 classes of the kernel
    program_close(&p);
}
END_TEST

// ---- large in other ways -------------------------------------------------------------------------------------------------------------

// Addresses and strides of 200 inputs are more than a kernel takes as parameters (4 KB).
START_TEST(two_hundred_inputs) {
    enum { INPUTS = 200, N = 100 };
    char *text = malloc(40000);
    size_t at = (size_t)sprintf(text, "fusion @f(");
    for (int i = 0; i < INPUTS; i++) at += (size_t)sprintf(text + at, "%s%%x%d: f32[?]", i ? ", " : "", i);
    at += (size_t)sprintf(text + at, ") {\n  %%s1 = add %%x0, %%x1\n");
    for (int i = 2; i < INPUTS; i++) at += (size_t)sprintf(text + at, "  %%s%d = add %%s%d, %%x%d\n", i, i - 1, i);
    sprintf(text + at, "  return %%s%d\n}\n", INPUTS - 1);
    lfuser_executable *e = compile(text);
    test_tensor *x = calloc(INPUTS, sizeof *x), y;
    lfuser_argument arguments[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        tensor_init(&x[i], LFUSER_F32, 1, (int64_t[]){N}, i % 2 ? LAYOUT_REVERSED : LAYOUT_ODD);
        for (int k = 0; k < N; k++) *(float *)tensor_element(&x[i], k) = (float)(i * k);
        tensor_upload(&x[i]);
        arguments[i] = tensor_argument(&x[i].view);
    }
    tensor_init(&y, LFUSER_F32, 1, (int64_t[]){N}, LAYOUT_GAPPED);
    tensor_upload(&y);
    for (int round = 0; round < 3; round++) {
        lfuser_output output = {.tensor = &y.view};
        ok(lfuser_run(e, env.stream, arguments, INPUTS, &output, 1, NULL));
    }
    tensor_download(&y);
    for (int k = 0; k < N; k++) ck_assert_float_eq(tensor_f32_at(&y, k), (float)(INPUTS * (INPUTS - 1) / 2 * k));
    tensor_check_guards(&y, "y");
    for (int i = 0; i < INPUTS; i++) tensor_finish(&x[i]);
    tensor_finish(&y);
    free(x);
    free(text);
    lfuser_executable_destroy(e);
}
END_TEST

// As tensors and as scalars: no recursion may follow the chain.
START_TEST(five_thousand_negations) {
    enum { LENGTH = 5000 };
    char *text = malloc(400000);
    size_t at = (size_t)sprintf(text, "fusion @f(%%x0: f32[?], %%s0: f32) {\n");
    for (int i = 1; i <= LENGTH; i++)
        at += (size_t)sprintf(text + at, "  %%x%d = neg %%x%d\n  %%s%d = neg %%s%d\n", i, i - 1, i, i - 1);
    sprintf(text + at, "  return %%x%d, %%x%d, %%s%d\n}\n", LENGTH, LENGTH - 1, LENGTH - 1);
    lfuser_executable *e = compile(text);
    test_tensor x, y, z;
    tensor_f32(&x, 1, (int64_t[]){1000}, 1, 1);
    tensor_f32(&y, 1, (int64_t[]){1000}, 0, 0);
    tensor_f32(&z, 1, (int64_t[]){1000}, 0, 0);
    lfuser_argument arguments[] = {tensor_argument(&x.view), f32_argument(2.5f)};
    lfuser_output outputs[3] = {{.tensor = &y.view}, {.tensor = &z.view}};
    ok(lfuser_run(e, env.stream, arguments, 2, outputs, 3, NULL));
    ck_assert_float_eq(outputs[2].value.f32, -2.5f);
    tensor_download(&y);
    tensor_download(&z);
    for (int i = 0; i < 1000; i++) {
        ck_assert_float_eq(tensor_f32_at(&y, i), (float)(i + 1));
        ck_assert_float_eq(tensor_f32_at(&z, i), -(float)(i + 1));
    }
    tensor_finish(&x);
    tensor_finish(&y);
    tensor_finish(&z);
    free(text);
    lfuser_executable_destroy(e);
}
END_TEST

START_TEST(rank_eight) {
    static const char *const programs[] = {
        "(%x: $D[2, 1, 2, %m, 1, 2, 1, ?], %y: $D[2, 2, 2, 1, 2, 1, 1, ?]) { %a = sub %x, %y return %a }",
        "(%x: $D[2, 1, 2, %m, 2, ?, 1, 2]) { %a = permute %x, [7, 2, 5, 0, 3, 6, 1, 4] %b = flip %a, axes=[0, 2, 4] return "
        "%a, %b }",
        "(%x: $D[2, 2, 2, %m, 2, 2, 2, ?]) { %a = sum %x, axes=[0, 2, 4, 6] %b = max %x, axes=[1, 3, 5], keepdim=true "
        "return %a, %b }",
        "(%x: $D[2, 2, 1, %m, 2, 1, 2, ?]) { %n = numel %x %a = reshape %x, [%n] %b = reshape %a, [1, 2, 1, -1, 1, 3, 1, 2] "
        "return %a, %b }",
        "(%x: $D[1, 1, 1, 1, 1, 1, 1, 1]) { %v = item %x %a = add %x, %v %b = broadcast %v, [2, 1, 2, 1, 2, 1, 2, 1], "
        "dims=[] return %a, %b, %v }",
    };
    const int64_t extents[] = {0, 1, 5, 64};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        test_program p;
        if (!program_open(&p, programs[i], (lfuser_dtype)_i)) continue;
        check_layouts(&p, extents, 4);
        program_close(&p);
    }
}
END_TEST

// Elements beyond what memory could hold are refused, not wrapped.
START_TEST(absurd_sizes) {
    static const char text[] = "fusion @f(%n: i64, %m: i64) { %x = full [%n, %m], 1.0 %y = neg %x return %y }";
    lfuser_executable *e = compile(text);
    lfuser_output output = {0};
    for (int bits = 40; bits <= 62; bits += 11) {
        lfuser_argument arguments[] = {i64_argument(INT64_C(1) << bits), i64_argument(1)};
        lfuser_status s = lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL);
        ck_assert_msg(lfuser_status_code(s) == LFUSER_OUT_OF_MEMORY, "2^%d elements: %s", bits, lfuser_status_message(s));
        lfuser_status_destroy(s);
        ck_assert_ptr_null(output.allocated);
    }
    // The product overflows 64 bits, to something small.
    lfuser_argument arguments[] = {i64_argument(INT64_C(1) << 33), i64_argument((INT64_C(1) << 31) + 1)};
    lfuser_status s = lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL);
    ck_assert(lfuser_status_code(s) == LFUSER_OUT_OF_MEMORY || lfuser_status_code(s) == LFUSER_FAILED_CHECK);
    lfuser_status_destroy(s);
    // As an intermediate result.
    lfuser_executable *sum =
        compile("fusion @g(%x: f32[?], %n: i64) { %y = softmax %x, axis=0 %z = expand %y, [%n, -1] %c = cumsum %z, axis=1 "
                "%w = flip %c, axes=[1] %v = cumsum %w, axis=0 %u = sum %v return %u }");
    test_tensor x;
    tensor_f32(&x, 1, (int64_t[]){4}, 0, 0);
    lfuser_argument given[] = {tensor_argument(&x.view), i64_argument(INT64_C(1) << 60)};
    s = lfuser_run(sum, env.stream, given, 2, &output, 1, NULL);
    ck_assert_msg(lfuser_status_code(s) == LFUSER_OUT_OF_MEMORY, "%s", lfuser_status_message(s));
    lfuser_status_destroy(s);
    given[1] = i64_argument(2);
    ok(lfuser_run(sum, env.stream, given, 2, &output, 1, NULL)); // the next call is right
    float u;
    ok(lfuser_memory_download(env.stream, &u, output.allocated->tensor.data, sizeof u));
    synchronize();
    ck_assert_float_eq(u, 7.5f);
    output.allocated->deleter(output.allocated);
    tensor_finish(&x);
    lfuser_executable_destroy(sum);
    lfuser_executable_destroy(e);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api shapes");
    TCase *t = device_tcase(suite, "shapes", 120);
    tcase_add_test(t, new_shapes_compile_nothing);
    tcase_add_loop_test(t, sizes_to_300_need_few_variants, 0, (int)(sizeof budgets / sizeof *budgets));
    tcase_add_test(t, layouts_compile_once);
    tcase_add_test(t, two_hundred_inputs);
    tcase_add_test(t, five_thousand_negations);
    tcase_add_loop_test(t, rank_eight, SLOW_BUILD ? LFUSER_F32 : LFUSER_I64, SLOW_BUILD ? LFUSER_F32 + 1 : LFUSER_C64 + 1);
    tcase_add_test(t, absurd_sizes);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
