// A run's outputs: the caller's buffers checked, others allocated; mailboxes for pending scalars; host scalars copied out.
#include "api/run.h"
#include <string.h>

typedef struct range {
    uint64_t low, high; // bytes [low, high)
} range;

static range range_of(const uint64_t *slot, uint32_t rank, unsigned bytes) {
    int64_t low = 0, high = 0;
    for (uint32_t k = 0; k < rank; k++) {
        int64_t extent = (int64_t)slot[1 + k], stride = (int64_t)slot[1 + rank + k];
        if (extent == 0) return (range){0, 0};
        if (stride < 0)
            low += (extent - 1) * stride;
        else
            high += (extent - 1) * stride;
    }
    return (range){slot[0] + (uint64_t)(low * (int64_t)bytes), slot[0] + (uint64_t)((high + 1) * (int64_t)bytes)};
}

static bool overlap(range a, range b) { return a.low < b.high && b.low < a.high; }

static bool is_row_major(const uint64_t *slot, uint32_t rank) {
    uint64_t stride = 1;
    for (uint32_t k = rank; k-- > 0;)
        if (slot[1 + rank + k] != stride || __builtin_mul_overflow(stride, slot[1 + k], &stride)) return false;
    return true;
}

// Different elements must lie in different places: seen from the smallest stride up, each clears what lies below it.
static bool is_injective(const uint64_t *slot, uint32_t rank) {
    bool used[LF_MAX_RANK] = {false};
    uint64_t reach = 1; // elements that the axes so far cover
    if (is_row_major(slot, rank)) return true;
    for (uint32_t k = 0; k < rank; k++)
        if (slot[1 + k] == 0) return true;
    for (uint32_t n = 0; n < rank; n++) {
        uint32_t least = UINT32_MAX;
        uint64_t least_stride = 0;
        for (uint32_t k = 0; k < rank; k++) {
            int64_t s = (int64_t)slot[1 + rank + k];
            uint64_t size = s < 0 ? 0 - (uint64_t)s : (uint64_t)s;
            if (!used[k] && (least == UINT32_MAX || size < least_stride)) least = k, least_stride = size;
        }
        used[least] = true;
        if (slot[1 + least] == 1) continue;
        if (least_stride < reach) return false;
        reach += (slot[1 + least] - 1) * least_stride;
    }
    return true;
}

static lf_status bad_output(const lf_run *r, uint32_t i, const char *what) {
    const char *name = r->abi->outputs[i].name;
    return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: output %u (%%%s): %s", r->abi->name, i, name ? name : "?", what);
}

static lf_status given_output(lf_run *r, uint32_t i, const lfuser_tensor *t) {
    const lfuser_abi_output *o = &r->abi->outputs[i];
    uint64_t *slot = &r->frame->slots[o->slot];
    if (t->rank != o->rank || !lf_tensor_has_dtype(t, (lf_dtype)o->dtype))
        return lf_error(r->a, LF_INVALID_ARGUMENT,
                        "@%s: output %u (%%%s): the buffer is %s of rank %d, the output %s of rank %u", r->abi->name, i,
                        o->name ? o->name : "?", lf_dtype_name(lf_tensor_dtype(t)), (int)t->rank,
                        lf_dtype_name((lf_dtype)o->dtype), o->rank);
    if (!lf_run_fits_device(r->device, t))
        return lf_error(r->a, LF_INVALID_ARGUMENT,
                        "@%s: output %u (%%%s): the buffer lies on %s:%d, the program was compiled for %s:%d", r->abi->name,
                        i, o->name ? o->name : "?", lf_run_device_name(t->device.type), (int)t->device.ordinal,
                        r->device->ops->name, r->device->ordinal);
    int64_t stride = 1;
    bool empty = false, overflow = false;
    for (uint32_t k = o->rank; k-- > 0;) {
        if (t->shape[k] != (int64_t)slot[1 + k])
            return lf_error(r->a, LF_INVALID_ARGUMENT,
                            "@%s: output %u (%%%s): axis %u of the buffer has extent %lld, the output %lld", r->abi->name, i,
                            o->name ? o->name : "?", k, (long long)t->shape[k], (long long)slot[1 + k]);
        empty |= t->shape[k] == 0;
        slot[1 + o->rank + k] = (uint64_t)(t->strides ? t->strides[k] : stride);
        overflow |= __builtin_mul_overflow(stride, t->shape[k] ? t->shape[k] : 1, &stride);
    }
    if (overflow && !empty && !t->strides) return bad_output(r, i, "the buffer has more elements than fit 64 bits");
    slot[0] = (uint64_t)(uintptr_t)t->data + t->byte_offset;
    if (!empty && !t->data) return bad_output(r, i, "the buffer has no data (NULL)");
    if (!empty && slot[0] % lf_dtype_bytes(lf_dtype_part((lf_dtype)o->dtype)))
        return bad_output(r, i, "the buffer is not aligned to its element");
    if (!is_injective(slot, o->rank)) return bad_output(r, i, "the buffer's strides make elements share memory");
    if (r->e->check_pointers && !empty) {
        char wrong[LF_WRONG_POINTER];
        LF_TRY(lf_run_check_pointer(r, slot[0], wrong, sizeof wrong));
        if (wrong[0]) return bad_output(r, i, wrong);
    }
    return NULL;
}

