// Calls of the rows of device_intrinsics.def become calls of the runtime with words as operands and results.
#include "codegen/sim/lower.h"
#include <string.h>

// Row numbers are places in the file, as in the runtime's table.
typedef struct row {
    const char *name;
    bool assembly;
} row;
#define LF_DEVICE(name, flags, sm, sim) {name, false},
#define LF_DEVICE_ASM(text, flags, sm, sim) {text, true},
static const row rows[] = {
#include "base/device_intrinsics.def"
};
#undef LF_DEVICE
#undef LF_DEVICE_ASM
enum { N_ROWS = sizeof rows / sizeof *rows };

static const row *find_row(const char *name, size_t length, bool assembly) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].assembly == assembly && strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            return &rows[i];
    return NULL;
}

static const row *row_of(LLVMValueRef v_call, const char **out_name, size_t *out_length) {
    LLVMValueRef v_callee = LLVMGetCalledValue(v_call);
    if (LLVMIsAInlineAsm(v_callee)) {
        *out_name = LLVMGetInlineAsmAsmString(v_callee, out_length);
        return find_row(*out_name, *out_length, true);
    }
    unsigned id = LLVMIsAFunction(v_callee) ? LLVMGetIntrinsicID(v_callee) : 0;
    if (!id) return NULL;
    *out_name = LLVMIntrinsicGetName(id, out_length);
    return find_row(*out_name, *out_length, false);
}

static unsigned bits_of(LLVMTypeRef type) {
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(type);
    case LLVMHalfTypeKind: return 16;
    case LLVMFloatTypeKind: return 32;
    case LLVMDoubleTypeKind:
    case LLVMPointerTypeKind: return 64;
    default: return 0;
    }
}

static bool is_integer(LLVMTypeRef type) { return LLVMGetTypeKind(type) == LLVMIntegerTypeKind; }
static bool is_pointer(LLVMTypeRef type) { return LLVMGetTypeKind(type) == LLVMPointerTypeKind; }

// NULL when the value is no scalar of up to 64 bits.
static LLVMValueRef to_word(lf_sim_lowering *s, LLVMValueRef v) {
    LLVMBuilderRef b = s->l->emit.builder;
    LLVMTypeRef type = LLVMTypeOf(v);
    unsigned bits = bits_of(type);
    if (!bits || bits > 64) return NULL;
    if (is_pointer(type)) return LLVMBuildPtrToInt(b, v, s->l_i64, "");
    if (!is_integer(type)) v = LLVMBuildBitCast(b, v, LLVMIntTypeInContext(s->l->emit.context, bits), "");
    return bits < 64 ? LLVMBuildZExt(b, v, s->l_i64, "") : v;
}

static LLVMValueRef from_word(lf_sim_lowering *s, LLVMTypeRef type, LLVMValueRef v) {
    LLVMBuilderRef b = s->l->emit.builder;
    unsigned bits = bits_of(type);
    if (!bits || bits > 64) return NULL;
    if (is_pointer(type)) return LLVMBuildIntToPtr(b, v, type, "");
    if (bits < 64) v = LLVMBuildTrunc(b, v, LLVMIntTypeInContext(s->l->emit.context, bits), "");
    return is_integer(type) ? v : LLVMBuildBitCast(b, v, type, "");
}

static LLVMValueRef cell(lf_sim_lowering *s, LLVMValueRef v_words, unsigned i) {
    LLVMValueRef v_index = LLVMConstInt(s->l_i64, i, false);
    return LLVMBuildInBoundsGEP2(s->l->emit.builder, s->l_i64, v_words, &v_index, 1, "");
}

static LLVMValueRef result(lf_sim_lowering *s, LLVMTypeRef type, unsigned i) {
    return from_word(s, type, LLVMBuildLoad2(s->l->emit.builder, s->l_i64, cell(s, s->v_out, i), ""));
}

static lf_status take_results(lf_sim_lowering *s, LLVMValueRef v_call) {
    LLVMTypeRef type = LLVMTypeOf(v_call);
    LLVMValueRef v = NULL;
    if (type == s->l_void) return NULL;
    if (LLVMGetTypeKind(type) != LLVMStructTypeKind) {
        v = result(s, type, 0);
    } else {
        unsigned n = LLVMCountStructElementTypes(type);
        v = n <= LF_SIM_MAX_WORDS ? LLVMGetUndef(type) : NULL;
        for (unsigned i = 0; v && i < n; i++) {
            LLVMValueRef v_part = result(s, LLVMStructGetTypeAtIndex(type, i), i);
            v = v_part ? LLVMBuildInsertValue(s->l->emit.builder, v, v_part, i, "") : NULL;
        }
    }
    if (!v) return lf_sim_refuse(s, "results that are no words", v_call);
    LLVMReplaceAllUsesWith(v_call, v);
    return NULL;
}

lf_status lf_sim_lower_call(lf_sim_lowering *s, LLVMValueRef v_call, bool *out_done) {
    const char *name = NULL;
    size_t length = 0;
    const row *r = row_of(v_call, &name, &length);
    *out_done = r != NULL;
    if (!r)
        return LLVMIsAInlineAsm(LLVMGetCalledValue(v_call)) ? lf_sim_refuse(s, "inline assembly that is not listed", v_call)
                                                            : NULL;
    unsigned n = LLVMGetNumArgOperands(v_call);
    if (n > LF_SIM_MAX_WORDS) return lf_sim_refuse(s, "too many operands", v_call);
    LLVMBuilderRef b = s->l->emit.builder;
    LLVMPositionBuilderBefore(b, v_call);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef v = to_word(s, LLVMGetOperand(v_call, i));
        if (!v) return lf_sim_refuse(s, "an operand that is no word", v_call);
        LLVMBuildStore(b, v, cell(s, s->v_in, i));
    }
    LLVMValueRef args[] = {LLVMConstInt(s->l_i32, (unsigned long long)(r - rows), false),
                           LLVMConstInt(s->l_i32, lf_sim_add_site(s, v_call, name, length, (lf_sim_site){0}), false),
                           s->v_in, s->v_out};
    lf_sim_call(s, offsetof(lf_sim_calls, device), args, 4);
    LF_TRY(take_results(s, v_call));
    LLVMInstructionEraseFromParent(v_call);
    return NULL;
}
