// Programs as text and from the builder, the text of every stage, and what belongs to no run: the CPU and CUDA start from the same
// loop IR, and nothing that runs contains the interpreter.
#include "test/support/api/oracle.h"
#include <unistd.h>

static const char seed_text[] = "fusion @seed(%t0: f32[?, ?], %t1: f32[%h, %w], %s0: i64, %s1: i64) {\n"
                                "  %t2 = reshape %t0, [%s0, %s1]\n"
                                "  %t3 = add %t1, %t2\n"
                                "  %n = add %s0, %s1\n"
                                "  return %t3, %n\n"
                                "}\n";

static char *print(lfuser_fusion *f, lfuser_stage stage, const char *target) {
    char *text;
    ok(lfuser_fusion_print(f, stage, target, LFUSER_MATH_EXACT, 0, &text));
    ck_assert_uint_gt(strlen(text), 0);
    return text;
}

// ---- one loop IR ---------------------------------------------------------------------------------------------------------------------

static const char *const programs[] = {
    seed_text,
    "fusion @f(%x: f32[?, ?], %w: f32[?], %s: f32) { %a = softmax %x, axis=1 %b = mul %a, %w %c = sum %b %d = item %c %e = "
    "mul %x, %d return %e, %d }",
    "fusion @f(%x: bf16[?, ?], %i: i64[?]) { %a = take %x, %i, axis=0 %b = permute %a, [1, 0] %c = layer_norm %b, none, "
    "none, 1e-5 return %c }",
    "fusion @f(%x: i32[?, ?, 4]) { %a = flip %x %b = cat %a, %x %c = max %b, axes=[0, 2] %d = cumsum %c, axis=0 return %c, "
    "%d }",
    "fusion @f(%x: f64[?, ?], %y: f64[?, ?]) { %a = matmul %x, %y %b = sub %a, 1 return %b into %y, %a }",
    "fusion @f(%n: i64, %s: i64) { %u = uniform [%n, 3], 0.0, 1.0, %s, 0 %v, %i = sort %u, axis=1 return %v, %i }",
};

START_TEST(every_target_starts_from_the_same_loops) {
    static const char *const targets[] = {"cpu:x86-64-v3", "cuda:sm_75", "cuda:sm_90", "cuda"};
    lfuser_fusion *f = parse(programs[_i]);
    static const lfuser_stage stages[] = {LFUSER_STAGE_PARTITION, LFUSER_STAGE_PROGRAM, LFUSER_STAGE_KERNELS};
    for (size_t s = 0; s < 3; s++) {
        char *cpu = print(f, stages[s], "cpu");
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
            char *other = print(f, stages[s], targets[t]);
            ck_assert_str_eq(cpu, other);
            lfuser_free(env.context, other);
        }
        lfuser_free(env.context, cpu);
    }
    // And each can be taken to the end for each, without a device of that kind.
    for (lfuser_stage stage = LFUSER_STAGE_HOST_IR; stage <= LFUSER_STAGE_DEVICE_ASM; stage++) {
        lfuser_free(env.context, print(f, stage, "cpu"));
        char *ptx = print(f, stage, "cuda:sm_90");
        if (stage == LFUSER_STAGE_DEVICE_ASM) ck_assert_ptr_nonnull(strstr(ptx, ".target sm_90"));
        lfuser_free(env.context, ptx);
    }
    lfuser_fusion_destroy(f);
}
END_TEST

START_TEST(printing_again_gives_the_same) {
    lfuser_fusion *f = parse(programs[_i]);
    for (lfuser_stage stage = LFUSER_STAGE_FUSION; stage <= LFUSER_STAGE_DEVICE_ASM; stage++) {
        char *first = print(f, stage, "cpu"), *second = print(f, stage, "cpu");
        ck_assert_str_eq(first, second);
        lfuser_free(env.context, first);
        lfuser_free(env.context, second);
    }
    char *text = print(f, LFUSER_STAGE_FUSION, "cpu");
    lfuser_fusion *again = parse(text);
    char *reprinted = print(again, LFUSER_STAGE_FUSION, "cpu");
    ck_assert_str_eq(text, reprinted);
    lfuser_free(env.context, text);
    lfuser_free(env.context, reprinted);
    lfuser_fusion_destroy(again);
    lfuser_fusion_destroy(f);
}
END_TEST

