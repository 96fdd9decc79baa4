// Elementwise ops: in which dtype each computes, what its operands are converted to, what comes out; then the op itself.
#include "ir/builder.h"
#include <stdio.h>
#include <string.h>

static bool allowed(const lf_op_info *info, lf_dtype d) {
    char letter = d == LF_BOOL ? 'b' : lf_is_integer(d) ? 'i' : lf_is_float(d) ? 'f' : 'c';
    return strchr(info->allow, letter) != NULL;
}

// "bool, integer and float"
static const char *allowed_words(const lf_op_info *info, char *buffer, size_t size) {
    static const char letters[] = "bifc";
    static const char *const words[] = {"bool", "integer", "float", "complex"};
    size_t n = 0, left = strlen(info->allow);
    buffer[0] = 0;
    for (unsigned i = 0; i < 4; i++) {
        if (!strchr(info->allow, letters[i])) continue;
        n += (size_t)snprintf(buffer + n, size - n, "%s%s", words[i], left > 2 ? ", " : left == 2 ? " and " : "");
        left--;
    }
    return buffer;
}

static lf_status refuse(lf_rule *r, const lf_arg *args, size_t n, lf_dtype d) {
    char words[64];
    const char *told = "";
    for (size_t i = 0; i < n && told; i++)
        if (!lf_arg_none(&args[i]))
            told = lf_arena_printf(&r->g->arena, "%s%s%s", told, *told ? ", " : "", lf_operand_told(r->g, args[i].operand));
    return lf_rule_error(r, "not supported for %s: it takes %s operands, found %s", lf_dtype_name(d),
                         allowed_words(r->info, words, sizeof words), told ? told : "?");
}

// ---- the rules that ops.def names -------------------------------------------------------------------------------------------

static void all_operands(lf_elem_plan *plan, lf_dtype d) {
    for (unsigned i = 0; i < LF_MAX_ELEM; i++) plan->operand[i] = d;
    plan->compute = plan->result = d;
}

static lf_status lf_rule_to_float(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    lf_dtype d;
    LF_TRY(lf_promote_float(r, args, n, lf_any_tensor(args, n), &d));
    all_operands(plan, d);
    return NULL;
}

static lf_status lf_rule_arith(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    lf_dtype d;
    LF_TRY(lf_promote(r, args, n, lf_any_tensor(args, n), &d));
    all_operands(plan, d);
    return NULL;
}

// Integers are interpolated as floats; bools are not.
static lf_status lf_rule_lerp(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    lf_dtype d;
    LF_TRY(lf_promote(r, args, n, lf_any_tensor(args, n), &d));
    if (d == LF_BOOL)
        all_operands(plan, d);
    else
        return lf_rule_to_float(r, args, n, plan);
    return NULL;
}

static lf_status lf_rule_same(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    (void)r;
    (void)n;
    all_operands(plan, lf_arg_dtype(&args[0]));
    return NULL;
}

static lf_status lf_rule_abs(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    LF_TRY(lf_rule_same(r, args, n, plan));
    plan->result = lf_dtype_part(plan->compute);
    return NULL;
}

static lf_status lf_rule_real_part(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    return lf_rule_abs(r, args, n, plan);
}

static lf_status lf_rule_predicate(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    LF_TRY(lf_rule_same(r, args, n, plan));
    plan->result = LF_BOOL;
    return NULL;
}

static lf_status lf_rule_logical(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    (void)r;
    (void)args;
    (void)n;
    all_operands(plan, LF_BOOL);
    return NULL;
}

static lf_status lf_rule_angle(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    LF_TRY(lf_rule_to_float(r, args, n, plan));
    plan->result = lf_dtype_part(plan->compute);
    return NULL;
}

static lf_status lf_rule_cast(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    LF_TRY(lf_rule_same(r, args, n, plan));
    return lf_attr_dtype(r, LF_NO_DTYPE, &plan->result);
}

static lf_status lf_rule_bitcast(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    LF_TRY(lf_rule_cast(r, args, n, plan));
    if (lf_is_complex(plan->result)) return refuse(r, args, n, plan->result);
    if (lf_dtype_bytes(plan->compute) != lf_dtype_bytes(plan->result))
        return lf_rule_error(r, "the bits of %s cannot be read as %s: elements of %s take %u bytes, those of %s %u",
                             lf_operand_told(r->g, args[0].operand), lf_dtype_name(plan->result),
                             lf_dtype_name(plan->compute), lf_dtype_bytes(plan->compute), lf_dtype_name(plan->result),
                             lf_dtype_bytes(plan->result));
    return NULL;
}

