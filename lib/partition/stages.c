// When each thing can happen in a program whose host code needs pending scalars (see partition.h): what the host must fetch, when
// it knows it, and which stage every device op belongs to. Without sync points there is one stage and nothing to fetch.
#include "partition/partition.h"
#include "partition/stages.h"

static lf_node *node(lf_partition *p, const lf_value *v) { return &p->nodes[v->id]; }

static bool is_pending(const lf_value *v) { return v && v->where == LF_PENDING; }

// ---- what the host needs -------------------------------------------------------------------------------------------------------

static void need(lf_partition *p, const lf_value *v) {
    if (is_pending(v)) node(p, v)->needed = true;
}

static void need_extents(lf_partition *p, const lf_type *type) {
    for (unsigned a = 0; a < type->rank; a++) need(p, type->dims[a]);
}

// Extents, steps and paddings become arguments of kernels; slice starts, roll amounts and operands are read on the device.
static void mark_needed(lf_partition *p) {
    lf_graph *g = p->graph;
    for (const lf_op *op = g->last; op; op = op->prev) {
        for (unsigned r = 0; r < op->n_results; r++) need_extents(p, &op->results[r].type);
        for (unsigned k = 0; op->code == LF_OP_CHECK && k < op->n_operands; k++) need(p, op->operands[k]);
        for (unsigned a = 0; a < LF_MAX_RANK; a++) {
            if (lf_op_info_of(op->code)->kind == LF_KIND_VIEW && !op->view.reshape) need(p, op->view.step[a]);
            if (op->code == LF_OP_PAD) need(p, op->extra[a]);
        }
    }
    for (const lf_op *op = g->last; op; op = op->prev) { // and what those are computed from
        if (op->alias || op->n_results != 1 || !is_pending(&op->results[0]) || !node(p, &op->results[0])->needed) continue;
        for (unsigned k = 0; op->code != LF_OP_ITEM && k < op->n_operands; k++) need(p, op->operands[k]);
    }
}

// ---- when --------------------------------------------------------------------------------------------------------------------

static void later(uint32_t *stage, uint32_t than) {
    if (*stage < than) *stage = than;
}

// A pending scalar: on the host when its items have been fetched, on the device with what it is computed from.
static void place_scalar(lf_partition *p, const lf_op *op) {
    lf_node *n = node(p, &op->results[0]);
    n->known = 0;
    if (op->code == LF_OP_ITEM) {
        n->stage = node(p, op->operands[0])->stage;
        n->known = n->needed ? n->stage + 1 : LF_NEVER;
        return;
    }
    for (unsigned k = 0; k < op->n_operands; k++) {
        if (!is_pending(op->operands[k])) continue;
        later(&n->stage, node(p, op->operands[k])->stage);
        later(&n->known, node(p, op->operands[k])->known);
    }
    if (op->code == LF_OP_SATMUL) n->stage = n->known; // products of extents are the host's
}

static void after_extents(lf_partition *p, uint32_t *stage, const lf_type *type) {
    for (unsigned a = 0; a < type->rank; a++)
        if (is_pending(type->dims[a])) later(stage, node(p, type->dims[a])->known);
}

static void place_tensors(lf_partition *p, const lf_op *op) {
    uint32_t stage = 0;
    for (unsigned k = 0; k < op->n_operands; k++) {
        const lf_value *v = op->operands[k];
        if (!v) continue;
        if (v->where != LF_ON_HOST) later(&stage, node(p, v)->stage);
        after_extents(p, &stage, &v->type);
    }
    bool is_view = lf_op_info_of(op->code)->kind == LF_KIND_VIEW && !op->view.reshape;
    for (unsigned a = 0; a < LF_MAX_RANK; a++) {
        if (is_view && is_pending(op->view.start[a])) later(&stage, node(p, op->view.start[a])->stage);
        if (is_view && is_pending(op->view.step[a])) later(&stage, node(p, op->view.step[a])->known);
        if (is_pending(op->extra[a]))
            later(&stage, op->code == LF_OP_PAD ? node(p, op->extra[a])->known : node(p, op->extra[a])->stage);
    }
    for (unsigned r = 0; r < op->n_results; r++) after_extents(p, &stage, &op->results[r].type);
    for (unsigned r = 0; r < op->n_results; r++) node(p, &op->results[r])->stage = stage;
}

void lf_stages_find(lf_partition *p) {
    for (uint32_t i = 0; i < p->n_nodes; i++) p->nodes[i].known = LF_NEVER;
    p->n_stages = 1;
    if (!p->graph->first_sync) return;
    mark_needed(p);
    for (const lf_op *op = p->graph->first; op; op = op->next) {
        if (op->alias || op->n_results == 0) continue;
        const lf_value *v = &op->results[0];
        if (is_pending(v))
            place_scalar(p, op);
        else if (v->where == LF_ON_DEVICE)
            place_tensors(p, op);
        if (is_pending(v) && node(p, v)->needed) later(&p->n_stages, node(p, v)->known + 1);
    }
}

uint32_t lf_known_stage(const lf_partition *p, const lf_value *v) {
    if (v->where != LF_PENDING) return 0;
    return v->id < p->n_nodes ? p->nodes[v->id].known : LF_NEVER;
}

bool lf_known_by(const lf_partition *p, const lf_value *v, uint32_t stage) {
    return v->where == LF_PENDING && lf_known_stage(p, v) <= stage;
}

bool lf_on_host_at_end(const lf_partition *p, const lf_value *v) {
    return v->where == LF_ON_HOST || lf_known_by(p, v, p->n_stages - 1);
}
