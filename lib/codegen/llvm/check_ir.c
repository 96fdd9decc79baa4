// See check_ir.h: one table of instructions, one of intrinsics, and a few rules about types.
#include "codegen/llvm/check_ir.h"
#include "codegen/llvm/jit.h"
#include "codegen/llvm/llvm_status.h"
#include <string.h>

enum { CPU = 1, GPU = 2, BOTH = CPU | GPU };
enum {
    FAST = 4,      // math=fast only: result may differ between targets
    APPROX = 8,    // on a GPU: f32 with the afn flag only, else LLVM wants a C library
    NARROW = 16    // integers of 64 bits at most: wider ones become calls of a compiler library
};

// Indexed by LLVMOpcode; what is not named is refused (exceptions, frem, indirect branches, …).
static const uint8_t instructions[] = {
    [LLVMRet] = BOTH, [LLVMBr] = BOTH, [LLVMSwitch] = BOTH, [LLVMUnreachable] = BOTH, [LLVMFNeg] = BOTH,
    [LLVMAdd] = BOTH, [LLVMFAdd] = BOTH, [LLVMSub] = BOTH, [LLVMFSub] = BOTH, [LLVMMul] = BOTH, [LLVMFMul] = BOTH,
    [LLVMUDiv] = BOTH | NARROW, [LLVMSDiv] = BOTH | NARROW, [LLVMFDiv] = BOTH, [LLVMURem] = BOTH | NARROW,
    [LLVMSRem] = BOTH | NARROW, [LLVMShl] = BOTH, [LLVMLShr] = BOTH, [LLVMAShr] = BOTH, [LLVMAnd] = BOTH, [LLVMOr] = BOTH,
    [LLVMXor] = BOTH, [LLVMAlloca] = BOTH, [LLVMLoad] = BOTH, [LLVMStore] = BOTH, [LLVMGetElementPtr] = BOTH,
    [LLVMTrunc] = BOTH, [LLVMZExt] = BOTH, [LLVMSExt] = BOTH, [LLVMFPToUI] = BOTH | NARROW, [LLVMFPToSI] = BOTH | NARROW,
    [LLVMUIToFP] = BOTH | NARROW, [LLVMSIToFP] = BOTH | NARROW, [LLVMFPTrunc] = BOTH, [LLVMFPExt] = BOTH,
    [LLVMPtrToInt] = BOTH, [LLVMPtrToAddr] = BOTH, [LLVMIntToPtr] = BOTH, [LLVMBitCast] = BOTH, [LLVMAddrSpaceCast] = BOTH,
    [LLVMICmp] = BOTH, [LLVMFCmp] = BOTH, [LLVMPHI] = BOTH, [LLVMCall] = BOTH, [LLVMSelect] = BOTH,
    [LLVMExtractElement] = BOTH, [LLVMInsertElement] = BOTH, [LLVMShuffleVector] = BOTH, [LLVMExtractValue] = BOTH,
    [LLVMInsertValue] = BOTH, [LLVMFreeze] = BOTH, [LLVMFence] = BOTH, [LLVMAtomicCmpXchg] = BOTH | NARROW,
    [LLVMAtomicRMW] = BOTH | NARROW,
};
enum { N_INSTRUCTIONS = sizeof instructions };

