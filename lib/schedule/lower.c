// The core of the lowering: statements, memory accesses, views, elementwise ops and reductions (see lower.h).
// Does not belong here: ops that look at their index (lower_index.c), where buffers lie (program.c).
#include "schedule/lower.h"
#include <string.h>

void lf_lowering_fail(lf_lowering *l, lf_status s) {
    if (l->status)
        lf_status_destroy(s);
    else
        l->status = s;
}

static lf_stmt_id out_of_memory(lf_lowering *l) {
    lf_lowering_fail(l, lf_out_of_memory());
    return LF_NO_STMT;
}

// ---- statements --------------------------------------------------------------------------------------------------------------

static void scope_of(lf_lowering *l, lf_stmt *s) {
    for (unsigned i = 0; i <= s->n_args; i++) {
        lf_stmt_id id = i < s->n_args ? s->args[i] : s->guard;
        if (id == LF_NO_STMT) continue;
        const lf_stmt *arg = &l->stmts.data[id];
        s->column |= arg->column;
        if (arg->level > s->level) s->level = arg->level;
    }
    if (s->kind == LF_STMT_INDEX) s->column = s->number >= l->loop->rows;
    if (s->kind == LF_STMT_SCAN || s->kind == LF_STMT_FOLD) s->column = true; // of one value many times too
    if (s->kind == LF_STMT_LOAD || s->kind == LF_STMT_STORE) {
        const lf_access *access = &l->accesses.data[s->number];
        for (unsigned a = l->loop->rows; a < l->loop->rows + l->loop->cols; a++) s->column |= access->strides[a] != NULL;
    }
    if (s->kind == LF_STMT_REDUCE) {
        s->column = false;
        s->level++;
    }
}

lf_stmt_id lf_stmt_add(lf_lowering *l, lf_stmt s) {
    if (l->status) return LF_NO_STMT;
    scope_of(l, &s);
    if (!lf_vec_push(&l->stmts, s)) return out_of_memory(l);
    return (lf_stmt_id)(l->stmts.count - 1);
}

static lf_stmt_id remember(lf_lowering *l, const lf_value *v, const lf_space *space, lf_stmt_id guard, lf_stmt_id stmt) {
    if (stmt != LF_NO_STMT && !lf_vec_push(&l->memo, ((lf_memo){v, space, guard, stmt}))) return out_of_memory(l);
    return stmt;
}

static lf_stmt_id recall(lf_lowering *l, const lf_value *v, const lf_space *space, lf_stmt_id guard) {
    for (size_t i = l->memo.count; i-- > 0;) {
        const lf_memo *m = &l->memo.data[i];
        if (m->value == v && m->space == space && m->guard == guard) return m->stmt;
    }
    return LF_NO_STMT;
}

lf_stmt_id lf_stmt_simple(lf_lowering *l, lf_opcode code, lf_dtype d, lf_stmt_id a, lf_stmt_id b) {
    bool compares = code >= LF_OP_EQ && code <= LF_OP_GE;
    lf_stmt s = {.kind = LF_STMT_SIMPLE,
                 .dtype = compares ? LF_BOOL : d,
                 .compute = d,
                 .code = code,
                 .args = {a, b},
                 .n_args = b == LF_NO_STMT ? 1 : 2,
                 .guard = LF_NO_STMT};
    return lf_stmt_add(l, s);
}

lf_stmt_id lf_stmt_cast(lf_lowering *l, lf_dtype from, lf_dtype to, lf_stmt_id a) {
    if (from == to) return a;
    return lf_stmt_add(
        l, (lf_stmt){.kind = LF_STMT_CAST, .dtype = to, .compute = from, .args = {a}, .n_args = 1, .guard = LF_NO_STMT});
}

static lf_stmt_id constant(lf_lowering *l, lf_dtype d, lf_scalar value) {
    for (size_t i = 0; i < l->stmts.count; i++) {
        const lf_stmt *s = &l->stmts.data[i];
        if (s->kind == LF_STMT_CONST && s->dtype == d && !memcmp(&s->constant, &value, sizeof value)) return (lf_stmt_id)i;
    }
    return lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_CONST, .dtype = d, .constant = value, .guard = LF_NO_STMT});
}

