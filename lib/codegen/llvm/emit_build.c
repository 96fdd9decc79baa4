// Builder helpers that are too long for a header: intrinsics, calls into lib/math, stack room.
#include "codegen/llvm/emit_build.h"
#include <stdio.h>
#include <string.h>

LLVMValueRef lf_emit_relax(lf_emit *e, LLVMValueRef v_result) {
    // A folded constant is no instruction and takes no flags. No arcp: x·(1/y) overflows where y is subnormal.
    if (e->fast && LLVMIsAInstruction(v_result) && LLVMCanValueUseFastMathFlags(v_result))
        LLVMSetFastMathFlags(v_result, LLVMFastMathAllowContract);
    return v_result;
}

LLVMValueRef lf_emit_intrinsic(lf_emit *e, const char *name, LLVMTypeRef overload, const LLVMValueRef *args, unsigned n) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    bool overloaded = LLVMIntrinsicIsOverloaded(id);
    LLVMValueRef v_function = LLVMGetIntrinsicDeclaration(e->module, id, &overload, overloaded ? 1 : 0);
    LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, &overload, overloaded ? 1 : 0);
    return LLVMBuildCall2(e->builder, type, v_function, (LLVMValueRef *)args, n, "made");
}

static void add_attribute(lf_emit *e, LLVMValueRef v_function, LLVMAttributeIndex where, const char *name, uint64_t value) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(v_function, where, LLVMCreateEnumAttribute(e->context, kind, value));
}

// Declares a function of lib/math once a module. What is said here must hold for its body, which is linked in later.
static LLVMValueRef declare(lf_emit *e, const char *name, LLVMTypeRef type) {
    LLVMValueRef v_function = LLVMGetNamedFunction(e->module, name);
    if (v_function) return v_function;
    v_function = LLVMAddFunction(e->module, name, type);
    add_attribute(e, v_function, LLVMAttributeFunctionIndex, "nounwind", 0);
    add_attribute(e, v_function, LLVMAttributeFunctionIndex, "willreturn", 0);
    LLVMTypeRef params[8];
    unsigned n = LLVMCountParamTypes(type);
    bool pure = true;
    LLVMGetParamTypes(type, params);
    for (unsigned i = 0; i < n; i++) {
        if (LLVMGetTypeKind(params[i]) == LLVMPointerTypeKind) pure = false;
        // lib/math is compiled by clang for x86-64, whose callees take a 16-bit argument to be extended.
        if (LLVMGetTypeKind(params[i]) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(params[i]) < 32)
            add_attribute(e, v_function, i + 1, "zeroext", 0);
    }
    if (pure) add_attribute(e, v_function, LLVMAttributeFunctionIndex, "memory", 0);
    return v_function;
}

static LLVMValueRef call(lf_emit *e, const char *name, LLVMTypeRef result, const LLVMValueRef *args, unsigned n) {
    LLVMTypeRef params[8];
    for (unsigned i = 0; i < n; i++) params[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, params, n, 0);
    LLVMValueRef v_function = declare(e, name, type);
    bool is_void = LLVMGetTypeKind(result) == LLVMVoidTypeKind;
    LLVMValueRef v_call = LLVMBuildCall2(e->builder, type, v_function, (LLVMValueRef *)args, n, is_void ? "" : "math");
    for (unsigned i = 0; i < n; i++) {
        if (LLVMGetTypeKind(params[i]) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(params[i]) >= 32) continue;
        unsigned kind = LLVMGetEnumAttributeKindForName("zeroext", 7);
        LLVMAddCallSiteAttribute(v_call, i + 1, LLVMCreateEnumAttribute(e->context, kind, 0));
    }
    return v_call;
}

LLVMValueRef lf_emit_call(lf_emit *e, const char *name, LLVMTypeRef result, const LLVMValueRef *args, unsigned n) {
    return call(e, name, result, args, n);
}

LLVMValueRef lf_emit_math(lf_emit *e, const char *name, const LLVMValueRef *args, unsigned n) {
    char symbol[48];
    snprintf(symbol, sizeof symbol, "lfm_%s_%s", name, l_is_double(args[0]) ? "f64" : "f32");
    return call(e, symbol, LLVMTypeOf(args[0]), args, n);
}

lf_register lf_emit_complex_math(lf_emit *e, const char *name, lf_dtype part, const lf_register *args, unsigned n) {
    char symbol[48];
    snprintf(symbol, sizeof symbol, "lfm_c%s_%s", name, part == LF_F64 ? "f64" : "f32");
    LLVMTypeRef type = l_real_type(e, part);
    LLVMValueRef v_args[6];
    for (unsigned i = 0; i < n; i++) {
        v_args[2 * i] = args[i].re;
        v_args[2 * i + 1] = args[i].im;
    }
    LLVMValueRef v_re = v_args[2 * n] = lf_emit_stack(e, type), v_im = v_args[2 * n + 1] = lf_emit_stack(e, type);
    call(e, symbol, LLVMVoidTypeInContext(e->context), v_args, 2 * n + 2);
    return l_pair(LLVMBuildLoad2(e->builder, type, v_re, "re"), LLVMBuildLoad2(e->builder, type, v_im, "im"));
}

LLVMValueRef lf_emit_assembly(lf_emit *e, const char *text, const char *constraints, LLVMTypeRef result,
                              const LLVMValueRef *args, unsigned n) {
    LLVMTypeRef params[8];
    for (unsigned i = 0; i < n; i++) params[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, params, n, 0);
    LLVMValueRef v_asm =
        LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints), 0, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef v_call = LLVMBuildCall2(e->builder, type, v_asm, (LLVMValueRef *)args, n, "made");
    static const char *const pure[] = {"nounwind", "willreturn", "memory"}; // memory: 0, none
    for (unsigned i = 0; i < sizeof pure / sizeof *pure; i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(pure[i], strlen(pure[i]));
        LLVMAddCallSiteAttribute(v_call, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(e->context, kind, 0));
    }
    return v_call;
}

static LLVMValueRef current_function(lf_emit *e) { return LLVMGetBasicBlockParent(LLVMGetInsertBlock(e->builder)); }

LLVMBasicBlockRef lf_emit_block(lf_emit *e, const char *name) {
    return LLVMAppendBasicBlockInContext(e->context, current_function(e), name);
}

LLVMValueRef lf_emit_stack(lf_emit *e, LLVMTypeRef type) {
    LLVMBasicBlockRef b_here = LLVMGetInsertBlock(e->builder), b_entry = LLVMGetEntryBasicBlock(current_function(e));
    LLVMValueRef v_first = LLVMGetFirstInstruction(b_entry);
    if (v_first)
        LLVMPositionBuilderBefore(e->builder, v_first);
    else
        LLVMPositionBuilderAtEnd(e->builder, b_entry);
    LLVMValueRef v_room = LLVMBuildAlloca(e->builder, type, "room");
    LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0);
    if (LLVMTypeOf(v_room) != pointer) v_room = LLVMBuildAddrSpaceCast(e->builder, v_room, pointer, "room");
    LLVMPositionBuilderAtEnd(e->builder, b_here);
    return v_room;
}
