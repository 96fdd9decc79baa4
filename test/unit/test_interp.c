// The reference evaluator, elementwise: each family, with the corners of the language's sections 4 to 6.
#include "test_interp_case.h"
#include "interp/internal.h"

START_TEST(arithmetic_wraps) {
    check_op("add", "i32[2] 2147483647 -1; i32[2] 1 -2147483648", "i32[2] -2147483648 2147483647");
    check_op("sub", "u8[2] 0 200; u8[2] 1 100", "u8[2] 255 100");
    check_op("mul", "i16[2] 222 -32768; i16[2] 222 -1", "i16[2] -16252 -32768");
    check_op("mul", "u64[1] 4294967297; u64[1] 2147483651", "u64[1] 9223372051887161347");
    check_op("add", "bool[4] false false true true; bool[4] false true false true", "bool[4] false true true true");
    check_op("mul", "bool[4] false false true true; bool[4] false true false true", "bool[4] false false false true");
    check_op("neg", "i8[3] 1 -128 0", "i8[3] -1 -128 0");
    check_op("neg", "u8[2] 6 0", "u8[2] 250 0");
    check_op("abs", "i8[3] -5 -128 7", "i8[3] 5 -128 7");
    check_op("sign", "i16[3] -5 0 7", "i16[3] -1 0 1");
    check_op("fma", "u8[1] 100; u8[1] 3; u8[1] 1", "u8[1] 45");
    check_op("addcmul", "i8[1] 1; i8[1] 2; i8[1] 3; i8[1] 100", "i8[1] 89");
    // An i32 sum stays in 32 bits although a cast to i64 follows.
    check_case("(%x: i32[1]) { %y = add %x, %x %z = cast %y, dtype=i64 return %z }", "i32[1] 2147483647", "i64[1] -2");
}
END_TEST

START_TEST(floats_round_at_each_step) {
    check_op("mul", "bf16[1] 1.0703125; bf16[1] 1.0703125", "bf16[1] 1.1484375");
    check_op("add", "f16[2] 2048 1; f16[2] 1 0.00048828125", "f16[2] 2048 1");
    check_case("(%x: f32[1], %y: f32[1]) { %p = mul %x, %y %q = mul %x, %y %z = sub %q, %p return %z }",
               "f32[1] 1.1; f32[1] 1.3", "f32[1] 0");
    check_op("mul", "f64[1] 1e-310; f64[1] 1e100", "f64[1] 9.99999999999997e-211");
    check_op("div", "f32[4] 1 -1 0 1; f32[4] 0 0 0 3", "f32[4] inf -inf nan 0.33333334");
    check_op("div", "i32[2] 1 7; i32[2] 2 2", "f32[2] 0.5 3.5");
    check_op("div", "i32 7; i32 2", "f64 3.5");
    check_op("reciprocal", "f32[3] 0.0 -0.0 4", "f32[3] inf -inf 0.25");
    check_op("sqrt", "f64[3] 4 -1 -0.0", "f64[3] 2 nan -0.0");
    // Scalars are typed, too.
    check_op("add", "f32 16777216; f32 1", "f32 16777216");
    check_op("add", "u8 255; u8 1", "u8 0");
}
END_TEST

START_TEST(fma_rounds_once) {
    check_op("fma", "f16[1] 2049; f16[1] 1; f16[1] 0.0001", "f16[1] 2048");
    // (1 + 2^-10)^2 = 1 + 2^-9 + 2^-20: a product rounded to f16 first would be a tie's victim.
    check_op("fma", "f16[1] 1.0009765625; f16[1] 1.0009765625; f16[1] 0.00048828125", "f16[1] 1.0029296875");
    check_op("fma", "bf16[2] 1.0078125 3e38; bf16[2] 1.0078125 10; bf16[2] -1.015625 -inf", "bf16[2] 6.103515625e-05 -inf");
    // Through f32: 1 + 2^-9 (a tie of bf16 is 2^-8/2) + 2^-40 would lose what lies beyond the tie.
    check_op("fma", "bf16[1] 1; bf16[1] 1.00390625; bf16[1] 9.094947e-13", "bf16[1] 1");
    check_op("fma", "bf16[1] 1.5; bf16[1] 0.669921875; bf16[1] 9.094947e-13", "bf16[1] 1.0078125");
    check_op("fma", "f32[1] 1.1; f32[1] 1.3; f32[1] -1.43", "f32[1] 3.099441414633475e-08");
}
END_TEST