lf_stmt_id lf_stmt_int(lf_lowering *l, int64_t value) { return constant(l, LF_I64, (lf_scalar){.i64 = value}); }

lf_stmt_id lf_stmt_host(lf_lowering *l, lf_value *host) {
    if (lf_is_const(host)) return constant(l, host->type.dtype, host->def->constant);
    lf_stmt_id found = recall(l, host, NULL, LF_NO_STMT);
    if (found != LF_NO_STMT) return found;
    if (!lf_vec_push(&l->scalars, host)) return out_of_memory(l);
    lf_stmt s = {.kind = LF_STMT_SCALAR,
                 .dtype = host->type.dtype,
                 .value = host,
                 .number = (uint32_t)l->scalars.count - 1,
                 .guard = LF_NO_STMT};
    return remember(l, host, NULL, LF_NO_STMT, lf_stmt_add(l, s));
}

uint32_t lf_stmt_atom(lf_stmt_id s) { return LF_MAX_AXES + s; }

static lf_stmt_id atom_stmt(lf_lowering *l, uint32_t atom) {
    if (atom >= LF_MAX_AXES) return atom - LF_MAX_AXES;
    l->loop->indexed = true;
    for (size_t i = 0; i < l->stmts.count; i++)
        if (l->stmts.data[i].kind == LF_STMT_INDEX && l->stmts.data[i].number == atom) return (lf_stmt_id)i;
    return lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_INDEX, .dtype = LF_I64, .number = atom, .guard = LF_NO_STMT});
}

lf_stmt_id lf_stmt_form(lf_lowering *l, const lf_form *form) {
    lf_stmt_id sum = form->offset ? lf_stmt_host(l, form->offset) : LF_NO_STMT;
    for (unsigned i = 0; i < form->n && !l->status; i++) {
        lf_stmt_id term = atom_stmt(l, form->terms[i].atom);
        if (!lf_is_one(form->terms[i].scale))
            term = lf_stmt_simple(l, LF_OP_MUL, LF_I64, term, lf_stmt_host(l, form->terms[i].scale));
        sum = sum == LF_NO_STMT ? term : lf_stmt_simple(l, LF_OP_ADD, LF_I64, sum, term);
    }
    return sum == LF_NO_STMT && !l->status ? lf_stmt_int(l, 0) : sum;
}

lf_stmt_id lf_guard_and(lf_lowering *l, lf_stmt_id a, lf_stmt_id b) {
    if (a == LF_NO_STMT) return b;
    if (b == LF_NO_STMT || a == b) return a;
    return lf_stmt_simple(l, LF_OP_AND, LF_BOOL, a, b);
}

// ---- spaces ------------------------------------------------------------------------------------------------------------------

const lf_space *lf_space_intern(lf_lowering *l, const lf_space *space) {
    for (size_t i = 0; i < l->spaces.count; i++)
        if (lf_space_equal(l->spaces.data[i], space)) return l->spaces.data[i];
    lf_space *copy = LF_ARENA_NEW(l->arena, lf_space);
    if (copy) *copy = *space;
    if (!copy || !lf_vec_push(&l->spaces, copy)) return out_of_memory(l), NULL;
    return copy;
}

bool lf_space_split(lf_lowering *l, const lf_type *type, lf_space *space) {
    if (!space->flat) return true;
    lf_space split = {.rank = type->rank};
    lf_stmt_id left = lf_stmt_form(l, &space->axis[0]);
    for (unsigned a = type->rank; a-- > 0;) {
        if (lf_is_one(type->dims[a])) continue;
        bool first = true;
        for (unsigned outer = 0; outer < a; outer++) first &= lf_is_one(type->dims[outer]);
        lf_stmt_id extent = lf_stmt_host(l, type->dims[a]);
        lf_stmt_id index = first ? left : lf_stmt_simple(l, LF_OP_FMOD, LF_I64, left, extent);
        if (!first) left = lf_stmt_simple(l, LF_OP_TRUNCDIV, LF_I64, left, extent);
        if (l->status) return false;
        split.axis[a] = (lf_form){.n = 1, .terms = {{lf_stmt_atom(index), lf_const_int(l->g, 1)}}};
    }
    *space = split;
    return !l->status;
}

