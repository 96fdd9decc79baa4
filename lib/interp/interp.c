// A run: checks the arguments, evaluates the ops in program order, keeps what the outputs need.
// Does not belong here: what an op computes (elem*.c, view.c, indexed.c, reduce.c, whole.c, …).
#include "interp/internal.h"
#include "base/vec.h"
#include <fenv.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// ---- Values ---------------------------------------------------------------------------------------------------------

int64_t lf_integer(lf_run *run, const lf_value *v, int64_t otherwise) {
    if (!v) return otherwise;
    int64_t n = 0;
    lf_convert(v->type.dtype, lf_array_of(run, v)->data, LF_I64, &n, 1);
    return n;
}

lf_status lf_scratch(lf_run *run, size_t count, size_t bytes, void *out_pointer) {
    size_t size;
    void *p = __builtin_mul_overflow(count, bytes, &size) ? NULL : lf_alloc(run->allocator, size ? size : 1);
    *(void **)out_pointer = p;
    return p ? NULL : lf_out_of_memory();
}

lf_status lf_refuse(lf_run *run, const lf_op *op) {
    const lf_dtype d = op->n_operands > 0 && op->operands[0] ? op->operands[0]->type.dtype : LF_NO_DTYPE;
    return lf_error_at(run->allocator, LF_UNSUPPORTED, op->place, "%s of %s is not supported", lf_op_info_of(op->code)->name,
                       d ? lf_dtype_name(d) : "these operands");
}

lf_status lf_note_index(lf_run *run, const lf_op *op, int64_t index, int64_t extent) {
    if (run->index_error) return NULL;
    char text[256];
    int n = 0;
    if (op->place.line > 0)
        n = snprintf(text, sizeof text, "%.100s:%" PRIu32 ":%" PRIu32 ": ", op->place.file ? op->place.file : "line",
                     op->place.line, op->place.column);
    n += snprintf(text + n, sizeof text - (size_t)n, "%s: index %" PRId64 " is outside extent %" PRId64,
                  lf_op_info_of(op->code)->name, index, extent);
    run->index_error = lf_strndup(run->allocator, text, (size_t)n);
    return run->index_error ? NULL : lf_out_of_memory();
}

// What builder checks exclude is refused here too, so that no graph can make the evaluator go astray.
lf_status lf_shape_of(lf_run *run, const lf_op *op, const lf_value *v, lf_array *out_array) {
    lf_array *a = out_array;
    *a = (lf_array){.dtype = v->type.dtype, .tensor = v->type.tensor, .rank = v->type.rank};
    int64_t pitch = 1;
    bool fits = true, empty = false;
    for (unsigned i = a->rank; i-- > 0;) {
        a->shape[i] = lf_integer(run, v->type.dims[i], 0);
        a->strides[i] = pitch;
        if (a->shape[i] < 0)
            return lf_error_at(run->allocator, LF_FAILED_CHECK, op->place, "%s: negative size %" PRId64,
                               lf_op_info_of(op->code)->name, a->shape[i]);
        if (a->shape[i] == 0)
            empty = true;
        else
            fits = !__builtin_mul_overflow(pitch, a->shape[i], &pitch) && fits;
        if (!fits) pitch = INT64_MAX;
    }
    if (empty || (fits && pitch <= INT64_MAX / 64)) return NULL;
    return lf_error_at(run->allocator, LF_OUT_OF_MEMORY, op->place, "%s: the result has too many elements",
                       lf_op_info_of(op->code)->name);
}

static lf_status new_buffer(lf_run *run, size_t bytes, lf_buffer **out_buffer) {
    lf_buffer *b = bytes <= SIZE_MAX / 2 ? lf_alloc(run->allocator, sizeof *b + bytes) : NULL;
    *out_buffer = b;
    if (!b) return lf_out_of_memory();
    b->uses = 1;
    return NULL;
}

