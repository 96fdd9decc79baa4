// From loop IR to one LLVM function. The body of a kernel (body.c) is the same for every target; a target decides how rows and
// columns are walked (cpu.c, gpu.c). Private to lib/codegen, but for lf_kernel_emit.
#ifndef LF_CODEGEN_KERNEL_KERNEL_H
#define LF_CODEGEN_KERNEL_KERNEL_H
#include "codegen/llvm/context.h"

// Fills l's module with the kernel; neither verified nor optimised. Sets entry, shared_bytes, block and rows_a_block.
lf_status lf_kernel_emit(lf_llvm *l, const lf_loop *loop, const lf_target *t, lfuser_abi_class class_,
                         const lf_codegen_options *options, lf_object *out_object) LF_MUST_USE;

// ---- private to this folder ------------------------------------------------------------------------------------------------

enum { LF_CHUNK = 8192, LF_SPAN = 1024, LF_SPANS = LF_CHUNK / LF_SPAN, LF_MAX_LANES = 16, LF_MAX_COPIES = 2 * LF_SPANS };

// Statements at one place. A GPU thread may emit the statements of several columns (or elements) side by side, so that their loads
// are under way together and what a pass computed is at hand in the next; each place is a copy. What belongs to the row is in the
// first copy of that row and serves all.
typedef struct lf_copy {
    LLVMValueRef v_row[LF_MAX_AXES];    // i64 index along each walked row axis
    LLVMValueRef v_column[LF_MAX_AXES]; // i64 index of lane 0 along each walked column axis
    int64_t beside; // with one walked column axis: how far the column is from that of the first copy, if that is known
                    // while compiling; 0: it is not
    lf_register *registers;   // by statement * LF_MAX_LANES + lane
    bool *ready;              // by statement: emitted where the builder stands
    LLVMValueRef *v_row_base; // by access: address of the row, columns aside (set up by lf_kernel_begin_row)
} lf_copy;

typedef struct lf_kernel {
    lf_llvm *l;
    lf_emit *e;
    const lf_loop *loop;
    lfuser_abi_class cls;
    bool gpu;
    bool streams; // GPU: what is read of a row alone is read once, and much is written beside it: streamed.h
    LLVMValueRef v_function, v_args;
    LLVMTypeRef l_i64, l_i32, l_pointer; // l_pointer: to device memory
    unsigned lanes;                      // registers a varying statement has: neighbours along the vector axis
    unsigned vector_axis;                // the innermost axis; for shape OUTER the last row axis
    unsigned rows, cols;                 // axes that are walked: the last cls.rows and cls.cols ones
    LLVMValueRef v_words[512]; // argument words read so far, in the entry block (NULL: not yet); more are read anew
    bool *varies;              // by statement: differs between lanes
    bool *once;     // by statement: the same in all copies (class STACK); copies of columns have their rows for that
    bool *marks[2]; // by statement: scratch of lf_emit_statement and lf_emit_loads
    lf_copy copies[LF_MAX_COPIES];
    lf_copy *at;         // the copy that is being emitted
    unsigned row_copies; // so many copies, from a multiple of that number on, belong to one row; 0: all do
    // GPU: columns that lie in shared memory (gpu_stage.c), a vector a thread, copy and access
    uint32_t *staged_at;                    // by access: where, in bytes, + 1; 0: nowhere. NULL: none does
    uint32_t staged_threads, staged_copies; // of the first copies
    LLVMValueRef v_stage, v_tid;
    bool loads_stay; // loads are not marked invariant: LLVM moves such past barriers, to their uses or away from them
    LLVMBasicBlockRef b_entry;      // allocas and argument loads go here
    LLVMMetadataRef independent;    // CPU: the access group of loads and stores of independent iterations
    LLVMMetadataRef parallel_group; // the same while such a loop is emitted, else NULL
} lf_kernel;

// What a reduction combines. ARGMIN and ARGMAX carry the element and its number.
typedef struct lf_partial {
    lf_register value;
    LLVMValueRef v_position; // ARG*: i64, -1 = nothing yet
} lf_partial;

// body.c
lf_status lf_kernel_begin(lf_kernel *k, LLVMTypeRef function_type);
void lf_kernel_finish(lf_kernel *k);
LLVMValueRef lf_word(lf_kernel *k, uint32_t word);              // i64
LLVMValueRef lf_row_extent(lf_kernel *k, unsigned walked_axis); // i64
LLVMValueRef lf_column_extent(lf_kernel *k, unsigned walked_axis);
LLVMValueRef lf_columns(lf_kernel *k); // product of column extents, i64
// Splits a linear number into an index along each of n axes with these extents (innermost last).
void lf_split_index(lf_kernel *k, LLVMValueRef v_linear, unsigned n, LLVMValueRef (*extent)(lf_kernel *, unsigned),
                    LLVMValueRef *out);
