// Complex division and reciprocal: Smith's method, each step rounded in the component type, which is what the
// language says; so these two have an f32 body of their own.
#include "complex.h"

#define SMITH(type, suffix, magnitude)                                                                                      \
    void lfm_cdiv_##suffix(type are, type aim, type bre, type bim, type *out_re, type *out_im) {                            \
        if (magnitude(bre) >= magnitude(bim)) {                                                                             \
            type ratio = bim / bre, den = bre + bim * ratio;                                                                \
            *out_re = (are + aim * ratio) / den;                                                                            \
            *out_im = (aim - are * ratio) / den;                                                                            \
        } else {                                                                                                            \
            type ratio = bre / bim, den = bre * ratio + bim;                                                                \
            *out_re = (are * ratio + aim) / den;                                                                            \
            *out_im = (aim * ratio - are) / den;                                                                            \
        }                                                                                                                   \
    }                                                                                                                       \
    void lfm_creciprocal_##suffix(type re, type im, type *out_re, type *out_im) {                                           \
        lfm_cdiv_##suffix(1, 0, re, im, out_re, out_im);                                                                    \
    }

SMITH(float, f32, abs32)
SMITH(double, f64, abs64)
