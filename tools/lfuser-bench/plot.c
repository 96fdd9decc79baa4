// --plot: a bar a workload, against the line of the copy; ticks for the goal and for each peer.
#include "bench.h"

enum { LEFT = 170, WIDTH = 560, ROW = 22, TOP = 64 };

static double place(double percent) { return LEFT + (percent > 115 ? 115 : percent) / 115 * WIDTH; }

static void put_text(FILE *to, double x, double y, const char *anchor, const char *text) {
    fprintf(to, "<text x='%.1f' y='%.1f' text-anchor='%s'>", x, y, anchor);
    for (; *text; text++) {
        if (*text == '<' || *text == '&')
            fprintf(to, "&#%d;", *text);
        else
            fputc(*text, to);
    }
    fprintf(to, "</text>\n");
}

static void put_row(const bench_report *r, const bench_case *c, double y, FILE *to) {
    static const char *const colours[] = {"#999", "#d95f02", "#7570b3"};
    double percent = bench_percent(&c->result), ms;
    char text[64];
    put_text(to, LEFT - 8, y + ROW - 8, "end", c->name);
    fprintf(to, "<rect x='%d' y='%.1f' width='%.1f' height='%d' fill='%s'/>\n", LEFT, y + 3, place(percent) - LEFT, ROW - 6,
            !c->result.verdict.ok ? "#c00"
            : percent >= c->goal  ? "#2a7f62"
                                  : "#7fb8a4");
    if (c->goal > 0)
        fprintf(to, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#000' stroke-width='2'/>\n", place(c->goal),
                y + 3, place(c->goal), y + ROW - 3);
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        if (bench_peer(r, c, i, &ms) && ms > 0)
            fprintf(to, "<circle cx='%.1f' cy='%.1f' r='3.5' fill='%s'/>\n", place(100 * c->result.copy_ms / ms),
                    y + ROW / 2.0, colours[i]);
    snprintf(text, sizeof text, "%.1f %%, %.0f GB/s", percent, (double)c->result.bytes / c->result.ms / 1e6);
    put_text(to, LEFT + WIDTH + 8, y + ROW - 8, "start", c->result.verdict.ok ? text : "wrong result");
}

void bench_report_plot(const bench_report *r, const bench_case *cases, size_t n, FILE *to) {
    double height = TOP + (double)n * ROW + 16;
    char title[256];
    fprintf(to,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%.0f' font-family='sans-serif' font-size='12'>\n",
            LEFT + WIDTH + 150, height);
    fprintf(to, "<rect width='100%%' height='100%%' fill='#fff'/>\n");
    snprintf(title, sizeof title, "%s, math=%s: share of a copy of as many bytes", r->device, r->math);
    put_text(to, LEFT, 20, "start", title);
    put_text(to, LEFT, 38, "start",
             r->peers ? "black tick: goal; dots: PyTorch eager (grey), Inductor (orange), XLA (violet)"
                      : "black tick: goal");
    for (int percent = 0; percent <= 100; percent += 25) {
        char text[16];
        snprintf(text, sizeof text, "%d %%", percent);
        fprintf(to, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%.0f' stroke='%s'/>\n", place(percent), TOP, place(percent),
                height - 16, percent == 100 ? "#c00" : "#ddd");
        put_text(to, place(percent), TOP - 6, "middle", text);
    }
    for (size_t i = 0; i < n; i++) put_row(r, &cases[i], TOP + (double)i * ROW, to);
    fprintf(to, "</svg>\n");
}
