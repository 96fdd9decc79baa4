// Runs as parts of CUDA graphs: the caller's (captured) and our own (replays). First against a driver that only keeps books
// (test/stub), on any machine; with --device=cuda also on a GPU. LFUSER_TEST_TIMES=1 prints there what a replay saves.
#include "api/api.h"
#include "runtime/cuda/cuda_driver.h"
#include "test/stub/find_stub.h"
#include "test/support/api/tensors.h"
#include <dlfcn.h>
#include <unistd.h>

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libcuda_stub\n"; }

static lfuser_executable *compile_with(const char *text, lfuser_sync sync, uint32_t replay_from) {
    lfuser_compile_options options = {.size = sizeof options, .sync = sync, .replay_from = replay_from};
    lfuser_fusion *f = parse(text);
    lfuser_executable *e;
    ok(lfuser_fusion_compile(f, env.device, &options, &e));
    lfuser_fusion_destroy(f);
    return e;
}

// A kernel of rows with a pending scalar, a gather that may err, a sort, workspace between them.
static const char rich_text[] = "fusion @rich(%x: f32[?, 64], %i: i64[?], %k: f32) {\n"
                                "  %e = mul %x, %k\n"
                                "  %m = sum %e\n"
                                "  %p = item %m\n"
                                "  %g = take %e, %i, axis=0\n"
                                "  %v, %j = sort %g, axis=1\n"
                                "  %y = add %v, %p\n"
                                "  %q = mul %p, 1\n" // which the host finishes
                                "  return %y, %q\n"
                                "}\n";
enum { ROWS = 4, COLUMNS = 64, PICKS = 2 };

typedef struct rich {
    test_tensor x, y;
    int64_t picks[PICKS];
    lfuser_tensor i;
    int64_t n_picks;
    void *picks_memory, *workspace;
    uint64_t workspace_bytes;
    lfuser_argument arguments[3];
} rich;

static void rich_open(rich *r, lfuser_executable *e) {
    tensor_f32(&r->x, 2, (int64_t[]){ROWS, COLUMNS}, 0, 1);
    tensor_init(&r->y, LFUSER_F32, 2, (int64_t[]){PICKS, COLUMNS}, LAYOUT_DENSE);
    tensor_upload(&r->y);
    r->n_picks = PICKS;
    ok(lfuser_memory_alloc(env.stream, sizeof r->picks, &r->picks_memory));
    r->picks[0] = 3, r->picks[1] = -4;
    ok(lfuser_memory_upload(env.stream, r->picks_memory, r->picks, sizeof r->picks));
    r->i = (lfuser_tensor){.data = r->picks_memory,
                           .device = env.place,
                           .rank = 1,
                           .dtype = lfuser_dl_dtype_of(LFUSER_I64),
                           .shape = &r->n_picks};
    r->arguments[0] = tensor_argument(&r->x.view);
    r->arguments[1] = tensor_argument(&r->i);
    r->arguments[2] = f32_argument(2);
    ok(lfuser_infer(e, r->arguments, 3, (lfuser_output[2]){{0}}, 2, NULL, &r->workspace_bytes));
    ok(lfuser_memory_alloc(env.stream, r->workspace_bytes, &r->workspace));
    synchronize();
}

static void rich_close(rich *r) {
    lfuser_memory_free(env.stream, r->picks_memory);
    lfuser_memory_free(env.stream, r->workspace);
    tensor_finish(&r->x);
    tensor_finish(&r->y);
}

static lfuser_status rich_run(rich *r, lfuser_executable *e, lfuser_stream *stream, lfuser_output outputs[2],
                              lfuser_completion **completion) {
    outputs[0] = (lfuser_output){.tensor = &r->y.view};
    outputs[1] = (lfuser_output){0};
    lfuser_run_options options = {.size = sizeof options, .workspace = r->workspace, .workspace_bytes = r->workspace_bytes};
    return lfuser_run_with(e, stream, r->arguments, 3, outputs, 2, &options, completion);
}

// ---- the stub ----------------------------------------------------------------------------------------------------------------------

static void stub_setup(void) {
    setenv("LFUSER_LIBCUDA", stub_path, 1);
    stub = reset_stub();
    make_current(0);
    ok(lfuser_context_create(NULL, &env.context));
    ok(lfuser_device_open(env.context, "cuda", &env.device));
    ok(lfuser_stream_create(env.device, &env.stream));
    env.place = (lfuser_dl_device){2, 0};
}

