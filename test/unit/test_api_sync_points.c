// Programs whose host code needs scalars that the device computes: refused with all names where no sync is allowed; else run stage
// after stage, with the interpreter's bits.
#include "test/support/api/oracle.h"

static lfuser_executable *compile_allowed(const char *text) {
    lfuser_compile_options options = {.size = sizeof options, .sync = LFUSER_ALLOW_SYNC};
    lfuser_fusion *f = parse(text);
    lfuser_executable *e;
    ok(lfuser_fusion_compile(f, env.device, &options, &e));
    lfuser_fusion_destroy(f);
    return e;
}

// ---- refusals --------------------------------------------------------------------------------------------------------------------

START_TEST(every_sync_point_is_named) {
    lfuser_fusion *f = parse("fusion @f(%x: f32[?]) {\n"
                             "  %m = argmax %x\n"
                             "  %k = item %m\n"
                             "  %n = add %k, 1\n"
                             "  %y = iota %n, 0, 1\n"
                             "  %c = gt %k, 0\n"
                             "  assert %c, \"nothing\"\n"
                             "  %v, %i = topk %x, %k\n"
                             "  return %y, %v\n"
                             "}\n");
    lfuser_executable *e;
    static const char message[] = "t.lf:5:13: error: iota: the extent may not be the pending scalar %n: it comes from `item "
                                  "%m` (%k), which the device computes; it "
                                  "is known on the host before the launch only if sync points are allowed\n"
                                  "  %y = iota %n, 0, 1\n"
                                  "            ^\n"
                                  "t.lf:7:10: error: assert: the condition may not be the pending scalar %c: it comes from "
                                  "`item %m` (%k), which the device "
                                  "computes; it is known on the host before the launch only if sync points are allowed\n"
                                  "  assert %c, \"nothing\"\n"
                                  "         ^\n"
                                  "t.lf:8:21: error: topk: k may not be the pending scalar %k: it comes from `item %m` "
                                  "(%k), which the device computes; it is known "
                                  "on the host before the launch only if sync points are allowed\n"
                                  "  %v, %i = topk %x, %k\n"
                                  "                    ^";
    fails(lfuser_fusion_compile(f, env.device, NULL, &e), LFUSER_INVALID_PROGRAM, message);
    ck_assert_ptr_null(e);
    fails(lfuser_fusion_compile(
              f, env.device, &(lfuser_compile_options){.size = sizeof(lfuser_compile_options), .sync = LFUSER_NO_SYNC}, &e),
          LFUSER_INVALID_PROGRAM, message);
    fails(lfuser_fusion_check_no_sync(f), LFUSER_INVALID_PROGRAM, message);
    lfuser_fusion_destroy(f);
    f = parse("fusion @f(%x: f32[?]) { %s = sum %x %k = item %s %y = mul %x, %k return %y }");
    ok(lfuser_fusion_check_no_sync(f));
    lfuser_fusion_destroy(f);
    fails(lfuser_fusion_check_no_sync(NULL), LFUSER_INVALID_ARGUMENT, "lfuser_fusion_check_no_sync: fusion is NULL");
}
END_TEST

// A builder call that is refused leaves no trace of a sync point.
START_TEST(a_refused_op_is_no_sync_point) {
    lfuser_builder *b;
    lfuser_value *x, *results[2];
    lfuser_type type = {.dtype = LFUSER_I64, .tensor = true, .rank = 0};
    size_t n;
    ok(lfuser_builder_create(env.context, "b", &b));
    ok(lfuser_builder_params(b, 1, &(const char *){"x"}, &type, &x));
    lfuser_operand operands[3] = {{.kind = LFUSER_OPERAND_VALUE, .value = x}};
    ok(lfuser_builder_op(b, "item", operands, 1, NULL, 0, results, &n));
    lfuser_value *k = results[0];
    lfuser_operand sizes[2] = {{.kind = LFUSER_OPERAND_VALUE, .value = k}, {.kind = LFUSER_OPERAND_FLOAT, .number = 0.5}};
    operands[0] = (lfuser_operand){.kind = LFUSER_OPERAND_LIST, .items = sizes, .n_items = 2};
    operands[1] = (lfuser_operand){.kind = LFUSER_OPERAND_INT, .integer = 3};
    lfuser_status s = lfuser_builder_op(b, "full", operands, 2, NULL, 0, results, &n);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INVALID_PROGRAM);
    lfuser_status_destroy(s);
    lfuser_fusion *f;
    ok(lfuser_builder_return(b, 1, &k, NULL, &f));
    ok(lfuser_fusion_check_no_sync(f));
    lfuser_fusion_destroy(f);
}
END_TEST

