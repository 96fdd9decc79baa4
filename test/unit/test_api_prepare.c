// Compiling ahead, beside, and not at all: prepare, what would be compiled, executables that never wait, the raw host entry, and all
// of it at once from many threads.
#include "test/support/api/tensors.h"
#include <lfuser/launch_abi.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static const char pointwise[] =
    "fusion @p(%x: f32[?, ?], %y: f32[?, ?]) {\n  %a = mul %x, %y\n  %b = exp %a\n  return %b\n}\n";

static lfuser_executable *compile_as(const char *text, lfuser_wait wait) {
    lfuser_fusion *f = parse(text);
    lfuser_executable *e;
    lfuser_compile_options o = {.size = sizeof o, .wait = wait};
    ok(lfuser_fusion_compile(f, env.device, &o, &e));
    lfuser_fusion_destroy(f);
    return e;
}

static lfuser_tensor shape_only(int64_t *shape, int64_t *strides) {
    return (lfuser_tensor){
        .device = env.place, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape, .strides = strides};
}

static void run_pair(lfuser_executable *e, test_tensor *x, test_tensor *y) {
    lfuser_argument arguments[2] = {tensor_argument(&x->view), tensor_argument(&y->view)};
    lfuser_output output = {0};
    ok(lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL));
    output.allocated->deleter(output.allocated);
}

static void sleep_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

// ---- asking and preparing ------------------------------------------------------------------------------------------------------

START_TEST(what_would_be_compiled) {
    lfuser_executable *e = compile_as(pointwise, LFUSER_WAIT);
    int64_t shape[2] = {64, 32}, strided[2] = {1, 64};
    lfuser_tensor dense = shape_only(shape, NULL), across = shape_only(shape, strided);
    lfuser_argument a[2] = {tensor_argument(&dense), tensor_argument(&dense)},
                    b[2] = {tensor_argument(&dense), tensor_argument(&across)};
    uint32_t load, cold;
    uint64_t before = stats().compiles, launches = stats().launches;
    ok(lfuser_executable_would_compile(e, a, 2, &load, &cold));
    ck_assert_uint_eq(load, 1);
    ck_assert_uint_eq(cold, 1);
    ok(lfuser_executable_would_compile(e, a, 2, NULL, NULL));
    ck_assert_uint_eq(stats().compiles, before);
    ok(lfuser_executable_prepare_shapes(e, (const lfuser_argument *const[]){a, b, a}, 3, 2));
    uint64_t prepared = stats().compiles;
    ck_assert_uint_eq(prepared - before, 2); // two classes for three sets
    ok(lfuser_executable_would_compile(e, b, 2, &load, &cold));
    ck_assert_uint_eq(load, 0);
    ck_assert_uint_eq(cold, 0);
    ck_assert_uint_eq(stats().launches, launches);
    test_tensor x, y;
    tensor_f32(&x, 2, shape, 0, 1);
    tensor_f32(&y, 2, shape, 1, 0);
    run_pair(e, &x, &y);
    synchronize();
    ck_assert_uint_eq(stats().compiles, prepared);
    // Another executable of the same program has not loaded it, but it needs no compiler.
    lfuser_executable *again = compile_as(pointwise, LFUSER_WAIT);
    ok(lfuser_executable_would_compile(again, a, 2, &load, &cold));
    ck_assert_uint_eq(load, 1);
    ck_assert_uint_eq(cold, 0);
    lfuser_executable_destroy(again);
    // What does not fit is refused as a run refuses it.
    int64_t other[2] = {64, 33};
    lfuser_tensor wider = shape_only(other, NULL);
    lfuser_argument c[2] = {tensor_argument(&dense), tensor_argument(&wider)};
    lfuser_status s = lfuser_executable_would_compile(e, c, 2, &load, &cold);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_FAILED_CHECK);
    lfuser_status_destroy(s);
    fails(lfuser_executable_would_compile(e, a, 1, &load, &cold), LFUSER_INVALID_ARGUMENT, "@p takes 2 arguments, got 1");
    fails(lfuser_executable_prepare_shapes(e, NULL, 1, 2), LFUSER_INVALID_ARGUMENT,
          "lfuser_executable_prepare_shapes: an argument is NULL");
    fails(lfuser_executable_would_compile(NULL, a, 2, &load, &cold), LFUSER_INVALID_ARGUMENT,
          "lfuser_executable_would_compile: executable is NULL");
    lfuser_executable_destroy(e);
    tensor_finish(&x);
    tensor_finish(&y);
}
END_TEST

