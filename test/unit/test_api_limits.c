// Size: programs of 100,000 ops on a thread with a stack of 256 KiB, as servers have them, and the growth of the time that long
// programs take.
#include "test/support/api/tensors.h"
#include <time.h>

static const int chain_length = SLOW_BUILD ? 20000 : 100000;

// y = x op x op …; every tenth op uses the one ten before, so that it is no plain chain.
static char *chain(int length, int kind) { // 0: of host scalars, 1: of tensors, 2: of tensors that are moved about
    char *text = malloc((size_t)length * 40 + 200);
    size_t at = (size_t)sprintf(text, "fusion @f(%%x0: f32%s) {\n", kind ? "[?]" : "");
    for (int i = 1; i <= length; i++) {
        if (kind == 2)
            at += (size_t)sprintf(text + at,
                                  i % 2 ? "  %%x%d = roll %%x%d, [1], axes=[0]\n" : "  %%x%d = pad %%x%d, [1], [-1], 0\n", i,
                                  i - 1);
        else if (i % 10)
            at += (size_t)sprintf(text + at, "  %%x%d = add %%x%d, %d.5\n", i, i - 1, i);
        else
            at += (size_t)sprintf(text + at, "  %%x%d = sub %%x%d, %%x%d\n", i, i - 1, i - 10);
    }
    sprintf(text + at, "  return %%x%d\n}\n", length);
    return text;
}

typedef struct job {
    char *text;
    bool done;
} job;

static void *on_small_stack(void *arg) {
    job *j = arg;
    lfuser_fusion *f;
    ok(lfuser_fusion_parse(env.context, "t.lf", j->text, strlen(j->text), NULL, &f));
    for (int stage = LFUSER_STAGE_FUSION; stage <= LFUSER_STAGE_KERNELS; stage++) {
        char *printed;
        ok(lfuser_fusion_print(f, (lfuser_stage)stage, "cpu", LFUSER_MATH_EXACT, 0, &printed));
        ck_assert_uint_ge(strlen(printed), stage == LFUSER_STAGE_FUSION ? (size_t)chain_length : 0);
        lfuser_free(env.context, printed);
    }
    lfuser_fusion_destroy(f);
    j->done = true;
    return NULL;
}

START_TEST(a_hundred_thousand_ops_on_a_small_stack) {
    job j = {chain(_i == 2 ? chain_length / 10 : chain_length, _i), false};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, on_small_stack, &j), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    ck_assert(j.done);
    free(j.text);
}
END_TEST

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds_to_run(int length) {
    char *text = chain(length, 1);
    double begin = cpu_seconds();
    lfuser_executable *e = compile(text);
    test_tensor x;
    tensor_f32(&x, 1, (int64_t[]){100}, 1, 1);
    lfuser_argument a = tensor_argument(&x.view);
    lfuser_output out = {0};
    ok(lfuser_run(e, env.stream, &a, 1, &out, 1, NULL));
    synchronize();
    double seconds = cpu_seconds() - begin;
    out.allocated->deleter(out.allocated);
    tensor_finish(&x);
    lfuser_executable_destroy(e);
    free(text);
    return seconds;
}

// Processor time, which other programs disturb little; four times the ops may take eight times as long at most.
START_TEST(time_grows_with_length) {
    (void)seconds_to_run(500); // loads the code generator
    double one = seconds_to_run(SLOW_BUILD ? 600 : 2500), four = seconds_to_run(SLOW_BUILD ? 2400 : 10000);
    printf("%.2f s and %.2f s of processor time for four times as many ops\n", one, four);
    // A sanitizer's own work on the first pages of memory is no part of the growth.
    ck_assert_msg(four < 8 * one + (SLOW_BUILD ? 1 : 0), "%.2f s, and four times as many ops %.2f s", one, four);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api limits");
    TCase *t = device_tcase(suite, "size", 300);
    tcase_add_loop_test(t, a_hundred_thousand_ops_on_a_small_stack, 0, 3);
    tcase_add_test(t, time_grows_with_length);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
