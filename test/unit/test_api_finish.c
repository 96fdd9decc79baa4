// Pending scalars that the host finishes: arithmetic that no kernel needs, on scalars that kernels deliver and on the run's own. The bits
// are the interpreter's; each waits for what it is made from and for nothing else; it needs nothing of its run any more, whatever becomes
// of that and of the executable.
#include "test/support/api/oracle.h"
#include <sched.h>
#include <unistd.h>

static bool is_finished(const char *text, const char *output) {
    lfuser_fusion *f = parse(text);
    char *printed, line[64];
    ok(lfuser_fusion_print(f, LFUSER_STAGE_PARTITION, "cpu", LFUSER_MATH_EXACT, 0, &printed));
    const char *list = strstr(printed, "finished on the host:\n");
    snprintf(line, sizeof line, ": %%%s when ", output);
    bool found = list && strstr(list, line);
    lfuser_free(env.context, printed);
    lfuser_fusion_destroy(f);
    return found;
}

// ---- the same bits ---------------------------------------------------------------------------------------------------------------

typedef struct row {
    const char *name;
    unsigned n;
    const char *rule, *allow;
} row;
static const row rows[] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) {#name, n, #rule, allow},
#include "ir/ops.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows, A_PROGRAM = 24, SEEDS = SLOW_BUILD ? 4 : 40 };

typedef struct maker {
    char body[8000], results[2000];
    unsigned n, n_all;
    lfuser_dtype dtype;
} maker;

// Items of tensors that are arguments and of one that a kernel makes, and host scalars beside them.
static const char params[] = "(%a: $D[], %b: $D[1, 1], %c: $D, %d: $D, %q: bool[], %h: i32[], %pn: i32)";
static const char items[] = "  %x = item %a\n  %e = select true, %b, %a\n  %y = item %e\n  %w = item %q\n  %k = item %h\n";

static void flush(maker *m) {
    if (!m->n) return;
    char text[12000], name[16];
    snprintf(text, sizeof text, "%s {\n%s%s  return %s\n}", params, items, m->body, m->results);
    test_program p;
    ck_assert_msg(program_open(&p, text, m->dtype), "refused:\n%s", text);
    for (unsigned i = 0; i < m->n; i++) {
        snprintf(name, sizeof name, "r%u", i);
        ck_assert_msg(is_finished(p.text, name), "%%%s is not finished by the host:\n%s", name, p.text);
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) check_case(&p, &(case_options){.n = 1, .seed = seed});
    program_close(&p);
    m->n_all += m->n;
    m->n = 0;
    m->body[0] = m->results[0] = 0;
}

static void add(maker *m, const char *statement) {
    size_t n = strlen(m->body), k = strlen(m->results);
    snprintf(m->body + n, sizeof m->body - n, "  %%r%u = %s\n", m->n, statement);
    snprintf(m->results + k, sizeof m->results - k, "%s%%r%u", m->n ? ", " : "", m->n);
    if (++m->n == A_PROGRAM) flush(m);
}

static void add_row(maker *m, const row *r) {
    static const char *const operands[5][3] = {{0},
                                               {"%x", "%y"},
                                               {"%x, %c", "%d, %y", "%x, %y"},
                                               {"%x, %c, %d", "%c, %y, %x", "%d, %c, %y"},
                                               {"%x, %c, %y, %d", "%c, %x, %d, %y"}};
    static const char *const selects[3] = {"%w, %x, %c", "%w, %c, %d", "%w, %d, %y"};
    static const char *const ldexps[3] = {"%x, %pn", "%c, %k", "%y, %k"};
    char s[128];
    if (!strcmp(r->rule, "cast") || !strcmp(r->rule, "bitcast")) {
        for (lfuser_dtype to = LFUSER_BOOL; to <= LFUSER_C128; to++) {
            bool bits = r->rule[0] == 'b';
            if (to == m->dtype) continue; // is what it is made from
            if (bits && (to >= LFUSER_C64 || lfuser_dtype_bytes(to) != lfuser_dtype_bytes(m->dtype))) continue;
            snprintf(s, sizeof s, "%s %%x, dtype=%s", r->name, lfuser_dtype_name(to));
            add(m, s);
        }
        return;
    }
    for (unsigned i = 0; i < 3; i++) {
        const char *given = !strcmp(r->rule, "select")  ? selects[i]
                            : !strcmp(r->rule, "ldexp") ? ldexps[i]
                                                        : operands[r->n][i];
        if (!given) continue;
        snprintf(s, sizeof s, "%s %s", r->name, given);
        add(m, s);
    }
    if (!strcmp(r->name, "gelu")) add(m, "gelu %x, approximate=tanh");
    if (!strcmp(r->name, "clamp")) {
        add(m, "clamp %x, %c, none");
        add(m, "clamp %x, none, %y");
    }
}

// Some ops are the identity for some dtypes: then there is nothing to finish.
static bool is_identity(const row *r, lfuser_dtype d) {
    bool whole = d < LFUSER_F16, rounds = !strcmp(r->name, "ceil") || !strcmp(r->name, "floor") ||
                                          !strcmp(r->name, "trunc") || !strcmp(r->name, "round");
    bool real = d < LFUSER_C64 && (!strcmp(r->name, "real") || !strcmp(r->name, "conj"));
    return (whole && rounds) || real;
}

static bool allowed(const row *r, lfuser_dtype d) {
    char letter = d == LFUSER_BOOL ? 'b' : d < LFUSER_F16 ? 'i' : d < LFUSER_C64 ? 'f' : 'c';
    bool refused = !strcmp(r->name, "complex") && (d == LFUSER_F16 || d == LFUSER_BF16);
    return strchr(r->allow, letter) && !refused && !is_identity(r, d);
}

START_TEST(every_op_and_dtype_has_the_interpreters_bits) {
    maker *m = calloc(1, sizeof *m);
    m->dtype = (lfuser_dtype)_i;
    for (size_t i = 0; i < N_ROWS; i++)
        if (allowed(&rows[i], m->dtype)) add_row(m, &rows[i]);
    flush(m);
    ck_assert_uint_gt(m->n_all, m->dtype >= LFUSER_C64 ? 50 : 100);
    free(m);
}
END_TEST

// What the language says of operands that other machines trap on, or leave undefined.
START_TEST(nothing_traps) {
    static const char text[] = "fusion @t(%x: i32[], %y: f64[], %n: i32, %s: i32) {\n"
                               "  %i = item %x\n  %f = item %y\n"
                               "  %a = floordiv %i, %n\n  %b = mod %i, %n\n  %c = truncdiv %i, %s\n  %d = fmod %i, %s\n"
                               "  %e = shl %i, %n\n  %g = shr %i, 99\n  %h = cast %f, dtype=i8\n  %j = abs %i\n"
                               "  return %a, %b, %c, %d, %e, %g, %h, %j\n}\n";
    enum { OUTPUTS = 8 };
    static const int32_t want[OUTPUTS] = {-1, INT32_MIN, INT32_MIN, 0, INT32_MIN, -1, 0, INT32_MIN};
    lfuser_executable *e = compile(text);
    test_tensor x, y;
    tensor_init(&x, LFUSER_I32, 0, NULL, LAYOUT_DENSE);
    tensor_init(&y, LFUSER_F64, 0, NULL, LAYOUT_DENSE);
    *(int32_t *)tensor_element(&x, 0) = INT32_MIN;
    *(double *)tensor_element(&y, 0) = (double)__builtin_nanf("");
    tensor_upload(&x);
    tensor_upload(&y);
    lfuser_argument arguments[] = {tensor_argument(&x.view),
                                   tensor_argument(&y.view),
                                   {.kind = LFUSER_SCALAR, .dtype = LFUSER_I32, .value = {.i32 = 0}},
                                   {.kind = LFUSER_SCALAR, .dtype = LFUSER_I32, .value = {.i32 = -1}}};
    lfuser_output outputs[OUTPUTS] = {{0}};
    ok(lfuser_run(e, env.stream, arguments, 4, outputs, OUTPUTS, NULL));
    for (int k = 0; k < OUTPUTS; k++) {
        lfuser_scalar value;
        ok(lfuser_pending_get(outputs[k].pending, UINT64_MAX, &value));
        ck_assert_msg((k == 6 ? value.i8 : value.i32) == want[k], "output %d: %d", k, value.i32);
        lfuser_pending_release(outputs[k].pending);
    }
    tensor_finish(&x);
    tensor_finish(&y);
    lfuser_executable_destroy(e);
}
END_TEST

// ---- one program, and what is done with its runs ---------------------------------------------------------------------------------------

// %p is delivered anyway; %q is of another kernel; %a needs both, %b one; %y needs %r, which a kernel computes, and %c begins with that.
static const char text[] = "fusion @t(%x: f32[?], %z: i64[?, ?], %k: f32, %n: i64) {\n"
                           "  %m = max %x\n  %p = item %m\n"
                           "  %s = sum %z\n  %q = item %s\n"
                           "  %u = mul %p, %k\n  %v = mul %q, %n\n"
                           "  %a = add %u, %v\n"
                           "  %b = floordiv %v, 7\n"
                           "  %r = add %p, %k\n"
                           "  %y = mul %x, %r\n"
                           "  %c = sqrt %r\n"
                           "  return %p, %a, %b, %y, %c\n"
                           "}\n";
enum { OUTPUTS = 5, P = 0, A = 1, B = 2, Y = 3, C = 4 };

typedef struct fixture {
    lfuser_executable *executable;
    test_tensor x, z, y;
    lfuser_argument arguments[4];
} fixture;

static void fixture_run(fixture *f, float k, int64_t n, lfuser_output outputs[OUTPUTS]) {
    f->arguments[2] = f32_argument(k);
    f->arguments[3] = i64_argument(n);
    memset(outputs, 0, OUTPUTS * sizeof *outputs);
    outputs[Y].tensor = &f->y.view;
    ok(lfuser_run(f->executable, env.stream, f->arguments, 4, outputs, OUTPUTS, NULL));
    memset(&f->arguments[2], 0xff, 2 * sizeof f->arguments[2]); // read before the call returned
}

static void check_one(int which, float k, int64_t n, lfuser_pending *p, uint64_t timeout_ns) {
    lfuser_scalar value;
    ok(lfuser_pending_get(p, timeout_ns, &value));
    if (which == P) ck_assert_float_eq(value.f32, 10);
    if (which == A) ck_assert_float_eq(value.f32, 10 * k + (float)(15 * n));
    if (which == B) ck_assert_int_eq(value.i64, 15 * n / 7);
    if (which == C) ck_assert_float_eq(value.f32, __builtin_sqrtf(10 + k));
}

static void check_all(float k, int64_t n, const lfuser_output outputs[OUTPUTS], uint64_t timeout_ns) {
    for (int i = OUTPUTS; i-- > 0;)
        if (i != Y) check_one(i, k, n, outputs[i].pending, timeout_ns);
}

static void release_all(lfuser_output outputs[OUTPUTS]) {
    for (int i = 0; i < OUTPUTS; i++) lfuser_pending_release(outputs[i].pending);
}

static void fixture_open(fixture *f) {
    lfuser_output outputs[OUTPUTS];
    f->executable = compile(text);
    tensor_f32(&f->x, 1, (int64_t[]){10}, 1, 1);
    tensor_init(&f->y, LFUSER_F32, 1, (int64_t[]){10}, LAYOUT_DENSE);
    tensor_upload(&f->y);
    tensor_init(&f->z, LFUSER_I64, 2, (int64_t[]){2, 3}, LAYOUT_DENSE);
    for (int64_t i = 0; i < 6; i++) *(int64_t *)tensor_element(&f->z, i) = i;
    tensor_upload(&f->z);
    f->arguments[0] = tensor_argument(&f->x.view);
    f->arguments[1] = tensor_argument(&f->z.view);
    fixture_run(f, 6, 2, outputs); // compiles
    check_all(6, 2, outputs, UINT64_MAX);
    release_all(outputs);
    synchronize();
}

static void fixture_close(fixture *f) {
    lfuser_executable_destroy(f->executable);
    tensor_finish(&f->x);
    tensor_finish(&f->y);
    tensor_finish(&f->z);
}

START_TEST(who_computes_what) {
    ck_assert(is_finished(text, "a") && is_finished(text, "b") && is_finished(text, "c"));
    ck_assert(!is_finished(text, "p"));
    fixture f;
    fixture_open(&f);
    for (int i = 0; i < OUTPUTS; i++) {
        lfuser_value_info info;
        ok(lfuser_executable_output(f.executable, (size_t)i, &info));
        ck_assert_int_eq(info.kind, i == Y ? LFUSER_TENSOR : LFUSER_PENDING);
    }
    lfuser_output outputs[OUTPUTS];
    uint64_t launches = stats().launches;
    fixture_run(&f, 6, 2, outputs);
    ck_assert_uint_eq(stats().launches, launches + 2); // max and mul, sum: none for scalars alone
    release_all(outputs);
    fixture_close(&f);
}
END_TEST

// Many runs under way, more than there are frames: each has its own operands, whatever the caller does with his meanwhile.
START_TEST(each_run_keeps_its_own_operands) {
    enum { RUNS = 100 };
    static lfuser_output outputs[RUNS][OUTPUTS];
    fixture f;
    gate g = GATE;
    fixture_open(&f);
    block_stream(env.stream, &g);
    uint64_t syncs = stats().syncs;
    for (int i = 0; i < RUNS; i++) fixture_run(&f, (float)(6 + i), i, outputs[i]);
    for (int i = 0; i < RUNS; i += 9) {
        lfuser_scalar value = {.word = {1, 1}};
        ck_assert(!lfuser_pending_ready(outputs[i][A].pending));
        fails(lfuser_pending_get(outputs[i][A].pending, 0, &value), LFUSER_NOT_READY,
              "the device has not delivered this scalar yet");
        double start = now_s();
        fails(lfuser_pending_get(outputs[i][B].pending, 1000000, &value), LFUSER_TIMEOUT,
              "no value from the device within 1000000 ns");
        ck_assert_double_ge(now_s() - start, 0.001);
        ck_assert_uint_eq(value.word[0], 0);
    }
    open_gate(&g);
    for (int i = RUNS; i-- > 0;) {
        check_all((float)(6 + i), i, outputs[i], UINT64_MAX);
        check_all((float)(6 + i), i, outputs[i], 0); // as often as one likes
        ck_assert(lfuser_pending_ready(outputs[i][A].pending));
    }
    ck_assert_uint_eq(stats().syncs, syncs); // no wait above was one for the stream
    for (int i = 0; i < RUNS; i++) release_all(outputs[i]);
    fixture_close(&f);
}
END_TEST

// What was given up before it came does not show up in a later run.
START_TEST(finished_scalars_may_be_given_up) {
    fixture f;
    fixture_open(&f);
    for (int round = 0; round < 20; round++) {
        gate g = GATE;
        lfuser_output first[OUTPUTS], second[OUTPUTS];
        block_stream(env.stream, &g);
        fixture_run(&f, 7, 3, first);
        release_all(first);
        fixture_run(&f, (float)round, round, second);
        for (int i = 0; i < OUTPUTS; i++)
            if (i != A) lfuser_pending_release(second[i].pending); // %p, too, from which %a is made
        open_gate(&g);
        check_one(A, (float)round, round, second[A].pending, UINT64_MAX);
        lfuser_pending_release(second[A].pending);
        synchronize();
    }
    fixture_close(&f);
}
END_TEST

// ---- threads ---------------------------------------------------------------------------------------------------------------------------

enum { THREADS = 8 };

typedef struct asking {
    const lfuser_output *outputs;
    float k;
    int64_t n;
    int first;
    pthread_barrier_t *start;
} asking;

static void *ask(void *arg) {
    const asking *a = arg;
    static const int order[4] = {A, B, C, P};
    pthread_barrier_wait(a->start);
    for (int i = 0; i < 4; i++) {
        int which = order[(a->first + i) % 4];
        lfuser_pending *p = a->outputs[which].pending;
        while (a->first % 3 == 0 && !lfuser_pending_ready(p)) sched_yield();
        check_one(which, a->k, a->n, p, UINT64_MAX);
    }
    return NULL;
}

// All threads want all of them at the moment at which they come.
START_TEST(any_thread_may_finish) {
    fixture f;
    fixture_open(&f);
    for (int round = 0; round < (SLOW_BUILD ? 10 : 50); round++) {
        gate g = GATE;
        pthread_t threads[THREADS];
        asking asked[THREADS];
        pthread_barrier_t start;
        lfuser_output outputs[OUTPUTS];
        pthread_barrier_init(&start, NULL, THREADS + 1);
        block_stream(env.stream, &g);
        fixture_run(&f, (float)round, round, outputs);
        for (int i = 0; i < THREADS; i++) {
            asked[i] = (asking){outputs, (float)round, round, i, &start};
            pthread_create(&threads[i], NULL, ask, &asked[i]);
        }
        pthread_barrier_wait(&start);
        open_gate(&g);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&start);
        release_all(outputs);
        synchronize(); // the gate is another one's memory now
    }
    fixture_close(&f);
}
END_TEST

