#!/usr/bin/env python3
"""Runs conformance cases on a device and judges them.

run_cases.py FILE.jsonl[.gz] … [--device=interp|cpu|cuda[:N]|sim] [--as-scalars] [--filter=TEXT] [--jobs=N] [--known=FILE]
             [--every=N]

A case is a JSON object a line: id, program, args, expect, tol, options (README.md says more). Instead of args and expect it may have
`runs`: a list of objects with args, expect and perhaps index_error (whether the run must report one), all of one compiled program.
Scalars with `each` hold many values: the program runs once for each. `tol` may be a list, one for each output. Failing ids are printed
with what was got and what was wanted, then "N passed, N failed"; exit status 1 when any failed. --as-scalars feeds each element (the
first 64) of the elementwise cases as host scalars. --known names a file of "id  reason" lines: cases that are left out. --every=N runs every N-th case only.
"""
import argparse
import base64
import ctypes as c
import gzip
import json
import math
import multiprocessing
import multiprocessing.connection
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
    """cpu, cuda, sim: through liblfuser."""

    def __init__(self, L, device):
        self.L, self.context = L, L.Context()
        self.device = self.context.device(device)
        self.stream = self.device.stream()

    def prepare(self, case):
        """A function from arguments to (outputs, index error or None)."""
        L = self.L
        try:
            fusion = self.context.parse(case["program"], "case.lf")
            executable = fusion.compile(self.device, case.get("options", {}).get("math", "exact"))
        except L.Error as e:
            raise Refused("compile", e.message)
        return lambda args: self.run(executable, args)

    def run(self, executable, args):
        L, u64_max = self.L, (1 << 64) - 1
        try:
            given = [(d, storage) if shape is None else L.Tensor(d, shape, storage, strides, offset) for d, shape, storage, strides, offset in args]
            results, completion = executable.run_raw(self.stream, given, want_completion=True)
        except L.Error as e:
            raise Refused("run", e.message)
        values, index_error = [], None
        for info, r in zip(executable.outputs, results):
            if info.kind == "pending": values.append(Value(info.dtype, None, L.Pending(self.device, r.pending, info.dtype).bytes()))
            elif info.kind != "tensor": values.append(Value(info.dtype, [] if info.kind == "host tensor" else None, bytes(r.value)[:L.BYTES[info.dtype]]))
            elif info.into >= 0: values.append(Value(info.dtype, given[info.into].shape, given[info.into].gather(given[info.into].read_back(self.stream))))
            else:
                t = L.Output(self.stream, r.allocated)
                values.append(Value(info.dtype, t.shape, t.bytes()))
        try: L._check(L._lib.lfuser_completion_wait(completion, u64_max))
        except L.Error as e:
            if e.code != "index-error": raise
            index_error = e.message
        finally: L._lib.lfuser_completion_release(completion)
        return values, index_error


class FaceValue(c.Structure):
    _fields_ = [("dtype", c.c_int32), ("tensor", c.c_int32), ("rank", c.c_int32), ("shape", c.c_int64 * 8), ("strides", c.c_int64 * 8), ("data", c.c_void_p)]


class Interpreter:
    def __init__(self, L):
        self.L = L
        build = os.environ.get("LFUSER_BUILD", os.path.join(root, "build"))
        self.lib = c.CDLL(os.path.join(build, "lib", "liblfuser-interp-face.so"))
        self.lib.lft_interp_run.argtypes = [c.c_char_p, c.c_size_t, c.c_void_p, c.c_size_t, c.c_void_p, c.c_size_t, c.c_void_p, c.c_void_p,
                                            c.c_char_p, c.c_size_t, c.c_void_p]
        self.lib.lft_interp_release.argtypes = self.lib.lft_interp_index_error.argtypes = [c.c_void_p]
        self.lib.lft_interp_index_error.restype = c.c_char_p

    def prepare(self, case): return lambda args: self.run(case["program"].encode(), args)

    def run(self, text, args):
        L = self.L
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
        told = self.lib.lft_interp_index_error(result)
        self.lib.lft_interp_release(result)
        return values, told.decode() if told else None


# ---- running -----------------------------------------------------------------------------------------------------------------

def elements(L, v):
    """The elements of an encoded value, row-major, one bytes object each."""
    dtype, shape, data, strides, offset = encoded(L, v)
    if strides is not None or offset: data = L.Tensor(dtype, shape, data, strides, offset).gather(data)
    size = L.BYTES[dtype]
    return [data[i:i + size] for i in range(0, len(data), size)]


