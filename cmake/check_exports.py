#!/usr/bin/env python3
"""Checks that the shared objects export what the public headers declare, and nothing else.

usage: check_exports.py BUILD_DIR [ROOT]

liblfuser.so: exactly the lfuser_* functions declared in include/lfuser, and no library of LLVM or CUDA needed.
liblfuser-codegen.so: only names that begin with lfuser_codegen or lf_codegen.
"""
import glob
import os
import re
import subprocess
import sys


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    # "A" rows are the version nodes.
    return {r[-1].split("@")[0] for r in rows if len(r) >= 2 and r[-2] != "A"}


def needed(path):
    out = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", out)


def declared(root):
    names = set()
    for header in glob.glob(os.path.join(root, "include/lfuser/*.h")):
        with open(header, encoding="utf-8") as f:
            text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", f.read(), flags=re.S)
        text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.M)
        for m in re.finditer(r"\b(lfuser_\w+)\s*\(([^()]|\([^()]*\))*\)[^;{}]*([;{])", text):
            statement = text[max(text.rfind(c, 0, m.start()) for c in ";{}") + 1:m.start()]
            if m.group(3) == ";" and not re.search(r"\btypedef\b|\bstatic\b|[=(]\s*$", statement):
                names.add(m.group(1))
    return names


def main():
    build = sys.argv[1]
    root = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    errors = []
    library = os.path.join(build, "lib/liblfuser.so")
    have, want = exported(library), declared(root)
    errors += [f"liblfuser.so exports {n}, which no public header declares" for n in sorted(have - want)]
    errors += [f"liblfuser.so does not export {n}, which include/lfuser declares" for n in sorted(want - have)]
    for name in needed(library):
        if re.search(r"LLVM|libcuda|libstdc", name):
            errors.append(f"liblfuser.so needs {name}")
    module = os.path.join(build, "lib/liblfuser-codegen.so")
    if os.path.exists(module):
        errors += [f"liblfuser-codegen.so exports {n}" for n in sorted(exported(module))
                   if not re.match(r"lf(user)?_codegen", n)]
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
