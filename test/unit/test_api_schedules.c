// Every schedule of rows and of plain elements, on the device against the interpreter, by the bit: rows of lengths around what a warp,
// a thread's vectors, a span and a chunk hold, in every layout, with results poisoned first and guards around them (check_case). On a
// GPU these are the classes WARP, RESIDENT, ROUNDS, BLOCK, SPLIT, OUTER and STACK, with and without vectors.
#include "test/support/api/oracle.h"
#include <math.h>

enum { N_DTYPES = LFUSER_C128 + 1 };
#define COUNT(list) (sizeof list / sizeof *list)

// Lengths of a row, %b; there are %a rows.
static const int64_t lengths[] = {1,    2,    3,    31,   32,   33,   255,  256,   257,
                                  1023, 1024, 1025, 2056, 4099, 8192, 8193, 16392, 65537};
static const int64_t some_lengths[] = {1, 33, 256, 1025, 8200};

static bool is_sim(void) { return !strcmp(test_device_name(), "sim"); }

static void check_length(const test_program *p, int64_t rows, int64_t length, unsigned number) {
    static const layout in[] = {LAYOUT_DENSE, LAYOUT_ODD, LAYOUT_PERMUTED, LAYOUT_GAPPED, LAYOUT_REVERSED};
    const int64_t extents[4] = {rows, length, 3, 2};
    check_case(p, &(case_options){.n = 7, .extents = extents, .in = LAYOUT_DENSE, .seed = number + 1});
    check_case(p, &(case_options){.n = 7,
                                  .extents = extents,
                                  .in = in[1 + number % 4],
                                  .in_step = number % 2,
                                  .given = number % 3 != 0,
                                  .out = (layout)(number % N_LAYOUTS),
                                  .seed = number + 2});
}

// Whether the program takes this dtype.
static bool check_lengths(const char *text, lfuser_dtype d, const int64_t *list, size_t n) {
    test_program p;
    if (!program_open(&p, text, d)) return false;
    for (unsigned i = 0; i < n; i++) {
        if (SLOW_BUILD && (i % 3 || list[i] > 10000)) continue;
        if (is_sim() && list[i] > 20000 && d != LFUSER_F32) continue; // thread by thread takes its time
        check_length(&p, list[i] > 3000 ? 2 : 5, list[i], i);
    }
    program_close(&p);
    return true;
}

// ---- rows ------------------------------------------------------------------------------------------------------------------------------

static const char *const norms[] = {
    "(%px: $D[%a, %b]) { %y = softmax %px, axis=1 return %y }",
    "(%px: $D[%a, %b]) { %y = log_softmax %px, axis=-1 return %y }",
    "(%x: $D[%a, %b]) { %y = softmax %x, axis=1 return %y }",
    "(%px: $D[%a, %b], %pw: $D[%b], %pv: $D[%b]) { %y = layer_norm %px, %pw, %pv, 1e-5 return %y }",
    "(%px: $D[%a, %b], %pw: $D[%b]) { %y = rms_norm %px, %pw, 1e-5 return %y }",
    "(%px: $D[%a, %b]) { %v, %m = var_mean %px, axes=[1] %s = sum %px, axes=[1] return %v, %m, %s }",
    // What is stored in one pass and used in the next.
    "(%px: $D[%a, %b], %pr: $D[%a, %b]) { %h = add %px, %pr %y = layer_norm %h, none, none, 1e-5 return %h, %y }",
    // Columns that are no suffix, and two axes of them.
    "(%px: $D[%c, %b, %d]) { %y = softmax %px, axis=1 return %y }",
    "(%px: $D[%a, %d, %b]) { %y = sum %px, axes=[1, 2] %z = max %px, axes=[1, 2] return %y, %z }",
    // Backward of a norm: three passes, then sums over the other axis.
    "(%px: $D[%a, %b], %pw: $D[%b], %pg: $D[%a, %b]) { %v, %m = var_mean %px, axes=[1], keepdim=true, correction=0 %e = add "
    "%v, 1e-5 "
    "%rs = rsqrt %e %c2 = sub %px, %m %h = mul %c2, %rs %gw = mul %pg, %pw %mg = mean %gw, axes=[1], keepdim=true %gx = mul "
    "%gw, %h "
    "%mx = mean %gx, axes=[1], keepdim=true %t = sub %gw, %mg %u = mul %h, %mx %q = sub %t, %u %dx = mul %q, %rs %p2 = mul "
    "%pg, %h "
    "%dw = sum %p2, axes=[0] %db = sum %pg, axes=[0] return %dx, %dw, %db }",
    // Random numbers whose blocks do and do not begin at a thread's first column.
    "(%px: $D[%a, %b]) { %d2, %m = dropout %px, 0.25, 7, 0 %y = rms_norm %d2, none, 1e-5 return %y, %m }",
    "(%px: $D[%a, %b]) { %d2, %m = dropout %px, 0.25, 7, 3 %s = sum %d2, axes=[1] return %s, %m }",
};

