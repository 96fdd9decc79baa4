// The CPU's kernels at each x86 level against the interpreter: the same bits from plain x86-64 (where fma is a call), v3, v4 and this
// very machine, as far as it runs them; from vector body and scalar tail (1 to 67 elements, at odd addresses), and from the code for
// any strides.
//
// levels [--only=NAME,…]        prints a line a level and dtype, then "N passed, N failed"
#include "codegen/codegen.h"
#include "ir/build.h"
#include "parse/parse.h"
#include "test/exhaustive/exhaustive.h"
#include <lfuser/launch_abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4096, MOST = 67, GROUP = MAX_OUTPUTS, MOST_ACCESSES = 16 };

// Beside the unary ops: rows whose code differs by level most, on two or three operands.
static const char *const more[] = {"add %a, %b",
                                   "sub %a, %b",
                                   "mul %a, %b",
                                   "div %a, %b",
                                   "floordiv %a, %b",
                                   "mod %a, %b",
                                   "fmod %a, %b",
                                   "pow %a, %b",
                                   "atan2 %a, %b",
                                   "hypot %a, %b",
                                   "min %a, %b",
                                   "max %a, %b",
                                   "fmin %a, %b",
                                   "fmax %a, %b",
                                   "fma %a, %b, %a",
                                   "lerp %a, %b, %a",
                                   "copysign %a, %b",
                                   "nextafter %a, %b",
                                   "addcmul %a, %b, %a, %b",
                                   "clamp %a, %b, none",
                                   "ldexp %a, %b",
                                   "lt %a, %b",
                                   "threshold %a, %b, %a",
                                   "eq %a, %b"};
static const char *const integers[] = {"add %a, %b", "mul %a, %b",  "floordiv %a, %b", "truncdiv %a, %b", "ceildiv %a, %b",
                                       "mod %a, %b", "fmod %a, %b", "pow %a, %b",      "gcd %a, %b",      "shl %a, %b",
                                       "shr %a, %b", "lshr %a, %b", "min %a, %b",      "max %a, %b",      "and %a, %b",
                                       "xor %a, %b", "abs %a",      "neg %a",          "sign %a",         "lt %a, %b"};

typedef struct level {
    const char *name, *cpu;
    bool runs;
} level;

typedef struct group {
    lf_graph *graph;
    lf_program *program;
    lf_interp_result *want;
    lfuser_dtype in;
    char *text, *a, *b;
} group;

static void check_status(lf_status s, const char *text) {
    if (!s) return;
    fprintf(stderr, "%s\n%s\n", lf_status_message(s), text);
    exit(1);
}

static void group_open(group *g, lfuser_dtype d, const char *const *statements, size_t n) {
    *g = (group){.in = d, .text = malloc(256 + 128 * n), .a = malloc(N * 16), .b = malloc(N * 16)};
    size_t at =
        (size_t)sprintf(g->text, "fusion @t(%%a: %s[%%n], %%b: %s[%%n]) {\n", lfuser_dtype_name(d), lfuser_dtype_name(d));
    for (size_t i = 0; i < n; i++) at += (size_t)sprintf(g->text + at, "  %%r%zu = %s\n", i, statements[i]);
    for (size_t i = 0; i < n; i++) at += (size_t)sprintf(g->text + at, "%s%%r%zu", i ? ", " : "  return ", i);
    sprintf(g->text + at, "\n}\n");
    lf_graph **graphs;
    size_t count;
    check_status(lf_parse(&lf_system_allocator, "t.lf", g->text, strlen(g->text), false, &graphs, &count), g->text);
    g->graph = graphs[0];
    graphs[0] = NULL;
    lf_parse_release(&lf_system_allocator, graphs, count);
    size_t bytes = lfuser_dtype_bytes(d);
    for (uint64_t i = 0; i < N; i++) {
        // Half edges in turn, half of all there is.
        uint64_t spread = bytes == 2 ? i * 16 + i % 16 : d == LFUSER_F32 ? i << 20 | (i * 2654435761u & 0xfffff) : i;
        input_element(d, spread, 1, g->a + i * bytes);
        input_element(d,
                      bytes == 2        ? (i * 40503) & 0xffff
                      : d == LFUSER_F32 ? (i * 2654435761u) & 0xffffffff
                                        : (i * 37) % 2000,
                      1, g->b + i * bytes);
    }
    lf_array arrays[2] = {{.dtype = (lf_dtype)d, .tensor = true, .rank = 1, .shape = {N}, .strides = {1}, .data = g->a}};
    arrays[1] = arrays[0];
    arrays[1].data = g->b;
    check_status(lf_interp_run(g->graph, arrays, 2, &lf_system_allocator, &g->want), g->text);
    check_status(lf_program_create(g->graph, 0, false, &g->program), g->text); // adds ops that the interpreter does not know
}

