// One run: arguments into the frame, then stage by stage: host code, outputs, launches. Nothing of a stage is launched before
// everything that can be refused in it has been looked at, compiled and allocated; without sync points there is one stage.
// Does not belong here: reading arguments (arguments.c), making outputs (outputs.c).
#include "api/run.h"
#include "base/debug.h"
#include "base/text.h"
#include "runtime/fpstate.h"
#include <string.h>

// ---- checks ------------------------------------------------------------------------------------------------------------------------

static lf_status failed_check(const lf_run *r, int64_t number) {
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
    if (check->line)
        lf_text_put(&t, " (%s:%u:%u)", r->e->fusion->file ? r->e->fusion->file : "<text>", check->line, check->column);
    char *text;
    LF_TRY(lf_text_take(&t, &text));
    lf_place place = {r->e->fusion->file, check->line, check->column};
    lf_status s = lf_error_at(r->a, LF_FAILED_CHECK, place, "%s", text);
    lf_free(r->a, text);
    return s;
}

// ---- launches ----------------------------------------------------------------------------------------------------------------------

enum { FEW_ELEMENTS = 16384 }; // that a CPU thread takes at once

// *io_after_kernel: the last that the stream was given is a kernel of this stage, and nothing else. Then one whose code waits by itself may
// begin early.
static void to_launch(const lf_run *r, uint32_t i, const lf_variant *variant, bool *io_after_kernel, lf_launch *out) {
    const lfuser_abi_launch *l = &r->abi->launches[i];
    const lf_launch_plan *plan = &r->frame->planned[i].plan;
    const lf_object *object = &variant->code->object;
    bool main = variant == r->frame->planned[i].variant;
    uint64_t items = main && plan->cells ? plan->cells : plan->items, columns = plan->columns;
    uint64_t a_block = object->rows_a_block ? object->rows_a_block : 1, grid = items / a_block + (items % a_block != 0);
    uint64_t cluster = object->cluster ? object->cluster : 1;
    grid = (grid < INT32_MAX / cluster ? grid : INT32_MAX / cluster) * cluster;
    if (main && plan->shared_out) { // no more blocks than are resident at once
        uint64_t most = lf_resident_blocks(&r->device->info, &variant->kernel->resources, object->block,
                                           object->staged_bytes, object->cluster);
        if (most && grid > most) grid = most;
    }
    *out = (lf_launch){.kernel = variant->kernel,
                       .args = &r->frame->args[l->args_slot],
                       .n_args = l->n_args,
                       .args_in_memory = l->n_args * 8u > 4000,
                       .items = items,
                       .grain = FEW_ELEMENTS / (columns ? columns : 1) + 1,
                       .grid = (uint32_t)grid,
                       .block = object->block,
                       .shared = object->staged_bytes};
    if (main && plan->zero_bytes && variant->cls.shape == plan->cls.shape) { // flags, counters
        out->zero = (void *)(uintptr_t)out->args[l->scratch_word];
        out->zero_bytes = plan->zero_bytes;
        *io_after_kernel = false;
    }
    out->follows = *io_after_kernel && object->waits && !out->args_in_memory && !(l->debug & LF_DEBUG_NO_OVERLAP);
    *io_after_kernel = !out->args_in_memory; // memory for those is given back behind the kernel
}

// What a planned launch launches, in order: one kernel or two.
static uint32_t launches_of(const lf_run *r, uint32_t i, bool *io_after_kernel, lf_launch out[2]) {
    const lf_planned *planned = &r->frame->planned[i];
    uint32_t n = 0;
    if (planned->variant) to_launch(r, i, planned->variant, io_after_kernel, &out[n++]);
    if (planned->combine) to_launch(r, i, planned->combine, io_after_kernel, &out[n++]);
    return n;
}

// The whole stage at once, where the device can and the caller wants that.
static lf_status replay_stage(lf_run *r, const lfuser_abi_stage *stage, bool *out_done) {
    uint32_t n = 0;
    bool after_kernel = false;
    *out_done = false;
    for (uint32_t i = stage->first_launch; i < stage->first_launch + stage->n_launches; i++)
        n += launches_of(r, i, &after_kernel, &r->frame->launches[n]);
    if (n < r->e->replay_from) return NULL;
    lf_replays *replays = lf_executable_take_replays(r->e, r->stream);
    if (!replays) return NULL;
    r->launched = true;
    lf_status s =
        r->device->ops->replay(r->stream->stream, &replays->stages[stage - r->abi->stages], r->frame->launches, n, out_done);
    lf_executable_give_replays(r->e, replays);
    return s;
}

