// Every cell of the elementwise table, that is each op with each combination of dtypes it takes: the list, operands to try
// it on, and its code as a loop over arrays. Shared by the test_emit*.c programs.
#ifndef TEST_EMIT_CELLS_H
#define TEST_EMIT_CELLS_H
#include "codegen/llvm/check_ir.h"
#include "codegen/llvm/math_link.h"
#include "codegen/llvm/passes.h"
#include "codegen/llvm/target.h"
#include "ir/ir.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cell {
    lf_opcode code;
    unsigned n;
    lf_dtype in[4], out;
    bool omit[4], flag;
    double number;
} cell;
enum { MOST_CELLS = 4096 };

static inline void check_ok(lf_status s) { ck_assert_msg(!s, "%s", lf_status_message(s)); }

static inline const char *cell_name(const cell *c) {
    static _Thread_local char text[96];
    int at = snprintf(text, sizeof text, "%s(", lf_op_info_of(c->code)->name);
    for (unsigned i = 0; i < c->n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", i ? ", " : "",
                       c->omit[i] ? "none" : lf_dtype_name(c->in[i]));
    snprintf(text + at, sizeof text - (size_t)at, ") -> %s%s", lf_dtype_name(c->out), c->flag ? ", flag" : "");
    return text;
}

// ---- the list -------------------------------------------------------------------------------------------------------
typedef struct row {
    lf_opcode code;
    unsigned n;
    const char *rule, *allow;
} row;
static const row rows[] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) {LF_OP_##ID, n, #rule, allow},
#include "ir/ops.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static inline bool allowed(const row *r, lf_dtype d) {
    static const char letters[] = {[LF_CATEGORY_BOOL] = 'b',
                                   [LF_CATEGORY_INT] = 'i',
                                   [LF_CATEGORY_UINT] = 'i',
                                   [LF_CATEGORY_FLOAT] = 'f',
                                   [LF_CATEGORY_COMPLEX] = 'c'};
    return strchr(r->allow, letters[lf_dtype_category(d)]) != NULL;
}

static inline lf_dtype result_of(const row *r, lf_dtype d) {
    if (!strcmp(r->rule, "compare") || !strcmp(r->rule, "predicate") || !strcmp(r->rule, "logical")) return LF_BOOL;
    if (!strcmp(r->rule, "abs") || !strcmp(r->rule, "real_part") || !strcmp(r->rule, "angle")) return lf_dtype_part(d);
    if (!strcmp(r->rule, "complex")) return d == LF_F64 ? LF_C128 : LF_C64;
    return d;
}

static inline size_t add_cell(cell *cells, size_t n, const row *r, lf_dtype a, lf_dtype b, lf_dtype out) {
    ck_assert_uint_lt(n, MOST_CELLS);
    cells[n] = (cell){.code = r->code, .n = r->n, .in = {a, b, b, b}, .out = out, .number = 0.3125};
    return n + 1;
}

// The cells of one op and one dtype of its first operand.
static inline size_t add_cells(cell *cells, size_t n, const row *r, lf_dtype d) {
    bool whole = d < LF_F16;
    if (!strcmp(r->rule, "cast")) {
        for (lf_dtype to = LF_BOOL; to < LF_DTYPE_COUNT; to++) n = add_cell(cells, n, r, d, d, to);
    } else if (!strcmp(r->rule, "bitcast")) {
        for (lf_dtype to = LF_BOOL; to < LF_DTYPE_COUNT; to++)
            if (lf_dtype_bytes(to) == lf_dtype_bytes(d)) n = add_cell(cells, n, r, d, d, to);
    } else if (!strcmp(r->rule, "shift")) {
        for (lf_dtype k = LF_I8; k <= LF_U64; k++) n = add_cell(cells, n, r, d, k, d);
    } else if (!strcmp(r->rule, "ldexp")) {
        for (lf_dtype k = LF_I8; k <= LF_F64; k++) n = add_cell(cells, n, r, d, k, d);
    } else if (!strcmp(r->rule, "compare")) {
        for (lf_dtype k = LF_BOOL; k < LF_DTYPE_COUNT; k++)
            if (k == d || (whole && k < LF_F16)) n = add_cell(cells, n, r, d, k, LF_BOOL);
    } else if (!strcmp(r->rule, "select")) {
        n = add_cell(cells, n, r, LF_BOOL, d, d);
    } else if (!strcmp(r->rule, "clamp")) {
        for (int omit = 0; omit < 4; omit++) {
            n = add_cell(cells, n, r, d, d, d);
            cells[n - 1].omit[1] = omit & 1;
            cells[n - 1].omit[2] = omit & 2;
        }
    } else if (!strcmp(r->rule, "complex")) {
        if (!lf_is_half(d)) n = add_cell(cells, n, r, d, d, result_of(r, d));
    } else if (!strcmp(r->rule, "angle")) {
        if (!whole) n = add_cell(cells, n, r, d, d, result_of(r, d));
    } else {
        n = add_cell(cells, n, r, d, d, result_of(r, d));
        if (r->code == LF_OP_GELU) {
            n = add_cell(cells, n, r, d, d, d);
            cells[n - 1].flag = true;
        }
    }
    return n;
}

