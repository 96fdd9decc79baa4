// The library as a guest in a process: after every call the floating-point state, signal mask and handlers, locale, directory and file
// mode mask of the caller are as they were, whatever they were; a second process made by fork may use the library afresh.
#include "test/support/api/device_test.h"
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

// ---- the state of the caller -------------------------------------------------------------------------------------------------

typedef struct guest_state {
    unsigned mxcsr;
    unsigned short x87;
    sigset_t mask;
    struct sigaction actions[32];
    char locale[256];
    locale_t thread_locale;
    char directory[4096];
    mode_t file_mask;
} guest_state;

enum { CONTROL = ~0x3fu }; // of MXCSR: the rest are sticky flags

static void look(guest_state *s) {
    memset(s, 0, sizeof *s);
    s->mxcsr = _mm_getcsr() & CONTROL;
    __asm__("fnstcw %0" : "=m"(s->x87));
    pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    for (int i = 1; i < 32; i++) sigaction(i, NULL, &s->actions[i]);
    snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
    s->thread_locale = uselocale((locale_t)0);
    if (!getcwd(s->directory, sizeof s->directory)) s->directory[0] = 0;
    s->file_mask = umask(0);
    umask(s->file_mask);
}

static guest_state before;

static void compare_at(const char *call, int line) {
    guest_state now;
    look(&now);
    ck_assert_msg(now.mxcsr == before.mxcsr, "line %d: %s: MXCSR is %x, was %x", line, call, now.mxcsr, before.mxcsr);
    ck_assert_msg(now.x87 == before.x87, "line %d: %s: the x87 control word is %x, was %x", line, call, now.x87, before.x87);
    ck_assert_msg(!memcmp(&now.mask, &before.mask, sizeof now.mask), "line %d: %s: another signal mask", line, call);
    for (int i = 1; i < 32; i++)
        ck_assert_msg(now.actions[i].sa_handler == before.actions[i].sa_handler &&
                          now.actions[i].sa_flags == before.actions[i].sa_flags,
                      "line %d: %s: another handler of signal %d", line, call, i);
    ck_assert_msg(!strcmp(now.locale, before.locale) && now.thread_locale == before.thread_locale,
                  "line %d: %s: another locale: %s", line, call, now.locale);
    ck_assert_msg(!strcmp(now.directory, before.directory), "line %d: %s: another directory: %s", line, call, now.directory);
    ck_assert_msg(now.file_mask == before.file_mask, "line %d: %s: another file mask", line, call);
}
#define GUEST(call)                                                                                                         \
    do {                                                                                                                    \
        call;                                                                                                               \
        compare_at(#call, __LINE__);                                                                                        \
    } while (0)

static void handler(int signal_number) { (void)signal_number; }
static void callback(void *arg) { *(_Atomic int *)arg = 1; }

static const char text[] = "fusion @f(%x: f32[?, ?], %s: i64) { %a = softmax %x, axis=1 %e = exp %a %m = max %e %p = item "
                           "%m %y = mul %e, %p %h = div %s, 3 "
                           "%d = cast %p, dtype=f64 %o = mul %d, 0x1p-1074 "
                           "return %y, %o, %h }";

// A whole life of everything, in the state that the caller is in.
static void whole_life(void) {
    lfuser_context *context;
    lfuser_device *device;
    lfuser_stream *stream;
    lfuser_fusion *fusion;
    lfuser_executable *e;
    lfuser_builder *builder;
    lfuser_completion *completion;
    lfuser_output outputs[3] = {{0}};
    lfuser_scalar p;
    void *memory;
    char *printed;
    float x[16], y[16];
    _Atomic int called = 0;
    for (int i = 0; i < 16; i++) x[i] = (float)i * 0.125f;
    look(&before);
    GUEST(ok(lfuser_context_create(NULL, &context)));
    GUEST(ok(lfuser_context_warm(context)));
    GUEST(ok(lfuser_device_open(context, test_device_name(), &device)));
    GUEST(ok(lfuser_stream_create(device, &stream)));
    GUEST(ok(lfuser_fusion_parse(context, "t.lf", text, sizeof text - 1, NULL, &fusion)));
    for (int stage = LFUSER_STAGE_FUSION; stage <= LFUSER_STAGE_DEVICE_ASM; stage++) {
        GUEST(ok(lfuser_fusion_print(fusion, (lfuser_stage)stage, "cpu", LFUSER_MATH_EXACT, 0, &printed)));
        GUEST(lfuser_free(context, printed));
    }
    GUEST(ok(lfuser_fusion_compile(fusion, device, NULL, &e)));
    GUEST(ok(lfuser_executable_prepare(e)));
    GUEST(ok(lfuser_memory_alloc(stream, sizeof x, &memory)));
    GUEST(ok(lfuser_memory_upload(stream, memory, x, sizeof x)));
    int64_t shape[] = {4, 4};
    lfuser_tensor t = {
        .data = memory, .device = env.place, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape};
    lfuser_argument arguments[] = {tensor_argument(&t), i64_argument(7)};
    GUEST(ok(lfuser_infer(e, arguments, 2, outputs, 3, NULL, NULL)));
    memset(outputs, 0, sizeof outputs);
    GUEST(ok(lfuser_run(e, stream, arguments, 2, outputs, 3, &completion)));
    GUEST(ok(lfuser_stream_callback(stream, callback, &called)));
    GUEST(ok(lfuser_pending_get(outputs[1].pending, UINT64_MAX, &p)));
    GUEST(ok(lfuser_completion_wait(completion, UINT64_MAX)));
    GUEST(ok(lfuser_memory_download(stream, y, outputs[0].allocated->tensor.data, sizeof y)));
    GUEST(ok(lfuser_stream_synchronize(stream)));
    ck_assert_int_eq(called, 1);
    // What was computed does not depend on the caller's state either, nor does what is computed when somebody asks.
    ck_assert_uint_eq(p.word[0], 1);
    ck_assert(outputs[2].value.f64 == 0x1.2aaaaaaaaaaabp1);
    GUEST(outputs[0].allocated->deleter(outputs[0].allocated));
    GUEST(lfuser_pending_release(outputs[1].pending));
    GUEST(lfuser_completion_release(completion));
    GUEST(lfuser_status_destroy(lfuser_run(e, stream, arguments, 1, outputs, 3, NULL)));
    GUEST(lfuser_status_destroy(lfuser_fusion_parse(context, "t.lf", "fusion @", 8, NULL, &(lfuser_fusion *){NULL})));
    GUEST(lfuser_memory_free(stream, memory));
    GUEST(ok(lfuser_builder_create(context, "b", &builder)));
    GUEST(lfuser_builder_destroy(builder));
    GUEST(lfuser_executable_destroy(e));
    GUEST(lfuser_fusion_destroy(fusion));
    GUEST(lfuser_stream_destroy(stream));
    GUEST(lfuser_device_close(device));
    GUEST(lfuser_context_destroy(context));
}

START_TEST(an_ordinary_caller) { whole_life(); }
END_TEST

START_TEST(a_caller_with_a_state_of_its_own) {
    struct sigaction mine = {.sa_handler = handler, .sa_flags = SA_NODEFER};
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigaddset(&mask, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    sigaction(SIGSEGV, &mine, NULL);
    sigaction(SIGPIPE, &mine, NULL);
    sigaction(SIGUSR1, &mine, NULL);
    umask(0123);
    ck_assert_int_eq(chdir("/"), 0);
    setlocale(LC_ALL, "C.UTF-8");
    fesetround(FE_UPWARD);
    unsigned short x87 = 0x0c7f; // toward zero, single precision
    __asm__ volatile("fldcw %0" : : "m"(x87));
    _mm_setcsr(_mm_getcsr() | 0x8040); // flush to zero, denormals are zero
    whole_life();
    x87 = 0x037f;
    __asm__ volatile("fldcw %0" : : "m"(x87));
    _mm_setcsr(0x1f80);
}
END_TEST

// A decimal comma must not reach the parser or the printer.
START_TEST(a_locale_with_a_comma) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names && !setlocale(LC_ALL, names[i])) i++;
    if (i == sizeof names / sizeof *names) {
        printf("a_locale_with_a_comma: no such locale here\n");
        return;
    }
    lfuser_fusion *f = parse("fusion @f(%x: f32[]) { %y = mul %x, 1.5 return %y }");
    char *printed;
    ok(lfuser_fusion_print(f, LFUSER_STAGE_FUSION, "cpu", LFUSER_MATH_EXACT, 0, &printed));
    ck_assert_ptr_nonnull(strstr(printed, "1.5"));
    lfuser_free(env.context, printed);
    lfuser_fusion_destroy(f);
    setlocale(LC_ALL, "C");
}
END_TEST

