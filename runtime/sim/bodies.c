// What each row of device_intrinsics.def does. A row whose body is missing does not link.
#include "runtime/sim/sim.h"
#include <math.h>
#include <string.h>

typedef void (*body)(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint64_t *out);
#define BODY(name) static void lf_sim_do_##name(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint64_t *out)
#define UNUSED (void)t, (void)site, (void)in, (void)out

// ---- where a thread is -------------------------------------------------------------------------------------------------------

static uint32_t lane_of(const lf_sim_thread *t) { return t->number % LF_SIM_WARP; }

BODY(zero) {
    UNUSED;
    out[0] = 0;
}
BODY(one) {
    UNUSED;
    out[0] = 1;
}
BODY(tid) {
    UNUSED;
    out[0] = t->number;
}
BODY(ntid) {
    UNUSED;
    out[0] = t->run->block;
}
BODY(ctaid) {
    UNUSED;
    out[0] = t->block->ctaid;
}
BODY(nctaid) {
    UNUSED;
    out[0] = t->run->grid;
}
BODY(laneid) {
    UNUSED;
    out[0] = lane_of(t);
}
BODY(warpsize) {
    UNUSED;
    out[0] = LF_SIM_WARP;
}
BODY(lanemask_eq) {
    UNUSED;
    out[0] = UINT32_C(1) << lane_of(t);
}
BODY(lanemask_lt) {
    UNUSED;
    out[0] = (UINT32_C(1) << lane_of(t)) - 1;
}
BODY(lanemask_le) {
    UNUSED;
    out[0] = UINT32_MAX >> (31 - lane_of(t));
}
BODY(lanemask_ge) {
    UNUSED;
    out[0] = (uint32_t)(UINT32_MAX << lane_of(t));
}
BODY(lanemask_gt) {
    UNUSED;
    out[0] = ~(UINT32_MAX >> (31 - lane_of(t)));
}
// Which lanes run together is up to the machine; here each runs alone.
BODY(activemask) {
    UNUSED;
    out[0] = UINT32_C(1) << lane_of(t);
}

// ---- barriers and fences -----------------------------------------------------------------------------------------------------

BODY(barrier) {
    UNUSED;
    if (in[0])
        lf_sim_fault(t, LF_SIM_UNSUPPORTED, site, "barrier %llu; kernels use barrier 0 only", (unsigned long long)in[0]);
    lf_sim_wait_barrier(t, site);
}
BODY(fence_block) { UNUSED; }
BODY(nothing) { UNUSED; }
// Launches run one after the other: there is nothing to wait for, but it must be asked.
BODY(wait_for_previous) {
    UNUSED;
    t->early = false;
}
BODY(fence_device) {
    UNUSED;
    lf_sim_fence(t, LF_SIM_RELEASE);
}
BODY(fence_system) {
    UNUSED;
    lf_sim_fence(t, LF_SIM_RELEASE | LF_SIM_SYSTEM);
}

// ---- shuffles ----------------------------------------------------------------------------------------------------------------

// PTX's rule: operands mask, value, lane or distance, clamp | segment mask << 8. The lane that l reads from.
typedef uint32_t (*source_rule)(uint32_t lane, uint32_t by, uint32_t least, uint32_t most, uint32_t segment);
static uint32_t from_idx(uint32_t lane, uint32_t by, uint32_t least, uint32_t most, uint32_t segment) {
    uint32_t j = least | (by & ~segment);
    return j <= most ? j : lane;
}
static uint32_t from_up(uint32_t lane, uint32_t by, uint32_t least, uint32_t most, uint32_t segment) {
    (void)least, (void)segment;
    return (int32_t)(lane - by) >= (int32_t)most ? lane - by : lane;
}
static uint32_t from_down(uint32_t lane, uint32_t by, uint32_t least, uint32_t most, uint32_t segment) {
    (void)least, (void)segment;
    return lane + by <= most ? lane + by : lane;
}
static uint32_t from_bfly(uint32_t lane, uint32_t by, uint32_t least, uint32_t most, uint32_t segment) {
    (void)least, (void)segment;
    return (lane ^ by) <= most ? lane ^ by : lane;
}

