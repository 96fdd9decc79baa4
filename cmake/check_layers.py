#!/usr/bin/env python3
"""Checks the one-way dependencies between folders from the #include lines.

usage: check_layers.py [ROOT] | check_layers.py --self-test

Each violation is printed as FILE:LINE: message, and the exit status is 1.
"""
import os
import re
import sys
import tempfile

# lib/codegen itself: codegen.h, the interface that the folders below it implement.
_UNDER_CODEGEN = "lib/base lib/native lib/ir lib/analysis lib/math lib/partition lib/schedule lib/codegen"

# folder -> the folders whose headers it may include, beside its own.
ALLOW = {
    "lib/base": "",
    "lib/native": "lib/base lib/math",
    "lib/cache": "lib/base",
    "lib/ir": "lib/base",
    "lib/parse": "lib/base lib/ir",
    "lib/analysis": "lib/base lib/ir",
    "lib/math": "lib/base",
    "lib/interp": "lib/base lib/ir lib/analysis lib/math",
    "lib/partition": "lib/base lib/ir lib/analysis",
    "lib/schedule": "lib/base lib/ir lib/analysis lib/partition",
    "lib/codegen/llvm": _UNDER_CODEGEN,
    "lib/codegen/host": _UNDER_CODEGEN + " lib/codegen/llvm",
    "lib/codegen/kernel": _UNDER_CODEGEN + " lib/codegen/llvm",
    "lib/codegen/sim": _UNDER_CODEGEN + " lib/codegen/llvm",
    "lib/codegen/module": _UNDER_CODEGEN + " lib/codegen/llvm lib/codegen/host lib/codegen/kernel lib/codegen/sim",
    "lib/codegen": "lib/base lib/native lib/ir lib/schedule",
    "runtime": "lib/base",
    "runtime/cpu": "lib/base runtime",
    "runtime/cuda": "lib/base runtime",
    "runtime/sim": "lib/base runtime",
    # lib/interp is the oracle of the tests and must not be reached from a run; of lib/codegen only the
    # interface of the module is seen, since the module is opened at run time.
    "lib/api": "lib/base lib/native lib/cache lib/ir lib/parse lib/analysis lib/partition lib/schedule lib/codegen "
               "runtime runtime/cpu runtime/cuda runtime/sim",
    "include/lfuser": "",
}

# <system headers> that only these folders may include.
SYSTEM = [
    (re.compile(r"llvm(-c)?/"), ("lib/codegen",)),
    (re.compile(r"(cuda|cuda_runtime|nvrtc|nvJitLink)\.h"), ("runtime/cuda",)),
]

# Calls that the library may not make: memory comes from the embedder's allocator, and a library does not
# print or end the process.
CALLS = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup|asprintf|abort|exit|_exit|printf|puts|"
                   r"putchar|perror|setlocale|srand|rand|strtok|setenv)\s*\(")
CALLS_ALLOWED = ("lib/base/alloc.c",)

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')
ROOTS = ("lib", "", "include")


def folder_of(path):
    """The layer that a file belongs to: the longest known folder above it."""
    folder = os.path.dirname(path)
    while folder and folder not in ALLOW:
        folder = os.path.dirname(folder)
    return folder


def code_only(text):
    """The text with comments and literals blanked, line breaks kept."""
    def blank(m):
        return m.group(0) if m.group(0).startswith("\n") else re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def check_file(root, path):
    folder = folder_of(path)
    allowed = set(ALLOW[folder].split()) | {folder}
    with open(os.path.join(root, path), encoding="utf-8") as f:
        text = f.read()
    for number, line in enumerate(text.split("\n"), 1):
        m = INCLUDE.match(line)
        if not m:
            continue
        kind, name = m.groups()
        if kind == "<":
            for pattern, owners in SYSTEM:
                if pattern.match(name) and not any(folder == o or folder.startswith(o + "/") for o in owners):
                    yield number, f"<{name}> may be included in {', '.join(owners)} only"
            continue
        found = [os.path.join(os.path.dirname(path), name)]
        found += [os.path.normpath(os.path.join(r, name)) for r in ROOTS]
        found = [os.path.normpath(p) for p in found if os.path.exists(os.path.join(root, p))]
        if not found:
            continue  # made by the build, or missing: the compiler says so
        target = folder_of(found[0])
        if target == "include/lfuser":
            continue
        if target not in allowed:
            yield number, f'"{name}": {folder} may not depend on {target or os.path.dirname(found[0])}'
    if path.endswith((".c", ".h")) and folder != "include/lfuser" and path not in CALLS_ALLOWED:
        for number, line in enumerate(code_only(text).split("\n"), 1):
            m = CALLS.search(line)
            if m:
                yield number, f"{m.group(1)}() may not be called in a library"


def check_tree(root):
    errors = []
    for top in ("lib", "runtime", "include"):
        for where, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".c", ".h", ".def")):
                    path = os.path.relpath(os.path.join(where, name), root)
                    if not folder_of(path):
                        errors.append(f"{path}:1: the folder is not in the table of {os.path.basename(__file__)}")
                        continue
                    errors += [f"{path}:{n}: {message}" for n, message in check_file(root, path)]
    return errors


def self_test():
    """The rule must be able to fail."""
    good = {"lib/base/a.h": "", "lib/ir/i.h": '#include "base/a.h"\n', "runtime/device.h": '#include "base/a.h"\n',
            "lib/codegen/llvm/e.c": '#include <llvm-c/Core.h>\n#include "ir/i.h"\n#include "e.h"\n',
            "lib/codegen/llvm/e.h": '// calls malloc() in words only\nint f(const char *s); // "x"\n',
            "lib/base/alloc.c": "void *p(void) { return malloc(1); }\n"}
    bad = {"lib/base/b.c": ('int x;\n#include "ir/i.h"\n', "lib/base/b.c:2: "),
           "lib/ir/j.c": ("#include <llvm-c/Core.h>\n", "lib/ir/j.c:1: "),
           "runtime/r.c": ('  #  include "ir/i.h"\n', "runtime/r.c:1: "),
           "lib/codegen/llvm/g.c": ('#include "runtime/device.h"\n', "lib/codegen/llvm/g.c:1: "),
           "lib/parse/p.c": ("/* \n */ int f(void) { exit(1); }\n", "lib/parse/p.c:2: "),
           "lib/new/n.c": ("", "lib/new/n.c:1: ")}
    with tempfile.TemporaryDirectory() as root:
        for path, text in list(good.items()) + [(p, t) for p, (t, _) in bad.items()]:
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        errors = check_tree(root)
    wanted = [place for _, place in bad.values()]
    missed = [w for w in wanted if not any(e.startswith(w) for e in errors)]
    extra = [e for e in errors if not any(e.startswith(w) for w in wanted)]
    for w in missed:
        print(f"self-test: not found: {w}")
    for e in extra:
        print(f"self-test: wrongly found: {e}")
    return 1 if missed or extra else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    errors = check_tree(root)
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