static void stub_teardown(void) {
    env_teardown();
    ck_assert_msg(!stub->streams && !stub->events && !stub->modules && !stub->device_blocks && !stub->graphs &&
                      !stub->graph_execs,
                  "left: %ld streams, %ld events, %ld modules, %ld blocks, %ld graphs, %ld executable graphs", stub->streams,
                  stub->events, stub->modules, stub->device_blocks, stub->graphs, stub->graph_execs);
    ck_assert(!stub->capture_broken);
}

START_TEST(a_cold_run_leaves_the_capture_alone) {
    lfuser_executable *e = compile_with(rich_text, LFUSER_NO_SYNC, 0);
    rich r;
    rich_open(&r, e);
    lfuser_output outputs[2];
    lfuser_completion *completion;
    stub->capturing = true;
    for (int round = 0; round < 3; round++) {
        lfuser_status s = rich_run(&r, e, env.stream, outputs, &completion);
        ck_assert_int_eq(lfuser_status_code(s), LFUSER_CAPTURE_ERROR);
        ck_assert_ptr_nonnull(strstr(
            lfuser_status_message(s),
            "is not compiled for this class yet, and nothing can be loaded while the stream is captured; prepare first"));
        lfuser_status_destroy(s);
        ck_assert(!completion && !outputs[1].pending);
        ck_assert_int_eq(stub->launches, 0);
        ck_assert(!stub->capture_broken);
    }
    stub->capturing = false;
    rich_close(&r);
    lfuser_executable_destroy(e);
}
END_TEST

START_TEST(a_prepared_run_can_be_captured) {
    lfuser_executable *e = compile_with(rich_text, LFUSER_NO_SYNC, 2);
    rich r;
    rich_open(&r, e);
    lfuser_output outputs[2];
    lfuser_completion *completion;
    ok(lfuser_executable_prepare(e));
    stub->capturing = true;
    long syncs = stub->syncs;
    for (int round = 0; round < 20; round++) {
        long launches = stub->launches;
        ok(rich_run(&r, e, env.stream, outputs, &completion));
        ck_assert_int_gt(stub->launches, launches); // kernel by kernel: a replay cannot be captured
        ck_assert(!lfuser_pending_ready(outputs[1].pending));
        ok(lfuser_completion_query(completion));
        ok(lfuser_completion_wait(completion, 0));
        lfuser_completion_release(completion);
        lfuser_pending_release(outputs[1].pending);
    }
    ck_assert_int_eq(stub->syncs, syncs);
    ck_assert_int_eq(stub->graph_launches, 0);
    ck_assert(!stub->capture_broken);
    stub->capturing = false;
    rich_close(&r);
    lfuser_executable_destroy(e);
}
END_TEST

// What a replay of a captured run delivers, by hand.
static void deliver(const lfuser_pending *p, float value) {
    lf_mailbox_slot *slot = p->box.slot;
    memcpy(slot->value, &value, sizeof value);
    atomic_store(&slot->sequence, atomic_load(&slot->sequence) + 1);
}

