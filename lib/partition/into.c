// Outputs `into` a parameter: whether it may be overwritten where the output is made.
#include "partition/groups.h"

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
        lf_point_check check = {h->partition, h->group, h->number, h->cls, true, false};
        LF_TRY(lf_check_point(&check, operand));
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

// Outputs `into` a parameter that must not be overwritten yet go to workspace first, and are copied at the end.
lf_status lf_defer_unsafe_outputs(lf_partition *p) {
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
                LF_TRY(lf_group_new(p, LF_GROUP_POINTWISE, &root->value->type, 0, &number));
                LF_TRY(lf_root_add(p, number, root->value, LF_CLASS_FULL, &copy));
                lf_node *node = &p->nodes[root->value->id];
                if (node->group == LF_NO_GROUP) node->group = i; // a view: this group copies it
                node->last_reader = number;
                node->stored = true;
                LF_TRY(lf_root_add_output(p, copy, output));
            }
        }
    }
    return NULL;
}
