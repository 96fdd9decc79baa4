// Wrong arguments, buffers and streams: each is refused with a message that says what is wrong, nothing is launched, outputs stay
// untouched, and the next call is right.
#include "test/support/api/tensors.h"

// ---- a program, right arguments, and what they give ----------------------------------------------------------------------------

static const char text[] = "fusion @f(%x: f32[%h, %w], %y: f32[%w], %s: i64, %k: f32[] @host) {\n"
                           "  %r = reshape %x, [%s, -1]\n"
                           "  %c = lt %s, 100\n"
                           "  assert %c, \"%s must be below 100\"\n"
                           "  %a = add %x, %y\n"
                           "  %b = mul %r, %k\n"
                           "  %n = mul %s, 2\n"
                           "  return %a, %b, %n\n"
                           "}\n";
enum { N_ARGUMENTS = 4, N_OUTPUTS = 3 };

typedef struct scene {
    lfuser_executable *executable;
    test_tensor x, y, a, b;
    lfuser_tensor tx, ty, ta, tb; // as passed; a test spoils them
    int64_t shape[4][LFUSER_MAX_RANK], strides[4][LFUSER_MAX_RANK];
    lfuser_argument arguments[N_ARGUMENTS];
    size_t n_arguments, n_outputs;
    lfuser_stream *stream;
} scene;

static void reset(scene *s) {
    test_tensor *from[] = {&s->x, &s->y, &s->a, &s->b};
    lfuser_tensor *to[] = {&s->tx, &s->ty, &s->ta, &s->tb};
    for (int i = 0; i < 4; i++) {
        memcpy(s->shape[i], from[i]->shape, sizeof s->shape[i]);
        memcpy(s->strides[i], from[i]->strides, sizeof s->strides[i]);
        *to[i] = from[i]->view;
        to[i]->shape = s->shape[i];
        to[i]->strides = s->strides[i];
    }
    s->arguments[0] = tensor_argument(&s->tx);
    s->arguments[1] = tensor_argument(&s->ty);
    s->arguments[2] = i64_argument(6);
    s->arguments[3] = (lfuser_argument){.kind = LFUSER_HOST_TENSOR, .dtype = LFUSER_F32, .value = {.f32 = 3}};
    s->n_arguments = N_ARGUMENTS;
    s->n_outputs = N_OUTPUTS;
    s->stream = env.stream;
}

static void scene_open(scene *s) {
    s->executable = compile(text);
    tensor_f32(&s->x, 2, (int64_t[]){4, 6}, 0, 1);
    tensor_f32(&s->y, 1, (int64_t[]){6}, 100, 100);
    tensor_init(&s->a, LFUSER_F32, 2, (int64_t[]){4, 6}, LAYOUT_DENSE);
    tensor_init(&s->b, LFUSER_F32, 2, (int64_t[]){6, 4}, LAYOUT_DENSE);
    tensor_upload(&s->a);
    tensor_upload(&s->b);
    reset(s);
}

static void scene_close(scene *s) {
    lfuser_executable_destroy(s->executable);
    tensor_finish(&s->x);
    tensor_finish(&s->y);
    tensor_finish(&s->a);
    tensor_finish(&s->b);
}

static void set_outputs(const scene *s, lfuser_output *outputs) {
    memset(outputs, 0x5a, N_OUTPUTS * sizeof *outputs);
    outputs[0].tensor = (lfuser_tensor *)(uintptr_t)&s->ta;
    outputs[1].tensor = (lfuser_tensor *)(uintptr_t)&s->tb;
    outputs[2].tensor = NULL;
}

static void check_poisoned(test_tensor *t) {
    tensor_download(t);
    for (int64_t i = 0; i < t->elements * (int64_t)t->bytes; i++) ck_assert_uint_eq(t->host[i], POISON);
}

static void poison(test_tensor *t) {
    memset(t->host, POISON, (size_t)t->elements * t->bytes);
    tensor_upload(t);
}

static void check_right(scene *s) {
    lfuser_output outputs[N_OUTPUTS];
    reset(s);
    set_outputs(s, outputs);
    ok(lfuser_run(s->executable, env.stream, s->arguments, N_ARGUMENTS, outputs, N_OUTPUTS, NULL));
    tensor_download(&s->a);
    tensor_download(&s->b);
    for (int i = 0; i < 24; i++) {
        ck_assert_float_eq(tensor_f32_at(&s->a, i), (float)i + 100 * (float)(i % 6 + 1));
        ck_assert_float_eq(tensor_f32_at(&s->b, i), 3 * (float)i);
    }
    ck_assert_int_eq(outputs[2].value.i64, 12);
    tensor_check_guards(&s->a, "a");
    tensor_check_guards(&s->b, "b");
    poison(&s->a);
    poison(&s->b);
}

