"""assemble.py LFUSER_OPT PTXAS --targets=80,90 [--no-spills] FOLDER: the PTX of every program in the folder through ptxas."""
import glob
import os
import re
import subprocess
import sys
import tempfile

no_spills = "--no-spills" in sys.argv
opt, ptxas, targets, folder = [a for a in sys.argv[1:] if a != "--no-spills"]
good = bad = 0
with tempfile.TemporaryDirectory() as scratch:
    for path in sorted(glob.glob(os.path.join(folder, "*.lf"))):
        for sm in targets.partition("=")[2].split(","):
            for kernel_class in "01":
                text = subprocess.run([opt, path, "--emit=ptx", f"--target=cuda:sm_{sm}", f"--class={kernel_class}"],
                                      check=True, capture_output=True, text=True).stdout
                for part in re.split(r"(?m)^(?=// kernel )", text):
                    if ".entry" not in part: continue
                    ptx = os.path.join(scratch, "k.ptx")
                    with open(ptx, "w") as f: f.write(part)
                    done = subprocess.run([ptxas, "-v", f"-arch=sm_{sm}", ptx, "-o", os.path.join(scratch, "k.cubin")], capture_output=True, text=True)
                    spills = re.findall(r"(\d+) bytes spill", done.stdout + done.stderr)
                    if done.returncode or (no_spills and (not spills or any(int(s) for s in spills))):
                        bad += 1
                        print(path, sm, kernel_class, part.split("\n")[0], done.stderr)
                    else:
                        good += 1
print(f"{good} kernels assembled, {bad} refused")
