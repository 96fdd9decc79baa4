// Loop IR: what a kernel iterates over and computes, before any target decides how. One kernel is
//
//   for each row (the `rows` axes, independent)          pointwise kernels have no columns: a row is an element
//     pass 0:  for each column: loads, ops, stores, reductions
//     row ops: on what the pass reduced
//     pass 1:  …
//
// written as one SSA list of statements. A statement's scope (row or column) follows from its operands, and its level says after
// how many passes its operands are known: a reduction of level L runs in pass L and its result has level L + 1; column
// statements are recomputed in every pass that needs them. Reductions have the canonical order of the language, whatever the
// target does.
#ifndef LF_SCHEDULE_LOOP_H
#define LF_SCHEDULE_LOOP_H
#include "ir/ir.h"
#include <lfuser/launch_abi.h>

enum {
    LF_MAX_AXES = 2 * LF_MAX_RANK,
    LF_MAX_SPLIT = 6, // reductions of a kernel that may be split: their exchange must fit 48 KiB of shared memory
    LF_MOST_PARTS = 8 // of a chunk, a block each, where rows are neighbours
};
typedef uint32_t lf_stmt_id; // index into lf_loop.stmts
#define LF_NO_STMT UINT32_MAX

typedef enum lf_stmt_kind {
    LF_STMT_INDEX,         // i64: index along axis `number`
    LF_STMT_SCALAR,        // argument: host scalar `number`
    LF_STMT_CONST,         // `constant` in `dtype`
    LF_STMT_LOAD,          // access `number`; args: explicit index terms; guard: reads 0 where false
    LF_STMT_ELEM,          // graph op `op` on args (LF_NO_STMT for an omitted operand)
    LF_STMT_SIMPLE,        // opcode `code` on args, all of dtype `compute` (SELECT: the first is bool)
    LF_STMT_CAST,          // args[0] of dtype `compute` to `dtype`
    LF_STMT_REDUCE,        // `code` (SUM, PROD, RMIN, RMAX, ANY, ALL, ARGMIN, ARGMAX) of args[0] over the columns
    LF_STMT_STORE,         // args[0] to access `number`
    LF_STMT_DELIVER,       // args[0] to the mailbox whose address is argument scalar `number`
    LF_STMT_IOTA,          // float start + i * step, rounded once (`op`): args i (i64), start, step
    LF_STMT_RANDOM,        // one element of UNIFORM or NORMAL (`op`): args lo|mean, hi|std, seed, offset, row-major index
    LF_STMT_SCAN,          // `code` (CUMSUM, …) of args[0] over the columns so far; columns are then visited in order
    LF_STMT_SCAN_POSITION, // i64: position that the scan args[0] (CUMMAX, CUMMIN) stands at
    LF_STMT_SORTED,        // form SORT: element (number 0) or position (number 1) of the rank that the column stands for
    LF_STMT_FOLD, // `code` (SUM, PROD, RMIN, RMAX, ANY, ALL) of args[0] over the rows, for each column: partial result `number`
    LF_STMT_INDEX_ERROR // records op number `number` when args[0] (bool) is false
} lf_stmt_kind;

typedef struct lf_stmt {
    lf_stmt_kind kind;
    lf_dtype dtype; // of the result
    lf_dtype compute;
    lf_opcode code;
    const lf_op *op;
    const lf_value *value; // graph value that this computes, for names; may be NULL
    uint32_t number;
    lf_stmt_id args[8];
    uint8_t n_args;
    lf_stmt_id guard; // LF_NO_STMT: none
    lf_scalar constant;
    bool column; // scope
    uint16_t level;
} lf_stmt;

// Address of an access: base + sum over axes of stride * index + sum over explicit terms of stride * statement.
typedef struct lf_access {
    lf_dtype dtype;
    bool store;
    const lf_value *buffer;         // graph value that lies there (a parameter, an output, a temporary), for names
    lf_value *base;                 // host i64: address of element 0 of the access
    lf_value *strides[LF_MAX_AXES]; // host i64, in elements; NULL = 0 by construction (a broadcast)
    lf_value *terms[LF_MAX_RANK];   // strides of the load's explicit index statements
    uint8_t n_terms;
    bool row;      // does not depend on columns
    bool written;  // a load from memory that some kernel of the program writes (`into`)
    uint8_t along; // axis that the buffer's last one lies along, or LFUSER_ABI_NO_AXIS
    uint32_t word; // in the argument block: base, rows + cols strides, n_terms strides
} lf_access;

