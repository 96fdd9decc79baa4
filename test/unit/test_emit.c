// The elementwise lowering on the CPU: every cell of the table against the interpreter, bit for bit, at several instruction sets,
// in vectorised kernels and in host code; and known values against both.
#include "test_emit_cells.h"
#include "codegen/llvm/jit.h"
#include "interp/internal.h"

enum { ELEMENTS = 2055, PER_MODULE = 96 };   // odd: vector bodies and scalar tails

// ---- the interpreter on a cell --------------------------------------------------------------------------------------------
static lf_eval_fn *const families[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = lf_eval_##family,
#include "ir/ops.def"
};

// Halves that a family does not know are computed in f32, as lf_run_elem does.
static void interp_cell(const cell *c, void *const src[4], void *dst, size_t n) {
    static float wide[4][LF_BLOCK];
    static lf_c128 result[LF_BLOCK];
    for (size_t done = 0; done < n; done += LF_BLOCK) {
        lf_eval e = {.code = c->code, .out = c->out, .number = c->number, .flag = c->flag};
        e.n = n - done < LF_BLOCK ? n - done : LF_BLOCK;
        for (unsigned i = 0; i < c->n; i++) {
            e.in[i] = c->in[i];
            e.src[i] = c->omit[i] ? NULL : (char *)src[i] + done * lf_dtype_bytes(c->in[i]);
        }
        e.dst = (char *)dst + done * lf_dtype_bytes(c->out);
        if (families[c->code](&e)) continue;
        void *out = e.dst;
        for (unsigned i = 0; i < c->n; i++) {
            if (!lf_is_half(e.in[i])) continue;
            for (size_t k = 0; e.src[i] && k < e.n; k++) wide[i][k] = lf_half_to_f32(e.in[i], ((const uint16_t *)e.src[i])[k]);
            if (e.src[i]) e.src[i] = wide[i];
            e.in[i] = LF_F32;
        }
        if (lf_is_half(c->out)) e.out = LF_F32;
        e.dst = result;
        ck_assert_msg(families[c->code](&e), "the interpreter has no %s", cell_name(c));
        if (lf_is_half(c->out))
            for (size_t k = 0; k < e.n; k++) ((uint16_t *)out)[k] = lf_f32_to_half(c->out, ((float *)e.dst)[k]);
        else memcpy(out, result, e.n * lf_dtype_bytes(c->out));
    }
}

// ---- comparing ---------------------------------------------------------------------------------------------------------------
static uint64_t bits_at(const void *data, unsigned bytes, size_t i) {
    uint64_t bits = 0;
    memcpy(&bits, (const char *)data + i * bytes, bytes);
    return bits;
}

static bool is_nan_bits(lf_dtype part, uint64_t bits) {
    static const uint64_t infinity[LF_DTYPE_COUNT] = {
        [LF_F16] = 0x7c00, [LF_BF16] = 0x7f80, [LF_F32] = 0x7f800000, [LF_F64] = 0x7ff0000000000000};
    uint64_t sign = 1ull << (8 * lf_dtype_bytes(part) - 1);
    return lf_is_float(part) && (bits & (sign - 1)) > infinity[part];
}

static void compare_cell(const cell *c, const char *where, void *const src[4], const void *got, const void *want, size_t n) {
    lf_dtype part = lf_dtype_part(c->out);
    unsigned bytes = lf_dtype_bytes(part);
    bool is_complex = lf_is_complex(c->out), moves = c->code == LF_OP_BITCAST || c->code == LF_OP_SELECT;
    // A fractional power of two is a function value like exp2, which the interpreter takes in another precision.
    int64_t slack = c->code == LF_OP_LDEXP && lf_is_float(c->in[1]) ? 64 : 0;
    for (size_t i = 0; i < (is_complex ? 2 * n : n); i++) {
        uint64_t g = bits_at(got, bytes, i), w = bits_at(want, bytes, i);
        if (g == w || (!moves && is_nan_bits(part, g) && is_nan_bits(part, w))) continue;
        int64_t apart = (int64_t)(g - w);
        if (slack && -slack <= apart && apart <= slack) continue;
        char operands[160];
        int at = 0;
        operands[0] = 0;
        for (unsigned k = 0; k < c->n; k++) {
            if (c->omit[k]) continue;
            unsigned size = lf_dtype_bytes(c->in[k]);
            size_t where_at = is_complex ? i / 2 : i;
            at += snprintf(operands + at, sizeof operands - (size_t)at, " %llx",
                           (unsigned long long)bits_at(src[k], size > 8 ? 8 : size, size > 8 ? 2 * where_at : where_at));
        }
        ck_abort_msg("%s, %s: element %zu of%s gives %llx, the interpreter %llx", where, cell_name(c), i, operands,
                     (unsigned long long)g, (unsigned long long)w);
    }
}

