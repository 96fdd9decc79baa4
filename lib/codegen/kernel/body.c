// The body of a kernel: argument words, indices, addresses and statements, for every target alike.
#include "codegen/kernel/kernel.h"
#include <string.h>

enum { KEPT_WORDS = sizeof((lf_kernel *)0)->v_words / sizeof(LLVMValueRef) };

LLVMValueRef lf_i64_const(lf_kernel *k, int64_t v) { return LLVMConstInt(k->l_i64, (unsigned long long)v, true); }

LLVMBasicBlockRef lf_block(lf_kernel *k, const char *name) { return LLVMAppendBasicBlockInContext(k->e->context, k->v_function, name); }

static bool make_copy(lf_kernel *k, lf_copy *copy) {
    const lf_allocator *a = k->l->allocator;
    const lf_loop *loop = k->loop;
    copy->registers = lf_alloc_zero(a, sizeof(lf_register) * loop->n_stmts * LF_MAX_LANES);
    copy->ready = lf_alloc_zero(a, loop->n_stmts);
    copy->v_row_base = lf_alloc_zero(a, sizeof(LLVMValueRef) * loop->n_accesses);
    if (copy->registers && copy->ready && copy->v_row_base) return true;
    lf_free(a, copy->registers);  // all or nothing: a copy that is asked for again must not look as if it were there
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
    k->at = c->ready ? c : &k->copies[0];  // after a failure, what is emitted into the wrong copy is thrown away
}

// Where a statement's registers are: what belongs to a row is shared by all copies of its columns.
static lf_copy *home(lf_kernel *k, lf_stmt_id id) {
    return k->loop->cols && !k->loop->stmts[id].column ? &k->copies[0] : k->at;
}

static lf_register *registers_of(lf_kernel *k, lf_stmt_id id) { return &home(k, id)->registers[(size_t)id * LF_MAX_LANES]; }

static bool *ready_of(lf_kernel *k, lf_stmt_id id) { return &home(k, id)->ready[id]; }

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
    k->varies = lf_alloc_zero(a, 3 * (size_t)loop->n_stmts);
    k->marks[0] = k->varies + loop->n_stmts;
    k->marks[1] = k->varies + 2 * (size_t)loop->n_stmts;
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
        if (s->kind == LF_STMT_LOAD && innermost < LF_MAX_AXES && loop->accesses[s->number].strides[innermost]) k->varies[i] = true;
        if (s->kind == LF_STMT_REDUCE && !outer) k->varies[i] = false;
    }
    return NULL;
}

