// See key.h. Whoever gives a loop, a statement or an access a new field that code generation looks at adds it here; the sizes below
// are a reminder.
#include "analysis/bits.h"
#include "schedule/key.h"
#include <string.h>

_Static_assert(sizeof(lf_stmt) == 104, "a statement has changed: does its key say all of it?");
_Static_assert(sizeof(lf_access) == 224, "an access has changed: does its key say all of it?");
_Static_assert(sizeof(lf_slot_store) == 24 && sizeof(lf_fetch) == 16 && sizeof(lf_program_finish) == 16 &&
                   sizeof(lfuser_abi_finish_operand) == 12,
               "what host code does has changed: does its key say all of it?");
_Static_assert(sizeof(lf_loop) == 304, "a loop has changed: does its key say all of it?");

static void put(lf_text *out, uint64_t word) { lf_text_append(out, (const char *)&word, sizeof word); }

static void put_constant(lf_text *out, lf_dtype d, const lf_scalar *c) {
    uint64_t words[2] = {0};
    unsigned bytes = lf_dtype_bytes(d);
    memcpy(words, c, bytes < sizeof words ? bytes : sizeof words);
    put(out, words[0]);
    put(out, words[1]);
}

// What an emitter asks an elementwise op, its operands' numbers aside.
static void put_op(lf_text *out, const lf_op *op) {
    put(out, (uint64_t)op->code | (uint64_t)op->compute << 16 | (uint64_t)op->results[0].type.dtype << 24 |
                 (uint64_t)op->flag << 32 | (uint64_t)op->n_operands << 40);
    uint64_t number;
    memcpy(&number, &op->number, sizeof number);
    put(out, number);
    for (uint32_t k = 0; k < op->n_operands; k++) {
        const lf_value *v = op->operands[k];
        put(out, !v ? 0 : 1u | (uint32_t)v->type.dtype << 8 | (uint32_t)lf_keeps_bits(v) << 16);
    }
}

// ---- kernels -------------------------------------------------------------------------------------------------------------------

static void put_stmt(lf_text *out, const lf_stmt *s) {
    put(out, (uint64_t)s->kind | (uint64_t)s->dtype << 8 | (uint64_t)s->compute << 16 | (uint64_t)s->code << 24 |
                 (uint64_t)s->column << 40 | (uint64_t)s->level << 48);
    put(out, s->number | (uint64_t)s->guard << 32);
    put(out, s->n_args);
    for (unsigned i = 0; i < s->n_args; i++) put(out, s->args[i]);
    if (s->kind == LF_STMT_CONST) put_constant(out, s->dtype, &s->constant);
    put(out, s->op != NULL);
    if (s->op) put_op(out, s->op);
}

static void put_access(lf_text *out, const lf_access *a) {
    uint64_t along = 0;
    for (unsigned i = 0; i < LF_MAX_AXES; i++) along |= (uint64_t)(a->strides[i] != NULL) << i;
    put(out, (uint64_t)a->dtype | (uint64_t)a->store << 8 | (uint64_t)a->row << 9 | (uint64_t)a->written << 10 |
                 (uint64_t)a->n_terms << 16 | (uint64_t)a->word << 32);
    put(out, along);
}

// What is known of axes and strides while compiling.
static void put_axes(lf_text *out, const lf_loop *l) {
    for (unsigned a = 0; a < (unsigned)l->rows + l->cols; a++) {
        int64_t extent = -1; // no extent
        lf_loop_fixed_extent(l, a, &extent);
        put(out, (uint64_t)extent);
    }
    for (uint32_t i = 0; i < l->n_accesses; i++) put(out, lf_loop_alike(l, i));
}

void lf_loop_key(const lf_loop *l, lf_text *out) {
    put(out, (uint64_t)l->form | (uint64_t)l->descending << 8 | (uint64_t)l->mode << 16 | (uint64_t)l->rows << 24 |
                 (uint64_t)l->cols << 32 | (uint64_t)l->indexed << 40 | (uint64_t)l->reduces << 41 |
                 (uint64_t)l->passes << 48);
    for (unsigned i = 0; i < LF_MAX_KEYS; i++) put(out, l->keys[i]);
    put(out, l->extents_word | (uint64_t)l->n_words << 32);
    put(out, l->error_word | (uint64_t)l->workspace_word << 32);
    put(out, l->scratch_word | (uint64_t)l->n_stmts << 32);
    put(out, l->weight | (uint64_t)l->kept << 16 | (uint64_t)l->reductions << 24 | (uint64_t)l->folds << 32);
    put(out, l->share_word);
    put(out, l->n_accesses | (uint64_t)l->n_scalars << 32);
    lf_text_append(out, l->schedule ? l->schedule : "", l->schedule ? strlen(l->schedule) + 1 : 1);
    for (uint32_t i = 0; i < l->n_stmts; i++) put_stmt(out, &l->stmts[i]);
    for (uint32_t i = 0; i < l->n_accesses; i++) put_access(out, &l->accesses[i]);
    put_axes(out, l);
    for (uint32_t i = 0; i < l->n_scalars; i++) put(out, l->scalar_words[i] | (uint64_t)l->scalars[i]->type.dtype << 32);
}

// ---- host code -----------------------------------------------------------------------------------------------------------------

typedef struct host_key {
    const lf_program *p;
    lf_text *out;
    bool *needed;     // by value id
    uint32_t *number; // by value id: dense, in program order
    uint32_t *param;  // by value id: number of the parameter
} host_key;

