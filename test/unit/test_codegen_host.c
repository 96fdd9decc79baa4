// Host code: programs built by hand, op by op, compiled and called. Arithmetic of every scalar dtype against C, the
// leaves, checks and their numbers, what bind takes over from infer, long programs, many compiles, threads.
#include "codegen/codegen.h"
#include "test/support/build.h"
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void ok(lf_status s) { ck_assert_msg(!s, "%s: %s", lf_code_name(lf_status_code(s)), lf_status_message(s)); }

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// ---- programs by hand ---------------------------------------------------------------------------------------

enum { MOST = 64 };
typedef struct hand {
    lf_arena arena;
    lf_graph graph;
    lf_program program;
    lf_value *params[MOST];
    uint32_t param_slots[MOST];
    lf_slot_store stores[MOST];
    lf_op *checks[MOST];
    uint32_t check_stages[MOST];
    uint32_t n_slots;
} hand;

static void hand_init(hand *h) {
    memset(h, 0, sizeof *h);
    lf_arena_init(&h->arena, &lf_system_allocator);
    h->graph.allocator = &lf_system_allocator;
    h->graph.params = h->params;
    h->program.graph = &h->graph;
    h->program.stores = h->stores;
    h->program.abi.n_stages = 1;
    h->program.checks = h->checks;
    h->program.check_stages = h->check_stages;
    h->program.param_slots = h->param_slots;
    h->program.abi.name = "by_hand";
}
static void hand_finish(hand *h) { lf_arena_finish(&h->arena); }

static lf_value *op(hand *h, lf_opcode code, lf_dtype d, unsigned n, lf_value *const *operands) {
    lf_op *o = LF_ARENA_NEW(&h->arena, lf_op);
    o->code = code;
    o->graph = &h->graph;
    o->n_operands = (uint16_t)n;
    o->operands = LF_ARENA_ARRAY(&h->arena, lf_value *, n + 1);
    for (unsigned i = 0; i < n; i++) o->operands[i] = operands[i];
    o->n_results = 1;
    o->results = LF_ARENA_NEW(&h->arena, lf_value);
    o->results->def = o;
    o->results->id = h->graph.n_values++;
    o->results->type.dtype = d;
    o->results->where = LF_ON_HOST;
    o->compute = n ? operands[0]->type.dtype : d;
    o->prev = h->graph.last;
    if (o->prev)
        o->prev->next = o;
    else
        h->graph.first = o;
    h->graph.last = o;
    return o->results;
}
static lf_value *unary(hand *h, lf_opcode code, lf_dtype d, lf_value *a) { return op(h, code, d, 1, &a); }
static lf_value *binary(hand *h, lf_opcode code, lf_dtype d, lf_value *a, lf_value *b) {
    return op(h, code, d, 2, (lf_value *[]){a, b});
}
static lf_value *constant(hand *h, int64_t n) {
    lf_value *v = op(h, LF_OP_CONST, LF_I64, 0, NULL);
    v->def->constant.i64 = n;
    return v;
}
static uint32_t take_slots(hand *h, uint32_t n) {
    h->n_slots += n;
    h->program.abi.n_slots = h->n_slots;
    return h->n_slots - n;
}
static uint32_t slots_of(lf_dtype d) { return d == LF_C128 ? 2 : 1; }
static lf_value *param(hand *h, lf_dtype d) {
    lf_value *v = op(h, LF_OP_PARAM, d, 0, NULL);
    h->params[h->graph.n_params] = v;
    h->param_slots[h->graph.n_params++] = take_slots(h, slots_of(d));
    return v;
}
static lf_value *tensor_param(hand *h, lf_dtype d, uint8_t rank) {
    lf_value *v = op(h, LF_OP_PARAM, d, 0, NULL);
    v->type = (lf_type){.dtype = d, .tensor = true, .rank = rank};
    v->where = LF_ON_DEVICE;
    h->params[h->graph.n_params] = v;
    h->param_slots[h->graph.n_params++] = take_slots(h, 1u + 2u * rank);
    return v;
}
static lf_value *of_axis(hand *h, lf_opcode code, lf_value *tensor, int8_t axis) {
    lf_value *v = unary(h, code, LF_I64, tensor);
    v->def->axis = axis;
    return v;
}
static uint32_t store(hand *h, lf_value *v, lf_phase phase) {
    uint32_t slot = take_slots(h, slots_of(v->type.dtype));
    ck_assert(h->program.n_stores < MOST);
    h->stores[h->program.n_stores++] = (lf_slot_store){v, slot, phase, 0};
    return slot;
}
static void add_check(hand *h, unsigned n, lf_value *const *condition_and_numbers) {
    lf_op *o = op(h, LF_OP_CHECK, LF_NO_DTYPE, n, condition_and_numbers)->def;
    o->n_results = 0;
    h->checks[h->program.abi.n_checks++] = o;
}

