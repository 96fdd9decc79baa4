// See graph.h: counts of what was drawn, and the shares that are promised (docs/testing.md).
#include "test/fuzz/graph/graph.h"
#include <math.h>

shares *board;

static const char *const op_names[] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) #name,
#define LF_VIEW(ID, name, args, attrs, doc) #name,
#define LF_INDEXED(ID, name, args, attrs, doc) #name,
#define LF_REDUCE(ID, name, args, attrs, doc) #name,
#define LF_WHOLE(ID, name, args, attrs, doc) #name,
#define LF_COMPOSITE(ID, name, args, attrs, doc) #name,
#define LF_META(ID, name, args, attrs, doc) #name,
#include "ir/ops.def"
};
enum { N_OPS = sizeof op_names / sizeof *op_names };
_Static_assert((int)N_OPS <= (int)MOST_OPS, "room for every op");
_Static_assert((int)LF_DEBUG_COUNT <= (int)MOST_DEBUG, "room for every switch");

// ---- counting --------------------------------------------------------------------------------------------------------------------

static void count_line(const line *l) {
    size_t n = strcspn(l->text, " ");
    for (unsigned i = 0; i < N_OPS; i++)
        if (strlen(op_names[i]) == n && !memcmp(op_names[i], l->text, n)) {
            COUNT(board, ops[i], 1);
            return; // of two of a name (min of two, min of an axis) the first
        }
}

static bool is_special(double x, lf_dtype d) {
    double least = d == LF_F16 ? 0x1p-14 : d == LF_F64 || d == LF_C128 ? 0x1p-1022 : 0x1p-126;
    return !isfinite(x) || (x == 0 && signbit(x)) || (x != 0 && fabs(x) < least);
}

static bool is_extreme(lf_dtype d, const void *element) {
    lf_scalar s = {{0}}, least = {{0}}, most = {{0}};
    unsigned bytes = lf_dtype_bytes(d);
    memcpy(&s, element, bytes);
    bool is_signed = lf_is_signed(d);
    memset(&most, 0xff, bytes);
    if (is_signed) most.word[0] &= UINT64_MAX >> (64 - 8 * bytes + 1);
    if (is_signed) least.word[0] = 1ull << (8 * bytes - 1);
    return s.word[0] == most.word[0] || s.word[0] == least.word[0];
}

typedef struct element_counts {
    lf_dtype dtype;
    uint64_t n, marked;
} element_counts;

static void count_element(void *context, int64_t number, unsigned char *element) {
    element_counts *e = context;
    (void)number;
    e->n++;
    if (lf_is_integer(e->dtype)) {
        e->marked += is_extreme(e->dtype, element);
        return;
    }
    unsigned part = lf_dtype_bytes(e->dtype) / (lf_is_complex(e->dtype) ? 2 : 1);
    e->marked += is_special(real_of(e->dtype, element), e->dtype) ||
                 (lf_is_complex(e->dtype) && is_special(real_of(e->dtype, element + part), e->dtype));
}

static void count_tensor(const test_tensor *t) {
    bool empty = tensor_numel(t) == 0, negative = false, repeated = false;
    for (unsigned a = 0; a < t->rank; a++) {
        negative |= t->strides[a] < 0;
        repeated |= t->strides[a] == 0 && t->shape[a] > 1;
    }
    COUNT(board, tensors, 1);
    COUNT(board, empty, empty);
    COUNT(board, negative, negative && !empty);
    COUNT(board, repeated, repeated && !empty);
    COUNT(board, odd, t->first % 2 && !negative);
    COUNT(board, ranks[t->rank], 1);
    element_counts e = {.dtype = (lf_dtype)t->dtype};
    if (t->dtype == LFUSER_BOOL) return;
    tensor_each(t, count_element, &e);
    if (lf_is_integer(e.dtype)) {
        COUNT(board, int_tensors, e.n > 0);
        COUNT(board, extreme_tensors, e.marked > 0);
        COUNT(board, int_elements, e.n);
        COUNT(board, extreme_elements, e.marked);
    } else {
        COUNT(board, float_tensors, e.n > 0);
        COUNT(board, special_tensors, e.marked > 0);
        COUNT(board, float_elements, e.n);
        COUNT(board, special_elements, e.marked);
    }
}

