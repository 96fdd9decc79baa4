// The partition as text: what a person asks first ("where does this value live, and why; what waits for what").
#include "base/text.h"
#include "partition/partition.h"

static const char *why_pending(const lf_value *v) {
    return v->def->code == LF_OP_ITEM ? "item of a device tensor" : "an operand is pending";
}

static const char *why_host(const lf_value *v) {
    switch (v->def->code) {
    case LF_OP_PARAM: return v->type.host ? "@host tensor, read at launch" : "scalar parameter";
    case LF_OP_SIZE:
    case LF_OP_NUMEL:
    case LF_OP_STRIDE: return "metadata of a tensor";
    case LF_OP_ITEM: return "item of a host value";
    default: return "all operands are host values";
    }
}

static void put_value(const lf_partition *p, lf_arena *arena, lf_text *t, const lf_value *v) {
    lf_text_put(t, "  %-12s %-24s ", lf_value_text(arena, v), lf_type_text(arena, &v->type));
    const lf_value *real = lf_resolve((lf_value *)v);
    if (real->where == LF_ON_HOST) {
        lf_text_put(t, "host     %s\n", why_host(v));
        return;
    }
    if (lf_known_by(p, real, p->n_stages - 1)) {
        lf_text_put(t, "host     %s; the host waits for it before stage %u\n", why_pending(real), lf_known_stage(p, real));
        return;
    }
    const char *kind = real->where == LF_PENDING ? "pending" : "device";
    if (lf_node_of(p, real)->finished) {
        lf_text_put(t, "pending  %s; finished on the host\n", why_pending(real));
        return;
    }
    const lf_node *node = lf_node_of(p, lf_view_base((lf_value *)real));
    if (v->def->code == LF_OP_PARAM)
        lf_text_put(t, "device   tensor parameter\n");
    else if (real->where == LF_PENDING && node->group != LF_NO_GROUP)
        lf_text_put(t, "pending  %s; kernel %u\n", why_pending(real), node->group);
    else if (real->where == LF_PENDING)
        lf_text_put(t, "pending  %s\n", why_pending(real));
    else if (node->group == LF_NO_GROUP && lf_is_node(lf_view_base((lf_value *)real)->def))
        lf_text_put(t, "%-8s not computed: nothing reads its elements\n", kind);
    else if (node->group == LF_NO_GROUP)
        lf_text_put(t, "%-8s view of a parameter: no work of its own\n", kind);
    else if (lf_view_base((lf_value *)real) != real)
        lf_text_put(t, "%-8s view: an index map in the kernels that read it\n", kind);
    else if (p->groups[node->group]->dead)
        lf_text_put(t, "%-8s no kernel of its own: recomputed where it is read\n", kind);
    else
        lf_text_put(t, "%-8s kernel %u%s\n", kind, node->group, node->stored ? ", stored for later kernels" : "");
}

static void put_group(const lf_partition *p, lf_arena *arena, lf_text *t, uint32_t number) {
    const lf_group *group = p->groups[number];
    if (group->dead) return;
    const char *kinds[] = {"pointwise", "rows", "whole"};
    lf_text_put(t, "  kernel %u: %s over %s", number, kinds[group->kind], lf_type_text(arena, &group->shape));
    if (p->n_stages > 1) lf_text_put(t, ", stage %u", group->stage);
    if (group->kind == LF_GROUP_ROWS) {
        lf_text_put(t, ", reduces axes [");
        for (unsigned a = 0, n = 0; a < group->shape.rank; a++)
            if (group->axes >> a & 1) lf_text_put(t, "%s%u", n++ ? ", " : "", a);
        lf_text_put(t, "]");
    }
    lf_text_put(t, "\n    ops:");
    for (uint32_t i = 0; i < group->n_nodes; i++) lf_text_put(t, " %s", lf_op_info_of(group->nodes[i]->code)->name);
    lf_text_put(t, "%s\n    writes:", group->n_nodes ? "" : " copy");
    for (uint32_t i = 0; i < group->n_roots; i++) {
        const lf_root *root = &group->roots[i];
        const lf_value *named = root->n_outputs ? p->graph->outputs[root->outputs[0]].written : root->value;
        lf_text_put(t, " %s", lf_value_text(arena, named));
        if (root->temporary) lf_text_put(t, " to workspace");
        if (root->fetched || root->arrival != LF_NO_ARRIVAL) lf_text_put(t, " to the host");
        for (uint32_t k = 0; k < root->n_outputs; k++) {
            const lf_output *output = &p->graph->outputs[root->outputs[k]];
            lf_text_put(t, output->into ? " to output %u (into %s)" : " to output %u", root->outputs[k],
                        output->into ? lf_value_text(arena, output->into) : "");
        }
        if (i + 1 < group->n_roots) lf_text_put(t, ",");
    }
    lf_text_put(t, "\n");
}

