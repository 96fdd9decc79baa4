"""in_pieces.py N FILE: copies the file to standard output, N bytes a write."""
import os
import sys

with open(sys.argv[2], "rb") as f:
    data = f.read()
for i in range(0, len(data), int(sys.argv[1])):
    os.write(1, data[i : i + int(sys.argv[1])])
