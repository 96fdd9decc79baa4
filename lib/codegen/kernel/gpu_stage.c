// Columns on their way to a block through shared memory: each thread copies its own ones of the row that comes next while it works on the
// row at hand, and finds them there when it gets to that row. A thread reads only what it has copied itself, so nobody waits for anybody.
#include "codegen/kernel/gpu.h"
#include "codegen/llvm/streamed.h"

// ---- what is staged --------------------------------------------------------------------------------------------------------------------

// A thread's lanes of the access, in bytes.
static unsigned vector_bytes(const lf_kernel *k, const lf_access *access) {
    return k->lanes * lf_dtype_bytes(access->dtype);
}

// A whole vector, in place, of the row's own: what is the same for all rows stays in a cache.
static bool is_staged(const lf_kernel *k, const lf_stmt *s) {
    if (s->kind != LF_STMT_LOAD || !s->column || s->guard != LF_NO_STMT || s->level) return false;
    const lf_access *access = &k->loop->accesses[s->number];
    unsigned bytes = vector_bytes(k, access);
    if (access->row || access->written || access->n_terms || k->lanes < 2 || !access->strides[k->vector_axis]) return false;
    if (bytes != 4 && bytes != 8 && bytes != 16) return false;
    for (unsigned r = 0; r < k->loop->rows; r++)
        if (access->strides[r]) return true;
    return false;
}

// Whether a pass loads what is staged, given what is at hand; what it computes is at hand from then on.
static bool pass_loads(const lf_kernel *k, unsigned pass, bool *needed, bool *ready) {
    const lf_loop *loop = k->loop;
    bool loads = false;
    for (lf_stmt_id i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        bool stores = (s->kind == LF_STMT_STORE || s->kind == LF_STMT_INDEX_ERROR) && s->column && s->level == pass;
        needed[i] = stores || (s->kind == LF_STMT_REDUCE && s->level == pass + 1);
    }
    for (lf_stmt_id i = loop->n_stmts; i-- > 0;) {
        const lf_stmt *s = &loop->stmts[i];
        if (!needed[i] || ready[i]) continue;
        for (unsigned n = 0; n < s->n_args; n++)
            if (s->args[n] != LF_NO_STMT) needed[s->args[n]] = true;
        if (s->guard != LF_NO_STMT) needed[s->guard] = true;
        ready[i] = true;
        loads |= is_staged(k, s);
    }
    return loads;
}

// What each pass computes again from shared memory: the loads, and conversions, which cost less than a register.
static bool is_fleeting(const lf_kernel *k, lf_stmt_id id) {
    const lf_stmt *s = &k->loop->stmts[id];
    bool cast = s->kind == LF_STMT_CAST || (s->kind == LF_STMT_ELEM && s->code == LF_OP_CAST);
    return is_staged(k, s) || (cast && is_staged(k, &k->loop->stmts[s->args[0]]));
}

LLVMValueRef lf_gpu_dynamic_memory(lf_kernel *k, lf_object *out, unsigned bytes) {
    LLVMTypeRef l_byte = LLVMInt8TypeInContext(k->e->context);
    if (!k->v_stage) {
        k->v_stage = LLVMAddGlobalInAddressSpace(k->e->module, LLVMArrayType2(l_byte, 0), "staged", 3);
        LLVMSetAlignment(k->v_stage, 16);
    }
    LLVMValueRef v_at = lf_i64_const(k, out->staged_bytes);
    out->staged_bytes += (bytes + 15) / 16 * 16;
    return LLVMBuildGEP2(k->e->builder, l_byte, k->v_stage, &v_at, 1, "memory");
}

lf_status lf_gpu_stage_plan(gpu *g, lf_object *out) {
    lf_kernel *k = g->k;
    const lf_loop *loop = k->loop;
    if (!k->cls.staged) return NULL;
    k->staged_at = lf_alloc_zero(k->l->allocator, loop->n_accesses * sizeof *k->staged_at);
    bool *marks = lf_alloc_zero(k->l->allocator, 2 * (size_t)loop->n_stmts);
    if (!k->staged_at || !marks) {
        lf_free(k->l->allocator, marks);
        return lf_out_of_memory();
    }
    uint32_t threads = g->threads * g->chunks / g->rounds, bytes = 0;
    // Positions take the room of a vector.
    k->staged_copies = g->slot == LF_GPU_MOST_SLOT ? k->cls.staged - 1u : k->cls.staged;
    for (lf_stmt_id i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        if (!is_staged(k, s) || k->staged_at[s->number]) continue;
        k->staged_at[s->number] = bytes + 1;
        bytes += vector_bytes(k, &loop->accesses[s->number]) * k->staged_copies * threads;
    }
    for (unsigned pass = 0; pass < loop->passes; pass++) {
        if (pass_loads(k, pass, marks, marks + loop->n_stmts)) g->last_read = pass;
        bool below_own = g->is_online && pass == 1; // what follows from columns is of no use to later passes
        for (lf_stmt_id i = 0; i < loop->n_stmts; i++)
            if (is_fleeting(k, i) || (below_own && loop->stmts[i].column)) marks[loop->n_stmts + i] = false;
    }
    lf_free(k->l->allocator, marks);
    if (!bytes) return NULL;
    g->staged = true;
    lf_gpu_dynamic_memory(k, out, bytes);
    k->staged_threads = threads;
    k->v_tid = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.tid.x");
    return NULL;
}