// In the child the library is as it was in the parent before its first call.
START_TEST(a_forked_child_starts_afresh) {
    if (test_on_cuda()) return; // the driver itself does not survive a fork
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        alarm(100);
        whole_life();
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %x", (unsigned)status);
    whole_life(); // and the parent goes on
}
END_TEST

// ---- fork with objects of the parent ------------------------------------------------------------------------------------------

// What the parent has made, and whether anything is under way when it forks.
static struct {
    lfuser_executable *executable;
    lfuser_tensor input;
    lfuser_pending *pending; // of a run that is over
    void *memory;
    _Atomic int called;
} parent;

static void count(void *arg) { ++*(_Atomic int *)arg; }

#define CHILD_NEEDS(condition)                                                                                              \
    do {                                                                                                                    \
        if (!(condition)) {                                                                                                 \
            fprintf(stderr, "child, line %d: %s\n", __LINE__, #condition);                                                  \
            _exit(1);                                                                                                       \
        }                                                                                                                   \
    } while (0)

// A run on `stream` and its results.
static bool run_is_right(lfuser_stream *stream) {
    lfuser_argument arguments[] = {tensor_argument(&parent.input), i64_argument(7)};
    lfuser_output outputs[3] = {{0}};
    lfuser_scalar p;
    float y[16];
    lfuser_status s = lfuser_run(parent.executable, stream, arguments, 2, outputs, 3, NULL);
    if (!s) s = lfuser_pending_get(outputs[1].pending, UINT64_MAX, &p);
    if (!s) s = lfuser_memory_download(stream, y, outputs[0].allocated->tensor.data, sizeof y);
    if (!s) s = lfuser_stream_synchronize(stream);
    if (s) return fprintf(stderr, "%s\n", lfuser_status_message(s)), lfuser_status_destroy(s), false;
    bool right = p.word[0] == 1 && y[0] > 1 && outputs[2].value.f64 == 0x1.2aaaaaaaaaaabp1;
    outputs[0].allocated->deleter(outputs[0].allocated);
    lfuser_pending_release(outputs[1].pending);
    return right;
}

// Everything of the parent's, used and destroyed.
static void be_the_child(void) {
    lfuser_stream *fresh;
    lfuser_scalar p;
    lfuser_status s;
    alarm(60);
    CHILD_NEEDS(run_is_right(env.stream));
    CHILD_NEEDS(!lfuser_stream_create(env.device, &fresh));
    CHILD_NEEDS(run_is_right(fresh));
    CHILD_NEEDS(!lfuser_pending_get(parent.pending, UINT64_MAX, &p)); // which had arrived
    lfuser_fusion *f = parse("fusion @g(%x: f32[?]) { %y = sqrt %x return %y }");
    lfuser_executable *e;
    CHILD_NEEDS(!lfuser_fusion_compile(f, env.device, NULL, &e));
    CHILD_NEEDS(!lfuser_executable_prepare(e));
    // The thread that calls back is the parent's; nobody is left waiting for it.
    parent.called = 0;
    s = lfuser_pending_callback(parent.pending, count, &parent.called);
    CHILD_NEEDS(lfuser_status_code(s) == LFUSER_UNAVAILABLE && strstr(lfuser_status_message(s), "fork"));
    lfuser_status_destroy(s);
    lfuser_executable_destroy(e);
    lfuser_fusion_destroy(f);
    lfuser_stream_destroy(fresh);
    lfuser_pending_release(parent.pending);
    lfuser_memory_free(env.stream, parent.memory);
    lfuser_executable_destroy(parent.executable);
    lfuser_stream_destroy(env.stream);
    lfuser_device_close(env.device);
    lfuser_context_destroy(env.context);
    _exit(0);
}

START_TEST(a_forked_child_uses_what_the_parent_made) {
    if (test_on_cuda()) return; // a status says so: test_runtime_cuda
    float x[16];
    int64_t shape[] = {4, 4};
    for (int i = 0; i < 16; i++) x[i] = (float)i * 0.125f;
    parent.executable = compile(text);
    ok(lfuser_memory_alloc(env.stream, sizeof x, &parent.memory));
    ok(lfuser_memory_upload(env.stream, parent.memory, x, sizeof x));
    parent.input = (lfuser_tensor){
        .data = parent.memory, .device = env.place, .rank = 2, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape};
    lfuser_argument arguments[] = {tensor_argument(&parent.input), i64_argument(7)};
    lfuser_output outputs[3] = {{0}};
    ok(lfuser_run(parent.executable, env.stream, arguments, 2, outputs, 3, NULL));
    parent.pending = outputs[1].pending;
    ok(lfuser_pending_callback(parent.pending, count, &parent.called));
    ok(lfuser_stream_synchronize(env.stream));
    for (int i = 0; i < 10000 && !parent.called; i++) usleep(1000);
    ck_assert_int_eq(parent.called, 1);
    fflush(NULL);
    pid_t child = fork();
    if (!child) be_the_child();
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %x", (unsigned)status);
    ck_assert(run_is_right(env.stream)); // and the parent goes on
    outputs[0].allocated->deleter(outputs[0].allocated);
    lfuser_pending_release(parent.pending);
    lfuser_memory_free(env.stream, parent.memory);
    lfuser_executable_destroy(parent.executable);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("api guest");
    TCase *t = device_tcase(suite, "the caller's state", 100);
    tcase_add_test(t, an_ordinary_caller);
    tcase_add_test(t, a_caller_with_a_state_of_its_own);
    tcase_add_test(t, a_locale_with_a_comma);
    tcase_add_test(t, a_forked_child_starts_afresh);
    if (!UNDER_TSAN) tcase_add_test(t, a_forked_child_uses_what_the_parent_made);
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
