// What a run with such arguments would launch, without running it: for preparing shapes and for asking what would be compiled.
#include "api/run.h"
#include "runtime/fpstate.h"
#include <lfuser/launch_abi.h>
#include <string.h>

static const uint64_t SOMEWHERE = 1u << 20; // an address for memory that is not there: aligned as allocators align

// Shapes are enough: a tensor without data counts as aligned memory.
static lf_status read_argument(lf_run *r, uint32_t i, const lfuser_argument *given) {
    lfuser_argument argument = given[i];
    lfuser_tensor tensor;
    if (r->abi->params[i].kind == LFUSER_ABI_TENSOR && argument.kind == LFUSER_TENSOR && argument.tensor &&
        !argument.tensor->data) {
        tensor = *argument.tensor;
        tensor.data = (void *)(uintptr_t)SOMEWHERE;
        argument.tensor = &tensor;
    }
    r->arguments = &argument - i;
    lf_status s = lf_run_read_argument(r, i);
    r->arguments = NULL;
    return s;
}

static void place_outputs(const lf_run *r) {
    for (uint32_t i = 0; i < r->abi->n_outputs; i++) {
        const lfuser_abi_output *o = &r->abi->outputs[i];
        uint64_t *slot = &r->frame->slots[o->slot];
        if (o->stage || (o->kind != LFUSER_ABI_TENSOR && o->kind != LFUSER_ABI_PENDING)) continue;
        slot[0] = SOMEWHERE;
        if (o->kind == LFUSER_ABI_PENDING) continue;
        if (o->into != LFUSER_ABI_NONE) {
            const lfuser_abi_param *p = &r->abi->params[o->into];
            slot[0] = r->frame->slots[p->slot];
            memcpy(&slot[1 + o->rank], &r->frame->slots[p->slot + 1 + p->rank], o->rank * sizeof *slot);
            continue;
        }
        uint64_t stride = 1;
        for (uint32_t k = o->rank; k-- > 0; stride *= slot[1 + k]) slot[1 + o->rank + k] = stride;
    }
}

// What a later stage launches depends on what the device computes: of its launches that can be any shape, the classes that contiguous
// tensors get, and the general one.
static lf_status add_later_stages(lfuser_executable *e, lf_wanted_list *list) {
    const lfuser_abi_program *abi = &e->program->abi;
    for (uint32_t i = abi->stages[0].first_launch + abi->stages[0].n_launches; i < abi->n_launches; i++) {
        lfuser_abi_class classes[LF_MAX_CLASSES];
        uint32_t n = lf_launch_usual_classes(&abi->launches[i], e->device->device->type, classes);
        for (uint32_t k = 0; k < n; k++) LF_TRY(lf_wanted_add(e, list, i, classes[k]));
    }
    return NULL;
}

