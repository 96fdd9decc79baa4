"""Cells of elementwise ops: tensors of several ranks, layouts and extents, and host scalars, one dtype a cell."""
import math

from cells_values import CPX_OPS_EXACT, DTYPES, REAL, Spec, each, edges, fill, mirrored, part, ref, repeated, rng, tensor, transposed, values

FUNCTIONS = set("""rsqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc
    erfinv sigmoid hypot atan2 angle""".split())
ULP = dict(pow=4, tgamma=4, silu=6, gelu=6, softplus=8, elu=6)   # the last four: their formula's steps, each within its bound
UNIT = {"asin", "acos", "atanh", "erfinv"}
EXACT_COMPLEX = CPX_OPS_EXACT


def tolerance(op, d, out):
    """d: the dtype of the operands; out: of the result."""
    if out not in ref.FLT and out not in ref.CPX: return {"ulp": 0}
    half = out in ("f16", "bf16")
    if out in ref.CPX and op not in EXACT_COMPLEX:
        eps, tiny = (2.0 ** -23, 2.0 ** -149) if out == "c64" else (2.0 ** -52, 5e-324)
        return {"rtol": 8 * eps, "atol": 8 * tiny}
    if op in ("lgamma", "digamma"): return {"ulp": 1 if half else 4, "atol": 1e-6}
    n = 2 if op in FUNCTIONS or (op == "abs" and d in ref.CPX) else ULP.get(op, 0)
    return {"ulp": min(n, 1) if half else n, "sign0": True}


def templates(op, n, d):
    """Ways to write the op: {0}, {1}, … stand for its operands."""
    plain_form = f"{op} " + ", ".join("{%d}" % i for i in range(n))
    if op == "gelu": return [plain_form, plain_form + ", approximate=tanh"]
    if op == "leaky_relu": return [plain_form, plain_form + ", slope=0.3"]
    if op == "elu": return [plain_form, plain_form + ", alpha=1.7"]
    if op == "cast": return [f"cast {{0}}, dtype={e}" for e in DTYPES]
    if op == "bitcast": return [f"bitcast {{0}}, dtype={e}" for e in REAL if ref.SIZE[e] == ref.SIZE[d]] or [f"bitcast {{0}}, dtype={d}"]
    if op == "clamp": return [plain_form, "clamp {0}, none, {2}", "clamp {0}, {1}, none"]
    return [plain_form]


def operand_dtypes(op, n, d):
    if op == "select": return ["bool", d, d]
    if op == "ldexp" and d not in ref.INT: return [d, "i32"]
    return [d] * n


def complex_values(op, d, n, *key):
    """Finite and of everyday size: what a complex function gives beyond is not fixed by the language."""
    r = rng(op, d, *key)
    t = part(d)
    few = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0]
    out = [complex(a, b) for a in few for b in few]
    while len(out) < n:
        span = r.choice((0.01, 1.0, 3.0, 10.0))
        z = complex(*[ref.rnd(t, r.uniform(-span, span)) for _ in range(2)])
        if op in ("log", "log2", "log10", "sqrt", "rsqrt") and r.random() < 0.3: z *= 2.0 ** r.randint(-40, 40)
        out.append(z)
    if op == "pow": out = [z or complex(1, 2) for z in out]
    r.shuffle(out)
    return out[:n]


