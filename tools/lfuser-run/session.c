// One run through the public interface alone, as an embedder would do it.
#include "run.h"
#include "base/text.h"
#include <string.h>
#include <time.h>

typedef struct state {
    const lf_allocator *a;
    lf_options *options;
    lfuser_context *context;
    lfuser_device *device;
    lfuser_stream *stream;
    lfuser_fusion *fusion;
    lfuser_executable *executable;
    lfuser_completion *completion;
    size_t n_params, n_outputs;
    lfuser_value_info *params; // owned, and what follows
    lf_array *given;           // one a parameter
    lfuser_tensor *tensors;
    void **memory; // device memory of tensor arguments, where it is not the host's
    lfuser_argument *arguments;
    lfuser_output *outputs;
} state;

// A public status as one of ours, which may outlive the context.
static lf_status from_public(lfuser_status s) {
    if (!s) return NULL;
    lf_status own = lf_error(&lf_system_allocator, (lf_code)lfuser_status_code(s), "%s", lfuser_status_message(s));
    lfuser_status_destroy(s);
    return own;
}

static lf_status open_all(state *st, const char *text, size_t size) {
    const lf_options *o = st->options;
    lfuser_compile_options compile = {.size = sizeof compile, .math = o->math, .sync = o->sync};
    LF_TRY(from_public(lfuser_context_create(NULL, &st->context)));
    LF_TRY(from_public(
        lfuser_fusion_parse(st->context, strcmp(o->file, "-") ? o->file : "<stdin>", text, size, o->fusion, &st->fusion)));
    lf_status opened = from_public(lfuser_device_open(st->context, o->device, &st->device));
    if (opened) {
        lf_status named = lf_error(st->a, lf_status_code(opened), "--device=%s: %s", o->device, lf_status_message(opened));
        lf_status_destroy(opened);
        return named;
    }
    LF_TRY(from_public(lfuser_stream_create(st->device, &st->stream)));
    LF_TRY(from_public(lfuser_fusion_compile(st->fusion, st->device, &compile, &st->executable)));
    st->n_params = lfuser_executable_n_params(st->executable);
    st->n_outputs = lfuser_executable_n_outputs(st->executable);
    st->params = lf_alloc_zero(st->a, (st->n_params + 1) * sizeof *st->params);
    st->given = lf_alloc_zero(st->a, (st->n_params + 1) * sizeof *st->given);
    st->tensors = lf_alloc_zero(st->a, (st->n_params + 1) * sizeof *st->tensors);
    st->memory = lf_alloc_zero(st->a, (st->n_params + 1) * sizeof *st->memory);
    st->arguments = lf_alloc_zero(st->a, (st->n_params + 1) * sizeof *st->arguments);
    st->outputs = lf_alloc_zero(st->a, (st->n_outputs + 1) * sizeof *st->outputs);
    if (!st->params || !st->given || !st->tensors || !st->memory || !st->arguments || !st->outputs)
        return lf_out_of_memory();
    for (size_t i = 0; i < st->n_params; i++)
        LF_TRY(from_public(lfuser_executable_param(st->executable, i, &st->params[i])));
    return NULL;
}

static bool is_named(const lf_pair *pair, const char *name) {
    return name && strlen(name) == pair->name_length && !memcmp(pair->name, name, pair->name_length);
}

// ---- arguments ------------------------------------------------------------------------------------------------------------

static lf_status take(lf_text *t, const lf_allocator *a) {
    char *text;
    LF_TRY(lf_text_take(t, &text));
    lf_status s = lf_error(a, LF_INVALID_ARGUMENT, "%s", text);
    lf_free(a, text);
    return s;
}

static lf_status unknown_argument(const state *st, const lf_pair *pair) {
    lf_text t;
    char expected[64];
    lf_text_init(&t, st->a);
    lf_text_put(&t, "--arg %.*s: @%s has no parameter of that name; ", (int)pair->name_length, pair->name,
                lfuser_fusion_name(st->fusion));
    lf_text_put(&t, st->n_params ? "its parameters are:" : "it has none");
    for (size_t i = 0; i < st->n_params; i++)
        lf_text_put(&t, "\n  %s  %s", st->params[i].name, lf_expectation(expected, sizeof expected, &st->params[i]));
    return take(&t, st->a);
}

static lf_status missing_arguments(const state *st, const bool *seen, size_t n) {
    lf_text t;
    char expected[64];
    lf_text_init(&t, st->a);
    lf_text_put(&t, "@%s: %zu of %zu arguments %s missing:", lfuser_fusion_name(st->fusion), n, st->n_params,
                n == 1 ? "is" : "are");
    for (size_t i = 0; i < st->n_params; i++)
        if (!seen[i])
            lf_text_put(&t, "\n  --arg %s=...  %s", st->params[i].name,
                        lf_expectation(expected, sizeof expected, &st->params[i]));
    return take(&t, st->a);
}

