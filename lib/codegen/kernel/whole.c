// Kernels of ops that own an axis: scans (a thread a row, columns in order), sort (bottom-up merges by rank), scatter (a thread a
// row, updates in order). `begin_team` and friends tell how many threads share a row; on a CPU it is one.
#include "codegen/kernel/kernel.h"

static LLVMValueRef compare(lf_kernel *k, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildICmp(k->e->builder, p, a, b, "");
}

static LLVMValueRef least(lf_kernel *k, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(k->e->builder, compare(k, LLVMIntSLT, a, b), a, b, "");
}

static void set_register(lf_kernel *k, lf_stmt_id id, lf_register r) {
    for (unsigned lane = 0; lane < LF_MAX_LANES; lane++) k->at->registers[(size_t)id * LF_MAX_LANES + lane] = r;
    k->at->ready[id] = true;
}

// ---- scans -------------------------------------------------------------------------------------------------------------------------

// Carries of a scan in memory: value, and position (cummax, cummin) or the sum of exponentials (logcumsumexp).
typedef struct carry {
    LLVMValueRef v_value, v_extra;
} carry;

static LLVMTypeRef extra_type(lf_kernel *k, const lf_stmt *s) {
    return s->code == LF_OP_LOGCUMSUMEXP ? lf_register_type(k->e, s->dtype) : k->l_i64;
}

static lf_register one(lf_kernel *k, lf_opcode code, lf_dtype d, lf_register a, lf_register b) {
    return lf_emit_simple(k->e, code, d, a, b);
}

// m = max(m, x); s = (m unchanged ? s : s * exp(before - m)) + exp(x - m); result m + log(s); an infinite or NaN m is the result.
static lf_register log_sum(lf_kernel *k, const lf_stmt *s, const carry *c, lf_register x) {
    LLVMBuilderRef b = k->e->builder;
    lf_dtype d = s->dtype;
    lf_register none = {NULL, NULL}, before = lf_emit_load(k->e, d, c->v_value);
    lf_register sum = {LLVMBuildLoad2(b, extra_type(k, s), c->v_extra, "sum"), NULL};
    lf_register m = one(k, LF_OP_MAX, d, before, x);
    lf_register finite = one(k, LF_OP_ISFINITE, d, m, none);
    lf_register scaled = one(k, LF_OP_MUL, d, sum, one(k, LF_OP_EXP, d, one(k, LF_OP_SUB, d, before, m), none));
    scaled = lf_emit_select(k->e, one(k, LF_OP_EQ, d, before, m).re, sum, scaled);
    lf_register next = one(k, LF_OP_ADD, d, scaled, one(k, LF_OP_EXP, d, one(k, LF_OP_SUB, d, x, m), none));
    next = lf_emit_select(k->e, finite.re, next, sum);
    lf_emit_store(k->e, d, m, c->v_value);
    LLVMBuildStore(b, next.re, c->v_extra);
    return lf_emit_select(k->e, finite.re, one(k, LF_OP_ADD, d, m, one(k, LF_OP_LOG, d, next, none)), m);
}

// The last of equal elements counts; a NaN stays the extreme, and the last NaN counts.
static lf_register extreme(lf_kernel *k, const lf_stmt *s, const carry *c, lf_register x, LLVMValueRef v_column,
                           LLVMValueRef v_first) {
    LLVMBuilderRef b = k->e->builder;
    lf_dtype d = s->dtype;
    lf_register none = {NULL, NULL}, old = lf_emit_load(k->e, d, c->v_value);
    LLVMValueRef v_take = one(k, s->code == LF_OP_CUMMAX ? LF_OP_GE : LF_OP_LE, d, x, old).re;
    if (lf_is_float(d)) {
        LLVMValueRef v_nan = one(k, LF_OP_ISNAN, d, x, none).re, v_old_nan = one(k, LF_OP_ISNAN, d, old, none).re;
        v_take = LLVMBuildOr(b, v_nan, LLVMBuildAnd(b, v_take, LLVMBuildNot(b, v_old_nan, ""), ""), "");
    }
    v_take = LLVMBuildOr(b, v_take, v_first, "take");
    lf_register best = lf_emit_select(k->e, v_take, x, old);
    LLVMValueRef v_position = LLVMBuildSelect(b, v_take, v_column, LLVMBuildLoad2(b, k->l_i64, c->v_extra, ""), "position");
    lf_emit_store(k->e, d, best, c->v_value);
    LLVMBuildStore(b, v_position, c->v_extra);
    return best;
}

