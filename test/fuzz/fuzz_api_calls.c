// Fuzzing of the C API: bytes are read as a sequence of calls on whatever objects there are, with arguments that often do not fit.
// Every call gives a status of a known code with a message (never LFUSER_INTERNAL), nothing crashes, and when all is destroyed, in an
// order that the bytes say, nothing is left.
#include "test/fuzz/fuzz.h"
#include <lfuser/lfuser.h>
#include <string.h>

enum kind { DEVICE, STREAM, FUSION, EXECUTABLE, BUILDER, KINDS };
enum { SLOTS = 4, RECENT = 8, BUFFER = 1 << 16, MOST_ARGS = 8, MOST_OUTPUTS = 8 };

typedef struct state {
    const uint8_t *bytes;
    size_t left;
    _Atomic long live;
    lfuser_context *context;
    lfuser_device *devices[SLOTS];
    lfuser_stream *streams[SLOTS];
    lfuser_fusion *fusions[SLOTS];
    lfuser_executable *executables[SLOTS];
    lfuser_pending *pendings[SLOTS];
    lfuser_completion *completions[SLOTS];
    lfuser_managed_tensor *tensors[SLOTS];
    lfuser_builder *builders[SLOTS];
    lfuser_value *values[SLOTS][SLOTS]; // of each builder
    lfuser_dl_device place;
    void *memory; // BUFFER bytes on the device
    lfuser_stream *home;
    lfuser_device *home_device;
    uint64_t calls, refused;
    void *ended[KINDS]; // the last of each kind that was destroyed
    uint64_t ended_at[KINDS], n_ended;
} state;

static unsigned byte(state *s) {
    if (!s->left) return 0;
    s->left--;
    return *s->bytes++;
}
static unsigned upto(state *s, unsigned n) { return byte(s) % n; }

static lfuser_code checked(state *s, lfuser_status status) {
    lfuser_code code = lfuser_status_code(status);
    s->calls++;
    s->refused += status != NULL;
    CHECK(!status || (code > LFUSER_OK && code <= LFUSER_TIMEOUT), "no such code: %d\n", (int)code);
    CHECK(!status || *lfuser_status_message(status), "code %d without a message\n", (int)code);
    CHECK(code != LFUSER_INTERNAL, "internal error: %s\n", lfuser_status_message(status));
    lfuser_status_destroy(status);
    return code;
}

static void note_end(state *s, enum kind kind, void *handle) {
    if (!handle) return;
    s->ended[kind] = handle;
    s->ended_at[kind] = s->n_ended++;
}

// What was destroyed not long ago is refused, whatever it is asked, and destroying it again does nothing.
static void use_ended(state *s) {
    for (unsigned kind = 0; kind < KINDS; kind++) {
        void *handle = s->ended[kind];
        lfuser_status status = NULL;
        lfuser_executable *e;
        lfuser_stats stats = {.size = sizeof stats};
        size_t n;
        if (!handle || s->n_ended - s->ended_at[kind] > RECENT) continue;
        switch (kind) {
        case DEVICE: lfuser_device_close(handle), status = lfuser_device_stats(handle, &stats); break;
        case STREAM: lfuser_stream_destroy(handle), status = lfuser_stream_synchronize(handle); break;
        case FUSION: lfuser_fusion_destroy(handle), status = lfuser_fusion_compile(handle, s->home_device, NULL, &e); break;
        case EXECUTABLE:
            lfuser_executable_destroy(handle), status = lfuser_run(handle, s->home, NULL, 0, NULL, 0, NULL);
            break;
        default: lfuser_builder_destroy(handle), status = lfuser_builder_op(handle, "neg", NULL, 0, NULL, 0, NULL, &n);
        }
        CHECK(lfuser_status_code(status) == LFUSER_INVALID_ARGUMENT &&
                  strstr(lfuser_status_message(status), "has been destroyed"),
              "a destroyed object of kind %u is used: %s\n", kind, lfuser_status_message(status));
        lfuser_status_destroy(status);
    }
}

