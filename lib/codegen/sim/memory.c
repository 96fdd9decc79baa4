// Loads, stores, atomics, copies and fences: the runtime hears of each before it happens. Accesses that provably stay inside an object of
// the code itself (a variable on the thread's stack, the argument block, a constant table) need no word.
#include "codegen/sim/lower.h"
#include <string.h>

// An address as an object and a distance from its beginning.
typedef struct place {
    LLVMValueRef v_base;
    int64_t offset;
    bool known; // the distance
} place;

// Distance of a constant getelementptr of the forms that occur; false: not known.
static bool gep_offset(const lf_sim_lowering *s, LLVMValueRef v, int64_t *out) {
    int n = LLVMGetNumOperands(v);
    LLVMTypeRef type = LLVMGetGEPSourceElementType(v);
    int64_t sum = 0;
    for (int i = 1; i < n; i++) {
        LLVMValueRef v_index = LLVMGetOperand(v, (unsigned)i);
        if (!LLVMIsAConstantInt(v_index)) return false;
        if (i > 1) {
            if (LLVMGetTypeKind(type) != LLVMArrayTypeKind) return false;
            type = LLVMGetElementType(type);
        }
        sum += (int64_t)LLVMABISizeOfType(s->l->layout, type) * LLVMConstIntGetSExtValue(v_index);
    }
    *out = sum;
    return true;
}

static place place_of(const lf_sim_lowering *s, LLVMValueRef v) {
    place p = {v, 0, true};
    for (;;) {
        LLVMOpcode code = LLVMIsAInstruction(p.v_base)    ? LLVMGetInstructionOpcode(p.v_base)
                          : LLVMIsAConstantExpr(p.v_base) ? LLVMGetConstOpcode(p.v_base)
                                                          : (LLVMOpcode)0;
        int64_t offset = 0;
        if (code == LLVMGetElementPtr) {
            p.known = p.known && gep_offset(s, p.v_base, &offset);
            p.offset += offset;
        } else if (code != LLVMBitCast && code != LLVMAddrSpaceCast) {
            return p;
        }
        p.v_base = LLVMGetOperand(p.v_base, 0);
    }
}

// Bytes of an object that the code holds itself; 0 when the base is none.
static uint64_t object_bytes(const lf_sim_lowering *s, LLVMValueRef v_base) {
    if (v_base == s->v_args) return s->args_bytes;
    if (LLVMIsAAllocaInst(v_base)) {
        LLVMValueRef v_n = LLVMGetOperand(v_base, 0);
        return LLVMABISizeOfType(s->l->layout, LLVMGetAllocatedType(v_base)) * LLVMConstIntGetZExtValue(v_n);
    }
    if (LLVMIsAGlobalVariable(v_base) && LLVMGetInitializer(v_base))
        return LLVMABISizeOfType(s->l->layout, LLVMGlobalGetValueType(v_base));
    return 0;
}

static uint8_t log2_of(unsigned align) { return align ? (uint8_t)__builtin_ctz(align) : 0; }

static uint8_t space_of(LLVMValueRef v_pointer) {
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(v_pointer));
    return space == 1 ? LF_SIM_GLOBAL : space == 3 ? LF_SIM_SHARED : space == 7 ? LF_SIM_CLUSTER : LF_SIM_GENERIC;
}

static LLVMValueRef generic(lf_sim_lowering *s, LLVMValueRef v_pointer) {
    if (LLVMTypeOf(v_pointer) == s->l_ptr) return v_pointer;
    return LLVMBuildAddrSpaceCast(s->l->emit.builder, v_pointer, s->l_ptr, "");
}

// v_bytes NULL: site.bytes are accessed.
static void tell(lf_sim_lowering *s, LLVMValueRef v, LLVMValueRef v_pointer, LLVMValueRef v_bytes, lf_sim_site site) {
    place p = place_of(s, v_pointer);
    uint64_t size = object_bytes(s, p.v_base);
    if (size && !v_bytes && p.known && p.offset >= 0 && (uint64_t)p.offset + site.bytes <= size) return;
    LLVMPositionBuilderBefore(s->l->emit.builder, v);
    site.space = space_of(v_pointer);
    size_t length = 0;
    const char *what = NULL;
    if (site.flags & LF_SIM_WRITE) what = LLVMGetValueName2(v_pointer, &length);
    LLVMValueRef v_site = LLVMConstInt(s->l_i32, lf_sim_add_site(s, v, what, length, site), false);
    LLVMValueRef v_address = generic(s, v_pointer);
    if (size && !v_bytes) {
        LLVMValueRef args[] = {v_address, generic(s, p.v_base), LLVMConstInt(s->l_i64, size, false), v_site};
        lf_sim_call(s, offsetof(lf_sim_calls, object), args, 4);
    } else if (v_bytes) {
        LLVMValueRef v_wide = LLVMBuildIntCast2(s->l->emit.builder, v_bytes, s->l_i64, false, "");
        lf_sim_call(s, offsetof(lf_sim_calls, range), (LLVMValueRef[]){v_address, v_wide, v_site}, 3);
    } else {
        lf_sim_call(s, offsetof(lf_sim_calls, access), (LLVMValueRef[]){v_address, v_site}, 2);
    }
}

