// The C builder: the same graph as the text form makes, without text.
#include "api/api.h"
#include "runtime/fpstate.h"
#include <string.h>

struct lfuser_builder {
    lf_handle handle;
    lfuser_context *context;
    lf_graph *graph;
};

lfuser_status lfuser_builder_create(lfuser_context *c, const char *name, lfuser_builder **out_builder) {
    if (out_builder) *out_builder = NULL;
    if (!c || !name || !out_builder)
        return lf_public(lf_error(c ? &c->allocator : &lf_system_allocator, LF_INVALID_ARGUMENT,
                                  "lfuser_builder_create: an argument is NULL"));
    lfuser_builder *b = lf_alloc_zero(&c->allocator, sizeof *b);
    if (!b) return lf_public(lf_out_of_memory());
    b->handle.is = LF_BUILDER_HANDLE;
    b->context = c;
    lf_status s = lf_graph_create(&c->allocator, name, strlen(name), &b->graph);
    if (s) {
        lf_free(&c->allocator, b);
        return lf_public(s);
    }
    b->graph->allow_sync = true; // refused when it is compiled, if at all
    *out_builder = b;
    return NULL;
}

void lfuser_builder_destroy(lfuser_builder *b) {
    if (!lf_end_handle(b, LF_BUILDER_HANDLE)) return;
    lf_graph_destroy(b->graph);
    lf_bury(b->context, &b->handle, sizeof *b);
}

static lf_status bad(const lfuser_builder *b, const char *what) {
    return lf_error(&b->context->allocator, LF_INVALID_ARGUMENT, "%s", what);
}

lfuser_status lfuser_builder_params(lfuser_builder *b, size_t n, const char *const *names, const lfuser_type *types,
                                    lfuser_value **out_values) {
    LF_NEED(b, LF_BUILDER_HANDLE);
    const lf_allocator *a = &b->context->allocator;
    lf_param_spec *specs = lf_alloc_zero(a, (n + 1) * sizeof *specs);
    if (!specs) return lf_public(lf_out_of_memory());
    lf_status s = NULL;
    for (size_t i = 0; i < n && !s; i++) {
        if (!names[i] || types[i].rank > LF_MAX_RANK) s = bad(b, "lfuser_builder_params: a name is NULL, or a rank above 8");
        specs[i].name = names[i];
        specs[i].type = (lf_type_spec){.dtype = (lf_dtype)types[i].dtype,
                                       .tensor = types[i].tensor,
                                       .host = types[i].host,
                                       .rank = (uint8_t)types[i].rank};
        for (uint32_t d = 0; d < types[i].rank && d < LF_MAX_RANK; d++)
            specs[i].type.dims[d] = (lf_dim_spec){.kind = types[i].names[d]         ? LF_DIM_NAMED
                                                          : types[i].extents[d] < 0 ? LF_DIM_UNKNOWN
                                                                                    : LF_DIM_KNOWN,
                                                  .extent = types[i].extents[d],
                                                  .name = types[i].names[d]};
    }
    if (!s) s = lf_graph_set_params(b->graph, specs, n);
    lf_free(a, specs);
    for (size_t i = 0; i < n; i++) out_values[i] = s ? NULL : (lfuser_value *)b->graph->params[i];
    return lf_public(s);
}

// Operands as the graph takes them; lists nest as deep as an op takes them, at most LF_MAX_RANK.
static lf_status convert(const lfuser_builder *b, lf_arena *arena, const lfuser_operand *from, size_t n, unsigned depth,
                         const lf_operand **out) {
    lf_operand *to = LF_ARENA_ARRAY(arena, lf_operand, n + 1);
    if (!to) return lf_out_of_memory();
    if (depth > LF_MAX_RANK) return bad(b, "a list nests deeper than 8");
    for (size_t i = 0; i < n; i++) {
        switch (from[i].kind) {
        case LFUSER_OPERAND_NONE: break;
        case LFUSER_OPERAND_VALUE:
            if (!from[i].value) return bad(b, "an operand's value is NULL");
            to[i] = (lf_operand){.kind = LF_OPERAND_VALUE, .value = (lf_value *)from[i].value};
            break;
        case LFUSER_OPERAND_INT:
            to[i] = (lf_operand){.kind = LF_OPERAND_LITERAL, .literal = lf_literal_int(from[i].integer)};
            break;
        case LFUSER_OPERAND_FLOAT:
            to[i] = (lf_operand){.kind = LF_OPERAND_LITERAL, .literal = lf_literal_float(from[i].number)};
            break;
        case LFUSER_OPERAND_BOOL:
            to[i] = (lf_operand){.kind = LF_OPERAND_LITERAL, .literal = lf_literal_bool(from[i].integer != 0)};
            break;
        case LFUSER_OPERAND_LIST:
            to[i] = (lf_operand){.kind = LF_OPERAND_LIST, .n_items = (uint32_t)from[i].n_items};
            LF_TRY(convert(b, arena, from[i].items, from[i].n_items, depth + 1, &to[i].items));
            break;
        default: return bad(b, "an operand is of an unknown kind");
        }
    }
    *out = to;
    return NULL;
}

