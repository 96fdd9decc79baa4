// See propose.h. Elementwise ops and plain reductions come from the op table; others have a function that knows what fits.
#include "test/fuzz/graph/propose.h"

typedef struct maker {
    program *p;
    random_state *r;
    bool exact; // only ops whose result the language fixes to the bit
    char text[400];
    size_t n;
} maker;

__attribute__((format(printf, 2, 3))) static void put(maker *m, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(m->text + m->n, sizeof m->text - m->n, format, args);
    va_end(args);
    m->n = m->n + (size_t)n < sizeof m->text ? m->n + (size_t)n : sizeof m->text - 1;
}

static void begin(maker *m) { m->n = 0; }
static int finish(maker *m, unsigned n) { return add_line(m->p, n, m->text); }
static value *at(maker *m, int v) { return &m->p->values[v]; }
static const char *name(maker *m, int v) { return m->p->values[v].name; }

// ---- choosing operands ---------------------------------------------------------------------------------------------------------

typedef bool filter(const value *v, const void *arg);

static int pick(maker *m, filter *fits, const void *arg) {
    int found[MOST_VALUES], n = 0;
    for (int i = 0; i < m->p->n_values; i++) {
        const value *v = at(m, i);
        if (!v->extent && fits(v, arg)) found[n++] = i;
    }
    if (!n) return -1;
    int last = n < 6 ? n : 6;
    return found[chance(m->r, 60) ? n - 1 - below(m->r, last) : below(m->r, n)];
}

static bool any_value(const value *v, const void *arg) { return (void)v, (void)arg, true; }
static bool a_tensor(const value *v, const void *arg) { return v->tensor && !v->host && v->rank >= *(const unsigned *)arg; }
static bool a_scalar(const value *v, const void *arg) { return (void)arg, !v->tensor; }
static bool an_index_scalar(const value *v, const void *arg) {
    return (void)arg, !v->tensor && (v->dtype == LF_I64 || v->dtype == LF_I32);
}
static bool an_index_tensor(const value *v, const void *arg) {
    return (void)arg, v->tensor && !v->host && (v->dtype == LF_I64 || v->dtype == LF_I32);
}
static bool a_bool(const value *v, const void *arg) { return (void)arg, v->dtype == LF_BOOL; }
static bool one_element(const value *v, const void *arg) {
    (void)arg;
    if (!v->tensor || v->host) return false;
    for (unsigned a = 0; a < v->rank; a++)
        if (v->shape[a] != 1) return false;
    return true;
}
// Broadcasts against arg without a mismatch.
static bool broadcasts(const value *v, const void *arg) {
    const value *x = arg;
    for (unsigned a = 0; a < v->rank && a < x->rank; a++) {
        int64_t m = v->shape[v->rank - 1 - a], n = x->shape[x->rank - 1 - a];
        if (m != n && m != 1 && n != 1) return false;
    }
    return true;
}
static bool broadcasts_in_dtype(const value *v, const void *arg) {
    return v->dtype == ((const value *)arg)->dtype && broadcasts(v, arg);
}
static bool of_shape(const value *v, const void *arg) {
    const value *x = arg;
    return v->tensor && !v->host && v->rank == x->rank && !memcmp(v->shape, x->shape, x->rank * sizeof *x->shape);
}

static int a_tensor_of_rank(maker *m, unsigned least) { return pick(m, a_tensor, &least); }
static int axis_of(maker *m, int x) {
    int rank = (int)at(m, x)->rank, a = (int)below(m->r, rank);
    return chance(m->r, 25) ? a - rank : a;
}

// A number for an extent: a literal, or an extent parameter if one has it.
static void put_extent(maker *m, int64_t n) {
    for (int i = 0; i < m->p->n_params; i++)
        if (at(m, i)->extent && at(m, i)->number == n && chance(m->r, 50)) {
            put(m, "%s", name(m, i));
            return;
        }
    put(m, "%lld", (long long)n);
}

static void put_literal(maker *m) {
    static const char *const literals[] = {"0",   "1",    "-1",  "2",    "3",   "7",    "-5",    "0.5", "1.0", "-0.0",
                                           "2.5", "1e-3", "inf", "-inf", "nan", "true", "false", "100", "255", "1e30"};
    put(m, "%s", literals[below(m->r, sizeof literals / sizeof *literals)]);
}

