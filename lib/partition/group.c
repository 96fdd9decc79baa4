// Grouping (see partition.h): first every op gets its group, then the values that cross groups are stored or recomputed, then
// outputs are attached. Does not belong here: how a group becomes a kernel (lib/schedule).
#include "partition/finish.h"
#include "partition/stages.h"
#include <string.h>

enum {
    MAX_NODES = 160, // ops in one kernel: keeps code generation linear and bounds recursion over a group
    CHEAP = 6,       // recomputing up to this many simple ops beats storing and loading
    SIBLINGS = 4     // how far back an op without producers looks for a group of its shape
};

bool lf_is_node(const lf_op *op) {
    lf_op_kind kind = lf_op_info_of(op->code)->kind;
    if (op->alias || op->n_results == 0 || op->results[0].where == LF_ON_HOST) return false;
    return kind == LF_KIND_ELEM || kind == LF_KIND_INDEXED || kind == LF_KIND_REDUCE || kind == LF_KIND_WHOLE;
}

static bool is_transparent(const lf_op *op) {
    return lf_op_info_of(op->code)->kind == LF_KIND_VIEW || op->code == LF_OP_ITEM || op->code == LF_OP_SCALAR_TENSOR;
}

lf_value *lf_view_base(lf_value *v) {
    while (is_transparent(v->def)) v = v->def->operands[0];
    return v;
}

lf_value *lf_base_in_stage(const lf_partition *p, uint32_t stage, lf_value *v) {
    while (!lf_known_by(p, v, stage)) {
        if (!is_transparent(v->def)) return v;
        v = v->def->operands[0];
    }
    return NULL;
}

const lf_node *lf_node_of(const lf_partition *p, const lf_value *v) {
    static const lf_node none = {.group = LF_NO_GROUP, .finish = LF_NO_FINISH, .arrival = LF_NO_ARRIVAL};
    return v->id < p->n_nodes ? &p->nodes[v->id] : &none;
}

unsigned lf_group_rows(const lf_group *group) {
    unsigned rows = 0;
    for (unsigned a = 0; a < group->shape.rank; a++) rows += !(group->axes >> a & 1);
    return rows;
}

unsigned lf_group_axis(const lf_group *group, unsigned axis) {
    bool reduced = group->axes >> axis & 1;
    unsigned at = reduced ? lf_group_rows(group) : 0;
    for (unsigned a = 0; a < axis; a++) at += (group->axes >> a & 1) == reduced;
    return at;
}

void lf_group_space(const lf_partition *p, const lf_group *group, lf_extent_class cls, lf_space *out) {
    lf_value *one = lf_const_int(p->graph, 1);
    *out = (lf_space){0};
    for (unsigned a = 0; a < group->shape.rank; a++) {
        bool reduced = group->axes >> a & 1;
        if (reduced && cls == LF_CLASS_ROW) continue;
        lf_form *form = &out->axis[out->rank++];
        if (!reduced || cls == LF_CLASS_FULL) *form = (lf_form){.n = 1, .terms = {{lf_group_axis(group, a), one}}};
    }
}

// ---- operands ----------------------------------------------------------------------------------------------------------------

// Pending slice starts along the views between an op and a stored value are operands too.
static lf_status visit_views(lf_value *v, lf_visit_operand visit, void *context) {
    for (; is_transparent(v->def); v = v->def->operands[0]) {
        const lf_op *op = v->def;
        if (lf_op_info_of(op->code)->kind != LF_KIND_VIEW || op->view.reshape) continue;
        for (unsigned a = 0; a < LF_MAX_RANK; a++)
            if (op->view.start[a] && op->view.start[a]->where == LF_PENDING) LF_TRY(visit(context, op->view.start[a]));
    }
    return NULL;
}

lf_status lf_visit_operands(const lf_op *op, lf_visit_operand visit, void *context) {
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (!op->operands[i]) continue;
        LF_TRY(visit(context, op->operands[i]));
        LF_TRY(visit_views(op->operands[i], visit, context));
    }
    for (unsigned a = 0; a < LF_MAX_RANK; a++)
        if (op->extra[a]) LF_TRY(visit(context, op->extra[a]));
    return NULL;
}

// ---- which group an op joins -------------------------------------------------------------------------------------------------

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

