// Ops whose elements depend on their index: joins, paddings, gathers, creation. Each turns the index of its result into the
// index of an operand, with a guard where that may lie outside; a guarded load touches no memory and reads 0.
#include "schedule/lower.h"

static lf_form atom_form(lf_lowering *l, lf_stmt_id s) {
    return (lf_form){.n = 1, .terms = {{lf_stmt_atom(s), lf_const_int(l->g, 1)}}};
}

static lf_stmt_id intern_and_lower(lf_lowering *l, lf_value *v, const lf_space *space, lf_stmt_id guard) {
    const lf_space *at = lf_space_intern(l, space);
    return at ? lf_lower_value(l, v, at, guard) : LF_NO_STMT;
}

static lf_stmt_id less(lf_lowering *l, lf_stmt_id a, lf_stmt_id b) { return lf_stmt_simple(l, LF_OP_LT, LF_I64, a, b); }

static lf_stmt_id in_range(lf_lowering *l, lf_stmt_id index, lf_value *extent) {
    return lf_stmt_simple(l, LF_OP_AND, LF_BOOL, lf_stmt_simple(l, LF_OP_GE, LF_I64, index, lf_stmt_int(l, 0)),
                          less(l, index, lf_stmt_host(l, extent)));
}

static lf_stmt_id select(lf_lowering *l, lf_dtype d, lf_stmt_id c, lf_stmt_id a, lf_stmt_id b) {
    return lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_SIMPLE,
                                    .code = LF_OP_SELECT,
                                    .dtype = d,
                                    .compute = d,
                                    .args = {c, a, b},
                                    .n_args = 3,
                                    .guard = LF_NO_STMT});
}

static lf_stmt_id zero(lf_lowering *l, lf_dtype d) {
    return lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_CONST, .dtype = d, .guard = LF_NO_STMT});
}

// A scalar or rank-0 operand.
static lf_stmt_id scalar(lf_lowering *l, lf_value *v) {
    lf_space nowhere = {0};
    return intern_and_lower(l, v, &nowhere, LF_NO_STMT);
}

static lf_stmt_id scalar_as(lf_lowering *l, lf_value *v, lf_dtype d) {
    return lf_stmt_cast(l, v->type.dtype, d, scalar(l, v));
}

// ---- joins and paddings --------------------------------------------------------------------------------------------------------

static lf_stmt_id lower_pad(lf_lowering *l, const lf_op *op, lf_space *space, lf_stmt_id guard) {
    lf_value *x = op->operands[0];
    lf_stmt_id inside = LF_NO_STMT;
    for (unsigned a = 0; a < x->type.rank; a++) {
        lf_value *low = op->extra[a];
        if (low) {
            lf_form shift = {.offset = lf_scalar_op(l->g, LF_OP_NEG, LF_I64, low, NULL, NULL)};
            if (!lf_form_add(l->g, &space->axis[a], &shift, NULL))
                return lf_lowering_fail(l, lf_out_of_memory()), LF_NO_STMT;
        }
        int64_t n;
        bool same = lf_same_extent(x->type.dims[a], op->results[0].type.dims[a]);
        if (same && (!low || (lf_const_i64(low, &n) && n == 0))) continue;
        inside = lf_guard_and(l, inside, in_range(l, lf_stmt_form(l, &space->axis[a]), x->type.dims[a]));
    }
    lf_stmt_id value = intern_and_lower(l, x, space, lf_guard_and(l, guard, inside));
    return inside == LF_NO_STMT ? value
                                : select(l, x->type.dtype, inside, value, scalar_as(l, op->operands[1], x->type.dtype));
}

static lf_stmt_id lower_cat(lf_lowering *l, const lf_op *op, lf_space *space, lf_stmt_id guard) {
    unsigned axis = (unsigned)op->axis;
    lf_dtype d = op->results[0].type.dtype;
    lf_form *form = &space->axis[axis];
    lf_stmt_id index = lf_stmt_form(l, form), result = LF_NO_STMT;
    lf_value *end = NULL, *minus_one = lf_const_int(l->g, -1);
    for (unsigned k = 0; k < op->n_operands && !l->status; k++) {
        lf_value *x = op->operands[k], *start = end;
        end = lf_host_add(l->g, end, x->type.dims[axis]);
        if (!end) continue; // known to be empty
        lf_stmt_id after = start ? lf_stmt_simple(l, LF_OP_GE, LF_I64, index, lf_stmt_host(l, start)) : LF_NO_STMT;
        bool last = k + 1u == op->n_operands; // nothing lies behind its end
        lf_stmt_id mine = last && start ? after : lf_guard_and(l, after, less(l, index, lf_stmt_host(l, end)));
        lf_space moved = *space;
        lf_form shift = {.offset = start ? lf_host_mul(l->g, start, minus_one) : NULL};
        if (!lf_form_add(l->g, &moved.axis[axis], &shift, NULL)) return lf_lowering_fail(l, lf_out_of_memory()), LF_NO_STMT;
        lf_stmt_id value = lf_stmt_cast(l, x->type.dtype, d, intern_and_lower(l, x, &moved, lf_guard_and(l, guard, mine)));
        result = result == LF_NO_STMT ? value : select(l, d, mine, value, result);
    }
    return result == LF_NO_STMT && !l->status ? zero(l, d) : result;
}