// ---- fixture ------------------------------------------------------------------------------------------------

static const lf_codegen_table *table;
static lf_codegen *codegen;
static void setup(void) {
    table = lfuser_codegen_entry(LF_CODEGEN_VERSION);
    ck_assert_ptr_nonnull(table);
    ok(table->create(&lf_system_allocator, NULL, &codegen));
}
static void teardown(void) { table->destroy(codegen); }

static lf_object compile(hand *h) {
    lf_object object;
    ok(table->host(codegen, &h->program, &object));
    ck_assert(object.infer && object.bind && object.native);
    return object;
}

// ---- arithmetic ---------------------------------------------------------------------------------------------

static const uint64_t patterns[] = {
    0,
    1,
    2,
    3,
    5,
    7,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x3c00,
    0xbc00,
    0x3f80,
    0x7bff,
    0x3f800000,
    0x40490fdb,
    0xbfc00000,
    0x7f7fffff,
    0x00800000,
    0x3ff0000000000000,
    0x400921fb54442d18,
    0xbff8000000000000,
    0x7fefffffffffffff,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xffffffffffffffff,
};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns };

#define INTEGER_CASE(ID, type)                                                                                              \
    case LF_##ID: {                                                                                                         \
        type x = (type)a, y = (type)b;                                                                                      \
        return (type)(code == LF_OP_ADD   ? (uint64_t)x + (uint64_t)y                                                       \
                      : code == LF_OP_SUB ? (uint64_t)x - (uint64_t)y                                                       \
                                          : (uint64_t)x * (uint64_t)y);                                                     \
    }
static float as_f32(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return f;
}
static double as_f64(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}
static float do_f32(lf_opcode code, float x, float y) {
    return code == LF_OP_ADD ? x + y : code == LF_OP_SUB ? x - y : x * y;
}

// What C says of code(a, b); floats as bits, every NaN as all ones.
static uint64_t in_c(lf_opcode code, lf_dtype d, uint64_t a, uint64_t b) {
    switch (d) {
        INTEGER_CASE(I8, int8_t)
        INTEGER_CASE(I16, int16_t)
        INTEGER_CASE(I32, int32_t)
        INTEGER_CASE(I64, int64_t)
        INTEGER_CASE(U8, uint8_t)
        INTEGER_CASE(U16, uint16_t)
        INTEGER_CASE(U32, uint32_t)
        INTEGER_CASE(U64, uint64_t)
    case LF_BOOL: return code == LF_OP_ADD ? (a | b) & 1 : a & b & 1;
    case LF_F16:
    case LF_BF16: {
        float f = do_f32(code, lf_half_to_f32(d, (uint16_t)a), lf_half_to_f32(d, (uint16_t)b));
        return f != f ? UINT64_MAX : lf_f32_to_half(d, f);
    }
    case LF_F32: {
        float f = do_f32(code, as_f32(a), as_f32(b));
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        return f != f ? UINT64_MAX : bits;
    }
    case LF_F64: {
        double x = as_f64(a), y = as_f64(b), r = code == LF_OP_ADD ? x + y : code == LF_OP_SUB ? x - y : x * y;
        uint64_t bits;
        memcpy(&bits, &r, sizeof bits);
        return r != r ? UINT64_MAX : bits;
    }
    default: ck_abort(); return 0;
    }
}

static bool is_nan(lf_dtype d, uint64_t bits) {
    double x = d == LF_F64 ? as_f64(bits) : d == LF_F32 ? (double)as_f32(bits) : (double)lf_half_to_f32(d, (uint16_t)bits);
    return lf_is_float(d) && x != x;
}

