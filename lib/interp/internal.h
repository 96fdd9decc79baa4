// The state of a run and what the families of ops share. Private to lib/interp.
#ifndef LF_INTERP_INTERNAL_H
#define LF_INTERP_INTERNAL_H
#include "interp/interp.h"
#include "interp/types.h"

// ---- Values ---------------------------------------------------------------------------------------------------------
typedef struct lf_buffer {
    size_t uses;        // slots that see it
    max_align_t data[]; // elements
} lf_buffer;

// What a value of the graph is while running; index: value id.
typedef struct lf_slot {
    lf_array array;
    lf_buffer *buffer; // owned share; NULL: scalars and the caller's memory
    lf_scalar scalar;  // where a scalar's array.data points
    uint32_t uses;     // ops and outputs that have not read it yet
    bool ready;
} lf_slot;

typedef struct lf_run {
    const lf_graph *graph;
    const lf_array *args; // as the caller gave them
    const lf_allocator *allocator;
    lf_slot *slots;
    const lf_interp_watch *watch; // or NULL
    char *index_error;
} lf_run;

static inline lf_slot *lf_slot_of(lf_run *run, const lf_value *v) { return &run->slots[v->id]; }
static inline const lf_array *lf_array_of(lf_run *run, const lf_value *v) { return &run->slots[v->id].array; }
// The integer scalar v, whatever its integer dtype; `otherwise` for NULL.
int64_t lf_integer(lf_run *run, const lf_value *v, int64_t otherwise);
// Result i of op gets its shape and new row-major memory; *out_array is its slot's array.
lf_status lf_new_result(lf_run *run, const lf_op *op, unsigned i, lf_array **out_array) LF_MUST_USE;
// The shape that the type of v says, with row-major strides and no data.
lf_status lf_shape_of(lf_run *run, const lf_op *op, const lf_value *v, lf_array *out_array) LF_MUST_USE;
// Memory for one op's own use; lf_free(run->allocator, …).
lf_status lf_scratch(lf_run *run, size_t count, size_t bytes, void *out_pointer) LF_MUST_USE;
lf_status lf_refuse(lf_run *run, const lf_op *op) LF_MUST_USE; // no case for these dtypes: the builder let something pass
// Keeps the first. `extent`: what the index was held against.
lf_status lf_note_index(lf_run *run, const lf_op *op, int64_t index, int64_t extent) LF_MUST_USE;

// ---- Strided memory (array.c) ---------------------------------------------------------------------------------------
enum { LF_WALK_RANK = 2 * LF_MAX_RANK, LF_BLOCK = 512 };

// Goes through the elements of a strided array in row-major order.
typedef struct lf_walk {
    unsigned rank, bytes;
    int64_t shape[LF_WALK_RANK], strides[LF_WALK_RANK], index[LF_WALK_RANK];
    int64_t offset; // of the next element, in elements
    char *data;
} lf_walk;

// Products of extents beside an extent of 0, and strides of axes that nobody walks, may be anything.
static inline int64_t lf_wrapping_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
int64_t lf_numel(const lf_array *a);
void lf_set_contiguous(lf_array *a); // row-major strides for its shape
bool lf_is_contiguous(const lf_array *a);
void lf_walk_init(lf_walk *w, unsigned bytes, const void *data, unsigned rank, const int64_t *shape, const int64_t *strides);
void lf_walk_array(lf_walk *w, const lf_array *a);
void lf_walk_lanes(lf_walk *w, const lf_array *a, unsigned axis); // with that axis innermost
void lf_walk_read(lf_walk *w, void *out, int64_t n);              // the next n elements into a span
void lf_walk_write(lf_walk *w, const void *in, int64_t n);
void lf_walk_skip(lf_walk *w); // one element
void lf_copy(lf_walk *to, lf_walk *from, int64_t n);
void lf_fill(void *to, const void *element, unsigned bytes, int64_t n);
static inline void *lf_at(const lf_array *a, int64_t offset) {
    return (char *)a->data + offset * (int64_t)lf_dtype_bytes(a->dtype);
}
// a in row-major order: its own data when it is so already (*out_copy NULL), else a copy (*out_copy to be freed).
lf_status lf_contiguous(lf_run *run, const lf_array *a, const void **out_data, void **out_copy) LF_MUST_USE;

