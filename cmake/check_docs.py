#!/usr/bin/env python3
"""Checks that docs/ARCHITECTURE.md names each source file, and that the files which the documents name exist.

usage: check_docs.py [ROOT]

Each fault is printed as FILE: message, and the exit status is 1.
"""
import glob
import os
import re
import sys

PAGE = "docs/ARCHITECTURE.md"
TOPS = ("lib", "runtime", "tools")
SOURCES = (".c", ".h", ".def")
FOLDER = re.compile(r"^\*\*([\w/-]+)\*\* · (.*?)(?=\n\n|\Z)", re.M | re.S)
PATH = re.compile(r"`((?:lib|runtime|tools|include|test|cmake|docs)/[\w./*-]+)`")


def named_files(text):
    """Folder -> the names that stand behind it in the section Files."""
    section = text.partition("\n## Files\n")[2].partition("\n## ")[0]
    return {m.group(1): set(re.findall(r"`(\w+)`", m.group(2))) for m in FOLDER.finditer(section)}


def source_files(root):
    found = {}
    for top in TOPS:
        for where, _, files in os.walk(os.path.join(root, top)):
            names = {os.path.splitext(f)[0] for f in files if f.endswith(SOURCES)}
            if names:
                found[os.path.relpath(where, root)] = names
    return found


def check(root):
    with open(os.path.join(root, PAGE), encoding="utf-8") as f:
        named = named_files(f.read())
    for folder, names in sorted(source_files(root).items()):
        for name in sorted(names - named.get(folder, set())):
            yield f"{PAGE}: {folder}/{name} is not in the section Files"
    for folder, names in sorted(named.items()):
        for name in sorted(names):
            if not glob.glob(os.path.join(root, folder, name + ".*")):
                yield f"{PAGE}: there is no {folder}/{name}"
    for page in sorted(glob.glob(os.path.join(root, "docs/*.md")) + [os.path.join(root, "README.md")]):
        with open(page, encoding="utf-8") as f:
            for path in sorted(set(PATH.findall(f.read()))):
                if not glob.glob(os.path.join(root, path)):
                    yield f"{os.path.relpath(page, root)}: there is no {path}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    faults = list(check(os.path.normpath(root)))
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
