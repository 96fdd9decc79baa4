// What rows add up to across, in class MIXED: a thread's accumulators for its own columns, and the binary counter in which what two leaves
// of a set come to waits for its partner: the lowest levels in shared memory, which is used most, the others in scratch memory, where the
// set's result is left too. Which rows are leaves, and when they come, is gpu_mixed.c's business.
#include "codegen/kernel/gpu.h"

enum { WIDEST = 16 }; // bytes that a thread stores at once

// ---- partial results -------------------------------------------------------------------------------------------------------------------

static unsigned columns_of(const lf_folds *f) { return f->g->spans * f->g->k->lanes; }

lf_partial lf_folds_get(lf_folds *f, unsigned i, unsigned column) {
    return lf_partials_load(f->g->k, lf_fold(f, i), f->x[i], lf_i64_const(f->g->k, column), false);
}

void lf_folds_set(lf_folds *f, unsigned i, unsigned column, lf_partial p) {
    lf_partials_store(f->g->k, lf_fold(f, i), f->x[i], lf_i64_const(f->g->k, column), p, false);
}

void lf_folds_clear(lf_folds *f) {
    for (unsigned i = 0; i < f->n; i++)
        for (unsigned c = 0; c < columns_of(f); c++) lf_folds_set(f, i, c, lf_neutral(f->g->k, lf_fold(f, i)));
}

static unsigned bytes_of(const lf_folds *f, unsigned i) { return lf_dtype_bytes(lf_fold(f, i)->compute); }

// Partial results of neighbouring columns of the thread that lie side by side in memory go there together, where that is a vector.
typedef struct cells {
    LLVMValueRef v_address;
    unsigned fold, first, n;
} cells;

static LLVMTypeRef vector_of(lf_folds *f, const cells *c) {
    lf_dtype d = lf_fold(f, c->fold)->compute;
    return c->n > 1 && (d == LF_F32 || d == LF_F64) ? LLVMVectorType(lf_memory_type(f->g->k->e, d), c->n) : NULL;
}

static unsigned alignment_of(const lf_folds *f, const cells *c) {
    unsigned bytes = c->n * bytes_of(f, c->fold);
    return bytes > WIDEST ? WIDEST : bytes;
}

typedef void (*for_cells)(lf_folds *f, const cells *c);

static void store_cells(lf_folds *f, const cells *c) {
    lf_kernel *k = f->g->k;
    LLVMTypeRef l_vector = vector_of(f, c);
    LLVMValueRef v = l_vector ? LLVMGetUndef(l_vector) : NULL;
    for (unsigned n = 0; n < c->n; n++) {
        lf_partial p = lf_folds_get(f, c->fold, c->first + n);
        if (l_vector)
            v = LLVMBuildInsertElement(k->e->builder, v, p.value.re, LLVMConstInt(k->l_i32, n, false), "");
        else
            lf_partials_store(k, lf_fold(f, c->fold), (lf_partials){c->v_address, NULL}, lf_i64_const(k, n), p, false);
    }
    if (l_vector) LLVMSetAlignment(LLVMBuildStore(k->e->builder, v, c->v_address), alignment_of(f, c));
}

// x = cells + x: they came first
static void combine_cells(lf_folds *f, const cells *c) {
    lf_kernel *k = f->g->k;
    LLVMTypeRef l_vector = vector_of(f, c);
    LLVMValueRef v = l_vector ? LLVMBuildLoad2(k->e->builder, l_vector, c->v_address, "waiting") : NULL;
    if (v) LLVMSetAlignment(v, alignment_of(f, c));
    for (unsigned n = 0; n < c->n; n++) {
        lf_partial low = {{NULL, NULL}, NULL};
        if (v)
            low.value.re = LLVMBuildExtractElement(k->e->builder, v, LLVMConstInt(k->l_i32, n, false), "");
        else
            low = lf_partials_load(k, lf_fold(f, c->fold), (lf_partials){c->v_address, NULL}, lf_i64_const(k, n), false);
        lf_folds_set(f, c->fold, c->first + n,
                     lf_combine(k, lf_fold(f, c->fold), low, lf_folds_get(f, c->fold, c->first + n)));
    }
}

static LLVMValueRef is_inside(lf_folds *f, unsigned span) {
    lf_kernel *k = f->g->k;
    if (k->cls.full) return LLVMConstInt(LLVMInt1TypeInContext(k->e->context), 1, false);
    return LLVMBuildICmp(k->e->builder, LLVMIntSLT, f->v_position[span], f->g->v_columns, "inside");
}

// Address of the thread's partial results of a span in a plane of memory: plane 0 is what the set leaves, the others are levels.
static LLVMValueRef cell_address(lf_folds *f, LLVMValueRef v_plane, unsigned i, unsigned span) {
    lf_kernel *k = f->g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_memory = LLVMBuildIntToPtr(b, lf_word(k, k->loop->workspace_word), k->l_pointer, "memory");
    LLVMValueRef v_a_fold = LLVMBuildMul(b, LLVMBuildMul(b, f->v_sets, f->g->v_columns, ""), lf_i64_const(k, f->cell), "");
    LLVMValueRef v_number = LLVMBuildAdd(b, LLVMBuildMul(b, v_plane, lf_i64_const(k, f->n), ""), lf_i64_const(k, i), "");
    LLVMValueRef v_at = LLVMBuildMul(b, v_number, v_a_fold, "");
    v_memory = LLVMBuildGEP2(b, LLVMInt8TypeInContext(k->e->context), v_memory, &v_at, 1, "");
    LLVMValueRef v_element = LLVMBuildAdd(b, LLVMBuildMul(b, f->v_set, f->g->v_columns, ""), f->v_position[span], "element");
    return LLVMBuildGEP2(b, lf_memory_type(k->e, lf_fold(f, i)->compute), v_memory, &v_element, 1, "");
}

