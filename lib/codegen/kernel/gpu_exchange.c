// Partial results from thread to thread of a GPU: shuffles within a warp, shared memory between warps.
#include "codegen/kernel/gpu.h"
#include <stdio.h>

enum { DEFAULT_SHARED = 48 * 1024, FEW_SLOTS = 8, NEAR_SLOTS = 4 };

static const lf_stmt *reduction(const gpu *g, unsigned i) { return &g->k->loop->stmts[g->ids[i]]; }

// ---- within a warp -----------------------------------------------------------------------------------------------------------------

static LLVMValueRef shuffle_word(lf_kernel *k, const char *mode, LLVMValueRef v_word, LLVMValueRef v_lane) {
    char name[40];
    snprintf(name, sizeof name, "llvm.nvvm.shfl.sync.%s.i32", mode);
    LLVMValueRef args[4] = {LLVMConstInt(k->l_i32, 0xffffffff, false), v_word, v_lane,
                            LLVMConstInt(k->l_i32, mode[0] == 'u' ? 0 : 31, false)};
    return lf_gpu_intrinsic(k, name, args, 4);
}

LLVMValueRef lf_gpu_shuffle(lf_kernel *k, const char *mode, LLVMValueRef v, LLVMValueRef v_lane) {
    LLVMBuilderRef b = k->e->builder;
    LLVMTypeRef l_type = LLVMTypeOf(v);
    LLVMTypeKind kind = LLVMGetTypeKind(l_type);
    unsigned bits = kind == LLVMFloatTypeKind ? 32 : kind == LLVMDoubleTypeKind ? 64 : LLVMGetIntTypeWidth(l_type);
    LLVMTypeRef l_bits = LLVMIntTypeInContext(k->e->context, bits);
    if (kind != LLVMIntegerTypeKind) v = LLVMBuildBitCast(b, v, l_bits, "");
    if (bits <= 32) {
        LLVMValueRef v_wide = bits < 32 ? LLVMBuildZExt(b, v, k->l_i32, "") : v;
        v = shuffle_word(k, mode, v_wide, v_lane);
        if (bits < 32) v = LLVMBuildTrunc(b, v, l_bits, "");
    } else {
        LLVMValueRef v_low = shuffle_word(k, mode, LLVMBuildTrunc(b, v, k->l_i32, ""), v_lane);
        LLVMValueRef v_high =
            shuffle_word(k, mode, LLVMBuildTrunc(b, LLVMBuildLShr(b, v, lf_i64_const(k, 32), ""), k->l_i32, ""), v_lane);
        v = LLVMBuildOr(b, LLVMBuildShl(b, LLVMBuildZExt(b, v_high, k->l_i64, ""), lf_i64_const(k, 32), ""),
                        LLVMBuildZExt(b, v_low, k->l_i64, ""), "");
    }
    return kind != LLVMIntegerTypeKind ? LLVMBuildBitCast(b, v, l_type, "") : v;
}

static LLVMValueRef shuffle(lf_kernel *k, LLVMValueRef v, unsigned mask) {
    return lf_gpu_shuffle(k, "bfly", v, LLVMConstInt(k->l_i32, mask, false));
}

static lf_partial shuffle_partial(lf_kernel *k, lf_partial p, unsigned mask) {
    return (lf_partial){{shuffle(k, p.value.re, mask), p.value.im ? shuffle(k, p.value.im, mask) : NULL},
                        p.v_position ? shuffle(k, p.v_position, mask) : NULL};
}

lf_partial lf_gpu_fold_warp(lf_kernel *k, const lf_stmt *reduce, lf_partial p) {
    for (unsigned mask = 1; mask < LF_GPU_WARP; mask *= 2) p = lf_combine(k, reduce, p, shuffle_partial(k, p, mask));
    return p;
}

// ---- between warps -----------------------------------------------------------------------------------------------------------------

