#!/usr/bin/env python3
"""Runs conformance cases on a device and judges them.

run_cases.py FILE.jsonl[.gz] … [--device=interp|cpu|cuda[:N]] [--as-scalars] [--filter=TEXT] [--jobs=N] [--known=FILE]

A case is a JSON object a line: id, program, args, expect, tol, options (see docs/testing.md). Failing ids are printed with what
was got and what was wanted, then "N passed, N failed"; exit status 1 when any failed. --as-scalars feeds each element (the first
64) of an elementwise case as host scalars. --known names a file of "id  reason" lines: cases that are left out.
"""
import argparse
import base64
import ctypes as c
import gzip
import json
import math
import multiprocessing
import os
import re
import struct
import sys

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
sys.path.insert(0, os.path.join(root, "tools", "python"))
INT = dict(i8=8, i16=16, i32=32, i64=64, u8=8, u16=16, u32=32, u64=64)
PART = dict(c64="f32", c128="f64")


def import_lfuser():
    build = os.environ.get("LFUSER_BUILD", os.path.join(root, "build"))
    os.environ.setdefault("LFUSER_LIBRARY", os.path.join(build, "lib", "liblfuser.so"))
    import lfuser
    return lfuser


# ---- values ------------------------------------------------------------------------------------------------------------------

def scalar_bytes(L, dtype, value):
    if dtype in PART:
        return b"".join(scalar_bytes(L, PART[dtype], v) for v in value)
    if dtype == "bool": return bytes([bool(value)])
    if dtype in INT: return (int(value) & (1 << INT[dtype]) - 1).to_bytes(INT[dtype] // 8, "little")
    return round_float(L, dtype, float(value))


def round_float(L, dtype, x):
    """Nearest, ties to even; beyond the range is infinite. The texts of cases are exact values of the dtype."""
    if dtype == "f64": return struct.pack("<d", x)
    try:
        if dtype == "bf16": return L.pack("bf16", x)
        return struct.pack("<e" if dtype == "f16" else "<f", x)
    except OverflowError:
        return {"f16": struct.pack("<H", 0x7C00 | (x < 0) << 15), "f32": struct.pack("<f", math.copysign(math.inf, x)),
                "bf16": struct.pack("<H", 0x7F80 | (x < 0) << 15)}[dtype]


class Value:
    """dtype, shape (None: scalar), row-major bytes of the elements."""

    def __init__(self, dtype, shape, data): self.dtype, self.shape, self.data = dtype, shape, data


def encoded(L, v):
    """An argument as (dtype, shape or None, storage, strides, offset)."""
    if "value" in v: return v["dtype"], None, scalar_bytes(L, v["dtype"], v["value"]), None, 0
    return v["dtype"], v["shape"], base64.b64decode(v["b64"]), v.get("strides"), v.get("offset", 0)


# ---- judging -----------------------------------------------------------------------------------------------------------------

def ordinal(dtype, bits):
    """Floats as integers in their order; -0 and +0 both 0."""
    width = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}[dtype]
    return -(bits & (1 << width - 1) - 1) if bits >> width - 1 else bits


def close(L, dtype, got, want, tol):
    """One element each, as bytes."""
    if dtype in PART:
        part, n = PART[dtype], len(got) // 2
        if "ulp" in tol and all(close(L, part, got[i:i + n], want[i:i + n], {"ulp": tol["ulp"], "sign0": tol.get("sign0")}) for i in (0, n)): return True
        if "rtol" not in tol and "atol" not in tol: return False
        g, w = L.unpack(dtype, got)[0], L.unpack(dtype, want)[0]
        if any(math.isnan(x) or math.isinf(x) for x in (g.real, g.imag, w.real, w.imag)):
            return all(close(L, part, got[i:i + n], want[i:i + n], {"rtol": tol.get("rtol", 0), "atol": tol.get("atol", 0)}) for i in (0, n))
        return abs(g - w) <= tol.get("atol", 0) + tol.get("rtol", 0) * abs(w)
    if dtype == "bool" or dtype in INT:
        if got == want: return True
        if dtype == "bool": return False
        g, w = L.unpack(dtype, got)[0], L.unpack(dtype, want)[0]
        return abs(g - w) <= max(tol.get("ulp", 0), tol.get("atol", 0) + tol.get("rtol", 0) * abs(w))
    g, w = L.unpack(dtype, got)[0], L.unpack(dtype, want)[0]
    if math.isnan(w) or math.isnan(g): return math.isnan(w) and math.isnan(g)
    if g == w: return not tol.get("sign0") or got == want or g != 0
    if "ulp" in tol and abs(ordinal(dtype, int.from_bytes(got, "little")) - ordinal(dtype, int.from_bytes(want, "little"))) <= tol["ulp"]: return True
    if math.isinf(w) or math.isinf(g): return False
    return ("rtol" in tol or "atol" in tol) and abs(g - w) <= tol.get("atol", 0) + tol.get("rtol", 0) * abs(w)