static uint32_t cheap(const lf_partition *p) { return p->debug & LF_DEBUG_NO_RECOMPUTE ? 0 : CHEAP; }

// One a row: to store it costs next to nothing, and readers that iterate over elements would compute it once an element.
static bool is_of_row(const lf_partition *p, const lf_node *node) {
    return node->cls != LF_CLASS_FULL && p->groups[node->group]->kind == LF_GROUP_ROWS &&
           lf_group_rows(p->groups[node->group]);
}

static bool is_cheap(const lf_partition *p, const lf_value *v) {
    const lf_node *node = lf_node_of(p, v);
    lf_op_kind kind = lf_op_info_of(v->def->code)->kind;
    return kind != LF_KIND_REDUCE && kind != LF_KIND_WHOLE && node->cost <= cheap(p) && !is_of_row(p, node);
}

static lf_status summarise_operand(void *context, lf_value *operand) {
    operands_summary *s = context;
    lf_value *base = lf_base_in_stage(s->partition, s->stage, operand);
    if (!base) return NULL;
    const lf_node *node = lf_node_of(s->partition, base);
    if (node->group == LF_NO_GROUP) return NULL;
    add_candidate(s, node->group);
    uint32_t after = is_cheap(s->partition, base) ? node->after : node->group + 1;
    if (after > s->after) s->after = after;
    s->cost += is_of_row(s->partition, node) ? 1 : node->cost;
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

// What an op reads from its own group it must read at its own point: other points belong to other threads. A pointwise group may
// recompute a cheap value at another point; a dear one would be recomputed again and again along a chain, so it is stored.
typedef struct point_check {
    lf_partition *partition;
    lf_group *group;
    uint32_t number;
    lf_extent_class cls; // of the reader
    bool ok;
    bool cheap_elsewhere; // cheap values may be recomputed at another point
} point_check;

bool lf_space_of_base(lf_partition *p, lf_value *v, lf_space *space) {
    for (; is_transparent(v->def); v = v->def->operands[0]) {
        const lf_op *op = v->def;
        if (op->code == LF_OP_SCALAR_TENSOR) continue;
        if (op->code == LF_OP_ITEM)
            *space = (lf_space){.rank = op->operands[0]->type.rank};
        else if (lf_space_through(p->graph, op, space, NULL, NULL, space) != LF_SPACE_OK)
            return false;
    }
    return true;
}

static lf_status check_point(void *context, lf_value *operand) {
    point_check *c = context;
    lf_value *base = lf_base_in_stage(c->partition, c->group->stage, operand);
    if (!base) return NULL;
    const lf_node *node = lf_node_of(c->partition, base);
    if (!c->ok || node->group != c->number || (c->cheap_elsewhere && node->cost <= CHEAP)) return NULL;
    lf_space space = {0}, expected;
    if (operand->type.tensor) lf_group_space(c->partition, c->group, c->cls, &space);
    lf_group_space(c->partition, c->group, node->cls, &expected);
    c->ok = lf_space_of_base(c->partition, operand, &space) && lf_space_equal(&space, &expected);
    return NULL;
}

static bool may_join(lf_partition *p, uint32_t number, const lf_op *op, lf_extent_class *out_class) {
    lf_group *group = p->groups[number];
    if (group->kind == LF_GROUP_WHOLE || group->n_nodes >= MAX_NODES) return false;
    if (!class_in_group(group, &op->results[0].type, out_class)) return false;
    point_check check = {p, group, number, *out_class, true, group->kind == LF_GROUP_POINTWISE};
    lf_status s = lf_visit_operands(op, check_point, &check);
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
    point_check x = {p, group, number, LF_CLASS_FULL, true, false}, index = {p, group, number, *out_class, true, false};
    return !check_point(&x, op->operands[0]) && x.ok && !check_point(&index, op->operands[1]) && index.ok;
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
            point_check inner = {p, &rows, number, LF_CLASS_FULL, true, false};
            lf_status s = lf_visit_operands(group->nodes[i], check_point, &inner);
            lf_status_destroy(s);
            if (s || !inner.ok) return false;
        }
        point_check check = {p, &rows, number, LF_CLASS_FULL, true, false};
        return !check_point(&check, x) && check.ok;
    }
    point_check check = {p, group, number, LF_CLASS_FULL, true, false};
    return !check_point(&check, x) && check.ok;
}

