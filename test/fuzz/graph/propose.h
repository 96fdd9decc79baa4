// Proposals of lines (propose.c, patterns.c), private to the generator.
#ifndef LF_FUZZ_GRAPH_PROPOSE_H
#define LF_FUZZ_GRAPH_PROPOSE_H
#include "test/fuzz/graph/graph.h"

// Adds a line of n results; gives the first, or -1 when the parser refuses it or its results are too large.
int add_line(program *p, unsigned n, const char *text);
// Tries one op.
void propose(program *p, random_state *r, bool exact_ops);
// Several ops that share kernels in a way that is easily wrong.
void propose_pattern(program *p, random_state *r, bool exact_ops);
#endif
