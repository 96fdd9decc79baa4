// Results for people, and as JSON.
#include "run.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *element(char *text, size_t size, const lf_array *array, uint64_t at) {
    unsigned bytes = lf_dtype_bytes(array->dtype);
    lf_scalar s = {.word = {0, 0}};
    memcpy(&s, (const char *)array->data + at * bytes, bytes);
    if (array->dtype == LF_BOOL) s.b = *((const uint8_t *)array->data + at) != 0;
    lf_scalar_print(text, size, array->dtype, &s);
    return text;
}

// ---- text -------------------------------------------------------------------------------------------------------------------

enum { MOST = 1000, EDGE = 3 }; // tensors of more elements than MOST are cut to EDGE at either end of an axis

static void show_tensor(const lf_array *array) {
    char text[160];
    uint64_t elements = array->bytes / lf_dtype_bytes(array->dtype);
    int64_t index[LFUSER_MAX_RANK] = {0};
    unsigned rank = array->rank, opened = 0;
    if (!elements && rank) {
        printf("  (no elements)\n");
        return;
    }
    printf("  ");
    for (bool more = true; more;) {
        for (; opened < rank; opened++) putchar('[');
        uint64_t at = 0;
        for (unsigned k = 0; k < rank; k++) at = at * (uint64_t)array->shape[k] + (uint64_t)index[k];
        fputs(element(text, sizeof text, array, at), stdout);
        more = false;
        for (unsigned k = rank; k-- > 0 && !more;) {
            int64_t extent = array->shape[k];
            more = ++index[k] < extent;
            bool cut = more && elements > MOST && extent > 2 * EDGE && index[k] == EDGE;
            if (cut) index[k] = extent - EDGE;
            if (!more) {
                index[k] = 0;
                opened = k;
                putchar(']');
                continue;
            }
            if (k + 1 == rank)
                printf(cut ? ", ..., " : ", ");
            else
                printf(cut ? ",\n  %*s...,\n  %*s" : ",\n  %*s", (int)opened, "", (int)opened, "");
        }
    }
    putchar('\n');
}

void lf_show_text(const lf_session *session, bool stats) {
    static const char *const places[] = {
        [LFUSER_SCALAR] = "host", [LFUSER_PENDING] = "pending", [LFUSER_HOST_TENSOR] = "host", [LFUSER_TENSOR] = "device"};
    for (size_t i = 0; i < session->n_results; i++) {
        const lf_result *r = &session->results[i];
        const lf_array *array = &r->array;
        char text[160];
        if (r->info.name)
            printf("%%%s: %s", r->info.name, lf_dtype_name(array->dtype));
        else
            printf("output %zu: %s", i, lf_dtype_name(array->dtype));
        if (!array->tensor) {
            printf(" = %s  (%s)\n", element(text, sizeof text, array, 0), places[r->info.kind]);
            continue;
        }
        for (unsigned k = 0; k < array->rank; k++) printf("%s%" PRId64, k ? ", " : "[", array->shape[k]);
        printf("%s  (%s)\n", array->rank ? "]" : "[]", places[r->info.kind]);
        show_tensor(array);
    }
    if (stats)
        printf("syncs %" PRIu64 ", launches %" PRIu64 ", compiles %" PRIu64
               "; the run call took %.1f us, compiling kernels included\n",
               session->syncs, session->launches, session->compiles, (double)session->nanoseconds * 1e-3);
}

// ---- JSON -------------------------------------------------------------------------------------------------------------------

// A number as the shortest text that reads back as the same value; what JSON has no number for is a string.
static void json_part(lf_dtype d, const void *data) {
    char text[160];
    lf_scalar s = {.word = {0, 0}};
    memcpy(&s, data, lf_dtype_bytes(d));
    if (d == LF_BOOL) s.b = *(const uint8_t *)data != 0;
    lf_scalar_print(text, sizeof text, d, &s);
    bool word = d != LF_BOOL && (strstr(text, "inf") || strstr(text, "nan"));
    printf(word ? "\"%s\"" : "%s", text);
}

static void json_element(const lf_array *array, uint64_t at) {
    const char *data = (const char *)array->data + at * lf_dtype_bytes(array->dtype);
    lf_dtype part = lf_dtype_part(array->dtype);
    if (part == array->dtype) {
        json_part(part, data);
        return;
    }
    putchar('[');
    json_part(part, data);
    putchar(',');
    json_part(part, data + lf_dtype_bytes(part));
    putchar(']');
}

// Names hold letters, digits, '_' and '.': nothing to escape.
void lf_show_json(const lf_session *session) {
    printf("{\"outputs\":[");
    for (size_t i = 0; i < session->n_results; i++) {
        const lf_result *r = &session->results[i];
        const lf_array *array = &r->array;
        printf("%s{\"name\":\"%s\",\"kind\":\"%s\",\"dtype\":\"%s\",", i ? "," : "", r->info.name ? r->info.name : "",
               array->tensor ? "tensor" : "scalar", lf_dtype_name(array->dtype));
        if (!array->tensor) {
            printf("\"value\":");
            json_element(array, 0);
            printf(",\"class\":\"%s\"}", r->info.kind == LFUSER_PENDING ? "pending" : "host");
            continue;
        }
        printf("\"shape\":[");
        for (unsigned k = 0; k < array->rank; k++) printf("%s%" PRId64, k ? "," : "", array->shape[k]);
        printf("],\"data\":[");
        uint64_t elements = array->bytes / lf_dtype_bytes(array->dtype);
        for (uint64_t at = 0; at < elements; at++) {
            if (at) putchar(',');
            json_element(array, at);
        }
        printf("]}");
    }
    printf("],\"stats\":{\"syncs\":%" PRIu64 ",\"launches\":%" PRIu64 ",\"compiles\":%" PRIu64 "}}\n", session->syncs,
           session->launches, session->compiles);
}