static const char *a_dtype_name(maker *m) { return lf_dtype_name((lf_dtype)(LF_BOOL + below(m->r, LF_C128 - LF_BOOL + 1))); }

// ---- elementwise -----------------------------------------------------------------------------------------------------------------

typedef struct elem_row {
    const char *name, *rule, *family, *allow;
    unsigned n;
} elem_row;
static const elem_row elems[] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) {#name, #rule, #family, allow, n},
#include "ir/ops.def"
};

static bool is_exact(const elem_row *e) {
    static const char *const inexact[] = {"math", "activation", "pow", "ldexp"}; // ldexp: n may be a fraction
    for (size_t i = 0; i < sizeof inexact / sizeof *inexact; i++)
        if (!strcmp(e->family, inexact[i])) return false;
    return true;
}

static void put_operand(maker *m, const value *beside) {
    if (chance(m->r, 18)) {
        put_literal(m);
        return;
    }
    int v = chance(m->r, 15) ? pick(m, a_scalar, NULL) : -1;
    if (v < 0 && chance(m->r, 70)) v = pick(m, broadcasts_in_dtype, beside);
    if (v < 0) v = pick(m, broadcasts, beside);
    put(m, "%s", v < 0 ? beside->name : name(m, v));
}

static bool allowed(const elem_row *e, lf_dtype d) {
    return strchr(e->allow, lf_is_complex(d) ? 'c'
                            : lf_is_float(d) ? 'f'
                            : d == LF_BOOL   ? 'b'
                                             : 'i') ||
           d == LF_BOOL || lf_is_integer(d);
}

static int make_elem(maker *m) {
    const elem_row *e = &elems[below(m->r, sizeof elems / sizeof *elems)];
    if (m->exact && !is_exact(e)) return -1;
    unsigned least = 0;
    int x = chance(m->r, 80) ? pick(m, a_tensor, &least) : pick(m, any_value, NULL);
    if (x < 0 || !allowed(e, at(m, x)->dtype)) return -1;
    if (m->exact && lf_is_complex(at(m, x)->dtype)) return -1;
    // Half of the ops make floats of everything; integers should stay a while.
    if (!strcmp(e->rule, "to_float") && !lf_is_float(at(m, x)->dtype) && !lf_is_complex(at(m, x)->dtype) && chance(m->r, 75))
        return -1;
    unsigned first = (unsigned)below(m->r, e->n);
    if (!strcmp(e->name, "select")) first = 1;
    put(m, "%s ", e->name);
    for (unsigned k = 0; k < e->n; k++) {
        put(m, "%s", k ? ", " : "");
        int c = !strcmp(e->name, "select") && k == 0 ? pick(m, a_bool, NULL) : -1;
        if (c >= 0)
            put(m, "%s", name(m, c));
        else if (!strcmp(e->name, "clamp") && k && chance(m->r, 20))
            put(m, "none");
        else if (k == first)
            put(m, "%s", name(m, x));
        else
            put_operand(m, at(m, x));
    }
    if (!strcmp(e->name, "cast") || !strcmp(e->name, "bitcast")) put(m, ", dtype=%s", a_dtype_name(m));
    if (!strcmp(e->name, "gelu") && chance(m->r, 50)) put(m, ", approximate=tanh");
    if (!strcmp(e->name, "leaky_relu") && chance(m->r, 50)) put(m, ", slope=0.25");
    if (!strcmp(e->name, "elu") && chance(m->r, 50)) put(m, ", alpha=1.5");
    return finish(m, 1);
}

// ---- reductions --------------------------------------------------------------------------------------------------------------------

static void put_axes(maker *m, int x) {
    int rank = (int)at(m, x)->rank;
    if (chance(m->r, 25) || !rank) return;
    put(m, ", axes=[");
    for (int a = 0, n = 0; a < rank; a++)
        if (chance(m->r, 50)) put(m, "%s%d", n++ ? ", " : "", chance(m->r, 25) ? a - rank : a);
    put(m, "]");
}

