// The unary float ops and their true values.
#include "test/exhaustive/exhaustive.h"
#include "math/math.h"
#include <math.h>
#include <string.h>

static double reciprocal(double x) { return 1 / x; }
static double negate(double x) { return -x; }
static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x != x ? x : 0; }
static double frac(double x) { return isinf(x) ? NAN : x - trunc(x); }
static double relu(double x) { return x != x || x > 0 ? x : 0; }
static double same(double x) { return x; }
static double none(double x) {
    (void)x;
    return 0;
}
static double angle(double x) { return x != x ? x : x < 0 ? M_PI : 0; }
static double is_zero(double x) { return x == 0; }
static double is_nan(double x) { return x != x; }
static double is_inf(double x) { return isinf(x) != 0; }
static double is_finite(double x) { return isfinite(x) != 0; }
static double is_posinf(double x) { return x == INFINITY; }
static double is_neginf(double x) { return x == -INFINITY; }
static double sign_bit(double x) { return x == x && signbit(x); }

static double rsqrt(double x) { return 1 / sqrt(x); }
static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static double gamma_of(double x) { return x == 0 ? copysign(INFINITY, x) : x < 0 && x == floor(x) ? NAN : tgamma(x); }
static double silu(double x) { return x * sigmoid(x); }
static double gelu(double x) { return 0.5 * x * erfc(-x * M_SQRT1_2); }
static double gelu_tanh(double x) { return x * sigmoid(2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }
static double softplus(double x) { return x > 20 ? x : log1p(exp(x)); }
static double leaky(double x) { return x > 0 ? x : 0.01 * x; }
static double elu(double x) { return x > 0 ? x : expm1(x); }

#define EXACT_OP(name, f) {#name, #name " %a", EXACT, f, false},
#define PREDICATE(name, f) {#name, #name " %a", EXACT, f, true},
#define MATHS_OP(name, f) {#name, #name " %a", MATHS, f, false},
const op ops[] = {
    EXACT_OP(sqrt, sqrt) EXACT_OP(reciprocal, reciprocal) EXACT_OP(neg, negate) EXACT_OP(abs, fabs) EXACT_OP(sign, sign)
        EXACT_OP(ceil, ceil) EXACT_OP(floor, floor) EXACT_OP(trunc, trunc) EXACT_OP(round, rint) EXACT_OP(frac, frac)
            EXACT_OP(relu, relu) EXACT_OP(conj, same) EXACT_OP(real, same) EXACT_OP(imag, none) EXACT_OP(angle, angle)
                PREDICATE(lnot, is_zero) PREDICATE(isnan, is_nan) PREDICATE(isinf, is_inf) PREDICATE(isfinite, is_finite)
                    PREDICATE(isposinf, is_posinf) PREDICATE(isneginf, is_neginf) PREDICATE(signbit, sign_bit)
                        MATHS_OP(rsqrt, rsqrt) MATHS_OP(cbrt, cbrt) MATHS_OP(exp, exp) MATHS_OP(exp2, exp2)
                            MATHS_OP(expm1, expm1) MATHS_OP(log, log) MATHS_OP(log2, log2) MATHS_OP(log10, log10)
                                MATHS_OP(log1p, log1p) MATHS_OP(sin, sin) MATHS_OP(cos, cos) MATHS_OP(tan, tan)
                                    MATHS_OP(asin, asin) MATHS_OP(acos, acos) MATHS_OP(atan, atan) MATHS_OP(sinh, sinh)
                                        MATHS_OP(cosh, cosh) MATHS_OP(tanh, tanh) MATHS_OP(asinh, asinh)
                                            MATHS_OP(acosh, acosh) MATHS_OP(atanh, atanh) MATHS_OP(erf, erf)
                                                MATHS_OP(erfc, erfc) MATHS_OP(sigmoid, sigmoid) MATHS_OP(tgamma, gamma_of)
                                                    MATHS_OP(lgamma, lgamma)
    // glibc has none of these; their f64 versions are judged by MPFR (section f64).
    MATHS_OP(erfinv, lfm_erfinv_f64) MATHS_OP(digamma, lfm_digamma_f64){"silu", "silu %a", STEPS, silu, false},
    {"gelu", "gelu %a", STEPS, gelu, false},
    {"gelu_tanh", "gelu %a, approximate=tanh", STEPS, gelu_tanh, false},
    {"softplus", "softplus %a", STEPS, softplus, false},
    {"leaky_relu", "leaky_relu %a", STEPS, leaky, false},
    {"elu", "elu %a", STEPS, elu, false},
};
const size_t n_ops = sizeof ops / sizeof *ops;

bool wanted(const options *o, const char *name) {
    if (!o->only) return true;
    size_t n = strlen(name);
    for (const char *at = o->only; (at = strstr(at, name)); at++)
        if ((at == o->only || at[-1] == ',') && (!at[n] || at[n] == ',')) return true;
    return false;
}
