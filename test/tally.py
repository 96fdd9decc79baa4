#!/usr/bin/env python3
"""Prints "PASSED FAILED SKIPPED" for one stage of the tests.

usage: tally.py ctest JUNIT.xml | tally.py lit RESULTS.json

A Check program counts by its checks, a program that closes with "N passed, N failed" by that line, every other
test as one.
"""
import json
import re
import sys
import xml.etree.ElementTree as ElementTree


def ctest(path):
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        status = case.get("status")
        if status == "run" or case.find("failure") is not None:
            bad = case.find("failure") is not None
            output = case.findtext("system-out") or ""
            checks = re.findall(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", output, re.M)
            closing = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", output, re.M)
            for ok, wrong, left in closing[-1:]:
                checks.append((int(ok) + int(wrong), wrong, 0))
                skipped += int(left or 0)
            total = sum(int(c) for c, _, _ in checks)
            wrong = sum(int(f) + int(e) for _, f, e in checks)
            if not checks:
                total, wrong = 1, int(bad)
            elif bad and not wrong:  # all checks passed, and then the program failed: a leak, a crash at exit
                total, wrong = total + 1, 1
            passed, failed = passed + total - wrong, failed + wrong
        else:
            skipped += 1
    return passed, failed, skipped


def lit(path):
    with open(path, encoding="utf-8") as f:
        codes = [t["code"] for t in json.load(f)["tests"]]
    passed = sum(c in ("PASS", "XFAIL", "FLAKYPASS") for c in codes)
    skipped = sum(c in ("UNSUPPORTED", "SKIPPED", "EXCLUDED") for c in codes)
    return passed, len(codes) - passed - skipped, skipped


print(*{"ctest": ctest, "lit": lit}[sys.argv[1]](sys.argv[2]))
