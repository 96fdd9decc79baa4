// Promotion of dtypes and broadcasting of shapes (language.md, 5).
#include "ir/builder.h"

bool lf_any_tensor(const lf_arg *args, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (lf_arg_tensor_p(&args[i])) return true;
    return false;
}

// bool < integer < float < complex: INT and UINT are one category here.
static int rank_of(lf_dtype d) {
    lf_category c = lf_dtype_category(d);
    return c == LF_CATEGORY_BOOL ? 0 : c <= LF_CATEGORY_UINT ? 1 : c == LF_CATEGORY_FLOAT ? 2 : 3;
}

// The lattice within one category. LF_NO_DTYPE: u64 with a signed integer.
static lf_dtype join(lf_dtype a, lf_dtype b) {
    if (a == b) return a;
    if (lf_is_complex(a)) return LF_C128;
    if (lf_is_float(a)) return a == LF_F64 || b == LF_F64 ? LF_F64 : LF_F32;
    if (lf_is_signed(a) == lf_is_signed(b)) return lf_dtype_bytes(a) > lf_dtype_bytes(b) ? a : b;
    lf_dtype u = lf_is_unsigned(a) ? a : b, s = lf_is_unsigned(a) ? b : a;
    if (lf_dtype_bytes(s) > lf_dtype_bytes(u)) return s;
    return u == LF_U8 ? LF_I16 : u == LF_U16 ? LF_I32 : u == LF_U32 ? LF_I64 : LF_NO_DTYPE;
}

// 0: tensors of rank >= 1, 1: rank-0 tensors, 2: scalars, 3: literals; -1: none.
static int tier_of(const lf_arg *a) {
    if (lf_arg_none(a)) return -1;
    if (a->literal) return 3;
    return !a->value->type.tensor ? 2 : a->value->type.rank == 0 ? 1 : 0;
}

// The join of the operands of one tier and category; LF_NO_DTYPE in *out when there is none.
static lf_status join_tier(lf_rule *r, const lf_arg *args, size_t n, int tier, int category, lf_dtype *out) {
    const lf_arg *first = NULL;
    *out = LF_NO_DTYPE;
    for (size_t i = 0; i < n; i++) {
        if (tier_of(&args[i]) != tier || rank_of(lf_arg_dtype(&args[i])) != category) continue;
        lf_dtype d = lf_arg_dtype(&args[i]), common = *out == LF_NO_DTYPE ? d : join(*out, d);
        if (common == LF_NO_DTYPE)
            return lf_rule_error(r, "%s and %s have no common integer dtype (%s and %s): cast one of them",
                                 lf_operand_told(r->g, first->operand), lf_operand_told(r->g, args[i].operand),
                                 lf_dtype_name(*out), lf_dtype_name(d));
        if (common == d || !first) first = &args[i];
        *out = common;
    }
    return NULL;
}

static bool has_f64(const lf_arg *args, size_t n, int last_tier) {
    for (size_t i = 0; i < n; i++)
        if (tier_of(&args[i]) >= 0 && tier_of(&args[i]) <= last_tier && lf_arg_dtype(&args[i]) == LF_F64) return true;
    return false;
}

static lf_status promote_scalars(lf_rule *r, const lf_arg *args, size_t n, int top, lf_dtype *out) {
    int category = -1;
    for (size_t i = 0; i < n; i++)
        if (tier_of(&args[i]) == 2 && rank_of(lf_arg_dtype(&args[i])) > category) category = rank_of(lf_arg_dtype(&args[i]));
    // A literal brings its category only.
    if (category < top) return join_tier(r, args, n, 3, top, out);
    LF_TRY(join_tier(r, args, n, 2, top, out));
    bool wide = false;
    for (size_t i = 0; i < n; i++) wide |= tier_of(&args[i]) == 2 && lf_arg_dtype(&args[i]) == LF_F64;
    if (top == 3 && wide) *out = LF_C128;
    return NULL;
}

lf_status lf_promote(lf_rule *r, const lf_arg *args, size_t n, bool tensor, lf_dtype *out) {
    int top = 0;
    *out = LF_NO_DTYPE;
    for (size_t i = 0; i < n; i++)
        if (!lf_arg_none(&args[i]) && rank_of(lf_arg_dtype(&args[i])) > top) top = rank_of(lf_arg_dtype(&args[i]));
    if (!tensor) return promote_scalars(r, args, n, top, out);
    for (int tier = 0; tier < 2; tier++) {
        LF_TRY(join_tier(r, args, n, tier, top, out));
        if (*out == LF_NO_DTYPE) continue;
        if (top == 3 && has_f64(args, n, tier)) *out = LF_C128;
        return NULL;
    }
    static const lf_dtype alone[] = {LF_BOOL, LF_I64, LF_F32, LF_C64};
    *out = top == 3 && has_f64(args, n, 1) ? LF_C128 : alone[top];
    return NULL;
}

