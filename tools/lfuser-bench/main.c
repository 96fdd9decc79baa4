// The command line. Exit status: 0; 1 when a result is wrong, or slower than that of --compare by more than 3 %; 2 for wrong usage.
#include "bench.h"
#include "workload_texts.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *device, *filter, *json, *compare, *peers, *plot, *program, *reference, *count, *cache, *file;
    char *shapes; // of --shape and --arg, as in workloads.def; owned
    lfuser_math math;
    bench_layout layout;
    int64_t scale; // 0: not given
    int runs;
    bool host, list;
} options;

static int usage(FILE *to, int status) {
    fprintf(
        to,
        "usage: lfuser-bench [--device=cpu|cuda[:N]] [--math=exact|fast] [--filter=TEXT] [--scale=N] [--runs=N]\n"
        "                    [--layout=dense|odd|pitch|permuted|expanded]\n"
        "                    [--program=FILE.lf] [--json=FILE] [--compare=OLD.json] [--peers=FILE.json] [--plot=FILE.svg]\n"
        "       lfuser-bench FILE.lf --shape NAME=8192/,1024 --arg NAME=VALUE ... [--reference=FILE.lf] [the same options]\n"
        "       lfuser-bench --host [--device=...] [--filter=TEXT] [--cache=FOLDER] [--json=FILE] | --host "
        "--count=NAME|list\n"
        "       lfuser-bench --list\n");
    fprintf(to,
            "\nWithout a file: the %zu workloads. Each is checked against f64; the caches are cleared before every run; the "
            "time is\n"
            "the median of --runs (30), by device events on a GPU. GB/s counts each input read once and each output written "
            "once;\n"
            "%% is of a copy of as many bytes, measured in the same run. 'regs' and 'local': the most registers and bytes "
            "of local\n"
            "memory (spills) of a kernel's thread.\n",
            bench_n_rows);
    fprintf(to,
            "--layout: how inputs lie in memory: an element beyond an aligned address, rows an element further apart than "
            "they are\n"
            "long, the first axis innermost, stride 0 along the first axis.\n"
            "--program: another text for the workloads that --filter leaves, under the same judge.\n"
            "--scale divides the extents that have a '/' behind them (default: 1 on a GPU and for a file, 16 on the CPU). A "
            "file's\n"
            "results are checked with those extents made small, against the reference evaluator (of another program with\n"
            "--reference). --shape labels=64/<1000: integers below 1000.\n"
            "--compare marks what became slower by more than 3 %%. FILE -: standard output. --peers: what others take, as\n"
            "{\"w\": {\"softmax4k.bf16\": {\"eager_ms\": 0.5, \"inductor_ms\": 0.16, \"xla_ms\": 0.09}}}.\n"
            "--host: what compiling, calling and new shapes cost on the host. --cache: a folder for compiled code: a second "
            "process\n"
            "with --filter=start then never opens LLVM. --count: for tools that count instructions (count.py).\n");
    return status;
}

static void add_shape(options *o, const char *text) {
    size_t before = o->shapes ? strlen(o->shapes) : 0, n = strlen(text);
    char *all = bench_alloc(before + n + 2);
    if (before) memcpy(all, o->shapes, before), all[before++] = ' ';
    memcpy(all + before, text, n + 1);
    free(o->shapes);
    o->shapes = all;
}

static char *read_text(const char *path) {
    FILE *f = fopen(path, "rb");
    size_t size = 0, room = 1 << 16;
    char *text = bench_alloc(room);
    if (!f) bench_die("cannot open %s", path);
    for (size_t n; (n = fread(text + size, 1, room - size - 1, f)) > 0;) {
        size += n;
        if (size + 1 < room) continue;
        char *grown = bench_alloc(room *= 2);
        memcpy(grown, text, size);
        free(text);
        text = grown;
    }
    if (ferror(f)) bench_die("cannot read %s", path);
    text[size] = 0;
    fclose(f);
    return text;
}

