// A graph from its creation to its return: names, parameters, the dispatch of written ops to their rules, asserts, outputs.
// Does not belong here: the meaning of any op (rules_*.c, expand_*.c).
#include "ir/builder.h"
#include <string.h>

lf_status lf_graph_create(const lf_allocator *a, const char *name, size_t name_length, lf_graph **out_graph) {
    *out_graph = NULL;
    lf_graph *g = lf_alloc_zero(a, sizeof *g);
    if (!g) return lf_out_of_memory();
    g->allocator = a;
    lf_arena_init(&g->arena, a);
    g->name = lf_arena_strndup(&g->arena, name ? name : "", name ? name_length : 0);
    g->builder = LF_ARENA_NEW(&g->arena, struct lf_builder);
    if (!g->name || !g->builder) {
        lf_graph_destroy(g);
        return lf_out_of_memory();
    }
    lf_map_init(&g->builder->names, a);
    lf_map_init(&g->builder->shared, a);
    *out_graph = g;
    return NULL;
}

void lf_graph_destroy(lf_graph *g) {
    if (!g) return;
    if (g->builder) {
        lf_map_finish(&g->builder->names);
        lf_map_finish(&g->builder->shared);
    }
    lf_arena_finish(&g->arena);
    lf_free(g->allocator, g);
}

// ---- names --------------------------------------------------------------------------------------------------------------------

typedef struct name_key {
    const char *text;
    size_t length;
} name_key;

static bool same_name(const void *item, const void *with) {
    const lf_value *v = item;
    const name_key *key = with;
    return !strncmp(v->name, key->text, key->length) && !v->name[key->length];
}

lf_value *lf_graph_lookup(const lf_graph *g, const char *name, size_t length) {
    name_key key = {name, length};
    return lf_map_find(&g->builder->names, lf_map_hash(name, length), same_name, &key);
}

static lf_status check_name(lf_graph *g, const char *name, lf_place place) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.";
    size_t n = name ? strlen(name) : 0;
    if (!n || strspn(name, letters) != n)
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place,
                           "'%s' is no name: names consist of letters, digits, _ and .", name ? name : "");
    lf_value *first = lf_graph_lookup(g, name, n);
    if (!first) return NULL;
    lf_place where = first->def->place;
    if (where.line)
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "%%%s is defined twice: first in line %u", name,
                           where.line);
    return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "%%%s is defined twice", name);
}

static lf_status give_name(lf_graph *g, lf_value *v, const char *name) {
    size_t n = strlen(name);
    v->name = lf_arena_strndup(&g->arena, name, n);
    return v->name && lf_map_add(&g->builder->names, lf_map_hash(name, n), v) ? NULL : lf_out_of_memory();
}

// ---- parameters -----------------------------------------------------------------------------------------------------------------

static lf_value *extent_of(lf_graph *g, lf_opcode code, lf_value *param, unsigned axis) {
    lf_share_key key = {.code = code, .dtype = LF_I64, .axis = (int32_t)axis, .operands = {param}};
    uint64_t hash;
    lf_op *op = lf_share_find(g, &key, &hash);
    if (op) return op->results;
    lf_type type = lf_scalar_type(LF_I64);
    op = lf_single(g, code, &type, 1, &param);
    if (!op) return NULL;
    op->axis = (int8_t)axis;
    if (!lf_share_add(g, hash, op)) return NULL;
    lf_op_link(g, op);
    return op->results;
}

lf_value *lf_make_pitch(lf_graph *g, lf_value *param, unsigned axis) { return extent_of(g, LF_OP_PITCH, param, axis); }

static lf_place place_or(lf_place place, lf_place other) { return place.line ? place : other; }

static lf_status check_spec(lf_graph *g, const lf_type_spec *type, const char *what, lf_place place) {
    place = place_or(type->place, place);
    if (type->dtype <= LF_NO_DTYPE || type->dtype >= LF_DTYPE_COUNT)
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "%s has no dtype", what);
    if (type->rank > LF_MAX_RANK)
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "%s has rank %u, at most %d is supported", what,
                           type->rank, LF_MAX_RANK);
    if (type->host && (!type->tensor || type->rank))
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place,
                           "%s: @host is for tensors of rank 0, found %s of rank %u", what,
                           type->tensor ? "a tensor" : "a scalar", type->rank);
    for (unsigned i = 0; type->tensor && i < type->rank; i++)
        if (type->dims[i].kind == LF_DIM_KNOWN && type->dims[i].extent < 0)
            return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place_or(type->dims[i].place, place),
                               "%s: axis %u has the extent %lld", what, i, (long long)type->dims[i].extent);
    return NULL;
}

