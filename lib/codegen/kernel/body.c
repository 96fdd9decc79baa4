// The body of a kernel: argument words, indices, addresses and statements, for every target alike.
#include "codegen/kernel/kernel.h"
#include <string.h>

enum { KEPT_WORDS = sizeof((lf_kernel *)0)->v_words / sizeof(LLVMValueRef) };

LLVMValueRef lf_i64_const(lf_kernel *k, int64_t v) { return LLVMConstInt(k->l_i64, (unsigned long long)v, true); }

LLVMBasicBlockRef lf_block(lf_kernel *k, const char *name) { return LLVMAppendBasicBlockInContext(k->e->context, k->v_function, name); }

lf_status lf_kernel_begin(lf_kernel *k, LLVMTypeRef function_type) {
    LLVMContextRef c = k->e->context;
    const lf_loop *loop = k->loop;
    k->l_i64 = LLVMInt64TypeInContext(c);
    k->l_i32 = LLVMInt32TypeInContext(c);
    k->l_pointer = LLVMPointerTypeInContext(c, k->gpu ? 1 : 0);
    k->rows = k->cls.rows < loop->rows ? k->cls.rows : loop->rows;
    k->cols = k->cls.cols < loop->cols ? k->cls.cols : loop->cols;
    const lf_allocator *a = k->l->allocator;
    k->varies = lf_alloc_zero(a, loop->n_stmts);
    k->ready = lf_alloc_zero(a, loop->n_stmts);
    k->registers = lf_alloc_zero(a, sizeof(lf_register) * loop->n_stmts * LF_MAX_LANES);
    k->v_row_base = lf_alloc_zero(a, sizeof(LLVMValueRef) * loop->n_accesses);
    if (!k->varies || !k->ready || !k->registers || !k->v_row_base) return lf_out_of_memory();
    k->v_function = LLVMAddFunction(k->e->module, "kernel", function_type);
    k->v_args = LLVMGetParam(k->v_function, 0);
    LLVMSetValueName2(k->v_args, "args", 4);
    k->b_entry = lf_block(k, "entry");
    LLVMPositionBuilderAtEnd(k->e->builder, k->b_entry);
    // A statement differs between lanes when it depends on the innermost axis.
    unsigned innermost = loop->cols ? loop->rows + loop->cols - 1u : loop->rows ? loop->rows - 1u : LF_MAX_AXES;
    for (uint32_t i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        for (unsigned n = 0; n < s->n_args; n++) k->varies[i] |= s->args[n] != LF_NO_STMT && k->varies[s->args[n]];
        if (s->guard != LF_NO_STMT) k->varies[i] |= k->varies[s->guard];
        if (s->kind == LF_STMT_INDEX && s->number == innermost) k->varies[i] = true;
        if (s->kind == LF_STMT_LOAD && innermost < LF_MAX_AXES && loop->accesses[s->number].strides[innermost]) k->varies[i] = true;
        if (s->kind == LF_STMT_REDUCE) k->varies[i] = false;
    }
    return NULL;
}

void lf_kernel_finish(lf_kernel *k) {
    const lf_allocator *a = k->l->allocator;
    lf_free(a, k->varies);
    lf_free(a, k->ready);
    lf_free(a, k->registers);
    lf_free(a, k->v_row_base);
}

// In the entry block, so that one load serves the whole kernel.
LLVMValueRef lf_word(lf_kernel *k, uint32_t word) {
    if (word < KEPT_WORDS && k->v_words[word]) return k->v_words[word];
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(b);
    LLVMValueRef v_end = LLVMGetBasicBlockTerminator(k->b_entry);
    if (v_end) LLVMPositionBuilderBefore(b, v_end);
    else LLVMPositionBuilderAtEnd(b, k->b_entry);
    LLVMValueRef v_index = lf_i64_const(k, word);
    LLVMValueRef v_address = LLVMBuildInBoundsGEP2(b, k->l_i64, k->v_args, &v_index, 1, "");
    LLVMValueRef v = LLVMBuildLoad2(b, k->l_i64, v_address, "word");
    LLVMSetAlignment(v, 8);
    LLVMContextRef c = k->e->context;
    LLVMSetMetadata(v, LLVMGetMDKindIDInContext(c, "invariant.load", 14), LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, NULL, 0)));
    if (b_here != k->b_entry) LLVMPositionBuilderAtEnd(b, b_here);
    else LLVMPositionBuilderAtEnd(b, k->b_entry);
    if (word < KEPT_WORDS) k->v_words[word] = v;
    return v;
}

