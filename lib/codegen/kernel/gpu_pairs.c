// The largest or smallest of a row's halves: what comes out is one of them whatever the order, so two are compared at once, as they lie in
// memory, and only the last two become floats.
#include "codegen/kernel/gpu.h"

static const lf_stmt *source_of(const lf_kernel *k, const lf_stmt *reduce) {
    const lf_stmt *s = &k->loop->stmts[reduce->args[0]];
    bool cast = s->kind == LF_STMT_CAST || (s->kind == LF_STMT_ELEM && s->code == LF_OP_CAST);
    return cast ? &k->loop->stmts[s->args[0]] : NULL;
}

bool lf_gpu_pairs_up(const gpu *g, const lf_stmt *reduce) {
    const lf_kernel *k = g->k;
    const lf_stmt *source = source_of(k, reduce);
    if (g->from || !source || k->lanes % 2 || !k->e->has_bf16 || reduce->compute != LF_F32) return false;
    if (reduce->code != LF_OP_RMAX && reduce->code != LF_OP_RMIN) return false;
    return source->kind == LF_STMT_LOAD && source->guard == LF_NO_STMT && lf_is_half(source->dtype) &&
           k->loop->accesses[source->number].strides[k->vector_axis] && !k->loop->accesses[source->number].n_terms;
}

static LLVMValueRef better_pair(lf_kernel *k, const lf_stmt *reduce, LLVMValueRef v_a, LLVMValueRef v_b) {
    static const char *const codes[2][2] = {{"max.NaN.f16x2 $0, $1, $2;", "max.NaN.bf16x2 $0, $1, $2;"},
                                            {"min.NaN.f16x2 $0, $1, $2;", "min.NaN.bf16x2 $0, $1, $2;"}};
    static const char constraints[] = "=r,r,r";
    const char *code = codes[reduce->code == LF_OP_RMIN][source_of(k, reduce)->dtype == LF_BF16];
    LLVMTypeRef type = LLVMFunctionType(k->l_i32, (LLVMTypeRef[]){k->l_i32, k->l_i32}, 2, 0);
    LLVMValueRef v_asm = LLVMGetInlineAsm(type, code, __builtin_strlen(code), constraints, sizeof constraints - 1, 0, 0,
                                          LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(k->e->builder, type, v_asm, (LLVMValueRef[]){v_a, v_b}, 2, "pair");
}

void lf_gpu_take_pairs(gpu *g, const lf_stmt *reduce, LLVMValueRef *v_pairs) {
    lf_kernel *k = g->k;
    lf_stmt_id source = k->loop->stmts[reduce->args[0]].args[0];
    lf_emit_statement(k, source);
    for (unsigned i = 0; i < k->lanes / 2; i++) {
        LLVMValueRef v =
            lf_emit_pack_halves(k->e, lf_reg(k, source, 2 * i).re, lf_reg(k, source, 2 * i + 1).re); // as it was loaded
        v_pairs[i] = v_pairs[i] ? better_pair(k, reduce, v_pairs[i], v) : v;
    }
}

lf_partial lf_gpu_part_pairs(gpu *g, const lf_stmt *reduce, LLVMValueRef *v_pairs) {
    lf_kernel *k = g->k;
    LLVMBuilderRef b = k->e->builder;
    lf_dtype d = source_of(k, reduce)->dtype;
    for (unsigned n = k->lanes / 4; n; n /= 2)
        for (unsigned i = 0; i < n; i++) v_pairs[i] = better_pair(k, reduce, v_pairs[i], v_pairs[i + n]);
    lf_partial halves[2];
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef v = i ? LLVMBuildLShr(b, v_pairs[0], LLVMConstInt(k->l_i32, 16, false), "") : v_pairs[0];
        v = LLVMBuildTrunc(b, v, LLVMInt16TypeInContext(k->e->context), "");
        v = LLVMBuildBitCast(b, v, lf_register_type(k->e, d), "");
        halves[i] = (lf_partial){lf_emit_cast(k->e, d, LF_F32, (lf_register){v, NULL}), NULL};
    }
    return lf_combine(k, reduce, halves[0], halves[1]);
}