START_TEST(integer_division) {
    const char *x = "i32[8] 7 -7 7 -7 5 -2147483648 -2147483648 0; i32[8] 2 2 -2 -2 0 -1 0 0";
    check_op("floordiv", x, "i32[8] 3 -4 -4 3 -1 -2147483648 -1 -1");
    check_op("truncdiv", x, "i32[8] 3 -3 -3 3 -1 -2147483648 -1 -1");
    check_op("ceildiv", x, "i32[8] 4 -3 -3 4 -1 -2147483648 -1 -1");
    check_op("mod", x, "i32[8] 1 1 -1 -1 5 0 -2147483648 0");
    check_op("fmod", x, "i32[8] 1 -1 1 -1 5 0 -2147483648 0");
    check_op("floordiv", "u8[3] 7 255 5; u8[3] 2 16 0", "u8[3] 3 15 255");
    check_op("ceildiv", "u8[3] 7 255 5; u8[3] 2 1 0", "u8[3] 4 255 255");
    check_op("mod", "u32[2] 3583196299 9; u32[2] 524288 0", "u32[2] 212107 9");
    check_op("floordiv", "i8[2] -128 -128; i8[2] -1 3", "i8[2] -128 -43");
    check_op("ceildiv", "i32 24; i32 10", "i32 3");
}
END_TEST

START_TEST(float_division) {
    check_op("floordiv", "f64[3] 1 0.5 6; f64[3] 0.1 0.1 0.2", "f64[3] 9 4 29");
    check_op("floordiv", "f32[3] 1 0.5 6; f32[3] 0.1 0.1 0.2", "f32[3] 9 4 29");
    check_op("floordiv", "f32[6] 7 -7 1 -1 0.0 -0.0; f32[6] -2 -2 0 0 -3 -3", "f32[6] -4 3 inf -inf -0.0 0");
    check_op("truncdiv", "f32[4] 7 -7 1 -1; f32[4] 2 2 2 2", "f32[4] 3 -3 0 -0.0");
    check_op("ceildiv", "f32[4] 7 -7 1 -1; f32[4] 2 2 2 2", "f32[4] 4 -3 1 -0.0");
    check_op("mod", "f32[6] -1 2 -3 3 1 5; f32[6] 1 -1 2 -2 inf 0", "f32[6] 0 -0.0 1 -1 1 nan");
    check_op("fmod", "f64[4] -1 5.5 1e300 -0.0; f64[4] 1 -2 3 1", "f64[4] -0.0 1.5 0 -0.0");
    check_op("fmod", "f32[2] inf 1; f32[2] 2 inf", "f32[2] nan 1");
    check_op("floordiv", "f16[2] 1 -6; f16[2] 0.1 0.2", "f16[2] 10 -31"); // 0.1 and 0.2 as f16 lie below
}
END_TEST

START_TEST(powers) {
    check_op("pow", "i32[5] 0 0 0 1 -1; i32[5] 64 31 0 100 101", "i32[5] 0 0 1 1 -1");
    check_op("pow", "i64[5] -3 -2 -1 0 1; i64[5] -1 -1 -1 -1 -1", "i64[5] 0 0 -1 0 1");
    check_op("pow", "i64[1] 10000; i64[1] 10000", "i64[1] 0");
    check_op("pow", "i16[1] 222; i16[1] 2", "i16[1] -16252");
    check_op("pow", "u8[1] 3; u8[1] 200", "u8[1] 161");
    check_op("pow", "f32[4] 2 2 2 0; f32[4] -126 -127 -149 0", "f32[4] 1.1754944e-38 5.8774718e-39 1e-45 1");
    check_op("gcd", "i8[5] 12 0 -128 -128 -6; i8[5] 18 0 0 -128 4", "i8[5] 6 0 -128 -128 2");
    check_op("gcd", "u64[1] 18446744073709551615; u64[1] 15", "u64[1] 15");
}
END_TEST

