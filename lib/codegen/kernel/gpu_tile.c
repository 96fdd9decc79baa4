// Pointwise kernels some of whose loads or stores are contiguous along another axis than the one that is walked: a transpose. A block
// takes a tile of two axes, the innermost one and the one before it (launch_abi.h, TILE):
//
//   tiled loads are read along the outer axis, in whole segments of memory, and left in shared memory; a barrier;
//   then each thread takes vectors along the innermost axis as a plain kernel does, with these loads' elements from shared memory;
//   tiled stores go the other way: into shared memory, a barrier, and out along the outer axis.
//
// A tile in shared memory has a line for each inner index, of `across` chunks; a chunk is what a thread reads at once: `lanes` elements
// along the outer axis. Which chunk of a line lies where is turned by the line (xor), so that neither side meets a bank twice:
//   writing  a line's chunks go to all its places;
//   reading  8 threads want the same chunk of lines `lanes` apart, and find it at 8 places. 4 threads beside each want neighbours in it.
// (Twice where elements are smaller than half the largest ones of a kernel of 8-byte elements: with two lanes, lines are short.)
#include "codegen/kernel/gpu.h"

enum { THREADS = LFUSER_ABI_TILE_THREADS, MOST_VECTORS = 4, READERS = 8, TILED = LFUSER_ABI_TILED_ACCESSES };

typedef struct tile {
    lf_kernel *k;
    unsigned outer, inner;             // extents
    unsigned vectors;                  // that a thread takes
    unsigned across;                   // chunks of a line
    unsigned readers;                  // neighbouring threads that take a row's neighbouring vectors
    unsigned offsets[TILED], bytes;    // where each tiled access's tile lies in shared memory; in all
    LLVMValueRef v_shared, v_thread;   // v_thread: i32
    LLVMValueRef v_index[LF_MAX_AXES]; // of the tile's first element
    LLVMValueRef v_raw[MOST_VECTORS][TILED];
    LLVMValueRef v_inside[MOST_VECTORS];
} tile;

static bool is_tiled(const lf_kernel *k, unsigned access, bool store) {
    return k->cls.tiled >> access & 1 && k->loop->accesses[access].store == store;
}

static bool any_tiled(const lf_kernel *k, bool store) {
    for (unsigned a = 0; a < TILED; a++)
        if (a < k->loop->n_accesses && is_tiled(k, a, store)) return true;
    return false;
}

static unsigned size_of(const tile *t, unsigned access) { return lf_dtype_bytes(t->k->loop->accesses[access].dtype); }

static LLVMValueRef small(lf_kernel *k, unsigned n) { return LLVMConstInt(k->l_i32, n, false); }

// By powers of two.
static LLVMValueRef divided(lf_kernel *k, LLVMValueRef v, unsigned by) {
    return LLVMBuildUDiv(k->e->builder, v, small(k, by), "");
}
static LLVMValueRef rest_of(lf_kernel *k, LLVMValueRef v, unsigned by) {
    return LLVMBuildURem(k->e->builder, v, small(k, by), "");
}

static void lay_out(tile *t) {
    lf_kernel *k = t->k;
    t->outer = lfuser_abi_tile_outer(k->cls.vector, k->cls.spans);
    t->inner = lfuser_abi_tile_inner(k->cls.vector);
    t->across = t->outer / k->lanes;
    t->vectors = t->outer * t->inner / k->lanes / THREADS;
    unsigned most = k->lanes > 1 ? READERS : LF_GPU_WARP, vectors = t->inner / k->lanes;
    t->readers = vectors < most ? vectors : most;
    for (unsigned a = 0; a < TILED; a++) {
        t->offsets[a] = t->bytes;
        if (k->cls.tiled >> a & 1) t->bytes += t->outer * t->inner * size_of(t, a);
    }
}

// ---- where a thread is ---------------------------------------------------------------------------------------------------------------

