// lfuser-run: parses a program, compiles it for a device, gives it arguments from the command line and shows what comes out.
//   main.c   the command line
//   given.c  arguments: VALUE of --arg to a typed scalar or tensor in host memory
//   session.c  the run itself: uploads, the call, reading back
//   show.c   results as text and as JSON
#ifndef LF_TOOLS_RUN_H
#define LF_TOOLS_RUN_H
#include "base/status.h"
#include "ir/dtype.h"
#include <lfuser/lfuser.h>

typedef struct lf_pair { // NAME=VALUE as given; `name` is not terminated
    const char *name, *value;
    size_t name_length;
    size_t index; // of the parameter or output of that name, once it is known
} lf_pair;

typedef struct lf_options {
    const char *file, *device, *fusion;
    lfuser_math math;
    lfuser_sync sync;
    bool json, stats;
    lf_pair *args, *outs; // owned
    size_t n_args, n_outs;
} lf_options;

// A value in host memory: an argument or a result.
typedef struct lf_array {
    lf_dtype dtype;
    bool tensor; // else a scalar: rank 0, one element
    unsigned rank;
    int64_t shape[8], strides[8]; // strides in elements
    uint64_t bytes;
    void *data; // owned; NULL when there are no bytes
} lf_array;

// What `text` means for that parameter. Messages begin with "--arg NAME:".
lf_status lf_given_parse(const lf_allocator *a, const lfuser_value_info *param, const char *text,
                         lf_array *out_array) LF_MUST_USE;
// "f32 of rank 2", "an i64 scalar"
const char *lf_expectation(char *buffer, size_t size, const lfuser_value_info *info);

typedef struct lf_result {
    lfuser_value_info info;
    lf_array array; // row-major
} lf_result;

typedef struct lf_session {
    lf_result *results; // owned; as many as the program has outputs
    size_t n_results;
    uint64_t syncs, launches, compiles; // syncs: of the run call itself, before anything is read back
    uint64_t nanoseconds;               // that the run call took
    lf_status late;                     // what the device reported of a run that ended, e.g. an index out of range
} lf_session;

// Parses, compiles, runs and reads back; everything of the library is closed again when it returns.
lf_status lf_session_run(const lf_allocator *a, lf_options *options, const char *text, size_t size,
                         lf_session *out_session) LF_MUST_USE;
void lf_session_finish(const lf_allocator *a, lf_session *session);

void lf_show_text(const lf_session *session, bool stats);
void lf_show_json(const lf_session *session);
#endif
