"""The Python face: completions, callbacks, sync points. Arguments: the folder of the package, a device."""
import sys
import time

sys.path.insert(0, sys.argv[1])
import lfuser

context = lfuser.Context()
device = context.device(sys.argv[2])
stream = device.stream()
x = lfuser.Tensor.of("f32", [4], [1.0, 5.0, 2.0, 3.0])

program = context.parse("fusion @f(%x: f32[?], %i: i64) { %m = max %x %p = item %m %y = index %x, %i, axis=0 return %p, %y }").compile(device)
heard = []
for _ in range(20):
    (p, y), done = program.run(stream, [x, 1], completion=True)
    p.on_ready(lambda p=p: heard.append(p.get(0)))
    done.on_done(lambda: heard.append("done"))
    done.wait()
    assert done.done and p.get() == 5.0 and y.tolist() == [5.0]
for _ in range(1000):
    if len(heard) == 40: break
    time.sleep(0.01)
print("heard", heard.count(5.0), "values and", heard.count("done"), "ends")

_, done = program.run(stream, [x, 9], completion=True)
try: done.wait()
except lfuser.Error as error: print(error.code, error)

program = context.parse("fusion @g(%x: f32[?]) { %q = gt %x, 1.5 %n = count_nonzero %q %k = item %n %y = iota %k, 0, 1 return %y, %k }")
try: program.compile(device)
except lfuser.Error as error: print(error.code)
y, k = program.compile(device, allow_sync=True).run(stream, [x])
print(y.shape, k, y.tolist())
