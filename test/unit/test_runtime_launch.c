// The launch planner: which class of a pointwise kernel strides, extents and addresses lead to on a GPU, tiles above all.
#include "base/debug.h"
#include "runtime/launch.h"
#include "test/unit/test_runtime.h"

enum { MOST = 8, ARGS = 256 };

// A pointwise kernel of `rank` axes whose last access is its store. Words: for each access base and strides, then the extents.
typedef struct kernel {
    lfuser_abi_launch launch;
    lfuser_abi_access accesses[MOST];
    uint64_t slots[ARGS], args[ARGS];
    lf_launch_plan plan;
    bool some;
} kernel;

static const lf_device gpu = {.type = LF_DEVICE_CUDA, .info = {.processors = 132}};

static void kernel_init(kernel *k, uint8_t rank, const int64_t *extents) {
    memset(k, 0, sizeof *k);
    k->launch = (lfuser_abi_launch){
        .rows = rank, .merge_rows = rank, .weight = 3, .accesses = k->accesses, .extents_word = MOST * (1u + rank)};
    k->launch.n_args = k->launch.extents_word + rank;
    for (unsigned a = 0; a < rank; a++) k->slots[k->launch.extents_word + a] = (uint64_t)extents[a];
}

static lfuser_abi_access *add(kernel *k, uint8_t bytes, bool store, uint64_t address, const int64_t *strides) {
    uint32_t n = k->launch.n_accesses++;
    ck_assert_uint_lt(n, MOST);
    lfuser_abi_access *a = &k->accesses[n];
    *a = (lfuser_abi_access){.word = n * (1u + k->launch.rows),
                             .bytes = bytes,
                             .store = store,
                             .varies = (1u << k->launch.rows) - 1,
                             .plain = true,
                             .along = LFUSER_ABI_NO_AXIS};
    k->slots[a->word] = address;
    for (unsigned i = 0; i < k->launch.rows; i++) k->slots[a->word + 1 + i] = (uint64_t)strides[i];
    return a;
}

static void plan(kernel *k) { k->some = lf_launch_plan_make(&k->launch, k->slots, &gpu, k->args, &k->plan); }

static int64_t stride(const kernel *k, unsigned access, unsigned axis) {
    return (int64_t)k->args[k->accesses[access].word + 1 + axis];
}

#define STRIDES(...)                                                                                                        \
    (const int64_t[]) { __VA_ARGS__ }

// x transposed plus y: [m, n], x has stride 1 along m.
static void transpose(kernel *k, int64_t m, int64_t n, uint8_t bytes, uint64_t x_address) {
    kernel_init(k, 2, STRIDES(m, n));
    add(k, bytes, false, x_address, STRIDES(1, m));
    add(k, bytes, false, 4096, STRIDES(n, 1));
    add(k, bytes, true, 8192, STRIDES(n, 1));
    plan(k);
}

static void expect_tiles(const kernel *k, unsigned vector, unsigned tiled, uint64_t tiles) {
    ck_assert_uint_eq(k->plan.cls.shape, LFUSER_ABI_TILE);
    ck_assert_uint_eq(k->plan.cls.vector, vector);
    ck_assert_uint_eq(k->plan.cls.tiled, tiled);
    ck_assert_uint_eq(k->plan.cells, tiles);
}

static void expect_plain(const kernel *k, unsigned vector) {
    ck_assert_uint_eq(k->plan.cls.shape, LFUSER_ABI_BLOCK);
    ck_assert_uint_eq(k->plan.cls.vector, vector);
    ck_assert_uint_eq(k->plan.cls.tiled, 0);
    ck_assert_uint_eq(k->plan.cells, 0);
}

START_TEST(a_transpose_is_tiled_by_element_size) {
    static const struct {
        uint8_t bytes, vector;
        uint64_t tiles;
    } sizes[] = {{1, 16, 8 * 4}, {2, 8, 8 * 4}, {4, 4, 16 * 4}, {8, 2, 32 * 8}, {16, 1, 32 * 8}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        kernel k;
        transpose(&k, 1024, 256, sizes[i].bytes, 0);
        expect_tiles(&k, sizes[i].vector, 1, sizes[i].tiles);
        ck_assert_uint_eq(k.plan.cls.rows, 2);
        ck_assert_uint_eq(k.plan.cls.wide, 0);
    }
}
END_TEST

START_TEST(what_is_not_aligned_goes_by_single_elements) {
    kernel k;
    transpose(&k, 1024, 256, 4, 4); // base
    expect_tiles(&k, 1, 1, 32 * 8);
    transpose(&k, 1022, 256, 4, 0); // a line of x
    expect_tiles(&k, 1, 1, 32 * 8);
    transpose(&k, 1024, 258, 4, 0); // a line of y
    expect_tiles(&k, 1, 1, 32 * 9);
    transpose(&k, 1024, 256, 4, 0);
    k.slots[k.accesses[0].word + 2] = 1026; // pitch
    plan(&k);
    expect_tiles(&k, 1, 1, 32 * 8);
    k.slots[k.accesses[0].word + 1] = (uint64_t)-1; // backwards
    plan(&k);
    expect_tiles(&k, 1, 1, 32 * 8);
}
END_TEST