void count_program(const program *p) {
    char what[64];
    variant v = {.machine = 0};
    case_run *c = malloc(sizeof *c);
    COUNT(board, programs, 1);
    COUNT(board, lines, p->n_lines);
    COUNT(board, outputs, p->n_outputs);
    COUNT(board, several, p->n_outputs > 1);
    bool pending = false, scalars = false, host = false, overwrites = false;
    for (int i = 0; i < p->n_values; i++) {
        const value *x = &p->values[i];
        pending |= x->pending;
        scalars |= !x->tensor && !x->extent;
        host |= x->host;
        if (x->line >= 0) COUNT(board, dtypes[x->dtype], 1);
    }
    for (int i = 0; i < p->n_outputs; i++) overwrites |= p->into[i] >= 0;
    COUNT(board, with_pending, pending);
    COUNT(board, with_scalars, scalars);
    COUNT(board, with_host_tensors, host);
    COUNT(board, overwriting, overwrites);
    for (int i = 0; i < p->n_lines; i++) count_line(&p->lines[i]);
    if (begin_case(c, p, &v, what, sizeof what)) {
        make_arguments(c, false);
        for (unsigned i = 0; i < c->n_params; i++)
            if (c->in[i].host) count_tensor(&c->in[i]);
        free_arguments(c);
    }
    end_case(c);
}

void count_run(const variant *v, outcome r) {
    COUNT(board, runs, r != REFUSED);
    COUNT(board, refused, r == REFUSED);
    COUNT(board, checks, r == FAILED_CHECK);
    if (r == REFUSED) return;
    COUNT(board, on[v->machine % n_machines], 1);
    for (unsigned i = 0; i < LF_DEBUG_COUNT; i++) COUNT(board, debug[i], v->debug >> i & 1);
    COUNT(board, symbolic, v->dialect.symbolic);
    COUNT(board, all, v->dialect.all);
    COUNT(board, given, v->given);
    COUNT(board, strided, v->layouts != 0);
    COUNT(board, prepared, v->prepare);
    COUNT(board, general, v->never_wait);
    COUNT(board, fast, v->fast);
}

// ---- printing --------------------------------------------------------------------------------------------------------------------

static double percent(uint64_t n, uint64_t of) { return of ? 100.0 * (double)n / (double)of : 0; }

enum { ENOUGH = 500 }; // programs, for shares to mean something

static unsigned print_share(const char *what, uint64_t n, uint64_t of, const char *of_what, double promised) {
    bool missed = board->programs >= ENOUGH && percent(n, of) < promised;
    printf("  %-42s %5.1f %% of %llu %s", what, percent(n, of), (unsigned long long)of, of_what);
    if (promised > 0) printf(" (at least %g: %s)", promised, missed ? "MISSED" : "kept");
    printf("\n");
    return missed;
}

static unsigned print_inputs(void) {
    const shares *b = board;
    unsigned missed = print_share("with no element", b->empty, b->tensors, "tensors", 5);
    missed += print_share("stride 0", b->repeated, b->tensors, "tensors", 10);
    missed += print_share("negative strides or odd addresses", b->negative + b->odd, b->tensors, "tensors", 10);
    missed += print_share("with NaN, inf, -0 or subnormals", b->special_tensors, b->float_tensors, "float tensors", 20);
    print_share("", b->special_elements, b->float_elements, "float elements", 0);
    missed += print_share("with the least or largest integer", b->extreme_tensors, b->int_tensors, "integer tensors", 15);
    print_share("", b->extreme_elements, b->int_elements, "integer elements", 0);
    return missed;
}