static lf_status output_into(lf_run *r, uint32_t i) {
    const lfuser_abi_output *o = &r->abi->outputs[i];
    const lfuser_abi_param *p = &r->abi->params[o->into];
    uint64_t *slot = &r->frame->slots[o->slot];
    const uint64_t *from = &r->frame->slots[p->slot];
    slot[0] = from[0];
    memcpy(&slot[1 + o->rank], &from[1 + p->rank], o->rank * sizeof *slot);
    if (!is_injective(slot, o->rank))
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: output %u goes into %%%s, whose strides make elements share memory",
                        r->abi->name, i, p->name);
    return NULL;
}

// What is written must not lie over anything that is read or written beside it, except an output over its own parameter.
static lf_status check_overlaps(const lf_run *r, uint32_t i) {
    const lfuser_abi_output *o = &r->abi->outputs[i];
    range mine = range_of(&r->frame->slots[o->slot], o->rank, lf_dtype_bytes((lf_dtype)o->dtype));
    if (mine.low == mine.high) return NULL;
    for (uint32_t p = 0; p < r->abi->n_params; p++) {
        const lfuser_abi_param *param = &r->abi->params[p];
        if (param->kind != LFUSER_ABI_TENSOR || p == o->into) continue;
        if (overlap(mine, range_of(&r->frame->slots[param->slot], param->rank, lf_dtype_bytes((lf_dtype)param->dtype))))
            return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: output %u (%%%s) overlaps argument %u (%%%s) in memory",
                            r->abi->name, i, o->name ? o->name : "?", p, param->name);
    }
    for (uint32_t k = 0; k < r->abi->n_outputs; k++) {
        const lfuser_abi_output *other = &r->abi->outputs[k];
        bool ours = other->kind == LFUSER_ABI_TENSOR && other->into == LFUSER_ABI_NONE && !r->outputs[k].tensor;
        bool placed = other->stage < o->stage || (other->stage == o->stage && k < i);
        if (other->kind != LFUSER_ABI_TENSOR || ours || !placed) continue;
        if (overlap(mine, range_of(&r->frame->slots[other->slot], other->rank, lf_dtype_bytes((lf_dtype)other->dtype))))
            return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: outputs %u and %u overlap in memory", r->abi->name, k, i);
    }
    return NULL;
}

// From the caller's own allocator.
static lf_status ask_for_buffer(lf_run *r, uint32_t i) {
    const lfuser_abi_output *o = &r->abi->outputs[i];
    if (!r->options.output_buffer) return NULL;
    int64_t shape[LF_MAX_RANK];
    memcpy(shape, &r->frame->slots[o->slot + 1], o->rank * sizeof *shape);
    r->outputs[i].tensor = r->options.output_buffer(r->options.self, i, (lfuser_dtype)o->dtype, o->rank, shape);
    return r->outputs[i].tensor ? NULL
                                : lf_error(r->a, LF_OUT_OF_MEMORY,
                                           "@%s: the caller's allocator gave no buffer for output %u", r->abi->name, i);
}

static uint64_t mailbox_address(const lf_run *r, const lf_mailbox *box) {
    return (uint64_t)(uintptr_t)box->device_slot + (r->capturing ? LFUSER_ABI_MAILBOX_COUNTS : 0);
}