// Names without the suffix of an overload. `sm`: the least GPU that has it. A name that ends with '.' stands for all below it.
typedef struct lf_intrinsic {
    const char *name;
    uint8_t where;
    uint8_t sm;
} lf_intrinsic;
static const lf_intrinsic intrinsics[] = {
    // integers
    {"llvm.abs", BOTH, 0}, {"llvm.smax", BOTH, 0}, {"llvm.smin", BOTH, 0}, {"llvm.umax", BOTH, 0}, {"llvm.umin", BOTH, 0},
    {"llvm.scmp", BOTH, 0}, {"llvm.ucmp", BOTH, 0}, {"llvm.ctlz", BOTH, 0}, {"llvm.cttz", BOTH, 0}, {"llvm.ctpop", BOTH, 0},
    {"llvm.bswap", BOTH, 0}, {"llvm.bitreverse", BOTH, 0}, {"llvm.fshl", BOTH, 0}, {"llvm.fshr", BOTH, 0},
    {"llvm.sadd.sat", BOTH, 0}, {"llvm.uadd.sat", BOTH, 0}, {"llvm.ssub.sat", BOTH, 0}, {"llvm.usub.sat", BOTH, 0},
    {"llvm.sadd.with.overflow", BOTH, 0}, {"llvm.uadd.with.overflow", BOTH, 0}, {"llvm.ssub.with.overflow", BOTH, 0},
    {"llvm.usub.with.overflow", BOTH, 0}, {"llvm.smul.with.overflow", BOTH | NARROW, 0},
    {"llvm.umul.with.overflow", BOTH | NARROW, 0},
    // floats
    {"llvm.fabs", BOTH, 0}, {"llvm.copysign", BOTH, 0}, {"llvm.sqrt", BOTH, 0}, {"llvm.fma", BOTH, 0}, {"llvm.floor", BOTH, 0},
    {"llvm.ceil", BOTH, 0}, {"llvm.trunc", BOTH, 0}, {"llvm.rint", BOTH, 0}, {"llvm.nearbyint", BOTH, 0},
    {"llvm.roundeven", BOTH, 0}, {"llvm.minimum", BOTH, 0}, {"llvm.maximum", BOTH, 0}, {"llvm.minimumnum", BOTH, 0},
    {"llvm.maximumnum", BOTH, 0}, {"llvm.is.fpclass", BOTH, 0}, {"llvm.fptosi.sat", BOTH | NARROW, 0},
    {"llvm.fptoui.sat", BOTH | NARROW, 0}, {"llvm.fmuladd", BOTH | FAST, 0}, {"llvm.exp2", GPU | FAST | APPROX, 0},
    {"llvm.log2", GPU | FAST | APPROX, 0}, {"llvm.sin", GPU | FAST | APPROX, 0}, {"llvm.cos", GPU | FAST | APPROX, 0},
    {"llvm.tanh", GPU | FAST | APPROX, 75},
    // memory and hints
    {"llvm.memcpy", BOTH, 0}, {"llvm.memcpy.inline", BOTH, 0}, {"llvm.memmove", BOTH, 0}, {"llvm.memset", BOTH, 0},
    {"llvm.memset.inline", BOTH, 0}, {"llvm.lifetime.start", BOTH, 0}, {"llvm.lifetime.end", BOTH, 0}, {"llvm.assume", BOTH, 0},
    {"llvm.expect", BOTH, 0}, {"llvm.experimental.noalias.scope.decl", BOTH, 0}, {"llvm.prefetch", CPU, 0},
    {"llvm.ptrmask", BOTH, 0},
    // vectors; sums and products of floats only come from loops whose order is free
    {"llvm.vector.reduce.", BOTH, 0}, {"llvm.vector.insert", CPU, 0}, {"llvm.vector.extract", CPU, 0}, {"llvm.stepvector", CPU, 0},
    {"llvm.vector.interleave2", CPU, 0}, {"llvm.vector.deinterleave2", CPU, 0}, {"llvm.vector.partial.reduce.add", CPU, 0},
    {"llvm.masked.load", CPU, 0}, {"llvm.masked.store", CPU, 0}, {"llvm.masked.gather", CPU, 0}, {"llvm.masked.scatter", CPU, 0},
    {"llvm.masked.expandload", CPU, 0}, {"llvm.masked.compressstore", CPU, 0}, {"llvm.get.active.lane.mask", CPU, 0},
    // NVPTX
    {"llvm.nvvm.read.ptx.sreg.tid.", GPU, 0}, {"llvm.nvvm.read.ptx.sreg.ntid.", GPU, 0},
    {"llvm.nvvm.read.ptx.sreg.ctaid.", GPU, 0}, {"llvm.nvvm.read.ptx.sreg.nctaid.", GPU, 0},
    {"llvm.nvvm.read.ptx.sreg.laneid", GPU, 0}, {"llvm.nvvm.read.ptx.sreg.warpsize", GPU, 0},
    {"llvm.nvvm.read.ptx.sreg.lanemask.", GPU, 0}, {"llvm.nvvm.read.ptx.sreg.smid", GPU, 0},
    {"llvm.nvvm.barrier.cta.sync.aligned.all", GPU, 0}, {"llvm.nvvm.barrier.cta.sync.all", GPU, 0},
    {"llvm.nvvm.bar.warp.sync", GPU, 0}, {"llvm.nvvm.membar.", GPU, 0}, {"llvm.nvvm.activemask", GPU, 0},
    {"llvm.nvvm.shfl.sync.", GPU, 0}, {"llvm.nvvm.vote.", GPU, 0}, {"llvm.nvvm.match.any.sync.", GPU, 0},
    {"llvm.nvvm.redux.sync.add", GPU, 80}, {"llvm.nvvm.redux.sync.umin", GPU, 80}, {"llvm.nvvm.redux.sync.umax", GPU, 80},
    {"llvm.nvvm.redux.sync.min", GPU, 80}, {"llvm.nvvm.redux.sync.max", GPU, 80}, {"llvm.nvvm.redux.sync.and", GPU, 80},
    {"llvm.nvvm.redux.sync.or", GPU, 80}, {"llvm.nvvm.redux.sync.xor", GPU, 80},
    {"llvm.nvvm.rcp.approx.ftz.f", GPU | FAST, 0}, {"llvm.nvvm.rsqrt.approx.f", GPU | FAST, 0},
    {"llvm.nvvm.rsqrt.approx.ftz.f", GPU | FAST, 0}, {"llvm.nvvm.sqrt.approx.f", GPU | FAST, 0},
    {"llvm.nvvm.lg2.approx.f", GPU | FAST, 0}, {"llvm.nvvm.sin.approx.f", GPU | FAST, 0},
    {"llvm.nvvm.cos.approx.f", GPU | FAST, 0}, {"llvm.nvvm.div.approx.f", GPU | FAST, 0},
};

