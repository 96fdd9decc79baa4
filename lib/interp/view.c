// VIEW ops: no data moves; the result is another way to look at the operand's memory.
#include "interp/internal.h"

// Reshapes of strided operands copy: their new strides may not exist.
static lf_status reshape(lf_run *run, const lf_op *op, const lf_array *x) {
    lf_array *out;
    LF_TRY(lf_new_result(run, op, 0, &out));
    if (lf_numel(out) != lf_numel(x))
        return lf_error_at(run->allocator, LF_FAILED_CHECK, op->place, "reshape: %lld elements into %lld",
                           (long long)lf_numel(x), (long long)lf_numel(out));
    lf_walk w;
    lf_walk_array(&w, x);
    lf_walk_read(&w, out->data, lf_numel(x));
    return NULL;
}

lf_status lf_run_view(lf_run *run, const lf_op *op) {
    lf_slot *from = lf_slot_of(run, op->operands[0]), *to = lf_slot_of(run, &op->results[0]);
    const lf_array *x = &from->array;
    const lf_view *view = &op->view;
    if (view->reshape && !lf_is_contiguous(x)) return reshape(run, op, x);
    lf_array *y = &to->array;
    LF_TRY(lf_shape_of(run, op, &op->results[0], y));
    if (view->reshape && lf_numel(x) != lf_numel(y)) return reshape(run, op, x);
    y->data = x->data;
    int64_t offset = 0, n = lf_numel(y);
    for (unsigned a = 0; a < x->rank && !view->reshape; a++)
        offset = (int64_t)((uint64_t)offset + (uint64_t)lf_wrapping_mul(lf_integer(run, view->start[a], 0), x->strides[a]));
    for (unsigned d = 0; d < y->rank && !view->reshape; d++) {
        int a = view->map[d];
        // An axis that is not walked along has any stride; 0 keeps odd numbers out.
        bool repeats = a < 0 || y->shape[d] <= 1 || x->shape[a] == 1;
        y->strides[d] = repeats ? 0 : lf_wrapping_mul(lf_integer(run, view->step[a], 1), x->strides[a]);
    }
    // With no element, a start may lie outside.
    if (n > 0) y->data = (char *)x->data + offset * (int64_t)lf_dtype_bytes(x->dtype);
    to->ready = true;
    to->buffer = from->buffer;
    if (to->buffer) to->buffer->uses++;
    return NULL;
}