// Each is about the replay that it waits for, whatever the others that begin with the same values have seen.
START_TEST(replays_finish_anew) {
    lfuser_executable *e =
        compile_with("fusion @f(%x: f32[?], %y: f32[?, ?], %k: f32) { %s = sum %x %p = item %s %m = max %y "
                     "%q = item %m %a = mul %p, %k %b = add %a, %q return %p, %a, %b }",
                     LFUSER_NO_SYNC, 0);
    test_tensor x, y;
    tensor_f32(&x, 1, (int64_t[]){4}, 0, 1);
    tensor_f32(&y, 2, (int64_t[]){2, 3}, 0, 1);
    lfuser_argument arguments[] = {tensor_argument(&x.view), tensor_argument(&y.view), f32_argument(3)};
    lfuser_output outputs[3] = {{0}};
    ok(lfuser_executable_prepare(e));
    ok(lfuser_stream_synchronize(env.stream));
    stub->capturing = true;
    void *workspace;
    uint64_t bytes;
    ok(lfuser_infer(e, arguments, 3, outputs, 3, NULL, &bytes));
    ok(lfuser_memory_alloc(env.stream, bytes, &workspace));
    lfuser_run_options options = {.size = sizeof options, .workspace = workspace, .workspace_bytes = bytes};
    ok(lfuser_run_with(e, env.stream, arguments, 3, outputs, 3, &options, NULL));
    arguments[2] = f32_argument(77);
    stub->capturing = false;
    lfuser_pending *p = outputs[0].pending, *a = outputs[1].pending, *b = outputs[2].pending;
    ck_assert(!p->finish && a->finish && b->finish && a->finish->n_arrivals == 1 && b->finish->n_arrivals == 2);
    ck_assert_ptr_eq(a->finish->arrivals[0].pending, p); // one mailbox for both
    const lfuser_pending *q = b->finish->arrivals[b->finish->arrivals[0].pending == p].pending;
    lfuser_scalar value;
    for (int replay = 1; replay <= 5; replay++) {
        float first = (float)replay, second = (float)(100 * replay);
        ck_assert(!lfuser_pending_ready(p) && !lfuser_pending_ready(a) && !lfuser_pending_ready(b));
        if (replay % 3 == 0) { // the other one first
            deliver(q, second);
            ck_assert(!lfuser_pending_ready(p) && !lfuser_pending_ready(a) && !lfuser_pending_ready(b));
            fails(lfuser_pending_get(b, 1000, &value), LFUSER_TIMEOUT, "no value from the device within 1000 ns");
            deliver(p, first);
            ok(lfuser_pending_get(b, 0, &value));
            ck_assert_float_eq(value.f32, 3 * first + second);
            for (int i = 0; i < 3; i++) lfuser_pending_rearm(outputs[i].pending);
            continue;
        }
        deliver(p, first);
        ck_assert(lfuser_pending_ready(p) && lfuser_pending_ready(a) && !lfuser_pending_ready(b));
        ok(lfuser_pending_get(a, 0, &value));
        ck_assert_float_eq(value.f32, 3 * first);
        fails(lfuser_pending_get(b, 0, &value), LFUSER_NOT_READY, "the device has not delivered this scalar yet");
        if (replay % 2) lfuser_pending_rearm(a);
        deliver(q, second);
        ck_assert(lfuser_pending_ready(p) && lfuser_pending_ready(a) == !(replay % 2) && lfuser_pending_ready(b));
        for (int again = 0; again < 2; again++) {
            ok(lfuser_pending_get(b, 0, &value));
            ck_assert_float_eq(value.f32, 3 * first + second);
        }
        lfuser_pending_rearm(p);
        lfuser_pending_rearm(b);
        if (!(replay % 2)) lfuser_pending_rearm(a);
    }
    lfuser_pending_release(p);
    lfuser_executable_destroy(e); // its code stays as long as somebody may finish with it
    deliver(b->finish->arrivals[0].pending, 2);
    deliver(b->finish->arrivals[1].pending, 2);
    ok(lfuser_pending_get(b, 0, &value));
    ck_assert_float_eq(value.f32, 8);
    lfuser_pending_release(a);
    lfuser_pending_release(b);
    lfuser_memory_free(env.stream, workspace);
    tensor_finish(&x);
    tensor_finish(&y);
}
END_TEST

START_TEST(sync_points_cannot_be_captured) {
    lfuser_executable *e =
        compile_with("fusion @s(%x: i64[1]) { %k = item %x %y = iota %k, 0, 1 return %y }", LFUSER_ALLOW_SYNC, 0);
    int64_t one = 1;
    void *memory;
    ok(lfuser_memory_alloc(env.stream, 8, &memory));
    lfuser_tensor t = {
        .data = memory, .device = env.place, .rank = 1, .dtype = lfuser_dl_dtype_of(LFUSER_I64), .shape = &one};
    lfuser_argument argument = tensor_argument(&t);
    lfuser_output output = {0};
    ok(lfuser_executable_prepare(e));
    stub->capturing = true;
    fails(lfuser_run(e, env.stream, &argument, 1, &output, 1, NULL), LFUSER_CAPTURE_ERROR,
          "@s has sync points: the host would wait for work that is only being captured");
    ck_assert(!stub->capture_broken);
    ck_assert_int_eq(stub->launches, 0);
    stub->capturing = false;
    lfuser_memory_free(env.stream, memory);
    lfuser_executable_destroy(e);
}
END_TEST

// ---- replays, in the stub's books ---------------------------------------------------------------------------------------------------

enum { MOST_LAUNCHES = 64 };
static struct {
    size_t bytes;
    unsigned char args[2048];
} seen[MOST_LAUNCHES];
static int n_seen;

static void see(const void *args, size_t bytes) {
    ck_assert_int_lt(n_seen, MOST_LAUNCHES);
    ck_assert_uint_le(bytes, sizeof seen->args);
    seen[n_seen].bytes = bytes;
    memcpy(seen[n_seen++].args, args, bytes);
}

