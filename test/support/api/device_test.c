// See device_test.h.
#include "test/support/api/device_test.h"
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

test_env env;
static const char *device_name;

const char *test_device_name(void) { return device_name; }
const char *test_place_name(void) { return test_on_cuda() ? "cuda" : strcmp(device_name, "sim") ? "cpu" : "sim"; }
bool test_on_cuda(void) { return !strncmp(device_name, "cuda", 4); }

// In a process of its own: once CUDA is initialised, the tests' processes could not use it.
static bool have_device(void) {
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        lfuser_context *c;
        lfuser_device *d;
        lfuser_status s = lfuser_context_create(NULL, &c);
        if (!s) s = lfuser_device_open(c, device_name, &d);
        if (s) printf("skipped: no device '%s': %s\n", device_name, lfuser_status_message(s));
        fflush(NULL);
        _exit(!s ? 0 : lfuser_status_code(s) == LFUSER_UNAVAILABLE ? 1 : 2);
    }
    int state = 0;
    if (waitpid(child, &state, 0) != child || !WIFEXITED(state) || WEXITSTATUS(state) > 1) {
        fprintf(stderr, "device '%s' could not be asked\n", device_name);
        exit(1);
    }
    return WEXITSTATUS(state) == 0;
}

int device_test_main(int argc, char **argv, Suite *(*make)(void)) {
    setenv("LFUSER_CACHE", "off", 0); // what is compiled is compiled anew
    device_name = getenv("LFUSER_TEST_DEVICE");
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--device=", 9))
            device_name = argv[i] + 9;
        else
            return fprintf(stderr, "usage: %s [--device=cpu|cuda|cuda:N|sim]\n", argv[0]), 2;
    }
    if (!device_name || !*device_name) device_name = "cpu";
    if (!have_device()) return 77;
    SRunner *runner = srunner_create(make());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

TCase *device_tcase(Suite *suite, const char *name, double timeout_s) {
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, env_setup, env_teardown);
    tcase_set_timeout(t, SLOW_BUILD ? 10 * timeout_s : timeout_s);
    suite_add_tcase(suite, t);
    return t;
}

static void print_log(void *self, lfuser_log_level level, const char *message) {
    (void)self;
    fprintf(stderr, "log %d: %s\n", (int)level, message);
}

void env_open(const lfuser_context_options *options) {
    ok(lfuser_context_create(options, &env.context));
    ok(lfuser_device_open(env.context, device_name, &env.device));
    ok(lfuser_stream_create(env.device, &env.stream));
    const char *ordinal = strchr(device_name, ':');
    env.place = (lfuser_dl_device){test_on_cuda()               ? 2
                                   : strcmp(device_name, "sim") ? 1
                                                                : 12,
                                   ordinal ? atoi(ordinal + 1) : 0};
}

void env_setup(void) {
    env_open(&(lfuser_context_options){
        .size = sizeof(lfuser_context_options), .log = print_log, .log_least = LFUSER_LOG_WARNING});
}

void env_teardown(void) {
    lfuser_stream_destroy(env.stream);
    lfuser_device_close(env.device);
    lfuser_context_destroy(env.context);
    env = (test_env){NULL};
}

// ---- statuses ------------------------------------------------------------------------------------------------------------------

void ok_at(lfuser_status s, const char *what, const char *file, int line) {
    if (s)
        ck_abort_msg("%s:%d: %s: %s: %s", file, line, what, lfuser_code_name(lfuser_status_code(s)),
                     lfuser_status_message(s));
}

void fails_at(lfuser_status s, lfuser_code code, const char *message, const char *file, int line) {
    char want[2048];
    size_t n = 0;
    for (const char *c = message; *c && n + 32 < sizeof want;) {
        if (!strncmp(c, "@device", 7)) {
            n += (size_t)snprintf(want + n, sizeof want - n, "%s:%d", test_place_name(), (int)env.place.ordinal);
            c += 7;
        } else {
            want[n++] = *c++;
        }
    }
    want[n] = 0;
    if (lfuser_status_code(s) != code || strcmp(lfuser_status_message(s), want) != 0)
        ck_abort_msg("%s:%d: expected\n  %s: %s\ngot\n  %s: %s", file, line, lfuser_code_name(code), want,
                     lfuser_code_name(lfuser_status_code(s)), lfuser_status_message(s));
    lfuser_status_destroy(s);
}

// ---- programs ------------------------------------------------------------------------------------------------------------------

lfuser_fusion *parse(const char *text) {
    lfuser_fusion *f;
    ok(lfuser_fusion_parse(env.context, "t.lf", text, strlen(text), NULL, &f));
    return f;
}

lfuser_executable *compile_for(lfuser_device *device, const char *text) {
    lfuser_fusion *f = parse(text);
    lfuser_executable *e;
    ok(lfuser_fusion_compile(f, device, NULL, &e));
    lfuser_fusion_destroy(f);
    return e;
}

lfuser_executable *compile(const char *text) { return compile_for(env.device, text); }

lfuser_stats stats(void) {
    lfuser_stats s = {.size = sizeof s};
    ok(lfuser_device_stats(env.device, &s));
    return s;
}

void synchronize(void) { ok(lfuser_stream_synchronize(env.stream)); }

lfuser_argument i64_argument(int64_t value) {
    return (lfuser_argument){.kind = LFUSER_SCALAR, .dtype = LFUSER_I64, .value = {.i64 = value}};
}
lfuser_argument f32_argument(float value) {
    return (lfuser_argument){.kind = LFUSER_SCALAR, .dtype = LFUSER_F32, .value = {.f32 = value}};
}
lfuser_argument tensor_argument(const lfuser_tensor *t) { return (lfuser_argument){.kind = LFUSER_TENSOR, .tensor = t}; }

// ---- gates ---------------------------------------------------------------------------------------------------------------------

static void wait_at(void *arg) {
    gate *g = arg;
    pthread_mutex_lock(&g->lock);
    g->reached = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

void block_stream(lfuser_stream *stream, gate *g) {
    ok(lfuser_stream_callback(stream, wait_at, g));
    pthread_mutex_lock(&g->lock);
    while (!g->reached) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    lfuser_status s = lfuser_stream_query(stream);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_NOT_READY);
    lfuser_status_destroy(s);
}

void open_gate(gate *g) {
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
