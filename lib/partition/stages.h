// Private to lib/partition.
#ifndef LF_PARTITION_STAGES_H
#define LF_PARTITION_STAGES_H
#include "partition/partition.h"

// Fills in stage, known and needed of every value, and the number of stages.
void lf_stages_find(lf_partition *p);
#endif
