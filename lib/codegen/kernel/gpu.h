// What the GPU files of this folder share. Private to them.
#ifndef LF_CODEGEN_KERNEL_GPU_H
#define LF_CODEGEN_KERNEL_GPU_H
#include "codegen/kernel/kernel.h"

enum {
    LF_GPU_WARP = 32,
    LF_GPU_REDUCTIONS = 64, // in one pass
    LF_GPU_MOST_SLOT = 32   // bytes of shared memory for a partial result: up to 16 of value, 8 of position
};

// The threads that share a row, in one pass. Of a chunk of 8192 columns, a thread has `lanes` neighbouring ones in each span of 1024,
// so that the canonical order is: bits 12, 11, 10 of the column within the thread, the lowest ones within its lanes, the next five
// across a warp, the rest, and then the chunks, across warps.
typedef struct gpu {
    lf_kernel *k;
    LLVMValueRef v_thread; // i64: thread's number among those that share a chunk
    LLVMValueRef v_team;   // i64: which of the chunks that the block works on at once is this thread's
    unsigned threads;      // that share a chunk
    unsigned chunks;       // that a block works on at once
    unsigned rounds, base; // RESIDENT: chunks that a thread takes part in; the first copy of the one that is emitted
    unsigned spans;        // of a chunk; fewer than 8 only when the row is no longer
    unsigned cluster;      // blocks that share a row; 1: it is one block's
    LLVMValueRef v_rank;   // i64: which of these blocks this one is
    bool asks;             // each chunk is asked whether the row has all of it: only the last one may not be whole
    bool whole;            // the one that is emitted is
    bool placed;           // spans have their places before the first row
    bool staged;           // columns come through shared memory (gpu_stage.c)
    unsigned last_read;    // the last pass that reads them there
    bool is_online;        // passes 0 and 1 are one (gpu_online.c), of these two reductions
    lf_stmt_id online[2];
    LLVMValueRef v_most; // what the first reduction of those in slots came to
    lf_partial (*adjust)(struct gpu *g, unsigned reduction, LLVMValueRef v_slot, lf_partial p); // what a slot holds; or NULL
    unsigned at_once;                 // MIXED: rows that a block works on at once; 0: one
    LLVMValueRef v_there;             // not NULL: whether the row exists; else its columns count for nothing
    LLVMValueRef v_next[LF_MAX_AXES]; // index of the row that comes after this one
    bool resident;                    // the row is held by the block: what a pass computed is at hand in the next
    unsigned pass, n;
    const lf_stmt_id *ids; // the n reductions of the pass
    LLVMValueRef v_columns;
    LLVMValueRef v_inside[LF_MAX_COPIES],
        v_position[LF_MAX_COPIES]; // by copy: whether its columns exist; the first one's number
    // Shared memory: a slot a warp (or warp and chunk) and reduction, in two buffers that passes use in turn.
    LLVMValueRef v_shared;
    unsigned slots, most, buffer, slot; // slot: bytes of one
    LLVMValueRef v_buffer;              // not NULL: which buffer, decided at run time
    unsigned folded;                    // slots that are folded into one result; 0: all
    bool once;                          // nothing was exchanged before
    LLVMValueRef v_home;                // not NULL: the first of the thread's slots
    lf_partials *from;                  // not NULL: what is reduced are partial results in memory, not columns
} gpu;

// gpu.c
LLVMValueRef lf_gpu_intrinsic(lf_kernel *k, const char *name, LLVMValueRef *args, unsigned n);
LLVMValueRef lf_gpu_special(lf_kernel *k, const char *name); // a special register as i64
LLVMValueRef lf_gpu_barrier(lf_kernel *k);
void lf_gpu_meet(const gpu *g); // all threads that share a row
LLVMValueRef lf_gpu_total_rows(lf_kernel *k);
void lf_gpu_prefetch(lf_kernel *k, LLVMValueRef v_address);     // i64: the line is on its way to the L2
void lf_gpu_across_device(lf_kernel *k, LLVMValueRef v_access); // the atomic access is ordered for all blocks
// The number of the block's next piece of work, in all threads; counted in the first word of scratch memory. v_shared: 8 bytes.
LLVMValueRef lf_gpu_take_ticket(lf_kernel *k, LLVMValueRef v_thread, LLVMValueRef v_shared);
// Until the u32 at v_word, which another block writes with release order, is at least v_least. In one thread.
void lf_gpu_await(lf_kernel *k, LLVMValueRef v_word, LLVMValueRef v_least);
LLVMValueRef lf_gpu_bit(lf_kernel *k, LLVMValueRef v, unsigned bit); // of an integer, as i1
// gpu_exchange.c: partial results from thread to thread
lf_status lf_gpu_share(gpu *g, unsigned slots, unsigned buffers,
                       lf_object *out); // gets the shared memory; sets slots and most
