// The elementwise lowering on the CPU: every cell of the table against the interpreter, bit for bit, at several instruction
// sets, in vectorised kernels and in host code; and single points that neither may get wrong.
#include "test_emit_interp.h"
#include "native/native.h"

enum { PER_MODULE = 96 };

typedef struct setting {
    const char *name;
    lf_llvm_use use;
    const char *cpu;
    bool exhaustive; // all halves to ops of one operand: once with F16C, once without
    bool fast;
} setting;
static const setting settings[] = {
    {"host code", LF_LLVM_HOST_CODE, "", false, false},
    {"kernel, x86-64", LF_LLVM_KERNEL, "x86-64", true, false},
    {"kernel, x86-64-v3", LF_LLVM_KERNEL, "x86-64-v3", true, false},
    {"kernel, x86-64-v4", LF_LLVM_KERNEL, "x86-64-v4", false, false},
};
static const setting fast_setting = {"fast kernel", LF_LLVM_KERNEL, "", true, true};

static void *operands[4], *got, *want;

static void setup(void) {
    for (int i = 0; i < 4; i++) operands[i] = calloc(CELL_ROOM, 16);
    got = calloc(CELL_ROOM, 16);
    want = calloc(CELL_ROOM, 16);
}

static void teardown(void) {
    for (int i = 0; i < 4; i++) free(operands[i]);
    free(got);
    free(want);
}

// Compiles the cells of a module; the caller unloads *out_code.
static void load(lf_llvm *l, size_t first, size_t n, cell_code **out_cells, lf_native **out_code) {
    LLVMMemoryBufferRef object;
    lf_native_symbol symbols[PER_MODULE];
    char names[PER_MODULE][32];
    check_ok(lf_target_generate(l, LLVMObjectFile, &object));
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "cell_%zu", first + i);
        symbols[i] = (lf_native_symbol){.name = names[i]};
    }
    check_ok(
        lf_native_load(&lf_system_allocator, LLVMGetBufferStart(object), LLVMGetBufferSize(object), symbols, n, out_code));
    for (size_t i = 0; i < n; i++) memcpy(&out_cells[i], &symbols[i].address, sizeof *out_cells);
    LLVMDisposeMemoryBuffer(object);
}

static lf_target cpu_target(const char *cpu) {
    lf_target t = {.kind = LF_TARGET_CPU};
    snprintf(t.cpu, sizeof t.cpu, "%s", cpu);
    return t;
}

static void run_module(const setting *s, const cell *cells, size_t first, size_t n, uint64_t slack) {
    lf_target t = cpu_target(s->cpu);
    lf_llvm *l = emit_module(cells, first, n, &t, s->use, s->fast);
    cell_code *run[PER_MODULE];
    lf_native *code;
    load(l, first, n, run, &code);
    for (size_t i = 0; i < n; i++) {
        const cell *c = &cells[first + i];
        size_t elements = fill_cell(c, first + i, s->exhaustive, operands);
        memset(got, 0xa5, CELL_ROOM * 16);
        run[i](got, operands[0], operands[1], operands[2], operands[3], (int64_t)elements);
        interp_cell(c, operands, want, elements);
        const char *text = difference(c, s->name, operands, got, want, elements, slack);
        ck_assert_msg(!text, "%s", text);
    }
    lf_native_unload(code);
    lf_llvm_destroy(l);
}

static bool this_machine_has(const char *cpu) {
    if (!strcmp(cpu, "x86-64-v3")) return __builtin_cpu_supports("x86-64-v3");
    return strcmp(cpu, "x86-64-v4") != 0 || __builtin_cpu_supports("x86-64-v4");
}

static size_t run_all(const setting *s, const cell *cells, size_t n, uint64_t slack) {
    for (size_t i = 0; i < n; i += PER_MODULE) run_module(s, cells, i, n - i < PER_MODULE ? n - i : PER_MODULE, slack);
    return n;
}

START_TEST(every_cell_equals_the_interpreter) {
    const setting *s = &settings[_i];
    if (!this_machine_has(s->cpu)) return;
    cell *cells;
    size_t n = make_cells(&cells);
    ck_assert_uint_gt(n, 1500);
    run_all(s, cells, n, 0);
    free(cells);
}
END_TEST

