// Outputs that the host finishes, in the plan of a program: where their operands lie, and the mailboxes that kernels deliver to for
// them (see launch_abi.h). Which outputs these are: lib/partition/finish.c.
#include "schedule/planner.h"

_Static_assert(LF_NO_FINISH == LFUSER_ABI_NONE && LF_NO_OUTPUT == LFUSER_ABI_NONE && LF_NO_ARRIVAL == LFUSER_ABI_NONE,
               "numbers are passed on as they are");

static lf_status plan_arrivals(lf_planner *pl) {
    const lf_partition *p = pl->partition;
    lfuser_abi_arrival *arrivals = LF_ARENA_ARRAY(pl->arena, lfuser_abi_arrival, p->n_arrivals);
    if (!arrivals) return lf_out_of_memory();
    for (uint32_t i = 0; i < p->n_arrivals; i++) {
        const lf_arrival *from = &p->arrivals[i];
        bool own = from->output == LF_NO_OUTPUT;
        arrivals[i] = (lfuser_abi_arrival){own ? lf_planner_slots(pl, 1) : LFUSER_ABI_NONE, from->output,
                                           (uint8_t)from->value->type.dtype};
    }
    pl->program->abi.arrivals = arrivals;
    pl->program->abi.n_arrivals = p->n_arrivals;
    return NULL;
}

static lf_status plan_operand(lf_planner *pl, lf_value *v, uint8_t word, lfuser_abi_finish_operand *out) {
    uint32_t stage = 0, words = lf_words_of(v->type.dtype);
    *out = (lfuser_abi_finish_operand){lf_node_of(pl->partition, v)->arrival, LFUSER_ABI_NONE, word, (uint8_t)words};
    if (out->arrival != LFUSER_ABI_NONE) return NULL;
    out->slot = lf_planner_slots(pl, words);
    return lf_planner_result(pl, v, out->slot, &stage);
}

lf_status lf_planner_finishes(lf_planner *pl) {
    const lf_partition *p = pl->partition;
    lfuser_abi_program *abi = &pl->program->abi;
    LF_TRY(plan_arrivals(pl));
    uint32_t n_operands = 0, at = 0;
    for (uint32_t i = 0; i < p->n_finishes; i++) n_operands += p->finishes[i].n_from;
    lfuser_abi_finish *finishes = LF_ARENA_ARRAY(pl->arena, lfuser_abi_finish, p->n_finishes);
    lfuser_abi_finish_operand *operands = LF_ARENA_ARRAY(pl->arena, lfuser_abi_finish_operand, n_operands);
    lf_program_finish *values = LF_ARENA_ARRAY(pl->arena, lf_program_finish, p->n_finishes);
    lf_value **from = LF_ARENA_ARRAY(pl->arena, lf_value *, n_operands);
    if (!finishes || !operands || !values || !from) return lf_out_of_memory();
    for (uint32_t i = 0; i < p->n_finishes; i++) {
        const lf_finish *f = &p->finishes[i];
        values[i] = (lf_program_finish){f->value, from + at};
        finishes[i] = (lfuser_abi_finish){at, f->n_from, 0};
        for (uint32_t k = 0; k < f->n_from; k++, at++) {
            from[at] = f->from[k];
            LF_TRY(plan_operand(pl, f->from[k], finishes[i].result, &operands[at]));
            finishes[i].result = (uint8_t)(finishes[i].result + operands[at].n_words);
        }
    }
    pl->program->finishes = values;
    abi->finishes = finishes;
    abi->finish_operands = operands;
    abi->n_finishes = p->n_finishes;
    abi->n_finish_operands = n_operands;
    return NULL;
}
