"""The Python face: the cache, compiling ahead, never waiting. Arguments: the folder of the package, a device, an empty folder."""
import sys

sys.path.insert(0, sys.argv[1])
import lfuser

TEXT = "fusion @f(%x: f32[?], %y: f32[?]) { %z = mul %x, %y return %z }"
x = lfuser.Tensor.of("f32", [4], [1.0, 5.0, 2.0, 3.0])
for _ in range(2):
    context = lfuser.Context(cache=sys.argv[3])
    device = context.device(sys.argv[2])
    stream = device.stream()
    program = context.parse(TEXT).compile(device)
    print("would load and make", *program.would_compile(stream, [x, x]))
    program.prepare(stream, [x, x])
    print("would load and make", *program.would_compile(stream, [x, x]))
    print(program.run(stream, [x, x])[0].tolist(), "compiles", context.cache_stats()["compiles"])
    program.prepare()
    patient = context.parse("fusion @g(%x: f32[?]) { %y = sub %x, 1.0 return %y }").compile(device, never_wait=True)
    print(patient.run(stream, [x])[0].tolist())
    del program, patient, stream, device
context.cache_clear()
print("entries", context.cache_stats()["entries"])
