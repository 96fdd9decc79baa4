// Faults that users of other fusion compilers met, as far as they concern what a program means; those that the other tests of the
// interpreter do not show already. The heading of each case says what went wrong elsewhere.
#include "test_interp_case.h"

typedef struct fault {
    const char *what, *program, *args, *expected;
} fault;

static const fault faults[] = {
    {"dtype of a power with a rank-0 operand", "(%x: u8[]) { %y = pow 2, %x return %y }", "u8[] 17", "u8[] 0"},
    {"select of two literals became f64",
     "(%m: bool[2], %x: f32[2]) { %t = select %m, -0.0, 0.0 %r = add %t, %x return %t, %r }",
     "bool[2] true false; f32[2] 1 2", "f32[2] -0.0 0.0; f32[2] 1 2"},
    {"a host tensor beside a device tensor", "(%x: f32[2], %s: f32[] @host) { %a = mul %x, %s %y = mul %a, %s return %y }",
     "f32[2] 3 4; f32[] 1", "f32[2] 3 4"},
    {"a reduction of a full reduction", "(%x: i64[4]) { %s = sum %x %y = max %s return %y }", "i64[4] 1 2 3 4", "i64[] 10"},
    {"mean of nothing in var_mean", "(%x: f32[0]) { %v, %m = var_mean %x return %v, %m }", "f32[0]", "f32[] nan; f32[] nan"},
    {"mean of nothing along an axis", "(%x: f32[0, 1]) { %v, %m = var_mean %x, axes=[0] return %v, %m }", "f32[0,1]",
     "f32[1] nan; f32[1] nan"},
    {"cat with an empty operand", "(%x: f32[1, 2], %e: f32[1, 0]) { %d = add %x, %x %y = cat %d, %e, axis=-1 return %y }",
     "f32[1,2] 1 2; f32[1,0]", "f32[1,2] 2 4"},
    {"one buffer as input and output",
     "(%a: f32[2]) { %b = add %a, 1.0 %c = add %b, 2.0 %d = mul %a, %b %q = div %d, %c return %b into %a, %q }",
     "f32[2] 1 3", "f32[2] 2 4; f32[2] 0.5 2"},
    {"NaN to i32", "(%x: f32[2]) { %a = asin %x %b = min %a, 0.8 %y = cast %b, dtype=i32 return %y }", "f32[2] 2 4",
     "i32[2] 0 0"},
    {"bf16 chains kept in f32",
     "(%a: bf16[1], %b: bf16[1]) { %s = add %a, %b %t = add %a, %b %e = eq %t, %s return %s, %e }", "bf16[1] 256; bf16[1] 1",
     "bf16[1] 256; bool[1] true"},
    {"argmax along an axis of one", "(%x: f32[3, 1]) { %y = argmax %x, axis=1 return %y }", "f32[3,1] 5 6 7",
     "i64[3] 0 0 0"},
    {"fraction of -0", "(%x: f32[1]) { %f = frac %x %r = reciprocal %f return %r }", "f32[1] -0.0", "f32[1] inf"},
    {"|t| / t below one", "(%t: f32[3]) { %a = abs %t %d = div %a, %t %y = cast %d, dtype=i32 return %y }",
     "f32[3] 1 41 1024", "i32[3] 1 1 1"},
    {"0 to a negative power", "(%x: i64[5], %n: i64) { %y = pow %x, %n %z = pow %x, -1 return %y, %z }",
     "i64[5] -3 -2 -1 0 1; i64 -1", "i64[5] 0 0 -1 0 1; i64[5] 0 0 -1 0 1"},
    {"shift folded in 8 bits", "(%x: u8[1]) { %y = shl %x, 7 return %y }", "u8[1] 3", "u8[1] 128"},
    {"u64 above 2^63", "(%x: u64) { %y = add %x, 9223372036854775808 return %y }", "u64 5", "u64 9223372036854775813"},
    {"bools summed in 8 bits", "(%x: bool[1]) { %e = expand %x, [256] %s = sum %e %a = any %e return %s, %a }",
     "bool[1] true", "i64[] 256; bool[] true"},
    {"count of a variance without its axes of one", "(%x: f64[2, 1]) { %v = var %x, axes=[1] return %v }", "f64[2,1] 1 2",
     "f64[2] nan nan"},
    {"variance as a difference of squares", "(%x: f32[2]) { %v = std %x return %v }", "f32[2] 3e19 3e19", "f32[] 0"},
    {"softmax of a row of infinities", "(%x: f32[2]) { %y = softmax %x, axis=0 return %y }", "f32[2] inf -inf",
     "f32[2] nan nan"},
    {"softmax of a masked row", "(%x: f32[3]) { %y = softmax %x, axis=0 return %y }", "f32[3] -inf -inf -inf",
     "f32[3] nan nan nan"},
    {"softmax with one finite element", "(%x: f32[3]) { %y = softmax %x, axis=0 return %y }", "f32[3] -inf 5 -inf",
     "f32[3] 0 1 0"},
    {"log_softmax of a NaN row", "(%x: f32[3]) { %y = log_softmax %x, axis=0 return %y }", "f32[3] nan inf -inf",
     "f32[3] nan nan nan"},
    {"exp(a)·exp(b) as exp(a + b)", "(%x: f32[1], %y: f32[1]) { %a = exp %x %b = exp %y %c = mul %a, %b return %c }",
     "f32[1] 100; f32[1] -100", "f32[1] inf"},
    {"0·x folded", "(%x: f32[1]) { %z = mul 0.0, %x %c = gt %x, 0.0 %y = select %c, %z, 1.0 return %y }", "f32[1] inf",
     "f32[1] nan"},
    {"tests for NaN removed", "(%x: f32[1]) { %a = isnan %x %b = ne %x, %x return %a, %b }", "f32[1] nan",
     "bool[1] true; bool[1] true"},
    {"square root of a large negative real", "(%x: c128[1]) { %y = sqrt %x return %y }", "c128[1] (-1e40,0)",
     "c128[1] (0,1e20)"},
    {"cat with an axis that is broadcast", "(%x: i8[4, 1], %y: i8[4, 3]) { %z = cat %x, %y, axis=1 return %z }",
     "i8[4,1] 1 2 3 4; i8[4,3] 5 5 5 6 6 6 7 7 7 8 8 8", "i8[4,4] 1 5 5 5 2 6 6 6 3 7 7 7 4 8 8 8"},
    {"dtype of a cat", "(%x: f32[1], %y: f16[0], %z: f64[1]) { %r = cat %x, %y, %z return %r }",
     "f32[1] 0.5; f16[0]; f64[1] 0.1", "f64[2] 0.5 0.1"},
    {"a symbolic extent of 1 that broadcasts",
     "(%x: i64[?], %y: i64[?]) { %a = reshape %x, [-1, 4] %b = reshape %y, [-1, 4] %c = mul %a, %b return %c }",
     "i64[4] 1 2 3 4; i64[8] 1 1 1 1 2 2 2 2", "i64[2,4] 1 2 3 4 2 4 6 8"},
    {"squeeze after a dynamic reshape",
     "(%x: f32[?, ?], %n: i64) { %y = reshape %x, [%n, 4] %z = squeeze %y, axes=[0] return %z }", "f32[2,2] 1 2 3 4; i64 1",
     "f32[4] 1 2 3 4"},
    {"random values by thread",
     "(%x: f32[2, 2]) { %u = uniform [2], 0.0, 1.0, 7, 3 %z = sub %u, %u %y = add %x, %z return %y }", "f32[2,2] 1 2 3 4",
     "f32[2,2] 1 2 3 4"},
    {"log_softmax, dropout: +0 for what is dropped", "(%x: f32[2]) { %y, %m = dropout %x, 1.0, 0, 0 return %y, %m }",
     "f32[2] nan -1", "f32[2] 0 0; bool[2] false false"},
};

