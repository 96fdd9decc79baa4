// lfuser-run: the command line. Exit status: 0, 1 for a diagnosed program or run, 2 for wrong usage.
#include "run.h"
#include "tools/common/npy.h"
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static int usage(FILE *to, int status) {
    fputs("usage: lfuser-run FILE|- [--device=cpu|cuda[:N]|sim] [--fusion=NAME] [--math=exact|fast] [--arg NAME=VALUE]...\n"
          "                  [--out NAME=FILE.npy]... [--json] [--stats] [--allow-sync]\n"
          "\n"
          "VALUE, typed by the parameter that it is for:\n"
          "  8  -0x1p-3  inf  nan  true  1+2j   a scalar\n"
          "  [[1, 2], [3, 4]]                   a tensor, element by element\n"
          "  @file.npy                          a tensor from a NumPy file (- for standard input)\n"
          "  iota(8,6)                          0, 1, 2, ... in row-major order\n"
          "  rand(8,6)  rand(8,6;SEED)          floats in [0, 1), integers in [0, 100), always the same for a SEED\n"
          "  full(8,6;1.5)  full(;1.5)          one value everywhere; no extents: rank 0\n"
          "\n"
          "--out writes an output to a .npy file; NAME may be its number, from 0. --json prints one line of JSON.\n"
          "--allow-sync: the run may wait for scalars of the device (an extent that comes from one).\n",
          to);
    return status;
}

static int wrong(const char *message, const char *word, size_t length) {
    fprintf(stderr, "lfuser-run: %s '%.*s'\n", message, (int)length, word);
    return usage(stderr, 2);
}

// NAME=VALUE behind the pairs so far; 0, or the exit status.
static int add_pair(lf_pair *pairs, size_t *n, const char *option, char *text) {
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1]) {
        fprintf(stderr, "lfuser-run: %s wants NAME=%s, got '%s'\n", option, strcmp(option, "--arg") ? "FILE.npy" : "VALUE",
                text);
        return usage(stderr, 2);
    }
    if (*text == '%') text++; // as in the program
    size_t length = (size_t)(equals - text);
    for (size_t i = 0; i < *n; i++)
        if (pairs[i].name_length == length && !memcmp(pairs[i].name, text, length)) {
            fprintf(stderr, "lfuser-run: %s %.*s is given twice: %s, %s\n", option, (int)length, text, pairs[i].value,
                    equals + 1);
            return 2;
        }
    pairs[(*n)++] = (lf_pair){.name = text, .name_length = length, .value = equals + 1};
    return 0;
}

static bool is_device(const char *name) {
    if (!strcmp(name, "cpu") || !strcmp(name, "cuda") || !strcmp(name, "sim")) return true;
    return !strncmp(name, "cuda:", 5) && name[5] && strspn(name + 5, "0123456789") == strlen(name + 5);
}

// 0, or the exit status; -1: help was asked for.
static int read_options(int argc, char **argv, lf_options *o) {
    static const struct option longs[] = {{"device", required_argument, NULL, 'd'}, {"fusion", required_argument, NULL, 'f'},
                                          {"math", required_argument, NULL, 'm'},   {"arg", required_argument, NULL, 'a'},
                                          {"out", required_argument, NULL, 'o'},    {"json", no_argument, NULL, 'j'},
                                          {"stats", no_argument, NULL, 's'},        {"allow-sync", no_argument, NULL, 'w'},
                                          {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    int status = 0;
    for (int c; !status && (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        switch (c) {
        case 'd':
            o->device = optarg;
            if (!is_device(optarg)) status = wrong("--device is cpu, cuda, cuda:N or sim, not", optarg, strlen(optarg));
            break;
        case 'f': o->fusion = optarg + (*optarg == '@'); break;
        case 'm':
            if (strcmp(optarg, "exact") && strcmp(optarg, "fast"))
                status = wrong("--math is exact or fast, not", optarg, strlen(optarg));
            o->math = strcmp(optarg, "fast") ? LFUSER_MATH_EXACT : LFUSER_MATH_FAST;
            break;
        case 'a': status = add_pair(o->args, &o->n_args, "--arg", optarg); break;
        case 'o': status = add_pair(o->outs, &o->n_outs, "--out", optarg); break;
        case 'j': o->json = true; break;
        case 's': o->stats = true; break;
        case 'w': o->sync = LFUSER_ALLOW_SYNC; break;
        case 'h': usage(stdout, 0); return -1;
        default: status = usage(stderr, 2); break;
        }
    }
    if (status) return status;
    if (optind + 1 != argc) {
        if (optind < argc) return wrong("more than one FILE:", argv[optind + 1], strlen(argv[optind + 1]));
        fputs("lfuser-run: no FILE is given\n", stderr);
        return usage(stderr, 2);
    }
    o->file = argv[optind];
    return 0;
}

static int fail(lf_status s) {
    fprintf(stderr, "lfuser-run: %s\n", lf_status_message(s));
    lf_status_destroy(s);
    return 1;
}

static lf_status write_outs(const lf_allocator *a, const lf_options *o, const lf_session *session) {
    for (size_t i = 0; i < o->n_outs; i++) {
        const lf_pair *out = &o->outs[i];
        const lf_array *array = &session->results[out->index].array;
        LF_TRY(lf_npy_write(a, out->value, array->dtype, array->rank, array->shape, array->data));
        if (array->dtype == LF_BF16)
            fprintf(stderr, "lfuser-run: note: %s holds the bits of bf16 as u2; .npy has no bf16\n", out->value);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const lf_allocator *a = &lf_system_allocator;
    lf_options o = {.device = "cpu"};
    o.args = lf_alloc_zero(a, 2 * (size_t)argc * sizeof *o.args);
    if (!o.args) return fail(lf_out_of_memory());
    o.outs = o.args + argc;
    int status = read_options(argc, argv, &o);
    char *text = NULL;
    size_t size = 0;
    lf_session session = {0};
    if (!status) {
        lf_status s = lf_read_file(a, o.file, &text, &size);
        if (!s) s = lf_session_run(a, &o, text, size, &session);
        if (!s) s = write_outs(a, &o, &session);
        if (s) status = fail(s);
    }
    if (!status) {
        if (o.json)
            lf_show_json(&session);
        else
            lf_show_text(&session, o.stats);
        if (session.late) status = fail(session.late), session.late = NULL;
        if (fflush(stdout) || ferror(stdout)) perror("lfuser-run: standard output"), status = 1;
    }
    lf_session_finish(a, &session);
    lf_free(a, text);
    lf_free(a, o.args);
    return status < 0 ? 0 : status;
}
