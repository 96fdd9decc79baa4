#!/usr/bin/env python3
"""Random programs of host scalars, typed, up to 200 ops, against an evaluator of Python integers and fractions: every value of every
program must have the same bits (any NaN equal to any).

    fuzz_scalars.py [--programs=N] [--seed=S] [--only=SEED]     default: 300 programs, seeds S, S + 1, ...

The evaluator shares nothing with the compiler: integers are Python's, cut to their width; float arithmetic is exact on fractions and
rounded once (for f16 and bf16: to f32, then to the type, as the language says). Functions that are not exact (exp, sin, ...) are judged
elsewhere, by test/exhaustive. Prints a failing program with its arguments, then "N passed, N failed".
"""
import math, os, random, struct, sys
from fractions import Fraction as Fr

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(root, "tools", "python"))
os.environ.setdefault("LFUSER_LIBRARY", os.path.join(os.environ.get("LFUSER_BUILD", os.path.join(root, "build")), "lib", "liblfuser.so"))
import lfuser

# ---- dtypes ------------------------------------------------------------------------------------------------------------------

INT = {"i8": (8, True), "i16": (16, True), "i32": (32, True), "i64": (64, True), "u8": (8, False), "u16": (16, False), "u32": (32, False), "u64": (64, False)}
FLT = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}  # digits, exponents
DTYPES = ["bool", *INT, *FLT]
HALF = ("f16", "bf16")
NAN, INF = math.nan, math.inf


def wrap(d, n):
    bits, signed = INT[d]
    n &= (1 << bits) - 1
    return n - (1 << bits) if signed and n >> bits - 1 else n


def low(d): return -(1 << INT[d][0] - 1) if INT[d][1] else 0
def high(d): return (1 << INT[d][0] - INT[d][1]) - 1


def rounded(d, q, negative_zero=False):
    """A fraction (or a float that is no finite number) as d, to nearest, ties to even."""
    if isinstance(q, float):
        if q != q or math.isinf(q): return q
        if q == 0: return q
        q = Fr(q)
    q = Fr(q)
    if q == 0: return -0.0 if negative_zero else 0.0
    digits, least, greatest = FLT[d]
    a = abs(q)
    e = a.numerator.bit_length() - a.denominator.bit_length()
    if Fr(2) ** e > a: e -= 1
    unit = Fr(2) ** (max(e, least) - digits + 1)
    n = round(a / unit) * unit  # Python rounds halves to even
    x = INF if n >= Fr(2) ** (greatest + 1) else float(n)
    return -x if q < 0 else x


def to_half(d, x, negative_zero=False):
    """What an op of the halves does: f32 first, then the type."""
    y = rounded("f32", x, negative_zero)
    return rounded(d, y)


def result(d, x, negative_zero=False): return to_half(d, x, negative_zero) if d in HALF else rounded(d, x, negative_zero)
def sign_of(x): return math.copysign(1.0, x)
def finite(*xs): return all(not (x != x or math.isinf(x)) for x in xs)


# ---- conversion --------------------------------------------------------------------------------------------------------------

def cast(a, b, x):
    if b == "bool": return x != 0  # NaN too
    if a == "bool": x = int(x)
    if b in INT:
        if a in FLT:
            if x != x: return 0
            if math.isinf(x): return high(b) if x > 0 else low(b)
            return min(max(math.trunc(x), low(b)), high(b))
        return wrap(b, x)
    return rounded(b, x)  # one rounding from whatever it was


def join(a, b):
    """The lattice of typed scalars; None: an error."""
    if a == b: return a
    category = lambda d: 0 if d == "bool" else 1 if d in INT else 2
    if category(a) != category(b): return a if category(a) > category(b) else b
    if a in FLT: return "f32" if {a, b} == {"f16", "bf16"} else max(a, b, key=lambda d: FLT[d][0])
    (m, s), (n, t) = INT[a], INT[b]
    if s == t: return a if m > n else b
    signed, unsigned = (m, n) if s else (n, m)
    bits = signed if signed > unsigned else 2 * unsigned
    return f"i{bits}" if bits <= 64 else None


# ---- ops: name -> function(d, operands of dtype d) ---------------------------------------------------------------------------

def add(d, a, b):
    if not finite(a, b): return a + b
    return result(d, Fr(a) + Fr(b), a == 0 and b == 0 and sign_of(a) < 0 and sign_of(b) < 0)
