// Typed scalar arithmetic of the compiler: constants are folded, simple identities applied, equal ops shared, so that two extents
// that are derived alike are one value. Only i64 and bool are folded; floats are left to code that rounds as the language says.
#include "ir/builder.h"
#include <string.h>

lf_value *lf_const(lf_graph *g, lf_dtype d, lf_scalar value) {
    lf_share_key key = {.code = LF_OP_CONST, .dtype = d, .axis = -1, .constant = value};
    uint64_t hash;
    lf_op *op = lf_share_find(g, &key, &hash);
    if (op) return op->results;
    lf_type type = lf_scalar_type(d);
    op = lf_single(g, LF_OP_CONST, &type, 0, NULL);
    if (!op) return NULL;
    op->constant = value;
    if (!lf_share_add(g, hash, op)) return NULL;
    lf_op_link(g, op);
    return op->results;
}

lf_value *lf_const_int(lf_graph *g, int64_t value) { return lf_const(g, LF_I64, (lf_scalar){.word = {(uint64_t)value}}); }

static lf_value *const_bool(lf_graph *g, bool value) { return lf_const(g, LF_BOOL, (lf_scalar){.word = {value}}); }

bool lf_is_constant(const lf_value *v, int64_t n) {
    int64_t m;
    return lf_const_i64(v, &m) && m == n;
}

bool lf_is_true(const lf_value *v) { return lf_is_const(v) && v->type.dtype == LF_BOOL && v->def->constant.b; }
static bool is_false(const lf_value *v) { return lf_is_const(v) && v->type.dtype == LF_BOOL && !v->def->constant.b; }

// ---- i64 as the language defines it (language.md, 6) ----------------------------------------------------------------------------