static lf_status read_arguments(state *st, bool *seen) {
    const lf_options *o = st->options;
    size_t n_seen = 0;
    for (size_t k = 0; k < o->n_args; k++) {
        size_t i = 0;
        while (i < st->n_params && !is_named(&o->args[k], st->params[i].name)) i++;
        if (i == st->n_params) return unknown_argument(st, &o->args[k]);
        seen[i] = true;
        n_seen++;
        LF_TRY(lf_given_parse(st->a, &st->params[i], o->args[k].value, &st->given[i]));
    }
    return n_seen < st->n_params ? missing_arguments(st, seen, st->n_params - n_seen) : NULL;
}

static lf_status find_outs(state *st) {
    for (size_t k = 0; k < st->options->n_outs; k++) {
        lf_pair *out = &st->options->outs[k];
        lfuser_value_info info;
        uint64_t number = 0;
        bool digits = out->name_length < 10;
        for (size_t i = 0; i < out->name_length; i++) {
            digits &= out->name[i] >= '0' && out->name[i] <= '9';
            number = number * 10 + (uint64_t)(out->name[i] - '0');
        }
        out->index = digits && number < st->n_outputs ? (size_t)number : st->n_outputs;
        for (size_t i = 0; i < st->n_outputs; i++) {
            LF_TRY(from_public(lfuser_executable_output(st->executable, i, &info)));
            if (is_named(out, info.name)) out->index = i;
        }
        if (out->index < st->n_outputs) continue;
        lf_text t;
        lf_text_init(&t, st->a);
        lf_text_put(&t, "--out %.*s: @%s has no output of that name; it gives:", (int)out->name_length, out->name,
                    lfuser_fusion_name(st->fusion));
        for (size_t i = 0; i < st->n_outputs; i++) {
            LF_TRY(from_public(lfuser_executable_output(st->executable, i, &info)));
            lf_text_put(&t, "%s %zu", i ? "," : "", i);
            if (info.name) lf_text_put(&t, " (%s)", info.name);
        }
        return take(&t, st->a);
    }
    return NULL;
}

static lf_status place_arguments(state *st) {
    bool on_host = !strcmp(st->options->device, "cpu");
    int32_t type = on_host ? 1 : !strcmp(st->options->device, "sim") ? 12 : 2, ordinal = 0; // DLPack's numbers
    for (const char *c = strchr(st->options->device, ':'); c && *++c;) ordinal = ordinal * 10 + (*c - '0');
    for (size_t i = 0; i < st->n_params; i++) {
        lf_array *given = &st->given[i];
        lfuser_argument *argument = &st->arguments[i];
        argument->kind = st->params[i].kind;
        argument->dtype = st->params[i].dtype;
        if (argument->kind != LFUSER_TENSOR) {
            memcpy(&argument->value, given->data, given->bytes);
            continue;
        }
        st->tensors[i] = (lfuser_tensor){.data = given->data,
                                         .device = {.type = type, .ordinal = ordinal},
                                         .rank = (int32_t)given->rank,
                                         .dtype = lfuser_dl_dtype_of(argument->dtype),
                                         .shape = given->shape,
                                         .strides = given->strides};
        argument->tensor = &st->tensors[i];
        if (on_host || !given->bytes) continue;
        LF_TRY(from_public(lfuser_memory_alloc(st->stream, given->bytes, &st->memory[i])));
        LF_TRY(from_public(lfuser_memory_upload(st->stream, st->memory[i], given->data, given->bytes)));
        st->tensors[i].data = st->memory[i];
    }
    return NULL;
}

// ---- the run ----------------------------------------------------------------------------------------------------------------

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static lf_status call(state *st, lf_session *out) {
    lfuser_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    LF_TRY(from_public(lfuser_device_stats(st->device, &before)));
    uint64_t start = now_ns();
    lfuser_status s =
        lfuser_run(st->executable, st->stream, st->arguments, st->n_params, st->outputs, st->n_outputs, &st->completion);
    out->nanoseconds = now_ns() - start;
    LF_TRY(from_public(s));
    LF_TRY(from_public(lfuser_device_stats(st->device, &after)));
    out->syncs = after.syncs - before.syncs;
    out->launches = after.launches - before.launches;
    out->compiles = after.compiles;
    return NULL;
}