static lf_status new_group(lf_partition *p, lf_group_kind kind, const lf_type *shape, uint32_t axes, uint32_t *out_number) {
    if (p->n_groups == p->capacity) {
        uint32_t capacity = p->capacity ? p->capacity * 2 : 16;
        lf_group **grown = LF_ARENA_ARRAY(&p->arena, lf_group *, capacity);
        if (!grown) return lf_out_of_memory();
        if (p->n_groups) memcpy(grown, p->groups, p->n_groups * sizeof *grown);
        p->groups = grown;
        p->capacity = capacity;
    }
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
    bool cheap_one = is_cheap(r->partition, base);
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
    if (group->n_nodes == group->capacity) {
        uint32_t capacity = group->capacity ? group->capacity * 2 : 8;
        lf_op **grown = LF_ARENA_ARRAY(&p->arena, lf_op *, capacity);
        if (!grown) return lf_out_of_memory();
        if (group->n_nodes) memcpy(grown, group->nodes, group->n_nodes * sizeof *grown);
        group->nodes = grown;
        group->capacity = capacity;
    }
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
    if (number == LF_NO_GROUP) LF_TRY(new_group(p, LF_GROUP_ROWS, &op->operands[0]->type, op->axes, &number));
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
        LF_TRY(new_group(p, LF_GROUP_ROWS, &shape, 1u << (shape.rank - 1), &number));
        return add_node(p, number, op, LF_CLASS_ROW, 0);
    }
    bool scan = op->code != LF_OP_SORT && op->code != LF_OP_TOPK && op->code != LF_OP_SCATTER;
    LF_TRY(new_group(p, scan ? LF_GROUP_ROWS : LF_GROUP_WHOLE, x, 1u << op->axis, &number));
    p->groups[number]->serial = scan;
    return add_node(p, number, op, LF_CLASS_FULL, 0);
}

static lf_status place_op(lf_partition *p, lf_op *op) {
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
        LF_TRY(new_group(p, LF_GROUP_POINTWISE, &op->results[0].type, 0, &number));
    }
    return add_node(p, number, op, cls, s.cost);
}

// ---- what crosses groups -----------------------------------------------------------------------------------------------------

typedef struct crossing {
    lf_partition *partition;
    uint32_t reader; // group that needs the operand
} crossing;

// What has indices to check looks at all of its elements, once: another kernel may read only some of them, and those of sort, topk and
// scatter have no place where they would report the index of another op.
static bool checks_index(const lf_op *op) {
    return op->code == LF_OP_TAKE || op->code == LF_OP_GATHER || op->code == LF_OP_INDEX || op->code == LF_OP_ONEHOT;
}

// Recursion stops at CHEAP, the largest cost that is recomputed.
static lf_status cross_operand(void *context, lf_value *operand) {
    crossing *c = context;
    lf_value *base = lf_base_in_stage(c->partition, c->partition->groups[c->reader]->stage, operand);
    if (!base || base->id >= c->partition->n_nodes) return NULL;
    lf_node *node = &c->partition->nodes[base->id];
    if (node->group == LF_NO_GROUP || node->group == c->reader) return NULL;
    if (node->stored || !is_cheap(c->partition, base) || checks_index(base->def)) {
        node->stored = true;
        if (node->last_reader < c->reader) node->last_reader = c->reader;
        return NULL;
    }
    return lf_visit_operands(base->def, cross_operand, context);
}

static lf_status add_root(lf_partition *p, uint32_t number, lf_value *value, lf_extent_class cls, lf_root **out_root) {
    lf_group *group = p->groups[number];
    for (uint32_t i = 0; i < group->n_roots; i++)
        if (group->roots[i].value == value) return *out_root = &group->roots[i], NULL;
    if (group->n_roots == group->roots_capacity) {
        uint32_t capacity = group->roots_capacity ? group->roots_capacity * 2 : 4;
        lf_root *grown = LF_ARENA_ARRAY(&p->arena, lf_root, capacity);
        if (!grown) return lf_out_of_memory();
        if (group->n_roots) memcpy(grown, group->roots, group->n_roots * sizeof *grown);
        group->roots = grown;
        group->roots_capacity = capacity;
    }
    group->roots[group->n_roots] = (lf_root){.value = value, .cls = cls, .arrival = LF_NO_ARRIVAL};
    *out_root = &group->roots[group->n_roots++];
    return NULL;
}