static void emit_scan(lf_kernel *k, lf_stmt_id id, const carry *c, LLVMValueRef v_column) {
    const lf_stmt *s = &k->loop->stmts[id];
    lf_emit_statement(k, s->args[0]);
    lf_register x = lf_reg(k, s->args[0], 0), result;
    LLVMValueRef v_first = compare(k, LLVMIntEQ, v_column, lf_i64_const(k, 0));
    if (s->code == LF_OP_LOGCUMSUMEXP) {
        result = log_sum(k, s, c, x);
    } else if (s->code == LF_OP_CUMMAX || s->code == LF_OP_CUMMIN) {
        result = extreme(k, s, c, x, v_column, v_first);
    } else {
        lf_opcode code = s->code == LF_OP_CUMSUM ? LF_OP_ADD : LF_OP_MUL;
        result = lf_emit_select(k->e, v_first, x, one(k, code, s->dtype, lf_emit_load(k->e, s->dtype, c->v_value), x));
        lf_emit_store(k->e, s->dtype, result, c->v_value);
    }
    set_register(k, id, result);
    for (lf_stmt_id p = id + 1; p < k->loop->n_stmts; p++)
        if (k->loop->stmts[p].kind == LF_STMT_SCAN_POSITION && k->loop->stmts[p].args[0] == id)
            set_register(k, p, (lf_register){LLVMBuildLoad2(k->e->builder, k->l_i64, c->v_extra, ""), NULL});
}

enum { MAX_SCANS = 64 };

lf_status lf_emit_serial_pass(lf_kernel *k, unsigned pass) {
    LLVMBuilderRef b = k->e->builder;
    carry carries[MAX_SCANS];
    lf_stmt_id ids[MAX_SCANS];
    unsigned n = 0;
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (s->kind != LF_STMT_SCAN || s->level != pass || n == MAX_SCANS) continue;
        carries[n] = (carry){lf_alloca(k, lf_memory_type(k->e, s->dtype), "carry"), lf_alloca(k, extra_type(k, s), "extra")};
        lf_scalar start = {0};
        if (s->code == LF_OP_LOGCUMSUMEXP && s->dtype == LF_F32) start.f32 = -__builtin_inff();
        if (s->code == LF_OP_LOGCUMSUMEXP && s->dtype == LF_F64) start.f64 = -__builtin_inf();
        lf_emit_store(k->e, s->dtype, lf_emit_constant(k->e, s->dtype, &start), carries[n].v_value);
        LLVMBuildStore(b, LLVMConstNull(extra_type(k, s)), carries[n].v_extra);
        ids[n++] = i;
    }
    lf_loop_blocks columns;
    LLVMValueRef v = lf_for_begin(k, &columns, lf_i64_const(k, 0), lf_columns(k), lf_i64_const(k, 1), "column");
    lf_kernel_at_column(k, v);
    for (unsigned i = 0; i < n; i++) emit_scan(k, ids[i], &carries[i], v);
    lf_emit_column_effects(k, pass);
    lf_for_end(k, &columns, LF_HINT_NONE);
    return NULL;
}

// ---- sort --------------------------------------------------------------------------------------------------------------------------

static lf_register key_at(lf_kernel *k, LLVMValueRef v_column) {
    lf_kernel_at_column(k, v_column);
    lf_emit_statement(k, k->loop->keys[LF_SORT_KEY]);
    return lf_reg(k, k->loop->keys[LF_SORT_KEY], 0);
}

// a stands strictly before b: by value, NaN greatest and all NaN equal, -0 = +0.
static LLVMValueRef precedes(lf_kernel *k, lf_register a, lf_register b) {
    LLVMBuilderRef builder = k->e->builder;
    lf_dtype d = k->loop->stmts[k->loop->keys[LF_SORT_KEY]].dtype;
    lf_register none = {NULL, NULL}, low = k->loop->descending ? b : a, high = k->loop->descending ? a : b;
    LLVMValueRef v = lf_emit_simple(k->e, LF_OP_LT, d, low, high).re;
    if (!lf_is_float(d)) return v;
    LLVMValueRef v_low = lf_emit_simple(k->e, LF_OP_ISNAN, d, low, none).re,
                 v_high = lf_emit_simple(k->e, LF_OP_ISNAN, d, high, none).re;
    return LLVMBuildOr(builder, v, LLVMBuildAnd(builder, v_high, LLVMBuildNot(builder, v_low, ""), ""), "");
}

static LLVMValueRef element(lf_kernel *k, LLVMValueRef v_array, LLVMValueRef v_index) {
    return LLVMBuildInBoundsGEP2(k->e->builder, k->l_i64, v_array, &v_index, 1, "");
}

static LLVMValueRef position_at(lf_kernel *k, LLVMValueRef v_array, LLVMValueRef v_index) {
    return LLVMBuildLoad2(k->e->builder, k->l_i64, element(k, v_array, v_index), "position");
}