void lf_kernel_finish(lf_kernel *k) {
    const lf_allocator *a = k->l->allocator;
    lf_free(a, k->varies);
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

static bool is_tiled(const lf_kernel *k, const lf_access *access) {
    size_t number = (size_t)(access - k->loop->accesses);
    return number < LFUSER_ABI_TILED_ACCESSES && k->cls.tiled >> number & 1;
}

// The stride along the vector axis is known while compiling: NULL for 0.
static LLVMValueRef stride_of(lf_kernel *k, const lf_access *access, unsigned axis) {
    if (axis != k->vector_axis || k->cls.vector <= 1 || is_tiled(k, access)) return lf_word(k, access->word + 1 + axis);
    return access->strides[axis] ? lf_i64_const(k, 1) : NULL;
}

static LLVMValueRef step_along(lf_kernel *k, const lf_access *access, LLVMValueRef v_pointer, unsigned axis, LLVMValueRef v_index) {
    LLVMValueRef v_stride = stride_of(k, access, axis);
    return v_stride ? advance(k, access, v_pointer, scaled(k, v_index, v_stride)) : v_pointer;
}

// The address of an access for the current row, its columns aside. Done once a row, in the row's block.
void lf_kernel_begin_row(lf_kernel *k) {
    LLVMBuilderRef b = k->e->builder;
    for (unsigned i = 0; i < LF_MAX_COPIES; i++)
        if (k->copies[i].ready && (k->loop->cols || k->at == &k->copies[i])) memset(k->copies[i].ready, 0, k->loop->n_stmts);
    for (uint32_t i = 0; i < k->loop->n_accesses; i++) {
        const lf_access *access = &k->loop->accesses[i];
        LLVMValueRef v = LLVMBuildIntToPtr(b, lf_word(k, access->word), k->l_pointer, "");
        for (unsigned r = 0; r < k->rows; r++) v = step_along(k, access, v, row_axis(k, r), k->at->v_row[r]);
        k->at->v_row_base[i] = v;
    }
}

void lf_kernel_forget_columns(lf_kernel *k) {
    for (uint32_t i = 0; i < k->loop->n_stmts; i++)
        if (k->loop->stmts[i].column) k->at->ready[i] = false;
}

// ---- statements ----------------------------------------------------------------------------------------------------------------

lf_register lf_reg(lf_kernel *k, lf_stmt_id id, unsigned lane) {
    lf_register r = registers_of(k, id)[k->varies[id] ? lane : 0];
    if (r.re || !k->e->status) return r;
    // Not emitted for want of memory: whatever is made of it is thrown away.
    LLVMTypeRef l_type = lf_register_type(k->e, k->loop->stmts[id].dtype);
    return (lf_register){LLVMGetUndef(l_type), lf_is_complex(k->loop->stmts[id].dtype) ? LLVMGetUndef(l_type) : NULL};
}

void lf_mark_parallel(lf_kernel *k, LLVMValueRef v_access) {
    if (!k->parallel_group || !v_access) return;
    LLVMContextRef c = k->e->context;
    LLVMSetMetadata(v_access, LLVMGetMDKindIDInContext(c, "llvm.access.group", 17), LLVMMetadataAsValue(c, k->parallel_group));
}

void lf_mark_invariant(lf_kernel *k, const lf_access *access, LLVMValueRef v_load) {
    // Loads of later passes would be moved before the first, and take its registers: measured, a third of layer_norm's speed.
    if (!k->gpu || access->written || k->loads_stay || k->loop->passes > 1) return;
    LLVMContextRef c = k->e->context;
    LLVMSetMetadata(v_load, LLVMGetMDKindIDInContext(c, "invariant.load", 14), LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, NULL, 0)));
}

static LLVMValueRef address_of(lf_kernel *k, uint32_t number, const lf_stmt *s, unsigned lane, bool whole_vector) {
    const lf_access *access = &k->loop->accesses[number];
    LLVMValueRef v = (k->loop->cols ? &k->copies[0] : k->at)->v_row_base[number];
    for (unsigned c = 0; c < k->cols && !access->row; c++) v = step_along(k, access, v, column_axis(k, c), k->at->v_column[c]);
    uint32_t term_word = access->word + 1u + k->loop->rows + k->loop->cols;
    for (unsigned t = 0; s->kind == LF_STMT_LOAD && t < access->n_terms; t++)
        v = advance(k, access, v, LLVMBuildMul(k->e->builder, lf_reg(k, s->args[t], lane).re, lf_word(k, term_word + t), ""));
    if (lane && !whole_vector && k->vector_axis < LF_MAX_AXES && access->strides[k->vector_axis])
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
        if (LLVMIsALoadInst(v)) lf_mark_invariant(k, access, v);
        if (LLVMIsALoadInst(v) || LLVMIsAStoreInst(v)) lf_mark_parallel(k, v);
    }
}

static bool is_whole_vector(const lf_kernel *k, const lf_stmt *s) {
    if (k->lanes == 1 || k->loop->accesses[s->number].n_terms) return false;
    if (s->kind == LF_STMT_STORE && s->guard != LF_NO_STMT) return false;
    return k->loop->accesses[s->number].strides[k->vector_axis];
}

// ---- all lanes of a contiguous access by one instruction ---------------------------------------------------------------------------

// Elements of two bytes go through memory in pairs, as 32-bit words: taking a word apart is one instruction a lane, or none.
static bool is_paired(const lf_kernel *k, const lf_stmt *s) { return lf_dtype_bytes(s->dtype) == 2 && k->lanes % 2 == 0; }

