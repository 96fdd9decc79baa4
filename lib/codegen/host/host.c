// See host.h. Each function is one straight line over the needed scalar ops in program order: a sweep back over the
// ops marks what is needed, a sweep forward emits it. All slots are read before any is written.
#include "codegen/host/host.h"
#include "codegen/host_load.h"
#include <stdio.h>
#include <string.h>

enum {
    BLOCK_OPS = 512, // ops before a new block begins: LLVM's passes are not linear in the length of a block
    MAX_OPERANDS = 8
};

typedef struct lf_host {
    lf_llvm *l;
    lf_emit *e;
    const lf_program *p;
    lf_phase phase;
    uint32_t stage;
    LLVMTypeRef t_word, t_pointer;
    LLVMValueRef v_function, v_slots;
    uint32_t n_emitted;
    // By value id.
    lf_register *registers;
    bool *needed;
    uint32_t *infer_slot;  // LFUSER_ABI_NONE: not stored by infer, nor fetched
    uint32_t *infer_stage; // whose infer stores it
    uint32_t *finish_word; // that the finish under way finds it in, or NONE
    uint32_t finish;       // number of that
    uint32_t *param;       // number of a parameter
} lf_host;

static lf_status broken(const lf_host *h, const lf_value *v, const char *what) {
    return lf_error(h->l->allocator, LF_INTERNAL, "host code: %s (%%%s, value %u, op %s)", what, v->name ? v->name : "",
                    v->id, lf_op_info_of(v->def->code)->name);
}

// ---- what is needed -----------------------------------------------------------------------------------------

// The runtime puts it into its slot before the stage begins.
static bool is_fetched(const lf_value *v) { return v->def->code == LF_OP_ITEM && v->where == LF_PENDING; }

// The slot in which it lies already (of a finish: the word), or NONE.
static uint32_t place_of(const lf_host *h, const lf_value *v) {
    if (h->phase == LF_PHASE_FINISH) return h->finish_word[v->id];
    if (h->infer_slot[v->id] == LFUSER_ABI_NONE) return LFUSER_ABI_NONE;
    bool before = h->infer_stage[v->id] < h->stage ||
                  (h->infer_stage[v->id] == h->stage && (h->phase == LF_PHASE_BIND || is_fetched(v)));
    return before ? h->infer_slot[v->id] : LFUSER_ABI_NONE;
}

static bool in_function(const lf_host *h, const lf_slot_store *store) {
    return store->phase == h->phase && store->stage == h->stage;
}

static bool is_computed(const lf_op *op) {
    bool host_item = op->code == LF_OP_ITEM && op->operands[0]->type.host;
    return op->code == LF_OP_SATMUL || host_item || lf_op_info_of(op->code)->kind == LF_KIND_ELEM;
}

static void mark_needed(lf_host *h) {
    const lf_program *p = h->p;
    memset(h->needed, 0, p->graph->n_values * sizeof *h->needed);
    for (uint32_t i = 0; i < p->n_stores; i++)
        if (in_function(h, &p->stores[i])) h->needed[lf_resolve(p->stores[i].value)->id] = true;
    for (uint32_t i = 0; i < p->abi.n_checks && h->phase == LF_PHASE_INFER; i++)
        if (p->check_stages[i] == h->stage)
            for (uint32_t k = 0; k < p->checks[i]->n_operands; k++) h->needed[p->checks[i]->operands[k]->id] = true;
    if (h->phase == LF_PHASE_FINISH) h->needed[p->finishes[h->finish].value->id] = true;
    for (const lf_op *op = p->graph->last; op; op = op->prev) {
        if (!is_computed(op) || op->alias || !h->needed[op->results[0].id]) continue;
        if (place_of(h, &op->results[0]) != LFUSER_ABI_NONE) continue;
        for (uint32_t k = 0; k < op->n_operands; k++)
            if (op->operands[k]) h->needed[op->operands[k]->id] = true;
    }
}

// ---- values -------------------------------------------------------------------------------------------------