static lf_sim_site site_of(const lf_sim_lowering *s, LLVMTypeRef type, unsigned align, unsigned flags) {
    return (lf_sim_site){
        .bytes = (uint32_t)LLVMStoreSizeOfType(s->l->layout, type), .flags = (uint8_t)flags, .align_log2 = log2_of(align)};
}

// RELEASE and SYSTEM, by ordering and scope. Scope 1 is LLVM's for the whole system.
static unsigned order_flags(LLVMValueRef v, LLVMAtomicOrdering ordering) {
    bool release = ordering == LLVMAtomicOrderingRelease || ordering == LLVMAtomicOrderingAcquireRelease ||
                   ordering == LLVMAtomicOrderingSequentiallyConsistent;
    return (release ? LF_SIM_RELEASE : 0u) | (release && LLVMGetAtomicSyncScopeID(v) == 1 ? LF_SIM_SYSTEM : 0u);
}

static unsigned atomic_bit(LLVMValueRef v) { return LLVMGetVolatile(v) || LLVMIsAtomic(v) ? LF_SIM_ATOMIC : 0u; }

static void lower_load(lf_sim_lowering *s, LLVMValueRef v) {
    unsigned kind = LLVMGetMDKindIDInContext(s->l->emit.context, "invariant.load", 14);
    unsigned flags = LF_SIM_READ | atomic_bit(v) | (LLVMGetMetadata(v, kind) ? LF_SIM_INVARIANT : 0u);
    tell(s, v, LLVMGetOperand(v, 0), NULL, site_of(s, LLVMTypeOf(v), LLVMGetAlignment(v), flags));
}

static void lower_store(lf_sim_lowering *s, LLVMValueRef v) {
    unsigned flags = LF_SIM_WRITE | atomic_bit(v) | (LLVMIsAtomic(v) ? order_flags(v, LLVMGetOrdering(v)) : 0u);
    tell(s, v, LLVMGetOperand(v, 1), NULL, site_of(s, LLVMTypeOf(LLVMGetOperand(v, 0)), LLVMGetAlignment(v), flags));
}

static void lower_atomic(lf_sim_lowering *s, LLVMValueRef v, LLVMAtomicOrdering ordering) {
    unsigned flags = LF_SIM_READ | LF_SIM_WRITE | LF_SIM_ATOMIC | order_flags(v, ordering);
    tell(s, v, LLVMGetOperand(v, 0), NULL, site_of(s, LLVMTypeOf(LLVMGetOperand(v, 1)), LLVMGetAlignment(v), flags));
}

static void lower_fence(lf_sim_lowering *s, LLVMValueRef v) {
    lf_sim_site site = {.flags = (uint8_t)order_flags(v, LLVMGetOrdering(v))};
    LLVMPositionBuilderBefore(s->l->emit.builder, v);
    LLVMValueRef v_site = LLVMConstInt(s->l_i32, lf_sim_add_site(s, v, "fence", 5, site), false);
    lf_sim_call(s, offsetof(lf_sim_calls, fence), &v_site, 1);
}

// The memory intrinsics: their first operand is written, the second of a copy is read.
static void lower_whole(lf_sim_lowering *s, LLVMValueRef v) {
    size_t length;
    const char *name = LLVMIsAFunction(LLVMGetCalledValue(v)) ? LLVMGetValueName2(LLVMGetCalledValue(v), &length) : "";
    bool copy = !strncmp(name, "llvm.memcpy", 11) || !strncmp(name, "llvm.memmove", 12);
    if (!copy && strncmp(name, "llvm.memset", 11) != 0) return;
    LLVMValueRef v_bytes = LLVMGetOperand(v, 2);
    tell(s, v, LLVMGetOperand(v, 0), v_bytes, (lf_sim_site){.flags = LF_SIM_WRITE});
    if (copy) tell(s, v, LLVMGetOperand(v, 1), v_bytes, (lf_sim_site){.flags = LF_SIM_READ});
}

lf_status lf_sim_lower_memory(lf_sim_lowering *s, LLVMValueRef v) {
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMLoad: lower_load(s, v); break;
    case LLVMStore: lower_store(s, v); break;
    case LLVMAtomicRMW: lower_atomic(s, v, LLVMGetOrdering(v)); break;
    case LLVMAtomicCmpXchg: lower_atomic(s, v, LLVMGetCmpXchgSuccessOrdering(v)); break;
    case LLVMFence: lower_fence(s, v); break;
    case LLVMCall: lower_whole(s, v); break;
    default: break;
    }
    return NULL;
}
