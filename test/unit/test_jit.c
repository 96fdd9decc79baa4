// LLVM as this library uses it: loading and unloading code, the closed list of what code may call, the maths bitcode
// on every target, the allow-list before code generation (each intrinsic on it is compiled, each thing off it
// refused), NVPTX text. The ops themselves: test_emit*.c.
#include "codegen/llvm/check_ir.h"
#include "codegen/llvm/math_link.h"
#include "codegen/llvm/passes.h"
#include "codegen/llvm/target.h"
#include "math/math.h"
#include "native/native.h"
#include "test/support/build.h"
#include "test/support/ir_text.h"
#include <check.h>
#include <llvm-c/Object.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const lf_allocator *const heap = &lf_system_allocator;

static void ok(lf_status s) { ck_assert_msg(!s, "%s: %s", lf_code_name(lf_status_code(s)), lf_status_message(s)); }

static void fails(lf_status s, lf_code code, const char *has) {
    ck_assert_msg(s != NULL, "succeeded; wanted %s", has);
    ck_assert_str_eq(lf_code_name(lf_status_code(s)), lf_code_name(code));
    ck_assert_msg(strstr(lf_status_message(s), has) != NULL, "'%s' lacks '%s'", lf_status_message(s), has);
    lf_status_destroy(s);
}

static const lf_target targets[] = {
    {.kind = LF_TARGET_CPU},
    {.kind = LF_TARGET_CPU, .cpu = "x86-64"},
    {.kind = LF_TARGET_CPU, .cpu = "x86-64-v3"},
    {.kind = LF_TARGET_CPU, .cpu = "x86-64-v4"},
    {.kind = LF_TARGET_CUDA, .sm = 75},
    {.kind = LF_TARGET_CUDA, .sm = 80},
    {.kind = LF_TARGET_CUDA, .sm = 86},
    {.kind = LF_TARGET_CUDA, .sm = 89},
    {.kind = LF_TARGET_CUDA, .sm = 90},
    {.kind = LF_TARGET_CUDA, .sm = 100},
    {.kind = LF_TARGET_CUDA, .sm = 120},
};
enum { N_TARGETS = sizeof targets / sizeof *targets, NATIVE = 0, BASE = 1, V3 = 2, SM75 = 4, SM90 = 8 };

// A module of that IR text. NULL and the status in *out_status when it is not IR.
static lf_llvm *from_text(const lf_target *t, bool fast, const char *text) {
    lf_llvm *l;
    ok(lf_llvm_create(heap, t, LF_LLVM_KERNEL, fast, "test", &l));
    ir_from_text(l, text);
    ok(lf_llvm_verify(l));
    return l;
}

static LLVMMemoryBufferRef object_of(lf_llvm *l) {
    LLVMMemoryBufferRef buffer;
    ok(lf_check_ir(l));
    ok(lf_target_generate(l, LLVMObjectFile, &buffer));
    return buffer;
}

// Every symbol that an object wants from outside is on the list of imports.
static void check_undefined(LLVMMemoryBufferRef object) {
    char *message = NULL;
    LLVMBinaryRef binary = LLVMCreateBinary(object, NULL, &message);
    ck_assert_msg(binary != NULL, "%s", message);
    LLVMSymbolIteratorRef it = LLVMObjectFileCopySymbolIterator(binary);
    LLVMSectionIteratorRef section = LLVMObjectFileCopySectionIterator(binary);
    for (; !LLVMObjectFileIsSymbolIteratorAtEnd(binary, it); LLVMMoveToNextSymbol(it)) {
        const char *name = LLVMGetSymbolName(it);
        LLVMMoveToContainingSection(section, it);
        bool outside = LLVMObjectFileIsSectionIteratorAtEnd(binary, section);
        if (!outside || !*name || strcmp(name, "_GLOBAL_OFFSET_TABLE_") == 0 || strcmp(name, "test") == 0) continue;
        ck_assert_msg(lf_native_imports(name, strlen(name)), "an object wants %s", name);
    }
    LLVMDisposeSectionIterator(section);
    LLVMDisposeSymbolIterator(it);
    LLVMDisposeBinary(binary);
}

static bool find_ptxas(char *path, size_t size) {
    static const char *const places[] = {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], X_OK) == 0) return snprintf(path, size, "%s", places[i]) > 0;
    return false;
}

static void assemble(const char *ptx, uint32_t sm) {
    char ptxas[64], file[] = "/tmp/lf_test_ptx_XXXXXX", command[256];
    if (!find_ptxas(ptxas, sizeof ptxas)) return;
    int fd = mkstemp(file);
    FILE *f = fdopen(fd, "w");
    ck_assert(fputs(ptx, f) >= 0 && fclose(f) == 0);
    snprintf(command, sizeof command, "%s -O0 -arch=sm_%u %s -o /dev/null 2>&1", ptxas, sm, file);
    int rc = system(command);
    unlink(file);
    ck_assert_msg(rc == 0, "ptxas refuses for sm_%u:\n%.2000s", sm, ptx);
}