static void refuses_at(scene *s, lfuser_code code, const char *message, const char *file, int line) {
    lfuser_output outputs[N_OUTPUTS], before[N_OUTPUTS];
    lfuser_completion *completion = (lfuser_completion *)(uintptr_t)1;
    set_outputs(s, outputs);
    memcpy(before, outputs, sizeof before);
    lfuser_stats was = stats();
    fails_at(lfuser_run(s->executable, s->stream, s->arguments, s->n_arguments, outputs, s->n_outputs, &completion), code,
             message, file, line);
    ck_assert_ptr_null(completion);
    ck_assert_uint_eq(stats().launches, was.launches);
    for (size_t i = 0; i < N_OUTPUTS; i++) { // by convention what the library would have given is nulled first
        ck_assert_ptr_eq(outputs[i].tensor, before[i].tensor);
        ck_assert_mem_eq(&outputs[i].value, &before[i].value, sizeof before[i].value);
        ck_assert(!outputs[i].pending || outputs[i].pending == before[i].pending);
        ck_assert(!outputs[i].allocated || outputs[i].allocated == before[i].allocated);
    }
    check_poisoned(&s->a);
    check_poisoned(&s->b);
    check_right(s);
}
#define refuses(s, code, message) refuses_at(s, code, message, __FILE__, __LINE__)

// ---- arguments -------------------------------------------------------------------------------------------------------------------

START_TEST(wrong_arguments) {
    scene s;
    scene_open(&s);
    check_right(&s);
    s.n_arguments = 3;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f takes 4 arguments, got 3");
    s.n_outputs = 2;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f gives 3 outputs, got room for 2");
    s.arguments[0] = i64_argument(1);
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 0 (%x): expected a tensor of rank 2 of f32, got a scalar");
    s.arguments[0] = tensor_argument(NULL);
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 0 (%x): expected a tensor of rank 2 of f32, got none");
    s.arguments[2] = tensor_argument(&s.tx);
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 2 (%s): expected a scalar of i64, got a tensor");
    s.arguments[2] = f32_argument(1);
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 2 (%s): expected dtype i64, got f32");
    s.arguments[2].dtype = LFUSER_NO_DTYPE;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 2 (%s): expected dtype i64, got none");
    s.tx.rank = 1;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 0 (%x): expected rank 2, got rank 1");
    s.tx.dtype = lfuser_dl_dtype_of(LFUSER_I32);
    refuses(&s, LFUSER_INVALID_ARGUMENT,
            "@f: argument 0 (%x): expected dtype f32, got i32 (DLPack code 0, 32 bits, 1 lanes)");
    s.tx.dtype = (lfuser_dl_dtype){2, 32, 4};
    refuses(&s, LFUSER_INVALID_ARGUMENT,
            "@f: argument 0 (%x): expected dtype f32, got one that is not supported (DLPack code 2, 32 bits, 4 lanes)");
    s.tx.device = (lfuser_dl_device){2, 7};
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 0 (%x): lies on cuda:7, the program was compiled for @device");
    s.tx.device = (lfuser_dl_device){8, 0};
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 0 (%x): lies on other:0, the program was compiled for @device");
    s.ty.data = NULL;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 1 (%y): has no data (NULL), but elements");
    s.shape[0][1] = -1;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 0 (%x): axis 1 has the negative extent -1");
    scene_close(&s);
}
END_TEST

START_TEST(misaligned_data) {
    scene s;
    char message[160];
    scene_open(&s);
    s.tx.byte_offset += 2;
    snprintf(message, sizeof message, "@f: argument 0 (%%x): address 0x%llx is not aligned to its element of 4 bytes",
             (unsigned long long)(uintptr_t)s.tx.data + s.tx.byte_offset);
    refuses(&s, LFUSER_INVALID_ARGUMENT, message);
    s.tb.byte_offset += 1;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: output 1 (%b): the buffer is not aligned to its element");
    scene_close(&s);
}
END_TEST