lf_status lf_new_result(lf_run *run, const lf_op *op, unsigned i, lf_array **out_array) {
    lf_slot *slot = lf_slot_of(run, &op->results[i]);
    *out_array = &slot->array;
    LF_TRY(lf_shape_of(run, op, &op->results[i], &slot->array));
    slot->ready = true;
    if (!slot->array.tensor) {
        slot->array.data = &slot->scalar;
        return NULL;
    }
    LF_TRY(new_buffer(run, (size_t)lf_numel(&slot->array) * lf_dtype_bytes(slot->array.dtype), &slot->buffer));
    slot->array.data = slot->buffer->data;
    return NULL;
}

static void drop(lf_run *run, lf_slot *slot) {
    if (slot->buffer && --slot->buffer->uses == 0) lf_free(run->allocator, slot->buffer);
    slot->buffer = NULL;
}

// ---- Arguments ------------------------------------------------------------------------------------------------------

static const char *kind_name(bool tensor) { return tensor ? "a tensor" : "a scalar"; }

static lf_status check_argument(lf_run *run, uint32_t i, const lf_array *arg) {
    const lf_value *p = run->graph->params[i];
    const lf_type *t = &p->type;
    const char *name = p->name ? p->name : "?";
    lf_place place = p->def->place;
    const lf_allocator *a = run->allocator;
    if (arg->tensor != t->tensor)
        return lf_error_at(a, LF_INVALID_ARGUMENT, place, "argument %" PRIu32 " (%%%s): expected %s, found %s", i, name,
                           kind_name(t->tensor), kind_name(arg->tensor));
    if (arg->dtype != t->dtype)
        return lf_error_at(a, LF_INVALID_ARGUMENT, place, "argument %" PRIu32 " (%%%s): expected dtype %s, found %s", i,
                           name, lf_dtype_name(t->dtype),
                           arg->dtype > LF_NO_DTYPE && arg->dtype < LF_DTYPE_COUNT ? lf_dtype_name(arg->dtype) : "no dtype");
    if (arg->rank != t->rank)
        return lf_error_at(a, LF_INVALID_ARGUMENT, place, "argument %" PRIu32 " (%%%s): expected rank %u, found rank %u", i,
                           name, (unsigned)t->rank, (unsigned)arg->rank);
    int64_t n = 1;
    bool fits = true, empty = false;
    for (unsigned d = 0; d < arg->rank; d++) {
        if (arg->shape[d] < 0)
            return lf_error_at(a, LF_INVALID_ARGUMENT, place, "argument %" PRIu32 " (%%%s): axis %u has extent %" PRId64, i,
                               name, d, arg->shape[d]);
        empty = empty || arg->shape[d] == 0;
        fits = fits && !__builtin_mul_overflow(n, arg->shape[d], &n);
    }
    if (!empty && (!fits || n > INT64_MAX / 64))
        return lf_error_at(a, LF_INVALID_ARGUMENT, place, "argument %" PRIu32 " (%%%s) has too many elements", i, name);
    if (!empty && !arg->data)
        return lf_error_at(a, LF_INVALID_ARGUMENT, place, "argument %" PRIu32 " (%%%s): its data is NULL", i, name);
    return NULL;
}

static lf_status bind_arguments(lf_run *run, const lf_array *args, size_t n_args) {
    const lf_graph *g = run->graph;
    if (n_args != g->n_params)
        return lf_error(run->allocator, LF_INVALID_ARGUMENT, "@%s has %" PRIu32 " parameters, %zu arguments are given",
                        g->name, g->n_params, n_args);
    for (uint32_t i = 0; i < g->n_params; i++) {
        lf_slot *slot = lf_slot_of(run, g->params[i]);
        LF_TRY(check_argument(run, i, &args[i]));
        slot->array = args[i];
        slot->ready = true;
        if (!args[i].tensor) {
            memcpy(&slot->scalar, args[i].data, lf_dtype_bytes(args[i].dtype));
            if (args[i].dtype == LF_BOOL) slot->scalar.u8 = slot->scalar.u8 != 0;
            slot->array.data = &slot->scalar;
            continue;
        }
        if (args[i].dtype != LF_BOOL) continue;
        // A bool byte ≠ 0 is true; everything behind this line sees 0 or 1.
        int64_t n = lf_numel(&args[i]);
        LF_TRY(new_buffer(run, (size_t)n, &slot->buffer));
        uint8_t *bytes = slot->array.data = slot->buffer->data;
        lf_walk w;
        lf_walk_array(&w, &args[i]);
        lf_walk_read(&w, bytes, n);
        for (int64_t j = 0; j < n; j++) bytes[j] = bytes[j] != 0;
        lf_set_contiguous(&slot->array);
    }
    return NULL;
}

