// The kernels of a pair of groups (lf_mixed in partition.h): one walks the rows, does the work along them and folds what is reduced
// across them into partial results, one a set of rows and column; the other combines these and does what follows. Sets of rows are
// parts of the canonical order (launch_abi.h), and the partial results of a column, in their order, are reduced by that order again,
// so the second is a reduction like any other.
#include "schedule/lower.h"

enum { MOST_REDUCTIONS = 4, MOST_PASSES = 4, MOST_FOLDS = 8 };

// Sizes may be the constant 0, for which lf_host_add and lf_host_mul have no value.
static lf_value *both(lf_graph *g, lf_opcode code, lf_value *a, lf_value *b) {
    return a && b ? lf_scalar_op(g, code, LF_I64, a, b, NULL) : NULL;
}
static lf_value *op2(lf_graph *g, lf_opcode code, lf_value *a, int64_t b) { return both(g, code, a, lf_const_int(g, b)); }

// 1 where a > b, else 0.
static lf_value *above(lf_graph *g, lf_value *a, int64_t b) {
    lf_value *c = a ? lf_scalar_op(g, LF_OP_GT, LF_BOOL, a, lf_const_int(g, b), NULL) : NULL;
    return c ? lf_scalar_op(g, LF_OP_CAST, LF_I64, c, NULL, NULL) : NULL;
}

// first + sum over powers of two p < limit of (a > p * unit) * (scaled ? p : 1)
static lf_value *count_powers(lf_graph *g, lf_value *a, int64_t limit, int64_t unit, bool scaled) {
    lf_value *sum = lf_const_int(g, 1);
    for (int64_t p = 1; p < limit; p *= 2)
        sum = both(g, LF_OP_ADD, sum, op2(g, LF_OP_MUL, above(g, a, p * unit), scaled ? p : 1));
    return sum;
}

// The share that leaves enough sets to fill a device (wide rows fill it with fewer), and at most a thousand. *out_bytes: of all partial
// results, 0 where the kernel cannot be chosen.
static lf_mixed_sizes find_sizes(lf_graph *g, const lf_group *group, unsigned folds, unsigned bytes, lf_value **out_bytes) {
    enum { SETS = 128, WIDEST = LFUSER_ABI_MIXED_COLUMNS };
    lf_value *rows = lf_const_int(g, 1), *columns = lf_const_int(g, 1);
    for (unsigned a = 0; a < group->shape.rank; a++) {
        lf_value **product = group->axes >> a & 1 ? &columns : &rows;
        *product = lf_extent_mul(g, *product, group->shape.dims[a]);
    }
    lf_value *few = op2(g, LF_OP_MIN, rows, LFUSER_ABI_MIXED_ROWS), *narrow = op2(g, LF_OP_MIN, columns, WIDEST);
    lf_value *chunks = op2(g, LF_OP_CEILDIV, few, LFUSER_ABI_CHUNK), *spans = op2(g, LF_OP_MIN, few, LFUSER_ABI_SPAN);
    // How many times as much as fills the device with sets of one row a span; at half a power of two more, the power is taken.
    lf_value *work =
        op2(g, LF_OP_TRUNCDIV, both(g, LF_OP_MUL, both(g, LF_OP_MUL, spans, chunks), narrow), (int64_t)SETS * WIDEST / 2);
    lf_value *wanted = count_powers(g, op2(g, LF_OP_ADD, work, 1), LFUSER_ABI_MIXED_SHARE, 4, true);
    lf_value *needed = count_powers(g, chunks, LFUSER_ABI_SPAN, 1, true);
    lf_mixed_sizes s = {.bytes = bytes, .columns = columns};
    s.share = both(g, LF_OP_MAX, wanted, needed);
    lf_value *rest = op2(g, LF_OP_MIN, op2(g, LF_OP_FMOD, few, LFUSER_ABI_CHUNK), LFUSER_ABI_SPAN);
    lf_value *a_chunk = both(g, LF_OP_TRUNCDIV, lf_const_int(g, LFUSER_ABI_SPAN), s.share);
    s.partials = both(g, LF_OP_ADD, both(g, LF_OP_MUL, op2(g, LF_OP_TRUNCDIV, few, LFUSER_ABI_CHUNK), a_chunk),
                      both(g, LF_OP_CEILDIV, rest, s.share));
    lf_value *fits = both(g, LF_OP_MUL, op2(g, LF_OP_SUB, above(g, columns, WIDEST), 1),
                          op2(g, LF_OP_SUB, above(g, rows, LFUSER_ABI_MIXED_ROWS), 1)); // (0 or -1) squared
    // What waits in memory of a set of at most 8 * share rows, of which two are taken at a time: the levels of a binary counter, in the
    // classes that have none of them in shared memory.
    lf_value *planes = op2(g, LF_OP_ADD, count_powers(g, s.share, LFUSER_ABI_SPAN, 1, false), 2);
    *out_bytes = lf_extent_mul(g, lf_extent_mul(g, lf_extent_mul(g, s.partials, narrow), planes),
                               both(g, LF_OP_MUL, fits, lf_const_int(g, (int64_t)bytes * folds)));
    return s;
}

// ---- the kernel that walks rows ------------------------------------------------------------------------------------------------

static bool is_fold(const lf_op *op) { return lf_op_info_of(op->code)->kind == LF_KIND_REDUCE; }

// The number of a reduction among those of its group.
static unsigned fold_number(const lf_group *columns, const lf_op *op) {
    unsigned n = 0;
    for (uint32_t i = 0; columns->nodes[i] != op; i++) n += is_fold(columns->nodes[i]);
    return n;
}

