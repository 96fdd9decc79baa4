#!/usr/bin/env python3
"""Checks symbol versions and the SONAME of the public library against its export map.

usage: check_versions.py LIBRARY MAP

Every exported function has a version node of the map, every node of the map is in the library, and nothing is exported without one.
"""
import re
import subprocess
import sys


def main():
    library, map_path = sys.argv[1:3]
    with open(map_path, encoding="utf-8") as f:
        nodes = set(re.findall(r"^(\w[\w.]*)\s*\{", f.read(), flags=re.M))
    errors = []
    # The map alone decides who sees what: a new node for every release that adds functions.
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], capture_output=True, text=True, check=True).stdout
    exported = [line.split() for line in out.splitlines()]
    seen = set()
    for row in exported:
        if row[-2] == "A":
            continue
        name, _, version = row[-1].partition("@@")
        if version not in nodes:
            errors.append(f"{name} is exported with version '{version}', which {map_path} does not have")
        seen.add(version)
        if row[-2] not in "T":
            errors.append(f"{name} is exported as '{row[-2]}': only functions are public")
    errors += [f"nothing is exported in version {n}" for n in sorted(nodes - seen)]
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    if not re.search(r"\(SONAME\).*\[liblfuser\.so\.0\]", dynamic):
        errors.append("the SONAME is not liblfuser.so.0")
    print("\n".join(errors) if errors else f"{len(exported) - len(nodes)} functions in {', '.join(sorted(nodes))}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