START_TEST(fault_is_impossible) { check_case(faults[_i].program, faults[_i].args, faults[_i].expected); }
END_TEST

START_TEST(refused) {
    // An axis that is not there; an ambiguous extent; a one-sided crop beyond the extent; a squeeze of 2; an xor of floats.
    check_error("(%x: f32[1, 1]) { %y = var %x, axes=[1, 2] return %y }", "f32[1,1] 1", LF_INVALID_PROGRAM, "2");
    check_error("(%x: f32[?]) { %y = reshape %x, [0, -1] return %y }", "f32[0]", LF_INVALID_PROGRAM, "ambiguous");
    check_error("(%x: f32[?], %l: i64) { %y = pad %x, [%l], [1], 0.0 return %y }", "f32[2] 1 2; i64 -3", LF_FAILED_CHECK,
                "-3");
    check_error("(%x: f32[?, ?], %n: i64) { %y = reshape %x, [%n, 4] %z = squeeze %y, axes=[0] return %z }",
                "f32[2,4] 1 2 3 4 5 6 7 8; i64 2", LF_FAILED_CHECK, "2");
    check_error("(%x: f32[?]) { %y = xor %x, %x return %y }", "f32[1] 1", LF_INVALID_PROGRAM, "xor");
    check_error("(%x: u64[1], %y: i64[1]) { %z = add %x, %y return %z }", "u64[1] 1; i64[1] 1", LF_INVALID_PROGRAM, "cast");
}
END_TEST

