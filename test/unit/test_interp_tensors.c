// The reference evaluator on whole tensors: reductions in the canonical order, scans, order, shape and indexing ops, random
// numbers, contractions, checks, errors.
#include "test_interp_case.h"
#include <fenv.h>
#include <math.h>

// ---- The canonical order, once more ---------------------------------------------------------------------------------

// As language.md says it: padded with the neutral element, bit after bit of the index.
static float pairwise_f32(float *v, size_t n, bool sum) {
    static const unsigned bits[] = {12, 11, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    size_t chunks = (n + 8191) / 8192;
    float *padded = malloc(chunks * 8192 * sizeof *padded), *results = malloc(chunks * sizeof *results);
    for (size_t i = 0; i < chunks * 8192; i++) padded[i] = i < n ? v[i] : sum ? -0.0f : 1.0f;
    for (size_t c = 0; c < chunks; c++) {
        float *p = padded + c * 8192;
        for (unsigned b = 0; b < 13; b++)
            for (size_t i = 0; i < 8192; i++) {
                size_t partner = i ^ ((size_t)1 << bits[b]);
                if (partner > i) p[i] = sum ? p[i] + p[partner] : p[i] * p[partner];
                // The upper one is dead from now on; writing it too keeps the loop free of bookkeeping.
                if (partner > i) p[partner] = p[i];
            }
        results[c] = p[0];
    }
    float r = chunks > 1 ? pairwise_f32(results, chunks, sum) : results[0];
    free(padded);
    free(results);
    return r;
}

static float noise(uint32_t i) {
    uint32_t x = i * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (float)(int32_t)x * 0x1p-31f;
}

static const size_t sizes[] = {1, 2, 7, 64, 1023, 1025, 4097, 8191, 8192, 8193, 16384, 70001};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static const void *first_output(lf_interp_result *r) { return r->outputs[0].data; }

START_TEST(float_sums_and_products_follow_the_canonical_order) {
    for (size_t k = 0; k < N_SIZES; k++) {
        size_t n = sizes[k];
        float *v = malloc(2 * n * sizeof *v), *near_one = malloc(n * sizeof *near_one);
        for (size_t i = 0; i < 2 * n; i++) v[i] = noise((uint32_t)i);
        for (size_t i = 0; i < n; i++) near_one[i] = 1 + v[i] * 0.0001f;
        lf_array x = {.dtype = LF_F32, .tensor = true, .rank = 1, .shape = {(int64_t)n}, .strides = {1}, .data = v};
        lf_array y = x;
        y.data = near_one;
        lf_interp_result *r;
        lf_status s =
            run_program("(%x: f32[?], %y: f32[?]) { %s = sum %x %p = prod %y return %s, %p }", (lf_array[]){x, y}, 2, &r);
        ck_assert_msg(!s, "%s", lf_status_message(s));
        ck_assert_float_eq(*(const float *)r->outputs[0].data, pairwise_f32(v, n, true));
        ck_assert_float_eq(*(const float *)r->outputs[1].data, pairwise_f32(near_one, n, false));
        lf_interp_result_destroy(r);
        // Every second element, from the end: only the reduced elements count.
        x.strides[0] = -2;
        x.data = v + 2 * (n - 1);
        s = run_program("(%x: f32[?]) { %s = sum %x return %s }", &x, 1, &r);
        ck_assert_msg(!s, "%s", lf_status_message(s));
        for (size_t i = 0; i < n; i++) near_one[i] = v[2 * (n - 1 - i)];
        ck_assert_float_eq(*(const float *)first_output(r), pairwise_f32(near_one, n, true));
        lf_interp_result_destroy(r);
        free(v);
        free(near_one);
    }
}
END_TEST

START_TEST(columns_and_rows_are_summed_alike) {
    enum { ROWS = 1025, COLUMNS = 5 };
    static float v[ROWS * COLUMNS], column[ROWS];
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) v[i] = noise(i);
    lf_array x = {.dtype = LF_F32, .tensor = true, .rank = 2, .shape = {ROWS, COLUMNS}, .strides = {COLUMNS, 1}, .data = v};
    lf_interp_result *r;
    lf_status s = run_program("(%x: f32[?, ?]) { %s = sum %x, axes=[0] %a = sum %x return %s, %a }", &x, 1, &r);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    for (size_t c = 0; c < COLUMNS; c++) {
        for (size_t i = 0; i < ROWS; i++) column[i] = v[i * COLUMNS + c];
        ck_assert_float_eq(((const float *)r->outputs[0].data)[c], pairwise_f32(column, ROWS, true));
    }
    ck_assert_float_eq(*(const float *)r->outputs[1].data, pairwise_f32(v, ROWS * COLUMNS, true));
    lf_interp_result_destroy(r);
}
END_TEST