static lf_status launch_stage(lf_run *r, const lfuser_abi_stage *stage) {
    const lf_device_ops *ops = r->device->ops;
    bool done = false, after_kernel = false;
    if (r->e->replay_from && !r->capturing) LF_TRY(replay_stage(r, stage, &done));
    for (uint32_t i = stage->first_launch; i < stage->first_launch + stage->n_launches && !done; i++) {
        lf_launch launches[2];
        for (uint32_t k = 0, n = launches_of(r, i, &after_kernel, launches); k < n; k++) {
            r->launched = true;
            if (launches[k].zero_bytes)
                LF_TRY(ops->memory_fill(r->stream->stream, launches[k].zero, 0, launches[k].zero_bytes));
            lf_status s = ops->launch(r->stream->stream, &launches[k]);
            if (s) return lf_status_note(s, "while launching %s", r->abi->launches[i].name);
        }
    }
    return NULL;
}

// Chooses and, where need be, compiles every kernel of a stage before its first is launched.
static lf_status plan_launches(lf_run *r, const lfuser_abi_stage *stage) {
    lfuser_executable *e = r->e;
    for (uint32_t i = stage->first_launch; i < stage->first_launch + stage->n_launches; i++) {
        const lfuser_abi_launch *l = &r->abi->launches[i];
        lf_planned *planned = &r->frame->planned[i];
        planned->variant = planned->combine = NULL;
        if (l->guard != LFUSER_ABI_NONE && !r->frame->slots[l->guard]) continue;
        if (l->mixed != LFUSER_ABI_NONE && !lf_launch_is_made(l, i, r->frame->planned[l->mixed].variant)) continue;
        if (!lf_launch_plan_make(l, r->frame->slots, r->device, &r->frame->args[l->args_slot], &planned->plan)) continue;
        LF_TRY(lf_executable_variant(e, i, planned->plan.cls, r->stream, &planned->variant));
        bool as_planned = planned->variant->cls.shape == planned->plan.cls.shape;
        if (as_planned && planned->plan.combined) {
            LF_TRY(lf_executable_variant(e, i, planned->plan.combine, r->stream, &planned->combine));
            as_planned = planned->combine->cls.shape == planned->plan.combine.shape;
            if (!as_planned) planned->variant = planned->combine, planned->combine = NULL;
        }
        if (!as_planned) planned->plan.cells = 0, planned->plan.shared_out = false; // the general class, in its stead
    }
    return NULL;
}

// ---- stages ------------------------------------------------------------------------------------------------------------------------

enum { LOOK_AT_STREAM_NS = 1000000, WORKSPACE_ALIGNMENT = 256 };

// Waits for the value, not for the stream; but when the stream is done, or broken, it will never come.
static lf_status await_value(const lf_run *r, const lf_mailbox *box) {
    for (;;) {
        if (lf_mailbox_await(box, LOOK_AT_STREAM_NS)) return NULL;
        lf_status s = r->device->ops->stream_query(r->stream->stream);
        if (lf_status_code(s) == LF_NOT_READY) {
            lf_status_destroy(s);
            continue;
        }
        if (s || lf_mailbox_ready(box)) return s;
        return lf_error(r->a, LF_INTERNAL, "@%s: the device is done and has not delivered a scalar that the host waits for",
                        r->abi->name);
    }
}

static lf_status fetch_all(lf_run *r, const lfuser_abi_stage *stage) {
    atomic_fetch_add_explicit(&r->device->stats.syncs, 1, memory_order_relaxed);
    for (uint32_t i = stage->first_fetch; i < stage->first_fetch + stage->n_fetches; i++) {
        const lfuser_abi_fetch *fetch = &r->abi->fetches[i];
        lf_mailbox *box = &r->frame->boxes[i];
        uint64_t words[2] = {0, 0};
        LF_TRY(await_value(r, box));
        lf_mailbox_read(box, words);
        r->frame->slots[fetch->slot] = 0;
        memcpy(&r->frame->slots[fetch->slot], words, lf_dtype_bytes((lf_dtype)fetch->dtype));
        lf_mailbox_give(r->e->device->mailboxes, box);
    }
    return NULL;
}

