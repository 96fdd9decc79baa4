"""full_disk.py COMMAND...: runs the command with its standard output on a full disk, and prints its exit status. (As a redirection of
lit's own shell, /dev/full would be read to its end, which it has not, when the command fails.)"""
import subprocess
import sys

with open("/dev/full", "wb") as full:
    print("exit status", subprocess.run(sys.argv[1:], stdout=full).returncode, flush=True)