// All cells; *out_cells to be freed.
static inline size_t make_cells(cell **out_cells) {
    cell *cells = calloc(MOST_CELLS, sizeof *cells);
    size_t n = 0;
    for (size_t i = 0; i < N_ROWS; i++)
        for (lf_dtype d = LF_BOOL; d < LF_DTYPE_COUNT; d++)
            if (allowed(&rows[i], d)) n = add_cells(cells, n, &rows[i], d);
    *out_cells = cells;
    return n;
}

// ---- operands -------------------------------------------------------------------------------------------------------
static const double real_edges[] = {0.0,
                                    -0.0,
                                    1.0,
                                    -1.0,
                                    0.5,
                                    -0.5,
                                    1.5,
                                    2.5,
                                    -2.5,
                                    0.25,
                                    2.0,
                                    3.0,
                                    -3.0,
                                    7.0,
                                    -8.0,
                                    0.1,
                                    -0.1,
                                    10.0,
                                    100.3,
                                    1e-3,
                                    20.0,
                                    20.5,
                                    0.9999999,
                                    3.1415927,
                                    -1.5707963,
                                    88.5,
                                    -87.5,
                                    -103.5,
                                    709.5,
                                    -745.0,
                                    255.0,
                                    256.0,
                                    -128.5,
                                    32767.5,
                                    65504.0,
                                    65520.0,
                                    65519.99,
                                    2147483648.0,
                                    -2147483648.5,
                                    4294967295.5,
                                    9223372036854775808.0,
                                    -9223372036854775808.0,
                                    18446744073709551616.0,
                                    8388607.5,
                                    4503599627370495.5,
                                    1e10,
                                    -1e10,
                                    1e38,
                                    3.5e38,
                                    1e308,
                                    1e-40,
                                    -1e-40,
                                    1e-45,
                                    1e-310,
                                    5e-324,
                                    0x1p-24,
                                    0x1.8p-25,
                                    0x1p-25,
                                    0x1p-133,
                                    0x1p-126,
                                    0x1p-1022,
                                    0x1.fffffep127,
                                    0x1.fffffffffffffp1023,
                                    0x1.004p0,
                                    0x1.00400001p0,
                                    0x1.002p0,
                                    0x1.01p0,
                                    0x1.03p0,
                                    0x1.0100000001p0,
                                    0x1.0000000001p-133};
enum { N_REAL_EDGES = sizeof real_edges / sizeof *real_edges };
static const uint64_t whole_edges[] = {0,
                                       1,
                                       2,
                                       3,
                                       5,
                                       6,
                                       7,
                                       8,
                                       12,
                                       15,
                                       16,
                                       17,
                                       31,
                                       32,
                                       33,
                                       63,
                                       64,
                                       65,
                                       100,
                                       127,
                                       128,
                                       129,
                                       255,
                                       256,
                                       257,
                                       1023,
                                       2049,
                                       32767,
                                       32768,
                                       65535,
                                       65519,
                                       65520,
                                       16777217,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       0x100000001,
                                       0x1fffffffffffff,
                                       0x20000000000001,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       8623489025,
                                       0x0080800000000001,
                                       0x8040000000000001,
                                       0x8040000000000000};
enum { N_WHOLE_EDGES = sizeof whole_edges / sizeof *whole_edges };