def pool(op, i, d, n, *key):
    """n values for operand i."""
    if op == "select" and i == 0: return [rng(op, d, *key, j).random() < 0.5 for j in range(n)]
    if op == "ldexp" and i == 1 and d == "i32":
        r = rng(op, *key)
        return ([0, 1, -1, 10, -10, 127, -126, -149, -150, 1023, -1074, -1075, 2100, -2200, 70000, -70000, 2**31 - 1, -2**31] + [r.randint(-1100, 1100) for _ in range(n)])[:n]
    if d in ref.CPX and op not in EXACT_COMPLEX: return complex_values(op, d, n, i, *key)
    out = values(d, n, op, i, *key)
    if op in ("shl", "shr", "lshr") and i == 1:
        bits = ref.INT.get(d, (8, 1))[0]
        out = ([x for x in (0, 1, 2, 3, bits // 2, bits - 1, bits, bits + 1, -1, -bits, 100) if d in ref.INT and ref.wrap(d, x) == x] + out)[:n]
    if d in ref.FLT and op in UNIT:
        r = rng(op, d, "unit", *key)
        out = out[:n * 2 // 3] + [ref.rnd(d, r.uniform(-1, 1)) for _ in range(n - n * 2 // 3)]
    if d in ref.FLT and op in ("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "sigmoid", "erfc", "silu", "tgamma", "lgamma", "gelu", "elu"):
        r, span = rng(op, d, "wide", *key), 760 if d == "f64" else 110
        out = out[:n * 3 // 4] + [ref.rnd(d, r.uniform(-span, span)) for _ in range(n - n * 3 // 4)]
    return out


def grid(op, dtypes, n):
    """Operands that broadcast against each other so that edge values meet edge values."""
    n = n if len(dtypes) == 2 else n * 3 // 5
    pools = [pool(op, i, e, n, "grid") for i, e in enumerate(dtypes)]
    sizes = [len(p) for p in pools]
    if len(pools) == 1: return [tensor(dtypes[0], [1, n], pools[0])]
    args = [tensor(dtypes[0], [sizes[0], 1], pools[0]), tensor(dtypes[1], [1, sizes[1]], pools[1])]
    for i in range(2, len(pools)):
        r = rng(op, dtypes, i)
        args.append(tensor(dtypes[i], [sizes[0], sizes[1]], [r.choice(pools[i]) for _ in range(sizes[0] * sizes[1])]))
    return select_grid(dtypes, pools) if op == "select" else args


def select_grid(dtypes, pools):
    a, b = pools[1][:15], pools[2][:15]
    r = rng("select", dtypes)
    return [tensor("bool", [len(a), len(b)], [r.random() < 0.5 for _ in range(len(a) * len(b))]), tensor(dtypes[1], [len(a), 1], a),
            tensor(dtypes[2], [1, len(b)], b)]


def tensor_cell(op, n, d):
    dtypes = operand_dtypes(op, n, d)
    forms = templates(op, n, d)
    names = "abcd"[:n]
    unary = n == 1

    def operands(prefix): return [f"%{prefix}{x}" for x in names]
    params, lines, outs = [], [], []
    for prefix, dims in (("", "[?, ?]"), ("r", "[]"), ("k", "[?, ?, ?, ?, ?, ?, ?, ?]")):
        params += [(f"{prefix}{x}", e + (dims if not (prefix == "k" and x == "b") else "[?, ?]")) for x, e in zip(names, dtypes)]
        for k, form in enumerate(forms if prefix == "" else forms[:1]):
            lines.append(f"%{prefix}y{k} = " + form.format(*operands(prefix)))
            outs.append(f"{prefix}y{k}")

    def small(tag, layout=tensor):  # the rank-0 and the rank-8 operands of a run
        r0 = [tensor(e, [], pool(op, i, e, 70, tag)[-1:]) for i, e in enumerate(dtypes)]
        return r0 + [layout(e, [1, 2] if i == 1 else [2, 1, 1, 3, 1, 1, 2, 2], pool(op, i, e, 70, "deep")[-24:]) for i, e in enumerate(dtypes)]
    wide = ref.SIZE[d]
    flat = [1, 151 if wide < 16 else 101] if unary else [11, 13] if wide < 8 else [7, 11]
    runs = [[tensor(e, flat, fillers(op, i, e, math.prod(flat), "flat")) for i, e in enumerate(dtypes)] + small("s0")]
    if not unary: runs.append(grid(op, dtypes, 26 if wide < 8 else 20 if wide == 8 else 12) + small("s1"))
    strided = []
    for i, e in enumerate(dtypes):
        strided.append((mirrored, transposed, repeated, mirrored)[i](e, [5, 7], fillers(op, i, e, 97, "strided")))
    runs.append(strided + small("s2", mirrored))
    runs.append([tensor(e, [0, 3] if i == 0 else [1, 3], pool(op, i, e, 20, "empty")) for i, e in enumerate(dtypes)] + small("s3"))
    runs.append([tensor(e, [1, 1], pool(op, i, e, 50, "one")[-1:]) for i, e in enumerate(dtypes)] + small("s4"))
    return Spec("tensor", params, lines, outs, runs, lambda out: tolerance(op, d, out))


def fillers(op, i, e, n, tag):
    xs = pool(op, i, e, n, tag)
    rng(op, i, e, tag, "order").shuffle(xs)
    return xs


def scalar_cell(op, n, d):
    dtypes = operand_dtypes(op, n, d)
    forms = templates(op, n, d)
    params = [(x, e) for x, e in zip("abcd", dtypes)]
    lines = [f"%y{k} = " + form.format(*[f"%{x}" for x in "abcd"[:n]]) for k, form in enumerate(forms)]
    outs = [f"y{k}" for k in range(len(forms))]
    count = 110 if ref.SIZE[d] < 8 else 80
    if n == 1:
        args = [each(d, pool(op, 0, d, count, "scalar"))]
    else:
        r = rng("pairs", op, d)
        pools = [pool(op, i, e, 40, "scalar") for i, e in enumerate(dtypes)]
        args = [each(e, [r.choice(p) for _ in range(count)]) for e, p in zip(dtypes, pools)]
    return Spec("scalar", params, lines, outs, [args], lambda out: tolerance(op, d, out))


def mixed_compare(op, d):
    """Integers of different dtypes compare by their true values."""
    others = [e for e in ("bool", *ref.INT) if e != d]
    params = [("a", f"{d}[?, ?]")] + [(f"b{i}", f"{e}[?, ?]") for i, e in enumerate(others)] + [("s", d)] + [(f"t{i}", e) for i, e in enumerate(others)]
    lines = [f"%y{i} = {op} %a, %b{i}" for i in range(len(others))] + [f"%z{i} = {op} %s, %t{i}" for i in range(len(others))]
    outs = [f"y{i}" for i in range(len(others))] + [f"z{i}" for i in range(len(others))]
    a = edges(d)
    args = [tensor(d, [len(a), 1], a)] + [tensor(e, [1, len(edges(e))], edges(e)) for e in others]
    runs = [args + [ref.enc(ref.V(d, None, edges(d)[k]))] + [ref.enc(ref.V(e, None, edges(e)[-1 - k])) for e in others] for k in (0, 1)]
    return Spec("mixed", params, lines, outs, runs, lambda out: {"ulp": 0})


def wide_shift(op, d):
    """Counts of another dtype, by their value."""
    params = [("a", f"{d}[?]"), ("n", "i64[?]"), ("m", "u8[?]"), ("s", d), ("c", "i64")]
    lines = [f"%y0 = {op} %a, %n", f"%y1 = {op} %a, %m", f"%y2 = {op} %s, %c", f"%y3 = {op} %a, %c", f"%y4 = {op} 1, %s"]
    xs = fill(d, 61, op, "wide")
    counts = [0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 255, 256, -1, -64, 2**32, 2**40 + 1, -2**63, 2**63 - 1] + [rng(op, d).randint(-4, 70) for _ in range(43)]
    runs = [[tensor(d, [61], xs), tensor("i64", [61], counts), tensor("u8", [61], [c & 255 for c in counts]), ref.enc(ref.V(d, None, xs[k])),
             ref.enc(ref.V("i64", None, counts[k + 1]))] for k in (0, 5, 16)]
    return Spec("counts", params, lines, [f"y{i}" for i in range(5)], runs, lambda out: {"ulp": 0})


def refused(op, n, d, form):
    """The least program of the cell."""
    dtypes = operand_dtypes(op, n, d)
    params = [(x, e + ("[?]" if form == "tensor" else "")) for x, e in zip("abcd", dtypes)]
    line = "%y = " + templates(op, n, d)[0].format(*[f"%{x}" for x in "abcd"[:n]])
    xs = [values(e, 1, op) for e in dtypes]
    args = [tensor(e, [1], x) if form == "tensor" else ref.enc(ref.V(e, None, x[0])) for e, x in zip(dtypes, xs)]
    return Spec(form, params, [line], ["y"], [args], lambda out: {"ulp": 0})


def cell(op, n, d):
    """All cases of one elementwise op in one dtype."""
    out = []
    for form, make in (("tensor", tensor_cell), ("scalar", scalar_cell)):
        least = refused(op, n, d, form)
        out.append(least if least.is_refused() else make(op, n, d))
    if op in ("eq", "ne", "lt", "le", "gt", "ge") and d in ref.INT: out.append(mixed_compare(op, d))
    if op in ("shl", "shr", "lshr") and d in ref.INT: out.append(wide_shift(op, d))
    if op == "bitcast":  # the dtypes it refuses
        other = next(e for e in ("i16", "i32") if ref.SIZE[e] != ref.SIZE[d])
        out.append(Spec("size", [("a", f"{d}[?]")], [f"%y = bitcast %a, dtype={other}"], ["y"], [[tensor(d, [1], values(d, 1))]], None))
    return out
