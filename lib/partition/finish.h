// Private to lib/partition.
#ifndef LF_PARTITION_FINISH_H
#define LF_PARTITION_FINISH_H
#include "partition/partition.h"

// Finds what the host finishes, and marks it; after lf_stages_find.
lf_status lf_finishes_find(lf_partition *p) LF_MUST_USE;
#endif
