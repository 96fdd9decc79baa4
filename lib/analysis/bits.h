// What happens to the bits of a value on its way through a graph.
#ifndef LF_ANALYSIS_BITS_H
#define LF_ANALYSIS_BITS_H
#include "ir/ir.h"

// Whether the bits of a NaN in this value come, or may come, from memory unchanged (moves, selects, shape ops), so that a
// bitcast must show them; else it was computed, and shows as the canonical NaN.
bool lf_keeps_bits(const lf_value *value);
#endif
