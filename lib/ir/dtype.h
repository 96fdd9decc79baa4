// Dtypes and typed constants.
#ifndef LF_IR_DTYPE_H
#define LF_IR_DTYPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum lf_dtype {
    LF_NO_DTYPE = 0,
#define LF_DTYPE(ID, name, category, bytes, part) LF_##ID,
#include "ir/dtypes.def"
    LF_DTYPE_COUNT
} lf_dtype;

typedef enum lf_category {
    LF_CATEGORY_BOOL,
    LF_CATEGORY_INT,
    LF_CATEGORY_UINT,
    LF_CATEGORY_FLOAT,
    LF_CATEGORY_COMPLEX
} lf_category;

const char *lf_dtype_name(lf_dtype d);
lf_dtype lf_dtype_parse(const char *name, size_t n); // LF_NO_DTYPE when there is none of that name
lf_category lf_dtype_category(lf_dtype d);
unsigned lf_dtype_bytes(lf_dtype d);
lf_dtype lf_dtype_part(lf_dtype d);    // component of a complex dtype, else d
lf_dtype lf_dtype_compute(lf_dtype d); // f32 for f16 and bf16, else d
static inline bool lf_is_integer(lf_dtype d) { return d >= LF_I8 && d <= LF_U64; }
static inline bool lf_is_unsigned(lf_dtype d) { return d >= LF_U8 && d <= LF_U64; }
static inline bool lf_is_signed(lf_dtype d) { return d >= LF_I8 && d <= LF_I64; }
static inline bool lf_is_float(lf_dtype d) { return d >= LF_F16 && d <= LF_F64; }
static inline bool lf_is_half(lf_dtype d) { return d == LF_F16 || d == LF_BF16; }
static inline bool lf_is_complex(lf_dtype d) { return d == LF_C64 || d == LF_C128; }

// One element of any dtype, in memory order (little endian): the first lf_dtype_bytes() bytes count, the rest are 0.
typedef union lf_scalar {
    uint64_t word[2];
    bool b;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16; // also the bits of f16 and bf16
    uint32_t u32;
    uint64_t u64;
    float f32, c64[2];
    double f64, c128[2];
} lf_scalar;

// A number as written: exact integers, floats kept so that rounding to any dtype rounds once.
typedef enum lf_literal_kind { LF_LITERAL_INT, LF_LITERAL_FLOAT, LF_LITERAL_BOOL } lf_literal_kind;
typedef struct lf_literal {
    lf_literal_kind kind;
    bool negative;      // INT (and the sign of FLOAT's zero and inf is in the doubles)
    uint64_t magnitude; // INT: absolute value; BOOL: 0 or 1. Larger integers are refused by lf_literal_parse
    double nearest;     // FLOAT: rounded to nearest
    double odd;         // FLOAT: rounded to odd, from which every narrower rounding comes out right
} lf_literal;

static inline lf_literal lf_literal_int(int64_t v) {
    return (lf_literal){.kind = LF_LITERAL_INT, .negative = v < 0, .magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v};
}
static inline lf_literal lf_literal_float(double v) {
    return (lf_literal){.kind = LF_LITERAL_FLOAT, .nearest = v, .odd = v};
}
static inline lf_literal lf_literal_bool(bool v) { return (lf_literal){.kind = LF_LITERAL_BOOL, .magnitude = v}; }

// Decimal or hex integer or float, inf, -inf, nan, true, false, over exactly n characters. False when it is none of these
// or an integer beyond 64 bits. Independent of the locale.
bool lf_literal_parse(const char *text, size_t n, lf_literal *out_literal);
lf_dtype lf_literal_dtype(const lf_literal *l); // i64 (u64 from 2^63 on), f64, bool
// Rounds once. False when a literal does not fit an integer dtype (a float literal does only if its value is an integer).
bool lf_literal_to(const lf_literal *l, lf_dtype d, lf_scalar *out_scalar);
// Shortest text that parses back to the same scalar ("-1.5", "inf", "true", "1+2j" for complex); returns its length.
size_t lf_scalar_print(char *buffer, size_t size, lf_dtype d, const lf_scalar *s);

float lf_half_to_f32(lf_dtype d, uint16_t bits);
uint16_t lf_f32_to_half(lf_dtype d, float f);
#endif
