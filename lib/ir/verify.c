// The invariants that ir.h states, checked after the builder and after each pass. A breach is a fault of this library.
#include "ir/ir.h"
#include <stdio.h>
#include <string.h>

typedef struct verifier {
    const lf_graph *g;
    uint32_t next_id;
} verifier;

static lf_status broken(const verifier *v, const lf_op *op, const char *what) {
    const lf_value *r = op->n_results ? op->results : NULL;
    return lf_error_at(v->g->allocator, LF_INTERNAL, op->place, "@%s: %s%s%s (value %u): %s", v->g->name,
                       lf_op_info_of(op->code)->name, r && r->name ? " %" : "", r && r->name ? r->name : "", r ? r->id : 0,
                       what);
}

// Defined before this op, in this graph, and no alias.
static bool usable(const verifier *v, const lf_value *x) {
    return x && x->def && x->def->graph == v->g && !x->def->alias && x->id < v->next_id;
}

static bool is_extent(const verifier *v, const lf_value *x) {
    return usable(v, x) && !x->type.tensor && x->type.dtype == LF_I64 && (x->where == LF_ON_HOST || v->g->allow_sync);
}

static lf_status check_type(const verifier *v, const lf_op *op, const lf_type *t) {
    if (t->dtype <= LF_NO_DTYPE || t->dtype >= LF_DTYPE_COUNT) return broken(v, op, "a result has no dtype");
    if (t->rank > LF_MAX_RANK || (!t->tensor && (t->rank || t->host)) || (t->host && t->rank))
        return broken(v, op, "a type is impossible");
    if (t->named >> t->rank) return broken(v, op, "a named axis lies beyond the rank");
    for (unsigned i = 0; op->code != LF_OP_PARAM && i < t->rank; i++)
        if (!is_extent(v, t->dims[i])) return broken(v, op, "an extent is no resolved i64 host scalar defined before it");
    return NULL;
}

static bool keeps_dtype(lf_opcode code, unsigned operand) {
    // select's condition, counts of shifts, exponents.
    if (code == LF_OP_SELECT) return operand == 0;
    return operand == 1 && (code == LF_OP_SHL || code == LF_OP_SHR || code == LF_OP_LSHR || code == LF_OP_LDEXP);
}

static lf_status check_elem(const verifier *v, const lf_op *op) {
    const lf_type *t = &op->results[0].type;
    if (op->n_results != 1) return broken(v, op, "an elementwise op has one result");
    for (unsigned i = 0; i < op->n_operands; i++) {
        const lf_value *x = op->operands[i];
        if (!x) continue;
        if (x->type.tensor && !t->tensor) return broken(v, op, "a scalar is computed from a tensor");
        if (x->type.tensor && !lf_same_shape(&x->type, t))
            return broken(v, op, "an operand has another shape than the result");
        if (x->type.tensor && x->type.host && !t->host) return broken(v, op, "a device op has a @host tensor as operand");
        if (op->compute != LF_NO_DTYPE && !keeps_dtype(op->code, i) && x->type.dtype != op->compute)
            return broken(v, op, "an operand has another dtype than the op computes in");
        if (t->host && (x->type.tensor ? !x->type.host : x->where != LF_ON_HOST))
            return broken(v, op, "a @host tensor is computed from device values");
    }
    return NULL;
}

static lf_status check_view(const verifier *v, const lf_op *op) {
    const lf_type *t = &op->results[0].type, *x = &op->operands[0]->type;
    uint32_t seen = 0;
    if (op->view.reshape) return NULL;
    for (unsigned i = 0; i < t->rank; i++) {
        int a = op->view.map[i];
        if (a < -1 || a >= x->rank || (a >= 0 && seen >> a & 1))
            return broken(v, op, "a view maps two axes to one, or to none that is");
        if (a >= 0) seen |= 1u << a;
    }
    for (unsigned i = 0; i < x->rank; i++) {
        if (op->view.start[i] && !usable(v, op->view.start[i]))
            return broken(v, op, "a start is not defined before the view");
        if (op->view.step[i] && !is_extent(v, op->view.step[i]))
            return broken(v, op, "a step is not defined before the view");
    }
    return NULL;
}

