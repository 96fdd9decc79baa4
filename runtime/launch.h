// From a launch as the host code left it to a launch as a device takes it: axes are merged, the kernel class is chosen, work is
// counted. The same for every device; no allocation, about 50 ns.
#ifndef LF_RUNTIME_LAUNCH_H
#define LF_RUNTIME_LAUNCH_H
#include "runtime/device.h"
#include <lfuser/launch_abi.h>

enum { LF_MAX_CLASSES = 8 }; // that one kernel can be asked for

typedef struct lf_launch_plan {
    lfuser_abi_class cls;
    uint64_t items;   // rows (pointwise: elements)
    uint64_t columns; // a row; 1 for pointwise
    uint64_t
        cells; // SPLIT: rows times chunks; OUTER in parts: tiles times chunks times parts; TILE: tiles; MIXED: sets of rows; STACK: elements that one stands for each; OUTER of a scan,
               // LOOKBACK: tiles of all rows; else 0
    uint64_t zero_bytes; // of scratch memory, before the launch
    bool shared_out;     // a block takes many cells or rows: as many blocks as are resident at once are enough
    bool combined;       // a second kernel follows, of class `combine` and with an item a row
    lfuser_abi_class combine;
} lf_launch_plan;

// Reads the launch's argument block in `slots`, writes the block to launch with to `args` (n_args words). False: there is nothing
// to do (an empty iteration space).
bool lf_launch_plan_make(const lfuser_abi_launch *l, const uint64_t *slots, const lf_device *device, uint64_t *args,
                         lf_launch_plan *out_plan);
// How many blocks of this size run at once, with so much dynamic shared memory, in clusters of so many (0: none); 0: not known.
uint64_t lf_resident_blocks(const lf_device_info *info, const lf_kernel_resources *resources, uint32_t block,
                            uint32_t dynamic_shared, uint32_t cluster);
// The class that is right for every shape and stride: what to compile when nothing else is known.
lfuser_abi_class lf_launch_general_class(const lfuser_abi_launch *l, lf_device_type type);
// Classes that contiguous tensors get, best first; returns how many were written (at most LF_MAX_CLASSES). 0: never made on such a device.
uint32_t lf_launch_usual_classes(const lfuser_abi_launch *l, lf_device_type type, lfuser_abi_class *out_classes);
// Whether a launch is made, when the one of class MIXED that decides about it (launch_abi.h) has been planned.
static inline bool lf_launch_is_made(const lfuser_abi_launch *l, uint32_t number, bool mixed_is_made) {
    return l->mixed == LFUSER_ABI_NONE || l->mixed == number || l->instead != mixed_is_made;
}
static inline uint64_t lf_class_key(lfuser_abi_class c) {
    return (uint64_t)c.rows | (uint64_t)c.cols << 5 | (uint64_t)c.vector << 10 | (uint64_t)c.wide << 15 |
           (uint64_t)c.shape << 16 | (uint64_t)c.spans << 20 | (uint64_t)c.chunks << 24 | (uint64_t)c.tiled << 32 |
           (uint64_t)c.cluster << 40 | (uint64_t)c.teams << 45 | (uint64_t)c.staged << 52 | (uint64_t)c.full << 60 |
           (uint64_t)c.alone << 61;
}
// Elements that a GPU thread takes at once from memory of this element size.
uint32_t lf_launch_lanes(const lfuser_abi_launch *l);
#endif
