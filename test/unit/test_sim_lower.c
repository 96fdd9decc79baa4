// Making a kernel's IR ready for the SIM device, by itself: what is refused and how, which accesses the runtime is told of, constants of
// shared arrays, and each request for memory failing.
#include "base/sim_abi.h"
#include "codegen/llvm/target.h"
#include "codegen/sim/sim.h"
#include "test/support/counted.h"
#include "test/support/ir_text.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

static lf_llvm *read_module(const char *text) {
    lf_target sim = {.kind = LF_TARGET_SIM, .sm = 90};
    lf_llvm *l;
    ck_assert_ptr_null(lf_llvm_create(&counted, &sim, LF_LLVM_KERNEL, true, "m", &l));
    ir_from_text(l, text);
    return l;
}

static void expect(const char *text, lf_code code, const char *says) {
    lf_llvm *l = read_module(text);
    lf_status s = lf_sim_lower(l);
    ck_assert_msg(lf_status_code(s) == code && strstr(lf_status_message(s), says), "wanted %s: %s, found %s: %s in:\n%s",
                  lf_code_name(code), says, lf_code_name(lf_status_code(s)), lf_status_message(s), text);
    lf_status_destroy(s);
    lf_llvm_destroy(l);
    ck_assert_int_eq(live, 0);
}

// ---- what is refused -----------------------------------------------------------------------------------------------------------

#define KERNEL(body) "define ptx_kernel void @k(ptr byval([2 x i64]) %args) {\nentry:\n" body "  ret void\n}\n"
#define LISTED "\"cvt.rn.bf16.f32 $0, $1;\""

static const struct {
    const char *text;
    lf_code code;
    const char *says;
} refused[] = {
    {"define void @f() { ret void }\n", LF_INVALID_ARGUMENT, "the module has no kernel"},
    {KERNEL("") "define ptx_kernel void @l(ptr %p) { ret void }\n", LF_UNSUPPORTED, "the module has two kernels"},
    {"define ptx_kernel void @k(ptr %a, ptr %b) { ret void }\n", LF_UNSUPPORTED,
     "a kernel with other than one parameter on the SIM device"},
    {"define ptx_kernel void @k() { ret void }\n", LF_UNSUPPORTED, "a kernel with other than one parameter"},
    {KERNEL("  call void asm sideeffect \"trap;\", \"\"()\n"), LF_UNSUPPORTED,
     "inline assembly that is not listed on the SIM device: call void asm sideeffect \"trap;\""},
    {KERNEL("  %r = call i16 asm " LISTED
            ", \"=h,f,f,f,f,f,f,f,f,f\"(float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, "
            "float 0.0, float 0.0, float 0.0, float 0.0)\n"),
     LF_UNSUPPORTED, "too many operands on the SIM device"},
    {KERNEL("  %r = call i16 asm " LISTED ", \"=h,f\"(<4 x float> zeroinitializer)\n"), LF_UNSUPPORTED,
     "an operand that is no word"},
    {KERNEL("  %r = call i16 asm " LISTED ", \"=h,f\"(i128 0)\n"), LF_UNSUPPORTED, "an operand that is no word"},
    {KERNEL("  %r = call <4 x i32> asm " LISTED ", \"=r,f\"(float 0.0)\n"), LF_UNSUPPORTED, "results that are no words"},
    {KERNEL("  %r = call {i32, <2 x i32>} asm " LISTED ", \"=r,=r,f\"(float 0.0)\n"), LF_UNSUPPORTED,
     "results that are no words"},
    {KERNEL("  %r = call {i32, i32, i32, i32, i32, i32, i32, i32, i32} asm " LISTED
            ", \"=r,=r,=r,=r,=r,=r,=r,=r,=r,f\"(float 0.0)\n"),
     LF_UNSUPPORTED, "results that are no words"},
    {"declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
     "define i32 @helper() noinline {\n  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  ret i32 %t\n}\n" KERNEL(
         "  %t = call i32 @helper()\n"),
     LF_UNSUPPORTED, "a device function outside the kernel on the SIM device"},
    {"@s = internal addrspace(3) global [4 x i32] undef\n" KERNEL(
         "  store <2 x ptr addrspace(3)> <ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @s, i64 sub (i64 0, i64 "
         "ptrtoint "
         "(ptr addrspace(3) @s to i64))), ptr addrspace(3) null>, ptr %args\n"),
     LF_OK, ""}, // a vector of addresses is no expression: left as it is
};