// Merged axes lie at the end of their section of the argument block.
static inline unsigned lf_row_axis(const lf_kernel *k, unsigned walked) { return k->loop->rows - k->rows + walked; }
static inline unsigned lf_column_axis(const lf_kernel *k, unsigned walked) {
    return k->loop->rows + k->loop->cols - k->cols + walked;
}
void lf_kernel_use_copy(lf_kernel *k, unsigned copy);          // the first one is used unless told otherwise
lf_copy *lf_row_copy(lf_kernel *k);                            // the first copy of the row that is being emitted
void lf_kernel_begin_row(lf_kernel *k);                        // after v_row: forgets statements, computes row addresses
void lf_kernel_keep_loads(lf_kernel *k);                       // forgets columns but for what was loaded (memory.c)
void lf_kernel_forget_columns(lf_kernel *k);                   // after v_column changes, in this copy
void lf_kernel_at_column(lf_kernel *k, LLVMValueRef v_number); // both, for the column of that number (row-major)
// Emits what these statements need and have not got yet, in order, and then themselves.
void lf_emit_statement(lf_kernel *k, lf_stmt_id id);
// Row statements of a level: values for all, effects only where v_only_if holds (NULL: always). Stand in the row's block.
void lf_emit_rows_of_level(lf_kernel *k, unsigned level, LLVMValueRef v_only_if);
// The same in three steps, where the columns of a pass should not wait for what only the row's own results need: before a pass what columns
// need, and loads that wait for nothing; after its loads the other loads of that level and those before; in the end lf_emit_rows_of_level.
void lf_emit_rows_for_columns(lf_kernel *k, unsigned level);
void lf_emit_row_loads(lf_kernel *k, unsigned level);
// The reductions of a pass, and then its column stores and index reports; returns how many were written to out.
unsigned lf_pass_reductions(const lf_kernel *k, unsigned pass, lf_stmt_id *out, unsigned most);
void lf_emit_column_effects(lf_kernel *k, unsigned pass);
// The same in two steps: what the effects of a pass need, and the effects, which may stand under a condition. In a kernel without
// columns pass 0 is all there is.
void lf_emit_effect_operands(lf_kernel *k, unsigned pass);
// The loads that a pass needs, of these copies (NULL: the first n) before anything else, so that they are
// under way together. The first copy is used after.
void lf_emit_loads(lf_kernel *k, const unsigned *copies, unsigned n_copies, unsigned pass);
// 32-bit registers that those of one copy take.
unsigned lf_loaded_registers(lf_kernel *k, unsigned pass);
void lf_set_reduced(lf_kernel *k, lf_stmt_id id, unsigned lane, lf_partial p);
lf_register lf_reg(lf_kernel *k, lf_stmt_id id, unsigned lane);
LLVMValueRef lf_alloca(lf_kernel *k, LLVMTypeRef type, const char *name);
bool lf_is_multiple(const lf_kernel *k, lf_stmt_id id);  // an i64, of the lanes, in the first lane
bool lf_grows_by_one(const lf_kernel *k, lf_stmt_id id); // an i64, from lane to lane
LLVMValueRef lf_i64_const(lf_kernel *k, int64_t v);
LLVMBasicBlockRef lf_block(lf_kernel *k, const char *name);

// memory.c
void lf_set_row_addresses(lf_kernel *k); // of all accesses, columns aside; part of begin_row
void lf_emit_memory(lf_kernel *k, lf_stmt_id load_or_store,
                    lf_register *registers);                            // all lanes; a load fills the statement's registers
LLVMValueRef lf_access_address(lf_kernel *k, lf_stmt_id load_or_store); // at the current row and column
LLVMValueRef lf_address_in_row(lf_kernel *k, uint32_t access, const LLVMValueRef *v_row); // at another row, current column
bool lf_is_staged(const lf_kernel *k, uint32_t access);                                   // in this copy
LLVMValueRef lf_staged_address(lf_kernel *k, uint32_t access); // of the thread's vector for this copy
bool lf_is_own(const lf_kernel *k, const lf_access *access);   // no two rows read the same of it
void lf_mark_parallel(lf_kernel *k, LLVMValueRef v_access);
void lf_mark_invariant(lf_kernel *k, const lf_access *access, LLVMValueRef v_load);

// A counting loop: for (i = from; i < to; i += step). Between begin and end the builder stands in the body.
typedef struct lf_loop_blocks {
    LLVMBasicBlockRef b_head, b_body, b_done;
    LLVMValueRef v_index, v_step;
} lf_loop_blocks;
LLVMValueRef lf_for_begin(lf_kernel *k, lf_loop_blocks *b, LLVMValueRef v_from, LLVMValueRef v_to, LLVMValueRef v_step,
                          const char *name);
// PARALLEL: iterations are independent. SHORT: that, and not worth more code than one vector loop. ROLLED: one copy of the body.
typedef enum lf_loop_hint { LF_HINT_NONE, LF_HINT_PARALLEL, LF_HINT_SHORT, LF_HINT_ROLLED } lf_loop_hint;
void lf_for_end(lf_kernel *k, lf_loop_blocks *b, lf_loop_hint hint);
// if (condition) { … }
typedef struct lf_if_blocks {
    LLVMBasicBlockRef b_done;
} lf_if_blocks;
void lf_if_begin(lf_kernel *k, lf_if_blocks *b, LLVMValueRef v_condition, const char *name);
void lf_if_end(lf_kernel *k, lf_if_blocks *b);

