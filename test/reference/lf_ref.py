#!/usr/bin/env python3
"""Reference evaluator for the fusion language: an executable reading of its specification.

The oracle of test/conformance: gen_cells.py takes the expected values of its cases from here. It was written apart from the
compiler, from the specification alone, and stays so: it shares no code and no table with lib/, and a difference between the two is
settled by docs/language.md, not by copying one to the other. Where that page contradicted this file, the line is marked "Amended:"
(README.md beside this file gives the sentences). "section N" below counts the specification's own sections (1 text form,
2 types, 3 where a value lives, 4 promotion, constants, exactness, 5 no op traps, 6 ops, 7 run-time errors); docs/language.md says the
same in more words.

Written to be right and easy to follow, not fast. It is pure Python (mpmath is its only dependency), shares no code with any compiler,
and is meant as an oracle: what it prints is what a program means in exact mode.

  * Elementwise arithmetic, conversions and integer ops are exact: the true value, rounded as section 4 says.
  * Functions (exp, sin, lgamma, ...) are computed with 240 bits and rounded once to f32 or f64. An implementation may be
    2 ulp away (4 for pow and tgamma; lgamma and digamma 4 ulp or 1e-6); everything else must agree bit for bit.
  * Float sums and products follow the canonical order of section 4, so sum, prod, mean, var, std, norm, softmax and the norms
    are bit-defined as far as the functions in them are.
  * Scans and matmul of floats, whose order is free, are computed exactly and rounded once.

Command line:
    lf_ref.py FILE.jsonl[.gz] ...                 check conformance cases; print those whose expectation differs
    lf_ref.py --run PROG.lf NAME=VALUE ...        run a program, print its outputs as JSON
        VALUE: 3, -1.5, inf, true (scalars); 1+2j (complex); iota(2,3), full(2,3;1.5), rand(2,3), rand(2,3;SEED) or a nested
        list [[1,2],[3,4]] (tensors of the parameter's dtype; iota() and full(;1.5) have rank 0)

As a module: run(text, args) takes a list of V and returns a Result, a list of V with these attributes:
    index_error   None, or the text of the first index error (section 5: such a run still gives all its outputs)
    classes       for each output 'host', 'device' or 'pending' (section 3)
A program that must be refused raises RefError; its .stage is 'compile' or 'run'. Compile errors are found as evaluation reaches
them, so a program with two faults may show the run-time one first.

Where language.md leaves a choice open, the choice made here is marked "Choice:".
"""
import base64, ctypes, gzip, itertools, json, math, random, re, struct, sys
import cmath, operator
from fractions import Fraction as Fr
import mpmath
from mpmath import mpf as M
mpmath.mp.prec = 240

# ================================================================================================ 1. dtypes and rounding
INT = {"i8": (8, 1), "i16": (16, 1), "i32": (32, 1), "i64": (64, 1), "u8": (8, 0), "u16": (16, 0), "u32": (32, 0), "u64": (64, 0)}  # bits, signed
FLT = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}  # precision, least and greatest exponent
CPX = {"c64": "f32", "c128": "f64"}
DTYPES = ["bool", *INT, *FLT, *CPX]
SIZE = {"bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "bf16": 2, "i32": 4, "u32": 4, "f32": 4,
        "i64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16}                                      # bytes
ACC = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64"}  # what a float type computes in
NAN, INF = float("nan"), float("inf")
QUIET = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000, "f64": 0x7FF8000000000000}         # the canonical NaN


class RefError(Exception):
    """The program must be refused; stage is 'compile' or 'run'."""
    def __init__(self, stage, message):
        super().__init__(message)
        self.stage = stage


def cerr(message): raise RefError("compile", message)
def rerr(message): raise RefError("run", message)


class BitNaN(float):
    """A NaN that came in with bits of its own. Moves keep the object, and so its bits; arithmetic gives an ordinary NaN."""
    def __new__(cls, bits):
        x = float.__new__(cls, "nan")
        x.bits = bits
        return x


def category(dt): return 0 if dt == "bool" else 1 if dt in INT else 2 if dt in FLT else 3
def wrap(dt, n):
    bits, signed = INT[dt]
    n &= (1 << bits) - 1
    return n - (1 << bits) if signed and n >> (bits - 1) else n
def irange(dt):
    bits, signed = INT[dt]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)

# ---- rounding a double
def r64(x): return x
def r32(x): return ctypes.c_float(x).value
def r16(x):
    try: return struct.unpack("<e", struct.pack("<e", x))[0]
    except OverflowError: return math.copysign(INF, x)
def rbf16(x):
    if x != x or x == 0: return x
    if abs(x) >= 2.0 ** 128: return math.copysign(INF, x)
    unit = max(math.frexp(x)[1] - 1, -126) - 7
    y = math.ldexp(round(math.ldexp(abs(x), -unit)), unit)
    return math.copysign(INF if y >= 2.0 ** 128 else y, x)
ROUND = {"f64": r64, "f32": r32, "f16": r16, "bf16": rbf16}
def rnd(dt, x): return ROUND[dt](x)

# ---- rounding an exact value once, half to even
def round_scaled(dt, man, exp):
    """man * 2^exp (man > 0) rounded to dt."""
    p, emin, emax = FLT[dt]
    unit = max(man.bit_length() - 1 + exp, emin) - p + 1
    shift = unit - exp
    if shift <= 0: n = man << -shift
    else:
        n, rest, half = man >> shift, man & ((1 << shift) - 1), 1 << (shift - 1)
        if rest > half or (rest == half and n & 1): n += 1
    return INF if n and n.bit_length() - 1 + unit > emax else math.ldexp(n, unit)
def rndq(dt, q):
    """An exact rational, rounded once."""
    if q == 0: return 0.0
    num, den = abs(q.numerator), q.denominator
    k = max(0, 80 - num.bit_length() + den.bit_length())
    n, rest = divmod(num << k, den)                       # at least 79 bits; the last bit added below says whether more follow
    y = round_scaled(dt, n << 1 | (rest != 0), -k - 1)
    return -y if q < 0 else y
def rndm(dt, m):
    """A 240-bit result, rounded once. It is cut to 170 bits first, so that a value that lies exactly between two floats is seen as one."""
    if mpmath.isnan(m): return NAN
    if mpmath.isinf(m): return INF if m > 0 else -INF
    sign, man, exp, bits = M(m)._mpf_
    man, exp = int(man), int(exp)
    if man == 0: return 0.0
    if exp + bits > 1100: y = INF
    elif exp + bits < -1200: y = 0.0
    else:
        if bits > 170:
            cut = bits - 170
            man, exp = (man + (1 << (cut - 1))) >> cut, exp + cut
        y = round_scaled(dt, man, exp)
    return -y if sign else y
def int_to_float(dt, n):
    if abs(n) < 1 << 53: return rnd(dt, float(n))
    y = round_scaled(dt, abs(n), 0)
    return -y if n < 0 else y

# ---- bits
PACK = {"bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d", "f16": "e"}
def to_bits(dt, v):
    if dt == "bool": return int(v)
    if dt in INT: return v & ((1 << INT[dt][0]) - 1)
    if dt in CPX:
        part = CPX[dt]
        return to_bits(part, v.real) | to_bits(part, v.imag) << 8 * SIZE[part]
    if v != v: return v.bits if isinstance(v, BitNaN) else QUIET[dt]
    if dt == "bf16": return struct.unpack("<I", struct.pack("<f", v))[0] >> 16
    return int.from_bytes(struct.pack("<" + PACK[dt], v), "little")
def from_bits(dt, n):
    if dt == "bool": return n != 0
    if dt in INT: return wrap(dt, n)
    if dt in CPX:
        part = CPX[dt]; w = 8 * SIZE[part]
        return complex(from_bits(part, n & ((1 << w) - 1)), from_bits(part, n >> w))
    if dt == "bf16": v = struct.unpack("<f", struct.pack("<I", n << 16))[0]
    else: v = struct.unpack("<" + PACK[dt], n.to_bytes(SIZE[dt], "little"))[0]
    return v if v == v else NAN if n == QUIET[dt] else BitNaN(n)

def cast(src, dst, v):
    """Converts one element (sections 4 and 5): every conversion rounds once."""
    if src == dst: return v
    if dst == "bool": return v != 0
    if src in CPX:
        if dst in CPX: return complex(rnd(CPX[dst], v.real), rnd(CPX[dst], v.imag))
        return cast(CPX[src], dst, v.real)
    if dst in CPX: return complex(cast(src, CPX[dst], v), 0.0)
    if src in FLT:
        if v != v: return 0 if dst in INT else NAN
        if dst in FLT: return rnd(dst, v)
        lo, hi = irange(dst)
        return lo if v <= lo else hi if v >= hi else int(v)
    return wrap(dst, int(v)) if dst in INT else int_to_float(dst, int(v))


# ================================================================================================ 2. values and promotion
class V:
    """A value. shape None: a host scalar, data is its element. Otherwise a tensor, data is the flat row-major list of its elements.

    lit      the exact value of a literal: bool, int, Fraction, or a float for inf, nan and -0.0
    host     a rank-0 tensor in host memory
    pending  for a pending scalar: the `item` that it comes from
    named    the axes that a named dim gives: they never broadcast
    strides  of a parameter, in elements, when they are not the contiguous ones
    scalar   for a `scalar_tensor`: its scalar, since item (scalar_tensor %s) is %s
    plus     for `add %s, constant`: (%s, constant), since a slice may run from a pending %s to %s + constant
    """
    __slots__ = ("dtype", "shape", "data", "lit", "name", "host", "pending", "named", "strides", "scalar", "plus")
    def __init__(self, dtype, shape, data, lit=None, name=None, host=False, pending=None, named=frozenset(), strides=None, scalar=None, plus=None):
        self.dtype, self.data, self.lit, self.name, self.host, self.pending = dtype, data, lit, name, host, pending
        self.shape = None if shape is None else tuple(shape)
        self.named, self.strides, self.scalar, self.plus = named, strides, scalar, plus
    def __repr__(self): return f"{self.dtype}{'' if self.shape is None else list(self.shape)} {self.data}"
    def copy(self, **new): return V(**{**{k: getattr(self, k) for k in V.__slots__}, **new})
    @property
    def cls(self): return "pending" if self.pending else "host" if self.shape is None or self.host else "device"

def numel(shape): return math.prod(shape)
def is_tensor(vs): return any(v.shape is not None for v in vs)
def label(v): return v.name or "the value"
def strides_of(shape):
    st, n = [], 1
    for d in reversed(shape):
        st.append(n)
        n *= max(d, 1)
    return st[::-1]
def positions(shape): return itertools.product(*map(range, fitting(shape))) if numel(shape) else iter(())
LIMIT = 1 << 26
def fitting(shape):
    """The shape, unless it is beyond what this evaluator can hold."""
    if numel(shape) > LIMIT: rerr(f"{list(shape)} has {numel(shape)} elements, the reference evaluator holds at most {LIMIT}")
    return shape

def literal(x, name=None):
    """A literal on its own is i64 (u64 from 2^63 on), f64 or bool."""
    if isinstance(x, bool): return V("bool", None, x, x, name)
    if isinstance(x, int):
        return V("u64" if x >= 1 << 63 else "i64", None, x, x, name)
    return V("f64", None, literal_to("f64", x, name), x, name)
def literal_to(dt, x, name=None):
    """The exact literal x in dtype dt: rounded once, or an error where it does not fit an integer."""
    if dt == "bool": return x != 0
    if dt in INT:
        lo, hi = irange(dt)
        if isinstance(x, float) and x == 0: x = 0
        if isinstance(x, float) or x != int(x) or not lo <= x <= hi: cerr(f"the literal {name or x} does not fit {dt}")
        return int(x)
    if dt in CPX: return complex(literal_to(CPX[dt], x), 0.0)
    return x if isinstance(x, float) else rndq(dt, Fr(x))

def join(a, b):
    """The lattice."""
    if a == b: return a
    if category(a) > category(b): a, b = b, a
    ca, cb = category(a), category(b)
    if cb == 3: return "c128" if "c128" in (a, b) or a == "f64" else "c64"
    if cb == 2: return b if ca < 2 else "f64" if "f64" in (a, b) else "f32"
    if ca == 0: return b
    (x, s), (y, t) = INT[a], INT[b]
    if s == t: return a if x > y else b
    unsigned, signed = (y, x) if s else (x, y)
    if unsigned < signed: return f"i{signed}"
    if unsigned == 64: cerr(f"{a} and {b} have no common integer type: cast one of them")
    return f"i{2 * unsigned}"
def join_all(ds):
    d = ds[0]
    for x in ds[1:]: d = join(d, x)
    return d

def result_type(vs, tensor=None):
    """Promotion. tensor: whether the result is one, where other operands than vs decide that.

    Choice: a literal has no dtype of its own beside a typed scalar (add %i32, 1 is i32); it only brings its category.
    """
    if tensor is None: tensor = is_tensor(vs)
    top = max(category(v.dtype) for v in vs)
    tiers = [[v.dtype for v in vs if v.shape], [v.dtype for v in vs if v.shape == ()]]
    scalars = [v.dtype for v in vs if v.shape is None and v.lit is None]
    literals = [v.dtype for v in vs if v.lit is not None]
    if not tensor:                                              # scalars alone use the lattice
        if not scalars: return join_all(literals)
        d = join_all(scalars)
        return d if category(d) == top else join_all([x for x in literals if category(x) == top])
    for i, tier in enumerate(tiers):
        ds = [d for d in tier if category(d) == top]
        if ds: return "c128" if top == 3 and any("f64" in higher for higher in tiers[:i + 1]) else join_all(ds)
    return ("bool", "i64", "f32", "c128" if "f64" in tiers[0] + tiers[1] else "c64")[top]
def float_type(vs, tensor=None):
    """The dtype of an op that needs a float."""
    d = result_type(vs, tensor)
    return d if category(d) >= 2 else "f32" if (is_tensor(vs) if tensor is None else tensor) else "f64"

def conv(v, dt):
    """v converted once to dt."""
    if v.lit is not None: return v.copy(dtype=dt, data=literal_to(dt, v.lit, v.name), lit=None)
    if v.dtype == dt: return v
    data = cast(v.dtype, dt, v.data) if v.shape is None else [cast(v.dtype, dt, x) for x in v.data]
    return v.copy(dtype=dt, data=data, strides=None, scalar=None, plus=None)

