// .npy files as NumPy writes them and as nobody should: what is read, and the words of what is refused.
#include "tools/common/npy.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const lf_allocator *a = &lf_system_allocator;
static char file[4096];
static size_t size;

// A file of this version, header and data; the header's length is what it is.
static void make(unsigned major, const char *header, const void *data, size_t bytes) {
    size_t n = strlen(header), before = major == 1 ? 10 : 12;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)major;
    file[7] = 0;
    file[8] = (char)(n & 255);
    file[9] = (char)(n >> 8);
    if (major > 1) file[10] = file[11] = 0;
    memcpy(file + before, header, n);
    memcpy(file + before + n, data, bytes);
    size = before + n + bytes;
}

static lf_npy read_good(void) {
    lf_npy array;
    lf_status s = lf_npy_parse(a, "in.npy", file, size, &array);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    return array;
}

static void check_refused(const char *words) {
    lf_npy array;
    lf_status s = lf_npy_parse(a, "in.npy", file, size, &array);
    ck_assert_msg(s != NULL, "accepted; expected: %s", words);
    ck_assert_msg(!strncmp(lf_status_message(s), "in.npy: ", 8) && strstr(lf_status_message(s), words), "'%s' has no '%s'",
                  lf_status_message(s), words);
    ck_assert_ptr_null(array.data);
    lf_status_destroy(s);
}

START_TEST(versions) {
    static const int32_t data[6] = {1, 2, 3, 4, 5, -6};
    make((unsigned)_i, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }   \n", data, sizeof data);
    lf_npy array = read_good();
    ck_assert_int_eq(array.dtype, LF_I32);
    ck_assert_uint_eq(array.rank, 2);
    ck_assert_int_eq(array.shape[0], 2);
    ck_assert_int_eq(array.shape[1], 3);
    ck_assert_int_eq(array.strides[0], 3);
    ck_assert_int_eq(array.strides[1], 1);
    ck_assert_uint_eq(array.bytes, sizeof data);
    ck_assert_mem_eq(array.data, data, sizeof data);
    lf_npy_finish(a, &array);
}
END_TEST

static const struct descr {
    const char *name;
    lf_dtype dtype;
    unsigned bytes;
} descrs[] = {{"|b1", LF_BOOL, 1}, {"|i1", LF_I8, 1},     {"<i2", LF_I16, 2},      {"<i4", LF_I32, 4},
              {"<i8", LF_I64, 8},  {"|u1", LF_U8, 1},     {"<u2", LF_U16, 2},      {"<u4", LF_U32, 4},
              {"<u8", LF_U64, 8},  {"<f2", LF_F16, 2},    {"<f4", LF_F32, 4},      {"<f8", LF_F64, 8},
              {"<c8", LF_C64, 8},  {"<c16", LF_C128, 16}, {"|V2", LF_NO_DTYPE, 2}, {"<V2", LF_NO_DTYPE, 2},
              {"=f4", LF_F32, 4}};

START_TEST(dtypes) {
    char header[128], data[32] = "0123456789abcdef0123456789abcde";
    const struct descr *d = &descrs[_i];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }", d->name);
    make(1, header, data, 2 * d->bytes);
    lf_npy array = read_good();
    ck_assert_int_eq(array.dtype, d->dtype);
    ck_assert_uint_eq(array.element, d->bytes);
    ck_assert_str_eq(array.descr, d->name);
    ck_assert_mem_eq(array.data, data, 2 * d->bytes);
    lf_npy_finish(a, &array);
}
END_TEST

// Byte order counts within a component: a complex number is two of them.
START_TEST(big_endian) {
    make(1, "{'descr': '>c16', 'fortran_order': False, 'shape': (1,), }", "\x3f\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0", 16);
    lf_npy array = read_good();
    ck_assert(((const double *)array.data)[0] == 1.5 && ((const double *)array.data)[1] == -2.0);
    lf_npy_finish(a, &array);
    make(2, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }", "\x01\x02\x03\x04", 4);
    array = read_good();
    ck_assert_uint_eq(((const uint16_t *)array.data)[0], 0x102);
    ck_assert_uint_eq(((const uint16_t *)array.data)[1], 0x304);
    lf_npy_finish(a, &array);
}
END_TEST