static lf_status check_kind(const verifier *v, const lf_op *op) {
    switch (lf_op_info_of(op->code)->kind) {
    case LF_KIND_ELEM: return check_elem(v, op);
    case LF_KIND_VIEW: return op->n_operands == 1 ? check_view(v, op) : broken(v, op, "a view has one operand");
    case LF_KIND_REDUCE:
        if (!op->axes || op->axes >> op->operands[0]->type.rank)
            return broken(v, op, "a reduction has no axes, or some beyond the rank");
        if (op->compute != op->operands[0]->type.dtype)
            return broken(v, op, "a reduction's operand has another dtype than it computes in");
        return NULL;
    case LF_KIND_COMPOSITE: return broken(v, op, "a composite is an alias of its formula");
    case LF_KIND_NONE: return broken(v, op, "there is no such op");
    default: break;
    }
    for (unsigned i = 0; i < LF_MAX_RANK; i++)
        if (op->extra[i] && !usable(v, op->extra[i])) return broken(v, op, "an amount is not defined before it");
    if (op->code == LF_OP_CHECK &&
        (op->n_results || !op->n_operands || op->operands[0]->type.dtype != LF_BOOL || !op->message))
        return broken(v, op, "a check needs a bool condition and a message");
    return NULL;
}

static lf_status check_op(verifier *v, const lf_op *op) {
    if (op->graph != v->g) return broken(v, op, "it belongs to another graph");
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (!op->operands[i] && op->code == LF_OP_CLAMP && i) continue;
        if (!usable(v, op->operands[i])) return broken(v, op, "an operand is not resolved, or not defined before it");
        bool may = op->alias || op->code == LF_OP_ITEM || lf_op_info_of(op->code)->kind == LF_KIND_ELEM;
        if (op->operands[i]->type.host && !may) return broken(v, op, "it takes a @host tensor");
    }
    for (unsigned i = 0; i < op->n_results; i++) {
        const lf_value *r = &op->results[i];
        if (r->def != op || r->result != i || r->id != v->next_id + i)
            return broken(v, op, "its results are not numbered in order");
        LF_TRY(check_type(v, op, &r->type));
        lf_place_class where = r->type.tensor ? (r->type.host ? LF_ON_HOST : LF_ON_DEVICE) : r->where;
        if (r->where != where) return broken(v, op, "a tensor lives in the wrong place");
    }
    if (!op->alias)
        LF_TRY(check_kind(v, op));
    else if (op->n_operands != op->n_results)
        return broken(v, op, "an alias has one value for each result");
    v->next_id += op->n_results;
    return NULL;
}

lf_status lf_graph_verify(const lf_graph *g) {
    verifier v = {.g = g};
    const lf_op *previous = NULL;
    for (const lf_op *op = g->first; op; previous = op, op = op->next) {
        if (op->prev != previous) return broken(&v, op, "the list of ops is broken");
        LF_TRY(check_op(&v, op));
    }
    if (previous != g->last) return lf_error(g->allocator, LF_INTERNAL, "@%s: the list of ops ends elsewhere", g->name);
    if (v.next_id != g->n_values) return lf_error(g->allocator, LF_INTERNAL, "@%s: ids are not dense", g->name);
    for (uint32_t i = 0; i < g->n_params; i++) {
        const lf_value *p = g->params[i];
        if (!usable(&v, p) || p->def->code != LF_OP_PARAM)
            return lf_error(g->allocator, LF_INTERNAL, "@%s: parameter %u is none", g->name, i);
        for (unsigned k = 0; k < p->type.rank; k++)
            if (!is_extent(&v, p->type.dims[k])) return broken(&v, p->def, "an extent is no i64 host scalar");
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (!usable(&v, g->outputs[i].value))
            return lf_error(g->allocator, LF_INTERNAL, "@%s: output %u is not resolved", g->name, i);
    return NULL;
}
