// See sim.h: the kernel's new shape, its shared memory, and the walk over its instructions.
#include "codegen/sim/lower.h"
#include "codegen/llvm/llvm_status.h"
#include "codegen/llvm/target.h"
#include <stdlib.h>
#include <string.h>

enum { PTX_KERNEL = 71, SHARED_GUARD = 64 }; // bytes between shared arrays that belong to none

lf_status lf_sim_refuse(const lf_sim_lowering *s, const char *why, LLVMValueRef v) {
    char *text = LLVMPrintValueToString(v);
    lf_status status =
        lf_error(s->l->allocator, LF_UNSUPPORTED, "%s on the SIM device: %.300s", why, text + strspn(text, " "));
    LLVMDisposeMessage(text);
    return status;
}

// ---- calls -----------------------------------------------------------------------------------------------------------------

LLVMValueRef lf_sim_call(lf_sim_lowering *s, size_t member, LLVMValueRef *args, unsigned n) {
    LLVMBuilderRef b = s->l->emit.builder;
    LLVMTypeRef types[8] = {s->l_ptr};
    LLVMValueRef all[8] = {s->v_thread};
    for (unsigned i = 0; i < n; i++) all[1 + i] = args[i], types[1 + i] = LLVMTypeOf(args[i]);
    LLVMValueRef v_offset = LLVMConstInt(s->l_i64, member, false);
    LLVMValueRef v_member = LLVMBuildInBoundsGEP2(b, s->l_i8, s->v_calls, &v_offset, 1, "");
    LLVMValueRef v_function = LLVMBuildLoad2(b, s->l_ptr, v_member, "");
    return LLVMBuildCall2(b, LLVMFunctionType(s->l_void, types, n + 1, false), v_function, all, n + 1, "");
}

static LLVMValueRef face_member(lf_sim_lowering *s, size_t member, const char *name) {
    LLVMBuilderRef b = s->l->emit.builder;
    LLVMValueRef v_offset = LLVMConstInt(s->l_i64, member, false);
    return LLVMBuildLoad2(b, s->l_ptr, LLVMBuildInBoundsGEP2(b, s->l_i8, s->v_thread, &v_offset, 1, ""), name);
}

// ---- the kernel --------------------------------------------------------------------------------------------------------------

static lf_status find_kernel(lf_sim_lowering *s) {
    for (LLVMValueRef f = LLVMGetFirstFunction(s->l->emit.module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f) || LLVMGetFunctionCallConv(f) != PTX_KERNEL) continue;
        if (s->v_kernel) return lf_error(s->l->allocator, LF_UNSUPPORTED, "the module has two kernels");
        s->v_kernel = f;
    }
    if (!s->v_kernel) return lf_error(s->l->allocator, LF_INVALID_ARGUMENT, "the module has no kernel");
    if (LLVMCountParams(s->v_kernel) != 1) return lf_sim_refuse(s, "a kernel with other than one parameter", s->v_kernel);
    return NULL;
}

static uint64_t byval_bytes(const lf_sim_lowering *s, LLVMValueRef f) {
    LLVMAttributeRef byval = LLVMGetEnumAttributeAtIndex(f, 1, LLVMGetEnumAttributeKindForName("byval", 5));
    return byval ? LLVMABISizeOfType(s->l->layout, LLVMGetTypeAttributeValue(byval)) : 0;
}

// As nvvm.cluster_dim says: "blocks,1,1".
static uint32_t cluster_of(LLVMValueRef f) {
    static const char name[] = "nvvm.cluster_dim";
    LLVMAttributeRef a = LLVMGetStringAttributeAtIndex(f, LLVMAttributeFunctionIndex, name, sizeof name - 1);
    unsigned length;
    return a ? (uint32_t)strtoul(LLVMGetStringAttributeValue(a, &length), NULL, 10) : 0;
}