START_TEST(sums_of_other_dtypes) {
    check_op("sum", "i32[2] 2147483647 2147483647", "i64[] 4294967294");
    check_op("sum", "bool[3] true true true", "i64[] 3");
    check_op("sum", "u64[2] 18446744073709551615 2", "u64[] 1");
    check_op("sum, dtype=i8", "i32[2] 100 100", "i8[] -56");
    check_op("prod", "i8[3] 100 100 100", "i64[] 1000000");
    check_op("sum", "c64[2] (1,2) (3,4)", "c64[] (4,6)");
    check_op("prod", "c64[2] (1,2) (3,4)", "c64[] (-5,10)");
    check_op("prod", "c64[3] (inf,0) (1,0) (1,0)", "c64[] (nan,nan)");
    check_op("prod", "c64[1] (inf,0)", "c64[] (inf,0)"); // a neutral partner changes nothing
    check_op("sum, axes=[1]", "f32[2,3] 1 2 3 4 5 6", "f32[2] 6 15");
    check_op("sum, axes=[0], keepdim=true", "f32[2,3] 1 2 3 4 5 6", "f32[1,3] 5 7 9");
    check_op("sum, axes=[0, 2]", "i64[2,2,2] 1 2 3 4 5 6 7 8", "i64[2] 14 22");
    check_op("sum, axes=[]", "f32[2] 1 2", "f32[2] 1 2");
    check_op("sum", "f32[2] -0.0 -0.0", "f32[] -0.0");
    check_op("mean", "f16[4] 60000 60000 60000 60000", "f16[] 60000");
    check_op("var", "f32[2] 2281.5 2281.25", "f32[] 0.03125");
}
END_TEST

START_TEST(half_sums_accumulate_in_f32) {
    enum { N = 70000 };
    static uint16_t ones[N];
    for (size_t i = 0; i < N; i++) ones[i] = 0x3f80;
    lf_array x = {.dtype = LF_BF16, .tensor = true, .rank = 1, .shape = {N}, .strides = {1}, .data = ones};
    lf_interp_result *r;
    lf_status s = run_program("(%x: bf16[?]) { %s = sum %x %m = mean %x return %s, %m }", &x, 1, &r);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    ck_assert_float_eq(lf_half_to_f32(LF_BF16, *(const uint16_t *)r->outputs[0].data), 70144);
    ck_assert_float_eq(lf_half_to_f32(LF_BF16, *(const uint16_t *)r->outputs[1].data), 1);
    lf_interp_result_destroy(r);
}
END_TEST

// Three levels of chunks: 8192 chunk results and one more.
START_TEST(chunk_results_are_reduced_by_the_same_rule) {
    check_case("(%x: f32[1]) { %e = expand %x, [67117056] %s = sum %e return %s }", "f32[1] 1", "f32[] 67117056");
    check_case("(%x: f32[1]) { %e = expand %x, [67108864] %s = sum %e return %s }", "f32[1] 1", "f32[] 67108864");
    check_case("(%x: i64[1]) { %e = expand %x, [70000000] %s = sum %e return %s }", "i64[1] 3", "i64[] 210000000");
}
END_TEST

START_TEST(empty_reductions) {
    check_op("sum, axes=[0]", "f32[0,2]", "f32[2] 0 0");
    check_op("prod, axes=[0]", "f32[0,2]", "f32[2] 1 1");
    check_op("any, axes=[0]", "f32[0,1]", "bool[1] false");
    check_op("all, axes=[0]", "f32[0,1]", "bool[1] true");
    check_op("mean, axes=[0]", "f32[0,2]", "f32[2] nan nan");
    check_op("max, axes=[0]", "f32[0,0]", "f32[0]");
    check_op("sum, axes=[1]", "i8[2,0]", "i64[2] 0 0");
    check_error("(%x: f32[?]) { %r = max %x return %r }", "f32[0]", LF_FAILED_CHECK, "max");
    check_error("(%x: f32[?]) { %r = argmin %x return %r }", "f32[0]", LF_FAILED_CHECK, "argmin");
}
END_TEST