START_TEST(small_and_contiguous_is_not_tiled) {
    kernel k;
    transpose(&k, 15, 256, 4, 0); // less than half a tile
    expect_plain(&k, 1);
    transpose(&k, 256, 15, 4, 0);
    expect_plain(&k, 1);
    transpose(&k, 16, 16, 4, 0);
    expect_tiles(&k, 1, 1, 1);
    transpose(&k, 1, 4096, 4, 0); // an axis of one: all lie in a row
    ck_assert_uint_eq(k.plan.cls.rows, 1);
    expect_plain(&k, 4);
    transpose(&k, 0, 4096, 4, 0);
    ck_assert(!k.some);
    transpose(&k, 256, 256, 4, 0);
    k.accesses[0].plain = false; // a guard
    plan(&k);
    expect_plain(&k, 1);
    k.accesses[0].plain = true;
    k.launch.weight = 2000; // so much to do that memory does not matter
    plan(&k);
    expect_plain(&k, 1);
}
END_TEST

START_TEST(the_other_axis_comes_before_the_innermost) {
    kernel k; // permute [2, 1, 0]: neighbours of x lie along axis 0
    kernel_init(&k, 3, STRIDES(128, 3, 64));
    add(&k, 2, false, 0, STRIDES(1, 128, 3 * 128));
    add(&k, 2, true, 4096, STRIDES(3 * 64, 64, 1));
    plan(&k);
    expect_tiles(&k, 8, 1, 3 * 1 * 1);
    ck_assert_uint_eq(k.plan.cls.rows, 3);
    ck_assert_int_eq(stride(&k, 0, 1), 1);
    ck_assert_int_eq(stride(&k, 0, 0), 128);
    ck_assert_int_eq(stride(&k, 0, 2), 3 * 128);
    ck_assert_int_eq(stride(&k, 1, 1), 3 * 64);
    k.launch.merge_rows = 0; // indices are looked at: axes stay where they are
    plan(&k);
    expect_plain(&k, 1);
}
END_TEST

START_TEST(an_axis_too_short_for_tiles_does_not_count) {
    kernel k; // x is turned along axis 0, of 3 elements; y, smaller ones, along axis 1
    kernel_init(&k, 3, STRIDES(3, 64, 128));
    add(&k, 8, false, 0, STRIDES(1, 3, 3 * 64));
    add(&k, 4, false, 0, STRIDES(64 * 128, 1, 64));
    add(&k, 8, true, 4096, STRIDES(64 * 128, 128, 1));
    plan(&k);
    expect_tiles(&k, 1, 2, 3 * 2 * 4);
}
END_TEST

START_TEST(outer_axes_merge) {
    kernel k; // x[b, h, n, m] read as [b, h, m, n]
    kernel_init(&k, 4, STRIDES(4, 6, 64, 128));
    add(&k, 4, false, 0, STRIDES(6 * 64 * 128, 64 * 128, 1, 64));
    add(&k, 4, true, 4096, STRIDES(6 * 64 * 128, 64 * 128, 128, 1));
    plan(&k);
    expect_tiles(&k, 4, 1, 24 * 1 * 2);
    ck_assert_int_eq(stride(&k, 0, 1), 64 * 128);
    ck_assert_int_eq(stride(&k, 0, 0), 0);
}
END_TEST

START_TEST(the_order_of_the_result_decides) {
    kernel k; // x and y transposed into a transposed result: nothing is turned
    kernel_init(&k, 2, STRIDES(256, 512));
    add(&k, 4, false, 0, STRIDES(1, 256));
    add(&k, 4, false, 4096, STRIDES(1, 256));
    add(&k, 4, true, 8192, STRIDES(1, 256));
    plan(&k);
    expect_plain(&k, 4);
    ck_assert_uint_eq(k.plan.cls.rows, 1);
    k.slots[k.accesses[1].word + 1] = 512; // y as it is: turned as seen from the result
    k.slots[k.accesses[1].word + 2] = 1;
    plan(&k);
    expect_tiles(&k, 4, 2, (512 / 64) * (256 / 64));
}
END_TEST

