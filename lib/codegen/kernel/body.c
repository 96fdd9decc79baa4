// The body of a kernel: argument words, indices and statements, for every target alike. Loads and stores are in memory.c.
#include "codegen/kernel/kernel.h"
#include <string.h>

enum { KEPT_WORDS = sizeof((lf_kernel *)0)->v_words / sizeof(LLVMValueRef) };

LLVMValueRef lf_i64_const(lf_kernel *k, int64_t v) { return LLVMConstInt(k->l_i64, (unsigned long long)v, true); }

LLVMBasicBlockRef lf_block(lf_kernel *k, const char *name) {
    return LLVMAppendBasicBlockInContext(k->e->context, k->v_function, name);
}

static bool make_copy(lf_kernel *k, lf_copy *copy) {
    const lf_allocator *a = k->l->allocator;
    const lf_loop *loop = k->loop;
    copy->registers = lf_alloc_zero(a, sizeof(lf_register) * loop->n_stmts * LF_MAX_LANES);
    copy->ready = lf_alloc_zero(a, loop->n_stmts);
    copy->v_row_base = lf_alloc_zero(a, sizeof(LLVMValueRef) * loop->n_accesses);
    if (copy->registers && copy->ready && copy->v_row_base) return true;
    lf_free(a, copy->registers); // all or nothing: a copy that is asked for again must not look as if it were there
    lf_free(a, copy->ready);
    lf_free(a, copy->v_row_base);
    copy->registers = NULL, copy->ready = NULL, copy->v_row_base = NULL;
    return false;
}

static void out_of_memory(lf_kernel *k) {
    lf_status_destroy(k->e->status);
    k->e->status = lf_out_of_memory();
}

void lf_kernel_use_copy(lf_kernel *k, unsigned copy) {
    lf_copy *c = &k->copies[copy];
    if (!c->ready && !k->e->status && !make_copy(k, c)) out_of_memory(k);
    k->at = c->ready ? c : &k->copies[0]; // after a failure, what is emitted into the wrong copy is thrown away
}

lf_copy *lf_row_copy(lf_kernel *k) {
    size_t at = (size_t)(k->at - k->copies);
    return &k->copies[k->row_copies ? at - at % k->row_copies : 0];
}

// Where a statement's registers are: what belongs to a row is shared by all copies of its columns.
static lf_copy *home(lf_kernel *k, lf_stmt_id id) {
    if (k->once[id]) return &k->copies[0];
    return k->loop->cols && !k->loop->stmts[id].column ? lf_row_copy(k) : k->at;
}

static lf_register *registers_of(lf_kernel *k, lf_stmt_id id) { return &home(k, id)->registers[(size_t)id * LF_MAX_LANES]; }

static bool *ready_of(lf_kernel *k, lf_stmt_id id) { return &home(k, id)->ready[id]; }

// By how much an i64 grows from lane to lane: 0, 1, or UNKNOWN; and whether it is a multiple of the lanes in lane 0. (Where vectors are
// taken, one begins at a multiple of its lanes, and the extent of their axis is one too.)
enum { UNKNOWN = 2 };
static unsigned growth(const lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    if (!k->varies[id]) return 0;
    if (s->kind == LF_STMT_INDEX) return 1;
    if (s->kind != LF_STMT_SIMPLE || s->compute != LF_I64 || (s->code != LF_OP_ADD && s->code != LF_OP_SUB)) return UNKNOWN;
    unsigned a = growth(k, s->args[0]), b = growth(k, s->args[1]);
    return s->code == LF_OP_ADD && a + b <= 1 ? a + b : s->code == LF_OP_SUB && b == 0 ? a : UNKNOWN;
}

bool lf_grows_by_one(const lf_kernel *k, lf_stmt_id id) { return growth(k, id) == 1; }

bool lf_is_multiple(const lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    if (s->kind == LF_STMT_INDEX) return k->varies[id];
    if (s->kind == LF_STMT_CONST) return s->dtype == LF_I64 && s->constant.word[0] % k->lanes == 0;
    if (s->kind == LF_STMT_SCALAR)
        return k->vector_axis < LF_MAX_AXES && k->loop->scalars[s->number] == k->loop->extents[k->vector_axis];
    if (s->kind != LF_STMT_SIMPLE || s->compute != LF_I64) return false;
    if (s->code == LF_OP_MUL) return lf_is_multiple(k, s->args[0]) || lf_is_multiple(k, s->args[1]);
    return (s->code == LF_OP_ADD || s->code == LF_OP_SUB) && lf_is_multiple(k, s->args[0]) && lf_is_multiple(k, s->args[1]);
}

