// Random programs on a device against the interpreter: the same bits for everything but float scans, whose order is free.
//
// A program is kept as text, a line an op, so that any subset of its lines can be written out, typed (by parsing it), run and shrunk.
#ifndef LF_FUZZ_GRAPH_H
#define LF_FUZZ_GRAPH_H
#include "base/debug.h"
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
    unsigned machine; // which of the contexts (they differ in device and threads)
    bool prepare;
    bool never_wait; // the general kernel runs while a better one compiles
    bool fast;       // math=fast
    uint32_t debug;  // lf_debug: what the compiler leaves out
} variant;
typedef enum outcome { SAME, DIFFERS, REFUSED, FAILED_CHECK } outcome;

enum { MOST_MACHINES = 8 };
typedef struct machine {
    const char *device; // "cpu"
    unsigned threads;
    unsigned number; // of the device in the list
} machine;
extern machine machines[MOST_MACHINES];
extern unsigned n_machines, n_devices;
// "cpu,sim": names the machines (a CPU is two, with one thread and with three); false: too many.
bool machines_list(const char *devices);
// Opens contexts and devices, of all machines or of one (-1: all); 77 if there is no such device, else 0.
int machines_open(int only);
void machines_close(void);
void print_stage_times(void); // of all machines, since they were opened
// `what` (room bytes) gets what differs. REFUSED: the symbolic text is no program (never the static one's).
outcome run_variant(const program *p, const variant *v, char *what, size_t room);
// Gives every value of the program its elements, as the interpreter finds them; NULL where there are none. false: it fails.
bool interpret_all(const program *p, void **out_data);

// What running and writing down need. A case lives from begin_case to end_case.
enum { ROOM = MOST_OUTPUTS + MOST_VALUES };
typedef struct case_run {
    const program *p;
    const variant *v;
    char *text, *what;
    size_t room;
    bool used[MOST_VALUES];
    lf_graph *graph;
    int params[MOST_ARGUMENTS], outputs[ROOM], into[ROOM];
    unsigned n_params, n_outputs;
    test_tensor in[MOST_ARGUMENTS], out[ROOM];
    lfuser_argument arguments[MOST_ARGUMENTS];
    lf_array arrays[MOST_ARGUMENTS];
    lfuser_output results[ROOM];
    void *kept[MOST_ARGUMENTS]; // storage that the run overwrites, as it was
    struct judge *judge;
} case_run;
bool begin_case(case_run *c, const program *p, const variant *v, char *what, size_t room); // false: the text is no program
void make_arguments(case_run *c, bool upload);
void free_arguments(case_run *c);
void end_case(case_run *c);
__attribute__((format(printf, 2, 3))) outcome differs(case_run *c, const char *format, ...);
double real_of(lf_dtype d, const void *element);

// ---- judge.c: what may differ ----------------------------------------------------------------------------------------------------

typedef struct judge judge;
judge *judge_create(const case_run *c); // arguments are there, and stay
void judge_destroy(judge *j);
bool judge_binds(const judge *j, unsigned output); // its bits are promised
// What the device got for an element of which bits are not promised, beside what the interpreter wants.
bool judge_allows(judge *j, unsigned output, lf_dtype d, int64_t number, const void *got, const void *want);
bool judge_index_error(judge *j, bool want); // a run may see the other

// ---- draw.c: which ways ---------------------------------------------------------------------------------------------------------

unsigned n_variants(void);
variant draw(uint64_t seed, unsigned k); // k = 0 … n_variants() - 1
const char *variant_name(const variant *v, char *text, size_t room);
// The compile option for these switches.
const char *debug_words(uint32_t debug, char *text, size_t room);

// ---- cases.c: programs for other judges ------------------------------------------------------------------------------------------

// The elements of a parameter in row-major order; caller frees.
void *parameter_data(const value *v);
// The program as a conformance case: program, arguments, what the interpreter says. false: it fails or is too large.
bool write_case(const program *p, FILE *to);

// ---- shares.c: what was really drawn ---------------------------------------------------------------------------------------------

enum { MOST_OPS = 256, MOST_DEBUG = 32 };
typedef struct shares { // counts; shared by processes
    uint64_t programs, runs, checks, refused, lines, outputs;
    uint64_t several, overwriting, with_pending, with_scalars, with_host_tensors, with_index_error;
    uint64_t tensors, empty, repeated, negative, odd, permuted, gapped;
    uint64_t float_tensors, special_tensors, float_elements, special_elements;
    uint64_t int_tensors, extreme_tensors, int_elements, extreme_elements;
    uint64_t ops[MOST_OPS], dtypes[LF_DTYPE_COUNT], ranks[LFUSER_MAX_RANK + 1];
    uint64_t on[MOST_MACHINES], debug[MOST_DEBUG];
    uint64_t symbolic, all, given, strided, prepared, general, fast, quick;
    uint64_t bounded, undecided; // elements judged by a bound; and those that even a bound says nothing of
} shares;
#define COUNT(board, field, n) __atomic_fetch_add(&(board)->field, (uint64_t)(n), __ATOMIC_RELAXED)
extern shares *board;
void count_program(const program *p);
void count_run(const variant *v, outcome r);
// For people; returns how many promised shares are missed (of enough programs).
unsigned print_shares(double seconds);
void print_summary(uint64_t failures, double seconds); // one line of JSON

// ---- shrink.c ------------------------------------------------------------------------------------------------------------------

double now_seconds(void);
extern double shrink_until; // then a failure is small enough; 0: however long it takes
// Makes p as small as it can while `variant` still fails on it (run in a process of its own).
void shrink(program *p, variant *v);
void write_reproducer(const program *p, const variant *v, const char *what, FILE *to);
outcome run_apart(const program *p, const variant *v, char *what, size_t room); // a crash or a hang counts as DIFFERS
#endif
