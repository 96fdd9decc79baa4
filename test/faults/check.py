#!/usr/bin/env python3
"""Every line of lines.txt names tests that exist. usage: check.py"""
import json
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
test = os.path.dirname(here)
LINES = 124


def problem(number, where, cases):
    if where == "cases":
        return None if number in cases else f"no case fault.{number} in faults.jsonl"
    if where == "budget.host":
        with open(os.path.join(test, "CMakeLists.txt"), encoding="utf-8") as f:
            return None if "NAME budget.host" in f.read() else "no test budget.host"
    file, name = where.split(":")
    path = os.path.join(test, "unit", file)
    if not os.path.exists(path):
        return f"no file test/unit/{file}"
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if not re.search(rf"START_TEST\({name}\)", text):
        return f"no START_TEST({name}) in {file}"
    return None if re.search(rf"tcase_add\w*test\(\w+, {name}\b", text) else f"{file}: {name} is not run"


def main():
    with open(os.path.join(test, "conformance", "data", "faults.jsonl"), encoding="utf-8") as f:
        cases = {int(json.loads(line)["id"].split(".")[1]) for line in f}
    seen, bad = set(), 0
    with open(os.path.join(here, "lines.txt"), encoding="utf-8") as f:
        for line in f:
            if line.startswith("#"):
                continue
            number, _, wheres = (part.strip() for part in line.split("|"))
            seen.add(int(number))
            for where in wheres.split():
                what = problem(int(number), where, cases)
                if what:
                    bad += 1
                    print(f"{number}: {what}")
            if not wheres.split():
                bad += 1
                print(f"{number}: no test")
    if len(seen) != LINES or not cases <= seen:
        bad += 1
        print(f"{len(seen)} lines, not {LINES}; cases without a line: {sorted(cases - seen)}")
    sys.exit(bad > 0)


main()
