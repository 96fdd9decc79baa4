// What a compiled fusion looks like to the run-time library: plain structs, no pointers into the compiler. Code generators fill
// them, the runtime reads them, and neither knows the other, so that a program compiled ahead of time can run without LLVM.
//
// The frame: every run has an array of 64-bit words, the slots. The runtime writes the arguments into their slots; the host
// code reads and writes slots and nothing else:
//   infer  checks, extents, host scalars, sizes. Returns -1, or the number of the check that failed.
//   bind   after output and workspace addresses were put into their slots: writes the argument block of every launch.
// A program whose host code needs scalars that the device computes has several stages, each with its own infer and bind: before
// a later stage the runtime waits for those scalars and puts them into their slots. Programs without sync points have one stage.
// Pending outputs that no kernel computes are finished by the host from scalars of the run and others that kernels deliver, at any time
// after these have arrived, each over a few words of its own, so that the frame can serve other runs meanwhile.
// A scalar lies in the low bytes of its slot (c128 takes two); a bool is 0 or 1.
#ifndef LFUSER_LAUNCH_ABI_H
#define LFUSER_LAUNCH_ABI_H
#include <stdbool.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define LFUSER_ABI_VERSION 3u
#define LFUSER_ABI_NONE UINT32_MAX
#define LFUSER_ABI_MAX_RANK 8
#define LFUSER_ABI_MAX_NUMBERS 8

typedef int64_t (*lfuser_abi_infer)(uint64_t *slots);
typedef void (*lfuser_abi_bind)(uint64_t *slots);
typedef void (*lfuser_abi_finish_entry)(uint64_t *words);

// Added to the address of a mailbox slot where a launch may be replayed: the kernel counts up the sequence number that it finds there.
// Else it writes 1; the slot had 0.
enum { LFUSER_ABI_MAILBOX_COUNTS = 1 };

typedef enum lfuser_abi_kind {
    LFUSER_ABI_SCALAR,      // host value                                  slot: value
    LFUSER_ABI_PENDING,     // outputs only: delivered through a mailbox   slot: device address of the mailbox slot
    LFUSER_ABI_HOST_TENSOR, // rank-0 tensor in host memory                slot: value
    LFUSER_ABI_TENSOR // device tensor                               slot: address, then extents, then strides (elements)
} lfuser_abi_kind;

typedef struct lfuser_abi_param {
    const char *name; // without '%'
    uint8_t kind, dtype, rank;
    bool written; // an output goes into it
    uint32_t slot;
} lfuser_abi_param;

typedef struct lfuser_abi_output {
    const char *name; // or NULL
    uint8_t kind, dtype, rank;
    uint32_t slot;   // TENSOR: infer writes the extents; the runtime the address and the strides
    uint32_t into;   // number of the parameter whose buffer it goes into, or NONE
    uint32_t stage;  // the stage whose infer writes the value or the extents
    uint32_t finish; // PENDING: number of the finish that computes it; NONE: a kernel does
} lfuser_abi_output;

typedef struct lfuser_abi_check {
    const char *message;   // {0}, {1}, … stand for the numbers
    uint32_t line, column; // place in the program text, 0 = none
    uint32_t n_numbers;
    uint8_t dtypes[LFUSER_ABI_MAX_NUMBERS];
} lfuser_abi_check;

// Read-only data that every run needs in device memory, row-major; uploaded once.
typedef struct lfuser_abi_constant {
    const void *data;
    uint64_t bytes;
    uint32_t slot; // the runtime writes the address
} lfuser_abi_constant;

// A memory access of a kernel: words [word] base address, [word + 1 …] one stride an iteration axis, in elements.
typedef struct lfuser_abi_access {
    uint32_t word;        // in the argument block
    uint8_t dtype, bytes; // of an element
    bool store;
    bool row;        // once a row, not an element: its column strides are 0
    uint32_t varies; // bit d: the address is meant to vary along axis d (otherwise a broadcast by construction)
    bool plain;      // the strides alone say where, and nothing whether: a load can be done before anything else is known
    uint8_t
        along; // axis along which a row-major buffer is contiguous here, or LFUSER_ABI_NO_AXIS: only a guess for strides to come
} lfuser_abi_access;
enum { LFUSER_ABI_NO_AXIS = 255 };

