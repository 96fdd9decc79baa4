// See bits.h.
#include "analysis/bits.h"

enum { MOST_VISITS = 64 };

static bool is_move(lf_opcode code) {
    return code == LF_OP_SELECT || code == LF_OP_REAL || code == LF_OP_IMAG || code == LF_OP_CONJ || code == LF_OP_COMPLEX ||
           code == LF_OP_ITEM || code == LF_OP_SCALAR_TENSOR;
}

// A constant that is no NaN has nothing to keep, and does not make a select keep the other side's.
static bool is_number(const lf_op *op) {
    static const uint64_t infinity[LF_DTYPE_COUNT] = {
        [LF_F16] = 0x7c00, [LF_BF16] = 0x7f80, [LF_F32] = 0x7f800000, [LF_F64] = 0x7ff0000000000000};
    if (op->code != LF_OP_CONST) return false;
    lf_dtype d = op->results[0].type.dtype;
    return infinity[d] && (op->constant.word[0] & (infinity[d] | (infinity[d] - 1))) <= infinity[d];
}

bool lf_keeps_bits(const lf_value *value) {
    const lf_value *left[MOST_VISITS];
    unsigned n = 0;
    left[n++] = value;
    // A bound on the walk: nested selects deeper than it count as computed.
    for (unsigned visits = 0; n > 0 && visits < MOST_VISITS; visits++) {
        const lf_op *op = left[--n]->def;
        lf_op_kind kind = lf_op_info_of(op->code)->kind;
        if (is_number(op)) continue;
        if (op->code == LF_OP_BITCAST || op->code == LF_OP_PARAM || op->code == LF_OP_CONST || op->code == LF_OP_TENSOR)
            return true;
        bool moves =
            is_move(op->code) || kind == LF_KIND_VIEW || op->code == LF_OP_SORT || op->code == LF_OP_TOPK ||
            op->code == LF_OP_SCATTER ||
            (kind == LF_KIND_INDEXED && op->code != LF_OP_IOTA && op->code != LF_OP_UNIFORM && op->code != LF_OP_NORMAL);
        if (!moves) continue;
        for (unsigned i = op->code == LF_OP_SELECT; i < op->n_operands; i++) {
            const lf_value *v = op->operands[i];
            if (v && lf_dtype_category(v->type.dtype) >= LF_CATEGORY_FLOAT && n < MOST_VISITS) left[n++] = v;
        }
    }
    return false;
}