START_TEST(extremes) {
    check_op("max", "f32[4] nan nan nan 42", "f32[] nan");
    check_op("max", "f32[2] -inf -inf", "f32[] -inf");
    check_op("min", "f32[2] 0 -0.0", "f32[] -0.0");
    check_op("max", "f16[3] -0.0 0 -1", "f16[] 0");
    check_op("min, axes=[1]", "u8[2,2] 200 3 4 5", "u8[2] 3 4");
    check_op("max", "bool[2] false true", "bool[] true");
    check_op("argmax", "i32[3] 3 4 4", "i64[] 1");
    check_op("argmax", "f32[3] 6 nan 8", "i64[] 1");
    check_op("argmin", "f32[4] 6 nan -8 nan", "i64[] 1");
    check_op("argmin", "f32[3] 0 -0.0 1", "i64[] 0");
    check_op("argmin", "i64[2] -9223372036854775808 5", "i64[] 0");
    check_op("argmax, axis=1, keepdim=true", "f64[2,3] 1 3 2 5 4 5", "i64[2,1] 1 0");
    check_op("any, axes=[1]", "f32[3,2] 0 -0.0 0 nan 1 0", "bool[3] false true true");
    check_op("all, axes=[1]", "c64[2,2] (0,1) (1,0) (0,0) (1,1)", "bool[2] true false");
    check_op("count_nonzero", "bf16[3] 0 2 nan", "i64[] 2");
    // Every position of a NaN, on both sides of a block.
    static float v[1030];
    for (size_t at = 0; at < 1030; at += 103) {
        for (size_t i = 0; i < 1030; i++) v[i] = i == at ? (float)NAN : (float)i;
        lf_array x = {.dtype = LF_F32, .tensor = true, .rank = 1, .shape = {1030}, .strides = {1}, .data = v};
        lf_interp_result *r;
        lf_status s = run_program("(%x: f32[?]) { %m = max %x %i = argmin %x return %m, %i }", &x, 1, &r);
        ck_assert_msg(!s, "%s", lf_status_message(s));
        ck_assert(isnan(*(const float *)r->outputs[0].data));
        ck_assert_int_eq(*(const int64_t *)r->outputs[1].data, (int64_t)at);
        lf_interp_result_destroy(r);
    }
}
END_TEST

// ---- Scans and order --------------------------------------------------------------------------------------------------

START_TEST(scans) {
    check_op("cumsum, axis=0", "f64[3] inf inf inf", "f64[3] inf inf inf");
    check_op("cumsum, axis=1", "i8[2,3] 100 100 100 1 2 3", "i64[2,3] 100 200 300 1 3 6");
    check_op("cumsum, axis=0", "i8[2,3] 100 100 100 1 2 3", "i64[2,3] 100 100 100 101 102 103");
    check_op("cumsum, axis=0", "f16[3] 2048 1 1", "f16[3] 2048 2048 2050"); // summed in f32
    check_op("cumprod, axis=0", "u64[2] 18446744073709551615 2", "u64[2] 18446744073709551615 18446744073709551614");
    check_op("cumprod, axis=0", "c64[2] (0,1) (0,1)", "c64[2] (0,1) (-1,0)");
    check_op("cumsum, axis=0", "f32[2] -0.0 -0.0", "f32[2] -0.0 -0.0");
    check_op("cumsum, axis=0", "f32[] 5", "f32[] 5");
    check_case("(%x: f32[?]) { %v, %i = cummax %x, axis=0 return %v, %i }", "f32[6] 1 1 0 nan 5 nan",
               "f32[6] 1 1 1 nan nan nan; i64[6] 0 1 1 3 3 5");
    check_case("(%x: i8[?]) { %v, %i = cummin %x, axis=0 return %v, %i }", "i8[4] 3 -1 5 -1",
               "i8[4] 3 -1 -1 -1; i64[4] 0 1 1 3");
    check_op("logcumsumexp, axis=0", "f32[4] -inf -inf 0 nan", "f32[4] -inf -inf 0 nan");
    check_op("logcumsumexp, axis=0", "f64[3] inf 1 -inf", "f64[3] inf inf inf");
    check_case("(%x: f32[2]) { %a = cumsum %x, axis=0 %i = cast %a, dtype=i32 %j = cast %x, dtype=i32 %b = cumsum "
               "%j, axis=0 "
               "return %i, %b }",
               "f32[2] 0.9201 0.1166", "i32[2] 0 1; i64[2] 0 0");
}
END_TEST

