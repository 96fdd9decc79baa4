// Faults with sizes: offsets and counts beyond 2^31, launch grids, odd pitches. On the CPU the large buffers are address space whose
// pages are there only where something was written; numbers as in test/conformance/gen_faults.py.
#include "test/support/api/tensors.h"
#include <math.h>
#include <sys/mman.h>

typedef struct big {
    lfuser_tensor view;
    int64_t shape[2], strides[2];
    size_t bytes;
    bool mapped;
} big;

// Zero on the CPU; anything on a GPU.
static void big_open(big *b, lfuser_dtype d, uint32_t rank, int64_t rows, int64_t cols) {
    *b = (big){.shape = {rows, cols}, .mapped = !test_on_cuda()};
    b->bytes = (size_t)rows * (size_t)(rank > 1 ? cols : 1) * lfuser_dtype_bytes(d);
    b->strides[0] = rank > 1 ? cols : 1;
    b->strides[1] = 1;
    b->view = (lfuser_tensor){.device = env.place,
                              .rank = (int32_t)rank,
                              .dtype = lfuser_dl_dtype_of(d),
                              .shape = b->shape,
                              .strides = b->strides};
    if (!b->mapped) {
        ok(lfuser_memory_alloc(env.stream, b->bytes, &b->view.data));
        return;
    }
    b->view.data = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(b->view.data, MAP_FAILED);
}

static void big_close(big *b) {
    if (b->mapped)
        munmap(b->view.data, b->bytes);
    else
        lfuser_memory_free(env.stream, b->view.data);
}

static void put(big *b, size_t at, const void *from, size_t bytes) {
    ok(lfuser_memory_upload(env.stream, (char *)b->view.data + at, from, bytes));
}

static void run(const char *text, const lfuser_argument *a, size_t n, test_tensor *out) {
    lfuser_executable *e = compile(text);
    lfuser_output output = {.tensor = &out->view};
    ok(lfuser_run(e, env.stream, a, n, &output, 1, NULL));
    tensor_download(out);
    tensor_check_guards(out, text);
    lfuser_executable_destroy(e);
}

static void make(test_tensor *t, lfuser_dtype d, uint32_t rank, const int64_t *shape) {
    tensor_init(t, d, rank, shape, LAYOUT_DENSE);
    tensor_upload(t);
}

// 37: few elements, but the first lies beyond 2^31: by a slice, and by a descriptor's offset.
START_TEST(offset_beyond_2_31) {
    enum { ROWS = 70000, COLS = 40000, FIRST = 65000, N = 5000, WIDTH = 64 };
    big x;
    big_open(&x, LFUSER_I8, 2, ROWS, COLS);
    int8_t row[WIDTH];
    for (int r = 0; r < N; r++) {
        for (int c = 0; c < WIDTH; c++) row[c] = (int8_t)(r * 31 + c);
        put(&x, (size_t)(FIRST + r) * COLS, row, WIDTH);
        synchronize();
    }
    const int64_t shape[] = {N, WIDTH};
    for (int described = 0; described < 2; described++) {
        test_tensor y;
        make(&y, LFUSER_I8, 2, shape);
        if (described) {
            x.view.byte_offset = (uint64_t)FIRST * COLS;
            x.shape[0] = N;
            x.shape[1] = WIDTH;
        }
        lfuser_argument a = tensor_argument(&x.view);
        run(described ? "fusion @t(%x: i8[?, ?]) { %y = add %x, 0 return %y }"
                      : "fusion @t(%x: i8[?, ?]) { %y = slice %x, [65000, 0], [70000, 64], [1, 1] return %y }",
            &a, 1, &y);
        for (int64_t i = 0; i < N * WIDTH; i++)
            if (*(int8_t *)tensor_element(&y, i) != (int8_t)(i / WIDTH * 31 + i % WIDTH))
                ck_abort_msg("element %lld", (long long)i);
        tensor_finish(&y);
    }
    big_close(&x);
}
END_TEST

