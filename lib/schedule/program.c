// The plan of a whole fusion: slots of the frame, buffers, workspace, argument blocks, launches (see program.h).
// Does not belong here: what a kernel computes (lower*.c), which ops share one (lib/partition).
#include "schedule/planner.h"
#include "base/timing.h"
#include <string.h>

uint32_t lf_planner_slots(lf_planner *pl, uint32_t n) {
    uint32_t first = pl->n_slots;
    pl->n_slots += n;
    return first;
}

lf_status lf_planner_store(lf_planner *pl, lf_value *value, uint32_t slot, lf_phase phase) {
    if (!value) value = lf_const_int(pl->g, 0);
    if (!value || !lf_vec_push(&pl->stores, ((lf_slot_store){value, slot, phase, pl->stage}))) return lf_out_of_memory();
    return NULL;
}

lf_status lf_planner_result(lf_planner *pl, lf_value *value, uint32_t slot, uint32_t *io_stage) {
    uint32_t stage = lf_known_stage(pl->partition, value);
    if (!value || !lf_vec_push(&pl->stores, ((lf_slot_store){value, slot, LF_PHASE_INFER, stage})))
        return lf_out_of_memory();
    if (*io_stage < stage) *io_stage = stage;
    return NULL;
}

// ---- parameters, outputs, checks -----------------------------------------------------------------------------------------------

static lf_status plan_params(lf_planner *pl) {
    lf_graph *g = pl->g;
    lfuser_abi_param *params = LF_ARENA_ARRAY(pl->arena, lfuser_abi_param, g->n_params);
    uint32_t *slots = LF_ARENA_ARRAY(pl->arena, uint32_t, g->n_params);
    if (!params || !slots) return lf_out_of_memory();
    for (uint32_t i = 0; i < g->n_params; i++) {
        const lf_value *v = g->params[i];
        uint8_t kind = !v->type.tensor ? LFUSER_ABI_SCALAR : v->type.host ? LFUSER_ABI_HOST_TENSOR : LFUSER_ABI_TENSOR;
        slots[i] = lf_planner_slots(pl, kind == LFUSER_ABI_TENSOR ? 1 + 2u * v->type.rank : lf_words_of(v->type.dtype));
        params[i] = (lfuser_abi_param){v->name, kind, (uint8_t)v->type.dtype, v->type.rank, false, slots[i]};
        for (uint32_t k = 0; k < g->n_outputs; k++) params[i].written |= g->outputs[k].into == v;
    }
    pl->program->param_slots = slots;
    pl->program->abi.params = params;
    pl->program->abi.n_params = g->n_params;
    return NULL;
}

uint32_t lf_param_number(const lf_graph *g, const lf_value *v) {
    for (uint32_t i = 0; i < g->n_params; i++)
        if (g->params[i] == v) return i;
    return LFUSER_ABI_NONE;
}

static lf_status plan_outputs(lf_planner *pl) {
    lf_graph *g = pl->g;
    lfuser_abi_output *outputs = LF_ARENA_ARRAY(pl->arena, lfuser_abi_output, g->n_outputs);
    pl->output_slots = LF_ARENA_ARRAY(pl->arena, uint32_t, g->n_outputs);
    if (!outputs || !pl->output_slots) return lf_out_of_memory();
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const lf_output *o = &g->outputs[i];
        lf_value *v = o->value;
        uint8_t kind = v->where == LF_ON_DEVICE              ? LFUSER_ABI_TENSOR
                       : v->type.tensor                      ? LFUSER_ABI_HOST_TENSOR
                       : lf_on_host_at_end(pl->partition, v) ? LFUSER_ABI_SCALAR
                                                             : LFUSER_ABI_PENDING;
        uint32_t slot = lf_planner_slots(pl, kind == LFUSER_ABI_TENSOR ? 1 + 2u * v->type.rank : lf_words_of(v->type.dtype));
        pl->output_slots[i] = slot;
        outputs[i] = (lfuser_abi_output){.name = o->name,
                                         .kind = kind,
                                         .dtype = (uint8_t)v->type.dtype,
                                         .rank = v->type.rank,
                                         .slot = slot,
                                         .into = o->into ? lf_param_number(g, o->into) : LFUSER_ABI_NONE,
                                         .finish = lf_node_of(pl->partition, v)->finish};
        if (kind == LFUSER_ABI_SCALAR || kind == LFUSER_ABI_HOST_TENSOR)
            LF_TRY(lf_planner_result(pl, v, slot, &outputs[i].stage));
        for (unsigned a = 0; kind == LFUSER_ABI_TENSOR && a < v->type.rank; a++)
            LF_TRY(lf_planner_result(pl, v->type.dims[a], slot + 1 + a, &outputs[i].stage));
    }
    pl->program->abi.outputs = outputs;
    pl->program->abi.n_outputs = g->n_outputs;
    return NULL;
}

