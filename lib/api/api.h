// What stands behind the public handles. Private to lib/api.
#ifndef LF_API_API_H
#define LF_API_API_H
#include "api/handle.h"
#include "api/loaded.h"
#include "api/spares.h"
#include "api/workers.h"
#include "base/dylib.h"
#include "base/log.h"
#include "base/vec.h"
#include "codegen/codegen.h"
#include "ir/build.h"
#include "runtime/device.h"
#include "runtime/launch.h"
#include "runtime/mailbox.h"
#include "schedule/program.h"
#include <lfuser/lfuser.h>
#include <pthread.h>

typedef _Atomic uint32_t lf_count; // references
typedef struct lf_watcher lf_watcher;

struct lfuser_context {
    lf_allocator allocator; // a copy; everything allocates through &allocator
    lf_log log;
    uint32_t threads;                // of CPU devices
    uint32_t debug;                  // what $LFUSER_DEBUG switches off
    char *codegen_path;              // owned, or NULL
    pthread_mutex_t lock;            // guards what follows
    lf_dylib *codegen_lib;           // opened by lf_context_codegen; never unloaded
    const lf_codegen_table *codegen; // NULL until then
    lf_codegen *generator;
    lf_watcher *watcher; // owned; started by the first callback
    lf_loaded_table code;
    lf_timing timing; // with what the generator keeps: where compile time went
    lf_workers workers;
    lf_graves graves;
};

struct lfuser_device {
    lf_handle handle;
    lfuser_context *context;
    lf_device *device; // owned
    lf_target target;
    lf_mailbox_pool *mailboxes; // slots of pending scalars and completions
    pthread_mutex_t lock;       // guards orphans
    LF_VEC(lf_mailbox) orphans; // released before the device wrote them
    _Atomic uint32_t n_orphans;
    lf_event *health; // owned; never recorded: asking it says whether the device still works
    lf_spares spare_pendings, spare_finishes, spare_completions, spare_tensors;
    _Atomic uint64_t compiles, general_launches, background_compiles;
    lf_count references; // streams, executables and tensors keep it alive past lfuser_device_close
};

struct lfuser_stream {
    lf_handle handle;
    lfuser_device *device; // retained
    lf_stream *stream;     // owned
    void *scratch; // device memory, LF_SCRATCH_BYTES, or NULL: small workspaces of its runs, which follow one another
    bool wrapped;
    lf_count references; // outputs and workspaces free their memory on it, executables wait for it
};

struct lfuser_fusion {
    lf_handle handle;
    lfuser_context *context;
    lf_graph *graph;      // owned
    char *file;           // for messages, owned
    pthread_mutex_t lock; // planning adds host ops to the graph
    lf_count references;  // executables refer to its values
};

// A compiled, loaded kernel of one class.
typedef struct lf_variant {
    uint64_t key; // lf_class_key
    lfuser_abi_class cls;
    lf_loaded *code;   // a reference
    lf_kernel *kernel; // the code's
} lf_variant;

typedef struct lf_kernel_slot {
    _Atomic(lf_variant *) variants[LF_MAX_CLASSES]; // filled from the front, under the executable's lock
    uint32_t asked[LF_MAX_CLASSES];                 // NEVER_WAIT: class keys that were given to the workers; under the lock
    uint8_t n_asked;
} lf_kernel_slot;

// What one run writes to: reused, never shared by two runs at once.
typedef struct lf_planned {
    lf_variant *variant; // NULL: this launch is left out
    lf_variant *combine; // of a second kernel that follows, or NULL
    lf_launch_plan plan;
} lf_planned;
typedef struct lf_frame {
    uint64_t *slots;           // abi.n_slots
    uint64_t *args;            // abi.n_slots: argument blocks after merging, at the places they have in `slots`
    lf_planned *planned;       // abi.n_launches
    lf_mailbox *boxes;         // abi.n_fetches
    lfuser_pending **arrivals; // abi.n_arrivals: one reference, until the run has returned
    lf_launch *launches;       // twice abi.n_launches: of a stage that is replayed
} lf_frame;

// What the device keeps of an executable's launches for one stream.
typedef struct lf_replays {
    lfuser_stream *stream; // noted by the executable
    lf_replay *stages[];   // abi.n_stages, owned; NULL until the stage has run
} lf_replays;

enum { LF_SCRATCH_BYTES = 64 << 10 };
enum { LF_FRAMES = 16, LF_KNOWN_STREAMS = 8, LF_HOST_SLOTS = 128 };

