// See check_ir.h: one table of instructions, one of intrinsics, and a few rules about types.
#include "codegen/llvm/check_ir.h"
#include "native/native.h"
#include "codegen/llvm/llvm_status.h"
#include <string.h>

enum { CPU = 1, GPU = 2, BOTH = CPU | GPU };
enum {
    FAST = 4,    // math=fast only: result may differ between targets
    APPROX = 8,  // on a GPU: f32 with the afn flag only, else LLVM wants a C library
    NARROW = 16, // integers of 64 bits at most: wider ones become calls of a compiler library
    SINGLE = 32  // not on half on x86: it would round twice
};

// Indexed by LLVMOpcode; what is not named is refused (exceptions, frem, indirect branches, …).
static const uint8_t instructions[] = {
    [LLVMRet] = BOTH,
    [LLVMBr] = BOTH,
    [LLVMSwitch] = BOTH,
    [LLVMUnreachable] = BOTH,
    [LLVMFNeg] = BOTH,
    [LLVMAdd] = BOTH,
    [LLVMFAdd] = BOTH,
    [LLVMSub] = BOTH,
    [LLVMFSub] = BOTH,
    [LLVMMul] = BOTH,
    [LLVMFMul] = BOTH,
    [LLVMUDiv] = BOTH | NARROW,
    [LLVMSDiv] = BOTH | NARROW,
    [LLVMFDiv] = BOTH,
    [LLVMURem] = BOTH | NARROW,
    [LLVMSRem] = BOTH | NARROW,
    [LLVMShl] = BOTH,
    [LLVMLShr] = BOTH,
    [LLVMAShr] = BOTH,
    [LLVMAnd] = BOTH,
    [LLVMOr] = BOTH,
    [LLVMXor] = BOTH,
    [LLVMAlloca] = BOTH,
    [LLVMLoad] = BOTH,
    [LLVMStore] = BOTH,
    [LLVMGetElementPtr] = BOTH,
    [LLVMTrunc] = BOTH,
    [LLVMZExt] = BOTH,
    [LLVMSExt] = BOTH,
    [LLVMFPToUI] = BOTH | NARROW,
    [LLVMFPToSI] = BOTH | NARROW,
    [LLVMUIToFP] = BOTH | NARROW,
    [LLVMSIToFP] = BOTH | NARROW,
    [LLVMFPTrunc] = BOTH,
    [LLVMFPExt] = BOTH,
    [LLVMPtrToInt] = BOTH,
    [LLVMPtrToAddr] = BOTH,
    [LLVMIntToPtr] = BOTH,
    [LLVMBitCast] = BOTH,
    [LLVMAddrSpaceCast] = BOTH,
    [LLVMICmp] = BOTH,
    [LLVMFCmp] = BOTH,
    [LLVMPHI] = BOTH,
    [LLVMCall] = BOTH,
    [LLVMSelect] = BOTH,
    [LLVMExtractElement] = BOTH,
    [LLVMInsertElement] = BOTH,
    [LLVMShuffleVector] = BOTH,
    [LLVMExtractValue] = BOTH,
    [LLVMInsertValue] = BOTH,
    [LLVMFreeze] = BOTH,
    [LLVMFence] = BOTH,
    [LLVMAtomicCmpXchg] = BOTH | NARROW,
    [LLVMAtomicRMW] = BOTH | NARROW,
};
enum { N_INSTRUCTIONS = sizeof instructions };

