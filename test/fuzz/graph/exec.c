// See graph.h: running a program on the interpreter and on the device, and comparing.
#include "test/fuzz/graph/graph.h"
#include "ir/build.h"
#include "parse/parse.h"
#include "test/support/api/oracle.h"
#include <math.h>
#include <stdarg.h>

static test_env opened[MOST_MACHINES];
machine machines[MOST_MACHINES];
unsigned n_machines, n_devices;

// ---- machines --------------------------------------------------------------------------------------------------------------------

static void must(lfuser_status s, const char *what) {
    if (!s) return;
    fprintf(stderr, "%s: %s: %s\n", what, lfuser_code_name(lfuser_status_code(s)), lfuser_status_message(s));
    exit(3);
}

bool machines_list(const char *devices) {
    static char names[256];
    if (strlen(devices) >= sizeof names) return false;
    strcpy(names, devices);
    n_machines = n_devices = 0;
    char *rest = NULL;
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest), n_devices++)
        for (unsigned i = 0; i < (strcmp(name, "cpu") ? 1 : 2); i++) {
            if (n_machines == MOST_MACHINES) return false;
            machines[n_machines++] = (machine){name, i ? 3 : 1, n_devices};
        }
    return n_devices > 0;
}

// Where tensors of the device lie: where it puts its own.
static lfuser_dl_device place_of(test_env *e) {
    static const char text[] = "fusion @p() { %a = iota 1, 0, 1 return %a }";
    lfuser_fusion *f;
    lfuser_executable *x;
    lfuser_output out = {0};
    must(lfuser_fusion_parse(e->context, NULL, text, sizeof text - 1, NULL, &f), "place");
    must(lfuser_fusion_compile(f, e->device, NULL, &x), "place");
    must(lfuser_run(x, e->stream, NULL, 0, &out, 1, NULL), "place");
    lfuser_dl_device place = out.allocated->tensor.device;
    out.allocated->deleter(out.allocated);
    lfuser_executable_destroy(x);
    lfuser_fusion_destroy(f);
    return place;
}

static int open_machine(unsigned i) {
    test_env *e = &opened[i];
    const machine *m = &machines[i];
    lfuser_context_options options = {.size = sizeof options, .threads = m->threads};
    must(lfuser_context_create(&options, &e->context), "context");
    lfuser_status s = lfuser_device_open(e->context, m->device, &e->device);
    if (lfuser_status_code(s) == LFUSER_UNAVAILABLE) {
        printf("skipped: no device '%s': %s\n", m->device, lfuser_status_message(s));
        return 77;
    }
    must(s, m->device);
    must(lfuser_stream_create(e->device, &e->stream), "stream");
    e->place = place_of(e);
    return 0;
}

int machines_open(int only) {
    for (unsigned i = 0; i < n_machines; i++) {
        if (only >= 0 && i != (unsigned)only % n_machines) continue;
        int status = open_machine(i);
        if (status) return status;
    }
    return 0;
}

static void forget_executable(unsigned m);

void machines_close(void) {
    for (unsigned i = 0; i < n_machines; i++) {
        if (!opened[i].context) continue;
        forget_executable(i);
        lfuser_stream_destroy(opened[i].stream);
        lfuser_device_close(opened[i].device);
        lfuser_context_destroy(opened[i].context);
    }
}

void print_stage_times(void) {
    for (unsigned i = 0; i < n_machines && opened[i].context; i++)
        for (size_t k = 0; k < lfuser_context_n_stage_times(); k++) {
            lfuser_stage_time t = {.size = sizeof t};
            must(lfuser_context_stage_time(opened[i].context, k, &t), "stage time");
            if (t.times)
                printf("%-8s %u %-26s %8llu times %10.1f ms\n", machines[i].device, machines[i].threads, t.name,
                       (unsigned long long)t.times, (double)t.ns * 1e-6);
        }
}

// ---- one run ---------------------------------------------------------------------------------------------------------------------

outcome differs(case_run *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->what, c->room, format, args);
    va_end(args);
    return DIFFERS;
}

