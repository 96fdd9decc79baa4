// A device, programs for it and for the interpreter, and the cores of this machine.
#include "test/exhaustive/exhaustive.h"
#include "ir/build.h"
#include "parse/parse.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void must(lfuser_status s, const char *what) {
    if (!s) return;
    fprintf(stderr, "%s: %s: %s\n", what, lfuser_code_name(lfuser_status_code(s)), lfuser_status_message(s));
    exit(1);
}

int machine_open(machine *m, const char *device) {
    const char *ordinal = strchr(device, ':');
    *m = (machine){.place = {strncmp(device, "cuda", 4) ? 1 : 2, ordinal ? atoi(ordinal + 1) : 0}};
    must(lfuser_context_create(NULL, &m->context), "context");
    lfuser_status s = lfuser_device_open(m->context, device, &m->device);
    if (lfuser_status_code(s) == LFUSER_UNAVAILABLE) {
        printf("skipped: no device '%s': %s\n", device, lfuser_status_message(s));
        lfuser_status_destroy(s);
        lfuser_context_destroy(m->context);
        return 77;
    }
    must(s, device);
    must(lfuser_stream_create(m->device, &m->stream), "stream");
    return 0;
}

void machine_close(machine *m) {
    lfuser_stream_destroy(m->stream);
    lfuser_device_close(m->device);
    lfuser_context_destroy(m->context);
}

// ---- programs ------------------------------------------------------------------------------------------------------------------

void program_open(program *p, machine *m, lfuser_dtype in, const char *const *statements, size_t n, lfuser_math math) {
    *p = (program){.in = in, .n = n, .text = malloc(256 + 128 * n)};
    size_t at = (size_t)sprintf(p->text, "fusion @t(%%a: %s[?]) {\n", lfuser_dtype_name(in));
    for (size_t i = 0; i < n; i++) at += (size_t)sprintf(p->text + at, "  %%r%zu = %s\n", i, statements[i]);
    for (size_t i = 0; i < n; i++) at += (size_t)sprintf(p->text + at, "%s%%r%zu", i ? ", " : "  return ", i);
    sprintf(p->text + at, "\n}\n");
    lfuser_fusion *f;
    must(lfuser_fusion_parse(m->context, "t.lf", p->text, strlen(p->text), NULL, &f), p->text);
    must(lfuser_fusion_compile(f, m->device, &(lfuser_compile_options){.size = sizeof(lfuser_compile_options), .math = math},
                               &p->executable),
         p->text);
    lfuser_fusion_destroy(f);
    lf_graph **graphs;
    size_t count;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", p->text, strlen(p->text), false, &graphs, &count);
    if (s) {
        fprintf(stderr, "%s\n", lf_status_message(s));
        exit(1);
    }
    p->graph = graphs[0];
    graphs[0] = NULL;
    lf_parse_release(&lf_system_allocator, graphs, count);
    for (size_t i = 0; i < n; i++) p->out[i] = (lfuser_dtype)p->graph->outputs[i].value->type.dtype;
}

void program_close(program *p) {
    lfuser_executable_destroy(p->executable);
    lf_graph_destroy(p->graph);
    free(p->text);
}

void run_device(machine *m, const program *p, const void *in, size_t n, void *const *out) {
    int64_t shape = (int64_t)n, stride = 1;
    lfuser_tensor tensors[1 + MAX_OUTPUTS];
    lfuser_output outputs[MAX_OUTPUTS] = {{0}};
    for (size_t i = 0; i <= p->n; i++) {
        lfuser_dtype d = i ? p->out[i - 1] : p->in;
        tensors[i] = (lfuser_tensor){
            .device = m->place, .rank = 1, .dtype = lfuser_dl_dtype_of(d), .shape = &shape, .strides = &stride};
        must(lfuser_memory_alloc(m->stream, n * lfuser_dtype_bytes(d), &tensors[i].data), "memory");
        if (i) outputs[i - 1].tensor = &tensors[i];
    }
    must(lfuser_memory_upload(m->stream, tensors[0].data, in, n * lfuser_dtype_bytes(p->in)), "upload");
    lfuser_argument a = {.kind = LFUSER_TENSOR, .tensor = &tensors[0]};
    must(lfuser_run(p->executable, m->stream, &a, 1, outputs, p->n, NULL), p->text);
    for (size_t i = 0; i < p->n; i++)
        must(lfuser_memory_download(m->stream, out[i], tensors[i + 1].data, n * lfuser_dtype_bytes(p->out[i])), "download");
    for (size_t i = 0; i <= p->n; i++) lfuser_memory_free(m->stream, tensors[i].data);
    must(lfuser_stream_synchronize(m->stream), p->text);
}

typedef struct interpreted {
    const program *p;
    const char *in;
    void *const *out;
} interpreted;

static void interpret(void *arg, size_t begin, size_t end) {
    const interpreted *r = arg;
    size_t bytes = lfuser_dtype_bytes(r->p->in);
    lf_array a = {.dtype = (lf_dtype)r->p->in,
                  .tensor = true,
                  .rank = 1,
                  .shape = {(int64_t)(end - begin)},
                  .strides = {1},
                  .data = (char *)(uintptr_t)(r->in + begin * bytes)};
    lf_interp_result *result;
    lf_status s = lf_interp_run(r->p->graph, &a, 1, &lf_system_allocator, &result);
    if (s) {
        fprintf(stderr, "interpreter: %s\n%s", lf_status_message(s), r->p->text);
        exit(1);
    }
    for (size_t i = 0; i < r->p->n; i++) {
        size_t size = lfuser_dtype_bytes(r->p->out[i]);
        memcpy((char *)r->out[i] + begin * size, result->outputs[i].data, (end - begin) * size);
    }
    lf_interp_result_destroy(result);
}

void run_interpreter(const program *p, const void *in, size_t n, void *const *out) {
    parallel(n, interpret, &(interpreted){p, in, out});
}

// ---- cores -----------------------------------------------------------------------------------------------------------------------

typedef struct part {
    void (*fn)(void *arg, size_t begin, size_t end);
    void *arg;
    size_t begin, end;
} part;

static void *work(void *arg) {
    part *p = arg;
    if (p->begin < p->end) p->fn(p->arg, p->begin, p->end);
    return NULL;
}

void parallel(size_t n, void (*fn)(void *arg, size_t begin, size_t end), void *arg) {
    enum { MOST = 64 };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = cores < 1 ? 1 : cores > MOST ? MOST : (size_t)cores;
    pthread_t threads[MOST];
    part parts[MOST];
    for (size_t i = 0; i < count; i++) {
        parts[i] = (part){fn, arg, n * i / count, n * (i + 1) / count};
        if (i && pthread_create(&threads[i], NULL, work, &parts[i])) exit(1);
    }
    work(&parts[0]);
    for (size_t i = 1; i < count; i++) pthread_join(threads[i], NULL);
}

double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
