// A program as text: frame, checks, launches.
#include "base/text.h"
#include "schedule/program.h"

static const char *const kinds[] = {"scalar", "pending", "host tensor", "tensor"};

static void put_stage(const lf_program *p, uint32_t number, lf_arena *arena, lf_text *t) {
    const lfuser_abi_program *abi = &p->abi;
    const lfuser_abi_stage *stage = &abi->stages[number];
    if (abi->n_stages > 1) lf_text_put(t, "stage %u:\n", number);
    for (uint32_t i = stage->first_fetch; i < stage->first_fetch + stage->n_fetches; i++)
        lf_text_put(t, "  slot %-4u = %s, waited for (mailbox in slot %u)\n", abi->fetches[i].slot,
                    lf_value_text(arena, p->fetches[i].value), abi->fetches[i].box_slot);
    for (uint32_t phase = LF_PHASE_INFER; phase <= LF_PHASE_BIND; phase++) {
        lf_text_put(t, "%s:\n", phase == LF_PHASE_INFER ? "infer" : "bind");
        for (uint32_t i = 0; i < p->n_stores; i++)
            if (p->stores[i].phase == phase && p->stores[i].stage == number)
                lf_text_put(t, "  slot %-4u = %s\n", p->stores[i].slot, lf_value_text(arena, p->stores[i].value));
    }
    lf_text_put(t, "launches:\n");
    for (uint32_t i = stage->first_launch; i < stage->first_launch + stage->n_launches; i++) {
        const lfuser_abi_launch *l = &abi->launches[i];
        lf_text_put(t, "  %s: rows %u, columns %u, %u accesses, argument block slots %u..%u", l->name, l->rows, l->cols,
                    l->n_accesses, l->args_slot, l->args_slot + l->n_args);
        if (l->guard != LFUSER_ABI_NONE) lf_text_put(t, ", if slot %u", l->guard);
        if (l->mixed == i) lf_text_put(t, ", where rows and columns can be shared out together");
        if (l->mixed != LFUSER_ABI_NONE && l->mixed != i)
            lf_text_put(t, ", if %s is %slaunched", abi->launches[l->mixed].name, l->instead ? "not " : "");
        lf_text_put(t, "\n");
    }
}

// Operands and results are words of the finish.
static void put_finish(const lf_program *p, uint32_t number, lf_arena *arena, lf_text *t) {
    const lfuser_abi_finish *f = &p->abi.finishes[number];
    lf_text_put(t, "finish %u:\n", number);
    for (uint32_t i = 0; i < f->n_operands; i++) {
        const lfuser_abi_finish_operand *o = &p->abi.finish_operands[f->first_operand + i];
        const char *value = lf_value_text(arena, p->finishes[number].from[i]);
        if (o->arrival == LFUSER_ABI_NONE)
            lf_text_put(t, "  word %-4u = %s, kept from slot %u\n", o->word, value, o->slot);
        else if (p->abi.arrivals[o->arrival].output != LFUSER_ABI_NONE)
            lf_text_put(t, "  word %-4u = %s, arrives (output %u)\n", o->word, value, p->abi.arrivals[o->arrival].output);
        else
            lf_text_put(t, "  word %-4u = %s, arrives (mailbox in slot %u)\n", o->word, value,
                        p->abi.arrivals[o->arrival].box_slot);
    }
    lf_text_put(t, "  word %-4u : %s\n", f->result, lf_value_text(arena, p->finishes[number].value));
}

lf_status lf_program_print(const lf_program *p, char **out_text) {
    lf_arena arena;
    lf_arena_init(&arena, p->arena.allocator);
    lf_text t;
    lf_text_init(&t, p->arena.allocator);
    const lfuser_abi_program *abi = &p->abi;
    lf_text_put(&t, "program @%s: %u slots\n", abi->name, abi->n_slots);
    for (uint32_t i = 0; i < abi->n_params; i++)
        lf_text_put(&t, "  param  %%%-10s %-11s %-4s rank %u  slot %u%s\n", abi->params[i].name, kinds[abi->params[i].kind],
                    lf_dtype_name((lf_dtype)abi->params[i].dtype), abi->params[i].rank, abi->params[i].slot,
                    abi->params[i].written ? "  written" : "");
    for (uint32_t i = 0; i < abi->n_outputs; i++) {
        const lfuser_abi_output *o = &abi->outputs[i];
        lf_text_put(&t, "  output %%%-10s %-11s %-4s rank %u  slot %u", o->name ? o->name : "", kinds[o->kind],
                    lf_dtype_name((lf_dtype)o->dtype), o->rank, o->slot);
        if (o->into != LFUSER_ABI_NONE) lf_text_put(&t, "  into %%%s", abi->params[o->into].name);
        if (o->finish != LFUSER_ABI_NONE) lf_text_put(&t, "  from finish %u", o->finish);
        lf_text_put(&t, "\n");
    }
    for (uint32_t i = 0; i < abi->n_constants; i++)
        lf_text_put(&t, "  constant %llu bytes  slot %u\n", (unsigned long long)abi->constants[i].bytes,
                    abi->constants[i].slot);
    for (uint32_t i = 0; i < abi->n_checks; i++) lf_text_put(&t, "  check  %u: %s\n", i, abi->checks[i].message);
    for (uint32_t i = 0; i < abi->n_stages; i++) put_stage(p, i, &arena, &t);
    for (uint32_t i = 0; i < abi->n_finishes; i++) put_finish(p, i, &arena, &t);
    if (arena.failed) t.failed = true;
    lf_arena_finish(&arena);
    return lf_text_take(&t, out_text);
}
