// Fuzzing of the text form. What is parsed must print, and print the same after being parsed again; what is not parsed must have
// a message that begins with a place. Anything else is a crash.
//
// Two ways to run it:
//   clang -fsanitize=fuzzer,address -DLF_LIBFUZZER …, then ./fuzz_parse test/fuzz/corpus/parse
//   fuzz_parse [--seconds=N] [--seed=N] [FILE|FOLDER…]   replays the files, then runs simple mutations of them for N seconds
// An input that crashes the second one is left in $TMPDIR/fuzz_parse.lf.
#include "parse/parse.h"
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

static char *print(const lf_graph *g, lf_print_form form) {
    char *text;
    lf_status status = lf_graph_print(g, form, &text);
    CHECK(!status, "print: %s\n", lf_status_message(status));
    return text;
}

static void check_message(lf_status status) {
    const char *message = lf_status_message(status), *place = strstr(message, "in.lf:");
    CHECK(place == message && strstr(message, ": error: ") && strchr(message, '^'), "odd message: %s\n", message);
    CHECK(lf_status_code(status) != LF_INTERNAL, "internal error: %s\n", message);
    lf_status_destroy(status);
}

static void check_graph(const lf_graph *g) {
    const lf_allocator *a = &lf_system_allocator;
    lf_status status = lf_graph_verify(g);
    CHECK(!status, "verify: %s\n", lf_status_message(status));
    lf_free(a, print(g, LF_PRINT_FULL));
    char *first = print(g, LF_PRINT_SOURCE);
    lf_graph **again;
    size_t n;
    status = lf_parse(a, "again.lf", first, strlen(first), false, &again, &n);
    CHECK(!status && n == 1, "what was printed does not parse: %s\n%s\n", lf_status_message(status), first);
    char *second = print(again[0], LF_PRINT_SOURCE);
    CHECK(!strcmp(first, second), "printed differently:\n%s\n%s\n", first, second);
    lf_parse_release(a, again, n);
    lf_free(a, first);
    lf_free(a, second);
}

static int one_input(const uint8_t *data, size_t size, bool *out_accepted) {
    lf_graph **graphs;
    size_t n;
    lf_status status = lf_parse(&lf_system_allocator, "in.lf", (const char *)data, size, false, &graphs, &n);
    *out_accepted = !status;
    if (status) {
        CHECK(!graphs && !n, "graphs beside an error\n");
        check_message(status);
        return 0;
    }
    CHECK(n > 0, "no graphs and no error\n");
    for (size_t i = 0; i < n; i++) check_graph(graphs[i]);
    lf_parse_release(&lf_system_allocator, graphs, n);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bool accepted;
    return one_input(data, size, &accepted);
}

#ifndef LF_LIBFUZZER
// ---- replay and simple mutations ----------------------------------------------------------------------------------------

enum { MAX_SEEDS = 1024, MOST_BYTES = 1 << 16 };
typedef struct seed_input {
    uint8_t *data;
    size_t size;
} seed_input;
static seed_input seeds[MAX_SEEDS];
static size_t n_seeds;
static uint8_t input[MOST_BYTES];
static size_t input_size;
static uint64_t random_state;
static char crash_path[512];

