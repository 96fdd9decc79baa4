#!/usr/bin/env python3
"""How fast kernels move memory on an NVIDIA GPU, beside the device's own copy and PyTorch.

gpu.py [--filter=TEXT] [--math=exact|fast] [--peers] [--json]

For each workload: the result is checked against float64, the L2 is cleared between runs, the median of 30 device-event times is
taken. GB/s counts each input read once and each output written once; "copy" is a device copy of the same number of bytes in this
run. Needs torch (for memory, events and the check).
"""
import argparse
import ctypes as c
import json
import os
import sys

import torch

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "python"))
import lfuser as L

F = torch.nn.functional
DT = {"bf16": torch.bfloat16, "f32": torch.float32}


def rand(*shape, dtype): return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)


def norm_bwd(x, w, dy):
    xf, wf, df = x.double(), w.double(), dy.double()
    m = xf.mean(1, keepdim=True)
    rs = torch.rsqrt(xf.var(1, keepdim=True, correction=0) + 1e-5)
    xh = (xf - m) * rs
    g = df * wf
    return (g - g.mean(1, keepdim=True) - xh * (g * xh).mean(1, keepdim=True)) * rs, (df * xh).sum(0), df.sum(0)


def workloads():
    def inputs(*shapes): return lambda d: [rand(*s, dtype=d) for s in shapes]
    def rotate(q): return torch.cat([-q[..., 64:], q[..., :64]], -1)
    both = ("bf16", "f32")
    yield "silu_mul", both, inputs((8192, 14336), (8192, 14336)), lambda x, y: F.silu(x) * y
    yield "bias_gelu", both, inputs((8192, 16384), (16384,)), lambda x, b: F.gelu(x + b, approximate="tanh")
    yield "softmax4k", both, inputs((16384, 4096)), lambda x: torch.softmax(x, 1)
    yield "softmax32k", both, inputs((4096, 32768)), lambda x: torch.softmax(x, 1)
    yield "layernorm", both, inputs((16384, 8192), (8192,), (8192,)), lambda x, w, b: F.layer_norm(x, (8192,), w, b)
    yield "rmsnorm", both, inputs((16384, 8192), (8192,)), lambda x, w: x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5) * w
    yield "sum_inner", both, inputs((16384, 16384)), lambda x: x.sum(1)
    yield "sum_outer", both, inputs((16384, 16384)), lambda x: x.sum(0)
    yield "sum_all", both, inputs((16384, 16384)), lambda x: x.sum()
    yield "transpose_add", both, inputs((16384, 8192), (8192, 16384)), lambda x, y: x.t() + y
    yield "xent128k", ("bf16",), lambda d: [rand(4096, 131072, dtype=d), torch.randint(0, 131072, (4096,), device="cuda")], lambda x, t: F.cross_entropy(x, t)
    yield "layernorm_bwd", ("bf16",), inputs((8192, 8192), (8192,), (8192, 8192)), norm_bwd
    yield "dropout_add_ln", ("bf16",), lambda d: [rand(16384, 4096, dtype=d), rand(16384, 4096, dtype=d), 1234], None
    yield "rope", ("bf16",), inputs((4, 32, 8192, 128), (8192, 128), (8192, 128)), lambda q, cs, s: q * cs + rotate(q) * s