// ---- values ------------------------------------------------------------------------------------------------------------------------

static const char *const programs[] = {
    // One extent, used by several ops; the scalar itself, and arithmetic with it, as outputs.
    "(%x: f32[?], %i: i64) { %p = gt %x, 0.0 %c = count_nonzero %p %k = item %c %n = add %k, 3 %y = iota %n, 0, 1, "
    "dtype=f32 "
    "%s = sum %y %z = add %y, %s %t = item %s %q = add %t, %k return %z, %k, %n, %t, %q }",
    // Extents that are products; size and numel of what has them; a mean divides by one.
    "(%x: f32[?]) { %p = gt %x, 0.0 %c = count_nonzero %p %k = item %c %y = full [%k, 3], 1.5 %n = numel %y %a = size %y, 0 "
    "%m = mean %y, axes=[1] %u = mul %n, %n %w = mul %x, %u return %y, %n, %a, %m, %u, %w }",
    // Three stages.
    "(%x: f32[?]) { %p = gt %x, 0.0 %c = count_nonzero %p %k = item %c %a = iota %k, 1, 1 %s = sum %a %n = item %s "
    "%m = mod %n, 7 %y = full [%m], 2.5 %z = sum %y return %y, %z, %k, %n, %a }",
    // Two items of different kernels, one of them in host arithmetic only, one on the device.
    "(%x: f32[?], %y: i32[%m]) { %p = gt %x, 0.0 %c = count_nonzero %p %k = item %c %b = gt %y, 0 %d = count_nonzero %b %l "
    "= item %d "
    "%n = mul %k, %l %r = min %n, 10 %z = iota %r, 0, 1 %q = add %z, %l %v = add %y, %l return %q, %v, %n }",
    // The item of a parameter, and of a view of one.
    "(%s: i64[1, 1], %x: f32[%m, ?]) { %k = item %s %y = full [%k, 2], 1.0 %t = slice %x, [0, 0], [1, 1], none %u = cast "
    "%t, dtype=i64 "
    "return %y, %u, %k }",
    "(%s: i64[%m]) { %t = slice %s, [1], [2], none %k = item %t %y = iota %k, 5, 2 return %y }",
    // topk's k, a repeat, a padding, a slice's bounds, a reshape.
    "(%x: f32[?]) { %p = gt %x, 0.0 %c = count_nonzero %p %k = item %c %v, %i = topk %x, %k return %v, %i }",
    "(%s: i64[%m], %x: f32[%m]) { %c = max %s %k = item %c %y = repeat %x, [%k] return %y }",
    "(%s: i64[%m], %x: f32[%m, ?]) { %c = max %s %k = item %c %y = pad %x, [%k, 0], [0, %k], 9.0 return %y }",
    "(%s: i64[%m], %x: f32[?, %m]) { %c = max %s %k = item %c %y = slice %x, [%k, 0], [5, 3], [%k, 1] return %y }",
    "(%s: i64[%m], %x: f32[?]) { %c = max %s %k = item %c %y = slice %x, [0], [%k], none %z = slice %x, [%k], [9], none "
    "return %y, %z }",
    "(%s: i64[%m], %x: f32[?, 2]) { %c = max %s %k = item %c %n = sub %k, %k %o = add %n, 2 %y = reshape %x, [-1, %o] "
    "return %y }",
    // A slice start that needs no sync beside an extent that does.
    "(%s: i64[%m], %x: f32[%k]) { %c = max %s %j = item %c %e = add %j, 2 %w = slice %x, [%j], [%e], none %y = full [%j], "
    "3.0 "
    "return %w, %y }",
    // What earlier stages stored is read by later ones; reductions on both sides.
    "(%x: f32[%m, ?]) { %r = sum %x, axes=[1] %e = exp %r %p = gt %e, 0.5 %c = count_nonzero %p %k = item %c %o = full [%k, "
    "3], 1.0 "
    "%y = add %o, %e %z = sum %y, axes=[0] %w = mul %r, 2.0 return %z, %w }",
    // Scans, sort, gathers and scatters behind a sync.
    "(%x: f32[?]) { %p = gt %x, 0.0 %c = count_nonzero %p %k = item %c %y = iota %k, 0, 1 %z = cumsum %y, axis=0 %v, %j = "
    "sort %z, axis=0, "
    "descending=true %g = take %v, %y, axis=0 return %g, %j }",
    // The condition of an assert; it holds.
    "(%x: f32[?]) { %p = gt %x, 0.0 %c = count_nonzero %p %k = item %c %q = ge %k, 0 assert %q, \"never\" %y = add %x, 1.0 "
    "return %y }",
    // And one that does not hold unless there is an element.
    "(%x: f32[?]) { %n = size %x, 0 %y = full [%n], 1.0 %c = count_nonzero %y %k = item %c %q = gt %k, 0 assert %q, "
    "\"empty\" return %k }",
    // Random numbers and complex scalars over a sync.
    "(%s: i64[%m], %z: c128[1]) { %c = max %s %k = item %c %w = item %z %y = full [%k], %w %u = uniform [%k], 0.0, 1.0, 7, "
    "%k return %y, %u, %w }",
    // The item of a value that has a kernel of its own.
    "(%x: f32[%m]) { %v, %i = topk %x, 1 %k = item %i %y = iota %k, 0, 1 return %y, %v, %k }",
    "(%x: f32[%m]) { %v, %i = topk %x, 1 %k = item %i return %v, %k }",
};