def differs(L, got, want, tol):
    """None, or what is wrong."""
    dtype, shape, data, strides, offset = encoded(L, want)
    if (got.dtype, got.shape) != (dtype, shape): return f"got {got.dtype} {got.shape}, want {dtype} {shape}"
    size = L.BYTES[dtype]
    if strides is not None or offset:
        data = L.Tensor(dtype, shape, data, strides, offset).gather(data)
    if got.data == data: return None
    if len(got.data) != len(data): return f"got {len(got.data)} bytes, want {len(data)}"
    wrong, first = 0, None
    for i in range(0, len(data), size):
        g, w = got.data[i:i + size], data[i:i + size]
        if g != w and not close(L, dtype, g, w, tol):
            wrong += 1
            if first is None: first = f"element {i // size}: got {L.unpack(dtype, g)[0]} ({g[::-1].hex()}), want {L.unpack(dtype, w)[0]} ({w[::-1].hex()})"
    return f"{wrong} of {len(data) // size} differ; {first}" if wrong else None


# ---- devices -----------------------------------------------------------------------------------------------------------------

class Refused(Exception):
    def __init__(self, stage, message):
        super().__init__(message)
        self.stage = stage


class Library:
    """cpu, cuda: through liblfuser."""

    def __init__(self, L, device):
        self.L, self.context = L, L.Context()
        self.device = self.context.device(device)
        self.stream = self.device.stream()

    def run(self, case, args):
        L = self.L
        try:
            fusion = self.context.parse(case["program"], "case.lf")
            executable = fusion.compile(self.device, case.get("options", {}).get("math", "exact"))
        except L.Error as e:
            raise Refused("compile", e.message)
        try:
            given = [(d, storage) if shape is None else L.Tensor(d, shape, storage, strides, offset) for d, shape, storage, strides, offset in args]
            results = executable.run(self.stream, given)
        except L.Error as e:
            raise Refused("run", e.message)
        values = []
        for info, r in zip(executable.outputs, results):
            if isinstance(r, L.Pending): values.append(Value(info.dtype, None, r.bytes()))
            elif isinstance(r, L.Output): values.append(Value(info.dtype, r.shape, r.bytes()))
            elif isinstance(r, L.Tensor): values.append(Value(info.dtype, r.shape, r.gather(r.read_back(self.stream))))
            else: values.append(Value(info.dtype, [] if info.kind == "host tensor" else None, L.pack(info.dtype, r)))
        return values


class FaceValue(c.Structure):
    _fields_ = [("dtype", c.c_int32), ("tensor", c.c_int32), ("rank", c.c_int32), ("shape", c.c_int64 * 8), ("strides", c.c_int64 * 8), ("data", c.c_void_p)]


class Interpreter:
    def __init__(self, L):
        self.L = L
        build = os.environ.get("LFUSER_BUILD", os.path.join(root, "build"))
        self.lib = c.CDLL(os.path.join(build, "lib", "liblfuser-interp-face.so"))
        self.lib.lft_interp_run.argtypes = [c.c_char_p, c.c_size_t, c.c_void_p, c.c_size_t, c.c_void_p, c.c_size_t, c.c_void_p, c.c_void_p,
                                            c.c_char_p, c.c_size_t, c.c_void_p]
        self.lib.lft_interp_release.argtypes = [c.c_void_p]

    def run(self, case, args):
        L, text = self.L, case["program"].encode()
        raw, keep = (FaceValue * max(len(args), 1))(), []
        for i, (dtype, shape, storage, strides, offset) in enumerate(args):
            t = L.Tensor(dtype, shape or [], storage, strides, offset)
            keep.append(t)
            raw[i] = FaceValue(L.CODE[dtype], shape is not None, len(t.shape), (c.c_int64 * 8)(*t.shape), (c.c_int64 * 8)(*t.strides),
                               t.base + offset * L.BYTES[dtype])
        out, n, result, message, stage = (FaceValue * 64)(), c.c_size_t(), c.c_void_p(), c.create_string_buffer(4096), c.c_int()
        code = self.lib.lft_interp_run(text, len(text), raw, len(args), out, 64, c.byref(n), c.byref(result), message, 4096, c.byref(stage))
        if code: raise Refused(("compile", "run")[stage.value], message.value.decode(errors="replace"))
        values = []
        for o in out[:n.value]:
            shape = list(o.shape[:o.rank])
            dtype = L.DTYPES[o.dtype]
            values.append(Value(dtype, shape if o.tensor else None, c.string_at(o.data, math.prod(shape) * L.BYTES[dtype]) if o.data else b""))
        self.lib.lft_interp_release(result)
        return values


# ---- running -----------------------------------------------------------------------------------------------------------------