typedef enum lf_loop_form {
    LF_LOOP_PLAIN,  // pointwise, or rows with passes in any order of the columns
    LF_LOOP_SERIAL, // rows with passes that visit the columns in order (scans)
    LF_LOOP_SORT,   // each row: stores of SORTED statements, for columns below keys[SORT_COUNT]
    LF_LOOP_SCATTER // each row: stores of keys[SCATTER_OLD], then updates at keys[SCATTER_INDEX] for columns below the count
} lf_loop_form;
enum {
    LF_SORT_KEY = 0,
    LF_SORT_COUNT = 1,
    LF_SCATTER_OLD = 0,
    LF_SCATTER_INDEX = 1,
    LF_SCATTER_INSIDE = 2,
    LF_SCATTER_SOURCE = 3,
    LF_SCATTER_ERROR = 4,
    LF_SCATTER_ROW = 5,
    LF_SCATTER_COUNT = 6,
    LF_PRODUCT_LEFT =
        0, // PLAIN, a matrix product: operands, over all but the last row axis and all but the one before it; their sum
    LF_PRODUCT_RIGHT = 1,
    LF_PRODUCT_SUM = 2,
    LF_MAX_KEYS = 8
};

typedef struct lf_loop {
    const char *name;
    lf_loop_form form;
    lf_stmt_id keys[LF_MAX_KEYS]; // SORT, SCATTER, matrix products
    bool descending;              // SORT
    lf_scatter_mode mode;         // SCATTER
    uint8_t rows, cols;           // axes; extents[0 … rows-1] rows, then columns
    lf_value *extents[LF_MAX_AXES];
    bool indexed; // some INDEX statement exists
    lf_stmt *stmts;
    uint32_t n_stmts;
    lf_access *accesses;
    uint32_t n_accesses;
    lf_value **scalars;     // host values passed by value (i64 addresses of mailboxes included)
    uint32_t *scalar_words; // where each lies in the argument block
    uint32_t n_scalars;
    uint16_t passes; // 0 for pointwise
    uint32_t extents_word, n_words;
    uint32_t error_word; // word with the address of the index-error word, or LFUSER_ABI_NONE
    uint32_t
        workspace_word; // SORT: word with the address of 16 or 32 bytes an element; folds: of partial results; else LFUSER_ABI_NONE
    bool reduces;        // one pass, of reductions and nothing written a column
    uint16_t weight;     // about how many instructions a column (pointwise: an element) takes in all passes
    uint8_t kept;        // 32-bit registers a column that passes hand on
    uint8_t kept_beside; // the same where loads, and conversions of what is loaded, are done again by each pass
    uint8_t reductions;  // most in one pass
    uint16_t folds;      // FOLD statements; if there are any, the kernel exists for GPUs and in class MIXED only
    lf_value *share;     // with folds: host i64, see lfuser_abi_mixed_rows (launch_abi.h); lies in share_word
    uint32_t share_word;
    uint32_t scratch_word; // for launches that share rows (launch_abi.h), or LFUSER_ABI_NONE
    const char *schedule;  // "pointwise", "rows"
} lf_loop;

// A reduction whose partial results carry a position. Complex products carry one too, to tell whether there is anything yet: 1 + 0i is not
// neutral beside infinities and zeros' signs.
static inline bool lf_stmt_has_position(const lf_stmt *reduce) {
    return reduce->code == LF_OP_ARGMIN || reduce->code == LF_OP_ARGMAX ||
           (reduce->code == LF_OP_PROD && lf_is_complex(reduce->compute));
}

// Of n axes from `first`, so many leading ones may be merged or walked in another order: the kernel does not look at their indices.
uint8_t lf_loop_free_axes(const lf_loop *loop, unsigned first, unsigned n);
// The axis stays where it is, and its extent is known while compiling.
bool lf_loop_fixed_extent(const lf_loop *loop, unsigned axis, int64_t *out_extent);
// The first access with the same strides as this one, whatever is done to axes at run time (itself, if there is no other).
uint32_t lf_loop_alike(const lf_loop *loop, uint32_t access);
// Passes 0 and 1 are a maximum along the row and the sum of exponentials of what its columns are below it, and no later pass reduces, or
// needs more of these than memory can give it again (online.c): where bits are not asked for, one pass does both.
bool lf_loop_find_online(const lf_loop *loop, lf_stmt_id *out_most, lf_stmt_id *out_sum);
// And there is no other pass, so that no column is read again.
bool lf_loop_reads_once(const lf_loop *loop);
// And it takes columns as they are in memory, so that all it needs to keep can be had from there again.
bool lf_loop_keeps_nothing(const lf_loop *loop);
// Loop IR as text, into the arena.
const char *lf_loop_text(lf_arena *arena, const lf_loop *loop);
// Sets weight, kept and reductions (measure.c).
lf_status lf_loop_measure(const lf_allocator *a, lf_loop *loop) LF_MUST_USE;
// LF_INTERNAL when an invariant above is broken.
lf_status lf_loop_verify(const lf_allocator *a, const lf_loop *loop) LF_MUST_USE;
#endif
