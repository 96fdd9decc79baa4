#!/usr/bin/env python3
"""Writes docs/ops.md: every op of the language as the table, the conformance cells and the reference evaluator have it.

gen_ops_doc.py [--check]     --check: exit status 1 when docs/ops.md is not what would be written

Signature and meaning come from lib/ir/ops.def, dtypes and result dtypes from the cells (test/conformance/data/cells_*.jsonl.gz: what the
language accepts and refuses, as every backend is tested for), corners from test/reference/lf_ref.py, measured accuracy from docs/math.md.
"""
import difflib
import gzip
import json
import math
import os
import re
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(root, "test", "reference"))
import lf_ref as ref  # noqa: E402

GROUPS = {"bool": ["bool"], "integers": list(ref.INT), "floats": list(ref.FLT), "complex": list(ref.CPX)}
CREATES = {"full", "iota", "eye", "tensor", "uniform", "normal"}  # their cells go by dtype=
FREE_ORDER = {"cumsum", "cumprod", "matmul", "linear"}


def read(*path):
    with open(os.path.join(root, *path)) as f: return f.read()


def rows():
    """(section, kind, id, name, operands, attributes, meaning) in the order of the table."""
    text = read("lib", "ir", "ops.def")
    text = text[text.index("#define LF_INTERNAL"):]
    over = re.findall(r'\[LF_OP_(\w+)\]\.(attrs|args) = "([^"]*)"', read("lib", "ir", "table.c"))
    fixed = {(ident, what): value for ident, what, value in over}
    section, out = "", []
    for line in text.splitlines():
        m = re.match(r"// -+ (.*?) -+$", line)
        if m: section = m[1]
        m = re.match(r'LF_(ELEM|VIEW|INDEXED|REDUCE|WHOLE|COMPOSITE|META)\((\w+), (\w+), (.*), "((?:[^"\\]|\\.)*)"\)$', line)
        if not m: continue
        kind, ident, name, middle, doc = m.groups()
        args, attrs = ("v" * int(middle.split(",")[0]), "") if kind == "ELEM" else re.match(r'"(.*?)", "(.*?)"$', middle).groups()
        out.append((section, kind, ident.lower(), name, fixed.get((ident, "args"), args), fixed.get((ident, "attrs"), attrs), doc))
    return out


# ---- what the cells say ------------------------------------------------------------------------------------------------------

def cells():
    """{(id, dtype, form): (dtypes of the first statement's results or None where refused, its tolerance)}"""
    out = {}
    for file in ("cells_elem", "cells_whole"):
        with gzip.open(os.path.join(root, "test", "conformance", "data", file + ".jsonl.gz"), "rt") as f:
            for case in map(json.loads, f):
                ident, dtype, form = case["id"].split("/")
                form = form.partition(".")[0]
                if form not in ("tensor", "scalar") or (ident, dtype, form) in out: continue
                expect = case["runs"][0]["expect"] if "runs" in case else case["expect"]
                statement = case["program"].split("\n")[1]
                results = statement.split("=")[0].count("%")
                tol = case.get("tol")
                out[ident, dtype, form] = (None if "error" in expect else [v["dtype"] for v in expect[:results]], tol[0] if isinstance(tol, list) else tol)
    return out


def named(dtypes):
    """A set of dtypes in words."""
    left, words = set(dtypes), []
    for word, group in GROUPS.items():
        if left >= set(group):
            words.append(word)
            left -= set(group)
        else: words += [d for d in group if d in left]
    return "all" if set(dtypes) == set(ref.DTYPES) else ", ".join(words) if words else "none"


def mapping(table):
    """{operand dtype: result dtype} in words."""
    if not table: return ""
    if all(k == v for k, v in table.items()): return "kept"
    if len(set(table.values())) == 1: return next(iter(table.values()))
    if all(v == ref.CPX.get(k, k) for k, v in table.items()): return "kept; of complex, the type of a part"
    by = {}
    for k, v in table.items():
        if k != v: by.setdefault(v, []).append(k)
    changed = "; ".join(f"{v} for {named(ks)}" for v, ks in by.items())
    return changed + ("; others kept" if any(k == v for k, v in table.items()) else "")


