// Where the values of a program lie (see planner.h): parameters, outputs, constants, and stretches of workspace, which are given again to
// values of the same size once nobody reads them any more; and scratch memory of kernels, whose layout launch_abi.h has.
#include "schedule/planner.h"

enum { ALIGNMENT = 256 };

static lf_status constant_buffer(lf_planner *pl, const lf_value *v, lf_buffer *out) {
    uint32_t slot = LFUSER_ABI_NONE;
    for (size_t i = 0; i < pl->constant_ops.count; i++)
        if (pl->constant_ops.data[i] == v->def) slot = pl->constants.data[i].slot;
    if (slot == LFUSER_ABI_NONE) {
        slot = lf_planner_slots(pl, 1);
        if (!lf_vec_push(&pl->constants, ((lfuser_abi_constant){v->def->data, v->def->data_bytes, slot})) ||
            !lf_vec_push(&pl->constant_ops, v->def))
            return lf_out_of_memory();
    }
    *out = (lf_buffer){.value = v, .address = lf_slot_value(pl->g, slot), .row_major = true};
    lf_row_major(pl->g, &v->type, out->strides);
    return NULL;
}

static lf_status param_buffer(lf_planner *pl, const lf_value *v, lf_buffer *out) {
    uint32_t slot = pl->program->param_slots[lf_param_number(pl->g, v)];
    *out = (lf_buffer){.value = v, .address = lf_slot_value(pl->g, slot)};
    for (unsigned a = 0; a < v->type.rank; a++) out->strides[a] = lf_slot_value(pl->g, slot + 1 + v->type.rank + a);
    return pl->g->arena.failed ? lf_out_of_memory() : NULL;
}

lf_status lf_planner_temporary(lf_planner *pl, const lf_value *v, lf_buffer *out) {
    for (size_t i = 0; i < pl->stretches.count; i++) {
        const stretch *s = &pl->stretches.data[i];
        if (s->value != v) continue;
        *out = (lf_buffer){.value = v, .row_major = true};
        out->address = lf_host_add(pl->g, lf_slot_value(pl->g, pl->stages[s->stage].workspace_slot), s->offset);
        lf_row_major(pl->g, &v->type, out->strides);
        return pl->g->arena.failed ? lf_out_of_memory() : NULL;
    }
    return lf_error_at(pl->g->allocator, LF_INTERNAL, v->def->place, "the value of '%s' is read but stored nowhere",
                       lf_op_info_of(v->def->code)->name);
}

lf_status lf_planner_buffer(lf_planner *pl, const lf_value *v, uint32_t reader, lf_buffer *out) {
    const lf_node *node = lf_node_of(pl->partition, v);
    if (node->stored && node->group < reader) return lf_planner_temporary(pl, v, out); // the parameter may be another by now
    if (v->def->code == LF_OP_TENSOR) return constant_buffer(pl, v, out);
    return v->def->code == LF_OP_PARAM ? param_buffer(pl, v, out) : lf_planner_temporary(pl, v, out);
}

lf_status lf_planner_output(lf_planner *pl, uint32_t output, lf_buffer *out) {
    const lf_value *v = pl->g->outputs[output].written; // the name that the user gave
    uint32_t slot = pl->output_slots[output];
    *out = (lf_buffer){.value = v, .address = lf_slot_value(pl->g, slot)};
    for (unsigned a = 0; a < v->type.rank; a++) out->strides[a] = lf_slot_value(pl->g, slot + 1 + v->type.rank + a);
    return pl->g->arena.failed ? lf_out_of_memory() : NULL;
}

static lf_value *round_up(lf_graph *g, lf_value *bytes) {
    lf_value *capped = lf_scalar_op(g, LF_OP_MIN, LF_I64, bytes, lf_const_int(g, INT64_MAX - ALIGNMENT), NULL);
    lf_value *up = lf_scalar_op(g, LF_OP_ADD, LF_I64, capped, lf_const_int(g, ALIGNMENT - 1), NULL);
    return lf_scalar_op(g, LF_OP_AND, LF_I64, up, lf_const_int(g, -ALIGNMENT), NULL);
}

// Bytes of a value, rounded up; saturating, so that an absurd size is refused by the allocation and never wraps.
static lf_value *rounded_bytes(lf_graph *g, const lf_type *type, unsigned element) {
    return round_up(g, lf_extent_mul(g, lf_numel_of(g, type), lf_const_int(g, element)));
}

// Sizes add up, saturating like the products.
static lf_value *add_bytes(lf_graph *g, lf_value *a, lf_value *b) {
    if (!a) return b;
    lf_value *room = lf_scalar_op(g, LF_OP_SUB, LF_I64, lf_const_int(g, INT64_MAX), b, NULL);
    return lf_scalar_op(g, LF_OP_ADD, LF_I64, lf_scalar_op(g, LF_OP_MIN, LF_I64, a, room, NULL), b, NULL);
}