START_TEST(as_many_as_fit_are_tiled) {
    kernel k; // 16 KiB a tall tile: three fit 48 KiB; 8 KiB one that is not: six, and the seventh leaves no vectors
    for (unsigned tall = 0; tall < 2; tall++) {
        kernel_init(&k, 2, STRIDES(256, 256));
        for (unsigned i = 0; i < 4 - tall; i++) add(&k, 4, false, 0, STRIDES(1, 256));
        add(&k, 4, true, 8192, STRIDES(256, 1));
        plan(&k);
        expect_tiles(&k, 4, tall ? 7 : 15, (tall ? 4 : 8) * 4);
        ck_assert_uint_eq(k.plan.cls.spans, tall);
    }
    transpose(&k, 63, 256, 4, 0); // too short for a tall one: not aligned besides
    expect_tiles(&k, 1, 1, 2 * 8);
    transpose(&k, 60, 256, 4, 0);
    expect_tiles(&k, 4, 1, 2 * 4);
    ck_assert_uint_eq(k.plan.cls.spans, 0);
    kernel_init(&k, 2, STRIDES(256, 256));
    for (unsigned i = 0; i < 6; i++) add(&k, 4, false, 0, STRIDES(1, 256));
    add(&k, 4, true, 8192, STRIDES(256, 1));
    plan(&k);
    expect_tiles(&k, 4, 0x3f, 8 * 4);
    kernel_init(&k, 2, STRIDES(256, 256));
    for (unsigned i = 0; i < 7; i++) add(&k, 4, false, 0, STRIDES(1, 256));
    add(&k, 4, true, 8192, STRIDES(256, 1));
    plan(&k);
    expect_tiles(&k, 1, 0x7f, 8 * 8); // 4 KiB a tile
}
END_TEST

START_TEST(a_broadcast_beside_a_transpose) {
    kernel k;
    kernel_init(&k, 2, STRIDES(256, 256));
    add(&k, 4, false, 0, STRIDES(1, 256));
    add(&k, 4, false, 4096, STRIDES(1, 0))->varies = 1; // of a column: one a row
    add(&k, 4, true, 8192, STRIDES(256, 1));
    plan(&k);
    expect_tiles(&k, 4, 1, 4 * 4);
    k.accesses[1].varies = 3; // the code would take a vector of it
    plan(&k);
    expect_tiles(&k, 1, 1, 8 * 8);
}
END_TEST

START_TEST(a_second_result_may_be_turned) {
    kernel k;
    kernel_init(&k, 2, STRIDES(256, 512));
    add(&k, 2, false, 0, STRIDES(512, 1));
    add(&k, 2, true, 4096, STRIDES(512, 1));
    add(&k, 2, true, 8192, STRIDES(1, 256));
    plan(&k);
    expect_tiles(&k, 8, 4, 2 * 8);
    k.accesses[0].along = k.accesses[1].along = 1;
    k.accesses[2].along = 0;
    lfuser_abi_class classes[LF_MAX_CLASSES];
    lf_launch_usual_classes(&k.launch, LF_DEVICE_CUDA, classes);
    ck_assert_uint_eq(lf_class_key(classes[0]), lf_class_key(k.plan.cls));
}
END_TEST

START_TEST(more_than_32_bits) {
    kernel k;
    transpose(&k, 65536, 65536, 2, 0);
    expect_tiles(&k, 8, 1, 512 * 1024);
    ck_assert_uint_eq(k.plan.cls.wide, 1);
}
END_TEST

// x plus a bias along the innermost axis: vectors lie one above the other where the rows are many enough and even.
static void bias(kernel *k, int64_t m, int64_t n) {
    kernel_init(k, 2, STRIDES(m, n));
    add(k, 2, false, 0, STRIDES(n, 1));
    add(k, 2, false, 4096, STRIDES(0, 1))->varies = 2;
    add(k, 2, true, 8192, STRIDES(n, 1));
    k->launch.weight = 14;
    plan(k);
}

START_TEST(what_is_constant_along_an_axis_is_loaded_once) {
    kernel k;
    bias(&k, 4096, 4096);
    ck_assert_uint_eq(k.plan.cls.shape, LFUSER_ABI_STACK);
    ck_assert_uint_eq(k.plan.cls.vector, 8);
    ck_assert_uint_eq(k.plan.cls.spans, 4);
    ck_assert_uint_eq(k.plan.cls.chunks, 0);
    ck_assert_uint_eq(k.plan.cls.tiled, 2);
    ck_assert_uint_eq(k.plan.cells, 1024 * 4096);
    lfuser_abi_class classes[LF_MAX_CLASSES];
    lf_launch_usual_classes(&k.launch, LF_DEVICE_CUDA, classes);
    ck_assert_uint_eq(lf_class_key(classes[0]), lf_class_key(k.plan.cls));
    bias(&k, 4098, 4096); // a multiple of two
    ck_assert_uint_eq(k.plan.cls.shape, LFUSER_ABI_STACK);
    ck_assert_uint_eq(k.plan.cls.spans, 2);
    ck_assert_uint_eq(k.plan.cells, 2049 * 4096);
    bias(&k, 4097, 4096);
    expect_plain(&k, 8);
    bias(&k, 4096, 4100); // no vectors
    expect_plain(&k, 1);
    bias(&k, 64, 4096); // too few threads would be left
    expect_plain(&k, 8);
    bias(&k, 1, 1 << 24); // one row: nothing is constant
    expect_plain(&k, 8);
}
END_TEST