// Many kernels, one of them a reduction of a few long rows, whose counters are cleared before.
static const char chain_text[] =
    "fusion @chain(%x: f32[2, ?], %k: f32) {\n"
    "  %a = mul %x, %k\n  %s = sum %a, axes=[1], keepdim=true\n  %b = sub %a, %s\n  %t = max %b, axes=[1], keepdim=true\n"
    "  %c = div %b, %t\n  %u = sum %c, axes=[1], keepdim=true\n  %d = add %c, %u\n  %v, %i = sort %d, axis=1\n"
    "  %w = sum %v, axes=[0]\n  return %w\n}\n";
enum { LONG = 40000 };

typedef struct chain {
    test_tensor x, y;
    void *workspace;
    uint64_t bytes;
    lfuser_argument arguments[2];
} chain;

static void chain_open(chain *c, lfuser_executable *e) {
    tensor_f32(&c->x, 2, (int64_t[]){2, LONG}, 0, 1e-3f);
    tensor_init(&c->y, LFUSER_F32, 1, (int64_t[]){LONG}, LAYOUT_DENSE);
    tensor_upload(&c->y);
    c->arguments[0] = tensor_argument(&c->x.view);
    c->arguments[1] = f32_argument(0.5f);
    ok(lfuser_infer(e, c->arguments, 2, &(lfuser_output){0}, 1, NULL, &c->bytes));
    ok(lfuser_memory_alloc(env.stream, c->bytes, &c->workspace));
}

static void chain_close(chain *c) {
    lfuser_memory_free(env.stream, c->workspace);
    tensor_finish(&c->x);
    tensor_finish(&c->y);
}

static void chain_run(chain *c, lfuser_executable *e, lfuser_stream *stream) {
    lfuser_output output = {.tensor = &c->y.view};
    lfuser_run_options options = {.size = sizeof options, .workspace = c->workspace, .workspace_bytes = c->bytes};
    ok(lfuser_run_with(e, stream, c->arguments, 2, &output, 1, &options, NULL));
}

START_TEST(replays_give_the_device_what_launches_give) {
    lfuser_executable *one_by_one = compile_with(chain_text, LFUSER_NO_SYNC, 0),
                      *replayed = compile_with(chain_text, LFUSER_NO_SYNC, 2);
    static struct {
        size_t bytes;
        unsigned char args[2048];
    } want[MOST_LAUNCHES];
    chain c;
    chain_open(&c, replayed);
    stub->on_launch = see;
    for (int round = 0; round < 5; round++) {
        c.arguments[1].value.f32 = (float)(round / 2);
        n_seen = 0;
        chain_run(&c, one_by_one, env.stream);
        int n_want = n_seen;
        memcpy(want, seen, sizeof want);
        ck_assert_int_gt(n_want, 2);
        long launches = stub->launches, set = stub->parameters_set;
        n_seen = 0;
        chain_run(&c, replayed, env.stream);
        ck_assert_int_eq(stub->launches, launches);
        ck_assert_int_eq(stub->graph_launches, round + 1);
        ck_assert_int_eq(stub->graphs_made, 1);
        ck_assert_int_eq(stub->graphs, 1); // its nodes are what parameters are set by
        ck_assert_int_eq(n_seen, n_want);
        for (int i = 0; i < n_want; i++) {
            ck_assert_uint_eq(seen[i].bytes, want[i].bytes);
            ck_assert_mem_eq(seen[i].args, want[i].args, want[i].bytes);
        }
        if (round % 2)
            ck_assert_int_eq(stub->parameters_set, set); // nothing differs
        else if (round)
            ck_assert_int_gt(stub->parameters_set, set);
    }
    lfuser_stream *other;
    ok(lfuser_stream_create(env.device, &other));
    for (int round = 0; round < 3; round++) {
        n_seen = 0;
        chain_run(&c, replayed, other);
        chain_run(&c, replayed, env.stream);
    }
    ck_assert_int_eq(stub->graphs_made, 2); // a graph waits for itself: each stream has one
    ck_assert_int_eq(stub->graph_launches, 5 + 6);
    chain_close(&c);
    lfuser_stream_destroy(other);
    lfuser_executable_destroy(one_by_one);
    lfuser_executable_destroy(replayed);
    ck_assert_int_eq(stub->graphs, 0);
    ck_assert_int_eq(stub->graph_execs, 0);
}
END_TEST