def broadcast_element(shape, result, flat):
    """The row-major number of the element of a tensor that broadcasting puts at number flat of the result."""
    index, at, step = [], 0, 1
    for n in reversed(result): flat, i = divmod(flat, n); index.append(i)
    for n, i in zip(reversed(shape), index):
        at += step * (i if n > 1 else 0)
        step *= n
    return at


def as_scalars(L, case):
    """An elementwise case with each element as host scalars (the first 64 of the result): a case with `each`. None where the scalars'
    promotion is another by rule: operands of two tiers, or literals of a higher category than the tensors beside them."""
    wants = case.get("expect")
    if "runs" in case or not wants or "error" in wants or any("each" in a for a in case["args"]): return None
    tensors = [a for a in case["args"] if "value" not in a]
    if not tensors or any("value" in w or w["shape"] != wants[0]["shape"] for w in wants): return None
    tiers = {0 if "value" in a else 1 if not a["shape"] else 2 for a in case["args"]}
    if len(tiers) > 1 and len({a["dtype"] for a in case["args"]}) > 1: return None
    shape, program = wants[0]["shape"], re.sub(r"\b(bool|[iu]\d+|b?f\d+|c\d+)\[[^\]]*\]", r"\1", case["program"])
    if "f" not in "".join(a["dtype"] for a in tensors) and re.search(r"[ ,]-?(\d+\.|inf|nan|0x)", program): return None
    n, columns = min(64, math.prod(shape)), []
    if not n: return None
    for a in case["args"]:
        if "value" in a: columns.append(dict(dtype=a["dtype"], each_of=[scalar_bytes(L, a["dtype"], a["value"])] * n))
        else:
            xs = elements(L, a)
            columns.append(dict(dtype=a["dtype"], each_of=[xs[broadcast_element(a["shape"], shape, i)] for i in range(n)]))
    return dict(case, program=program, args=columns, expect=[dict(dtype=w["dtype"], each_of=elements(L, w)[:n]) for w in wants])


def elementwise_ops():
    """Names of ops that are elementwise whatever the number of operands, and of those that have another form too."""
    text = open(os.path.join(root, "lib", "ir", "ops.def")).read()
    elem = set(re.findall(r"^LF_ELEM\(\w+, (\w+),", text, re.M))
    return elem, elem & set(re.findall(r"^LF_(?!ELEM)\w+\(\w+, (\w+),", text, re.M))


def is_elementwise(program, ops):
    elem, twofold = ops
    for line in program.splitlines():
        m = re.match(r" *%.*= (\w+) (.*)", line)
        if m and (m[1] not in elem or (m[1] in twofold and not re.search(r"%[\w.]+, [^=]*$|^[^=]*, %[\w.]+", m[2]))): return False
    return True


def column(L, v):
    """The elements of an `each` value."""
    if "each_of" in v: return v["each_of"]
    size, data = L.BYTES[v["dtype"]], base64.b64decode(v["each"])
    return [data[i:i + size] for i in range(0, len(data), size)]


def judge_each(L, run, args, expect, tols):
    """The program once for each element; None, or what is wrong."""
    columns, wants = [column(L, a) for a in args], [column(L, w) for w in expect]
    for i in range(len(wants[0])):
        got, _ = run([(a["dtype"], None, xs[i], None, 0) for a, xs in zip(args, columns)])
        for k, (g, w) in enumerate(zip(got, expect)):
            if (g.dtype, g.shape) != (w["dtype"], None): return f"output {k}: got {g.dtype} {g.shape}, want the scalar {w['dtype']}"
            if g.data != wants[k][i] and not close(L, g.dtype, g.data, wants[k][i], tols[k]):
                told = ", ".join(str(L.unpack(a["dtype"], xs[i])[0]) for a, xs in zip(args, columns))
                return (f"output {k}, run {i} ({told}): got {L.unpack(g.dtype, g.data)[0]} ({g.data[::-1].hex()}), "
                        f"want {L.unpack(g.dtype, wants[k][i])[0]} ({wants[k][i][::-1].hex()})")
    return None


def judge_run(L, run, args, expect, tols, index_error):
    if args and ("each" in args[0] or "each_of" in args[0]): return judge_each(L, run, args, expect, tols)
    got, told = run([encoded(L, a) for a in args])
    if len(got) != len(expect): return f"{len(got)} outputs, want {len(expect)}"
    for k, (g, w) in enumerate(zip(got, expect)):
        wrong = differs(L, g, w, tols[k])
        if wrong: return f"output {k}: {wrong}"
    if index_error is not None and index_error != bool(told): return f"index error: got {told}, want {'one' if index_error else 'none'}"
    return None