LLVMValueRef lf_alloca(lf_kernel *k, LLVMTypeRef type, const char *name) {
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(b);
    LLVMValueRef v_first = LLVMGetFirstInstruction(k->b_entry);
    if (v_first) LLVMPositionBuilderBefore(b, v_first);
    else LLVMPositionBuilderAtEnd(b, k->b_entry);
    LLVMValueRef v = LLVMBuildAlloca(b, type, name);
    LLVMPositionBuilderAtEnd(b, b_here);
    return v;
}

// ---- indices -------------------------------------------------------------------------------------------------------------------

// Merged axes lie at the end of their section of the argument block.
static unsigned row_axis(const lf_kernel *k, unsigned walked) { return k->loop->rows - k->rows + walked; }
static unsigned column_axis(const lf_kernel *k, unsigned walked) { return k->loop->rows + k->loop->cols - k->cols + walked; }

LLVMValueRef lf_row_extent(lf_kernel *k, unsigned walked) { return lf_word(k, k->loop->extents_word + row_axis(k, walked)); }
LLVMValueRef lf_column_extent(lf_kernel *k, unsigned walked) { return lf_word(k, k->loop->extents_word + column_axis(k, walked)); }

LLVMValueRef lf_columns(lf_kernel *k) {
    LLVMValueRef v = lf_i64_const(k, 1);
    for (unsigned c = 0; c < k->cols; c++) v = c ? LLVMBuildMul(k->e->builder, v, lf_column_extent(k, c), "columns") : lf_column_extent(k, 0);
    return v;
}

void lf_split_index(lf_kernel *k, LLVMValueRef v_linear, unsigned n, LLVMValueRef (*extent)(lf_kernel *, unsigned), LLVMValueRef *out) {
    LLVMBuilderRef b = k->e->builder;
    bool narrow = k->gpu && !k->cls.wide && n > 1;
    LLVMValueRef v_left = narrow ? LLVMBuildTrunc(b, v_linear, k->l_i32, "") : v_linear;
    for (unsigned i = n; i-- > 0;) {
        LLVMValueRef v_index = v_left;
        if (i) {
            LLVMValueRef v_extent = extent(k, i);
            if (narrow) v_extent = LLVMBuildTrunc(b, v_extent, k->l_i32, "");
            LLVMValueRef v_rest = LLVMBuildUDiv(b, v_left, v_extent, "");
            v_index = LLVMBuildSub(b, v_left, LLVMBuildMul(b, v_rest, v_extent, ""), "");
            v_left = v_rest;
        }
        out[i] = narrow ? LLVMBuildZExt(b, v_index, k->l_i64, "index") : v_index;
    }
}

// index * stride. In the 32-bit class both fit 32 bits, and the product is one wide multiply.
static LLVMValueRef scaled(lf_kernel *k, LLVMValueRef v_index, LLVMValueRef v_stride) {
    LLVMBuilderRef b = k->e->builder;
    if (k->gpu && !k->cls.wide) {
        v_index = LLVMBuildSExt(b, LLVMBuildTrunc(b, v_index, k->l_i32, ""), k->l_i64, "");
        v_stride = LLVMBuildSExt(b, LLVMBuildTrunc(b, v_stride, k->l_i32, ""), k->l_i64, "");
    }
    return LLVMBuildMul(b, v_index, v_stride, "");
}

static LLVMTypeRef element_type(lf_kernel *k, const lf_access *access) { return lf_memory_type(k->e, access->dtype); }

static LLVMValueRef advance(lf_kernel *k, const lf_access *access, LLVMValueRef v_pointer, LLVMValueRef v_elements) {
    return LLVMBuildGEP2(k->e->builder, element_type(k, access), v_pointer, &v_elements, 1, "");
}

// The innermost stride of a contiguous class is known while compiling.
static LLVMValueRef stride_of(lf_kernel *k, const lf_access *access, unsigned axis, bool innermost) {
    if (innermost && k->cls.vector > 1) return lf_i64_const(k, access->strides[axis] != NULL);
    return lf_word(k, access->word + 1 + axis);
}