static LLVMTypeRef part_type(lf_kernel *k, const lf_stmt *s) {
    if (is_paired(k, s)) return k->l_i32;
    return lf_is_complex(s->dtype) ? lf_register_type(k->e, s->dtype) : lf_memory_type(k->e, s->dtype);
}

static LLVMTypeRef vector_type(lf_kernel *k, const lf_stmt *s) {
    unsigned parts = is_paired(k, s) ? k->lanes / 2 : lf_is_complex(s->dtype) ? 2 * k->lanes : k->lanes;
    return LLVMVectorType(part_type(k, s), parts);
}

static LLVMValueRef part_of(lf_kernel *k, LLVMValueRef v_vector, unsigned part) {
    return LLVMBuildExtractElement(k->e->builder, v_vector, LLVMConstInt(k->l_i32, part, false), "");
}

static void take_apart(lf_kernel *k, const lf_stmt *s, LLVMValueRef v_vector, lf_register *out) {
    LLVMBuilderRef b = k->e->builder;
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        lf_register *r = &out[lane];
        *r = (lf_register){NULL, NULL};
        if (is_paired(k, s)) {
            LLVMValueRef v_word = part_of(k, v_vector, lane / 2);
            if (lane % 2) v_word = LLVMBuildLShr(b, v_word, LLVMConstInt(k->l_i32, 16, false), "");
            r->re = LLVMBuildTrunc(b, v_word, LLVMInt16TypeInContext(k->e->context), "");
        } else if (lf_is_complex(s->dtype)) {
            *r = (lf_register){part_of(k, v_vector, 2 * lane), part_of(k, v_vector, 2 * lane + 1)};
        } else {
            r->re = part_of(k, v_vector, lane);
            if (s->dtype == LF_BOOL) r->re = LLVMBuildICmp(b, LLVMIntNE, r->re, LLVMConstNull(part_type(k, s)), "");
        }
    }
}

static LLVMValueRef with_part(lf_kernel *k, LLVMValueRef v_vector, unsigned part, LLVMValueRef v) {
    return LLVMBuildInsertElement(k->e->builder, v_vector, v, LLVMConstInt(k->l_i32, part, false), "");
}

static LLVMValueRef put_together(lf_kernel *k, const lf_stmt *s, const lf_register *lanes) {
    LLVMValueRef v = LLVMGetUndef(vector_type(k, s));
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        lf_register r = lanes[lane];
        if (is_paired(k, s)) {
            if (lane % 2) v = with_part(k, v, lane / 2, lf_emit_pack_halves(k->e, lanes[lane - 1].re, r.re));
        } else if (lf_is_complex(s->dtype)) {
            v = with_part(k, with_part(k, v, 2 * lane, r.re), 2 * lane + 1, r.im);
        } else {
            if (s->dtype == LF_BOOL) r.re = LLVMBuildZExt(k->e->builder, r.re, part_type(k, s), "");
            v = with_part(k, v, lane, r.re);
        }
    }
    return v;
}

static LLVMValueRef load_vector(lf_kernel *k, const lf_stmt *s) {
    LLVMValueRef v = LLVMBuildLoad2(k->e->builder, vector_type(k, s), address_of(k, s->number, s, 0, true), "vector");
    LLVMSetAlignment(v, k->lanes * lf_dtype_bytes(s->dtype));
    lf_mark_invariant(k, &k->loop->accesses[s->number], v);
    return v;
}

static void store_vector(lf_kernel *k, const lf_stmt *s) {
    lf_register lanes[LF_MAX_LANES];
    for (unsigned lane = 0; lane < k->lanes; lane++) lanes[lane] = lf_reg(k, s->args[0], lane);
    LLVMValueRef v_store = LLVMBuildStore(k->e->builder, put_together(k, s, lanes), address_of(k, s->number, s, 0, true));
    LLVMSetAlignment(v_store, k->lanes * lf_dtype_bytes(s->dtype));
}

// ---- guarded loads -------------------------------------------------------------------------------------------------------------------

typedef struct guarded {
    LLVMBasicBlockRef b_before, b_done;
} guarded;