START_TEST(prepared_for_all_classes) {
    lfuser_executable *e =
        compile_as("fusion @f(%x: f32[?, ?], %y: f32[?, ?]) {\n"
                   "  %a = softmax %x, axis=-1\n  %b = mul %a, %y\n  %s = sum %b, axes=[0]\n  return %b, %s\n}\n",
                   LFUSER_WAIT);
    ok(lfuser_executable_prepare(e));
    uint64_t prepared = stats().compiles;
    ck_assert_uint_gt(prepared, 2);
    ok(lfuser_executable_prepare(e));
    ck_assert_uint_eq(stats().compiles, prepared);
    test_tensor x;
    tensor_f32(&x, 2, (int64_t[]){16, 64}, 0, 1);
    lfuser_argument arguments[2] = {tensor_argument(&x.view), tensor_argument(&x.view)};
    lfuser_output outputs[2] = {{0}};
    ok(lfuser_run(e, env.stream, arguments, 2, outputs, 2, NULL));
    synchronize();
    ck_assert_uint_eq(stats().compiles, prepared);
    for (int i = 0; i < 2; i++) outputs[i].allocated->deleter(outputs[i].allocated);
    lfuser_executable_destroy(e);
    tensor_finish(&x);
}
END_TEST

// What a stage after the first launches is not known, but what it may: nothing is left to compile for a run.
START_TEST(later_stages_are_prepared_too) {
    lfuser_fusion *f =
        parse("fusion @s(%x: f32[?, 40]) {\n  %g = gt %x, 0.0\n  %c = count_nonzero %g\n  %k = item %c\n"
              "  %n = floordiv %k, 40\n  %y = iota %k, 0, 1, dtype=f32\n  %z = slice %x, [0, 0], [%n, 40], [1, 1]\n"
              "  %m = softmax %z, axis=1\n  return %y, %m\n}\n");
    lfuser_executable *e;
    lfuser_compile_options o = {.size = sizeof o, .sync = LFUSER_ALLOW_SYNC};
    ok(lfuser_fusion_compile(f, env.device, &o, &e));
    int64_t shape[2] = {6, 40};
    lfuser_tensor dense = shape_only(shape, NULL);
    lfuser_argument a[1] = {tensor_argument(&dense)};
    uint32_t load, cold;
    ok(lfuser_executable_would_compile(e, a, 1, &load, &cold));
    ck_assert_uint_ge(load, 3); // one of the first stage, two and more of the second
    ck_assert_uint_eq(cold, load);
    ok(lfuser_executable_prepare_shapes(e, (const lfuser_argument *const[]){a}, 1, 1));
    ok(lfuser_executable_would_compile(e, a, 1, &load, &cold));
    ck_assert_uint_eq(load, 0);
    uint64_t prepared = stats().compiles;
    test_tensor x;
    tensor_f32(&x, 2, shape, 1, 1);
    lfuser_argument arguments[1] = {tensor_argument(&x.view)};
    lfuser_output outputs[2] = {{0}};
    ok(lfuser_run(e, env.stream, arguments, 1, outputs, 2, NULL));
    synchronize();
    ck_assert_int_eq(outputs[0].allocated->tensor.shape[0], 240);
    ck_assert_int_eq(outputs[1].allocated->tensor.shape[0], 6);
    ck_assert_uint_eq(stats().compiles, prepared);
    for (int i = 0; i < 2; i++) outputs[i].allocated->deleter(outputs[i].allocated);
    lfuser_executable_destroy(e);
    lfuser_fusion_destroy(f);
    tensor_finish(&x);
}
END_TEST