// The address of an access for the current row, its columns aside. Done once a row, in the row's block.
void lf_kernel_begin_row(lf_kernel *k) {
    LLVMBuilderRef b = k->e->builder;
    memset(k->ready, 0, k->loop->n_stmts);
    for (uint32_t i = 0; i < k->loop->n_accesses; i++) {
        const lf_access *access = &k->loop->accesses[i];
        LLVMValueRef v = LLVMBuildIntToPtr(b, lf_word(k, access->word), k->l_pointer, "");
        for (unsigned r = 0; r < k->rows; r++) {
            bool innermost = !k->loop->cols && r + 1 == k->rows;
            if (innermost && k->cls.vector > 1 && !access->strides[row_axis(k, r)]) continue;
            v = advance(k, access, v, scaled(k, k->v_row[r], stride_of(k, access, row_axis(k, r), innermost)));
        }
        k->v_row_base[i] = v;
    }
}

void lf_kernel_forget_columns(lf_kernel *k) {
    for (uint32_t i = 0; i < k->loop->n_stmts; i++)
        if (k->loop->stmts[i].column) k->ready[i] = false;
}

// ---- statements ----------------------------------------------------------------------------------------------------------------

lf_register lf_reg(lf_kernel *k, lf_stmt_id id, unsigned lane) {
    return k->registers[(size_t)id * LF_MAX_LANES + (k->varies[id] ? lane : 0)];
}

void lf_mark_parallel(lf_kernel *k, LLVMValueRef v_access) {
    if (!k->parallel_group || !v_access) return;
    LLVMContextRef c = k->e->context;
    LLVMSetMetadata(v_access, LLVMGetMDKindIDInContext(c, "llvm.access.group", 17), LLVMMetadataAsValue(c, k->parallel_group));
}

static void mark_invariant(lf_kernel *k, const lf_access *access, LLVMValueRef v_load) {
    if (!k->gpu || access->written) return;
    LLVMContextRef c = k->e->context;
    LLVMSetMetadata(v_load, LLVMGetMDKindIDInContext(c, "invariant.load", 14), LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, NULL, 0)));
}

static LLVMValueRef address_of(lf_kernel *k, uint32_t number, const lf_stmt *s, unsigned lane, bool whole_vector) {
    const lf_access *access = &k->loop->accesses[number];
    LLVMValueRef v = k->v_row_base[number];
    for (unsigned c = 0; c < k->cols && !access->row; c++) {
        bool innermost = c + 1 == k->cols;
        unsigned axis = column_axis(k, c);
        if (innermost && k->cls.vector > 1 && !access->strides[axis]) continue;
        v = advance(k, access, v, scaled(k, k->v_column[c], stride_of(k, access, axis, innermost)));
    }
    uint32_t term_word = access->word + 1u + k->loop->rows + k->loop->cols;
    for (unsigned t = 0; s->kind == LF_STMT_LOAD && t < access->n_terms; t++)
        v = advance(k, access, v, LLVMBuildMul(k->e->builder, lf_reg(k, s->args[t], lane).re, lf_word(k, term_word + t), ""));
    unsigned innermost = k->loop->cols ? k->loop->rows + k->loop->cols - 1u : k->loop->rows - 1u;
    if (lane && !whole_vector && (k->loop->rows || k->loop->cols) && access->strides[innermost])
        v = advance(k, access, v, lf_i64_const(k, lane));
    return v;
}

LLVMValueRef lf_access_address(lf_kernel *k, lf_stmt_id id) {
    return address_of(k, k->loop->stmts[id].number, &k->loop->stmts[id], 0, false);
}

// Marks every load and store that the emitters made since v_before as independent of other iterations.
static void mark_new(lf_kernel *k, const lf_access *access, LLVMValueRef v_before, LLVMBasicBlockRef b_block) {
    LLVMValueRef v = v_before ? LLVMGetNextInstruction(v_before) : LLVMGetFirstInstruction(b_block);
    for (; v; v = LLVMGetNextInstruction(v)) {
        if (LLVMIsALoadInst(v)) mark_invariant(k, access, v);
        if (LLVMIsALoadInst(v) || LLVMIsAStoreInst(v)) lf_mark_parallel(k, v);
    }
}

static bool is_whole_vector(const lf_kernel *k, const lf_stmt *s, lf_stmt_id id) {
    return k->lanes > 1 && s->guard == LF_NO_STMT && (s->kind == LF_STMT_STORE || k->varies[id]) && k->loop->accesses[s->number].n_terms == 0;
}