// Names without the suffix of an overload. `sm`: the least GPU that has it. Each row is compiled for its targets by
// test_jit.c.
typedef struct lf_intrinsic {
    const char *name;
    uint8_t where, sm;
} lf_intrinsic;
#define ALL(name, flags) {"llvm." name, BOTH | (flags), 0}
#define ON_CPU(name) {"llvm." name, CPU, 0}
static const lf_intrinsic intrinsics[] = {
    // integers
    ALL("abs", 0),
    ALL("smax", 0),
    ALL("smin", 0),
    ALL("umax", 0),
    ALL("umin", 0),
    ALL("scmp", 0),
    ALL("ucmp", 0),
    ALL("ctlz", 0),
    ALL("cttz", 0),
    ALL("ctpop", 0),
    ALL("bswap", 0),
    ALL("bitreverse", 0),
    ALL("fshl", 0),
    ALL("fshr", 0),
    ALL("sadd.sat", 0),
    ALL("uadd.sat", 0),
    ALL("ssub.sat", 0),
    ALL("usub.sat", 0),
    ALL("sadd.with.overflow", 0),
    ALL("uadd.with.overflow", 0),
    ALL("ssub.with.overflow", 0),
    ALL("usub.with.overflow", 0),
    ALL("smul.with.overflow", NARROW),
    ALL("umul.with.overflow", NARROW),
    // floats
    ALL("fabs", 0),
    ALL("copysign", 0),
    ALL("sqrt", 0),
    ALL("fma", SINGLE),
    ALL("floor", 0),
    ALL("ceil", 0),
    ALL("trunc", 0),
    ALL("rint", 0),
    ALL("nearbyint", 0),
    ALL("roundeven", 0),
    ALL("minimum", 0),
    ALL("maximum", 0),
    ALL("minimumnum", 0),
    ALL("maximumnum", 0),
    ALL("is.fpclass", 0),
    ALL("fptosi.sat", NARROW),
    ALL("fptoui.sat", NARROW),
    ALL("fmuladd", FAST | SINGLE),
    // memory and hints
    ALL("memcpy", 0),
    ALL("memcpy.inline", 0),
    ALL("memmove", 0),
    ALL("memset", 0),
    ALL("memset.inline", 0),
    ALL("lifetime.start", 0),
    ALL("lifetime.end", 0),
    ALL("assume", 0),
    ALL("expect", 0),
    ALL("ptrmask", 0),
    ALL("experimental.noalias.scope.decl", 0),
    ON_CPU("prefetch"),
    // vectors
    ALL("vector.reduce.add", 0),
    ALL("vector.reduce.mul", 0),
    ALL("vector.reduce.and", 0),
    ALL("vector.reduce.or", 0),
    ALL("vector.reduce.xor", 0),
    ALL("vector.reduce.smax", 0),
    ALL("vector.reduce.smin", 0),
    ALL("vector.reduce.umax", 0),
    ALL("vector.reduce.umin", 0),
    ALL("vector.reduce.fadd", 0),
    ALL("vector.reduce.fmul", 0),
    ALL("vector.reduce.fmaximum", 0),
    ALL("vector.reduce.fminimum", 0),
    ON_CPU("vector.insert"),
    ON_CPU("vector.extract"),
    ON_CPU("stepvector"),
    ON_CPU("vector.interleave2"),
    ON_CPU("vector.deinterleave2"),
    ON_CPU("masked.load"),
    ON_CPU("masked.store"),
    ON_CPU("masked.gather"),
    ON_CPU("masked.scatter"),
    ON_CPU("masked.expandload"),
    ON_CPU("masked.compressstore"),
    ON_CPU("get.active.lane.mask"),
// NVPTX
#define LF_DEVICE(name, flags, sm, sim) {name, GPU | (flags), sm},
#define LF_DEVICE_ASM(text, flags, sm, sim)
#include "base/device_intrinsics.def"
#undef LF_DEVICE
#undef LF_DEVICE_ASM
};
enum { N_INTRINSICS = sizeof intrinsics / sizeof *intrinsics };

static const lf_intrinsic assembly[] = {
#define LF_DEVICE(name, flags, sm, sim)
#define LF_DEVICE_ASM(text, flags, sm, sim) {text, GPU | (flags), sm},
#include "base/device_intrinsics.def"
#undef LF_DEVICE
#undef LF_DEVICE_ASM
};
enum { N_ASSEMBLY = sizeof assembly / sizeof *assembly };

bool lf_check_ir_rule(size_t i, lf_ir_rule *out_rule) {
    if (i >= N_INTRINSICS) return false;
    *out_rule = (lf_ir_rule){.name = intrinsics[i].name,
                             .cpu = intrinsics[i].where & CPU,
                             .gpu = intrinsics[i].where & GPU,
                             .fast = intrinsics[i].where & FAST,
                             .sm = intrinsics[i].sm};
    return true;
}

enum { N_SEEN = 64 };
typedef struct lf_check {
    lf_llvm *l;
    uint8_t target; // CPU or GPU
    LLVMValueRef v_function, v_instruction;
    struct {
        unsigned id;
        const lf_intrinsic *row;
    } seen[N_SEEN]; // a module calls few intrinsics, many times
} lf_check;