// Axes merge first; where a kernel looks at indices, does little, or takes few elements at once, nothing is stacked.
START_TEST(stacks_lie_along_merged_axes) {
    kernel k;
    kernel_init(&k, 4, STRIDES(4, 32, 8192, 128));
    int64_t h = 8192 * 128;
    add(&k, 2, false, 0, STRIDES(32 * h, h, 128, 1));
    add(&k, 2, false, 4096, STRIDES(0, 0, 128, 1))->varies = 12;
    add(&k, 2, true, 8192, STRIDES(32 * h, h, 128, 1));
    k.launch.weight = 14;
    plan(&k);
    ck_assert_uint_eq(k.plan.cls.shape, LFUSER_ABI_STACK);
    ck_assert_uint_eq(k.plan.cls.rows, 2);
    ck_assert_uint_eq(k.plan.cls.chunks, 2);
    ck_assert_uint_eq(k.plan.cls.tiled, 2);
    lfuser_abi_class classes[LF_MAX_CLASSES];
    lf_launch_usual_classes(&k.launch, LF_DEVICE_CUDA, classes);
    ck_assert_uint_eq(lf_class_key(classes[0]), lf_class_key(k.plan.cls));
    k.launch.weight = 4;
    plan(&k);
    expect_plain(&k, 8);
    k.launch.weight = 14;
    k.launch.merge_rows = 3;
    plan(&k);
    expect_plain(&k, 8);
    ck_assert_uint_eq(k.plan.cls.rows, 3);
    lf_launch_usual_classes(&k.launch, LF_DEVICE_CUDA, classes);
    ck_assert_uint_eq(lf_class_key(classes[0]), lf_class_key(k.plan.cls));
    k.launch.merge_rows = 4;
    for (unsigned i = 0; i < 3; i++) k.accesses[i].bytes = 4;
    plan(&k);
    expect_plain(&k, 4);
}
END_TEST

START_TEST(offsets_beyond_32_bits_are_wide) {
    kernel k;
    kernel_init(&k, 2, STRIDES(3, 1024));
    add(&k, 4, false, 0, STRIDES(INT64_C(1) << 30, 1)); // the last row begins at 2^31
    add(&k, 4, true, 8192, STRIDES(1024, 1));
    plan(&k);
    ck_assert_uint_eq(k.plan.cls.wide, 1);
    k.slots[k.accesses[0].word + 1] = (uint64_t)-((INT64_C(1) << 30) - 1024);
    plan(&k);
    ck_assert_uint_eq(k.plan.cls.wide, 0);
    k.slots[k.accesses[0].word + 1] = (uint64_t)INT64_MIN;
    plan(&k);
    ck_assert_uint_eq(k.plan.cls.wide, 1);
}
END_TEST

// ---- reductions by two kernels ---------------------------------------------------------------------------------------------------------

// A sum over the last of two axes of [rows, columns]; x's strides are given.
static void sum(kernel *k, int64_t rows, int64_t columns, uint8_t bytes, int64_t row_stride, int64_t column_stride) {
    kernel_init(k, 2, STRIDES(rows, columns));
    k->launch.rows = k->launch.cols = k->launch.merge_rows = k->launch.merge_cols = 1;
    k->launch.reduces = true;
    k->launch.reductions = 1;
    k->launch.parts = 8;
    *k->accesses = (lfuser_abi_access){.word = 0, .bytes = bytes, .varies = 3, .plain = true, .along = LFUSER_ABI_NO_AXIS};
    k->slots[1] = (uint64_t)row_stride;
    k->slots[2] = (uint64_t)column_stride;
    k->accesses[1] = (lfuser_abi_access){.word = 3, .bytes = bytes, .store = true, .row = true, .varies = 1, .plain = true};
    k->slots[3] = 4096;
    k->slots[4] = 1;
    k->launch.n_accesses = 2;
    plan(k);
}

START_TEST(few_long_rows_are_reduced_by_two_kernels) {
    kernel k;
    const lfuser_abi_class *second = &k.plan.combine;
    sum(&k, 1, 1 << 28, 2, 1 << 28, 1);
    ck_assert_uint_eq(k.plan.cls.shape, LFUSER_ABI_SPLIT);
    ck_assert_uint_eq(k.plan.cls.vector, 8);
    ck_assert_uint_eq(k.plan.cells, (1 << 28) / 8192);
    ck_assert_uint_eq(k.plan.zero_bytes, 0); // nothing to clear, nobody to wait for
    ck_assert(k.plan.combined && !k.plan.shared_out);
    ck_assert_uint_eq(second->shape, LFUSER_ABI_COMBINE);
    ck_assert_uint_eq(second->chunks, 4); // 32768 results are four chunks, taken at once
    sum(&k, 3, 100001, 4, 100001, 1);
    ck_assert_uint_eq(k.plan.cls.shape, LFUSER_ABI_SPLIT);
    ck_assert_uint_eq(k.plan.cells, 3 * 13);
    ck_assert(k.plan.combined);
    ck_assert_uint_eq(second->chunks, 1); // one, by as many threads as there can be
    ck_assert_uint_eq(second->vector, 1);
    sum(&k, 1, (int64_t)17 << 26, 2, 0, 1); // more chunks of results than slots
    ck_assert(k.plan.combined);
    ck_assert_uint_eq(second->chunks, 0);
    sum(&k, 4096, 100000, 4, 100000, 1); // rows enough for the device
    ck_assert_uint_ne(k.plan.cls.shape, LFUSER_ABI_SPLIT);
    ck_assert(!k.plan.combined);
}
END_TEST

