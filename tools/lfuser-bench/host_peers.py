#!/usr/bin/env python3
"""What the host benchmarks cost elsewhere: PyTorch eager, torch.compile (Inductor) and JAX (XLA), on tiny tensors, in microseconds.

host_peers.py [--seconds=N] [--out=FILE.json]       measures, on a machine with a GPU and torch, jax or both; about 90 s
host_peers.py --table OURS.json [PEERS.json]        a table for docs/performance.md: `lfuser-bench --host --json=OURS.json` beside it

A call is the host's time for one of many in a row (the device is waited for before and after); with values that the call hands back to
the host, to the value. A first call includes compiling. --seconds bounds all compiling: what does not fit is left out, not guessed.
"""
import json
import sys
import time

# (row, what it is, ours in lfuser-bench --host: name and factor to µs)
ROWS = (
    ("seed", "seed program: reshape by run-time sizes, add, host scalar out", "seed.call"),
    ("seed_new_shape", "the same, a new shape, first time", "seed.new_shape"),
    ("tanh10", "ten times tanh(x·y + 0.5) on 64×64", "tanh10.call"),
    ("tanh10_first", "the same, first call (text to launch)", "tanh10.first"),
    ("chain8", "8 elementwise ops on 64×64", "pointwise_chain8.call"),
    ("chain128", "128 elementwise ops", "pointwise_chain128.call"),
    ("chain8_new_shape", "8 ops, a new shape, first time", "pointwise_chain8.new_shape"),
    ("scalar_add", "a + b of two host scalars, back on the host", "scalar_add.call"),
    ("sum_to_host", "sum of 64×64, its value on the host", "pending.sum_64x64_to_host"),
    ("many_segments", "12 alternating norms and transposes on 5×5", "many_segments.call"),
    ("many_segments_graph", "the same as one graph", "many_segments_replayed.call"),
    ("adaptive_layernorm", "adaptive layer norm, 1×30720×1024 f16", "adaptive_layernorm.call"),
    ("layers10_compile", "10 layers of norm + gelu + add: compiled (ours: host code)", "layers10.compile_host_code"),
    ("layers100_compile", "100 layers", "layers100.compile_host_code"),
)
CALLS, WARM = 1000, 30


def now():
    return time.perf_counter() * 1e6