// All lanes of a contiguous access by one instruction.
static void load_vector(lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    const lf_access *access = &k->loop->accesses[s->number];
    LLVMBuilderRef b = k->e->builder;
    bool complex = lf_is_complex(s->dtype);
    LLVMTypeRef l_part = complex ? lf_register_type(k->e, s->dtype) : element_type(k, access);
    unsigned parts = complex ? 2 * k->lanes : k->lanes;
    LLVMValueRef v = LLVMBuildLoad2(b, LLVMVectorType(l_part, parts), address_of(k, s->number, s, 0, true), "vector");
    LLVMSetAlignment(v, k->lanes * lf_dtype_bytes(s->dtype));
    mark_invariant(k, access, v);
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        lf_register *r = &k->registers[(size_t)id * LF_MAX_LANES + lane];
        unsigned first = complex ? 2 * lane : lane;
        r->re = LLVMBuildExtractElement(b, v, LLVMConstInt(k->l_i32, first, false), "");
        if (complex) r->im = LLVMBuildExtractElement(b, v, LLVMConstInt(k->l_i32, first + 1, false), "");
        if (s->dtype == LF_BOOL) r->re = LLVMBuildICmp(b, LLVMIntNE, r->re, LLVMConstNull(l_part), "");
    }
}

static void store_vector(lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    const lf_access *access = &k->loop->accesses[s->number];
    LLVMBuilderRef b = k->e->builder;
    bool complex = lf_is_complex(s->dtype);
    LLVMTypeRef l_part = complex ? lf_register_type(k->e, s->dtype) : element_type(k, access);
    unsigned parts = complex ? 2 * k->lanes : k->lanes;
    LLVMValueRef v = LLVMGetUndef(LLVMVectorType(l_part, parts));
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        lf_register r = lf_reg(k, s->args[0], lane);
        if (s->dtype == LF_BOOL) r.re = LLVMBuildZExt(b, r.re, l_part, "");
        unsigned first = complex ? 2 * lane : lane;
        v = LLVMBuildInsertElement(b, v, r.re, LLVMConstInt(k->l_i32, first, false), "");
        if (complex) v = LLVMBuildInsertElement(b, v, r.im, LLVMConstInt(k->l_i32, first + 1, false), "");
    }
    LLVMSetAlignment(LLVMBuildStore(b, v, address_of(k, s->number, s, 0, true)), k->lanes * lf_dtype_bytes(s->dtype));
}

static lf_register load_lane(lf_kernel *k, const lf_stmt *s, unsigned lane) {
    LLVMBuilderRef b = k->e->builder;
    const lf_access *access = &k->loop->accesses[s->number];
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(b), b_load = NULL, b_done = NULL;
    if (s->guard != LF_NO_STMT) {
        b_load = lf_block(k, "guarded");
        b_done = lf_block(k, "loaded");
        LLVMBuildCondBr(b, lf_reg(k, s->guard, lane).re, b_load, b_done);
        LLVMPositionBuilderAtEnd(b, b_load);
    }
    LLVMValueRef v_address = address_of(k, s->number, s, lane, false);
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(b);
    LLVMValueRef v_last = LLVMGetLastInstruction(b_here);
    lf_register r = lf_emit_load(k->e, s->dtype, v_address);
    mark_new(k, access, v_last, b_here);
    if (!b_done) return r;
    b_here = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, b_done);
    LLVMPositionBuilderAtEnd(b, b_done);
    lf_scalar nothing = {0};
    lf_register zero = lf_emit_constant(k->e, s->dtype, &nothing), result = {NULL, NULL};
    LLVMBasicBlockRef from[2] = {b_here, b_before};
    result.re = LLVMBuildPhi(b, LLVMTypeOf(r.re), "");
    LLVMAddIncoming(result.re, (LLVMValueRef[]){r.re, zero.re}, from, 2);
    if (r.im) {
        result.im = LLVMBuildPhi(b, LLVMTypeOf(r.im), "");
        LLVMAddIncoming(result.im, (LLVMValueRef[]){r.im, zero.im}, from, 2);
    }
    return result;
}