// All pending scalars, those first that others are finished from.
static lf_status prepare_pending(lf_run *r) {
    lfuser_pending **arrivals = r->frame->arrivals;
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        const lfuser_abi_output *o = &r->abi->outputs[i];
        lfuser_pending **out = &r->outputs[i].pending;
        if (o->kind != LFUSER_ABI_PENDING || o->finish != LFUSER_ABI_NONE) continue;
        LF_TRY(lf_pending_create(r->e->device, (lf_dtype)o->dtype, r->capturing, out));
        r->frame->slots[o->slot] = mailbox_address(r, &(*out)->box);
    }
    for (uint32_t i = 0; i < r->abi->n_arrivals; i++) {
        const lfuser_abi_arrival *a = &r->abi->arrivals[i];
        if (a->output != LFUSER_ABI_NONE) {
            arrivals[i] = r->outputs[a->output].pending;
            atomic_fetch_add(&arrivals[i]->references, 1);
        } else {
            LF_TRY(lf_pending_create(r->e->device, (lf_dtype)a->dtype, r->capturing, &arrivals[i]));
            r->frame->slots[a->box_slot] = mailbox_address(r, &arrivals[i]->box);
        }
    }
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        const lfuser_abi_output *o = &r->abi->outputs[i];
        if (o->kind != LFUSER_ABI_PENDING || o->finish == LFUSER_ABI_NONE) continue;
        LF_TRY(lf_pending_create_finish(r->e, (lf_dtype)o->dtype, o->finish, arrivals, &r->outputs[i].pending));
    }
    return NULL;
}

void lf_run_keep_operands(const lf_run *r) {
    for (uint32_t i = 0; i < r->abi->n_outputs; i++)
        if (r->outputs[i].pending && r->outputs[i].pending->finish)
            lf_pending_keep_operands(r->outputs[i].pending, r->frame->slots);
    for (uint32_t i = 0; i < r->abi->n_arrivals; i++) { // whoever needs them holds them
        lf_pending_release(r->frame->arrivals[i], false);
        r->frame->arrivals[i] = NULL;
    }
}

lf_status lf_run_prepare_outputs(lf_run *r, uint32_t stage) {
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        const lfuser_abi_output *o = &r->abi->outputs[i];
        if (o->kind != LFUSER_ABI_TENSOR || o->stage != stage) continue;
        bool into = o->into != LFUSER_ABI_NONE;
        if (!into && !r->outputs[i].tensor) LF_TRY(ask_for_buffer(r, i));
        if (!into && !r->outputs[i].tensor) continue;
        LF_TRY(into ? output_into(r, i) : given_output(r, i, r->outputs[i].tensor));
        LF_TRY(check_overlaps(r, i));
    }
    if (!stage && r->e->delivers) LF_TRY(prepare_pending(r));
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        const lfuser_abi_output *o = &r->abi->outputs[i];
        uint64_t *slot = &r->frame->slots[o->slot];
        if (o->stage == stage && o->kind == LFUSER_ABI_TENSOR && o->into == LFUSER_ABI_NONE && !r->outputs[i].tensor) {
            LF_TRY(lf_tensor_allocate(r->stream, (lf_dtype)o->dtype, o->rank, (const int64_t *)&slot[1],
                                      &r->outputs[i].allocated));
            const lfuser_tensor *t = &r->outputs[i].allocated->tensor;
            slot[0] = (uint64_t)(uintptr_t)t->data;
            memcpy(&slot[1 + o->rank], t->strides, o->rank * sizeof *slot);
        }
    }
    return NULL;
}

void lf_run_deliver_host_values(const lf_run *r, uint32_t n_stages) {
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        const lfuser_abi_output *o = &r->abi->outputs[i];
        lfuser_output *out = &r->outputs[i];
        out->kind = (lfuser_kind)o->kind;
        out->dtype = (lfuser_dtype)o->dtype;
        if (o->kind != LFUSER_ABI_SCALAR && o->kind != LFUSER_ABI_HOST_TENSOR) continue;
        out->value = (lfuser_scalar){.word = {0, 0}};
        if (o->stage >= n_stages) continue;
        const uint64_t *slot = &r->frame->slots[o->slot];
        out->value.word[0] = lf_run_word((lf_dtype)o->dtype, slot[0]);
        if (o->dtype == LF_C128) out->value.word[1] = slot[1];
    }
}

// After a failure: what was made for the caller goes back.
void lf_run_withdraw_outputs(const lf_run *r) {
    for (uint32_t i = 0; i < r->abi->n_arrivals; i++) {
        lfuser_pending *arrival = r->frame->arrivals[i];
        if (arrival) arrival->captured = r->capturing;
        lf_pending_release(arrival, !r->capturing);
        r->frame->arrivals[i] = NULL;
    }
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        lfuser_output *out = &r->outputs[i];
        if (out->allocated) out->allocated->deleter(out->allocated);
        if (out->pending) out->pending->captured = r->capturing; // false again when nothing of the run got into the graph
        lf_pending_release(out->pending, !r->capturing);
        out->allocated = NULL;
        out->pending = NULL;
    }
}
