// The builder: names, parameters, sharing and folding of extents, aliases, placement, rewinding after errors, depth, want of
// memory, and the verifier's own eyes.
#include "ir/build.h"
#include "parse/parse.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- helpers ----------------------------------------------------------------------------------------------------------------

typedef struct counting {
    size_t live, calls, fail_at; // fail_at: number of the call from which all fail, 0: none
    bool once;                   // only that call fails
} counting;

static bool fails(counting *c) {
    size_t call = ++c->calls;
    return c->fail_at && (c->once ? call == c->fail_at : call >= c->fail_at);
}
static void *count_alloc(void *self, size_t size) {
    counting *c = self;
    void *block = fails(c) ? NULL : malloc(size);
    c->live += block != NULL;
    return block;
}
static void *count_resize(void *self, void *block, size_t size) {
    counting *c = self;
    void *grown = fails(c) ? NULL : realloc(block, size);
    c->live += grown && !block;
    return grown;
}
static void count_release(void *self, void *block) {
    counting *c = self;
    c->live -= block != NULL;
    free(block);
}

typedef struct program {
    lf_graph **graphs;
    size_t n;
    lf_graph *g;
} program;

static program parsed_with(const char *text, bool allow_sync) {
    program p;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", text, strlen(text), allow_sync, &p.graphs, &p.n);
    ck_assert_msg(!s, "%s\n%s", text, lf_status_message(s));
    p.g = p.graphs[0];
    s = lf_graph_verify(p.g);
    ck_assert_msg(!s, "%s\n%s", text, lf_status_message(s));
    return p;
}
static program parsed(const char *text) { return parsed_with(text, false); }
static void release(program *p) { lf_parse_release(&lf_system_allocator, p->graphs, p->n); }

static void refused(const char *text, const char *words) {
    lf_graph **graphs;
    size_t n;
    lf_status s = lf_parse(&lf_system_allocator, "t.lf", text, strlen(text), false, &graphs, &n);
    ck_assert_msg(s != NULL, "taken: %s", text);
    ck_assert_msg(strstr(lf_status_message(s), words) != NULL, "%s\nsays %s\nwanted %s", text, lf_status_message(s), words);
    lf_status_destroy(s);
}

static lf_value *named(const program *p, const char *name) {
    lf_value *v = lf_graph_lookup(p->g, name, strlen(name));
    ck_assert_msg(v != NULL, "there is no %%%s", name);
    return v;
}
static lf_value *meaning(const program *p, const char *name) { return lf_resolve(named(p, name)); }

static size_t count_ops(const lf_graph *g, lf_opcode code) {
    size_t n = 0;
    for (const lf_op *op = g->first; op; op = op->next) n += op->code == code && !op->alias;
    return n;
}

static const lf_op *check_that_says(const lf_graph *g, const char *words) {
    for (const lf_op *op = g->first; op; op = op->next)
        if (op->code == LF_OP_CHECK && strstr(op->message, words)) return op;
    return NULL;
}

static lf_operand of(lf_value *v) { return (lf_operand){.kind = LF_OPERAND_VALUE, .value = v}; }
static lf_operand number(int64_t n) { return (lf_operand){.kind = LF_OPERAND_LITERAL, .literal = lf_literal_int(n)}; }

static lf_value *add_op(lf_graph *g, lf_opcode code, size_t n, const lf_operand *args, const char *name) {
    lf_op_request q = {.code = code, .args = args, .n_args = n, .names = name ? &name : NULL, .n_names = 1};
    lf_value *results;
    size_t n_results;
    lf_status s = lf_graph_add(g, &q, &results, &n_results);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    return results;
}

static lf_graph *graph_with(const lf_param_spec *params, size_t n) {
    lf_graph *g;
    ck_assert(!lf_graph_create(&lf_system_allocator, "f", 1, &g));
    lf_status s = lf_graph_set_params(g, params, n);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    return g;
}

// ---- names and parameters -------------------------------------------------------------------------------------------------------