def median_ms(run, scratch, n=30):
    for _ in range(3): run()
    times = []
    for _ in range(n):
        scratch.zero_()
        a, b = torch.cuda.Event(True), torch.cuda.Event(True)
        a.record()
        run()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
    return sorted(times)[n // 2]


class Call:
    """An executable bound to torch tensors."""

    def __init__(self, exe, stream, inputs, outputs):
        self.exe, self.stream, self.keep = exe, stream, []
        self.args = (L._Argument * len(inputs))()
        for i, x in enumerate(inputs):
            if isinstance(x, int):
                self.args[i].dtype, self.args[i].value[0] = L.CODE["i64"], x
            else:
                self.args[i].kind, self.args[i].tensor = 3, c.pointer(self.tensor(x))
        self.out = (L._Output * len(outputs))()
        for i, y in enumerate(outputs): self.out[i].tensor = c.pointer(self.tensor(y))

    def tensor(self, t):
        rank = t.dim()
        shape, strides = (c.c_int64 * max(rank, 1))(*t.shape), (c.c_int64 * max(rank, 1))(*t.stride())
        name = {torch.bfloat16: "bf16", torch.float32: "f32", torch.int64: "i64"}[t.dtype]
        s = L._Tensor(t.data_ptr(), L._Device(2, 0), rank, L._lib.lfuser_dl_dtype_of(L.CODE[name]), shape, strides, 0)
        self.keep += [t, shape, strides, s]
        return s

    def __call__(self):
        L._check(L._lib.lfuser_run(self.exe.handle, self.stream, self.args, len(self.args), self.out, len(self.out), None))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default="")
    parser.add_argument("--math", default="exact")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--json", action="store_true")
    o = parser.parse_args()
    context = L.Context()
    device = context.device("cuda")
    stream = L._made(L._lib.lfuser_stream_wrap, device.handle, torch.cuda.current_stream().cuda_stream)
    scratch = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    print(f"{device.description}, math={o.math}\n{'workload':22} {'ms':>8} {'GB/s':>7} {'copy GB/s':>9} {'%':>6} {'eager ms':>9} {'max error':>10}")
    results = {}
    for name, dtypes, make, reference in workloads():
        for d in dtypes:
            if o.filter not in f"{name}.{d}": continue
            torch.manual_seed(0)
            inputs = make(DT[d])
            file = name.replace("softmax4k", "softmax").replace("softmax32k", "softmax").replace("xent128k", "xent")
            with open(os.path.join(here, "workloads", f"{file}.{d}.lf")) as f: fusion = context.parse(f.read(), name)
            exe = fusion.compile(device, o.math)
            tensors = [x for x in inputs if not isinstance(x, int)]
            want = reference(*[x.double() if x.is_floating_point() else x for x in inputs]) if reference and name != "xent128k" else None
            if name == "xent128k": want = reference(tensors[0].float(), tensors[1])
            shapes = [tuple(w.shape) for w in want] if isinstance(want, tuple) else [tuple(want.shape)] if want is not None else [tuple(tensors[0].shape)]
            outputs = [torch.full(s, float("nan"), device="cuda", dtype=DT[d]) for s in shapes]
            call = Call(exe, stream, inputs, outputs)
            call()
            torch.cuda.synchronize()
            error = float("nan")
            if want is not None:
                wants = want if isinstance(want, tuple) else (want,)
                error = max(float(((g.double() - w).norm() / w.double().norm()).item()) for g, w in zip(outputs, wants))
            want = None
            ms = median_ms(call, scratch)
            moved = sum(t.numel() * t.element_size() for t in tensors + outputs)
            half = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
            other = torch.empty_like(half)
            copy = median_ms(lambda: other.copy_(half), scratch)
            eager = median_ms(lambda: reference(*inputs), scratch) if o.peers and reference and name != "layernorm_bwd" else float("nan")
            del half, other
            rate, copy_rate = moved / ms / 1e6, moved / copy / 1e6
            print(f"{name + '.' + d:22} {ms:8.3f} {rate:7.0f} {copy_rate:9.0f} {100 * rate / copy_rate:6.1f} {eager:9.3f} {error:10.2e}", flush=True)
            results[f"{name}.{d}"] = dict(ms=ms, gbs=rate, copy_gbs=copy_rate, percent=100 * rate / copy_rate, eager_ms=eager, error=error)
            del call, inputs, outputs, tensors
            torch.cuda.empty_cache()
    if o.json: print(json.dumps(results))


if __name__ == "__main__":
    main()
