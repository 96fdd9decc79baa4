// See oracle.h.
#include "test/support/api/oracle.h"
#include "ir/build.h"
#include "parse/parse.h"

enum { MOST_VALUES = 96 };

// ---- programs ------------------------------------------------------------------------------------------------------------------

static char *expand_text(const char *text, lfuser_dtype dtype) {
    const char *name = lfuser_dtype_name(dtype), *prefix = text[0] == '(' ? "fusion @t" : "";
    size_t room = strlen(prefix) + 2 * strlen(text) * 2 + 64, n = strlen(prefix);
    char *out = malloc(room);
    memcpy(out, prefix, n);
    for (const char *c = text; *c; c++) {
        if (c[0] == '$' && c[1] == 'D') {
            memcpy(out + n, name, strlen(name));
            n += strlen(name);
            c++;
        } else {
            out[n++] = *c;
        }
    }
    out[n] = 0;
    return out;
}

bool program_open(test_program *p, const char *text, lfuser_dtype dtype) { return program_open_as(p, text, dtype, NULL); }

bool program_open_as(test_program *p, const char *text, lfuser_dtype dtype, const char *debug) {
    *p = (test_program){.text = expand_text(text, dtype)};
    lf_graph **graphs;
    size_t n;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", p->text, strlen(p->text), true, &graphs, &n);
    if (s) {
        ck_assert_msg(lf_status_code(s) == LF_INVALID_PROGRAM, "%s\n%s", p->text, lf_status_message(s));
        lf_status_destroy(s);
        program_close(p);
        return false;
    }
    p->graph = graphs[0];
    graphs[0] = NULL;
    lf_parse_release(&lf_system_allocator, graphs, n);
    lfuser_fusion *fusion = parse(p->text);
    lfuser_compile_options options = {.size = sizeof options, .sync = LFUSER_ALLOW_SYNC, .debug = debug};
    lfuser_status failed = lfuser_fusion_compile(fusion, env.device, &options, &p->executable);
    lfuser_fusion_destroy(fusion);
    ck_assert_msg(!failed, "%s\n%s", p->text, lfuser_status_message(failed));
    return true;
}

void program_close(test_program *p) {
    lfuser_executable_destroy(p->executable);
    lf_graph_destroy(p->graph);
    free(p->text);
    *p = (test_program){NULL};
}

// ---- arguments -----------------------------------------------------------------------------------------------------------------

typedef struct case_values {
    size_t n_params, n_outputs;
    test_tensor in[MOST_VALUES], out[MOST_VALUES];
    lfuser_argument arguments[MOST_VALUES];
    lfuser_output outputs[MOST_VALUES];
    lf_array arrays[MOST_VALUES]; // the arguments as the interpreter takes them
} case_values;

static int64_t extent_of(const lf_value *dim, const case_options *o) {
    int64_t known;
    if (lf_const_i64(dim, &known)) return known;
    if (dim->name && o->extents && dim->name[0] >= 'a' && dim->name[0] <= 'd') return o->extents[dim->name[0] - 'a'];
    return dim->name && !strcmp(dim->name, "m") ? 3 : dim->name && !strcmp(dim->name, "k") ? 5 : o->n;
}

static fill fill_of(const char *name) {
    return name[0] == 'i' ? FILL_INDEX : name[0] == 'p' ? FILL_PLAIN : name[0] == 's' ? FILL_SMALL : FILL_EDGES;
}

static void make_argument(case_values *v, size_t i, const lf_value *param, const case_options *o) {
    fill kind = fill_of(param->name);
    lfuser_dtype d = (lfuser_dtype)param->type.dtype;
    uint64_t seed = o->seed * 1000003 + i * 7919 + (uint64_t)o->n;
    if (!param->type.tensor || param->type.host) {
        v->arguments[i] = (lfuser_argument){.kind = param->type.host ? LFUSER_HOST_TENSOR : LFUSER_SCALAR, .dtype = d};
        fill_element(d, kind, &seed, &v->arguments[i].value);
        v->arrays[i] = (lf_array){.dtype = param->type.dtype, .tensor = param->type.tensor, .data = &v->arguments[i].value};
        return;
    }
    int64_t shape[LFUSER_MAX_RANK];
    for (unsigned a = 0; a < param->type.rank; a++) shape[a] = extent_of(param->type.dims[a], o);
    tensor_init(&v->in[i], d, param->type.rank, shape, (layout)((o->in + i * o->in_step) % N_LAYOUTS));
    tensor_fill(&v->in[i], kind, seed);
    tensor_upload(&v->in[i]);
    v->arguments[i] = tensor_argument(&v->in[i].view);
    lf_array *array = &v->arrays[i];
    *array = (lf_array){.dtype = param->type.dtype, .tensor = true, .rank = param->type.rank};
    memcpy(array->shape, shape, sizeof array->shape);
    memcpy(array->strides, v->in[i].strides, sizeof array->strides);
    array->data = v->in[i].host + v->in[i].first * v->in[i].bytes;
}