START_TEST(shifts) {
    check_op("shl", "i32[4] 1 1 1 -1; i32[4] 31 32 -1 4", "i32[4] -2147483648 0 0 -16");
    check_op("shr", "i32[4] -8 -8 8 -8; i32[4] 1 32 40 -1", "i32[4] -4 -1 0 -1");
    check_op("lshr", "i32[4] -8 -8 8 -8; i32[4] 1 32 40 -1", "i32[4] 2147483644 0 0 0");
    check_op("shr", "u8[2] 200 200; u8[2] 1 8", "u8[2] 100 0");
    check_op("shl", "u8[2] 3 1; u64[2] 7 18446744073709551615", "u8[2] 128 0");
    check_op("shl", "i64[2] 1 1; i8[2] 63 64", "i64[2] -9223372036854775808 0");
}
END_TEST

START_TEST(bits_and_truth) {
    check_op("not", "u8[2] 0 170", "u8[2] 255 85");
    check_op("not", "bool[2] true false", "bool[2] false true");
    check_op("xor", "i16[1] -1; i16[1] 255", "i16[1] -256");
    check_op("and", "bool[2] true true; bool[2] true false", "bool[2] true false");
    check_op("or", "i32[1] 5; i32[1] 10", "i32[1] 15");
    check_op("lnot", "f32[4] 0 -0.0 nan 2", "bool[4] true true false false");
    check_op("land", "c64[2] (0,1) (0,0); i8[2] 1 1", "bool[2] true false");
    check_op("lor", "f16[2] 0 0; i8[2] 0 -1", "bool[2] false true");
}
END_TEST

START_TEST(comparisons_by_value) {
    check_case("(%x: u8[3]) { %r = eq %x, 300 return %r }", "u8[3] 0 44 255", "bool[3] false false false");
    check_case("(%x: u8) { %n = neg %x %r = lt %n, 4 return %r }", "u8 6", "bool false");
    check_op("lt", "i64[2] -1 -1; u64[2] 18446744073709551615 0", "bool[2] true true");
    check_op("eq", "i8[2] -1 1; u8[2] 255 1", "bool[2] false true");
    check_op("eq", "f32[3] nan 0 1; f32[3] nan -0.0 2", "bool[3] false true false");
    check_op("ne", "f32[3] nan 0 1; f32[3] nan -0.0 2", "bool[3] true false true");
    check_op("ge", "bool[2] false true; bool[2] true true", "bool[2] false true");
    check_op("ne", "c64[2] (1,2) (nan,0); c64[2] (1,2) (nan,0)", "bool[2] false true");
    check_op("eq", "c128[2] (1,2) (0,0); c128[2] (1,3) (-0.0,0)", "bool[2] false true");
}
END_TEST

