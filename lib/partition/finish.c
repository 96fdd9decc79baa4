// Pending scalars that no kernel reads: the host finishes them, from what kernels deliver and from host scalars of the run, when
// somebody asks and all of that has arrived (see partition.h). Decided before ops are grouped, from the graph alone, so that a kernel
// computes what kernels need and nothing else.
#include "partition/finish.h"
#include <lfuser/launch_abi.h>

enum { MOST_OPS = 128 }; // of one scalar: each look at it computes them all

static lf_node *node(lf_partition *p, const lf_value *v) { return &p->nodes[v->id]; }

// Arithmetic on pending scalars that no stage of the run waits for.
static bool is_arithmetic(const lf_partition *p, const lf_value *v) {
    return v->where == LF_PENDING && lf_op_info_of(v->def->code)->kind == LF_KIND_ELEM && lf_known_stage(p, v) == LF_NEVER;
}

static void mark_read(lf_partition *p, const lf_value *v) {
    if (v && v->where == LF_PENDING) node(p, v)->read = true;
}

// What kernels read, from the last op to the first: all that goes into elements, and what that is computed from.
static void find_read(lf_partition *p) {
    for (const lf_op *op = p->graph->last; op; op = op->prev) {
        if (op->alias || op->n_results == 0 || op->results[0].where == LF_ON_HOST) continue;
        const lf_node *n = node(p, &op->results[0]);
        if (is_arithmetic(p, &op->results[0]) && !n->read) continue;
        for (unsigned k = 0; k < op->n_operands; k++) mark_read(p, op->operands[k]);
        bool view = lf_op_info_of(op->code)->kind == LF_KIND_VIEW && !op->view.reshape;
        for (unsigned a = 0; a < LF_MAX_RANK; a++) {
            mark_read(p, op->extra[a]);
            if (view) mark_read(p, op->view.start[a]);
        }
    }
}

// ---- one scalar --------------------------------------------------------------------------------------------------------------

typedef struct cone {
    lf_partition *partition;
    uint32_t *seen; // by value id: number of the last scalar that it was looked at for
    uint32_t number;
    lf_finish *finish;
    uint32_t words, n_ops;
    const lf_op *ops[MOST_OPS];
} cone;

// Into the cone: as an op that the host computes, or as what it begins with. False: it is too large.
static bool add(cone *c, lf_value *v) {
    if (!v || v->def->code == LF_OP_CONST || c->seen[v->id] == c->number) return true;
    c->seen[v->id] = c->number;
    if (is_arithmetic(c->partition, v) && !node(c->partition, v)->read) {
        if (c->n_ops == MOST_OPS) return false;
        c->ops[c->n_ops++] = v->def;
        return true;
    }
    c->words += v->type.dtype == LF_C128 ? 2 : 1;
    if (c->words > LFUSER_ABI_FINISH_WORDS) return false;
    c->finish->from[c->finish->n_from++] = v;
    return true;
}

static bool find_cone(cone *c, lf_value *v, lf_finish *f) {
    c->number++;
    c->words = c->n_ops = 0;
    c->finish = f;
    *f = (lf_finish){.value = v};
    if (!add(c, v)) return false;
    for (uint32_t i = 0; i < c->n_ops; i++)
        for (unsigned k = 0; k < c->ops[i]->n_operands; k++)
            if (!add(c, c->ops[i]->operands[k])) return false;
    for (uint32_t i = 0; i < c->n_ops; i++) node(c->partition, &c->ops[i]->results[0])->finished = true;
    return true;
}

// ---- all of them -------------------------------------------------------------------------------------------------------------

static bool may_finish(const lf_partition *p, const lf_value *v) { return is_arithmetic(p, v) && !p->nodes[v->id].read; }

// Scalars whose cones are too large go to kernels, with all that they are computed from; cones of others then end there. Each round
// leaves fewer to the host. False: another round.
static bool find_cones(lf_partition *p, cone *c) {
    bool all = true;
    p->n_finishes = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) p->nodes[i].finished = false, p->nodes[i].finish = LF_NO_FINISH;
    for (uint32_t i = 0; i < p->graph->n_outputs; i++) {
        lf_value *v = p->graph->outputs[i].value;
        if (!may_finish(p, v) || node(p, v)->finish != LF_NO_FINISH) continue;
        if (find_cone(c, v, &p->finishes[p->n_finishes]))
            node(p, v)->finish = p->n_finishes++;
        else
            all = false, mark_read(p, v);
    }
    return all;
}

// What kernels must deliver for them, where it is no output itself.
static lf_status find_arrivals(lf_partition *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_finishes; i++) n += p->finishes[i].n_from;
    p->arrivals = LF_ARENA_ARRAY(&p->arena, lf_arrival, n);
    if (!p->arrivals) return lf_out_of_memory();
    for (uint32_t i = 0; i < p->n_finishes; i++)
        for (uint32_t k = 0; k < p->finishes[i].n_from; k++) {
            lf_value *v = p->finishes[i].from[k];
            if (lf_on_host_at_end(p, v) || node(p, v)->arrival != LF_NO_ARRIVAL) continue;
            node(p, v)->arrival = p->n_arrivals;
            p->arrivals[p->n_arrivals++] = (lf_arrival){v, LF_NO_OUTPUT};
        }
    for (uint32_t i = 0; i < p->graph->n_outputs; i++) {
        const lf_value *v = p->graph->outputs[i].value;
        if (v->where == LF_PENDING && node(p, v)->arrival != LF_NO_ARRIVAL) p->arrivals[node(p, v)->arrival].output = i;
    }
    return NULL;
}

lf_status lf_finishes_find(lf_partition *p) {
    uint32_t n = 0;
    if (p->debug & LF_DEBUG_NO_FINISH) return NULL;
    for (uint32_t i = 0; i < p->graph->n_outputs; i++) n += is_arithmetic(p, p->graph->outputs[i].value);
    if (!n) return NULL;
    cone c = {.partition = p, .seen = LF_ARENA_ARRAY(&p->arena, uint32_t, p->n_nodes)};
    p->finishes = LF_ARENA_ARRAY(&p->arena, lf_finish, n);
    if (!c.seen || !p->finishes) return lf_out_of_memory();
    do find_read(p);
    while (!find_cones(p, &c));
    return find_arrivals(p);
}