START_TEST(norms_of_every_length) {
    ck_assert(check_lengths(norms[_i], LFUSER_F32, lengths, COUNT(lengths)));
    ck_assert(check_lengths(norms[_i], LFUSER_BF16, is_sim() ? some_lengths : lengths,
                            is_sim() ? COUNT(some_lengths) : COUNT(lengths)));
    ck_assert(check_lengths(norms[_i], LFUSER_F16, some_lengths, COUNT(some_lengths)));
    ck_assert(check_lengths(norms[_i], LFUSER_F64, some_lengths, COUNT(some_lengths)));
}
END_TEST

// Rows that fill a multiprocessor and more: in shared memory, of one block or of a cluster, with more rows than run at once; where all
// columns are there and where not.
START_TEST(rows_in_shared_memory) {
    static const struct {
        const char *text;
        lfuser_dtype dtype;
        int64_t rows, length;
    } cases[] = {
        {"(%px: $D[%a, %b]) { %y = softmax %px, axis=1 return %y }", LFUSER_BF16, 140, 32768},
        {"(%px: $D[%a, %b]) { %y = softmax %px, axis=1 return %y }", LFUSER_F16, 3, 30000},
        {"(%px: $D[%a, %b]) { %y = softmax %px, axis=1 return %y }", LFUSER_BF16, 2, 131072},
        {"(%px: $D[%a, %b]) { %y = log_softmax %px, axis=1 return %y }", LFUSER_F32, 2, 65544},
        {"(%px: $D[%a, %b]) { %m = min %px, axes=[1], keepdim=true %d2 = sub %m, %px %e = exp %d2 %s = sum %e, axes=[1] "
         "return %s, %m }",
         LFUSER_BF16, 2, 131072},
        {"(%px: $D[%a, %b]) { %m = max %px, axes=[1], keepdim=true %d2 = sub %px, %m %e = exp %d2 %s = sum %e, axes=[1] "
         "return %s, %m }",
         LFUSER_F16, 2, 100000},
        {"(%px: $D[%a, %b]) { %m = max %px, axes=[1], keepdim=true %d2 = sub %px, %m %e = exp %d2 %s = sum %e, axes=[1] "
         "return %s, %m }",
         LFUSER_BF16, 2, 262144},
        {"(%px: $D[%a, %b], %pw: $D[%b]) { %y = rms_norm %px, %pw, 1e-5 return %y }", LFUSER_BF16, 2, 131072},
        {"(%px: $D[%a, %b], %pr: $D[%a, %b]) { %h = add %px, %pr %y = layer_norm %h, none, none, 1e-5 return %h, %y }",
         LFUSER_F32, 2, 65536},
    };
    if (SLOW_BUILD && _i % 3) return;
    test_program p;
    ck_assert(program_open(&p, cases[_i].text, cases[_i].dtype));
    const int64_t extents[4] = {cases[_i].rows, cases[_i].length, 3, 2};
    check_case(&p, &(case_options){.n = 7, .extents = extents, .seed = (unsigned)_i + 1});
    program_close(&p);
}
END_TEST

