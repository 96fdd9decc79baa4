"""Cells of the ops that are not elementwise: reductions, composites, scans, order, shape, indexing, creation, metadata."""
import math

from cells_values import DTYPES, Spec, edges, fill, mirrored, part, plain, ref, repeated, rng, scalar, tensor, transposed, values

EXACT = {"ulp": 0, "sign0": True}
EPS = {"f16": 2.0 ** -23, "bf16": 2.0 ** -23, "f32": 2.0 ** -23, "f64": 2.0 ** -52, "c64": 2.0 ** -23, "c128": 2.0 ** -52}  # of the computing type
MAKERS = {}


def cells(*idents):
    """Registers a function (name, dtype) -> list of Spec for these ops."""
    def deco(f):
        for i in idents: MAKERS[i] = f
        return f
    return deco


def cell(ident, name, d):
    if ident not in MAKERS: raise SystemExit(f"cells_whole.py has nothing for {ident}: write what its cells are")
    return [s for s in MAKERS[ident](name, d) if s]


def program(form, params, forms, runs, tol, results=1, **more):
    """forms: right-hand sides of the statements, each with `results` results."""
    lines, outs = [], []
    for k, text in enumerate(forms):
        names = [f"y{k}"] if results == 1 else [f"y{k}.{j}" for j in range(results)]
        lines.append(", ".join("%" + n for n in names) + " = " + text)
        outs += names
    return Spec(form, params, lines, outs, runs, tol, **more)


def refusable(spec, least):
    """least (a one-statement program) where the language refuses the cell, else spec."""
    return [least] if least.is_refused() else [spec] if isinstance(spec, Spec) else spec()


def vector(d): return [("x", f"{d}[?]")], [[tensor(d, [3], plain(d, 3, "least"))]]


def loose(d, n):
    """What n roundings and functions of the computing type may add up to, rounded once to d; relative to the result."""
    return lambda out: (dict(ulp=0) if out not in EPS else dict(ulp=1, atol=n * EPS[out]) if out in ("f16", "bf16") else dict(rtol=n * EPS[out], atol=n * EPS[out]))


# A kernel of these ops takes 20 to 200 ms to compile, so a cell has few of them: attributes, layouts and ranks take turns over the dtypes.

def turn(name, d): return DTYPES.index(d) + sum(map(ord, name))