static lf_status lf_rule_shift(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    lf_dtype count = lf_arg_dtype(&args[1]);
    LF_TRY(lf_rule_same(r, args, n, plan));
    if (!lf_is_integer(count)) return refuse(r, args, n, count);
    plan->operand[1] = LF_NO_DTYPE; // counts are compared by value
    return NULL;
}

static lf_status lf_rule_ldexp(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    LF_TRY(lf_rule_to_float(r, args, n, plan));
    plan->operand[1] = lf_arg_dtype(&args[1]) == LF_BOOL ? LF_I32 : LF_NO_DTYPE;
    return NULL;
}

static lf_status lf_rule_compare(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    lf_dtype a = lf_arg_dtype(&args[0]), b = lf_arg_dtype(&args[1]);
    bool whole = (a == LF_BOOL || lf_is_integer(a)) && (b == LF_BOOL || lf_is_integer(b));
    if (!whole) {
        LF_TRY(lf_rule_arith(r, args, n, plan));
    } else {
        // By true values. A literal that fits the other operand's dtype takes it; a bool becomes the other's dtype exactly.
        lf_scalar s;
        if (args[0].literal && !args[1].literal && b != LF_BOOL && lf_literal_to(args[0].literal, b, &s)) a = b;
        if (args[1].literal && !args[0].literal && a != LF_BOOL && lf_literal_to(args[1].literal, a, &s)) b = a;
        if (a == LF_BOOL) a = b;
        if (b == LF_BOOL) b = a;
        plan->operand[0] = a;
        plan->operand[1] = b;
        plan->compute = a == b ? a : LF_NO_DTYPE;
    }
    plan->result = LF_BOOL;
    return NULL;
}

static lf_status lf_rule_complex(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    LF_TRY(lf_rule_to_float(r, args, n, plan));
    if (lf_is_complex(plan->compute)) return NULL; // refused by the table
    all_operands(plan, lf_dtype_compute(plan->compute));
    plan->result = plan->compute == LF_F64 ? LF_C128 : LF_C64;
    return NULL;
}

static lf_status lf_rule_select(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    lf_dtype d;
    if (lf_arg_dtype(&args[0]) != LF_BOOL)
        return lf_rule_error(r, "the condition must be bool, found %s", lf_operand_told(r->g, args[0].operand));
    LF_TRY(lf_promote(r, args + 1, n - 1, lf_any_tensor(args, n), &d));
    all_operands(plan, d);
    plan->operand[0] = LF_BOOL;
    return NULL;
}

static lf_status lf_rule_clamp(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan) {
    return lf_rule_arith(r, args, n, plan);
}

static const lf_elem_rule rules[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = lf_rule_##rule,
#include "ir/ops.def"
};

// ---- the op -------------------------------------------------------------------------------------------------------------------

// slope, alpha and approximate: a constant of the op itself, rounded to the dtype that is computed in.
static lf_status constants_of(lf_rule *r, lf_opcode code, lf_elem_plan *plan) {
    lf_literal number;
    lf_scalar s;
    lf_dtype d = lf_dtype_compute(plan->compute);
    unsigned word = 0;
    if (code == LF_OP_GELU) LF_TRY(lf_attr_word(r, LF_ATTR_APPROXIMATE, "none tanh", 0, &word));
    plan->flag = word == 1;
    if (code != LF_OP_LEAKY_RELU && code != LF_OP_ELU) return NULL;
    lf_literal absent;
    lf_literal_parse("0.01", 4, &absent);
    if (code == LF_OP_LEAKY_RELU)
        LF_TRY(lf_attr_number(r, LF_ATTR_SLOPE, absent, &number));
    else
        LF_TRY(lf_attr_number(r, LF_ATTR_ALPHA, lf_literal_int(1), &number));
    lf_literal_to(&number, d, &s);
    plan->number = lf_scalar_f64(d, &s);
    return NULL;
}