START_TEST(stages_give_the_interpreters_bits) {
    static const int64_t extents[] = {0, 1, 7, 1025};
    test_program p;
    ck_assert_msg(program_open(&p, programs[_i], LFUSER_F32), "%s", programs[_i]);
    check_layouts(&p, extents, sizeof extents / sizeof *extents);
    program_close(&p);
}
END_TEST

// ---- runs --------------------------------------------------------------------------------------------------------------------------

static const char compact_text[] = "fusion @compact(%x: f32[?], %y: f32[?]) {\n"
                                   "  %p = gt %x, 0.0\n"
                                   "  %c = count_nonzero %p\n"
                                   "  %k = item %c\n"
                                   "  %z = iota %k, 0, 1, dtype=f32\n"
                                   "  %w = add %y, 1.0\n"
                                   "  %m = max %w\n"
                                   "  %t = item %m\n"
                                   "  return %z, %k, %w into %y, %t\n"
                                   "}\n";

static float positive(int64_t i) { return i % 3 ? 1.0f : -1.0f; }

static void compact_arguments(test_tensor *x, test_tensor *y, int64_t n, lfuser_argument arguments[2]) {
    tensor_init(x, LFUSER_F32, 1, &n, LAYOUT_DENSE);
    for (int64_t i = 0; i < n; i++) *(float *)tensor_element(x, i) = positive(i);
    tensor_upload(x);
    tensor_f32(y, 1, (int64_t[]){4}, 10, 1);
    arguments[0] = tensor_argument(&x->view);
    arguments[1] = tensor_argument(&y->view);
}

