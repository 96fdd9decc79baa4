#!/usr/bin/env python3
"""Instructions that the host side takes, counted by callgrind, against a budget that is kept with the sources.

count.py LFUSER_BENCH [--update] [NAME...]

host_budget.json beside this file: "counts" of what `lfuser-bench --host --count=NAME` does in bench_counted (100 calls, or one
compile), and "ratios", upper bounds of one count over another. More than 5 % over a count, or a ratio that is exceeded, fails;
more than 20 % under one asks for --update, which writes the counts of this run. A count depends on the compilers and on the C
library, not on the machine's load.
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGET = os.path.join(HERE, "host_budget.json")
OVER, UNDER = 1.05, 0.80


def count(bench, name):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no", "--toggle-collect=bench_counted",
               bench, "--host", "--count=" + name]
    run = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Collected\s*:\s*(\d+)", run.stderr)
    if run.returncode or not found or not int(found.group(1)):
        sys.exit(f"{' '.join(command)}: no count\n{run.stdout}{run.stderr}")
    return int(found.group(1))


def judge(budget, counts):
    """Lines to print, and whether all is within the budget."""
    lines, good = [], True
    for name, n in counts.items():
        share = n / budget["counts"][name]
        word = "" if UNDER <= share <= OVER else "  OVER BUDGET" if share > OVER else "  well under budget: run count.py --update"
        good &= share <= OVER
        lines.append(f"{name:24} {n:12} {100 * (share - 1):+7.1f} %{word}")
    for name, most in budget["ratios"].items():
        above, below = name.split(" / ")
        if above not in counts or below not in counts:
            continue
        ratio = counts[above] / counts[below]
        good &= ratio <= most
        lines.append(f"{name}: {ratio:.2f}, at most {most}{'' if ratio <= most else '  EXCEEDED'}")
    return lines, good


def self_test():
    budget = {"counts": {"a": 1000, "b": 100}, "ratios": {"a / b": 12}}
    for counts, want in (({"a": 1050, "b": 100}, True), ({"a": 1051, "b": 100}, False), ({"a": 100, "b": 100}, True), ({"a": 1000, "b": 83}, False)):
        assert judge(budget, counts)[1] == want, counts
    assert "--update" in judge(budget, {"a": 700})[0][0]


def main():
    self_test()
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    if not arguments:
        sys.exit(__doc__)
    with open(BUDGET) as f:
        budget = json.load(f)
    names = arguments[1:] or list(budget["counts"])
    counts = {name: count(arguments[0], name) for name in names}
    if "--update" in sys.argv:
        budget["counts"].update(counts)
        with open(BUDGET, "w") as f:
            json.dump(budget, f, indent=2)
            f.write("\n")
    lines, good = judge(budget, counts)
    print("\n".join(lines))
    sys.exit(not good)


if __name__ == "__main__":
    main()
