// liblfuser in another program: parse, compile for a device, run, read the host scalar at once and the tensor when it is there.
//   cc embed.c -Iinclude -Lbuild/lib -llfuser -Wl,-rpath,build/lib && ./a.out
#include <lfuser/lfuser.h>
#include <stdio.h>
#include <string.h>

static const char program[] = "fusion @axpy(%x: f32[?], %y: f32[?], %a: f32) {\n"
                              "  %p = mul %x, %a\n"
                              "  %z = add %p, %y\n"
                              "  %n = numel %z\n"
                              "  return %z, %n\n"
                              "}\n";

// The whole: every call returns NULL or a status with a message. What was made by then is ended by the caller's exit.
static lfuser_status run(lfuser_context *context, const char *device_name) {
    lfuser_status s;
    lfuser_device *device;
    lfuser_stream *stream;
    lfuser_fusion *fusion;
    lfuser_executable *executable;
    if ((s = lfuser_device_open(context, device_name, &device))) return s;
    if ((s = lfuser_stream_create(device, &stream))) return s;
    if ((s = lfuser_fusion_parse(context, "axpy", program, strlen(program), NULL, &fusion))) return s;
    if ((s = lfuser_fusion_compile(fusion, device, NULL, &executable))) return s;

    float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40}, z[4];
    int64_t shape[1] = {4};
    lfuser_dl_device host = {1, 0}; // DLPack's kDLCPU
    lfuser_tensor tx = {.data = x, .device = host, .rank = 1, .dtype = lfuser_dl_dtype_of(LFUSER_F32), .shape = shape},
                  ty = tx, tz = tx;
    ty.data = y, tz.data = z;
    lfuser_argument arguments[3] = {{.kind = LFUSER_TENSOR, .tensor = &tx},
                                    {.kind = LFUSER_TENSOR, .tensor = &ty},
                                    {.kind = LFUSER_SCALAR, .dtype = LFUSER_F32, .value = {.f32 = 0.5f}}};
    lfuser_output outputs[2] = {{.tensor = &tz}}; // our buffer for %z; without one the library allocates
    if ((s = lfuser_run(executable, stream, arguments, 3, outputs, 2, NULL))) return s;
    printf("n = %lld\n", (long long)outputs[1].value.i64); // a host scalar: no synchronisation
    if ((s = lfuser_stream_synchronize(stream))) return s; // the tensor is there in stream order
    printf("z = %g %g %g %g\n", z[0], z[1], z[2], z[3]);

    lfuser_executable_destroy(executable);
    lfuser_fusion_destroy(fusion);
    lfuser_stream_destroy(stream);
    lfuser_device_close(device);
    return NULL;
}

int main(void) {
    lfuser_context *context;
    lfuser_status s = lfuser_context_create(NULL, &context);
    if (!s) s = run(context, "cpu");
    if (s) fprintf(stderr, "%s\n", lfuser_status_message(s));
    int failed = s != NULL;
    lfuser_status_destroy(s);
    lfuser_context_destroy(context);
    return failed;
}
