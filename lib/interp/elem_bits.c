// Families bitwise, logical, shift, compare, float_bits: bits and truth values.
#include "interp/internal.h"
#include "interp/loops.h"

bool lf_eval_bitwise(const lf_eval *e) {
    switch (e->code) {
    case LF_OP_NOT:
        switch (e->in[0]) {
            LF_EACH_BOOL(LF_CASE1, !x)
            LF_EACH_INT(LF_CASE1, ~U(x))
            LF_NO_CASE
        }
    case LF_OP_AND:
        switch (e->in[0]) {
            LF_EACH_BOOL(LF_CASE2, x & y)
            LF_EACH_INT(LF_CASE2, x & y)
            LF_NO_CASE
        }
    case LF_OP_OR:
        switch (e->in[0]) {
            LF_EACH_BOOL(LF_CASE2, x | y)
            LF_EACH_INT(LF_CASE2, x | y)
            LF_NO_CASE
        }
    case LF_OP_XOR:
        switch (e->in[0]) {
            LF_EACH_BOOL(LF_CASE2, x ^ y)
            LF_EACH_INT(LF_CASE2, x ^ y)
            LF_NO_CASE
        }
    default: return false;
    }
}

bool lf_eval_logical(const lf_eval *e) {
    if (e->in[0] != LF_BOOL) return false;
    switch (e->code) {
    case LF_OP_LNOT: LF_LOOP(uint8_t, uint8_t, LF_READ1, !x)
    case LF_OP_LAND: LF_LOOP(uint8_t, uint8_t, LF_READ2, x &y)
    case LF_OP_LOR: LF_LOOP(uint8_t, uint8_t, LF_READ2, x | y)
    default: return false;
    }
}

// ---- Shifts ---------------------------------------------------------------------------------------------------------

// Counts of any integer dtype by value, cut to 0 … 64: 64 stands for all that is outside the width.
static bool shift_counts(const lf_eval *e, uint8_t *counts) {
    unsigned width = 8 * lf_dtype_bytes(e->in[0]);
    uint64_t wide[LF_BLOCK];
    if (!lf_is_integer(e->in[1])) return false;
    lf_convert(e->in[1], e->src[1], LF_U64, wide, e->n); // a negative count becomes a huge one
    for (size_t i = 0; i < e->n; i++) counts[i] = wide[i] < width ? (uint8_t)wide[i] : 64;
    return true;
}

#define SHIFT(ID, T, ...)                                                                                                   \
    case LF_##ID: LF_LOOP(T, T, LF_READ1, (T)(__VA_ARGS__))
#define UNSIGNED_OF(x) (U(x) & (UINT64_MAX >> (64 - 8 * sizeof(x))))

bool lf_eval_shift(const lf_eval *e) {
    uint8_t k[LF_BLOCK];
    if (!shift_counts(e, k)) return false;
    switch (e->code) {
    case LF_OP_SHL:
        switch (e->in[0]) {
            LF_EACH_INT(SHIFT, k[i] == 64 ? 0 : U(x) << k[i])
            LF_NO_CASE
        }
    case LF_OP_SHR: // >> of a negative number keeps its sign (gcc, clang)
        switch (e->in[0]) {
            LF_EACH_SIGNED(SHIFT, k[i] == 64 ? (x < 0 ? -1 : 0) : (int64_t)x >> k[i])
            LF_EACH_UNSIGNED(SHIFT, k[i] == 64 ? 0 : U(x) >> k[i])
            LF_NO_CASE
        }
    case LF_OP_LSHR:
        switch (e->in[0]) {
            LF_EACH_INT(SHIFT, k[i] == 64 ? 0 : UNSIGNED_OF(x) >> k[i])
            LF_NO_CASE
        }
    default: return false;
    }
}

// ---- Comparisons ----------------------------------------------------------------------------------------------------

// Integers of different dtypes by their true values.
#define WIDE_CASE(ID, T, ...)                                                                                               \
    case LF_##ID: return ((const T *)src)[i];