static void group_close(group *g) {
    lf_interp_result_destroy(g->want);
    lf_program_destroy(g->program);
    lf_graph_destroy(g->graph);
    free(g->text);
    free(g->a);
    free(g->b);
}

// Where an access of the launch reads or writes: loads are of a and b, in the order of the program's slots.
typedef struct place {
    const char *from; // operand, or NULL: output number `output`
    size_t output;
} place;

// The host code's bind would fill the argument block; for one axis it is plain enough to do here. Which access is which follows from
// the slots that it would read the addresses from.
static bool places_of(const group *g, lf_codegen *c, const lf_codegen_table *table, place *out_places) {
    const lfuser_abi_program *abi = &g->program->abi;
    const lfuser_abi_launch *l = &abi->launches[0];
    lf_object host;
    if (l->rows != 1 || l->cols || abi->n_launches != 1 || l->n_accesses > MOST_ACCESSES) return false;
    check_status(table->host(c, g->program, &host), g->text);
    uint64_t *slots = calloc(abi->n_slots + 1, sizeof *slots);
    for (uint32_t i = 0; i < 2; i++) {
        slots[abi->params[i].slot] = i + 1;
        slots[abi->params[i].slot + 1] = N;
        slots[abi->params[i].slot + 2] = 1;
    }
    bool right = host.infer(slots) < 0;
    for (uint32_t k = 0; k < abi->n_outputs; k++) {
        slots[abi->outputs[k].slot] = 100 + k;
        slots[abi->outputs[k].slot + 2] = 1;
    }
    if (right) host.bind(slots);
    for (uint32_t i = 0; i < l->n_accesses && right; i++) {
        uint64_t address = slots[l->args_slot + l->accesses[i].word];
        out_places[i] = address == 1   ? (place){g->a, 0}
                        : address == 2 ? (place){g->b, 0}
                                       : (place){NULL, (size_t)(address - 100)};
    }
    free(slots);
    table->release(c, &host);
    return right;
}

// All windows of 1 to 67 elements, from every address modulo 8 elements.
static uint64_t run_windows(const group *g, const lfuser_abi_launch *l, const place *places, const lf_object *code,
                            uint64_t *results) {
    uint64_t args[64] = {0}, differing = 0;
    static _Alignas(64) unsigned char out[GROUP][(MOST + 16) * 16];
    size_t in = lfuser_dtype_bytes(g->in);
    for (size_t first = 0, n = 1; first + MOST < N; first += n, n = n % MOST + 1) {
        size_t off = (first / 7) % 8;
        for (size_t k = 0; k < g->want->n_outputs; k++) memset(out[k], 0xa5, sizeof out[k]);
        for (uint32_t i = 0; i < l->n_accesses; i++) {
            size_t size = l->accesses[i].bytes;
            args[l->accesses[i].word] =
                (uint64_t)(uintptr_t)(places[i].from ? places[i].from + first * in
                                                     : (const char *)out[places[i].output] + off * size);
            args[l->accesses[i].word + 1] = 1;
        }
        args[l->extents_word] = n;
        ((void (*)(const uint64_t *, uint64_t, uint64_t))(uintptr_t)code->address)(args, 0, n);
        for (size_t k = 0; k < g->want->n_outputs; k++) {
            lfuser_dtype d = (lfuser_dtype)g->want->outputs[k].dtype;
            size_t size = lfuser_dtype_bytes(d);
            *results += n;
            differing += count_differing(d, out[k] + off * size, (char *)g->want->outputs[k].data + first * size, n);
            for (size_t i = 0; i < sizeof out[k]; i++)
                differing += (i < off * size || i >= (off + n) * size) && out[k][i] != 0xa5;
        }
    }
    return differing;
}

