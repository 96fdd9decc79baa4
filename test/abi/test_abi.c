// The library as a program meets it that was compiled against the headers alone: layouts (layout.h), DLPack's, versions, dtypes.
#include "test/abi/layout.h"
#include <stdio.h>
#include <string.h>

#ifdef LFUSER_HAVE_DLPACK
#include <dlpack/dlpack.h>
// Debian's header is of DLPack 0.6; what it has of DLTensor is what 1.x has.
SIZE(lfuser_dl_device, sizeof(DLDevice));
AT(lfuser_dl_device, type, offsetof(DLDevice, device_type));
AT(lfuser_dl_device, ordinal, offsetof(DLDevice, device_id));
SIZE(lfuser_dl_dtype, sizeof(DLDataType));
AT(lfuser_dl_dtype, code, offsetof(DLDataType, code));
AT(lfuser_dl_dtype, bits, offsetof(DLDataType, bits));
AT(lfuser_dl_dtype, lanes, offsetof(DLDataType, lanes));
SIZE(lfuser_tensor, sizeof(DLTensor));
AT(lfuser_tensor, data, offsetof(DLTensor, data));
AT(lfuser_tensor, device, offsetof(DLTensor, device));
AT(lfuser_tensor, rank, offsetof(DLTensor, ndim));
AT(lfuser_tensor, dtype, offsetof(DLTensor, dtype));
AT(lfuser_tensor, shape, offsetof(DLTensor, shape));
AT(lfuser_tensor, strides, offsetof(DLTensor, strides));
AT(lfuser_tensor, byte_offset, offsetof(DLTensor, byte_offset));
CHECK(kDLCPU == 1 && kDLInt == 0 && kDLUInt == 1 && kDLFloat == 2 && kDLBfloat == 4);
#endif

static int failed;
#define EXPECT(condition)                                                                                                   \
    do {                                                                                                                    \
        if (!(condition)) failed++, printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                          \
    } while (0)

static void dtypes(void) {
    static const struct {
        lfuser_dtype dtype;
        const char *name;
        uint8_t code, bits;
    } rows[] = {{LFUSER_BOOL, "bool", 6, 8}, {LFUSER_I8, "i8", 0, 8},      {LFUSER_I16, "i16", 0, 16},
                {LFUSER_I32, "i32", 0, 32},  {LFUSER_I64, "i64", 0, 64},   {LFUSER_U8, "u8", 1, 8},
                {LFUSER_U16, "u16", 1, 16},  {LFUSER_U32, "u32", 1, 32},   {LFUSER_U64, "u64", 1, 64},
                {LFUSER_F16, "f16", 2, 16},  {LFUSER_BF16, "bf16", 4, 16}, {LFUSER_F32, "f32", 2, 32},
                {LFUSER_F64, "f64", 2, 64},  {LFUSER_C64, "c64", 5, 64},   {LFUSER_C128, "c128", 5, 128}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lfuser_dl_dtype d = lfuser_dl_dtype_of(rows[i].dtype);
        EXPECT(d.code == rows[i].code && d.bits == rows[i].bits && d.lanes == 1);
        EXPECT(lfuser_dtype_of(d) == rows[i].dtype);
        EXPECT(!strcmp(lfuser_dtype_name(rows[i].dtype), rows[i].name));
        EXPECT(lfuser_dtype_parse(rows[i].name) == rows[i].dtype);
        EXPECT(lfuser_dtype_bytes(rows[i].dtype) * 8u == rows[i].bits);
        d.lanes = 2;
        EXPECT(lfuser_dtype_of(d) == LFUSER_NO_DTYPE);
    }
    EXPECT(lfuser_dtype_of((lfuser_dl_dtype){3, 64, 1}) == LFUSER_NO_DTYPE);
    EXPECT(lfuser_dtype_of((lfuser_dl_dtype){2, 8, 1}) == LFUSER_NO_DTYPE);
    EXPECT(lfuser_dl_dtype_of((lfuser_dtype)16).lanes == 0 && lfuser_dl_dtype_of((lfuser_dtype)-1).lanes == 0);
    EXPECT(lfuser_dtype_parse("f33") == LFUSER_NO_DTYPE && lfuser_dtype_parse("") == LFUSER_NO_DTYPE &&
           lfuser_dtype_parse(NULL) == LFUSER_NO_DTYPE);
}

static void statuses(void) {
    const char *file = "x";
    uint32_t line = 1, column = 1;
    EXPECT(lfuser_status_code(NULL) == LFUSER_OK && !strcmp(lfuser_status_message(NULL), ""));
    lfuser_status_place(NULL, &file, &line, &column);
    EXPECT(!file && !line && !column);
    for (int c = 0; c <= LFUSER_TIMEOUT; c++) EXPECT(lfuser_code_name((lfuser_code)c)[0] >= 'a');
    EXPECT(!strcmp(lfuser_code_name(LFUSER_INVALID_ARGUMENT), "invalid-argument") &&
           !strcmp(lfuser_code_name(LFUSER_TIMEOUT), "timeout"));
    EXPECT(lfuser_code_name((lfuser_code)999) != NULL);
}

// Option and stats structs of another version: shorter ones read as far as they go, longer ones are not read past the end.
static void sizes(void) {
    struct {
        lfuser_context_options options;
        char later[64];
    } longer;
    memset(&longer, 0xff, sizeof longer);
    longer.options = (lfuser_context_options){.size = sizeof longer};
    lfuser_context *c = NULL;
    lfuser_status s = lfuser_context_create(&longer.options, &c);
    EXPECT(!s && c);
    lfuser_context_destroy(c);
    lfuser_context_options shorter;
    memset(&shorter, 0xff, sizeof shorter);
    shorter.size = sizeof shorter.size; // all else is garbage that must not be looked at
    s = lfuser_context_create(&shorter, &c);
    EXPECT(!s && c);
    lfuser_device *d = NULL;
    s = lfuser_device_open(c, "cpu", &d);
    EXPECT(!s && d);
    struct {
        lfuser_stats stats;
        unsigned char later[32];
    } stats;
    memset(&stats, 0xee, sizeof stats);
    stats.stats.size = sizeof stats;
    s = lfuser_device_stats(d, &stats.stats);
    EXPECT(!s && stats.stats.launches == 0 && stats.later[0] == 0xee);
    memset(&stats, 0xee, sizeof stats);
    stats.stats.size = offsetof(lfuser_stats, syncs);
    s = lfuser_device_stats(d, &stats.stats);
    EXPECT(!s && stats.stats.launches == 0 && stats.stats.syncs == 0xeeeeeeeeeeeeeeee);
    lfuser_device_close(d);
    lfuser_context_destroy(c);
}

int main(void) {
    EXPECT(lfuser_version() == LFUSER_VERSION);
    dtypes();
    statuses();
    sizes();
#ifndef LFUSER_HAVE_DLPACK
    printf("dlpack/dlpack.h (libdlpack-dev) was not there when this was built: its layout was not compared\n");
#endif
    return failed != 0;
}
