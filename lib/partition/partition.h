// Which device work goes into one kernel, and which values have to be stored.
//
// The builder has placed every value already (host, device, pending). Here device and pending ops are put into groups, in program
// order: an op joins the last group that produces one of its operands, when it iterates over the same elements, so that groups
// are ordered by construction and the whole is near-linear. A group is pointwise (every op at one shape) or reduces some axes of
// that shape ("rows"), and then takes further ops of the full shape and of the reduced one.
// Views (and item, scalar_tensor) belong to no group: they are index maps. Cheap producers are recomputed instead of stored.
//
// Stages: where the host needs a pending scalar (an extent that comes from one), what depends on it runs in a later stage, before
// which the host fetches the scalar. Every group is of one stage and groups are ordered by stage. Within a stage whose beginning
// knows a pending scalar, that scalar is a host value like any other. Programs without sync points have one stage.
//
// Arithmetic on pending scalars that no kernel reads belongs to no group either: the host finishes it after what it begins with has
// arrived (finish.c).
#ifndef LF_PARTITION_PARTITION_H
#define LF_PARTITION_PARTITION_H
#include "analysis/space.h"
#include "base/debug.h"
#include <lfuser/launch_abi.h>

#define LF_NO_GROUP UINT32_MAX
#define LF_NEVER UINT32_MAX
#define LF_NO_FINISH UINT32_MAX
#define LF_NO_ARRIVAL UINT32_MAX
#define LF_NO_OUTPUT UINT32_MAX

typedef enum lf_group_kind {
    LF_GROUP_POINTWISE,
    LF_GROUP_ROWS,
    LF_GROUP_WHOLE // one op with a kernel of its own: sort, topk, scatter; `axes` is its axis
} lf_group_kind;

// How a node lies in its group.
typedef enum lf_extent_class {
    LF_CLASS_FULL,    // the group's shape
    LF_CLASS_ROW,     // the kept axes only
    LF_CLASS_ROW_KEPT // the kept axes, and extents of 1 for the reduced ones
} lf_extent_class;

// A value that a group must write.
typedef struct lf_root {
    lf_value *value; // a node of the group, or a view of anything (a copy)
    lf_extent_class cls;
    bool temporary;    // into workspace, for later groups
    uint32_t *outputs; // numbers of the graph's outputs that it goes to
    uint32_t n_outputs;
    bool fetched;     // a scalar that the host needs for the next stage
    uint32_t arrival; // number of the arrival, or LF_NO_ARRIVAL
} lf_root;

typedef struct lf_group {
    lf_group_kind kind;
    lf_type shape; // FULL shape: rank and extents
    uint32_t axes; // ROWS: reduced axes of `shape`
    lf_op **nodes;
    uint32_t n_nodes, capacity;
    lf_root *roots;
    uint32_t n_roots, roots_capacity;
    uint32_t stage;
    bool serial; // ROWS: columns are visited in order (scans)
    bool dead;   // everything in it is recomputed elsewhere
} lf_group;

typedef struct lf_node {
    uint32_t group; // LF_NO_GROUP: not a node
    uint32_t cost;  // of recomputing it from stored values
    uint32_t after; // a kernel that recomputes it must come after this many groups
    uint32_t dear;  // so many groups make what recomputing it reads, stored
    lf_extent_class cls;
    bool stored;          // some other group reads it
    bool live;            // an output depends on its elements, or something that the host fetches
    uint32_t last_reader; // the last group that does
    uint32_t stage;       // device values: stage in which it is computed at the earliest
    uint32_t known;       // pending scalars: first stage at whose beginning the host knows it; LF_NEVER
    bool needed;          // pending scalars: the host needs it
    bool read;            // pending scalars: kernels need it
    bool finished;        // pending scalars: the host computes it after arrivals
    uint32_t finish;      // number of the finish that gives it, or LF_NO_FINISH
    uint32_t arrival;     // LF_NO_ARRIVAL: no finish begins with it
} lf_node;