// A form of too many terms becomes one statement.
static bool shorten(lf_lowering *l, lf_space *space) {
    for (unsigned a = 0; a < space->rank; a++) {
        if (space->axis[a].n <= 1) continue;
        lf_stmt_id s = lf_stmt_form(l, &space->axis[a]);
        space->axis[a] = (lf_form){.n = 1, .terms = {{lf_stmt_atom(s), lf_const_int(l->g, 1)}}};
    }
    return !l->status;
}

typedef struct pending_context {
    lf_lowering *lowering;
    lf_stmt_id guard;
} pending_context;

static bool pending_atom(void *context, lf_value *index, uint32_t *out_atom) {
    pending_context *c = context;
    static const lf_space nowhere = {0};
    const lf_space *space = lf_space_intern(c->lowering, &nowhere);
    lf_stmt_id s = space ? lf_lower_value(c->lowering, index, space, c->guard) : LF_NO_STMT;
    *out_atom = lf_stmt_atom(s);
    return s != LF_NO_STMT;
}

static bool through_view(lf_lowering *l, const lf_op *op, lf_space *space, lf_stmt_id guard) {
    if (op->code == LF_OP_ITEM) return *space = (lf_space){.rank = op->operands[0]->type.rank}, true;
    if (op->code == LF_OP_SCALAR_TENSOR) return true;
    pending_context context = {l, guard};
    for (int attempt = 0; attempt < 3 && !l->status; attempt++) {
        switch (lf_space_through(l->g, op, space, pending_atom, &context, space)) {
        case LF_SPACE_OK: return true;
        case LF_SPACE_NEEDS_INDICES: lf_space_split(l, &op->results[0].type, space); break;
        case LF_SPACE_TOO_LONG: shorten(l, space); break;
        case LF_SPACE_PENDING: return false;
        case LF_SPACE_NO_MEMORY: out_of_memory(l); return false;
        }
    }
    if (!l->status)
        lf_lowering_fail(l, lf_error_at(l->g->allocator, LF_INTERNAL, op->place,
                                        "the index map of '%s' could not be composed", lf_op_info_of(op->code)->name));
    return false;
}

// ---- memory ------------------------------------------------------------------------------------------------------------------

static bool same_host(const lf_value *a, const lf_value *b) { return a == b || (a && b && lf_same_extent(a, b)); }

static uint32_t find_access(lf_lowering *l, const lf_access *access) {
    for (size_t i = 0; i < l->accesses.count; i++) {
        const lf_access *other = &l->accesses.data[i];
        bool same = other->store == access->store && other->dtype == access->dtype && other->row == access->row &&
                    other->n_terms == access->n_terms && same_host(other->base, access->base);
        for (unsigned a = 0; a < LF_MAX_AXES && same; a++) same = same_host(other->strides[a], access->strides[a]);
        for (unsigned t = 0; t < access->n_terms && same; t++) same = same_host(other->terms[t], access->terms[t]);
        if (same) return (uint32_t)i;
    }
    if (!lf_vec_push(&l->accesses, *access)) out_of_memory(l);
    return (uint32_t)l->accesses.count - 1;
}

static void assume(lf_lowering *l, lf_value *condition) {
    int64_t known;
    if (lf_const_i64(condition, &known) && known) return;
    l->assumption = l->assumption ? lf_scalar_op(l->g, LF_OP_AND, LF_BOOL, l->assumption, condition, NULL) : condition;
}