START_TEST(test_arithmetic) {
    static const lf_opcode codes[] = {LF_OP_ADD, LF_OP_SUB, LF_OP_MUL};
    for (lf_dtype d = LF_BOOL; d <= LF_F64; d++) {
        hand h;
        hand_init(&h);
        lf_value *a = param(&h, d), *b = param(&h, d);
        uint32_t slot[3] = {0};
        for (int k = 0; k < 3; k++)
            if (d != LF_BOOL || codes[k] != LF_OP_SUB) slot[k] = store(&h, binary(&h, codes[k], d, a, b), LF_PHASE_INFER);
        lf_object o = compile(&h);
        uint64_t mask = lf_dtype_bytes(d) == 8 ? UINT64_MAX : (1ull << (lf_dtype_bytes(d) * 8)) - 1;
        if (d == LF_BOOL) mask = 1;
        for (size_t i = 0; i < N_PATTERNS; i++)
            for (size_t j = 0; j < N_PATTERNS; j++) {
                uint64_t slots[8] = {patterns[i] & mask, patterns[j] & mask};
                if (is_nan(d, slots[0]) || is_nan(d, slots[1])) continue;
                ck_assert_int_eq(o.infer(slots), -1);
                for (int k = 0; k < 3; k++) {
                    if (!slot[k]) continue;
                    uint64_t want = in_c(codes[k], d, slots[0], slots[1]), got = slots[slot[k]] & mask;
                    if (is_nan(d, got)) got = UINT64_MAX;
                    if (!lf_is_float(d) || want != UINT64_MAX) want &= mask;
                    ck_assert_msg(got == want, "%s %s(%#llx, %#llx): got %#llx, want %#llx", lf_dtype_name(d),
                                  lf_op_info_of(codes[k])->name, (unsigned long long)slots[0], (unsigned long long)slots[1],
                                  (unsigned long long)got, (unsigned long long)want);
                }
            }
        table->release(codegen, &o);
        ck_assert_ptr_null(o.infer);
        hand_finish(&h);
    }
}
END_TEST

START_TEST(test_complex) {
    for (int wide = 0; wide < 2; wide++) {
        lf_dtype d = wide ? LF_C128 : LF_C64;
        hand h;
        hand_init(&h);
        lf_value *a = param(&h, d), *b = param(&h, d);
        uint32_t product = store(&h, binary(&h, LF_OP_MUL, d, a, b), LF_PHASE_INFER);
        uint32_t copy = store(&h, b, LF_PHASE_BIND);
        lf_object o = compile(&h);
        uint64_t slots[16] = {0};
        const double x[4] = {1.5, -2, 0.25, 4};
        for (int i = 0; i < 4; i++) {
            float f = (float)x[i];
            if (wide)
                memcpy((char *)slots + 8 * i, &x[i], 8);
            else
                memcpy((char *)slots + 4 * i, &f, 4);
        }
        ck_assert_int_eq(o.infer(slots), -1);
        o.bind(slots);
        const char *at = (const char *)&slots[product];
        double re = wide ? ((const double *)(const void *)at)[0] : (double)((const float *)(const void *)at)[0];
        double im = wide ? ((const double *)(const void *)at)[1] : (double)((const float *)(const void *)at)[1];
        ck_assert(re == 1.5 * 0.25 + 8 && im == 1.5 * 4 - 0.5);
        ck_assert_mem_eq(&slots[copy], &slots[wide ? 2 : 1], wide ? 16 : 8);
        table->release(codegen, &o);
        hand_finish(&h);
    }
}
END_TEST

START_TEST(test_maths) {
    hand h;
    hand_init(&h);
    lf_value *x = param(&h, LF_F64);
    uint32_t slot = store(&h, unary(&h, LF_OP_EXP, LF_F64, unary(&h, LF_OP_LOG, LF_F64, x)), LF_PHASE_INFER);
    lf_object o = compile(&h);
    uint64_t slots[4];
    double v = 12345.678, r;
    memcpy(slots, &v, 8);
    ck_assert_int_eq(o.infer(slots), -1);
    memcpy(&r, &slots[slot], 8);
    ck_assert(fabs(r - v) < 1e-10 * v);
    table->release(codegen, &o);
    hand_finish(&h);
}
END_TEST

// ---- leaves, phases, checks ---------------------------------------------------------------------------------

