// What the two files of scans share: the state of a running result, and how it goes from block to block. Private to them.
#ifndef LF_CODEGEN_KERNEL_GPU_SCAN_H
#define LF_CODEGEN_KERNEL_GPU_SCAN_H
#include "codegen/kernel/gpu.h"

// What the elements so far come to: a value, and the position it stands at (cummax, cummin, if anyone wants it) or the sum of
// exponentials beside it (logcumsumexp).
typedef struct lf_running {
    lf_register value;
    LLVMValueRef v_extra; // NULL: none
} lf_running;

typedef struct lf_scan {
    lf_kernel *k;
    lf_stmt_id id;
    const lf_stmt *s;
    bool positions; // someone wants them
    LLVMValueRef v_columns, v_shared;
    unsigned slot;                         // bytes of a running result in shared memory
    LLVMValueRef v_thread, v_lane, v_warp; // i64: in the block; in its warp; which warp
    LLVMValueRef v_tiles, v_tile;          // of a row; which one
    LLVMValueRef v_cells;                  // tiles of all rows: records and flags in scratch memory
} lf_scan;

enum { LF_SCAN_RECORD = LFUSER_ABI_PARTIAL_BYTES, LF_SCAN_TICKET = 16 };

// gpu_scan.c
lf_running lf_scan_element(lf_scan *c, unsigned lane, LLVMValueRef v_column); // of the current copy
lf_running lf_scan_combine(lf_scan *c, lf_running low, lf_running high);
// low and high, where each may be nothing: v_low, v_high tell (NULL: it is there).
lf_running lf_scan_join(lf_scan *c, LLVMValueRef v_low, lf_running low, LLVMValueRef v_high, lf_running high);
void lf_scan_set(lf_scan *c, unsigned lane, lf_running r); // the scan's results in the current copy
lf_running lf_scan_alloca(lf_scan *c, const char *name);   // addresses
lf_running lf_scan_load(lf_scan *c, lf_running at);
void lf_scan_store(lf_scan *c, lf_running r, lf_running at);
// Shared memory: a ticket, then slots.
void lf_scan_share(lf_scan *c, unsigned slots, lf_object *out);
lf_running lf_scan_slot(lf_scan *c, LLVMValueRef v_slot); // addresses
// Where the loads, the effects of a pass and their conditions are the same for both: the copies stand at their columns.
void lf_scan_effects(lf_scan *c, unsigned copies, const LLVMValueRef *v_inside);
// Tiles are taken in order: the number of the block's next one, in all its threads.
LLVMValueRef lf_scan_take_tile(lf_scan *c);
// Records in scratch memory: what a tile comes to (prefix false), or all tiles before it (true).
void lf_scan_publish(lf_scan *c, bool prefix, LLVMValueRef v_cell, lf_running r); // one thread of the block a cell
// v_seen: what a look at the same record has shown, which may be that it is not there yet. NULL: a look shows nothing, the value has no
// place beside its flag.
LLVMValueRef lf_scan_peek(lf_scan *c, bool prefix, LLVMValueRef v_cell);
lf_running lf_scan_await(lf_scan *c, bool prefix, LLVMValueRef v_cell, LLVMValueRef v_seen);
// gpu_scan_outer.c: a lane a row
lf_status lf_gpu_emit_scan_outer(lf_scan *c, lf_object *out);
#endif
