// Differential fuzzing: random programs on devices against the interpreter.
//
// fuzz_graph [--devices=NAME,…] [--count=N] [--seconds=N] [--seed=S] [--jobs=N] [--only=SEED] [--keep=FOLDER] [--cases=FILE]
//            [--show] [--times]
//   N programs (default 1000) with the seeds S, S + 1, …, each once on every device (default cpu,sim) as it is, and in two drawn
//   variants (draw.c); --seconds stops earlier. Differences are shrunk and kept as FOLDER/SEED.lf (default fuzz-failures).
//   --cases=FILE: no runs, but conformance cases of small programs of exact ops, for test/reference/lf_ref.py to judge. --only=SEED:
//   that one, printed. --times: where each worker's compile time went.
// Workers are processes: a crash is a failure like others. Prints what was drawn, a line "summary: {…}" of JSON, then "N passed, N
// failed"; exit status 1 when any failed or a promised share was missed, 77 when there is no such device.
#include "test/fuzz/graph/graph.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHRINKING = 100, BATCH = 1000, MOST_FAILURES = 64, MOST_JOBS = 256 };

typedef struct desk {       // between workers and the parent
    uint64_t at[MOST_JOBS]; // seed that each worker is at
    uint64_t variant_at[MOST_JOBS];
    uint64_t failures, failed_seed[MOST_FAILURES], failed_variant[MOST_FAILURES];
    shares shares;
} desk;
static desk *table;
static uint64_t n_programs = 1000, first_seed = 1, seconds = 0, only = UINT64_MAX;
static unsigned n_jobs = 2;
static const char *devices = "cpu,sim", *keep = "fuzz-failures", *cases;
static bool show, times;

static void note_failure(uint64_t seed, unsigned k) {
    uint64_t n = __atomic_fetch_add(&table->failures, 1, __ATOMIC_RELAXED);
    if (n < MOST_FAILURES) table->failed_seed[n] = seed, table->failed_variant[n] = k;
}

static void run_seed(unsigned job, uint64_t seed) {
    program *p = malloc(sizeof *p);
    char what[2048];
    program_make(p, seed, false);
    if (p->n_outputs) count_program(p);
    for (unsigned k = 0; k < n_variants() && p->n_outputs; k++) {
        variant v = draw(seed, k);
        table->variant_at[job] = k;
        outcome r = run_variant(p, &v, what, sizeof what);
        count_run(&v, r);
        if (r != DIFFERS) continue;
        note_failure(seed, k);
        break;
    }
    program_finish(p);
    free(p);
}

// Seeds begin, begin + step, … in a process of its own. A crash ends it; the parent goes on behind that seed.
static pid_t start_worker(unsigned job, uint64_t begin, uint64_t step, uint64_t end, double until) {
    fflush(NULL);
    pid_t child = fork();
    if (child) return child;
    int status = machines_open(-1);
    if (status) fflush(NULL), _exit(status);
    uint64_t done = 0;
    for (uint64_t s = begin; s < end && done < BATCH; s += step, done++) {
        if (until > 0 && now_seconds() > until) s = end - step;
        __atomic_store_n(&table->at[job], s, __ATOMIC_RELAXED);
        alarm(120);
        run_seed(job, s);
    }
    if (times) print_stage_times();
    machines_close();
    exit(0); // leaks are looked for under sanitizers
}

