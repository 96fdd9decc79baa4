// The interpreter behind a few C functions, for the conformance runner (it is no part of the library).
#include "interp/interp.h"
#include "ir/build.h"
#include "parse/parse.h"
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct face_value {
    int32_t dtype, tensor, rank;
    int64_t shape[8], strides[8];
    void *data;
} face_value;

EXPORT int lft_interp_run(const char *text, size_t size, const face_value *args, size_t n_args, face_value *outputs,
                          size_t room, size_t *out_n, void **out_result, char *message, size_t message_size, int *out_stage);
EXPORT void lft_interp_release(void *result);
EXPORT const char *lft_interp_index_error(const void *result);

static int fail(lf_status s, char *message, size_t size) {
    int code = (int)lf_status_code(s);
    snprintf(message, size, "%s", lf_status_message(s));
    lf_status_destroy(s);
    return code;
}

// Returns a status code. Stage: 0 compile, 1 run.
int lft_interp_run(const char *text, size_t size, const face_value *args, size_t n_args, face_value *outputs, size_t room,
                   size_t *out_n, void **out_result, char *message, size_t message_size, int *out_stage) {
    *out_stage = 0;
    *out_result = NULL;
    *out_n = 0;
    lf_graph **graphs;
    size_t n;
    lf_status s = lf_parse(&lf_system_allocator, NULL, text, size, false, &graphs, &n);
    if (s) return fail(s, message, message_size);
    *out_stage = 1;
    lf_array *arrays = lf_alloc_zero(&lf_system_allocator, (n_args + 1) * sizeof *arrays);
    for (size_t i = 0; i < n_args && arrays; i++) {
        arrays[i] = (lf_array){
            .dtype = (lf_dtype)args[i].dtype, .tensor = args[i].tensor, .rank = (uint8_t)args[i].rank, .data = args[i].data};
        memcpy(arrays[i].shape, args[i].shape, sizeof arrays[i].shape);
        memcpy(arrays[i].strides, args[i].strides, sizeof arrays[i].strides);
    }
    lf_interp_result *result = NULL;
    s = arrays ? lf_interp_run(graphs[0], arrays, n_args, &lf_system_allocator, &result) : lf_out_of_memory();
    lf_free(&lf_system_allocator, arrays);
    lf_parse_release(&lf_system_allocator, graphs, n);
    if (s) return fail(s, message, message_size);
    for (size_t i = 0; i < result->n_outputs && i < room; i++) {
        const lf_array *o = &result->outputs[i];
        outputs[i] = (face_value){.dtype = (int32_t)o->dtype, .tensor = o->tensor, .rank = o->rank, .data = o->data};
        memcpy(outputs[i].shape, o->shape, sizeof o->shape);
    }
    *out_n = result->n_outputs;
    *out_result = result;
    return 0;
}

void lft_interp_release(void *result) { lf_interp_result_destroy(result); }
const char *lft_interp_index_error(const void *result) { return ((const lf_interp_result *)result)->index_error; }
