"""Values and arguments of the cells: edge values of every dtype, random ones, and tensors laid out in memory in various ways."""
import base64
import math
import os
import random
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(here), "reference"))
import lf_ref as ref  # noqa: E402

DTYPES = ref.DTYPES
REAL = [d for d in DTYPES if d not in ref.CPX]
INF, NAN = math.inf, math.nan


def part(d): return ref.CPX.get(d, d)


def rng(*key): return random.Random("/".join(map(str, key)))


# ---- values ------------------------------------------------------------------------------------------------------------------

def int_edges(d):
    lo, hi = ref.irange(d)
    bits = ref.INT[d][0]
    raw = [0, 1, 2, 3, 5, 7, 10, bits - 1, bits, hi, hi - 1, hi // 2, lo, lo + 1, 1 << bits // 2, (1 << bits // 2) - 1, (1 << bits // 2) + 1]
    raw += [-1, -2, -3, -7, -10, lo // 2] if lo else [hi // 3, (hi >> 1) + 1]
    return sorted({x for x in raw if lo <= x <= hi}, key=lambda x: (abs(x), x))


def float_edges(d):
    p, emin, emax = ref.FLT[d]
    tiny, small, big = math.ldexp(1, emin - p + 1), math.ldexp(1, emin), math.ldexp(2 - math.ldexp(1, 1 - p), emax)
    eps = math.ldexp(1, 1 - p)
    raw = [0.0, 1.0, 0.5, 1.5, 2.5, 2.0, 3.0, tiny, small - tiny, small, big, INF, 1 + eps, 1 - eps / 2, math.ldexp(1, p), math.ldexp(1, p) - 1,
           math.ldexp(1, p - 2) + 0.5, 0.1, 10.0]
    return [s * ref.rnd(d, x) for x in raw for s in (1, -1)] + [NAN]


def float_more(d, r, n):
    """Random: of all magnitudes, of everyday ones, and around powers of two."""
    p, emin, emax = ref.FLT[d]
    out = []
    for i in range(n):
        if i % 3 == 0: x = r.choice((-1, 1)) * math.ldexp(1 + r.random(), r.randint(emin - p + 2, emax - 1))
        elif i % 3 == 1: x = r.uniform(-12, 12)
        else: x = r.choice((-1, 1)) * math.ldexp(1 + r.choice((-1, 1)) * math.ldexp(r.randint(0, 9), -p), r.randint(-8, 8))
        out.append(ref.rnd(d, x))
    return out


def edges(d):
    if d == "bool": return [False, True]
    if d in ref.INT: return int_edges(d)
    if d in ref.FLT: return float_edges(d)
    few = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, INF, -INF, NAN]
    return [complex(a, b) for a in few for b in few]


def values(d, n, *key):
    """Edge values first, then random ones."""
    r = rng(d, *key)
    out = list(edges(d))
    if d in ref.CPX: r.shuffle(out)
    while len(out) < n:
        if d == "bool": out.append(r.random() < 0.5)
        elif d in ref.INT:
            lo, hi = ref.irange(d)
            out.append(r.randint(lo, hi) if r.random() < 0.6 else r.randint(max(lo, -20), min(hi, 20)))
        elif d in ref.FLT: out += float_more(d, r, 3)
        else: out.append(complex(*[ref.rnd(part(d), r.uniform(-4, 4)) for _ in range(2)]))
    return out[:n]


def plain(d, n, *key, span=4.0, least=None):
    """Everyday finite values of magnitude up to span, ties among them."""
    r = rng("plain", d, *key)

    def one(t):
        lo = -span if least is None else least
        return ref.rnd(t, r.uniform(lo, span) if r.random() < 0.8 else float(r.randint(math.ceil(lo), int(span))))
    if d == "bool": return [r.random() < 0.6 for _ in range(n)]
    if d in ref.INT:
        lo = max(-int(span), ref.irange(d)[0]) if least is None else int(least)
        return [r.randint(lo, int(span)) for _ in range(n)]
    if d in ref.FLT: return [one(d) for _ in range(n)]
    return [complex(one(part(d)), one(part(d))) for _ in range(n)]


def fill(d, n, *key, special=True):
    """n values: a shuffle of edge and random ones, or everyday ones."""
    if not special: return plain(d, n, *key)
    pool = values(d, max(n, len(edges(d))), *key)
    rng("fill", d, *key).shuffle(pool)
    return pool[:n]


# ---- arguments ---------------------------------------------------------------------------------------------------------------

def b64(d, xs): return base64.b64encode(ref.raw(d, xs)).decode()


def scalar(d, x): return ref.enc(ref.V(d, None, x))


def each(d, xs): return dict(dtype=d, each=b64(d, xs))


def tensor(d, shape, xs):
    n = math.prod(shape)
    if len(xs) < n: raise ValueError(f"{len(xs)} values for the shape {shape}")
    return dict(dtype=d, shape=list(shape), b64=b64(d, list(xs)[:n]))


def laid_out(d, shape, xs, strides, offset):
    """xs cycled through the whole storage: what lies between the elements is no zero either."""
    reach = sum((n - 1) * s for n, s in zip(shape, strides) if s > 0) if math.prod(shape) else 0
    count = offset + reach + 1
    xs = list(xs)
    return dict(dtype=d, shape=list(shape), b64=b64(d, (xs * (count // len(xs) + 1))[:count]), strides=list(strides), offset=offset)


def mirrored(d, shape, xs):
    """Negative strides, gaps, an odd offset."""
    strides = [2 * s for s in ref.strides_of(shape)]
    offset = 3
    for axis in range(0, len(shape), 2):
        offset += (shape[axis] - 1) * strides[axis]
        strides[axis] = -strides[axis]
    return laid_out(d, shape, xs, strides, offset)


def repeated(d, shape, xs):
    """Stride 0 on the first axis."""
    strides = ref.strides_of(shape)
    strides[0] = 0
    return laid_out(d, shape, xs, strides, 1)


def transposed(d, shape, xs):
    return laid_out(d, shape, xs, ref.strides_of(shape[::-1])[::-1], 0)


# ---- cases -------------------------------------------------------------------------------------------------------------------

# Complex ops whose every step is fixed: their bits are.
CPX_OPS_EXACT = set("add sub mul div eq ne select cast reciprocal real imag conj neg lerp addcmul isnan isinf isfinite land lor lnot complex".split())


class Spec:
    """A program with its runs; the reference evaluator makes a case of it.

    params: (name, type); lines: statements; outs: names; runs: argument lists; tol: result dtype -> tolerance, or a list of
    tolerances; indexed: index errors are part of what is expected."""

    def __init__(self, form, params, lines, outs, runs, tol, indexed=False):
        self.form, self.outs, self.runs, self.tol, self.indexed = form, outs, runs, tol, indexed
        head = ", ".join(f"%{n}: {t}" for n, t in params)
        self.program = f"fusion @cell({head}) {{\n" + "".join(f"  {line}\n" for line in lines) + f"  return {', '.join('%' + o for o in outs)}\n}}\n"

    def evaluate(self, args):
        """The outputs as encoded values; raises ref.RefError."""
        fusion = ref.parse(self.program)[0]
        ref.check(fusion)
        if any("each" in a for a in args):
            columns = [ref.unraw(a["dtype"], base64.b64decode(a["each"])) for a in args]
            rows = [ref.evaluate(fusion, [ref.V(a["dtype"], None, x) for a, x in zip(args, row)], ref.Run(False)) for row in zip(*columns)]
            return [each(column[0].dtype, [v.data for v in column]) for column in zip(*rows)]
        given = [ref.dec(a) for a in args]
        try: ref.bind(fusion, given)
        except ref.RefError as e: raise ref.compile_error(fusion) or e
        result = ref.evaluate(fusion, given, ref.Run(False))
        self.met_index_error = result.index_error is not None
        return [ref.enc(v) for v in result]

    def is_refused(self):
        try: self.evaluate(self.runs[0])
        except ref.RefError as e:
            return e.stage == "compile"
        return False

    def case(self, name, has):
        """has: what a refusal must name."""
        out = dict(id=name, program=self.program)
        done = []
        for args in self.runs:
            try:
                done.append(dict(args=args, expect=self.evaluate(args)))
                if self.indexed: done[-1]["index_error"] = self.met_index_error
            except ref.RefError as e:
                if len(self.runs) > 1: raise ValueError(f"{name}: a run of several fails: {e}\n{self.program}") from None
                return dict(out, args=args, expect=dict(error=dict(stage=e.stage, has=has if e.stage == "compile" else has[:1])))
        if self.tol is None: raise ValueError(f"{name}: must be refused\n{self.program}")
        tol = self.tol if isinstance(self.tol, list) else [self.tol(v["dtype"]) for v in done[0]["expect"]]
        out["tol"] = tol[0] if all(t == tol[0] for t in tol) else tol
        return dict(out, **done[0]) if len(done) == 1 else dict(out, runs=done)