static lf_status add_output(lf_partition *p, lf_root *root, uint32_t output) {
    uint32_t *grown = LF_ARENA_ARRAY(&p->arena, uint32_t, root->n_outputs + 1);
    if (!grown) return lf_out_of_memory();
    if (root->n_outputs) memcpy(grown, root->outputs, root->n_outputs * sizeof *grown);
    grown[root->n_outputs++] = output;
    root->outputs = grown;
    return NULL;
}

// Does a group read this parameter anywhere but at the very element that it writes?
typedef struct hazard {
    lf_partition *partition;
    lf_group *group;
    uint32_t number;
    const lf_value *param;
    lf_extent_class cls;
    bool reads, elsewhere;
    bool moved;   // a value of the group is recomputed at another point
    bool outside; // the reader is recomputed here from another group
    bool indexed; // the reader picks elements by index, anywhere
} hazard;

static lf_status look_for_param(void *context, lf_value *operand) {
    hazard *h = context;
    lf_value *base = lf_base_in_stage(h->partition, h->group->stage, operand);
    if (!base) return NULL;
    if (base == h->param) {
        h->reads = true;
        lf_space space = {0}, expected;
        if (operand->type.tensor) lf_group_space(h->partition, h->group, h->cls, &space);
        lf_group_space(h->partition, h->group, LF_CLASS_FULL, &expected);
        if (h->outside || h->indexed || !lf_space_of_base(h->partition, operand, &space) ||
            !lf_space_equal(&space, &expected))
            h->elsewhere = true;
        return NULL;
    }
    const lf_node *node = lf_node_of(h->partition, base);
    if (node->group == h->number) {
        point_check check = {h->partition, h->group, h->number, h->cls, true, false};
        LF_TRY(check_point(&check, operand));
        h->moved |= h->indexed || !check.ok;
        return NULL;
    }
    if (node->group == LF_NO_GROUP || node->stored) return NULL;
    bool before = h->outside;
    h->outside = true;
    lf_status s = lf_visit_operands(base->def, look_for_param, context);
    h->outside = before;
    return s;
}

static lf_status group_reads(lf_partition *p, uint32_t number, const lf_value *param, hazard *out) {
    lf_group *group = p->groups[number];
    *out = (hazard){.partition = p, .group = group, .number = number, .param = param};
    for (uint32_t i = 0; i < group->n_nodes; i++) {
        out->cls = p->nodes[group->nodes[i]->results[0].id].cls;
        out->indexed = lf_op_info_of(group->nodes[i]->code)->kind == LF_KIND_INDEXED;
        LF_TRY(lf_visit_operands(group->nodes[i], look_for_param, out));
    }
    out->indexed = false;
    for (uint32_t i = 0; i < group->n_roots; i++) { // copies of views
        out->cls = group->roots[i].cls;
        if (lf_view_base(group->roots[i].value) != group->roots[i].value || group->n_nodes == 0)
            LF_TRY(look_for_param(out, group->roots[i].value));
    }
    return NULL;
}

// An output may be written straight into a parameter's buffer only when nobody reads old contents after or beside that.
static lf_status may_write_in_place(lf_partition *p, uint32_t number, const lf_root *root, const lf_value *param,
                                    bool *out) {
    *out = false;
    hazard h;
    if (p->groups[number]->kind == LF_GROUP_WHOLE || root->cls != LF_CLASS_FULL ||
        p->groups[number]->kind != LF_GROUP_POINTWISE)
        return NULL;
    LF_TRY(group_reads(p, number, param, &h));
    if (h.elsewhere || (h.reads && h.moved)) return NULL;
    for (uint32_t later = number + 1; later < p->n_groups; later++) {
        LF_TRY(group_reads(p, later, param, &h));
        if (h.reads) return NULL;
    }
    return *out = true, NULL;
}

static bool is_one_element(const lf_type *type) {
    for (unsigned a = 0; a < type->rank; a++)
        if (!lf_is_one(type->dims[a])) return false;
    return true;
}

static bool writes_something(const lf_partition *p, const lf_group *group) {
    bool any = group->n_roots != 0;
    for (uint32_t i = 0; i < group->n_nodes && !any; i++)
        for (unsigned r = 0; r < group->nodes[i]->n_results; r++) any |= p->nodes[group->nodes[i]->results[r].id].stored;
    return any;
}