// ---- all cells -----------------------------------------------------------------------------------------------------------------
typedef struct setting {
    const char *name;
    lf_llvm_use use;
    const char *cpu;
} setting;
static const setting settings[] = {
    {"host code", LF_LLVM_HOST_CODE, ""},
    {"kernel, x86-64", LF_LLVM_KERNEL, "x86-64"},
    {"kernel, x86-64-v3", LF_LLVM_KERNEL, "x86-64-v3"},
    {"kernel, this machine", LF_LLVM_KERNEL, ""},
};

static cell *cells;
static size_t n_cells;
static void *operands[4], *got, *want;

static void run_module(const setting *s, lf_jit *jit, size_t first, size_t n) {
    lf_target t = {.kind = LF_TARGET_CPU};
    snprintf(t.cpu, sizeof t.cpu, "%s", s->cpu);
    lf_llvm *l = emit_module(cells, first, n, &t, s->use, false);
    LLVMMemoryBufferRef object;
    check_ok(lf_target_generate(l, LLVMObjectFile, &object));
    lf_jit_symbol symbols[PER_MODULE];
    char names[PER_MODULE][32];
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "cell_%zu", first + i);
        symbols[i] = (lf_jit_symbol){.name = names[i]};
    }
    lf_jit_code *code;
    check_ok(lf_jit_load(jit, LLVMGetBufferStart(object), LLVMGetBufferSize(object), symbols, n, &code));
    for (size_t i = 0; i < n; i++) {
        const cell *c = &cells[first + i];
        cell_code *run;
        memcpy(&run, &symbols[i].address, sizeof run);
        for (unsigned k = 0; k < c->n; k++) fill_operand(c->in[k], first + i + 77777 * k, operands[k], ELEMENTS);
        memset(got, 0xa5, ELEMENTS * 16);
        run(got, operands[0], operands[1], operands[2], operands[3], ELEMENTS);
        interp_cell(c, operands, want, ELEMENTS);
        compare_cell(c, s->name, operands, got, want, ELEMENTS);
    }
    lf_jit_unload(jit, code);
    LLVMDisposeMemoryBuffer(object);
    lf_llvm_destroy(l);
}

START_TEST(every_cell_equals_the_interpreter) {
    const setting *s = &settings[_i];
    n_cells = make_cells(&cells);
    for (int i = 0; i < 4; i++) operands[i] = malloc(ELEMENTS * 16);
    got = malloc(ELEMENTS * 16);
    want = malloc(ELEMENTS * 16);
    lf_target t = {.kind = LF_TARGET_CPU};
    snprintf(t.cpu, sizeof t.cpu, "%s", s->cpu);
    lf_jit *jit;
    check_ok(lf_jit_create(&lf_system_allocator, NULL, &jit));
    for (size_t i = 0; i < n_cells; i += PER_MODULE) run_module(s, jit, i, n_cells - i < PER_MODULE ? n_cells - i : PER_MODULE);
    lf_jit_destroy(jit);
    for (int i = 0; i < 4; i++) free(operands[i]);
    free(got);
    free(want);
    free(cells);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("emit");
    TCase *all = tcase_create("cells");
    tcase_set_timeout(all, 600);
    tcase_add_loop_test(all, every_cell_equals_the_interpreter, 0, sizeof settings / sizeof *settings);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
