// Where values lie, seen from a group: the base of a chain of views, the space of an element, and which point of a group is read.
#include "partition/groups.h"

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

lf_status lf_check_point(void *context, lf_value *operand) {
    lf_point_check *c = context;
    lf_value *base = lf_base_in_stage(c->partition, c->group->stage, operand);
    if (!base) return NULL;
    const lf_node *node = lf_node_of(c->partition, base);
    if (!c->ok || node->group != c->number || (c->cheap_elsewhere && node->cost <= LF_CHEAP)) return NULL;
    lf_space space = {0}, expected;
    if (operand->type.tensor) lf_group_space(c->partition, c->group, c->cls, &space);
    lf_group_space(c->partition, c->group, node->cls, &expected);
    c->ok = lf_space_of_base(c->partition, operand, &space) && lf_space_equal(&space, &expected);
    return NULL;
}