// ---- Ops ------------------------------------------------------------------------------------------------------------

// The message of a check with {k} replaced by operand k + 1.
static lf_status failed_check(lf_run *run, const lf_op *op) {
    LF_VEC(char) text;
    lf_vec_init(&text, run->allocator);
    bool ok = true;
    for (const char *p = op->message ? op->message : "a check failed"; *p && ok; p++) {
        char *end = NULL;
        unsigned long k = p[0] == '{' && p[1] >= '0' && p[1] <= '9' ? strtoul(p + 1, &end, 10) : 0;
        if (!end || *end != '}' || k + 1 >= op->n_operands || !op->operands[k + 1]) {
            ok = lf_vec_push(&text, *p);
            continue;
        }
        char number[64];
        const lf_value *v = op->operands[k + 1];
        size_t n = lf_scalar_print(number, sizeof number, v->type.dtype, &lf_slot_of(run, v)->scalar);
        ok = lf_vec_reserve(&text, n);
        if (ok) memcpy(text.data + text.count, number, n);
        if (ok) text.count += n;
        p = end;
    }
    ok = ok && lf_vec_push(&text, '\0');
    lf_status s = ok ? lf_error_at(run->allocator, LF_FAILED_CHECK, op->place, "%s", text.data) : lf_out_of_memory();
    lf_vec_finish(&text);
    return s;
}

// A bool parameter has been copied, so its strides are looked up where they came from.
static int64_t pitch_of(const lf_run *run, const lf_value *param, unsigned axis) {
    for (uint32_t i = 0; i < run->graph->n_params; i++)
        if (run->graph->params[i] == param) return run->args[i].strides[axis];
    return 0;
}

static lf_status run_internal(lf_run *run, const lf_op *op) {
    if (op->code == LF_OP_PARAM) return NULL; // bound already
    if (op->code == LF_OP_CHECK) {
        const lf_slot *condition = lf_slot_of(run, op->operands[0]);
        return condition->scalar.u8 ? NULL : failed_check(run, op);
    }
    lf_array *out;
    LF_TRY(lf_new_result(run, op, 0, &out));
    lf_scalar *s = out->data;
    switch (op->code) {
    case LF_OP_CONST: *s = op->constant; return NULL;
    case LF_OP_EXTENT: s->i64 = lf_array_of(run, op->operands[0])->shape[op->axis]; return NULL;
    case LF_OP_PITCH: s->i64 = pitch_of(run, op->operands[0], (unsigned)op->axis); return NULL;
    case LF_OP_SATMUL: {
        int64_t a = lf_integer(run, op->operands[0], 1), b = lf_integer(run, op->operands[1], 1);
        if (__builtin_mul_overflow(a, b, &s->i64)) s->i64 = INT64_MAX;
        return NULL;
    }
    default: return lf_refuse(run, op);
    }
}

// ITEM and SCALAR_TENSOR: one element into another kind of value. The other metadata are aliases.
static lf_status run_meta(lf_run *run, const lf_op *op) {
    lf_array *out;
    const lf_array *x = lf_array_of(run, op->operands[0]);
    if (lf_numel(x) != 1)
        return lf_error_at(run->allocator, LF_FAILED_CHECK, op->place, "item: %" PRId64 " elements", lf_numel(x));
    LF_TRY(lf_new_result(run, op, 0, &out));
    memcpy(out->data, x->data, lf_dtype_bytes(x->dtype));
    return NULL;
}

