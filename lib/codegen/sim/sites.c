// The tables behind LF_SIM_SYMBOL: sites, their texts, the shared arrays.
#include "codegen/sim/lower.h"
#include <string.h>

uint32_t lf_sim_text(lf_sim_lowering *s, const char *text, size_t length) {
    uint32_t at = (uint32_t)s->texts.size;
    if (!length) return 0; // the empty text at the beginning
    lf_text_append(&s->texts, text, length);
    lf_text_append(&s->texts, "", 1);
    return at;
}

uint32_t lf_sim_add_site(lf_sim_lowering *s, LLVMValueRef v, const char *what, size_t length, lf_sim_site site) {
    LLVMBasicBlockRef b = LLVMGetInstructionParent(v);
    if (b != s->b_named) {
        const char *name = LLVMGetBasicBlockName(b);
        s->block_text = lf_sim_text(s, name, strlen(name));
        s->b_named = b;
    }
    if (!what) what = LLVMGetValueName2(v, &length);
    site.block = s->block_text;
    site.what = lf_sim_text(s, what, length);
    if (!lf_vec_push(&s->sites, site)) s->texts.failed = true; // out of memory is looked at once, at the end
    return (uint32_t)s->sites.count - 1;
}

static LLVMValueRef constant(lf_sim_lowering *s, LLVMValueRef v_value, const char *name) {
    LLVMValueRef v = LLVMAddGlobal(s->l->emit.module, LLVMTypeOf(v_value), name);
    LLVMSetInitializer(v, v_value);
    LLVMSetGlobalConstant(v, true);
    LLVMSetLinkage(v, LLVMInternalLinkage);
    LLVMSetAlignment(v, 8);
    return v;
}

static LLVMValueRef word(LLVMTypeRef type, uint64_t value) { return LLVMConstInt(type, value, false); }

static LLVMValueRef distance(lf_sim_lowering *s, LLVMValueRef v_to, LLVMValueRef v_from) {
    return LLVMConstSub(LLVMConstPtrToInt(v_to, s->l_i64), LLVMConstPtrToInt(v_from, s->l_i64));
}

static LLVMValueRef *values(lf_sim_lowering *s, size_t n) {
    return lf_alloc(s->l->allocator, (n + 1) * sizeof(LLVMValueRef));
}

static lf_status site_table(lf_sim_lowering *s, LLVMValueRef *out) {
    LLVMContextRef c = s->l->emit.context;
    LLVMValueRef *rows = values(s, s->sites.count);
    if (!rows) return lf_out_of_memory();
    LLVMTypeRef types[] = {s->l_i32, s->l_i32, s->l_i32, s->l_i8, s->l_i8, s->l_i8, s->l_i8};
    for (size_t i = 0; i < s->sites.count; i++) {
        const lf_sim_site *r = &s->sites.data[i];
        LLVMValueRef fields[] = {word(s->l_i32, r->block), word(s->l_i32, r->what), word(s->l_i32, r->bytes),
                                 word(s->l_i8, r->flags),  word(s->l_i8, r->space), word(s->l_i8, r->align_log2),
                                 word(s->l_i8, 0)};
        rows[i] = LLVMConstStructInContext(c, fields, 7, false);
    }
    *out = constant(s, LLVMConstArray2(LLVMStructTypeInContext(c, types, 7, false), rows, s->sites.count), "lf_sim_sites");
    lf_free(s->l->allocator, rows);
    return NULL;
}

static lf_status shared_table(lf_sim_lowering *s, LLVMValueRef *out) {
    LLVMContextRef c = s->l->emit.context;
    LLVMValueRef *rows = values(s, s->shared.count);
    if (!rows) return lf_out_of_memory();
    LLVMTypeRef types[] = {s->l_i32, s->l_i32, s->l_i32};
    for (size_t i = 0; i < s->shared.count; i++) {
        const lf_sim_shared *r = &s->shared.data[i];
        LLVMValueRef fields[] = {word(s->l_i32, r->name), word(s->l_i32, r->offset), word(s->l_i32, r->bytes)};
        rows[i] = LLVMConstStructInContext(c, fields, 3, false);
    }
    *out = constant(s, LLVMConstArray2(LLVMStructTypeInContext(c, types, 3, false), rows, s->shared.count), "lf_sim_shared");
    lf_free(s->l->allocator, rows);
    return NULL;
}

lf_status lf_sim_emit_program(lf_sim_lowering *s) {
    LLVMContextRef c = s->l->emit.context;
    LLVMValueRef v_sites = NULL, v_shared = NULL;
    size_t length;
    const char *module = LLVMGetModuleIdentifier(s->l->emit.module, &length);
    uint32_t name = lf_sim_text(s, module, length);
    if (s->texts.failed) return lf_out_of_memory();
    LF_TRY(site_table(s, &v_sites));
    LF_TRY(shared_table(s, &v_shared));
    LLVMValueRef v_texts = constant(s, LLVMConstStringInContext2(c, s->texts.data, s->texts.size, false), "lf_sim_texts");
    LLVMTypeRef types[] = {s->l_i64, s->l_i64, s->l_i64, s->l_i64, s->l_i64, s->l_i32,
                           s->l_i32, s->l_i32, s->l_i32, s->l_i32, s->l_i32};
    LLVMValueRef v = LLVMAddGlobal(s->l->emit.module, LLVMStructTypeInContext(c, types, sizeof types / sizeof *types, false),
                                   LF_SIM_SYMBOL);
    LLVMValueRef fields[] = {
        word(s->l_i64, LF_SIM_MAGIC),      distance(s, s->v_kernel, v),     distance(s, v_texts, v),
        distance(s, v_sites, v),           distance(s, v_shared, v),        word(s->l_i32, name),
        word(s->l_i32, s->sites.count),    word(s->l_i32, s->shared.count), word(s->l_i32, s->shared_bytes),
        word(s->l_i32, s->dynamic_shared), word(s->l_i32, s->cluster)};
    LLVMSetInitializer(v, LLVMConstStructInContext(c, fields, sizeof fields / sizeof *fields, false));
    LLVMSetGlobalConstant(v, true);
    LLVMSetVisibility(v, LLVMHiddenVisibility); // so that distances to it are known within the object
    LLVMSetAlignment(v, 8);
    return NULL;
}