static lf_status add_param(lf_graph *g, const lf_param_spec *spec) {
    LF_TRY(check_name(g, spec->name, spec->place));
    LF_TRY(check_spec(g, &spec->type, spec->name, spec->place));
    g->builder->place = spec->place;
    lf_type type = {.dtype = spec->type.dtype, .tensor = spec->type.tensor, .host = spec->type.host};
    if (type.tensor) type.rank = spec->type.rank;
    lf_op *op = lf_single(g, LF_OP_PARAM, &type, 0, NULL);
    if (!op) return lf_out_of_memory();
    op->implicit = false;
    lf_op_link(g, op);
    g->params[g->n_params++] = op->results;
    return give_name(g, op->results, spec->name);
}

// The extent of one axis, and the check that it is what was declared.
static lf_status bind_dim(lf_graph *g, lf_value *param, unsigned axis, const lf_dim_spec *dim, lf_place place) {
    place = place_or(dim->place, place);
    g->builder->place = place;
    lf_value *found = extent_of(g, LF_OP_EXTENT, param, axis), **slot = &param->type.dims[axis];
    if (!(*slot = found)) return lf_out_of_memory();
    if (dim->kind == LF_DIM_UNKNOWN) return NULL;
    if (dim->kind == LF_DIM_KNOWN) {
        if (!(*slot = lf_const_int(g, dim->extent))) return lf_out_of_memory();
        return lf_require(g, place, lf_test2(g, LF_OP_EQ, found, *slot), LF_NUMBERS(found, *slot),
                          "axis %u of %%%s is fixed at {1}, the argument has extent {0}", axis, param->name);
    }
    param->type.named |= (uint8_t)(1u << axis);
    lf_value *named = lf_graph_lookup(g, dim->name, strlen(dim->name));
    if (!named) {
        LF_TRY(check_name(g, dim->name, place));
        return give_name(g, found, dim->name);
    }
    if (named->type.tensor || named->type.dtype != LF_I64) {
        const char *type = lf_type_text(&g->arena, &named->type);
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place,
                           "axis %u of %%%s: the dim %%%s names a parameter of type %s, only an i64 scalar can be an extent",
                           axis, param->name, dim->name, type ? type : "?");
    }
    *slot = named;
    lf_value *equal = lf_test2(g, LF_OP_EQ, found, named);
    if (named->def->code == LF_OP_PARAM)
        return lf_require(g, place, equal, LF_NUMBERS(named, found), "%%%s is {0}, but axis %u of %%%s has extent {1}",
                          dim->name, axis, param->name);
    return lf_require(g, place, equal, LF_NUMBERS(named, found),
                      "%%%s is {0} (axis %d of %%%s), but axis %u of %%%s has extent {1}", dim->name, named->def->axis,
                      named->def->operands[0]->name, axis, param->name);
}

lf_status lf_graph_set_params(lf_graph *g, const lf_param_spec *params, size_t n) {
    if (g->builder->params_set || g->first)
        return lf_error(g->allocator, LF_INVALID_ARGUMENT, "@%s: the parameters are set once, before any op", g->name);
    if (n > UINT32_MAX / 2) return lf_out_of_memory();
    g->builder->params_set = true;
    if (n && !(g->params = LF_ARENA_ARRAY(&g->arena, lf_value *, n))) return lf_out_of_memory();
    for (size_t i = 0; i < n; i++) LF_TRY(add_param(g, &params[i]));
    for (size_t i = 0; i < n; i++) {
        const lf_type_spec *type = &params[i].type;
        for (unsigned axis = 0; type->tensor && axis < type->rank; axis++)
            LF_TRY(bind_dim(g, g->params[i], axis, &type->dims[axis], place_or(type->place, params[i].place)));
    }
    return NULL;
}

// ---- ops as written ---------------------------------------------------------------------------------------------------------------