// Fast mode takes a maximum and what is summed below it in one go: rows of one block in registers; longer ones in rounds, and in shared
// memory, of a block or a cluster, where columns are read again; infinite columns and none that is finite, NaN.
static const struct {
    int64_t columns;
    bool again;
    lfuser_dtype dtype;
} fast_rows[] = {
    {4096, false, LFUSER_F32},   {5000, false, LFUSER_F32},   {32768, false, LFUSER_F32},  {57352, false, LFUSER_F32},
    {131072, false, LFUSER_F32}, {300000, false, LFUSER_F32}, {4096, true, LFUSER_F32},    {32768, true, LFUSER_F32},
    {57344, true, LFUSER_F32},   {131072, true, LFUSER_F32},  {40960, false, LFUSER_BF16}, {4096, true, LFUSER_BF16},
    {30000, true, LFUSER_BF16},  {32768, true, LFUSER_BF16},
};
enum { FAST_ROWS = 5 };

static float fast_value(int64_t i, int64_t n, lfuser_dtype dtype) {
    uint32_t bits, at = (uint32_t)i * 2654435761u;
    float value = (float)((int32_t)(at ^ at >> 15) / 256) * 0x1p-18f; // -32 to 32
    if (i / n == 1 && i % n < n / 2) value = -INFINITY;
    if (i / n == 2) value = -INFINITY;
    if (i / n == 3 && i % n == n - 3) value = NAN;
    if (i / n == 4 && i % n == n - 1) value = INFINITY;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == LFUSER_BF16) bits &= 0xffff0000;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

// What comes out of a row: its sum, and (unless NULL) each column's share of it.
static void check_fast_row(const float *values, int64_t n, int row, float got, const float *shares, double tolerance) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (values[i] > most) most = values[i];
    for (int64_t i = 0; i < n; i++) sum += exp(values[i] - most);
    if (row > 1) {
        ck_assert_msg(isnan(got), "row %d of %lld columns: %g", row, (long long)n, (double)got);
        return;
    }
    ck_assert_msg(fabs(got - sum) < 1e-5 * sum, "row %d of %lld columns: %.9g, not %.9g", row, (long long)n, (double)got,
                  sum);
    for (int64_t i = 0; i < n && shares; i++) {
        double share = exp(values[i] - most) / sum;
        if (fabs(shares[i] - share) > tolerance * share)
            ck_abort_msg("row %d of %lld columns, column %lld: %.9g, not %.9g", row, (long long)n, (long long)i,
                         (double)shares[i], share);
    }
}