// One function a row of the table; a row without one does not link.
static lf_op_fn *const evaluators[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = lf_run_elem,
#define LF_VIEW(ID, name, args, attrs, doc) [LF_OP_##ID] = lf_run_view,
#define LF_INDEXED(ID, name, args, attrs, doc) [LF_OP_##ID] = lf_indexed_##name,
#define LF_REDUCE(ID, name, args, attrs, doc) [LF_OP_##ID] = lf_reduce_##name,
#define LF_WHOLE(ID, name, args, attrs, doc) [LF_OP_##ID] = lf_whole_##name,
#define LF_META(ID, name, args, attrs, doc) [LF_OP_##ID] = run_meta,
#define LF_INTERNAL(ID, name, doc) [LF_OP_##ID] = run_internal,
#include "ir/ops.def"
};

static bool operands_ready(lf_run *run, const lf_op *op) {
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i] && !lf_slot_of(run, op->operands[i])->ready) return false;
    return true;
}

static lf_status tell(lf_run *run, const lf_op *op) {
    lf_op_kind kind = lf_op_info_of(op->code)->kind;
    bool computes = kind == LF_KIND_ELEM || kind == LF_KIND_INDEXED || kind == LF_KIND_REDUCE || kind == LF_KIND_WHOLE;
    if (!computes || !op->n_results) return NULL;
    const lf_array **operands;
    LF_TRY(lf_scratch(run, op->n_operands, sizeof *operands, &operands));
    for (unsigned i = 0; i < op->n_operands; i++) operands[i] = op->operands[i] ? lf_array_of(run, op->operands[i]) : NULL;
    run->watch->after(run->watch->self, op, operands, &lf_slot_of(run, &op->results[0])->array);
    lf_free(run->allocator, operands);
    return NULL;
}

static lf_status run_op(lf_run *run, const lf_op *op) {
    if (!evaluators[op->code]) return lf_refuse(run, op);
    LF_TRY(evaluators[op->code](run, op));
    if (run->watch) LF_TRY(tell(run, op));
    // Results that nobody reads, and operands that nobody reads any more.
    for (unsigned i = 0; i < op->n_results; i++) {
        lf_slot *slot = lf_slot_of(run, &op->results[i]);
        if (slot->uses == 0) drop(run, slot);
    }
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (!op->operands[i]) continue;
        lf_slot *slot = lf_slot_of(run, op->operands[i]);
        if (--slot->uses == 0) drop(run, slot);
    }
    return NULL;
}

static bool on_host(const lf_op *op) {
    for (unsigned i = 0; i < op->n_results; i++)
        if (op->results[i].where != LF_ON_HOST) return false;
    return true;
}

// Host values and checks always are; of the rest, what something returned depends on.
static bool is_needed(lf_run *run, const lf_op *op) {
    bool needed = on_host(op);
    for (unsigned i = 0; i < op->n_results && !needed; i++) needed = lf_slot_of(run, &op->results[i])->uses != 0;
    return needed;
}

static void use(lf_run *run, lf_value *v) {
    if (v) lf_slot_of(run, v)->uses++;
}

// Extents, starts, steps and amounts are kept to the end: only operands are given back when their last reader is done.
static void count_uses(lf_run *run) {
    for (uint32_t i = 0; i < run->graph->n_outputs; i++) use(run, run->graph->outputs[i].value);
    for (const lf_op *op = run->graph->last; op; op = op->prev) {
        if (op->alias || !is_needed(run, op)) continue;
        for (unsigned i = 0; i < op->n_operands; i++) use(run, op->operands[i]);
        for (unsigned i = 0; i < op->n_results; i++)
            for (unsigned a = 0; a < op->results[i].type.rank; a++) use(run, op->results[i].type.dims[a]);
        for (unsigned a = 0; a < LF_MAX_RANK; a++) {
            use(run, op->extra[a]);
            if (lf_op_info_of(op->code)->kind != LF_KIND_VIEW || op->view.reshape) continue;
            use(run, op->view.start[a]);
            use(run, op->view.step[a]);
        }
    }
}