static lf_status copy_operands(lf_graph *g, const lf_operand *from, size_t n, lf_operand *to, lf_place place, int depth) {
    // Recursion is bounded by LF_MAX_NESTING.
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i];
        if (from[i].text && !(to[i].text = lf_arena_strndup(&g->arena, from[i].text, strlen(from[i].text))))
            return lf_out_of_memory();
        if (from[i].kind == LF_OPERAND_VALUE && (!from[i].value || from[i].value->def->graph != g))
            return lf_error_at(g->allocator, LF_INVALID_ARGUMENT, place, "operand %zu is a value of another graph, or none",
                               i + 1);
        if (from[i].kind != LF_OPERAND_LIST || !from[i].n_items) continue;
        if (depth == LF_MAX_NESTING)
            return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "more than %d nested lists", LF_MAX_NESTING);
        lf_operand *items = LF_ARENA_ARRAY(&g->arena, lf_operand, from[i].n_items);
        if (!items) return lf_out_of_memory();
        LF_TRY(copy_operands(g, from[i].items, from[i].n_items, items, place, depth + 1));
        to[i].items = items;
    }
    return NULL;
}

// The request with everything in it copied into the graph.
static lf_status copy_request(lf_graph *g, const lf_op_request *from, lf_op_request *to) {
    *to = *from;
    lf_operand *args = LF_ARENA_ARRAY(&g->arena, lf_operand, from->n_args);
    lf_attr *attrs = LF_ARENA_ARRAY(&g->arena, lf_attr, from->n_attrs);
    if (!args || !attrs) return lf_out_of_memory();
    LF_TRY(copy_operands(g, from->args, from->n_args, args, from->place, 0));
    for (size_t i = 0; i < from->n_attrs; i++) {
        attrs[i] = from->attrs[i];
        LF_TRY(copy_operands(g, &from->attrs[i].operand, 1, &attrs[i].operand, from->place, 0));
        const char *word = from->attrs[i].word;
        if (word && !(attrs[i].word = lf_arena_strndup(&g->arena, word, strlen(word)))) return lf_out_of_memory();
    }
    to->args = args;
    to->attrs = attrs;
    return NULL;
}

static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}

static lf_status check_request(const lf_rule *r) {
    const lf_op_request *q = r->request;
    const char *args = r->info->args;
    size_t letters = strlen(args);
    bool more = letters && args[letters - 1] == '*';
    if (more ? q->n_args < letters - 1 : q->n_args != letters)
        return lf_rule_error(r, "takes %s%zu operand%s, found %zu", more ? "at least " : "", more ? letters - 1 : letters,
                             (more ? letters - 1 : letters) == 1 ? "" : "s", q->n_args);
    if (q->n_args > UINT16_MAX - LF_MAX_RANK)
        return lf_rule_error(r, "takes at most %d operands, found %zu", UINT16_MAX - LF_MAX_RANK, q->n_args);
    for (size_t i = 0; i < q->n_attrs; i++) {
        lf_place place = q->attrs[i].place;
        const char *name = lf_attr_name(q->attrs[i].id);
        if (!*name || !has_word(r->info->attrs, name))
            return lf_rule_error_at(r, place, "there is no attribute %s=%s%s", name, *r->info->attrs ? "; it has " : "",
                                    r->info->attrs);
        for (size_t k = 0; k < i; k++)
            if (q->attrs[k].id == q->attrs[i].id) return lf_rule_error_at(r, place, "%s= is given twice", name);
    }
    return NULL;
}

static const lf_rule_fn rules[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = lf_rule_elem,
#define LF_VIEW(ID, name, args, attrs, doc) [LF_OP_##ID] = lf_rule_##ID,
#define LF_INDEXED(ID, name, args, attrs, doc) [LF_OP_##ID] = lf_rule_##ID,
#define LF_REDUCE(ID, name, args, attrs, doc) [LF_OP_##ID] = lf_rule_##ID,
#define LF_WHOLE(ID, name, args, attrs, doc) [LF_OP_##ID] = lf_rule_##ID,
#define LF_COMPOSITE(ID, name, args, attrs, doc) [LF_OP_##ID] = lf_rule_##ID,
#define LF_META(ID, name, args, attrs, doc) [LF_OP_##ID] = lf_rule_##ID,
#include "ir/ops.def"
};

static size_t results_of(lf_opcode code) {
    switch (code) {
    case LF_OP_VAR_MEAN:
    case LF_OP_DROPOUT:
    case LF_OP_CUMMAX:
    case LF_OP_CUMMIN:
    case LF_OP_SORT:
    case LF_OP_TOPK: return 2;
    default: return 1;
    }
}