// i < n or i >= n where i grows by one from lane to lane, and both begin at multiples of the lanes: the same in all lanes of a vector.
static bool is_same_in_lanes(const lf_kernel *k, const lf_stmt *s) {
    if (s->kind != LF_STMT_SIMPLE || s->compute != LF_I64 || k->lanes == 1 || s->code < LF_OP_LT || s->code > LF_OP_GE)
        return false;
    bool from_left = s->code == LF_OP_LT || s->code == LF_OP_GE;
    return growth(k, s->args[!from_left]) == 1 && growth(k, s->args[from_left]) == 0 && lf_is_multiple(k, s->args[0]) &&
           lf_is_multiple(k, s->args[1]);
}

// Does not depend on the axis that vectors are stacked along, and has no effect.
static bool is_once(const lf_kernel *k, const lf_stmt *s) {
    if (s->kind == LF_STMT_STORE || s->kind == LF_STMT_DELIVER) return false;
    if (s->kind == LF_STMT_INDEX && s->number == k->cls.chunks) return false;
    if (s->kind == LF_STMT_LOAD && (s->number >= LFUSER_ABI_TILED_ACCESSES || !(k->cls.tiled >> s->number & 1)))
        return false;
    for (unsigned n = 0; n < s->n_args; n++)
        if (s->args[n] != LF_NO_STMT && !k->once[s->args[n]]) return false;
    return s->guard == LF_NO_STMT || k->once[s->guard];
}

lf_status lf_kernel_begin(lf_kernel *k, LLVMTypeRef function_type) {
    LLVMContextRef c = k->e->context;
    const lf_loop *loop = k->loop;
    k->l_i64 = LLVMInt64TypeInContext(c);
    k->l_i32 = LLVMInt32TypeInContext(c);
    k->l_pointer = LLVMPointerTypeInContext(c, k->gpu ? 1 : 0);
    k->rows = k->cls.rows < loop->rows ? k->cls.rows : loop->rows;
    k->cols = k->cls.cols < loop->cols ? k->cls.cols : loop->cols;
    const lf_allocator *a = k->l->allocator;
    k->at = &k->copies[0];
    k->varies = lf_alloc_zero(a, 4 * (size_t)loop->n_stmts);
    k->marks[0] = k->varies + loop->n_stmts;
    k->marks[1] = k->varies + 2 * (size_t)loop->n_stmts;
    k->once = k->varies + 3 * (size_t)loop->n_stmts;
    if (!k->varies || !make_copy(k, k->at)) return lf_out_of_memory();
    k->v_function = LLVMAddFunction(k->e->module, "kernel", function_type);
    k->v_args = LLVMGetParam(k->v_function, 0);
    LLVMSetValueName2(k->v_args, "args", 4);
    k->b_entry = lf_block(k, "entry");
    LLVMPositionBuilderAtEnd(k->e->builder, k->b_entry);
    // A statement differs between lanes when it depends on the vector axis.
    bool outer = k->cls.shape == LFUSER_ABI_OUTER;
    unsigned innermost = loop->cols && !outer ? loop->rows + loop->cols - 1u : loop->rows ? loop->rows - 1u : LF_MAX_AXES;
    k->vector_axis = innermost;
    for (uint32_t i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        for (unsigned n = 0; n < s->n_args; n++) k->varies[i] |= s->args[n] != LF_NO_STMT && k->varies[s->args[n]];
        if (s->guard != LF_NO_STMT) k->varies[i] |= k->varies[s->guard];
        if (s->kind == LF_STMT_INDEX && s->number == innermost) k->varies[i] = true;
        if (s->kind == LF_STMT_LOAD && innermost < LF_MAX_AXES && loop->accesses[s->number].strides[innermost])
            k->varies[i] = true;
        if ((s->kind == LF_STMT_REDUCE && !outer) || is_same_in_lanes(k, s)) k->varies[i] = false;
        if (s->kind == LF_STMT_SCAN || s->kind == LF_STMT_SCAN_POSITION) k->varies[i] = true;
        k->once[i] = k->cls.shape == LFUSER_ABI_STACK && is_once(k, s);
    }
    return NULL;
}

