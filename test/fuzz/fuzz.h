// What the fuzzers of bytes share. A program fuzz_<x>.c defines lf_fuzz_target; driver.c runs it in one of two ways:
//   built for libFuzzer (-DLFUSER_SANITIZE=fuzzer)     fuzz_x -max_total_time=120 test/fuzz/corpus/x
//   otherwise     fuzz_x [--seconds=N] [--seed=N] [FILE|FOLDER…]   replays the files, then runs mutations of them for N seconds
// An input that crashes the second one is left in $TMPDIR/fuzz_x.<suffix>.
#ifndef LF_TEST_FUZZ_H
#define LF_TEST_FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition, ...)                                                                                               \
    do {                                                                                                                    \
        if (!(condition)) {                                                                                                 \
            fprintf(stderr, __VA_ARGS__);                                                                                   \
            abort();                                                                                                        \
        }                                                                                                                   \
    } while (0)

enum { LF_FUZZ_MOST_BYTES = 1 << 16 };
typedef struct lf_fuzz_input {
    uint8_t data[LF_FUZZ_MOST_BYTES];
    size_t size;
} lf_fuzz_input;

typedef struct lf_fuzz_description {
    const char *name, *suffix, *corpus;   // the corpus is replayed when no file is named
    bool (*one)(const uint8_t *, size_t); // one input; whether it was accepted. Aborts on a fault
    const char *const *tokens;            // texts that mean something to it; NULL-terminated
    size_t head;                          // half of the mutations are within the first bytes; 0: anywhere
    size_t fresh;                         // half of the inputs are random bytes, at most so many; 0: none
    void (*mend)(lf_fuzz_input *in);      // makes lengths and hashes fit again, half of the time; NULL: there are none
    void (*report)(void);                 // a line of its own at the end; or NULL
} lf_fuzz_description;
extern const lf_fuzz_description lf_fuzz_target;

// A random number below `below`, the same sequence for the same --seed.
uint32_t lf_fuzz_random(uint32_t below);
#endif