static bool parse_case(case_run *c) {
    lf_graph **graphs;
    size_t n;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", c->text, strlen(c->text), false, &graphs, &n);
    if (s) {
        snprintf(c->what, c->room, "%s", lf_status_message(s));
        lf_status_destroy(s);
        return false;
    }
    c->graph = graphs[0];
    graphs[0] = NULL;
    lf_parse_release(&lf_system_allocator, graphs, n);
    return true;
}

// A signalling NaN now and then: what a bitcast may bring, and fills do not.
static void signalling(lfuser_dtype d, uint64_t *seed, void *element) {
    static const uint64_t bits[] = {
        [LFUSER_F16] = 0x7d01, [LFUSER_BF16] = 0xff81, [LFUSER_F32] = 0x7f800001, [LFUSER_F64] = 0xfff0000000000001};
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    if (d >= LFUSER_F16 && d <= LFUSER_F64 && *seed >> 59 == 0) memcpy(element, &bits[d], lfuser_dtype_bytes(d));
}

typedef struct filling {
    const value *v;
    uint64_t seed, signal;
    unsigned bytes;
} filling;
static void fill_one(void *context, int64_t number, unsigned char *element) {
    filling *f = context;
    if (f->v->data) {
        memcpy(element, (const char *)f->v->data + number * f->bytes, f->bytes);
        return;
    }
    fill_element((lfuser_dtype)f->v->dtype, f->v->fill, &f->seed, element);
    if (f->v->fill == FILL_EDGES) signalling((lfuser_dtype)f->v->dtype, &f->signal, element);
}

static void make_argument(case_run *c, unsigned i, bool upload) {
    const value *v = &c->p->values[c->params[i]];
    lfuser_dtype d = (lfuser_dtype)v->dtype;
    filling f = {v, v->seed, v->seed, lfuser_dtype_bytes(d)};
    if (!v->tensor || v->host) {
        c->arguments[i] = (lfuser_argument){.kind = v->host ? LFUSER_HOST_TENSOR : LFUSER_SCALAR, .dtype = d};
        if (v->extent)
            c->arguments[i].value.i64 = v->number;
        else
            fill_one(&f, 0, (unsigned char *)&c->arguments[i].value);
        c->arrays[i] = (lf_array){.dtype = v->dtype, .tensor = v->tensor, .data = &c->arguments[i].value};
        return;
    }
    layout where = (layout)((v->layout + c->v->layouts * (i + 1)) % N_LAYOUTS);
    if (where == LAYOUT_REPEATED && (v->overwritten || v->data)) where = LAYOUT_GAPPED;
    tensor_init(&c->in[i], d, v->rank, v->shape, where);
    tensor_each(&c->in[i], fill_one, &f);
    if (upload) tensor_upload(&c->in[i]);
    c->arguments[i] = tensor_argument(&c->in[i].view);
    lf_array *array = &c->arrays[i];
    *array = (lf_array){.dtype = v->dtype,
                        .tensor = true,
                        .rank = (uint8_t)v->rank,
                        .data = c->in[i].host + c->in[i].first * c->in[i].bytes};
    memcpy(array->shape, c->in[i].shape, sizeof array->shape);
    memcpy(array->strides, c->in[i].strides, sizeof array->strides);
}

void make_arguments(case_run *c, bool upload) {
    for (unsigned i = 0; i < c->n_params; i++) make_argument(c, i, upload);
}

void free_arguments(case_run *c) {
    for (unsigned i = 0; i < c->n_params; i++) {
        if (c->in[i].host) tensor_finish(&c->in[i]);
        free(c->kept[i]);
    }
}

void *parameter_data(const value *v) {
    test_tensor t;
    unsigned bytes = lf_dtype_bytes(v->dtype);
    filling f = {v, v->seed, v->seed, bytes};
    if (!v->tensor || v->host) {
        void *data = calloc(1, 16);
        if (v->extent)
            memcpy(data, &v->number, 8);
        else
            fill_one(&f, 0, data);
        return data;
    }
    tensor_init(&t, (lfuser_dtype)v->dtype, v->rank, v->shape, v->layout);
    tensor_each(&t, fill_one, &f);
    int64_t n = tensor_numel(&t);
    char *data = malloc((size_t)n * bytes + 1);
    for (int64_t i = 0; i < n; i++) memcpy(data + i * bytes, tensor_element(&t, i), bytes);
    tensor_finish(&t);
    return data;
}