lf_status lf_promote_float(lf_rule *r, const lf_arg *args, size_t n, bool tensor, lf_dtype *out) {
    LF_TRY(lf_promote(r, args, n, tensor, out));
    if (rank_of(*out) < 2) *out = tensor ? LF_F32 : LF_F64;
    return NULL;
}

// ---- broadcasting -------------------------------------------------------------------------------------------------------------

static lf_value *is_one(lf_graph *g, lf_value *v) { return lf_test2(g, LF_OP_EQ, v, lf_const_int(g, 1)); }

lf_status lf_common_extent(lf_rule *r, unsigned axis, lf_axis_extent *a, const lf_axis_extent *b) {
    lf_graph *g = r->g;
    if (lf_same_extent(a->extent, b->extent)) {
        a->named |= b->named;
        return NULL;
    }
    if (lf_is_constant(a->extent, 1) && !a->named) {
        *a = *b;
        return NULL;
    }
    if (lf_is_constant(b->extent, 1) && !b->named) return NULL;
    int64_t n;
    bool a_stretches = !a->named && !lf_const_i64(a->extent, &n), b_stretches = !b->named && !lf_const_i64(b->extent, &n);
    lf_value *one_a = a_stretches ? is_one(g, a->extent) : NULL, *one_b = b_stretches ? is_one(g, b->extent) : NULL;
    if ((a_stretches && !one_a) || (b_stretches && !one_b)) return lf_out_of_memory();
    lf_value *ok = lf_test2(g, LF_OP_EQ, a->extent, b->extent);
    if (one_a) ok = lf_test2(g, LF_OP_LOR, ok, one_a);
    if (one_b) ok = lf_test2(g, LF_OP_LOR, ok, one_b);
    const char *why = a->named || b->named ? "; an extent that a named dim gives does not broadcast" : "";
    LF_TRY(lf_rule_require(r, ok, LF_NUMBERS(a->extent, b->extent),
                           "%s and %s do not broadcast: axis %u has extents {0} and {1}%s", lf_operand_told(g, a->operand),
                           lf_operand_told(g, b->operand), axis, why));
    bool named = a->named || b->named;
    if (one_a && one_b)
        a->extent = lf_pick(g, one_a, b->extent, a->extent);
    else if (one_a || (!one_b && lf_const_i64(b->extent, &n))) {
        a->extent = b->extent;
        a->operand = b->operand;
    }
    a->named = named;
    return a->extent ? NULL : lf_out_of_memory();
}

lf_status lf_equal_extent(lf_rule *r, unsigned axis, lf_value *a, const lf_operand *a_name, lf_value *b,
                          const lf_operand *b_name, lf_value **out) {
    int64_t n;
    *out = lf_const_i64(b, &n) ? b : a;
    return lf_rule_require(r, lf_test2(r->g, LF_OP_EQ, a, b), LF_NUMBERS(a, b), "%s and %s: axis %u has extents {0} and {1}",
                           lf_operand_told(r->g, a_name), lf_operand_told(r->g, b_name), axis);
}

lf_status lf_broadcast(lf_rule *r, lf_value **values, const lf_operand *const *operands, size_t n, lf_type *out_shape) {
    unsigned rank = 0;
    for (size_t i = 0; i < n; i++)
        if (values[i] && values[i]->type.tensor && values[i]->type.rank > rank) rank = values[i]->type.rank;
    *out_shape = lf_tensor_type(LF_NO_DTYPE, rank);
    for (unsigned axis = 0; axis < rank; axis++) {
        lf_axis_extent common = {0};
        for (size_t i = 0; i < n; i++) {
            if (!values[i] || !values[i]->type.tensor || axis < rank - values[i]->type.rank) continue;
            unsigned own = axis - (rank - values[i]->type.rank);
            lf_axis_extent next = {values[i]->type.dims[own], values[i]->type.named >> own & 1, operands[i]};
            if (!common.extent)
                common = next;
            else
                LF_TRY(lf_common_extent(r, axis, &common, &next));
        }
        out_shape->dims[axis] = common.extent;
        if (common.named) out_shape->named |= (uint8_t)(1u << axis);
    }
    for (size_t i = 0; i < n; i++) {
        if (!values[i] || !values[i]->type.tensor || values[i]->type.host) continue;
        if (!(values[i] = lf_make_expand(r->g, values[i], out_shape))) return lf_out_of_memory();
    }
    return NULL;
}