// Made-up addresses are nobody's to look at, and a host tensor's data are needed.
START_TEST(imagined_memory) {
    lfuser_fusion *f =
        parse("fusion @i(%x: f32[?, ?], %k: f32[] @host) {\n  %s = item %k\n  %y = mul %x, %s\n  return %y\n}\n");
    lfuser_executable *e;
    lfuser_compile_options o = {.size = sizeof o, .check_pointers = true};
    ok(lfuser_fusion_compile(f, env.device, &o, &e));
    int64_t shape[2] = {8, 8};
    float k = 2;
    lfuser_tensor x = shape_only(shape, NULL),
                  host = {.data = &k, .device = {1, 0}, .dtype = lfuser_dl_dtype_of(LFUSER_F32)};
    lfuser_argument arguments[2] = {tensor_argument(&x), {.kind = LFUSER_TENSOR, .tensor = &host}};
    uint32_t load;
    ok(lfuser_executable_would_compile(e, arguments, 2, &load, NULL));
    ck_assert_uint_eq(load, 1);
    host.data = NULL;
    fails(lfuser_executable_would_compile(e, arguments, 2, &load, NULL), LFUSER_INVALID_ARGUMENT,
          "@i: argument 1 (%k): has no data (NULL)");
    lfuser_executable_destroy(e);
    lfuser_fusion_destroy(f);
}
END_TEST

// ---- never waiting -------------------------------------------------------------------------------------------------------------

START_TEST(never_waits_and_gets_better) {
    lfuser_executable *e = compile_as(pointwise, LFUSER_NEVER_WAIT);
    uint64_t compiled = stats().compiles; // host code, and the general kernel
    test_tensor x, y;
    tensor_f32(&x, 2, (int64_t[]){64, 32}, 0, 0);
    tensor_f32(&y, 2, (int64_t[]){64, 32}, 1, 1);
    run_pair(e, &x, &y);
    ck_assert_uint_eq(stats().general_launches, 1);
    double deadline = now_s() + 60;
    while (stats().background_compiles == 0 && now_s() < deadline) sleep_ms(1);
    ck_assert_uint_eq(stats().background_compiles, 1);
    ck_assert_uint_eq(stats().compiles, compiled + 1);
    run_pair(e, &x, &y);
    synchronize();
    ck_assert_uint_eq(stats().general_launches, 1); // the better one is there
    ck_assert_uint_eq(stats().compiles, compiled + 1);
    lfuser_executable_destroy(e);
    tensor_finish(&x);
    tensor_finish(&y);
}
END_TEST

// The same answers, whichever variant a run happened to get, from the first call on.
START_TEST(the_general_variant_is_right) {
    lfuser_executable *e =
        compile_as("fusion @r(%x: f32[?, ?]) {\n  %a = softmax %x, axis=-1\n  return %a\n}\n", LFUSER_NEVER_WAIT);
    lfuser_executable *waiting =
        compile_as("fusion @r(%x: f32[?, ?]) {\n  %a = softmax %x, axis=-1\n  return %a\n}\n", LFUSER_WAIT);
    static const int64_t columns[] = {8, 33, 256, 1000, 4096, 20000};
    for (unsigned i = 0; i < sizeof columns / sizeof *columns; i++) {
        test_tensor x, mine, theirs;
        int64_t shape[2] = {3, columns[i]};
        tensor_f32(&x, 2, shape, 0, 0.001f);
        tensor_init(&mine, LFUSER_F32, 2, shape, LAYOUT_DENSE);
        tensor_init(&theirs, LFUSER_F32, 2, shape, LAYOUT_DENSE);
        tensor_upload(&mine);
        tensor_upload(&theirs);
        lfuser_argument argument = tensor_argument(&x.view);
        lfuser_output a = {.tensor = &mine.view}, b = {.tensor = &theirs.view};
        ok(lfuser_run(e, env.stream, &argument, 1, &a, 1, NULL));
        ok(lfuser_run(waiting, env.stream, &argument, 1, &b, 1, NULL));
        tensor_download(&mine);
        tensor_download(&theirs);
        for (int64_t k = 0; k < 3 * columns[i]; k++) ck_assert(tensor_f32_at(&mine, k) == tensor_f32_at(&theirs, k));
        tensor_finish(&x);
        tensor_finish(&mine);
        tensor_finish(&theirs);
    }
    lfuser_executable_destroy(e); // with compilations under way
    lfuser_executable_destroy(waiting);
}
END_TEST