// Any first-class value of up to 64 bits from another lane: mode is "bfly", "up" or "idx".
LLVMValueRef lf_gpu_shuffle(lf_kernel *k, const char *mode, LLVMValueRef v, LLVMValueRef v_lane);
LLVMValueRef lf_gpu_shared_memory(lf_kernel *k, unsigned bytes);
LLVMValueRef lf_gpu_shared_slot(gpu *g, LLVMValueRef v_slot, unsigned reduction, unsigned offset);
lf_partial lf_gpu_fold_warp(lf_kernel *k, const lf_stmt *reduce, lf_partial p); // all lanes get the result
lf_partial lf_gpu_load_slot(gpu *g, unsigned reduction, LLVMValueRef v_slot);
void lf_gpu_leave(gpu *g, LLVMValueRef v_slot, const lf_partial *p);   // the first lane of a warp stores
void lf_gpu_fold_slots(gpu *g, LLVMValueRef v_count, lf_partial *out); // after a barrier; v_count NULL: all slots
// The results of all warps, in place, in all threads. Reductions that combine alike share their steps. Ends behind a barrier.
void lf_gpu_fold_block(gpu *g, lf_partial *p);
void lf_gpu_exchange(gpu *g, lf_partial *p); // over the warps of the block, slots used before
lf_partial lf_gpu_fold_pairs(lf_kernel *k, const lf_stmt *reduce, lf_partial *all,
                             unsigned n); // n a power of two; overwrites all
// gpu_stage.c: columns of RESIDENT and MIXED rows, copied to shared memory a row ahead. In a class without these do nothing.
lf_status lf_gpu_stage_plan(gpu *g, lf_object *out);
void lf_gpu_stage_row(
    gpu *g,
    LLVMValueRef v_row); // begins to copy a row, to the copies from `base` on: the first one, or (class `alone`) each
void lf_gpu_stage_next(gpu *g, unsigned copy); // after a pass has read it: of row v_next, if nothing will read it again
void lf_gpu_stage_commit(gpu *g);              // of the next row: all its copies are under way
void lf_gpu_stage_others(gpu *g);              // loads of columns that are not staged, in this pass
void lf_gpu_stage_take(gpu *g);                // a row, all of it, into registers: what lies there may be overwritten
// So many bytes more of the shared memory whose size the launch says, 16 bytes aligned.
LLVMValueRef lf_gpu_dynamic_memory(lf_kernel *k, lf_object *out, unsigned bytes);
void lf_gpu_stage_wait(gpu *g);   // the copies that this thread has begun are done
void lf_gpu_stage_forget(gpu *g); // before a pass: it reads its columns again
// gpu_pairs.c: the largest or smallest of halves, two at a time.
bool lf_gpu_pairs_up(const gpu *g, const lf_stmt *reduce);
void lf_gpu_take_pairs(gpu *g, const lf_stmt *reduce, LLVMValueRef *v_pairs); // of the current copy, into lanes / 2 words
lf_partial lf_gpu_part_pairs(gpu *g, const lf_stmt *reduce, LLVMValueRef *v_pairs); // overwrites them
// gpu_online.c: a maximum and what is summed below it
bool lf_gpu_find_online(gpu *g);                       // sets online
void lf_gpu_online_pass(gpu *g, lf_partial *result);   // of both; counts as passes 0 and 1
LLVMValueRef lf_gpu_warp_slot(gpu *g, unsigned round); // where the thread's warp leaves what it has; gpu_rows.c
// gpu_chunk.c
void lf_gpu_own_sums(gpu *g, lf_partial *out);         // what the thread's own columns of a chunk come to
void lf_gpu_place_spans(gpu *g, LLVMValueRef v_first); // RESIDENT: once for all rows
bool lf_gpu_unrolls(const gpu *g);
// The parts of that which follows: copies of the columns from v_first on, what a thread's columns add up to, and their effects.
void lf_gpu_sum_spans(gpu *g, lf_partial *out);
void lf_gpu_store_spans(gpu *g);
// The columns of a chunk of which v_first is the first: what they add up to in the thread's warp, and the effects of the pass.
void lf_gpu_unrolled_chunk(gpu *g, LLVMValueRef v_first, lf_partial *out);
void lf_gpu_emit_chunk(lf_kernel *k, void *context, LLVMValueRef v_chunk,
                       lf_partial *out); // context: gpu; the block's result