// ---- Elementwise families (elem*.c) ---------------------------------------------------------------------------------
// One op on n elements of each operand, already broadcast and gathered into spans.
typedef struct lf_eval {
    lf_opcode code;
    lf_dtype in[4], out;
    const void *src[4]; // NULL: omitted
    void *dst;
    size_t n;      // at most LF_BLOCK
    double number; // op->number
    bool flag;     // op->flag
    bool half;     // operands were halves, now f32, and so will the result be
} lf_eval;

// False when the family has no case for these dtypes. With halves it is then asked again in f32, and the result is rounded.
typedef bool lf_eval_fn(const lf_eval *e);
#define LF_ELEM(ID, name, n, rule, allow, family, doc) lf_eval_fn lf_eval_##family;
#include "ir/ops.def"

lf_status lf_run_elem(lf_run *run, const lf_op *op) LF_MUST_USE;

// Conversion of spans, as `cast` does it.
void lf_convert(lf_dtype from, const void *src, lf_dtype to, void *dst, size_t n);
void lf_widen_halves(lf_dtype d, const void *src, float *dst, size_t n);
void lf_round_halves(lf_dtype d, const float *src, void *dst, size_t n);
// Computed NaNs have the canonical bits, so that a bitcast may just move bits (language.md, 6).
void lf_canonical_nans(lf_dtype d, void *span, size_t n);

// ---- The canonical order of float sums and products (reduce.c; language.md, 6) -------------------------------
enum { LF_SUM_CHUNK = 8192, LF_SUM_LEVELS = 5 }; // 8192^5 > 2^63 elements
typedef void (*lf_fold)(void *span, size_t n);
// Elements are put at level[0] + count[0] * bytes, count[0] grows to LF_SUM_CHUNK at most; then, if more follow, carry.
typedef struct lf_tree {
    char *level[LF_SUM_LEVELS]; // level[0] is owned
    size_t count[LF_SUM_LEVELS];
    unsigned bytes, top; // highest level that ever held something
    lf_fold fold;
} lf_tree;
// `code`: LF_OP_SUM or LF_OP_PROD; d: f32, f64, c64, c128.
lf_status lf_tree_init(lf_run *run, const lf_op *op, lf_opcode code, lf_dtype d, lf_tree *out) LF_MUST_USE;
void lf_tree_carry(lf_tree *t);
void lf_tree_finish(lf_tree *t, void *out); // of at least one element; the tree is then empty
static inline void lf_tree_release(lf_run *run, lf_tree *t) { lf_free(run->allocator, t->level[0]); }

// ---- Other ops ------------------------------------------------------------------------------------------------------
typedef lf_status lf_op_fn(lf_run *run, const lf_op *op);
#define LF_INDEXED(ID, name, args, attrs, doc) lf_op_fn lf_indexed_##name;
#define LF_REDUCE(ID, name, args, attrs, doc) lf_op_fn lf_reduce_##name;
#define LF_WHOLE(ID, name, args, attrs, doc) lf_op_fn lf_whole_##name;
#include "ir/ops.def"
lf_op_fn lf_run_view;

// Order-preserving 64-bit keys of n real elements: -0 = +0, all NaNs equal and greatest (least with nan_least).
void lf_keys(lf_dtype d, const void *src, size_t n, bool nan_least, uint64_t *keys);
// Numbers that RNG ops are made of (random.c).
void lf_philox(uint64_t key, uint64_t counter, uint32_t out_words[4]);
#endif
