// The table, and the same as JSON.
#include "bench.h"
#include <string.h>

static double rate(uint64_t bytes, double ms) { return ms > 0 ? (double)bytes / ms / 1e6 : 0; }

double bench_percent(const bench_result *r) { return r->ms > 0 ? 100 * r->copy_ms / r->ms : 0; }

// The most of the kernels.
static bench_kernel most(const bench_result *r) {
    bench_kernel k = {0};
    for (size_t i = 0; i < r->n_kernels; i++) {
        if (r->kernels[i].registers > k.registers) k.registers = r->kernels[i].registers;
        if (r->kernels[i].local_bytes > k.local_bytes) k.local_bytes = r->kernels[i].local_bytes;
    }
    return k;
}

// Those that are timed by the clock on the wall run many times in a row, and are compared with what we take so.
static const struct {
    const char *name;
    bool in_a_row;
} peers[] = {{"eager_ms", false}, {"inductor_ms", false}, {"xla_ms", true}};
enum { N_PEERS = sizeof peers / sizeof *peers };

bool bench_peer(const bench_report *r, const bench_case *c, size_t peer, double *out_ms) {
    return r->peers && bench_json_number(r->peers, (const char *[]){"w", c->name, peers[peer].name}, 3, out_ms);
}

void bench_report_head(const bench_report *r) {
    bool dense = !strcmp(r->layout, bench_layout_name(BENCH_DENSE));
    printf("%s, math=%s, median of %d%s%s%s\n", r->device, r->math, r->runs, dense ? "" : ", inputs ",
           dense ? "" : r->layout, r->scale > 1 ? ", smaller shapes" : "");
    printf("%-20s %9s %9s %7s %7s %6s %5s %7s %4s %5s %8s %9s", "workload", "ms", "in a row", "GB/s", "copy", "%", "goal",
           "kernels", "regs", "local", "first ms", "error");
    if (r->peers) printf(" %8s %8s %8s %6s", "eager", "inductor", "xla", "best/us");
    if (r->old) printf(" %9s %7s", "before", "change");
    printf("\n");
}

bool bench_report_case(const bench_report *r, const bench_case *c) {
    enum { SLOWER = 3 }; // per cent
    const bench_result *x = &c->result;
    bench_kernel k = most(x);
    bool bad = !x->verdict.ok;
    char goal[16] = "";
    if (c->goal > 0) snprintf(goal, sizeof goal, "%.0f%c", c->goal, bench_percent(x) >= c->goal ? ' ' : '-');
    printf("%-20s %9.4f %9.4f %7.0f %7.0f %6.1f %5s %7zu %4u %5u %8.1f %9.1e", c->name, x->ms, x->in_a_row_ms,
           rate(x->bytes, x->ms), rate(x->bytes, x->copy_ms), bench_percent(x), goal, x->n_kernels, k.registers,
           k.local_bytes, x->first_ms, x->verdict.relative);
    if (r->peers) {
        double ms, best = 0;
        for (size_t i = 0; i < N_PEERS; i++) {
            bool known = bench_peer(r, c, i, &ms);
            if (known)
                printf(" %8.4f", ms);
            else
                printf(" %8s", "");
            if (known) ms /= peers[i].in_a_row ? x->in_a_row_ms : x->ms;
            if (known && (!best || ms < best)) best = ms;
        }
        if (best > 0)
            printf(" %6.2fx", best);
        else
            printf(" %7s", "");
    }
    double before;
    if (r->old && bench_json_number(r->old, (const char *[]){"workloads", c->name, "ms"}, 3, &before) && before > 0) {
        double change = 100 * (x->ms / before - 1);
        printf(" %9.4f %+6.1f%%%s", before, change, change > SLOWER ? " SLOWER" : change < -SLOWER ? " faster" : "");
        bad |= change > SLOWER;
    }
    printf("%s\n", x->verdict.ok ? "" : "  WRONG");
    if (x->verdict.what[0] && x->verdict.ok)
        printf("    not checked: %s\n", x->verdict.what);
    else if (x->verdict.what[0])
        printf("    %llu of %llu elements are wrong: %s\n", (unsigned long long)x->verdict.wrong,
               (unsigned long long)x->verdict.looked_at, x->verdict.what);
    fflush(stdout);
    return bad;
}

static void put_string(FILE *to, const char *text) {
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', to);
        if ((unsigned char)*text < 32)
            fprintf(to, "\\u%04x", *text);
        else
            fputc(*text, to);
    }
    fputc('"', to);
}

void bench_report_json(const bench_report *r, const bench_case *cases, size_t n, FILE *to) {
    fprintf(to, "{\"device\": ");
    put_string(to, r->device);
    fprintf(to, ", \"math\": \"%s\", \"layout\": \"%s\", \"runs\": %d, \"scale\": %lld, \"workloads\": {", r->math,
            r->layout, r->runs, (long long)r->scale);
    for (size_t i = 0; i < n; i++) {
        const bench_result *x = &cases[i].result;
        fprintf(to, "%s\n ", i ? "," : "");
        put_string(to, cases[i].name);
        fprintf(to,
                ": {\"ms\": %.5f, \"least_ms\": %.5f, \"in_a_row_ms\": %.5f, \"gbs\": %.1f, \"bytes\": %llu, \"copy_ms\": "
                "%.5f, \"copy_gbs\": "
                "%.1f, \"percent\": %.2f, ",
                x->ms, x->least_ms, x->in_a_row_ms, rate(x->bytes, x->ms), (unsigned long long)x->bytes, x->copy_ms,
                rate(x->bytes, x->copy_ms), bench_percent(x));
        if (cases[i].goal > 0) fprintf(to, "\"goal\": %.0f, ", cases[i].goal);
        fprintf(to, "\"first_ms\": %.2f, \"ok\": %s, \"relative_error\": %.3e, \"checked_elements\": %llu, \"kernels\": [",
                x->first_ms, x->verdict.ok ? "true" : "false", x->verdict.relative,
                (unsigned long long)x->verdict.looked_at);
        for (size_t k = 0; k < x->n_kernels; k++) {
            const bench_kernel *b = &x->kernels[k];
            fprintf(to, "%s{\"name\": ", k ? ", " : "");
            put_string(to, b->name);
            fprintf(to, ", \"vector\": %u, \"wide\": %s, \"registers\": %u, \"local_bytes\": %u, \"shared_bytes\": %u}",
                    b->vector, b->wide ? "true" : "false", b->registers, b->local_bytes, b->shared_bytes);
        }
        fprintf(to, "]}");
    }
    fprintf(to, "\n}}\n");
}