// One of the last kernels that has a single row, or a single element, can copy a scalar besides.
static lf_status group_for_copy(lf_partition *p, lf_value *value, uint32_t *out_number, lf_extent_class *out_class) {
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
    return new_group(p, LF_GROUP_POINTWISE, &value->type, 0, out_number);
}

static lf_status copy_group(lf_partition *p, lf_value *value, lf_root **out_root) {
    uint32_t number;
    lf_extent_class cls;
    LF_TRY(group_for_copy(p, value, &number, &cls));
    LF_TRY(add_root(p, number, value, cls, out_root));
    crossing c = {p, number};
    return cross_operand(&c, value);
}

// The root that writes a value to where it is wanted outside: in the group that makes it, else in one that copies it.
static lf_status place_root(lf_partition *p, lf_value *value, lf_root **out_root) {
    lf_value *base = lf_view_base(value);
    const lf_node *node = lf_node_of(p, base);
    bool single = base != value && node->group != LF_NO_GROUP && is_one_element(&base->type) && is_one_element(&value->type);
    if (node->group == LF_NO_GROUP || (base != value && !single)) return copy_group(p, value, out_root);
    const lf_group *group = p->groups[node->group];
    if (single && group->kind != LF_GROUP_POINTWISE && (lf_group_rows(group) != 0 || group->kind == LF_GROUP_WHOLE))
        return copy_group(p, value, out_root);
    return add_root(p, node->group, single ? value : base, node->cls, out_root);
}

static lf_status place_output(lf_partition *p, uint32_t output) {
    lf_value *value = p->graph->outputs[output].value;
    lf_root *root;
    if (lf_on_host_at_end(p, value) || lf_node_of(p, value)->finish != LF_NO_FINISH) return NULL;
    LF_TRY(place_root(p, value, &root));
    return add_output(p, root, output);
}

static lf_status place_arrival(lf_partition *p, uint32_t number) {
    lf_root *root;
    if (p->arrivals[number].output != LF_NO_OUTPUT) return NULL;
    LF_TRY(place_root(p, p->arrivals[number].value, &root));
    root->arrival = number;
    return NULL;
}

static void mark_live(lf_partition *p, const lf_value *v) {
    if (v && v->where != LF_ON_HOST) p->nodes[v->id].live = true;
}

// What nobody reads is not computed (and so reports no index error), though its shape may be asked for.
static void find_live(lf_partition *p) {
    const lf_graph *g = p->graph;
    for (uint32_t i = 0; i < g->n_outputs; i++) mark_live(p, g->outputs[i].value);
    for (const lf_op *op = g->last; op; op = op->prev) {
        bool live = false;
        for (unsigned r = 0; r < op->n_results; r++) {
            const lf_node *node = &p->nodes[op->results[r].id];
            live |= node->live || node->needed;
        }
        if (!live || op->alias) continue;
        for (unsigned k = 0; k < op->n_operands; k++) mark_live(p, op->operands[k]);
        bool view = lf_op_info_of(op->code)->kind == LF_KIND_VIEW && !op->view.reshape;
        for (unsigned a = 0; a < LF_MAX_RANK; a++) {
            mark_live(p, op->extra[a]);
            if (view) mark_live(p, op->view.start[a]);
        }
    }
}

static bool is_live(const lf_partition *p, const lf_op *op) {
    for (unsigned r = 0; r < op->n_results; r++)
        if (p->nodes[op->results[r].id].live) return true;
    return false;
}

static bool is_placed(const lf_partition *p, const lf_op *op, uint32_t stage) {
    if (!lf_is_node(op) || !is_live(p, op)) return false;
    const lf_node *node = &p->nodes[op->results[0].id];
    return node->stage == stage && !node->finished;
}

// The groups of one stage, and what the next one needs of them.
static lf_status place_stage(lf_partition *p, uint32_t stage, lf_op *last) {
    p->stage = stage;
    for (lf_op *op = p->graph->first; op; op = op == last ? NULL : op->next) // joining adds host ops behind the last one
        if (is_placed(p, op, stage)) LF_TRY(place_op(p, op));
    for (lf_op *op = p->graph->first; op && stage + 1 < p->n_stages; op = op == last ? NULL : op->next) {
        if (op->code != LF_OP_ITEM || op->alias) continue;
        const lf_node *node = &p->nodes[op->results[0].id];
        if (!node->needed || node->stage != stage) continue;
        lf_root *root;
        LF_TRY(place_root(p, &op->results[0], &root));
        root->fetched = true;
    }
    return NULL;
}