// A row-major copy in host memory of a tensor on the device, or of a parameter that was written into.
static lf_status read_tensor(state *st, const lfuser_tensor *t, lf_array *out) {
    uint64_t elements = 1, bytes = lf_dtype_bytes(out->dtype), span = 1;
    out->tensor = true;
    out->rank = (unsigned)t->rank;
    for (unsigned k = 0; k < out->rank; k++) out->shape[k] = t->shape[k], elements *= (uint64_t)t->shape[k];
    for (unsigned k = 0; k < out->rank && elements; k++) span += (uint64_t)((t->shape[k] - 1) * t->strides[k]);
    if (!elements) return NULL;
    char *raw = lf_alloc(st->a, span * bytes);
    out->data = lf_alloc(st->a, elements * bytes);
    if (!raw || !out->data) {
        lf_free(st->a, raw);
        return lf_out_of_memory();
    }
    out->bytes = elements * bytes;
    lf_status s = from_public(lfuser_memory_download(st->stream, raw, (char *)t->data + t->byte_offset, span * bytes));
    if (!s) s = from_public(lfuser_stream_synchronize(st->stream));
    int64_t index[LFUSER_MAX_RANK] = {0};
    for (uint64_t at = 0; !s && at < elements; at++) {
        int64_t from = 0;
        for (unsigned k = 0; k < out->rank; k++) from += index[k] * t->strides[k];
        memcpy((char *)out->data + at * bytes, raw + from * (int64_t)bytes, bytes);
        for (unsigned k = out->rank; k-- > 0 && ++index[k] == out->shape[k];) index[k] = 0;
    }
    lf_free(st->a, raw);
    return s;
}

static lf_status read_result(state *st, size_t i, lf_result *out) {
    lf_status s = from_public(lfuser_executable_output(st->executable, i, &out->info));
    if (s) {
        out->info.name = NULL;
        return s;
    }
    lfuser_output *output = &st->outputs[i];
    lf_array *array = &out->array;
    array->dtype = (lf_dtype)out->info.dtype;
    if (out->info.name) { // the executable's, which goes before the result does
        out->info.name = lf_strndup(st->a, out->info.name, strlen(out->info.name));
        if (!out->info.name) return lf_out_of_memory();
    }
    if (out->info.kind == LFUSER_TENSOR)
        return read_tensor(st, out->info.into >= 0 ? &st->tensors[out->info.into] : &output->allocated->tensor, array);
    lfuser_scalar value = output->value;
    if (out->info.kind == LFUSER_PENDING) LF_TRY(from_public(lfuser_pending_get(output->pending, UINT64_MAX, &value)));
    array->tensor = out->info.kind == LFUSER_HOST_TENSOR;
    array->bytes = lf_dtype_bytes(array->dtype);
    array->data = lf_alloc(st->a, sizeof value);
    if (!array->data) return lf_out_of_memory();
    memcpy(array->data, &value, sizeof value);
    return NULL;
}

static lf_status read_results(state *st, lf_session *out) {
    out->results = lf_alloc_zero(st->a, (st->n_outputs + 1) * sizeof *out->results);
    if (!out->results) return lf_out_of_memory();
    for (size_t i = 0; i < st->n_outputs; i++) {
        out->n_results++;
        LF_TRY(read_result(st, i, &out->results[i]));
    }
    out->late = from_public(lfuser_completion_wait(st->completion, UINT64_MAX));
    return NULL;
}

static void close_all(state *st) {
    for (size_t i = 0; st->outputs && i < st->n_outputs; i++) {
        lfuser_pending_release(st->outputs[i].pending);
        if (st->outputs[i].allocated) st->outputs[i].allocated->deleter(st->outputs[i].allocated);
    }
    lfuser_completion_release(st->completion);
    lfuser_executable_destroy(st->executable); // waits for a run that failed half-way
    for (size_t i = 0; st->given && i < st->n_params; i++) {
        if (st->memory && st->memory[i]) lfuser_memory_free(st->stream, st->memory[i]);
        lf_free(st->a, st->given[i].data);
    }
    lfuser_stream_destroy(st->stream);
    lfuser_fusion_destroy(st->fusion);
    lfuser_device_close(st->device);
    lfuser_context_destroy(st->context);
    lf_free(st->a, st->params);
    lf_free(st->a, st->given);
    lf_free(st->a, st->tensors);
    lf_free(st->a, st->memory);
    lf_free(st->a, st->arguments);
    lf_free(st->a, st->outputs);
}

lf_status lf_session_run(const lf_allocator *a, lf_options *options, const char *text, size_t size, lf_session *out) {
    *out = (lf_session){0};
    state st = {.a = a, .options = options};
    lf_status s = open_all(&st, text, size);
    bool *seen = s ? NULL : lf_alloc_zero(a, st.n_params + 1);
    if (!s && !seen) s = lf_out_of_memory();
    if (!s) s = find_outs(&st);
    if (!s) s = read_arguments(&st, seen);
    if (!s) s = place_arguments(&st);
    if (!s) s = call(&st, out);
    if (!s) s = read_results(&st, out);
    lf_free(a, seen);
    close_all(&st);
    return s;
}

void lf_session_finish(const lf_allocator *a, lf_session *session) {
    for (size_t i = 0; i < session->n_results; i++) {
        lf_free(a, (void *)(uintptr_t)session->results[i].info.name);
        lf_free(a, session->results[i].array.data);
    }
    lf_free(a, session->results);
    lf_status_destroy(session->late);
    *session = (lf_session){0};
}