START_TEST(sorting) {
    const char *sort = "(%x: f32[?]) { %v, %i = sort %x return %v, %i }";
    const char *down = "(%x: f32[?]) { %v, %i = sort %x, descending=true return %v, %i }";
    check_case(sort, "f32[7] nan 0 -0.0 inf -inf nan 0", "f32[7] -inf 0 -0.0 0 inf nan nan; i64[7] 4 1 2 6 3 0 5");
    check_case(down, "f32[7] nan 0 -0.0 inf -inf nan 0", "f32[7] nan nan inf 0 -0.0 0 -inf; i64[7] 0 5 3 1 2 6 4");
    check_case("(%x: i64[?, ?]) { %v, %i = sort %x, axis=0 return %v, %i }", "i64[3,2] 3 -1 1 -5 2 7",
               "i64[3,2] 1 -5 2 -1 3 7; i64[3,2] 1 1 2 0 0 2");
    check_case("(%x: u8[?]) { %v, %i = topk %x, 2 return %v, %i }", "u8[5] 3 200 7 200 1", "u8[2] 200 200; i64[2] 1 3");
    check_case("(%x: bf16[?, ?]) { %v, %i = topk %x, 1, axis=0, largest=false return %v, %i }", "bf16[2,2] 3 -1 nan -2",
               "bf16[1,2] 3 -2; i64[1,2] 0 1");
    check_op("argsort", "bool[4] true false true false", "i64[4] 1 3 0 2");
    check_error("(%x: f32[?], %k: i64) { %v, %i = topk %x, %k return %v, %i }", "f32[2] 1 2; i64 3", LF_FAILED_CHECK,
                "topk");
}
END_TEST

// ---- Shapes and indices -------------------------------------------------------------------------------------------------

START_TEST(shapes) {
    check_case("(%x: i32[?, ?], %a: i64, %b: i64) { %y = reshape %x, [%a, %b] return %y }",
               "i32[2,3]{1,2}@0 1 4 2 5 3 6; i64 3; i64 2", "i32[3,2] 1 2 3 4 5 6");
    check_error("(%x: i32[?], %a: i64) { %y = reshape %x, [%a, 2] return %y }", "i32[3] 1 2 3; i64 2", LF_FAILED_CHECK,
                "reshape");
    check_op("flip", "i8[2,2] 1 2 3 4", "i8[2,2] 4 3 2 1");
    check_op("flip", "i8[0,2]", "i8[0,2]");
    check_case("(%x: i8[?, ?]) { %y = permute %x, [1, 0] %z = flip %y, axes=[0] return %z }", "i8[2,2] 1 2 3 4",
               "i8[2,2] 2 4 1 3");
    check_case("(%x: i8[?]) { %y = broadcast %x, [2, 3], dims=[0] return %y }", "i8[2] 1 2", "i8[2,3] 1 1 1 2 2 2");
    check_case("(%x: f32[?], %s: i64, %e: i64) { %y = slice %x, [%s], [%e], none return %y }",
               "f32[9] 0 1 2 3 4 5 6 7 8; i64 5; i64 100", "f32[4] 5 6 7 8");
    check_case("(%x: f32[?], %s: i64, %e: i64) { %y = slice %x, [%s], [%e], none return %y }",
               "f32[9] 0 1 2 3 4 5 6 7 8; i64 11; i64 13", "f32[0]");
    check_case("(%x: f32[?]) { %y = slice %x, [-7], [-1], [3] return %y }", "f32[9] 0 1 2 3 4 5 6 7 8", "f32[2] 2 5");
    check_case("(%x: i8[?]) { %y = pad %x, [-1], [2], 9 return %y }", "i8[3] 1 2 3", "i8[4] 2 3 9 9");
    check_case("(%x: f32[?]) { %y = pad %x, [-2], [2], 7.0 return %y }", "f32[2] 1 2", "f32[2] 7 7");
    check_case("(%x: i8[?, ?]) { %y = pad %x, [1, 0], [0, 1], 0 return %y }", "i8[1,2] 1 2", "i8[2,3] 0 0 0 1 2 0");
    check_case("(%x: f32[?, ?], %y: f64[?, ?]) { %z = cat %x, %x, %y, axis=1 return %z }", "f32[2,1] 1 2; f64[2,0]",
               "f64[2,2] 1 1 2 2");
    check_case("(%x: i8[?], %y: i8[?]) { %z = stack %x, %y, axis=1 return %z }", "i8[2] 1 2; i8[2] 3 4", "i8[2,2] 1 3 2 4");
    check_case("(%x: i8[?, ?]) { %z = repeat %x, [2, 1, 2] return %z }", "i8[2,2] 1 2 3 4",
               "i8[2,2,4] 1 2 1 2 3 4 3 4 1 2 1 2 3 4 3 4");
    check_case("(%x: i8[?]) { %z = roll %x, [4], axes=[0] %w = slice %z, [0], [4], none return %z, %w }",
               "i8[9] 0 10 20 30 40 50 60 70 80", "i8[9] 50 60 70 80 0 10 20 30 40; i8[4] 50 60 70 80");
    check_case("(%x: i8[?, ?]) { %z = roll %x, [-1, 100], axes=[0, 1] return %z }", "i8[2,3] 1 2 3 4 5 6",
               "i8[2,3] 6 4 5 3 1 2");
    check_op("triu, diagonal=1", "i8[2,3] 1 2 3 4 5 6", "i8[2,3] 0 2 3 0 0 6");
    check_op("tril", "i8[2,2,2] 1 2 3 4 5 6 7 8", "i8[2,2,2] 1 0 3 4 5 0 7 8");
}
END_TEST