static uint32_t check_stage(const lf_planner *pl, const lf_op *op) {
    uint32_t stage = 0;
    for (uint32_t k = 0; k < op->n_operands; k++) {
        uint32_t known = lf_known_stage(pl->partition, op->operands[k]);
        if (stage < known) stage = known;
    }
    return stage;
}

static lf_status plan_checks(lf_planner *pl) {
    uint32_t n = 0;
    for (const lf_op *op = pl->g->first; op; op = op->next) n += op->code == LF_OP_CHECK;
    lfuser_abi_check *checks = LF_ARENA_ARRAY(pl->arena, lfuser_abi_check, n);
    pl->program->checks = LF_ARENA_ARRAY(pl->arena, lf_op *, n);
    pl->program->check_stages = LF_ARENA_ARRAY(pl->arena, uint32_t, n);
    if (!checks || !pl->program->checks || !pl->program->check_stages) return lf_out_of_memory();
    uint32_t at = 0;
    for (lf_op *op = pl->g->first; op; op = op->next) {
        if (op->code != LF_OP_CHECK) continue;
        uint32_t numbers = op->n_operands - 1u;
        if (numbers > LFUSER_ABI_MAX_NUMBERS) numbers = LFUSER_ABI_MAX_NUMBERS;
        checks[at] = (lfuser_abi_check){op->message, op->place.line, op->place.column, numbers, {0}};
        for (uint32_t k = 0; k < numbers; k++) checks[at].dtypes[k] = (uint8_t)op->operands[k + 1]->type.dtype;
        pl->program->check_stages[at] = check_stage(pl, op);
        pl->program->checks[at++] = op;
    }
    pl->program->abi.checks = checks;
    pl->program->abi.n_checks = n;
    pl->program->abi.numbers_slot = lf_planner_slots(pl, 2 * LFUSER_ABI_MAX_NUMBERS);
    return NULL;
}

// ---- what kernels deliver -------------------------------------------------------------------------------------------------------

lf_status lf_planner_fetch(lf_planner *pl, const lf_value *v, lf_value **out_address) {
    *out_address = NULL;
    size_t i = 0;
    while (i < pl->fetches.count && pl->fetches.data[i].value != v) i++;
    if (i == pl->fetches.count) { // else: another version of the kernel
        uint32_t box = lf_planner_slots(pl, 1), slot = lf_planner_slots(pl, lf_words_of(v->type.dtype));
        if (!lf_vec_push(&pl->fetches, ((lf_fetch){v, slot, pl->stage + 1})) ||
            !lf_vec_push(&pl->abi_fetches, ((lfuser_abi_fetch){box, slot, (uint8_t)v->type.dtype})))
            return lf_out_of_memory();
    }
    *out_address = lf_slot_value(pl->g, pl->abi_fetches.data[i].box_slot);
    return *out_address ? NULL : lf_out_of_memory();
}

lf_value *lf_planner_arrival(lf_planner *pl, uint32_t number) {
    return lf_slot_value(pl->g, pl->program->abi.arrivals[number].box_slot);
}

uint32_t lf_planner_op_number(lf_planner *pl, const lf_op *op) {
    pl->reports_index_errors = true;
    for (size_t i = 0; i < pl->index_ops.count; i++)
        if (pl->index_ops.data[i] == op) return (uint32_t)i + 1;
    return lf_vec_push(&pl->index_ops, op) ? (uint32_t)pl->index_ops.count : 1;
}

// ---- launches ------------------------------------------------------------------------------------------------------------------

static lf_status find_pairs(lf_planner *pl) {
    lf_partition *p = pl->partition;
    bool *taken = LF_ARENA_ARRAY(pl->arena, bool, p->n_groups);
    if (!taken) return p->n_groups ? lf_out_of_memory() : NULL;
    for (uint32_t i = 0; i < p->n_groups; i++) {
        mixed_pair found = {.launch = LFUSER_ABI_NONE};
        if (!lf_mixed_find(p, i, taken, &found.mixed)) continue;
        taken[i] = true;
        if (found.mixed.rows != LF_NO_GROUP) taken[found.mixed.rows] = true;
        if (!lf_vec_push(&pl->pairs, found)) return lf_out_of_memory();
    }
    return pl->g->arena.failed ? lf_out_of_memory() : NULL;
}

