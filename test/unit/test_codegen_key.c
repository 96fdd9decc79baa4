// Cache keys against the code generators: programs that get the same key get the same code, whatever else they differ in, and what
// makes other code makes another key. Each body is put beside all others, as kernels of two targets and as host code.
#include "base/text.h"
#include "codegen/codegen.h"
#include "ir/build.h"
#include "parse/parse.h"
#include "runtime/launch.h"
#include "schedule/key.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const lf_allocator *const heap = &lf_system_allocator;
static void ok(lf_status s) { ck_assert_msg(!s, "%s", lf_status_message(s)); }

// Near twins: each differs from another in one thing that the code depends on, or (the last ones) in names alone.
static const char *const bodies[] = {
    "(%x: f32[?, ?], %s: f32) { %r = leaky_relu %x, slope=0.1 return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = leaky_relu %x, slope=0.2 return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = gelu %x return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = gelu %x, approximate=tanh return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = add %x, 1.5 return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = add %x, 2.5 return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = add %x, %s return %r }",
    "(%x: f64[?, ?], %s: f64) { %r = add %x, %s return %r }",
    "(%x: f32[?, ?], %s: f64) { %r = add %x, %s return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = sub %x, %s return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = sub %s, %x return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = max %x, axes=[1] return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = min %x, axes=[1] return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = min %x, axes=[0] return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = argmin %x, axis=1 return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = cumsum %x, axis=1 return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = sum %x, axes=[1] return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = sum %x, axes=[1], keepdim=true return %r }",
    "(%x: f32[?, ?], %s: f32) { %m = gt %x, 0.0 %a = neg %x %r = select %m, %x, %a return %r }",
    "(%x: f32[?, ?], %s: f32) { %m = gt %x, 0.0 %b = add %x, 0.5 %a = neg %x %r = select %m, %b, %a return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = bitcast %x, dtype=i32 return %r }",
    "(%x: f32[?, ?], %s: f32) { %a = neg %x %r = bitcast %a, dtype=i32 return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = cast %x, dtype=i32 return %r }",
    "(%x: f32[?, ?], %s: f32) { %r = cast %x, dtype=u32 return %r }",
    "(%x: f32[?, ?], %s: f32) { %r, %i = sort %x, axis=1 return %r, %i }",
    "(%x: f32[?, ?], %s: f32) { %r, %i = sort %x, axis=1, descending=true return %r, %i }",
    "(%x: f32[?, ?], %s: f32) { %t = mul %s, 2.0 %r = add %x, %t return %r, %t }",
    "(%x: f32[?, ?], %s: f32) { %t = mul %s, 3.0 %r = add %x, %t return %r, %t }",
    "(%x: f32[?, ?], %s: f32) { %t = exp %s %r = add %x, %t return %r, %t }",
    "(%x: f32[], %s: f32) { %i = item %x %r = add %i, %s return %r }",
    "(%x: f32[], %s: f32) { %i = item %x %r = sub %i, %s return %r }",
    "(%x: f32[], %s: f32) { %i = item %x %r = sub %s, %i return %r }",
    "(%x: f32[], %s: f32) { %i = item %x %r = add %i, 2.0 return %r }",
    "(%x: f32[], %s: f32) { %i = item %x %r = add %i, 3.0 return %r }",
    "(%x: f32[], %s: f32) { %i = item %x %r = add %i, %s return %r, %i }",
    "(%x: f32[], %s: f32) { %i = item %x %r = add %i, %s %q = mul %i, %s return %r, %q }",
    "(%x: f32[], %s: f32) { %i = item %x %r = add %i, %s %q = mul %i, %s return %q, %r }",
    "(%a: f32[?, ?], %b: f32) { %c = mul %b, 2.0 %d = add %a, %c return %d, %c }",
    "(%first: f32[?, ?], %second: f32) { %third = gelu %first return %third }",
    "(%first: f32[], %second: f32) { %i = item %first %third = add %i, %second return %third }",
};
enum { N = sizeof bodies / sizeof *bodies, LIMIT = 4 * N };

