// Promotion of dtypes: every pair of dtypes in every pair of tiers, and literals beside every dtype. The tables were made by an
// independent evaluator of the language (section 4); "-" is a program that must be refused.
#include "ir/build.h"
#include "parse/parse.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DTYPES = LF_DTYPE_COUNT - 1 };

typedef struct pair_table {
    const char *op, *left, *right; // the shapes of the operands
    const char *rows[DTYPES];      // row: dtype of the left operand; column: of the right one
} pair_table;

typedef struct literal_row {
    const char *formula, *shape;
    const char *columns;
} literal_row;

// clang-format off
static const pair_table pairs[] = {
    {"add", "[?]", "[?]", {
        "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
        "i8 i8 i16 i32 i64 i16 i32 i64 - f16 bf16 f32 f64 c64 c128",
        "i16 i16 i16 i32 i64 i16 i32 i64 - f16 bf16 f32 f64 c64 c128",
        "i32 i32 i32 i32 i64 i32 i32 i64 - f16 bf16 f32 f64 c64 c128",
        "i64 i64 i64 i64 i64 i64 i64 i64 - f16 bf16 f32 f64 c64 c128",
        "u8 i16 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
        "u16 i32 i32 i32 i64 u16 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
        "u32 i64 i64 i64 i64 u32 u32 u32 u64 f16 bf16 f32 f64 c64 c128",
        "u64 - - - - u64 u64 u64 u64 f16 bf16 f32 f64 c64 c128",
        "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128",
        "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    }},
    {"add", "[?]", "[]", {
        "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
        "i8 i8 i8 i8 i8 i8 i8 i8 i8 f16 bf16 f32 f64 c64 c128",
        "i16 i16 i16 i16 i16 i16 i16 i16 i16 f16 bf16 f32 f64 c64 c128",
        "i32 i32 i32 i32 i32 i32 i32 i32 i32 f16 bf16 f32 f64 c64 c128",
        "i64 i64 i64 i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64 c64 c128",
        "u8 u8 u8 u8 u8 u8 u8 u8 u8 f16 bf16 f32 f64 c64 c128",
        "u16 u16 u16 u16 u16 u16 u16 u16 u16 f16 bf16 f32 f64 c64 c128",
        "u32 u32 u32 u32 u32 u32 u32 u32 u32 f16 bf16 f32 f64 c64 c128",
        "u64 u64 u64 u64 u64 u64 u64 u64 u64 f16 bf16 f32 f64 c64 c128",
        "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 c64 c128",
        "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    }},
    {"add", "[?]", "", {
        "bool i64 i64 i64 i64 i64 i64 i64 i64 f32 f32 f32 f32 c64 c64",
        "i8 i8 i8 i8 i8 i8 i8 i8 i8 f32 f32 f32 f32 c64 c64",
        "i16 i16 i16 i16 i16 i16 i16 i16 i16 f32 f32 f32 f32 c64 c64",
        "i32 i32 i32 i32 i32 i32 i32 i32 i32 f32 f32 f32 f32 c64 c64",
        "i64 i64 i64 i64 i64 i64 i64 i64 i64 f32 f32 f32 f32 c64 c64",
        "u8 u8 u8 u8 u8 u8 u8 u8 u8 f32 f32 f32 f32 c64 c64",
        "u16 u16 u16 u16 u16 u16 u16 u16 u16 f32 f32 f32 f32 c64 c64",
        "u32 u32 u32 u32 u32 u32 u32 u32 u32 f32 f32 f32 f32 c64 c64",
        "u64 u64 u64 u64 u64 u64 u64 u64 u64 f32 f32 f32 f32 c64 c64",
        "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 c64 c64",
        "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    }},
    {"add", "[]", "", {
        "bool i64 i64 i64 i64 i64 i64 i64 i64 f32 f32 f32 f32 c64 c64",
        "i8 i8 i8 i8 i8 i8 i8 i8 i8 f32 f32 f32 f32 c64 c64",
        "i16 i16 i16 i16 i16 i16 i16 i16 i16 f32 f32 f32 f32 c64 c64",
        "i32 i32 i32 i32 i32 i32 i32 i32 i32 f32 f32 f32 f32 c64 c64",
        "i64 i64 i64 i64 i64 i64 i64 i64 i64 f32 f32 f32 f32 c64 c64",
        "u8 u8 u8 u8 u8 u8 u8 u8 u8 f32 f32 f32 f32 c64 c64",
        "u16 u16 u16 u16 u16 u16 u16 u16 u16 f32 f32 f32 f32 c64 c64",
        "u32 u32 u32 u32 u32 u32 u32 u32 u32 f32 f32 f32 f32 c64 c64",
        "u64 u64 u64 u64 u64 u64 u64 u64 u64 f32 f32 f32 f32 c64 c64",
        "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 c64 c64",
        "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    }},
    {"add", "", "", {
        "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
        "i8 i8 i16 i32 i64 i16 i32 i64 - f16 bf16 f32 f64 c64 c128",
        "i16 i16 i16 i32 i64 i16 i32 i64 - f16 bf16 f32 f64 c64 c128",
        "i32 i32 i32 i32 i64 i32 i32 i64 - f16 bf16 f32 f64 c64 c128",
        "i64 i64 i64 i64 i64 i64 i64 i64 - f16 bf16 f32 f64 c64 c128",
        "u8 i16 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
        "u16 i32 i32 i32 i64 u16 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
        "u32 i64 i64 i64 i64 u32 u32 u32 u64 f16 bf16 f32 f64 c64 c128",
        "u64 - - - - u64 u64 u64 u64 f16 bf16 f32 f64 c64 c128",
        "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128",
        "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    }},
    {"div", "[?]", "[?]", {
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 - f16 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 - f16 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 - f16 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 - f16 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128",
        "f32 - - - - f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128",
        "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128",
        "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    }},
    {"div", "[?]", "", {
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 c64 c64",
        "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 c64 c64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 c64 c64",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    }},
    {"div", "", "", {
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 - f16 bf16 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 - f16 bf16 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 - f16 bf16 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 - f16 bf16 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128",
        "f64 - - - - f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128",
        "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128",
        "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    }},
    {"complex", "[?]", "[?]", {
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 - c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 - c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 - c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 - c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c64 - - - - c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 - -",
        "- - - - - - - - - - - - - - -",
        "- - - - - - - - - - - - - - -",
    }},
    {"complex", "[?]", "", {
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 - -",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 - -",
        "- - - - - - - - - - - - - - -",
        "- - - - - - - - - - - - - - -",
    }},
    {"complex", "", "", {
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c64 c64 c64 c128 - -",
        "c128 c128 c128 c128 c128 c128 c128 c128 - c64 c64 c64 c128 - -",
        "c128 c128 c128 c128 c128 c128 c128 c128 - c64 c64 c64 c128 - -",
        "c128 c128 c128 c128 c128 c128 c128 c128 - c64 c64 c64 c128 - -",
        "c128 c128 c128 c128 c128 c128 c128 c128 - c64 c64 c64 c128 - -",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c64 c64 c64 c128 - -",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c64 c64 c64 c128 - -",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c64 c64 c64 c128 - -",
        "c128 - - - - c128 c128 c128 c128 c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - -",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 - -",
        "- - - - - - - - - - - - - - -",
        "- - - - - - - - - - - - - - -",
    }},
};

static const literal_row literals[] = {
    {"add %a, true", "[?]", "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"add %a, 2", "[?]", "i64 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"add %a, 2.5", "[?]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"add %a, 300", "[?]", "i64 - i16 i32 i64 - u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"add %a, true", "[]", "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"add %a, 2", "[]", "i64 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"add %a, 2.5", "[]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"add %a, 300", "[]", "i64 - i16 i32 i64 - u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"add %a, true", "", "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"add %a, 2", "", "i64 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"add %a, 2.5", "", "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128"},
    {"add %a, 300", "", "i64 - i16 i32 i64 - u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"div %a, true", "[?]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"div %a, 2", "[?]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"div %a, 2.5", "[?]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"div %a, 300", "[?]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"div %a, true", "[]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"div %a, 2", "[]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"div %a, 2.5", "[]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"div %a, 300", "[]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"div %a, true", "", "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128"},
    {"div %a, 2", "", "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128"},
    {"div %a, 2.5", "", "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128"},
    {"div %a, 300", "", "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128"},
    {"fmod %a, true", "[?]", "- i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 - -"},
    {"fmod %a, 2", "[?]", "i64 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 - -"},
    {"fmod %a, 2.5", "[?]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 - -"},
    {"fmod %a, 300", "[?]", "i64 - i16 i32 i64 - u16 u32 u64 f16 bf16 f32 f64 - -"},
    {"fmod %a, true", "[]", "- i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 - -"},
    {"fmod %a, 2", "[]", "i64 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 - -"},
    {"fmod %a, 2.5", "[]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 - -"},
    {"fmod %a, 300", "[]", "i64 - i16 i32 i64 - u16 u32 u64 f16 bf16 f32 f64 - -"},
    {"fmod %a, true", "", "- i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 - -"},
    {"fmod %a, 2", "", "i64 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 - -"},
    {"fmod %a, 2.5", "", "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 - -"},
    {"fmod %a, 300", "", "i64 - i16 i32 i64 - u16 u32 u64 f16 bf16 f32 f64 - -"},
    {"shl %a, true", "[?]", "- - - - - - - - - - - - - - -"},
    {"shl %a, 2", "[?]", "- i8 i16 i32 i64 u8 u16 u32 u64 - - - - - -"},
    {"shl %a, 2.5", "[?]", "- - - - - - - - - - - - - - -"},
    {"shl %a, 300", "[?]", "- i8 i16 i32 i64 u8 u16 u32 u64 - - - - - -"},
    {"shl %a, true", "[]", "- - - - - - - - - - - - - - -"},
    {"shl %a, 2", "[]", "- i8 i16 i32 i64 u8 u16 u32 u64 - - - - - -"},
    {"shl %a, 2.5", "[]", "- - - - - - - - - - - - - - -"},
    {"shl %a, 300", "[]", "- i8 i16 i32 i64 u8 u16 u32 u64 - - - - - -"},
    {"shl %a, true", "", "- - - - - - - - - - - - - - -"},
    {"shl %a, 2", "", "- i8 i16 i32 i64 u8 u16 u32 u64 - - - - - -"},
    {"shl %a, 2.5", "", "- - - - - - - - - - - - - - -"},
    {"shl %a, 300", "", "- i8 i16 i32 i64 u8 u16 u32 u64 - - - - - -"},
    {"pow %a, true", "[?]", "- i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, 2", "[?]", "i64 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, 2.5", "[?]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, 300", "[?]", "i64 - i16 i32 i64 - u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, true", "[]", "- i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, 2", "[]", "i64 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, 2.5", "[]", "f32 f32 f32 f32 f32 f32 f32 f32 f32 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, 300", "[]", "i64 - i16 i32 i64 - u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, true", "", "- i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, 2", "", "i64 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, 2.5", "", "f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 bf16 f32 f64 c64 c128"},
    {"pow %a, 300", "", "i64 - i16 i32 i64 - u16 u32 u64 f16 bf16 f32 f64 c64 c128"},
    {"shl 1, %a", "[?]", "- i64 i64 i64 i64 i64 i64 i64 i64 - - - - - -"},
    {"shl 1, %a", "", "- i64 i64 i64 i64 i64 i64 i64 i64 - - - - - -"},
    {"shl 1.5, %a", "[?]", "- - - - - - - - - - - - - - -"},
    {"shl 1.5, %a", "", "- - - - - - - - - - - - - - -"},
};
// clang-format on

static void check_dtype(const char *text, const char *want, size_t length) {
    lf_graph **graphs;
    size_t n;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", text, strlen(text), false, &graphs, &n);
    char found[16] = "-";
    if (!s) {
        snprintf(found, sizeof found, "%s", lf_dtype_name(graphs[0]->outputs[0].value->type.dtype));
        lf_status verified = lf_graph_verify(graphs[0]);
        ck_assert_msg(!verified, "%s\n%s", text, lf_status_message(verified));
    } else
        ck_assert_msg(lf_status_code(s) == LF_INVALID_PROGRAM, "%s\n%s", text, lf_status_message(s));
    ck_assert_msg(strlen(found) == length && !memcmp(found, want, length), "%s\ngives %s, wanted %.*s\n%s", text, found,
                  (int)length, want, lf_status_message(s));
    lf_status_destroy(s);
    lf_parse_release(&lf_system_allocator, graphs, n);
}

static const char *next_word(const char *at, size_t *out_length) {
    at += strspn(at, " ");
    *out_length = strcspn(at, " ");
    return at;
}

START_TEST(pairs_of_dtypes) {
    const pair_table *t = &pairs[_i];
    char text[256];
    for (unsigned a = 0; a < DTYPES; a++) {
        size_t length;
        const char *want = next_word(t->rows[a], &length);
        for (unsigned b = 0; b < DTYPES; b++, want = next_word(want + length, &length)) {
            snprintf(text, sizeof text, "fusion @f(%%a: %s%s, %%b: %s%s) {\n  %%r = %s %%a, %%b\n  return %%r\n}\n",
                     lf_dtype_name(a + 1), t->left, lf_dtype_name(b + 1), t->right, t->op);
            check_dtype(text, want, length);
        }
        ck_assert_uint_eq(length, 0);
    }
}
END_TEST

START_TEST(literals_beside_dtypes) {
    const literal_row *t = &literals[_i];
    char text[256];
    size_t length;
    const char *want = next_word(t->columns, &length);
    for (unsigned a = 0; a < DTYPES; a++, want = next_word(want + length, &length)) {
        snprintf(text, sizeof text, "fusion @f(%%a: %s%s) {\n  %%r = %s\n  return %%r\n}\n", lf_dtype_name(a + 1), t->shape,
                 t->formula);
        check_dtype(text, want, length);
    }
    ck_assert_uint_eq(length, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("promotion");
    TCase *t = tcase_create("promotion");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, pairs_of_dtypes, 0, sizeof pairs / sizeof *pairs);
    tcase_add_loop_test(t, literals_beside_dtypes, 0, sizeof literals / sizeof *literals);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