static lf_status plan_walk(lf_planner *pl, mixed_pair *pair) {
    lf_loop *walk;
    lf_value *guard;
    LF_TRY(lf_lower_walk(pl, pl->partition, &pair->mixed, pl->arena, &walk, &pair->sizes, &guard));
    if (!walk) return NULL;
    LF_TRY(lf_loop_verify(pl->g->allocator, walk));
    pair->launch = (uint32_t)pl->launches.count;
    LF_TRY(lf_planner_launch(pl, walk, guard, pair->sizes.scratch));
    pl->launches.data[pair->launch].mixed = pair->launch;
    return NULL;
}

static lf_status plan_combine(lf_planner *pl, const mixed_pair *pair) {
    lf_loop *combine;
    LF_TRY(lf_lower_combine(pl, pl->partition, &pair->mixed, &pair->sizes, pl->arena, &combine));
    LF_TRY(lf_loop_verify(pl->g->allocator, combine));
    LF_TRY(lf_planner_launch(pl, combine, NULL, NULL));
    pl->launches.data[pl->launches.count - 1].mixed = pair->launch;
    pl->launches.data[pl->launches.count - 1].combines = true;
    return NULL;
}

static lf_status plan_plain(lf_planner *pl, uint32_t number);

static lf_status plan_group(lf_planner *pl, uint32_t number) {
    mixed_pair *pair = NULL;
    for (size_t i = 0; i < pl->pairs.count && !pair; i++)
        if (pl->pairs.data[i].mixed.rows == number || pl->pairs.data[i].mixed.columns == number) pair = &pl->pairs.data[i];
    bool first = pair && number == (pair->mixed.rows == LF_NO_GROUP ? pair->mixed.columns : pair->mixed.rows);
    if (!pair || first) LF_TRY(lf_planner_temporaries(pl, number, number));
    if (first && number != pair->mixed.columns) LF_TRY(lf_planner_temporaries(pl, pair->mixed.columns, number));
    if (first) LF_TRY(plan_walk(pl, pair));
    uint32_t from = (uint32_t)pl->launches.count;
    LF_TRY(plan_plain(pl, number));
    for (size_t i = from; pair && i < pl->launches.count; i++) {
        pl->launches.data[i].mixed = pair->launch;
        pl->launches.data[i].instead = pair->launch != LFUSER_ABI_NONE;
    }
    if (!pair || pair->launch == LFUSER_ABI_NONE || number != pair->mixed.columns) return NULL;
    return plan_combine(pl, pair);
}

static lf_status plan_plain(lf_planner *pl, uint32_t number) {
    lf_loop *loop;
    lf_value *assumption, *scratch;
    const char *name = lf_arena_printf(pl->arena, "%s.k%u", pl->g->name, number);
    if (!name) return lf_out_of_memory();
    LF_TRY(lf_lower_group(pl, pl->partition, number, false, pl->arena, name, &loop, &assumption, &scratch));
    LF_TRY(lf_loop_verify(pl->g->allocator, loop));
    LF_TRY(lf_planner_launch(pl, loop, assumption, scratch));
    if (!assumption) return NULL;
    // The same work for parameters of any strides, launched when the assumption does not hold.
    name = lf_arena_printf(pl->arena, "%s.k%u.any", pl->g->name, number);
    if (!name) return lf_out_of_memory();
    lf_value *otherwise = lf_scalar_op(pl->g, LF_OP_LNOT, LF_BOOL, assumption, NULL, NULL);
    lf_value *unused;
    LF_TRY(lf_lower_group(pl, pl->partition, number, true, pl->arena, name, &loop, &unused, &scratch));
    LF_TRY(lf_loop_verify(pl->g->allocator, loop));
    return lf_planner_launch(pl, loop, otherwise, scratch);
}

static lf_status plan_stage(lf_planner *pl, uint32_t stage) {
    lfuser_abi_stage *s = &pl->stages[stage];
    pl->stage = stage;
    pl->workspace = NULL;
    s->first_launch = (uint32_t)pl->launches.count;
    if (stage) s->first_fetch = pl->stages[stage - 1].first_fetch + pl->stages[stage - 1].n_fetches;
    s->n_fetches = (uint32_t)pl->fetches.count - s->first_fetch;
    for (uint32_t i = 0; i < pl->partition->n_groups; i++)
        if (pl->partition->groups[i]->stage == stage && !pl->partition->groups[i]->dead) LF_TRY(plan_group(pl, i));
    s->n_launches = (uint32_t)pl->launches.count - s->first_launch;
    return lf_planner_store(pl, pl->workspace, s->workspace_bytes_slot, LF_PHASE_INFER);
}

