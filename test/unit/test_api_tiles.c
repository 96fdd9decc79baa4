// Transposes and other permutations inside pointwise kernels, on the device against the interpreter: every element size, ranks 2 to 5,
// extents below, at and above those of a GPU's tiles, every layout. On a GPU these are kernels of class TILE where that pays, and of
// the plain classes where it does not.
#include "test/support/api/oracle.h"

enum { N_DTYPES = LFUSER_C128 + 1 };

// Extents of %a and %b.
static const int64_t pairs[][2] = {{1, 64},  {2, 33},   {3, 1023}, {31, 65},  {32, 32},  {33, 255},
                                   {63, 64}, {64, 128}, {65, 31},  {128, 64}, {257, 63}, {1023, 32}};
static const int64_t few[][2] = {{33, 40}, {64, 128}, {16, 63}};

static void check_pair(const test_program *p, const int64_t *pair, unsigned number) {
    const int64_t extents[4] = {pair[0], pair[1], 3, 2};
    static const layout in[] = {LAYOUT_DENSE, LAYOUT_ODD, LAYOUT_PERMUTED, LAYOUT_GAPPED, LAYOUT_REVERSED};
    // All inputs alike, and each in another layout than its neighbour.
    for (unsigned step = 0; step < 2; step++) {
        case_options o = {.n = 7,
                          .extents = extents,
                          .in = in[(number + step) % 5],
                          .in_step = step,
                          .given = number % 3 != 0,
                          .out = (layout)(number / 3 % N_LAYOUTS),
                          .seed = number + 1};
        check_case(p, &o);
    }
    check_case(p, &(case_options){.n = 7, .extents = extents, .in = LAYOUT_DENSE, .seed = 77});
}

// Whether the program takes this dtype.
static bool check_program(const char *text, lfuser_dtype d, const int64_t (*list)[2], size_t n) {
    test_program p;
    if (!program_open(&p, text, d)) return false;
    for (unsigned i = 0; i < n; i++)
        if (!SLOW_BUILD || i % 3 == 0) check_pair(&p, list[i], i);
    program_close(&p);
    return true;
}
#define COUNT(list) (sizeof list / sizeof *list)

// Of each dtype: a copy, and arithmetic beside it.
START_TEST(transposes_of_every_dtype) {
    ck_assert(
        check_program("(%x: $D[%a, %b]) { %p = permute %x, [1, 0] return %p }", (lfuser_dtype)_i, pairs, COUNT(pairs)));
    check_program("(%x: $D[%a, %b], %y: $D[%b, %a]) { %p = permute %x, [1, 0] %z = add %p, %y return %z }", (lfuser_dtype)_i,
                  pairs, COUNT(pairs));
}
END_TEST

static const char *const permutations[] = {
    "(%x: $D[%c, %a, %b]) { %p = permute %x, [0, 2, 1] return %p }",
    "(%x: $D[%a, %c, %b]) { %p = permute %x, [2, 1, 0] return %p }",
    "(%x: $D[%a, %b, %c]) { %p = permute %x, [2, 0, 1] return %p }",
    "(%x: $D[%a, %b, %c], %y: $D[%b, %c, %a]) { %p = permute %x, [1, 2, 0] %z = sub %y, %p return %z }",
    "(%x: $D[%c, %a, %d, %b]) { %p = permute %x, [0, 2, 1, 3] return %p }",
    "(%x: $D[%c, %d, %a, %b]) { %p = permute %x, [0, 1, 3, 2] return %p }",
    "(%x: $D[%a, %c, %d, %b]) { %p = permute %x, [3, 1, 0, 2] return %p }",
    "(%x: $D[%c, %a, %d, %b, %c]) { %p = permute %x, [4, 3, 2, 1, 0] return %p }",
    "(%x: $D[%d, %c, %a, %d, %b]) { %p = permute %x, [0, 3, 4, 1, 2] %z = neg %p return %z }",
};

START_TEST(permutations_to_rank_5) {
    static const lfuser_dtype dtypes[] = {LFUSER_I8, LFUSER_BF16, LFUSER_F32, LFUSER_I64, LFUSER_C128};
    for (unsigned d = 0; d < COUNT(dtypes); d++) ck_assert(check_program(permutations[_i], dtypes[d], few, COUNT(few)));
}
END_TEST