def run_case(L, backend, case):
    """None, or what is wrong."""
    runs = case.get("runs") or [dict(args=case["args"], expect=case.get("expect"))]
    error = isinstance(runs[0]["expect"], dict) and runs[0]["expect"].get("error")
    try:
        run = backend.prepare(case)
        if error: run([encoded(L, a) for a in runs[0]["args"]])
    except Refused as e:
        if not error: return f"refused at {e.stage}: {e}"
        if e.stage == "run" and error["stage"] == "compile": return f"refused at run, want a refusal at compile: {e}"
        missing = [h for h in error.get("has", []) if h not in str(e)]
        return f"the message lacks {missing}: {e}" if missing else None
    if error: return f"ran, but must be refused at {error['stage']}"
    for i, r in enumerate(runs):
        if r["expect"] is None:
            run([encoded(L, a) for a in r["args"]])
            continue
        tol = case.get("tol", {"ulp": 0})
        try: wrong = judge_run(L, run, r["args"], r["expect"], tol if isinstance(tol, list) else [tol] * len(r["expect"]), r.get("index_error"))
        except Refused as e: wrong = f"refused at {e.stage}: {e}"
        if wrong: return f"run {i}, {wrong}" if len(runs) > 1 else wrong
    return None


class Worker:
    """Runs cases one after another: in this process, or in one of its own that may die of a case."""

    def __init__(self, device, scalars):
        self.L = import_lfuser()
        self.backend = Interpreter(self.L) if device == "interp" else Library(self.L, device)
        self.scalars, self.ops = scalars, elementwise_ops() if scalars else ()

    def run(self, case):
        """(what is wrong or None, number of elements fed as scalars), or None for a case that is left out."""
        n = 0
        if self.scalars:
            case = as_scalars(self.L, case) if is_elementwise(case["program"], self.ops) else None
            if not case: return None
            n = len(case["expect"][0]["each_of"])
        try:
            wrong = run_case(self.L, self.backend, case)
        except Exception as e:  # the runner must tell of every case
            wrong = f"{type(e).__name__}: {e}"
        # Scalars promote to another dtype here: f64, not f32, for integers.
        return None if self.scalars and wrong and "want the scalar" in wrong else (wrong, n)


def serve(pipe, device, scalars):
    worker = Worker(device, scalars)
    while (case := pipe.recv()) is not None: pipe.send(worker.run(case))


def in_processes(cases, device, scalars, jobs):
    """Yields (case, result); a process that dies is a failure of the case it was at, and another takes its place."""
    spawn, left, busy = multiprocessing.get_context("spawn"), iter(cases), {}

    def start():
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=serve, args=(theirs, device, scalars), daemon=True)
        process.start()
        theirs.close()
        return ours, process

    def give(pipe, process):
        case = next(left, None)
        pipe.send(case)
        if case is not None: busy[pipe] = process, case
        else: process.join()
    for _ in range(min(jobs, len(cases))): give(*start())
    while busy:
        for pipe in multiprocessing.connection.wait(list(busy)):
            process, case = busy.pop(pipe)
            try:
                result = pipe.recv()
            except EOFError:
                process.join()
                result = (f"the process died: exit code {process.exitcode}", 0)
                pipe, process = start()
            yield case, result
            give(pipe, process)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--device", default=os.environ.get("LFUSER_TEST_DEVICE", "cpu"))
    parser.add_argument("--as-scalars", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--known")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--show", type=int, default=50)
    o = parser.parse_args()
    known = {}
    for line in open(o.known) if o.known else []:
        if line.strip() and not line.startswith("#"): known.setdefault(*line.split(None, 1))
    cases = []
    for name in o.files:
        with (gzip.open if name.endswith(".gz") else open)(name, "rt") as f:
            cases += [case for case in map(json.loads, f) if o.filter in case["id"] and case["id"] not in known]
    cases = cases[::o.every]
    if o.jobs > 1: results = list(in_processes(cases, o.device, o.as_scalars, o.jobs))
    else:
        worker = Worker(o.device, o.as_scalars)
        results = [(case, worker.run(case)) for case in cases]
    judged = [(case["id"], *r) for case, r in results if r is not None]
    failures = sorted((name, wrong) for name, wrong, _ in judged if wrong)
    for case, wrong in failures[:o.show]: print(f"FAIL {case}: {wrong}")
    if len(failures) > o.show: print(f"… and {len(failures) - o.show} more")
    for case, reason in known.items(): print(f"left out {case}: {reason.strip()}")
    total = len(judged)
    if o.as_scalars:
        print(f"{sum(n for _, _, n in judged)} elements of {total} cases as host scalars; {len(cases) - total} cases are not elementwise, or promote otherwise")
    print(f"{total - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not total else 0


if __name__ == "__main__":
    sys.exit(main())