// Strides are those of a row-major tensor, extents of 1 aside.
static lf_value *is_row_major(lf_lowering *l, const lf_buffer *buffer) {
    lf_value *expected[LF_MAX_RANK], *all = NULL;
    lf_row_major(l->g, &buffer->value->type, expected);
    for (unsigned a = 0; a < buffer->value->type.rank; a++) {
        lf_value *equal = lf_scalar_op(l->g, LF_OP_EQ, LF_BOOL, buffer->strides[a], expected[a], NULL);
        lf_value *single = lf_scalar_op(l->g, LF_OP_LE, LF_BOOL, buffer->value->type.dims[a], lf_const_int(l->g, 1), NULL);
        lf_value *fine = lf_scalar_op(l->g, LF_OP_OR, LF_BOOL, equal, single, NULL);
        all = all ? lf_scalar_op(l->g, LF_OP_AND, LF_BOOL, all, fine, NULL) : fine;
    }
    return all ? all : lf_const(l->g, LF_BOOL, (lf_scalar){.b = true});
}

// The axis that the buffer's last one lies along; its scale may be 0 at run time, when it is broadcast.
static uint8_t last_axis(const lf_space *space) {
    const lf_form *last = space->rank ? &space->axis[space->rank - 1] : NULL;
    return last && last->n == 1 && last->terms[0].atom < LF_MAX_AXES ? (uint8_t)last->terms[0].atom : LFUSER_ABI_NO_AXIS;
}

// Address of the buffer's element at a point, as an access plus explicit index statements.
static bool address(lf_lowering *l, const lf_buffer *buffer, lf_space *space, lf_access *access, lf_stmt *stmt) {
    lf_graph *g = l->g;
    const lf_type *type = &buffer->value->type;
    lf_value *strides[LF_MAX_RANK];
    memcpy(strides, buffer->strides, sizeof strides);
    if (space->flat) {
        if (buffer->row_major || !l->general) {
            if (!buffer->row_major) assume(l, is_row_major(l, buffer));
            strides[0] = lf_const_int(g, 1);
        } else if (!lf_space_split(l, type, space)) {
            return false;
        }
    }
    lf_form sum = {0};
    for (unsigned a = 0; a < space->rank; a++) {
        if (lf_form_add(g, &sum, &space->axis[a], strides[a])) continue;
        if (g->arena.failed) return out_of_memory(l), false;
        if (!shorten(l, space)) return false;
        a = (unsigned)-1; // again, with one term an axis
        sum = (lf_form){0};
    }
    lf_value *bytes = lf_const_int(g, lf_dtype_bytes(type->dtype));
    access->dtype = type->dtype;
    access->buffer = buffer->value;
    access->along = last_axis(space);
    for (uint32_t i = 0; i < g->n_outputs; i++) access->written |= g->outputs[i].into == buffer->value;
    access->base = lf_host_add(g, buffer->address, lf_host_mul(g, sum.offset, bytes));
    access->row = true;
    for (unsigned i = 0; i < sum.n; i++) {
        uint32_t atom = sum.terms[i].atom;
        if (atom < LF_MAX_AXES) {
            access->strides[atom] = sum.terms[i].scale;
            access->row &= atom < l->loop->rows;
        } else {
            stmt->args[access->n_terms] = atom - LF_MAX_AXES;
            access->row &= !l->stmts.data[atom - LF_MAX_AXES].column;
            access->terms[access->n_terms++] = sum.terms[i].scale;
        }
    }
    stmt->n_args = access->n_terms;
    if (g->arena.failed) out_of_memory(l);
    return !l->status;
}

static lf_stmt_id load(lf_lowering *l, const lf_buffer *buffer, const lf_space *space, lf_stmt_id guard) {
    lf_stmt s = {.kind = LF_STMT_LOAD, .dtype = buffer->value->type.dtype, .value = buffer->value, .guard = guard};
    lf_access access = {0};
    lf_space at = *space;
    if (!address(l, buffer, &at, &access, &s)) return LF_NO_STMT;
    s.number = find_access(l, &access);
    return lf_stmt_add(l, s);
}