typedef struct code {
    char *key, *text;
    size_t key_size;
    const char *from;
} code;
static code all[3][LIMIT]; // GPU kernels, CPU kernels, host code
static size_t n_all[3];

static void keep(int kind, const char *from, lf_text *key, char *text) {
    ck_assert(!key->failed && n_all[kind] < LIMIT);
    all[kind][n_all[kind]++] = (code){key->data, text, key->size, from};
}

static void make(const lf_codegen_table *table, lf_codegen *generator, const char *body) {
    static const lf_target targets[2] = {{.kind = LF_TARGET_CUDA, .sm = 90}, {.kind = LF_TARGET_CPU, .cpu = "x86-64-v3"}};
    char text[512];
    lf_graph **graphs;
    size_t n;
    lf_program *p;
    lf_codegen_options options = {0};
    snprintf(text, sizeof text, "fusion @f%s", body);
    ok(lf_parse(heap, "t", text, strlen(text), false, &graphs, &n));
    ok(lf_program_create(graphs[0], 0, false, &p));
    for (uint32_t i = 0; i < p->abi.n_launches; i++) {
        const lfuser_abi_launch *l = &p->abi.launches[i];
        for (int t = 0; t < 2; t++) {
            lf_text key;
            char *printed;
            lf_text_init(&key, heap);
            lf_loop_key(p->kernels[l->kernel], &key);
            lfuser_abi_class cls = lf_launch_general_class(l, t ? LF_DEVICE_CPU : LF_DEVICE_CUDA);
            ok(table->print(generator, LF_STAGE_KERNEL_ASM, p, p->kernels[l->kernel], &targets[t], cls, &options, &printed));
            keep(t, body, &key, printed);
        }
    }
    lf_text key;
    char *printed;
    lf_text_init(&key, heap);
    lf_program_host_key(p, &key);
    ok(table->print(generator, LF_STAGE_HOST_ASM, p, NULL, &targets[1], (lfuser_abi_class){0}, &options, &printed));
    keep(2, body, &key, printed);
    lf_program_destroy(p);
    lf_parse_release(heap, graphs, n);
}

// Assembly has the names of programs and kernels in comments and in the name of its source.
static bool same_code(const char *a, const char *b) {
    for (;;) {
        size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        bool names = (n && strchr("/#", a[0])) || (memmem(a, n, ".file", 5) && memmem(b, m, ".file", 5));
        if (!names && (n != m || memcmp(a, b, n) != 0)) return false;
        a += n, b += m;
        if (!*a || !*b) return !*a && !*b;
        a++, b++;
    }
}

START_TEST(keys_and_code_agree) {
    const lf_codegen_table *table = lfuser_codegen_entry(LF_CODEGEN_VERSION);
    lf_codegen *generator;
    ok(table->create(heap, NULL, &generator));
    for (int i = 0; i < N; i++) make(table, generator, bodies[i]);
    size_t shared = 0, apart = 0;
    for (int kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < n_all[kind]; i++)
            for (size_t k = 0; k < i; k++) {
                const code *a = &all[kind][i], *b = &all[kind][k];
                bool same_key = a->key_size == b->key_size && !memcmp(a->key, b->key, a->key_size);
                if (same_key)
                    ck_assert_msg(same_code(a->text, b->text), "one key, two codes (kind %d):\n%s\n%s\n%s\n%s", kind,
                                  a->from, b->from, a->text, b->text);
                shared += same_key;
                apart += !same_key;
            }
    ck_assert_uint_ge(shared, 6); // the renamed ones at least, in all three kinds
    ck_assert_uint_gt(apart, 300);
    for (int kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < n_all[kind]; i++) lf_free(heap, all[kind][i].key), lf_free(heap, all[kind][i].text);
    table->destroy(generator);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("codegen key");
    TCase *t = tcase_create("key");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, keys_and_code_agree);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
