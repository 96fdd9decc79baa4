// Which group an op joins, or whether it begins one (see partition.h). What crosses groups is group.c's.
#include "partition/groups.h"
#include <string.h>

enum {
    MAX_NODES = 160, // ops in one kernel: keeps code generation linear and bounds recursion over a group
    SIBLINGS = 4     // how far back an op without producers looks for a group of its shape
};

static uint32_t own_cost(const lf_op *op) {
    switch (op->code) {
    case LF_OP_UNIFORM:
    case LF_OP_NORMAL:
    case LF_OP_GCD:
    case LF_OP_POW: return 20;
    case LF_OP_TAKE:
    case LF_OP_GATHER:
    case LF_OP_INDEX: return 4;
    case LF_OP_CAST:
    case LF_OP_ADD:
    case LF_OP_SUB:
    case LF_OP_MUL:
    case LF_OP_SELECT:
    case LF_OP_FULL:
    case LF_OP_IOTA: return 1;
    default: break;
    }
    lf_dtype d = op->compute;
    if (lf_op_info_of(op->code)->kind != LF_KIND_ELEM) return 2;
    return op->code < LF_OP_NEG || op->code == LF_OP_FLOORDIV || op->code == LF_OP_MOD || d == LF_C64 || d == LF_C128 ? 5
                                                                                                                      : 1;
}

enum { MAX_CANDIDATES = 8 };

// The groups that make an op's operands. A cheap operand need not hold the op back: it can be recomputed in any group that comes
// after what it reads; a dear one, and a reduction, must have been stored by an earlier group or be in the same one.
typedef struct operands_summary {
    lf_partition *partition;
    uint32_t stage;
    uint32_t groups[MAX_CANDIDATES], n; // that make operands, latest first
    uint32_t after;                     // the op's group must be at least the after-th (number + 1 >= after)
    uint32_t cost;
} operands_summary;

static void add_candidate(operands_summary *s, uint32_t group) {
    uint32_t at = 0;
    while (at < s->n && s->groups[at] > group) at++;
    if (at < s->n && s->groups[at] == group) return;
    if (s->n == MAX_CANDIDATES && at == s->n) return;
    if (s->n < MAX_CANDIDATES) s->n++;
    memmove(&s->groups[at + 1], &s->groups[at], (s->n - at - 1) * sizeof *s->groups);
    s->groups[at] = group;
}

static uint32_t cheap(const lf_partition *p) { return p->debug & LF_DEBUG_NO_RECOMPUTE ? 0 : LF_CHEAP; }

// One a row: to store it costs next to nothing, and readers that iterate over elements would compute it once an element.
static bool is_of_row(const lf_partition *p, const lf_node *node) {
    return node->cls != LF_CLASS_FULL && p->groups[node->group]->kind == LF_GROUP_ROWS &&
           lf_group_rows(p->groups[node->group]);
}

// What has indices to check looks at all of its elements, once: another kernel may read only some of them, and those of sort, topk and
// scatter have no place where they would report the index of another op. So it is always stored, and readers wait for that.
static bool checks_index(const lf_op *op) {
    return op->code == LF_OP_TAKE || op->code == LF_OP_GATHER || op->code == LF_OP_INDEX || op->code == LF_OP_ONEHOT;
}

bool lf_is_cheap(const lf_partition *p, const lf_value *v) {
    const lf_node *node = lf_node_of(p, v);
    lf_op_kind kind = lf_op_info_of(v->def->code)->kind;
    return kind != LF_KIND_REDUCE && kind != LF_KIND_WHOLE && node->cost <= cheap(p) && !is_of_row(p, node) &&
           !checks_index(v->def);
}

static lf_status summarise_operand(void *context, lf_value *operand) {
    operands_summary *s = context;
    lf_value *base = lf_base_in_stage(s->partition, s->stage, operand);
    if (!base) return NULL;
    const lf_node *node = lf_node_of(s->partition, base);
    if (node->group == LF_NO_GROUP) return NULL;
    add_candidate(s, node->group);
    uint32_t after = lf_is_cheap(s->partition, base) ? node->after : node->group + 1;
    if (after > s->after) s->after = after;
    s->cost += is_of_row(s->partition, node) || checks_index(base->def) ? 1 : node->cost;
    if (s->cost > 1000) s->cost = 1000;
    return NULL;
}