void lf_lower_store(lf_lowering *l, lf_stmt_id value, const lf_buffer *buffer, lf_dtype dtype, const lf_space *space) {
    lf_stmt s = {.kind = LF_STMT_STORE, .dtype = dtype, .value = buffer->value, .guard = LF_NO_STMT};
    lf_access access = {.store = true};
    lf_space at = *space;
    if (!address(l, buffer, &at, &access, &s)) return;
    access.store = true;
    s.number = find_access(l, &access);
    s.args[0] = value;
    s.n_args = 1;
    lf_stmt_add(l, s);
}

// ---- values ------------------------------------------------------------------------------------------------------------------

static bool is_stored_elsewhere(const lf_lowering *l, const lf_value *v) {
    if (v->def->code == LF_OP_PARAM || v->def->code == LF_OP_TENSOR) return true;
    const lf_node *node = lf_node_of(l->partition, v);
    return node->stored && node->group < l->number; // readers before it (of a view that is copied later) look through it
}

static __attribute__((noinline)) lf_stmt_id lower_reduction(lf_lowering *l, const lf_op *op) {
    lf_space full;
    lf_group_space(l->partition, l->group, LF_CLASS_FULL, &full);
    const lf_space *space = lf_space_intern(l, &full);
    lf_stmt_id x = LF_NO_STMT;
    if (l->part == LF_PART_COMBINE)
        x = lf_lower_partial(l, op);
    else if (space)
        x = lf_lower_value(l, op->operands[0], space, LF_NO_STMT);
    lf_stmt s = {.kind = LF_STMT_REDUCE,
                 .dtype = op->results[0].type.dtype,
                 .compute = op->operands[0]->type.dtype,
                 .code = op->code,
                 .op = op,
                 .value = &op->results[0],
                 .args = {x},
                 .n_args = 1,
                 .guard = LF_NO_STMT};
    return lf_stmt_add(l, s);
}

static lf_stmt_id lower_elem(lf_lowering *l, const lf_op *op, const lf_space *space, lf_stmt_id guard) {
    lf_stmt s = {.kind = LF_STMT_ELEM,
                 .dtype = op->results[0].type.dtype,
                 .compute = op->compute,
                 .code = op->code,
                 .op = op,
                 .value = &op->results[0],
                 .n_args = (uint8_t)op->n_operands,
                 .guard = LF_NO_STMT};
    for (unsigned i = 0; i < op->n_operands && !l->status; i++)
        s.args[i] = op->operands[i] ? lf_lower_value(l, op->operands[i], space, guard) : LF_NO_STMT;
    return lf_stmt_add(l, s);
}

static bool by_value(const lf_lowering *l, const lf_value *v) {
    return v->where == LF_ON_HOST || lf_known_by(l->partition, v, l->group->stage);
}

// From v through views to what computes, holds or knows its elements; *out_place is where they lie in that. NULL with LF_NO_STMT in
// *out_found: it fails; else *out_found is the statement, if there is one already.
static __attribute__((noinline)) lf_value *reach(lf_lowering *l, lf_value *v, const lf_space *space, lf_stmt_id guard,
                                                 const lf_space **out_place, lf_stmt_id *out_found) {
    lf_space at = *space;
    *out_found = LF_NO_STMT;
    while (!by_value(l, v) && !is_stored_elsewhere(l, v) && !lf_is_node(v->def)) {
        if (!through_view(l, v->def, &at, guard)) return NULL;
        v = v->def->operands[0];
    }
    if (by_value(l, v)) return *out_found = lf_stmt_host(l, v), NULL;
    if (!v->type.tensor && v->where == LF_PENDING) at = (lf_space){0};
    if (!(*out_place = lf_space_intern(l, &at))) return NULL;
    *out_found = recall(l, v, *out_place, guard);
    return *out_found == LF_NO_STMT ? v : NULL;
}

static __attribute__((noinline)) lf_stmt_id load_stored(lf_lowering *l, lf_value *v, const lf_space *place,
                                                        lf_stmt_id guard) {
    lf_buffer buffer;
    lf_status failed = lf_planner_buffer(l->planner, v, l->number, &buffer);
    if (failed) return lf_lowering_fail(l, failed), LF_NO_STMT;
    return load(l, &buffer, place, guard);
}

