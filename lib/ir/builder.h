// What the files of lib/ir share while they build a graph: the state of the builder, how implicit ops are made, how operands and
// attributes are read. Private to lib/ir.
//
// A rule (rules_*.c, expand_*.c) makes the meaning of one written op out of implicit ops and hands back the final values. If these
// are the results of one new op of the written kind, that op becomes the written one; else the written op is an alias of them.
//
// Functions named lf_make_* return NULL when out of memory, and when an operand of theirs is NULL, so that a formula can be
// written as one expression and looked at once.
#ifndef LF_IR_BUILDER_H
#define LF_IR_BUILDER_H
#include "ir/build.h"
#include "ir/map.h"
#include "ir/scalar.h"

struct lf_builder {
    lf_map names;   // lf_value by name
    lf_map shared;  // lf_op by meaning: scalars, casts, items, checks (share.c)
    lf_place place; // of the op being built; its implicit ops inherit it
    bool params_set;
};

enum { LF_MAX_NESTING = 32, LF_MAX_RESULTS = 2 };

// ---- values (value.c) ---------------------------------------------------------------------------------------------------

// An op that is not yet in the graph, implicit, with room for its operands and results.
lf_op *lf_op_new(lf_graph *g, lf_opcode code, size_t n_operands, size_t n_results);
// Puts it at the end, numbers its results and decides where they live.
void lf_op_link(lf_graph *g, lf_op *op);
// Takes everything after `last` out of the graph again.
void lf_graph_cut(lf_graph *g, lf_op *last, uint32_t n_values);
lf_type lf_scalar_type(lf_dtype d);
lf_type lf_tensor_type(lf_dtype d, unsigned rank); // dims to be filled in
lf_op *lf_single(lf_graph *g, lf_opcode code, const lf_type *type, size_t n, lf_value *const *operands); // made, not linked

typedef struct lf_share_key {
    lf_opcode code;
    lf_dtype dtype; // of the result; LF_NO_DTYPE: no result
    int32_t axis;
    uint32_t slot;
    const lf_value *operands[3];
    lf_scalar constant;
} lf_share_key;
lf_op *lf_share_find(lf_graph *g, const lf_share_key *key, uint64_t *out_hash);
bool lf_share_add(lf_graph *g, uint64_t hash, lf_op *op);

// ---- implicit ops (make.c) ----------------------------------------------------------------------------------------------

lf_value *lf_make_cast(lf_graph *g, lf_value *x, lf_dtype d);
lf_value *lf_make_pitch(lf_graph *g, lf_value *param, unsigned axis); // stride of a parameter, in elements
lf_value *lf_make_item(lf_graph *g, lf_value *x);
lf_value *lf_make_scalar_tensor(lf_graph *g, lf_value *s);
lf_value *lf_make_device(lf_graph *g, lf_value *x); // a @host tensor as a device one; others as they are
// An elementwise op in operand 0's dtype (select: operand 1's). Operands are scalars or tensors that broadcast, known to fit,
// to the shape of the first tensor of the greatest rank; extents of 1 by type are stretched.
lf_value *lf_make_elem(lf_graph *g, lf_opcode code, lf_dtype result, lf_value *a, lf_value *b, lf_value *c);
lf_value *lf_make_view(lf_graph *g, lf_opcode code, lf_value *x, const lf_type *type, const lf_view *view);
lf_value *lf_make_expand(lf_graph *g, lf_value *x, const lf_type *shape); // axes aligned at the right; x itself when equal
lf_value *lf_make_reduce(lf_graph *g, lf_opcode code, lf_value *x, uint32_t axes, bool keepdim); // in x's dtype
lf_value *lf_make_reshape(lf_graph *g, lf_value *x, const lf_type *shape);
lf_value *lf_make_unsqueeze(lf_graph *g, lf_value *x, uint32_t axes); // axes of the result
lf_value *lf_make_squeeze(lf_graph *g, lf_value *x, uint32_t axes);
lf_value *lf_make_permute(lf_graph *g, lf_opcode code, lf_value *x, const unsigned *source_of);
lf_value *lf_make_full(lf_graph *g, lf_value *v, const lf_type *shape); // in v's dtype
lf_view lf_view_identity(unsigned rank);

// ---- extents (fold.c) -----------------------------------------------------------------------------------------------------

lf_value *lf_int2(lf_graph *g, lf_opcode code, lf_value *a, lf_value *b);  // i64 op i64 -> i64
lf_value *lf_test2(lf_graph *g, lf_opcode code, lf_value *a, lf_value *b); // comparisons and land, lor -> bool
lf_value *lf_pick(lf_graph *g, lf_value *c, lf_value *a, lf_value *b);     // select on i64
lf_value *lf_extent_add(lf_graph *g, lf_value *a, lf_value *b);            // saturating, of extents
lf_value *lf_product_of(lf_graph *g, lf_value *const *factors, size_t n);  // saturating, in a canonical order
bool lf_known_nonnegative(lf_graph *g, const lf_value *v);
bool lf_is_constant(const lf_value *v, int64_t n);
bool lf_is_true(const lf_value *v);