START_TEST(neighbouring_rows_take_parts_of_a_chunk) {
    kernel k;
    sum(&k, 16384, 16384, 2, 1, 16384);
    ck_assert_uint_eq(k.plan.cls.shape, LFUSER_ABI_OUTER);
    ck_assert_uint_eq(k.plan.cls.vector, 4);
    ck_assert_uint_eq(k.plan.cls.chunks, 8);
    ck_assert_uint_eq(k.plan.cells, 16384 / 128 * 2 * 8); // tiles of 128 rows, chunks, parts
    ck_assert(k.plan.combined);
    ck_assert_uint_eq(k.plan.combine.shape, LFUSER_ABI_COMBINE);
    ck_assert_uint_eq(k.plan.combine.spans, 8);
    ck_assert_uint_eq(k.plan.combine.chunks, 2); // a thread loads all parts of both at once
    k.launch.reductions = 5;
    plan(&k);
    ck_assert_uint_eq(k.plan.combine.chunks, 0);
    sum(&k, 16384, 8 * 8192 + 1, 2, 1, 16384);
    ck_assert_uint_eq(k.plan.combine.chunks, 0);
    sum(&k, 16384, 5 * 8192, 2, 1, 16384);
    ck_assert_uint_eq(k.plan.combine.chunks, 8);
    sum(&k, 16384, 16384, 2, 1, 16384);
    k.launch.debug = LF_DEBUG_NO_PARTS;
    plan(&k);
    ck_assert_uint_eq(k.plan.cls.shape, LFUSER_ABI_OUTER);
    ck_assert_uint_eq(k.plan.cls.vector, 2); // so that there are blocks enough
    ck_assert(!k.plan.combined);
    sum(&k, 1 << 20, 16384, 2, 1, 1 << 20); // rows enough
    ck_assert_uint_eq(k.plan.cls.chunks, 0);
    ck_assert(!k.plan.combined);
    sum(&k, 16384, 511, 2, 1, 16384); // too short to share
    ck_assert_uint_eq(k.plan.cls.shape, LFUSER_ABI_OUTER);
    ck_assert(!k.plan.combined);
    k.launch.parts = 0;
    k.slots[k.launch.extents_word + 1] = 16384; // no scratch memory
    plan(&k);
    ck_assert_uint_eq(k.plan.cls.shape, LFUSER_ABI_OUTER);
    ck_assert(!k.plan.combined);
}
END_TEST

START_TEST(classes_have_different_keys) {
    uint64_t seen[4096];
    uint32_t n = 0;
    for (uint8_t vector = 1; vector <= 16; vector *= 2)
        for (unsigned tiled = 0; tiled < 64; tiled++) {
            lfuser_abi_class c = {
                .rows = 2, .vector = vector, .shape = tiled ? LFUSER_ABI_TILE : LFUSER_ABI_BLOCK, .tiled = (uint8_t)tiled};
            seen[n++] = lf_class_key(c);
            seen[n++] = lf_class_key((lfuser_abi_class){.rows = 2,
                                                        .vector = vector,
                                                        .shape = LFUSER_ABI_STACK,
                                                        .spans = 4,
                                                        .chunks = (uint8_t)(tiled % 3),
                                                        .tiled = (uint8_t)tiled});
        }
    for (unsigned i = 0; i < 1u << 10; i++) {
        lfuser_abi_class c = {.rows = 1,
                              .cols = 1,
                              .vector = 8,
                              .shape = LFUSER_ABI_RESIDENT,
                              .spans = 8,
                              .chunks = i & 1 ? 16 : 4,
                              .cluster = (uint8_t)((i >> 1 & 3) * 4),
                              .teams = (uint8_t)((i >> 3 & 3) * 4),
                              .staged = i >> 5 & 15,
                              .full = i >> 9 & 1};
        seen[n++] = lf_class_key(c);
    }
    unsigned same = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++) same += seen[k] == seen[i];
    ck_assert_uint_eq(same, 0);
}
END_TEST