static const char *const mixtures[] = {
    // A broadcast beside it, along each axis.
    "(%x: $D[%a, %b], %v: $D[%a]) { %p = permute %x, [1, 0] %z = add %p, %v return %z }",
    "(%x: $D[%a, %b], %v: $D[%b, 1]) { %p = permute %x, [1, 0] %z = mul %p, %v return %z }",
    // Several of them, one twice.
    "(%x: $D[%a, %b], %y: $D[%a, %b]) { %p = permute %x, [1, 0] %q = permute %y, [1, 0] %s = mul %p, %q %z = add %s, %p "
    "return %z }",
    // Both ways round, and two results of different order.
    "(%x: $D[%a, %a]) { %p = permute %x, [1, 0] %z = sub %x, %p return %z }",
    "(%x: $D[%a, %b], %y: $D[%b, %a]) { %p = permute %x, [1, 0] %z = add %p, %y %q = permute %z, [1, 0] return %z, %q }",
    "(%x: $D[%a, %b]) { %z = neg %x %q = permute %z, [1, 0] return %z, %q }",
    "(%x: $D[%c, %a, %b]) { %z = neg %x %q = permute %z, [0, 2, 1] %r = permute %z, [1, 0, 2] return %q, %z, %r }",
    // Elements of different sizes.
    "(%x: $D[%a, %b], %y: f64[%b, %a]) { %p = permute %x, [1, 0] %z = add %p, %y return %z }",
    "(%x: i8[%a, %b], %y: $D[%b, %a]) { %p = permute %x, [1, 0] %z = add %p, %y return %z }",
    // Backwards, a part, flattened.
    "(%x: $D[%a, %b]) { %f = flip %x, axes=[1] %p = permute %f, [1, 0] return %p }",
    "(%x: $D[%a, %b]) { %s = slice %x, [1, 0], [none, none], [1, 2] %p = permute %s, [1, 0] return %p }",
    "(%x: $D[%a, %b, %c]) { %p = permute %x, [1, 0, 2] %r = reshape %p, [-1] %z = neg %r return %z }",
    // Indices are looked at.
    "(%x: $D[%a, %b]) { %p = permute %x, [1, 0] %t = tril %p return %t }",
};

START_TEST(transposes_among_others) {
    static const lfuser_dtype dtypes[] = {LFUSER_F16, LFUSER_F32, LFUSER_I64, LFUSER_C64};
    for (unsigned d = 0; d < COUNT(dtypes); d++) ck_assert(check_program(mixtures[_i], dtypes[d], few, COUNT(few)));
}
END_TEST

// Two results of one kernel, one of them in a buffer that lies the other way round.
START_TEST(results_of_different_order) {
    static const lfuser_dtype dtypes[] = {LFUSER_BOOL, LFUSER_I8,  LFUSER_BF16, LFUSER_F32,
                                          LFUSER_F64,  LFUSER_C64, LFUSER_C128};
    for (unsigned d = 0; d < COUNT(dtypes); d++) {
        test_program p;
        ck_assert(program_open(
            &p, "(%x: $D[%a, %b], %y: $D[%a, %b]) { %c = ne %x, %y %z = select %c, %x, %y return %z, %c }", dtypes[d]));
        for (unsigned i = 0; i < COUNT(pairs); i++)
            for (unsigned in = 0; in <= LAYOUT_PERMUTED; in += LAYOUT_PERMUTED) {
                case_options o = {.n = 7,
                                  .extents = (const int64_t[]){pairs[i][0], pairs[i][1], 3, 2},
                                  .in = (layout)in,
                                  .given = true,
                                  .out = i % 2 ? LAYOUT_PERMUTED : LAYOUT_DENSE,
                                  .out_step = i % 2 ? N_LAYOUTS - LAYOUT_PERMUTED : LAYOUT_PERMUTED,
                                  .seed = i + 1};
                check_case(&p, &o);
            }
        program_close(&p);
    }
}
END_TEST

// A parameter is overwritten while the other one is turned.
START_TEST(in_place_beside_a_transpose) {
    static const int64_t extents[][2] = {{33, 65}, {64, 128}, {96, 40}};
    lfuser_executable *e =
        compile("fusion @t(%x: f32[%a, %b], %y: f32[%b, %a]) { %p = permute %y, [1, 0] %z = add %x, %p return %z into %x }");
    for (unsigned i = 0; i < COUNT(extents); i++) {
        int64_t a = extents[i][0], b = extents[i][1];
        test_tensor x, y;
        tensor_f32(&x, 2, (int64_t[]){a, b}, 0, 1);
        tensor_f32(&y, 2, (int64_t[]){b, a}, 0, 2);
        lfuser_argument arguments[] = {tensor_argument(&x.view), tensor_argument(&y.view)};
        lfuser_output output = {0};
        ok(lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL));
        tensor_download(&x);
        for (int64_t r = 0; r < a; r++)
            for (int64_t c = 0; c < b; c++)
                ck_assert_float_eq(tensor_f32_at(&x, r * b + c), (float)(r * b + c + 2 * (c * a + r)));
        tensor_check_guards(&x, "x");
        tensor_finish(&x);
        tensor_finish(&y);
    }
    lfuser_executable_destroy(e);
}
END_TEST