START_TEST(wrong_targets) {
    lfuser_fusion *f = parse(seed_text);
    char *text = (char *)(uintptr_t)1;
    fails(lfuser_fusion_print(f, LFUSER_STAGE_KERNELS, "gpu", LFUSER_MATH_EXACT, 0, &text), LFUSER_INVALID_ARGUMENT,
          "unknown target 'gpu': expected cpu, cpu:x86-64[-v3|-v4], cuda:sm_NN or sim");
    ck_assert_ptr_null(text);
    fails(lfuser_fusion_print(f, LFUSER_STAGE_KERNELS, "cuda:sm_50", LFUSER_MATH_EXACT, 0, &text), LFUSER_UNSUPPORTED,
          "target 'cuda:sm_50': sm_75 is the oldest GPU that is supported");
    fails(lfuser_fusion_print(f, (lfuser_stage)99, "cpu", LFUSER_MATH_EXACT, 0, &text), LFUSER_INVALID_ARGUMENT,
          "lfuser_fusion_print: an argument is NULL, or the stage 99 unknown");
    lfuser_fusion_destroy(f);
}
END_TEST

// ---- nothing of lib/interp is reached from a run ---------------------------------------------------------------------------------------

// Global functions of the interpreter, by the names in its symbol table: none is in what is loaded to compile and run.
static bool has_symbol(const char *library, const char *pattern, char *found, size_t room) {
    char command[1024];
    snprintf(command, sizeof command, "nm '%s' 2>/dev/null | grep -E -m 1 ' [tT] (%s)'", library, pattern);
    FILE *f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    bool has = fgets(found, (int)room, f) != NULL;
    pclose(f);
    return has;
}

START_TEST(the_interpreter_is_in_no_library) {
    char self[600], path[800], found[200] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(n, 0);
    self[n] = 0;
    if (system("nm --version > /dev/null 2>&1") != 0) return; // a machine that only runs: checked where it was built
    // The check must be able to fail: this program holds the interpreter.
    if (!has_symbol(self, "lf_interp_run", found, sizeof found)) return; // stripped
    static const char pattern[] = "lf_interp_|lf_eval_|lf_run_(elem|reduce|view|indexed|scan|order|scatter|matmul)";
    ck_assert(has_symbol(self, pattern, found, sizeof found));
    static const char *const libraries[] = {"liblfuser.so", "liblfuser-codegen.so"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%.*s/../../lib/%s", (int)(strrchr(self, '/') - self), self, libraries[i]);
        ck_assert_msg(access(path, R_OK) == 0, "%s is not there", path);
        ck_assert_msg(has_symbol(path, "lf_[a-z]", found, sizeof found), "%s has no symbols at all", path);
        ck_assert_msg(!has_symbol(path, pattern, found, sizeof found), "%s has %s", path, found);
    }
}
END_TEST

// ---- the builder -----------------------------------------------------------------------------------------------------------------------

static lfuser_operand value(lfuser_value *v) { return (lfuser_operand){.kind = LFUSER_OPERAND_VALUE, .value = v}; }
static lfuser_operand integer(int64_t n) { return (lfuser_operand){.kind = LFUSER_OPERAND_INT, .integer = n}; }
static lfuser_operand number(double x) { return (lfuser_operand){.kind = LFUSER_OPERAND_FLOAT, .number = x}; }

static lfuser_value *op(lfuser_builder *b, const char *name, const lfuser_operand *operands, size_t n,
                        const lfuser_attribute *attributes, size_t n_attributes) {
    lfuser_value *results[2] = {NULL, NULL};
    size_t count = 0;
    ok(lfuser_builder_op(b, name, operands, n, attributes, n_attributes, results, &count));
    ck_assert_uint_ge(count, 1);
    return results[0];
}
#define OP(b, name, ...)                                                                                                    \
    op(b, name, (lfuser_operand[]){__VA_ARGS__}, sizeof((lfuser_operand[]){__VA_ARGS__}) / sizeof(lfuser_operand), NULL, 0)

static const lfuser_type seed_types[] = {
    {.dtype = LFUSER_F32, .tensor = true, .rank = 2, .extents = {-1, -1}},
    {.dtype = LFUSER_F32, .tensor = true, .rank = 2, .extents = {-1, -1}, .names = {"h", "w"}},
    {.dtype = LFUSER_I64},
    {.dtype = LFUSER_I64}};

