// The code generators as seen from outside: one table of functions, so that LLVM can live in a module opened on first use.
// No LLVM type appears here, and nothing of the runtime.
#ifndef LF_CODEGEN_CODEGEN_H
#define LF_CODEGEN_CODEGEN_H
#include "base/debug.h"
#include "base/log.h"
#include "base/timing.h"
#include "native/native.h"
#include "schedule/program.h"

// SIM: the IR for CUDA, run on this machine's CPU by runtime/sim.
typedef enum lf_target_kind { LF_TARGET_CPU, LF_TARGET_CUDA, LF_TARGET_SIM } lf_target_kind;
typedef struct lf_target {
    lf_target_kind kind;
    uint32_t sm;  // CUDA, SIM: 75, 80, 90, 100
    char cpu[32]; // CPU: "" = this machine; else "x86-64", "x86-64-v3", "x86-64-v4"
} lf_target;

typedef struct lf_codegen_options {
    bool fast;      // math=fast
    uint32_t debug; // lf_debug, of LF_DEBUG_OF_CODE
} lf_codegen_options;

typedef struct lf_codegen lf_codegen; // thread-safe

// Host code of one stage.
typedef struct lf_host_code {
    lfuser_abi_infer infer;
    lfuser_abi_bind bind;
} lf_host_code;

// Generated code; owned by the caller, released through the table that made it.
typedef struct lf_object {
    lfuser_abi_infer infer; // host code of the first stage
    lfuser_abi_bind bind;
    lf_host_code *stages;              // of every stage, abi.n_stages; owned
    lfuser_abi_finish_entry *finishes; // abi.n_finishes; owned
    void *address; // CPU kernel: void (*)(const uint64_t *args, uint64_t begin, uint64_t end); SIM: lf_sim_program
    char *text;    // CUDA kernel: PTX, NUL-terminated; owned
    size_t text_size;
    void *code; // host code and CPU kernel: the relocatable object that was loaded, to be stored; owned
    size_t code_size;
    char entry[64];        // kernel name
    uint32_t shared_bytes; // static shared memory of a block
    uint32_t staged_bytes; // dynamic shared memory of a block
    uint32_t cluster;      // CUDA: blocks of a cluster that the code was made for; 0: none
    uint32_t block;        // CUDA: threads a block that the code was made for
    uint32_t rows_a_block; // CUDA row kernels: rows a block does at a time; pointwise: elements a block does at a time
    bool waits;            // CUDA: the code may be launched before the kernel before it has ended (lf_launch.follows)
    lf_native *native;     // what infer, bind and address point into; owned
} lf_object;

#define LF_HOST_INFER "infer" // entries of host code
#define LF_HOST_BIND "bind"
#define LF_HOST_FINISH "finish"

typedef enum lf_emit_stage { LF_STAGE_HOST_IR, LF_STAGE_HOST_ASM, LF_STAGE_KERNEL_IR, LF_STAGE_KERNEL_ASM } lf_emit_stage;

typedef struct lf_codegen_table {
    uint32_t version;     // LF_CODEGEN_VERSION
    const char *build_id; // must equal the library's
    lf_status (*create)(const lf_allocator *a, const lf_log *log, lf_codegen **out_codegen);
    void (*destroy)(lf_codegen *c); // every lf_object must have been released
    lf_status (*host)(lf_codegen *c, const lf_program *p, lf_object *out_object);
    lf_status (*kernel)(lf_codegen *c, const lf_loop *loop, const lf_target *t, lfuser_abi_class class_,
                        const lf_codegen_options *options, lf_object *out_object);
    void (*release)(lf_codegen *c, lf_object *object);
    // Text of a stage, for people; caller frees with lf_free(a, …). Host stages ignore loop, target and class.
    lf_status (*print)(lf_codegen *c, lf_emit_stage stage, const lf_program *p, const lf_loop *loop, const lf_target *t,
                       lfuser_abi_class class_, const lf_codegen_options *options, char **out_text);
    const lf_timing *(*timing)(const lf_codegen *c); // borrowed; any thread
} lf_codegen_table;

enum { LF_CODEGEN_VERSION = 3 };
// The module's one export.
const lf_codegen_table *lfuser_codegen_entry(uint32_t version);
#endif