// Adds what is not loaded yet; of stages after the first what is to be expected, as no run can be waited for.
static lf_status plan(lfuser_executable *e, const lfuser_argument *arguments, size_t n_arguments, lf_wanted_list *list) {
    lf_run r = {.e = e,
                .abi = &e->program->abi,
                .a = &e->context->allocator,
                .device = e->device ? e->device->device : NULL,
                .imagined = true};
    if (n_arguments != r.abi->n_params)
        return lf_error(r.a, LF_INVALID_ARGUMENT, "@%s takes %u arguments, got %zu", r.abi->name, r.abi->n_params,
                        n_arguments);
    if (n_arguments && !arguments) return lf_error(r.a, LF_INVALID_ARGUMENT, "@%s: arguments are NULL", r.abi->name);
    r.frame = lf_frame_take(e);
    if (!r.frame) return lf_out_of_memory();
    uint64_t *slots = r.frame->slots;
    lf_status s = NULL;
    for (uint32_t i = 0; i < r.abi->n_params && !s; i++) s = read_argument(&r, i, arguments);
    if (!s) s = lf_run_infer(&r, 0);
    if (!s) {
        const lfuser_abi_stage *stage = &r.abi->stages[0];
        place_outputs(&r);
        slots[stage->workspace_slot] = SOMEWHERE;
        for (uint32_t i = 0; i < r.abi->n_constants; i++) slots[r.abi->constants[i].slot] = SOMEWHERE;
        for (uint32_t i = 0; i < r.abi->n_fetches; i++) slots[r.abi->fetches[i].box_slot] = SOMEWHERE;
        for (uint32_t i = 0; i < r.abi->n_arrivals; i++)
            if (r.abi->arrivals[i].output == LFUSER_ABI_NONE) slots[r.abi->arrivals[i].box_slot] = SOMEWHERE;
        if (r.abi->error_slot != LFUSER_ABI_NONE) slots[r.abi->error_slot] = SOMEWHERE;
        e->host.bind(slots);
        for (uint32_t i = stage->first_launch; i < stage->first_launch + stage->n_launches && !s; i++) {
            const lfuser_abi_launch *l = &r.abi->launches[i];
            lf_launch_plan p;
            r.frame->planned[i].plan.items = 0;
            if (l->guard != LFUSER_ABI_NONE && !slots[l->guard]) continue;
            if (l->mixed != LFUSER_ABI_NONE && !lf_launch_is_made(l, i, r.frame->planned[l->mixed].plan.items)) continue;
            if (!lf_launch_plan_make(l, slots, r.device, &r.frame->args[l->args_slot], &p)) continue;
            r.frame->planned[i].plan = p;
            s = lf_wanted_add(e, list, i, p.cls);
            if (!s && p.combined) s = lf_wanted_add(e, list, i, p.combine);
        }
    }
    if (!s && r.abi->n_stages > 1) s = add_later_stages(e, list);
    lf_frame_give(e, r.frame);
    return s;
}

lfuser_status lfuser_executable_prepare_shapes(lfuser_executable *e, const lfuser_argument *const *sets, size_t n_sets,
                                               size_t n_arguments) {
    if (!e || (n_sets && !sets))
        return lf_public(
            lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "lfuser_executable_prepare_shapes: an argument is NULL"));
    LF_NEED(e, LF_EXECUTABLE_HANDLE);
    lf_wanted_list list;
    lf_vec_init(&list, &e->context->allocator);
    lf_fpstate fp = lf_fp_enter();
    lf_status s = NULL;
    for (size_t i = 0; i < n_sets && !s; i++) s = plan(e, sets[i], n_arguments, &list);
    if (!s) s = lf_executable_compile_all(e, list.data, list.count);
    lf_fp_leave(fp);
    lf_vec_finish(&list);
    return lf_public(s);
}

lfuser_status lfuser_executable_would_compile(lfuser_executable *e, const lfuser_argument *arguments, size_t n_arguments,
                                              uint32_t *out_load, uint32_t *out_compile) {
    uint32_t load = 0, compile = 0;
    if (out_load) *out_load = 0;
    if (out_compile) *out_compile = 0;
    LF_NEED(e, LF_EXECUTABLE_HANDLE);
    lf_wanted_list list;
    lf_vec_init(&list, &e->context->allocator);
    lf_fpstate fp = lf_fp_enter();
    lf_status s = plan(e, arguments, n_arguments, &list);
    lf_fp_leave(fp);
    if (!s) load = (uint32_t)list.count;
    for (size_t i = 0; i < list.count && !s; i++) compile += lf_executable_is_cold(e, &list.data[i]);
    if (out_load) *out_load = load;
    if (out_compile) *out_compile = compile;
    lf_vec_finish(&list);
    return lf_public(s);
}

lfuser_status lfuser_executable_host_entry(const lfuser_executable *e, lfuser_host_entry *out) {
    if (!e || !out)
        return lf_public(
            lf_error(&lf_system_allocator, LF_INVALID_ARGUMENT, "lfuser_executable_host_entry: an argument is NULL"));
    LF_NEED(e, LF_EXECUTABLE_HANDLE);
    size_t size = out->size ? out->size : sizeof *out;
    lfuser_host_entry entry = {
        .size = sizeof entry, .infer = e->host.infer, .n_slots = e->program->abi.n_slots, .program = &e->program->abi};
    memcpy(out, &entry, size < sizeof entry ? size : sizeof entry);
    return NULL;
}
