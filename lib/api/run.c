// One run: arguments into the frame, host code, outputs, launches. Nothing is launched before everything that can be refused has
// been looked at, compiled and allocated.
#include "api/api.h"
#include "base/text.h"
#include "runtime/fpstate.h"
#include <string.h>

typedef struct run {
    lfuser_executable *e;
    const lfuser_abi_program *abi;
    const lf_allocator *a;
    lf_device *device;
    lfuser_stream *stream;
    const lfuser_argument *arguments;
    lfuser_output *outputs;
    lf_frame *frame;
    void *workspace;
    lfuser_completion *completion;
} run;

static lf_status bad_argument(const run *r, uint32_t i, const char *format, ...) __attribute__((format(printf, 3, 4)));
static lf_status bad_argument(const run *r, uint32_t i, const char *format, ...) {
    // In two steps: a parameter's name after its '%' must not become part of the format.
    const char *name = r->abi->params[i].name;
    va_list args;
    va_start(args, format);
    lf_status what = lf_error_v(r->a, LF_INVALID_ARGUMENT, (lf_place){0}, format, args);
    va_end(args);
    lf_status s = lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: argument %u (%%%s): %s", r->abi->name, i, name ? name : "?", lf_status_message(what));
    lf_status_destroy(what);
    return s;
}

// ---- arguments ---------------------------------------------------------------------------------------------------------------------

static void put_scalar(uint64_t *slot, lf_dtype d, const void *value) {
    unsigned bytes = lf_dtype_bytes(d);
    slot[0] = 0;
    memcpy(slot, value, bytes);
    if (d == LF_BOOL) slot[0] = slot[0] != 0;
}

static const char *device_name(int type) { return type == 1 ? "cpu" : type == 2 ? "cuda" : type == 3 ? "cuda-host" : "other"; }

static bool fits_device(const lf_device *d, const lfuser_tensor *t) {
    if (d->type == LF_DEVICE_CPU) return t->device.type == 1 || t->device.type == 3;
    return t->device.type == (int)d->type && t->device.ordinal == d->ordinal;
}

static lf_status read_tensor(run *r, uint32_t i) {
    const lfuser_abi_param *p = &r->abi->params[i];
    const lfuser_tensor *t = r->arguments[i].tensor;
    if (r->arguments[i].kind != LFUSER_TENSOR || !t) return bad_argument(r, i, "expected a tensor of rank %u of %s, got %s", p->rank,
                                                                        lf_dtype_name((lf_dtype)p->dtype), r->arguments[i].kind == LFUSER_TENSOR ? "none" : "a scalar");
    if (t->rank != p->rank) return bad_argument(r, i, "expected rank %u, got rank %d", p->rank, (int)t->rank);
    lf_dtype d = lf_tensor_dtype(t);
    if (d != (lf_dtype)p->dtype)
        return bad_argument(r, i, "expected dtype %s, got %s (DLPack code %u, %u bits, %u lanes)", lf_dtype_name((lf_dtype)p->dtype),
                            d ? lf_dtype_name(d) : "one that is not supported", t->dtype.code, t->dtype.bits, t->dtype.lanes);
    if (r->device && !fits_device(r->device, t))
        return bad_argument(r, i, "lies on %s:%d, the program was compiled for %s:%d", device_name(t->device.type), (int)t->device.ordinal,
                            r->device->ops->name, r->device->ordinal);
    uint64_t *slot = &r->frame->slots[p->slot];
    uint64_t address = (uint64_t)(uintptr_t)t->data + t->byte_offset;
    unsigned part = lf_dtype_bytes(lf_dtype_part(d));
    bool empty = false;
    int64_t stride = 1;
    for (uint32_t k = p->rank; k-- > 0;) {
        int64_t extent = t->shape[k];
        if (extent < 0) return bad_argument(r, i, "axis %u has the negative extent %lld", k, (long long)extent);
        empty |= extent == 0;
        slot[1 + k] = (uint64_t)extent;
        slot[1 + p->rank + k] = (uint64_t)(t->strides ? t->strides[k] : stride);
        if (!t->strides && __builtin_mul_overflow(stride, extent ? extent : 1, &stride))
            return bad_argument(r, i, "has more elements than fit 64 bits");
    }
    if (!empty && !t->data && r->device) return bad_argument(r, i, "has no data (NULL), but elements");
    if (!empty && address % part) return bad_argument(r, i, "address %#llx is not aligned to its element of %u bytes", (unsigned long long)address, part);
    slot[0] = address;
    return NULL;
}

