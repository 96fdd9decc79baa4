// See graph.h: running a program on the interpreter and on the device, and comparing.
#include "test/fuzz/graph/graph.h"
#include "ir/build.h"
#include "parse/parse.h"
#include "test/support/api/oracle.h"
#include <math.h>
#include <stdarg.h>

enum { MACHINES = 2, ROOM = MOST_OUTPUTS + MOST_VALUES };
static test_env machines[MACHINES];

// ---- machines --------------------------------------------------------------------------------------------------------------------

static void must(lfuser_status s, const char *what) {
    if (!s) return;
    fprintf(stderr, "%s: %s: %s\n", what, lfuser_code_name(lfuser_status_code(s)), lfuser_status_message(s));
    exit(3);
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

int machines_open(const char *device) {
    for (unsigned i = 0; i < MACHINES; i++) {
        test_env *e = &machines[i];
        lfuser_context_options options = {.size = sizeof options, .threads = i ? 3 : 1};
        must(lfuser_context_create(&options, &e->context), "context");
        lfuser_status s = lfuser_device_open(e->context, device, &e->device);
        if (lfuser_status_code(s) == LFUSER_UNAVAILABLE) {
            printf("skipped: no device '%s': %s\n", device, lfuser_status_message(s));
            return 77;
        }
        must(s, device);
        must(lfuser_stream_create(e->device, &e->stream), "stream");
        e->place = place_of(e);
    }
    return 0;
}

static void forget_executable(void);

void machines_close(void) {
    forget_executable();
    for (unsigned i = 0; i < MACHINES; i++) {
        lfuser_stream_destroy(machines[i].stream);
        lfuser_device_close(machines[i].device);
        lfuser_context_destroy(machines[i].context);
    }
}

// ---- one run ---------------------------------------------------------------------------------------------------------------------

typedef struct case_run {
    const program *p;
    const variant *v;
    char *text, *what;
    size_t room;
    bool used[MOST_VALUES];
    lf_graph *graph;
    int params[MOST_ARGUMENTS], outputs[ROOM], into[ROOM];
    unsigned n_params, n_outputs;
    test_tensor in[MOST_ARGUMENTS], out[ROOM];
    lfuser_argument arguments[MOST_ARGUMENTS];
    lf_array arrays[MOST_ARGUMENTS];
    lfuser_output results[ROOM];
} case_run;

__attribute__((format(printf, 2, 3))) static outcome differs(case_run *c, const char *format, ...) {
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

static void make_argument(case_run *c, unsigned i) {
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
    tensor_upload(&c->in[i]);
    c->arguments[i] = tensor_argument(&c->in[i].view);
    lf_array *array = &c->arrays[i];
    *array = (lf_array){.dtype = v->dtype,
                        .tensor = true,
                        .rank = (uint8_t)v->rank,
                        .data = c->in[i].host + c->in[i].first * c->in[i].bytes};
    memcpy(array->shape, c->in[i].shape, sizeof array->shape);
    memcpy(array->strides, c->in[i].strides, sizeof array->strides);
}

// ---- comparison --------------------------------------------------------------------------------------------------------------------

static double real_of(lf_dtype d, const void *element) {
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

// Float scans may add in any order: within a bound relative to the largest size on the way, which the extremes of the result
// stand for unless terms cancel; not finite on either side is left alone.
static bool within_bound(lf_dtype d, const void *a, const void *b, double size) {
    unsigned parts = lf_is_complex(d) ? 2 : 1, bytes = lf_dtype_bytes(d) / parts;
    double unit = d == LF_BF16 ? 0x1p-7 : d == LF_F16 ? 0x1p-10 : d == LF_F32 || d == LF_C64 ? 0x1p-12 : 0x1p-40;
    for (unsigned k = 0; k < parts; k++) {
        double x = real_of(d, (const char *)a + k * bytes), y = real_of(d, (const char *)b + k * bytes);
        if (isfinite(x) && isfinite(y) && fabs(x - y) > unit * fmax(size, 1)) return false;
    }
    return true;
}

typedef struct comparing {
    const lf_array *want;
    double size; // > 0: within a bound
    bool bounded;
    int64_t first;
    uint64_t count;
    lf_scalar got;
} comparing;
static void compare_one(void *context, int64_t number, unsigned char *element) {
    comparing *k = context;
    unsigned bytes = lf_dtype_bytes(k->want->dtype);
    const char *want = (const char *)k->want->data + number * bytes;
    if (same_value((lfuser_dtype)k->want->dtype, element, want)) return;
    if (k->bounded && within_bound(k->want->dtype, element, want, k->size)) return;
    if (!k->count++) {
        k->first = number;
        memcpy(&k->got, element, bytes);
    }
}

static double largest(const lf_array *x) {
    double size = 0;
    if (!lf_is_float(x->dtype) && !lf_is_complex(x->dtype)) return 0;
    int64_t n = lf_is_complex(x->dtype) ? 2 : 1;
    for (unsigned a = 0; a < x->rank; a++) n *= x->shape[a];
    unsigned bytes = lf_dtype_bytes(x->dtype) / (lf_is_complex(x->dtype) ? 2 : 1);
    for (int64_t i = 0; i < n; i++) {
        double v = fabs(real_of(x->dtype, (const char *)x->data + i * bytes));
        if (isfinite(v) && v > size) size = v;
    }
    return size;
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
    bool bounded = c->p->values[c->outputs[k]].free_order;
    comparing r = {.want = want, .bounded = bounded, .size = bounded ? largest(want) : 0};
    if (t->rank != want->rank || memcmp(t->shape, want->shape, want->rank * sizeof *t->shape) != 0 ||
        t->dtype != (lfuser_dtype)want->dtype)
        return differs(c, "output %u: another shape or dtype than the interpreter's", k);
    tensor_each(t, compare_one, &r);
    return judged(c, k, &r);
}

static outcome compare_output(case_run *c, unsigned k, const lf_array *want) {
    lfuser_output *o = &c->results[k];
    if (o->kind != LFUSER_TENSOR) {
        lfuser_scalar got = o->value;
        if (o->kind == LFUSER_PENDING) must(lfuser_pending_get(o->pending, UINT64_MAX, &got), "pending");
        comparing r = {.want = want};
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
        if (lfuser_status_code(ended) != (want->index_error ? LFUSER_INDEX_ERROR : LFUSER_OK))
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

// The executable of the last text and machine: a variant that differs in layouts alone compiles no more than its kernel classes.
static struct {
    char *text;
    unsigned machine;
    lfuser_executable *executable;
} last;

static void forget_executable(void) {
    lfuser_executable_destroy(last.executable);
    free(last.text);
    last.executable = NULL;
    last.text = NULL;
}

static lfuser_status compiled(case_run *c) {
    unsigned machine = c->v->machine % MACHINES;
    if (last.text && last.machine == machine && !strcmp(last.text, c->text)) return NULL;
    lfuser_fusion *fusion = NULL;
    forget_executable();
    lfuser_status s = lfuser_fusion_parse(env.context, "t.lf", c->text, strlen(c->text), NULL, &fusion);
    if (!s) s = lfuser_fusion_compile(fusion, env.device, NULL, &last.executable);
    lfuser_fusion_destroy(fusion);
    if (s) return s;
    last.machine = machine;
    last.text = strdup(c->text);
    return NULL;
}

static outcome run_text(case_run *c) {
    lfuser_status s = compiled(c);
    if (!s && c->v->prepare) s = lfuser_executable_prepare(last.executable);
    outcome r = s ? differs(c, "does not compile: %s", lfuser_status_message(s)) : SAME;
    lfuser_status_destroy(s);
    if (r != SAME) return r;
    for (unsigned i = 0; i < c->n_params; i++) make_argument(c, i);
    r = compare_runs(c, last.executable);
    for (unsigned i = 0; i < c->n_params; i++)
        if (c->in[i].host) tensor_finish(&c->in[i]);
    return r;
}

static bool begin_case(case_run *c, const program *p, const variant *v, char *what, size_t room) {
    *c = (case_run){.p = p, .v = v, .what = what, .room = room};
    c->text = program_text(p, v->dialect, c->used);
    for (int i = 0; i < p->n_values; i++)
        if (c->used[i] && p->values[i].line < 0) c->params[c->n_params++] = i;
    c->n_outputs = (unsigned)program_outputs(p, v->dialect, c->outputs, c->into);
    env = machines[v->machine % MACHINES];
    return parse_case(c);
}

static void end_case(case_run *c) {
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

const char *variant_name(const variant *v, char *text, size_t room) {
    snprintf(text, room, "%s%s%s%s layouts+%u machine %u", v->dialect.symbolic ? "symbolic " : "",
             v->dialect.all ? "all-values " : "", v->given ? "given " : "", v->prepare ? "prepared " : "", v->layouts,
             v->machine);
    return text;
}

bool interpret_all(const program *p, void **out_data) {
    char what[512];
    variant v = {.dialect = {false, true}};
    case_run *c = malloc(sizeof *c);
    memset(out_data, 0, MOST_VALUES * sizeof *out_data);
    bool fine = begin_case(c, p, &v, what, sizeof what);
    lf_interp_result *result = NULL;
    if (fine) {
        for (unsigned i = 0; i < c->n_params; i++) make_argument(c, i);
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
        for (unsigned i = 0; i < c->n_params; i++)
            if (c->in[i].host) tensor_finish(&c->in[i]);
    }
    end_case(c);
    return fine;
}

// ---- cases for other judges --------------------------------------------------------------------------------------------------------

static void put_base64(FILE *to, const unsigned char *data, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t w = (uint32_t)data[i] << 16 | (i + 1 < n ? (uint32_t)data[i + 1] << 8 : 0) | (i + 2 < n ? data[i + 2] : 0);
        fputc(digits[w >> 18], to);
        fputc(digits[w >> 12 & 63], to);
        fputc(i + 1 < n ? digits[w >> 6 & 63] : '=', to);
        fputc(i + 2 < n ? digits[w & 63] : '=', to);
    }
}

static void put_array(FILE *to, const lf_array *a, bool first) {
    size_t bytes = lf_dtype_bytes(a->dtype);
    char text[96];
    fprintf(to, "%s{\"dtype\": \"%s\", ", first ? "" : ", ", lf_dtype_name(a->dtype));
    if (!a->tensor) {
        lf_scalar s = {{0}};
        memcpy(&s, a->data, bytes);
        lf_scalar_print(text, sizeof text, a->dtype, &s);
        bool bare = a->dtype == LF_BOOL || lf_is_integer(a->dtype);
        double x = bare ? 0 : real_of(a->dtype, a->data);
        if (!bare && isfinite(x))
            snprintf(text, sizeof text, "%.17g", x); // the exact value, not the shortest text of its dtype
        fprintf(to, "\"value\": %s%s%s}", bare ? "" : "\"", text, bare ? "" : "\"");
        return;
    }
    fprintf(to, "\"shape\": [");
    for (unsigned x = 0; x < a->rank; x++)
        bytes *= (size_t)a->shape[x], fprintf(to, "%s%lld", x ? ", " : "", (long long)a->shape[x]);
    fprintf(to, "], \"b64\": \"");
    put_base64(to, a->data, bytes);
    fprintf(to, "\"}");
}

bool write_case(const program *p, FILE *to) {
    char what[512];
    variant v = {.layouts = 0};
    case_run *c = malloc(sizeof *c);
    program dense = *p; // arguments in row-major order
    for (int i = 0; i < dense.n_values; i++) dense.values[i].layout = LAYOUT_DENSE;
    bool fine = begin_case(c, &dense, &v, what, sizeof what);
    for (unsigned k = 0; k < c->n_outputs && fine; k++) {
        const value *x = &p->values[c->outputs[k]];
        fine = !lf_is_complex(x->dtype) && !x->host && c->graph->outputs[k].value->where != LF_PENDING;
    }
    for (unsigned i = 0; i < c->n_params && fine; i++)
        fine = !lf_is_complex(p->values[c->params[i]].dtype) && !p->values[c->params[i]].host;
    if (fine) {
        lf_interp_result *result;
        for (unsigned i = 0; i < c->n_params; i++) make_argument(c, i);
        lf_status s = lf_interp_run(c->graph, c->arrays, c->n_params, &lf_system_allocator, &result);
        fine = !s && !result->index_error;
        if (fine) {
            fprintf(to, "{\"id\": \"fuzz.%llu\", \"program\": \"", (unsigned long long)p->seed);
            for (const char *t = c->text; *t; t++) *t == '\n' ? fputs("\\n", to) : fputc(*t, to);
            fprintf(to, "\", \"args\": [");
            for (unsigned i = 0; i < c->n_params; i++) put_array(to, &c->arrays[i], i == 0);
            fprintf(to, "], \"expect\": [");
            for (unsigned k = 0; k < c->n_outputs; k++) put_array(to, &result->outputs[k], k == 0);
            fprintf(to, "], \"tol\": {\"ulp\": 0}}\n");
        }
        lf_status_destroy(s);
        lf_interp_result_destroy(result);
        for (unsigned i = 0; i < c->n_params; i++)
            if (c->in[i].host) tensor_finish(&c->in[i]);
    }
    end_case(c);
    return fine;
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
