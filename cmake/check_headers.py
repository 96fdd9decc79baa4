#!/usr/bin/env python3
"""Compiles each public header alone as C11, C17 and C++17, with pedantic warnings as errors.

usage: check_headers.py CLANG [ROOT]
"""
import glob
import os
import subprocess
import sys


def main():
    clang = sys.argv[1]
    root = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    failed = 0
    for header in sorted(glob.glob(os.path.join(root, "include/**/*.h"), recursive=True)):
        name = os.path.relpath(header, os.path.join(root, "include"))
        for language, standard in (("c", "c11"), ("c", "c17"), ("c++", "c++17")):
            # Included twice: the guard is part of what is checked.
            run = subprocess.run(
                [clang, "-x", language, "-std=" + standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wundef",
                 "-Wstrict-prototypes", "-fsyntax-only", "-I", os.path.join(root, "include"), "-"],
                input=f'#include "{name}"\n#include "{name}"\n', capture_output=True, text=True, check=False)
            if run.returncode:
                failed = 1
                print(f"include/{name} does not compile alone as {standard}:\n{run.stderr}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
