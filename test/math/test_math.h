// What the parts of test_math share.
#ifndef LF_TEST_MATH_H
#define LF_TEST_MATH_H

#include <stdint.h>

extern int test_math_checks, test_math_failures;

// Doubles (positive) whose neighbourhood is hard for some function.
extern const double test_math_hard[];
extern const int test_math_hard_count;

void test_math_special(void);          // special values, and the holes of libclc, mended
void test_math_forms(uint32_t stride); // exp_near and exp_low against exp
void test_math_half(void);             // f16 and bf16 conversions
void test_math_binary(int pairs);      // pow, atan2, hypot, fmod, ldexp, nextafter
void test_math_complex(int pairs);     // complex functions, by the modulus

#endif
