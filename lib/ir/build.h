// Building a graph: the one way in, used by the parser, the C API and the compiler itself.
// Each call checks everything that can be known while compiling and returns a status that names op, values, dtypes and numbers.
#ifndef LF_IR_BUILD_H
#define LF_IR_BUILD_H
#include "ir/ir.h"

// A graph is used by one thread at a time. `name` is copied.
lf_status lf_graph_create(const lf_allocator *a, const char *name, size_t name_length, lf_graph **out_graph) LF_MUST_USE;
void lf_graph_destroy(lf_graph *g);

// An extent in a declared type: known, unknown, or named.
typedef enum lf_dim_kind { LF_DIM_KNOWN, LF_DIM_UNKNOWN, LF_DIM_NAMED } lf_dim_kind;
typedef struct lf_dim_spec {
    lf_dim_kind kind;
    int64_t extent;   // KNOWN, >= 0
    const char *name; // NAMED, without '%'
    lf_place place;
} lf_dim_spec;
typedef struct lf_type_spec {
    lf_dtype dtype;
    bool tensor, host;
    uint8_t rank;
    lf_dim_spec dims[LF_MAX_RANK];
    lf_place place;
} lf_type_spec;
typedef struct lf_param_spec {
    const char *name; // without '%'
    lf_type_spec type;
    lf_place place;
} lf_param_spec;

// All parameters at once, before any op: named extents may refer to later i64 parameters; the others become i64 host scalars
// that lf_graph_lookup finds.
lf_status lf_graph_set_params(lf_graph *g, const lf_param_spec *params, size_t n) LF_MUST_USE;
// The value of that name, or NULL. `name` without '%'.
lf_value *lf_graph_lookup(const lf_graph *g, const char *name, size_t length);

typedef struct lf_op_request {
    lf_opcode code;
    const lf_operand *args; // copied
    size_t n_args;
    const lf_attr *attrs; // copied
    size_t n_attrs;
    const char *const *names;  // one a result, without '%'; NULL: unnamed
    size_t n_names;            // must equal the op's number of results when names are given
    const lf_type_spec *types; // declared result types to check, or NULL
    size_t n_types;
    lf_place place;
    const char *suffix_of; // (private to lib/ir)
} lf_op_request;

// *out_results: array of the op's results (owned by the graph).
lf_status lf_graph_add(lf_graph *g, const lf_op_request *request, lf_value **out_results, size_t *out_n) LF_MUST_USE;
lf_status lf_graph_assert(lf_graph *g, lf_operand condition, const char *message, lf_place place) LF_MUST_USE;
typedef struct lf_return_spec {
    lf_operand operand;
    const char *into; // parameter name without '%', or NULL
    lf_place place, into_place;
} lf_return_spec;
// Ends the graph. `declared`: the result types after '->', or NULL.
lf_status lf_graph_return(lf_graph *g, const lf_return_spec *outputs, size_t n, const lf_type_spec *declared,
                          size_t n_declared) LF_MUST_USE;

// ---- For the compiler: typed scalar arithmetic on the host, folded and shared. NULL when out of memory (g->arena.failed). --
lf_value *lf_const(lf_graph *g, lf_dtype d, lf_scalar value);
lf_value *lf_const_int(lf_graph *g, int64_t value); // i64
lf_value *lf_scalar_op(lf_graph *g, lf_opcode code, lf_dtype result, lf_value *a, lf_value *b,
                       lf_value *c);                            // b, c may be NULL
lf_value *lf_extent_mul(lf_graph *g, lf_value *a, lf_value *b); // saturating
lf_value *lf_numel_of(lf_graph *g, const lf_type *type);        // product of extents; 1 for rank 0
lf_value *lf_slot_value(lf_graph *g, uint32_t slot);            // LF_OP_SLOT
#endif