static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// One component: an edge value, a NaN with a payload, an infinity, or random bits.
static inline void random_part(lf_dtype d, uint64_t *state, void *out) {
    static const uint64_t specials[LF_DTYPE_COUNT][6] = {
        [LF_F16] = {0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x0001},
        [LF_BF16] = {0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0x0001},
        [LF_F32] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x00000001},
        [LF_F64] = {0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 1}};
    uint64_t choice = next_random(state), bits = next_random(state);
    unsigned bytes = lf_dtype_bytes(d);
    if (d == LF_BOOL)
        bits &= 1;
    else if (choice % 8 < 5 && lf_is_integer(d)) {
        bits = whole_edges[bits % N_WHOLE_EDGES];
        if (choice & 256) bits = 0 - bits;
    } else if (choice % 8 < 5) {
        double x = real_edges[bits % N_REAL_EDGES];
        float f = (float)x;
        if (d == LF_F64)
            memcpy(&bits, &x, 8);
        else if (d == LF_F32)
            bits = 0, memcpy(&bits, &f, 4);
        else
            bits = lf_f32_to_half(d, f);
    } else if (choice % 8 == 5 && lf_is_float(d)) {
        bits = specials[d][bits % 6];
    } else if (choice % 8 == 6 && lf_is_float(d)) { // of moderate size
        double x = (double)(int64_t)bits * 0x1p-60;
        float f = (float)x;
        if (d == LF_F64)
            memcpy(&bits, &x, 8);
        else if (d == LF_F32)
            bits = 0, memcpy(&bits, &f, 4);
        else
            bits = lf_f32_to_half(d, f);
    }
    memcpy(out, &bits, bytes);
}

static inline void fill_operand(lf_dtype d, uint64_t seed, void *data, size_t n) {
    lf_dtype part = lf_dtype_part(d);
    unsigned bytes = lf_dtype_bytes(part);
    size_t parts = lf_is_complex(d) ? 2 * n : n;
    uint64_t state = seed;
    for (size_t i = 0; i < parts; i++) random_part(part, &state, (char *)data + i * bytes);
}

// ---- code -----------------------------------------------------------------------------------------------------------
// The graph op of a cell, its operands parameters; `op` and what it points to live as long as the holder.
typedef struct cell_op {
    lf_op op, params[4];
    lf_value values[4], result;
    lf_value *operands[4];
} cell_op;

static inline void cell_to_op(const cell *c, cell_op *o) {
    *o = (cell_op){
        .op = {.code = c->code, .n_operands = (uint16_t)c->n, .n_results = 1, .flag = c->flag, .number = c->number}};
    o->op.operands = o->operands;
    o->op.results = &o->result;
    o->op.compute = c->in[0];
    o->result.type.dtype = c->out;
    o->result.def = &o->op;
    for (unsigned i = 0; i < c->n; i++) {
        o->params[i].code = LF_OP_PARAM;
        o->values[i] = (lf_value){.def = &o->params[i], .type = {.dtype = c->in[i]}};
        o->operands[i] = c->omit[i] ? NULL : &o->values[i];
    }
}

static inline LLVMValueRef element(lf_emit *e, lf_dtype d, LLVMValueRef v_base, LLVMValueRef v_index) {
    LLVMTypeRef byte = LLVMInt8TypeInContext(e->context);
    LLVMValueRef v_size = LLVMConstInt(LLVMInt64TypeInContext(e->context), lf_dtype_bytes(d), 0);
    LLVMValueRef v_offset = LLVMBuildMul(e->builder, v_index, v_size, "offset");
    return LLVMBuildInBoundsGEP2(e->builder, byte, v_base, &v_offset, 1, "at");
}

static inline void emit_body(lf_emit *e, const cell *c, LLVMValueRef v_function, LLVMValueRef v_index) {
    cell_op o;
    cell_to_op(c, &o);
    lf_register v[4] = {{NULL, NULL}};
    for (unsigned i = 0; i < c->n; i++)
        if (!c->omit[i]) v[i] = lf_emit_load(e, c->in[i], element(e, c->in[i], LLVMGetParam(v_function, i + 1), v_index));
    lf_register r = lf_emit_elem(e, &o.op, v);
    lf_emit_store(e, c->out, r, element(e, c->out, LLVMGetParam(v_function, 0), v_index));
}

static inline void add_attribute(lf_emit *e, LLVMValueRef v_function, unsigned where, const char *name) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(v_function, where, LLVMCreateEnumAttribute(e->context, kind, 0));
}

