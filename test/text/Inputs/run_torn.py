"""run_torn.py BYTES COMMAND...: runs the command with files limited to so many bytes, as on a disk that fills up on the way, and
prints its exit status."""
import resource
import signal
import subprocess
import sys


def limit():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))


print("exit status", subprocess.run(sys.argv[2:], preexec_fn=limit).returncode, flush=True)