// Outputs that the host finishes, and from what.
static void put_finishes(const lf_partition *p, lf_arena *arena, lf_text *t) {
    if (p->n_finishes) lf_text_put(t, "finished on the host:\n");
    for (uint32_t i = 0; i < p->graph->n_outputs; i++) {
        const lf_node *node = lf_node_of(p, p->graph->outputs[i].value);
        if (node->finish == LF_NO_FINISH) continue;
        const lf_finish *f = &p->finishes[node->finish];
        lf_text_put(t, "  output %u: %s when", i, lf_value_text(arena, p->graph->outputs[i].written));
        for (uint32_t k = 0, n = 0; k < f->n_from; k++)
            if (!lf_on_host_at_end(p, f->from[k])) lf_text_put(t, "%s %s", n++ ? "," : "", lf_value_text(arena, f->from[k]));
        lf_text_put(t, " arrive");
        for (uint32_t k = 0, n = 0; k < f->n_from; k++)
            if (lf_on_host_at_end(p, f->from[k]))
                lf_text_put(t, "%s %s", n++ ? "," : "; with", lf_value_text(arena, f->from[k]));
        lf_text_put(t, "\n");
    }
}

static void put_sync_points(const lf_partition *p, lf_arena *arena, lf_text *t) {
    if (!p->graph->first_sync) {
        lf_text_put(t, "sync points: none\n");
        return;
    }
    lf_text_put(t, "sync points: %u, the run goes in %u stages\n", p->n_stages - 1, p->n_stages);
    for (const lf_sync_point *sync = p->graph->first_sync; sync; sync = sync->next) {
        const lf_value *v = lf_resolve((lf_value *)sync->value);
        lf_text_put(t, "  before stage %u, %u:%u: %s waits for %s", lf_known_stage(p, v), sync->place.line,
                    sync->place.column, sync->use, lf_value_text(arena, sync->value));
        if (sync->item != v) lf_text_put(t, ", which comes from %s", lf_value_text(arena, sync->item));
        lf_text_put(t, "\n");
    }
}

lf_status lf_partition_print(const lf_partition *p, char **out_text) {
    *out_text = NULL;
    lf_arena arena;
    lf_arena_init(&arena, p->arena.allocator);
    lf_text t;
    lf_text_init(&t, p->arena.allocator);
    lf_text_put(&t, "partition of @%s\nvalues:\n", p->graph->name);
    for (uint32_t i = 0; i < p->graph->n_params; i++) put_value(p, &arena, &t, p->graph->params[i]);
    for (const lf_op *op = p->graph->first; op; op = op->next)
        for (unsigned r = 0; r < op->n_results && !op->implicit && op->code != LF_OP_PARAM; r++)
            put_value(p, &arena, &t, &op->results[r]);
    lf_text_put(&t, "kernels:\n");
    uint32_t alive = 0;
    for (uint32_t i = 0; i < p->n_groups; i++) {
        put_group(p, &arena, &t, i);
        alive += !p->groups[i]->dead;
    }
    if (!alive) lf_text_put(&t, "  none: the whole program is host code\n");
    put_finishes(p, &arena, &t);
    put_sync_points(p, &arena, &t);
    if (arena.failed) t.failed = true;
    lf_arena_finish(&arena);
    return lf_text_take(&t, out_text);
}
