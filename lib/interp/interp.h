// The reference evaluator: computes what a graph means, one op after the other, in plain C. It is the oracle of the tests of
// every device, so it favours being right and easy to follow over speed, and shares no code with the code generators but the
// portable maths (lib/math).
// Does not belong here: anything that a run of the library needs (nothing in lib/api may reach this folder).
#ifndef LF_INTERP_INTERP_H
#define LF_INTERP_INTERP_H
#include "ir/ir.h"

// A scalar, or a strided tensor in host memory. `data` is the address of the element whose indices are all 0, aligned to the
// dtype (complex: to its component).
typedef struct lf_array {
    lf_dtype dtype;
    bool tensor; // else a scalar: rank 0, data points at the one element
    uint8_t rank;
    int64_t shape[LF_MAX_RANK];
    int64_t strides[LF_MAX_RANK]; // in elements; may be 0 or negative
    void *data;                   // may be NULL when there is no element
} lf_array;

typedef struct lf_interp_result {
    lf_array *outputs; // in the order of `return`; row-major contiguous, owned by the result, never shared
    size_t n_outputs;
    char *index_error; // the run's first out-of-range index (op, place, numbers), or NULL; owned
    const lf_allocator *allocator;
} lf_interp_result;

// Runs a finished graph on one argument a parameter, in order. Arguments are only read (`into` does not write them: the new
// contents are the output). Errors: LF_INVALID_ARGUMENT (count, kind, dtype, rank), LF_FAILED_CHECK (a check or assert of the
// program; its place is that of the op), LF_OUT_OF_MEMORY. *out_result is NULL on failure. Any thread.
lf_status lf_interp_run(const lf_graph *g, const lf_array *args, size_t n_args, const lf_allocator *a,
                        lf_interp_result **out_result) LF_MUST_USE;
// The same, telling of each op that has computed results of its own in new memory, before anyone reads them; they may be changed (what
// a fast or freely ordered evaluation may give instead). Only the first result is shown. Operands are NULL where omitted.
typedef struct lf_interp_watch {
    void (*after)(void *self, const lf_op *op, const lf_array *const *operands, lf_array *result);
    void *self;
} lf_interp_watch;
lf_status lf_interp_run_watched(const lf_graph *g, const lf_array *args, size_t n_args, const lf_interp_watch *watch,
                                const lf_allocator *a, lf_interp_result **out_result) LF_MUST_USE;
void lf_interp_result_destroy(lf_interp_result *r);
#endif
