// Sorts on the device against the interpreter, by the bit: rows of one tile and of several, up to several passes of merging, few elements
// of many, equal elements, NaN and zeros of both signs, other axes and layouts.
#include "test/support/api/oracle.h"

enum { N_DTYPES = LFUSER_F64 + 1 };
#define COUNT(list) (sizeof list / sizeof *list)

static bool is_sim(void) { return !strcmp(test_device_name(), "sim"); }

static const int64_t lengths[] = {0, 1, 2, 3, 31, 33, 257, 1023, 1024, 1025, 2048, 3100, 65537};
static const int64_t few_lengths[] = {1, 33, 1025, 5000};

static const char *const texts[] = {
    "(%x: $D[%a, %b]) { %v, %p = sort %x, axis=1 return %v, %p }",
    "(%sx: $D[%a, %b]) { %v, %p = sort %sx, axis=1, descending=true return %p }",
    "(%x: $D[%b, %a]) { %v, %p = sort %x, axis=0, descending=true return %v, %p }",
    "(%sx: $D[%a, %b]) { %v, %p = topk %sx, 1 return %v, %p }",
    "(%x: $D[%a, %b], %k: i64) { %n = size %x, 1 %h = min %n, 1030 %v, %p = topk %x, %h, largest=false return %v, %p }",
    "(%x: $D[%a, %b]) { %t = flip %x, axes=[1] %v, %p = sort %t, axis=1 %w = gather %t, %p, axis=1 return %w, %v }",
};

START_TEST(sorts_of_every_length) {
    for (unsigned d = LFUSER_BOOL; d < N_DTYPES; d++) {
        test_program p;
        bool all = d == LFUSER_F32;
        const int64_t *list = all ? lengths : few_lengths;
        if (!program_open(&p, texts[_i], (lfuser_dtype)d)) continue;
        for (unsigned i = 0; i < (all ? COUNT(lengths) : COUNT(few_lengths)); i++) {
            if ((SLOW_BUILD || is_sim()) && list[i] > 10000) continue;
            if (is_sim() && _i && _i != 4 && list[i] > 1100) continue; // thread by thread takes its time
            if (list[i] == 0 && _i == 3) continue;
            const int64_t extents[4] = {list[i] > 1000 ? 2 : 5, list[i], 2, 2};
            check_twice(&p, 7, extents, i);
        }
        program_close(&p);
    }
}
END_TEST

static Suite *make(void) {
    Suite *s = suite_create("api sorts");
    tcase_add_loop_test(device_tcase(s, "lengths", 600), sorts_of_every_length, 0, COUNT(texts));
    return s;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