static void store_lane(lf_kernel *k, const lf_stmt *s, unsigned lane) {
    LLVMValueRef v_address = address_of(k, s->number, s, lane, false);
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(k->e->builder);
    LLVMValueRef v_last = LLVMGetLastInstruction(b_here);
    lf_emit_store(k->e, s->dtype, lf_reg(k, s->args[0], lane), v_address);
    mark_new(k, &k->loop->accesses[s->number], v_last, b_here);
}

static lf_register scalar_argument(lf_kernel *k, const lf_stmt *s) {
    LLVMBuilderRef b = k->e->builder;
    uint32_t word = k->loop->scalar_words[s->number];
    lf_dtype d = s->dtype, part = lf_dtype_part(d);
    LLVMTypeRef l_type = lf_register_type(k->e, d);
    LLVMValueRef v[2] = {lf_word(k, word), NULL};
    if (d == LF_C128) v[1] = lf_word(k, word + 1);
    if (d == LF_C64) v[1] = LLVMBuildLShr(b, v[0], lf_i64_const(k, 32), "");
    for (unsigned i = 0; i < 2 && v[i]; i++) {
        unsigned bits = d == LF_BOOL ? 1 : lf_dtype_bytes(part) * 8;
        if (bits < 64) v[i] = LLVMBuildTrunc(b, v[i], LLVMIntTypeInContext(k->e->context, bits), "");
        if (part == LF_F32 || part == LF_F64) v[i] = LLVMBuildBitCast(b, v[i], l_type, "");
    }
    return (lf_register){v[0], v[1]};
}

static lf_register index_of(lf_kernel *k, const lf_stmt *s, unsigned lane) {
    // A kernel that looks at indices is never merged: walked axes and its axes are the same.
    LLVMValueRef v = s->number < k->loop->rows ? k->v_row[s->number] : k->v_column[s->number - k->loop->rows];
    return (lf_register){lane ? LLVMBuildAdd(k->e->builder, v, lf_i64_const(k, lane), "") : v, NULL};
}

// Value, then sequence + 1 with release order: the host reads them the other way round.
static void deliver(lf_kernel *k, const lf_stmt *s) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_slot = LLVMBuildIntToPtr(b, lf_reg(k, s->args[1], 0).re, k->l_pointer, "mailbox"), v_one = lf_i64_const(k, 1);
    lf_emit_store(k->e, s->dtype, lf_reg(k, s->args[0], 0), LLVMBuildGEP2(b, k->l_i64, v_slot, &v_one, 1, "value"));
    LLVMValueRef v_sequence = LLVMBuildLoad2(b, k->l_i64, v_slot, "sequence");
    LLVMSetVolatile(v_sequence, true);
    LLVMValueRef v_store = LLVMBuildStore(b, LLVMBuildAdd(b, v_sequence, v_one, ""), v_slot);
    LLVMSetOrdering(v_store, LLVMAtomicOrderingRelease);
    LLVMSetAlignment(v_store, 8);
}

static void report_index_error(lf_kernel *k, const lf_stmt *s, unsigned lane) {
    LLVMBuilderRef b = k->e->builder;
    lf_if_blocks bad;
    lf_if_begin(k, &bad, LLVMBuildNot(b, lf_reg(k, s->args[0], lane).re, ""), "bad_index");
    LLVMValueRef v_word = LLVMBuildIntToPtr(b, lf_word(k, k->loop->error_word), k->l_pointer, "");
    LLVMBuildStore(b, lf_i64_const(k, s->number), v_word);  // any writer will do: each tells of an error of this run
    lf_if_end(k, &bad);
}