// The values have no names of their own, so the text numbers them; what is meant is the same.
static char *without_names(const char *text, const char *const *names, size_t n) {
    char *out = malloc(strlen(text) + 1);
    size_t k = 0;
    for (const char *c = text; *c;) {
        size_t length = 1;
        out[k++] = *c;
        if (*c == '%') {
            length += strspn(c + 1, "abcdefghijklmnopqrstuvwxyz0123456789_.");
            bool kept = false;
            for (size_t i = 0; i < n; i++) kept |= strlen(names[i]) == length - 1 && !strncmp(names[i], c + 1, length - 1);
            if (kept) memcpy(out + k, c + 1, length - 1), k += length - 1;
        }
        c += length;
    }
    out[k] = 0;
    return out;
}

START_TEST(the_seed_program_without_text) {
    static const char *const names[] = {"t0", "t1", "s0", "s1"}, *const kept[] = {"t0", "t1", "s0", "s1", "h", "w"};
    lfuser_builder *b;
    lfuser_value *p[4];
    ok(lfuser_builder_create(env.context, "seed", &b));
    ok(lfuser_builder_params(b, 4, names, seed_types, p));
    lfuser_operand shape[] = {value(p[2]), value(p[3])}, list = {.kind = LFUSER_OPERAND_LIST, .items = shape, .n_items = 2};
    lfuser_value *t2 = OP(b, "reshape", value(p[0]), list);
    memset(shape, 0xff, sizeof shape); // lists are copied
    lfuser_value *t3 = OP(b, "add", value(p[1]), value(t2));
    lfuser_value *n = OP(b, "add", value(p[2]), value(p[3]));
    lfuser_fusion *built, *parsed = parse(seed_text);
    ok(lfuser_builder_return(b, 2, (lfuser_value *[]){t3, n}, NULL, &built));
    ck_assert_str_eq(lfuser_fusion_name(built), "seed");
    for (lfuser_stage stage = LFUSER_STAGE_FUSION; stage <= LFUSER_STAGE_KERNELS; stage++) {
        char *one = print(built, stage, "cpu"), *other = print(parsed, stage, "cpu");
        char *a = without_names(one, kept, 6), *c = without_names(other, kept, 6);
        // The text tells places; the built program has none. Only the forms that show no place are compared whole.
        if (stage == LFUSER_STAGE_FUSION || stage == LFUSER_STAGE_KERNELS) ck_assert_str_eq(a, c);
        free(a);
        free(c);
        lfuser_free(env.context, one);
        lfuser_free(env.context, other);
    }
    // It runs, and its errors have no place to name.
    lfuser_executable *e;
    ok(lfuser_fusion_compile(built, env.device, NULL, &e));
    test_tensor t0, t1;
    tensor_f32(&t0, 2, (int64_t[]){6, 8}, 0, 1);
    tensor_f32(&t1, 2, (int64_t[]){8, 6}, 1, 1);
    lfuser_argument arguments[] = {tensor_argument(&t0.view), tensor_argument(&t1.view), i64_argument(8), i64_argument(6)};
    lfuser_output outputs[2] = {{0}};
    ok(lfuser_run(e, env.stream, arguments, 4, outputs, 2, NULL));
    ck_assert_int_eq(outputs[1].value.i64, 14);
    float got[48];
    ok(lfuser_memory_download(env.stream, got, outputs[0].allocated->tensor.data, sizeof got));
    synchronize();
    for (int i = 0; i < 48; i++) ck_assert_float_eq(got[i], (float)(2 * i + 1));
    outputs[0].allocated->deleter(outputs[0].allocated);
    arguments[3] = i64_argument(7);
    lfuser_status s = lfuser_run(e, env.stream, arguments, 4, outputs, 2, NULL);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_FAILED_CHECK);
    const char *file = "";
    uint32_t line = 1, column = 1;
    lfuser_status_place(s, &file, &line, &column);
    ck_assert_uint_eq(line + column, 0);
    lfuser_status_destroy(s);
    tensor_finish(&t0);
    tensor_finish(&t1);
    lfuser_executable_destroy(e);
    lfuser_fusion_destroy(built);
    lfuser_fusion_destroy(parsed);
}
END_TEST