static int make_reduction(maker *m) {
    static const char *const names[] = {"sum",  "sum", "prod", "min",      "max",  "any",       "all",    "count_nonzero",
                                        "mean", "var", "std",  "var_mean", "norm", "logsumexp", "argmin", "argmax"};
    size_t which = (size_t)below(m->r, sizeof names / sizeof *names);
    const char *op = names[which];
    int x = a_tensor_of_rank(m, chance(m->r, 90) ? 1 : 0);
    if (x < 0 || (m->exact && (which == 13 || lf_is_complex(at(m, x)->dtype)))) return -1;
    put(m, "%s %s", op, name(m, x));
    if (which >= 14) {
        if (at(m, x)->rank && chance(m->r, 75)) put(m, ", axis=%d", axis_of(m, x));
    } else {
        put_axes(m, x);
    }
    if (chance(m->r, 30)) put(m, ", keepdim=true");
    if (which <= 2 && chance(m->r, 10)) put(m, ", dtype=%s", a_dtype_name(m));
    if (which >= 9 && which <= 11 && chance(m->r, 50)) put(m, ", correction=%d", (int)below(m->r, 3));
    if (which == 12) put(m, ", ord=%s", (const char *[]){"1", "2", "inf"}[below(m->r, 3)]);
    return finish(m, which == 11 ? 2 : 1);
}

static int make_along(maker *m) {
    static const struct {
        const char *name;
        unsigned n;
        bool inexact;
    } ops[] = {{"softmax", 1, true},  {"log_softmax", 1, true}, {"cumsum", 1, true},       {"cumprod", 1, true},
               {"cummax", 2, false},  {"cummin", 2, false},     {"logcumsumexp", 1, true}, {"sort", 2, false},
               {"argsort", 1, false}, {"topk", 2, false}};
    size_t k = (size_t)below(m->r, sizeof ops / sizeof *ops);
    int x = a_tensor_of_rank(m, 1);
    if (x < 0 || (m->exact && ops[k].inexact)) return -1;
    int axis = axis_of(m, x);
    put(m, "%s %s", ops[k].name, name(m, x));
    if (k == 9) {
        int64_t extent = at(m, x)->shape[axis < 0 ? axis + (int)at(m, x)->rank : axis];
        put(m, ", ");
        put_extent(m, below(m->r, extent + 1));
    }
    put(m, ", axis=%d", axis);
    if ((k == 7 || k == 8) && chance(m->r, 50)) put(m, ", descending=%s", chance(m->r, 80) ? "true" : "false");
    if (k == 9 && chance(m->r, 40)) put(m, ", largest=false");
    return finish(m, ops[k].n);
}

static int make_norm(maker *m) {
    int x = a_tensor_of_rank(m, 1);
    if (x < 0 || m->exact) return -1;
    switch (below(m->r, 5)) {
    case 0:
    case 1: {
        bool layer = chance(m->r, 50);
        put(m, "%s %s", layer ? "layer_norm" : "rms_norm", name(m, x));
        for (int i = 0; i < 1 + layer; i++) {
            int w = chance(m->r, 60) ? pick(m, broadcasts, at(m, x)) : -1;
            put(m, ", %s", w < 0 ? "none" : name(m, w));
        }
        put(m, ", 1e-5");
        if (chance(m->r, 40)) put_axes(m, x);
        return finish(m, 1);
    }
    case 2: {
        if (at(m, x)->rank < 2) return -1;
        char axes[40] = "";
        for (unsigned a = 0, n = 0; a < at(m, x)->rank; a++)
            if (a != 1) n += (unsigned)sprintf(axes + n, "%s%u", n ? ", " : "", a);
        put(m, "mean %s, axes=[%s]", name(m, x), axes);
        int mean = finish(m, 1);
        begin(m);
        put(m, "var %s, axes=[%s]", name(m, x), axes);
        int var = mean < 0 ? -1 : finish(m, 1);
        begin(m);
        if (var < 0) return -1;
        put(m, "batch_norm %s, %s, %s, %s, none, 1e-3", name(m, x), name(m, mean), name(m, var),
            chance(m->r, 50) ? "none" : name(m, mean));
        return finish(m, 1);
    }
    case 3: {
        if (at(m, x)->rank != 2) return -1;
        put(m, "argmin %s, axis=1", name(m, x));
        int labels = finish(m, 1);
        begin(m);
        if (labels < 0) return -1;
        put(m, "cross_entropy %s, %s", name(m, x), name(m, labels));
        return finish(m, 1);
    }
    default:
        put(m, "dropout %s, 0.25, %d, %d", name(m, x), (int)below(m->r, 1000), (int)below(m->r, 9));
        return finish(m, 2);
    }
}