// Recursion goes from op to op within a group (at most a few hundred, see group.c), never along the whole graph; what is large lies in
// functions that return before it goes on, since a thread's stack may be small.
lf_stmt_id lf_lower_value(lf_lowering *l, lf_value *asked, const lf_space *space, lf_stmt_id guard) {
    lf_stmt_id s = recall(l, asked, space, guard);
    if (s != LF_NO_STMT || l->status) return s;
    const lf_space *place;
    lf_value *v = reach(l, asked, space, guard, &place, &s);
    if (!v) return s;
    lf_op_kind kind = lf_op_info_of(v->def->code)->kind;
    if (v->def->code == LF_OP_TENSOR || is_stored_elsewhere(l, v)) {
        s = load_stored(l, v, place, guard);
        if (l->status) return LF_NO_STMT;
    } else if (kind == LF_KIND_REDUCE || kind == LF_KIND_WHOLE) {
        s = recall(l, v, NULL, LF_NO_STMT); // read at the group's own point only
        if (s != LF_NO_STMT) return s;
        s = kind == LF_KIND_REDUCE         ? lower_reduction(l, v->def)
            : v->def->code == LF_OP_MATMUL ? lf_lower_matmul(l, v->def)
                                           : lf_lower_scan(l, v);
        return remember(l, v, NULL, LF_NO_STMT, s);
    } else if (kind == LF_KIND_ELEM) {
        s = lower_elem(l, v->def, place, guard);
    } else {
        s = lf_lower_indexed(l, v->def, place, guard);
    }
    if (asked != v) remember(l, asked, space, guard, s);
    return remember(l, v, place, guard, s);
}

static void deliver(lf_lowering *l, const lf_value *v, lf_stmt_id value, lf_value *address) {
    lf_stmt_id mailbox = lf_stmt_host(l, address);
    lf_stmt_add(l, (lf_stmt){.kind = LF_STMT_DELIVER,
                             .dtype = v->type.dtype,
                             .args = {value, mailbox},
                             .n_args = 2,
                             .value = v,
                             .guard = LF_NO_STMT});
}

static lf_status store_root(lf_lowering *l, const lf_root *root) {
    lf_space space;
    lf_group_space(l->partition, l->group, root->cls, &space);
    if (!root->value->type.tensor || root->value->type.rank != space.rank)
        space = (lf_space){.rank = root->value->type.rank};
    const lf_space *at = lf_space_intern(l, &space);
    lf_stmt_id value = at ? lf_lower_value(l, root->value, at, LF_NO_STMT) : LF_NO_STMT;
    if (l->status) return NULL;
    if (root->temporary) {
        lf_buffer buffer;
        LF_TRY(lf_planner_temporary(l->planner, root->value, &buffer));
        lf_lower_store(l, value, &buffer, root->value->type.dtype, at);
    }
    for (uint32_t k = 0; k < root->n_outputs; k++) {
        lf_buffer buffer;
        LF_TRY(lf_planner_output(l->planner, root->outputs[k], &buffer));
        if (root->value->where == LF_PENDING)
            deliver(l, root->value, value, buffer.address);
        else
            lf_lower_store(l, value, &buffer, root->value->type.dtype, at);
    }
    if (root->fetched) {
        lf_value *address;
        LF_TRY(lf_planner_fetch(l->planner, root->value, &address));
        deliver(l, root->value, value, address);
    }
    if (root->arrival != LF_NO_ARRIVAL) {
        lf_value *address = lf_planner_arrival(l->planner, root->arrival);
        if (!address) return lf_out_of_memory();
        deliver(l, root->value, value, address);
    }
    return NULL;
}

// ---- the whole kernel --------------------------------------------------------------------------------------------------------

