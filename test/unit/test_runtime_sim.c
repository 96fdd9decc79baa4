// The SIM device without a compiler: kernels are functions of this file, called as generated code is. What each row of
// device_intrinsics.def computes, lane by lane, against C; and the device's table by itself: buffers, streams, events, refusals, and
// every allocation of a life failing in turn. (Kernels that are wrong on purpose: test_sim.c.)
#include "base/sim_abi.h"
#include "runtime/sim/sim.h"
#include "test/support/counted.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 96, GRID = 3, LANES = 32 };
// Kernels run on stacks of their own, which the sanitizers do not follow.
#define KERNEL __attribute__((no_sanitize("address", "undefined", "thread"), noinline)) static void

static char last_log[512];
static void keep_log(void *self, lf_log_level level, const char *message) {
    (void)self, (void)level;
    snprintf(last_log, sizeof last_log, "%s", message);
}
static const lf_log log_here = {.write = keep_log};

static void ok(lf_status s) { ck_assert_msg(!s, "%s: %s", lf_code_name(lf_status_code(s)), lf_status_message(s)); }
static void fails_with(lf_status s, lf_code code, const char *text) {
    ck_assert_ptr_nonnull(s);
    ck_assert_msg(lf_status_code(s) == code && strstr(lf_status_message(s), text), "%s: %s", lf_code_name(lf_status_code(s)),
                  lf_status_message(s));
    lf_status_destroy(s);
}

static lf_device *device;
static lf_stream *stream;

static void setup(void) {
    live = calls = fail_at = 0;
    ok(lf_sim_device_create(&counted, &log_here, &device));
    ok(device->ops->stream_create(device, &stream));
}
static void teardown(void) {
    device->ops->stream_destroy(stream);
    device->ops->destroy(device);
    ck_assert_int_eq(live, 0);
}

// ---- kernels --------------------------------------------------------------------------------------------------------------------

typedef void kernel_fn(lf_sim_thread *t, const uint64_t *args);
static const char texts[] = "kernel\0entry\0call";
static const lf_sim_site sites[] = {{.block = 7, .what = 13}};
static const lf_sim_shared shared_arrays[] = {{.name = 0, .offset = 0, .bytes = 4096}};
static lf_sim_program program;

static int64_t from_program(const void *p) { return (int64_t)((intptr_t)p - (intptr_t)&program); }

static lf_image image_of(kernel_fn *fn) {
    program = (lf_sim_program){.magic = LF_SIM_MAGIC,
                               .entry = from_program((const void *)(uintptr_t)fn),
                               .texts = from_program(texts),
                               .sites = from_program(sites),
                               .shared = from_program(shared_arrays),
                               .n_sites = 1,
                               .n_shared = 1,
                               .shared_bytes = 4096};
    return (lf_image){.kind = LF_IMAGE_NATIVE, .entry = "kernel", .address = &program};
}

static lf_status run(kernel_fn *fn, const uint64_t *args, uint32_t n_args) {
    lf_image image = image_of(fn);
    lf_kernel *k;
    ok(device->ops->kernel_load(device, &image, &k));
    lf_status s =
        device->ops->launch(stream, &(lf_launch){.kernel = k, .args = args, .n_args = n_args, .grid = GRID, .block = BLOCK});
    lf_status end = device->ops->stream_synchronize(stream);
    device->ops->kernel_destroy(k);
    if (!s) return end;
    lf_status_destroy(end);
    return s;
}