enum { N_SEEN = 64 };
typedef struct lf_check {
    lf_llvm *l;
    uint8_t target;                  // CPU or GPU
    LLVMValueRef v_function, v_instruction;
    struct {
        unsigned id;
        const lf_intrinsic *row;
    } seen[N_SEEN];                  // a module calls few intrinsics, many times
} lf_check;

static lf_status refuse(const lf_check *c, const char *why) {
    char *text = LLVMPrintValueToString(c->v_instruction);
    size_t length;
    const char *function = LLVMGetValueName2(c->v_function, &length);
    const char *trimmed = text + strspn(text, " ");
    lf_status s = c->target == GPU ? lf_error(c->l->allocator, LF_UNSUPPORTED, "%s on sm_%u: %.300s (in %.*s)", why,
                                              c->l->target.sm, trimmed, (int)length, function)
                                   : lf_error(c->l->allocator, LF_UNSUPPORTED, "%s on x86-64: %.300s (in %.*s)", why, trimmed,
                                              (int)length, function);
    LLVMDisposeMessage(text);
    return s;
}

// ---- types --------------------------------------------------------------------------------------------------------------

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
    case LLVMFunctionTypeKind:
        return NULL;
    case LLVMVectorTypeKind:
        return bad_type(LLVMGetElementType(type));  // one level deep: vectors do not nest
    case LLVMBFloatTypeKind:
        return "bfloat values (bf16 is carried as i16)";
    default:
        return "a type that no target has";
    }
}

// Where arithmetic on half is a call of a compiler library: only moves and the conversions with f32 are instructions.
static bool half_is_fine(const lf_check *c, LLVMOpcode opcode, LLVMTypeRef result, LLVMTypeRef operand) {
    if (c->target == GPU) return true;
    switch (opcode) {
    case LLVMFPExt:
        return c->l->emit.has_half;
    case LLVMFPTrunc:
        return c->l->emit.has_half && LLVMGetTypeKind(element_of(operand)) == LLVMFloatTypeKind && is_half(result);
    case LLVMLoad:
    case LLVMStore:
    case LLVMBitCast:
    case LLVMPHI:
    case LLVMSelect:
    case LLVMExtractElement:
    case LLVMInsertElement:
    case LLVMShuffleVector:
    case LLVMFreeze:
        return true;
    default:
        return false;
    }
}