static lf_register emit_lane(lf_kernel *k, const lf_stmt *s, unsigned lane) {
    lf_register args[8] = {{NULL, NULL}};
    for (unsigned i = 0; i < s->n_args; i++)
        if (s->args[i] != LF_NO_STMT) args[i] = lf_reg(k, s->args[i], lane);
    LLVMBuilderRef b = k->e->builder;
    switch (s->kind) {
    case LF_STMT_INDEX: return index_of(k, s, lane);
    case LF_STMT_SCALAR: return scalar_argument(k, s);
    case LF_STMT_CONST: return lf_emit_constant(k->e, s->dtype, &s->constant);
    case LF_STMT_LOAD: return load_lane(k, s, lane);
    case LF_STMT_ELEM: return lf_emit_elem(k->e, s->op, args);
    case LF_STMT_CAST: return lf_emit_cast(k->e, s->compute, s->dtype, args[0]);
    case LF_STMT_SIMPLE:
        if (s->code != LF_OP_SELECT) return lf_emit_simple(k->e, s->code, s->compute, args[0], args[1]);
        return (lf_register){LLVMBuildSelect(b, args[0].re, args[1].re, args[2].re, ""),
                             args[1].im ? LLVMBuildSelect(b, args[0].re, args[1].im, args[2].im, "") : NULL};
    case LF_STMT_STORE: store_lane(k, s, lane); break;
    case LF_STMT_DELIVER: deliver(k, s); break;
    case LF_STMT_IOTA: return lf_emit_iota(k, s, args[0], args[1], args[2]);
    case LF_STMT_RANDOM: return lf_emit_random(k, s, args);
    case LF_STMT_INDEX_ERROR: report_index_error(k, s, lane); break;
    case LF_STMT_REDUCE: case LF_STMT_SCAN: case LF_STMT_SCAN_POSITION: case LF_STMT_SORTED:
        break;  // their registers are set by whoever walks the columns
    }
    return (lf_register){NULL, NULL};
}

static void emit_one(lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    bool memory = s->kind == LF_STMT_LOAD || s->kind == LF_STMT_STORE;
    k->ready[id] = true;
    if (memory && is_whole_vector(k, s, id) && !k->loop->accesses[s->number].row == !!k->loop->cols) {
        if (s->kind == LF_STMT_LOAD) load_vector(k, id);
        else store_vector(k, id);
        return;
    }
    bool each = k->varies[id] || (s->kind == LF_STMT_STORE && (s->column || !k->loop->cols));
    for (unsigned lane = 0; lane < (each ? k->lanes : 1u); lane++)
        k->registers[(size_t)id * LF_MAX_LANES + lane] = emit_lane(k, s, lane);
}

// Statements are in order of definition, so one sweep marks what is needed and one emits it.
void lf_emit_statement(lf_kernel *k, lf_stmt_id id) {
    const lf_allocator *a = k->l->allocator;
    if (k->ready[id]) return;
    bool *needed = lf_alloc_zero(a, id + 1u);
    if (!needed) {
        lf_status_destroy(k->e->status);
        k->e->status = lf_out_of_memory();
        return;
    }
    needed[id] = true;
    for (lf_stmt_id i = id + 1; i-- > 0;) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (!needed[i] || k->ready[i]) continue;
        for (unsigned n = 0; n < s->n_args; n++)
            if (s->args[n] != LF_NO_STMT) needed[s->args[n]] = true;
        if (s->guard != LF_NO_STMT) needed[s->guard] = true;
    }
    for (lf_stmt_id i = 0; i <= id; i++)
        if (needed[i] && !k->ready[i]) emit_one(k, i);
    lf_free(a, needed);
}

static bool has_effect(const lf_stmt *s) {
    return s->kind == LF_STMT_STORE || s->kind == LF_STMT_DELIVER || s->kind == LF_STMT_INDEX_ERROR;
}

void lf_emit_rows_of_level(lf_kernel *k, unsigned level, LLVMValueRef v_only_if) {
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (!s->column && s->level == level && !has_effect(s) && s->kind != LF_STMT_REDUCE) lf_emit_statement(k, i);
    }
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (s->column || s->level != level || !has_effect(s)) continue;
        lf_if_blocks blocks;
        if (v_only_if) lf_if_begin(k, &blocks, v_only_if, "first");
        lf_emit_statement(k, i);
        if (v_only_if) lf_if_end(k, &blocks);
    }
}

unsigned lf_pass_reductions(const lf_kernel *k, unsigned pass, lf_stmt_id *out, unsigned most) {
    unsigned n = 0;
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        if (k->loop->stmts[i].kind == LF_STMT_REDUCE && k->loop->stmts[i].level == pass + 1 && n < most) out[n++] = i;
    return n;
}

void lf_emit_column_effects(lf_kernel *k, unsigned pass) {
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (s->column && s->level == pass && has_effect(s)) lf_emit_statement(k, i);
    }
}

void lf_set_reduced(lf_kernel *k, lf_stmt_id id, lf_partial p) {
    k->registers[(size_t)id * LF_MAX_LANES] = lf_reduced(k, &k->loop->stmts[id], p);
    k->ready[id] = true;
}
