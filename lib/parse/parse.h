// The text form of the language (one or more fusions) to graphs.
// Does not belong here: what a program means; that is ir/build.h, through which every graph is built.
//
// A status of this folder carries everything a person needs: lf_status_message is
//     seed.lf:3:9: error: unknown op 'ad'; did you mean 'add'?
//       %t3 = ad %t1, %t2
//             ^
// and lf_status_place the same place as numbers. Columns count characters (UTF-8), from 1. Only the first error is reported.
#ifndef LF_PARSE_PARSE_H
#define LF_PARSE_PARSE_H
#include "ir/ir.h"

// Every fusion of a text, in order: at least one, with different names. `text` need not end in NUL, and is borrowed for the
// call; `file_name` stands in diagnostics (copied; NULL: "<text>"). `allow_sync` is kept with each graph.
// *out_graphs is an array that the caller gives back with lf_parse_release; after an error it is NULL and *out_n 0.
lf_status lf_parse(const lf_allocator *a, const char *file_name, const char *text, size_t length, bool allow_sync,
                   lf_graph ***out_graphs, size_t *out_n) LF_MUST_USE;
// Destroys the graphs that are still in the array (entries set to NULL were taken by the caller), and the array.
void lf_parse_release(const lf_allocator *a, lf_graph **graphs, size_t n);
#endif