START_TEST(sums_below_the_largest_in_fast_mode) {
    int64_t n = fast_rows[_i].columns;
    bool again = fast_rows[_i].again;
    lfuser_dtype dtype = fast_rows[_i].dtype;
    lfuser_compile_options fast = {.size = sizeof fast, .math = LFUSER_MATH_FAST};
    char text[400];
    const char *name = dtype == LFUSER_BF16 ? "bf16" : "f32";
    snprintf(text, sizeof text,
             "fusion @f(%%x: %s[%%n, %%k]) {\n  %%f = cast %%x, dtype=f32\n  %%m = max %%f, axes=[1], keepdim=true\n"
             "  %%d = sub %%f, %%m\n  %%e = exp %%d\n  %%s = sum %%e, axes=[1], keepdim=true\n  %%y = div %%e, %%s\n"
             "  %%z = cast %%y, dtype=%s\n  return %%s%s\n}\n",
             name, name, again ? ", %z" : "");
    lfuser_fusion *f = parse(text);
    lfuser_executable *e;
    ok(lfuser_fusion_compile(f, env.device, &fast, &e));
    test_tensor x;
    tensor_init(&x, dtype, 2, (int64_t[]){FAST_ROWS, n}, LAYOUT_DENSE);
    size_t bytes = FAST_ROWS * (size_t)n * sizeof(float);
    float *values = malloc(bytes), *shares = malloc(bytes), sums[FAST_ROWS];
    for (int64_t i = 0; i < FAST_ROWS * n; i++) {
        values[i] = fast_value(i, n, dtype);
        if (dtype == LFUSER_BF16)
            memcpy(tensor_element(&x, i), (char *)&values[i] + 2, 2);
        else
            memcpy(tensor_element(&x, i), &values[i], 4);
    }
    tensor_upload(&x);
    lfuser_output outputs[2] = {0};
    lfuser_argument argument = tensor_argument(&x.view);
    ok(lfuser_run(e, env.stream, &argument, 1, outputs, 1 + again, NULL));
    ok(lfuser_memory_download(env.stream, sums, outputs[0].allocated->tensor.data, sizeof sums));
    bool half = dtype == LFUSER_BF16;
    if (again) ok(lfuser_memory_download(env.stream, shares, outputs[1].allocated->tensor.data, half ? bytes / 2 : bytes));
    for (int64_t i = FAST_ROWS * n; half && again && i-- > 0;) {
        uint32_t bits = (uint32_t)((const uint16_t *)shares)[i] << 16;
        memcpy(&shares[i], &bits, sizeof bits);
    }
    for (int row = 0; row < FAST_ROWS; row++)
        check_fast_row(values + row * n, n, row, sums[row], again ? shares + row * n : NULL, half ? 0x1p-8 : 2e-5);
    for (int i = 0; i <= again; i++) outputs[i].allocated->deleter(outputs[i].allocated);
    free(values);
    free(shares);
    tensor_finish(&x);
    lfuser_executable_destroy(e);
    lfuser_fusion_destroy(f);
}
END_TEST

// ---- reductions ------------------------------------------------------------------------------------------------------------------------