// Leaves are found in slots, whatever they were made from.
static bool is_leaf(const lf_op *op) {
    if (op->code == LF_OP_ITEM && op->results[0].where == LF_PENDING) return true;
    return op->code == LF_OP_CONST || op->code == LF_OP_PARAM || op->code == LF_OP_EXTENT || op->code == LF_OP_PITCH ||
           op->code == LF_OP_SLOT;
}

static void mark_needed(host_key *h) {
    const lf_program *p = h->p;
    for (uint32_t i = 0; i < p->n_stores; i++) h->needed[lf_resolve(p->stores[i].value)->id] = true;
    for (uint32_t i = 0; i < p->abi.n_finishes; i++) {
        h->needed[p->finishes[i].value->id] = true;
        for (uint32_t k = 0; k < p->abi.finishes[i].n_operands; k++) h->needed[p->finishes[i].from[k]->id] = true;
    }
    for (uint32_t i = 0; i < p->abi.n_checks; i++)
        for (uint32_t k = 0; k < p->checks[i]->n_operands; k++) h->needed[p->checks[i]->operands[k]->id] = true;
    for (const lf_op *op = p->graph->last; op; op = op->prev) {
        bool any = false;
        for (uint32_t k = 0; k < op->n_results; k++) any |= h->needed[op->results[k].id];
        for (uint32_t k = 0; any && !op->alias && !is_leaf(op) && k < op->n_operands; k++)
            if (op->operands[k]) h->needed[op->operands[k]->id] = true;
    }
}

static void put_leaf(host_key *h, const lf_op *op) {
    const lf_value *v = op->code == LF_OP_EXTENT || op->code == LF_OP_PITCH ? op->operands[0] : &op->results[0];
    uint32_t slot = op->code == LF_OP_SLOT ? op->slot : 0;
    if (v->def->code == LF_OP_PARAM) slot = h->p->param_slots[h->param[v->id]];
    put(h->out, (uint64_t)slot | (uint64_t)(uint8_t)op->axis << 32 | (uint64_t)v->type.rank << 40 |
                    (uint64_t)v->type.host << 48 | (uint64_t)v->type.tensor << 49);
    if (op->code == LF_OP_CONST) put_constant(h->out, v->type.dtype, &op->constant);
}

static void put_values(host_key *h) {
    uint32_t n = 0;
    for (const lf_op *op = h->p->graph->first; op; op = op->next) {
        for (uint32_t r = 0; r < op->n_results && !op->alias; r++) {
            if (!h->needed[op->results[r].id]) continue;
            h->number[op->results[r].id] = n++;
            put_op(h->out, op);
            put(h->out, r | (uint64_t)op->results[r].where << 32);
            if (is_leaf(op)) put_leaf(h, op);
            for (uint32_t k = 0; !is_leaf(op) && k < op->n_operands; k++)
                put(h->out, op->operands[k] ? h->number[op->operands[k]->id] : UINT32_MAX);
        }
    }
}

static void put_finish(host_key *h, uint32_t number) {
    const lfuser_abi_finish *f = &h->p->abi.finishes[number];
    const lf_program_finish *values = &h->p->finishes[number];
    put(h->out, f->n_operands | (uint64_t)f->result << 32);
    put(h->out, h->number[values->value->id]);
    for (uint32_t k = 0; k < f->n_operands; k++)
        put(h->out, h->number[values->from[k]->id] | (uint64_t)h->p->abi.finish_operands[f->first_operand + k].word << 32);
}

void lf_program_host_key(const lf_program *p, lf_text *out) {
    size_t n = p->graph->n_values + 1u;
    host_key h = {.p = p, .out = out};
    lf_arena arena;
    lf_arena_init(&arena, out->allocator);
    h.needed = LF_ARENA_ARRAY(&arena, bool, n);
    h.number = LF_ARENA_ARRAY(&arena, uint32_t, n);
    h.param = LF_ARENA_ARRAY(&arena, uint32_t, n);
    if (arena.failed) {
        out->failed = true;
    } else {
        for (uint32_t i = 0; i < p->graph->n_params; i++) h.param[p->graph->params[i]->id] = i;
        mark_needed(&h);
        put_values(&h);
        for (uint32_t i = 0; i < p->n_stores; i++) {
            put(out, (uint64_t)p->stores[i].phase | (uint64_t)p->stores[i].stage << 8 | (uint64_t)p->stores[i].slot << 32);
            put(out, h.number[lf_resolve(p->stores[i].value)->id]);
        }
        put(out, p->abi.n_stages | (uint64_t)p->abi.n_fetches << 32);
        for (uint32_t i = 0; i < p->abi.n_fetches; i++) {
            put(out, p->fetches[i].slot | (uint64_t)p->fetches[i].stage << 32);
            put(out, h.needed[p->fetches[i].value->id] ? h.number[p->fetches[i].value->id] : UINT32_MAX);
        }
        put(out, p->abi.n_finishes);
        for (uint32_t i = 0; i < p->abi.n_finishes; i++) put_finish(&h, i);
        put(out, p->abi.n_checks | (uint64_t)p->abi.numbers_slot << 32);
        for (uint32_t i = 0; i < p->abi.n_checks; i++) {
            put(out, p->checks[i]->n_operands | (uint64_t)p->check_stages[i] << 32);
            for (uint32_t k = 0; k < p->checks[i]->n_operands; k++) put(out, h.number[p->checks[i]->operands[k]->id]);
        }
    }
    lf_arena_finish(&arena);
}
