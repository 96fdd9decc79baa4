// The one error type. A status is NULL for success, else an owned object with code, message, notes and source place.
// Out of memory is a static object, so that reporting it needs no memory.
#ifndef LF_BASE_STATUS_H
#define LF_BASE_STATUS_H
#include "base/alloc.h"
#include <stdarg.h>
#include <stdint.h>

// Numbers are public (lfuser_code in include/lfuser/status.h) and never change.
typedef enum lf_code {
    LF_OK = 0,
    LF_INVALID_ARGUMENT = 1, // the caller passed something wrong: count, kind, dtype, rank, extent, NULL
    LF_INVALID_PROGRAM = 2,  // the program text or builder calls do not mean anything
    LF_UNSUPPORTED = 3,      // meaningful, but this (op, dtype, target) is not offered
    LF_OUT_OF_MEMORY = 4,    // host or device
    LF_UNAVAILABLE = 5,      // no such device, no driver
    LF_FAILED_CHECK = 6,     // a run-time check or assert of the program failed; nothing was launched
    LF_INDEX_ERROR = 7,      // an index was out of range on the device
    LF_DEVICE_ERROR = 8,     // the device or its driver reported a failure
    LF_NOT_READY = 9,        // asked without waiting, and not there yet
    LF_IO_ERROR = 10,
    LF_INTERNAL = 11,      // a fault of this library
    LF_CAPTURE_ERROR = 12, // would compile or load during graph capture
    LF_TIMEOUT = 13
} lf_code;

// Where in a program text: `file` borrowed for the status's construction (copied), line and column from 1, 0 = unknown.
typedef struct lf_place {
    const char *file;
    uint32_t line, column;
} lf_place;

typedef struct lf_status_object lf_status_object;
typedef lf_status_object *lf_status;
#define LF_MUST_USE __attribute__((warn_unused_result))

lf_status lf_error(const lf_allocator *a, lf_code code, const char *format, ...) LF_MUST_USE
    __attribute__((format(printf, 3, 4)));
lf_status lf_error_at(const lf_allocator *a, lf_code code, lf_place place, const char *format, ...) LF_MUST_USE
    __attribute__((format(printf, 4, 5)));
lf_status lf_error_v(const lf_allocator *a, lf_code code, lf_place place, const char *format, va_list args) LF_MUST_USE
    __attribute__((format(printf, 4, 0)));
lf_status lf_out_of_memory(void) LF_MUST_USE;
// "not there yet": static too, since pollers ask often.
lf_status lf_not_ready(void) LF_MUST_USE;
// Adds a line below the message (a caret drawing, a JIT log); returns the same status. NULL stays NULL.
lf_status lf_status_note(lf_status s, const char *format, ...) LF_MUST_USE __attribute__((format(printf, 2, 3)));

lf_code lf_status_code(const lf_status_object *s);        // LF_OK for NULL
const char *lf_status_message(const lf_status_object *s); // "" for NULL; borrowed; message, then a line per note
lf_place lf_status_place(const lf_status_object *s);
const char *lf_code_name(lf_code code); // "invalid-argument"
void lf_status_destroy(lf_status s);

#define LF_TRY(expression)                                                                                                  \
    do {                                                                                                                    \
        lf_status try_status = (expression);                                                                                \
        if (try_status) return try_status;                                                                                  \
    } while (0)
#endif