// ---- comparison --------------------------------------------------------------------------------------------------------------------

double real_of(lf_dtype d, const void *element) {
    uint16_t h;
    float f;
    double x;
    switch (d) {
    case LF_F16:
    case LF_BF16: return memcpy(&h, element, 2), (double)lf_half_to_f32(d, h);
    case LF_F32:
    case LF_C64: return memcpy(&f, element, 4), (double)f;
    default: return memcpy(&x, element, 8), x;
    }
}

typedef struct comparing {
    const lf_array *want;
    judge *judge; // NULL: equal bits
    unsigned output;
    int64_t first;
    uint64_t count;
    lf_scalar got;
} comparing;
static void compare_one(void *context, int64_t number, unsigned char *element) {
    comparing *k = context;
    lf_dtype d = k->want->dtype;
    unsigned bytes = lf_dtype_bytes(d);
    const char *want = (const char *)k->want->data + number * bytes;
    if (same_value((lfuser_dtype)d, element, want)) return;
    if (k->judge && judge_allows(k->judge, k->output, d, number, element, want)) return;
    if (!k->count++) {
        k->first = number;
        memcpy(&k->got, element, bytes);
    }
}

static comparing comparing_of(const case_run *c, unsigned k, const lf_array *want) {
    return (comparing){.want = want, .output = k, .judge = judge_binds(c->judge, k) ? NULL : c->judge};
}

static outcome judged(case_run *c, unsigned k, const comparing *r) {
    if (!r->count) return SAME;
    lf_scalar want = {{0}};
    char got_text[96], want_text[96];
    memcpy(&want, (const char *)r->want->data + r->first * lf_dtype_bytes(r->want->dtype), lf_dtype_bytes(r->want->dtype));
    lf_scalar_print(got_text, sizeof got_text, r->want->dtype, &r->got);
    lf_scalar_print(want_text, sizeof want_text, r->want->dtype, &want);
    return differs(c, "output %u (%s: %s): %llu differ, first element %lld is %s (%llx), the interpreter has %s (%llx)", k,
                   c->p->values[c->outputs[k]].name, lf_dtype_name(r->want->dtype), (unsigned long long)r->count,
                   (long long)r->first, got_text, (unsigned long long)r->got.word[0], want_text,
                   (unsigned long long)want.word[0]);
}

static outcome compare_tensor(case_run *c, unsigned k, test_tensor *t, const lf_array *want) {
    comparing r = comparing_of(c, k, want);
    if (t->rank != want->rank || memcmp(t->shape, want->shape, want->rank * sizeof *t->shape) != 0 ||
        t->dtype != (lfuser_dtype)want->dtype)
        return differs(c, "output %u: another shape or dtype than the interpreter's", k);
    tensor_each(t, compare_one, &r);
    if (r.judge && board) COUNT(board, bounded, tensor_numel(t));
    return judged(c, k, &r);
}

static outcome compare_output(case_run *c, unsigned k, const lf_array *want) {
    lfuser_output *o = &c->results[k];
    if (o->kind != LFUSER_TENSOR) {
        lfuser_scalar got = o->value;
        if (o->kind == LFUSER_PENDING) must(lfuser_pending_get(o->pending, UINT64_MAX, &got), "pending");
        comparing r = comparing_of(c, k, want);
        compare_one(&r, 0, (unsigned char *)&got);
        return judged(c, k, &r);
    }
    if (c->into[k] >= 0 || o->tensor) {
        test_tensor *t = &c->out[k];
        for (unsigned i = 0; c->into[k] >= 0 && i < c->n_params; i++)
            if (c->params[i] == c->into[k]) t = &c->in[i];
        tensor_download(t);
        return compare_tensor(c, k, t, want);
    }
    if (!o->allocated) return differs(c, "output %u: nothing was allocated", k);
    const lfuser_tensor *t = &o->allocated->tensor;
    test_tensor copy;
    tensor_init(&copy, lfuser_dtype_of(t->dtype), (uint32_t)t->rank, t->shape, LAYOUT_DENSE);
    size_t bytes = (size_t)tensor_numel(&copy) * copy.bytes;
    if (bytes)
        must(
            lfuser_memory_download(env.stream, copy.host + copy.first * copy.bytes, (char *)t->data + t->byte_offset, bytes),
            "download");
    must(lfuser_stream_synchronize(env.stream), "synchronize");
    outcome r = compare_tensor(c, k, &copy, want);
    tensor_finish(&copy);
    return r;
}