// Functions of one float: 4 ulp, and of 16 bits the neighbour at worst.
START_TEST(fast_functions_are_close) {
    cell *cells;
    size_t n = make_cells(&cells), wide = 0, narrow = 0;
    cell *few = calloc(2 * n, sizeof *few), *halves = few + n;
    for (size_t i = 0; i < n; i++) {
        if (cells[i].n != 1 || !lf_is_float(cells[i].in[0]) || !lf_is_float(cells[i].out)) continue;
        if (lf_is_half(cells[i].out))
            halves[narrow++] = cells[i];
        else
            few[wide++] = cells[i];
    }
    ck_assert_uint_gt(run_all(&fast_setting, few, wide, 4), 80);
    ck_assert_uint_gt(run_all(&fast_setting, halves, narrow, 1), 80);
    free(few);
    free(cells);
}
END_TEST

// ---- points ---------------------------------------------------------------------------------------------------------
typedef struct point {
    lf_opcode code;
    lf_dtype in, out;
    uint64_t a, b, c, want;
} point;
static const point points[] = {
    // integers
    {LF_OP_FLOORDIV, LF_I32, LF_I32, 7, 0, 0, 0xffffffff},
    {LF_OP_TRUNCDIV, LF_U8, LF_U8, 7, 0, 0, 0xff},
    {LF_OP_MOD, LF_I64, LF_I64, 7, 0, 0, 7},
    {LF_OP_FLOORDIV, LF_I8, LF_I8, 0x80, 0xff, 0, 0x80},
    {LF_OP_FMOD, LF_I32, LF_I32, 0x80000000, 0xffffffff, 0, 0},
    {LF_OP_FLOORDIV, LF_I32, LF_I32, (uint32_t)-7, 2, 0, (uint32_t)-4},
    {LF_OP_CEILDIV, LF_I32, LF_I32, (uint32_t)-7, 2, 0, (uint32_t)-3},
    {LF_OP_CEILDIV, LF_U64, LF_U64, UINT64_MAX, 2, 0, 1ull << 63},
    {LF_OP_MOD, LF_I32, LF_I32, (uint32_t)-7, 2, 0, 1},
    {LF_OP_MOD, LF_U32, LF_U32, 3583196299, 524288, 0, 212107},
    {LF_OP_POW, LF_I32, LF_I32, 0, 0, 0, 1},
    {LF_OP_POW, LF_I32, LF_I32, (uint32_t)-1, (uint32_t)-3, 0, (uint32_t)-1},
    {LF_OP_POW, LF_I32, LF_I32, 2, (uint32_t)-1, 0, 0},
    {LF_OP_POW, LF_I64, LF_I64, 3, 40, 0, 12157665459056928801u},
    {LF_OP_GCD, LF_I8, LF_I8, 0x80, 0, 0, 0x80},
    {LF_OP_GCD, LF_I32, LF_I32, (uint32_t)-12, 18, 0, 6},
    {LF_OP_SHL, LF_I32, LF_I32, 1, 32, 0, 0},
    {LF_OP_SHR, LF_I8, LF_I8, 0x80, 0xff, 0, 0xff},
    {LF_OP_LSHR, LF_I8, LF_I8, 0x80, 1, 0, 0x40},
    {LF_OP_ABS, LF_I16, LF_I16, 0x8000, 0, 0, 0x8000},
    {LF_OP_FMA, LF_U8, LF_U8, 200, 2, 200, 88},
    // conversions
    {LF_OP_CAST, LF_F32, LF_U32, 0xbf800000, 0, 0, 0},
    {LF_OP_CAST, LF_F32, LF_I32, 0x7fc00000, 0, 0, 0},
    {LF_OP_CAST, LF_F64, LF_I64, 0x43e0000000000000, 0, 0, INT64_MAX},
    {LF_OP_CAST, LF_F32, LF_BOOL, 0x7fc00000, 0, 0, 1},
    {LF_OP_CAST, LF_BF16, LF_BOOL, 0x8000, 0, 0, 0},
    {LF_OP_CAST, LF_I64, LF_BF16, 8623489025, 0, 0, 0x5001},
    {LF_OP_CAST, LF_F64, LF_BF16, 0x3ff0100000400000, 0, 0, 0x3f81},
    {LF_OP_CAST, LF_F64, LF_F16, 0x3ff0020000000001, 0, 0, 0x3c01},
    {LF_OP_CAST, LF_F64, LF_F16, 0x3ff0020000000000, 0, 0, 0x3c00},
    {LF_OP_CAST, LF_F32, LF_F16, 0x47802000, 0, 0, 0x7c00},
    {LF_OP_CAST, LF_F32, LF_BF16, 0x00008000, 0, 0, 0x0000},
    {LF_OP_CAST, LF_F32, LF_BF16, 0x00008001, 0, 0, 0x0001},
    {LF_OP_CAST, LF_F32, LF_BF16, 0x7f7fffff, 0, 0, 0x7f80},
    {LF_OP_CAST, LF_U64, LF_F32, 0x8000008000000001, 0, 0, 0x5f000001},
    {LF_OP_BITCAST, LF_F32, LF_I32, 0x7f800001, 0, 0, 0x7f800001},
    // floats
    {LF_OP_MIN, LF_F32, LF_F32, 0, 0x80000000, 0, 0x80000000},
    {LF_OP_MAX, LF_F64, LF_F64, 1ull << 63, 0, 0, 0},
    {LF_OP_FMIN, LF_F16, LF_F16, 0x7e00, 0xbc00, 0, 0xbc00},
    {LF_OP_RELU, LF_F32, LF_F32, 0x80000000, 0, 0, 0},
    {LF_OP_SIGN, LF_F64, LF_F64, 1ull << 63, 0, 0, 0},
    {LF_OP_SIGNBIT, LF_F32, LF_BOOL, 0xffc00000, 0, 0, 0},
    {LF_OP_COPYSIGN, LF_F32, LF_F32, 0x3f800000, 0xffc00000, 0, 0x3f800000},
    {LF_OP_ROUND, LF_F32, LF_F32, 0x40200000, 0, 0, 0x40000000},
    {LF_OP_CEIL, LF_F64, LF_F64, 0xbfe0000000000000, 0, 0, 1ull << 63},
    {LF_OP_NEXTAFTER, LF_BF16, LF_BF16, 0x0000, 0x8001, 0, 0x8001},
    {LF_OP_NEXTAFTER, LF_F16, LF_F16, 0x7bff, 0x7c00, 0, 0x7c00},
    {LF_OP_FLOORDIV, LF_F64, LF_F64, 0x3ff0000000000000, 0x3fb999999999999a, 0, 0x4022000000000000},
    {LF_OP_FLOORDIV, LF_F32, LF_F32, 0x3f800000, 0, 0, 0x7f800000},
    {LF_OP_MOD, LF_F32, LF_F32, 0x40c00000, 0xc0400000, 0, 0x80000000},
    // 1.0009765625² = 1.001953… + 2^-20, a tie in f16 but for the addend's last bit
    {LF_OP_FMA, LF_F16, LF_F16, 0x3c01, 0x3c01, 0x0001, 0x3c02},
    {LF_OP_FMA, LF_F16, LF_F16, 0x7bff, 0x3c00, 0x0001, 0x7bff},
    // 2^-126 · 2^-7 + 2^-133 · … : products of bf16 that f32 cannot hold
    {LF_OP_FMA, LF_BF16, LF_BF16, 0x0080, 0x3c00, 0x0001, 0x0002},
    {LF_OP_FMA, LF_F32, LF_F32, 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000},
    // -0 · x + 0 and friends must not be folded away
    {LF_OP_ADD, LF_F32, LF_F32, 0x80000000, 0, 0, 0},
    {LF_OP_SUB, LF_F64, LF_F64, 0, 0, 0, 0},
    {LF_OP_MUL, LF_F32, LF_F32, 0x00000001, 0x3f000000, 0, 0},
    {LF_OP_DIV, LF_F32, LF_F32, 0x00800000, 0x40000000, 0, 0x00400000},
    {LF_OP_SQRT, LF_F16, LF_F16, 0x0001, 0, 0, 0x0c00},
};
enum { N_POINTS = sizeof points / sizeof *points };

