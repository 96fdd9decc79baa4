// liblfuser: a fusion compiler for embedding.
//
// From simple to advanced: status, context, device, fusion (a program), executable, run, results; then streams, pending scalars,
// completion, the builder, text of every stage.
//
// Conventions
//   Errors      Functions that can fail return an lfuser_status: NULL for success, else an object that the caller owns and
//               destroys. Outputs come last, are named out_*, and are set to NULL (or zero) first.
//   Ownership   create/destroy, open/close, release: destroying NULL is fine. Strings returned as const char * are borrowed from
//               the object that was asked; `char **out_text` is owned by the caller and freed with lfuser_free.
//   Threads     A context and everything made from it may be used from several threads, but one object by one thread at a
//               time, except: an executable may be run by any number of threads at once, and pending scalars and
//               completions may be asked from any thread.
//   Lifetime    A context must outlive what was made from it, but for statuses; an executable must outlive its runs' pending
//               scalars' arrival, which lfuser_executable_destroy waits for. All else may be destroyed in any order.
//   Options     Option structs begin with their size: set `size` to sizeof the struct, and the rest to zero for defaults.
//   Units       bytes, elements and nanoseconds are named as such; strides count elements.
//   The process The library never prints, exits, aborts, changes signal handlers, the locale, the floating-point environment or
//               the current CUDA context of the calling thread.
#ifndef LFUSER_LFUSER_H
#define LFUSER_LFUSER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LFUSER_VERSION_MAJOR 0
#define LFUSER_VERSION_MINOR 1
#define LFUSER_VERSION_PATCH 0
#define LFUSER_VERSION (LFUSER_VERSION_MAJOR * 10000 + LFUSER_VERSION_MINOR * 100 + LFUSER_VERSION_PATCH)

#if defined(__GNUC__)
#define LFUSER_API __attribute__((visibility("default")))
#define LFUSER_MUST_USE __attribute__((warn_unused_result))
#else
#define LFUSER_API
#define LFUSER_MUST_USE
#endif

