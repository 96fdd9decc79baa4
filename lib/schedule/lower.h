// From a group of ops to loop IR, by pulling: what a root needs is computed at the root's point, operands first, through index
// spaces; memory is read where a value is stored. Private to lib/schedule.
#ifndef LF_SCHEDULE_LOWER_H
#define LF_SCHEDULE_LOWER_H
#include "base/vec.h"
#include "partition/partition.h"
#include "schedule/program.h"

// Where a stored value lies.
typedef struct lf_buffer {
    const lf_value *value;
    lf_value *address;              // host i64
    lf_value *strides[LF_MAX_RANK]; // host i64, elements
    bool row_major;                 // by construction
} lf_buffer;

typedef struct lf_memo {
    const lf_value *value;
    const lf_space *space; // interned; NULL for scalars and reductions
    lf_stmt_id guard, stmt;
} lf_memo;

// What the program offers to the lowering of one group.
typedef struct lf_planner lf_planner;
// Where this group finds a value that is not its own: a parameter, a constant, or what an earlier group left in workspace.
lf_status lf_planner_buffer(lf_planner *planner, const lf_value *v, uint32_t reader, lf_buffer *out_buffer) LF_MUST_USE;
// Where a group leaves a value for later ones.
lf_status lf_planner_temporary(lf_planner *planner, const lf_value *v, lf_buffer *out_buffer) LF_MUST_USE;
lf_status lf_planner_output(lf_planner *planner, uint32_t output,
                            lf_buffer *out_buffer) LF_MUST_USE; // PENDING: address of the mailbox slot
lf_status lf_planner_fetch(lf_planner *planner, const lf_value *v,
                           lf_value **out_address) LF_MUST_USE;     // of the mailbox slot
lf_value *lf_planner_arrival(lf_planner *planner, uint32_t number); // address of the mailbox slot; NULL: out of memory
// Workspace for one kernel: 2 * 8 bytes an element of this type, 2 * 16 where that is of more than 4 bytes.
lf_status lf_planner_scratch(lf_planner *planner, const lf_type *type, lf_value **out_address) LF_MUST_USE;
// So many bytes of workspace for the rest of the stage.
lf_status lf_planner_bytes(lf_planner *planner, lf_value *bytes, lf_value **out_address) LF_MUST_USE;
uint32_t lf_planner_op_number(lf_planner *planner, const lf_op *op); // for index errors

// Where one kernel does the work of a group along rows and the first part of another's, and a second one the rest (lower_mixed.c).
typedef enum lf_part {
    LF_PART_ALL,    // a group's only kernel
    LF_PART_WALK,   // walks the rows and leaves partial results
    LF_PART_COMBINE // combines them
} lf_part;

// Host i64 (see lfuser_abi_mixed_rows in launch_abi.h).
typedef struct lf_mixed_sizes {
    lf_value *share;    // of a thousand rows, how many a partial result covers (a power of two)
    lf_value *partials; // partial results a column
    lf_value *columns;
    lf_value *scratch; // address of the partial results
    unsigned bytes;    // of a cell: as many as the widest partial result takes
} lf_mixed_sizes;

typedef struct lf_lowering {
    lf_planner *planner;
    lf_partition *partition;
    lf_graph *g;
    lf_arena *arena; // of the program
    lf_group *group;
    uint32_t number;
    lf_part part;
    const lf_mixed *mixed;      // with part
    lf_mixed_sizes mixed_sizes; // likewise
    bool general;               // assume nothing of parameters' strides
    lf_value *assumption;       // host bool that must hold for this version; NULL = always
    lf_loop *loop;
    lf_value *scratch; // address of the kernel's workspace, or NULL
    LF_VEC(lf_stmt) stmts;
    LF_VEC(lf_access) accesses;
    LF_VEC(lf_value *) scalars;
    LF_VEC(lf_space *) spaces;
    LF_VEC(lf_memo) memo;
    lf_status status; // first failure
} lf_lowering;

// One version of a group's kernel. *out_assumption: when it may be launched (NULL: always).
lf_status lf_lower_group(lf_planner *planner, lf_partition *p, uint32_t number, bool general, lf_arena *arena,
                         const char *name, lf_loop **out_loop, lf_value **out_assumption,
                         lf_value **out_scratch) LF_MUST_USE;

// The same for a lowering that is set up up to `general`; the arena must outlive the loop.
lf_status lf_lower(lf_lowering *l, const char *name, lf_loop **out_loop) LF_MUST_USE;

// lower_mixed.c: the two kernels that do the work of a pair of groups. The first is planned where the earlier group's place is; *out_walk
// is NULL where that is not worth a kernel, or cannot be. *out_guard: when it may be launched (NULL: always).
lf_status lf_lower_walk(lf_planner *planner, lf_partition *p, const lf_mixed *m, lf_arena *arena, lf_loop **out_walk,
                        lf_mixed_sizes *out_sizes, lf_value **out_guard) LF_MUST_USE;
// The second, where the later one's place is: it may read what groups between them store.
lf_status lf_lower_combine(lf_planner *planner, lf_partition *p, const lf_mixed *m, const lf_mixed_sizes *sizes,
                           lf_arena *arena, lf_loop **out_combine) LF_MUST_USE;
void lf_lower_folds(lf_lowering *l);
lf_stmt_id lf_lower_partial(lf_lowering *l, const lf_op *reduction);

// ---- within the lowering (lower.c, lower_index.c). Failures set l->status and give LF_NO_STMT. ------------------------------
lf_stmt_id lf_lower_value(lf_lowering *l, lf_value *v, const lf_space *space, lf_stmt_id guard);
lf_stmt_id lf_lower_indexed(lf_lowering *l, const lf_op *op, const lf_space *space, lf_stmt_id guard);
lf_stmt_id lf_lower_scan(lf_lowering *l, const lf_value *v); // whole.c
lf_stmt_id lf_lower_matmul(lf_lowering *l, const lf_op *op);
lf_status lf_lower_whole(lf_lowering *l); // a group of kind WHOLE
lf_stmt_id lf_lower_checked_index(lf_lowering *l, const lf_op *op, lf_value *idx, const lf_space *space, lf_value *extent,
                                  lf_stmt_id *io_guard);
void lf_lower_store(lf_lowering *l, lf_stmt_id value, const lf_buffer *buffer, lf_dtype dtype, const lf_space *space);
lf_stmt_id lf_stmt_add(lf_lowering *l, lf_stmt s);
lf_stmt_id lf_stmt_simple(lf_lowering *l, lf_opcode code, lf_dtype d, lf_stmt_id a, lf_stmt_id b);
lf_stmt_id lf_stmt_cast(lf_lowering *l, lf_dtype from, lf_dtype to, lf_stmt_id a);
lf_stmt_id lf_stmt_int(lf_lowering *l, int64_t value);
lf_stmt_id lf_stmt_host(lf_lowering *l, lf_value *host);             // constant or argument
lf_stmt_id lf_stmt_form(lf_lowering *l, const lf_form *form);        // the index that a form stands for
uint32_t lf_stmt_atom(lf_stmt_id s);                                 // the atom that stands for a statement
lf_stmt_id lf_guard_and(lf_lowering *l, lf_stmt_id a, lf_stmt_id b); // either may be LF_NO_STMT
const lf_space *lf_space_intern(lf_lowering *l, const lf_space *space);
bool lf_space_split(lf_lowering *l, const lf_type *type, lf_space *space); // flat -> an index an axis
void lf_lowering_fail(lf_lowering *l, lf_status s);
#endif
