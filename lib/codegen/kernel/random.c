// Numbers that a kernel makes from an index: iota in float dtypes, and Philox uniform and normal.
#include "codegen/kernel/kernel.h"
#include "codegen/llvm/emit_build.h"

static LLVMValueRef as_double(lf_kernel *k, lf_dtype d, lf_register r) { return lf_emit_cast(k->e, d, LF_F64, r).re; }

// fma(a, b, c) of doubles that were narrower numbers, rounded once to d: a * b is exact, the sum is brought to odd by its error.
static lf_register fma_once(lf_kernel *k, lf_dtype d, LLVMValueRef v_a, LLVMValueRef v_b, LLVMValueRef v_c) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_sum = l_fma(k->e, v_a, v_b, v_c);
    if (d == LF_F64) return (lf_register){v_sum, NULL};
    // error of the fma: product and its own error, then two-sum of product and c
    LLVMValueRef v_product = LLVMBuildFMul(b, v_a, v_b, ""), v_low = l_fma(k->e, v_a, v_b, LLVMBuildFNeg(b, v_product, ""));
    LLVMValueRef v_rest = LLVMBuildFSub(b, v_sum, v_product, "");
    LLVMValueRef v_error = LLVMBuildFAdd(b, LLVMBuildFSub(b, v_product, LLVMBuildFSub(b, v_sum, v_rest, ""), ""),
                                         LLVMBuildFSub(b, v_c, v_rest, ""), "");
    v_error = LLVMBuildFAdd(b, v_error, v_low, "");
    LLVMValueRef v_odd = lf_emit_odd_double(k->e, v_sum, v_error);
    if (d == LF_F32) return (lf_register){LLVMBuildFPTrunc(b, v_odd, LLVMFloatTypeInContext(k->e->context), ""), NULL};
    return lf_emit_cast(k->e, LF_F64, d, (lf_register){v_odd, NULL});
}

lf_register lf_emit_iota(lf_kernel *k, const lf_stmt *s, lf_register i, lf_register start, lf_register step) {
    lf_dtype d = s->dtype;
    return fma_once(k, d, as_double(k, LF_I64, i), as_double(k, d, step), as_double(k, d, start));
}

// ---- Philox --------------------------------------------------------------------------------------------------------------------

// What the elements of one draw have in common.
typedef struct draw {
    const lf_stmt *s;
    LLVMValueRef v_seed, v_a, v_b; // a, b: lo and hi, or mean and std, in the computing dtype
    lf_dtype unit;                 // dtype whose unit is drawn: F16, BF16, F32 or F64
} draw;

static bool is_wide(const draw *r) { return r->unit == LF_F64; }

// Elements that one block of four words serves.
static unsigned block_elements(const draw *r) { return is_wide(r) ? 2 : 4; }

static void block_of(lf_kernel *k, const draw *r, LLVMValueRef v_element, LLVMValueRef words[4]) {
    LLVMValueRef v_block = LLVMBuildLShr(k->e->builder, v_element, lf_i64_const(k, is_wide(r) ? 1 : 2), "");
    lf_emit_philox(k->e, r->v_seed, v_block, lf_i64_const(k, 0), words);
}

// What a number is made of: one word, or for f64 two as an i64. Of the element number `at` of a block, known while compiling.
static LLVMValueRef bits_at(lf_kernel *k, const draw *r, LLVMValueRef words[4], unsigned at) {
    if (!is_wide(r)) return words[at];
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v_high = LLVMBuildZExt(b, words[2 * at], k->l_i64, ""),
                 v_low = LLVMBuildZExt(b, words[2 * at + 1], k->l_i64, "");
    return LLVMBuildOr(b, LLVMBuildShl(b, v_high, lf_i64_const(k, 32), ""), v_low, "bits");
}

// u in [0, 1) as float or double.
static LLVMValueRef unit_of(lf_kernel *k, const draw *r, LLVMValueRef v_bits) {
    LLVMBuilderRef b = k->e->builder;
    if (is_wide(r)) {
        LLVMValueRef v = LLVMBuildUIToFP(b, LLVMBuildLShr(b, v_bits, lf_i64_const(k, 11), ""),
                                         LLVMDoubleTypeInContext(k->e->context), "");
        return LLVMBuildFMul(b, v, LLVMConstReal(LLVMTypeOf(v), 0x1p-53), "u");
    }
    unsigned drop = r->unit == LF_F16 ? 21 : r->unit == LF_BF16 ? 24 : 8;
    double scale = r->unit == LF_F16 ? 0x1p-11 : r->unit == LF_BF16 ? 0x1p-8 : 0x1p-24;
    LLVMValueRef v = LLVMBuildLShr(b, v_bits, LLVMConstInt(k->l_i32, drop, false), "");
    v = LLVMBuildSIToFP(b, v, LLVMFloatTypeInContext(k->e->context), ""); // below 2^31
    return LLVMBuildFMul(b, v, LLVMConstReal(LLVMTypeOf(v), scale), "u");
}

