// The plan of a whole fusion: slots of the frame, buffers, workspace, argument blocks, launches (see program.h).
// Does not belong here: what a kernel computes (lower*.c), which ops share one (lib/partition).
#include "schedule/planner.h"
#include "base/timing.h"
#include <string.h>

enum { ALIGNMENT = 256 };

uint32_t lf_planner_slots(lf_planner *pl, uint32_t n) {
    uint32_t first = pl->n_slots;
    pl->n_slots += n;
    return first;
}

static lf_status add_store(lf_planner *pl, lf_value *value, uint32_t slot, lf_phase phase) {
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

static uint32_t param_number(const lf_graph *g, const lf_value *v) {
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
                                         .into = o->into ? param_number(g, o->into) : LFUSER_ABI_NONE,
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

// ---- buffers -------------------------------------------------------------------------------------------------------------------

static lf_status constant_buffer(lf_planner *pl, const lf_value *v, lf_buffer *out) {
    uint32_t slot = LFUSER_ABI_NONE;
    for (size_t i = 0; i < pl->constant_ops.count; i++)
        if (pl->constant_ops.data[i] == v->def) slot = pl->constants.data[i].slot;
    if (slot == LFUSER_ABI_NONE) {
        slot = lf_planner_slots(pl, 1);
        if (!lf_vec_push(&pl->constants, ((lfuser_abi_constant){v->def->data, v->def->data_bytes, slot})) ||
            !lf_vec_push(&pl->constant_ops, v->def))
            return lf_out_of_memory();
    }
    *out = (lf_buffer){.value = v, .address = lf_slot_value(pl->g, slot), .row_major = true};
    lf_row_major(pl->g, &v->type, out->strides);
    return NULL;
}

lf_status lf_planner_buffer(lf_planner *pl, const lf_value *v, lf_buffer *out) {
    if (v->def->code == LF_OP_TENSOR) return constant_buffer(pl, v, out);
    if (v->def->code == LF_OP_PARAM) {
        uint32_t slot = pl->program->param_slots[param_number(pl->g, v)];
        *out = (lf_buffer){.value = v, .address = lf_slot_value(pl->g, slot)};
        for (unsigned a = 0; a < v->type.rank; a++) out->strides[a] = lf_slot_value(pl->g, slot + 1 + v->type.rank + a);
        return pl->g->arena.failed ? lf_out_of_memory() : NULL;
    }
    for (size_t i = 0; i < pl->stretches.count; i++) {
        const stretch *s = &pl->stretches.data[i];
        if (s->value != v) continue;
        *out = (lf_buffer){.value = v, .row_major = true};
        out->address = lf_host_add(pl->g, lf_slot_value(pl->g, pl->stages[s->stage].workspace_slot), s->offset);
        lf_row_major(pl->g, &v->type, out->strides);
        return pl->g->arena.failed ? lf_out_of_memory() : NULL;
    }
    return lf_error_at(pl->g->allocator, LF_INTERNAL, v->def->place, "the value of '%s' is read but stored nowhere",
                       lf_op_info_of(v->def->code)->name);
}

lf_status lf_planner_output(lf_planner *pl, uint32_t output, lf_buffer *out) {
    const lf_value *v = pl->g->outputs[output].written; // the name that the user gave
    uint32_t slot = pl->output_slots[output];
    *out = (lf_buffer){.value = v, .address = lf_slot_value(pl->g, slot)};
    for (unsigned a = 0; a < v->type.rank; a++) out->strides[a] = lf_slot_value(pl->g, slot + 1 + v->type.rank + a);
    return pl->g->arena.failed ? lf_out_of_memory() : NULL;
}

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

static lf_value *round_up(lf_graph *g, lf_value *bytes) {
    lf_value *capped = lf_scalar_op(g, LF_OP_MIN, LF_I64, bytes, lf_const_int(g, INT64_MAX - ALIGNMENT), NULL);
    lf_value *up = lf_scalar_op(g, LF_OP_ADD, LF_I64, capped, lf_const_int(g, ALIGNMENT - 1), NULL);
    return lf_scalar_op(g, LF_OP_AND, LF_I64, up, lf_const_int(g, -ALIGNMENT), NULL);
}

// Bytes of a value, rounded up; saturating, so that an absurd size is refused by the allocation and never wraps.
static lf_value *rounded_bytes(lf_graph *g, const lf_type *type, unsigned element) {
    return round_up(g, lf_extent_mul(g, lf_numel_of(g, type), lf_const_int(g, element)));
}

// Sizes add up, saturating like the products.
static lf_value *add_bytes(lf_graph *g, lf_value *a, lf_value *b) {
    if (!a) return b;
    lf_value *room = lf_scalar_op(g, LF_OP_SUB, LF_I64, lf_const_int(g, INT64_MAX), b, NULL);
    return lf_scalar_op(g, LF_OP_ADD, LF_I64, lf_scalar_op(g, LF_OP_MIN, LF_I64, a, room, NULL), b, NULL);
}

static lf_status place_temporary(lf_planner *pl, const lf_value *v, uint32_t group) {
    lf_value *bytes = rounded_bytes(pl->g, &v->type, lf_dtype_bytes(v->type.dtype));
    if (!bytes) return lf_out_of_memory();
    uint32_t last = lf_node_of(pl->partition, v)->last_reader;
    for (size_t i = 0; i < pl->stretches.count; i++) { // the place of a value of the same size that nobody reads any more
        stretch *s = &pl->stretches.data[i];
        if (s->stage != pl->stage || s->free_after >= group || !lf_same_extent(s->bytes, bytes)) continue;
        stretch reused = {v, bytes, s->offset, last, pl->stage};
        s->free_after = UINT32_MAX; // given away
        s->value = NULL;
        return lf_vec_push(&pl->stretches, reused) ? NULL : lf_out_of_memory();
    }
    stretch fresh = {v, bytes, pl->workspace, last, pl->stage};
    pl->workspace = add_bytes(pl->g, pl->workspace, bytes);
    return lf_vec_push(&pl->stretches, fresh) ? NULL : lf_out_of_memory();
}

lf_status lf_planner_scratch(lf_planner *pl, const lf_type *type, lf_value **out_address) {
    return lf_planner_bytes(pl, rounded_bytes(pl->g, type, lf_dtype_bytes(type->dtype) > 4 ? 32 : 16), out_address);
}

lf_status lf_planner_bytes(lf_planner *pl, lf_value *bytes, lf_value **out_address) {
    lf_graph *g = pl->g;
    *out_address = lf_host_add(g, lf_slot_value(g, pl->stages[pl->stage].workspace_slot), pl->workspace);
    if (bytes) pl->workspace = add_bytes(g, pl->workspace, round_up(g, bytes));
    return g->arena.failed ? lf_out_of_memory() : NULL;
}

// ---- launches ------------------------------------------------------------------------------------------------------------------

static lf_value *product(lf_graph *g, lf_value *const *extents, unsigned n) {
    lf_value *v = lf_const_int(g, 1);
    for (unsigned i = 0; i < n; i++) v = lf_extent_mul(g, v, extents[i]);
    return v;
}

// Scratch memory for partial results (launch_abi.h), for the devices and shapes that use it: a two-thousandth of what is reduced.
static lf_status split_scratch(lf_planner *pl, const lf_loop *loop, lf_value **out_address) {
    lf_graph *g = pl->g;
    unsigned reductions = 0;
    for (uint32_t i = 0; i < loop->n_stmts; i++) reductions += loop->stmts[i].kind == LF_STMT_REDUCE;
    lf_value *rows = product(g, loop->extents, loop->rows), *columns = product(g, loop->extents + loop->rows, loop->cols);
    lf_value *capped = lf_scalar_op(g, LF_OP_MIN, LF_I64, columns, lf_const_int(g, INT64_MAX - LFUSER_ABI_CHUNK), NULL);
    lf_value *chunks = lf_scalar_op(g, LF_OP_CEILDIV, LF_I64, capped, lf_const_int(g, LFUSER_ABI_CHUNK), NULL);
    lf_value *cells =
        lf_extent_mul(g, lf_extent_mul(g, rows, chunks), lf_const_int(g, (int64_t)LFUSER_ABI_PARTIAL_BYTES * reductions));
    lf_value *bytes = round_up(g, cells);
    *out_address = lf_host_add(g, lf_slot_value(g, pl->stages[pl->stage].workspace_slot), pl->workspace);
    pl->workspace = add_bytes(g, pl->workspace, bytes);
    return g->arena.failed ? lf_out_of_memory() : NULL;
}

// Scratch memory of a scan whose rows blocks share (launch_abi.h), at the finest cut.
static lf_status scan_scratch(lf_planner *pl, const lf_loop *loop, lf_value **out_address) {
    enum {
        COLUMNS = LFUSER_ABI_SCAN_WARPS * LFUSER_ABI_SCAN_COLUMNS,
        PADDING = 31,
        CELL = 8 + 2 * LFUSER_ABI_PARTIAL_BYTES
    };
    lf_graph *g = pl->g;
    lf_value *rows = product(g, loop->extents, loop->rows), *columns = product(g, loop->extents + loop->rows, loop->cols);
    lf_value *tiles = lf_scalar_op(g, LF_OP_CEILDIV, LF_I64,
                                   lf_scalar_op(g, LF_OP_MIN, LF_I64, columns, lf_const_int(g, INT64_MAX - COLUMNS), NULL),
                                   lf_const_int(g, COLUMNS), NULL);
    lf_value *cells = lf_extent_mul(g, add_bytes(g, rows, lf_const_int(g, PADDING)), tiles);
    lf_value *bytes = round_up(
        g, add_bytes(g, lf_extent_mul(g, cells, lf_const_int(g, CELL)), lf_const_int(g, LFUSER_ABI_SCAN_HEAD + ALIGNMENT)));
    *out_address = lf_host_add(g, lf_slot_value(g, pl->stages[pl->stage].workspace_slot), pl->workspace);
    pl->workspace = add_bytes(g, pl->workspace, bytes);
    return g->arena.failed ? lf_out_of_memory() : NULL;
}

// Counters of a sort's runs (launch_abi.h): of each tile twice 4 bytes, and twice that for the power of two.
static lf_status sort_scratch(lf_planner *pl, const lf_loop *loop, lf_value **out_address) {
    lf_graph *g = pl->g;
    lf_value *rows = product(g, loop->extents, loop->rows), *columns = product(g, loop->extents + loop->rows, loop->cols);
    lf_value *tiles =
        lf_scalar_op(g, LF_OP_CEILDIV, LF_I64,
                     lf_scalar_op(g, LF_OP_MIN, LF_I64, columns, lf_const_int(g, INT64_MAX - LFUSER_ABI_SORT_TILE), NULL),
                     lf_const_int(g, LFUSER_ABI_SORT_TILE), NULL);
    lf_value *counters = lf_extent_mul(g, lf_extent_mul(g, rows, tiles), lf_const_int(g, 16));
    *out_address = lf_host_add(g, lf_slot_value(g, pl->stages[pl->stage].workspace_slot), pl->workspace);
    pl->workspace = add_bytes(g, pl->workspace, round_up(g, add_bytes(g, counters, lf_const_int(g, LFUSER_ABI_SCAN_HEAD))));
    return g->arena.failed ? lf_out_of_memory() : NULL;
}

// Parts of a chunk that scratch memory has room for: PARTIAL_BYTES for values, or half of them where positions need the rest.
static uint8_t parts_of(const lf_loop *loop) {
    unsigned parts = LF_MOST_PARTS;
    for (uint32_t i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        if (s->kind != LF_STMT_REDUCE) continue;
        unsigned bytes = lf_dtype_bytes(s->compute), room = LFUSER_ABI_PARTIAL_BYTES;
        if (lf_stmt_has_position(s)) room /= 2, bytes = bytes > 8 ? bytes : 8;
        while (parts * bytes > room) parts /= 2;
    }
    return (uint8_t)parts;
}

// No guard and no explicit index.
static bool is_plain(const lf_loop *loop, uint32_t access) {
    if (loop->accesses[access].n_terms) return false;
    for (uint32_t i = 0; i < loop->n_stmts; i++) {
        const lf_stmt *s = &loop->stmts[i];
        if ((s->kind == LF_STMT_LOAD || s->kind == LF_STMT_STORE) && s->number == access && s->guard != LF_NO_STMT)
            return false;
    }
    return true;
}

static bool is_product(const lf_loop *loop) {
    return loop->form == LF_LOOP_PLAIN && loop->keys[LF_PRODUCT_SUM] != LF_NO_STMT;
}

static lf_status add_launch(lf_planner *pl, lf_loop *loop, lf_value *guard, lf_value *scratch) {
    lfuser_abi_launch launch = {.kernel = (uint32_t)pl->kernels.count,
                                .guard = LFUSER_ABI_NONE,
                                .n_args = loop->n_words,
                                .rows = loop->rows,
                                .cols = loop->cols,
                                .merge_rows = lf_loop_free_axes(loop, 0, loop->rows),
                                .merge_cols = lf_loop_free_axes(loop, loop->rows, loop->cols),
                                .single = loop->form == LF_LOOP_SORT || loop->form == LF_LOOP_SCATTER,
                                .sorts = loop->form == LF_LOOP_SORT,
                                .scans = loop->form == LF_LOOP_SERIAL,
                                .multiplies = is_product(loop),
                                .reads_once = pl->program->fast && lf_loop_reads_once(loop),
                                .weight = loop->weight,
                                .kept = loop->kept,
                                .kept_beside = loop->kept_beside,
                                .reductions = loop->reductions,
                                .folds = (uint8_t)loop->folds,
                                .mixed = LFUSER_ABI_NONE,
                                .share_word = loop->share_word,
                                .extents_word = loop->extents_word,
                                .n_accesses = loop->n_accesses,
                                .debug = pl->program->debug,
                                .name = loop->name};
    if (launch.debug & LF_DEBUG_NO_MERGE) launch.merge_rows = launch.merge_cols = 0;
    uint32_t axes = loop->rows + loop->cols;
    if (launch.multiplies && launch.merge_rows > loop->rows - 2)
        launch.merge_rows = (uint8_t)(loop->rows - 2); // m and n stay
    if (guard) {
        launch.guard = lf_planner_slots(pl, 1);
        LF_TRY(add_store(pl, guard, launch.guard, LF_PHASE_BIND));
    }
    launch.args_slot = lf_planner_slots(pl, loop->n_words);
    lfuser_abi_access *accesses = LF_ARENA_ARRAY(pl->arena, lfuser_abi_access, loop->n_accesses);
    if (!accesses) return lf_out_of_memory();
    for (uint32_t i = 0; i < loop->n_accesses; i++) {
        const lf_access *from = &loop->accesses[i];
        uint32_t slot = launch.args_slot + from->word;
        accesses[i] = (lfuser_abi_access){
            from->word,        (uint8_t)from->dtype, (uint8_t)lf_dtype_bytes(from->dtype), from->store, from->row, 0,
            is_plain(loop, i), from->along};
        LF_TRY(add_store(pl, from->base, slot, LF_PHASE_BIND));
        for (uint32_t a = 0; a < axes; a++) {
            if (from->strides[a]) accesses[i].varies |= 1u << a;
            LF_TRY(add_store(pl, from->strides[a], slot + 1 + a, LF_PHASE_BIND));
        }
        for (uint32_t t = 0; t < from->n_terms; t++)
            LF_TRY(add_store(pl, from->terms[t], slot + 1 + axes + t, LF_PHASE_BIND));
    }
    for (uint32_t a = 0; a < axes; a++)
        LF_TRY(add_store(pl, loop->extents[a], launch.args_slot + loop->extents_word + a, LF_PHASE_BIND));
    for (uint32_t i = 0; i < loop->n_scalars; i++)
        LF_TRY(add_store(pl, loop->scalars[i], launch.args_slot + loop->scalar_words[i], LF_PHASE_BIND));
    if (loop->error_word != LFUSER_ABI_NONE) {
        if (pl->program->abi.error_slot == LFUSER_ABI_NONE) pl->program->abi.error_slot = lf_planner_slots(pl, 1);
        LF_TRY(add_store(pl, lf_slot_value(pl->g, pl->program->abi.error_slot), launch.args_slot + loop->error_word,
                         LF_PHASE_BIND));
    }
    if (loop->workspace_word != LFUSER_ABI_NONE)
        LF_TRY(add_store(pl, scratch, launch.args_slot + loop->workspace_word, LF_PHASE_BIND));
    if (loop->folds) LF_TRY(add_store(pl, loop->share, launch.args_slot + loop->share_word, LF_PHASE_BIND));
    launch.scratch_word = loop->scratch_word;
    launch.reduces = loop->reduces;
    if (loop->scratch_word != LFUSER_ABI_NONE) {
        lf_value *address;
        launch.parts = launch.reduces ? parts_of(loop) : 0;
        LF_TRY((launch.scans ? scan_scratch : launch.sorts ? sort_scratch : split_scratch)(pl, loop, &address));
        LF_TRY(add_store(pl, address, launch.args_slot + loop->scratch_word, LF_PHASE_BIND));
    }
    launch.accesses = accesses;
    if (!lf_vec_push(&pl->launches, launch) || !lf_vec_push(&pl->kernels, loop)) return lf_out_of_memory();
    return NULL;
}

static lf_status place_temporaries(lf_planner *pl, uint32_t number, uint32_t from) {
    const lf_group *group = pl->partition->groups[number];
    for (uint32_t i = 0; i < group->n_roots; i++)
        if (group->roots[i].temporary) LF_TRY(place_temporary(pl, group->roots[i].value, from));
    return NULL;
}

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
    lf_value *guard, *scratch;
    LF_TRY(lf_lower_mixed(pl, pl->partition, &pair->mixed, pl->arena, &walk, &pair->combine, &guard, &scratch));
    if (!walk) return NULL;
    LF_TRY(lf_loop_verify(pl->g->allocator, walk));
    LF_TRY(lf_loop_verify(pl->g->allocator, pair->combine));
    pair->launch = (uint32_t)pl->launches.count;
    LF_TRY(add_launch(pl, walk, guard, scratch));
    pl->launches.data[pair->launch].mixed = pair->launch;
    return NULL;
}

static lf_status plan_plain(lf_planner *pl, uint32_t number);

static lf_status plan_group(lf_planner *pl, uint32_t number) {
    mixed_pair *pair = NULL;
    for (size_t i = 0; i < pl->pairs.count && !pair; i++)
        if (pl->pairs.data[i].mixed.rows == number || pl->pairs.data[i].mixed.columns == number) pair = &pl->pairs.data[i];
    bool first = pair && number == (pair->mixed.rows == LF_NO_GROUP ? pair->mixed.columns : pair->mixed.rows);
    if (!pair || first) LF_TRY(place_temporaries(pl, number, number));
    if (first && number != pair->mixed.columns) LF_TRY(place_temporaries(pl, pair->mixed.columns, number));
    if (first) LF_TRY(plan_walk(pl, pair));
    uint32_t from = (uint32_t)pl->launches.count;
    LF_TRY(plan_plain(pl, number));
    for (size_t i = from; pair && i < pl->launches.count; i++) {
        pl->launches.data[i].mixed = pair->launch;
        pl->launches.data[i].instead = pair->launch != LFUSER_ABI_NONE;
    }
    if (!pair || pair->launch == LFUSER_ABI_NONE || number != pair->mixed.columns) return NULL;
    LF_TRY(add_launch(pl, pair->combine, NULL, NULL));
    pl->launches.data[pl->launches.count - 1].mixed = pair->launch;
    pl->launches.data[pl->launches.count - 1].combines = true;
    return NULL;
}

static lf_status plan_plain(lf_planner *pl, uint32_t number) {
    lf_loop *loop;
    lf_value *assumption, *scratch;
    const char *name = lf_arena_printf(pl->arena, "%s.k%u", pl->g->name, number);
    if (!name) return lf_out_of_memory();
    LF_TRY(lf_lower_group(pl, pl->partition, number, false, pl->arena, name, &loop, &assumption, &scratch));
    LF_TRY(lf_loop_verify(pl->g->allocator, loop));
    LF_TRY(add_launch(pl, loop, assumption, scratch));
    if (!assumption) return NULL;
    // The same work for parameters of any strides, launched when the assumption does not hold.
    name = lf_arena_printf(pl->arena, "%s.k%u.any", pl->g->name, number);
    if (!name) return lf_out_of_memory();
    lf_value *otherwise = lf_scalar_op(pl->g, LF_OP_LNOT, LF_BOOL, assumption, NULL, NULL);
    lf_value *unused;
    LF_TRY(lf_lower_group(pl, pl->partition, number, true, pl->arena, name, &loop, &unused, &scratch));
    LF_TRY(lf_loop_verify(pl->g->allocator, loop));
    return add_launch(pl, loop, otherwise, scratch);
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
    return add_store(pl, pl->workspace, s->workspace_bytes_slot, LF_PHASE_INFER);
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
