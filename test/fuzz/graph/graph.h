// Random programs on a device against the interpreter: the same bits for everything but float scans, whose order is free.
//
// A program is kept as text, a line an op, so that any subset of its lines can be written out, typed (by parsing it), run and shrunk.
#ifndef LF_FUZZ_GRAPH_H
#define LF_FUZZ_GRAPH_H
#include "interp/interp.h"
#include "test/support/api/tensors.h"

enum {
    MOST_PARAMS = 24,
    MOST_LINES = 48,
    MOST_VALUES = MOST_PARAMS + 2 * MOST_LINES,
    MOST_OUTPUTS = 16,
    MOST_NUMEL = 20000,
    MOST_ARGUMENTS = MOST_VALUES
};

typedef struct value {
    char name[8]; // "%v12"
    lf_dtype dtype;
    bool tensor, host, pending;
    bool free_order; // of a float scan: compared within a bound, and no operand of anything
    unsigned rank;
    int64_t shape[LFUSER_MAX_RANK];
    int line; // -1: a parameter
    // Parameters.
    fill fill;
    uint64_t seed;
    bool extent;      // an i64 scalar that stands for an extent: a literal in the static text
    int64_t number;   // its value
    void *data;       // elements in row-major order instead of fill and seed (owned), or NULL
    layout layout;    // in the first run
    bool overwritten; // an output goes into it: no stride may be 0
} value;

typedef struct line {
    char text[400]; // what stands right of "="
    int result[2];  // values
    unsigned n;
} line;

typedef struct program {
    uint64_t seed;
    value values[MOST_VALUES];
    int n_values, n_params; // parameters come first; shrinking makes more, whose line is -1 too
    line lines[MOST_LINES];
    int n_lines;
    int outputs[MOST_OUTPUTS], into[MOST_OUTPUTS]; // values; the parameter's, or -1
    int n_outputs;
} program;

// ---- gen.c: programs ---------------------------------------------------------------------------------------------------------

typedef struct random_state {
    uint64_t state;
} random_state;
uint64_t next(random_state *r);
int64_t below(random_state *r, int64_t n); // 0 … n - 1
bool chance(random_state *r, int percent);

void program_make(program *p, uint64_t seed,
                  bool exact_ops); // exact_ops: nothing that may be an ulp away from the true value
void program_copy(program *to, const program *from);
void program_finish(program *p);

typedef struct dialect {
    bool symbolic; // extents are `?`, and numbers for extents scalar parameters
    bool all;      // every value is an output (the program's own outputs first)
} dialect;
// The program as text, only lines and parameters that the outputs need; caller frees. *out_used[i]: value i is in it.
char *program_text(const program *p, dialect how, bool *out_used);
// Outputs in the order of the text's `return`; returns how many.
int program_outputs(const program *p, dialect how, int *out_values, int *out_into);

// ---- exec.c: one program, one way of running it -------------------------------------------------------------------------------

typedef struct variant {
    dialect dialect;
    unsigned layouts; // 0: as the parameters say; else added to them
    bool given;       // outputs go into buffers of the caller, in layouts that depend on `layouts`
    unsigned machine; // which of the contexts (they differ in threads)
    bool prepare;
} variant;
typedef enum outcome { SAME, DIFFERS, REFUSED, FAILED_CHECK } outcome;

// Opens contexts and devices; 77 if there is no such device, else 0.
int machines_open(const char *device);
void machines_close(void);
// `what` (room bytes) gets what differs. REFUSED: the symbolic text is no program (never the static one's).
outcome run_variant(const program *p, const variant *v, char *what, size_t room);
const char *variant_name(const variant *v, char *text, size_t room);
// Gives every value of the program its elements, as the interpreter finds them; NULL where there are none. false: it fails.
bool interpret_all(const program *p, void **out_data);
// The elements of a parameter in row-major order; caller frees.
void *parameter_data(const value *v);
// The program as a conformance case: program, arguments, what the interpreter says. false: it fails or is too large.
bool write_case(const program *p, FILE *to);

// ---- shrink.c ------------------------------------------------------------------------------------------------------------------

extern const char *device_name;
// Makes p as small as it can while `variant` still fails on it (run in a process of its own).
void shrink(program *p, variant *v);
void write_reproducer(const program *p, const variant *v, const char *what, FILE *to);
outcome run_apart(const program *p, const variant *v, char *what, size_t room); // a crash or a hang counts as DIFFERS
#endif
