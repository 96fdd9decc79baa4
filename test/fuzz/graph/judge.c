// See graph.h: how far a result may be from the interpreter's where bits are not promised: behind float scans and products of
// matrices, whose order is free, and in fast mode behind every float op. The bound is found by running the interpreter again and again,
// each time with the results of those ops moved by as much as they may be off, up or down by chance, and looking at how far the outputs
// go apart: twice that is allowed. An output that does not depend on such an op must have equal bits.
//
// How much an op may be off: a function 4 ulp, beside 2 of the interpreter's own; other arithmetic 1 ulp; a sum in any order n u Σ|x|, which
// holds for every order; a product n u |Πx|. Where the order decides whether something overflows on the way, or in fast mode whether a
// product is rounded before it is added, the element may be anything: one run has NaN there (or a number instead of NaN), and so
// disagrees with the others.
#include "test/fuzz/graph/graph.h"
#include <math.h>

enum { FEW = 8, MANY = 48 }; // runs before an element is believed to be wrong

struct judge {
    const case_run *c;
    bool *tainted; // by output
    bool any;
    // By value, through views and signs: a product of reals; what is added to something. Contraction rounds a product once, with the sum.
    bool *product, *added;
    lf_interp_result *samples[MANY];
    unsigned n, failed;
};

typedef struct disturbance {
    const judge *j;
    bool fast, poison;
    random_state r;
} disturbance;

// ---- which ops -------------------------------------------------------------------------------------------------------------------

typedef enum freedom { FIXED, ARITHMETIC, FUNCTION } freedom;

static freedom of_family(const char *family) {
    static const char *const fixed[] = {"neg",     "abs",       "sign",         "rounding", "relu",   "bitwise",
                                        "logical", "predicate", "complex_part", "bitcast",  "minmax", "float_bits",
                                        "gcd",     "shift",     "compare",      "select",   "clamp",  "threshold"};
    static const char *const functions[] = {"math", "activation", "pow"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (!strcmp(fixed[i], family)) return FIXED;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i], family)) return FUNCTION;
    return ARITHMETIC;
}

static freedom freedom_of(const lf_op *op) {
    static const char *const families[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = #family,
#include "ir/ops.def"
    };
    lf_dtype from = op->n_operands && op->operands[0] ? op->operands[0]->type.dtype : LF_NO_DTYPE;
    if (op->code == LF_OP_ANGLE || (op->code == LF_OP_ABS && lf_is_complex(from))) return FUNCTION;
    return families[op->code] ? of_family(families[op->code]) : FIXED;
}

static bool has_free_order(const lf_op *op) {
    return op->code == LF_OP_CUMSUM || op->code == LF_OP_CUMPROD || op->code == LF_OP_LOGCUMSUMEXP ||
           op->code == LF_OP_MATMUL;
}

static bool is_free(const lf_op *op, bool fast) {
    if (op->alias || !op->n_results || op->results[0].where == LF_ON_HOST) return false; // host code is exact
    lf_dtype d = op->results[0].type.dtype;
    if (!lf_is_float(d) && !lf_is_complex(d)) return false;
    if (has_free_order(op)) return true;
    if (!fast) return false;
    if (op->code == LF_OP_SUM || op->code == LF_OP_PROD || op->code == LF_OP_NORMAL) return true;
    if (op->code == LF_OP_SCATTER) return op->mode == LF_SCATTER_ADD || op->mode == LF_SCATTER_MUL;
    return freedom_of(op) != FIXED;
}

static void find_tainted(judge *j) {
    const lf_graph *g = j->c->graph;
    bool *tainted = calloc(g->n_values + 1, 1);
    for (const lf_op *op = g->first; op; op = op->next) {
        bool is = is_free(op, j->c->v->fast);
        for (unsigned i = 0; i < op->n_operands; i++) is |= op->operands[i] && tainted[op->operands[i]->id];
        for (unsigned a = 0; a < LF_MAX_RANK; a++) {
            is |= op->extra[a] && tainted[op->extra[a]->id];
            if (lf_op_info_of(op->code)->kind == LF_KIND_VIEW && !op->view.reshape)
                is |= op->view.start[a] && tainted[op->view.start[a]->id];
        }
        for (unsigned i = 0; i < op->n_results; i++) tainted[op->results[i].id] = is;
    }
    j->tainted = calloc(g->n_outputs + 1, 1);
    for (uint32_t i = 0; i < g->n_outputs; i++) j->any |= j->tainted[i] = tainted[g->outputs[i].value->id];
    free(tainted);
}

