// Scans on the device against the interpreter: along the innermost axis and others, rows of lengths around what a warp, a block and
// several blocks take at once, few rows and many, in every layout. Where the order of float sums shows, inputs are chosen so that it does
// not (small multiples of 1/8, signs), and the bits must be equal; log sums are close.
#include "test/support/api/oracle.h"

enum { N_DTYPES = LFUSER_C128 + 1 };
#define COUNT(list) (sizeof list / sizeof *list)

static bool is_sim(void) { return !strcmp(test_device_name(), "sim"); }

static const int64_t lengths[] = {0, 1, 2, 3, 31, 32, 33, 127, 257, 1021, 1024, 1025, 2047, 4100, 8191, 8196, 24584, 65537};
static const int64_t few_lengths[] = {1, 33, 520, 1028, 4099, 20488};

// $a rows of $b columns; the axis is 1 in the first form and 0 in the second.
static const char *const forms[] = {
    "(%%sx: $D[%%a, %%b]) { %s }",
    "(%%sx: $D[%%b, %%a]) { %s }",
    "(%%sx: $D[%%c, %%b, %%a]) { %s }",
};
static const char *const scans[] = {
    "%%y = cumsum %%sx, axis=%u return %%y",
    "%%c = gt %%sx, 0.5 %%t = select %%c, 1, -1 %%t2 = cast %%t, dtype=$D %%y = cumprod %%t2, axis=%u return %%y",
    "%%v, %%p = cummax %%sx, axis=%u return %%v, %%p",
    "%%v, %%p = cummin %%sx, axis=%u return %%v",
    "%%y = logcumsumexp %%sx, axis=%u return %%y",
};
enum { PRODUCT = 1, LOGSUM = 4 };

static void make_text(char *out, size_t room, unsigned form, unsigned scan, bool edges) {
    char body[300];
    snprintf(body, sizeof body, scans[scan], form == 1 ? 0u : 1u);
    snprintf(out, room, forms[form], body);
    for (char *c = out; edges && (c = strstr(c, "%sx")); c++) c[1] = 'x'; // any values: %xx
}

static void check_length(const test_program *p, int64_t rows, int64_t length, unsigned number) {
    static const layout in[] = {LAYOUT_ODD, LAYOUT_PERMUTED, LAYOUT_GAPPED, LAYOUT_REVERSED, LAYOUT_REPEATED};
    const int64_t extents[4] = {rows, length, 2, 2};
    check_case(p, &(case_options){.n = 7, .extents = extents, .seed = number + 1});
    if (rows * length > 70000) return;
    check_case(p, &(case_options){.n = 7,
                                  .extents = extents,
                                  .in = in[number % COUNT(in)],
                                  .given = number % 3 != 0,
                                  .out = (layout)(number % N_LAYOUTS),
                                  .seed = number + 2});
}

static void check(unsigned form, unsigned scan, lfuser_dtype d, bool edges, const int64_t *list, size_t n) {
    char text[400];
    test_program p;
    make_text(text, sizeof text, form, scan, edges);
    if (!program_open(&p, text, d)) return;
    if (scan == LOGSUM) p.slack = d == LFUSER_F64 ? 1e-12 : d == LFUSER_BF16 ? 1e-2 : d == LFUSER_F16 ? 2e-3 : 1e-4;
    for (unsigned i = 0; i < n; i++) {
        if (SLOW_BUILD && (i % 3 || list[i] > 10000)) continue;
        if (is_sim() && list[i] > 4200 && (d != LFUSER_F32 || form == 2)) continue;
        check_length(&p, form ? (list[i] > 10000 ? 33 : 40) : list[i] > 3000 ? 2 : 6, list[i], i);
    }
    program_close(&p);
}

START_TEST(scans_of_every_length) {
    unsigned scan = (unsigned)_i % COUNT(scans), form = (unsigned)_i / COUNT(scans);
    for (unsigned d = LFUSER_BOOL; d < N_DTYPES; d++) {
        if (scan == PRODUCT && d == LFUSER_BOOL) continue;
        bool all = d == LFUSER_F32 && form == 0,
             some = d == LFUSER_I32 || d == LFUSER_BF16 || d == LFUSER_F32 || d == LFUSER_C64;
        if (is_sim() && form && !some) continue; // thread by thread takes its time
        check(form, scan, (lfuser_dtype)d, false, all ? lengths : few_lengths, all ? COUNT(lengths) : COUNT(few_lengths));
    }
}
END_TEST