void lf_kernel_finish(lf_kernel *k) {
    const lf_allocator *a = k->l->allocator;
    lf_free(a, k->varies);
    lf_free(a, k->staged_at);
    for (unsigned i = 0; i < LF_MAX_COPIES; i++) {
        lf_free(a, k->copies[i].registers);
        lf_free(a, k->copies[i].ready);
        lf_free(a, k->copies[i].v_row_base);
    }
}

// In the entry block, so that one load serves the whole kernel.
LLVMValueRef lf_word(lf_kernel *k, uint32_t word) {
    if (word < KEPT_WORDS && k->v_words[word]) return k->v_words[word];
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(b);
    LLVMValueRef v_end = LLVMGetBasicBlockTerminator(k->b_entry);
    if (v_end)
        LLVMPositionBuilderBefore(b, v_end);
    else
        LLVMPositionBuilderAtEnd(b, k->b_entry);
    LLVMValueRef v_index = lf_i64_const(k, word);
    LLVMValueRef v_address = LLVMBuildInBoundsGEP2(b, k->l_i64, k->v_args, &v_index, 1, "");
    LLVMValueRef v = LLVMBuildLoad2(b, k->l_i64, v_address, "word");
    LLVMSetAlignment(v, 8);
    LLVMContextRef c = k->e->context;
    LLVMSetMetadata(v, LLVMGetMDKindIDInContext(c, "invariant.load", 14),
                    LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, NULL, 0)));
    if (b_here != k->b_entry)
        LLVMPositionBuilderAtEnd(b, b_here);
    else
        LLVMPositionBuilderAtEnd(b, k->b_entry);
    if (word < KEPT_WORDS) k->v_words[word] = v;
    return v;
}

LLVMValueRef lf_alloca(lf_kernel *k, LLVMTypeRef type, const char *name) {
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(b);
    LLVMValueRef v_first = LLVMGetFirstInstruction(k->b_entry);
    if (v_first)
        LLVMPositionBuilderBefore(b, v_first);
    else
        LLVMPositionBuilderAtEnd(b, k->b_entry);
    LLVMValueRef v = LLVMBuildAlloca(b, type, name);
    LLVMPositionBuilderAtEnd(b, b_here);
    return v;
}

// ---- indices -------------------------------------------------------------------------------------------------------------------

static LLVMValueRef extent_of(lf_kernel *k, unsigned axis) {
    int64_t extent;
    if (k->gpu && lf_loop_fixed_extent(k->loop, axis, &extent)) return lf_i64_const(k, extent);
    return lf_word(k, k->loop->extents_word + axis);
}
LLVMValueRef lf_row_extent(lf_kernel *k, unsigned walked) { return extent_of(k, lf_row_axis(k, walked)); }
LLVMValueRef lf_column_extent(lf_kernel *k, unsigned walked) { return extent_of(k, lf_column_axis(k, walked)); }

LLVMValueRef lf_columns(lf_kernel *k) {
    LLVMValueRef v = lf_i64_const(k, 1);
    for (unsigned c = 0; c < k->cols; c++)
        v = c ? LLVMBuildMul(k->e->builder, v, lf_column_extent(k, c), "columns") : lf_column_extent(k, 0);
    return v;
}