START_TEST(minima_and_maxima) {
    check_op("max", "f32[5] nan 1 -0.0 0 -inf; f32[5] 1 nan 0 -0.0 -inf", "f32[5] nan nan 0 0 -inf");
    check_op("min", "f64[4] nan 1 -0.0 0; f64[4] 1 nan 0 -0.0", "f64[4] nan nan -0.0 -0.0");
    check_op("fmax", "f32[5] nan 1 -0.0 nan 0; f32[5] 1 nan 0 nan -0.0", "f32[5] 1 1 0 nan 0");
    check_op("fmin", "bf16[3] nan 1 0; bf16[3] 1 nan -0.0", "bf16[3] 1 1 -0.0");
    check_op("min", "bool[2] true true; bool[2] false true", "bool[2] false true");
    check_op("max", "u64[1] 18446744073709551615; u64[1] 1", "u64[1] 18446744073709551615");
    check_case("(%x: f32[4]) { %r = clamp %x, 4.0, 3.0 return %r }", "f32[4] 2 3.5 9 nan", "f32[4] 3 3 3 nan");
    check_case("(%x: f32[2]) { %r = clamp %x, none, 1.0 %s = clamp %x, 0.0, none return %r, %s }", "f32[2] 5 -0.0",
               "f32[2] 1 -0.0; f32[2] 5 0");
    check_op("relu", "f32[4] nan -0.0 -1 2", "f32[4] nan 0 0 2");
    check_op("relu", "i8[2] -3 3", "i8[2] 0 3");
    check_op("threshold", "f32[4] nan 1 2 3; f32[4] 2 2 2 2; f32[4] 9 9 9 9", "f32[4] nan 9 9 3");
    check_op("sign", "f16[5] nan -0.0 0 -2 inf", "f16[5] nan 0 0 -1 1");
}
END_TEST

START_TEST(rounding) {
    check_op("round", "f32[6] 0.5 1.5 -0.5 2.5 nan 1e30", "f32[6] 0 2 -0.0 2 nan 1e30");
    check_op("floor", "f64[3] -0.5 1.5 -0.0", "f64[3] -1 1 -0.0");
    check_op("ceil", "f16[3] -0.5 1.5 0", "f16[3] -0.0 2 0");
    check_op("trunc", "bf16[3] -1.5 1.5 inf", "bf16[3] -1 1 inf");
    check_op("frac", "f32[4] -0.0 1.25 -1.25 inf", "f32[4] 0 0.25 -0.25 nan");
    check_op("frac", "i32[2] 5 -5", "i32[2] 0 0");
    check_op("ceil", "bool[2] true false", "bool[2] true false");
}
END_TEST

START_TEST(conversions) {
    check_op("cast, dtype=u32", "f32[4] -1 -0.9 4294967296 nan", "u32[4] 0 0 4294967295 0");
    check_op("cast, dtype=u64", "f32[3] 1.2e19 1.8e19 2e19",
             "u64[3] 11999999536803086336 18000000404716257280 18446744073709551615");
    check_op("cast, dtype=i64", "f64[4] 9.3e18 -9.3e18 -1.9 inf",
             "i64[4] 9223372036854775807 -9223372036854775808 -1 9223372036854775807");
    check_op("cast, dtype=i8", "f16[4] 127.9 128 -129 nan", "i8[4] 127 127 -128 0");
    check_op("cast, dtype=u8", "i32[3] 256 -1 300", "u8[3] 0 255 44");
    check_op("cast, dtype=bf16", "i64[1] 8623489025", "bf16[1] 8657043456");
    check_op("cast, dtype=bf16", "f64[1] 1.0039062509313226", "bf16[1] 1.0078125");
    check_op("cast, dtype=f16", "f64[3] 65520 65519.99 2.9802322387695313e-08", "f16[3] inf 65504 0");
    check_op("cast, dtype=f32", "u64[1] 18446744073709551615", "f32[1] 18446744073709551616.0");
    check_op("cast, dtype=bool", "bf16[4] -0.0 0 nan 1e-40", "bool[4] false false true true");
    check_op("cast, dtype=bool", "c64[4] (0,0) (0,-0.0) (0,1) (nan,0)", "bool[4] false false true true");
    check_op("cast, dtype=f32", "c64[1] (1.5,7)", "f32[1] 1.5");
    check_op("cast, dtype=c128", "i8[1] -3", "c128[1] (-3,0)");
    check_op("cast, dtype=c64", "c128[1] (0.1,-0.1)", "c64[1] (0.1,-0.1)");
    check_op("cast, dtype=f16", "bool[2] true false", "f16[2] 1 0");
    check_case("(%x: f32[1]) { %h = cast %x, dtype=f16 %y = cast %h, dtype=f32 %e = eq %x, %y return %y, %e }",
               "f32[1] -2.643845", "f32[1] -2.64453125; bool[1] false");
    check_case("(%x: f32[1]) { %i = cast %x, dtype=i32 %y = cast %i, dtype=u32 return %y }", "f32[1] -31",
               "u32[1] 4294967265");
}
END_TEST

