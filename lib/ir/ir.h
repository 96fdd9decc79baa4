// The graph: values, ops, types. A graph is written once, by the builder (build.h), and is immutable after its `return`.
//
// An op is recorded twice over: as written (`args`, `attrs`; what the printer shows and the parser reads) and as meant
// (`operands`, `compute`, `view`, …; what every later stage reads). The builder makes the second from the first:
//   - promotion: each operand is converted by an implicit `cast`, each broadcast is an implicit `expand`;
//   - extents are host i64 scalars, computed by implicit scalar ops, which are folded and shared (equal extents of one
//     derivation are the same value, so pointer equality proves equality);
//   - what must hold at run time is an implicit `check`;
//   - composites and metadata are aliases: the builder writes their formula as implicit ops before them, and result i of the
//     op is another name of operands[i]. Operands and outputs are stored resolved, so later stages never meet an alias.
// Does not belong here: how ops are checked and typed (build.h, rules*.c).
#ifndef LF_IR_IR_H
#define LF_IR_IR_H
#include "base/arena.h"
#include "base/status.h"
#include "ir/dtype.h"

enum { LF_MAX_RANK = 8 };

typedef enum lf_opcode {
    LF_OP_NONE = 0,
#define LF_ELEM(ID, name, n, rule, allow, family, doc) LF_OP_##ID,
#define LF_VIEW(ID, name, args, attrs, doc) LF_OP_##ID,
#define LF_INDEXED(ID, name, args, attrs, doc) LF_OP_##ID,
#define LF_REDUCE(ID, name, args, attrs, doc) LF_OP_##ID,
#define LF_WHOLE(ID, name, args, attrs, doc) LF_OP_##ID,
#define LF_COMPOSITE(ID, name, args, attrs, doc) LF_OP_##ID,
#define LF_META(ID, name, args, attrs, doc) LF_OP_##ID,
#define LF_INTERNAL(ID, name, doc) LF_OP_##ID,
#include "ir/ops.def"
    LF_OP_COUNT
} lf_opcode;

typedef enum lf_op_kind {
    LF_KIND_NONE,
    LF_KIND_ELEM,
    LF_KIND_VIEW,
    LF_KIND_INDEXED,
    LF_KIND_REDUCE,
    LF_KIND_WHOLE,
    LF_KIND_COMPOSITE,
    LF_KIND_META,
    LF_KIND_INTERNAL
} lf_op_kind;

typedef enum lf_attr_id {
    LF_ATTR_NONE = 0,
#define LF_ATTR(ID, name, kind) LF_ATTR_##ID,
#include "ir/attrs.def"
    LF_ATTR_COUNT
} lf_attr_id;
typedef enum lf_attr_kind {
    LF_ATTR_INT,
    LF_ATTR_INTS,
    LF_ATTR_BOOL,
    LF_ATTR_DTYPE_NAME,
    LF_ATTR_WORD,
    LF_ATTR_NUMBER,
    LF_ATTR_VALUE
} lf_attr_kind;

// What the table says of an op.
typedef struct lf_op_info {
    const char *name;
    lf_op_kind kind;
    const char *args;  // one letter an operand (ELEM: "v" repeated); see ops.def
    const char *attrs; // allowed attribute names, blank-separated
    const char *allow; // ELEM: categories of the dtype computed in
    const char *doc;
} lf_op_info;
const lf_op_info *lf_op_info_of(lf_opcode code);
const char *lf_attr_name(lf_attr_id id);
lf_attr_id lf_attr_parse(const char *name, size_t n);
lf_attr_kind lf_attr_kind_of(lf_attr_id id);
// The op of that name that takes n_args operands; a name that exists with other counts gives LF_OP_NONE and *out_other.
lf_opcode lf_op_find(const char *name, size_t n, size_t n_args, lf_opcode *out_other);

typedef struct lf_op lf_op;
typedef struct lf_value lf_value;
typedef struct lf_graph lf_graph;

// Where a value lives; decided when it is made (language.md, 4).
typedef enum lf_place_class { LF_ON_HOST, LF_ON_DEVICE, LF_PENDING } lf_place_class;

