// Fuzzing of the .npy reader: whatever the bytes, an array whose elements are there, or an error that names the file.
#include "test/fuzz/fuzz.h"
#include "tools/common/npy.h"
#include <string.h>

static bool one_input(const uint8_t *data, size_t size) {
    const lf_allocator *a = &lf_system_allocator;
    lf_npy array;
    lf_status s = lf_npy_parse(a, "in.npy", data, size, &array);
    if (s) {
        const char *message = lf_status_message(s);
        CHECK(lf_status_code(s) != LF_INTERNAL && !strncmp(message, "in.npy: ", 8), "odd message: %s\n", message);
        CHECK(!array.data && !array.bytes, "an array beside an error\n");
        lf_status_destroy(s);
        return false;
    }
    CHECK(array.rank <= LF_MAX_RANK && array.element && array.bytes <= size, "odd array\n");
    uint64_t last = 0, elements = 1;
    for (unsigned k = 0; k < array.rank; k++) {
        CHECK(array.shape[k] >= 0 && array.strides[k] >= 1, "axis %u: extent %lld, stride %lld\n", k,
              (long long)array.shape[k], (long long)array.strides[k]);
        elements *= (uint64_t)array.shape[k];
    }
    CHECK(!array.bytes == !array.data, "bytes without data\n");
    if (array.bytes) {
        for (unsigned k = 0; k < array.rank; k++) last += (uint64_t)((array.shape[k] - 1) * array.strides[k]);
        CHECK(elements * array.element == array.bytes && last + 1 == elements, "%llu elements, the last at %llu\n",
              (unsigned long long)elements, (unsigned long long)last);
        volatile uint8_t sum = 0;
        for (uint64_t i = 0; i < array.bytes; i++) sum = (uint8_t)(sum + ((const uint8_t *)array.data)[i]);
    }
    lf_npy_finish(a, &array);
    return true;
}

static const char *const tokens[] = {"'",
                                     "\"",
                                     "{",
                                     "}",
                                     "(",
                                     ")",
                                     ",",
                                     ":",
                                     "[",
                                     "]",
                                     "9223372036854775807",
                                     "0",
                                     "True",
                                     "'descr'",
                                     "'shape'",
                                     "'<f8'",
                                     "'>c16'",
                                     "'|V2'",
                                     "'fortran_order'",
                                     "1, 1, 1, 1, 1, 1, 1, ",
                                     "4294967296",
                                     "-1",
                                     "\n",
                                     " ",
                                     NULL};

// The header's length fits again, so that its text is what is tried.
static void mend(lf_fuzz_input *in) {
    uint8_t *close = in->size > 12 ? memchr(in->data + 10, '}', in->size - 10) : NULL;
    if (!close || in->data[6] != 1) return;
    size_t length = (size_t)(close + 1 - in->data) - 10;
    in->data[8] = (uint8_t)length;
    in->data[9] = (uint8_t)(length >> 8);
}

const lf_fuzz_description lf_fuzz_target = {.name = "fuzz_npy",
                                            .suffix = "npy",
                                            .corpus = "test/fuzz/corpus/npy",
                                            .one = one_input,
                                            .tokens = tokens,
                                            .head = 96,
                                            .mend = mend};
