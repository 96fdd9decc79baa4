#!/usr/bin/env python3
"""Puts faults back, one at a time, in a copy of the sources, and sees that the test of each fails.

usage: run.py [--jobs=N] [--only=NUMBER[,NUMBER]...] [FOLDER]      FOLDER (default build-mutation): the copy and its build

The copy is built and each test must pass there first. A row of mutations.py is good when its build succeeds and its test does not.
Closes with "N passed, N failed".
"""
import filecmp
import os
import shutil
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
sys.path.insert(0, here)
from mutations import MUTATIONS  # noqa: E402

PARTS = ["lib", "runtime", "include", "tools", "test", "cmake", "docs", "CMakeLists.txt"]


class Copy:
    def __init__(self, folder, jobs):
        self.source = os.path.join(folder, "source")
        self.build = os.path.join(folder, "build")
        self.jobs = jobs
        self.environment = dict(os.environ, LFUSER_CACHE="off", LFUSER_BUILD=self.build, CK_DEFAULT_TIMEOUT="100",
                                LFUSER_TEST_BIN=os.path.join(self.build, "bin"))

    def refresh(self):
        wanted = set()
        for part in PARTS:
            top = os.path.join(root, part)
            files = [top] if os.path.isfile(top) else [os.path.join(d, f) for d, _, names in os.walk(top) for f in names]
            wanted |= {os.path.relpath(f, root) for f in files}
        for folder, _, names in os.walk(self.source):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.source) not in wanted:
                    os.remove(path)
        for name in wanted:  # only what differs, and with a new time: it is built again
            there, ours = os.path.join(self.source, name), os.path.join(root, name)
            if not os.path.exists(there) or not filecmp.cmp(ours, there, shallow=False):
                os.makedirs(os.path.dirname(there), exist_ok=True)
                shutil.copyfile(ours, there)
                shutil.copymode(ours, there)
        self.run(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"], 600, True)

    def run(self, command, limit, must=False):
        done = subprocess.run(command, cwd=self.source, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=limit, text=True, errors="replace", stdin=subprocess.DEVNULL)
        if must and done.returncode:
            sys.exit(f"{' '.join(command)}:\n{done.stdout[-4000:]}")
        return done

    def make(self, test):
        targets = {test.split()[1]} if test.startswith("unit") else set()
        targets |= {"lfuser", "lfuser-codegen", "lfuser-interp-face"}
        return self.run(["cmake", "--build", self.build, "-j", str(self.jobs), "--target", *sorted(targets)], 1800)

    # Whether the test passes.
    def passes(self, test):
        kind, *words = test.split()
        if kind == "unit":
            command = [os.path.join(self.build, "bin", "test", words[0])]
        else:
            device, text = words
            command = [sys.executable, "test/conformance/run_cases.py", "test/conformance/data/faults.jsonl", "--device=" + device,
                       "--filter=" + text]
        try:
            done = self.run(command, 400)
        except subprocess.TimeoutExpired:
            return False, "does not end"
        last = [line for line in done.stdout.strip().split("\n") if line][-1:] or ["nothing said"]
        return done.returncode == 0 and not last[0].startswith("0 passed"), last[0]


def main():
    folder, jobs, only = os.path.join(root, "build-mutation"), os.cpu_count(), None
    for arg in sys.argv[1:]:
        if arg.startswith("--jobs="):
            jobs = int(arg[7:])
        elif arg.startswith("--only="):
            only = {int(n) for n in arg[7:].split(",")}
        elif arg.startswith("-"):
            sys.exit(__doc__)
        else:
            folder = os.path.abspath(arg)
    copy = Copy(folder, jobs)
    copy.refresh()
    rows = [m for m in MUTATIONS if not only or m[0] in only]
    for test in sorted({m[5] for m in rows}):
        made = copy.make(test)
        if made.returncode:
            sys.exit(made.stdout[-4000:])
        good, said = copy.passes(test)
        if not good:
            sys.exit(f"{test} fails without any fault: {said}")
    passed = failed = 0
    for number, what, file, old, new, test in rows:
        path = os.path.join(copy.source, file)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        since = time.time()
        if text.count(old) != 1:
            verdict = f"NOT APPLIED: {file} has the text {text.count(old)} times"
        else:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text.replace(old, new))
            try:
                made = copy.make(test)
                if made.returncode:
                    verdict = "DOES NOT BUILD\n" + made.stdout[-2000:]
                else:
                    good, said = copy.passes(test)
                    verdict = "NOT SEEN: " + said if good else "seen: " + said
            finally:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
        good = verdict.startswith("seen")
        passed, failed = passed + good, failed + (not good)
        print(f"{number:4} {what} ({file}; {test}): {verdict} [{time.time() - since:.0f} s]", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