LLVMValueRef lf_gpu_shared_memory(lf_kernel *k, unsigned bytes) {
    LLVMTypeRef l_array = LLVMArrayType2(LLVMInt8TypeInContext(k->e->context), bytes);
    LLVMValueRef v = LLVMAddGlobalInAddressSpace(k->e->module, l_array, "shared", 3);
    LLVMSetInitializer(v, LLVMGetUndef(l_array));
    LLVMSetLinkage(v, LLVMInternalLinkage);
    LLVMSetAlignment(v, 16);
    return v;
}

static unsigned most_reductions(const lf_kernel *k) {
    unsigned most = 0;
    for (unsigned pass = 0; pass < k->loop->passes; pass++) {
        lf_stmt_id ids[LF_GPU_REDUCTIONS];
        unsigned n = lf_pass_reductions(k, pass, ids, LF_GPU_REDUCTIONS);
        if (n > most) most = n;
    }
    return most;
}

// Bytes of a partial result: where one has a position, that lies 16 bytes behind the value.
static unsigned slot_bytes(const lf_kernel *k) {
    unsigned bytes = 4;
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (s->kind != LF_STMT_REDUCE) continue;
        if (lf_has_position(s)) return LF_GPU_MOST_SLOT;
        if (lf_dtype_bytes(s->compute) > bytes) bytes = lf_dtype_bytes(s->compute);
    }
    return bytes;
}

lf_status lf_gpu_share(gpu *g, unsigned slots, unsigned buffers, lf_object *out) {
    lf_kernel *k = g->k;
    g->most = g->is_online ? 2 : most_reductions(k) * (g->at_once ? g->at_once : 1);
    g->slots = slots;
    if (!g->most) return NULL;
    g->slot = slot_bytes(k);
    out->shared_bytes = (buffers * g->most * slots + 1) * g->slot; // and one for a flag
    if (out->shared_bytes > DEFAULT_SHARED)
        return lf_error(k->l->allocator, LF_UNSUPPORTED,
                        "kernel %s: %u reductions in one pass need %u bytes of shared memory, %d are possible",
                        k->loop->name, g->most, out->shared_bytes, (int)DEFAULT_SHARED);
    g->v_shared = lf_gpu_shared_memory(k, out->shared_bytes);
    return NULL;
}

static LLVMValueRef slot_in(gpu *g, LLVMValueRef v_memory, LLVMValueRef v_slot, unsigned reduction, unsigned offset) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    int64_t first = (int64_t)(g->buffer * g->most + reduction) * g->slots * g->slot + offset;
    if (g->v_buffer)
        v_slot = LLVMBuildAdd(b, v_slot, LLVMBuildMul(b, g->v_buffer, lf_i64_const(k, g->most * g->slots), ""), "");
    if (g->v_home) v_slot = LLVMBuildAdd(b, v_slot, g->v_home, "");
    LLVMValueRef v_at = LLVMBuildAdd(b, LLVMBuildMul(b, v_slot, lf_i64_const(k, g->slot), ""), lf_i64_const(k, first), "");
    return LLVMBuildGEP2(b, LLVMInt8TypeInContext(k->e->context), v_memory, &v_at, 1, "");
}

LLVMValueRef lf_gpu_shared_slot(gpu *g, LLVMValueRef v_slot, unsigned reduction, unsigned offset) {
    return slot_in(g, g->v_shared, v_slot, reduction, offset);
}

// The shared memory of another block of the cluster, for each lane a different one. LLVM may move this before the question which lanes
// need it, so all ask for a block that there is.
static LLVMValueRef memory_of_another(gpu *g, LLVMValueRef v_lane) {
    LLVMBuilderRef b = g->k->e->builder;
    LLVMValueRef v_rank = LLVMBuildAnd(b, v_lane, lf_i64_const(g->k, g->cluster - 1), "rank");
    LLVMValueRef args[] = {g->v_shared, LLVMBuildTrunc(b, v_rank, g->k->l_i32, "")};
    return lf_gpu_intrinsic(g->k, "llvm.nvvm.mapa.shared.cluster", args, 2);
}