typedef struct lf_type {
    lf_dtype dtype;
    bool tensor; // else a scalar (rank 0, no dims)
    bool host;   // a rank-0 tensor in host memory
    uint8_t rank;
    uint8_t named;               // axes whose extent a named dim gives, bit a: they do not broadcast, not even a 1
    lf_value *dims[LF_MAX_RANK]; // extents: host i64 scalars (constants included), resolved
} lf_type;

struct lf_value {
    lf_op *def;
    uint32_t result;  // which result of `def`
    uint32_t id;      // unique and dense within the graph, in order of definition
    const char *name; // without '%'; NULL for most implicit values
    lf_type type;
    lf_place_class where;
};

// An operand as written.
typedef enum lf_operand_kind { LF_OPERAND_NONE, LF_OPERAND_VALUE, LF_OPERAND_LITERAL, LF_OPERAND_LIST } lf_operand_kind;
typedef struct lf_operand {
    lf_operand_kind kind;
    lf_place place; // for diagnostics; may be empty
    lf_value *value;
    lf_literal literal;
    const char *text; // literal as written, or NULL
    const struct lf_operand *items;
    uint32_t n_items;
} lf_operand;

typedef struct lf_attr {
    lf_attr_id id;
    lf_place place;
    lf_operand operand; // INT, INTS, BOOL, NUMBER, VALUE
    const char *word;   // WORD and DTYPE_NAME as written, and inf, -inf, nan for NUMBER
    lf_dtype dtype;     // DTYPE_NAME
} lf_attr;

// How a VIEW result's element finds its source element.
// affine:  source index[a] = start[a] + step[a] * (map inverse: result index d with map[d] = a; 0 if none), and where the
//          source extent is 1 while the result extent is not, the source index is start[a] (a broadcast).
// reshape: same row-major element number.
typedef struct lf_view {
    bool reshape;
    bool broadcasts;              // some axis may be repeated (extent 1 -> n, or a new axis)
    int8_t map[LF_MAX_RANK];      // result axis -> source axis, -1 = new axis
    lf_value *start[LF_MAX_RANK]; // per source axis; NULL = 0. May be pending
    lf_value *step[LF_MAX_RANK];  // per source axis; NULL = 1
} lf_view;

struct lf_op {
    lf_opcode code;
    bool implicit; // made by the builder, not written by the user
    bool alias;    // result i is another name of operands[i]
    lf_place place;
    lf_graph *graph;
    lf_op *next, *prev; // program order
    // As written.
    const lf_operand *args;
    const lf_attr *attrs;
    uint16_t n_args, n_attrs;
    const struct lf_type_spec *declared; // n_results result types (build.h) when some were written after ':', else NULL
    // As meant.
    uint16_t n_operands, n_results;
    lf_value **operands;          // resolved; NULL where `none` was written
    lf_value *results;            // array of n_results
    lf_dtype compute;             // ELEM, REDUCE, WHOLE: dtype that operands were converted to; LF_NO_DTYPE: own dtypes
    lf_view view;                 // VIEW
    uint32_t axes;                // REDUCE, FLIP, …: set of axes, bit a
    int8_t axis;                  // one axis, normalised to 0 … rank-1
    bool keepdim, flag;           // flag: descending, largest, approximate=tanh
    uint8_t mode;                 // SCATTER: lf_scatter_mode; NORM etc. are expanded
    lf_scalar constant;           // CONST
    double number;                // ELEM families with a constant parameter (slope, alpha)
    lf_value *extra[LF_MAX_RANK]; // PAD: low padding per axis; ROLL: amount per axis (NULL = 0)
    const void *data;             // TENSOR: row-major elements
    uint64_t data_bytes;
    const char *message; // CHECK: text with {0}, {1}, … for operands[1], operands[2], …
    uint32_t slot;       // SLOT, and free for placing
};
typedef enum lf_scatter_mode {
    LF_SCATTER_SET,
    LF_SCATTER_ADD,
    LF_SCATTER_MUL,
    LF_SCATTER_MIN,
    LF_SCATTER_MAX
} lf_scatter_mode;