static FILE *open_output(const char *path) {
    FILE *f = strcmp(path, "-") ? fopen(path, "wb") : stdout;
    if (!f) bench_die("cannot write %s", path);
    return f;
}

static void close_output(FILE *f, const char *path) {
    if (fflush(f) || ferror(f) || (f != stdout && fclose(f))) bench_die("cannot write %s", path);
}

static const char *workload_text(const char *program) {
    for (size_t i = 0; i < sizeof workload_texts / sizeof *workload_texts; i++)
        if (!strcmp(workload_texts[i].name, program)) return workload_texts[i].text;
    bench_die("no program %s", program);
}

static int whole_number(const char *option, const char *text) {
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 1 || n > 1 << 20) bench_die("--%s=%s: a whole number from 1 on is needed", option, text);
    return (int)n;
}

static int read_options(int argc, char **argv, options *o) {
    static const struct option longs[] = {{"host", no_argument, NULL, 'h'},
                                          {"device", required_argument, NULL, 'd'},
                                          {"math", required_argument, NULL, 'm'},
                                          {"filter", required_argument, NULL, 'f'},
                                          {"layout", required_argument, NULL, 'L'},
                                          {"scale", required_argument, NULL, 's'},
                                          {"runs", required_argument, NULL, 'r'},
                                          {"json", required_argument, NULL, 'j'},
                                          {"compare", required_argument, NULL, 'c'},
                                          {"peers", required_argument, NULL, 'p'},
                                          {"plot", required_argument, NULL, 'o'},
                                          {"shape", required_argument, NULL, 'a'},
                                          {"arg", required_argument, NULL, 'a'},
                                          {"program", required_argument, NULL, 'P'},
                                          {"reference", required_argument, NULL, 'R'},
                                          {"count", required_argument, NULL, 'n'},
                                          {"list", no_argument, NULL, 'l'},
                                          {"cache", required_argument, NULL, 'C'},
                                          {"help", no_argument, NULL, '?' + 1},
                                          {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'h': o->host = true; break;
        case 'd': o->device = optarg; break;
        case 'm':
            if (strcmp(optarg, "exact") && strcmp(optarg, "fast")) bench_die("--math is exact or fast, not '%s'", optarg);
            o->math = strcmp(optarg, "fast") ? LFUSER_MATH_EXACT : LFUSER_MATH_FAST;
            break;
        case 'f': o->filter = optarg; break;
        case 'L':
            if (!bench_layout_named(optarg, &o->layout))
                bench_die("--layout is dense, odd, pitch, permuted or expanded, not '%s'", optarg);
            break;
        case 's': o->scale = whole_number("scale", optarg); break;
        case 'r': o->runs = whole_number("runs", optarg); break;
        case 'j': o->json = optarg; break;
        case 'c': o->compare = optarg; break;
        case 'p': o->peers = optarg; break;
        case 'o': o->plot = optarg; break;
        case 'a': add_shape(o, optarg); break;
        case 'P': o->program = optarg; break;
        case 'n': o->count = optarg; break;
        case 'C': o->cache = optarg; break;
        case 'R': o->reference = optarg; break;
        case 'l': o->list = true; break;
        case '?' + 1: exit(usage(stdout, 0));
        default: return usage(stderr, 2);
        }
    }
    if (optind < argc) o->file = argv[optind++];
    if (optind < argc || (o->shapes && !o->file) || (o->file && o->host)) return usage(stderr, 2);
    return 0;
}