void lf_split_index(lf_kernel *k, LLVMValueRef v_linear, unsigned n, LLVMValueRef (*extent)(lf_kernel *, unsigned),
                    LLVMValueRef *out) {
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

void lf_kernel_begin_row(lf_kernel *k) {
    unsigned first = (unsigned)(lf_row_copy(k) - k->copies), n = k->row_copies ? k->row_copies : LF_MAX_COPIES;
    for (unsigned i = first; i < first + n; i++)
        if (k->copies[i].ready && (k->loop->cols || k->at == &k->copies[i])) memset(k->copies[i].ready, 0, k->loop->n_stmts);
    lf_set_row_addresses(k);
}

void lf_kernel_forget_columns(lf_kernel *k) {
    for (uint32_t i = 0; i < k->loop->n_stmts; i++)
        if (k->loop->stmts[i].column) k->at->ready[i] = false;
}

void lf_kernel_at_column(lf_kernel *k, LLVMValueRef v_number) {
    lf_kernel_forget_columns(k);
    lf_split_index(k, v_number, k->cols, lf_column_extent, k->at->v_column);
}

// ---- statements ----------------------------------------------------------------------------------------------------------------

lf_register lf_reg(lf_kernel *k, lf_stmt_id id, unsigned lane) {
    lf_register r = registers_of(k, id)[k->varies[id] ? lane : 0];
    if (r.re || !k->e->status) return r;
    // Not emitted for want of memory: whatever is made of it is thrown away.
    LLVMTypeRef l_type = lf_register_type(k->e, k->loop->stmts[id].dtype);
    return (lf_register){LLVMGetUndef(l_type), lf_is_complex(k->loop->stmts[id].dtype) ? LLVMGetUndef(l_type) : NULL};
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
    // The axes that a kernel looks at are never merged, and those before them are merged away from the front.
    const lf_copy *rows = k->loop->cols ? lf_row_copy(k) : k->at;
    bool row = s->number < k->loop->rows;
    LLVMValueRef v = row ? rows->v_row[s->number - lf_row_axis(k, 0)] : k->at->v_column[s->number - lf_column_axis(k, 0)];
    return (lf_register){lane ? LLVMBuildAdd(k->e->builder, v, lf_i64_const(k, lane), "") : v, NULL};
}

// The number that says that the value is there. Only where a launch may be replayed must it be told from the one before, which lies
// in the host's memory: to read that takes a GPU a microsecond.
static LLVMValueRef next_sequence(lf_kernel *k, LLVMValueRef v_address, LLVMValueRef v_slot) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_one = lf_i64_const(k, 1), v_numbers[2] = {v_one};
    LLVMValueRef v_flag = LLVMBuildAnd(b, v_address, lf_i64_const(k, LFUSER_ABI_MAILBOX_COUNTS), "counts");
    LLVMBasicBlockRef b_before[2] = {LLVMGetInsertBlock(b)};
    lf_if_blocks counts;
    lf_if_begin(k, &counts, LLVMBuildICmp(b, LLVMIntNE, v_flag, lf_i64_const(k, 0), ""), "replayed");
    LLVMValueRef v_last = LLVMBuildLoad2(b, k->l_i64, v_slot, "last");
    LLVMSetVolatile(v_last, true);
    v_numbers[1] = LLVMBuildAdd(b, v_last, v_one, "");
    b_before[1] = LLVMGetInsertBlock(b);
    lf_if_end(k, &counts);
    LLVMValueRef v_number = LLVMBuildPhi(b, k->l_i64, "sequence");
    LLVMAddIncoming(v_number, v_numbers, b_before, 2);
    return v_number;
}

// Value, then sequence with release order: the host reads them the other way round.
static void deliver(lf_kernel *k, const lf_stmt *s) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_address = lf_reg(k, s->args[1], 0).re, v_one = lf_i64_const(k, 1);
    LLVMValueRef v_aligned = LLVMBuildAnd(b, v_address, lf_i64_const(k, ~(uint64_t)LFUSER_ABI_MAILBOX_COUNTS), "");
    LLVMValueRef v_slot = LLVMBuildIntToPtr(b, v_aligned, k->l_pointer, "mailbox");
    LLVMValueRef v_number = next_sequence(k, v_address, v_slot);
    lf_emit_store(k->e, s->dtype, lf_reg(k, s->args[0], 0), LLVMBuildGEP2(b, k->l_i64, v_slot, &v_one, 1, "value"));
    LLVMValueRef v_store = LLVMBuildStore(b, v_number, v_slot);
    LLVMSetOrdering(v_store, LLVMAtomicOrderingRelease);
    LLVMSetAlignment(v_store, 8);
}

static void report_index_error(lf_kernel *k, const lf_stmt *s, unsigned lane) {
    LLVMBuilderRef b = k->e->builder;
    lf_if_blocks bad;
    lf_if_begin(k, &bad, LLVMBuildNot(b, lf_reg(k, s->args[0], lane).re, ""), "bad_index");
    LLVMValueRef v_word = LLVMBuildIntToPtr(b, lf_word(k, k->loop->error_word), k->l_pointer, "");
    LLVMBuildStore(b, lf_i64_const(k, s->number), v_word); // any writer will do: each tells of an error of this run
    lf_if_end(k, &bad);
}