def sub(d, a, b): return add(d, a, -b)
def mul(d, a, b):
    if not finite(a, b): return a * b
    return result(d, Fr(a) * Fr(b), sign_of(a) * sign_of(b) < 0) if Fr(a) * Fr(b) == 0 else keep_sign(result(d, Fr(a) * Fr(b)), sign_of(a) * sign_of(b))
def keep_sign(x, s): return math.copysign(x, s) if x == x else x
def div(d, a, b):
    if a != a or b != b: return NAN
    s = sign_of(a) * sign_of(b)
    if math.isinf(a): return NAN if math.isinf(b) else s * INF
    if math.isinf(b): return s * 0.0
    if b == 0: return NAN if a == 0 else s * INF
    return keep_sign(result(d, Fr(a) / Fr(b)), s)
def sqrt(d, a):
    if a != a or a < 0: return NAN
    if a == 0 or math.isinf(a): return a
    q = Fr(a)
    shift = 2 * 200  # an integer root with far more digits than any type; its last bit says whether more follow
    n = q.numerator * q.denominator << shift
    root_ = math.isqrt(n)
    return result(d, Fr(2 * root_ + (root_ * root_ != n), 2) / q.denominator / (1 << shift // 2))
def fma(d, a, b, c):
    if not finite(a, b, c):
        if a != a or b != b or c != c or (math.isinf(a) and b == 0) or (math.isinf(b) and a == 0): return NAN
        if math.isinf(a) or math.isinf(b):
            p = sign_of(a) * sign_of(b) * INF
            return p + c
        return c
    q, s = Fr(a) * Fr(b) + Fr(c), sign_of(a) * sign_of(b)
    if q == 0: return -0.0 if s < 0 and sign_of(c) < 0 and (Fr(a) * Fr(b) == 0 or c == 0) else 0.0
    return keep_sign(rounded(d, q), 1 if q > 0 else -1)  # halves too: fma rounds once
def fmod(d, a, b):
    if a != a or b != b or math.isinf(a) or b == 0: return NAN
    if math.isinf(b) or a == 0: return a
    return keep_sign(float(abs(Fr(a)) % abs(Fr(b))), sign_of(a))
def mod(d, a, b):
    m = fmod(d, a, b)
    if m != m: return m
    if m == 0: return math.copysign(0.0, b)
    if (m < 0) == (b < 0): return m
    return b if math.isinf(b) else result(d, Fr(m) + Fr(b))


def int_floordiv(a, b): return a // b
def int_truncdiv(a, b): return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
def int_ceildiv(a, b): return -(-a // b)
def divided(how): return lambda d, a, b: wrap(d, how(a, b)) if b else wrap(d, -1)
def int_mod(d, a, b): return wrap(d, a % b) if b else a
def int_fmod(d, a, b): return wrap(d, a - b * int_truncdiv(a, b)) if b else a
def int_pow(d, a, b):
    if b >= 0: return wrap(d, pow(a, b, 1 << 64))
    return 1 if a == 1 else (1 if b % 2 == 0 else -1) if a == -1 else 0
def int_shl(d, a, b): return wrap(d, a << b) if 0 <= b < INT[d][0] else 0
def int_shr(d, a, b): return a >> b if 0 <= b < INT[d][0] else (-1 if a < 0 else 0)
def int_lshr(d, a, b): return wrap(d, (a & (1 << INT[d][0]) - 1) >> b) if 0 <= b < INT[d][0] else 0
def key(x): return (x, sign_of(x)) if x == 0 else (x, 0)
def least(d, a, b):
    if d not in FLT: return min(a, b)
    return NAN if a != a or b != b else min(a, b, key=key)
def greatest(d, a, b):
    if d not in FLT: return max(a, b)
    return NAN if a != a or b != b else max(a, b, key=key)
def fleast(d, a, b): return b if a != a else a if b != b else least(d, a, b)
def fgreatest(d, a, b): return b if a != a else a if b != b else greatest(d, a, b)
def whole(how):
    def f(d, a):
        if d not in FLT: return a
        if not finite(a) or a == 0: return a
        return keep_sign(float(how(Fr(a))), sign_of(a))
    return f
def frac(d, a):
    if d not in FLT: return type(a)(0)
    if a != a or math.isinf(a): return NAN
    return keep_sign(float(abs(Fr(a)) % 1), 1 if abs(Fr(a)) % 1 == 0 else sign_of(a))
def sign(d, a):
    if d == "bool" or a != a: return a
    return (a > 0) - (a < 0) if d in INT else float((a > 0) - (a < 0))
def copysign(d, a, b): return math.copysign(a, 1.0 if b != b else b) if a == a else a
def nextafter(d, a, b):
    if a != a or b != b: return NAN
    if a == b: return b
    digits, least_, greatest_ = FLT[d]
    tiny = math.ldexp(1.0, least_ - digits + 1)
    if a == 0: return math.copysign(tiny, b)
    away, largest = (abs(b) > abs(a)) if (a > 0) == (b > 0) and b != 0 else False, float(Fr(2) ** (greatest_ + 1) - Fr(2) ** (greatest_ - digits + 1))
    if math.isinf(a): return math.copysign(largest, a)
    m = abs(Fr(a))
    e = m.numerator.bit_length() - m.denominator.bit_length()
    if Fr(2) ** e > m: e -= 1
    unit = Fr(2) ** (max(e, least_) - digits + 1)
    if away: n = m + unit
    else: n = m - (unit / 2 if m == Fr(2) ** e and e > least_ else unit)
    return math.copysign(INF if n > Fr(largest) else float(n), a)
def clamp(d, x, lo, hi): return least(d, greatest(d, x, lo), hi)
def relu(d, a): return a if d == "bool" else a if a != a else (a if a > 0 else type(a)(0))
def threshold(d, x, t, v): return v if x <= t else x
def reciprocal(d, a): return div(d, 1.0, a)


F, I, B, ANY = "f", "i", "b", "bif"
SAME = {  # name: (categories, operands, float, integer, bool)
    "add": ("bif", 2, add, lambda d, a, b: wrap(d, a + b), lambda d, a, b: a or b), "sub": ("if", 2, sub, lambda d, a, b: wrap(d, a - b), None),
    "mul": ("bif", 2, mul, lambda d, a, b: wrap(d, a * b), lambda d, a, b: a and b), "floordiv": ("i", 2, None, divided(int_floordiv), None),
    "truncdiv": ("i", 2, None, divided(int_truncdiv), None), "ceildiv": ("i", 2, None, divided(int_ceildiv), None),
    "mod": ("if", 2, mod, int_mod, None), "fmod": ("if", 2, fmod, int_fmod, None), "pow": ("i", 2, None, int_pow, None),
    "gcd": ("i", 2, None, lambda d, a, b: wrap(d, math.gcd(a, b)), None), "min": ("bif", 2, least, least, least), "max": ("bif", 2, greatest, greatest, greatest),
    "fmin": ("bif", 2, fleast, least, least), "fmax": ("bif", 2, fgreatest, greatest, greatest),
    "and": ("bi", 2, None, lambda d, a, b: a & b, lambda d, a, b: a and b), "or": ("bi", 2, None, lambda d, a, b: a | b, lambda d, a, b: a or b),
    "xor": ("bi", 2, None, lambda d, a, b: a ^ b, lambda d, a, b: a != b), "fma": ("if", 3, fma, lambda d, a, b, c: wrap(d, a * b + c), None),
    "clamp": ("bif", 3, clamp, clamp, clamp), "threshold": ("bif", 3, threshold, threshold, threshold),
    "addcmul": ("if", 4, lambda d, x, a, b, v: addcmul(d, x, a, b, v), lambda d, x, a, b, v: wrap(d, x + v * a * b), None),
    "copysign": ("f", 2, copysign, None, None), "nextafter": ("f", 2, nextafter, None, None),
    "neg": ("if", 1, lambda d, a: -a, lambda d, a: wrap(d, -a), None), "abs": ("if", 1, lambda d, a: abs(a), lambda d, a: wrap(d, abs(a)), None),
    "sign": ("bif", 1, sign, sign, sign), "relu": ("bif", 1, relu, relu, relu), "not": ("bi", 1, None, lambda d, a: wrap(d, ~a), lambda d, a: not a),
    "ceil": ("bif", 1, *3 * (whole(math.ceil),)), "floor": ("bif", 1, *3 * (whole(math.floor),)), "trunc": ("bif", 1, *3 * (whole(math.trunc),)),
    "round": ("bif", 1, *3 * (whole(round),)), "frac": ("bif", 1, frac, frac, frac),
}
FLOATED = {"div": (2, div), "sqrt": (1, sqrt), "reciprocal": (1, reciprocal)}  # integers and bools give f64
SHIFT = {"shl": int_shl, "shr": int_shr, "lshr": int_lshr}
COMPARE = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
PREDICATE = {"isnan": lambda a: a != a, "isinf": lambda a: isinstance(a, float) and math.isinf(a), "isfinite": lambda a: not isinstance(a, float) or finite(a),
             "signbit": lambda a: a == a and math.copysign(1, a) < 0 if isinstance(a, float) else a < 0, "lnot": lambda a: a == 0}
LOGICAL = {"land": lambda a, b: a != 0 and b != 0, "lor": lambda a, b: a != 0 or b != 0}
BYTES = dict(bool=1, i8=1, i16=2, i32=4, i64=8, u8=1, u16=2, u32=4, u64=8, f16=2, bf16=2, f32=4, f64=8)


COMPUTING = {"add", "sub", "mul", "div", "fma", "sqrt", "reciprocal", "addcmul"}  # what makes a NaN has the canonical one


def addcmul(d, x, a, b, v):
    """x + (v·a)·b; halves in f32, rounded at the end."""
    c = "f32" if d in HALF else d
    return result(d, add(c, x, mul(c, mul(c, v, a), b)))


def category(d): return "b" if d == "bool" else "i" if d in INT else "f"


# ---- programs ----------------------------------------------------------------------------------------------------------------

def value_of(r, d):
    if d == "bool": return r.random() < 0.5
    if d in INT:
        kind = r.random()
        if kind < 0.3: return wrap(d, r.randint(-5, 5))
        if kind < 0.6: return wrap(d, r.choice([low(d), high(d), low(d) + 1, high(d) - 1, 1 << INT[d][0] // 2, INT[d][0], INT[d][0] - 1]))
        return wrap(d, r.getrandbits(64) >> r.randrange(64))
    kind = r.random()
    digits, least_, greatest_ = FLT[d]
    if kind < 0.25: return r.choice([0.0, -0.0, INF, -INF, NAN, 1.0, -1.0])
    if kind < 0.4: return rounded(d, Fr(2) ** r.choice([least_, least_ - digits + 1, greatest_]) * r.choice([1, -1, 3, Fr(3, 2)]))
    if kind < 0.7: return rounded(d, Fr(r.randint(-64, 64), r.choice([1, 2, 3, 8])))
    return rounded(d, Fr(r.getrandbits(60) - (1 << 59)) * Fr(2) ** r.randint(least_ - 60, greatest_ - 60))


class Program:
    def __init__(self, seed):
        self.r = r = random.Random(seed)
        self.values, self.lines, self.arguments = [], [], []  # values: (name, dtype, value)
        params = []
        for i in range(r.randint(1, 8)):
            d = r.choice(DTYPES)
            v = value_of(r, d)
            params.append(f"%a{i}: {d}")
            self.arguments.append(v)
            self.values.append((f"%a{i}", d, v))
        for _ in range(r.choice([1, 3, 10, 30, 80, 200])):
            while not self.step(): pass
        self.made = self.values[len(params):]
        body = "".join(f"  {line}\n" for line in self.lines)
        self.text = f"fusion @s({', '.join(params)}) {{\n{body}  return {', '.join(n for n, _, _ in self.made)}\n}}\n"

    def pick(self, categories=ANY, d=None):
        found = [v for v in self.values if category(v[1]) in categories and (d is None or v[1] == d)]
        if not found: return None
        return self.r.choice(found[-6:] if self.r.random() < 0.6 else found)

    def computed(self, name):
        return name[1] == "v" and self.lines[int(name[2:])].split()[2] in COMPUTING

    def put(self, text, d, value):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.values.append((name, d, value))
        return True

    def operands(self, n, categories):
        """n values and the dtype they meet in; None when they do not."""
        found = [self.pick(categories if not i else ANY) for i in range(n)]
        if any(f is None for f in found): return None
        d = found[0][1]
        for _, e, _ in found[1:]:
            d = join(d, e)
            if d is None: return None
        # joins of three are not associative where u64 or halves stand; meet in one dtype only if all agree pairwise
        if n > 2 and any(join(d, e) != d for _, e, _ in found): return None
        if category(d) not in categories: return None
        if n > 2 and len({e for _, e, _ in found}) > 2: return None
        return found, d, [cast(e, d, v) if e != d else v for _, e, v in found]

    def step(self):
        r = self.r
        how = r.random()
        if how < 0.45:
            op = r.choice(list(SAME))
            categories, n, f, i, b = SAME[op]
            got = self.operands(n, categories)
            if not got: return False
            found, d, xs = got
            return self.put(f"{op} " + ", ".join(x[0] for x in found), d, (f if d in FLT else i if d in INT else b)(d, *xs))
        if how < 0.55:
            op = r.choice(list(FLOATED))
            n, f = FLOATED[op]
            got = self.operands(n, ANY)
            if not got: return False
            found, d, xs = got
            if d not in FLT: xs, d = [cast(d, "f64", x) for x in xs], "f64"
            return self.put(f"{op} " + ", ".join(x[0] for x in found), d, f(d, *xs))
        if how < 0.62:
            op, a, b = r.choice(list(SHIFT)), self.pick("i"), self.pick("i")
            return bool(a and b) and self.put(f"{op} {a[0]}, {b[0]}", a[1], SHIFT[op](a[1], a[2], b[2]))
        if how < 0.70:
            a, b = self.pick(), self.pick()
            op = r.choice(list(COMPARE))
            if a[1] in FLT or b[1] in FLT:  # integers are compared by their true values, else in the common dtype
                d = join(a[1], b[1])
                x, y = cast(a[1], d, a[2]) if a[1] != d else a[2], cast(b[1], d, b[2]) if b[1] != d else b[2]
            else: x, y = int(a[2]), int(b[2])
            return self.put(f"{op} {a[0]}, {b[0]}", "bool", COMPARE[op](x, y))
        if how < 0.75:
            op, a = r.choice(list(PREDICATE)), self.pick()
            return self.put(f"{op} {a[0]}", "bool", bool(PREDICATE[op](a[2])))
        if how < 0.78:
            op, a, b = r.choice(list(LOGICAL)), self.pick(), self.pick()
            return self.put(f"{op} {a[0]}, {b[0]}", "bool", LOGICAL[op](a[2], b[2]))
        if how < 0.83:
            c, got = self.pick("b"), self.operands(2, ANY)
            if not c or not got: return False
            found, d, (x, y) = got
            return self.put(f"select {c[0]}, {found[0][0]}, {found[1][0]}", d, x if c[2] else y)
        if how < 0.93:
            a, d = self.pick(), r.choice(DTYPES)
            return self.put(f"cast {a[0]}, dtype={d}", d, cast(a[1], d, a[2]))
        a = self.pick("if")
        if not a: return False
        d = r.choice([e for e in DTYPES if BYTES[e] == BYTES[a[1]] and e != "bool"])
        if a[2] != a[2] and not self.computed(a[0]): return False  # a NaN that came in keeps its bits, which are not kept track of here
        bits = to_bits(a[1], a[2])
        if d in FLT and from_bits(d, bits) != from_bits(d, bits): return False
        return self.put(f"bitcast {a[0]}, dtype={d}", d, from_bits(d, bits))


CANONICAL = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000, "f64": 0x7FF8000000000000}


def to_bits(d, x):
    if d in INT: return x & (1 << INT[d][0]) - 1
    if x != x: return CANONICAL[d]
    if d == "bf16": return struct.unpack("<I", struct.pack("<f", x))[0] >> 16
    return int.from_bytes(struct.pack({"f16": "<e", "f32": "<f", "f64": "<d"}[d], x), "little")


def from_bits(d, bits):
    if d in INT: return wrap(d, bits)
    if d == "bf16": return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    return struct.unpack({"f16": "<e", "f32": "<f", "f64": "<d"}[d], bits.to_bytes(BYTES[d], "little"))[0]


def same(d, a, b):
    if d in FLT: return a == b and sign_of(a) == sign_of(b) or a != a and b != b
    return a == b


def check(context, seed):
    p = Program(seed)
    try:
        got = context.parse(p.text).compile().run(None, p.arguments)
    except lfuser.Error as e:
        return 0, f"seed {seed}: {e}\n{p.text}"
    known = {name: f"{name} = {d} {value!r}" for name, d, value in p.values}
    for (name, d, want), have, line in zip(p.made, got, p.lines):
        if same(d, want, have): continue
        operands = "; ".join(known[w.strip(",")] for w in line.split()[2:] if w.startswith("%"))
        return 0, f"seed {seed}: {line} is {d} {have!r}, not {want!r}, where {operands}\narguments {p.arguments}\n{p.text}"
    return len(p.made), None


def main():
    options = {"programs": 300, "seed": 1, "only": None}
    for arg in sys.argv[1:]:
        name, _, value = arg.lstrip("-").partition("=")
        if name not in options: sys.exit(__doc__)
        options[name] = int(value)
    context = lfuser.Context()
    seeds = [options["only"]] if options["only"] is not None else range(options["seed"], options["seed"] + options["programs"])
    ops = passed = failed = 0
    for seed in seeds:
        n, wrong = check(context, seed)
        ops += n
        passed += wrong is None
        failed += wrong is not None
        if wrong and failed <= 5: print(wrong)
    print(f"{ops} values of {passed + failed} programs compared")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__": sys.exit(main())
