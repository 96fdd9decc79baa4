// scatter: updates in row-major order of idx, one after the other, whatever the mode; each update of a half is rounded.
#include "interp/internal.h"

// The elementwise op that a mode applies to the old and the new element.
static lf_opcode op_of(uint8_t mode) {
    switch (mode) {
    case LF_SCATTER_ADD: return LF_OP_ADD;
    case LF_SCATTER_MUL: return LF_OP_MUL;
    case LF_SCATTER_MIN: return LF_OP_MIN;
    case LF_SCATTER_MAX: return LF_OP_MAX;
    default: return LF_OP_NONE; // SET moves
    }
}

// *to = *to op *src.
static bool update(lf_opcode code, lf_dtype d, void *to, const void *src) {
    lf_dtype wide = lf_dtype_compute(d);
    lf_scalar a, b, r;
    lf_convert(d, to, wide, &a, 1);
    lf_convert(d, src, wide, &b, 1);
    lf_eval e = {.code = code, .in = {wide, wide}, .out = wide, .src = {&a, &b}, .dst = &r, .n = 1};
    if (!(code == LF_OP_ADD || code == LF_OP_MUL ? lf_eval_arith : lf_eval_minmax)(&e)) return false;
    lf_canonical_nans(wide, &r, 1);
    lf_convert(wide, &r, d, to, 1);
    return true;
}

// src: a scalar or tensor of rank 0 (one for all), or a tensor at least as large as idx along every axis.
lf_status lf_whole_scatter(lf_run *run, const lf_op *op) {
    const lf_array *x = lf_array_of(run, op->operands[0]), *idx = lf_array_of(run, op->operands[1]);
    const lf_array *src = lf_array_of(run, op->operands[2]);
    unsigned axis = (unsigned)op->axis, bytes = lf_dtype_bytes(x->dtype);
    lf_opcode code = op_of(op->mode);
    lf_array *y;
    LF_TRY(lf_new_result(run, op, 0, &y));
    lf_walk copy, indices, updates, places;
    lf_walk_array(&copy, x);
    lf_walk_read(&copy, y->data, lf_numel(y));
    int64_t zero[LF_MAX_RANK] = {0}, strides[LF_MAX_RANK];
    for (unsigned a = 0; a < y->rank; a++) strides[a] = a == axis ? 0 : y->strides[a];
    lf_walk_array(&indices, idx);
    lf_walk_init(&updates, bytes, src->data, idx->rank, idx->shape, src->rank ? src->strides : zero);
    lf_walk_init(&places, bytes, y->data, idx->rank, idx->shape, strides);
    int64_t extent = x->shape[axis];
    for (int64_t i = 0, n = lf_numel(idx); i < n; i++) {
        lf_scalar raw, value;
        int64_t index;
        lf_walk_read(&indices, &raw, 1);
        lf_walk_read(&updates, &value, 1);
        lf_convert(idx->dtype, &raw, LF_I64, &index, 1);
        int64_t place = index < 0 ? index + extent : index;
        if (place < 0 || place >= extent) {
            LF_TRY(lf_note_index(run, op, index, extent));
        } else {
            char *to = places.data + (places.offset + place * y->strides[axis]) * bytes;
            if (code == LF_OP_NONE)
                memcpy(to, &value, bytes);
            else if (!update(code, x->dtype, to, &value))
                return lf_refuse(run, op);
        }
        lf_walk_skip(&places);
    }
    return NULL;
}