START_TEST(host_tensors) {
    scene s;
    float three = 3;
    lfuser_tensor host = {.data = &three, .device = {1, 0}, .dtype = lfuser_dl_dtype_of(LFUSER_F32)};
    scene_open(&s);
    check_right(&s);
    lfuser_tensor bad = host;
    s.arguments[3] = (lfuser_argument){.kind = LFUSER_HOST_TENSOR, .tensor = &bad};
    bad.rank = 1;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 3 (%k): expected a host tensor of rank 0, got rank 1");
    bad = host;
    bad.device.type = 2;
    s.arguments[3].tensor = &bad;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 3 (%k): must lie in host memory, lies on cuda:0");
    bad = host;
    bad.data = NULL;
    s.arguments[3].tensor = &bad;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 3 (%k): has no data (NULL)");
    bad = host;
    bad.dtype = lfuser_dl_dtype_of(LFUSER_F64);
    s.arguments[3].tensor = &bad;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: argument 3 (%k): expected dtype f32, got f64");
    lfuser_output outputs[N_OUTPUTS];
    s.arguments[3].tensor = &host; // in pinned memory, or plain
    for (host.device.type = 1; host.device.type <= 3; host.device.type += 2) {
        set_outputs(&s, outputs);
        ok(lfuser_run(s.executable, env.stream, s.arguments, 4, outputs, 3, NULL));
        tensor_download(&s.b);
        ck_assert_float_eq(tensor_f32_at(&s.b, 5), 15);
    }
    scene_close(&s);
}
END_TEST

// ---- checks of the program ---------------------------------------------------------------------------------------------------------

START_TEST(failed_checks) {
    scene s;
    scene_open(&s);
    s.shape[1][0] = 5;
    refuses(&s, LFUSER_FAILED_CHECK, "@f: %w is 6 (axis 1 of %x), but axis 0 of %y has extent 5 (t.lf:1:36)");
    s.arguments[2] = i64_argument(5);
    refuses(&s, LFUSER_FAILED_CHECK,
            "@f: reshape: %x: f32[%h, %w] has 24 elements, which 5 does not divide: the extent -1 of [%s, -1] has no value "
            "(t.lf:2:8)");
    s.arguments[2] = i64_argument(-2);
    refuses(&s, LFUSER_FAILED_CHECK, "@f: reshape: negative size: the extent %s is -2 (t.lf:2:8)");
    s.arguments[2] = i64_argument(120);
    s.shape[0][0] = 20;
    refuses(&s, LFUSER_FAILED_CHECK, "@f: %s must be below 100 (t.lf:4:3)");
    scene_close(&s);
}
END_TEST

static void check_program(const char *program, int64_t n, int64_t m, int64_t k, lfuser_code code, const char *message) {
    lfuser_executable *e = compile(program);
    test_tensor x, y;
    tensor_f32(&x, 2, (int64_t[]){n, m}, 0, 1);
    tensor_f32(&y, 2, (int64_t[]){m, k}, 0, 1);
    lfuser_argument arguments[] = {tensor_argument(&x.view), tensor_argument(&y.view), i64_argument(k)};
    lfuser_output output = {0};
    uint64_t launches = stats().launches;
    fails(lfuser_run(e, env.stream, arguments, 3, &output, 1, NULL), code, message);
    ck_assert_uint_eq(stats().launches, launches);
    ck_assert_ptr_null(output.allocated);
    // A message has the place as numbers, too.
    lfuser_status status = lfuser_run(e, env.stream, arguments, 3, &output, 1, NULL);
    const char *file = NULL;
    uint32_t line = 0, column = 0;
    lfuser_status_place(status, &file, &line, &column);
    ck_assert_str_eq(file, "t.lf");
    ck_assert_uint_eq(line, 1);
    ck_assert_uint_gt(column, 1);
    lfuser_status_destroy(status);
    lfuser_executable_destroy(e);
    tensor_finish(&x);
    tensor_finish(&y);
}