// void NAME(out, a, b, c, d, i64 n): on the CPU a loop over n elements, on a GPU one element a thread.
static inline void emit_cell(lf_emit *e, const cell *c, const char *name) {
    LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i64 = LLVMInt64TypeInContext(e->context);
    LLVMTypeRef params[] = {pointer, pointer, pointer, pointer, pointer, i64};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 6, 0);
    LLVMValueRef v_function = LLVMAddFunction(e->module, name, type), v_n = LLVMGetParam(v_function, 5);
    for (unsigned i = 1; i <= 5; i++) add_attribute(e, v_function, i, "noalias");
    LLVMBuilderRef b = e->builder;
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(e->context, v_function, "entry"));
    LLVMBasicBlockRef b_body = LLVMAppendBasicBlockInContext(e->context, v_function, "body");
    LLVMBasicBlockRef b_done = LLVMAppendBasicBlockInContext(e->context, v_function, "done");
    if (e->target == LF_EMIT_NVPTX) {
        LLVMSetFunctionCallConv(v_function, 71);
        static const char *const registers[] = {"llvm.nvvm.read.ptx.sreg.ctaid.x", "llvm.nvvm.read.ptx.sreg.ntid.x",
                                                "llvm.nvvm.read.ptx.sreg.tid.x"};
        LLVMValueRef v[3];
        for (int i = 0; i < 3; i++) {
            unsigned id = LLVMLookupIntrinsicID(registers[i], strlen(registers[i]));
            v[i] = LLVMBuildCall2(b, LLVMIntrinsicGetType(e->context, id, NULL, 0),
                                  LLVMGetIntrinsicDeclaration(e->module, id, NULL, 0), NULL, 0, "place");
        }
        LLVMValueRef v_index = LLVMBuildAdd(b, LLVMBuildMul(b, v[0], v[1], "block"), v[2], "thread");
        v_index = LLVMBuildZExt(b, v_index, i64, "index");
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, v_index, v_n, "inside"), b_body, b_done);
        LLVMPositionBuilderAtEnd(b, b_body);
        emit_body(e, c, v_function, v_index);
        LLVMBuildBr(b, b_done);
    } else {
        LLVMBasicBlockRef b_entry = LLVMGetInsertBlock(b);
        LLVMBuildBr(b, b_body);
        LLVMPositionBuilderAtEnd(b, b_body);
        LLVMValueRef v_index = LLVMBuildPhi(b, i64, "index");
        emit_body(e, c, v_function, v_index);
        LLVMValueRef v_next = LLVMBuildAdd(b, v_index, LLVMConstInt(i64, 1, 0), "next");
        LLVMAddIncoming(v_index, (LLVMValueRef[]){LLVMConstInt(i64, 0, 0), v_next},
                        (LLVMBasicBlockRef[]){b_entry, LLVMGetInsertBlock(b)}, 2);
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, v_next, v_n, "more"), b_body, b_done);
    }
    LLVMPositionBuilderAtEnd(b, b_done);
    LLVMBuildRetVoid(b);
}
typedef void cell_code(void *out, const void *a, const void *b, const void *c, const void *d, int64_t n);

// Emits cells [first, first + n) as functions cell_<number> into a new module, links the maths, checks it and runs the
// passes.
static inline lf_llvm *emit_module(const cell *cells, size_t first, size_t n, const lf_target *t, lf_llvm_use use,
                                   bool fast) {
    lf_llvm *l;
    check_ok(lf_llvm_create(&lf_system_allocator, t, use, fast, "cells", &l));
    for (size_t i = first; i < first + n; i++) {
        char name[32];
        snprintf(name, sizeof name, "cell_%zu", i);
        emit_cell(&l->emit, &cells[i], name);
        lf_status s = lf_llvm_take_status(l);
        ck_assert_msg(!s, "%s: %s", cell_name(&cells[i]), lf_status_message(s));
    }
    check_ok(lf_llvm_verify(l));
    if (use == LF_LLVM_HOST_CODE) check_ok(lf_passes_run(l));
    check_ok(lf_math_link(l));
    if (use == LF_LLVM_KERNEL) check_ok(lf_passes_run(l));
    check_ok(lf_check_ir(l));
    return l;
}
#endif
