// Conversions of single constants. Private to lib/ir.
#ifndef LF_IR_SCALAR_H
#define LF_IR_SCALAR_H
#include "ir/dtype.h"

// Rounds once to f16 or bf16.
uint16_t lf_f64_to_half(lf_dtype d, double x);
// An integer as a double rounded to odd: every narrower rounding of it comes out right.
double lf_u64_to_odd(uint64_t m);
// The integer (-1)^negative * magnitude in dtype d: integers wrap, floats round once.
void lf_scalar_from_integer(bool negative, uint64_t magnitude, lf_dtype d, lf_scalar *out);
// A real number given by its nearest double and its double rounded to odd, in dtype d: integers truncate and saturate.
void lf_scalar_from_float(double nearest, double odd, lf_dtype d, lf_scalar *out);
// The value of a bool or integer constant (u64 by its bits), and the real part of a float or complex one.
int64_t lf_scalar_i64(lf_dtype d, const lf_scalar *s);
double lf_scalar_f64(lf_dtype d, const lf_scalar *s);
// The op `cast` on a constant.
void lf_scalar_cast(lf_dtype from, const lf_scalar *s, lf_dtype to, lf_scalar *out);
#endif