START_TEST(parameters) {
    program p =
        parsed("fusion @f(%x: f32[?, 4], %y: f32[%h, %n], %z: f32[%h], %n: i64, %g: f64[] @host) {\n  return %x\n}\n");
    lf_graph *g = p.g;
    ck_assert_uint_eq(g->n_params, 5);
    const lf_type *x = &g->params[0]->type, *y = &g->params[1]->type, *z = &g->params[2]->type;
    int64_t four;
    ck_assert_int_eq(x->dims[0]->def->code, LF_OP_EXTENT);
    ck_assert(lf_const_i64(x->dims[1], &four) && four == 4);
    ck_assert_int_eq(x->named, 0);
    // The first use of a dim defines it; a dim that names a parameter is that parameter.
    ck_assert_ptr_eq(named(&p, "h"), y->dims[0]);
    ck_assert_ptr_eq(y->dims[0], z->dims[0]);
    ck_assert_ptr_eq(y->dims[1], g->params[3]);
    ck_assert_int_eq(y->named, 3);
    ck_assert(g->params[4]->type.host && g->params[4]->where == LF_ON_HOST && g->params[0]->where == LF_ON_DEVICE);
    ck_assert_uint_eq(count_ops(g, LF_OP_CHECK), 3);
    ck_assert(check_that_says(g, "axis 1 of %x is fixed at {1}, the argument has extent {0}"));
    ck_assert(check_that_says(g, "%h is {0} (axis 0 of %y), but axis 0 of %z has extent {1}"));
    ck_assert(check_that_says(g, "%n is {0}, but axis 1 of %y has extent {1}"));
    release(&p);
    refused("fusion @f(%x: f32[%s], %s: i32) {\n return %x\n}\n", "the dim %s names a parameter of type i32");
    refused("fusion @f(%x: f32[%x]) {\n return %x\n}\n", "the dim %x names a parameter of type f32");
    refused("fusion @f(%x: f32[%h]) {\n %h = neg %x\n return %x\n}\n", "defined twice");
}
END_TEST

START_TEST(names_of_values) {
    lf_graph *g = graph_with(NULL, 0);
    lf_operand args[2] = {number(1), number(2)};
    const char *bad[] = {"", "a b", "%a", "a{0}", "\xc3\xa9"}, *good = "a.b_9", *two[] = {"a", "a"};
    lf_op_request q = {.code = LF_OP_ADD, .args = args, .n_args = 2, .names = &good, .n_names = 1};
    for (size_t i = 0; i < 5; i++) {
        q.names = &bad[i];
        lf_status s = lf_graph_add(g, &q, NULL, NULL);
        ck_assert_msg(s && strstr(lf_status_message(s), "is no name"), "'%s' %s", bad[i], lf_status_message(s));
        lf_status_destroy(s);
    }
    q.names = &good;
    ck_assert(!lf_graph_add(g, &q, NULL, NULL));
    lf_status s = lf_graph_add(g, &q, NULL, NULL);
    ck_assert_str_eq(lf_status_message(s), "%a.b_9 is defined twice");
    lf_status_destroy(s);
    q.names = two;
    q.n_names = 2;
    s = lf_graph_add(g, &q, NULL, NULL);
    ck_assert_str_eq(lf_status_message(s), "add: gives 1 result, found 2 names");
    lf_status_destroy(s);
    ck_assert(!lf_graph_verify(g));
    lf_graph_destroy(g);
}
END_TEST

