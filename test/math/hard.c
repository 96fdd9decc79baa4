// Doubles whose neighbourhood is hard for some function: zeros, poles, thresholds, known worst cases.
#include "test_math.h"

const double test_math_hard[] = {
    // small, subnormal, the ends
    0x1p-1074, 0x1p-1022, 0x1p-1021, 0x1p-540, 0x1p-30, 0x1p-27, 0x1p-14, 0x1p1023, 0x1.fffffffffffffp1023, 0x1p53, 0x1p52,
    // near 1, 2, 1/2, e and the like
    0.5, 1, 2, 3, 4, 10, 0x1.5bf0a8b145769p+1, 0.75, 0.25, 0.875, 1.5, 0x1.fffffffffffffp-1, 0.46875, 0.84375, 1.25,
    // multiples of π/2 that doubles come close to
    0x1.921fb54442d18p+0, 0x1.921fb54442d18p+1, 0x1.2d97c7f3321d2p+2, 0x1.6ac5b262ca1ffp+849, 0x1.f6a7a2955385ep+583, 0x1.921fb54442d18p+40,
    // thresholds of exp, exp2, sinh, erfc, gamma
    0x1.62e42fefa39efp+9, 0x1.6232bdd7abcd2p+9, 0x1.74910d52d3051p+9, 0x1.633ce8fb9f87dp+9, 1024, 1022, 1074, 1075, 0x1.b39dc41e48bfdp+4, 0x1.a8b12fc6e4892p+4,
    0x1.573fae561f647p+7, 22, 18.75, 19.0625, 0x1.62e42fefa39efp-2,
    // zeros and extrema of lgamma and digamma, poles
    0x1.762d86356be3fp+0, 2.4570247382208006, 2.7476826467274127, 3.1435808883499798, 4.9914544640560475, 0.50408300826445541, 1.5734984731623905,
    2.6107208684441447, 5, 16, 20, 100.5, 170, 171, 171.5, 177.5, 183.5, 36.5, 35.5, 1.0009765625, 1.9990234375, 15.5, 7.5, 12.25,
    // erfinv, atanh, acosh
    0.9999999, 0.97, 0.6, 1.0000001, 0.7071067811865476,
};
const int test_math_hard_count = sizeof test_math_hard / sizeof test_math_hard[0];
