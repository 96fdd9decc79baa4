// Ops that own an axis: scans, matrix products, sort, topk, scatter.
#include "schedule/lower.h"

static lf_stmt_id full_operand(lf_lowering *l, lf_value *x, lf_dtype as) {
    lf_space full;
    lf_group_space(l->partition, l->group, LF_CLASS_FULL, &full);
    const lf_space *space = lf_space_intern(l, &full);
    lf_stmt_id s = space ? lf_lower_value(l, x, space, LF_NO_STMT) : LF_NO_STMT;
    return lf_stmt_cast(l, x->type.dtype, as, s);
}

static lf_stmt_id scan_stmt(lf_lowering *l, const lf_op *op, lf_dtype d) {
    for (size_t i = 0; i < l->stmts.count; i++)
        if (l->stmts.data[i].kind == LF_STMT_SCAN && l->stmts.data[i].op == op) return (lf_stmt_id)i;
    lf_stmt_id x = full_operand(l, op->operands[0], d);
    return lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_SCAN,
                                    .dtype = d,
                                    .compute = d,
                                    .code = op->code,
                                    .op = op,
                                    .value = &op->results[0],
                                    .args = {x},
                                    .n_args = 1,
                                    .guard = LF_NO_STMT});
}

// Halves are scanned in f32 and rounded at the end; the extremes are moved as they are.
lf_stmt_id lf_lower_scan(lf_lowering *l, const lf_value *v) {
    const lf_op *op = v->def;
    bool moves = op->code == LF_OP_CUMMAX || op->code == LF_OP_CUMMIN;
    lf_dtype d = op->operands[0]->type.dtype;
    if (!moves) d = lf_dtype_compute(d);
    lf_stmt_id scan = scan_stmt(l, op, d);
    if (v->result == 0) return lf_stmt_cast(l, d, v->type.dtype, scan);
    return lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_SCAN_POSITION,
                                    .dtype = LF_I64,
                                    .compute = LF_I64,
                                    .args = {scan},
                                    .n_args = 1,
                                    .guard = LF_NO_STMT});
}

// Sum over k of a[batch, m, k] * b[batch, k, n], in the canonical order; an or of ands for bool.
lf_stmt_id lf_lower_matmul(lf_lowering *l, const lf_op *op) {
    lf_value *a = op->operands[0], *b = op->operands[1];
    lf_dtype d = lf_dtype_compute(a->type.dtype), result = op->results[0].type.dtype;
    unsigned batch = a->type.rank - 2u, k = batch + 2, n = batch + 1;
    lf_space full;
    lf_group_space(l->partition, l->group, LF_CLASS_FULL, &full);
    lf_space a_space = {.rank = a->type.rank}, b_space = {.rank = b->type.rank};
    for (unsigned i = 0; i < batch; i++) a_space.axis[i] = b_space.axis[i] = full.axis[i];
    a_space.axis[batch] = full.axis[batch];
    a_space.axis[batch + 1] = b_space.axis[batch] = full.axis[k];
    b_space.axis[batch + 1] = full.axis[n];
    const lf_space *at_a = lf_space_intern(l, &a_space), *at_b = lf_space_intern(l, &b_space);
    if (!at_a || !at_b) return LF_NO_STMT;
    lf_stmt_id x = lf_stmt_cast(l, a->type.dtype, d, lf_lower_value(l, a, at_a, LF_NO_STMT));
    lf_stmt_id y = lf_stmt_cast(l, b->type.dtype, d, lf_lower_value(l, b, at_b, LF_NO_STMT));
    lf_stmt_id product = lf_stmt_simple(l, LF_OP_MUL, d, x, y);
    lf_stmt_id sum = lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_REDUCE,
                                              .dtype = d,
                                              .compute = d,
                                              .code = d == LF_BOOL ? LF_OP_ANY : LF_OP_SUM,
                                              .op = op,
                                              .value = &op->results[0],
                                              .args = {product},
                                              .n_args = 1,
                                              .guard = LF_NO_STMT});
    l->loop->keys[LF_PRODUCT_LEFT] = x;
    l->loop->keys[LF_PRODUCT_RIGHT] = y;
    l->loop->keys[LF_PRODUCT_SUM] = sum;
    return lf_stmt_cast(l, d, result, sum);
}

// ---- kernels of their own ----------------------------------------------------------------------------------------------------------

static lf_status store_everywhere(lf_lowering *l, const lf_root *root, lf_stmt_id value, const lf_space *space) {
    if (root->temporary) {
        lf_buffer buffer;
        LF_TRY(lf_planner_temporary(l->planner, root->value, &buffer));
        lf_lower_store(l, value, &buffer, root->value->type.dtype, space);
    }
    for (uint32_t k = 0; k < root->n_outputs; k++) {
        lf_buffer buffer;
        LF_TRY(lf_planner_output(l->planner, root->outputs[k], &buffer));
        lf_lower_store(l, value, &buffer, root->value->type.dtype, space);
    }
    return NULL;
}