static lf_status read_argument(run *r, uint32_t i) {
    const lfuser_abi_param *p = &r->abi->params[i];
    const lfuser_argument *arg = &r->arguments[i];
    if (p->kind == LFUSER_ABI_TENSOR) return read_tensor(r, i);
    const void *value = &arg->value;
    lf_dtype d = (lf_dtype)arg->dtype;
    if (p->kind == LFUSER_ABI_HOST_TENSOR && arg->tensor) {
        const lfuser_tensor *t = arg->tensor;
        if (t->rank != 0) return bad_argument(r, i, "expected a host tensor of rank 0, got rank %d", (int)t->rank);
        if (t->device.type != 1 && t->device.type != 3) return bad_argument(r, i, "must lie in host memory, lies on %s:%d", device_name(t->device.type), (int)t->device.ordinal);
        if (!t->data) return bad_argument(r, i, "has no data (NULL)");
        d = lf_tensor_dtype(t);
        value = (const char *)t->data + t->byte_offset;
    } else if (arg->kind == LFUSER_TENSOR || (p->kind == LFUSER_ABI_SCALAR && arg->kind != LFUSER_SCALAR)) {
        return bad_argument(r, i, "expected a scalar of %s, got a tensor", lf_dtype_name((lf_dtype)p->dtype));
    }
    if (d != (lf_dtype)p->dtype) return bad_argument(r, i, "expected dtype %s, got %s", lf_dtype_name((lf_dtype)p->dtype), d ? lf_dtype_name(d) : "none");
    put_scalar(&r->frame->slots[p->slot], d, value);
    return NULL;
}

// ---- checks ------------------------------------------------------------------------------------------------------------------------

static lf_status failed_check(const run *r, int64_t number) {
    const lfuser_abi_check *check = &r->abi->checks[number];
    lf_text t;
    lf_text_init(&t, r->a);
    lf_text_put(&t, "@%s: ", r->abi->name);
    const uint64_t *numbers = &r->frame->slots[r->abi->numbers_slot];
    for (const char *c = check->message; *c; c++) {
        if (c[0] == '{' && c[1] >= '0' && c[1] <= '9' && c[2] == '}' && (uint32_t)(c[1] - '0') < check->n_numbers) {
            uint32_t k = (uint32_t)(c[1] - '0');
            lf_scalar s = {.word = {numbers[k], 0}};
            char text[96];
            lf_text_append(&t, text, lf_scalar_print(text, sizeof text, (lf_dtype)check->dtypes[k], &s));
            c += 2;
        } else {
            lf_text_append(&t, c, 1);
        }
    }
    if (check->line) lf_text_put(&t, " (%s:%u:%u)", r->e->fusion->file ? r->e->fusion->file : "<text>", check->line, check->column);
    char *text;
    LF_TRY(lf_text_take(&t, &text));
    lf_place place = {r->e->fusion->file, check->line, check->column};
    lf_status s = lf_error_at(r->a, LF_FAILED_CHECK, place, "%s", text);
    lf_free(r->a, text);
    return s;
}

// ---- outputs -----------------------------------------------------------------------------------------------------------------------

typedef struct range {
    uint64_t low, high;                  // bytes [low, high)
} range;