// ---- views -------------------------------------------------------------------------------------------------------------------------

static int64_t numel(const value *v) {
    int64_t n = 1;
    for (unsigned a = 0; a < v->rank; a++) n *= v->shape[a];
    return n;
}

static int make_reshape(maker *m, int x) {
    int64_t left = numel(at(m, x));
    unsigned rank = (unsigned)below(m->r, 5), hole = chance(m->r, 40) && left ? (unsigned)below(m->r, rank + 1) : 99;
    put(m, "reshape %s, [", name(m, x));
    for (unsigned a = 0; a < rank; a++) {
        int64_t n = left;
        if (a + 1 < rank) {
            int64_t wanted = (int64_t[]){1, 2, 3, 4, 5, 8, 16}[below(m->r, 7)];
            n = left && left % wanted == 0 ? wanted : 1;
        }
        if (n) left /= n;
        put(m, "%s", a ? ", " : "");
        if (a == hole)
            put(m, "-1");
        else
            put_extent(m, n);
    }
    put(m, "]");
    return finish(m, 1);
}

static int make_permute(maker *m, int x) {
    int rank = (int)at(m, x)->rank, order[LFUSER_MAX_RANK];
    for (int a = 0; a < rank; a++) order[a] = a;
    for (int a = rank - 1; a > 0; a--) {
        int b = (int)below(m->r, a + 1), t = order[a];
        order[a] = order[b], order[b] = t;
    }
    put(m, "permute %s, [", name(m, x));
    for (int a = 0; a < rank; a++) put(m, "%s%d", a ? ", " : "", chance(m->r, 20) ? order[a] - rank : order[a]);
    put(m, "]");
    return finish(m, 1);
}

static void put_per_axis(maker *m, int x, int kind) {
    static const int64_t usual[] = {0, 0, 1, 2, -1, -3, 5, 100, -100};
    put(m, ", [");
    for (unsigned a = 0; a < at(m, x)->rank; a++) {
        int64_t n = at(m, x)->shape[a];
        put(m, "%s", a ? ", " : "");
        switch (kind) {
        case 0: put_extent(m, usual[below(m->r, 9)]); break;                                  // starts
        case 1: chance(m->r, 50) ? put(m, "none") : put_extent(m, n - below(m->r, 3)); break; // ends
        case 2: put_extent(m, 1 + below(m->r, 3)); break;                                     // steps, repeats
        case 3: put_extent(m, below(m->r, 4) - (n > 0)); break;                               // pads
        case 4:
            n == 1 && chance(m->r, 60) ? put_extent(m, 1 + below(m->r, 5))
            : chance(m->r, 50)         ? put(m, "-1")
                                       : put_extent(m, n);
            break;
        default: put_extent(m, below(m->r, 9) - 4); break; // roll
        }
    }
    put(m, "]");
}