static const char *const texts[] = {
    "fusion @a(%t: f32[?, ?], %s: i64) { %a = reshape %t, [%s, -1] %b = add %a, 1.5 %n = add %s, 1 return %b, %n }",
    "fusion @b(%x: f32[?, ?]) { %m = max %x %p = item %m %y = div %x, %p %q = add %p, 1 return %y, %p, %q }",
    "fusion @c(%a: i64, %b: i64) { %c = floordiv %a, %b %d = sqrt %c return %c, %d }",
    "fusion @d(%x: f32[?, ?], %y: f32[?, ?]) { %a = add %x, %y return %a into %y }",
    "fusion @e(%x: f32[?], %i: i64[?]) { %a = take %x, %i, axis=0 %b, %j = sort %a return %a, %b, %j }",
    "fusion @f(%x: u8[?, 3], %h: f64[] @host, %s: bool) { %y = select %s, %x, 7 %z = mul %h, 2 return %y, %z }",
    "fusion @g(%x: f32[%n], %n: i64) { %c = gt %n, 2 assert %c, \"small\" return %x }",
    "fusion @h(%x: f32[?]) { %y = sum %x return %y",
    "fusion @i() { return }",
    "fusion @j(%x: c64[?, ?]) { %y = matmul %x, %x return %y } fusion @k(%s: f16) { %t = exp %s return %t }",
};

#define PICK(s, pool) ((s)->pool[upto(s, SLOTS)])

// ---- calls ---------------------------------------------------------------------------------------------------------------------

static void call_device(state *s) {
    lfuser_device **d = &PICK(s, devices);
    if (*d) {
        lfuser_stats stats = {.size = sizeof stats};
        if (upto(s, 2))
            checked(s, lfuser_device_stats(*d, &stats));
        else
            lfuser_device_close(*d), note_end(s, DEVICE, *d), *d = NULL;
        return;
    }
    static const char *const names[] = {"cpu", "cpu", "cpu", "gpu", "", "cuda:99999999999", "cpu:1"};
    checked(s, lfuser_device_open(s->context, names[upto(s, 7)], d));
}

static void count_call(void *arg) { ++*(_Atomic unsigned *)arg; }
static _Atomic unsigned callbacks;

static void call_stream(state *s) {
    lfuser_stream **p = &PICK(s, streams);
    lfuser_device *d = PICK(s, devices);
    if (!*p) {
        checked(s, lfuser_stream_create(d ? d : s->home_device, p));
        return;
    }
    switch (upto(s, 4)) {
    case 0: lfuser_stream_destroy(*p), note_end(s, STREAM, *p), *p = NULL; break;
    case 1: checked(s, lfuser_stream_synchronize(*p)); break;
    case 2: checked(s, lfuser_stream_query(*p)); break;
    default: checked(s, lfuser_stream_callback(*p, count_call, &callbacks));
    }
}

static void call_fusion(state *s) {
    lfuser_fusion **f = &PICK(s, fusions);
    if (*f) {
        char *text;
        if (upto(s, 3) == 0) {
            lfuser_fusion_destroy(*f);
            note_end(s, FUSION, *f);
            *f = NULL;
        } else if (!checked(s, lfuser_fusion_print(*f, (lfuser_stage)(byte(s) % 11),
                                                   (const char *[]){"cpu", "cuda:sm_90", "x", NULL}[upto(s, 4)],
                                                   (lfuser_math)upto(s, 2), upto(s, 10), &text)))
            lfuser_free(s->context, text);
        return;
    }
    const char *text = texts[upto(s, sizeof texts / sizeof *texts)];
    size_t n = strlen(text);
    checked(s, lfuser_fusion_parse(s->context, upto(s, 2) ? "t.lf" : NULL, text, upto(s, 16) ? n : upto(s, (unsigned)n),
                                   upto(s, 8) ? NULL : "k", f));
}

static void call_compile(state *s) {
    lfuser_executable **e = &PICK(s, executables);
    lfuser_fusion *f = PICK(s, fusions);
    if (*e && upto(s, 3)) {
        lfuser_value_info info;
        if (!checked(s, lfuser_executable_param(*e, upto(s, 4), &info))) CHECK(info.rank <= 8, "rank %u\n", info.rank);
        if (!checked(s, lfuser_executable_output(*e, upto(s, 4), &info))) CHECK(info.rank <= 8, "rank %u\n", info.rank);
        if (upto(s, 4) == 0) checked(s, lfuser_executable_prepare(*e));
        return;
    }
    lfuser_executable_destroy(*e);
    note_end(s, EXECUTABLE, *e);
    *e = NULL;
    if (!f) return;
    lfuser_device *d = upto(s, 8) ? s->home_device : PICK(s, devices);
    lfuser_compile_options options = {.size = sizeof options, .math = (lfuser_math)upto(s, 2)};
    checked(s, lfuser_fusion_compile(f, d, upto(s, 2) ? &options : NULL, e));
}