static range range_of(const uint64_t *slot, uint32_t rank, unsigned bytes) {
    int64_t low = 0, high = 0;
    for (uint32_t k = 0; k < rank; k++) {
        int64_t extent = (int64_t)slot[1 + k], stride = (int64_t)slot[1 + rank + k];
        if (extent == 0) return (range){0, 0};
        if (stride < 0) low += (extent - 1) * stride;
        else high += (extent - 1) * stride;
    }
    return (range){slot[0] + (uint64_t)(low * (int64_t)bytes), slot[0] + (uint64_t)((high + 1) * (int64_t)bytes)};
}

static bool overlap(range a, range b) { return a.low < b.high && b.low < a.high; }

// Different elements must lie in different places: seen from the smallest stride up, each clears what lies below it.
static bool is_injective(const uint64_t *slot, uint32_t rank) {
    bool used[LF_MAX_RANK] = {false};
    uint64_t reach = 1;                  // elements that the axes so far cover
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

static lf_status bad_output(const run *r, uint32_t i, const char *what) {
    const char *name = r->abi->outputs[i].name;
    return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: output %u (%%%s): %s", r->abi->name, i, name ? name : "?", what);
}

static lf_status given_output(run *r, uint32_t i) {
    const lfuser_abi_output *o = &r->abi->outputs[i];
    const lfuser_tensor *t = r->outputs[i].tensor;
    uint64_t *slot = &r->frame->slots[o->slot];
    if (t->rank != o->rank || lf_tensor_dtype(t) != (lf_dtype)o->dtype)
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: output %u (%%%s): the buffer is %s of rank %d, the output %s of rank %u", r->abi->name, i,
                        o->name ? o->name : "?", lf_dtype_name(lf_tensor_dtype(t)), (int)t->rank, lf_dtype_name((lf_dtype)o->dtype), o->rank);
    if (!fits_device(r->device, t)) return bad_output(r, i, "the buffer lies on another device");
    int64_t stride = 1;
    bool empty = false;
    for (uint32_t k = o->rank; k-- > 0;) {
        if (t->shape[k] != (int64_t)slot[1 + k])
            return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: output %u (%%%s): axis %u of the buffer has extent %lld, the output %lld", r->abi->name, i,
                            o->name ? o->name : "?", k, (long long)t->shape[k], (long long)slot[1 + k]);
        empty |= t->shape[k] == 0;
        slot[1 + o->rank + k] = (uint64_t)(t->strides ? t->strides[k] : stride);
        stride *= t->shape[k];
    }
    slot[0] = (uint64_t)(uintptr_t)t->data + t->byte_offset;
    if (!empty && !t->data) return bad_output(r, i, "the buffer has no data (NULL)");
    if (!empty && slot[0] % lf_dtype_bytes(lf_dtype_part((lf_dtype)o->dtype))) return bad_output(r, i, "the buffer is not aligned to its element");
    if (!is_injective(slot, o->rank)) return bad_output(r, i, "the buffer's strides make elements share memory");
    return NULL;
}

static lf_status output_into(run *r, uint32_t i) {
    const lfuser_abi_output *o = &r->abi->outputs[i];
    const lfuser_abi_param *p = &r->abi->params[o->into];
    uint64_t *slot = &r->frame->slots[o->slot];
    const uint64_t *from = &r->frame->slots[p->slot];
    slot[0] = from[0];
    memcpy(&slot[1 + o->rank], &from[1 + p->rank], o->rank * sizeof *slot);
    if (!is_injective(slot, o->rank))
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: output %u goes into %%%s, whose strides make elements share memory", r->abi->name, i, p->name);
    return NULL;
}