# ---- broadcasting
def bshape(op, vs):
    """The broadcast shape, and which of its axes come from a named dim.

    Choice: an extent that is 1 by type (f32[1], keepdim, unsqueeze) broadcasts as in NumPy; one that a named dim gives does not."""
    vs = [v for v in vs if v.shape is not None]
    rank = max((len(v.shape) for v in vs), default=0)
    out, owner, named = [1] * rank, [None] * rank, set()
    for v in vs:
        for i, n in enumerate(v.shape, rank - len(v.shape)):
            is_named = i - rank + len(v.shape) in v.named
            if owner[i] is not None and n != out[i]:
                stretch_old, stretch_new = out[i] == 1 and i not in named, n == 1 and not is_named
                if not (stretch_old or stretch_new):
                    why = " (a named dim does not broadcast)" if 1 in (n, out[i]) else ""
                    rerr(f"{label(owner[i])} and {label(v)} do not broadcast: axis {i} has extents {out[i]} and {n}{why}")
            if owner[i] is None or out[i] == 1: out[i], owner[i] = n, v
            if is_named: named.add(i)
    return tuple(out), frozenset(named)
def bdata(v, shape):
    """The elements of v broadcast to shape, as a flat list."""
    fitting(shape)
    if v.shape is None: return [v.data] * numel(shape)
    if v.shape == tuple(shape): return v.data
    if numel(v.shape) == 1: return [v.data[0]] * numel(shape)
    st = [0] * (len(shape) - len(v.shape)) + [0 if d == 1 else s for d, s in zip(v.shape, strides_of(v.shape))]
    return [v.data[sum(map(operator.mul, ix, st))] for ix in positions(shape)]
def ew(op, vs, out, f, move=False):
    """Applies f to the elements of vs under broadcasting. move: f hands elements on, so that NaNs keep their bits."""
    if out in FLT and not move:
        g = f
        f = lambda *t: y if (y := g(*t)) == y else NAN
    if not is_tensor(vs): return V(out, None, f(*[v.data for v in vs]), pending=next((v.pending for v in vs if v.pending), None))
    shape, named = bshape(op, vs)
    on_host = all(v.host if v.shape is not None else not v.pending for v in vs)
    return V(out, shape, [f(*t) for t in zip(*[bdata(v, shape) for v in vs])], host=on_host, named=named)
def in_acc(d, f):
    """f(type, elements...) made to compute in the type that d computes in and to round once to d."""
    t = ACC[d]
    if t == d or d in CPX: return lambda *x: f(t, *x)
    r = ROUND[d]
    return lambda *x: r(f(t, *x))


# ================================================================================================ 3. real functions
# f_name(t, ...): t is 'f32' or 'f64', the arguments are values of t, the result is rounded to t.
def fdiv(a, b):
    """IEEE division of doubles."""
    if b == 0: return NAN if a == 0 or a != a else math.copysign(INF, a) * math.copysign(1.0, b)
    return a / b
# A sum, product, quotient or root of two f32 values, taken in f64 and rounded to f32, is rounded correctly: 53 >= 2 * 24 + 2.
def f_add(t, a, b): return ROUND[t](a + b)
def f_sub(t, a, b): return ROUND[t](a - b)
def f_mul(t, a, b): return ROUND[t](a * b)
def f_div(t, a, b): return ROUND[t](fdiv(a, b))
def f_sqrt(t, x): return NAN if x != x or x < 0 else ROUND[t](math.sqrt(x))
def f_fmod(t, a, b): return NAN if a != a or b != b or math.isinf(a) or b == 0 else math.fmod(a, b)
def f_mod(t, a, b):
    m = f_fmod(t, a, b)
    if m == 0: return math.copysign(0.0, b)
    return ROUND[t](m + b) if (m < 0) != (b < 0) else m
def f_quotient(way):
    """floordiv, truncdiv, ceildiv: m = fmod(a, b), q = (a - m) / b, adjusted by 1, rounded to the nearest integer (Choice: ties to even)."""
    def f(t, a, b):
        if b == 0: return fdiv(a, b)
        m, r = f_fmod(t, a, b), ROUND[t]
        q = r(fdiv(r(a - m), b))
        if m != 0:
            same = (m < 0) == (b < 0)
            if way == "floordiv" and not same: q = r(q - 1.0)
            if way == "ceildiv" and same: q = r(q + 1.0)
        q = f_round(q)
        return q if q != 0 else math.copysign(0.0, a) * math.copysign(1.0, b)
    return f
def f_max(t, a, b):
    if a != a or b != b: return NAN
    return a if a > b or (a == b and math.copysign(1, a) > 0) else b
def f_min(t, a, b):
    if a != a or b != b: return NAN
    return a if a < b or (a == b and math.copysign(1, a) < 0) else b
def f_fmax(t, a, b): return b if a != a else a if b != b else f_max(t, a, b)
def f_fmin(t, a, b): return b if a != a else a if b != b else f_min(t, a, b)
def f_copysign(t, a, b): return math.copysign(a, 1.0 if b != b else b)
def f_round(x): return x if not math.isfinite(x) else math.copysign(float(round(x)), x)
def f_trunc(x): return x if not math.isfinite(x) else math.copysign(float(math.trunc(x)), x)
def f_floor(x): return x if not math.isfinite(x) or x == 0 else float(math.floor(x))
def f_ceil(x): return x if not math.isfinite(x) else math.copysign(float(math.ceil(x)), x)
def f_frac(t, x): return ROUND[t](x - f_trunc(x))
def f_sign(x): return x if x != x else float((x > 0) - (x < 0))
def f_relu(x): return x if x != x or x > 0 else 0.0
def f_nextafter(d, a, b):
    """The neighbour of a towards b in d itself."""
    if a != a or b != b: return NAN
    if a == b: return b
    if a == 0: return math.copysign(from_bits(d, 1), b)
    n, top = to_bits(d, a), 1 << (8 * SIZE[d] - 1)
    return from_bits(d, (n & ~top) + (1 if (b > a) == (a > 0) else -1) | (n & top))
def f_fma(d, a, b, c):
    """a * b + c rounded once to d, halves included."""
    if not (math.isfinite(a) and math.isfinite(b)): return a * b + c
    if not math.isfinite(c): return c
    product = Fr(a) * Fr(b)
    q = product + Fr(c)
    if q: return rndq(d, q)
    return 0.0 if product else math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b)) + c
def f_ldexp(t, x, n):
    """x * 2^n rounded once; n may be any float."""
    if x != x or n != n: return NAN
    if math.isinf(n): return x * (INF if n > 0 else 0.0)
    if x == 0 or math.isinf(x): return x
    n = max(-5000.0, min(5000.0, n))
    return rndm(t, M(x) * M(2) ** (M(int(n)) if n == int(n) else M(n)))
def f_lerp(t, a, b, w):
    r = ROUND[t]; d = r(b - a)
    return r(a + r(w * d)) if w < 0.5 else r(b - r(d * r(1.0 - w)))
def f_addcmul(t, x, a, b, v):
    r = ROUND[t]
    return r(x + r(r(v * a) * b))

# ---- functions through mpmath
def lgamma(x):
    if x <= 0 and x == math.floor(x): return INF
    if x > 0: return mpmath.loggamma(M(x))
    return mpmath.log(mpmath.pi / abs(mpmath.sin(mpmath.pi * M(x)))) - mpmath.loggamma(1 - M(x))
def tgamma(x):
    if x == 0: return math.copysign(INF, x)
    if x < 0 and x == math.floor(x): return NAN
    if x > 2000: return INF
    if x < -2000: return -0.0 if math.floor(x) % 2 else 0.0
    return mpmath.gamma(M(x))
def digamma(x):
    if x == 0: return math.copysign(INF, -x)
    if x < 0 and x == math.floor(x): return NAN
    return mpmath.digamma(M(x))
def cut(f, lo, hi, limit=20000.0):
    """f, or its limits lo and hi where the argument is beyond what any dtype could tell apart."""
    return lambda x: hi if x > limit else lo if x < -limit else f(M(x))