// A tensor within the middle of the buffer, whatever its strides; now and then nonsense.
static void make_tensor(state *s, lfuser_tensor *t, int64_t *shape, int64_t *strides, lfuser_dtype like, uint32_t rank) {
    unsigned odd = upto(s, 12);
    *t = (lfuser_tensor){.data = s->memory,
                         .device = s->place,
                         .rank = (int32_t)(odd == 0 ? upto(s, 5) : rank),
                         .dtype = lfuser_dl_dtype_of(odd == 1 ? (lfuser_dtype)(1 + upto(s, 15)) : like),
                         .shape = shape,
                         .strides = upto(s, 3) ? strides : NULL,
                         .byte_offset = BUFFER / 2};
    if (odd == 2) t->device.type = (int32_t)upto(s, 20);
    if (odd == 3) t->byte_offset += upto(s, 16);
    for (int a = 0; a < 8; a++) {
        shape[a] = odd == 4 ? (int64_t)upto(s, 7) - 2 : (int64_t)(upto(s, 4) ? 3 : upto(s, 4));
        strides[a] = (int64_t)upto(s, 11) - 3;
    }
    if (odd == 5) shape[0] = INT64_MAX / 2;
    if (odd == 5) strides[0] = 0;
}

static void keep_outputs(state *s, lfuser_output *outputs, size_t n) {
    for (size_t k = 0; k < n; k++) {
        lfuser_pending **p = &PICK(s, pendings);
        lfuser_managed_tensor **m = &PICK(s, tensors);
        if (outputs[k].pending) lfuser_pending_release(*p), *p = outputs[k].pending;
        if (!outputs[k].allocated) continue;
        if (*m) (*m)->deleter(*m);
        *m = outputs[k].allocated;
    }
}

static void call_run(state *s) {
    lfuser_executable *e = PICK(s, executables);
    if (!e) return;
    lfuser_argument arguments[MOST_ARGS] = {{0}};
    lfuser_output outputs[MOST_OUTPUTS] = {{0}};
    lfuser_tensor in[MOST_ARGS], out[MOST_OUTPUTS];
    int64_t shape[MOST_ARGS + MOST_OUTPUTS][8], strides[MOST_ARGS + MOST_OUTPUTS][8];
    size_t n = lfuser_executable_n_params(e), n_out = lfuser_executable_n_outputs(e);
    CHECK(n <= MOST_ARGS && n_out <= MOST_OUTPUTS, "%zu parameters, %zu outputs\n", n, n_out);
    for (size_t i = 0; i < n; i++) {
        lfuser_value_info info;
        checked(s, lfuser_executable_param(e, i, &info));
        arguments[i] = (lfuser_argument){.kind = upto(s, 16) ? info.kind : (lfuser_kind)upto(s, 5),
                                         .dtype = upto(s, 16) ? info.dtype : (lfuser_dtype)upto(s, 17),
                                         .value = {.i64 = (int64_t)upto(s, 6) - 1}};
        make_tensor(s, &in[i], shape[i], strides[i], info.dtype, info.rank);
        bool host = arguments[i].kind == LFUSER_HOST_TENSOR;
        if (!host && upto(s, 32)) arguments[i].tensor = &in[i];
    }
    for (size_t k = 0; k < n_out && upto(s, 2); k++) {
        lfuser_value_info info;
        checked(s, lfuser_executable_output(e, k, &info));
        if (info.kind != LFUSER_TENSOR || upto(s, 2)) continue;
        make_tensor(s, &out[k], shape[MOST_ARGS + k], strides[MOST_ARGS + k], info.dtype, info.rank);
        outputs[k].tensor = &out[k];
    }
    if (!upto(s, 16)) n = upto(s, MOST_ARGS);
    if (!upto(s, 16)) n_out = upto(s, MOST_OUTPUTS);
    if (upto(s, 4) == 0) {
        int64_t shapes[MOST_OUTPUTS][8];
        uint64_t workspace;
        checked(s,
                lfuser_infer(e, arguments, n, outputs, n_out, upto(s, 2) ? shapes : NULL, upto(s, 2) ? &workspace : NULL));
        return;
    }
    lfuser_stream *own = PICK(s, streams), *stream = own && upto(s, 2) ? own : upto(s, 16) ? s->home : NULL;
    lfuser_completion **c = &PICK(s, completions);
    lfuser_completion_release(*c);
    *c = NULL;
    lfuser_code code = checked(s, lfuser_run(e, stream, arguments, n, outputs, n_out, upto(s, 4) ? c : NULL));
    if (code == LFUSER_OK)
        keep_outputs(s, outputs, n_out);
    else
        for (size_t k = 0; k < n_out; k++)
            CHECK(!outputs[k].pending && !outputs[k].allocated, "a refused run gave output %zu\n", k);
}