static lf_status check_declared(lf_graph *g, lf_place place, const char *what, const lf_value *v, const lf_type_spec *spec) {
    const lf_type *t = &v->type;
    place = place_or(spec->place, place);
    const char *found = lf_type_text(&g->arena, t);
    if (!found) return lf_out_of_memory();
    LF_TRY(check_spec(g, spec, what, place));
    if (t->dtype != spec->dtype || t->tensor != spec->tensor || (t->tensor && t->rank != spec->rank)) {
        const char *kind = spec->tensor ? lf_arena_printf(&g->arena, "a tensor of rank %u", spec->rank) : "a scalar";
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "%s is %s, declared as %s of %s", what, found,
                           kind ? kind : "?", lf_dtype_name(spec->dtype));
    }
    for (unsigned i = 0; t->tensor && i < t->rank; i++) {
        const lf_dim_spec *dim = &spec->dims[i];
        lf_value *declared = NULL;
        if (dim->kind == LF_DIM_UNKNOWN) continue;
        if (dim->kind == LF_DIM_KNOWN && !(declared = lf_const_int(g, dim->extent))) return lf_out_of_memory();
        if (dim->kind == LF_DIM_NAMED) {
            declared = lf_resolve(lf_graph_lookup(g, dim->name, strlen(dim->name)));
            if (!declared || declared->type.tensor || declared->type.dtype != LF_I64 || declared->where == LF_PENDING)
                return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place_or(dim->place, place),
                                   "%s: the dim %%%s is no i64 host scalar that is defined here", what, dim->name);
        }
        LF_TRY(lf_require(g, place, lf_test2(g, LF_OP_EQ, t->dims[i], declared), LF_NUMBERS(t->dims[i], declared),
                          "%s: axis %u has extent {0}, declared is {1}", what, i));
    }
    return NULL;
}

// The op that stands for the request: the one that the rule made for it (ids from first_id on), or an alias of the final values.
static lf_status adopt(const lf_rule *r, uint32_t first_id, lf_value **finals, size_t n, lf_op **out_op) {
    lf_graph *g = r->g;
    lf_op *op = finals[0]->def;
    bool fresh = op->code == r->code && op->implicit && op->n_results == n;
    for (size_t i = 0; i < n; i++)
        fresh = fresh && finals[i] == &op->results[i] && finals[i]->id >= first_id && !finals[i]->name;
    if (!fresh) {
        op = lf_op_new(g, r->code, n, n);
        if (!op) return lf_out_of_memory();
        op->alias = true;
        for (size_t i = 0; i < n; i++) {
            op->operands[i] = finals[i];
            op->results[i].type = finals[i]->type;
        }
        lf_op_link(g, op);
    }
    op->implicit = false;
    op->place = r->request->place;
    op->args = r->request->args;
    op->attrs = r->request->attrs;
    op->n_args = (uint16_t)r->request->n_args;
    op->n_attrs = (uint16_t)r->request->n_attrs;
    *out_op = op;
    return NULL;
}

static lf_status build(lf_graph *g, const lf_op_request *request, lf_op **out_op) {
    lf_op_request copy;
    LF_TRY(copy_request(g, request, &copy));
    lf_rule r = {.g = g, .code = request->code, .info = lf_op_info_of(request->code), .request = &copy};
    if ((unsigned)request->code >= LF_OP_COUNT || !rules[request->code])
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, request->place, "there is no op to write of number %d",
                           (int)request->code);
    LF_TRY(check_request(&r));
    size_t n = results_of(request->code);
    if (request->names && request->n_names != n)
        return lf_rule_error(&r, "gives %zu result%s, found %zu name%s", n, n == 1 ? "" : "s", request->n_names,
                             request->n_names == 1 ? "" : "s");
    if (request->types && request->n_types != n)
        return lf_rule_error(&r, "gives %zu result%s, found %zu type%s", n, n == 1 ? "" : "s", request->n_types,
                             request->n_types == 1 ? "" : "s");
    for (size_t i = 0; request->names && i < n; i++) {
        if (!request->names[i]) continue;
        LF_TRY(check_name(g, request->names[i], request->place));
        for (size_t k = 0; k < i; k++)
            if (request->names[k] && !strcmp(request->names[k], request->names[i]))
                return lf_rule_error(&r, "two results are named %%%s", request->names[i]);
    }
    uint32_t first_id = g->n_values;
    lf_value *finals[LF_MAX_RESULTS] = {0};
    LF_TRY(rules[request->code](&r, finals));
    if (g->arena.failed) return lf_out_of_memory();
    LF_TRY(adopt(&r, first_id, finals, n, out_op));
    for (size_t i = 0; request->types && i < n; i++) {
        const char *what =
            request->names && request->names[i] ? lf_arena_printf(&g->arena, "%%%s", request->names[i]) : r.info->name;
        if (!what) return lf_out_of_memory();
        LF_TRY(check_declared(g, request->place, what, finals[i], &request->types[i]));
    }
    for (size_t i = 0; request->names && i < n; i++)
        if (request->names[i]) LF_TRY(give_name(g, &(*out_op)->results[i], request->names[i]));
    return NULL;
}

