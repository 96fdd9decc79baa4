// Dtypes, literals as text, the 16-bit floats, conversions of constants.
#include "ir/dtype.h"
#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lf_scalar literal_in(const char *text, lf_dtype d, bool *out_fits) {
    lf_literal l;
    lf_scalar s = {0};
    ck_assert_msg(lf_literal_parse(text, strlen(text), &l), "%s is not read", text);
    *out_fits = lf_literal_to(&l, d, &s);
    return s;
}

START_TEST(table) {
    for (unsigned d = 1; d < LF_DTYPE_COUNT; d++) {
        const char *name = lf_dtype_name(d);
        ck_assert_int_eq(lf_dtype_parse(name, strlen(name)), d);
        ck_assert_int_eq(lf_dtype_bytes(d), lf_dtype_bytes(lf_dtype_part(d)) * (lf_is_complex(d) ? 2 : 1));
    }
    ck_assert_int_eq(lf_dtype_parse("f3", 2), LF_NO_DTYPE);
    ck_assert_int_eq(lf_dtype_parse("f322", 4), LF_NO_DTYPE);
    ck_assert_int_eq(lf_dtype_bytes(LF_C128), 16);
    ck_assert_int_eq(lf_dtype_compute(LF_BF16), LF_F32);
    ck_assert_int_eq(lf_dtype_compute(LF_I8), LF_I8);
}
END_TEST

typedef struct literal_case {
    const char *text;
    lf_dtype dtype;
    uint64_t bits; // of the first component
    bool fits;
} literal_case;

static const literal_case literal_cases[] = {
    {"1", LF_I8, 1, true},
    {"127", LF_I8, 127, true},
    {"128", LF_I8, 0, false},
    {"-128", LF_I8, 0x80, true},
    {"-129", LF_I8, 0, false},
    {"255", LF_U8, 255, true},
    {"256", LF_U8, 0, false},
    {"-1", LF_U64, 0, false},
    {"-0", LF_U8, 0, true},
    {"18446744073709551615", LF_U64, UINT64_MAX, true},
    {"9223372036854775808", LF_I64, 0, false},
    {"-9223372036854775808", LF_I64, 1ull << 63, true},
    {"0xff", LF_I32, 255, true},
    {"true", LF_I32, 1, true},
    {"nan", LF_BOOL, 1, true},
    {"0.0", LF_BOOL, 0, true},
    {"2.5", LF_I32, 0, false},
    {"2.0", LF_I32, 2, true},
    {"-0.0", LF_I32, 0, true},
    {"inf", LF_I64, 0, false},
    {"1e3", LF_I16, 1000, true},
    {"0.1", LF_F64, 0x3fb999999999999a, true},
    {"0.1", LF_F32, 0x3dcccccd, true},
    {"0.1", LF_F16, 0x2e66, true},
    {"0.1", LF_BF16, 0x3dcd, true},
    {"-0.0", LF_F32, 0x80000000, true},
    {"-inf", LF_F16, 0xfc00, true},
    {"nan", LF_F16, 0x7e00, true},
    {"nan", LF_BF16, 0x7fc0, true},
    {"65504", LF_F16, 0x7bff, true},
    {"65519.9", LF_F16, 0x7bff, true},
    {"65520", LF_F16, 0x7c00, true},
    {"1e-8", LF_F16, 0, true},
    {"2.98023223876953125e-8", LF_F16, 0, true},
    {"2.98023223876953126e-8", LF_F16, 1, true},
    {"5.9604644775390625e-8", LF_F16, 1, true},
    {"3.4e38", LF_BF16, 0x7f80, true},
    // Halfway cases that a double cannot tell apart: rounded once, from all digits.
    {"1.00048828125", LF_F16, 0x3c00, true},
    {"1.00048828125000000000000000000001", LF_F16, 0x3c01, true},
    {"1.000000059604644775390625", LF_F32, 0x3f800000, true},
    {"1.00000005960464477539062500000000000000001", LF_F32, 0x3f800001, true},
    {"16777217", LF_F32, 0x4b800000, true},
    {"9007199254740993", LF_F64, 0x4340000000000000, true},
    {"9223372036854775807", LF_F32, 0x5f000000, true},
    {"8623489025", LF_BF16, 0x5001, true},
    {"1e400", LF_F64, 0x7ff0000000000000, true},
    {"1e400", LF_F32, 0x7f800000, true},
    {"4.9e-324", LF_F64, 1, true},
    {"1e-400", LF_F64, 0, true},
    {"0x1p-1074", LF_F64, 1, true},
    {"0x1.8p-1075", LF_F64, 1, true},
    {"0x1p-1075", LF_F64, 0, true},
    {"0x1.fffffep127", LF_F32, 0x7f7fffff, true},
    {"0x1.ffffffp127", LF_F32, 0x7f800000, true},
    {"0x1.000001p0", LF_F32, 0x3f800000, true},
    {"0x1.00000100000000000000001p0", LF_F32, 0x3f800001, true},
    {"0x.8", LF_F64, 0x3fe0000000000000, true},
    {"0xap1", LF_F64, 0x4034000000000000, true},
    {".5", LF_F32, 0x3f000000, true},
    {"5.", LF_F32, 0x40a00000, true},
    {"1e+2", LF_F32, 0x42c80000, true},
    {"3", LF_C64, 0x40400000, true},
    {"2.5", LF_C128, 0x4004000000000000, true},
};

