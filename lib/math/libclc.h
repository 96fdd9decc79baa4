// The functions taken from libclc's generic bitcode, under names of our own. cut_libclc.sh extracts what stands in
// this file, no more; a function called here is linked in, one that is not called vanishes.
#ifndef LF_MATH_LIBCLC_H
#define LF_MATH_LIBCLC_H

#define CLC1(name, mangled)                                                                                                 \
    double clc_##name##_f64(double) __asm__("_Z" mangled "d") __attribute__((const));                                       \
    float clc_##name##_f32(float) __asm__("_Z" mangled "f") __attribute__((const));
#define CLC2(name, mangled)                                                                                                 \
    double clc_##name##_f64(double, double) __asm__("_Z" mangled "dd") __attribute__((const));                              \
    float clc_##name##_f32(float, float) __asm__("_Z" mangled "ff") __attribute__((const));

CLC1(acos, "4acos")
CLC1(acosh, "5acosh")
CLC1(asin, "4asin")
CLC1(asinh, "5asinh")
CLC1(atan, "4atan")
CLC1(atanh, "5atanh")
CLC1(cbrt, "4cbrt")
CLC1(cos, "3cos")
CLC1(cosh, "4cosh")
CLC1(erf, "3erf")
CLC1(erfc, "4erfc")
CLC1(exp, "3exp")
CLC1(exp2, "4exp2")
CLC1(expm1, "5expm1")
CLC1(lgamma, "6lgamma")
CLC1(log, "3log")
CLC1(log10, "5log10")
CLC1(log1p, "5log1p")
CLC1(log2, "4log2")
CLC1(sin, "3sin")
CLC1(sinh, "4sinh")
CLC1(tan, "3tan")
CLC1(tanh, "4tanh")
CLC1(tgamma, "6tgamma")
CLC2(atan2, "5atan2")
CLC2(hypot, "5hypot")
CLC2(pow, "3pow")

#undef CLC1
#undef CLC2

#endif