// Rows with a reduction across them: [m, n], one read and one written, a share of 8.
static void mixed(kernel *k, int64_t m, int64_t n, uint64_t address) {
    kernel_init(k, 2, STRIDES(m, n));
    k->launch.rows = k->launch.cols = k->launch.merge_rows = k->launch.merge_cols = 1;
    k->launch.folds = 1;
    k->launch.fold_bytes = 4;
    k->launch.mixed = 0;
    k->launch.share_word = k->launch.n_args++;
    k->slots[k->launch.share_word] = 8;
    k->launch.n_accesses = 2;
    for (unsigned i = 0; i < 2; i++) {
        lfuser_abi_access *a = &k->accesses[i];
        *a = (lfuser_abi_access){.word = i * 3, .bytes = 2, .store = i, .varies = 3, .plain = true, .along = 1};
        k->slots[a->word] = i ? 8192 : address;
        k->slots[a->word + 1] = (uint64_t)n;
        k->slots[a->word + 2] = 1;
    }
    plan(k);
}

// The same launch for other extents of row-major tensors.
static void mixed_again(kernel *k, int64_t m, int64_t n) {
    k->slots[k->launch.extents_word] = (uint64_t)m;
    k->slots[k->launch.extents_word + 1] = (uint64_t)n;
    for (unsigned i = 0; i < 2; i++) k->slots[k->accesses[i].word + 1] = (uint64_t)n;
    plan(k);
}

START_TEST(rows_and_columns_in_one_kernel) {
    static kernel k;
    mixed(&k, 8192, 8192, 4096);
    ck_assert(k.some);
    ck_assert_uint_eq(k.plan.cls.shape, LFUSER_ABI_MIXED);
    ck_assert_uint_eq(k.plan.cls.spans, 8);
    ck_assert_uint_eq(k.plan.cls.vector, 4); // eight would leave a thread too few registers
    ck_assert(k.plan.cls.full);
    ck_assert_uint_eq(k.plan.cls.chunks, 2 | LFUSER_ABI_MIXED_ALL_ROWS);
    ck_assert_uint_eq(k.plan.cells, 128);
    mixed(&k, 10000, 1000,
          4096 + 2); // 1024 / 8 sets of the first chunk and as many of the second, of which some rows are missing
    ck_assert_uint_eq(k.plan.cls.vector, 1);
    ck_assert_uint_eq(k.plan.cls.spans, 1);
    ck_assert(!k.plan.cls.full);
    ck_assert_uint_eq(k.plan.cls.chunks, 2);
    ck_assert_uint_eq(k.plan.cells, 256);
    mixed(&k, 8200, 1024, 4096); // the second chunk has one set
    ck_assert_uint_eq(k.plan.cells, 129);
    k.launch.folds = 8; // and so would eight partial results a column, with any vector
    k.launch.fold_bytes = 32;
    mixed_again(&k, 8192, 8192);
    ck_assert(!k.some);
    mixed(&k, 8192, 8200, 4096); // wider than a block holds
    ck_assert(!k.some);
    mixed(&k, 20, 1024, 4096); // not worth it
    ck_assert(!k.some);
    mixed(&k, 8192, 0, 4096); // only the plain kernels know what nothing adds up to
    ck_assert(!k.some);
    // The launches that depend on it.
    lfuser_abi_launch plain = {.mixed = 3, .instead = true}, combine = {.mixed = 3}, other = {.mixed = LFUSER_ABI_NONE};
    ck_assert(lf_launch_is_made(&other, 5, true) && lf_launch_is_made(&other, 5, false));
    ck_assert(lf_launch_is_made(&combine, 5, true) && !lf_launch_is_made(&combine, 5, false));
    ck_assert(lf_launch_is_made(&plain, 5, false) && !lf_launch_is_made(&plain, 5, true));
    ck_assert(lf_launch_is_made(&combine, 3, false)); // the one that decides
}
END_TEST

