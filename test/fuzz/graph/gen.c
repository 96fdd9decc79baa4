// See graph.h. The program is grown an op at a time: a line is proposed with operands that could fit, and the parser says whether
// it is a program and of what type its results are.
#include "test/fuzz/graph/graph.h"
#include "test/fuzz/graph/propose.h"
#include "ir/build.h"
#include "parse/parse.h"

// ---- random numbers ----------------------------------------------------------------------------------------------------------

uint64_t next(random_state *r) {
    uint64_t z = (r->state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

int64_t below(random_state *r, int64_t n) { return n > 0 ? (int64_t)(next(r) % (uint64_t)n) : 0; }
bool chance(random_state *r, int percent) { return below(r, 100) < percent; }

// ---- text ----------------------------------------------------------------------------------------------------------------------

static int find_value(const program *p, const char *name, size_t n) {
    for (int i = 0; i < p->n_values; i++)
        if (strlen(p->values[i].name) == n && !strncmp(p->values[i].name, name, n)) return i;
    return -1;
}

// The name at `at`, which begins with '%'.
static size_t name_length(const char *at) {
    size_t n = 1;
    while ((at[n] >= 'a' && at[n] <= 'z') || (at[n] >= '0' && at[n] <= '9')) n++;
    return n;
}

static void need(const program *p, int v, bool *used) {
    if (v < 0) return;
    used[v] = true;
    // Operands come before their uses, so one pass downward finds all.
    for (int i = p->n_values - 1; i >= 0; i--) {
        if (!used[i] || p->values[i].line < 0) continue;
        const line *l = &p->lines[p->values[i].line];
        for (unsigned k = 0; k < l->n; k++) used[l->result[k]] = true;
        for (const char *at = l->text; (at = strchr(at, '%')); at++) {
            int operand = find_value(p, at, name_length(at));
            if (operand >= 0) used[operand] = true;
        }
    }
}

int program_outputs(const program *p, dialect how, int *out_values, int *out_into) {
    int n = 0;
    for (int i = 0; i < p->n_outputs; i++) out_values[n] = p->outputs[i], out_into[n++] = p->into[i];
    for (int i = 0; how.all && i < p->n_values; i++)
        if (p->values[i].line >= 0) out_values[n] = i, out_into[n++] = -1;
    return n;
}

static int put_param(const program *p, const value *v, dialect how, char *to) {
    if (!v->tensor) return sprintf(to, "%s: %s", v->name, lf_dtype_name(v->dtype));
    int n = sprintf(to, "%s: %s[", v->name, lf_dtype_name(v->dtype));
    for (unsigned a = 0; a < v->rank; a++) {
        bool unknown = how.symbolic && (p->seed + a) % 8 != 0;
        n += unknown ? sprintf(to + n, "%s?", a ? ", " : "")
                     : sprintf(to + n, "%s%lld", a ? ", " : "", (long long)v->shape[a]);
    }
    return n + sprintf(to + n, "]%s", v->host ? " @host" : "");
}

static int put_line(const program *p, const line *l, dialect how, char *to) {
    int n = 0;
    for (unsigned k = 0; k < l->n; k++) n += sprintf(to + n, "%s%s", k ? ", " : "  ", p->values[l->result[k]].name);
    n += sprintf(to + n, " = ");
    for (const char *at = l->text; *at;) {
        size_t length = *at == '%' ? name_length(at) : 1;
        int operand = *at == '%' ? find_value(p, at, length) : -1;
        if (operand >= 0 && p->values[operand].extent && !how.symbolic)
            n += sprintf(to + n, "%lld", (long long)p->values[operand].number);
        else
            n += sprintf(to + n, "%.*s", (int)length, at);
        at += length;
    }
    return n + sprintf(to + n, "\n");
}

char *program_text(const program *p, dialect how, bool *out_used) {
    char *text = malloc(65536);
    int outputs[MOST_OUTPUTS + MOST_VALUES], into[MOST_OUTPUTS + MOST_VALUES],
        n_outputs = program_outputs(p, how, outputs, into);
    memset(out_used, 0, MOST_VALUES * sizeof *out_used);
    for (int i = 0; i < n_outputs; i++) need(p, outputs[i], out_used), need(p, into[i], out_used);
    int n = sprintf(text, "fusion @t(");
    bool first = true;
    for (int i = 0; i < p->n_values; i++) {
        if (p->values[i].line >= 0) continue;
        if (p->values[i].extent && !how.symbolic) out_used[i] = false;
        if (!out_used[i]) continue;
        n += sprintf(text + n, "%s", first ? "" : ", ");
        n += put_param(p, &p->values[i], how, text + n);
        first = false;
    }
    n += sprintf(text + n, ") {\n");
    for (int i = 0; i < p->n_lines; i++)
        if (out_used[p->lines[i].result[0]] && p->values[p->lines[i].result[0]].line >= 0)
            n += put_line(p, &p->lines[i], how, text + n);
    n += sprintf(text + n, "  return ");
    for (int i = 0; i < n_outputs; i++) {
        n += sprintf(text + n, "%s%s", i ? ", " : "", p->values[outputs[i]].name);
        if (into[i] >= 0) n += sprintf(text + n, " into %s", p->values[into[i]].name);
    }
    sprintf(text + n, "\n}\n");
    return text;
}

void program_copy(program *to, const program *from) {
    *to = *from;
    for (int i = 0; i < to->n_values; i++) {
        value *v = &to->values[i];
        if (!v->data) continue;
        size_t bytes = lf_dtype_bytes(v->dtype);
        for (unsigned a = 0; a < v->rank; a++) bytes *= (size_t)v->shape[a];
        v->data = memcpy(malloc(bytes ? bytes : 1), from->values[i].data, bytes);
    }
}

void program_finish(program *p) {
    for (int i = 0; i < p->n_values; i++) free(p->values[i].data);
}

// ---- lines ---------------------------------------------------------------------------------------------------------------------

static bool take_type(value *v, const lf_value *from) {
    v->dtype = from->type.dtype;
    v->tensor = from->type.tensor;
    v->host = from->type.host;
    v->pending = from->where == LF_PENDING;
    v->rank = from->type.rank;
    int64_t numel = 1;
    for (unsigned a = 0; a < v->rank; a++) {
        if (!lf_const_i64(from->type.dims[a], &v->shape[a])) return false; // depends on something that only a run knows
        if (v->shape[a] && numel > MOST_NUMEL / v->shape[a]) numel = MOST_NUMEL + 1;
        if (v->shape[a] == 0)
            numel = 0;
        else if (numel <= MOST_NUMEL)
            numel *= v->shape[a];
    }
    return numel <= MOST_NUMEL;
}

// Results of the last line from the parser; false when it refuses.
static bool type_last(program *p) {
    line *l = &p->lines[p->n_lines - 1];
    bool used[MOST_VALUES];
    p->n_outputs = (int)l->n;
    for (unsigned k = 0; k < l->n; k++) p->outputs[k] = l->result[k], p->into[k] = -1;
    char *text = program_text(p, (dialect){false, false}, used);
    lf_graph **graphs;
    size_t count;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", text, strlen(text), false, &graphs, &count);
    free(text);
    if (s) {
        if (lf_status_code(s) != LF_INVALID_PROGRAM) fprintf(stderr, "%s\n", lf_status_message(s)), abort();
        lf_status_destroy(s);
        return false;
    }
    bool fits = true;
    for (unsigned k = 0; k < l->n; k++) {
        value *v = &p->values[l->result[k]];
        fits = fits && take_type(v, graphs[0]->outputs[k].value);
    }
    lf_parse_release(&lf_system_allocator, graphs, count);
    return fits;
}

int add_line(program *p, unsigned n, const char *text) {
    if (p->n_lines == MOST_LINES || strlen(text) >= sizeof p->lines[0].text) return -1;
    line *l = &p->lines[p->n_lines];
    *l = (line){.n = n};
    strcpy(l->text, text);
    for (unsigned k = 0; k < n; k++) {
        value *v = &p->values[p->n_values];
        *v = (value){.line = p->n_lines};
        snprintf(v->name, sizeof v->name, "%%v%d", p->n_values);
        l->result[k] = p->n_values++;
    }
    p->n_lines++;
    if (type_last(p)) return l->result[0];
    p->n_lines--;
    p->n_values -= (int)n;
    return -1;
}

// ---- parameters ------------------------------------------------------------------------------------------------------------------

static int64_t an_extent(random_state *r) {
    static const int64_t usual[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65};
    if (chance(r, 2)) return 0;
    return usual[below(r, sizeof usual / sizeof *usual)];
}

static lf_dtype a_dtype(random_state *r) {
    static const lf_dtype liked[] = {LF_F32, LF_F32, LF_F32, LF_F64, LF_F16, LF_BF16, LF_I32, LF_I64, LF_BOOL};
    return chance(r, 45) ? liked[below(r, sizeof liked / sizeof *liked)]
                         : (lf_dtype)(LF_BOOL + below(r, LF_C128 - LF_BOOL + 1));
}

static value *new_param(program *p, random_state *r, char letter) {
    value *v = &p->values[p->n_values];
    *v = (value){.line = -1,
                 .seed = next(r),
                 .layout = chance(r, 30)   ? LAYOUT_DENSE
                           : chance(r, 18) ? LAYOUT_REPEATED
                                           : (layout)below(r, N_LAYOUTS)};
    snprintf(v->name, sizeof v->name, "%%%c%d", letter, p->n_values);
    v->fill = chance(r, 60) ? FILL_EDGES : chance(r, 60) ? FILL_PLAIN : FILL_SMALL;
    p->n_values++;
    p->n_params++;
    return v;
}

// Shapes are made of few extents, so that they often fit each other.
static void make_params(program *p, random_state *r) {
    int64_t pool[4];
    for (int i = 0; i < 4; i++) pool[i] = an_extent(r);
    int64_t most = chance(r, 12) ? 9000 : 600; // few are large: what a program does to one block it does to more
    if (most == 9000 && chance(r, 60))
        pool[0] = (int64_t[]){100, 257, 1023, 1025, 8192, 8193}[below(r, 6)], pool[1] = 1 + below(r, 2), pool[2] = 1,
        pool[3] = 2;
    if (chance(r, 16)) pool[below(r, 4)] = 0;
    unsigned rank = chance(r, 14) ? (unsigned)below(r, LFUSER_MAX_RANK + 1) : (unsigned)(1 + below(r, 3));
    int64_t base[LFUSER_MAX_RANK], numel = 1;
    for (unsigned a = 0; a < rank; a++) {
        base[a] = pool[below(r, 4)];
        if (numel * base[a] > most) base[a] = 1 + below(r, 3);
        numel *= base[a] ? base[a] : 1;
    }
    lf_dtype main = a_dtype(r);
    for (int i = (int)(1 + below(r, 4)); i > 0; i--) {
        value *v = new_param(p, r, 'p');
        v->dtype = chance(r, 60) ? main : a_dtype(r);
        v->tensor = true;
        unsigned drop = chance(r, 30) ? (unsigned)below(r, rank + 1) : 0; // a shape that broadcasts to the base
        v->rank = rank - drop;
        for (unsigned a = 0; a < v->rank; a++) v->shape[a] = chance(r, 10) ? 1 : base[a + drop];
    }
    if (chance(r, 40)) { // indices
        value *v = new_param(p, r, 'i');
        v->dtype = chance(r, 70) ? LF_I64 : LF_I32;
        v->tensor = true;
        v->fill = FILL_INDEX;
        v->rank = chance(r, 50) ? rank : (unsigned)below(r, 2);
        for (unsigned a = 0; a < v->rank; a++) v->shape[a] = base[a];
    }
    for (int i = (int)below(r, 4); i > 0; i--) {
        value *v = new_param(p, r, 's');
        v->dtype = a_dtype(r);
        v->host = v->tensor = chance(r, 20);
    }
    for (int i = 0; i < 3; i++) { // extents: two of the shapes and a small number
        value *v = new_param(p, r, 'n');
        v->dtype = LF_I64;
        v->extent = true;
        v->number = i < 2 && rank ? base[below(r, rank)] : below(r, 5);
    }
}

// ---- outputs -----------------------------------------------------------------------------------------------------------------------

static bool is_used(const program *p, int v) {
    size_t n = strlen(p->values[v].name);
    for (int i = 0; i < p->n_lines; i++)
        for (const char *at = p->lines[i].text; (at = strchr(at, '%')); at++)
            if (name_length(at) == n && !strncmp(at, p->values[v].name, n)) return true;
    return false;
}

static void add_output(program *p, random_state *r, int v) {
    if (p->n_outputs == MOST_OUTPUTS) return;
    const value *x = &p->values[v];
    int into = -1;
    for (int i = 0; i < p->n_params && x->tensor && !x->host && chance(r, 30); i++) {
        value *q = &p->values[i];
        if (!q->tensor || q->host || q->overwritten || q->dtype != x->dtype || q->rank != x->rank ||
            memcmp(q->shape, x->shape, x->rank * sizeof *x->shape) != 0)
            continue;
        q->overwritten = true;
        if (q->layout == LAYOUT_REPEATED) q->layout = LAYOUT_GAPPED;
        into = i;
        break;
    }
    p->outputs[p->n_outputs] = v;
    p->into[p->n_outputs++] = into;
}

// Two parameters that change places.
static void exchange(program *p, int a) {
    value *x = &p->values[a];
    for (int b = a + 1; b < p->n_params && p->n_outputs + 2 <= MOST_OUTPUTS; b++) {
        value *y = &p->values[b];
        if (!x->tensor || x->host || !y->tensor || y->host || x->dtype != y->dtype || x->rank != y->rank ||
            memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) != 0)
            continue;
        for (int i = 0; i < 2; i++) {
            value *to = i ? x : y;
            to->overwritten = true;
            if (to->layout == LAYOUT_REPEATED) to->layout = LAYOUT_GAPPED;
            p->outputs[p->n_outputs] = i ? b : a;
            p->into[p->n_outputs++] = i ? a : b;
        }
        return;
    }
}

static void choose_outputs(program *p, random_state *r) {
    p->n_outputs = 0;
    if (chance(r, 4)) exchange(p, (int)below(r, p->n_params));
    for (int v = p->n_values - 1; v >= p->n_params; v--)
        if ((!is_used(p, v) || chance(r, 10)) && p->n_outputs < 8) add_output(p, r, v);
    if (chance(r, 5)) add_output(p, r, (int)below(r, p->n_params - 3));                     // a parameter
    if (chance(r, 5) && p->n_outputs) add_output(p, r, p->outputs[below(r, p->n_outputs)]); // twice
}

void program_make(program *p, uint64_t seed, bool exact_ops) {
    random_state r = {seed}; // streams of neighbouring seeds must not overlap
    r.state = next(&r) ^ seed << 32;
    *p = (program){.seed = seed};
    make_params(p, &r);
    int lines = (int)(chance(&r, 30)   ? 1 + below(&r, 3)
                      : chance(&r, 80) ? 3 + below(&r, 5)
                      : chance(&r, 85) ? 8 + below(&r, 8)
                                       : 16 + below(&r, 25));
    for (int tries = 0; p->n_lines < lines && tries < 40 * lines; tries++)
        (chance(&r, 10) ? propose_pattern : propose)(p, &r, exact_ops);
    choose_outputs(p, &r);
}