static const char *const reductions[] = {"sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "count_nonzero"};

// Over the last axis, the first one and all, of each dtype that has it.
START_TEST(reductions_of_every_length) {
    static const char *const forms[] = {"(%%x: $D[%%a, %%b]) { %%y = %s %%x, %s return %%y }",
                                        "(%%x: $D[%%b, %%a]) { %%y = %s %%x, %s return %%y }",
                                        "(%%x: $D[%%a, %%b]) { %%y = %s %%x return %%y }"};
    bool arg = _i == 6 || _i == 7;
    const char *axis[] = {arg ? "axis=1" : "axes=[1]", arg ? "axis=0" : "axes=[0]", ""};
    for (unsigned form = 0; form < COUNT(forms); form++) {
        char text[200];
        snprintf(text, sizeof text, forms[form], reductions[_i], axis[form]);
        for (unsigned d = LFUSER_BOOL; d < N_DTYPES; d++) {
            bool all = d == LFUSER_F32 || (d == LFUSER_BF16 && !is_sim());
            check_lengths(text, (lfuser_dtype)d, all ? lengths : some_lengths, all ? COUNT(lengths) : COUNT(some_lengths));
        }
    }
}
END_TEST

// More chunks of several rows than blocks run at once: a block combines a row, and goes on with the next.
START_TEST(runs_of_chunks_that_end_rows) {
    test_program p;
    ck_assert(program_open(&p, "(%x: f32[%a, %b]) { %y = sum %x, axes=[1] return %y }", LFUSER_F32));
    check_case(&p, &(case_options){.n = 7, .extents = (const int64_t[]){140, 24585, 3, 2}, .seed = 5});
    program_close(&p);
}
END_TEST

// Rows that are neighbours in memory: a lane takes one or several.
START_TEST(columns_of_every_width) {
    static const int64_t widths[] = {31, 32, 33, 64, 96, 130, 512};
    static const lfuser_dtype dtypes[] = {LFUSER_I8, LFUSER_BF16, LFUSER_F32, LFUSER_F64, LFUSER_C64};
    for (unsigned d = 0; d < COUNT(dtypes); d++) {
        test_program p;
        ck_assert(program_open(
            &p, "(%x: $D[%b, %a]) { %s = sum %x, axes=[0] %c2 = mul %x, %x %q = sum %c2, axes=[0] return %s, %q }",
            dtypes[d]));
        for (unsigned i = 0; i < COUNT(widths); i++)
            for (unsigned k = 0; k < COUNT(some_lengths) - is_sim(); k++)
                check_length(&p, widths[i], some_lengths[k], i + k);
        if (is_sim() && dtypes[d] == LFUSER_BF16) check_length(&p, 64, 8200, 0); // a whole chunk, and a part of the next
        program_close(&p);
    }
}
END_TEST

// ---- rows, and reductions across them ---------------------------------------------------------------------------------------------------

static const char *const mixed[] = {
    // Backward of layer_norm and of rms_norm.
    "(%px: $D[%a, %b], %pw: $D[%b], %pg: $D[%a, %b]) { %v, %m = var_mean %px, axes=[1], keepdim=true, correction=0 %e = add "
    "%v, 1e-5 "
    "%rs = rsqrt %e %c2 = sub %px, %m %h = mul %c2, %rs %gw = mul %pg, %pw %mg = mean %gw, axes=[1], keepdim=true %gx = mul "
    "%gw, %h "
    "%mx = mean %gx, axes=[1], keepdim=true %t = sub %gw, %mg %u = mul %h, %mx %q = sub %t, %u %dx = mul %q, %rs %p2 = mul "
    "%pg, %h "
    "%dw = sum %p2, axes=[0] %db = sum %pg, axes=[0] return %dx, %dw, %db }",
    "(%px: $D[%a, %b], %pg: $D[%a, %b]) { %s2 = mul %px, %px %ms = mean %s2, axes=[1], keepdim=true %e = add %ms, 1e-5 %rs "
    "= rsqrt "
    "%e %h = mul %px, %rs %p2 = mul %pg, %h %dw = sum %p2, axes=[0] %mx = mean %p2, axes=[1], keepdim=true %u = mul %h, %mx "
    "%q = sub %pg, %u %dx = mul %q, %rs return %dx, %dw }",
    // Nothing along the rows but elements; reductions of other kinds; sums of both axes of one thing.
    "(%px: $D[%a, %b]) { %y = mul %px, 3 %s = sum %y, axes=[0] %t = prod %px, axes=[0] return %y, %s, %t }",
    "(%px: $D[%a, %b]) { %s = sum %px, axes=[1] %t = sum %px, axes=[0] %m = max %px, axes=[0] return %s, %t, %m }",
    // Two axes of rows, two of columns.
    "(%px: $D[%d, %a, %b], %pg: $D[%d, %a, %b]) { %m = mean %px, axes=[2], keepdim=true %y = sub %px, %m %p2 = mul %y, %pg "
    "%s = sum "
    "%p2, axes=[0, 1] return %y, %s }",
    "(%px: $D[%a, %b, %c]) { %m = max %px, axes=[1, 2], keepdim=true %y = sub %px, %m %s = sum %y, axes=[0] return %y, %s }",
};

static void check_mixed(const char *text, lfuser_dtype d, const int64_t (*shapes)[2], size_t n) {
    test_program p;
    if (!program_open(&p, text, d)) return;
    for (unsigned i = 0; i < n; i++) check_length(&p, shapes[i][0], shapes[i][1], i);
    program_close(&p);
}

// Rows of a set that are missing, sets that are, chunks of rows; columns of every number of spans; other layouts.
START_TEST(rows_and_columns) {
    static const int64_t shapes[][2] = {{0, 5},     {1, 7},    {2, 64},    {3, 0},     {31, 40},   {33, 1},    {33, 257},
                                        {64, 256},  {97, 31},  {32, 1025}, {40, 2056}, {45, 4104}, {36, 8192}, {33, 8193},
                                        {1025, 33}, {1024, 8}, {2053, 16}, {5000, 8},  {8192, 2},  {9001, 3},  {16400, 1}};
    // Thread by thread takes its time.
    static const int64_t few[][2] = {{33, 257}, {64, 256}, {1100, 8}},
                         wide[][2] = {{40, 2056}, {33, 8192}, {35, 4104}, {8264, 8}};
    static const int64_t gaps[][2] = {{1030, 4104}}; // rows one by one, of which each second one is missing
    static const lfuser_dtype dtypes[] = {LFUSER_F32, LFUSER_BF16, LFUSER_F16, LFUSER_F64, LFUSER_I32};
    for (unsigned d = 0; d < COUNT(dtypes); d++) {
        bool slow = is_sim() || SLOW_BUILD;
        if (!slow && d == 1 && _i == 0) check_mixed(mixed[_i], dtypes[d], gaps, COUNT(gaps));
        if (!slow)
            check_mixed(mixed[_i], dtypes[d], shapes, COUNT(shapes));
        else if (d < 2)
            check_mixed(mixed[_i], dtypes[d], few, COUNT(few));
        else if ((d + (unsigned)_i) % 3 == 0)
            check_mixed(mixed[_i], dtypes[d], few, 1);
        if (slow && d == 1 && _i % 3 == 0) check_mixed(mixed[_i], dtypes[d], wide, COUNT(wide) - (_i > 0));
    }
}
END_TEST

// Two rows ahead in shared memory, some of which are missing. Whole numbers, so that sums are the same in any order.
START_TEST(rows_and_columns_in_fast_mode) {
    enum { ROWS = 1026, COLUMNS = 4104 };
    if (SLOW_BUILD) return;
    lfuser_compile_options fast = {.size = sizeof fast, .math = LFUSER_MATH_FAST};
    lfuser_fusion *f = parse("fusion @f(%x: f32[%n, %k]) { %m = max %x, axes=[1], keepdim=true %y = sub %x, %m "
                             "%s = sum %y, axes=[0] return %y, %s }");
    lfuser_executable *e;
    ok(lfuser_fusion_compile(f, env.device, &fast, &e));
    test_tensor x;
    tensor_init(&x, LFUSER_F32, 2, (int64_t[]){ROWS, COLUMNS}, LAYOUT_DENSE);
    float *expected = calloc(COLUMNS, sizeof *expected), *sums = malloc(COLUMNS * sizeof *sums);
    uint32_t state = 5;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < COLUMNS; c++) {
            state = state * 1664525 + 1013904223;
            float v = c == r % COLUMNS ? 100 : (float)(state >> 26);
            *(float *)tensor_element(&x, r * COLUMNS + c) = v;
            expected[c] += v - 100;
        }
    tensor_upload(&x);
    lfuser_output outputs[2] = {0};
    lfuser_argument argument = tensor_argument(&x.view);
    ok(lfuser_run(e, env.stream, &argument, 1, outputs, 2, NULL));
    ok(lfuser_memory_download(env.stream, sums, outputs[1].allocated->tensor.data, COLUMNS * sizeof *sums));
    for (int64_t c = 0; c < COLUMNS; c++)
        ck_assert_msg(sums[c] == expected[c], "column %lld: %g, not %g", (long long)c, (double)sums[c], (double)expected[c]);
    for (int i = 0; i < 2; i++) outputs[i].allocated->deleter(outputs[i].allocated);
    free(expected);
    free(sums);
    tensor_finish(&x);
    lfuser_executable_destroy(e);
    lfuser_fusion_destroy(f);
}
END_TEST