static void call_results(state *s) {
    lfuser_pending **p = &PICK(s, pendings);
    lfuser_completion **c = &PICK(s, completions);
    lfuser_managed_tensor **m = &PICK(s, tensors);
    lfuser_scalar value;
    switch (upto(s, 7)) {
    case 0: *p ? (void)lfuser_pending_ready(*p) : (void)0; break;
    case 1: *p ? (void)checked(s, lfuser_pending_get(*p, upto(s, 2) * 1000000u, &value)) : (void)0; break;
    case 2: lfuser_pending_release(*p), *p = NULL; break;
    case 3: *c ? (void)checked(s, lfuser_completion_query(*c)) : (void)0; break;
    case 4: *c ? (void)checked(s, lfuser_completion_wait(*c, upto(s, 2) * 1000000u)) : (void)0; break;
    case 5: lfuser_completion_release(*c), *c = NULL; break;
    default:
        if (*m) (*m)->deleter(*m);
        *m = NULL;
    }
}

static void call_builder(state *s) {
    unsigned i = upto(s, SLOTS);
    lfuser_builder **b = &s->builders[i];
    lfuser_value **v = s->values[i];
    if (!*b) {
        memset(v, 0, sizeof s->values[i]);
        if (checked(s, lfuser_builder_create(s->context, "b", b))) return;
        lfuser_type types[2] = {
            {.dtype = (lfuser_dtype)upto(s, 17),
             .tensor = upto(s, 2),
             .host = !upto(s, 8),
             .rank = upto(s, 10),
             .extents = {-1, 3, (int64_t)upto(s, 4) - 2, 1, -1, 2, 2, 2}},
            {.dtype = LFUSER_F32, .tensor = true, .rank = 1, .extents = {-1}, .names = {upto(s, 2) ? "n" : NULL}}};
        checked(s, lfuser_builder_params(*b, upto(s, 3), (const char *[]){"x", upto(s, 8) ? "y" : "x"}, types, v));
        return;
    }
    static const char *const ops[] = {"add",     "sum",    "softmax", "reshape", "select", "item",
                                      "nothing", "matmul", "cat",     "iota",    "size",   "cast"};
    lfuser_operand items[2] = {{.kind = LFUSER_OPERAND_INT, .integer = (int64_t)upto(s, 5) - 1},
                               {.kind = LFUSER_OPERAND_VALUE, .value = v[upto(s, SLOTS)]}},
                   operands[3] = {{0}};
    if (!items[1].value) items[1].kind = LFUSER_OPERAND_NONE;
    size_t n = upto(s, 4), n_results = 0;
    for (size_t k = 0; k < n; k++) {
        operands[k] = (lfuser_operand){.kind = (lfuser_operand_kind)upto(s, 6),
                                       .value = v[upto(s, SLOTS)],
                                       .integer = (int64_t)upto(s, 5) - 1,
                                       .number = upto(s, 5) * 0.5,
                                       .items = items,
                                       .n_items = upto(s, 3)};
        if (operands[k].kind == LFUSER_OPERAND_VALUE && !operands[k].value) operands[k].kind = LFUSER_OPERAND_NONE;
    }
    lfuser_attribute attribute = {.name = (const char *[]){"axis", "axes", "dtype", "keepdim", "odd"}[upto(s, 5)],
                                  .operand = {.kind = (lfuser_operand_kind)(2 + upto(s, 3)), .integer = upto(s, 3)},
                                  .word = upto(s, 3) ? NULL : "f32"};
    lfuser_value *results[2] = {NULL, NULL}, *returned[2] = {v[upto(s, SLOTS)], v[upto(s, SLOTS)]};
    lfuser_fusion **f = &PICK(s, fusions);
    switch (upto(s, 8)) {
    case 0: lfuser_builder_destroy(*b), note_end(s, BUILDER, *b), *b = NULL; break;
    case 1:
        if (returned[0]) checked(s, lfuser_builder_assert(*b, returned[0], "message"));
        break;
    case 2: {
        size_t count = upto(s, 3);
        if ((count > 0 && !returned[0]) || (count > 1 && !returned[1])) break;
        lfuser_fusion_destroy(*f);
        note_end(s, FUSION, *f);
        *f = NULL;
        if (!checked(s, lfuser_builder_return(*b, count, returned,
                                              upto(s, 2) ? (const char *[]){upto(s, 2) ? "y" : NULL, NULL} : NULL, f)))
            note_end(s, BUILDER, *b), *b = NULL;
        break;
    }
    default:
        if (!checked(s, lfuser_builder_op(*b, ops[upto(s, sizeof ops / sizeof *ops)], operands, n, &attribute, upto(s, 2),
                                          results, &n_results)))
            v[upto(s, SLOTS)] = results[0];
    }
}