// Where a block fills a multiprocessor, rows are taken one by one, the next one on its way to shared memory; the rest of that memory is
// for partial results.
START_TEST(rows_and_columns_staged) {
    static kernel k;
    lf_device h200 = gpu;
    h200.info.shared_a_processor = 228 * 1024;
    h200.info.max_shared = 227 * 1024;
    mixed(&k, 8192, 8192, 4096);
    ck_assert(lf_launch_plan_make(&k.launch, k.slots, &h200, k.args, &k.plan));
    ck_assert_uint_eq(k.plan.cls.vector, 4);
    ck_assert_uint_eq(k.plan.cls.staged, 8);
    ck_assert_uint_eq(k.plan.cls.chunks, 1 | LFUSER_ABI_MIXED_KEEPS | LFUSER_ABI_MIXED_ALL_ROWS);
    ck_assert_uint_eq(k.plan.cls.teams, 5); // as many as could be used, of 32 KiB
    k.launch.folds = 2, k.launch.fold_bytes = 8;
    k.launch.kept = 5; // registers for what is loaded, not for this
    mixed_again(&k, 1000, 5000);
    ck_assert(lf_launch_plan_make(&k.launch, k.slots, &h200, k.args, &k.plan));
    ck_assert_uint_eq(k.plan.cls.chunks, 1);
    ck_assert_uint_eq(k.plan.cls.teams, 3);
    ck_assert(!k.plan.cls.full);
    k.slots[k.launch.extents_word + 1] = 4096; // two blocks fit
    ck_assert(lf_launch_plan_make(&k.launch, k.slots, &h200, k.args, &k.plan));
    ck_assert_uint_eq(k.plan.cls.staged, 0);
    ck_assert_uint_eq(k.plan.cls.chunks, 2);
    h200.info.max_shared = 48 * 1024; // a row of 16 KiB, and one level of 32
    k.launch.folds = 1, k.launch.fold_bytes = 4;
    k.slots[k.launch.extents_word + 1] = 8192;
    ck_assert(lf_launch_plan_make(&k.launch, k.slots, &h200, k.args, &k.plan));
    ck_assert_uint_eq(k.plan.cls.staged, 8);
    ck_assert_uint_eq(k.plan.cls.teams, 0); // what warps exchange has no room beside them
    k.launch.debug = LF_DEBUG_NO_STAGED_ROWS;
    ck_assert(lf_launch_plan_make(&k.launch, k.slots, &h200, k.args, &k.plan));
    ck_assert_uint_eq(k.plan.cls.staged, 0);
}
END_TEST

// The host computes the same numbers of sets; they cover every row once.
START_TEST(sets_of_rows) {
    static const uint64_t rows[] = {1, 7, 8, 9, 1023, 1024, 1025, 8191, 8192, 8193, 9216, 9217, 65536, 100000};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t share = 1; share <= 1024; share *= 2) {
            uint64_t sets = lfuser_abi_mixed_sets(rows[i], share), seen = 0, a_chunk = 1024 / share;
            for (uint64_t s = 0; s < sets; s++) {
                uint64_t base = s / a_chunk * 8192 + s % a_chunk * share, before = seen;
                for (uint64_t t = 0; t < 8 * share; t++) seen += base + t / 8 + t % 8 * 1024 < rows[i];
                ck_assert_uint_gt(seen, before);
            }
            ck_assert_uint_eq(seen, rows[i]);
        }
}
END_TEST

START_TEST(what_is_expected_of_row_major_parameters) {
    kernel k;
    lfuser_abi_class classes[LF_MAX_CLASSES];
    transpose(&k, 256, 256, 2, 0);
    k.accesses[0].along = 0;
    k.accesses[1].along = k.accesses[2].along = 1;
    ck_assert_uint_ge(lf_launch_usual_classes(&k.launch, LF_DEVICE_CUDA, classes), 2);
    ck_assert_uint_eq(lf_class_key(classes[0]), lf_class_key(k.plan.cls));
    lf_launch_usual_classes(&k.launch, LF_DEVICE_CPU, classes);
    ck_assert_uint_eq(classes[0].shape, LFUSER_ABI_BLOCK);
    k.accesses[0].along = 1;
    lf_launch_usual_classes(&k.launch, LF_DEVICE_CUDA, classes);
    ck_assert_uint_eq(classes[0].shape, LFUSER_ABI_BLOCK);
}
END_TEST

// The CPU's kernels for short rows are others, and prepare knows them.
// What a row normalisation's rows of 1 to 10,000 columns are given, dense and one after another, with no cap on how many: at most eight
// classes, for one that costs little and one that costs much.
START_TEST(rows_of_every_length_choose_few_classes) {
    static const struct {
        uint16_t weight;
        uint8_t bytes, kept, reductions, loads;
    } norms[] = {{30, 2, 1, 1, 1}, {30, 4, 1, 1, 1}, {40, 8, 2, 1, 1}, {14, 2, 1, 2, 3},
                 {14, 4, 1, 2, 3}, {14, 4, 2, 2, 2}, {90, 4, 3, 2, 3}, {60, 2, 4, 3, 4}};
    enum { H200_THREADS = 2048, H200_REGISTERS = 65536, H200_SHARED = 233472, MANY = 64 };
    lf_device h200 = gpu;
    h200.info.threads_a_processor = H200_THREADS;
    h200.info.registers_a_processor = H200_REGISTERS;
    h200.info.shared_a_processor = H200_SHARED;
    for (unsigned i = 0; i < sizeof norms / sizeof *norms; i++) {
        lfuser_abi_access accesses[MOST];
        uint64_t slots[ARGS] = {0}, args[ARGS];
        uint64_t keys[MANY];
        uint32_t n = 0, loads = norms[i].loads;
        lfuser_abi_launch l = {.rows = 1,
                               .cols = 1,
                               .merge_rows = 1,
                               .merge_cols = 1,
                               .weight = norms[i].weight,
                               .kept = norms[i].kept,
                               .kept_beside = norms[i].kept,
                               .reductions = norms[i].reductions,
                               .n_accesses = loads + 1,
                               .accesses = accesses,
                               .extents_word = 3 * (loads + 1),
                               .n_args = 3 * (loads + 1) + 2};
        for (uint64_t columns = 1; columns <= 10000; columns++) {
            for (uint32_t a = 0; a <= loads; a++) { // a matrix, weights a column, the result
                bool weights = a > 0 && a < loads;
                accesses[a] = (lfuser_abi_access){.word = 3 * a,
                                                  .bytes = norms[i].bytes,
                                                  .store = a == loads,
                                                  .varies = weights ? 2 : 3,
                                                  .plain = true,
                                                  .along = 1};
                slots[3 * a] = 4096;
                slots[3 * a + 1] = weights ? 0 : columns;
                slots[3 * a + 2] = 1;
            }
            slots[l.extents_word] = 4096;
            slots[l.extents_word + 1] = columns;
            lf_launch_plan p;
            ck_assert(lf_launch_plan_make(&l, slots, &h200, args, &p));
            p.cls.full = false; // rows that just fit may have better code than others of their class
            uint64_t key = lf_class_key(p.cls);
            uint32_t k = 0;
            while (k < n && keys[k] != key) k++;
            if (k == n && n < MANY) keys[n++] = key;
        }
        ck_assert_msg(n <= 8, "norm %u: %u classes", i, n);
    }
}
END_TEST