static LLVMValueRef unit_at(lf_kernel *k, const draw *r, LLVMValueRef words[4], unsigned at) {
    return unit_of(k, r, bits_at(k, r, words, at));
}

// Of any element.
static LLVMValueRef bits(lf_kernel *k, const draw *r, LLVMValueRef v_element) {
    LLVMBuilderRef b = k->e->builder;
    LLVMTypeRef l_bool = LLVMInt1TypeInContext(k->e->context);
    LLVMValueRef words[4], v_bit0 = LLVMBuildTrunc(b, v_element, l_bool, "");
    block_of(k, r, v_element, words);
    if (is_wide(r)) return l_select(k->e, v_bit0, bits_at(k, r, words, 1), bits_at(k, r, words, 0));
    LLVMValueRef v_bit1 = LLVMBuildTrunc(b, LLVMBuildLShr(b, v_element, lf_i64_const(k, 1), ""), l_bool, "");
    return l_select(k->e, v_bit1, l_select(k->e, v_bit0, words[3], words[2]), l_select(k->e, v_bit0, words[1], words[0]));
}

static LLVMValueRef unit(lf_kernel *k, const draw *r, LLVMValueRef v_element) {
    return unit_of(k, r, bits(k, r, v_element));
}

// ---- distributions ---------------------------------------------------------------------------------------------------------------

static LLVMValueRef math(lf_kernel *k, lf_opcode code, lf_dtype d, LLVMValueRef v) {
    return lf_emit_simple(k->e, code, d, (lf_register){v, NULL}, (lf_register){NULL, NULL}).re;
}

static bool is_number(LLVMValueRef v, double value) {
    LLVMBool lost;
    return LLVMIsAConstantFP(v) && LLVMConstRealGetDouble(v, &lost) == value;
}

static lf_register uniform(lf_kernel *k, const draw *r, LLVMValueRef v_unit) {
    if (!lf_is_half(r->s->dtype) && is_number(r->v_a, 0) && is_number(r->v_b, 1)) return (lf_register){v_unit, NULL};
    LLVMValueRef v_width = LLVMBuildFSub(k->e->builder, r->v_b, r->v_a, "");
    if (!lf_is_half(r->s->dtype)) return (lf_register){l_fma(k->e, v_unit, v_width, r->v_a), NULL};
    lf_register u = {v_unit, NULL}, width = {v_width, NULL}, low = {r->v_a, NULL};
    return fma_once(k, r->s->dtype, as_double(k, LF_F32, u), as_double(k, LF_F32, width), as_double(k, LF_F32, low));
}

// Box-Muller in f32 or f64: a pair of elements shares u1 and u2, hence radius and angle.
typedef struct polar {
    LLVMValueRef v_radius, v_angle;
} polar;

static polar polar_of(lf_kernel *k, const draw *r, LLVMValueRef v_u1, LLVMValueRef v_u2) {
    LLVMBuilderRef b = k->e->builder;
    lf_dtype d = r->unit;
    LLVMTypeRef l_real = LLVMTypeOf(v_u1);
    v_u1 = LLVMBuildFAdd(b, v_u1, LLVMConstReal(l_real, d == LF_F64 ? 0x1p-53 : 0x1p-24), "");
    polar p = {.v_radius =
                   math(k, LF_OP_SQRT, d, LLVMBuildFMul(b, LLVMConstReal(l_real, -2), math(k, LF_OP_LOG, d, v_u1), ""))};
    p.v_angle = LLVMBuildFMul(
        b, LLVMConstReal(l_real, d == LF_F64 ? 6.28318530717958647692 : (double)6.28318530717958647692f), v_u2, "");
    return p;
}

static lf_register normal(lf_kernel *k, const draw *r, LLVMValueRef v_radius, LLVMValueRef v_wave) {
    LLVMBuilderRef b = k->e->builder;
    LLVMValueRef v = LLVMBuildFAdd(b, r->v_a, LLVMBuildFMul(b, r->v_b, LLVMBuildFMul(b, v_radius, v_wave, "z"), ""), "");
    return lf_emit_cast(k->e, r->unit, r->s->dtype, (lf_register){v, NULL});
}

static lf_register any_element(lf_kernel *k, const draw *r, LLVMValueRef v_element) {
    LLVMBuilderRef b = k->e->builder;
    if (r->s->code == LF_OP_UNIFORM) return uniform(k, r, unit(k, r, v_element));
    LLVMValueRef v_u1 = unit(k, r, LLVMBuildAnd(b, v_element, lf_i64_const(k, -2), "")),
                 v_u2 = unit(k, r, LLVMBuildOr(b, v_element, lf_i64_const(k, 1), ""));
    polar p = polar_of(k, r, v_u1, v_u2);
    LLVMValueRef v_odd = LLVMBuildTrunc(b, v_element, LLVMInt1TypeInContext(k->e->context), "");
    return normal(k, r, p.v_radius,
                  l_select(k->e, v_odd, math(k, LF_OP_SIN, r->unit, p.v_angle), math(k, LF_OP_COS, r->unit, p.v_angle)));
}