// 41: index times stride is 2^31 exactly.
START_TEST(row_at_2_31) {
    enum { ROWS = 24901, COLS = 131072, ROW = 16384 };
    static int8_t row[COLS];
    for (int c = 0; c < COLS; c++) row[c] = (int8_t)(c * 7 + c / 251);
    big x;
    big_open(&x, LFUSER_I8, 2, ROWS, COLS);
    put(&x, (size_t)ROW * COLS, row, COLS);
    const int64_t one[] = {1}, shape[] = {1, COLS};
    for (int wide = 0; wide < 2; wide++) {
        test_tensor i, y;
        tensor_init(&i, wide ? LFUSER_I64 : LFUSER_I32, 1, one, LAYOUT_DENSE);
        memset(i.host, 0, (size_t)i.elements * i.bytes);
        *(int32_t *)tensor_element(&i, 0) = ROW;
        tensor_upload(&i);
        make(&y, LFUSER_I8, 2, shape);
        lfuser_argument a[] = {tensor_argument(&x.view), tensor_argument(&i.view)};
        run(wide ? "fusion @t(%x: i8[?, ?], %i: i64[?]) { %y = take %x, %i, axis=0 return %y }"
                 : "fusion @t(%x: i8[?, ?], %i: i32[?]) { %y = take %x, %i, axis=0 return %y }",
            a, 2, &y);
        ck_assert_mem_eq(tensor_element(&y, 0), row, COLS);
        tensor_finish(&i);
        tensor_finish(&y);
    }
    big_close(&x);
}
END_TEST

// 39: a reduction of more than 2^31 elements; the greatest is the last. 43: as many as that to write or to count.
START_TEST(more_than_2_31_elements) {
    const int64_t n = (1ll << 31) + 8;
    const uint16_t two = 0x4000;
    big x;
    big_open(&x, LFUSER_F16, 1, n, 1);
    if (test_on_cuda()) {
        lfuser_executable *e = compile("fusion @t(%n: i64) { %y = full [%n], 1.0, dtype=f16 return %y }");
        lfuser_argument a = i64_argument(n);
        lfuser_output out = {.tensor = &x.view};
        ok(lfuser_run(e, env.stream, &a, 1, &out, 1, NULL));
        lfuser_executable_destroy(e);
    }
    put(&x, (size_t)(n - 1) * 2, &two, 2);
    test_tensor y;
    make(&y, LFUSER_F16, 0, NULL);
    lfuser_argument a = tensor_argument(&x.view);
    run("fusion @t(%x: f16[?]) { %y = max %x return %y }", &a, 1, &y);
    ck_assert_uint_eq(*(uint16_t *)tensor_element(&y, 0), two);
    tensor_finish(&y);
    big_close(&x);
}
END_TEST

START_TEST(count_beyond_2_31) {
    test_tensor y;
    make(&y, LFUSER_I64, 0, NULL);
    lfuser_argument a = i64_argument(3276800000);
    run("fusion @t(%n: i64) { %x = full [%n], 1, dtype=i8 %y = sum %x return %y }", &a, 1, &y);
    ck_assert_int_eq(*(int64_t *)tensor_element(&y, 0), 3276800000);
    tensor_finish(&y);
}
END_TEST

// 45, 47, 49: many rows, or columns, or both, beyond what one axis of a launch grid takes; ones in, ones out.
static const struct grid {
    const char *text;
    int64_t shape[4];
    uint32_t rank;
    lfuser_dtype dtype;
} grids[] = {
    {"fusion @t(%x: f16[?, ?]) { %e = expand %x, [196, 262144] %y = mul %e, %e return %y }", {196, 262144}, 2, LFUSER_F16},
    {"fusion @t(%x: f16[?, ?]) { %e = expand %x, [262144, 196] %t = transpose %e, 0, 1 %y = mul %t, %t return %y }",
     {196, 262144},
     2,
     LFUSER_F16},
    {"fusion @t(%x: f32[?, ?]) { %e = expand %x, [100800, 1] %y = cumprod %e, axis=1 return %y }",
     {100800, 1},
     2,
     LFUSER_F32},
    {"fusion @t(%x: f32[?, ?]) { %e = expand %x, [100800, 3] %y = cumprod %e, axis=1 return %y }",
     {100800, 3},
     2,
     LFUSER_F32},
    {"fusion @t(%x: f32[?, ?]) { %e = expand %x, [1, 8, 3136, 3136] %y = mean %e, axes=[1] return %y }",
     {1, 3136, 3136},
     3,
     LFUSER_F32},
    {"fusion @t(%x: f32[?, ?]) { %e = expand %x, [70000, 70, 3] %y = softmax %e, axis=0 %z = mul %y, 70000.0 return %z }",
     {70000, 70, 3},
     3,
     LFUSER_F32},
};
START_TEST(launch_grids) {
    const struct grid *g = &grids[_i];
    const int64_t ones[] = {1, 1};
    test_tensor x, y;
    tensor_init(&x, g->dtype, 2, ones, LAYOUT_DENSE);
    const uint32_t one = g->dtype == LFUSER_F16 ? 0x3c00 : 0x3f800000;
    memcpy(tensor_element(&x, 0), &one, x.bytes);
    tensor_upload(&x);
    make(&y, g->dtype, g->rank, g->shape);
    lfuser_argument a = tensor_argument(&x.view);
    run(g->text, &a, 1, &y);
    int64_t n = tensor_numel(&y);
    for (int64_t i = 0; i < n; i++) {
        const void *e = tensor_element(&y, i);
        bool right = _i == 5 ? fabsf(*(const float *)e - 1) < 1e-5f : !memcmp(e, &one, y.bytes);
        if (!right) ck_abort_msg("element %lld is not 1: %s", (long long)i, g->text);
    }
    tensor_finish(&x);
    tensor_finish(&y);
}
END_TEST

