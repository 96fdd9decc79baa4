// The processor as far as it decides which code is made for it.
#include "native/native.h"
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t saved_state(void) { // XCR0: registers that the system saves
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

void lf_native_processor(char *out, size_t size) {
    // Leaf and subleaf, and which registers say something lasting (bit 0: eax … bit 3: edx; others hold the current core's number).
    static const struct {
        uint32_t leaf, sub;
        unsigned registers;
    } leaves[] = {
        {0, 0, 14},   {1, 0, 13},   {7, 0, 15},   {7, 1, 15},           {0xd, 1, 1},
        {0x14, 0, 2}, {0x19, 0, 2}, {0x24, 0, 3}, {0x80000001u, 0, 12}, {0x80000008u, 0, 2},
    };
    size_t at = 0;
    uint32_t osxsave = 0;
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        uint32_t r[4] = {0};
        if (!__get_cpuid_count(leaves[i].leaf, leaves[i].sub, &r[0], &r[1], &r[2], &r[3])) memset(r, 0, sizeof r);
        if (leaves[i].leaf == 1) osxsave = r[2] >> 27 & 1;
        for (unsigned k = 0; k < 4; k++)
            if (leaves[i].registers >> k & 1 && at < size) at += (size_t)snprintf(out + at, size - at, "%x.", r[k]);
    }
    if (at < size) snprintf(out + at, size - at, "%llx", osxsave ? (unsigned long long)saved_state() : 0ull);
}
#else
void lf_native_processor(char *out, size_t size) { snprintf(out, size, "unknown"); }
#endif