static lf_status refuse(const lf_check *c, const char *why) {
    char *text = LLVMPrintValueToString(c->v_instruction);
    size_t length;
    const char *function = LLVMGetValueName2(c->v_function, &length);
    const char *trimmed = text + strspn(text, " ");
    lf_status s = c->target == GPU ? lf_error(c->l->allocator, LF_UNSUPPORTED, "%s on sm_%u: %.300s (in %.*s)", why,
                                              c->l->target.sm, trimmed, (int)length, function)
                                   : lf_error(c->l->allocator, LF_UNSUPPORTED, "%s on x86-64: %.300s (in %.*s)", why,
                                              trimmed, (int)length, function);
    LLVMDisposeMessage(text);
    return s;
}

// ---- types --------------------------------------------------------------------------------------------------

static LLVMTypeRef element_of(LLVMTypeRef type) {
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

static bool is_half(LLVMTypeRef type) { return LLVMGetTypeKind(element_of(type)) == LLVMHalfTypeKind; }

static bool is_wide(LLVMTypeRef type) {
    type = element_of(type);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) > 64;
}

// NULL, or why values of this type cannot be. Aggregates are looked at where they are taken apart.
static const char *bad_type(LLVMTypeRef type) {
    switch (LLVMGetTypeKind(type)) {
    case LLVMVoidTypeKind:
    case LLVMHalfTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
    case LLVMIntegerTypeKind:
    case LLVMPointerTypeKind:
    case LLVMStructTypeKind:
    case LLVMArrayTypeKind:
    case LLVMLabelTypeKind:
    case LLVMMetadataTypeKind:
    case LLVMFunctionTypeKind: return NULL;
    case LLVMVectorTypeKind: return bad_type(LLVMGetElementType(type)); // one level deep: vectors do not nest
    case LLVMBFloatTypeKind: return "bfloat values (bf16 is carried as i16)";
    default: return "a type that no target has";
    }
}

// x86 has no arithmetic on half, but conversions with f32 (F16C). LLVM narrows float operations between such
// conversions to half where the result is the same, and its code generator widens them again; what is left out here
// would be a call of a compiler library or round twice. Without F16C only moves are possible.
static const char *bad_half(const lf_check *c, LLVMOpcode opcode, LLVMTypeRef operand) {
    if (c->target == GPU) return NULL;
    switch (opcode) {
    case LLVMLoad:
    case LLVMStore:
    case LLVMBitCast:
    case LLVMPHI:
    case LLVMSelect:
    case LLVMExtractElement:
    case LLVMInsertElement:
    case LLVMShuffleVector:
    case LLVMFreeze: return NULL;
    default: break;
    }
    if (!c->l->emit.has_half) return "no half arithmetic";
    LLVMTypeRef from = element_of(operand);
    if (opcode == LLVMFPTrunc && LLVMGetTypeKind(from) == LLVMDoubleTypeKind) return "no conversion from f64 to half";
    // Integers of any width may become halves: by way of f32, which rounds nothing that a half can hold.
    return NULL;
}

// ---- calls --------------------------------------------------------------------------------------------------

static const lf_intrinsic *find(const lf_intrinsic *rows, size_t n, const char *name, size_t length) {
    for (size_t i = 0; i < n; i++)
        if (strlen(rows[i].name) == length && memcmp(name, rows[i].name, length) == 0) return &rows[i];
    return NULL;
}

static lf_status check_assembly(const lf_check *c, LLVMValueRef v_callee) {
    size_t length;
    const char *text = LLVMGetInlineAsmAsmString(v_callee, &length);
    const lf_intrinsic *row = find(assembly, N_ASSEMBLY, text, length);
    if (c->target != GPU) return refuse(c, "no inline assembly");
    if (!row) return refuse(c, "inline assembly that device_intrinsics.def does not list");
    if (c->l->target.sm < row->sm) return refuse(c, "no such instruction yet");
    return row->where & FAST && !c->l->emit.fast ? refuse(c, "inexact instruction in exact mode") : NULL;
}

