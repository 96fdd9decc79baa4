// Loads and stores of a kernel: addresses from axes and explicit indices, all lanes of a contiguous access by one instruction, guards.
#include "codegen/kernel/kernel.h"
#include "codegen/llvm/streamed.h"
#include <string.h>

// ---- addresses -----------------------------------------------------------------------------------------------------------------------

static bool is_narrow(const lf_kernel *k) { return k->gpu && !k->cls.wide; }

// index * stride. In the 32-bit class both fit 32 bits, and the product is one wide multiply; a stride of 1 keeps what LLVM knows of the
// index. As i64, so that a loop over columns can step from one to the next.
static LLVMValueRef scaled(lf_kernel *k, LLVMValueRef v_index, LLVMValueRef v_stride) {
    LLVMBuilderRef b = k->e->builder;
    if (is_narrow(k) && !LLVMIsConstant(v_stride)) {
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
    if (axis != k->vector_axis || k->cls.vector <= 1 || is_tiled(k, access)) {
        uint32_t alike = lf_loop_alike(k->loop, (uint32_t)(access - k->loop->accesses));
        return lf_word(k, k->loop->accesses[alike].word + 1 + axis);
    }
    return access->strides[axis] ? lf_i64_const(k, 1) : NULL;
}

static LLVMValueRef step_along(lf_kernel *k, const lf_access *access, LLVMValueRef v_pointer, unsigned axis,
                               LLVMValueRef v_index) {
    LLVMValueRef v_stride = stride_of(k, access, axis);
    return v_stride ? advance(k, access, v_pointer, scaled(k, v_index, v_stride)) : v_pointer;
}

void lf_set_row_addresses(lf_kernel *k) {
    for (uint32_t i = 0; i < k->loop->n_accesses; i++) {
        const lf_access *access = &k->loop->accesses[i];
        LLVMValueRef v_base = LLVMBuildIntToPtr(k->e->builder, lf_word(k, access->word), k->l_pointer, ""), v_offset = NULL;
        bool steps = false; // the same for all rows by construction: loads of several rows are then seen to be one
        for (unsigned r = 0; r < k->loop->rows; r++) steps |= access->strides[r] != NULL;
        for (unsigned r = 0; r < k->rows && steps; r++) {
            LLVMValueRef v_stride = stride_of(k, access, lf_row_axis(k, r));
            if (!v_stride) continue;
            LLVMValueRef v_index = k->at->v_row[r];
            if (is_narrow(k)) { // as the sum of all does
                v_index = LLVMBuildTrunc(k->e->builder, v_index, k->l_i32, "");
                v_stride = LLVMBuildTrunc(k->e->builder, v_stride, k->l_i32, "");
            }
            LLVMValueRef v_step = LLVMBuildMul(k->e->builder, v_index, v_stride, "");
            v_offset = v_offset ? LLVMBuildAdd(k->e->builder, v_offset, v_step, "") : v_step;
        }
        // Accesses with the same strides share the offset.
        k->at->v_row_base[i] = v_offset ? advance(k, access, v_base, v_offset) : v_base;
    }
}

void lf_mark_parallel(lf_kernel *k, LLVMValueRef v_access) {
    if (!k->parallel_group || !v_access) return;
    LLVMContextRef c = k->e->context;
    LLVMSetMetadata(v_access, LLVMGetMDKindIDInContext(c, "llvm.access.group", 17),
                    LLVMMetadataAsValue(c, k->parallel_group));
}

void lf_mark_invariant(lf_kernel *k, const lf_access *access, LLVMValueRef v_load) {
    // Loads of later passes would be moved before the first, and take its registers: measured, a third of layer_norm's speed.
    if (!k->gpu || access->written || k->loads_stay || k->loop->passes > 1) return;
    LLVMContextRef c = k->e->context;
    LLVMSetMetadata(v_load, LLVMGetMDKindIDInContext(c, "invariant.load", 14),
                    LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, NULL, 0)));
}