class Peer:
    """Results of one peer; `wait` waits for its device, `until` is when compiling must have ended."""

    def __init__(self, wait, until):
        self.wait, self.until, self.rows, self.errors = wait, until, {}, {}

    def call(self, row, f, n=CALLS):
        """Median of five batches."""
        def measure():
            for _ in range(WARM):
                f()
            times = []
            for _ in range(5):
                self.wait()
                start = now()
                for _ in range(n // 5):
                    f()
                times.append((now() - start) / (n // 5))
            self.wait()
            return sorted(times)[2]
        return self.guarded(row, measure)

    def once(self, row, f):
        def measure():
            self.wait()
            start = now()
            f()
            self.wait()
            return now() - start
        return self.guarded(row, measure)

    def guarded(self, row, measure):
        if time.time() > self.until:
            self.errors[row] = "no time left"
            return None
        try:
            self.rows[row] = measure()
            print(f"  {row:24} {self.rows[row]:14.1f} us", flush=True)
        except Exception as e:  # noqa: BLE001 - whatever a peer cannot do is left out
            self.errors[row] = f"{type(e).__name__}: {e}"[:300]
            print(f"  {row:24} {self.errors[row]}", flush=True)
        return self.rows.get(row)


# ---- programs, for torch and for jax.numpy alike ---------------------------------------------------------------------------------

def chain(n):
    def f(x, y):
        v = x + y
        for i in range(1, n):
            v = v * y if i % 2 else v + x
        return v
    return f


def tanh10(tanh):
    def f(x, y):
        for _ in range(10):
            x = tanh(x * y + 0.5)
        return x
    return f


def seed(t0, t1, a, b):
    return t1 + t0.reshape(a, b), a + b


# ---- torch -------------------------------------------------------------------------------------------------------------------

def torch_programs(torch):
    functional = torch.nn.functional

    def many_segments(x):
        for _ in range(12):
            x = functional.layer_norm(x, (x.shape[-1],)).t()
        return x

    def adaptive(x, scale, shift):
        return functional.layer_norm(x, (x.shape[-1],), eps=1e-6) * (1 + scale) + shift

    def layers(n):
        def f(x, w):
            for _ in range(n):
                x = functional.gelu(functional.layer_norm(x, (x.shape[-1],), w)) + x
            return x
        return f
    return many_segments, adaptive, layers


def measure_torch(torch, compiled, until):
    import torch._dynamo
    device = "cuda" if torch.cuda.is_available() else "cpu"
    peer = Peer(torch.cuda.synchronize if device == "cuda" else lambda: None, until)
    many_segments, adaptive, layers = torch_programs(torch)

    def make(*shape, dtype=torch.float32):
        return torch.randn(*shape, device=device).to(dtype)

    def wrap(f, **how):
        if not compiled:
            return f
        torch._dynamo.reset()
        return torch.compile(f, **how)
    with torch.no_grad():
        x, y = make(64, 64), make(64, 64)
        f = wrap(seed, dynamic=True)
        t0, t1, u0, u1 = make(6, 8), make(8, 6), make(10, 12), make(8, 15)
        if peer.once("seed_first", lambda: f(t0, t1, 8, 6)):
            peer.call("seed", lambda: f(t0, t1, 8, 6))
            peer.once("seed_new_shape", lambda: f(u0, u1, 8, 15))
        f = wrap(tanh10(torch.tanh))
        if peer.once("tanh10_first", lambda: f(x, y)):
            peer.call("tanh10", lambda: f(x, y))
        for n in (8, 128):
            f = wrap(chain(n), dynamic=True)
            if peer.once(f"chain{n}_first", lambda: f(x, y)):
                peer.call(f"chain{n}", lambda: f(x, y))
            if n == 8:
                z = make(64, 60)
                peer.once("chain8_new_shape", lambda: f(z, z))
        peer.call("scalar_add", lambda: wrap_scalar(torch, compiled)(3, 4))
        f = wrap(lambda x: x.sum())
        peer.call("sum_to_host", lambda: f(x).item(), 500)
        f, small = wrap(many_segments), make(5, 5)
        if peer.once("many_segments_first", lambda: f(small)):
            peer.call("many_segments", lambda: f(small))
        if device == "cuda" and compiled:
            f = wrap(many_segments, mode="reduce-overhead")
            if peer.once("many_segments_graph_first", lambda: f(small)):
                peer.call("many_segments_graph", lambda: f(small))
        half = torch.float16
        big, scale, shift = make(1, 30720, 1024, dtype=half), make(1, 1, 1024, dtype=half), make(1, 1, 1024, dtype=half)
        f = wrap(adaptive, dynamic=True)
        if peer.once("adaptive_layernorm_first", lambda: f(big, scale, shift)):
            peer.call("adaptive_layernorm", lambda: f(big, scale, shift), 200)
        if compiled:
            w = make(64)
            for n in (10, 100):
                f = wrap(layers(n))
                peer.once(f"layers{n}_compile", lambda: f(x, w))
    return peer


_scalar = {}


def wrap_scalar(torch, compiled):
    """Eager: Python's own addition is not the library's; a 0-dimensional tensor on the host is."""
    if compiled not in _scalar:
        a, b = torch.tensor(3), torch.tensor(4)
        f = torch.compile(lambda a, b: a + b) if compiled else (lambda a, b: a + b)
        _scalar[compiled] = lambda p, q: f(a, b).item()
    return _scalar[compiled]


# ---- jax ---------------------------------------------------------------------------------------------------------------------

def measure_jax(jax, until):
    jnp = jax.numpy
    key = jax.random.PRNGKey(0)
    last = [None]

    def wait():
        if last[0] is not None:
            jax.block_until_ready(last[0])
    peer = Peer(wait, until)

    def make(*shape, dtype=jnp.float32):
        return jax.random.normal(key, shape).astype(dtype)

    def norm(x, eps=1e-5):
        wide = x.astype(jnp.float32)
        mean = wide.mean(-1, keepdims=True)
        return ((wide - mean) * jax.lax.rsqrt(((wide - mean) ** 2).mean(-1, keepdims=True) + eps)).astype(x.dtype)

    def many_segments(x):
        for _ in range(12):
            x = norm(x).T
        return x

    def layers(n):
        def f(x, w):
            for _ in range(n):
                x = jax.nn.gelu(norm(x) * w, approximate=False) + x
            return x
        return f

    def calls(f, *args):
        def one():
            last[0] = f(*args)
        return one
    x, y = make(64, 64), make(64, 64)
    f = jax.jit(seed, static_argnums=(2, 3))  # sizes are constants to XLA
    if peer.once("seed_first", calls(f, make(6, 8), make(8, 6), 8, 6)):
        peer.call("seed", calls(f, make(6, 8), make(8, 6), 8, 6))
        peer.once("seed_new_shape", calls(f, make(10, 12), make(8, 15), 8, 15))
    f = jax.jit(tanh10(jnp.tanh))
    if peer.once("tanh10_first", calls(f, x, y)):
        peer.call("tanh10", calls(f, x, y))
    for n in (8, 128):
        f = jax.jit(chain(n))
        if peer.once(f"chain{n}_first", calls(f, x, y)):
            peer.call(f"chain{n}", calls(f, x, y))
        if n == 8:
            peer.once("chain8_new_shape", calls(f, make(64, 60), make(64, 60)))
    f = jax.jit(lambda a, b: a + b)
    peer.call("scalar_add", lambda: int(f(3, 4)), 500)
    f2 = jax.jit(lambda x: x.sum())
    peer.call("sum_to_host", lambda: float(f2(x)), 500)
    f = jax.jit(many_segments)
    small = make(5, 5)
    if peer.once("many_segments_first", calls(f, small)):
        peer.call("many_segments", calls(f, small))
    half = jnp.float16
    f = jax.jit(lambda x, scale, shift: norm(x, 1e-6) * (1 + scale) + shift)
    big = make(1, 30720, 1024, dtype=half), make(1, 1, 1024, dtype=half), make(1, 1, 1024, dtype=half)
    if peer.once("adaptive_layernorm_first", calls(f, *big)):
        peer.call("adaptive_layernorm", calls(f, *big), 200)
    for n in (10, 100):
        f = jax.jit(layers(n))
        peer.once(f"layers{n}_compile", calls(f, x, make(64)))
    return peer


# ---- the command line --------------------------------------------------------------------------------------------------------

def measure(seconds, out):
    result = {"rows": {}, "errors": {}, "versions": {}}

    def keep(name, peer):
        result["rows"][name], result["errors"][name] = peer.rows, peer.errors
        with open(out, "w") as f:
            json.dump(result, f, indent=1)
    end = time.time() + seconds
    try:
        import torch
        result["versions"]["torch"] = torch.__version__
        print("eager", flush=True)
        keep("eager", measure_torch(torch, False, end))
        print("Inductor", flush=True)
        keep("inductor", measure_torch(torch, True, time.time() + (end - time.time()) * 0.6))
    except ImportError as e:
        print("torch:", e)
    try:
        import os
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax
        result["versions"]["jax"] = jax.__version__
        print("XLA", flush=True)
        keep("xla", measure_jax(jax, end))
    except ImportError as e:
        print("jax:", e)
    if not result["rows"]:
        sys.exit("neither torch nor jax is here")


def number(us):
    if us is None:
        return "–"
    return f"{us:.3f}" if us < 0.1 else f"{us:.2f}" if us < 1 else f"{us:.1f}" if us < 100 else f"{us:,.0f}".replace(",", " ")


def table(ours, peers):
    """Lines of Markdown; a row that nobody has is left out."""
    names = [n for n in ("eager", "inductor", "xla") if n in peers.get("rows", {})]
    titles = {"eager": "eager", "inductor": "Inductor", "xla": "XLA"}
    lines = ["| what, µs | ours | " + " | ".join(titles[n] for n in names) + " |", "|---" * (2 + len(names)) + "|"]
    for row, what, key in ROWS:
        mine = ours.get(key, {}).get("value")
        theirs = [peers["rows"][n].get(row) for n in names]
        if mine is None and not any(theirs):
            continue
        lines.append("| " + " | ".join([what, number(mine)] + [number(t) for t in theirs]) + " |")
    return lines


def self_test():
    lines = table({"seed.call": {"value": 4.712, "unit": "us"}}, {"rows": {"eager": {"seed": 8.93, "tanh10": 264.2}, "xla": {}}})
    assert lines[2] == "| seed program: reshape by run-time sizes, add, host scalar out | 4.7 | 8.9 | – |", lines[2]
    assert lines[3].endswith("| – | 264 | – |") and len(lines) == 4, lines


def main():
    self_test()
    options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--") and "=" in a)
    files = [a for a in sys.argv[1:] if not a.startswith("--")]
    if "--table" in sys.argv:
        loaded = []
        for name in files:
            with open(name) as f:
                loaded.append(json.load(f))
        print("\n".join(table(loaded[0], loaded[1] if len(loaded) > 1 else {"rows": {}})))
    elif files or not set(options) <= {"seconds", "out"}:
        sys.exit(__doc__)
    else:
        measure(float(options.get("seconds", 90)), options.get("out", "host_peers.json"))


if __name__ == "__main__":
    main()