// Few long rows take two kernels, and what is done with their sums a third. The second one may begin before the first has ended, the others
// may not; so in a stream and in a capture, and only where the driver can and nobody has forbidden it.
START_TEST(kernels_begin_early) {
    bool may = _i == 0;
    static const char text[] = "fusion @f(%x: f32[2, ?]) { %s = sum %x, axes=[1] %t = sum %s return %s, %t }";
    stub->no_early = _i == 1;
    lfuser_device *device;
    ok(lfuser_device_open(env.context, "cuda", &device));
    lfuser_stream *stream;
    ok(lfuser_stream_create(device, &stream));
    for (uint32_t replay_from = 0; replay_from < 3; replay_from += 2) {
        lfuser_compile_options options = {
            .size = sizeof options, .replay_from = replay_from, .debug = _i == 2 ? "no-overlap" : NULL};
        lfuser_fusion *f = parse(text);
        lfuser_executable *e;
        ok(lfuser_fusion_compile(f, device, &options, &e));
        lfuser_fusion_destroy(f);
        ok(lfuser_executable_prepare(e));
        test_tensor x, s, t;
        tensor_f32(&x, 2, (int64_t[]){2, LONG}, 0, 1);
        tensor_f32(&s, 1, (int64_t[]){2}, 0, 1);
        tensor_f32(&t, 0, NULL, 0, 1);
        lfuser_argument argument = tensor_argument(&x.view);
        for (int round = 0; round < 4; round++) {
            lfuser_output outputs[2] = {{.tensor = &s.view}, {.tensor = &t.view}};
            stub->capturing = !replay_from && round % 2;
            stub->launches = stub->early_launches = 0;
            ok(lfuser_run(e, stream, &argument, 1, outputs, 2, NULL));
            ck_assert_int_eq(stub->launches, replay_from ? 0 : 3);
            ck_assert_int_eq(stub->early_launches, replay_from || !may ? 0 : 1);
            ck_assert(!stub->capture_broken);
            stub->capturing = false;
        }
        ck_assert_int_eq(stub->graphs_made, replay_from != 0);
        tensor_finish(&x);
        tensor_finish(&s);
        tensor_finish(&t);
        lfuser_executable_destroy(e);
    }
    lfuser_stream_destroy(stream);
    lfuser_device_close(device);
}
END_TEST

// Whatever call of making and launching a graph fails: an error, and the next run is right.
START_TEST(failing_graphs_are_errors) {
    int failed = 0;
    bool all = false;
    for (int i = 1; i < 100 && !all; i++) {
        lfuser_executable *e = compile_with("fusion @f(%x: f32[?]) { %y = exp %x return %y }", LFUSER_NO_SYNC, 1);
        test_tensor x, y;
        tensor_f32(&x, 1, (int64_t[]){64}, 0, 1);
        tensor_f32(&y, 1, (int64_t[]){64}, 0, 1);
        lfuser_argument argument = tensor_argument(&x.view);
        lfuser_output output = {.tensor = &y.view};
        ok(lfuser_executable_prepare(e));
        stub->calls = 0;
        stub->fail_at = i;
        stub->fail_with = CUDA_ERROR_ILLEGAL_ADDRESS;
        stub->failed = NULL;
        lfuser_status s = lfuser_run(e, env.stream, &argument, 1, &output, 1, NULL);
        stub->fail_at = 0;
        all = !stub->failed;
        failed += s && stub->failed && !strncmp(stub->failed, "cuGraph", 7);
        lfuser_status_destroy(s);
        long launches = stub->graph_launches;
        ok(lfuser_run(e, env.stream, &argument, 1, &output, 1, NULL));
        ck_assert_int_eq(stub->graph_launches, launches + 1);
        tensor_finish(&x);
        tensor_finish(&y);
        lfuser_executable_destroy(e);
    }
    ck_assert(all);
    ck_assert_int_eq(failed, 4); // create, a node, instantiate, launch
}
END_TEST

// ---- several devices -------------------------------------------------------------------------------------------------------------------