// ---- plain elements --------------------------------------------------------------------------------------------------------------------

static const char *const elements[] = {
    "(%x: $D[%a, %b], %y: $D[%a, %b]) { %z = silu %x %r = mul %z, %y return %r }",
    "(%x: $D[%a, %b], %y: $D[%b]) { %z = add %x, %y %r = gelu %z, approximate=tanh return %r }",
    "(%x: $D[%a, %b], %y: $D[%a, 1]) { %z = sub %x, %y return %z }",
    // Loads under a guard, of which the lanes of a vector are on one side or on both.
    "(%x: $D[%a, %b], %y: $D[%a, %b]) { %z = cat %x, %y, axis=1 %r = neg %z return %r }",
    "(%x: $D[%a, %b], %y: $D[%a, %m]) { %z = cat %y, %x, axis=1 return %z }",
    "(%x: $D[%a, %b]) { %z = pad %x, [1, 2], [0, 3], 1 return %z }",
    "(%x: $D[%a, %b]) { %z = roll %x, [1, 5], axes=[0, 1] return %z }",
    "(%x: $D[%a, %b]) { %z = triu %x, diagonal=1 return %z }",
    "(%x: $D[%m, %b], %i: i64[%a]) { %z = take %x, %i, axis=0 return %z }",
    "(%x: $D[%b, %m], %i: i64[%b, %a]) { %z = gather %x, %i, axis=1 return %z }",
    // Arithmetic of halves goes in pairs.
    "(%x: $D[%a, %b], %y: $D[%a, %b]) { %s = add %x, %y %d = sub %x, %y %m = mul %x, %y %f = fma %x, %y, %x return %s, %d, "
    "%m, %f "
    "}",
    "(%x: $D[%a, %b], %y: $D[%a, %b]) { %l = min %x, %y %g = max %x, %y %c = clamp %x, -1, %y %r = relu %x %n = neg %y %b2 "
    "= abs "
    "%x return %l, %g, %c, %r, %n, %b2 }",
    "(%x: $D[%a, %b], %y: $D[%a, %b]) { %c = lt %x, %y %z = select %c, %x, %y %n = sub %x, %y %w = select %c, %n, %x return "
    "%z, "
    "%w }",
    // Parts of a cat that begin at multiples of a vector, or do not; rotated halves.
    "(%x: $D[%b, 32], %y: $D[%b, 16]) { %z = cat %x, %y, %x, axis=1 return %z }",
    "(%x: $D[%b, 12], %y: $D[%b, 20]) { %z = cat %x, %y, axis=1 return %z }",
    "(%x: $D[%a, %b, 32], %c: $D[%b, 32], %s: $D[%b, 32]) { %q = slice %x, [0, 0, 0], [%a, %b, 16], none %r = slice %x, [0, "
    "0, "
    "16], [%a, %b, 32], none %m = neg %r %t = cat %m, %q, axis=2 %u = mul %x, %c %v = mul %t, %s %z = add %u, %v return %z "
    "}",
    // Random numbers.
    "(%x: $D[%a, %b]) { %u = uniform [%a, %b], 0, 1, 5, 0, dtype=f32 %k = ge %u, 0.3 %l = lt %u, 0.7 %t = cast %k, dtype=$D "
    "%z = "
    "add %x, %t return %z, %l }",
    "(%x: $D[%a, %b]) { %u = uniform [%a, %b], 0, 1, 5, 0, dtype=$D %z = add %x, %u return %z }",
    "(%x: $D[%a, %b]) { %u = normal [%a, %b], 0, 1, 5, 2, dtype=$D %z = add %x, %u return %z }",
    "(%x: $D[%a, %b]) { %u = uniform [%b, %a], 0, 1, 5, 0, dtype=$D %t = permute %u, [1, 0] %z = add %x, %t return %z }",
    "(%x: $D[%a, %b]) { %z = cumsum %x, axis=1 return %z }",
};