#define CHECKED "fusion @f(%x: f32[?, ?], %y: f32[?, ?], %s: i64) { "
START_TEST(checks_name_op_place_and_numbers) {
    check_program(CHECKED "%a = add %x, %y return %a }", 2, 3, 4, LFUSER_FAILED_CHECK,
                  "@f: add: %x: f32[?, ?] and %y: f32[?, ?] do not broadcast: axis 0 has extents 2 and 3 (t.lf:1:57)");
    check_program(CHECKED "%a = expand %x, [7, %s] return %a }", 2, 3, 4, LFUSER_FAILED_CHECK,
                  "@f: expand: axis 0 of %x: f32[?, ?] has extent 2, which cannot become the extent 7 of the result's axis "
                  "0 (t.lf:1:57)");
    check_program(CHECKED "%a = cat %x, %y, axis=0 return %a }", 2, 3, 4, LFUSER_FAILED_CHECK,
                  "@f: cat: %x: f32[?, ?] and %y: f32[?, ?]: axis 1 has extents 3 and 4 (t.lf:1:57)");
    check_program(CHECKED "%a = squeeze %x, axes=[1] return %a }", 2, 3, 4, LFUSER_FAILED_CHECK,
                  "@f: squeeze: axis 1 of %x: f32[?, ?] has extent 3, only an extent of 1 can be squeezed (t.lf:1:57)");
    check_program(
        CHECKED "%a = max %x, axes=[1] return %a }", 2, 0, 4, LFUSER_FAILED_CHECK,
        "@f: max: over no element: %x: f32[?, ?] has 0 elements along the reduced axes, for each of 2 results (t.lf:1:57)");
    check_program(
        CHECKED "%a = pad %x, [0, -9], [0, 0], 0 return %a }", 2, 3, 4, LFUSER_FAILED_CHECK,
        "@f: pad: axis 1 of %x: f32[?, ?] has extent 3: padding by -9 and 0 takes away more than there is (t.lf:1:57)");
    check_program(CHECKED "%a, %b = topk %x, %s return %a }", 2, 3, 4, LFUSER_FAILED_CHECK,
                  "@f: topk: k is 4, the extent of axis 1 of %x: f32[?, ?] is 3 (t.lf:1:61)");
    check_program(CHECKED "%a = item %x %b = add %y, %a return %b }", 2, 3, 4, LFUSER_FAILED_CHECK,
                  "@f: item: %x: f32[?, ?] has 6 elements, 1 is needed (t.lf:1:57)");
    check_program(CHECKED "%n = sub 0, %s %a = full [%n], 1.0 return %a }", 2, 3, 4, LFUSER_FAILED_CHECK,
                  "@f: full: negative size: the extent %n is -4 (t.lf:1:72)");
    check_program(CHECKED "%a = matmul %x, %x return %a }", 2, 3, 4, LFUSER_FAILED_CHECK,
                  "@f: matmul: the inner extents of %x: f32[?, ?] and %x: f32[?, ?] differ: 3 and 2 (t.lf:1:57)");
}
END_TEST

// ---- output buffers ----------------------------------------------------------------------------------------------------------------

START_TEST(wrong_buffers) {
    scene s;
    scene_open(&s);
    check_right(&s);
    s.ta.rank = 1;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: output 0 (%a): the buffer is f32 of rank 1, the output f32 of rank 2");
    s.tb.dtype = lfuser_dl_dtype_of(LFUSER_F64);
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: output 1 (%b): the buffer is f64 of rank 2, the output f32 of rank 2");
    s.shape[2][0] = 5;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: output 0 (%a): axis 0 of the buffer has extent 5, the output 4");
    s.ta.device.type = 2, s.ta.device.ordinal = 7;
    refuses(&s, LFUSER_INVALID_ARGUMENT,
            "@f: output 0 (%a): the buffer lies on cuda:7, the program was compiled for @device");
    s.tb.data = NULL;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: output 1 (%b): the buffer has no data (NULL)");
    s.strides[2][0] = 0;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: output 0 (%a): the buffer's strides make elements share memory");
    s.strides[2][0] = 5;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: output 0 (%a): the buffer's strides make elements share memory");
    s.strides[2][0] = -1, s.strides[2][1] = 1;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: output 0 (%a): the buffer's strides make elements share memory");
    s.ta = s.tx;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: output 0 (%a) overlaps argument 0 (%x) in memory");
    s.tb.data = s.ty.data;
    s.tb.byte_offset = s.ty.byte_offset - 4;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: output 1 (%b) overlaps argument 1 (%y) in memory");
    s.tb.data = s.ta.data;
    s.tb.byte_offset = s.ta.byte_offset + 23 * 4;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: outputs 0 and 1 overlap in memory");
    scene_close(&s);
}
END_TEST

