// Long rows on a GPU: which class the planner gives them, for a device with clusters and for one without, and what the code of that class
// holds. That the results are right is tested in test_api_schedules.c.
#include "codegen/codegen.h"
#include "parse/parse.h"
#include "runtime/launch.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const lf_allocator *const heap = &lf_system_allocator;
static void ok(lf_status s) { ck_assert_msg(!s, "%s", lf_status_message(s)); }

static const char softmax[] = "(%x: bf16[?, ?]) { %r = softmax %x, axis=1 return %r }";
static const char softmax_f32[] = "(%x: f32[?, ?]) { %r = softmax %x, axis=1 return %r }";
static const char entropy[] = "(%x: bf16[%n, %k], %l: i64[%n]) { %r = cross_entropy %x, %l return %r }";
static const char entropy_f32[] = "(%x: f32[%n, %k], %l: i64[%n]) { %r = cross_entropy %x, %l return %r }";
static const char layer_norm[] =
    "(%x: bf16[%n, %k], %w: bf16[%k], %b: bf16[%k]) { %r = layer_norm %x, %w, %b, 1e-5 return %r }";
static const char norm[] = "(%x: bf16[%n, %k], %w: bf16[%k]) { %r = rms_norm %x, %w, 1e-5 return %r }";

typedef struct expected {
    const char *body;
    int64_t columns;
    uint32_t sm;
    uint8_t shape, vector, chunks, cluster, teams, staged;
    bool full;
    const char *has, *lacks; // in the PTX
} expected;
static const expected rows[] = {
    // A short row stays in registers; when all columns are there nothing asks whether they are.
    {softmax, 4096, 90, LFUSER_ABI_RESIDENT, 8, 1, 0, 0, 0, true, "max.NaN.bf16x2", "cp.async"},
    {softmax, 4088, 90, LFUSER_ABI_RESIDENT, 8, 1, 0, 0, 0, false, "max.NaN.bf16x2", "cp.async"},
    {norm, 8192, 90, LFUSER_ABI_RESIDENT, 8, 1, 0, 0, 0, true, "bar.sync", "cp.async"},
    // One that fills a processor, with much work for each byte, is copied ahead to shared memory. 1024 threads, 4 vectors each.
    {softmax, 32768, 90, LFUSER_ABI_RESIDENT, 4, 4, 0, 0, 8, true, "cp.async.ca.shared.global", "barrier.cluster"},
    {softmax, 30000, 90, LFUSER_ABI_RESIDENT, 4, 4, 0, 0, 8, false, "cp.async.ca.shared.global", "barrier.cluster"},
    {softmax, 32768, 80, LFUSER_ABI_RESIDENT, 4, 4, 0, 0, 8, true, "cp.async.ca.shared.global", "barrier.cluster"},
    {softmax_f32, 32768, 90, LFUSER_ABI_RESIDENT, 4, 4, 0, 0, 0, true, "bar.sync", "cp.async"},
    {layer_norm, 32768, 90, LFUSER_ABI_RESIDENT, 8, 4, 0, 0, 0, true, "bar.sync", "cp.async"},
    // Two rounds of eight chunks; two of sixteen vectors find no room.
    {entropy, 131072, 90, LFUSER_ABI_RESIDENT, 8, 16, 0, 8, 14, true, "prefetch.global.L2", "barrier.cluster"},
    // Rows that are too long for one block have several, or are read again where there are no clusters.
    {entropy, 262144, 90, LFUSER_ABI_RESIDENT, 8, 16, 2, 8, 13, true, ".reqnctapercluster 2", "bar.sync"},
    {entropy_f32, 131072, 90, LFUSER_ABI_RESIDENT, 4, 8, 2, 4, 13, true, "mapa.shared::cluster", "bar.sync"},
    {softmax, 131072, 90, LFUSER_ABI_RESIDENT, 4, 4, 4, 0, 8, true, "barrier.cluster.arrive.aligned", "bar.sync"},
    {entropy, 262144, 80, LFUSER_ABI_ROUNDS, 8, 4, 0, 0, 0, false, "bar.sync", "mapa"},
    {softmax, 131072, 80, LFUSER_ABI_ROUNDS, 8, 4, 0, 0, 0, false, "bar.sync", "mapa"},
};
static const expected fast_rows[] = {
    // What is read once need not be held.
    {entropy, 131072, 90, LFUSER_ABI_ROUNDS, 8, 4, 0, 0, 0, true, "max.NaN.bf16x2", "cp.async"},
    {entropy, 2000000, 90, LFUSER_ABI_ROUNDS, 8, 4, 0, 0, 0, false, "max.NaN.bf16x2", "cp.async"},
    // Rows that leave room for another's block are not copied ahead; others are.
    {softmax, 32768, 90, LFUSER_ABI_RESIDENT, 4, 4, 0, 0, 8, true, ".maxnreg 32", "prefetch"},
    {softmax, 30000, 90, LFUSER_ABI_RESIDENT, 4, 4, 0, 0, 8, false, "cp.async", "barrier.cluster"},
    {softmax, 65536, 90, LFUSER_ABI_RESIDENT, 8, 8, 0, 0, 8, true, "cp.async", "barrier.cluster"},
};
enum { N = sizeof rows / sizeof *rows, N_FAST = sizeof fast_rows / sizeof *fast_rows };