def scalar_cases(L, case):
    """An elementwise case as cases of host scalars, or nothing."""
    if "error" in case["expect"] or any("value" not in a and ("strides" in a or "offset" in a) for a in case["args"]): return
    tensors = [a for a in case["args"] if "value" not in a]
    wants = case["expect"]
    if not tensors or any("value" in w or w["shape"] != tensors[0]["shape"] for w in wants) or any(a["shape"] != tensors[0]["shape"] for a in tensors): return
    # Only dtypes whose scalar promotion agrees with the tensor's: the program is the same but for the parameters' types.
    program = re.sub(r"\b(bool|[iu]\d+|b?f\d+|c\d+)\[[^\]]*\]", r"\1", case["program"])
    for i in range(min(64, math.prod(tensors[0]["shape"]))):
        def element(v):
            if "value" in v: return v
            size = L.BYTES[v["dtype"]]
            return dict(dtype=v["dtype"], raw=base64.b64decode(v["b64"])[i * size:(i + 1) * size])
        yield dict(case, id=f"{case['id']}[{i}]", program=program, args=[element(a) for a in case["args"]], expect=[element(w) for w in wants])


ELEMENTWISE = re.compile(r"= (\w+) ")


def elementwise_ops():
    text = open(os.path.join(root, "lib", "ir", "ops.def")).read()
    # Ops with a float result give f32 for integer tensors and f64 for integer scalars; the runner feeds those their own dtype only.
    return set(re.findall(r"LF_ELEM\(\w+, (\w+),", text))


def run_case(L, backend, case):
    args = [(a["dtype"], None, a["raw"], None, 0) if "raw" in a else encoded(L, a) for a in case["args"]]
    error = isinstance(case.get("expect"), dict) and case["expect"].get("error")
    try:
        got = backend.run(case, args)
    except Refused as e:
        if not error: return f"refused at {e.stage}: {e}"
        if e.stage == "run" and error["stage"] == "compile": return f"refused at run, want a refusal at compile: {e}"
        missing = [h for h in error.get("has", []) if h not in str(e)]
        return f"the message lacks {missing}: {e}" if missing else None
    if error: return f"ran, but must be refused at {error['stage']}"
    if "expect" not in case: return None
    if len(got) != len(case["expect"]): return f"{len(got)} outputs, want {len(case['expect'])}"
    for k, (g, w) in enumerate(zip(got, case["expect"])):
        if "raw" in w:
            ok = g.dtype == w["dtype"] and (g.data == w["raw"] or close(L, g.dtype, g.data, w["raw"], case.get("tol", {"ulp": 0})))
            wrong = None if ok else f"got {g.dtype} {g.data[::-1].hex()}, want {w['dtype']} {w['raw'][::-1].hex()}"
        else:
            wrong = differs(L, g, w, case.get("tol", {"ulp": 0}))
        if wrong: return f"output {k}: {wrong}"
    return None


def work(job):
    device, as_scalars, cases = job
    L = import_lfuser()
    backend = Interpreter(L) if device == "interp" else Library(L, device)
    ops = elementwise_ops() if as_scalars else ()
    failures, n = [], 0
    for case in cases:
        variants = [case]
        if as_scalars:
            if not set(ELEMENTWISE.findall(case["program"])) <= ops: continue
            variants = list(scalar_cases(L, case))
        for v in variants:
            n += 1
            try:
                wrong = run_case(L, backend, v)
            except Exception as e:  # the runner must tell of every case
                wrong = f"{type(e).__name__}: {e}"
            if wrong: failures.append((v["id"], wrong))
    return n, failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--device", default=os.environ.get("LFUSER_TEST_DEVICE", "cpu"))
    parser.add_argument("--as-scalars", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--known")
    parser.add_argument("--show", type=int, default=50)
    o = parser.parse_args()
    known = {}
    for line in open(o.known) if o.known else []:
        if line.strip() and not line.startswith("#"): known.setdefault(*line.split(None, 1))
    cases = []
    for name in o.files:
        with (gzip.open if name.endswith(".gz") else open)(name, "rt") as f:
            cases += [case for case in map(json.loads, f) if o.filter in case["id"] and case["id"] not in known]
    if o.jobs > 1:
        chunks = [(o.device, o.as_scalars, cases[i::o.jobs * 4]) for i in range(o.jobs * 4)]
        with multiprocessing.get_context("spawn").Pool(o.jobs) as pool: results = pool.map(work, chunks, 1)
    else:
        results = [work((o.device, o.as_scalars, cases))]
    failures = sorted(f for _, fs in results for f in fs)
    for case, wrong in failures[:o.show]: print(f"FAIL {case}: {wrong}")
    if len(failures) > o.show: print(f"… and {len(failures) - o.show} more")
    for case, reason in known.items(): print(f"left out {case}: {reason.strip()}")
    total = sum(n for n, _ in results)
    print(f"{total - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not total else 0


if __name__ == "__main__":
    sys.exit(main())