// A launch iterates over `rows` axes (all independent) and, within each row, over `cols` axes (reduced).
typedef struct lfuser_abi_launch {
    uint32_t kernel;    // which kernel
    uint32_t guard;     // slot: skipped when 0; NONE: always launched
    uint32_t args_slot; // argument block: a range of slots
    uint32_t n_args;
    uint8_t rows, cols; // axes
    uint8_t merge_rows,
        merge_cols;      // so many leading row and column axes may be merged; the kernel looks at indices along others
    bool single;         // a thread takes one element at a time (sort, scatter)
    bool multiplies;     // a sum of products: one factor has not the last row axis, the other not the one before it
    bool sorts;          // each row is sorted
    bool scans;          // one pass, with a running result along the columns
    bool reduces;        // one pass of reductions over the columns, and nothing written a column
    bool reads_once;     // fast mode: a maximum and what is summed below it are one pass, so no column is read again
    bool keeps_nothing;  // fast mode: the same with passes behind it, which take columns from where they were, and keep none
    uint16_t weight;     // about how many instructions an element takes
    uint8_t kept;        // 32-bit registers an element that passes hand on to later passes
    uint8_t kept_beside; // the same where each pass can read again what it loads
    uint8_t reductions;  // most in one pass
    uint8_t parts;       // most parts of a chunk for whose results scratch memory has room; 0: there is none
    uint32_t scratch_word; // word with the address of scratch memory for SPLIT, OUTER and LOOKBACK, or NONE
    uint32_t mixed; // number of the launch of class MIXED that decides whether this one is made (itself: it may), or NONE
    bool instead;   // made only if that one is not
    bool combines;  // reduces what that one leaves
    uint8_t folds;  // reductions across rows: only in class MIXED
    uint16_t fold_bytes;   // of their partial results, a column
    uint32_t share_word;   // word with the share of a set of rows, or NONE
    uint32_t extents_word; // words [extents_word …] the rows + cols extents
    uint32_t n_accesses;
    uint32_t debug; // what not to choose (lfuser_compile_options.debug); normally 0
    const lfuser_abi_access *accesses;
    const char *name; // for traces
} lfuser_abi_launch;

// How a GPU shares rows (TILE: elements) out among threads. A chunk is 8192 columns, shared by 1024 / vector threads.
typedef enum lfuser_abi_shape {
    LFUSER_ABI_BLOCK = 0, // a block a row, chunk after chunk; a row of any length
    LFUSER_ABI_WARP = 1,  // a warp a row: at most 32 * vector columns
    LFUSER_ABI_SPLIT = 2, // blocks of a chunk or two, whose results a second kernel combines (COMBINE). Few, long rows
    LFUSER_ABI_OUTER =
        3, // a lane a row, warps share its columns: rows are neighbours in memory, columns are not. With `chunks`
           // above 1 a block takes one of so many parts of a chunk, and COMBINE follows. With `spans`:
           // at most 1024 columns, partial results of MIXED
    LFUSER_ABI_RESIDENT = 4, // a block a row, held by its threads: at most `chunks` chunks of `spans` * 1024 columns
    LFUSER_ABI_ROUNDS = 5,   // a block a row, `chunks` chunks at once: at most ROUND_SLOTS / (warps a chunk) chunks
    LFUSER_ABI_LOOKBACK = 9, // scans, sorts: blocks share rows, and a tile's block looks for what tiles before it come to
    LFUSER_ABI_PRODUCT = 10, // matrix products: a block a tile of the two innermost row axes
    LFUSER_ABI_STACK =
        11, // pointwise: a thread takes `spans` vectors, neighbours along row axis `chunks`, whose extent is a multiple
            // of that; loads that are constant along it are done once for all
    LFUSER_ABI_TILE =
        6, // pointwise: a block a tile of the two innermost axes; loads and stores that are contiguous along the outer
           // one of these, not along the innermost one, go through shared memory
    LFUSER_ABI_COMBINE =
        7, // what SPLIT (spans 0; a block a row, `chunks` chunks of results at once, 0: a row of any length) or OUTER
           // (spans > 0: its parts of a chunk; a thread a row, of at most `chunks` chunks, 0: of any number) left in
           // scratch memory is reduced, and what follows from it stored
    LFUSER_ABI_MIXED =
        8 // a block a set of rows (see lfuser_abi_mixed_sets); at most `spans` * 1024 columns; `chunks`: rows at once, whether
    // each chunk has a power of two of spans of rows, and what is kept; `teams`: levels of the counter in shared memory;
    // `staged`: of one row at a time, the next one is copied to shared memory
} lfuser_abi_shape;
enum { LFUSER_ABI_ROUND_SLOTS = 128 };
// A GPU thread's columns are written out side by side up to this weight in all, and this many reductions in a pass; else in a loop.
// RESIDENT and ROUNDS need that.
enum { LFUSER_ABI_UNROLLED_WEIGHT = 2500, LFUSER_ABI_UNROLLED_REDUCTIONS = 8 };