static bool is_sum(const lf_op *op) {
    return op->code == LF_OP_ADD || op->code == LF_OP_SUB || op->code == LF_OP_SUM || op->code == LF_OP_CUMSUM;
}

static void find_products(judge *j) {
    const lf_graph *g = j->c->graph;
    j->product = calloc(g->n_values + 1, 1);
    j->added = calloc(g->n_values + 1, 1);
    for (const lf_op *op = g->first; op; op = op->next) {
        bool same = op->code == LF_OP_NEG || lf_op_info_of(op->code)->kind == LF_KIND_VIEW;
        if (!op->n_results || !lf_is_float(op->results[0].type.dtype)) continue;
        j->product[op->results[0].id] =
            op->code == LF_OP_MUL || (same && op->operands[0] && j->product[op->operands[0]->id]);
    }
    for (const lf_op *op = g->last; op; op = op->prev) {
        bool same = op->code == LF_OP_NEG || lf_op_info_of(op->code)->kind == LF_KIND_VIEW;
        for (unsigned i = 0; i < op->n_operands; i++)
            if (op->operands[i] && (is_sum(op) || (same && !i && j->added[op->results[0].id])))
                j->added[op->operands[i]->id] = true;
    }
}

// ---- numbers ---------------------------------------------------------------------------------------------------------------------

typedef struct format {
    double unit, least, most; // spacing at 1, smallest normal, largest
    unsigned bytes, parts;
} format;

static format format_of(lf_dtype d) {
    switch (d) {
    case LF_F16: return (format){0x1p-10, 0x1p-14, 65504, 2, 1};
    case LF_BF16: return (format){0x1p-7, 0x1p-126, 0x1.fep127, 2, 1};
    case LF_F32: return (format){0x1p-23, 0x1p-126, 0x1.fffffep127, 4, 1};
    case LF_C64: return (format){0x1p-23, 0x1p-126, 0x1.fffffep127, 4, 2};
    case LF_C128: return (format){0x1p-52, 0x1p-1022, 0x1.fffffffffffffp1023, 8, 2};
    default: return (format){0x1p-52, 0x1p-1022, 0x1.fffffffffffffp1023, 8, 1};
    }
}

static lf_dtype part_of(lf_dtype d) { return d == LF_C64 ? LF_F32 : d == LF_C128 ? LF_F64 : d; }

static void put_real(lf_dtype d, double x, void *to) {
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if (d == LF_F64)
        memcpy(to, &x, 8);
    else if (d == LF_F32)
        memcpy(to, &f, 4);
    else if (d == LF_BF16)
        bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, memcpy(to, &bits, 2);
    else {
        _Float16 h = (_Float16)f;
        memcpy(to, &h, 2);
    }
}

// x up or down by so much; subnormal numbers may be flushed in fast mode.
static double moved(disturbance *m, double x, double by, const format *f) {
    if (!isfinite(x)) return x;
    bool up = next(&m->r) >> 63;
    // Sometimes less far: two points say nothing of a sine.
    if (next(&m->r) >> 63) by *= (double)(next(&m->r) >> 11) * 0x1p-53;
    // What may be 0 is that at times: what follows may tell 0 from all else.
    if (fabs(x) <= by && next(&m->r) % 4 == 0) return copysign(0, x);
    if (m->fast && x != 0 && fabs(x) < 4 * f->least && f->least > 0x1p-200 && next(&m->r) >> 63) return copysign(0, x);
    return up ? x + by : x - by;
}

// Where an element may be anything, every FEW-th run has NaN there (or a number instead of it), and the others have by chance that, zero,
// the largest or the least, or leave it: what is sorted by it, or the first of its kind, is elsewhere each time.
static double anything(disturbance *m, double x, double most) {
    const double kinds[] = {isnan(x) ? 1 : (double)NAN, 0, most, -most, x};
    return kinds[m->poison ? 0 : next(&m->r) % (sizeof kinds / sizeof *kinds)];
}