START_TEST(orders_and_shapes) {
    make(1, "{'fortran_order': True,\"shape\":(2,3,4),'descr':'|u1'}", "0123456789abcdefghijklmn", 24);
    lf_npy array = read_good();
    ck_assert(array.strides[0] == 1 && array.strides[1] == 2 && array.strides[2] == 6);
    lf_npy_finish(a, &array);
    make(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", "\0\0\0\0\0\0\xf0\x3f", 8);
    array = read_good();
    ck_assert(array.rank == 0 && *(const double *)array.data == 1.0);
    lf_npy_finish(a, &array);
    make(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9223372036854775807, 9223372036854775807), }", "", 0);
    array = read_good();
    ck_assert(array.rank == 3 && array.shape[1] == INT64_MAX && !array.bytes && !array.data);
    lf_npy_finish(a, &array);
    make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,2), }", "xyz",
         3); // more behind it is left alone
    array = read_good();
    ck_assert(array.rank == 8 && array.bytes == 2);
    lf_npy_finish(a, &array);
}
END_TEST

static const struct refusal {
    const char *header, *words;
} refusals[] = {
    {"", "expected '{' at byte 0"},
    {"{}", "descr, fortran_order or shape is missing"},
    {"{'descr': '<f4', 'fortran_order': False}", "descr, fortran_order or shape is missing"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", "a key other than"},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "a key twice"},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", "expected ',' or '}'"},
    {"{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}", "expected ':'"},
    {"{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}", "elements of type '<f4, ' are not read"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "expected True or False"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2)}", "a shape of one extent ends in a comma"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': [2]}", "expected the shape in parentheses"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", "expected ',' or ')'"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "expected an extent"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "expected an extent"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "an extent is beyond 63 bits"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}", "an extent is beyond 63 bits"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "more than 8 axes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "more elements than fit memory"},
    {"{'descr': '<c16', 'fortran_order': False, 'shape': (1152921504606846976,)}", "more elements than fit memory"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}",
     "cut off: the shape needs 4000000000 bytes of elements, 8 are left"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "something behind '}'"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "expected ',' or '}'"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (2,)}", "elements of type '<f16' are not read"},
    {"{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}", "elements of type 'f4' are not read"},
    {"{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}", "elements of type '|f4' are not read"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", "elements of type '|O' are not read"},
    {"{'descr': '<U12', 'fortran_order': False, 'shape': (2,)}", "elements of type '<U12' are not read"},
    {"{'descr': '', 'fortran_order': False, 'shape': (2,)}", "elements of type '' are not read"},
    {"{'descr': '<f400000000000000000000000000000000000000', 'fortran_order': False, 'shape': (2,)}", "are not read"},
    {"{'descr': [('x', '<f4'), ('y', '<f4')], 'fortran_order': False, 'shape': (2,)}", "records of several fields"},
    {"{'descr': 4, 'fortran_order': False, 'shape': (2,)}", "expected a string"},
    {"{'descr", "a string does not end"},
};

START_TEST(refused) {
    make(1 + (unsigned)_i % 3, refusals[_i].header, "01234567", 8);
    check_refused(refusals[_i].words);
}
END_TEST

