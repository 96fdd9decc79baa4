// .npy: "\x93NUMPY", a version, a length, a Python dictionary of three entries as text, then the elements.
#include "npy.h"
#include "output.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

// Every dtype that a file can name.
static const struct row {
    char kind;
    uint8_t bytes, component; // component: what byte order is about
    lf_dtype dtype;
} rows[] = {{'b', 1, 1, LF_BOOL}, {'i', 1, 1, LF_I8},  {'i', 2, 2, LF_I16}, {'i', 4, 4, LF_I32},   {'i', 8, 8, LF_I64},
            {'u', 1, 1, LF_U8},   {'u', 2, 2, LF_U16}, {'u', 4, 4, LF_U32}, {'u', 8, 8, LF_U64},   {'f', 2, 2, LF_F16},
            {'f', 4, 4, LF_F32},  {'f', 8, 8, LF_F64}, {'c', 8, 4, LF_C64}, {'c', 16, 8, LF_C128}, {'V', 2, 2, LF_NO_DTYPE}};
enum { N_ROWS = sizeof rows / sizeof *rows };

// ---- the header's text -----------------------------------------------------------------------------------------------------

typedef struct reader {
    const lf_allocator *a;
    const char *name;
    const char *at, *end, *start;
} reader;

static lf_status bad(const reader *r, const char *what) LF_MUST_USE;
static lf_status bad(const reader *r, const char *what) {
    return lf_error(r->a, LF_IO_ERROR, "%s: not a readable .npy file: %s at byte %zu of the header", r->name, what,
                    (size_t)(r->at - r->start));
}