// The least i in [from, to) for which `stops` holds, else to; if it holds for one, it holds for all after it.
typedef LLVMValueRef (*lf_stop)(void *context, LLVMValueRef v_i);
LLVMValueRef lf_search(lf_kernel *k, LLVMValueRef v_from, LLVMValueRef v_to, lf_stop stops, void *context);

// reduce.c
bool lf_has_position(const lf_stmt *reduce);
lf_partial lf_neutral(lf_kernel *k, const lf_stmt *reduce);
lf_partial lf_combine(lf_kernel *k, const lf_stmt *reduce, lf_partial low, lf_partial high);
lf_register lf_reduced(lf_kernel *k, const lf_stmt *reduce, lf_partial p); // the reduction's result
lf_partial lf_contribution(lf_kernel *k, const lf_stmt *reduce, unsigned lane, LLVMValueRef v_position);
lf_partial lf_partial_select(lf_kernel *k, const lf_stmt *reduce, LLVMValueRef v_condition, lf_partial a, lf_partial b);
// An array of n partials in memory (an alloca, or global memory at v_base).
typedef struct lf_partials {
    LLVMValueRef v_values, v_positions;
} lf_partials;
lf_partials lf_partials_alloca(lf_kernel *k, const lf_stmt *reduce, unsigned n, const char *name);
lf_partial lf_partials_load(lf_kernel *k, const lf_stmt *reduce, lf_partials array, LLVMValueRef v_index, bool parallel);
void lf_partials_store(lf_kernel *k, const lf_stmt *reduce, lf_partials array, LLVMValueRef v_index, lf_partial p,
                       bool parallel);
// All chunks of a row in the canonical order. `chunk` emits one chunk, given its number, and fills a partial per reduction.
typedef void (*lf_emit_chunk)(lf_kernel *k, void *context, LLVMValueRef v_chunk, lf_partial *out);
void lf_stream_chunks(lf_kernel *k, const lf_stmt_id *reductions, unsigned n, LLVMValueRef v_columns, lf_emit_chunk chunk,
                      void *context, lf_partial *out);

// counter.c: a binary counter of sums. merge: x = level + x; keep: level = x, where x is what the caller pushes.
typedef struct lf_level {
    unsigned number;
    LLVMValueRef v; // i64; NULL: the number is known while compiling
} lf_level;
typedef struct lf_counter {
    void *context;
    void (*merge)(void *context, lf_level level);
    void (*keep)(void *context, lf_level level);
} lf_counter;
// v_before: how many were pushed before. Levels 0 to `levels`, one of which is the last: no more are pushed than that.
void lf_counter_push(lf_kernel *k, const lf_counter *c, LLVMValueRef v_before, unsigned levels);
// Merges the levels that are full after v_count pushes: later ones, which are lower, on the right. x comes in neutral.
void lf_counter_rest(lf_kernel *k, const lf_counter *c, LLVMValueRef v_count, unsigned levels);
// The same with any number of levels, in memory.
void lf_counter_push_by_loop(lf_kernel *k, const lf_counter *c, LLVMValueRef v_before);
void lf_counter_rest_by_loop(lf_kernel *k, const lf_counter *c, LLVMValueRef v_count, unsigned levels, lf_loop_hint hint);

// random.c
lf_register lf_emit_iota(lf_kernel *k, const lf_stmt *s, lf_register i, lf_register start, lf_register step);
enum { LF_RANDOM_ARGS = 5 }; // lo | mean, hi | std, seed, offset, row-major element number
lf_register lf_emit_random(lf_kernel *k, const lf_stmt *s, const lf_register args[LF_RANDOM_ARGS]);
// All lanes; only the element number may differ between them.
bool lf_random_shares(const lf_kernel *k, const lf_stmt *s);
void lf_emit_random_lanes(lf_kernel *k, const lf_stmt *s, const lf_register (*args)[LF_RANDOM_ARGS], lf_register *out);

// whole.c: the threads that share a row.
typedef struct lf_team {
    LLVMValueRef v_rank, v_size;           // i64: this thread's number, how many there are
    LLVMValueRef (*barrier)(lf_kernel *k); // NULL: a team of one
} lf_team;
lf_status lf_emit_serial_pass(lf_kernel *k, unsigned pass);
void lf_emit_sorted(lf_kernel *k, LLVMValueRef v_position, LLVMValueRef v_rank); // stores the results of a rank
void lf_emit_sort_row(lf_kernel *k, const lf_team *team, LLVMValueRef v_row);
void lf_emit_scatter_row(lf_kernel *k);
void lf_emit_updates(lf_kernel *k, lf_register source); // of all results, at the current column

// cpu.c, gpu.c
lf_status lf_kernel_emit_cpu(lf_kernel *k);
lf_status lf_kernel_emit_gpu(lf_kernel *k, lf_object *out_object);
#endif
