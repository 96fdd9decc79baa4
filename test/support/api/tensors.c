// See tensors.h.
#include "test/support/api/tensors.h"

static void set_strides(test_tensor *t, layout where) {
    int64_t stride = where == LAYOUT_GAPPED ? 2 : 1;
    for (uint32_t k = 0; k < t->rank; k++) {
        uint32_t a = where == LAYOUT_PERMUTED ? k : t->rank - 1 - k;
        if (where == LAYOUT_REPEATED && k == 0) {
            t->strides[a] = 0;
            continue;
        }
        t->strides[a] = where == LAYOUT_REVERSED ? -stride : stride;
        stride *= t->shape[a] ? t->shape[a] : 1;
        if (where == LAYOUT_GAPPED) stride += 3;
    }
}

void tensor_init(test_tensor *t, lfuser_dtype dtype, uint32_t rank, const int64_t *shape, layout where) {
    *t = (test_tensor){.dtype = dtype, .rank = rank, .bytes = lfuser_dtype_bytes(dtype)};
    bool empty = false;
    for (uint32_t a = 0; a < rank; a++) empty |= (t->shape[a] = shape[a]) == 0;
    set_strides(t, where);
    int64_t low = 0, high = -1;
    if (!empty) {
        high = 0;
        for (uint32_t a = 0; a < rank; a++) *(t->strides[a] < 0 ? &low : &high) += (t->shape[a] - 1) * t->strides[a];
    }
    t->first = GUARD_ELEMENTS - low + (where == LAYOUT_ODD);
    t->elements = t->first + high + 1 + GUARD_ELEMENTS;
    t->host = malloc((size_t)t->elements * t->bytes);
    if (!t->host) ck_abort_msg("no memory"); // not an assertion: programs without a Check runner make tensors too
    memset(t->host, POISON, (size_t)t->elements * t->bytes);
    t->view = (lfuser_tensor){.device = env.place,
                              .rank = (int32_t)rank,
                              .dtype = lfuser_dl_dtype_of(dtype),
                              .shape = t->shape,
                              .strides = t->strides,
                              .byte_offset = (uint64_t)t->first * t->bytes};
}

void tensor_finish(test_tensor *t) {
    if (t->memory) lfuser_memory_free(env.stream, t->memory);
    free(t->host);
    *t = (test_tensor){.host = NULL};
}

void tensor_upload(test_tensor *t) {
    if (!t->memory) ok(lfuser_memory_alloc(env.stream, (size_t)t->elements * t->bytes, &t->memory));
    ok(lfuser_memory_upload(env.stream, t->memory, t->host, (size_t)t->elements * t->bytes));
    synchronize();
    t->view.data = t->memory;
}

void tensor_download(test_tensor *t) {
    ok(lfuser_memory_download(env.stream, t->host, t->memory, (size_t)t->elements * t->bytes));
    synchronize();
}

int64_t tensor_numel(const test_tensor *t) {
    int64_t n = 1;
    for (uint32_t a = 0; a < t->rank; a++) n *= t->shape[a];
    return n;
}

void *tensor_element(const test_tensor *t, int64_t number) {
    int64_t at = t->first;
    for (uint32_t a = t->rank; a-- > 0; number /= t->shape[a]) at += number % t->shape[a] * t->strides[a];
    return t->host + at * t->bytes;
}

void tensor_each(const test_tensor *t, void (*visit)(void *context, int64_t number, unsigned char *element), void *context) {
    int64_t index[LFUSER_MAX_RANK] = {0}, n = tensor_numel(t), step = (int64_t)t->bytes;
    unsigned char *at = t->host + t->first * step;
    for (int64_t i = 0; i < n; i++) {
        visit(context, i, at);
        for (uint32_t a = t->rank; a-- > 0;) {
            at += t->strides[a] * step;
            if (++index[a] < t->shape[a]) break;
            at -= t->strides[a] * t->shape[a] * step;
            index[a] = 0;
        }
    }
}

typedef struct guards {
    const test_tensor *t;
    unsigned char *mine;
} guards;
static void mark(void *context, int64_t number, unsigned char *element) {
    guards *g = context;
    (void)number;
    g->mine[(element - g->t->host) / (int64_t)g->t->bytes] = 1;
}

void tensor_check_guards(const test_tensor *t, const char *what) {
    guards g = {t, calloc((size_t)t->elements, 1)};
    tensor_each(t, mark, &g);
    for (int64_t i = 0; i < t->elements; i++)
        for (uint32_t b = 0; b < t->bytes && !g.mine[i]; b++)
            if (t->host[i * t->bytes + b] != POISON)
                ck_abort_msg(
                    "%s: element %lld of the storage (which begins at %lld) lies outside the tensor, but was written", what,
                    (long long)i, (long long)t->first);
    free(g.mine);
}