static void make_output(case_values *v, size_t k, const lf_array *want, const case_options *o) {
    layout where = (layout)((o->out + k * (o->out_step ? o->out_step : 1)) % N_LAYOUTS);
    if (where == LAYOUT_REPEATED) where = LAYOUT_GAPPED;
    tensor_init(&v->out[k], (lfuser_dtype)want->dtype, want->rank, want->shape, where);
    tensor_upload(&v->out[k]);
    v->outputs[k].tensor = &v->out[k].view;
}

// ---- comparison ----------------------------------------------------------------------------------------------------------------

static uint64_t bits_of(const void *value, unsigned bytes) {
    uint8_t b;
    uint16_t h;
    uint32_t w;
    uint64_t d;
    switch (bytes) { // of known sizes: a copy of a size known only here is a call
    case 1: return memcpy(&b, value, 1), b;
    case 2: return memcpy(&h, value, 2), h;
    case 4: return memcpy(&w, value, 4), w;
    default: return memcpy(&d, value, 8), d;
    }
}

static bool same_part(lfuser_dtype d, const void *a, const void *b) {
    static const uint64_t infinity[] = {
        [LFUSER_F16] = 0x7c00, [LFUSER_BF16] = 0x7f80, [LFUSER_F32] = 0x7f800000, [LFUSER_F64] = 0x7ff0000000000000};
    unsigned bytes = lf_dtype_bytes((lf_dtype)d);
    uint64_t x = bits_of(a, bytes), y = bits_of(b, bytes);
    if (x == y) return true;
    if (d < LFUSER_F16 || d > LFUSER_F64) return false;
    uint64_t magnitude = (1ull << (8 * bytes - 1)) - 1;
    return (x & magnitude) > infinity[d] && (y & magnitude) > infinity[d];
}

bool same_value(lfuser_dtype d, const void *a, const void *b) {
    if (d < LFUSER_C64) return same_part(d, a, b);
    lfuser_dtype part = d == LFUSER_C64 ? LFUSER_F32 : LFUSER_F64;
    unsigned bytes = lfuser_dtype_bytes(part);
    return same_part(part, a, b) && same_part(part, (const char *)a + bytes, (const char *)b + bytes);
}

static const char *describe(const test_program *p, const case_options *o, size_t k) {
    static char text[8192];
    const lf_output *out = &p->graph->outputs[k];
    static const int64_t none[4] = {0};
    const int64_t *e = o->extents ? o->extents : none;
    snprintf(
        text, sizeof text,
        "output %zu (%%%s), n = %lld, extents %lld %lld %lld %lld, inputs in layout %d + %u i, outputs %s %d, seed %llu\n%s",
        k, out->name ? out->name : "?", (long long)o->n, (long long)e[0], (long long)e[1], (long long)e[2], (long long)e[3],
        (int)o->in, o->in_step, o->given ? "given, layout" : "allocated", (int)o->out, (unsigned long long)o->seed, p->text);
    return text;
}

static bool is_close(lfuser_dtype d, const void *got, const void *want, double slack) {
    lf_scalar g = {{0}}, w = {{0}};
    memcpy(&g, got, lf_dtype_bytes((lf_dtype)d));
    memcpy(&w, want, lf_dtype_bytes((lf_dtype)d));
    double x, y;
    switch (d) {
    case LFUSER_F16:
    case LFUSER_BF16: x = (double)lf_half_to_f32((lf_dtype)d, g.u16), y = (double)lf_half_to_f32((lf_dtype)d, w.u16); break;
    case LFUSER_F32: x = (double)g.f32, y = (double)w.f32; break;
    case LFUSER_F64: x = g.f64, y = w.f64; break;
    default: return false;
    }
    double size = y < 0 ? -y : y, apart = x < y ? y - x : x - y;
    return apart <= slack * (size > 1 ? size : 1);
}