lf_status lf_run_infer(lf_run *r, uint32_t stage) {
    int64_t failed = r->e->host.stages[stage].infer(r->frame->slots);
    return failed < 0 ? NULL : failed_check(r, failed);
}

static lf_status given_workspace(const lf_run *r, uint64_t bytes, void **out_workspace) {
    *out_workspace = r->options.workspace;
    if (r->options.workspace_bytes < bytes)
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: the workspace has %llu bytes, this run needs %llu", r->abi->name,
                        (unsigned long long)r->options.workspace_bytes, (unsigned long long)bytes);
    if ((uintptr_t)r->options.workspace % WORKSPACE_ALIGNMENT)
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: the workspace at %p is not aligned to %d bytes", r->abi->name,
                        r->options.workspace, (int)WORKSPACE_ALIGNMENT);
    return NULL;
}

// Asking CUDA's pool and giving back costs as much as a launch of a graph. A graph that is captured needs memory of its own.
static lf_status take_workspace(const lf_run *r, uint64_t bytes, void **out_workspace) {
    const lf_device_ops *ops = r->device->ops;
    lfuser_stream *s = r->stream;
    bool small = r->device->type == LF_DEVICE_CUDA && bytes <= LF_SCRATCH_BYTES && r->abi->n_stages == 1;
    if (!small || ops->stream_capturing(s->stream)) return ops->memory_alloc(s->stream, bytes, out_workspace);
    if (!s->scratch) LF_TRY(ops->memory_alloc(s->stream, LF_SCRATCH_BYTES, &s->scratch));
    *out_workspace = s->scratch;
    return NULL;
}

// Where the host needs scalars of the device (stage > 0) it waits for those first.
static lf_status run_stage(lf_run *r, uint32_t number) {
    const lfuser_abi_stage *stage = &r->abi->stages[number];
    uint64_t *slots = r->frame->slots, bytes;
    void *workspace = NULL;
    if (number) {
        LF_TRY(fetch_all(r, stage));
        LF_TRY(lf_run_infer(r, number));
    }
    LF_TRY(lf_run_prepare_outputs(r, number));
    bytes = slots[stage->workspace_bytes_slot];
    if (!number && r->options.workspace)
        LF_TRY(given_workspace(r, bytes, &workspace));
    else if (bytes)
        LF_TRY(take_workspace(r, bytes, &workspace));
    slots[stage->workspace_slot] = (uint64_t)(uintptr_t)workspace;
    r->n_workspaces = number + 1;
    const lfuser_abi_stage *next = number + 1 < r->abi->n_stages ? stage + 1 : NULL;
    for (uint32_t i = next ? next->first_fetch : 0; next && i < next->first_fetch + next->n_fetches; i++) {
        LF_TRY(lf_device_take_mailbox(r->e->device, &r->frame->boxes[i]));
        slots[r->abi->fetches[i].box_slot] = (uint64_t)(uintptr_t)r->frame->boxes[i].device_slot;
    }
    r->e->host.stages[number].bind(slots);
    LF_TRY(plan_launches(r, stage));
    return launch_stage(r, stage);
}

// While its stream is captured into a graph, a run becomes part of that: nothing can be waited for, and whatever its kernels write to
// is theirs as long as the graph may be replayed.
static bool look_for_capture(const lf_run *r, bool completes) {
    bool matters = completes || r->abi->n_stages > 1 || r->e->replay_from || r->e->delivers;
    return matters && r->device->ops->stream_capturing(r->stream->stream);
}

