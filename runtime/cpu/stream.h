// The stream operations of the CPU device, for its table of operations.
#ifndef LF_RUNTIME_CPU_STREAM_H
#define LF_RUNTIME_CPU_STREAM_H
#include "runtime/cpu/cpu.h"

lf_status lf_cpu_stream_create(lf_device *device, lf_stream **out_stream);
lf_status lf_cpu_stream_wrap(lf_device *device, void *native, lf_stream **out_stream);
void *lf_cpu_stream_native(lf_stream *stream);
void lf_cpu_stream_destroy(lf_stream *stream);
lf_status lf_cpu_stream_synchronize(lf_stream *stream);
lf_status lf_cpu_stream_query(lf_stream *stream);
lf_status lf_cpu_stream_callback(lf_stream *stream, void (*fn)(void *arg), void *arg);
bool lf_cpu_stream_capturing(lf_stream *stream);
lf_status lf_cpu_memory_alloc(lf_stream *stream, size_t bytes, void **out_pointer);
void lf_cpu_memory_free(lf_stream *stream, void *pointer);
lf_status lf_cpu_memory_copy(lf_stream *stream, void *to, const void *from, size_t bytes, lf_copy_kind kind);
lf_status lf_cpu_memory_fill(lf_stream *stream, void *to, uint8_t byte, size_t bytes);
lf_status lf_cpu_launch(lf_stream *stream, const lf_launch *launch);
#endif