typedef struct totals {
    uint64_t results, differing;
} totals;

static void run_group(const lf_codegen_table *table, lf_codegen *c, const level *levels, size_t n_levels, const group *g,
                      totals *sums) {
    place places[MOST_ACCESSES];
    if (!places_of(g, c, table, places)) {
        fprintf(stderr, "not one pointwise kernel:\n%s", g->text);
        failed++;
        return;
    }
    const lfuser_abi_launch *l = &g->program->abi.launches[0];
    for (size_t i = 0; i < n_levels; i++) {
        lf_target target = {.kind = LF_TARGET_CPU};
        snprintf(target.cpu, sizeof target.cpu, "%s", levels[i].cpu);
        for (int general = 0; general < 2; general++) {
            lfuser_abi_class class_ = {.rows = 1, .vector = general ? 1 : 8, .wide = (uint8_t)general};
            lf_object code;
            check_status(
                table->kernel(c, g->program->kernels[l->kernel], &target, class_, &(lf_codegen_options){false}, &code),
                g->text);
            uint64_t differing = levels[i].runs ? run_windows(g, l, places, &code, &sums[i].results) : 0;
            if (differing)
                printf("%s, %s code: %llu results differ\n%s", levels[i].name, general ? "general" : "vector",
                       (unsigned long long)differing, g->text);
            sums[i].differing += differing;
            table->release(c, &code);
        }
    }
}

static size_t statements_of(lfuser_dtype d, const options *o, const char **out) {
    static const char *const casts[] = {
#define LF_DTYPE(ID, name, category, bytes, part) "cast %a, dtype=" #name,
#include "ir/dtypes.def"
    };
    size_t n = 0;
    bool is_float = d >= LFUSER_F16;
    for (size_t i = 0; i < n_ops && is_float; i++)
        if (wanted(o, ops[i].name)) out[n++] = ops[i].statement;
    for (size_t i = 0; i < sizeof more / sizeof *more && is_float && !o->only; i++) out[n++] = more[i];
    for (size_t i = 0; i < sizeof integers / sizeof *integers && !is_float && !o->only; i++) out[n++] = integers[i];
    for (size_t i = 0; i < sizeof casts / sizeof *casts && wanted(o, "cast"); i++) out[n++] = casts[i];
    return n;
}

int main(int argc, char **argv) {
    options o = {.slice = 1};
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--only=", 7))
            o.only = argv[i] + 7;
        else if (strncmp(argv[i], "--device=", 9))
            return fprintf(stderr, "usage: %s [--only=NAME,...]\n", argv[0]), 2; // the device is the CPU
    }
    const level levels[] = {
        {"x86-64", "x86-64", true},
        {"x86-64-v3", "x86-64-v3", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
        {"x86-64-v4", "x86-64-v4",
         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")},
        {"native", "", true}};
    enum { N_LEVELS = sizeof levels / sizeof *levels };
    const lf_codegen_table *table = lfuser_codegen_entry(LF_CODEGEN_VERSION);
    lf_codegen *c;
    lf_log log = {0};
    check_status(table->create(&lf_system_allocator, &log, &c), "code generator");
    for (lfuser_dtype d = LFUSER_I8; d <= LFUSER_F64; d++) {
        totals sums[N_LEVELS] = {{0}};
        const char *all[128];
        size_t n = statements_of(d, &o, all);
        for (size_t i = 0; i < n; i += GROUP) {
            group g;
            group_open(&g, d, all + i, n - i < GROUP ? n - i : GROUP);
            run_group(table, c, levels, N_LEVELS, &g, sums);
            group_close(&g);
        }
        for (size_t i = 0; i < N_LEVELS && n; i++) {
            printf("%-10s %-5s %9llu results, %llu differ%s\n", levels[i].name, lfuser_dtype_name(d),
                   (unsigned long long)sums[i].results, (unsigned long long)sums[i].differing,
                   levels[i].runs ? "" : " (compiled only: this machine does not run it)");
            if (levels[i].runs) *(sums[i].differing ? &failed : &passed) += 1;
        }
        fflush(stdout);
    }
    table->destroy(c);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
