// The op and attribute tables as data, and lookups by name.
#include "ir/ir.h"
#include <string.h>

#define ELEM_ARGS_1 "v"
#define ELEM_ARGS_2 "vv"
#define ELEM_ARGS_3 "vvv"
#define ELEM_ARGS_4 "vvvv"

// ELEM rows have no columns for these; the few that need them are set at the end, over what their rows gave.
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif
static const lf_op_info ops[LF_OP_COUNT] = {
    [LF_OP_NONE] = {"none", LF_KIND_NONE, "", "", "", ""},
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = {#name, LF_KIND_ELEM, ELEM_ARGS_##n, "", allow, doc},
#define LF_VIEW(ID, name, args, attrs, doc) [LF_OP_##ID] = {#name, LF_KIND_VIEW, args, attrs, "", doc},
#define LF_INDEXED(ID, name, args, attrs, doc) [LF_OP_##ID] = {#name, LF_KIND_INDEXED, args, attrs, "", doc},
#define LF_REDUCE(ID, name, args, attrs, doc) [LF_OP_##ID] = {#name, LF_KIND_REDUCE, args, attrs, "", doc},
#define LF_WHOLE(ID, name, args, attrs, doc) [LF_OP_##ID] = {#name, LF_KIND_WHOLE, args, attrs, "", doc},
#define LF_COMPOSITE(ID, name, args, attrs, doc) [LF_OP_##ID] = {#name, LF_KIND_COMPOSITE, args, attrs, "", doc},
#define LF_META(ID, name, args, attrs, doc) [LF_OP_##ID] = {#name, LF_KIND_META, args, attrs, "", doc},
#define LF_INTERNAL(ID, name, doc) [LF_OP_##ID] = {#name, LF_KIND_INTERNAL, "", "", "", doc},
#include "ir/ops.def"
    [LF_OP_CAST].attrs = "dtype",
    [LF_OP_BITCAST].attrs = "dtype",
    [LF_OP_GELU].attrs = "approximate",
    [LF_OP_LEAKY_RELU].attrs = "slope",
    [LF_OP_ELU].attrs = "alpha",
    [LF_OP_CLAMP].args = "voo",
};
#pragma GCC diagnostic pop

const lf_op_info *lf_op_info_of(lf_opcode code) { return &ops[(unsigned)code < LF_OP_COUNT ? code : LF_OP_NONE]; }

typedef struct attr_row {
    const char *name;
    lf_attr_kind kind;
} attr_row;
static const attr_row attrs[LF_ATTR_COUNT] = {
    [LF_ATTR_NONE] = {"", LF_ATTR_INT},
#define LF_ATTR(ID, name, kind) [LF_ATTR_##ID] = {#name, LF_ATTR_##kind},
#include "ir/attrs.def"
};

const char *lf_attr_name(lf_attr_id id) { return (unsigned)id < LF_ATTR_COUNT ? attrs[id].name : ""; }
lf_attr_kind lf_attr_kind_of(lf_attr_id id) { return (unsigned)id < LF_ATTR_COUNT ? attrs[id].kind : LF_ATTR_INT; }

static bool same_text(const char *a, const char *b, size_t n) { return !strncmp(a, b, n) && !a[n]; }

lf_attr_id lf_attr_parse(const char *name, size_t n) {
    for (unsigned i = 1; i < LF_ATTR_COUNT; i++)
        if (same_text(attrs[i].name, name, n)) return (lf_attr_id)i;
    return LF_ATTR_NONE;
}

static bool takes(const char *args, size_t n) {
    size_t letters = strlen(args);
    if (letters && args[letters - 1] == '*') return n >= letters - 1;
    return n == letters;
}

lf_opcode lf_op_find(const char *name, size_t n, size_t n_args, lf_opcode *out_other) {
    lf_opcode other = LF_OP_NONE;
    for (unsigned i = 1; i < LF_OP_COUNT; i++) {
        const lf_op_info *info = lf_op_info_of((lf_opcode)i);
        if (info->kind == LF_KIND_INTERNAL || info->name[0] != (n ? name[0] : 0) || !same_text(info->name, name, n))
            continue;
        if (takes(info->args, n_args)) return (lf_opcode)i;
        other = (lf_opcode)i;
    }
    if (out_other) *out_other = other;
    return LF_OP_NONE;
}