static int make_view(maker *m) {
    unsigned least = chance(m->r, 85) ? 1 : 0;
    int x = pick(m, a_tensor, &least);
    if (x < 0) return -1;
    unsigned rank = at(m, x)->rank;
    switch (below(m->r, 16)) {
    case 0:
    case 1: return make_reshape(m, x);
    case 2: return make_permute(m, x);
    case 3:
        if (!rank) return -1;
        put(m, "transpose %s, %d, %d", name(m, x), axis_of(m, x), axis_of(m, x));
        return finish(m, 1);
    case 4: put(m, "expand %s", name(m, x)), put_per_axis(m, x, 4); return finish(m, 1);
    case 5: {
        put(m, "broadcast %s, [", name(m, x));
        unsigned extra = (unsigned)below(m->r, 2), where = (unsigned)below(m->r, rank + 1);
        for (unsigned a = 0; a < rank + extra; a++) {
            put(m, "%s", a ? ", " : "");
            put_extent(m, extra && a == where ? 1 + below(m->r, 3) : at(m, x)->shape[a - (extra && a > where)]);
        }
        put(m, "], dims=[");
        for (unsigned a = 0; a < rank; a++) put(m, "%s%u", a ? ", " : "", a + (extra && a >= where));
        put(m, "]");
        return finish(m, 1);
    }
    case 6:
        for (unsigned a = 0; a < rank; a++)
            if (at(m, x)->shape[a] == 1) {
                put(m, "squeeze %s, axes=[%u]", name(m, x), a);
                return finish(m, 1);
            }
        return -1;
    case 7: put(m, "unsqueeze %s, axes=[%d]", name(m, x), (int)below(m->r, rank + 1)); return finish(m, 1);
    case 8: put(m, "flip %s", name(m, x)), put_axes(m, x); return finish(m, 1);
    case 9:
    case 10:
        put(m, "slice %s", name(m, x));
        put_per_axis(m, x, 0);
        put_per_axis(m, x, 1);
        if (chance(m->r, 60))
            put_per_axis(m, x, 2);
        else
            put(m, ", none");
        return finish(m, 1);
    case 11:
        put(m, "pad %s", name(m, x));
        put_per_axis(m, x, 3);
        put_per_axis(m, x, 3);
        put(m, ", ");
        put_operand(m, &(value){.name = "0"});
        return finish(m, 1);
    case 12: put(m, "repeat %s", name(m, x)), put_per_axis(m, x, 2); return finish(m, 1);
    case 13:
        put(m, "roll %s", name(m, x));
        put_per_axis(m, x, 5);
        put(m, ", axes=[");
        for (unsigned a = 0; a < rank; a++) put(m, "%s%u", a ? ", " : "", a);
        put(m, "]");
        return finish(m, 1);
    case 14:
        put(m, "%s %s", chance(m->r, 50) ? "triu" : "tril", name(m, x));
        if (chance(m->r, 60)) put(m, ", diagonal=%d", (int)below(m->r, 7) - 3);
        return finish(m, 1);
    default: {
        int y = chance(m->r, 70) ? pick(m, of_shape, at(m, x)) : x;
        bool cat = chance(m->r, 60) && rank;
        put(m, "%s %s, %s", cat ? "cat" : "stack", name(m, x), name(m, y < 0 ? x : y));
        if (chance(m->r, 30)) put(m, ", %s", name(m, x));
        put(m, ", axis=%d", cat ? axis_of(m, x) : (int)below(m->r, rank + 1));
        return finish(m, 1);
    }
    }
}

// ---- indexing, contractions, creation, metadata --------------------------------------------------------------------------------------

// Indices of x's own shape along an axis, mostly in range.
static int own_indices(maker *m, int x, int axis) {
    int i = chance(m->r, 40) ? pick(m, an_index_tensor, NULL) : -1;
    if (i >= 0 && at(m, i)->rank == at(m, x)->rank) return i;
    char text[64];
    snprintf(text, sizeof text, "argsort %s, axis=%d", name(m, x), axis);
    return add_line(m->p, 1, text);
}

static int make_index(maker *m) {
    int x = a_tensor_of_rank(m, 1);
    if (x < 0) return -1;
    int axis = axis_of(m, x), i;
    switch (below(m->r, 6)) {
    case 0:
        if ((i = pick(m, an_index_tensor, NULL)) < 0) return -1;
        put(m, "take %s, %s, axis=%d", name(m, x), name(m, i), axis);
        return finish(m, 1);
    case 1:
        if ((i = own_indices(m, x, axis)) < 0) return -1;
        put(m, "gather %s, %s, axis=%d", name(m, x), name(m, i), axis);
        return finish(m, 1);
    case 2:
        i = pick(m, an_index_scalar, NULL);
        put(m, "index %s, %s, axis=%d", name(m, x), i >= 0 && chance(m->r, 60) ? name(m, i) : "-1", axis);
        return finish(m, 1);
    case 3:
    case 4: {
        if ((i = own_indices(m, x, axis)) < 0) return -1;
        int source = chance(m->r, 70) ? pick(m, of_shape, at(m, i)) : -1;
        put(m, "scatter %s, %s, %s, axis=%d", name(m, x), name(m, i), source < 0 ? "1" : name(m, source), axis);
        if (chance(m->r, 70)) put(m, ", mode=%s", (const char *[]){"add", "mul", "min", "max", "set"}[below(m->r, 5)]);
        return finish(m, 1);
    }
    default:
        if ((i = pick(m, an_index_tensor, NULL)) < 0) return -1;
        put(m, "onehot %s, ", name(m, i));
        put_extent(m, 1 + below(m->r, 6));
        return finish(m, 1);
    }
}

