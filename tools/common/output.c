#include "tools/common/output.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *lf_output_open(const char *path) { return path ? fopen(path, "wb") : stdout; }

bool lf_output_close(FILE *to, const char *path, bool keep) {
    struct stat st;
    bool file = path && fstat(fileno(to), &st) == 0 && S_ISREG(st.st_mode);
    bool good = fflush(to) == 0 && !ferror(to);
    int error = errno;
    if (to != stdout && fclose(to) != 0 && good) good = false, error = errno;
    if (file && (!good || !keep)) unlink(path);
    errno = error;
    return good;
}