START_TEST(bit_patterns) {
    check_op("bitcast, dtype=i32", "f32[2] 1 -0.0", "i32[2] 1065353216 -2147483648");
    check_op("bitcast, dtype=f16", "i16[1] 15360", "f16[1] 1");
    check_op("bitcast, dtype=bool", "u8[3] 0 1 200", "bool[3] false true true");
    // The bits of a computed NaN are canonical, whatever the machine made.
    check_case("(%x: f32[1]) { %n = sub %x, %x %m = neg %n %b = bitcast %m, dtype=u32 return %b }", "f32[1] inf",
               "u32[1] 0x7fc00000");
    check_case("(%x: f64[1]) { %n = sqrt %x %b = bitcast %n, dtype=u64 return %b }", "f64[1] -1",
               "u64[1] 0x7ff8000000000000");
    check_case("(%x: bf16[1]) { %n = sqrt %x %b = bitcast %n, dtype=u16 return %b }", "bf16[1] -1", "u16[1] 0x7fc0");
    // Moves keep them.
    check_case("(%b: u32[1]) { %x = bitcast %b, dtype=f32 %y = select true, %x, 0.0 %r = bitcast %y, dtype=u32 return %r }",
               "u32[1] 0xffc01234", "u32[1] 0xffc01234");
    check_op("nextafter", "f16[5] 0 -0.0 65504 1 nan; f16[5] 1 -1 inf 0 1", "f16[5] 0x0001 0x8001 inf 0x3bff nan");
    check_op("nextafter", "f32[3] 1 0 2; f32[3] 2 -0.0 2", "f32[3] 1.0000001 -0.0 2");
    check_op("copysign", "f32[3] 1 1 -1; f32[3] -0.0 nan 2", "f32[3] -1 1 1");
    check_op("signbit", "f32[4] -0.0 nan -1 1", "bool[4] true false true false");
    check_op("signbit", "i8[2] -1 1", "bool[2] true false");
    check_op("ldexp", "f32[4] 1.5 1 1 1; i32[4] -150 -149 200 -2147483648", "f32[4] 1e-45 1e-45 inf 0");
    check_op("ldexp", "f16[1] 1.5; f32[1] 2", "f32[1] 6");
    check_op("ldexp", "bool[1] true; f16[1] 3", "f16[1] 8");
    check_op("ldexp", "f64[2] 1 3; u64[2] 18446744073709551615 1", "f64[2] inf 6");
}
END_TEST

START_TEST(predicates) {
    check_op("isnan", "f16[3] nan inf 0", "bool[3] true false false");
    check_op("isinf", "c64[3] (nan,inf) (1,2) (nan,0)", "bool[3] true false false");
    check_op("isfinite", "c128[2] (1,inf) (1,2)", "bool[2] false true");
    check_op("isfinite", "i32[1] 7", "bool[1] true");
    check_op("isposinf", "bf16[2] inf -inf", "bool[2] true false");
    check_op("isneginf", "f64[2] inf -inf", "bool[2] false true");
}
END_TEST