// The class says that columns are a multiple of the lanes.
static void each_in_memory(lf_folds *f, LLVMValueRef v_plane, for_cells emit) {
    lf_kernel *k = f->g->k;
    for (unsigned span = 0; span < f->g->spans; span++) {
        lf_if_blocks inside;
        lf_if_begin(k, &inside, is_inside(f, span), "cells");
        for (unsigned i = 0; i < f->n; i++)
            emit(f, &(cells){cell_address(f, v_plane, i, span), i, span * k->lanes, k->lanes});
        lf_if_end(k, &inside);
    }
}

// ---- the counter -----------------------------------------------------------------------------------------------------------------------

unsigned lf_folds_bytes(const lf_folds *f) {
    unsigned bytes = 0;
    for (unsigned i = 0; i < f->n; i++) bytes += f->g->threads * columns_of(f) * bytes_of(f, i);
    return bytes;
}

// Of a level in shared memory: 16 bytes of each thread lie side by side.
static void each_in_level(lf_folds *f, LLVMValueRef v_level, for_cells emit) {
    lf_kernel *k = f->g->k;
    LLVMBuilderRef b = k->e->builder;
    unsigned first = 0; // bytes of a thread before these
    LLVMValueRef v_base = LLVMBuildMul(b, v_level, lf_i64_const(k, lf_folds_bytes(f)), "level");
    for (unsigned i = 0; i < f->n; i++) {
        unsigned n = columns_of(f) < WIDEST / bytes_of(f, i) ? columns_of(f) : WIDEST / bytes_of(f, i),
                 bytes = n * bytes_of(f, i);
        LLVMValueRef v_mine = LLVMBuildAdd(b, v_base, LLVMBuildMul(b, f->g->v_thread, lf_i64_const(k, bytes), ""), "");
        for (unsigned c = 0; c < columns_of(f); c += n, first += bytes) {
            LLVMValueRef v_at = LLVMBuildAdd(b, v_mine, lf_i64_const(k, (int64_t)first * f->g->threads), "");
            emit(f, &(cells){LLVMBuildGEP2(b, LLVMInt8TypeInContext(k->e->context), f->v_waiting, &v_at, 1, ""), i, c, n});
        }
    }
}

// In shared memory as far as there are such levels, then in planes of memory: plane 0 is what the set leaves.
static void at_level(lf_folds *f, LLVMValueRef v_level, for_cells emit) {
    lf_kernel *k = f->g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_levels = lf_i64_const(k, f->levels), v_near = LLVMBuildICmp(b, LLVMIntSLT, v_level, v_levels, "near");
    LLVMValueRef v_plane = LLVMBuildAdd(b, LLVMBuildSub(b, v_level, v_levels, ""), lf_i64_const(k, 1), "plane");
    lf_if_blocks near, far;
    if (f->levels) {
        lf_if_begin(k, &near, v_near, "near");
        each_in_level(f, v_level, emit);
        lf_if_end(k, &near);
    }
    lf_if_begin(k, &far, LLVMBuildNot(b, v_near, ""), "far");
    each_in_memory(f, v_plane, emit);
    lf_if_end(k, &far);
}

typedef struct pushing {
    lf_folds *folds;
    LLVMValueRef v_is_last;
} pushing;

static void merge_level(void *context, lf_level level) { at_level(((pushing *)context)->folds, level.v, combine_cells); }

static void keep_level(void *context, lf_level level) {
    const pushing *p = context;
    lf_kernel *k = p->folds->g->k;
    lf_if_blocks waits;
    lf_if_begin(k, &waits, LLVMBuildNot(k->e->builder, p->v_is_last, ""), "waits");
    at_level(p->folds, level.v, store_cells);
    lf_folds_clear(p->folds);
    lf_if_end(k, &waits);
}

// x comes in, as number v_count of a power of two; when it is the last, x is the whole set's.
void lf_folds_push(lf_folds *f, LLVMValueRef v_count, LLVMValueRef v_is_last) {
    pushing p = {f, v_is_last};
    lf_counter_push_by_loop(f->g->k, &(lf_counter){.context = &p, .merge = merge_level, .keep = keep_level}, v_count);
}

// ---- outside ---------------------------------------------------------------------------------------------------------------------------

void lf_folds_leave(lf_folds *f) { each_in_memory(f, lf_i64_const(f->g->k, 0), store_cells); }

void lf_folds_plan(lf_folds *f, gpu *g, lf_object *out) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    f->g = g;
    f->cell = 4;
    for (lf_stmt_id i = 0; i < k->loop->n_stmts && f->n < LF_GPU_FOLDS; i++) {
        if (k->loop->stmts[i].kind != LF_STMT_FOLD) continue;
        f->ids[f->n] = i;
        f->x[f->n++] = lf_partials_alloca(k, &k->loop->stmts[i], columns_of(f), "x");
        if (lf_dtype_bytes(k->loop->stmts[i].compute) > f->cell) f->cell = lf_dtype_bytes(k->loop->stmts[i].compute);
    }
    f->levels = k->e->fast ? 0 : k->cls.teams;
    if (f->levels) f->v_waiting = lf_gpu_dynamic_memory(k, out, f->levels * lf_folds_bytes(f));
    for (unsigned span = 0; span < g->spans; span++)
        f->v_position[span] = LLVMBuildAdd(b, LLVMBuildMul(b, g->v_thread, lf_i64_const(k, k->lanes), ""),
                                           lf_i64_const(k, (int64_t)span * LF_SPAN), "position");
}