typedef struct heard {
    lfuser_pending *pending;
    float k;
    int64_t n;
    int which;
    _Atomic int calls;
} heard;

static void value_is_there(void *arg) {
    heard *h = arg;
    check_one(h->which, h->k, h->n, h->pending, 0);
    lfuser_pending_release(h->pending);
    h->calls++;
}

START_TEST(callbacks_come_when_it_can_be_finished) {
    static const int which[3] = {A, B, C};
    fixture f;
    fixture_open(&f);
    for (int round = 0; round < 20; round++) {
        gate g = GATE;
        heard heards[3];
        lfuser_output outputs[OUTPUTS];
        block_stream(env.stream, &g);
        fixture_run(&f, (float)round, round, outputs);
        for (int i = 0; i < 3; i++) {
            heards[i] = (heard){.pending = outputs[which[i]].pending, .k = (float)round, .n = round, .which = which[i]};
            ok(lfuser_pending_callback(heards[i].pending, value_is_there, &heards[i]));
        }
        lfuser_pending_release(outputs[P].pending);
        usleep(1000);
        for (int i = 0; i < 3; i++) ck_assert_int_eq(heards[i].calls, 0);
        open_gate(&g);
        for (int i = 0; i < 3; i++) {
            for (double start = now_s(); !heards[i].calls && now_s() - start < 20;) usleep(100);
            ck_assert_int_eq(heards[i].calls, 1);
        }
        synchronize();
    }
    fixture_close(&f);
}
END_TEST

