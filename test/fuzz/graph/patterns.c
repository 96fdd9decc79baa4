// Lines that belong together: ways of sharing a kernel in which something was once wrong, or nearly so. Proposals of single lines meet
// in these ways too, but seldom. See propose.h.
#include "test/fuzz/graph/propose.h"

typedef struct sketch {
    program *p;
    random_state *r;
    bool exact;
} sketch;

// Adds a line of one result; gives its value, or -1.
__attribute__((format(printf, 2, 3))) static int put_one(sketch *s, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return add_line(s->p, 1, text);
}

static const char *name(const sketch *s, int v) { return s->p->values[v].name; }
static const value *at(const sketch *s, int v) { return &s->p->values[v]; }

static int a_tensor(sketch *s, unsigned least_rank) {
    int found[MOST_VALUES], n = 0;
    for (int i = 0; i < s->p->n_values; i++)
        if (at(s, i)->tensor && !at(s, i)->host && at(s, i)->rank >= least_rank &&
            !(s->exact && lf_is_complex(at(s, i)->dtype)))
            found[n++] = i;
    return n ? found[chance(s->r, 50) ? n - 1 : below(s->r, n)] : -1;
}

static const char *one_of(sketch *s, const char *const *words, size_t n) { return words[below(s->r, (int64_t)n)]; }
#define ONE_OF(s, ...)                                                                                                      \
    one_of(s, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

// Something that owns a kernel of rows, of x along an axis; *io_axis: along which it has more than one element.
static int make_dear(sketch *s, int x, unsigned *io_axis) {
    unsigned axis = *io_axis, rank = at(s, x)->rank;
    switch (below(s->r, 4)) {
    case 0: return put_one(s, "%s %s, axis=%u", ONE_OF(s, "argsort", s->exact ? "argsort" : "cumsum"), name(s, x), axis);
    case 1: {
        char text[64];
        snprintf(text, sizeof text, "%s %s, axis=%u", ONE_OF(s, "cummin", "cummax"), name(s, x), axis);
        int first = add_line(s->p, 2, text);
        return first < 0 ? -1 : first + (int)below(s->r, 2);
    }
    case 2:
        if (rank != 2 || s->exact || at(s, x)->shape[0] * at(s, x)->shape[1] > 800) return -1;
        return put_one(s, "linear %s, %s, none", name(s, x), name(s, x));
    default:
        if (rank < 2) return -1;
        *io_axis = axis ? 0 : 1;
        return put_one(s, "%s %s, axes=[%u], keepdim=true", ONE_OF(s, "sum", "max", "prod", "min"), name(s, x), axis);
    }
}

// What reads m at other points than its own.
static int make_elsewhere(sketch *s, int m, unsigned axis) {
    char zeros[40] = "", moved[40] = "", back[40] = "";
    unsigned rank = at(s, m)->rank;
    int64_t last = at(s, m)->shape[axis] - 1;
    for (unsigned a = 0, n[3] = {0}; a < rank; a++) {
        const char *comma = a ? ", " : "";
        n[0] += (unsigned)snprintf(zeros + n[0], sizeof zeros - n[0], "%s%lld", comma, a == axis ? (long long)last : 0ll);
        n[1] += (unsigned)snprintf(moved + n[1], sizeof moved - n[1], "%s%d", comma, a == axis);
        n[2] += (unsigned)snprintf(back + n[2], sizeof back - n[2], "%s%d", comma, a == axis ? -1 : 0);
    }
    switch (below(s->r, 6)) {
    case 0: return put_one(s, "index %s, %s, axis=%u", name(s, m), ONE_OF(s, "-1", "0", "1"), axis);
    case 1: {
        int i = put_one(s, "index %s, -1, axis=%u", name(s, m), axis);
        return i < 0 ? -1 : put_one(s, "unsqueeze %s, axes=[%u]", name(s, i), axis);
    }
    case 2: return put_one(s, "roll %s, [1], axes=[%u]", name(s, m), axis);
    case 3: return put_one(s, "flip %s, axes=[%u]", name(s, m), axis);
    case 4: return put_one(s, "pad %s, [%s], [%s], 0", name(s, m), moved, back);
    default: {
        char ends[80] = "";
        for (unsigned a = 0, n = 0; a < rank; a++)
            n += (unsigned)snprintf(ends + n, sizeof ends - n, "%snone", a ? ", " : "");
        return put_one(s, "slice %s, [%s], [%s], none", name(s, m), zeros, ends);
    }
    }
}

// An op of x, or of what a kernel of x's rows makes, and of other rows of the same.
static void beside_itself(sketch *s) {
    int x = a_tensor(s, 1);
    if (x < 0) return;
    int near = chance(s->r, 50) ? put_one(s, "%s %s", ONE_OF(s, "neg", "abs", "sign"), name(s, x)) : -1;
    unsigned axis = (unsigned)below(s->r, at(s, x)->rank);
    int m = make_dear(s, x, &axis);
    int far = m < 0 ? -1 : make_elsewhere(s, m, axis);
    if (far >= 0 && chance(s->r, 40)) far = put_one(s, "%s %s", ONE_OF(s, "neg", "abs", "sign"), name(s, far));
    if (far < 0) return;
    put_one(s, "%s %s, %s", ONE_OF(s, "add", "sub", "mul", "max", "lt"), name(s, far),
            name(s, near >= 0 && chance(s->r, 60) ? near : m));
}

// Reductions along rows and across them, the second combined with what a kernel between them makes.
static void both_ways(sketch *s) {
    int x = a_tensor(s, 2), y = a_tensor(s, 0);
    if (x < 0) return;
    unsigned rank = at(s, x)->rank, last = rank - 1;
    if (chance(s->r, 70)) put_one(s, "%s %s, axes=[%u]", ONE_OF(s, "max", "sum", "any"), name(s, x), last);
    int between = chance(s->r, 60) ? put_one(s, "%s %s", ONE_OF(s, "sum", "max"), name(s, y))
                                   : put_one(s, "%s %s, axis=%u", ONE_OF(s, "argsort", "argmax"), name(s, x), last);
    if (between >= 0 && chance(s->r, 50)) between = put_one(s, "add %s, 1", name(s, between));
    int across = put_one(s, "%s %s, axes=[0]", ONE_OF(s, "sum", "min", "all"), name(s, x));
    if (across < 0 || between < 0) return;
    put_one(s, "%s %s, %s", ONE_OF(s, "mul", "add", "sub"), name(s, across), name(s, between));
}

// A number that the back end knows to be one, and an element that may be a NaN of any kind.
static void known_number(sketch *s) {
    int x = a_tensor(s, 0);
    if (x < 0 || !lf_is_float(at(s, x)->dtype)) return;
    int b = put_one(s, "%s %s", ONE_OF(s, "isfinite", "signbit", "isnan"), name(s, x));
    if (b >= 0 && chance(s->r, 50))
        put_one(s, "%s %s, %s", ONE_OF(s, "min", "max", "fmin", "fmax"), name(s, b), name(s, x));
    else if (b >= 0)
        put_one(s, "clamp %s, %s, %s", name(s, b), ONE_OF(s, "none", "0"), name(s, x));
}

// A gather that a reduction reads, which could be done beside it or before it.
static void picked_rows(sketch *s) {
    int x = a_tensor(s, 1), y = a_tensor(s, 1);
    if (x < 0) return;
    unsigned axis = (unsigned)below(s->r, at(s, x)->rank);
    int i = put_one(s, "argsort %s, axis=%u", name(s, x), axis);
    int g = i < 0 ? -1 : put_one(s, "gather %s, %s, axis=%u", name(s, x), name(s, i), axis);
    put_one(s, "%s %s, axis=0", ONE_OF(s, "argsort", "argmax"), name(s, y));
    if (g < 0) return;
    int m = put_one(s, "%s %s, axes=[%u], keepdim=true", ONE_OF(s, "max", "sum", "min"), name(s, g), axis);
    if (m >= 0) put_one(s, "%s %s, %s", ONE_OF(s, "sub", "le", "add"), name(s, g), name(s, m));
}

void propose_pattern(program *p, random_state *r, bool exact_ops) {
    static const struct {
        int percent;
        void (*make)(sketch *s);
    } kinds[] = {{45, beside_itself}, {25, both_ways}, {15, known_number}, {15, picked_rows}};
    sketch s = {p, r, exact_ops};
    int at_percent = (int)below(r, 100);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if ((at_percent -= kinds[k].percent) >= 0) continue;
        kinds[k].make(&s);
        return;
    }
}
