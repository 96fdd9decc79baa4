// A launch of a kernel as the runtime sees it (launch_abi.h), and what the host code writes into its argument block.
#include "schedule/planner.h"

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

static uint16_t fold_bytes(const lf_loop *loop) {
    unsigned bytes = 0;
    for (uint32_t i = 0; i < loop->n_stmts; i++)
        if (loop->stmts[i].kind == LF_STMT_FOLD) bytes += lf_dtype_bytes(loop->stmts[i].compute);
    return (uint16_t)bytes;
}

lf_status lf_planner_launch(lf_planner *pl, lf_loop *loop, lf_value *guard, lf_value *scratch) {
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
                                .keeps_nothing = pl->program->fast && lf_loop_keeps_nothing(loop),
                                .weight = loop->weight,
                                .kept = loop->kept,
                                .kept_beside = loop->kept_beside,
                                .reductions = loop->reductions,
                                .folds = (uint8_t)loop->folds,
                                .fold_bytes = fold_bytes(loop),
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
        LF_TRY(lf_planner_store(pl, guard, launch.guard, LF_PHASE_BIND));
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
        LF_TRY(lf_planner_store(pl, from->base, slot, LF_PHASE_BIND));
        for (uint32_t a = 0; a < axes; a++) {
            if (from->strides[a]) accesses[i].varies |= 1u << a;
            LF_TRY(lf_planner_store(pl, from->strides[a], slot + 1 + a, LF_PHASE_BIND));
        }
        for (uint32_t t = 0; t < from->n_terms; t++)
            LF_TRY(lf_planner_store(pl, from->terms[t], slot + 1 + axes + t, LF_PHASE_BIND));
    }
    for (uint32_t a = 0; a < axes; a++)
        LF_TRY(lf_planner_store(pl, loop->extents[a], launch.args_slot + loop->extents_word + a, LF_PHASE_BIND));
    for (uint32_t i = 0; i < loop->n_scalars; i++)
        LF_TRY(lf_planner_store(pl, loop->scalars[i], launch.args_slot + loop->scalar_words[i], LF_PHASE_BIND));
    if (loop->error_word != LFUSER_ABI_NONE) {
        if (pl->program->abi.error_slot == LFUSER_ABI_NONE) pl->program->abi.error_slot = lf_planner_slots(pl, 1);
        LF_TRY(lf_planner_store(pl, lf_slot_value(pl->g, pl->program->abi.error_slot), launch.args_slot + loop->error_word,
                                LF_PHASE_BIND));
    }
    if (loop->workspace_word != LFUSER_ABI_NONE)
        LF_TRY(lf_planner_store(pl, scratch, launch.args_slot + loop->workspace_word, LF_PHASE_BIND));
    if (loop->folds) LF_TRY(lf_planner_store(pl, loop->share, launch.args_slot + loop->share_word, LF_PHASE_BIND));
    launch.scratch_word = loop->scratch_word;
    launch.reduces = loop->reduces;
    if (loop->scratch_word != LFUSER_ABI_NONE) {
        lf_value *address;
        launch.parts = launch.reduces ? parts_of(loop) : 0;
        LF_TRY(lf_planner_partials(pl, loop, &address));
        LF_TRY(lf_planner_store(pl, address, launch.args_slot + loop->scratch_word, LF_PHASE_BIND));
    }
    launch.accesses = accesses;
    if (!lf_vec_push(&pl->launches, launch) || !lf_vec_push(&pl->kernels, loop)) return lf_out_of_memory();
    return NULL;
}