// The stub says that addresses from 1 << 60 on lie on device 1.
START_TEST(memory_of_another_device_is_named) {
    static const char text[] = "fusion @f(%x: f32[4]) { %y = exp %x return %y }";
    lfuser_device *second;
    lfuser_stream *stream;
    lfuser_executable *on_first, *on_second;
    lfuser_compile_options checked = {.size = sizeof checked, .check_pointers = true};
    lfuser_fusion *f = parse(text);
    ok(lfuser_device_open(env.context, "cuda:1", &second));
    ok(lfuser_stream_create(second, &stream));
    ok(lfuser_fusion_compile(f, second, NULL, &on_second)); // one fusion, an executable a device
    ok(lfuser_fusion_compile(f, env.device, NULL, &on_first));
    int64_t four = 4;
    lfuser_tensor x = {.data = (void *)((uintptr_t)1 << 60),
                       .device = {2, 1},
                       .rank = 1,
                       .dtype = lfuser_dl_dtype_of(LFUSER_F32),
                       .shape = &four};
    lfuser_argument argument = tensor_argument(&x);
    lfuser_output output = {0};
    ok(lfuser_run(on_second, stream, &argument, 1, &output, 1, NULL));
    output.allocated->deleter(output.allocated);
    fails(lfuser_run(on_first, env.stream, &argument, 1, &output, 1, NULL), LFUSER_INVALID_ARGUMENT,
          "@f: argument 0 (%x): lies on cuda:1, the program was compiled for cuda:0");
    fails(lfuser_run(on_first, stream, &argument, 1, &output, 1, NULL), LFUSER_INVALID_ARGUMENT,
          "@f: the stream is of cuda:1, the program was compiled for cuda:0");
    lfuser_executable_destroy(on_first);
    ok(lfuser_fusion_compile(f, env.device, &checked, &on_first));
    x.device.ordinal = 0; // which is not true
    fails(lfuser_run(on_first, env.stream, &argument, 1, &output, 1, NULL), LFUSER_INVALID_ARGUMENT,
          "@f: argument 0 (%x): the memory at 0x1000000000000000 lies on cuda:1, the program was compiled for cuda:0");
    static float host[4];
    x.data = host;
    lfuser_status s = lfuser_run(on_first, env.stream, &argument, 1, &output, 1, NULL);
    ck_assert_ptr_nonnull(strstr(lfuser_status_message(s), "lies on cpu:0, the program was compiled for cuda:0"));
    lfuser_status_destroy(s);
    x.data = (void *)((uintptr_t)2 << 60); // managed: fine
    lfuser_tensor y = x;
    y.data = (void *)(((uintptr_t)1 << 60) + 4096);
    output.tensor = &y;
    fails(lfuser_run(on_first, env.stream, &argument, 1, &output, 1, NULL), LFUSER_INVALID_ARGUMENT,
          "@f: output 0 (%y): the memory at 0x1000000000001000 lies on cuda:1, the program was compiled for cuda:0");
    lfuser_executable_destroy(on_first);
    lfuser_executable_destroy(on_second);
    lfuser_fusion_destroy(f);
    lfuser_stream_destroy(stream);
    lfuser_device_close(second);
}
END_TEST

// ---- a GPU ----------------------------------------------------------------------------------------------------------------------------

static struct {
    CUresult (*begin)(CUstream, int mode), (*end)(CUstream, CUgraph *),
        (*instantiate)(CUgraphExec *, CUgraph, unsigned long long), (*launch)(CUgraphExec, CUstream),
        (*exec_destroy)(CUgraphExec), (*graph_destroy)(CUgraph), (*capturing)(CUstream, int *),
        (*retain)(CUcontext *, CUdevice), (*push)(CUcontext), (*stream)(CUstream *, unsigned), (*stream_destroy)(CUstream),
        (*wait)(CUstream);
} cu;

static CUstream native;
static lfuser_stream *wrapped;

static void gpu_setup(void) {
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        void *at;
    } rows[] = {{"cuStreamBeginCapture_v2", &cu.begin},
                {"cuStreamEndCapture", &cu.end},
                {"cuGraphInstantiateWithFlags", &cu.instantiate},
                {"cuGraphLaunch", &cu.launch},
                {"cuGraphExecDestroy", &cu.exec_destroy},
                {"cuGraphDestroy", &cu.graph_destroy},
                {"cuStreamIsCapturing", &cu.capturing},
                {"cuDevicePrimaryCtxRetain", &cu.retain},
                {"cuCtxPushCurrent_v2", &cu.push},
                {"cuStreamCreate", &cu.stream},
                {"cuStreamDestroy_v2", &cu.stream_destroy},
                {"cuStreamSynchronize", &cu.wait}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *(void **)rows[i].at = lib ? dlsym(lib, rows[i].name) : NULL;
        ck_assert_msg(*(void **)rows[i].at != NULL, "the driver has no %s", rows[i].name);
    }
    env_setup();
    CUcontext primary;
    ck_assert_int_eq(cu.retain(&primary, env.place.ordinal), 0);
    ck_assert_int_eq(cu.push(primary), 0);
    ck_assert_int_eq(cu.stream(&native, CU_STREAM_NON_BLOCKING), 0);
    ok(lfuser_stream_wrap(env.device, native, &wrapped));
}

static void gpu_teardown(void) {
    lfuser_stream_destroy(wrapped);
    cu.stream_destroy(native);
    env_teardown();
}