// What is written must not lie over anything that is read or written beside it, except an output over its own parameter.
static lf_status check_overlaps(const run *r, uint32_t i) {
    const lfuser_abi_output *o = &r->abi->outputs[i];
    range mine = range_of(&r->frame->slots[o->slot], o->rank, lf_dtype_bytes((lf_dtype)o->dtype));
    if (mine.low == mine.high) return NULL;
    for (uint32_t p = 0; p < r->abi->n_params; p++) {
        const lfuser_abi_param *param = &r->abi->params[p];
        if (param->kind != LFUSER_ABI_TENSOR || p == o->into) continue;
        if (overlap(mine, range_of(&r->frame->slots[param->slot], param->rank, lf_dtype_bytes((lf_dtype)param->dtype))))
            return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: output %u (%%%s) overlaps argument %u (%%%s) in memory", r->abi->name, i,
                            o->name ? o->name : "?", p, param->name);
    }
    for (uint32_t k = 0; k < i; k++) {
        const lfuser_abi_output *other = &r->abi->outputs[k];
        bool ours = other->kind == LFUSER_ABI_TENSOR && other->into == LFUSER_ABI_NONE && !r->outputs[k].tensor;
        if (other->kind != LFUSER_ABI_TENSOR || ours) continue;
        if (overlap(mine, range_of(&r->frame->slots[other->slot], other->rank, lf_dtype_bytes((lf_dtype)other->dtype))))
            return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: outputs %u and %u overlap in memory", r->abi->name, k, i);
    }
    return NULL;
}

static lf_status prepare_outputs(run *r) {
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        const lfuser_abi_output *o = &r->abi->outputs[i];
        if (o->kind != LFUSER_ABI_TENSOR) continue;
        bool into = o->into != LFUSER_ABI_NONE;
        if (!into && !r->outputs[i].tensor) continue;
        LF_TRY(into ? output_into(r, i) : given_output(r, i));
        LF_TRY(check_overlaps(r, i));
    }
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        const lfuser_abi_output *o = &r->abi->outputs[i];
        uint64_t *slot = &r->frame->slots[o->slot];
        if (o->kind == LFUSER_ABI_PENDING) {
            LF_TRY(lf_device_take_mailbox(r->e->device, &r->frame->boxes[i]));
            slot[0] = (uint64_t)(uintptr_t)r->frame->boxes[i].device_slot;
            lfuser_pending *p = lf_alloc_zero(r->a, sizeof *p);
            if (!p) return lf_out_of_memory();
            *p = (lfuser_pending){r->e->device, r->frame->boxes[i], (lf_dtype)o->dtype};
            lf_device_retain(r->e->device);
            r->outputs[i].pending = p;
        } else if (o->kind == LFUSER_ABI_TENSOR && o->into == LFUSER_ABI_NONE && !r->outputs[i].tensor) {
            LF_TRY(lf_tensor_allocate(r->stream, (lf_dtype)o->dtype, o->rank, (const int64_t *)&slot[1], &r->outputs[i].allocated));
            const lfuser_tensor *t = &r->outputs[i].allocated->tensor;
            slot[0] = (uint64_t)(uintptr_t)t->data;
            memcpy(&slot[1 + o->rank], t->strides, o->rank * sizeof *slot);
        }
    }
    return NULL;
}

static void deliver_host_values(const run *r) {
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        const lfuser_abi_output *o = &r->abi->outputs[i];
        lfuser_output *out = &r->outputs[i];
        out->kind = (lfuser_kind)o->kind;
        out->dtype = (lfuser_dtype)o->dtype;
        if (o->kind != LFUSER_ABI_SCALAR && o->kind != LFUSER_ABI_HOST_TENSOR) continue;
        out->value = (lfuser_scalar){.word = {0, 0}};
        memcpy(&out->value, &r->frame->slots[o->slot], lf_dtype_bytes((lf_dtype)o->dtype));
    }
}

// After a failure: what was made for the caller goes back.
static void withdraw_outputs(const run *r) {
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        lfuser_output *out = &r->outputs[i];
        if (out->allocated) out->allocated->deleter(out->allocated);
        if (out->pending) {
            lf_device_give_mailbox(r->e->device, &out->pending->box, true);  // nothing was launched that could write it
            out->pending->box.slot = NULL;
            lfuser_pending_release(out->pending);
        }
        out->allocated = NULL;
        out->pending = NULL;
    }
}

// ---- launches ----------------------------------------------------------------------------------------------------------------------