START_TEST(elements_of_every_shape) {
    unsigned taken = 0;
    bool exact = !strstr(elements[_i], "cumsum");
    for (unsigned d = LFUSER_BOOL; d < N_DTYPES; d++) {
        if (!exact && d >= LFUSER_F16) continue; // the order of float scans is the target's
        bool all = d == LFUSER_F32 && !is_sim();
        taken += check_lengths(elements[_i], (lfuser_dtype)d, all ? lengths : some_lengths,
                               all ? COUNT(lengths) : COUNT(some_lengths));
    }
    ck_assert_uint_gt(taken, 0);
}
END_TEST

// Vectors of a thread that are neighbours along an axis (class STACK), along which other operands are constant: enough threads must be
// left for a GPU, and the axis must be a multiple of the vectors.
static const char *const stacks[] = {
    "(%x: $D[%a, %b], %y: $D[%b], %w: $D[%a, %b]) { %s = add %x, %y %t = silu %s %r = sub %t, %w return %r, %s }",
    "(%x: $D[%c, %a, %d], %y: $D[%c, 1, %d]) { %m = mul %x, %y %r = gelu %m, approximate=tanh return %r }",
};

START_TEST(vectors_above_each_other) {
    enum { THREADS = 132 * 256, LANES = 8 };
    static const lfuser_dtype dtypes[] = {LFUSER_BF16, LFUSER_F16};
    if (!strcmp(test_device_name(), "cpu")) return;
    for (unsigned k = 0; k < COUNT(dtypes) - is_sim(); k++) {
        test_program p;
        ck_assert(program_open(&p, stacks[_i], dtypes[k]));
        for (int64_t above = 2; above <= (is_sim() ? 3 : 8); above++) {
            const int64_t columns = THREADS * LANES, extents[4] = {above, columns, columns / 16, 16};
            check_case(&p, &(case_options){.n = 7, .extents = extents, .in = LAYOUT_DENSE, .seed = (uint64_t)above});
        }
        program_close(&p);
    }
}
END_TEST