START_TEST(known_points) {
    cell cells[N_POINTS];
    static const unsigned arity[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = n,
#include "ir/ops.def"
    };
    for (size_t i = 0; i < N_POINTS; i++) {
        lf_dtype d = points[i].in;
        cells[i] = (cell){.code = points[i].code, .n = arity[points[i].code], .in = {d, d, d, d}, .out = points[i].out};
    }
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        if (!this_machine_has(settings[k].cpu)) continue;
        lf_target t = cpu_target(settings[k].cpu);
        lf_llvm *l = emit_module(cells, 0, N_POINTS, &t, settings[k].use, false);
        cell_code *run[PER_MODULE];
        lf_native *code;
        load(l, 0, N_POINTS, run, &code);
        for (size_t i = 0; i < N_POINTS; i++) {
            const point *p = &points[i];
            uint64_t result = 0, by_interp = 0, a = p->a, b = p->b, c = p->c;
            run[i](&result, &a, &b, &c, &c, 1);
            ck_assert_msg(result == p->want, "%s: %s of %llx, %llx, %llx gives %llx, not %llx", settings[k].name,
                          cell_name(&cells[i]), (unsigned long long)a, (unsigned long long)b, (unsigned long long)c,
                          (unsigned long long)result, (unsigned long long)p->want);
            interp_cell(&cells[i], (void *[4]){&a, &b, &c, &c}, &by_interp, 1);
            ck_assert_uint_eq(by_interp, p->want);
        }
        lf_native_unload(code);
        lf_llvm_destroy(l);
    }
}
END_TEST

