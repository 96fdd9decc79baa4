// What every test of the public API needs: the device it was asked to run on, statuses, a gate that holds a stream up.
//
// The device is that of --device=NAME, else of $LFUSER_TEST_DEVICE, else "cpu". The same programs run on a GPU, so a test touches
// device memory only through lfuser_memory_upload and _download. Each test is a process of its own, with a context of its own.
#ifndef LF_TEST_DEVICE_TEST_H
#define LF_TEST_DEVICE_TEST_H
#include "test/support/build.h"
#include <check.h>
#include <lfuser/lfuser.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_env {
    lfuser_context *context;
    lfuser_device *device;
    lfuser_stream *stream;
    lfuser_dl_device place; // of tensors on the device
} test_env;
extern test_env env;

const char *test_device_name(void);
bool test_on_cuda(void);
const char *test_place_name(void); // of the device in messages about tensors: "cpu", "cuda", "sim"

// Checked fixtures. env_open takes options for the context (NULL: none).
void env_setup(void);
void env_open(const lfuser_context_options *options);
void env_teardown(void);

// Runs the suite on the device asked for. Returns main's exit status: 77, with the reason, when there is no such device here.
int device_test_main(int argc, char **argv, Suite *(*make)(void));
// A test case with the fixtures above, added to the suite.
TCase *device_tcase(Suite *suite, const char *name, double timeout_s);

// ---- statuses

void ok_at(lfuser_status status, const char *what, const char *file, int line);
#define ok(call) ok_at(call, #call, __FILE__, __LINE__)
// The whole message, as a user sees it. "@device" in it stands for the device's DLPack name and number ("cpu:0").
void fails_at(lfuser_status status, lfuser_code code, const char *message, const char *file, int line);
#define fails(call, code, message) fails_at(call, code, message, __FILE__, __LINE__)

// ---- programs

lfuser_fusion *parse(const char *text);
lfuser_executable *compile(const char *text); // for env.device; file "t.lf"
lfuser_executable *compile_for(lfuser_device *device, const char *text);
lfuser_stats stats(void);
void synchronize(void);
lfuser_argument i64_argument(int64_t value);
lfuser_argument f32_argument(float value);
lfuser_argument tensor_argument(const lfuser_tensor *t);

// ---- a gate at which a stream waits

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open, reached;
} gate;
#define GATE {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false}
// Blocks the stream until open_gate, and checks that it does.
void block_stream(lfuser_stream *stream, gate *g);
void open_gate(gate *g);

double now_s(void);
#endif
