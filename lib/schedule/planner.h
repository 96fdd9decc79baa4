// The planner of a program, and what its parts do for each other. Private to program*.c; lowering sees lower.h.
#ifndef LF_SCHEDULE_PLANNER_H
#define LF_SCHEDULE_PLANNER_H
#include "schedule/lower.h"

// A stretch of workspace that lives from the group that writes it to the last one that reads it.
typedef struct stretch {
    const lf_value *value;
    lf_value *bytes;     // rounded up
    lf_value *offset;    // host i64, NULL = 0
    uint32_t free_after; // group
    uint32_t stage;      // in whose workspace it lies
} stretch;

// A pair of groups whose work one kernel can do, followed by a small one; the plain kernels are launched where that one is not.
typedef struct mixed_pair {
    lf_mixed mixed;
    lf_mixed_sizes sizes;
    uint32_t launch; // the first kernel's
} mixed_pair;

struct lf_planner {
    lf_program *program;
    lf_graph *g;
    lf_partition *partition;
    lf_arena *arena;
    LF_VEC(lf_slot_store) stores;
    LF_VEC(stretch) stretches;
    LF_VEC(lf_loop *) kernels;
    LF_VEC(lfuser_abi_launch) launches;
    LF_VEC(lfuser_abi_constant) constants;
    LF_VEC(const lf_op *) constant_ops;
    LF_VEC(const lf_op *) index_ops;
    LF_VEC(lf_fetch) fetches;
    LF_VEC(lfuser_abi_fetch) abi_fetches;
    LF_VEC(mixed_pair) pairs;
    lfuser_abi_stage *stages;
    uint32_t stage;      // that is planned
    lf_value *workspace; // its bytes so far; NULL = 0
    uint32_t *output_slots;
    uint32_t n_slots;
    bool reports_index_errors;
};

static inline uint32_t lf_words_of(lf_dtype d) { return d == LF_C128 ? 2 : 1; }
uint32_t lf_planner_slots(lf_planner *pl, uint32_t n);          // the first of n new ones
uint32_t lf_param_number(const lf_graph *g, const lf_value *v); // LFUSER_ABI_NONE: none
// A host value (NULL: 0) into a slot, in the stage that is planned.
lf_status lf_planner_store(lf_planner *pl, lf_value *value, uint32_t slot, lf_phase phase) LF_MUST_USE;
// The same as soon as it is known; raises *io_stage to the stage in which it is.
lf_status lf_planner_result(lf_planner *pl, lf_value *value, uint32_t slot, uint32_t *io_stage) LF_MUST_USE;

// program_memory.c: workspace for what group `number` stores for others, free from group `from` on; scratch memory of a kernel.
lf_status lf_planner_temporaries(lf_planner *pl, uint32_t number, uint32_t from) LF_MUST_USE;
lf_status lf_planner_partials(lf_planner *pl, const lf_loop *loop, lf_value **out_address) LF_MUST_USE;

// program_launch.c: guard: host bool, NULL: always. scratch: address of the kernel's workspace, or NULL.
lf_status lf_planner_launch(lf_planner *pl, lf_loop *loop, lf_value *guard, lf_value *scratch) LF_MUST_USE;

// program_finish.c: what the host finishes, and what kernels deliver for it.
lf_status lf_planner_finishes(lf_planner *pl) LF_MUST_USE;
#endif
