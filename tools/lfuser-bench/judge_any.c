// The user's own programs: the same text with every float as f64, run by the reference evaluator on smaller shapes. How far a result
// may be off is what the evaluator is off when it runs the program in its own dtypes, times four, and a few last places.
#include "judge.h"
#include "interp/interp.h"
#include "parse/parse.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 1 << 20 };

// ---- the size of the check

static uint64_t elements(const char *shapes, int64_t scale) {
    uint64_t all = 0;
    for (const char *at = shapes; (at = strchr(at, '='));) {
        uint64_t count = 1;
        for (char *end = (char *)(uintptr_t)++at; *end && *end != ' ' && *end != '<'; end += *end == ',') {
            const char *from = end;
            uint64_t extent = strtoull(from, &end, 10);
            if (end == from) break;
            if (*end == '/') end++, extent = extent / (uint64_t)scale ? extent / (uint64_t)scale : extent > 0;
            if (__builtin_mul_overflow(count, extent, &count)) return UINT64_MAX;
        }
        if (__builtin_add_overflow(all, count, &all)) return UINT64_MAX;
    }
    return all;
}

int64_t bench_check_scale(const char *shapes, int64_t scale) {
    uint64_t now = elements(shapes, scale);
    for (int64_t s = scale; s <= scale << 20; s *= 2)
        if ((now = elements(shapes, s)) <= MOST_ELEMENTS) return s;
    return 0;
}

// ---- the program in f64

