"""exit_status.py N COMMAND...: runs the command and fails unless its exit status is N."""
import subprocess
import sys

status = subprocess.run(sys.argv[2:]).returncode
if status != int(sys.argv[1]):
    print(f"exit status {status}, expected {sys.argv[1]}", file=sys.stderr)
    sys.exit(1)