static lf_status check_open(const lf_graph *g, lf_place place) {
    if (!g->finished) return NULL;
    return lf_error_at(g->allocator, LF_INVALID_ARGUMENT, place, "@%s has its return already", g->name);
}

// What was wanted has been undone. A message that lacks a piece for want of memory is no answer, and the next call starts afresh.
static lf_status settle(lf_graph *g, lf_status s) {
    if (!g->arena.failed) return s;
    g->arena.failed = false;
    lf_status_destroy(s);
    return lf_out_of_memory();
}

lf_status lf_graph_add(lf_graph *g, const lf_op_request *request, lf_value **out_results, size_t *out_n) {
    if (out_results) *out_results = NULL;
    if (out_n) *out_n = 0;
    LF_TRY(check_open(g, request->place));
    g->builder->place = request->place;
    lf_op *last = g->last, *op = NULL;
    uint32_t n_values = g->n_values;
    lf_sync_point *last_sync = g->last_sync;
    lf_status s = build(g, request, &op);
    if (s) {
        lf_graph_cut(g, last, n_values);
        g->last_sync = last_sync;
        *(last_sync ? &last_sync->next : &g->first_sync) = NULL;
        return settle(g, s);
    }
    if (out_results) *out_results = op->results;
    if (out_n) *out_n = op->n_results;
    return NULL;
}

lf_status lf_graph_assert(lf_graph *g, lf_operand condition, const char *message, lf_place place) {
    LF_TRY(check_open(g, place));
    g->builder->place = place;
    lf_operand *arg = LF_ARENA_NEW(&g->arena, lf_operand);
    if (!arg) return lf_out_of_memory();
    LF_TRY(copy_operands(g, &condition, 1, arg, place, 0));
    lf_value *v = arg->kind == LF_OPERAND_VALUE ? lf_resolve(arg->value) : NULL;
    bool literal = arg->kind == LF_OPERAND_LITERAL && arg->literal.kind == LF_LITERAL_BOOL;
    if (!literal && !(v && !v->type.tensor && v->type.dtype == LF_BOOL))
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "assert: the condition must be a bool scalar, found %s",
                           lf_operand_told(g, arg));
    LF_TRY(lf_known_on_host(g, place, "assert: the condition", arg));
    if (literal) v = lf_const(g, LF_BOOL, (lf_scalar){.word = {arg->literal.magnitude}});
    lf_op *op = lf_single(g, LF_OP_CHECK, &(lf_type){0}, 1, &v);
    if (!op || !(op->message = lf_arena_strndup(&g->arena, message, strlen(message)))) return lf_out_of_memory();
    op->n_results = 0;
    op->implicit = false;
    op->args = arg;
    op->n_args = 1;
    lf_share_key key = {.code = LF_OP_CHECK, .axis = -1, .operands = {v}};
    uint64_t hash;
    if (!lf_share_find(g, &key, &hash) && !lf_share_add(g, hash, op)) return lf_out_of_memory();
    lf_op_link(g, op);
    return NULL;
}

// ---- outputs ------------------------------------------------------------------------------------------------------------------------