START_TEST(indices) {
    check_case("(%x: f32[?, ?], %i: i64[?]) { %y = take %x, %i, axis=1 return %y }", "f32[2,3] 1 2 3 4 5 6; i64[3] -1 0 2",
               "f32[2,3] 3 1 3 6 4 6");
    check_indexing("(%x: f32[?, ?], %i: i32[?]) { %y = take %x, %i, axis=0 return %y }", "f32[2,2] 1 2 3 4; i32[3] 1 5 -3",
                   "f32[3,2] 3 4 0 0 0 0", "take: index 5 is outside extent 2");
    check_case("(%x: i8[?, ?], %i: i64[?, ?]) { %y = gather %x, %i, axis=0 return %y }",
               "i8[3,2] 1 2 3 4 5 6; i64[2,1] 2 -3", "i8[2,1] 5 1");
    check_indexing("(%x: f32[?], %i: i64[?]) { %y = gather %x, %i, axis=0 return %y }", "f32[0]; i64[1] 0", "f32[1] 0",
                   "gather: index 0 is outside extent 0");
    check_case("(%x: i8[?, ?], %i: i64) { %y = index %x, %i, axis=0 return %y }", "i8[2,2] 1 2 3 4; i64 -1", "i8[2] 3 4");
    check_indexing("(%x: i8[?, ?], %i: i64) { %y = index %x, %i, axis=1 return %y }", "i8[2,2] 1 2 3 4; i64 2", "i8[2] 0 0",
                   "t.lf:1:");
    check_indexing("(%i: i64[?]) { %y = onehot %i, 3 return %y }", "i64[3] 1 -1 7", "i64[3,3] 0 1 0 0 0 1 0 0 0", "index 7");
    const char *scatter = "(%x: i64[?], %i: i64[?], %s: i64[?]) { %y = scatter %x, %i, %s, axis=0 return %y }";
    check_case(scatter, "i64[9] 1 2 3 4 5 6 7 8 9; i64[5] 0 1 1 1 2; i64[5] 11 12 13 14 15", "i64[9] 11 14 15 4 5 6 7 8 9");
    check_indexing(scatter, "i64[2] 1 2; i64[2] -2 4294967280; i64[2] 5 6", "i64[2] 5 2", "scatter: index 4294967280");
    check_case("(%x: f16[?], %i: i64[?]) { %y = scatter %x, %i, 1.0, axis=0, mode=add return %y }",
               "f16[1] 2048; i64[2] 0 0",
               "f16[1] 2048"); // each update rounds
    check_case("(%x: bool[?], %i: i64[?]) { %y = scatter %x, %i, true, axis=0, mode=max return %y }",
               "bool[2] false false; i64[1] 1", "bool[2] false true");
    check_case("(%x: u8[?], %i: i64[?], %s: u8[?]) { %y = scatter %x, %i, %s, axis=0, mode=mul return %y }",
               "u8[2] 100 3; i64[2] 0 1; u8[2] 3 7", "u8[2] 44 21");
    check_case("(%x: f64[?, ?], %i: i64[?]) { %g = take %x, %i, axis=0 %a = add %g, %g %j = broadcast %i, [2, 2], dims=[0] "
               "%y = scatter %x, %j, %a, axis=0 return %y }",
               "f64[1,2] -0.8716 0.1114; i64[2] 0 0", "f64[1,2] -1.7432 0.2228");
}
END_TEST

START_TEST(creation) {
    check_case("() { %x = full [2], 3.0 %i = iota 3, 1, 2 %e = eye 2, 3 %t = tensor [[1, 2], [3, 4]], dtype=u8 return "
               "%x, %i, %e, %t }",
               "", "f32[2] 3 3; i64[3] 1 3 5; f32[2,3] 1 0 0 0 1 0; u8[2,2] 1 2 3 4");
    check_case("() { %i = iota 9, 0, 1 %x = mul %i, 1500000000 %y = slice %x, [8], [9], none return %y }", "",
               "i64[1] 12000000000");
    check_case("(%a: i8, %s: i8) { %i = iota 4, %a, %s return %i }", "i8 100; i8 100", "i8[4] 100 -56 44 -112");
    check_case("() { %i = iota 3, 0.5, 0.1, dtype=f16 return %i }", "", "f16[3] 0.5 0.6 0.7");
    check_case("(%n: i64) { %z = full [3], 0.0 %x = add %z, %n %y = full [2], %n return %x, %y }", "i64 5",
               "f32[3] 5 5 5; i64[2] 5 5");
}
END_TEST