static __int128 wide_integer(lf_dtype d, const void *src, size_t i) {
    switch (d) {
        LF_EACH_BOOL(WIDE_CASE, )
        LF_EACH_INT(WIDE_CASE, )
    default: return 0;
    }
}

static bool is_exact(lf_dtype d) { return d == LF_BOOL || lf_is_integer(d); }

static bool compare_mixed(const lf_eval *e) {
    uint8_t *out = e->dst;
    if (!is_exact(e->in[0]) || !is_exact(e->in[1])) return false;
    for (size_t i = 0; i < e->n; i++) {
        __int128 x = wide_integer(e->in[0], e->src[0], i), y = wide_integer(e->in[1], e->src[1], i);
        switch (e->code) {
        case LF_OP_EQ: out[i] = x == y; break;
        case LF_OP_NE: out[i] = x != y; break;
        case LF_OP_LT: out[i] = x < y; break;
        case LF_OP_LE: out[i] = x <= y; break;
        case LF_OP_GT: out[i] = x > y; break;
        case LF_OP_GE: out[i] = x >= y; break;
        default: return false;
        }
    }
    return true;
}

#define COMPARE(name, operator)                                                                                             \
    static bool eval_##name(const lf_eval *e) {                                                                             \
        switch (e->in[0]) {                                                                                                 \
            LF_EACH_BOOL(LF_CASE2_BOOL, x operator y)                                                                       \
            LF_EACH_INT(LF_CASE2_BOOL, x operator y)                                                                        \
            LF_EACH_REAL(LF_CASE2_BOOL, x operator y)                                                                       \
            LF_NO_CASE                                                                                                      \
        }                                                                                                                   \
    }
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)

static bool compare_complex(const lf_eval *e, bool equal) {
    switch (e->in[0]) {
        LF_EACH_COMPLEX(LF_CASE2_BOOL, (x.re == y.re && x.im == y.im) == equal)
        LF_NO_CASE
    }
}

bool lf_eval_compare(const lf_eval *e) {
    if (e->in[0] != e->in[1]) return compare_mixed(e);
    bool complex = lf_is_complex(e->in[0]);
    switch (e->code) {
    case LF_OP_EQ: return complex ? compare_complex(e, true) : eval_eq(e);
    case LF_OP_NE: return complex ? compare_complex(e, false) : eval_ne(e);
    case LF_OP_LT: return eval_lt(e);
    case LF_OP_LE: return eval_le(e);
    case LF_OP_GT: return eval_gt(e);
    case LF_OP_GE: return eval_ge(e);
    default: return false;
    }
}

// ---- copysign, nextafter --------------------------------------------------------------------------------------------

// A NaN's sign counts as +.
static bool eval_copysign(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_REAL(LF_CASE2, y != y ? LF_FN(fabs, x) : LF_FN(copysign, x, y))
        LF_NO_CASE
    }
}

// The neighbour among the 16-bit values: their bits order them by magnitude.
static uint16_t next_half(lf_dtype d, uint16_t x, uint16_t y) {
    float fx = d == LF_F16 ? lfm_f16_to_f32(x) : lfm_bf16_to_f32(x);
    float fy = d == LF_F16 ? lfm_f16_to_f32(y) : lfm_bf16_to_f32(y);
    if (fx != fx || fy != fy) return d == LF_F16 ? 0x7e00 : 0x7fc0;
    if (fx == fy) return y;
    if (fx == 0) return (uint16_t)((y & 0x8000) | 1);
    return (uint16_t)((fx < fy) == (fx > 0) ? x + 1 : x - 1);
}

static bool eval_nextafter(const lf_eval *e) {
    switch (e->in[0]) {
        LF_EACH_REAL(LF_CASE2, LF_MATH(nextafter, x, y))
        LF_CASE2(F16, uint16_t, next_half(LF_F16, x, y))
        LF_CASE2(BF16, uint16_t, next_half(LF_BF16, x, y))
        LF_NO_CASE
    }
}

bool lf_eval_float_bits(const lf_eval *e) {
    switch (e->code) {
    case LF_OP_COPYSIGN: return eval_copysign(e);
    case LF_OP_NEXTAFTER: return eval_nextafter(e);
    default: return false;
    }
}