enum { FEW_ELEMENTS = 16384 };           // that a CPU thread takes at once

static lf_status launch_all(run *r) {
    lfuser_executable *e = r->e;
    for (uint32_t i = 0; i < r->abi->n_launches; i++) {
        const lfuser_abi_launch *l = &r->abi->launches[i];
        lf_planned *planned = &r->frame->planned[i];
        if (!planned->variant) continue;
        const lf_object *object = &planned->variant->object;
        uint64_t items = planned->plan.cells ? planned->plan.cells : planned->plan.items, columns = planned->plan.columns, a_block = object->rows_a_block ? object->rows_a_block : 1;
        uint64_t grid = items / a_block + (items % a_block != 0);
        lf_launch launch = {.kernel = planned->variant->kernel, .args = &r->frame->args[l->args_slot], .n_args = l->n_args,
                            .args_in_memory = l->n_args * 8u > 4000, .items = items,
                            .grain = FEW_ELEMENTS / (columns ? columns : 1) + 1, .grid = (uint32_t)(grid > INT32_MAX ? INT32_MAX : grid),
                            .block = object->block};
        if (planned->plan.cells) {  // rows' counters of arrived chunks
            void *counters = (void *)(uintptr_t)launch.args[l->scratch_word];
            LF_TRY(e->device->device->ops->memory_fill(r->stream->stream, counters, 0, planned->plan.items * 8));
        }
        LF_TRY(e->device->device->ops->launch(r->stream->stream, &launch));
    }
    return NULL;
}

// Chooses and, where need be, compiles every kernel before the first is launched.
static lf_status plan_launches(run *r) {
    lfuser_executable *e = r->e;
    for (uint32_t i = 0; i < r->abi->n_launches; i++) {
        const lfuser_abi_launch *l = &r->abi->launches[i];
        lf_planned *planned = &r->frame->planned[i];
        planned->variant = NULL;
        if (l->guard != LFUSER_ABI_NONE && !r->frame->slots[l->guard]) continue;
        if (!lf_launch_plan_make(l, r->frame->slots, r->device, &r->frame->args[l->args_slot], &planned->plan)) continue;
        LF_TRY(lf_executable_variant(e, i, planned->plan.cls, r->stream, &planned->variant));
    }
    return NULL;
}

static lf_status run_device(run *r, bool wants_completion) {
    const lf_device_ops *ops = r->device->ops;
    uint64_t *slots = r->frame->slots;
    LF_TRY(lf_executable_note_stream(r->e, r->stream));
    LF_TRY(prepare_outputs(r));
    uint64_t bytes = slots[r->abi->workspace_bytes_slot];
    if (bytes) LF_TRY(ops->memory_alloc(r->stream->stream, bytes, &r->workspace));
    slots[r->abi->workspace_slot] = (uint64_t)(uintptr_t)r->workspace;
    for (uint32_t i = 0; i < r->abi->n_constants; i++) slots[r->abi->constants[i].slot] = (uint64_t)(uintptr_t)r->e->constants[i];
    bool can_err = r->abi->error_slot != LFUSER_ABI_NONE;
    if (can_err || wants_completion) LF_TRY(lf_completion_create(r->e, &r->completion));
    if (can_err) slots[r->abi->error_slot] = (uint64_t)(uintptr_t)r->completion->box.device_slot + offsetof(lf_mailbox_slot, value);
    r->e->host.bind(slots);
    LF_TRY(plan_launches(r));
    lf_status s = launch_all(r);
    if (s) {  // some kernels may be under way: whatever they write to must outlive them
        lf_status waited = ops->stream_synchronize(r->stream->stream);
        lf_status_destroy(waited);
        return s;
    }
    if (r->completion) LF_TRY(ops->event_record(r->completion->event, r->stream->stream));
    if (can_err) LF_TRY(lf_executable_keep_unread(r->e, r->completion));
    return NULL;
}