static uint32_t next_random(uint32_t below) {
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t z = (random_state ^ random_state >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static void on_crash(int signal_number) {
    int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0) {
        if (write(fd, input, input_size) == (ssize_t)input_size) close(fd);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void add_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || n_seeds == MAX_SEEDS) {
        fprintf(stderr, "cannot take %s\n", path);
        exit(2);
    }
    seed_input *s = &seeds[n_seeds++];
    s->data = malloc(MOST_BYTES);
    s->size = s->data ? fread(s->data, 1, MOST_BYTES, f) : 0;
    fclose(f);
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void add_path(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) {
        add_file(path);
        return;
    }
    char *names[MAX_SEEDS];
    size_t n = 0;
    for (struct dirent *e; n < MAX_SEEDS && (e = readdir(folder));)
        if (e->d_name[0] != '.' && asprintf(&names[n], "%s/%s", path, e->d_name) > 0) n++;
    closedir(folder);
    qsort(names, n, sizeof *names, compare_names); // the same run for the same seed
    for (size_t i = 0; i < n; i++) {
        add_file(names[i]);
        free(names[i]);
    }
}

static void replace(size_t at, size_t drop, const void *bytes, size_t n) {
    if (input_size - drop + n > MOST_BYTES) return;
    memmove(input + at + n, input + at + drop, input_size - at - drop);
    memcpy(input + at, bytes, n);
    input_size = input_size - drop + n;
}

static void mutate(void) {
    static const char *const tokens[] = {"%",
                                         "@",
                                         "[",
                                         "]",
                                         "(",
                                         ")",
                                         "{",
                                         "}",
                                         ",",
                                         ":",
                                         "=",
                                         "?",
                                         "\"",
                                         "\\",
                                         "//",
                                         "\n",
                                         "\r\n",
                                         "-",
                                         "->",
                                         "0",
                                         "1",
                                         "-1",
                                         "2",
                                         "%0",
                                         "%1",
                                         "%x",
                                         "none",
                                         "true",
                                         "inf",
                                         "nan",
                                         "1e400",
                                         "0x1p-1074",
                                         "18446744073709551616",
                                         "fusion @f(",
                                         "return ",
                                         "into ",
                                         "assert ",
                                         "f32[?]",
                                         "i64",
                                         "bf16",
                                         "@host",
                                         "add ",
                                         "max ",
                                         "sum ",
                                         "reshape ",
                                         "axes=",
                                         "axis=",
                                         "dtype=",
                                         "keepdim=true",
                                         "\xef\xbb\xbf",
                                         "\xff",
                                         "\xc3\xa9",
                                         "\t",
                                         "sort ",
                                         "tensor ",
                                         "full "};
    for (uint32_t k = next_random(4) ? 1 : 1 + next_random(8); k; k--) {
        size_t at = next_random((uint32_t)input_size + 1), left = input_size - at;
        size_t span = next_random(1u << next_random(7));
        if (span > left) span = left;
        const seed_input *other = &seeds[next_random((uint32_t)n_seeds)];
        const char *token = tokens[next_random(sizeof tokens / sizeof *tokens)];
        uint8_t copy[128];
        switch (next_random(7)) {
        case 0: replace(at, span, "", 0); break;
        case 1: replace(at, 0, token, strlen(token)); break;
        case 2: replace(at, span, token, strlen(token)); break;
        case 3:
            if (left) input[at] ^= (uint8_t)(1u << next_random(8));
            break;
        case 4:
            memcpy(copy, input + at, span);
            replace(next_random((uint32_t)input_size + 1), 0, copy, span);
            break;
        case 5: {
            size_t from = next_random((uint32_t)other->size + 1), n = next_random(200);
            replace(at, span, other->data + from, n < other->size - from ? n : other->size - from);
            break;
        }
        case 6: replace(at, 0, "\0", 1); break;
        }
        if (!next_random(40)) input_size = at; // cut off
    }
}

int main(int argc, char **argv) {
    double seconds = 0;
    random_state = 1;
    bool any = false;
    const char *folder = getenv("TMPDIR");
    snprintf(crash_path, sizeof crash_path, "%s/fuzz_parse.lf", folder ? folder : "/tmp");
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--seconds=", 10))
            seconds = atof(argv[i] + 10);
        else if (!strncmp(argv[i], "--seed=", 7))
            random_state = strtoull(argv[i] + 7, NULL, 10);
        else
            add_path(argv[i]), any = true;
    }
    if (!any) add_path("test/fuzz/corpus/parse");
    size_t runs = 0, good = 0;
    bool accepted;
    for (size_t i = 0; i < n_seeds; i++, runs++) {
        memcpy(input, seeds[i].data, input_size = seeds[i].size);
        one_input(input, input_size, &accepted);
        good += accepted;
    }
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (; seconds > 0 && n_seeds; runs++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((double)(now.tv_sec - start.tv_sec) + 1e-9 * (double)(now.tv_nsec - start.tv_nsec) > seconds) break;
        const seed_input *s = &seeds[next_random((uint32_t)n_seeds)];
        memcpy(input, s->data, input_size = s->size);
        mutate();
        one_input(input, input_size, &accepted);
        good += accepted;
    }
    printf("fuzz_parse: %zu inputs, %zu accepted, %zu seeds\n", runs, good, n_seeds);
    for (size_t i = 0; i < n_seeds; i++) free(seeds[i].data);
    return n_seeds ? 0 : 2;
}
#endif