// Outputs `into` a parameter that must not be overwritten yet go to workspace first, and are copied at the end.
static lf_status defer_unsafe_outputs(lf_partition *p) {
    uint32_t n = p->n_groups;
    for (uint32_t i = 0; i < n; i++) {
        lf_group *group = p->groups[i];
        for (uint32_t r = 0; r < group->n_roots; r++) {
            for (uint32_t k = 0; k < group->roots[r].n_outputs;) {
                lf_root *root = &group->roots[r];
                uint32_t output = root->outputs[k];
                lf_value *into = p->graph->outputs[output].into;
                bool safe = true;
                if (into) LF_TRY(may_write_in_place(p, i, root, into, &safe));
                if (safe) {
                    k++;
                    continue;
                }
                root->outputs[k] = root->outputs[--root->n_outputs];
                root->temporary = true;
                lf_root *copy;
                uint32_t number;
                LF_TRY(new_group(p, LF_GROUP_POINTWISE, &root->value->type, 0, &number));
                LF_TRY(add_root(p, number, root->value, LF_CLASS_FULL, &copy));
                lf_node *node = &p->nodes[root->value->id];
                if (node->group == LF_NO_GROUP) node->group = i; // a view: this group copies it
                node->last_reader = number;
                node->stored = true;
                LF_TRY(add_output(p, copy, output));
            }
        }
    }
    return NULL;
}

lf_status lf_partition_create(lf_graph *g, uint32_t debug, lf_partition **out_partition) {
    *out_partition = NULL;
    lf_partition *p = lf_alloc_zero(g->allocator, sizeof *p);
    if (!p) return lf_out_of_memory();
    lf_arena_init(&p->arena, g->allocator);
    p->graph = g;
    p->debug = debug;
    p->n_nodes = g->n_values;
    p->nodes = LF_ARENA_ARRAY(&p->arena, lf_node, p->n_nodes);
    lf_status s = p->nodes ? NULL : lf_out_of_memory();
    if (!s)
        for (uint32_t i = 0; i < p->n_nodes; i++)
            p->nodes[i] = (lf_node){.group = LF_NO_GROUP, .finish = LF_NO_FINISH, .arrival = LF_NO_ARRIVAL};
    if (!s) lf_stages_find(p);
    if (!s) find_live(p);
    if (!s) s = lf_finishes_find(p);
    lf_op *last = g->last;
    for (uint32_t stage = 0; !s && stage < p->n_stages; stage++) s = place_stage(p, stage, last);
    for (uint32_t i = 0; i < p->n_groups && !s; i++) {
        crossing c = {p, i};
        for (uint32_t k = 0; k < p->groups[i]->n_nodes && !s; k++)
            s = lf_visit_operands(p->groups[i]->nodes[k], cross_operand, &c);
    }
    for (uint32_t i = 0; i < g->n_outputs && !s; i++) s = place_output(p, i);
    for (uint32_t i = 0; i < p->n_arrivals && !s; i++) s = place_arrival(p, i);
    for (uint32_t i = 0; i < p->n_groups && !s; i++)
        for (uint32_t k = 0; k < p->groups[i]->n_nodes && !s; k++)
            for (unsigned r = 0; r < p->groups[i]->nodes[k]->n_results && !s; r++) {
                lf_value *v = &p->groups[i]->nodes[k]->results[r];
                if (!p->nodes[v->id].stored) continue;
                lf_root *root;
                s = add_root(p, i, v, p->nodes[v->id].cls, &root);
                if (!s) root->temporary = true;
            }
    if (!s) s = defer_unsafe_outputs(p);
    for (uint32_t i = 0; i < p->n_groups && !s; i++) p->groups[i]->dead = p->groups[i]->n_roots == 0;
    if (s) return lf_partition_destroy(p), s;
    *out_partition = p;
    return NULL;
}

void lf_partition_destroy(lf_partition *p) {
    if (!p) return;
    const lf_allocator *a = p->arena.allocator;
    lf_arena_finish(&p->arena);
    lf_free(a, p);
}
