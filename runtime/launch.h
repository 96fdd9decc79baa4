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
    uint64_t cells;   // SPLIT: rows times chunks; TILE: tiles; OUTER of a scan, LOOKBACK: tiles of all rows; else 0
    uint64_t zero_bytes; // of scratch memory, before the launch
    bool shared_out;     // each block takes a run of cells: as many blocks as are resident at once are enough
} lf_launch_plan;

// Reads the launch's argument block in `slots`, writes the block to launch with to `args` (n_args words). False: there is nothing
// to do (an empty iteration space).
bool lf_launch_plan_make(const lfuser_abi_launch *l, const uint64_t *slots, const lf_device *device, uint64_t *args,
                         lf_launch_plan *out_plan);
// How many blocks of this size run at once; 0: not known.
uint64_t lf_resident_blocks(const lf_device_info *info, const lf_kernel_resources *resources, uint32_t block);
// The class that is right for every shape and stride: what to compile when nothing else is known.
lfuser_abi_class lf_launch_general_class(const lfuser_abi_launch *l, lf_device_type type);
// Classes that contiguous tensors get, best first; returns how many were written (at most LF_MAX_CLASSES).
uint32_t lf_launch_usual_classes(const lfuser_abi_launch *l, lf_device_type type, lfuser_abi_class *out_classes);
static inline uint32_t lf_class_key(lfuser_abi_class c) { // chunks are 0 where accesses are tiled
    return (uint32_t)c.rows | (uint32_t)c.cols << 5 | (uint32_t)c.vector << 10 | (uint32_t)c.wide << 15 |
           (uint32_t)c.shape << 16 | (uint32_t)c.spans << 20 | (uint32_t)(c.chunks | c.tiled) << 24;
}
// Elements that a GPU thread takes at once from memory of this element size.
uint32_t lf_launch_lanes(const lfuser_abi_launch *l);
#endif