START_TEST(misuse) {
    lf_param_spec x = {.name = "x", .type = {.dtype = LF_F32, .tensor = true, .rank = 9}};
    lf_graph *g, *other = graph_with(NULL, 0);
    ck_assert(!lf_graph_create(&lf_system_allocator, "f", 1, &g));
    lf_status s = lf_graph_set_params(g, &x, 1);
    ck_assert_str_eq(lf_status_message(s), "x has rank 9, at most 8 is supported");
    lf_status_destroy(s);
    lf_graph_destroy(g);
    g = graph_with(NULL, 0);
    s = lf_graph_set_params(g, NULL, 0);
    ck_assert_int_eq(lf_status_code(s), LF_INVALID_ARGUMENT);
    lf_status_destroy(s);
    // A value of another graph; an op that nobody writes; too few operands; an attribute of another op, or twice.
    lf_operand one = number(1), pair[2] = {number(1), number(1)};
    lf_operand foreign[2] = {of(add_op(other, LF_OP_ADD, 2, pair, NULL)), one};
    lf_attr attrs[2] = {{.id = LF_ATTR_AXIS, .operand = one}, {.id = LF_ATTR_AXIS, .operand = one}};
    const struct {
        lf_op_request q;
        const char *words;
    } bad[] = {
        {{.code = LF_OP_ADD, .args = foreign, .n_args = 2}, "a value of another graph"},
        {{.code = LF_OP_EXTENT, .args = &one, .n_args = 1}, "there is no op to write"},
        {{.code = LF_OP_COUNT + 7}, "there is no op to write"},
        {{.code = LF_OP_ADD, .args = &one, .n_args = 1}, "add: takes 2 operands, found 1"},
        {{.code = LF_OP_ADD, .args = pair, .n_args = 2, .attrs = attrs, .n_attrs = 1}, "add: there is no attribute axis="},
        {{.code = LF_OP_SORT, .args = &one, .n_args = 1, .attrs = attrs, .n_attrs = 2}, "sort: axis= is given twice"},
        {{.code = LF_OP_CAT}, "cat: takes at least 1 operand, found 0|cat: needs at least one operand"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s = lf_graph_add(g, &bad[i].q, NULL, NULL);
        const char *bar = strchr(bad[i].words, '|');
        size_t n = bar ? (size_t)(bar - bad[i].words) : strlen(bad[i].words);
        bool said = s && (!strncmp(lf_status_message(s), bad[i].words, n) ||
                          strstr(lf_status_message(s), bar ? bar + 1 : bad[i].words));
        ck_assert_msg(said, "%zu: %s", i, lf_status_message(s));
        lf_status_destroy(s);
    }
    ck_assert(!lf_graph_return(g, NULL, 0, NULL, 0));
    s = lf_graph_add(g, &(lf_op_request){.code = LF_OP_ADD, .args = pair, .n_args = 2}, NULL, NULL);
    ck_assert_str_eq(lf_status_message(s), "@f has its return already");
    lf_status_destroy(s);
    lf_graph_destroy(g);
    lf_graph_destroy(other);
    lf_graph_destroy(NULL);
}
END_TEST

// Lists nested without end are refused, not followed.
START_TEST(nesting) {
    enum { DEPTH = 100000 };
    lf_operand *lists = calloc(DEPTH, sizeof *lists);
    for (int i = 0; i < DEPTH; i++)
        lists[i] = (lf_operand){.kind = LF_OPERAND_LIST, .items = i ? &lists[i - 1] : NULL, .n_items = i > 0};
    lf_graph *g = graph_with(NULL, 0);
    lf_status s =
        lf_graph_add(g, &(lf_op_request){.code = LF_OP_TENSOR, .args = &lists[DEPTH - 1], .n_args = 1}, NULL, NULL);
    ck_assert_str_eq(lf_status_message(s), "more than 32 nested lists");
    lf_status_destroy(s);
    lf_graph_destroy(g);
    free(lists);
}
END_TEST

// ---- extents ----------------------------------------------------------------------------------------------------------------------

START_TEST(folding) {
    lf_graph *g = graph_with(NULL, 0);
    static const struct {
        lf_opcode code;
        int64_t a, b, want;
    } cases[] = {{LF_OP_ADD, INT64_MAX, 1, INT64_MIN},
                 {LF_OP_MUL, INT64_MAX, 2, -2},
                 {LF_OP_SATMUL, INT64_MAX, 2, INT64_MAX},
                 {LF_OP_FLOORDIV, -7, 2, -4},
                 {LF_OP_FLOORDIV, 7, 0, -1},
                 {LF_OP_CEILDIV, -7, 2, -3},
                 {LF_OP_CEILDIV, 7, 2, 4},
                 {LF_OP_CEILDIV, 7, 0, -1},
                 {LF_OP_TRUNCDIV, -7, 2, -3},
                 {LF_OP_TRUNCDIV, INT64_MIN, -1, INT64_MIN},
                 {LF_OP_FMOD, INT64_MIN, -1, 0},
                 {LF_OP_MOD, -7, 2, 1},
                 {LF_OP_MOD, 7, -2, -1},
                 {LF_OP_MOD, 7, 0, 7},
                 {LF_OP_FMOD, -7, 2, -1},
                 {LF_OP_POW, 3, 4, 81},
                 {LF_OP_POW, -1, -3, -1},
                 {LF_OP_POW, 0, -1, 0},
                 {LF_OP_POW, 0, 0, 1},
                 {LF_OP_POW, 10000, 10000, 0},
                 {LF_OP_GCD, INT64_MIN, 0, INT64_MIN},
                 {LF_OP_GCD, -12, 18, 6},
                 {LF_OP_SHL, 1, 64, 0},
                 {LF_OP_SHL, 1, -1, 0},
                 {LF_OP_SHR, -8, 100, -1},
                 {LF_OP_LSHR, -1, 63, 1},
                 {LF_OP_LSHR, -1, 64, 0},
                 {LF_OP_MIN, -1, 2, -1},
                 {LF_OP_MAX, -1, 2, 2},
                 {LF_OP_XOR, 6, 3, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t found = 42;
        lf_value *v = lf_scalar_op(g, cases[i].code, LF_I64, lf_const_int(g, cases[i].a), lf_const_int(g, cases[i].b), NULL);
        ck_assert_msg(lf_const_i64(v, &found) && found == cases[i].want, "%zu: %lld", i, (long long)found);
    }
    lf_graph_destroy(g);
}
END_TEST

START_TEST(identities) {
    lf_param_spec params[] = {
        {.name = "n", .type = {.dtype = LF_I64}},
        {.name = "m", .type = {.dtype = LF_I64}},
        {.name = "x",
         .type = {
             .dtype = LF_F32, .tensor = true, .rank = 2, .dims = {{.kind = LF_DIM_UNKNOWN}, {.kind = LF_DIM_UNKNOWN}}}}};
    lf_graph *g = graph_with(params, 3);
    lf_value *n = g->params[0], *m = g->params[1], *e = g->params[2]->type.dims[0], *f = g->params[2]->type.dims[1];
    lf_value *zero = lf_const_int(g, 0), *one = lf_const_int(g, 1), *yes = lf_const(g, LF_BOOL, (lf_scalar){.word = {1}});
#define INT(code, a, b) lf_scalar_op(g, LF_OP_##code, LF_I64, a, b, NULL)
#define TEST(code, a, b) lf_scalar_op(g, LF_OP_##code, LF_BOOL, a, b, NULL)
    ck_assert_ptr_eq(INT(ADD, n, zero), n);
    ck_assert_ptr_eq(INT(ADD, zero, n), n);
    ck_assert_ptr_eq(INT(MUL, one, n), n);
    ck_assert_ptr_eq(INT(MUL, n, zero), zero);
    ck_assert_ptr_eq(INT(SUB, n, n), zero);
    ck_assert_ptr_eq(INT(FLOORDIV, n, one), n);
    ck_assert_ptr_eq(INT(MAX, e, zero), e);
    ck_assert_ptr_ne(INT(MAX, n, zero), n);
    ck_assert_ptr_eq(INT(MIN, n, n), n);
    ck_assert_ptr_eq(TEST(EQ, n, n), yes);
    ck_assert_ptr_eq(TEST(GE, e, zero), yes);
    ck_assert_ptr_eq(lf_scalar_op(g, LF_OP_SELECT, LF_I64, TEST(EQ, n, m), e, e), e);
    ck_assert_ptr_eq(lf_scalar_op(g, LF_OP_SELECT, LF_I64, yes, n, m), n);
    // Equal ops are one value, whatever the order of commuting operands.
    ck_assert_ptr_eq(INT(ADD, n, m), INT(ADD, m, n));
    ck_assert_ptr_ne(INT(SUB, n, m), INT(SUB, m, n));
    ck_assert_ptr_eq(TEST(EQ, n, m), TEST(EQ, m, n));
    ck_assert_ptr_eq(lf_extent_mul(g, lf_extent_mul(g, e, lf_const_int(g, 3)), lf_const_int(g, 4)),
                     lf_extent_mul(g, lf_const_int(g, 12), e));
    ck_assert_ptr_eq(INT(FLOORDIV, lf_extent_mul(g, e, lf_const_int(g, 8)), lf_const_int(g, 8)), e);
    // The number of elements does not depend on the order of the axes.
    lf_type t = g->params[2]->type, u = t;
    u.dims[0] = f;
    u.dims[1] = e;
    ck_assert_ptr_eq(lf_numel_of(g, &t), lf_numel_of(g, &u));
    ck_assert_ptr_eq(lf_slot_value(g, 3), lf_slot_value(g, 3));
    ck_assert_ptr_ne(lf_slot_value(g, 3), lf_slot_value(g, 4));
    ck_assert(!lf_graph_verify(g));
    lf_graph_destroy(g);
}
END_TEST

START_TEST(broadcasting) {
    program p = parsed("fusion @f(%a: f32[%h, %w], %b: f32[%h, %w], %c: f32[?, ?], %d: f32[%h, 1]) {\n  %s = add %a, %b\n  "
                       "%t = add %s, %d\n"
                       "  %u = add %t, 1\n  return %u\n}\n");
    // Equal extents need no check; a fixed 1 is stretched by one expand; scalars and literals by none.
    ck_assert_uint_eq(count_ops(p.g, LF_OP_EXPAND), 1);
    ck_assert_uint_eq(count_ops(p.g, LF_OP_CHECK), 2 + 2);
    ck_assert_ptr_eq(meaning(&p, "u")->type.dims[0], named(&p, "h"));
    const lf_op *add = meaning(&p, "t")->def;
    ck_assert(add->operands[1]->def->code == LF_OP_EXPAND && add->operands[1]->def->view.broadcasts);
    release(&p);
    p = parsed("fusion @f(%a: f32[%h], %c: f32[?], %d: f32[?], %e: f32[4]) {\n  %s = add %a, %c\n  %t = add %c, %d\n  %u = "
               "add %c, %e\n"
               "  return %s, %t, %u\n}\n");
    // A named extent wins, two unknown ones are chosen from, a fixed one wins.
    ck_assert_ptr_eq(meaning(&p, "s")->type.dims[0], named(&p, "h"));
    ck_assert_int_eq(meaning(&p, "t")->type.dims[0]->def->code, LF_OP_SELECT);
    ck_assert(lf_is_const(meaning(&p, "u")->type.dims[0]));
    ck_assert(check_that_says(
        p.g,
        "add: %a: f32[%h] and %c: f32[?] do not broadcast: axis 0 has extents {0} and {1}; an extent that a named dim"));
    ck_assert(check_that_says(p.g, "add: %c: f32[?] and %d: f32[?] do not broadcast: axis 0 has extents {0} and {1}"));
    release(&p);
}
END_TEST

START_TEST(shared_extents) {
    program p = parsed(
        "fusion @f(%a: f32[?, ?], %n: i64) {\n  %h = size %a, 0\n  %h2 = size %a, 0\n  %w = size %a, 1\n  %e = mul %h, %w\n"
        "  %e2 = mul %w, %h\n  %k = numel %a\n  %z = add %n, 0\n  %c = add 2, 3\n  %f = full [%h, %w], 0.0\n  %s = add %a, "
        "%f\n"
        "  %r = reshape %a, [%w, %h]\n  %q = reshape %r, [-1, %w]\n  return %e, %e2, %k, %z, %c, %s, %q, %h2\n}\n");
    ck_assert(named(&p, "h")->def->alias && meaning(&p, "h") == p.g->params[0]->type.dims[0]);
    ck_assert_ptr_eq(meaning(&p, "h"), meaning(&p, "h2"));
    ck_assert_ptr_eq(meaning(&p, "e"), meaning(&p, "e2"));
    // The first op of a meaning is the written one, with its name; later ones are aliases of it.
    ck_assert_ptr_eq(named(&p, "e"), meaning(&p, "e"));
    ck_assert(!named(&p, "e")->def->implicit && named(&p, "e2")->def->alias);
    ck_assert_ptr_eq(meaning(&p, "z"), p.g->params[1]);
    ck_assert(lf_is_const(meaning(&p, "c")));
    // A tensor made of another's extents has its shape: nothing to check, nothing to expand.
    ck_assert_uint_eq(count_ops(p.g, LF_OP_EXPAND), 0);
    ck_assert_ptr_eq(meaning(&p, "q")->type.dims[0], meaning(&p, "h"));
    ck_assert(!check_that_says(p.g, "broadcast") && !check_that_says(p.g, "negative"));
    release(&p);
}
END_TEST

// A check stands once; what it shows is known afterwards.
START_TEST(checks) {
    program p = parsed("fusion @f(%n: i64, %x: f32[?]) {\n  %a = full [%n], 0\n  %b = full [%n], 1\n  %c = add %a, %b\n  %m "
                       "= max %x\n  %i = argmax %x\n"
                       "  return %c, %m, %i\n}\n");
    ck_assert_uint_eq(count_ops(p.g, LF_OP_CHECK), 2);
    const lf_op *negative = check_that_says(p.g, "full: negative size: the extent %n is {0}");
    ck_assert(negative && negative->n_operands == 2 && negative->operands[1] == p.g->params[0] && negative->implicit);
    ck_assert_uint_eq(negative->place.line, 2);
    ck_assert(check_that_says(
        p.g, "max: over no element: %x: f32[?] has {0} elements along the reduced axes, for each of {1} results"));
    release(&p);
}
END_TEST

// ---- meaning -------------------------------------------------------------------------------------------------------------------------

START_TEST(where_values_live) {
    program p = parsed("fusion @f(%x: f32[?], %t: f32[], %g: f32[] @host, %n: i64) {\n  %a = size %x, 0\n  %b = mul %a, "
                       "%n\n  %c = item %t\n"
                       "  %d = add %c, 1\n  %e = add %d, %b\n  %f = item %g\n  %h = mul %g, %f\n  %i = add %g, %t\n  %j = "
                       "add %g, %c\n  %k = scalar_tensor %n\n"
                       "  %l = item %k\n  %m = scalar_tensor %c\n  %o = item %m\n  %q = add %x, %c\n  return %e, %j, %h, "
                       "%i, %o, %q, %l\n}\n");
    static const struct {
        const char *name;
        lf_place_class where;
        bool host_tensor;
    } want[] = {{"a", LF_ON_HOST, false},   {"b", LF_ON_HOST, false},   {"c", LF_PENDING, false}, {"d", LF_PENDING, false},
                {"e", LF_PENDING, false},   {"f", LF_ON_HOST, false},   {"h", LF_ON_HOST, true},  {"i", LF_ON_DEVICE, false},
                {"j", LF_ON_DEVICE, false}, {"k", LF_ON_DEVICE, false}, {"l", LF_ON_HOST, false}, {"m", LF_ON_DEVICE, false},
                {"o", LF_PENDING, false},   {"q", LF_ON_DEVICE, false}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const lf_value *v = named(&p, want[i].name);
        ck_assert_msg(v->where == want[i].where && meaning(&p, want[i].name)->where == v->where, "%s lives in %d",
                      want[i].name, v->where);
        ck_assert_msg(v->type.host == want[i].host_tensor, "%s", want[i].name);
    }
    // item (scalar_tensor %s) is %s.
    ck_assert_ptr_eq(meaning(&p, "l"), p.g->params[3]);
    ck_assert_ptr_eq(meaning(&p, "o"), meaning(&p, "c"));
    release(&p);
}
END_TEST

START_TEST(pending_scalars) {
    static const char head[] = "fusion @f(%x: f32[8], %t: i64[]) {\n  %s = item %t\n  %k = add %s, 3\n";
    static const char *const uses[][2] = {
        {"%r = full [%k], 0", "full: the extent may not be the pending scalar %k: it comes from `item %t` (%s)"},
        {"%r = iota %s, 0, 1", "iota: the extent may not be the pending scalar %s: it comes from `item %t`"},
        {"%r, %i = topk %x, %s", "topk: k may not be the pending scalar %s"},
        {"%r = slice %x, [0], [%k], none", "slice: the end may not be the pending scalar %k"},
        {"%r = slice %x, [%s], [7], none", "slice: the start may not be the pending scalar %s"},
        {"%r = reshape %x, [%s, -1]", "reshape: the extent may not be the pending scalar %s"},
        {"%r = pad %x, [%s], [0], 0", "pad: the padding may not be the pending scalar %s"},
        {"%r = repeat %x, [%s]", "repeat: the count may not be the pending scalar %s"},
        {"%r = gt %s, 1\n  assert %r, \"m\"", "assert: the condition may not be the pending scalar %r"}};
    char text[512];
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        snprintf(text, sizeof text, "%s  %s\n  return %%r\n}\n", head, uses[i][0]);
        refused(text, uses[i][1]);
        program p = parsed_with(text, true);
        release(&p);
    }
    static const char *const fine[] = {"%r = slice %x, [%s], [%k], none",
                                       "%r = slice %x, [%s], [%k], [2]",
                                       "%r = index %x, %s, axis=0",
                                       "%r = roll %x, [%s], axes=0",
                                       "%r = full [2], %s",
                                       "%r = pad %x, [1], [1], %s",
                                       "%r = uniform [2], 0, 1, %s, %k",
                                       "%r = add %x, %s"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        snprintf(text, sizeof text, "%s  %s\n  return %%r\n}\n", head, fine[i]);
        program p = parsed(text);
        if (i < 2) {
            int64_t n;
            ck_assert(lf_const_i64(named(&p, "r")->type.dims[0], &n) && n == (i ? 2 : 3));
            ck_assert_int_eq(named(&p, "r")->def->view.start[0]->where, LF_PENDING);
        }
        release(&p);
    }
    refused("fusion @f(%x: f32[8], %t: i64[]) {\n  %s = item %t\n  %k = add %s, 9\n  %r = slice %x, [%s], [%k], none\n  "
            "return %r\n}\n",
            "slice: the window of 9 from %s does not fit axis 0 of %x: f32[8], which has extent 8");
}
END_TEST

START_TEST(composites) {
    program p = parsed("fusion @f(%x: f16[?, ?], %m: bool[4]) {\n  %a = softmax %x, axis=1\n  %b = sum %x, axes=0\n  %v, %u "
                       "= var_mean %x\n  %c = sum %m\n  return %a, %b, %v, %u, %c\n}\n");
    const char *names[] = {"a", "b", "v", "u"};
    for (size_t i = 0; i < 4; i++) {
        // Wholly in f32, one rounding at the end; results are other names of the last implicit ops.
        const lf_value *v = named(&p, names[i]);
        ck_assert(v->def->alias && !v->def->implicit);
        ck_assert_int_eq(meaning(&p, names[i])->def->code, LF_OP_CAST);
        ck_assert_int_eq(meaning(&p, names[i])->def->compute, LF_F32);
    }
    for (const lf_op *op = p.g->first; op; op = op->next) {
        if (op->code == LF_OP_SUM && !op->alias) ck_assert(op->compute == LF_F32 || op->compute == LF_I64);
        if (op->code == LF_OP_EXP) ck_assert_int_eq(op->compute, LF_F32);
    }
    // x is converted once for all.
    size_t casts = 0;
    for (const lf_op *op = p.g->first; op; op = op->next)
        casts += op->code == LF_OP_CAST && !op->alias && op->operands[0] == p.g->params[0];
    ck_assert_uint_eq(casts, 1);
    // A sum that needs no rounding at the end is the written op itself.
    ck_assert(!named(&p, "c")->def->alias && named(&p, "c")->def->code == LF_OP_SUM);
    release(&p);
}
END_TEST

START_TEST(outputs) {
    program p = parsed("fusion @f(%x: f32[?], %y: f32[?], %n: i64) -> (f32[?], i64, f64, i64) {\n  %a = neg %x\n  %b = size "
                       "%x, 0\n  return %a into %y, %b, 2.5, %n\n}\n");
    const lf_output *o = p.g->outputs;
    ck_assert_uint_eq(p.g->n_outputs, 4);
    ck_assert(o[0].into == p.g->params[1] && o[0].value == named(&p, "a") && !strcmp(o[0].name, "a"));
    ck_assert(o[1].value == p.g->params[0]->type.dims[0] && o[1].written == named(&p, "b") && !strcmp(o[1].name, "b"));
    ck_assert(lf_is_const(o[2].value) && !o[2].name && o[2].value->type.dtype == LF_F64 &&
              o[2].value->def->constant.f64 == 2.5);
    ck_assert(check_that_says(p.g, "into %y: axis 0 of %a: f32[?] has extent {0}, that of %y has {1}"));
    ck_assert(check_that_says(p.g, "into %y: its axis 0 of extent {0} has stride 0"));
    release(&p);
    refused("fusion @f(%x: f32[4], %y: f32[4]) {\n  return %x into %y, %x into %y\n}\n", "into %y");
    refused("fusion @f(%x: f32[4], %y: f32) {\n  return %x into %y\n}\n", "it is a scalar parameter");
    refused("fusion @f(%x: f32[4], %y: f16[4]) {\n  return %x into %y\n}\n", "into %y: %x: f32[4] does not fit into f16[4]");
    refused("fusion @f(%x: f32[4], %y: f32[5]) {\n  return %x into %y\n}\n",
            "into %y: axis 0 of %x: f32[4] has extent 4, that of %y has 5");
    refused("fusion @f(%x: f32[4]) -> (f32[3]) {\n  return %x\n}\n", "output 0: axis 0 has extent 4, declared is 3");
    refused("fusion @f(%x: f32[4]) -> (f64[4]) {\n  return %x\n}\n",
            "output 0 is f32[4], declared as a tensor of rank 1 of f64");
    refused("fusion @f(%x: f32[4]) {\n  %y = neg %x : f32[?, ?]\n  return %y\n}\n",
            "%y is f32[4], declared as a tensor of rank 2 of f32");
}
END_TEST

// After an error the graph is as it was: no stray checks, and the next op is taken.
START_TEST(rewinding) {
    lf_param_spec params[] = {
        {.name = "n", .type = {.dtype = LF_I64}},
        {.name = "x", .type = {.dtype = LF_F32, .tensor = true, .rank = 1, .dims = {{.kind = LF_DIM_UNKNOWN}}}}};
    lf_graph *g = graph_with(params, 2);
    lf_op *last = g->last;
    uint32_t n_values = g->n_values;
    lf_operand items[2] = {of(g->params[0]), number(-3)};
    lf_operand args[2] = {{.kind = LF_OPERAND_LIST, .items = items, .n_items = 2}, number(0)};
    const char *name = "r";
    lf_op_request q = {.code = LF_OP_FULL, .args = args, .n_args = 2, .names = &name, .n_names = 1};
    for (int i = 0; i < 3; i++) {
        lf_status s = lf_graph_add(g, &q, NULL, NULL);
        ck_assert_str_eq(lf_status_message(s), "full: negative size: the extent -3 is -3");
        lf_status_destroy(s);
        ck_assert(g->last == last && g->n_values == n_values && !last->next && !lf_graph_lookup(g, "r", 1));
    }
    items[1] = number(3);
    ck_assert(!lf_graph_add(g, &q, NULL, NULL));
    ck_assert(check_that_says(g, "the extent %n is {0}"));
    ck_assert(!lf_graph_verify(g));
    lf_graph_destroy(g);
}
END_TEST

// ---- size, memory, invariants -----------------------------------------------------------------------------------------------------------

START_TEST(long_chain) {
    lf_param_spec params[] = {
        {.name = "x", .type = {.dtype = LF_F32, .tensor = true, .rank = 1, .dims = {{.kind = LF_DIM_UNKNOWN}}}},
        {.name = "s", .type = {.dtype = LF_I64}},
        {.name = "t", .type = {.dtype = LF_F32}}};
    lf_graph *g = graph_with(params, 3);
    for (unsigned k = 0; k < 3; k++) {
        lf_value *v = g->params[k];
        for (int i = 0; i < 100000; i++) {
            lf_operand args[2] = {of(v), number(i % 7 + 1)};
            v = add_op(g, i % 2 ? LF_OP_ADD : LF_OP_MUL, 2, args, NULL);
        }
    }
    ck_assert(!lf_graph_verify(g));
    char *text;
    ck_assert(!lf_graph_print(g, LF_PRINT_FULL, &text));
    lf_free(&lf_system_allocator, text);
    lf_graph_destroy(g);
}
END_TEST

static const char scenario[] =
    "fusion @f(%x: f16[?, %w], %b: f32[%w], %l: i64[?], %g: f32[] @host, %n: i64, %t: i64[]) {\n"
    "  %r = reshape %x, [%n, -1]\n  %a = add %x, %b\n  %h = mul %g, 2.5\n  %q = add %a, %h\n  %sm = softmax %q, axis=-1\n"
    "  %ln = layer_norm %x, %b, none, 1e-5\n  %v, %m = var_mean %a, axes=[0]\n  %s = slice %a, [%n, 0], none, [2, 1]\n  %i "
    "= item %t\n"
    "  %e = add %i, 2\n  %win = slice %l, [%i], [%e], none\n  %p = pad %a, [1, %n], [0, 0], 0\n  %c = cat %a, %x, axis=0\n  "
    "%k, %ki = topk %a, 2\n"
    "  %ce = cross_entropy %a, %l\n  %d, %dm = dropout %a, 0.5, %n, 0\n  %mm = linear %a, %a, none\n  %ten = tensor [[1, "
    "2], [3, 4]], dtype=f32\n"
    "  %ar = argsort %b\n  %cs = cumsum %x, axis=0\n  %ok = gt %n, 0\n  assert %ok, \"n must be positive\"\n"
    "  return %r, %sm, %ln, %v, %m, %s, %win, %p, %c, %k, %ce, %d, %mm, %ten, %ar, %cs, %h, %b into %b\n}\n";

// Every request for memory fails in turn: out of memory is reported, and nothing leaks.
START_TEST(want_of_memory) {
    counting c = {.once = _i};
    lf_allocator a = {&c, count_alloc, count_resize, count_release, true};
    lf_graph **graphs;
    size_t n;
    for (c.fail_at = 1;; c.fail_at++) {
        c.calls = 0;
        lf_status s = lf_parse(&a, "t.lf", scenario, strlen(scenario), false, &graphs, &n);
        if (!s) break;
        ck_assert_msg(lf_status_code(s) == LF_OUT_OF_MEMORY, "at %zu: %s", c.fail_at, lf_status_message(s));
        lf_status_destroy(s);
        ck_assert_msg(c.live == 0, "%zu blocks are lost when allocation %zu fails", c.live, c.fail_at);
    }
    lf_status s = lf_graph_verify(graphs[0]);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    lf_parse_release(&a, graphs, n);
    ck_assert_uint_eq(c.live, 0);
    ck_assert_uint_gt(c.fail_at, 1000);
}
END_TEST

static void broken(lf_graph *g, const char *words) {
    lf_status s = lf_graph_verify(g);
    ck_assert_msg(s && lf_status_code(s) == LF_INTERNAL && strstr(lf_status_message(s), words), "wanted %s, found %s", words,
                  lf_status_message(s));
    lf_status_destroy(s);
}

START_TEST(verifier) {
    program p = parsed("fusion @f(%x: f32[4], %y: f32[4], %z: f64[5], %i: i64) {\n  %a = add %x, %y\n  %s = sum %a, "
                       "axes=0\n  %r = reshape %x, [2, 2]\n"
                       "  %b = neg %a\n  return %b, %s, %r\n}\n");
    lf_op *add = named(&p, "a")->def, *neg = named(&p, "b")->def, *sum = named(&p, "s")->def;
    lf_value *kept = add->operands[0];
    add->operands[0] = named(&p, "z");
    broken(p.g, "an operand has another shape than the result");
    add->operands[0] = named(&p, "i");
    broken(p.g, "an operand has another dtype");
    add->operands[0] = named(&p, "b");
    broken(p.g, "not defined before it");
    add->operands[0] = NULL;
    broken(p.g, "an operand is not resolved");
    add->operands[0] = kept;
    sum->axes = 0;
    broken(p.g, "a reduction has no axes");
    sum->axes = 1;
    neg->results[0].type.dtype = LF_NO_DTYPE;
    broken(p.g, "a result has no dtype");
    neg->results[0].type.dtype = LF_F32;
    neg->results[0].id += 5;
    broken(p.g, "not numbered in order");
    neg->results[0].id -= 5;
    kept = neg->results[0].type.dims[0];
    neg->results[0].type.dims[0] = named(&p, "x");
    broken(p.g, "an extent is no resolved i64 host scalar");
    neg->results[0].type.dims[0] = kept;
    neg->prev = NULL;
    broken(p.g, "the list of ops is broken");
    neg->prev = NULL;
    release(&p);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ir");
    TCase *t = tcase_create("ir");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, parameters);
    tcase_add_test(t, names_of_values);
    tcase_add_test(t, misuse);
    tcase_add_test(t, nesting);
    tcase_add_test(t, folding);
    tcase_add_test(t, identities);
    tcase_add_test(t, broadcasting);
    tcase_add_test(t, shared_extents);
    tcase_add_test(t, checks);
    tcase_add_test(t, where_values_live);
    tcase_add_test(t, pending_scalars);
    tcase_add_test(t, composites);
    tcase_add_test(t, outputs);
    tcase_add_test(t, rewinding);
    tcase_add_test(t, long_chain);
    tcase_add_loop_test(t, want_of_memory, 0, 2);
    tcase_add_test(t, verifier);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