static void call_memory(state *s) {
    void *p;
    char host[64] = {0};
    lfuser_stream *own = PICK(s, streams), *stream = own ? own : s->home;
    size_t bytes = upto(s, 65);
    if (checked(s, lfuser_memory_alloc(stream, upto(s, 16) ? bytes : (size_t)1 << 62, &p))) return;
    checked(s, lfuser_memory_upload(stream, p, host, bytes));
    checked(s, lfuser_memory_download(stream, host, p, bytes));
    checked(s, lfuser_stream_synchronize(stream)); // host is ours only so long
    lfuser_memory_free(stream, p);
}

// ---- a sequence -----------------------------------------------------------------------------------------------------------------

static void *count_alloc(void *self, size_t bytes) {
    void *p = bytes < (size_t)1 << 32 ? malloc(bytes) : NULL;
    ((state *)self)->live += p != NULL;
    return p;
}
static void *count_resize(void *self, void *block, size_t bytes) {
    void *p = bytes < (size_t)1 << 32 ? realloc(block, bytes) : NULL;
    ((state *)self)->live += p && !block;
    return p;
}
static void count_release(void *self, void *block) {
    ((state *)self)->live -= block != NULL;
    free(block);
}

static void destroy_all(state *s) {
    unsigned order = byte(s);
    for (unsigned k = 0; k < 8; k++)
        for (unsigned i = 0; i < SLOTS; i++) switch ((k + order) % 8) {
            case 0: lfuser_device_close(s->devices[i]); break;
            case 1: lfuser_fusion_destroy(s->fusions[i]); break;
            case 2: lfuser_executable_destroy(s->executables[i]); break;
            case 3: lfuser_pending_release(s->pendings[i]); break;
            case 4: lfuser_completion_release(s->completions[i]); break;
            case 5:
                if (s->tensors[i]) s->tensors[i]->deleter(s->tensors[i]);
                break;
            case 6: lfuser_builder_destroy(s->builders[i]); break;
            default: lfuser_stream_destroy(s->streams[i]);
            }
    lfuser_memory_free(s->home, s->memory);
    lfuser_stream_destroy(s->home);
    lfuser_device_close(s->home_device);
    lfuser_context_destroy(s->context);
}

static uint64_t total_calls, total_refused;

static bool one_input(const uint8_t *data, size_t size) {
    static void (*const calls[])(state *) = {call_device,  call_stream,  call_fusion, call_fusion, call_compile,
                                             call_compile, call_run,     call_run,    call_run,    call_results,
                                             call_builder, call_builder, call_memory};
    state *s = calloc(1, sizeof *s);
    *s = (state){.bytes = data, .left = size};
    lfuser_context_options options = {
        .size = sizeof options, .allocator = {s, count_alloc, count_resize, count_release}, .threads = 2};
    CHECK(!checked(s, lfuser_context_create(&options, &s->context)), "no context\n");
    CHECK(!checked(s, lfuser_device_open(s->context, "cpu", &s->home_device)), "no device\n");
    CHECK(!checked(s, lfuser_stream_create(s->home_device, &s->home)), "no stream\n");
    CHECK(!checked(s, lfuser_memory_alloc(s->home, BUFFER, &s->memory)), "no memory\n");
    s->place = (lfuser_dl_device){1, 0};
    char *zero = calloc(1, BUFFER);
    checked(s, lfuser_memory_upload(s->home, s->memory, zero, BUFFER));
    checked(s, lfuser_stream_synchronize(s->home));
    free(zero);
    while (s->left) {
        calls[upto(s, sizeof calls / sizeof *calls)](s);
        use_ended(s);
    }
    total_calls += s->calls;
    total_refused += s->refused;
    destroy_all(s);
    CHECK(s->live == 0, "%ld blocks are left\n", (long)s->live);
    bool all_done = !s->refused;
    free(s);
    return all_done;
}

static void report(void) {
    printf("%llu calls, %llu refused\n", (unsigned long long)total_calls, (unsigned long long)total_refused);
}

const lf_fuzz_description lf_fuzz_target = {.name = "fuzz_api_calls",
                                            .suffix = "bin",
                                            .corpus = "test/fuzz/corpus/api_calls",
                                            .one = one_input,
                                            .fresh = 1024,
                                            .report = report};