static long resident_kib(void) {
    long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert(f && fscanf(f, "%ld %ld", &size, &pages) == 2);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

// ---- targets ------------------------------------------------------------------------------------------------

START_TEST(test_unknown_targets) {
    lf_llvm *l;
    lf_target sm = {.kind = LF_TARGET_CUDA, .sm = 42}, cpu = {.kind = LF_TARGET_CPU, .cpu = "pentium"};
    fails(lf_llvm_create(heap, &sm, LF_LLVM_KERNEL, false, "x", &l), LF_UNSUPPORTED, "sm_42");
    ck_assert_ptr_null(l);
    fails(lf_llvm_create(heap, &cpu, LF_LLVM_KERNEL, false, "x", &l), LF_UNSUPPORTED, "'pentium'");
    memset(cpu.cpu, 'x', sizeof cpu.cpu); // no end
    fails(lf_llvm_create(heap, &cpu, LF_LLVM_KERNEL, false, "x", &l), LF_UNSUPPORTED, "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'");
}
END_TEST

START_TEST(test_ptx) {
    static const char text[] = "define ptx_kernel void @twice(ptr addrspace(1) %p) {\n"
                               "  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
                               "  %q = getelementptr float, ptr addrspace(1) %p, i32 %i\n"
                               "  %x = load float, ptr addrspace(1) %q\n"
                               "  %y = fadd float %x, %x\n"
                               "  store float %y, ptr addrspace(1) %q\n"
                               "  ret void\n"
                               "}\n";
    for (size_t i = 0; i < N_TARGETS; i++) {
        if (targets[i].kind != LF_TARGET_CUDA) continue;
        lf_llvm *l = from_text(&targets[i], false, text);
        char *ptx, target[32];
        size_t size;
        ok(lf_passes_run(l));
        ok(lf_check_ir(l));
        ok(lf_target_generate_text(l, &ptx, &size));
        ck_assert_uint_eq(size, strlen(ptx));
        snprintf(target, sizeof target, ".target sm_%u", targets[i].sm);
        ck_assert_msg(strstr(ptx, target) && strstr(ptx, ".visible .entry twice(") && strstr(ptx, "add.rn.f32"), "%s", ptx);
        assemble(ptx, targets[i].sm);
        lf_free(heap, ptx);
        lf_llvm_destroy(l);
    }
}
END_TEST

// ---- the allow-list -----------------------------------------------------------------------------------------

// One call of each intrinsic that is allowed, in terms of the parameters of `everything`.
static const char *const calls[] = {
    "i32 @llvm.abs.i32(i32 %i, i1 false)",
    "i64 @llvm.smax.i64(i64 %l, i64 7)",
    "i8 @llvm.smin.i8(i8 %c, i8 7)",
    "i16 @llvm.umax.i16(i16 %s, i16 7)",
    "i32 @llvm.umin.i32(i32 %i, i32 7)",
    "i8 @llvm.scmp.i8.i32(i32 %i, i32 7)",
    "i8 @llvm.ucmp.i8.i64(i64 %l, i64 7)",
    "i64 @llvm.ctlz.i64(i64 %l, i1 false)",
    "i8 @llvm.cttz.i8(i8 %c, i1 false)",
    "i16 @llvm.ctpop.i16(i16 %s)",
    "i32 @llvm.bswap.i32(i32 %i)",
    "i64 @llvm.bitreverse.i64(i64 %l)",
    "i32 @llvm.fshl.i32(i32 %i, i32 3, i32 %i)",
    "i64 @llvm.fshr.i64(i64 %l, i64 3, i64 %l)",
    "i8 @llvm.sadd.sat.i8(i8 %c, i8 7)",
    "i32 @llvm.uadd.sat.i32(i32 %i, i32 7)",
    "i64 @llvm.ssub.sat.i64(i64 %l, i64 7)",
    "i16 @llvm.usub.sat.i16(i16 %s, i16 7)",
    "{ i32, i1 } @llvm.sadd.with.overflow.i32(i32 %i, i32 7)",
    "{ i64, i1 } @llvm.uadd.with.overflow.i64(i64 %l, i64 7)",
    "{ i8, i1 } @llvm.ssub.with.overflow.i8(i8 %c, i8 7)",
    "{ i16, i1 } @llvm.usub.with.overflow.i16(i16 %s, i16 7)",
    "{ i64, i1 } @llvm.smul.with.overflow.i64(i64 %l, i64 7)",
    "{ i64, i1 } @llvm.umul.with.overflow.i64(i64 %l, i64 7)",
    "float @llvm.fabs.f32(float %f)",
    "double @llvm.copysign.f64(double %d, double 1.0)",
    "float @llvm.sqrt.f32(float %f)",
    "double @llvm.sqrt.f64(double %d)",
    "float @llvm.fma.f32(float %f, float 3.0, float %f)",
    "double @llvm.fma.f64(double %d, double 3.0, double %d)",
    "<4 x float> @llvm.fma.v4f32(<4 x float> %v, <4 x float> %v, <4 x float> %v)",
    "float @llvm.floor.f32(float %f)",
    "double @llvm.floor.f64(double %d)",
    "float @llvm.ceil.f32(float %f)",
    "double @llvm.ceil.f64(double %d)",
    "float @llvm.trunc.f32(float %f)",
    "double @llvm.trunc.f64(double %d)",
    "float @llvm.rint.f32(float %f)",
    "double @llvm.rint.f64(double %d)",
    "float @llvm.nearbyint.f32(float %f)",
    "double @llvm.nearbyint.f64(double %d)",
    "float @llvm.roundeven.f32(float %f)",
    "double @llvm.roundeven.f64(double %d)",
    "float @llvm.minimum.f32(float %f, float 1.0)",
    "double @llvm.maximum.f64(double %d, double 1.0)",
    "float @llvm.minimumnum.f32(float %f, float 1.0)",
    "double @llvm.maximumnum.f64(double %d, double 1.0)",
    "i1 @llvm.is.fpclass.f32(float %f, i32 3)",
    "i1 @llvm.is.fpclass.f64(double %d, i32 516)",
    "i64 @llvm.fptosi.sat.i64.f32(float %f)",
    "i8 @llvm.fptosi.sat.i8.f64(double %d)",
    "i64 @llvm.fptoui.sat.i64.f64(double %d)",
    "i16 @llvm.fptoui.sat.i16.f32(float %f)",
    "float @llvm.fmuladd.f32(float %f, float 3.0, float %f)",
    "afn float @llvm.tanh.f32(float %f)",
    "afn float @llvm.sin.f32(float %f)",
    "afn float @llvm.cos.f32(float %f)",
    "void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %l, i1 false)",
    "void @llvm.memcpy.inline.p0.p0.i64(ptr %p, ptr %q, i64 16, i1 false)",
    "void @llvm.memmove.p0.p0.i64(ptr %p, ptr %q, i64 %l, i1 false)",
    "void @llvm.memset.p0.i64(ptr %p, i8 %c, i64 %l, i1 false)",
    "void @llvm.memset.inline.p0.i64(ptr %p, i8 %c, i64 16, i1 false)",
    "void @llvm.lifetime.start.p0(ptr %a)",
    "void @llvm.lifetime.end.p0(ptr %a)",
    "void @llvm.assume(i1 %b)",
    "i32 @llvm.expect.i32(i32 %i, i32 7)",
    "ptr @llvm.ptrmask.p0.i64(ptr %p, i64 -16)",
    "void @llvm.experimental.noalias.scope.decl(metadata !0)",
    "void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)",
    "i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %w)",
    "i32 @llvm.vector.reduce.mul.v4i32(<4 x i32> %w)",
    "i32 @llvm.vector.reduce.and.v4i32(<4 x i32> %w)",
    "i32 @llvm.vector.reduce.or.v4i32(<4 x i32> %w)",
    "i32 @llvm.vector.reduce.xor.v4i32(<4 x i32> %w)",
    "i32 @llvm.vector.reduce.smax.v4i32(<4 x i32> %w)",
    "i32 @llvm.vector.reduce.smin.v4i32(<4 x i32> %w)",
    "i32 @llvm.vector.reduce.umax.v4i32(<4 x i32> %w)",
    "i32 @llvm.vector.reduce.umin.v4i32(<4 x i32> %w)",
    "float @llvm.vector.reduce.fadd.v4f32(float -0.0, <4 x float> %v)",
    "float @llvm.vector.reduce.fmul.v4f32(float 1.0, <4 x float> %v)",
    "float @llvm.vector.reduce.fmaximum.v4f32(<4 x float> %v)",
    "float @llvm.vector.reduce.fminimum.v4f32(<4 x float> %v)",
    "<4 x float> @llvm.vector.insert.v4f32.v2f32(<4 x float> %v, <2 x float> %u, i64 2)",
    "<2 x float> @llvm.vector.extract.v2f32.v4f32(<4 x float> %v, i64 2)",
    "<4 x i32> @llvm.stepvector.v4i32()",
    "<4 x float> @llvm.vector.interleave2.v4f32(<2 x float> %u, <2 x float> %u)",
    "{ <2 x float>, <2 x float> } @llvm.vector.deinterleave2.v4f32(<4 x float> %v)",
    "<4 x float> @llvm.masked.load.v4f32.p0(ptr align 4 %p, <4 x i1> %m, <4 x float> %v)",
    "void @llvm.masked.store.v4f32.p0(<4 x float> %v, ptr align 4 %p, <4 x i1> %m)",
    "<4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> align 4 %n, <4 x i1> %m, <4 x float> %v)",
    "void @llvm.masked.scatter.v4f32.v4p0(<4 x float> %v, <4 x ptr> align 4 %n, <4 x i1> %m)",
    "<4 x float> @llvm.masked.expandload.v4f32.p0(ptr align 4 %p, <4 x i1> %m, <4 x float> %v)",
    "void @llvm.masked.compressstore.v4f32.p0(<4 x float> %v, ptr align 4 %p, <4 x i1> %m)",
    "<4 x i1> @llvm.get.active.lane.mask.v4i1.i64(i64 %l, i64 100)",
    "i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
    "i32 @llvm.nvvm.read.ptx.sreg.tid.y()",
    "i32 @llvm.nvvm.read.ptx.sreg.tid.z()",
    "i32 @llvm.nvvm.read.ptx.sreg.ntid.x()",
    "i32 @llvm.nvvm.read.ptx.sreg.ntid.y()",
    "i32 @llvm.nvvm.read.ptx.sreg.ntid.z()",
    "i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
    "i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()",
    "i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()",
    "i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()",
    "i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()",
    "i32 @llvm.nvvm.read.ptx.sreg.nctaid.z()",
    "i32 @llvm.nvvm.read.ptx.sreg.laneid()",
    "i32 @llvm.nvvm.read.ptx.sreg.warpsize()",
    "i32 @llvm.nvvm.read.ptx.sreg.smid()",
    "i32 @llvm.nvvm.read.ptx.sreg.lanemask.eq()",
    "i32 @llvm.nvvm.read.ptx.sreg.lanemask.le()",
    "i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()",
    "i32 @llvm.nvvm.read.ptx.sreg.lanemask.ge()",
    "i32 @llvm.nvvm.read.ptx.sreg.lanemask.gt()",
    "void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",
    "void @llvm.nvvm.barrier.cta.sync.all(i32 0)",
    "ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %s3, i32 %i)",
    "void @llvm.nvvm.barrier.cluster.arrive.aligned()",
    "void @llvm.nvvm.barrier.cluster.wait.aligned()",
    "void @llvm.nvvm.griddepcontrol.wait()",
    "void @llvm.nvvm.griddepcontrol.launch.dependents()",
    "void @llvm.nvvm.bar.warp.sync(i32 -1)",
    "void @llvm.nvvm.membar.cta()",
    "void @llvm.nvvm.membar.gl()",
    "void @llvm.nvvm.membar.sys()",
    "i32 @llvm.nvvm.activemask()",
    "i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %i, i32 1, i32 31)",
    "i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %i, i32 1, i32 0)",
    "i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %i, i32 1, i32 31)",
    "i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %i, i32 1, i32 31)",
    "float @llvm.nvvm.shfl.sync.idx.f32(i32 -1, float %f, i32 1, i32 31)",
    "float @llvm.nvvm.shfl.sync.up.f32(i32 -1, float %f, i32 1, i32 0)",
    "float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %f, i32 1, i32 31)",
    "float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %f, i32 1, i32 31)",
    "i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 %b)",
    "i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %b)",
    "i1 @llvm.nvvm.vote.uni.sync(i32 -1, i1 %b)",
    "i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %b)",
    "i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %i)",
    "i32 @llvm.nvvm.match.any.sync.i64(i32 -1, i64 %l)",
    "i32 @llvm.nvvm.redux.sync.add(i32 %i, i32 -1)",
    "i32 @llvm.nvvm.redux.sync.umin(i32 %i, i32 -1)",
    "i32 @llvm.nvvm.redux.sync.umax(i32 %i, i32 -1)",
    "i32 @llvm.nvvm.redux.sync.min(i32 %i, i32 -1)",
    "i32 @llvm.nvvm.redux.sync.max(i32 %i, i32 -1)",
    "i32 @llvm.nvvm.redux.sync.and(i32 %i, i32 -1)",
    "i32 @llvm.nvvm.redux.sync.or(i32 %i, i32 -1)",
    "i32 @llvm.nvvm.redux.sync.xor(i32 %i, i32 -1)",
    "void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %s3, ptr addrspace(1) %g1)",
    "void @llvm.nvvm.cp.async.ca.shared.global.8(ptr addrspace(3) %s3, ptr addrspace(1) %g1)",
    "void @llvm.nvvm.cp.async.ca.shared.global.16(ptr addrspace(3) %s3, ptr addrspace(1) %g1)",
    "void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %s3, ptr addrspace(1) %g1)",
    "void @llvm.nvvm.cp.async.commit.group()",
    "void @llvm.nvvm.cp.async.wait.group(i32 1)",
    "void @llvm.nvvm.cp.async.wait.all()",
    "float @llvm.nvvm.rcp.approx.ftz.f(float %f)",
    "float @llvm.nvvm.rsqrt.approx.f(float %f)",
    "float @llvm.nvvm.rsqrt.approx.ftz.f(float %f)",
    "float @llvm.nvvm.sqrt.approx.f(float %f)",
    "float @llvm.nvvm.lg2.approx.f(float %f)",
    "float @llvm.nvvm.lg2.approx.ftz.f(float %f)",
    "float @llvm.nvvm.ex2.approx.f32(float %f)",
    "float @llvm.nvvm.ex2.approx.ftz.f32(float %f)",
    "float @llvm.nvvm.sin.approx.f(float %f)",
    "float @llvm.nvvm.cos.approx.f(float %f)",
    "float @llvm.nvvm.div.approx.f(float %f, float 3.0)",
};
enum { N_CALLS = sizeof calls / sizeof *calls };

static const char *name_in(const char *call) { return strchr(call, '@') + 1; }

// The call's intrinsic is this one, or an overload of it.
static bool calls_rule(const char *call, const lf_ir_rule *rule) {
    const char *name = name_in(call);
    size_t n = strlen(rule->name);
    if (strncmp(name, rule->name, n) != 0) return false;
    if (name[n] == '(') return true;
    // an overload's suffix is of types: .i32, .v4f32, .p0
    return name[n] == '.' && strchr("ifvp", name[n + 1]) && (name[n + 2] >= '0' && name[n + 2] <= '9');
}

static lf_llvm *calling(const lf_target *t, bool fast, const char *call) {
    char text[1600], store[256] = "";
    bool nothing = strncmp(call, "void", 4) == 0;
    int length = (int)(strchr(call, '@') - call);
    const char *type = strncmp(call, "afn ", 4) == 0 ? call + 4 : call;
    if (!nothing) snprintf(store, sizeof store, "  store %.*s %%r, ptr %%p\n", length - (int)(type - call), type);
    snprintf(text, sizeof text,
             "define void @everything(ptr %%p, ptr %%q, i8 %%c, i16 %%s, i32 %%i, i64 %%l, float %%f, double %%d, i1 %%b,\n"
             "  <2 x float> %%u, <4 x float> %%v, <4 x i32> %%w, <4 x i1> %%m, <4 x ptr> %%n,\n"
             "  ptr addrspace(1) %%g1, ptr addrspace(3) %%s3) {\n"
             "  %%a = alloca i64\n"
             "  %scall %s\n%s"
             "  ret void\n}\n!0 = !{!1}\n!1 = distinct !{!1, !2}\n!2 = distinct !{!2}\n",
             nothing ? "" : "%r = ", call, store);
    return from_text(t, fast, text);
}

// Each row is compiled for each target it is allowed on, and nothing aborts.
START_TEST(test_intrinsics_work) {
    const lf_target *t = &targets[_i];
    bool gpu = t->kind == LF_TARGET_CUDA;
    lf_ir_rule rule;
    for (size_t i = 0; lf_check_ir_rule(i, &rule); i++) {
        unsigned n = 0;
        for (size_t k = 0; k < N_CALLS; k++) {
            if (!calls_rule(calls[k], &rule)) continue;
            n++;
            lf_llvm *l = calling(t, true, calls[k]);
            lf_status s = lf_check_ir(l);
            if (!(gpu ? rule.gpu : rule.cpu) || (gpu && t->sm < rule.sm)) {
                fails(s, LF_UNSUPPORTED, gpu ? "no such" : "no such function on x86-64");
            } else {
                LLVMMemoryBufferRef buffer;
                ok(s);
                ok(lf_target_generate(l, gpu ? LLVMAssemblyFile : LLVMObjectFile, &buffer));
                if (!gpu) check_undefined(buffer);
                LLVMDisposeMemoryBuffer(buffer);
            }
            lf_llvm_destroy(l);
            if (!rule.fast || !(gpu ? rule.gpu && t->sm >= rule.sm : rule.cpu)) continue;
            l = calling(t, false, calls[k]);
            fails(lf_check_ir(l), LF_UNSUPPORTED, "exact mode");
            lf_llvm_destroy(l);
        }
        ck_assert_msg(n > 0, "no test calls %s", rule.name);
    }
}
END_TEST

typedef struct refusal {
    int target;
    const char *code; // body of `void @f(ptr %p, float %f, double %d, i128 %w, half %h, i32 %i)`
    const char *says;
} refusal;
static const refusal refusals[] = {
    {SM90, "%r = call float @llvm.exp.f32(float %f)",
     "no such function on sm_90: %r = call float @llvm.exp.f32(float %f) (in f)"},
    {SM90, "%r = call double @llvm.sin.f64(double %d)", "no such function but in exact mode on sm_90"},
    {SM90, "%r = call float @llvm.pow.f32(float %f, float %f)", "no such function on sm_90"},
    {SM90, "%r = frem float %f, 3.0", "no such instruction on sm_90: %r = frem float %f, 3.000000e+00"},
    {NATIVE, "%r = frem double %d, 3.0", "no such instruction on x86-64"},
    {NATIVE, "%r = call float @llvm.exp.f32(float %f)", "no such function on x86-64"},
    {SM90, "%r = call float @expf(float %f)", "call of a function that is not there on sm_90"},
    {NATIVE, "%r = call float @expf(float %f)", "call of a function that is not there on x86-64"},
    {SM90, "%r = call float @fmaf(float %f, float %f, float %f)", "call of a function that is not there on sm_90"},
    {SM75, "%r = call i32 @llvm.nvvm.redux.sync.add(i32 %i, i32 -1)", "no such instruction yet on sm_75"},
    {NATIVE, "%r = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()", "no such function on x86-64"},
    {NATIVE, "%r = sdiv i128 %w, 3", "no such operation beyond 64 bits"},
    {SM90, "%r = uitofp i128 %w to float", "no such operation beyond 64 bits"},
    {SM90, "%r = fptrunc float %f to bfloat", "bfloat values"},
    {NATIVE, "%r = fptrunc float %f to bfloat", "bfloat values"},
    {NATIVE, "%r = fpext double %d to fp128", "a type that no target has"},
    {NATIVE, "%r = fpext float %f to x86_fp80", "a type that no target has"},
    {BASE, "%r = fptrunc float %f to half", "no half arithmetic"},
    {BASE, "%r = fadd half %h, %h", "no half arithmetic"},
    {V3, "%r = fptrunc double %d to half", "no conversion from f64 to half"},
    {V3, "%r = call half @llvm.fma.f16(half %h, half %h, half %h)", "no half arithmetic with one rounding"},
    {NATIVE, "call void %p()", "no indirect calls"},
    {SM90, "call void asm sideeffect \"nop\", \"\"()", "inline assembly that device_intrinsics.def does not list on sm_90"},
    {SM75, "%r = call i16 asm \"cvt.rn.bf16.f32 $0, $1;\", \"=h,f\"(float %f)", "no such instruction yet on sm_75"},
    {SM75, "%r = call i32 asm \"max.NaN.bf16x2 $0, $1, $2;\", \"=r,r,r\"(i32 %i, i32 %i)",
     "no such instruction yet on sm_75"},
    {NATIVE, "call void asm sideeffect \"nop\", \"\"()", "no inline assembly"},
    {SM90, "%r = alloca i8, i32 %i", "no stack memory of variable size"},
    {NATIVE, "%r = va_arg ptr %p, i32", "no such instruction"},
    {NATIVE, "%r = call <vscale x 4 x i32> @llvm.stepvector.nxv4i32()", "a type that no target has"},
};

START_TEST(test_refusals) {
    const refusal *r = &refusals[_i];
    char text[1000];
    snprintf(text, sizeof text,
             "declare float @expf(float)\ndeclare float @fmaf(float, float, float)\n"
             "define void @f(ptr %%p, float %%f, double %%d, i128 %%w, half %%h, i32 %%i) {\n  %s\n  ret void\n}\n",
             r->code);
    lf_llvm *l = from_text(&targets[r->target], strstr(r->says, "but in exact") == NULL, text);
    fails(lf_check_ir(l), LF_UNSUPPORTED, strstr(r->says, "but in exact") ? "inexact function in exact mode" : r->says);
    lf_llvm_destroy(l);
}
END_TEST

START_TEST(test_approximate_only) {
    // Without afn LLVM would want a C library on a GPU.
    static const char *const bad[] = {"float @llvm.sin.f32(float %f)", "afn double @llvm.sin.f64(double %d)"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lf_llvm *l = calling(&targets[SM90], true, bad[i]);
        fails(lf_check_ir(l), LF_UNSUPPORTED, "no such function but approximate, in f32, on sm_90");
        lf_llvm_destroy(l);
    }
}
END_TEST

START_TEST(test_long_function) {
    // Were the check quadratic, 100,000 instructions would run into the time limit.
    size_t size = 8000000, at = 0;
    char *text = malloc(size);
    at += (size_t)snprintf(text + at, size - at, "define void @f(ptr %%p, float %%x0) {\n");
    for (int i = 0; i < 100000; i++)
        at += (size_t)snprintf(text + at, size - at,
                               "%%x%d = call float @llvm.fma.f32(float %%x%d, float 0.5, float %%x0)\n", i + 1, i);
    at += (size_t)snprintf(text + at, size - at, "store float %%x100000, ptr %%p\nret void\n}\n");
    ck_assert(at < size);
    lf_llvm *l = from_text(&targets[SM90], false, text);
    free(text);
    ok(lf_check_ir(l));
    lf_llvm_destroy(l);
}
END_TEST

// ---- the maths ----------------------------------------------------------------------------------------------

#define LFM_UNARY(name) "float @lfm_" #name "_f32(float %f)", "double @lfm_" #name "_f64(double %d)",
#define LFM_BINARY(name) "float @lfm_" #name "_f32(float %f, float %f)", "double @lfm_" #name "_f64(double %d, double %d)",
#define LFM_CUNARY(name)                                                                                                    \
    "void @lfm_c" #name "_f32(float %f, float %f, ptr %p, ptr %q)",                                                         \
        "void @lfm_c" #name "_f64(double %d, double %d, ptr %p, ptr %q)",
#define LFM_CBINARY(name)                                                                                                   \
    "void @lfm_c" #name "_f32(float %f, float %f, float %f, float %f, ptr %p, ptr %q)",                                     \
        "void @lfm_c" #name "_f64(double %d, double %d, double %d, double %d, ptr %p, ptr %q)",
static const char *const maths[] = {
#include "math/functions.def"
};
enum { N_MATHS = sizeof maths / sizeof *maths };

static lf_llvm *maths_module(const lf_target *t, size_t from, size_t to) {
    static char text[64 * 1024];
    size_t at = 0;
    for (size_t i = from; i < to; i++) { // the same text but for names declares it
        const char *name = name_in(maths[i]);
        at += (size_t)snprintf(text + at, sizeof text - at, "declare %.*s%.*s(", (int)(name - maths[i]), maths[i],
                               (int)strcspn(name, "("), name);
        for (const char *c = strchr(name, '('); *c != ')'; c++) {
            const char *types[] = {"float", "double", "ptr"};
            for (size_t k = 0; k < 3; k++)
                if (strncmp(c + 1, types[k], strlen(types[k])) == 0) {
                    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", *c == '(' ? "" : ", ", types[k]);
                    break;
                }
        }
        at += (size_t)snprintf(text + at, sizeof text - at, ")\n");
    }
    at += (size_t)snprintf(text + at, sizeof text - at, "define void @test(float %%f, double %%d, ptr %%p, ptr %%q) {\n");
    for (size_t i = from; i < to; i++) {
        bool nothing = strncmp(maths[i], "void", 4) == 0;
        at += nothing ? (size_t)snprintf(text + at, sizeof text - at, "  call %s\n", maths[i])
                      : (size_t)snprintf(text + at, sizeof text - at,
                                         "  %%r%zu = call %s\n  store volatile %.*s %%r%zu, ptr %%p\n", i, maths[i],
                                         (int)strcspn(maths[i], " "), maths[i], i);
    }
    at += (size_t)snprintf(text + at, sizeof text - at, "  ret void\n}\n");
    ck_assert(at < sizeof text);
    return from_text(t, false, text);
}

// Every function of lib/math, optimised for and compiled on every target, asks for nothing that is not there.
START_TEST(test_maths_everywhere) {
    const lf_target *t = &targets[_i];
    if (_i != NATIVE && _i != BASE && _i != SM75 && _i != SM90 && !getenv("LFUSER_TEST_LONG")) return;
    for (size_t from = 0; from < N_MATHS; from += 16) {
        lf_llvm *l = maths_module(t, from, from + 16 < N_MATHS ? from + 16 : N_MATHS);
        ok(lf_math_link(l));
        ok(lf_llvm_verify(l));
        ok(lf_passes_run(l));
        ok(lf_check_ir(l));
        if (t->kind == LF_TARGET_CUDA) {
            char *ptx;
            size_t size;
            ok(lf_target_generate_text(l, &ptx, &size));
            if (getenv("LFUSER_TEST_LONG") || (t->sm == 90 && from == 0)) assemble(ptx, t->sm);
            lf_free(heap, ptx);
        } else {
            LLVMMemoryBufferRef object;
            ok(lf_target_generate(l, LLVMObjectFile, &object));
            check_undefined(object);
            LLVMDisposeMemoryBuffer(object);
        }
        lf_llvm_destroy(l);
    }
}
END_TEST

START_TEST(test_maths_missing) {
    lf_llvm *l =
        from_text(&targets[NATIVE], false,
                  "declare float @lfm_nonsense_f32(float)\ndeclare float @lfm_unused_f32(float)\n"
                  "define float @f(float %x) {\n  %r = call float @lfm_nonsense_f32(float %x)\n  ret float %r\n}\n");
    fails(lf_math_link(l), LF_INTERNAL, "lib/math has no function lfm_nonsense_f32");
    lf_llvm_destroy(l);
}
END_TEST

START_TEST(test_maths_only_what_is_used) {
    lf_llvm *l = from_text(&targets[NATIVE], false,
                           "declare float @lfm_exp_f32(float)\n"
                           "define float @f(float %x) {\n  %r = call float @lfm_exp_f32(float %x)\n  ret float %r\n}\n");
    ok(lf_math_link(l));
    char *text;
    ok(lf_llvm_module_text(l, &text));
    ck_assert_ptr_nonnull(strstr(text, "define internal float @lfm_exp_f32("));
    ck_assert_ptr_null(strstr(text, "lfm_log"));
    lf_free(heap, text);
    lf_llvm_destroy(l);
}
END_TEST

// ---- loading -----------------------------------------------------------------------------------------------

static const char add_text[] =
    "define i64 @add(i64 %a, i64 %b) nounwind {\n  %r = add i64 %a, %b\n  ret i64 %r\n}\n"
    "define double @mad(double %a, double %b) nounwind {\n"
    "  %r = call double @llvm.fma.f64(double %a, double %b, double 0x3FF0000000000001)\n  ret double %r\n}\n";
typedef int64_t (*add_function)(int64_t, int64_t);
typedef double (*mad_function)(double, double);

static void load_add(LLVMMemoryBufferRef object, lf_native_symbol symbols[2], lf_native **out_code) {
    symbols[0] = (lf_native_symbol){.name = "add"};
    symbols[1] = (lf_native_symbol){.name = "mad"};
    ok(lf_native_load(heap, LLVMGetBufferStart(object), LLVMGetBufferSize(object), symbols, 2, out_code));
    ck_assert_int_eq(((add_function)(uintptr_t)symbols[0].address)(40, 2), 42);
    ck_assert(((mad_function)(uintptr_t)symbols[1].address)(2.0, 3.0) == 0x1.c000000000000p+2);
}

START_TEST(test_load_and_call) {
    for (int t = NATIVE; t <= BASE; t++) { // the second calls fma, an import
        lf_llvm *l = from_text(&targets[t], false, add_text);
        LLVMMemoryBufferRef object = object_of(l);
        lf_native_symbol symbols[2];
        lf_native *code, *other;
        load_add(object, symbols, &code);
        load_add(object, symbols, &other); // the same names again, beside it
        lf_native_unload(code);
        ck_assert_int_eq(((add_function)(uintptr_t)symbols[0].address)(1, 2), 3);
        lf_native_unload(other);
        LLVMDisposeMemoryBuffer(object);
        lf_llvm_destroy(l);
    }
    lf_native_unload(NULL);
}
END_TEST

START_TEST(test_bad_objects) {
    lf_native *code;
    lf_native_symbol symbol = {.name = "f"};
    fails(lf_native_load(heap, "not an object at all", 20, &symbol, 1, &code), LF_INTERNAL, "code: ");
    ck_assert_ptr_null(code);

    // A symbol of the process that is not on the list stays out of reach.
    lf_llvm *l =
        from_text(&targets[NATIVE], false,
                  "declare i32 @getpid()\ndefine i32 @f() nounwind {\n  %r = call i32 @getpid()\n  ret i32 %r\n}\n");
    fails(lf_check_ir(l), LF_UNSUPPORTED, "call of a function that is not there");
    LLVMMemoryBufferRef object;
    ok(lf_target_generate(l, LLVMObjectFile, &object));
    fails(lf_native_load(heap, LLVMGetBufferStart(object), LLVMGetBufferSize(object), &symbol, 1, &code), LF_INTERNAL,
          "'getpid'");
    ck_assert_ptr_null(code);
    LLVMDisposeMemoryBuffer(object);
    lf_llvm_destroy(l);

    // An entry that the object lacks.
    l = from_text(&targets[NATIVE], false, add_text);
    object = object_of(l);
    symbol.name = "subtract";
    fails(lf_native_load(heap, LLVMGetBufferStart(object), LLVMGetBufferSize(object), &symbol, 1, &code), LF_INTERNAL,
          "subtract");
    fails(lf_native_load(heap, LLVMGetBufferStart(object), LLVMGetBufferSize(object) / 2, &symbol, 1, &code), LF_INTERNAL,
          "code: ");
    lf_native_symbol symbols[2];
    load_add(object, symbols, &code);
    lf_native_unload(code);
    LLVMDisposeMemoryBuffer(object);
    lf_llvm_destroy(l);
}
END_TEST

// Whatever bytes a file may hold: refused or loaded (a changed constant looks like any other), never a fault.
START_TEST(test_damaged_objects) {
    lf_llvm *l = from_text(&targets[BASE], false, add_text);
    LLVMMemoryBufferRef object = object_of(l);
    size_t size = LLVMGetBufferSize(object), refused = 0;
    for (size_t i = 0; i < 2 * size; i++) {
        bool cut = i >= size;
        uint8_t *copy = malloc(cut ? i - size + 1 : size); // of that very size: a sanitizer sees a read beyond it
        memcpy(copy, LLVMGetBufferStart(object), cut ? i - size : size);
        if (!cut) copy[i] ^= (uint8_t)(1u << i % 8 | 0x80);
        lf_native_symbol symbols[2] = {{.name = "add"}, {.name = "mad"}};
        lf_native *code;
        lf_status s = lf_native_load(heap, copy, cut ? i - size : size, symbols, 2, &code);
        ck_assert(!s == !!code);
        ck_assert(!s || lf_status_code(s) == LF_INTERNAL || lf_status_code(s) == LF_OUT_OF_MEMORY);
        refused += s != NULL;
        lf_status_destroy(s);
        lf_native_unload(code);
        free(copy);
    }
    ck_assert_uint_gt(refused, size); // every cut one at least
    LLVMDisposeMemoryBuffer(object);
    lf_llvm_destroy(l);
}
END_TEST

START_TEST(test_rounds_are_flat) {
    lf_llvm *l = from_text(&targets[BASE], false, add_text);
    LLVMMemoryBufferRef object = object_of(l);
    long before = 0;
    for (int i = 0; i < 10000; i++) {
        lf_native_symbol symbols[2];
        lf_native *code;
        load_add(object, symbols, &code);
        lf_native_unload(code);
        if (i == 500) before = resident_kib();
    }
    long grown = resident_kib() - before;
    if (!SLOW_BUILD) ck_assert_msg(grown < 256, "10,000 rounds leave %ld KiB", grown);
    LLVMDisposeMemoryBuffer(object);
    lf_llvm_destroy(l);
}
END_TEST

static void *compile_and_load(void *arg) {
    (void)arg;
    for (int i = 0; i < 20; i++) {
        lf_llvm *l = from_text(&targets[i % 2], false, add_text);
        ok(lf_passes_run(l));
        LLVMMemoryBufferRef object = object_of(l);
        lf_native_symbol symbols[2];
        lf_native *code;
        load_add(object, symbols, &code);
        lf_native_unload(code);
        LLVMDisposeMemoryBuffer(object);
        lf_llvm_destroy(l);
    }
    return NULL;
}

START_TEST(test_threads) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) ck_assert(pthread_create(&threads[i], NULL, compile_and_load, NULL) == 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("jit");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 1200); // the long run, on a busy machine
    tcase_add_test(tc, test_unknown_targets);
    tcase_add_test(tc, test_ptx);
    tcase_add_loop_test(tc, test_intrinsics_work, 0, N_TARGETS);
    tcase_add_loop_test(tc, test_refusals, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tc, test_approximate_only);
    tcase_add_test(tc, test_long_function);
    tcase_add_loop_test(tc, test_maths_everywhere, 0, N_TARGETS);
    tcase_add_test(tc, test_maths_missing);
    tcase_add_test(tc, test_maths_only_what_is_used);
    tcase_add_test(tc, test_load_and_call);
    tcase_add_test(tc, test_bad_objects);
    tcase_add_test(tc, test_damaged_objects);
    tcase_add_test(tc, test_rounds_are_flat);
    tcase_add_test(tc, test_threads);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