static lf_status run_stages(lf_run *r, bool wants_completion) {
    const lf_device_ops *ops = r->device->ops;
    uint64_t *slots = r->frame->slots;
    bool can_err = r->abi->error_slot != LFUSER_ABI_NONE, completes = can_err || wants_completion;
    r->capturing = look_for_capture(r, completes);
    if (r->abi->n_stages > 1 && r->capturing)
        return lf_error(r->a, LF_CAPTURE_ERROR,
                        "@%s has sync points: the host would wait for work that is only being captured", r->abi->name);
    LF_TRY(lf_executable_note_stream(r->e, r->stream));
    for (uint32_t i = 0; i < r->abi->n_constants; i++)
        slots[r->abi->constants[i].slot] = (uint64_t)(uintptr_t)r->e->constants[i];
    if (completes) LF_TRY(lf_completion_create(r->e, &r->completion));
    if (completes) r->completion->captured = r->capturing;
    if (can_err)
        slots[r->abi->error_slot] = (uint64_t)(uintptr_t)r->completion->box.device_slot + offsetof(lf_mailbox_slot, value);
    for (uint32_t i = 0; i < r->abi->n_stages; i++) LF_TRY(run_stage(r, i));
    if (completes && !r->capturing) LF_TRY(ops->event_record(r->completion->event, r->stream->stream));
    return can_err ? lf_executable_keep_unread(r->e, r->completion) : NULL;
}

static void free_workspaces(const lf_run *r) {
    for (uint32_t i = r->options.workspace != NULL; i < r->n_workspaces; i++) {
        void *workspace = (void *)(uintptr_t)r->frame->slots[r->abi->stages[i].workspace_slot];
        if (workspace != r->stream->scratch) r->device->ops->memory_free(r->stream->stream, workspace);
    }
}

static lf_status run_device(lf_run *r, bool wants_completion) {
    lf_status s = run_stages(r, wants_completion);
    if (s && r->launched && !r->capturing) // some kernels may be under way: whatever they write to must outlive them
        lf_status_destroy(r->device->ops->stream_synchronize(r->stream->stream));
    for (uint32_t i = 0; s && i < r->abi->n_fetches; i++) lf_mailbox_give(r->e->device->mailboxes, &r->frame->boxes[i]);
    if (s && !r->launched) r->capturing = false; // nothing of it is in the graph
    if (s && r->completion) r->completion->captured = r->capturing;
    free_workspaces(r);
    return s;
}

static lf_status wrong_stream(const lf_run *r) {
    const lf_device *d = r->stream->device->device;
    if (!r->device)
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s was compiled for no device, the stream is of %s:%d", r->abi->name,
                        d->ops->name, d->ordinal);
    return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: the stream is of %s:%d, the program was compiled for %s:%d%s",
                    r->abi->name, d->ops->name, d->ordinal, r->device->ops->name, r->device->ordinal,
                    d->ordinal == r->device->ordinal && d->type == r->device->type ? ", opened another time" : "");
}

// Everything that does not fit is said elsewhere; most scalars do.
static inline lf_status read_argument(lf_run *r, uint32_t i) {
    const lfuser_abi_param *p = &r->abi->params[i];
    const lfuser_argument *arg = &r->arguments[i];
    if (p->kind != LFUSER_ABI_SCALAR || arg->kind != LFUSER_SCALAR || (uint32_t)arg->dtype != p->dtype)
        return lf_run_read_argument(r, i);
    lf_run_put_scalar(&r->frame->slots[p->slot], (lf_dtype)p->dtype, &arg->value);
    return NULL;
}

static lf_status start(lf_run *r, size_t n_arguments, size_t n_outputs) {
    if (n_arguments != r->abi->n_params)
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s takes %u arguments, got %zu", r->abi->name, r->abi->n_params,
                        n_arguments);
    if (n_outputs != r->abi->n_outputs)
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s gives %u outputs, got room for %zu", r->abi->name, r->abi->n_outputs,
                        n_outputs);
    if ((n_arguments && !r->arguments) || (n_outputs && !r->outputs))
        return lf_error(r->a, LF_INVALID_ARGUMENT, "@%s: arguments or outputs are NULL", r->abi->name);
    if (!r->frame) r->frame = lf_frame_take(r->e);
    if (!r->frame) return lf_out_of_memory();
    for (uint32_t i = 0; i < r->abi->n_params; i++) LF_TRY(read_argument(r, i));
    return lf_run_infer(r, 0);
}

// Scalars alone: nothing outlives the call, so the frame can lie on the stack, and what belongs to devices is not looked at.
static lf_status run_on_host(lf_run *r, size_t n_arguments, size_t n_outputs) {
    uint64_t slots[LF_HOST_SLOTS];
    lf_frame frame = {.slots = slots};
    r->frame = &frame;
    lf_fpstate fp = lf_fp_enter();
    lf_status s = start(r, n_arguments, n_outputs);
    lf_fp_leave(fp);
    for (size_t i = 0; !s && i < n_outputs; i++) r->outputs[i].pending = NULL, r->outputs[i].allocated = NULL;
    if (!s) lf_run_deliver_host_values(r, 1);
    return s;
}

