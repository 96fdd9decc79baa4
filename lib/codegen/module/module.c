// The table behind lfuser_codegen_entry: from programs and loops to code, step by step.
#include "base/sim_abi.h"
#include "codegen/codegen.h"
#include "codegen/host_load.h"
#include "codegen/host/host.h"
#include "codegen/kernel/kernel.h"
#include "codegen/llvm/check_ir.h"
#include "codegen/llvm/math_device.h"
#include "codegen/llvm/math_link.h"
#include "codegen/llvm/passes.h"
#include "codegen/llvm/streamed.h"
#include "codegen/llvm/target.h"
#include "codegen/sim/sim.h"
#include "lf_build_id.h"
#include <string.h>

struct lf_codegen {
    const lf_allocator *allocator;
    lf_timing timing;
};

static lf_status codegen_create(const lf_allocator *a, const lf_log *log, lf_codegen **out_codegen) {
    (void)log;
    *out_codegen = lf_alloc_zero(a, sizeof **out_codegen);
    if (!*out_codegen) return lf_out_of_memory();
    (*out_codegen)->allocator = a;
    lf_target_initialise();
    return NULL;
}

static void codegen_destroy(lf_codegen *c) {
    if (c) lf_free(c->allocator, c);
}

static void codegen_release(lf_codegen *c, lf_object *object) {
    lf_native_unload(object->native);
    lf_free(c->allocator, object->text);
    lf_free(c->allocator, object->code);
    lf_free(c->allocator, object->stages);
    lf_free(c->allocator, object->finishes);
    *object = (lf_object){0};
}

// ---- IR, ready for code generation --------------------------------------------------------------------------

// Short code first: host code is cleaned up before the maths (optimised already) comes in, kernels see through it.
static lf_status finish_ir(lf_codegen *c, lf_llvm *l, uint64_t since) {
    bool host = l->use == LF_LLVM_HOST_CODE;
    LF_TRY(lf_llvm_take_status(l));
    LF_TRY(lf_llvm_verify(l));
    lf_timing_add(&c->timing, host ? LF_TIMED_HOST_BUILD : LF_TIMED_KERNEL_BUILD, &since);
    if (host) {
        LF_TRY(lf_passes_run(l));
        lf_timing_add(&c->timing, LF_TIMED_HOST_PASSES, &since);
    }
    LF_TRY(lf_math_link(l));
    lf_math_for_device(l);
    lf_timing_add(&c->timing, host ? LF_TIMED_HOST_MATHS : LF_TIMED_KERNEL_MATHS, &since);
    if (!host) LF_TRY(lf_passes_run(l));
    lf_status s = lf_check_ir(l);
    if (!host) lf_timing_add(&c->timing, LF_TIMED_KERNEL_PASSES, &since);
    return s;
}

static lf_status host_ir(lf_codegen *c, const lf_program *p, lf_llvm **out_llvm) {
    const lf_target this_machine = {.kind = LF_TARGET_CPU};
    uint64_t start = lf_now_ns();
    LF_TRY(
        lf_llvm_create(c->allocator, &this_machine, LF_LLVM_HOST_CODE, false, p->abi.name ? p->abi.name : "host", out_llvm));
    LF_TRY(lf_host_emit(*out_llvm, p));
    return finish_ir(c, *out_llvm, start);
}

static lf_status kernel_ir(lf_codegen *c, const lf_loop *loop, const lf_target *t, lfuser_abi_class class_,
                           const lf_codegen_options *options, lf_object *object, lf_llvm **out_llvm) {
    uint64_t start = lf_now_ns();
    lf_llvm_use use = options->debug & LF_DEBUG_NO_PASSES ? LF_LLVM_QUICK_KERNEL : LF_LLVM_KERNEL;
    LF_TRY(lf_llvm_create(c->allocator, t, use, options->fast, loop->name ? loop->name : "kernel", out_llvm));
    (*out_llvm)->scalar = options->debug & LF_DEBUG_NO_VECTORISER;
    LF_TRY(lf_kernel_emit(*out_llvm, loop, t, class_, options, object));
    LF_TRY(finish_ir(c, *out_llvm, start));
    lf_hint_streamed(*out_llvm);
    if (t->kind != LF_TARGET_SIM) return NULL;
    strcpy(object->entry, LF_SIM_SYMBOL);
    return lf_sim_lower(*out_llvm);
}

// ---- code ---------------------------------------------------------------------------------------------------