// A sum that stops growing; a mean that rounds to nothing.
START_TEST(long_half_sums) {
    enum { N = 4096 };
    static uint16_t ones[N];
    for (size_t i = 0; i < N; i++) ones[i] = 0x3c00;
    lf_array x = {.dtype = LF_F16, .tensor = true, .rank = 1, .shape = {N}, .strides = {1}, .data = ones};
    lf_interp_result *r;
    lf_status s = run_program("(%x: f16[?]) { %s = sum %x %c = cumsum %x, axis=0 return %s, %c }", &x, 1, &r);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    ck_assert_float_eq(lf_half_to_f32(LF_F16, *(const uint16_t *)r->outputs[0].data), N);
    ck_assert_float_eq(lf_half_to_f32(LF_F16, ((const uint16_t *)r->outputs[1].data)[N - 1]), N);
    lf_interp_result_destroy(r);
}
END_TEST

// A chain of 5000 ops.
START_TEST(long_chain) {
    enum { LENGTH = 5000 };
    char *text = malloc(LENGTH * 32 + 256), *p = text;
    p += sprintf(p, "fusion @t(%%v0: f32[?]) {\n");
    for (int i = 0; i < LENGTH; i++) p += sprintf(p, "%%v%d = neg %%v%d\n", i + 1, i);
    sprintf(p, "return %%v%d }", LENGTH);
    lf_graph **graphs;
    size_t n;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", text, strlen(text), false, &graphs, &n);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    test_values in = read_values("f32[2] 1 -2");
    lf_interp_result *r;
    s = lf_interp_run(graphs[0], in.at, in.n, &lf_system_allocator, &r);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    ck_assert_mem_eq(r->outputs[0].data, ((float[]){1, -2}), 8);
    lf_interp_result_destroy(r);
    free_values(&in);
    lf_parse_release(&lf_system_allocator, graphs, n);
    free(text);
}
END_TEST

int main(void) {
    Suite *s = suite_create("interp_faults");
    TCase *t = tcase_create("faults");
    tcase_add_loop_test(t, fault_is_impossible, 0, sizeof faults / sizeof *faults);
    tcase_add_test(t, refused);
    tcase_add_test(t, long_half_sums);
    tcase_add_test(t, long_chain);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
