// Grouping (see partition.h): first every op gets its group (join.c), then the values that cross groups are stored or recomputed, then
// outputs are attached. Does not belong here: how a group becomes a kernel (lib/schedule).
#include "partition/groups.h"
#include "partition/finish.h"
#include "partition/stages.h"
#include <string.h>

// ---- what crosses groups -----------------------------------------------------------------------------------------------------

typedef struct crossing {
    lf_partition *partition;
    uint32_t reader; // group that needs the operand
} crossing;

// Recursion stops at LF_CHEAP, the largest cost that is recomputed.
static lf_status cross_operand(void *context, lf_value *operand) {
    crossing *c = context;
    lf_value *base = lf_base_in_stage(c->partition, c->partition->groups[c->reader]->stage, operand);
    if (!base || base->id >= c->partition->n_nodes) return NULL;
    lf_node *node = &c->partition->nodes[base->id];
    if (node->group == LF_NO_GROUP || node->group == c->reader) return NULL;
    if (node->stored || !lf_is_cheap(c->partition, base)) {
        node->stored = true;
        if (node->last_reader < c->reader) node->last_reader = c->reader;
        return NULL;
    }
    return lf_visit_operands(base->def, cross_operand, context);
}

lf_status lf_root_add(lf_partition *p, uint32_t number, lf_value *value, lf_extent_class cls, lf_root **out_root) {
    lf_group *group = p->groups[number];
    for (uint32_t i = 0; i < group->n_roots; i++)
        if (group->roots[i].value == value) return *out_root = &group->roots[i], NULL;
    if (!LF_ARENA_GROW(&p->arena, group->roots, group->n_roots, group->roots_capacity)) return lf_out_of_memory();
    group->roots[group->n_roots] = (lf_root){.value = value, .cls = cls, .arrival = LF_NO_ARRIVAL};
    *out_root = &group->roots[group->n_roots++];
    return NULL;
}

lf_status lf_root_add_output(lf_partition *p, lf_root *root, uint32_t output) {
    uint32_t *grown = LF_ARENA_ARRAY(&p->arena, uint32_t, root->n_outputs + 1);
    if (!grown) return lf_out_of_memory();
    if (root->n_outputs) memcpy(grown, root->outputs, root->n_outputs * sizeof *grown);
    grown[root->n_outputs++] = output;
    root->outputs = grown;
    return NULL;
}

static bool is_one_element(const lf_type *type) {
    for (unsigned a = 0; a < type->rank; a++)
        if (!lf_is_one(type->dims[a])) return false;
    return true;
}

static lf_status copy_group(lf_partition *p, lf_value *value, lf_root **out_root) {
    uint32_t number;
    lf_extent_class cls;
    LF_TRY(lf_group_for_copy(p, value, &number, &cls));
    LF_TRY(lf_root_add(p, number, value, cls, out_root));
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
    return lf_root_add(p, node->group, single ? value : base, node->cls, out_root);
}

static lf_status place_output(lf_partition *p, uint32_t output) {
    lf_value *value = p->graph->outputs[output].value;
    lf_root *root;
    if (lf_on_host_at_end(p, value) || lf_node_of(p, value)->finish != LF_NO_FINISH) return NULL;
    LF_TRY(place_root(p, value, &root));
    return lf_root_add_output(p, root, output);
}

static lf_status place_arrival(lf_partition *p, uint32_t number) {
    lf_root *root;
    if (p->arrivals[number].output != LF_NO_OUTPUT) return NULL;
    LF_TRY(place_root(p, p->arrivals[number].value, &root));
    root->arrival = number;
    return NULL;
}

// ---- all of it ---------------------------------------------------------------------------------------------------------------

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
        if (is_placed(p, op, stage)) LF_TRY(lf_group_place(p, op));
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
                s = lf_root_add(p, i, v, p->nodes[v->id].cls, &root);
                if (!s) root->temporary = true;
            }
    if (!s) s = lf_defer_unsafe_outputs(p);
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