static lf_value *new_elem(lf_graph *g, lf_opcode code, const lf_type *type, size_t n, lf_value **values,
                          const lf_elem_plan *plan) {
    lf_op *op = lf_single(g, code, type, n, values);
    if (!op) return NULL;
    op->compute = plan->compute;
    op->flag = plan->flag;
    op->number = plan->number;
    lf_op_link(g, op);
    return op->results;
}

static bool is_host_value(const lf_value *v) { return v->type.tensor ? v->type.host : v->where == LF_ON_HOST; }

static lf_value *scalar_elem(lf_graph *g, lf_opcode code, size_t n, lf_value **v, const lf_elem_plan *plan) {
    // Ops with a constant of their own, omitted operands or four of them are made as they are.
    bool shared = n < 4 && code != LF_OP_GELU && code != LF_OP_LEAKY_RELU && code != LF_OP_ELU && code != LF_OP_CLAMP &&
                  code != LF_OP_CAST;
    if (shared) return lf_scalar_op(g, code, plan->result, v[0], n > 1 ? v[1] : NULL, n > 2 ? v[2] : NULL);
    lf_type type = lf_scalar_type(plan->result);
    return new_elem(g, code, &type, n, v, plan);
}

lf_status lf_build_elem(lf_rule *r, lf_opcode code, const lf_arg *args, size_t n, const lf_elem_plan *plan, lf_value **out) {
    lf_graph *g = r->g;
    lf_value *values[LF_MAX_ELEM] = {0};
    const lf_operand *operands[LF_MAX_ELEM] = {0};
    bool tensor = false, host = true;
    for (size_t i = 0; i < n; i++) {
        operands[i] = args[i].operand;
        if (lf_arg_none(&args[i])) continue;
        lf_dtype d = plan->operand[i] == LF_NO_DTYPE ? lf_arg_dtype(&args[i]) : plan->operand[i];
        LF_TRY(lf_converted(r, &args[i], d, &values[i]));
        tensor |= values[i]->type.tensor;
        host &= is_host_value(values[i]);
    }
    if (!tensor) return lf_give(scalar_elem(g, code, n, values, plan), out);
    if (host) {
        lf_type type = lf_tensor_type(plan->result, 0);
        type.host = true;
        return lf_give(new_elem(g, code, &type, n, values, plan), out);
    }
    // @host tensors go to the device by value.
    tensor = false;
    for (size_t i = 0; i < n; i++) {
        if (values[i] && values[i]->type.host && !(values[i] = lf_make_item(g, values[i]))) return lf_out_of_memory();
        tensor |= values[i] && values[i]->type.tensor;
    }
    if (!tensor) return lf_give(lf_make_scalar_tensor(g, scalar_elem(g, code, n, values, plan)), out);
    lf_type shape;
    LF_TRY(lf_broadcast(r, values, operands, n, &shape));
    shape.dtype = plan->result;
    return lf_give(new_elem(g, code, &shape, n, values, plan), out);
}

// A literal is i64, f64 or bool first where the target is integer or bool; for floats it is rounded once.
static lf_status cast_literal(lf_rule *r, const lf_arg *a, lf_dtype d, lf_value **out) {
    if (!lf_is_integer(d) && d != LF_BOOL) return lf_literal_value(r, a, d, out);
    lf_value *alone;
    LF_TRY(lf_literal_value(r, a, lf_literal_dtype(a->literal), &alone));
    return lf_give(lf_make_cast(r->g, alone, d), out);
}

lf_status lf_rule_elem(lf_rule *r, lf_value **out) {
    lf_arg args[LF_MAX_ELEM];
    lf_elem_plan plan = {0};
    size_t n = r->request->n_args;
    for (size_t i = 0; i < n; i++) LF_TRY(lf_read_value(r, i, &args[i]));
    LF_TRY(rules[r->code](r, args, n, &plan));
    if (plan.compute != LF_NO_DTYPE && !allowed(r->info, plan.compute)) return refuse(r, args, n, plan.compute);
    if (r->code == LF_OP_CAST && args[0].literal) return cast_literal(r, &args[0], plan.result, out);
    if (r->code == LF_OP_CAST && plan.result != plan.compute)
        return lf_give(lf_make_cast(r->g, args[0].value, plan.result), out);
    LF_TRY(constants_of(r, r->code, &plan));
    return lf_build_elem(r, r->code, args, n, &plan, out);
}