unsigned print_shares(double seconds) {
    const shares *b = board;
    double n = b->programs ? (double)b->programs : 1;
    printf("%llu programs of %.1f ops and %.1f outputs, %llu runs (%llu failed checks), %llu variants refused, %.1f s\n",
           (unsigned long long)b->programs, (double)b->lines / n, (double)b->outputs / n, (unsigned long long)b->runs,
           (unsigned long long)b->checks, (unsigned long long)b->refused, seconds);
    unsigned missed = print_inputs();
    print_share("several outputs", b->several, b->programs, "programs", 0);
    print_share("outputs into parameters", b->overwriting, b->programs, "programs", 0);
    print_share("scalars", b->with_scalars, b->programs, "programs", 0);
    print_share("pending scalars", b->with_pending, b->programs, "programs", 0);
    print_share("@host tensors", b->with_host_tensors, b->programs, "programs", 0);
    printf("  ranks of tensors:");
    for (unsigned i = 0; i <= LFUSER_MAX_RANK; i++) printf(" %u: %.1f %%", i, percent(b->ranks[i], b->tensors));
    printf("\n  results:");
    for (unsigned d = LF_BOOL; d < LF_DTYPE_COUNT; d++)
        printf(" %s %.1f %%", lf_dtype_name((lf_dtype)d), percent(b->dtypes[d], b->lines));
    printf("\n  ops never drawn:");
    unsigned never = 0;
    for (unsigned i = 0; i < N_OPS; i++) {
        bool again = false; // the name of an earlier row
        for (unsigned k = 0; k < i; k++) again |= !strcmp(op_names[k], op_names[i]);
        if (!again && !b->ops[i]) never++, printf(" %s", op_names[i]);
    }
    printf("%s\n  runs:", never ? "" : " none");
    for (unsigned i = 0; i < n_machines; i++)
        printf(" %s with %u threads %llu,", machines[i].device, machines[i].threads, (unsigned long long)b->on[i]);
    printf("\n  of them: symbolic %.1f %%, every value an output %.1f %%, other strides %.1f %%, outputs given %.1f %%, "
           "prepared "
           "%.1f %%, never waiting %.1f %%, fast %.1f %%",
           percent(b->symbolic, b->runs), percent(b->all, b->runs), percent(b->strided, b->runs), percent(b->given, b->runs),
           percent(b->prepared, b->runs), percent(b->general, b->runs), percent(b->fast, b->runs));
    for (unsigned i = 0; i < LF_DEBUG_COUNT; i++) {
        char word[64];
        printf(", %s %.1f %%", debug_words(1u << i, word, sizeof word), percent(b->debug[i], b->runs));
    }
    printf("\n  elements judged by a bound: %llu, of which %llu could be anything\n", (unsigned long long)b->bounded,
           (unsigned long long)b->undecided);
    if (b->programs >= 20 * ENOUGH) missed += never;
    return missed;
}

void print_summary(uint64_t failures, double seconds) {
    const shares *b = board;
    printf("summary: {\"programs\": %llu, \"runs\": %llu, \"failures\": %llu, \"ops\": %llu, \"checks\": %llu, \"refused\": "
           "%llu, "
           "\"bounded\": %llu, \"undecided\": %llu, \"fast\": %llu, \"seconds\": %.1f, \"on\": {",
           (unsigned long long)b->programs, (unsigned long long)b->runs, (unsigned long long)failures,
           (unsigned long long)b->lines, (unsigned long long)b->checks, (unsigned long long)b->refused,
           (unsigned long long)b->bounded, (unsigned long long)b->undecided, (unsigned long long)b->fast, seconds);
    for (unsigned i = 0; i < n_machines; i++)
        printf("%s\"%s/%u\": %llu", i ? ", " : "", machines[i].device, machines[i].threads, (unsigned long long)b->on[i]);
    printf("}}\n");
}