static void arguments(lf_kernel *k, const lf_stmt *s, unsigned lane, lf_register *out) {
    for (unsigned i = 0; i < s->n_args; i++)
        out[i] = s->args[i] == LF_NO_STMT ? (lf_register){NULL, NULL} : lf_reg(k, s->args[i], lane);
}

// A row's f32 by a scalar of all rows, as in a mean. Threads wait for it after they have met, and division takes long.
static bool divides_by_scalar(const lf_kernel *k, const lf_stmt *s) {
    return k->gpu && !s->column && s->kind == LF_STMT_ELEM && s->code == LF_OP_DIV && s->dtype == LF_F32 &&
           s->compute == LF_F32 && k->loop->stmts[s->args[1]].kind == LF_STMT_SCALAR;
}

// LLVM would rather do both and choose.
static void rarely_second(lf_kernel *k, LLVMValueRef v_branch) {
    LLVMContextRef c = k->e->context;
    LLVMMetadataRef weights[] = {LLVMMDStringInContext2(c, "branch_weights", 14),
                                 LLVMValueAsMetadata(LLVMConstInt(k->l_i32, 4000, false)),
                                 LLVMValueAsMetadata(LLVMConstInt(k->l_i32, 1, false))};
    LLVMSetMetadata(v_branch, LLVMGetMDKindIDInContext(c, "prof", 4),
                    LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, weights, 3)));
}

// By a power of two it is a product of the same bits (the reciprocal is exact, and either is rounded once); in fast mode by anything.
static lf_register quotient(lf_kernel *k, LLVMValueRef v_a, LLVMValueRef v_n) {
    LLVMBuilderRef b = k->e->builder;
    LLVMTypeRef l_f32 = LLVMTypeOf(v_n);
    LLVMValueRef v_reciprocal = LLVMBuildFDiv(b, LLVMConstReal(l_f32, 1), v_n, "reciprocal");
    LLVMValueRef v_product = LLVMBuildFMul(b, v_a, v_reciprocal, "quotient");
    if (k->e->fast) return (lf_register){v_product, NULL};
    LLVMValueRef v_digits =
        LLVMBuildAnd(b, LLVMBuildBitCast(b, v_n, k->l_i32, ""), LLVMConstInt(k->l_i32, 0x7fffff, false), "");
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(b), b_divide = lf_block(k, "divide"), b_done = lf_block(k, "divided");
    LLVMValueRef v_is_power = LLVMBuildICmp(b, LLVMIntEQ, v_digits, LLVMConstNull(k->l_i32), "");
    rarely_second(k, LLVMBuildCondBr(b, v_is_power, b_done, b_divide));
    LLVMPositionBuilderAtEnd(b, b_divide);
    LLVMValueRef v_divided = LLVMBuildFDiv(b, v_a, v_n, "");
    LLVMBuildBr(b, b_done);
    LLVMPositionBuilderAtEnd(b, b_done);
    LLVMValueRef v = LLVMBuildPhi(b, l_f32, "quotient");
    LLVMAddIncoming(v, (LLVMValueRef[]){v_product, v_divided}, (LLVMBasicBlockRef[]){b_before, b_divide}, 2);
    return (lf_register){v, NULL};
}