// ---- NaN bits through selects and casts -----------------------------------------------------------------------------
// bitcast (select c, x, y) where y was computed: x keeps its payload, y's NaN is the canonical one.
START_TEST(a_bitcast_shows_canonical_nans) {
    lf_target t = cpu_target("");
    lf_llvm *l;
    check_ok(lf_llvm_create(&lf_system_allocator, &t, LF_LLVM_KERNEL, false, "nan", &l));
    lf_emit *e = &l->emit;
    lf_op param = {.code = LF_OP_PARAM}, subtract = {.code = LF_OP_SUB, .n_operands = 2},
          select = {.code = LF_OP_SELECT, .n_operands = 3};
    lf_op bits = {.code = LF_OP_BITCAST, .n_operands = 1};
    lf_value x = {.def = &param, .type = {.dtype = LF_F32}}, c = {.def = &param, .type = {.dtype = LF_BOOL}};
    lf_value y = {.def = &subtract, .type = {.dtype = LF_F32}}, z = {.def = &select, .type = {.dtype = LF_F32}};
    lf_value r = {.def = &bits, .type = {.dtype = LF_I32}};
    subtract.operands = (lf_value *[]){&x, &x}, subtract.results = &y;
    select.operands = (lf_value *[]){&c, &x, &y}, select.results = &z;
    bits.operands = (lf_value *[]){&z}, bits.results = &r;
    LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0);
    LLVMTypeRef params[] = {pointer, pointer, pointer, pointer, pointer, LLVMInt64TypeInContext(e->context)};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 6, 0);
    LLVMValueRef v_f = LLVMAddFunction(e->module, "cell_0", type);
    LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, v_f, "entry"));
    lf_register v_c = lf_emit_load(e, LF_BOOL, LLVMGetParam(v_f, 1)), v_x = lf_emit_load(e, LF_F32, LLVMGetParam(v_f, 2));
    lf_register v_y = lf_emit_elem(e, &subtract, (lf_register[]){v_x, v_x});
    lf_register v_z = lf_emit_elem(e, &select, (lf_register[]){v_c, v_x, v_y});
    lf_emit_store(e, LF_I32, lf_emit_elem(e, &bits, &v_z), LLVMGetParam(v_f, 0));
    lf_emit_store(
        e, LF_I32,
        lf_emit_elem(e, &(lf_op){.code = LF_OP_BITCAST, .n_operands = 1, .operands = (lf_value *[]){&y}, .results = &r},
                     &v_y),
        LLVMGetParam(v_f, 3));
    LLVMBuildRetVoid(e->builder);
    check_ok(lf_llvm_take_status(l));
    check_ok(lf_llvm_verify(l));
    check_ok(lf_passes_run(l));
    cell_code *run;
    lf_native *code;
    load(l, 0, 1, &run, &code);
    uint32_t out, direct = 0, in = 0xff800001;
    run(&out, &(uint8_t){1}, &in, &direct, NULL, 0);
    ck_assert_uint_eq(out, 0xff800001);
    run(&out, &(uint8_t){0}, &in, &direct, NULL, 0);
    ck_assert_uint_eq(out, 0x7fc00000);
    ck_assert_uint_eq(direct, 0x7fc00000);
    lf_native_unload(code);
    lf_llvm_destroy(l);
}
END_TEST