// Two results of different order, where only the turned one needs the parameter that the other is written over.
START_TEST(in_place_beside_a_turned_result) {
    static const int64_t extents[][2] = {{17, 34}, {33, 65}, {64, 128}};
    lfuser_executable *e =
        compile("fusion @t(%x: f32[%a, %b], %y: f32[%a, %b]) { %w = add %x, 1 %u = neg %y return %u into %x, %w }");
    for (unsigned i = 0; i < COUNT(extents); i++) {
        test_tensor x, y, w;
        tensor_init(&x, LFUSER_F32, 2, extents[i], LAYOUT_PERMUTED);
        for (int64_t k = 0; k < tensor_numel(&x); k++) memcpy(tensor_element(&x, k), &(float){(float)k}, sizeof(float));
        tensor_upload(&x);
        tensor_f32(&y, 2, extents[i], 0, 2);
        tensor_f32(&w, 2, extents[i], 0, 0);
        lfuser_argument arguments[] = {tensor_argument(&x.view), tensor_argument(&y.view)};
        lfuser_output outputs[] = {{0}, {.tensor = &w.view}};
        ok(lfuser_run(e, env.stream, arguments, 2, outputs, 2, NULL));
        tensor_download(&x);
        tensor_download(&w);
        for (int64_t k = 0; k < tensor_numel(&x); k++) {
            ck_assert_float_eq(tensor_f32_at(&x, k), (float)(-2 * k));
            ck_assert_float_eq(tensor_f32_at(&w, k), (float)(k + 1));
        }
        tensor_check_guards(&x, "x");
        tensor_finish(&x);
        tensor_finish(&y);
        tensor_finish(&w);
    }
    lfuser_executable_destroy(e);
}
END_TEST

static uint32_t widest(const test_program *p) {
    uint32_t vector = 0;
    for (size_t i = 0; i < lfuser_executable_n_kernels(p->executable); i++) {
        lfuser_kernel_info info = {.size = sizeof info};
        ok(lfuser_executable_kernel(p->executable, i, &info));
        if (info.vector > vector) vector = info.vector;
    }
    return vector;
}

// On a GPU: without tiles, elements of a transpose are taken one by one.
START_TEST(transposes_take_vectors_and_few_classes) {
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 100, 128, 160};
    test_program p;
    ck_assert(program_open(&p, "(%x: $D[%a, %b]) { %p = permute %x, [1, 0] %z = neg %p return %z }", LFUSER_F32));
    check_case(&p, &(case_options){.n = 7, .extents = (const int64_t[]){64, 128, 3, 2}});
    if (strcmp(test_device_name(), "cpu")) ck_assert_uint_eq(widest(&p), 4);
    uint64_t before = stats().compiles;
    for (unsigned i = 0; i < COUNT(sizes); i++)
        check_case(&p, &(case_options){.n = 7, .extents = (const int64_t[]){sizes[i], sizes[COUNT(sizes) - 1 - i], 3, 2}});
    ck_assert_uint_le(stats().compiles - before, 4); // one axis, two axes, and tiles of single elements
    program_close(&p);
}
END_TEST

static Suite *make(void) {
    Suite *s = suite_create("api tiles");
    TCase *t = device_tcase(s, "tiles", 300);
    tcase_add_loop_test(t, transposes_of_every_dtype, LFUSER_BOOL, N_DTYPES);
    tcase_add_loop_test(t, permutations_to_rank_5, 0, COUNT(permutations));
    tcase_add_loop_test(t, transposes_among_others, 0, COUNT(mixtures));
    tcase_add_test(t, results_of_different_order);
    tcase_add_test(t, in_place_beside_a_transpose);
    tcase_add_test(t, in_place_beside_a_turned_result);
    tcase_add_test(t, transposes_take_vectors_and_few_classes);
    return s;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