static lf_status make_native(lf_codegen *c, lf_llvm *l, lf_object *object) {
    LLVMMemoryBufferRef buffer;
    bool host = l->use == LF_LLVM_HOST_CODE;
    uint64_t since = lf_now_ns();
    LF_TRY(lf_target_generate(l, LLVMObjectFile, &buffer));
    object->code_size = LLVMGetBufferSize(buffer);
    object->code = lf_alloc(c->allocator, object->code_size);
    if (object->code) memcpy(object->code, LLVMGetBufferStart(buffer), object->code_size);
    lf_timing_add(&c->timing, host ? LF_TIMED_HOST_CODE : LF_TIMED_KERNEL_CODE, &since);
    LLVMDisposeMemoryBuffer(buffer);
    return object->code ? NULL : lf_out_of_memory();
}

static lf_status codegen_host(lf_codegen *c, const lf_program *p, lf_object *out_object) {
    *out_object = (lf_object){0};
    lf_llvm *l = NULL;
    lf_status s = host_ir(c, p, &l);
    if (!s) s = make_native(c, l, out_object);
    uint64_t since = lf_now_ns();
    if (!s) s = lf_host_load(c->allocator, &p->abi, out_object);
    if (!s) lf_timing_add(&c->timing, LF_TIMED_HOST_LOAD, &since);
    lf_llvm_destroy(l);
    if (s) codegen_release(c, out_object);
    return s;
}

static lf_status codegen_kernel(lf_codegen *c, const lf_loop *loop, const lf_target *t, lfuser_abi_class class_,
                                const lf_codegen_options *options, lf_object *out_object) {
    *out_object = (lf_object){0};
    lf_llvm *l = NULL;
    lf_status s = kernel_ir(c, loop, t, class_, options, out_object, &l);
    if (!s && t->kind == LF_TARGET_CUDA) {
        uint64_t since = lf_now_ns();
        s = lf_target_generate_text(l, &out_object->text, &out_object->text_size);
        lf_timing_add(&c->timing, LF_TIMED_KERNEL_CODE, &since);
    } else if (!s) {
        lf_native_symbol symbol = {.name = out_object->entry};
        s = make_native(c, l, out_object);
        uint64_t since = lf_now_ns();
        if (!s) s = lf_native_load(c->allocator, out_object->code, out_object->code_size, &symbol, 1, &out_object->native);
        if (!s) lf_timing_add(&c->timing, LF_TIMED_KERNEL_LOAD, &since);
        out_object->address = symbol.address;
    }
    lf_llvm_destroy(l);
    if (s) codegen_release(c, out_object);
    return s;
}

// ---- for people ---------------------------------------------------------------------------------------------

static lf_status codegen_print(lf_codegen *c, lf_emit_stage stage, const lf_program *p, const lf_loop *loop,
                               const lf_target *t, lfuser_abi_class class_, const lf_codegen_options *options,
                               char **out_text) {
    *out_text = NULL;
    lf_object object = {0};
    lf_llvm *l = NULL;
    size_t size;
    bool host = stage == LF_STAGE_HOST_IR || stage == LF_STAGE_HOST_ASM;
    lf_status s = host ? host_ir(c, p, &l) : kernel_ir(c, loop, t, class_, options, &object, &l);
    if (!s) {
        bool ir = stage == LF_STAGE_HOST_IR || stage == LF_STAGE_KERNEL_IR;
        uint64_t since = lf_now_ns();
        s = ir ? lf_llvm_module_text(l, out_text) : lf_target_generate_text(l, out_text, &size);
        if (!ir) lf_timing_add(&c->timing, host ? LF_TIMED_HOST_CODE : LF_TIMED_KERNEL_CODE, &since);
    }
    lf_llvm_destroy(l);
    return s;
}

static const lf_timing *codegen_timing(const lf_codegen *c) { return &c->timing; }

static const lf_codegen_table table = {
    .version = LF_CODEGEN_VERSION,
    .build_id = LF_BUILD_ID,
    .create = codegen_create,
    .destroy = codegen_destroy,
    .host = codegen_host,
    .kernel = codegen_kernel,
    .release = codegen_release,
    .print = codegen_print,
    .timing = codegen_timing,
};

__attribute__((visibility("default"))) const lf_codegen_table *lfuser_codegen_entry(uint32_t version) {
    return version == LF_CODEGEN_VERSION ? &table : NULL;
}