static void shuffle(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active, source_rule rule) {
    for (uint32_t l = 0; l < LF_SIM_WARP; l++) {
        if (!(active >> l & 1)) continue;
        lf_sim_thread *t = lanes[l];
        uint32_t by = (uint32_t)t->operands[2] & 31, clamp = (uint32_t)t->operands[3] & 31,
                 segment = (uint32_t)t->operands[3] >> 8 & 31;
        uint32_t j = rule(l, by, l & segment, (l & segment) | (clamp & ~segment), segment);
        if (!(active >> j & 1)) {
            lf_sim_note_fault(t->run, t, LF_SIM_INACTIVE_LANE, t->site,
                              "lane %u reads from lane %u, which takes no part (those that do: %#x)", l, j, active);
            return;
        }
        t->results[0] = lanes[j]->operands[1];
    }
}
static void all_idx(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) { shuffle(lanes, active, from_idx); }
static void all_up(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) { shuffle(lanes, active, from_up); }
static void all_down(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) { shuffle(lanes, active, from_down); }
static void all_bfly(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) { shuffle(lanes, active, from_bfly); }
BODY(shuffle_idx) { lf_sim_meet(t, site, (uint32_t)in[0], all_idx, in, out); }
BODY(shuffle_up) { lf_sim_meet(t, site, (uint32_t)in[0], all_up, in, out); }
BODY(shuffle_down) { lf_sim_meet(t, site, (uint32_t)in[0], all_down, in, out); }
BODY(shuffle_bfly) { lf_sim_meet(t, site, (uint32_t)in[0], all_bfly, in, out); }

// ---- votes and the like --------------------------------------------------------------------------------------------------------

static uint32_t ballot_of(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) {
    uint32_t ballot = 0;
    for (uint32_t l = 0; l < LF_SIM_WARP; l++)
        if (active >> l & 1 && lanes[l]->operands[1] & 1) ballot |= UINT32_C(1) << l;
    return ballot;
}
static void tell_all(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active, uint64_t result) {
    for (uint32_t l = 0; l < LF_SIM_WARP; l++)
        if (active >> l & 1) lanes[l]->results[0] = result;
}
static void ballot(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) {
    tell_all(lanes, active, ballot_of(lanes, active));
}
static void all(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) {
    tell_all(lanes, active, ballot_of(lanes, active) == active);
}
static void any(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) {
    tell_all(lanes, active, ballot_of(lanes, active) != 0);
}
static void uniform(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) {
    uint32_t b = ballot_of(lanes, active);
    tell_all(lanes, active, b == active || b == 0);
}
static void match(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) {
    for (uint32_t l = 0; l < LF_SIM_WARP; l++) {
        uint32_t same = 0;
        if (!(active >> l & 1)) continue;
        for (uint32_t k = 0; k < LF_SIM_WARP; k++)
            if (active >> k & 1 && lanes[k]->operands[1] == lanes[l]->operands[1]) same |= UINT32_C(1) << k;
        lanes[l]->results[0] = same;
    }
}
BODY(vote_all) { lf_sim_meet(t, site, (uint32_t)in[0], all, in, out); }
BODY(vote_any) { lf_sim_meet(t, site, (uint32_t)in[0], any, in, out); }
BODY(vote_uni) { lf_sim_meet(t, site, (uint32_t)in[0], uniform, in, out); }
BODY(vote_ballot) { lf_sim_meet(t, site, (uint32_t)in[0], ballot, in, out); }
BODY(match_any) { lf_sim_meet(t, site, (uint32_t)in[0], match, in, out); }

