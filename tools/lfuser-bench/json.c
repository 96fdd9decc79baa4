// As much of JSON as --compare and --peers need: finding a number at a path. Files come from this tool, and from scripts.
#include "bench.h"
#include <stdlib.h>
#include <string.h>

static const char *skip_space(const char *p) { return p + strspn(p, " \t\r\n"); }

// Behind the string that begins at p.
static const char *skip_string(const char *p) {
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1]) p++;
    return *p ? p + 1 : p;
}

// Behind the value that begins at p: brackets are counted, so that depth needs no stack.
static const char *skip_value(const char *p) {
    int depth = 0;
    do {
        p = skip_space(p);
        if (!*p) return p;
        if (*p == '"')
            p = skip_string(p);
        else if (*p == '{' || *p == '[')
            depth++, p++;
        else if (*p == '}' || *p == ']')
            depth--, p++;
        else if (*p == ',' || *p == ':')
            p++;
        else
            p += strcspn(p, ",:]}\" \t\r\n[{");
    } while (depth > 0);
    return p;
}

static const char *member(const char *p, const char *name) {
    size_t n = strlen(name);
    p = skip_space(p);
    if (*p++ != '{') return NULL;
    for (p = skip_space(p); *p == '"'; p = skip_space(p)) {
        const char *end = skip_string(p);
        bool found = (size_t)(end - p) == n + 2 && !memcmp(p + 1, name, n);
        p = skip_space(end);
        if (*p++ != ':') return NULL;
        p = skip_space(p);
        if (found) return p;
        p = skip_space(skip_value(p));
        if (*p == ',') p++;
    }
    return NULL;
}

bool bench_json_number(const char *text, const char *const *path, size_t n, double *out) {
    char *end;
    for (size_t i = 0; text && i < n; i++) text = member(text, path[i]);
    if (!text) return false;
    *out = strtod(text, &end);
    return end != text;
}