// Puts the current copy at a place of the tile (i32 offsets from its first element). Outside that first element stands in for it: it
// is there, and if the kernel overwrites it, then after a barrier (see emit_tile).
static LLVMValueRef stand_at(tile *t, LLVMValueRef v_outer, LLVMValueRef v_inner) {
    lf_kernel *k = t->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_offset[2] = {v_outer, v_inner}, v_inside = NULL;
    for (unsigned r = 0; r < k->rows; r++) {
        k->at->v_row[r] = t->v_index[r];
        if (r + 2 < k->rows) continue;
        LLVMValueRef v = LLVMBuildAdd(b, t->v_index[r], LLVMBuildZExt(b, v_offset[r + 2 - k->rows], k->l_i64, ""), "");
        LLVMValueRef v_there = LLVMBuildICmp(b, LLVMIntSLT, v, lf_row_extent(k, r), "");
        v_inside = v_inside ? LLVMBuildAnd(b, v_inside, v_there, "inside") : v_there;
        k->at->v_row[r] = v;
    }
    for (unsigned r = k->rows - 2; r < k->rows; r++)
        k->at->v_row[r] = LLVMBuildSelect(b, v_inside, k->at->v_row[r], t->v_index[r], "");
    lf_kernel_begin_row(k);
    return v_inside;
}

// A thread reads chunk thread % across of lines thread / across, …
static LLVMValueRef line_written(tile *t, unsigned vector) {
    LLVMValueRef v = divided(t->k, t->v_thread, t->across);
    return LLVMBuildAdd(t->k->e->builder, v, small(t->k, vector * THREADS / t->across), "line");
}

static LLVMValueRef chunk_written(tile *t) { return rest_of(t->k, t->v_thread, t->across); }

// … and takes vector `along` of row `outer`: a warp has `readers` neighbouring vectors of a few rows.
static LLVMValueRef vector_taken(tile *t) {
    lf_kernel *k = t->k;
    unsigned groups = t->inner / k->lanes / t->readers;
    LLVMValueRef v_group = rest_of(k, divided(k, t->v_thread, LF_GPU_WARP), groups);
    return LLVMBuildAdd(k->e->builder, LLVMBuildMul(k->e->builder, v_group, small(k, t->readers), ""),
                        rest_of(k, t->v_thread, t->readers), "along");
}

static LLVMValueRef row_taken(tile *t, unsigned vector) {
    lf_kernel *k = t->k;
    LLVMBuilderRef b = k->e->builder;
    unsigned groups = t->inner / k->lanes / t->readers, beside = LF_GPU_WARP / t->readers;
    LLVMValueRef v_warp = divided(k, divided(k, t->v_thread, LF_GPU_WARP), groups);
    LLVMValueRef v = LLVMBuildAdd(b, LLVMBuildMul(b, v_warp, small(k, beside), ""),
                                  divided(k, rest_of(k, t->v_thread, LF_GPU_WARP), t->readers), "");
    return LLVMBuildAdd(b, v, small(k, vector * (THREADS / LF_GPU_WARP / groups) * beside), "outer");
}

// ---- shared memory -------------------------------------------------------------------------------------------------------------------

// Bits of a chunk, as the widest words that its alignment allows.
static LLVMTypeRef raw_type(const tile *t, unsigned access, unsigned *out_align) {
    lf_kernel *k = t->k;
    unsigned bytes = k->lanes * size_of(t, access);
    *out_align = k->lanes > 1 ? bytes : lf_dtype_bytes(lf_dtype_part(k->loop->accesses[access].dtype));
    unsigned word = *out_align < 8 ? *out_align : 8;
    LLVMTypeRef l_word = LLVMIntTypeInContext(k->e->context, word * 8);
    return bytes > word ? LLVMVectorType(l_word, bytes / word) : l_word;
}

static LLVMValueRef shared_at(tile *t, LLVMValueRef v_bytes) {
    return LLVMBuildGEP2(t->k->e->builder, LLVMInt8TypeInContext(t->k->e->context), t->v_shared, &v_bytes, 1, "");
}