// Neighbours that touch but do not overlap are fine, and so are strides that interleave nothing.
START_TEST(buffers_that_touch) {
    lfuser_executable *e = compile("fusion @f(%x: f32[?]) { %a = neg %x %b = add %x, 1 return %a, %b }");
    test_tensor all;
    tensor_f32(&all, 1, (int64_t[]){30}, 0, 1);
    int64_t ten = 10, one = 1, minus = -1;
    lfuser_tensor x = all.view, a = x, b = x;
    x.shape = a.shape = b.shape = &ten;
    x.strides = a.strides = &one;
    b.strides = &minus;
    a.byte_offset += 40;     // 10 … 19
    b.byte_offset += 29 * 4; // 29 … 20
    lfuser_argument argument = tensor_argument(&x);
    lfuser_output outputs[2] = {{.tensor = &a}, {.tensor = &b}};
    ok(lfuser_run(e, env.stream, &argument, 1, outputs, 2, NULL));
    tensor_download(&all);
    for (int i = 0; i < 10; i++) {
        ck_assert_float_eq(tensor_f32_at(&all, i), (float)i);
        ck_assert_float_eq(tensor_f32_at(&all, 10 + i), -(float)i);
        ck_assert_float_eq(tensor_f32_at(&all, 29 - i), (float)(i + 1));
    }
    a.byte_offset -= 4;
    fails(lfuser_run(e, env.stream, &argument, 1, outputs, 2, NULL), LFUSER_INVALID_ARGUMENT,
          "@f: output 0 (%a) overlaps argument 0 (%x) in memory");
    tensor_finish(&all);
    lfuser_executable_destroy(e);
}
END_TEST

// ---- into --------------------------------------------------------------------------------------------------------------------------

// Programs in which a parameter's buffer is overwritten while the rest still reads its old contents: what must come out is what a
// copy would have given.
typedef struct into_case {
    const char *program;
    float (*x)(int i), (*z)(int i); // new contents of %x; the second output
} into_case;
enum { INTO_N = 64 }; // %x is 8 x 8 with elements 0, 1, …

static float old(int i) { return (float)i; }
static float twice(int i) { return 2 * (float)i; }
static float turned(int i) { return (float)(i % 8 * 8 + i / 8); }
static float reversed(int i) { return (float)(63 - i); }
static float minus(int i) { return -(float)i; }
static float row_sums(int i) { return (float)(i / 8 * 64 + 28); }
static float column_sums(int i) { return (float)(i % 8 * 8 + 224); }
static float less_row(int i) { return old(i) - row_sums(i); }
static float turned_sum(int i) { return old(i) + turned(i); }
static float shifted(int i) { return (float)(i / 8 * 8 + (i + 1) % 8); }
static float turned_twice(int i) { return 2 * turned(i); }

static const into_case into_cases[] = {
    {"%a = mul %x, 2 %z = neg %x return %a into %x, %z", twice, minus},
    {"%z = neg %x %a = mul %x, 2 return %a into %x, %z", twice, minus},
    {"%a = permute %x, [1, 0] %z = mul %x, 2 return %a into %x, %z", turned, twice},
    {"%a = flip %x %z = permute %x, [1, 0] return %a into %x, %z", reversed, turned},
    {"%p = permute %x, [1, 0] %a = add %x, %p %z = neg %x return %a into %x, %z", turned_sum, minus},
    {"%s = sum %x, axes=[1], keepdim=true %a = sub %x, %s %z = mul %x, 2 return %a into %x, %z", less_row, twice},
    {"%s = sum %x, axes=[0] %a = expand %s, [8, 8] %z = neg %x return %a into %x, %z", column_sums, minus},
    {"%s = sum %x, axes=[1], keepdim=true %a = expand %s, [8, 8] %z = permute %x, [1, 0] return %a into %x, %z", row_sums,
     turned},
    {"%a = roll %x, [-1], axes=[1] %z = mul %x, 2 return %a into %x, %z", shifted, twice},
    {"%b = neg %x %a = roll %b, [-1], axes=[1] %c = neg %a %z = mul %x, 2 return %c into %x, %z", shifted, twice},
    {"%i = iota 8, 7, -1 %a = take %x, %i, axis=0 %b = flip %a, axes=[1] %z = neg %x return %b into %x, %z", reversed,
     minus},
    {"%a = mul %x, 2 return %a into %x, %x", twice, old},
    {"%p = permute %x, [1, 0] %z = mul %p, 2 return %p into %x, %z", turned, turned_twice},
    {"%a = permute %x, [1, 0] %z = permute %a, [1, 0] return %a into %x, %z", turned, old},
    {"return %x into %x, %x", old, old},
};