// An output that the host finishes, and what that begins with: host scalars of the run, and others that kernels deliver.
typedef struct lf_finish {
    lf_value *value;
    lf_value *from[LFUSER_ABI_FINISH_WORDS];
    uint32_t n_from;
} lf_finish;

// A scalar that a kernel delivers because finishes begin with it.
typedef struct lf_arrival {
    lf_value *value;
    uint32_t output; // that it is besides, or LF_NO_OUTPUT
} lf_arrival;

// Two groups over one shape, where one reduces (or only visits) the axes that the other keeps, and both read the same elements: one
// kernel can do both (mixed.c). It walks the rows of `group`; the reductions of group `columns` run over its rows and leave partial
// results, which a second, small kernel combines.
typedef struct lf_mixed {
    uint32_t rows;    // the group along rows, or LF_NO_GROUP: there is only `columns`, which stores elements besides
    uint32_t columns; // the group whose reductions run across
    lf_group group;   // what the one kernel iterates over
} lf_mixed;

typedef struct lf_partition {
    lf_arena arena;
    lf_graph *graph;
    uint32_t debug; // lf_debug
    lf_group **groups;
    uint32_t n_groups, capacity;
    lf_node *nodes; // by value id; ids made later have none
    uint32_t n_nodes;
    uint32_t n_stages;
    uint32_t stage; // while groups are made: new ones are of this stage
    lf_finish *finishes;
    lf_arrival *arrivals;
    uint32_t n_finishes, n_arrivals;
} lf_partition;

// debug: lf_debug switches; normally 0.
lf_status lf_partition_create(lf_graph *g, uint32_t debug, lf_partition **out_partition) LF_MUST_USE;
void lf_partition_destroy(lf_partition *p);

// The value that a chain of views (and item, scalar_tensor) ends at.
lf_value *lf_view_base(lf_value *v);
// The same, but NULL when the chain reaches a scalar that kernels of this stage get by value.
lf_value *lf_base_in_stage(const lf_partition *p, uint32_t stage, lf_value *v);
// From the space of v to that of its base. False: the views between cannot be composed.
bool lf_space_of_base(lf_partition *p, lf_value *v, lf_space *io_space);
// True for ops that compute on the device.
bool lf_is_node(const lf_op *op);
const lf_node *lf_node_of(const lf_partition *p, const lf_value *v);
// First stage at whose beginning the host knows this scalar: 0 for host values, LF_NEVER where it is not fetched.
uint32_t lf_known_stage(const lf_partition *p, const lf_value *v);
// A pending scalar that kernels of this stage get by value.
bool lf_known_by(const lf_partition *p, const lf_value *v, uint32_t stage);
// The host has it when the run call returns: host values, and scalars that it had to fetch.
bool lf_on_host_at_end(const lf_partition *p, const lf_value *v);
// The space of a value of that class when the group stands at its iteration point (rows first, then columns).
void lf_group_space(const lf_partition *p, const lf_group *group, lf_extent_class cls, lf_space *out);
// Which axis of the kernel an axis of the group's shape is.
unsigned lf_group_axis(const lf_group *group, unsigned axis);
unsigned lf_group_rows(const lf_group *group);
// Calls visit for every value that an op reads, extents aside: operands, paddings, amounts.
typedef lf_status (*lf_visit_operand)(void *context, lf_value *operand);
lf_status lf_visit_operands(const lf_op *op, lf_visit_operand visit, void *context) LF_MUST_USE;

// Whether the reductions of group `columns` can be done with other work in one kernel, and with which. Whether it pays is decided when
// it runs. taken: by number, groups that are part of another such pair.
bool lf_mixed_find(lf_partition *p, uint32_t columns, const bool *taken, lf_mixed *out);

// For people: where every value lives and why, what each kernel holds, sync points.
lf_status lf_partition_print(const lf_partition *p, char **out_text) LF_MUST_USE;
#endif