// Bytes from the start of shared memory of a chunk; v_turn: its line's number / lanes.
static LLVMValueRef chunk_at(tile *t, unsigned access, LLVMValueRef v_line, LLVMValueRef v_chunk, LLVMValueRef v_turn) {
    lf_kernel *k = t->k;
    LLVMBuilderRef b = k->e->builder;
    unsigned size = size_of(t, access);
    LLVMValueRef v_place = LLVMBuildXor(b, v_chunk, rest_of(k, v_turn, t->across), "place");
    LLVMValueRef v = LLVMBuildAdd(b, LLVMBuildMul(b, v_line, small(k, t->outer * size), ""),
                                  LLVMBuildMul(b, v_place, small(k, k->lanes * size), ""), "");
    return LLVMBuildAdd(b, v, small(k, t->offsets[access]), "");
}

// At the first element of the thread's chunk.
static LLVMValueRef stand_at_chunk(tile *t, unsigned vector) {
    lf_kernel *k = t->k;
    lf_kernel_use_copy(k, vector);
    return stand_at(t, LLVMBuildMul(k->e->builder, chunk_written(t), small(k, k->lanes), ""), line_written(t, vector));
}

static LLVMValueRef shared_chunk(tile *t, unsigned access, unsigned vector) {
    LLVMValueRef v_line = line_written(t, vector);
    return shared_at(t, chunk_at(t, access, v_line, chunk_written(t), divided(t->k, v_line, t->k->lanes)));
}

static void read_tiled(tile *t) {
    lf_kernel *k = t->k;
    LLVMBuilderRef b = k->e->builder;
    for (unsigned v = 0; v < t->vectors; v++) {
        stand_at_chunk(t, v);
        for (unsigned a = 0; a < TILED; a++) {
            if (!is_tiled(k, a, false)) continue;
            unsigned align;
            LLVMTypeRef l_raw = raw_type(t, a, &align);
            t->v_raw[v][a] = LLVMBuildLoad2(b, l_raw, k->at->v_row_base[a], "raw");
            LLVMSetAlignment(t->v_raw[v][a], align);
            lf_mark_invariant(k, &k->loop->accesses[a], t->v_raw[v][a]);
        }
    }
}

static void leave_tiled(tile *t) {
    lf_kernel *k = t->k;
    for (unsigned v = 0; v < t->vectors; v++)
        for (unsigned a = 0; a < TILED; a++) {
            if (!is_tiled(k, a, false)) continue;
            unsigned align;
            raw_type(t, a, &align);
            LLVMSetAlignment(LLVMBuildStore(k->e->builder, t->v_raw[v][a], shared_chunk(t, a, v)), align);
        }
}

static void write_tiled(tile *t) {
    lf_kernel *k = t->k;
    LLVMBuilderRef b = k->e->builder;
    for (unsigned v = 0; v < t->vectors; v++) {
        LLVMValueRef v_inside = stand_at_chunk(t, v);
        lf_if_blocks inside;
        lf_if_begin(k, &inside, v_inside, "inside");
        for (unsigned a = 0; a < TILED; a++) {
            if (!is_tiled(k, a, true)) continue;
            unsigned align;
            LLVMTypeRef l_raw = raw_type(t, a, &align);
            LLVMValueRef v_raw = LLVMBuildLoad2(b, l_raw, shared_chunk(t, a, v), "raw");
            LLVMSetAlignment(v_raw, align);
            LLVMSetAlignment(LLVMBuildStore(b, v_raw, k->at->v_row_base[a]), align);
        }
        lf_if_end(k, &inside);
    }
}

static bool is_tiled_stmt(const lf_kernel *k, lf_stmt_id id, bool store) {
    const lf_stmt *s = &k->loop->stmts[id];
    return s->kind == (store ? LF_STMT_STORE : LF_STMT_LOAD) && s->number < TILED && is_tiled(k, s->number, store);
}