// Extremes with NaN, infinities and zeros of both signs; integers of any size, which wrap.
START_TEST(scans_of_any_value) {
    for (unsigned scan = 0; scan < COUNT(scans); scan++)
        for (unsigned d = LFUSER_BOOL; d < N_DTYPES; d++) {
            bool ordered = scan >= 2 || d < LFUSER_F16;
            if (is_sim() && d != LFUSER_F32 && d != LFUSER_F16 && d != LFUSER_I8) continue;
            if (ordered && scan != PRODUCT)
                check((unsigned)_i, scan, (lfuser_dtype)d, true, few_lengths, COUNT(few_lengths) - 1);
        }
}
END_TEST

// More tiles than a group has: of 2048 and 8192 columns a row, of 128 where rows are neighbours.
START_TEST(groups_of_tiles) {
    static const struct {
        unsigned form, scan;
        int64_t rows, length;
    } cases[] = {{0, 0, 1, 2048 * 130 + 77}, {0, 2, 2, 2048 * 129 + 1},    {0, 4, 1, 2048 * 130 + 5},
                 {0, 0, 3, 8192 * 129 + 4},  {1, 0, 40, 128 * 16 * 3 + 9}, {1, 2, 33, 128 * 33}};
    char text[400];
    test_program p;
    if (SLOW_BUILD && cases[_i].length > 100000) return;
    if (is_sim() && cases[_i].length > 300000) return;
    make_text(text, sizeof text, cases[_i].form, cases[_i].scan, false);
    ck_assert(program_open(&p, text, LFUSER_F32));
    if (cases[_i].scan == LOGSUM) p.slack = 1e-4;
    check_case(&p, &(case_options){.n = 7, .extents = (const int64_t[]){cases[_i].rows, cases[_i].length, 2, 2}, .seed = 3});
    program_close(&p);
}
END_TEST

// Many rows: blocks walk several tiles of one.
START_TEST(rows_that_blocks_walk) {
    test_program p;
    ck_assert(program_open(&p, "(%sx: f32[%a, %b]) { %y = cumsum %sx, axis=1 %z = sub %y, %sx return %z, %y }", LFUSER_F32));
    check_case(&p, &(case_options){.n = 7, .extents = (const int64_t[]){530, 2051, 2, 2}, .seed = 5});
    program_close(&p);
}
END_TEST

// What comes before and after a scan in its kernel: views, row values, other results.
START_TEST(scans_among_others) {
    static const char *const texts[] = {
        "(%sx: f32[%a, %b], %sr: f32[%a, 1]) { %t = mul %sx, %sr %y = cumsum %t, axis=1 %z = add %y, %sr %w = mul %sx, 2 "
        "return "
        "%z, %w, %y }",
        "(%sx: f32[%a, %b]) { %t = flip %sx, axes=[1] %y = cumsum %t, axis=1 %z = flip %y, axes=[1] return %z }",
        "(%sx: f32[%b, %a]) { %t = permute %sx, [1, 0] %y = cumsum %t, axis=1 return %y }",
        "(%sx: f32[%a]) { %t = unsqueeze %sx, axes=[1] %e = expand %t, [%a, 300] %y = cumsum %e, axis=1 return %y }",
        "() { %o = full [5, 1000], 1.0 %y = cumsum %o, axis=1 return %y }",
        "(%sx: f32[%a, %b]) { %y = cumsum %sx, axis=1 %z = cumsum %y, axis=0 return %z }",
        "(%sx: f32[%a, %b]) { %y = cumsum %sx, axis=1 %s = sum %y, axes=[1] return %s }",
        "(%sx: f32[%a, %b], %i: i64[%a, %b]) { %g = gather %sx, %i, axis=1 %y = cumsum %g, axis=1 return %y }",
    };
    test_program p;
    ck_assert(program_open(&p, texts[_i], LFUSER_F32));
    for (unsigned i = 0; i < COUNT(few_lengths); i++) {
        int64_t n = few_lengths[i] < 3 ? 3 : few_lengths[i];
        if (is_sim() && n > 5000) continue;
        const int64_t extents[4] = {n > 1000 ? 3 : 35, n, 2, 2};
        check_case(&p, &(case_options){.n = 7, .extents = extents, .seed = i + 1});
        check_case(&p,
                   &(case_options){
                       .n = 7, .extents = extents, .in = LAYOUT_PERMUTED, .given = true, .out = LAYOUT_GAPPED, .seed = i});
    }
    program_close(&p);
}
END_TEST

static Suite *make(void) {
    Suite *s = suite_create("api scans");
    tcase_add_loop_test(device_tcase(s, "lengths", 600), scans_of_every_length, 0, COUNT(scans) * COUNT(forms));
    tcase_add_loop_test(device_tcase(s, "values", 600), scans_of_any_value, 0, COUNT(forms));
    tcase_add_loop_test(device_tcase(s, "groups", 600), groups_of_tiles, 0, 6);
    tcase_add_test(device_tcase(s, "walks", 600), rows_that_blocks_walk);
    tcase_add_loop_test(device_tcase(s, "others", 600), scans_among_others, 0, 8);
    return s;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
