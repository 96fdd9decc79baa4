// All 2^32 floats of every unary op, and all 2^32 pairs of halves of the binary ops that a GPU computes two at a time, a device against
// the CPU device: each computes 4096 sums of 4096 weighted results a launch,
// and only where these differ are the results themselves looked at. (Integer sums wrap, so their order is free; the weights are odd,
// so one differing result always shows.)
#include "test/exhaustive/exhaustive.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW = 4096, ROWS = 4096, CHUNKS = 256 }; // 2^12 · 2^12 · 2^8

typedef struct side {
    machine *m;
    lfuser_executable *sums, *row;
    void *memory; // of ROWS * CHUNKS sums
    uint64_t *host;
} side;

// What is swept: the op of a float of these 32 bits, or of the halves in the low and the high 16.
typedef struct subject {
    const char *name, *statement; // of %x, or of %x and %z
    lfuser_dtype dtype;
    bool predicate;
} subject;

// Bits of the results: a computed NaN has the canonical ones.
static void program_text(char *text, size_t room, const subject *f, bool sums) {
    const char *name = lfuser_dtype_name(f->dtype);
    bool pairs = f->dtype != LFUSER_F32;
    int n = sums ? snprintf(text, room,
                            "fusion @sweep(%%s: i64) {\n  %%r = iota %d, 0, %d, dtype=i64\n  %%q = add %%r, %%s\n"
                            "  %%u = unsqueeze %%q, axes=[1]\n  %%c = iota %d, 0, 1, dtype=i64\n  %%i = add %%u, %%c\n",
                            ROWS, ROW, ROW)
                 : snprintf(text, room, "fusion @row(%%s: i64) {\n  %%c = iota %d, 0, 1, dtype=i64\n  %%i = add %%c, %%s\n",
                            ROW);
    n += snprintf(text + n, room - (size_t)n, "  %%j = cast %%i, dtype=u32\n");
    if (pairs)
        n += snprintf(text + n, room - (size_t)n,
                      "  %%l = cast %%j, dtype=u16\n  %%x = bitcast %%l, dtype=%s\n  %%g = shr %%j, 16\n"
                      "  %%h16 = cast %%g, dtype=u16\n  %%z = bitcast %%h16, dtype=%s\n",
                      name, name);
    else
        n += snprintf(text + n, room - (size_t)n, "  %%x = bitcast %%j, dtype=f32\n");
    n += snprintf(text + n, room - (size_t)n, "  %%y = %s\n", f->statement);
    n += snprintf(text + n, room - (size_t)n,
                  f->predicate ? "  %%b = cast %%y, dtype=u32\n"
                  : pairs      ? "  %%k = bitcast %%y, dtype=u16\n  %%b = cast %%k, dtype=u32\n"
                               : "  %%b = bitcast %%y, dtype=u32\n");
    if (sums)
        snprintf(
            text + n, room - (size_t)n,
            "  %%w = cast %%b, dtype=u64\n  %%d = cast %%c, dtype=u64\n  %%e = mul %%d, 2654435762\n  %%o = add %%e, 1\n"
            "  %%h = mul %%w, %%o\n  %%t = sum %%h, axes=[1]\n  return %%t\n}\n");
    else
        snprintf(text + n, room - (size_t)n, "  return %%b\n}\n");
}

static lfuser_executable *compiled(machine *m, const subject *f, bool sums) {
    char text[1024];
    lfuser_fusion *fusion;
    lfuser_executable *e;
    program_text(text, sizeof text, f, sums);
    must(lfuser_fusion_parse(m->context, "sweep.lf", text, strlen(text), NULL, &fusion), text);
    must(lfuser_fusion_compile(fusion, m->device, NULL, &e), text);
    lfuser_fusion_destroy(fusion);
    return e;
}

static void launch(side *s, lfuser_executable *e, int64_t start, lfuser_dtype d, int64_t n, void *to) {
    int64_t stride = 1;
    lfuser_tensor t = {
        .data = to, .device = s->m->place, .rank = 1, .dtype = lfuser_dl_dtype_of(d), .shape = &n, .strides = &stride};
    lfuser_argument a = {.kind = LFUSER_SCALAR, .dtype = LFUSER_I64, .value = {.i64 = start}};
    lfuser_output o = {.tensor = &t};
    must(lfuser_run(e, s->m->stream, &a, 1, &o, 1, NULL), "sweep");
}