// gpu_rows.c
LLVMValueRef lf_gpu_first_column(gpu *g); // of the round's chunk, by base
lf_status lf_gpu_emit_rows(lf_kernel *k, lf_object *out);
void lf_gpu_rounds_pass(gpu *g, lf_partial *result); // `chunks` chunks at once, until all are reduced; for all threads
// gpu_few.c: what gpu_mixed.c leaves, class OUTER with `spans`
lf_status lf_gpu_emit_few(lf_kernel *k, lf_object *out);
// gpu_folds.c: what rows of a set add up to across
enum { LF_GPU_FOLDS = 8 };
typedef struct lf_folds {
    gpu *g;
    unsigned n, cell; // bytes of a partial result in scratch memory
    unsigned levels;  // of the counter, in shared memory
    lf_stmt_id ids[LF_GPU_FOLDS];
    lf_partials x[LF_GPU_FOLDS];       // accumulators, one a column of the thread
    LLVMValueRef v_waiting;            // the levels in shared memory
    LLVMValueRef v_position[LF_SPANS]; // by span: the thread's first column
    LLVMValueRef v_sets, v_set;        // i64: how many, which one
} lf_folds;
void lf_folds_plan(lf_folds *f, gpu *g, lf_object *out); // all but the sets
static inline const lf_stmt *lf_fold(const lf_folds *f, unsigned i) { return &f->g->k->loop->stmts[f->ids[i]]; }
lf_partial lf_folds_get(lf_folds *f, unsigned i, unsigned column); // an accumulator
void lf_folds_set(lf_folds *f, unsigned i, unsigned column, lf_partial p);
void lf_folds_clear(lf_folds *f);
unsigned lf_folds_bytes(const lf_folds *f); // of a block's accumulators
// The accumulators come in, as number v_count of a power of two; when it is the last, they are the whole set's.
void lf_folds_push(lf_folds *f, LLVMValueRef v_count, LLVMValueRef v_is_last);
void lf_folds_leave(lf_folds *f); // as the set's result
// gpu_mixed.c: rows, and reductions across them
lf_status lf_gpu_emit_mixed(lf_kernel *k, lf_object *out);
// gpu_tile.c: pointwise, class TILE
lf_status lf_gpu_emit_tiles(lf_kernel *k, lf_object *out);
// gpu_product.c: class PRODUCT
lf_status lf_gpu_emit_product(lf_kernel *k, lf_object *out);
// gpu_scatter.c: form SCATTER, class RESIDENT
void lf_gpu_emit_scatter(lf_kernel *k, lf_object *out);
// gpu_sort.c: form SORT, class LOOKBACK
lf_status lf_gpu_emit_sort(lf_kernel *k, lf_object *out);
// gpu_scan.c: form SERIAL
lf_status lf_gpu_emit_scan(lf_kernel *k, lf_object *out);
// gpu_split.c, gpu_reduce.c: pure reductions (abi launch `reduces`)
lf_status lf_gpu_emit_split(lf_kernel *k, lf_object *out);
lf_status lf_gpu_emit_combine(lf_kernel *k, lf_object *out);
LLVMValueRef lf_gpu_chunks_of(lf_kernel *k, LLVMValueRef v_columns);
LLVMValueRef lf_gpu_divide(lf_kernel *k, LLVMValueRef v, LLVMValueRef v_by, LLVMValueRef *out_rest);
// Bytes of partial results that SPLIT's second kernel loads at once.
unsigned lf_gpu_vector_bytes(const lf_kernel *k, const lf_stmt *reduce);
// Where OUTER leaves reduction i's result for a part of a chunk and a row, and those of the rows after it.
lf_partials lf_gpu_part_of(gpu *g, unsigned i, LLVMValueRef v_chunk, LLVMValueRef v_part, unsigned parts,
                           LLVMValueRef v_row);
lf_status lf_gpu_emit_outer(lf_kernel *k, lf_object *out);
#endif