static int capture_state(void) {
    int state = -1;
    cu.capturing(native, &state);
    return state;
}

// Every replay reads what is in memory then: values, and indices that may be wrong.
START_TEST(replays_of_a_captured_run) {
    lfuser_executable *e = compile_with(rich_text, LFUSER_NO_SYNC, 0);
    rich r;
    rich_open(&r, e);
    ok(lfuser_executable_prepare(e));
    lfuser_output outputs[2];
    lfuser_completion *completion, *unread;
    lfuser_output more[2];
    ck_assert_int_eq(cu.begin(native, _i), 0);
    ok(rich_run(&r, e, wrapped, outputs, &completion));
    ok(rich_run(&r, e, wrapped, more, &unread)); // twice in one graph
    ck_assert_int_eq(capture_state(), 1);
    CUgraph graph;
    CUgraphExec exec;
    ck_assert_int_eq(cu.end(native, &graph), 0);
    ck_assert_int_eq(cu.instantiate(&exec, graph, 0), 0);
    ck_assert(!lfuser_pending_ready(outputs[1].pending));
    for (int replay = 1; replay <= 5; replay++) {
        float sum = 0;
        for (int64_t i = 0; i < ROWS * COLUMNS; i++)
            *(float *)tensor_element(&r.x, i) = (float)(replay * (i % 7)), sum += (float)(2 * replay * (i % 7));
        ok(lfuser_memory_upload(env.stream, r.x.memory, r.x.host, (size_t)r.x.elements * r.x.bytes));
        r.picks[1] = replay == 4 ? ROWS : 1;
        ok(lfuser_memory_upload(env.stream, r.picks_memory, r.picks, sizeof r.picks));
        synchronize();
        lfuser_scalar p;
        ck_assert_int_eq(cu.launch(exec, native), 0);
        ok(lfuser_pending_get(outputs[1].pending, 10000000000, &p));
        ck_assert_float_eq(p.f32, sum);
        ok(lfuser_pending_get(more[1].pending, 10000000000, &p));
        ck_assert_float_eq(p.f32, sum);
        ck_assert_int_eq(cu.wait(native), 0);
        lfuser_pending_rearm(outputs[1].pending);
        lfuser_pending_rearm(more[1].pending);
        ck_assert(!lfuser_pending_ready(outputs[1].pending));
        if (replay < 4)
            ok(lfuser_completion_query(completion));
        else
            fails(lfuser_completion_query(completion), LFUSER_INDEX_ERROR,
                  "@rich: 'take' giving %g: an index was out of range along axis 0; the element read as 0 (t.lf:5:8)");
        tensor_download(&r.y);
        for (int64_t k = 1; k < COLUMNS; k++) ck_assert(tensor_f32_at(&r.y, k - 1) <= tensor_f32_at(&r.y, k));
    }
    // An error that nobody asks about fails the next run, as always.
    lfuser_completion_release(unread);
    lfuser_status s = rich_run(&r, e, env.stream, outputs, NULL);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_INDEX_ERROR);
    lfuser_status_destroy(s);
    cu.exec_destroy(exec);
    cu.graph_destroy(graph);
    lfuser_completion_release(completion);
    lfuser_pending_release(more[1].pending);
    rich_close(&r);
    lfuser_executable_destroy(e);
}
END_TEST

START_TEST(a_cold_run_leaves_the_drivers_capture_valid) {
    lfuser_executable *cold = compile_with(rich_text, LFUSER_NO_SYNC, 0),
                      *warm = compile_with(chain_text, LFUSER_NO_SYNC, 2);
    rich r;
    chain c;
    rich_open(&r, cold);
    chain_open(&c, warm);
    chain_run(&c, warm, wrapped); // compiles
    ck_assert_int_eq(cu.wait(native), 0);
    tensor_download(&c.y);
    float want = tensor_f32_at(&c.y, LONG - 1);
    lfuser_output outputs[2];
    ck_assert_int_eq(cu.begin(native, _i), 0);
    chain_run(&c, warm, wrapped);
    lfuser_status s = rich_run(&r, cold, wrapped, outputs, NULL);
    ck_assert_int_eq(lfuser_status_code(s), LFUSER_CAPTURE_ERROR);
    lfuser_status_destroy(s);
    ck_assert_int_eq(capture_state(), 1);
    CUgraph graph;
    CUgraphExec exec;
    ck_assert_int_eq(cu.end(native, &graph), 0);
    ck_assert_int_eq(cu.instantiate(&exec, graph, 0), 0);
    memset(c.y.host, 0, (size_t)c.y.elements * c.y.bytes);
    ok(lfuser_memory_upload(env.stream, c.y.memory, c.y.host, (size_t)c.y.elements * c.y.bytes));
    synchronize();
    ck_assert_int_eq(cu.launch(exec, native), 0);
    ck_assert_int_eq(cu.wait(native), 0);
    tensor_download(&c.y);
    ck_assert_float_eq(tensor_f32_at(&c.y, LONG - 1), want);
    cu.exec_destroy(exec);
    cu.graph_destroy(graph);
    rich_close(&r);
    chain_close(&c);
    lfuser_executable_destroy(cold);
    lfuser_executable_destroy(warm);
}
END_TEST