static lf_stmt_id lower_stack(lf_lowering *l, const lf_op *op, const lf_space *space, lf_stmt_id guard) {
    unsigned axis = (unsigned)op->axis;
    lf_dtype d = op->results[0].type.dtype;
    lf_stmt_id index = lf_stmt_form(l, &space->axis[axis]), result = LF_NO_STMT;
    lf_space inner = {.rank = (uint8_t)(space->rank - 1)};
    for (unsigned a = 0; a < inner.rank; a++) inner.axis[a] = space->axis[a < axis ? a : a + 1];
    for (unsigned k = 0; k < op->n_operands && !l->status; k++) {
        lf_stmt_id mine = lf_stmt_simple(l, LF_OP_EQ, LF_I64, index, lf_stmt_int(l, k));
        lf_stmt_id value = intern_and_lower(l, op->operands[k], &inner, lf_guard_and(l, guard, mine));
        value = lf_stmt_cast(l, op->operands[k]->type.dtype, d, value);
        result = result == LF_NO_STMT ? value : select(l, d, mine, value, result);
    }
    return result;
}

static lf_stmt_id lower_repeat(lf_lowering *l, const lf_op *op, const lf_space *space, lf_stmt_id guard) {
    const lf_type *from = &op->operands[0]->type;
    unsigned lead = space->rank - from->rank;
    lf_space inner = {.rank = from->rank};
    for (unsigned a = 0; a < from->rank; a++) {
        if (lf_same_extent(from->dims[a], op->results[0].type.dims[lead + a])) {
            inner.axis[a] = space->axis[lead + a];
            continue;
        }
        lf_stmt_id i = lf_stmt_form(l, &space->axis[lead + a]);
        inner.axis[a] = atom_form(l, lf_stmt_simple(l, LF_OP_MOD, LF_I64, i, lf_stmt_host(l, from->dims[a])));
    }
    return intern_and_lower(l, op->operands[0], &inner, guard);
}

static lf_stmt_id lower_roll(lf_lowering *l, const lf_op *op, lf_space *space, lf_stmt_id guard) {
    const lf_type *from = &op->operands[0]->type;
    for (unsigned a = 0; a < from->rank; a++) {
        if (!op->extra[a]) continue;
        lf_stmt_id extent = lf_stmt_host(l, from->dims[a]);
        // The amount first, so that nothing overflows.
        lf_stmt_id amount = lf_stmt_simple(l, LF_OP_MOD, LF_I64, scalar_as(l, op->extra[a], LF_I64), extent);
        lf_stmt_id i = lf_stmt_simple(l, LF_OP_SUB, LF_I64, lf_stmt_form(l, &space->axis[a]), amount);
        space->axis[a] = atom_form(l, lf_stmt_simple(l, LF_OP_MOD, LF_I64, i, extent));
    }
    return intern_and_lower(l, op->operands[0], space, guard);
}

static lf_stmt_id lower_triangle(lf_lowering *l, const lf_op *op, const lf_space *space, lf_stmt_id guard) {
    lf_value *x = op->operands[0];
    lf_stmt_id row = lf_stmt_form(l, &space->axis[space->rank - 2]), column = lf_stmt_form(l, &space->axis[space->rank - 1]);
    lf_stmt_id distance = lf_stmt_simple(l, LF_OP_SUB, LF_I64, column, row),
               diagonal = scalar_as(l, op->operands[1], LF_I64);
    lf_stmt_id keep = lf_stmt_simple(l, op->code == LF_OP_TRIU ? LF_OP_GE : LF_OP_LE, LF_I64, distance, diagonal);
    lf_stmt_id value = intern_and_lower(l, x, space, guard);
    return select(l, x->type.dtype, keep, value, zero(l, x->type.dtype));
}