static int64_t wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t wrap_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static int64_t wrap_neg(int64_t a) { return wrap_sub(0, a); }
static int64_t trunc_div(int64_t a, int64_t b) { return b == 0 ? -1 : b == -1 ? wrap_neg(a) : a / b; }
static int64_t trunc_rem(int64_t a, int64_t b) { return b == 0 ? a : b == -1 ? 0 : a % b; }
static int64_t floor_div(int64_t a, int64_t b) {
    int64_t r = trunc_rem(a, b);
    return b == 0 ? -1 : trunc_div(a, b) - (r != 0 && (r < 0) != (b < 0));
}
static int64_t ceil_div(int64_t a, int64_t b) {
    int64_t r = trunc_rem(a, b);
    return b == 0 ? -1 : trunc_div(a, b) + (r != 0 && (r < 0) == (b < 0));
}
static int64_t floor_rem(int64_t a, int64_t b) {
    int64_t r = trunc_rem(a, b);
    return b != 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static int64_t power(int64_t a, int64_t b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    int64_t r = 1;
    for (; b; b >>= 1, a = wrap_mul(a, a))
        if (b & 1) r = wrap_mul(r, a);
    return r;
}
static int64_t divisor(int64_t x, int64_t y) {
    uint64_t a = x < 0 ? 0 - (uint64_t)x : (uint64_t)x, b = y < 0 ? 0 - (uint64_t)y : (uint64_t)y;
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return (int64_t)a;
}

static bool eval_i64(lf_opcode code, int64_t a, int64_t b, int64_t *out) {
    bool inside = b >= 0 && b < 64;
    switch (code) {
    case LF_OP_ADD: *out = wrap_add(a, b); return true;
    case LF_OP_SUB: *out = wrap_sub(a, b); return true;
    case LF_OP_MUL: *out = wrap_mul(a, b); return true;
    case LF_OP_SATMUL:
        if (__builtin_mul_overflow(a, b, out)) *out = INT64_MAX;
        return true;
    case LF_OP_FLOORDIV: *out = floor_div(a, b); return true;
    case LF_OP_TRUNCDIV: *out = trunc_div(a, b); return true;
    case LF_OP_CEILDIV: *out = ceil_div(a, b); return true;
    case LF_OP_MOD: *out = floor_rem(a, b); return true;
    case LF_OP_FMOD: *out = trunc_rem(a, b); return true;
    case LF_OP_POW: *out = power(a, b); return true;
    case LF_OP_GCD: *out = divisor(a, b); return true;
    case LF_OP_MIN:
    case LF_OP_FMIN: *out = a < b ? a : b; return true;
    case LF_OP_MAX:
    case LF_OP_FMAX: *out = a > b ? a : b; return true;
    case LF_OP_AND: *out = a & b; return true;
    case LF_OP_OR: *out = a | b; return true;
    case LF_OP_XOR: *out = a ^ b; return true;
    case LF_OP_SHL: *out = inside ? (int64_t)((uint64_t)a << b) : 0; return true;
    case LF_OP_LSHR: *out = inside ? (int64_t)((uint64_t)a >> b) : 0; return true;
    case LF_OP_SHR: *out = inside ? a >> b : a < 0 ? -1 : 0; return true;
    case LF_OP_NEG: *out = wrap_neg(a); return true;
    case LF_OP_ABS: *out = a < 0 ? wrap_neg(a) : a; return true;
    case LF_OP_SIGN: *out = (a > 0) - (a < 0); return true;
    case LF_OP_NOT: *out = ~a; return true;
    case LF_OP_RELU: *out = a > 0 ? a : 0; return true;
    case LF_OP_CEIL:
    case LF_OP_FLOOR:
    case LF_OP_TRUNC:
    case LF_OP_ROUND: *out = a; return true;
    default: return false;
    }
}

static bool eval_test(lf_opcode code, int64_t a, int64_t b, bool *out) {
    switch (code) {
    case LF_OP_EQ: *out = a == b; return true;
    case LF_OP_NE: *out = a != b; return true;
    case LF_OP_LT: *out = a < b; return true;
    case LF_OP_LE: *out = a <= b; return true;
    case LF_OP_GT: *out = a > b; return true;
    case LF_OP_GE: *out = a >= b; return true;
    default: return false;
    }
}

static bool eval_bool(lf_opcode code, bool a, bool b, bool *out) {
    switch (code) {
    case LF_OP_ADD:
    case LF_OP_OR:
    case LF_OP_LOR:
    case LF_OP_MAX: *out = a || b; return true;
    case LF_OP_MUL:
    case LF_OP_AND:
    case LF_OP_LAND:
    case LF_OP_MIN: *out = a && b; return true;
    case LF_OP_XOR: *out = a != b; return true;
    case LF_OP_NOT:
    case LF_OP_LNOT: *out = !a; return true;
    default: return eval_test(code, a, b, out);
    }
}

static lf_value *fold_constants(lf_graph *g, lf_opcode code, lf_dtype result, lf_value *a, lf_value *b) {
    if (!lf_is_const(a) || (b && !(lf_is_const(b) && b->type.dtype == a->type.dtype))) return NULL;
    lf_dtype d = a->type.dtype;
    int64_t x = lf_scalar_i64(d, &a->def->constant), y = b ? lf_scalar_i64(b->type.dtype, &b->def->constant) : 0, n;
    bool t;
    if (result == LF_BOOL && d == LF_BOOL && eval_bool(code, x, y, &t)) return const_bool(g, t);
    if (result == LF_BOOL && d == LF_I64 && eval_test(code, x, y, &t)) return const_bool(g, t);
    if (result == LF_I64 && d == LF_I64 && eval_i64(code, x, y, &n)) return lf_const_int(g, n);
    return NULL;
}

// ---- identities -------------------------------------------------------------------------------------------------------------

static bool nonnegative(lf_graph *g, const lf_value *v, int depth) {
    int64_t n;
    if (lf_const_i64(v, &n)) return n >= 0;
    const lf_op *op = v->def;
    if (op->code == LF_OP_EXTENT || op->code == LF_OP_SATMUL) return true;
    // A value that an earlier check found not to be negative: nothing behind the check runs otherwise.
    lf_share_key test = {.code = LF_OP_GE, .dtype = LF_BOOL, .axis = -1, .operands = {v, NULL}};
    lf_share_key zero = {.code = LF_OP_CONST, .dtype = LF_I64, .axis = -1};
    uint64_t hash;
    lf_op *found = lf_share_find(g, &zero, &hash);
    if (found) {
        test.operands[1] = found->results;
        if ((found = lf_share_find(g, &test, &hash))) {
            lf_share_key check = {.code = LF_OP_CHECK, .axis = -1, .operands = {found->results}};
            if (lf_share_find(g, &check, &hash)) return true;
        }
    }
    if (depth == 0) return false;
    if (op->code == LF_OP_MAX)
        return nonnegative(g, op->operands[0], depth - 1) || nonnegative(g, op->operands[1], depth - 1);
    if (op->code == LF_OP_MIN || op->code == LF_OP_FLOORDIV || op->code == LF_OP_CEILDIV || op->code == LF_OP_MOD) {
        bool divides = op->code == LF_OP_FLOORDIV || op->code == LF_OP_CEILDIV || op->code == LF_OP_MOD;
        if (divides && !(lf_const_i64(op->operands[1], &n) && n > 0)) return false;
        return nonnegative(g, op->operands[0], depth - 1) && nonnegative(g, op->operands[1], depth - 1);
    }
    if (op->code == LF_OP_SELECT)
        return nonnegative(g, op->operands[1], depth - 1) && nonnegative(g, op->operands[2], depth - 1);
    return false;
}

// Recursion is bounded by the depth given here.
bool lf_known_nonnegative(lf_graph *g, const lf_value *v) { return nonnegative(g, v, 3); }

// The simpler value that an i64 op is equal to, or NULL. Constants are on the right where the op commutes.
static lf_value *simplify_i64(lf_graph *g, lf_opcode code, lf_value *a, lf_value *b) {
    int64_t n;
    bool constant = lf_const_i64(b, &n);
    switch (code) {
    case LF_OP_ADD:
    case LF_OP_OR:
    case LF_OP_XOR:
    case LF_OP_SHL:
    case LF_OP_SHR:
    case LF_OP_LSHR: return constant && n == 0 ? a : NULL;
    case LF_OP_SUB: return constant && n == 0 ? a : a == b ? lf_const_int(g, 0) : NULL;
    case LF_OP_MUL:
    case LF_OP_SATMUL: return constant && n == 1 ? a : constant && n == 0 ? b : NULL;
    case LF_OP_FLOORDIV:
    case LF_OP_TRUNCDIV:
    case LF_OP_CEILDIV:
        if (constant && n > 0 && a->def->code == LF_OP_SATMUL && lf_is_constant(a->def->operands[1], n))
            return a->def->operands[0];
        return constant && n == 1 ? a : NULL;
    case LF_OP_MOD:
    case LF_OP_FMOD:
        if (constant && n > 0 && a->def->code == LF_OP_SATMUL && lf_is_constant(a->def->operands[1], n))
            return lf_const_int(g, 0);
        return constant && n == 1 ? lf_const_int(g, 0) : NULL;
    case LF_OP_MAX:
    case LF_OP_FMAX: return a == b || (constant && n <= 0 && lf_known_nonnegative(g, a)) ? a : NULL;
    case LF_OP_MIN:
    case LF_OP_FMIN: return a == b ? a : constant && n == 0 && lf_known_nonnegative(g, a) ? b : NULL;
    default: return NULL;
    }
}

static lf_value *simplify_test(lf_graph *g, lf_opcode code, lf_value *a, lf_value *b) {
    if (a->type.dtype == LF_BOOL) {
        if (code == LF_OP_LAND || code == LF_OP_AND || code == LF_OP_MUL || code == LF_OP_MIN)
            return lf_is_true(b) || a == b ? a : is_false(b) ? b : NULL;
        if (code == LF_OP_LOR || code == LF_OP_OR || code == LF_OP_ADD || code == LF_OP_MAX)
            return is_false(b) || a == b ? a : lf_is_true(b) ? b : NULL;
    }
    if (a == b && code >= LF_OP_EQ && code <= LF_OP_GE)
        return const_bool(g, code == LF_OP_EQ || code == LF_OP_LE || code == LF_OP_GE);
    int64_t n;
    if (!lf_const_i64(b, &n) || a->type.dtype != LF_I64) return NULL;
    if (n < 0 && (code == LF_OP_EQ || code == LF_OP_NE) && lf_known_nonnegative(g, a))
        return const_bool(g, code == LF_OP_NE);
    if (n <= 0 && (code == LF_OP_GE || code == LF_OP_LT) && lf_known_nonnegative(g, a))
        return const_bool(g, code == LF_OP_GE);
    return NULL;
}

static bool commutes(lf_opcode code) {
    switch (code) {
    case LF_OP_ADD:
    case LF_OP_MUL:
    case LF_OP_SATMUL:
    case LF_OP_MIN:
    case LF_OP_MAX:
    case LF_OP_AND:
    case LF_OP_OR:
    case LF_OP_XOR:
    case LF_OP_GCD:
    case LF_OP_LAND:
    case LF_OP_LOR:
    case LF_OP_EQ:
    case LF_OP_NE: return true;
    default: return false;
    }
}

// Satisfied by constants on the right, else the older value first.
static bool out_of_order(const lf_value *a, const lf_value *b) {
    if (lf_is_const(a) != lf_is_const(b)) return lf_is_const(a);
    return a->id > b->id;
}

static lf_dtype compute_of(lf_opcode code, const lf_value *a, const lf_value *b) {
    if (code == LF_OP_SELECT) return b->type.dtype;
    bool test = code >= LF_OP_EQ && code <= LF_OP_GE;
    return test && b && b->type.dtype != a->type.dtype ? LF_NO_DTYPE : a->type.dtype;
}

static lf_value *simplify(lf_graph *g, lf_opcode code, lf_dtype result, lf_value *a, lf_value *b, lf_value *c) {
    if (code == LF_OP_SELECT) return lf_is_true(a) || b == c ? b : is_false(a) ? c : NULL;
    if (c) return NULL;
    lf_value *v = fold_constants(g, code, result, a, b);
    if (v || !b) return v;
    if (result == LF_I64 && a->type.dtype == LF_I64 && b->type.dtype == LF_I64) return simplify_i64(g, code, a, b);
    if (result == LF_BOOL && a->type.dtype == b->type.dtype && (a->type.dtype == LF_I64 || a->type.dtype == LF_BOOL))
        return simplify_test(g, code, a, b);
    return NULL;
}

lf_value *lf_scalar_op(lf_graph *g, lf_opcode code, lf_dtype result, lf_value *a, lf_value *b, lf_value *c) {
    a = lf_resolve(a);
    b = lf_resolve(b);
    c = lf_resolve(c);
    if (!a) return NULL;
    if (code == LF_OP_CAST) return lf_make_cast(g, a, result);
    bool exact = a->type.dtype == LF_I64 || a->type.dtype == LF_BOOL;
    if (b && exact && a->type.dtype == b->type.dtype && commutes(code) && out_of_order(a, b)) {
        lf_value *t = a;
        a = b;
        b = t;
    }
    lf_value *simple = simplify(g, code, result, a, b, c);
    if (simple || g->arena.failed) return simple;
    lf_share_key key = {.code = code, .dtype = result, .axis = -1, .operands = {a, b, c}};
    uint64_t hash;
    lf_op *op = lf_share_find(g, &key, &hash);
    if (op) return op->results;
    lf_type type = lf_scalar_type(result);
    op = lf_single(g, code, &type, c ? 3 : b ? 2 : 1, (lf_value *[]){a, b, c});
    if (!op) return NULL;
    op->compute = compute_of(code, a, b);
    if (!lf_share_add(g, hash, op)) return NULL;
    lf_op_link(g, op);
    return op->results;
}

// ---- extents ----------------------------------------------------------------------------------------------------------------

lf_value *lf_int2(lf_graph *g, lf_opcode code, lf_value *a, lf_value *b) {
    return a && b ? lf_scalar_op(g, code, LF_I64, a, b, NULL) : NULL;
}
lf_value *lf_test2(lf_graph *g, lf_opcode code, lf_value *a, lf_value *b) {
    return a && b ? lf_scalar_op(g, code, LF_BOOL, a, b, NULL) : NULL;
}
lf_value *lf_pick(lf_graph *g, lf_value *c, lf_value *a, lf_value *b) {
    return a && b && c ? lf_scalar_op(g, LF_OP_SELECT, LF_I64, c, a, b) : NULL;
}

lf_value *lf_extent_mul(lf_graph *g, lf_value *a, lf_value *b) {
    if (!a || !b) return NULL;
    a = lf_resolve(a);
    b = lf_resolve(b);
    if (lf_is_const(a)) {
        lf_value *t = a;
        a = b;
        b = t;
    }
    // (x · m) · n = x · (m · n): constants are gathered at the right.
    if (lf_is_const(b) && a->def->code == LF_OP_SATMUL && lf_is_const(a->def->operands[1])) {
        b = lf_int2(g, LF_OP_SATMUL, a->def->operands[1], b);
        a = a->def->operands[0];
    }
    return lf_int2(g, LF_OP_SATMUL, a, b);
}

lf_value *lf_extent_add(lf_graph *g, lf_value *a, lf_value *b) {
    int64_t m, n, sum;
    if (lf_const_i64(a, &m) && lf_const_i64(b, &n))
        return lf_const_int(g, __builtin_add_overflow(m, n, &sum) ? INT64_MAX : sum);
    if (lf_is_constant(a, 0)) return b;
    if (lf_is_constant(b, 0)) return a;
    lf_value *v_sum = lf_int2(g, LF_OP_ADD, a, b);
    return lf_pick(g, lf_test2(g, LF_OP_LT, v_sum, lf_const_int(g, 0)), lf_const_int(g, INT64_MAX), v_sum);
}

lf_value *lf_product_of(lf_graph *g, lf_value *const *factors, size_t n) {
    lf_value *sorted[2 * LF_MAX_RANK];
    int64_t constant = 1, m;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (!factors[i]) return NULL;
        if (lf_const_i64(factors[i], &m)) {
            if (__builtin_mul_overflow(constant, m, &constant)) constant = INT64_MAX;
            if (m == 0) return lf_const_int(g, 0);
            continue;
        }
        size_t at = k++;
        for (; at && sorted[at - 1]->id > factors[i]->id; at--) sorted[at] = sorted[at - 1];
        sorted[at] = factors[i];
    }
    lf_value *product = NULL;
    for (size_t i = 0; i < k; i++) {
        product = i ? lf_extent_mul(g, product, sorted[i]) : sorted[i];
        if (!product) return NULL;
    }
    if (!product) return lf_const_int(g, constant);
    return constant == 1 ? product : lf_extent_mul(g, product, lf_const_int(g, constant));
}

lf_value *lf_numel_of(lf_graph *g, const lf_type *type) {
    return lf_product_of(g, type->dims, type->tensor ? type->rank : 0);
}

lf_value *lf_slot_value(lf_graph *g, uint32_t slot) {
    lf_share_key key = {.code = LF_OP_SLOT, .dtype = LF_I64, .axis = -1, .slot = slot};
    uint64_t hash;
    lf_op *op = lf_share_find(g, &key, &hash);
    if (op) return op->results;
    lf_type type = lf_scalar_type(LF_I64);
    op = lf_single(g, LF_OP_SLOT, &type, 0, NULL);
    if (!op) return NULL;
    op->slot = slot;
    if (!lf_share_add(g, hash, op)) return NULL;
    lf_op_link(g, op);
    return op->results;
}
