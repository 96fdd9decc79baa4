// See target.h.
#include "codegen/llvm/target.h"
#include "codegen/llvm/compat.h"
#include "codegen/llvm/llvm_status.h"
#include <llvm-c/Target.h>
#include <pthread.h>
#include <string.h>

// What is known once a process: LLVM's registry of targets is a global that one thread may fill once, so this must be
// one too, the only writable one of lib/codegen. It is written by `initialise` alone, and holds the name and features
// of this machine's CPU as well, which cost a tenth of a small compile to find out.
static struct {
    pthread_once_t once;
    char *cpu, *features;
} this_process = {.once = PTHREAD_ONCE_INIT};

static void initialise(void) {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    this_process.cpu = LLVMGetHostCPUName();
    this_process.features = LLVMGetHostCPUFeatures();
}

void lf_target_initialise(void) { pthread_once(&this_process.once, initialise); }

// "" is the machine that this runs on.
typedef struct lf_cpu {
    const char *name;
    lf_target_facts facts;
} lf_cpu;
static const lf_cpu cpus[] = {
    {"x86-64", {.has_half = false, .vector_bytes = 16}},
    {"x86-64-v3", {.has_half = true, .vector_bytes = 32}},
    {"x86-64-v4", {.has_half = true, .vector_bytes = 64}},
};

typedef struct lf_gpu {
    uint32_t sm;
    const char *name;
} lf_gpu;
static const lf_gpu gpus[] = {
    {75, "sm_75"}, {80, "sm_80"}, {86, "sm_86"}, {89, "sm_89"}, {90, "sm_90"}, {100, "sm_100"}, {120, "sm_120"},
};

typedef struct lf_machine_request {
    const char *triple, *cpu, *features;
    LLVMCodeGenOptLevel level;
} lf_machine_request;

static lf_status create_machine(const lf_allocator *a, const lf_machine_request *r, LLVMTargetMachineRef *out_machine) {
    LLVMTargetRef target = NULL;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(r->triple, &target, &message)) return lf_llvm_message(a, LF_INTERNAL, r->triple, message);
    LLVMTargetMachineOptionsRef options = LLVMCreateTargetMachineOptions();
    LLVMTargetMachineOptionsSetCPU(options, r->cpu);
    LLVMTargetMachineOptionsSetFeatures(options, r->features);
    LLVMTargetMachineOptionsSetCodeGenOptLevel(options, r->level);
    // Code that can lie anywhere, with what it refers to within 2 GB or reached through a table beside it.
    LLVMTargetMachineOptionsSetRelocMode(options, LLVMRelocPIC);
    LLVMTargetMachineOptionsSetCodeModel(options, LLVMCodeModelSmall);
    *out_machine = LLVMCreateTargetMachineWithOptions(target, r->triple, options);
    LLVMDisposeTargetMachineOptions(options);
    if (!*out_machine) return lf_error(a, LF_INTERNAL, "LLVM makes no code for %s on %s", r->cpu, r->triple);
    return NULL;
}

static bool has_feature(const char *features, const char *name) {
    size_t n = strlen(name);
    for (const char *at = features; (at = strstr(at, name)); at += n)
        if (at > features && at[-1] == '+' && (at[n] == ',' || !at[n])) return true;
    return false;
}

static lf_status this_machine(const lf_allocator *a, lf_machine_request *r, LLVMTargetMachineRef *out_machine,
                              lf_target_facts *out_facts) {
    const char *features = this_process.features;
    out_facts->has_half = has_feature(features, "f16c");
    out_facts->vector_bytes = has_feature(features, "avx512vl") ? 64 : has_feature(features, "avx2") ? 32 : 16;
    r->cpu = this_process.cpu;
    r->features = features;
    return create_machine(a, r, out_machine);
}

lf_status lf_target_machine(const lf_allocator *a, const lf_target *t, lf_llvm_use use, LLVMTargetMachineRef *out_machine,
                            lf_target_facts *out_facts) {
    *out_machine = NULL;
    *out_facts = (lf_target_facts){0};
    lf_target_initialise();
    lf_machine_request r = {.triple = "x86_64-pc-linux-gnu",
                            .cpu = "",
                            .features = "",
                            .level = use == LF_LLVM_KERNEL ? LLVMCodeGenLevelAggressive : LLVMCodeGenLevelNone};
    if (t->kind != LF_TARGET_CPU) { // SIM: the same IR, passes and layout, until lib/codegen/sim takes over
        for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
            if (gpus[i].sm != t->sm) continue;
            // No features: the lowest PTX version that the processor allows, so that older drivers take it.
            r.triple = "nvptx64-nvidia-cuda";
            r.cpu = gpus[i].name;
            *out_facts = (lf_target_facts){.has_half = true, .vector_bytes = 16};
            return create_machine(a, &r, out_machine);
        }
        return lf_error(a, LF_UNSUPPORTED, "no code can be made for sm_%u; sm_75, 80, 86, 89, 90, 100 and 120 are known",
                        t->sm);
    }
    size_t length = strnlen(t->cpu, sizeof t->cpu);
    if (!length) return this_machine(a, &r, out_machine, out_facts);
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        if (length != strlen(cpus[i].name) || memcmp(t->cpu, cpus[i].name, length) != 0) continue;
        r.cpu = cpus[i].name;
        *out_facts = cpus[i].facts;
        return create_machine(a, &r, out_machine);
    }
    return lf_error(a, LF_UNSUPPORTED, "no code can be made for CPU '%.*s'; x86-64, x86-64-v3 and x86-64-v4 are known",
                    (int)length, t->cpu);
}

lf_status lf_target_generate(lf_llvm *l, LLVMCodeGenFileType type, LLVMMemoryBufferRef *out_buffer) {
    *out_buffer = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    char *message = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(l->machine, l->emit.module, type, &message, &buffer))
        return lf_llvm_message(l->allocator, LF_INTERNAL, "code generation", message);
    lf_status s = lf_llvm_take_status(l); // instruction selection reports through the context
    if (s) {
        LLVMDisposeMemoryBuffer(buffer);
        return s;
    }
    *out_buffer = buffer;
    return NULL;
}

lf_status lf_target_generate_text(lf_llvm *l, char **out_text, size_t *out_size) {
    *out_text = NULL;
    *out_size = 0;
    LLVMMemoryBufferRef buffer;
    LF_TRY(lf_target_generate(l, LLVMAssemblyFile, &buffer));
    size_t size = LLVMGetBufferSize(buffer);
    char *text = lf_strndup(l->allocator, LLVMGetBufferStart(buffer), size);
    LLVMDisposeMemoryBuffer(buffer);
    if (!text) return lf_out_of_memory();
    *out_text = text;
    *out_size = size;
    return NULL;
}