static lf_status check_intrinsic(lf_check *c, unsigned id, bool *out_narrow) {
    if (c->seen[id % N_SEEN].id != id) {
        size_t length;
        const char *name = LLVMIntrinsicGetName(id, &length);
        c->seen[id % N_SEEN].id = id;
        c->seen[id % N_SEEN].row = find(intrinsics, N_INTRINSICS, name, length);
    }
    const lf_intrinsic *row = c->seen[id % N_SEEN].row;
    LLVMTypeRef type = LLVMTypeOf(c->v_instruction);
    if (!row || !(row->where & c->target)) return refuse(c, "no such function");
    if (c->target == GPU && c->l->target.sm < row->sm) return refuse(c, "no such instruction yet");
    if (row->where & FAST && !c->l->emit.fast) return refuse(c, "inexact function in exact mode");
    if (row->where & APPROX) {
        bool afn = LLVMCanValueUseFastMathFlags(c->v_instruction) &&
                   LLVMGetFastMathFlags(c->v_instruction) & LLVMFastMathApproxFunc;
        if (!afn || LLVMGetTypeKind(element_of(type)) != LLVMFloatTypeKind)
            return refuse(c, "no such function but approximate, in f32,");
    }
    if (row->where & SINGLE && c->target == CPU && is_half(type)) return refuse(c, "no half arithmetic with one rounding");
    *out_narrow = row->where & NARROW;
    return NULL;
}

static lf_status check_call(lf_check *c, bool *out_narrow) {
    LLVMValueRef v_callee = LLVMGetCalledValue(c->v_instruction);
    if (LLVMIsAInlineAsm(v_callee)) return check_assembly(c, v_callee);
    if (!LLVMIsAFunction(v_callee)) return refuse(c, "no indirect calls");
    unsigned id = LLVMGetIntrinsicID(v_callee);
    if (id) return check_intrinsic(c, id, out_narrow);
    if (!LLVMIsDeclaration(v_callee)) return NULL;
    size_t length;
    const char *name = LLVMGetValueName2(v_callee, &length);
    return c->target == CPU && lf_native_imports(name, length) ? NULL : refuse(c, "call of a function that is not there");
}

// ---- all ----------------------------------------------------------------------------------------------------

static lf_status check_instruction(lf_check *c) {
    LLVMValueRef v = c->v_instruction;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(v);
    uint8_t allowed = (unsigned)opcode < N_INSTRUCTIONS ? instructions[opcode] : 0;
    if (!(allowed & c->target)) return refuse(c, "no such instruction");
    bool narrow = allowed & NARROW;
    if (opcode == LLVMCall) LF_TRY(check_call(c, &narrow));
    if (opcode == LLVMAlloca && c->target == GPU && !LLVMIsConstant(LLVMGetOperand(v, 0)))
        return refuse(c, "no stack memory of variable size");
    LLVMTypeRef result = LLVMTypeOf(v);
    const char *bad = bad_type(result);
    if (bad) return refuse(c, bad);
    int n = LLVMGetNumOperands(v);
    bool half = is_half(result);
    for (int i = 0; i < n; i++) {
        LLVMTypeRef operand = LLVMTypeOf(LLVMGetOperand(v, (unsigned)i));
        bad = bad_type(operand);
        if (bad) return refuse(c, bad);
        half = half || is_half(operand);
        if (narrow && is_wide(operand)) return refuse(c, "no such operation beyond 64 bits");
    }
    bad = half ? bad_half(c, opcode, n ? LLVMTypeOf(LLVMGetOperand(v, 0)) : result) : NULL;
    if (bad) return refuse(c, bad);
    return narrow && is_wide(result) ? refuse(c, "no such operation beyond 64 bits") : NULL;
}

lf_status lf_check_ir(lf_llvm *l) {
    lf_check c = {.l = l, .target = l->target.kind == LF_TARGET_CPU ? CPU : GPU};
    for (LLVMValueRef f = LLVMGetFirstFunction(l->emit.module); f; f = LLVMGetNextFunction(f)) {
        c.v_function = f;
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (c.v_instruction = LLVMGetFirstInstruction(b); c.v_instruction;
                 c.v_instruction = LLVMGetNextInstruction(c.v_instruction))
                LF_TRY(check_instruction(&c));
    }
    return NULL;
}