static LLVMValueRef slot_pointer(lf_host *h, uint32_t slot) {
    char name[24];
    snprintf(name, sizeof name, "slot%u", slot);
    LLVMValueRef v_index = LLVMConstInt(h->t_word, slot, 0);
    return LLVMBuildInBoundsGEP2(h->e->builder, h->t_word, h->v_slots, &v_index, 1, name);
}

static lf_register load_slot(lf_host *h, lf_dtype d, uint32_t slot) { return lf_emit_load(h->e, d, slot_pointer(h, slot)); }

static void name_one(LLVMValueRef v, const lf_value *value, const char *part) {
    size_t length;
    char name[96];
    if (!v || LLVMIsConstant(v) || LLVMIsAArgument(v)) return;
    LLVMGetValueName2(v, &length);
    if (value->name)
        snprintf(name, sizeof name, "%.80s%s", value->name, part);
    else if (!length)
        snprintf(name, sizeof name, "v%u%s", value->id, part);
    else
        return;
    LLVMSetValueName2(v, name, strlen(name));
}

static lf_status emit_leaf(lf_host *h, const lf_value *v) {
    const lf_op *op = v->def;
    const lf_program *p = h->p;
    lf_register *r = &h->registers[v->id];
    switch (op->code) {
    case LF_OP_CONST: *r = lf_emit_constant(h->e, v->type.dtype, &op->constant); return NULL;
    case LF_OP_PARAM:
        if (v->type.tensor && !v->type.host) return broken(h, v, "a tensor is no host value");
        *r = load_slot(h, v->type.dtype, p->param_slots[h->param[v->id]]);
        return NULL;
    case LF_OP_EXTENT:
    case LF_OP_PITCH: {
        const lf_value *tensor = op->operands[0];
        uint32_t past = op->code == LF_OP_PITCH ? tensor->type.rank : 0;
        if (tensor->def->code != LF_OP_PARAM) return broken(h, v, "not of a parameter");
        *r = load_slot(h, LF_I64, p->param_slots[h->param[tensor->id]] + 1 + past + (uint32_t)op->axis);
        return NULL;
    }
    case LF_OP_SLOT:
        if (h->phase != LF_PHASE_BIND) return broken(h, v, "known only when launches are bound");
        *r = load_slot(h, LF_I64, op->slot);
        return NULL;
    default: return broken(h, v, "not a host value");
    }
}

static lf_status emit_computed(lf_host *h, const lf_value *v) {
    const lf_op *op = v->def;
    lf_register operands[MAX_OPERANDS] = {0};
    if (op->n_operands > MAX_OPERANDS || v->where == LF_ON_DEVICE) return broken(h, v, "not a host value");
    for (uint32_t k = 0; k < op->n_operands; k++) {
        if (!op->operands[k]) continue;
        operands[k] = h->registers[op->operands[k]->id];
        if (!operands[k].re) return broken(h, v, "an operand is not known yet");
    }
    if (op->code == LF_OP_ITEM) { // of a @host tensor, which is a host value already
        h->registers[v->id] = operands[0];
        return NULL;
    }
    if (h->n_emitted++ % BLOCK_OPS == BLOCK_OPS - 1) {
        LLVMBasicBlockRef b_next = LLVMAppendBasicBlockInContext(h->e->context, h->v_function, "go.on");
        LLVMBuildBr(h->e->builder, b_next);
        LLVMPositionBuilderAtEnd(h->e->builder, b_next);
    }
    h->registers[v->id] = lf_emit_elem(h->e, op, operands);
    return lf_llvm_take_status(h->l);
}

static lf_status emit_value(lf_host *h, const lf_value *v) {
    uint32_t slot = place_of(h, v);
    if (slot != LFUSER_ABI_NONE)
        h->registers[v->id] = load_slot(h, v->type.dtype, slot);
    else if (is_computed(v->def))
        LF_TRY(emit_computed(h, v));
    else
        LF_TRY(emit_leaf(h, v));
    LF_TRY(lf_llvm_take_status(h->l));
    bool complex = h->registers[v->id].im;
    name_one(h->registers[v->id].re, v, complex ? ".re" : "");
    name_one(h->registers[v->id].im, v, ".im");
    return NULL;
}

