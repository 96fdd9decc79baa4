"""run_examples.py LFUSER_RUN DEVICE FOLDER: runs every example with the words of its `// run:` lines."""
import glob
import os
import shlex
import subprocess
import sys

run, device, folder = sys.argv[1:]
root = os.path.join(folder, "..", "..")
for path in sorted(glob.glob(os.path.join(folder, "*.lf"))):
    print("== " + os.path.basename(path), flush=True)
    with open(path) as f: lines = [l.split("run:", 1)[1] for l in f if l.startswith("// run:")]
    if not lines: sys.exit(path + " has no run line")
    for line in lines:
        subprocess.run([run, path, *shlex.split(line), "--stats", "--device=" + device], check=True, cwd=root)