// values = condition ? what is emitted between begin and end : otherwise
static void guarded_begin(lf_kernel *k, guarded *g, LLVMValueRef v_condition) {
    LLVMBuilderRef b = k->e->builder;
    g->b_before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef b_load = lf_block(k, "guarded");
    g->b_done = lf_block(k, "loaded");
    LLVMBuildCondBr(b, v_condition, b_load, g->b_done);
    LLVMPositionBuilderAtEnd(b, b_load);
}

static LLVMValueRef join(lf_kernel *k, LLVMBasicBlockRef *from, LLVMValueRef v_value, LLVMValueRef v_otherwise) {
    if (!v_value) return NULL;
    LLVMValueRef v = LLVMBuildPhi(k->e->builder, LLVMTypeOf(v_value), "");
    LLVMAddIncoming(v, (LLVMValueRef[]){v_value, v_otherwise}, from, 2);
    return v;
}

static lf_register guarded_end(lf_kernel *k, guarded *g, lf_register value, lf_register otherwise) {
    LLVMBasicBlockRef from[2] = {LLVMGetInsertBlock(k->e->builder), g->b_before};
    LLVMBuildBr(k->e->builder, g->b_done);
    LLVMPositionBuilderAtEnd(k->e->builder, g->b_done);
    return (lf_register){join(k, from, value.re, otherwise.re), join(k, from, value.im, otherwise.im)};
}

static lf_register zero_of(lf_kernel *k, lf_dtype d) {
    lf_scalar nothing = {0};
    return lf_emit_constant(k->e, d, &nothing);
}

static lf_register load_lane(lf_kernel *k, const lf_stmt *s, unsigned lane) {
    guarded g = {NULL, NULL};
    if (s->guard != LF_NO_STMT) guarded_begin(k, &g, lf_reg(k, s->guard, lane).re);
    LLVMValueRef v_address = address_of(k, s->number, s, lane, false);
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(k->e->builder);
    LLVMValueRef v_last = LLVMGetLastInstruction(b_here);
    lf_register r = lf_emit_load(k->e, s->dtype, v_address);
    mark_new(k, &k->loop->accesses[s->number], v_last, b_here);
    return s->guard != LF_NO_STMT ? guarded_end(k, &g, r, zero_of(k, s->dtype)) : r;
}

// i64 that goes up or down by the same amount from lane to lane.
static bool is_affine(const lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    if (!k->varies[id] || s->kind == LF_STMT_INDEX) return true;
    bool sum = s->kind == LF_STMT_SIMPLE && s->compute == LF_I64 && (s->code == LF_OP_ADD || s->code == LF_OP_SUB);
    return sum && is_affine(k, s->args[0]) && is_affine(k, s->args[1]);
}

static bool is_bound(const lf_kernel *k, const lf_stmt *s) {
    return s->kind == LF_STMT_SIMPLE && s->compute == LF_I64 && s->code >= LF_OP_LT && s->code <= LF_OP_GE && is_affine(k, s->args[0]) && is_affine(k, s->args[1]);
}

// True for neighbouring lanes only, as the conditions are that tell the parts of a cat or the inside of a pad.
static bool is_convex(const lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    if (!k->varies[id] || is_bound(k, s)) return true;
    return s->kind == LF_STMT_SIMPLE && s->code == LF_OP_AND && s->dtype == LF_BOOL && is_convex(k, s->args[0]) && is_convex(k, s->args[1]);
}

// False: the convex condition holds in no lane. True: it may hold in some.
static LLVMValueRef may_hold(lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    LLVMBuilderRef b = k->e->builder;
    if (!k->varies[id]) return lf_reg(k, id, 0).re;
    if (is_bound(k, s)) return LLVMBuildOr(b, lf_reg(k, id, 0).re, lf_reg(k, id, k->lanes - 1).re, "");
    return LLVMBuildAnd(b, may_hold(k, s->args[0]), may_hold(k, s->args[1]), "");
}

