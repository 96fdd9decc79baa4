// Formatting of log messages into a bounded buffer: logging needs no memory and cannot fail.
#include "base/log.h"
#include <stdarg.h>
#include <stdio.h>

void lf_log_write(const lf_log *log, lf_log_level level, const char *format, ...) {
    if (!log || !log->write || level < log->least) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log->write(log->self, level, text);
}