// Where an element of one run belongs in the other: behind those that stand before it, strictly (a left run's view of the right one),
// or not after it (the right run's view of the left one), so that equal elements keep their order.
typedef struct newcomer {
    lf_kernel *k;
    LLVMValueRef v_array; // positions, of which a run is searched
    lf_register key;
    LLVMValueRef v_strictly;
} newcomer;

static LLVMValueRef stands_behind(void *context, LLVMValueRef v_i) {
    const newcomer *n = context;
    LLVMBuilderRef b = n->k->e->builder;
    lf_register probe = key_at(n->k, position_at(n->k, n->v_array, v_i));
    LLVMValueRef v_before = precedes(n->k, probe, n->key), v_after = precedes(n->k, n->key, probe);
    return LLVMBuildSelect(b, n->v_strictly, LLVMBuildNot(b, v_before, ""), v_after, "behind");
}

// Element i of runs of length w goes to its place in the merged run of length 2w.
static void merge_one(lf_kernel *k, LLVMValueRef v_from, LLVMValueRef v_to, LLVMValueRef v_i, LLVMValueRef v_width,
                      LLVMValueRef v_n) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_double = LLVMBuildShl(b, v_width, lf_i64_const(k, 1), "");
    LLVMValueRef v_base = LLVMBuildAnd(b, v_i, LLVMBuildNeg(b, v_double, ""), "base"); // widths are powers of two
    LLVMValueRef v_middle = least(k, LLVMBuildAdd(b, v_base, v_width, ""), v_n),
                 v_end = least(k, LLVMBuildAdd(b, v_base, v_double, ""), v_n);
    LLVMValueRef v_is_left = compare(k, LLVMIntSLT, v_i, v_middle);
    LLVMValueRef v_low = LLVMBuildSelect(b, v_is_left, v_middle, v_base, ""),
                 v_high = LLVMBuildSelect(b, v_is_left, v_end, v_middle, "");
    LLVMValueRef v_position = position_at(k, v_from, v_i);
    newcomer n = {k, v_from, key_at(k, v_position), v_is_left};
    LLVMValueRef v_before = LLVMBuildSub(b, lf_search(k, v_low, v_high, stands_behind, &n), v_low, "before");
    LLVMValueRef v_own = LLVMBuildSub(b, v_i, LLVMBuildSelect(b, v_is_left, v_base, v_middle, ""), "");
    LLVMValueRef v_place = LLVMBuildAdd(b, v_base, LLVMBuildAdd(b, v_own, v_before, ""), "place");
    LLVMBuildStore(b, v_position, element(k, v_to, v_place));
}

void lf_emit_sorted(lf_kernel *k, LLVMValueRef v_position, LLVMValueRef v_rank) {
    lf_register key = key_at(k, v_position);
    lf_kernel_at_column(k, v_rank);
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        if (k->loop->stmts[i].kind == LF_STMT_SORTED)
            set_register(k, i, k->loop->stmts[i].number ? (lf_register){v_position, NULL} : key);
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++)
        if (k->loop->stmts[i].kind == LF_STMT_STORE) lf_emit_statement(k, i);
}

static void team_barrier(lf_kernel *k, const lf_team *team) {
    if (team->barrier) team->barrier(k);
}

void lf_emit_sort_row(lf_kernel *k, const lf_team *team, LLVMValueRef v_row) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_n = lf_columns(k), v_one = lf_i64_const(k, 1);
    lf_emit_rows_of_level(k, 0, NULL);
    LLVMValueRef v_scratch = LLVMBuildIntToPtr(b, lf_word(k, k->loop->workspace_word), k->l_pointer, "scratch");
    LLVMValueRef v_first = element(k, v_scratch, LLVMBuildMul(b, v_row, LLVMBuildShl(b, v_n, v_one, ""), "")),
                 v_second = element(k, v_first, v_n);
    lf_loop_blocks all;
    LLVMValueRef v_i = lf_for_begin(k, &all, team->v_rank, v_n, team->v_size, "start");
    LLVMBuildStore(b, v_i, element(k, v_first, v_i));
    lf_for_end(k, &all, LF_HINT_NONE);
    team_barrier(k, team);
    // for (width = 1; width < n; width *= 2) merge from one array into the other
    LLVMBasicBlockRef b_before = LLVMGetInsertBlock(b), b_head = lf_block(k, "widths"), b_body = lf_block(k, "merge"),
                      b_done = lf_block(k, "sorted");
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_head);
    LLVMValueRef v_width = LLVMBuildPhi(b, k->l_i64, "width"), v_from = LLVMBuildPhi(b, k->l_pointer, "from"),
                 v_to = LLVMBuildPhi(b, k->l_pointer, "to");
    LLVMAddIncoming(v_width, &v_one, &b_before, 1);
    LLVMAddIncoming(v_from, &v_first, &b_before, 1);
    LLVMAddIncoming(v_to, &v_second, &b_before, 1);
    LLVMBuildCondBr(b, compare(k, LLVMIntSLT, v_width, v_n), b_body, b_done);
    LLVMPositionBuilderAtEnd(b, b_body);
    v_i = lf_for_begin(k, &all, team->v_rank, v_n, team->v_size, "element");
    merge_one(k, v_from, v_to, v_i, v_width, v_n);
    lf_for_end(k, &all, LF_HINT_NONE);
    team_barrier(k, team);
    LLVMValueRef v_double = LLVMBuildShl(b, v_width, v_one, "");
    LLVMBasicBlockRef b_last = LLVMGetInsertBlock(b);
    LLVMAddIncoming(v_width, &v_double, &b_last, 1);
    LLVMAddIncoming(v_from, &v_to, &b_last, 1);
    LLVMAddIncoming(v_to, &v_from, &b_last, 1);
    LLVMBuildBr(b, b_head);
    LLVMPositionBuilderAtEnd(b, b_done);
    v_i = lf_for_begin(k, &all, team->v_rank, lf_reg(k, k->loop->keys[LF_SORT_COUNT], 0).re, team->v_size, "rank");
    lf_emit_sorted(k, position_at(k, v_from, v_i), v_i);
    lf_for_end(k, &all, LF_HINT_NONE);
}

