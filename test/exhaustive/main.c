// Unary ops and casts on every 16-bit input and on slices of the wider dtypes; see docs/accuracy.md.
//
// exhaustive [--device=cpu|cuda[:N]] [--full] [--slice=N] [--f64=N] [--only=NAME,…]
//   Without --full: all ops and casts on the device, bit for bit against the interpreter, and within what is permitted of the true
//   value (MPFR has the last word). --slice: one f32 of N (default 64). --f64: f64 inputs that MPFR judges, a function.
//   --full: all 2^32 f32 inputs of each unary op on the device, bit for bit against the CPU device.
//   --only: these ops; "cast" and "sum" (fast mode) are names too.
// Prints a line a function, then "N passed, N failed"; exit status 1 when any failed, 77 when there is no such device.
#include "test/exhaustive/exhaustive.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool option(const char *arg, const char *name, const char **out_value) {
    size_t n = strlen(name);
    if (strncmp(arg, name, n) || arg[n] != '=') return false;
    *out_value = arg + n + 1;
    return true;
}

int main(int argc, char **argv) {
    options o = {
        .device = getenv("LFUSER_TEST_DEVICE"), .slice = 64, .fast_slice = 4096, .f64_exact = 2000, .f64_bits = 1 << 18};
    for (int i = 1; i < argc; i++) {
        const char *value;
        if (option(argv[i], "--device", &value))
            o.device = value;
        else if (option(argv[i], "--only", &value))
            o.only = value;
        else if (option(argv[i], "--slice", &value))
            o.slice = strtoull(value, NULL, 10);
        else if (option(argv[i], "--f64", &value))
            o.f64_exact = strtoull(value, NULL, 10);
        else if (!strcmp(argv[i], "--full"))
            o.full = true;
        else
            return fprintf(stderr, "usage: %s [--device=cpu|cuda[:N]] [--full] [--slice=N] [--f64=N] [--only=NAME,...]\n",
                           argv[0]),
                   2;
    }
    if (!o.device || !*o.device) o.device = "cpu";
    if (!o.slice) o.slice = 1;
    if (o.f64_bits < o.f64_exact) o.f64_bits = o.f64_exact;
    machine m;
    int status = machine_open(&m, o.device);
    if (status) return status;
    double begin = seconds();
    printf("%s\n", lfuser_device_description(m.device));
    if (o.full) {
        sweep_all(&m, &o);
    } else {
        check_floats(&m, &o);
        check_integers(&m, &o);
        check_casts(&m, &o);
        check_fast(&m, &o);
    }
    machine_close(&m);
    printf("%.1f s\n%d passed, %d failed\n", seconds() - begin, passed, failed);
    return failed != 0;
}