// ---- what is refused ------------------------------------------------------------------------------------------------
START_TEST(other_combinations_are_refused) {
    static const struct {
        lf_opcode code;
        lf_dtype d;
        const char *message;
    } refused[] = {
        {LF_OP_XOR, LF_F32, "xor of f32 is not supported"},       {LF_OP_SUB, LF_BOOL, "sub of bool is not supported"},
        {LF_OP_DIV, LF_I32, "div of i32 is not supported"},       {LF_OP_LT, LF_C64, "lt of c64 is not supported"},
        {LF_OP_FLOOR, LF_C128, "floor of c128 is not supported"}, {LF_OP_GCD, LF_F16, "gcd of f16 is not supported"},
        {LF_OP_SELECT, LF_F32, "select of f32 is not supported"}, {LF_OP_SUM, LF_F32, "sum of f32 is not supported"}};
    lf_target t = cpu_target("");
    lf_llvm *l;
    check_ok(lf_llvm_create(&lf_system_allocator, &t, LF_LLVM_KERNEL, false, "refused", &l));
    lf_emit *e = &l->emit;
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), NULL, 0, 0);
    LLVMPositionBuilderAtEnd(e->builder,
                             LLVMAppendBasicBlockInContext(e->context, LLVMAddFunction(e->module, "f", type), "entry"));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        lf_register x = lf_emit_constant(e, refused[i].d, &(lf_scalar){{0}});
        ck_assert_ptr_nonnull(lf_emit_simple(e, refused[i].code, refused[i].d, x, x).re);
        lf_status s = lf_llvm_take_status(l);
        ck_assert_int_eq(lf_status_code(s), LF_UNSUPPORTED);
        ck_assert_str_eq(lf_status_message(s), refused[i].message);
        lf_status_destroy(s);
    }
    LLVMBuildRetVoid(e->builder);
    lf_llvm_destroy(l);
}
END_TEST

// ---- philox ---------------------------------------------------------------------------------------------------------
// Known answers of Random123 for 4x32-10 whose upper counter words are those given.
START_TEST(philox_known_answers) {
    static const struct {
        uint64_t key, low, high;
        uint32_t words[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    lf_target t = cpu_target("");
    lf_llvm *l;
    check_ok(lf_llvm_create(&lf_system_allocator, &t, LF_LLVM_KERNEL, false, "philox", &l));
    lf_emit *e = &l->emit;
    LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i64 = LLVMInt64TypeInContext(e->context);
    LLVMTypeRef type =
        LLVMFunctionType(LLVMVoidTypeInContext(e->context), (LLVMTypeRef[]){pointer, i64, i64, i64, pointer, i64}, 6, 0);
    LLVMValueRef v_f = LLVMAddFunction(e->module, "cell_0", type), v_words[4];
    LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, v_f, "entry"));
    lf_emit_philox(e, LLVMGetParam(v_f, 1), LLVMGetParam(v_f, 2), LLVMGetParam(v_f, 3), v_words);
    for (unsigned i = 0; i < 4; i++) {
        LLVMValueRef v_index = LLVMConstInt(i64, 4 * i, 0);
        LLVMValueRef v_at =
            LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->context), LLVMGetParam(v_f, 0), &v_index, 1, "at");
        lf_emit_store(e, LF_U32, (lf_register){v_words[i], NULL}, v_at);
    }
    LLVMBuildRetVoid(e->builder);
    check_ok(lf_passes_run(l));
    cell_code *loaded;
    lf_native *code;
    load(l, 0, 1, &loaded, &code);
    void (*run)(uint32_t *, uint64_t, uint64_t, uint64_t, void *, int64_t);
    memcpy(&run, &loaded, sizeof run);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t words[4];
        run(words, known[i].key, known[i].low, known[i].high, NULL, 0);
        for (int k = 0; k < 4; k++) ck_assert_uint_eq(words[k], known[i].words[k]);
    }
    lf_native_unload(code);
    lf_llvm_destroy(l);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("emit");
    TCase *all = tcase_create("cells");
    tcase_set_timeout(all, 600);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_loop_test(all, every_cell_equals_the_interpreter, 0, sizeof settings / sizeof *settings);
    tcase_add_test(all, fast_functions_are_close);
    tcase_add_test(all, known_points);
    tcase_add_test(all, a_bitcast_shows_canonical_nans);
    tcase_add_test(all, other_combinations_are_refused);
    tcase_add_test(all, philox_known_answers);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