// Row-major memory for all accesses of the launch.
static void lay_out(const lfuser_abi_launch *l, uint64_t *slots, int64_t n, int64_t columns) {
    uint64_t *args = &slots[l->args_slot];
    args[l->extents_word] = (uint64_t)n;
    args[l->extents_word + 1] = (uint64_t)columns;
    for (uint32_t i = 0; i < l->n_accesses; i++) {
        const lfuser_abi_access *a = &l->accesses[i];
        args[a->word] = 1 << 20;
        args[a->word + 1] = a->varies & 1 ? (a->varies & 2 ? (uint64_t)columns : 1) : 0;
        args[a->word + 2] = a->varies >> 1 & 1;
    }
}

static void check_class(const expected *e, int row, bool fast) {
    // As of an H200 and an A100.
    const lf_device device = {.type = LF_DEVICE_CUDA,
                              .info = {.processors = 132,
                                       .threads_a_processor = 2048,
                                       .registers_a_processor = 65536,
                                       .shared_a_processor = e->sm >= 90 ? 233472 : 167936,
                                       .max_block = 1024,
                                       .max_cluster = e->sm >= 90 ? 8 : 0,
                                       .max_shared = e->sm >= 90 ? 232448 : 166912}};
    const lf_target target = {.kind = LF_TARGET_CUDA, .sm = e->sm};
    const lf_codegen_table *table = lfuser_codegen_entry(LF_CODEGEN_VERSION);
    lf_codegen *generator;
    lf_graph **graphs;
    lf_program *p;
    lf_launch_plan plan;
    lf_object object;
    size_t n;
    char text[256];
    snprintf(text, sizeof text, "fusion @f%s", e->body);
    ok(lf_parse(heap, "t", text, strlen(text), false, &graphs, &n));
    ok(lf_program_create(graphs[0], 0, fast, &p));
    uint64_t *slots = calloc(p->abi.n_slots, sizeof *slots), args[128];
    const lfuser_abi_launch *l = &p->abi.launches[0];
    ck_assert_uint_le(l->n_args, 128);
    lay_out(l, slots, 4096, e->columns);
    ck_assert(lf_launch_plan_make(l, slots, &device, args, &plan));
    const lfuser_abi_class c = plan.cls;
    ck_assert_msg(c.shape == e->shape && c.vector == e->vector && c.chunks == e->chunks && c.cluster == e->cluster &&
                      c.teams == e->teams && c.staged == e->staged && c.full == e->full,
                  "row %d: shape %u, vector %u, chunks %u, cluster %u, teams %u, staged %u, full %d", row, c.shape, c.vector,
                  c.chunks, c.cluster, c.teams, c.staged, c.full);
    ok(table->create(heap, NULL, &generator));
    ok(table->kernel(generator, p->kernels[l->kernel], &target, c, &(lf_codegen_options){.fast = fast}, &object));
    ck_assert_msg(strstr(object.text, e->has) != NULL, "row %d lacks %s:\n%s", row, e->has, object.text);
    ck_assert_msg(!strstr(object.text, e->lacks), "row %d has %s:\n%s", row, e->lacks, object.text);
    ck_assert_uint_eq(object.cluster, e->cluster);
    ck_assert_uint_le(object.shared_bytes + object.staged_bytes, device.info.max_shared);
    ck_assert_int_eq(object.staged_bytes > 0, e->staged > 0);
    table->release(generator, &object);
    table->destroy(generator);
    free(slots);
    lf_program_destroy(p);
    lf_parse_release(heap, graphs, n);
}

START_TEST(classes_of_long_rows) { check_class(&rows[_i], _i, false); }
END_TEST

START_TEST(classes_in_fast_mode) { check_class(&fast_rows[_i], _i, true); }
END_TEST

// A group of multiprocessors need not hold clusters without rest: some are left out.
START_TEST(resident_blocks) {
    const lf_device_info info = {
        .processors = 132, .threads_a_processor = 2048, .registers_a_processor = 65536, .shared_a_processor = 233472};
    const lf_kernel_resources few = {.registers = 32, .shared_bytes = 1024}, many = {.registers = 64};
    ck_assert_uint_eq(lf_resident_blocks(&info, &few, 256, 0, 0), 8 * 132);
    ck_assert_uint_eq(lf_resident_blocks(&info, &few, 256, 65536, 0), 3 * 132);
    ck_assert_uint_eq(lf_resident_blocks(&info, &many, 1024, 131072, 0), 132);
    ck_assert_uint_eq(lf_resident_blocks(&info, &many, 1024, 131072, 4), 116);
    ck_assert_uint_eq(lf_resident_blocks(&(lf_device_info){.processors = 2, .threads_a_processor = 2048}, &few, 1024, 0, 8),
                      8);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("codegen rows");
    TCase *t = tcase_create("rows");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, classes_of_long_rows, 0, N);
    tcase_add_loop_test(t, classes_in_fast_mode, 0, N_FAST);
    tcase_add_test(t, resident_blocks);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