// The first lane of a warp, or the first ones: each for one block of the cluster.
void lf_gpu_leave(gpu *g, LLVMValueRef v_slot, const lf_partial *p) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_lane = LLVMBuildAnd(b, g->v_thread, lf_i64_const(k, LF_GPU_WARP - 1), "lane"), v_memory = g->v_shared;
    lf_if_blocks first;
    lf_if_begin(k, &first, LLVMBuildICmp(b, LLVMIntSLT, v_lane, lf_i64_const(k, g->cluster > 1 ? g->cluster : 1), ""),
                "leader");
    if (g->cluster > 1) v_memory = memory_of_another(g, v_lane);
    for (unsigned i = 0; i < g->n; i++) {
        lf_emit_store(k->e, reduction(g, i)->compute, p[i].value, slot_in(g, v_memory, v_slot, i, 0));
        if (p[i].v_position) LLVMBuildStore(b, p[i].v_position, slot_in(g, v_memory, v_slot, i, 16));
    }
    lf_if_end(k, &first);
}

lf_partial lf_gpu_load_slot(gpu *g, unsigned i, LLVMValueRef v_slot) {
    lf_kernel *k = g->k;
    lf_partial p = {lf_emit_load(k->e, reduction(g, i)->compute, lf_gpu_shared_slot(g, v_slot, i, 0)), NULL};
    if (lf_has_position(reduction(g, i)))
        p.v_position = LLVMBuildLoad2(k->e->builder, k->l_i64, lf_gpu_shared_slot(g, v_slot, i, 16), "");
    return p;
}

lf_partial lf_gpu_fold_pairs(lf_kernel *k, const lf_stmt *reduce, lf_partial *all, unsigned n) {
    for (unsigned width = n; width > 1; width /= 2)
        for (unsigned w = 0; w < width / 2; w++) all[w] = lf_combine(k, reduce, all[2 * w], all[2 * w + 1]);
    return all[0];
}

static lf_partial load_slot(gpu *g, unsigned i, LLVMValueRef v_slot) {
    lf_partial p = lf_gpu_load_slot(g, i, v_slot);
    return g->adjust ? g->adjust(g, i, v_slot, p) : p;
}

// Pairwise over the bits of the slot's number, lowest first. A few are folded by every thread for itself; of more, each lane of a warp
// takes a share.
void lf_gpu_fold_slots(gpu *g, LLVMValueRef v_count, lf_partial *out) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    unsigned slots = g->folded ? g->folded : g->slots;
    if (slots <= FEW_SLOTS && !v_count) {
        for (unsigned i = 0; i < g->n; i++) {
            lf_partial all[FEW_SLOTS];
            for (unsigned w = 0; w < slots; w++) all[w] = load_slot(g, i, lf_i64_const(k, w));
            out[i] = lf_gpu_fold_pairs(k, reduction(g, i), all, slots);
            if (!i) g->v_most = out[0].value.re;
        }
        return;
    }
    enum { MOST_SHARE = 4 };
    unsigned share = (slots + LF_GPU_WARP - 1) / LF_GPU_WARP; // slots are a power of two, at most 128
    LLVMValueRef v_lane = LLVMBuildAnd(b, g->v_thread, lf_i64_const(k, LF_GPU_WARP - 1), "lane");
    LLVMValueRef v_first = LLVMBuildMul(b, v_lane, lf_i64_const(k, share), "");
    if (!v_count) v_count = lf_i64_const(k, slots);
    for (unsigned i = 0; i < g->n; i++) {
        lf_partial all[MOST_SHARE];
        for (unsigned w = 0; w < share; w++) {
            LLVMValueRef v_slot = LLVMBuildAdd(b, v_first, lf_i64_const(k, w), "");
            LLVMValueRef v_there = LLVMBuildICmp(b, LLVMIntSLT, v_slot, v_count, "");
            v_slot = LLVMBuildSelect(b, v_there, v_slot, lf_i64_const(k, 0), "");
            all[w] = lf_partial_select(k, reduction(g, i), v_there, load_slot(g, i, v_slot), lf_neutral(k, reduction(g, i)));
        }
        out[i] = lf_gpu_fold_warp(k, reduction(g, i), lf_gpu_fold_pairs(k, reduction(g, i), all, share));
        if (!i) g->v_most = out[0].value.re;
    }
}