// What a kernel is specialised on.
typedef struct lfuser_abi_class {
    uint8_t rows, cols; // axes after merging: 0, 1, 2 or all
    uint8_t vector;     // elements a thread takes along the innermost axis (1, 2, 4, 8, 16); above 1, every access has
                        // stride 1 along that axis if it varies there, else 0. CPU code takes any number above 1 so
    uint8_t wide;       // 64-bit index arithmetic
    uint8_t shape;      // GPU rows: lfuser_abi_shape
    uint8_t
        spans; // RESIDENT: of a chunk (8 when chunks > 1); BLOCK of a scan: of a tile, 0: as many as fit; PRODUCT: side by side; STACK: vectors;
               // TILE: 1: a tall one; COMBINE: see there
    uint8_t
        chunks; // RESIDENT, ROUNDS: chunks at once; STACK: the axis; OUTER, COMBINE: see there. CPU rows: chunks, spans: 1: at most one (much less
                // code), 0: any number
    uint8_t tiled; // TILE: bit i: access i goes through shared memory; with vector > 1 it has stride 1 along the outer axis
                   // STACK: bit i: access i has stride 0 along the axis
    uint8_t
        cluster; // RESIDENT: blocks that share a row, a thread block cluster (a power of two), each with `chunks` chunks; 0: one
    uint8_t teams; // RESIDENT: so many of a block's chunks are worked on at once, the others after them; 0: all
    uint8_t
        staged; // RESIDENT: so many vectors of each load that a thread has in a row lie in shared memory, to which they are copied
                // while the row before is worked on, and each pass reads them there; the others are loaded by each pass
    bool
        alone; // RESIDENT, staged: a block copies its row when it begins, and no other; blocks beside it have work meanwhile
    bool full; // RESIDENT: rows have exactly as many columns as there is room for; ROUNDS: they are whole chunks
} lfuser_abi_class;
enum { LFUSER_ABI_STAGED_VECTORS = 16 }; // most that a thread has of a load

// Extents of a tile along the outer and the innermost axis, by `vector` and `spans` (1: a tall one): segments of 128 bytes or so on both
// sides, and two vectors or four elements a thread, in tall tiles four vectors (measured: 2 % faster, where there is enough to fill them).
enum { LFUSER_ABI_TILED_ACCESSES = 8, LFUSER_ABI_TILE_THREADS = 256 };
static inline uint32_t lfuser_abi_tile_outer(uint32_t vector, uint32_t tall) {
    return (vector >= 16 ? 128u : vector >= 8 ? 64u : 32u) << (tall && (vector == 4 || vector == 8));
}
static inline uint32_t lfuser_abi_tile_inner(uint32_t vector) { return vector >= 4 ? 64u : 32u; }

// Scratch memory for partial results: for each reduction PARTIAL_BYTES a row and chunk. The first half of them holds values, the second
// positions; without positions values may take both.
//   SPLIT  a value a row and chunk, a row's side by side and padded to 16 bytes (at least 3 chunks)
//   OUTER  a value a chunk, part and row, those of neighbouring rows side by side
enum { LFUSER_ABI_CHUNK = 8192, LFUSER_ABI_PARTIAL_BYTES = 32 };

// Scans. A row is cut into tiles of so many columns a thread or warp times the threads that share it: SCAN_THREADS a block (BLOCK, LOOKBACK),
// a warp (WARP), or, where rows are neighbours in memory, SCAN_WARPS of which a lane takes a row (OUTER).
// Scratch memory of OUTER and LOOKBACK: 256 bytes whose first word counts the tiles that blocks took, two flags of 4 bytes a cell (a tile of
// a row), rounded up to 256 bytes; then two partial results a cell. Where a partial result has 4 bytes at most, instead of all that behind
// the first 256 bytes two words of 8 bytes a cell, a flag above a result. The first 256 bytes and 16 a cell are zeroed before the launch.
enum { LFUSER_ABI_SCAN_THREADS = 256, LFUSER_ABI_SCAN_WARPS = 16, LFUSER_ABI_SCAN_COLUMNS = 8, LFUSER_ABI_SCAN_HEAD = 256 };
// Sorts: tiles of so many columns. Scratch memory: the same head, then a counter of 4 bytes for each run of each pass of merging, twice as
// many as a power of two of tiles a row; all of it is zeroed.
enum { LFUSER_ABI_SORT_TILE = 1024 };
static inline uint32_t lfuser_abi_scan_spans(uint32_t vector, uint32_t weight) {
    uint32_t spans = vector >= 16 ? 2u : vector >= 8 ? 4u : 8u;
    while (spans > 1 && spans * vector * weight > LFUSER_ABI_UNROLLED_WEIGHT) spans /= 2;
    return spans;
}