static bool class_in_group(const lf_group *group, const lf_type *type, lf_extent_class *out_class) {
    const lf_type *shape = &group->shape;
    if (type->rank == shape->rank && lf_same_shape(type, shape)) return *out_class = LF_CLASS_FULL, true;
    if (group->kind != LF_GROUP_ROWS) return false;
    if (type->rank == lf_group_rows(group)) {
        unsigned at = 0;
        for (unsigned a = 0; a < shape->rank; a++)
            if (!(group->axes >> a & 1) && !lf_same_extent(shape->dims[a], type->dims[at++])) return false;
        return *out_class = LF_CLASS_ROW, true;
    }
    if (type->rank != shape->rank) return false;
    for (unsigned a = 0; a < shape->rank; a++)
        if (group->axes >> a & 1 ? !lf_is_one(type->dims[a]) : !lf_same_extent(shape->dims[a], type->dims[a])) return false;
    return *out_class = LF_CLASS_ROW_KEPT, true;
}

static bool may_join(lf_partition *p, uint32_t number, const lf_op *op, lf_extent_class *out_class) {
    lf_group *group = p->groups[number];
    if (group->kind == LF_GROUP_WHOLE || group->n_nodes >= MAX_NODES) return false;
    if (!class_in_group(group, &op->results[0].type, out_class)) return false;
    lf_point_check check = {p, group, number, *out_class, true, group->kind == LF_GROUP_POINTWISE};
    lf_status s = lf_visit_operands(op, lf_check_point, &check);
    lf_status_destroy(s);
    return !s && check.ok;
}

// One element of a row, picked by an index along the reduced axis: other columns of the same row can be recomputed, since what they
// need of the row is known to every thread of it. (The loss picks the label's log-probability so.)
static bool may_pick(lf_partition *p, uint32_t number, const lf_op *op, lf_extent_class *out_class) {
    lf_group *group = p->groups[number];
    if (op->code != LF_OP_GATHER && op->code != LF_OP_TAKE && op->code != LF_OP_INDEX) return false;
    if (group->kind != LF_GROUP_ROWS || group->serial || group->n_nodes >= MAX_NODES || group->axes != 1u << op->axis)
        return false;
    if (!lf_same_shape(&op->operands[0]->type, &group->shape) || !class_in_group(group, &op->results[0].type, out_class))
        return false;
    if (*out_class == LF_CLASS_FULL) return false;
    lf_point_check x = {p, group, number, LF_CLASS_FULL, true, false}, index = {p, group, number, *out_class, true, false};
    return !lf_check_point(&x, op->operands[0]) && x.ok && !lf_check_point(&index, op->operands[1]) && index.ok;
}

// A reduction joins the group that makes its operand, which thereby becomes a group of rows.
static bool may_reduce(lf_partition *p, uint32_t number, const lf_op *op, lf_extent_class *out_class) {
    *out_class = LF_CLASS_ROW;
    lf_group *group = p->groups[number];
    lf_value *x = op->operands[0];
    if (group->kind == LF_GROUP_WHOLE || group->serial || group->n_nodes >= MAX_NODES ||
        !lf_same_shape(&x->type, &group->shape))
        return false;
    if (group->kind == LF_GROUP_ROWS && group->axes != op->axes) return false;
    const lf_node *node = lf_node_of(p, lf_view_base(x));
    if (node->group != number) return true;
    if (group->kind == LF_GROUP_POINTWISE) {
        // Its members must not read each other at other points, since rows are computed pass by pass.
        lf_group rows = *group;
        rows.kind = LF_GROUP_ROWS;
        rows.axes = op->axes;
        for (uint32_t i = 0; i < group->n_nodes; i++) {
            lf_point_check inner = {p, &rows, number, LF_CLASS_FULL, true, false};
            lf_status s = lf_visit_operands(group->nodes[i], lf_check_point, &inner);
            lf_status_destroy(s);
            if (s || !inner.ok) return false;
        }
        lf_point_check check = {p, &rows, number, LF_CLASS_FULL, true, false};
        return !lf_check_point(&check, x) && check.ok;
    }
    lf_point_check check = {p, group, number, LF_CLASS_FULL, true, false};
    return !lf_check_point(&check, x) && check.ok;
}