// ---- rules (graph.c) ------------------------------------------------------------------------------------------------------

typedef struct lf_rule {
    lf_graph *g;
    lf_opcode code;
    const lf_op_info *info;
    const lf_op_request *request;
} lf_rule;
typedef lf_status (*lf_rule_fn)(lf_rule *r, lf_value **out); // out[0 … results-1]

// "op: …" at the op's place, or at that of an operand.
lf_status lf_rule_error(const lf_rule *r, const char *format, ...) LF_MUST_USE __attribute__((format(printf, 2, 3)));
lf_status lf_rule_error_at(const lf_rule *r, lf_place place, const char *format, ...) LF_MUST_USE
    __attribute__((format(printf, 3, 4)));
// What must hold when the program runs: a check, unless it is known to hold (nothing) or known not to (an error now). {k} in the
// message stands for numbers[k]. A NULL condition means out of memory.
lf_status lf_require(lf_graph *g, lf_place place, lf_value *condition, lf_value *const *numbers, size_t n,
                     const char *format, ...) LF_MUST_USE __attribute__((format(printf, 6, 7)));
lf_status lf_rule_require(const lf_rule *r, lf_value *condition, lf_value *const *numbers, size_t n, const char *format,
                          ...) LF_MUST_USE __attribute__((format(printf, 5, 6)));
#define LF_NUMBERS(...) (lf_value *const[]){__VA_ARGS__}, sizeof((lf_value *const[]){__VA_ARGS__}) / sizeof(lf_value *)
lf_status lf_give(lf_value *v, lf_value **out) LF_MUST_USE; // out of memory for NULL

// ---- operands and attributes (args.c) ---------------------------------------------------------------------------------------

typedef struct lf_arg {
    const lf_operand *operand; // as written
    lf_value *value;           // resolved; NULL for a literal or none
    const lf_literal *literal; // or NULL
} lf_arg;
static inline bool lf_arg_none(const lf_arg *a) { return !a->value && !a->literal; }
static inline bool lf_arg_tensor_p(const lf_arg *a) { return a->value && a->value->type.tensor; }
lf_dtype lf_arg_dtype(const lf_arg *a); // of a literal: what it is alone
// "%x", "1.5", "[%a, 2]", "none"; with its type: "%x: f32[3]". "?" when out of memory.
const char *lf_operand_text(const lf_graph *g, const lf_operand *o);
const char *lf_operand_told(const lf_graph *g, const lf_operand *o);

lf_status lf_read_value(lf_rule *r, size_t i, lf_arg *out) LF_MUST_USE; // a value or literal; none where the table allows
lf_status lf_read_tensor(lf_rule *r, size_t i,
                         lf_value **out) LF_MUST_USE;                    // resolved, on the device; NULL for an allowed none
lf_status lf_read_scalar(lf_rule *r, size_t i, lf_arg *out) LF_MUST_USE; // a scalar or literal
// A scalar operand in dtype d.
lf_status lf_read_scalar_as(lf_rule *r, size_t i, const char *what, lf_dtype d, lf_value **out) LF_MUST_USE;
lf_status lf_read_list(lf_rule *r, size_t i, const char *what, const lf_operand **out_items, size_t *out_n) LF_MUST_USE;
// An integer scalar as i64. may_wait: a pending one is allowed.
lf_status lf_read_integer(lf_rule *r, const lf_operand *o, const char *what, bool may_wait, lf_value **out) LF_MUST_USE;
// A size, checked not to be negative.
lf_status lf_size(lf_rule *r, const lf_operand *o, const char *what, lf_value **out) LF_MUST_USE;
lf_status lf_shape_list(lf_rule *r, size_t i, lf_type *out) LF_MUST_USE; // a list of sizes into rank and dims
lf_status lf_constant_integer(lf_rule *r, const lf_operand *o, const char *what, int64_t *out) LF_MUST_USE;
lf_status lf_axis_number(lf_rule *r, const lf_operand *o, unsigned rank, unsigned *out) LF_MUST_USE;
// A pending scalar where the host needs it: refused, or noted as a sync point where the graph allows those.
lf_status lf_known_on_host(lf_graph *g, lf_place place, const char *use, const lf_operand *o) LF_MUST_USE;
lf_status lf_literal_value(lf_rule *r, const lf_arg *a, lf_dtype d,
                           lf_value **out) LF_MUST_USE;                                      // error where it does not fit
lf_status lf_converted(lf_rule *r, const lf_arg *a, lf_dtype d, lf_value **out) LF_MUST_USE; // literal or value in dtype d

