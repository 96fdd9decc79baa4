// Elementwise ops on whole tensors: gathers operands into spans, calls the family, widens and rounds halves around it.
// Does not belong here: what a family computes (elem_*.c).
#include "interp/internal.h"

static lf_eval_fn *const families[LF_OP_COUNT] = {
#define LF_ELEM(ID, name, n, rule, allow, family, doc) [LF_OP_##ID] = lf_eval_##family,
#include "ir/ops.def"
};

typedef struct lf_block {
    max_align_t bytes[LF_BLOCK]; // LF_BLOCK elements of any dtype (16 bytes at most)
} lf_block;

// One operand of an op on its way through the spans.
typedef struct lf_source {
    const lf_array *array; // NULL: omitted
    bool constant, direct; // one element for all; contiguous
    lf_walk walk;
} lf_source;

// Moves hand bits on; all else computes, and its NaNs are canonical.
static bool moves_bits(lf_opcode code) {
    return code == LF_OP_SELECT || code == LF_OP_BITCAST || code == LF_OP_REAL || code == LF_OP_IMAG || code == LF_OP_CONJ ||
           code == LF_OP_COMPLEX;
}

#define CANONICAL(T, NAN_VALUE)                                                                                             \
    do {                                                                                                                    \
        T *x = span;                                                                                                        \
        for (size_t i = 0; i < n; i++) x[i] = x[i] != x[i] ? (NAN_VALUE) : x[i];                                            \
    } while (0)

void lf_canonical_nans(lf_dtype d, void *span, size_t n) {
    if (lf_is_complex(d)) n *= 2;
    if (lf_dtype_part(d) == LF_F32) CANONICAL(float, (float)NAN);
    if (lf_dtype_part(d) == LF_F64) CANONICAL(double, (double)NAN);
}

// One span. `widen`: halves are computed in f32 and the result is rounded once. wide[4] is for the result.
static void eval_span(lf_eval e, lf_eval_fn *family, bool widen, lf_block *wide) {
    lf_dtype out = e.out;
    void *dst = e.dst;
    e.half = widen && lf_is_half(out);
    for (unsigned i = 0; widen && i < 4; i++) {
        if (!e.src[i] || !lf_is_half(e.in[i])) continue;
        lf_widen_halves(e.in[i], e.src[i], (float *)wide[i].bytes, e.n);
        e.src[i] = wide[i].bytes;
        e.in[i] = LF_F32;
    }
    if (widen && lf_is_half(out)) {
        e.out = LF_F32;
        e.dst = wide[4].bytes;
    }
    family(&e);
    if (!moves_bits(e.code)) lf_canonical_nans(e.out, e.dst, e.n);
    if (e.dst != dst) lf_round_halves(out, e.dst, dst, e.n);
}

static void widen_types(lf_eval *e) {
    for (unsigned i = 0; i < 4; i++)
        if (lf_is_half(e->in[i])) e->in[i] = LF_F32;
    if (lf_is_half(e->out)) e->out = LF_F32;
}

// Prepares the operand for a result of n elements; constants fill their block once.
static void source_init(lf_source *s, const lf_array *a, int64_t n, lf_block *block) {
    s->array = a;
    bool all_zero = true;
    for (unsigned i = 0; i < a->rank; i++) all_zero = all_zero && (a->strides[i] == 0 || a->shape[i] == 1);
    s->constant = all_zero || !a->tensor;
    s->direct = !s->constant && lf_is_contiguous(a);
    if (s->constant)
        lf_fill(block->bytes, a->data, lf_dtype_bytes(a->dtype), n < LF_BLOCK ? n : LF_BLOCK);
    else
        lf_walk_array(&s->walk, a);
}

static const void *source_next(lf_source *s, int64_t done, int64_t n, lf_block *block) {
    if (s->constant) return block->bytes;
    if (s->direct) return lf_at(s->array, done);
    lf_walk_read(&s->walk, block->bytes, n);
    return block->bytes;
}

typedef struct lf_elem_room {
    lf_block blocks[4], wide[5];
    lf_source sources[4];
} lf_elem_room;

static lf_status eval_all(lf_run *run, const lf_op *op, lf_eval e, lf_elem_room *room, bool widen) {
    lf_array *out;
    LF_TRY(lf_new_result(run, op, 0, &out));
    int64_t n = lf_numel(out);
    for (unsigned i = 0; i < op->n_operands && n > 0; i++)
        if (op->operands[i]) source_init(&room->sources[i], lf_array_of(run, op->operands[i]), n, &room->blocks[i]);
    for (int64_t done = 0; done < n; done += LF_BLOCK) {
        int64_t k = n - done < LF_BLOCK ? n - done : LF_BLOCK;
        for (unsigned i = 0; i < op->n_operands; i++)
            if (op->operands[i]) e.src[i] = source_next(&room->sources[i], done, k, &room->blocks[i]);
        e.dst = lf_at(out, done);
        e.n = (size_t)k;
        eval_span(e, families[op->code], widen, room->wide);
    }
    return NULL;
}

lf_status lf_run_elem(lf_run *run, const lf_op *op) {
    lf_eval e = {.code = op->code, .out = op->results[0].type.dtype, .number = op->number, .flag = op->flag};
    if (op->n_operands > 4) return lf_refuse(run, op);
    lf_scalar probe = {{0}};
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (!op->operands[i]) continue;
        e.in[i] = op->operands[i]->type.dtype;
        e.src[i] = &probe;
    }
    // Asked with no element, a family only says whether it has a case for these dtypes.
    e.dst = &probe;
    bool widen = false;
    if (!families[op->code](&e)) {
        lf_eval wide = e;
        widen_types(&wide);
        widen = true;
        if (!families[op->code](&wide)) return lf_refuse(run, op);
    }
    lf_elem_room *room;
    LF_TRY(lf_scratch(run, 1, sizeof *room, &room));
    lf_status s = eval_all(run, op, e, room, widen);
    lf_free(run->allocator, room);
    return s;
}