void lf_gpu_exchange(gpu *g, lf_partial *p) {
    lf_kernel *k = g->k;
    if (!g->v_buffer && !g->once) lf_gpu_barrier(k); // the results of the last exchange have been read
    lf_gpu_leave(g, LLVMBuildLShr(k->e->builder, g->v_thread, lf_i64_const(k, 5), "warp"), p);
    lf_gpu_barrier(k);
    lf_gpu_fold_slots(g, NULL, p);
}

// ---- several at once ---------------------------------------------------------------------------------------------------------------
//
// A butterfly over n values that combine alike, n a power of two: in its first steps a lane hands on the half of the values that it does
// not keep, so that log2(n) steps fold n values, and the rest one. Lane l then has value l mod n.

static bool alike(const gpu *g, unsigned first, unsigned n) {
    for (unsigned i = first; i < first + n; i++)
        if (reduction(g, i)->code != reduction(g, first)->code || reduction(g, i)->compute != reduction(g, first)->compute ||
            lf_has_position(reduction(g, i)))
            return false;
    return true;
}

// Values first ... first + n - 1 of p, over the lanes whose numbers differ in the bits below `lanes`.
static lf_partial fold_alike(gpu *g, const lf_partial *p, unsigned first, unsigned n, unsigned lanes, LLVMValueRef v_lane) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    const lf_stmt *s = reduction(g, first);
    lf_partial x[LF_GPU_REDUCTIONS];
    for (unsigned i = 0; i < n; i++) x[i] = p[first + i];
    for (unsigned mask = 1; mask < lanes; mask *= 2) {
        if (n > 1) {
            LLVMValueRef v_bit = LLVMBuildAnd(b, v_lane, lf_i64_const(k, mask), "");
            LLVMValueRef v_odd = LLVMBuildICmp(b, LLVMIntNE, v_bit, lf_i64_const(k, 0), "odd");
            n /= 2;
            for (unsigned i = 0; i < n; i++) { // x[2i] stays where the bit is 0
                lf_partial mine = lf_partial_select(k, s, v_odd, x[2 * i + 1], x[2 * i]),
                           other = lf_partial_select(k, s, v_odd, x[2 * i], x[2 * i + 1]);
                x[i] = lf_combine(k, s, mine, shuffle_partial(k, other, mask));
            }
        } else {
            x[0] = lf_combine(k, s, x[0], shuffle_partial(k, x[0], mask));
        }
    }
    return x[0];
}

static LLVMValueRef from_lane(lf_kernel *k, LLVMValueRef v, unsigned lane) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef args[4] = {LLVMConstInt(k->l_i32, 0xffffffff, false), LLVMBuildBitCast(b, v, k->l_i32, ""),
                            LLVMConstInt(k->l_i32, lane, false), LLVMConstInt(k->l_i32, 31, false)};
    return LLVMBuildBitCast(b, lf_gpu_intrinsic(k, "llvm.nvvm.shfl.sync.idx.i32", args, 4), LLVMTypeOf(v), "");
}

