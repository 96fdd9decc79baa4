// A program on the device against the interpreter: the same bits, whatever the layout.
//
// Arguments are made from the parameters: extents named %m are 3, %k are 5, %a to %d case_options.extents if these are given, all
// others (%n, ?) case_options.n. The first
// letter of a parameter's name says what is in it: i indices for an axis of extent 3; p plain numbers; s small ones; anything
// else edge values and random bits.
#ifndef LF_TEST_ORACLE_H
#define LF_TEST_ORACLE_H
#include "interp/interp.h"
#include "test/support/api/tensors.h"

typedef struct test_program {
    char *text; // owned
    lf_graph *graph;
    lfuser_executable *executable;
    double
        slack;  // relative to max(1, |value|): for what depends on the target (float scans and contractions); 0: equal bits
    bool brief; // check_layouts: fewer extents and layouts
} test_program;

// `text` may hold $D, which stands for the dtype's name; it is the whole fusion, or what follows "fusion @t". False when the
// program is refused (with LFUSER_INVALID_PROGRAM, that is: this op does not take this dtype); any other failure fails the test.
bool program_open(test_program *p, const char *text, lfuser_dtype dtype);
bool program_open_as(test_program *p, const char *text, lfuser_dtype dtype, const char *debug); // with LFUSER_DEBUG's words
void program_close(test_program *p);

typedef struct case_options {
    int64_t n;
    const int64_t *extents; // 4, or NULL
    layout in;              // of parameter 0; parameter i has that plus i * in_step
    unsigned in_step;
    bool given; // outputs go to buffers of the caller, in layouts from `out` on; else the library allocates
    layout out;
    unsigned out_step; // output k has that plus k times this; 0: 1
    uint64_t seed;
} case_options;
void check_case(const test_program *p, const case_options *o);
// Dense with outputs of the library, and in layouts that go by `i` with outputs of the caller. extents: 4.
void check_twice(const test_program *p, int64_t n, const int64_t *extents, unsigned i);
// Over extents {0, 1, 7, 1025, 8193}, every layout of the inputs, outputs allocated and given in turn.
void check_layouts(const test_program *p, const int64_t *extents, size_t n_extents);

bool same_value(lfuser_dtype d, const void *a, const void *b); // bits, NaN equal to NaN
#endif