// Known answers of Philox-4x32-10: key 0, counter 0 gives 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
START_TEST(random_numbers) {
    static const uint32_t words[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    lf_interp_result *r;
    lf_status s = run_program("() { %a = uniform [4], 0.0, 1.0, 0, 0 %b = uniform [1], 0.0, 1.0, 0, 0, dtype=f64 "
                              "%c = uniform [4], 0.0, 1.0, 0, 0, dtype=bf16 %d = uniform [3], 0.0, 1.0, 0, 1 "
                              "%n = normal [2], 0.0, 1.0, 0, 0 %e = uniform [1], 0.0, 1.0, 0, 4294967297 return %a, "
                              "%b, %c, %d, %n, %e }",
                              NULL, 0, &r);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    const float *a = r->outputs[0].data, *d = r->outputs[3].data, *z = r->outputs[4].data;
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_float_eq(a[i], (float)(words[i] >> 8) * 0x1p-24f);
        float c = lf_half_to_f32(LF_BF16, ((const uint16_t *)r->outputs[2].data)[i]);
        ck_assert_float_eq(c, (float)(words[i] >> 24) * 0x1p-8f);
    }
    ck_assert_double_eq(*(const double *)r->outputs[1].data,
                        (double)(((uint64_t)words[0] << 32 | words[1]) >> 11) * 0x1p-53);
    ck_assert_mem_eq(d, a + 1, 3 * sizeof *d); // the offset moves along
    ck_assert_float_ne(*(const float *)r->outputs[5].data, a[1]);
    double u1 = (double)a[0] + 0x1p-24, u2 = (double)a[1], radius = sqrt(-2 * log(u1));
    ck_assert_double_eq_tol((double)z[0], radius * cos(6.283185307179586 * u2), 1e-6);
    ck_assert_double_eq_tol((double)z[1], radius * sin(6.283185307179586 * u2), 1e-6);
    lf_interp_result_destroy(r);
}
END_TEST

START_TEST(contractions) {
    check_op("matmul", "i8[2,2] 1 2 3 100; i8[2,1] 1 2", "i8[2,1] 5 -53");
    check_op("matmul", "f32[3] 1 2 3; f32[3] 4 5 6", "f32[] 32");
    check_op("matmul", "f64[2] 1 2; f64[2,2] 1 2 3 4", "f64[2] 7 10");
    check_op("matmul", "f32[2,1,2] 1 2 3 4; f32[2,2] 1 0 0 1", "f32[2,1,2] 1 2 3 4");
    check_op("matmul", "f32[2,2,1] 1 2 3 4; f32[1,1,1] 10", "f32[2,2,1] 10 20 30 40");
    check_op("matmul", "c64[1,1] (1,2); c64[1,1] (3,4)", "c64[1,1] (-5,10)");
    check_op("matmul", "f32[2,0]; f32[0,2]", "f32[2,2] 0 0 0 0");
    check_op("matmul", "f32[4] 1e8 1 -1e8 1; f32[4] 1 1 1 1", "f32[] 0");     // the order of sums, not one after the other
    check_op("matmul", "f16[1,3] 2048 1 1; f16[3,1] 1 1 1", "f16[1,1] 2050"); // in f32, rounded once
    check_case("(%x: f32[?, ?], %w: f32[?, ?], %b: f32[?]) { %y = linear %x, %w, %b return %y }",
               "f32[1,2] 1 2; f32[1,2] 3 4; f32[1] 100", "f32[1,1] 111");
}
END_TEST

START_TEST(scalars_and_tensors) {
    check_case("(%t: f32[?, ?], %s: i64) { %n = numel %t %m = add %n, %s %i = item %t %k = mul %i, 2.0 "
               "%u = scalar_tensor %k return %m, %u }",
               "f32[1,1] 3; i64 4", "i64 5; f32[] 6");
    check_error("(%t: f32[?]) { %i = item %t return %i }", "f32[2] 1 2", LF_FAILED_CHECK, "item");
    check_case("(%a: f32[] @host) { %b = add %a, 3.0 return %b }", "f32[] 2", "f32[] 5");
    check_case("(%x: f32[?]) { return %x, %x }", "f32[2] 1 2", "f32[2] 1 2; f32[2] 1 2");
    check_case("(%x: f32[?]) { %y = neg %x %z = add %y, %x return %y into %x, %z }", "f32[2] 1 2",
               "f32[2] -1 -2; f32[2] 0 0");
}
END_TEST

// ---- Errors -------------------------------------------------------------------------------------------------------------