void tensor_f32(test_tensor *t, uint32_t rank, const int64_t *shape, float start, float step) {
    tensor_init(t, LFUSER_F32, rank, shape, LAYOUT_DENSE);
    int64_t n = tensor_numel(t);
    for (int64_t i = 0; i < n; i++) *(float *)tensor_element(t, i) = start + step * (float)i;
    tensor_upload(t);
}

float tensor_f32_at(const test_tensor *t, int64_t number) { return *(float *)tensor_element(t, number); }

// ---- elements ------------------------------------------------------------------------------------------------------------------

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static const double edges[] = {0.0,
                               -0.0,
                               1.0,
                               -1.0,
                               0.5,
                               -0.5,
                               1.5,
                               2.5,
                               -2.5,
                               3.0,
                               7.0,
                               -8.0,
                               20.5,
                               100.3,
                               0.1,
                               1e-3,
                               88.5,
                               -87.5,
                               -103.5,
                               709.5,
                               255.0,
                               256.0,
                               -128.5,
                               65504.0,
                               65520,
                               0x1p31,
                               -0x1.2p31,
                               0x1p63,
                               -0x1p63,
                               0x1p64,
                               1e38,
                               1e308,
                               1e-40,
                               1e-310,
                               0x1p-24,
                               0x1p-149,
                               5e-324,
                               0x1.004p0,
                               0x1.00400001p0,
                               0x1.01p0,
                               0x1.0100000001p0,
                               3.14159265358979};
static const uint64_t whole_edges[] = {0,
                                       1,
                                       2,
                                       3,
                                       5,
                                       7,
                                       8,
                                       15,
                                       16,
                                       31,
                                       32,
                                       33,
                                       63,
                                       64,
                                       65,
                                       127,
                                       128,
                                       255,
                                       256,
                                       2049,
                                       32767,
                                       32768,
                                       65535,
                                       16777217,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       0x20000000000001,
                                       0x7fffffffffffffff,
                                       0x8000000000000000};

static uint64_t float_bits(lfuser_dtype d, double x) {
    uint64_t bits = 0;
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, 4);
    switch (d) {
    case LFUSER_F64: memcpy(&bits, &x, 8); return bits;
    case LFUSER_BF16: return u >> 16;
    case LFUSER_F16: { // toward zero; what is too large becomes infinite
        _Float16 h = (_Float16)f;
        uint16_t v;
        memcpy(&v, &h, 2);
        return v;
    }
    default: return u;
    }
}

static double moderate(uint64_t bits) { return (double)(int64_t)bits * 0x1p-60; } // -8 … 8

// One component.
static void fill_part(lfuser_dtype d, fill kind, uint64_t *state, void *out) {
    static const uint64_t specials[][4] = {
        [LFUSER_F16] = {0x7c00, 0xfc00, 0x7e00, 0xfe01},
        [LFUSER_BF16] = {0x7f80, 0xff80, 0x7fc0, 0xffc1},
        [LFUSER_F32] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001},
        [LFUSER_F64] = {0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001}};
    uint64_t choice = next_random(state), bits = next_random(state);
    bool real = d >= LFUSER_F16;
    if (d == LFUSER_BOOL) {
        bits = kind == FILL_EDGES && choice % 8 == 0 ? bits | 2 : bits & 1; // any byte but 0 is true
    } else if (kind == FILL_INDEX) {
        bits = (uint64_t)((int64_t)(bits % 6) - 3);
    } else if (kind == FILL_SMALL) {
        bits = real ? float_bits(d, (double)(bits % 8 + 1) * 0.125) : bits % 3;
    } else if (kind == FILL_PLAIN || choice % 8 == 6) {
        bits = real ? float_bits(d, moderate(bits)) : (uint64_t)((int64_t)bits >> 58);
    } else if (choice % 8 == 5 && real) {
        bits = specials[d][bits % 4];
    } else if (choice % 8 < 5) {
        uint64_t sign = choice >> 32 & 1;
        if (real)
            bits = float_bits(d, edges[bits % (sizeof edges / sizeof *edges)]);
        else
            bits = whole_edges[bits % (sizeof whole_edges / sizeof *whole_edges)];
        if (sign && !real) bits = 0 - bits;
    }
    memcpy(out, &bits, lfuser_dtype_bytes(d));
}

void fill_element(lfuser_dtype d, fill kind, uint64_t *state, void *out) {
    bool is_complex = d >= LFUSER_C64;
    lfuser_dtype part = !is_complex ? d : d == LFUSER_C64 ? LFUSER_F32 : LFUSER_F64;
    for (unsigned i = 0; i <= is_complex; i++) fill_part(part, kind, state, (char *)out + i * lfuser_dtype_bytes(part));
}

typedef struct filler {
    lfuser_dtype dtype;
    fill kind;
    uint64_t state;
} filler;
static void fill_one(void *context, int64_t number, unsigned char *element) {
    filler *f = context;
    (void)number;
    fill_element(f->dtype, f->kind, &f->state, element);
}

void tensor_fill(test_tensor *t, fill kind, uint64_t seed) { tensor_each(t, fill_one, &(filler){t->dtype, kind, seed}); }