/* Operands as meant (x: the first operand), where not obvious:
     ELEM        each a scalar, or a tensor of the result's shape, in dtype `compute`. Exceptions: select's condition is bool;
                 shift counts and ldexp's exponent keep an integer dtype of their own (ldexp's a float one too); a comparison of
                 different integer dtypes has compute = LF_NO_DTYPE and compares true values; clamp's omitted bounds are NULL;
                 predicates, parts, cast and bitcast take their operand as it is; nextafter computes in the dtype itself.
     VIEW        [x], see lf_view; result extents are in the result type
     PAD         [x, value]; extra[a] = low padding (may be negative)        CAT, STACK   [each]; axis
     REPEAT      [x]                                                        ROLL         [x]; extra[a] = amount
     TRIU, TRIL  [x, diagonal i64]                                          TAKE, GATHER, INDEX  [x, idx]; axis
     ONEHOT      [idx]                                                      FULL         [v]
     IOTA        [start, step]; in the result dtype                         EYE          []
     TENSOR      []; data                                                   UNIFORM, NORMAL  [lo|mean, hi|std, seed, offset]
     REDUCE      [x] in `compute` (the accumulation dtype; min, max, arg*: the dtype itself); axes (never none), keepdim; halves
                 are summed by an implicit f32 sum; an implicit min or max over no element gives +inf or -inf
     SCAN        [x]; axis      SORT [x]; axis, flag      TOPK [x]; axis, flag; k is the result's extent
     SCATTER     [x, idx, src]; axis, mode; src a scalar or of idx's shape
     MATMUL      [a, b]: [.., m, k] and [.., k, n] of equal rank >= 2 and equal leading extents; in the result's dtype
     ITEM        [x]            SCALAR_TENSOR [s]        SIZE, STRIDE, NUMEL, COMPOSITE: aliases of their operands
     EXTENT, PITCH [parameter]; axis                     CHECK [condition, numbers …]                                        */

typedef struct lf_output {
    lf_value *value;         // resolved
    const lf_value *written; // as written in the return (an alias perhaps)
    lf_value *into;          // parameter whose buffer takes it, or NULL
    const char *name;        // of `written`, or NULL
} lf_output;

// A place where the host needs a pending scalar before it can go on.
typedef struct lf_sync_point {
    const char *use;       // "reshape: the extent"
    const lf_value *value; // as written
    const lf_value *item;  // resolved: the ITEM that it comes from
    lf_place place;
    const char *refusal; // what to say where the host must not wait
    struct lf_sync_point *next;
} lf_sync_point;

struct lf_graph {
    lf_arena arena; // owns everything below
    const lf_allocator *allocator;
    const char *name; // without '@'
    lf_op *first, *last;
    lf_value **params; // in order
    uint32_t n_params;
    lf_output *outputs;
    uint32_t n_outputs;
    const struct lf_type_spec *declared; // n_outputs types (build.h) when some were written after '->', else NULL
    uint32_t n_values;                   // ids are below this
    bool finished;                       // `return` was built
    bool allow_sync; // a pending scalar may be an extent, a k or an assert's condition; set before the first op
    lf_sync_point *first_sync, *last_sync; // where it is one, in program order
    struct lf_builder *builder;            // private to lib/ir while building
};

static inline bool lf_is_const(const lf_value *v) { return v && v->def->code == LF_OP_CONST; }
static inline bool lf_is_scalar(const lf_value *v) { return !v->type.tensor; }
// The value that an alias stands for; v itself otherwise.
lf_value *lf_resolve(lf_value *v);
// True and the value when an extent (or any i64 scalar) is known while compiling.
bool lf_const_i64(const lf_value *v, int64_t *out);
// Extents known to be equal: the same value, or equal constants.
bool lf_same_extent(const lf_value *a, const lf_value *b);
bool lf_same_shape(const lf_type *a, const lf_type *b);

// "f32[?, 4]", "i64", "f32[] @host" into the arena; named extents as %name.
const char *lf_type_text(lf_arena *arena, const lf_type *type);
// "%name", or "%12" for an unnamed value.
const char *lf_value_text(lf_arena *arena, const lf_value *v);

// The graph as text. SOURCE: what the user wrote (parse(print(g)) prints the same). FULL: every op as meant, with types and
// places, implicit ones too. Caller frees *out_text with lf_free(g->allocator, …).
typedef enum lf_print_form { LF_PRINT_SOURCE, LF_PRINT_FULL } lf_print_form;
lf_status lf_graph_print(const lf_graph *g, lf_print_form form, char **out_text) LF_MUST_USE;
// Checks the invariants that this header states; LF_INTERNAL names the op that breaks one.
lf_status lf_graph_verify(const lf_graph *g) LF_MUST_USE;
#endif
