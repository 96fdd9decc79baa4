// What the code of a kernel or of a program's host part depends on, as bytes for a cache key: two that write the same bytes get
// the same code from the code generators. Names, places and messages are left out.
#ifndef LF_SCHEDULE_KEY_H
#define LF_SCHEDULE_KEY_H
#include "base/text.h"
#include "schedule/program.h"

// A failure for want of memory stays in `out`.
void lf_loop_key(const lf_loop *loop, lf_text *out);
void lf_program_host_key(const lf_program *p, lf_text *out);
#endif