START_TEST(test_leaves) {
    hand h;
    hand_init(&h);
    lf_value *scalar = param(&h, LF_I32), *tensor = tensor_param(&h, LF_F32, 3), *flag = param(&h, LF_BOOL);
    h.params[0]->type.tensor = h.params[0]->type.host = true; // a @host tensor
    lf_value *extent = of_axis(&h, LF_OP_EXTENT, tensor, 2), *pitch = of_axis(&h, LF_OP_PITCH, tensor, 1);
    lf_value *address = op(&h, LF_OP_SLOT, LF_I64, 0, NULL);
    address->def->slot = h.param_slots[1];
    lf_value *size = binary(&h, LF_OP_SATMUL, LF_I64, extent, constant(&h, 4));
    lf_value *end = binary(&h, LF_OP_ADD, LF_I64, address, binary(&h, LF_OP_MUL, LF_I64, pitch, size));
    uint32_t s_size = store(&h, size, LF_PHASE_INFER), s_end = store(&h, end, LF_PHASE_BIND);
    uint32_t s_scalar = store(&h, scalar, LF_PHASE_BIND), s_flag = store(&h, flag, LF_PHASE_INFER);
    uint32_t s_again = store(&h, size, LF_PHASE_BIND);
    lf_object o = compile(&h);
    uint64_t slots[32];
    memset(slots, 0xaa, sizeof slots);
    slots[0] = 0xffffffff00000005; // only the low bytes are the value
    slots[1] = 1000;               // address, then extents, then strides
    slots[2] = 2, slots[3] = 3, slots[4] = 6;
    slots[5] = 18, slots[6] = 100, slots[7] = 1;
    slots[8] = 0x80; // a bool byte that is not 0
    ck_assert_int_eq(o.infer(slots), -1);
    ck_assert_uint_eq(slots[s_size], 24);
    ck_assert_uint_eq(slots[s_flag] & 0xff, 1);
    ck_assert_uint_eq(slots[s_end], 0xaaaaaaaaaaaaaaaa);
    slots[s_size] = 25; // bind takes what infer stored
    o.bind(slots);
    ck_assert_uint_eq(slots[s_end], 1000 + 100 * 25);
    ck_assert_uint_eq(slots[s_again], 25);
    ck_assert_uint_eq(slots[s_scalar] & 0xffffffff, 5);
    slots[4] = INT64_MAX; // saturates
    ck_assert_int_eq(o.infer(slots), -1);
    ck_assert_uint_eq(slots[s_size], INT64_MAX);
    table->release(codegen, &o);
    hand_finish(&h);
}
END_TEST

START_TEST(test_checks) {
    hand h;
    hand_init(&h);
    lf_value *a = param(&h, LF_I64), *b = param(&h, LF_I64), *f = param(&h, LF_F32);
    lf_value *product = binary(&h, LF_OP_SATMUL, LF_I64, a, b);
    h.program.abi.numbers_slot = take_slots(&h, 8);
    add_check(&h, 1, (lf_value *[]){binary(&h, LF_OP_GE, LF_BOOL, a, constant(&h, 0))});
    add_check(&h, 4, (lf_value *[]){binary(&h, LF_OP_EQ, LF_BOOL, product, constant(&h, 48)), product, a, f});
    add_check(&h, 2, (lf_value *[]){binary(&h, LF_OP_LT, LF_BOOL, b, constant(&h, 7)), b});
    uint32_t sum = store(&h, binary(&h, LF_OP_ADD, LF_I64, a, b), LF_PHASE_INFER);
    lf_object o = compile(&h);
    float two = 2.5f;
    uint64_t slots[32] = {8, 6};
    memcpy(&slots[2], &two, 4);
    ck_assert_int_eq(o.infer(slots), -1);
    ck_assert_uint_eq(slots[sum], 14);
    slots[0] = (uint64_t)-1; // the first that fails counts
    ck_assert_int_eq(o.infer(slots), 0);
    slots[0] = 9;
    ck_assert_int_eq(o.infer(slots), 1);
    const uint64_t *numbers = &slots[h.program.abi.numbers_slot];
    ck_assert_uint_eq(numbers[0], 54);
    ck_assert_uint_eq(numbers[1], 9);
    ck_assert_mem_eq(&numbers[2], &two, 4);
    slots[0] = 6, slots[1] = 8;
    ck_assert_int_eq(o.infer(slots), 2);
    ck_assert_uint_eq(numbers[0], 8);
    table->release(codegen, &o);
    hand_finish(&h);
}
END_TEST