lf_status lf_group_new(lf_partition *p, lf_group_kind kind, const lf_type *shape, uint32_t axes, uint32_t *out_number) {
    if (!LF_ARENA_GROW(&p->arena, p->groups, p->n_groups, p->capacity)) return lf_out_of_memory();
    lf_group *group = LF_ARENA_NEW(&p->arena, lf_group);
    if (!group) return lf_out_of_memory();
    *group = (lf_group){.kind = kind, .shape = *shape, .axes = axes, .stage = p->stage};
    *out_number = p->n_groups;
    p->groups[p->n_groups++] = group;
    return NULL;
}

// Where an op of this group may be recomputed. What its own group makes it reads at its own point, where that group has it; in another
// group it is read at any point, so that group must come after all that is stored for it.
typedef struct recomputing {
    lf_partition *partition;
    uint32_t number, after, dear;
} recomputing;

static lf_status add_recomputed(void *context, lf_value *operand) {
    recomputing *r = context;
    lf_value *base = lf_base_in_stage(r->partition, r->partition->groups[r->number]->stage, operand);
    const lf_node *node = base ? lf_node_of(r->partition, base) : NULL;
    if (!node || node->group == LF_NO_GROUP) return NULL;
    bool cheap_one = lf_is_cheap(r->partition, base);
    uint32_t dear = cheap_one ? node->dear : node->group + 1, after = cheap_one ? node->after : node->group + 1;
    if (node->group != r->number) after = dear ? dear + 1 : 0;
    if (dear > r->dear) r->dear = dear;
    if (after > r->after) r->after = after;
    return NULL;
}

static lf_status add_node(lf_partition *p, uint32_t number, lf_op *op, lf_extent_class cls, uint32_t cost) {
    recomputing elsewhere = {.partition = p, .number = number};
    LF_TRY(lf_visit_operands(op, add_recomputed, &elsewhere));
    lf_group *group = p->groups[number];
    if (!LF_ARENA_GROW(&p->arena, group->nodes, group->n_nodes, group->capacity)) return lf_out_of_memory();
    group->nodes[group->n_nodes++] = op;
    for (unsigned r = 0; r < op->n_results; r++) {
        lf_node *node = &p->nodes[op->results[r].id];
        node->group = number;
        node->cost = cost;
        node->after = elsewhere.after;
        node->dear = elsewhere.dear;
        node->cls = cls;
    }
    return NULL;
}

typedef bool (*fits_group)(lf_partition *p, uint32_t number, const lf_op *op, lf_extent_class *out_class);

// The latest group of an operand that takes the op; else one of the last groups, if it comes after all that the op reads.
static uint32_t find_group(lf_partition *p, const lf_op *op, const operands_summary *s, fits_group fits, bool siblings,
                           lf_extent_class *out_class) {
    if (p->debug & LF_DEBUG_NO_FUSION) return LF_NO_GROUP;
    for (uint32_t i = 0; i < s->n && s->groups[i] + 1 >= s->after; i++)
        if (p->groups[s->groups[i]]->stage == s->stage && fits(p, s->groups[i], op, out_class)) return s->groups[i];
    for (uint32_t back = 1; siblings && back <= SIBLINGS && back + s->after <= p->n_groups; back++)
        if (p->groups[p->n_groups - back]->stage == s->stage && fits(p, p->n_groups - back, op, out_class))
            return p->n_groups - back;
    return LF_NO_GROUP;
}

