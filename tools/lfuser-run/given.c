// Arguments as they stand on the command line.
#include "run.h"
#include "base/text.h"
#include "base/vec.h"
#include "tools/common/npy.h"
#include <stdio.h>
#include <string.h>

typedef struct given {
    const lf_allocator *a;
    const lfuser_value_info *param;
    lf_dtype dtype;
    const char *text;
    lf_array *out;
} given;

const char *lf_expectation(char *buffer, size_t size, const lfuser_value_info *info) {
    const char *dtype = lfuser_dtype_name(info->dtype);
    if (info->kind == LFUSER_TENSOR)
        snprintf(buffer, size, "a tensor of %s of rank %u", dtype, info->rank);
    else
        snprintf(buffer, size, "a scalar of %s%s", dtype, info->kind == LFUSER_HOST_TENSOR ? " (@host)" : "");
    return buffer;
}

static lf_status bad(const given *g, const char *format, ...) LF_MUST_USE __attribute__((format(printf, 2, 3)));
static lf_status bad(const given *g, const char *format, ...) {
    lf_text t;
    char *text, expected[64];
    lf_text_init(&t, g->a);
    va_list args;
    va_start(args, format);
    char what[400];
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    size_t n = strlen(g->text);
    lf_text_put(&t, "--arg %s=%.60s%s: %s; expected %s", g->param->name, g->text, n > 60 ? "..." : "", what,
                lf_expectation(expected, sizeof expected, g->param));
    LF_TRY(lf_text_take(&t, &text));
    lf_status s = lf_error(g->a, LF_INVALID_ARGUMENT, "%s", text);
    lf_free(g->a, text);
    return s;
}

// ---- one number -----------------------------------------------------------------------------------------------------------

static const char *trim(const char *text, size_t *n) {
    while (*n && (*text == ' ' || *text == '\t' || *text == '\n')) text++, --*n;
    while (*n && (text[*n - 1] == ' ' || text[*n - 1] == '\t' || text[*n - 1] == '\n')) --*n;
    return text;
}

// A real number or a bool as d, rounded once. Also "+1", for the parts of complex numbers.
static bool read_real(const char *text, size_t n, lf_dtype d, lf_scalar *out, bool *out_range) {
    lf_literal l;
    if (n > 1 && *text == '+' && text[1] != '-') text++, n--;
    if (n > 1 && *text == '-' && n == 4 && !memcmp(text, "-nan", 4)) text++, n--;
    if (!lf_literal_parse(text, n, &l)) return false;
    if ((l.kind == LF_LITERAL_BOOL) != (d == LF_BOOL)) return false;
    *out_range = lf_literal_to(&l, d, out);
    return true;
}

// a, bj, a+bj
static bool read_complex(const char *text, size_t n, lf_dtype d, lf_scalar *out) {
    lf_dtype part = lf_dtype_part(d);
    unsigned bytes = lf_dtype_bytes(part);
    lf_scalar re = {.word = {0, 0}}, im = {.word = {0, 0}};
    bool fits;
    *out = (lf_scalar){.word = {0, 0}};
    if (n > 1 && text[n - 1] == 'j') {
        bool hex = memchr(text, 'x', n) || memchr(text, 'X', n);
        size_t split = n - 1;
        for (size_t i = 1; i + 1 < n; i++) {
            char before = (char)(text[i - 1] | 32);
            if ((text[i] == '+' || text[i] == '-') && before != 'p' && (hex || before != 'e')) split = i;
        }
        bool both = split < n - 1;
        if (both && !read_real(text, split, part, &re, &fits)) return false;
        if (!read_real(text + (both ? split : 0), both ? n - 1 - split : n - 1, part, &im, &fits)) return false;
    } else if (!read_real(text, n, part, &re, &fits)) {
        return false;
    }
    memcpy(out, &re, bytes);
    memcpy((char *)out + bytes, &im, bytes);
    return true;
}

