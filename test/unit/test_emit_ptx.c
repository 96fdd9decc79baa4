// Every cell of the elementwise table as PTX, for each processor generation, exact and fast: LLVM must take it (it ends the
// process where it cannot), and ptxas must assemble it where there is one.
#include "test_emit_cells.h"
#include <sys/wait.h>
#include <unistd.h>

enum { PER_MODULE = 120 };

typedef struct setting {
    uint32_t sm;
    bool fast;
} setting;
static const setting settings[] = {{75, false}, {80, false}, {90, false}, {100, false}, {75, true}, {90, true}};

static const char *find_ptxas(void) {
    static char found[512];
    const char *path = getenv("PATH");
    for (const char *at = path; at && *at;) {
        size_t n = strcspn(at, ":");
        snprintf(found, sizeof found, "%.*s/ptxas", (int)n, at);
        if (access(found, X_OK) == 0) return found;
        at += n + (at[n] == ':');
    }
    snprintf(found, sizeof found, "/usr/local/cuda/bin/ptxas");
    return access(found, X_OK) == 0 ? found : NULL;
}

// Whether this ptxas knows the processor: an old one may not.
static int run_ptxas(const char *ptxas, uint32_t sm, const char *file) {
    char arch[32];
    snprintf(arch, sizeof arch, "-arch=sm_%u", sm);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        execl(ptxas, ptxas, arch, "-O0", file, "-o", "/dev/null", (char *)NULL);
        _exit(127);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void assemble(const char *ptxas, uint32_t sm, const char *text, size_t size) {
    char file[] = "/tmp/lf_emit_XXXXXX.ptx";
    int f = mkstemps(file, 4);
    ck_assert_int_ge(f, 0);
    ck_assert_int_eq(write(f, text, size), (ssize_t)size);
    close(f);
    int rc = run_ptxas(ptxas, sm, file);
    if (rc == 0) unlink(file);
    ck_assert_msg(rc == 0, "ptxas for sm_%u gives %d on %s", sm, rc, file);
}

static bool ptxas_knows(const char *ptxas, uint32_t sm) {
    char command[640];
    snprintf(command, sizeof command, "%s --help | grep -q sm_%u", ptxas, sm);
    return system(command) == 0;
}

START_TEST(every_cell_becomes_ptx) {
    const setting *s = &settings[_i];
    const char *ptxas = find_ptxas();
    if (ptxas && !ptxas_knows(ptxas, s->sm)) ptxas = NULL;
    cell *cells;
    size_t n = make_cells(&cells);
    lf_target t = {.kind = LF_TARGET_CUDA, .sm = s->sm};
    for (size_t i = 0; i < n; i += PER_MODULE) {
        lf_llvm *l = emit_module(cells, i, n - i < PER_MODULE ? n - i : PER_MODULE, &t, LF_LLVM_KERNEL, s->fast);
        char *text;
        size_t size;
        check_ok(lf_target_generate_text(l, &text, &size));
        // Subnormals are kept; fast mode approximates where what is flushed is lost in the result anyway.
        for (const char *at = text; (at = strstr(at, ".ftz")); at++)
            ck_assert_msg(s->fast && at - text >= 7 && !strncmp(at - 7, ".approx", 7), "%.60s", at - 20);
        if (ptxas) assemble(ptxas, s->sm, text, strlen(text));
        lf_free(l->allocator, text);
        lf_llvm_destroy(l);
    }
    free(cells);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("emit_ptx");
    TCase *all = tcase_create("cells");
    tcase_set_timeout(all, 1200);
    tcase_add_loop_test(all, every_cell_becomes_ptx, 0, sizeof settings / sizeof *settings);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