// ---- scatter -----------------------------------------------------------------------------------------------------------------------

static lf_register update(lf_kernel *k, lf_dtype d, lf_register old, lf_register new) {
    static const lf_opcode codes[] = {[LF_SCATTER_ADD] = LF_OP_ADD,
                                      [LF_SCATTER_MUL] = LF_OP_MUL,
                                      [LF_SCATTER_MIN] = LF_OP_MIN,
                                      [LF_SCATTER_MAX] = LF_OP_MAX};
    return k->loop->mode == LF_SCATTER_SET ? new : lf_emit_simple(k->e, codes[k->loop->mode], d, old, new);
}

void lf_emit_updates(lf_kernel *k, lf_register source) {
    for (lf_stmt_id i = 0; i < k->loop->n_stmts; i++) {
        const lf_stmt *s = &k->loop->stmts[i];
        if (s->kind != LF_STMT_STORE) continue;
        LLVMValueRef v_place = lf_access_address(k, i);
        lf_emit_store(k->e, s->dtype, update(k, s->dtype, lf_emit_load(k->e, s->dtype, v_place), source), v_place);
    }
}

// First the row is copied, then each update is applied in the order of idx.
void lf_emit_scatter_row(lf_kernel *k) {
    LLVMBuilderRef b = k->e->builder;
    const lf_loop *loop = k->loop;
    LLVMValueRef v_zero = lf_i64_const(k, 0), v_one = lf_i64_const(k, 1);
    lf_emit_rows_of_level(k, 0, NULL);
    lf_loop_blocks columns;
    lf_kernel_at_column(k, lf_for_begin(k, &columns, v_zero, lf_columns(k), v_one, "copy"));
    for (lf_stmt_id i = 0; i < loop->n_stmts; i++)
        if (loop->stmts[i].kind == LF_STMT_STORE) lf_emit_statement(k, i);
    lf_for_end(k, &columns, LF_HINT_NONE);
    lf_kernel_forget_columns(k);
    LLVMValueRef v_count = lf_reg(k, loop->keys[LF_SCATTER_COUNT], 0).re;
    if (loop->keys[LF_SCATTER_ROW] != LF_NO_STMT) {
        LLVMValueRef v_in = lf_reg(k, loop->keys[LF_SCATTER_ROW], 0).re;
        v_count = LLVMBuildSelect(b, v_in, v_count, v_zero, "count");
    }
    LLVMValueRef v_k = lf_for_begin(k, &columns, v_zero, v_count, v_one, "update");
    lf_kernel_at_column(k, v_k);
    lf_emit_statement(k, loop->keys[LF_SCATTER_INDEX]);
    lf_emit_statement(k, loop->keys[LF_SCATTER_INSIDE]);
    lf_emit_statement(k, loop->keys[LF_SCATTER_ERROR]);
    LLVMValueRef v_index = lf_reg(k, loop->keys[LF_SCATTER_INDEX], 0).re;
    lf_if_blocks inside;
    lf_if_begin(k, &inside, lf_reg(k, loop->keys[LF_SCATTER_INSIDE], 0).re, "inside");
    lf_emit_statement(k, loop->keys[LF_SCATTER_SOURCE]);
    lf_register source = lf_reg(k, loop->keys[LF_SCATTER_SOURCE], 0);
    lf_kernel_forget_columns(k);
    k->at->v_column[0] = v_index;
    lf_emit_updates(k, source);
    lf_if_end(k, &inside);
    lf_for_end(k, &columns, LF_HINT_NONE);
    lf_kernel_forget_columns(k);
}