// ---- lives -----------------------------------------------------------------------------------------------------------------------------

// The executable, its code, the stream and the device's handle are gone when the value is asked for.
START_TEST(values_outlive_their_executable) {
    for (int round = 0; round < 10; round++) {
        fixture f;
        lfuser_output outputs[OUTPUTS];
        fixture_open(&f);
        fixture_run(&f, 11, 5, outputs);
        fixture_close(&f);
        lfuser_executable *other = compile("fusion @o(%x: f32[?]) { %m = max %x %p = item %m %q = add %p, 1 return %q }");
        if (round == 9) {
            lfuser_executable_destroy(other);
            other = NULL;
            lfuser_stream_destroy(env.stream);
            lfuser_device_close(env.device);
            env.stream = NULL;
            env.device = NULL;
        }
        check_all(11, 5, outputs, 0); // it was waited for
        release_all(outputs);
        lfuser_executable_destroy(other);
    }
}
END_TEST

// Two programs that differ only in what the host finishes have different code; two equal ones share it.
START_TEST(code_is_shared_by_what_it_finishes) {
    static const char form[] = "fusion @t(%%x: f32[], %%k: f32) { %%p = item %%x %%a = %s return %%a }";
    static const char *const ops[] = {"add %p, %k", "sub %p, %k", "sub %k, %p", "add %p, 3", "add %p, 4", "add %p, %k"};
    static const float want[] = {7, 3, -3, 8, 9, 7};
    enum { PROGRAMS = sizeof want / sizeof *want };
    lfuser_executable *e[PROGRAMS];
    test_tensor x;
    tensor_f32(&x, 0, NULL, 5, 0);
    lfuser_argument arguments[] = {tensor_argument(&x.view), f32_argument(2)};
    for (int i = 0; i < PROGRAMS; i++) {
        char program[200];
        lfuser_cache_stats before = {.size = sizeof before}, after = before;
        ok(lfuser_context_cache_stats(env.context, &before));
        snprintf(program, sizeof program, form, ops[i]);
        e[i] = compile(program);
        ok(lfuser_context_cache_stats(env.context, &after));
        ck_assert_uint_eq(after.shared, before.shared + (i == PROGRAMS - 1));
    }
    for (int i = 0; i < PROGRAMS; i++) {
        lfuser_output output = {0};
        lfuser_scalar value;
        ok(lfuser_run(e[i], env.stream, arguments, 2, &output, 1, NULL));
        ok(lfuser_pending_get(output.pending, UINT64_MAX, &value));
        ck_assert_float_eq(value.f32, want[i]);
        lfuser_pending_release(output.pending);
    }
    for (int i = 0; i < PROGRAMS; i++) lfuser_executable_destroy(e[i]);
    tensor_finish(&x);
}
END_TEST