// ---- running ---------------------------------------------------------------------------------------------------------------------

static void release_results(case_run *c) {
    for (unsigned k = 0; k < c->n_outputs; k++) {
        lfuser_output *o = &c->results[k];
        lfuser_pending_release(o->pending);
        if (o->allocated) o->allocated->deleter(o->allocated);
        if (c->out[k].host) tensor_finish(&c->out[k]);
        c->results[k] = (lfuser_output){0};
    }
}

static void give_outputs(case_run *c, const lf_interp_result *want) {
    for (unsigned k = 0; k < c->n_outputs; k++) {
        const lf_array *w = &want->outputs[k];
        const lf_value *v = c->graph->outputs[k].value;
        if (v->where != LF_ON_DEVICE || !w->tensor || c->into[k] >= 0) continue;
        layout where = (layout)((k + c->v->layouts) % N_LAYOUTS);
        tensor_init(&c->out[k], (lfuser_dtype)w->dtype, w->rank, w->shape, where == LAYOUT_REPEATED ? LAYOUT_GAPPED : where);
        tensor_upload(&c->out[k]);
        c->results[k].tensor = &c->out[k].view;
    }
}

static outcome compare_runs(case_run *c, lfuser_executable *e) {
    lf_interp_result *want;
    lf_status s = lf_interp_run(c->graph, c->arrays, c->n_params, &lf_system_allocator, &want);
    if (!s && c->v->given) give_outputs(c, want);
    lfuser_completion *completion = NULL;
    lfuser_status got = lfuser_run(e, env.stream, c->arguments, c->n_params, c->results, c->n_outputs, &completion);
    outcome r = SAME;
    if (s || got) {
        r = FAILED_CHECK;
        if ((int)lf_status_code(s) != (int)lfuser_status_code(got))
            r = differs(c, "interpreter: %s; device: %s", s ? lf_status_message(s) : "fine",
                        got ? lfuser_status_message(got) : "fine");
    } else {
        lfuser_status ended = lfuser_completion_wait(completion, UINT64_MAX);
        if (lfuser_status_code(ended) != (want->index_error ? LFUSER_INDEX_ERROR : LFUSER_OK) &&
            ((ended && lfuser_status_code(ended) != LFUSER_INDEX_ERROR) || !judge_index_error(c->judge, want->index_error)))
            r = differs(c, "interpreter: %s; completion: %s", want->index_error ? want->index_error : "no index error",
                        ended ? lfuser_status_message(ended) : "fine");
        lfuser_status_destroy(ended);
        for (unsigned k = 0; k < c->n_outputs && r == SAME; k++) r = compare_output(c, k, &want->outputs[k]);
    }
    lfuser_completion_release(completion);
    must(lfuser_stream_synchronize(env.stream), "synchronize");
    lf_status_destroy(s);
    lfuser_status_destroy(got);
    lf_interp_result_destroy(want);
    release_results(c);
    return r;
}

// The executable of the last text on each machine: a variant that differs in layouts alone compiles no more than its kernel classes.
static struct {
    char *text;
    uint32_t debug;
    bool fast, never_wait;
    lfuser_executable *executable;
} last[MOST_MACHINES];

static void forget_executable(unsigned m) {
    lfuser_executable_destroy(last[m].executable);
    free(last[m].text);
    last[m].executable = NULL;
    last[m].text = NULL;
}