// Loads that go to memory are under way before any work.
void lf_gpu_stage_others(gpu *g) {
    unsigned n = g->spans * g->rounds, copies[LF_MAX_COPIES];
    if (!g->staged) return;
    for (unsigned c = g->k->staged_copies; c < n; c++) copies[c - g->k->staged_copies] = c;
    if (g->k->staged_copies < n) lf_emit_loads(g->k, copies, n - g->k->staged_copies, g->pass);
}

void lf_gpu_stage_take(gpu *g) {
    lf_kernel *k = g->k;
    for (unsigned c = 0; c < g->spans * g->rounds; c++) {
        lf_kernel_use_copy(k, g->base + c);
        for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
            if (is_staged(k, &k->loop->stmts[i])) lf_emit_statement(k, i);
    }
    lf_kernel_use_copy(k, 0);
}

// So that a pass reads its columns again: what LLVM has read it would keep in registers, unless it must think that it is no longer there.
void lf_gpu_stage_forget(gpu *g) {
    lf_kernel *k = g->k;
    if (!g->staged) return;
    if (k->cls.alone) {
        LLVMValueRef v_all = LLVMConstInt(k->l_i32, 0xffffffff, false);
        lf_gpu_intrinsic(k, "llvm.nvvm.bar.warp.sync", &v_all, 1);
    }
    for (unsigned c = 0; c < g->spans * g->rounds; c++)
        for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
            if (k->copies[c].ready && is_fleeting(k, i)) k->copies[c].ready[i] = false; // a copy may lack for want of memory
}

// ---- copies ----------------------------------------------------------------------------------------------------------------------------

static void copy_vector(gpu *g, uint32_t number, const LLVMValueRef *v_row) {
    lf_kernel *k = g->k;
    unsigned bytes = vector_bytes(k, &k->loop->accesses[number]);
    const char *name = bytes == 16  ? "llvm.nvvm.cp.async.cg.shared.global.16"
                       : bytes == 8 ? "llvm.nvvm.cp.async.ca.shared.global.8"
                                    : "llvm.nvvm.cp.async.ca.shared.global.4";
    LLVMValueRef args[] = {lf_staged_address(k, number), lf_address_in_row(k, number, v_row)};
    LLVMValueRef v_copy = lf_gpu_intrinsic(k, name, args, 2);
    if (k->streams) lf_mark_streamed(k->e, v_copy);
}

static void commit(gpu *g) { lf_gpu_intrinsic(g->k, "llvm.nvvm.cp.async.commit.group", NULL, 0); }

void lf_gpu_stage_row(gpu *g, LLVMValueRef v_row) {
    lf_kernel *k = g->k;
    LLVMValueRef v_index[LF_MAX_AXES];
    if (!g->staged) return;
    lf_split_index(k, v_row, k->rows, lf_row_extent, v_index);
    for (unsigned c = 0; c < g->rounds * g->spans; c++) {
        lf_kernel_use_copy(k, g->base + c);
        for (uint32_t i = 0; i < k->loop->n_accesses; i++)
            if (lf_is_staged(k, i)) copy_vector(g, i, v_index);
    }
    lf_kernel_use_copy(k, 0);
    commit(g);
}

// The thread has what it read before it asks for what will lie there next. Vectors without room are prefetched only
// where a row is waited for twice: cross entropy gained by it in exact mode (64 to 67 % of the copy).
void lf_gpu_stage_next(gpu *g, unsigned copy) {
    lf_kernel *k = g->k;
    if (!g->staged || k->cls.alone || g->pass != g->last_read) return;
    lf_kernel_use_copy(k, copy);
    for (uint32_t i = 0; i < k->loop->n_accesses; i++)
        if (lf_is_staged(k, i))
            copy_vector(g, i, g->v_next);
        else if (k->staged_at[i] && !g->is_online) // no room: on its way to the L2 at least
            lf_gpu_prefetch(k, LLVMBuildPtrToInt(k->e->builder, lf_address_in_row(k, i, g->v_next), k->l_i64, ""));
}

void lf_gpu_stage_commit(gpu *g) {
    if (g->staged && !g->k->cls.alone) commit(g);
}

void lf_gpu_stage_wait(gpu *g) {
    LLVMValueRef v_zero = LLVMConstInt(g->k->l_i32, 0, false);
    if (g->staged) lf_gpu_intrinsic(g->k, "llvm.nvvm.cp.async.wait.group", &v_zero, 1);
}