void lf_lower_folds(lf_lowering *l) {
    const lf_group *columns = l->partition->groups[l->mixed->columns];
    lf_space full;
    lf_group_space(l->partition, l->group, LF_CLASS_FULL, &full);
    const lf_space *space = lf_space_intern(l, &full);
    for (uint32_t i = 0; i < columns->n_nodes && space && !l->status; i++) {
        const lf_op *op = columns->nodes[i];
        if (!is_fold(op)) continue;
        lf_stmt s = {.kind = LF_STMT_FOLD,
                     .dtype = op->results[0].type.dtype,
                     .compute = op->operands[0]->type.dtype,
                     .code = op->code,
                     .op = op,
                     .value = &op->results[0],
                     .number = fold_number(columns, op),
                     .args = {lf_lower_value(l, op->operands[0], space, LF_NO_STMT)},
                     .n_args = 1,
                     .guard = LF_NO_STMT};
        lf_stmt_add(l, s);
    }
}

// ---- the kernel that combines --------------------------------------------------------------------------------------------------

// A partial result: row-major over partial results and columns, one reduction after the other.
lf_stmt_id lf_lower_partial(lf_lowering *l, const lf_op *op) {
    lf_graph *g = l->g;
    const lf_mixed_sizes *m = &l->mixed_sizes;
    lf_dtype d = op->operands[0]->type.dtype;
    lf_value *before = lf_const_int(g, (int64_t)m->bytes * fold_number(l->group, op));
    lf_access access = {.dtype = d, .buffer = op->operands[0], .along = (uint8_t)(l->loop->rows - 1)};
    access.base = lf_host_add(g, l->scratch, lf_host_mul(g, before, lf_host_mul(g, m->partials, m->columns)));
    lf_value *stride = lf_const_int(g, 1);
    for (unsigned a = l->loop->rows; a-- > 0;) {
        access.strides[a] = stride;
        stride = lf_extent_mul(g, stride, l->loop->extents[a]); // never NULL: it varies along the columns, were it by 0
    }
    access.strides[l->loop->rows] = stride;
    if (g->arena.failed || !lf_vec_push(&l->accesses, access)) {
        lf_lowering_fail(l, lf_out_of_memory());
        return LF_NO_STMT;
    }
    return lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_LOAD,
                                    .dtype = d,
                                    .value = op->operands[0],
                                    .number = (uint32_t)l->accesses.count - 1,
                                    .guard = LF_NO_STMT});
}

// ---- both ----------------------------------------------------------------------------------------------------------------------

// A walk that reports errors of indices would do so beside the plain kernels' reports, and one of many passes would not fit a block.
static bool is_worth_it(const lf_loop *walk) {
    return walk->reductions <= MOST_REDUCTIONS && walk->passes <= MOST_PASSES && walk->error_word == LFUSER_ABI_NONE;
}

static unsigned count_folds(const lf_group *columns, unsigned *out_bytes) {
    unsigned folds = 0;
    *out_bytes = 4;
    for (uint32_t i = 0; i < columns->n_nodes; i++) {
        if (!is_fold(columns->nodes[i])) continue;
        folds++;
        unsigned wide = lf_dtype_bytes(columns->nodes[i]->operands[0]->type.dtype);
        if (wide > *out_bytes) *out_bytes = wide;
    }
    return folds;
}

lf_status lf_lower_walk(lf_planner *planner, lf_partition *p, const lf_mixed *m, lf_arena *arena, lf_loop **out_walk,
                        lf_mixed_sizes *out_sizes, lf_value **out_guard) {
    lf_graph *g = p->graph;
    unsigned bytes, folds = count_folds(p->groups[m->columns], &bytes);
    *out_walk = NULL;
    if (folds > MOST_FOLDS) return NULL;
    lf_value *all;
    *out_sizes = find_sizes(g, &m->group, folds, bytes, &all);
    if (g->arena.failed) return lf_out_of_memory();
    lf_group group = m->group; // lives as long as the lowering
    uint32_t first = m->rows == LF_NO_GROUP ? m->columns : m->rows;
    const char *name = lf_arena_printf(arena, "%s.k%u.mixed", g->name, first);
    if (!name) return lf_out_of_memory();
    LF_TRY(lf_planner_bytes(planner, all, &out_sizes->scratch));
    lf_lowering walk = {.planner = planner,
                        .partition = p,
                        .arena = arena,
                        .group = &group,
                        .number = first,
                        .part = LF_PART_WALK,
                        .mixed = m,
                        .mixed_sizes = *out_sizes,
                        .scratch = out_sizes->scratch};
    lf_loop *loop;
    LF_TRY(lf_lower(&walk, name, &loop));
    if (is_worth_it(loop)) *out_walk = loop;
    *out_guard = walk.assumption;
    return NULL;
}

lf_status lf_lower_combine(lf_planner *planner, lf_partition *p, const lf_mixed *m, const lf_mixed_sizes *sizes,
                           lf_arena *arena, lf_loop **out_combine) {
    const char *name = lf_arena_printf(arena, "%s.k%u.combine", p->graph->name, m->columns);
    if (!name) return lf_out_of_memory();
    lf_lowering combine = {.planner = planner,
                           .partition = p,
                           .arena = arena,
                           .group = p->groups[m->columns],
                           .number = m->columns,
                           .part = LF_PART_COMBINE,
                           .mixed = m,
                           .mixed_sizes = *sizes,
                           .scratch = sizes->scratch,
                           .general = true}; // whether the walk was launched is settled by then
    return lf_lower(&combine, name, out_combine);
}