// Element number `i` of a row-major result; `by`: absolute, of each part, and as many ulps of the part or, where parts mix, of the larger
// one. Infinite: it may be anything.
static void move_parts(disturbance *m, const lf_array *a, int64_t i, const double by[2], double ulps, bool mix) {
    format f = format_of(a->dtype);
    lf_dtype part = part_of(a->dtype);
    char *at = (char *)a->data + i * f.bytes * f.parts;
    double larger = 0;
    for (unsigned k = 0; k < f.parts; k++) larger = fmax(larger, fabs(real_of(part, at + k * f.bytes)));
    for (unsigned k = 0; k < f.parts; k++, at += f.bytes) {
        double x = real_of(part, at), size = mix ? larger : fabs(x);
        if (isinf(by[k])) {
            put_real(part, anything(m, x, format_of(part).most), at);
        } else if (x != 0 || by[k] != 0)
            put_real(part, moved(m, x, by[k] + ulps * f.unit * fmax(isfinite(size) ? size : 0, f.least), &f), at);
    }
}

static void move_element(disturbance *m, const lf_array *a, int64_t i, double by, double ulps) {
    move_parts(m, a, i, (double[]){by, by}, ulps, true);
}

static int64_t numel_of(const lf_array *a) {
    int64_t n = 1;
    for (unsigned i = 0; i < a->rank; i++) n *= a->shape[i];
    return n;
}

// Magnitude of a part at an offset in elements; NaN and inf count as 0: they decide the result in every order, but see `is_infinite`.
static double part_at(const lf_array *a, int64_t offset, unsigned part) {
    format f = format_of(a->dtype);
    if (part >= f.parts) return 0;
    double x = fabs(real_of(part_of(a->dtype), (const char *)a->data + (offset * f.parts + part) * f.bytes));
    return isfinite(x) ? x : 0;
}

static double size_at(const lf_array *a, int64_t offset) { return part_at(a, offset, 0) + part_at(a, offset, 1); }

// A complex factor with an infinite part: ac - bd is infinite or NaN, as the other factor's signs say, and so as the order says.
static bool is_infinite(const lf_array *a, int64_t offset) {
    format f = format_of(a->dtype);
    const char *at = (const char *)a->data + offset * f.bytes * f.parts;
    return f.parts > 1 && (isinf(real_of(part_of(a->dtype), at)) || isinf(real_of(part_of(a->dtype), at + f.bytes)));
}

// Of an operand, for element `number` of the result.
static double operand_at(const lf_array *a, const lf_array *out, int64_t number) {
    int64_t offset = 0;
    for (unsigned x = out->rank; x-- > 0 && a->rank == out->rank; number /= out->shape[x])
        offset += number % out->shape[x] * a->strides[x];
    return real_of(a->dtype, (const char *)a->data + offset * (int64_t)lf_dtype_bytes(a->dtype));
}

// ---- sums and products -----------------------------------------------------------------------------------------------------------

// How far a sum of n terms of this total size may be off.
static double error_of_sum(const format *f, double n, double total, double unit) {
    return total > f->most / 4 ? INFINITY : n * unit * total;
}

static void move_sum(disturbance *m, const lf_array *out, int64_t i, double n, const double total[2], double unit,
                     double ulps) {
    format f = format_of(out->dtype);
    double by[2] = {error_of_sum(&f, n, total[0], unit), error_of_sum(&f, n, total[1], unit)};
    move_parts(m, out, i, by, ulps, false);
}

// Products that could leave the range on the way, in some order; `range`: sum of |log2| of the factors.
static double error_of_product(const format *f, double n, double range, double size, double unit) {
    return range > log2(f->most) - 2 ? INFINITY : n * unit * size;
}

static double range_of(double size) { return size > 0 ? fabs(log2(size)) + 1 : 0; }