static lf_register emit_lane(lf_kernel *k, const lf_stmt *s, unsigned lane) {
    lf_register args[8] = {{NULL, NULL}};
    arguments(k, s, lane, args);
    switch (s->kind) {
    case LF_STMT_INDEX: return index_of(k, s, lane);
    case LF_STMT_SCALAR: return scalar_argument(k, s);
    case LF_STMT_CONST: return lf_emit_constant(k->e, s->dtype, &s->constant);
    case LF_STMT_ELEM:
        return divides_by_scalar(k, s) ? quotient(k, args[0].re, args[1].re) : lf_emit_elem(k->e, s->op, args);
    case LF_STMT_CAST: return lf_emit_cast(k->e, s->compute, s->dtype, args[0]);
    case LF_STMT_SIMPLE:
        if (s->code != LF_OP_SELECT) return lf_emit_simple(k->e, s->code, s->compute, args[0], args[1]);
        return lf_emit_select(k->e, args[0].re, args[1], args[2]);
    case LF_STMT_DELIVER: deliver(k, s); break;
    case LF_STMT_IOTA: return lf_emit_iota(k, s, args[0], args[1], args[2]);
    case LF_STMT_RANDOM: return lf_emit_random(k, s, args);
    case LF_STMT_INDEX_ERROR: report_index_error(k, s, lane); break;
    case LF_STMT_LOAD:
    case LF_STMT_STORE: break; // all lanes at once
    case LF_STMT_REDUCE:
    case LF_STMT_FOLD:
    case LF_STMT_SCAN:
    case LF_STMT_SCAN_POSITION:
    case LF_STMT_SORTED: break; // their registers are set by whoever walks the columns
    }
    return (lf_register){NULL, NULL};
}

// One Philox block serves four lanes.
static bool draw_lanes(lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    if (s->kind != LF_STMT_RANDOM || !k->varies[id] || !lf_random_shares(k, s)) return false;
    for (unsigned i = 0; i + 1 < LF_RANDOM_ARGS; i++)
        if (k->varies[s->args[i]]) return false;
    lf_register args[LF_MAX_LANES][LF_RANDOM_ARGS];
    for (unsigned lane = 0; lane < k->lanes; lane++)
        for (unsigned i = 0; i < LF_RANDOM_ARGS; i++) args[lane][i] = lf_reg(k, s->args[i], lane);
    lf_emit_random_lanes(k, s, args, registers_of(k, id));
    return true;
}

static void emit_one(lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    *ready_of(k, id) = true;
    if (draw_lanes(k, id)) return;
    if (s->kind == LF_STMT_LOAD || s->kind == LF_STMT_STORE) {
        lf_emit_memory(k, id, registers_of(k, id));
        return;
    }
    if ((s->kind == LF_STMT_ELEM || s->kind == LF_STMT_SIMPLE) && k->varies[id]) {
        lf_register args[LF_MAX_LANES][LF_EMIT_OPERANDS] = {0};
        for (unsigned lane = 0; lane < k->lanes; lane++) arguments(k, s, lane, args[lane]);
        if (s->kind == LF_STMT_ELEM) {
            lf_emit_elem_lanes(k->e, s->op, args, k->lanes, registers_of(k, id));
            return;
        }
        if (s->compute == s->dtype && lf_emit_pairs(k->e, s->code, s->dtype, args, k->lanes, registers_of(k, id))) return;
    }
    for (unsigned lane = 0; lane < (k->varies[id] ? k->lanes : 1u); lane++)
        registers_of(k, id)[lane] = emit_lane(k, s, lane);
}

// Statements are in order of definition, so one sweep from the last marks what the marked ones need and have not got.
static void mark_operands(lf_kernel *k, bool *needed) {
    for (lf_stmt_id i = k->loop->n_stmts; i-- > 0;) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (!needed[i] || *ready_of(k, i)) continue;
        for (unsigned n = 0; n < s->n_args; n++)
            if (s->args[n] != LF_NO_STMT) needed[s->args[n]] = true;
        if (s->guard != LF_NO_STMT) needed[s->guard] = true;
    }
}

// Emission goes on where memory is short, so it needs none of its own: a register that is missing has no type to stand in for.
static bool *no_statements(lf_kernel *k, unsigned which) { return memset(k->marks[which], 0, k->loop->n_stmts); }

void lf_emit_statement(lf_kernel *k, lf_stmt_id id) {
    if (*ready_of(k, id)) return;
    bool *needed = no_statements(k, 0);
    needed[id] = true;
    mark_operands(k, needed);
    for (lf_stmt_id i = 0; i <= id; i++)
        if (needed[i] && !*ready_of(k, i)) emit_one(k, i);
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

// Needed by some column or reduction.
static void mark_for_columns(const lf_kernel *k, bool *needed) {
    for (lf_stmt_id i = k->loop->n_stmts; i-- > 0;) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (!needed[i] && !s->column && s->kind != LF_STMT_REDUCE) continue;
        for (unsigned n = 0; n < s->n_args; n++)
            if (s->args[n] != LF_NO_STMT) needed[s->args[n]] = true;
        if (s->guard != LF_NO_STMT) needed[s->guard] = true;
    }
}