static int run_jobs(double until) {
    pid_t workers[MOST_JOBS];
    uint64_t at[MOST_JOBS];
    unsigned running = 0;
    uint64_t end = first_seed + n_programs;
    for (unsigned j = 0; j < n_jobs; j++) {
        table->at[j] = at[j] = first_seed + j; // one that has nothing to do says where it stands too
        workers[j] = start_worker(j, at[j], n_jobs, end, until);
        running++;
    }
    while (running) {
        int status;
        pid_t ended = wait(&status);
        unsigned j = 0;
        while (j < n_jobs && workers[j] != ended) j++;
        if (j == n_jobs) continue;
        running--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return 77;
        bool crashed = !WIFEXITED(status) || WEXITSTATUS(status);
        if (crashed) {
            printf("seed %llu: worker ended with %s %d\n", (unsigned long long)table->at[j],
                   WIFEXITED(status) ? "status" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
            note_failure(table->at[j], (unsigned)table->variant_at[j]);
        }
        uint64_t next_seed = table->at[j] + n_jobs;
        if (next_seed < end && (until <= 0 || now_seconds() < until)) {
            workers[j] = start_worker(j, next_seed, n_jobs, end, until);
            running++;
        }
    }
    return 0;
}

static void explain(uint64_t seed, unsigned k) {
    program *p = malloc(sizeof *p);
    char what[2048], path[512], name[512];
    program_make(p, seed, false);
    variant v = draw(seed, k);
    outcome r = run_apart(p, &v, what, sizeof what);
    printf("seed %llu, variant %u (%s): %s\n", (unsigned long long)seed, k, variant_name(&v, name, sizeof name),
           r == DIFFERS ? what : "fine when run alone");
    fflush(stdout);
    if (r == DIFFERS) {
        shrink(p, &v);
        run_apart(p, &v, what, sizeof what);
        mkdir(keep, 0777);
        snprintf(path, sizeof path, "%s/%llu.lf", keep, (unsigned long long)seed);
        FILE *f = fopen(path, "w");
        if (f) {
            write_reproducer(p, &v, what, f);
            fclose(f);
        }
        bool used[MOST_VALUES];
        char *text = program_text(p, v.dialect, used);
        printf("%s\n%s-> %s\n", what, text, path);
        free(text);
    }
    program_finish(p);
    free(p);
}

// Each in a process of its own, as many at once as there are jobs: shrinking must not take the parent with it.
static void explain_all(uint64_t failures) {
    uint64_t running = 0;
    for (uint64_t i = 0; i < failures; i++) {
        fflush(NULL);
        if (running == n_jobs) wait(NULL), running--;
        pid_t child = fork();
        if (child == 0) { // no device here: what runs is a process of its own again
            shrink_until = now_seconds() + SHRINKING;
            explain(table->failed_seed[i], (unsigned)table->failed_variant[i]);
            fflush(NULL);
            _exit(0);
        }
        running += child > 0;
    }
    while (running-- && wait(NULL) > 0) {}
}

static void show_program(uint64_t seed) {
    program *p = malloc(sizeof *p);
    program_make(p, seed, cases != NULL);
    bool used[MOST_VALUES];
    char *text = p->n_outputs ? program_text(p, (dialect){false, false}, used) : NULL;
    printf("// seed %llu\n%s", (unsigned long long)seed, text ? text : "");
    free(text);
    program_finish(p);
    free(p);
}

static int make_cases(void) {
    FILE *to = fopen(cases, "w");
    uint64_t made = 0;
    if (!to || !machines_list("cpu")) return 2;
    for (uint64_t s = first_seed; s < first_seed + n_programs; s++) {
        program *p = malloc(sizeof *p);
        program_make(p, s, true);
        if (p->n_outputs && p->n_lines <= 12) made += write_case(p, to);
        program_finish(p);
        free(p);
    }
    fclose(to);
    printf("%llu cases\n", (unsigned long long)made);
    return 0;
}

static bool option(const char *arg, const char *name, const char **out_value) {
    size_t n = strlen(name);
    if (strncmp(arg, name, n) || arg[n] != '=') return false;
    *out_value = arg + n + 1;
    return true;
}

static int usage(const char *program_name) {
    fprintf(stderr,
            "usage: %s [--devices=NAME,...] [--count=N] [--seconds=N] [--seed=S] [--jobs=N] [--only=SEED] [--keep=FOLDER] "
            "[--cases=FILE] [--show] [--times]\n",
            program_name);
    return 2;
}

int main(int argc, char **argv) {
    const char *given, *asked = getenv("LFUSER_TEST_DEVICE");
    if (asked && *asked) devices = asked;
    for (int i = 1; i < argc; i++) {
        if (option(argv[i], "--device", &given) || option(argv[i], "--devices", &given))
            devices = given;
        else if (option(argv[i], "--programs", &given) || option(argv[i], "--count", &given))
            n_programs = strtoull(given, NULL, 10);
        else if (option(argv[i], "--seconds", &given))
            seconds = strtoull(given, NULL, 10);
        else if (option(argv[i], "--seed", &given))
            first_seed = strtoull(given, NULL, 10);
        else if (option(argv[i], "--jobs", &given))
            n_jobs = (unsigned)strtoul(given, NULL, 10);
        else if (option(argv[i], "--only", &given))
            only = strtoull(given, NULL, 10);
        else if (option(argv[i], "--keep", &given))
            keep = given;
        else if (option(argv[i], "--cases", &given))
            cases = given;
        else if (!strcmp(argv[i], "--times"))
            times = true;
        else if (!strcmp(argv[i], "--show"))
            show = true;
        else
            return usage(argv[0]);
    }
    if (n_jobs < 1 || n_jobs > MOST_JOBS) n_jobs = 1;
    if (!machines_list(devices)) return usage(argv[0]);
    if (show) {
        for (uint64_t s = first_seed; s < first_seed + n_programs; s++) show_program(s);
        return 0;
    }
    if (cases) return make_cases();
    table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) return 2;
    board = &table->shares;
    double begin = now_seconds();
    if (only != UINT64_MAX) first_seed = only, n_programs = 1, n_jobs = 1, show_program(only);
    int status = run_jobs(seconds ? begin + (double)seconds : 0);
    if (status) return status;
    double ran = now_seconds() - begin;
    uint64_t failures = table->failures < MOST_FAILURES ? table->failures : MOST_FAILURES;
    explain_all(failures);
    unsigned missed = print_shares(ran);
    print_summary(table->failures, ran);
    printf("%llu passed, %llu failed\n", (unsigned long long)(board->programs - table->failures),
           (unsigned long long)(table->failures + missed));
    return table->failures || missed;
}
