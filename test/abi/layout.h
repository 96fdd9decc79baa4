// Sizes and offsets of the public structs on 64-bit machines, and numbers of the public enums, as programs have them compiled in.
// Adding a field at the end of a struct that begins with its size is fine; nothing else here may change within a SONAME.
// Compiled as C11, C17 and C++17.
#ifndef LF_TEST_ABI_LAYOUT_H
#define LF_TEST_ABI_LAYOUT_H
#include <lfuser/launch_abi.h>
#include <lfuser/lfuser.h>

#ifdef __cplusplus
#define CHECK(condition) static_assert(condition, #condition)
#else
#define CHECK(condition) _Static_assert(condition, #condition)
#endif
#define SIZE(type, bytes) CHECK(sizeof(type) == (bytes))
#define AT(type, field, byte) CHECK(offsetof(type, field) == (byte))

SIZE(lfuser_scalar, 16);
SIZE(lfuser_dl_device, 8);
AT(lfuser_dl_device, ordinal, 4);
SIZE(lfuser_dl_dtype, 4);
AT(lfuser_dl_dtype, bits, 1);
AT(lfuser_dl_dtype, lanes, 2);
SIZE(lfuser_tensor, 48);
AT(lfuser_tensor, data, 0);
AT(lfuser_tensor, device, 8);
AT(lfuser_tensor, rank, 16);
AT(lfuser_tensor, dtype, 20);
AT(lfuser_tensor, shape, 24);
AT(lfuser_tensor, strides, 32);
AT(lfuser_tensor, byte_offset, 40);
SIZE(lfuser_managed_tensor, 80);
AT(lfuser_managed_tensor, version, 0);
AT(lfuser_managed_tensor, manager, 8);
AT(lfuser_managed_tensor, deleter, 16);
AT(lfuser_managed_tensor, flags, 24);
AT(lfuser_managed_tensor, tensor, 32);

SIZE(lfuser_allocator, 32);
AT(lfuser_allocator, alloc, 8);
AT(lfuser_allocator, resize, 16);
AT(lfuser_allocator, release, 24);
AT(lfuser_context_options, size, 0);
AT(lfuser_context_options, allocator, 8);
AT(lfuser_context_options, log_self, 40);
AT(lfuser_context_options, log, 48);
AT(lfuser_context_options, log_least, 56);
AT(lfuser_context_options, threads, 60);
AT(lfuser_context_options, codegen_path, 64);
AT(lfuser_context_options, cache_directory, 72);
AT(lfuser_context_options, cache_bytes, 80);
AT(lfuser_compile_options, math, 8);
AT(lfuser_stats, launches, 8);
AT(lfuser_stats, syncs, 16);
AT(lfuser_stats, compiles, 24);
AT(lfuser_stats, kernels_loaded, 32);
AT(lfuser_stats, allocations, 40);
AT(lfuser_stats, bytes_copied, 48);
AT(lfuser_stats, general_launches, 56);
AT(lfuser_stats, background_compiles, 64);
AT(lfuser_cache_stats, directory, 8);
AT(lfuser_cache_stats, faults, 96);
AT(lfuser_host_entry, infer, 8);
AT(lfuser_host_entry, program, 24);

SIZE(lfuser_value_info, 24);
AT(lfuser_value_info, kind, 8);
AT(lfuser_value_info, dtype, 12);
AT(lfuser_value_info, rank, 16);
AT(lfuser_value_info, into, 20);
SIZE(lfuser_argument, 32);
AT(lfuser_argument, dtype, 4);
AT(lfuser_argument, value, 8);
AT(lfuser_argument, tensor, 24);
SIZE(lfuser_output, 48);
AT(lfuser_output, tensor, 0);
AT(lfuser_output, kind, 8);
AT(lfuser_output, dtype, 12);
AT(lfuser_output, value, 16);
AT(lfuser_output, pending, 32);
AT(lfuser_output, allocated, 40);

SIZE(lfuser_operand, 48);
AT(lfuser_operand, value, 8);
AT(lfuser_operand, integer, 16);
AT(lfuser_operand, number, 24);
AT(lfuser_operand, items, 32);
AT(lfuser_operand, n_items, 40);
SIZE(lfuser_attribute, 64);
AT(lfuser_attribute, operand, 8);
AT(lfuser_attribute, word, 56);
SIZE(lfuser_type, 144);
AT(lfuser_type, tensor, 4);
AT(lfuser_type, host, 5);
AT(lfuser_type, rank, 8);
AT(lfuser_type, extents, 16);
AT(lfuser_type, names, 80);

CHECK(LFUSER_OK == 0 && LFUSER_INVALID_ARGUMENT == 1 && LFUSER_INVALID_PROGRAM == 2 && LFUSER_UNSUPPORTED == 3 &&
      LFUSER_OUT_OF_MEMORY == 4);
CHECK(LFUSER_UNAVAILABLE == 5 && LFUSER_FAILED_CHECK == 6 && LFUSER_INDEX_ERROR == 7 && LFUSER_DEVICE_ERROR == 8 &&
      LFUSER_NOT_READY == 9);
CHECK(LFUSER_IO_ERROR == 10 && LFUSER_INTERNAL == 11 && LFUSER_CAPTURE_ERROR == 12 && LFUSER_TIMEOUT == 13);
CHECK(LFUSER_BOOL == 1 && LFUSER_I8 == 2 && LFUSER_I16 == 3 && LFUSER_I32 == 4 && LFUSER_I64 == 5 && LFUSER_U8 == 6 &&
      LFUSER_U16 == 7);
CHECK(LFUSER_U32 == 8 && LFUSER_U64 == 9 && LFUSER_F16 == 10 && LFUSER_BF16 == 11 && LFUSER_F32 == 12 && LFUSER_F64 == 13);
CHECK(LFUSER_C64 == 14 && LFUSER_C128 == 15 && LFUSER_MAX_RANK == 8);
CHECK(LFUSER_SCALAR == 0 && LFUSER_PENDING == 1 && LFUSER_HOST_TENSOR == 2 && LFUSER_TENSOR == 3);
CHECK(LFUSER_MATH_EXACT == 0 && LFUSER_MATH_FAST == 1);
CHECK(LFUSER_LOG_DEBUG == 0 && LFUSER_LOG_INFO == 1 && LFUSER_LOG_WARNING == 2 && LFUSER_LOG_ERROR == 3);
CHECK(LFUSER_STAGE_FUSION == 0 && LFUSER_STAGE_GRAPH == 1 && LFUSER_STAGE_PARTITION == 2 && LFUSER_STAGE_PROGRAM == 3 &&
      LFUSER_STAGE_KERNELS == 4);
CHECK(LFUSER_STAGE_HOST_IR == 5 && LFUSER_STAGE_HOST_ASM == 6 && LFUSER_STAGE_DEVICE_IR == 7 &&
      LFUSER_STAGE_DEVICE_ASM == 8);
CHECK(LFUSER_OPERAND_NONE == 0 && LFUSER_OPERAND_VALUE == 1 && LFUSER_OPERAND_INT == 2 && LFUSER_OPERAND_FLOAT == 3 &&
      LFUSER_OPERAND_BOOL == 4);
CHECK(LFUSER_OPERAND_LIST == 5);
CHECK(LFUSER_ABI_SCALAR == 0 && LFUSER_ABI_PENDING == 1 && LFUSER_ABI_HOST_TENSOR == 2 && LFUSER_ABI_TENSOR == 3);
#endif