// A thread's vector from shared memory (a load) or into it (a store), element by element.
static void take_or_leave(tile *t, unsigned vector, lf_stmt_id id) {
    lf_kernel *k = t->k;
    LLVMBuilderRef b = k->e->builder;
    const lf_stmt *s = &k->loop->stmts[id];
    unsigned size = size_of(t, s->number);
    LLVMValueRef v_along = vector_taken(t), v_row = row_taken(t, vector);
    LLVMValueRef v =
        chunk_at(t, s->number, LLVMBuildMul(b, v_along, small(k, k->lanes), ""), divided(k, v_row, k->lanes), v_along);
    v = LLVMBuildAdd(b, v, LLVMBuildMul(b, rest_of(k, v_row, k->lanes), small(k, size), ""), "");
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        LLVMValueRef v_at = shared_at(t, LLVMBuildAdd(b, v, small(k, lane * t->outer * size), ""));
        if (s->kind == LF_STMT_STORE)
            lf_emit_store(k->e, s->dtype, lf_reg(k, s->args[0], lane), v_at);
        else
            k->at->registers[(size_t)id * LF_MAX_LANES + lane] = lf_emit_load(k->e, s->dtype, v_at);
    }
}

// Either way the statement is done then. (A store not before: what it needs is loaded with the rest.)
static void take_or_leave_all(tile *t, unsigned vector, bool store) {
    for (lf_stmt_id i = 0; i < t->k->loop->n_stmts; i++) {
        if (!is_tiled_stmt(t->k, i, store)) continue;
        take_or_leave(t, vector, i);
        t->k->at->ready[i] = true;
    }
}

// ---- the kernel ----------------------------------------------------------------------------------------------------------------------

// Some load's guard or index comes from memory: it has to wait until tiles are there, as it might be in one.
static bool loads_depend(const lf_kernel *k) {
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        if (k->loop->stmts[i].kind == LF_STMT_LOAD && (k->loop->stmts[i].n_args || k->loop->stmts[i].guard != LF_NO_STMT))
            return true;
    return false;
}

static bool any_written(const lf_kernel *k) {
    for (uint32_t a = 0; a < k->loop->n_accesses; a++)
        if (!k->loop->accesses[a].store && k->loop->accesses[a].written) return true;
    return false;
}

static LLVMValueRef tiles_along(tile *t, unsigned walked, unsigned extent) {
    lf_kernel *k = t->k;
    LLVMValueRef v = LLVMBuildAdd(k->e->builder, lf_row_extent(k, walked), lf_i64_const(k, extent - 1), "");
    return LLVMBuildUDiv(k->e->builder, v, lf_i64_const(k, extent), "tiles");
}

// *io_v / v_by; *io_v keeps the remainder. Numbers of tiles fit 32 bits where numbers of elements do.
static LLVMValueRef divide(lf_kernel *k, LLVMValueRef *io_v, LLVMValueRef v_by) {
    LLVMBuilderRef b = k->e->builder;
    LLVMTypeRef l_type = k->cls.wide ? k->l_i64 : k->l_i32;
    LLVMValueRef v = LLVMBuildTrunc(b, *io_v, l_type, ""), v_divisor = LLVMBuildTrunc(b, v_by, l_type, "");
    LLVMValueRef v_quotient = LLVMBuildUDiv(b, v, v_divisor, "");
    *io_v = LLVMBuildZExt(b, LLVMBuildSub(b, v, LLVMBuildMul(b, v_quotient, v_divisor, ""), ""), k->l_i64, "");
    return LLVMBuildZExt(b, v_quotient, k->l_i64, "");
}