ROOT_2_PI = mpmath.sqrt(2 / mpmath.pi)
MATH = {
    "cbrt": lambda x: mpmath.cbrt(M(x)) if x >= 0 else -mpmath.cbrt(-M(x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(M(x)),
    "exp": cut(mpmath.exp, 0.0, INF), "exp2": cut(lambda x: M(2) ** x, 0.0, INF), "expm1": cut(mpmath.expm1, -1.0, INF),
    "log": lambda x: mpmath.log(M(x)), "log2": lambda x: mpmath.log(M(x)) / mpmath.log(2), "log10": lambda x: mpmath.log(M(x)) / mpmath.log(10),
    "log1p": lambda x: mpmath.log1p(M(x)),
    "sin": lambda x: mpmath.sin(M(x)), "cos": lambda x: mpmath.cos(M(x)), "tan": lambda x: mpmath.tan(M(x)),
    "asin": lambda x: mpmath.asin(M(x)), "acos": lambda x: mpmath.acos(M(x)), "atan": lambda x: mpmath.atan(M(x)),
    "sinh": cut(mpmath.sinh, -INF, INF), "cosh": cut(mpmath.cosh, INF, INF), "tanh": cut(mpmath.tanh, -1.0, 1.0),
    "asinh": lambda x: mpmath.asinh(M(x)), "acosh": lambda x: mpmath.acosh(M(x)), "atanh": lambda x: mpmath.atanh(M(x)),
    "erf": lambda x: mpmath.erf(M(x)), "erfc": cut(mpmath.erfc, 2.0, 0.0), "erfinv": lambda x: mpmath.erfinv(M(x)),
    "lgamma": lgamma, "tgamma": tgamma, "digamma": digamma,
    "sigmoid": cut(lambda x: 1 / (1 + mpmath.exp(-x)), 0.0, 1.0),
}
DOMAIN = {"rsqrt": (0, INF), "log": (0, INF), "log2": (0, INF), "log10": (0, INF), "log1p": (-1, INF), "asin": (-1, 1), "acos": (-1, 1),
          "acosh": (1, INF), "atanh": (-1, 1), "erfinv": (-1, 1)}
AT_INF = {  # at -inf and at +inf; NaN where absent
    "cbrt": (-INF, INF), "rsqrt": (NAN, 0.0), "exp": (0.0, INF), "exp2": (0.0, INF), "expm1": (-1.0, INF), "log": (NAN, INF), "log2": (NAN, INF),
    "log10": (NAN, INF), "log1p": (NAN, INF), "sinh": (-INF, INF), "cosh": (INF, INF), "tanh": (-1.0, 1.0), "asinh": (-INF, INF),
    "acosh": (NAN, INF), "erf": (-1.0, 1.0), "erfc": (2.0, 0.0), "lgamma": (INF, INF), "tgamma": (NAN, INF), "digamma": (NAN, INF),
    "sigmoid": (0.0, 1.0)}
ODD = {"cbrt", "expm1", "log1p", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "erfinv"}   # f(+-0) = +-0
def f_math(t, name, x):
    """The function, correctly rounded to t."""
    if x != x: return NAN
    if name in DOMAIN:
        lo, hi = DOMAIN[name]
        if x < lo or x > hi: return NAN
        if x == lo and name.startswith("log"): return -INF
        if x == 0 and name == "rsqrt": return math.copysign(INF, x)
        if abs(x) == 1 and name in ("atanh", "erfinv"): return math.copysign(INF, x)
    if math.isinf(x):
        if name == "atan": return math.copysign(rndm(t, mpmath.pi / 2), x)
        return AT_INF.get(name, (NAN, NAN))[x > 0]
    if x == 0 and name in ODD: return x
    y = MATH[name](x)
    r = ROUND[t](y) if isinstance(y, float) else rndm(t, y)
    return math.copysign(r, x) if r == 0 and name in ODD else r
def f_pow(t, a, b):
    if b == 0 or a == 1: return 1.0
    if a != a or b != b: return NAN
    odd = math.isfinite(b) and b == math.floor(b) and math.fmod(b, 2) != 0
    if a == 0:
        r = 0.0 if b > 0 else INF
        return math.copysign(r, a) if odd else r
    if math.isinf(b): return 1.0 if abs(a) == 1 else INF if (abs(a) > 1) == (b > 0) else 0.0
    if math.isinf(a):
        r = INF if b > 0 else 0.0
        return -r if odd and a < 0 else r
    if a < 0 and b != math.floor(b): return NAN
    size = float(mpmath.log(abs(M(a)), 2) * M(b))
    r = INF if size > 1200 else 0.0 if size < -1300 else rndm(t, mpmath.power(abs(M(a)), M(b)))
    return -r if odd and a < 0 else r
def f_hypot(t, a, b):
    if math.isinf(a) or math.isinf(b): return INF
    return NAN if a != a or b != b else rndm(t, mpmath.sqrt(M(a) ** 2 + M(b) ** 2))
def f_atan2(t, y, x):
    if x != x or y != y: return NAN
    if y == 0: turn = 0 if math.copysign(1, x) > 0 else 4              # in eighths of a turn
    elif math.isinf(y): turn = 2 if math.isfinite(x) else 1 if x > 0 else 3
    elif math.isinf(x): turn = 0 if x > 0 else 4
    elif x == 0: turn = 2
    else:
        r = rndm(t, mpmath.atan2(M(y), M(x)))
        return math.copysign(r, y)
    return math.copysign(rndm(t, mpmath.pi * turn / 4), y)
def f_softplus(t, x): return x if x > 20 else f_math(t, "log1p", f_math(t, "exp", x))

# ---- integers: exact; the caller wraps
def i_floordiv(a, b): return -1 if b == 0 else a // b
def i_ceildiv(a, b): return -1 if b == 0 else -(-a // b)
def i_truncdiv(a, b): return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
def i_mod(a, b): return a if b == 0 else a % b
def i_fmod(a, b): return a if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)
def i_pow(a, b):
    if b >= 0: return pow(a, b, 1 << 64)
    return 1 if a == 1 else (-1 if b & 1 else 1) if a == -1 else 0
def i_shift(name, d, a, n):
    """The value a of dtype d shifted by the true value n."""
    bits = INT[d][0]
    if not 0 <= n < bits: return -1 if name == "shr" and a < 0 else 0
    if name == "shl": return wrap(d, a << n)
    return a >> n if name == "shr" else wrap(d, (a & ((1 << bits) - 1)) >> n)


# ================================================================================================ 4. complex functions
# c_name(t, ...): t is the component type.
def c_each(t, re, im): return complex(ROUND[t](re), ROUND[t](im))
def c_add(t, a, b): return c_each(t, a.real + b.real, a.imag + b.imag)
def c_sub(t, a, b): return c_each(t, a.real - b.real, a.imag - b.imag)
def c_mul(t, a, b):
    r = ROUND[t]
    return complex(r(r(a.real * b.real) - r(a.imag * b.imag)), r(r(a.real * b.imag) + r(a.imag * b.real)))
def c_div(t, a, b):
    """Smith's division."""
    r, div = ROUND[t], lambda p, q: ROUND[t](fdiv(p, q))
    if abs(b.real) >= abs(b.imag):
        ratio = div(b.imag, b.real); den = r(b.real + r(b.imag * ratio))
        return complex(div(r(a.real + r(a.imag * ratio)), den), div(r(a.imag - r(a.real * ratio)), den))
    ratio = div(b.real, b.imag); den = r(r(b.real * ratio) + b.imag)
    return complex(div(r(r(a.real * ratio) + a.imag), den), div(r(r(a.imag * ratio) - a.real), den))
def c_round(t, w):
    """Rounds the parts; one that is zero but for the error of 240 bits becomes zero."""
    re, im = w.real, w.imag
    if abs(re) < abs(im) * M(2) ** -200: re = M(0)
    if abs(im) < abs(re) * M(2) ** -200: im = M(0)
    return complex(rndm(t, re), rndm(t, im))
def c_log(t, z, base):
    """log |z| + i * angle(z), divided by log(base); the sign of a zero part tells the side of the cut."""
    scale = 1 / mpmath.log(base) if base else M(1)
    angle = mpmath.atan2(abs(M(z.imag)), M(z.real)) if z.imag else mpmath.pi if math.copysign(1, z.real) < 0 else M(0)
    size = -INF if z == 0 else rndm(t, mpmath.log(mpmath.mpc(z)).real * scale)
    return complex(size, math.copysign(rndm(t, angle * scale), z.imag))
def c_sqrt_exact(z):
    w = mpmath.sqrt(mpmath.mpc(z))
    return mpmath.conj(w) if math.copysign(1, z.imag) < 0 and w.imag > 0 else w
CMATH = {
    "exp": mpmath.exp, "exp2": lambda w: mpmath.exp(w * mpmath.log(2)), "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "sinh": mpmath.sinh,
    "cosh": mpmath.cosh, "tanh": mpmath.tanh, "sigmoid": lambda w: 1 / (1 + mpmath.exp(-w))}
C_SPECIAL = {  # where a part is not finite: C99 annex G, through cmath
    "exp": cmath.exp, "exp2": lambda z: cmath.exp(z * math.log(2)), "sin": cmath.sin, "cos": cmath.cos, "tan": cmath.tan,
    "sinh": cmath.sinh, "cosh": cmath.cosh, "tanh": cmath.tanh, "sigmoid": lambda z: 1 / (1 + cmath.exp(-z)),
    "sqrt": cmath.sqrt, "rsqrt": lambda z: 1 / cmath.sqrt(z), "log": cmath.log, "log2": lambda z: cmath.log(z) / math.log(2), "log10": lambda z: cmath.log10(z)}
def c_finite(z): return math.isfinite(z.real) and math.isfinite(z.imag)
def c_math(t, name, z):
    if not c_finite(z):
        try: w = C_SPECIAL[name](z)
        except (ValueError, OverflowError, ZeroDivisionError): w = complex(NAN, NAN)
        return c_each(t, w.real, w.imag)
    if name.startswith("log"): return c_log(t, z, {"log": None, "log2": 2, "log10": 10}[name])
    if name == "sqrt":
        w = c_sqrt_exact(z)
        return complex(rndm(t, w.real), math.copysign(rndm(t, w.imag), z.imag))
    if name == "rsqrt": return complex(NAN, NAN) if z == 0 else c_round(t, 1 / c_sqrt_exact(z))
    try: w = CMATH[name](mpmath.mpc(z))
    except ZeroDivisionError: return complex(NAN, NAN)
    return c_round(t, w)
def c_pow(t, a, b):
    if b == 0: return complex(1.0, 0.0)
    if a == 0: return complex(0.0, 0.0) if b.real > 0 else complex(NAN, NAN)
    if not (c_finite(a) and c_finite(b)): return complex(NAN, NAN)
    log = mpmath.log(mpmath.mpc(a))
    if math.copysign(1, a.imag) < 0 and log.imag > 0: log = mpmath.conj(log)
    return c_round(t, mpmath.exp(mpmath.mpc(b) * log))
def c_lerp(t, a, b, w):
    """Choice: w counts as small where |w|^2 < 0.25."""
    d = c_sub(t, b, a)
    if w.real * w.real + w.imag * w.imag < 0.25: return c_add(t, a, c_mul(t, w, d))
    return c_sub(t, b, c_mul(t, d, c_sub(t, 1 + 0j, w)))
def c_addcmul(t, x, a, b, v): return c_add(t, x, c_mul(t, c_mul(t, v, a), b))


# ================================================================================================ 5. the op table
OPS = {}   # (name, number of operands; None: any from 1 on) -> (function, names of its attributes)
SHAPE_OPS = set("reshape permute transpose broadcast expand squeeze unsqueeze flip slice pad cat stack repeat roll triu tril".split())
COMPLEX_OPS = SHAPE_OPS | set("""add sub mul div eq ne select full cast exp exp2 log log2 log10 sqrt rsqrt reciprocal sin cos tan sinh cosh
    tanh sigmoid pow abs angle real imag conj neg lerp addcmul isnan isinf isfinite land lor lnot sum prod mean var std var_mean cumsum cumprod
    any all count_nonzero matmul linear take gather index scatter size stride numel item scalar_tensor""".split())

def op(names, count, attrs=""):
    """Registers f(c) for ops of these names with this number of operands; c is the Call."""
    def deco(f):
        for n in names.split(): OPS[n, count] = (f, frozenset(attrs.split()))
        return f
    return deco
def find_op(name, count):
    entry = OPS.get((name, count)) or (OPS.get((name, None)) if count else None)
    if entry: return entry
    counts = sorted(n for o, n in OPS if o == name and n is not None)
    if counts: cerr(f"{name} takes {' or '.join(map(str, counts))} operands, found {count}")
    cerr(f"{name} takes at least one operand, found none" if (name, None) in OPS else f"unknown op {name}")


def told(v):
    """What an operand is, for messages."""
    return "none" if v is None else "a list" if isinstance(v, list) else f"{label(v)}: {describe(v.dtype, v.shape)}" if isinstance(v, V) else str(v)
def describe(dtype, dims): return dtype if dims is None else f"{dtype}[{', '.join(map(str, dims))}]"

class Call:
    """One op applied to its operands: a is the list of operands (V, None for `none`, list for [...]), k the attributes."""
    def __init__(self, name, a, k, run):
        self.op, self.a, self.k, self.run = name, a, k, run

    # ---- operands
    def value(self, i):
        v = self.a[i]
        if not isinstance(v, V): cerr(f"operand {i + 1} must be a value, found {told(v)}")
        return v
    def values(self): return [self.value(i) for i in range(len(self.a))]
    def tensor(self, i):
        v = self.value(i)
        if v.shape is None: cerr(f"{label(v)} is a scalar ({v.dtype}), a tensor is needed")
        return v
    def indices(self, i):
        v = self.tensor(i)
        if v.dtype not in ("i32", "i64"): cerr(f"{label(v)}: indices are i32 or i64, found {v.dtype}")
        return v
    def integer(self, v, what, extent=False):
        """A host or (unless it decides an extent) pending integer scalar."""
        if isinstance(v, int): return v
        if not isinstance(v, V) or v.shape is not None or v.dtype not in INT: cerr(f"{what} must be an integer scalar, found {told(v)}")
        if extent: self.known(v, what)
        return conv(v, v.dtype).data
    def known(self, v, use):
        """v decides an extent or the like, and so must be known on the host before the launch (section 3)."""
        if v.pending and not self.run.allow_sync:
            cerr(f"{use} may not be the pending scalar {label(v)}, which comes from {v.pending}, unless sync points are allowed")
    def integers(self, i, what, extent=False, count=None):
        xs = self.a[i]
        if not isinstance(xs, list): cerr(f"operand {i + 1} must be a list of integers [...]")
        if count is not None and len(xs) != count: cerr(f"{what}: {len(xs)} given for rank {count}")
        return [self.integer(x, what, extent) for x in xs]
    def extents(self, i):
        sizes = self.integers(i, "an extent", True)
        for d in sizes:
            if d < 0: rerr(f"negative size {d}")
        return sizes
    def constant(self, v, what):
        """An integer that must stand in the program as a literal."""
        x = v.lit if isinstance(v, V) else v
        if isinstance(x, bool) or not isinstance(x, int): cerr(f"{what} must be an integer constant")
        return x

    # ---- attributes
    def axis_number(self, x, rank):
        x, r = self.constant(x, "an axis"), max(rank, 1)                  # a rank-0 tensor may be asked for axis 0 or -1
        if not -r <= x < r: cerr(f"axis {x} is outside {-r}..{r - 1}")
        return x % r
    def axes(self, rank, default="all"):
        if "axes" not in self.k:
            if default == "needed": cerr("axes= is missing")
            return list(range(rank)) if default == "all" else default
        xs = self.k["axes"] if isinstance(self.k["axes"], list) else [self.k["axes"]]
        out = [self.axis_number(x, rank) for x in xs]
        for x in out:
            if out.count(x) > 1: cerr(f"axis {x} is named twice")
        return out if rank else []
    def axis(self, rank, default=None):
        if "axis" not in self.k and default is None: cerr("axis= is missing")
        return self.axis_number(self.k.get("axis", default), rank)
    def dtype(self, default=None):
        d = self.k.get("dtype", default)
        if d is None: cerr("dtype= is missing")
        if not isinstance(d, str) or d not in DTYPES: cerr(f"dtype= must be a dtype, found {d}")
        if d in CPX and self.op not in COMPLEX_OPS: cerr(f"{self.op} of {d} is not supported")
        return d
    def flag(self, key):
        v = self.k.get(key, False)
        v = v.lit if isinstance(v, V) else v
        if not isinstance(v, bool): cerr(f"{key}= must be true or false")
        return v
    def word(self, key, default, choices):
        v = self.k.get(key, default)
        if isinstance(v, V): v = v.name                                                   # 1 and inf in ord=
        v = "none" if v is None else v
        if v not in choices: cerr(f"{key}= must be one of {', '.join(choices)}, found {v}")
        return v
    def number(self, key, default, dt):
        """A number attribute as an element of dt."""
        v = self.k.get(key, default)
        v = v if isinstance(v, V) else literal(v)
        if v.shape is not None or v.dtype in CPX: cerr(f"{key}= must be a real scalar")
        return conv(v, dt).data

    def index(self, i, n):
        """The place of index i in an extent n, or None after noting an index error (section 5)."""
        j = i + n if i < 0 else i
        if 0 <= j < n: return j
        self.run.index_errors.append(f"{self.where}: index {i} is outside extent {n}")
        return None
    where = ""


def apply_op(name, operands, attrs, run, where=""):
    f, known = find_op(name, len(operands))
    for key in attrs:
        if key not in known: cerr(f"{name} has no attribute {key}=" + (f" (it has {', '.join(sorted(known))})" if known else ""))
    c = Call(name, operands, attrs, run)
    c.where = where or name
    for v in operands:
        if isinstance(v, V) and v.dtype in CPX and name not in COMPLEX_OPS: cerr(f"{name} of {v.dtype} is not supported")
    return f(c)
def refuse(c, d, why=""): cerr(f"{c.op} of {d} is not supported{why}")

# ================================================================================================ 6. elementwise ops
@op("cbrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv", 1)
@op("lgamma tgamma digamma sigmoid", 1)
def _(c):
    d = float_type([c.value(0)])
    return ew(c.op, [conv(c.a[0], d)], d, in_acc(d, lambda t, x: (c_math if d in CPX else f_math)(t, c.op, x)))
ROOT_HALF, TWO_ROOT_2_PI = 1 / mpmath.sqrt(2), 2 * ROOT_2_PI
def f_silu(t, x): return ROUND[t](x * f_math(t, "sigmoid", x))
def f_gelu(t, x): r = ROUND[t]; return r(r(0.5 * x) * f_math(t, "erfc", r(-x * rndm(t, ROOT_HALF))))
def f_gelu_tanh(t, x):
    r = ROUND[t]; u = f_fma(t, r(rndm(t, M("0.044715")) * r(x * x)), x, x)
    return r(x * f_math(t, "sigmoid", r(rndm(t, TWO_ROOT_2_PI) * u)))
@op("silu", 1)
@op("gelu", 1, "approximate")
def _(c):
    """Their formulas step by step, each step rounded."""
    d = float_type([c.value(0)])
    if d in CPX: refuse(c, d)
    f = f_silu if c.op == "silu" else f_gelu_tanh if c.word("approximate", "none", ("none", "tanh")) == "tanh" else f_gelu
    return ew(c.op, [conv(c.a[0], d)], d, in_acc(d, f))
@op("sqrt reciprocal", 1)
def _(c):
    d = float_type([c.value(0)])
    if c.op == "sqrt": f = (lambda t, z: c_math(t, "sqrt", z)) if d in CPX else f_sqrt
    else: f = (lambda t, z: c_div(t, 1 + 0j, z)) if d in CPX else (lambda t, x: f_div(t, 1.0, x))
    return ew(c.op, [conv(c.a[0], d)], d, in_acc(d, f))
@op("neg abs sign ceil floor trunc round frac relu", 1)
def _(c):
    x = conv(c.value(0), c.a[0].dtype); d = x.dtype; n = c.op
    if d == "bool" and n in ("neg", "abs"): refuse(c, d)
    if d in CPX:
        if n == "abs": return ew(n, [x], CPX[d], lambda z: f_hypot(CPX[d], z.real, z.imag))
        return ew(n, [x], d, lambda z: complex(-z.real, -z.imag))
    if category(d) < 2:
        f = {"neg": lambda z: wrap(d, -z), "abs": lambda z: wrap(d, abs(z)), "sign": lambda z: (z > 0) - (z < 0) if d in INT else z,
             "frac": lambda z: type(z)(0), "relu": lambda z: max(z, type(z)(0))}.get(n, lambda z: z)
    else:
        f = {"neg": lambda z: -z, "abs": abs, "sign": f_sign, "ceil": f_ceil, "floor": f_floor, "trunc": f_trunc, "round": f_round,
             "frac": in_acc(d, f_frac), "relu": f_relu}[n]
    return ew(n, [x], d, f)
@op("not lnot", 1)
def _(c):
    x = c.value(0); d = x.dtype
    if c.op == "lnot": return ew(c.op, [conv(x, d)], "bool", lambda z: z == 0)
    if category(d) > 1: refuse(c, d)
    return ew(c.op, [conv(x, d)], d, lambda z: (not z) if d == "bool" else wrap(d, ~z))
@op("isnan isinf isfinite isposinf isneginf signbit", 1)
def _(c):
    x = conv(c.value(0), c.a[0].dtype); d = x.dtype
    if d in CPX: f = {"isnan": lambda z: z != z, "isinf": lambda z: math.isinf(z.real) or math.isinf(z.imag), "isfinite": c_finite}[c.op]
    else: f = {"isnan": lambda z: z != z, "isinf": lambda z: z in (INF, -INF), "isfinite": math.isfinite, "isposinf": lambda z: z == INF,
               "isneginf": lambda z: z == -INF, "signbit": lambda z: z == z and (math.copysign(1, z) < 0 if d in FLT else z < 0)}[c.op]
    return ew(c.op, [x], "bool", f)
@op("real imag conj angle", 1)
def _(c):
    x = conv(c.value(0), c.a[0].dtype); d = x.dtype; n = c.op
    if d in CPX:
        f = {"real": lambda z: z.real, "imag": lambda z: z.imag, "conj": lambda z: z.conjugate(),
             "angle": lambda z: f_atan2(CPX[d], z.imag, z.real)}[n]
        return ew(n, [x], d if n == "conj" else CPX[d], f)
    if n == "angle":
        d = float_type([x])
        return ew(n, [conv(x, d)], d, in_acc(d, lambda t, z: NAN if z != z else rndm(t, M(mpmath.pi)) if z < 0 else 0.0))
    return ew(n, [x], d, (lambda z: cast("bool", d, False)) if n == "imag" else (lambda z: z), move=True)
@op("cast", 1, "dtype")
def _(c):
    d = c.dtype(); x = c.value(0)
    if x.lit is not None: return x.copy(dtype=d, data=cast(x.dtype, d, conv(x, x.dtype).data) if category(d) < 2 else literal_to(d, x.lit), lit=None)
    return conv(x, d).copy(strides=None, scalar=None, plus=None)
@op("bitcast", 1, "dtype")
def _(c):
    d = c.dtype(); x = conv(c.value(0), c.a[0].dtype)
    if SIZE[x.dtype] != SIZE[d]: cerr(f"bitcast from {x.dtype} to {d}: {SIZE[x.dtype]} bytes against {SIZE[d]}")
    return ew(c.op, [x], d, lambda z: from_bits(d, to_bits(x.dtype, z)), move=True)

def minmax(f): return lambda a, b: f("", a, b)
BINARY = {  # name: on bool, on integers (exact; the result is wrapped), on floats, on complex (None: refused), whether it needs a float
    "add": (lambda a, b: a or b, operator.add, f_add, c_add, False),
    "sub": (None, operator.sub, f_sub, c_sub, False),
    "mul": (lambda a, b: a and b, operator.mul, f_mul, c_mul, False),
    "div": (None, None, f_div, c_div, True),
    "floordiv": (None, i_floordiv, f_quotient("floordiv"), None, False),
    "truncdiv": (None, i_truncdiv, f_quotient("truncdiv"), None, False),
    "ceildiv": (None, i_ceildiv, f_quotient("ceildiv"), None, False),
    "mod": (None, i_mod, f_mod, None, False),
    "fmod": (None, i_fmod, f_fmod, None, False),
    "pow": (None, i_pow, f_pow, c_pow, False),
    "atan2": (None, None, f_atan2, None, True),
    "hypot": (None, None, f_hypot, None, True),
    "copysign": (None, None, f_copysign, None, True),
    "ldexp": (None, None, f_ldexp, None, True),
    "min": (operator.and_, min, f_min, None, False),
    "max": (operator.or_, max, f_max, None, False),
    "fmin": (operator.and_, min, f_fmin, None, False),
    "fmax": (operator.or_, max, f_fmax, None, False),
    "gcd": (None, math.gcd, None, None, False),
    "and": (operator.and_, operator.and_, None, None, False),
    "or": (operator.or_, operator.or_, None, None, False),
    "xor": (operator.xor, operator.xor, None, None, False),
}
def element_op(name, d):
    """The op on two elements of dtype d, or None where it is refused."""
    f = BINARY[name][category(d)]
    if f is None: return None
    if d in INT: return lambda a, b: wrap(d, f(a, b))
    return in_acc(d, f) if d in FLT else (lambda a, b: f(CPX[d], a, b)) if d in CPX else f
@op(" ".join(BINARY), 2)
def _(c):
    vs = c.values(); d = float_type(vs) if BINARY[c.op][4] else result_type(vs); f = element_op(c.op, d)
    if f is None: refuse(c, d)
    if c.op == "ldexp": r = ew(c.op, [conv(vs[0], d), vs[1]], d, f)              # Amended: n was converted to the dtype of x
    else: r = ew(c.op, [conv(v, d) for v in vs], d, f)
    if c.op == "add" and r.shape is None and d in INT:
        for v, w in (vs, vs[::-1]):
            if v.lit is None and w.lit is not None: r.plus = (v, int(w.lit))
    return r
@op("nextafter", 2)
def _(c):
    vs = c.values(); d = float_type(vs)
    return ew(c.op, [conv(v, d) for v in vs], d, lambda a, b: f_nextafter(d, a, b))
@op("shl shr lshr", 2)
def _(c):
    x, n = c.values()
    for v in (x, n):
        if category(v.dtype) != 1: refuse(c, v.dtype)
    n = n if n.lit is None else n.copy(data=n.lit)
    return ew(c.op, [conv(x, x.dtype), n], x.dtype, lambda a, k: i_shift(c.op, x.dtype, a, k))
@op("land lor", 2)
def _(c): return ew(c.op, [conv(v, "bool") for v in c.values()], "bool", operator.and_ if c.op == "land" else operator.or_)
@op("eq ne lt le gt ge", 2)
def _(c):
    """Integers (a literal too) by their true values.

    Choice: beside a float a literal is rounded to the float's dtype like any operand, so that eq %x, 0.1 can hold."""
    vs = c.values(); f = getattr(operator, c.op)
    if max(category(v.dtype) for v in vs) < 2:
        return ew(c.op, [v if v.lit is None else v.copy(data=v.lit) for v in vs], "bool", lambda a, b: f(int(a), int(b)))
    d = result_type(vs)
    return ew(c.op, [conv(v, d) for v in vs], "bool", f)
@op("complex", 2)
def _(c):
    """Choice: halves give c64."""
    vs = c.values(); d = ACC[float_type(vs)]
    return ew(c.op, [conv(v, d) for v in vs], {"f32": "c64", "f64": "c128"}[d], complex)
@op("select", 3)
def _(c):
    vs = c.values(); cond = vs[0]
    if cond.dtype != "bool": cerr(f"the condition {label(cond)} must be bool, found {cond.dtype}")
    d = result_type(vs[1:], is_tensor(vs))
    return ew(c.op, [cond] + [conv(v, d) for v in vs[1:]], d, lambda p, a, b: a if p else b, move=True)
@op("clamp", 3)
def _(c):
    vs = [c.value(0)] + [c.value(i) for i in (1, 2) if c.a[i] is not None]; d = result_type(vs)
    bounds = [element_op(n, d) for n, v in zip(("max", "min"), c.a[1:]) if v is not None]
    def f(x, *bs):
        for g, b in zip(bounds, bs): x = g(x, b)
        return x
    return ew(c.op, [conv(v, d) for v in vs], d, f)
@op("fma lerp threshold", 3)
@op("addcmul", 4)
def _(c):
    vs = c.values(); d = (float_type if c.op == "lerp" else result_type)(vs)
    if c.op in ("fma", "lerp") and result_type(vs) == "bool": refuse(c, "bool")           # Amended: lerp gave f32
    if c.op == "fma":
        f = (lambda a, b, x: wrap(d, a * b + x)) if d in INT else (lambda a, b, x: f_fma(d, a, b, x))
    elif c.op == "lerp": f = (lambda a, b, w: c_lerp(CPX[d], a, b, w)) if d in CPX else in_acc(d, f_lerp)
    elif c.op == "threshold": f = lambda x, t, v: v if x <= t else x
    elif d in CPX: f = lambda *t: c_addcmul(CPX[d], *t)
    elif d == "bool": f = lambda x, a, b, v: x or (v and a and b)
    else: f = (lambda x, a, b, v: wrap(d, x + v * a * b)) if d in INT else in_acc(d, f_addcmul)
    return ew(c.op, [conv(v, d) for v in vs], d, f)
@op("softplus", 1)
@op("leaky_relu", 1, "slope")
@op("elu", 1, "alpha")
def _(c):
    d = float_type([c.value(0)]); t = ACC[d]; r = ROUND[t]
    if c.op == "softplus": f = f_softplus
    else:
        k = c.number("slope", Fr(1, 100), t) if c.op == "leaky_relu" else c.number("alpha", 1, t)
        f = (lambda t, x: x if x > 0 else r(k * x)) if c.op == "leaky_relu" else (lambda t, x: x if x > 0 else r(k * f_math(t, "expm1", x)))
    return ew(c.op, [conv(c.a[0], d)], d, in_acc(d, f))


# ================================================================================================ 7. reductions
CHUNK = 8192
def fold(xs, f):
    """Combines at least one element in the canonical order of section 4. A missing partner stands for the neutral element, which changes nothing."""
    while True:
        xs = [fold_chunk(xs[i:i + CHUNK], f) for i in range(0, len(xs), CHUNK)]
        if len(xs) == 1: return xs[0]
def fold_chunk(xs, f):
    for half in (4096, 2048, 1024):                                       # bits 12, 11, 10 of the index: partners lie half a block apart
        xs = [f(x, xs[i + half]) if i + half < len(xs) else x for i, x in enumerate(xs[:half])]
    while len(xs) > 1:                                                    # bits 0 to 9 in turn: partners are neighbours
        xs = [f(*xs[i:i + 2]) if i + 1 < len(xs) else xs[i] for i in range(0, len(xs), 2)]
    return xs[0]
def t_sum(t, xs):
    r = ROUND[t]
    return fold(xs, lambda a, b: r(a + b)) if xs else 0.0
def t_div(t, a, n):
    """a / n for a count n."""
    return ROUND[t](fdiv(a, rndq(t, Fr(n))))
def t_mean(t, xs): return t_div(t, t_sum(t, xs), len(xs)) if xs else NAN
def t_var(t, xs, correction):
    if not xs: return NAN
    r, m = ROUND[t], t_mean(t, xs)
    return t_div(t, t_sum(t, [r(r(x - m) * r(x - m)) for x in xs]), max(Fr(0), len(xs) - Fr(correction)))
def parts(f, t, xs): return complex(f(t, [z.real for z in xs]), f(t, [z.imag for z in xs]))
def d_sum(d, xs):
    """The sum of elements of d, in the type that d accumulates in."""
    return wrap(d, sum(xs)) if d in INT else parts(t_sum, CPX[d], xs) if d in CPX else t_sum(ACC[d], xs)
def d_prod(d, xs):
    if d in INT: return wrap(d, math.prod(xs))
    if not xs: return complex(1.0) if d in CPX else 1.0
    return fold(xs, lambda a, b: c_mul(CPX[d], a, b)) if d in CPX else fold(xs, lambda a, b: f_mul(ACC[d], a, b))
def d_mean(d, xs): return parts(t_mean, CPX[d], xs) if d in CPX else t_mean(ACC[d], xs)
def d_var(d, xs, correction):
    """Choice: the variance of complex numbers is the real number var(re) + var(im), as in PyTorch."""
    if d not in CPX: return t_var(ACC[d], xs, correction)
    return f_add(CPX[d], *[t_var(CPX[d], [part(z) for z in xs], correction) for part in (lambda z: z.real, lambda z: z.imag)])
def best(d, name, xs):
    f = element_op(name, d); m = xs[0]
    for x in xs[1:]: m = f(m, x)
    return m if m == m else NAN
def t_logsumexp(t, xs):
    """m + log(sum of exp(x - m)). Choice: an infinite m counts as 0 in the formula, as in PyTorch; over nothing it is -inf."""
    if not xs: return -INF
    r, m = ROUND[t], best(t, "max", xs)
    if math.isinf(m): m = 0.0
    return r(m + f_math(t, "log", t_sum(t, [f_math(t, "exp", r(x - m)) for x in xs])))

def groups(shape, axes):
    """The kept extents, and for each output element the flat places of what it reduces, row-major."""
    st = strides_of(shape); keep = [i for i in range(len(shape)) if i not in axes]; ax = [i for i in range(len(shape)) if i in axes]
    inner = [sum(i * st[j] for i, j in zip(ix, ax)) for ix in positions([shape[j] for j in ax])]
    outer = [sum(i * st[j] for i, j in zip(ix, keep)) for ix in positions([shape[j] for j in keep])]
    return [shape[j] for j in keep], [[o + i for i in inner] for o in outer]
def reduce(x, axes, keepdim, out, f):
    """f over the elements of each group; the result is rounded to out where that is a float."""
    shape, gs = groups(x.shape, axes)
    if keepdim: shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    kept = [i for i in range(len(x.shape)) if i not in axes]
    named = x.named - set(axes) if keepdim else frozenset(j for j, i in enumerate(kept) if i in x.named)
    data = [f([x.data[i] for i in ix]) for ix in gs]
    return V(out, shape, [rnd(out, y) if y == y else NAN for y in data] if out in FLT else data, named=named)
def need_elements(c, x, axes):
    """min, max, argmin and argmax over no element are an error, unless the result is empty too."""
    if numel([n for i, n in enumerate(x.shape) if i in axes]) == 0 and numel([n for i, n in enumerate(x.shape) if i not in axes]):
        rerr(f"{c.op} over no element: {label(x)} has shape {list(x.shape)}")
@op("sum prod", 1, "axes keepdim dtype")
def _(c):
    x = c.tensor(0)
    if "dtype" in c.k:
        if c.dtype() == "bool": refuse(c, "bool")
        x = conv(x, c.dtype())
    elif category(x.dtype) < 2 and x.dtype != "u64": x = conv(x, "i64")
    f = d_sum if c.op == "sum" else d_prod
    return reduce(x, c.axes(len(x.shape)), c.flag("keepdim"), x.dtype, lambda xs: f(x.dtype, xs))
@op("min max", 1, "axes keepdim")
def _(c):
    x = c.tensor(0); axes = c.axes(len(x.shape))
    need_elements(c, x, axes)
    return reduce(x, axes, c.flag("keepdim"), x.dtype, lambda xs: best(x.dtype, c.op, xs))
@op("any all count_nonzero", 1, "axes keepdim")
def _(c):
    x = c.tensor(0); f = {"any": any, "all": all, "count_nonzero": sum}[c.op]
    return reduce(x, c.axes(len(x.shape)), c.flag("keepdim"), "i64" if c.op == "count_nonzero" else "bool", lambda xs: f([z != 0 for z in xs]))
@op("mean", 1, "axes keepdim")
@op("var std var_mean", 1, "axes keepdim correction")
@op("norm", 1, "axes keepdim ord")
@op("logsumexp", 1, "axes keepdim")
def _(c):
    d = float_type([c.tensor(0)]); x = conv(c.a[0], d); t = ACC[d]; axes, keep = c.axes(len(x.shape)), c.flag("keepdim")
    def out(f, dt=d): return reduce(x, axes, keep, dt, f)
    def mean(): return out(lambda xs: d_mean(d, xs))
    if c.op == "mean": return mean()
    if c.op in ("var", "std", "var_mean"):
        k = c.k.get("correction", 1); k = k.lit if isinstance(k, V) and k.lit is not None else c.number("correction", 1, "f64")
        real = CPX.get(d, d)
        if c.op == "std": return out(lambda xs: f_sqrt(t, d_var(d, xs, k)), real)
        v = out(lambda xs: d_var(d, xs, k), real)
        return v if c.op == "var" else (v, mean())
    if c.op == "logsumexp": return out(lambda xs: t_logsumexp(t, xs))
    order = c.word("ord", "2", ("1", "2", "inf"))                         # Choice: no scaling against overflow of the squares; 0 over nothing
    if order == "1": return out(lambda xs: t_sum(t, [abs(z) for z in xs]))
    if order == "2": return out(lambda xs: f_sqrt(t, t_sum(t, [f_mul(t, z, z) for z in xs])))
    return out(lambda xs: best(t, "max", [abs(z) for z in xs]) if xs else 0.0)
def arg_best(name, xs):
    """The first place of the extreme (by ==, so -0 and +0 tie); the first NaN wins."""
    b = 0
    for i, x in enumerate(xs):
        if xs[b] != xs[b]: break
        if x != x or (x > xs[b] if name == "argmax" else x < xs[b]): b = i
    return b
@op("argmin argmax", 1, "axis keepdim")
def _(c):
    x = c.tensor(0); rank = len(x.shape); axes = [c.axis(rank)] if "axis" in c.k and rank else list(range(rank))
    if "axis" in c.k: c.axis(rank)
    need_elements(c, x, axes)
    return reduce(x, axes, c.flag("keepdim"), "i64", lambda xs: arg_best(c.op, xs))


# ================================================================================================ 8. scans, order, softmax, norms
def lanes(shape, axis): return groups(shape, [axis])[1] if shape else [[0]]
def along(x, axis, outs, f):
    """f on each lane along the axis; it gives one list a result."""
    res = [[None] * len(x.data) for _ in outs]
    for ix in lanes(x.shape, axis):
        for r, ys in zip(res, f([x.data[i] for i in ix])):
            for i, y in zip(ix, ys): r[i] = y
    return tuple(V(d, x.shape, r, named=x.named) for d, r in zip(outs, res))
def prefixes(d, name, xs):
    """Running sums or products of floats: exact, rounded at each place (their order is free)."""
    add, acc, zero, out = name == "cumsum", Fr(0) if name == "cumsum" else M(1), -0.0 if name == "cumsum" else 1.0, []
    for z in xs:
        zero = zero + z if add else math.copysign(zero, zero * math.copysign(1, z))      # only its sign counts, for a result of zero
        if isinstance(acc, float) or not math.isfinite(z): acc = float(acc) + z if add else float(acc) * z
        else: acc = acc + Fr(z) if add else acc * M(z)
        y = acc if isinstance(acc, float) else rndq(d, acc) if add else rndm(d, acc)
        out.append(math.copysign(y, zero) if y == 0 and (zero == 0 or not add) else y)
    return out
@op("cumsum cumprod", 1, "axis")
def _(c):
    x = c.tensor(0)
    if category(x.dtype) < 2 and x.dtype != "u64": x = conv(x, "i64")
    d = x.dtype
    if d in FLT: f = lambda xs: [prefixes(d, c.op, xs)]
    else: f = lambda xs: [list(itertools.accumulate(xs, element_op("add" if c.op == "cumsum" else "mul", d)))]
    return along(x, c.axis(len(x.shape)), [d], f)[0]
@op("cummin cummax", 1, "axis")
def _(c):
    """The place is that of the last equal element, or of the last NaN."""
    def f(xs):
        places, p = [], None
        for i, z in enumerate(xs):
            if p is None or z != z or (xs[p] == xs[p] and (z >= xs[p] if c.op == "cummax" else z <= xs[p])): p = i
            places.append(p)
        return [[xs[i] for i in places], places]
    x = c.tensor(0)
    return along(x, c.axis(len(x.shape)), [x.dtype, "i64"], f)
@op("logcumsumexp", 1, "axis")
def _(c):
    d = float_type([c.tensor(0)]); x = conv(c.a[0], d)
    return along(x, c.axis(len(x.shape)), [d], lambda xs: [[rnd(d, t_logsumexp(ACC[d], xs[:i + 1])) for i in range(len(xs))]])[0]
def sorted_places(xs, descending):
    """Stable; NaN is greatest, all NaNs are equal, -0 = +0."""
    key = lambda i: (1, 0) if xs[i] != xs[i] else (0, xs[i])
    return sorted(range(len(xs)), key=key, reverse=descending)            # Python keeps equal elements in order when it reverses, too
@op("sort argsort", 1, "axis descending")
def _(c):
    x = c.tensor(0); down = c.flag("descending")
    def f(xs):
        p = sorted_places(xs, down)
        return [[xs[i] for i in p], p]
    values, places = along(x, c.axis(len(x.shape), -1), [x.dtype, "i64"], f)
    return places if c.op == "argsort" else (values, places)
@op("topk", 2, "axis largest")
def _(c):
    x = c.tensor(0); k = c.integer(c.a[1], "k", True); axis = c.axis(len(x.shape), -1); extent = x.shape[axis] if x.shape else 1
    down = c.flag("largest") if "largest" in c.k else True
    if not x.shape and k == 0: rerr(f"topk: k is 0 for {label(x)} of rank 0")
    if not 0 <= k <= extent: rerr(f"topk: k is {k}, the extent of axis {axis} of {label(x)} is {extent}")
    shape = tuple(k if i == axis else n for i, n in enumerate(x.shape)); values, places = [None] * numel(shape), [None] * numel(shape)
    for src, dst in zip(lanes(x.shape, axis), lanes(shape, axis)):
        xs = [x.data[i] for i in src]
        for j, i in zip(dst, sorted_places(xs, down)[:k]): values[j], places[j] = xs[i], i
    return V(x.dtype, shape, values), V("i64", shape, places)
def t_softmax(t, xs, log=False):
    """e * (1 / sum(e)) with e = exp(x - max), or x - max - log sum(e)."""
    if not xs: return []
    r, m = ROUND[t], best(t, "max", xs); ds = [r(x - m) for x in xs]; es = [f_math(t, "exp", z) for z in ds]; s = t_sum(t, es)
    if not log: q = f_div(t, 1.0, s); return [r(e * q) for e in es]
    ls = f_math(t, "log", s)
    return [r(z - ls) for z in ds]
@op("softmax log_softmax", 1, "axis")
def _(c):
    d = float_type([c.tensor(0)]); x = conv(c.a[0], d)
    return along(x, c.axis(len(x.shape)), [d], lambda xs: [[rnd(d, y) for y in t_softmax(ACC[d], xs, c.op == "log_softmax")]])[0]
def scale_shift(c, y, t, d, w, b):
    """y * w + b with broadcasting, computed in t and rounded once to d."""
    for v, name in ((w, "mul"), (b, "add")):
        if v is not None: y = ew(c.op, [y, conv(v, t)], t, lambda p, q, f=BINARY[name][2]: f(t, p, q))
    return conv(y, d)
def norm_operands(c, which, eps):
    """The computing type, the result dtype, and x, the other tensors (None where `none`) and eps in the computing type.

    The result has x's dtype (f32 for integers); the others and eps go straight to the computing type (f32 for halves)."""
    x = c.tensor(0); others = [None if c.a[i] is None and i in which else c.tensor(i) for i in range(1, eps)]
    d = float_type([x]); t = ACC[d]; e = c.value(eps)
    if any(v is not None and v.dtype in CPX for v in others): cerr(f"{c.op}: complex operands are not supported")
    if e.shape is not None or e.dtype in CPX: cerr("eps must be a real scalar")
    return t, d, conv(conv(x, d), t), [None if v is None else conv(v, t) for v in others], conv(e, t).data
@op("layer_norm", 4, "axes")
@op("rms_norm", 3, "axes")
def _(c):
    layer = c.op == "layer_norm"; t, d, x, others, eps = norm_operands(c, (1, 2), 3 if layer else 2); r = ROUND[t]
    axes = c.axes(len(x.shape), [len(x.shape) - 1] if x.shape else [])
    y = [None] * len(x.data)
    for ix in groups(x.shape, axes)[1]:
        xs = [x.data[i] for i in ix]
        mean = t_mean(t, xs) if layer else 0.0
        spread = t_var(t, xs, 0) if layer else t_mean(t, [r(z * z) for z in xs])
        scale = f_math(t, "rsqrt", r(spread + eps))
        for i, z in zip(ix, xs): y[i] = r(r(z - mean) * scale)
    return scale_shift(c, V(t, x.shape, y, named=x.named), t, d, others[0], others[1] if layer else None)
@op("batch_norm", 6)
def _(c):
    """(x - mean) * rsqrt(var + eps) * w + b, all four of them along axis 1."""
    t, d, x, others, eps = norm_operands(c, (3, 4), 5); r = ROUND[t]
    if len(x.shape) < 2: cerr(f"{label(x)} has rank {len(x.shape)}, batch_norm needs at least 2")
    for i, v in enumerate(others):
        if v is None: continue
        if len(v.shape) != 1: cerr(f"operand {i + 2} must have rank 1, found {len(v.shape)}")
        if v.shape[0] != x.shape[1]: rerr(f"operand {i + 2} has extent {v.shape[0]}, axis 1 of {label(x)} has {x.shape[1]}")
    mean, var, w, b = [None if v is None else V(t, v.shape + (1,) * (len(x.shape) - 2), v.data) for v in others]
    y = ew(c.op, [x, mean, var], t, lambda z, m, q: r(r(z - m) * f_math(t, "rsqrt", r(q + eps))))
    return scale_shift(c, y, t, d, w, b)
@op("cross_entropy", 2, "ignore_index")
def _(c):
    """The mean over the labels that are not ignored of -(x - max - log sum(e)) at the label.

    Choice: an ignored row keeps its place in the sum, as the neutral element; a label out of range reads 0 and counts."""
    d = float_type([c.tensor(0)]); x = conv(c.a[0], d); labels = c.indices(1); t = ACC[d]; skip = c.number("ignore_index", -100, "i64")
    if len(x.shape) != 2 or len(labels.shape) != 1: cerr(f"ranks 2 and 1 are needed, found {len(x.shape)} and {len(labels.shape)}")
    rows, n = x.shape
    if labels.shape[0] != rows: rerr(f"{label(x)} has {rows} rows, {label(labels)} has {labels.shape[0]} labels")
    losses, count = [], 0
    for row, k in enumerate(labels.data):
        if k == skip: losses.append(-0.0); continue
        count += 1; j = c.index(k, n)
        losses.append(0.0 if j is None else -t_softmax(t, x.data[row * n:(row + 1) * n], log=True)[j])
    return V(d, (), [rnd(d, t_div(t, t_sum(t, losses), count)) if count else NAN])


# ================================================================================================ 9. shape ops
def view(x, shape, place, named=frozenset()):
    """A tensor of this shape whose element at index ix is x's element number place(ix)."""
    return V(x.dtype, shape, [x.data[place(ix)] for ix in positions(shape)], named=named)
def dot(a, b): return sum(map(operator.mul, a, b))
@op("reshape", 2)
def _(c):
    x = c.tensor(0); s = c.integers(1, "an extent", True); n = numel(x.shape)
    if s.count(-1) > 1: (cerr if sum(v.lit == -1 for v in c.a[1]) > 1 else rerr)(f"more than one extent is -1: {s}")
    for d in s:
        if d < -1: rerr(f"negative size {d}")
    if -1 in s:
        rest = numel([d for d in s if d != -1])
        if rest == 0: rerr(f"the extent -1 is ambiguous beside an extent of 0: {s}")
        if n % rest: rerr(f"{label(x)} has {n} elements, which {rest} does not divide")
        s[s.index(-1)] = n // rest
    if numel(s) != n: rerr(f"{label(x)} has {n} elements, {s} has {numel(s)}")
    return V(x.dtype, s, x.data)
def permuted(x, p):
    st = strides_of(x.shape)
    return view(x, [x.shape[i] for i in p], lambda ix: sum(i * st[j] for i, j in zip(ix, p)), frozenset(j for j, i in enumerate(p) if i in x.named))
@op("permute", 2)
def _(c):
    x = c.tensor(0); r = len(x.shape)
    if not isinstance(c.a[1], list): cerr("operand 2 must be a list of axes [...]")
    p = [c.axis_number(v, r) for v in c.a[1]]
    if sorted(p) != list(range(r)): cerr(f"{p} is not a permutation of the {r} axes of {label(x)}")
    return permuted(x, p)
@op("transpose", 3)
def _(c):
    x = c.tensor(0); r = len(x.shape); i, j = [c.axis_number(v, r) for v in c.a[1:]]; p = list(range(r))
    if r: p[i], p[j] = p[j], p[i]
    return permuted(x, p)
@op("broadcast", 2, "dims")
def _(c):
    """Axis i of x becomes axis dims[i] of the result."""
    x = c.tensor(0); s = c.extents(1); dims = c.k.get("dims")
    if not isinstance(dims, list): cerr("dims= is missing")
    dims = [c.axis_number(v, len(s)) for v in dims]
    if len(dims) > len(s): cerr(f"dims= names {len(dims)} axes, the result has {len(s)}")
    if len(dims) != len(x.shape): cerr(f"dims= names {len(dims)} axes, {label(x)} has {len(x.shape)}")
    if len(set(dims)) != len(dims): cerr(f"dims= names an axis twice: {dims}")
    for i, j in enumerate(dims):
        if x.shape[i] not in (1, s[j]): rerr(f"axis {i} of {label(x)} has extent {x.shape[i]}, the result's axis {j} has {s[j]}")
    st = strides_of(x.shape)
    return view(x, s, lambda ix: sum(0 if x.shape[i] == 1 else ix[j] * st[i] for i, j in enumerate(dims)))
@op("expand", 2)
def _(c):
    x = c.tensor(0); s = c.integers(1, "an extent", True); new = len(s) - len(x.shape)
    if new < 0: cerr(f"{len(s)} extents for {label(x)} of rank {len(x.shape)}")
    for i, d in enumerate(s):
        if d == -1 and i >= new: s[i] = x.shape[i - new]
        elif d < 0: rerr(f"negative size {d}" + (" for a new axis" if d == -1 else ""))
        elif i >= new and x.shape[i - new] not in (1, d): rerr(f"axis {i - new} of {label(x)} has extent {x.shape[i - new]}, {d} is asked for")
    return V(x.dtype, s, bdata(x, tuple(s)))
@op("squeeze", 1, "axes")
def _(c):
    x = c.tensor(0); axes = c.axes(len(x.shape), "needed"); kept = [i for i in range(len(x.shape)) if i not in axes]
    for i in axes:
        if x.shape[i] != 1: rerr(f"axis {i} of {label(x)} has extent {x.shape[i]}, only 1 can be squeezed")
    return V(x.dtype, [x.shape[i] for i in kept], x.data, named=frozenset(j for j, i in enumerate(kept) if i in x.named))
@op("unsqueeze", 1, "axes")
def _(c):
    x = c.tensor(0); axes = c.k.get("axes"); count = len(axes) if isinstance(axes, list) else 1
    axes = c.axes(len(x.shape) + count, "needed"); old = [i for i in range(len(x.shape) + count) if i not in axes]
    shape = [1] * (len(x.shape) + count)
    for i, n in zip(old, x.shape): shape[i] = n
    return V(x.dtype, shape, x.data, named=frozenset(old[i] for i in x.named))
@op("flip", 1, "axes")
def _(c):
    x = c.tensor(0); axes = c.axes(len(x.shape)); st = strides_of(x.shape)
    return view(x, x.shape, lambda ix: sum((x.shape[j] - 1 - i if j in axes else i) * st[j] for j, i in enumerate(ix)), x.named)
@op("slice", 4)
def _(c):
    """NumPy's wrap and clamp; `none` for a default, in a list or for a whole one.

    A slice from a pending start s to s + constant has ceil(constant / step) elements; s (a negative one wraps once) is clamped so that the window fits."""
    x = c.tensor(0); r = len(x.shape); lists = []
    for what, a in zip(("start", "end", "step"), c.a[1:]):
        if a is None: a = [None] * r
        if not isinstance(a, list): cerr(f"the {what}s must be a list [...]")
        if len(a) != r: cerr(f"{len(a)} {what}s for {label(x)} of rank {r}")
        lists.append(a)
    first, count, step = [], [], []
    for axis, (n, s, e, t) in enumerate(zip(x.shape, *lists)):
        t = 1 if t is None else c.integer(t, "a step", True)
        if t < 1: rerr(f"step {t} on axis {axis}, at least 1 is needed")
        step.append(t)
        if isinstance(s, V) and s.pending and isinstance(e, V) and e.plus and e.plus[0] is s:
            i, window = c.integer(s, "a start"), max(0, e.plus[1])
            if window > n: rerr(f"a window of {window} on axis {axis} of {label(x)}, which has extent {n}")
            first.append(max(0, min(i + n if i < 0 else i, n - window))); count.append(-(-window // t))
        else:
            i, j, _ = slice(*[None if v is None else c.integer(v, what, True) for v, what in ((s, "a slice start"), (e, "a slice end"))]).indices(n)
            first.append(i); count.append(max(0, -((i - j) // t)))
    st = strides_of(x.shape)
    return V(x.dtype, count, [x.data[dot([i + k * t for i, k, t in zip(first, ix, step)], st)] for ix in positions(count)])
def fill_value(c, i, d):
    """A host or pending scalar operand as an element of d."""
    v = c.value(i)
    if v.shape is not None: cerr(f"{label(v)} is a tensor, a scalar is needed")
    return conv(v, d).data
@op("pad", 4)
def _(c):
    """Crops come first: taking more than there is is an error even where the other side pads."""
    x = c.tensor(0); r = len(x.shape); lo, hi = c.integers(1, "padding", True, r), c.integers(2, "padding", True, r); fill = fill_value(c, 3, x.dtype)
    for i, (a, n, b) in enumerate(zip(lo, x.shape, hi)):
        if n + min(a, 0) + min(b, 0) < 0: rerr(f"axis {i} of {label(x)} has extent {n}: padding {a} and {b} leaves a negative extent")
    st = strides_of(x.shape); data = []
    shape = [a + n + b for a, n, b in zip(lo, x.shape, hi)]
    for ix in positions(shape):
        at = [i - a for i, a in zip(ix, lo)]
        data.append(x.data[dot(at, st)] if all(0 <= i < n for i, n in zip(at, x.shape)) else fill)
    return V(x.dtype, shape, data)
def concatenate(vs, axis, d):
    shape = list(vs[0].shape); shape[axis] = sum(v.shape[axis] for v in vs)
    data, st, start = [None] * numel(shape), strides_of(shape), 0
    for v in vs:
        for y, ix in zip(conv(v, d).data, positions(v.shape)): data[dot(ix, st) + start * st[axis]] = y
        start += v.shape[axis]
    return V(d, shape, data)
@op("cat stack", None, "axis")
def _(c):
    vs = [c.tensor(i) for i in range(len(c.a))]; d = result_type(vs); r = len(vs[0].shape) + (c.op == "stack")
    if r == 0: cerr(f"{label(vs[0])} has rank 0")
    axis = c.axis(r, 0)
    for v in vs:
        if len(v.shape) != len(vs[0].shape): cerr(f"{label(vs[0])} has rank {len(vs[0].shape)}, {label(v)} has {len(v.shape)}")
        for i, (p, q) in enumerate(zip(vs[0].shape, v.shape)):
            if p != q and (i != axis or c.op == "stack"): rerr(f"{label(vs[0])} and {label(v)}: axis {i} has extents {p} and {q}")
    if c.op == "stack": vs = [V(v.dtype, v.shape[:axis] + (1,) + v.shape[axis:], v.data) for v in vs]
    return concatenate(vs, axis, d)
@op("repeat", 2)
def _(c):
    x = c.tensor(0); counts = c.extents(1)
    if len(counts) < len(x.shape): cerr(f"{len(counts)} counts for {label(x)} of rank {len(x.shape)}")
    old = (1,) * (len(counts) - len(x.shape)) + x.shape; st = strides_of(old)
    return view(x, [k * n for k, n in zip(counts, old)], lambda ix: sum(i % n * s for i, n, s in zip(ix, old, st)))
@op("roll", 2, "axes")
def _(c):
    x = c.tensor(0); axes = c.axes(len(x.shape), "needed"); by = c.integers(1, "an amount"); st = strides_of(x.shape)
    if x.shape and len(by) != len(axes): cerr(f"{len(by)} amounts for {len(axes)} axes")
    shift = dict(zip(axes, by))
    return view(x, x.shape, lambda ix: sum((i - shift.get(j, 0)) % x.shape[j] * st[j] for j, i in enumerate(ix)), x.named)
@op("triu tril", 1, "diagonal")
def _(c):
    x = c.tensor(0); k = c.integer(c.k.get("diagonal", 0), "diagonal="); zero = cast("bool", x.dtype, False)
    if len(x.shape) < 2: cerr(f"{label(x)} has rank {len(x.shape)}, at least 2 is needed")
    keep = (lambda ix: ix[-1] - ix[-2] >= k) if c.op == "triu" else (lambda ix: ix[-1] - ix[-2] <= k)
    return V(x.dtype, x.shape, [v if keep(ix) else zero for v, ix in zip(x.data, positions(x.shape))], named=x.named)


# ================================================================================================ 10. indexing, creation, contractions, metadata
def read(x, at):
    """x's element at the index list, or 0 where one index was out of range (None)."""
    return cast("bool", x.dtype, False) if None in at else x.data[dot(at, strides_of(x.shape))]
def has_axes(c, x):
    if not x.shape: cerr(f"{label(x)} has rank 0, at least 1 is needed")
    return x
@op("take", 2, "axis")
def _(c):
    x = has_axes(c, c.tensor(0)); idx = c.indices(1); axis = c.axis(len(x.shape)); r = len(idx.shape); st = strides_of(idx.shape)
    where = [c.index(i, x.shape[axis]) for i in idx.data]
    shape = x.shape[:axis] + idx.shape + x.shape[axis + 1:]
    return V(x.dtype, shape, [read(x, ix[:axis] + (where[dot(ix[axis:axis + r], st)],) + ix[axis + r:]) for ix in positions(shape)])
def smaller(c, idx, other, axis):
    if len(idx.shape) != len(other.shape): cerr(f"{label(other)} has rank {len(other.shape)}, {label(idx)} has {len(idx.shape)}")
    for i, (p, q) in enumerate(zip(other.shape, idx.shape)):
        if i != axis and q > p: rerr(f"axis {i} of {label(idx)} has extent {q}, that of {label(other)} has {p}")
@op("gather", 2, "axis")
def _(c):
    x = has_axes(c, c.tensor(0)); idx = c.indices(1); axis = c.axis(len(x.shape)); smaller(c, idx, x, axis)
    return V(x.dtype, idx.shape, [read(x, ix[:axis] + (c.index(i, x.shape[axis]),) + ix[axis + 1:]) for i, ix in zip(idx.data, positions(idx.shape))])
@op("index", 2, "axis")
def _(c):
    x = has_axes(c, c.tensor(0)); axis = c.axis(len(x.shape)); i = c.value(1)
    if i.shape is not None or i.dtype not in ("i32", "i64"): cerr(f"the index must be an i32 or i64 scalar, found {told(i)}")
    i = c.index(conv(i, i.dtype).data, x.shape[axis]); shape = x.shape[:axis] + x.shape[axis + 1:]
    return V(x.dtype, shape, [read(x, ix[:axis] + (i,) + ix[axis:]) for ix in positions(shape)])
@op("scatter", 3, "axis mode")
def _(c):
    """Choice: src is converted to x's dtype; it may be larger than idx, or a scalar; each update of a half rounds."""
    x = has_axes(c, c.tensor(0)); d = x.dtype; idx = c.indices(1); axis = c.axis(len(x.shape)); src = conv(c.value(2), d)
    smaller(c, idx, x, axis)
    mode = c.word("mode", "set", ("set", "add", "mul", "min", "max"))
    f = (lambda old, new: new) if mode == "set" else element_op(mode, d)
    if f is None: refuse(c, d, f" with mode={mode}")
    if src.shape: smaller(c, idx, src, None)
    data, st = list(x.data), strides_of(x.shape); src_st = strides_of(src.shape) if src.shape else None
    for i, ix in zip(idx.data, positions(idx.shape)):
        new = src.data if src.shape is None else src.data[dot(ix, src_st)] if src.shape else src.data[0]
        i = c.index(i, x.shape[axis])
        if i is None: continue
        j = dot(ix[:axis] + (i,) + ix[axis + 1:], st); data[j] = f(data[j], new)
    return V(d, x.shape, data)
@op("onehot", 2)
def _(c):
    idx = c.indices(0); n = c.integer(c.a[1], "the extent", True)
    if n < 0: rerr(f"negative size {n}")
    where = [c.index(i, n) for i in idx.data]
    fitting(idx.shape + (n,))
    return V("i64", idx.shape + (n,), [int(i == j) for i in where for j in range(n)])

@op("full", 2, "dtype")
def _(c):
    v = c.value(1); s = c.extents(0); d = c.dtype(v.dtype if v.lit is None else result_type([v], True)); fill = fill_value(c, 1, d)
    return V(d, s, [fill] * numel(fitting(s)))
@op("iota", 3, "dtype")
def _(c):
    """start + i * step; floats: one rounding."""
    typed = [v for v in c.values()[1:] if v.lit is None]   # Amended: was the promotion of scalars beside tensors, i64 or f32
    n = c.integer(c.a[0], "the extent", True); d = c.dtype(result_type([c.value(1), c.value(2)], not typed))
    if n < 0: rerr(f"negative size {n}")
    if d not in INT and d not in FLT: refuse(c, d)
    fitting([n]); start, step = fill_value(c, 1, d), fill_value(c, 2, d)
    return V(d, (n,), [wrap(d, start + i * step) if d in INT else f_fma(d, float(i), step, start) for i in range(n)])
@op("eye", 2, "dtype")
def _(c):
    n, m = [c.integer(v, "an extent", True) for v in c.a]; d = c.dtype("f32")
    if min(n, m) < 0: rerr(f"negative size {min(n, m)}")
    return V(d, (n, m), [cast("bool", d, i == j) for i, j in positions([n, m])])
@op("tensor", 1, "dtype")
def _(c):
    def flat(v, depth=0):
        """Shape and literals of a nested list."""
        if isinstance(v, V) and v.lit is not None: return (), [v]
        if not isinstance(v, list): cerr("only literals may stand in a constant")
        subs = [flat(x) for x in v]
        if any(s[0] != subs[0][0] for s in subs): cerr("the nested lists have different lengths")
        return (len(v),) + (subs[0][0] if subs else ()), [x for s in subs for x in s[1]]
    shape, lits = flat(c.a[0]); d = c.dtype(result_type(lits, True) if lits else "f32")
    return V(d, shape, [conv(x, d).data for x in lits])

def philox(counter, seed):
    """Philox-4x32-10: four 32-bit words."""
    mask = 0xFFFFFFFF
    k0, k1 = seed & mask, seed >> 32 & mask
    x0, x1, x2, x3 = counter & mask, counter >> 32 & mask, 0, 0
    for _ in range(10):
        p, q = 0xD2511F53 * x0, 0xCD9E8D57 * x2
        x0, x1, x2, x3 = (q >> 32) ^ x1 ^ k0, q & mask, (p >> 32) ^ x3 ^ k1, p & mask
        k0, k1 = k0 + 0x9E3779B9 & mask, k1 + 0xBB67AE85 & mask
    return x0, x1, x2, x3
def uniform01(d, e, seed):
    """The value in [0, 1) for element number e."""
    e &= (1 << 64) - 1
    if d == "f64":
        w = philox(e >> 1, seed)[2 * (e & 1):][:2]
        return math.ldexp((w[0] << 32 | w[1]) >> 11, -53)
    w = philox(e >> 2, seed)[e & 3]
    drop, scale = {"f32": (8, -24), "f16": (21, -11), "bf16": (24, -8)}[d]
    return math.ldexp(w >> drop, scale)
def normal01(t, e, seed):
    """The standard normal for element number e, in t."""
    e &= (1 << 64) - 1; r = ROUND[t]
    u1 = uniform01(t, e & ~1, seed) + (2.0 ** -24 if t == "f32" else 2.0 ** -53); u2 = uniform01(t, e | 1, seed)
    radius = f_sqrt(t, r(-2.0 * f_math(t, "log", u1)))
    return r(radius * f_math(t, "sin" if e & 1 else "cos", r(r(2 * math.pi) * u2)))
@op("uniform normal", 5, "dtype")
def _(c):
    """Choice: for halves hi - lo and the final fma are computed on f32 numbers, with one rounding at the end."""
    s = c.extents(0); d = c.dtype("f32")
    if d not in FLT: refuse(c, d)
    a, b = fill_value(c, 1, d), fill_value(c, 2, d); seed, offset = [c.integer(c.value(i), w) for i, w in ((3, "the seed"), (4, "the offset"))]
    t = ACC[d]; r = ROUND[t]; fitting(s)
    if c.op == "uniform": f = lambda e: f_fma(d, uniform01(d, e, seed), r(b - a), a)
    else: f = lambda e: rnd(d, r(a + r(b * normal01(t, e, seed))))
    return V(d, s, [f(i + offset) for i in range(numel(s))])
@op("dropout", 4)
def _(c):
    """Choice: p is rounded to f32 to be compared with u; what is dropped is +0."""
    d = float_type([c.tensor(0)]); x = conv(c.a[0], d); t = ACC[d]; r = ROUND[t]
    seed, offset = [c.integer(c.value(i), w) for i, w in ((2, "the seed"), (3, "the offset"))]
    p, p32 = fill_value(c, 1, t), fill_value(c, 1, "f32")
    scale = f_div(t, 1.0, r(1.0 - p))
    mask = [uniform01("f32", i + offset, seed) >= p32 for i in range(len(x.data))]
    y = [rnd(d, r(v * scale)) if keep else 0.0 for v, keep in zip(x.data, mask)]
    return V(d, x.shape, y, named=x.named), V("bool", x.shape, mask, named=x.named)

def inner_product(d, ps):
    """The sum of the products of pairs: exact, rounded once (its order is free)."""
    if d in INT: return wrap(d, sum(a * b for a, b in ps))
    if d == "bool": return any(a and b for a, b in ps)
    if d in CPX:
        z = [Fr(0), Fr(0)]
        if not all(c_finite(a) and c_finite(b) for a, b in ps):
            s = complex(0, 0)
            for a, b in ps: s = c_add(CPX[d], s, c_mul(CPX[d], a, b))
            return s
        for a, b in ps:
            ar, ai, br, bi = map(Fr, (a.real, a.imag, b.real, b.imag)); z[0] += ar * br - ai * bi; z[1] += ar * bi + ai * br
        return complex(rndq(CPX[d], z[0]), rndq(CPX[d], z[1]))
    if not all(math.isfinite(a) and math.isfinite(b) for a, b in ps): return rnd(d, sum(a * b for a, b in ps))
    if d != "f64": return rnd(d, math.fsum(a * b for a, b in ps))
    return rndq(d, sum((Fr(a) * Fr(b) for a, b in ps), Fr(0)))
def matmul(c, x, y, d):
    xs, ys = x.shape, y.shape
    if not xs or not ys: cerr(f"{label(y if xs else x)} has rank 0")
    if len(xs) == 1: xs = (1,) + xs
    if len(ys) == 1: ys = ys + (1,)
    (m, k), (k2, n) = xs[-2:], ys[-2:]
    if k != k2: rerr(f"the inner extents of {label(x)} and {label(y)} differ: {k} and {k2}")
    batch, _ = bshape(c.op, [V(d, xs[:-2], [], name=label(x)), V(d, ys[:-2], [], name=label(y))])
    a, b = bdata(V(d, xs, conv(x, d).data), batch + (m, k)), bdata(V(d, ys, conv(y, d).data), batch + (k, n)); data = []
    for z in range(numel(batch)):
        rows = [a[(z * m + i) * k:(z * m + i + 1) * k] for i in range(m)]; cols = [b[z * k * n + j:(z + 1) * k * n:n] for j in range(n)]
        data += [inner_product(d, list(zip(row, col))) for row in rows for col in cols]
    return V(d, batch + ((m,) if len(x.shape) > 1 else ()) + ((n,) if len(y.shape) > 1 else ()), data)
@op("matmul", 2)
def _(c):
    x, y = c.tensor(0), c.tensor(1)
    return matmul(c, x, y, result_type([x, y]))
@op("linear", 3)
def _(c):
    """x times w transposed, plus b (`none`: without)."""
    x, w = c.tensor(0), c.tensor(1); b = None if c.a[2] is None else c.tensor(2); d = result_type([v for v in (x, w, b) if v is not None])
    t = d if b is None or d in CPX else ACC.get(d, d)                                     # Amended: halves were rounded before the bias was added
    x, w = conv(x, d), conv(w, d)
    y = matmul(c, x, permuted(w, [1, 0]).copy(name=w.name) if len(w.shape) == 2 else w, t)
    return y if b is None else conv(ew(c.op, [y, conv(conv(b, d), t)], t, element_op("add", t)), d)

@op("size stride", 2)
def _(c):
    x = c.tensor(0); axis = c.axis_number(c.a[1], len(x.shape))
    if not x.shape: cerr(f"{label(x)} has rank 0")
    return V("i64", None, x.shape[axis] if c.op == "size" else (x.strides or strides_of(x.shape))[axis])
@op("numel", 1)
def _(c): return V("i64", None, numel(c.tensor(0).shape))
@op("item", 1)
def _(c):
    x = c.tensor(0)
    if numel(x.shape) != 1: rerr(f"{label(x)} has {numel(x.shape)} elements, item needs 1")
    if x.scalar is not None: return x.scalar.copy(name=None)
    return V(x.dtype, None, x.data[0], pending=None if x.host else f"item {label(x)}")
@op("scalar_tensor", 1)
def _(c):
    s = c.value(0)
    if s.shape is not None: cerr(f"{label(s)} is a tensor, a scalar is needed")
    s = conv(s, s.dtype)
    return V(s.dtype, (), [s.data], scalar=s)


# ================================================================================================ 11. text form
TOKEN = re.compile(r"""[ \t\r\n]+ | //[^\n]*
    | (?P<string>"(?:[^"\\\n]|\\.)*") | (?P<arrow>->) | (?P<value>%[A-Za-z_0-9.]+) | (?P<at>@[A-Za-z_0-9.]+)
    | (?P<number>(?: -?0[xX][0-9a-fA-F.]*(?:[pP][-+]?[0-9]+)? | -?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)? | -?inf )(?![A-Za-z_0-9.]))
    | (?P<word>[A-Za-z_0-9.]+) | (?P<mark>[\[\](){},:=?])""", re.X)
class Token:
    def __init__(self, kind, text, line, column): self.kind, self.text, self.line, self.column = kind, text, line, column
    def __str__(self): return "the end of the text" if self.kind == "end" else f"'{self.text}'"
class Ref(str):
    """A use of %name."""
class Word(str):
    """A bare name as an attribute."""
def parse_number(text):
    """The exact value of a numeric literal."""
    if text.lstrip("-") == "inf": return float(text)
    body = text.lstrip("-").lower(); sign = -1 if text[0] == "-" else 1
    if body.startswith("0x"):
        m, _, e = body[2:].partition("p"); whole, _, part = m.partition(".")
        if not whole + part: raise ValueError
        if not ("p" in body or "." in body): return sign * int(whole, 16)
        x = Fr(int(whole + part, 16)) * Fr(2) ** (max(-20000, min(20000, int(e or 0))) - 4 * len(part))
    elif body.isdigit(): return sign * int(body)
    else:
        m, _, e = body.partition("e"); whole, _, part = m.partition(".")
        x = Fr(int(whole + part)) * Fr(10) ** (max(-6000, min(6000, int(e or 0))) - len(part))
    return sign * x if x else math.copysign(0.0, sign) if sign < 0 else x

class Fusion:
    """params: (name, dtype, dims or None, on host, token), dims being integers, '?' or Refs; body: Statements; outs: (operand, into or None, token);
    results: the declared types (dtype, dims) or None."""
    def __init__(self, name): self.name, self.params, self.results, self.body, self.outs = name, [], None, [], []
class Statement:
    """names = op operands, attrs : types; an assert has op 'assert' and its message in attrs."""
    def __init__(self, token, names, op, operands, attrs, types):
        self.token, self.names, self.op, self.operands, self.attrs, self.types = token, names, op, operands, attrs, types
    def __str__(self): return f"line {self.token.line}: " + (f"{self.op} ({', '.join(self.names)})" if self.names else self.op)

LITERAL_WORDS = {"true": True, "false": False, "nan": NAN}
class Parser:
    def __init__(self, text):
        self.tokens, self.i = [], 0
        at, line, start = 0, 1, 0
        while at < len(text):
            m = TOKEN.match(text, at)
            if not m: cerr(f"{line}:{at - start + 1}: unexpected character {text[at]!r}")
            if m.lastgroup: self.tokens.append(Token(m.lastgroup, m.group(), line, at - start + 1))
            for j in range(at, m.end()):
                if text[j] == "\n": line, start = line + 1, j + 1
            at = m.end()
        self.tokens.append(Token("end", "", line, at - start + 1))
    @property
    def tok(self): return self.tokens[self.i]
    def fail(self, expected): cerr(f"{self.tok.line}:{self.tok.column}: found {self.tok}, expected {expected}")
    def next(self): self.i += 1; return self.tokens[self.i - 1]
    def at(self, text): return self.tok.text == text and self.tok.kind not in ("string", "end")
    def accept(self, text):
        if self.at(text): return self.next()
    def want(self, text): return self.accept(text) or self.fail(f"'{text}'")
    def kind(self, kind, what): return self.next() if self.tok.kind == kind else self.fail(what)
    def listed(self, item, end):
        """item {',' item} end, or just end."""
        out = []
        if self.accept(end): return out
        while True:
            out.append(item())
            if self.accept(end): return out
            if not self.accept(","): self.fail(f"',' or '{end}'")
    def file(self):
        out = [self.fusion()]
        while self.tok.kind != "end": out.append(self.fusion())
        return out
    def fusion(self):
        self.want("fusion"); f = Fusion(self.kind("at", "@name").text[1:]); self.want("(")
        f.params = self.listed(self.param, ")")
        if self.accept("->"):
            self.want("(")
            if self.at(")"): self.fail("a type")
            f.results = self.listed(self.type, ")")
        self.want("{")
        while not self.at("return"): f.body.append(self.statement())
        self.next()
        if not self.accept("}"): f.outs = self.listed(self.out, "}")
        return f
    def param(self):
        t = self.kind("value", "a parameter %name"); self.want(":"); dtype, dims = self.type()
        host = bool(self.accept("@host"))
        if host and dims != []: cerr(f"{t.line}:{t.column}: {t.text}: @host is for tensors of rank 0")
        return t.text, dtype, dims, host, t
    def type(self):
        t = self.kind("word", "a dtype")
        if t.text not in DTYPES: cerr(f"{t.line}:{t.column}: found {t}, expected a dtype")
        return t.text, self.listed(self.dim, "]") if self.accept("[") else None
    def dim(self):
        t = self.tok
        if self.accept("?"): return "?"
        if t.kind == "value": self.next(); return Ref(t.text)
        if t.kind == "number" and t.text.isdigit(): self.next(); return int(t.text)
        self.fail("an extent: an integer, ? or %name")
    def statement(self):
        t = self.tok
        if self.accept("assert"):
            cond = self.operand(); self.want(","); text = self.kind("string", "a message in quotes").text
            return Statement(t, [], "assert", [cond], re.sub(r"\\(.)", r"\1", text[1:-1]), None)
        names = [self.kind("value", "%name, assert or return").text]
        while self.accept(","): names.append(self.kind("value", "%name").text)
        self.want("="); name = self.kind("word", "the name of an op").text; operands, attrs, types = [], {}, None
        if self.tok.kind in ("value", "number") or self.at("[") or self.tok.text in ("true", "false", "nan", "none"):
            operands.append(self.operand())
            while self.accept(","):
                if self.tok.kind == "word" and self.tokens[self.i + 1].text == "=":
                    key = self.next(); self.next()
                    if key.text in attrs: cerr(f"{key.line}:{key.column}: {key.text}= is given twice")
                    attrs[key.text] = self.attr()
                elif attrs: self.fail("key=value")
                else: operands.append(self.operand())
        if self.accept(":"):
            types = [self.type()]
            while self.accept(","): types.append(self.type())
        return Statement(t, names, name, operands, attrs, types)
    def out(self):
        t = self.tok; o = self.operand()
        into = self.kind("value", "%name").text if self.accept("into") else None
        return o, into, t
    def operand(self):
        stack = []                                                        # the open lists
        while True:
            t = self.tok
            if self.accept("["):
                if len(stack) == 64: self.fail("at most 64 nested lists")
                if not self.accept("]"): stack.append([]); continue
                o = []
            elif t.kind == "value": self.next(); o = Ref(t.text)
            elif self.accept("none"): o = None
            elif t.text in LITERAL_WORDS and t.kind == "word": self.next(); o = literal(LITERAL_WORDS[t.text], t.text)
            elif t.kind == "number":
                try: x = parse_number(t.text)
                except ValueError: self.fail("a number")
                self.next(); o = literal(x, t.text)
            else: self.fail("an operand: %name, a literal, none or [...]")
            while stack:
                stack[-1].append(o)
                if self.accept(","): break
                if not self.accept("]"): self.fail("',' or ']'")
                o = stack.pop()
            else: return o
    def attr(self):
        t = self.tok
        if t.kind == "string": self.next(); return t.text[1:-1]
        if t.kind == "word" and t.text not in ("true", "false", "nan", "none"): self.next(); return Word(t.text)
        return self.operand()

def parse(text): return Parser(text).file()

def names_in(o): return [o] if isinstance(o, Ref) else [n for x in o for n in names_in(x)] if isinstance(o, list) else []
def check(f):
    """What can be said of a fusion before its values are known: names, ops, attributes, outputs."""
    def place(t): return f"{t.line}:{t.column}: "
    types = {}
    for name, dtype, dims, host, t in f.params:
        if name in types: cerr(f"{place(t)}the parameter {name} is defined twice")
        types[name] = (dtype, dims, host)
    defined = set(types)
    for name, dtype, dims, host, t in f.params:
        for d in dims or []:
            if not isinstance(d, Ref): continue
            if d in types and types[d][:2] != ("i64", None): cerr(f"{place(t)}the dim {d} of {name} names a parameter that is no i64 scalar")
            defined.add(str(d))
    def use(o, t):
        for n in names_in(o):
            if n not in defined: cerr(f"{place(t)}{n} is not defined here")
    for s in f.body:
        if s.op == "assert": use(s.operands[0], s.token); continue
        _, known = find_op_at(place(s.token), s.op, len(s.operands))
        for o in s.operands: use(o, s.token)
        for key, o in s.attrs.items():
            if key not in known: cerr(f"{place(s.token)}{s.op} has no attribute {key}=")
            use(o, s.token)
        for n in s.names:
            if n in defined: cerr(f"{place(s.token)}{n} is defined twice")
            defined.add(n)
        for _, dims in s.types or []: use([d for d in dims or [] if isinstance(d, Ref)], s.token)
    targets = set()
    for o, into, t in f.outs:
        if o is None or isinstance(o, list): cerr(f"{place(t)}an output must be a value")
        use(o, t)
        if into is None: continue
        if into not in types: cerr(f"{place(t)}into {into}: only a parameter can be written into")
        dtype, dims, host = types[into]
        if dims is None or host: cerr(f"{place(t)}into {into}: it is a {'scalar' if dims is None else '@host'} parameter")
        if into in targets: cerr(f"{place(t)}into {into}: two outputs into one parameter")
        targets.add(into)
    if f.results is not None:
        if len(f.results) != len(f.outs): cerr(f"@{f.name} declares {len(f.results)} results and returns {len(f.outs)}")
        for _, dims in f.results: use([d for d in dims or [] if isinstance(d, Ref)], f.params[0][4] if f.params else Token("word", "", 1, 1))
def find_op_at(place, name, count):
    try: return find_op(name, count)
    except RefError as e: cerr(place + str(e))


# ================================================================================================ 12. running a program
class Result(list):
    """The outputs; see the top of this file."""
    index_error = None
    classes = ()
class Run:
    def __init__(self, allow_sync): self.allow_sync, self.index_errors = allow_sync, []

def bind(f, args):
    """Checks the arguments against the parameters (section 7); gives the environment."""
    if len(args) != len(f.params): rerr(f"@{f.name} has {len(f.params)} parameters, {len(args)} arguments are given")
    env, first = {}, {}
    for (name, dtype, dims, host, _), v in zip(f.params, args):
        kind, found = ["scalar" if x is None else "tensor" for x in (dims, v.shape)]
        if kind != found: rerr(f"{name} is a {kind}, the argument is a {found}")
        if v.dtype != dtype: rerr(f"{name} has dtype {dtype}, the argument has {v.dtype}")
        if dims is not None and len(dims) != len(v.shape): rerr(f"{name} has rank {len(dims)}, the argument has {len(v.shape)}")
        env[name] = v.copy(name=name, host=host, named=frozenset(i for i, d in enumerate(dims or []) if isinstance(d, Ref)))
    for (name, _, dims, _, _), v in zip(f.params, args):
        for i, d in enumerate(dims or []):
            n = v.shape[i]; here = f"axis {i} of {name}"
            if isinstance(d, Ref):
                if d not in env: env[str(d)] = V("i64", None, n, name=str(d)); first[d] = here
                elif env[d].data != n: rerr(f"{d} is {env[d].data} ({first.get(d, 'the argument ' + d)}) but {here} has extent {n}")
            elif d != "?" and d != n: rerr(f"{here} is fixed at {d}, the argument has extent {n}")
    return env
def check_type(what, v, dtype, dims, env):
    """A declared result type. Choice: kind, dtype and rank are compile errors, extents run errors."""
    if v.dtype != dtype or (v.shape is None) != (dims is None) or len(v.shape or ()) != len(dims or ()):
        cerr(f"{what} is {describe(v.dtype, v.shape)}, declared {describe(dtype, dims)}")
    for i, d in enumerate(dims or []):
        n = env[d].data if isinstance(d, Ref) else d
        if n != "?" and n != v.shape[i]: rerr(f"{what}: axis {i} has extent {v.shape[i]}, declared {d}" + (f" = {n}" if isinstance(d, Ref) else ""))
def lookup(o, env):
    return env[o] if isinstance(o, Ref) else [lookup(x, env) for x in o] if isinstance(o, list) else o
def execute(s, env, run):
    values = [lookup(o, env) for o in s.operands]
    if s.op == "assert":
        cond = values[0]
        if not isinstance(cond, V) or cond.shape is not None or cond.dtype != "bool": cerr(f"the condition must be a bool scalar, found {told(cond)}")
        Call("assert", values, {}, run).known(cond, "the condition")
        if not cond.data: rerr(f"{label(cond)} does not hold: {s.attrs}")
        return
    r = apply_op(s.op, values, {k: lookup(o, env) for k, o in s.attrs.items()}, run, str(s))
    r = r if isinstance(r, tuple) else (r,)
    if len(r) != len(s.names): cerr(f"{s.op} gives {len(r)} results, {len(s.names)} names are given")
    if s.types is not None and len(s.types) != len(r): cerr(f"{len(s.types)} types for {len(r)} results")
    for i, (name, v) in enumerate(zip(s.names, r)):
        env[name] = v.copy(name=name)
        if s.types is not None: check_type(name, v, *s.types[i], env)
def compile_error(f):
    """The compile error that a run with all extents and numbers 1 shows, or None: what a caller with bad arguments is told first."""
    args = []
    for _, dt, dims, _, _ in f.params:
        one = cast("i64", dt, 1); shape = None if dims is None else [d if isinstance(d, int) else 1 for d in dims]
        args.append(V(dt, shape, one if shape is None else [one] * numel(shape)))
    try: evaluate(f, args, Run(False))
    except RefError as e: return e if e.stage == "compile" else None
def evaluate(f, args, run):
    env = bind(f, args); out = Result()
    for s in f.body:
        try: execute(s, env, run)
        except RefError as e: raise RefError(e.stage, f"{s}: {e}") from None
    for i, (o, into, t) in enumerate(f.outs):
        v = lookup(o, env); v = conv(v, v.dtype)
        if f.results is not None: check_type(f"output {i}", v, *f.results[i], env)
        if into is not None:
            x = env[into]
            if v.shape is None or v.dtype != x.dtype or len(v.shape) != len(x.shape):
                cerr(f"line {t.line}: into {into}: {describe(v.dtype, v.shape)} into {describe(x.dtype, x.shape)}")
            if v.shape != x.shape: rerr(f"line {t.line}: into {into}: shape {list(v.shape)} into {list(x.shape)}")
            if x.strides and any(st == 0 and n > 1 for st, n in zip(x.strides, x.shape)): rerr(f"line {t.line}: into {into}: it has a stride of 0")
        out.append(v)
    out.classes = [v.cls for v in out]
    out.index_error = run.index_errors[0] if run.index_errors else None
    return out
def run(text, args, name=None, allow_sync=False):
    """Runs the first fusion of the text (or the one of this name) on a list of V. allow_sync: pending scalars may decide extents and asserts."""
    fusions = parse(text)
    names = [f.name for f in fusions]
    for n in names:
        if names.count(n) > 1: cerr(f"two fusions are called @{n}")
    if name is not None and name not in names: cerr(f"there is no fusion @{name}")
    for f in fusions: check(f)
    f = fusions[0 if name is None else names.index(name)]
    try: bind(f, args)
    except RefError as e: raise compile_error(f) or e
    return evaluate(f, args, Run(allow_sync))


# ================================================================================================ 13. cases
def raw(dt, xs):
    if dt in INT or dt == "bool": return struct.pack(f"<{len(xs)}{PACK[dt]}", *xs)
    return b"".join(to_bits(dt, x).to_bytes(SIZE[dt], "little") for x in xs)
def unraw(dt, b):
    n = SIZE[dt]
    if dt in INT: return list(struct.unpack(f"<{len(b) // n}{PACK[dt]}", b))
    return [from_bits(dt, int.from_bytes(b[i:i + n], "little")) for i in range(0, len(b), n)]
def enc(v):
    if v.shape is None:
        if v.dtype in CPX: return {"dtype": v.dtype, "value": [repr(v.data.real), repr(v.data.imag)]}
        return {"dtype": v.dtype, "value": v.data if category(v.dtype) < 2 else repr(float(v.data))}
    return {"dtype": v.dtype, "shape": list(v.shape), "b64": base64.b64encode(raw(v.dtype, v.data)).decode()}
def dec(a):
    d = a["dtype"]
    if "value" in a:
        x = a["value"]
        return V(d, None, complex(*map(float, x)) if d in CPX else float(x) if d in FLT else bool(x) if d == "bool" else int(x))
    xs, shape = unraw(d, base64.b64decode(a["b64"])), tuple(a["shape"])
    if "strides" not in a and "offset" not in a: return V(d, shape, xs)
    st, first = a.get("strides", strides_of(shape)), a.get("offset", 0)
    return V(d, shape, [xs[first + dot(ix, st)] for ix in positions(shape)], strides=list(st))
def ordinal(dt, x):
    n, top = to_bits(dt, x), 1 << (8 * SIZE[dt] - 1)
    return -(n & ~top) if n & top else n
def close(dt, got, want, tol):
    if dt in CPX:
        if set(tol) <= {"ulp", "sign0"}: return all(close(CPX[dt], g, w, tol) for g, w in ((got.real, want.real), (got.imag, want.imag)))
        if got != got or want != want: return got != got and want != want
        return got == want or abs(got - want) <= tol.get("atol", 0) + tol.get("rtol", 0) * abs(want)
    if dt not in FLT: return got == want
    if got != got or want != want: return got != got and want != want
    if got == want: return not tol.get("sign0") or math.copysign(1, got) == math.copysign(1, want) or got != 0
    if "ulp" in tol and abs(ordinal(dt, got) - ordinal(dt, want)) <= tol["ulp"]: return True
    if math.isinf(got) or math.isinf(want): return False
    return abs(got - want) <= tol.get("atol", 0) + tol.get("rtol", 0) * abs(want)
def differs(got, want, tol):
    """None, or a text that says where got and want differ."""
    if got.dtype != want.dtype: return f"dtype {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape: return f"shape {got.shape}, expected {want.shape}"
    for i, (g, w) in enumerate(zip(*(([v.data] if v.shape is None else v.data) for v in (got, want)))):
        if not close(got.dtype, g, w, tol): return f"[{i}] {g!r}, expected {w!r}"
def run_case(c):
    """None where the case agrees (or has nothing to compare), else what differs."""
    want = c.get("expect")
    if want is None: return None
    try: got = run(c["program"], [dec(a) for a in c["args"]], allow_sync=c.get("options", {}).get("no_sync") is False)
    except RefError as e:
        if isinstance(want, dict) and want["error"]["stage"] == e.stage: return None
        return f"{e.stage} error: {e}"
    if isinstance(want, dict): return "no error, expected one"
    if len(got) != len(want): return f"{len(got)} outputs, expected {len(want)}"
    return "; ".join(filter(None, (differs(g, dec(w), c["tol"]) for g, w in zip(got, want)))) or None
def check_files(files):
    total = bad = 0
    for path in files:
        with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as lines:
            for line in lines:
                c = json.loads(line); total += 1
                try: m = run_case(c)
                except Exception as e: m = f"EXCEPTION {type(e).__name__} {e}"
                if m: bad += 1; print(c["id"], "|", " ".join(c["program"].split("\n")[1:])[:110], "|", m)
    print(f"{total - bad} agree, {bad} differ")
    return bad == 0

# ================================================================================================ 14. command line
def parse_scalar(text, dt):
    if dt in CPX: return complex(text.replace(" ", "").replace("i", "j"))
    if dt == "bool": return {"true": True, "false": False, "1": True, "0": False}[text]
    if dt in INT: return literal_to(dt, int(text, 0))
    return float(text) if text.strip("+-") in ("inf", "nan") else literal_to(dt, parse_number(text))
def parse_argument(text, dt, dims):
    """VALUE of the command line as an argument for a parameter of this type."""
    if dims is None: return V(dt, None, parse_scalar(text, dt))
    if text.startswith("["):
        shape, flat, level = [], [], [json.loads(text)]
        while isinstance(level[0] if level else None, list):
            shape.append(len(level[0]))
            if any(len(x) != shape[-1] for x in level): rerr(f"{text} is ragged")
            level = flat = [y for x in level for y in x]
        return V(dt, shape, [parse_scalar(str(x).lower() if isinstance(x, bool) else str(x), dt) for x in flat])
    m = re.fullmatch(r"(iota|full|rand)\(([0-9, ]*)(?:;([^)]*))?\)", text)
    if not m: rerr(f"{text} is no tensor: iota(2,3), full(2,3;1.5), rand(2,3) or [[...]]")
    shape = [int(x) for x in m[2].split(",") if x.strip()]; n = numel(shape)
    if m[1] == "full": return V(dt, shape, [parse_scalar(m[3] or "0", dt)] * n)
    if m[1] == "iota": return V(dt, shape, [cast("i64", dt, i) for i in range(n)])
    r = random.Random(int(m[3] or 0))
    one = [lambda: r.random() < 0.5, lambda: r.randint(0, 100), lambda: rnd(dt, r.random()), lambda: complex(r32(r.random()), r32(r.random()))]
    return V(dt, shape, [one[category(dt)]() for _ in range(n)])
def plain(d, x):
    """An element for JSON."""
    if d in CPX: return [plain(CPX[d], x.real), plain(CPX[d], x.imag)]
    return x if d not in FLT or math.isfinite(x) else str(float(x))
def run_program(path, pairs):
    with open(path) as f: text = f.read()
    given = {k.lstrip("%"): v for k, _, v in (p.partition("=") for p in pairs)}; fusion = parse(text)[0]; args = []
    for name, dt, dims, _, _ in fusion.params:
        if name[1:] not in given: rerr(f"no value for {name}: {describe(dt, dims)}")
        args.append(parse_argument(given.pop(name[1:]), dt, dims))
    if given: rerr(f"@{fusion.name} has no parameter %{next(iter(given))}")
    out = run(text, args); shown = []
    for (o, _, _), v, where in zip(fusion.outs, out, out.classes):
        head = {"name": str(o) if isinstance(o, Ref) else o.name, "kind": "scalar" if v.shape is None else "tensor", "dtype": v.dtype, "class": where}
        if v.shape is None: shown.append({**head, "value": plain(v.dtype, v.data)})
        else: shown.append({**head, "shape": list(v.shape), "data": [plain(v.dtype, x) for x in v.data]})
    print(json.dumps({"outputs": shown, "index_error": out.index_error}))
def main(argv):
    if len(argv) >= 2 and argv[0] == "--run":
        try: run_program(argv[1], argv[2:])
        except RefError as e: sys.exit(f"{argv[1]}: {e.stage} error: {e}")
        except (OSError, ValueError, KeyError) as e: sys.exit(f"{argv[1]}: {type(e).__name__}: {e}")
    elif argv and not argv[0].startswith("-"): sys.exit(0 if check_files(argv) else 1)
    else: sys.exit(__doc__)
if __name__ == "__main__": main(sys.argv[1:])
