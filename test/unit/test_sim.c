// The SIM device against kernels that are wrong on purpose, each beside a twin that differs in what is wrong alone and passes; and what the
// rows of device_intrinsics.def compute, and how faults reach streams, events and those who wait for a mailbox.
#include "base/sim_abi.h"
#include "codegen/llvm/check_ir.h"
#include "codegen/llvm/target.h"
#include "codegen/sim/sim.h"
#include "native/native.h"
#include "runtime/device.h"
#include "test/support/ir_text.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_WORDS = 128, ARGS = 4 };

static const lf_allocator *const heap = &lf_system_allocator;
static lf_device *device;
static lf_stream *stream;
static uint32_t *out, *in; // device memory: OUT_WORDS words each
static lf_mailbox_slot *box;

static void ok(lf_status s) { ck_assert_msg(!s, "%s: %s", lf_code_name(lf_status_code(s)), lf_status_message(s)); }

static void setup(void) {
    void *host, *mapped;
    ok(lf_sim_device_create(heap, NULL, &device));
    ok(device->ops->stream_create(device, &stream));
    ok(device->ops->memory_alloc(stream, OUT_WORDS * 4, (void **)&out));
    ok(device->ops->memory_alloc(stream, OUT_WORDS * 4, (void **)&in));
    ok(device->ops->mapped_alloc(device, sizeof *box, &host, &mapped));
    box = host;
    uint32_t numbers[OUT_WORDS];
    for (uint32_t i = 0; i < OUT_WORDS; i++) numbers[i] = 1000 + i;
    ok(device->ops->memory_copy(stream, in, numbers, sizeof numbers, LF_COPY_HOST_TO_DEVICE));
    ok(device->ops->memory_fill(stream, out, 0, sizeof numbers));
}

static void teardown(void) {
    device->ops->memory_free(stream, out);
    device->ops->memory_free(stream, in);
    device->ops->mapped_free(device, box);
    device->ops->stream_destroy(stream);
    device->ops->destroy(device);
}

// ---- kernels as text -----------------------------------------------------------------------------------------------------------

static const char declarations[] =
    "@s = internal addrspace(3) global [64 x i32] undef, align 16\n"
    "@t = internal addrspace(3) global [64 x i32] undef, align 16\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
    "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
    "declare ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3), i32)\n"
    "declare void @llvm.nvvm.barrier.cluster.arrive.aligned()\n"
    "declare void @llvm.nvvm.barrier.cluster.wait.aligned()\n"
    "declare void @llvm.nvvm.griddepcontrol.wait()\n"
    "declare void @llvm.nvvm.bar.warp.sync(i32)\n"
    "declare void @llvm.nvvm.membar.gl()\n"
    "declare void @llvm.nvvm.membar.sys()\n"
    "declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)\n"
    "declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32)\n"
    "declare i32 @llvm.nvvm.shfl.sync.down.i32(i32, i32, i32, i32)\n"
    "declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)\n"
    "declare i1 @llvm.nvvm.vote.all.sync(i32, i1)\n"
    "declare i1 @llvm.nvvm.vote.any.sync(i32, i1)\n"
    "declare i1 @llvm.nvvm.vote.uni.sync(i32, i1)\n"
    "declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)\n"
    "declare i32 @llvm.nvvm.match.any.sync.i32(i32, i32)\n"
    "declare i32 @llvm.nvvm.redux.sync.add(i32, i32)\n"
    "declare i32 @llvm.nvvm.redux.sync.min(i32, i32)\n"
    "declare i32 @llvm.nvvm.redux.sync.umax(i32, i32)\n"
    "declare i32 @llvm.nvvm.redux.sync.xor(i32, i32)\n"
    "declare void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3), ptr addrspace(1))\n"
    "declare void @llvm.nvvm.cp.async.commit.group()\n"
    "declare void @llvm.nvvm.cp.async.wait.group(i32)\n"
    "declare void @llvm.nvvm.cp.async.wait.all()\n"
    "declare float @llvm.nvvm.ex2.approx.f32(float)\n"
    "declare float @llvm.nvvm.rcp.approx.ftz.f(float)\n";

// Arguments: out, in, mailbox, a number. %tid, %tid64, %ctaid, %out, %in, %box (sequence), %value, %number; %mine and %theirs: this
// thread's word of @s and the word of thread 63 - tid; %outmine: of the output.
static const char begin[] = "define ptx_kernel void @kernel(ptr byval([4 x i64]) align 8 %args)";
static const char prologue[] = " {\n"
                               "entry:\n"
                               "  %a1 = getelementptr i8, ptr %args, i64 8\n"
                               "  %a2 = getelementptr i8, ptr %args, i64 16\n"
                               "  %a3 = getelementptr i8, ptr %args, i64 24\n"
                               "  %w0 = load i64, ptr %args, align 8\n"
                               "  %w1 = load i64, ptr %a1, align 8\n"
                               "  %w2 = load i64, ptr %a2, align 8\n"
                               "  %number = load i64, ptr %a3, align 8\n"
                               "  %out = inttoptr i64 %w0 to ptr addrspace(1)\n"
                               "  %in = inttoptr i64 %w1 to ptr addrspace(1)\n"
                               "  %box = inttoptr i64 %w2 to ptr addrspace(1)\n"
                               "  %value = getelementptr i64, ptr addrspace(1) %box, i64 1\n"
                               "  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
                               "  %ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
                               "  %tid64 = zext i32 %tid to i64\n"
                               "  %first = icmp eq i32 %tid, 0\n"
                               "  %low = icmp ult i32 %tid, 32\n"
                               "  %other = sub i64 63, %tid64\n"
                               "  %mine = getelementptr i32, ptr addrspace(3) @s, i64 %tid64\n"
                               "  %theirs = getelementptr i32, ptr addrspace(3) @s, i64 %other\n"
                               "  %outmine = getelementptr i32, ptr addrspace(1) %out, i64 %tid64\n"
                               "  %outtheirs = getelementptr i32, ptr addrspace(1) %out, i64 %other\n"
                               "  %inmine = getelementptr i32, ptr addrspace(1) %in, i64 %tid64\n"
                               "  br label %body\n"
                               "body:\n";