// void kernel(args) becomes void kernel(thread, args): a new function takes over the blocks.
static void reshape(lf_sim_lowering *s) {
    LLVMValueRef v_old = s->v_kernel;
    LLVMBuilderRef b = s->l->emit.builder;
    LLVMTypeRef params[] = {s->l_ptr, s->l_ptr};
    s->v_kernel = LLVMAddFunction(s->l->emit.module, "lf_sim_kernel", LLVMFunctionType(s->l_void, params, 2, false));
    LLVMSetLinkage(s->v_kernel, LLVMInternalLinkage);
    s->v_thread = LLVMGetParam(s->v_kernel, 0);
    s->v_args = LLVMGetParam(s->v_kernel, 1);
    s->args_bytes = byval_bytes(s, v_old);
    s->cluster = cluster_of(v_old);
    LLVMBasicBlockRef b_entry = LLVMGetEntryBasicBlock(v_old);
    for (LLVMBasicBlockRef each = b_entry, next; each; each = next) {
        next = LLVMGetNextBasicBlock(each);
        LLVMRemoveBasicBlockFromParent(each);
        LLVMAppendExistingBasicBlock(s->v_kernel, each);
    }
    s->v_begin = LLVMGetFirstInstruction(b_entry);
    LLVMPositionBuilderBefore(b, s->v_begin);
    LLVMValueRef v_param = LLVMGetParam(v_old, 0), v_args = s->v_args;
    if (LLVMTypeOf(v_param) != s->l_ptr) v_args = LLVMBuildAddrSpaceCast(b, v_args, LLVMTypeOf(v_param), "args");
    LLVMReplaceAllUsesWith(v_param, v_args);
    LLVMDeleteFunction(v_old);
    s->v_calls = face_member(s, offsetof(lf_sim_face, calls), "calls");
    LLVMTypeRef l_words = LLVMArrayType2(s->l_i64, LF_SIM_MAX_WORDS);
    s->v_in = LLVMBuildAlloca(b, l_words, "operands");
    s->v_out = LLVMBuildAlloca(b, l_words, "results");
}

// ---- shared memory -----------------------------------------------------------------------------------------------------------

static LLVMValueRef next_shared(LLVMValueRef v) {
    while (v && LLVMGetPointerAddressSpace(LLVMTypeOf(v)) != 3) v = LLVMGetNextGlobal(v);
    return v;
}

// Each array gets a place in the block's shared memory; those without a body (dynamic ones) lie behind all others.
static lf_status place_shared(lf_sim_lowering *s) {
    LLVMModuleRef module = s->l->emit.module;
    LLVMBuilderRef b = s->l->emit.builder;
    if (!next_shared(LLVMGetFirstGlobal(module))) return NULL;
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(s->v_calls));
    LLVMTypeRef l_shared = LLVMPointerTypeInContext(s->l->emit.context, 3);
    LLVMValueRef v_base =
        LLVMBuildAddrSpaceCast(b, face_member(s, offsetof(lf_sim_face, shared), "shared"), l_shared, "shared");
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        if (dynamic) s->shared_bytes = (s->shared_bytes + 127) / 128 * 128; // where dynamic shared memory begins
        for (LLVMValueRef v = next_shared(LLVMGetFirstGlobal(module)), next; v; v = next) {
            next = next_shared(LLVMGetNextGlobal(v));
            if ((LLVMGetInitializer(v) == NULL) != (dynamic == 1)) continue;
            size_t length;
            const char *name = LLVMGetValueName2(v, &length);
            uint32_t align = LLVMGetAlignment(v) > 16 ? LLVMGetAlignment(v) : 16;
            uint32_t bytes = dynamic ? 0 : (uint32_t)LLVMABISizeOfType(s->l->layout, LLVMGlobalGetValueType(v));
            uint32_t offset = (s->shared_bytes + align - 1) / align * align;
            lf_sim_shared row = {.name = lf_sim_text(s, name, length), .offset = offset, .bytes = bytes};
            if (dynamic)
                s->dynamic_shared = true;
            else if (!lf_vec_push(&s->shared, row))
                return lf_out_of_memory();
            else
                s->shared_bytes = offset + bytes + SHARED_GUARD;
            LLVMValueRef v_offset = LLVMConstInt(s->l_i64, offset, false);
            lf_sim_place place = {v, LLVMBuildInBoundsGEP2(b, s->l_i8, v_base, &v_offset, 1, name)};
            if (!lf_vec_push(&s->places, place)) return lf_out_of_memory();
        }
    }
    return lf_sim_replace_shared(s);
}