// Attributes of each kind, literals, lists in lists, none, two results, an assert, into.
START_TEST(all_that_a_builder_can_say) {
    static const char text[] =
        "fusion @all(%x: f32[4, ?], %k: f32, %s: i64) {\n"
        "  %a = sum %x, axes=[0, -1], keepdim=true\n  %v, %m = var_mean %x, axes=[1], correction=0\n"
        "  %c = clamp %x, none, 0.5\n  %t = tensor [[1.0, 2.5], [3.0, 4.0]], dtype=f64\n  %g = gelu %c, approximate=tanh\n"
        "  %l = leaky_relu %g, slope=0.25\n  %p = pad %l, [1, 0], [0, %s], %k\n  %u = triu %p, diagonal=%s\n"
        "  %b = cast %u, dtype=bf16\n  %q = lt %s, 10\n  assert %q, \"s is {0}, too much\"\n  %y = mul %x, 2\n"
        "  return %a, %v, %m, %t, %b, %y into %x\n}\n";
    static const char *const names[] = {"x", "k", "s"};
    const lfuser_type types[] = {
        {.dtype = LFUSER_F32, .tensor = true, .rank = 2, .extents = {4, -1}}, {.dtype = LFUSER_F32}, {.dtype = LFUSER_I64}};
    lfuser_builder *b;
    lfuser_value *p[3], *two[2];
    size_t n;
    ok(lfuser_builder_create(env.context, "all", &b));
    ok(lfuser_builder_params(b, 3, names, types, p));
#define LIST(...)                                                                                                           \
    {                                                                                                                       \
        .kind = LFUSER_OPERAND_LIST, .items = (lfuser_operand[]){__VA_ARGS__},                                              \
        .n_items = sizeof((lfuser_operand[]){__VA_ARGS__}) / sizeof(lfuser_operand)                                         \
    }
    const lfuser_operand none = {.kind = LFUSER_OPERAND_NONE}, x = value(p[0]);
    lfuser_attribute sum[] = {{.name = "axes", .operand = LIST(integer(0), integer(-1))},
                              {.name = "keepdim", .operand = {.kind = LFUSER_OPERAND_BOOL, .integer = 1}}};
    lfuser_value *a = op(b, "sum", &x, 1, sum, 2);
    lfuser_attribute var[] = {{.name = "axes", .operand = LIST(integer(1))}, {.name = "correction", .operand = integer(0)}};
    ok(lfuser_builder_op(b, "var_mean", &x, 1, var, 2, two, &n));
    ck_assert_uint_eq(n, 2);
    lfuser_value *c = OP(b, "clamp", x, none, number(0.5));
    lfuser_operand rows = LIST(LIST(number(1), number(2.5)), LIST(number(3), number(4)));
    lfuser_value *t = op(b, "tensor", &rows, 1, &(lfuser_attribute){.name = "dtype", .word = "f64"}, 1);
    lfuser_operand on = value(c);
    on = value(op(b, "gelu", &on, 1, &(lfuser_attribute){.name = "approximate", .word = "tanh"}, 1));
    on = value(op(b, "leaky_relu", &on, 1, &(lfuser_attribute){.name = "slope", .operand = number(0.25)}, 1));
    lfuser_operand low = LIST(integer(1), integer(0)), high = LIST(integer(0), value(p[2]));
    on = value(OP(b, "pad", on, low, high, value(p[1])));
    on = value(op(b, "triu", &on, 1, &(lfuser_attribute){.name = "diagonal", .operand = value(p[2])}, 1));
    lfuser_value *cast = op(b, "cast", &on, 1, &(lfuser_attribute){.name = "dtype", .word = "bf16"}, 1);
    ok(lfuser_builder_assert(b, OP(b, "lt", value(p[2]), integer(10)), "s is {0}, too much"));
    lfuser_value *y = OP(b, "mul", x, integer(2));
    lfuser_fusion *built, *parsed = parse(text);
    ok(lfuser_builder_return(b, 6, (lfuser_value *[]){a, two[0], two[1], t, cast, y},
                             (const char *[]){NULL, NULL, NULL, NULL, NULL, "x"}, &built));
    static const lfuser_stage stages[] = {LFUSER_STAGE_FUSION, LFUSER_STAGE_KERNELS};
    for (int i = 0; i < 2; i++) {
        char *one = print(built, stages[i], "cpu"), *other = print(parsed, stages[i], "cpu");
        char *mine = without_names(one, names, 3), *theirs = without_names(other, names, 3);
        ck_assert_str_eq(mine, theirs);
        free(mine);
        free(theirs);
        lfuser_free(env.context, one);
        lfuser_free(env.context, other);
    }
    lfuser_fusion_destroy(built);
    lfuser_fusion_destroy(parsed);
}
END_TEST