static lf_status convert_attributes(const lfuser_builder *b, lf_arena *arena, const lfuser_attribute *from, size_t n,
                                    const lf_attr **out) {
    lf_attr *to = LF_ARENA_ARRAY(arena, lf_attr, n + 1);
    if (!to) return lf_out_of_memory();
    for (size_t i = 0; i < n; i++) {
        const lf_operand *operand;
        to[i].id = from[i].name ? lf_attr_parse(from[i].name, strlen(from[i].name)) : LF_ATTR_NONE;
        if (!to[i].id)
            return lf_error(&b->context->allocator, LF_INVALID_PROGRAM, "unknown attribute '%s'",
                            from[i].name ? from[i].name : "");
        LF_TRY(convert(b, arena, &from[i].operand, 1, 0, &operand));
        to[i].operand = *operand;
        to[i].word = from[i].word;
        if (from[i].word) to[i].dtype = lf_dtype_parse(from[i].word, strlen(from[i].word));
    }
    *out = to;
    return NULL;
}

lfuser_status lfuser_builder_op(lfuser_builder *b, const char *op, const lfuser_operand *operands, size_t n_operands,
                                const lfuser_attribute *attributes, size_t n_attributes, lfuser_value **out_results,
                                size_t *out_n) {
    if (out_n) *out_n = 0;
    LF_NEED(b, LF_BUILDER_HANDLE);
    if (!op) return lf_public(bad(b, "lfuser_builder_op: op is NULL"));
    lf_opcode other = LF_OP_NONE, code = lf_op_find(op, strlen(op), n_operands, &other);
    if (!code && other)
        return lf_public(
            lf_error(&b->context->allocator, LF_INVALID_PROGRAM, "'%s' does not take %zu operands", op, n_operands));
    if (!code) return lf_public(lf_error(&b->context->allocator, LF_INVALID_PROGRAM, "unknown op '%s'", op));
    lf_arena arena;
    lf_arena_init(&arena, &b->context->allocator);
    lf_op_request request = {.code = code, .n_args = n_operands, .n_attrs = n_attributes};
    lf_value *results = NULL;
    size_t n = 0;
    lf_fpstate fp = lf_fp_enter(); // literals are rounded, and scalars of constants computed
    lf_status s = convert(b, &arena, operands, n_operands, 0, &request.args);
    if (!s) s = convert_attributes(b, &arena, attributes, n_attributes, &request.attrs);
    if (!s) s = lf_graph_add(b->graph, &request, &results, &n);
    lf_fp_leave(fp);
    lf_arena_finish(&arena);
    if (s) return lf_public(s);
    for (size_t i = 0; i < n && out_results; i++) out_results[i] = (lfuser_value *)&results[i];
    if (out_n) *out_n = n;
    return NULL;
}

lfuser_status lfuser_builder_assert(lfuser_builder *b, lfuser_value *condition, const char *message) {
    LF_NEED(b, LF_BUILDER_HANDLE);
    if (!condition || !message) return lf_public(bad(b, "lfuser_builder_assert: an argument is NULL"));
    return lf_public(lf_graph_assert(b->graph, (lf_operand){.kind = LF_OPERAND_VALUE, .value = (lf_value *)condition},
                                     message, (lf_place){0}));
}

lfuser_status lfuser_builder_return(lfuser_builder *b, size_t n, lfuser_value *const *values, const char *const *into,
                                    lfuser_fusion **out_fusion) {
    *out_fusion = NULL;
    LF_NEED(b, LF_BUILDER_HANDLE);
    const lf_allocator *a = &b->context->allocator;
    lf_return_spec *specs = lf_alloc_zero(a, (n + 1) * sizeof *specs);
    if (!specs) return lf_public(lf_out_of_memory());
    for (size_t i = 0; i < n; i++)
        specs[i] = (lf_return_spec){.operand = {.kind = LF_OPERAND_VALUE, .value = (lf_value *)values[i]},
                                    .into = into ? into[i] : NULL};
    lf_status s = lf_graph_return(b->graph, specs, n, NULL, 0);
    lf_free(a, specs);
    if (!s) s = lf_fusion_wrap(b->context, b->graph, NULL, out_fusion);
    if (s) return lf_public(s);
    lf_bury(b->context, &b->handle, sizeof *b);
    return NULL;
}