static lf_status lower_sort(lf_lowering *l, const lf_op *op) {
    lf_loop *loop = l->loop;
    lf_dtype d = op->operands[0]->type.dtype;
    loop->form = LF_LOOP_SORT;
    loop->schedule = "sort";
    loop->descending = op->flag;
    lf_space full;
    lf_group_space(l->partition, l->group, LF_CLASS_FULL, &full);
    const lf_space *space = lf_space_intern(l, &full);
    if (!space) return NULL;
    loop->keys[LF_SORT_KEY] = full_operand(l, op->operands[0], d);
    loop->keys[LF_SORT_COUNT] = lf_stmt_host(l, op->results[0].type.dims[op->axis]);
    for (uint32_t i = 0; i < l->group->n_roots && !l->status; i++) {
        const lf_root *root = &l->group->roots[i];
        lf_stmt_id sorted = lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_SORTED,
                                                     .dtype = root->value->type.dtype,
                                                     .number = lf_view_base(root->value)->result,
                                                     .guard = LF_NO_STMT,
                                                     .column = true});
        LF_TRY(store_everywhere(l, root, sorted, space));
    }
    return lf_planner_scratch(l->planner, &op->operands[0]->type, &l->scratch);
}

// An element of idx or src may not depend on the column. It is then computed once a row, even where the row has no update, and must
// touch no memory there and report no index.
static bool once_a_row(const lf_op *scatter, const lf_value *v) {
    int64_t extent;
    bool one = lf_const_i64(scatter->operands[0]->type.dims[scatter->axis], &extent) && extent == 1;
    return one || v->def->code != LF_OP_PARAM;
}

static lf_status lower_scatter(lf_lowering *l, const lf_op *op) {
    lf_loop *loop = l->loop;
    lf_value *x = op->operands[0], *idx = op->operands[1], *src = op->operands[2];
    unsigned axis = (unsigned)op->axis;
    loop->form = LF_LOOP_SCATTER;
    loop->schedule = "scatter";
    loop->mode = (lf_scatter_mode)op->mode;
    lf_space full;
    lf_group_space(l->partition, l->group, LF_CLASS_FULL, &full);
    const lf_space *space = lf_space_intern(l, &full);
    if (!space) return NULL;
    loop->keys[LF_SCATTER_OLD] = full_operand(l, x, x->type.dtype);
    // Rows past the end of idx are copied and no more.
    lf_stmt_id row = LF_NO_STMT;
    for (unsigned a = 0; a < x->type.rank; a++) {
        if (a == axis || lf_same_extent(x->type.dims[a], idx->type.dims[a])) continue;
        lf_stmt_id inside =
            lf_stmt_simple(l, LF_OP_LT, LF_I64, lf_stmt_form(l, &full.axis[a]), lf_stmt_host(l, idx->type.dims[a]));
        row = lf_guard_and(l, row, inside);
    }
    loop->keys[LF_SCATTER_ROW] = row;
    loop->keys[LF_SCATTER_COUNT] = lf_stmt_host(l, idx->type.dims[axis]);
    int64_t count = 0;
    lf_stmt_id some = row;
    if ((once_a_row(op, idx) || once_a_row(op, src)) && (!lf_const_i64(idx->type.dims[axis], &count) || count < 1))
        some = lf_guard_and(l, row, lf_stmt_simple(l, LF_OP_LT, LF_I64, lf_stmt_int(l, 0), loop->keys[LF_SCATTER_COUNT]));
    lf_stmt_id inside = once_a_row(op, idx) ? some : LF_NO_STMT;
    loop->keys[LF_SCATTER_INDEX] = lf_lower_checked_index(l, op, idx, space, x->type.dims[axis], &inside);
    loop->keys[LF_SCATTER_INSIDE] = inside;
    for (size_t i = l->stmts.count; i-- > 0;)
        if (l->stmts.data[i].kind == LF_STMT_INDEX_ERROR) loop->keys[LF_SCATTER_ERROR] = (lf_stmt_id)i;
    lf_space nowhere = {0};
    const lf_space *at = src->type.tensor && src->type.rank ? space : lf_space_intern(l, &nowhere);
    if (!at) return NULL;
    lf_stmt_id guard = at == space && once_a_row(op, src) ? some : LF_NO_STMT;
    loop->keys[LF_SCATTER_SOURCE] = lf_stmt_cast(l, src->type.dtype, x->type.dtype, lf_lower_value(l, src, at, guard));
    for (uint32_t i = 0; i < l->group->n_roots && !l->status; i++)
        LF_TRY(store_everywhere(l, &l->group->roots[i], loop->keys[LF_SCATTER_OLD], space));
    return NULL;
}

lf_status lf_lower_whole(lf_lowering *l) {
    const lf_op *op = l->group->nodes[0];
    lf_status s = op->code == LF_OP_SCATTER ? lower_scatter(l, op) : lower_sort(l, op);
    l->loop->indexed = true;
    return s;
}
