// Matrix products on the device against the interpreter, by the bit: extents around those of a tile, sums of one span, of several and of
// several chunks, every dtype, batches, transposed and broadcast operands, and what is computed before and after.
#include "test/support/api/oracle.h"

enum { N_DTYPES = LFUSER_C128 + 1 };
#define COUNT(list) (sizeof list / sizeof *list)

static bool is_sim(void) { return !strcmp(test_device_name(), "sim"); }

static bool check(const char *text, lfuser_dtype d, const int64_t (*shapes)[3], size_t n) {
    test_program p;
    if (!program_open(&p, text, d)) return false;
    for (unsigned i = 0; i < n; i++) {
        if (SLOW_BUILD && shapes[i][0] * shapes[i][1] * shapes[i][2] > 100000) continue;
        const int64_t extents[4] = {shapes[i][0], shapes[i][1], shapes[i][2], 2};
        check_twice(&p, 3, extents, i);
    }
    program_close(&p);
    return true;
}

// m, n, k.
static const int64_t every_shape[][3] = {{16, 16, 1},    {17, 31, 3},    {33, 16, 31},   {64, 64, 64},
                                         {65, 63, 65},   {16, 130, 127}, {1, 16, 20},    {16, 0, 3},
                                         {16, 16, 0},    {40, 20, 1024}, {16, 17, 1025}, {16, 16, 2500},
                                         {16, 18, 4099}, {17, 16, 8192}, {16, 16, 8200}, {16, 16, 17000}};
static const int64_t few_shapes[][3] = {{17, 31, 3}, {65, 33, 65}, {16, 17, 1030}, {16, 16, 4100}};

START_TEST(products_of_every_shape) {
    static const char *const text = "(%px: $D[%a, %c], %py: $D[%c, %b]) { %z = matmul %px, %py return %z }";
    bool all = _i == LFUSER_F32;
    size_t few = COUNT(few_shapes) - is_sim(); // thread by thread takes its time
    ck_assert(check(text, (lfuser_dtype)_i, all ? every_shape : few_shapes, all ? COUNT(every_shape) : few));
}
END_TEST

// NaN, infinities, zeros of both signs.
START_TEST(products_of_any_value) {
    static const char *const text = "(%x: $D[%a, %c], %y: $D[%c, %b]) { %z = matmul %x, %y return %z }";
    static const lfuser_dtype dtypes[] = {LFUSER_BOOL, LFUSER_I8, LFUSER_U64, LFUSER_F16, LFUSER_F32, LFUSER_C64};
    ck_assert(check(text, dtypes[_i], few_shapes, COUNT(few_shapes) - is_sim()));
}
END_TEST

START_TEST(products_among_others) {
    static const char *const texts[] = {
        // batches, of one side too
        "(%px: f32[2, %a, %c], %py: f32[2, %c, %b]) { %z = matmul %px, %py return %z }",
        "(%px: f32[3, 1, %a, %c], %py: f32[2, %c, %b]) { %z = matmul %px, %py return %z }",
        "(%px: f32[1, 2, 1, 1, 2, 1, %a, %c], %py: f32[2, 1, 1, 2, 1, %c, %b]) { %z = matmul %px, %py return %z }",
        // transposed, broadcast
        "(%px: f32[%c, %a], %py: f32[%b, %c]) { %t = permute %px, [1, 0] %u = permute %py, [1, 0] %z = matmul %t, %u return "
        "%z }",
        "(%px: bf16[%a, %c], %pw: bf16[%b, %c], %pb: bf16[%b]) { %z = linear %px, %pw, %pb %r = relu %z return %r }",
        "(%px: f32[1, %c], %py: f32[%c, 1]) { %t = expand %px, [20, -1] %u = expand %py, [-1, 24] %z = matmul %t, %u return "
        "%z }",
        // what comes before and after
        "(%px: f32[%a, %c], %ps: f32[%c], %py: f32[%c, %b], %pb: f32[%b], %pr: f32[%a, %b]) { %t = mul %px, %ps %z = matmul "
        "%t, "
        "%py %y = add %z, %pb %g = silu %y %r = add %g, %pr return %r, %z }",
        "(%px: f16[%a, %c], %py: f16[%c, %b]) { %z = matmul %px, %py %t = permute %z, [1, 0] return %t }",
        "(%px: f32[%a, %c], %py: f32[%c, %b]) { %z = matmul %px, %py %s = softmax %z, axis=1 return %s }",
        "(%x: i32[%m, %c], %i: i64[%a], %y: i32[%c, %b]) { %t = take %x, %i, axis=0 %z = matmul %t, %y return %z }",
        "(%px: f32[%a, %c], %py: f32[%c, %b]) { %t = pad %px, [0, 1], [0, 1], 0 %u = pad %py, [1, 0], [1, 0], 0 %z = matmul "
        "%t, %u "
        "return %z }",
    };
    ck_assert(check(texts[_i], LFUSER_F32, few_shapes, COUNT(few_shapes) - is_sim()));
}
END_TEST

static Suite *make(void) {
    Suite *s = suite_create("api products");
    tcase_add_loop_test(device_tcase(s, "shapes", 600), products_of_every_shape, LFUSER_BOOL, N_DTYPES);
    tcase_add_loop_test(device_tcase(s, "values", 600), products_of_any_value, 0, 6);
    tcase_add_loop_test(device_tcase(s, "others", 600), products_among_others, 0, 11);
    return s;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