START_TEST(lengths_of_rows_on_the_cpu) {
    static const struct {
        uint64_t columns;
        unsigned spans, chunks;
    } lengths[] = {{2, 1, 1}, {1024, 1, 1}, {1025, 0, 1}, {8192, 0, 1}, {8193, 0, 0}};
    static const lf_device cpu = {.type = LF_DEVICE_CPU};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        lfuser_abi_access access = {.word = 0, .bytes = 4, .varies = 3, .plain = true, .along = 1};
        lfuser_abi_launch l = {.n_args = 5,
                               .rows = 1,
                               .cols = 1,
                               .merge_rows = 1,
                               .merge_cols = 1,
                               .extents_word = 3,
                               .n_accesses = 1,
                               .accesses = &access,
                               .guard = LFUSER_ABI_NONE};
        uint64_t slots[5] = {4096, lengths[i].columns, 1, 7, lengths[i].columns}, args[5];
        lf_launch_plan p;
        ck_assert(lf_launch_plan_make(&l, slots, &cpu, args, &p));
        ck_assert_uint_eq(p.cls.spans, lengths[i].spans);
        ck_assert_uint_eq(p.cls.chunks, lengths[i].chunks);
        ck_assert_uint_gt(p.cls.vector, 1);
        lfuser_abi_class classes[LF_MAX_CLASSES];
        uint32_t n = lf_launch_usual_classes(&l, LF_DEVICE_CPU, classes), found = 0;
        for (uint32_t k = 0; k < n; k++) found += lf_class_key(classes[k]) == lf_class_key(p.cls);
        ck_assert_uint_eq(found, 1);
    }
}
END_TEST

int main(void) {
    Suite *s = suite_create("launch");
    TCase *t = tcase_create("tiles");
    tcase_add_test(t, a_transpose_is_tiled_by_element_size);
    tcase_add_test(t, what_is_constant_along_an_axis_is_loaded_once);
    tcase_add_test(t, stacks_lie_along_merged_axes);
    tcase_add_test(t, offsets_beyond_32_bits_are_wide);
    tcase_add_test(t, what_is_not_aligned_goes_by_single_elements);
    tcase_add_test(t, small_and_contiguous_is_not_tiled);
    tcase_add_test(t, the_other_axis_comes_before_the_innermost);
    tcase_add_test(t, an_axis_too_short_for_tiles_does_not_count);
    tcase_add_test(t, outer_axes_merge);
    tcase_add_test(t, the_order_of_the_result_decides);
    tcase_add_test(t, as_many_as_fit_are_tiled);
    tcase_add_test(t, a_broadcast_beside_a_transpose);
    tcase_add_test(t, a_second_result_may_be_turned);
    tcase_add_test(t, more_than_32_bits);
    tcase_add_test(t, classes_have_different_keys);
    tcase_add_test(t, few_long_rows_are_reduced_by_two_kernels);
    tcase_add_test(t, neighbouring_rows_take_parts_of_a_chunk);
    tcase_add_test(t, what_is_expected_of_row_major_parameters);
    tcase_add_test(t, rows_and_columns_in_one_kernel);
    tcase_add_test(t, rows_and_columns_staged);
    tcase_add_test(t, sets_of_rows);
    suite_add_tcase(s, t);
    t = tcase_create("rows");
    tcase_add_test(t, rows_of_every_length_choose_few_classes);
    tcase_add_test(t, lengths_of_rows_on_the_cpu);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