// ---- functions ----------------------------------------------------------------------------------------------

static void begin_function(lf_host *h, const char *name, LLVMTypeRef result) {
    LLVMContextRef context = h->e->context;
    LLVMTypeRef type = LLVMFunctionType(result, &h->t_pointer, 1, 0);
    h->v_function = LLVMAddFunction(h->e->module, name, type);
    // Without unwind tables the object is code and constants alone.
    LLVMAttributeRef nounwind = LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName("nounwind", 8), 0);
    LLVMAddAttributeAtIndex(h->v_function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, nounwind);
    h->v_slots = LLVMGetParam(h->v_function, 0);
    LLVMSetValueName2(h->v_slots, "slots", 5);
    LLVMPositionBuilderAtEnd(h->e->builder, LLVMAppendBasicBlockInContext(context, h->v_function, "entry"));
    h->n_emitted = 0;
}

static lf_status emit_needed(lf_host *h) {
    memset(h->registers, 0, h->p->graph->n_values * sizeof *h->registers);
    mark_needed(h);
    for (const lf_op *op = h->p->graph->first; op; op = op->next)
        for (uint32_t k = 0; k < op->n_results && !op->alias; k++)
            if (h->needed[op->results[k].id]) LF_TRY(emit_value(h, &op->results[k]));
    return NULL;
}

static lf_status emit_stores(lf_host *h) {
    for (uint32_t i = 0; i < h->p->n_stores; i++) {
        const lf_slot_store *store = &h->p->stores[i];
        if (!in_function(h, store)) continue;
        const lf_value *v = lf_resolve(store->value);
        if (!h->registers[v->id].re) return broken(h, v, "stored, but not in the graph");
        lf_emit_store(h->e, v->type.dtype, h->registers[v->id], slot_pointer(h, store->slot));
    }
    return lf_llvm_take_status(h->l);
}

// One check: goes on in a new block where it holds, else leaves its numbers and returns which it was.
static lf_status emit_check(lf_host *h, uint32_t number) {
    const lf_op *check = h->p->checks[number];
    LLVMBuilderRef builder = h->e->builder;
    LLVMBasicBlockRef b_failed = LLVMAppendBasicBlockInContext(h->e->context, h->v_function, "check.failed");
    LLVMBasicBlockRef b_next = LLVMAppendBasicBlockInContext(h->e->context, h->v_function, "check.passed");
    LLVMBuildCondBr(builder, h->registers[check->operands[0]->id].re, b_next, b_failed);
    LLVMPositionBuilderAtEnd(builder, b_failed);
    for (uint32_t k = 1; k < check->n_operands; k++) {
        const lf_value *v = check->operands[k];
        if (k > LFUSER_ABI_MAX_NUMBERS || lf_dtype_bytes(v->type.dtype) > 8)
            return broken(h, v, "a check cannot report this");
        lf_emit_store(h->e, v->type.dtype, h->registers[v->id], slot_pointer(h, h->p->abi.numbers_slot + k - 1));
    }
    LLVMBuildRet(builder, LLVMConstInt(h->t_word, number, 0));
    LLVMPositionBuilderAtEnd(builder, b_next);
    return NULL;
}

static lf_status emit_stage(lf_host *h, uint32_t stage) {
    LLVMBuilderRef builder = h->e->builder;
    char name[LF_HOST_NAME];
    h->stage = stage;
    h->phase = LF_PHASE_INFER;
    begin_function(h, lf_host_function_name(LF_PHASE_INFER, stage, name), h->t_word);
    LF_TRY(emit_needed(h));
    for (uint32_t i = 0; i < h->p->abi.n_checks; i++)
        if (h->p->check_stages[i] == stage) LF_TRY(emit_check(h, i));
    LF_TRY(emit_stores(h));
    LLVMBuildRet(builder, LLVMConstAllOnes(h->t_word));

    h->phase = LF_PHASE_BIND;
    begin_function(h, lf_host_function_name(LF_PHASE_BIND, stage, name), LLVMVoidTypeInContext(h->e->context));
    LF_TRY(emit_needed(h));
    LF_TRY(emit_stores(h));
    LLVMBuildRetVoid(builder);
    return NULL;
}

