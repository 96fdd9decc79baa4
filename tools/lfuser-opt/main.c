// lfuser-opt: shows a program at any stage, from text to assembly. Exit status: 0, 1 for a diagnosed program, 2 for wrong usage.
#include "tools/common/output.h"
#include <errno.h>
#include <getopt.h>
#include <lfuser/lfuser.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct stage {
    const char *name;
    lfuser_stage stage;
    const char *what;
} stages[] = {
    {"fusion", LFUSER_STAGE_FUSION, "the program, normalised"},
    {"graph", LFUSER_STAGE_GRAPH, "every op as meant, implicit ones too"},
    {"partition", LFUSER_STAGE_PARTITION, "where every value lives and why; what each kernel holds"},
    {"program", LFUSER_STAGE_PROGRAM, "frame slots, checks and launches"},
    {"kernels", LFUSER_STAGE_KERNELS, "loop IR"},
    {"host-ir", LFUSER_STAGE_HOST_IR, "LLVM IR of the host code"},
    {"host-asm", LFUSER_STAGE_HOST_ASM, "assembly of the host code"},
    {"device-ir", LFUSER_STAGE_DEVICE_IR, "LLVM IR of the kernels"},
    {"ptx", LFUSER_STAGE_DEVICE_ASM, "PTX of the kernels (target cuda:sm_90 unless given)"},
    {"cpu-asm", LFUSER_STAGE_DEVICE_ASM, "x86 assembly of the kernels"},
};
enum { N_STAGES = sizeof stages / sizeof *stages };

// The exit status: another one than `status` when the output could not be written.
static int close_output(FILE *to, const char *path, int status) {
    if (lf_output_close(to, path, !status)) return status;
    fprintf(stderr, "lfuser-opt: cannot write ");
    perror(path ? path : "standard output");
    return 1;
}

static int usage(FILE *to, int status) {
    fprintf(to,
            "usage: lfuser-opt FILE|- [--emit=STAGE] [--target=cpu[:x86-64-v3]|cuda:sm_NN] [--math=exact|fast] [--class=N]\n"
            "                  [--fusion=NAME] [--allow-sync] [-o FILE] [--time-passes]\n\nSTAGE (default fusion):\n");
    for (int i = 0; i < N_STAGES; i++) fprintf(to, "  %-10s %s\n", stages[i].name, stages[i].what);
    fprintf(to, "\n       lfuser-opt --cache-stats|--cache-clear: compiled code that is kept in files\n");
    fprintf(to,
            "\n--class: 0, the code for contiguous tensors with 32-bit indices (default), or 1, the code for any strides\n"
            "--allow-sync: the host may wait for scalars of the device (an extent that comes from one)\n"
            "--time-passes: where the time of compiling went, on standard error; without --emit, of compiling the program "
            "for the CPU\n"
            "(or to PTX) as a run does\n");
    return status;
}

// What is in the cache of compiled code, whoever put it there.
static int cache_command(bool clear) {
    lfuser_context *context;
    lfuser_cache_stats stats = {.size = sizeof stats};
    lfuser_status s = lfuser_context_create(NULL, &context);
    if (!s && clear) lfuser_context_cache_clear(context);
    if (!s) s = lfuser_context_cache_stats(context, &stats);
    if (!s && stats.directory)
        printf("%s: %" PRIu64 " entries, %" PRIu64 " bytes of at most %" PRIu64 "\n", stats.directory, stats.entries,
               stats.bytes, stats.limit_bytes);
    else if (!s)
        printf("no cache folder: $LFUSER_CACHE is \"off\", or neither $XDG_CACHE_HOME nor $HOME is set\n");
    if (s) fprintf(stderr, "%s\n", lfuser_status_message(s));
    int status = s ? 1 : 0;
    lfuser_status_destroy(s);
    lfuser_context_destroy(context);
    return status;
}

// NULL: errno says why.
static char *read_all(FILE *from, size_t *out_size) {
    size_t size = 0, room = 1 << 16;
    char *data = malloc(room);
    while (data) {
        size += fread(data + size, 1, room - size, from);
        if (size < room) break;
        char *grown = realloc(data, room *= 2);
        if (!grown) free(data);
        data = grown;
    }
    if (data && ferror(from)) {
        int error = errno;
        free(data);
        data = NULL;
        errno = error;
    }
    *out_size = size;
    return data;
}

static int fail(lfuser_status s) {
    fprintf(stderr, "%s\n", lfuser_status_message(s));
    lfuser_status_destroy(s);
    return 1;
}

typedef struct options {
    const char *file, *target, *fusion, *output;
    const struct stage *stage;
    lfuser_math math;
    uint32_t n_class;
    bool allow_sync;
    bool times;
} options;

static void show_times(lfuser_context *context) {
    uint64_t all = 0;
    fprintf(stderr, "%-24s %6s %10s\n", "stage", "times", "ms");
    for (size_t i = 0; i < lfuser_context_n_stage_times(); i++) {
        lfuser_stage_time t = {.size = sizeof t};
        lfuser_status s = lfuser_context_stage_time(context, i, &t);
        lfuser_status_destroy(s);
        if (s || !t.times) continue;
        fprintf(stderr, "%-24s %6llu %10.3f\n", t.name, (unsigned long long)t.times, (double)t.ns * 1e-6);
        all += t.ns;
    }
    fprintf(stderr, "%-24s %6s %10.3f\n", "all", "", (double)all * 1e-6);
}

