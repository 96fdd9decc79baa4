// GPU kernels (PTX through NVPTX): pointwise, where a thread takes `lanes` neighbouring elements at a time; rows that a thread or a
// block walks by itself; and what all GPU kernels begin with. Tiles are in gpu_tile.c, rows with reductions in gpu_rows.c and gpu_reduce.c.
#include "codegen/kernel/gpu.h"
#include <stdio.h>

enum { POINTWISE_BLOCK = 256, INDEXED_BLOCK = 128, PTX_KERNEL = 71 };

// The argument block by value, or its address in memory when it exceeds the parameter space.
static bool has_args_in_memory(const lf_kernel *k) { return k->loop->n_words * 8u > 4000; }

LLVMValueRef lf_gpu_intrinsic(lf_kernel *k, const char *name, LLVMValueRef *args, unsigned n) {
    unsigned id = LLVMLookupIntrinsicID(name, __builtin_strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(k->e->module, id, NULL, 0);
    return LLVMBuildCall2(k->e->builder, LLVMGlobalGetValueType(f), f, args, n, "");
}

LLVMValueRef lf_gpu_special(lf_kernel *k, const char *name) {
    return LLVMBuildZExt(k->e->builder, lf_gpu_intrinsic(k, name, NULL, 0), k->l_i64, "");
}

LLVMValueRef lf_gpu_barrier(lf_kernel *k) {
    LLVMValueRef v_zero = LLVMConstInt(k->l_i32, 0, false);
    return lf_gpu_intrinsic(k, "llvm.nvvm.barrier.cta.sync.aligned.all", &v_zero, 1);
}

void lf_gpu_meet(const gpu *g) {
    if (g->cluster <= 1) {
        lf_gpu_barrier(g->k);
        return;
    }
    lf_gpu_intrinsic(g->k, "llvm.nvvm.barrier.cluster.arrive.aligned", NULL, 0);
    lf_gpu_intrinsic(g->k, "llvm.nvvm.barrier.cluster.wait.aligned", NULL, 0);
}

void lf_gpu_prefetch(lf_kernel *k, LLVMValueRef v_address) {
    static const char code[] = "prefetch.global.L2 [$0];", constraints[] = "l";
    LLVMTypeRef l_call = LLVMFunctionType(LLVMVoidTypeInContext(k->e->context), &k->l_i64, 1, false);
    LLVMValueRef v_asm = LLVMGetInlineAsm(l_call, code, sizeof code - 1, constraints, sizeof constraints - 1, true, false,
                                          LLVMInlineAsmDialectATT, false);
    LLVMBuildCall2(k->e->builder, l_call, v_asm, &v_address, 1, "");
}

void lf_gpu_across_device(lf_kernel *k, LLVMValueRef v_access) {
    LLVMSetAtomicSyncScopeID(v_access, LLVMGetSyncScopeID(k->e->context, "device", 6));
}

// Blocks take work by a counter, so that what one waits for has been taken before, and never by a block that has not begun.
LLVMValueRef lf_gpu_take_ticket(lf_kernel *k, LLVMValueRef v_thread, LLVMValueRef v_shared) {
    LLVMBuilderRef b = k->e->builder;
    lf_if_blocks first;
    lf_if_begin(k, &first, LLVMBuildICmp(b, LLVMIntEQ, v_thread, lf_i64_const(k, 0), ""), "take");
    LLVMValueRef v_counter = LLVMBuildIntToPtr(b, lf_word(k, k->loop->scratch_word), k->l_pointer, "tickets");
    LLVMValueRef v =
        LLVMBuildAtomicRMW(b, LLVMAtomicRMWBinOpAdd, v_counter, lf_i64_const(k, 1), LLVMAtomicOrderingMonotonic, false);
    lf_gpu_across_device(k, v);
    LLVMBuildStore(b, v, v_shared);
    lf_if_end(k, &first);
    lf_gpu_barrier(k);
    return LLVMBuildLoad2(b, k->l_i64, v_shared, "ticket");
}

void lf_gpu_await(lf_kernel *k, LLVMValueRef v_word, LLVMValueRef v_least) {
    LLVMBuilderRef b = k->e->builder;
    LLVMBasicBlockRef b_wait = lf_block(k, "wait"), b_there = lf_block(k, "there");
    LLVMBuildBr(b, b_wait);
    LLVMPositionBuilderAtEnd(b, b_wait);
    LLVMValueRef v = LLVMBuildLoad2(b, k->l_i32, v_word, "told");
    LLVMSetOrdering(v, LLVMAtomicOrderingAcquire);
    LLVMSetAlignment(v, 4);
    lf_gpu_across_device(k, v);
    v = LLVMBuildZExt(b, v, k->l_i64, "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, v, v_least, ""), b_wait, b_there);
    LLVMPositionBuilderAtEnd(b, b_there);
}

LLVMValueRef lf_gpu_bit(lf_kernel *k, LLVMValueRef v, unsigned bit) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_bit = LLVMBuildLShr(b, v, LLVMConstInt(LLVMTypeOf(v), bit, false), "");
    return LLVMBuildTrunc(b, v_bit, LLVMInt1TypeInContext(k->e->context), "");
}

LLVMValueRef lf_gpu_total_rows(lf_kernel *k) {
    LLVMValueRef v = lf_i64_const(k, 1);
    for (unsigned r = 0; r < k->rows; r++) v = LLVMBuildMul(k->e->builder, v, lf_row_extent(k, r), "rows");
    return v;
}

// ---- one kernel after the other ------------------------------------------------------------------------------------------------------

// Many short blocks that each say this take longer to begin: elements never do (measured: rotary embedding 96 % of the copy to 80), and
// kernels of one pass only where their own second kernel comes next.
static bool lets_next_begin(const lf_kernel *k) {
    const lfuser_abi_class *c = &k->cls;
    return k->loop->passes > 1 || c->shape == LFUSER_ABI_SPLIT || (c->shape == LFUSER_ABI_OUTER && c->chunks > 1);
}

// Loads that are marked invariant may be moved to before a wait. Kernels of one pass keep theirs: measured, plain ones cost a transpose and
// a sum of columns 2 % of the copy. Arguments by value are there before; a block of them in memory would be read before the wait.
static bool can_wait(const lf_kernel *k) {
    const lfuser_abi_class *c = &k->cls;
    if (k->loop->form != LF_LOOP_PLAIN || c->shape == LFUSER_ABI_PRODUCT || has_args_in_memory(k)) return false;
    return k->loop->passes > 1 || c->shape == LFUSER_ABI_COMBINE || (c->shape == LFUSER_ABI_OUTER && c->spans);
}

// The kernel after this one may begin as soon as there is room; and this one, which may have begun so itself, waits until the one before
// it has ended and all that it wrote is seen. All threads wait, so that the end of this kernel is the end of the one before it, too: whatever
// is launched afterwards need not know.
static void overlap(lf_kernel *k, lf_object *out) {
    enum { DEPENDENT_LAUNCH = 90 };
    if (k->l->target.sm < DEPENDENT_LAUNCH) return;
    if (lets_next_begin(k)) lf_gpu_intrinsic(k, "llvm.nvvm.griddepcontrol.launch.dependents", NULL, 0);
    if (!can_wait(k)) return;
    lf_gpu_intrinsic(k, "llvm.nvvm.griddepcontrol.wait", NULL, 0);
    k->loads_stay = true;
    out->waits = true;
}

// ---- pointwise -----------------------------------------------------------------------------------------------------------------

// How many vectors a thread takes, so that their loads are under way together: a block's width apart, or neighbours along an axis.
static unsigned pointwise_vectors(const lf_kernel *k) {
    if (k->cls.shape == LFUSER_ABI_STACK) return k->cls.spans;
    if (!k->rows || k->loop->indexed) return 1; // measured: rotary embedding 96 % of the copy, 92 with two
    return k->loop->weight * k->lanes * 2 <= LFUSER_ABI_UNROLLED_WEIGHT / 2 ? 2 : 1;
}

static bool is_stacked(const lf_kernel *k, unsigned walked) {
    return k->cls.shape == LFUSER_ABI_STACK && lf_row_axis(k, walked) == k->cls.chunks;
}

// As a thread counts: a stack is one.
static LLVMValueRef pointwise_extent(lf_kernel *k, unsigned walked) {
    LLVMValueRef v = lf_row_extent(k, walked);
    return is_stacked(k, walked) ? LLVMBuildUDiv(k->e->builder, v, lf_i64_const(k, k->cls.spans), "stacks") : v;
}

// The thread's first vector, and then the others.
static void begin_stack(lf_kernel *k, LLVMValueRef v_element) {
    lf_split_index(k, v_element, k->rows, pointwise_extent, k->at->v_row);
    for (unsigned c = 0; c < k->cls.spans; c++) {
        lf_kernel_use_copy(k, c);
        for (unsigned r = 0; r < k->rows; r++) {
            LLVMValueRef v = k->copies[0].v_row[r];
            if (is_stacked(k, r))
                v = c ? LLVMBuildAdd(k->e->builder, v, lf_i64_const(k, c), "")
                      : LLVMBuildMul(k->e->builder, v, lf_i64_const(k, k->cls.spans), "");
            k->at->v_row[r] = v;
        }
        lf_kernel_begin_row(k);
    }
}

static void emit_pointwise(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    bool stack = k->cls.shape == LFUSER_ABI_STACK;
    unsigned vectors = pointwise_vectors(k);
    // Rotary embedding is half a percent faster in blocks of 128, which come and go more smoothly.
    out->block = k->loop->indexed ? INDEXED_BLOCK : POINTWISE_BLOCK;
    out->rows_a_block = out->block * k->lanes * (stack ? 1 : vectors);
    LLVMValueRef v_total = lf_i64_const(k, 1), v_width = lf_i64_const(k, out->block * k->lanes),
                 v_tile = lf_i64_const(k, out->rows_a_block);
    for (unsigned r = 0; r < k->rows; r++) v_total = LLVMBuildMul(b, v_total, pointwise_extent(k, r), "elements");
    LLVMValueRef v_mine = LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"), lf_i64_const(k, k->lanes), "");
    LLVMValueRef v_first =
        LLVMBuildAdd(b, LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"), v_tile, ""), v_mine, "");
    LLVMValueRef v_step = LLVMBuildMul(b, lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), v_tile, "step");
    lf_loop_blocks elements;
    LLVMValueRef v_element = lf_for_begin(k, &elements, v_first, v_total, v_step, "element"), v_own = v_element,
                 v_inside[LF_MAX_COPIES] = {NULL};
    if (stack) begin_stack(k, v_element);
    for (unsigned c = 0; c < vectors && !stack; c++) {
        lf_kernel_use_copy(k, c);
        if (c) { // past the end the thread's own first element is computed again (another's may be overwritten meanwhile), and not stored
            v_element = LLVMBuildAdd(b, v_element, v_width, "");
            v_inside[c] = LLVMBuildICmp(b, LLVMIntSLT, v_element, v_total, "inside");
        }
        LLVMValueRef v_there = c ? LLVMBuildSelect(b, v_inside[c], v_element, v_own, "") : v_element;
        lf_split_index(k, v_there, k->rows, lf_row_extent, k->at->v_row);
        lf_kernel_begin_row(k);
    }
    lf_emit_loads(k, NULL, vectors, 0);
    for (unsigned c = 0; c < vectors; c++) {
        lf_kernel_use_copy(k, c);
        lf_emit_effect_operands(k, 0);
        lf_if_blocks inside;
        if (v_inside[c]) lf_if_begin(k, &inside, v_inside[c], "inside");
        lf_emit_column_effects(k, 0);
        if (v_inside[c]) lf_if_end(k, &inside);
    }
    lf_kernel_use_copy(k, 0);
    lf_for_end(k, &elements, LF_HINT_NONE);
}

// ---- a thread a row, or a block a row without the canonical order -----------------------------------------------------------------

enum { THREAD_BLOCK = 128, SORT_BLOCK = 256 };

static void emit_own_rows(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    bool sort = k->loop->form == LF_LOOP_SORT;
    out->block = sort ? SORT_BLOCK : THREAD_BLOCK;
    out->rows_a_block = sort ? 1 : THREAD_BLOCK;
    LLVMValueRef v_tid = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x"),
                 v_first = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x");
    LLVMValueRef v_step = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x"), v_size = lf_i64_const(k, out->block);
    if (!sort) {
        v_first = LLVMBuildAdd(b, LLVMBuildMul(b, v_first, v_size, ""), v_tid, "");
        v_step = LLVMBuildMul(b, v_step, v_size, "");
    }
    lf_loop_blocks rows;
    LLVMValueRef v_row = lf_for_begin(k, &rows, v_first, lf_gpu_total_rows(k), v_step, "row");
    lf_split_index(k, v_row, k->rows, lf_row_extent, k->at->v_row);
    lf_kernel_begin_row(k);
    if (sort) {
        lf_team team = {v_tid, v_size, lf_gpu_barrier};
        lf_emit_sort_row(k, &team, v_row);
    } else {
        lf_emit_scatter_row(k);
    }
    lf_for_end(k, &rows, LF_HINT_NONE);
}

// Registers a thread may have, where the assembler's own choice was measured to be worse; 0: it is not. Rows that fill many registers
// must leave room for four warps a scheduler; reductions need enough to have all their loads under way, and left alone the assembler
// would rather have more blocks.
static unsigned most_registers(const lf_kernel *k, unsigned block) {
    enum {
        FULL = 64,
        HELD = 128,
        REDUCING = 64,
        HELD_BLOCK = 256,
        OUTER_BLOCK = 256,
        OUTER = 112,
        PART = 80,
        COMBINE = 64,
        TWO_BLOCKS = 32768
    };
    enum { PRODUCT = 128 };
    if (k->cls.shape == LFUSER_ABI_PRODUCT) return PRODUCT;
    if (k->loop->form != LF_LOOP_PLAIN) return 0;
    if (k->cls.shape == LFUSER_ABI_OUTER) return block != OUTER_BLOCK ? 0 : k->cls.chunks > 1 ? PART : OUTER;
    if (k->cls.shape == LFUSER_ABI_COMBINE) return !k->cls.spans && k->cls.chunks > 1 ? COMBINE : 0;
    if (k->cls.shape == LFUSER_ABI_SPLIT) return k->loop->reductions == 1 ? REDUCING : 0;
    if (k->cls.shape != LFUSER_ABI_RESIDENT) return 0;
    if (k->cls.alone) return TWO_BLOCKS / block;
    if (k->loop->reduces) return REDUCING;
    return block <= HELD_BLOCK && k->loop->kept * k->cls.spans * k->lanes >= FULL ? HELD : 0;
}

lf_status lf_kernel_emit_gpu(lf_kernel *k, lf_object *out) {
    LLVMContextRef c = k->e->context;
    bool in_memory = has_args_in_memory(k);
    LLVMTypeRef l_param = LLVMPointerTypeInContext(c, in_memory ? 1 : 0);
    LF_TRY(lf_kernel_begin(k, LLVMFunctionType(LLVMVoidTypeInContext(c), &l_param, 1, false)));
    LLVMSetFunctionCallConv(k->v_function, PTX_KERNEL);
    if (!in_memory) {
        unsigned id = LLVMGetEnumAttributeKindForName("byval", 5);
        LLVMTypeRef l_block = LLVMArrayType2(k->l_i64, k->loop->n_words ? k->loop->n_words : 1);
        LLVMAddAttributeAtIndex(k->v_function, 1, LLVMCreateTypeAttribute(c, id, l_block));
        LLVMSetParamAlignment(k->v_args, 8);
    }
    LLVMBasicBlockRef b_start = lf_block(k, "start");
    LLVMPositionBuilderAtEnd(k->e->builder, b_start);
    overlap(k, out);
    if (k->loop->form == LF_LOOP_SERIAL)
        LF_TRY(lf_gpu_emit_scan(k, out));
    else if (k->loop->form == LF_LOOP_SORT && k->cls.shape == LFUSER_ABI_LOOKBACK)
        LF_TRY(lf_gpu_emit_sort(k, out));
    else if (k->loop->form == LF_LOOP_SCATTER && k->cls.shape == LFUSER_ABI_RESIDENT)
        lf_gpu_emit_scatter(k, out);
    else if (k->loop->form != LF_LOOP_PLAIN)
        emit_own_rows(k, out);
    else if (k->cls.shape == LFUSER_ABI_PRODUCT)
        LF_TRY(lf_gpu_emit_product(k, out));
    else if (k->loop->folds)
        LF_TRY(lf_gpu_emit_mixed(k, out));
    else if (k->loop->passes)
        LF_TRY(lf_gpu_emit_rows(k, out));
    else if (k->cls.shape == LFUSER_ABI_TILE)
        LF_TRY(lf_gpu_emit_tiles(k, out));
    else
        emit_pointwise(k, out);
    LLVMBuildRetVoid(k->e->builder);
    LLVMPositionBuilderAtEnd(k->e->builder, k->b_entry);
    LLVMBuildBr(k->e->builder, b_start);
    // Registers are allotted for the block that will be launched.
    char text[16];
    snprintf(text, sizeof text, "%u", out->block);
    LLVMAddTargetDependentFunctionAttr(k->v_function, "nvvm.maxntid", text);
    if (out->cluster > 1) {
        snprintf(text, sizeof text, "%u,1,1", out->cluster);
        LLVMAddTargetDependentFunctionAttr(k->v_function, "nvvm.cluster_dim", text);
    }
    unsigned registers = most_registers(k, out->block);
    if (!registers) return NULL;
    snprintf(text, sizeof text, "%u", registers);
    LLVMAddTargetDependentFunctionAttr(k->v_function, "nvvm.maxnreg", text);
    return NULL;
}