// Asked beforehand: shapes and host scalars, and what would be compiled, where the kernels may not be waited for either.
START_TEST(what_can_be_asked_without_a_run) {
    lfuser_fusion *fusion = parse(text);
    lfuser_compile_options options = {.size = sizeof options, .wait = LFUSER_NEVER_WAIT};
    fixture f;
    lfuser_executable *e;
    lfuser_output outputs[OUTPUTS] = {{0}};
    int64_t shapes[OUTPUTS][8];
    uint32_t load, cold;
    fixture_open(&f);
    ok(lfuser_fusion_compile(fusion, env.device, &options, &e));
    f.arguments[2] = f32_argument(6);
    f.arguments[3] = i64_argument(2);
    ok(lfuser_infer(e, f.arguments, 4, outputs, OUTPUTS, shapes, NULL));
    ck_assert_int_eq(outputs[A].kind, LFUSER_PENDING);
    ck_assert_ptr_null(outputs[A].pending);
    ck_assert_int_eq(shapes[Y][0], 10);
    ok(lfuser_executable_prepare_shapes(e, &(const lfuser_argument *){f.arguments}, 1, 4));
    ok(lfuser_executable_would_compile(e, f.arguments, 4, &load, &cold));
    ck_assert_uint_eq(load, 0);
    lfuser_executable_destroy(f.executable);
    f.executable = e;
    fixture_run(&f, 6, 2, outputs);
    check_all(6, 2, outputs, UINT64_MAX);
    release_all(outputs);
    lfuser_fusion_destroy(fusion);
    fixture_close(&f);
}
END_TEST

