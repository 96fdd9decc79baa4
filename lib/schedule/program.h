// A whole fusion, ready for code generation: host work, kernels as loop IR, and the description the runtime needs.
#ifndef LF_SCHEDULE_PROGRAM_H
#define LF_SCHEDULE_PROGRAM_H
#include "schedule/loop.h"

typedef enum lf_phase { LF_PHASE_INFER, LF_PHASE_BIND, LF_PHASE_FINISH } lf_phase;

// "Compute this host value and put it into this slot" (two slots for c128).
typedef struct lf_slot_store {
    lf_value *value;
    uint32_t slot;
    lf_phase phase;
    uint32_t stage;
} lf_slot_store;

// "This pending scalar lies in this slot from this stage on."
typedef struct lf_fetch {
    const lf_value *value; // an ITEM
    uint32_t slot, stage;
} lf_fetch;

// "This output is computed from these, once they have arrived" (abi.finishes, abi.finish_operands say where all lie).
typedef struct lf_program_finish {
    const lf_value *value;
    lf_value *const *from;
} lf_program_finish;

typedef struct lf_program {
    lf_arena arena;  // owns all below
    lf_graph *graph; // borrowed; the program adds implicit scalar ops to it
    uint32_t debug;  // lf_debug
    bool fast;
    lfuser_abi_program abi;
    lf_loop **kernels;     // abi.n_kernels
    lf_slot_store *stores; // in any order; values may share subexpressions
    uint32_t n_stores;
    lf_op **checks;              // CHECK ops, in the order of abi.checks; evaluated in `infer`
    uint32_t *check_stages;      // in which stage's
    lf_fetch *fetches;           // abi.n_fetches
    lf_program_finish *finishes; // abi.n_finishes
    const lf_op **index_ops;     // index-error number n is index_ops[n - 1]
    uint32_t n_index_ops;
    uint32_t *param_slots; // first slot of each parameter (as in abi.params)
    uint64_t partition_ns; // how long grouping took
} lf_program;

/* How host code finds its leaves: PARAM scalar or @host tensor p: slots[param_slots[p]];
   EXTENT(p, axis): slots[param_slots[p] + 1 + axis]; PITCH(p, axis): slots[param_slots[p] + 1 + rank + axis];
   SLOT(n): slots[n] (bind only); a fetched ITEM: its slot. A value that an earlier function has stored by an INFER store is loaded
   from its slot instead of recomputed. A finish finds all but constants in its operands' words. */

// Places, groups and schedules a finished graph.
// debug: lf_debug switches; normally 0. fast: its kernels will be compiled for fast mode.
lf_status lf_program_create(lf_graph *g, uint32_t debug, bool fast, lf_program **out_program) LF_MUST_USE;
void lf_program_destroy(lf_program *p);
// For people: slots, checks, launches.
lf_status lf_program_print(const lf_program *p, char **out_text) LF_MUST_USE;
#endif
