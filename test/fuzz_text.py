#!/usr/bin/env python3
"""A bounded fuzz run of the text front end: mutated programs must be compiled or diagnosed, never crash.

usage: fuzz_text.py LFUSER_OPT SEED_FILE... [--seconds=N] [--seed=N] [--keep=FOLDER]

lfuser-opt must answer every input with exit code 0 or 1 within ten seconds, and a 1 must come with a message
on standard error. An input that breaks this is kept, and its path printed.
"""
import os
import random
import subprocess
import sys
import time

TOKENS = [b"%", b"@", b"[", b"]", b"(", b")", b"{", b"}", b",", b":", b"=", b"?", b"fusion", b"return", b"f32", b"i64",
          b"bf16", b"bool", b"add", b"sum", b"reshape", b"into", b"@host", b"-", b"0", b"1", b"-1", b"9223372036854775808",
          b"1e400", b"nan", b"inf", b"0x1p-1074", b"\n", b"//", b"\"", b"\\", b"\0", b"\xff", b"\xf0\x9f\x98\x80", b" "]


def mutate(rng, text, others):
    data = bytearray(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        kind = rng.randrange(8)
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 16, 64)))
        if kind == 0:
            data[at:end] = b""
        elif kind == 1:
            data[at:at] = rng.choice(TOKENS)
        elif kind == 2:
            data[at:end] = rng.choice(TOKENS)
        elif kind == 3 and data:
            data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
        elif kind == 4:
            data[at:at] = data[at:end] * rng.choice((1, 2, 50))
        elif kind == 5:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            data[at:end] = other[start:start + rng.choice((4, 16, 64))]
        elif kind == 6:
            del data[at:]
        else:
            lines = bytes(data).split(b"\n")
            rng.shuffle(lines)
            data = bytearray(b"\n".join(lines))
    return bytes(data[:1 << 16])


def main():
    options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--"))
    tool, *files = [a for a in sys.argv[1:] if not a.startswith("--")]
    seconds, seed = float(options.get("seconds", 10)), int(options.get("seed", 1))
    keep = options.get("keep", "fuzz-failures")
    seeds = []
    for path in sorted(files):
        with open(path, "rb") as f:
            seeds.append(f.read())
    if not seeds:
        print("no seed programs")
        return 1
    rng = random.Random(seed)
    stages = [[], [], ["--emit=fusion"], ["--emit=partition"]]
    end, runs, accepted, failures = time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < end and failures < 5:
        data, stage = mutate(rng, rng.choice(seeds), seeds), rng.choice(stages)
        runs += 1
        try:
            run = subprocess.run([tool, "-", *stage], input=data, capture_output=True, timeout=10, check=False)
            code, message = run.returncode, run.stderr
        except subprocess.TimeoutExpired:
            code, message = "no answer in 10 s", b""
        accepted += code == 0
        if code == 0 or (code == 1 and message):
            continue
        failures += 1
        os.makedirs(keep, exist_ok=True)
        path = os.path.join(keep, f"text-{seed}-{runs}.lf")
        with open(path, "wb") as f:
            f.write(data)
        print(f"{path}: exit {code} {' '.join(stage)}\n{message[-2000:].decode(errors='replace')}")
    print(f"fuzz: {runs} programs, {accepted} accepted, {failures} failures, seed {seed}")
    return 1 if failures or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