static lf_status place_temporary(lf_planner *pl, const lf_value *v, uint32_t group) {
    lf_value *bytes = rounded_bytes(pl->g, &v->type, lf_dtype_bytes(v->type.dtype));
    if (!bytes) return lf_out_of_memory();
    uint32_t last = lf_node_of(pl->partition, v)->last_reader;
    for (size_t i = 0; i < pl->stretches.count; i++) { // the place of a value of the same size that nobody reads any more
        stretch *s = &pl->stretches.data[i];
        if (s->stage != pl->stage || s->free_after >= group || !lf_same_extent(s->bytes, bytes)) continue;
        stretch reused = {v, bytes, s->offset, last, pl->stage};
        s->free_after = UINT32_MAX; // given away
        s->value = NULL;
        return lf_vec_push(&pl->stretches, reused) ? NULL : lf_out_of_memory();
    }
    stretch fresh = {v, bytes, pl->workspace, last, pl->stage};
    pl->workspace = add_bytes(pl->g, pl->workspace, bytes);
    return lf_vec_push(&pl->stretches, fresh) ? NULL : lf_out_of_memory();
}

lf_status lf_planner_temporaries(lf_planner *pl, uint32_t number, uint32_t from) {
    const lf_group *group = pl->partition->groups[number];
    for (uint32_t i = 0; i < group->n_roots; i++)
        if (group->roots[i].temporary) LF_TRY(place_temporary(pl, group->roots[i].value, from));
    return NULL;
}

lf_status lf_planner_scratch(lf_planner *pl, const lf_type *type, lf_value **out_address) {
    return lf_planner_bytes(pl, rounded_bytes(pl->g, type, lf_dtype_bytes(type->dtype) > 4 ? 32 : 16), out_address);
}

lf_status lf_planner_bytes(lf_planner *pl, lf_value *bytes, lf_value **out_address) {
    lf_graph *g = pl->g;
    *out_address = lf_host_add(g, lf_slot_value(g, pl->stages[pl->stage].workspace_slot), pl->workspace);
    if (bytes) pl->workspace = add_bytes(g, pl->workspace, round_up(g, bytes));
    return g->arena.failed ? lf_out_of_memory() : NULL;
}

static lf_value *product(lf_graph *g, lf_value *const *extents, unsigned n) {
    lf_value *v = lf_const_int(g, 1);
    for (unsigned i = 0; i < n; i++) v = lf_extent_mul(g, v, extents[i]);
    return v;
}

// Parts of so many columns that a row has.
static lf_value *parts_of_row(lf_graph *g, const lf_loop *loop, int64_t columns) {
    lf_value *all = product(g, loop->extents + loop->rows, loop->cols), *most = lf_const_int(g, INT64_MAX - columns);
    return lf_scalar_op(g, LF_OP_CEILDIV, LF_I64, lf_scalar_op(g, LF_OP_MIN, LF_I64, all, most, NULL),
                        lf_const_int(g, columns), NULL);
}

// Scratch memory for partial results, for the devices and shapes that use it: a two-thousandth of what is reduced.
static lf_value *split_bytes(lf_graph *g, const lf_loop *loop) {
    unsigned reductions = 0;
    for (uint32_t i = 0; i < loop->n_stmts; i++) reductions += loop->stmts[i].kind == LF_STMT_REDUCE;
    lf_value *rows = product(g, loop->extents, loop->rows), *chunks = parts_of_row(g, loop, LFUSER_ABI_CHUNK);
    return lf_extent_mul(g, lf_extent_mul(g, rows, chunks), lf_const_int(g, (int64_t)LFUSER_ABI_PARTIAL_BYTES * reductions));
}

// A scan whose rows blocks share, at the finest cut.
static lf_value *scan_bytes(lf_graph *g, const lf_loop *loop) {
    enum {
        COLUMNS = LFUSER_ABI_SCAN_WARPS * LFUSER_ABI_SCAN_COLUMNS,
        PADDING = 31,
        CELL = 8 + 2 * LFUSER_ABI_PARTIAL_BYTES
    };
    lf_value *rows = product(g, loop->extents, loop->rows), *tiles = parts_of_row(g, loop, COLUMNS);
    lf_value *cells = lf_extent_mul(g, add_bytes(g, rows, lf_const_int(g, PADDING)), tiles);
    return add_bytes(g, lf_extent_mul(g, cells, lf_const_int(g, CELL)), lf_const_int(g, LFUSER_ABI_SCAN_HEAD + ALIGNMENT));
}

// Counters of a sort's runs: of each tile twice 4 bytes, and twice that for the power of two.
static lf_value *sort_bytes(lf_graph *g, const lf_loop *loop) {
    lf_value *rows = product(g, loop->extents, loop->rows), *tiles = parts_of_row(g, loop, LFUSER_ABI_SORT_TILE);
    lf_value *counters = lf_extent_mul(g, lf_extent_mul(g, rows, tiles), lf_const_int(g, 16));
    return add_bytes(g, counters, lf_const_int(g, LFUSER_ABI_SCAN_HEAD));
}

lf_status lf_planner_partials(lf_planner *pl, const lf_loop *loop, lf_value **out_address) {
    lf_value *bytes = loop->form == LF_LOOP_SERIAL ? scan_bytes(pl->g, loop)
                      : loop->form == LF_LOOP_SORT ? sort_bytes(pl->g, loop)
                                                   : split_bytes(pl->g, loop);
    return lf_planner_bytes(pl, bytes, out_address);
}