// Mostly all lanes are on one side of a guard: one vector load, or none. Where they are not, lane by lane. What meets behind the
// conditions is the vector, not its lanes, which would have to wait for it.
static LLVMValueRef load_guarded_vector(lf_kernel *k, const lf_stmt *s) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_all = lf_reg(k, s->guard, 0).re, v_any = v_all;
    bool convex = is_convex(k, s->guard);
    for (unsigned lane = convex ? k->lanes - 1 : 1; lane < k->lanes && k->varies[s->guard]; lane++) {
        v_all = LLVMBuildAnd(b, v_all, lf_reg(k, s->guard, lane).re, "");
        v_any = convex ? may_hold(k, s->guard) : LLVMBuildOr(b, v_any, lf_reg(k, s->guard, lane).re, "");
    }
    guarded all, some;
    guarded_begin(k, &all, v_all);
    lf_register whole = {load_vector(k, s), NULL}, none = {LLVMConstNull(vector_type(k, s)), NULL};
    whole = guarded_end(k, &all, whole, none);
    if (!k->varies[s->guard]) return whole.re;
    guarded_begin(k, &some, LLVMBuildAnd(b, v_any, LLVMBuildNot(b, v_all, ""), "apart"));
    lf_register lanes[LF_MAX_LANES];
    for (unsigned lane = 0; lane < k->lanes; lane++) lanes[lane] = load_lane(k, s, lane);
    lf_register apart = {put_together(k, s, lanes), NULL};
    return guarded_end(k, &some, apart, whole).re;
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
    // The axes that a kernel looks at are never merged, and those before them are merged away from the front.
    const lf_copy *rows = k->loop->cols ? &k->copies[0] : k->at;
    bool row = s->number < k->loop->rows;
    LLVMValueRef v = row ? rows->v_row[s->number - row_axis(k, 0)] : k->at->v_column[s->number - column_axis(k, 0)];
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

static void arguments(lf_kernel *k, const lf_stmt *s, unsigned lane, lf_register *out) {
    for (unsigned i = 0; i < s->n_args; i++) out[i] = s->args[i] == LF_NO_STMT ? (lf_register){NULL, NULL} : lf_reg(k, s->args[i], lane);
}

static lf_register emit_lane(lf_kernel *k, const lf_stmt *s, unsigned lane) {
    lf_register args[8] = {{NULL, NULL}};
    arguments(k, s, lane, args);
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
    bool memory = s->kind == LF_STMT_LOAD || s->kind == LF_STMT_STORE;
    *ready_of(k, id) = true;
    if (draw_lanes(k, id)) return;
    if (memory && is_whole_vector(k, s)) {
        if (s->kind == LF_STMT_STORE) store_vector(k, s);
        else take_apart(k, s, s->guard == LF_NO_STMT ? load_vector(k, s) : load_guarded_vector(k, s), registers_of(k, id));
        return;
    }
    if (s->kind == LF_STMT_ELEM && k->varies[id]) {
        lf_register args[LF_MAX_LANES][LF_EMIT_OPERANDS] = {0};
        for (unsigned lane = 0; lane < k->lanes; lane++) arguments(k, s, lane, args[lane]);
        lf_emit_elem_lanes(k->e, s->op, args, k->lanes, registers_of(k, id));
        return;
    }
    bool each = k->varies[id] || (k->lanes > 1 && s->kind == LF_STMT_STORE && k->loop->accesses[s->number].strides[k->vector_axis]);
    for (unsigned lane = 0; lane < (each ? k->lanes : 1u); lane++)
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
        needed[i] = is_effect_of(k, i, pass) || (s->kind == LF_STMT_REDUCE && s->level == pass + 1);
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
        if (needed[i] && !*ready_of(k, i) && k->loop->stmts[i].kind == LF_STMT_LOAD) bytes += k->lanes * lf_dtype_bytes(k->loop->stmts[i].dtype);
    return (bytes + 3) / 4;
}

void lf_set_reduced(lf_kernel *k, lf_stmt_id id, unsigned lane, lf_partial p) {
    registers_of(k, id)[lane] = lf_reduced(k, &k->loop->stmts[id], p);
    *ready_of(k, id) = true;
}