static void move_reduction(disturbance *m, const lf_op *op, const lf_array *x, lf_array *out) {
    int64_t n = numel_of(x), n_out = numel_of(out), index[LF_MAX_RANK] = {0}, pitch[LF_MAX_RANK] = {0}, offset = 0, to = 0;
    double (*total)[2] = calloc((size_t)n_out + 1, sizeof *total);
    bool sum = op->code == LF_OP_SUM;
    int64_t step = 1;
    for (unsigned a = x->rank; a-- > 0;)
        if (!(op->axes >> a & 1)) pitch[a] = step, step *= x->shape[a];
    for (int64_t i = 0; i < n; i++) {
        if (sum)
            total[to][0] += part_at(x, offset, 0), total[to][1] += part_at(x, offset, 1);
        else
            total[to][0] += is_infinite(x, offset) ? INFINITY : range_of(size_at(x, offset));
        for (unsigned a = x->rank; a-- > 0;) {
            offset += x->strides[a], to += pitch[a];
            if (++index[a] < x->shape[a]) break;
            offset -= x->strides[a] * x->shape[a], to -= pitch[a] * x->shape[a];
            index[a] = 0;
        }
    }
    format f = format_of(out->dtype);
    double terms = n_out ? (double)(n / n_out) : 0;
    for (int64_t i = 0; i < n_out; i++)
        if (sum && m->fast && f.parts == 1 && m->j->product[op->operands[0]->id] && isnan(operand_at(out, out, i)))
            move_element(m, out, i, INFINITY,
                         1); // of infinities that were products; or of another NaN, which we do not tell apart
        else if (sum)
            move_sum(m, out, i, terms, total[i], f.unit, 1);
        else
            move_element(m, out, i, error_of_product(&f, terms, total[i][0], size_at(out, i), f.unit), 1);
    free(total);
}

static void move_scan(disturbance *m, const lf_op *op, const lf_array *x, lf_array *out) {
    unsigned axis = (unsigned)op->axis;
    format f = format_of(out->dtype);
    // Halves are summed in f32 and rounded once.
    double unit = f.bytes == 2 ? 0x1p-23 : f.unit;
    int64_t inner = 1, extent = x->shape[axis], outer = 1;
    for (unsigned a = 0; a < x->rank; a++)
        (a < axis ? (void)(outer *= x->shape[a]) : a > axis ? (void)(inner *= x->shape[a]) : (void)0);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            int64_t offset = 0, rest = i;
            for (unsigned a = x->rank; a-- > axis + 1; rest /= x->shape[a]) offset += rest % x->shape[a] * x->strides[a];
            rest = o;
            for (unsigned a = axis; a-- > 0; rest /= x->shape[a]) offset += rest % x->shape[a] * x->strides[a];
            double total = 0, parts[2] = {0};
            for (int64_t k = 0; k < extent; k++, offset += x->strides[axis]) {
                int64_t at = (o * extent + k) * inner + i;
                double size = size_at(x, offset), n = (double)(k + 1);
                if (op->code == LF_OP_CUMPROD) {
                    total += is_infinite(x, offset) ? INFINITY : range_of(size);
                    move_element(m, out, at, error_of_product(&f, n, total, size_at(out, at), unit), 2);
                } else if (op->code == LF_OP_CUMSUM) {
                    parts[0] += part_at(x, offset, 0), parts[1] += part_at(x, offset, 1);
                    move_sum(m, out, at, n, parts, unit, 2);
                } else { // a sum of e^(x - m), whose log is off by as much as the sum relatively; x - m is off by itself
                    total = fmax(total, size);
                    move_element(m, out, at, (n + 8) * unit * (1 + total), 2);
                }
            }
        }
}

static void move_matmul(disturbance *m, const lf_array *a, const lf_array *b, lf_array *out) {
    unsigned rank = out->rank;
    format f = format_of(out->dtype);
    double unit = f.bytes == 2 ? 0x1p-23 : f.unit;
    int64_t n = numel_of(out), terms = a->shape[rank - 1], index[LF_MAX_RANK];
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at_a = 0, at_b = 0;
        double total = 0;
        for (unsigned x = rank; x-- > 0; rest /= out->shape[x]) index[x] = rest % out->shape[x];
        for (unsigned x = 0; x + 2 < rank; x++) at_a += index[x] * a->strides[x], at_b += index[x] * b->strides[x];
        at_a += index[rank - 2] * a->strides[rank - 2];
        at_b += index[rank - 1] * b->strides[rank - 1];
        for (int64_t k = 0; k < terms; k++)
            total += size_at(a, at_a + k * a->strides[rank - 1]) * size_at(b, at_b + k * b->strides[rank - 2]);
        move_element(m, out, i, error_of_sum(&f, (double)terms, total, unit), 1);
    }
}