static void refused(hand *h, lf_code code, const char *has) {
    lf_object o;
    lf_status s = table->host(codegen, &h->program, &o);
    ck_assert_msg(s && lf_status_code(s) == code && strstr(lf_status_message(s), has), "wanted '%s', got '%s'", has,
                  lf_status_message(s));
    ck_assert_ptr_null(o.native);
    lf_status_destroy(s);
    hand_finish(h);
}

START_TEST(test_broken_programs) {
    hand h;
    hand_init(&h); // known only when launches are bound
    store(&h, op(&h, LF_OP_SLOT, LF_I64, 0, NULL), LF_PHASE_INFER);
    refused(&h, LF_INTERNAL, "known only when launches are bound");
    hand_init(&h); // a device value
    lf_value *item = unary(&h, LF_OP_ITEM, LF_F32, tensor_param(&h, LF_F32, 0));
    store(&h, item, LF_PHASE_INFER);
    refused(&h, LF_INTERNAL, "not a host value (%, value 1, op item)");
    hand_init(&h); // a tensor itself
    store(&h, tensor_param(&h, LF_F32, 2), LF_PHASE_INFER);
    refused(&h, LF_INTERNAL, "a tensor is no host value");
    hand_init(&h); // an op on dtypes it does not have
    lf_value *x = param(&h, LF_F32);
    store(&h, binary(&h, LF_OP_XOR, LF_F32, x, x), LF_PHASE_INFER);
    refused(&h, LF_UNSUPPORTED, "xor of f32");
    hand_init(&h); // a number that does not fit a word
    add_check(&h, 2, (lf_value *[]){param(&h, LF_BOOL), param(&h, LF_C128)});
    refused(&h, LF_INTERNAL, "a check cannot report this");
}
END_TEST

START_TEST(test_print) {
    hand h;
    hand_init(&h);
    lf_value *a = param(&h, LF_I64);
    a->name = "width";
    lf_value *doubled = binary(&h, LF_OP_MUL, LF_I64, a, constant(&h, 2));
    doubled->name = "doubled";
    store(&h, doubled, LF_PHASE_INFER);
    char *text;
    ok(table->print(codegen, LF_STAGE_HOST_IR, &h.program, NULL, NULL, (lfuser_abi_class){0}, NULL, &text));
    ck_assert_msg(strstr(text, "define i64 @infer(ptr %slots)") && strstr(text, "%doubled = mul i64 %width, 2") &&
                      strstr(text, "define void @bind(ptr %slots)"),
                  "%s", text);
    lf_free(&lf_system_allocator, text);
    ok(table->print(codegen, LF_STAGE_HOST_ASM, &h.program, NULL, NULL, (lfuser_abi_class){0}, NULL, &text));
    ck_assert_msg(strstr(text, "infer:") && strstr(text, "retq"), "%s", text);
    lf_free(&lf_system_allocator, text);
    hand_finish(&h);
}
END_TEST

// ---- size, number, threads ----------------------------------------------------------------------------------

static double chain_ms(int n) {
    hand h;
    hand_init(&h);
    lf_value *v = param(&h, LF_F64), *w = param(&h, LF_F64);
    for (int i = 0; i < n; i++) v = binary(&h, i % 2 ? LF_OP_ADD : LF_OP_MUL, LF_F64, v, w);
    uint32_t slot = store(&h, v, LF_PHASE_INFER);
    double begin = now_ms();
    lf_object o = compile(&h);
    double took = now_ms() - begin;
    double x = 1.25, y = 0.5, r;
    uint64_t slots[4];
    memcpy(&slots[0], &x, 8);
    memcpy(&slots[1], &y, 8);
    ck_assert_int_eq(o.infer(slots), -1);
    for (int i = 0; i < n; i++) x = i % 2 ? x + y : x * y;
    memcpy(&r, &slots[slot], 8);
    ck_assert(r == x);
    table->release(codegen, &o);
    hand_finish(&h);
    return took;
}

START_TEST(test_long_chains) {
    chain_ms(10);
    double of_2000 = chain_ms(2000), of_20000 = chain_ms(20000);
    if (!SLOW_BUILD) {
        ck_assert_msg(of_2000 < 40, "2000 ops take %.1f ms", of_2000);
        ck_assert_msg(of_20000 < of_2000 * 25, "2000 ops take %.1f ms, 20000 %.1f ms", of_2000, of_20000);
    }
}
END_TEST

