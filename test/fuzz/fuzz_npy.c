// Fuzzing of the .npy reader: whatever the bytes, an array whose elements are there, or an error that names the file.
//
// Two ways to run it:
//   clang -fsanitize=fuzzer,address -DLF_LIBFUZZER …, then ./fuzz_npy test/fuzz/corpus/npy
//   fuzz_npy [--seconds=N] [--seed=N] [FILE|FOLDER…]   replays the files, then runs simple mutations of them for N seconds
// An input that crashes the second one is left in $TMPDIR/fuzz_npy.npy.
#include "tools/common/npy.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition, ...)                                                                                               \
    do {                                                                                                                    \
        if (!(condition)) {                                                                                                 \
            fprintf(stderr, __VA_ARGS__);                                                                                   \
            abort();                                                                                                        \
        }                                                                                                                   \
    } while (0)

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    one_input(data, size);
    return 0;
}

#ifndef LF_LIBFUZZER
enum { MOST_BYTES = 1 << 14, MAX_SEEDS = 64 };
static struct {
    uint8_t data[MOST_BYTES];
    size_t size;
} seeds[MAX_SEEDS], input;
static size_t n_seeds;
static uint64_t random_state = 1;
static char crash_path[512];

static uint32_t next_random(uint32_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % below);
}

static void on_crash(int signal_number) {
    int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, input.data, input.size) == (ssize_t)input.size) close(fd);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static int compare_names(const void *x, const void *y) { return strcmp(*(char *const *)x, *(char *const *)y); }

static void add_path(const char *path) {
    char *names[MAX_SEEDS];
    size_t n = 0;
    DIR *folder = opendir(path);
    if (folder) {
        for (struct dirent *e; n < MAX_SEEDS && (e = readdir(folder));)
            if (e->d_name[0] != '.' && asprintf(&names[n], "%s/%s", path, e->d_name) > 0) n++;
        closedir(folder);
    } else if (asprintf(&names[0], "%s", path) > 0) {
        n = 1;
    }
    qsort(names, n, sizeof *names, compare_names); // the same run for the same seed
    for (size_t i = 0; i < n; i++) {
        FILE *f = fopen(names[i], "rb");
        if (!f || n_seeds == MAX_SEEDS) {
            fprintf(stderr, "cannot take %s\n", names[i]);
            exit(2);
        }
        seeds[n_seeds].size = fread(seeds[n_seeds].data, 1, MOST_BYTES, f);
        n_seeds++;
        fclose(f);
        free(names[i]);
    }
}

static void replace(size_t at, size_t drop, const void *bytes, size_t n) {
    if (input.size - drop + n > MOST_BYTES) return;
    memmove(input.data + at + n, input.data + at + drop, input.size - at - drop);
    memcpy(input.data + at, bytes, n);
    input.size = input.size - drop + n;
}

static void mutate(void) {
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
                                         " "};
    for (uint32_t k = 1 + next_random(4); k; k--) {
        size_t at = next_random((uint32_t)input.size + 1), left = input.size - at, span = next_random(8);
        if (next_random(2) && at > 96) at %= 96, left = input.size - at; // the header, most of the time
        if (span > left) span = left;
        const char *token = tokens[next_random(sizeof tokens / sizeof *tokens)];
        uint8_t byte = (uint8_t)next_random(256);
        switch (next_random(5)) {
        case 0: replace(at, span, "", 0); break;
        case 1: replace(at, 0, token, strlen(token)); break;
        case 2: replace(at, span, token, strlen(token)); break;
        case 3: replace(at, left ? 1 : 0, &byte, 1); break;
        case 4:
            if (!next_random(4)) input.size = at; // cut off
            break;
        }
        // Half of the time the length is made to fit again, so that the text is what is tried.
        uint8_t *close = next_random(2) && input.size > 12 ? memchr(input.data + 10, '}', input.size - 10) : NULL;
        if (close && input.data[6] == 1) {
            size_t length = (size_t)(close + 1 - input.data) - 10;
            input.data[8] = (uint8_t)length;
            input.data[9] = (uint8_t)(length >> 8);
        }
    }
}

int main(int argc, char **argv) {
    double seconds = 0;
    const char *folder = getenv("TMPDIR");
    snprintf(crash_path, sizeof crash_path, "%s/fuzz_npy.npy", folder ? folder : "/tmp");
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--seconds=", 10))
            seconds = atof(argv[i] + 10);
        else if (!strncmp(argv[i], "--seed=", 7))
            random_state = strtoull(argv[i] + 7, NULL, 10);
        else
            add_path(argv[i]);
    }
    if (!n_seeds) add_path("test/fuzz/corpus/npy");
    size_t runs = 0, good = 0;
    for (size_t i = 0; i < n_seeds; i++, runs++) {
        input = seeds[i];
        good += one_input(input.data, input.size);
    }
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (now = start;
         n_seeds && (double)(now.tv_sec - start.tv_sec) + 1e-9 * (double)(now.tv_nsec - start.tv_nsec) < seconds; runs++) {
        size_t i = next_random((uint32_t)n_seeds);
        memcpy(input.data, seeds[i].data, input.size = seeds[i].size);
        mutate();
        good += one_input(input.data, input.size);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    printf("fuzz_npy: %zu inputs, %zu accepted, %zu seeds\n", runs, good, n_seeds);
    return n_seeds ? 0 : 2;
}
#endif