START_TEST(complex_numbers) {
    check_op("mul", "c64[1] (1,2); c64[1] (3,4)", "c64[1] (-5,10)");
    check_op("sub", "c128[1] (1,2); c128[1] (3,5)", "c128[1] (-2,-3)");
    check_op("div", "c64[1] (-5,10); c64[1] (3,4)", "c64[1] (1,2)");
    check_op("neg", "c64[1] (1,-0.0)", "c64[1] (-1,0)");
    check_op("abs", "c64[3] (3,4) (inf,nan) (nan,-inf)", "f32[3] 5 inf inf");
    check_op("conj", "c64[1] (1,2)", "c64[1] (1,-2)");
    check_op("conj", "i8[1] -4", "i8[1] -4");
    check_op("imag", "c128[1] (1,2)", "f64[1] 2");
    check_op("imag", "f16[1] 3", "f16[1] 0");
    check_op("real", "u8[1] 3", "u8[1] 3");
    check_op("complex", "f32[1] 1; f32[1] -0.0", "c64[1] (1,-0.0)");
    check_op("complex", "f16[1] 1; bf16[1] 2", "c64[1] (1,2)");
    check_op("angle", "f64[4] -1 2 -0.0 nan", "f64[4] 3.141592653589793 0 0 nan");
    check_op("angle", "c64[2] (0,1) (-1,-0.0)", "f32[2] 1.5707964 -3.1415927");
    check_op("sqrt", "c128[1] (-4,0)", "c128[1] (0,2)");
    check_op("lerp", "c64[1] (0,0); c64[1] (2,4); c64[1] (0.25,0)", "c64[1] (0.5,1)");
    check_op("addcmul", "c64[1] (1,0); c64[1] (0,1); c64[1] (0,1); c64[1] (2,0)", "c64[1] (-1,0)");
    check_op("select", "bool[1] true; c64[1] (1,2); c64[1] (3,4)", "c64[1] (1,2)");
}
END_TEST

START_TEST(formulas) {
    check_op("lerp", "f32[2] 0 0; f32[2] 10 10; f32[2] 0.25 0.75", "f32[2] 2.5 7.5");
    check_op("addcmul", "bool[2] false false; bool[2] true true; bool[2] true true; bool[2] true false",
             "bool[2] true false");
    check_op("select", "bool[2] true false; f32[2] -0.0 -0.0; f32[2] 1 1", "f32[2] -0.0 1");
    check_op("softplus", "f32[3] 21 -inf nan", "f32[3] 21 0 nan");
    check_op("silu", "f32[2] 0 -0.0", "f32[2] 0 -0.0");
    check_op("leaky_relu, slope=0.5", "f64[2] -3 3", "f64[2] -1.5 3");
    check_op("elu, alpha=2", "f32[2] -inf 3", "f32[2] -2 3");
    check_op("gelu", "f32[3] 0 30 -0.0", "f32[3] 0 30 -0.0");
    check_op("gelu, approximate=tanh", "bf16[2] 0 30", "bf16[2] 0 30");
    check_op("exp", "f32[3] 0 -inf inf", "f32[3] 1 0 inf");
    check_op("exp", "i32[1] 0", "f32[1] 1");
    check_op("log", "i64 1", "f64 0");
    check_op("hypot", "f32[1] 3e38; f32[1] 0", "f32[1] 3e38");
    check_op("atan2", "f64[1] 0; f64[1] -1", "f64[1] 3.141592653589793");
    check_op("erf", "f32[1] 4.5", "f32[1] 1");
}
END_TEST

START_TEST(strides) {
    check_op("neg", "i8[3]{-1}@2 10 20 30", "i8[3] -30 -20 -10");
    check_op("neg", "f32[2,3]{0,1}@1 9 1 2 3", "f32[2,3] -1 -2 -3 -1 -2 -3");
    check_op("add", "f32[4,2]{1,4}@0 0 1 2 3 4 5 6 7; f32[2] 10 20", "f32[4,2] 10 24 11 25 12 26 13 27");
    check_op("add", "i64[2,1] 1 2; i64[1,3] 10 20 30", "i64[2,3] 11 21 31 12 22 32");
    check_op("add", "f32[0,4]; f32[4] 1 2 3 4", "f32[0,4]");
    check_op("neg", "f32[] 2", "f32[] -2");
    check_op("neg", "i8[1,1,1,1,1,1,2,1] 1 2", "i8[1,1,1,1,1,1,2,1] -1 -2");
    check_case("(%x: i8[?, ?]) { %a = stride %x, 0 %b = stride %x, 1 %c = size %x, -1 return %a, %b, %c }",
               "i8[2,2]{-2,1}@2 1 2 3 4", "i64 -2; i64 1; i64 2");
    check_case("(%x: bool[?]) { %a = stride %x, 0 return %a, %x }", "bool[2]{-2}@2 true false false",
               "i64 -2; bool[2] false true");
}
END_TEST

