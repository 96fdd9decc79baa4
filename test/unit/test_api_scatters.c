// Scatters into rows of every length on the device against the interpreter, by the bit: a block or a thread a row, many updates of one
// place among them, which take effect in order.
#include "test/support/api/oracle.h"

#define COUNT(list) (sizeof list / sizeof *list)

static const char *const texts[] = {
    "(%x: $D[%a, %b], %i: i64[%a, %c], %y: $D[%a, %c]) { %z = scatter %x, %i, %y, axis=1 return %z }",
    "(%px: $D[%a, %b], %i: i32[%a, %c], %py: $D[%a, %c]) { %z = scatter %px, %i, %py, axis=1, mode=add return %z }",
    "(%px: $D[%a, %b], %i: i64[%d, %c], %py: $D[%a, %c]) { %z = scatter %px, %i, %py, axis=1, mode=mul return %z }",
    "(%x: $D[%a, %b], %i: i64[%a, %c], %y: $D[%a, %c]) { %z = scatter %x, %i, %y, axis=1, mode=max %w = neg %z return %z, "
    "%w }",
    "(%px: $D[%b, %a], %i: i64[%c, %a], %py: $D[%c, %a]) { %z = scatter %px, %i, %py, axis=0, mode=add return %z }",
    "(%x: $D[%a, %b], %i: i64[%a, %c]) { %z = scatter %x, %i, 1, axis=1 return %z }",
    // Places all over the row.
    "(%x: i64[%b], %y: i64[%c]) { %j = mod %y, 97 %z = scatter %x, %j, %y, axis=0, mode=min return %z }",
    "(%px: f32[%b], %y: i64[%c]) { %j = mod %y, 97 %s = cast %j, dtype=f32 %z = scatter %px, %j, %s, axis=0, mode=add "
    "return %z }",
};

START_TEST(scatters_into_rows) {
    static const lfuser_dtype dtypes[] = {LFUSER_BOOL, LFUSER_I8, LFUSER_U64, LFUSER_BF16, LFUSER_F32, LFUSER_C128};
    static const int64_t shapes[][3] = {{3, 4, 3},     {3, 100, 1},     {3, 1000, 255},
                                        {2, 300, 257}, {2, 4097, 1030}, {40, 130, 70}};
    for (unsigned d = 0; d < COUNT(dtypes); d++) {
        test_program p;
        if (!program_open(&p, texts[_i], dtypes[d])) continue;
        for (unsigned i = 0; i < COUNT(shapes); i++) {
            if (_i >= 6 && (d || shapes[i][1] < 100)) continue;
            const int64_t extents[4] = {shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][0] - 1};
            check_twice(&p, 3, extents, i);
        }
        program_close(&p);
    }
}
END_TEST

static Suite *make(void) {
    Suite *s = suite_create("api scatters");
    tcase_add_loop_test(device_tcase(s, "rows", 600), scatters_into_rows, 0, COUNT(texts));
    return s;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