// ---- the raw entry -------------------------------------------------------------------------------------------------------------

START_TEST(the_host_entry) {
    lfuser_fusion *f =
        parse("fusion @h(%a: f64, %n: i64) {\n  %b = mul %a, 2.0\n  %c = add %b, %n\n  %m = add %n, 1\n  %p = gt %n, 0\n"
              "  assert %p, \"n must be positive\"\n  return %c, %m\n}\n");
    lfuser_executable *e;
    ok(lfuser_fusion_compile(f, NULL, NULL, &e)); // no device
    lfuser_host_entry entry = {.size = sizeof entry};
    ok(lfuser_executable_host_entry(e, &entry));
    const lfuser_abi_program *p = entry.program;
    uint64_t *slots = calloc(entry.n_slots, sizeof *slots);
    double a = 1.5, c;
    memcpy(&slots[p->params[0].slot], &a, 8);
    slots[p->params[1].slot] = 40;
    ck_assert_int_eq(entry.infer(slots), -1);
    memcpy(&c, &slots[p->outputs[0].slot], 8);
    ck_assert(c == 43.0);
    ck_assert_uint_eq(slots[p->outputs[1].slot], 41);
    slots[p->params[1].slot] = 0;
    int64_t failed = entry.infer(slots);
    ck_assert_int_ge(failed, 0);
    ck_assert_ptr_nonnull(strstr(p->checks[failed].message, "n must be positive"));
    slots[p->params[1].slot] = 40;
    enum { CALLS = 1000000 };
    double best = 1;
    for (int round = 0; round < 5; round++) {
        double start = now_s();
        for (int i = 0; i < CALLS; i++) entry.infer(slots);
        double each = (now_s() - start) / CALLS;
        if (each < best) best = each;
    }
    printf("raw entry, 4 scalar ops and a check: %.2f ns a call\n", best * 1e9);
    if (!SLOW_BUILD) ck_assert_msg(best < 100e-9, "%.1f ns a call", best * 1e9); // about 3; room for a busy machine
    fails(lfuser_executable_host_entry(e, NULL), LFUSER_INVALID_ARGUMENT,
          "lfuser_executable_host_entry: an argument is NULL");
    free(slots);
    lfuser_executable_destroy(e);
    lfuser_fusion_destroy(f);
}
END_TEST

// ---- warming -------------------------------------------------------------------------------------------------------------------

START_TEST(warmed_in_the_background) {
    lfuser_context_warm_in_background(env.context);
    lfuser_executable_destroy(compile_as(pointwise, LFUSER_WAIT)); // waits for it, or does it
    ok(lfuser_context_warm(env.context));
    lfuser_context_warm_in_background(env.context); // the context may end before it begins
    fails(lfuser_context_warm(NULL), LFUSER_INVALID_ARGUMENT, "lfuser_context_warm: context is NULL");
    lfuser_context_warm_in_background(NULL);
}
END_TEST

// ---- all at once ---------------------------------------------------------------------------------------------------------------

enum { THREADS = 16, TEXTS = 4, ROUNDS = SLOW_BUILD ? 250 : 1000, LONG_ROUNDS = 10000 };
static bool is_long(void) { return getenv("LFUSER_TEST_LONG") != NULL; } // set by ./dev test --long
static const char *const texts[TEXTS] = {
    pointwise, "fusion @q(%x: f32[?, ?], %y: f32[?, ?]) {\n  %a = sub %x, %y\n  return %a\n}\n",
    "fusion @s(%x: f32[?, ?], %y: f32[?, ?]) {\n  %a = add %x, %y\n  %s = sum %a, axes=[1]\n  return %s\n}\n",
    "fusion @t(%x: f32[?, ?], %y: f32[?, ?]) {\n  %a = transpose %x, 0, 1\n  %b = add %a, %y\n  return %b\n}\n"};