static lf_status finish(lf_lowering *l) {
    lf_loop *loop = l->loop;
    loop->n_stmts = (uint32_t)l->stmts.count;
    loop->n_accesses = (uint32_t)l->accesses.count;
    loop->n_scalars = (uint32_t)l->scalars.count;
    loop->stmts = LF_ARENA_ARRAY(l->arena, lf_stmt, loop->n_stmts);
    loop->accesses = LF_ARENA_ARRAY(l->arena, lf_access, loop->n_accesses);
    loop->scalars = LF_ARENA_ARRAY(l->arena, lf_value *, loop->n_scalars);
    loop->scalar_words = LF_ARENA_ARRAY(l->arena, uint32_t, loop->n_scalars);
    if (l->arena->failed) return lf_out_of_memory();
    if (loop->n_stmts) memcpy(loop->stmts, l->stmts.data, loop->n_stmts * sizeof *loop->stmts);
    if (loop->n_accesses) memcpy(loop->accesses, l->accesses.data, loop->n_accesses * sizeof *loop->accesses);
    if (loop->n_scalars) memcpy(loop->scalars, l->scalars.data, loop->n_scalars * sizeof *loop->scalars);
    uint32_t word = 0, axes = loop->rows + loop->cols;
    for (uint32_t i = 0; i < loop->n_accesses; i++) {
        loop->accesses[i].word = word;
        word += 1 + axes + loop->accesses[i].n_terms;
    }
    loop->extents_word = word;
    word += axes;
    for (uint32_t i = 0; i < loop->n_scalars; i++) {
        loop->scalar_words[i] = word;
        word += loop->scalars[i]->type.dtype == LF_C128 ? 2 : 1;
    }
    loop->error_word = LFUSER_ABI_NONE;
    loop->workspace_word = LFUSER_ABI_NONE;
    if (l->scratch) loop->workspace_word = word++;
    for (uint32_t i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        if (s->kind == LF_STMT_INDEX_ERROR && loop->error_word == LFUSER_ABI_NONE) loop->error_word = word++;
        loop->folds += s->kind == LF_STMT_FOLD;
        bool in_pass = s->kind == LF_STMT_REDUCE || s->kind == LF_STMT_SCAN || s->kind == LF_STMT_FOLD
                           ? true
                           : (s->kind == LF_STMT_STORE || s->kind == LF_STMT_INDEX_ERROR) && s->column;
        uint16_t passes = (uint16_t)(s->kind == LF_STMT_REDUCE ? s->level : s->level + 1);
        if (in_pass && loop->cols && passes > loop->passes) loop->passes = passes;
    }
    if (l->group->kind != LF_GROUP_POINTWISE && loop->passes == 0) loop->passes = 1;
    loop->share_word = loop->folds ? word++ : LFUSER_ABI_NONE;
    loop->reduces = loop->form == LF_LOOP_PLAIN && loop->passes == 1 && loop->cols;
    unsigned reductions = 0;
    for (uint32_t i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        reductions += s->kind == LF_STMT_REDUCE;
        if (s->column && (s->kind == LF_STMT_STORE || s->kind == LF_STMT_INDEX_ERROR || s->kind == LF_STMT_FOLD))
            loop->reduces = false;
    }
    loop->reduces &= reductions > 0 && reductions <= LF_MAX_SPLIT;
    if (loop->form == LF_LOOP_PLAIN && (!loop->reduces || reductions > 1)) loop->keys[LF_PRODUCT_SUM] = LF_NO_STMT;
    loop->scratch_word =
        loop->reduces || loop->form == LF_LOOP_SERIAL || loop->form == LF_LOOP_SORT ? word++ : LFUSER_ABI_NONE;
    loop->n_words = word;
    return lf_loop_measure(l->g->allocator, loop);
}

// Which of a group's roots a kernel writes: all, or, where the work is shared (lower_mixed.c), its part of them.
static bool is_ours(const lf_lowering *l, const lf_group *group, const lf_root *root) {
    if (l->part == LF_PART_ALL) return true;
    bool across = group == l->partition->groups[l->mixed->columns];
    // The plain kernel across reads it, and nobody else: this one has it at hand.
    bool only = root->temporary && !root->n_outputs && !root->fetched &&
                lf_node_of(l->partition, root->value)->last_reader == l->mixed->columns;
    for (uint32_t i = l->mixed->rows + 1; !across && only && i < l->mixed->columns; i++)
        only = l->partition->groups[i]->dead;
    if (!across && only) return false;
    return (root->cls == LF_CLASS_FULL || !across) == (l->part == LF_PART_WALK);
}