START_TEST(bool_bytes) {
    uint8_t bytes[4] = {0, 1, 2, 255};
    lf_array x = {.dtype = LF_BOOL, .tensor = true, .rank = 1, .shape = {4}, .strides = {1}, .data = bytes};
    lf_interp_result *r;
    lf_status s = run_program("(%x: bool[?]) { %y = not %x return %x, %y }", &x, 1, &r);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    ck_assert_mem_eq(r->outputs[0].data, ((uint8_t[]){0, 1, 1, 1}), 4);
    ck_assert_mem_eq(r->outputs[1].data, ((uint8_t[]){1, 0, 0, 0}), 4);
    ck_assert_ptr_ne(r->outputs[0].data, bytes);
    lf_interp_result_destroy(r);
}
END_TEST

// Each elementwise row has a case for each category that the table allows; halves are widened where there is none for them.
START_TEST(every_row_has_its_cases) {
    static lf_eval_fn *const families[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = lf_eval_##family,
#include "ir/ops.def"
    };
    for (lf_dtype d = LF_BOOL; d < LF_DTYPE_COUNT; d++) {
        char category = lf_is_integer(d) ? 'i' : lf_is_float(d) ? 'f' : lf_is_complex(d) ? 'c' : 'b';
        lf_dtype part = lf_is_half(d) ? LF_F32 : d;
        for (lf_opcode code = 1; code < LF_OP_COUNT; code++) {
            const lf_op_info *info = lf_op_info_of(code);
            if (!families[code] || !strchr(info->allow, category) || code == LF_OP_CAST || code == LF_OP_BITCAST) continue;
            lf_scalar element = {{0}}, out;
            lf_eval e = {.code = code, .in = {d, d, d, d}, .out = d, .dst = &out};
            for (unsigned i = 0; i < 4; i++) e.src[i] = &element;
            if (code == LF_OP_SELECT) e.in[0] = LF_BOOL;
            if (code == LF_OP_ANGLE && !lf_is_float(d)) e.out = lf_is_complex(d) ? lf_dtype_part(d) : LF_F32;
            bool known = families[code](&e);
            for (unsigned i = 0; i < 4; i++) e.in[i] = e.in[i] == d ? part : e.in[i];
            e.out = e.out == d ? part : e.out;
            ck_assert_msg(known || families[code](&e), "%s has no case for %s", info->name, lf_dtype_name(d));
        }
    }
}
END_TEST

int main(void) {
    Suite *s = suite_create("interp");
    TCase *t = tcase_create("elementwise");
    tcase_add_test(t, every_row_has_its_cases);
    tcase_add_test(t, arithmetic_wraps);
    tcase_add_test(t, floats_round_at_each_step);
    tcase_add_test(t, fma_rounds_once);
    tcase_add_test(t, integer_division);
    tcase_add_test(t, float_division);
    tcase_add_test(t, powers);
    tcase_add_test(t, shifts);
    tcase_add_test(t, bits_and_truth);
    tcase_add_test(t, comparisons_by_value);
    tcase_add_test(t, minima_and_maxima);
    tcase_add_test(t, rounding);
    tcase_add_test(t, conversions);
    tcase_add_test(t, bit_patterns);
    tcase_add_test(t, predicates);
    tcase_add_test(t, complex_numbers);
    tcase_add_test(t, formulas);
    tcase_add_test(t, strides);
    tcase_add_test(t, bool_bytes);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
