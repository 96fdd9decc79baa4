// Philox-4x32-10, the counter-based generator behind uniform, normal and dropout.
#include "codegen/llvm/emit_build.h"

static LLVMValueRef low_word(lf_emit *e, LLVMValueRef v) { return LLVMBuildTrunc(e->builder, v, l_int_type(e, 32), "low"); }
static LLVMValueRef high_word(lf_emit *e, LLVMValueRef v) {
    return low_word(e, LLVMBuildLShr(e->builder, v, l_int(e, 64, 32), "high"));
}
static LLVMValueRef wide_product(lf_emit *e, LLVMValueRef v_word, uint64_t factor) {
    LLVMValueRef v_wide = LLVMBuildZExt(e->builder, v_word, l_int_type(e, 64), "wide");
    return LLVMBuildMul(e->builder, v_wide, l_int(e, 64, factor), "product");
}
static LLVMValueRef plus(lf_emit *e, LLVMValueRef v_word, uint64_t step) {
    return LLVMBuildAdd(e->builder, v_word, l_int(e, 32, step), "key");
}

void lf_emit_philox(lf_emit *e, LLVMValueRef v_key, LLVMValueRef v_low, LLVMValueRef v_high, LLVMValueRef out_words[4]) {
    LLVMValueRef x[4] = {low_word(e, v_low), high_word(e, v_low), low_word(e, v_high), high_word(e, v_high)};
    LLVMValueRef k[2] = {low_word(e, v_key), high_word(e, v_key)};
    for (int round = 0; round < 10; round++) {
        LLVMValueRef p = wide_product(e, x[0], 0xD2511F53), q = wide_product(e, x[2], 0xCD9E8D57);
        x[0] = l_xor(e, l_xor(e, high_word(e, q), x[1]), k[0]);
        x[1] = low_word(e, q);
        x[2] = l_xor(e, l_xor(e, high_word(e, p), x[3]), k[1]);
        x[3] = low_word(e, p);
        k[0] = plus(e, k[0], 0x9E3779B9);
        k[1] = plus(e, k[1], 0xBB67AE85);
    }
    for (int i = 0; i < 4; i++) out_words[i] = x[i];
}