START_TEST(what_a_builder_refuses) {
    static const char *const names[] = {"t0", "t1", "s0", "s1"};
    lfuser_builder *b = (lfuser_builder *)(uintptr_t)1;
    lfuser_value *p[4], *result[2];
    size_t n;
    fails(lfuser_builder_create(env.context, NULL, &b), LFUSER_INVALID_ARGUMENT,
          "lfuser_builder_create: an argument is NULL");
    ck_assert_ptr_null(b);
    ok(lfuser_builder_create(env.context, "f", &b));
    const char *no_name[] = {NULL};
    fails(lfuser_builder_params(b, 1, no_name, seed_types, p), LFUSER_INVALID_ARGUMENT,
          "lfuser_builder_params: a name is NULL, or a rank above 8");
    ok(lfuser_builder_params(b, 4, names, seed_types, p));
    lfuser_operand x[] = {value(p[0]), value(p[1]), value(NULL), {.kind = (lfuser_operand_kind)77}};
    fails(lfuser_builder_op(b, NULL, x, 1, NULL, 0, result, &n), LFUSER_INVALID_ARGUMENT, "lfuser_builder_op: op is NULL");
    fails(lfuser_builder_op(b, "ad", x, 2, NULL, 0, result, &n), LFUSER_INVALID_PROGRAM, "unknown op 'ad'");
    fails(lfuser_builder_op(b, "sub", x, 1, NULL, 0, result, &n), LFUSER_INVALID_PROGRAM, "'sub' does not take 1 operands");
    fails(lfuser_builder_op(b, "neg", x + 2, 1, NULL, 0, result, &n), LFUSER_INVALID_ARGUMENT, "an operand's value is NULL");
    fails(lfuser_builder_op(b, "neg", x + 3, 1, NULL, 0, result, &n), LFUSER_INVALID_ARGUMENT,
          "an operand is of an unknown kind");
    lfuser_attribute wrong = {.name = "axess", .operand = integer(0)};
    fails(lfuser_builder_op(b, "sum", x, 1, &wrong, 1, result, &n), LFUSER_INVALID_PROGRAM, "unknown attribute 'axess'");
    wrong.name = "axis";
    lfuser_status s = lfuser_builder_op(b, "sum", x, 1, &wrong, 1, result, &n);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INVALID_PROGRAM);
    lfuser_status_destroy(s);
    lfuser_operand deep = integer(1), levels[20];
    for (int i = 0; i < 20; i++) {
        levels[i] = deep;
        deep = (lfuser_operand){.kind = LFUSER_OPERAND_LIST, .items = &levels[i], .n_items = 1};
    }
    fails(lfuser_builder_op(b, "tensor", &deep, 1, NULL, 0, result, &n), LFUSER_INVALID_ARGUMENT,
          "a list nests deeper than 8");
    fails(lfuser_builder_assert(b, NULL, "x"), LFUSER_INVALID_ARGUMENT, "lfuser_builder_assert: an argument is NULL");
    // After all that it still builds.
    ok(lfuser_builder_op(b, "neg", x, 1, NULL, 0, result, &n));
    lfuser_fusion *f;
    s = lfuser_builder_return(b, 1, result, (const char *[]){"nobody"}, &f);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INVALID_PROGRAM);
    lfuser_status_destroy(s);
    ck_assert_ptr_null(f);
    lfuser_builder_destroy(b);
}
END_TEST

static Suite *make(void) {
    enum { N = sizeof programs / sizeof *programs };
    Suite *suite = suite_create("api stages");
    TCase *t = device_tcase(suite, "stages", 60);
    tcase_add_loop_test(t, every_target_starts_from_the_same_loops, 0, N);
    tcase_add_loop_test(t, printing_again_gives_the_same, 0, N);
    tcase_add_test(t, wrong_targets);
    tcase_add_test(t, the_interpreter_is_in_no_library);
    tcase_add_test(t, the_seed_program_without_text);
    tcase_add_test(t, all_that_a_builder_can_say);
    tcase_add_test(t, what_a_builder_refuses);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