START_TEST(test_refused) { expect(refused[_i].text, refused[_i].code, refused[_i].says); }
END_TEST

// ---- accesses that are told ------------------------------------------------------------------------------------------------------

// Indirect calls are those of the runtime.
static unsigned told(const char *text) {
    unsigned n = 0;
    lf_llvm *l = read_module(text);
    lf_status s = lf_sim_lower(l);
    ck_assert_msg(!s, "%s in:\n%s", lf_status_message(s), text);
    for (LLVMValueRef f = LLVMGetFirstFunction(l->emit.module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef v = LLVMGetFirstInstruction(b); v; v = LLVMGetNextInstruction(v))
                n += LLVMIsACallInst(v) && !LLVMIsAFunction(LLVMGetCalledValue(v));
    lf_llvm_destroy(l);
    ck_assert_int_eq(live, 0);
    return n;
}

#define GLOBAL "  %w = load i64, ptr %args\n  %g = inttoptr i64 %w to ptr addrspace(1)\n"
#define WHOLES                                                                                                              \
    "declare void @llvm.memcpy.p1.p1.i64(ptr addrspace(1), ptr addrspace(1), i64, i1)\n"                                    \
    "declare void @llvm.memmove.p1.p1.i64(ptr addrspace(1), ptr addrspace(1), i64, i1)\n"                                   \
    "declare void @llvm.memset.p1.i32(ptr addrspace(1), i8, i32, i1)\n"                                                     \
    "declare void @llvm.memset.p0.i32(ptr, i8, i32, i1)\n"

static const struct {
    const char *text;
    unsigned calls;
} accesses[] = {
    // Within an object of the code: no word. The argument block has two words.
    {KERNEL("  %v = load i64, ptr %args\n"), 0},
    {KERNEL("  %p = getelementptr i64, ptr %args, i64 1\n  %v = load i64, ptr %p\n"), 0},
    {KERNEL("  %p = getelementptr [2 x i64], ptr %args, i64 0, i64 1\n  %v = load i64, ptr %p\n"), 0},
    {KERNEL("  %p = getelementptr i64, ptr %args, i64 2\n  %v = load i64, ptr %p\n"), 1},
    {KERNEL("  %p = getelementptr i64, ptr %args, i64 -1\n  %v = load i64, ptr %p\n"), 1},
    {KERNEL("  %p = getelementptr i8, ptr %args, i64 12\n  %v = load i64, ptr %p\n"), 1},
    {KERNEL("  %p = getelementptr {i64, i64}, ptr %args, i64 0, i32 1\n  %v = load i64, ptr %p\n"),
     1}, // a form not looked at
    {KERNEL("  %i = load i64, ptr %args\n  %p = getelementptr i64, ptr %args, i64 %i\n  %v = load i64, ptr %p\n"), 1},
    {KERNEL("  %a = alloca i64, i32 4\n  %p = getelementptr i64, ptr %a, i64 3\n  store i64 1, ptr %p\n"), 0},
    {KERNEL("  %a = alloca i64, i32 4\n  %p = getelementptr i64, ptr %a, i64 4\n  store i64 1, ptr %p\n"), 1},
    {"@c = internal constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]\n" KERNEL(
         "  %p = getelementptr [4 x i32], ptr @c, i64 0, i64 3\n  %v = load i32, ptr %p\n"),
     0},
    {"@c = internal constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]\n" KERNEL(
         "  %v = load i32, ptr getelementptr (i8, ptr @c, i64 16)\n"),
     1},
    // Elsewhere: one each, of loads, stores, atomics and fences; and those that copy are two.
    {KERNEL(GLOBAL "  %v = load i32, ptr addrspace(1) %g\n"), 1},
    {KERNEL(GLOBAL "  %v = load volatile i32, ptr addrspace(1) %g\n"), 1},
    {KERNEL(GLOBAL "  %v = load i32, ptr addrspace(1) %g, !invariant.load !0\n") "!0 = !{}\n", 1},
    {KERNEL(GLOBAL "  %q = addrspacecast ptr addrspace(1) %g to ptr\n  %v = load i32, ptr %q\n"), 1},
    {KERNEL(GLOBAL "  store i32 1, ptr addrspace(1) %g\n"), 1},
    {KERNEL(GLOBAL "  store atomic i32 1, ptr addrspace(1) %g release, align 4\n"), 1},
    {KERNEL(GLOBAL "  store atomic i32 1, ptr addrspace(1) %g syncscope(\"device\") monotonic, align 4\n"), 1},
    {KERNEL(GLOBAL "  %v = atomicrmw add ptr addrspace(1) %g, i32 1 acq_rel\n"), 1},
    {KERNEL(GLOBAL "  %v = cmpxchg ptr addrspace(1) %g, i32 0, i32 1 seq_cst seq_cst\n"), 1},
    {KERNEL("  fence seq_cst\n  fence syncscope(\"device\") release\n  fence acquire\n"), 3},
    {KERNEL(
         "  %w = load i64, ptr %args\n  %s = inttoptr i64 %w to ptr addrspace(7)\n  %v = load i32, ptr addrspace(7) %s\n"),
     1},
    {WHOLES KERNEL(GLOBAL "  call void @llvm.memcpy.p1.p1.i64(ptr addrspace(1) %g, ptr addrspace(1) %g, i64 8, i1 false)\n"),
     2},
    {WHOLES KERNEL(GLOBAL
                   "  call void @llvm.memmove.p1.p1.i64(ptr addrspace(1) %g, ptr addrspace(1) %g, i64 8, i1 false)\n"),
     2},
    {WHOLES KERNEL(GLOBAL "  call void @llvm.memset.p1.i32(ptr addrspace(1) %g, i8 0, i32 8, i1 false)\n"), 1},
    {WHOLES KERNEL("  %a = alloca i64\n  call void @llvm.memset.p0.i32(ptr %a, i8 0, i32 8, i1 false)\n"), 1},
    // Rows of the table are calls of the runtime, whatever they have as operands and results; other functions stay.
    {"declare void @llvm.nvvm.membar.gl()\n" KERNEL("  call void @llvm.nvvm.membar.gl()\n"), 1},
    {"define float @helper(float %x) noinline {\n  %y = fadd float %x, 1.0\n  ret float %y\n}\n" KERNEL(
         "  %t = call float @helper(float 1.0)\n"),
     0},
    {KERNEL("  %r = call {i32, half, ptr, double} asm " LISTED
            ", \"=r,=h,=l,=d,f,d,h,l\"(float 1.0, double 1.0, half 1.0, ptr %args)\n"
            "  %p = extractvalue {i32, half, ptr, double} %r, 2\n"),
     1},
};

START_TEST(test_accesses) {
    unsigned n = told(accesses[_i].text);
    ck_assert_msg(n == accesses[_i].calls, "%u accesses are told, not %u, of:\n%s", n, accesses[_i].calls,
                  accesses[_i].text);
}
END_TEST

// ---- constants of shared arrays ----------------------------------------------------------------------------------------------------

#define SHARED                                                                                                              \
    "@s = internal addrspace(3) global [16 x i32] undef, align 128\n@d = external addrspace(3) global [0 x i32]\n"          \
    "@u = internal addrspace(3) global [4 x i8] undef\n@plain = internal constant i32 7\n"

static const struct {
    const char *body;
    unsigned calls;
} constants[] = {
    {"  store i32 1, ptr addrspace(3) @s\n", 1},
    {"  store i32 1, ptr addrspace(3) @d\n", 1},
    {"  store i32 1, ptr addrspace(3) getelementptr ([16 x i32], ptr addrspace(3) @s, i64 0, i64 3)\n", 1},
    {"  store i32 1, ptr addrspacecast (ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @s, i64 8) to ptr)\n", 1},
    {"  store i64 ptrtoint (ptr addrspace(3) @s to i64), ptr %args\n", 0},
    {"  store i32 trunc (i64 ptrtoint (ptr addrspace(3) @s to i64) to i32), ptr %args\n", 0},
    {"  store i64 add (i64 ptrtoint (ptr addrspace(3) @s to i64), i64 5), ptr %args\n", 0},
    {"  store i64 sub (i64 ptrtoint (ptr addrspace(3) @s to i64), i64 ptrtoint (ptr addrspace(3) @u to i64)), ptr %args\n",
     0},
    {"  store i64 xor (i64 ptrtoint (ptr addrspace(3) @s to i64), i64 1), ptr %args\n", 0},
    {"  store i32 1, ptr addrspace(3) inttoptr (i64 xor (i64 ptrtoint (ptr addrspace(3) @s to i64), i64 8) to ptr "
     "addrspace(3))\n",
     1},
    // Two edges from one block to a phi must have one value.
    {"  %i = load i32, ptr %args\n  switch i32 %i, label %other [ i32 1, label %join\n i32 2, label %join ]\nother:\n  br "
     "label "
     "%join\njoin:\n  %p = phi ptr addrspace(3) [ getelementptr (i8, ptr addrspace(3) @s, i64 4), %entry ], [ getelementptr "
     "(i8, ptr addrspace(3) @s, i64 4), %entry ], [ @u, %other ]\n  store i8 1, ptr addrspace(3) %p\n",
     1},
};

START_TEST(test_constants) {
    char text[4096];
    snprintf(text, sizeof text, "%sdefine ptx_kernel void @k(ptr byval([2 x i64]) %%args) {\nentry:\n%s  ret void\n}\n",
             SHARED, constants[_i].body);
    unsigned n = told(text);
    ck_assert_msg(n == constants[_i].calls, "%u accesses are told, not %u, of:\n%s", n, constants[_i].calls, text);
}
END_TEST

// ---- want of memory ------------------------------------------------------------------------------------------------------------------

START_TEST(test_want_of_memory) {
    static const lf_allocator exact = {NULL, counted_alloc, counted_resize, counted_release, true};
    lf_code code = LF_OUT_OF_MEMORY;
    for (long k = 1; code; k++) {
        lf_llvm *l = read_module(SHARED "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n" KERNEL(
            GLOBAL "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  store i32 %t, ptr addrspace(1) %g\n"
                   "  store i32 %t, ptr addrspace(3) @s\n  store i32 %t, ptr addrspace(3) @d\n"));
        const lf_allocator *a = l->allocator;
        l->allocator = &exact;
        calls = 0;
        fail_at = k;
        lf_status s = lf_sim_lower(l);
        fail_at = 0;
        code = lf_status_code(s);
        ck_assert_msg(!code || code == LF_OUT_OF_MEMORY, "request %ld: %s", k, lf_status_message(s));
        ck_assert(code || k > 10);
        lf_status_destroy(s);
        l->allocator = a;
        lf_llvm_destroy(l);
        ck_assert_int_eq(live, 0);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kernels made ready for the SIM device");
    TCase *t = tcase_create("modules");
    tcase_add_loop_test(t, test_refused, 0, sizeof refused / sizeof *refused);
    tcase_add_loop_test(t, test_accesses, 0, sizeof accesses / sizeof *accesses);
    tcase_add_loop_test(t, test_constants, 0, sizeof constants / sizeof *constants);
    tcase_add_test(t, test_want_of_memory);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
