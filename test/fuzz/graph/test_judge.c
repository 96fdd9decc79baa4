// What the judge of random programs lets pass: elements that a device may have found, beside what the interpreter finds.
#include "test/fuzz/graph/graph.h"
#include "parse/parse.h"
#include <check.h>
#include <math.h>

// Parameters are f32[2]; the first element of the first output is asked about.
typedef struct row {
    const char *text;
    bool fast;
    float in[3][2];
    float got;
    bool allowed;
} row;
#define MUL_ADD "fusion @t(%x: f32[2], %y: f32[2], %z: f32[2]) { %p = mul %x, %y %r = add %p, %z return %r }"
#define MUL "fusion @t(%x: f32[2], %y: f32[2], %z: f32[2]) { %r = mul %x, %y return %r, %z }"
#define MUL_MUL "fusion @t(%x: f32[2], %y: f32[2], %z: f32[2]) { %p = mul %x, %y %q = mul %x, %z %r = sub %p, %q return %r }"
#define ADD "fusion @t(%x: f32[2], %y: f32[2], %z: f32[2]) { %r = add %x, %y return %r, %z }"
#define SUM "fusion @t(%x: f32[2], %y: f32[2], %z: f32[2]) { %p = mul %x, %y %r = sum %p return %r, %z }"
#define BEHIND                                                                                                              \
    "fusion @t(%x: f32[2], %y: f32[2], %z: f32[2]) { %p = mul %x, %y %n = neg %p %e = expand %n, [1, 2] %a = add %e, %z "   \
    "%r = tanh %a return %r }"
#define EXP "fusion @t(%x: f32[2], %y: f32[2], %z: f32[2]) { %r = exp %x return %r, %y, %z }"
#define POW_OF_SUM                                                                                                          \
    "fusion @t(%x: f32[2], %y: f32[2], %z: f32[2]) { %c = cumsum %x, axis=0 %e = flip %c, axes=[0] %r = pow %y, %e return " \
    "%r, %z }"
#define GELU "fusion @t(%x: f32[2], %y: f32[2], %z: f32[2]) { %r = gelu %x, approximate=tanh return %r, %y, %z }"
static const row rows[] = {
    // A product that overflows by less than twice may be added without being rounded.
    {MUL_ADD, true, {{2e19f, 1}, {2e19f, 1}, {-1e38f, 1}}, 3e38f, true},
    {MUL_ADD, true, {{2e19f, 1}, {2e19f, 1}, {-1e38f, 1}}, INFINITY, true},
    {BEHIND, true, {{2e19f, 1}, {2e19f, 1}, {3.4e38f, 1}}, -1, true},
    {SUM, true, {{2e19f, -1e19f}, {2e19f, 1e19f}, {0}}, 3e38f, true},
    // Two that overflow are no NaN then.
    {MUL_MUL, true, {{1e30f, 1}, {1e30f, 1}, {1e30f, 1}}, -INFINITY, true},
    {SUM, true, {{1e30f, -1e30f}, {1e30f, 1e30f}, {0}}, INFINITY, true},
    // But not one that nothing is added to, nor one that is too large; nor what was infinite before; nor in exact mode.
    {MUL, true, {{2e19f, 1}, {2e19f, 1}, {0}}, 3e38f, false},
    {MUL_ADD, true, {{1e38f, 1}, {1e38f, 1}, {-1e38f, 1}}, 3e38f, false},
    {MUL_ADD, true, {{INFINITY, 1}, {2, 1}, {-1e38f, 1}}, 3e38f, false},
    {ADD, true, {{INFINITY, 1}, {-INFINITY, 1}, {0}}, INFINITY, false},
    {ADD, true, {{3e38f, 1}, {3e38f, 1}, {0}}, 3e38f, false},
    // A sum that may be 0 in another order; one that may not.
    {POW_OF_SUM, false, {{1, -0.99999994f}, {NAN, 1}, {0}}, 1, true},
    {POW_OF_SUM, false, {{1, -0.999f}, {NAN, 1}, {0}}, 1, false},
    // Finite ones stay within a rounding, and a function within 4 ulp of a right one.
    {MUL_ADD, true, {{3, 1}, {2, 1}, {1, 1}}, 7, true},
    {MUL_ADD, true, {{3, 1}, {2, 1}, {1, 1}}, 7.0001f, false},
    {GELU, true, {{1, 1}, {0}, {0}}, 0.84119f, true},
    {GELU, true, {{1, 1}, {0}, {0}}, 0.8413f, false},
    {EXP, true, {{1, 1}, {0}, {0}}, 2.7182825f, true},
    {EXP, true, {{1, 1}, {0}, {0}}, 2.7183090f, false}, // 1 in 100,000
};
enum { N_ROWS = sizeof rows / sizeof *rows };

START_TEST(allows) {
    const row *r = &rows[_i];
    lf_graph **graphs;
    size_t n;
    ck_assert_ptr_null(lf_parse(&lf_system_allocator, "t.lf", r->text, strlen(r->text), false, &graphs, &n));
    program p = {.seed = 1};
    variant v = {.fast = r->fast};
    static case_run c;
    c = (case_run){.p = &p, .v = &v, .graph = graphs[0], .n_params = 3};
    for (unsigned i = 0; i < 3; i++)
        c.arrays[i] = (lf_array){
            .dtype = LF_F32, .tensor = true, .rank = 1, .shape = {2}, .strides = {1}, .data = (void *)(uintptr_t)r->in[i]};
    lf_interp_result *right;
    ck_assert_ptr_null(lf_interp_run(c.graph, c.arrays, c.n_params, &lf_system_allocator, &right));
    judge *j = judge_create(&c);
    bool allowed = !judge_binds(j, 0) && judge_allows(j, 0, LF_F32, 0, &r->got, right->outputs[0].data);
    ck_assert_msg(allowed == r->allowed, "%s: %g is %s where the interpreter has %g", r->text, (double)r->got,
                  allowed ? "allowed" : "not allowed", (double)*(const float *)right->outputs[0].data);
    judge_destroy(j);
    lf_interp_result_destroy(right);
    lf_parse_release(&lf_system_allocator, graphs, n);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("judge of random programs");
    TCase *t = tcase_create("elements");
    tcase_add_loop_test(t, allows, 0, N_ROWS);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