static lf_status store_roots(lf_lowering *l, const lf_group *group) {
    for (uint32_t i = 0; i < group->n_roots && !l->status; i++)
        if (is_ours(l, group, &group->roots[i])) LF_TRY(store_root(l, &group->roots[i]));
    return NULL;
}

static lf_status lower_all(lf_lowering *l) {
    const lf_partition *p = l->partition;
    if (l->group->kind == LF_GROUP_WHOLE) return lf_lower_whole(l);
    if (l->part == LF_PART_ALL) return store_roots(l, l->group);
    if (l->part == LF_PART_WALK && l->mixed->rows != LF_NO_GROUP) LF_TRY(store_roots(l, p->groups[l->mixed->rows]));
    LF_TRY(store_roots(l, p->groups[l->mixed->columns]));
    if (l->part == LF_PART_WALK && !l->status) lf_lower_folds(l);
    return NULL;
}

lf_status lf_lower(lf_lowering *l, const char *name, lf_loop **out_loop) {
    lf_group *group = l->group;
    *out_loop = NULL;
    lf_loop *loop = LF_ARENA_NEW(l->arena, lf_loop);
    if (!loop) return lf_out_of_memory();
    const lf_allocator *a = l->partition->graph->allocator;
    l->g = l->partition->graph;
    l->loop = loop;
    lf_vec_init(&l->stmts, a);
    lf_vec_init(&l->accesses, a);
    lf_vec_init(&l->scalars, a);
    lf_vec_init(&l->spaces, a);
    lf_vec_init(&l->memo, a);
    loop->name = name;
    loop->schedule = l->part == LF_PART_WALK        ? "rows and columns"
                     : group->serial                ? "serial rows"
                     : group->kind == LF_GROUP_ROWS ? "rows"
                                                    : "pointwise";
    loop->rows = (uint8_t)lf_group_rows(group);
    loop->cols = (uint8_t)(group->shape.rank - loop->rows);
    for (unsigned axis = 0; axis < group->shape.rank; axis++)
        loop->extents[lf_group_axis(group, axis)] = group->shape.dims[axis];
    if (l->part == LF_PART_COMBINE) {
        loop->cols = 1;
        loop->extents[loop->rows] = l->mixed_sizes.partials;
    }
    if (l->part == LF_PART_WALK) loop->share = l->mixed_sizes.share;
    if (group->serial) loop->form = LF_LOOP_SERIAL;
    for (unsigned i = 0; i < LF_MAX_KEYS; i++) loop->keys[i] = LF_NO_STMT;
    lf_status s = lower_all(l);
    if (!s && l->status)
        s = l->status;
    else if (s && l->status)
        lf_status_destroy(l->status);
    if (!s) s = finish(l);
    lf_vec_finish(&l->stmts);
    lf_vec_finish(&l->accesses);
    lf_vec_finish(&l->scalars);
    lf_vec_finish(&l->spaces);
    lf_vec_finish(&l->memo);
    if (!s) *out_loop = loop;
    return s;
}

lf_status lf_lower_group(lf_planner *planner, lf_partition *p, uint32_t number, bool general, lf_arena *arena,
                         const char *name, lf_loop **out_loop, lf_value **out_assumption, lf_value **out_scratch) {
    lf_lowering l = {.planner = planner,
                     .partition = p,
                     .arena = arena,
                     .group = p->groups[number],
                     .number = number,
                     .general = general};
    *out_scratch = NULL;
    *out_assumption = NULL;
    LF_TRY(lf_lower(&l, name, out_loop));
    *out_assumption = l.assumption;
    *out_scratch = l.scratch;
    return NULL;
}