static _Atomic(const char *) wrong;

static bool bad(lfuser_status s) {
    if (!s) return false;
    static char message[512];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&wrong)) snprintf(message, sizeof message, "%s", lfuser_status_message(s));
    atomic_store(&wrong, message);
    pthread_mutex_unlock(&lock);
    lfuser_status_destroy(s);
    return true;
}

static void *mixed(void *arg) {
    unsigned seed = (unsigned)(uintptr_t)arg;
    int rounds = is_long() ? LONG_ROUNDS : ROUNDS;
    lfuser_stream *stream;
    void *memory;
    if (bad(lfuser_stream_create(env.device, &stream)) || bad(lfuser_memory_alloc(stream, 32 * 32 * 4, &memory)))
        return NULL;
    for (int i = 0; i < rounds && !atomic_load(&wrong); i++) {
        const char *text = texts[(unsigned)rand_r(&seed) % TEXTS];
        lfuser_compile_options o = {.size = sizeof o, .wait = rand_r(&seed) % 2 ? LFUSER_NEVER_WAIT : LFUSER_WAIT};
        lfuser_fusion *f = NULL;
        lfuser_executable *e = NULL;
        if (bad(lfuser_fusion_parse(env.context, "t.lf", text, strlen(text), NULL, &f)) ||
            bad(lfuser_fusion_compile(f, env.device, &o, &e)))
            break;
        int64_t n = 1 + (unsigned)rand_r(&seed) % 32, shape[2] = {n, n}, across[2] = {1, n};
        lfuser_tensor x = shape_only(shape, NULL), y = shape_only(shape, rand_r(&seed) % 2 ? across : NULL);
        x.data = y.data = memory;
        lfuser_argument arguments[2] = {tensor_argument(&x), tensor_argument(&y)};
        uint32_t load;
        if (rand_r(&seed) % 4 == 0 && bad(lfuser_executable_prepare(e))) break;
        if (rand_r(&seed) % 4 == 0 && bad(lfuser_executable_would_compile(e, arguments, 2, &load, NULL))) break;
        for (int k = (int)((unsigned)rand_r(&seed) % 4); k > 0; k--) {
            lfuser_output output = {0};
            if (bad(lfuser_run(e, stream, arguments, 2, &output, 1, NULL))) break;
            output.allocated->deleter(output.allocated);
        }
        lfuser_executable_destroy(e);
        lfuser_fusion_destroy(f);
    }
    lfuser_memory_free(stream, memory);
    lfuser_stream_destroy(stream);
    return NULL;
}

START_TEST(runs_prepares_and_destroys) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) ck_assert(!pthread_create(&threads[i], NULL, mixed, (void *)(i + 1)));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    ck_assert_msg(!atomic_load(&wrong), "%s", atomic_load(&wrong));
    lfuser_cache_stats s = {.size = sizeof s};
    ok(lfuser_context_cache_stats(env.context, &s));
    ck_assert_uint_le(s.compiles, TEXTS * 9); // each code once
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api prepare");
    TCase *t = device_tcase(suite, "prepare", 120);
    tcase_add_test(t, what_would_be_compiled);
    tcase_add_test(t, prepared_for_all_classes);
    tcase_add_test(t, later_stages_are_prepared_too);
    tcase_add_test(t, imagined_memory);
    tcase_add_test(t, never_waits_and_gets_better);
    tcase_add_test(t, the_general_variant_is_right);
    tcase_add_test(t, the_host_entry);
    tcase_add_test(t, warmed_in_the_background);
    t = device_tcase(suite, "all at once", is_long() ? 3600 : 120);
    tcase_add_test(t, runs_prepares_and_destroys);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