// All elements of a block, of which v_element is the first. Of uniform numbers the bits: the rest is done where ways have met.
static void block_elements_of(lf_kernel *k, const draw *r, LLVMValueRef v_element, LLVMValueRef *out) {
    LLVMValueRef words[4];
    block_of(k, r, v_element, words);
    for (unsigned at = 0; at < block_elements(r); at++) {
        if (r->s->code == LF_OP_UNIFORM) {
            out[at] = bits_at(k, r, words, at);
            continue;
        }
        if (at % 2) continue;
        polar p = polar_of(k, r, unit_at(k, r, words, at), unit_at(k, r, words, at + 1));
        out[at] = normal(k, r, p.v_radius, math(k, LF_OP_COS, r->unit, p.v_angle)).re;
        out[at + 1] = normal(k, r, p.v_radius, math(k, LF_OP_SIN, r->unit, p.v_angle)).re;
    }
}

static draw draw_of(lf_kernel *k, const lf_stmt *s, const lf_register args[LF_RANDOM_ARGS]) {
    lf_dtype d = s->dtype, compute = lf_dtype_compute(d);
    return (draw){.s = s,
                  .v_seed = args[2].re,
                  .unit = s->code == LF_OP_UNIFORM ? d : compute,
                  .v_a = lf_emit_cast(k->e, d, compute, args[0]).re,
                  .v_b = lf_emit_cast(k->e, d, compute, args[1]).re};
}

static LLVMValueRef element_of(lf_kernel *k, const lf_register args[LF_RANDOM_ARGS]) {
    return LLVMBuildAdd(k->e->builder, args[4].re, args[3].re, "element");
}

lf_register lf_emit_random(lf_kernel *k, const lf_stmt *s, const lf_register args[LF_RANDOM_ARGS]) {
    draw r = draw_of(k, s, args);
    return any_element(k, &r, element_of(k, args));
}

// ---- all lanes -----------------------------------------------------------------------------------------------------------------

// Lanes' values by one of two ways where it is not known while compiling which: where the first lane begins a block, blocks are made once for all their elements; else apart.
typedef struct lanes_draw {
    draw r;
    LLVMValueRef v_elements[LF_MAX_LANES];
    LLVMTypeRef l_value; // bits of uniform numbers, or normal numbers
    LLVMValueRef v_apart[LF_MAX_LANES];
} lanes_draw;

// Neighbours: one block more than there are in the lanes, and each lane takes its word by how far the first is into its block.
static void draw_shifted(lf_kernel *k, lanes_draw *d) {
    LLVMBuilderRef b = k->e->builder;
    unsigned block = block_elements(&d->r);
    LLVMTypeRef l_bool = LLVMInt1TypeInContext(k->e->context);
    LLVMValueRef v_first = d->v_elements[0], all[LF_MAX_LANES + 4], v_bits[2];
    for (unsigned at = 0; at < k->lanes + block; at += block)
        block_elements_of(k, &d->r, LLVMBuildAdd(b, v_first, lf_i64_const(k, at), ""), &all[at]);
    for (unsigned i = 0; i < 2; i++)
        v_bits[i] = LLVMBuildTrunc(b, LLVMBuildLShr(b, v_first, lf_i64_const(k, i), ""), l_bool, "");
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        LLVMValueRef v[2] = {NULL, NULL};
        for (unsigned i = 0; i < block / 2; i++) v[i] = l_select(k->e, v_bits[0], all[lane + 2 * i + 1], all[lane + 2 * i]);
        d->v_apart[lane] = block == 2 ? v[0] : l_select(k->e, v_bits[1], v[1], v[0]);
    }
}