// redux: operands value, mask.
#define REDUX(name, start, expression)                                                                                      \
    static void all_##name(lf_sim_thread *const lanes[LF_SIM_WARP], uint32_t active) {                                      \
        uint32_t a = (start);                                                                                               \
        for (uint32_t l = 0; l < LF_SIM_WARP; l++) {                                                                        \
            if (!(active >> l & 1)) continue;                                                                               \
            uint32_t b = (uint32_t)lanes[l]->operands[0];                                                                   \
            a = (expression);                                                                                               \
        }                                                                                                                   \
        tell_all(lanes, active, a);                                                                                         \
    }                                                                                                                       \
    BODY(name) { lf_sim_meet(t, site, (uint32_t)in[1], all_##name, in, out); }
REDUX(redux_add, 0, a + b)
REDUX(redux_umin, UINT32_MAX, a < b ? a : b)
REDUX(redux_umax, 0, a > b ? a : b)
REDUX(redux_min, INT32_MAX, (int32_t)a < (int32_t)b ? a : b)
REDUX(redux_max, (uint32_t)INT32_MIN, (int32_t)a > (int32_t)b ? a : b)
REDUX(redux_and, UINT32_MAX, a &b)
REDUX(redux_or, 0, a | b)
REDUX(redux_xor, 0, a ^ b)

// ---- asynchronous copies -------------------------------------------------------------------------------------------------------

static void copy(lf_sim_thread *t, uint32_t site, const uint64_t *in, uint32_t bytes) {
    lf_sim_copy_start(t, (void *)(uintptr_t)in[0], (const void *)(uintptr_t)in[1], bytes, site);
}
BODY(copy_async_4) {
    UNUSED;
    copy(t, site, in, 4);
}
BODY(copy_async_8) {
    UNUSED;
    copy(t, site, in, 8);
}
BODY(copy_async_16) {
    UNUSED;
    copy(t, site, in, 16);
}
BODY(copy_async_commit) {
    UNUSED;
    lf_sim_copy_commit(t);
}
BODY(copy_async_wait) {
    UNUSED;
    lf_sim_copy_wait(t, (uint32_t)in[0], site);
}
BODY(copy_async_wait_all) {
    UNUSED;
    lf_sim_copy_wait(t, UINT32_MAX, site);
}

// ---- approximate functions -------------------------------------------------------------------------------------------------------

static float real(uint64_t word) {
    uint32_t bits = (uint32_t)word;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static uint64_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static float flushed(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x; }

#define FUNCTION(name, expression)                                                                                          \
    BODY(name) {                                                                                                            \
        UNUSED;                                                                                                             \
        float x = real(in[0]);                                                                                              \
        out[0] = bits_of((float)(expression));                                                                              \
    }
FUNCTION(exp2, exp2f(x))
FUNCTION(exp2_ftz, flushed(exp2f(flushed(x))))
FUNCTION(log2, log2f(x))
FUNCTION(log2_ftz, flushed(log2f(flushed(x))))
FUNCTION(sin, sinf(x))
FUNCTION(cos, cosf(x))
FUNCTION(tanh, tanhf(x))
FUNCTION(rcp_ftz, flushed(1 / flushed(x)))
FUNCTION(rsqrt, 1 / sqrt((double)x))
FUNCTION(rsqrt_ftz, 1 / sqrt((double)flushed(x)))
FUNCTION(sqrt, sqrtf(x))
FUNCTION(div, x / real(in[1]))

// To nearest, ties to even; every NaN becomes the same one.
static uint32_t bf16_of(uint64_t word) {
    uint32_t bits = (uint32_t)word;
    return isnan(real(word)) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16 & 0xffff;
}

BODY(float_to_bf16) {
    UNUSED;
    out[0] = bf16_of(in[0]);
}

BODY(floats_to_bf16x2) {
    UNUSED;
    out[0] = bf16_of(in[0]) << 16 | bf16_of(in[1]);
}

// ---- two halves in a word --------------------------------------------------------------------------------------------------------

typedef struct half_format {
    int mantissa, least, most; // explicit bits; exponents of the least normal number and of the greatest
} half_format;
static const half_format bf16 = {7, -126, 127}, f16 = {10, -14, 15};
enum { HALF_NAN = 0x7fff };

static double half_value(half_format f, uint32_t h) {
    int field = (int)((h & 0x7fff) >> f.mantissa);
    double fraction = h & ((1u << f.mantissa) - 1), hidden = field ? 1u << f.mantissa : 0, size;
    if (field == f.most - f.least + 2)
        size = fraction > 0 ? (double)NAN : (double)INFINITY;
    else
        size = ldexp(hidden + fraction, (field ? field - 1 : 0) + f.least - f.mantissa);
    return h & 0x8000 ? -size : size;
}

// To nearest, ties to even. Every double that a half may be the neighbour of is normal.
static uint32_t half_of(half_format f, double x) {
    if (isnan(x)) return HALF_NAN;
    uint32_t sign = signbit(x) ? 0x8000 : 0, infinity = (uint32_t)(f.most - f.least + 2) << f.mantissa;
    int e = x == 0 || isinf(x) ? f.least : ilogb(x), quantum = (e < f.least ? f.least : e) - f.mantissa;
    if (isinf(x) || e > f.most) return sign | infinity;
    uint32_t units = (uint32_t)rint(ldexp(fabs(x), -quantum)); // the hidden bit, and a carry, count up the exponent field
    return sign | (((uint32_t)(quantum + f.mantissa - f.least) << f.mantissa) + units);
}

// The product of two halves is exact in a double; the sum is brought to odd by what it lost, so that it can be rounded again.
static uint32_t half_fma(half_format f, uint32_t a, uint32_t b, uint32_t c) {
    double p = half_value(f, a) * half_value(f, b), z = half_value(f, c), sum = p + z;
    double of_z = sum - p, lost = (p - (sum - of_z)) + (z - of_z);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (isfinite(sum) && lost != 0 && !(bits & 1)) sum = nextafter(sum, lost > 0 ? (double)INFINITY : -(double)INFINITY);
    return half_of(f, sum);
}

static uint64_t half_fmas(half_format f, const uint64_t *in) {
    uint32_t low = half_fma(f, (uint32_t)in[0] & 0xffff, (uint32_t)in[1] & 0xffff, (uint32_t)in[2] & 0xffff);
    return low | half_fma(f, (uint32_t)in[0] >> 16, (uint32_t)in[1] >> 16, (uint32_t)in[2] >> 16) << 16;
}
BODY(fma_bf16x2) {
    UNUSED;
    out[0] = half_fmas(bf16, in);
}
BODY(fma_f16x2) {
    UNUSED;
    out[0] = half_fmas(f16, in);
}

// The greater (or, of the bits turned round, the lesser) of two halves by their order as numbers, -0 below +0; a NaN wins.
static uint32_t greater_half(uint32_t a, uint32_t b, uint32_t infinity, bool least) {
    if ((a & 0x7fff) > infinity || (b & 0x7fff) > infinity) return 0x7fff;
    int32_t x = a & 0x8000 ? -(int32_t)(a & 0x7fff) - 1 : (int32_t)a,
            y = b & 0x8000 ? -(int32_t)(b & 0x7fff) - 1 : (int32_t)b;
    return (x > y) != least ? a : b;
}
static uint32_t greater_halves(const uint64_t *in, uint32_t infinity, bool least) {
    return greater_half((uint32_t)in[0] & 0xffff, (uint32_t)in[1] & 0xffff, infinity, least) |
           greater_half((uint32_t)in[0] >> 16, (uint32_t)in[1] >> 16, infinity, least) << 16;
}
enum { BF16_INFINITY = 0x7f80, F16_INFINITY = 0x7c00 };
BODY(max_bf16x2) {
    UNUSED;
    out[0] = greater_halves(in, BF16_INFINITY, false);
}
BODY(min_bf16x2) {
    UNUSED;
    out[0] = greater_halves(in, BF16_INFINITY, true);
}
BODY(max_f16x2) {
    UNUSED;
    out[0] = greater_halves(in, F16_INFINITY, false);
}
BODY(min_f16x2) {
    UNUSED;
    out[0] = greater_halves(in, F16_INFINITY, true);
}

BODY(same) {
    UNUSED;
    out[0] = in[0];
}

BODY(saturate_u64_to_u32) {
    UNUSED;
    out[0] = in[0] < UINT32_MAX ? in[0] : UINT32_MAX;
}

// ---- the table -------------------------------------------------------------------------------------------------------------------

#define LF_DEVICE(name, flags, sm, sim) lf_sim_do_##sim,
#define LF_DEVICE_ASM(text, flags, sm, sim) lf_sim_do_##sim,
static const body bodies[] = {
#include "base/device_intrinsics.def"
};
#undef LF_DEVICE
#undef LF_DEVICE_ASM

void lf_sim_device_call(lf_sim_thread *t, uint32_t row, uint32_t site, const uint64_t *operands, uint64_t *results) {
    bodies[row](t, site, operands, results);
}
