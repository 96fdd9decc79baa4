// A cell of the elementwise table by the interpreter, and the comparison of what compiled code gave with it.
#ifndef TEST_EMIT_INTERP_H
#define TEST_EMIT_INTERP_H
#include "interp/internal.h"
#include "test_emit_cells.h"

static lf_eval_fn *const interp_families[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = lf_eval_##family,
#include "ir/ops.def"
};

// Halves that a family does not know are computed in f32, as lf_run_elem does.
static inline void interp_cell(const cell *c, void *const src[4], void *dst, size_t n) {
    static float wide[4][LF_BLOCK];
    static lf_c128 result[LF_BLOCK];
    for (size_t done = 0; done < n; done += LF_BLOCK) {
        lf_eval e = {.code = c->code, .out = c->out, .number = c->number, .flag = c->flag};
        e.n = n - done < LF_BLOCK ? n - done : LF_BLOCK;
        for (unsigned i = 0; i < c->n; i++) {
            e.in[i] = c->in[i];
            e.src[i] = c->omit[i] ? NULL : (char *)src[i] + done * lf_dtype_bytes(c->in[i]);
        }
        e.dst = (char *)dst + done * lf_dtype_bytes(c->out);
        if (interp_families[c->code](&e)) continue;
        void *out = e.dst;
        for (unsigned i = 0; i < c->n; i++) {
            if (!lf_is_half(e.in[i])) continue;
            const uint16_t *half = e.src[i];
            for (size_t k = 0; half && k < e.n; k++) wide[i][k] = lf_half_to_f32(e.in[i], half[k]);
            if (e.src[i]) e.src[i] = wide[i];
            e.in[i] = LF_F32;
        }
        e.half = lf_is_half(c->out);
        if (e.half) e.out = LF_F32;
        e.dst = result;
        ck_assert_msg(interp_families[c->code](&e), "the interpreter has no %s", cell_name(c));
        if (lf_is_half(c->out))
            for (size_t k = 0; k < e.n; k++) ((uint16_t *)out)[k] = lf_f32_to_half(c->out, ((float *)e.dst)[k]);
        else memcpy(out, result, e.n * lf_dtype_bytes(c->out));
    }
}

static inline uint64_t bits_at(const void *data, unsigned bytes, size_t i) {
    uint64_t bits = 0;
    memcpy(&bits, (const char *)data + i * bytes, bytes);
    return bits;
}

static inline bool is_nan_bits(lf_dtype part, uint64_t bits) {
    static const uint64_t infinity[LF_DTYPE_COUNT] = {
        [LF_F16] = 0x7c00, [LF_BF16] = 0x7f80, [LF_F32] = 0x7f800000, [LF_F64] = 0x7ff0000000000000};
    uint64_t sign = 1ull << (8 * lf_dtype_bytes(part) - 1);
    return lf_is_float(part) && (bits & (sign - 1)) > infinity[part];
}

// Distance in units of the last place; the bits of a float order it by magnitude.
static inline uint64_t ulps_apart(lf_dtype part, uint64_t a, uint64_t b) {
    uint64_t sign = 1ull << (8 * lf_dtype_bytes(part) - 1);
    uint64_t x = a & sign ? sign - (a & ~sign) : sign + a, y = b & sign ? sign - (b & ~sign) : sign + b;
    return x > y ? x - y : y - x;
}

// NULL, or what differs first. All bits must be equal, but that NaNs of arithmetic are one; `slack`: allowed ulps.
static inline const char *difference(const cell *c, const char *where, void *const src[4], const void *got,
                                     const void *want, size_t n, uint64_t slack) {
    lf_dtype part = lf_dtype_part(c->out);
    unsigned bytes = lf_dtype_bytes(part);
    bool is_complex = lf_is_complex(c->out), moves = c->code == LF_OP_BITCAST || c->code == LF_OP_SELECT;
    // A fractional power of two is a function value like exp2, which the interpreter takes in another precision.
    if (c->code == LF_OP_LDEXP && lf_is_float(c->in[1])) slack = 64;
    for (size_t i = 0; i < (is_complex ? 2 * n : n); i++) {
        uint64_t g = bits_at(got, bytes, i), w = bits_at(want, bytes, i);
        bool g_nan = is_nan_bits(part, g), w_nan = is_nan_bits(part, w);
        if (g == w || (!moves && g_nan && w_nan)) continue;
        if (slack && !g_nan && !w_nan && ulps_apart(part, g, w) <= slack) continue;
        char text[160] = "";
        int at = 0;
        for (unsigned k = 0; k < c->n; k++) {
            unsigned size = lf_dtype_bytes(c->in[k]);
            size_t place = is_complex ? i / 2 : i;
            if (c->omit[k]) continue;
            at += snprintf(text + at, sizeof text - (size_t)at, " %llx",
                           (unsigned long long)bits_at(src[k], size > 8 ? 8 : size, size > 8 ? 2 * place : place));
        }
        static char message[512];
        snprintf(message, sizeof message, "%s, %s: element %zu of%s gives %llx, the interpreter %llx", where,
                 cell_name(c), i, text, (unsigned long long)g, (unsigned long long)w);
        return message;
    }
    return NULL;
}

// Operands of a cell: a mixture of edges and chance, or all 65,536 values where there is one half. Returns how many.
enum { CELL_ELEMENTS = 2055, CELL_ROOM = 65536 };   // odd: vector bodies and scalar tails
static inline size_t fill_cell(const cell *c, size_t seed, bool exhaustive, void *operands[4]) {
    exhaustive = exhaustive && c->n == 1 && lf_is_half(c->in[0]);
    for (unsigned k = 0; k < c->n; k++) fill_operand(c->in[k], seed + 77777 * k, operands[k], CELL_ELEMENTS);
    for (size_t i = 0; exhaustive && i < CELL_ROOM; i++) ((uint16_t *)operands[0])[i] = (uint16_t)i;
    return exhaustive ? CELL_ROOM : CELL_ELEMENTS;
}
#endif