// Any elements: one at a time, in a loop.
static void draw_singly(lf_kernel *k, lanes_draw *d) {
    LLVMBuilderRef b = k->e->builder;
    LLVMTypeRef l_numbers = LLVMArrayType2(k->l_i64, k->lanes), l_values = LLVMArrayType2(d->l_value, k->lanes);
    LLVMValueRef v_numbers = lf_alloca(k, l_numbers, "elements"), v_values = lf_alloca(k, l_values, "drawn");
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        LLVMValueRef v_lane = lf_i64_const(k, lane);
        LLVMBuildStore(b, d->v_elements[lane], LLVMBuildInBoundsGEP2(b, k->l_i64, v_numbers, &v_lane, 1, ""));
    }
    lf_loop_blocks loop;
    LLVMValueRef v_at = lf_for_begin(k, &loop, lf_i64_const(k, 0), lf_i64_const(k, k->lanes), lf_i64_const(k, 1), "lane");
    LLVMValueRef v_number =
        LLVMBuildLoad2(b, k->l_i64, LLVMBuildInBoundsGEP2(b, k->l_i64, v_numbers, &v_at, 1, ""), "number");
    LLVMValueRef v_one = d->r.s->code == LF_OP_UNIFORM ? bits(k, &d->r, v_number) : any_element(k, &d->r, v_number).re;
    LLVMBuildStore(b, v_one, LLVMBuildInBoundsGEP2(b, d->l_value, v_values, &v_at, 1, ""));
    lf_for_end(k, &loop, LF_HINT_ROLLED);
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        LLVMValueRef v_lane = lf_i64_const(k, lane);
        d->v_apart[lane] = LLVMBuildLoad2(b, d->l_value, LLVMBuildInBoundsGEP2(b, d->l_value, v_values, &v_lane, 1, ""), "");
    }
}

// The first lane begins a block, whatever the kernel is given.
static bool begins_block(const lf_kernel *k, const lf_stmt *s, unsigned block) {
    const lf_stmt *offset = &k->loop->stmts[s->args[3]];
    return offset->kind == LF_STMT_CONST && offset->constant.word[0] % block == 0 && lf_is_multiple(k, s->args[4]);
}

void lf_emit_random_lanes(lf_kernel *k, const lf_stmt *s, const lf_register (*args)[LF_RANDOM_ARGS], lf_register *out) {
    LLVMBuilderRef b = k->e->builder;
    lanes_draw d = {.r = draw_of(k, s, args[0])};
    unsigned block = block_elements(&d.r);
    bool is_uniform = s->code == LF_OP_UNIFORM, neighbours = lf_grows_by_one(k, s->args[LF_RANDOM_ARGS - 1]);
    d.l_value = !is_uniform ? lf_register_type(k->e, s->dtype) : is_wide(&d.r) ? k->l_i64 : k->l_i32;
    LLVMValueRef v_first = element_of(k, args[0]), whole[LF_MAX_LANES];
    if (neighbours && begins_block(k, s, block)) {
        for (unsigned lane = 0; lane < k->lanes; lane += block)
            block_elements_of(k, &d.r, LLVMBuildAdd(b, v_first, lf_i64_const(k, lane), ""), &whole[lane]);
        for (unsigned lane = 0; lane < k->lanes; lane++)
            out[lane] = is_uniform ? uniform(k, &d.r, unit_of(k, &d.r, whole[lane])) : (lf_register){whole[lane], NULL};
        return;
    }
    LLVMValueRef v_aligned =
        LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, v_first, lf_i64_const(k, block - 1), ""), lf_i64_const(k, 0), "aligned");
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        d.v_elements[lane] = element_of(k, args[lane]);
        LLVMValueRef v_next =
            LLVMBuildICmp(b, LLVMIntEQ, d.v_elements[lane], LLVMBuildAdd(b, v_first, lf_i64_const(k, lane), ""), "");
        if (!neighbours) v_aligned = LLVMBuildAnd(b, v_aligned, v_next, "aligned");
    }
    LLVMBasicBlockRef b_whole = lf_block(k, "whole_blocks"), b_apart = lf_block(k, "apart"), b_done = lf_block(k, "drawn"),
                      from[2];
    LLVMBuildCondBr(b, v_aligned, b_whole, b_apart);
    LLVMPositionBuilderAtEnd(b, b_whole);
    for (unsigned lane = 0; lane < k->lanes; lane += block)
        block_elements_of(k, &d.r, LLVMBuildAdd(b, v_first, lf_i64_const(k, lane), ""), &whole[lane]);
    from[0] = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, b_done);
    LLVMPositionBuilderAtEnd(b, b_apart);
    if (neighbours && is_uniform)
        draw_shifted(k, &d);
    else
        draw_singly(k, &d);
    from[1] = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, b_done);
    LLVMPositionBuilderAtEnd(b, b_done);
    for (unsigned lane = 0; lane < k->lanes; lane++) {
        out[lane] = (lf_register){LLVMBuildPhi(b, d.l_value, "drawn"), NULL};
        LLVMAddIncoming(out[lane].re, (LLVMValueRef[]){whole[lane], d.v_apart[lane]}, from, 2);
    }
    for (unsigned lane = 0; lane < k->lanes && is_uniform; lane++)
        out[lane] = uniform(k, &d.r, unit_of(k, &d.r, out[lane].re));
}

bool lf_random_shares(const lf_kernel *k, const lf_stmt *s) { return k->lanes % (s->dtype == LF_F64 ? 2 : 4) == 0; }