// What its operands arrived as, then the result (abi.finishes).
static lf_status emit_finish(lf_host *h, uint32_t number) {
    const lfuser_abi_finish *f = &h->p->abi.finishes[number];
    const lf_program_finish *values = &h->p->finishes[number];
    char name[LF_HOST_NAME];
    h->phase = LF_PHASE_FINISH;
    h->finish = number;
    for (uint32_t k = 0; k < f->n_operands; k++)
        h->finish_word[values->from[k]->id] = h->p->abi.finish_operands[f->first_operand + k].word;
    begin_function(h, lf_host_function_name(LF_PHASE_FINISH, number, name), LLVMVoidTypeInContext(h->e->context));
    LF_TRY(emit_needed(h));
    lf_emit_store(h->e, values->value->type.dtype, h->registers[values->value->id], slot_pointer(h, f->result));
    LLVMBuildRetVoid(h->e->builder);
    for (uint32_t k = 0; k < f->n_operands; k++) h->finish_word[values->from[k]->id] = LFUSER_ABI_NONE;
    return lf_llvm_take_status(h->l);
}

// The slot that has it first.
static void lies_in(lf_host *h, const lf_value *v, uint32_t slot, uint32_t stage) {
    if (h->infer_slot[v->id] != LFUSER_ABI_NONE && h->infer_stage[v->id] <= stage && !is_fetched(v)) return;
    h->infer_slot[v->id] = slot;
    h->infer_stage[v->id] = stage;
}

lf_status lf_host_emit(lf_llvm *l, const lf_program *p) {
    const lf_graph *g = p->graph;
    size_t n = g->n_values ? g->n_values : 1;
    lf_arena arena;
    lf_arena_init(&arena, l->allocator);
    lf_host h = {.l = l, .e = &l->emit, .p = p};
    h.t_word = LLVMInt64TypeInContext(l->emit.context);
    h.t_pointer = LLVMPointerTypeInContext(l->emit.context, 0);
    h.registers = LF_ARENA_ARRAY(&arena, lf_register, n);
    h.needed = LF_ARENA_ARRAY(&arena, bool, n);
    h.infer_slot = LF_ARENA_ARRAY(&arena, uint32_t, n);
    h.infer_stage = LF_ARENA_ARRAY(&arena, uint32_t, n);
    h.finish_word = LF_ARENA_ARRAY(&arena, uint32_t, n);
    h.param = LF_ARENA_ARRAY(&arena, uint32_t, n);
    lf_status s = arena.failed ? lf_out_of_memory() : NULL;
    if (!s) {
        memset(h.infer_slot, 0xff, n * sizeof *h.infer_slot);
        memset(h.finish_word, 0xff, n * sizeof *h.finish_word);
        for (uint32_t i = 0; i < g->n_params; i++) h.param[g->params[i]->id] = i;
        for (uint32_t i = 0; i < p->n_stores; i++)
            if (p->stores[i].phase == LF_PHASE_INFER)
                lies_in(&h, lf_resolve(p->stores[i].value), p->stores[i].slot, p->stores[i].stage);
        for (uint32_t i = 0; i < p->abi.n_fetches; i++)
            lies_in(&h, p->fetches[i].value, p->fetches[i].slot, p->fetches[i].stage);
        for (uint32_t i = 0; i < p->abi.n_stages && !s; i++) s = emit_stage(&h, i);
        for (uint32_t i = 0; i < p->abi.n_finishes && !s; i++) s = emit_finish(&h, i);
    }
    lf_arena_finish(&arena);
    return s;
}