// Reductions across rows, next to work along them (MIXED): of each chunk of 8192 rows, a set has `share` neighbouring rows, a power of
// two, out of each of the eight spans of 1024: a part of the order of sums that is whole in itself. A set leaves one partial result a
// column; these, in the order of sets, are reduced by the same order, as there are at most 1024. Scratch memory: for each reduction
// sets * columns cells, which the launch that combines them reads; and as much again for each doubling of 4 * `share`, private to the kernel.
enum {
    LFUSER_ABI_SPAN = 1024,
    LFUSER_ABI_MIXED_AT_ONCE = 15, // of a class's `chunks`
    LFUSER_ABI_MIXED_ALL_ROWS = 128,
    LFUSER_ABI_MIXED_KEEPS = 64, // what passes compute stays in registers
    LFUSER_ABI_MIXED_SHARE = 8, // unless there are more than 8 chunks: then as many as there are chunks, or up to twice that
    LFUSER_ABI_MIXED_COLUMNS = 8192,
    LFUSER_ABI_MIXED_ROWS = 1024 * 8192
};
static inline uint64_t lfuser_abi_mixed_sets(uint64_t rows, uint64_t share) {
    uint64_t rest = rows % LFUSER_ABI_CHUNK;
    if (rest > LFUSER_ABI_SPAN) rest = LFUSER_ABI_SPAN;
    return rows / LFUSER_ABI_CHUNK * (LFUSER_ABI_SPAN / share) + (rest + share - 1) / share;
}

// A device scalar that host code needs.
typedef struct lfuser_abi_fetch {
    uint32_t box_slot; // the runtime writes the device address of a mailbox slot, kernels deliver there
    uint32_t slot;     // the runtime writes the value
    uint8_t dtype;
} lfuser_abi_fetch;

// A scalar that kernels deliver because finishes begin with it.
typedef struct lfuser_abi_arrival {
    uint32_t box_slot; // the runtime writes the device address of a mailbox slot, kernels deliver there
    uint32_t output;   // number of the output that it is besides, whose mailbox serves: box_slot is then NONE; or NONE
    uint8_t dtype;
} lfuser_abi_arrival;

// What one operand of a finish is, in words of the finish: a scalar that arrives, or one of the run.
typedef struct lfuser_abi_finish_operand {
    uint32_t arrival; // number, or NONE
    uint32_t slot;    // NONE: no arrival; the infer of some stage has written it
    uint8_t word, n_words;
} lfuser_abi_finish_operand;

// An output that the host finishes: a function over a few words, operands first, then the result.
enum { LFUSER_ABI_FINISH_WORDS = 16 }; // that operands take, at most
typedef struct lfuser_abi_finish {
    uint32_t first_operand, n_operands;
    uint8_t result; // word
} lfuser_abi_finish;

typedef struct lfuser_abi_stage {
    uint32_t first_launch, n_launches;
    uint32_t first_fetch, n_fetches; // must have arrived before this stage; delivered by launches of earlier ones
    uint32_t workspace_bytes_slot;   // infer writes it; 0 = none needed
    uint32_t workspace_slot;         // the runtime writes the address
} lfuser_abi_stage;

typedef struct lfuser_abi_program {
    uint32_t version; // LFUSER_ABI_VERSION
    uint32_t n_slots;
    uint32_t n_params, n_outputs, n_checks, n_launches, n_kernels, n_constants, n_stages, n_fetches, n_arrivals, n_finishes,
        n_finish_operands;
    const lfuser_abi_param *params;
    const lfuser_abi_output *outputs;
    const lfuser_abi_check *checks;
    const lfuser_abi_launch *launches;
    const lfuser_abi_constant *constants;
    const lfuser_abi_stage *stages;  // at least one
    const lfuser_abi_fetch *fetches; // in the order of the stages that need them
    const lfuser_abi_arrival *arrivals;
    const lfuser_abi_finish *finishes;
    const lfuser_abi_finish_operand *finish_operands;
    uint32_t numbers_slot; // a failed check leaves its numbers here
    uint32_t error_slot;   // the runtime writes the device address of the run's index-error word; NONE: cannot happen
    const char *name;
} lfuser_abi_program;

#ifdef __cplusplus
}
#endif
#endif