void lf_emit_rows_for_columns(lf_kernel *k, unsigned level) {
    bool *needed = no_statements(k, 1);
    mark_for_columns(k, needed);
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = &k->loop->stmts[i];
        bool loads = s->kind == LF_STMT_LOAD && s->guard == LF_NO_STMT && !s->n_args;
        if (!s->column && s->level == level && !has_effect(s) && s->kind != LF_STMT_REDUCE && (needed[i] || loads))
            lf_emit_statement(k, i);
    }
}

void lf_emit_row_loads(lf_kernel *k, unsigned level) {
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        if (!k->loop->stmts[i].column && k->loop->stmts[i].level <= level && k->loop->stmts[i].kind == LF_STMT_LOAD)
            lf_emit_statement(k, i);
}

unsigned lf_pass_reductions(const lf_kernel *k, unsigned pass, lf_stmt_id *out, unsigned most) {
    unsigned n = 0;
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        if (k->loop->stmts[i].kind == LF_STMT_REDUCE && k->loop->stmts[i].level == pass + 1 && n < most) out[n++] = i;
    return n;
}

static bool is_effect_of(const lf_kernel *k, lf_stmt_id id, unsigned pass) {
    const lf_stmt *s = &k->loop->stmts[id];
    return has_effect(s) && (k->loop->cols ? s->column && s->level == pass : true);
}

// Some load is from memory that an output goes `into`, where an element may be written over the one that is read.
static bool reads_what_is_written(const lf_kernel *k) {
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        if (k->loop->stmts[i].kind == LF_STMT_LOAD && k->loop->accesses[k->loop->stmts[i].number].written) return true;
    return false;
}

void lf_emit_column_effects(lf_kernel *k, unsigned pass) {
    if (reads_what_is_written(k)) lf_emit_effect_operands(k, pass);
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        if (is_effect_of(k, i, pass)) lf_emit_statement(k, i);
}

void lf_emit_effect_operands(lf_kernel *k, unsigned pass) {
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (!is_effect_of(k, i, pass)) continue;
        for (unsigned n = 0; n < s->n_args; n++)
            if (s->args[n] != LF_NO_STMT) lf_emit_statement(k, s->args[n]);
        if (s->guard != LF_NO_STMT) lf_emit_statement(k, s->guard);
    }
}

// Marks what a pass needs and has not got yet.
static void mark_pass(lf_kernel *k, unsigned pass, bool *needed) {
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = &k->loop->stmts[i];
        needed[i] = is_effect_of(k, i, pass) || (s->kind == LF_STMT_REDUCE && s->level == pass + 1) ||
                    (s->kind == LF_STMT_FOLD && s->level == pass);
    }
    mark_operands(k, needed);
}

void lf_emit_loads(lf_kernel *k, const unsigned *copies, unsigned n_copies, unsigned pass) {
    bool *needed = no_statements(k, 0), *wanted = no_statements(k, 1);
    lf_kernel_use_copy(k, copies ? copies[0] : 0);
    mark_pass(k, pass, needed);
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) wanted[i] = needed[i] && k->loop->stmts[i].kind == LF_STMT_LOAD;
    mark_operands(k, wanted);
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        for (unsigned c = 0; wanted[i] && c < n_copies; c++) {
            lf_kernel_use_copy(k, copies ? copies[c] : c);
            if (!*ready_of(k, i)) emit_one(k, i);
        }
    lf_kernel_use_copy(k, 0);
}

unsigned lf_loaded_registers(lf_kernel *k, unsigned pass) {
    bool *needed = no_statements(k, 0);
    unsigned bytes = 0;
    mark_pass(k, pass, needed);
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        if (needed[i] && !*ready_of(k, i) && k->loop->stmts[i].kind == LF_STMT_LOAD)
            bytes += k->lanes * lf_dtype_bytes(k->loop->stmts[i].dtype);
    return (bytes + 3) / 4;
}

void lf_set_reduced(lf_kernel *k, lf_stmt_id id, unsigned lane, lf_partial p) {
    registers_of(k, id)[lane] = lf_reduced(k, &k->loop->stmts[id], p);
    *ready_of(k, id) = true;
}