// Every beginning of a good file is an error, and reads nothing behind its end.
START_TEST(cut_off) {
    make((unsigned)_i, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n", "012345678901234567890123", 24);
    for (size_t whole = size, n = 0; n < whole; n++) {
        char *exact = malloc(n + !n);
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, file, n);
        lf_npy array;
        lf_status s = lf_npy_parse(a, "in.npy", exact, n, &array);
        ck_assert_msg(s != NULL, "%zu of %zu bytes are accepted", n, whole);
        lf_status_destroy(s);
        free(exact);
    }
    make(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n", "", 0);
    check_refused("cut off: the shape needs 24 bytes of elements, 0 are left");
    file[6] = 4;
    check_refused("version 4.0; expected 1.0, 2.0 or 3.0");
    file[6] = 1, file[7] = 1;
    check_refused("version 1.1; expected");
    file[7] = 0, file[9] = 9;
    check_refused("cut off: a header of");
    memcpy(file, "PK\3\4", 4);
    check_refused("not an .npy file");
}
END_TEST

START_TEST(written) {
    static const int64_t shape[3] = {3, 1, 2};
    const struct descr *d = &descrs[_i];
    char path[] = "/tmp/test_npy_XXXXXX", data[96];
    if (!d->dtype) return;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 37);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    for (unsigned rank = 0; rank <= 3; rank++) {
        lf_npy array;
        lf_status s = lf_npy_write(a, path, d->dtype, rank, shape, data);
        ck_assert_msg(!s, "%s", lf_status_message(s));
        s = lf_npy_read(a, path, &array);
        ck_assert_msg(!s, "%s", lf_status_message(s));
        ck_assert_int_eq(array.dtype, d->dtype);
        ck_assert_uint_eq(array.rank, rank);
        ck_assert_mem_eq(array.shape, shape, rank * sizeof *shape);
        ck_assert_mem_eq(array.data, data, array.bytes);
        lf_npy_finish(a, &array);
    }
    remove(path);
}
END_TEST

START_TEST(files) {
    lf_npy array;
    lf_status s = lf_npy_read(a, "/nonexistent/x.npy", &array);
    ck_assert_int_eq(lf_status_code(s), LF_IO_ERROR);
    ck_assert_str_eq(lf_status_message(s), "/nonexistent/x.npy: cannot be opened: No such file or directory");
    lf_status_destroy(s);
    s = lf_npy_read(a, "/tmp", &array);
    ck_assert_int_eq(lf_status_code(s), LF_IO_ERROR);
    lf_status_destroy(s);
    s = lf_npy_write(a, "/nonexistent/x.npy", LF_F32, 0, NULL, "0123");
    ck_assert_str_eq(lf_status_message(s), "/nonexistent/x.npy: cannot be written: No such file or directory");
    lf_status_destroy(s);
    // bf16 is written as its bits.
    int64_t one = 1;
    char path[] = "/tmp/test_npy_XXXXXX";
    ck_assert_int_ge(mkstemp(path), 0);
    s = lf_npy_write(a, path, LF_BF16, 1, &one, "\x80\x3f");
    ck_assert_ptr_null(s);
    ck_assert_ptr_null(lf_npy_read(a, path, &array));
    ck_assert_int_eq(array.dtype, LF_U16);
    lf_npy_finish(a, &array);
    remove(path);
    // A file that NumPy wrote.
    s = lf_npy_read(a, "docs/examples/photo.npy", &array);
    ck_assert_msg(!s, "%s", lf_status_message(s));
    ck_assert(array.dtype == LF_U8 && array.rank == 3 && array.bytes == 64 * 64 * 3);
    lf_npy_finish(a, &array);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("npy");
    TCase *t = tcase_create("npy");
    tcase_add_loop_test(t, versions, 1, 4);
    tcase_add_loop_test(t, dtypes, 0, sizeof descrs / sizeof *descrs);
    tcase_add_test(t, big_endian);
    tcase_add_test(t, orders_and_shapes);
    tcase_add_loop_test(t, refused, 0, sizeof refusals / sizeof *refusals);
    tcase_add_loop_test(t, cut_off, 1, 4);
    tcase_add_loop_test(t, written, 0, sizeof descrs / sizeof *descrs);
    tcase_add_test(t, files);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