const lf_attr *lf_attr_of(const lf_rule *r, lf_attr_id id);
enum { LF_NO_DEFAULT = INT32_MIN };
lf_status lf_attr_axis(lf_rule *r, unsigned rank, int absent, unsigned *out) LF_MUST_USE;
lf_status lf_attr_axes(lf_rule *r, unsigned rank, bool needed, uint32_t absent, uint32_t *out) LF_MUST_USE;
lf_status lf_attr_flag(lf_rule *r, lf_attr_id id, bool absent, bool *out) LF_MUST_USE;
lf_status lf_attr_dtype(lf_rule *r, lf_dtype absent, lf_dtype *out) LF_MUST_USE;
// One of the blank-separated words; its position.
lf_status lf_attr_word(lf_rule *r, lf_attr_id id, const char *words, unsigned absent, unsigned *out) LF_MUST_USE;
// A real number attribute.
lf_status lf_attr_number(lf_rule *r, lf_attr_id id, lf_literal absent, lf_literal *out) LF_MUST_USE;

// ---- indices (rules_index.c) ------------------------------------------------------------------------------------------------------

lf_status lf_read_indices(lf_rule *r, size_t i, lf_value **out) LF_MUST_USE;           // an i32 or i64 tensor
lf_status lf_read_indexed(lf_rule *r, lf_value **out, unsigned *out_axis) LF_MUST_USE; // operand 0 of rank >= 1, and axis=
// idx is nowhere larger than x, but along `axis` (-1: nowhere at all).
lf_status lf_require_smaller(lf_rule *r, const lf_value *idx, size_t idx_arg, const lf_value *x, size_t x_arg,
                             int axis) LF_MUST_USE;

// ---- promotion and broadcasting (promote.c) -----------------------------------------------------------------------------------

enum { LF_MAX_ELEM = 4 };
// The dtype of language.md, 5, for these operands (none is skipped). tensor: whether the result is one.
lf_status lf_promote(lf_rule *r, const lf_arg *args, size_t n, bool tensor, lf_dtype *out) LF_MUST_USE;
// The same for an op that needs a float.
lf_status lf_promote_float(lf_rule *r, const lf_arg *args, size_t n, bool tensor, lf_dtype *out) LF_MUST_USE;
bool lf_any_tensor(const lf_arg *args, size_t n);
// Broadcasts the tensors among values[0 … n-1] (entries may be NULL or scalars) in place; *out_shape is the common shape. `operands`
// name them in messages.
lf_status lf_broadcast(lf_rule *r, lf_value **values, const lf_operand *const *operands, size_t n,
                       lf_type *out_shape) LF_MUST_USE;
// The common extent of two axes of the same position, and whether it is one that a named dim gives.
typedef struct lf_axis_extent {
    lf_value *extent;
    bool named;
    const lf_operand *operand;
} lf_axis_extent;
lf_status lf_common_extent(lf_rule *r, unsigned axis, lf_axis_extent *a, const lf_axis_extent *b) LF_MUST_USE;
// Two extents that must be equal; *out: the one known better.
lf_status lf_equal_extent(lf_rule *r, unsigned axis, lf_value *a, const lf_operand *a_name, lf_value *b,
                          const lf_operand *b_name, lf_value **out) LF_MUST_USE;

// How an elementwise op takes its operands (rules_elem.c).
typedef struct lf_elem_plan {
    lf_dtype compute, result;
    lf_dtype operand[LF_MAX_ELEM]; // LF_NO_DTYPE: its own (a literal: what it is alone)
    bool flag;
    double number;
} lf_elem_plan;
typedef lf_status (*lf_elem_rule)(lf_rule *r, const lf_arg *args, size_t n, lf_elem_plan *plan);
lf_status lf_build_elem(lf_rule *r, lf_opcode code, const lf_arg *args, size_t n, const lf_elem_plan *plan,
                        lf_value **out) LF_MUST_USE;
lf_status lf_rule_elem(lf_rule *r, lf_value **out) LF_MUST_USE;

// One function a row of ops.def that is no ELEM and not internal.
#define LF_VIEW(ID, name, args, attrs, doc) lf_status lf_rule_##ID(lf_rule *r, lf_value **out) LF_MUST_USE;
#define LF_INDEXED(ID, name, args, attrs, doc) lf_status lf_rule_##ID(lf_rule *r, lf_value **out) LF_MUST_USE;
#define LF_REDUCE(ID, name, args, attrs, doc) lf_status lf_rule_##ID(lf_rule *r, lf_value **out) LF_MUST_USE;
#define LF_WHOLE(ID, name, args, attrs, doc) lf_status lf_rule_##ID(lf_rule *r, lf_value **out) LF_MUST_USE;
#define LF_COMPOSITE(ID, name, args, attrs, doc) lf_status lf_rule_##ID(lf_rule *r, lf_value **out) LF_MUST_USE;
#define LF_META(ID, name, args, attrs, doc) lf_status lf_rule_##ID(lf_rule *r, lf_value **out) LF_MUST_USE;
#include "ir/ops.def"
#endif