#define BARRIER "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
#define WRITE_MINE "  store i32 %tid, ptr addrspace(3) %mine, align 4\n"
#define TELL "  store i32 %r, ptr addrspace(1) %outmine, align 4\n"

// A piece of text "{wrong|right}" is one of the two.
static void choose(char *to, size_t size, const char *from, bool right) {
    size_t n = 0;
    int part = 0; // outside, in the first, in the second
    for (; *from && n + 1 < size; from++) {
        if (*from == '{')
            part = 1;
        else if (*from == '|' && part == 1)
            part = 2;
        else if (*from == '}' && part)
            part = 0;
        else if (!part || (part == 2) == right)
            to[n++] = *from;
    }
    to[n] = 0;
}

typedef struct loaded {
    lf_native *code;
    lf_kernel *kernel;
} loaded;

static loaded load(const char *body, uint32_t cluster) {
    static char text[24000];
    char attribute[64] = "";
    lf_target sim = {.kind = LF_TARGET_SIM, .sm = 90};
    lf_llvm *l;
    if (cluster) snprintf(attribute, sizeof attribute, " \"nvvm.cluster_dim\"=\"%u,1,1\"", cluster);
    snprintf(text, sizeof text, "%s%s%s%s%s  ret void\n}\n!0 = !{}\n", declarations, begin, attribute, prologue, body);
    ok(lf_llvm_create(heap, &sim, LF_LLVM_KERNEL, true, "wrong", &l));
    ir_from_text(l, text);
    ok(lf_llvm_verify(l));
    ok(lf_check_ir(l));
    ok(lf_sim_lower(l));
    loaded result;
    LLVMMemoryBufferRef object;
    ok(lf_target_generate(l, LLVMObjectFile, &object));
    lf_native_symbol symbol = {.name = LF_SIM_SYMBOL};
    void *copy = malloc(LLVMGetBufferSize(object)); // aligned, as the loader wants it
    memcpy(copy, LLVMGetBufferStart(object), LLVMGetBufferSize(object));
    ok(lf_native_load(heap, copy, LLVMGetBufferSize(object), &symbol, 1, &result.code));
    free(copy);
    LLVMDisposeMemoryBuffer(object);
    lf_llvm_destroy(l);
    lf_image image = {.kind = LF_IMAGE_NATIVE, .entry = "kernel", .address = symbol.address};
    ok(device->ops->kernel_load(device, &image, &result.kernel));
    return result;
}

static void unload(loaded *l) {
    device->ops->kernel_destroy(l->kernel);
    lf_native_unload(l->code);
}

static void start(const loaded *l, uint32_t grid, uint32_t block, uint64_t number) {
    uint64_t args[ARGS] = {(uintptr_t)out, (uintptr_t)in, (uintptr_t)box, number};
    ok(device->ops->launch(stream,
                           &(lf_launch){.kernel = l->kernel, .args = args, .n_args = ARGS, .grid = grid, .block = block}));
}

static lf_status run_clusters(const char *body, uint32_t cluster, uint32_t grid, uint32_t block, uint64_t number) {
    loaded l = load(body, cluster);
    start(&l, grid, block, number);
    lf_status s = device->ops->stream_synchronize(stream);
    unload(&l);
    return s;
}

static lf_status run(const char *body, uint32_t grid, uint32_t block, uint64_t number) {
    return run_clusters(body, 0, grid, block, number);
}

// ---- what is wrong -------------------------------------------------------------------------------------------------------------

