// Values and ops as objects: making, linking, sharing of equal ones, resolving, comparing shapes.
// Does not belong here: what an op means (rules_*.c), arithmetic on extents (fold.c).
#include "ir/builder.h"
#include <string.h>

lf_op *lf_op_new(lf_graph *g, lf_opcode code, size_t n_operands, size_t n_results) {
    if (n_operands > UINT16_MAX) return g->arena.failed = true, NULL;
    lf_op *op = LF_ARENA_NEW(&g->arena, lf_op);
    if (!op) return NULL;
    op->code = code;
    op->implicit = true;
    op->place = g->builder->place;
    op->axis = -1;
    op->n_operands = (uint16_t)n_operands;
    op->n_results = (uint16_t)n_results;
    if (n_operands && !(op->operands = LF_ARENA_ARRAY(&g->arena, lf_value *, n_operands))) return NULL;
    if (n_results && !(op->results = LF_ARENA_ARRAY(&g->arena, lf_value, n_results))) return NULL;
    for (size_t i = 0; i < n_results; i++) {
        op->results[i].def = op;
        op->results[i].result = (uint32_t)i;
    }
    return op;
}

// Scalars that come from a pending one are pending; other scalars are on the host (language.md, 4).
static lf_place_class place_of(const lf_op *op, const lf_value *v) {
    if (v->type.tensor) return v->type.host ? LF_ON_HOST : LF_ON_DEVICE;
    if (op->code == LF_OP_ITEM) return op->operands[0]->type.host ? LF_ON_HOST : LF_PENDING;
    for (size_t i = 0; i < op->n_operands; i++)
        if (op->operands[i] && op->operands[i]->where == LF_PENDING) return LF_PENDING;
    return LF_ON_HOST;
}

void lf_op_link(lf_graph *g, lf_op *op) {
    op->graph = g;
    op->prev = g->last;
    op->next = NULL;
    if (g->last)
        g->last->next = op;
    else
        g->first = op;
    g->last = op;
    for (size_t i = 0; i < op->n_results; i++) {
        lf_value *v = &op->results[i];
        v->id = g->n_values++;
        v->where = op->alias ? op->operands[i]->where : place_of(op, v);
    }
}

void lf_graph_cut(lf_graph *g, lf_op *last, uint32_t n_values) {
    // Entries of the map of shared ops stay; they are told by graph == NULL.
    for (lf_op *op = last ? last->next : g->first; op; op = op->next) op->graph = NULL;
    if (last)
        last->next = NULL;
    else
        g->first = NULL;
    g->last = last;
    g->n_values = n_values;
}

lf_type lf_scalar_type(lf_dtype d) { return (lf_type){.dtype = d}; }
lf_type lf_tensor_type(lf_dtype d, unsigned rank) { return (lf_type){.dtype = d, .tensor = true, .rank = (uint8_t)rank}; }

lf_op *lf_single(lf_graph *g, lf_opcode code, const lf_type *type, size_t n, lf_value *const *operands) {
    for (size_t i = 0; i < n; i++)
        if (!operands[i] && code != LF_OP_CLAMP) return NULL;
    lf_op *op = lf_op_new(g, code, n, 1);
    if (!op) return NULL;
    if (n) memcpy(op->operands, operands, n * sizeof *operands);
    op->results[0].type = *type;
    return op;
}

// ---- sharing --------------------------------------------------------------------------------------------------------------

static bool same_op(const void *item, const void *with) {
    const lf_op *op = item;
    const lf_share_key *key = with;
    if (!op->graph || op->code != key->code || op->axis != key->axis || op->slot != key->slot) return false;
    if ((op->n_results ? op->results[0].type.dtype : LF_NO_DTYPE) != key->dtype) return false;
    for (size_t i = 0; i < 3; i++)
        if ((i < op->n_operands ? op->operands[i] : NULL) != key->operands[i] && (op->code != LF_OP_CHECK || i == 0))
            return false;
    return op->constant.word[0] == key->constant.word[0] && op->constant.word[1] == key->constant.word[1];
}

lf_op *lf_share_find(lf_graph *g, const lf_share_key *key, uint64_t *out_hash) {
    uint64_t words[8] = {(uint64_t)key->code << 32 | (uint32_t)key->dtype,
                         (uint64_t)(uint32_t)key->axis << 32 | key->slot,
                         (uintptr_t)key->operands[0],
                         (uintptr_t)key->operands[1],
                         (uintptr_t)key->operands[2],
                         key->constant.word[0],
                         key->constant.word[1]};
    *out_hash = lf_map_hash(words, sizeof words);
    return lf_map_find(&g->builder->shared, *out_hash, same_op, key);
}

bool lf_share_add(lf_graph *g, uint64_t hash, lf_op *op) {
    if (lf_map_add(&g->builder->shared, hash, op)) return true;
    g->arena.failed = true;
    return false;
}

// ---- questions ------------------------------------------------------------------------------------------------------------

lf_value *lf_resolve(lf_value *v) { return v && v->def->alias ? v->def->operands[v->result] : v; }

bool lf_const_i64(const lf_value *v, int64_t *out) {
    if (!v) return false;
    if (v->def->alias) v = v->def->operands[v->result];
    if (!lf_is_const(v) || v->type.dtype != LF_I64) return false;
    *out = v->def->constant.i64;
    return true;
}

bool lf_same_extent(const lf_value *a, const lf_value *b) {
    int64_t m, n;
    return a == b || (lf_const_i64(a, &m) && lf_const_i64(b, &n) && m == n);
}

bool lf_same_shape(const lf_type *a, const lf_type *b) {
    if (a->tensor != b->tensor || a->rank != b->rank) return false;
    for (unsigned i = 0; i < a->rank; i++)
        if (!lf_same_extent(a->dims[i], b->dims[i])) return false;
    return true;
}