static lf_status start(run *r, size_t n_arguments, size_t n_outputs) {
    if (n_arguments != r->abi->n_params)
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s takes %u arguments, got %zu", r->abi->name, r->abi->n_params, n_arguments);
    if (n_outputs != r->abi->n_outputs)
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s gives %u outputs, got room for %zu", r->abi->name, r->abi->n_outputs, n_outputs);
    if ((n_arguments && !r->arguments) || (n_outputs && !r->outputs))
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: arguments or outputs are NULL", r->abi->name);
    r->frame = lf_frame_take(r->e);
    if (!r->frame) return lf_out_of_memory();
    for (uint32_t i = 0; i < r->abi->n_params; i++) LF_TRY(read_argument(r, i));
    int64_t failed = r->e->host.infer(r->frame->slots);
    return failed < 0 ? NULL : failed_check(r, failed);
}

lfuser_status lfuser_run(lfuser_executable *e, lfuser_stream *stream, const lfuser_argument *arguments, size_t n_arguments,
                         lfuser_output *outputs, size_t n_outputs, lfuser_completion **out_completion) {
    if (out_completion) *out_completion = NULL;
    if (!e) return lf_public(lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "lfuser_run: executable is NULL"));
    run r = {.e = e, .abi = &e->program->abi, .a = &e->context->allocator, .device = e->device ? e->device->device : NULL,
             .stream = stream, .arguments = arguments, .outputs = outputs};
    bool device_work = r.abi->n_launches != 0 || (out_completion && e->device && stream);
    if (device_work && (!stream || stream->device->device != r.device))
        return lf_public(lf_error(r.a, LF_INVALID_ARGUMENT, "@%s: %s", r.abi->name,
                                  stream ? "the stream is of another device than the executable" : "the program has device work and needs a stream"));
    if (r.abi->error_slot != LFUSER_ABI_NONE) {
        lf_status earlier = lf_executable_check_unread(e);
        if (earlier) return lf_public(earlier);
    }
    lf_fpstate fp = lf_fp_enter();
    lf_status s = start(&r, n_arguments, n_outputs);
    bool started = !s;
    for (size_t i = 0; started && i < n_outputs; i++) outputs[i].pending = NULL, outputs[i].allocated = NULL;
    if (!s && device_work) s = run_device(&r, out_completion != NULL);
    else if (!s && out_completion) s = lf_completion_create_done(e, &r.completion);
    if (!s) deliver_host_values(&r);
    lf_fp_leave(fp);
    if (r.workspace) r.device->ops->memory_free(stream->stream, r.workspace);
    if (s && started) withdraw_outputs(&r);
    if (r.frame) lf_frame_give(e, r.frame);
    if (s || !out_completion) lfuser_completion_release(r.completion);
    else *out_completion = r.completion;
    return lf_public(s);
}

lfuser_status lfuser_infer(lfuser_executable *e, const lfuser_argument *arguments, size_t n_arguments, lfuser_output *outputs, size_t n_outputs,
                           int64_t (*shapes)[8], uint64_t *out_workspace_bytes) {
    if (!e) return lf_public(lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "lfuser_infer: executable is NULL"));
    run r = {.e = e, .abi = &e->program->abi, .a = &e->context->allocator, .arguments = arguments, .outputs = outputs};
    lf_fpstate fp = lf_fp_enter();
    lf_status s = start(&r, n_arguments, n_outputs);
    lf_fp_leave(fp);
    if (!s) deliver_host_values(&r);
    for (uint32_t i = 0; !s && shapes && i < r.abi->n_outputs; i++)
        for (uint32_t k = 0; r.abi->outputs[i].kind == LFUSER_ABI_TENSOR && k < r.abi->outputs[i].rank; k++)
            shapes[i][k] = (int64_t)r.frame->slots[r.abi->outputs[i].slot + 1 + k];
    if (!s && out_workspace_bytes) *out_workspace_bytes = r.frame->slots[r.abi->workspace_bytes_slot];
    if (r.frame) lf_frame_give(e, r.frame);
    return lf_public(s);
}
