// See graph.h. A failure is cut down by trying: fewer options of the variant, one output, values that come in as parameters with
// the elements that the interpreter finds. Every attempt is a process of its own, since it may crash.
#include "test/fuzz/graph/graph.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// A child that came to an outcome exits with this and the outcome; a check of the tests' exits with a small number.
enum { ENDED = 100 };

outcome run_apart(const program *p, const variant *v, char *what, size_t room) {
    int ends[2];
    *what = 0;
    if (pipe(ends)) return SAME;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        if (machines_open((int)v->machine)) _exit(77);
        outcome r = run_variant(p, v, what, room);
        if (write(ends[1], what, strlen(what) + 1) < 0) _exit(99);
        _exit(ENDED + (int)r);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], what, room - 1);
    what[n > 0 ? n : 0] = 0;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return SAME;
    if (WIFEXITED(status) && WEXITSTATUS(status) >= ENDED) return (outcome)(WEXITSTATUS(status) - ENDED);
    if (WIFEXITED(status))
        snprintf(what, room, "the process ended with status %d", WEXITSTATUS(status));
    else
        snprintf(what, room, "the process ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return DIFFERS;
}

double shrink_until;

double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool still_fails(const program *p, const variant *v) {
    if (shrink_until > 0 && now_seconds() > shrink_until) return false;
    char what[1024];
    return run_apart(p, v, what, sizeof what) == DIFFERS;
}

static unsigned first_of_device(unsigned m) {
    while (m > 0 && machines[m - 1].number == machines[m].number) m--;
    return m;
}

static void simplify_variant(const program *p, variant *v) {
    for (int k = 0; k < 8 + LF_DEBUG_COUNT; k++) {
        variant less = *v;
        switch (k) {
        case 0: less.layouts = 0; break;
        case 1: less.given = false; break;
        case 2: less.prepare = false; break;
        case 3: less.machine = first_of_device(v->machine); break;
        case 4: less.dialect.symbolic = false; break;
        case 5: less.dialect.all = false; break;
        case 6: less.never_wait = false; break;
        case 7: less.fast = false; break;
        default: less.debug &= ~(1u << (k - 8)); break;
        }
        if (memcmp(&less, v, sizeof less) != 0 && still_fails(p, &less)) *v = less;
    }
}

static void one_output(program *p, const variant *v) {
    int outputs[MOST_OUTPUTS], into[MOST_OUTPUTS], n = p->n_outputs;
    memcpy(outputs, p->outputs, sizeof outputs);
    memcpy(into, p->into, sizeof into);
    // The earliest value that fails alone, as an output of its own; then the program's outputs.
    for (int i = 0; i < p->n_values; i++) {
        if (p->values[i].line < 0) continue;
        p->n_outputs = 1, p->outputs[0] = i, p->into[0] = -1;
        if (still_fails(p, v)) return;
    }
    for (int i = 0; i < n; i++) {
        p->n_outputs = 1, p->outputs[0] = outputs[i], p->into[0] = into[i];
        if (still_fails(p, v)) return;
    }
    p->n_outputs = n;
    memcpy(p->outputs, outputs, sizeof outputs);
    memcpy(p->into, into, sizeof into);
    for (int i = n - 1; i >= 0 && p->n_outputs > 1; i--) { // several are needed: drop what is not
        program less = *p;
        less.n_outputs--;
        memmove(less.outputs + i, less.outputs + i + 1, (size_t)(less.n_outputs - i) * sizeof(int));
        memmove(less.into + i, less.into + i + 1, (size_t)(less.n_outputs - i) * sizeof(int));
        if (still_fails(&less, v)) *p = less;
    }
}

// A value becomes a parameter with known elements.
static void cut_values(program *p, const variant *v) {
    void *data[MOST_VALUES];
    bool known = interpret_all(p, data);
    for (int i = p->n_values - 1; i >= 0 && known; i--) {
        bool used[MOST_VALUES];
        free(program_text(p, v->dialect, used));
        value *x = &p->values[i];
        if (x->line >= 0 && p->lines[x->line].n > 1) continue; // the other result would be defined twice
        if (x->line < 0 || !used[i] || !data[i] || x->pending || (x->tensor && x->host) || i == p->outputs[0]) continue;
        value before = *x;
        x->line = -1;
        x->data = data[i];
        x->layout = LAYOUT_DENSE;
        if (still_fails(p, v)) {
            data[i] = NULL;
            continue;
        }
        *x = before;
    }
    for (int i = 0; i < MOST_VALUES; i++) free(data[i]);
}

void shrink(program *p, variant *v) {
    simplify_variant(p, v);
    one_output(p, v);
    cut_values(p, v);
    simplify_variant(p, v);
}

// ---- reproducers -------------------------------------------------------------------------------------------------------------------

void write_reproducer(const program *p, const variant *v, const char *what, FILE *to) {
    char name[512];
    bool used[MOST_VALUES];
    char *text = program_text(p, v->dialect, used);
    fprintf(to, "// fuzz_graph --only=%llu, variant: %s\n// %.900s\n//\n", (unsigned long long)p->seed,
            variant_name(v, name, sizeof name), what);
    for (int i = 0; i < p->n_values; i++) {
        if (!used[i] || p->values[i].line >= 0) continue;
        void *data = parameter_data(&p->values[i]);
        const value *x = &p->values[i];
        int64_t n = 1;
        for (unsigned a = 0; a < x->rank; a++) n *= x->shape[a];
        unsigned bytes = lf_dtype_bytes(x->dtype);
        fprintf(to, "// %s: %s[", x->name, lf_dtype_name(x->dtype));
        for (unsigned a = 0; a < x->rank; a++) fprintf(to, "%s%lld", a ? ", " : "", (long long)x->shape[a]);
        fprintf(to, "] layout %u =", (unsigned)x->layout);
        for (int64_t k = 0; k < n; k++) {
            lf_scalar s = {{0}};
            memcpy(&s, (const char *)data + k * bytes, bytes);
            char number[96];
            lf_scalar_print(number, sizeof number, x->dtype, &s);
            fprintf(to, "%s%s (%llx%s%llx)", k ? ", " : " ", number, (unsigned long long)s.word[0], bytes > 8 ? "," : "/",
                    (unsigned long long)s.word[1]);
        }
        fprintf(to, "\n");
        free(data);
    }
    fprintf(to, "%s", text);
    free(text);
}