START_TEST(into_reads_old_contents) {
    const into_case *c = &into_cases[_i];
    char program[512];
    snprintf(program, sizeof program, "fusion @f(%%x: f32[?, ?]) { %s }", c->program);
    lfuser_executable *e = compile(program);
    lfuser_value_info info;
    ok(lfuser_executable_output(e, 0, &info));
    ck_assert_int_eq(info.into, 0);
    for (int where = 0; where < N_LAYOUTS; where++) {
        if (where == LAYOUT_REPEATED) continue;
        test_tensor x, z;
        tensor_init(&x, LFUSER_F32, 2, (int64_t[]){8, 8}, (layout)where);
        for (int i = 0; i < INTO_N; i++) *(float *)tensor_element(&x, i) = (float)i;
        tensor_upload(&x);
        tensor_init(&z, LFUSER_F32, 2, (int64_t[]){8, 8}, LAYOUT_DENSE);
        tensor_upload(&z);
        lfuser_argument argument = tensor_argument(&x.view);
        lfuser_output outputs[2] = {{0}, {.tensor = &z.view}};
        ok(lfuser_run(e, env.stream, &argument, 1, outputs, 2, NULL));
        ck_assert_ptr_null(outputs[0].allocated);
        tensor_download(&x);
        tensor_download(&z);
        for (int i = 0; i < INTO_N; i++) {
            ck_assert_msg(tensor_f32_at(&x, i) == c->x(i), "layout %d, %s\nx[%d] is %g, expected %g", where, c->program, i,
                          (double)tensor_f32_at(&x, i), (double)c->x(i));
            ck_assert_msg(tensor_f32_at(&z, i) == c->z(i), "layout %d, %s\nz[%d] is %g, expected %g", where, c->program, i,
                          (double)tensor_f32_at(&z, i), (double)c->z(i));
        }
        tensor_check_guards(&x, "x");
        tensor_finish(&x);
        tensor_finish(&z);
    }
    lfuser_executable_destroy(e);
}
END_TEST

START_TEST(two_parameters_exchange) {
    lfuser_executable *e =
        compile("fusion @f(%x: f32[?], %y: f32[?]) { %a = add %y, 0.0 %b = mul %x, 1 return %a into %x, %b into %y }");
    test_tensor x, y;
    tensor_f32(&x, 1, (int64_t[]){1000}, 0, 1);
    tensor_f32(&y, 1, (int64_t[]){1000}, 5000, 1);
    lfuser_argument arguments[] = {tensor_argument(&x.view), tensor_argument(&y.view)};
    lfuser_output outputs[2] = {{0}};
    ok(lfuser_run(e, env.stream, arguments, 2, outputs, 2, NULL));
    tensor_download(&x);
    tensor_download(&y);
    for (int i = 0; i < 1000; i++) {
        ck_assert_float_eq(tensor_f32_at(&x, i), 5000 + (float)i);
        ck_assert_float_eq(tensor_f32_at(&y, i), (float)i);
    }
    tensor_finish(&x);
    tensor_finish(&y);
    lfuser_executable_destroy(e);
}
END_TEST

START_TEST(into_what_cannot_take_it) {
    lfuser_executable *e = compile("fusion @f(%x: f32[?, ?], %y: f32[?, ?]) { %a = add %x, %y return %a into %x }");
    test_tensor x, y;
    tensor_init(&x, LFUSER_F32, 2, (int64_t[]){8, 8}, LAYOUT_REPEATED);
    tensor_fill(&x, FILL_PLAIN, 1);
    tensor_upload(&x);
    tensor_f32(&y, 2, (int64_t[]){8, 8}, 0, 1);
    lfuser_argument arguments[] = {tensor_argument(&x.view), tensor_argument(&y.view)};
    lfuser_output output = {0};
    unsigned char *before = malloc((size_t)x.elements * x.bytes);
    memcpy(before, x.host, (size_t)x.elements * x.bytes);
    fails(lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL), LFUSER_FAILED_CHECK,
          "@f: into %x: its axis 1 of extent 8 has stride 0 (t.lf:1:74)");
    tensor_download(&x);
    ck_assert_mem_eq(before, x.host, (size_t)x.elements * x.bytes);
    free(before);
    // Another parameter that lies in the same memory.
    arguments[0] = arguments[1];
    fails(lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL), LFUSER_INVALID_ARGUMENT,
          "@f: output 0 (%a) overlaps argument 1 (%y) in memory");
    // Of another shape.
    tensor_finish(&x);
    tensor_f32(&x, 2, (int64_t[]){1, 8}, 0, 1);
    arguments[0] = tensor_argument(&x.view);
    fails(lfuser_run(e, env.stream, arguments, 2, &output, 1, NULL), LFUSER_FAILED_CHECK,
          "@f: into %x: axis 0 of %a: f32[?, ?] has extent 8, that of %x has 1 (t.lf:1:74)");
    tensor_finish(&x);
    tensor_finish(&y);
    lfuser_executable_destroy(e);
}
END_TEST

