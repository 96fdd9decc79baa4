// What composites are written out with. Private to lib/ir.
#ifndef LF_IR_EXPAND_H
#define LF_IR_EXPAND_H
#include "ir/builder.h"

// A composite computes in t (f32 for halves) and gives d, rounding once at the end.
typedef struct lf_composite {
    lf_rule *r;
    lf_graph *g;
    lf_value *x; // in t
    lf_dtype d, t;
    uint32_t axes;
    bool keepdim;
} lf_composite;

// Reads operand 0 as a tensor of a float (complex: or complex) dtype d; integers and bools give f32.
lf_status lf_composite_begin(lf_rule *r, bool complex, lf_composite *c) LF_MUST_USE;
lf_status lf_composite_axes(lf_composite *c) LF_MUST_USE; // axes= (absent: all) and keepdim=
lf_status lf_composite_end(const lf_composite *c, lf_value *y, lf_dtype d, lf_value **out) LF_MUST_USE;

lf_value *lf_step1(lf_graph *g, lf_opcode code, lf_value *a); // dtype kept
lf_value *lf_step2(lf_graph *g, lf_opcode code, lf_value *a, lf_value *b);
lf_value *lf_number(lf_graph *g, lf_dtype d, double v);                      // a constant
lf_value *lf_reduced_count(lf_graph *g, const lf_value *x, uint32_t axes);   // i64
lf_value *lf_mean_of(lf_graph *g, lf_value *x, uint32_t axes, bool keepdim); // in x's dtype, float or complex
// The variance from the deviations (x - mean, real): the sum of their squares / max(0, n - correction).
lf_value *lf_var_from(lf_graph *g, lf_value *off, uint32_t axes, bool keepdim, const lf_literal *correction);
#endif