// ---- how far it goes -------------------------------------------------------------------------------------------------------------------

// %n is waited for before stage 1; %a is made from it and from what stage 1 delivers.
START_TEST(operands_of_a_later_stage) {
    test_program p;
    ck_assert(program_open(&p,
                           "(%x: i64[], %t: f64[?], %pk: f64) {\n"
                           "  %s = item %x\n  %n = clamp %s, 2, 9\n  %i = iota %n, 0, 1, dtype=f64\n  %m = sum %i\n"
                           "  %q = item %m\n  %u = sum %t\n  %v = item %u\n  %w = add %v, %pk\n"
                           "  %a = mul %q, %n\n  %b = sub %a, %w\n  %h = mul %n, %n\n"
                           "  return %b, %h, %a, %i\n}",
                           LFUSER_F64));
    for (uint64_t seed = 1; seed <= 8; seed++) check_case(&p, &(case_options){.n = 5, .seed = seed});
    program_close(&p);
}
END_TEST

// The host does without what is too much for it: 20 operands, and 200 ops. Kernels do these, with the same results.
START_TEST(large_ones_are_for_kernels) {
    enum { ITEMS = 20, OPS = 200 };
    static char program[16000];
    size_t n = 0;
#define PUT(...) n += (size_t)snprintf(program + n, sizeof program - n, __VA_ARGS__)
    PUT("fusion @t(");
    for (int i = 0; i < ITEMS; i++) PUT("%%t%d: f32[], ", i);
    PUT("%%k: f32) {\n");
    for (int i = 0; i < ITEMS; i++) PUT("  %%i%d = item %%t%d\n", i, i);
    PUT("  %%s0 = add %%i0, %%k\n");
    for (int i = 1; i < ITEMS; i++) PUT("  %%s%d = add %%s%d, %%i%d\n", i, i - 1, i);
    PUT("  %%c0 = mul %%i0, %%k\n");
    for (int i = 1; i < OPS; i++) PUT("  %%c%d = sub %%k, %%c%d\n", i, i - 1);
    PUT("  %%few = mul %%s5, %%c5\n  %%last = add %%s%d, 1\n", ITEMS - 1);
    PUT("  return %%few, %%s%d, %%c%d, %%last\n}\n", ITEMS - 1, OPS - 1);
#undef PUT
    ck_assert(is_finished(program, "few"));
    ck_assert(is_finished(program, "last")); // begins with the sum of a kernel
    ck_assert(!is_finished(program, "s19") && !is_finished(program, "c199"));
    test_program p;
    ck_assert(program_open(&p, program, LFUSER_F32));
    for (uint64_t seed = 1; seed <= 4; seed++) check_case(&p, &(case_options){.n = 1, .seed = seed});
    program_close(&p);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api finish");
    TCase *t = device_tcase(suite, "finished by the host", 400);
    tcase_add_loop_test(t, every_op_and_dtype_has_the_interpreters_bits, LFUSER_BOOL, LFUSER_C128 + 1);
    tcase_add_test(t, nothing_traps);
    tcase_add_test(t, who_computes_what);
    tcase_add_test(t, each_run_keeps_its_own_operands);
    tcase_add_test(t, finished_scalars_may_be_given_up);
    tcase_add_test(t, any_thread_may_finish);
    tcase_add_test(t, callbacks_come_when_it_can_be_finished);
    tcase_add_test(t, values_outlive_their_executable);
    tcase_add_test(t, code_is_shared_by_what_it_finishes);
    tcase_add_test(t, what_can_be_asked_without_a_run);
    tcase_add_test(t, operands_of_a_later_stage);
    tcase_add_test(t, large_ones_are_for_kernels);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