// The host code and every kernel class that contiguous tensors need, loaded.
static lfuser_status compile_for_cpu(lfuser_context *context, lfuser_fusion *fusion, const options *o) {
    lfuser_compile_options how = {
        .size = sizeof how, .math = o->math, .sync = o->allow_sync ? LFUSER_ALLOW_SYNC : LFUSER_NO_SYNC};
    lfuser_device *device = NULL;
    lfuser_executable *executable = NULL;
    lfuser_status s = lfuser_device_open(context, "cpu", &device);
    if (!s) s = lfuser_fusion_compile(fusion, device, &how, &executable);
    if (!s) s = lfuser_executable_prepare(executable);
    lfuser_executable_destroy(executable);
    lfuser_device_close(device);
    return s;
}

static int run(lfuser_context *context, const options *o, const char *text, size_t size, FILE *to) {
    lfuser_fusion *fusion;
    lfuser_status s =
        lfuser_fusion_parse(context, strcmp(o->file, "-") ? o->file : "<stdin>", text, size, o->fusion, &fusion);
    if (s) return fail(s);
    const char *target = o->target ? o->target : !o->stage || strcmp(o->stage->name, "ptx") ? "cpu" : "cuda:sm_90";
    bool whole = o->times && !o->stage, on_cpu = whole && (!o->target || !strcmp(o->target, "cpu"));
    lfuser_stage stage = whole ? LFUSER_STAGE_DEVICE_ASM : o->stage ? o->stage->stage : LFUSER_STAGE_FUSION;
    char *printed = NULL;
    if (!o->allow_sync) s = lfuser_fusion_check_no_sync(fusion);
    if (!s)
        s = on_cpu ? compile_for_cpu(context, fusion, o)
                   : lfuser_fusion_print(fusion, stage, target, o->math, o->n_class, &printed);
    int status = s ? fail(s) : 0;
    if (!status && !whole) fputs(printed, to); // what fails stays with the file until it is closed
    if (o->times) show_times(context);
    lfuser_free(context, printed);
    lfuser_fusion_destroy(fusion);
    return status;
}

int main(int argc, char **argv) {
    static const struct option longs[] = {{"emit", required_argument, NULL, 'e'},
                                          {"target", required_argument, NULL, 't'},
                                          {"math", required_argument, NULL, 'm'},
                                          {"class", required_argument, NULL, 'c'},
                                          {"fusion", required_argument, NULL, 'f'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"allow-sync", no_argument, NULL, 's'},
                                          {"time-passes", no_argument, NULL, 'p'},
                                          {"cache-stats", no_argument, NULL, 'S'},
                                          {"cache-clear", no_argument, NULL, 'C'},
                                          {NULL, 0, NULL, 0}};
    options o = {NULL};
    for (int c; (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        switch (c) {
        case 'e':
            o.stage = NULL;
            for (int i = 0; i < N_STAGES; i++)
                if (!strcmp(stages[i].name, optarg)) o.stage = &stages[i];
            if (!o.stage) return fprintf(stderr, "lfuser-opt: unknown stage '%s'\n", optarg), usage(stderr, 2);
            break;
        case 't': o.target = optarg; break;
        case 'm':
            if (strcmp(optarg, "exact") && strcmp(optarg, "fast"))
                return fprintf(stderr, "lfuser-opt: --math is exact or fast, not '%s'\n", optarg), 2;
            o.math = strcmp(optarg, "fast") ? LFUSER_MATH_EXACT : LFUSER_MATH_FAST;
            break;
        case 'c': o.n_class = (uint32_t)strtoul(optarg, NULL, 10); break;
        case 'f': o.fusion = optarg; break;
        case 's': o.allow_sync = true; break;
        case 'p': o.times = true; break;
        case 'o': o.output = optarg; break;
        case 'S': return close_output(stdout, NULL, cache_command(false));
        case 'C': return close_output(stdout, NULL, cache_command(true));
        case 'h': return close_output(stdout, NULL, usage(stdout, 0));
        default: return usage(stderr, 2);
        }
    }
    if (optind + 1 != argc) return usage(stderr, 2);
    o.file = argv[optind];
    FILE *in = strcmp(o.file, "-") ? fopen(o.file, "rb") : stdin;
    if (!in) return fprintf(stderr, "lfuser-opt: cannot open "), perror(o.file), 1;
    size_t size;
    char *text = read_all(in, &size);
    if (!text) fprintf(stderr, "lfuser-opt: cannot read "), perror(o.file);
    if (in != stdin) fclose(in);
    if (!text) return 1;
    FILE *to = lf_output_open(o.output);
    if (!to) return fprintf(stderr, "lfuser-opt: cannot write "), perror(o.output), free(text), 1;
    lfuser_context *context;
    lfuser_context_options how = {.size = sizeof how, .cache_directory = o.times ? "" : NULL}; // what is timed is done
    lfuser_status s = lfuser_context_create(&how, &context);
    int status = s ? fail(s) : run(context, &o, text, size, to);
    lfuser_context_destroy(context);
    free(text);
    return close_output(to, o.output, status);
}