// ---- streams and devices -------------------------------------------------------------------------------------------------------------

START_TEST(streams_and_devices) {
    scene s;
    lfuser_device *other;
    lfuser_stream *foreign;
    scene_open(&s);
    ok(lfuser_device_open(env.context, test_device_name(), &other));
    ok(lfuser_stream_create(other, &foreign));
    s.stream = foreign;
    refuses(&s, LFUSER_INVALID_ARGUMENT,
            "@f: the stream is of @device, the program was compiled for @device, opened another time");
    s.stream = NULL;
    refuses(&s, LFUSER_INVALID_ARGUMENT, "@f: the program has device work and needs a stream");
    lfuser_stream_destroy(foreign);
    lfuser_device_close(other);
    scene_close(&s);
}
END_TEST

START_TEST(programs_without_device) {
    lfuser_fusion *f = parse("fusion @f(%x: f32[?]) { %y = neg %x return %y }");
    lfuser_executable *e = (lfuser_executable *)(uintptr_t)1;
    fails(lfuser_fusion_compile(f, NULL, NULL, &e), LFUSER_INVALID_ARGUMENT,
          "@f has device work (1 kernels): a device is needed to compile it");
    ck_assert_ptr_null(e);
    lfuser_fusion_destroy(f);
    e = compile_for(NULL,
                    "fusion @g(%a: f32, %b: i32) { %c = add %a, %b %d = gt %c, 0 assert %d, \"positive\" return %c, %d }");
    lfuser_argument arguments[] = {f32_argument(1.5f), {.kind = LFUSER_SCALAR, .dtype = LFUSER_I32, .value = {.i32 = 2}}};
    lfuser_output outputs[2] = {{0}};
    ok(lfuser_run(e, NULL, arguments, 2, outputs, 2, NULL));
    ck_assert_float_eq(outputs[0].value.f32, 3.5f);
    ck_assert(outputs[1].value.b);
    arguments[1].value.i32 = -2;
    fails(lfuser_run(e, NULL, arguments, 2, outputs, 2, NULL), LFUSER_FAILED_CHECK, "@g: positive (t.lf:1:61)");
    ck_assert_float_eq(outputs[0].value.f32, 3.5f);
    lfuser_executable_destroy(e);
    // Sizes of tensors that are not read need no device either.
    e = compile_for(NULL, "fusion @h(%x: f32[?, 3]) { %n = numel %x %s = stride %x, 0 return %n, %s }");
    int64_t shape[] = {5, 3};
    lfuser_tensor x = {.device = {2, 0}, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape};
    lfuser_argument argument = tensor_argument(&x);
    ok(lfuser_run(e, NULL, &argument, 1, outputs, 2, NULL));
    ck_assert_int_eq(outputs[0].value.i64, 15);
    ck_assert_int_eq(outputs[1].value.i64, 3);
    lfuser_executable_destroy(e);
}
END_TEST