// ---- the class for any shape -----------------------------------------------------------------------------------------------------------

// It serves where others are not compiled yet, or there are too many: the same workspaces and grids must do for it.
START_TEST(general_classes) {
    static const struct {
        const char *text;
        lfuser_dtype dtype;
        int64_t rows, length;
    } cases[] = {{mixed[5], LFUSER_F32, 4200, 1},
                 {mixed[0], LFUSER_BF16, 2100, 9},
                 {mixed[2], LFUSER_F32, 40, 1030},
                 {norms[0], LFUSER_F32, 3, 9000},
                 {norms[3], LFUSER_F16, 5, 1025},
                 {"(%px: $D[%a, %b]) { %y = sum %px, axes=[1] return %y }", LFUSER_F32, 2, 20000},
                 {"(%x: $D[%a, %b]) { %y = argmax %x, axis=0 return %y }", LFUSER_I32, 70, 33},
                 {elements[0], LFUSER_BF16, 5, 257},
                 {elements[7], LFUSER_F32, 33, 70},
                 {stacks[0], LFUSER_BF16, 64, 256}};
    test_program p;
    if (SLOW_BUILD && cases[_i].rows > 1000) return;
    ck_assert(program_open_as(&p, cases[_i].text, cases[_i].dtype, "general"));
    check_length(&p, cases[_i].rows, cases[_i].length, (unsigned)_i);
    program_close(&p);
}
END_TEST

static Suite *make(void) {
    Suite *s = suite_create("api schedules");
    tcase_add_loop_test(device_tcase(s, "norms", 600), norms_of_every_length, 0, COUNT(norms));
    tcase_add_loop_test(device_tcase(s, "long rows", 600), rows_in_shared_memory, 0, 9);
    tcase_add_loop_test(device_tcase(s, "fast", 600), sums_below_the_largest_in_fast_mode, 0, COUNT(fast_rows));
    tcase_add_loop_test(device_tcase(s, "reductions", 600), reductions_of_every_length, 0, COUNT(reductions));
    tcase_add_test(device_tcase(s, "columns", 600), columns_of_every_width);
    tcase_add_loop_test(device_tcase(s, "mixed", 600), rows_and_columns, 0, COUNT(mixed));
    tcase_add_test(device_tcase(s, "fast mixed", 600), rows_and_columns_in_fast_mode);
    tcase_add_loop_test(device_tcase(s, "general", 600), general_classes, 0, 10);
    tcase_add_test(device_tcase(s, "runs", 600), runs_of_chunks_that_end_rows);
    tcase_add_loop_test(device_tcase(s, "elements", 600), elements_of_every_shape, 0, COUNT(elements));
    tcase_add_loop_test(device_tcase(s, "stacks", 600), vectors_above_each_other, 0, COUNT(stacks));
    return s;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