static double largest_of(const lf_array *a) {
    double most = 0;
    int64_t n = numel_of(a), low = 0, high = 0;
    if (!lf_is_float(a->dtype) && !lf_is_complex(a->dtype)) return INFINITY;
    for (unsigned i = 0; i < a->rank && n; i++) *(a->strides[i] < 0 ? &low : &high) += (a->shape[i] - 1) * a->strides[i];
    for (int64_t i = low; n && i <= high; i++)
        most = fmax(most, size_at(a, i)); // elements between count too: at worst more is allowed
    return most;
}

// ---- an op of the interpreter -------------------------------------------------------------------------------------------------------

static double ulps_of(const lf_op *op) {
    lf_dtype d = op->results[0].type.dtype;
    if (freedom_of(op) != FUNCTION) return 1;
    if (lf_is_complex(d) || op->code == LF_OP_POW || op->code == LF_OP_TGAMMA || op->code == LF_OP_LGAMMA ||
        op->code == LF_OP_DIGAMMA)
        return 16;
    return 6;
}

// The tanh form of gelu means its formula, step by step: its exponential is off by as many roundings as its argument is large.
static double ulps_of_argument(const lf_op *op, const lf_array *x, const lf_array *out, int64_t number) {
    if (op->code != LF_OP_GELU || !op->flag) return 0;
    double a = operand_at(x, out, number);
    return isfinite(a) ? fmin(4 * 1.6 * fabs(a) * (1 + 0.045 * a * a), 1000) : 0;
}

// In fast mode, a product may be added without being rounded. One that overflows, but by less than twice, may come back into range; and
// where two infinities would cancel to NaN, one that was a product is finite.
static bool is_contracted(const judge *j, const lf_op *op, const lf_array *const *operands, const lf_array *out,
                          int64_t number) {
    if (op->code != LF_OP_MUL && op->code != LF_OP_ADD && op->code != LF_OP_SUB) return false;
    double r = operand_at(out, out, number), a = operand_at(operands[0], out, number),
           b = operand_at(operands[1], out, number);
    if (op->code == LF_OP_MUL)
        return isinf(r) && j->added[op->results[0].id] && isfinite(a) && isfinite(b) &&
               fabsl((long double)a * b) < 2.01L * format_of(out->dtype).most;
    return isnan(r) && isinf(a) && isinf(b) && (j->product[op->operands[0]->id] || j->product[op->operands[1]->id]);
}

// ac - bd is inf - inf where both products overflow; contracted, only one of them is rounded, and does.
static bool leaves_range(const disturbance *m, const lf_op *op, const lf_array *const *operands, const lf_array *out,
                         int64_t number) {
    format f = format_of(out->dtype);
    const char *at = (const char *)out->data + number * f.bytes * f.parts;
    if (freedom_of(op) != ARITHMETIC) return false;
    if (f.parts == 1) return m->fast && is_contracted(m->j, op, operands, out, number);
    return !isfinite(real_of(part_of(out->dtype), at)) || !isfinite(real_of(part_of(out->dtype), at + f.bytes));
}

static void after_op(void *self, const lf_op *op, const lf_array *const *operands, lf_array *out) {
    disturbance *m = self;
    if (!is_free(op, m->fast)) return;
    switch (op->code) {
    case LF_OP_SUM:
    case LF_OP_PROD: move_reduction(m, op, operands[0], out); return;
    case LF_OP_CUMSUM:
    case LF_OP_CUMPROD:
    case LF_OP_LOGCUMSUMEXP: move_scan(m, op, operands[0], out); return;
    case LF_OP_MATMUL: move_matmul(m, operands[0], operands[1], out); return;
    default: break;
    }
    format f = format_of(out->dtype);
    double by = 0, ulps = ulps_of(op);
    if (op->code == LF_OP_SCATTER) // any number of updates may meet
        by = op->mode == LF_SCATTER_MUL
                 ? INFINITY
                 : error_of_sum(&f, (double)numel_of(operands[1]) + 1,
                                largest_of(operands[0]) + (double)numel_of(operands[1]) * largest_of(operands[2]), f.unit);
    if (op->code == LF_OP_NORMAL) by = 16 * f.unit * 6 * largest_of(operands[1]);
    if (op->code == LF_OP_LGAMMA || op->code == LF_OP_DIGAMMA) by = 2e-6;
    for (int64_t i = 0, n = numel_of(out); i < n; i++)
        move_element(m, out, i, leaves_range(m, op, operands, out, i) ? INFINITY : by,
                     ulps + ulps_of_argument(op, operands[0], out, i));
}