START_TEST(wrong_arguments) {
    const char *p = "(%x: f32[?], %s: i64) { %y = neg %x return %y, %s }";
    check_error(p, "f32[1] 1", LF_INVALID_ARGUMENT, "2 parameters, 1 arguments");
    check_error(p, "f64[1] 1; i64 1", LF_INVALID_ARGUMENT, "argument 0 (%x): expected dtype f32, found f64");
    check_error(p, "f32[1,1] 1; i64 1", LF_INVALID_ARGUMENT, "argument 0 (%x): expected rank 1, found rank 2");
    check_error(p, "f32[1] 1; i64[1] 1", LF_INVALID_ARGUMENT, "argument 1 (%s): expected a scalar, found a tensor");
    check_error(p, "f32 1; i64 1", LF_INVALID_ARGUMENT, "argument 0 (%x): expected a tensor, found a scalar");
    check_error("(%x: f32[3]) { return %x }", "f32[2] 1 2", LF_FAILED_CHECK, "2");
    check_error("(%x: f32[%n], %y: f32[%n]) { return %x, %y }", "f32[2] 1 2; f32[1] 1", LF_FAILED_CHECK, "1");
    lf_array x = {.dtype = LF_F32, .tensor = true, .rank = 1, .shape = {-1}, .strides = {1}};
    lf_interp_result *r;
    lf_status s = run_program("(%x: f32[?]) { return %x }", &x, 1, &r);
    ck_assert_int_eq(lf_status_code(s), LF_INVALID_ARGUMENT);
    lf_status_destroy(s);
    x.shape[0] = 3; // and no data
    s = run_program("(%x: f32[?]) { return %x }", &x, 1, &r);
    ck_assert_int_eq(lf_status_code(s), LF_INVALID_ARGUMENT);
    lf_status_destroy(s);
}
END_TEST

START_TEST(checks) {
    const char *p = "(%a: i64, %b: i64) { %c = lt %a, %b assert %c, \"a must be below b\" return %c }";
    check_case(p, "i64 1; i64 2", "bool true");
    check_error(p, "i64 2; i64 2", LF_FAILED_CHECK, "a must be below b");
    // Before any tensor is made, however large.
    check_error("(%n: i64, %c: bool) { %x = full [%n, %n], 0.0 assert %c, \"no\" return %x }",
                "i64 4611686018427387904; bool false", LF_FAILED_CHECK, "no");
    check_error("(%n: i64) { %x = full [%n, %n, %n], 0.0 return %x }", "i64 4611686018427387904", LF_OUT_OF_MEMORY, "");
    check_case("(%n: i64) { %x = full [%n, 0, %n], 0.0 return %x }", "i64 1099511627776",
               "f32[1099511627776,0,1099511627776]");
    check_error("(%n: i64) { %x = full [%n], 0.0 return %x }", "i64 -3", LF_FAILED_CHECK, "-3");
    check_error("(%x: f32[?], %y: f32[?]) { %z = add %x, %y return %z }", "f32[2] 1 2; f32[3] 1 2 3", LF_FAILED_CHECK, "3");
}
END_TEST

// Without elements there need not be memory.
START_TEST(no_memory_for_no_elements) {
    lf_array x = {.dtype = LF_F32, .tensor = true, .rank = 2, .shape = {2, 0}, .strides = {0, 1}};
    lf_array b = {.dtype = LF_BOOL, .tensor = true, .rank = 2, .shape = {0, 3}, .strides = {3, 1}};
    lf_array i = {.dtype = LF_I64, .tensor = true, .rank = 2, .shape = {2, 0}, .strides = {1, 1}};
    lf_interp_result *r;
    lf_status s = run_program(
        "(%x: f32[?, ?], %b: bool[?, ?], %i: i64[?, ?]) { %e = exp %x %s = sum %x, axes=[1] %a = all %b, axes=[0] "
        "%t = permute %x, [1, 0] %m = matmul %x, %t %c = cat %x, %e, axis=0 %p = pad %x, [0, 1], [0, 0], 7.0 "
        "%g = gather %x, %i, axis=1 %u = scatter %x, %i, 1.0, axis=1 %v, %q = sort %x %k = cumsum %x, axis=0 "
        "%n = softmax %x, axis=1 %h = cast %b, dtype=c64 %z = reshape %t, [0, 2] %w = roll %x, [1], axes=[1] "
        "%f = flip %x %l = slice %x, [0, 0], [2, 5], none %y = max %x, axes=[0] "
        "return %s, %a, %m, %c, %p, %g, %u, %v, %k, %n, %h, %z, %w, %f, %l, %x, %y, %q }",
        (lf_array[]){x, b, i}, 3, &r);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    ck_assert_mem_eq(r->outputs[0].data, ((float[]){0, 0}), 8);
    ck_assert_mem_eq(r->outputs[1].data, ((uint8_t[]){1, 1, 1}), 3);
    ck_assert_mem_eq(r->outputs[2].data, ((float[]){0, 0, 0, 0}), 16);
    ck_assert_mem_eq(r->outputs[4].data, ((float[]){7, 7}), 8);
    lf_interp_result_destroy(r);
}
END_TEST

