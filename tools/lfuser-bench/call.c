// A program that is compiled and has its arguments: shapes, memory, data.
#include "bench.h"
#include <stdlib.h>
#include <string.h>

// ---- shapes

static void size_array(const char *of, bench_array *a) {
    a->count = 1;
    for (uint32_t k = 0; k < a->rank; k++)
        if (__builtin_mul_overflow(a->count, (uint64_t)a->shape[k], &a->count))
            bench_die("%s: %%%s has too many elements", of, a->name);
    if (__builtin_mul_overflow(a->count, lfuser_dtype_bytes(a->dtype), &a->bytes))
        bench_die("%s: %%%s has too many bytes", of, a->name);
}

static void read_scalar(const bench_case *c, bench_array *a, const char *text) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || (*end && *end != ' ')) bench_die("%s: %%%s=%.40s is not a number", c->name, a->name, text);
    switch (a->dtype) {
    case LFUSER_F32: a->value.f32 = (float)number; break;
    case LFUSER_F64: a->value.f64 = number; break;
    case LFUSER_BOOL: a->value.b = number != 0; break;
    case LFUSER_I8:
    case LFUSER_I16:
    case LFUSER_I32:
    case LFUSER_I64: a->value.i64 = strtoll(text, NULL, 0); break;
    case LFUSER_U8:
    case LFUSER_U16:
    case LFUSER_U32:
    case LFUSER_U64: a->value.u64 = strtoull(text, NULL, 0); break;
    default: bench_die("%s: scalars of %s, like %%%s, cannot be given", c->name, lfuser_dtype_name(a->dtype), a->name);
    }
}

static void read_extents(const bench_case *c, bench_array *a, const char *text, int64_t scale) {
    uint32_t rank = 0;
    while (*text && *text != ' ' && *text != '<') {
        char *end;
        int64_t extent = strtoll(text, &end, 10);
        if (end == text || extent < 0 || rank == a->rank)
            bench_die("%s: %%%s has rank %u, its extents are '%.40s'", c->name, a->name, a->rank, text);
        if (*end == '/') end++, extent = extent / scale ? extent / scale : extent > 0;
        a->shape[rank++] = extent;
        text = *end == ',' ? end + 1 : end;
    }
    if (*text == '<') a->limit = strtoull(text + 1, NULL, 10);
    if (rank != a->rank) bench_die("%s: %%%s has rank %u, %u extents are given", c->name, a->name, a->rank, rank);
    size_array(c->name, a);
}

static void read_shapes(bench_case *c, const char *shapes, int64_t scale) {
    for (size_t i = 0; i < c->n_params; i++) {
        bench_array *a = &c->params[i];
        size_t n = strlen(a->name);
        const char *at = shapes;
        while (at && (strncmp(at, a->name, n) || at[n] != '=')) at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
        if (!at)
            bench_die("%s: %%%s is not given; --%s %s=%s", c->name, a->name, a->kind == LFUSER_TENSOR ? "shape" : "arg",
                      a->name, a->kind == LFUSER_TENSOR ? "EXTENTS" : "VALUE");
        if (a->kind == LFUSER_TENSOR)
            read_extents(c, a, at + n + 1, scale);
        else
            read_scalar(c, a, at + n + 1);
    }
}

// ---- compiling and memory

void bench_call_run(void *arg) {
    bench_call *w = arg;
    for (size_t i = 0; i < w->c->n_outputs; i++) w->outputs[i].pending = NULL;
    bench_must(lfuser_run(w->executable, w->device->stream, w->arguments, w->c->n_params, w->outputs, w->c->n_outputs, NULL),
               w->c->name);
    for (size_t i = 0; i < w->c->n_outputs; i++) {
        if (w->wait && w->outputs[i].pending)
            bench_must(lfuser_pending_get(w->outputs[i].pending, UINT64_MAX, &w->outputs[i].value), w->c->name);
        lfuser_pending_release(w->outputs[i].pending);
    }
}

static bench_array array_of(const lfuser_value_info *info) {
    return (bench_array){.name = info->name, .kind = info->kind, .dtype = info->dtype, .rank = info->rank};
}