def result_words(ident, name, attrs, known):
    if name in ("cast", "bitcast") or name in CREATES: return "`dtype=`"
    forms = {}
    for form in ("tensor", "scalar"):
        got = {d: known[ident, d, form][0] for d in ref.DTYPES if known.get((ident, d, form), (None,))[0]}
        count = max((len(v) for v in got.values()), default=0)
        words = [mapping({d: v[i] for d, v in got.items()}) for i in range(count)]
        forms[form] = (" / " if any(";" in w for w in words) else ", ").join(words)
    tensor, scalar = forms["tensor"], forms["scalar"]
    if scalar and scalar != tensor:
        changed = {d: known[ident, d, "scalar"][0][0] for d in ref.DTYPES if known[ident, d, "tensor"][0] != known[ident, d, "scalar"][0]}
        tensor += f" (but {mapping(changed)} for scalars of {named(changed)})"
    return tensor + ("; or `dtype=`" if "dtype" in attrs.split() else "")


# ---- corners and accuracy ----------------------------------------------------------------------------------------------------

def shown(x):
    if isinstance(x, bool): return str(x).lower()
    if isinstance(x, complex): return f"{shown(x.real)} + {shown(x.imag)}i"
    if isinstance(x, float): return str(x) if not math.isfinite(x) else f"{x:.6g}"
    return "MIN" if x == -2**31 else str(x)


def corner(name, dtype, args):
    result = ref.apply_op(name, [ref.V(dtype, None, a) for a in args], {}, ref.Run(False))
    return f"{', '.join(map(shown, args))} → {shown(result.data)}"


INF, NAN, MIN = math.inf, math.nan, -2**31
CORNERS = {1: {"f32": [(-INF,), (-1.0,), (-0.0,), (0.0,), (INF,), (NAN,)], "i32": [(MIN,), (-7,)]},
           2: {"f32": [(1.0, 0.0), (-0.0, 0.0), (INF, INF), (1.0, NAN), (NAN, 1.0)], "i32": [(7, 0), (-7, 2), (7, -2), (MIN, -1)]}}
SHIFTS = [(-8, 1), (-8, 32), (-8, -1)]


def corners(kind, ident, name, args, known):
    if kind != "ELEM" or len(args) > 2 or name in ("cast", "bitcast", "conj", "real", "imag", "complex", "not", "and", "or", "xor"): return ""
    out = []
    for dtype, points in CORNERS[len(args)].items():
        if known[ident, dtype, "scalar"][0] is None: continue
        if dtype == "i32" and known[ident, dtype, "scalar"][0] in (["f64"], ["bool"]): continue  # as the float it becomes; as any number
        if name in ("shl", "shr", "lshr"): points = SHIFTS
        out.append(f"{dtype}: " + "; ".join(corner(name, dtype, p) for p in points))
    return " · ".join(out)


def measured():
    """{name: (f32, f64)} and {name: complex} from docs/math.md."""
    text = read("docs", "math.md")
    real = {m[1]: (m[2], m[3]) for m in re.finditer(r"^\| (\w+) \| ([\d.]+) \| [^|]* \| ([\d.]+) \|", text, re.M)}
    block = re.search(r"^Complex functions.*?\n\n", text, re.M | re.S)
    return real, dict(re.findall(r"\b([a-z]\w*) (\d+\.\d+)", block[0])) if block else {}


def accuracy(kind, ident, name, known, real, cpx):
    out = []
    first = next((known[ident, d, "tensor"][1] for d in ("f32", "f64", "c64") if known.get((ident, d, "tensor"), (None,))[0]), None)
    if name in real and kind == "ELEM": out.append(f"{real[name][0]} / {real[name][1]}" if real[name] != ("0", "0") else "exact")
    elif first is None: out.append("exact")
    elif first.get("ulp") == 0: out.append("exact")
    elif name in FREE_ORDER: out.append("order is free")
    elif kind == "ELEM" and "ulp" in first: out.append(f"≤ {first['ulp']}")
    else: out.append("steps")
    c = known.get((ident, "c128", "tensor"), (None, None))
    if kind == "ELEM" and c[0] and c[0][0] in ref.CPX and c[1].get("rtol") and name in cpx: out.append(f"complex {cpx[name]}")
    return ", ".join(out)