// The tile's place: its last two numbers count tiles, those before it elements.
static void begin_tile(tile *t, LLVMValueRef v_number, LLVMValueRef v_outer, LLVMValueRef v_inner) {
    lf_kernel *k = t->k;
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_along = v_number, v_down = divide(k, &v_along, v_inner),
                 v_others = k->rows > 2 ? divide(k, &v_down, v_outer) : NULL;
    if (v_others) lf_split_index(k, v_others, k->rows - 2, lf_row_extent, t->v_index);
    t->v_index[k->rows - 2] = LLVMBuildMul(b, v_down, lf_i64_const(k, t->outer), "first");
    t->v_index[k->rows - 1] = LLVMBuildMul(b, v_along, lf_i64_const(k, t->inner), "first");
}

static void emit_tile(tile *t) {
    lf_kernel *k = t->k;
    bool depend = loads_depend(k), loads = any_tiled(k, false), stores = any_tiled(k, true);
    if (loads) read_tiled(t);
    LLVMValueRef v_inner = LLVMBuildMul(k->e->builder, vector_taken(t), small(k, k->lanes), "");
    for (unsigned v = 0; v < t->vectors; v++) {
        lf_kernel_use_copy(k, v);
        t->v_inside[v] = stand_at(t, row_taken(t, v), v_inner);
        for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) k->at->ready[i] = is_tiled_stmt(k, i, false);
    }
    k->loads_stay = true; // under way before the barrier
    if (!depend) lf_emit_loads(k, NULL, t->vectors, 0);
    if (loads) leave_tiled(t);
    bool overwrites = any_written(k); // all have read, stand-ins too, before any writes
    if (loads || (overwrites && !depend)) lf_gpu_barrier(k);
    for (unsigned v = 0; v < t->vectors; v++) {
        lf_kernel_use_copy(k, v);
        take_or_leave_all(t, v, false);
    }
    if (depend) lf_emit_loads(k, NULL, t->vectors, 0);
    if (depend && overwrites) lf_gpu_barrier(k);
    for (unsigned v = 0; v < t->vectors; v++) {
        lf_kernel_use_copy(k, v);
        lf_emit_effect_operands(k, 0);
        take_or_leave_all(t, v, true);
        lf_if_blocks inside;
        lf_if_begin(k, &inside, t->v_inside[v], "inside");
        lf_emit_column_effects(k, 0);
        lf_if_end(k, &inside);
    }
    if (stores) {
        lf_gpu_barrier(k);
        write_tiled(t);
    }
    lf_kernel_use_copy(k, 0);
    lf_gpu_barrier(k); // all is read; the next tile may come
}

lf_status lf_gpu_emit_tiles(lf_kernel *k, lf_object *out) {
    LLVMBuilderRef b = k->e->builder;
    if (k->rows < 2 || !k->cls.tiled || k->loop->n_accesses == 0)
        return lf_error(k->l->allocator, LF_INTERNAL, "kernel %s: a class of tiles with %u axes and accesses %#x",
                        k->loop->name, k->rows, k->cls.tiled);
    tile t = {.k = k};
    lay_out(&t);
    out->block = THREADS;
    out->rows_a_block = 1;
    out->shared_bytes = t.bytes;
    t.v_shared = lf_gpu_shared_memory(k, t.bytes);
    t.v_thread = lf_gpu_intrinsic(k, "llvm.nvvm.read.ptx.sreg.tid.x", NULL, 0);
    LLVMValueRef v_outer = tiles_along(&t, k->rows - 2, t.outer), v_inner = tiles_along(&t, k->rows - 1, t.inner);
    LLVMValueRef v_tiles = LLVMBuildMul(b, v_outer, v_inner, "");
    for (unsigned r = 0; r + 2 < k->rows; r++) v_tiles = LLVMBuildMul(b, v_tiles, lf_row_extent(k, r), "");
    lf_loop_blocks tiles;
    LLVMValueRef v_first = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.ctaid.x"),
                 v_step = lf_gpu_special(k, "llvm.nvvm.read.ptx.sreg.nctaid.x");
    begin_tile(&t, lf_for_begin(k, &tiles, v_first, v_tiles, v_step, "tile"), v_outer, v_inner);
    emit_tile(&t);
    lf_for_end(k, &tiles, LF_HINT_ROLLED);
    return NULL;
}
