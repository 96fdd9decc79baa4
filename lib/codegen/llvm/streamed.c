// See streamed.h. LLVM cannot write the hint, so what is marked becomes inline assembly.
#include "codegen/llvm/streamed.h"
#include <string.h>

enum { MOST_WORDS = 4, LEAST_SM = 90 }; // where it was measured

typedef struct hinted {
    const char *copy; // the intrinsic's name; NULL: a load
    unsigned words;   // of 32 bits, that a load gives
    const char *code, *constraints;
} hinted;
static const hinted forms[] = {
    {NULL, 1, "ld.global.L2::cache_hint.b32 $0, [$1], $2;", "=r,l,l"},
    {NULL, 2, "ld.global.L2::cache_hint.v2.b32 {$0, $1}, [$2], $3;", "=r,=r,l,l"},
    {NULL, 4, "ld.global.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, [$4], $5;", "=r,=r,=r,=r,l,l"},
    {"llvm.nvvm.cp.async.ca.shared.global.8", 0, "cp.async.ca.shared.global.L2::cache_hint [$0], [$1], 8, $2;", "l,l,l"},
    {"llvm.nvvm.cp.async.cg.shared.global.16", 0, "cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, $2;", "l,l,l"},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

static unsigned mark_kind(LLVMContextRef c) {
    static const char mark[] = "lfuser.streamed";
    return LLVMGetMDKindIDInContext(c, mark, sizeof mark - 1);
}

void lf_mark_streamed(lf_emit *e, LLVMValueRef v_instruction) {
    LLVMValueRef v_nothing = LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, NULL, 0));
    LLVMSetMetadata(v_instruction, mark_kind(e->context), v_nothing);
}

// Of a load of whole words, aligned to its size; else 0.
static unsigned loaded_words(LLVMValueRef v_load) {
    LLVMTypeRef type = LLVMTypeOf(v_load);
    unsigned parts = 1, bits = 0;
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
        parts = LLVMGetVectorSize(type);
        type = LLVMGetElementType(type);
    }
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind: bits = LLVMGetIntTypeWidth(type); break;
    case LLVMFloatTypeKind: bits = 32; break;
    case LLVMDoubleTypeKind: bits = 64; break;
    default: break;
    }
    return bits % 32 || LLVMGetAlignment(v_load) < parts * bits / 8 ? 0 : parts * bits / 32;
}

static const hinted *form_of(LLVMValueRef v) {
    const char *name = NULL;
    size_t length = 0;
    unsigned words = 0;
    if (LLVMIsALoadInst(v))
        words = loaded_words(v);
    else if (LLVMIsACallInst(v) && LLVMIsAFunction(LLVMGetCalledValue(v)))
        name = LLVMGetValueName2(LLVMGetCalledValue(v), &length);
    for (unsigned i = 0; i < N_FORMS && (words || name); i++) {
        const hinted *f = &forms[i];
        if (name ? f->copy && strlen(f->copy) == length && !memcmp(f->copy, name, length) : !f->copy && f->words == words)
            return f;
    }
    return NULL;
}

static LLVMValueRef assembly(lf_emit *e, const hinted *f, LLVMTypeRef result, LLVMValueRef *args, unsigned n, bool stays) {
    LLVMTypeRef params[3];
    for (unsigned i = 0; i < n; i++) params[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, params, n, false);
    LLVMValueRef v_asm = LLVMGetInlineAsm(type, f->code, strlen(f->code), f->constraints, strlen(f->constraints), stays,
                                          false, LLVMInlineAsmDialectATT, false);
    return LLVMBuildCall2(e->builder, type, v_asm, args, n, "");
}

static LLVMValueRef make_policy(lf_emit *e, LLVMValueRef v_function) {
    static const hinted policy = {.code = "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;", .constraints = "=l"};
    LLVMPositionBuilderBefore(e->builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(v_function)));
    return assembly(e, &policy, LLVMInt64TypeInContext(e->context), NULL, 0, false);
}

// What takes the instruction's place stays between the loads, stores and barriers around it.
static void give_hint(lf_emit *e, LLVMValueRef v, const hinted *f, LLVMValueRef v_policy) {
    LLVMTypeRef l_word = LLVMInt32TypeInContext(e->context), words[MOST_WORDS] = {l_word, l_word, l_word, l_word};
    LLVMPositionBuilderBefore(e->builder, v);
    if (f->copy) {
        LLVMValueRef args[] = {LLVMGetOperand(v, 0), LLVMGetOperand(v, 1), v_policy};
        assembly(e, f, LLVMVoidTypeInContext(e->context), args, 3, true);
    } else {
        LLVMTypeRef l_result = f->words > 1 ? LLVMStructTypeInContext(e->context, words, f->words, false) : l_word;
        LLVMValueRef args[] = {LLVMGetOperand(v, 0), v_policy}, v_words = assembly(e, f, l_result, args, 2, true);
        LLVMValueRef v_all = f->words > 1 ? LLVMGetUndef(LLVMVectorType(l_word, f->words)) : v_words;
        for (unsigned i = 0; i < f->words && f->words > 1; i++)
            v_all = LLVMBuildInsertElement(e->builder, v_all, LLVMBuildExtractValue(e->builder, v_words, i, ""),
                                           LLVMConstInt(l_word, i, false), "");
        LLVMReplaceAllUsesWith(v, LLVMBuildBitCast(e->builder, v_all, LLVMTypeOf(v), ""));
    }
    LLVMInstructionEraseFromParent(v);
}

void lf_hint_streamed(lf_llvm *l) {
    lf_emit *e = &l->emit;
    unsigned kind = mark_kind(e->context);
    if (l->target.kind != LF_TARGET_CUDA || l->target.sm < LEAST_SM) return;
    for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f)) {
        LLVMValueRef v_policy = NULL;
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef v = LLVMGetFirstInstruction(b), v_next; v; v = v_next) {
                v_next = LLVMGetNextInstruction(v);
                const hinted *form = LLVMGetMetadata(v, kind) ? form_of(v) : NULL;
                if (!form) continue;
                if (!v_policy) v_policy = make_policy(e, f);
                give_hint(e, v, form, v_policy);
            }
    }
}
