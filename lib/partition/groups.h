// What the files that make groups share. Private to lib/partition.
#ifndef LF_PARTITION_GROUPS_H
#define LF_PARTITION_GROUPS_H
#include "partition/partition.h"

enum { LF_CHEAP = 6 }; // recomputing up to this many simple ops beats storing and loading

// points.c
// What an op reads from its own group it must read at its own point: other points belong to other threads. A pointwise group may
// recompute a cheap value at another point; a dear one would be recomputed again and again along a chain, so it is stored.
typedef struct lf_point_check {
    lf_partition *partition;
    lf_group *group;
    uint32_t number;
    lf_extent_class cls; // of the reader
    bool ok;
    bool cheap_elsewhere; // cheap values may be recomputed at another point
} lf_point_check;
lf_status lf_check_point(void *context, lf_value *operand) LF_MUST_USE; // context: lf_point_check

// join.c
lf_status lf_group_new(lf_partition *p, lf_group_kind kind, const lf_type *shape, uint32_t axes,
                       uint32_t *out_number) LF_MUST_USE;
lf_status lf_group_place(lf_partition *p, lf_op *op) LF_MUST_USE; // operands are placed
// One that has a scalar besides, or a new one: to copy a value where nobody makes it in place.
lf_status lf_group_for_copy(lf_partition *p, lf_value *value, uint32_t *out_number, lf_extent_class *out_class) LF_MUST_USE;
bool lf_is_cheap(const lf_partition *p, const lf_value *v); // enough to be recomputed where it is read

// group.c: what a group must write, and the outputs that it goes to. A value has one root in a group.
lf_status lf_root_add(lf_partition *p, uint32_t number, lf_value *value, lf_extent_class cls,
                      lf_root **out_root) LF_MUST_USE;
lf_status lf_root_add_output(lf_partition *p, lf_root *root, uint32_t output) LF_MUST_USE;

// into.c: outputs into a parameter that must not be overwritten yet go to workspace first, and are copied at the end.
lf_status lf_defer_unsafe_outputs(lf_partition *p) LF_MUST_USE;
#endif