static void compare(const test_program *p, const case_options *o, size_t k, int64_t i, lfuser_dtype d, const void *got,
                    const void *want) {
    if (same_value(d, got, want) || (p->slack > 0 && is_close(d, got, want, p->slack))) return;
    lf_scalar g = {{0}}, w = {{0}};
    char g_text[96], w_text[96];
    memcpy(&g, got, lfuser_dtype_bytes(d));
    memcpy(&w, want, lfuser_dtype_bytes(d));
    lf_scalar_print(g_text, sizeof g_text, (lf_dtype)d, &g);
    lf_scalar_print(w_text, sizeof w_text, (lf_dtype)d, &w);
    ck_abort_msg("element %lld is %s (%llx), the interpreter has %s (%llx): %s", (long long)i, g_text,
                 (unsigned long long)g.word[0], w_text, (unsigned long long)w.word[0], describe(p, o, k));
}

typedef struct comparison {
    const test_program *p;
    const case_options *o;
    size_t k;
    lfuser_dtype dtype;
    const char *want;
    uint32_t bytes;
} comparison;
static void compare_one(void *context, int64_t number, unsigned char *element) {
    const comparison *c = context;
    compare(c->p, c->o, c->k, number, c->dtype, element, c->want + number * c->bytes);
}

static void check_tensor(const test_program *p, const case_options *o, size_t k, test_tensor *t, const lf_array *want) {
    tensor_each(t, compare_one, &(comparison){p, o, k, t->dtype, want->data, t->bytes});
}

static void check_allocated(const test_program *p, const case_options *o, size_t k, lfuser_managed_tensor *m,
                            const lf_array *want) {
    ck_assert_msg(m != NULL, "nothing was allocated: %s", describe(p, o, k));
    const lfuser_tensor *t = &m->tensor;
    ck_assert_msg(t->rank == want->rank && lfuser_dtype_of(t->dtype) == (lfuser_dtype)want->dtype, "rank %d: %s",
                  (int)t->rank, describe(p, o, k));
    ck_assert_int_eq(t->device.type, env.place.type);
    test_tensor copy;
    for (unsigned a = 0; a < want->rank; a++)
        ck_assert_msg(t->shape[a] == want->shape[a], "axis %u has extent %lld, the interpreter %lld: %s", a,
                      (long long)t->shape[a], (long long)want->shape[a], describe(p, o, k));
    tensor_init(&copy, (lfuser_dtype)want->dtype, want->rank, want->shape, LAYOUT_DENSE);
    ck_assert_mem_eq(t->strides, copy.strides, want->rank * sizeof *t->strides);
    size_t bytes = (size_t)tensor_numel(&copy) * copy.bytes;
    if (bytes)
        ok(lfuser_memory_download(env.stream, copy.host + copy.first * copy.bytes, (char *)t->data + t->byte_offset, bytes));
    synchronize();
    check_tensor(p, o, k, &copy, want);
    tensor_finish(&copy);
    m->deleter(m);
}

static void check_outputs(const test_program *p, const case_options *o, case_values *v, const lf_interp_result *want) {
    for (size_t k = 0; k < v->n_outputs; k++) {
        lfuser_output *out = &v->outputs[k];
        const lf_array *array = &want->outputs[k];
        ck_assert_msg(out->dtype == (lfuser_dtype)array->dtype, "dtype %s: %s", lfuser_dtype_name(out->dtype),
                      describe(p, o, k));
        if (out->kind == LFUSER_TENSOR && out->tensor) {
            tensor_download(&v->out[k]);
            check_tensor(p, o, k, &v->out[k], array);
            tensor_check_guards(&v->out[k], describe(p, o, k));
        } else if (out->kind == LFUSER_TENSOR) {
            check_allocated(p, o, k, out->allocated, array);
        } else {
            lfuser_scalar value = out->value;
            if (out->kind == LFUSER_PENDING) ok(lfuser_pending_get(out->pending, UINT64_MAX, &value));
            lfuser_pending_release(out->pending);
            compare(p, o, k, 0, out->dtype, &value, array->data);
        }
    }
}

// ---- one run -------------------------------------------------------------------------------------------------------------------