// Host values and checks come first, as in a compiled program: a check that fails does so before any tensor is computed,
// wherever it stands. Then the rest in program order. `done`: one flag an op.
static lf_status run_ops(lf_run *run, bool *done) {
    size_t i = 0;
    for (const lf_op *op = run->graph->first; op; op = op->next, i++) {
        done[i] = op->alias || (on_host(op) && operands_ready(run, op));
        if (done[i] && !op->alias) LF_TRY(run_op(run, op));
    }
    i = 0;
    for (const lf_op *op = run->graph->first; op; op = op->next, i++)
        if (!done[i] && is_needed(run, op)) LF_TRY(run_op(run, op));
    return NULL;
}

// ---- Results --------------------------------------------------------------------------------------------------------

// Outputs alias neither arguments nor each other, so each is a copy.
static lf_status take_output(lf_run *run, const lf_output *output, lf_array *out) {
    const lf_array *x = lf_array_of(run, output->value);
    int64_t n = lf_numel(x);
    lf_array copy = *x;
    lf_set_contiguous(&copy);
    LF_TRY(lf_scratch(run, (size_t)n, lf_dtype_bytes(x->dtype), &copy.data));
    lf_walk w;
    lf_walk_array(&w, x);
    lf_walk_read(&w, copy.data, n);
    *out = copy;
    return NULL;
}

static lf_status take_outputs(lf_run *run, lf_interp_result *r) {
    const lf_graph *g = run->graph;
    LF_TRY(lf_scratch(run, g->n_outputs, sizeof *r->outputs, &r->outputs));
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        LF_TRY(take_output(run, &g->outputs[i], &r->outputs[i]));
        r->n_outputs++;
        lf_slot *slot = lf_slot_of(run, g->outputs[i].value);
        if (--slot->uses == 0) drop(run, slot);
    }
    r->index_error = run->index_error;
    run->index_error = NULL;
    return NULL;
}

void lf_interp_result_destroy(lf_interp_result *r) {
    if (!r) return;
    for (size_t i = 0; i < r->n_outputs; i++) lf_free(r->allocator, r->outputs[i].data);
    lf_free(r->allocator, r->outputs);
    lf_free(r->allocator, r->index_error);
    lf_free(r->allocator, r);
}

static lf_status run_graph(lf_run *run, const lf_array *args, size_t n_args, lf_interp_result *r) {
    size_t n_ops = 0;
    for (const lf_op *op = run->graph->first; op; op = op->next) n_ops++;
    count_uses(run);
    LF_TRY(bind_arguments(run, args, n_args));
    bool *done;
    LF_TRY(lf_scratch(run, n_ops, sizeof *done, &done));
    lf_status s = run_ops(run, done);
    lf_free(run->allocator, done);
    return s ? s : take_outputs(run, r);
}

lf_status lf_interp_run(const lf_graph *g, const lf_array *args, size_t n_args, const lf_allocator *a,
                        lf_interp_result **out_result) {
    return lf_interp_run_watched(g, args, n_args, NULL, a, out_result);
}

lf_status lf_interp_run_watched(const lf_graph *g, const lf_array *args, size_t n_args, const lf_interp_watch *watch,
                                const lf_allocator *a, lf_interp_result **out_result) {
    *out_result = NULL;
    if (!g->finished) return lf_error(a, LF_INVALID_ARGUMENT, "@%s has no return", g->name);
    lf_run run = {.graph = g,
                  .args = args,
                  .watch = watch,
                  .allocator = a,
                  .slots = lf_alloc_zero(a, g->n_values * sizeof *run.slots + 1)};
    lf_interp_result *r = lf_alloc_zero(a, sizeof *r);
    lf_status s = run.slots && r ? NULL : lf_out_of_memory();
    if (!s) {
        // The caller's rounding mode and flush-to-zero bits are not ours.
        fenv_t environment;
        fegetenv(&environment);
        fesetenv(FE_DFL_ENV);
        r->allocator = a;
        s = run_graph(&run, args, n_args, r);
        fesetenv(&environment);
    }
    for (uint32_t i = 0; run.slots && i < g->n_values; i++) drop(&run, &run.slots[i]);
    lf_free(a, run.slots);
    lf_free(a, run.index_error);
    if (s)
        lf_interp_result_destroy(r);
    else
        *out_result = r;
    return s;
}