// 60: a pitch of 4097, a product, and a slice of it.
START_TEST(odd_pitch) {
    enum { ROWS = 512, PITCH = 4097, COLS = 4096 };
    const int64_t shape[] = {ROWS, PITCH}, cut[] = {ROWS, COLS};
    test_tensor x, m, y;
    tensor_init(&x, LFUSER_BF16, 2, shape, LAYOUT_DENSE);
    tensor_init(&m, LFUSER_BF16, 2, shape, LAYOUT_ODD);
    for (int64_t i = 0; i < ROWS * PITCH; i++) {
        *(uint16_t *)tensor_element(&x, i) = (uint16_t)(0x3f80 + i % 1000);
        *(uint16_t *)tensor_element(&m, i) = i % 3 ? 0x3f80 : 0;
    }
    tensor_upload(&x);
    tensor_upload(&m);
    make(&y, LFUSER_BF16, 2, cut);
    lfuser_argument a[] = {tensor_argument(&x.view), tensor_argument(&m.view)};
    run("fusion @t(%x: bf16[?, ?], %m: bf16[?, ?]) { %p = mul %x, %m %y = slice %p, [0, 0], [512, 4096], [1, 1] return %y }",
        a, 2, &y);
    for (int64_t i = 0; i < ROWS * COLS; i++) {
        int64_t at = i / COLS * PITCH + i % COLS;
        uint16_t got = *(uint16_t *)tensor_element(&y, i), want = at % 3 ? (uint16_t)(0x3f80 + at % 1000) : 0;
        if (got != want)
            ck_abort_msg("element %lld is %x, not %x", (long long)i, got, want); // an assertion costs a system call
    }
    tensor_finish(&x);
    tensor_finish(&m);
    tensor_finish(&y);
}
END_TEST

// 145: std of a thousand elements whose squares overflow, and then their squared deviations' sum too: infinite by the formula,
// everywhere. (Two of them stay finite: fault.145.)
START_TEST(overflowing_deviations) {
    const int64_t shape[] = {1000};
    test_tensor x, y;
    tensor_init(&x, LFUSER_F32, 1, shape, LAYOUT_DENSE);
    for (int64_t i = 0; i < 1000; i++) *(float *)tensor_element(&x, i) = i % 2 ? 0.9e20f : 1.1e20f;
    tensor_upload(&x);
    make(&y, LFUSER_F32, 0, NULL);
    lfuser_argument a = tensor_argument(&x.view);
    run("fusion @t(%x: f32[?]) { %y = std %x, correction=0 return %y }", &a, 1, &y);
    ck_assert_float_infinite(tensor_f32_at(&y, 0));
    tensor_finish(&x);
    tensor_finish(&y);
}
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("faults of size");
    TCase *t = device_tcase(suite, "size", 120);
    if (!SLOW_BUILD) { // sanitizers want the whole of the address space
        tcase_add_test(t, offset_beyond_2_31);
        tcase_add_test(t, row_at_2_31);
        tcase_add_test(t, more_than_2_31_elements);
        tcase_add_test(t, count_beyond_2_31);
        tcase_add_loop_test(t, launch_grids, 0, sizeof grids / sizeof *grids);
    }
    tcase_add_test(t, odd_pitch);
    tcase_add_test(t, overflowing_deviations);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make_suite); }