// ---- judging -----------------------------------------------------------------------------------------------------------------------

static void sample(judge *j, unsigned until) {
    for (; j->n + j->failed < until;) {
        disturbance m = {j, j->c->v->fast, (j->n + j->failed) % FEW == 0, {j->c->p->seed + 1000003u * (j->n + j->failed)}};
        lf_interp_watch watch = {after_op, &m};
        lf_status s = lf_interp_run_watched(j->c->graph, j->c->arrays, j->c->n_params, &watch, &lf_system_allocator,
                                            &j->samples[j->n]);
        if (s)
            j->failed++;
        else
            j->n++;
        lf_status_destroy(s);
    }
}

judge *judge_create(const case_run *c) {
    judge *j = calloc(1, sizeof *j);
    j->c = c;
    find_tainted(j);
    find_products(j);
    return j;
}

void judge_destroy(judge *j) {
    for (unsigned i = 0; i < j->n; i++) lf_interp_result_destroy(j->samples[i]);
    free(j->tainted);
    free(j->product);
    free(j->added);
    free(j);
}

bool judge_binds(const judge *j, unsigned output) { return !j->tainted[output]; }

bool judge_index_error(judge *j, bool want) {
    if (!j->any) return false;
    sample(j, FEW);
    for (unsigned i = 0; i < j->n; i++)
        if ((j->samples[i]->index_error != NULL) != want) return true;
    return j->failed > 0;
}

typedef enum { WRONG, FINE, UNDECIDED } verdict;

static verdict judge_real(const judge *j, unsigned k, lf_dtype d, size_t at, const void *got, const void *want) {
    double low = real_of(d, want), high = low, x = real_of(d, got);
    bool finite = isfinite(low), is_nan = isnan(low);
    format f = format_of(d);
    for (unsigned i = 0; i < j->n; i++) {
        double y = real_of(d, (const char *)j->samples[i]->outputs[k].data + at);
        if (isnan(y) != is_nan || isfinite(y) != finite || (!finite && !is_nan && y != low)) return UNDECIDED;
        low = fmin(low, y), high = fmax(high, y);
    }
    if (is_nan) return isnan(x) ? FINE : WRONG;
    if (!finite) return x == low ? FINE : WRONG;
    double slack = 2 * (high - low) + 4 * f.unit * fmax(fmax(fabs(low), fabs(high)), f.least);
    if (high + slack > f.most || low - slack < -f.most) return UNDECIDED; // may overflow
    return x >= low - slack && x <= high + slack ? FINE : WRONG;
}

static verdict judge_element(const judge *j, unsigned k, lf_dtype d, int64_t number, const void *got, const void *want) {
    size_t bytes = lf_dtype_bytes(d), at = (size_t)number * bytes;
    verdict worst = FINE;
    if (j->failed) return UNDECIDED;
    if (!lf_is_float(d) && !lf_is_complex(d)) {
        for (unsigned i = 0; i < j->n; i++)
            if (memcmp((const char *)j->samples[i]->outputs[k].data + at, want, bytes) != 0) return UNDECIDED;
        return WRONG;
    }
    format f = format_of(d);
    for (unsigned i = 0; i < f.parts; i++) {
        verdict v = judge_real(j, k, part_of(d), at + i * f.bytes, (const char *)got + i * f.bytes,
                               (const char *)want + i * f.bytes);
        if (v == UNDECIDED) return v;
        if (v == WRONG) worst = WRONG;
    }
    return worst;
}

bool judge_allows(judge *j, unsigned output, lf_dtype d, int64_t number, const void *got, const void *want) {
    verdict v = WRONG;
    for (unsigned n = FEW; n <= MANY && v == WRONG; n += MANY - FEW) {
        sample(j, n);
        v = judge_element(j, output, d, number, got, want);
    }
    if (board) COUNT(board, undecided, v == UNDECIDED);
    return v != WRONG;
}
