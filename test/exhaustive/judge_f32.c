// The judge of f32 results, many a second: true values in double, distances by arithmetic on their bits, which vectorises. What is
// out of the ordinary (kinds that differ, distances over the limit) is marked, and left to the slow judge with its MPFR.
#include "test/exhaustive/exhaustive.h"
#include <math.h>
#include <string.h>

static uint64_t bits64(double x) {
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}

static uint32_t bits32(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

// 2^23 / 2^e for |x| in [2^e, 2^(e + 1)), e not below the least exponent of f32: turns an error into ulps.
static double per_ulp(double x) {
    uint64_t exponent = bits64(x) >> 52 & 2047, least = 1023 - 126, bits;
    bits = (2 * 1023 + 23 - (exponent < least ? least : exponent)) << 52;
    double scale;
    memcpy(&scale, &bits, 8);
    return scale;
}

size_t judge_f32(const op *f, double limit, const float *x, const void *results, size_t n, uint8_t *doubtful, double *worst,
                 size_t *worst_at) {
    double truth[JUDGE_BLOCK], ulps[JUDGE_BLOCK];
    const float *got = results;
    size_t doubts = 0;
    for (size_t i = 0; i < n; i++) truth[i] = f->truth(x[i]);
    if (f->predicate) {
        const uint8_t *bools = results;
        for (size_t i = 0; i < n; i++) doubts += doubtful[i] = bools[i] != (truth[i] != 0);
        return doubts;
    }
    if (f->kind == EXACT) {
        for (size_t i = 0; i < n; i++) {
            bool nans = truth[i] != truth[i] && got[i] != got[i];
            doubtful[i] = !nans & (bits32((float)truth[i]) != bits32(got[i]));
            doubts += doubtful[i];
        }
        return doubts;
    }
    for (size_t i = 0; i < n; i++) {
        // Equal to a truth that is NaN, infinite or zero; or both ordinary.
        bool nans = truth[i] != truth[i] && got[i] != got[i];
        bool special = truth[i] == 0 || fabs(truth[i]) >= 0x1p128;
        bool equal = nans | (special & (bits32((float)truth[i]) == bits32(got[i])));
        bool ordinary = !special & (fabs(truth[i]) < 0x1p128) & (fabsf(got[i]) <= 0x1.fffffep127f);
        double d = fabs(got[i] - truth[i]) * per_ulp(truth[i]);
        ulps[i] = equal ? 0 : d;
        doubtful[i] = !(equal | (ordinary & (d <= limit)));
        doubts += doubtful[i];
    }
    for (size_t i = 0; i < n; i++)
        if (!doubtful[i] && ulps[i] > *worst) *worst = ulps[i], *worst_at = i;
    return doubts;
}
