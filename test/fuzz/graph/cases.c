// See graph.h: small programs as conformance cases, and parameters' elements.
#include "test/fuzz/graph/graph.h"
#include <math.h>

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
        make_arguments(c, false);
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
        free_arguments(c);
    }
    end_case(c);
    return fine;
}