static int make_contraction(maker *m) {
    int x = a_tensor_of_rank(m, 1), y = a_tensor_of_rank(m, 1);
    if (x < 0 || m->exact) return -1;
    if (at(m, x)->rank == 8 || at(m, y)->rank == 8)
        return -1;          // refused as unsupported: a kernel has no axis left for the sum
    if (chance(m->r, 60)) { // something that fits: its own transpose
        y = x;
        if (at(m, x)->rank >= 2) {
            char text[64];
            snprintf(text, sizeof text, "transpose %s, -1, -2", name(m, x));
            if ((y = add_line(m->p, 1, text)) < 0) return -1;
        }
    }
    if (numel(at(m, x)) > 800 || numel(at(m, y)) > 800) return -1; // SIM takes seconds for larger ones
    bool linear = chance(m->r, 25);
    put(m, "%s %s, %s%s", linear ? "linear" : "matmul", name(m, x), name(m, linear ? x : y), linear ? ", none" : "");
    return finish(m, 1);
}

static void put_shape(maker *m) {
    unsigned rank = (unsigned)below(m->r, 4), least = 0;
    int like = chance(m->r, 60) ? pick(m, a_tensor, &least) : -1;
    if (like >= 0) rank = at(m, like)->rank;
    put(m, "[");
    for (unsigned a = 0; a < rank; a++)
        put(m, "%s", a ? ", " : ""), put_extent(m, like >= 0 ? at(m, like)->shape[a] : below(m->r, 6));
    put(m, "]");
}

static int make_creation(maker *m) {
    switch (below(m->r, m->exact ? 4 : 6)) {
    case 0:
        put(m, "full "), put_shape(m), put(m, ", ");
        put_operand(m, &(value){.name = "3"});
        break;
    case 1:
        put(m, "iota "), put_extent(m, below(m->r, 40)), put(m, ", ");
        put_literal(m);
        put(m, ", %s", (const char *[]){"1", "-2", "0", "0.5", "3"}[below(m->r, 5)]);
        break;
    case 2: put(m, "eye "), put_extent(m, below(m->r, 6)), put(m, ", "), put_extent(m, below(m->r, 6)); break;
    case 3: put(m, "tensor [[1, 2, 3], [-1, 0, 7]]"); break;
    default:
        put(m, "%s ", chance(m->r, 50) ? "uniform" : "normal"), put_shape(m);
        put(m, ", %s, %d, %d", (const char *[]){"0.0, 1.0", "-2.5, 3.5", "1.0, 0.5"}[below(m->r, 3)],
            (int)below(m->r, 100000), (int)below(m->r, 10));
    }
    if (chance(m->r, 40)) put(m, ", dtype=%s", a_dtype_name(m));
    return finish(m, 1);
}

static int make_meta(maker *m) {
    int x = a_tensor_of_rank(m, 0);
    if (x < 0) return -1;
    switch (below(m->r, 6)) {
    case 0:
        if (!at(m, x)->rank) return -1;
        put(m, "size %s, %d", name(m, x), axis_of(m, x));
        break;
    case 1:
        if (!at(m, x)->rank) return -1;
        put(m, "stride %s, %d", name(m, x), axis_of(m, x));
        break;
    case 2: put(m, "numel %s", name(m, x)); break;
    case 3: {
        int s = pick(m, a_scalar, NULL);
        if (s < 0) return -1;
        put(m, "scalar_tensor %s", name(m, s));
        break;
    }
    default: {
        int one = pick(m, one_element, NULL);
        if (one < 0) {
            char text[64];
            snprintf(text, sizeof text, "%s %s", at(m, x)->dtype == LF_BOOL ? "any" : "sum", name(m, x));
            if (m->exact && !lf_is_integer(at(m, x)->dtype)) return -1;
            one = add_line(m->p, 1, text);
        }
        if (one < 0) return -1;
        put(m, "item %s", name(m, one));
    }
    }
    return finish(m, 1);
}

void propose(program *p, random_state *r, bool exact_ops) {
    static const struct {
        int percent;
        int (*make)(maker *m);
    } kinds[] = {{44, make_elem}, {11, make_reduction},  {8, make_along},    {4, make_norm}, {16, make_view},
                 {5, make_index}, {3, make_contraction}, {3, make_creation}, {6, make_meta}};
    maker m = {.p = p, .r = r, .exact = exact_ops};
    int at_percent = (int)below(r, 100);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if ((at_percent -= kinds[k].percent) >= 0) continue;
        begin(&m);
        kinds[k].make(&m);
        return;
    }
}