// ---- calls --------------------------------------------------------------------------------------------------------------

static const lf_intrinsic *find_intrinsic(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof intrinsics / sizeof *intrinsics; i++) {
        size_t n = strlen(intrinsics[i].name);
        bool prefix = intrinsics[i].name[n - 1] == '.';
        if ((prefix ? length > n : length == n) && memcmp(name, intrinsics[i].name, n) == 0) return &intrinsics[i];
    }
    return NULL;
}

static lf_status check_intrinsic(lf_check *c, unsigned id, bool *out_narrow) {
    if (c->seen[id % N_SEEN].id != id) {
        size_t length;
        const char *name = LLVMIntrinsicGetName(id, &length);
        c->seen[id % N_SEEN].id = id;
        c->seen[id % N_SEEN].row = find_intrinsic(name, length);
    }
    const lf_intrinsic *row = c->seen[id % N_SEEN].row;
    LLVMTypeRef type = LLVMTypeOf(c->v_instruction);
    if (!row || !(row->where & c->target)) return refuse(c, "no such function");
    if (c->target == GPU && c->l->target.sm < row->sm) return refuse(c, "no such instruction yet");
    if (row->where & FAST && !c->l->emit.fast) return refuse(c, "inexact function in exact mode");
    if (row->where & APPROX) {
        bool afn = LLVMCanValueUseFastMathFlags(c->v_instruction) &&
                   LLVMGetFastMathFlags(c->v_instruction) & LLVMFastMathApproxFunc;
        if (!afn || LLVMGetTypeKind(element_of(type)) != LLVMFloatTypeKind) return refuse(c, "no such function but approximate, in f32,");
    }
    *out_narrow = row->where & NARROW;
    return NULL;
}

static lf_status check_call(lf_check *c, bool *out_narrow) {
    LLVMValueRef v_callee = LLVMGetCalledValue(c->v_instruction);
    if (LLVMIsAInlineAsm(v_callee)) return c->target == GPU ? NULL : refuse(c, "no inline assembly");
    if (!LLVMIsAFunction(v_callee)) return refuse(c, "no indirect calls");
    unsigned id = LLVMGetIntrinsicID(v_callee);
    if (id) return check_intrinsic(c, id, out_narrow);
    if (!LLVMIsDeclaration(v_callee)) return NULL;
    size_t length;
    const char *name = LLVMGetValueName2(v_callee, &length);
    return c->target == CPU && lf_jit_imports(name, length) ? NULL : refuse(c, "call of a function that is not there");
}

// ---- all ----------------------------------------------------------------------------------------------------------------

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
    if (is_half(result) && !half_is_fine(c, opcode, result, LLVMTypeOf(LLVMGetOperand(v, 0)))) return refuse(c, "no half arithmetic");
    int n = LLVMGetNumOperands(v);
    for (int i = 0; i < n; i++) {
        LLVMTypeRef operand = LLVMTypeOf(LLVMGetOperand(v, (unsigned)i));
        bad = bad_type(operand);
        if (bad) return refuse(c, bad);
        if (is_half(operand) && !half_is_fine(c, opcode, result, operand)) return refuse(c, "no half arithmetic");
        if (narrow && is_wide(operand)) return refuse(c, "no such operation beyond 64 bits");
    }
    return narrow && is_wide(result) ? refuse(c, "no such operation beyond 64 bits") : NULL;
}

lf_status lf_check_ir(lf_llvm *l) {
    lf_check c = {.l = l, .target = l->target.kind == LF_TARGET_CUDA ? GPU : CPU};
    for (LLVMValueRef f = LLVMGetFirstFunction(l->emit.module); f; f = LLVMGetNextFunction(f)) {
        c.v_function = f;
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (c.v_instruction = LLVMGetFirstInstruction(b); c.v_instruction;
                 c.v_instruction = LLVMGetNextInstruction(c.v_instruction))
                LF_TRY(check_instruction(&c));
    }
    return NULL;
}