static const char *const rows[] = {
#define LF_DEVICE(name, flags, sm, sim) name,
#define LF_DEVICE_ASM(text, flags, sm, sim) text,
#include "base/device_intrinsics.def"
#undef LF_DEVICE
#undef LF_DEVICE_ASM
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static uint32_t row_of(const char *name) {
    for (uint32_t i = 0; i < N_ROWS; i++)
        if (!strcmp(rows[i], name)) return i;
    ck_abort_msg("no row %s", name);
}

// ---- lanes -----------------------------------------------------------------------------------------------------------------------

static uint32_t value(uint32_t lane) { return (lane % 7) * 0x30000001u ^ 0x5a000000u; }
static uint32_t truth(uint32_t lane) { return lane % 3 == 1; }

// Over the lanes of a warp.
typedef uint32_t fold_fn(uint32_t a, uint32_t b);
static uint32_t fold(fold_fn *f, uint32_t start) {
    for (uint32_t l = 0; l < LANES; l++) start = f(start, value(l));
    return start;
}
static uint32_t add(uint32_t a, uint32_t b) { return a + b; }
static uint32_t umin(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t umax(uint32_t a, uint32_t b) { return a > b ? a : b; }
static uint32_t smin(uint32_t a, uint32_t b) { return (int32_t)a < (int32_t)b ? a : b; }
static uint32_t smax(uint32_t a, uint32_t b) { return (int32_t)a > (int32_t)b ? a : b; }
static uint32_t both(uint32_t a, uint32_t b) { return a & b; }
static uint32_t either(uint32_t a, uint32_t b) { return a | b; }
static uint32_t differ(uint32_t a, uint32_t b) { return a ^ b; }

static uint32_t w_zero(uint32_t t) { return (void)t, 0; }
static uint32_t w_one(uint32_t t) { return (void)t, 1; }
static uint32_t w_tid(uint32_t t) { return t; }
static uint32_t w_ntid(uint32_t t) { return (void)t, BLOCK; }
static uint32_t w_nctaid(uint32_t t) { return (void)t, GRID; }
static uint32_t w_lane(uint32_t t) { return t % LANES; }
static uint32_t w_warp(uint32_t t) { return (void)t, LANES; }
static uint32_t w_eq(uint32_t t) { return 1u << t % LANES; }
static uint32_t w_lt(uint32_t t) { return (1u << t % LANES) - 1; }
static uint32_t w_le(uint32_t t) { return w_eq(t) | w_lt(t); }
static uint32_t w_ge(uint32_t t) { return ~w_lt(t); }
static uint32_t w_gt(uint32_t t) { return ~w_le(t); }
static uint32_t w_ballot(uint32_t t) {
    uint32_t b = 0;
    (void)t;
    for (uint32_t l = 0; l < LANES; l++) b |= truth(l) << l;
    return b;
}
static uint32_t w_match(uint32_t t) {
    uint32_t m = 0;
    for (uint32_t l = 0; l < LANES; l++) m |= (uint32_t)(value(l) == value(t % LANES)) << l;
    return m;
}
#define FOLD(name, f, start)                                                                                                \
    static uint32_t name(uint32_t t) { return (void)t, fold(f, start); }
FOLD(w_add, add, 0)
FOLD(w_umin, umin, UINT32_MAX)
FOLD(w_umax, umax, 0)
FOLD(w_smin, smin, INT32_MAX)
FOLD(w_smax, smax, 0x80000000u)
FOLD(w_and, both, UINT32_MAX)
FOLD(w_or, either, 0)
FOLD(w_xor, differ, 0)

// Operands: none; value and mask; mask and value; mask and truth; mask and one.
typedef enum { NONE, VALUE_MASK, MASK_VALUE, MASK_TRUTH, MASK_ONE } operand_kind;
static const struct {
    const char *name;
    operand_kind operands;
    uint32_t (*want)(uint32_t tid);
} lane_rows[] = {
    {"llvm.nvvm.read.ptx.sreg.tid.x", NONE, w_tid},        {"llvm.nvvm.read.ptx.sreg.tid.y", NONE, w_zero},
    {"llvm.nvvm.read.ptx.sreg.ntid.x", NONE, w_ntid},      {"llvm.nvvm.read.ptx.sreg.ntid.y", NONE, w_one},
    {"llvm.nvvm.read.ptx.sreg.nctaid.x", NONE, w_nctaid},  {"llvm.nvvm.read.ptx.sreg.laneid", NONE, w_lane},
    {"llvm.nvvm.read.ptx.sreg.warpsize", NONE, w_warp},    {"llvm.nvvm.read.ptx.sreg.lanemask.eq", NONE, w_eq},
    {"llvm.nvvm.read.ptx.sreg.lanemask.lt", NONE, w_lt},   {"llvm.nvvm.read.ptx.sreg.lanemask.le", NONE, w_le},
    {"llvm.nvvm.read.ptx.sreg.lanemask.gt", NONE, w_gt},   {"llvm.nvvm.read.ptx.sreg.lanemask.ge", NONE, w_ge},
    {"llvm.nvvm.vote.all.sync", MASK_TRUTH, w_zero},       {"llvm.nvvm.vote.all.sync", MASK_ONE, w_one},
    {"llvm.nvvm.vote.any.sync", MASK_TRUTH, w_one},        {"llvm.nvvm.vote.uni.sync", MASK_TRUTH, w_zero},
    {"llvm.nvvm.vote.uni.sync", MASK_ONE, w_one},          {"llvm.nvvm.vote.ballot.sync", MASK_TRUTH, w_ballot},
    {"llvm.nvvm.match.any.sync.i32", MASK_VALUE, w_match}, {"llvm.nvvm.match.any.sync.i64", MASK_VALUE, w_match},
    {"llvm.nvvm.redux.sync.add", VALUE_MASK, w_add},       {"llvm.nvvm.redux.sync.umin", VALUE_MASK, w_umin},
    {"llvm.nvvm.redux.sync.umax", VALUE_MASK, w_umax},     {"llvm.nvvm.redux.sync.min", VALUE_MASK, w_smin},
    {"llvm.nvvm.redux.sync.max", VALUE_MASK, w_smax},      {"llvm.nvvm.redux.sync.and", VALUE_MASK, w_and},
    {"llvm.nvvm.redux.sync.or", VALUE_MASK, w_or},         {"llvm.nvvm.redux.sync.xor", VALUE_MASK, w_xor},
};
enum { N_LANE_ROWS = sizeof lane_rows / sizeof *lane_rows };
static uint32_t lane_row_numbers[N_LANE_ROWS];
static uint64_t lane_results[N_LANE_ROWS][BLOCK];

KERNEL call_lane_rows(lf_sim_thread *t, const uint64_t *args) {
    const lf_sim_calls *c = t->face.calls;
    uint32_t lane = t->number % LANES;
    (void)args;
    for (uint32_t i = 0; i < N_LANE_ROWS; i++) {
        uint64_t in[2] = {UINT32_MAX, UINT32_MAX}, out = 0;
        switch (lane_rows[i].operands) {
        case NONE: break;
        case VALUE_MASK: in[0] = value(lane); break;
        case MASK_VALUE: in[1] = value(lane); break;
        case MASK_TRUTH: in[1] = truth(lane); break;
        case MASK_ONE: in[1] = 1; break;
        }
        c->device(t, lane_row_numbers[i], 0, in, &out);
        lane_results[i][t->number] = out;
    }
}

START_TEST(lanes_compute_what_c_does) {
    for (uint32_t i = 0; i < N_LANE_ROWS; i++) lane_row_numbers[i] = row_of(lane_rows[i].name);
    ok(run(call_lane_rows, NULL, 0));
    for (uint32_t i = 0; i < N_LANE_ROWS; i++)
        for (uint32_t t = 0; t < BLOCK; t++)
            ck_assert_msg(lane_results[i][t] == lane_rows[i].want(t), "%s, thread %u: %#llx, not %#x", lane_rows[i].name, t,
                          (unsigned long long)lane_results[i][t], lane_rows[i].want(t));
}
END_TEST

// ---- functions of numbers -------------------------------------------------------------------------------------------------------

static uint64_t f(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
START_TEST(functions_of_numbers) {
    const float tiny = 0x1p-130f; // subnormal: .ftz forms take it for 0
    const struct {
        const char *name;
        uint64_t a, b, want;
    } table[] = {
        {"llvm.nvvm.ex2.approx", f(3), 0, f(8)},
        {"llvm.nvvm.ex2.approx", f(-130), 0, f(tiny)},
        {"llvm.nvvm.ex2.approx.ftz", f(tiny), 0, f(1)},
        {"llvm.nvvm.ex2.approx.ftz", f(-130), 0, f(0)},
        {"llvm.nvvm.lg2.approx.f", f(8), 0, f(3)},
        {"llvm.nvvm.lg2.approx.f", f(tiny), 0, f(-130)},
        {"llvm.nvvm.lg2.approx.ftz.f", f(tiny), 0, f(-INFINITY)},
        {"llvm.nvvm.sin.approx.f", f(0), 0, f(0)},
        {"llvm.nvvm.cos.approx.f", f(0), 0, f(1)},
        {"llvm.tanh", f(-0.0f), 0, f(-0.0f)},
        {"llvm.nvvm.rcp.approx.ftz.f", f(4), 0, f(0.25f)},
        {"llvm.nvvm.rcp.approx.ftz.f", f(-tiny), 0, f(-INFINITY)},
        {"llvm.nvvm.rcp.approx.ftz.f", f(-0x1p127f), 0, f(-0.0f)},
        {"llvm.nvvm.rsqrt.approx.f", f(4), 0, f(0.5f)},
        {"llvm.nvvm.rsqrt.approx.f", f(0x1p-132f), 0, f(0x1p66f)},
        {"llvm.nvvm.rsqrt.approx.ftz.f", f(tiny), 0, f(INFINITY)},
        {"llvm.nvvm.sqrt.approx.f", f(9), 0, f(3)},
        {"llvm.nvvm.div.approx.f", f(6), f(3), f(2)},
        {"cvt.rn.bf16.f32 $0, $1;", f(1.00390625f), 0, 0x3f80}, // a tie goes to even
        {"cvt.rn.bf16.f32 $0, $1;", f(1.01171875f), 0, 0x3f82},
        {"cvt.rn.bf16.f32 $0, $1;", f(NAN), 0, 0x7fff},
        {"cvt.rn.bf16x2.f32 $0, $1, $2;", f(1), f(-2), 0x3f80c000},
        {"max.NaN.bf16x2 $0, $1, $2;", 0x80003f80, 0x00004000, 0x00004000}, // -0 below +0
        {"min.NaN.bf16x2 $0, $1, $2;", 0x8000bf80, 0x00003f80, 0x8000bf80},
        {"max.NaN.bf16x2 $0, $1, $2;", 0x7fc03f80, 0x3f80ff81, 0x7fff7fff}, // a NaN wins
        {"max.NaN.f16x2 $0, $1, $2;", 0x3c007c01, 0xbc003c00, 0x3c007fff},
        {"min.NaN.f16x2 $0, $1, $2;", 0x3c003c00, 0xbc004000, 0xbc003c00},
        {"cvt.sat.u32.u64 $0, $1;", UINT64_C(0x100000005), 0, UINT32_MAX},
        {"cvt.sat.u32.u64 $0, $1;", 7, 0, 7},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        uint64_t in[] = {table[i].a, table[i].b}, out = 0;
        lf_sim_device_call(NULL, row_of(table[i].name), 0, in, &out);
        ck_assert_msg(out == table[i].want, "%s of %#llx, %#llx: %#llx, not %#llx", table[i].name,
                      (unsigned long long)table[i].a, (unsigned long long)table[i].b, (unsigned long long)out,
                      (unsigned long long)table[i].want);
    }
}
END_TEST

// ---- asynchronous copies, fences -------------------------------------------------------------------------------------------------

static uint32_t copy_rows[5];
// Thread t copies element t of 4, 8 and 16 bytes to shared memory and from there, after the wait, out.
KERNEL copy_beside(lf_sim_thread *t, const uint64_t *args) {
    static const uint32_t bytes[] = {4, 8, 16};
    const lf_sim_calls *c = t->face.calls;
    uint32_t place[] = {0, 4 * BLOCK, 12 * BLOCK};
    for (int k = 0; k < 3; k++) {
        uint64_t in[] = {(uintptr_t)t->face.shared + place[k] + t->number * bytes[k], args[0] + t->number * bytes[k]};
        c->device(t, copy_rows[k], 0, in, NULL);
    }
    c->device(t, copy_rows[3], 0, (uint64_t[]){0}, NULL); // commit
    c->device(t, copy_rows[4], 0, (uint64_t[]){0}, NULL); // wait for all groups but 0
    for (int k = 0; k < 3; k++) {
        char *to = (char *)(uintptr_t)(args[1] + place[k] + t->number * bytes[k]);
        memcpy(to, t->face.shared + place[k] + t->number * bytes[k], bytes[k]);
    }
}

START_TEST(copies_of_each_size) {
    static const char *const names[] = {"llvm.nvvm.cp.async.ca.shared.global.4", "llvm.nvvm.cp.async.ca.shared.global.8",
                                        "llvm.nvvm.cp.async.ca.shared.global.16", "llvm.nvvm.cp.async.commit.group",
                                        "llvm.nvvm.cp.async.wait.group"};
    enum { BYTES = 28 * BLOCK };
    static unsigned char from[BYTES], back[BYTES];
    void *source, *result;
    for (int i = 0; i < 5; i++) copy_rows[i] = row_of(names[i]);
    for (int i = 0; i < BYTES; i++) from[i] = (unsigned char)(i * 7 + i / 256);
    ok(device->ops->memory_alloc(stream, BYTES, &source));
    ok(device->ops->memory_alloc(stream, BYTES, &result));
    ok(device->ops->memory_copy(stream, source, from, BYTES, LF_COPY_HOST_TO_DEVICE));
    ok(run(copy_beside, (uint64_t[]){(uintptr_t)source, (uintptr_t)result}, 2));
    ok(device->ops->memory_copy(stream, back, result, BYTES, LF_COPY_DEVICE_TO_HOST));
    ok(device->ops->stream_synchronize(stream));
    ck_assert(!memcmp(back, from, 4 * BLOCK) && !memcmp(back + 4 * BLOCK, from, 8 * BLOCK) &&
              !memcmp(back + 12 * BLOCK, from, 16 * BLOCK));
    device->ops->memory_free(stream, source);
    device->ops->memory_free(stream, result);
}
END_TEST

// ---- the table by itself ---------------------------------------------------------------------------------------------------------

START_TEST(buffers) {
    const lf_device_ops *o = device->ops;
    void *p, *host, *mapped;
    char bytes[64];
    int type, ordinal;
    ok(o->memory_alloc(stream, 0, &p));
    ck_assert_ptr_null(p);
    fails_with(o->memory_alloc(stream, SIZE_MAX / 2, &p), LF_OUT_OF_MEMORY, "bytes on the SIM device");
    ok(o->mapped_alloc(device, 0, &host, &mapped));
    ck_assert(!host && !mapped);
    fails_with(o->mapped_alloc(device, SIZE_MAX / 2, &host, &mapped), LF_OUT_OF_MEMORY, "bytes of mapped memory");
    ok(o->memory_alloc(stream, 64, &p));
    ok(o->memory_where(device, p, &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_SIM);
    ok(o->memory_where(device, (char *)p + 64, &type, &ordinal)); // just behind it
    ck_assert_int_eq(type, LF_DEVICE_CPU);
    ok(o->memory_where(device, bytes, &type, &ordinal));
    ck_assert_int_eq(type, LF_DEVICE_CPU);
    ok(o->mapped_alloc(device, 64, &host, &mapped));
    ok(o->memory_where(device, host, &type, &ordinal)); // the host's as well
    ck_assert_int_eq(type, LF_DEVICE_CPU);
    o->mapped_free(device, host);
    o->mapped_free(device, NULL);
    ok(o->memory_fill(stream, p, 7, 64));
    ok(o->memory_fill(stream, NULL, 7, 0));
    ok(o->memory_copy(stream, NULL, NULL, 0, LF_COPY_DEVICE_TO_DEVICE));
    ok(o->memory_copy(stream, bytes, p, 64, LF_COPY_DEVICE_TO_HOST));
    ok(o->stream_synchronize(stream));
    ck_assert(bytes[0] == 7 && bytes[63] == 7);
    fails_with(o->memory_fill(stream, p, 1, 65), LF_INVALID_ARGUMENT, "fill: 65 bytes at");
    fails_with(o->memory_copy(stream, p, bytes, 65, LF_COPY_HOST_TO_DEVICE), LF_INVALID_ARGUMENT, "copy to the device: 65");
    fails_with(o->memory_copy(stream, bytes, bytes, 8, LF_COPY_DEVICE_TO_HOST), LF_INVALID_ARGUMENT,
               "copy from the device: 8");
    o->memory_free(stream, NULL);
    o->memory_free(stream, p);
    ok(o->stream_synchronize(stream));
    fails_with(o->memory_fill(stream, p, 1, 8), LF_INVALID_ARGUMENT, "not within an allocation");
    o->memory_free(stream, p); // once too often
    ok(o->stream_synchronize(stream));
    ck_assert_ptr_nonnull(strstr(last_log, "freed twice, or was never given out"));
}
END_TEST

static void add_one(void *arg) { ++*(_Atomic int *)arg; }

KERNEL beyond(lf_sim_thread *t, const uint64_t *args) {
    t->face.calls->range(t, (const void *)(uintptr_t)(args[0] + 64), 4, 0);
}

// A fault is told to the next event and to the next synchronisation, once each; streams at the same queue share it.
START_TEST(streams_and_events) {
    const lf_device_ops *o = device->ops;
    lf_stream *other, *wrapped;
    lf_event *event;
    _Atomic int called = 0;
    void *p;
    ok(o->stream_create(device, &other));
    ok(o->stream_wrap(device, o->stream_native(stream), &wrapped));
    ck_assert_ptr_eq(o->stream_native(wrapped), o->stream_native(stream));
    ok(o->event_create(device, &event));
    ok(o->stream_callback(stream, add_one, &called));
    ok(o->event_record(event, stream));
    ok(o->stream_wait_event(other, event));
    ok(o->event_wait(event));
    ok(o->event_query(event));
    ck_assert_int_eq(called, 1);
    ok(o->stream_synchronize(other));
    ok(o->stream_query(other));
    ck_assert(!o->stream_capturing(stream));
    ok(o->memory_alloc(stream, 64, &p));
    lf_image image = image_of(beyond);
    lf_kernel *k;
    ok(o->kernel_load(device, &image, &k));
    for (int i = 0; i < 2; i++) { // the first fault is told
        ok(o->launch(stream,
                     &(lf_launch){.kernel = k, .args = (uint64_t[]){(uintptr_t)p}, .n_args = 1, .grid = 1, .block = 1}));
    }
    ok(o->event_record(event, wrapped));
    fails_with(o->event_wait(event), LF_DEVICE_ERROR, "out-of-bounds-global");
    fails_with(o->event_query(event), LF_DEVICE_ERROR, "out-of-bounds-global"); // the event keeps it
    fails_with(o->stream_synchronize(wrapped), LF_DEVICE_ERROR, "at byte 64 of an allocation of 64 bytes");
    ok(o->stream_synchronize(stream));
    ok(o->event_record(event, stream));
    ok(o->event_wait(event)); // recorded anew
    o->memory_free(stream, p);
    o->kernel_destroy(k);
    o->event_destroy(event);
    o->event_destroy(NULL);
    o->stream_destroy(wrapped);
    o->stream_destroy(other);
    o->stream_destroy(NULL);
    o->kernel_destroy(NULL);
}
END_TEST

START_TEST(refusals) {
    const lf_device_ops *o = device->ops;
    lf_image image = image_of(beyond);
    lf_kernel *k;
    fails_with(o->kernel_load(device, &(lf_image){.kind = LF_IMAGE_PTX, .entry = "p", .data = "x"}, &k), LF_UNSUPPORTED,
               "kernel p: the SIM device runs code that was made for it only");
    program.magic++;
    fails_with(o->kernel_load(device, &image, &k), LF_UNSUPPORTED, "made for it only");
    image = image_of(beyond);
    program.shared_bytes = LF_SIM_MAX_SHARED + 1;
    fails_with(o->kernel_load(device, &image, &k), LF_UNSUPPORTED, "bytes of shared memory");
    image = image_of(beyond);
    ok(o->kernel_load(device, &image, &k));
    lf_launch l = {.kernel = k, .grid = 1u << 31, .block = 32};
    fails_with(o->launch(stream, &l), LF_INVALID_ARGUMENT, "a grid of 2147483648 blocks");
    l = (lf_launch){.kernel = k, .grid = 1, .block = 0};
    fails_with(o->launch(stream, &l), LF_INVALID_ARGUMENT, "a block of 0 threads");
    l.block = 1025;
    fails_with(o->launch(stream, &l), LF_INVALID_ARGUMENT, "a block of 1025 threads");
    l = (lf_launch){.kernel = k, .grid = 1, .block = 1, .shared = LF_SIM_MAX_SHARED};
    fails_with(o->launch(stream, &l), LF_INVALID_ARGUMENT, "bytes of shared memory a block");
    l = (lf_launch){.kernel = k, .grid = 0, .block = 1};
    ok(o->launch(stream, &l));
    lf_device *second;
    lf_stream *elsewhere;
    ok(lf_sim_device_create(&counted, NULL, &second));
    ok(o->stream_create(second, &elsewhere));
    l.grid = 1;
    fails_with(o->launch(elsewhere, &l), LF_INVALID_ARGUMENT, "different devices");
    o->stream_destroy(elsewhere);
    o->destroy(second);
    o->destroy(NULL);
    o->kernel_destroy(k);
}
END_TEST

KERNEL nothing(lf_sim_thread *t, const uint64_t *args) { (void)t, (void)args; }

static void keep_first(lf_status *first, lf_status s) {
    if (*first)
        lf_status_destroy(s);
    else
        *first = s;
}

// Everything, on a device of its own; what failed first.
static lf_status whole_life(void) {
    static const uint64_t args[200] = {0};
    lf_device *d;
    lf_stream *s = NULL, *w = NULL;
    lf_event *e = NULL;
    lf_kernel *k = NULL;
    void *p = NULL, *host = NULL, *mapped;
    lf_status r = lf_sim_device_create(&counted, &log_here, &d);
    if (!d) return r;
    const lf_device_ops *o = d->ops;
    lf_image image = image_of(nothing);
    keep_first(&r, o->stream_create(d, &s));
    if (s) keep_first(&r, o->stream_wrap(d, o->stream_native(s), &w));
    keep_first(&r, o->event_create(d, &e));
    keep_first(&r, o->kernel_load(d, &image, &k));
    keep_first(&r, o->mapped_alloc(d, 64, &host, &mapped));
    if (s && e && k) {
        keep_first(&r, o->memory_alloc(s, 64, &p));
        for (uint32_t n = 0; n <= 200; n += 100)
            keep_first(&r, o->launch(s, &(lf_launch){.kernel = k, .args = args, .n_args = n, .grid = 2, .block = 64}));
        keep_first(&r, o->event_record(e, s));
        keep_first(&r, o->event_wait(e));
        o->memory_free(s, p);
        keep_first(&r, o->stream_synchronize(s));
    }
    o->mapped_free(d, host);
    o->kernel_destroy(k);
    o->event_destroy(e);
    o->stream_destroy(w);
    o->stream_destroy(s);
    o->destroy(d);
    return r;
}

START_TEST(each_allocation_of_a_life_fails) {
    long before = live, failed = 0;
    for (long k = 1;; k++) {
        calls = 0;
        fail_at = k;
        lf_status s = whole_life();
        bool reached = calls >= k;
        fail_at = 0;
        ck_assert_msg(!s || lf_status_code(s) == LF_OUT_OF_MEMORY, "allocation %ld failing: %s", k, lf_status_message(s));
        lf_status_destroy(s);
        ck_assert_msg(live == before, "allocation %ld failing leaves %ld blocks", k, (long)(live - before));
        if (!reached) break;
        failed++;
    }
    ck_assert_int_gt(failed, 20);
    ok(whole_life());
}
END_TEST

int main(void) {
#if !defined(__x86_64__)
    return 77;
#endif
    Suite *suite = suite_create("sim device by itself");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 200);
    tcase_add_test(tc, lanes_compute_what_c_does);
    tcase_add_test(tc, functions_of_numbers);
    tcase_add_test(tc, copies_of_each_size);
    tcase_add_test(tc, buffers);
    tcase_add_test(tc, streams_and_events);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, each_allocation_of_a_life_fails);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