typedef struct wrong {
    const char *name; // of the fault, which begins the message
    const char *says; // and something else that it says
    uint32_t grid;
    const char *body;
} wrong;
static const wrong kernels[] = {
    {"shared-race", "of @s, which thread", 1, // a barrier is missing between write and read
     "  br i1 %first, label %skip, label %write\nwrite:\n" WRITE_MINE "  br label %next\nskip:\n" WRITE_MINE
     "  br label %next\nnext:\n"
     "{|" BARRIER "}  %r = load i32, ptr addrspace(3) %theirs, align 4\n" TELL},
    {"shared-race", "since the last barrier", 1, // and between read and the next write
     WRITE_MINE BARRIER "  %r = load i32, ptr addrspace(3) %theirs, align 4\n{|" BARRIER "}" WRITE_MINE TELL},
    {"shared-race", "writes byte 0 of @s, which thread 0 has written", 1, // all threads write one word
     "  %at = select i1 {true|%first}, i64 0, i64 %tid64\n  %p = getelementptr i32, ptr addrspace(3) @s, i64 %at\n"
     "  store i32 %tid, ptr addrspace(3) %p, align 4\n"},
    {"shared-race", "several threads have read", 1, // many readers, one writer
     "  %p = getelementptr i32, ptr addrspace(3) @s, i64 0\n  br i1 %first, label %lead, label %go\n"
     "lead:\n  store i32 7, ptr addrspace(3) %p, align 4\n  br label %go\ngo:\n" BARRIER
     "  %r = load i32, ptr addrspace(3) %p, align 4\n{|" BARRIER
     "}  %last = icmp eq i32 %tid, 63\n  br i1 %last, label %again, label %done\n"
     "again:\n  store i32 8, ptr addrspace(3) %p, align 4\n  br label %done\ndone:\n" TELL},
    {"shared-race", "@s", 1, // lanes of a warp exchange words without a sync of the warp
     WRITE_MINE
     "{|  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n}  %near = xor i64 %tid64, 1\n"
     "  %p = getelementptr i32, ptr addrspace(3) @s, i64 %near\n  %r = load i32, ptr addrspace(3) %p, align 4\n" TELL},
    {"shared-race", "@s", 1, // an atomic beside a plain write
     "  %p = getelementptr i32, ptr addrspace(3) @s, i64 0\n  br i1 %first, label %lead, label %go\n"
     "lead:\n  store i32 0, ptr addrspace(3) %p, align 4\n  br label %go\ngo:\n{|" BARRIER "}"
     "  %r = atomicrmw add ptr addrspace(3) %p, i32 1 monotonic\n" TELL},
    {"divergent-barrier", "thread 0 waits at a barrier, thread 32 has ended",
     1, // only half of the threads come to the barrier
     "  br i1 {%low|true}, label %meet, label %done\nmeet:\n" BARRIER "  br label %done\ndone:\n"},
    {"divergent-barrier", "thread 0 waits at the barrier in left, thread 32 at the one in right", 1, // two barriers for one
     "  br i1 {%low|true}, label %left, label %right\nleft:\n" BARRIER "  br label %done\nright:\n" BARRIER
     "  br label %done\ndone:\n"},
    {"divergent-barrier", "thread 5 has ended", 1, // one thread leaves early
     "  %five = icmp eq i32 %tid, {5|500}\n  br i1 %five, label %gone, label %stay\ngone:\n  ret void\nstay:\n" BARRIER},
    {"uninitialised-shared-read", "reads byte 252 of @s", 1, // the last word is never written
     "  %short = icmp ult i32 %tid, {63|64}\n  br i1 %short, label %write, label %go\nwrite:\n" WRITE_MINE
     "  br label %go\ngo:\n" BARRIER "  %r = load i32, ptr addrspace(3) %theirs, align 4\n" TELL},
    {"out-of-bounds-global", "write of 4 bytes at byte 512 of an allocation of 512 bytes", 1, // off by one behind
     "  %p = getelementptr i32, ptr addrspace(1) %outmine, i64 {65|64}\n  store i32 1, ptr addrspace(1) %p, align 4\n"},
    {"out-of-bounds-global", "4 bytes before an allocation of 512 bytes", 1, // and before
     "  %p = getelementptr i32, ptr addrspace(1) %inmine, i64 {-1|0}\n  %r = load i32, ptr addrspace(1) %p, align 4\n" TELL},
    {"out-of-bounds-global", "read of 16 bytes at byte 500 of an allocation of 512 bytes", 1, // a vector that sticks out
     "  %p = getelementptr i8, ptr addrspace(1) %in, i64 {500|496}\n  %v = load <4 x i32>, ptr addrspace(1) %p, align 4\n"
     "  %r = extractelement <4 x i32> %v, i32 3\n" TELL},
    {"out-of-bounds-global", "where no allocation is", 1, // a wild address
     "  %w = {add i64 16, 0|ptrtoint ptr addrspace(1) %inmine to i64}\n  %p = inttoptr i64 %w to ptr addrspace(1)\n"
     "  %r = load i32, ptr addrspace(1) %p, align 4\n" TELL},
    {"out-of-bounds-shared", "write of 4 bytes at byte 256 of @", 1, // off by one in shared memory
     "  %p = getelementptr i32, ptr addrspace(3) %mine, i64 {1|0}\n  store i32 1, ptr addrspace(3) %p, align 4\n"},
    {"out-of-bounds-shared", "which is no address of shared memory", 1, // a global address taken for a shared one
     "  %w = ptrtoint ptr addrspace(1) %outmine to i64\n  %q = {inttoptr i64 %w to|getelementptr i32,} ptr addrspace(3){| "
     "@t, i64 %tid64}\n"
     "  store i32 1, ptr addrspace(3) %q, align 4\n"},
    {"out-of-bounds-object", "read of 4 bytes at byte 16 of an object of 16 bytes", 1, // beyond a variable of the thread
     "  %a = alloca [4 x i32]\n  store [4 x i32] zeroinitializer, ptr %a\n  %i = add i64 %number, {4|3}\n"
     "  %p = getelementptr i32, ptr %a, i64 %i\n  %r = load i32, ptr %p, align 4\n" TELL},
    {"out-of-bounds-object", "at byte 32 of an object of 32 bytes", 1, // beyond the arguments
     "  %i = add i64 %number, {4|3}\n  %p = getelementptr i64, ptr %args, i64 %i\n  %w = load i64, ptr %p, align 8\n  %r = "
     "trunc i64 %w to i32\n" TELL},
    {"misaligned-access", "which is no multiple of 16", 1, // a vector at an odd element
     "  %p = getelementptr i32, ptr addrspace(1) %in, i64 {1|4}\n  %v = load <4 x i32>, ptr addrspace(1) %p, align 16\n"
     "  %r = extractelement <4 x i32> %v, i32 3\n" TELL},
    {"missing-fence", "writes a mailbox's sequence with no fence", 1, // a plain store publishes
     "  br i1 %first, label %lead, label %done\nlead:\n  store i64 42, ptr addrspace(1) %value, align 8\n{|  call void "
     "@llvm.nvvm.membar.sys()\n}"
     "  store volatile i64 1, ptr addrspace(1) %box, align 8\n  br label %done\ndone:\n"},
    {"missing-fence", "writes a mailbox's sequence with no fence", 1, // an atomic store without release order
     "  br i1 %first, label %lead, label %done\nlead:\n  store i64 42, ptr addrspace(1) %value, align 8\n"
     "  store atomic i64 1, ptr addrspace(1) %box {monotonic|release}, align 8\n  br label %done\ndone:\n"},
    {"missing-fence", "writes a mailbox's sequence with no fence", 1, // the device's fence is not the host's
     "  br i1 %first, label %lead, label %done\nlead:\n  store i64 42, ptr addrspace(1) %value, align 8\n"
     "  store atomic i64 1, ptr addrspace(1) %box {syncscope(\"device\") |}release, align 8\n  br label %done\ndone:\n"},
    {"wrong-mask", "lane 0 is not in its own mask", 1,
     "  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 {-2|-1}, i32 %tid, i32 2, i32 31)\n" TELL},
    {"wrong-mask", "takes part with the mask", 1, // lanes of one shuffle name different masks
     "  %odd = and i32 %tid, 1\n  %top = shl i32 %odd, 30\n  %m = xor i32 -1, {%top|0}\n"
     "  %lane = and i32 %tid, 31\n  %own = shl i32 1, %lane\n  %mm = or i32 %m, %own\n"
     "  %r = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %mm, i32 %tid, i32 1, i32 31)\n" TELL},
    {"wrong-mask", "that lane waits at a barrier", 1, // a shuffle of all lanes in half of them
     "  %half = icmp ult i32 %tid, {16|64}\n  br i1 %half, label %some, label %meet\n"
     "some:\n  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 1, i32 31)\n" TELL
     "  br label %meet\nmeet:\n" BARRIER},
    {"inactive-lane", "lane 0 reads from lane 16, which takes no part", 1,
     "  %lane = and i32 %tid, 31\n  %half = icmp ult i32 %lane, 16\n  br i1 %half, label %some, label %done\n"
     "some:\n  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 65535, i32 %tid, i32 {16|8}, i32 31)\n" TELL
     "  br label %done\ndone:\n"},
    {"unfinished-copy", "still to fill", 1, // an asynchronous copy that nobody waits for
     "  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %mine, ptr addrspace(1) %inmine)\n"
     "{|  call void @llvm.nvvm.cp.async.wait.all()\n}  %r = load i32, ptr addrspace(3) %mine, align 4\n" TELL},
    {"unfinished-copy", "still to fill", 1, // the wait leaves one group too many
     "  %second = getelementptr i32, ptr addrspace(3) @t, i64 %tid64\n"
     "  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %mine, ptr addrspace(1) %inmine)\n"
     "  call void @llvm.nvvm.cp.async.commit.group()\n"
     "  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %second, ptr addrspace(1) %inmine)\n"
     "  call void @llvm.nvvm.cp.async.commit.group()\n  call void @llvm.nvvm.cp.async.wait.group(i32 {2|1})\n"
     "  %r = load i32, ptr addrspace(3) %mine, align 4\n" TELL},
    {"hang", "only wait for each other", 1, // a flag that nobody sets
     "  %p = getelementptr i32, ptr addrspace(3) @s, i64 0\n  br i1 %first, label %clear, label %go\n"
     "clear:\n  store i32 0, ptr addrspace(3) %p, align 4\n  br label %go\ngo:\n" BARRIER
     "  br i1 %first, label %spin, label %set\n"
     "spin:\n  %f = load volatile i32, ptr addrspace(3) %p, align 4\n  %is = icmp eq i32 %f, 0\n  br i1 %is, label %spin, "
     "label %done\n"
     "set:\n{|  store volatile i32 1, ptr addrspace(3) %p, align 4\n}  br label %done\ndone:\n"},
    {"stale-read", "as never written in a launch", 1, // ld.global.nc of what the kernel writes
     "  store i32 %tid, ptr addrspace(1) %outmine, align 4\n  %p = getelementptr i32, ptr addrspace(1) {%out|%in}, i64 "
     "%tid64\n"
     "  %r = load i32, ptr addrspace(1) %p, align 4, !invariant.load !0\n" TELL},
    {"global-race", "has written since the last barrier",
     1, // the same as in shared memory, in global memory
     "  %back = icmp eq i32 %tid, 63\n  store i32 %tid, ptr addrspace(1) %outmine, align 4\n{|" BARRIER "}"
     "  %r = load i32, ptr addrspace(1) %outtheirs, align 4\n  %x = add i32 %r, 1\n" BARRIER
     "  store i32 %x, ptr addrspace(1) %outmine, align 4\n"},
    {"global-race", "which block 0 has written in this launch", 2, // a block reads what another has written
     "  %b = icmp eq i32 %ctaid, 0\n  br i1 %b, label %write, label %read\nwrite:\n  store i32 %tid, ptr addrspace(1) "
     "%outmine, align 4\n"
     "  br label %done\nread:\n  %p = getelementptr i32, ptr addrspace(1) {%out|%in}, i64 %tid64\n  %r = load i32, ptr "
     "addrspace(1) %p, align 4\n"
     "  %q = getelementptr i32, ptr addrspace(1) %outmine, i64 64\n  store i32 %r, ptr addrspace(1) %q, align 4\n  br label "
     "%done\ndone:\n"},
    {"missing-fence", "of block 0 has written with no fence after it", 2, // the last block adds up what others left
     "  %c64 = zext i32 %ctaid to i64\n  %cell = getelementptr i32, ptr addrspace(1) %out, i64 %c64\n"
     "  %counter = getelementptr i32, ptr addrspace(1) %out, i64 100\n  br i1 %first, label %lead, label %done\n"
     "lead:\n  store i32 5, ptr addrspace(1) %cell, align 4\n{|  call void @llvm.nvvm.membar.gl()\n}"
     "  %n = atomicrmw add ptr addrspace(1) %counter, i32 1 monotonic\n{|  call void @llvm.nvvm.membar.gl()\n}"
     "  %last = icmp eq i32 %n, 1\n  br i1 %last, label %sum, label %done\n"
     "sum:\n  %x = load i32, ptr addrspace(1) %out, align 4\n  store i32 %x, ptr addrspace(1) %cell, align 4\n  br label "
     "%done\ndone:\n"},
    {"missing-fence", "of block 0 has written with no fence after it", 2, // the same with the fence after the atomic
     "  %c64 = zext i32 %ctaid to i64\n  %cell = getelementptr i32, ptr addrspace(1) %out, i64 %c64\n"
     "  %counter = getelementptr i32, ptr addrspace(1) %out, i64 100\n  br i1 %first, label %lead, label %done\n"
     "lead:\n  store i32 5, ptr addrspace(1) %cell, align 4\n"
     "  %n = atomicrmw add ptr addrspace(1) %counter, i32 1 {monotonic|acq_rel}\n  fence acq_rel\n"
     "  %last = icmp eq i32 %n, 1\n  br i1 %last, label %sum, label %done\n"
     "sum:\n  %x = load i32, ptr addrspace(1) %out, align 4\n  store i32 %x, ptr addrspace(1) %cell, align 4\n  br label "
     "%done\ndone:\n"},
    {"unsupported", "barrier 1", 1, "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 {1|0})\n"},
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

START_TEST(test_wrong_kernels) {
    const wrong *k = &kernels[_i];
    char text[6000];
    choose(text, sizeof text, k->body, false);
    lf_status s = run(text, k->grid, 64, 0);
    const char *message = lf_status_message(s);
    size_t n = strlen(k->name);
    ck_assert_msg(s != NULL, "kernel %d (%s) passes", _i, k->name);
    ck_assert_int_eq(lf_status_code(s), LF_DEVICE_ERROR);
    ck_assert_msg(!strncmp(message, k->name, n) && !strncmp(message + n, ": kernel wrong: ", 16) && strstr(message, k->says),
                  "kernel %d: '%s' should begin with '%s' and say '%s'", _i, message, k->name, k->says);
    lf_status_destroy(s);
}
END_TEST

START_TEST(test_right_twins) {
    char text[6000];
    choose(text, sizeof text, kernels[_i].body, true);
    ok(run(text, kernels[_i].grid, 64, 0));
}
END_TEST

static void fetch(uint32_t words[OUT_WORDS]) {
    ok(device->ops->memory_copy(stream, words, out, OUT_WORDS * 4, LF_COPY_DEVICE_TO_HOST));
    ok(device->ops->stream_synchronize(stream));
}

// ---- clusters ------------------------------------------------------------------------------------------------------------------

#define ARRIVE "  call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n"
#define WAIT "  call void @llvm.nvvm.barrier.cluster.wait.aligned()\n"
#define MEET ARRIVE WAIT
#define RANK                                                                                                                \
    "  %rank = and i32 %ctaid, 1\n  %peer = xor i32 %rank, 1\n"                                                             \
    "  %far = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %mine, i32 %peer)\n"
#define WRITE_FAR "  store i32 %ctaid, ptr addrspace(7) %far, align 4\n"
#define READ_MINE "  %r = load i32, ptr addrspace(3) %mine, align 4\n"

// Four blocks of 64 threads, two a cluster.
static const wrong cluster_kernels[] = {
    {"out-of-bounds-shared", "of block 1, which need not have begun yet", 0, // no barrier before a block writes to another
     RANK "{|" MEET "}" WRITE_FAR MEET READ_MINE},
    {"shared-race", "of @s, which thread", 0, // none between writing to another block and its reading
     RANK MEET WRITE_FAR "{" BARRIER "|" MEET "}" READ_MINE "{" MEET "|}"},
    {"shared-race", "of @s, which thread", 0, // a write after arriving is seen by nobody who waits
     RANK MEET "{" ARRIVE WRITE_FAR WAIT "|" WRITE_FAR MEET "}" READ_MINE MEET},
    {"shared-race", "since the last barrier", 0, // another block reads what is overwritten
     RANK MEET WRITE_FAR MEET READ_MINE "{|" MEET "}" WRITE_FAR MEET},
    {"out-of-bounds-shared", "of block 0, which has ended", 0, // the block has gone that another reads from
     RANK WRITE_MINE "  %is = icmp eq i32 %rank, 0\n" MEET "  br i1 {%is|false}, label %done, label %read\nread:\n"
                     "  %r = load i32, ptr addrspace(7) %far, align 4\n" MEET "  br label %done\ndone:\n"},
    {"out-of-bounds-shared", "an address of block 2 of a cluster of 2", 0,
     RANK "  %p = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %mine, i32 {2|%peer})\n" MEET
          "  store i32 1, ptr addrspace(7) %p, align 4\n" MEET},
    {"out-of-bounds-shared", "write of 4 bytes at byte 256 of @s", 0, // beyond the array in another block
     RANK MEET
     "  %p = getelementptr i32, ptr addrspace(7) %far, i64 {1|0}\n  store i32 1, ptr addrspace(7) %p, align 4\n" MEET},
    {"out-of-bounds-shared", "which is no address of shared memory",
     0, // another block's memory is not of this address space
     RANK WRITE_MINE MEET "  %g = addrspacecast ptr addrspace(7) %far to ptr\n  %l = ptrtoint ptr %g to i64\n"
                          "  %q = inttoptr i64 %l to ptr addrspace(3)\n  %p = select i1 {true|false}, ptr addrspace(3) %q, "
                          "ptr addrspace(3) %mine\n"
                          "  %r = load i32, ptr addrspace(3) %p, align 4\n" MEET},
    {"divergent-barrier", "arrives at the cluster's barrier twice", 0, ARRIVE "{|" WAIT "}" ARRIVE WAIT},
    {"divergent-barrier", "without having arrived there", 0, "{|" ARRIVE "}" WAIT},
    {"divergent-barrier", "before it waits there", 0, ARRIVE "{|" WAIT "}"},
    {"divergent-barrier", "waits at the barrier of the cluster", 0, // half of a block is at its own barrier
     "  br i1 {%low|false}, label %one, label %all\none:\n" BARRIER "  br label %all\nall:\n" MEET},
    {"uninitialised-shared-read", "of @s", 0, RANK MEET "{|" WRITE_FAR "}" MEET READ_MINE},
    {"global-race", "which block 0 has written in this launch", 0, // a cluster's barrier orders global memory too
     "  %p = getelementptr i32, ptr addrspace(1) %outmine, i64 64\n  %is = icmp eq i32 %ctaid, 0\n  br i1 %is, label "
     "%write, "
     "label %go\nwrite:\n"
     "  store i32 %tid, ptr addrspace(1) %outmine, align 4\n  br label %go\ngo:\n{" ARRIVE "|" MEET "}"
     "  %at = icmp eq i32 %ctaid, 1\n  br i1 %at, label %read, label %done\nread:\n"
     "  %r = load i32, ptr addrspace(1) %outmine, align 4\n  store i32 %r, ptr addrspace(1) %p, align 4\n  br label %done\n"
     "done:\n{" WAIT "|}"},
};
enum { N_CLUSTER_KERNELS = sizeof cluster_kernels / sizeof *cluster_kernels };

START_TEST(test_wrong_clusters) {
    const wrong *k = &cluster_kernels[_i];
    char text[6000];
    choose(text, sizeof text, k->body, false);
    lf_status s = run_clusters(text, 2, 4, 64, 0);
    ck_assert_msg(s != NULL, "kernel %d (%s) passes", _i, k->name);
    ck_assert_msg(!strncmp(lf_status_message(s), k->name, strlen(k->name)) && strstr(lf_status_message(s), k->says),
                  "kernel %d: '%s' should begin with '%s' and say '%s'", _i, lf_status_message(s), k->name, k->says);
    lf_status_destroy(s);
    choose(text, sizeof text, k->body, true);
    ok(run_clusters(text, 2, 4, 64, 0));
}
END_TEST

// Each block of the largest cluster tells all others its number, and adds up what it was told.
START_TEST(test_a_cluster_exchanges) {
    uint32_t words[OUT_WORDS];
    ok(run_clusters("  %rank = and i32 %ctaid, 15\n  %r64 = zext i32 %rank to i64\n"
                    "  %cell = getelementptr i32, ptr addrspace(3) @s, i64 %r64\n"
                    "  %to = and i32 %tid, 15\n"
                    "  %far = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %cell, i32 %to)\n" MEET
                    "  %is = icmp ult i32 %tid, 16\n  br i1 %is, label %write, label %met\nwrite:\n"
                    "  store i32 %ctaid, ptr addrspace(7) %far, align 4\n  br label %met\nmet:\n" MEET
                    "  br i1 %first, label %loop, label %done\nloop:\n"
                    "  %i = phi i64 [0, %met], [%next, %loop]\n  %sum = phi i32 [0, %met], [%more, %loop]\n"
                    "  %p = getelementptr i32, ptr addrspace(3) @s, i64 %i\n  %x = load i32, ptr addrspace(3) %p, align 4\n"
                    "  %more = add i32 %sum, %x\n  %next = add i64 %i, 1\n  %on = icmp ult i64 %next, 16\n"
                    "  br i1 %on, label %loop, label %tell\ntell:\n  %c64 = zext i32 %ctaid to i64\n"
                    "  %q = getelementptr i32, ptr addrspace(1) %out, i64 %c64\n"
                    "  store i32 %more, ptr addrspace(1) %q, align 4\n  br label %done\ndone:\n",
                    16, 32, 64, 0));
    fetch(words);
    for (uint32_t i = 0; i < 32; i++) ck_assert_uint_eq(words[i], i < 16 ? 120 : 376);
}
END_TEST

START_TEST(test_halves_two_at_a_time) {
    static const struct {
        const char *code;
        uint32_t a, b, want;
    } cases[] = {
        {"max.NaN.bf16x2", 0x3f804000, 0xbf804080, 0x3f804080}, {"min.NaN.bf16x2", 0x3f804000, 0xbf804080, 0xbf804000},
        {"max.NaN.bf16x2", 0x80000000, 0x00008000, 0x00000000}, {"min.NaN.bf16x2", 0x80000000, 0x00008000, 0x80008000},
        {"max.NaN.bf16x2", 0x7f800001, 0xff817f80, 0x7fff7f80}, {"min.NaN.f16x2", 0x7c01fc00, 0x3c003c00, 0x7ffffc00},
        {"max.NaN.f16x2", 0xbc003c00, 0xc000c000, 0xbc003c00},  {"max.NaN.f16x2", 0x00018001, 0x80010001, 0x00010001}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[400];
        uint32_t words[OUT_WORDS];
        snprintf(body, sizeof body, "  %%r = call i32 asm \"%s $0, $1, $2;\", \"=r,r,r\"(i32 %u, i32 %u)\n%s", cases[i].code,
                 cases[i].a, cases[i].b, TELL);
        ok(run(body, 1, 32, 0));
        fetch(words);
        ck_assert_msg(words[7] == cases[i].want, "%s of %#x and %#x is %#x, not %#x", cases[i].code, cases[i].a, cases[i].b,
                      words[7], cases[i].want);
    }
}
END_TEST

START_TEST(test_refused_clusters) {
    loaded l = load(MEET, 2);
    uint64_t args[ARGS] = {0};
    lf_status s =
        device->ops->launch(stream, &(lf_launch){.kernel = l.kernel, .args = args, .n_args = ARGS, .grid = 3, .block = 32});
    ck_assert_int_eq(lf_status_code(s), LF_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(lf_status_message(s), "a grid of 3 blocks is no multiple of the kernel's cluster of 2"));
    lf_status_destroy(s);
    unload(&l);
}
END_TEST

START_TEST(test_whole_message) {
    lf_status s = run("  %p = getelementptr i32, ptr addrspace(1) %outmine, i64 64\n  br label %tail\ntail:\n  store i32 1, "
                      "ptr addrspace(1) %p, align 4\n",
                      2, 96, 0);
    ck_assert_str_eq(lf_status_message(s),
                     "out-of-bounds-global: kernel wrong: write of 4 bytes at byte 512 of an allocation of 512 bytes "
                     "(block 0 of 2, thread 64 of 96, at p in tail)");
    lf_status_destroy(s);
}
END_TEST

START_TEST(test_use_after_free) {
    void *freed;
    loaded l =
        load("  %p = inttoptr i64 %number to ptr addrspace(1)\n  %r = load i32, ptr addrspace(1) %p, align 4\n" TELL, 0);
    ok(device->ops->memory_alloc(stream, 64, &freed));
    start(&l, 1, 32, (uintptr_t)freed);
    ok(device->ops->stream_synchronize(stream));
    start(&l, 1, 32, (uintptr_t)freed); // before the free in stream order
    device->ops->memory_free(stream, freed);
    ok(device->ops->stream_synchronize(stream));
    start(&l, 1, 32, (uintptr_t)freed);
    lf_status s = device->ops->stream_synchronize(stream);
    ck_assert_msg(s && !strncmp(lf_status_message(s), "use-after-free: ", 16), "%s", lf_status_message(s));
    lf_status_destroy(s);
    unload(&l);
}
END_TEST

// ---- where faults go -------------------------------------------------------------------------------------------------------------

static const char off_by_number[] =
    "  %i = add i64 %tid64, %number\n  %p = getelementptr i32, ptr addrspace(1) %out, i64 %i\n"
    "  store i32 1, ptr addrspace(1) %p, align 4\n";

START_TEST(test_faults_reach_events) {
    const lf_device_ops *ops = device->ops;
    lf_event *before, *at, *after;
    ok(ops->event_create(device, &before));
    ok(ops->event_create(device, &at));
    ok(ops->event_create(device, &after));
    loaded l = load(off_by_number, 0);
    start(&l, 1, 32, 0);
    ok(ops->event_record(before, stream));
    start(&l, 1, 32, 1000);
    start(&l, 1, 32, 0); // runs all the same
    ok(ops->event_record(at, stream));
    start(&l, 1, 32, 1);
    ok(ops->event_record(after, stream));
    ok(ops->event_wait(before));
    for (int i = 0; i < 2; i++) { // however often it is asked
        lf_status s = ops->event_wait(at);
        ck_assert_int_eq(lf_status_code(s), LF_DEVICE_ERROR);
        ck_assert(strstr(lf_status_message(s), "out-of-bounds-global") != NULL);
        lf_status_destroy(s);
    }
    ok(ops->event_wait(after));
    lf_status s = ops->stream_synchronize(stream);
    ck_assert_int_eq(lf_status_code(s), LF_DEVICE_ERROR);
    lf_status_destroy(s);
    ok(ops->stream_synchronize(stream)); // told once
    ok(ops->event_record(at, stream));
    ok(ops->event_wait(at)); // recorded anew
    ops->event_destroy(before);
    ops->event_destroy(at);
    ops->event_destroy(after);
    unload(&l);
}
END_TEST

// Who waits for the mailbox of a kernel that went wrong waits no longer.
START_TEST(test_faults_release_mailboxes) {
    uint64_t seen = box->sequence;
    lf_status s = run(off_by_number, 1, 32, 1000);
    ck_assert_int_eq(lf_status_code(s), LF_DEVICE_ERROR);
    ck_assert_uint_ne(box->sequence, seen);
    lf_status_destroy(s);
}
END_TEST

START_TEST(test_bounds_of_copies) {
    char bytes[16] = {0};
    lf_status s = device->ops->memory_copy(stream, (char *)out + OUT_WORDS * 4 - 8, bytes, 16, LF_COPY_HOST_TO_DEVICE);
    ck_assert_int_eq(lf_status_code(s), LF_INVALID_ARGUMENT);
    lf_status_destroy(s);
    int type, ordinal;
    ok(device->ops->memory_where(device, (char *)out + 8, &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_SIM);
    ok(device->ops->memory_where(device, bytes, &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_CPU);
}
END_TEST

// ---- what rows compute -----------------------------------------------------------------------------------------------------------

static uint32_t lane_value(uint32_t lane) { return lane * 2654435761u ^ 0x5bd1e995u; }

static uint32_t want_shuffle(const char *mode, uint32_t lane, uint32_t by, uint32_t clamp, uint32_t segment) {
    uint32_t least = lane & segment, most = least | (clamp & ~segment), from = lane;
    if (!strcmp(mode, "idx") && (least | (by & ~segment)) <= most) from = least | (by & ~segment);
    if (!strcmp(mode, "up") && (int)(lane - by) >= (int)most) from = lane - by;
    if (!strcmp(mode, "down") && lane + by <= most) from = lane + by;
    if (!strcmp(mode, "bfly") && (lane ^ by) <= most) from = lane ^ by;
    return lane_value(from);
}

#define VALUE "  %m = mul i32 %lane, -1640531535\n  %v = xor i32 %m, 1540483477\n"
#define LANE "  %lane = and i32 %tid, 31\n"

START_TEST(test_shuffles) {
    static const struct {
        const char *mode;
        uint32_t by, clamp, segment;
    } cases[] = {
        {"idx", 5, 31, 0},  {"idx", 3, 31, 24},  {"up", 1, 0, 0},     {"up", 4, 0, 16},
        {"down", 7, 31, 0}, {"down", 2, 31, 28}, {"bfly", 16, 31, 0}, {"bfly", 9, 31, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[1000];
        uint32_t words[OUT_WORDS];
        snprintf(body, sizeof body, "%s  %%r = call i32 @llvm.nvvm.shfl.sync.%s.i32(i32 -1, i32 %%v, i32 %u, i32 %u)\n%s",
                 LANE VALUE, cases[i].mode, cases[i].by, cases[i].clamp | cases[i].segment << 8, TELL);
        ok(run(body, 1, 64, 0));
        fetch(words);
        for (uint32_t t = 0; t < 64; t++)
            ck_assert_msg(words[t] == want_shuffle(cases[i].mode, t % 32, cases[i].by, cases[i].clamp, cases[i].segment),
                          "case %zu, thread %u: %#x", i, t, words[t]);
    }
}
END_TEST

typedef struct collective {
    const char *call; // gives an i1 or i32 %c
    bool bit;
    uint32_t (*want)(uint32_t lane);
} collective;
static uint32_t w_ballot(uint32_t lane) { return (void)lane, 0x000003ffu; }
static uint32_t w_zero(uint32_t lane) { return (void)lane, 0; }
static uint32_t w_one(uint32_t lane) { return (void)lane, 1; }
static uint32_t w_match(uint32_t lane) { return 0x11111111u << lane % 4; }
static uint32_t w_add(uint32_t lane) { return (void)lane, 496; }
static uint32_t w_min(uint32_t lane) { return (void)lane, (uint32_t)-16; }
static uint32_t w_umax(uint32_t lane) { return (void)lane, (uint32_t)-1; }
static uint32_t w_xor(uint32_t lane) { return (void)lane, 0; }
static const collective collectives[] = {
    {"%c = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %few)", false, w_ballot},
    {"%c = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 %few)", true, w_zero},
    {"%c = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %few)", true, w_one},
    {"%c = call i1 @llvm.nvvm.vote.uni.sync(i32 -1, i1 %few)", true, w_zero},
    {"%c = call i1 @llvm.nvvm.vote.uni.sync(i32 -1, i1 true)", true, w_one},
    {"%c = call i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %rest)", false, w_match},
    {"%c = call i32 @llvm.nvvm.redux.sync.add(i32 %lane, i32 -1)", false, w_add},
    {"%c = call i32 @llvm.nvvm.redux.sync.min(i32 %signed, i32 -1)", false, w_min},
    {"%c = call i32 @llvm.nvvm.redux.sync.umax(i32 %signed, i32 -1)", false, w_umax},
    {"%c = call i32 @llvm.nvvm.redux.sync.xor(i32 %lane, i32 -1)", false, w_xor},
};

START_TEST(test_collectives) {
    const collective *c = &collectives[_i];
    char body[1000];
    uint32_t words[OUT_WORDS];
    snprintf(body, sizeof body, "%s  %s\n  %%r = %s\n%s",
             LANE "  %few = icmp ult i32 %lane, 10\n  %rest = and i32 %lane, 3\n  %signed = sub i32 %lane, 16\n", c->call,
             c->bit ? "zext i1 %c to i32" : "add i32 %c, 0", TELL);
    ok(run(body, 1, 64, 0));
    fetch(words);
    for (uint32_t t = 0; t < 64; t++) ck_assert_msg(words[t] == c->want(t % 32), "%s, thread %u: %#x", c->call, t, words[t]);
}
END_TEST

START_TEST(test_functions) {
    uint32_t words[OUT_WORDS];
    ok(run("  %x = uitofp i32 %tid to float\n  %e = call float @llvm.nvvm.ex2.approx.f32(float %x)\n  %f = call float "
           "@llvm.nvvm.rcp.approx.ftz.f(float %e)\n"
           "  %r = bitcast float %f to i32\n" TELL,
           1, 64, 0));
    fetch(words);
    for (uint32_t t = 0; t < 64; t++) ck_assert_uint_eq(words[t], (127 - t) << 23); // 2^-t
}
END_TEST

// 1024 threads with barriers, and a block that is no whole number of warps.
START_TEST(test_large_and_odd_blocks) {
    const char body[] =
        "  %p = getelementptr i32, ptr addrspace(3) @s, i64 0\n  br i1 %first, label %lead, label %go\n"
        "lead:\n  store i32 0, ptr addrspace(3) %p, align 4\n  br label %go\ngo:\n" BARRIER
        "  %n = atomicrmw add ptr addrspace(3) %p, i32 1 monotonic\n" BARRIER
        "  %r = load i32, ptr addrspace(3) %p, align 4\n  br i1 %first, label %tell, label %done\ntell:\n" TELL
        "  br label %done\ndone:\n";
    static const uint32_t blocks[] = {1024, 33, 1};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        uint32_t words[OUT_WORDS];
        ok(run(body, 1, blocks[i], 0));
        fetch(words);
        ck_assert_uint_eq(words[0], blocks[i]);
    }
}
END_TEST

// A launch that may begin before the one before it has ended: memory is touched, and the kernel ends, only when each thread has waited. One
// that may not need not ask.
START_TEST(test_early_access) {
#define AWAIT "  call void @llvm.nvvm.griddepcontrol.wait()\n"
    static const wrong early[] = {
        {"early-access", "read of 4 bytes before the thread has waited for the kernel before", 1,
         "{|" AWAIT "}  %r = load i32, ptr addrspace(1) %inmine, align 4\n{" AWAIT "|}" TELL},
        {"early-access", "write of 4 bytes before the thread has waited", 1,
         "{|" AWAIT "}  store i32 %tid, ptr addrspace(1) %outmine, align 4\n{" AWAIT "|}"},
        {"early-access", "block 0 of 2, thread 32 of 64", 2, // half of the threads wait
         "  br i1 {%low|true}, label %await, label %go\nawait:\n" AWAIT "  br label %go\ngo:\n" WRITE_MINE},
    };
    for (size_t i = 0; i < sizeof early / sizeof *early; i++)
        for (int right = 0; right < 2; right++)
            for (int follows = 0; follows < 2; follows++) {
                char body[2000];
                choose(body, sizeof body, early[i].body, right);
                loaded l = load(body, 0);
                uint64_t args[ARGS] = {(uintptr_t)out, (uintptr_t)in, (uintptr_t)box, 0};
                lf_launch launch = {.kernel = l.kernel,
                                    .args = args,
                                    .n_args = ARGS,
                                    .grid = early[i].grid,
                                    .block = 64,
                                    .follows = follows};
                ok(device->ops->launch(stream, &launch));
                lf_status s = device->ops->stream_synchronize(stream);
                if (!right && follows) {
                    ck_assert_msg(s && strstr(lf_status_message(s), early[i].name) &&
                                      strstr(lf_status_message(s), early[i].says),
                                  "%zu: %s", i, lf_status_message(s));
                    lf_status_destroy(s);
                } else {
                    ok(s);
                }
                unload(&l);
            }
}
END_TEST

START_TEST(test_refused_launches) {
    loaded l = load("", 0);
    static const lf_launch bad[] = {
        {.grid = 1, .block = 0}, {.grid = 1, .block = 1025}, {.grid = 1, .block = 32, .shared = 1 << 20}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lf_launch launch = bad[i];
        launch.kernel = l.kernel;
        lf_status s = device->ops->launch(stream, &launch);
        ck_assert_int_eq(lf_status_code(s), LF_INVALID_ARGUMENT);
        lf_status_destroy(s);
    }
    unload(&l);
    lf_kernel *kernel;
    static const uint64_t nothing[8] = {0};
    lf_image image = {.kind = LF_IMAGE_NATIVE, .entry = "kernel", .address = (void *)(uintptr_t)nothing};
    lf_status s = device->ops->kernel_load(device, &image, &kernel);
    ck_assert_int_eq(lf_status_code(s), LF_UNSUPPORTED);
    lf_status_destroy(s);
}
END_TEST

static Suite *suite(void) {
    Suite *all = suite_create("sim");
    TCase *t = tcase_create("sim");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_wrong_kernels, 0, N_KERNELS);
    tcase_add_loop_test(t, test_right_twins, 0, N_KERNELS);
    tcase_add_loop_test(t, test_wrong_clusters, 0, N_CLUSTER_KERNELS);
    tcase_add_test(t, test_a_cluster_exchanges);
    tcase_add_test(t, test_halves_two_at_a_time);
    tcase_add_test(t, test_refused_clusters);
    tcase_add_test(t, test_whole_message);
    tcase_add_test(t, test_use_after_free);
    tcase_add_test(t, test_faults_reach_events);
    tcase_add_test(t, test_faults_release_mailboxes);
    tcase_add_test(t, test_bounds_of_copies);
    tcase_add_test(t, test_shuffles);
    tcase_add_loop_test(t, test_collectives, 0, sizeof collectives / sizeof *collectives);
    tcase_add_test(t, test_functions);
    tcase_add_test(t, test_large_and_odd_blocks);
    tcase_add_test(t, test_early_access);
    tcase_add_test(t, test_refused_launches);
    suite_add_tcase(all, t);
    return all;
}

int main(void) {
    SRunner *runner = srunner_create(suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
