"""deep.py COMMAND...: a list of 100,000 brackets for %x; the exit status has to be 1."""
import subprocess
import sys

done = subprocess.run(sys.argv[1:] + ["--arg", "x=" + "[" * 100000])
sys.exit(0 if done.returncode == 1 else 1)
