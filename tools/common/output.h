// A file that a tool writes: it is whole, or it is not there and somebody is told.
#ifndef LF_TOOLS_COMMON_OUTPUT_H
#define LF_TOOLS_COMMON_OUTPUT_H
#include <stdbool.h>
#include <stdio.h>

// NULL: errno says why. Without a path it is standard output.
FILE *lf_output_open(const char *path);
// Writes what is left. `keep`: all that belongs into it has been given. False: some of it could not be written, errno says why. A file
// that is not kept or not whole is removed, unless it is none (a device, a pipe, standard output).
bool lf_output_close(FILE *to, const char *path, bool keep);
#endif
