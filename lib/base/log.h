// Messages to the embedder. The libraries never print.
#ifndef LF_BASE_LOG_H
#define LF_BASE_LOG_H

typedef enum lf_log_level { LF_LOG_DEBUG = 0, LF_LOG_INFO = 1, LF_LOG_WARNING = 2, LF_LOG_ERROR = 3 } lf_log_level;

// `write` may be NULL (nothing is logged); it may be called from any thread.
typedef struct lf_log {
    void *self;
    void (*write)(void *self, lf_log_level level, const char *message);
    lf_log_level least;
} lf_log;

void lf_log_write(const lf_log *log, lf_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
#endif