# ---- the page ----------------------------------------------------------------------------------------------------------------

def split(text):
    """Positional operands of a written form, lists kept whole; attributes dropped."""
    out, depth = [""], 0
    for c in text:
        depth += (c == "[") - (c == "]")
        if c == "," and not depth: out.append("")
        else: out[-1] += c
    return [x.strip() for x in out if "=" not in x]


def written():
    """{(name, number of operands): names of the operands} as docs/language.md writes them."""
    out = {}
    for name, rest in re.findall(r"`([a-z_0-9]+) ([%\[][^`]*)`", read("docs", "language.md")):
        operands = split(rest)
        if not any(re.match(r"[\d.]+$|none$|\[%|%[iuf]\d", x) for x in operands): out.setdefault((name, len(operands)), operands)
    return out


def signature(name, args, attrs, names):
    operands = names.get((name, 3 if args.endswith("*") else len(args))) or [f"%{x}" for x in ("xy" if len(args) < 3 else "abcdef")[:len(args)]]
    if not args.endswith("*"): operands = [x + " or none" if a in "ol" else x for x, a in zip(operands, args)]
    return f"`{name} {', '.join(operands + [k + '=' for k in attrs.split()])}`"


HEAD = """# Ops

*This page is generated by `cmake/gen_ops_doc.py` from the op table, the conformance cells, the reference evaluator and [math.md](math.md); a test
fails when it is out of date. [language.md](language.md) gives the rules.*

- **takes**: the dtypes that the op computes in, after its operands have been brought to one dtype; any other is a compile error that names op and
  dtype. Creation ops go by their `dtype=`.
- **result**: the result's dtype for operands of one dtype. *kept*: that of the operands.
- **corners**: what the op gives for special operands, as f32 and as i32 (MIN is -2^31). No op traps in any dtype.
- **accuracy**: *exact*: the language fixes the bits. Two numbers: the largest error measured, f32 / f64, in ulp of the correctly rounded result;
  *complex*: in ulp of the modulus. *≤ n*: the bound that is tested, in ulp, where the op is a formula of functions. *steps*: its formula step by
  step, up to the errors of the functions in it. *order is free*: the order of additions is the target's, the bits depend on program, shape and target
  alone; integers are exact. f16 and bf16 compute in f32 and round once. In exact mode the interpreter, host code, CPU kernels and GPU kernels give
  the same bits.
"""


def page():
    known, (real, cpx), names = cells(), measured(), written()
    out, last = [HEAD], None
    for section, kind, ident, name, args, attrs, doc in rows():
        with_corners = section.startswith(("unary", "predicates", "binary"))
        if section != last:
            out.append(f"\n## {section[0].upper()}{section[1:]}\n")
            if kind == "ELEM": out.append("Elementwise: on tensors, on `@host` tensors and on scalars alike.\n")
            out.append("| op | takes | result | meaning | " + ("corners | " if with_corners else "") + "accuracy |")
            out.append("|---|---|---|---|" + ("---|" if with_corners else "") + "---|")
            last = section
        takes = named([d for d in ref.DTYPES if known.get((ident, d, "tensor"), (None,))[0]])
        cols = [signature(name, args, attrs, names), takes, result_words(ident, name, attrs, known), doc.replace("\\\\", "\\")]
        if with_corners: cols.append(corners(kind, ident, name, args, known))
        cols.append(accuracy(kind, ident, name, known, real, cpx))
        out.append("| " + " | ".join(c.replace("|", "\\|") for c in cols) + " |")
    return "\n".join(out) + "\n"


def main():
    path, text = os.path.join(root, "docs", "ops.md"), page()
    if "--check" in sys.argv:
        old = read("docs", "ops.md").splitlines() if os.path.exists(path) else []
        if "\n".join(old) + "\n" == text: return 0
        print("docs/ops.md is out of date; run cmake/gen_ops_doc.py")
        print("\n".join(list(difflib.unified_diff(old, text.splitlines(), "docs/ops.md", "generated", lineterm="", n=0))[:20]))
        return 1
    with open(path, "w") as f: f.write(text)
    return 0


if __name__ == "__main__": sys.exit(main())
