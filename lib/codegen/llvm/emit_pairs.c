// Halves two at a time. On a GPU a word holds two neighbouring lanes (that is how they come from memory), and one instruction computes
// both. The bits are those of f32 arithmetic rounded to the half: f32 has more than twice its digits and two, so that rounding once or
// twice is the same for sums, differences and products (bf16's subnormals included: what f32 loses there lies below half of the least
// bf16). Between such ops a pair is never taken apart (lf_emit_pack_halves sees that it was a word).
#include "codegen/llvm/emit_family.h"

typedef struct pair_type {
    const char *fma, *min, *max;
    uint32_t one, minus_one; // in both halves
} pair_type;
static const pair_type bf16_pairs = {"fma.rn.bf16x2 $0, $1, $2, $3;", "min.NaN.bf16x2 $0, $1, $2;",
                                     "max.NaN.bf16x2 $0, $1, $2;", 0x3f803f80, 0xbf80bf80};
static const pair_type f16_pairs = {"fma.rn.f16x2 $0, $1, $2, $3;", "min.NaN.f16x2 $0, $1, $2;", "max.NaN.f16x2 $0, $1, $2;",
                                    0x3c003c00, 0xbc00bc00};
static const uint32_t SIGNS = 0x80008000, SIZES = 0x7fff7fff, LOW = 0xffff;

static LLVMValueRef word(lf_emit *e, uint32_t value) { return l_int(e, 32, value); }

static LLVMValueRef fma_pair(lf_emit *e, const pair_type *t, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
    return lf_emit_assembly(e, t->fma, "=r,r,r,r", l_int_type(e, 32), (LLVMValueRef[]){a, b, c}, 3);
}

static LLVMValueRef limit_pair(lf_emit *e, const char *text, LLVMValueRef a, LLVMValueRef b) {
    return b ? lf_emit_assembly(e, text, "=r,r,r", l_int_type(e, 32), (LLVMValueRef[]){a, b}, 2) : a;
}

static bool has_pair_form(lf_opcode code) {
    switch (code) {
    case LF_OP_ADD:
    case LF_OP_SUB:
    case LF_OP_MUL:
    case LF_OP_FMA:
    case LF_OP_NEG:
    case LF_OP_ABS:
    case LF_OP_MIN:
    case LF_OP_MAX:
    case LF_OP_RELU:
    case LF_OP_CLAMP:
    case LF_OP_SELECT: return true;
    default: return false;
    }
}

// One pair of lanes; v: its operands as words, NULL for one that is omitted.
static LLVMValueRef pair_op(lf_emit *e, lf_opcode code, const pair_type *t, const LLVMValueRef *v) {
    switch (code) {
    case LF_OP_ADD: return fma_pair(e, t, v[0], word(e, t->one), v[1]);
    case LF_OP_SUB: return fma_pair(e, t, v[1], word(e, t->minus_one), v[0]);
    case LF_OP_MUL: return fma_pair(e, t, v[0], v[1], word(e, SIGNS)); // less 0: the product's sign stays
    case LF_OP_FMA: return fma_pair(e, t, v[0], v[1], v[2]);
    case LF_OP_NEG: return l_xor(e, v[0], word(e, SIGNS));
    case LF_OP_ABS: return l_and(e, v[0], word(e, SIZES));
    case LF_OP_MIN: return limit_pair(e, t->min, v[0], v[1]);
    case LF_OP_MAX: return limit_pair(e, t->max, v[0], v[1]);
    case LF_OP_RELU: return limit_pair(e, t->max, v[0], word(e, 0));
    default: return limit_pair(e, t->min, limit_pair(e, t->max, v[0], v[1]), v[2]); // clamp
    }
}

static LLVMValueRef select_pair(lf_emit *e, LLVMValueRef v_low, LLVMValueRef v_high, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef v = l_select(e, v_low, a, b);
    if (v_low == v_high) return v;
    return l_or(e, l_and(e, v, word(e, LOW)), l_and(e, l_select(e, v_high, a, b), word(e, ~LOW)));
}

bool lf_emit_pairs(lf_emit *e, lf_opcode code, lf_dtype d, const lf_register (*args)[LF_EMIT_OPERANDS], unsigned lanes,
                   lf_register *out) {
    if (!lf_is_half(d) || !e->has_bf16 || lanes % 2 || !has_pair_form(code)) return false;
    const pair_type *t = d == LF_BF16 ? &bf16_pairs : &f16_pairs;
    for (unsigned lane = 0; lane < lanes; lane += 2) {
        const lf_register *low = args[lane], *high = args[lane + 1];
        LLVMValueRef v[3] = {NULL, NULL, NULL}, v_pair;
        for (unsigned i = code == LF_OP_SELECT; i < 3; i++)
            if (low[i].re) v[i] = lf_emit_pack_halves(e, low[i].re, high[i].re);
        v_pair = code == LF_OP_SELECT ? select_pair(e, low[0].re, high[0].re, v[1], v[2]) : pair_op(e, code, t, v);
        for (unsigned i = 0; i < 2; i++) out[lane + i] = l_register(lf_emit_half_of_pair(e, v_pair, i));
    }
    return true;
}