static void look_into_row(side *sides, uint64_t row, tally *t) {
    uint32_t results[2][ROW];
    for (int k = 0; k < 2; k++) {
        side *s = &sides[k];
        launch(s, s->row, (int64_t)(row * ROW), LFUSER_U32, ROW, s->memory);
        must(lfuser_memory_download(s->m->stream, results[k], s->memory, sizeof results[k]), "download");
        must(lfuser_stream_synchronize(s->m->stream), "sweep");
    }
    uint64_t before = t->differing;
    for (uint32_t i = 0; i < ROW; i++) {
        if (results[0][i] == results[1][i]) continue;
        if (!t->differing++)
            snprintf(t->wrong_text, sizeof t->wrong_text, ": first at %#llx, %#x on the device and %#x on the CPU",
                     (unsigned long long)(row * ROW + i), results[0][i], results[1][i]);
    }
    if (t->differing == before && !t->differing++)
        snprintf(t->wrong_text, sizeof t->wrong_text, ": the sums of the row at %#llx differ, its results alone do not",
                 (unsigned long long)(row * ROW));
}

static void sweep(side *sides, const subject *f) {
    tally t = {.inputs = 1ull << 32};
    double begin = seconds();
    for (int k = 0; k < 2; k++) {
        sides[k].sums = compiled(sides[k].m, f, true);
        sides[k].row = compiled(sides[k].m, f, false);
    }
    for (int64_t c = 0; c < CHUNKS; c++)
        for (int k = 0; k < 2; k++) // the device first: it works while the CPU does
            launch(&sides[k], sides[k].sums, c * ROW * ROWS, LFUSER_U64, ROWS, (uint64_t *)sides[k].memory + c * ROWS);
    for (int k = 0; k < 2; k++)
        must(lfuser_memory_download(sides[k].m->stream, sides[k].host, sides[k].memory, sizeof(uint64_t) * ROWS * CHUNKS),
             "download");
    for (int k = 0; k < 2; k++) must(lfuser_stream_synchronize(sides[k].m->stream), "sweep");
    for (uint64_t row = 0; row < (uint64_t)ROWS * CHUNKS && t.differing < 1 << 20; row++)
        if (sides[0].host[row] != sides[1].host[row]) look_into_row(sides, row, &t);
    for (int k = 0; k < 2; k++) {
        lfuser_executable_destroy(sides[k].sums);
        lfuser_executable_destroy(sides[k].row);
    }
    printf("%6.1f s  ", seconds() - begin);
    report("sweep", f->dtype, f->name, &t, true, false);
}

void sweep_all(machine *m, const options *o) {
    machine cpu;
    if (machine_open(&cpu, "cpu")) return;
    side sides[2] = {{.m = m}, {.m = &cpu}};
    for (int k = 0; k < 2; k++) {
        sides[k].host = malloc(sizeof(uint64_t) * ROWS * CHUNKS);
        must(lfuser_memory_alloc(sides[k].m->stream, sizeof(uint64_t) * ROWS * CHUNKS, &sides[k].memory), "memory");
    }
    for (size_t i = 0; i < n_ops; i++) {
        char statement[64]; // "silu %a"
        snprintf(statement, sizeof statement, "%s", ops[i].statement);
        strstr(statement, "%a")[1] = 'x';
        if (wanted(o, ops[i].name)) sweep(sides, &(subject){ops[i].name, statement, LFUSER_F32, ops[i].predicate});
    }
    static const subject pairs[] = {{"add", "add %x, %z", LFUSER_BF16, false}, {"sub", "sub %x, %z", LFUSER_BF16, false},
                                    {"mul", "mul %x, %z", LFUSER_BF16, false}, {"min", "min %x, %z", LFUSER_BF16, false},
                                    {"max", "max %x, %z", LFUSER_BF16, false}, {"fma", "fma %x, %z, %x", LFUSER_BF16, false},
                                    {"add", "add %x, %z", LFUSER_F16, false},  {"sub", "sub %x, %z", LFUSER_F16, false},
                                    {"mul", "mul %x, %z", LFUSER_F16, false},  {"min", "min %x, %z", LFUSER_F16, false},
                                    {"max", "max %x, %z", LFUSER_F16, false},  {"fma", "fma %x, %z, %x", LFUSER_F16, false}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (wanted(o, pairs[i].name) || wanted(o, "pairs")) sweep(sides, &pairs[i]);
    for (int k = 0; k < 2; k++) {
        free(sides[k].host);
        lfuser_memory_free(sides[k].m->stream, sides[k].memory);
        must(lfuser_stream_synchronize(sides[k].m->stream), "sweep");
    }
    machine_close(&cpu);
}