START_TEST(literals) {
    const literal_case *c = &literal_cases[_i];
    bool fits;
    lf_scalar s = literal_in(c->text, c->dtype, &fits);
    ck_assert_msg(fits == c->fits, "%s in %s", c->text, lf_dtype_name(c->dtype));
    if (fits)
        ck_assert_msg(s.word[0] == c->bits, "%s in %s is %llx, wanted %llx", c->text, lf_dtype_name(c->dtype),
                      (unsigned long long)s.word[0], (unsigned long long)c->bits);
}
END_TEST

START_TEST(no_literals) {
    static const char *const texts[] = {"",
                                        "-",
                                        "+1",
                                        "1e",
                                        "1e+",
                                        "e5",
                                        ".",
                                        "0x",
                                        "0xg",
                                        "1.2.3",
                                        "1_0",
                                        "--1",
                                        "infinity",
                                        "NaN",
                                        "0x1p",
                                        "1p3",
                                        "18446744073709551616",
                                        "-9223372036854775809",
                                        "12a",
                                        " 1",
                                        "1 ",
                                        "0x1.p",
                                        "0b1",
                                        "True"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        lf_literal l;
        ck_assert_msg(!lf_literal_parse(texts[i], strlen(texts[i]), &l), "'%s' is read", texts[i]);
    }
}
END_TEST

START_TEST(long_literals) {
    // 100,000 digits are read in time linear in their number, and the last one counts.
    size_t n = 100000;
    char *text = malloc(n + 8);
    strcpy(text, "1.00000005960464477539062500");
    memset(text + 28, '0', n - 28);
    text[n - 1] = '1';
    lf_literal l;
    lf_scalar s;
    ck_assert(lf_literal_parse(text, n, &l) && lf_literal_to(&l, LF_F32, &s));
    ck_assert_uint_eq(s.u32, 0x3f800001);
    text[n - 1] = '0';
    ck_assert(lf_literal_parse(text, n, &l) && lf_literal_to(&l, LF_F32, &s));
    ck_assert_uint_eq(s.u32, 0x3f800000);
    memset(text, '9', n);
    memcpy(text + n - 7, "e-99990", 7);
    ck_assert(lf_literal_parse(text, n, &l) && lf_literal_to(&l, LF_F64, &s));
    ck_assert_double_eq(s.f64, 1000.0);
    free(text);
}
END_TEST

START_TEST(alone) {
    lf_literal l;
    ck_assert(lf_literal_parse("9223372036854775807", 19, &l) && lf_literal_dtype(&l) == LF_I64);
    ck_assert(lf_literal_parse("9223372036854775808", 19, &l) && lf_literal_dtype(&l) == LF_U64);
    ck_assert(lf_literal_parse("1.", 2, &l) && lf_literal_dtype(&l) == LF_F64);
    ck_assert(lf_literal_parse("false", 5, &l) && lf_literal_dtype(&l) == LF_BOOL);
}
END_TEST

// Every half there is: to f32 and back, and as text.
START_TEST(halves) {
    lf_dtype d = _i ? LF_BF16 : LF_F16;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float f = lf_half_to_f32(d, (uint16_t)bits);
        uint16_t back = lf_f32_to_half(d, f);
        if (f != f) {
            ck_assert_uint_eq(back, d == LF_F16 ? 0x7e00 : 0x7fc0);
            continue;
        }
        ck_assert_msg(back == bits, "%04x became %04x", bits, back);
        if (d == LF_BF16) {
            uint32_t wide;
            memcpy(&wide, &f, 4);
            ck_assert_uint_eq(wide, bits << 16);
        }
        char text[64];
        lf_scalar s = {.word = {bits}}, again;
        lf_literal l;
        size_t n = lf_scalar_print(text, sizeof text, d, &s);
        ck_assert_msg(lf_literal_parse(text, n, &l) && lf_literal_to(&l, d, &again) && again.u16 == bits,
                      "%04x is printed as %s", bits, text);
    }
}
END_TEST

// Rounding to halves at and beside every midpoint between neighbours.
START_TEST(half_midpoints) {
    lf_dtype d = _i ? LF_BF16 : LF_F16;
    uint16_t top = d == LF_F16 ? 0x7bff : 0x7f7f;
    for (uint16_t bits = 0; bits < top; bits++) {
        float a = lf_half_to_f32(d, bits), b = lf_half_to_f32(d, bits + 1), middle = a + (b - a) / 2;
        ck_assert_uint_eq(lf_f32_to_half(d, middle), bits & 1 ? bits + 1 : bits);
        ck_assert_uint_eq(lf_f32_to_half(d, nextafterf(middle, INFINITY)), bits + 1);
        ck_assert_uint_eq(lf_f32_to_half(d, nextafterf(middle, 0)), bits);
        ck_assert_uint_eq(lf_f32_to_half(d, -middle), 0x8000 | (bits & 1 ? bits + 1 : bits));
    }
    ck_assert_uint_eq(lf_f32_to_half(LF_F16, 65519.996f), 0x7bff);
    ck_assert_uint_eq(lf_f32_to_half(LF_F16, 65520.0f), 0x7c00);
    ck_assert_uint_eq(lf_f32_to_half(LF_BF16, 3.4e38f), 0x7f80);
}
END_TEST