static lf_status read_number(const given *g, const char *text, size_t n, lf_scalar *out) {
    bool fits = true;
    text = trim(text, &n);
    bool read = lf_is_complex(g->dtype) ? read_complex(text, n, g->dtype, out) : read_real(text, n, g->dtype, out, &fits);
    int shown = n > 40 ? 40 : (int)n;
    if (read && fits) return NULL;
    const char *name = lf_dtype_name(g->dtype);
    if (!lf_is_integer(g->dtype)) return bad(g, "'%.*s' is no value of %s", shown, text, name);
    unsigned bits = 8 * lf_dtype_bytes(g->dtype);
    bool is_unsigned = lf_is_unsigned(g->dtype);
    unsigned long long top = UINT64_MAX >> (64 - bits + !is_unsigned), low = is_unsigned ? 0 : top + 1;
    return bad(g, "'%.*s' is no whole number from %s%llu to %llu", shown, text, is_unsigned ? "" : "-", low, top);
}

// ---- nested lists ---------------------------------------------------------------------------------------------------------

static lf_status close_list(const given *g, int64_t count, unsigned depth, unsigned *leaf) {
    int64_t *extent = &g->out->shape[depth - 1];
    if (*extent < 0) *extent = count;
    if (*extent != count)
        return bad(g, "lists of unequal lengths, %lld and %lld, along axis %u", (long long)*extent, (long long)count,
                   depth - 1);
    if (!count && !*leaf) *leaf = depth;
    return NULL;
}

static lf_status read_list(given *g) {
    LF_VEC(uint8_t) data;
    lf_vec_init(&data, g->a);
    int64_t counts[LFUSER_MAX_RANK] = {0};
    unsigned depth = 0, leaf = 0, bytes = lf_dtype_bytes(g->dtype);
    bool element = true; // one may stand here, else a ',' or a ']' has to
    lf_status s = NULL;
    for (int k = 0; k < LFUSER_MAX_RANK; k++) g->out->shape[k] = -1;
    const char *at = g->text;
    do {
        while (*at == ' ' || *at == '\t' || *at == '\n') at++;
        if (*at == '[' && element) {
            if (depth == LFUSER_MAX_RANK || (leaf && depth == leaf))
                s = bad(g, "a list nests deeper than %u", depth);
            else
                counts[depth++] = 0;
            at++;
        } else if (*at == ']' && depth && (!element || !counts[depth - 1])) {
            s = close_list(g, counts[depth - 1], depth, &leaf);
            depth--;
            if (depth) counts[depth - 1]++;
            element = false;
            at++;
        } else if (*at == ',' && !element && depth) {
            element = true;
            at++;
        } else if (*at && *at != ',' && *at != ']' && *at != '[' && element) {
            size_t n = strcspn(at, ",[]");
            lf_scalar value;
            if (!leaf) leaf = depth;
            if (leaf != depth)
                s = bad(g, "numbers beside lists, at depth %u and %u", leaf, depth);
            else
                s = read_number(g, at, n, &value);
            if (!s && !lf_vec_reserve(&data, bytes)) s = lf_out_of_memory();
            if (!s) {
                memcpy(data.data + data.count, &value, bytes);
                data.count += bytes;
                counts[depth - 1]++;
            }
            element = false;
            at += n;
        } else {
            s = bad(g, "%s%.12s%s in the list", *at ? "unexpected '" : "the end comes too early", at, *at ? "'" : "");
        }
    } while (!s && depth);
    while (!s && (*at == ' ' || *at == '\t' || *at == '\n')) at++;
    if (!s && *at) s = bad(g, "'%.12s' behind the list", at);
    g->out->rank = leaf;
    g->out->data = data.data;
    g->out->bytes = data.count;
    return s;
}

// ---- rand, iota, full -----------------------------------------------------------------------------------------------------

// "8,6" up to `end`
static lf_status read_shape(const given *g, const char *text, const char *end) {
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text)), *stop = comma ? comma : end;
        size_t n = (size_t)(stop - text);
        const char *word = trim(text, &n);
        lf_literal l;
        if (!lf_literal_parse(word, n, &l) || l.kind != LF_LITERAL_INT || l.negative || l.magnitude > INT64_MAX)
            return bad(g, "'%.*s' is not an extent", (int)(n > 40 ? 40 : n), word);
        if (g->out->rank == LFUSER_MAX_RANK) return bad(g, "more than %d extents", LFUSER_MAX_RANK);
        g->out->shape[g->out->rank++] = (int64_t)l.magnitude;
        text = stop + 1;
        if (comma && text == end) return bad(g, "an extent is missing behind the last ','");
    }
    return NULL;
}

