// Pairs of groups that one kernel can compute: one along rows, one with reductions across them (see lf_mixed in partition.h). What is
// asked here is whether it would be right: everything that the reductions across read must be at hand, or stored, where the rows are
// walked. Does not belong here: the kernel (lib/schedule, lib/codegen), and whether it pays (runtime).
#include "partition/partition.h"

enum { FAR = 8, MOST_VISITS = 1024 };

typedef struct walk {
    lf_partition *p;
    const lf_mixed *m;
    uint32_t visits;
    bool elsewhere; // under an op that looks at indices: operands are read at other points
    bool meets;     // reads what the group along rows makes or reads
    bool ok;
} walk;

static bool is_full(const walk *w, const lf_value *v) { return lf_same_shape(&v->type, &w->m->group.shape); }

// The group along rows reads these elements.
static bool is_read_along(walk *w, const lf_value *base);

// At this space of the one kernel.
static void visit(walk *w, lf_value *v, const lf_space *space);

typedef struct operand_visit {
    walk *w;
    const lf_space *space;
} operand_visit;

static lf_status visit_operand(void *context, lf_value *operand) {
    const operand_visit *o = context;
    visit(o->w, operand, o->space);
    return NULL;
}

static void visit(walk *w, lf_value *v, const lf_space *space) {
    lf_partition *p = w->p;
    if (!w->ok || ++w->visits > MOST_VISITS) {
        w->ok = false;
        return;
    }
    lf_value *base = lf_base_in_stage(p, w->m->group.stage, v);
    if (!base) return;
    const lf_node *node = lf_node_of(p, base);
    lf_space at = space ? *space : (lf_space){0};
    bool known = space && lf_space_of_base(p, v, &at);
    lf_op_kind kind = lf_op_info_of(base->def->code)->kind;
    if (node->group == LF_NO_GROUP) {
        w->meets |= is_full(w, base) && is_read_along(w, base);
        return;
    }
    bool own = node->group == w->m->rows || node->group == w->m->columns;
    if (!own && node->stored) {
        w->meets |= is_full(w, base) && is_read_along(w, base);
        uint32_t first = w->m->rows == LF_NO_GROUP ? w->m->columns : w->m->rows;
        if (node->group > first) w->ok = false;
        return;
    }
    if (node->group == w->m->rows) {
        w->meets = true;
        lf_space expected;
        lf_group_space(p, &w->m->group, node->cls, &expected);
        if (w->elsewhere || !known || !lf_space_equal(&at, &expected)) w->ok = false;
        return; // what the row's group computes at this point it computes anyhow
    }
    if (kind == LF_KIND_REDUCE || kind == LF_KIND_WHOLE) {
        w->ok = false;
        return;
    }
    bool before = w->elsewhere;
    w->elsewhere |= kind == LF_KIND_INDEXED;
    operand_visit o = {w, known && !w->elsewhere ? &at : NULL};
    lf_status s = lf_visit_operands(base->def, visit_operand, &o);
    w->elsewhere = before;
    if (s) w->ok = false;
    lf_status_destroy(s);
}

typedef struct search {
    const walk *w;
    const lf_value *base;
    bool found;
} search;

static lf_status look(void *context, lf_value *operand) {
    search *s = context;
    s->found |= lf_base_in_stage(s->w->p, s->w->m->group.stage, operand) == s->base;
    return NULL;
}

static bool is_read_along(walk *w, const lf_value *base) {
    if (w->meets || w->m->rows == LF_NO_GROUP) return true;
    const lf_group *rows = w->p->groups[w->m->rows];
    search s = {w, base, false};
    for (uint32_t i = 0; i < rows->n_nodes && !s.found; i++) lf_status_destroy(lf_visit_operands(rows->nodes[i], look, &s));
    return s.found;
}

// Results that go into parameters stay in the plain kernels, whose order is known to be safe.
static bool writes_into(const lf_partition *p, const lf_root *root) {
    for (uint32_t k = 0; k < root->n_outputs; k++)
        if (p->graph->outputs[root->outputs[k]].into) return true;
    return false;
}

static bool is_simple(const lf_op *op) {
    const lf_type *x = &op->operands[0]->type;
    bool kind = op->code == LF_OP_SUM || op->code == LF_OP_PROD || op->code == LF_OP_RMIN || op->code == LF_OP_RMAX ||
                op->code == LF_OP_ANY || op->code == LF_OP_ALL;
    return kind && !lf_is_complex(x->dtype);
}

static bool has_whole(const lf_group *group) {
    for (uint32_t i = 0; i < group->n_nodes; i++)
        if (lf_op_info_of(group->nodes[i]->code)->kind == LF_KIND_WHOLE) return true;
    return false;
}

static bool is_possible(lf_partition *p, const lf_mixed *m) {
    lf_space full;
    lf_group_space(p, &m->group, LF_CLASS_FULL, &full);
    walk w = {.p = p, .m = m, .ok = true};
    lf_group *columns = p->groups[m->columns];
    bool reduces = false, combines = false, elements = m->rows != LF_NO_GROUP;
    for (uint32_t i = 0; i < columns->n_nodes && w.ok; i++) {
        const lf_op *op = columns->nodes[i];
        if (lf_op_info_of(op->code)->kind != LF_KIND_REDUCE) continue;
        reduces = true;
        if (!is_simple(op) || !is_full(&w, op->operands[0])) return false;
        visit(&w, op->operands[0], &full);
    }
    for (uint32_t i = 0; i < columns->n_roots && w.ok; i++) {
        const lf_root *root = &columns->roots[i];
        combines |= root->cls != LF_CLASS_FULL; // else nobody asks for what is reduced
        if (root->cls != LF_CLASS_FULL) continue;
        if (writes_into(p, root) || lf_view_base(root->value) != root->value) return false;
        elements = true;
        visit(&w, root->value, &full);
    }
    for (uint32_t i = 0; m->rows != LF_NO_GROUP && i < p->groups[m->rows]->n_roots; i++)
        if (writes_into(p, &p->groups[m->rows]->roots[i])) return false;
    return w.ok && reduces && combines && elements && (w.meets || m->rows == LF_NO_GROUP);
}

bool lf_mixed_find(lf_partition *p, uint32_t columns, const bool *taken, lf_mixed *out) {
    const lf_group *across = p->groups[columns];
    unsigned rank = across->shape.rank;
    uint32_t all = (1u << rank) - 1, along = all & ~across->axes;
    if (across->kind != LF_GROUP_ROWS || across->serial || across->dead || taken[columns] || has_whole(across)) return false;
    // The innermost axis is a column, or a thread's neighbours would not be neighbours in memory.
    if (rank < 2 || !along || !(along >> (rank - 1) & 1)) return false;
    for (uint32_t back = 1; back <= FAR && back <= columns; back++) {
        const lf_group *g = p->groups[columns - back];
        if (g->dead || g->serial || g->stage != across->stage || taken[columns - back] ||
            !lf_same_shape(&g->shape, &across->shape))
            continue;
        if (g->kind != LF_GROUP_POINTWISE && !(g->kind == LF_GROUP_ROWS && g->axes == along && !has_whole(g))) continue;
        *out = (lf_mixed){.rows = columns - back, .columns = columns, .group = *g};
        out->group.kind = LF_GROUP_ROWS;
        out->group.axes = along;
        if (is_possible(p, out)) return true;
    }
    *out = (lf_mixed){.rows = LF_NO_GROUP, .columns = columns, .group = *across};
    out->group.axes = along;
    return is_possible(p, out);
}
