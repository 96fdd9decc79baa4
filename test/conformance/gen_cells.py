#!/usr/bin/env python3
"""Makes a conformance case for every cell of the op table: every op of lib/ir/ops.def in every dtype.

gen_cells.py [--jobs=N] [--only=OP[/DTYPE]]   writes data/cells*.jsonl.gz (with --only: prints the cases)
gen_cells.py --check                          names the cells of the table that have no case; exit status 1 when there is one

Ids are OP/DTYPE/FORM with the op's ID in ops.def in small letters (rmax is the reduction, max the op of two operands). An elementwise
op needs the forms `tensor` and `scalar` in each dtype, the others at least one. A cell that the language refuses is a case that expects
the refusal. Expected values come from test/reference/lf_ref.py. Adding an op to the table: an elementwise one needs nothing here
(unless it has attributes); another one needs a function in cells_whole.py.
"""
import argparse
import glob
import gzip
import json
import multiprocessing
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
ROW = re.compile(r'^LF_(ELEM|VIEW|INDEXED|REDUCE|WHOLE|COMPOSITE|META)\((\w+), (\w+), (?:(\d+), |"([^"]*)", )', re.M)
DTYPES = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128".split()


def table():
    """(kind, id, name, number of operands of an elementwise op) of every op that programs can name."""
    text = open(os.path.join(root, "lib", "ir", "ops.def")).read()
    text = text[text.index("#define LF_INTERNAL"):]
    return [(kind, ident.lower(), name, int(n or 0)) for kind, ident, name, n, _ in ROW.findall(text)]


def needed():
    return [f"{ident}/{d}/{form}" for kind, ident, _, _ in table() for d in DTYPES for form in (("tensor", "scalar") if kind == "ELEM" else ("",))]


def check():
    ids = set()
    for path in glob.glob(os.path.join(here, "data", "cells*.jsonl.gz")):
        with gzip.open(path, "rt") as f:
            ids |= {re.match(r'\{"id": "([^"]*)"', line)[1] for line in f}
    have = ids | {"/".join(i.split("/")[:2]) + "/" for i in ids}
    missing = [cell for cell in needed() if cell not in have]
    for cell in missing: print(f"no case for {cell.rstrip('/')}")
    print(f"{len(needed())} cells, {len(ids)} cases, {len(missing)} cells without a case")
    return 1 if missing or not ids else 0


def make(job):
    import cells_elem
    import cells_whole
    kind, ident, name, n, d = job
    specs = cells_elem.cell(name, n, d) if kind == "ELEM" else cells_whole.cell(ident, name, d)
    forms, lines = {}, []
    for spec in specs:
        forms[spec.form] = forms.get(spec.form, 0) + 1
        suffix = f".{forms[spec.form]}" if forms[spec.form] > 1 else ""
        lines.append(json.dumps(spec.case(f"{ident}/{d}/{spec.form}{suffix}", [name, d])))
    return kind, lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    o = parser.parse_args()
    if o.check: return check()
    op, _, dtype = o.only.partition("/")
    jobs = [(*row, d) for row in table() for d in DTYPES if op in ("", row[1]) and dtype in ("", d)]
    with multiprocessing.get_context("spawn").Pool(o.jobs) as pool: made = pool.map(make, jobs, 4)
    if o.only:
        for _, lines in made: print("\n".join(lines))
        return 0
    for name, want in (("cells_elem", True), ("cells_whole", False)):
        path = os.path.join(here, "data", name + ".jsonl.gz")
        text = "".join(line + "\n" for kind, lines in made if (kind == "ELEM") == want for line in lines)
        # No time of making in the header: the same cases are the same bytes.
        with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as z: z.write(text.encode())
        print(f"{path}: {text.count(chr(10))} cases, {os.path.getsize(path) // 1024} KiB")
    return check()


if __name__ == "__main__":
    sys.exit(main())