typedef struct print_case {
    lf_dtype dtype;
    lf_scalar value;
    const char *text;
} print_case;

static const print_case print_cases[] = {
    {LF_BOOL, {.word = {1}}, "true"},
    {LF_BOOL, {.word = {0}}, "false"},
    {LF_I8, {.word = {0x80}}, "-128"},
    {LF_U64, {.word = {UINT64_MAX}}, "18446744073709551615"},
    {LF_I64, {.word = {1ull << 63}}, "-9223372036854775808"},
    {LF_F64, {.f64 = 1}, "1.0"},
    {LF_F64, {.f64 = 0.1}, "0.1"},
    {LF_F64, {.f64 = -1.5}, "-1.5"},
    {LF_F64, {.f64 = 1e300}, "1e300"},
    {LF_F64, {.f64 = 1.25e-7}, "1.25e-7"},
    {LF_F64, {.f64 = 123456789012}, "123456789012.0"},
    {LF_F64, {.f64 = 0.1 + 0.2}, "0.30000000000000004"},
    {LF_F64, {.f64 = -0.0}, "-0.0"},
    {LF_F64, {.f64 = 0.001}, "0.001"},
    {LF_F64, {.f64 = 5e-324}, "5e-324"},
    {LF_F32, {.word = {0x3dcccccd}}, "0.1"},
    {LF_F32, {.word = {0x7f800000}}, "inf"},
    {LF_F32, {.word = {0xff800000}}, "-inf"},
    {LF_F32, {.word = {0x7fc00000}}, "nan"},
    {LF_F32, {.word = {0x4b800000}}, "16777216.0"},
    {LF_F16, {.word = {0x2e66}}, "0.1"},
    {LF_BF16, {.word = {0x3dcd}}, "0.1"},
    {LF_C64, {.word = {0x400000003f800000}}, "1+2j"},
    {LF_C64, {.word = {0xbf00000080000000}}, "-0-0.5j"},
};

START_TEST(printing) {
    const print_case *c = &print_cases[_i];
    char text[96];
    size_t n = lf_scalar_print(text, sizeof text, c->dtype, &c->value);
    ck_assert_str_eq(text, c->text);
    ck_assert_uint_eq(n, strlen(c->text));
    // Cut to the room there is, with the full length as the answer.
    ck_assert_uint_eq(lf_scalar_print(text, 2, c->dtype, &c->value), n);
    ck_assert_uint_le(strlen(text), 1);
}
END_TEST

START_TEST(other_locales) {
    // A decimal comma changes neither reading nor printing; without such a locale there is nothing to see.
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    const char *set = NULL;
    for (size_t i = 0; i < 3 && !set; i++) set = setlocale(LC_ALL, names[i]);
    char text[64];
    lf_scalar s = {.f64 = 1234.5}, again;
    lf_literal l;
    size_t n = lf_scalar_print(text, sizeof text, LF_F64, &s);
    ck_assert_str_eq(text, "1234.5");
    ck_assert(lf_literal_parse(text, n, &l) && lf_literal_to(&l, LF_F64, &again) && again.f64 == 1234.5);
    setlocale(LC_ALL, "C");
}
END_TEST

// Random doubles and floats print to text that reads back to the same bits.
START_TEST(round_trips) {
    uint64_t state = 12345;
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        lf_scalar s = {.word = {state ^ state >> 29}}, again;
        lf_dtype d = i & 1 ? LF_F32 : LF_F64;
        if (d == LF_F32) s.word[0] &= 0xffffffff;
        if (d == LF_F32 ? s.f32 != s.f32 : s.f64 != s.f64) continue;
        char text[64];
        lf_literal l;
        size_t n = lf_scalar_print(text, sizeof text, d, &s);
        ck_assert_msg(lf_literal_parse(text, n, &l) && lf_literal_to(&l, d, &again) && again.word[0] == s.word[0],
                      "%llx is printed as %s", (unsigned long long)s.word[0], text);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("dtype");
    TCase *t = tcase_create("dtype");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, table);
    tcase_add_loop_test(t, literals, 0, sizeof literal_cases / sizeof *literal_cases);
    tcase_add_test(t, no_literals);
    tcase_add_test(t, long_literals);
    tcase_add_test(t, alone);
    tcase_add_loop_test(t, halves, 0, 2);
    tcase_add_loop_test(t, half_midpoints, 0, 2);
    tcase_add_loop_test(t, printing, 0, sizeof print_cases / sizeof *print_cases);
    tcase_add_test(t, other_locales);
    tcase_add_test(t, round_trips);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