static const char *wider(const char *word, size_t n) {
    static const char *const narrow[] = {"f16", "bf16", "f32"};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (strlen(narrow[i]) == n && !memcmp(narrow[i], word, n)) return "f64";
    return n == 3 && !memcmp(word, "c64", 3) ? "c128" : NULL;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

// Names (%f32) and messages stay, and so do random numbers, whose dtype says which numbers are drawn.
static char *widen(const char *text) {
    char *wide = bench_alloc(2 * strlen(text) + 1), *to = wide;
    bool random = false;
    while (*text) {
        size_t n = 1;
        const char *other = NULL;
        if (*text == '\n') random = false;
        if (*text == '"') {
            while (text[n] && text[n] != '"') n += text[n] == '\\' && text[n + 1] ? 2 : 1;
            n += text[n] == '"';
        } else if (*text == '%' || *text == '@' || is_word(*text)) {
            while (is_word(text[n])) n++;
            random |= (n == 7 && !memcmp(text, "uniform", 7)) || (n == 6 && !memcmp(text, "normal", 6));
            other = random ? NULL : wider(text, n);
        } else if (text[0] == '/' && text[1] == '/') {
            n = strcspn(text, "\n");
        }
        if (other)
            to += strlen(strcpy(to, other));
        else
            memcpy(to, text, n), to += n;
        text += n;
    }
    return wide;
}

// ---- running it

static lf_array argument(const bench_array *a, bool wide) {
    lf_array r = {.dtype = (lf_dtype)a->dtype,
                  .tensor = a->kind == LFUSER_TENSOR || a->kind == LFUSER_HOST_TENSOR,
                  .rank = (uint8_t)a->rank};
    int64_t stride = 1;
    for (uint32_t k = a->rank; k-- > 0; stride *= a->shape[k]) r.shape[k] = a->shape[k], r.strides[k] = stride;
    if (a->kind != LFUSER_TENSOR) r.rank = 0;
    uint64_t count = a->kind == LFUSER_TENSOR ? a->count : 1;
    bench_array source = *a;
    if (a->kind != LFUSER_TENSOR) source.host = (void *)(uintptr_t)&a->value;
    unsigned bytes = lf_dtype_bytes(r.dtype);
    if (!wide || !lf_is_float(r.dtype)) {
        r.data = bench_alloc(count * bytes);
        memcpy(r.data, source.host, count * bytes);
        if (wide && r.dtype == LF_C64) {
            double *parts = bench_alloc(2 * count * sizeof *parts);
            for (uint64_t i = 0; i < 2 * count; i++) parts[i] = ((const float *)source.host)[i];
            free(r.data);
            r.data = parts, r.dtype = LF_C128;
        }
        return r;
    }
    r.dtype = LF_F64;
    r.data = bench_alloc(count * sizeof(double));
    for (uint64_t i = 0; i < count; i++) ((double *)r.data)[i] = bench_element(&source, i);
    return r;
}

static lf_interp_result *evaluate(const bench_case *c, const char *text, bool wide, bench_verdict *v) {
    lf_graph **graphs;
    size_t n;
    lf_interp_result *result = NULL;
    lf_array *args = bench_alloc(c->n_params * sizeof *args);
    for (size_t i = 0; i < c->n_params; i++) args[i] = argument(&c->params[i], wide);
    lf_status s = lf_parse(&lf_system_allocator, c->name, text, strlen(text), false, &graphs, &n);
    if (!s) {
        s = lf_interp_run(graphs[0], args, c->n_params, &lf_system_allocator, &result);
        lf_parse_release(&lf_system_allocator, graphs, n);
    }
    if (s)
        snprintf(v->what, sizeof v->what, "%s: %.150s", wide ? "in f64" : "the reference evaluator", lf_status_message(s));
    lf_status_destroy(s);
    for (size_t i = 0; i < c->n_params; i++) free(args[i].data);
    free(args);
    return result;
}

// One output: `own` by the evaluator in the program's dtypes, `wide` in f64.
static void compare(const bench_array *got, const lf_array *own, const lf_array *wide, bench_verdict *v) {
    bench_array reference = *got, exact = *got, mine = *got;
    reference.host = own->data;
    exact.host = wide->data;
    exact.dtype = (lfuser_dtype)wide->dtype;
    uint64_t count = got->kind == LFUSER_TENSOR ? got->count : 1;
    if (lf_is_complex(own->dtype)) {
        count *= 2;
        mine.dtype = reference.dtype = (lfuser_dtype)lf_dtype_part(own->dtype);
        exact.dtype = (lfuser_dtype)lf_dtype_part(wide->dtype);
    }
    bool floats = lf_is_float((lf_dtype)mine.dtype);
    double off = 0, size = 0;
    for (uint64_t i = 0; i < count; i++) {
        double e = bench_element(&exact, i), d = fabs(bench_element(&reference, i) - e);
        if (isfinite(d)) off = fmax(off, d);
        if (isfinite(e)) size += e * e / (double)count;
    }
    for (uint64_t i = 0; i < count; i++) {
        double e = bench_element(&exact, i), r = bench_element(&reference, i);
        // Overflow in the dtype itself, and integers, which f64 may reach by another way: the evaluator's word counts.
        if (!floats || isfinite(e) != isfinite(r))
            bench_compare(v, &mine, i, r, 0);
        else
            bench_compare(v, &mine, i, e, sqrt(size) + 4 * off / bench_allowed(mine.dtype));
    }
}

static bool same_outputs(const bench_case *c, const lf_interp_result *own, const lf_interp_result *wide) {
    bool same = own->n_outputs == c->n_outputs && wide->n_outputs == c->n_outputs;
    for (size_t i = 0; same && i < c->n_outputs; i++) {
        const bench_array *a = &c->outputs[i];
        const lf_array *b = &own->outputs[i];
        same = (int)a->dtype == (int)b->dtype && a->rank == b->rank && wide->outputs[i].rank == b->rank;
        for (uint32_t k = 0; same && k < a->rank; k++)
            same = a->shape[k] == b->shape[k] && wide->outputs[i].shape[k] == b->shape[k];
    }
    return same;
}

void bench_judge_any(bench_case *c, bench_verdict *v) {
    const char *reference = c->reference ? c->reference : c->text;
    char *text = widen(reference);
    lf_interp_result *own = evaluate(c, reference, false, v), *wide = own ? evaluate(c, text, true, v) : NULL;
    if (wide && !same_outputs(c, own, wide)) {
        v->ok = false;
        snprintf(v->what, sizeof v->what, "the reference has other outputs (number, dtype or shape)");
    }
    for (size_t i = 0; wide && v->ok && i < c->n_outputs; i++)
        compare(&c->outputs[i], &own->outputs[i], &wide->outputs[i], v);
    if (own) lf_interp_result_destroy(own);
    if (wide) lf_interp_result_destroy(wide);
    free(text);
}
