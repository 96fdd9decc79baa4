// The elementwise lowering on an NVIDIA GPU: every cell of the table against the interpreter, bit for bit in exact mode, all
// values of the 16-bit floats included. Skipped where there is no driver. The driver compiles each cell on its own: some
// minutes.
#include "test_emit_interp.h"
#include "runtime/device.h"

static lf_device *device;
static lf_stream *stream;
static void *operands[4], *got, *want, *memory[5];
static unsigned failures; // cells that differ, told as they come: a run is long

static void setup(void) {
    for (int i = 0; i < 4; i++) operands[i] = calloc(CELL_ROOM, 16);
    got = calloc(CELL_ROOM, 16);
    want = calloc(CELL_ROOM, 16);
    failures = 0;
    check_ok(device->ops->stream_create(device, &stream));
    for (int i = 0; i < 5; i++) check_ok(device->ops->memory_alloc(stream, CELL_ROOM * 16, &memory[i]));
}

static void teardown(void) {
    for (int i = 0; i < 5; i++) device->ops->memory_free(stream, memory[i]);
    device->ops->stream_destroy(stream);
    for (int i = 0; i < 4; i++) free(operands[i]);
    free(got);
    free(want);
}

static lf_target this_gpu(void) {
    lf_target t = {.kind = LF_TARGET_CUDA};
    ck_assert_int_eq(sscanf(device->info.target, "cuda:sm_%u", &t.sm), 1);
    return t;
}

static void run_cell(const cell *cells, size_t i, const lf_target *t, bool fast, uint64_t slack) {
    const cell *c = &cells[i];
    lf_llvm *l = emit_module(cells, i, 1, t, LF_LLVM_KERNEL, fast);
    char name[32], *text;
    size_t size, n = fill_cell(c, i, true, operands);
    check_ok(lf_target_generate_text(l, &text, &size));
    snprintf(name, sizeof name, "cell_%zu", i);
    lf_kernel *kernel;
    check_ok(device->ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = name, .data = text, .size = size},
                                      &kernel));
    uint64_t args[6] = {0, 0, 0, 0, 0, n};
    for (unsigned k = 0; k < 5; k++) args[k] = (uint64_t)(uintptr_t)memory[k];
    for (unsigned k = 0; k < c->n; k++)
        check_ok(device->ops->memory_copy(stream, memory[k + 1], operands[k], n * lf_dtype_bytes(c->in[k]),
                                          LF_COPY_HOST_TO_DEVICE));
    lf_launch launch = {
        .kernel = kernel, .args = args, .n_args = 6, .items = n, .grid = (uint32_t)((n + 255) / 256), .block = 256};
    check_ok(device->ops->launch(stream, &launch));
    check_ok(device->ops->memory_copy(stream, got, memory[0], n * lf_dtype_bytes(c->out), LF_COPY_DEVICE_TO_HOST));
    check_ok(device->ops->stream_synchronize(stream));
    interp_cell(c, operands, want, n);
    const char *wrong = difference(c, fast ? "fast kernel" : device->info.target, operands, got, want, n, slack);
    if (wrong && ++failures <= 40) fprintf(stderr, "%s\n", wrong);
    device->ops->kernel_destroy(kernel);
    lf_free(l->allocator, text);
    lf_llvm_destroy(l);
}

START_TEST(every_cell_equals_the_interpreter) {
    cell *cells;
    size_t n = make_cells(&cells);
    lf_target t = this_gpu();
    for (size_t i = 0; i < n; i++) run_cell(cells, i, &t, false, 0);
    ck_assert_uint_eq(failures, 0);
    free(cells);
}
END_TEST

// Functions of one float: 4 ulp, and of 16 bits the neighbour at worst.
START_TEST(fast_functions_are_close) {
    cell *cells;
    size_t n = make_cells(&cells);
    lf_target t = this_gpu();
    for (size_t i = 0; i < n; i++)
        if (cells[i].n == 1 && lf_is_float(cells[i].in[0]) && lf_is_float(cells[i].out))
            run_cell(cells, i, &t, true, lf_is_half(cells[i].out) ? 1 : 4);
    ck_assert_uint_eq(failures, 0);
    free(cells);
}
END_TEST

int main(void) {
    lf_log log = {0};
    lf_status s = lf_cuda_device_create(&lf_system_allocator, &log, 0, &device);
    if (lf_status_code(s) == LF_UNAVAILABLE) {
        lf_status_destroy(s);
        return 77;
    }
    if (s) {
        fprintf(stderr, "%s\n", lf_status_message(s));
        return 1;
    }
    Suite *suite = suite_create("emit_cuda");
    TCase *all = tcase_create("cells");
    tcase_set_timeout(all, 1200);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, every_cell_equals_the_interpreter);
    tcase_add_test(all, fast_functions_are_close);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); // a driver does not survive a fork
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    device->ops->destroy(device);
    return failed ? 1 : 0;
}