// ---- indexing ----------------------------------------------------------------------------------------------------------------

// What does not depend on the column is computed once a row, even where a row has no column: elements of an op of the full shape are then
// not there. LF_NO_STMT: they are.
static lf_stmt_id any_column(lf_lowering *l, const lf_op *op) {
    lf_stmt_id any = LF_NO_STMT;
    if (l->group->kind != LF_GROUP_ROWS || lf_node_of(l->partition, &op->results[0])->cls != LF_CLASS_FULL) return any;
    for (unsigned a = l->loop->rows; a < l->loop->rows + l->loop->cols; a++) {
        int64_t n;
        if (lf_const_i64(l->loop->extents[a], &n) && n > 0) continue;
        any = lf_guard_and(l, any, less(l, lf_stmt_int(l, 0), lf_stmt_host(l, l->loop->extents[a])));
    }
    return any;
}

// a, but true where the guard is not.
static lf_stmt_id unless(lf_lowering *l, lf_stmt_id a, lf_stmt_id guard) {
    if (guard == LF_NO_STMT) return a;
    return lf_stmt_simple(l, LF_OP_OR, LF_BOOL, a, lf_stmt_simple(l, LF_OP_NOT, LF_BOOL, guard, LF_NO_STMT));
}

// A given index: negative wraps once; outside is reported, and *io_guard keeps it from memory.
lf_stmt_id lf_lower_checked_index(lf_lowering *l, const lf_op *op, lf_value *idx, const lf_space *space, lf_value *extent,
                                  lf_stmt_id *io_guard) {
    lf_stmt_id i = lf_stmt_cast(l, idx->type.dtype, LF_I64, intern_and_lower(l, idx, space, *io_guard));
    lf_stmt_id n = lf_stmt_host(l, extent);
    i = select(l, LF_I64, less(l, i, lf_stmt_int(l, 0)), lf_stmt_simple(l, LF_OP_ADD, LF_I64, i, n), i);
    lf_stmt_id inside = in_range(l, i, extent), fine = unless(l, inside, *io_guard);
    if (!l->status && !l->stmts.data[fine].column) fine = unless(l, fine, any_column(l, op));
    lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_INDEX_ERROR,
                             .dtype = LF_BOOL,
                             .number = lf_planner_op_number(l->planner, op),
                             .op = op,
                             .args = {fine},
                             .n_args = 1,
                             .guard = LF_NO_STMT});
    *io_guard = lf_guard_and(l, *io_guard, inside);
    return i;
}

static lf_stmt_id lower_take(lf_lowering *l, const lf_op *op, const lf_space *space, lf_stmt_id guard) {
    lf_value *x = op->operands[0], *idx = op->operands[1];
    unsigned axis = (unsigned)op->axis, width = op->code == LF_OP_GATHER ? 1 : idx->type.rank;
    lf_space idx_space = {.rank = idx->type.rank};
    for (unsigned a = 0; a < idx->type.rank; a++) idx_space.axis[a] = space->axis[op->code == LF_OP_GATHER ? a : axis + a];
    lf_stmt_id inside = guard;
    lf_stmt_id i = lf_lower_checked_index(l, op, idx, &idx_space, x->type.dims[axis], &inside);
    if (l->status) return LF_NO_STMT;
    lf_space inner = {.rank = x->type.rank};
    for (unsigned a = 0; a < x->type.rank; a++)
        inner.axis[a] = a == axis ? atom_form(l, i) : space->axis[a < axis ? a : a - 1 + width];
    // Where the operand is computed rather than loaded, the guard cannot make it 0.
    lf_stmt_id value = intern_and_lower(l, x, &inner, inside);
    return select(l, x->type.dtype, inside, value, zero(l, x->type.dtype));
}

static lf_stmt_id lower_onehot(lf_lowering *l, const lf_op *op, const lf_space *space, lf_stmt_id guard) {
    lf_space inner = *space;
    inner.rank--;
    lf_stmt_id inside = guard;
    lf_stmt_id i =
        lf_lower_checked_index(l, op, op->operands[0], &inner, op->results[0].type.dims[space->rank - 1], &inside);
    lf_stmt_id equal = lf_stmt_simple(l, LF_OP_EQ, LF_I64, i, lf_stmt_form(l, &space->axis[space->rank - 1]));
    return lf_stmt_cast(l, LF_BOOL, LF_I64, equal);
}

// ---- creation ----------------------------------------------------------------------------------------------------------------