static LLVMValueRef address_of(lf_kernel *k, uint32_t number, const lf_stmt *s, unsigned lane, bool whole_vector) {
    const lf_access *access = &k->loop->accesses[number];
    LLVMValueRef v = (k->loop->cols ? lf_row_copy(k) : k->at)->v_row_base[number];
    for (unsigned c = 0; c < k->cols && !access->row; c++)
        v = step_along(k, access, v, lf_column_axis(k, c), (k->at->beside ? &k->copies[0] : k->at)->v_column[c]);
    // One address for all copies, and distances that no loop changes: an add a load.
    if (k->at->beside && !access->row) v = step_along(k, access, v, lf_column_axis(k, 0), lf_i64_const(k, k->at->beside));
    uint32_t term_word = access->word + 1u + k->loop->rows + k->loop->cols;
    for (unsigned t = 0; s->kind == LF_STMT_LOAD && t < access->n_terms; t++)
        v = advance(k, access, v,
                    LLVMBuildMul(k->e->builder, lf_reg(k, s->args[t], lane).re, lf_word(k, term_word + t), ""));
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

// LLVM would load the halves of a word apart, and widening the upper one then takes two instructions.
static LLVMValueRef whole_word(lf_kernel *k, LLVMValueRef v_word) {
    static const char code[] = "mov.b32 $0, $1;", constraints[] = "=r,r";
    LLVMTypeRef l_call = LLVMFunctionType(k->l_i32, &k->l_i32, 1, false);
    LLVMValueRef v_asm = LLVMGetInlineAsm(l_call, code, sizeof code - 1, constraints, sizeof constraints - 1, true, false,
                                          LLVMInlineAsmDialectATT, false);
    return LLVMBuildCall2(k->e->builder, l_call, v_asm, &v_word, 1, "word");
}

// Between passes: what was loaded stays, in words, and what was made of it is forgotten, so that only words need registers.
void lf_kernel_keep_loads(lf_kernel *k) {
    LLVMBuilderRef b = k->e->builder;
    for (uint32_t i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (!s->column) continue;
        if (s->kind != LF_STMT_LOAD || !k->at->ready[i]) {
            k->at->ready[i] = false;
            continue;
        }
        lf_register *r = &k->at->registers[(size_t)i * LF_MAX_LANES];
        for (unsigned lane = 0; lane + 1 < k->lanes && lf_dtype_bytes(s->dtype) == 2; lane += 2) {
            if (!LLVMIsATruncInst(r[lane].re)) break;
            LLVMValueRef v_word = whole_word(k, LLVMGetOperand(r[lane].re, 0));
            LLVMTypeRef l_half = LLVMInt16TypeInContext(k->e->context);
            r[lane].re = LLVMBuildTrunc(b, v_word, l_half, "");
            r[lane + 1].re = LLVMBuildTrunc(b, LLVMBuildLShr(b, v_word, LLVMConstInt(k->l_i32, 16, false), ""), l_half, "");
        }
    }
}

static void take_apart(lf_kernel *k, const lf_stmt *s, LLVMValueRef v_vector, lf_register *out) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_word = NULL; // of the lane and the next one
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        lf_register *r = &out[lane];
        *r = (lf_register){NULL, NULL};
        if (is_paired(k, s)) {
            if (lane % 2 == 0) v_word = part_of(k, v_vector, lane / 2);
            if (lane % 2 == 0 && k->loop->folds) v_word = whole_word(k, v_word);
            r->re = lf_emit_half_of_pair(k->e, v_word, lane % 2);
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

LLVMValueRef lf_address_in_row(lf_kernel *k, uint32_t number, const LLVMValueRef *v_row) {
    const lf_access *access = &k->loop->accesses[number];
    LLVMValueRef v = LLVMBuildIntToPtr(k->e->builder, lf_word(k, access->word), k->l_pointer, "");
    for (unsigned r = 0; r < k->rows; r++) v = step_along(k, access, v, lf_row_axis(k, r), v_row[r]);
    for (unsigned c = 0; c < k->cols; c++) v = step_along(k, access, v, lf_column_axis(k, c), k->at->v_column[c]);
    return v;
}

bool lf_is_staged(const lf_kernel *k, uint32_t number) {
    return k->staged_at && k->staged_at[number] && (unsigned)(k->at - k->copies) < k->staged_copies;
}

// Vectors of one copy lie side by side, thread by thread.
LLVMValueRef lf_staged_address(lf_kernel *k, uint32_t number) {
    LLVMBuilderRef b = k->e->builder;
    unsigned bytes = k->lanes * lf_dtype_bytes(k->loop->accesses[number].dtype), copy = (unsigned)(k->at - k->copies);
    int64_t first = (int64_t)k->staged_at[number] - 1 + (int64_t)copy * k->staged_threads * bytes;
    LLVMValueRef v_at = LLVMBuildAdd(b, LLVMBuildMul(b, k->v_tid, lf_i64_const(k, bytes), ""), lf_i64_const(k, first), "");
    return LLVMBuildGEP2(b, LLVMInt8TypeInContext(k->e->context), k->v_stage, &v_at, 1, "");
}

bool lf_is_own(const lf_kernel *k, const lf_access *access) {
    if (access->row) return false;
    for (unsigned r = 0; r < k->loop->rows; r++)
        if (!access->strides[r]) return false;
    return true;
}

static LLVMValueRef load_vector(lf_kernel *k, const lf_stmt *s) {
    if (lf_is_staged(k, s->number)) {
        LLVMValueRef v = LLVMBuildLoad2(k->e->builder, vector_type(k, s), lf_staged_address(k, s->number), "staged");
        LLVMSetAlignment(v, k->lanes * lf_dtype_bytes(s->dtype));
        return v;
    }
    LLVMValueRef v = LLVMBuildLoad2(k->e->builder, vector_type(k, s), address_of(k, s->number, s, 0, true), "vector");
    LLVMSetAlignment(v, k->lanes * lf_dtype_bytes(s->dtype));
    lf_mark_invariant(k, &k->loop->accesses[s->number], v);
    if (k->streams && lf_is_own(k, &k->loop->accesses[s->number])) lf_mark_streamed(k->e, v);
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
    return s->kind == LF_STMT_SIMPLE && s->compute == LF_I64 && s->code >= LF_OP_LT && s->code <= LF_OP_GE &&
           is_affine(k, s->args[0]) && is_affine(k, s->args[1]);
}

// True for neighbouring lanes only, as the conditions are that tell the parts of a cat or the inside of a pad.
static bool is_convex(const lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    if (!k->varies[id] || is_bound(k, s)) return true;
    return s->kind == LF_STMT_SIMPLE && s->code == LF_OP_AND && s->dtype == LF_BOOL && is_convex(k, s->args[0]) &&
           is_convex(k, s->args[1]);
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

// ---- both ----------------------------------------------------------------------------------------------------------------------------

void lf_emit_memory(lf_kernel *k, lf_stmt_id id, lf_register *registers) {
    const lf_stmt *s = &k->loop->stmts[id];
    bool store = s->kind == LF_STMT_STORE;
    if (is_whole_vector(k, s)) {
        if (store)
            store_vector(k, s);
        else
            take_apart(k, s, s->guard == LF_NO_STMT ? load_vector(k, s) : load_guarded_vector(k, s), registers);
        return;
    }
    bool each = k->varies[id] || (k->lanes > 1 && store && k->loop->accesses[s->number].strides[k->vector_axis]);
    for (unsigned lane = 0; lane < (each ? k->lanes : 1u); lane++) {
        if (store)
            store_lane(k, s, lane);
        else
            registers[lane] = load_lane(k, s, lane);
    }
}