static void blanks(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

static bool take(reader *r, char c) {
    blanks(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

// A quoted string without escapes, cut to what `out` holds.
static lf_status read_string(reader *r, char *out, size_t size) {
    blanks(r);
    char quote = r->at < r->end ? *r->at : 0;
    if (quote != '\'' && quote != '"') return bad(r, "expected a string");
    const char *from = ++r->at;
    while (r->at < r->end && *r->at != quote && *r->at != '\\') r->at++;
    if (r->at == r->end || *r->at != quote) return bad(r, "a string does not end");
    size_t n = (size_t)(r->at++ - from);
    if (n >= size) n = size - 1;
    memcpy(out, from, n);
    out[n] = 0;
    return NULL;
}

static lf_status read_bool(reader *r, bool *out) {
    static const char *const words[] = {"False", "True"};
    blanks(r);
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(r->end - r->at) < n || memcmp(r->at, words[i], n) != 0) continue;
        r->at += n;
        *out = i;
        return NULL;
    }
    return bad(r, "expected True or False");
}

static lf_status read_shape(reader *r, lf_npy *out) {
    if (!take(r, '(')) return bad(r, "expected the shape in parentheses");
    bool comma = true;
    for (;;) {
        if (take(r, ')')) {
            // (3) is a number to Python, and no shape.
            return out->rank == 1 && !comma ? bad(r, "a shape of one extent ends in a comma") : NULL;
        }
        if (!comma) return bad(r, "expected ',' or ')'");
        blanks(r);
        uint64_t extent = 0;
        const char *from = r->at;
        for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
            if (__builtin_mul_overflow(extent, 10u, &extent) ||
                __builtin_add_overflow(extent, (uint64_t)(*r->at - '0'), &extent) || extent > INT64_MAX)
                return bad(r, "an extent is beyond 63 bits");
        if (r->at == from) return bad(r, "expected an extent of 0 or more");
        if (out->rank == LF_MAX_RANK) return bad(r, "more than 8 axes");
        out->shape[out->rank++] = (int64_t)extent;
        comma = take(r, ',');
    }
}

static const struct row *find_row(const char *descr) {
    char order = descr[0];
    if (order != '<' && order != '>' && order != '|' && order != '=') return NULL;
    for (int i = 0; i < N_ROWS; i++) {
        char text[8];
        snprintf(text, sizeof text, "%c%u", rows[i].kind, rows[i].bytes);
        // '|' says that byte order does not matter: true of single bytes and of raw ones.
        if (!strcmp(text, descr + 1) && (order != '|' || rows[i].component == 1 || rows[i].kind == 'V')) return &rows[i];
    }
    return NULL;
}

static lf_status read_descr(reader *r, lf_npy *out, const struct row **out_row) {
    char text[32];
    blanks(r);
    if (r->at < r->end && *r->at == '[')
        return lf_error(r->a, LF_UNSUPPORTED, "%s: holds records of several fields; expected one number an element",
                        r->name);
    LF_TRY(read_string(r, text, sizeof text));
    const struct row *row = find_row(text);
    if (!row)
        return lf_error(r->a, LF_UNSUPPORTED,
                        "%s: elements of type '%s' are not read; expected b1, i1 to i8, u1 to u8, f2, f4, f8, c8, c16 or V2",
                        r->name, text);
    snprintf(out->descr, sizeof out->descr, "%.7s", text);
    out->dtype = row->dtype;
    out->element = row->bytes;
    *out_row = row;
    return NULL;
}

static lf_status read_header(reader *r, lf_npy *out, bool *out_fortran, const struct row **out_row) {
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    unsigned seen = 0;
    if (!take(r, '{')) return bad(r, "expected '{'");
    for (bool comma = true; !take(r, '}'); comma = take(r, ',')) {
        char key[16];
        if (!comma) return bad(r, "expected ',' or '}'");
        LF_TRY(read_string(r, key, sizeof key));
        unsigned bit = !strcmp(key, "descr")           ? DESCR
                       : !strcmp(key, "fortran_order") ? ORDER
                       : !strcmp(key, "shape")         ? SHAPE
                                                       : 0;
        if (!bit) return bad(r, "a key other than descr, fortran_order and shape");
        if (seen & bit) return bad(r, "a key twice");
        seen |= bit;
        if (!take(r, ':')) return bad(r, "expected ':'");
        if (bit == DESCR) LF_TRY(read_descr(r, out, out_row));
        if (bit == ORDER) LF_TRY(read_bool(r, out_fortran));
        if (bit == SHAPE) LF_TRY(read_shape(r, out));
    }
    blanks(r);
    if (seen != (DESCR | ORDER | SHAPE)) return bad(r, "descr, fortran_order or shape is missing");
    return r->at < r->end ? bad(r, "something behind '}'") : NULL;
}

// ---- the elements ------------------------------------------------------------------------------------------------------------

static lf_status measure(const reader *r, lf_npy *out, bool fortran) {
    uint64_t elements = 1;
    bool overflow = false, empty = false;
    for (unsigned i = 0; i < out->rank; i++) {
        unsigned axis = fortran ? i : out->rank - 1 - i;
        out->strides[axis] = (int64_t)elements;
        empty |= out->shape[axis] == 0;
        // Beyond an extent of 0 strides mean nothing, but they stay positive and in range.
        if (out->shape[axis] && __builtin_mul_overflow(elements, (uint64_t)out->shape[axis], &elements))
            overflow = true, elements = 1;
        overflow |= elements > INT64_MAX / 16;
    }
    if (empty) {
        for (unsigned i = 0; overflow && i < out->rank; i++) out->strides[i] = 1;
        out->bytes = 0;
        return NULL;
    }
    if (overflow) return lf_error(r->a, LF_IO_ERROR, "%s: its shape has more elements than fit memory", r->name);
    out->bytes = elements * out->element;
    return NULL;
}

static void swap_bytes(uint8_t *data, uint64_t bytes, unsigned component) {
    for (uint64_t at = 0; at < bytes; at += component)
        for (unsigned i = 0; i < component / 2; i++) {
            uint8_t other = data[at + i];
            data[at + i] = data[at + component - 1 - i];
            data[at + component - 1 - i] = other;
        }
}

lf_status lf_npy_parse(const lf_allocator *a, const char *name, const void *file, size_t size, lf_npy *out) {
    *out = (lf_npy){0};
    const uint8_t *bytes = file;
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return lf_error(a, LF_IO_ERROR, "%s: not an .npy file: its %zu bytes do not begin with \\x93NUMPY and a version",
                        name, size);
    unsigned major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return lf_error(a, LF_UNSUPPORTED, "%s: .npy version %u.%u; expected 1.0, 2.0 or 3.0", name, major, minor);
    size_t before = major == 1 ? 10 : 12, length = bytes[8] | (size_t)bytes[9] << 8;
    if (size >= before && major > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (size < before || length > size - before)
        return lf_error(a, LF_IO_ERROR, "%s: cut off: a header of %zu bytes is announced, %zu bytes are left", name, length,
                        size < before ? 0 : size - before);
    const char *text = (const char *)bytes + before;
    reader r = {.a = a, .name = name, .at = text, .end = text + length, .start = text};
    bool fortran = false;
    const struct row *row = NULL;
    lf_status s = read_header(&r, out, &fortran, &row);
    if (!s) s = measure(&r, out, fortran);
    size_t left = size - before - length;
    if (!s && out->bytes > left)
        s = lf_error(a, LF_IO_ERROR, "%s: cut off: the shape needs %llu bytes of elements, %zu are left", name,
                     (unsigned long long)out->bytes, left);
    if (!s && out->bytes) {
        out->data = lf_alloc(a, out->bytes);
        if (!out->data)
            s = lf_out_of_memory();
        else
            memcpy(out->data, text + length, out->bytes);
        if (!s && out->descr[0] == '>') swap_bytes(out->data, out->bytes, row->component);
    }
    if (s) *out = (lf_npy){0};
    return s;
}

lf_status lf_read_file(const lf_allocator *a, const char *path, char **out_data, size_t *out_size) {
    *out_data = NULL;
    *out_size = 0;
    FILE *in = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!in) return lf_error(a, LF_IO_ERROR, "%s: cannot be opened: %s", path, strerror(errno));
    size_t size = 0, room = 1 << 16;
    char *data = lf_alloc(a, room);
    bool failed = false;
    while (data) {
        size_t n = fread(data + size, 1, room - 1 - size, in);
        size += n;
        if (size < room - 1) break;
        char *grown = lf_resize(a, data, room *= 2);
        if (!grown) lf_free(a, data);
        data = grown;
    }
    failed = ferror(in);
    int error = errno;
    if (in != stdin) fclose(in);
    if (!data) return lf_out_of_memory();
    if (failed) {
        lf_free(a, data);
        return lf_error(a, LF_IO_ERROR, "%s: cannot be read: %s", path, strerror(error));
    }
    data[size] = 0;
    *out_data = data;
    *out_size = size;
    return NULL;
}

lf_status lf_npy_read(const lf_allocator *a, const char *path, lf_npy *out) {
    char *file;
    size_t size;
    *out = (lf_npy){0};
    LF_TRY(lf_read_file(a, path, &file, &size));
    lf_status s = lf_npy_parse(a, path, file, size, out);
    lf_free(a, file);
    return s;
}

void lf_npy_finish(const lf_allocator *a, lf_npy *array) {
    lf_free(a, array->data);
    *array = (lf_npy){0};
}

// ---- writing -----------------------------------------------------------------------------------------------------------------

lf_status lf_npy_write(const lf_allocator *a, const char *path, lf_dtype dtype, unsigned rank, const int64_t *shape,
                       const void *data) {
    lf_dtype named = dtype == LF_BF16 ? LF_U16 : dtype;
    const struct row *row = NULL;
    for (int i = 0; i < N_ROWS; i++)
        if (rows[i].dtype == named && named) row = &rows[i];
    if (!row || rank > LF_MAX_RANK)
        return lf_error(a, LF_INVALID_ARGUMENT, "%s: rank %u of %s cannot be written", path, rank, lf_dtype_name(dtype));
    char header[512];
    size_t elements = 1;
    int n = snprintf(header + 10, sizeof header - 10, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
                     row->component == 1 ? '|' : '<', row->kind, row->bytes);
    for (unsigned i = 0; i < rank; i++) {
        n += snprintf(header + 10 + n, sizeof header - 10 - (size_t)n,
                      i + 1 < rank ? "%lld, "
                      : rank == 1  ? "%lld,"
                                   : "%lld",
                      (long long)shape[i]);
        elements *= (size_t)shape[i];
    }
    n += snprintf(header + 10 + n, sizeof header - 10 - (size_t)n, "), }");
    size_t total = ((size_t)n + 10 + 1 + 63) / 64 * 64;
    memset(header + 10 + n, ' ', total - 10 - (size_t)n);
    header[total - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01", 8);
    header[8] = (char)((total - 10) & 255);
    header[9] = (char)((total - 10) >> 8);
    FILE *to = lf_output_open(path);
    bool good = to != NULL;
    if (to) {
        fwrite(header, 1, total, to); // what fails stays with the file until it is closed
        fwrite(data ? data : "", row->bytes, elements, to);
        good = lf_output_close(to, path, true);
    }
    int error = errno;
    return good ? NULL : lf_error(a, LF_IO_ERROR, "%s: cannot be written: %s", path, strerror(error));
}