static lf_stmt_id with_op(lf_lowering *l, lf_stmt_kind kind, const lf_op *op, const lf_stmt_id *args, unsigned n) {
    lf_stmt s = {.kind = kind,
                 .dtype = op->results[0].type.dtype,
                 .compute = op->results[0].type.dtype,
                 .op = op,
                 .code = op->code,
                 .value = &op->results[0],
                 .n_args = (uint8_t)n,
                 .guard = LF_NO_STMT};
    for (unsigned i = 0; i < n; i++) s.args[i] = args[i];
    return lf_stmt_add(l, s);
}

static lf_stmt_id lower_iota(lf_lowering *l, const lf_op *op, const lf_space *space) {
    lf_dtype d = op->results[0].type.dtype;
    lf_stmt_id args[3] = {lf_stmt_form(l, &space->axis[0]), scalar_as(l, op->operands[0], d),
                          scalar_as(l, op->operands[1], d)};
    if (lf_is_float(d)) return with_op(l, LF_STMT_IOTA, op, args, 3);
    lf_stmt_id i = lf_stmt_cast(l, LF_I64, d, args[0]);
    return lf_stmt_simple(l, LF_OP_ADD, d, args[1], lf_stmt_simple(l, LF_OP_MUL, d, i, args[2]));
}

static lf_stmt_id lower_random(lf_lowering *l, const lf_op *op, const lf_space *space) {
    lf_space flat;
    lf_space_result r = lf_space_flatten(l->g, &op->results[0].type, space, &flat);
    lf_stmt_id element = LF_NO_STMT;
    if (r == LF_SPACE_OK) {
        element = lf_stmt_form(l, &flat.axis[0]);
    } else { // too many terms for one form
        lf_value *strides[LF_MAX_RANK];
        lf_row_major(l->g, &op->results[0].type, strides);
        element = lf_stmt_int(l, 0);
        for (unsigned a = 0; a < space->rank; a++)
            element = lf_stmt_simple(
                l, LF_OP_ADD, LF_I64, element,
                lf_stmt_simple(l, LF_OP_MUL, LF_I64, lf_stmt_form(l, &space->axis[a]), lf_stmt_host(l, strides[a])));
    }
    lf_dtype d = op->results[0].type.dtype;
    lf_stmt_id args[5] = {scalar_as(l, op->operands[0], d), scalar_as(l, op->operands[1], d),
                          scalar_as(l, op->operands[2], LF_I64), scalar_as(l, op->operands[3], LF_I64), element};
    return with_op(l, LF_STMT_RANDOM, op, args, 5);
}

lf_stmt_id lf_lower_indexed(lf_lowering *l, const lf_op *op, const lf_space *asked, lf_stmt_id guard) {
    lf_space space = *asked;
    if (op->code != LF_OP_FULL && op->code != LF_OP_UNIFORM && op->code != LF_OP_NORMAL &&
        !lf_space_split(l, &op->results[0].type, &space))
        return LF_NO_STMT;
    lf_dtype d = op->results[0].type.dtype;
    switch (op->code) {
    case LF_OP_PAD: return lower_pad(l, op, &space, guard);
    case LF_OP_CAT: return lower_cat(l, op, &space, guard);
    case LF_OP_STACK: return lower_stack(l, op, &space, guard);
    case LF_OP_REPEAT: return lower_repeat(l, op, &space, guard);
    case LF_OP_ROLL: return lower_roll(l, op, &space, guard);
    case LF_OP_TRIU:
    case LF_OP_TRIL: return lower_triangle(l, op, &space, guard);
    case LF_OP_TAKE:
    case LF_OP_GATHER:
    case LF_OP_INDEX: return lower_take(l, op, &space, guard);
    case LF_OP_ONEHOT: return lower_onehot(l, op, &space, guard);
    case LF_OP_FULL: return scalar_as(l, op->operands[0], d);
    case LF_OP_IOTA: return lower_iota(l, op, &space);
    case LF_OP_EYE:
        return lf_stmt_cast(
            l, LF_BOOL, d,
            lf_stmt_simple(l, LF_OP_EQ, LF_I64, lf_stmt_form(l, &space.axis[0]), lf_stmt_form(l, &space.axis[1])));
    case LF_OP_UNIFORM:
    case LF_OP_NORMAL: return lower_random(l, op, &space);
    default:
        lf_lowering_fail(l, lf_error_at(l->g->allocator, LF_UNSUPPORTED, op->place, "'%s' has no kernel yet",
                                        lf_op_info_of(op->code)->name));
        return LF_NO_STMT;
    }
}