START_TEST(misuse) {
    lfuser_context *c = (lfuser_context *)(uintptr_t)1;
    lfuser_device *d = (lfuser_device *)(uintptr_t)1;
    fails(lfuser_context_create(NULL, NULL), LFUSER_INVALID_ARGUMENT, "lfuser_context_create: out_context is NULL");
    fails(lfuser_context_create(&(lfuser_context_options){.size = sizeof(lfuser_context_options),
                                                          .allocator.alloc = (void *(*)(void *, size_t))(uintptr_t)1},
                                &c),
          LFUSER_INVALID_ARGUMENT, "lfuser_context_create: an allocator needs alloc, resize and release");
    ck_assert_ptr_null(c);
    fails(lfuser_device_open(env.context, NULL, &d), LFUSER_INVALID_ARGUMENT, "lfuser_device_open: an argument is NULL");
    ck_assert_ptr_null(d);
    fails(lfuser_device_open(env.context, "gpu", &d), LFUSER_INVALID_ARGUMENT,
          "unknown device 'gpu': expected cpu, cuda, cuda:N or sim");
    fails(lfuser_device_open(env.context, "cuda:x", &d), LFUSER_INVALID_ARGUMENT,
          "unknown device 'cuda:x': expected cpu, cuda, cuda:N or sim");
    fails(lfuser_device_open(env.context, "cuda:", &d), LFUSER_INVALID_ARGUMENT,
          "unknown device 'cuda:': expected cpu, cuda, cuda:N or sim");
    lfuser_fusion *f = NULL;
    fails(lfuser_fusion_parse(env.context, NULL, "fusion @a() { return }", 22, "b", &f), LFUSER_INVALID_PROGRAM,
          "<text> has no fusion @b; its first of 1 is @a");
    fails(lfuser_fusion_parse(env.context, NULL, NULL, 0, NULL, &f), LFUSER_INVALID_ARGUMENT,
          "lfuser_fusion_parse: an argument is NULL");
    fails(lfuser_fusion_parse(env.context, "u.lf", "fusion @a(%x: f32) {\n  %y = ad %x, 1\n  return %y\n}", 48, NULL, &f),
          LFUSER_INVALID_PROGRAM, "u.lf:2:8: error: unknown op 'ad'; did you mean 'add'?\n  %y = ad %x, 1\n       ^");
    ck_assert_ptr_null(f);
    fails(lfuser_fusion_compile(NULL, env.device, NULL, NULL), LFUSER_INVALID_ARGUMENT,
          "lfuser_fusion_compile: an argument is NULL");
    fails(lfuser_run(NULL, NULL, NULL, 0, NULL, 0, NULL), LFUSER_INVALID_ARGUMENT, "lfuser_run: executable is NULL");
    fails(lfuser_infer(NULL, NULL, 0, NULL, 0, NULL, NULL), LFUSER_INVALID_ARGUMENT, "lfuser_infer: executable is NULL");
    lfuser_executable *e = compile("fusion @a(%x: f32[?], %s: i64) { %y = neg %x return %y, %s }");
    fails(lfuser_run(e, env.stream, NULL, 2, NULL, 2, NULL), LFUSER_INVALID_ARGUMENT, "@a: arguments or outputs are NULL");
    lfuser_value_info info;
    fails(lfuser_executable_param(e, 2, &info), LFUSER_INVALID_ARGUMENT, "lfuser_executable_param: no such parameter");
    fails(lfuser_executable_output(e, 2, &info), LFUSER_INVALID_ARGUMENT, "lfuser_executable_output: no such output");
    lfuser_executable_destroy(e);
    // An object of another context.
    lfuser_context *other;
    ok(lfuser_context_create(NULL, &other));
    ok(lfuser_fusion_parse(other, NULL, "fusion @a() { return }", 22, NULL, &f));
    fails(lfuser_fusion_compile(f, env.device, NULL, &e), LFUSER_INVALID_ARGUMENT,
          "lfuser_fusion_compile: device and fusion are of different contexts");
    lfuser_fusion_destroy(f);
    lfuser_context_destroy(other);
    // Nothing to end.
    lfuser_fusion_destroy(NULL);
    lfuser_executable_destroy(NULL);
    lfuser_stream_destroy(NULL);
    lfuser_device_close(NULL);
    lfuser_context_destroy(NULL);
    lfuser_pending_release(NULL);
    lfuser_completion_release(NULL);
    lfuser_status_destroy(NULL);
    lfuser_builder_destroy(NULL);
    lfuser_free(env.context, NULL);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api errors");
    TCase *t = device_tcase(suite, "errors", 60);
    tcase_add_test(t, wrong_arguments);
    tcase_add_test(t, misaligned_data);
    tcase_add_test(t, host_tensors);
    tcase_add_test(t, failed_checks);
    tcase_add_test(t, checks_name_op_place_and_numbers);
    tcase_add_test(t, wrong_buffers);
    tcase_add_test(t, buffers_that_touch);
    tcase_add_loop_test(t, into_reads_old_contents, 0, (int)(sizeof into_cases / sizeof *into_cases));
    tcase_add_test(t, two_parameters_exchange);
    tcase_add_test(t, into_what_cannot_take_it);
    tcase_add_test(t, streams_and_devices);
    tcase_add_test(t, programs_without_device);
    tcase_add_test(t, misuse);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