static void run_both(const test_program *p, const case_options *o, case_values *v) {
    lf_interp_result *want;
    lf_status s = lf_interp_run(p->graph, v->arrays, v->n_params, &lf_system_allocator, &want);
    lf_code expected = lf_status_code(s);
    for (size_t k = 0; k < v->n_outputs && !s; k++)
        if (o->given && p->graph->outputs[k].value->where == LF_ON_DEVICE) make_output(v, k, &want->outputs[k], o);
    lfuser_completion *completion;
    lfuser_status got =
        lfuser_run(p->executable, env.stream, v->arguments, v->n_params, v->outputs, v->n_outputs, &completion);
    if (s || got) {
        ck_assert_msg((int)lfuser_status_code(got) == (int)expected, "interpreter: %s\ndevice: %s\n%s", lf_status_message(s),
                      lfuser_status_message(got), describe(p, o, 0));
        lf_status_destroy(s);
        lfuser_status_destroy(got);
        lf_interp_result_destroy(want);
        return;
    }
    got = lfuser_completion_wait(completion, UINT64_MAX);
    ck_assert_msg(lfuser_status_code(got) == (want->index_error ? LFUSER_INDEX_ERROR : LFUSER_OK),
                  "interpreter: %s\ndevice: %s\n%s", want->index_error ? want->index_error : "no index error",
                  lfuser_status_message(got), describe(p, o, 0));
    lfuser_status_destroy(got);
    lfuser_completion_release(completion);
    check_outputs(p, o, v, want);
    for (size_t i = 0; i < v->n_params; i++) {
        if (!v->in[i].host) continue;
        unsigned char *before = malloc((size_t)v->in[i].elements * v->in[i].bytes);
        memcpy(before, v->in[i].host, (size_t)v->in[i].elements * v->in[i].bytes);
        tensor_download(&v->in[i]);
        ck_assert_msg(!memcmp(before, v->in[i].host, (size_t)v->in[i].elements * v->in[i].bytes),
                      "argument %zu was changed: %s", i, describe(p, o, 0));
        free(before);
    }
    lf_interp_result_destroy(want);
}

void check_case(const test_program *p, const case_options *o) {
    case_values *v = calloc(1, sizeof *v);
    v->n_params = p->graph->n_params;
    v->n_outputs = p->graph->n_outputs;
    ck_assert_uint_le(v->n_params, MOST_VALUES);
    ck_assert_uint_le(v->n_outputs, MOST_VALUES);
    for (size_t i = 0; i < v->n_params; i++) make_argument(v, i, p->graph->params[i], o);
    run_both(p, o, v);
    for (size_t i = 0; i < MOST_VALUES; i++) {
        if (v->in[i].host) tensor_finish(&v->in[i]);
        if (v->out[i].host) tensor_finish(&v->out[i]);
    }
    free(v);
}

void check_twice(const test_program *p, int64_t n, const int64_t *extents, unsigned i) {
    check_case(p, &(case_options){.n = n, .extents = extents, .seed = i + 1});
    check_case(p, &(case_options){.n = n,
                                  .extents = extents,
                                  .in = (layout)(1 + i % (N_LAYOUTS - 1)),
                                  .in_step = i % 3,
                                  .given = true,
                                  .out = (layout)(i % N_LAYOUTS),
                                  .seed = i + 2});
}

void check_layouts(const test_program *p, const int64_t *extents, size_t n_extents) {
    for (size_t e = 0; e < n_extents; e++) {
        if (p->brief && (extents[e] == 1 || extents[e] > 2000)) continue;
        for (unsigned in = 0; in < N_LAYOUTS; in++) {
            if (p->brief && in != LAYOUT_DENSE && in != LAYOUT_REVERSED) continue;
            if (extents[e] > 2000 && in != e % 2 && in != LAYOUT_GAPPED)
                continue; // what is special about layouts shows in smaller ones
            case_options o = {.n = extents[e],
                              .in = (layout)in,
                              .given = (in + e) % 2,
                              .out = (layout)((in + e) / 2 % N_LAYOUTS),
                              .seed = in + 1};
            check_case(p, &o);
        }
        check_case(p, &(case_options){
                          .n = extents[e], .in = LAYOUT_DENSE, .in_step = 1, .given = true, .out = LAYOUT_ODD, .seed = 99});
        if (extents[e] < 2000 && !p->brief)
            check_case(p, &(case_options){.n = extents[e],
                                          .in = LAYOUT_PERMUTED,
                                          .in_step = 5,
                                          .given = true,
                                          .out = LAYOUT_PERMUTED,
                                          .seed = 98});
    }
}
