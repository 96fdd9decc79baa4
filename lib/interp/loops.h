// Cases of a switch over dtypes that apply an expression to spans: x, y, z, v are the operands' elements.
// Integers are computed as uint64_t and cut to the dtype, so that everything wraps.
#ifndef LF_INTERP_LOOPS_H
#define LF_INTERP_LOOPS_H

#define LF_LOOP(T, R, read, ...)                                                                                            \
    {                                                                                                                       \
        R *out = e->dst;                                                                                                    \
        for (size_t i = 0; i < e->n; i++) { read(T) out[i] = (__VA_ARGS__); }                                               \
        return true;                                                                                                        \
    }
#define LF_READ1(T) const T x = ((const T *)e->src[0])[i];
#define LF_READ2(T) LF_READ1(T) const T y = ((const T *)e->src[1])[i];
#define LF_READ3(T) LF_READ2(T) const T z = ((const T *)e->src[2])[i];
#define LF_READ4(T) LF_READ3(T) const T v = ((const T *)e->src[3])[i];

#define LF_CASE1(ID, T, ...)                                                                                                \
    case LF_##ID: LF_LOOP(T, T, LF_READ1, (T)(__VA_ARGS__))
#define LF_CASE2(ID, T, ...)                                                                                                \
    case LF_##ID: LF_LOOP(T, T, LF_READ2, (T)(__VA_ARGS__))
#define LF_CASE3(ID, T, ...)                                                                                                \
    case LF_##ID: LF_LOOP(T, T, LF_READ3, (T)(__VA_ARGS__))
#define LF_CASE4(ID, T, ...)                                                                                                \
    case LF_##ID: LF_LOOP(T, T, LF_READ4, (T)(__VA_ARGS__))
// The same for structs, which no cast may name.
#define LF_CASE1_STRUCT(ID, T, ...)                                                                                         \
    case LF_##ID: LF_LOOP(T, T, LF_READ1, __VA_ARGS__)
#define LF_CASE2_STRUCT(ID, T, ...)                                                                                         \
    case LF_##ID: LF_LOOP(T, T, LF_READ2, __VA_ARGS__)
#define LF_CASE3_STRUCT(ID, T, ...)                                                                                         \
    case LF_##ID: LF_LOOP(T, T, LF_READ3, __VA_ARGS__)
#define LF_CASE4_STRUCT(ID, T, ...)                                                                                         \
    case LF_##ID: LF_LOOP(T, T, LF_READ4, __VA_ARGS__)
// Results are bool.
#define LF_CASE2_BOOL(ID, T, ...)                                                                                           \
    case LF_##ID: LF_LOOP(T, uint8_t, LF_READ2, __VA_ARGS__)
#define LF_NO_CASE                                                                                                          \
    default: return false;
#define U(x) ((uint64_t)(x))
#endif