lfuser_status lfuser_run_with(lfuser_executable *e, lfuser_stream *stream, const lfuser_argument *arguments,
                              size_t n_arguments, lfuser_output *outputs, size_t n_outputs,
                              const lfuser_run_options *options, lfuser_completion **out_completion) {
    if (out_completion) *out_completion = NULL;
    LF_NEED_FOR(e, LF_EXECUTABLE_HANDLE, "lfuser_run");
    if (stream) LF_NEED_FOR(stream, LF_STREAM_HANDLE, "lfuser_run");
    lf_run r = {.e = e,
                .abi = &e->program->abi,
                .a = &e->context->allocator,
                .device = e->device ? e->device->device : NULL,
                .stream = stream,
                .arguments = arguments,
                .outputs = outputs};
    if (e->host_only && !out_completion) return lf_public(run_on_host(&r, n_arguments, n_outputs));
    if (options) memcpy(&r.options, options, options->size < sizeof r.options ? options->size : sizeof r.options);
    bool device_work = r.abi->n_launches != 0 || (out_completion && e->device && stream);
    if (device_work && (!stream || stream->device->device != r.device))
        return lf_public(
            stream ? wrong_stream(&r)
                   : lf_error(r.a, LF_INVALID_ARGUMENT, "@%s: the program has device work and needs a stream", r.abi->name));
    if (r.abi->error_slot != LFUSER_ABI_NONE) {
        lf_status earlier = lf_executable_check_unread(e);
        if (earlier) return lf_public(earlier);
    }
    lf_fpstate fp = lf_fp_enter();
    lf_status s = start(&r, n_arguments, n_outputs);
    bool started = !s;
    for (size_t i = 0; started && i < n_outputs; i++) outputs[i].pending = NULL, outputs[i].allocated = NULL;
    if (!s && device_work)
        s = run_device(&r, out_completion != NULL);
    else if (!s && out_completion)
        s = lf_completion_create_done(e, &r.completion);
    if (!s) lf_run_deliver_host_values(&r, r.abi->n_stages);
    if (!s && r.abi->n_finishes) lf_run_keep_operands(&r);
    lf_fp_leave(fp);
    if (s && started) lf_run_withdraw_outputs(&r);
    if (r.frame) lf_frame_give(e, r.frame);
    if (s || !out_completion)
        lfuser_completion_release(r.completion);
    else
        *out_completion = r.completion;
    return lf_public(s);
}

lfuser_status lfuser_run(lfuser_executable *e, lfuser_stream *stream, const lfuser_argument *arguments, size_t n_arguments,
                         lfuser_output *outputs, size_t n_outputs, lfuser_completion **out_completion) {
    return lfuser_run_with(e, stream, arguments, n_arguments, outputs, n_outputs, NULL, out_completion);
}

lfuser_status lfuser_infer(lfuser_executable *e, const lfuser_argument *arguments, size_t n_arguments,
                           lfuser_output *outputs, size_t n_outputs, int64_t (*shapes)[8], uint64_t *out_workspace_bytes) {
    LF_NEED(e, LF_EXECUTABLE_HANDLE);
    lf_run r = {.e = e, .abi = &e->program->abi, .a = &e->context->allocator, .arguments = arguments, .outputs = outputs};
    lf_fpstate fp = lf_fp_enter();
    lf_status s = start(&r, n_arguments, n_outputs);
    lf_fp_leave(fp);
    if (!s) lf_run_deliver_host_values(&r, 1);
    for (uint32_t i = 0; !s && shapes && i < r.abi->n_outputs; i++)
        for (uint32_t k = 0; r.abi->outputs[i].kind == LFUSER_ABI_TENSOR && k < r.abi->outputs[i].rank; k++)
            shapes[i][k] = r.abi->outputs[i].stage ? -1 : (int64_t)r.frame->slots[r.abi->outputs[i].slot + 1 + k];
    if (!s && out_workspace_bytes) *out_workspace_bytes = r.frame->slots[r.abi->stages[0].workspace_bytes_slot];
    if (r.frame) lf_frame_give(e, r.frame);
    return lf_public(s);
}