struct lfuser_executable {
    lf_handle handle;
    lfuser_context *context;
    lfuser_fusion *fusion; // retained
    lfuser_device *device; // retained; NULL for host-only programs
    lf_program *program;   // owned
    lf_codegen_options options;
    uint32_t debug;          // lf_debug
    bool delivers;           // pending scalars
    bool host_only;          // host scalars alone, and few of them: see LF_HOST_SLOTS
    bool never_wait;         // runs take the general kernel while a better one compiles
    lf_loaded *host_code;    // a reference
    lf_object host;          // a copy of its entries
    lf_kernel_slot *kernels; // abi.n_kernels
    _Atomic(lf_frame *) frames[LF_FRAMES];
    void **constants;                                         // device memory of abi.constants
    lfuser_stream *constant_stream;                           // they were allocated on it
    pthread_mutex_t lock;                                     // compiles, and what follows
    LF_VEC(lfuser_stream *) streams;                          // that runs used; retained
    _Atomic(lfuser_stream *) known_streams[LF_KNOWN_STREAMS]; // some of `streams`, looked at without the lock
    lf_spares unread;                                         // completions that may carry an error nobody asked for
    LF_VEC(lfuser_completion *) more_unread, captured;        // the same, under the lock; captured: to the end
    _Atomic uint32_t n_more;                                  // in both
    bool check_pointers;                                      // asks the driver where tensors lie
    uint32_t replay_from;                                     // launches a stage from which it is replayed; 0: never
    lf_spares replays;                                        // of lf_replays, one a stream
    _Atomic uint32_t n_replays;                               // made; at most LF_SPARES
    lf_count references; // the caller; completions: they need the program's names; pending scalars: the host code
};

// What a run leaves for an output that the host finishes: scalars of its own, and where others arrive. Whoever asks computes it, from
// that alone and in memory of his own: there is nothing to do once, to lock, or to leave half done.
typedef struct lf_finish_run {
    lfuser_executable *executable; // retained: its code
    uint32_t number;               // of abi.finishes
    uint32_t n_arrivals;
    struct {
        lfuser_pending *pending; // retained: its mailbox slot
        lf_mailbox box;          // the same slot; `seen` is this output's own
        uint8_t word;
    } arrivals[LFUSER_ABI_FINISH_WORDS];
    uint64_t words[LFUSER_ABI_FINISH_WORDS]; // those of the run
} lf_finish_run;

struct lfuser_pending {
    lfuser_device *device; // retained
    lf_mailbox box;        // without a slot where the host finishes it
    lf_finish_run *finish; // owned, or NULL
    lf_dtype dtype;
    bool captured;       // by a graph, which may write the slot again and again
    lf_count references; // the caller, callbacks, and what is finished from it
};

struct lfuser_completion {
    lfuser_executable *executable; // retained
    lfuser_device *device;         // retained; NULL: there was no device work
    lf_event *event;               // owned
    lf_mailbox box;                // value[0]: number of the op whose index was out of range
    bool captured;                 // nothing was recorded: the run is part of a graph
    _Atomic bool read;             // the caller has seen its error
    lf_count references;           // the caller, callbacks, and the executable's list
};

// Something that a callback waits for: one of the two, retained.
typedef struct lf_watch {
    lfuser_pending *pending;
    lfuser_completion *completion;
    void (*fn)(void *arg);
    void *arg;
} lf_watch;

static inline lfuser_status lf_public(lf_status s) { return (lfuser_status)s; }
static inline lf_status lf_private(lfuser_status s) { return (lf_status)s; }

// codegen_load.c: opens the code generator once; the results stay valid as long as the context.
lf_status lf_context_codegen(lfuser_context *c, const lf_codegen_table **out_table, lf_codegen **out_generator) LF_MUST_USE;

// lf_program_create, timed.
lf_status lf_context_plan(lfuser_context *c, lf_graph *g, uint32_t debug, bool fast, lf_program **out_program) LF_MUST_USE;

// device.c
void lf_device_retain(lfuser_device *d);
void lf_device_release(lfuser_device *d);
void lf_stream_retain(lfuser_stream *s);
void lf_stream_release(lfuser_stream *s);
// "cpu", "cpu:x86-64-v3", "cuda:sm_90"
lf_status lf_target_parse(const lf_allocator *a, const char *text, lf_target *out_target) LF_MUST_USE;
// A mailbox slot; takes back orphans whose value has come meanwhile.
lf_status lf_device_take_mailbox(lfuser_device *d, lf_mailbox *out_box) LF_MUST_USE;
// Gives it back, now or when the device has written to it.
void lf_device_give_mailbox(lfuser_device *d, lf_mailbox *box, bool written);

// Whether the device still works: its sticky error, if there is one.
lf_status lf_device_health(lfuser_device *d) LF_MUST_USE;

