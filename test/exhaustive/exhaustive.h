// Unary ops and casts on every input, or as many as time allows: the bits of a device against the interpreter, and the values
// against an exact reference.
#ifndef LF_TEST_EXHAUSTIVE_H
#define LF_TEST_EXHAUSTIVE_H
#include "interp/interp.h"
#include <lfuser/lfuser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_OUTPUTS = 8 };

typedef struct options {
    const char *device;
    const char *only; // names separated by commas, or NULL
    uint64_t slice;   // one f32 of so many
    uint64_t fast_slice;
    size_t f64_exact; // f64 inputs a function that MPFR judges
    size_t f64_bits;  // f64 inputs a function that are compared with the interpreter
    bool full;        // all f32 inputs, device against the CPU device
} options;

// ---- ops (functions.c) ---------------------------------------------------------------------------------------------------------

typedef enum kind {
    EXACT, // the correctly rounded value
    MATHS, // within the limit of its row in test/math/judge.c; 16-bit results are neighbours of the true value
    STEPS  // means its formula step by step: the bits are what counts; 16-bit results are neighbours here too
} kind;

typedef struct op {
    const char *name, *statement; // "%r = statement"
    kind kind;
    double (*truth)(double); // exact for EXACT, else far closer than an ulp of f32; NULL: none
    bool predicate;          // result is bool
} op;
extern const op ops[];
extern const size_t n_ops;
bool wanted(const options *o, const char *name);

// ---- machine (machine.c) -----------------------------------------------------------------------------------------------------------

typedef struct machine {
    lfuser_context *context;
    lfuser_device *device;
    lfuser_stream *stream;
    lfuser_dl_device place;
} machine;
int machine_open(machine *m, const char *device); // 0, or the exit status: 77 when there is no such device
void machine_close(machine *m);
void must(lfuser_status s, const char *what); // ends the program with the message

// A program of one parameter "%a" of rank 1 and up to MAX_OUTPUTS results of its shape.
typedef struct program {
    char *text;
    lf_graph *graph;
    lfuser_executable *executable;
    lfuser_dtype in, out[MAX_OUTPUTS];
    size_t n;
} program;
void program_open(program *p, machine *m, lfuser_dtype in, const char *const *statements, size_t n, lfuser_math math);
void program_close(program *p);
// Outputs are given back in memory of the caller, n elements each. The interpreter runs on all cores.
void run_device(machine *m, const program *p, const void *in, size_t n, void *const *out);
void run_interpreter(const program *p, const void *in, size_t n, void *const *out);

// Calls fn(arg, begin, end) on every core for parts of [0, n).
void parallel(size_t n, void (*fn)(void *arg, size_t begin, size_t end), void *arg);
double seconds(void);

// ---- comparison and report (compare.c) ----------------------------------------------------------------------------------------------

typedef struct tally {
    uint64_t inputs, differing, wrong; // wrong: not within what is permitted
    double worst;                      // ulp
    uint64_t worst_at, first_wrong;    // bits of the input
    char wrong_text[160];
} tally;
void tally_add(tally *to, const tally *from);
// Prints a line, counts a check of the bits and, if judged, one of the values.
void report(const char *section, lfuser_dtype d, const char *name, const tally *t, bool compared, bool judged);
extern int passed, failed;

double value_of(lfuser_dtype d, const void *element); // floats
uint64_t bits_of(lfuser_dtype d, const void *element);
// `value` rounded once to nearest even, or as the language converts to integers and bool.
void round_to(lfuser_dtype d, long double value, void *out);
// Bits, any NaN equal to any; both parts of complex numbers.
bool same_element(lfuser_dtype d, const void *a, const void *b);
uint64_t count_differing(lfuser_dtype d, const void *a, const void *b, size_t n);
// Distance from the true value in ulps of d (f16, bf16, f32); infinite when kinds or signs of zero differ.
double ulps_from(lfuser_dtype d, double got, double truth);

// ---- the fast judge of f32 (judge_f32.c) -----------------------------------------------------------------------------------------

enum { JUDGE_BLOCK = 512 };
// n <= JUDGE_BLOCK results of f for x, floats or (of a predicate) bools. EXACT ops: bits of the rounded truth; else within `limit` ulps, and *worst,
// *worst_at become the greatest distance and its place if it is greater. doubtful[i] = 1: the judge cannot say yes. Returns how many.
size_t judge_f32(const op *f, double limit, const float *x, const void *results, size_t n, uint8_t *doubtful, double *worst,
                 size_t *worst_at);

// ---- inputs ----------------------------------------------------------------------------------------------------------------------

uint64_t next_random(uint64_t *state);
// Element i of the inputs of a dtype: all values of dtypes up to 16 bits, one of `slice` of f32 spread over all, else edges, halfway
// points and random bits.
void input_element(lfuser_dtype d, uint64_t i, uint64_t slice, void *out);
uint64_t input_count(lfuser_dtype d, const options *o);

// ---- sections --------------------------------------------------------------------------------------------------------------------

void check_floats(machine *m, const options *o);
void check_integers(machine *m, const options *o);
void check_casts(machine *m, const options *o);
void check_fast(machine *m, const options *o);
void check_fast_sums(machine *m, const options *o);
void sweep_all(machine *m, const options *o);
#endif