static lf_status place_reduction(lf_partition *p, lf_op *op, const operands_summary *s) {
    lf_extent_class cls = op->keepdim ? LF_CLASS_ROW_KEPT : LF_CLASS_ROW, unused;
    uint32_t number = find_group(p, op, s, may_reduce, true, &unused);
    if (number == LF_NO_GROUP) LF_TRY(lf_group_new(p, LF_GROUP_ROWS, &op->operands[0]->type, op->axes, &number));
    lf_group *group = p->groups[number];
    group->kind = LF_GROUP_ROWS;
    group->axes = op->axes;
    return add_node(p, number, op, cls, 0);
}

// A scan visits the columns of its rows in order. A matrix product is a sum over the last axis of [batch, m, n, k], which nobody
// ever stores. Sort, topk and scatter have kernels of their own.
static lf_status place_whole(lf_partition *p, lf_op *op) {
    uint32_t number;
    const lf_type *x = &op->operands[0]->type;
    if (op->code == LF_OP_MATMUL) {
        lf_type shape = op->results[0].type;
        shape.dims[shape.rank++] = x->dims[x->rank - 1];
        LF_TRY(lf_group_new(p, LF_GROUP_ROWS, &shape, 1u << (shape.rank - 1), &number));
        return add_node(p, number, op, LF_CLASS_ROW, 0);
    }
    bool scan = op->code != LF_OP_SORT && op->code != LF_OP_TOPK && op->code != LF_OP_SCATTER;
    LF_TRY(lf_group_new(p, scan ? LF_GROUP_ROWS : LF_GROUP_WHOLE, x, 1u << op->axis, &number));
    p->groups[number]->serial = scan;
    return add_node(p, number, op, LF_CLASS_FULL, 0);
}

lf_status lf_group_place(lf_partition *p, lf_op *op) {
    operands_summary s = {.partition = p, .stage = p->stage, .cost = own_cost(op)};
    LF_TRY(lf_visit_operands(op, summarise_operand, &s));
    lf_op_kind kind = lf_op_info_of(op->code)->kind;
    if (kind == LF_KIND_REDUCE) return place_reduction(p, op, &s);
    if (kind == LF_KIND_WHOLE) return place_whole(p, op);
    // An op that looks at indices reads its operands at other points: it begins a group, or joins one that makes none of them.
    lf_extent_class cls = LF_CLASS_FULL;
    uint32_t number = kind == LF_KIND_INDEXED ? find_group(p, op, &s, may_pick, false, &cls) : LF_NO_GROUP;
    if (kind == LF_KIND_INDEXED) s.n = 0;
    if (number == LF_NO_GROUP) number = find_group(p, op, &s, may_join, op->results[0].type.tensor, &cls);
    if (number == LF_NO_GROUP) {
        cls = LF_CLASS_FULL;
        LF_TRY(lf_group_new(p, LF_GROUP_POINTWISE, &op->results[0].type, 0, &number));
    }
    return add_node(p, number, op, cls, s.cost);
}

static bool writes_something(const lf_partition *p, const lf_group *group) {
    bool any = group->n_roots != 0;
    for (uint32_t i = 0; i < group->n_nodes && !any; i++)
        for (unsigned r = 0; r < group->nodes[i]->n_results; r++) any |= p->nodes[group->nodes[i]->results[r].id].stored;
    return any;
}

// One of the last kernels that has a single row, or a single element, can copy a scalar besides.
lf_status lf_group_for_copy(lf_partition *p, lf_value *value, uint32_t *out_number, lf_extent_class *out_class) {
    operands_summary s = {.partition = p, .stage = p->stage};
    LF_TRY(summarise_operand(&s, value));
    bool may = !value->type.tensor && !(p->debug & LF_DEBUG_NO_FUSION);
    for (uint32_t back = 1; may && back <= SIBLINGS && back + s.after <= p->n_groups; back++) {
        const lf_group *group = p->groups[ *out_number = p->n_groups - back];
        if (group->stage == p->stage && !group->serial && class_in_group(group, &value->type, out_class) &&
            writes_something(p, group))
            return NULL;
    }
    *out_class = LF_CLASS_FULL;
    return lf_group_new(p, LF_GROUP_POINTWISE, &value->type, 0, out_number);
}