// The caller's rounding mode and flush-to-zero bits neither matter nor change.
START_TEST(floating_point_state) {
    const char *program = "(%x: f32[?], %y: f32[?]) { %p = mul %x, %y %r = round %x %s = sum %x return %p, %r, %s }";
    test_values in = read_values("f32[3] 1e-30 2.5 1.6777216e7; f32[3] 1e-10 1.1 1.1");
    test_values want = read_values("f32[3] 1e-40 2.75 1.8454938e7; f32[3] 0 2 1.6777216e7; f32[] 1.6777218e7");
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040); // flush to zero, denormals are zero
    fesetround(FE_UPWARD);
    lf_interp_result *r;
    lf_status s = run_program(program, in.at, in.n, &r);
    int mode = fegetround();
    unsigned after = __builtin_ia32_stmxcsr();
    fesetround(FE_TONEAREST);
    __builtin_ia32_ldmxcsr(before);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    ck_assert_int_eq(mode, FE_UPWARD);
    ck_assert_uint_eq(after & 0x8040, 0x8040);
    for (size_t i = 0; i < want.n; i++) check_output(program, i, &r->outputs[i], &want.at[i]);
    lf_interp_result_destroy(r);
    free_values(&in);
    free_values(&want);
}
END_TEST

// Every allocation may fail, and nothing leaks (the sanitizers look on).
typedef struct failing {
    size_t left;
} failing;

static void *failing_alloc(void *self, size_t size) {
    failing *f = self;
    return f->left == 0 ? NULL : (f->left--, malloc(size));
}

static void *failing_resize(void *self, void *block, size_t size) {
    failing *f = self;
    return f->left == 0 ? NULL : (f->left--, realloc(block, size));
}

static void failing_release(void *self, void *block) {
    (void)self;
    free(block);
}

START_TEST(want_of_memory) {
    const char *text = "fusion @t(%x: f32[?, ?], %b: bool[?], %i: i64[?, ?]) { %y = permute %x, [1, 0] %z = exp %y "
                       "%w = sum %z "
                       "%v, %p = sort %z %m = matmul %x, %y %c = cumsum %m, axis=0 %s = scatter %x, %i, 1.0, axis=0 "
                       "%g = gather %x, %i, axis=0 %r = reshape %y, [-1] return %w, %v, %p, %c, %s, %g, %r, %b }";
    lf_graph **graphs;
    size_t n;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", text, strlen(text), false, &graphs, &n);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    test_values in = read_values("f32[2,3] 1 2 3 4 5 6; bool[1] true; i64[1,1] 9");
    bool done = false;
    for (size_t k = 0; !done; k++) {
        failing f = {k};
        lf_allocator a = {&f, failing_alloc, failing_resize, failing_release, true};
        lf_interp_result *r;
        s = lf_interp_run(graphs[0], in.at, in.n, &a, &r);
        done = s == NULL;
        ck_assert(done || (lf_status_code(s) == LF_OUT_OF_MEMORY && !r));
        lf_status_destroy(s);
        lf_interp_result_destroy(r);
        ck_assert_uint_lt(k, 1000);
    }
    free_values(&in);
    lf_parse_release(&lf_system_allocator, graphs, n);
}
END_TEST

int main(void) {
    Suite *s = suite_create("interp_tensors");
    TCase *t = tcase_create("tensors");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, float_sums_and_products_follow_the_canonical_order);
    tcase_add_test(t, columns_and_rows_are_summed_alike);
    tcase_add_test(t, sums_of_other_dtypes);
    tcase_add_test(t, half_sums_accumulate_in_f32);
    tcase_add_test(t, chunk_results_are_reduced_by_the_same_rule);
    tcase_add_test(t, empty_reductions);
    tcase_add_test(t, extremes);
    tcase_add_test(t, scans);
    tcase_add_test(t, sorting);
    tcase_add_test(t, shapes);
    tcase_add_test(t, indices);
    tcase_add_test(t, creation);
    tcase_add_test(t, random_numbers);
    tcase_add_test(t, contractions);
    tcase_add_test(t, scalars_and_tensors);
    tcase_add_test(t, wrong_arguments);
    tcase_add_test(t, checks);
    tcase_add_test(t, no_memory_for_no_elements);
    tcase_add_test(t, floating_point_state);
    tcase_add_test(t, want_of_memory);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