// tensor.c: a row-major device buffer of this shape as a managed tensor, freed in the order of the stream.
lf_status lf_tensor_allocate(lfuser_stream *stream, lf_dtype dtype, uint32_t rank, const int64_t *shape,
                             lfuser_managed_tensor **out_tensor) LF_MUST_USE;
lf_dtype lf_tensor_dtype(const lfuser_tensor *t);             // LF_NO_DTYPE when it has none of ours
bool lf_tensor_has_dtype(const lfuser_tensor *t, lf_dtype d); // the same question, quicker

// fusion.c
void lf_fusion_retain(lfuser_fusion *f);
void lf_fusion_release(lfuser_fusion *f);
lf_status lf_fusion_no_sync(const lfuser_fusion *f) LF_MUST_USE; // names every sync point
lf_status lf_fusion_wrap(lfuser_context *c, lf_graph *graph, const char *file, lfuser_fusion **out_fusion) LF_MUST_USE;

// variants.c
// The kernel for a class, compiled and loaded when it is not there yet; where the executable never waits, the general one meanwhile.
// LF_CAPTURE_ERROR when that would happen while `stream` (may be NULL) is being captured.
lf_status lf_executable_variant(lfuser_executable *e, uint32_t launch, lfuser_abi_class cls, lfuser_stream *stream,
                                lf_variant **out_variant) LF_MUST_USE;
void lf_variant_free(lfuser_executable *e, lf_variant *v);
// The classes that any shape and contiguous tensors need, or the former alone; side by side.
lf_status lf_executable_compile_classes(lfuser_executable *e, bool general_only) LF_MUST_USE;
typedef struct lf_wanted {
    uint32_t launch;
    lfuser_abi_class cls;
} lf_wanted;
typedef LF_VEC(lf_wanted) lf_wanted_list;
// Unless it is loaded or in the list already.
lf_status lf_wanted_add(lfuser_executable *e, lf_wanted_list *list, uint32_t launch, lfuser_abi_class cls) LF_MUST_USE;
lf_status lf_executable_compile_all(lfuser_executable *e, const lf_wanted *wanted, size_t n) LF_MUST_USE; // side by side
bool lf_executable_is_cold(lfuser_executable *e, const lf_wanted *wanted); // the code generator would be needed

// executable.c
lf_frame *lf_frame_take(lfuser_executable *e); // NULL: out of memory
void lf_frame_give(lfuser_executable *e, lf_frame *f);
void lf_executable_retain(lfuser_executable *e);
void lf_executable_release(lfuser_executable *e);
lf_status lf_executable_note_stream(lfuser_executable *e, lfuser_stream *s) LF_MUST_USE;

// replay.c
lf_replays *lf_executable_take_replays(lfuser_executable *e, lfuser_stream *stream); // NULL: launch one by one
void lf_executable_give_replays(lfuser_executable *e, lf_replays *r);
void lf_executable_free_replays(lfuser_executable *e); // its runs are over

// pending.c
lf_status lf_pending_create(lfuser_device *d, lf_dtype dtype, bool captured, lfuser_pending **out_pending) LF_MUST_USE;
// One that the host finishes: arrivals[i] belongs to abi.arrivals[i]. What it needs of the run's own follows when that is known.
lf_status lf_pending_create_finish(lfuser_executable *e, lf_dtype dtype, uint32_t finish, lfuser_pending *const *arrivals,
                                   lfuser_pending **out_pending) LF_MUST_USE;
void lf_pending_keep_operands(lfuser_pending *p, const uint64_t *slots);
bool lf_pending_is_there(const lfuser_pending *p);        // all that it is made from
void lf_pending_release(lfuser_pending *p, bool written); // written: nothing that could write to it is under way

// watch.c
lf_status lf_watch_add(lfuser_context *c, lf_watch watch) LF_MUST_USE;
void lf_watcher_stop(lf_watcher *w); // callbacks that have not been called yet never are

// completion.c
bool lf_completion_is_over(const lfuser_completion *c);
void lf_completions_free(lfuser_device *d); // spare ones
lf_status lf_completion_create(lfuser_executable *e, lfuser_completion **out_completion) LF_MUST_USE;
lf_status lf_completion_create_done(lfuser_executable *e, lfuser_completion **out_completion) LF_MUST_USE; // no device work
lf_status lf_executable_keep_unread(lfuser_executable *e, lfuser_completion *c) LF_MUST_USE;
lf_status lf_executable_check_unread(lfuser_executable *e) LF_MUST_USE; // an error of an earlier run that nobody read
void lf_executable_drop_unread(lfuser_executable *e);
#endif