// A run of n values, through shared memory: a lane a value and warp, lanes of one value n apart.
static void fold_run(gpu *g, lf_partial *p, unsigned first, unsigned n, LLVMValueRef v_lane, LLVMValueRef v_warp,
                     bool leave) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    const lf_stmt *s = reduction(g, first);
    LLVMValueRef v_which = LLVMBuildAnd(b, v_lane, lf_i64_const(k, n - 1), ""), v_slots = lf_i64_const(k, g->slots);
    LLVMValueRef v_row = LLVMBuildMul(b, v_which, v_slots, "");
    if (leave) {
        lf_partial mine = fold_alike(g, p, first, n, LF_GPU_WARP, v_lane);
        lf_if_blocks leaders;
        lf_if_begin(k, &leaders, LLVMBuildICmp(b, LLVMIntULT, v_lane, lf_i64_const(k, n), ""), "leaders");
        lf_emit_store(k->e, s->compute, mine.value, lf_gpu_shared_slot(g, LLVMBuildAdd(b, v_row, v_warp, ""), first, 0));
        lf_if_end(k, &leaders);
        return;
    }
    if (g->slots * n <= FEW_SLOTS * 2) { // each thread for itself: shuffles would take longer
        for (unsigned i = 0; i < n; i++) {
            lf_partial all[FEW_SLOTS * 2];
            for (unsigned w = 0; w < g->slots; w++) all[w] = load_slot(g, first + i, lf_i64_const(k, w));
            p[first + i] = lf_gpu_fold_pairs(k, s, all, g->slots);
        }
        return;
    }
    unsigned share = g->slots < NEAR_SLOTS ? g->slots : NEAR_SLOTS; // one vector load
    while (g->slots * n / share > LF_GPU_WARP) share *= 2;
    unsigned lanes = g->slots * n / share;
    LLVMValueRef v_place = LLVMBuildUDiv(b, LLVMBuildAnd(b, v_lane, lf_i64_const(k, lanes - 1), ""), lf_i64_const(k, n), "");
    LLVMValueRef v_slot = LLVMBuildAdd(b, v_row, LLVMBuildMul(b, v_place, lf_i64_const(k, share), ""), "");
    lf_partial all[LF_GPU_WARP];
    for (unsigned w = 0; w < share; w++) all[w] = load_slot(g, first, LLVMBuildAdd(b, v_slot, lf_i64_const(k, w), ""));
    lf_partial x = lf_gpu_fold_pairs(k, s, all, share);
    for (unsigned mask = n; mask < lanes; mask *= 2) x = lf_combine(k, s, x, shuffle_partial(k, x, mask));
    for (unsigned i = 0; i < n; i++)
        p[first + i] = (lf_partial){{n == 1 ? x.value.re : from_lane(k, x.value.re, i), NULL}, NULL};
}

// How many from `first` on go together: a power of two of words of 32 bits that combine alike.
static unsigned run_length(const gpu *g, unsigned first) {
    unsigned n = 1;
    const lf_stmt *s = reduction(g, first);
    if (s->compute != LF_F32 && s->compute != LF_I32 && s->compute != LF_U32) return 0;
    while (first + 2 * n <= g->n && 2 * n <= LF_GPU_WARP / 4 && alike(g, first, 2 * n)) n *= 2;
    return alike(g, first, n) ? n : 0;
}

void lf_gpu_fold_block(gpu *g, lf_partial *p) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_lane = LLVMBuildAnd(b, g->v_thread, lf_i64_const(k, LF_GPU_WARP - 1), "lane");
    LLVMValueRef v_warp = LLVMBuildLShr(b, g->v_thread, lf_i64_const(k, 5), "warp");
    bool together = true;
    for (unsigned i = 0; i < g->n && together; i += run_length(g, i)) together = run_length(g, i) > 0;
    if (!together) {
        for (unsigned i = 0; i < g->n; i++) p[i] = lf_gpu_fold_warp(k, reduction(g, i), p[i]);
        lf_gpu_leave(g, v_warp, p);
        lf_gpu_barrier(k);
        lf_gpu_fold_slots(g, NULL, p);
        return;
    }
    for (unsigned i = 0; i < g->n; i += run_length(g, i)) fold_run(g, p, i, run_length(g, i), v_lane, v_warp, true);
    lf_gpu_barrier(k);
    for (unsigned i = 0; i < g->n; i += run_length(g, i)) fold_run(g, p, i, run_length(g, i), v_lane, v_warp, false);
}