static double time_runs(chain *c, lfuser_executable *e, bool changes) {
    enum { CALLS = 300 };
    double best = 1;
    for (int round = 0; round < 10; round++) {
        double start = now_s();
        for (int k = 0; k < CALLS / 10; k++) {
            if (changes) c->arguments[1].value.f32 += 1e-3f;
            chain_run(c, e, env.stream);
        }
        double each = (now_s() - start) / (CALLS / 10);
        if (each < best) best = each;
        synchronize();
    }
    return best;
}

// Our own replays: equal bits while scalars change, from several streams; and what they cost.
START_TEST(our_replays_give_equal_bits) {
    lfuser_executable *one_by_one = compile_with(chain_text, LFUSER_NO_SYNC, 0),
                      *replayed = compile_with(chain_text, LFUSER_NO_SYNC, 2);
    chain c;
    chain_open(&c, replayed);
    static float want[LONG];
    for (int round = 0; round < 10; round++) {
        c.arguments[1].value.f32 = 0.25f * (float)(round + 1);
        chain_run(&c, one_by_one, env.stream);
        tensor_download(&c.y);
        memcpy(want, tensor_element(&c.y, 0), sizeof want);
        memset(c.y.host, POISON, (size_t)c.y.elements * c.y.bytes);
        ok(lfuser_memory_upload(env.stream, c.y.memory, c.y.host, (size_t)c.y.elements * c.y.bytes));
        synchronize();
        lfuser_stream *on = round % 3 ? env.stream : wrapped;
        chain_run(&c, replayed, on);
        ok(lfuser_stream_synchronize(on));
        tensor_download(&c.y);
        ck_assert_mem_eq(tensor_element(&c.y, 0), want, sizeof want);
    }
    if (getenv("LFUSER_TEST_TIMES")) {
        uint64_t before = stats().launches;
        chain_run(&c, one_by_one, env.stream);
        printf("%llu kernels, host time a call: one by one %.2f us, replayed with nothing new %.2f us, with a new scalar "
               "%.2f us\n",
               (unsigned long long)(stats().launches - before), 1e6 * time_runs(&c, one_by_one, true),
               1e6 * time_runs(&c, replayed, false), 1e6 * time_runs(&c, replayed, true));
        fflush(stdout);
    }
    chain_close(&c);
    lfuser_executable_destroy(one_by_one);
    lfuser_executable_destroy(replayed);
}
END_TEST

static Suite *make(void) {
    Suite *suite = suite_create("capture");
    if (find_stub()) {
        TCase *t = tcase_create("stub");
        tcase_add_checked_fixture(t, stub_setup, stub_teardown);
        tcase_set_timeout(t, SLOW_BUILD ? 600 : 60);
        suite_add_tcase(suite, t);
        tcase_add_test(t, a_cold_run_leaves_the_capture_alone);
        tcase_add_test(t, a_prepared_run_can_be_captured);
        tcase_add_test(t, replays_finish_anew);
        tcase_add_test(t, sync_points_cannot_be_captured);
        tcase_add_test(t, replays_give_the_device_what_launches_give);
        tcase_add_loop_test(t, kernels_begin_early, 0, 3);
        tcase_add_test(t, failing_graphs_are_errors);
        tcase_add_test(t, memory_of_another_device_is_named);
    }
    if (test_on_cuda()) {
        TCase *t = tcase_create("gpu");
        tcase_add_checked_fixture(t, gpu_setup, gpu_teardown);
        tcase_set_timeout(t, 60);
        suite_add_tcase(suite, t);
        tcase_add_loop_test(t, replays_of_a_captured_run, 0, 2); // modes: global, of the thread
        tcase_add_loop_test(t, a_cold_run_leaves_the_drivers_capture_valid, 0, 2);
        tcase_add_test(t, our_replays_give_equal_bits);
    }
    return suite;
}

int main(int argc, char **argv) { return device_test_main(argc, argv, make); }