START_TEST(test_many_values) {
    // Everything alive to the end, over many blocks and checks.
    enum { N = 3000 };
    hand h;
    hand_init(&h);
    lf_value *a = param(&h, LF_I64), *sum = a;
    lf_value **all = LF_ARENA_ARRAY(&h.arena, lf_value *, N);
    h.program.abi.numbers_slot = take_slots(&h, 8);
    for (int i = 0; i < N; i++) all[i] = binary(&h, LF_OP_ADD, LF_I64, a, constant(&h, i));
    for (int i = 0; i < MOST; i++)
        add_check(&h, 2, (lf_value *[]){binary(&h, LF_OP_NE, LF_BOOL, all[i], constant(&h, 100 + i)), all[i]});
    for (int i = 0; i < N; i++) sum = binary(&h, LF_OP_ADD, LF_I64, sum, all[i]);
    uint32_t slot = store(&h, sum, LF_PHASE_INFER);
    lf_object o = compile(&h);
    uint64_t slots[32] = {1000};
    ck_assert_int_eq(o.infer(slots), -1);
    ck_assert_uint_eq(slots[slot], 1000 + 1000 * N + N * (N - 1) / 2);
    slots[0] = 100;
    ck_assert_int_eq(o.infer(slots), 0);
    table->release(codegen, &o);
    hand_finish(&h);
}
END_TEST

static void seed(hand *h) {
    hand_init(h);
    lf_value *a = param(h, LF_I64), *b = param(h, LF_I64);
    store(h, binary(h, LF_OP_ADD, LF_I64, a, b), LF_PHASE_INFER);
}

static long resident_kib(void) {
    long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert(f && fscanf(f, "%ld %ld", &size, &pages) == 2);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

START_TEST(test_rounds_are_flat) {
    int rounds = getenv("LFUSER_TEST_LONG") ? 10000 : 800;
    hand h;
    seed(&h);
    long before = 0;
    double least = 1e9;
    for (int i = 0; i < rounds; i++) {
        double begin = now_ms();
        lf_object o = compile(&h);
        double took = now_ms() - begin;
        if (took < least) least = took;
        uint64_t slots[4] = {(uint64_t)i, 6};
        ck_assert_int_eq(o.infer(slots), -1);
        ck_assert_uint_eq(slots[2], (uint64_t)i + 6);
        o.bind(slots);
        table->release(codegen, &o);
        if (i == 200) before = resident_kib();
    }
    long grown = resident_kib() - before;
    if (!SLOW_BUILD) {
        ck_assert_msg(grown < 512, "%d rounds leave %ld KiB", rounds, grown);
        ck_assert_msg(least < 3, "a program of one op takes %.2f ms to compile", least);
    }
    hand_finish(&h);
}
END_TEST

static void *compile_some(void *arg) {
    (void)arg;
    hand h;
    seed(&h);
    lf_object kept[4];
    for (int i = 0; i < 24; i++) {
        lf_object *o = &kept[i % 4];
        if (i >= 4) table->release(codegen, o);
        *o = compile(&h);
        for (int k = 0; k <= (i < 4 ? i : 3); k++) {
            uint64_t slots[4] = {(uint64_t)i, 6};
            ck_assert_int_eq(kept[k].infer(slots), -1);
            ck_assert_uint_eq(slots[2], (uint64_t)i + 6);
        }
    }
    for (int k = 0; k < 4; k++) table->release(codegen, &kept[k]);
    hand_finish(&h);
    return NULL;
}

START_TEST(test_threads) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) ck_assert(pthread_create(&threads[i], NULL, compile_some, NULL) == 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}
END_TEST

START_TEST(test_entry) {
    ck_assert_ptr_null(lfuser_codegen_entry(LF_CODEGEN_VERSION + 1));
    ck_assert_uint_eq(table->version, LF_CODEGEN_VERSION);
    ck_assert(strlen(table->build_id) > 0);
    table->destroy(NULL);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("codegen host");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 1200); // the long run, on a busy machine
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_entry);
    tcase_add_test(tc, test_arithmetic);
    tcase_add_test(tc, test_complex);
    tcase_add_test(tc, test_maths);
    tcase_add_test(tc, test_leaves);
    tcase_add_test(tc, test_checks);
    tcase_add_test(tc, test_broken_programs);
    tcase_add_test(tc, test_print);
    tcase_add_test(tc, test_long_chains);
    tcase_add_test(tc, test_many_values);
    tcase_add_test(tc, test_rounds_are_flat);
    tcase_add_test(tc, test_threads);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
