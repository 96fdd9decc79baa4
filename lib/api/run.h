// A run under way. Private to lib/api.
#ifndef LF_API_RUN_H
#define LF_API_RUN_H
#include "api/api.h"

typedef struct lf_run {
    lfuser_executable *e;
    const lfuser_abi_program *abi;
    const lf_allocator *a;
    lf_device *device; // NULL for host-only programs
    lfuser_stream *stream;
    const lfuser_argument *arguments;
    lfuser_output *outputs;
    lf_frame *frame;
    lfuser_run_options options; // zero where not given
    bool capturing;             // found out where it matters
    bool imagined;              // nothing will be launched: addresses may be made up
    uint32_t n_workspaces;      // stages whose workspace slot holds memory of ours, or 0
    bool launched;              // something of it may be under way
    lfuser_completion *completion;
} lf_run;

// The bytes of a scalar in its first word; what lies above them is not its own.
static inline uint64_t lf_run_word(lf_dtype d, uint64_t word) {
    static const uint64_t own[LF_DTYPE_COUNT] = {
        [LF_BOOL] = UINT8_MAX,  [LF_I8] = UINT8_MAX,   [LF_I16] = UINT16_MAX, [LF_I32] = UINT32_MAX, [LF_I64] = UINT64_MAX,
        [LF_U8] = UINT8_MAX,    [LF_U16] = UINT16_MAX, [LF_U32] = UINT32_MAX, [LF_U64] = UINT64_MAX, [LF_F16] = UINT16_MAX,
        [LF_BF16] = UINT16_MAX, [LF_F32] = UINT32_MAX, [LF_F64] = UINT64_MAX, [LF_C64] = UINT64_MAX, [LF_C128] = UINT64_MAX};
    return word & own[d];
}

static inline void lf_run_put_scalar(uint64_t *slot, lf_dtype d, const lfuser_scalar *value) {
    slot[0] = lf_run_word(d, value->word[0]);
    if (d == LF_BOOL) slot[0] = slot[0] != 0;
    if (d == LF_C128) slot[1] = value->word[1];
}

// run.c: host code of a stage; a failed check is its status.
lf_status lf_run_infer(lf_run *r, uint32_t stage) LF_MUST_USE;

// arguments.c
lf_status lf_run_read_argument(lf_run *r, uint32_t i) LF_MUST_USE; // into its slots, checked
bool lf_run_fits_device(const lf_device *d, const lfuser_tensor *t);
const char *lf_run_device_name(int dlpack_type);
enum { LF_WRONG_POINTER = 160 };
// Where the driver says that this address lies: "" for the run's device, else what is wrong.
lf_status lf_run_check_pointer(const lf_run *r, uint64_t address, char *out_text, size_t size) LF_MUST_USE;

// outputs.c
// Outputs whose extents this stage's infer has written: the caller's buffers are checked, others allocated, mailboxes taken.
lf_status lf_run_prepare_outputs(lf_run *r, uint32_t stage) LF_MUST_USE;
// What the host finishes gets what it needs of the run; all stages have been inferred.
void lf_run_keep_operands(const lf_run *r);
// Kinds of all outputs, and the values of host scalars that the first n_stages stages computed.
void lf_run_deliver_host_values(const lf_run *r, uint32_t n_stages);
// After a failure, when nothing is under way any more: what was made for the caller goes back.
void lf_run_withdraw_outputs(const lf_run *r);
#endif