// ---- all ---------------------------------------------------------------------------------------------------------------------

static lf_status lower_instructions(lf_sim_lowering *s) {
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(s->v_kernel); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef v = block == LLVMGetEntryBasicBlock(s->v_kernel) ? s->v_begin : LLVMGetFirstInstruction(block),
                          next;
             v; v = next) {
            next = LLVMGetNextInstruction(v); // what is put in stands before v and is not looked at
            bool done = false;
            if (LLVMGetInstructionOpcode(v) == LLVMCall) LF_TRY(lf_sim_lower_call(s, v, &done));
            if (!done) LF_TRY(lf_sim_lower_memory(s, v));
        }
    return NULL;
}

// Functions beside the kernel (maths that was not inlined) have no thread: they may not ask for anything.
static lf_status check_others(lf_sim_lowering *s) {
    for (LLVMValueRef f = LLVMGetFirstFunction(s->l->emit.module); f; f = LLVMGetNextFunction(f)) {
        size_t length;
        const char *name = LLVMGetValueName2(f, &length);
        if (!LLVMIsDeclaration(f) || !LLVMGetFirstUse(f)) continue;
        if (!strncmp(name, "llvm.nvvm.", 10)) return lf_sim_refuse(s, "a device function outside the kernel", f);
    }
    return NULL;
}

static lf_status lower(lf_sim_lowering *s) {
    lf_text_append(&s->texts, "", 1); // offset 0: no text
    LF_TRY(find_kernel(s));
    reshape(s);
    LF_TRY(place_shared(s));
    lf_sim_mend_minmax(s);
    LF_TRY(lower_instructions(s));
    LF_TRY(check_others(s));
    return lf_sim_emit_program(s);
}

// From here on the module is for this machine.
static lf_status change_machine(lf_llvm *l) {
    const lf_target here = {.kind = LF_TARGET_CPU};
    LLVMTargetMachineRef machine;
    lf_target_facts facts;
    // As for host code: what runs a few small blocks need not be fast, but compile fast.
    LF_TRY(lf_target_machine(l->allocator, &here, LF_LLVM_HOST_CODE, &machine, &facts));
    if (!facts.has_half) {
        LLVMDisposeTargetMachine(machine);
        return lf_error(l->allocator, LF_UNAVAILABLE, "the SIM device needs a processor with F16C");
    }
    LLVMDisposeTargetMachine(l->machine);
    LLVMDisposeTargetData(l->layout);
    l->machine = machine;
    l->layout = LLVMCreateTargetDataLayout(machine);
    char *triple = LLVMGetTargetMachineTriple(machine);
    LLVMSetTarget(l->emit.module, triple);
    LLVMDisposeMessage(triple);
    LLVMSetModuleDataLayout(l->emit.module, l->layout);
    return NULL;
}

lf_status lf_sim_lower(lf_llvm *l) {
    LLVMContextRef c = l->emit.context;
    lf_sim_lowering s = {.l = l,
                         .l_ptr = LLVMPointerTypeInContext(c, 0),
                         .l_i8 = LLVMInt8TypeInContext(c),
                         .l_i32 = LLVMInt32TypeInContext(c),
                         .l_i64 = LLVMInt64TypeInContext(c),
                         .l_void = LLVMVoidTypeInContext(c)};
    lf_vec_init(&s.sites, l->allocator);
    lf_vec_init(&s.shared, l->allocator);
    lf_vec_init(&s.places, l->allocator);
    lf_text_init(&s.texts, l->allocator);
    lf_status status = change_machine(l);
    if (!status) status = lower(&s);
    lf_vec_finish(&s.sites);
    lf_vec_finish(&s.shared);
    lf_vec_finish(&s.places);
    lf_text_finish(&s.texts);
    return status ? status : lf_llvm_verify(l);
}