static lfuser_status compiled(case_run *c) {
    const variant *v = c->v;
    unsigned m = v->machine % n_machines;
    if (last[m].text && last[m].debug == v->debug && last[m].fast == v->fast && last[m].never_wait == v->never_wait &&
        !strcmp(last[m].text, c->text))
        return NULL;
    lfuser_fusion *fusion = NULL;
    char words[256];
    lfuser_compile_options options = {.size = sizeof options,
                                      .math = v->fast ? LFUSER_MATH_FAST : LFUSER_MATH_EXACT,
                                      .wait = v->never_wait ? LFUSER_NEVER_WAIT : LFUSER_WAIT,
                                      .debug = debug_words(v->debug, words, sizeof words)};
    forget_executable(m);
    lfuser_status s = lfuser_fusion_parse(env.context, "t.lf", c->text, strlen(c->text), NULL, &fusion);
    if (!s) s = lfuser_fusion_compile(fusion, env.device, &options, &last[m].executable);
    lfuser_fusion_destroy(fusion);
    if (s) return s;
    last[m].debug = v->debug;
    last[m].fast = v->fast;
    last[m].never_wait = v->never_wait;
    last[m].text = strdup(c->text);
    return NULL;
}

// The judge runs the program again after its parameters have been overwritten.
static void keep_overwritten(case_run *c) {
    for (unsigned i = 0; i < c->n_params; i++) {
        const test_tensor *t = &c->in[i];
        if (!t->host || !c->p->values[c->params[i]].overwritten) continue;
        size_t bytes = (size_t)t->elements * t->bytes;
        c->kept[i] = memcpy(malloc(bytes), t->host, bytes);
        c->arrays[i].data = (char *)c->kept[i] + t->first * t->bytes;
    }
}

static outcome run_text(case_run *c) {
    lfuser_status s = compiled(c);
    lfuser_executable *e = last[c->v->machine % n_machines].executable;
    if (!s && c->v->prepare) s = lfuser_executable_prepare(e);
    outcome r = s ? differs(c, "does not compile: %s", lfuser_status_message(s)) : SAME;
    lfuser_status_destroy(s);
    if (r != SAME) return r;
    make_arguments(c, true);
    keep_overwritten(c);
    c->judge = judge_create(c);
    r = compare_runs(c, e);
    judge_destroy(c->judge);
    free_arguments(c);
    return r;
}

bool begin_case(case_run *c, const program *p, const variant *v, char *what, size_t room) {
    *c = (case_run){.p = p, .v = v, .what = what, .room = room};
    c->text = program_text(p, v->dialect, c->used);
    for (int i = 0; i < p->n_values; i++)
        if (c->used[i] && p->values[i].line < 0) c->params[c->n_params++] = i;
    c->n_outputs = (unsigned)program_outputs(p, v->dialect, c->outputs, c->into);
    env = opened[v->machine % n_machines];
    return parse_case(c);
}

void end_case(case_run *c) {
    lf_graph_destroy(c->graph);
    free(c->text);
    free(c);
}

outcome run_variant(const program *p, const variant *v, char *what, size_t room) {
    case_run *c = malloc(sizeof *c);
    *what = 0;
    outcome r = REFUSED;
    if (begin_case(c, p, v, what, room))
        r = run_text(c);
    else if (!v->dialect.symbolic)
        r = DIFFERS;
    end_case(c);
    return r;
}

bool interpret_all(const program *p, void **out_data) {
    char what[512];
    variant v = {.dialect = {false, true}};
    case_run *c = malloc(sizeof *c);
    memset(out_data, 0, MOST_VALUES * sizeof *out_data);
    bool fine = begin_case(c, p, &v, what, sizeof what);
    lf_interp_result *result = NULL;
    if (fine) {
        make_arguments(c, false);
        lf_status s = lf_interp_run(c->graph, c->arrays, c->n_params, &lf_system_allocator, &result);
        fine = !s;
        lf_status_destroy(s);
        for (unsigned k = 0; fine && k < c->n_outputs; k++) {
            const lf_array *a = &result->outputs[k];
            size_t bytes = lf_dtype_bytes(a->dtype);
            for (unsigned x = 0; x < a->rank; x++) bytes *= (size_t)a->shape[x];
            if (out_data[c->outputs[k]]) continue;
            out_data[c->outputs[k]] = malloc(bytes ? bytes : 1);
            if (bytes) memcpy(out_data[c->outputs[k]], a->data, bytes);
        }
        lf_interp_result_destroy(result);
        free_arguments(c);
    }
    end_case(c);
    return fine;
}
