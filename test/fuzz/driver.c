// Runs a fuzz target: see fuzz.h.
#include "test/fuzz/fuzz.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef LF_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lf_fuzz_target.one(data, size);
    return 0;
}
#else
enum { MAX_SEEDS = 1024 };
typedef struct seed_input {
    uint8_t *data; // owned
    size_t size;
} seed_input;
static seed_input seeds[MAX_SEEDS];
static size_t n_seeds;
static lf_fuzz_input input;
static uint64_t random_state = 1;
static char crash_path[512];

uint32_t lf_fuzz_random(uint32_t below) {
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t z = (random_state ^ random_state >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static void on_crash(int signal_number) {
    int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, input.data, input.size) == (ssize_t)input.size) close(fd);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

// ---- the corpus

static void add_file(const char *path) {
    FILE *f = fopen(path, "rb");
    seed_input *s = &seeds[n_seeds];
    if (!f || n_seeds == MAX_SEEDS || !(s->data = malloc(LF_FUZZ_MOST_BYTES))) {
        fprintf(stderr, "cannot take %s\n", path);
        exit(2);
    }
    s->size = fread(s->data, 1, LF_FUZZ_MOST_BYTES, f);
    n_seeds++;
    fclose(f);
}

static int compare_names(const void *x, const void *y) { return strcmp(*(char *const *)x, *(char *const *)y); }

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

// ---- mutations

static void replace(size_t at, size_t drop, const void *bytes, size_t n) {
    if (input.size - drop + n > sizeof input.data) return;
    memmove(input.data + at + n, input.data + at + drop, input.size - at - drop);
    memcpy(input.data + at, bytes, n);
    input.size = input.size - drop + n;
}

static void mutate_once(size_t n_tokens) {
    size_t at = lf_fuzz_random((uint32_t)input.size + 1), span = lf_fuzz_random(1u << lf_fuzz_random(7));
    if (lf_fuzz_target.head && lf_fuzz_random(2)) at %= lf_fuzz_target.head + 1;
    if (at > input.size) at = input.size;
    size_t left = input.size - at;
    if (span > left) span = left;
    const seed_input *other = &seeds[lf_fuzz_random((uint32_t)n_seeds)];
    const char *token = n_tokens ? lf_fuzz_target.tokens[lf_fuzz_random((uint32_t)n_tokens)] : "";
    uint8_t copy[128], any = (uint8_t)lf_fuzz_random(256);
    switch (lf_fuzz_random(8)) {
    case 0: replace(at, span, "", 0); break;
    case 1: replace(at, 0, token, strlen(token)); break;
    case 2: replace(at, span, token, strlen(token)); break;
    case 3:
        if (left) input.data[at] ^= (uint8_t)(1u << any % 8);
        break;
    case 4:
        memcpy(copy, input.data + at, span);
        replace(lf_fuzz_random((uint32_t)input.size + 1), 0, copy, span);
        break;
    case 5: {
        size_t from = lf_fuzz_random((uint32_t)other->size + 1), n = lf_fuzz_random(200);
        replace(at, span, other->data + from, n < other->size - from ? n : other->size - from);
        break;
    }
    case 6: replace(at, 0, "\0", 1); break;
    case 7: replace(at, left ? 1 : 0, &any, 1); break;
    }
    if (!lf_fuzz_random(40)) input.size = lf_fuzz_random((uint32_t)input.size + 1); // cut off
}

static void mutate(void) {
    size_t n_tokens = 0;
    while (lf_fuzz_target.tokens && lf_fuzz_target.tokens[n_tokens]) n_tokens++;
    for (uint32_t k = lf_fuzz_random(4) ? 1 : 1 + lf_fuzz_random(8); k; k--) mutate_once(n_tokens);
    if (lf_fuzz_target.mend && lf_fuzz_random(2)) lf_fuzz_target.mend(&input);
}

// ---- the run

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool run_seed(size_t i) {
    memcpy(input.data, seeds[i].data, input.size = seeds[i].size);
    return lf_fuzz_target.one(input.data, input.size);
}

static bool run_changed(void) {
    const seed_input *s = &seeds[lf_fuzz_random((uint32_t)n_seeds)];
    memcpy(input.data, s->data, input.size = s->size);
    if (lf_fuzz_target.fresh && lf_fuzz_random(2)) {
        input.size = lf_fuzz_random((uint32_t)lf_fuzz_target.fresh + 1);
        for (size_t i = 0; i < input.size; i++) input.data[i] = (uint8_t)lf_fuzz_random(256);
    } else {
        mutate();
    }
    return lf_fuzz_target.one(input.data, input.size);
}

int main(int argc, char **argv) {
    double seconds = 0;
    const char *folder = getenv("TMPDIR");
    snprintf(crash_path, sizeof crash_path, "%s/%s.%s", folder ? folder : "/tmp", lf_fuzz_target.name,
             lf_fuzz_target.suffix);
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
    if (!n_seeds) add_path(lf_fuzz_target.corpus);
    size_t runs = 0, good = 0;
    for (; runs < n_seeds; runs++) good += run_seed(runs);
    size_t seeds_good = good;
    for (double end = seconds_now() + seconds; n_seeds && seconds_now() < end; runs++) good += run_changed();
    printf("%s: %zu inputs, %zu accepted; %zu seeds, %zu accepted\n", lf_fuzz_target.name, runs, good, n_seeds, seeds_good);
    if (lf_fuzz_target.report) lf_fuzz_target.report();
    for (size_t i = 0; i < n_seeds; i++) free(seeds[i].data);
    return n_seeds ? 0 : 2;
}
#endif