static lf_status check_into(lf_graph *g, size_t k, const lf_return_spec *spec, lf_output *out) {
    lf_place place = place_or(spec->into_place, spec->place);
    lf_value *x = lf_graph_lookup(g, spec->into, strlen(spec->into)), *v = out->value;
    if (!x || x->def->code != LF_OP_PARAM)
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "into %%%s: only a parameter can be written into",
                           spec->into);
    if (!x->type.tensor || x->type.host)
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place,
                           "into %%%s: it is a %s parameter, only a device tensor can be written into", spec->into,
                           x->type.host ? "@host" : "scalar");
    for (size_t i = 0; i < k; i++)
        if (g->outputs[i].into == x)
            return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place,
                               "into %%%s: outputs %zu and %zu are both written into it", spec->into, i, k);
    const char *source = lf_operand_told(g, &spec->operand), *target = lf_type_text(&g->arena, &x->type);
    if (!v->type.tensor || v->type.dtype != x->type.dtype || v->type.rank != x->type.rank)
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "into %%%s: %s does not fit into %s", spec->into, source,
                           target ? target : "?");
    for (unsigned i = 0; i < x->type.rank; i++) {
        lf_value *a = v->type.dims[i], *b = x->type.dims[i], *pitch = extent_of(g, LF_OP_PITCH, x, i);
        LF_TRY(lf_require(g, place, lf_test2(g, LF_OP_EQ, a, b), LF_NUMBERS(a, b),
                          "into %%%s: axis %u of %s has extent {0}, that of %%%s has {1}", spec->into, i, source,
                          spec->into));
        lf_value *moves = lf_test2(g, LF_OP_NE, pitch, lf_const_int(g, 0)),
                 *single = lf_test2(g, LF_OP_LE, b, lf_const_int(g, 1));
        LF_TRY(lf_require(g, place, lf_test2(g, LF_OP_LOR, moves, single), LF_NUMBERS(b),
                          "into %%%s: its axis %u of extent {0} has stride 0", spec->into, i));
    }
    out->into = x;
    return NULL;
}

static lf_status add_output(lf_graph *g, size_t k, const lf_return_spec *spec) {
    lf_output *out = &g->outputs[k];
    lf_operand operand;
    LF_TRY(copy_operands(g, &spec->operand, 1, &operand, spec->place, 0));
    g->builder->place = spec->place;
    if (operand.kind == LF_OPERAND_LITERAL) {
        lf_dtype d = lf_literal_dtype(&operand.literal);
        lf_scalar s;
        lf_literal_to(&operand.literal, d, &s);
        if (!(out->value = lf_const(g, d, s))) return lf_out_of_memory();
        out->written = out->value;
    } else if (operand.kind == LF_OPERAND_VALUE) {
        out->value = lf_resolve(operand.value);
        out->written = operand.value;
        out->name = operand.value->name;
    } else {
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, spec->place, "return: output %zu must be a value, found %s", k,
                           lf_operand_told(g, &operand));
    }
    return spec->into ? check_into(g, k, spec, out) : NULL;
}

static lf_status build_return(lf_graph *g, const lf_return_spec *outputs, size_t n, const lf_type_spec *declared,
                              size_t n_declared) {
    lf_place place = n ? outputs[0].place : (lf_place){0};
    if (declared && n_declared != n)
        return lf_error_at(g->allocator, LF_INVALID_PROGRAM, place, "@%s declares %zu result%s and returns %zu", g->name,
                           n_declared, n_declared == 1 ? "" : "s", n);
    if (n && !(g->outputs = LF_ARENA_ARRAY(&g->arena, lf_output, n))) return lf_out_of_memory();
    for (size_t i = 0; i < n; i++) LF_TRY(add_output(g, i, &outputs[i]));
    for (size_t i = 0; declared && i < n; i++) {
        const char *what = lf_arena_printf(&g->arena, "output %zu", i);
        if (!what) return lf_out_of_memory();
        LF_TRY(check_declared(g, place, what, g->outputs[i].value, &declared[i]));
    }
    g->n_outputs = (uint32_t)n;
    return g->arena.failed ? lf_out_of_memory() : NULL;
}

lf_status lf_graph_return(lf_graph *g, const lf_return_spec *outputs, size_t n, const lf_type_spec *declared,
                          size_t n_declared) {
    LF_TRY(check_open(g, n ? outputs[0].place : (lf_place){0}));
    lf_op *last = g->last;
    uint32_t n_values = g->n_values;
    lf_status s = build_return(g, outputs, n, declared, n_declared);
    if (s) {
        lf_graph_cut(g, last, n_values);
        g->outputs = NULL;
        return settle(g, s);
    }
    g->finished = true;
    return NULL;
}
