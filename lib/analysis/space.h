// Index spaces: where an element of a value lies, as linear forms over the axes of a kernel.
//
// A kernel computes values "at" a point. Walking from a value to its operands through views composes index maps; a space is the
// composed map: for each axis of the value at hand, offset + sum of scale * atom. Atoms are the kernel's own axes and, above
// those, whatever else the caller names (statements that compute an index). Offsets and scales are host i64 values of the graph,
// so that strides are computed once, on the host, and never in a kernel.
#ifndef LF_ANALYSIS_SPACE_H
#define LF_ANALYSIS_SPACE_H
#include "ir/build.h"

enum { LF_FORM_TERMS = 8 };

typedef struct lf_term {
    uint32_t atom;
    lf_value *scale; // never the constant 0
} lf_term;

typedef struct lf_form {
    lf_value *offset; // NULL = 0
    uint8_t n;
    lf_term terms[LF_FORM_TERMS];
} lf_form;

typedef struct lf_space {
    bool flat;    // axis[0] is the row-major element number, whatever the value's rank
    uint8_t rank; // forms in `axis` (1 if flat)
    lf_form axis[LF_MAX_RANK];
} lf_space;

// An index that a view adds and that is not known on the host (a pending slice start): the caller makes it an atom.
// Returns false when the caller cannot.
typedef bool (*lf_pending_atom)(void *context, lf_value *index, uint32_t *out_atom);

typedef enum lf_space_result {
    LF_SPACE_OK,
    LF_SPACE_NEEDS_INDICES, // flat, but this view needs an index per axis: the caller must split the element number first
    LF_SPACE_TOO_LONG,      // a form would need more than LF_FORM_TERMS terms
    LF_SPACE_PENDING,       // pending_atom refused
    LF_SPACE_NO_MEMORY
} lf_space_result;

// The space of a view's operand from the space of its result. `view` is a VIEW op; in and out may be the same object.
lf_space_result lf_space_through(lf_graph *g, const lf_op *view, const lf_space *in, lf_pending_atom pending_atom,
                                 void *context, lf_space *out);
// Each axis is the atom of that number.
void lf_space_identity(lf_graph *g, uint8_t rank, lf_space *out);
// The row-major element number of a point of a value of this type. A flat space is returned as it is.
lf_space_result lf_space_flatten(lf_graph *g, const lf_type *type, const lf_space *in, lf_space *out);
bool lf_form_equal(const lf_form *a, const lf_form *b);
bool lf_space_equal(const lf_space *a, const lf_space *b);
// a + scale * b; NULL scale = 1. False when there are too many terms (or no memory).
bool lf_form_add(lf_graph *g, lf_form *a, const lf_form *b, lf_value *scale);
bool lf_form_is_atom(const lf_form *f, uint32_t atom); // exactly 1 * atom
bool lf_form_is_zero(const lf_form *f);

// Host arithmetic on extents and strides: NULL stands for 0; folded.
lf_value *lf_host_add(lf_graph *g, lf_value *a, lf_value *b);
lf_value *lf_host_mul(lf_graph *g, lf_value *a, lf_value *b);
bool lf_is_one(const lf_value *v);
// Row-major strides in elements of a value of this type.
void lf_row_major(lf_graph *g, const lf_type *type, lf_value *out_strides[LF_MAX_RANK]);
#endif