def some(xs, n, t):
    """n of xs, other ones each turn."""
    n = min(n, len(xs))
    return [xs[(t + i * max(1, len(xs) // n)) % len(xs)] for i in range(n)]


def layout(name, d): return (mirrored, transposed, repeated)[turn(name, d) % 3]


# ---- reductions --------------------------------------------------------------------------------------------------------------

FUNCTION_REDUCTIONS = {"logsumexp": 8}
REDUCE_FORMS = {
    "sum": ["", "dtype=f64", "dtype=i16"], "prod": ["", "dtype=f32"], "var": ["", "correction=0"], "std": ["", "correction=2"], "var_mean": [""],
    "norm": ["", "ord=1", "ord=inf"]}
LONG = 20011


def reduce_forms(name, d):
    """Right-hand sides over %x and %z of rank 3, %r of rank 0, %k of rank 8."""
    t = turn(name, d)
    if name in ("argmin", "argmax"):
        return [f"{name} {p}" for p in [*some(["%x", "%x, axis=0", "%x, axis=-1, keepdim=true"], 2, t), some(["%z", "%z, axis=1"], 1, t)[0],
                                        some(["%r", "%k, axis=3", "%k"], 1, t)[0]]]
    places = some(["%x", "%x, axes=[0]", "%x, axes=[-1, 0], keepdim=true", "%x, axes=[1]", "%x, axes=[]", "%x, axes=-1"], 2, t)
    places += some(["%z", "%z, axes=[1]", "%z, axes=[0, 2]", "%z, axes=2"], 1, t) + some(["%r", "%k, axes=[2, 4, 7]", "%k, axes=[0, 1, -1]"], 1, t)
    extras = [e for e in REDUCE_FORMS.get(name, [""]) if not (e.startswith("dtype") and d in ref.CPX)]
    return [f"{name} {p}" + (", " + e if e else "") for i, p in enumerate(places) for e in [extras[(t + i) % len(extras) if i else 0]]]


def reduce_tolerance(name, d):
    n = FUNCTION_REDUCTIONS.get(name)
    return loose(d, n) if n else lambda out: EXACT if out in EPS else {"ulp": 0}


@cells("sum", "prod", "rmin", "rmax", "any", "all", "argmin", "argmax", "count_nonzero", "mean", "var", "std", "var_mean", "norm", "logsumexp")
def reductions(name, d):
    results = 2 if name == "var_mean" else 1
    params = [("x", f"{d}[?, ?, ?]"), ("z", f"{d}[?, ?, ?]"), ("r", f"{d}[]"), ("k", f"{d}[?, ?, ?, ?, ?, ?, ?, ?]")]
    forms, tol = reduce_forms(name, d), reduce_tolerance(name, d)
    deep, least = [2, 1, 3, 1, 2, 1, 1, 2], program("tensor", *vector(d)[:1], [f"{name} %x"], vector(d)[1], tol, results)
    span = {"prod": 1.4}.get(name, 4.0)
    few = plain(d, 210, name, span=span, least=-span if d not in ref.INT or ref.INT[d][1] else 0)
    z = layout(name, d)

    def more(tag, special=False):
        return [z(d, [4, 3, 9], few[7:]), tensor(d, [], fill(d, 9, name, tag, special=special)), tensor(d, deep, fill(d, 24, name, tag, 8, special=special))]
    runs = [[tensor(d, [3, 5, 7], few)] + more("s0"), [tensor(d, [1, 1, 1], few)] + more("s1", True), [tensor(d, [2, 3, 4], fill(d, 24, name, "special"))] + more("s2", True)]
    nothing_fails = name in ("min", "max", "argmin", "argmax")
    if not nothing_fails: runs.append([tensor(d, [2, 0, 3], few)] + more("s3"))

    def specs():
        out = [program("tensor", params, forms, runs, tol, results)]
        if nothing_fails:
            axis = "axis=1" if name.startswith("arg") else "axes=[1]"
            empty = [("x", f"{d}[?, ?, ?]")]
            out.append(program("nothing", empty, [f"{name} %x, {axis}"], [[tensor(d, [2, 0, 3], few)]], None))
            out.append(program("empty", empty, [f"{name} %x, {axis}"], [[tensor(d, [2, 3, 0], few)]], tol))
        if d in ("f32", "c64" if name in ("sum", "var") else "f64" if name in ("prod", "mean") else "i32" if name == "max" else "f16"): out.append(long_reduction(name, d, tol, results))
        return out
    return refusable(specs, least)


def long_values(d, tag="", ties=1):
    """Statements that give %x: f32[20011] and the like without an argument of that size; ties: how often a value occurs."""
    lines = [f"%i = iota {LONG}, 0, 1, dtype=i64", "%h = mul %i, 40503", "%q = mod %h, 20011", f"%m = floordiv %q, {ties}"]
    to = {"prod": ("%c = sub %m, 10005", "div", "40020000.0", "add", "1.0")}.get(tag, ("%c = sub %m, 9990", "div", "37.0", "add", "0.25"))
    if d == "bool": return lines + ["%x = gt %m, 9000"]
    if d in ref.INT: return lines + [f"%x = cast %m, dtype={d}"]
    t = {"c64": "f32", "c128": "f64"}.get(d, "f32" if d in ("f16", "bf16") else d)
    lines += [to[0], f"%f = cast %c, dtype={t}", f"%g = {to[1]} %f, {to[2]}", f"%e = {to[3]} %g, {to[4]}"]
    return lines + (["%n = mul %e, -0.5", "%x = complex %e, %n"] if d in ref.CPX else [f"%x = cast %e, dtype={d}"])


def long_reduction(name, d, tol, results):
    """More than two chunks of 8192, as a whole, along rows and down columns."""
    lines = long_values(d, name)
    lines += ["%w = slice %x, [0], [20000], none", "%rows = reshape %w, [2, 10000]", "%cols = reshape %w, [4000, 5]"]
    outs, arg = [], name.startswith("arg")
    for k, form in enumerate(("%x", "%rows, " + ("axis=1" if arg else "axes=[1]"), "%cols, " + ("axis=0" if arg else "axes=[0]"))):
        names = [f"y{k}.{j}" for j in range(results)]
        lines.append(", ".join("%" + n for n in names) + f" = {name} {form}")
        outs += names
    return Spec("long", [], lines, outs, [[]], tol)


def long_rows(d, n, forms, tol, results=1, ties=1, before=(), step=37):
    """forms over %rows of extents (2, n); each result is looked at in every 37th column."""
    lines = long_values(d, ties=ties) + [f"%w = slice %x, [0], [{2 * n}], none", f"%rows = reshape %w, [2, {n}]", *before]
    outs = []
    for k, form in enumerate(forms):
        names = [f"t{k}.{j}" for j in range(results)]
        lines.append(", ".join("%" + t for t in names) + f" = {form}")
        for t in names:
            lines.append(f"%{t.replace('t', 'y', 1)} = slice %{t}, none, none, [1, {step}]")
            outs.append(t.replace("t", "y", 1))
    return Spec("row", [], lines, outs, [[]], tol)


# ---- composites --------------------------------------------------------------------------------------------------------------

@cells("softmax", "log_softmax")
def softmaxes(name, d):
    params = [("x", f"{d}[?, ?, ?]"), ("z", f"{d}[?, ?, ?]"), ("r", f"{d}[]"), ("k", f"{d}[?, ?, ?, ?, ?, ?, ?, ?]")]
    tol = loose(d, 12)
    xs, t = plain(d, 210, name), turn(name, d)
    wide = list(xs)
    if d in ref.FLT:
        for i, x in enumerate((math.inf, math.nan, -math.inf, 80.0, -90.0)): wide[i * 3] = ref.rnd(d, x)
    small = [layout(name, d)(d, [4, 3, 9], xs), tensor(d, [], xs[5:]), tensor(d, [2, 1, 3, 1, 2, 1, 1, 2], xs)]
    runs = [[tensor(d, shape, x)] + small for shape, x in (([3, 5, 7], xs), ([1, 1, 1], xs), ([2, 0, 3], xs), ([2, 2, 4], wide))]
    forms = [f"{name} {f}" for f in (*some(["%x, axis=-1", "%x, axis=0", "%x, axis=1"], 1, t), *some(["%z, axis=2", "%z, axis=1", "%z, axis=0"], 1, t + t // 3),
                                     some(["%r, axis=0", "%k, axis=4"], 1, t)[0])]
    least = program("tensor", *vector(d)[:1], [f"{name} %x, axis=0"], vector(d)[1], tol)

    def specs():
        out = [program("tensor", params, forms, runs, tol)]
        if d in ref.FLT: out.append(long_rows(d, 1531, [f"{name} %x1, axis=1"], loose(d, 24), before=["%x1 = mul %rows, 0.03125"]))
        return out
    return refusable(specs, least)


@cells("layer_norm", "rms_norm")
def norms(name, d):
    other = d if d in ref.FLT else "f32" if d not in ref.CPX else d
    params = [("x", f"{d}[?, ?, ?]"), ("w", f"{other}[?]"), ("b", f"{other}[?]"), ("v", f"{other}[?, ?, ?]"), ("e", "f64" if d == "f64" else "f32")]
    tol = loose(d, 40)

    def form(w, b, axes=""): return f"{name} %x, {w}, {b}, %e{axes}" if name == "layer_norm" else f"{name} %x, {w}, %e{axes}"
    t = turn(name, d)
    forms = [form("%w", "%b"), form("none", "none"), form("none", "%b", ", axes=[1, 2]") if name == "layer_norm" else form("none", "", ", axes=[1, 2]"),
             form("%v", "none", ", axes=[0]")]
    forms = some(forms, 2, t) + [some(forms[::-1], 1, t)[0].replace("%x", "%z").replace("%v", "none")]
    params.append(("z", f"{d}[?, ?, ?]"))
    xs, ws = plain(d, 210, name, span=3), plain(other, 210, name, "w", span=2)
    e = scalar(params[4][1], ref.rnd("f32", 1e-3) if d != "f64" else 1e-3)

    def run(x, shape):
        return [x, tensor(other, [shape[2]], ws), mirrored(other, [shape[2]], ws), tensor(other, [1, shape[1], 1], ws), e, layout(name, d)(d, [2, 3, shape[2]], xs[9:])]
    runs = [run(tensor(d, shape, xs), shape) for shape in ([3, 5, 7], [1, 1, 1], [2, 0, 3])]
    if d in ref.FLT:
        special = list(xs)
        special[0], special[9], special[12] = math.inf, math.nan, -0.0
        runs.append(run(tensor(d, [2, 2, 4], special), [2, 2, 4]))
    least = program("tensor", [("x", f"{d}[?]"), ("e", "f32")], [form("none", "none")], [[tensor(d, [3], xs), scalar("f32", 0.5)]], tol)

    def specs():
        out = [program("tensor", params, forms, runs, tol)]
        if d in ref.FLT:
            before = ["%w1 = index %rows, 1, axis=0", f"%w2 = mul %w1, 0.0625", "%b2 = flip %w2"]
            row = {"layer_norm": "layer_norm %rows, %w2, %b2, 0.001", "rms_norm": "rms_norm %rows, %w2, 0.001"}[name]
            out.append(long_rows(d, 1531, [row], loose(d, 400), before=before))
        return out
    return refusable(specs, least)


@cells("batch_norm")
def batch_norm(name, d):
    o = d if d in ref.FLT else "f32" if d not in ref.CPX else d
    params = [("x", f"{d}[?, ?, ?, ?]"), ("m", f"{o}[?]"), ("v", f"{o}[?]"), ("w", f"{o}[?]"), ("b", f"{o}[?]"), ("e", "f32"), ("z", f"{d}[?, ?]")]
    forms = ["batch_norm %x, %m, %v, %w, %b, %e", "batch_norm %x, %m, %v, none, none, %e", "batch_norm %z, %m, %v, none, %b, %e"]
    xs, ws, vs = plain(d, 300, name), plain(o, 20, "w"), plain(o, 20, "v", least=0.1)
    runs = []
    for x, c in ((tensor(d, [3, 5, 2, 7], xs), 5), (mirrored(d, [2, 3, 5, 3], xs), 3), (tensor(d, [1, 1, 1, 1], xs), 1), (tensor(d, [2, 3, 0, 4], xs), 3)):
        runs.append([x, tensor(o, [c], ws), tensor(o, [c], vs), mirrored(o, [c], ws), tensor(o, [c], ws[7:]), scalar("f32", 0.0009765625), tensor(d, [4, c], xs)])
    least = program("tensor", [("x", f"{d}[?, ?]"), ("m", f"{o}[?]"), ("e", "f32")], ["batch_norm %x, %m, %m, none, none, %e"],
                    [[tensor(d, [2, 1], xs), tensor(o, [1], vs), scalar("f32", 1.0)]], loose(d, 40))
    return refusable(program("tensor", params, forms, runs, loose(d, 40)), least)


@cells("cross_entropy")
def cross_entropy(name, d):
    forms = ["cross_entropy %x, %l", "cross_entropy %x, %l, ignore_index=2"]
    xs = plain(d, 60, name)
    runs = [[tensor(d, [7, 5], xs), tensor("i64", [7], [0, 4, 2, -1, -100, 3, 2])], [mirrored(d, [3, 5], xs), mirrored("i64", [3], [0, 4, 1])],
            [tensor(d, [2, 3], xs), tensor("i64", [2], [-100, -100])], [tensor(d, [0, 3], xs), tensor("i64", [0], [])], [tensor(d, [2, 4], xs), tensor("i64", [2], [9, 1])]]
    params = [("x", f"{d}[?, ?]"), ("l", "i64[?]")]
    least = program("tensor", params, forms[:1], runs[:1], loose(d, 12))
    return refusable(program("tensor", params, forms, runs, loose(d, 12), indexed=True), least)


@cells("dropout")
def dropout(name, d):
    params = [("x", f"{d}[?, ?]"), ("p", "f32"), ("s", "i64"), ("o", "i64"), ("r", f"{d}[]")]
    xs = fill(d, 80, name)
    runs = [[x, scalar("f32", p), scalar("i64", seed), scalar("i64", off), tensor(d, [], xs[3:])] for x, p, seed, off in (
        (tensor(d, [7, 11], xs), 0.25, 42, 0), (mirrored(d, [5, 7], xs), 0.5, -3, 2**33 + 5), (transposed(d, [4, 9], xs), 0.0, 2**63 - 1, -7),
        (tensor(d, [3, 4], xs), 1.0, 7, 1), (tensor(d, [0, 3], xs), 0.5, 1, 1))]
    least = program("tensor", params, ["dropout %r, %p, %s, %o"], runs[:1], None, 2)
    return refusable(program("tensor", params, ["dropout %x, %p, %s, %o", "dropout %r, 0.5, %s, %o"], runs, lambda out: EXACT, 2), least)


# ---- scans, order ------------------------------------------------------------------------------------------------------------

def scan_tolerance(name, d, span, n):
    """The order of float scans is free: roundings of partial results of size at most span·n (sums), or relative (products)."""
    def tol(out):
        if out not in EPS: return {"ulp": 0}
        size = EPS[out] * min(n, 64)  # partial results are combined in few levels
        t = {"rtol": 2 * size, "atol": 2 * size * span * n if name != "cumprod" else 0}
        return dict(t, ulp=1) if out in ("f16", "bf16") else t
    return tol


@cells("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
def scans(name, d):
    results = 2 if name in ("cummax", "cummin") else 1
    params = [("x", f"{d}[?, ?, ?]"), ("r", f"{d}[]"), ("k", f"{d}[?, ?, ?, ?, ?, ?, ?, ?]")]
    span = 1.5 if name == "cumprod" else 4.0
    tol = (lambda out: EXACT if out in EPS else {"ulp": 0}) if results == 2 else scan_tolerance(name, d, span, 9)
    unsigned = d in ref.INT and not ref.INT[d][1]
    xs = plain(d, 210, name, span=3 if d in ref.INT else span, least=0 if unsigned else None if name != "cumprod" or d in ref.INT else 0.5)
    small = [tensor(d, [], xs[5:]), tensor(d, [2, 1, 3, 1, 2, 1, 1, 2], xs)]
    runs = [[tensor(d, [3, 5, 7], xs)] + small, [mirrored(d, [3, 5, 7], xs)] + small, [transposed(d, [4, 3, 9], xs)] + small,
            [repeated(d, [3, 2, 5], xs)] + small, [tensor(d, [1, 1, 1], xs)] + small, [tensor(d, [2, 0, 3], xs)] + small]
    if results == 2 or d in ref.INT: runs.append([tensor(d, [2, 3, 8], fill(d, 48, name))] + small)
    elif d in ref.FLT:
        special = list(xs)
        special[3], special[14], special[17] = math.inf, math.nan, -math.inf
        runs.append([tensor(d, [2, 3, 4], special)] + small)
    forms = [f"{name} %x, axis=-1", f"{name} %x, axis=0", f"{name} %x, axis=1", f"{name} %r, axis=0", f"{name} %k, axis=2"]
    least = program("tensor", *vector(d)[:1], [f"{name} %x, axis=0"], vector(d)[1], tol, results)

    def specs():
        out = [program("tensor", params, forms, runs, tol, results)]
        n = 150 if name == "logcumsumexp" else 2100
        if name != "cumprod" or d in ref.INT: out.append(long_rows(d, n, [f"{name} %rows, axis=1"], tol if results == 2 else scan_tolerance(name, d, 270, n), results, 3))
        return out
    return refusable(specs, least)


def sortable(d, n, *key):
    """Ties, NaNs, both zeros, extremes."""
    r = rng("sort", d, *key)
    pool = edges(d)
    xs = fill(d, n, "sort", *key)
    return [r.choice(pool) if r.random() < 0.5 else x for x in xs] if d not in ref.CPX else xs


@cells("sort", "argsort", "topk")
def order(name, d):
    results, topk = 1 if name == "argsort" else 2, name == "topk"
    word, extra = ("largest=false", ", 3") if topk else ("descending=true", "")
    one = ", 1" if topk else ""
    params = [("x", f"{d}[?, ?, ?]"), ("r", f"{d}[]"), ("k", f"{d}[?, ?, ?, ?, ?, ?, ?, ?]")]
    small = [tensor(d, [], sortable(d, 3, name)), tensor(d, [2, 1, 3, 1, 2, 1, 1, 2], sortable(d, 24, name))]
    shapes = [[3, 5, 7], [4, 3, 9], [3, 4, 5], [3, 3, 3], [3, 0, 4] if not topk else [4, 4, 4]]
    kinds = [tensor, mirrored, repeated, transposed, tensor]
    runs = [[make(d, s, sortable(d, 120, name, i))] + small for i, (make, s) in enumerate(zip(kinds, shapes))]
    forms = [f"{name} %x{extra}", f"{name} %x{extra}, {word}", f"{name} %x{extra}, axis=0", f"{name} %x{extra}, axis=1, {word}", f"{name} %r{one}",
             f"{name} %k{one}, axis=2"]
    tol = lambda out: EXACT if out in EPS else {"ulp": 0}
    least = program("tensor", *vector(d)[:1], [f"{name} %x{one}"], vector(d)[1], tol, results)

    def specs():
        row = [("x", f"{d}[?, ?]")]
        long = ["topk %rows, 170", f"topk %rows, 1200, {word}"] if topk else [f"{name} %rows", f"{name} %rows, {word}"]
        out = [program("tensor", params, forms, runs, tol, results), long_rows(d, 5003, long, tol, results, 3)]
        if topk: out.append(program("k", row, ["topk %x, 9"], [[tensor(d, [2, 8], sortable(d, 16, name, "k"))]], None, 2))
        return out
    return refusable(specs, least)


# ---- scatter, matrix products ------------------------------------------------------------------------------------------------

@cells("scatter")
def scatter(name, d):
    out = []
    params = [("x", f"{d}[?, ?]"), ("i", "i64[?, ?]"), ("j", "i32[?, ?]"), ("s", f"{d}[?, ?]"), ("c", d)]
    xs, ss = fill(d, 60, name), plain(d, 60, name, "src")
    i = [0, 2, -1, 2, 2, 0, -4, 3, 1, 1, 1, 3]
    runs = [[tensor(d, [4, 5], xs), tensor("i64", [4, 3], i), tensor("i32", [2, 3], i), tensor(d, [4, 3], ss), scalar(d, ss[3])],
            [mirrored(d, [4, 5], xs), mirrored("i64", [3, 2], i), transposed("i32", [4, 2], i), mirrored(d, [5, 4], ss), scalar(d, ss[5])],
            [tensor(d, [4, 4], xs), tensor("i64", [0, 2], i), tensor("i32", [4, 0], i), tensor(d, [4, 2], ss), scalar(d, ss[9])],
            [tensor(d, [4, 6], xs), tensor("i64", [1, 4], [4, 0, -5, 2**40]), tensor("i32", [2, 1], [5, -2]), tensor(d, [2, 4], ss), scalar(d, ss[9])]]
    for mode in ("set", "add", "mul", "min", "max"):
        forms = [f"scatter %x, %i, %s, axis=0, mode={mode}", f"scatter %x, %j, %c, axis=1, mode={mode}"]
        least = program(f"tensor.{mode}", params, forms[:1], runs[:1], None)
        out += refusable(program(f"tensor.{mode}", params, forms, runs, lambda o: EXACT if o in EPS else {"ulp": 0}, indexed=True), least)
    row = [("x", f"{d}[?]"), ("i", "i64[?]"), ("s", f"{d}[?]")]
    r = rng(name, d)
    out.append(program("row", row, ["scatter %x, %i, %s, axis=0"], [[tensor(d, [97], fill(d, 97, name, "row")), tensor("i64", [301], [r.randint(-97, 96) for _ in range(301)]),
                                                                  tensor(d, [301], fill(d, 301, name, "row2"))]], lambda o: EXACT if o in EPS else {"ulp": 0}, indexed=True))
    return out


def product_tolerance(d, k, size=16.0):
    def tol(out):
        if out not in EPS: return {"ulp": 0}
        t = {"rtol": 2 * EPS[out], "atol": 2 * k * EPS[out] * size}
        return dict(t, ulp=1) if out in ("f16", "bf16") else t
    return tol


@cells("matmul", "linear")
def products(name, d):
    linear = name == "linear"
    xs, ys = plain(d, 400, name, span=3), plain(d, 400, name, "b", span=3)
    params = [("a", f"{d}[?, ?]"), ("b", f"{d}[?, ?]"), ("v", f"{d}[?]"), ("t", f"{d}[?, ?, ?, ?]")]
    if linear: forms = ["linear %a, %b, none", "linear %a, %b, %v", "linear %t, %b, none"]
    else: forms = ["matmul %a, %b", *some(["matmul %a, %v", "matmul %v, %b", "matmul %v, %v", "matmul %t, %b", "matmul %t, %t"], 2, turn(name, d))]
    runs = []
    lay = (mirrored, transposed)[turn(name, d) % 2]
    for m, k, n, make in ((5, 7, 9, tensor), (4, 6, 3, lay), (1, 1, 1, tensor), (3, 0, 2, tensor), (0, 4, 3, tensor)):
        runs.append([make(d, [m, k], xs), make(d, [n, k] if linear else [k, n], ys), tensor(d, [n if linear else k], ys[50:]), tensor(d, [2, 1, 3, k] if linear else [2, 2, k, k], xs)])
    least = program("tensor", params[:1] + params[1:2], [f"{name} %a, %b" + (", none" if linear else "")], [[tensor(d, [1, 1], xs), tensor(d, [1, 1], ys)]], None)

    def specs():
        wide = [*long_values(d), "%a1 = slice %x, [0], [2211], none", "%b1 = slice %x, [3000], [6015], none", "%a = reshape %a1, [33, 67]",
                "%b = reshape %b1, [45, 67]" if linear else "%b = reshape %b1, [67, 45]", f"%y0 = {name} %a, %b" + (", none" if linear else ""), "%y = slice %y0, none, none, [3, 4]"]
        return [program("tensor", params, forms, runs, product_tolerance(d, 9)), Spec("wide", [], wide, ["y"], [[]], product_tolerance(d, 67, 270.0**2))]
    return refusable(specs, least)


# ---- shape -------------------------------------------------------------------------------------------------------------------

SHAPE_FORMS = {  # over %x of rank 3 with extents (2, 3, 4), laid out otherwise as %z; %r of rank 0; %k of rank 8 (2, 1, 3, 1, 2, 1, 1, 2); %n = 2, %m = 12, %p = -3 (i64 scalars)
    "reshape": ["%x, [-1]", "%x, [%n, %m]", "%x, [4, -1, %n]", "%r, [1, 1]", "%r, []", "%k, [%m, -1]", "%x, [1, 2, 1, 3, 1, 4, 1, 1]"],
    "permute": ["%x, [2, 0, 1]", "%x, [0, 1, 2]", "%x, [-1, -2, -3]", "%r, []", "%k, [7, 6, 5, 4, 3, 2, 1, 0]"],
    "transpose": ["%x, 0, 2", "%x, -1, -2", "%r, 0, 0", "%k, 0, 7"],
    "broadcast": ["%x, [2, 3, 4, 3], dims=[0, 1, 2]", "%x, [5, 2, %n, 3, 4], dims=[1, 3, 4]", "%r, [%n, 3], dims=[]", "%k, [2, 1, 3, 5, 2, 1, %n, 2], dims=[0, 1, 2, 3, 4, 5, 6, 7]"],
    "expand": ["%x, [%n, -1, 3, 4]", "%x, [-1, -1, -1]", "%r, [%n, 3]", "%k, [2, 5, 3, %n, 2, 1, 1, 2]"],
    "squeeze": ["%k, axes=[1, 3, -2]", "%k, axes=5", "%k, axes=[]", "%r, axes=[]"],
    "unsqueeze": ["%x, axes=[0, -1]", "%x, axes=2", "%r, axes=[0, 1]", "%x, axes=[]"],
    "flip": ["%x", "%x, axes=[0]", "%x, axes=[-1, 1]", "%r", "%k, axes=[0, 2, 7]"],
    "slice": ["%x, [0, 1, %n], [2, 3, 4], none", "%x, [none, %p, -3], [%n, none, 100], [2, 1, 2]", "%x, [5, 0, 0], none, none", "%r, [], [], none",
              "%k, none, [1, 1, 2, 1, -1, 1, 1, 2], [1, 1, 2, 1, 1, 1, 1, 1]"],
    "pad": ["%x, [1, 0, %n], [0, 2, 1], %v", "%x, [-1, 0, %p], [2, -1, 0], 1", "%r, [], [], %v", "%k, [0, 1, 0, 0, -1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, -2], %v"],
    "repeat": ["%x, [1, %n, 3]", "%x, [2, 1, 0, 1]", "%r, [3]", "%k, [1, 2, 1, 1, 2, 3, 1, 1]"],
    "roll": ["%x, [1], axes=[2]", "%x, [%p, %m], axes=[0, -1]", "%r, [], axes=[]", "%k, [5], axes=[2]"],
    "triu": ["%x", "%x, diagonal=1", "%x, diagonal=%p", "%k"],
    "tril": ["%x", "%x, diagonal=-1", "%x, diagonal=%n", "%k"]}


@cells(*SHAPE_FORMS)
def shapes(name, d):
    params = [("x", f"{d}[?, ?, ?]"), ("k", f"{d}[?, ?, ?, ?, ?, ?, ?, ?]"), ("r", f"{d}[]"), ("n", "i64"), ("m", "i64"), ("p", "i64"), ("v", d), ("z", f"{d}[?, ?, ?]")]
    tol = lambda out: EXACT if out in EPS else {"ulp": 0}
    t, of_x = turn(name, d), [f for f in SHAPE_FORMS[name] if "%x" in f]
    small = [f for f in SHAPE_FORMS[name] if "%x" not in f]
    forms = [f"{name} {f}" for f in (*some(of_x, 2, t), *[f.replace("%x", "%z") for f in some(of_x, 1, t + t // 3)], *some(small, 1 if of_x else 3, t))]
    xs, ks = fill(d, 96, name), fill(d, 24, name, 8)
    runs = [[tensor(d, [2, 3, 4], xs), (tensor, mirrored)[t // 2 % 2](d, [2, 1, 3, 1, 2, 1, 1, 2], ks), tensor(d, [], xs[3:]), scalar("i64", 2), scalar("i64", 12),
             scalar("i64", -3), scalar(d, xs[7]), layout(name, d)(d, [2, 3, 4], xs[5:])]]
    empty = {"reshape": ["%x, [0, 5]", "%x, [%n, 0]"], "broadcast": ["%x, [2, 0, 3], dims=[1, 2]"], "expand": ["%x, [4, -1, 3]"], "squeeze": ["%x, axes=[]"],
             "permute": ["%x, [1, 0]"], "transpose": ["%x, 0, 1"], "unsqueeze": ["%x, axes=[1]"], "flip": ["%x"], "slice": ["%x, [0, 0], [1, 1], none"],
             "pad": ["%x, [%n, 1], [0, 0], 1"], "repeat": ["%x, [2, 2]"], "roll": ["%x, [1], axes=[0]"], "triu": ["%x"], "tril": ["%x"]}[name]
    return [program("tensor", params, forms, runs, tol),
            program("empty", [("x", f"{d}[?, ?]"), ("n", "i64")], [f"{name} {f}" for f in empty], [[tensor(d, [0, 3], []), scalar("i64", 2 if name != "reshape" else 7)]], tol)]


@cells("cat", "stack")
def joins(name, d):
    xs = fill(d, 96, name)
    params = [("a", f"{d}[?, ?, ?]"), ("b", f"{d}[?, ?, ?]"), ("r", f"{d}[]"), ("q", f"{d}[]"), ("k", f"{d}[?, ?, ?, ?, ?, ?, ?, ?]"), ("c", f"{d}[?, ?, ?]")]
    tol = lambda out: EXACT if out in EPS else {"ulp": 0}
    if name == "cat": forms = ["cat %a, %b, %c, axis=1", "cat %a, axis=0", "cat %a, %a, axis=-1", "cat %k, %k, axis=3", "cat %a, %b, %a, %c, %b, axis=1"]
    else: forms = ["stack %a, %a", "stack %a, %c, axis=1", "stack %r, %q, %r", "stack %a, %c, %a, axis=-1"]
    runs = []
    for m, n, make in ((2, 3, tensor), (3, 1, mirrored), (0, 2, tensor), (2, 2, repeated)):
        runs.append([make(d, [2, m, 4], xs), make(d, [2, n, 4], xs[24:]), tensor(d, [], xs[5:]), tensor(d, [], xs[6:]), tensor(d, [2, 1, 3, 1, 2, 1, 1, 2], xs), transposed(d, [2, m, 4], xs)])
    return [program("tensor", params, forms, runs, tol)]


# ---- indexing, creation, metadata --------------------------------------------------------------------------------------------

@cells("take", "gather", "index")
def indexing(name, d):
    xs = fill(d, 60, name)
    i = [0, 2, -1, 1, 1, -3, 2, 0]
    params = [("x", f"{d}[?, ?, ?]"), ("i", "i64[?, ?]"), ("j", "i32[?, ?, ?]"), ("r", "i64[]"), ("s", "i64"), ("t", "i32")]
    forms = {"take": ["take %x, %i, axis=1", "take %x, %j, axis=0", "take %x, %r, axis=-1"],
             "gather": ["gather %x, %j, axis=1", "gather %x, %j, axis=0", "gather %x, %j, axis=2"],
             "index": ["index %x, %s, axis=1", "index %x, %t, axis=0", "index %x, -1, axis=2"]}[name]
    j = lambda make, shape: make("i32", shape, [0, 1, -1, 1, 0, -2] * 4)
    runs = [[make(d, [2, 3, 4], xs), tensor("i64", [2, 3], i), j(kind, shape), tensor("i64", [], [2]), scalar("i64", s), scalar("i32", t)]
            for make, kind, shape, s, t in ((tensor, tensor, [2, 3, 4], 2, 1), (mirrored, mirrored, [2, 2, 3], -3, -2), (transposed, transposed, [1, 2, 2], 0, 0),
                                            (repeated, tensor, [0, 1, 2], 1, 1))]
    runs.append([tensor(d, [2, 3, 4], xs), tensor("i64", [2, 2], [3, -4, 2**40, 1]), tensor("i32", [1, 2, 2], [5, -1, -6, 0]), tensor("i64", [], [-5]), scalar("i64", 3), scalar("i32", -3)])
    return [program("tensor", params, forms, runs, lambda out: EXACT if out in EPS else {"ulp": 0}, indexed=True)]


@cells("onehot")
def onehot(name, d):
    params, xs = [("x", f"{d}[?, ?]"), ("r", f"{d}[]"), ("n", "i64")], [d != "bool" and 3 or True, 0, 1, 2, 1, 0]
    if d not in ("i32", "i64"): return [program("tensor", params[:1], ["onehot %x, 4"], [[tensor(d, [1, 1], plain(d, 1, name))]], None)]
    runs = [[make(d, s, [3, 0, -1, 2, 1, -4]), tensor(d, [], [2]), scalar("i64", n)] for make, s, n in
            ((tensor, [2, 3], 4), (mirrored, [3, 2], 5), (tensor, [0, 2], 3), (tensor, [1, 2], 1))]
    return [program("tensor", params, ["onehot %x, %n", "onehot %r, 3"], runs, lambda out: {"ulp": 0}, indexed=True)]


def literal(d, x):
    if d == "bool": return str(x).lower()
    if d in ref.INT: return str(x)
    return repr(x) if math.isfinite(x) else {math.inf: "inf", -math.inf: "-inf"}.get(x, "nan")


@cells("full")
def full(name, d):
    xs = fill(d, 12, name)
    params = [("v", d), ("n", "i64"), ("f", "f64"), ("i", "i64"), ("c", "c128")]
    forms = ["full [%n, 3], %v", "full [], %v", f"full [2, %n], %f, dtype={d}", f"full [5], %i, dtype={d}", f"full [%n], 1, dtype={d}", "full [2, 1, 3, 1, 2, 1, 1, %n], %v",
             f"full [3], %c, dtype={d}"]
    runs = [[scalar(d, xs[k]), scalar("i64", n), scalar("f64", f), scalar("i64", i), scalar("c128", complex(f, 2.5))] for k, n, f, i in
            ((0, 2, 300.7, -1), (1, 0, -1e300, 2**62 + 1), (2, 7, math.nan, 255), (3, 1, 0.1, -2**63))]
    return [program("tensor", params, forms, runs, lambda out: EXACT if out in EPS else {"ulp": 0})]


@cells("iota")
def iota(name, d):
    params = [("n", "i64"), ("a", d), ("b", d)]
    least = program("tensor", params, [f"iota %n, %a, %b, dtype={d}"], [[scalar("i64", 3)] + [scalar(d, x) for x in plain(d, 2, name)]], None)
    if least.is_refused(): return [least]
    xs = fill(d, 30, name) + plain(d, 8, name)
    runs = [[scalar("i64", n), scalar(d, xs[-k - 1]), scalar(d, xs[-k - 2])] for n, k in ((5, 0), (0, 3), (1, 5), (301, 2), (77, 12), (9, 20))]
    forms = ["iota %n, %a, %b", f"iota %n, 1, 2, dtype={d}", f"iota 100, 0, 1, dtype={d}"]
    return [program("tensor", params, forms, runs, lambda out: EXACT if out in EPS else {"ulp": 0})]


@cells("eye")
def eye(name, d):
    runs = [[scalar("i64", n), scalar("i64", m)] for n, m in ((3, 5), (5, 3), (0, 2), (1, 1), (4, 4))]
    forms = [f"eye %n, %m, dtype={d}", f"eye 3, %n, dtype={d}"]
    least = program("tensor", [("n", "i64"), ("m", "i64")], forms[:1], runs[:1], None)
    return refusable(program("tensor", [("n", "i64"), ("m", "i64")], forms, runs, lambda out: EXACT if out in EPS else {"ulp": 0}), least)


@cells("tensor")
def constants(name, d):
    least = program("tensor", [], [f"tensor [1], dtype={d}"], [[]], None)
    if least.is_refused(): return [least]
    xs = [literal(d, x) for x in fill(d, 12, name)]
    if d == "bool": xs = ["true", "false"] * 6
    forms = [f"tensor [[{', '.join(xs[:3])}], [{', '.join(xs[3:6])}]], dtype={d}", f"tensor {xs[7]}, dtype={d}", f"tensor [], dtype={d}", f"tensor [[[{xs[8]}]], [[{xs[9]}]]], dtype={d}",
             f"tensor [[[[[[[[{xs[8]}, {xs[10]}]]]]]]]], dtype={d}", "tensor [0, 1]" if d != "bool" else "tensor [true]"]
    return [program("tensor", [], forms, [[]], lambda out: EXACT if out in EPS else {"ulp": 0})]


@cells("uniform", "normal")
def randoms(name, d):
    t = d if d in ref.FLT else "f32"
    params = [("n", "i64"), ("a", t), ("b", t), ("s", "i64"), ("o", "i64")]
    forms = [f"{name} [%n], %a, %b, %s, %o, dtype={d}", f"{name} [3, %n, 2], 0, 1, %s, %o, dtype={d}", f"{name} [], 0.5, 2.0, 7, %o, dtype={d}"]
    runs = [[scalar("i64", n), scalar(t, a), scalar(t, b), scalar("i64", s), scalar("i64", o)] for n, a, b, s, o in
            ((101, -1.0, 3.0, 42, 0), (7, 0.0, 0.5, -5, 3), (0, 0.0, 1.0, 1, 1), (13, 2.0, 2.0, 2**63 - 1, 2**40 - 3), (9, 0.25, 1.5, 2**33, -6))]
    least = program("tensor", params, forms[:1], runs[:1], None)
    tol = lambda out: EXACT if name == "uniform" else {"ulp": 1, "atol": 2.0 ** -21} if d in ("f16", "bf16") else {"rtol": 8 * EPS[d], "atol": 40 * EPS[d]}
    return refusable(program("tensor", params, forms, runs, tol), least)


@cells("size", "stride", "numel", "item", "scalar_tensor")
def metadata(name, d):
    xs = fill(d, 60, name)
    if name == "scalar_tensor":
        forms = ["scalar_tensor %s", "scalar_tensor 1"]
        return [program("tensor", [("s", d)], forms, [[scalar(d, x)] for x in xs[:4]], lambda out: EXACT if out in EPS else {"ulp": 0})]
    if name == "item":
        params = [("x", f"{d}[]"), ("y", f"{d}[?, ?]"), ("h", f"{d}[] @host")]
        runs = [[tensor(d, [], xs[k:]), make(d, [1, 1], xs[k + 3:]), tensor(d, [], xs[k + 5:])] for k, make in ((0, tensor), (9, mirrored), (20, tensor))]
        return [program("tensor", params, ["item %x", "item %y", "item %h"], runs, lambda out: EXACT if out in EPS else {"ulp": 0}),
                program("many", params[1:2], ["item %y"], [[tensor(d, [1, 2], xs)]], None)]
    params = [("x", f"{d}[?, ?, ?]"), ("k", f"{d}[?, ?, ?, ?, ?, ?, ?, ?]"), ("r", f"{d}[]")]
    deep = [2, 1, 3, 1, 2, 1, 1, 2]
    runs = [[make(d, s, xs), tensor(d, deep, xs), tensor(d, [], xs)] for make, s in ((tensor, [2, 3, 4]), (mirrored, [3, 2, 2]), (repeated, [4, 3, 2]), (tensor, [0, 3, 2]), (transposed, [2, 3, 5]))]
    forms = ["numel %x", "numel %k", "numel %r"] if name == "numel" else [f"{name} %x, 0", f"{name} %x, -1", f"{name} %x, 1", f"{name} %k, 2", f"{name} %k, -8"]
    spec = program("tensor", params, forms, runs, lambda out: {"ulp": 0})
    spec2 = Spec("inner", params[:1], ["%t = permute %x, [2, 1, 0]", f"%y = {name} %t" + (", 0" if name != "numel" else "")], ["y"], [[r[0]] for r in runs], lambda out: {"ulp": 0})
    return [spec, spec2]