START_TEST(the_run_waits_for_the_value_and_counts_it) {
    lfuser_executable *e = compile_allowed(compact_text);
    static const lfuser_kind kinds[] = {LFUSER_TENSOR, LFUSER_SCALAR, LFUSER_TENSOR, LFUSER_PENDING};
    for (size_t i = 0; i < 4; i++) {
        lfuser_value_info info;
        ok(lfuser_executable_output(e, i, &info));
        ck_assert_int_eq(info.kind, kinds[i]);
    }
    for (int64_t n = 0; n < 50; n += 7) {
        test_tensor x, y;
        lfuser_argument arguments[2];
        compact_arguments(&x, &y, n, arguments);
        int64_t want = 0;
        for (int64_t i = 0; i < n; i++) want += positive(i) > 0;
        uint64_t syncs = stats().syncs;
        lfuser_output outputs[4] = {{0}};
        lfuser_completion *completion;
        ok(lfuser_run(e, env.stream, arguments, 2, outputs, 4, &completion));
        ck_assert_uint_eq(stats().syncs, syncs + 1);
        ck_assert_int_eq(outputs[1].kind, LFUSER_SCALAR);
        ck_assert_int_eq(outputs[1].value.i64, want);
        ck_assert_int_eq(outputs[0].allocated->tensor.shape[0], want);
        lfuser_scalar t;
        ok(lfuser_pending_get(outputs[3].pending, UINT64_MAX, &t));
        ck_assert_float_eq(t.f32, 14);
        ok(lfuser_completion_wait(completion, UINT64_MAX));
        tensor_download(&y);
        for (int64_t i = 0; i < 4; i++) ck_assert_float_eq(tensor_f32_at(&y, i), 11 + (float)i);
        lfuser_pending_release(outputs[3].pending);
        lfuser_completion_release(completion);
        outputs[0].allocated->deleter(outputs[0].allocated);
        tensor_finish(&x);
        tensor_finish(&y);
    }
    lfuser_executable_destroy(e);
}
END_TEST

START_TEST(infer_knows_the_first_stage) {
    lfuser_executable *e = compile_allowed(compact_text);
    test_tensor x, y;
    lfuser_argument arguments[2];
    compact_arguments(&x, &y, 5, arguments);
    lfuser_output outputs[4] = {{0}};
    int64_t shapes[4][8] = {{0}};
    uint64_t bytes;
    ok(lfuser_infer(e, arguments, 2, outputs, 4, shapes, &bytes));
    ck_assert_int_eq(shapes[0][0], -1);
    ck_assert_int_eq(shapes[2][0], 4);
    ck_assert_int_eq(outputs[1].kind, LFUSER_SCALAR);
    ck_assert_int_eq(outputs[1].value.i64, 0);
    tensor_finish(&x);
    tensor_finish(&y);
    lfuser_executable_destroy(e);
}
END_TEST

static const char guarded_text[] = "fusion @guarded(%x: f32[?]) {\n"
                                   "  %s = sum %x\n"
                                   "  %k = item %s\n"
                                   "  %c = gt %k, 0.0\n"
                                   "  assert %c, \"the sum must be positive\"\n"
                                   "  %y = mul %x, %k\n"
                                   "  %n = cast %k, dtype=i64\n"
                                   "  %z = full [%n], 1.0\n"
                                   "  return %y, %z, %k\n"
                                   "}\n";

// Everything that was made for the run goes back, whatever it had launched.
START_TEST(checks_of_a_later_stage_fail_the_run) {
    lfuser_executable *e = compile_allowed(guarded_text);
    for (int round = 0; round < 200; round++) {
        test_tensor x;
        bool fine = round % 4 == 0;
        tensor_f32(&x, 1, (int64_t[]){3}, fine ? 1 : -1, 0);
        lfuser_argument argument = tensor_argument(&x.view);
        lfuser_output outputs[3] = {{0}};
        lfuser_completion *completion = NULL;
        if (fine) {
            ok(lfuser_run(e, env.stream, &argument, 1, outputs, 3, &completion));
            ck_assert_int_eq(outputs[1].allocated->tensor.shape[0], 3);
            ck_assert_float_eq(outputs[2].value.f32, 3);
            outputs[0].allocated->deleter(outputs[0].allocated);
            outputs[1].allocated->deleter(outputs[1].allocated);
            lfuser_completion_release(completion);
        } else {
            fails(lfuser_run(e, env.stream, &argument, 1, outputs, 3, &completion), LFUSER_FAILED_CHECK,
                  "@guarded: the sum must be positive (t.lf:5:3)");
            ck_assert(!completion && !outputs[0].allocated && !outputs[1].allocated);
        }
        tensor_finish(&x);
    }
    lfuser_executable_destroy(e);
}
END_TEST