#ifdef __cplusplus
extern "C" {
#endif

// LFUSER_VERSION of the library that is loaded; compare with the macro it was compiled against. Since 0.1.
LFUSER_API int lfuser_version(void);

// ---- Status ------------------------------------------------------------------------------------------------------------------

typedef struct lfuser_status_object *lfuser_status;

typedef enum lfuser_code {
    LFUSER_OK = 0,
    LFUSER_INVALID_ARGUMENT = 1, // the caller passed something wrong: count, kind, dtype, rank, extent, device, NULL
    LFUSER_INVALID_PROGRAM = 2,  // the text or the builder calls do not mean anything; the message has place and reason
    LFUSER_UNSUPPORTED = 3,      // meaningful, but not offered: names op, dtypes, target
    LFUSER_OUT_OF_MEMORY = 4,    // host or device
    LFUSER_UNAVAILABLE = 5,      // no such device, no driver, no code generator
    LFUSER_FAILED_CHECK = 6,     // a run-time check or assert of the program failed; nothing was launched
    LFUSER_INDEX_ERROR = 7,      // an index was out of range on the device; the run has finished, the element read as 0
    LFUSER_DEVICE_ERROR = 8,     // the device or its driver reported a failure
    LFUSER_NOT_READY = 9,        // asked without waiting, and not there yet
    LFUSER_IO_ERROR = 10,
    LFUSER_INTERNAL = 11,      // a fault of this library: please report it
    LFUSER_CAPTURE_ERROR = 12, // would have to compile or load during graph capture: prepare first
    LFUSER_TIMEOUT = 13
} lfuser_code;

// All accept NULL (success). Any thread. Since 0.1.
LFUSER_API lfuser_code lfuser_status_code(const struct lfuser_status_object *status);
LFUSER_API const char *lfuser_status_message(const struct lfuser_status_object *status); // borrowed, "" for success
LFUSER_API void lfuser_status_place(const struct lfuser_status_object *status, const char **out_file, uint32_t *out_line,
                                    uint32_t *out_column); // file NULL and 0, 0 when the error has no place in a text
LFUSER_API const char *lfuser_code_name(lfuser_code code); // "invalid-argument"
LFUSER_API void lfuser_status_destroy(lfuser_status status);

// ---- Context -----------------------------------------------------------------------------------------------------------------

typedef struct lfuser_context lfuser_context;

typedef struct lfuser_allocator {
    void *self;
    void *(*alloc)(void *self, size_t bytes); // NULL when out of memory; aligned as malloc does; thread-safe
    void *(*resize)(void *self, void *block, size_t bytes);
    void (*release)(void *self, void *block);
} lfuser_allocator;

typedef enum lfuser_log_level {
    LFUSER_LOG_DEBUG = 0,
    LFUSER_LOG_INFO = 1,
    LFUSER_LOG_WARNING = 2,
    LFUSER_LOG_ERROR = 3
} lfuser_log_level;

typedef struct lfuser_context_options {
    size_t size;
    lfuser_allocator allocator; // all NULL: malloc
    void *log_self;
    void (*log)(void *self, lfuser_log_level level, const char *message); // any thread; NULL: silence
    lfuser_log_level log_least;
    uint32_t threads;            // of the CPU device; 0: one a core
    const char *codegen_path;    // NULL: liblfuser-codegen.so beside this library
    const char *cache_directory; // compiled code is kept there as files; NULL: $LFUSER_CACHE ("off":
                                 // nowhere), else $XDG_CACHE_HOME/lfuser or ~/.cache/lfuser; "": nowhere
    uint64_t cache_bytes;        // that those files may take; 0: 256 MiB
} lfuser_context_options;

// Independent of every other context. Opens no device and loads no LLVM. options may be NULL. Since 0.1.
LFUSER_API lfuser_status lfuser_context_create(const lfuser_context_options *options,
                                               lfuser_context **out_context) LFUSER_MUST_USE;
LFUSER_API void lfuser_context_destroy(lfuser_context *context);
// Frees text that this context's objects returned. NULL is fine.
LFUSER_API void lfuser_free(lfuser_context *context, void *text);
// Loads the code generator and lets it compile something small, so that the first program need not wait for it (about 50 ms).
LFUSER_API lfuser_status lfuser_context_warm(lfuser_context *context) LFUSER_MUST_USE;
// The same on a thread of the library, and returns at once. What fails there is logged; a compilation meanwhile waits for it.
LFUSER_API void lfuser_context_warm_in_background(lfuser_context *context);

// Compiled code is kept: in memory, where equal code of several executables is one, and as files that other processes and later
// ones find. A program whose code is there starts without the code generator, which is then not even opened. A file that is
// missing, damaged or of another version is a miss, never an error. Counters only grow. Since 0.1.
typedef struct lfuser_cache_stats {
    size_t size;
    const char *directory;   // borrowed from the context; NULL: no files
    uint64_t entries, bytes; // of the files, whoever wrote them
    uint64_t limit_bytes;
    uint64_t compiles; // times that the code generator was needed in this context
    uint64_t shared;   // code that another executable of this context held already
    uint64_t memory_hits, disk_hits, misses;
    uint64_t stores, evictions;
    uint64_t faults; // files that could not be read, written or believed; the log says why
} lfuser_cache_stats;
LFUSER_API lfuser_status lfuser_context_cache_stats(lfuser_context *context, lfuser_cache_stats *out_stats) LFUSER_MUST_USE;
// Removes everything from the cache, files included; code in use stays. Any thread.
LFUSER_API void lfuser_context_cache_clear(lfuser_context *context);

// Where the time of this context's compiles went, from text to loaded code, summed over all threads; only grows. Any thread. Since 0.1.
typedef struct lfuser_stage_time {
    size_t size;
    const char *name; // static, e.g. "kernel: optimise"
    uint64_t times;   // how often
    uint64_t ns;      // nanoseconds in all
} lfuser_stage_time;
LFUSER_API size_t lfuser_context_n_stage_times(void);
// LFUSER_INVALID_ARGUMENT: no such index.
LFUSER_API lfuser_status lfuser_context_stage_time(lfuser_context *context, size_t index,
                                                   lfuser_stage_time *out_time) LFUSER_MUST_USE;

// ---- Devices -----------------------------------------------------------------------------------------------------------------

typedef struct lfuser_device lfuser_device;

// name: "cpu", "cuda" (device 0), "cuda:N", or "sim": GPU kernels run on the CPU with every access checked, for tests.
// LFUSER_UNAVAILABLE, with the reason, when it is not there. Since 0.1.
LFUSER_API lfuser_status lfuser_device_open(lfuser_context *context, const char *name,
                                            lfuser_device **out_device) LFUSER_MUST_USE;
LFUSER_API void lfuser_device_close(lfuser_device *device);
LFUSER_API const char *lfuser_device_description(const lfuser_device *device);

// Counters of a device; they only grow. Since 0.1.
typedef struct lfuser_stats {
    size_t size;
    uint64_t launches; // kernels
    uint64_t syncs;    // times the host waited for the device
    uint64_t compiles; // kernels and host programs compiled
    uint64_t kernels_loaded;
    uint64_t allocations; // of device memory
    uint64_t bytes_copied;
    uint64_t
        general_launches; // by executables that never wait: the general variant ran because the best was not compiled yet
    uint64_t background_compiles; // variants that were compiled, or taken from the cache, beside runs
} lfuser_stats;
LFUSER_API lfuser_status lfuser_device_stats(const lfuser_device *device, lfuser_stats *out_stats) LFUSER_MUST_USE;

// ---- Tensors: DLPack's layout ---------------------------------------------------------------------------------------------------

typedef enum lfuser_dtype {
    LFUSER_NO_DTYPE = 0,
    LFUSER_BOOL = 1,
    LFUSER_I8 = 2,
    LFUSER_I16 = 3,
    LFUSER_I32 = 4,
    LFUSER_I64 = 5,
    LFUSER_U8 = 6,
    LFUSER_U16 = 7,
    LFUSER_U32 = 8,
    LFUSER_U64 = 9,
    LFUSER_F16 = 10,
    LFUSER_BF16 = 11,
    LFUSER_F32 = 12,
    LFUSER_F64 = 13,
    LFUSER_C64 = 14,
    LFUSER_C128 = 15
} lfuser_dtype;

enum { LFUSER_MAX_RANK = 8 };

// Memory layout of DLPack's DLDevice, DLDataType and DLTensor: any framework's DLTensor * may be passed as lfuser_tensor *.
typedef struct lfuser_dl_device {
    int32_t type; // 1 CPU, 2 CUDA, 3 CUDA pinned host; 12 SIM
    int32_t ordinal;
} lfuser_dl_device;
typedef struct lfuser_dl_dtype {
    uint8_t code; // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool
    uint8_t bits;
    uint16_t lanes; // 1
} lfuser_dl_dtype;
typedef struct lfuser_tensor {
    void *data;
    lfuser_dl_device device;
    int32_t rank;
    lfuser_dl_dtype dtype;
    int64_t *shape;
    int64_t *strides; // elements; NULL: row-major
    uint64_t byte_offset;
} lfuser_tensor;
// Memory layout of DLManagedTensorVersioned (DLPack 1.x).
typedef struct lfuser_managed_tensor {
    struct {
        uint32_t major, minor;
    } version;
    void *manager;
    void (*deleter)(struct lfuser_managed_tensor *self); // may be called from any thread
    uint64_t flags;
    lfuser_tensor tensor;
} lfuser_managed_tensor;

LFUSER_API lfuser_dl_dtype lfuser_dl_dtype_of(lfuser_dtype dtype);
LFUSER_API lfuser_dtype lfuser_dtype_of(lfuser_dl_dtype dtype); // LFUSER_NO_DTYPE when it has none
LFUSER_API const char *lfuser_dtype_name(lfuser_dtype dtype);   // "f32"
LFUSER_API lfuser_dtype lfuser_dtype_parse(const char *name);
LFUSER_API uint32_t lfuser_dtype_bytes(lfuser_dtype dtype);

// A value of any dtype in its own representation; f16 and bf16 as bits in u16.
typedef union lfuser_scalar {
    uint64_t word[2];
    bool b;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32, c64[2];
    double f64, c128[2];
} lfuser_scalar;

// ---- Fusions -------------------------------------------------------------------------------------------------------------------

typedef struct lfuser_fusion lfuser_fusion; // a program; immutable

// Parses a text and takes the fusion of that name (NULL: the first). `file` is for messages (NULL: "<text>"). The text is not
// kept. LFUSER_INVALID_PROGRAM: message with file, line, column, the line and a caret. Since 0.1.
LFUSER_API lfuser_status lfuser_fusion_parse(lfuser_context *context, const char *file, const char *text, size_t bytes,
                                             const char *name, lfuser_fusion **out_fusion) LFUSER_MUST_USE;
LFUSER_API void lfuser_fusion_destroy(lfuser_fusion *fusion);
LFUSER_API const char *lfuser_fusion_name(const lfuser_fusion *fusion);

// ---- Executables ---------------------------------------------------------------------------------------------------------------

typedef struct lfuser_executable lfuser_executable;

typedef enum lfuser_math { LFUSER_MATH_EXACT = 0, LFUSER_MATH_FAST = 1 } lfuser_math;

// May a run wait for the device? Where the host needs a scalar that the device computes (an extent, a topk k, the condition of an
// assert) it would have to.
typedef enum lfuser_sync {
    LFUSER_NO_SYNC = 0, // compiling such a program fails, naming every such place: no run ever waits for the device
    LFUSER_ALLOW_SYNC =
        1 // the run goes in stages; before each it waits for the scalars that the stage needs (see lfuser_run)
} lfuser_sync;

// May a run wait for the compiler? Shapes and strides decide which variant of a kernel is best; it is compiled when a run first
// asks for it.
typedef enum lfuser_wait {
    LFUSER_WAIT = 0,      // the run compiles it
    LFUSER_NEVER_WAIT = 1 // the run takes the general variant, which is right for everything and compiled with the program,
                          // while the better one compiles in the background; see general_launches in lfuser_stats
} lfuser_wait;

typedef struct lfuser_compile_options {
    size_t size;
    lfuser_math math;
    lfuser_sync sync;
    // CUDA: runs of at least so many kernels (a stage) are launched as one graph, made by the first run on a stream and given new
    // parameters by the later ones; 0: never. Several streams may run at once: each has graphs of its own.
    uint32_t replay_from;
    // Runs ask the driver where each tensor really lies (a fraction of a microsecond each) instead of believing its `device`: memory of
    // another device is an error that names both.
    bool check_pointers;
    lfuser_wait wait;
    // For finding faults: parts of the compiler to leave out, as words separated by commas; NULL: what $LFUSER_DEBUG said when the
    // context was made, "": none. Results stay the same, to the bit with exact maths; speed does not. Unknown words are
    // LFUSER_INVALID_ARGUMENT with the known ones: docs/embedding.md lists them. May differ between versions.
    const char *debug;
} lfuser_compile_options;

// NULL when no run of the program would have to wait for the device, else LFUSER_INVALID_PROGRAM with every place where one would:
// what compiling with LFUSER_NO_SYNC says. LFUSER_STAGE_PARTITION lists them too. Since 0.1.
LFUSER_API lfuser_status lfuser_fusion_check_no_sync(lfuser_fusion *fusion) LFUSER_MUST_USE;

// For that device; a fusion without tensors needs none (device NULL). Compiles the host code at once; kernels compile on first
// use, or by lfuser_executable_prepare. options may be NULL. Since 0.1.
LFUSER_API lfuser_status lfuser_fusion_compile(lfuser_fusion *fusion, lfuser_device *device,
                                               const lfuser_compile_options *options,
                                               lfuser_executable **out_executable) LFUSER_MUST_USE;
// Waits for the executable's runs.
LFUSER_API void lfuser_executable_destroy(lfuser_executable *executable);

// Compiles and loads the kernels that contiguous tensors need, and the general ones that take any shape and strides, so that no
// run of those classes compiles or loads anything: loading code on a CUDA device can wait for whatever runs there. Since 0.1.
LFUSER_API lfuser_status lfuser_executable_prepare(lfuser_executable *executable) LFUSER_MUST_USE;

// Kernels that are compiled and loaded, one for each class that runs or prepare have asked for; their number grows. What the
// device's own compiler made of each: for tuning and for benchmarks. Any thread. LFUSER_INVALID_ARGUMENT: no such index. Since 0.1.
typedef struct lfuser_kernel_info {
    size_t size;
    const char *name;      // borrowed from the executable
    uint32_t launch;       // number of the launch it belongs to, in program order
    uint32_t vector;       // elements a thread takes at once
    bool wide;             // 64-bit index arithmetic
    uint32_t registers;    // a thread; 0: the device does not say (the CPU)
    uint32_t local_bytes;  // a thread: spilled registers, and arrays
    uint32_t shared_bytes; // a block, static
} lfuser_kernel_info;
LFUSER_API size_t lfuser_executable_n_kernels(const lfuser_executable *executable);
LFUSER_API lfuser_status lfuser_executable_kernel(const lfuser_executable *executable, size_t index,
                                                  lfuser_kernel_info *out_info) LFUSER_MUST_USE;

typedef enum lfuser_kind {
    LFUSER_SCALAR = 0,      // host scalar: there when the run call returns (device scalars that the run waited for, too)
    LFUSER_PENDING = 1,     // scalar delivered by the device (outputs only)
    LFUSER_HOST_TENSOR = 2, // rank-0 tensor in host memory
    LFUSER_TENSOR = 3       // device tensor
} lfuser_kind;

typedef struct lfuser_value_info {
    const char *name; // without '%', or NULL
    lfuser_kind kind; // known while compiling; never depends on the run
    lfuser_dtype dtype;
    uint32_t rank;
    int32_t into; // outputs: number of the parameter whose buffer it is written into, else -1
} lfuser_value_info;
LFUSER_API size_t lfuser_executable_n_params(const lfuser_executable *executable);
LFUSER_API size_t lfuser_executable_n_outputs(const lfuser_executable *executable);
LFUSER_API lfuser_status lfuser_executable_param(const lfuser_executable *executable, size_t index,
                                                 lfuser_value_info *out_info) LFUSER_MUST_USE;
LFUSER_API lfuser_status lfuser_executable_output(const lfuser_executable *executable, size_t index,
                                                  lfuser_value_info *out_info) LFUSER_MUST_USE;

// ---- Running -------------------------------------------------------------------------------------------------------------------

typedef struct lfuser_stream lfuser_stream;
typedef struct lfuser_pending lfuser_pending;

// One argument, in the order of the parameters. Borrowed until the run call returns; the memory of tensors must stay until the
// stream has passed the run. kind: LFUSER_SCALAR (value), LFUSER_HOST_TENSOR (tensor of rank 0 in host memory, or value) or
// LFUSER_TENSOR (tensor).
typedef struct lfuser_argument {
    lfuser_kind kind;
    lfuser_dtype dtype; // of value; ignored for tensors, which carry theirs
    lfuser_scalar value;
    const lfuser_tensor *tensor;
} lfuser_argument;

// One output, in order.
typedef struct lfuser_output {
    // In: for a tensor, a buffer to write (any strides that do not overlap; its shape must be the output's), or NULL: the library
    // allocates. Ignored for outputs `into` a parameter.
    lfuser_tensor *tensor;
    // Out.
    lfuser_kind kind;
    lfuser_dtype dtype;
    lfuser_scalar value;              // SCALAR and HOST_TENSOR
    lfuser_pending *pending;          // PENDING: owned by the caller, release it
    lfuser_managed_tensor *allocated; // TENSOR without `tensor`: owned by the caller, ended by its deleter, which frees the
                                      // memory in the order of the stream that the run used
} lfuser_output;

typedef struct lfuser_completion lfuser_completion;

// With LFUSER_ALLOW_SYNC and a program that has sync points, the call launches one stage after the other and waits between them for
// the scalars that the next needs (for them alone, not for the whole stream); each wait counts in `syncs`. A check that depends on
// such a scalar may then fail after earlier stages ran: buffers that they wrote stay written.
//
// Launches the program on `stream` (NULL only for executables without device work) and returns: host scalars are in `outputs`, all
// else follows in stream order. Fails, with nothing launched and outputs untouched, for arguments that do not fit and for
// failed checks. out_completion may be NULL; see lfuser_completion. Any number of threads, each with its own stream. Since 0.1.
LFUSER_API lfuser_status lfuser_run(lfuser_executable *executable, lfuser_stream *stream, const lfuser_argument *arguments,
                                    size_t n_arguments, lfuser_output *outputs, size_t n_outputs,
                                    lfuser_completion **out_completion) LFUSER_MUST_USE;

typedef struct lfuser_run_options {
    size_t size;
    // Device memory for intermediate values, aligned to 256 bytes, in use until the stream has passed the run; NULL: from the device's
    // stream-ordered pool. lfuser_infer says how many bytes a run needs. Later stages of a program with sync points use the pool.
    void *workspace;
    uint64_t workspace_bytes;
    // Asked for a buffer for every tensor output that has neither `tensor` nor `into`, when its extents are known; what it returns is
    // put into outputs[i].tensor and treated as if given there (it stays the caller's, also when the run fails). NULL is out of
    // memory. On the calling thread, which must not use this executable or stream meanwhile.
    void *self;
    lfuser_tensor *(*output_buffer)(void *self, size_t output, lfuser_dtype dtype, uint32_t rank, const int64_t *shape);
} lfuser_run_options;

// lfuser_run with options (NULL: none). Since 0.1.
LFUSER_API lfuser_status lfuser_run_with(lfuser_executable *executable, lfuser_stream *stream,
                                         const lfuser_argument *arguments, size_t n_arguments, lfuser_output *outputs,
                                         size_t n_outputs, const lfuser_run_options *options,
                                         lfuser_completion **out_completion) LFUSER_MUST_USE;

// Output extents, dtypes and host scalars alone: runs the host code and nothing else; needs no device memory. For tensors, `shapes`
// (n_outputs arrays, may be NULL) receives the extents. What a later stage of a program with sync points would know is left out:
// extents -1, values 0; the workspace is the first stage's. Since 0.1.
LFUSER_API lfuser_status lfuser_infer(lfuser_executable *executable, const lfuser_argument *arguments, size_t n_arguments,
                                      lfuser_output *outputs, size_t n_outputs, int64_t (*shapes)[8],
                                      uint64_t *out_workspace_bytes) LFUSER_MUST_USE;

// As lfuser_executable_prepare, but the kernels that runs with these arguments would launch: n_sets pointers to n_arguments arguments each. Shapes,
// strides and scalars count; a tensor whose data is NULL stands for memory aligned as allocators align it, and outputs are taken as
// row-major. What later stages of a program with sync points launch depends on what the device computes: of those the kernels that
// contiguous tensors of any extents need, and the general ones. Kernels are compiled side by side, by the calling
// thread and others of the library. Since 0.1.
LFUSER_API lfuser_status lfuser_executable_prepare_shapes(lfuser_executable *executable, const lfuser_argument *const *sets,
                                                          size_t n_sets, size_t n_arguments) LFUSER_MUST_USE;
// What a run with these arguments (as for prepare_shapes) would have to do first: *out_load kernels are not loaded yet, for
// *out_compile of them the code generator would be needed (the others are in the cache). Of stages after the first, all the kernels that
// prepare_shapes would load count: a run takes some of them. Either may be NULL. Runs and loads nothing.
LFUSER_API lfuser_status lfuser_executable_would_compile(lfuser_executable *executable, const lfuser_argument *arguments,
                                                         size_t n_arguments, uint32_t *out_load,
                                                         uint32_t *out_compile) LFUSER_MUST_USE;

// The compiled host code itself, for callers who need its scalars millions of times: put arguments into an array of n_slots words as
// launch_abi.h says (program->params[i].slot …), call infer, read results (program->outputs[i].slot). infer returns -1, or the
// number of the check that failed. Nothing is checked: dtypes and slots are the caller's business, and so is the floating-point
// environment, which must be the default one. Any thread, each with its own slots; valid as long as the executable. Since 0.1.
typedef struct lfuser_host_entry {
    size_t size;
    int64_t (*infer)(uint64_t *slots);
    uint32_t n_slots;
    const struct lfuser_abi_program *program;
} lfuser_host_entry;
LFUSER_API lfuser_status lfuser_executable_host_entry(const lfuser_executable *executable,
                                                      lfuser_host_entry *out_entry) LFUSER_MUST_USE;

// ---- Streams -------------------------------------------------------------------------------------------------------------------

// Work on a stream runs in order, asynchronously, on the CPU device too. Since 0.1.
LFUSER_API lfuser_status lfuser_stream_create(lfuser_device *device, lfuser_stream **out_stream) LFUSER_MUST_USE;
// A CUstream that the caller keeps (NULL: the default stream).
LFUSER_API lfuser_status lfuser_stream_wrap(lfuser_device *device, void *native, lfuser_stream **out_stream) LFUSER_MUST_USE;
LFUSER_API void lfuser_stream_destroy(lfuser_stream *stream); // waits for its work, unless wrapped
LFUSER_API lfuser_status lfuser_stream_synchronize(lfuser_stream *stream) LFUSER_MUST_USE; // counted as a sync
LFUSER_API lfuser_status lfuser_stream_query(lfuser_stream *stream) LFUSER_MUST_USE;       // LFUSER_NOT_READY while busy
// Calls fn(arg) in stream order, on a thread of the library; fn must not call this library.
LFUSER_API lfuser_status lfuser_stream_callback(lfuser_stream *stream, void (*fn)(void *arg), void *arg) LFUSER_MUST_USE;

// Device memory in stream order, and copies between it and host memory. bytes 0 gives NULL.
LFUSER_API lfuser_status lfuser_memory_alloc(lfuser_stream *stream, size_t bytes, void **out_pointer) LFUSER_MUST_USE;
LFUSER_API void lfuser_memory_free(lfuser_stream *stream, void *pointer); // a pointer that is NULL is fine, with any stream
LFUSER_API lfuser_status lfuser_memory_upload(lfuser_stream *stream, void *device_to, const void *host_from,
                                              size_t bytes) LFUSER_MUST_USE;
// The data is there when the stream has passed (synchronize).
LFUSER_API lfuser_status lfuser_memory_download(lfuser_stream *stream, void *host_to, const void *device_from,
                                                size_t bytes) LFUSER_MUST_USE;

// ---- Pending scalars -------------------------------------------------------------------------------------------------------------

// Delivered by the device without a synchronisation, or computed by whoever asks from others that were. Any thread. Since 0.1.
LFUSER_API bool lfuser_pending_ready(const lfuser_pending *pending);
// Waits for this value alone, at most timeout_ns (0: do not wait, UINT64_MAX: for ever). LFUSER_NOT_READY, LFUSER_TIMEOUT.
LFUSER_API lfuser_status lfuser_pending_get(lfuser_pending *pending, uint64_t timeout_ns,
                                            lfuser_scalar *out_value) LFUSER_MUST_USE;
LFUSER_API void lfuser_pending_release(lfuser_pending *pending);
// Calls fn(arg) once, when the value has arrived (or the device has failed: then getting it says so). It runs on a thread of the
// library, one a context, which is started with the first callback: callbacks wait for one another. fn may call this library, but
// not destroy the context. Callbacks that were not called before the context is destroyed never are. The pending scalar may be
// released meanwhile. Since 0.1.
LFUSER_API lfuser_status lfuser_pending_callback(lfuser_pending *pending, void (*fn)(void *arg), void *arg) LFUSER_MUST_USE;
// Of a run that was captured into a graph: forgets the value that has arrived, so that `ready` and `get` are about the next replay.
// No other thread may be asking. Release such a scalar when the graph is gone. Since 0.1.
LFUSER_API void lfuser_pending_rearm(lfuser_pending *pending);

// ---- Completion ------------------------------------------------------------------------------------------------------------------

// How a run ended: NULL (fine), LFUSER_NOT_READY, or the first error that the device met: an index out of range (with the op), a
// failed launch. An error that nobody asks for goes to the log, and fails the next run of that executable. Since 0.1.
// Any thread. The completion of a run that was captured into a graph never waits: it says what replays have met so far.
LFUSER_API lfuser_status lfuser_completion_query(lfuser_completion *completion) LFUSER_MUST_USE;
LFUSER_API lfuser_status lfuser_completion_wait(lfuser_completion *completion, uint64_t timeout_ns) LFUSER_MUST_USE;
// Calls fn(arg) once, when the run is over; as lfuser_pending_callback. It does not count as asking for the error. Since 0.1.
LFUSER_API lfuser_status lfuser_completion_callback(lfuser_completion *completion, void (*fn)(void *arg),
                                                    void *arg) LFUSER_MUST_USE;
LFUSER_API void lfuser_completion_release(lfuser_completion *completion);

// ---- Text of every stage ---------------------------------------------------------------------------------------------------------

typedef enum lfuser_stage {
    LFUSER_STAGE_FUSION = 0,    // the program, normalised
    LFUSER_STAGE_GRAPH = 1,     // every op as meant, implicit ones too
    LFUSER_STAGE_PARTITION = 2, // where every value lives and why; what each kernel holds
    LFUSER_STAGE_PROGRAM = 3,   // frame, checks, launches
    LFUSER_STAGE_KERNELS = 4,   // loop IR
    LFUSER_STAGE_HOST_IR = 5,   // LLVM IR of the host code
    LFUSER_STAGE_HOST_ASM = 6,
    LFUSER_STAGE_DEVICE_IR = 7, // LLVM IR of the kernels
    LFUSER_STAGE_DEVICE_ASM = 8 // PTX, or the CPU's assembly
} lfuser_stage;
// target: "cpu", "cpu:x86-64-v3", "cuda:sm_90"; no such device is needed. `n_class` picks the kernel class (0: contiguous,
// 32-bit; 1: general). Caller frees *out_text with lfuser_free. Since 0.1.
LFUSER_API lfuser_status lfuser_fusion_print(lfuser_fusion *fusion, lfuser_stage stage, const char *target, lfuser_math math,
                                             uint32_t n_class, char **out_text) LFUSER_MUST_USE;

// ---- Building without text ---------------------------------------------------------------------------------------------------------

typedef struct lfuser_builder lfuser_builder;
typedef struct lfuser_value lfuser_value; // owned by the builder, then by the fusion

typedef enum lfuser_operand_kind {
    LFUSER_OPERAND_NONE = 0,
    LFUSER_OPERAND_VALUE = 1,
    LFUSER_OPERAND_INT = 2,
    LFUSER_OPERAND_FLOAT = 3,
    LFUSER_OPERAND_BOOL = 4,
    LFUSER_OPERAND_LIST = 5
} lfuser_operand_kind;
typedef struct lfuser_operand {
    lfuser_operand_kind kind;
    lfuser_value *value;
    int64_t integer;                    // INT, BOOL
    double number;                      // FLOAT
    const struct lfuser_operand *items; // LIST
    size_t n_items;
} lfuser_operand;
typedef struct lfuser_attribute {
    const char *name;       // "axes"
    lfuser_operand operand; // numbers, lists, values
    const char *word;       // words and dtypes ("f32"); else NULL
} lfuser_attribute;
typedef struct lfuser_type {
    lfuser_dtype dtype;
    bool tensor, host;
    uint32_t rank;
    int64_t extents[8];   // -1: unknown
    const char *names[8]; // a named extent, or NULL
} lfuser_type;

LFUSER_API lfuser_status lfuser_builder_create(lfuser_context *context, const char *name,
                                               lfuser_builder **out_builder) LFUSER_MUST_USE;
LFUSER_API void lfuser_builder_destroy(lfuser_builder *builder);
// All parameters, before any op. out_values: n values.
LFUSER_API lfuser_status lfuser_builder_params(lfuser_builder *builder, size_t n, const char *const *names,
                                               const lfuser_type *types, lfuser_value **out_values) LFUSER_MUST_USE;
// out_results: room for the op's results (at most 2).
LFUSER_API lfuser_status lfuser_builder_op(lfuser_builder *builder, const char *op, const lfuser_operand *operands,
                                           size_t n_operands, const lfuser_attribute *attributes, size_t n_attributes,
                                           lfuser_value **out_results, size_t *out_n) LFUSER_MUST_USE;
LFUSER_API lfuser_status lfuser_builder_assert(lfuser_builder *builder, lfuser_value *condition,
                                               const char *message) LFUSER_MUST_USE;
// into: n parameter names or NULLs; may be NULL. Ends and destroys the builder when it succeeds.
LFUSER_API lfuser_status lfuser_builder_return(lfuser_builder *builder, size_t n, lfuser_value *const *values,
                                               const char *const *into, lfuser_fusion **out_fusion) LFUSER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