static lf_status plan_all(lf_planner *pl) {
    lfuser_abi_program *abi = &pl->program->abi;
    *abi = (lfuser_abi_program){.version = LFUSER_ABI_VERSION, .error_slot = LFUSER_ABI_NONE, .name = pl->g->name};
    LF_TRY(plan_params(pl));
    LF_TRY(plan_outputs(pl));
    LF_TRY(plan_checks(pl));
    LF_TRY(lf_planner_finishes(pl));
    abi->n_stages = pl->partition->n_stages;
    abi->stages = pl->stages = LF_ARENA_ARRAY(pl->arena, lfuser_abi_stage, abi->n_stages);
    if (!pl->stages) return lf_out_of_memory();
    for (uint32_t i = 0; i < abi->n_stages; i++) {
        pl->stages[i].workspace_slot = lf_planner_slots(pl, 1);
        pl->stages[i].workspace_bytes_slot = lf_planner_slots(pl, 1);
    }
    LF_TRY(find_pairs(pl));
    for (uint32_t i = 0; i < abi->n_stages; i++) LF_TRY(plan_stage(pl, i));
    return NULL;
}

#define KEEP(pl, vec, type, out, n)                                                                                         \
    ((out) = LF_ARENA_ARRAY((pl)->arena, type, (pl)->vec.count), (n) = (uint32_t)(pl)->vec.count,                           \
     (out) && (pl)->vec.count ? (void)memcpy((void *)(uintptr_t)(out), (pl)->vec.data, (pl)->vec.count * sizeof(type))      \
                              : (void)0)

static lf_status keep_all(lf_planner *pl) {
    lf_program *p = pl->program;
    lfuser_abi_launch *launches;
    lfuser_abi_constant *constants;
    lfuser_abi_fetch *fetches;
    uint32_t kernels;
    KEEP(pl, launches, lfuser_abi_launch, launches, p->abi.n_launches);
    KEEP(pl, constants, lfuser_abi_constant, constants, p->abi.n_constants);
    KEEP(pl, kernels, lf_loop *, p->kernels, kernels);
    KEEP(pl, stores, lf_slot_store, p->stores, p->n_stores);
    KEEP(pl, index_ops, const lf_op *, p->index_ops, p->n_index_ops);
    KEEP(pl, fetches, lf_fetch, p->fetches, p->abi.n_fetches);
    KEEP(pl, abi_fetches, lfuser_abi_fetch, fetches, p->abi.n_fetches);
    p->abi.fetches = fetches;
    p->abi.launches = launches;
    p->abi.constants = constants;
    p->abi.n_kernels = kernels;
    p->abi.n_slots = pl->n_slots;
    return pl->arena->failed ? lf_out_of_memory() : NULL;
}

lf_status lf_program_create(lf_graph *g, uint32_t debug, bool fast, lf_program **out_program) {
    *out_program = NULL;
    lf_program *p = lf_alloc_zero(g->allocator, sizeof *p);
    if (!p) return lf_out_of_memory();
    lf_arena_init(&p->arena, g->allocator);
    p->graph = g;
    p->debug = debug;
    p->fast = fast;
    lf_planner pl = {.program = p, .g = g, .arena = &p->arena};
    lf_vec_init(&pl.stores, g->allocator);
    lf_vec_init(&pl.stretches, g->allocator);
    lf_vec_init(&pl.kernels, g->allocator);
    lf_vec_init(&pl.launches, g->allocator);
    lf_vec_init(&pl.constants, g->allocator);
    lf_vec_init(&pl.constant_ops, g->allocator);
    lf_vec_init(&pl.index_ops, g->allocator);
    lf_vec_init(&pl.fetches, g->allocator);
    lf_vec_init(&pl.abi_fetches, g->allocator);
    lf_vec_init(&pl.pairs, g->allocator);
    uint64_t start = lf_now_ns();
    lf_status s = lf_partition_create(g, debug, &pl.partition);
    p->partition_ns = lf_now_ns() - start;
    if (!s) s = plan_all(&pl);
    if (!s) s = keep_all(&pl);
    if (!s && g->arena.failed) s = lf_out_of_memory();
    lf_partition_destroy(pl.partition);
    lf_vec_finish(&pl.stores);
    lf_vec_finish(&pl.stretches);
    lf_vec_finish(&pl.kernels);
    lf_vec_finish(&pl.launches);
    lf_vec_finish(&pl.constants);
    lf_vec_finish(&pl.constant_ops);
    lf_vec_finish(&pl.index_ops);
    lf_vec_finish(&pl.fetches);
    lf_vec_finish(&pl.abi_fetches);
    lf_vec_finish(&pl.pairs);
    if (s) return lf_program_destroy(p), s;
    *out_program = p;
    return NULL;
}

void lf_program_destroy(lf_program *p) {
    if (!p) return;
    const lf_allocator *a = p->arena.allocator;
    lf_arena_finish(&p->arena);
    lf_free(a, p);
}