// A buffer for an output whose extent comes from the device is checked when that is known.
START_TEST(given_buffers_are_checked_at_their_stage) {
    lfuser_executable *e = compile_allowed(compact_text);
    test_tensor x, y, z;
    lfuser_argument arguments[2];
    compact_arguments(&x, &y, 9, arguments);
    tensor_init(&z, LFUSER_F32, 1, (int64_t[]){5}, LAYOUT_DENSE);
    tensor_upload(&z);
    lfuser_output outputs[4] = {{.tensor = &z.view}};
    fails(lfuser_run(e, env.stream, arguments, 2, outputs, 4, NULL), LFUSER_INVALID_ARGUMENT,
          "@compact: output 0 (%z): axis 0 of the buffer has extent 5, the output 6");
    ck_assert_ptr_null(outputs[3].pending);
    z.shape[0] = 6;
    outputs[0].tensor = &y.view; // 4 elements, and it is written by the first stage
    y.shape[0] = 6;
    fails(lfuser_run(e, env.stream, arguments, 2, outputs, 4, NULL), LFUSER_INVALID_ARGUMENT,
          "@compact: output 0 (%z) overlaps argument 1 (%y) in memory");
    y.shape[0] = 4;
    synchronize();
    tensor_finish(&x);
    tensor_finish(&y);
    tensor_finish(&z);
    lfuser_executable_destroy(e);
}
END_TEST

// ---- threads -----------------------------------------------------------------------------------------------------------------------

typedef struct worker {
    lfuser_executable *executable;
    int number;
} worker;

static void *run_often(void *arg) {
    const worker *w = arg;
    lfuser_stream *stream;
    ok(lfuser_stream_create(env.device, &stream));
    int64_t value = w->number + 1, shape = 1;
    void *memory;
    ok(lfuser_memory_alloc(stream, sizeof value, &memory));
    ok(lfuser_memory_upload(stream, memory, &value, sizeof value));
    lfuser_tensor t = {
        .data = memory, .device = env.place, .rank = 1, .dtype = lfuser_dl_dtype_of(LFUSER_I64), .shape = &shape};
    lfuser_argument argument = tensor_argument(&t);
    for (int round = 0; round < (SLOW_BUILD ? 30 : 200); round++) {
        lfuser_output outputs[2] = {{0}};
        ok(lfuser_run(w->executable, stream, &argument, 1, outputs, 2, NULL));
        ck_assert_int_eq(outputs[0].allocated->tensor.shape[0], value);
        lfuser_scalar sum;
        ok(lfuser_pending_get(outputs[1].pending, UINT64_MAX, &sum));
        ck_assert_int_eq(sum.i64, value * (value - 1) / 2);
        lfuser_pending_release(outputs[1].pending);
        outputs[0].allocated->deleter(outputs[0].allocated);
    }
    lfuser_memory_free(stream, memory);
    lfuser_stream_destroy(stream);
    return NULL;
}

START_TEST(many_threads_run_stages_at_once) {
    lfuser_executable *e =
        compile_allowed("fusion @f(%x: i64[1]) { %k = item %x %y = iota %k, 0, 1 %s = sum %y %t = item %s return %y, %t }");
    ok(lfuser_executable_prepare(e));
    pthread_t threads[8];
    worker workers[8];
    for (int i = 0; i < 8; i++) {
        workers[i] = (worker){e, i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_often, &workers[i]), 0);
    }
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    lfuser_executable_destroy(e);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("sync_points");
    TCase *t = device_tcase(suite, "refusals", 30);
    tcase_add_test(t, every_sync_point_is_named);
    tcase_add_test(t, a_refused_op_is_no_sync_point);
    t = device_tcase(suite, "values", 120);
    tcase_add_loop_test(t, stages_give_the_interpreters_bits, 0, (int)(sizeof programs / sizeof *programs));
    t = device_tcase(suite, "runs", 60);
    tcase_add_test(t, the_run_waits_for_the_value_and_counts_it);
    tcase_add_test(t, infer_knows_the_first_stage);
    tcase_add_test(t, checks_of_a_later_stage_fail_the_run);
    tcase_add_test(t, given_buffers_are_checked_at_their_stage);
    tcase_add_test(t, many_threads_run_stages_at_once);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
