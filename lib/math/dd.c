// log and exp of double-double numbers. Series whose first terms are double-double and whose rest, which is small,
// is double: neither tables nor iterations.
#include "dd.h"

#define LFM_DD_FUNCTION __attribute__((noinline, const))

LFM_DD_FUNCTION dd dd_log(dd x) {
    int64_t e = 0;
    if (x.hi < 0x1p-1000) {
        x = dd_scale(x, 0x1p100);
        e = -100;
    }
    // x = 2^e·m, m in [√½, √2)
    uint64_t i = bits64(x.hi) - 0x3fe6a09e667f3bcd;
    int64_t k = (int64_t)i >> 52;
    e += k;
    dd m = dd_scale(x, double_of((uint64_t)(1023 - (k < -900 ? -900 : k)) << 52));
    // ln m = 2·artanh s, s = (m - 1)/(m + 1), |s| <= 0.172
    dd s = dd_div(dd_add_d(m, -1), dd_add_d(m, 1));
    dd u = dd_mul(s, s);
    double t = 1.0 / 31;
    t = fma64(t, u.hi, 1.0 / 29);
    t = fma64(t, u.hi, 1.0 / 27);
    t = fma64(t, u.hi, 1.0 / 25);
    t = fma64(t, u.hi, 1.0 / 23);
    t = fma64(t, u.hi, 1.0 / 21);
    t = fma64(t, u.hi, 1.0 / 19);
    t = fma64(t, u.hi, 1.0 / 17);
    t = fma64(t, u.hi, 1.0 / 15);
    t = fma64(t, u.hi, 1.0 / 13);
    t = fma64(t, u.hi, 1.0 / 11);
    t = fma64(t, u.hi, 1.0 / 9);
    dd a = dd_mul_d(u, t);
    a = dd_mul(u, dd_add(a, dd_make(0x1.2492492492492p-3, 0x1.2492492492492p-57)));
    a = dd_mul(u, dd_add(a, dd_make(0x1.999999999999ap-3, -0x1.999999999999ap-57)));
    a = dd_mul(u, dd_add(a, dd_make(0x1.5555555555555p-2, 0x1.5555555555555p-56)));
    dd ln_m = dd_add(s, dd_mul(s, a));
    ln_m = dd_scale(ln_m, 2);
    double n = (double)e;
    return dd_add(dd_add(dd_make(n * LN2_1, 0), dd_product(n, LN2_2)), ln_m);
}

LFM_DD_FUNCTION dd_scaled dd_exp(dd x) {
    x = x.hi > 1500 ? dd_make(1500, 0) : x.hi < -1500 ? dd_make(-1500, 0) : x;
    double t = fma64(x.hi, 0x1.71547652b82fep+0, 0x1.8p52);
    double n = t - 0x1.8p52;
    dd r = dd_add(dd_add_d(x, -n * LN2_1), dd_product(n, -LN2_2));
    double q = 0x1.952c77030ad4ap-49; // 1/17!
    q = fma64(q, r.hi, 0x1.ae7f3e733b81fp-45);
    q = fma64(q, r.hi, 0x1.ae7f3e733b81fp-41);
    q = fma64(q, r.hi, 0x1.93974a8c07c9dp-37);
    q = fma64(q, r.hi, 0x1.6124613a86d09p-33);
    q = fma64(q, r.hi, 0x1.1eed8eff8d898p-29);
    q = fma64(q, r.hi, 0x1.ae64567f544e4p-26);
    q = fma64(q, r.hi, 0x1.27e4fb7789f5cp-22);
    q = fma64(q, r.hi, 0x1.71de3a556c734p-19);
    q = fma64(q, r.hi, 0x1.a01a01a01a01ap-16);
    q = fma64(q, r.hi, 0x1.a01a01a01a01ap-13);
    q = fma64(q, r.hi, 0x1.6c16c16c16c17p-10); // 1/6!
    dd a = dd_mul_d(r, q);
    a = dd_mul(r, dd_add(a, dd_make(0x1.1111111111111p-7, 0x1.1111111111111p-63)));
    a = dd_mul(r, dd_add(a, dd_make(0x1.5555555555555p-5, 0x1.5555555555555p-59)));
    a = dd_mul(r, dd_add(a, dd_make(0x1.5555555555555p-3, 0x1.5555555555555p-57)));
    a = dd_mul(r, dd_add_d(a, 0.5));
    a = dd_mul(r, dd_add_d(a, 1));
    dd_scaled y = {dd_add_d(a, 1), (int64_t)(bits64(t) - bits64(0x1.8p52))};
    return y;
}