static size_t choose_cases(const options *o, bench_case *cases) {
    size_t n = 0;
    if (o->file) {
        cases[0] = (bench_case){.name = o->file,
                                .text = read_text(o->file),
                                .shapes = o->shapes ? o->shapes : "",
                                .reference = o->reference ? read_text(o->reference) : NULL,
                                .judge = bench_judge_any,
                                .math = o->math,
                                .layout = o->layout};
        return 1;
    }
    for (size_t i = 0; i < bench_n_rows; i++) {
        const bench_row *row = &bench_rows[i];
        if (o->filter && !strstr(row->name, o->filter)) continue;
        cases[n++] = (bench_case){.name = row->name,
                                  .text = o->program ? read_text(o->program) : workload_text(row->program),
                                  .shapes = row->shapes,
                                  .judge = row->judge,
                                  .goal = o->layout != BENCH_DENSE      ? 0
                                          : o->math == LFUSER_MATH_FAST ? row->fast
                                                                        : row->exact,
                                  .math = o->math,
                                  .layout = o->layout};
    }
    if (!n) bench_die("no workload's name contains '%s'; --list names them", o->filter);
    return n;
}

// A program that nobody has written a judge for is checked on smaller shapes first, where the reference evaluator is quick enough.
static void run_any(bench_device *d, bench_case *c, const bench_report *r) {
    bench_case small = *c;
    int64_t scale = bench_check_scale(c->shapes, r->scale);
    if (scale)
        bench_case_run(d, &small, scale, 1);
    else
        snprintf(small.result.verdict.what, sizeof small.result.verdict.what,
                 "too large; mark extents that may be smaller: x=8192/,1024");
    c->judge = NULL;
    bench_case_run(d, c, r->scale, r->runs);
    bool unwritten = !c->result.verdict.ok;
    if (!unwritten) {
        c->result.verdict = small.result.verdict;
        c->result.verdict.ok |= !scale;
    }
    if (!scale || !c->result.verdict.ok || c->result.verdict.what[0]) return;
    if (scale > r->scale) printf("checked with '/' extents divided by %lld\n", (long long)scale);
}

static int run(const options *o) {
    bench_device d;
    bench_case *cases = bench_alloc((bench_n_rows + 1) * sizeof *cases);
    size_t n = choose_cases(o, cases), n_bad = 0;
    bench_report r = {
        .math = o->math == LFUSER_MATH_FAST ? "fast" : "exact", .layout = bench_layout_name(o->layout), .runs = o->runs};
    bool on_gpu = !strncmp(o->device, "cuda", 4);
    if (o->compare) r.old = read_text(o->compare);
    if (o->peers) r.peers = read_text(o->peers);
    r.scale = o->scale ? o->scale : on_gpu || o->file ? 1 : 16;
    FILE *json = o->json ? open_output(o->json) : NULL, *plot = o->plot ? open_output(o->plot) : NULL;
    bench_device_open(&d, o->device);
    r.device = lfuser_device_description(d.device);
    bench_must(lfuser_context_warm(d.context), "warming up");
    bench_report_head(&r);
    for (size_t i = 0; i < n; i++) {
        if (o->file)
            run_any(&d, &cases[i], &r);
        else
            bench_case_run(&d, &cases[i], r.scale, o->runs);
        n_bad += bench_report_case(&r, &cases[i]);
    }
    if (json) bench_report_json(&r, cases, n, json), close_output(json, o->json);
    if (plot) bench_report_plot(&r, cases, n, plot), close_output(plot, o->plot);
    bench_device_close(&d);
    free(cases);
    free(r.old);
    free(r.peers);
    return n_bad != 0;
}

int main(int argc, char **argv) {
    options o = {.device = "cpu", .runs = 30};
    int status = read_options(argc, argv, &o);
    if (status) return status;
    if (o.list) {
        for (size_t i = 0; i < bench_n_rows; i++) printf("%-20s %s\n", bench_rows[i].name, bench_rows[i].shapes);
        return 0;
    }
    if (o.host && o.count && !strcmp(o.count, "list")) return bench_count_names(), 0;
    if (o.host && o.count) return bench_count(o.count);
    if (o.host) {
        FILE *json = o.json ? open_output(o.json) : NULL;
        status = bench_host(o.device, o.filter, o.cache, json);
        if (json) close_output(json, o.json);
        return status;
    }
    status = run(&o);
    free(o.shapes);
    return status;
}
