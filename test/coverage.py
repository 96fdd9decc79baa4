#!/usr/bin/env python3
"""Line and branch coverage of lib/ and runtime/ from a build with -DLFUSER_COVERAGE=ON whose tests have run.

usage: coverage.py BUILD_DIR [--worst=N] [--missing=FILE]... [--limits]

Prints a line a folder and one for all, and the N files with the most uncovered branches. --missing shows the uncovered lines and
branches of a file. --limits: fails below the limits (LIMITS), and closes with "N passed, N failed" as the tests do.
What is left out, and why, is EXCLUDED.
"""
import json
import os
import subprocess
import sys
import tempfile

EXCLUDED = {
    "lib/math/": "compiled by clang to bitcode, which generated code is linked with; judged input by input (test/exhaustive, test/math)",
    "lib/codegen/llvm/target.c": "LLVM glue: target machines",
    "lib/codegen/llvm/passes.c": "LLVM glue: the pass pipeline",
    "lib/codegen/llvm/context.c": "LLVM glue: diagnostics",
    "lib/codegen/llvm/llvm_status.c": "LLVM glue: its errors as statuses",
    "lib/codegen/llvm/math_link.c": "LLVM glue: linking of bitcode",
    "lib/codegen/module/": "LLVM glue: opening the module",
}
LIMITS = {"lib": (90, 80), "runtime": (90, 80)}  # percent of lines, of branches


def measure(build):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run(
            ["gcovr", "-r", root, "--object-directory", build, "--filter", "lib/", "--filter", "runtime/", "-j", "2", "--json", out.name, build],
            cwd=root, check=True, stderr=subprocess.DEVNULL)
        return json.load(open(out.name, encoding="utf-8"))["files"]


class Counts:
    def __init__(self):
        self.lines = self.lines_hit = self.branches = self.branches_hit = 0

    def add(self, other):
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def percent(self):
        def share(hit, of):
            return 100 * hit / of if of else 100.0
        return share(self.lines_hit, self.lines), share(self.branches_hit, self.branches)

    def __str__(self):
        lines, branches = self.percent()
        return f"lines {self.lines_hit:6} of {self.lines:6} {lines:6.1f} %   branches {self.branches_hit:6} of {self.branches:6} {branches:6.1f} %"


def counts_of(file):
    c = Counts()
    for line in file["lines"]:
        if line["gcovr/noncode"]:
            continue
        c.lines += 1
        c.lines_hit += line["count"] > 0
        c.branches += len(line["branches"])
        c.branches_hit += sum(b["count"] > 0 for b in line["branches"])
    return c


def show_missing(file):
    with open(file["file"], encoding="utf-8") as f:
        text = f.read().split("\n")
    for line in file["lines"]:
        if line["gcovr/noncode"]:
            continue
        missed = sum(b["count"] == 0 for b in line["branches"])
        if not line["count"] or missed:
            mark = "-----" if not line["count"] else f"{missed:2}/{len(line['branches']):2}"
            print(f"{line['line_number']:5} {mark} {text[line['line_number'] - 1]}")


def want_of_memory(file):
    """(place, reached) of each line that returns the status of want of memory: an allocation there has failed in some test."""
    with open(file["file"], encoding="utf-8") as f:
        text = f.read().split("\n")
    for line in file["lines"]:
        words = text[line["line_number"] - 1]
        if "return lf_out_of_memory()" in words and not line["gcovr/noncode"]:
            # Of `if (!a || !b) return` half of the branches lead past the return.
            hit, all_ = sum(b["count"] > 0 for b in line["branches"]), len(line["branches"])
            taken = line["count"] > 0 and (hit == all_ or ("&&" not in words and hit > all_ / 2))
            yield f"{file['file']}:{line['line_number']}", taken


def main():
    build, worst, missing, limits = None, 0, [], False
    for arg in sys.argv[1:]:
        if arg.startswith("--worst="):
            worst = int(arg[8:])
        elif arg.startswith("--missing="):
            missing.append(arg[10:])
        elif arg == "--limits":
            limits = True
        elif arg.startswith("-") or build:
            sys.exit(__doc__)
        else:
            build = arg
    if not build:
        sys.exit(__doc__)
    folders, top, files, left_out, memory = {}, {}, [], Counts(), []
    for file in measure(build):
        name = file["file"]
        if name in missing:
            show_missing(file)
        c = counts_of(file)
        if any(name.startswith(prefix) for prefix in EXCLUDED):
            left_out.add(c)
            continue
        files.append((name, c))
        memory += want_of_memory(file)
        folders.setdefault(os.path.dirname(name), Counts()).add(c)
        top.setdefault(name.split("/")[0], Counts()).add(c)
    for name in sorted(folders):
        print(f"{name:24} {folders[name]}")
    print()
    for name in sorted(top):
        print(f"{name:24} {top[name]}")
    print(f"{'left out':24} {left_out}")
    for prefix, why in EXCLUDED.items():
        print(f"    {prefix}: {why}")
    missed = [place for place, taken in memory if not taken]
    print(f"\nwant of memory: {len(memory) - len(missed)} of {len(memory)} places that return it were reached")
    if worst:
        print("not: " + " ".join(missed))
        print("\nmost uncovered branches:")
        for name, c in sorted(files, key=lambda f: f[1].branches_hit - f[1].branches)[:worst]:
            print(f"{name:36} {c}")
    if limits:
        bad = 0
        for name, (lines, branches) in LIMITS.items():
            got = top[name].percent()
            if got[0] < lines or got[1] < branches:
                bad += 1
                print(f"{name}: {got[0]:.1f} % of lines and {got[1]:.1f} % of branches; {lines} and {branches} are wanted")
        print(f"{len(LIMITS) - bad} passed, {bad} failed")
        sys.exit(bad > 0)


main()