static lf_status allocate(const given *g) {
    lf_array *out = g->out;
    uint64_t bytes = lf_dtype_bytes(g->dtype);
    bool empty = false, overflow = false;
    for (unsigned k = 0; k < out->rank; k++) {
        empty |= !out->shape[k];
        overflow |= __builtin_mul_overflow(bytes, (uint64_t)out->shape[k], &bytes) || bytes > INT64_MAX;
    }
    if (empty) return NULL;
    if (overflow) return bad(g, "more elements than fit memory");
    out->data = lf_alloc(g->a, bytes);
    if (!out->data) return bad(g, "%llu bytes are more than there is memory for", (unsigned long long)bytes);
    out->bytes = bytes;
    return NULL;
}

// SplitMix64: a number of its own for every (seed, position).
static uint64_t random_word(uint64_t seed, uint64_t at) {
    uint64_t z = seed * 0xd1342543de82ef95u + (at + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// A float in [0, 1) with as many bits as the dtype has, so that none rounds to 1; an integer in [0, 100); a bool.
static lf_scalar random_scalar(lf_dtype d, uint64_t word) {
    lf_scalar s = {.word = {0, 0}};
    switch (d) {
    case LF_BOOL: s.b = word >> 63; break;
    case LF_F16: s.u16 = lf_f32_to_half(d, (float)(word >> 53) * 0x1p-11f); break;
    case LF_BF16: s.u16 = lf_f32_to_half(d, (float)(word >> 56) * 0x1p-8f); break;
    case LF_F32: s.f32 = (float)(word >> 40) * 0x1p-24f; break;
    case LF_F64: s.f64 = (double)(word >> 11) * 0x1p-53; break;
    default: s.word[0] = (word >> 32) * 100 >> 32; break;
    }
    return s;
}

// Integers wrap, as a cast does; everything else rounds once.
static lf_scalar counted_scalar(lf_dtype d, uint64_t at) {
    lf_scalar s = {.word = {at, 0}};
    if (lf_is_integer(d)) return s;
    if (d == LF_BOOL) {
        s.word[0] = at != 0;
        return s;
    }
    lf_literal l = {.kind = LF_LITERAL_INT, .magnitude = at};
    lf_literal_to(&l, d, &s);
    return s;
}

static void fill_random(const given *g, uint64_t seed) {
    lf_dtype part = lf_dtype_part(g->dtype);
    unsigned bytes = lf_dtype_bytes(part);
    for (uint64_t at = 0; at < g->out->bytes / bytes; at++) {
        lf_scalar s = random_scalar(part, random_word(seed, at));
        memcpy((char *)g->out->data + at * bytes, &s, bytes);
    }
}

static void fill_counted(const given *g) {
    lf_dtype part = lf_dtype_part(g->dtype);
    unsigned bytes = lf_dtype_bytes(g->dtype), part_bytes = lf_dtype_bytes(part);
    for (uint64_t at = 0; at < g->out->bytes / bytes; at++) {
        lf_scalar s = counted_scalar(part, at), zero = {.word = {0, 0}};
        memcpy((char *)g->out->data + at * bytes, &s, part_bytes);
        memcpy((char *)g->out->data + at * bytes + part_bytes, &zero, bytes - part_bytes);
    }
}

static lf_status generate(given *g, const char *name, const char *inside) {
    size_t length = strlen(g->text);
    const char *end = g->text + length;
    while (end > inside && (end[-1] == ' ' || end[-1] == '\n')) end--;
    if (end == inside || end[-1] != ')') return bad(g, "'%s(' has no ')' at its end", name);
    end--;
    const char *semicolon = memchr(inside, ';', (size_t)(end - inside));
    const char *extra = semicolon ? semicolon + 1 : NULL;
    size_t n = extra ? (size_t)(end - extra) : 0;
    LF_TRY(read_shape(g, inside, semicolon ? semicolon : end));
    if (!strcmp(name, "iota")) {
        if (extra) return bad(g, "iota takes extents alone");
        LF_TRY(allocate(g));
        fill_counted(g);
        return NULL;
    }
    if (!strcmp(name, "rand")) {
        lf_literal seed = lf_literal_int(0);
        const char *word = extra ? trim(extra, &n) : NULL;
        if (extra && (!lf_literal_parse(word, n, &seed) || seed.kind != LF_LITERAL_INT))
            return bad(g, "'%.*s' is not a seed", (int)(n > 40 ? 40 : n), word);
        LF_TRY(allocate(g));
        fill_random(g, seed.negative ? 0 - seed.magnitude : seed.magnitude);
        return NULL;
    }
    lf_scalar value;
    unsigned bytes = lf_dtype_bytes(g->dtype);
    if (!extra) return bad(g, "full wants its value behind ';', as in full(8,6;1.5)");
    LF_TRY(read_number(g, extra, n, &value));
    LF_TRY(allocate(g));
    for (uint64_t at = 0; at < g->out->bytes; at += bytes) memcpy((char *)g->out->data + at, &value, bytes);
    return NULL;
}

// ---- files ----------------------------------------------------------------------------------------------------------------

static lf_status read_npy(given *g, const char *path) {
    lf_npy file;
    lf_status s = lf_npy_read(g->a, path, &file);
    if (s) {
        lf_status named = bad(g, "%s", lf_status_message(s));
        lf_status_destroy(s);
        return named;
    }
    lf_array *out = g->out;
    out->rank = file.rank;
    memcpy(out->shape, file.shape, sizeof out->shape);
    memcpy(out->strides, file.strides, sizeof out->strides);
    out->bytes = file.bytes;
    out->data = file.data;
    // .npy has no bf16: its bits are kept as u2, or as V2 by packages that add the type to NumPy.
    bool same = file.dtype == g->dtype || (g->dtype == LF_BF16 && (file.dtype == LF_U16 || file.dtype == LF_NO_DTYPE));
    if (!same) return bad(g, "the file holds %s ('%s')", file.dtype ? lf_dtype_name(file.dtype) : "raw bytes", file.descr);
    return NULL;
}

// ---- all forms ------------------------------------------------------------------------------------------------------------

static void row_major(lf_array *array) {
    int64_t stride = 1;
    for (unsigned k = array->rank; k-- > 0;) {
        array->strides[k] = stride;
        if (__builtin_mul_overflow(stride, array->shape[k] ? array->shape[k] : 1, &stride))
            stride = 1; // empty: read by nobody
    }
}

static lf_status read_any(given *g) {
    static const char *const generators[] = {"rand", "iota", "full"};
    lf_array *out = g->out;
    const char *text = g->text;
    out->tensor = true;
    if (*text == '@') return read_npy(g, text + 1);
    if (*text == '[') {
        LF_TRY(read_list(g));
        row_major(out);
        return NULL;
    }
    for (size_t i = 0; i < sizeof generators / sizeof *generators; i++) {
        size_t n = strlen(generators[i]);
        if (strncmp(text, generators[i], n) != 0 || text[n] != '(') continue;
        LF_TRY(generate(g, generators[i], text + n + 1));
        row_major(out);
        return NULL;
    }
    lf_scalar value;
    LF_TRY(read_number(g, text, strlen(text), &value));
    out->tensor = false;
    out->bytes = lf_dtype_bytes(g->dtype);
    out->data = lf_alloc(g->a, sizeof value);
    if (!out->data) return lf_out_of_memory();
    memcpy(out->data, &value, sizeof value);
    return NULL;
}

lf_status lf_given_parse(const lf_allocator *a, const lfuser_value_info *param, const char *text, lf_array *out) {
    *out = (lf_array){.dtype = (lf_dtype)param->dtype};
    given g = {.a = a, .param = param, .dtype = (lf_dtype)param->dtype, .text = text, .out = out};
    lf_status s = read_any(&g);
    if (!s && param->kind == LFUSER_SCALAR && out->tensor) s = bad(&g, "a tensor of rank %u for a scalar", out->rank);
    // A number does for a tensor of rank 0, which has one element.
    if (!s && out->rank != param->rank) s = out->tensor ? bad(&g, "rank %u", out->rank) : bad(&g, "a number for a tensor");
    if (s) {
        lf_free(a, out->data);
        *out = (lf_array){0};
    }
    return s;
}