void bench_call_compile(bench_call *w) {
    bench_case *c = w->c;
    lfuser_fusion *fusion;
    lfuser_value_info info;
    lfuser_compile_options options = {.size = sizeof options, .math = c->math, .replay_from = w->replay_from};
    bench_must(lfuser_fusion_parse(w->device->context, c->name, c->text, strlen(c->text), NULL, &fusion), "parsing");
    bench_must(lfuser_fusion_compile(fusion, w->device->device, &options, &w->executable), "compiling");
    lfuser_fusion_destroy(fusion);
    c->n_params = lfuser_executable_n_params(w->executable);
    c->n_outputs = lfuser_executable_n_outputs(w->executable);
    c->params = bench_alloc(c->n_params * sizeof *c->params);
    c->outputs = bench_alloc(c->n_outputs * sizeof *c->outputs);
    w->arguments = bench_alloc(c->n_params * sizeof *w->arguments);
    w->outputs = bench_alloc(c->n_outputs * sizeof *w->outputs);
    for (size_t i = 0; i < c->n_params; i++) {
        bench_must(lfuser_executable_param(w->executable, i, &info), c->name);
        c->params[i] = array_of(&info);
    }
    for (size_t i = 0; i < c->n_outputs; i++) {
        bench_must(lfuser_executable_output(w->executable, i, &info), c->name);
        if (info.into >= 0)
            bench_die("%s: output %zu goes into a parameter; repeated runs would not see the same numbers", c->name, i);
        c->outputs[i] = array_of(&info);
    }
}

// from: what its memory holds.
static void place(bench_call *w, bench_array *a, const void *from, uint64_t bytes) {
    bench_must(lfuser_memory_alloc(w->device->stream, bytes, &a->device), "allocating a tensor");
    bench_must(lfuser_memory_upload(w->device->stream, a->device, from, bytes), "uploading a tensor");
    bench_must(lfuser_stream_synchronize(w->device->stream), "uploading a tensor");
    a->tensor = (lfuser_tensor){.data = a->device,
                                .device = w->device->dl,
                                .rank = (int32_t)a->rank,
                                .dtype = lfuser_dl_dtype_of(a->dtype),
                                .shape = a->shape};
}

static void place_laid_out(bench_call *w, bench_array *a) {
    uint64_t bytes;
    void *memory = bench_lay_out(a, w->c->layout, &bytes);
    place(w, a, memory, bytes);
    free(memory);
    a->tensor.strides = a->strides;
    a->tensor.byte_offset = a->offset;
}

static void fill_params(bench_call *w) {
    for (size_t i = 0; i < w->c->n_params; i++) {
        bench_array *a = &w->c->params[i];
        w->arguments[i] = (lfuser_argument){.kind = a->kind, .dtype = a->dtype, .value = a->value};
        if (a->kind != LFUSER_TENSOR) continue;
        a->host = bench_alloc(a->bytes);
        bench_fill(a->dtype, a->limit, i + 1, a->host, a->count);
        if (w->c->layout == BENCH_DENSE)
            place(w, a, a->host, a->bytes_read = a->bytes);
        else
            place_laid_out(w, a);
        w->arguments[i].tensor = &a->tensor;
        w->c->result.bytes += a->bytes_read;
    }
}

// Outputs begin as NaN (all bits set), so that an element that nobody writes is seen.
static void fill_outputs(bench_call *w) {
    int64_t (*shapes)[8] = bench_alloc(w->c->n_outputs * sizeof *shapes);
    lfuser_output *inferred = bench_alloc(w->c->n_outputs * sizeof *inferred);
    bench_must(lfuser_infer(w->executable, w->arguments, w->c->n_params, inferred, w->c->n_outputs, shapes, NULL),
               w->c->name);
    for (size_t i = 0; i < w->c->n_outputs; i++) {
        bench_array *a = &w->c->outputs[i];
        if (a->kind != LFUSER_TENSOR) continue;
        memcpy(a->shape, shapes[i], sizeof a->shape);
        size_array(w->c->name, a);
        a->host = bench_alloc(a->bytes);
        memset(a->host, 0xff, a->bytes);
        place(w, a, a->host, a->bytes);
        w->outputs[i].tensor = &a->tensor;
        w->c->result.bytes += a->bytes;
    }
    free(inferred);
    free(shapes);
}

static void release(bench_call *w, bench_array *arrays, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (arrays[i].device) lfuser_memory_free(w->device->stream, arrays[i].device);
        free(arrays[i].host);
        arrays[i].host = arrays[i].device = NULL;
    }
}

void bench_call_place(bench_call *w, const char *shapes, int64_t scale) {
    bench_case *c = w->c;
    release(w, c->params, c->n_params);
    release(w, c->outputs, c->n_outputs);
    c->result.bytes = 0;
    read_shapes(c, shapes, scale);
    fill_params(w);
    fill_outputs(w);
}

void bench_call_unplace(bench_call *w) {
    release(w, w->c->params, w->c->n_params);
    release(w, w->c->outputs, w->c->n_outputs);
    bench_call_wait(w);
}

void bench_call_wait(bench_call *w) {
    if (w->device->stream) bench_must(lfuser_stream_synchronize(w->device->stream), w->c->name);
}

void bench_call_close(bench_call *w) {
    bench_call_unplace(w);
    lfuser_executable_destroy(w->executable);
    free(w->c->params);
    free(w->c->outputs);
    w->c->params = w->c->outputs = NULL;
    free(w->arguments);
    free(w->outputs);
}
